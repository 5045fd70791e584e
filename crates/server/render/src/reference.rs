//! A reference render: what a page is now for a visitor of whom nothing is known, to compare a stored page with. It is
//! a GET, and never stored; it ends no page (rule 9), joins no render and lets none join.
//!
//! | of the request | in a reference render |
//! |---|---|
//! | fields and cookies of the key, and those that the page's `Vary` names | as the visitor has sent them |
//! | `User-Agent`, `Accept` | those of a common browser of the same kind |
//! | the client's address | one for documentation |
//! | all other fields and cookies, `Range`, conditions | left out |
//!
//! It gets a place only while two are free (`origin::Places`). Changes that it announces are applied, as for any
//! response. The field `Pagewell-Reference` tells plugins not to count it; clients cannot send it.

use super::superseded::for_everybody;
use super::undeclared::FIXED_ADDRESS;
use super::{OriginTimes, Render, RenderPermit, RenderRequest};
use bytes::Bytes;
use delivery::esi;
use delivery::site::Site;
use forward::{Answerer, answerer};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use http_cache::Failure;
use origin::routes::Script;
use origin::{OriginBody, Unsent};
use page_store::Lease;
use request_values::target::TargetUri;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use telemetry::client::RequestPurpose;

/// Tells plugins that no visitor sees the response.
pub(super) const REFERENCE: HeaderName = HeaderName::from_static("pagewell-reference");
/// Browsers that applications know, of the two classes of devices.
const DESKTOP: HeaderValue = HeaderValue::from_static(
    "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
);
const MOBILE: HeaderValue = HeaderValue::from_static(
    "Mozilla/5.0 (Android 14; Mobile; rv:128.0) Gecko/128.0 Firefox/128.0",
);
const ACCEPT: HeaderValue =
    HeaderValue::from_static("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8");

/// A response to compare with, as it would have been stored.
pub struct ReferenceRender {
    /// The status of the response.
    pub status: StatusCode,
    /// Its header lines; those of the stored form if it could be stored.
    pub headers: HeaderMap,
    /// The content of the response, decoded.
    pub content: Bytes,
    /// The time that the origin took.
    pub took: Duration,
    right: RenderPermit,
}

impl ReferenceRender {
    /// The lease that was taken before the request was sent.
    pub fn lease(&self) -> &Lease {
        self.right.lease()
    }
}

/// Parts of a visitor's request that a control render has in addition. They are in memory only while a cause is
/// searched for.
#[derive(Clone, Default)]
pub struct SentParts {
    /// Cookies, each with its name and value as sent.
    pub cookies: Vec<String>,
    /// Header lines, as sent.
    pub fields: Vec<(HeaderName, HeaderValue)>,
    /// Parameters of the query that a page does not have, as sent.
    pub parameters: Vec<String>,
    /// The address that PHP sees as the client's.
    pub address: Option<SocketAddr>,
    /// All header lines, in place of those of a reference.
    pub replaced: Option<HeaderMap>,
    /// The status by which the origin has refused the visitor: a render that has it is an answer, too.
    pub refusal: Option<StatusCode>,
}

impl SentParts {
    /// Whether there is nothing of a visitor's request.
    pub fn is_empty(&self) -> bool {
        let SentParts { cookies, fields, parameters, address, replaced, refusal: _ } = self;
        let has_lines = !cookies.is_empty() || !fields.is_empty() || replaced.is_some();
        !has_lines && parameters.is_empty() && address.is_none()
    }

    fn add_to(&self, headers: &mut HeaderMap) {
        if let Some(replaced) = &self.replaced {
            let mark = headers.remove(REFERENCE);
            *headers = replaced.clone();
            headers.remove(header::ACCEPT_ENCODING);
            headers.extend(mark.map(|mark| (REFERENCE, mark)));
        }
        for (name, _) in &self.fields {
            headers.remove(name);
        }
        for (name, value) in &self.fields {
            headers.append(name, value.clone());
        }
        let known = headers.get(header::COOKIE).and_then(|line| line.to_str().ok());
        let all = known.into_iter().map(str::to_owned).chain(self.cookies.iter().cloned());
        let line = all.collect::<Vec<_>>().join("; ");
        if !self.cookies.is_empty()
            && let Ok(line) = HeaderValue::try_from(line)
        {
            headers.insert(header::COOKIE, line);
        }
    }

