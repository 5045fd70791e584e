//! Sends requests to the origin. It removes fields that must not be forwarded and finds the script that answers. It also
//! forwards requests whose responses are not stored: unsafe methods, requests with content.
//!
//! Invalidation by unsafe requests is in `writes`. How long Pagewell waits for a response after the
//! client has disconnected is in `client_gone`.

use crate::client_gone::{self, OnClientGone};
use crate::file_rules::FileRules;
use crate::litespeed;
use crate::request_route::allowed_route;
use crate::rewrites::{self, RoutedRequest};
use crate::sendfile;
use crate::writes;
use bytes::Bytes;
use config::Limits;
use delivery::body::{Content, ResponseBody, SpoolContent};
use delivery::codings::encode_response;
use delivery::deferral;
use delivery::esi;
use delivery::response_spool::{ClientGone, ContentEnd, SpoolSender, response_spool};
use delivery::serve;
use delivery::site::Site;
use delivery::static_files;
use delivery::trial::AnswerWatch;
use delivery::visitors;
use event_log::Seldom;
use history::UnstoredRecord;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, Version, header};
use http_cache::litespeed::CacheControl;
use http_cache::status::{CacheOutcome, CacheStatus};
use http_cache::{Failure, Fields, ForwardReason, Method as Kind, RequestFacts, fields};
use origin::routes::{Route, Script, Withheld};
use origin::upload::Upload;
use origin::{Origin, OriginBody, OriginClass, OriginRequest, OriginResponse, RequestBody, Unsent};
use reasons::Reason;
use reasons::refusal::Refusal;
use request_values::steering_fields::is_from_clients;
use request_values::target::TargetUri;
use site_rules::{PlannedFields, RewriteFor};
use site_state::propagation::Propagation;
use std::sync::Arc;
use std::time::Duration;
use telemetry::client::Client;
use telemetry::request_content::RequestContent;
use telemetry::request_fields::read_facts;
use telemetry::trailers;

/// The reason for forwarding a request.
#[derive(Clone, Copy, Debug)]
pub struct ForwardCause {
    /// The reason as in RFC 9211.
    pub forward: ForwardReason,
    /// The reason in the `detail` parameter of `Cache-Status`, if any.
    pub reason: Option<Reason>,
    /// How long to wait for the response after the client has disconnected.
    pub on_client_gone: OnClientGone,
}

impl ForwardCause {
    /// A reason without a detail.
    pub fn of(forward: ForwardReason) -> ForwardCause {
        ForwardCause { forward, reason: None, on_client_gone: OnClientGone::Abort }
    }
}

/// The component that answers a path.
pub enum Answerer {
    /// The origin; with a script if it is a FastCGI responder.
    Origin(Option<Script>),
    /// Pagewell itself, by a file, a redirect or an error: the complete response.
    Here(Response<ResponseBody>),
}

/// Finds the component that answers the target of a request.
pub async fn answerer(
    site: &Arc<Site>,
    asked: RoutedRequest<'_>,
    facts: &RequestFacts<'_>,
) -> Answerer {
    let is_for_challenge = site.services.challenge_of(&asked.target.path_and_query).is_some();
    let files = site.files.as_deref().filter(|_| !is_for_challenge);
    let Some((files, static_files)) = files else { return Answerer::Origin(None) };
    let (here, target) = (|response| Answerer::Here(response), asked.target);
    let (route, is_rewritten) = allowed_route(site, &asked);
    if is_rewritten {
        site.counters.rewritten.add();
    }
    match route {
        Route::Script(script) => Answerer::Origin(Some(script)),
        Route::Hidden(Withheld::Script) => {
            site.counters.scripts_refused.add();
            here(serve::error(StatusCode::NOT_FOUND, Reason::ScriptRefused, None))
        }
        Route::Hidden(withheld) => {
            note_withheld(site, target, &withheld);
            here(serve::error(StatusCode::NOT_FOUND, Reason::NotFound, None))
        }
        Route::NotFound => here(serve::error(StatusCode::NOT_FOUND, Reason::NotFound, None)),
        Route::Malformed => {
            here(serve::error(StatusCode::BAD_REQUEST, Reason::PathMalformed, None))
        }
        Route::AddSlash(path) => {
            let query = target.path_and_query.split_once('?').map(|(_, query)| query);
            here(serve::redirect(&path, query))
        }
        Route::Static(_) if !matches!(facts.method, Kind::Get | Kind::Head) => {
            here(static_files::method_not_allowed())
        }
        Route::Static(path) => {
            site.counters.files.add();
            match static_files::answer(static_files, site, &path, facts).await {
                Ok(mut response) => {
                    let rules = FileRules::of(site, target);
                    rules.cache(&mut response);
                    let is_rewritten = is_rewritten
                        || site.config.rules.rewrites_file(&rewrites::view_of_page(&asked));
                    if target.written.is_none() && rules.follow_path() && !is_rewritten {
                        let laid = |headers: &HeaderMap| rules.laid_out(headers);
                        let print = site.config.rules.fields_print();
                        let at = (target.path(), site.reading());
                        static_files.note_found(&files.root, at, &path, (print, &laid));
                    }
                    here(response)
                }
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                    here(serve::error(StatusCode::NOT_FOUND, Reason::NotFound, None))
                }
                Err(error) => {
                    tracing::error!(event = "file-failed", path = %path.display(), %error);
                    here(serve::error(StatusCode::INTERNAL_SERVER_ERROR, Reason::FileFailed, None))
                }
            }
        }
    }
}

