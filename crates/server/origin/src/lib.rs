//! The origin, which generates the pages. It takes a request, and returns a response head and a stream
//! of content, whether it is a FastCGI responder or an HTTP server.
//!
//! A response is complete only if its end was signalled as its protocol requires. Any other end is a
//! failure, and the response is never stored. Failures are expected results, for which the cache has
//! rules (stale-if-error).
//!
//! | file | contents |
//! |---|---|
//! | `routes` | maps a URL path to a file or script |
//! | `fastcgi`, `http` | the two kinds of origin; `strict` validates what an HTTP origin sends |
//! | `php_fpm` | Pagewell's own php-fpm; `held` is its directory, `child` ends it with Pagewell |
//! | `admission`, `places` | the permit of each request and its class; the limit of concurrent requests, and their queue |
//! | `upload`, `spool` | the content of requests, and its files; `pace` measures slow clients |
//! | `decoded_body` | decompresses responses that nobody asked to be compressed |
//! | `probe` | tests for `pagewell check` whether an origin can be reached |
//! | `announce` | request fields and params that announce a LiteSpeed-compatible cache |
//!
//! Start reading at [`Origin::admit`] and [`Origin::send`]. Not here: which requests go to the origin, and what becomes
//! of a response.

mod admission;
mod announce;
mod child;
mod decoded_body;
pub mod fastcgi;
pub mod http;
pub mod pace;
pub mod php_fpm;
pub mod places;
mod private_directory;
pub mod probe;
pub mod routes;
pub mod spool;
mod strict;
pub mod upload;

pub use admission::{Admission, OriginClass, OriginPermit, SharedLevel};
pub use announce::LiteSpeedFeatures;
pub use decoded_body::{DecodedBody, decodable_coding};
pub use miss_control::{ClientLevel, MissReport};

use crate::routes::Script;
use crate::spool::Spool;
use crate::upload::Upload;
use ::http::{HeaderMap, Method, StatusCode, Version};
use bytes::Bytes;
use capture::{Capture, CaptureAccess, CaptureParameters, CaptureSource, CaptureUse};
use config::{Config, OriginConfig};
use http_cache::Failure;
use reasons::Reason;
use reasons::refusal::Refusal;
use request_values::target::TargetUri;
use site_state::propagation::Propagation;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use telemetry::client::{Client, ClientExtras};
use telemetry::counters::Counters;
use telemetry::trailers::Trailers;

/// The environment variables of the service manager's protocol (`sd_notify`, `sd_listen_fds`), which are removed for processes that Pagewell starts.
pub const SERVICE_MANAGER_ENVIRONMENT: [&str; 6] = [
    "NOTIFY_SOCKET",
    "WATCHDOG_USEC",
    "WATCHDOG_PID",
    "LISTEN_FDS",
    "LISTEN_PID",
    "LISTEN_FDNAMES",
];

/// A request to the origin.
pub struct OriginRequest {
    /// The facts by which it is ordered.
    pub admission: Admission,
    /// The method of the request.
    pub method: Method,
    /// The client's request target, unchanged: path and query.
    pub target: String,
    /// The host by which the site was requested.
    pub host: String,
    /// The scheme: `http` or `https`.
    pub scheme: &'static str,
    /// The end-to-end header fields.
    pub headers: HeaderMap,
    /// The content of the request.
    pub body: RequestBody,
    /// The client's address; none over a Unix socket.
    pub peer: Option<SocketAddr>,
    /// The local address that the client connected to; none over a Unix socket.
    pub local: Option<SocketAddr>,
    /// The script for this request, for a FastCGI origin.
    pub script: Option<Script>,
    /// The HTTP version of the client's request.
    pub version: Version,
    /// Messages that the client accepts in addition to the response, and measurements of the request.
    pub extras: ClientExtras,
    /// The features that are announced to LiteSpeed's plugins.
    pub litespeed: LiteSpeedFeatures,
    /// Records whether the request may have reached the origin.
    pub progress: SendProgress,
    /// The capture of the statements of the request; used by a FastCGI origin only. The caller keeps the
    /// [capture](Capture), and waits for its report after the end of the response.
    pub capture: Option<CaptureParameters>,
    /// Counts the request when it is sent; one that is deferred is not.
    pub counter: Option<fn(&Counters)>,
    /// How long it has waited for its places, in milliseconds; `None` if it got none, so it was never sent.
    pub waited_ms: Option<u64>,
}

