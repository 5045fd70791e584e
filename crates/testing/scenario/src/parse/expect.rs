//! Parses the right side of `=>`: status, fields, content and the parameters of `Cache-Status`.
//!
//! The tests of fields and content are also used in the conditions of an origin's rule and after `origin last`.
//! A word that is not a parameter of RFC 9211 is a reason in `detail`.

use super::LineError;
use super::words::{content, field, first, is_token, number, split_at, split_fields};
use crate::blanks;
use crate::story::{
    BodyTest, CacheTest, Comparison, ContentEnd, Expectation, FieldTest, StatusTest,
};

/// The parameters of `Cache-Status` (RFC 9211 section 2); any other word is a reason in `detail`.
const PARAMETERS: [&str; 8] =
    ["hit", "fwd", "fwd-status", "ttl", "stored", "collapsed", "key", "detail"];

/// `STATUS [closed] [cut] [interim] [decoded] [fields] [| content] [; cache status]`
pub(super) fn parse(text: &str) -> Result<Expectation, LineError> {
    let (front, cache) = split_at(text, ";")?;
    let (head, body) = split_at(front, "|")?;
    let (word, mut rest) = first(head);
    let (word, or_cut) = match word.strip_suffix("|cut") {
        Some(word) => (word, true),
        None => (word, false),
    };
    let status = status(word)?;
    let mut words = [("closed", false), ("cut", false), ("interim", false), ("decoded", false)];
    loop {
        let (word, after) = first(rest);
        let Some(found) = words.iter_mut().find(|(name, _)| *name == word) else { break };
        found.1 = true;
        rest = after;
    }
    Ok(Expectation {
        status,
        closed: words[0].1,
        end: match (words[1].1, or_cut) {
            (_, true) => ContentEnd::CutOrStatus,
            (true, false) => ContentEnd::Cut,
            (false, false) => ContentEnd::Whole,
        },
        interim: words[2].1,
        decoded: words[3].1,
        fields: fields(rest)?,
        body: body.map(body_test).transpose()?,
        cache: cache.map_or(Ok(Vec::new()), cache_tests)?,
    })
}

fn status(word: &str) -> Result<StatusTest, LineError> {
    let wrong = || ("a status: 200, 502|504, 502|cut, 5xx, * or none", word.to_owned());
    match word {
        "*" => return Ok(StatusTest::Any),
        "none" => return Ok(StatusTest::NoAnswer),
        _ => {}
    }
    if let Some(class) = word.strip_suffix("xx") {
        return class.parse().map(StatusTest::Class).map_err(|_| wrong());
    }
    let codes: Result<Vec<u16>, _> = word.split('|').map(str::parse).collect();
    match codes {
        Ok(codes) if codes.iter().all(|code| (100..1000).contains(code)) => {
            Ok(StatusTest::OneOf(codes))
        }
        _ => Err(wrong()),
    }
}

/// Parses tests of fields, separated by two spaces.
pub(super) fn fields(text: &str) -> Result<Vec<FieldTest>, LineError> {
    split_fields(text)?.into_iter().map(field_test).collect()
}

/// `name: value`, `name: {$kept}`, `name~part`, `name` or `!name`.
fn field_test(piece: &str) -> Result<FieldTest, LineError> {
    let expected = "name: value, name~part, name or !name";
    let colon = piece.find(':').unwrap_or(piece.len());
    if let Some((name, part)) = piece[..colon].split_once('~') {
        let part = format!("{part}{}", &piece[colon..]);
        if !is_token(name) || part.is_empty() {
            return Err((expected, piece.to_owned()));
        }
        return Ok(FieldTest::Contains(name.to_ascii_lowercase(), content(part.trim())?));
    }
    if colon == piece.len() {
        let (absent, name) = match piece.strip_prefix('!') {
            Some(name) => (true, name),
            None => (false, piece),
        };
        if !is_token(name) {
            return Err((expected, piece.to_owned()));
        }
        let name = name.to_ascii_lowercase();
        return Ok(if absent { FieldTest::Absent(name) } else { FieldTest::Present(name) });
    }
    let (name, value) = field(piece)?;
    let whole = std::str::from_utf8(&value.0).ok().and_then(blanks::kept_name);
    Ok(match whole {
        Some(kept) => FieldTest::Keep(name, kept.to_owned()),
        None => FieldTest::Is(name, value),
    })
}