/// Logs a symbolic link that leads outside the document root, at most once a minute. The client
/// only gets a 404; the operator may allow the link.
fn note_withheld(site: &Site, target: &TargetUri, withheld: &Withheld) {
    static LOGGED: Seldom = Seldom::once_in(Duration::from_secs(60));
    if let Withheld::LinkOutside(leads_to) = withheld
        && LOGGED.is_due(site.clock.monotonic())
    {
        let (path, leads_to) = (target.path(), leads_to.display());
        let hint = "allow it by site.allow_symlinks, or leave it";
        tracing::warn!(event = "link-outside-root", path, %leads_to, hint);
    }
}

/// Returns the header lines of a request to the origin.
pub fn outgoing(headers: &HeaderMap) -> HeaderMap {
    outgoing_but_for(headers, |_| false)
}

/// Returns the header lines of an origin request for a page that may be shared: those for which
/// `sends` returns true.
pub fn outgoing_for_page(headers: &HeaderMap, sends: impl Fn(&str) -> bool) -> HeaderMap {
    outgoing_but_for(headers, |name| !sends(name))
}

/// Copies the lines in one pass, because removing lines from a copy would need a lookup for each of
/// them.
fn outgoing_but_for(headers: &HeaderMap, is_left_out: impl Fn(&str) -> bool) -> HeaderMap {
    let hop = fields::OneHop::of(headers);
    let goes = |name: &HeaderName| {
        !hop.has(name)
            && is_from_clients(name.as_str())
            && *name != header::CONTENT_LENGTH
            && *name != header::EXPECT
            && !is_left_out(name.as_str())
    };
    let mut kept = HeaderMap::with_capacity((headers.len() + FIELDS_ADDED).min(ROOM_MAX));
    for (name, value) in headers.iter().filter(|(name, _)| goes(name)) {
        kept.append(name, value.clone());
    }
    kept.append(header::VIA, HeaderValue::from_static("1.1 pagewell"));
    kept
}

/// Number of header lines that Pagewell may add: `Via`, a condition, trace context.
const FIELDS_ADDED: usize = 4;
/// Maximum number of header lines for which memory is reserved in advance.
const ROOM_MAX: usize = 256;

/// Announces the content's trailers to an HTTP origin.
fn with_announced(site: &Site, mut headers: HeaderMap, all: &HeaderMap) -> HeaderMap {
    if matches!(*site.origin, Origin::Http(_)) {
        trailers::announce(all, &mut headers);
    }
    headers
}

/// Replaces the lines that the plan has changed.
pub fn as_planned(headers: &mut HeaderMap, planned: &PlannedFields<'_>) {
    for name in planned.changed() {
        let mut values: Vec<&[u8]> = Vec::new();
        planned.values(name, &mut |value| values.push(value));
        let Ok(name) = HeaderName::from_bytes(name.as_bytes()) else { continue };
        let between: &[u8] = if name == header::COOKIE { b"; " } else { b", " };
        match HeaderValue::from_bytes(&values.join(between)) {
            Ok(value) if !values.is_empty() => drop(headers.insert(name, value)),
            _ => drop(headers.remove(name)),
        }
    }
}

