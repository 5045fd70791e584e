//! The request of a render: the client's, with the plan and the key that the site's rules give it.
//!
//! Not here: the fields that are sent to the origin for it (`fields`), and its Range (`parts`).

use crate::{ExtraFields, Ranges};
use delivery::serve;
use delivery::site::Site;
use forward::litespeed;
use forward::rewrites::RoutedRequest;
use http::{HeaderMap, Method, Version};
use http_cache::status::{CacheOutcome, CacheStatus};
use http_cache::{ForwardReason, RequestFacts, Verdict};
use page_store::Candidates;
use request_values::target::TargetUri;
use site_rules::{Owner, Plan, PlannedFields};
use std::sync::Arc;
use stored_pages::page::{SharedPage, StoredPage};
use telemetry::client::Client;
use telemetry::request_fields::{AsSent, read_facts};

/// A GET or HEAD that the store could not answer.
#[derive(Clone)]
pub struct RenderRequest {
    /// The target of the request.
    pub target: TargetUri,
    /// The cache key of the page.
    pub key: Vec<u8>,
    /// The method, GET or HEAD.
    pub method: Method,
    /// The header lines of the client.
    pub headers: Arc<HeaderMap>,
    /// The HTTP version of the client's request.
    pub version: Version,
    /// The client and its connection.
    pub client: Client,
    /// The plan: the result of the site's rules for the request.
    pub plan: Plan,
    /// The reason why it is not answered from the store.
    pub why: ForwardReason,
    /// The stored page to be validated.
    pub validate: Option<SharedPage>,
    /// The stored page to use as a fallback if the origin fails.
    pub fallback: Option<SharedPage>,
    /// How the request's Range is handled.
    pub ranges: Ranges,
    /// The owner of the private copy; `None` for a shared page.
    pub owner: Option<Arc<Owner>>,
    /// The client's fields that are forwarded in addition to those of every render.
    pub extra_fields: ExtraFields,
}

impl RenderRequest {
    /// The request of a shared page, with no stored page to validate or to fall back on.
    pub fn of_page(
        (target, key, plan): (TargetUri, Vec<u8>, Plan),
        (method, version, headers): (Method, Version, Arc<HeaderMap>),
        client: Client,
        why: ForwardReason,
    ) -> RenderRequest {
        RenderRequest {
            target,
            key,
            method,
            headers,
            version,
            client,
            plan,
            why,
            validate: None,
            fallback: None,
            ranges: Ranges::Cut,
            owner: None,
            extra_fields: ExtraFields::default(),
        }
    }

    pub(crate) fn facts(&self) -> RequestFacts<'_> {
        read_facts(&self.method, &self.headers)
    }

    pub(crate) fn routed(&self) -> RoutedRequest<'_> {
        RoutedRequest::of_page(&self.target, &self.method)
    }

    pub(crate) fn status(&self) -> CacheStatus<'static> {
        CacheStatus::new(serve::CACHE_NAME, CacheOutcome::Forwarded(self.why))
    }

    /// Applies the plan's changes to the header lines that are sent to the origin.
    pub(crate) fn plan_headers(&self, site: &Site, headers: &mut HeaderMap, is_fixed: bool) {
        let fields = AsSent(&*self.headers);
        let planned = PlannedFields::new(&site.config.rules, self.plan, &fields);
        let planned = if is_fixed { planned } else { planned.of_client() };
        forward::as_planned(headers, &planned);
        litespeed::give_vary_value(&site.config.dialects, &self.plan, headers);
    }

    /// Selects the pages to validate and to fall back on from the pages stored now.
    pub(crate) fn look_again(&mut self, stored: &Candidates<StoredPage>, verdict: Verdict) {
        let page = |at: usize| stored.as_slice().get(at).cloned();
        (self.validate, self.fallback) = match verdict {
            Verdict::Forward { validate, fallback, .. } => {
                (validate.and_then(page), fallback.and_then(page))
            }
            // A stale page that may still be served: this is a refresh.
            Verdict::Reuse { candidate, .. } => (page(candidate), page(candidate)),
            Verdict::Bypass(_) | Verdict::Unsatisfied => (None, None),
        };
        self.send_nominated(stored);
        // A change has marked the page. Its validator may be older than the change, so it is not
        // used.
        if self.validate.as_ref().is_some_and(|page| page.is_marked()) {
            self.validate = None;
        }
    }
}
