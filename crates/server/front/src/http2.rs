//! HTTP/2 (RFC 9113): over TLS if ALPN selects it, and without TLS if the client starts with the
//! preface (prior knowledge, section 3.3). A front (`front`) answers plain hits. hyper runs on top of
//! it for all other requests; it does flow control, header compression and flood protection.
//!
//! The checks that HTTP/1's front makes on the bytes are made here on the request: limits, a single
//! host, cookies joined. A request with connection-specific fields is malformed, and hyper resets its
//! stream.
//!
//! An idle connection gets GOAWAY after `idle_timeout`. Streams whose client reads too slowly are reset
//! (`streams`); a connection with only such streams is closed. Not supported: extended CONNECT (RFC
//! 8441; browsers use HTTP/1.1 for WebSockets instead), interim responses (hyper cannot send them),
//! server push.

mod answers;
pub mod fields;
pub mod frame;
mod front;
mod opened;
mod output_position;
pub mod reader;
pub mod streams;
pub mod windows;

use crate::hyper_content;
use crate::listen::is_counted;
use crate::serve_request::{HttpVersion, RequestServer};
use answers::Answers;
use bytes::Bytes;
use config::Limits;
use delivery::body::{BodyError, Content, ResponseBody};
use delivery::log_entry::Entry;
use delivery::send_backlog::Recipient;
use delivery::serve;
use delivery::site::Site;
use front::Front;
use http::{HeaderMap, HeaderValue, Method, Request, Response, header};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use origin::upload::let_run_out;
use reader::Reader;
use reasons::refusal::Refusal;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use streams::{StreamProgress, StreamWatch, Streams};
use telemetry::client::{ClientConnection, ClientExtras};
use telemetry::limit_hits::Limit;
use telemetry::per_address::{AddressRequest, AddressRequests};
use telemetry::phase::{Phase, PhaseWatch};
use telemetry::request_content::RequestContent;
use telemetry::traces::Trace;
use telemetry::trailers;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

/// The client connection preface of HTTP/2 (RFC 9113 section 3.4).
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Connection-specific fields, which HTTP/2 messages must not have (section 8.2.2).
const OF_THE_CONNECTION: [&str; 5] =
    ["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"];
/// Maximum number of content bytes that hyper buffers per stream for the client.
const SEND_BUFFER_BYTES: usize = 128 << 10;
/// How many times within `write_timeout` the waiting streams are checked, and the maximum interval
/// between two checks.
const LOOKS: u32 = 4;
const LOOK_MAX: Duration = Duration::from_secs(5);

/// The activity on a connection, shared between hyper's service, the front and the time limits.
struct Activity {
    /// Requests in progress, until the client has taken the last piece of the response.
    open: AtomicU64,
    /// Counts requests and pieces of content, to detect inactivity.
    steps: AtomicU64,
    /// The client's entry in the send backlog, which knows how many bytes were written.
    client: Arc<Recipient>,
    /// Requests received so far, and their maximum for a connection.
    asked: AtomicUsize,
    asked_max: usize,
    /// Notified when the maximum is reached.
    enough: Notify,
    /// Notified when hyper receives a request.
    begun: Notify,
    /// The progress of each response's content.
    streams: Arc<Streams>,
    /// Whether responses of the front wait for the client.
    front_waits: AtomicBool,
    /// Whether the front has ended the connection because the client floods it with frames.
    calmed: AtomicBool,
    /// Whether the connection is about to end; hyper then refuses new requests.
    goes: AtomicBool,
}

impl Activity {
    fn new(site: &Arc<Site>, streams: &Arc<Streams>) -> Activity {
        Activity {
            begun: Notify::new(),
            streams: streams.clone(),
            front_waits: AtomicBool::default(),
            open: AtomicU64::default(),
            steps: AtomicU64::default(),
            client: Recipient::new(site.state()),
            asked: AtomicUsize::default(),
            asked_max: site.limits.connection_requests,
            enough: Notify::default(),
            calmed: AtomicBool::default(),
            goes: AtomicBool::default(),
        }
    }

