//! An HTTP server as the origin: Apache, nginx, `php -S`, or any other. It uses hyper's client with its
//! pool of kept-alive connections, and limits the concurrent requests. `X-Forwarded-*` fields describe
//! the client. Interim responses (1xx), and trailers after streamed content, are forwarded to clients
//! that accept them.
//!
//! Header sections of responses are validated strictly before hyper parses them (`strict`). A request
//! with content gets a connection of its own. The reason: an origin that does not read the content
//! might parse it as the next request, and send the result to another client. Other requests that are not
//! safe do as well, because they cannot be sent again over a new connection, as safe ones are if the
//! origin has closed the idle one.

mod lent;

use super::admission::OriginPermit;
use super::places::Places;
use super::strict::{self, Reuse, StrictConnector};
use super::{
    HALF_WAY, NO_ANSWER, OriginBody, OriginRequest, OriginResponse, RequestBody, Unsent,
    log_failure,
};
use crate::announce;
use crate::spool::Spool;
use crate::upload::UploadFailed;
use ::http::{HeaderMap, HeaderValue, StatusCode, Uri, header, uri};
use bytes::Bytes;
use config::{Config, OriginServer, OriginServers};
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use http_cache::Failure;
use hyper::body::Incoming;
use hyper_util::client::legacy::{Client, Error as ClientError};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use lent::{LentUpload, UploadOwner};
use origin_servers::{CheckRequest, Connector, ServerUse, Servers, TriedServers};
use site_state::propagation::Propagation;
use std::sync::Arc;
use std::time::Duration;
use telemetry::limit_hits::{Limit, LimitHits};
use telemetry::trailers::{self, Trailers};

/// How long an idle connection is kept: less than the 5 s that are the default of Apache and Node.js.
const IDLE: Duration = Duration::from_secs(4);

const CHUNKED: HeaderValue = HeaderValue::from_static("chunked");
const CLOSE: HeaderValue = HeaderValue::from_static("close");

type UploadBody = UnsyncBoxBody<Bytes, UploadFailed>;

/// An HTTP server that generates the pages.
pub struct HttpOrigin {
    /// For safe requests without content, on connections that are reused.
    client: Client<StrictConnector, UploadBody>,
    /// For other requests, each on a connection of its own: a connection that is reused may turn out to be dead, and
    /// the request cannot be sent a second time (RFC 9110 section 9.2.2).
    client_once: Client<StrictConnector, UploadBody>,
    servers: Arc<Servers>,
    places: Places,
    spool: Spool,
    config: Arc<Config>,
}

impl HttpOrigin {
    /// These servers. Begins to check them, if that is configured.
    ///
    /// # Errors
    /// TLS to them cannot be prepared: a sentence for the operator.
    pub fn new(servers: &OriginServers, config: &Arc<Config>) -> Result<HttpOrigin, String> {
        let connector = Connector::new(servers, config.limits.origin_connect_timeout)?;
        let client = |reuse: Reuse| {
            let idle_max = match reuse {
                Reuse::Pooled => config.limits.origin_connections,
                Reuse::Once => 0,
            };
            Client::builder(TokioExecutor::new())
                .pool_timer(TokioTimer::new())
                .pool_idle_timeout(IDLE)
                .pool_max_idle_per_host(idle_max)
                .set_host(false)
                .http1_max_buf_size(config.limits.origin_header_bytes.max(16 << 10))
                .build(StrictConnector::new(connector.clone(), reuse))
        };
        let all = Arc::new(Servers::new(servers));
        if let Some(path) = &servers.check {
            let host = config.hosts.canonical.as_deref();
            origin_servers::watch(&all, &connector, CheckRequest { path, host });
        }
        Ok(HttpOrigin {
            client: client(Reuse::Pooled),
            client_once: client(Reuse::Once),
            servers: all,
            places: Places::new(
                config.limits.origin_connections,
                config.limits.origin_connections,
                config,
            ),
            spool: Spool::new(config),
            config: config.clone(),
        })
    }

