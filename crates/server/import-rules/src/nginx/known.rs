//! Directives of nginx that need no translation, or have none, with the reason.
//!
//! Not here: directives with a counterpart, which have modules of their own.

use super::access::denial_status;
use crate::nginx::syntax::is_built_in;
use crate::report::Judgements;
use crate::source::Directive;

/// Directives that Pagewell does without configuration.
const BUILT_IN: [&str; 46] = [
    "index",
    "include",
    "charset",
    "default_type",
    "types",
    "gzip",
    "gzip_comp_level",
    "gzip_min_length",
    "gzip_proxied",
    "gzip_types",
    "gzip_vary",
    "gzip_static",
    "gzip_disable",
    "gzip_buffers",
    "gzip_http_version",
    "brotli",
    "brotli_comp_level",
    "brotli_types",
    "brotli_static",
    "brotli_min_length",
    "etag",
    "if_modified_since",
    "http2",
    "keepalive_timeout",
    "fastcgi_split_path_info",
    "fastcgi_index",
    "fastcgi_keep_conn",
    "fastcgi_intercept_errors",
    "fastcgi_buffers",
    "fastcgi_buffer_size",
    "fastcgi_busy_buffers_size",
    "merge_slashes",
    "server_tokens",
    "ssl_protocols",
    "ssl_ciphers",
    "ssl_prefer_server_ciphers",
    "ssl_session_cache",
    "ssl_session_timeout",
    "ssl_session_tickets",
    "ssl_ecdh_curve",
    "fastcgi_pass_header",
    "events",
    "proxy_http_version",
    "proxy_set_header",
    "charset_types",
    "disable_symlinks",
];

/// Directives for which Pagewell has no use.
const NOT_NEEDED: [&str; 46] = [
    "access_log",
    "error_log",
    "log_not_found",
    "log_format",
    "log_subrequest",
    "sendfile",
    "tcp_nopush",
    "tcp_nodelay",
    "aio",
    "directio",
    "open_file_cache",
    "open_file_cache_valid",
    "open_file_cache_min_uses",
    "open_file_cache_errors",
    "worker_processes",
    "worker_connections",
    "worker_rlimit_nofile",
    "pid",
    "user",
    "multi_accept",
    "use",
    "types_hash_max_size",
    "types_hash_bucket_size",
    "server_names_hash_bucket_size",
    "server_names_hash_max_size",
    "variables_hash_max_size",
    "map_hash_max_size",
    "map_hash_bucket_size",
    "reset_timedout_connection",
    "fastcgi_ignore_client_abort",
    "fastcgi_request_buffering",
    "fastcgi_max_temp_file_size",
    "fastcgi_temp_file_write_size",
    "client_body_buffer_size",
    "client_header_buffer_size",
    "large_client_header_buffers",
    "output_buffers",
    "ssl_stapling",
    "ssl_stapling_verify",
    "ssl_trusted_certificate",
    "ssl_dhparam",
    "resolver",
    "resolver_timeout",
    "recursive_error_pages",
    "port_in_redirect",
    "server_name_in_redirect",
];

/// Directives about nginx's own cache.
const CACHE: [&str; 15] = [
    "fastcgi_cache",
    "fastcgi_cache_path",
    "fastcgi_cache_key",
    "fastcgi_cache_valid",
    "fastcgi_cache_bypass",
    "fastcgi_no_cache",
    "fastcgi_cache_use_stale",
    "fastcgi_cache_lock",
    "fastcgi_cache_background_update",
    "fastcgi_cache_revalidate",
    "fastcgi_cache_min_uses",
    "fastcgi_ignore_headers",
    "fastcgi_cache_purge",
    "fastcgi_cache_methods",
    "fastcgi_cache_lock_timeout",
];

/// Directives with a reason of their own.
const REFUSED: [(&str, &str); 14] = [
    (
        "fastcgi_param",
        "PHP gets the usual parameters; set others in the pool of php-fpm: env[NAME]",
    ),
    ("sub_filter", "Pagewell does not change contents"),
    ("auth_request", "no subrequests"),
    ("limit_conn", "limits.connections_per_address limits the connections of an address"),
    ("limit_conn_zone", "limits.connections_per_address limits the connections of an address"),
    ("limit_rate", "no limit of the rate of a response"),
    ("autoindex", "Pagewell lists no directories"),
    ("proxy_pass", "one site has one origin"),
    ("uwsgi_pass", "FastCGI or HTTP only"),
    ("mp4", "no streaming of MP4"),
    ("client_body_timeout", "limits.body_timeout"),
    ("geoip_country", "no GeoIP: a proxy in front may send the country"),
    ("dav_methods", "no WebDAV"),
    ("secure_link", "no signed links"),
];

/// Whether a directive stands outside of server blocks.
pub(super) fn is_global(name: &str) -> bool {
    matches!(
        name,
        "map"
            | "upstream"
            | "limit_req_zone"
            | "limit_conn_zone"
            | "fastcgi_cache_path"
            | "log_format"
            | "events"
            | "geo"
    )
}

/// Begins of the names of directives that restrict: modules for passwords, limits, and web application firewalls.
const RESTRICTING: [&str; 7] =
    ["auth", "limit_", "access_by_", "rewrite_by_", "modsecurity", "secrule", "naxsi"];

/// Directives that begin so, and only say how a restriction is counted or shown, or slow down.
const NO_RESTRICTION: [&str; 9] = [
    "limit_rate",
    "limit_rate_after",
    "limit_conn_zone",
    "limit_conn_status",
    "limit_conn_log_level",
    "limit_req_zone",
    "limit_req_status",
    "limit_req_log_level",
    "limit_zone",
];

/// Whether a directive restricts requests.
pub(super) fn restricts(one: &Directive) -> bool {
    let name = one.name.as_str();
    let is_off = one.word(0).eq_ignore_ascii_case("off");
    let begins = || RESTRICTING.iter().any(|begin| name.to_ascii_lowercase().starts_with(begin));
    match name {
        "deny" | "allow" | "satisfy" | "internal" | "secure_link" | "valid_referers" => true,
        "ssl_verify_client" | "auth_request" | "auth_jwt" => !is_off,
        "return" => denial_status(one.word(0)).is_some(),
        _ => begins() && !is_off && !NO_RESTRICTION.contains(&name),
    }
}

/// Judges a directive that has no translation. One that is unknown is left for the end.
pub(super) fn judge(judgements: &mut Judgements, of: &Directive) {
    let name = of.name.as_str();
    if name == "include" && !is_built_in(of) {
        let why = of.words.get(1).map_or("it was not read", String::as_str);
        judgements.lost_restriction(of, &format!("{why}; it may restrict requests"));
    } else if BUILT_IN.contains(&name) {
        judgements.built_in(of);
        for inner in of.inner() {
            judgements.built_in(inner);
        }
    } else if NOT_NEEDED.contains(&name) {
        judgements.not_needed(of);
    } else if CACHE.contains(&name) {
        let why = match name.rsplit_once("_cache_").map(|(_, what)| what) {
            Some("valid") => "pages without Cache-Control or tags need a rule with store",
            Some("purge") => "PURGE is built in; for purges by GET, set purge.get_below",
            _ => "Pagewell caches the pages itself",
        };
        judgements.not_needed_because(of, why);
    } else if let Some((_, why)) = REFUSED.iter().find(|(known, _)| *known == name) {
        if restricts(of) {
            judgements.lost_restriction(of, why);
        } else {
            judgements.not_translated(of, why);
        }
    }
}