    /// Records that the front has answered a request.
    fn answered(&self) {
        self.steps.fetch_add(1, Ordering::Relaxed);
        self.has_asked();
    }

    /// Counts a request, and notifies `enough` if it is the last one allowed.
    fn has_asked(&self) {
        if self.asked.fetch_add(1, Ordering::Relaxed) + 1 == self.asked_max {
            self.enough.notify_one();
        }
    }

    /// Sets whether responses of the front wait for the client.
    fn front_waits(&self, waits: bool) {
        self.front_waits.store(waits, Ordering::Relaxed);
    }

    /// Whether a request is in progress or a response waits for the client.
    fn is_open(&self) -> bool {
        self.open.load(Ordering::Acquire) != 0
            || self.front_waits.load(Ordering::Relaxed)
            || !self.streams.is_empty()
    }

    /// Ready when a time limit has passed: for streams, which are reset then, or for the connection.
    async fn overdue(&self, watch: &mut StreamWatch, site: &Site) -> Overdue {
        let limits = &site.limits;
        loop {
            if !self.is_open() {
                let steps = self.steps.load(Ordering::Relaxed);
                let begun = timeout(limits.idle_timeout, self.begun.notified()).await;
                let is_idle = begun.is_err() && self.steps.load(Ordering::Relaxed) == steps;
                if is_idle && !self.is_open() {
                    site.counters.limit_hits.note(Limit::IdleTimeout);
                    return Overdue::Idle;
                }
                continue;
            }
            tokio::time::sleep((limits.write_timeout / LOOKS).min(LOOK_MAX)).await;
            let front = self.front_waits.load(Ordering::Relaxed).then(|| self.client.taken());
            let slow = watch.look(&self.streams, front, limits, Instant::now());
            slow.streams.iter().for_each(|(_, limit)| site.counters.limit_hits.note(*limit));
            if slow.are_all {
                return Overdue::Connection;
            }
            if !slow.streams.is_empty() {
                self.streams.reset(slow.streams.iter().map(|(stream, _)| *stream));
                return Overdue::Streams;
            }
        }
    }

    /// Ready when the send backlog of all clients is too large and this client is among the slowest.
    /// The notification is subscribed to once.
    async fn cut(&self) {
        let mut waits = false;
        let cut = poll_fn(|cx| {
            if waits && !self.client.is_cut() {
                Poll::Pending
            } else {
                waits = true;
                self.client.poll_cut(cx)
            }
        });
        cut.await;
    }
}

/// The result of a time limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Overdue {
    /// Some streams are too slow; the front resets them when it is next read.
    Streams,
    /// The connection, because its client reads nothing.
    Connection,
    /// The connection, because it is idle; it is closed gracefully.
    Idle,
}

/// A request in progress, counted until it is dropped.
struct Open {
    activity: Arc<Activity>,
    /// Its stream, and the progress of its content.
    stream: u32,
    progress: Arc<StreamProgress>,
    /// Its place among the requests of the client's address, if those are limited.
    place: Option<AddressRequest>,
    /// Its trace, if requests are traced. The trace's span ends when this is dropped.
    trace: Option<Trace>,
}

impl Open {
    fn new(activity: &Arc<Activity>, stream: u32) -> Open {
        activity.open.fetch_add(1, Ordering::AcqRel);
        activity.steps.fetch_add(1, Ordering::Relaxed);
        activity.begun.notify_one();
        let progress = activity.streams.begin(stream);
        Open { activity: activity.clone(), stream, progress, place: None, trace: None }
    }
}

