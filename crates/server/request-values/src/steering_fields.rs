//! Request fields that clients may not set for the application, by name. They identify the client
//! or its connection, or select the application's response without being part of the cache key.
//! They are removed from requests, and the configuration refuses them as fields on which pages
//! depend. The same applies to every name that applications interpret differently (RFC 3875 section
//! 4.1.18).

use http_cache::tags::internal_tag_fields;
use std::sync::LazyLock;

/// Request fields that only a trusted party may set, in addition to those of tags. They describe
/// the client, or select the application's response without being part of the key.
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
    "pagewell-reference",
];

/// The prefixes of further fields that clients may not set.
const NOT_FROM_CLIENTS_BEGIN: [&str; 2] = ["x-forwarded-", "x-litespeed-"];

/// Returns the names of this length, in lower case, that only a trusted party may set, without
/// those of a prefix. The list is indexed by length, because every hit looks up a few names.
#[inline]
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
#[inline]
pub fn is_from_clients(name: &str) -> bool {
    !is_steering(name) && is_plain(name)
}

/// Whether only a trusted party may set the field of this name (in lower case).
#[inline]
pub fn is_steering(name: &str) -> bool {
    not_from_clients(name.len()).contains(&name)
        || NOT_FROM_CLIENTS_BEGIN.iter().any(|begin| name.starts_with(begin))
}

/// Whether all applications interpret the name alike: letters, digits and `-` only. In CGI's
/// variables, `X_Original_URL` is the same as `X-Original-URL`. To PHP, so is `X.Original.URL`.
#[inline]
pub fn is_plain(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}
