//! Which form of a page answers a request: the header section, the content coding, and how many bytes of content.
//! One function for plain hits, which are written as the page was laid out, and for all other answers (`serve`).
//!
//! Pure, and allocates nothing. The kind of answer (200, 206, 304, 412 or 416) has been decided before, by
//! `http_cache`.

use super::{Form, ReadPage, SharedPage};
use http_cache::codings::{Coding, form_of_not_modified, form_of_whole};
use http_cache::{Answer, Forms, RequestFacts, StoredFacts};

/// A header section that is laid out with a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// That of the whole response.
    Whole,
    /// That of a 304.
    NotModified,
}

/// The form of a page that answers a request.
#[derive(Clone, Copy)]
pub struct Selected<'p> {
    /// The header section; `None` where it has to be made for this answer: 206, 412, 416, or a page that is put
    /// together of ESI fragments.
    pub section: Option<Section>,
    /// The content coding; `None` for the content as it came.
    pub coding: Option<Coding>,
    /// The page in this coding; `None` where only its entity tag is known.
    form: Option<Form<'p>>,
}

impl<'p> Selected<'p> {
    /// The header lines and the empty line, where they are laid out with the page.
    #[inline]
    pub fn lines(&self) -> Option<&'p [u8]> {
        let form = self.form?;
        Some(match self.section? {
            Section::Whole => form.head(),
            Section::NotModified => form.not_modified(),
        })
    }

    /// The length of the content that a GET gets, in bytes, where it is stored in this form.
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
    answer: Answer,
) -> Selected<'p> {
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
    Selected { section, coding, form }
}

/// Selects the content coding in which the request gets this answer, where the content is stored in `codings`,
/// the smallest first. `None` for the content as it came.
#[inline]
pub fn select_coding(
    request: &RequestFacts<'_>,
    stored: &StoredFacts,
    codings: &[Coding],
    answer: Answer,
) -> Option<Coding> {
    match answer {
        Answer::Whole => form_of_whole(request, codings),
        Answer::NotModified if stored.forms == Forms::ByCoding => {
            form_of_not_modified(request, stored, codings)
        }
        _ => None,
    }
}
