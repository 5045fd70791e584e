//! The ratchet: numbers that may only fall, with their maximum in `xtask/tidy.toml`.
//!
//! | kind | number | without a line in `tidy.toml` |
//! |---|---|---|
//! | [`NumberKind::Longest`] | the longest of something | a fault |
//! | [`NumberKind::Count`] | how many places break a rule | a fault |
//! | [`NumberKind::Repeated`] | how many places declare one name | 1 is allowed |
//! | [`NumberKind::Circle`] | how many modules of a crate depend on each other | 3 are allowed |
//!
//! A number above its maximum is a fault. A number below it is only a note: `cargo xtask tidy --lower` writes
//! today's numbers into the file, and never raises one. `cargo xtask tidy --list NAME` shows all places of a
//! number; a fault shows those on the lines that were changed since the branch left `main`, and of a name all.

use super::changed_lines::ChangedLines;
use super::{Finding, RATCHET};

/// The section of `tidy.toml` with a line for each name that is declared more than once.
const REPEATED: &str = "[repeated_type_names]";

/// How a number comes about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NumberKind {
    /// The size of the largest of something; the first place is that one.
    Longest,
    /// How many places break a rule.
    Count,
    /// How many places declare the same name.
    Repeated,
    /// How many modules of a crate depend on each other in a circle.
    Circle,
}

/// A number that the ratchet keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RatchetNumber {
    /// The name of its line in `tidy.toml`.
    pub name: String,
    /// How the number comes about.
    pub kind: NumberKind,
    /// The maximum in `tidy.toml` need not fall below this.
    pub limit: usize,
    /// The number as it is now.
    pub value: usize,
    /// The places that it is counted from.
    pub places: Vec<Finding>,
}

impl RatchetNumber {
    /// A number of places that should be none.
    pub fn count(name: &str, places: Vec<Finding>) -> RatchetNumber {
        let (name, value) = (name.to_owned(), places.len());
        RatchetNumber { name, kind: NumberKind::Count, limit: 0, value, places }
    }

    fn allowed(&self, recorded: &str) -> Option<usize> {
        let has_default = matches!(self.kind, NumberKind::Repeated | NumberKind::Circle);
        let without = has_default.then_some(self.limit);
        record(recorded, &self.name).or(without)
    }
}

/// The numbers that are above their maximum; `change` is asked only if there are any.
pub fn faults(
    numbers: &[RatchetNumber],
    recorded: &str,
    change: impl Fn() -> ChangedLines,
) -> Vec<Finding> {
    let mut found = Vec::new();
    for number in numbers {
        let RatchetNumber { name, kind, value, places, .. } = number;
        let Some(allowed) = number.allowed(recorded) else {
            found.push(in_record(1, format!("there is no line `{name} = {value}`")));
            continue;
        };
        if *value <= allowed {
            continue;
        }
        if matches!(kind, NumberKind::Longest | NumberKind::Circle) {
            let longest = places.first().cloned();
            found.extend(longest.map(|place| {
                let message = format!("{} ({name} = {allowed})", place.message);
                Finding { message, ..place }
            }));
            continue;
        }
        let line = recorded.lines().position(|line| is_of(line, name)).unwrap_or_default() + 1;
        let what = format!("{name}: {value} places, at most {allowed}");
        let list = format!("cargo xtask tidy --list {name}");
        found.push(in_record(line, format!("{what}; all of them: {list}")));
        let (change, is_few) = (change(), *kind == NumberKind::Repeated);
        let is_shown = |place: &&Finding| is_few || change.has(&place.path, place.line);
        found.extend(places.iter().filter(is_shown).cloned());
    }
    found
}

fn in_record(line: usize, message: String) -> Finding {
    Finding { path: RATCHET.to_owned(), line, rule: "ratchet", message }
}

/// The numbers whose maximum can fall, as notes.
pub fn slack(numbers: &[RatchetNumber], recorded: &str) -> Vec<String> {
    let old = recorded.lines();
    let new = lowered(numbers, recorded);
    let differs = |line: &&str| !new.lines().any(|kept| kept == *line);
    let note = |line: &str| {
        let name = line.split('=').next().unwrap_or_default().trim();
        let now = record(&new, name).map_or("1".to_owned(), |value| value.to_string());
        format!("note: {line} can fall to {now}: cargo xtask tidy --lower")
    };
    old.filter(differs).map(note).collect()
}

