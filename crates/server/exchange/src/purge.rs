//! Purge requests on the client ports: authorisation (`purger`), the site, the selection of pages
//! (`purge_requests`), and the response. After the response has been sent, no client gets a page from
//! before the purge.
//!
//! An accepted purge is executed even if its sender disconnects, because plugins do so. Pages with a
//! known name are looked up. Expressions need a search of the store. It runs on a separate thread, one
//! at a time and with a limited queue, so that client requests are not delayed. An unauthorised client
//! gets the response for an unsupported method (405).

use crate::purger;
use bytes::Bytes;
use delivery::body::{Content, ResponseBody};
use delivery::serve;
use delivery::site::Site;
use forward::litespeed;
use history::ChangeSource;
use history::shown::cut;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use page_store::{ChangeTarget as Changed, Keys, Page, PagePredicate, Strength};
use purge_requests::{Conditions, Coverage, PageProperties, Purge, PurgeRefusal, Scope, Selection};
use reasons::Reason;
use request_values::hosts::{Hosts, OtherHosts};
use request_values::target::TargetUri;
use site_state::memcached_keys::NAMESPACE;
use site_state::pending_changes::PendingBatch;
use site_state::propagation::Propagation;
use std::sync::Arc;
use stored_pages::page::{ReadPage, StoredPage};
use telemetry::client::Client;
use telemetry::request_content::RequestContent;

/// The result of a purge, over all sites: the number of the change, and how many pages were removed and
/// marked stale.
#[derive(Clone, Copy, Debug, Default)]
struct Done {
    number: u64,
    dropped: u64,
    marked: u64,
}

/// Error: the queue of searches is full.
struct Busy;

/// Whether a request is a purge request, as opposed to a request for a page.
pub fn is_purge_request<B>(default_site: &Site, request: &Request<B>) -> bool {
    match request.method() {
        &Method::GET => is_purge_path(default_site, request.uri().path()),
        method => purge_requests::is_purge_method(method.as_str()),
    }
}

/// Whether a GET with this path is a purge request.
pub(crate) fn is_purge_path(default_site: &Site, path: &str) -> bool {
    let below = default_site.config.purging.get_below.as_deref();
    below.is_some_and(|below| lies_below(below, path))
}

fn lies_below(below: &str, path: &str) -> bool {
    path.strip_prefix(below).is_some_and(|rest| rest.starts_with('/'))
}

/// Answers a purge request that arrived at the default site.
pub async fn answer(
    default_site: &Arc<Site>,
    request: &Request<RequestContent>,
    client: &Client,
) -> Response<ResponseBody> {
    let (method, headers) = (request.method(), request.headers());
    if let Err(why) = purger::check(&default_site.config, headers, client) {
        default_site.counters.requests.add();
        default_site.counters.purges_refused.add();
        tracing::debug!(event = "purge-refused", reason = why.as_str());
        return refused(method);
    }
    // A target in absolute form may contain another scheme. Pages of both schemes are purged anyway.
    let scheme = match request.uri().scheme_str() {
        Some("https") => "https",
        Some("http") => "http",
        _ => client.connection.scheme,
    };
    let target = match TargetUri::read(request.uri(), headers, default_site.unnamed_host(), scheme)
    {
        Ok(target) if target.path_and_query != "*" => target,
        Ok(_) => return serve::error(StatusCode::BAD_REQUEST, Reason::TargetInvalid, None),
        Err(error) => return serve::error(StatusCode::BAD_REQUEST, error.reason(), None),
    };
    let site = default_site.for_host(&target.host);
    site.counters.requests.add();
    if !site.config.hosts.have(&target.host) {
        return serve::error(StatusCode::MISDIRECTED_REQUEST, Reason::HostUnknown, None);
    }
    if method == Method::GET && !purger::may_name(&site.config.hosts, &target.host) {
        site.counters.purges_refused.add();
        tracing::debug!(event = "purge-refused", reason = Reason::HostUnknown.as_str());
        return refused(method);
    }
    let purge = match read(default_site, method, &target, headers) {
        Ok(purge) => purge,
        Err(unread) => return misunderstood(&unread),
    };
    site.counters.purges.add();
    if purge.taken == Coverage::Everything {
        tracing::warn!(event = "purge-widened", method = method.as_str(), host = target.host);
    }
    let taken = purge.taken;
    let pages = match purge.scope {
        Scope::NamedHost => Pages::of_host(&site.config.hosts, &target.host),
        Scope::Site => Pages::All,
    };
    let sites = sites(default_site, site, &purge);
    let peer = client.connection.peer.map(|peer| cut(&peer.ip().to_string()));
    let by = ChangeSource::Purge { method: cut(method.as_str()), peer };
    // In a task of its own, so that it is executed even if its sender disconnects.
    let carried_out = async move {
        let pending = PendingBatch::begin(sites.iter().map(|site| site.state())).await;
        let done = carry_out(&sites, purge, pages, by).await;
        let others = pending.acknowledge().await;
        done.map(|done| (done, others))
    };
    match tokio::spawn(carried_out).await {
        Ok(Ok((done, others))) => told(method, done, taken, others),
        Ok(Err(Busy)) => {
            let text = "too many searches for expressions wait already; send tags or addresses";
            error(StatusCode::SERVICE_UNAVAILABLE, "purge-busy", text)
        }
        // The task has panicked, which has been logged.
        Err(_) => serve::error(StatusCode::INTERNAL_SERVER_ERROR, Reason::Bug, None),
    }
}