    /// The servers of this origin, with what is known of them.
    pub fn servers(&self) -> &Servers {
        &self.servers
    }

    /// The storage for content of requests that is too long for memory.
    pub fn spool(&self) -> &Spool {
        &self.spool
    }

    /// The concurrent requests at this server.
    pub fn places(&self) -> &Places {
        &self.places
    }

    /// Sends a request that has this permit; see [`super::Origin::send`].
    pub(super) async fn send(
        &self,
        request: &mut OriginRequest,
        permit: OriginPermit,
    ) -> Result<OriginResponse, Unsent> {
        let asked = self.ask(request, permit).await?;
        // RFC 9110 section 15.2.2: only in response to a request with Upgrade.
        if asked.response.status() == StatusCode::SWITCHING_PROTOCOLS {
            log_failure(&asked.url, Failure::InvalidResponse, "a 101 that was not asked for");
            return Err(Failure::InvalidResponse.into());
        }
        Ok(self.response(asked))
    }

    /// Sends a request that has this permit, and asks for another protocol on the connection; see
    /// [`super::Origin::switch`].
    pub(super) async fn switch(
        &self,
        mut request: OriginRequest,
        permit: OriginPermit,
    ) -> Result<Switch, Unsent> {
        let mut asked = self.ask(&mut request, permit).await?;
        if asked.response.status() != ::http::StatusCode::SWITCHING_PROTOCOLS {
            return Ok(Switch::Refused(self.response(asked)));
        }
        let protocol = hyper::upgrade::on(&mut asked.response).await;
        let protocol = protocol.map_err(|_| Failure::HungUp)?;
        Ok(Switch::Agreed { headers: asked.response.into_parts().0.headers, protocol })
    }

    async fn ask(
        &self,
        request: &mut OriginRequest,
        permit: OriginPermit,
    ) -> Result<PendingResponse, Unsent> {
        let (trailers, url) = (request.extras.trailers, request.url());
        let wait = self.config.limits.origin_timeout;
        match tokio::time::timeout(wait, self.exchange(request, &url)).await {
            Err(_) => {
                self.places.limit_hits.note(Limit::OriginTimeout);
                log_failure(&url, Failure::TimedOut, NO_ANSWER);
                Err(Failure::TimedOut.into())
            }
            Ok(answer) => {
                let (response, chosen) = answer?;
                Ok(PendingResponse { response, chosen, permit, trailers, url })
            }
        }
    }

    /// Sends the request to a server, and reads the head of the response. If that server cannot be reached, nothing
    /// was sent, and the next one gets the request. If its connection is lost before the first byte of the response,
    /// one other gets it, but only a GET or HEAD without content: its effects may have occurred. After a timeout of
    /// the response no other does.
    async fn exchange(
        &self,
        request: &mut OriginRequest,
        url: &str,
    ) -> Result<(::http::Response<Incoming>, ServerUse), Unsent> {
        let (mut tried, mut was_lost) = (TriedServers::default(), false);
        let (is_repeatable, has_content_before) = (is_repeatable(request), has_content(request));
        let mut chosen = self.servers.choose(tried).ok_or(Failure::Refused)?;
        loop {
            let error = match self.exchange_with(chosen.server(), request).await {
                Ok(response) => return Ok((response, chosen)),
                Err(error) => error,
            };
            tried.note(&chosen);
            let (error, failure) = match error {
                NotAnswered::Request(unsent) => return Err(unsent),
                NotAnswered::Server(error) => {
                    let failure = self.failed(&error, &chosen, request, url);
                    (error, failure)
                }
            };
            let is_lost = matches!(failure, Failure::HungUp) && is_repeatable;
            // Content that was read is gone.
            let is_whole = has_content(request) == has_content_before;
            if !is_whole || (!error.is_connect() && (was_lost || !is_lost)) {
                return Err(failure.into());
            }
            was_lost |= !error.is_connect();
            chosen = self.servers.choose(tried).ok_or(failure)?;
        }
    }

