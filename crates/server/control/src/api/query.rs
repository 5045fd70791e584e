//! The query of a call: the parameters that its path accepts, each at most once.
//!
//! Names and values may be percent-encoded (RFC 3986 section 2.1); a plus sign stays one. Not here: the meaning
//! of the values.

use super::ControlError;
use http_fields::percent::decode_strictly;

/// Returns the decoded value of the parameter `name`; `None` without a query. `example` is the value
/// that the error shows.
///
/// # Errors
/// The query has another parameter or several, or the value is empty or cannot be decoded.
pub(super) fn parameter(
    query: Option<&str>,
    name: &str,
    example: &str,
) -> Result<Option<String>, ControlError> {
    parameters(query, [(name, example)]).map(|[value]| value)
}

/// Returns the decoded values of the parameters, each with an example for the error; `None` for one that the
/// query does not have.
///
/// # Errors
/// The query has another parameter, or one of them twice, or a value is empty or cannot be decoded.
pub(super) fn parameters<const N: usize>(
    query: Option<&str>,
    known: [(&str, &str); N],
) -> Result<[Option<String>; N], ControlError> {
    let mut values = [const { None }; N];
    let Some(query) = query.filter(|query| !query.is_empty()) else { return Ok(values) };
    for pair in query.split('&') {
        let value = || {
            let (name, value) = pair.split_once('=')?;
            let (name, value) = (decode_strictly(name)?, decode_strictly(value)?);
            let at = known.iter().position(|(known, _)| *known == name)?;
            (!value.is_empty()).then(|| (at, value.into_owned()))
        };
        match value() {
            Some((at, value)) if values[at].is_none() => values[at] = Some(value),
            _ => {
                let known = known.map(|(name, example)| format!("{name}={example}"));
                let text = format!("the query is {}, or none", known.join("&"));
                return Err(ControlError::Unreadable(text));
            }
        }
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_query_has_one_parameter_or_none() {
        let read = |query| parameter(query, "site", "HOST").map_err(|_| ());
        assert_eq!([None, Some("")].map(read), [Ok(None), Ok(None)]);
        for (query, value) in [
            ("site=a.test", "a.test"),
            ("s%69te=a.test", "a.test"),
            ("site=%5B%3A%3a1%5D", "[::1]"),
            ("site=a%26b%3Dc+d", "a&b=c+d"),
        ] {
            assert_eq!(read(Some(query)), Ok(Some(value.into())), "{query}");
        }
        for wrong in ["site", "site=", "host=a", "site=a&site=b", "site=a&", "site=%", "site=%ff"] {
            assert_eq!(read(Some(wrong)), Err(()), "{wrong}");
        }
    }

    #[test]
    fn each_parameter_may_be_given_once() {
        let read = |query| parameters(Some(query), [("a", "A"), ("b", "B")]);
        let values =
            |a: Option<&str>, b: Option<&str>| Ok([a.map(str::to_owned), b.map(str::to_owned)]);
        assert_eq!(read("b=2&a=1"), values(Some("1"), Some("2")));
        assert_eq!(read("b=2"), values(None, Some("2")));
        let wrong = read("a=1&a=2").expect_err("twice");
        assert_eq!(wrong, ControlError::Unreadable("the query is a=A&b=B, or none".into()));
        assert!(read("a=1&c=2").is_err() && read("a=1&").is_err());
    }

    proptest! {
        /// The dashboard encodes a host with `encodeURIComponent`: every byte that is not unreserved.
        #[test]
        fn an_encoded_value_is_read_as_it_was(value in "\\PC{1,40}") {
            let encoded: String = value.bytes().map(|byte| format!("%{byte:02X}")).collect();
            let read = parameter(Some(&format!("site={encoded}")), "site", "HOST");
            prop_assert_eq!(read, Ok(Some(value)));
        }
    }
}
