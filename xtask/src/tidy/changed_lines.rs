//! Which lines a branch has changed: so that a fault of the ratchet can point at the new places.
//!
//! Asks git for the difference to the commit at which the branch left `main` (`origin/main` where there is
//! one), uncommitted changes included. Where git cannot say, no line counts as changed: the fault then names
//! the command that lists all places.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;
use std::process::Command;

/// The lines that were added or changed, by file.
#[derive(Debug, Default)]
pub struct ChangedLines {
    lines: HashMap<String, Vec<Range<usize>>>,
}

impl ChangedLines {
    /// The change of the working tree at `root` since it left `main`.
    pub fn since_main(root: &Path) -> ChangedLines {
        let base = ["origin/main", "main"]
            .iter()
            .find_map(|branch| git(root, &["merge-base", "HEAD", branch]))
            .unwrap_or_else(|| "HEAD".to_owned());
        let diff = git(root, &["diff", "--unified=0", "--no-color", "--no-ext-diff", base.trim()]);
        diff.map(|diff| ChangedLines::read(&diff)).unwrap_or_default()
    }

    /// Reads a difference as `git diff --unified=0` prints it.
    pub fn read(diff: &str) -> ChangedLines {
        let mut change = ChangedLines::default();
        let mut path = String::new();
        for line in diff.lines() {
            if let Some(name) = line.strip_prefix("+++ ") {
                name.strip_prefix("b/").unwrap_or(name).clone_into(&mut path);
            } else if let Some(range) = line.strip_prefix("@@ ").and_then(added) {
                change.lines.entry(path.clone()).or_default().push(range);
            }
        }
        change
    }

    /// Whether this line of this file was changed.
    pub fn has(&self, path: &str, line: usize) -> bool {
        let ranges = self.lines.get(path);
        ranges.is_some_and(|ranges| ranges.iter().any(|range| range.contains(&line)))
    }
}

/// The added lines of a hunk: `-12,0 +13,2 @@`.
fn added(hunk: &str) -> Option<Range<usize>> {
    let after = hunk.split(' ').find_map(|word| word.strip_prefix('+'))?;
    let (first, count) = after.split_once(',').unwrap_or((after, "1"));
    let first = first.parse().ok()?;
    Some(first..first + count.parse::<usize>().ok()?)
}

fn git(root: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").current_dir(root).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn added_lines_are_read() {
        let diff = "--- a/x.rs\n+++ b/x.rs\n@@ -1,2 +1 @@ fn x() {\n-a\n-b\n+c\n@@ -9,0 +9,2 @@\n+d\n+e\n\
                    --- a/y.rs\n+++ /dev/null\n@@ -1 +0,0 @@\n-f\n";
        let change = ChangedLines::read(diff);
        let changed: Vec<usize> = (0..20).filter(|line| change.has("x.rs", *line)).collect();
        assert_eq!(changed, [1, 9, 10]);
        assert!(!change.has("y.rs", 1));
    }
}
