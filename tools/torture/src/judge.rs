//! Decides whether a response is correct: only here can a run find an error.
//!
//! A response is *outdated* if a version in it, or in the stored page that a 304 confirms, is older
//! than the version acknowledged before the request. After a soft change it may be older for as
//! long as site and page allow (*stale as allowed*). It is *torn* if it arrived complete, by its
//! length or last chunk, but its content does not match its stamp. It is *foreign* if it is another
//! page or variant, or was not requested. A 502, 503 or 504 is no error of freshness; the run
//! counts those separately.

use super::site::{Currency, Page, Site};
use super::stamp::{Stamp, Versions};
use harness::Response;

/// A request, and the versions that its answer has to have at least.
#[derive(Debug)]
pub struct Question<'a> {
    /// The site, and the truth about it.
    pub site: &'a Site,
    /// The page that was requested.
    pub page: &'a Page,
    /// The variant that was requested.
    pub variant: char,
    /// Whether it was HEAD, not GET.
    pub is_head: bool,
    /// The validator that was sent, and what the page behind it was made from.
    pub condition: Option<&'a (String, Stamp)>,
    /// The versions that were acknowledged before the request was sent.
    pub acknowledged: Versions,
    /// When it was sent, in microseconds since the start of the run.
    pub sent_micros: u64,
}

/// The ways in which an answer is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It is older than what was acknowledged.
    Outdated,
    /// It came as whole and is not.
    Torn,
    /// It is not what was asked for.
    Foreign,
}

impl Fault {
    /// Its name, as printed.
    pub fn as_str(self) -> &'static str {
        match self {
            Fault::Outdated => "outdated",
            Fault::Torn => "torn",
            Fault::Foreign => "foreign",
        }
    }
}

/// The judgement of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judgement {
    /// Right, and made from this.
    Right(Stamp),
    /// Made from what was before a soft change, and served while that is allowed.
    Stale(Stamp),
    /// There is none: the origin failed.
    None,
    /// Wrong; what it says it was made from, if it says so.
    Wrong(Fault, Option<Stamp>),
}

/// Judges an answer to a question.
pub fn judge(question: &Question<'_>, response: &Response) -> Judgement {
    let found = match response.status {
        200 if question.is_head => head(question, response),
        200 => whole(question, response),
        206 => piece(question, response),
        304 => unchanged(question, response),
        502..=504 => return Judgement::None,
        _ => Err((Fault::Foreign, None)),
    };
    match found {
        Err((fault, stamp)) => Judgement::Wrong(fault, stamp),
        Ok(stamp) if (stamp.page, stamp.variant) != (question.page.number, question.variant) => {
            Judgement::Wrong(Fault::Foreign, Some(stamp))
        }
        Ok(stamp) => {
            let Question { site, page, acknowledged, sent_micros, .. } = question;
            match site.currency(page, &stamp.versions, acknowledged, *sent_micros) {
                Currency::Current => Judgement::Right(stamp),
                Currency::StaleAsAllowed => Judgement::Stale(stamp),
                Currency::Outdated => Judgement::Wrong(Fault::Outdated, Some(stamp)),
            }
        }
    }
}

type StampResult = Result<Stamp, (Fault, Option<Stamp>)>;

fn stamp_of(response: &Response) -> StampResult {
    let field = response.header("x-made-from").and_then(|value| value.parse().ok());
    field.ok_or((Fault::Foreign, None))
}

fn head(question: &Question<'_>, response: &Response) -> StampResult {
    let stamp = stamp_of(response)?;
    let length = response.header("content-length").map(str::parse);
    match length {
        Some(length) if length != Ok(stamp.content(question.page.shape).len()) => {
            Err((Fault::Torn, Some(stamp)))
        }
        _ => Ok(stamp),
    }
}

fn whole(question: &Question<'_>, response: &Response) -> StampResult {
    let stamp = stamp_of(response)?;
    if response.content == stamp.content(question.page.shape) {
        Ok(stamp)
    } else {
        Err((Fault::Torn, Some(stamp)))
    }
}

/// RFC 9110 section 14.4: `bytes 100-199/2048`.
fn piece(question: &Question<'_>, response: &Response) -> StampResult {
    let stamp = stamp_of(response)?;
    let torn = (Fault::Torn, Some(stamp));
    let range = response.header("content-range").and_then(read_range).ok_or(torn)?;
    if Stamp::in_piece(&response.content, range.first) != Some(stamp) {
        return Err(torn);
    }
    let content = stamp.content(question.page.shape);
    let right = content.len() == range.of
        && content.get(range.first..=range.last) == Some(&response.content);
    if right { Ok(stamp) } else { Err(torn) }
}

struct Range {
    first: usize,
    last: usize,
    of: usize,
}

