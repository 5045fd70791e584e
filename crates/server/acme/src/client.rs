//! The HTTP client for certificate authorities: HTTPS with the roots of the system (`SSL_CERT_FILE` names others).
//!
//! Bounds: a request has 30 seconds, its response 64 KiB of fields and 1 MiB of content. Redirects are refused, as is
//! any URL without `https`. Each request has a connection of its own: an order has about a dozen. The client notes the
//! `Date` of the authority, and `Retry-After` of its refusals, which instant-acme does not pass on.

use crate::failure::OrderFailure;
use certificates::FailureCause;
use http::header::{CONTENT_TYPE, DATE, HOST, HeaderValue, RETRY_AFTER, USER_AGENT};
use http::{Request, Response, Uri};
use http_body_util::{BodyExt, Full, Limited};
use http_fields::Timestamp;
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::{CertificateDer, ServerName};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use telemetry::clock::Clock;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// The timeout of a request, from the name resolution to the last byte.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);
/// The same in tests.
const TEST_ANSWER_WITHIN: Duration = Duration::from_secs(10);
/// The timeout of a connection to one address.
const CONNECT_WITHIN: Duration = Duration::from_secs(8);
/// The longest header section of a response in bytes.
const HEADER_BYTES_MAX: usize = 64 << 10;
/// The longest content of a response in bytes.
const CONTENT_BYTES_MAX: usize = 1 << 20;
/// The name of this client.
const AGENT: &str = concat!("pagewell/", env!("CARGO_PKG_VERSION"));

/// A client for one round with an authority; clones share what it notes.
#[derive(Clone)]
pub struct AuthorityClient {
    tls: Arc<ClientConfig>,
    clock: Clock,
    within: Duration,
    noted: Arc<Mutex<NotedFields>>,
}

/// The roots that authorities must have.
#[derive(Clone, Debug)]
pub enum AuthorityTrust {
    /// Those of the system.
    System,
    /// A single one, for tests, which have less time as well.
    Only(CertificateDer<'static>),
}

/// Fields of an authority's responses.
#[derive(Clone, Copy, Debug, Default)]
pub struct NotedFields {
    /// The waiting time that the last refusal asks for, in milliseconds.
    pub retry_after_ms: Option<u64>,
    /// How far the authority's clock is ahead of this machine's, in milliseconds.
    pub ahead_ms: Option<i64>,
}

impl AuthorityClient {
    /// A client that trusts these roots.
    ///
    /// # Errors
    /// There are no root certificates.
    pub fn new(clock: &Clock, trust: &AuthorityTrust) -> Result<AuthorityClient, OrderFailure> {
        let fault = |why: String| OrderFailure::of(FailureCause::Authority, &why);
        let roots = match trust {
            AuthorityTrust::System => certificates::authorities(None).map_err(fault)?,
            AuthorityTrust::Only(root) => {
                let mut roots = RootCertStore::empty();
                roots.add(root.clone()).map_err(|error| fault(error.to_string()))?;
                roots
            }
        };
        let tls = certificates::client_config(roots).map_err(fault)?;
        let (clock, noted) = (clock.clone(), Arc::default());
        let within = match trust {
            AuthorityTrust::System => ANSWER_WITHIN,
            AuthorityTrust::Only(_) => TEST_ANSWER_WITHIN,
        };
        Ok(AuthorityClient { tls: Arc::new(tls), clock, within, noted })
    }

    /// The same client for another authority: it has notes of its own.
    pub fn apart(&self) -> AuthorityClient {
        AuthorityClient { noted: Arc::default(), ..self.clone() }
    }

