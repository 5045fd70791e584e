//! What the store keeps of a page: what reuse needs of the stored response, its content in one or several
//! codings, and for each its header lines as they go over HTTP/1.1, laid out once. What is known of a page, its
//! key, header section and content are in one allocation, so that it holds no more memory than it is counted with.
//!
//! The fields of the stored response are in the header section and nowhere else: of the hundreds of thousands
//! of pages that are kept few are asked for them one by one, and then they are read there.

mod laid;
mod new;
mod select;

pub use laid::{Form, Laid, Plain};
pub use new::NewPage;
pub use select::{Section, Selected, select, select_coding};

use crate::content_decoding;
use bytes::Bytes;
use http::HeaderMap;
use http::header::{HeaderName, HeaderValue};
use http_cache::codings::Coding;
use http_cache::variants::NominatedFields;
use http_cache::{StoredFacts, StoredResponse, Timestamp};
use laid::{Elsewhere, Ends};
use memcache::Item;
use page_store::{Audience, Dependencies, Page, Payload, Store, allocated};
use std::sync::atomic::{AtomicU32, Ordering};

/// What an item keeps beside itself: whether it was asked for.
const SEEN_BYTES: usize = size_of::<memcache::LastRead>() + 2 * size_of::<usize>();

/// What a page in the store knows of itself. What is sent of it stands behind this and its key in the same
/// allocation: [`ReadPage`] reads both.
pub struct StoredPage {
    /// Status, times, tags: what reuse needs.
    pub stored: StoredFacts,
    /// Where the header section ends of the page as it came, in no coding.
    head: u32,
    /// Where the lines of a 304 begin in it, and [`TURN`].
    not_modified: AtomicU32,
    /// What few pages have.
    rare: Option<Box<Rare>>,
}

/// Set where its codings wait to be made, or have been: no header section is that long.
const TURN: u32 = 1 << 31;

/// What few pages have.
#[derive(Default)]
struct Rare {
    /// The same content in codings.
    coded: Coded,
    /// Where the content as it came is, if it is not behind the header section.
    elsewhere: Option<Box<Elsewhere>>,
    beside: Option<Box<Beside>>,
}

/// What hardly any page has.
enum Beside {
    /// Fields of the stored response that are not sent.
    Internal(HeaderMap),
    /// What was stored over the memcached port; then there is no response here, and no request finds it.
    Item(Item),
}

/// The content of a page in codings, the smallest first.
#[derive(Default)]
struct Coded {
    codings: Box<[Coding]>,
    forms: Box<[Laid]>,
}

/// The content of a page in codings, the smallest first; most pages that are not read have none.
#[derive(Clone, Copy)]
pub struct OtherForms<'a>(Option<&'a Coded>);

impl<'a> OtherForms<'a> {
    /// The codings that there are, the smallest form first.
    pub fn codings(self) -> &'a [Coding] {
        self.0.map_or(&[], |coded| &coded.codings)
    }

    /// The form in `coding`, if there is one.
    pub fn get(self, coding: Coding) -> Option<&'a Laid> {
        let coded = self.0?;
        let at = coded.codings.iter().position(|other| *other == coding)?;
        coded.forms.get(at)
    }

    /// The contents with their codings.
    pub fn contents(self) -> Vec<(Coding, Bytes)> {
        let Some(coded) = self.0 else { return Vec::new() };
        let contents = coded.forms.iter().filter_map(Laid::shared);
        coded.codings.iter().copied().zip(contents).collect()
    }

    /// The content out of the coding that is undone quickest; `None` where there is none, or it does
    /// not give so many bytes.
    fn undone(self, bytes: usize) -> Option<Bytes> {
        let quickest = [Coding::Zstd, Coding::Gzip, Coding::Brotli];
        let mut forms = quickest.iter().filter_map(|coding| Some((*coding, self.get(*coding)?)));
        let (coding, form) = forms.next()?;
        let content = content_decoding::whole(coding, form.form().content()?, bytes).ok()?;
        (content.len() == bytes).then(|| content.into())
    }
}

