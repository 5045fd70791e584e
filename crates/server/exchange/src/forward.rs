//! Requests on their way to the origin: what is taken out of them, which script answers, and those
//! that are passed on without being stored (unsafe methods, requests with content).
//!
//! What an unsafe request changed is `writes`'s, how long an answer is waited for when its visitor has
//! left `heard`'s.

use crate::body::{Content, ResponseBody, SpoolContent};
use crate::codings::on_the_way;
use crate::esi;
use crate::heard::{self, Patience};
use crate::litespeed;
use crate::private::{self, Keep, Taken};
use crate::response_spool::{ClientGone, ContentEnd, SpoolSender, response_spool};
use crate::sendfile;
use crate::serve;
use crate::site::Site;
use crate::static_files;
use crate::writes;
use config::Limits;
use config::log::Seldom;
use config::steering_fields::is_from_clients;
use config::target::Target;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, Version, header};
use http_cache::litespeed::CacheControl;
use http_cache::status::{CacheOutcome, CacheStatus};
use http_cache::{Failure, FieldUse, Fields, ForwardReason, Method as Kind, RequestFacts, fields};
use origin::routes::{Route, Script, Withheld, route_in};
use origin::upload::Upload;
use origin::{Origin, OriginBody, OriginRequest, OriginResponse, Reached, RequestBody, Unsent};
use site_rules::PlannedFields;
use site_state::client::Besides;
use site_state::client::{RequestContent, Visitor};
use site_state::pending_changes::PendingChange;
use site_state::propagation::Propagation;
use site_state::refusal::Refusal;
use site_state::request_fields::read_facts;
use site_state::traces;
use site_state::trailers;
use std::sync::Arc;
use std::time::Duration;

/// How often an origin may send a request on to another path of its own (RFC 3875 section 6.2.2).
const REDIRECTS_MAX: usize = 5;

/// Why a request is passed on.
#[derive(Clone, Copy, Debug)]
pub struct Why {
    /// As RFC 9211 has it.
    pub forward: ForwardReason,
    /// More, in a word.
    pub detail: Option<&'static str>,
    /// How long its answer is waited for if its visitor leaves.
    pub patience: Patience,
}

impl Why {
    /// Nothing more than RFC 9211 says.
    pub fn of(forward: ForwardReason) -> Why {
        Why { forward, detail: None, patience: Patience::WhileAsked }
    }
}

/// What answers a path.
pub enum Answerer {
    /// The origin; with a script where it is a FastCGI responder.
    Origin(Option<Script>),
    /// A file, a redirect or an error: already the answer.
    Here(Response<ResponseBody>),
}

/// Finds what answers the target of a request.
pub async fn answerer(site: &Arc<Site>, target: &Target, facts: &RequestFacts<'_>) -> Answerer {
    let Some((files, static_files)) = site.files.as_deref() else { return Answerer::Origin(None) };
    let here = |response| Answerer::Here(response);
    match route_of(site, target) {
        Route::Script(script) => Answerer::Origin(Some(script)),
        Route::Hidden(withheld) => {
            note_withheld(site, target, &withheld);
            here(serve::error(StatusCode::NOT_FOUND, "not-found", None))
        }
        Route::NotFound => here(serve::error(StatusCode::NOT_FOUND, "not-found", None)),
        Route::Malformed => here(serve::error(StatusCode::BAD_REQUEST, "path-malformed", None)),
        Route::AddSlash(path) => {
            let query = target.path_and_query.split_once('?').map(|(_, query)| query);
            here(serve::redirect(&path, query))
        }
        Route::Static(_) if !matches!(facts.method, Kind::Get | Kind::Head) => {
            here(static_files::method_not_allowed())
        }
        Route::Static(path) => {
            site.counters.files.add();
            match static_files.answer(site, &path, facts).await {
                Ok(response) => {
                    if target.written.is_none() {
                        static_files.note_found(&files.root, target.path(), &path);
                    }
                    here(response)
                }
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                    here(serve::error(StatusCode::NOT_FOUND, "not-found", None))
                }
                Err(error) => {
                    tracing::error!(event = "file-failed", path = %path.display(), %error);
                    here(serve::error(StatusCode::INTERNAL_SERVER_ERROR, "file-failed", None))
                }
            }
        }
    }
}

