//! Whether the changes that a write waits for are applied everywhere: those of databases, of other
//! nodes of the cluster, and of a successor process.
//!
//! If the wait timed out, `Cache-Status` has the detail `changes-late`.

use reasons::Reason;

/// The result of waiting until changes are applied (write barrier, cluster, successor process).
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
    /// Combines two results: `TimedOut` prevails over `Applied`, and that over `NotNeeded`.
    pub fn and(self, other: Propagation) -> Propagation {
        match (self, other) {
            (Propagation::TimedOut, _) | (_, Propagation::TimedOut) => Propagation::TimedOut,
            (Propagation::NotNeeded, Propagation::NotNeeded) => Propagation::NotNeeded,
            _ => Propagation::Applied,
        }
    }

    /// Adds `"late": true` to the JSON response of a control call if the wait timed out.
    pub fn say_in(self, answer: &mut serde_json::Value) {
        if self == Propagation::TimedOut {
            answer["late"] = true.into();
        }
    }

    /// Returns the reason to show in `Cache-Status` (RFC 9211), if there is one.
    pub fn reason(self) -> Option<Reason> {
        match self {
            Propagation::NotNeeded | Propagation::Applied => None,
            Propagation::TimedOut => Some(Reason::ChangesLate),
        }
    }
}
