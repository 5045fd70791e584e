//! Parses one ESI element: its name, its attributes and where it ends. The syntax is that of XML 1.0 section
//! 3.1, reduced to what ESI needs.
//!
//! The parser reads from left to right once. Bytes that turn out not to be an element are not scanned a second
//! time.

use crate::EsiDialect;
use std::borrow::Cow;

/// The result of parsing at a `<`: an ESI start tag, an ESI end tag, or an incomplete tag.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Element<'t> {
    /// `<esi:name …>` or `<esi:name …/>`.
    Start {
        /// The element name after the prefix `esi:`.
        name: &'t [u8],
        /// The whole tag, from `<` to `>`.
        tag: &'t [u8],
    },
    /// `</esi:name>`.
    End {
        /// The element name after the prefix `esi:`.
        name: &'t [u8],
        /// The whole tag, from `<` to `>`.
        tag: &'t [u8],
    },
    /// Text that begins like an ESI tag but is not a complete one.
    Unfinished,
}

/// Parses the element at the beginning of `rest`. Returns `None` if `rest` does not begin with an ESI tag.
pub(crate) fn element_at(rest: &[u8], syntax: EsiDialect) -> Option<Element<'_>> {
    let (begin, is_end) = match rest {
        [b'<', b'e', b's', b'i', mark, ..] if syntax.is_mark(*mark) => (b"<esi:".len(), false),
        [b'<', b'/', b'e', b's', b'i', mark, ..] if syntax.is_mark(*mark) => {
            (b"</esi:".len(), true)
        }
        _ => return None,
    };
    let name_bytes = rest[begin..].iter().position(|byte| !is_of_name(*byte));
    let Some(name_bytes) = name_bytes.filter(|bytes| *bytes > 0) else {
        return Some(Element::Unfinished);
    };
    let mut reader = Attributes { tag: rest, at: begin + name_bytes };
    while reader.next().is_some() {}
    let name = &rest[begin..begin + name_bytes];
    Some(match reader.end() {
        Some(end) if is_end => Element::End { name, tag: &rest[..end] },
        Some(end) => Element::Start { name, tag: &rest[..end] },
        None => Element::Unfinished,
    })
}

/// The attributes of a start tag that [`element_at`] has returned, with the entities in their values resolved.
/// Attributes whose value is not valid UTF-8 are skipped.
pub(crate) fn attributes(tag: &[u8]) -> impl Iterator<Item = (&[u8], Cow<'_, str>)> {
    let at = tag.iter().position(|byte| byte.is_ascii_whitespace()).unwrap_or(tag.len());
    Attributes { tag, at }
        .filter_map(|(name, value)| Some((name, resolved(str::from_utf8(value).ok()?))))
}

/// Iterates over the attributes of a tag.
struct Attributes<'t> {
    tag: &'t [u8],
    at: usize,
}

impl<'t> Attributes<'t> {
    fn skip_blanks(&mut self) {
        let blanks = self.tag[self.at..].iter().take_while(|byte| byte.is_ascii_whitespace());
        self.at += blanks.count();
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        self.skip_blanks();
        (self.tag.get(self.at) == Some(&byte)).then(|| self.at += 1)
    }

    /// The index after the `>` or `/>` that ends the tag; `None` if the tag does not end after its last
    /// attribute.
    fn end(&mut self) -> Option<usize> {
        let _ = self.take(b'/');
        self.take(b'>')?;
        Some(self.at)
    }
}

impl<'t> Iterator for Attributes<'t> {
    type Item = (&'t [u8], &'t [u8]);

    /// The next attribute; `None` where the text is not an attribute. Nothing of that text is consumed.
    fn next(&mut self) -> Option<Self::Item> {
        self.skip_blanks();
        let before = self.at;
        let name = self.tag[before..].iter().take_while(|byte| is_of_name(**byte)).count();
        self.at += name;
        let value = (name > 0).then(|| self.value()).flatten();
        if value.is_none() {
            self.at = before;
        }
        Some((&self.tag[before..before + name], value?))
    }
}

impl<'t> Attributes<'t> {
    fn value(&mut self) -> Option<&'t [u8]> {
        self.take(b'=')?;
        self.skip_blanks();
        let quote = *self.tag.get(self.at).filter(|byte| matches!(byte, b'"' | b'\''))?;
        let from = self.at + 1;
        let length = self.tag[from..].iter().position(|byte| *byte == quote)?;
        self.at = from + length + 1;
        Some(&self.tag[from..from + length])
    }
}

fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b':' | b'.')
}

/// Resolves the five predefined entities of XML (section 4.6), and the numeric references that WordPress writes
/// for `&` and quotes. Any other text that begins with `&` stays as it is, because applications also write
/// addresses without escaping.
fn resolved(value: &str) -> Cow<'_, str> {
    const ENTITIES: [(&str, char); 9] = [
        ("&amp;", '&'),
        ("&lt;", '<'),
        ("&gt;", '>'),
        ("&quot;", '"'),
        ("&apos;", '\''),
        ("&#038;", '&'),
        ("&#38;", '&'),
        ("&#039;", '\''),
        ("&#39;", '\''),
    ];
    if !value.contains('&') {
        return Cow::Borrowed(value);
    }
    let (mut text, mut rest) = (String::with_capacity(value.len()), value);
    while let Some(at) = rest.find('&') {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        let entity = ENTITIES.iter().find(|(name, _)| rest.starts_with(name));
        let (length, stands_for) = entity.map_or((1, '&'), |(name, of)| (name.len(), *of));
        text.push(stands_for);
        rest = &rest[length..];
    }
    text.push_str(rest);
    Cow::Owned(text)
}
