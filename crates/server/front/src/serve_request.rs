//! One request, from its head to its response, for all versions of HTTP. A version adds what belongs to its
//! connections ([`HttpVersion`]); everything else about a request is done here.
//!
//! | step | by |
//! |---|---|
//! | the version's own offers to the client: interim responses, trailers, an upgrade | `HttpVersion::begin` |
//! | the client of the request, its trace, its entry for the access log | here |
//! | checks that the parser of the version does not make | `HttpVersion::accept` |
//! | the answer | `exchange` |
//! | fields of the connection; content that counts its progress | `HttpVersion::complete` |

use delivery::body::ResponseBody;
use delivery::log_entry::Entry;
use delivery::site::Site;
use http::{Request, Response};
use std::convert::Infallible;
use std::sync::Arc;
use telemetry::client::{Client, ClientConnection, ClientExtras, Spent};
use telemetry::request_content::RequestContent;
use telemetry::traces::Trace;

/// A request in a version of HTTP.
pub trait HttpVersion {
    /// The content of the response as the library of the version takes it.
    type Body;

    /// Returns the extras of the version for the client of this request in addition to the response.
    fn begin(&mut self, request: &mut Request<RequestContent>) -> ClientExtras;

    /// Keeps the entry for the access log until the response was sent.
    fn keep(&mut self, entry: Option<Box<Entry>>);

    /// Checks a request, and brings its head into the form that `exchange` expects.
    ///
    /// # Errors
    /// The answer to a request that is refused.
    fn accept(
        &mut self,
        site: &Arc<Site>,
        request: Request<RequestContent>,
    ) -> Result<Request<RequestContent>, Box<Response<ResponseBody>>>;

    /// Completes the response, and records it in the entry and in the trace.
    fn complete(
        self,
        site: &Arc<Site>,
        response: Response<ResponseBody>,
        trace: Option<Trace>,
    ) -> Response<Self::Body>;
}

/// Serves the requests of one connection.
pub struct RequestServer {
    default_site: Arc<Site>,
    connection: Arc<ClientConnection>,
    /// Whether the time of the origin is needed.
    is_timed: bool,
}

impl RequestServer {
    /// Creates it for a connection to this default site.
    pub fn new(default_site: &Arc<Site>, connection: &Arc<ClientConnection>) -> RequestServer {
        let is_timed = exchange::is_timed(default_site);
        RequestServer {
            default_site: default_site.clone(),
            connection: connection.clone(),
            is_timed,
        }
    }

    /// Serves one request. It has begun when this returns, and is answered by the future.
    pub fn serve<V: HttpVersion>(
        &self,
        mut request: Request<RequestContent>,
        mut version: V,
    ) -> impl Future<Output = Result<Response<V::Body>, Infallible>> + use<V> {
        let site = self.default_site.now();
        let proxies = &site.config.trusted_proxies;
        let mut client = Client::of_request(&self.connection, proxies, request.headers());
        client.extras = version.begin(&mut request);
        client.extras.spent = self.is_timed.then(Spent::default);
        client.extras.trace = Trace::of(site.state().exporter.as_ref(), &request, &client);
        version.keep(Entry::of(&site, &request, &client));
        async move {
            let response = match version.accept(&site, request) {
                Ok(request) => exchange::answer(&site, request, &client).await,
                Err(refused) => *refused,
            };
            Ok(version.complete(&site, response, client.extras.trace))
        }
    }
}
