//! Templates of ESI, of any bytes.
//! What is text is the template's own, in order and without overlaps; what stands between two texts, or before the
//! first or behind the last, is an element or the end of one; and without `esi` and `CDATA` in it all of it is text.

use esi::{Part, Template};

/// Reads the data as a template.
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

/// Nothing is left out but elements.
fn is_left_out(bytes: &[u8]) {
    let begins = [&b"<esi:"[..], b"</esi:", b"<!--esi", b"-->"];
    assert!(bytes.is_empty() || begins.iter().any(|begin| bytes.starts_with(begin)));
}
