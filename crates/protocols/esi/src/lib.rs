//! Edge Side Includes: splits a template into text and the fragments between the pieces of text.
//!
//! Source: ESI Language Specification 1.0 (W3C Note, 4 August 2001). This crate implements the elements that
//! applications use and that other caches support:
//!
//! | element | result |
//! |---|---|
//! | `<esi:include src="…" alt="…" onerror="continue"/>` | a fragment; if it fails, the `alt` fragment; if that fails too, nothing |
//! | `<esi:remove>…</esi:remove>` | nothing: the content is for clients without ESI |
//! | `<esi:comment text="…"/>` | nothing |
//! | `<!--esi … -->` | its content, parsed like the rest |
//!
//! Invariants: parsing takes time linear in the length, and allocates only the list of parts and the decoded
//! addresses. Every byte of text returned is a byte of the template, in order. Other elements (`esi:choose`,
//! `esi:vars` and the like) and incomplete elements stay in the text and are counted. A `<![CDATA[ … ]]>`
//! section is text. Not here: fetching fragments, and the access control for their addresses.

use std::borrow::Cow;
use std::ops::Range;

mod element;

use element::{Element, attributes, element_at};

/// A template, split into its parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Template<'t> {
    /// Text and fragments, in order. No text is empty.
    pub parts: Vec<Part<'t>>,
    /// The offset in bytes of the first unsupported or incomplete element, which was left in the text.
    pub left: Option<usize>,
    /// The number of elements that were left in the text.
    pub left_count: usize,
}

/// A part of a template: text or a fragment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part<'t> {
    /// Text: the range of bytes in the template.
    Text(Range<usize>),
    /// A fragment to insert here.
    Include(Include<'t>),
}

/// An include element, `<esi:include>` (ESI 1.0 section 3.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Include<'t> {
    /// The address of the fragment, with entities (`&amp;` and the like) resolved.
    pub src: Cow<'t, str>,
    /// The address of the fragment to insert if `src` fails.
    pub alt: Option<Cow<'t, str>>,
    /// Whether the page is still sent if the fragment fails (`onerror="continue"`).
    pub may_be_left_out: bool,
}

impl Include<'_> {
    /// Copies the borrowed addresses, so that the include can outlive the template.
    pub fn into_owned(self) -> Include<'static> {
        let own = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        let Include { src, alt, may_be_left_out } = self;
        Include { src: own(src), alt: alt.map(own), may_be_left_out }
    }
}

impl<'t> Template<'t> {
    /// Parses a template. Parsing cannot fail: text that is not a supported element stays text.
    ///
    /// ```
    /// use esi::{Part, Template};
    /// let template = Template::read(b"<p>Hello <esi:include src='/name?of=me&amp;short'/>!");
    /// let Part::Include(name) = &template.parts[1] else { panic!() };
    /// assert_eq!(name.src, "/name?of=me&short");
    /// assert_eq!(template.parts[2], Part::Text(51..52));
    /// ```
    pub fn read(content: &'t [u8]) -> Template<'t> {
        let mut reader = Reader { content, ..Reader::default() };
        while let Some(at) = reader.next_place() {
            reader.read_place(at);
        }
        reader.text_to(content.len());
        reader.put_text();
        reader.template
    }
}

const COMMENT: &[u8] = b"<!--esi";
const COMMENT_END: &[u8] = b"-->";
const CDATA: &[u8] = b"<![CDATA[";
const CDATA_END: &[u8] = b"]]>";
const REMOVE_END: &[u8] = b"</esi:remove>";

#[derive(Default)]
struct Reader<'t> {
    content: &'t [u8],
    /// Everything before this index has been parsed.
    at: usize,
    /// Text that has been parsed but not yet added to the parts.
    text: Range<usize>,
    /// The index of the `-->` that ends the current `<!--esi`.
    comment_end: Option<usize>,
    /// Terminators that a search did not find in the rest of the template, so that no search is repeated.
    has_no_comment_end: bool,
    has_no_remove_end: bool,
    template: Template<'t>,
}

