//! Edge Side Includes: splits a template into text and the fragments between the pieces of text.
//!
//! Source: ESI Language Specification 1.0 (W3C Note, 4 August 2001), with the elements that applications use:
//!
//! | element | result |
//! |---|---|
//! | `<esi:include src="…" alt="…" onerror="continue"/>` | a fragment; if it fails, the `alt` fragment; if that fails too, nothing |
//! | `<esi:remove>…</esi:remove>` | nothing: the content is for clients without ESI |
//! | `<esi:comment text="…"/>` | nothing |
//! | `<!--esi … -->` | its content, parsed like the rest |
//!
//! In [`EsiDialect::LiteSpeed`] elements count anywhere, `<esi_include>` is the same as `<esi:include>`, and
//! `<esi:inline name="…">…</esi:inline>` contains a fragment that is used elsewhere.
//!
//! Invariants: parsing takes time linear in the length, and allocates only the list of parts and the decoded
//! addresses. Texts are bytes of the template, in order. Other elements (`esi:choose` and the like) and
//! incomplete elements stay in the text and are counted. By the standard, a `<![CDATA[ … ]]>` section is text.
//! Not here: fetching fragments, and the access control for their addresses.

use std::borrow::Cow;
use std::ops::Range;

mod element;

use element::{Element, attributes, element_at};

/// The syntax of a template.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EsiDialect {
    /// ESI 1.0.
    #[default]
    Standard,
    /// The elements that LiteSpeed's plugins write.
    LiteSpeed,
}

impl EsiDialect {
    /// Whether the byte ends the prefix of an element's name: `esi:`, or `esi_` in LiteSpeed's second spelling.
    pub(crate) fn is_mark(self, byte: u8) -> bool {
        byte == b':' || (byte == b'_' && self == EsiDialect::LiteSpeed)
    }
}

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

/// A part of a template: text, a fragment, or the content of a fragment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part<'t> {
    /// Text: the range of bytes in the template.
    Text(Range<usize>),
    /// A fragment to insert here.
    Include(Include<'t>),
    /// The content of a fragment. Nothing is inserted here ([`EsiDialect::LiteSpeed`] only).
    Inline(Inline<'t>),
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
    /// LiteSpeed's `cache-control`: the visitors that may share the fragment.
    pub cache_control: Option<Cow<'t, str>>,
    /// LiteSpeed's `cache-tag`: tags of the fragment, separated by commas.
    pub cache_tag: Option<Cow<'t, str>>,
    /// LiteSpeed's `combine`: whether fragments are fetched together.
    pub combine: Combine,
}

/// How an include takes part in a combined request ([`EsiDialect::LiteSpeed`] only).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Combine {
    /// Not at all.
    #[default]
    Alone,
    /// `combine="sub"`: its fragment is requested with the others, from the address of the main one.
    Sub,
    /// `combine="main"`: the address of the combined request.
    Main,
}

/// An element with the content of a fragment, `<esi:inline>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inline<'t> {
    /// The address of the fragment, with entities resolved.
    pub name: Cow<'t, str>,
    /// Scope and lifetime of the fragment: the value of `X-LiteSpeed-Cache-Control`.
    pub cache_control: Cow<'t, str>,
    /// The tags of the fragment, separated by commas.
    pub cache_tag: Option<Cow<'t, str>>,
    /// The whole element, as a range of bytes in the template.
    pub element: Range<usize>,
    /// The content of the fragment, as a range of bytes in the template.
    pub content: Range<usize>,
    /// Whether the element has an end tag. If not, its content is not known, and must not be used.
    pub is_closed: bool,
}

impl Include<'_> {
    /// Copies the borrowed addresses, so that the include can outlive the template.
    pub fn into_owned(self) -> Include<'static> {
        let own = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        let Include { src, alt, may_be_left_out, cache_control, cache_tag, combine } = self;
        let (cache_control, cache_tag) = (cache_control.map(own), cache_tag.map(own));
        Include {
            src: own(src),
            alt: alt.map(own),
            may_be_left_out,
            cache_control,
            cache_tag,
            combine,
        }
    }
}

