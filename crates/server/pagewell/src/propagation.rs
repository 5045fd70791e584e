//! How far a change has been applied by others that a write waits for: databases, nodes of the cluster, a
//! process that has taken over.
//!
//! It is the `detail` of `Cache-Status` where something was not waited for to the end (`changes-late`).

/// What came of waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// There is nothing to wait for, or it is not wanted.
    No,
    /// Everything committed before is applied.
    Applied,
    /// It is not known to be: it took too long, or the database is not followed.
    Late,
}

impl Waited {
    /// Both together.
    pub fn and(self, other: Waited) -> Waited {
        match (self, other) {
            (Waited::Late, _) | (_, Waited::Late) => Waited::Late,
            (Waited::No, Waited::No) => Waited::No,
            _ => Waited::Applied,
        }
    }

    /// Says so in the answer to a call, where it is late.
    pub fn say_in(self, answer: &mut serde_json::Value) {
        if self == Waited::Late {
            answer["late"] = true.into();
        }
    }

    /// What `Cache-Status` says of it.
    pub fn detail(self) -> Option<&'static str> {
        match self {
            Waited::No | Waited::Applied => None,
            Waited::Late => Some("changes-late"),
        }
    }
}
