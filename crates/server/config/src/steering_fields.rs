//! Request fields that clients may not set for the application, by name: those that name the client or its
//! connection, and those by which an application chooses its response without their being part of the cache
//! key. They are removed from requests, and the configuration refuses them as fields that pages depend on.
//! So is every name that applications do not all read alike (RFC 3875 section 4.1.18).

use http_cache::tags::internal_tag_fields;
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

/// The names of the request fields that only a trusted party may set and that are so long, in lower case;
/// those that begin as a whole family's do come besides. By length, for a hit asks for a few names.
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

/// Whether all applications read the name alike: letters, digits and `-` only. In CGI's variables
/// `X_Original_URL` is `X-Original-URL`, and so is `X.Original.URL` to PHP.
#[inline]
pub fn is_plain(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}
