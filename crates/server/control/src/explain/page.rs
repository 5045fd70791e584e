//! Describes a stored page for explanations.
//!
//! It shows freshness, dependencies, render, number of uses, and what would purge the page.

use super::judge::{ExplainVerdict, Judgement};
use delivery::site::Site;
use history::{StoreOutcome, shown};
use http::{HeaderName, header};
use http_cache::{Forms, LifetimeSource, Timestamp};
use page_store::SERVED_MAX;
use reasons::Reason;
use request_values::target::TargetUri;
use serde_json::{Value, json};
use site_state::memcached_keys::NAMESPACE;
use stored_pages::page::{ReadPage, SharedPage, ttl_seconds};

/// The most tags of a page that are listed.
const TAGS_MAX: usize = 100;
/// The most rules that are listed for its tags.
const RULES_MAX: usize = 50;

/// Returns the current state of a page as JSON.
pub(super) fn json(site: &Site, page: &SharedPage, judged: &Judgement, now: Timestamp) -> Value {
    let stored = &page.payload().stored;
    let content_type = page.field(&header::CONTENT_TYPE).map(shown::cut_bytes);
    let lasts_ms = i64::try_from(stored.lifetime_ms()).unwrap_or(i64::MAX);
    let age_ms = i64::try_from(stored.age_ms(now)).unwrap_or(i64::MAX);
    let now_ms = i64::try_from(now.0).unwrap_or(i64::MAX);
    let tags: Vec<_> = stored.tags().iter().take(TAGS_MAX).map(shown::cut_bytes).collect();
    json!({
        "stored_at_ms": stored.response_time.0,
        "age_seconds": stored.age_seconds(now),
        "fresh_until_ms": now_ms.saturating_add(lasts_ms).saturating_sub(age_ms),
        "ttl_seconds": ttl_seconds(page, now),
        "lifetime_from": stored.lifetime_source.as_str(),
        "lifetime_field": targeted_field(site, page),
        "status": stored.status.as_u16(),
        "bytes": page.length(),
        "content_type": content_type,
        "reads": page.payload().reads().map(|reads| site.footprints.describe(reads)),
        "tags": tags,
        "tags_left_out": stored.tags().len().saturating_sub(TAGS_MAX),
        "template": stored.forms == Forms::Assembled,
        "varies_by": stored.nominated().names().map(|name| name.as_str()).collect::<Vec<_>>(),
        "variants": judged.variants,
        "marked_at_ms": page.marked().map(|marked| marked.at_ms),
        "render_ms": render_ms(page, judged),
        "served": page.served(),
        "served_at_least": page.served() == SERVED_MAX,
        "dropped_by": {
            "tags": tags,
            "url": judged.target.page(),
            "prefixes": prefixes(judged.target.page()),
            "rules": rules_of(site, stored.tags().iter()),
        },
    })
}

/// Returns the name of the targeted field (RFC 9213) that gave the lifetime, if one did.
fn targeted_field<'s>(site: &'s Site, page: &SharedPage) -> Option<&'s str> {
    if page.payload().stored.lifetime_source != LifetimeSource::Targeted {
        return None;
    }
    let response = page.response();
    let has = |name: &HeaderName| {
        response.headers.contains_key(name) || response.internal_fields().contains_key(name)
    };
    site.config.policy.targets.iter().find(|name| has(name)).map(HeaderName::as_str)
}

/// Returns a sentence with the statement or table for which the reads of the last render are not known, if that is why
/// the page was not stored (automatic dependencies).
pub(super) fn refused_reads(site: &Site, judged: &Judgement) -> String {
    let render = judged.remembered.as_ref().and_then(|entry| entry.render.as_ref());
    let is_refused = render.is_some_and(|render| match render.outcome {
        StoreOutcome::NotStored(reason) => reason.is_of_reads(),
        StoreOutcome::Stored(_) => false,
    });
    let why = site.footprints.refused_pages.reason(&judged.target.path_and_query);
    match why.filter(|_| is_refused) {
        Some(why) => format!(" The reads of its last render: {}.", shown::cut(&why)),
        None => String::new(),
    }
}

/// Returns a sentence with the worst problem that the site's trial has found for such pages, if the request is part of it.
pub(super) fn problem_of_trial(site: &Site, judged: &Judgement) -> String {
    let is_of_trial = judged.reason == Some(Reason::Trial);
    let problem = is_of_trial.then(|| site.trial.problem_of(judged.target.page())).flatten();
    problem.map(|problem| format!(" A problem of the trial: {problem}.")).unwrap_or_default()
}

