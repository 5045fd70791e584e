//! Parses a file into a [`Story`]: head lines, `origin` blocks, steps; and checks the scenario as a whole
//! (every released hold exists, every answer is collected).
//!
//! The parser is strict: an unknown line is an error and never skipped. A scenario that checks less than it
//! seems to is worse than none. The grammar is in `README.md`.

mod expect;
mod rule;
mod step;
mod words;

use crate::story::{Action, Step, Story};
use std::collections::HashSet;

/// A line that does not belong to the language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The line number, counted from 1.
    pub line: usize,
    /// The text of the line.
    pub text: String,
    /// The syntax that was expected.
    pub expected: &'static str,
    /// The description of the error.
    pub got: String,
}

impl std::fmt::Display for ParseError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ParseError { line, text, expected, got } = self;
        write!(f, "line {line}: {}\n  expected  {expected}\n  got       {got}", text.trim())
    }
}

impl std::error::Error for ParseError {}

/// An error within a line: the expected and the actual text.
type LineError = (&'static str, String);

/// Parses a scenario; `name` is its path, for messages.
///
/// # Errors
/// The first line that is invalid, or that refers to something missing in the scenario.
pub fn parse_story(name: &str, text: &str) -> Result<Story, ParseError> {
    let mut story = Story { name: name.to_owned(), ..Story::default() };
    let mut in_block = false;
    for (index, line) in text.lines().enumerate() {
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with('#') {
            continue;
        }
        let indented = line.starts_with([' ', '\t']);
        let read = match (indented, in_block) {
            (true, true) => rule_line(&mut story, index + 1, trimmed),
            (true, false) => Err(("an unindented line", "indented lines outside a block".into())),
            (false, _) => {
                in_block = trimmed == "origin";
                top_line(&mut story, index + 1, trimmed)
            }
        };
        read.map_err(|(expected, got)| ParseError {
            line: index + 1,
            text: line.to_owned(),
            expected,
            got,
        })?;
    }
    check_whole(&story)?;
    Ok(story)
}

/// Parses an indented line of an `origin` block.
fn rule_line(story: &mut Story, line: usize, text: &str) -> Result<(), LineError> {
    let rule = rule::parse(line, text)?;
    match story.steps.last_mut().map(|step| &mut step.action) {
        Some(Action::Rules(rules)) => rules.push(rule),
        _ => return Err(("an origin block", "a rule outside it".into())),
    }
    Ok(())
}

/// Parses a line that is not indented.
fn top_line(story: &mut Story, line: usize, text: &str) -> Result<(), LineError> {
    let (word, rest) = words::first(text);
    let before = |what: &'static str| {
        if story.steps.is_empty() {
            Ok(())
        } else {
            Err((what, "it stands after the first step".to_owned()))
        }
    };
    match word {
        "title" => story.title = rest.to_owned(),
        "spec" => story.spec.extend(rest.split_whitespace().map(str::to_owned)),
        "pending" if rest.is_empty() => return Err(("a reason", "none".into())),
        "pending" => story.pending = Some(rest.to_owned()),
        "config" => {
            before("configuration before the first step")?;
            let toml = rest.strip_prefix('|').ok_or(("config | TOML", rest.to_owned()))?;
            story.config.push(toml.strip_prefix(' ').unwrap_or(toml).to_owned());
        }
        "flags" => {
            before("flags before the first step")?;
            story.flags.extend(rest.split_whitespace().map(str::to_owned));
        }
        _ => {
            let action = match text {
                "origin" => Action::Rules(Vec::new()),
                _ => step::parse(text)?,
            };
            story.steps.push(Step { line, text: text.to_owned(), action });
        }
    }
    Ok(())
}

/// Checks the scenario as a whole.
fn check_whole(story: &Story) -> Result<(), ParseError> {
    let at = |step: &Step, expected, got: String| ParseError {
        line: step.line,
        text: step.text.clone(),
        expected,
        got,
    };
    let whole = |expected, got: &str| ParseError {
        line: 1,
        text: story.name.clone(),
        expected,
        got: got.to_owned(),
    };
    if story.title.is_empty() {
        return Err(whole("a title", "none"));
    }
    if story.steps.iter().all(|step| matches!(step.action, Action::Rules(_))) {
        return Err(whole("a step that checks something", "none"));
    }
    let gates = gates(story);
    let mut waiting: HashSet<&str> = HashSet::new();
    for step in &story.steps {
        match &step.action {
            Action::AwaitHold { gate, .. } | Action::Release { gate }
                if !gates.contains(&**gate) =>
            {
                return Err(at(step, "a hold of some rule", format!("no rule holds {gate}")));
            }
            Action::Send { client, .. } if !waiting.insert(client) => {
                return Err(at(step, "a client without a request under way", client.clone()));
            }
            Action::Collect { client, .. } if !waiting.remove(&**client) => {
                return Err(at(step, "a client with a request under way (&)", client.clone()));
            }
            Action::Leave { client } => {
                waiting.remove(&**client);
            }
            Action::Finish { client } if !waiting.contains(&**client) => {
                return Err(at(step, "a client with a request under way (&)", client.clone()));
            }
            Action::Ask { client, .. } | Action::More { client, .. }
                if waiting.contains(&**client) =>
            {
                return Err(at(step, "a client without a request under way", client.clone()));
            }
            _ => {}
        }
    }
    match waiting.iter().next() {
        Some(client) => Err(whole(
            "an answer awaited (or the client gone) for each &",
            &format!("{client} is left waiting"),
        )),
        None => Ok(()),
    }
}

/// The names of all holds.
fn gates(story: &Story) -> HashSet<&str> {
    let rules = story.steps.iter().filter_map(|step| match &step.action {
        Action::Rules(rules) => Some(rules),
        _ => None,
    });
    let answers = rules.flatten().map(|rule| &rule.answer);
    answers.flat_map(|a| a.hold.iter().chain(&a.hold_body)).map(String::as_str).collect()
}