impl<'t> Reader<'t> {
    /// The index of the next byte that may begin something other than text.
    fn next_place(&self) -> Option<usize> {
        let rest = &self.content[self.at..];
        let next = rest.iter().position(|byte| *byte == b'<').map(|next| self.at + next);
        let end = self.comment_end.filter(|end| *end >= self.at);
        match (next, end) {
            (Some(next), Some(end)) => Some(next.min(end)),
            (next, end) => next.or(end),
        }
    }

    fn read_place(&mut self, at: usize) {
        let rest = &self.content[at..];
        if self.comment_end == Some(at) {
            self.comment_end = None;
            return self.leave_out(at..at + COMMENT_END.len());
        }
        if rest.starts_with(CDATA) {
            let end = find(rest, CDATA_END).map_or(rest.len(), |end| end + CDATA_END.len());
            return self.text_to(at + end);
        }
        if rest.starts_with(COMMENT) && !rest[COMMENT.len()..].starts_with(b":") {
            return self.read_comment(at);
        }
        match element_at(rest) {
            None => self.text_to(at + 1),
            Some(Element::Start { name: b"include", tag }) => self.read_include(at, tag),
            Some(Element::Start { name: b"remove", tag }) => self.read_remove(at, tag.len()),
            Some(
                Element::Start { name: b"comment", tag }
                | Element::End { name: b"include" | b"comment", tag },
            ) => {
                self.leave_out(at..at + tag.len());
            }
            Some(Element::Start { tag, .. }) => self.leave(at..at + tag.len()),
            Some(Element::End { tag, .. }) => self.text_to(at + tag.len()),
            Some(Element::Unfinished) => self.leave(at..at + 1),
        }
    }

    /// Parses `<!--esi … -->` (ESI 1.0 section 3.7).
    fn read_comment(&mut self, at: usize) {
        let end = at + COMMENT.len();
        let is_in_one = self.comment_end.is_some_and(|end| end >= at);
        if self.has_no_comment_end || is_in_one {
            return self.leave(at..end);
        }
        match find(&self.content[end..], COMMENT_END) {
            Some(length) => {
                self.comment_end = Some(end + length);
                self.leave_out(at..end);
            }
            None => {
                self.has_no_comment_end = true;
                self.leave(at..end);
            }
        }
    }

    /// Parses `<esi:include>` (ESI 1.0 section 3.1).
    fn read_include(&mut self, at: usize, tag: &'t [u8]) {
        let (mut src, mut alt, mut may_be_left_out) = (None, None, false);
        for (name, value) in attributes(tag) {
            match name {
                b"src" => src = src.or(Some(value)),
                b"alt" => alt = alt.or(Some(value)),
                b"onerror" => may_be_left_out |= value == "continue",
                _ => {}
            }
        }
        let Some(src) = src else { return self.leave(at..at + tag.len()) };
        self.leave_out(at..at + tag.len());
        self.put_text();
        self.template.parts.push(Part::Include(Include { src, alt, may_be_left_out }));
    }

    /// Skips `<esi:remove>` with its content (ESI 1.0 section 3.4).
    fn read_remove(&mut self, at: usize, tag_bytes: usize) {
        let from = at + tag_bytes;
        let end =
            if self.has_no_remove_end { None } else { find(&self.content[from..], REMOVE_END) };
        match end {
            Some(length) => self.leave_out(at..from + length + REMOVE_END.len()),
            None => {
                self.has_no_remove_end = true;
                self.leave(at..from);
            }
        }
    }

    /// Leaves an unsupported element in the text, and counts it.
    fn leave(&mut self, at: Range<usize>) {
        self.template.left.get_or_insert(at.start);
        self.template.left_count += 1;
        self.text_to(at.end);
    }

    /// Removes a range from the output.
    fn leave_out(&mut self, at: Range<usize>) {
        self.text_to(at.start);
        self.at = at.end;
    }

    /// Marks everything up to `end` as text. Text before and after a removed range becomes two parts.
    fn text_to(&mut self, end: usize) {
        if self.text.end != self.at {
            self.put_text();
        }
        if self.text.is_empty() {
            self.text = self.at..self.at;
        }
        (self.text.end, self.at) = (end, end);
    }

    fn put_text(&mut self) {
        let text = std::mem::take(&mut self.text);
        if !text.is_empty() {
            self.template.parts.push(Part::Text(text));
        }
    }
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}