/// The maximum of this name in the text of `tidy.toml`.
pub fn record(recorded: &str, name: &str) -> Option<usize> {
    let line = recorded.lines().find(|line| is_of(line, name))?;
    line.split_once('=')?.1.trim().parse().ok()
}

fn is_of(line: &str, name: &str) -> bool {
    line.split_once('=').is_some_and(|(found, _)| found.trim() == name)
}

/// The text of `tidy.toml` with every maximum lowered that can fall, and without the names that are unique now.
pub fn lowered(numbers: &[RatchetNumber], recorded: &str) -> String {
    let mut text = String::new();
    let mut in_repeated = false;
    for line in recorded.lines() {
        if line.starts_with('[') {
            in_repeated = line == REPEATED;
        }
        let name = line.split_once('=').map(|(name, _)| name.trim());
        let name = name.filter(|name| !name.starts_with('#'));
        let number = numbers.iter().find(|number| Some(number.name.as_str()) == name);
        match (number, name) {
            (Some(number), Some(name)) => {
                let allowed = record(line, name).unwrap_or(usize::MAX);
                let lowest = allowed.min(number.value.max(number.limit));
                text.push_str(&format!("{name} = {lowest}\n"));
            }
            (None, Some(_)) if in_repeated => {}
            _ => text.extend([line, "\n"]),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::files::SourceFile;
    use super::super::shape::lengths;
    use super::*;

    fn ratchet(numbers: &[RatchetNumber], recorded: &str) -> Vec<Finding> {
        faults(numbers, recorded, ChangedLines::default)
    }

    #[test]
    fn the_ratchet_only_falls() {
        let files = [SourceFile { path: "a.rs".into(), text: "x\n".repeat(300) }];
        let lengths = lengths(&files);
        let with = |lines| {
            format!(
                "rust_file_lines = {lines}\nrust_function_lines = 70\n\
                                    php_file_lines = 250\nphp_function_lines = 70\n"
            )
        };
        assert_eq!(ratchet(&lengths, &with(300)), []);
        assert!(ratchet(&lengths, &with(299))[0].message.contains("has 300 lines"));
        assert_eq!((ratchet(&lengths, &with(301)), slack(&lengths, &with(300))), (vec![], vec![]));
        assert!(slack(&lengths, &with(301))[0].contains("can fall to 300"));
        assert_eq!(lowered(&lengths, &with(301)), with(300));
        assert_eq!(lowered(&lengths, &with(299)), with(299));
        assert_eq!(ratchet(&lengths, "").len(), 4);
    }

    fn place(line: usize) -> Finding {
        Finding { path: "a.rs".into(), line, rule: "word", message: "`anew`: again".into() }
    }

    #[test]
    fn a_count_that_grew_shows_the_places_on_changed_lines() {
        let numbers = [RatchetNumber::count("words", vec![place(3), place(7)])];
        assert_eq!(ratchet(&numbers, "words = 2\n"), []);
        let change = || ChangedLines::read("+++ b/a.rs\n@@ -6,0 +7,1 @@\n+x\n");
        let found: Vec<(String, usize)> = faults(&numbers, "x = 1\nwords = 1\n", change)
            .into_iter()
            .map(|f| (f.path, f.line))
            .collect();
        assert_eq!(found, [(RATCHET.to_owned(), 2), ("a.rs".to_owned(), 7)]);
        assert_eq!(lowered(&numbers, "# words = 9\nwords = 5\n"), "# words = 9\nwords = 2\n");
    }

    #[test]
    fn a_name_that_is_unique_again_leaves_the_record() {
        let repeated = RatchetNumber {
            kind: NumberKind::Repeated,
            limit: 1,
            ..RatchetNumber::count("Answer", vec![place(1), place(2)])
        };
        assert_eq!(ratchet(std::slice::from_ref(&repeated), "").len(), 3);
        let recorded = format!("{REPEATED}\nAnswer = 3\nTarget = 2\n");
        assert_eq!(ratchet(std::slice::from_ref(&repeated), &recorded), []);
        let notes = slack(std::slice::from_ref(&repeated), &recorded);
        assert!(notes[0].contains("Answer = 3 can fall to 2"), "{notes:?}");
        assert!(notes[1].contains("Target = 2 can fall to 1"), "{notes:?}");
        assert_eq!(lowered(&[repeated], &recorded), format!("{REPEATED}\nAnswer = 2\n"));
    }
}