    /// Sends the request over an idle connection to this server or a new one, and reads the head of the response.
    async fn exchange_with(
        &self,
        server: &OriginServer,
        request: &mut OriginRequest,
    ) -> Result<::http::Response<Incoming>, NotAnswered> {
        let flaw = match &request.body {
            RequestBody::Empty if request.method.is_safe() => {
                request.progress.note();
                let (outgoing, _) = self.outgoing(server, request, Reuse::Pooled)?;
                match self.client.request(outgoing).await {
                    Ok(response) => return Ok(response),
                    // Other idle connections may be dead, too.
                    Err(error) if strict::is_closed_while_idle(&error) => None,
                    Err(error) => return Err(NotAnswered::Server(error)),
                }
            }
            RequestBody::Empty => None,
            RequestBody::Stream(upload) => Some(upload.flaw()),
        };
        request.progress.note();
        let (outgoing, content) = self.outgoing(server, request, Reuse::Once)?;
        let sent = self.client_once.request(outgoing).await;
        sent.map_err(|error| {
            if let Some(upload) = content.and_then(UploadOwner::take_back) {
                request.body = RequestBody::Stream(upload);
            }
            match flaw.and_then(|flaw| flaw.get()) {
                Some(refusal) => NotAnswered::Request(Unsent::Client(refusal)),
                None => NotAnswered::Server(error),
            }
        })
    }

    /// Reports why this server gave no response, and leaves it out if it cannot be reached.
    fn failed(
        &self,
        error: &ClientError,
        chosen: &ServerUse,
        request: &OriginRequest,
        url: &str,
    ) -> Failure {
        let failure = failure_of(error);
        if is_too_long(error) {
            request.progress.note_too_long();
        }
        if error.is_connect() && matches!(failure, Failure::TimedOut) {
            self.places.limit_hits.note(Limit::OriginConnectTimeout);
        }
        if error.is_connect() {
            let (address, error) = (chosen.server(), innermost(error));
            let is_left_out = self.servers.list().len() > 1 && self.servers.leave_out(chosen);
            if self.places.is_refusal_due() || is_left_out {
                tracing::warn!(event = "origin-refused", %address, error);
            }
            if is_left_out {
                tracing::warn!(event = "origin-left-out", %address);
            }
        } else {
            log_failure(url, failure, &innermost(error))
        }
        failure
    }

    fn response(&self, asked: PendingResponse) -> OriginResponse {
        let (head, body) = asked.response.into_parts();
        let reply = Reply {
            body,
            wait: self.config.limits.origin_timeout,
            wanted: asked.trailers,
            trailers: None,
            config: self.config.clone(),
            url: asked.url,
            limit_hits: self.places.limit_hits.clone(),
            _permit: asked.permit,
            _chosen: asked.chosen,
        };
        OriginResponse {
            status: head.status,
            headers: head.headers,
            body: OriginBody::Http(Box::new(reply)),
            waited: Propagation::NotNeeded,
        }
    }

