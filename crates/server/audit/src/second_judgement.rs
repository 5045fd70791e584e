//! The second judgement of a page that was found out of date, after it was watched for a minute.
//!
//! The renders of the first one may have agreed by accident: a page that draws its text, or shows the time that it took,
//! has the same words five times in a row now and then. Data that do change stay as they are, or change for all renders.
//! So both judgements have to speak against the page, each by samples of its own.

use crate::AuditState;
use crate::judged_page::stored_tokens;
use crate::samples::{compute, concluded, room_for, sampled};
use delivery::site::Site;
use page_comparison::{Conclusion, Inquiry, PageNoise, UnjudgedReason};
use render::RenderRequest;
use std::sync::Arc;
use stored_pages::page::SharedPage;

/// Judges a page from the beginning, by renders of the request `ask`; `noise` learns from it.
///
/// # Errors
/// The reason why no judgement was possible.
pub(crate) async fn judged_again(
    site: &Arc<Site>,
    state: &AuditState,
    (ask, page): (&RenderRequest, &SharedPage),
    noise: &mut PageNoise,
) -> Result<Conclusion, UnjudgedReason> {
    let mut held = room_for(site, page)?;
    let stored = compute(site, state, || stored_tokens(state, page));
    let mut inquiry = Inquiry::of_suspect(stored, page.payload().stored.request_time().0);
    let ask = RenderRequest { fallback: Some(page.clone()), ..ask.clone() };
    sampled(site, &ask, state, (&mut inquiry, &mut held), noise).await?;
    concluded(site, state, (&inquiry, page, None), noise).await
}