/// Returns a sentence if no page is cached for the URL, but for the one that differs by the slash at
/// the end of its path.
pub(super) fn under_other_slash(site: &Site, judged: &Judgement) -> String {
    if judged.verdict != ExplainVerdict::Render || judged.page.is_some() || judged.variants > 0 {
        return String::new();
    }
    let Some(other) = other_slash(judged.target.page()) else { return String::new() };
    let url = page_store::ChangeTarget::Url(other.as_bytes());
    let pages = site.store.pages(site.name, &url, 0, ITEMS_MAX).pages;
    let is_shared =
        |page: &SharedPage| !page.payload().stored.is_private() && page.payload().item().is_none();
    if !pages.iter().any(is_shared) {
        return String::new();
    }
    format!(" A page is cached under `{}`, which is another URL.", shown::cut(&other))
}

/// Returns the path and query with a slash at the end of the path, or without the one that is there.
fn other_slash(path_and_query: &str) -> Option<String> {
    let end = path_and_query.find('?').unwrap_or(path_and_query.len());
    let (path, query) = path_and_query.split_at(end);
    match path.strip_suffix('/') {
        Some("") => None,
        Some(path) => Some(format!("{path}{query}")),
        None => Some(format!("{path}/{query}")),
    }
}

/// The most pages of a URL from the memcached port that are listed.
const ITEMS_MAX: usize = 8;

/// Returns the items stored for a URL over the memcached port, where nginx reads them. They answer
/// no HTTP request.
pub(super) fn stored_by_memcached(site: &Site, target: &TargetUri, now: Timestamp) -> Vec<Value> {
    if site.config.memcached.is_none() {
        return Vec::new();
    }
    let url = page_store::ChangeTarget::Url(target.page().as_bytes());
    let pages = site.store.pages(site.name, &url, 0, ITEMS_MAX).pages;
    let shown = |page: &SharedPage| {
        let item = page.payload().item()?;
        let key = page.key().bytes().strip_prefix(NAMESPACE)?;
        let ends_at_ms = item.ends.map(|ends| ends.0);
        Some(json!({
            "key": shown::cut_bytes(key),
            "bytes": item.value.len(),
            "stored_at_ms": item.stored.0,
            "ends_at_ms": ends_at_ms,
            "has_ended": ends_at_ms.is_some_and(|ends| ends <= now.0),
            "marked_at_ms": page.marked().map(|marked| marked.at_ms),
        }))
    };
    pages.iter().filter_map(shown).collect()
}

/// Returns the duration of the page's render in milliseconds. If it is not remembered, that is the
/// time until the header section arrived.
fn render_ms(page: &SharedPage, judged: &Judgement) -> u64 {
    let stored = &page.payload().stored;
    let last = judged.remembered.as_ref().and_then(|entry| entry.render.as_ref());
    let own = last.filter(|render| {
        matches!(render.outcome, StoreOutcome::Stored(_)) && render.at_ms >= stored.response_time.0
    });
    let head_ms = stored.response_time.0.saturating_sub(stored.request_time().0);
    own.map_or(head_ms, |render| render.took_ms.into())
}

/// Returns the directories above a path, deepest first, without the root.
fn prefixes(path_and_query: &str) -> Vec<&str> {
    let path = path_and_query.split('?').next().unwrap_or_default();
    let ends = path.match_indices('/').map(|(at, _)| at + 1).filter(|end| *end > 1);
    let mut all: Vec<_> = ends.map(|end| &path[..end]).collect();
    all.reverse();
    all.truncate(8);
    all
}

/// Returns the change rules that can produce one of these tags.
pub(super) fn rules_of<'t>(site: &Site, tags: impl Iterator<Item = &'t [u8]>) -> Vec<Value> {
    let mut all: Vec<Value> = Vec::new();
    for tag in tags.take(TAGS_MAX).filter_map(|tag| str::from_utf8(tag).ok()) {
        for database in &site.config.databases {
            for (table, written) in database.rules.touching(tag) {
                let rule = json!({ "database": database.name, "table": table, "tag": written });
                if all.len() < RULES_MAX && !all.contains(&rule) {
                    all.push(rule);
                }
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slash_is_added_or_removed_before_the_query() {
        let other = |url: &str| other_slash(url);
        assert_eq!(other("/news/1").as_deref(), Some("/news/1/"));
        assert_eq!(other("/news/1/?a=/b/").as_deref(), Some("/news/1?a=/b/"));
        assert_eq!(other("/news/1?a=/").as_deref(), Some("/news/1/?a=/"));
        assert_eq!((other("/"), other("/?a")), (None, None));
    }

    #[test]
    fn directories_the_deepest_first() {
        assert_eq!(prefixes("/news/4/?a=/b/"), ["/news/4/", "/news/"]);
        assert!(prefixes("/a").is_empty() && prefixes("/").is_empty());
    }
}
