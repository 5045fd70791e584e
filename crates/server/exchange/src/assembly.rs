//! Assembles a page from its ESI template and its **fragments**, for one client.
//!
//! A fragment is a page of the same site, requested with the client's cookies and fields. It is cached,
//! invalidated and private by the same rules as in a direct request.
//!
//! Invariants: an assembled page is never stored, because it may be private. A template is complete before its fragments
//! are requested, and so is each fragment, so no request waits for another while it occupies the origin. While too many
//! requests of its client's address wait, a page is deferred as a whole, before its first fragment waits. Limits:
//! `page_bytes` for the assembled page; `FRAGMENTS_MAX`, `DEPTH_MAX` and `origin_timeout` for its fragments. They are
//! cancelled when the client disconnects.
//!
//! Fragments of LiteSpeed's dialect are requested with the fields of shared pages and all cookies.

mod plugin_fragments;

use crate::dispatch::fragment;
use crate::edge::remove_fields_of_shared_caches;
use crate::signed_in::shared_fields;
use bytes::Bytes;
use delivery::body::{Content, ContentBuffer, ResponseBody};
use delivery::codings::encode_response;
use delivery::deferral;
use delivery::serve;
use delivery::site::Site;
use delivery::template_mark::{IsTemplate, template_dialect};
use esi::{Combine, EsiDialect, Include, Part, Template};
use event_log::Seldom;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::BodyExt;
use http_cache::codings::says_no_transform;
use http_cache::{Failure, ForwardReason, ResponseDirectives};
use origin::Unsent;
use reasons::Reason;
use request_values::target::TargetUri;
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use telemetry::client::{
    Client, ClientExtras, FragmentRequest, FragmentSharing, PageAtOrigin, PassedChecks,
    RequestPurpose,
};
use telemetry::request_content::RequestContent;
use telemetry::request_fields::{METHOD_OVERRIDES, read_facts};
use telemetry::trailers::Trailers;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

/// Maximum number of fragments per page, nested fragments included.
const FRAGMENTS_MAX: usize = 100;

/// Maximum depth: a page, its fragments, and their fragments.
const DEPTH_MAX: usize = 3;

/// How many fragments of a page are requested concurrently.
const TOGETHER: usize = 4;