/// Forwards a GET or HEAD unchanged. The response is for one client and is not stored.
pub async fn pass_bypassed(
    site: &Arc<Site>,
    request: http::Request<RequestContent>,
    target: TargetUri,
    client: &Client,
    why: ForwardCause,
) -> Response<ResponseBody> {
    let (head, body) = request.into_parts();
    let head = Arc::new(head);
    let facts = read_facts(&head.method, &head.headers);
    match begin_bypass(site, &facts) {
        Ok(()) => passed(site, (&head, body), &facts, target, client, (why, None)).await,
        Err(refused) => *refused,
    }
}

/// As [`pass_bypassed`], during a trial: `watch` sees the answer on its way.
pub async fn pass_watched(
    site: &Arc<Site>,
    request: http::Request<RequestContent>,
    target: TargetUri,
    client: &Client,
    (why, watch): (ForwardCause, Box<AnswerWatch>),
) -> Response<ResponseBody> {
    let (head, body) = request.into_parts();
    let head = Arc::new(head);
    let facts = read_facts(&head.method, &head.headers);
    match begin_bypass(site, &facts) {
        Ok(()) => passed(site, (&head, body), &facts, target, client, (why, Some(watch))).await,
        Err(refused) => *refused,
    }
}

/// Counts a GET or HEAD that bypasses the store.
///
/// # Errors
/// The answer if the client accepts only a stored response (RFC 9111 section 5.2.1.7).
pub fn begin_bypass(
    site: &Site,
    facts: &RequestFacts<'_>,
) -> Result<(), Box<Response<ResponseBody>>> {
    if facts.cache_control.only_if_cached {
        let refused = serve::error(StatusCode::GATEWAY_TIMEOUT, Reason::OnlyIfCached, None);
        return Err(Box::new(refused));
    }
    site.counters.bypasses.add();
    Ok(())
}

/// Forwards a request that is not answered from the store and whose response is not stored.
pub async fn pass(
    site: &Arc<Site>,
    request: http::Request<RequestContent>,
    target: TargetUri,
    client: &Client,
    why: ForwardCause,
) -> Response<ResponseBody> {
    let (head, body) = request.into_parts();
    let head = Arc::new(head);
    let facts = read_facts(&head.method, &head.headers);
    passed(site, (&head, body), &facts, target, client, (why, None)).await
}

/// Forwards a request with these facts, which were read from its head.
async fn passed(
    site: &Arc<Site>,
    (head, body): (&Arc<http::request::Parts>, RequestContent),
    facts: &RequestFacts<'_>,
    target: TargetUri,
    client: &Client,
    (why, watch): (ForwardCause, Option<Box<AnswerWatch>>),
) -> Response<ResponseBody> {
    let of = (facts, RewriteFor::Client);
    let mut outgoing = match prepare(site, (head, body), &target, client, of).await {
        Ok(outgoing) => *outgoing,
        Err(response) => return *response,
    };
    if watch.is_some() {
        outgoing.admission.group_as_without_trial();
        if site.config.codings.are_made() {
            // As for a page that is stored: Pagewell compresses the answer.
            outgoing.headers.remove(header::ACCEPT_ENCODING);
        }
    }
    let asked = (target.clone(), head.clone());
    let sent = match facts.method {
        // A write may outlive its client, so it shares the head.
        Kind::Unsafe => writes::send(site, outgoing, target, client, head.clone()).await,
        _ => client_gone::send(site, outgoing, why.on_client_gone).await.map(not_late),
    };
    let (target, head) = asked;
    let answer = answer_watched(site, facts, sent, (why, watch));
    deferral::finish(site, (&head.method, &head.headers), &target, client, answer)
}

/// Sends a form that Pagewell has written itself, on behalf of a client, and returns the response. It is
/// no write of the client. `None` if the origin gives no response.
pub async fn post_form(
    site: &Arc<Site>,
    target: TargetUri,
    headers: HeaderMap,
    client: &Client,
    content: Bytes,
) -> Option<OriginResponse> {
    let facts = read_facts(&Method::GET, &headers);
    let asked = RoutedRequest::of_page(&target, &Method::POST);
    let Answerer::Origin(script) = answerer(site, asked, &facts).await else { return None };
    site.counters.forwards.add();
    let admission = visitors::admission(site, client, OriginClass::Personal, (&target, &headers));
    let outgoing = OriginRequest {
        headers: outgoing(&headers),
        body: RequestBody::Stream(Box::new(Upload::of_bytes(content))),
        script,
        method: Method::POST,
        ..OriginRequest::of(&target, client, admission)
    };
    client_gone::send(site, outgoing, OnClientGone::Abort).await.ok()?.ok()
}

