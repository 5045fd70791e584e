//! Summarises in a sentence or two how a request would be answered, and the current reason. Names
//! are in backquotes, as in the manual. The advice is in `Reason::advice`, except for what depends
//! on the page itself.

use super::judge::{ExplainVerdict, Judgement, PrivateCopy};
use history::memory::{Entry, LastRender};
use history::{StoreOutcome, refusals};
use reasons::Reason;
use stored_pages::page::SharedPage;

/// Returns the sentence. `now_ms` is the time, in milliseconds since 1970.
pub(super) fn of(judged: &Judgement, now_ms: u64) -> String {
    let of_role = match judged.verdict {
        ExplainVerdict::Hit => judged.role.hit(),
        ExplainVerdict::Bypass => judged.role.forwarded(),
        ExplainVerdict::Stale | ExplainVerdict::Render | ExplainVerdict::Answered => None,
    };
    of_role.unwrap_or_else(|| of_page(judged, now_ms) + &judged.role.addition())
}

/// Returns the sentence about a page that no role has for itself.
fn of_page(judged: &Judgement, now_ms: u64) -> String {
    let reason = judged.reason.map_or("", Reason::as_str);
    match judged.verdict {
        ExplainVerdict::Hit => "It is answered from the cache.".into(),
        ExplainVerdict::Stale => format!(
            "It is answered from the cache although it is stale (`{reason}`), while it is refreshed."
        ),
        ExplainVerdict::Answered => {
            format!("Pagewell answers it without the origin (`{reason}`), and no page is stored.")
        }
        ExplainVerdict::Bypass if judged.private_copy == PrivateCopy::Configured => format!(
            "It is answered from the visitor's private copy, or forwarded to the origin and may be stored for \
             this visitor only: {}.",
            because(judged)
        ),
        ExplainVerdict::Bypass if judged.reason == Some(Reason::Trial) => {
            let would_be = match (judged.page.is_some(), judged.cookies.is_empty()) {
                (true, _) => "a hit",
                (false, true) => "a miss",
                (false, false) => "a bypass, or answered by a private copy",
            };
            let last = unstored(judged, "").filter(|_| is_miss_of_trial(judged));
            let last = last.map(|last| format!(" {last}")).unwrap_or_default();
            format!(
                "It is forwarded to the origin, because the site is in a trial (`{reason}`). Without the trial it would \
                 be {would_be}.{last}"
            )
        }
        ExplainVerdict::Bypass => {
            let but = match judged.private_copy {
                PrivateCopy::ByPlugin => BUT_BY_PLUGIN,
                PrivateCopy::Never | PrivateCopy::Configured => "",
            };
            let because = because(judged);
            format!(
                "It is forwarded to the origin, and the response is not stored: {because}.{but}"
            )
        }
        ExplainVerdict::Render => render(judged, now_ms),
    }
}

/// The exception for the plugins of LiteSpeed, which need no configuration.
const BUT_BY_PLUGIN: &str = " (Only a response with `private` in `X-LiteSpeed-Cache-Control`, as LiteSpeed's plugins send it, \
                             is stored for its visitor.)";

/// Reasons to forward a request without the cache, in words. In two of them `{}` stands for the name
/// of a cookie of the request. The name of another reason is shown alone.
const BYPASSES: [(Reason, &str); 6] = [
    (Reason::SessionCookie, "the request has the cookie `{}`, which counts as a session cookie"),
    (Reason::UnknownCookie, "the request has the cookie `{}`, which is on no list"),
    (Reason::Rule, "a rule has `bypass`"),
    (Reason::CredentialField, "a field of the request identifies the client"),
    (Reason::PartialPage, "a field of the request selects a part or another form of the page"),
    (Reason::Method, "its method is neither GET nor HEAD"),
];