    /// The request for this server, and who gets its content back if nothing of it was read.
    fn outgoing(
        &self,
        server: &OriginServer,
        request: &mut OriginRequest,
        reuse: Reuse,
    ) -> Result<(::http::Request<UploadBody>, Option<UploadOwner>), Failure> {
        let target = request.target.parse::<uri::PathAndQuery>();
        let uri = Uri::builder()
            .scheme(if server.is_tls { "https" } else { "http" })
            .authority(server.authority.as_str())
            .path_and_query(target.map_err(|_| Failure::InvalidResponse)?)
            .build()
            .map_err(|_| Failure::InvalidResponse)?;
        let mut headers = request.headers.clone();
        announce::announce(request.litespeed, &mut headers);
        if let Ok(host) = HeaderValue::from_str(&request.host) {
            headers.insert(header::HOST, host);
        }
        forwarded(&mut headers, &request.host, request.scheme, request.peer);
        if request.extras.trailers == Trailers::Wanted {
            // RFC 9110 section 10.1.4: TE is hop-by-hop, so Connection has to list it.
            headers.insert(header::TE, HeaderValue::from_static("trailers"));
            headers.append(header::CONNECTION, HeaderValue::from_static("te"));
        }
        let mut lender = None;
        let body = match std::mem::replace(&mut request.body, RequestBody::Empty) {
            RequestBody::Empty => {
                http_body_util::Empty::new().map_err(|never| match never {}).boxed_unsync()
            }
            RequestBody::Stream(upload) => {
                match upload.length() {
                    Some(length) => drop(headers.insert(header::CONTENT_LENGTH, length.into())),
                    // Without this field hyper omits the content of GET and HEAD.
                    None => drop(headers.insert(header::TRANSFER_ENCODING, CHUNKED)),
                }
                let (lent, home) = LentUpload::new(upload);
                lender = Some(home);
                lent.boxed_unsync()
            }
        };
        if reuse == Reuse::Once && !headers.contains_key(header::UPGRADE) {
            headers.append(header::CONNECTION, CLOSE);
        }
        let mut outgoing = ::http::Request::new(body);
        *outgoing.method_mut() = request.method.clone();
        *outgoing.uri_mut() = uri;
        *outgoing.headers_mut() = headers;
        if let Some(interims) = request.extras.interims.clone() {
            let config = self.config.clone();
            hyper::ext::on_informational(&mut outgoing, move |interim| {
                let internal = &config.policy.internal_fields;
                interims.pass(interim.status(), interim.headers(), internal);
            });
        }
        Ok((outgoing, lender))
    }
}

/// Why a server gave no response.
enum NotAnswered {
    /// The request cannot be sent to any server.
    Request(Unsent),
    /// The server failed.
    Server(ClientError),
}

impl From<Failure> for NotAnswered {
    fn from(failure: Failure) -> NotAnswered {
        NotAnswered::Request(failure.into())
    }
}

/// Whether a request may be sent again after a server may have got it.
fn is_repeatable(request: &OriginRequest) -> bool {
    let is_read = matches!(request.method, ::http::Method::GET | ::http::Method::HEAD);
    is_read && !has_content(request)
}

fn has_content(request: &OriginRequest) -> bool {
    !matches!(request.body, RequestBody::Empty)
}

/// The response to a request, with its permit.
struct PendingResponse {
    response: ::http::Response<Incoming>,
    /// The server that has sent it.
    chosen: ServerUse,
    permit: OriginPermit,
    trailers: Trailers,
    /// The requested URL, for the log.
    url: String,
}

/// The response to an Upgrade request.
pub enum Switch {
    /// The origin has switched to the other protocol.
    Agreed {
        /// The fields of the 101 response.
        headers: ::http::HeaderMap,
        /// The connection, in the other protocol.
        protocol: hyper::upgrade::Upgraded,
    },
    /// The origin sent an ordinary response instead.
    Refused(OriginResponse),
}

impl Switch {
    /// The status of the response.
    pub fn status(&self) -> StatusCode {
        match self {
            Switch::Agreed { .. } => StatusCode::SWITCHING_PROTOCOLS,
            Switch::Refused(response) => response.status,
        }
    }
}

/// Adds the `X-Forwarded-*` fields that describe the client's request. Fields of these names from the
/// client have been removed before.
fn forwarded(
    headers: &mut ::http::HeaderMap,
    host: &str,
    scheme: &'static str,
    peer: Option<std::net::SocketAddr>,
) {
    if let Some(peer) = peer
        && let Ok(value) = HeaderValue::from_str(&peer.ip().to_string())
    {
        headers.insert("x-forwarded-for", value);
    }
    if let Ok(value) = HeaderValue::from_str(host) {
        headers.insert("x-forwarded-host", value);
    }
    headers.insert("x-forwarded-proto", HeaderValue::from_static(scheme));
}

