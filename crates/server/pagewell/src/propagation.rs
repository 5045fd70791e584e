//! Whether the changes that a write waits for are applied everywhere: those of databases, of other
//! nodes of the cluster, and of a successor process.
//!
//! If the wait timed out, `Cache-Status` has the detail `changes-late`.

/// The result of waiting until changes are applied (write barrier, cluster, successor process).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// There was nothing to wait for, or the barrier is switched off.
    No,
    /// Everything committed before is applied.
    Applied,
    /// It is not known to be applied: the wait timed out, or the database is not followed.
    Late,
}

impl Waited {
    /// Combines two results: `Late` wins over `Applied`, and `Applied` over `No`.
    pub fn and(self, other: Waited) -> Waited {
        match (self, other) {
            (Waited::Late, _) | (_, Waited::Late) => Waited::Late,
            (Waited::No, Waited::No) => Waited::No,
            _ => Waited::Applied,
        }
    }

    /// Adds `"late": true` to the JSON response of a control call if the wait timed out.
    pub fn say_in(self, answer: &mut serde_json::Value) {
        if self == Waited::Late {
            answer["late"] = true.into();
        }
    }

    /// Returns the detail for `Cache-Status` (RFC 9211), if there is one.
    pub fn detail(self) -> Option<&'static str> {
        match self {
            Waited::No | Waited::Applied => None,
            Waited::Late => Some("changes-late"),
        }
    }
}
