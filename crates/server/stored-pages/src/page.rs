//! A stored page: the facts of the response that reuse needs, and its content in one or several
//! content codings. For each form, its HTTP/1.1 header lines are laid out once. The facts, the key,
//! the header section and the content share one allocation, so that the memory accounting is exact.
//!
//! The fields of the stored response are only in the header section. Few of the stored pages are
//! asked for single fields, which are then parsed from there.

mod forms;
mod new;
mod select;

pub use forms::{EncodedForm, IdentityContent, WireForm};
pub use new::NewPage;
pub use select::{Section, SelectedForm, select, select_coding};

use crate::content_decoding;
use bytes::Bytes;
use forms::{ContentPlace, Ends};
use http::HeaderMap;
use http::header::{HeaderName, HeaderValue};
use http_cache::codings::Coding;
use http_cache::variants::NominatedFields;
use http_cache::{StoredFacts, StoredResponse, Timestamp};
use memcache::Item;
use page_store::{Audience, Dependencies, Page, Payload, Store, allocated};
use site_rules::is_of_desktops;
use statements::footprints::PageReads;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The metadata of a stored page. The bytes to send follow it and the key in the same allocation:
/// [`ReadPage`] reads both.
pub struct StoredPage {
    /// The status, times and tags, which reuse needs.
    pub stored: StoredFacts,
    /// The end of the header section of the uncompressed form.
    head: u32,
    /// The offset in it at which the lines of a 304 begin, and [`CODING_CLAIMED`].
    not_modified: AtomicU32,
    /// The number of the configuration whose rules leave requests for the page to it, 0 if none is known; and in the last
    /// [`RULE_BITS`] the number of the rule whose password they need, 0 if none. Never written to a snapshot, and not taken
    /// over by another page.
    access_under: AtomicU64,
    /// Data that few pages have.
    rare: Option<Box<RareParts>>,
}

/// Set once the page has been queued for compression. No header section is long enough to use this
/// bit.
const CODING_CLAIMED: u32 = 1 << 31;

/// The bits for the number of a rule; a site has at most 500.
const RULE_BITS: u32 = 16;

/// Data that few pages have.
#[derive(Default)]
struct RareParts {
    /// The compressed forms of the content.
    coded: FormTable,
    /// The location of the uncompressed content, if it does not follow the header section.
    elsewhere: Option<Box<ContentPlace>>,
    beside: Option<Box<InternalPart>>,
    /// The statements that the render has run, if all of them are known.
    reads: Option<Arc<PageReads>>,
}

/// Data that hardly any page has.
enum InternalPart {
    /// Fields of the stored response that are not sent.
    Internal(HeaderMap),
    /// An item of the memcached port. Such a page has no response, and no request finds it.
    Item(Item),
}

/// The compressed forms of a page, the smallest first.
#[derive(Default)]
struct FormTable {
    codings: Box<[Coding]>,
    forms: Box<[EncodedForm]>,
}

/// The compressed forms of a page, the smallest first. Most rarely requested pages have none.
#[derive(Clone, Copy)]
pub struct OtherForms<'a>(Option<&'a FormTable>);

impl<'a> OtherForms<'a> {
    /// The available content codings, the smallest form first.
    pub fn codings(self) -> &'a [Coding] {
        self.0.map_or(&[], |coded| &coded.codings)
    }

    /// The form in `coding`, if there is one.
    pub fn get(self, coding: Coding) -> Option<&'a EncodedForm> {
        let coded = self.0?;
        let at = coded.codings.iter().position(|other| *other == coding)?;
        coded.forms.get(at)
    }

    /// The contents with their content codings.
    pub fn contents(self) -> Vec<(Coding, Bytes)> {
        let Some(coded) = self.0 else { return Vec::new() };
        let contents = coded.forms.iter().filter_map(EncodedForm::shared);
        coded.codings.iter().copied().zip(contents).collect()
    }

    /// Decompresses the content from the form that is fastest to decode. `None` if there is none,
    /// or the result is not `bytes` long.
    fn undone(self, bytes: usize) -> Option<Bytes> {
        let quickest = [Coding::Zstd, Coding::Gzip, Coding::Brotli];
        let mut forms = quickest.iter().filter_map(|coding| Some((*coding, self.get(*coding)?)));
        let (coding, form) = forms.next()?;
        let content = content_decoding::whole(coding, form.form().content()?, bytes).ok()?;
        (content.len() == bytes).then(|| content.into())
    }
}