/// The request to the origin for a request that is forwarded. Its response is for this client alone, or stored as a
/// page is (`rewrites`).
///
/// # Errors
/// The answer of Pagewell itself, if the target is not the origin's.
pub async fn prepare(
    site: &Arc<Site>,
    (head, body): (&http::request::Parts, RequestContent),
    target: &TargetUri,
    client: &Client,
    (facts, rewrites): (&RequestFacts<'_>, RewriteFor),
) -> Result<Box<OriginRequest>, Box<Response<ResponseBody>>> {
    let of_client = (rewrites == RewriteFor::Client).then_some((&head.headers, client));
    let asked = RoutedRequest { target, method: &head.method, client: of_client };
    let script = match answerer(site, asked, facts).await {
        Answerer::Here(response) => return Err(Box::new(encode_response(site, facts, response))),
        Answerer::Origin(script) => script,
    };
    site.counters.forwards.add();
    let class = match facts.method {
        Kind::Unsafe => OriginClass::Write,
        _ => OriginClass::Personal,
    };
    let admission = visitors::admission(site, client, class, (target, &head.headers));
    Ok(Box::new(OriginRequest {
        headers: with_announced(site, outgoing(&head.headers), &head.headers),
        body: content_of(body, head.version, &head.headers, &site.limits),
        script,
        version: head.version,
        method: head.method.clone(),
        ..OriginRequest::of(target, client, admission)
    }))
}

/// The result of a forwarded request: the response or why there is none, and whether the changes that it
/// announced are applied everywhere. The outer error is a panic of the task that has sent it.
pub type ForwardResult =
    Result<Result<(OriginResponse, Propagation), (Unsent, Propagation)>, tokio::task::JoinError>;

/// The answer to a client whose request was forwarded.
pub fn answer(
    site: &Arc<Site>,
    facts: &RequestFacts<'_>,
    sent: ForwardResult,
    why: ForwardCause,
) -> Response<ResponseBody> {
    answer_watched(site, facts, sent, (why, None))
}

fn answer_watched(
    site: &Arc<Site>,
    facts: &RequestFacts<'_>,
    sent: ForwardResult,
    (why, mut watch): (ForwardCause, Option<Box<AnswerWatch>>),
) -> Response<ResponseBody> {
    // A panic of the task is logged elsewhere.
    let Ok(sent) = sent else {
        return serve::error(StatusCode::INTERNAL_SERVER_ERROR, Reason::Bug, None);
    };
    match sent {
        Err((unsent, waited)) => failed_late(site, unsent, why.forward, waited),
        Ok((response, waited)) => {
            let mut status =
                CacheStatus::new(serve::CACHE_NAME, CacheOutcome::Forwarded(why.forward));
            status.forward_status = Some(response.status);
            let late = response.waited.and(waited).reason();
            status.detail = late.or(why.reason).map(Reason::as_str);
            if let Some(watch) = &mut watch {
                watch.head(&response);
            }
            let passed = streamed(site, response, &status, (None, watch));
            let is_head = facts.method == Kind::Head;
            let passed = if is_head { serve::without_body(passed) } else { passed };
            encode_response(site, facts, passed)
        }
    }
}

/// The answer if the origin did not answer a write, and the other nodes may not have applied its
/// invalidation. The failure is in the page and in the log.
fn failed_late(
    site: &Arc<Site>,
    unsent: Unsent,
    why: ForwardReason,
    waited: Propagation,
) -> Response<ResponseBody> {
    let mut answer = failed(site, unsent, why);
    if let Some(late) = waited.reason() {
        let mut status = CacheStatus::new(serve::CACHE_NAME, CacheOutcome::Forwarded(why));
        status.detail = Some(late.as_str());
        answer.headers_mut().insert("cache-status", serve::status_value(&status));
    }
    answer
}

/// Adds to the result of a request that is not a write that no propagation is needed.
pub fn not_late<R>(sent: Result<R, Unsent>) -> Result<(R, Propagation), (Unsent, Propagation)> {
    sent.map(|response| (response, Propagation::NotNeeded))
        .map_err(|unsent| (unsent, Propagation::NotNeeded))
}

fn content_of(
    body: RequestContent,
    version: Version,
    headers: &HeaderMap,
    limits: &Limits,
) -> RequestBody {
    use http_body::Body;
    if body.is_end_stream() && !headers.contains_key(header::TRANSFER_ENCODING) {
        return RequestBody::Empty;
    }
    RequestBody::Stream(Box::new(Upload::new(body, version, limits)))
}

/// The answer if the origin did not answer.
pub fn failed(site: &Arc<Site>, unsent: Unsent, why: ForwardReason) -> Response<ResponseBody> {
    let mut status = CacheStatus::new(serve::CACHE_NAME, CacheOutcome::Forwarded(why));
    match unsent {
        Unsent::Client(refusal) => {
            site.counters.rejected.add();
            site.counters.limit_hits.refused(refusal);
            let mut response = serve::error(refusal.status(), refusal.into(), None);
            // The rest of the request is not read.
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(header::CONNECTION, close);
            if refusal == Refusal::ContentNoRoom {
                // Room for content is released as other requests end.
                response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("10"));
            }
            response
        }
        Unsent::Failed(failure) => {
            // Those were never sent.
            let is_of_pagewell =
                matches!(failure, Failure::Overloaded | Failure::Deferred | Failure::Limited(_));
            if !is_of_pagewell {
                site.counters.origin_failures.add();
            }
            status.detail = Some(failure.as_str());
            serve::origin_failed(failure, &status)
        }
        Unsent::Redirected(_) => {
            status.detail = Some(Failure::InvalidResponse.as_str());
            serve::origin_failed(Failure::InvalidResponse, &status)
        }
    }
}

