//! What would be done with a request: the steps of `exchange`, without doing them.
//!
//! | verdict | |
//! |---|---|
//! | `hit` | from memory, fresh |
//! | `stale` | from memory, while it is rendered anew |
//! | `render` | the origin is asked; the answer may be stored |
//! | `bypass` | the origin is asked; nothing is stored |
//! | `answered` | Pagewell answers itself: a file, a redirect, an error |

use super::{Asked, visitor};
use crate::exchange::{is_redirected, plan};
use crate::forward::{is_from_clients, read_facts, route_of};
use crate::lookup::decide_by;
use crate::page::{SharedPage, StoredPage};
use crate::routes::Route;
use crate::site::Site;
use crate::target::Target;
use crate::why::memory::Entry;
use crate::why::{Outcome, shown};
use http::{HeaderMap, HeaderName, header};
use http_cache::{ForwardReason, Method as Kind, Reuse, StaleBecause, Verdict};
use page_store::Candidates;
use serde_json::{Value, json};
use site_rules::{BypassBecause, Handling, Plan, key_without_vary};
use std::collections::BTreeSet;
use std::fs::File;
use std::sync::Arc;

/// What would be done with a request.
pub(super) struct Judged {
    /// What the page is for: in its normal form.
    pub(super) target: Target,
    /// Its key.
    pub(super) key: Vec<u8>,
    /// The rule that rules.
    pub(super) rule: Value,
    pub(super) verdict: &'static str,
    /// The name behind the verdict.
    pub(super) reason: Option<&'static str>,
    /// The names of cookies for whose sake it is passed on.
    pub(super) cookies: Vec<Box<str>>,
    /// Whether its visitor may get a private copy instead.
    pub(super) may_be_private: bool,
    /// What is stored for such a request.
    pub(super) page: Option<SharedPage>,
    /// How many variants its key has.
    pub(super) variants: usize,
    /// The fields by which they differ.
    pub(super) varies_by: BTreeSet<String>,
    /// Where it is being rendered: how many wait for that.
    pub(super) waiting: Option<usize>,
    /// What is remembered of it.
    pub(super) remembered: Option<Entry>,
    /// The names of its fields that the origin does not get.
    pub(super) removed: Vec<String>,
}

/// A verdict, its reason, and the page that it is about.
type Said = (&'static str, Option<&'static str>, Option<SharedPage>);

/// Judges a request.
pub(super) fn judge(asked: &Asked) -> Judged {
    let Asked { site, method, headers, target, .. } = asked;
    let shared = site.shared(target).unwrap_or_else(|| target.clone());
    let (plan, key) = plan(site, method, headers, &shared, &visitor(target.scheme));
    let facts = read_facts(method, headers);
    let peek = |site: &Site, key: &[u8]| site.store.peek(site.store.key(key));
    let (candidates, decided) = decide_by(site, &facts, headers, (&plan, &key), peek);
    let plain = || key_without_vary(&key);
    let remembered = site.why.of_key(&key).or_else(|| site.why.of_key(&plain()?));
    let (verdict, reason, page) = match facts.method {
        _ if is_redirected(site, target.scheme) => ("answered", Some("to-https"), None),
        Kind::Get | Kind::Head => said(asked, &shared, &plan, &candidates, decided),
        _ => ("bypass", Some(ForwardReason::Method.as_str()), None),
    };
    let fields = crate::forward::AsSent(headers);
    let cookies = site.config.rules.bypassing_cookies(&plan, &fields);
    let rule = site.config.rules.ruling_of(&plan);
    let rule =
        rule.map(|rule| json!({ "number": rule.number, "name": rule.name, "path": rule.path }));
    let removed = removed(site, &plan, headers);
    let is_session = plan.handling == Handling::Bypass(BypassBecause::SessionCookie);
    Judged {
        may_be_private: is_session && site.config.private.is_some(),
        rule: rule.unwrap_or_default(),
        cookies: cookies.iter().map(|name| shown::cut(name)).collect(),
        variants: candidates.as_slice().len(),
        varies_by: varies_by(&candidates),
        waiting: site.fills.followers(site.store.key(&key)),
        reason: reason_now(verdict, reason, page.as_ref(), remembered.as_ref()),
        target: shared,
        key,
        verdict,
        page,
        remembered,
        removed,
    }
}

