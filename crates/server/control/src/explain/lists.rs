//! Lists for explanations: the pages of a tag, the last changes, and the top causes of misses.
//!
//! Each list is bounded; the lists of several sites are merged.

use super::{named, page};
use delivery::site::Site;
use history::changes::ChangeName;
use history::misses::{NameKind, Slow, Top, TopEntry};
use history::{Change, refusals, shown};
use miss_control::percent;
use origin::ClientLevel;
use page_store::{ChangeTarget, Strength};
use serde_json::{Value, json};
use std::sync::Arc;
use stored_pages::page::ttl_seconds;

/// The most groups, networks and user agents of an origin that are listed.
const GROUPS_MAX: usize = 5;
/// The most pages of a tag that are listed.
const PAGES_MAX: usize = 100;

/// Returns the pages that depend on a tag, and the last change of it.
pub fn tag(default_site: &Arc<Site>, chosen: Option<&Arc<Site>>, tag: &str) -> Value {
    let (mut pages, mut total, mut rules) = (Vec::new(), 0, Vec::new());
    let mut last: Option<(&Arc<Site>, Arc<Change>)> = None;
    for site in default_site.selected_or_all(chosen) {
        let listed = site.store.pages(site.name, &ChangeTarget::Tag(tag.as_bytes()), 0, PAGES_MAX);
        total += listed.total;
        let room = PAGES_MAX.saturating_sub(pages.len());
        let now = site.clock.now();
        pages.extend(listed.pages.iter().take(room).map(|page| {
            let (key, stored) = (page.key().bytes(), &page.payload().stored);
            json!({
                "site": site.config.hosts.canonical,
                "url": shown::masked(&shown::address_of(key)),
                "stored_at_ms": stored.response_time.0,
                "ttl_seconds": ttl_seconds(page, now),
            })
        }));
        rules.extend(page::rules_of(site, std::iter::once(tag.as_bytes())));
        if let Some(change) = site.history.last_change_of(&ChangeName::tag(tag.as_bytes()))
            && last.as_ref().is_none_or(|(_, known)| known.at_ms <= change.at_ms)
        {
            last = Some((site, change));
        }
    }
    let left_out = total.saturating_sub(pages.len());
    json!({
        "about": "tag",
        "now_ms": default_site.clock.now().0,
        "tag": shown::cut(tag),
        "pages": pages,
        "pages_total": total,
        "pages_left_out": left_out,
        "last_change": last.map(|(site, change)| change_of(site, &change)),
        "rules": rules,
    })
}

/// Returns the last changes of all sites, newest first.
pub fn changes(default_site: &Arc<Site>) -> Value {
    let of_site = |site: &Arc<Site>| {
        let site = site.clone();
        let all = site.history.changes();
        all.into_iter()
            .map(move |change| (change.at_ms, change_of(&site, &change)))
            .collect::<Vec<_>>()
    };
    let mut all: Vec<_> = default_site.all_sites().flat_map(of_site).collect();
    // The sort is stable, so changes of one site with the same time stay newest first.
    all.sort_by_key(|(at_ms, _)| std::cmp::Reverse(*at_ms));
    let all: Vec<Value> = all.into_iter().map(|(_, change)| change).collect();
    json!({ "now_ms": default_site.clock.now().0, "changes": all })
}

fn change_of(site: &Site, change: &Change) -> Value {
    let (dropped, marked) = change.touched;
    json!({
        "number": change.number,
        "at_ms": change.at_ms,
        "site": site.config.hosts.canonical,
        "strength": if change.strength == Strength::Drop { "drop" } else { "mark" },
        "by": change.by.json(),
        "names": change.names.iter().map(named).collect::<Vec<_>>(),
        "names_left_out": change.names_left_out,
        "dropped": dropped,
        "marked": marked,
    })
}