impl OriginRequest {
    /// A GET request for this target on behalf of a client, without header fields and content.
    pub fn of(target: &TargetUri, client: &Client, admission: Admission) -> OriginRequest {
        OriginRequest {
            admission,
            method: Method::GET,
            target: target.path_and_query.clone(),
            host: target.host.clone(),
            scheme: target.scheme,
            headers: HeaderMap::new(),
            body: RequestBody::Empty,
            peer: client.peer,
            local: client.connection.local,
            script: None,
            version: Version::HTTP_11,
            extras: client.extras.clone(),
            litespeed: LiteSpeedFeatures::Nothing,
            progress: SendProgress::default(),
            capture: None,
            counter: None,
            waited_ms: None,
        }
    }

    /// The requested URL: scheme, host, and path with query.
    pub fn url(&self) -> String {
        format!("{}://{}{}", self.scheme, self.host, self.target)
    }
}

/// Whether a request may have reached the origin, so that its effects may have occurred even without a
/// response. Also whether the response's header section was too long to be read. Shared by the sender
/// of the request and the task that waits for the response.
#[derive(Clone, Debug, Default)]
pub struct SendProgress(Arc<SendFlags>);

#[derive(Debug, Default)]
struct SendFlags {
    may_have: AtomicBool,
    too_long: AtomicBool,
}

impl SendProgress {
    /// Records that the request is being sent.
    pub fn note(&self) {
        self.0.may_have.store(true, Ordering::Relaxed);
    }

    /// Whether the request may have reached the origin.
    pub fn may_have(&self) -> bool {
        self.0.may_have.load(Ordering::Relaxed)
    }

    /// Records that the header section of the response is too long.
    pub fn note_too_long(&self) {
        self.0.too_long.store(true, Ordering::Relaxed);
    }

    /// Whether the header section of the response was too long to be read.
    pub fn was_too_long(&self) -> bool {
        self.0.too_long.load(Ordering::Relaxed)
    }
}

/// Why the origin gave no response.
#[derive(Debug)]
pub enum Unsent {
    /// The origin failed.
    Failed(Failure),
    /// The request cannot be sent because of an error of the client.
    Client(Refusal),
    /// The origin requests that another path of this site be answered instead (RFC 3875 section 6.2.2).
    Redirected(String),
}

impl From<Failure> for Unsent {
    fn from(failure: Failure) -> Unsent {
        Unsent::Failed(failure)
    }
}

/// Log messages for a response that did not begin, and for one that was cut off.
const NO_ANSWER: &str = "no answer came";
const HALF_WAY: &str = "the answer stopped half-way";

/// Logs a failure of the origin. Refused and overloaded requests are logged elsewhere.
fn log_failure(url: &str, failure: Failure, reason: &str) {
    match failure {
        Failure::TimedOut => tracing::warn!(event = "origin-timed-out", url, reason),
        Failure::InvalidResponse => tracing::error!(event = "origin-invalid", url, reason),
        Failure::HungUp => tracing::error!(event = "origin-incomplete", url, reason),
        Failure::Refused
        | Failure::Overloaded
        | Failure::Deferred
        | Failure::Limited(_)
        | Failure::Status(_) => {}
    }
}

/// The content of a request.
pub enum RequestBody {
    /// The request has no content.
    Empty,
    /// Content that is being received or has been collected.
    Stream(Box<Upload>),
}

/// A response from the origin.
pub struct OriginResponse {
    /// The status code of the response.
    pub status: StatusCode,
    /// The header fields of the response.
    pub headers: HeaderMap,
    /// The content of the response.
    pub body: OriginBody,
    /// Whether the other machines have applied what it says to have changed; nothing waits at an origin.
    pub waited: Propagation,
}

