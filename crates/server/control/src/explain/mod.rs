//! Explains how a page is answered, for the control interface and `pagewell explain`: a URL, a tag,
//! the last changes, and the top causes of misses.
//!
//! A URL is judged by the functions that answer requests (`delivery::plan`, `lookup::decide_by`),
//! with a lookup that does not count as a use. Nothing is changed, and no request is sent to the
//! origin. For a site with files, the file or script of the URL is looked up. [`history`]
//! remembers the past: the last render, the last purge.
//!
//! | file | contents |
//! |---|---|
//! | `at_origin` | the level and the group of a client, and what its request would get at the origin now |
//! | `judge` | determines how a request would be answered |
//! | `page` | describes the stored page, and what would purge it |
//! | `role` | describes the pages that signed-in visitors share |
//! | `rules` | lists the rules for access, scripts and response fields |
//! | `sentence` | summarises the verdict in a sentence |
//! | `lists` | lists a tag's pages, the last changes, the top causes of misses |

mod at_origin;
mod judge;
mod lists;
mod page;
mod role;
mod rules;
mod sentence;

pub use lists::{changes, misses, tag};

use delivery::site::Site;
use history::changes::ChangeName;
use history::memory::{Entry, LastRender};
use history::{RenderedHosts, StoreOutcome, refusals, shown};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, header};
use judge::judge;
use reasons::Reason;
use request_values::target::TargetUri;
use serde_json::{Value, json};
use site_state::page_name::PATH_OR_URL;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use telemetry::client::{Client, ClientConnection};
use telemetry::evidence::ClientEvidence;

/// A request to explain.
pub struct ExplainRequest {
    /// The default site, which has the counts of all limits.
    pub default_site: Arc<Site>,
    /// The site that answers it.
    pub site: Arc<Site>,
    /// The method of the request.
    pub method: Method,
    /// Its header fields, with a `Host`.
    pub headers: HeaderMap,
    /// Its URL as given.
    pub target: TargetUri,
    /// The address of the client that is assumed.
    pub from: Option<IpAddr>,
    /// Whether the host is guessed, because neither the call nor the configuration names one.
    pub is_guess: bool,
}

/// The reasons for which there is no request to explain.
pub enum NotAsked {
    /// The call is invalid, with an explanation.
    Unreadable(String),
    /// No site has this host.
    SiteUnknown(String),
}

/// Creates a request from its parts. `url` is a path with its query, or an absolute URL. `chosen`
/// is the site that the call names, if any.
///
/// # Errors
/// See [`NotAsked`].
pub fn explain_request(
    default_site: &Arc<Site>,
    chosen: Option<&Arc<Site>>,
    url: &str,
    method: Option<&str>,
    lines: &BTreeMap<String, String>,
) -> Result<ExplainRequest, NotAsked> {
    let wrong = |what: &dyn std::fmt::Display| NotAsked::Unreadable(format!("{url:?}: {what}"));
    let method = Method::from_bytes(method.unwrap_or("GET").as_bytes());
    let method = method.map_err(|error| wrong(&error))?;
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|error| wrong(&error))?;
        headers.insert(name, HeaderValue::from_str(value).map_err(|error| wrong(&error))?);
    }
    let url = url.split('#').next().unwrap_or_default();
    if !url.starts_with('/') && !url.contains("://") {
        return Err(wrong(&PATH_OR_URL));
    }
    let uri: Uri = url.parse().map_err(|error| wrong(&error))?;
    let mut is_guess = false;
    let (scheme, host) = match (uri.scheme_str(), uri.authority()) {
        (Some("http"), Some(host)) => ("http", host.as_str().to_owned()),
        (Some("https"), Some(host)) => ("https", host.as_str().to_owned()),
        (None, None) if url.starts_with('/') => {
            let named = headers.get(header::HOST).and_then(|host| host.to_str().ok());
            let by_host = named.and_then(|host| default_site.named(host));
            let site = chosen.or(by_host).unwrap_or(default_site);
            let (scheme, host, is_known) = where_it_is(site, url);
            is_guess = named.is_none() && !is_known;
            (scheme, named.map_or(host, str::to_owned))
        }
        _ => return Err(wrong(&PATH_OR_URL)),
    };
    let name = HeaderValue::from_str(&host).map_err(|error| wrong(&error))?;
    headers.insert(header::HOST, name);
    let target = TargetUri::read(&uri, &headers, &host, scheme);
    let target = target.map_err(|error| wrong(&error.reason()))?;
    let site = chosen.unwrap_or_else(|| default_site.for_host(&target.host)).clone();
    if !site.config.hosts.have(&target.host) {
        return Err(NotAsked::SiteUnknown(target.host));
    }
    let default_site = default_site.clone();
    Ok(ExplainRequest { default_site, site, method, headers, target, from: None, is_guess })
}

