//! How far a change has been applied by others that a write waits for: databases, nodes of the cluster, a
//! process that has taken over.
//!
//! It is the `detail` of `Cache-Status` where something was not waited for to the end (`changes-late`).

/// Whether a change has reached all that a write waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// There is nothing to wait for, or it is not wanted.
    NotNeeded,
    /// All that was committed or published before is applied.
    Applied,
    /// It is not known to be applied: it took too long, or the database is not followed.
    TimedOut,
}

impl Propagation {
    /// Both together.
    pub fn and(self, other: Propagation) -> Propagation {
        match (self, other) {
            (Propagation::TimedOut, _) | (_, Propagation::TimedOut) => Propagation::TimedOut,
            (Propagation::NotNeeded, Propagation::NotNeeded) => Propagation::NotNeeded,
            _ => Propagation::Applied,
        }
    }

    /// Says so in the answer to a call, where it is late.
    pub fn say_in(self, answer: &mut serde_json::Value) {
        if self == Propagation::TimedOut {
            answer["late"] = true.into();
        }
    }

    /// What `Cache-Status` says of it.
    pub fn detail(self) -> Option<&'static str> {
        match self {
            Propagation::NotNeeded | Propagation::Applied => None,
            Propagation::TimedOut => Some("changes-late"),
        }
    }
}