    /// The noted fields of the responses so far.
    pub fn noted(&self) -> NotedFields {
        *self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn send(&self, request: Request<BodyWrapper<Bytes>>) -> Result<BytesResponse, Error> {
        let uri = request.uri().clone();
        let response = match tokio::time::timeout(self.within, self.exchange(request)).await {
            Ok(response) => response?,
            Err(_) => {
                let seconds = self.within.as_secs();
                return Err(failed(&uri, &format!("no complete answer within {seconds} s")));
            }
        };
        self.note(&response);
        let status = response.status();
        if status.is_redirection() {
            return Err(failed(&uri, &format!("it redirects ({status}), which is not followed")));
        }
        let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let is_problem = kind.is_some_and(|kind| kind.contains("json"));
        if !status.is_success() && !is_problem {
            return Err(failed(&uri, &format!("it answers {status}")));
        }
        Ok(BytesResponse::from(response))
    }

    async fn exchange(
        &self,
        mut request: Request<BodyWrapper<Bytes>>,
    ) -> Result<Response<Full<Bytes>>, Error> {
        let uri = request.uri().clone();
        let wrong = |why: &str| failed(&uri, why);
        if uri.scheme_str() != Some("https") {
            return Err(wrong("not an https:// URL"));
        }
        let authority = uri.authority().ok_or_else(|| wrong("no host"))?;
        let host = authority.host().trim_matches(['[', ']']);
        let name = ServerName::try_from(host.to_owned()).map_err(|_| wrong("no valid host"))?;
        let stream = connect(host, authority.port_u16().unwrap_or(443)).await;
        let stream = stream.map_err(|error| wrong(&error.to_string()))?;
        let stream = TlsConnector::from(self.tls.clone()).connect(name, stream).await;
        let stream = stream.map_err(|error| wrong(&error.to_string()))?;
        let mut builder = hyper::client::conn::http1::Builder::new();
        builder.max_buf_size(HEADER_BYTES_MAX);
        let (mut sender, connection) = builder
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|error| wrong(&error.to_string()))?;
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        *request.uri_mut() = path.parse().map_err(|_| wrong("no valid path"))?;
        let host = HeaderValue::from_str(authority.as_str()).map_err(|_| wrong("no valid host"))?;
        request.headers_mut().insert(HOST, host);
        request.headers_mut().insert(USER_AGENT, HeaderValue::from_static(AGENT));
        let answer = async {
            let (head, content) = sender.send_request(request).await.map_err(said)?.into_parts();
            let content = Limited::new(content, CONTENT_BYTES_MAX).collect().await;
            let content = content.map_err(|error| error.to_string())?.to_bytes();
            Ok::<_, String>(Response::from_parts(head, Full::new(content)))
        };
        // The connection makes progress while the answer is read, and ends with it.
        let answered = tokio::select! {
            answered = answer => answered,
            ended = keep(connection) => Err(ended),
        };
        answered.map_err(|why| wrong(&why))
    }

    fn note(&self, response: &Response<Full<Bytes>>) {
        let now = self.clock.now();
        let field = |name| response.headers().get(name).map(HeaderValue::as_bytes);
        let date = field(DATE).and_then(|date| http_fields::date::parse(date, Timestamp(now.0)));
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(date) = date {
            noted.ahead_ms = Some(date.0 as i64 - now.0 as i64);
        }
        noted.retry_after_ms = field(RETRY_AFTER)
            .filter(|_| response.status().is_client_error() || response.status().is_server_error())
            .and_then(|value| {
                let text = std::str::from_utf8(value).ok()?.trim();
                match text.parse::<u64>() {
                    Ok(seconds) => Some(seconds.saturating_mul(1000)),
                    // The date is one of the authority's clock.
                    Err(_) => {
                        let until = http_fields::date::parse(value, Timestamp(now.0))?;
                        Some(until.0.saturating_sub(date.map_or(now.0, |date| date.0)))
                    }
                }
            });
    }
}

impl HttpClient for AuthorityClient {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let client = self.clone();
        Box::pin(async move { client.send(request).await })
    }
}

/// Connects to the first address of the host that accepts.
async fn connect(host: &str, port: u16) -> std::io::Result<TcpStream> {
    let mut why = std::io::Error::other("the name has no address");
    for address in tokio::net::lookup_host((host, port)).await? {
        match tokio::time::timeout(CONNECT_WITHIN, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => why = error,
            Err(_) => why = std::io::ErrorKind::TimedOut.into(),
        }
    }
    Err(why)
}

/// Drives a connection. It does not end: the error of the answer says why a connection has failed.
async fn keep<T>(connection: impl Future<Output = T>) -> String {
    connection.await;
    std::future::pending().await
}

fn said(error: hyper::Error) -> String {
    let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
    format!("{error}{}", cause.unwrap_or_default())
}

fn failed(uri: &Uri, why: &str) -> Error {
    let host = uri.authority().map_or("the authority", |authority| authority.as_str());
    Error::Other(format!("{host}: {why}").into())
}