/// A link that leads where it may not is the operator's to allow: visitors only see a 404.
fn note_withheld(site: &Site, target: &Target, withheld: &Withheld) {
    static LOGGED: Seldom = Seldom::once_in(Duration::from_secs(60));
    if let Withheld::LinkOutside(leads_to) = withheld
        && LOGGED.is_due(site.clock.monotonic())
    {
        let (path, leads_to) = (target.path(), leads_to.display());
        let hint = "allow it by site.allow_symlinks, or leave it";
        tracing::warn!(event = "link-outside-root", path, %leads_to, hint);
    }
}

/// What the target means. Scripts answer the page's normal path, for whatever they answer is stored
/// by it. But files are called what they are called, also those that are hidden; and a directory that has
/// lost its slash to the normal form must not be redirected to it for ever.
pub fn route_of(site: &Site, target: &Target) -> Route {
    let Some(root) = site.root() else { return Route::NotFound };
    let normal = route_in(root, target.path());
    match (&target.written, normal) {
        (None, normal) => normal,
        (Some(written), Route::AddSlash(_)) => route_in(root, written),
        (Some(written), normal) => match route_in(root, written) {
            there @ (Route::Static(_) | Route::Hidden(_)) => there,
            _ => normal,
        },
    }
}

/// The header lines of a request as they go to the origin.
pub fn outgoing(headers: &HeaderMap) -> HeaderMap {
    outgoing_but_for(headers, |_| false)
}

/// The header lines of a request for a page that may be shared, as they go to the origin: those that
/// `sends` says.
pub fn outgoing_for_page(headers: &HeaderMap, sends: impl Fn(&str) -> bool) -> HeaderMap {
    outgoing_but_for(headers, |name| !sends(name))
}

/// One walk over the lines that came: to take some out of a copy would be to look for each.
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

/// As many lines may come to those of a request: `Via`, a condition, a trace's.
const FIELDS_ADDED: usize = 4;
/// Room that is made at once, in lines.
const ROOM_MAX: usize = 256;

/// An HTTP origin is told which trailers the content will have.
fn with_announced(site: &Site, mut headers: HeaderMap, all: &HeaderMap) -> HeaderMap {
    if matches!(*site.origin, Origin::Http(_)) {
        trailers::announce(all, &mut headers);
    }
    headers
}

/// Puts the lines that the plan has changed in the place of those that came.
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

/// Sends a request, and follows where the origin sends it within the site. Whatever the response says in
/// LiteSpeed's dialect to have changed is taken in here, before anybody gets it.
///
/// # Errors
/// How the origin failed, or why the request could not be sent.
pub async fn send_following(
    site: &Arc<Site>,
    request: &mut OriginRequest,
) -> Result<OriginResponse, Unsent> {
    let hand = match heard::may_say(site) {
        true => Some(PendingChange::begin(site.state()).await),
        false => None,
    };
    request.litespeed = site.config.dialects.litespeed;
    esi::announce(site, &mut request.headers);
    let method = request.method.clone();
    let (spent, trace) = (request.besides.spent.clone(), request.besides.trace.clone());
    // How long its client takes is not the origin's time.
    site.origin.take_in(request).await?;
    for _ in 0..REDIRECTS_MAX {
        let begun = site.clock.monotonic();
        let asked = traces::in_request(site, &mut request.headers, trace.as_ref());
        let mut answered = site.origin.send(request).await;
        if let Ok(response) = &mut answered {
            traces::out_of_response(site, &mut response.headers);
            sendfile::note(site, &response.headers, || request.url());
        }
        if let Some(asked) = asked {
            asked.ended(answered.as_ref().ok().map(|response| response.status));
        }
        let took = site.clock.monotonic().saturating_sub(begun);
        site.counters.origin_times.add(took);
        if let Some(spent) = &spent {
            spent.add(took);
        }
        let path = match answered {
            Err(Unsent::Redirected(path)) => path,
            Ok(mut response) => {
                let place = || request.url();
                litespeed::take_in(site, (&method, place), &request.headers, &response.headers);
                if let Some(hand) = hand {
                    response.waited = hand.acknowledge().await;
                }
                return Ok(response);
            }
            unsent => return unsent,
        };
        let root = site.root().ok_or(Failure::InvalidResponse)?;
        let Route::Script(script) = route_in(root, path.split('?').next().unwrap_or_default())
        else {
            tracing::error!(event = "origin-invalid", reason = "redirect-to-no-script", path);
            return Err(Failure::InvalidResponse.into());
        };
        // Its content went with the first.
        (request.method, request.target, request.script) = (Method::GET, path, Some(script));
        request.besides = Besides::default();
    }
    tracing::error!(event = "origin-invalid", reason = "too-many-redirects");
    Err(Failure::InvalidResponse.into())
}

