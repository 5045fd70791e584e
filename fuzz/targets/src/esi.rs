//! ESI templates of arbitrary bytes. Text parts are text of the template, in order and without overlaps.
//! Between two texts, and before the first and after the last, there is an element or its end. Without `esi`
//! and `CDATA`, everything is text.

use esi::{Part, Template};

/// Parses the data as a template.
pub fn run(data: &[u8]) {
    let template = Template::read(data);
    let mut at = 0;
    for part in &template.parts {
        let Part::Text(range) = part else { continue };
        assert!(at <= range.start && range.start < range.end && range.end <= data.len());
        is_left_out(&data[at..range.start]);
        at = range.end;
    }
    is_left_out(&data[at..]);
    assert_eq!(template.left.is_some(), template.left_count > 0);
    if !data.windows(3).any(|word| word == b"esi") {
        assert!(template.parts.len() <= 1 && at == data.len());
    }
}

/// Whether removed bytes belong to an element.
fn is_left_out(bytes: &[u8]) {
    let begins = [&b"<esi:"[..], b"</esi:", b"<!--esi", b"-->"];
    assert!(bytes.is_empty() || begins.iter().any(|begin| bytes.starts_with(begin)));
}