    fn with_parameters(&self, mut target: TargetUri) -> TargetUri {
        if !self.parameters.is_empty() {
            target.normal.get_or_insert_with(|| target.path_and_query.clone());
            let mark = if target.path_and_query.contains('?') { '&' } else { '?' };
            target.path_and_query.push(mark);
            target.path_and_query.push_str(&self.parameters.join("&"));
        }
        target
    }
}

/// Why there is no reference render.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoReference {
    /// Without the visitor's fields the request would be for another page.
    OnlyForVisitor,
    /// Pagewell itself would answer, by a file, a redirect or an error.
    NotOfOrigin,
    /// The page is stored and fresh, or another render of it is in progress. Only if it was to be stored.
    NotNeeded,
    /// Fewer than two places at the origin were free.
    NoPlace,
    /// The origin failed or refused the request, with this status if it sent one.
    Failed(Option<StatusCode>),
    /// The response is of a kind that is not compared: too large, or assembled by another cache's rules.
    NotCompared,
}

impl NoReference {
    /// Whether the render got a place at the origin, and was sent there.
    pub fn was_sent(self) -> bool {
        matches!(self, NoReference::Failed(_) | NoReference::NotCompared)
    }

    /// The reason in a few words, for the report of a trial.
    pub fn text(self) -> String {
        let text = match self {
            NoReference::OnlyForVisitor => "another page without the visitor's fields",
            NoReference::NotOfOrigin => "answered by Pagewell itself",
            NoReference::NotNeeded => "stored already",
            NoReference::NoPlace => "no connection to the origin was free",
            NoReference::Failed(Some(status)) => return format!("status {}", status.as_u16()),
            NoReference::Failed(None) => "no complete answer",
            NoReference::NotCompared => "too large, or a template of ESI",
        };
        text.to_owned()
    }
}

/// Whether a request comes from a mobile device, as its `User-Agent` says.
pub fn is_of_mobile(headers: &HeaderMap) -> bool {
    let agent = headers.get(header::USER_AGENT).map_or(&b""[..], |agent| agent.as_bytes());
    agent.windows(6).any(|word| word == b"Mobile")
}

/// Whether this is a value that reference renders send of themselves.
pub(super) fn is_of_common_browser(value: &HeaderValue) -> bool {
    [DESKTOP, MOBILE, ACCEPT].contains(value)
}

/// The `User-Agent` of a common browser of the other class of devices, for a render of this page; `None` if its key or its
/// `Vary` distinguishes devices.
pub fn other_device(ask: &RenderRequest) -> Option<SentParts> {
    let is_named = ask.fallback.as_ref().is_some_and(|page| {
        let nominated = page.payload().stored.nominated();
        nominated.names().any(|name| *name == header::USER_AGENT)
    });
    let other = if is_of_mobile(&ask.headers) { DESKTOP } else { MOBILE };
    let fields = vec![(header::USER_AGENT, other)];
    let is_one_page = !is_named && !ask.plan.has_device();
    is_one_page.then(|| SentParts { fields, ..SentParts::default() })
}

/// Returns the request for the same page without anything of its visitor; `None` if that would be another page.
pub fn neutral(site: &Arc<Site>, ask: &RenderRequest) -> Option<RenderRequest> {
    let stored = ask.fallback.as_ref().map(|page| page.payload().stored.nominated().clone());
    let is_nominated = |name: &HeaderName| {
        stored.as_ref().is_some_and(|nominated| nominated.names().any(|other| other == name))
    };
    let mut headers = HeaderMap::new();
    for (name, value) in &*ask.headers {
        if is_nominated(name) || *name == header::HOST || *name == header::COOKIE {
            headers.append(name, value.clone());
        }
    }
    if !is_nominated(&header::USER_AGENT) {
        let agent = if is_of_mobile(&ask.headers) { MOBILE } else { DESKTOP };
        headers.insert(header::USER_AGENT, agent);
    }
    if !is_nominated(&header::ACCEPT) {
        headers.insert(header::ACCEPT, ACCEPT);
    }
    let bare = RenderRequest { headers: Arc::new(headers), ..ask.clone() };
    // The key may have further fields, by rules.
    let mut all = for_everybody(site, &bare).or_else(|| for_everybody(site, ask))?;
    all.extra_fields.is_neutral = true;
    stored.iter().for_each(|nominated| all.send_named(nominated, |_| true));
    Some(all)
}