/// Passes a GET or HEAD on as it came: what is made for one visitor is not stored, but for that visitor
/// where `keep` says so.
pub async fn pass_bypassed(
    site: &Arc<Site>,
    request: http::Request<RequestContent>,
    target: Target,
    visitor: &Visitor,
    why: Why,
    keep: Option<Keep>,
) -> Response<ResponseBody> {
    if read_facts(request.method(), request.headers()).cache_control.only_if_cached {
        return serve::error(StatusCode::GATEWAY_TIMEOUT, "only-if-cached", None);
    }
    site.counters.bypasses.add();
    pass_keeping(site, request, target, visitor, why, keep).await
}

/// Passes a request on that is not answered from the store and whose response is not stored.
pub async fn pass(
    site: &Arc<Site>,
    request: http::Request<RequestContent>,
    target: Target,
    visitor: &Visitor,
    why: Why,
) -> Response<ResponseBody> {
    pass_keeping(site, request, target, visitor, why, None).await
}

async fn pass_keeping(
    site: &Arc<Site>,
    request: http::Request<RequestContent>,
    target: Target,
    visitor: &Visitor,
    mut why: Why,
    keep: Option<Keep>,
) -> Response<ResponseBody> {
    let (head, body) = request.into_parts();
    // The rest of it goes with a write.
    let headers = head.headers.clone();
    let facts = read_facts(&head.method, &headers);
    let kind = facts.method;
    let script = match answerer(site, &target, &facts).await {
        Answerer::Here(response) => return on_the_way(site, &facts, response),
        Answerer::Origin(script) => script,
    };
    site.counters.forwards.add();
    let outgoing = OriginRequest {
        target: target.path_and_query.clone(),
        host: target.host.clone(),
        scheme: target.scheme,
        headers: with_announced(site, outgoing(&head.headers), &head.headers),
        body: content_of(body, head.version, &head.headers, &site.limits),
        peer: visitor.peer,
        local: visitor.local,
        script,
        version: head.version,
        besides: visitor.besides.clone(),
        method: head.method.clone(),
        litespeed: FieldUse::Ignore,
        reached: Reached::default(),
    };
    let sent = match kind {
        Kind::Unsafe => writes::send(site, outgoing, target, visitor, head).await,
        _ => {
            let sent = heard::send(site, outgoing, why.patience).await;
            match (sent, keep) {
                (Ok(Ok(response)), Some(keep)) => {
                    match private::take(site, keep, &head, response).await {
                        Taken::Answer(answer) => return on_the_way(site, &facts, answer),
                        Taken::PassOn(response, reason) => {
                            why.detail = reason.or(why.detail);
                            Ok(Ok((response, Propagation::NotNeeded)))
                        }
                    }
                }
                (sent, _) => sent.map(not_late),
            }
        }
    };
    // A task that has panicked is in the log.
    let Ok(sent) = sent else {
        return serve::error(StatusCode::INTERNAL_SERVER_ERROR, "bug", None);
    };
    match sent {
        Err((unsent, waited)) => failed_late(site, unsent, why.forward, waited),
        Ok((response, waited)) => {
            let mut status =
                CacheStatus::new(serve::CACHE_NAME, CacheOutcome::Forwarded(why.forward));
            status.forward_status = Some(response.status);
            status.detail = response.waited.and(waited).detail().or(why.detail);
            let passed = stream(site, response, &status);
            let head_only = kind == Kind::Head;
            let passed = if head_only { serve::without_body(passed) } else { passed };
            on_the_way(site, &facts, passed)
        }
    }
}