impl RareParts {
    fn heap_bytes(&self) -> usize {
        let FormTable { codings, forms } = &self.coded;
        let laid: usize = forms.iter().map(EncodedForm::heap_bytes).sum();
        let lists = allocated(size_of_val(&**forms)) + allocated(size_of_val(&**codings));
        let beside = self.beside.as_deref().map_or(0, |beside| {
            let own = match beside {
                InternalPart::Internal(fields) => fields_bytes(fields),
                InternalPart::Item(item) => allocated(item.value.len()),
            };
            allocated(size_of::<InternalPart>()) + own
        });
        let elsewhere = ContentPlace::heap_bytes(self.elsewhere.as_deref());
        let reads = self
            .reads
            .as_deref()
            .map_or(0, |reads| allocated(size_of::<PageReads>()) + reads.heap_bytes());
        allocated(size_of::<RareParts>()) + laid + lists + beside + elsewhere + reads
    }
}

impl StoredPage {
    fn of(stored: StoredFacts, ends: Ends, rare: Option<Box<RareParts>>) -> StoredPage {
        let Ends { head, not_modified } = ends;
        let (not_modified, access_under) = (AtomicU32::new(not_modified), AtomicU64::new(0));
        StoredPage { stored, head, not_modified, access_under, rare }
    }

    fn ends(&self) -> Ends {
        let not_modified = self.not_modified.load(Ordering::Relaxed) & !CODING_CLAIMED;
        Ends { head: self.head, not_modified }
    }

    /// The compressed forms of the page.
    pub fn forms(&self) -> OtherForms<'_> {
        OtherForms(self.rare.as_ref().map(|rare| &rare.coded))
    }

    fn elsewhere(&self) -> Option<&ContentPlace> {
        self.rare.as_ref()?.elsewhere.as_deref()
    }

    fn beside(&self) -> Option<&InternalPart> {
        self.rare.as_ref()?.beside.as_deref()
    }

    /// The statements that the render has run, if the page depends on them.
    pub fn reads(&self) -> Option<&Arc<PageReads>> {
        self.rare.as_ref()?.reads.as_ref()
    }

    /// Whether the page has been queued for compression already. This happens once, whatever the
    /// result.
    pub fn has_turn(&self) -> bool {
        self.not_modified.load(Ordering::Relaxed) & CODING_CLAIMED != 0
    }

    /// Marks the page as queued; returns false if another thread has done so.
    pub fn claim_coding(&self) -> bool {
        self.not_modified.fetch_or(CODING_CLAIMED, Ordering::Relaxed) & CODING_CLAIMED == 0
    }

    /// Clears the mark, because the queue was full.
    pub fn release_coding(&self) {
        self.not_modified.fetch_and(!CODING_CLAIMED, Ordering::Relaxed);
    }

    /// Whether [`set_free_under`](Self::set_free_under) was called last with this number.
    #[inline]
    pub fn is_free_under(&self, configuration: u64) -> bool {
        self.access_under.load(Ordering::Relaxed) == configuration << RULE_BITS
    }

    /// The number of the rule for which [`set_password_under`](Self::set_password_under) was called last, if that was with
    /// this number of a configuration.
    pub fn password_under(&self, configuration: u64) -> Option<usize> {
        let noted = self.access_under.load(Ordering::Relaxed);
        let rule = noted & ((1 << RULE_BITS) - 1);
        (noted >> RULE_BITS == configuration && rule > 0).then_some(rule as usize)
    }

    /// Records that no rule of the configuration with this number answers a request for the page. The number is the whole
    /// statement, so its order with other memory does not matter; one that is lost is found again.
    pub fn set_free_under(&self, configuration: u64) {
        self.access_under.store(configuration << RULE_BITS, Ordering::Relaxed);
    }

    /// Records that no rule of the configuration with this number answers a request for the page that has the password of
    /// the rule with the number `rule`, and all requests need it.
    pub fn set_password_under(&self, configuration: u64, rule: usize) {
        let Some(rule) = u16::try_from(rule).ok().filter(|rule| *rule > 0) else { return };
        let noted = configuration << RULE_BITS | u64::from(rule);
        self.access_under.store(noted, Ordering::Relaxed);
    }

    /// The item that was stored through the memcached port, if it is one.
    pub fn item(&self) -> Option<&Item> {
        match self.beside()? {
            InternalPart::Item(item) => Some(item),
            InternalPart::Internal(_) => None,
        }
    }
}

