//! What the store keeps of a page: what reuse needs of the stored response, its content in one or several
//! codings, and for each its header section as it goes over HTTP/1.1, laid out once. Header section and
//! content are in one allocation of their own, so that a page holds no more memory than it is counted with.
//!
//! The fields of the stored response are in the header section and nowhere else: of the hundreds of thousands
//! of pages that are kept few are asked for them one by one, and then they are read there.

mod laid;

pub use laid::{Laid, Plain};

use crate::codings;
use bytes::Bytes;
use http::HeaderMap;
use http::header::{HeaderName, HeaderValue};
use http_cache::codings::{Coding, describe};
use http_cache::{Stored, StoredFacts, Timestamp};
use memcache::Item;
use page_store::{Audience, Dependencies, Page, Payload, Store, allocated};
use std::sync::atomic::{AtomicBool, Ordering};

/// What an item keeps beside itself: whether it was asked for.
const SEEN_BYTES: usize = size_of::<memcache::Seen>() + 2 * size_of::<usize>();

/// A page in the store.
pub struct StoredPage {
    /// Status, times, tags: what reuse needs.
    pub stored: StoredFacts,
    /// The page as it came, in no coding.
    pub plain: Laid,
    /// The same content in codings.
    pub forms: OtherForms,
    /// What few pages have.
    beside: Option<Box<Beside>>,
    /// Whether its codings wait to be made, or have been.
    coding: AtomicBool,
}

/// What few pages have.
enum Beside {
    /// Fields of the stored response that are not sent.
    Internal(HeaderMap),
    /// What was stored over the memcached port; then there is no response here, and no request finds it.
    Item(Item),
}

/// The content of a page in codings, the smallest first; most pages that are not read have none.
#[derive(Default)]
pub struct OtherForms(Option<Box<Coded>>);

struct Coded {
    codings: Box<[Coding]>,
    forms: Box<[Laid]>,
}

impl OtherForms {
    /// Lays out the header sections of `stored` in these forms.
    fn of(
        stored: &Stored,
        mut coded: Vec<(Coding, Bytes)>,
        kept: fn(Bytes) -> Plain,
    ) -> OtherForms {
        if coded.is_empty() {
            return OtherForms(None);
        }
        coded.sort_by_key(|(_, content)| content.len());
        let codings = coded.iter().map(|(coding, _)| *coding).collect();
        let form = |(coding, content): (Coding, Bytes)| {
            let mut headers = stored.headers.clone();
            describe(&mut headers, coding);
            Laid::of(stored, &headers, kept(content))
        };
        let forms = coded.into_iter().map(form).collect();
        OtherForms(Some(Box::new(Coded { codings, forms })))
    }

    /// The codings that there are, the smallest form first.
    pub fn codings(&self) -> &[Coding] {
        self.0.as_ref().map_or(&[], |coded| &coded.codings)
    }

    /// The form in `coding`, if there is one.
    pub fn get(&self, coding: Coding) -> Option<&Laid> {
        let coded = self.0.as_ref()?;
        let at = coded.codings.iter().position(|other| *other == coding)?;
        coded.forms.get(at)
    }

    /// The contents with their codings.
    pub fn contents(&self) -> Vec<(Coding, Bytes)> {
        let Some(coded) = &self.0 else { return Vec::new() };
        let contents = coded.forms.iter().filter_map(Laid::shared);
        coded.codings.iter().copied().zip(contents).collect()
    }

    fn bytes(&self) -> usize {
        let Some(coded) = &self.0 else { return 0 };
        let forms: usize = coded.forms.iter().map(Laid::heap_bytes).sum();
        let lists = allocated(size_of_val(&*coded.forms)) + allocated(size_of_val(&*coded.codings));
        forms + lists + allocated(size_of::<Coded>())
    }
}

impl StoredPage {
    /// A page, its header section laid out.
    pub fn new(stored: Stored, content: Bytes) -> StoredPage {
        StoredPage::with_forms(stored, content, Vec::new())
    }

    /// A page whose content is there in codings as well.
    pub fn with_forms(stored: Stored, content: Bytes, coded: Vec<(Coding, Bytes)>) -> StoredPage {
        StoredPage::made(stored, content, coded).0
    }