fn read(
    default_site: &Site,
    method: &Method,
    target: &TargetUri,
    headers: &HeaderMap,
) -> Result<Purge, PurgeRefusal> {
    // LiteSpeed's plugins name the pages in a field of their own; the target may be any page of the
    // site.
    let named = (method.as_str() == "PURGE")
        .then(|| litespeed::named(&default_site.config.dialects, headers));
    if let Some(purge) = named.flatten() {
        return Ok(purge);
    }
    let address = &target.path_and_query;
    let read = match (method, &default_site.config.purging.get_below) {
        (&Method::GET, Some(below)) => purge_requests::read_get(below, address, headers),
        (method, _) => purge_requests::read(method.as_str(), address, headers),
    };
    // `is_purge_request` rejects all other requests.
    read.unwrap_or_else(|| Ok(Purge::default()))
}

/// The affected sites: those that match an expression for hosts, else the site of the request.
fn sites(default_site: &Arc<Site>, site: &Arc<Site>, purge: &Purge) -> Vec<Arc<Site>> {
    let Some(hosts) = &purge.hosts else { return vec![site.clone()] };
    let is_meant =
        |site: &&Arc<Site>| site.config.hosts.all().any(|host| hosts.is_in(host.as_bytes()));
    let meant: Vec<_> = default_site.all_sites().filter(is_meant).cloned().collect();
    if meant.is_empty() { vec![site.clone()] } else { meant }
}

async fn carry_out(
    sites: &[Arc<Site>],
    purge: Purge,
    pages: Pages,
    by: ChangeSource,
) -> Result<Done, Busy> {
    let (purge, pages) = (Arc::new(purge), Arc::new(pages));
    let mut done = Done::default();
    for site in sites {
        let searches = purge.hard.iter().chain(&purge.soft).any(|one| needs_search(site, one));
        let _place = if searches {
            let _waiting = site.searches.waiting.try_acquire().map_err(|_| Busy)?;
            Some(site.searches.running.acquire().await.map_err(|_| Busy)?)
        } else {
            None
        };
        let (purge, pages, of_site, by) = (purge.clone(), pages.clone(), site.clone(), by.clone());
        // In a blocking thread, because purging a million pages takes time.
        let task = tokio::task::spawn_blocking(move || {
            let hard = apply(&of_site, &purge.hard, &pages, Strength::Drop, &by);
            let soft = apply(&of_site, &purge.soft, &pages, Strength::Mark, &by);
            [hard, soft]
        });
        match task.await {
            Ok(both) => both.into_iter().for_each(|part| done.add(part)),
            Err(panic) => std::panic::resume_unwind(panic.into_panic()),
        }
    }
    Ok(done)
}

impl Done {
    fn add(&mut self, other: Done) {
        self.number = self.number.max(other.number);
        self.dropped += other.dropped;
        self.marked += other.marked;
    }
}