/// The answer when the origin did not answer a write that other machines may not know of; why is in its page, and in
/// the log.
fn failed_late(
    site: &Arc<Site>,
    unsent: Unsent,
    why: ForwardReason,
    waited: Propagation,
) -> Response<ResponseBody> {
    let mut answer = failed(site, unsent, why);
    if let Some(late) = waited.detail() {
        let mut status = CacheStatus::new(serve::CACHE_NAME, CacheOutcome::Forwarded(why));
        status.detail = Some(late);
        answer.headers_mut().insert("cache-status", serve::status_value(&status));
    }
    answer
}

/// Of what was sent and is no write.
fn not_late<R>(sent: Result<R, Unsent>) -> Result<(R, Propagation), (Unsent, Propagation)> {
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
    let Some(body) = body else { return RequestBody::Empty };
    if body.is_end_stream() && !headers.contains_key(header::TRANSFER_ENCODING) {
        return RequestBody::Empty;
    }
    RequestBody::Stream(Box::new(Upload::new(body, version, limits)))
}

/// The answer when the origin did not answer.
pub fn failed(site: &Arc<Site>, unsent: Unsent, why: ForwardReason) -> Response<ResponseBody> {
    let mut status = CacheStatus::new(serve::CACHE_NAME, CacheOutcome::Forwarded(why));
    match unsent {
        Unsent::Client(refusal) => {
            site.counters.refused.add();
            site.counters.reached.refused(refusal);
            let mut response = serve::error(refusal.status(), refusal.as_str(), None);
            // What is left of the request is not worth reading.
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(header::CONNECTION, close);
            if refusal == Refusal::ContentNoRoom {
                // It is given back as others end.
                response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("10"));
            }
            response
        }
        Unsent::Failed(failure) => {
            site.counters.origin_failures.add();
            status.detail = Some(failure.as_str());
            serve::origin_failed(failure, &status)
        }
        Unsent::Redirected(_) => {
            status.detail = Some(Failure::InvalidResponse.as_str());
            serve::origin_failed(Failure::InvalidResponse, &status)
        }
    }
}

/// Sends a response that is not stored to the client, piece by piece as they come. The origin is read at its own
/// speed. When the client goes, so does the request at the origin.
pub fn stream(
    site: &Arc<Site>,
    response: OriginResponse,
    status: &CacheStatus<'_>,
) -> Response<ResponseBody> {
    let OriginResponse { status: code, headers: all, body, waited: _ } = response;
    let said = CacheControl::read(&all);
    let mut headers = serve::passed_on(all.clone(), &site.config.policy, status);
    let mut length =
        headers.get(header::CONTENT_LENGTH).and_then(|v| v.to_str().ok()?.parse().ok());
    let (sender, receiver) = response_spool(site);
    if body.may_have_trailers() {
        // They come behind content of a length that is not said.
        length = None;
        trailers::announce(&all, &mut headers);
    }
    tokio::spawn(pump(body, sender));
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

/// Moves content from the origin to the client's side until one of the two ends.
async fn pump(mut body: OriginBody, sender: SpoolSender) {
    let failure = loop {
        let piece = tokio::select! {
            piece = body.next() => piece,
            () = sender.closed() => return,
        };
        match piece {
            None => break None,
            Some(Err(failure)) => break Some(failure),
            Some(Ok(piece)) => match sender.send(piece).await {
                Ok(()) => {}
                Err(ClientGone) => return,
            },
        }
    };
    let trailers = body.trailers();
    // Its place at the origin is free before the client has the end.
    drop(body);
    sender.end(ContentEnd { failure, trailers, ..ContentEnd::default() });
}
