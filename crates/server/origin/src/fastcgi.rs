//! A FastCGI responder as the origin: php-fpm, or any other FastCGI program.
//!
//! One connection carries one request at a time. A kept-alive connection occupies one of the
//! responder's workers. So there are never more connections than allowed concurrent requests, and idle
//! ones are closed after a while. A request's content is complete before the request occupies the
//! origin (decision 0079). A separate task writes it, so a responder that answers before it has read
//! everything cannot cause a deadlock. The response's content is streamed.
//!
//! If a kept-alive connection breaks before a byte of the response arrives, a request without content
//! is sent once more over a new connection.

mod connect;
mod fatal;
mod idle;
mod stderr;
mod stdin;

use self::connect::ConnectionChoice;
use self::idle::Idle;
use self::stdin::{read_while_sending, send_content};
use super::admission::OriginPermit;
use super::places::Places;
use super::{
    HALF_WAY, NO_ANSWER, OriginBody, OriginRequest, OriginResponse, RequestBody, Unsent,
    log_failure,
};
use crate::announce;
use crate::spool::Spool;
use crate::upload::{Flaw, Upload};
use ::http::StatusCode;
use bytes::{Buf, Bytes, BytesMut};
use capture::relay::SlotLease;
use capture::{CaptureParameters, CaptureSource};
use config::{Address, Config};
use fastcgi::{
    AfterRequest, BEGIN_KEPT_OPEN, CgiHead, CgiHeadReader, CgiRequest, Completeness,
    ContentFraming, Event, HeadLimits, HeadRefusal, HeadStep, Params, ParamsLimits, ParamsRefused,
    PhpFatal, PhpFatalWatch, ResponseKind, ResponseReader, Reuse, STDIN_END, Scheme, Script,
    ServerPlace, StdinSent, cgi_params,
};
use http_cache::Failure;
use reasons::refusal::Refusal;
use site_state::propagation::Propagation;
use sockets::Socket;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use telemetry::limit_hits::{Limit, LimitHits};
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Maximum size of one read, in bytes.
const READ_BYTES: usize = 32 << 10;
/// Maximum number of bytes of a request's STDERR that are logged.
const STDERR_BYTES: usize = 8 << 10;

/// A FastCGI responder as the origin.
pub struct FastCgi {
    address: Address,
    idle: Arc<Idle>,
    places: Places,
    spool: Spool,
    /// The captures of the scripts' statements, if the site has automatic dependencies.
    captures: Option<CaptureSource>,
    config: Arc<Config>,
}

impl FastCgi {
    /// A responder that is already running. It may wait for other servers, so cores do not limit its places.
    pub fn new(address: Address, config: &Arc<Config>) -> FastCgi {
        let limits = &config.limits;
        let places = limits.origin_connections;
        FastCgi::with(address, (places, places), limits.origin_idle_connections, config)
    }

    /// Pagewell's own php-fpm with `children` workers. All of them may have kept-alive connections.
    pub fn own(socket: &Path, children: usize, config: &Arc<Config>) -> FastCgi {
        let places = children.min(config.limits.origin_connections).max(1);
        // Half of the cores for unknown clients: what a page costs there is known.
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let socket = Address::Unix(socket.to_owned());
        FastCgi::with(socket, (places, (cores / 2).max(1)), places, config)
    }

    /// `places` are all concurrent requests, and the most of unknown clients under overload.
    fn with(
        address: Address,
        (places, unknown): (usize, usize),
        idle: usize,
        config: &Arc<Config>,
    ) -> FastCgi {
        FastCgi {
            address,
            idle: Arc::new(Idle::new(idle)),
            places: Places::new(places, unknown, config),
            spool: Spool::new(config),
            captures: None,
            config: config.clone(),
        }
    }

    /// The same responder, whose scripts report their statements to these captures.
    pub fn with_captures(self, captures: Option<CaptureSource>) -> FastCgi {
        FastCgi { captures, ..self }
    }

    /// The captures of the scripts' statements, if the site has automatic dependencies.
    pub fn captures(&self) -> Option<&CaptureSource> {
        self.captures.as_ref()
    }

    /// The storage for content that is too long for memory.
    pub fn spool(&self) -> &Spool {
        &self.spool
    }

    /// The concurrent requests at this responder.
    pub fn places(&self) -> &Places {
        &self.places
    }

