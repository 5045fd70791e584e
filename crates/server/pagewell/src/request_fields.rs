//! The fields of a request as the cache reads them: which of them a client may set, and which go to the origin.
//!
//! The rules, the cache key and the choice of a variant see a request only through [`AsSent`], so that no
//! field can choose a page without reaching the origin, or reach it without being part of the choice.
//! Sources: RFC 9110 section 7.6.1 (fields of a connection); RFC 3875 section 4.1.18 (names as variables).

use crate::client::Visitor;
use crate::target::Target;
use http::{HeaderMap, Method};
use http_cache::tags::internal_tag_fields;
use http_cache::{Fields, RequestFacts, fields};
use site_rules::RequestView;
use std::sync::LazyLock;

/// Request fields that only a trusted party may set, besides those of tags: they speak of the client,
/// or choose what the application answers without being part of the key.
const NOT_FROM_CLIENTS: &[&str] = &[
    "forwarded",
    "x-forwarded",
    "x-real-ip",
    "x-host",
    "x-http-host-override",
    "x-original-host",
    "x-original-uri",
    "x-original-url",
    "x-rewrite-url",
    "x-http-destinationurl",
    "x-rewrite-uri",
    "x-backend-host",
    "x-script-name",
    "x-url-scheme",
    "x-scheme",
    "x-proto",
    "x-https",
    "x-arr-ssl",
    "https",
    "front-end-https",
    "cf-visitor",
    "cloudfront-forwarded-proto",
    "client-ip",
    "x-client-ip",
    "x-cluster-client-ip",
    "x-remote-ip",
    "x-remote-addr",
    "x-originating-ip",
    "true-client-ip",
    "cf-connecting-ip",
    "cf-connecting-ipv6",
    "fastly-client-ip",
    "x-azure-clientip",
    "x-accel-mapping",
    "x-sendfile-type",
    "proxy",
    "surrogate-capability",
    "x-lscache",
    "x-litemage",
    "x-lscache-vary-value",
    "esi-referer",
    "lsc-cookie",
    "x-user-context-hash",
    "x-magento-tags-pattern",
    "cache-group-invalidation",
];

/// So begin the fields of whole families, none of which clients may set.
const NOT_FROM_CLIENTS_BEGIN: [&str; 2] = ["x-forwarded-", "x-litespeed-"];

/// Fields by which applications take one method for another. A GET that is rendered as something else
/// would be stored as the page; other methods go on as they came.
pub const METHOD_OVERRIDES: [&str; 3] =
    ["x-http-method-override", "x-http-method", "x-method-override"];

/// The names of the request fields that only a trusted party may set and that are so long, in lower case;
/// those that begin as a whole family's do come besides. By length, for a hit asks for a few names.
fn not_from_clients(length: usize) -> &'static [&'static str] {
    static ALL: LazyLock<Vec<Vec<&str>>> = LazyLock::new(|| {
        let mut by_length: Vec<Vec<&str>> = Vec::new();
        for name in NOT_FROM_CLIENTS.iter().copied().chain(internal_tag_fields()) {
            by_length.resize(by_length.len().max(name.len() + 1), Vec::new());
            by_length[name.len()].push(name);
        }
        by_length
    });
    ALL.get(length).map_or(&[], Vec::as_slice)
}

/// Whether a client may set the request field of this name (in lower case) for the application.
pub fn is_from_clients(name: &str) -> bool {
    !is_steering(name) && is_plain(name)
}

/// Whether only a trusted party may set the field of this name (in lower case).
pub fn is_steering(name: &str) -> bool {
    not_from_clients(name.len()).contains(&name)
        || NOT_FROM_CLIENTS_BEGIN.iter().any(|begin| name.starts_with(begin))
}

/// Whether all applications read the name alike: letters, digits and `-` only. In CGI's variables
/// `X_Original_URL` is `X-Original-URL`, and so is `X.Original.URL` to PHP.
pub fn is_plain(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// A request's header lines without those that do not go to the origin: what rules see, and what selects
/// a variant.
pub struct AsSent<F>(pub F);

impl<F: Fields> Fields for AsSent<F> {
    fn values<'a>(&'a self, name: &str, visit: &mut dyn FnMut(&'a [u8])) {
        if !is_from_clients(name) {
            return;
        }
        // Most are not there, so that nobody need know whether they belong to the connection.
        let mut belongs = None;
        self.0.values(name, &mut |value| {
            if !*belongs.get_or_insert_with(|| fields::is_listed(&self.0, name)) {
                visit(value);
            }
        });
    }
}

/// The same of a request whose `Connection` lists no field.
pub struct AllAsSent<F>(pub F);

impl<F: Fields> Fields for AllAsSent<F> {
    fn values<'a>(&'a self, name: &str, visit: &mut dyn FnMut(&'a [u8])) {
        if is_from_clients(name) {
            self.0.values(name, visit);
        }
    }
}

/// What the cache reads of a request.
pub fn read_facts<'a>(method: &Method, headers: &'a HeaderMap) -> RequestFacts<'a> {
    let lines = headers.iter().map(|(name, value)| (name.as_str().as_bytes(), value.as_bytes()));
    RequestFacts::read(method, lines)
}

/// A request as the rules see it.
pub fn view_of<'a>(
    target: &'a Target,
    method: &'a Method,
    fields: &'a AsSent<&'a HeaderMap>,
    visitor: &Visitor,
) -> RequestView<'a> {
    RequestView {
        method,
        scheme: target.scheme,
        host: &target.host,
        path_and_query: target.page(),
        fields,
        peer: visitor.believed,
    }
}
