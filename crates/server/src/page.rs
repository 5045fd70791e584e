//! What the store keeps of a page: the stored response, its content in one or several codings, and for
//! each its header sections as they go over HTTP/1.1, laid out once. Contents and header sections are in
//! allocations of their own, so that a page holds no more memory than it is counted with.

use crate::codings;
use bytes::Bytes;
use http::HeaderMap;
use http::header::{HeaderName, HeaderValue};
use http_cache::codings::{Coding, describe};
use http_cache::{Stored, Timestamp, not_modified_fields};
use memcache::Item;
use page_store::{Audience, Dependencies, Page, Payload, Store};

/// What an item keeps beside itself: whether it was asked for.
const SEEN_BYTES: usize = size_of::<memcache::Seen>() + 2 * size_of::<usize>();

/// A page in the store.
pub struct StoredPage {
    /// Status, header lines, tags, and what reuse needs.
    pub stored: Stored,
    /// The content as it came.
    pub plain: Plain,
    /// The header sections of a hit.
    pub heads: Heads,
    /// The same content in codings.
    pub forms: OtherForms,
    /// What was stored over the memcached port; then there is no response here, and no request finds it.
    pub item: Option<Box<Item>>,
}

/// The content of a page as it came, in no coding.
pub enum Plain {
    /// Kept: complete, in an allocation of its own.
    Kept(Bytes),
    /// Not kept beside its codings, out of which it is made again; so many bytes.
    InCodings(usize),
}

impl Plain {
    /// Its length in bytes, kept or not.
    pub fn length(&self) -> usize {
        match self {
            Plain::Kept(content) => content.len(),
            Plain::InCodings(bytes) => *bytes,
        }
    }

    /// The bytes that are kept.
    pub fn kept(&self) -> Option<&Bytes> {
        match self {
            Plain::Kept(content) => Some(content),
            Plain::InCodings(_) => None,
        }
    }
}

/// The content of a page in codings, the smallest first.
#[derive(Default)]
pub struct OtherForms {
    codings: Box<[Coding]>,
    forms: Box<[Form]>,
}

/// Content in a coding.
pub struct Form {
    /// The coded content.
    pub content: Bytes,
    /// The header sections of a hit.
    pub heads: Heads,
}

impl OtherForms {
    /// Lays out the header sections of `stored` in these forms.
    fn of(stored: &Stored, mut coded: Vec<(Coding, Bytes)>) -> OtherForms {
        coded.sort_by_key(|(_, content)| content.len());
        let codings = coded.iter().map(|(coding, _)| *coding).collect();
        let form = |(coding, content): (Coding, Bytes)| {
            let mut stored = stored.clone();
            describe(&mut stored.headers, coding);
            Form { heads: Heads::of(&stored, content.len()), content }
        };
        OtherForms { codings, forms: coded.into_iter().map(form).collect() }
    }

    /// The codings that there are, the smallest form first.
    pub fn codings(&self) -> &[Coding] {
        &self.codings
    }

    /// The form in `coding`, if there is one.
    pub fn get(&self, coding: Coding) -> Option<&Form> {
        let at = self.codings.iter().position(|other| *other == coding)?;
        self.forms.get(at)
    }

    /// The contents with their codings.
    pub fn contents(&self) -> Vec<(Coding, Bytes)> {
        let contents = self.forms.iter().map(|form| form.content.clone());
        self.codings.iter().copied().zip(contents).collect()
    }

    fn bytes(&self) -> usize {
        let form = |form: &Form| form.content.len() + form.heads.bytes.len();
        let forms: usize = self.forms.iter().map(form).sum();
        forms + size_of_val(&*self.forms) + size_of_val(&*self.codings)
    }
}

impl StoredPage {
    /// A page, its header sections laid out.
    pub fn new(stored: Stored, content: Bytes) -> StoredPage {
        StoredPage::with_forms(stored, content, Vec::new())
    }

    /// A page whose content is there in codings as well.
    pub fn with_forms(
        mut stored: Stored,
        content: Bytes,
        coded: Vec<(Coding, Bytes)>,
    ) -> StoredPage {
        stored.own_values();
        let heads = Heads::of(&stored, content.len());
        let forms = OtherForms::of(&stored, coded);
        StoredPage { stored, plain: Plain::Kept(content), heads, forms, item: None }
    }

    /// A page as it was before: content, codings.
    pub fn restored(mut stored: Stored, plain: Plain, coded: Vec<(Coding, Bytes)>) -> StoredPage {
        stored.own_values();
        let heads = Heads::of(&stored, plain.length());
        let forms = OtherForms::of(&stored, coded);
        StoredPage { stored, plain, heads, forms, item: None }
    }