/// Executes a purge at one site. All named pages are purged in one change.
fn apply(
    site: &Arc<Site>,
    selected: &[Selection],
    within: &Arc<Pages>,
    strength: Strength,
    by: &ChangeSource,
) -> Done {
    let mut done = Done::default();
    let form = site.config.rules.form();
    let mut pages = Vec::new();
    let mut targets: Vec<Changed<'_>> = Vec::new();
    // Pages are stored under normalised URLs.
    for one in selected {
        if let Selection::Url(written) | Selection::Path(written) | Selection::Below(written) = one
        {
            pages.push(form.normal(written).page);
        }
    }
    let mut pages = pages.iter();
    for one in selected {
        let mut page = || pages.next().map(|page| page.as_bytes()).unwrap_or_default();
        match one {
            Selection::Tag(tag) => targets.push(Changed::Tag(tag)),
            Selection::Url(_) => targets.push(Changed::Url(page())),
            Selection::Path(_) => targets.push(Changed::Path(page())),
            Selection::Below(_) => targets.push(Changed::Prefix(page())),
            Selection::Everything => targets.push(Changed::Everything),
            Selection::Where(conditions) => match settled(&site.config.hosts, conditions) {
                HostSelection::Nothing => {}
                HostSelection::Everything => targets.push(Changed::Everything),
                HostSelection::Search(conditions) => {
                    done.add(search(site, conditions, within.clone(), strength, by));
                }
            },
        }
    }
    if !targets.is_empty() {
        let keys = within.keys();
        let keys = keys.as_ref().map_or(Keys::All, |keys| Keys::Beginning(keys));
        let applied = site.changes().apply_to(&targets, keys, strength, by.clone());
        let (number, dropped, marked) = (applied.number.get(), applied.dropped, applied.marked);
        done.add(Done { number, dropped, marked });
    }
    done
}

fn needs_search(site: &Site, selected: &Selection) -> bool {
    let Selection::Where(conditions) = selected else { return false };
    matches!(settled(&site.config.hosts, conditions), HostSelection::Search(_))
}

/// A selection, simplified by what is known about a site's hosts.
enum HostSelection {
    Nothing,
    Everything,
    Search(Conditions),
}

fn settled(hosts: &Hosts, conditions: &Conditions) -> HostSelection {
    let mut left = conditions.clone();
    if let Some(host) = &left.host
        && hosts.others == OtherHosts::Refuse
    {
        // A page of the site is available under all its hosts.
        if !hosts.all().any(|name| host.is_in(name.as_bytes())) {
            return HostSelection::Nothing;
        }
        left.host = None;
    }
    match (&left.host, &left.url, &left.content_type) {
        (None, None, None) => HostSelection::Everything,
        _ => HostSelection::Search(left),
    }
}

/// The pages of a site that a purge may affect.
enum Pages {
    /// Every page of the site.
    All,
    /// The pages of one host, with any port and either scheme, and the items of the memcached port,
    /// whose host is unknown. Contains the possible beginnings of their keys.
    OfHost(Vec<Vec<u8>>),
}

impl Pages {
    /// The pages of the host in the request. If the site has a canonical host, all its pages belong to
    /// it. Clients may omit the port, and a trailing dot denotes the same host.
    fn of_host(hosts: &Hosts, named: &str) -> Pages {
        if hosts.canonical.is_some() {
            return Pages::All;
        }
        let port = named.rfind(':').filter(|at| !named[*at..].contains(']'));
        let name = named[..port.unwrap_or(named.len())].trim_end_matches('.');
        let mut keys = vec![NAMESPACE.to_vec()];
        for scheme in ["http", "https"] {
            let ends = ["/", ":", "./", ".:"];
            keys.extend(ends.map(|end| [scheme, "://", name, end].concat().into_bytes()));
        }
        Pages::OfHost(keys)
    }

    /// The beginnings of the keys of these pages; `None` for all pages.
    fn keys(&self) -> Option<Vec<&[u8]>> {
        match self {
            Pages::All => None,
            Pages::OfHost(keys) => Some(keys.iter().map(Vec::as_slice).collect()),
        }
    }

    fn have(&self, key: &[u8]) -> bool {
        match self {
            Pages::All => true,
            Pages::OfHost(keys) => keys.iter().any(|begin| key.starts_with(begin)),
        }
    }
}

