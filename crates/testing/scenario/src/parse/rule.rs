//! Parses a line of an `origin` block: `METHOD PATH [conditions] -> [words] answer`.
//!
//! Contradictory words are rejected here, so that the origin can follow every rule.

use super::LineError;
use super::expect::fields;
use super::words::{content, field, first, is_token, quoted, split_at, split_fields};
use crate::story::{Answer, AnswerKind, Framing, RequestPattern, Rule, Text};

/// Parses a rule.
pub(super) fn parse(line: usize, text: &str) -> Result<Rule, LineError> {
    let (left, right) = split_at(text, "->")?;
    let right = right.ok_or(("METHOD PATH -> answer", text.to_owned()))?;
    let (which, rest) = which(left)?;
    Ok(Rule { line, which, conditions: fields(rest)?, answer: answer(right)? })
}

/// Parses `METHOD PATH`, and returns the rest.
pub(super) fn which(text: &str) -> Result<(RequestPattern, &str), LineError> {
    let (method, rest) = first(text);
    let (pattern, rest) = first(rest);
    let fits = is_token(method) && (pattern.starts_with(['/', '*']) || pattern.contains("://"));
    if !fits || method.contains(|c: char| c.is_ascii_lowercase()) {
        return Err(("METHOD PATH, such as GET /a or * /b*", text.to_owned()));
    }
    let method = (method != "*").then(|| method.to_owned());
    Ok((RequestPattern { method, pattern: pattern.to_owned() }, rest))
}

fn answer(text: &str) -> Result<Answer, LineError> {
    let mut answer = Answer {
        hold: None,
        hold_body: None,
        interim: false,
        framing: Framing::Length,
        trickle: false,
        encoded: false,
        cut: false,
        close: false,
        kind: AnswerKind::Refuse,
    };
    let mut rest = text;
    loop {
        let (word, after) = first(rest);
        rest = after;
        match word {
            "hold" | "hold-body" => {
                let (gate, after) = first(rest);
                if !is_token(gate) {
                    return Err(("the hold's name", text.to_owned()));
                }
                rest = after;
                let place = if word == "hold" { &mut answer.hold } else { &mut answer.hold_body };
                *place = Some(gate.to_owned());
            }
            "interim" => answer.interim = true,
            "chunked" => answer.framing = Framing::Chunked,
            "until-close" => answer.framing = Framing::UntilClose,
            "encoded" => answer.encoded = true,
            "trickle" => answer.trickle = true,
            "cut" => answer.cut = true,
            "close" => answer.close = true,
            "refuse" | "hang" if !rest.is_empty() => {
                return Err(("nothing after refuse or hang", rest.to_owned()));
            }
            "refuse" => return Ok(answer),
            "hang" => return Ok(Answer { kind: AnswerKind::Hang, ..answer }),
            "raw" => return Ok(Answer { kind: AnswerKind::Raw(quoted(rest)?), ..answer }),
            status => {
                let kind = response(status, rest)?;
                return checked(Answer { kind, ..answer });
            }
        }
    }
}

fn response(status: &str, rest: &str) -> Result<AnswerKind, LineError> {
    let wrong = ("a status, refuse, hang, raw \"…\" or a word before them", status.to_owned());
    let status = status.parse().ok().filter(|code| (200..1000).contains(code)).ok_or(wrong)?;
    let (head, body) = split_at(rest, "|")?;
    let fields: Result<_, _> = split_fields(head)?.into_iter().map(field).collect();
    let body = body.map_or(Ok(Text(Vec::new())), content)?;
    Ok(AnswerKind::Response { status, fields: fields?, body })
}

/// Rejects words that contradict each other.
fn checked(answer: Answer) -> Result<Answer, LineError> {
    let AnswerKind::Response { body, .. } = &answer.kind else { return Ok(answer) };
    if answer.cut && body.0.is_empty() {
        return Err(("content that can be cut", "none".into()));
    }
    if answer.cut && answer.framing == Framing::UntilClose {
        return Err(("a content length or chunks with cut", "until-close".into()));
    }
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::story::FieldTest;

    #[test]
    fn a_rule_is_read() {
        let rule = parse(3, r#"GET /a*  if-none-match: "1"  !range -> hold g1 chunked cut 200  etag: "1"  a: b | one"#)
            .unwrap();
        assert_eq!(
            rule.which,
            RequestPattern { method: Some("GET".into()), pattern: "/a*".into() }
        );
        assert_eq!(rule.conditions.len(), 2);
        assert!(matches!(&rule.conditions[1], FieldTest::Absent(name) if name == "range"));
        assert_eq!(rule.answer.hold.as_deref(), Some("g1"));
        assert!(rule.answer.cut && rule.answer.framing == Framing::Chunked);
        let AnswerKind::Response { status: 200, fields, body } = &rule.answer.kind else {
            panic!("{rule:?}")
        };
        assert_eq!((fields.len(), &*body.0), (2, &b"one"[..]));
    }

    #[test]
    fn invalid_rules_are_refused() {
        for wrong in [
            "GET /a",
            "get /a -> 200",
            "GET a -> 200",
            "GET /a -> ok",
            "GET /a -> cut 200",
            "GET /a -> refuse 200",
            "GET /a -> until-close cut 200 | x",
            "GET /a -> hold 200  a: b c: d | x",
        ] {
            assert!(parse(1, wrong).is_err(), "{wrong}");
        }
        assert!(parse(1, r#"* * -> raw "HTTP/1.1 200 OK\r\n\r\n""#).is_ok());
    }
}
