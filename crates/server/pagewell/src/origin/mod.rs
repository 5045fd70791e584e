//! The origin: what renders the pages. One request in, one response head and a stream of content
//! out, whether it is a FastCGI responder or an HTTP server.
//!
//! A response is complete only when its end was announced as the protocol announces it; anything
//! else ends the stream with a failure, and is never stored. A failure is no exception here but an
//! outcome that is decided about (stale-if-error).

mod child;
pub mod fastcgi;
mod held;
pub mod http;
pub mod php_fpm;
pub mod places;
pub(crate) mod socket;
mod strict;

use crate::access_log::Spent;
use crate::codings::Understanding;
use crate::config::{Config, OriginConfig};
use crate::in_flight::Interims;
use crate::propagation::Propagation;
use crate::refusal::Refusal;
use crate::routes::Script;
use crate::spool::Spool;
use crate::traces::Trace;
use crate::trailers::Trailers;
use crate::upload::Upload;
use ::http::{HeaderMap, Method, StatusCode};
use bytes::Bytes;
use http_cache::{Failure, FieldUse};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A request as it goes to the origin.
pub struct OriginRequest {
    /// The method.
    pub method: Method,
    /// The target as the client wrote it, path and query.
    pub target: String,
    /// The Host the site was asked under.
    pub host: String,
    /// `http` or `https`.
    pub scheme: &'static str,
    /// End-to-end header lines.
    pub headers: HeaderMap,
    /// The content, streamed.
    pub body: RequestBody,
    /// The client's address; none over a Unix socket.
    pub peer: Option<SocketAddr>,
    /// The address it came to; none over a Unix socket.
    pub local: Option<SocketAddr>,
    /// The script that was found for it, for a FastCGI origin.
    pub script: Option<Script>,
    /// The HTTP version the client spoke.
    pub version: ::http::Version,
    /// What the client takes besides.
    pub besides: Besides,
    /// Whether the application is told of a cache that understands LiteSpeed's dialect.
    pub litespeed: FieldUse,
    /// Noted when it may have reached the origin.
    pub reached: Reached,
}

impl OriginRequest {
    /// What is asked for: scheme, host, and path with query.
    pub(crate) fn url(&self) -> String {
        format!("{}://{}{}", self.scheme, self.host, self.target)
    }
}

/// Whether a request may have reached the origin: from then on what it does there may have been done,
/// whether or not an answer comes. And whether one came whose header section was too long, so that nobody knows
/// what it said. Shared by who sends the request and who waits for the answer.
#[derive(Clone, Debug, Default)]
pub struct Reached(Arc<Told>);

#[derive(Debug, Default)]
struct Told {
    may_have: AtomicBool,
    too_long: AtomicBool,
}

impl Reached {
    /// Notes that the request is being sent.
    pub fn note(&self) {
        self.0.may_have.store(true, Ordering::Relaxed);
    }

    /// Whether it may have reached the origin.
    pub fn may_have(&self) -> bool {
        self.0.may_have.load(Ordering::Relaxed)
    }

    /// Notes that the header section of the answer is too long.
    pub fn note_too_long(&self) {
        self.0.too_long.store(true, Ordering::Relaxed);
    }

    /// Whether an answer came that said more than may be read.
    pub fn was_too_long(&self) -> bool {
        self.0.too_long.load(Ordering::Relaxed)
    }
}

/// What a client takes besides a response, where the origin speaks HTTP; and what is to be known of it.
#[derive(Clone, Debug, Default)]
pub struct Besides {
    /// Interim responses; none where they cannot be sent: in HTTP/1.0, and in HTTP/2 for want of a
    /// way through the HTTP library.
    pub interims: Option<Interims>,
    /// Trailers.
    pub trailers: Trailers,
    /// Where it is added up how long the origin takes, where somebody wants to know.
    pub spent: Option<Spent>,
    /// Its trace, where requests are traced.
    pub trace: Option<Trace>,
}

/// Why there is no response to pass on.
#[derive(Debug)]
pub enum Unsent {
    /// The origin failed.
    Failed(Failure),
    /// The request cannot be sent; the client is to blame.
    Client(Refusal),
    /// The origin wants another path of this site to be answered in its place (RFC 3875 section
    /// 6.2.2).
    Redirected(String),
}

impl From<Failure> for Unsent {
    fn from(failure: Failure) -> Unsent {
        Unsent::Failed(failure)
    }
}

/// What is said where the first line of an answer did not come, or nothing more behind it.
const NO_ANSWER: &str = "no answer came";
const HALF_WAY: &str = "the answer stopped half-way";