/// The fields of the request that the origin does not get: as long as no `Vary` names them where the page
/// may be shared, else only those that clients may not set.
fn removed(site: &Site, plan: &Plan, headers: &HeaderMap) -> Vec<String> {
    let is_shared = plan.handling == Handling::Store;
    let is_sent =
        |name: &str| is_from_clients(name) && (!is_shared || site.config.rules.sends_field(name));
    let names = headers.keys().map(HeaderName::as_str);
    names
        .filter(|name| !is_sent(name))
        .take(REMOVED_MAX)
        .map(|name| shown::cut(name).into())
        .collect()
}

/// How many fields are named.
const REMOVED_MAX: usize = 32;

/// The fields that the variants of a page nominate.
fn varies_by(candidates: &Candidates<StoredPage>) -> BTreeSet<String> {
    let names = candidates.iter().flat_map(|page| page.payload().stored.nominated().names());
    names.map(|name| name.as_str().to_owned()).collect()
}

fn said(
    asked: &Asked,
    shared: &Target,
    plan: &Plan,
    candidates: &Candidates<StoredPage>,
    decided: Verdict,
) -> Said {
    if let Handling::Bypass(because) = plan.handling {
        return ("bypass", Some(because.as_str()), None);
    }
    let page = |at: usize| candidates.as_slice().get(at).cloned();
    let (why, old) = match decided {
        Verdict::Reuse { candidate, state: Reuse::Fresh, .. } => {
            return ("hit", None, page(candidate));
        }
        Verdict::Reuse { candidate, state: Reuse::Stale(because), .. } => {
            let because = match because {
                StaleBecause::WhileRevalidate => "stale-while-revalidate",
                StaleBecause::MaxStale => "max-stale",
            };
            return ("stale", Some(because), page(candidate));
        }
        Verdict::Unsatisfied => return ("answered", Some("only-if-cached"), None),
        Verdict::Forward { why: ForwardReason::Bypass, .. } => {
            let is_signed = asked.headers.contains_key(header::AUTHORIZATION);
            let reason = if is_signed { "authorization" } else { "unknown-cookie" };
            return ("bypass", Some(reason), None);
        }
        Verdict::Forward { why, validate, fallback } => {
            let old = validate.or(fallback).and_then(page);
            let only = || candidates.as_slice().last().cloned();
            let is_there = matches!(why, ForwardReason::Stale | ForwardReason::Request);
            (why, if is_there { old.or_else(only) } else { old })
        }
    };
    match answered_here(&asked.site, shared) {
        Some(reason) => ("answered", Some(reason), None),
        None => ("render", Some(why.as_str()), old),
    }
}

/// What a site with files answers without asking the origin.
fn answered_here(site: &Arc<Site>, target: &Target) -> Option<&'static str> {
    site.files.as_ref()?;
    match route_of(site, target) {
        Route::Script(_) => None,
        Route::Static(path) if File::open(&path).is_err() => Some("file-failed"),
        Route::Static(_) => Some("file"),
        Route::NotFound => Some("not-found"),
        Route::Hidden(withheld) => Some(withheld.as_str()),
        Route::Malformed => Some("path-malformed"),
        Route::AddSlash(_) => Some("add-slash"),
    }
}

/// Where nothing is stored because the last answer could not be, that is the reason to name.
fn reason_now(
    verdict: &str,
    reason: Option<&'static str>,
    page: Option<&SharedPage>,
    remembered: Option<&Entry>,
) -> Option<&'static str> {
    let last = remembered.and_then(|entry| entry.render.as_ref()).map(|render| render.outcome);
    match (verdict, page, last) {
        ("render", None, Some(Outcome::NotStored(not_stored))) => Some(not_stored),
        _ => reason,
    }
}