/// Returns why a request is forwarded without the cache.
fn because(judged: &Judgement) -> String {
    let Some(reason) = judged.reason else { return "``".into() };
    let text = BYPASSES.iter().find(|(known, _)| *known == reason).map(|(_, text)| *text);
    match (text, judged.cookies.first()) {
        (Some(text), Some(cookie)) => format!("{} (`{reason}`)", text.replace("{}", cookie)),
        (Some(text), None) if !text.contains("{}") => format!("{text} (`{reason}`)"),
        (Some(_) | None, _) => format!("`{reason}`"),
    }
}

/// Returns advice on the verdict.
pub(super) fn remedy(judged: &Judgement) -> Option<&'static str> {
    if judged.verdict == ExplainVerdict::Bypass
        && let Some(remedy) = judged.role.remedy()
    {
        return Some(remedy);
    }
    match judged.page.as_ref().map(|page| StaleCause::of(judged, page)) {
        Some(StaleCause::Marked) => Some("Nothing: the next request refreshes it."),
        Some(StaleCause::NoCache) => {
            Some("Remove no-cache, or send s-maxage and the tags that purge the page.")
        }
        Some(StaleCause::Otherwise) | None => {
            remedy_of_last(judged).or_else(|| judged.reason.and_then(Reason::advice))
        }
    }
}

/// Whether a request would be a miss without the trial.
fn is_miss_of_trial(judged: &Judgement) -> bool {
    judged.verdict == ExplainVerdict::Bypass
        && judged.reason == Some(Reason::Trial)
        && judged.page.is_none()
        && judged.cookies.is_empty()
}

/// Returns advice that depends on the last response, which was not stored, and on its request.
fn remedy_of_last(judged: &Judgement) -> Option<&'static str> {
    let is_miss = judged.verdict == ExplainVerdict::Render && judged.page.is_none();
    if !is_miss && !is_miss_of_trial(judged) {
        return None;
    }
    let Some(entry) = &judged.remembered else {
        let is_new = is_miss && judged.variants == 0;
        return is_new.then_some(
            "Request it, then explain it again: the response shows whether it can be stored.",
        );
    };
    match (entry.refusal(), judged.cookies_of_last.is_empty()) {
        (Some(code), _) => Some(refusals::remedy(code)),
        (None, false) => Some(
            "Request the page without the cookie, then explain it again. If no page depends on the cookie, name it in cookies.ignore.",
        ),
        (None, true) if is_miss => None,
        (None, true) => match entry.render.as_ref()?.outcome {
            StoreOutcome::NotStored(reason) => reason.advice(),
            StoreOutcome::Stored(_) => None,
        },
    }
}

/// The reasons for which a stored page is not used as it is.
enum StaleCause {
    /// A soft invalidation has marked it stale.
    Marked,
    /// It has `no-cache`, so it is validated on each request.
    NoCache,
    /// The reason of the verdict says it.
    Otherwise,
}

impl StaleCause {
    fn of(judged: &Judgement, page: &SharedPage) -> StaleCause {
        match judged.reason {
            Some(Reason::Stale) if page.is_marked() => StaleCause::Marked,
            Some(Reason::Stale) if page.payload().stored.directives.no_cache() => {
                StaleCause::NoCache
            }
            _ => StaleCause::Otherwise,
        }
    }
}

