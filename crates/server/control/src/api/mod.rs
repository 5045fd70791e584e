//! The control interface (API) on the admin address: invalidation, metrics, health, the dashboard.
//!
//! It listens on an address that only this machine can reach, or requires a token. `caller`
//! authorises calls, and protects against malicious pages in an operator's browser. Calls that
//! change anything must be `application/json`, which a page of another site cannot send without a
//! preflight request.

mod caller;
mod certificates;
mod content;
mod dashboard;
mod event_streams;
mod explain;
mod history;
mod invalidate;
mod live;
mod manual;
mod metrics;
mod most_requested;
mod places;
mod query;
pub(crate) mod ready;
mod requests;
mod sources;
mod stats;
mod trial;

pub use content::CALL_BYTES;
use content::{ARRIVAL, CallContents};
pub use dashboard::FILES;
pub use explain::Explain;
pub use invalidate::{Invalidate, InvalidationResult};
use live::Live;
pub use live::STREAMS;
use metrics::Format;
use most_requested::MostRequested;
use places::{CONNECTIONS, Call, Place, Places};
use requests::RequestStreams;
pub use requests::STREAMS as REQUEST_STREAMS;

use crate::attention::{next_steps, status_json};
use crate::history::MetricsHistory;
use crate::reload::{ChangedKey, NotReloaded, Reload, ReloadResult};
use bytes::Bytes;
use delivery::body::{BodyError, Content, ResponseBody};
use delivery::site::Site;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::body::{Body, Frame, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use serde::Deserialize;
use sockets::{AcceptedConnection, Listener, accept_each};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::{Arc, OnceLock};
use std::task;
use telemetry::phase::{Phase, PhaseWatch};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Semaphore;

/// The routes: method and path. [The manual](../../../../docs/operating/control.md) and the
/// description of the interface (`control-openapi.json`) list the same. The files of the dashboard
/// ([`FILES`]) are additional routes.
pub const ROUTES: [(&str, &str); 19] = [
    ("GET", "/v1/health"),
    ("GET", "/v1/ready"),
    ("GET", "/v1/status"),
    ("GET", "/v1/live"),
    ("GET", "/v1/requests"),
    ("GET", "/v1/history"),
    ("GET", "/v1/stats"),
    ("GET", "/v1/uncovered-tags"),
    ("GET", "/v1/changes"),
    ("GET", "/v1/misses"),
    ("GET", "/v1/most-requested"),
    ("GET", "/v1/sources"),
    ("GET", "/v1/certificates"),
    ("GET", "/v1/trial"),
    ("GET", "/metrics"),
    ("POST", "/v1/explain"),
    ("POST", "/v1/invalidate"),
    ("POST", "/v1/reload"),
    ("POST", "/v1/trial"),
];

/// The reasons for which a call is rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ControlError {
    /// `Host` is a domain name, which could belong to anyone (DNS rebinding).
    HostRefused,
    /// The browser reports a call by a page of another origin.
    CrossSite,
    /// The token is missing or wrong.
    TokenRefused,
    /// The path does not exist.
    NotFound,
    /// The manual is not installed, or has no such file.
    ManualMissing,
    /// The path requires this other method.
    Method(&'static str),
    /// The call is not `application/json`.
    NotJson,
    /// The call is invalid, with an explanation.
    Unreadable(String),
    /// No site has this host.
    SiteUnknown(String),
    /// The configuration could not be reloaded, with the reason.
    NotReloaded(NotReloaded),
    /// The call is too long, or took too long to arrive.
    TooLarge,
    /// The maximum number of event streams is running: so many.
    StreamsFull(usize),
}

impl ControlError {
    /// Returns the status code and the name of the error.
    pub fn status(&self) -> (StatusCode, &'static str) {
        match self {
            ControlError::HostRefused => (StatusCode::FORBIDDEN, "host-refused"),
            ControlError::CrossSite => (StatusCode::FORBIDDEN, "cross-site"),
            ControlError::TokenRefused => (StatusCode::UNAUTHORIZED, "token-refused"),
            ControlError::NotFound | ControlError::ManualMissing => {
                (StatusCode::NOT_FOUND, "not-found")
            }
            ControlError::Method(_) => (StatusCode::METHOD_NOT_ALLOWED, "method"),
            ControlError::NotJson => (StatusCode::UNSUPPORTED_MEDIA_TYPE, "not-json"),
            ControlError::Unreadable(_) => (StatusCode::BAD_REQUEST, "unreadable"),
            ControlError::SiteUnknown(_) => (StatusCode::NOT_FOUND, "site-unknown"),
            ControlError::NotReloaded(_) => (StatusCode::CONFLICT, "not-reloaded"),
            ControlError::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "too-large"),
            ControlError::StreamsFull(_) => (StatusCode::SERVICE_UNAVAILABLE, "streams-full"),
        }
    }

    fn explain(&self) -> String {
        match self {
            ControlError::HostRefused => {
                "call the control interface as localhost or by its address; by another name only with its token"
                    .into()
            }
            ControlError::CrossSite => {
                "a page of another site calls: open the dashboard here".into()
            }
            ControlError::TokenRefused => {
                "send Authorization: Bearer and the token of admin_token_file".into()
            }
            ControlError::NotFound => {
                let paths: Vec<_> = ROUTES.iter().map(|(_, path)| *path).collect();
                format!("there are {}", paths.join(", "))
            }
            ControlError::ManualMissing => {
                "no such file of the manual; the package and the archive install it, `cargo xtask book` builds it"
                    .into()
            }
            ControlError::Method(right) => format!("use {right}"),
            ControlError::NotJson => "send Content-Type: application/json".into(),
            ControlError::Unreadable(what) => what.clone(),
            ControlError::SiteUnknown(host) => {
                format!("no site has the host {host:?}: `pagewell stats --json` lists the sites")
            }
            ControlError::NotReloaded(why) => why.to_string(),
            ControlError::TooLarge => format!("at most {CALL_BYTES} bytes in {ARRIVAL:?}"),
            ControlError::StreamsFull(most) => format!("{most} listen already"),
        }
    }
}