    /// Closes connections that have been idle for too long. Call it every few seconds.
    pub fn close_idle(&self) {
        self.idle.close_old();
    }

    /// Sends a request that has this permit; see [`super::Origin::send`].
    pub(super) async fn send(
        &self,
        request: &mut OriginRequest,
        permit: OriginPermit,
    ) -> Result<OriginResponse, Unsent> {
        let body = std::mem::replace(&mut request.body, RequestBody::Empty);
        let content = RequestContent::of(body)?;
        let after = if self.idle.has_room() { AfterRequest::KeepOpen } else { AfterRequest::Close };
        let flaw = content.flaw();
        let reply = Box::new(Reply::new(self, request, after, permit));
        let exchanged = self.exchange(request, content, reply).await;
        let (mut head, mut reply) = match (exchanged, flaw.and_then(|flaw| flaw.get())) {
            (Ok(exchanged), _) => exchanged,
            (Err(_), Some(refusal)) => return Err(Unsent::Client(refusal)),
            (Err(unsent), None) => {
                let timed_out = matches!(unsent, Unsent::Failed(Failure::TimedOut));
                // If the connection was not even established, this limit was not reached.
                if timed_out && request.progress.may_have() {
                    self.places.limit_hits.note(Limit::OriginTimeout);
                }
                if let Unsent::Failed(failure @ (Failure::TimedOut | Failure::HungUp)) = unsent {
                    log_failure(&request.url(), failure, NO_ANSWER);
                }
                return Err(unsent);
            }
        };
        reply.received = head.content.len() as u64;
        reply.declared = head.content_length;
        reply.framing = ContentFraming::of(&request.method, head.status);
        reply.first = std::mem::take(&mut head.content);
        if let ResponseKind::LocalRedirect(path) = &head.kind {
            return Err(Unsent::Redirected(path.to_string()));
        }
        if head.status == StatusCode::NOT_MODIFIED {
            // PHP sends its default type with a 304, whatever the type of the page is.
            head.headers.remove(::http::header::CONTENT_TYPE);
        }
        Ok(OriginResponse {
            status: head.status,
            headers: head.headers,
            body: OriginBody::FastCgi(reply),
            waited: Propagation::NotNeeded,
        })
    }

    /// Sends the request over an idle connection or a new one, and reads the head of the response.
    async fn exchange(
        &self,
        request: &OriginRequest,
        content: RequestContent,
        mut reply: Box<Reply>,
    ) -> Result<(Box<CgiHead>, Box<Reply>), Unsent> {
        // Content and unsafe requests can be sent only once, because the script may have run (RFC 9110
        // section 9.2.2). So they do not use an idle connection, which may turn out to be dead.
        let only_fresh = !content.is_empty() || !request.method.is_safe();
        let (socket, is_begun) = match self.choose(only_fresh).await? {
            ConnectionChoice::Fresh { socket, is_begun } => (socket, is_begun),
            ConnectionChoice::Kept(kept) => {
                let start = self.start(request, &content, reply.after, None)?;
                reply.occupy(kept.slot, request);
                request.progress.note();
                let start = rest(&start, kept.is_begun);
                let tried = match reply.begin(kept.socket, start, RequestContent::Empty).await {
                    Ok(()) => reply.head().await,
                    Err(failure) => Err(failure),
                };
                match tried {
                    Ok(head) => return Ok((head, reply)),
                    Err(Failure::HungUp) if !reply.heard => reply.reset(),
                    Err(failure) => return Err(failure.into()),
                }
                (self.connect().await?, false)
            }
        };
        // The setting stays with PHP's worker, so that later requests over the connection need none.
        let slot = self.captures.as_ref().and_then(CaptureSource::lease);
        let start = self.start(request, &content, reply.after, slot.as_ref())?;
        reply.occupy(slot, request);
        request.progress.note();
        reply.begin(socket, rest(&start, is_begun), content).await?;
        Ok((reply.head().await?, reply))
    }

    /// The bytes of a request up to its content. `slot` is that of a new connection in the relay.
    fn start(
        &self,
        request: &OriginRequest,
        content: &RequestContent,
        after: AfterRequest,
        slot: Option<&SlotLease>,
    ) -> Result<Vec<u8>, Unsent> {
        let mut start = self.params(request, content.length(), slot)?.into_request_start(after);
        if content.is_empty() {
            start.extend_from_slice(&STDIN_END);
        }
        Ok(start)
    }

