//! Answers a request whose render has failed. The answer is the stored fallback page if that is
//! allowed, else an error (RFC 5861 section 4, RFC 9111 section 4.2.4).
//!
//! `lookup::choose_on_failure` decides at the time of the failure whether the page may be used.

use super::{Render, RenderRequest};
use delivery::body::ResponseBody;
use delivery::deferral;
use delivery::lookup;
use delivery::serve;
use delivery::site::Site;
use delivery::visitors;
use http::Response;
use http_cache::Failure;
use origin::Unsent;
use reasons::Reason;
use std::sync::Arc;
use stored_pages::page::ttl_seconds;
use telemetry::request_fields::AsSent;

/// The recipient of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientConnection {
    /// A client that waits for it.
    Client,
    /// No client: a background refresh has failed, and its answer is neither sent nor counted.
    Nobody,
}

impl Render {
    /// The recipient of this render's answer.
    pub(super) fn recipient(&self) -> ClientConnection {
        if self.answer.is_some() { ClientConnection::Client } else { ClientConnection::Nobody }
    }
}

/// The answer if the origin failed: the stale page if that is allowed, else an error.
pub(super) fn on_failure(
    site: &Arc<Site>,
    ask: &RenderRequest,
    failure: Failure,
    recipient: ClientConnection,
) -> Response<ResponseBody> {
    stale_on(site, ask, failure, recipient).unwrap_or_else(|| {
        let response = forward::failed(site, Unsent::Failed(failure), ask.why);
        let asked = (&ask.method, &*ask.headers);
        deferral::finish(site, asked, &ask.target, &ask.client, response)
    })
}

/// The stale page, if it may be served after this failure (RFC 5861 section 4, RFC 9111 section
/// 4.2.4).
pub(super) fn stale_on(
    site: &Arc<Site>,
    ask: &RenderRequest,
    failure: Failure,
    recipient: ClientConnection,
) -> Option<Response<ResponseBody>> {
    let fallback = ask.fallback.as_ref()?;
    let (facts, fields, now) = (ask.facts(), AsSent(&*ask.headers), site.clock.now());
    let (plan, when) = (&ask.plan, (failure, now));
    let answer = lookup::choose_on_failure(site, &facts, &fields, plan, fallback, when)?;
    if recipient == ClientConnection::Client {
        site.counters.stale_hits.add();
        if failure == Failure::Deferred {
            site.counters.misses_deferred_stale.add();
        }
        fallback.serve();
    }
    let mut status = ask.status();
    status.ttl_seconds = Some(ttl_seconds(fallback, now));
    status.detail = Some(Reason::from(failure).as_str());
    if let Failure::Status(code) = failure {
        status.forward_status = Some(code);
    }
    Some(serve::page(&facts, fallback, answer, now, &status))
}

/// The answer if a rule limits the renders of its pages, and there were too many: an expired page as for a deferred
/// request, else a 429.
pub(super) fn over_renders(
    site: &Arc<Site>,
    ask: &RenderRequest,
) -> Option<Response<ResponseBody>> {
    let asked = (&ask.target, &*ask.headers);
    let seconds = visitors::count_render(site, &ask.client, &ask.plan, asked).err()?;
    let stale = stale_on(site, ask, Failure::Deferred, ClientConnection::Client);
    Some(stale.unwrap_or_else(|| deferral::renders_limited(ask.status(), seconds)))
}
