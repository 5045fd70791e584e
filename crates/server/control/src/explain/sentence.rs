//! Summarises in a sentence or two how a request would be answered, and the current reason. Names
//! are in backquotes, as in the manual. The advice is in `why::remedies`, except for what depends
//! on the page itself.

use super::judge::Judged;
use site_state::page::SharedPage;
use site_state::why::Outcome;
use site_state::why::memory::{Entry, LastRender};
use site_state::why::remedies;

/// Returns the sentence. `now_ms` is the time, in milliseconds since 1970.
pub(super) fn of(judged: &Judged, now_ms: u64) -> String {
    match judged.verdict {
        "hit" => "It is answered from memory.".into(),
        "stale" => {
            let reason = judged.reason.unwrap_or_default();
            format!(
                "It is answered from memory though it is stale (`{reason}`), while it is rendered anew."
            )
        }
        "answered" => format!(
            "Pagewell answers it itself (`{}`): the origin is not asked, and no page is stored.",
            judged.reason.unwrap_or_default()
        ),
        "bypass" => {
            let because = because(judged, judged.reason.unwrap_or_default());
            match judged.may_be_private {
                true => format!(
                    "It is answered from its visitor's own copy or passed on to the origin, and the answer \
                     may be kept for its visitor alone: {because}."
                ),
                false => format!(
                    "It is passed on to the origin, and the answer is not stored: {because}."
                ),
            }
        }
        _ => render(judged, now_ms),
    }
}

/// Returns why a request is forwarded without the cache.
fn because(judged: &Judged, reason: &str) -> String {
    match (reason, &judged.cookies[..]) {
        ("session-cookie", [name, ..]) => {
            format!("the request has the cookie `{name}`, which counts as a session's (`{reason}`)")
        }
        ("unknown-cookie", [name, ..]) => {
            format!("the request has the cookie `{name}`, which is on no list (`{reason}`)")
        }
        ("rule", _) => "a rule says so (`rule`)".into(),
        ("credential-field", _) => {
            "a field of the request says which client asks (`credential-field`)".into()
        }
        ("partial-page", _) => {
            "a field of the request asks for a part of the page, or for another form of it (`partial-page`)".into()
        }
        ("method", _) => "its method is neither GET nor HEAD (`method`)".into(),
        _ => format!("`{reason}`"),
    }
}

/// Returns advice on the verdict.
pub(super) fn remedy(judged: &Judged) -> Option<&'static str> {
    match judged.page.as_ref().map(|page| Unused::of(judged, page)) {
        Some(Unused::Marked) => Some("Nothing: the next request has it rendered anew."),
        Some(Unused::NoCache) => {
            Some("Leave no-cache out, or send s-maxage and the tags that drop the page.")
        }
        Some(Unused::Otherwise) | None => judged.reason.and_then(remedies::remedy),
    }
}

/// The reasons for which a stored page is not used as it is.
enum Unused {
    /// A soft invalidation has marked it stale.
    Marked,
    /// It has `no-cache`, so it is validated on each request.
    NoCache,
    /// The reason of the verdict says it.
    Otherwise,
}

impl Unused {
    fn of(judged: &Judged, page: &SharedPage) -> Unused {
        match judged.reason {
            Some("stale") if page.is_marked() => Unused::Marked,
            Some("stale") if page.payload().stored.directives.no_cache() => Unused::NoCache,
            _ => Unused::Otherwise,
        }
    }
}

fn render(judged: &Judged, now_ms: u64) -> String {
    let next = match judged.waiting {
        None => "The next request has it rendered.".to_owned(),
        Some(0) => "It is being rendered: the next request shares that render.".to_owned(),
        Some(waiting) => {
            format!(
                "It is being rendered, for {waiting} more already: the next request shares that render."
            )
        }
    };
    if let Some(page) = &judged.page {
        let reason = judged.reason.unwrap_or_default();
        let there = match Unused::of(judged, page) {
            Unused::Marked => "A page is there, which a change has marked",
            Unused::NoCache => {
                "A page is there that says `no-cache`: the origin is asked about it each time"
            }
            Unused::Otherwise => "A page is there, but is not used as it is",
        };
        return format!("{there} (`{reason}`). {next}");
    }
    let last = judged.remembered.as_ref().and_then(|entry| Some((entry, entry.render.as_ref()?)));
    if let Some((entry, last)) = last
        && let Outcome::NotStored(reason) = last.outcome
    {
        return not_stored(entry, reason);
    }
    if judged.variants > 0 {
        let fields: Vec<_> = judged.varies_by.iter().map(|name| format!("`{name}`")).collect();
        let fields = fields.join(", ");
        return format!(
            "What is in memory for this address is for other visitors: it varies by {fields} (`vary-miss`). {next}"
        );
    }
    match &judged.remembered {
        None => format!("Nothing is in memory, and nothing is remembered of it. {next}"),
        Some(entry) => gone(entry, last.map(|(_, last)| last), now_ms) + &next,
    }
}

fn not_stored(entry: &Entry, reason: &str) -> String {
    let each = match (entry.not_stored, entry.renders) {
        (1, 1) => "its one render was not stored".to_owned(),
        (not, all) if not == all => format!("none of its {all} renders was stored"),
        (not, all) => format!("{not} of its {all} renders were not stored"),
    };
    match (entry.cookies(), reason) {
        ([name, ..], "set-cookie") => {
            let often = if entry.not_stored == entry.renders { " on every response" } else { "" };
            format!(
                "It is rendered for each request: it sets the cookie `{name}`{often} (`set-cookie`); {each}."
            )
        }
        _ => format!(
            "It is rendered for each request: the last answer was not stored (`{reason}`); {each}."
        ),
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
            format!("Nothing is in memory: {by} dropped it {ago} s ago (change {change}). ")
        }
        _ => "Nothing is in memory any more, and no change dropped it: it was evicted for space, not asked for in cache.unused_for, or removed. ".into(),
    }
}
