//! One form of a page as it is sent over HTTP/1.1. Header section and content are adjacent in one
//! allocation. So a hit sends two slices of one allocation, and a page needs little additional
//! memory.
//!
//! The header section omits the status line, the content length and the lines that differ from hit
//! to hit: they are written for each hit. The lines that a 304 has, too, are at its end, followed
//! by the empty line.

use bytes::Bytes;
use http::HeaderMap;
use http::header::{HeaderName, HeaderValue};
use http_cache::goes_with_not_modified;
use page_store::allocated;
use std::sync::Arc;

/// The usual number of fields of a response.
const FIELDS_USUAL: usize = 14;
/// The usual length of a header section, in bytes.
const HEAD_USUAL: usize = 512;

/// The uncompressed content of a page.
pub enum IdentityContent {
    /// The complete content, to be copied into the page's allocation.
    Kept(Bytes),
    /// The complete content, to be referenced, because it is also used elsewhere.
    Shared(Bytes),
    /// Not stored, because it can be decompressed from another form; with its length in bytes.
    InCodings(usize),
}

/// A view of one form of a page, as it is sent over HTTP/1.1.
#[derive(Clone, Copy)]
pub struct WireForm<'a> {
    head: &'a [u8],
    not_modified: u32,
    content: Option<&'a [u8]>,
}

impl<'a> WireForm<'a> {
    /// The header lines of the whole response, and the empty line.
    pub fn head(&self) -> &'a [u8] {
        self.head
    }

    /// The header lines of a 304, and the empty line.
    pub fn not_modified(&self) -> &'a [u8] {
        &self.head[self.not_modified as usize..]
    }

    /// The content, if it is stored.
    pub fn content(&self) -> Option<&'a [u8]> {
        self.content
    }

    /// The value of the first line with this name.
    pub(super) fn field(&self, name: &HeaderName) -> Option<&'a [u8]> {
        let name = name.as_str().as_bytes();
        lines(self.head).find(|(other, _)| *other == name).map(|(_, value)| value)
    }

    /// The fields from which the header section was laid out.
    pub(super) fn fields(&self) -> HeaderMap {
        let all = Bytes::copy_from_slice(self.head);
        // With capacity for the fields that are added for the client.
        let mut fields = HeaderMap::with_capacity(FIELDS_USUAL);
        for (name, value) in lines(&all) {
            let name = HeaderName::from_bytes(name).expect("what was a name is one");
            let value = HeaderValue::from_maybe_shared(all.slice_ref(value));
            fields.append(name, value.expect("what was a value is one"));
        }
        fields
    }
}

/// The offsets of the parts: the header section, then the content unless it is elsewhere.
#[derive(Clone, Copy, Default)]
pub(super) struct Ends {
    /// The end of the header section.
    pub(super) head: u32,
    /// The beginning of the lines of a 304.
    pub(super) not_modified: u32,
}

impl Ends {
    /// The form in `bytes`.
    pub(super) fn form<'a>(
        self,
        bytes: &'a [u8],
        elsewhere: Option<&'a ContentPlace>,
    ) -> WireForm<'a> {
        let (head, behind) = bytes.split_at(self.head as usize);
        let content = match elsewhere {
            None => Some(behind),
            Some(ContentPlace::Apart(content)) => Some(&content[..]),
            Some(ContentPlace::Nowhere(_)) => None,
        };
        WireForm { head, not_modified: self.not_modified, content }
    }

    /// The length of the content in bytes, stored or not; `bytes` is the whole form.
    pub(super) fn length(self, bytes: &[u8], elsewhere: Option<&ContentPlace>) -> usize {
        match elsewhere {
            None => bytes.len() - self.head as usize,
            Some(ContentPlace::Apart(content)) => content.len(),
            Some(ContentPlace::Nowhere(length)) => *length,
        }
    }

    /// The content as a reference-counted `Bytes`; `whole` returns the whole form.
    pub(super) fn shared(
        self,
        whole: impl FnOnce() -> Bytes,
        elsewhere: Option<&ContentPlace>,
    ) -> Option<Bytes> {
        match elsewhere {
            None => Some(whole().slice(self.head as usize..)),
            Some(ContentPlace::Apart(content)) => Some(Bytes::clone(content)),
            Some(ContentPlace::Nowhere(_)) => None,
        }
    }
}

