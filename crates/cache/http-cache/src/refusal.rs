//! `X-Pagewell-Refusal`: the application's own reason not to offer a page for storing.
//!
//! Pagewell's plugins and its PHP library send the field with a page that they do not offer. The code is
//! shown to the operator instead of a guess from the other fields. Invariants: a response with the field
//! is never stored for everybody, except with the code for "nothing declared"; a code is never longer than
//! [`CODE_BYTES_MAX`], and has only characters that need no escaping anywhere. Not here: the meaning of a
//! code.

use http::HeaderMap;

/// The name of the field.
pub const REFUSAL_FIELD: &str = "x-pagewell-refusal";
/// The longest code that is read, in bytes.
pub const CODE_BYTES_MAX: usize = 64;

/// The code of a page about which the application declares nothing. It explains why the page has no TTL, and
/// leaves the choice to the other fields, to rules and to automatic dependencies.
const DECLARES_NOTHING: &str = "nothing-declared";

/// Whether the application refuses to offer the response. An unreadable value is a refusal too, because
/// an application that sends the field does not mean the page to be stored.
pub(crate) fn is_refused(headers: &HeaderMap) -> bool {
    headers.contains_key(REFUSAL_FIELD) && refusal_code(headers) != Some(DECLARES_NOTHING)
}

/// The code of the application's reason. `None` without the field, with several ones, or if the value is
/// empty, too long, or has characters other than `a` to `z`, digits and `-`.
pub fn refusal_code(headers: &HeaderMap) -> Option<&str> {
    let mut lines = headers.get_all(REFUSAL_FIELD).iter();
    let (Some(line), None) = (lines.next(), lines.next()) else { return None };
    let code = line.to_str().ok()?;
    let is_readable = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let is_code = !code.is_empty() && code.len() <= CODE_BYTES_MAX && code.bytes().all(is_readable);
    is_code.then_some(code)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn code_of(values: &[&str]) -> Option<String> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(REFUSAL_FIELD, HeaderValue::from_str(value).expect("a value"));
        }
        let declares_nothing = values == [DECLARES_NOTHING];
        assert_eq!(is_refused(&headers), !values.is_empty() && !declares_nothing, "{values:?}");
        refusal_code(&headers).map(str::to_owned)
    }

    #[test]
    fn only_one_short_word_is_a_code() {
        assert_eq!(code_of(&["nothing-declared"]).as_deref(), Some("nothing-declared"));
        assert_eq!(code_of(&["visitors-cookie"]).as_deref(), Some("visitors-cookie"));
        let longest = "a".repeat(CODE_BYTES_MAX);
        assert_eq!(code_of(&[&longest]), Some(longest.clone()));
        for values in [
            &[][..],
            &[""],
            &["a", "b"],
            &["nothing-declared", "session"],
            &["nothing-declared, session"],
            &["Set-Cookie"],
            &["a b"],
            &["a;b=\"c\""],
            &["<b>"],
            &[&format!("{longest}a")],
        ] {
            assert_eq!(code_of(values), None, "{values:?}");
        }
    }
}