    fn params(
        &self,
        request: &OriginRequest,
        length: Option<u64>,
        slot: Option<&SlotLease>,
    ) -> Result<Params, Unsent> {
        let script = request.script.as_ref().ok_or(Failure::InvalidResponse)?;
        let root = self.config.site.files.as_ref().map(|files| files.root.as_os_str().as_bytes());
        let of_target = || request.target.split_once('?').map_or("", |(_, query)| query);
        let query = script.query.as_deref().unwrap_or_else(of_target);
        let own_port = if request.scheme == "https" { 443 } else { 80 };
        // Both come from the URL's host, which is part of the key; the port that the client connected to is not.
        let (host_name, port) = match request.host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => {
                (name, port.parse().unwrap_or(own_port))
            }
            _ => (request.host.as_str(), own_port),
        };
        let made = cgi_params(
            &CgiRequest {
                method: &request.method,
                version: request.version,
                scheme: if request.scheme == "https" { Scheme::Https } else { Scheme::Http },
                host: request.host.as_bytes(),
                request_uri: request.target.as_bytes(),
                query: query.as_bytes(),
                headers: &request.headers,
                content_length: length,
                script: Script {
                    document_root: root.unwrap_or(b"/"),
                    filename: script.filename.as_os_str().as_bytes(),
                    name: script.name.as_bytes(),
                    path_info: script.path_info.as_bytes(),
                },
                client: request.peer,
                user: request.extras.checks.user.as_deref(),
                server: ServerPlace {
                    name: host_name.as_bytes(),
                    addr: request.local.map(|local| local.ip()),
                    port,
                    software: concat!("pagewell/", env!("CARGO_PKG_VERSION")),
                },
            },
            ParamsLimits::default(),
        );
        let made = made.and_then(|mut params| {
            announce::announce_to_script(request, &mut params)?;
            for (name, value) in request.capture.iter().flat_map(CaptureParameters::pairs) {
                params.push(name, value)?;
            }
            if let Some(slot) = slot {
                params.push("PHP_VALUE", slot.php_value().as_bytes())?;
            }
            Ok(params)
        });
        made.map_err(|refused| match refused {
            ParamsRefused::PairTooLarge { .. } | ParamsRefused::TotalTooLarge { .. } => {
                Unsent::Client(Refusal::HeadTooLarge)
            }
            _ => Unsent::Client(Refusal::Malformed),
        })
    }
}

/// The start of a request without its first record, if that has been sent.
fn rest(start: &[u8], is_begun: bool) -> &[u8] {
    if is_begun { &start[BEGIN_KEPT_OPEN.len()..] } else { start }
}

/// The request's content, with its length in bytes.
enum RequestContent {
    Empty,
    Stream(Box<Upload>, u64),
}

impl RequestContent {
    /// Takes content that has been collected and therefore has a known length.
    fn of(body: RequestBody) -> Result<RequestContent, Unsent> {
        let RequestBody::Stream(upload) = body else { return Ok(RequestContent::Empty) };
        let length = upload.length().ok_or(Unsent::Client(Refusal::ContentMalformed))?;
        Ok(RequestContent::Stream(upload, length))
    }

    fn flaw(&self) -> Option<Arc<Flaw>> {
        match self {
            RequestContent::Stream(upload, _) => Some(upload.flaw()),
            RequestContent::Empty => None,
        }
    }

    fn length(&self) -> Option<u64> {
        match self {
            RequestContent::Empty => None,
            RequestContent::Stream(_, length) => Some(*length),
        }
    }

    fn is_empty(&self) -> bool {
        matches!(self, RequestContent::Empty)
    }
}

/// The connection during a request.
enum Line {
    /// Nothing is left to be written.
    Whole(Socket),
    /// Content is still being written.
    Sending {
        reading: ReadHalf<Socket>,
        writer: JoinHandle<Option<WriteHalf<Socket>>>,
        flaw: Arc<Flaw>,
    },
    /// Returned to the idle connections, or closed.
    Gone,
}

