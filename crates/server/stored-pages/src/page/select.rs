//! Selects the form of a page that answers a request: the header section, the content coding, and
//! the length of the content. Plain hits and all other answers (`serve`) use the same function.
//!
//! It is pure and allocates nothing. `http_cache` has already decided the kind of answer (200, 206,
//! 304, 412 or 416).

use super::{ReadPage, SharedPage, WireForm};
use http_cache::codings::{Coding, form_of_not_modified, form_of_whole};
use http_cache::{Answer, Forms, RequestFacts, StoredFacts};

/// A header section that is laid out with a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// The header section of the whole response.
    Whole,
    /// The header section of a 304.
    NotModified,
}

/// The form of a page that answers a request.
#[derive(Clone, Copy)]
pub struct SelectedForm<'p> {
    /// The header section. `None` if it has to be built for this answer: 206, 412, 416, or a page
    /// assembled from ESI fragments.
    pub section: Option<Section>,
    /// The content coding; `None` for uncompressed content.
    pub coding: Option<Coding>,
    /// The page in this coding; `None` if only its entity tag is known.
    form: Option<WireForm<'p>>,
}

impl<'p> SelectedForm<'p> {
    /// The header lines and the empty line, if they are laid out with the page.
    #[inline]
    pub fn lines(&self) -> Option<&'p [u8]> {
        let form = self.form?;
        Some(match self.section? {
            Section::Whole => form.head(),
            Section::NotModified => form.not_modified(),
        })
    }

    /// The length of the content that a GET gets, in bytes, if it is stored in this form.
    #[inline]
    pub fn content_bytes(&self) -> Option<usize> {
        match self.section? {
            Section::Whole => self.form?.content().map(<[u8]>::len),
            Section::NotModified => Some(0),
        }
    }
}

/// Selects the form of a page in which the request gets this answer.
#[inline]
pub fn select<'p>(
    request: &RequestFacts<'_>,
    page: &'p SharedPage,
    answer: &Answer,
) -> SelectedForm<'p> {
    let (stored, forms) = (&page.payload().stored, page.payload().forms());
    let section = match answer {
        Answer::Whole if stored.forms != Forms::Assembled => Some(Section::Whole),
        Answer::NotModified => Some(Section::NotModified),
        _ => None,
    };
    let coding = select_coding(request, stored, forms.codings(), answer);
    let form = match coding {
        Some(coding) => forms.get(coding).map(|laid| laid.form()),
        None => Some(page.plain()),
    };
    SelectedForm { section, coding, form }
}

/// Selects the content coding in which the request gets this answer. The content is stored in
/// `codings`, the smallest first. `None` for uncompressed content.
#[inline]
pub fn select_coding(
    request: &RequestFacts<'_>,
    stored: &StoredFacts,
    codings: &[Coding],
    answer: &Answer,
) -> Option<Coding> {
    match answer {
        Answer::Whole => form_of_whole(request, codings),
        Answer::NotModified if stored.forms == Forms::ByCoding => {
            form_of_not_modified(request, stored, codings)
        }
        _ => None,
    }
}