/// Content: exact, `~part` or `!~part`.
pub(super) fn body_test(text: &str) -> Result<BodyTest, LineError> {
    if let Some(part) = text.strip_prefix("!~") {
        return Ok(BodyTest::Lacks(content(part.trim())?));
    }
    match text.strip_prefix('~') {
        Some(part) => Ok(BodyTest::Contains(content(part.trim())?)),
        None => Ok(BodyTest::Is(content(text)?)),
    }
}

fn cache_tests(text: &str) -> Result<Vec<CacheTest>, LineError> {
    text.split_whitespace().map(cache_test).collect()
}

/// `hit`, `!stored`, `fwd=stale`, `ttl>=5`, `key~/a`, or the name of a reason: `set-cookie`.
fn cache_test(word: &str) -> Result<CacheTest, LineError> {
    let known = |name: &str| {
        if PARAMETERS.contains(&name) {
            Ok(name.to_owned())
        } else {
            Err(("a parameter of Cache-Status", word.to_owned()))
        }
    };
    let orders = [(">=", Comparison::AtLeast), ("<=", Comparison::AtMost)];
    for (sign, comparison) in orders {
        if let Some((name, value)) = word.split_once(sign) {
            return Ok(CacheTest::Number(known(name)?, comparison, number(value)?));
        }
    }
    if let Some((name, part)) = word.split_once('~') {
        return Ok(CacheTest::Contains(known(name)?, part.to_owned()));
    }
    match word.split_once('=') {
        Some(("ttl", value)) => {
            Ok(CacheTest::Number("ttl".into(), Comparison::Equal, number(value)?))
        }
        Some((name, value)) if !value.is_empty() => {
            Ok(CacheTest::Is(known(name)?, value.to_owned()))
        }
        Some(_) => Err(("a value", word.to_owned())),
        None => match (word.strip_prefix('!'), known(word)) {
            (Some(name), _) if known(name).is_ok() => Ok(CacheTest::Lacks(name.to_owned())),
            (Some(reason), _) if is_token(reason) => Ok(CacheTest::NotReason(reason.to_owned())),
            (None, Ok(name)) => Ok(CacheTest::Has(name)),
            (None, Err(_)) if is_token(word) => Ok(CacheTest::Is("detail".into(), word.into())),
            _ => Err(("a parameter of Cache-Status or a reason", word.to_owned())),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::story::Text;

    fn text(value: &str) -> Text {
        Text(value.as_bytes().to_vec())
    }

    #[test]
    fn a_full_expectation_is_read() {
        let read = parse(r#"200 closed  etag: "1"  !age  vary~accept  date | one ; hit ttl=10"#);
        let expect = read.unwrap();
        assert_eq!(expect.status, StatusTest::OneOf(vec![200]));
        assert!(expect.closed && expect.end == ContentEnd::Whole);
        assert_eq!(parse("502|cut").unwrap().end, ContentEnd::CutOrStatus);
        assert_eq!(parse("200 cut").unwrap().end, ContentEnd::Cut);
        assert_eq!(
            expect.fields,
            [
                FieldTest::Is("etag".into(), text("\"1\"")),
                FieldTest::Absent("age".into()),
                FieldTest::Contains("vary".into(), text("accept")),
                FieldTest::Present("date".into()),
            ]
        );
        assert_eq!(expect.body, Some(BodyTest::Is(text("one"))));
        assert_eq!(
            expect.cache,
            [
                CacheTest::Has("hit".into()),
                CacheTest::Number("ttl".into(), Comparison::Equal, 10.0)
            ]
        );
    }

    #[test]
    fn statuses_are_one_several_a_class_any_or_none() {
        assert_eq!(status("502|504").unwrap(), StatusTest::OneOf(vec![502, 504]));
        assert_eq!(status("5xx").unwrap(), StatusTest::Class(5));
        assert_eq!(status("*").unwrap(), StatusTest::Any);
        assert_eq!(status("none").unwrap(), StatusTest::NoAnswer);
        assert!(status("ok").is_err());
    }

    #[test]
    fn a_bare_word_is_a_parameter_or_a_reason() {
        assert_eq!(cache_test("!hit").unwrap(), CacheTest::Lacks("hit".into()));
        assert_eq!(
            cache_test("set-cookie").unwrap(),
            CacheTest::Is("detail".into(), "set-cookie".into())
        );
        assert_eq!(
            cache_test("ttl<=9").unwrap(),
            CacheTest::Number("ttl".into(), Comparison::AtMost, 9.0)
        );
        assert!(cache_test("hits=1").is_err());
    }

    #[test]
    fn a_part_may_hold_a_colon() {
        let read = field_test("location~http://x/").unwrap();
        assert_eq!(read, FieldTest::Contains("location".into(), text("http://x/")));
    }
}