/// The state for a call: the sites, the event streams, the last hour, and the process's phase.
#[derive(Clone)]
struct Control {
    site: Arc<Site>,
    reload: Arc<OnceLock<Reload>>,
    live: Arc<Live>,
    request_streams: Arc<RequestStreams>,
    history: Arc<MetricsHistory>,
    most_requested: Arc<MostRequested>,
    contents: Arc<CallContents>,
    stop: PhaseWatch,
}

impl Control {
    /// Returns the state with the current configuration.
    fn now(&self) -> Control {
        Control { site: self.site.now(), ..self.clone() }
    }
}

/// The parts of the process that calls read or change.
pub struct ControlParts {
    /// The default site, which knows the others.
    pub site: Arc<Site>,
    /// Reloads the configuration, once it is set and if there is a file.
    pub reload: Arc<OnceLock<Reload>>,
    /// The last hour of figures, which another task fills.
    pub history: Arc<MetricsHistory>,
}

impl ControlParts {
    /// Creates handles of the same parts.
    pub fn new(
        site: &Arc<Site>,
        reload: &Arc<OnceLock<Reload>>,
        history: &Arc<MetricsHistory>,
    ) -> ControlParts {
        let (site, reload, history) = (site.clone(), reload.clone(), history.clone());
        ControlParts { site, reload, history }
    }
}

/// Serves the control interface until the server stops and all running calls are answered.
pub async fn serve(listener: Listener, parts: ControlParts, stop: PhaseWatch) {
    let ControlParts { site, reload, history } = parts;
    // One more than the permanent ones, for a new connection.
    let most = CONNECTIONS + 1;
    let (places, connections) = (Arc::new(Semaphore::new(most)), Arc::<Places>::default());
    let control = Arc::new(Control {
        site,
        reload,
        live: Arc::default(),
        request_streams: Arc::default(),
        history,
        most_requested: Arc::default(),
        contents: Arc::default(),
        stop: stop.clone(),
    });
    let ended = accept_each(
        &listener,
        places.clone(),
        || {},
        stop,
        |accepted, place| {
            let (control, own) = (control.clone(), connections.enter());
            async move {
                match accepted {
                    AcceptedConnection::Tcp(stream, (peer, _)) => {
                        connection(stream, control, own, peer).await;
                    }
                    AcceptedConnection::Unix(stream) => {
                        connection(stream, control, own, None).await
                    }
                }
                drop(place);
            }
        },
    )
    .await;
    listener.close(ended);
    // Every place is free once all connections are closed.
    let _ = places.acquire_many(most as u32).await;
}

