//! Edge Side Includes: takes a template apart into text and the fragments that stand between.
//!
//! Source: ESI Language Specification 1.0 (W3C Note, 4 August 2001), of which this is what applications write
//! and other caches understand:
//!
//! | | |
//! |---|---|
//! | `<esi:include src="…" alt="…" onerror="continue"/>` | a fragment; another in its place when it fails; nothing when that fails too |
//! | `<esi:remove>…</esi:remove>` | nothing: what it holds is for readers without ESI |
//! | `<esi:comment text="…"/>` | nothing |
//! | `<!--esi … -->` | what it holds, read like the rest |
//!
//! Invariants: reading takes time in proportion to the length, and allocates the list of parts and the decoded
//! addresses alone; every byte of text that is handed out is one of the template's, in order. Elements that are
//! not in the table (`esi:choose`, `esi:vars` and the like), and what is not an element after all, stay in the
//! text as they are, and are counted. A `<![CDATA[ … ]]>` section is text. Deliberately not here: fetching, and
//! what an address may name.

use std::borrow::Cow;
use std::ops::Range;

mod element;

use element::{Element, attributes, element_at};

/// A template taken apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Template<'t> {
    /// Text and fragments, in their order; no text is empty.
    pub parts: Vec<Part<'t>>,
    /// Where the first element is that was left in the text, in bytes from the beginning.
    pub left: Option<usize>,
    /// How many were.
    pub left_count: usize,
}

/// A piece of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part<'t> {
    /// Text of the template: these of its bytes.
    Text(Range<usize>),
    /// What is put in here.
    Include(Include<'t>),
}

/// `<esi:include>`, section 3.1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Include<'t> {
    /// The address of the fragment, its entities (`&amp;` and the like) resolved.
    pub src: Cow<'t, str>,
    /// The address of what is put in its place when it fails.
    pub alt: Option<Cow<'t, str>>,
    /// Whether the page is complete without it (`onerror="continue"`).
    pub may_be_left_out: bool,
}

impl Include<'_> {
    /// The same, for when the template has gone.
    pub fn into_owned(self) -> Include<'static> {
        let own = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        let Include { src, alt, may_be_left_out } = self;
        Include { src: own(src), alt: alt.map(own), may_be_left_out }
    }
}

impl<'t> Template<'t> {
    /// Reads a template.
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
    /// What comes before has been read.
    at: usize,
    /// Text that has been read and not been put down.
    text: Range<usize>,
    /// Where the end of `<!--esi` is that was read last.
    comment_end: Option<usize>,
    /// Ends that were looked for and are not there any more: nobody looks through the rest twice.
    has_no_comment_end: bool,
    has_no_remove_end: bool,
    template: Template<'t>,
}

impl<'t> Reader<'t> {
    /// Where the next thing stands that may not be text.
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

    /// Section 3.7.
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

    /// Section 3.1.
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

    /// Section 3.4.
    fn read_remove(&mut self, at: usize, tag_bytes: usize) {
        let from = at + tag_bytes;
        let end = match self.has_no_remove_end {
            true => None,
            false => find(&self.content[from..], REMOVE_END),
        };
        match end {
            Some(length) => self.leave_out(at..from + length + REMOVE_END.len()),
            None => {
                self.has_no_remove_end = true;
                self.leave(at..from);
            }
        }
    }

    /// An element that stays as it is.
    fn leave(&mut self, at: Range<usize>) {
        self.template.left.get_or_insert(at.start);
        self.template.left_count += 1;
        self.text_to(at.end);
    }

    /// Nothing is sent of this.
    fn leave_out(&mut self, at: Range<usize>) {
        self.text_to(at.start);
        self.at = at.end;
    }

    /// Everything up to here is text. What was left out parts it from the text before that.
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