    /// The same, and the fields that it was laid out from, for the answer to whoever has it made.
    pub fn made(
        stored: Stored,
        content: Bytes,
        coded: Vec<(Coding, Bytes)>,
    ) -> (StoredPage, HeaderMap) {
        StoredPage::laid_out(stored, Plain::Kept(content), coded, Plain::Kept)
    }

    /// A page as it was before: content, codings.
    pub fn restored(stored: Stored, plain: Plain, coded: Vec<(Coding, Bytes)>) -> StoredPage {
        StoredPage::laid_out(stored, plain, coded, Plain::Kept).0
    }

    /// A file as a page: its content, and that in codings, is in memory already and stays there.
    pub fn of_file(stored: Stored, plain: Plain, coded: Vec<(Coding, Bytes)>) -> StoredPage {
        StoredPage::laid_out(stored, plain, coded, Plain::Shared).0
    }

    fn laid_out(
        stored: Stored,
        plain: Plain,
        coded: Vec<(Coding, Bytes)>,
        kept: fn(Bytes) -> Plain,
    ) -> (StoredPage, HeaderMap) {
        let plain = Laid::of(&stored, &stored.headers, plain);
        let forms = OtherForms::of(&stored, coded, kept);
        let (stored, fields, internal) = stored.into_parts();
        let internal = (!internal.is_empty()).then(|| Beside::Internal(owned(&internal)));
        let coding = AtomicBool::new(false);
        let beside = internal.map(Box::new);
        (StoredPage { stored, plain, forms, beside, coding }, fields)
    }

    /// The stored response with all its fields, read out of the header section.
    pub fn response(&self) -> Stored {
        let internal = match self.beside.as_deref() {
            Some(Beside::Internal(fields)) => fields.clone(),
            Some(Beside::Item(_)) | None => HeaderMap::new(),
        };
        Stored::of_parts(self.stored.clone(), self.plain.fields(), internal)
    }

    /// The first line of this name among the fields that are sent.
    pub fn field(&self, name: &HeaderName) -> Option<&[u8]> {
        self.plain.field(name)
    }

    /// The content as it came: kept, or made again out of a coding.
    pub fn content(&self) -> Bytes {
        self.plain.shared().unwrap_or_else(|| {
            let content = self.undone(self.plain.length());
            content.expect("the coding was tried when the content was let go of")
        })
    }

    /// The content out of the coding that is undone quickest; `None` where there is none, or it does
    /// not give so many bytes.
    fn undone(&self, bytes: usize) -> Option<Bytes> {
        let quickest = [Coding::Zstd, Coding::Gzip, Coding::Brotli];
        let mut forms =
            quickest.iter().filter_map(|coding| Some((*coding, self.forms.get(*coding)?)));
        let (coding, form) = forms.next()?;
        let content = codings::whole(coding, form.content()?, bytes).ok()?;
        (content.len() == bytes).then(|| content.into())
    }

    /// Whether it has had its turn to have its codings made: one is enough, whatever came of it.
    pub fn has_turn(&self) -> bool {
        self.coding.load(Ordering::Relaxed)
    }

    /// Takes that turn; false when somebody else has.
    pub fn take_turn(&self) -> bool {
        !self.coding.swap(true, Ordering::Relaxed)
    }

    /// There was no room for it.
    pub fn give_turn_back(&self) {
        self.coding.store(false, Ordering::Relaxed);
    }

    /// The same page without its content as it came, if that can be made again out of its codings.
    pub fn without_plain(mut self) -> StoredPage {
        let again = self.plain.content().map(|content| (self.undone(content.len()), content));
        if let Some((Some(again), content)) = again
            && again == *content
        {
            self.plain = self.plain.without_content();
        }
        self
    }

    /// What was stored over the memcached port.
    pub fn of_item(item: Item) -> StoredPage {
        let stored = Stored::of_file(HeaderMap::new(), 0, Timestamp(item.stored.0));
        let (stored, ..) = stored.into_parts();
        let (plain, forms) = (Laid::empty(), OtherForms::default());
        let beside = Some(Box::new(Beside::Item(item)));
        StoredPage { stored, plain, forms, beside, coding: AtomicBool::new(false) }
    }

    /// What was stored over the memcached port, if it was.
    pub fn item(&self) -> Option<&Item> {
        match self.beside.as_deref() {
            Some(Beside::Item(item)) => Some(item),
            Some(Beside::Internal(_)) | None => None,
        }
    }
}