impl Open {
    /// Takes a place among the requests of the client's address; `false` if there is none left.
    fn enter(&mut self, of_address: Option<&AddressRequests>, site: &Site) -> bool {
        let Some(of_address) = of_address else { return true };
        self.place = of_address.enter(site.limits.http2_streams_per_address);
        self.place.is_some()
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.activity.streams.end(self.stream);
        self.activity.open.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Serves a connection until it ends. `before` holds the bytes that have already been read from it.
pub async fn serve<IO>(
    io: IO,
    before: Vec<u8>,
    client: Arc<ClientConnection>,
    site: Arc<Site>,
    mut stop: PhaseWatch,
) where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    site.counters.http2_connections.add();
    let limits = site.limits.clone();
    let reader = Reader::new(before, limits.header_bytes);
    let activity = Arc::new(Activity::new(&site, reader.streams()));
    let peer = client.peer.filter(|peer| is_counted(&site, *peer));
    let of_address = peer.and_then(|peer| site.per_address.requests(peer));
    let server = RequestServer::new(&site, &client);
    let service = service_fn(|mut request: Request<Incoming>| {
        let (stream, unredirected) = streams::take_field(request.headers_mut());
        let mut open = Open::new(&activity, stream);
        activity.has_asked();
        let has_place = open.enter(of_address.as_ref(), &site);
        let is_head = request.method() == Method::HEAD;
        let version = Http2 { open, unredirected, has_place, is_head, entry: None };
        server.serve(request.map(hyper_content::content), version)
    });
    let front = Front::new(io, reader, Answers::new(&site, &client), activity.clone());
    let mut connection = pin!(builder(&limits).serve_connection(TokioIo::new(front), service));
    let mut watch = StreamWatch::default();
    let ended = tokio::select! {
        ended = going_on(connection.as_mut(), &activity, &mut watch, &site) => Some(ended),
        _ = stop.wait_for(Phase::is_leaving) => None,
        () = activity.enough.notified() => {
            site.counters.limit_hits.note(Limit::ConnectionRequests);
            None
        }
    };
    let ended = match ended {
        Some(Some(ended)) => ended,
        // Requests in progress are finished, unless the client stops reading.
        Some(None) | None => {
            activity.goes.store(true, Ordering::Relaxed);
            connection.as_mut().graceful_shutdown();
            going_on(connection, &activity, &mut watch, &site).await.unwrap_or(Ok(()))
        }
    };
    if let Err(error) = ended {
        if activity.calmed.load(Ordering::Relaxed) || is_calmed(&error) {
            site.counters.limit_hits.note(Limit::Http2Resets);
        }
        tracing::debug!(event = "connection-ended", %error);
    }
}

/// Serves a connection until it ends or is closed for slowness; `None` if it is idle.
async fn going_on<C>(
    mut connection: Pin<&mut C>,
    activity: &Activity,
    watch: &mut StreamWatch,
    site: &Site,
) -> Option<hyper::Result<()>>
where
    C: Future<Output = hyper::Result<()>>,
{
    loop {
        let overdue = tokio::select! {
            ended = connection.as_mut() => return Some(ended),
            () = activity.cut() => Overdue::Connection,
            overdue = activity.overdue(watch, site) => overdue,
        };
        match overdue {
            // The connection is polled again, and with it the front, which resets the streams.
            Overdue::Streams => {}
            Overdue::Connection => return Some(Ok(())),
            Overdue::Idle => return None,
        }
    }
}

/// Whether the connection was closed for a flood of frames (RFC 9113 section 7, ENHANCE_YOUR_CALM).
/// Recognised by the message text, because the error's type is in a crate that is not a direct
/// dependency.
fn is_calmed(error: &hyper::Error) -> bool {
    std::error::Error::source(error)
        .is_some_and(|cause| cause.to_string().contains("excessive load"))
}

fn builder(limits: &Limits) -> http2::Builder<TokioExecutor> {
    let bound = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(bound(limits.http2_streams))
        // Larger by the field that the front adds.
        .max_header_list_size(bound(limits.header_bytes.saturating_add(streams::FIELD_COUNTS)))
        .max_pending_accept_reset_streams(limits.http2_resets)
        .max_local_error_reset_streams(limits.http2_resets.saturating_mul(16))
        .max_send_buf_size(SEND_BUFFER_BYTES);
    builder
}

/// A request over HTTP/2.
struct Http2 {
    open: Open,
    /// The number of the site's configuration by which the front has found that it is not redirected; 0 if that is
    /// not known.
    unredirected: u64,
    /// Whether the client's address may have one more request.
    has_place: bool,
    is_head: bool,
    entry: Option<Box<Entry>>,
}

impl HttpVersion for Http2 {
    type Body = CountedBody;

