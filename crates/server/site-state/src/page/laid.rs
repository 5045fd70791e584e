//! A page in one form as it goes over HTTP/1.1: header section and content, one behind the other in one
//! allocation, so that a hit sends two pieces of one place in memory, and a page takes little beside what is
//! sent of it.
//!
//! The header section is without what is quicker written than read, for each hit: the status line, the length of
//! the content, and the lines that change from hit to hit. The lines that a 304 has, too, are its end, and the
//! empty line.

use bytes::Bytes;
use http::HeaderMap;
use http::header::{HeaderName, HeaderValue};
use http_cache::goes_with_not_modified;
use page_store::allocated;
use std::sync::Arc;

/// Fields of a response, as a rule.
const FIELDS_USUAL: usize = 14;
/// A header section, in bytes, as a rule.
const HEAD_USUAL: usize = 512;

/// The content of a page as it came, in no coding.
pub enum Plain {
    /// To be kept: complete.
    Kept(Bytes),
    /// The same, and kept where it is: somebody else has it as well.
    Shared(Bytes),
    /// Not kept beside its codings, out of which it is made again; so many bytes.
    InCodings(usize),
}

/// A page in one form as it goes over HTTP/1.1, to be read.
#[derive(Clone, Copy)]
pub struct Form<'a> {
    head: &'a [u8],
    not_modified: u32,
    content: Option<&'a [u8]>,
}

impl<'a> Form<'a> {
    /// The lines of the whole response, and the empty one.
    pub fn head(&self) -> &'a [u8] {
        self.head
    }

    /// The lines of a 304, and the empty one.
    pub fn not_modified(&self) -> &'a [u8] {
        &self.head[self.not_modified as usize..]
    }

    /// The content, if it is kept.
    pub fn content(&self) -> Option<&'a [u8]> {
        self.content
    }

    /// The first line of this name.
    pub(super) fn field(&self, name: &HeaderName) -> Option<&'a [u8]> {
        let name = name.as_str().as_bytes();
        lines(self.head).find(|(other, _)| *other == name).map(|(_, value)| value)
    }

    /// The fields that it was laid out from.
    pub(super) fn fields(&self) -> HeaderMap {
        let all = Bytes::copy_from_slice(self.head);
        // With room for those that are added for the client.
        let mut fields = HeaderMap::with_capacity(FIELDS_USUAL);
        for (name, value) in lines(&all) {
            let name = HeaderName::from_bytes(name).expect("what was a name is one");
            let value = HeaderValue::from_maybe_shared(all.slice_ref(value));
            fields.append(name, value.expect("what was a value is one"));
        }
        fields
    }
}

/// Where which part is of what was laid out: header section, then content, if it is not elsewhere.
#[derive(Clone, Copy, Default)]
pub(super) struct Ends {
    /// Where the header section ends.
    pub(super) head: u32,
    /// Where the lines of a 304 begin.
    pub(super) not_modified: u32,
}

impl Ends {
    /// The form in `bytes`.
    pub(super) fn form<'a>(self, bytes: &'a [u8], elsewhere: Option<&'a Elsewhere>) -> Form<'a> {
        let (head, behind) = bytes.split_at(self.head as usize);
        let content = match elsewhere {
            None => Some(behind),
            Some(Elsewhere::Apart(content)) => Some(&content[..]),
            Some(Elsewhere::Nowhere(_)) => None,
        };
        Form { head, not_modified: self.not_modified, content }
    }

    /// The length of the content in bytes, kept or not, where all of it is `bytes`.
    pub(super) fn length(self, bytes: &[u8], elsewhere: Option<&Elsewhere>) -> usize {
        match elsewhere {
            None => bytes.len() - self.head as usize,
            Some(Elsewhere::Apart(content)) => content.len(),
            Some(Elsewhere::Nowhere(length)) => *length,
        }
    }

