//! A page that is about to be stored: its metadata, header section and content.
//!
//! Until then these are in separate allocations. They are copied into one when the page is stored,
//! or when it is only sent ([`NewPage::apart`]).

use super::forms::{ContentPlace, Ends, Pieces};
use super::{
    EncodedForm, FormTable, IdentityContent, InternalPart, OtherForms, RareParts, SharedPage,
    StoredPage,
};
use bytes::Bytes;
use http::HeaderMap;
use http::header::HeaderValue;
use http_cache::codings::{Coding, describe};
use http_cache::{StoredResponse, Timestamp};
use memcache::Item;
use page_store::{Page, PageInput};
use statements::footprints::PageReads;
use std::sync::Arc;

/// A page that is about to be stored.
pub struct NewPage {
    page: StoredPage,
    head: Vec<u8>,
    /// The content that will follow the header section.
    content: Bytes,
}

impl NewPage {
    /// Creates a page and lays out its header section.
    pub fn new(stored: StoredResponse, content: Bytes) -> NewPage {
        NewPage::with_forms(stored, content, Vec::new())
    }

    /// Creates a page whose content is also available in compressed forms.
    pub fn with_forms(
        stored: StoredResponse,
        content: Bytes,
        coded: Vec<(Coding, Bytes)>,
    ) -> NewPage {
        NewPage::made(stored, content, coded).0
    }

    /// Like [`NewPage::with_forms`]. Also returns the fields from which the header section was laid
    /// out, for the response to the client.
    pub fn made(
        stored: StoredResponse,
        content: Bytes,
        coded: Vec<(Coding, Bytes)>,
    ) -> (NewPage, HeaderMap) {
        NewPage::laid_out(stored, IdentityContent::Kept(content), coded, IdentityContent::Kept)
    }

    /// Creates a page from a snapshot, with its content and compressed forms.
    pub fn restored(
        stored: StoredResponse,
        plain: IdentityContent,
        coded: Vec<(Coding, Bytes)>,
    ) -> NewPage {
        NewPage::laid_out(stored, plain, coded, IdentityContent::Kept).0
    }

    /// Creates a page from a file. Its content and compressed forms are referenced, not copied.
    pub fn of_file(
        stored: StoredResponse,
        plain: IdentityContent,
        coded: Vec<(Coding, Bytes)>,
    ) -> NewPage {
        NewPage::laid_out(stored, plain, coded, IdentityContent::Shared).0
    }

    /// Creates a page from an item of the memcached port.
    pub fn of_item(item: Item) -> NewPage {
        let stored = StoredResponse::of_file(HeaderMap::new(), 0, Timestamp(item.stored.0));
        let (stored, ..) = stored.into_parts();
        let beside = Some(Box::new(InternalPart::Item(item)));
        let rare = Some(Box::new(RareParts { beside, ..RareParts::default() }));
        let page = StoredPage::of(stored, Ends::default(), rare);
        NewPage { page, head: Vec::new(), content: Bytes::new() }
    }

    fn laid_out(
        stored: StoredResponse,
        plain: IdentityContent,
        coded: Vec<(Coding, Bytes)>,
        kept: fn(Bytes) -> IdentityContent,
    ) -> (NewPage, HeaderMap) {
        let Pieces { ends, head, content, elsewhere } = Pieces::of(&stored.headers, plain);
        let coded = FormTable::of(&stored, coded, kept);
        let (stored, fields, internal) = stored.into_parts();
        let beside =
            (!internal.is_empty()).then(|| Box::new(InternalPart::Internal(owned(&internal))));
        let rare = RareParts { coded, elsewhere, beside, reads: None }.boxed();
        let page = StoredPage::of(stored, ends, rare);
        (NewPage { page, head, content }, fields)
    }

    /// The length of the uncompressed content in bytes, whether or not it is stored.
    pub fn length(&self) -> usize {
        match self.page.elsewhere() {
            None => self.content.len(),
            Some(ContentPlace::Apart(content)) => content.len(),
            Some(ContentPlace::Nowhere(length)) => *length,
        }
    }

    /// Adds the statements that the render has run.
    pub fn with_reads(mut self, reads: Option<Arc<PageReads>>) -> NewPage {
        if reads.is_some() {
            self.page.rare.get_or_insert_default().reads = reads;
        }
        self
    }

    /// Removes the uncompressed content if it can be decompressed from another form.
    pub fn without_plain(mut self) -> NewPage {
        let OtherForms(coded) = self.page.forms();
        let again = OtherForms(coded).undone(self.content.len());
        if self.page.elsewhere().is_none()
            && again.is_some_and(|again| again == self.content)
            && let Some(rare) = &mut self.page.rare
        {
            rare.elsewhere = Some(Box::new(ContentPlace::Nowhere(self.content.len())));
            self.content = Bytes::new();
        }
        self
    }

    /// Passes the parts of the page to `put`, which stores them.
    pub fn put<T>(self, put: impl FnOnce(PageInput<'_, StoredPage>) -> T) -> T {
        put(PageInput { payload: self.page, bytes: &[&self.head, &self.content] })
    }

    /// Creates the page outside any store, only to be sent.
    pub fn apart(self) -> SharedPage {
        self.put(Page::apart)
    }
}

impl RareParts {
    /// Boxes the data; `None` if there is none.
    fn boxed(self) -> Option<Box<RareParts>> {
        let is_nothing =
            self.coded.codings.is_empty() && self.elsewhere.is_none() && self.beside.is_none();
        (!is_nothing).then(|| Box::new(self))
    }
}

impl FormTable {
    /// Lays out the header sections of `stored` in these forms.
    fn of(
        stored: &StoredResponse,
        mut coded: Vec<(Coding, Bytes)>,
        kept: fn(Bytes) -> IdentityContent,
    ) -> FormTable {
        coded.sort_by_key(|(_, content)| content.len());
        let codings = coded.iter().map(|(coding, _)| *coding).collect();
        let form = |(coding, content): (Coding, Bytes)| {
            let mut headers = stored.headers.clone();
            describe(&mut headers, coding);
            EncodedForm::of(&headers, kept(content))
        };
        FormTable { codings, forms: coded.into_iter().map(form).collect() }
    }
}

/// Copies the fields into memory of their own, so that they keep no larger buffer alive.
fn owned(fields: &HeaderMap) -> HeaderMap {
    let own = |value: &HeaderValue| HeaderValue::from_bytes(value.as_bytes());
    fields
        .iter()
        .map(|(name, value)| (name.clone(), own(value).expect("what is a value stays one")))
        .collect()
}
