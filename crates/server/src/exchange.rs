//! One request and its response: the heart. What is to be done is decided by a pure function
//! (`http_cache::decide`); here is the one match on its verdict. Renders are in `render`, requests
//! that are passed on in `forward`, responses as they are written in `serve`. Plain hits over HTTP/1.1
//! do not come here: `hits` answers them in front of hyper, by the same verdict.

use crate::body::{Content, ResponseBody};
use crate::forward::{self, AsSent, read_facts};
use crate::page::{SharedPage, StoredPage};
use crate::render::{self, Ask};
use crate::serve;
use crate::site::Site;
use crate::target::Target;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body::Body;
use http_cache::status::{CacheStatus, Handled};
use http_cache::{
    Candidate, ForwardReason, Method as Kind, RequestFacts, Reuse, StaleBecause, Timestamp,
    Verdict, decide,
};
use hyper::body::Incoming;
use page_store::Candidates;
use std::net::SocketAddr;
use std::sync::Arc;

/// Who asks, and by which way.
#[derive(Clone, Debug)]
pub struct Visitor {
    /// The client's address; none over a Unix socket.
    pub peer: Option<SocketAddr>,
    /// The address it came to; none over a Unix socket.
    pub local: Option<SocketAddr>,
}

/// Answers a request.
pub async fn answer(
    site: &Arc<Site>,
    request: Request<Incoming>,
    visitor: &Visitor,
) -> Response<ResponseBody> {
    site.counters.requests.add();
    // What comes behind chunked content is not read: the connection ends with this response.
    let last = request.headers().contains_key(header::TRANSFER_ENCODING);
    let target = Target::read(request.uri(), request.headers(), "localhost");
    let mut response = match target {
        Ok(target) => dispatch(site, request, target, visitor).await,
        Err(error) => serve::error(StatusCode::BAD_REQUEST, error.as_str(), None),
    };
    if last {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

async fn dispatch(
    site: &Arc<Site>,
    request: Request<Incoming>,
    target: Target,
    visitor: &Visitor,
) -> Response<ResponseBody> {
    let has_content = !request.body().is_end_stream();
    match (Kind::of(request.method()), request.method()) {
        (Kind::Get | Kind::Head, _) if target.path_and_query == "*" => {
            serve::error(StatusCode::BAD_REQUEST, "target-invalid", None)
        }
        // The content of a GET is not part of the key.
        (Kind::Get | Kind::Head, _) if has_content => {
            forward::pass(site, request, target, visitor, ForwardReason::Bypass).await
        }
        (Kind::Get | Kind::Head, _) => get(site, request, target, visitor).await,
        (_, &Method::TRACE) => {
            let mut response = serve::error(StatusCode::METHOD_NOT_ALLOWED, "method-trace", None);
            // RFC 9110 section 15.5.6: a 405 says what is allowed.
            response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
            response
        }
        (_, &Method::OPTIONS) if target.path_and_query == "*" => {
            let mut response = Response::new(ResponseBody::from(Content::Empty));
            *response.status_mut() = StatusCode::NO_CONTENT;
            response
        }
        _ => forward::pass(site, request, target, visitor, ForwardReason::Method).await,
    }
}

/// Answers a GET or HEAD: from the store if the verdict is so, else by a render.
async fn get(
    site: &Arc<Site>,
    request: Request<Incoming>,
    target: Target,
    visitor: &Visitor,
) -> Response<ResponseBody> {
    let mut key = Vec::with_capacity(128);
    target.write_key(&mut key);
    let facts = read_facts(request.method(), request.headers());
    let (candidates, verdict) = decide_on(site, &facts, request.headers(), &key);
    let pages = candidates.as_slice();
    let (why, validate, fallback) = match verdict {
        Verdict::Reuse { candidate, state: Reuse::Fresh, .. } => {
            return hit(site, &facts, &pages[candidate]);
        }
        Verdict::Reuse { candidate, state: Reuse::Stale(because), .. } => {
            let page = &pages[candidate];
            if because == StaleBecause::WhileRevalidate {
                let again = Some(page.clone());
                let ask = ask(&request, target, key, visitor, ForwardReason::Stale, &again, &again);
                tokio::spawn(render::refresh(site.clone(), ask));
            }
            return stale_hit(site, &facts, page, because);
        }
        Verdict::Unsatisfied => {
            return serve::error(StatusCode::GATEWAY_TIMEOUT, "only-if-cached", None);
        }
        Verdict::Forward { why, validate, fallback } => (why, validate, fallback),
    };
    let page = |at: Option<usize>| at.map(|at| pages[at].clone());
    let ask = ask(&request, target, key, visitor, why, &page(validate), &page(fallback));
    render::get(site, ask).await
}

fn ask(
    request: &Request<Incoming>,
    target: Target,
    key: Vec<u8>,
    visitor: &Visitor,
    why: ForwardReason,
    validate: &Option<SharedPage>,
    fallback: &Option<SharedPage>,
) -> Ask {
    Ask {
        target,
        key,
        method: request.method().clone(),
        headers: request.headers().clone(),
        version: request.version(),
        visitor: visitor.clone(),
        why,
        validate: validate.clone(),
        fallback: fallback.clone(),
    }
}

/// What is stored under a key, and what is to be done with a request for it.
pub fn decide_on(
    site: &Arc<Site>,
    facts: &RequestFacts<'_>,
    headers: &HeaderMap,
    key: &[u8],
) -> (Candidates<StoredPage>, Verdict) {
    let candidates = site.store.candidates(site.store.key(key));
    let listed = candidates
        .iter()
        .map(|page| Candidate { stored: &page.payload().stored, marked: page.is_marked() });
    let verdict = decide(facts, &AsSent(headers), listed, &site.config.policy, site.clock.now());
    (candidates, verdict)
}

/// Whether a page that was just made answers this request.
pub fn answers(
    site: &Arc<Site>,
    facts: &RequestFacts<'_>,
    headers: &HeaderMap,
    page: &SharedPage,
    now: Timestamp,
) -> bool {
    let only = Candidate { stored: &page.payload().stored, marked: false };
    let listed = std::iter::once(only);
    let verdict = decide(facts, &AsSent(headers), listed, &site.config.policy, now);
    matches!(verdict, Verdict::Reuse { .. })
}

/// A fresh page from the store.
pub fn hit(
    site: &Arc<Site>,
    facts: &RequestFacts<'_>,
    page: &SharedPage,
) -> Response<ResponseBody> {
    site.counters.hits.add();
    from_store(site, facts, page, None)
}

fn stale_hit(
    site: &Arc<Site>,
    facts: &RequestFacts<'_>,
    page: &SharedPage,
    because: StaleBecause,
) -> Response<ResponseBody> {
    site.counters.stale_hits.add();
    let detail = match because {
        StaleBecause::WhileRevalidate => "stale-while-revalidate",
        StaleBecause::MaxStale => "max-stale",
    };
    from_store(site, facts, page, Some(detail))
}

fn from_store(
    site: &Arc<Site>,
    facts: &RequestFacts<'_>,
    page: &SharedPage,
    detail: Option<&'static str>,
) -> Response<ResponseBody> {
    let now = site.clock.now();
    let page = page.payload();
    let mut status = CacheStatus::new(serve::CACHE_NAME, Handled::Hit);
    status.ttl_seconds = Some(page.stored.ttl_seconds(now));
    status.detail = detail;
    serve::page(facts, page, now, &status)
}