/// The kind of failure, as far as the client library's error reveals it.
fn failure_of(error: &ClientError) -> Failure {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(inner) = cause {
        if let Some(io) = inner.downcast_ref::<std::io::Error>() {
            return match io.kind() {
                std::io::ErrorKind::TimedOut => Failure::TimedOut,
                _ if error.is_connect() => Failure::Refused,
                std::io::ErrorKind::ConnectionReset
                | std::io::ErrorKind::BrokenPipe
                | std::io::ErrorKind::UnexpectedEof => Failure::HungUp,
                std::io::ErrorKind::InvalidData => Failure::InvalidResponse,
                _ => Failure::HungUp,
            };
        }
        if let Some(hyper) = inner.downcast_ref::<hyper::Error>() {
            if hyper.is_parse() {
                return Failure::InvalidResponse;
            }
            if hyper.is_timeout() {
                return Failure::TimedOut;
            }
        }
        cause = inner.source();
    }
    if error.is_connect() { Failure::Refused } else { Failure::HungUp }
}

/// Whether the header section of the response exceeded the maximum length.
fn is_too_long(error: &ClientError) -> bool {
    let first: &(dyn std::error::Error + 'static) = error;
    std::iter::successors(Some(first), |error| error.source())
        .filter_map(|error| error.downcast_ref::<hyper::Error>())
        .any(hyper::Error::is_parse_too_large)
}

/// The message of the innermost error; the outer ones name the library's steps.
fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.last().map(ToString::to_string).unwrap_or_default()
}

/// The content of a response that is being received.
pub struct Reply {
    body: Incoming,
    wait: Duration,
    wanted: Trailers,
    /// The trailers, once received.
    trailers: Option<HeaderMap>,
    config: Arc<Config>,
    url: String,
    limit_hits: Arc<LimitHits>,
    _permit: OriginPermit,
    _chosen: ServerUse,
}

impl Reply {
    /// See [`super::OriginBody::may_have_trailers`]. Content of a known length has no trailers (RFC
    /// 9112 section 7.1.2).
    pub fn may_have_trailers(&self) -> bool {
        self.wanted == Trailers::Wanted && self.body.size_hint().exact().is_none()
    }

    /// Takes the received trailers; see [`super::OriginBody::trailers`].
    pub fn trailers(&mut self) -> Option<HeaderMap> {
        self.trailers.take()
    }

    /// The next piece of content; see [`super::OriginBody::next`]. hyper reports an error if fewer
    /// bytes arrive than announced, or the last chunk is missing.
    pub async fn next(&mut self) -> Option<Result<Bytes, Failure>> {
        loop {
            let frame = match tokio::time::timeout(self.wait, self.body.frame()).await {
                Err(_) => {
                    self.limit_hits.note(Limit::OriginTimeout);
                    log_failure(&self.url, Failure::TimedOut, HALF_WAY);
                    return Some(Err(Failure::TimedOut));
                }
                Ok(frame) => frame?,
            };
            match frame {
                Err(error) => {
                    log_failure(&self.url, Failure::HungUp, &innermost(&error));
                    return Some(Err(Failure::HungUp));
                }
                Ok(frame) => match frame.into_data().map_err(Frame::into_trailers) {
                    Ok(piece) if piece.is_empty() => {}
                    Ok(piece) => return Some(Ok(piece)),
                    Err(Ok(all)) if self.wanted == Trailers::Wanted => {
                        let internal = &self.config.policy.internal_fields;
                        self.trailers = Some(trailers::permitted(all, internal));
                    }
                    Err(_) => {}
                },
            }
        }
    }
}