/// Streams a response that is not stored to the client. The origin is read at its own speed. When
/// the client disconnects, the origin request is cancelled. `record` is what the history has of it.
pub fn stream(
    site: &Arc<Site>,
    response: OriginResponse,
    status: &CacheStatus<'_>,
    record: Option<UnstoredRecord>,
) -> Response<ResponseBody> {
    streamed(site, response, status, (record, None))
}

/// The same; `watch` sees the content.
fn streamed(
    site: &Arc<Site>,
    response: OriginResponse,
    status: &CacheStatus<'_>,
    (record, watch): (Option<UnstoredRecord>, Option<Box<AnswerWatch>>),
) -> Response<ResponseBody> {
    let OriginResponse { status: code, headers: all, body, waited: _ } = response;
    let said = CacheControl::read(&all);
    let mut headers = serve::passed_on(all.clone(), &site.config.policy, status);
    let mut length =
        headers.get(header::CONTENT_LENGTH).and_then(|v| v.to_str().ok()?.parse().ok());
    if let Some(file) = sendfile::named_file(site, code, &all) {
        return sendfile::announced(headers, body, file);
    }
    let (sender, receiver) = response_spool(site);
    if body.may_have_trailers() {
        // Trailers need chunked content, without a `Content-Length`.
        length = None;
        trailers::announce(&all, &mut headers);
    }
    tokio::spawn(pump(body, sender, (record, watch)));
    let content = match code.as_u16() {
        204 | 304 => Content::Empty,
        _ => Content::Spool(Box::new(SpoolContent { receiver, length })),
    };
    let mut answer = Response::new(ResponseBody::from(content));
    *answer.status_mut() = code;
    *answer.headers_mut() = headers;
    litespeed::remember_refusal(said, &mut answer);
    esi::marked(site, &all, answer)
}

/// Copies content from the origin to the client's spool until one of them ends.
async fn pump(
    mut body: OriginBody,
    sender: SpoolSender,
    (record, mut watch): (Option<UnstoredRecord>, Option<Box<AnswerWatch>>),
) {
    let failure = loop {
        let piece = tokio::select! {
            piece = body.next() => piece,
            () = sender.closed() => return watch.map_or((), AnswerWatch::client_gone),
        };
        match piece {
            None => break None,
            Some(Err(failure)) => break Some(failure),
            Some(Ok(piece)) => {
                let copy = watch.as_ref().map(|_| piece.clone());
                let sent = sender.send(piece).await;
                watch.iter_mut().zip(copy).for_each(|(watch, piece)| watch.piece(&piece));
                if let Err(ClientGone) = sent {
                    return watch.map_or((), AnswerWatch::client_gone);
                }
            }
        }
    };
    let trailers = body.trailers();
    let against = body.ended().against_storing();
    if let (Some(record), Some(reason)) = (record, against) {
        record.correct(reason);
    }
    // The concurrency slot at the origin is released before the client receives the end.
    drop(body);
    let is_whole = failure.is_none() && against.is_none();
    sender.end(ContentEnd { failure, trailers, ..ContentEnd::default() });
    if let Some(watch) = watch.filter(|_| is_whole) {
        watch.end();
    }
}
