//! The work that one changed row may cause: visitors choose the texts of both sides, the statements (a search) and
//! the rows (a comment).
//!
//! Invariant: a test for which nothing is left answers "maybe", so a statement that was not tested counts as touched.
//! Not here: the thread that does the work.

/// The steps that are left for a changed row. A step is about a byte that is compared, or a constant.
#[derive(Debug)]
pub struct MatchBudget {
    left: u64,
    done: u64,
}

impl MatchBudget {
    /// The steps for one changed row: some ten milliseconds.
    const ROW_STEPS: u64 = 16 << 20;

    /// The budget of a changed row.
    #[must_use]
    pub fn of_row() -> MatchBudget {
        MatchBudget::new(MatchBudget::ROW_STEPS)
    }

    /// A budget of this number of steps.
    #[must_use]
    pub fn new(steps: u64) -> MatchBudget {
        MatchBudget { left: steps, done: 0 }
    }

    /// Takes the steps of some work.
    pub(crate) fn spend(&mut self, steps: usize) {
        let steps = steps as u64;
        self.done = self.done.saturating_add(steps);
        self.left = self.left.saturating_sub(steps);
    }

    /// Whether nothing is left.
    #[must_use]
    pub fn is_spent(&self) -> bool {
        self.left == 0
    }

    /// The steps that were done.
    #[must_use]
    pub fn done(&self) -> u64 {
        self.done
    }
}