impl Rare {
    fn heap_bytes(&self) -> usize {
        let Coded { codings, forms } = &self.coded;
        let laid: usize = forms.iter().map(Laid::heap_bytes).sum();
        let lists = allocated(size_of_val(&**forms)) + allocated(size_of_val(&**codings));
        let beside = self.beside.as_deref().map_or(0, |beside| {
            let own = match beside {
                Beside::Internal(fields) => fields_bytes(fields),
                Beside::Item(item) => allocated(SEEN_BYTES) + allocated(item.value.len()),
            };
            allocated(size_of::<Beside>()) + own
        });
        let elsewhere = Elsewhere::heap_bytes(self.elsewhere.as_deref());
        allocated(size_of::<Rare>()) + laid + lists + beside + elsewhere
    }
}

impl StoredPage {
    fn of(stored: StoredFacts, ends: Ends, rare: Option<Box<Rare>>) -> StoredPage {
        let Ends { head, not_modified } = ends;
        StoredPage { stored, head, not_modified: AtomicU32::new(not_modified), rare }
    }

    fn ends(&self) -> Ends {
        let not_modified = self.not_modified.load(Ordering::Relaxed) & !TURN;
        Ends { head: self.head, not_modified }
    }

    /// Its content in codings.
    pub fn forms(&self) -> OtherForms<'_> {
        OtherForms(self.rare.as_ref().map(|rare| &rare.coded))
    }

    fn elsewhere(&self) -> Option<&Elsewhere> {
        self.rare.as_ref()?.elsewhere.as_deref()
    }

    fn beside(&self) -> Option<&Beside> {
        self.rare.as_ref()?.beside.as_deref()
    }

    /// Whether it has had its turn to have its codings made: one is enough, whatever came of it.
    pub fn has_turn(&self) -> bool {
        self.not_modified.load(Ordering::Relaxed) & TURN != 0
    }

    /// Takes that turn; false when somebody else has.
    pub fn take_turn(&self) -> bool {
        self.not_modified.fetch_or(TURN, Ordering::Relaxed) & TURN == 0
    }

    /// There was no room for it.
    pub fn give_turn_back(&self) {
        self.not_modified.fetch_and(!TURN, Ordering::Relaxed);
    }

    /// What was stored over the memcached port, if it was.
    pub fn item(&self) -> Option<&Item> {
        match self.beside()? {
            Beside::Item(item) => Some(item),
            Beside::Internal(_) => None,
        }
    }
}

/// A page as the store hands it out.
pub type SharedPage = Page<StoredPage>;

/// All of a page, what it knows of itself and the bytes behind.
pub trait ReadPage {
    /// The page as it came, in no coding.
    fn plain(&self) -> Form<'_>;
    /// The length of the content as it came, in bytes, kept or not.
    fn length(&self) -> usize;
    /// The content as it came: kept, or made again out of a coding.
    fn content(&self) -> Bytes;
    /// The stored response with all its fields, read out of the header section.
    fn response(&self) -> StoredResponse;
    /// The first line of this name among the fields that are sent.
    fn field(&self, name: &HeaderName) -> Option<&[u8]>;
}

impl ReadPage for SharedPage {
    fn plain(&self) -> Form<'_> {
        let page = self.payload();
        page.ends().form(self.bytes(), page.elsewhere())
    }

    fn length(&self) -> usize {
        let page = self.payload();
        page.ends().length(self.bytes(), page.elsewhere())
    }

    fn content(&self) -> Bytes {
        let page = self.payload();
        let whole = || Bytes::from_owner(Whole(self.clone()));
        page.ends().shared(whole, page.elsewhere()).unwrap_or_else(|| {
            let content = page.forms().undone(self.length());
            content.expect("the coding was tried when the content was let go of")
        })
    }

    fn response(&self) -> StoredResponse {
        let internal = match self.payload().beside() {
            Some(Beside::Internal(fields)) => fields.clone(),
            Some(Beside::Item(_)) | None => HeaderMap::new(),
        };
        StoredResponse::of_parts(self.payload().stored.clone(), self.plain().fields(), internal)
    }

    fn field(&self, name: &HeaderName) -> Option<&[u8]> {
        self.plain().field(name)
    }
}

