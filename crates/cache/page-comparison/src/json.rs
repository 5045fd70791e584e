//! JSON as tokens: one for each value, by its path, whatever the order of keys.
//!
//! Memory: the parsed document has at most as many values as the content has commas, brackets and colons, and these
//! are counted before it is parsed. Deeper documents than `serde_json` accepts (128 levels) are compared line by line.

use crate::place::{MAX_DEPTH, ROOT};
use crate::tokens::{MAX_TOKENS, TokenWriter};
use serde_json::Value;

/// Writes the tokens of JSON; returns false, with nothing written, if it is none or has too many values.
pub(crate) fn write(writer: &mut TokenWriter, content: &[u8]) -> bool {
    let marks = content.iter().filter(|byte| b",[{:".contains(byte)).count();
    if marks > MAX_TOKENS / 2 {
        return false;
    }
    let Ok(document) = serde_json::from_slice::<Value>(content) else { return false };
    let place = writer.places.only(ROOT, "json");
    value(writer, place, 0, &document);
    true
}

fn value(writer: &mut TokenWriter, place: u32, depth: usize, document: &Value) {
    let inside = depth < MAX_DEPTH;
    match document {
        Value::Object(members) => {
            writer.word(place, 0, b"{");
            let mut names: Vec<&String> = members.keys().collect();
            names.sort_unstable();
            for name in names {
                let at = if inside { writer.places.only(place, name) } else { place };
                writer.word(at, 0, name.as_bytes());
                value(writer, at, depth + 1, &members[name]);
            }
            writer.end(place, b"}");
        }
        Value::Array(elements) => {
            writer.word(place, 0, b"[");
            for element in elements {
                let at = if inside { writer.places.child(place, "[]") } else { place };
                value(writer, at, depth + 1, element);
            }
            writer.end(place, b"]");
        }
        Value::String(text) => {
            writer.word(place, 0, b"\"");
            writer.text(place, text.as_bytes());
        }
        other => writer.text(place, other.to_string().as_bytes()),
    }
}