async fn connection(
    io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    control: Arc<Control>,
    place: Arc<Place>,
    peer: Option<SocketAddr>,
) {
    let mut stop = control.stop.clone();
    let service = service_fn(|request| {
        let (control, call) = (Arc::new(control.now()), place.begin());
        async move {
            let mut response = answer(&control, request, peer).await;
            if control.stop.borrow().is_leaving() {
                // The next connection belongs to a successor process.
                let close = HeaderValue::from_static("close");
                response.headers_mut().insert(header::CONNECTION, close);
            }
            Ok::<_, Infallible>(response.map(|body| CallBody { body, _call: call }))
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(ARRIVAL)
        .serve_connection(TokioIo::new(io), service);
    let mut connection = pin!(connection);
    let served = tokio::select! {
        served = connection.as_mut() => served,
        () = place.until_asked_to_leave() => {
            if !place.was_called() {
                return;
            }
            // A call that has arrived by now is answered.
            connection.as_mut().graceful_shutdown();
            connection.await
        }
        () = until_stopping(&mut stop) => {
            // The running call is answered; no further one is accepted.
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = served {
        tracing::debug!(event = "connection-ended", %error);
    }
}

/// The body of an answer. The call counts as running until the client has received it.
struct CallBody {
    body: ResponseBody,
    _call: Call,
}

impl Body for CallBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut task::Context<'_>,
    ) -> task::Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Completes when Pagewell must stop.
async fn until_stopping(stop: &mut PhaseWatch) {
    let _ = stop.wait_for(Phase::is_over).await;
}

async fn answer(
    control: &Arc<Control>,
    request: Request<impl Body<Data = Bytes> + Send>,
    peer: Option<SocketAddr>,
) -> Response<ResponseBody> {
    match call(control, request, peer).await {
        Ok(Answer::Json(value)) => json(StatusCode::OK, value),
        Ok(Answer::NotReady(value)) => json(StatusCode::SERVICE_UNAVAILABLE, value),
        Ok(Answer::Metrics(format)) => {
            let text = metrics::text(&control.site, &control.history.attention, format);
            with_content(StatusCode::OK, format.media_type(), Content::Whole(text.into()).into())
        }
        Ok(Answer::Live(body)) => {
            with_content(StatusCode::OK, HeaderValue::from_static("text/event-stream"), body)
        }
        Ok(Answer::Manual(response)) => response,
        Ok(Answer::Dashboard(file)) => {
            let body = Content::Whole(Bytes::from_static(file.content)).into();
            let media_type = HeaderValue::from_static(file.media_type);
            let mut response = with_content(StatusCode::OK, media_type, body);
            dashboard::guard(response.headers_mut());
            response
        }
        Err(error) => {
            let (status, name) = error.status();
            let text = serde_json::json!({ "error": name, "explanation": error.explain() });
            let mut response = json(status, text);
            match error {
                ControlError::TokenRefused => {
                    let value = HeaderValue::from_static("Bearer");
                    response.headers_mut().insert(header::WWW_AUTHENTICATE, value);
                }
                ControlError::Method(right) => {
                    let value = HeaderValue::from_static(right);
                    response.headers_mut().insert(header::ALLOW, value);
                }
                ControlError::StreamsFull(_) => {
                    // Closing the connection frees its place for other clients.
                    let close = HeaderValue::from_static("close");
                    response.headers_mut().insert(header::CONNECTION, close);
                }
                _ => {}
            }
            response
        }
    }
}

fn json(status: StatusCode, value: serde_json::Value) -> Response<ResponseBody> {
    let body = Content::Whole(format!("{value}\n").into()).into();
    with_content(status, HeaderValue::from_static("application/json"), body)
}

fn with_content(
    status: StatusCode,
    media_type: HeaderValue,
    body: ResponseBody,
) -> Response<ResponseBody> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, media_type);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// The answer to a call.
enum Answer {
    Json(serde_json::Value),
    NotReady(serde_json::Value),
    Metrics(Format),
    Live(ResponseBody),
    Dashboard(&'static dashboard::File),
    Manual(Response<ResponseBody>),
}

/// Returns a file of the dashboard or of the manual. They contain no data, so any site may link to them.
async fn public_file(
    path: &str,
    method: &Method,
    headers: &HeaderMap,
) -> Result<Option<Answer>, ControlError> {
    let file = dashboard::file(path);
    match file {
        None if !path.starts_with(manual::PATH) => Ok(None),
        _ if *method != Method::GET => Err(ControlError::Method("GET")),
        Some(file) => Ok(Some(Answer::Dashboard(file))),
        None => manual::answer(path, headers).await.map(|file| Some(Answer::Manual(file))),
    }
}

async fn call(
    control: &Arc<Control>,
    request: Request<impl Body<Data = Bytes> + Send>,
    peer: Option<SocketAddr>,
) -> Result<Answer, ControlError> {
    let token = control.site.config.admin_token.as_deref();
    caller::check_host(request.headers(), token)?;
    if let Some(file) =
        public_file(request.uri().path(), request.method(), request.headers()).await?
    {
        return Ok(file);
    }
    let site = &control.site;
    caller::check_browser(request.headers())?;
    caller::check_token(request.headers(), token)?;
    match (request.uri().path(), request.method()) {
        ("/v1/health", &Method::GET) => Ok(Answer::Json(serde_json::json!({ "healthy": true }))),
        ("/v1/ready", &Method::GET) => Ok(answer_ready(control)),
        ("/v1/status", &Method::GET) => answer_status(control).await,
        ("/v1/live", &Method::GET) => live::begin(control, request.uri().query()).map(Answer::Live),
        ("/v1/requests", &Method::GET) => {
            requests::begin(control, request.uri().query()).map(Answer::Live)
        }
        ("/v1/history", &Method::GET) => {
            history::recorded(control, request.uri().query()).map(Answer::Json)
        }
        ("/v1/sources", &Method::GET) => Ok(Answer::Json(sources::sources(site))),
        ("/v1/certificates", &Method::GET) => Ok(Answer::Json(certificates::answer(site))),
        ("/v1/trial", &Method::GET) => {
            trial::reports(site, request.uri().query()).map(Answer::Json)
        }
        ("/v1/trial", &Method::POST) => {
            trial::restart(site, read_json(control, request).await?).map(Answer::Json)
        }
        ("/v1/most-requested", &Method::GET) => {
            let (site, most) = (site.clone(), control.most_requested.clone());
            on_blocking_thread(move || Ok(most.pages(&site))).await
        }
        ("/v1/stats", &Method::GET) => Ok(Answer::Json(stats::stats_and_limits(site))),
        ("/v1/uncovered-tags", &Method::GET) => Ok(Answer::Json(stats::uncovered_tags(site))),
        ("/v1/changes", &Method::GET) => Ok(Answer::Json(crate::explain::changes(site))),
        ("/v1/misses", &Method::GET) => Ok(Answer::Json(crate::explain::misses(site))),
        ("/v1/explain", &Method::POST) => {
            let (site, call) = (site.clone(), read_json(control, request).await?);
            on_blocking_thread(move || explain::explain(&site, &call)).await
        }
        ("/metrics", &Method::GET) => Ok(Answer::Metrics(Format::accepted(request.headers()))),
        ("/v1/invalidate", &Method::POST) => {
            let call = read_json(control, request).await?;
            invalidate::execute(site, call, peer).await.map(Answer::Json)
        }
        ("/v1/reload", &Method::POST) => {
            let NoParameters {} = read_json(control, request).await?;
            reload(control).await.map(Answer::Json)
        }
        #[cfg(feature = "settable-clock")]
        ("/v1/clock", &Method::POST) => {
            let Advance { advance_ms, set_ms } = read_json(control, request).await?;
            site.clock.advance(std::time::Duration::from_millis(advance_ms));
            site.clock.set_machine(set_ms);
            Ok(Answer::Json(serde_json::json!({ "now_ms": site.clock.now().0 })))
        }
        #[cfg(feature = "settable-clock")]
        ("/v1/panic", &Method::POST) => provoke(&read_json(control, request).await?),
        (path, _) => Err(match ROUTES.iter().find(|(_, known)| *known == path) {
            Some((method, _)) => ControlError::Method(method),
            None => ControlError::NotFound,
        }),
    }
}

/// Looks for problems and next steps, which may wait for the disk.
async fn answer_status(control: &Control) -> Result<Answer, ControlError> {
    let (site, history) = (control.site.clone(), control.history.clone());
    let look = move || {
        let problems = history.attention.look(&site, &history);
        Ok(status_json(&site, &problems, &next_steps(&site)))
    };
    on_blocking_thread(look).await
}

fn answer_ready(control: &Control) -> Answer {
    let reasons = ready::why_not(&control.site, *control.stop.borrow());
    let answer = ready::answer(&control.site, &reasons);
    if reasons.is_empty() { Answer::Json(answer) } else { Answer::NotReady(answer) }
}

/// Executes a call that takes a while or may wait for the disk.
async fn on_blocking_thread(
    call: impl FnOnce() -> Result<serde_json::Value, ControlError> + Send + 'static,
) -> Result<Answer, ControlError> {
    let told = tokio::task::spawn_blocking(call).await;
    told.unwrap_or_else(|panic| Err(ControlError::Unreadable(panic.to_string()))).map(Answer::Json)
}

/// The body of a call without parameters.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NoParameters {}

/// Reloads the configuration of all sites. Returns the changed keys, the number of purged pages and the warnings
/// as JSON.
async fn reload(control: &Control) -> Result<serde_json::Value, ControlError> {
    let done = match control.reload.get() {
        Some(reload) => reload.run(&control.site).await,
        None => Err(NotReloaded::NoFile),
    };
    let ReloadResult { changed, dropped, warnings } = done.map_err(ControlError::NotReloaded)?;
    let shown = |one: &ChangedKey| {
        let mut shown = serde_json::json!({ "key": one.key });
        for (name, value) in [("from", &one.from), ("to", &one.to)] {
            if let Some(value) = value {
                shown[name] = value.as_str().into();
            }
        }
        shown
    };
    let changed: Vec<_> = changed.iter().map(shown).collect();
    Ok(serde_json::json!({ "changed": changed, "dropped": dropped, "warnings": warnings }))
}

/// Advances the clock for scenario tests, or shifts the machine's clock as this process sees it.
#[cfg(feature = "settable-clock")]
#[derive(Deserialize)]
struct Advance {
    #[serde(default)]
    advance_ms: u64,
    #[serde(default)]
    set_ms: i64,
}

/// Provokes a panic, for tests.
#[cfg(feature = "settable-clock")]
#[derive(Deserialize)]
struct Provoke {
    at: String,
}

#[cfg(feature = "settable-clock")]
fn provoke(call: &Provoke) -> Result<Answer, ControlError> {
    let unknown = || ControlError::Unreadable(format!("no such place: {}", call.at));
    telemetry::panics::provoke(telemetry::panics::Place::named(&call.at).ok_or_else(unknown)?);
    Ok(Answer::Json(serde_json::json!({})))
}

async fn read_json<T: serde::de::DeserializeOwned>(
    control: &Control,
    request: Request<impl Body<Data = Bytes> + Send>,
) -> Result<T, ControlError> {
    let media_type = request.headers().get(header::CONTENT_TYPE).and_then(|v| v.to_str().ok());
    let essence = media_type.and_then(|value| value.split(';').next()).map(str::trim);
    if !essence.is_some_and(|essence| essence.eq_ignore_ascii_case("application/json")) {
        return Err(ControlError::NotJson);
    }
    let content = control.contents.read(request.into_body()).await?;
    serde_json::from_slice(content.as_bytes())
        .map_err(|error| ControlError::Unreadable(error.to_string()))
}