/// A page as the bytes that it is sent of.
struct Whole(SharedPage);

impl AsRef<[u8]> for Whole {
    fn as_ref(&self) -> &[u8] {
        self.0.bytes()
    }
}

impl Payload for StoredPage {
    fn bytes(&self) -> usize {
        self.stored.heap_bytes() + self.rare.as_ref().map_or(0, |rare| rare.heap_bytes())
    }

    /// What varies by anything is somebody's; so is what has an owner or cookies in its key, which is
    /// found out when the key is made again (`rewarm`).
    fn audience(&self) -> Audience {
        let anybodys = self.stored.nominated().is_empty() && !self.stored.is_private();
        match anybodys && self.item().is_none() {
            true => Audience::Anybody,
            false => Audience::Somebody,
        }
    }
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
    for tag in stored.tags().iter() {
        dependencies.tag(tag);
    }
    dependencies
}

/// The number by which the store tells the variants of a page apart.
pub fn variant(stored: &StoredFacts) -> u32 {
    variant_of(stored.nominated())
}

/// The number of the variant with these nominated fields.
pub fn variant_of(nominated: &NominatedFields) -> u32 {
    if nominated.is_empty() {
        return 0;
    }
    xxhash_rust::xxh3::xxh3_64(&nominated.variant_key()) as u32
}

/// When a soft change has marked `page`, if one has.
pub fn marked(page: &Page<StoredPage>) -> Option<Timestamp> {
    page.marked().map(|marked| Timestamp(marked.at_ms))
}

/// The remaining freshness lifetime of a page in seconds, as `Cache-Status` has it (RFC 9211 section 2.4): zero or
/// negative where it is stale. A soft change ends the lifetime of the pages that it marks.
pub fn ttl_seconds(page: &Page<StoredPage>, now: Timestamp) -> i64 {
    let by_age = page.payload().stored.ttl_seconds(now);
    let since = |marked: Timestamp| now.0.saturating_sub(marked.0).div_ceil(1000);
    match marked(page).map(since) {
        Some(seconds) => by_age.min(-i64::try_from(seconds).unwrap_or(i64::MAX)),
        None => by_age,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::StatusCode;

    fn text(bytes: &[u8]) -> String {
        String::from_utf8_lossy(bytes).into_owned()
    }

    fn page(status: StatusCode, lines: &[(&'static str, &'static str)]) -> (HeaderMap, SharedPage) {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, HeaderValue::from_static(value));
        }
        let mut stored = StoredResponse::of_file(headers, 3, Timestamp(0));
        stored.status = status;
        (stored.headers.clone(), NewPage::new(stored, Bytes::from_static(b"abc")).apart())
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
        let whole = text(page.plain().head());
        assert!(whole.starts_with("content-type: text/html"), "{whole}");
        assert!(whole.ends_with("\r\n\r\n"), "{whole}");
        let not_modified = text(page.plain().not_modified());
        assert!(not_modified.starts_with("date: Thu"), "{not_modified}");
        assert!(not_modified.ends_with("\r\n\r\n"), "{not_modified}");
        assert!(!not_modified.contains("content-"), "{not_modified}");
        assert_eq!(whole.lines().count(), lines.len() + 1);
    }

    #[test]
    fn a_page_is_counted_with_all_it_holds() {
        let (_, page) = page(StatusCode::OK, &[("etag", "\"1\"")]);
        let least = page.plain().head().len() + 3 + size_of::<StoredPage>();
        let bytes = page.heap_bytes();
        assert!((least..least + 90).contains(&bytes), "{bytes}, at least {least}");
        println!("a page is {} bytes, facts {}", size_of::<StoredPage>(), size_of::<StoredFacts>());
    }
}