impl<'t> Template<'t> {
    /// Returns the include elements, in their order.
    pub fn includes(&self) -> impl Iterator<Item = &Include<'t>> + Clone {
        self.parts.iter().filter_map(|part| match part {
            Part::Include(include) => Some(include),
            Part::Text(_) | Part::Inline(_) => None,
        })
    }

    /// Returns the inline elements, in their order, also those without an end tag.
    pub fn inlines(&self) -> impl Iterator<Item = &Inline<'t>> {
        self.parts.iter().filter_map(|part| match part {
            Part::Inline(inline) => Some(inline),
            Part::Text(_) | Part::Include(_) => None,
        })
    }

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
        Template::read_as(content, EsiDialect::Standard)
    }

    /// Parses a template of this dialect.
    ///
    /// ```
    /// use esi::{EsiDialect, Part, Template};
    /// let page = b"var nonce = '<esi:include src='/?lsesi=nonce' as-var='1' />';";
    /// let template = Template::read_as(page, EsiDialect::LiteSpeed);
    /// assert!(matches!(&template.parts[1], Part::Include(include) if include.src == "/?lsesi=nonce"));
    /// ```
    pub fn read_as(content: &'t [u8], syntax: EsiDialect) -> Template<'t> {
        let mut reader = Reader { content, syntax, ..Reader::default() };
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
const REMOVE_END: &[u8] = b"remove>";
const INLINE_END: &[u8] = b"inline>";

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
    syntax: EsiDialect,
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
        if self.syntax == EsiDialect::Standard && rest.starts_with(CDATA) {
            let end = find(rest, CDATA_END).map_or(rest.len(), |end| end + CDATA_END.len());
            return self.text_to(at + end);
        }
        if rest.starts_with(COMMENT) && !rest[COMMENT.len()..].starts_with(b":") {
            return self.read_comment(at);
        }
        match element_at(rest, self.syntax) {
            None => self.text_to(at + 1),
            Some(Element::Start { name: b"include", tag }) => self.read_include(at, tag),
            Some(Element::Start { name: b"remove", tag }) => self.read_remove(at, tag.len()),
            Some(Element::Start { name: b"inline", tag })
                if self.syntax == EsiDialect::LiteSpeed =>
            {
                self.read_inline(at, tag);
            }
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
        let (mut cache_control, mut cache_tag, mut combine) = (None, None, Combine::Alone);
        for (name, value) in attributes(tag) {
            match name {
                b"src" => src = src.or(Some(value)),
                b"alt" => alt = alt.or(Some(value)),
                b"onerror" => may_be_left_out |= value == "continue",
                _ if self.syntax == EsiDialect::Standard => {}
                b"cache-control" => cache_control = cache_control.or(Some(value)),
                b"cache-tag" => cache_tag = cache_tag.or(Some(value)),
                b"combine" if value == "sub" => combine = Combine::Sub,
                b"combine" if value == "main" => combine = Combine::Main,
                _ => {}
            }
        }
        let Some(src) = src else { return self.leave(at..at + tag.len()) };
        self.leave_out(at..at + tag.len());
        self.put_text();
        let include = Include { src, alt, may_be_left_out, cache_control, cache_tag, combine };
        self.template.parts.push(Part::Include(include));
    }

    /// Parses `<esi:inline>` with its content. It is never text, because its content may be for one visitor.
    fn read_inline(&mut self, at: usize, tag: &'t [u8]) {
        let from = at + tag.len();
        let all = self.content.len();
        let (content, element, is_closed) = match self.end_of(from, INLINE_END, false) {
            Some((length, end)) => (from..from + length, at..from + length + end, true),
            // Where the content ends is unknown, so the rest of the template is not sent.
            None => (all..all, at..all, false),
        };
        let (mut name, mut cache_control, mut cache_tag) = (None, None, None);
        for (attribute, value) in attributes(tag) {
            match attribute {
                b"name" => name = name.or(Some(value)),
                b"cache-control" => cache_control = cache_control.or(Some(value)),
                b"cache-tag" => cache_tag = cache_tag.or(Some(value)),
                _ => {}
            }
        }
        self.leave_out(element.clone());
        self.put_text();
        let name = name.unwrap_or_default();
        let cache_control = cache_control.unwrap_or_default();
        let inline = Inline { name, cache_control, cache_tag, element, content, is_closed };
        self.template.parts.push(Part::Inline(inline));
    }

    /// Finds the end tag whose name and `>` are `name`. Returns the length of the content before it, and of
    /// the tag.
    fn end_of(&self, from: usize, name: &[u8], is_known_missing: bool) -> Option<(usize, usize)> {
        const MARK: usize = b"</esi".len();
        let bytes = MARK + 1 + name.len();
        let is_end = |window: &[u8]| {
            window.starts_with(b"</esi")
                && self.syntax.is_mark(window[MARK])
                && window[MARK + 1..] == *name
        };
        let rest = if is_known_missing { &[][..] } else { &self.content[from..] };
        rest.windows(bytes).position(is_end).map(|length| (length, bytes))
    }

    /// Skips `<esi:remove>` with its content (ESI 1.0 section 3.4).
    fn read_remove(&mut self, at: usize, tag_bytes: usize) {
        let from = at + tag_bytes;
        match self.end_of(from, REMOVE_END, self.has_no_remove_end) {
            Some((length, end)) => self.leave_out(at..from + length + end),
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
