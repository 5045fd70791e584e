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
use config::Config;
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use http_cache::Failure;
use hyper::body::Incoming;
use hyper_util::client::legacy::{Client, Error as ClientError, connect::HttpConnector};
use hyper_util::rt::{TokioExecutor, TokioTimer};
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
    authority: uri::Authority,
    places: Places,
    spool: Spool,
    config: Arc<Config>,
}

impl HttpOrigin {
    /// The server at `authority`, which has been validated with the configuration.
    pub fn new(authority: String, config: &Arc<Config>) -> HttpOrigin {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(config.limits.origin_connect_timeout));
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
        HttpOrigin {
            client: client(Reuse::Pooled),
            client_once: client(Reuse::Once),
            authority: authority.parse().expect("checked with the configuration"),
            places: Places::new(
                config.limits.origin_connections,
                config.limits.origin_connections,
                config,
            ),
            spool: Spool::new(config),
            config: config.clone(),
        }
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
            Ok(response) => Ok(PendingResponse { response: response?, permit, trailers, url }),
        }
    }

    /// Sends the request over an idle connection or a new one, and reads the head of the response.
    async fn exchange(
        &self,
        request: &mut OriginRequest,
        url: &str,
    ) -> Result<::http::Response<Incoming>, Unsent> {
        let flaw = match &request.body {
            RequestBody::Empty if request.method.is_safe() => {
                request.progress.note();
                match self.client.request(self.outgoing(request, Reuse::Pooled)?).await {
                    Ok(response) => return Ok(response),
                    // Other idle connections may be dead, too.
                    Err(error) if strict::is_closed_while_idle(&error) => None,
                    Err(error) => return Err(self.failed(&error, request, url).into()),
                }
            }
            RequestBody::Empty => None,
            RequestBody::Stream(upload) => Some(upload.flaw()),
        };
        request.progress.note();
        let sent = self.client_once.request(self.outgoing(request, Reuse::Once)?).await;
        sent.map_err(|error| match flaw.and_then(|flaw| flaw.get()) {
            Some(refusal) => Unsent::Client(refusal),
            None => self.failed(&error, request, url).into(),
        })
    }

    /// Reports why there is no response.
    fn failed(&self, error: &ClientError, request: &OriginRequest, url: &str) -> Failure {
        let failure = failure_of(error);
        if is_too_long(error) {
            request.progress.note_too_long();
        }
        if error.is_connect() && matches!(failure, Failure::TimedOut) {
            self.places.limit_hits.note(Limit::OriginConnectTimeout);
        }
        if error.is_connect() {
            let error = innermost(error);
            tracing::warn!(event = "origin-refused", address = %self.authority, error);
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
        };
        OriginResponse {
            status: head.status,
            headers: head.headers,
            body: OriginBody::Http(Box::new(reply)),
            waited: Propagation::NotNeeded,
        }
    }

    fn outgoing(
        &self,
        request: &mut OriginRequest,
        reuse: Reuse,
    ) -> Result<::http::Request<UploadBody>, Failure> {
        let target = request.target.parse::<uri::PathAndQuery>();
        let uri = Uri::builder()
            .scheme("http")
            .authority(self.authority.clone())
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
                upload.boxed_unsync()
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
        Ok(outgoing)
    }
}

/// The response to a request, with its permit.
struct PendingResponse {
    response: ::http::Response<Incoming>,
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
                std::io::ErrorKind::ConnectionReset
                | std::io::ErrorKind::BrokenPipe
                | std::io::ErrorKind::UnexpectedEof => Failure::HungUp,
                std::io::ErrorKind::InvalidData => Failure::InvalidResponse,
                _ if error.is_connect() => Failure::Refused,
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
