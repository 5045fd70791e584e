//! Other names of all reasons for a whole process, so that a test can show that nothing depends on a name: no code
//! compares names, and a log, a header or an explanation only shows them. It exists only with the feature
//! `names-by-choice`, which no release has.

use super::Reason;
use std::sync::OnceLock;

static NAMES: OnceLock<Vec<String>> = OnceLock::new();

/// From now on, the name of each reason begins with `prefix`. The first call counts. For tests only.
pub fn rename_all(prefix: &str) {
    NAMES.get_or_init(|| Reason::ALL.iter().map(|one| format!("{prefix}{}", one.name())).collect());
}

/// Returns the other name of a reason, if it has one.
pub(crate) fn of(reason: Reason) -> Option<&'static str> {
    NAMES.get().map(|names| names[reason as usize].as_str())
}