/// A page as the store returns it.
pub type SharedPage = Page<StoredPage>;

/// Access to a page's metadata and to the bytes that follow it.
pub trait ReadPage {
    /// The uncompressed form of the page.
    fn plain(&self) -> WireForm<'_>;
    /// The length of the uncompressed content in bytes, whether or not it is stored.
    fn length(&self) -> usize;
    /// The uncompressed content: as stored, or decompressed.
    fn content(&self) -> Bytes;
    /// The stored response with all its fields, parsed from the header section.
    fn response(&self) -> StoredResponse;
    /// The value of the first sent line with this field name.
    fn field(&self, name: &HeaderName) -> Option<&[u8]>;
}

impl ReadPage for SharedPage {
    fn plain(&self) -> WireForm<'_> {
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
            content.expect("the coding was tried when the content was released")
        })
    }

    fn response(&self) -> StoredResponse {
        let internal = match self.payload().beside() {
            Some(InternalPart::Internal(fields)) => fields.clone(),
            Some(InternalPart::Item(_)) | None => HeaderMap::new(),
        };
        StoredResponse::of_parts(self.payload().stored.clone(), self.plain().fields(), internal)
    }

    fn field(&self, name: &HeaderName) -> Option<&[u8]> {
        self.plain().field(name)
    }
}

/// The bytes of a page, as the owner of a `Bytes`.
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

    /// A page that varies on any field but the class of the device is not for all clients. Neither is one with an owner or with
    /// cookies in its key; `rewarm` detects that when it computes the key again.
    fn audience(&self) -> Audience {
        let anybodys = is_of_desktops(self.stored.nominated()) && !self.stored.is_private();
        if anybodys && self.item().is_none() { Audience::Anybody } else { Audience::Somebody }
    }
}

/// The maximum memory of a field map with its values, in bytes.
fn fields_bytes(fields: &HeaderMap) -> usize {
    let values: usize = fields
        .iter()
        .map(|(name, value)| allocated(name.as_str().len()) + allocated(value.len()))
        .sum();
    let entry = size_of::<HeaderName>() + size_of::<HeaderValue>() + 4 * size_of::<usize>();
    let room = fields.capacity().max(fields.len()) * 4 / 3;
    allocated(room * entry) + allocated(room * 4) + values
}

/// Returns the dependencies of a page at `path_and_query` with this stored response.
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

/// Returns the number by which the store distinguishes the variants of a page.
pub fn variant(stored: &StoredFacts) -> u32 {
    variant_of(stored.nominated())
}

/// Returns the number of the variant with these nominated fields.
pub fn variant_of(nominated: &NominatedFields) -> u32 {
    if nominated.is_empty() {
        return 0;
    }
    xxhash_rust::xxh3::xxh3_64(&nominated.variant_key()) as u32
}

/// Returns when a soft change has marked `page`, if one has.
pub fn marked(page: &Page<StoredPage>) -> Option<Timestamp> {
    page.marked().map(|marked| Timestamp(marked.at_ms))
}

/// Returns the remaining freshness lifetime of a page in seconds, as in `Cache-Status` (RFC 9211
/// section 2.4). It is zero or negative if the page is stale. A soft change ends the lifetime of
/// the pages that it marks.
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
    fn a_page_is_free_under_one_configuration_and_a_new_one_under_none() {
        let (_, first) = page(StatusCode::OK, &[]);
        let is_free = |page: &SharedPage| [1, 2, 3].map(|one| page.payload().is_free_under(one));
        assert_eq!(is_free(&first), [false; 3]);
        first.payload().set_free_under(2);
        assert_eq!(is_free(&first.clone()), [false, true, false], "a handle is the same page");
        let again = NewPage::with_forms(first.response(), first.content(), Vec::new()).apart();
        assert_eq!(is_free(&again), [false; 3]);
        first.payload().set_free_under(3);
        assert_eq!(is_free(&first), [false, false, true]);
        let password = |page: &SharedPage| [2, 3].map(|one| page.payload().password_under(one));
        assert_eq!(password(&first), [None; 2]);
        first.payload().set_password_under(3, 500);
        assert_eq!((password(&first), is_free(&first)), ([None, Some(500)], [false; 3]));
        first.payload().set_free_under(2);
        assert_eq!((password(&first), is_free(&first)), ([None; 2], [false, true, false]));
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
