//! The metadata that a client of the memcached port sends with a page: its tags and its lease.
//!
//! Standard clients can send only a value. So a value may begin with the line
//! `Pagewell-Page: tags=news,news:4 lease=1f.17`, which is removed before the value is stored. A
//! comma or a space in a tag is percent-encoded (`%2C`, `%20`). A page with an invalid line is refused.

use std::borrow::Cow;

/// The beginning of the metadata line in a value.
const START: &[u8] = b"Pagewell-Page:";
/// Maximum length of the rest of the line, in bytes.
const LINE_BYTES_MAX: usize = 64 << 10;

/// The metadata of a page, and the position of its content.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct PageLine<'a> {
    /// The tags; empty if none were sent.
    pub(super) tags: Vec<Cow<'a, [u8]>>,
    /// The token of the client's lease, if it sent one.
    pub(super) lease: Option<&'a [u8]>,
    /// Offset of the content in the value, in bytes.
    pub(super) value_at: usize,
}

/// Error: the metadata cannot be parsed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Unreadable;

/// Parses the metadata at the beginning of a value.
///
/// # Errors
/// The line is too long, or has an unknown or repeated entry.
pub(super) fn read(value: &[u8]) -> Result<PageLine<'_>, Unreadable> {
    let mut said = PageLine::default();
    let Some(rest) = value.strip_prefix(START) else { return Ok(said) };
    let line = &rest[..rest.len().min(LINE_BYTES_MAX)];
    let end = line.iter().position(|byte| *byte == b'\n').ok_or(Unreadable)?;
    said.value_at = START.len() + end + 1;
    for word in line[..end].trim_ascii().split(|byte| *byte == b' ').filter(|w| !w.is_empty()) {
        if let Some(list) = word.strip_prefix(b"tags=") {
            said.tags.extend(tags(list));
        } else if let Some(lease) = word.strip_prefix(b"lease=") {
            if said.lease.replace(lease).is_some() {
                return Err(Unreadable);
            }
        } else {
            return Err(Unreadable);
        }
    }
    Ok(said)
}

fn tags(list: &[u8]) -> impl Iterator<Item = Cow<'_, [u8]>> {
    list.split(|byte| *byte == b',').filter(|tag| !tag.is_empty()).map(tag)
}

/// Decodes `%20` and `%2C` in a tag. Any other `%` is literal, because the client library's own tags
/// contain many.
fn tag(written: &[u8]) -> Cow<'_, [u8]> {
    if !written.contains(&b'%') {
        return Cow::Borrowed(written);
    }
    let (mut meant, mut rest) = (Vec::with_capacity(written.len()), written);
    while let [first, behind @ ..] = rest {
        let (byte, behind) = match rest {
            [b'%', b'2', b'0', behind @ ..] => (b' ', behind),
            [b'%', b'2', b'C' | b'c', behind @ ..] => (b',', behind),
            _ => (*first, behind),
        };
        meant.push(byte);
        rest = behind;
    }
    Cow::Owned(meant)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names<'s>(said: &'s PageLine<'_>) -> Vec<&'s [u8]> {
        said.tags.iter().map(|tag| &**tag).collect()
    }

    #[test]
    fn a_line_is_read_and_taken_off() {
        assert_eq!(read(b"<p>"), Ok(PageLine::default()));
        let value = b"Pagewell-Page: tags=a,b:4, lease=1f.3\r\n<p>";
        let said = read(value).unwrap();
        assert_eq!((names(&said), said.lease), (vec![&b"a"[..], b"b:4"], Some(&b"1f.3"[..])));
        assert_eq!(&value[said.value_at..], b"<p>");
    }

    #[test]
    fn a_tag_may_have_any_byte() {
        let said = read(b"Pagewell-Page: tags=a%2cb,a%20b,Malm%C3%B6,50%,%2\n").unwrap();
        assert_eq!(names(&said), [&b"a,b"[..], b"a b", b"Malm%C3%B6", b"50%", b"%2"]);
    }

    #[test]
    fn a_line_that_cannot_be_read_is_refused() {
        for wrong in
            ["Pagewell-Page: tags=a", "Pagewell-Page: tag=a\n", "Pagewell-Page: lease=1 lease=2\n"]
        {
            assert_eq!(read(wrong.as_bytes()), Err(Unreadable), "{wrong}");
        }
    }
}
