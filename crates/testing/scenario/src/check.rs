//! Compares an answer with the expectation of the scenario.
//!
//! Each difference is reported separately, so that one run shows all of them. Nothing here reads a socket or
//! has side effects: values to save are returned.

use crate::blanks::{self, Blanks};
use crate::cache_status::CacheStatus;
use crate::codings;
use crate::failure::Mismatch;
use crate::story::{BodyTest, Comparison, ContentEnd, Expectation, FieldTest, StatusTest, Text};
use crate::transcript::shorten;
use harness::Response;
use harness::wire::{MessageFields, joined};

/// The maximum number of characters shown of a value.
const SHOWN: usize = 200;

/// A value to save: its name and its bytes.
pub(crate) type SavedValue = (String, Vec<u8>);

/// Checks an answer. Returns the differences, or the values to save if there are none. `slack_seconds`: see
/// [`crate::Subject::clock_slack`].
pub(crate) fn response(
    expect: &Expectation,
    response: &Response,
    blanks: &Blanks,
    slack_seconds: u64,
) -> Result<Vec<SavedValue>, Vec<Mismatch>> {
    let mut wrong = Vec::new();
    let mut kept = Vec::new();
    if expect.end == ContentEnd::CutOrStatus && !response.complete {
        return Ok(kept);
    }
    wrong.extend(status(&expect.status, Some(response.status)).err());
    if expect.interim && response.interim.is_empty() {
        wrong.push(Mismatch::new("an interim response", "none"));
    }
    let cut_wanted = expect.end == ContentEnd::Cut;
    if response.complete == cut_wanted {
        let words = ["content to its announced end", "content that is cut off"];
        let [expected, got] = if cut_wanted { [words[1], words[0]] } else { words };
        wrong.push(Mismatch::new(expected, format!("{got} ({} bytes)", response.content.len())));
    }
    for test in &expect.fields {
        match field(test, &response.headers, blanks) {
            Err(_) if age_within(test, &response.headers, blanks, slack_seconds) => {}
            Ok(keep) => kept.extend(keep),
            Err(error) => wrong.push(error),
        }
    }
    let decoded = if expect.decoded {
        decoded(response).map_err(|why| wrong.push(why)).unwrap_or_default()
    } else {
        response.content.clone()
    };
    wrong.extend(expect.body.as_ref().and_then(|t| body(t, &decoded, blanks).err()));
    let status = CacheStatus::read(response);
    wrong.extend(expect.cache.iter().filter_map(|test| status.judge(test, slack_seconds).err()));
    if wrong.is_empty() { Ok(kept) } else { Err(wrong) }
}

/// The content, decoded according to its `Content-Encoding`.
fn decoded(response: &Response) -> Result<Vec<u8>, Mismatch> {
    let named = response.field("content-encoding").unwrap_or_default();
    codings::decode(&named, &response.content)
        .map_err(|why| Mismatch::new(format!("content in {}", shorten(&named, SHOWN)), why))
}

/// Checks a status; `None` is a connection that ended without an answer.
pub(crate) fn status(test: &StatusTest, got: Option<u16>) -> Result<(), Mismatch> {
    let (fits, expected) = match test {
        StatusTest::OneOf(codes) => {
            let words: Vec<_> = codes.iter().map(u16::to_string).collect();
            (got.is_some_and(|code| codes.contains(&code)), words.join(" or "))
        }
        StatusTest::Class(class) => {
            (got.is_some_and(|code| code / 100 == *class), format!("{class}xx"))
        }
        StatusTest::Any => (got.is_some(), "any status".into()),
        StatusTest::NoAnswer => (got.is_none(), "no answer".into()),
    };
    let got = got.map_or("no answer".into(), |code| format!("status {code}"));
    if fits { Ok(()) } else { Err(Mismatch::new(format!("status {expected}"), got)) }
}