    fn begin(&mut self, request: &mut Request<RequestContent>) -> ClientExtras {
        let (trailers, unredirected) = (trailers::wanted(request.headers()), self.unredirected);
        ClientExtras { trailers, unredirected, ..ClientExtras::default() }
    }

    fn keep(&mut self, entry: Option<Box<Entry>>) {
        self.entry = entry;
    }

    fn accept(
        &mut self,
        site: &Arc<Site>,
        mut request: Request<RequestContent>,
    ) -> Result<Request<RequestContent>, Box<Response<ResponseBody>>> {
        if !self.has_place {
            return Err(Box::new(refuse(site, Refusal::TooManyStreams)));
        }
        if let Err(refusal) = check(&request, &site.limits) {
            if refusal == Refusal::ContentTooLarge {
                tokio::spawn(let_run_out(request.into_body()));
            }
            return Err(Box::new(refuse(site, refusal)));
        }
        join_cookies(request.headers_mut());
        Ok(request)
    }

    fn complete(
        mut self,
        _site: &Arc<Site>,
        mut response: Response<ResponseBody>,
        trace: Option<Trace>,
    ) -> Response<CountedBody> {
        // RFC 9110 section 9.3.2: a response to HEAD has no content. hyper leaves it out over HTTP/1 only.
        if self.is_head {
            response = response.map(|_| Content::Empty.into());
        }
        // RFC 9113 section 8.2.2: no connection-specific fields.
        for name in OF_THE_CONNECTION {
            response.headers_mut().remove(name);
        }
        if let Some(trace) = &trace {
            trace.answered(&response);
        }
        if let Some(entry) = &mut self.entry {
            entry.answered(&response);
        }
        self.open.trace = trace;
        let client = self.open.activity.client.clone();
        response.map(|body| CountedBody::new(body.tracked(|| client), self.open, self.entry))
    }
}

fn refuse(site: &Arc<Site>, refusal: Refusal) -> Response<ResponseBody> {
    tracing::debug!(event = "request-refused", reason = refusal.as_str());
    site.counters.rejected.add();
    site.counters.limit_hits.refused(refusal);
    let mut response = serve::error(refusal.status(), refusal.into(), None);
    if refusal == Refusal::MethodConnect {
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
    }
    response
}

/// Checks the limits and rules that `request_head` checks for HTTP/1.
fn check<B>(request: &Request<B>, limits: &Limits) -> Result<(), Refusal> {
    let (uri, headers) = (request.uri(), request.headers());
    if request.method() == Method::CONNECT {
        return Err(Refusal::MethodConnect);
    }
    if uri.path_and_query().is_some_and(|both| both.as_str().len() > limits.uri_bytes) {
        return Err(Refusal::TargetTooLong);
    }
    if headers.len() > limits.headers {
        return Err(Refusal::TooManyHeaders);
    }
    let mut hosts = headers.get_all(header::HOST).iter();
    match (uri.authority(), hosts.next(), hosts.next()) {
        (_, _, Some(_)) => return Err(Refusal::HostRepeated),
        (None, None, None) => return Err(Refusal::HostMissing),
        // RFC 9113 section 8.3.1: a Host that differs from :authority.
        (Some(authority), Some(host), None)
            if !authority.as_str().as_bytes().eq_ignore_ascii_case(host.as_bytes()) =>
        {
            return Err(Refusal::HostRepeated);
        }
        _ => {}
    }
    let length = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    match length.map(str::parse::<u64>) {
        Some(Ok(length)) if length > limits.body_bytes => Err(Refusal::ContentTooLarge),
        Some(Err(_)) => Err(Refusal::LengthInvalid),
        _ => Ok(()),
    }
}

/// Joins the cookie fields of a request into one (RFC 9113 section 8.2.3).
fn join_cookies(headers: &mut HeaderMap) {
    let mut crumbs = headers.get_all(header::COOKIE).iter();
    if crumbs.next().is_none() || crumbs.next().is_none() {
        return;
    }
    let crumbs: Vec<&[u8]> =
        headers.get_all(header::COOKIE).iter().map(HeaderValue::as_bytes).collect();
    if let Ok(joined) = HeaderValue::from_bytes(&crumbs.join(&b"; "[..])) {
        headers.insert(header::COOKIE, joined);
    }
}

/// Response content that counts its progress.
struct CountedBody {
    body: ResponseBody,
    open: Open,
    /// Its entry for the access log, if there is one.
    entry: Option<Box<Entry>>,
}

impl CountedBody {
    fn new(body: ResponseBody, open: Open, mut entry: Option<Box<Entry>>) -> CountedBody {
        // Without content the body is never polled.
        if let Some(entry) = entry.as_mut().filter(|_| body.is_end_stream()) {
            entry.is_whole();
        }
        CountedBody { body, open, entry }
    }
}

impl Body for CountedBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let counted = self.get_mut();
        let polled = Pin::new(&mut counted.body).poll_frame(cx);
        if let Poll::Ready(step) = &polled {
            counted.open.activity.steps.fetch_add(1, Ordering::Relaxed);
            let data = step.as_ref().and_then(|step| step.as_ref().ok()?.data_ref());
            counted.open.progress.hand(data.map_or(0, Bytes::len));
        }
        if let (Some(entry), Poll::Ready(step)) = (&mut counted.entry, &polled) {
            match step {
                None => entry.is_whole(),
                Some(Ok(frame)) => {
                    entry.sent(frame.data_ref().map_or(0, Bytes::len));
                    if counted.body.is_end_stream() {
                        entry.is_whole();
                    }
                }
                Some(Err(_)) => {}
            }
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(uri: &str, headers: &[(&str, &str)]) -> Request<()> {
        let mut request = Request::builder().uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(()).unwrap()
    }

    #[test]
    fn crumbs_are_joined() {
        let mut headers = HeaderMap::new();
        for crumb in ["a=1", "b=2; c=3", "d=4"] {
            headers.append(header::COOKIE, crumb.parse().unwrap());
        }
        join_cookies(&mut headers);
        let all: Vec<_> = headers.get_all(header::COOKIE).iter().collect();
        assert_eq!(all, ["a=1; b=2; c=3; d=4"]);
    }

    #[test]
    fn bounds_and_hosts() {
        let check = |request| check(&request, &Limits::default());
        let long = format!("http://a/{}", "x".repeat(9_000));
        assert_eq!(check(request("http://a/", &[])), Ok(()));
        assert_eq!(check(request("http://a/", &[("host", "A")])), Ok(()));
        assert_eq!(check(request("/", &[("host", "a")])), Ok(()));
        assert_eq!(check(request("/", &[])), Err(Refusal::HostMissing));
        assert_eq!(check(request("http://a/", &[("host", "b")])), Err(Refusal::HostRepeated));
        assert_eq!(check(request(&long, &[])), Err(Refusal::TargetTooLong));
        let big = [("content-length", "999999999999")];
        assert_eq!(check(request("http://a/", &big)), Err(Refusal::ContentTooLarge));
        let many: Vec<_> = (0..101).map(|_| ("a", "b")).collect();
        assert_eq!(check(request("http://a/", &many)), Err(Refusal::TooManyHeaders));
    }
}