/// The location of content that does not follow the header section.
pub(super) enum ContentPlace {
    /// In a separate allocation, which is also used elsewhere.
    Apart(Bytes),
    /// Not stored; with its length in bytes.
    Nowhere(usize),
}

impl ContentPlace {
    pub(super) fn heap_bytes(this: Option<&ContentPlace>) -> usize {
        this.map_or(0, |_| allocated(size_of::<ContentPlace>()))
    }
}

/// The parts of a form, not yet in one allocation.
pub(super) struct Pieces {
    pub(super) ends: Ends,
    pub(super) head: Vec<u8>,
    /// The content that will follow the header section.
    pub(super) content: Bytes,
    pub(super) elsewhere: Option<Box<ContentPlace>>,
}

impl Pieces {
    /// Lays out a response with these fields.
    pub(super) fn of(headers: &HeaderMap, plain: IdentityContent) -> Pieces {
        let (content, elsewhere) = match plain {
            IdentityContent::Kept(content) => (content, None),
            IdentityContent::Shared(content) => (Bytes::new(), Some(ContentPlace::Apart(content))),
            IdentityContent::InCodings(length) => {
                (Bytes::new(), Some(ContentPlace::Nowhere(length)))
            }
        };
        let mut head = Vec::with_capacity(HEAD_USUAL);
        let not_modified = write_head(headers, &mut head) as u32;
        let ends = Ends { head: head.len() as u32, not_modified };
        Pieces { ends, head, content, elsewhere: elsewhere.map(Box::new) }
    }
}

/// A compressed form of a page: its header section followed by its content, in one allocation.
pub struct EncodedForm {
    bytes: Arc<[u8]>,
    ends: Ends,
    elsewhere: Option<Box<ContentPlace>>,
}

impl EncodedForm {
    /// Lays out a response with these fields.
    pub(super) fn of(headers: &HeaderMap, plain: IdentityContent) -> EncodedForm {
        let Pieces { ends, head, content, elsewhere } = Pieces::of(headers, plain);
        EncodedForm { bytes: joined(&head, &content), ends, elsewhere }
    }

    /// The form as it is sent.
    pub fn form(&self) -> WireForm<'_> {
        self.ends.form(&self.bytes, self.elsewhere.as_deref())
    }

    /// The content, if it is stored, as a reference-counted `Bytes`.
    pub fn shared(&self) -> Option<Bytes> {
        self.ends.shared(|| Bytes::from_owner(self.bytes.clone()), self.elsewhere.as_deref())
    }

    /// The heap memory of this form in bytes, without content that is also used elsewhere.
    pub(super) fn heap_bytes(&self) -> usize {
        allocated(2 * size_of::<usize>() + self.bytes.len())
            + ContentPlace::heap_bytes(self.elsewhere.as_deref())
    }
}

/// Copies both into one allocation.
fn joined(head: &[u8], content: &[u8]) -> Arc<[u8]> {
    let none = std::iter::repeat_n(0, head.len() + content.len());
    let mut bytes: Arc<[u8]> = page_heap::apart(|| none.collect());
    let all = Arc::get_mut(&mut bytes).expect("nobody else has it yet");
    all[..head.len()].copy_from_slice(head);
    all[head.len()..].copy_from_slice(content);
    bytes
}

/// Writes the header section of a response with these fields. Returns the offset at which the lines
/// of a 304 begin.
fn write_head(headers: &HeaderMap, bytes: &mut Vec<u8>) -> usize {
    let goes = goes_with_not_modified(headers);
    write_lines(headers.iter().filter(|(name, _)| !goes(name)), bytes);
    let not_modified = bytes.len();
    write_lines(headers.iter().filter(|(name, _)| goes(name)), bytes);
    bytes.extend_from_slice(b"\r\n");
    not_modified
}

/// The lines of a header section that was laid out here, without the empty line. No name or value
/// contains a line end, and no name contains the separator.
fn lines(bytes: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    bytes.split(|byte| *byte == b'\n').filter_map(|line| {
        let line = line.strip_suffix(b"\r")?;
        let colon = line.iter().position(|byte| *byte == b':')?;
        Some((&line[..colon], line.get(colon + b": ".len()..)?))
    })
}

fn write_lines<'a>(
    lines: impl Iterator<Item = (&'a HeaderName, &'a HeaderValue)>,
    out: &mut Vec<u8>,
) {
    for (name, value) in lines {
        out.extend_from_slice(name.as_str().as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
}
