//! The query of a call, for each path that accepts one: at most one parameter.
//!
//! Its name and its value may be percent-encoded (RFC 3986 section 2.1); a plus sign stays one. Not
//! here: the meaning of the value.

use super::ControlError;
use config::percent_encoding::percent_decoded;

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
    let Some(query) = query.filter(|query| !query.is_empty()) else { return Ok(None) };
    let value = || {
        let (given, value) = query.split_once('=')?;
        let (given, value) = (percent_decoded(given)?, percent_decoded(value)?);
        (given == name && !query.contains('&') && !value.is_empty()).then(|| value.into_owned())
    };
    let wrong = || ControlError::Unreadable(format!("the query is {name}={example}, or none"));
    value().map(Some).ok_or_else(wrong)
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
