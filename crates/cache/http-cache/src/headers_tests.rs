//! Header fields for the tests of the other modules.
//!
//! Lines with the same name stay separate lines, in their order. Values may have bytes above 127, as those of
//! applications do.

use http::header::{HeaderMap, HeaderName, HeaderValue};

/// The header fields with these names and values.
pub(crate) fn headers(lines: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        let name = HeaderName::from_bytes(name.as_bytes()).expect("a name");
        headers.append(name, HeaderValue::from_bytes(value.as_bytes()).expect("a value"));
    }
    headers
}
