//! The memory of the machine or of its control groups, and the page budget for it.
//!
//! The default of Pagewell is a quarter of the memory. On a small machine less is better, because PHP and the
//! database use most of it (the guide to small machines).

use crate::machine::ExaminedMachine;

const MEGABYTE: u64 = 1 << 20;

/// The memory in bytes that processes of this machine may use: of the machine, or less if control groups limit it.
#[must_use]
pub fn memory_bytes(machine: &ExaminedMachine) -> Option<u64> {
    process_limits::memory_bytes(|path| machine.text_or_none(path))
}

/// The page budget in megabytes: a quarter of the memory, or an eighth of less than one gigabyte, because PHP
/// and the database need it more.
#[must_use]
pub fn page_budget(bytes: u64) -> u64 {
    let part = if bytes < 1_000 * MEGABYTE { bytes / 8 } else { bytes / 4 } / MEGABYTE;
    (part / 16 * 16).max(16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_leaves_room() {
        for (megabytes, budget) in [(100, 16), (256, 32), (512, 64), (2048, 512), (8000, 2000)] {
            assert_eq!(page_budget(megabytes * MEGABYTE), budget, "{megabytes}");
        }
    }
}
