//! The circumstances that limit a trial, as far as its requests and comparisons show them: a cache in front, an origin
//! that fails or is full, and pages that write at each view.
//!
//! | a request comes from | with fields of | what is noticed |
//! |---|---|---|
//! | an address that is not in `trusted_proxies` | any proxy | the proxy is to be named: it may be a cache, and stands for all of its visitors |
//! | a trusted proxy | a CDN or a cache, perhaps before that proxy | a cache that may answer visitors itself |
//! | a trusted proxy | other proxies, such as nginx and HAProxy | nothing |
//!
//! Most answers of a window decide, so that a stranger with such fields does not.
//! A full origin is noticed by a render that gets no place, and until one gets one (`trial_record`): visitors' answers
//! that equal a page say nothing about free places. A failing one is noticed by an answer or a neutral render that
//! fails, until a render succeeds or an answer equals its page. A render that is not sent shows neither. Not here: a
//! page that nobody may store (`trial`), and the file of the record (`trial_record`).

use delivery::site::Site;
use http::{HeaderMap, HeaderName};
use page_comparison::UnjudgedReason;
use render::NoReference;
use rule_conditions::Peer;
use std::time::Duration;
use trial_record::TrialNotice;

/// The answers among which those that came through a proxy are counted.
const PROXY_WINDOW: u32 = 128;
/// Fields that a proxy adds, whether it is a cache or not.
const OF_PROXIES: [&str; 2] = ["forwarded", "x-forwarded-for"];
/// Fields that CDNs and caches add: `Via` (RFC 9110 section 7.6.3), `CDN-Loop` (RFC 8586), and those of Cloudflare,
/// CloudFront, Akamai, Azure and Varnish.
const OF_CACHES: [&str; 8] = [
    "via",
    "cdn-loop",
    "cf-ray",
    "cf-connecting-ip",
    "x-amz-cf-id",
    "akamai-origin-hop",
    "x-azure-ref",
    "x-varnish",
];
/// The first letters of all fields of Fastly.
const OF_FASTLY: &str = "fastly-";

/// The notice about a cache in front that a request gives reason for.
pub(crate) fn cache_in_front(headers: &HeaderMap, trust: Peer) -> Option<TrialNotice> {
    let is_of_cache = |name: &HeaderName| {
        OF_CACHES.contains(&name.as_str()) || name.as_str().starts_with(OF_FASTLY)
    };
    let is_of_proxy = |name: &HeaderName| OF_PROXIES.contains(&name.as_str()) || is_of_cache(name);
    match trust {
        Peer::Trusted => headers.keys().any(is_of_cache).then_some(TrialNotice::TrustedCache),
        Peer::Anybody => headers.keys().any(is_of_proxy).then_some(TrialNotice::CdnInFront),
    }
}

/// The answers of a window, and how many of them came through a proxy in front.
#[derive(Default)]
pub(crate) struct ProxyWindow {
    all: u32,
    unnamed: u32,
    trusted_caches: u32,
}

impl ProxyWindow {
    /// Counts an answer with the notice that [`cache_in_front`] gives. Returns at the end of a window whether most of its
    /// answers have given each notice.
    pub(crate) fn count(&mut self, seen: Option<TrialNotice>) -> Option<[(TrialNotice, bool); 2]> {
        self.all += 1;
        self.unnamed += u32::from(seen == Some(TrialNotice::CdnInFront));
        self.trusted_caches += u32::from(seen == Some(TrialNotice::TrustedCache));
        if self.all < PROXY_WINDOW {
            return None;
        }
        let ProxyWindow { all, unnamed, trusted_caches } = std::mem::take(self);
        let is_most = |count: u32| count * 2 > all;
        Some([
            (TrialNotice::CdnInFront, is_most(unnamed)),
            (TrialNotice::TrustedCache, is_most(trusted_caches)),
        ])
    }
}

/// Notes what a reference render of a page has shown about the origin, and counts it with its time if it was sent.
/// `failure`: why there is no render. `is_neutral`: it had no part of a visitor's request, which may be why another one
/// fails.
pub(crate) fn note_render(
    site: &Site,
    page: &str,
    (failure, took): (Option<NoReference>, Duration),
    is_neutral: bool,
) {
    match failure {
        None => site.trial.notice(TrialNotice::OriginFailing, false),
        Some(NoReference::Failed(_)) if is_neutral => {
            site.trial.notice(TrialNotice::OriginFailing, true);
        }
        Some(NoReference::NoPlace) => site.trial.notice(TrialNotice::OriginFull, true),
        Some(_) => {}
    }
    if let Some(failure) = failure.filter(|failure| *failure != NoReference::NoPlace) {
        site.trial.render_failed(page, failure.text());
    }
    if failure.is_none_or(NoReference::was_sent) {
        site.trial.rendered(took);
    }
}

/// Notes that a page changes at each view, and is left alone. It is no suspect: a page that was purged meanwhile would
/// not have been sent.
pub(crate) fn writes_at_each_view(site: &Site, page: &str) {
    site.trial.notice(TrialNotice::WritesAtEachView, true);
    site.trial.unjudged(page, UnjudgedReason::WritesAtEachView, false);
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn seen(names: &[&'static str], trust: Peer) -> Option<TrialNotice> {
        let mut headers = HeaderMap::new();
        for &name in names {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static("x"));
        }
        cache_in_front(&headers, trust)
    }

    #[test]
    fn a_trusted_proxy_is_a_cache_only_if_fields_of_one_are_there() {
        for name in ["via", "cf-ray", "fastly-ff", "fastly-client-ip", "x-amz-cf-id", "cdn-loop"] {
            let names = ["host", "x-forwarded-for", name];
            assert_eq!(seen(&names, Peer::Trusted), Some(TrialNotice::TrustedCache), "{name}");
            assert_eq!(seen(&[name], Peer::Anybody), Some(TrialNotice::CdnInFront), "{name}");
        }
        let of_nginx = ["host", "x-forwarded-for", "x-forwarded-proto", "x-real-ip", "forwarded"];
        assert_eq!(seen(&of_nginx, Peer::Trusted), None);
        assert_eq!(seen(&of_nginx, Peer::Anybody), Some(TrialNotice::CdnInFront));
        assert_eq!(seen(&["host", "user-agent"], Peer::Anybody), None);
    }

    #[test]
    fn most_answers_of_a_window_decide() {
        let (proxy, cache) = (TrialNotice::CdnInFront, TrialNotice::TrustedCache);
        let mut window = ProxyWindow::default();
        let mut last = |of: &dyn Fn(u32) -> Option<TrialNotice>| {
            (0..PROXY_WINDOW).find_map(|n| window.count(of(n % 4)))
        };
        assert_eq!(last(&|n| (n < 3).then_some(proxy)), Some([(proxy, true), (cache, false)]));
        assert_eq!(last(&|n| (n < 3).then_some(cache)), Some([(proxy, false), (cache, true)]));
        assert_eq!(last(&|n| (n < 2).then_some(cache)), Some([(proxy, false), (cache, false)]));
    }
}