impl Payload for StoredPage {
    fn bytes(&self) -> usize {
        let beside = self.beside.as_deref().map_or(0, |beside| {
            let own = match beside {
                Beside::Internal(fields) => fields_bytes(fields),
                Beside::Item(item) => allocated(SEEN_BYTES) + allocated(item.value.len()),
            };
            allocated(size_of::<Beside>()) + own
        });
        self.stored.heap_bytes() + self.plain.heap_bytes() + self.forms.bytes() + beside
    }

    /// What varies by anything is somebody's; so is what has an owner or cookies in its key, which is
    /// found out when the key is made again (`rewarm`).
    fn audience(&self) -> Audience {
        let anybodys = self.stored.nominated.is_empty() && !self.stored.is_private();
        match anybodys && self.item().is_none() {
            true => Audience::Anybody,
            false => Audience::Somebody,
        }
    }
}

/// The same fields in memory that holds nothing else.
fn owned(fields: &HeaderMap) -> HeaderMap {
    let own = |value: &HeaderValue| HeaderValue::from_bytes(value.as_bytes());
    fields
        .iter()
        .map(|(name, value)| (name.clone(), own(value).expect("what is a value stays one")))
        .collect()
}

/// What a map of fields takes with its values, at most.
fn fields_bytes(fields: &HeaderMap) -> usize {
    let values: usize = fields
        .iter()
        .map(|(name, value)| allocated(name.as_str().len()) + allocated(value.len()))
        .sum();
    let entry = size_of::<HeaderName>() + size_of::<HeaderValue>() + 4 * size_of::<usize>();
    let room = fields.capacity().max(fields.len()) * 4 / 3;
    allocated(room * entry) + allocated(room * 4) + values
}

/// What a page at `path_and_query` with this stored response depends on.
pub fn dependencies(
    stored: &StoredFacts,
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
pub fn variant(stored: &StoredFacts) -> u64 {
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

#[cfg(test)]
mod tests {
    use super::*;
    use http::StatusCode;

    fn text(bytes: &[u8]) -> String {
        String::from_utf8_lossy(bytes).into_owned()
    }

    fn page(status: StatusCode, lines: &[(&'static str, &'static str)]) -> (HeaderMap, StoredPage) {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, HeaderValue::from_static(value));
        }
        let mut stored = Stored::of_file(headers, 3, Timestamp(0));
        stored.status = status;
        (stored.headers.clone(), StoredPage::new(stored, Bytes::from_static(b"abc")))
    }

    #[test]
    fn the_fields_are_read_again_as_they_were() {
        let lines = [
            ("date", "Thu, 01 Jan 1970 00:00:00 GMT"),
            ("content-type", "text/html; charset=utf-8"),
            ("x-empty", ""),
            ("x-colons", "a: b: c"),
            ("set-cookie", "a=1"),
            ("set-cookie", "b=2"),
            ("etag", "\"1\""),
        ];
        let (headers, page) = page(StatusCode::NOT_FOUND, &lines);
        assert_eq!(page.response().headers, headers);
        let cookies: Vec<_> = headers.get_all("set-cookie").iter().collect();
        assert_eq!(cookies, ["a=1", "b=2"], "in their order");
        let whole = text(page.plain.head());
        assert!(whole.starts_with("HTTP/1.1 404 Not Found\r\ncontent-type: text/html"), "{whole}");
        assert!(whole.contains("\r\ncontent-length: 3\r\n") && whole.ends_with("\r\n"), "{whole}");
        let not_modified = text(&page.plain.not_modified().concat());
        assert!(
            not_modified.starts_with("HTTP/1.1 304 Not Modified\r\ndate: Thu"),
            "{not_modified}"
        );
        assert!(!not_modified.contains("content-"), "{not_modified}");
        assert_eq!(whole.lines().count(), lines.len() + 2);
    }

    #[test]
    fn a_204_has_no_length() {
        let (_, page) = page(StatusCode::NO_CONTENT, &[]);
        assert!(!text(page.plain.head()).contains("content-length"));
    }

    #[test]
    fn a_page_is_counted_with_all_it_holds() {
        let (_, page) = page(StatusCode::OK, &[("etag", "\"1\"")]);
        let least = page.plain.head().len() + 3 + 3;
        assert!((least..least + 150).contains(&page.bytes()), "{}", page.bytes());
        println!("a page is {} bytes, facts {}", size_of::<StoredPage>(), size_of::<StoredFacts>());
    }
}