/// Returns the most likely scheme and host for a path: those of its stored page, else the site's
/// own, else those of the last render. The last value: whether the host is configured, or the only one that was
/// seen, so that it cannot be another.
fn where_it_is(site: &Arc<Site>, path: &str) -> (&'static str, String, bool) {
    let is_known =
        site.config.hosts.canonical.is_some() || site.history.hosts() == RenderedHosts::One;
    let page = site.config.rules.form().normal(path).page;
    let url = page_store::ChangeTarget::Url(page.as_bytes());
    let stored = site.store.pages(site.name, &url, 0, 8).pages;
    let of_key = |key: &[u8]| TargetUri::of_key(key.split(|byte| *byte == b'\n').next()?);
    if let Some(target) = stored.iter().find_map(|page| of_key(page.key().bytes())) {
        return (target.scheme, target.host, is_known);
    }
    let own = site.config.hosts.canonical.clone();
    match (site.history.last_host(), own) {
        (Some((scheme, host)), None) => (scheme, host.into(), is_known),
        (Some((scheme, host)), Some(own)) if *host == *own => (scheme, own, is_known),
        (_, own) => {
            let scheme = if site.config.https_redirect.is_some() { "https" } else { "http" };
            (scheme, own.unwrap_or_else(|| "localhost".into()), is_known)
        }
    }
}

/// Explains how a request is answered.
pub fn url(asked: &ExplainRequest) -> Value {
    let site = &asked.site;
    let now = site.clock.now();
    let judged = judge(asked);
    let entry = judged.remembered.as_ref();
    json!({
        "about": "url",
        "now_ms": now.0,
        "site": site.config.hosts.canonical,
        "url": judged.target.uri_of_page(),
        "host_is_a_guess": asked.is_guess,
        "key": shown::parts_of(&judged.key),
        "rule": judged.rule,
        "steps": judged.steps,
        "later_steps": rules::later_steps(asked, &judged),
        "other_rules": rules::json(asked, &judged),
        "verdict": judged.verdict.as_str(),
        "reason": judged.reason.map(Reason::as_str),
        "sentence": sentence::of(&judged, now.0)
            + &rules::sentence(asked, &judged)
            + &page::problem_of_trial(site, &judged)
            + &page::refused_reads(site, &judged)
            + &page::under_other_slash(site, &judged),
        "remedy": sentence::remedy(&judged),
        "removed_fields": judged.removed,
        "custom_fields": judged.custom,
        "page": judged.page.as_ref().map(|page| page::json(site, page, &judged, now)),
        "client": at_origin::json(asked, &judged),
        "memcached": page::stored_by_memcached(site, &judged.target, now),
        "last_render": entry.and_then(|entry| Some(last_render(entry, entry.render.as_ref()?))),
        "last_drop": entry.and_then(last_drop),
    })
}

fn last_render(entry: &Entry, render: &LastRender) -> Value {
    let reason = match render.outcome {
        StoreOutcome::Stored(_) => None,
        StoreOutcome::NotStored(reason) => Some(reason),
    };
    json!({
        "at_ms": render.at_ms,
        "took_ms": render.took_ms,
        "status": render.status,
        "stored": reason.is_none(),
        "reason": reason.map(Reason::as_str),
        "refusal": entry.refusal(),
        "remedy": entry.refusal().map(refusals::remedy).or_else(|| reason.and_then(Reason::advice)),
        "cookies": entry.cookies(),
        "visitor_cookies": entry.visitor_cookies(),
        "renders": entry.renders,
        "not_stored": entry.not_stored,
    })
}

fn last_drop(entry: &Entry) -> Option<Value> {
    let (rare, dropped) = (entry.rare.as_ref()?, entry.dropped()?);
    Some(json!({
        "change": dropped.change,
        "at_ms": dropped.at_ms,
        "how": if dropped.is_mark { "marked" } else { "purged" },
        "by": dropped.by.json(),
        "name": dropped.name.as_deref().map(named),
        "unchanged": dropped.unchanged,
        "drops": rare.drops,
        "drops_unchanged": rare.drops_unchanged,
    }))
}

fn named(named: &ChangeName) -> Value {
    json!({ "kind": named.kind, "name": named.name })
}

/// A client without any credentials, with this scheme and the assumed address.
fn client(asked: &ExplainRequest) -> Client {
    let peer = asked.from.map(|address| SocketAddr::new(address, 0));
    let site = &asked.site;
    let evidence = asked
        .from
        .map(|from| ClientEvidence::new(site.per_address.clone(), site.clock.clone(), Some(from)));
    let none = ClientConnection::none(asked.target.scheme);
    let connection = ClientConnection { peer, evidence, ..none };
    Client::of(connection.into())
}