/// Searches the pages of a site for those that match the conditions, and purges them.
fn search(
    site: &Arc<Site>,
    conditions: Conditions,
    pages: Arc<Pages>,
    strength: Strength,
    by: &ChangeSource,
) -> Done {
    let hosts = site.config.hosts.clone();
    let touches = move |page: &Page<StoredPage>| {
        if !pages.have(page.key().bytes()) {
            return false;
        }
        let Some((host, url)) = of_key(page.key().bytes()) else { return true };
        let aliases =
            if hosts.canonical.as_deref() == Some(host) { &hosts.aliases[..] } else { &[] };
        let content_type = page.field(&header::CONTENT_TYPE);
        let spelled = &page_store::normal_spelling(url);
        conditions.hold(&PageProperties { host, aliases, url, spelled, content_type })
    };
    let touches: PagePredicate<StoredPage> = Arc::new(touches);
    let applied = site.changes().apply_where(&touches, strength, by.clone());
    let (number, dropped, marked) = (applied.number.get(), applied.dropped, applied.marked);
    Done { number, dropped, marked }
}

/// The host, and the path with query, in a key as written by `target` and `site_rules`.
fn of_key(key: &[u8]) -> Option<(&str, &[u8])> {
    let address = key.split(|byte| *byte == b'\n').next()?;
    let at = address.windows(3).position(|three| three == b"://")? + 3;
    let slash = address[at..].iter().position(|byte| *byte == b'/')? + at;
    Some((std::str::from_utf8(&address[at..slash]).ok()?, &address[slash..]))
}

/// The response to an unauthorised client: the same as for an unsupported request.
fn refused(method: &Method) -> Response<ResponseBody> {
    if method == Method::GET {
        return serve::error(StatusCode::NOT_FOUND, Reason::NotFound, None);
    }
    let mut response =
        serve::error(StatusCode::METHOD_NOT_ALLOWED, Reason::MethodNotAnswered, None);
    // RFC 9110 section 15.5.6: a 405 response lists the allowed methods.
    let allowed = HeaderValue::from_static("GET, HEAD, POST");
    response.headers_mut().insert(header::ALLOW, allowed);
    response
}

fn misunderstood(unread: &PurgeRefusal) -> Response<ResponseBody> {
    error(StatusCode::BAD_REQUEST, unread.as_str(), &unread.explain())
}

/// Builds the response to a purge request. Senders evaluate the status code; the content is for
/// human readers.
fn told(
    method: &Method,
    done: Done,
    taken: Coverage,
    others: Propagation,
) -> Response<ResponseBody> {
    let none = done.dropped + done.marked == 0;
    // Nginx Helper interprets 404 as "was not cached"; other clients interpret it as an error.
    let code = if method == Method::GET && none { StatusCode::NOT_FOUND } else { StatusCode::OK };
    let status = if code == StatusCode::OK { "ok" } else { "not cached" };
    let taken = taken.as_str();
    let Done { number, dropped, marked } = done;
    let mut text = serde_json::json!({
        "status": status, "number": number, "dropped": dropped, "marked": marked, "taken": taken,
    });
    others.say_in(&mut text);
    json(code, "purged", &text)
}

fn error(code: StatusCode, name: &str, explanation: &str) -> Response<ResponseBody> {
    json(code, name, &serde_json::json!({ "error": name, "explanation": explanation }))
}

fn json(code: StatusCode, detail: &str, value: &serde_json::Value) -> Response<ResponseBody> {
    let text = Bytes::from(format!("{value}\n"));
    let length = text.len();
    let mut response = Response::new(ResponseBody::from(Content::Whole(text)));
    *response.status_mut() = code;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CONTENT_LENGTH, length.into());
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let status = HeaderValue::from_str(&format!("{}; detail={detail}", serve::CACHE_NAME));
    headers.insert("cache-status", status.unwrap_or(HeaderValue::from_static(serve::CACHE_NAME)));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_in_a_key() {
        assert_eq!(of_key(b"http://a:8080/x?y=://"), Some(("a:8080", &b"/x?y=://"[..])));
        assert_eq!(of_key(b"https://a/x\nrule 1\nsession /"), Some(("a", &b"/x"[..])));
        assert_eq!(of_key(b"nothing"), None);
    }
}