/// Request fields that apply to the page and not to its fragments. The `content-*` fields and method
/// overrides are removed separately.
const OF_THE_PAGE: [HeaderName; 12] = [
    header::ACCEPT_ENCODING,
    header::CACHE_CONTROL,
    header::EXPECT,
    header::IF_MATCH,
    header::IF_MODIFIED_SINCE,
    header::IF_NONE_MATCH,
    header::IF_RANGE,
    header::IF_UNMODIFIED_SINCE,
    header::PRAGMA,
    header::RANGE,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// Response fields of a template that describe its bytes or control its caching, in addition to those of other caches.
const OF_THE_TEMPLATE: [&str; 12] = [
    "accept-ranges",
    "age",
    "content-digest",
    "content-length",
    "content-md5",
    "digest",
    "etag",
    "expires",
    "last-modified",
    "pragma",
    "repr-digest",
    "trailer",
];

/// The request for a page, from which the requests for its fragments are derived.
pub struct PageRequest {
    method: Method,
    headers: HeaderMap,
    target: TargetUri,
    client: Client,
}

impl PageRequest {
    /// Copies the needed parts of a request.
    pub fn of(
        request: &Request<RequestContent>,
        target: &TargetUri,
        client: &Client,
    ) -> PageRequest {
        let (method, headers) = (request.method().clone(), request.headers().clone());
        PageRequest { method, headers, target: target.clone(), client: client.clone() }
    }
}

/// Assembles the page from a template, for the client that sent the request. On failure, returns 502 (429 beyond the
/// limit of a fragment, 503 if the page is deferred) with the template's `Set-Cookie` fields.
pub async fn assembled(
    site: &Arc<Site>,
    asked: PageRequest,
    dialect: EsiDialect,
    response: Response<ResponseBody>,
) -> Response<ResponseBody> {
    let (mut head, body) = response.into_parts();
    head.extensions.remove::<IsTemplate>();
    say_whose(&mut head.headers);
    if asked.method == Method::HEAD || matches!(head.status.as_u16(), 204 | 304) {
        return Response::from_parts(head, body);
    }
    if head.status.is_redirection() {
        // Clients ignore its content, so its fragments are not fetched and cannot delay the redirect.
        head.headers.insert(header::CONTENT_LENGTH, 0.into());
        return Response::from_parts(head, Content::Empty.into());
    }
    let PageRequest { method, headers, target, client } = &asked;
    let is_of_write = !matches!(*method, Method::GET | Method::OPTIONS);
    let page = Arc::new(Page {
        site: site.clone(),
        context: FragmentRequest {
            page: target.path_and_query.clone(),
            content_type: head.headers.get(header::CONTENT_TYPE).cloned(),
            tags: None,
            sharing: FragmentSharing::AsDeclared,
        },
        status: head.status,
        headers: for_fragments(headers),
        client: for_fragment(client.clone(), is_of_write),
        left: AtomicUsize::new(FRAGMENTS_MAX),
        bytes_left: AtomicUsize::new(site.limits.page_bytes),
        turns: Semaphore::new(TOGETHER),
        until: Instant::now() + site.limits.origin_timeout,
        is_of_write,
    });
    let whole = match page.gather(body).await {
        Ok(content) => page.put_together(content, target.clone(), (dialect, 1)).await,
        Err(reason) => Err(reason),
    };
    match whole {
        Ok(pieces) => {
            let length: usize = pieces.iter().map(Bytes::len).sum();
            head.headers.insert(header::CONTENT_LENGTH, length.into());
            let response = Response::from_parts(head, Content::Assembled(pieces).into());
            encode_response(site, &read_facts(method, headers), response)
        }
        Err(reason) => {
            let mut error = match reason {
                Reason::Deferred => deferred(site, &asked),
                Reason::RateLimited => serve::error(StatusCode::TOO_MANY_REQUESTS, reason, None),
                _ => serve::error(StatusCode::BAD_GATEWAY, reason, None),
            };
            // The client needs the cookies whatever is shown: its session, and a cookie that records a
            // write.
            for cookie in head.headers.get_all(header::SET_COOKIE) {
                error.headers_mut().append(header::SET_COOKIE, cookie.clone());
            }
            error
        }
    }
}

/// The response to a request whose page is deferred.
fn deferred(site: &Arc<Site>, asked: &PageRequest) -> Response<ResponseBody> {
    let failed = Unsent::Failed(Failure::Deferred);
    let response = forward::failed(site, failed, ForwardReason::Miss);
    let PageRequest { method, headers, target, client } = asked;
    deferral::finish(site, (method, headers), target, client, response)
}

/// Sets the caching headers of an assembled page: private, to be revalidated by the client. Removes the
/// template's entity tag, age and caching headers.
fn say_whose(headers: &mut HeaderMap) {
    let lines = headers.get_all(header::CACHE_CONTROL).iter().map(HeaderValue::as_bytes);
    let no_store = ResponseDirectives::read(lines).no_store;
    let control = match (no_store, says_no_transform(headers)) {
        (true, false) => "private, no-store",
        (true, true) => "private, no-store, no-transform",
        (false, false) => "private, no-cache",
        (false, true) => "private, no-cache, no-transform",
    };
    remove_fields_of_shared_caches(headers);
    OF_THE_TEMPLATE.iter().for_each(|name| drop(headers.remove(*name)));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(control));
}