fn read_range(value: &str) -> Option<Range> {
    let (range, of) = value.strip_prefix("bytes ")?.split_once('/')?;
    let (first, last) = range.split_once('-')?;
    Some(Range { first: first.parse().ok()?, last: last.parse().ok()?, of: of.parse().ok()? })
}

/// A 304 says: what you have is what there is now.
fn unchanged(question: &Question<'_>, response: &Response) -> StampResult {
    let Some((etag, stamp)) = question.condition else { return Err((Fault::Foreign, None)) };
    match response.header("etag") {
        Some(other) if other != etag => Err((Fault::Foreign, Some(*stamp))),
        _ => Ok(*stamp),
    }
}

#[cfg(test)]
mod tests {
    use super::super::publication::{By, Strength};
    use super::*;

    const STAMP: Stamp = Stamp { page: 1, variant: '-', versions: [3, 3, 3, 3, 3] };

    fn response(status: u16, fields: &[(&str, &str)], content: &[u8]) -> Response {
        Response::new(status, fields, content)
    }

    fn judged(acknowledged: Versions, answer: &Response) -> Judgement {
        let site = &Site::new(1, 60, 10);
        let condition = Some(("\"3\"".to_owned(), STAMP));
        let page = &site.pages[1];
        let condition = condition.as_ref();
        let (variant, is_head, sent_micros) = ('-', false, 0);
        let question =
            Question { site, page, variant, is_head, condition, acknowledged, sent_micros };
        judge(&question, answer)
    }

    fn content() -> Vec<u8> {
        STAMP.content(Site::new(1, 60, 10).pages[1].shape)
    }

    const FROM: (&str, &str) = ("X-Made-From", "1 - 3.3.3.3.3");

    #[test]
    fn whole_pages() {
        let page = response(200, &[FROM], &content());
        assert_eq!(judged([3; 5], &page), Judgement::Right(STAMP));
        let outdated = Judgement::Wrong(Fault::Outdated, Some(STAMP));
        assert_eq!(judged([3, 3, 4, 3, 3], &page), outdated);
        let torn = Judgement::Wrong(Fault::Torn, Some(STAMP));
        let short = response(200, &[FROM], &content()[..content().len() - 1]);
        assert_eq!(judged([0; 5], &short), torn);
        let newer = Stamp { versions: [4; 5], ..STAMP };
        let mixed = newer.content(Site::new(1, 60, 10).pages[1].shape);
        assert_eq!(judged([0; 5], &response(200, &[FROM], &mixed)), torn);
        let other = response(200, &[("X-Made-From", "2 - 3.3.3.3.3")], &content());
        assert!(matches!(judged([0; 5], &other), Judgement::Wrong(_, _)));
        assert_eq!(judged([0; 5], &response(502, &[], b"")), Judgement::None);
        assert!(matches!(judged([0; 5], &response(500, &[], b"")), Judgement::Wrong(_, None)));
    }

    #[test]
    fn a_page_marked_by_a_soft_change_is_stale_and_then_outdated() {
        let site = &Site::new(1, 60, 10).by(By::Soft);
        let page = &site.pages[2];
        site.acknowledge(page.own(), 4, Strength::Soft, 1);
        let stamp = Stamp { page: 2, ..STAMP };
        let answer = response(200, &[("X-Made-From", "2 - 3.3.3.3.3")], &stamp.content(page.shape));
        let (variant, is_head, condition, acknowledged) = ('-', false, None, [3; 5]);
        for (sent_micros, wanted) in [
            (1, Judgement::Right(stamp)),
            (1_000_000, Judgement::Stale(stamp)),
            (2_000_000, Judgement::Wrong(Fault::Outdated, Some(stamp))),
        ] {
            let question =
                Question { site, page, variant, is_head, condition, acknowledged, sent_micros };
            assert_eq!(judge(&question, &answer), wanted);
        }
    }

    #[test]
    fn ranges_and_304_are_judged_like_whole_pages() {
        let content = content();
        let range = format!("bytes 100-299/{}", content.len());
        let piece = response(206, &[FROM, ("Content-Range", &range)], &content[100..300]);
        assert_eq!(judged([3; 5], &piece), Judgement::Right(STAMP));
        assert_eq!(judged([4; 5], &piece), Judgement::Wrong(Fault::Outdated, Some(STAMP)));
        let moved = response(206, &[FROM, ("Content-Range", &range)], &content[101..301]);
        assert_eq!(judged([0; 5], &moved), Judgement::Wrong(Fault::Torn, Some(STAMP)));
        let same = response(304, &[("ETag", "\"3\"")], b"");
        assert_eq!(judged([3; 5], &same), Judgement::Right(STAMP));
        assert_eq!(judged([4; 5], &same), Judgement::Wrong(Fault::Outdated, Some(STAMP)));
        let other = response(304, &[("ETag", "\"4\"")], b"");
        assert_eq!(judged([0; 5], &other), Judgement::Wrong(Fault::Foreign, Some(STAMP)));
    }
}