    /// The content as it came: kept, or made again out of a coding.
    pub fn content(&self) -> Bytes {
        match &self.plain {
            Plain::Kept(content) => content.clone(),
            Plain::InCodings(bytes) => {
                let content = self.undone(*bytes);
                content.expect("the coding was tried when the content was let go of")
            }
        }
    }

    /// The content out of the coding that is undone quickest; `None` where there is none, or it does
    /// not give so many bytes.
    fn undone(&self, bytes: usize) -> Option<Bytes> {
        let quickest = [Coding::Zstd, Coding::Gzip, Coding::Brotli];
        let mut forms =
            quickest.iter().filter_map(|coding| Some((*coding, self.forms.get(*coding)?)));
        let (coding, form) = forms.next()?;
        let content = codings::whole(coding, &form.content, bytes).ok()?;
        (content.len() == bytes).then(|| content.into())
    }

    /// The same page without its content as it came, if that can be made again out of its codings.
    pub fn without_plain(mut self) -> StoredPage {
        if let Plain::Kept(content) = &self.plain
            && self.undone(content.len()).as_ref() == Some(content)
        {
            self.plain = Plain::InCodings(content.len());
        }
        self
    }

    /// What was stored over the memcached port.
    pub fn of_item(item: Item) -> StoredPage {
        let stored = Stored::of_file(HeaderMap::new(), 0, Timestamp(item.stored.0));
        let heads = Heads { bytes: Box::default(), whole: 0 };
        let (plain, forms) = (Plain::Kept(Bytes::new()), OtherForms::default());
        StoredPage { stored, plain, heads, forms, item: Some(Box::new(item)) }
    }
}

impl Payload for StoredPage {
    fn bytes(&self) -> usize {
        let kept = self.plain.kept().map_or(0, Bytes::len);
        let item =
            self.item.as_ref().map_or(0, |item| size_of::<Item>() + SEEN_BYTES + item.value.len());
        self.stored.heap_bytes() + self.heads.bytes.len() + kept + self.forms.bytes() + item
    }

    /// What varies by anything is somebody's; so is what has an owner or cookies in its key, which is
    /// found out when the key is made again (`rewarm`).
    fn audience(&self) -> Audience {
        let anybodys = self.stored.nominated.is_empty() && !self.stored.is_private();
        match anybodys && self.item.is_none() {
            true => Audience::Anybody,
            false => Audience::Somebody,
        }
    }
}

/// The header sections of a page as HTTP/1.1 has them, each without the lines that change from hit to
/// hit and without the empty line: one for the whole, one for a 304.
pub struct Heads {
    bytes: Box<[u8]>,
    whole: usize,
}

impl Heads {
    fn of(stored: &Stored, content_bytes: usize) -> Heads {
        let mut bytes = Vec::with_capacity(1024);
        bytes.extend_from_slice(b"HTTP/1.1 ");
        bytes.extend_from_slice(stored.status.as_str().as_bytes());
        bytes.push(b' ');
        let reason = stored.status.canonical_reason().unwrap_or("Unknown");
        bytes.extend_from_slice(reason.as_bytes());
        bytes.extend_from_slice(b"\r\n");
        write_lines(stored.headers.iter(), &mut bytes);
        // RFC 9110 section 8.6: no Content-Length in a 204.
        if stored.status != http::StatusCode::NO_CONTENT {
            bytes.extend_from_slice(format!("content-length: {content_bytes}\r\n").as_bytes());
        }
        let whole = bytes.len();
        bytes.extend_from_slice(b"HTTP/1.1 304 Not Modified\r\n");
        write_lines(not_modified_fields(stored), &mut bytes);
        Heads { bytes: bytes.into(), whole }
    }

    /// The status line and the lines of the whole response.
    pub fn whole(&self) -> &[u8] {
        &self.bytes[..self.whole]
    }

    /// The status line and the lines of a 304.
    pub fn not_modified(&self) -> &[u8] {
        &self.bytes[self.whole..]
    }
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

/// What a page at `path_and_query` with this stored response depends on.
pub fn dependencies(
    stored: &Stored,
    store: &Store<StoredPage>,
    site: page_store::Site,
    path_and_query: &str,
) -> Dependencies {
    let mut dependencies = store.dependencies(site, path_and_query.as_bytes());
    for tag in stored.tags.iter() {
        dependencies.tag(tag);
    }
    dependencies
}

/// The number by which the store tells the variants of a page apart.
pub fn variant(stored: &Stored) -> u64 {
    if stored.nominated.is_empty() {
        return 0;
    }
    xxhash_rust::xxh3::xxh3_64(&stored.nominated.variant_key())
}

/// When a soft change has marked `page`, if one has.
pub fn marked(page: &Page<StoredPage>) -> Option<Timestamp> {
    page.marked().map(|marked| Timestamp(marked.at_ms))
}

/// A page as the store hands it out.
pub type SharedPage = std::sync::Arc<Page<StoredPage>>;
