//! The transactions that are visible to a new reader: the result of `SELECT pg_current_snapshot()`, such as
//! `10:20:10,14,15`.
//!
//! Transactions below the first number have finished. Those from the second number on have not begun. Of those
//! in between, the listed ones have not finished. The stream has only the lower 32 bits of a transaction ID, a
//! snapshot has all 64: the ID nearest to the snapshot is meant. Source: PostgreSQL's manual, "Transaction ID
//! and Snapshot Information Functions". Not here: whether a finished transaction was committed.

use std::str::FromStr;

/// The maximum number of listed transactions: more than a server can run at once.
const LISTED_MAX: usize = 1 << 20;

/// The transactions that a reader sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    first: u64,
    end: u64,
    unfinished: Vec<u64>,
}

/// A text is not a valid snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoSnapshot;

impl Snapshot {
    /// Whether the transaction has finished in this snapshot. If it was committed, its rows are visible to
    /// every later query.
    #[must_use]
    pub fn has_finished(&self, xid: u32) -> bool {
        let xid = self.widened(xid);
        xid < self.first || (xid < self.end && self.unfinished.binary_search(&xid).is_err())
    }

    /// The 64-bit transaction ID with these lower 32 bits that is nearest to the end of the snapshot.
    fn widened(&self, xid: u32) -> u64 {
        let ahead = xid.wrapping_sub(self.end as u32).cast_signed();
        self.end.wrapping_add_signed(i64::from(ahead))
    }
}

impl FromStr for Snapshot {
    type Err = NoSnapshot;

    fn from_str(text: &str) -> Result<Snapshot, NoSnapshot> {
        let number = |text: &str| text.parse::<u64>().map_err(|_| NoSnapshot);
        let mut parts = text.splitn(3, ':');
        let mut part = || parts.next().ok_or(NoSnapshot);
        let (first, end, listed) = (number(part()?)?, number(part()?)?, part()?);
        let listed = listed.split(',').filter(|one| !one.is_empty()).take(LISTED_MAX + 1);
        let mut unfinished = listed.map(number).collect::<Result<Vec<u64>, _>>()?;
        if unfinished.len() > LISTED_MAX || first > end {
            return Err(NoSnapshot);
        }
        unfinished.sort_unstable();
        Ok(Snapshot { first, end, unfinished })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(text: &str) -> Snapshot {
        text.parse().expect("a snapshot")
    }

    #[test]
    fn listed_and_later_transactions_have_not_finished() {
        let seen = snapshot("10:20:10,14,15");
        let finished: Vec<u32> = (8..23).filter(|xid| seen.has_finished(*xid)).collect();
        assert_eq!(finished, [8, 9, 11, 12, 13, 16, 17, 18, 19]);
        assert!(snapshot("10:10:").has_finished(9) && !snapshot("10:10:").has_finished(10));
    }

    #[test]
    fn numbers_of_32_bits_are_those_nearest_by() {
        let seen = snapshot("8589934590:8589934602:8589934591,8589934600");
        assert!(seen.has_finished(u32::MAX - 2), "4294967293 of the second round");
        assert!(!seen.has_finished(u32::MAX));
        assert!(seen.has_finished(5) && !seen.has_finished(8) && !seen.has_finished(10));
    }

    #[test]
    fn nonsense_is_refused() {
        for wrong in ["", "1", "1:2", "2:1:", "a:b:", "1:9:2,x", "-1:2:"] {
            assert_eq!(wrong.parse::<Snapshot>(), Err(NoSnapshot), "{wrong}");
        }
    }
}