/// The request fields for fragments, derived from those of the page.
fn for_fragments(headers: &HeaderMap) -> HeaderMap {
    let is_theirs = |name: &HeaderName| {
        let is_of_content = name.as_str().starts_with("content-");
        !is_of_content && !OF_THE_PAGE.contains(name) && !METHOD_OVERRIDES.contains(&name.as_str())
    };
    let lines = headers.iter().filter(|(name, _)| is_theirs(name));
    lines.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// The same client, with neither interim responses nor trailers.
fn for_fragment(mut client: Client, is_of_write: bool) -> Client {
    let ClientExtras { spent, trace, checks, .. } = client.extras;
    let page = PageAtOrigin::default();
    if is_of_write {
        page.begin();
    }
    client.extras = ClientExtras {
        // A fragment is not checked again for the password of its page. It counts under its own limit.
        checks: PassedChecks { limit: None, is_counted: false, ..checks },
        trailers: Trailers::Dropped,
        spent,
        trace,
        page: Some(Arc::new(page)),
        purpose: RequestPurpose::Fragment,
        ..ClientExtras::default()
    };
    client
}

/// A page while it is assembled.
struct Page {
    site: Arc<Site>,
    /// The page, for requests of LiteSpeed's fragments.
    context: FragmentRequest,
    /// The status of the template.
    status: StatusCode,
    headers: HeaderMap,
    client: Client,
    /// How many more fragments, and how many more bytes, the page may have.
    left: AtomicUsize,
    bytes_left: AtomicUsize,
    /// Limits the concurrent requests for fragments.
    turns: Semaphore,
    /// The deadline for fetching all fragments.
    until: Instant,
    /// Whether the request was a write. Then missing fragments are left out, because an error page
    /// could make the user repeat the write.
    is_of_write: bool,
}

/// The complete content of a page or fragment in pieces, or the reason for the failure.
type Whole = Result<VecDeque<Bytes>, Reason>;

impl Page {
    /// Parses the template `content` of the page `target`, and inserts its fragments. Boxed, because a
    /// fragment may be a template, too.
    fn put_together(
        self: &Arc<Self>,
        content: Bytes,
        target: TargetUri,
        (dialect, depth): (EsiDialect, usize),
    ) -> Pin<Box<dyn Future<Output = Whole> + Send>> {
        let page = self.clone();
        Box::pin(async move {
            let template = Template::read_as(&content, dialect);
            if let Some(at) = template.left {
                let (url, count) = (target.uri(), template.left_count);
                tracing::debug!(event = "esi-left", url, at, count);
            }
            let read = (&content, &template, dialect);
            let mut fragments = page.fragments(read, &target, depth).await?;
            let mut pieces = VecDeque::new();
            for part in &template.parts {
                match part {
                    Part::Text(range) => pieces.push_back(content.slice(range.clone())),
                    Part::Include(_) => pieces.extend(fragments.pop_front().unwrap_or_default()),
                    Part::Inline(_) => {}
                }
            }
            Ok(pieces)
        })
    }

    /// Reads the complete content, within the page's remaining bytes.
    async fn gather(&self, mut body: ResponseBody) -> Result<Bytes, Reason> {
        let mut content = ContentBuffer::default();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|_| Reason::HungUp)?;
            let Ok(piece) = frame.into_data() else { continue };
            self.take(&self.bytes_left, piece.len()).ok_or(Reason::PageTooLarge)?;
            content.push(piece);
        }
        Ok(content.into_bytes())
    }

    fn take(&self, left: &AtomicUsize, count: usize) -> Option<()> {
        let less = |left: usize| left.checked_sub(count);
        left.try_update(Ordering::Relaxed, Ordering::Relaxed, less).ok().map(drop)
    }

    /// The fragments of a template in their order, fetched concurrently.
    async fn fragments(
        self: &Arc<Self>,
        (content, template, dialect): (&Bytes, &Template<'_>, EsiDialect),
        target: &TargetUri,
        depth: usize,
    ) -> Result<VecDeque<VecDeque<Bytes>>, Reason> {
        let mut asking = JoinSet::new();
        let mut found: Vec<VecDeque<Bytes>> = Vec::new();
        let given = self.given(content, template, (target, dialect));
        let given = timeout_at(self.until, given).await.unwrap_or_default();
        for part in &template.parts {
            let Part::Include(include) = part else { continue };
            if self.take(&self.left, 1).is_none() {
                let missing = (include, dialect);
                found.push(self.failed(target, missing, &include.src, Reason::FragmentTooMany)?);
                continue;
            }
            let (page, at) = (self.clone(), found.len());
            found.push(VecDeque::new());
            if include.combine == Combine::Main {
                continue; // Nothing stands in the place of a combined request.
            }
            if let Some(given) = self.given_for(&given, include, target) {
                let depth = (dialect, depth + 1);
                asking.spawn(async move { (at, page.inserted(given, depth).await) });
                continue;
            }
            let wanted = (target.clone(), include.clone().into_owned(), dialect);
            asking.spawn(async move { (at, page.fragment(wanted, depth).await) });
        }
        // Dropping it cancels the other requests, after a failure or when the client disconnects.
        while let Some(asked) = asking.join_next().await {
            let Ok((at, fragment)) = asked else { return Err(Reason::FragmentFailed) };
            found[at] = fragment?;
        }
        Ok(found.into())
    }

    /// Fetches one fragment, or its alternative (`alt`) if that fails.
    async fn fragment(
        self: Arc<Self>,
        (page, include, dialect): (TargetUri, Include<'static>, EsiDialect),
        depth: usize,
    ) -> Whole {
        let (hosts, missing) = (&self.site.config.hosts, (&include, dialect));
        let asked = |src: &str| self.asked(page.resolve(src, hosts), missing, depth);
        let reason = match asked(&include.src).await {
            Ok(pieces) => return Ok(pieces),
            Err(Reason::Deferred) if !self.is_of_write => return Err(Reason::Deferred),
            Err(reason) => reason,
        };
        let Some(alt) = &include.alt else {
            return self.failed(&page, missing, &include.src, reason);
        };
        if self.take(&self.left, 1).is_none() {
            return self.failed(&page, missing, alt, Reason::FragmentTooMany);
        }
        match asked(alt).await {
            Ok(pieces) => Ok(pieces),
            Err(Reason::Deferred) if !self.is_of_write => Err(Reason::Deferred),
            Err(reason) => self.failed(&page, missing, alt, reason),
        }
    }

    /// Counts and logs a failed fragment. The result is empty content if the fragment may be omitted,
    /// else an error. LiteSpeed's elements cannot say so; they may be omitted.
    fn failed(
        &self,
        page: &TargetUri,
        (include, dialect): (&Include<'_>, EsiDialect),
        src: &str,
        reason: Reason,
    ) -> Whole {
        static SAID: Seldom = Seldom::once_in(Duration::from_secs(10));
        self.site.counters.fragments_failed.add();
        if SAID.is_due(self.site.clock.monotonic()) {
            tracing::warn!(
                event = "fragment-failed",
                page = page.uri(),
                src,
                reason = reason.as_str()
            );
        }
        let is_litespeeds = dialect == EsiDialect::LiteSpeed;
        if include.may_be_left_out || is_litespeeds || self.is_of_write {
            Ok(VecDeque::new())
        } else if reason == Reason::RateLimited {
            Err(reason)
        } else {
            Err(Reason::FragmentFailed)
        }
    }

    /// Requests a fragment from the site, and assembles it if it is a template.
    async fn asked(
        self: &Arc<Self>,
        target: Option<TargetUri>,
        (include, dialect): (&Include<'_>, EsiDialect),
        depth: usize,
    ) -> Whole {
        let target = target.ok_or(Reason::FragmentNotOfThisSite)?;
        if depth >= DEPTH_MAX {
            return Err(Reason::FragmentTooDeep);
        }
        self.site.counters.requests.add();
        self.site.counters.fragments.add();
        let answer = async {
            let _turn = self.turns.acquire().await;
            let response = self.answered(target.clone(), (include, dialect)).await?;
            Ok((template_dialect(&response), self.gather(response.into_body()).await?))
        };
        let answered = timeout_at(self.until, answer).await;
        let (template, content) = answered.unwrap_or(Err(Reason::FragmentTooLate))?;
        if let Some(dialect) = template {
            // The turn has been released, so nested fragments cannot deadlock.
            return self.put_together(content, target, (dialect, depth + 1)).await;
        }
        Ok(if content.is_empty() { VecDeque::new() } else { VecDeque::from([content]) })
    }

    async fn answered(
        &self,
        target: TargetUri,
        (include, dialect): (&Include<'_>, EsiDialect),
    ) -> Result<Response<ResponseBody>, Reason> {
        let uri = target
            .path_and_query
            .parse::<PathAndQuery>()
            .map_err(|_| Reason::FragmentNotOfThisSite)?;
        let mut request = Request::new(RequestContent::default());
        *request.uri_mut() = uri.into();
        let response = match dialect {
            EsiDialect::Standard => {
                request.headers_mut().clone_from(&self.headers);
                Box::pin(fragment(&self.site, request, target, &self.client)).await
            }
            EsiDialect::LiteSpeed => {
                *request.headers_mut() = shared_fields(&self.site, &self.headers);
                let client = self.client_for(include);
                Box::pin(fragment(&self.site, request, target, &client)).await
            }
        };
        if let Some(reason @ (Reason::RateLimited | Reason::Deferred)) = serve::own_error(&response)
        {
            return Err(reason);
        }
        match response.status() {
            // The application answers with the status of the page that the fragment is for.
            StatusCode::NOT_FOUND
                if dialect == EsiDialect::LiteSpeed && self.status == StatusCode::NOT_FOUND =>
            {
                Ok(response)
            }
            StatusCode::PARTIAL_CONTENT => Err(Reason::PartialContent),
            _ if response.headers().contains_key(header::CONTENT_ENCODING) => {
                Err(Reason::FragmentInACoding)
            }
            status if status.is_success() => Ok(response),
            status if status.is_redirection() => Err(Reason::FragmentRedirected),
            _ => Err(Reason::FragmentStatus),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::say_whose;
    use http::{HeaderMap, HeaderName, HeaderValue};

    #[test]
    fn an_assembled_page_is_private_to_its_client() {
        let say = |lines: &[(&'static str, &'static str)]| {
            let field = |(name, value): &(&'static str, &'static str)| {
                (HeaderName::from_static(name), HeaderValue::from_static(value))
            };
            let mut headers: HeaderMap = lines.iter().map(field).collect();
            say_whose(&mut headers);
            headers
        };
        let headers = say(&[
            ("cache-control", "public, s-maxage=600"),
            ("cdn-cache-control", "max-age=600"),
            ("surrogate-control", "max-age=600"),
            ("edge-control", "max-age=600"),
            ("x-accel-expires", "600"),
            ("expires", "Sun, 06 Nov 2094 08:49:37 GMT"),
            ("etag", "\"1\""),
            ("last-modified", "Sun, 06 Nov 1994 08:49:37 GMT"),
            ("content-length", "3"),
            ("content-type", "text/html"),
        ]);
        assert_eq!(headers.len(), 2, "{headers:?}");
        assert_eq!(headers["cache-control"], "private, no-cache");
        assert_eq!(say(&[("cache-control", "no-store")])["cache-control"], "private, no-store");
    }
}