/// Says in the log what came of a request at the origin: visitors are told that it is there.
fn log_failure(url: &str, failure: Failure, reason: &str) {
    match failure {
        Failure::TimedOut => tracing::warn!(event = "origin-timed-out", url, reason),
        Failure::InvalidResponse => tracing::error!(event = "origin-invalid", url, reason),
        Failure::HungUp => tracing::error!(event = "origin-incomplete", url, reason),
        Failure::Refused | Failure::Overloaded | Failure::Status(_) => {}
    }
}

/// A request's content.
pub enum RequestBody {
    /// None.
    Empty,
    /// As it comes from the client, or has come.
    Stream(Box<Upload>),
}

/// A response as it comes from the origin.
pub struct OriginResponse {
    /// The status.
    pub status: StatusCode,
    /// The header lines.
    pub headers: HeaderMap,
    /// The content.
    pub body: OriginBody,
    /// Whether the other machines have applied what it says to have changed; nothing waits at an origin.
    pub waited: Propagation,
}

/// The content of a response, piece by piece.
pub enum OriginBody {
    /// From a FastCGI responder.
    FastCgi(Box<fastcgi::Reply>),
    /// From an HTTP server.
    Http(Box<http::Reply>),
    /// From either, with its coding undone.
    Understood(Box<Understanding>),
    /// None.
    Nothing,
}

/// How a response ended that came to its announced end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// As it should.
    Well,
    /// PHP reported a fatal error on the way: what there is goes to the one who asked, and is not
    /// stored.
    PhpFatal,
}

impl Ended {
    /// The reason that stands against storing, if there is one.
    pub fn against_storing(self) -> Option<&'static str> {
        match self {
            Ended::Well => None,
            Ended::PhpFatal => Some("php-fatal-error"),
        }
    }
}

impl OriginBody {
    /// How it ended, once [`OriginBody::next`] has given `None`.
    pub fn ended(&self) -> Ended {
        match self {
            OriginBody::FastCgi(reply) => reply.ended(),
            OriginBody::Http(_) | OriginBody::Nothing => Ended::Well,
            OriginBody::Understood(content) => content.body.ended(),
        }
    }

    /// Whether it may end with trailers that are passed on.
    pub fn may_have_trailers(&self) -> bool {
        matches!(self, OriginBody::Http(reply) if reply.may_have_trailers())
    }

    /// The trailers it had, once [`OriginBody::next`] has given `None`.
    pub fn trailers(&mut self) -> Option<HeaderMap> {
        match self {
            OriginBody::Http(reply) => reply.trailers(),
            _ => None,
        }
    }

    /// The next piece; `None` at the announced end.
    ///
    /// # Errors
    /// The response broke off, or nothing came for too long.
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
    FastCgi(fastcgi::FastCgi),
    /// An HTTP server.
    Http(Box<http::HttpOrigin>),
}

impl Origin {
    /// Connects to (or starts) what the configuration names.
    ///
    /// # Errors
    /// Our own php-fpm did not start, or the directory for uploads cannot be used: a sentence for the operator.
    pub async fn start(config: &Arc<Config>) -> Result<(Origin, Option<php_fpm::PhpFpm>), String> {
        Spool::look(config)?;
        match &config.site.origin {
            OriginConfig::Http(authority) => {
                Ok((Origin::Http(Box::new(http::HttpOrigin::new(authority.clone(), config))), None))
            }
            OriginConfig::FastCgi(address) => {
                Ok((Origin::FastCgi(fastcgi::FastCgi::new(address.clone(), config)), None))
            }
            OriginConfig::OwnPhp(options) => {
                let php = php_fpm::PhpFpm::start(options).await?;
                let fastcgi = fastcgi::FastCgi::own(php.socket(), options.children, config);
                Ok((Origin::FastCgi(fastcgi), Some(php)))
            }
        }
    }

    /// Waits for all of a request's content, before a place at the origin is taken: a client that sends slowly
    /// holds none. Trailers are kept for an HTTP server alone.
    ///
    /// # Errors
    /// The content is wrong in some way, or there is no room for it.
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

    /// Sends a request, out of which its content is taken, and waits for the response's header section. What
    /// it has of content was [taken in](Self::take_in) before.
    ///
    /// # Errors
    /// How the origin failed, or why the request could not be sent.
    pub async fn send(&self, request: &mut OriginRequest) -> Result<OriginResponse, Unsent> {
        match self {
            Origin::FastCgi(origin) => origin.send(request).await,
            // In a box: its state is that of the HTTP library, and would be in each render's.
            Origin::Http(origin) => Box::pin(origin.send(request)).await,
        }
    }

    /// The places at the origin.
    pub fn places(&self) -> &places::Places {
        match self {
            Origin::FastCgi(origin) => origin.places(),
            Origin::Http(origin) => origin.places(),
        }
    }
}