/// Returns the top causes of misses, over all sites.
pub fn misses(default_site: &Arc<Site>) -> Value {
    let mut all = default_site.history.miss_causes();
    default_site.all_sites().skip(1).for_each(|site| all.merge(site.history.miss_causes()));
    let since_ms = default_site.all_sites().map(|site| site.history.since_ms).min();
    json!({
        "now_ms": default_site.clock.now().0,
        "since_ms": since_ms,
        "origins": default_site.all_sites().map(at_origin).collect::<Vec<_>>(),
        "not_stored": each(&all.not_stored, by_reason),
        "bypassed": each(&all.bypassed, by_reason),
        "cookies": each(&all.cookies, |one| {
            let (effect, owner) = (one.kind.effect(), site_rules::known_cookie_owner(&one.name));
            json!({ "name": one.name, "effect": effect, "owner": owner })
        }),
        "parameters": each(&all.parameters, |one| json!({ "name": one.name })),
        "dropped": each(&all.dropped, |one| {
            json!({ "by": one.by.as_ref().map(|by| by.json()) })
        }),
        "slowest": all.slowest.iter().map(slow).collect::<Vec<_>>(),
        "over_invalidation": {
            "compared": all.compared,
            "unchanged": all.compared_unchanged,
            "pages": each(&all.unchanged, |_| json!({})),
            "columns": each(&all.unchanged_columns, |one| {
                json!({ "columns": one.name, "by": one.by.as_ref().map(|by| by.json()) })
            }),
        },
    })
}

/// Returns what the origin of a site works for, as shares of the last minutes.
fn at_origin(site: &Arc<Site>) -> Value {
    let (places, figures) = (site.origin.places(), site.origin.places().figures());
    let report = places.report();
    let levels = ClientLevel::ALL.iter().map(|level| level.as_str()).zip(figures.busy_us);
    let levels = levels.chain([("comparisons", figures.comparison_us)]);
    let busy: u64 = levels.clone().map(|(_, busy_us)| busy_us).sum();
    let levels = levels.filter(|(_, busy_us)| *busy_us > 0).map(
        |(level, busy_us)| json!({ "level": level, "percent_of_time": percent(busy_us, busy) }),
    );
    let groups = report.groups.into_sorted();
    let (requests, busy) = groups.iter().fold((0, 0), |(requests, busy), (_, counts)| {
        (requests + counts.requests, busy + counts.busy_us)
    });
    let groups = groups.iter().take(GROUPS_MAX).map(|(group, counts)| {
        json!({
            "group": group.to_string(),
            "kind": group.kind.as_str(),
            "requests": counts.requests,
            "deferred": counts.deferred,
            "percent_of_requests": percent(counts.requests, requests),
            "percent_of_time": percent(counts.busy_us, busy),
            "busy_ms": counts.busy_us / 1_000,
        })
    });
    let by_client = |name: String, count: u64| json!({ "name": name, "requests": count, "percent_of_requests": percent(count, requests) });
    let networks = report.networks.into_sorted().into_iter().take(GROUPS_MAX);
    let agents = report.agents.into_sorted().into_iter().take(GROUPS_MAX);
    json!({
        "site": site.config.hosts.canonical,
        "mode": site.config.misses.mode.as_str(),
        "overloaded": figures.is_overloaded,
        "overload_seconds": figures.overload_seconds,
        "waited": figures.waited,
        "deferred": figures.deferred,
        "advice": places.busiest().map(|busiest| busiest.advice),
        "levels": levels.collect::<Vec<_>>(),
        "groups": groups.collect::<Vec<_>>(),
        "networks": networks.map(|(name, one)| by_client(name.to_string(), one.requests)).collect::<Vec<_>>(),
        "agents": agents.map(|(name, one)| by_client(name, one.requests)).collect::<Vec<_>>(),
    })
}

/// Formats a list: each entry with its count, an example URL, and the fields of `more`.
fn each(top: &Top, more: impl Fn(&TopEntry) -> Value) -> Vec<Value> {
    let entry = |one: &TopEntry| {
        let mut value = more(one);
        value["count"] = json!(one.count);
        value["over"] = json!(one.over);
        value["url"] = json!(one.url);
        value
    };
    top.worst().into_iter().map(entry).collect()
}

/// Formats the reason of an entry. If the application gave a code, that is the name of the entry.
fn by_reason(one: &TopEntry) -> Value {
    match one.kind {
        NameKind::Reason(reason) => {
            json!({ "reason": one.name, "refusal": null, "remedy": reason.advice() })
        }
        NameKind::CodeWith(reason) => {
            let (reason, remedy) = (reason.as_str(), refusals::remedy(&one.name));
            json!({ "reason": reason, "refusal": one.name, "remedy": remedy })
        }
        _ => json!({}),
    }
}

fn slow(slow: &Slow) -> Value {
    json!({
        "url": slow.url,
        "took_ms": slow.took_ms,
        "at_ms": slow.at_ms,
        "status": slow.status,
        "stored": slow.stored,
    })
}