    /// The content to be held on to; `whole` is all that was laid out.
    pub(super) fn shared(
        self,
        whole: impl FnOnce() -> Bytes,
        elsewhere: Option<&Elsewhere>,
    ) -> Option<Bytes> {
        match elsewhere {
            None => Some(whole().slice(self.head as usize..)),
            Some(Elsewhere::Apart(content)) => Some(Bytes::clone(content)),
            Some(Elsewhere::Nowhere(_)) => None,
        }
    }
}

/// Where content is that is not behind the header section.
pub(super) enum Elsewhere {
    /// Where somebody else has it as well.
    Apart(Bytes),
    /// Nowhere; so many bytes.
    Nowhere(usize),
}

impl Elsewhere {
    pub(super) fn heap_bytes(this: Option<&Elsewhere>) -> usize {
        this.map_or(0, |_| allocated(size_of::<Elsewhere>()))
    }
}

/// What was laid out, in pieces: not in one allocation yet.
pub(super) struct Pieces {
    pub(super) ends: Ends,
    pub(super) head: Vec<u8>,
    /// What is behind it.
    pub(super) content: Bytes,
    pub(super) elsewhere: Option<Box<Elsewhere>>,
}

impl Pieces {
    /// Of a response with these fields.
    pub(super) fn of(headers: &HeaderMap, plain: Plain) -> Pieces {
        let (content, elsewhere) = match plain {
            Plain::Kept(content) => (content, None),
            Plain::Shared(content) => (Bytes::new(), Some(Elsewhere::Apart(content))),
            Plain::InCodings(length) => (Bytes::new(), Some(Elsewhere::Nowhere(length))),
        };
        let mut head = Vec::with_capacity(HEAD_USUAL);
        let not_modified = write_head(headers, &mut head) as u32;
        let ends = Ends { head: head.len() as u32, not_modified };
        Pieces { ends, head, content, elsewhere: elsewhere.map(Box::new) }
    }
}

/// A page in a coding: its header section, and its content behind it, in one allocation.
pub struct Laid {
    bytes: Arc<[u8]>,
    ends: Ends,
    elsewhere: Option<Box<Elsewhere>>,
}

impl Laid {
    /// Of a response with these fields.
    pub(super) fn of(headers: &HeaderMap, plain: Plain) -> Laid {
        let Pieces { ends, head, content, elsewhere } = Pieces::of(headers, plain);
        Laid { bytes: joined(&head, &content), ends, elsewhere }
    }

    /// As it is sent.
    pub fn form(&self) -> Form<'_> {
        self.ends.form(&self.bytes, self.elsewhere.as_deref())
    }

    /// Its content, if it is kept, to be held on to.
    pub fn shared(&self) -> Option<Bytes> {
        self.ends.shared(|| Bytes::from_owner(self.bytes.clone()), self.elsewhere.as_deref())
    }

    /// What it takes on the heap; of what somebody else has as well, nothing.
    pub(super) fn heap_bytes(&self) -> usize {
        allocated(2 * size_of::<usize>() + self.bytes.len())
            + Elsewhere::heap_bytes(self.elsewhere.as_deref())
    }
}

/// Both, one after the other.
fn joined(head: &[u8], content: &[u8]) -> Arc<[u8]> {
    let none = std::iter::repeat_n(0, head.len() + content.len());
    let mut bytes: Arc<[u8]> = page_heap::apart(|| none.collect());
    let all = Arc::get_mut(&mut bytes).expect("nobody else has it yet");
    all[..head.len()].copy_from_slice(head);
    all[head.len()..].copy_from_slice(content);
    bytes
}

/// Writes the header section of a response with these fields; returns where in it the lines of a 304 begin.
fn write_head(headers: &HeaderMap, bytes: &mut Vec<u8>) -> usize {
    let goes = goes_with_not_modified(headers);
    write_lines(headers.iter().filter(|(name, _)| !goes(name)), bytes);
    let not_modified = bytes.len();
    write_lines(headers.iter().filter(|(name, _)| goes(name)), bytes);
    bytes.extend_from_slice(b"\r\n");
    not_modified
}

/// The lines of a header section that was laid out here, without the empty one. Neither a name nor a value has
/// what ends a line in it, nor a name what ends that.
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