/// Checks a field. Returns the value to save, if the test has a name for it. A name that was saved before must
/// have the same value again.
pub(crate) fn field(
    test: &FieldTest,
    fields: &MessageFields,
    blanks: &Blanks,
) -> Result<Option<SavedValue>, Mismatch> {
    let fill = |text: &Text| {
        blanks::fill(&text.0, blanks)
            .map_err(|why| Mismatch::new("text that can be filled in", why))
    };
    let got = |name: &str| match joined(fields, name) {
        Some(value) => format!("{name}: {}", shorten(&value, SHOWN)),
        None => format!("no {name}"),
    };
    let (fits, name, expected) = match test {
        FieldTest::Present(name) => (joined(fields, name).is_some(), name, name.clone()),
        FieldTest::Absent(name) => (joined(fields, name).is_none(), name, format!("no {name}")),
        FieldTest::Is(name, value) => {
            let value = fill(value)?;
            let line = fields.iter().any(|(n, v)| n == name && *v == value);
            let fits = line || joined(fields, name).is_some_and(|all| all == value);
            (fits, name, format!("{name}: {}", shorten(&value, SHOWN)))
        }
        FieldTest::Contains(name, part) => {
            let part = fill(part)?;
            let fits = joined(fields, name).is_some_and(|all| contains(&all, &part));
            (fits, name, format!("{name} with {}", shorten(&part, SHOWN)))
        }
        FieldTest::Keep(name, kept) => {
            let value = joined(fields, name);
            match (value, blanks.kept.get(kept)) {
                (Some(value), None) => return Ok(Some((kept.clone(), value))),
                (value, Some(before)) => {
                    let expected = format!("{name}: {}", shorten(before, SHOWN));
                    (value.as_ref() == Some(before), name, expected)
                }
                (None, None) => (false, name, name.clone()),
            }
        }
    };
    if fits { Ok(None) } else { Err(Mismatch::new(expected, got(name))) }
}

/// Whether the test concerns `Age`, and the value is higher by no more than the slack.
fn age_within(
    test: &FieldTest,
    fields: &MessageFields,
    blanks: &Blanks,
    slack_seconds: u64,
) -> bool {
    let FieldTest::Is(name, value) = test else { return false };
    let number = |bytes: &[u8]| String::from_utf8_lossy(bytes).parse::<u64>().ok();
    let wanted = blanks::fill(&value.0, blanks).ok().and_then(|value| number(&value));
    let got = joined(fields, "age").and_then(|value| number(&value));
    match (name.as_str(), wanted, got) {
        ("age", Some(wanted), Some(got)) => {
            (wanted..=wanted.saturating_add(slack_seconds)).contains(&got)
        }
        _ => false,
    }
}

/// Checks content.
pub(crate) fn body(test: &BodyTest, got: &[u8], blanks: &Blanks) -> Result<(), Mismatch> {
    let (text, what) = match test {
        BodyTest::Is(text) => (text, ""),
        BodyTest::Contains(text) => (text, "with "),
        BodyTest::Lacks(text) => (text, "without "),
    };
    let wanted = blanks::fill(&text.0, blanks)
        .map_err(|why| Mismatch::new("text that can be filled in", why))?;
    let fits = match test {
        BodyTest::Is(_) => got == wanted,
        BodyTest::Contains(_) => contains(got, &wanted),
        BodyTest::Lacks(_) => !contains(got, &wanted),
    };
    if fits {
        Ok(())
    } else {
        Err(Mismatch::new(
            format!("content {what}| {}", shorten(&wanted, SHOWN)),
            format!("content | {}", shorten(got, SHOWN)),
        ))
    }
}

fn contains(all: &[u8], part: &[u8]) -> bool {
    part.is_empty() || all.windows(part.len()).any(|window| window == part)
}

/// Whether `got` and `wanted` satisfy the comparison; `got` may be lower by up to `slack`.
pub(crate) fn compares(comparison: Comparison, got: f64, wanted: f64, slack: f64) -> bool {
    match comparison {
        Comparison::Equal => (wanted - slack..=wanted).contains(&got),
        Comparison::AtLeast => got >= wanted - slack,
        Comparison::AtMost => got <= wanted,
    }
}

/// A comparison as written in a scenario.
pub(crate) fn sign(comparison: Comparison) -> &'static str {
    match comparison {
        Comparison::Equal => "=",
        Comparison::AtLeast => ">=",
        Comparison::AtMost => "<=",
    }
}
