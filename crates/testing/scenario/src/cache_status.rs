//! Parses and checks `Cache-Status` (RFC 9211): a list of caches, the one nearest to the client last, each with
//! parameters. The last one is checked, because it is the cache under test.
//!
//! Of structured fields (RFC 9651), only the parts that such a list uses are implemented: tokens, numbers,
//! strings, and true for a parameter without a value.

use crate::check::{compares, sign};
use crate::failure::Mismatch;
use crate::story::CacheTest;
use harness::Response;
use std::collections::HashMap;

/// The last member of `Cache-Status` (RFC 9211 section 2: each cache appends itself), with its parameters.
pub(crate) struct CacheStatus {
    member: Option<String>,
    parameters: HashMap<String, String>,
}

impl CacheStatus {
    /// Parses the field of an answer.
    pub(crate) fn read(response: &Response) -> CacheStatus {
        let value = response.field("cache-status").unwrap_or_default();
        let value = String::from_utf8_lossy(&value).into_owned();
        let member = split_unquoted(&value, ',').last().filter(|member| !member.is_empty());
        let mut parameters = HashMap::new();
        for parameter in split_unquoted(member.as_deref().unwrap_or_default(), ';').skip(1) {
            let (name, value) = parameter.split_once('=').unwrap_or((&parameter, "?1"));
            parameters.insert(name.to_owned(), unquoted(value));
        }
        CacheStatus { member, parameters }
    }

    /// The value of a parameter.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        self.parameters.get(name).map(String::as_str)
    }

    /// Checks one parameter. `ttl` may be lower by up to `slack_seconds`.
    pub(crate) fn judge(&self, test: &CacheTest, slack_seconds: u64) -> Result<(), Mismatch> {
        let value = |name: &str| self.value(name);
        let (fits, expected) = match test {
            _ if self.member.is_none() => (false, "a Cache-Status".to_owned()),
            CacheTest::Has(name) => {
                (value(name).is_some_and(|value| value != "?0"), name.to_owned())
            }
            CacheTest::Lacks(name) => {
                (value(name).is_none_or(|value| value == "?0"), format!("no {name}"))
            }
            CacheTest::Is(name, wanted) => {
                (value(name) == Some(wanted), format!("{name}={wanted}"))
            }
            CacheTest::Contains(name, part) => {
                (value(name).is_some_and(|v| v.contains(part)), format!("{name} with {part}"))
            }
            CacheTest::Number(name, comparison, wanted) => {
                let slack = if name == "ttl" { slack_seconds as f64 } else { 0.0 };
                let got = value(name).and_then(|value| value.parse().ok());
                let fits = got.is_some_and(|got: f64| compares(*comparison, got, *wanted, slack));
                (fits, format!("{name}{}{wanted}", sign(*comparison)))
            }
            CacheTest::NotReason(reason) => {
                (value("detail") != Some(reason), format!("no detail={reason}"))
            }
        };
        let got = self.member.as_deref().unwrap_or("none");
        if fits { Ok(()) } else { Err(Mismatch::new(expected, format!("cache-status: {got}"))) }
    }
}

/// Splits a structured field at `separator` outside quotes (RFC 9651 section 3), and trims the pieces.
fn split_unquoted(text: &str, separator: char) -> impl Iterator<Item = String> {
    let (mut quoted, mut protected) = (false, false);
    let pieces = text.split(move |c: char| {
        match c {
            _ if protected => protected = false,
            '\\' if quoted => protected = true,
            '"' => quoted = !quoted,
            _ => return c == separator && !quoted,
        }
        false
    });
    pieces.map(|piece| piece.trim().to_owned()).collect::<Vec<_>>().into_iter()
}

fn unquoted(value: &str) -> String {
    match value.strip_prefix('"').and_then(|v| v.strip_suffix('"')) {
        Some(inside) => inside.replace("\\\"", "\"").replace("\\\\", "\\"),
        None => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::story::Comparison;

    fn status(value: &str) -> CacheStatus {
        CacheStatus::read(&Response::new(200, &[("cache-status", value)], b""))
    }

    #[test]
    fn the_last_member_counts() {
        let status = status(r#"origin; hit, pagewell; fwd=stale; key="a, b; c"; ttl=-3; stored"#);
        assert!(status.judge(&CacheTest::Lacks("hit".into()), 0).is_ok());
        assert!(status.judge(&CacheTest::Has("stored".into()), 0).is_ok());
        assert!(status.judge(&CacheTest::Is("key".into(), "a, b; c".into()), 0).is_ok());
        assert!(status.judge(&CacheTest::Is("fwd".into(), "miss".into()), 0).is_err());
        let ttl = |comparison, n| CacheTest::Number("ttl".into(), comparison, n);
        assert!(status.judge(&ttl(Comparison::Equal, -3.0), 0).is_ok());
        assert!(status.judge(&ttl(Comparison::Equal, -2.0), 0).is_err());
        assert!(status.judge(&ttl(Comparison::Equal, -2.0), 1).is_ok());
        assert!(status.judge(&ttl(Comparison::Equal, -4.0), 1).is_err());
    }

    #[test]
    fn without_the_field_nothing_is_shown() {
        let wrong = status("").judge(&CacheTest::Lacks("hit".into()), 0).unwrap_err();
        assert_eq!(wrong.got, "cache-status: none");
    }
}