/// The content of a response, in pieces.
pub enum OriginBody {
    /// Content from a FastCGI responder.
    FastCgi(Box<fastcgi::Reply>),
    /// Content from an HTTP server.
    Http(Box<http::Reply>),
    /// Content from either, decompressed while it is read.
    Understood(Box<DecodedBody>),
    /// No content.
    Nothing,
}

/// How a response ended whose end was signalled correctly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseEnd {
    /// The response ended without an error.
    Well,
    /// PHP reported a fatal error: the client gets the content, but it is not stored.
    PhpFatal,
}

impl ResponseEnd {
    /// The reason not to store the response, if there is one.
    pub fn against_storing(self) -> Option<Reason> {
        match self {
            ResponseEnd::Well => None,
            ResponseEnd::PhpFatal => Some(Reason::PhpFatalError),
        }
    }
}

impl OriginBody {
    /// How the response ended. Valid after [`OriginBody::next`] has returned `None`.
    pub fn ended(&self) -> ResponseEnd {
        match self {
            OriginBody::FastCgi(reply) => reply.ended(),
            OriginBody::Http(_) | OriginBody::Nothing => ResponseEnd::Well,
            OriginBody::Understood(content) => content.body.ended(),
        }
    }

    /// How the response will end, as far as the bytes tell that have arrived.
    pub fn end_so_far(&self) -> ResponseEnd {
        match self {
            OriginBody::FastCgi(reply) => reply.end_so_far(),
            OriginBody::Http(_) | OriginBody::Nothing => ResponseEnd::Well,
            OriginBody::Understood(content) => content.body.end_so_far(),
        }
    }

    /// Whether trailers may follow that are to be forwarded.
    pub fn may_have_trailers(&self) -> bool {
        matches!(self, OriginBody::Http(reply) if reply.may_have_trailers())
    }

    /// Takes the trailers. Valid after [`OriginBody::next`] has returned `None`.
    pub fn trailers(&mut self) -> Option<HeaderMap> {
        match self {
            OriginBody::Http(reply) => reply.trailers(),
            _ => None,
        }
    }

    /// The next piece; `None` at the signalled end.
    ///
    /// # Errors
    /// The response was cut off, or no data arrived within the time limit.
    pub async fn next(&mut self) -> Option<Result<Bytes, Failure>> {
        match self {
            OriginBody::FastCgi(reply) => reply.next().await,
            OriginBody::Http(reply) => reply.next().await,
            OriginBody::Understood(content) => content.next().await,
            OriginBody::Nothing => None,
        }
    }
}

/// The origin of a site.
pub enum Origin {
    /// A FastCGI responder.
    FastCgi(Box<fastcgi::FastCgi>),
    /// An HTTP server.
    Http(Box<http::HttpOrigin>),
}

impl Origin {
    /// Prepares the configured origin. Starts php-fpm if it is Pagewell's own. Opens the socket for the
    /// statements of scripts, if the site has automatic dependencies.
    ///
    /// # Errors
    /// php-fpm did not start, or the directory for uploads or for captures cannot be used: a sentence for
    /// the operator.
    pub async fn start(config: &Arc<Config>) -> Result<(Origin, Option<php_fpm::PhpFpm>), String> {
        Origin::start_with(config, Vec::new()).await
    }

    /// As [`Origin::start`]. The scripts of Pagewell's own php-fpm get these environment variables, too.
    ///
    /// # Errors
    /// As for [`Origin::start`].
    pub async fn start_with(
        config: &Arc<Config>,
        script_environment: Vec<(String, String)>,
    ) -> Result<(Origin, Option<php_fpm::PhpFpm>), String> {
        Spool::look(config)?;
        let automatic = config.automatic.as_ref();
        let directory = automatic.and_then(|automatic| automatic.capture_directory.as_ref());
        match &config.site.origin {
            OriginConfig::Http(servers) => {
                Ok((Origin::Http(Box::new(http::HttpOrigin::new(servers, config)?)), None))
            }
            OriginConfig::FastCgi(address) => {
                let capture = CaptureUse::of(config, config.limits.origin_connections)?;
                let open = |directory: &PathBuf| {
                    CaptureSource::open(directory, CaptureAccess::Everyone, capture)
                };
                let captures = directory.map(open).transpose()?.flatten();
                let fastcgi = fastcgi::FastCgi::new(address.clone(), config);
                Ok((Origin::FastCgi(Box::new(fastcgi.with_captures(captures))), None))
            }
            OriginConfig::OwnPhp(options) => {
                let capture = CaptureUse::of(config, options.children)?;
                let mut options = options.clone();
                options.env.extend(script_environment);
                let php = php_fpm::PhpFpm::start(&options, capture).await?;
                let fastcgi = fastcgi::FastCgi::own(php.socket(), options.children, config);
                let fastcgi = fastcgi.with_captures(php.captures().cloned());
                Ok((Origin::FastCgi(Box::new(fastcgi)), Some(php)))
            }
        }
    }

