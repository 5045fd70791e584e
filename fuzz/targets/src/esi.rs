//! ESI templates of arbitrary bytes. Text parts are text of the template, in order and without overlaps.
//! Between two texts, and before the first and after the last, there is an element or its end. Without `esi`
//! and `CDATA`, everything is text. The same holds for LiteSpeed's dialect.

use esi::{EsiDialect, Part, Template};

/// Parses the data as a template, in both dialects.
pub fn run(data: &[u8]) {
    run_as(data, EsiDialect::Standard);
    run_as(data, EsiDialect::LiteSpeed);
}

fn run_as(data: &[u8], dialect: EsiDialect) {
    let template = Template::read_as(data, dialect);
    let mut at = 0;
    for part in &template.parts {
        if let Part::Inline(inline) = part {
            let (element, content) = (&inline.element, &inline.content);
            assert!(element.start < content.start && content.end <= element.end);
            assert!(at <= element.start && element.end <= data.len());
        }
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
    let begins = [&b"<esi:"[..], b"</esi:", b"<esi_", b"</esi_", b"<!--esi", b"-->"];
    assert!(bytes.is_empty() || begins.iter().any(|begin| bytes.starts_with(begin)));
}