fn render(judged: &Judgement, now_ms: u64) -> String {
    let next = match judged.waiting {
        None => "The next request is sent to the origin.".to_owned(),
        Some(0) => "It is being rendered: the next request shares that render.".to_owned(),
        Some(waiting) => {
            format!(
                "It is being rendered, and {waiting} more requests wait for it: the next request shares that render."
            )
        }
    };
    if let Some(page) = &judged.page {
        let reason = judged.reason.map_or("", Reason::as_str);
        let there = match StaleCause::of(judged, page) {
            StaleCause::Marked => "A page is cached, but an invalidation has marked it stale",
            StaleCause::NoCache => {
                "A page is cached with `no-cache`: it is revalidated at the origin on each request"
            }
            StaleCause::Otherwise => "A page is cached, but cannot be served unchanged",
        };
        return format!("{there} (`{reason}`). {next}");
    }
    let last = judged.remembered.as_ref().and_then(|entry| Some((entry, entry.render.as_ref()?)));
    if let Some(sentence) = unstored(judged, &next) {
        return sentence;
    }
    if judged.variants > 0 {
        let fields: Vec<_> = judged.varies_by.iter().map(|name| format!("`{name}`")).collect();
        let fields = fields.join(", ");
        return format!(
            "The cached pages of this address are for other visitors: they vary by {fields} (`vary-miss`). {next}"
        );
    }
    match &judged.remembered {
        None => format!("No page is cached, and nothing is known about earlier ones. {next}"),
        Some(entry) => gone(entry, last.map(|(_, last)| last), now_ms) + &next,
    }
}

/// Explains a page that is not there because the last response was not stored; `None` if it was, or is unknown. `next`
/// follows if the reason may not hold for this request.
fn unstored(judged: &Judgement, next: &str) -> Option<String> {
    let entry = judged.remembered.as_ref()?;
    let StoreOutcome::NotStored(reason) = entry.render.as_ref()?.outcome else { return None };
    let sentence = match &judged.cookies_of_last[..] {
        [] => not_stored(entry, reason),
        [cookie, ..] => format!(
            "No page is cached: the last response was not stored ({}), but its request had the cookie `{cookie}`. The response \
             to a request without it may be stored. {next}",
            why(entry, reason)
        ),
    };
    Some(sentence.trim_end().to_owned())
}

fn not_stored(entry: &Entry, reason: Reason) -> String {
    let each = match (entry.not_stored, entry.renders) {
        (1, 1) => "its one render was not stored".to_owned(),
        (not, all) if not == all => format!("none of its {all} renders was stored"),
        (not, all) => format!("{not} of its {all} renders were not stored"),
    };
    let set = match (entry.cookies(), reason) {
        ([name, ..], Reason::SetCookie) => {
            let often = if entry.not_stored == entry.renders { " on every response" } else { "" };
            Some(format!("it sets the cookie `{name}`{often}"))
        }
        _ => None,
    };
    match (entry.refusal(), set) {
        (None, Some(set)) => format!("It is not cached: {set} (`set-cookie`); {each}."),
        (None, None) => {
            format!("It is not cached: the last response was not stored (`{reason}`); {each}.")
        }
        (Some(_), Some(set)) => format!("It is not cached: {}; {set}; {each}.", why(entry, reason)),
        (Some(_), None) => format!("It is not cached: {}; {each}.", why(entry, reason)),
    }
}

/// Returns why a response was not stored: the application's own reason before that of the fields.
fn why(entry: &Entry, reason: Reason) -> String {
    match entry.refusal() {
        Some(code) if code == reason.as_str() => {
            format!("the application does not offer it: `{code}`")
        }
        Some(code) => {
            format!("the application does not offer it: `{code}`; `Cache-Status` has `{reason}`")
        }
        None => format!("`{reason}`"),
    }
}

/// Describes a page that was stored, and is no longer.
fn gone(entry: &Entry, last: Option<&LastRender>, now_ms: u64) -> String {
    let dropped = entry.dropped().filter(|dropped| !dropped.is_mark);
    let stored_ms = last.map_or(0, |last| last.at_ms);
    match dropped {
        Some(dropped) if dropped.at_ms >= stored_ms => {
            let ago = now_ms.saturating_sub(dropped.at_ms) / 1000;
            let (change, by) = (dropped.change, dropped.by.text());
            format!("No page is cached: {by} purged it {ago} s ago (change {change}). ")
        }
        _ => "No page is cached any more, and no change purged it: it was evicted for space, unused for cache.inactive, or removed. ".into(),
    }
}
