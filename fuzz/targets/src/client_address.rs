//! The client that trusted proxies name (`X-Forwarded-For`): plain hits and all other requests find the same one, and
//! nothing that stands before it changes it.
//!
//! The data are the values of the field, one on each line.

use http::{HeaderMap, HeaderValue};
use request_values::networks::Networks;
use std::sync::LazyLock;

static PROXIES: LazyLock<Networks> = LazyLock::new(|| {
    let networks = ["10.0.0.0/8".to_owned(), "fd00::/8".to_owned()];
    Networks::read(&networks).expect("networks")
});

/// Reads the data as the lines of the field.
pub fn run(data: &[u8]) {
    let lines: Vec<&[u8]> = data.split(|byte| *byte == b'\n').take(200).collect();
    let mut headers = HeaderMap::new();
    for line in &lines {
        let Ok(value) = HeaderValue::from_bytes(line) else { return };
        headers.append("x-forwarded-for", value);
    }
    let last_first = || lines.iter().rev().copied();
    let found = PROXIES.client_of(last_first());
    assert_eq!(found, PROXIES.client(&headers), "{}", data.escape_ascii());
    if let Some(client) = found.filter(|client| !PROXIES.have(*client)) {
        let forged = last_first().chain([&b"203.0.113.9"[..]]);
        assert_eq!(PROXIES.client_of(forged), Some(client), "{}", data.escape_ascii());
    }
}
