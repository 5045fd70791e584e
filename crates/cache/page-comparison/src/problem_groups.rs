//! The problems of a report in groups, one for all paths with the same class, cause and kind of place, and as text.
//!
//! Where paths are slugs, each page has a pattern of its own, and one link of a theme is a problem of each. The entries are
//! bounded; the JSON of the report has a line for each pattern, with the number of its group.

use crate::class::DifferenceClass;
use crate::report::{PossibleSaving, ReportLine, shown_count, shown_time};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

/// Entries that are shown.
const GROUPS_MAX: usize = 40;
/// Paths that an entry or a list names.
pub(crate) const PATHS_MAX: usize = 5;

/// The facts that the problems of one group share, beside their paths.
type GroupKey = (DifferenceClass, bool, String, Vec<String>);

/// Numbers the groups of the problems, from 1. A group stands where its first problem stands.
pub(crate) fn number_groups(lines: &mut [ReportLine]) {
    let mut known: HashMap<GroupKey, usize> = HashMap::new();
    for line in lines {
        let next = known.len() + 1;
        line.group = *known.entry(key(line)).or_insert(next);
    }
}

/// Problems with one cause, in the order of the report.
pub(crate) struct ProblemGroup<'a>(Vec<&'a ReportLine>);

/// The problems in groups, by their numbers.
pub(crate) fn groups(lines: &[ReportLine]) -> Vec<ProblemGroup<'_>> {
    let mut groups: BTreeMap<usize, Vec<&ReportLine>> = BTreeMap::new();
    for line in lines {
        groups.entry(line.group).or_default().push(line);
    }
    groups.into_values().map(ProblemGroup).collect()
}

fn key(line: &ReportLine) -> GroupKey {
    let cause = line.cause.clone().unwrap_or_default();
    let has_time = matches!(line.class, DifferenceClass::Aged | DifferenceClass::Late);
    let cause = if has_time { without_numbers(&cause) } else { cause };
    let element = |place: &String| without_numbers(place.split(", word").next().unwrap_or(place));
    let mut places: Vec<String> = line.places.iter().map(element).collect();
    places.sort();
    places.dedup();
    (line.class, line.is_accepted, cause, places)
}

/// A text without digits, and without the colon before the number of an element.
fn without_numbers(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_ascii_digit() && *letter != ':').collect()
}

/// Writes the entries, with a heading for problems, notices and each class.
pub(crate) fn write_groups(text: &mut String, lines: &[ReportLine]) {
    let groups = groups(lines);
    let (mut is_notice, mut class) = (None, None);
    for group in groups.iter().take(GROUPS_MAX) {
        let Some(first) = group.0.first() else { continue };
        if is_notice != Some(first.is_notice) {
            is_notice = Some(first.is_notice);
            let heading = if first.is_notice { "Notices" } else { "Problems" };
            let _ = writeln!(text, "\n{heading}");
        }
        if class != Some(first.class) {
            let _ = writeln!(text, "\n{}: {}", first.class.name(), first.class.meaning());
            class = Some(first.class);
        }
        group.write(first, text);
    }
    if let Some(more) = groups.len().checked_sub(GROUPS_MAX + 1) {
        let _ = writeln!(text, "\nFurther entries: {}. `pagewell trial --json` has all.", more + 1);
    }
}

impl ProblemGroup<'_> {
    /// Whether the site is not safe because of it.
    pub(crate) fn is_unsafe(&self) -> bool {
        self.0.iter().any(|line| line.class.is_wrong() && !line.is_accepted)
    }

    fn write(&self, first: &ReportLine, text: &mut String) {
        let accepted = if first.is_accepted { ", accepted" } else { "" };
        let found = match self.0.iter().map(|line| line.count).sum::<u64>() {
            1 => "once".to_owned(),
            count => format!("{} times", shown_count(count)),
        };
        let patterns = self.0.iter().map(|line| line.pattern.as_str());
        let paths = match self.0.len() {
            1 => first.pattern.clone(),
            count => format!("{count} paths: {}", some_of(patterns)),
        };
        let _ = writeln!(text, "  {paths} (found {found}{accepted}), for example {}", first.url);
        if !first.places.is_empty() {
            let _ = writeln!(text, "    differs at: {}", shown_places(&first.places));
        }
        let words = self.0.iter().find_map(|line| line.text.as_ref());
        let words = words.map(|words| [("stored:  ", &words.stored), ("rendered:", &words.render)]);
        for (name, words) in words.into_iter().flatten() {
            if let Some(words) = words {
                let _ = writeln!(text, "    {name}   {words}");
            }
        }
        self.write_evidence(text);
        // The heading is the cause of some classes.
        if let Some(cause) = first.cause.as_ref().filter(|cause| **cause != first.class.meaning()) {
            let _ = writeln!(text, "    cause:      {cause}");
        }
        if let Some(percent) = self.0.iter().find_map(|line| line.chance_percent) {
            let why = "because text of such a page is also drawn at random";
            let _ = writeln!(text, "    by chance:  in at most {percent} % of comparisons, {why}");
        }
        if !first.is_accepted {
            let each = self.0.len() > 1 && first.remedy.contains("trial.accept");
            let each = if each { " (a line for each path)" } else { "" };
            let _ = writeln!(text, "    remedy:     {}{each}", first.remedy);
        }
    }

    /// The time that could be saved, and the visitors on whom this advice rests.
    fn write_evidence(&self, text: &mut String) {
        let savings: Vec<PossibleSaving> =
            self.0.iter().filter_map(|line| line.could_save).collect();
        if !savings.is_empty() {
            let seconds = shown_time(savings.iter().map(|saving| saving.seconds).sum());
            let answers = shown_count(savings.iter().map(|saving| saving.answers).sum());
            let _ = writeln!(text, "    PHP time:   {seconds} for {answers} answers, at least");
        }
        let fewest = self.0.iter().filter_map(|line| line.visitors);
        if let Some(visitors) = fewest.min_by_key(|visitors| visitors.clients) {
            let each = if self.0.len() > 1 { " of each path, at least" } else { "" };
            let _ = writeln!(text, "    rests on:   {}{each}", visitors.text());
        }
    }
}