    /// Waits for all of a request's content before the request occupies the origin, so that a slow
    /// client does not. Trailers are kept for an HTTP server only.
    ///
    /// # Errors
    /// The content is invalid, or there is no room for it.
    pub async fn take_in(&self, request: &mut OriginRequest) -> Result<(), Unsent> {
        let RequestBody::Stream(upload) = &mut request.body else { return Ok(()) };
        let room = &self.places().room;
        let taken = match self {
            Origin::FastCgi(origin) => {
                upload.collect(room, origin.spool(), Trailers::Dropped).await
            }
            Origin::Http(origin) => upload.collect(room, origin.spool(), Trailers::Wanted).await,
        };
        taken.map_err(Unsent::Client)
    }

    /// Sends a request that has a [permit](Self::admit), and waits for the head of the response. The request's content
    /// is moved out of `request`; it must have been [collected](Self::take_in) before.
    ///
    /// # Errors
    /// The origin's failure, or the reason why the request could not be sent.
    pub async fn send(
        &self,
        request: &mut OriginRequest,
        permit: OriginPermit,
        counters: &Counters,
    ) -> Result<OriginResponse, Unsent> {
        if let Some(counter) = request.counter.take() {
            counter(counters);
        }
        match self {
            Origin::FastCgi(origin) => origin.send(request, permit).await,
            // Boxed, because the HTTP library's state would enlarge the state of every fetch.
            Origin::Http(origin) => Box::pin(origin.send(request, permit)).await,
        }
    }

    /// Sends a request that asks for another protocol on the connection (Upgrade). FastCGI does not support it.
    ///
    /// # Errors
    /// As for [`Origin::send`].
    pub async fn switch(&self, request: OriginRequest) -> Result<http::Switch, Unsent> {
        let permit = self.admit(&request.admission).await?;
        match self {
            Origin::FastCgi(_) => Err(Failure::InvalidResponse.into()),
            Origin::Http(origin) => origin.switch(request, permit).await,
        }
    }

    /// Waits for the permit of a request. Every request to the origin gets its permit here. A reference render does
    /// not wait: it gets a permit while two are free, or is deferred.
    ///
    /// # Errors
    /// [`Failure::Overloaded`] or [`Failure::Deferred`]: the request may not be sent.
    pub async fn admit(&self, admission: &Admission) -> Result<OriginPermit, Failure> {
        if admission.class == OriginClass::Reference {
            return self.places().enter_if_two_are_free(admission).ok_or(Failure::Deferred);
        }
        self.places().enter(admission).await
    }

    /// Begins the capture of a request's statements, if the site has automatic dependencies.
    pub fn begin_capture(&self) -> Option<Capture> {
        match self {
            Origin::FastCgi(origin) => origin.captures().map(CaptureSource::begin),
            Origin::Http(_) => None,
        }
    }

    /// The servers of the origin that get no requests now, and the number of all. A FastCGI origin has none.
    pub fn servers_out(&self) -> (usize, usize) {
        match self {
            Origin::FastCgi(_) => (0, 0),
            Origin::Http(origin) => (origin.servers().out(), origin.servers().list().len()),
        }
    }

    /// The concurrent requests at this origin.
    pub fn places(&self) -> &places::Places {
        match self {
            Origin::FastCgi(origin) => origin.places(),
            Origin::Http(origin) => origin.places(),
        }
    }
}