/// Renders the page of this request for a visitor of whom nothing is known but these parts of a request: none for a
/// reference, some to find those on which the page depends.
///
/// # Errors
/// The reason why there is no such render.
pub async fn reference(
    site: &Arc<Site>,
    ask: &RenderRequest,
    parts: &SentParts,
) -> Result<ReferenceRender, NoReference> {
    let ask = neutral(site, ask).ok_or(NoReference::OnlyForVisitor)?;
    let answerer = answerer(site, ask.routed(), &ask.facts()).await;
    let Answerer::Origin(script) = answerer else { return Err(NoReference::NotOfOrigin) };
    let right = RenderPermit::Solo(site.store.lease());
    let (mut render, _) = Render::for_nobody(site, ask, right);
    render.ask.client.extras.purpose = RequestPurpose::Reference;
    render.referred(script, parts).await
}

impl Render {
    /// Sends the request, and reads the response.
    async fn referred(
        mut self: Box<Self>,
        script: Option<Script>,
        parts: &SentParts,
    ) -> Result<ReferenceRender, NoReference> {
        let site = self.site.clone();
        self.fix(script.as_ref());
        let mut headers = self.page_headers();
        parts.add_to(&mut headers);
        self.ask.target = parts.with_parameters(self.ask.target);
        let (request_time, began) = (site.clock.now(), site.clock.monotonic());
        let mut request = Box::new(self.request(headers.clone(), script));
        // Its statements say nothing about the stored page.
        (request.capture, self.capture) = (None, None);
        request.counter = Some(|counters| {
            counters.renders.add();
            counters.audit_renders.add();
        });
        request.peer = parts.address.or(Some(FIXED_ADDRESS));
        let mut response =
            forward::send::send_following(&site, &mut request).await.map_err(unsent)?;
        if is_no_answer(response.status) && parts.refusal != Some(response.status) {
            return Err(NoReference::Failed(Some(response.status)));
        }
        let (response_time, is_fixed) = (site.clock.now(), self.is_fixed);
        let sent = OriginTimes { headers, request_time, response_time, is_fixed };
        let headers = match self.kept(&response, &sent) {
            Ok(stored) if stored.says_esi() && esi::is_litespeeds(&site) => {
                return Err(NoReference::NotCompared);
            }
            Ok(mut stored) => {
                self.understand(&mut response, Some(&mut stored));
                stored.headers
            }
            Err(_) => {
                super::understand(&site, &Method::GET, &HeaderMap::new(), &mut response, None);
                response.headers
            }
        };
        let content = whole(&mut response.body, site.limits.page_bytes).await?;
        let (status, took) = (response.status, site.clock.monotonic().saturating_sub(began));
        let Render { right, .. } = *self;
        Ok(ReferenceRender { status, headers, content, took, right })
    }
}

fn unsent(unsent: Unsent) -> NoReference {
    match unsent {
        Unsent::Failed(Failure::Deferred) => NoReference::NoPlace,
        _ => NoReference::Failed(None),
    }
}

/// Whether a status says that the origin did not answer the question: it refuses or limits Pagewell, or has failed.
fn is_no_answer(status: StatusCode) -> bool {
    status.is_server_error()
        || matches!(status, StatusCode::FORBIDDEN | StatusCode::TOO_MANY_REQUESTS)
}

/// Reads content to its end.
async fn whole(body: &mut OriginBody, most: usize) -> Result<Bytes, NoReference> {
    let mut content = Vec::new();
    while let Some(piece) = body.next().await {
        let piece = piece.map_err(|_| NoReference::Failed(None))?;
        if content.len() + piece.len() > most {
            return Err(NoReference::NotCompared);
        }
        content.extend_from_slice(&piece);
    }
    match body.ended().against_storing() {
        None => Ok(content.into()),
        Some(_) => Err(NoReference::Failed(None)),
    }
}