/// Some of these names, and how many more there are.
pub(crate) fn some_of<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    let shown = names[..names.len().min(PATHS_MAX)].join(", ");
    match names.len().checked_sub(PATHS_MAX + 1) {
        Some(more) => format!("{shown} and {} more", more + 1),
        None => shown,
    }
}

/// The places, with the words of one element together: `body > p, words 3, 4; body > div`.
fn shown_places(places: &[String]) -> String {
    let mut shown: Vec<(&str, Vec<&str>)> = Vec::new();
    for place in places {
        let (element, word) = match place.split_once(", word ") {
            Some((element, word)) => (element, Some(word)),
            None => (place.as_str(), None),
        };
        match shown.last_mut() {
            Some((last, words)) if *last == element && !words.is_empty() => words.extend(word),
            _ => shown.push((element, word.into_iter().collect())),
        }
    }
    let text = |(element, words): &(&str, Vec<&str>)| match words.len() {
        0 => (*element).to_owned(),
        1 => format!("{element}, word {}", words[0]),
        _ => format!("{element}, words {}", words.join(", ")),
    };
    shown.iter().map(text).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(class: DifferenceClass, pattern: &str, cause: &str, place: &str) -> ReportLine {
        ReportLine {
            url: pattern.into(),
            class,
            pattern: pattern.into(),
            count: 2,
            places: vec![place.into()],
            cause: Some(cause.into()),
            chance_percent: None,
            remedy: format!("`trial.accept = [\"{} {pattern}\"]`", class.name()),
            group: 0,
            is_notice: !class.is_wrong(),
            is_accepted: false,
            could_save: None,
            visitors: None,
            text: None,
            cookies: Vec::new(),
        }
    }

    #[test]
    fn one_cause_at_one_place_is_one_entry_however_many_paths_have_it() {
        let (loses, utm) = (DifferenceClass::Loses, "differs by parameter `utm_source`");
        let mut lines: Vec<ReportLine> = (1..=7)
            .map(|n| line(loses, &format!("/post-{n}/"), utm, &format!("body > a:{n}, word {n}")))
            .collect();
        lines.push(line(loses, "/other/", "differs by field `referer`", "body > a:2, word 1"));
        lines.push(line(loses, "/third/", utm, "body > p, word 1"));
        number_groups(&mut lines);
        let numbers: Vec<usize> = lines.iter().map(|line| line.group).collect();
        assert_eq!(numbers, [1, 1, 1, 1, 1, 1, 1, 2, 3]);
        let mut text = String::new();
        write_groups(&mut text, &lines);
        assert_eq!(text.matches("for example").count(), 3, "{text}");
        for part in [
            "  7 paths: /post-1/, /post-2/, /post-3/, /post-4/, /post-5/ and 2 more (found 14 times), for example",
            "[\"loses /post-1/\"]` (a line for each path)\n",
            "  /other/ (found 2 times), for example /other/\n",
            "[\"loses /other/\"]`\n",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        lines[1].is_accepted = true;
        number_groups(&mut lines);
        assert_eq!(groups(&lines).len(), 4, "an accepted one stands alone");
    }

    #[test]
    fn pages_with_other_lifetimes_are_out_of_date_for_one_cause() {
        let aged = |seconds: u32| {
            let cause = format!("stored for {seconds} s, and no change ends it");
            line(DifferenceClass::Aged, &format!("/{seconds}"), &cause, "body > p, word 1")
        };
        let mut lines = [aged(60), aged(86_400)];
        number_groups(&mut lines);
        assert_eq!(lines.map(|line| line.group), [1, 1]);
    }

    #[test]
    fn the_number_of_entries_is_bounded_and_said() {
        let causes = (0..GROUPS_MAX + 3).map(|n| format!("differs by cookie `c{n}`"));
        let mut lines: Vec<ReportLine> =
            causes.map(|cause| line(DifferenceClass::Leak, "/a", &cause, "p")).collect();
        number_groups(&mut lines);
        let mut text = String::new();
        write_groups(&mut text, &lines);
        assert_eq!(text.matches("for example").count(), GROUPS_MAX);
        assert!(
            text.ends_with("\nFurther entries: 3. `pagewell trial --json` has all.\n"),
            "{text}"
        );
        let mut text = String::new();
        write_groups(&mut text, &lines[..GROUPS_MAX]);
        assert!(!text.contains("Further entries"), "{text}");
        assert!(groups(&lines).iter().all(ProblemGroup::is_unsafe));
    }

    #[test]
    fn the_words_of_one_element_are_named_together() {
        let places =
            ["body > p, word 3", "body > p, word 4", "body > div[class]", "body > p, word 1"];
        let shown = shown_places(&places.map(str::to_owned));
        assert_eq!(shown, "body > p, words 3, 4; body > div[class]; body > p, word 1");
    }
}