/// A response that is being received. If it is dropped before its end, it closes the connection, so
/// that the responder can detect it.
pub struct Reply {
    /// The slot of the connection in the relay. Dropped before the connection.
    slot: Option<SlotLease>,
    line: Line,
    reader: ResponseReader,
    input: BytesMut,
    /// Content that arrived together with the head.
    first: Bytes,
    /// Whether a byte of the response has arrived.
    heard: bool,
    received: u64,
    declared: Option<u64>,
    framing: ContentFraming,
    after: AfterRequest,
    idle: Arc<Idle>,
    stderr: Vec<u8>,
    fatal: PhpFatalWatch,
    /// The request's scheme, host, and path with query.
    asked: (&'static str, String, String),
    /// Shared with the sender of the request: whether it may have reached the origin.
    noted: super::SendProgress,
    wait: Duration,
    head_bytes: usize,
    limit_hits: Arc<LimitHits>,
    _permit: OriginPermit,
}

impl Reply {
    fn new(
        of: &FastCgi,
        request: &OriginRequest,
        after: AfterRequest,
        permit: OriginPermit,
    ) -> Reply {
        let config = &of.config;
        Reply {
            slot: None,
            line: Line::Gone,
            reader: ResponseReader::new(),
            input: BytesMut::new(),
            first: Bytes::new(),
            heard: false,
            received: 0,
            declared: None,
            framing: ContentFraming::of(&request.method, StatusCode::OK),
            after,
            idle: of.idle.clone(),
            stderr: Vec::new(),
            fatal: PhpFatalWatch::default(),
            asked: (request.scheme, request.host.clone(), request.target.clone()),
            noted: request.progress.clone(),
            wait: config.limits.origin_timeout,
            head_bytes: config.limits.origin_header_bytes,
            limit_hits: of.places.limit_hits.clone(),
            _permit: permit,
        }
    }

    /// Resets the state after the connection turned out to be dead.
    fn reset(&mut self) {
        self.slot = None;
        self.line = Line::Gone;
        self.reader = ResponseReader::new();
        self.input.clear();
    }

    /// Takes the slot of the connection over which the request is about to be sent.
    fn occupy(&mut self, slot: Option<SlotLease>, request: &OriginRequest) {
        if let Some(slot) = &slot {
            slot.send(request.capture.as_ref().and_then(CaptureParameters::ticket));
        }
        self.slot = slot;
    }

    /// The requested URL, for the log.
    fn url(&self) -> String {
        let (scheme, host, target) = &self.asked;
        format!("{scheme}://{host}{target}")
    }

    /// Writes the request's start, which includes the end of the content if there is none. A separate
    /// task writes the content.
    async fn begin(
        &mut self,
        mut socket: Socket,
        start: &[u8],
        content: RequestContent,
    ) -> Result<(), Failure> {
        match timeout(self.wait, socket.write_all(start)).await {
            Err(_) => return Err(Failure::TimedOut),
            Ok(Err(_)) => return Err(Failure::HungUp),
            Ok(Ok(())) => {}
        }
        self.line = if content.is_empty() {
            Line::Whole(socket)
        } else {
            let (reading, writing) = tokio::io::split(socket);
            let flaw = content.flaw().unwrap_or_default();
            let writer = tokio::spawn(send_content(content, writing, self.wait));
            Line::Sending { reading, writer, flaw }
        };
        Ok(())
    }

    /// Reads the head of the response.
    async fn head(&mut self) -> Result<Box<CgiHead>, Failure> {
        let limits = HeadLimits { bytes: self.head_bytes, ..HeadLimits::default() };
        let mut reader = CgiHeadReader::new(limits);
        loop {
            match self.event().await? {
                Event::Stdout(bytes) => match reader.read(bytes) {
                    Ok(HeadStep::More(next)) => reader = next,
                    Ok(HeadStep::Done(head)) => return Ok(head),
                    Err(refused) => {
                        if refused.reason == HeadRefusal::TooLarge {
                            self.noted.note_too_long();
                        }
                        tracing::error!(event = "origin-invalid", url = self.url(), reason = %refused);
                        return Err(Failure::InvalidResponse);
                    }
                },
                Event::Stderr(bytes) => self.keep_stderr(&bytes),
                Event::End(_) => {
                    self.log_stderr();
                    let refused = reader.cut_short();
                    tracing::error!(event = "origin-invalid", url = self.url(), reason = %refused);
                    return Err(Failure::InvalidResponse);
                }
            }
        }
    }

    /// The next piece of content; see [`OriginBody::next`].
    pub async fn next(&mut self) -> Option<Result<Bytes, Failure>> {
        if !self.first.is_empty() {
            return Some(Ok(std::mem::take(&mut self.first)));
        }
        loop {
            match self.event().await {
                Err(failure) => {
                    self.note(failure);
                    return Some(Err(failure));
                }
                Ok(Event::Stdout(bytes)) => {
                    self.received += bytes.len() as u64;
                    return Some(Ok(bytes));
                }
                Ok(Event::Stderr(bytes)) => self.keep_stderr(&bytes),
                Ok(Event::End(_)) => return self.end().await.err().map(Err),
            }
        }
    }

    /// Counts and logs a failure that interrupted the content.
    fn note(&self, failure: Failure) {
        match failure {
            Failure::TimedOut => self.limit_hits.note(Limit::OriginTimeout),
            Failure::HungUp => {}
            // Has been logged where it was detected.
            _ => return,
        }
        log_failure(&self.url(), failure, HALF_WAY);
    }

    /// The next event. Reads from the connection as needed.
    async fn event(&mut self) -> Result<Event, Failure> {
        loop {
            match self.reader.read(&mut self.input) {
                Ok(Some(event)) => return Ok(event),
                Ok(None) => {}
                Err(error) => {
                    tracing::error!(event = "origin-invalid", url = self.url(), reason = %error);
                    return Err(Failure::InvalidResponse);
                }
            }
            self.input.reserve(READ_BYTES);
            let count = match &mut self.line {
                Line::Whole(socket) => timeout(self.wait, socket.read_buf(&mut self.input)).await,
                Line::Sending { reading, writer, flaw } => tokio::select! {
                    read = read_while_sending(reading, writer, &mut self.input, self.wait) => read,
                    () = flaw.happened() => return Err(Failure::HungUp),
                },
                Line::Gone => return Err(Failure::HungUp),
            };
            match count {
                Err(_) => return Err(Failure::TimedOut),
                Ok(Err(_) | Ok(0)) => return Err(Failure::HungUp),
                Ok(Ok(_)) => self.heard = true,
            }
        }
    }

    /// Handles the end of the request: checks that the content is complete, and keeps the connection if
    /// it can be reused.
    async fn end(&mut self) -> Result<(), Failure> {
        self.log_stderr();
        let end = self.reader.end();
        let complete = Completeness::of(end, self.framing, self.declared, self.received);
        let (socket, sent) = match std::mem::replace(&mut self.line, Line::Gone) {
            Line::Whole(socket) => (Some(socket), StdinSent::Whole),
            Line::Sending { reading, writer, .. } if writer.is_finished() => match writer.await {
                Ok(Some(writing)) => (Some(reading.unsplit(writing)), StdinSent::Whole),
                _ => (None, StdinSent::Partly),
            },
            Line::Sending { writer, .. } => {
                writer.abort();
                (None, StdinSent::Partly)
            }
            Line::Gone => (None, StdinSent::Partly),
        };
        let reuse = Reuse::of(self.after, sent, &self.reader, self.input.remaining());
        let slot = self.slot.take();
        match (socket, reuse) {
            (Some(socket), Reuse::Keep) => self.idle.put(socket, slot),
            // The lease ends before the connection: see [`SlotLease`].
            (socket, _) => drop((slot, socket)),
        }
        match complete {
            Completeness::Complete => Ok(()),
            Completeness::Incomplete(reason) => {
                tracing::error!(
                    event = "origin-incomplete",
                    url = self.url(),
                    reason = reason.as_str()
                );
                Err(Failure::HungUp)
            }
        }
    }

    fn keep_stderr(&mut self, bytes: &[u8]) {
        self.fatal.push(bytes);
        let room = STDERR_BYTES.saturating_sub(self.stderr.len());
        self.stderr.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn log_stderr(&mut self) {
        for line in stderr::messages(&String::from_utf8_lossy(&self.stderr)) {
            tracing::warn!(event = "origin-stderr", url = self.url(), line);
        }
        self.stderr.clear();
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        self.log_stderr();
        if let Line::Sending { writer, .. } = &self.line {
            writer.abort();
        }
    }
}
