//! Every key of the configuration, as data: name, default, what it does. The manual page
//! `docs/operating/options.md` is made from these tables, and a test fails when it is out of date.
//!
//! Limits are rows that also know how to set themselves: a new limit is one row here and one field
//! in [`Limits`].

use super::Limits;
use super::units::{parse_bytes, parse_duration};

/// One key outside `[limits]`.
pub struct OptionRow {
    /// The key, with its table: `site.root`.
    pub key: &'static str,
    /// The flag that is its short form, if it has one.
    pub flag: &'static str,
    /// What holds when it is not given, in words or as written.
    pub default: &'static str,
    /// What it does.
    pub help: &'static str,
}

const fn row(
    key: &'static str,
    flag: &'static str,
    default: &'static str,
    help: &'static str,
) -> OptionRow {
    OptionRow { key, flag, default, help }
}

/// Every key outside `[limits]`.
pub const OPTIONS: &[OptionRow] = &[
    row(
        "listen",
        "--listen",
        "127.0.0.1:8080",
        "Where visitors are served: `address:port` or `unix:path`; one, or a list.",
    ),
    row(
        "listen_tls",
        "",
        "none",
        "Where visitors are served over TLS: `address:port` or `unix:path`; one, or a list. Needs a `[[tls]]`.",
    ),
    row(
        "tls.certificate",
        "",
        "none",
        "In `[[tls]]`, as often as there are certificates: a PEM file with the chain, the site's own certificate first. Found by the names in it; the first one is for whoever names no other. Read again when it changes.",
    ),
    row("tls.key", "", "none", "In `[[tls]]`: a PEM file with the certificate's private key."),
    row(
        "https_redirect",
        "",
        "none",
        "`301` or `308`: visitors in the clear are sent to HTTPS with this status, except for `/.well-known/acme-challenge/`.",
    ),
    row(
        "admin",
        "--admin",
        "127.0.0.1:8081",
        "Where the control interface is: `address:port` or `unix:path`.",
    ),
    row(
        "admin_token_file",
        "",
        "none",
        "A file with the token that the control interface asks for (`Authorization: Bearer …`). Needed when `admin` can be reached from other machines.",
    ),
    row(
        "memory",
        "--memory",
        "a quarter of the machine's memory",
        "The page budget: contents, headers and index together, such as `256M`.",
    ),
    row(
        "hits_in_front",
        "",
        "true",
        "Whether plain hits over HTTP/1.1 are answered in front of the HTTP library, which is cheaper. Nothing else differs; turn it off to compare.",
    ),
    row(
        "trusted_proxies",
        "",
        "none",
        "Addresses, networks such as `10.0.0.0/8`, and the word `unix`: whose `X-Forwarded-For` and `X-Forwarded-Proto` are believed.",
    ),
    row("rule", "", "none", "A list of tables, `[[rule]]`: see the guide to rules."),
    row(
        "site.root",
        "DIR",
        "the working directory, or its `public`, `web`, `htdocs` or `pub`",
        "The document root.",
    ),
    row(
        "site.origin",
        "--origin",
        "none",
        "An HTTP server that renders the pages, such as `http://127.0.0.1:8000`; then no files are served and no PHP is started.",
    ),
    row(
        "site.front_controller",
        "",
        "index.php",
        "The script, below the root, that answers every path that is no file.",
    ),
    row(
        "site.hidden",
        "",
        "see the guide to files",
        "File name patterns that are never served (`*` stands for anything); replaces the list that is built in. PHP source and dotfiles are never served, whatever stands here.",
    ),
    row(
        "site.allow_symlinks",
        "",
        "false",
        "Whether symbolic links may lead out of the document root.",
    ),
    row(
        "site.host",
        "",
        "none: each host has pages of its own",
        "The site's own host: it stands in the key, and goes to the origin for pages.",
    ),
    row("site.aliases", "", "none", "Other hosts that are the same site: they share its pages."),
    row(
        "site.other_hosts",
        "",
        "serve",
        "What becomes of requests for a host that is neither `site.host` nor an alias: `serve`, or `refuse` (421). Of several sites one may `serve` them, and none does unless told to.",
    ),
    row(
        "site.memory",
        "",
        "what the others leave of `memory`, in equal parts",
        "The site's own page budget: a size such as `64M`, or a share such as `25%` of `memory`.",
    ),
    row("site.php", "", "the table `[php]`", "`[site.php]`: the site's own, in place of `[php]`."),
    row(
        "site.cache",
        "",
        "the table `[cache]`",
        "`[site.cache]`: the site's own, in place of `[cache]`.",
    ),
    row(
        "site.keys",
        "",
        "the table `[keys]`",
        "`[site.keys]`: the site's own, in place of `[keys]`.",
    ),
    row(
        "site.cookies",
        "",
        "the table `[cookies]`",
        "`[site.cookies]`: the site's own, in place of `[cookies]`.",
    ),
    row(
        "site.rule",
        "",
        "the tables `[[rule]]`",
        "`[[site.rule]]`: the site's own, in place of all `[[rule]]`.",
    ),
    row(
        "php.at",
        "--php",
        "a private php-fpm",
        "A FastCGI responder that is already running: `unix:/run/php/php8.2-fpm.sock` or `127.0.0.1:9000`.",
    ),
    row(
        "php.binary",
        "",
        "`php-fpm`, or the newest `php-fpmN.N` in the path",
        "The php-fpm program to start.",
    ),
    row("php.children", "", "by cores and memory", "How many php-fpm children render at most."),
    row(
        "php.user",
        "",
        "www-data",
        "Whom php-fpm's children run as when Pagewell was started by root.",
    ),
    row("php.env", "--php-env", "none", "A table of environment variables for the scripts."),
    row("php.ini", "", "none", "A table of php.ini settings for the scripts."),
    row(
        "cache.request_directives",
        "",
        "ignore",
        "What a visitor's own `Cache-Control` may do: `ignore`, or `honour` to let a reload wake PHP.",
    ),
    row(
        "cache.default_lifetime",
        "",
        "none",
        "How long a response is good that declares nothing, such as `1s`. Without it such a response is not stored.",
    ),
    row(
        "cache.heuristic_percent",
        "",
        "10",
        "For a response with `Last-Modified` and no declared lifetime: how much of its age it is good for, in per cent; 0 turns it off.",
    ),
    row("cache.heuristic_max", "", "10m", "The longest lifetime that is found by this estimate."),
    row(
        "cache.stale_while_revalidate",
        "",
        "0s",
        "How long a page may be served stale while it is rendered anew, when it does not say so itself.",
    ),
    row(
        "cache.stale_if_error",
        "",
        "0s",
        "How long a page may be served stale when the origin fails, when it does not say so itself.",
    ),
    row(
        "keys.drop",
        "",
        "the list in the guide to rules",
        "Query parameters (`*` stands for anything) that are not part of the key nor sent to the origin; replaces the list that is built in.",
    ),
    row("keys.drop_also", "", "none", "Query parameters that are dropped besides."),
    row("keys.keep", "", "none", "Query parameters that are not dropped, whatever the lists say."),
    row("keys.sort", "", "true", "Whether the order of query parameters is left out of the key."),
    row("keys.lower_case", "", "false", "Whether paths are the same in capital and small letters."),
    row(
        "keys.trailing_slash",
        "",
        "keep",
        "The slash at the end of a path: `keep`, or always `add` or `remove` it. Choose the form that the application itself redirects to.",
    ),
    row(
        "keys.index",
        "",
        "none",
        "Names of index files that are left out at the end of a path, such as `index.php`.",
    ),
    row(
        "cookies.ignore",
        "",
        "none",
        "Cookies that only scripts read, besides those that are known; `*` stands for anything.",
    ),
    row(
        "cookies.session",
        "",
        "none",
        "Cookies of sessions and logins, besides those that are known; `*` stands for anything.",
    ),
    row(
        "cookies.unknown",
        "",
        "declared",
        "What a cookie on no list means: `declared` (its request gets pages whose lifetime the application declares), `ignore`, or `bypass`.",
    ),
    row(
        "cookies.secret_file",
        "",
        "random, anew with each start",
        "A file with at least 32 random characters, by which visitors who have just written are marked; the same on all machines of a site.",
    ),
    row(
        "codings.make",
        "",
        "[\"br\", \"zstd\", \"gzip\"]",
        "The content codings that pages and files are kept in, of each the smallest that a visitor accepts being sent. An empty list turns coding off: then `Accept-Encoding` goes to the origin.",
    ),
    row(
        "codings.types",
        "",
        "text, scripts, JSON, XML, SVG and the like",
        "Media types that are worth it, such as `text/*`, or `!text/event-stream` for one that is not; the first pattern that fits counts. Replaces the list that is built in.",
    ),
    row("codings.min_bytes", "", "256", "Content shorter than this is sent as it is."),
    row(
        "codings.on_the_way",
        "",
        "true",
        "Whether content that is not kept in a coding, such as pages for signed-in visitors, is compressed (gzip) while it is sent.",
    ),
    row(
        "codings.files_beside",
        "",
        "false",
        "Whether a file's compressed form is taken from beside it (`app.js.br`, `.zst`, `.gz`) where it is not older than the file.",
    ),
];

/// One bound.
pub struct LimitRow {
    /// The key in `[limits]`.
    pub key: &'static str,
    /// Its default, as it would be written.
    pub default: &'static str,
    /// What it bounds, and what happens there.
    pub help: &'static str,
    /// Reads a value and sets it.
    pub set: fn(&mut Limits, &str) -> Result<(), String>,
}

fn count(text: &str) -> Result<usize, String> {
    text.parse().map_err(|_| format!("{text:?} is no whole number"))
}

fn bytes(text: &str) -> Result<usize, String> {
    parse_bytes(text).and_then(|n| usize::try_from(n).map_err(|e| e.to_string()))
}

macro_rules! limit {
    ($field:ident, $default:literal, $read:ident, $help:literal) => {
        LimitRow {
            key: stringify!($field),
            default: $default,
            help: $help,
            set: |limits, text| {
                limits.$field = $read(text)?;
                Ok(())
            },
        }
    };
}

/// Every bound.
pub const LIMITS: &[LimitRow] = &[
    limit!(
        header_bytes,
        "32K",
        bytes,
        "A request's header section with its request line; beyond: 431."
    ),
    limit!(headers, "100", count, "Header lines of a request; beyond: 431."),
    limit!(uri_bytes, "8K", bytes, "A request target; beyond: 414."),
    limit!(body_bytes, "64M", parse_bytes, "A request's content; beyond: 413."),
    limit!(
        connections,
        "16384",
        count,
        "Connections at once; further ones wait in the kernel's queue."
    ),
    limit!(
        header_timeout,
        "10s",
        parse_duration,
        "From a request's first byte to the end of its header section; beyond: 408."
    ),
    limit!(
        idle_timeout,
        "60s",
        parse_duration,
        "Between two requests of a connection; then it is closed."
    ),
    limit!(
        body_timeout,
        "30s",
        parse_duration,
        "Between two pieces of a request's content; beyond: 408."
    ),
    limit!(
        write_timeout,
        "60s",
        parse_duration,
        "How long a client may take nothing of its response; then the connection is closed."
    ),
    limit!(origin_connect_timeout, "5s", parse_duration, "To reach the origin; beyond: 504."),
    limit!(
        origin_timeout,
        "60s",
        parse_duration,
        "From the end of the request to the origin's header section, and between two pieces after it; beyond: 504."
    ),
    limit!(
        origin_connections,
        "64",
        count,
        "Requests at the origin at once; never more than php-fpm's children when it is our own."
    ),
    limit!(
        origin_idle_connections,
        "0",
        count,
        "Connections kept to a running FastCGI responder without work: each holds one of its workers. Our own php-fpm keeps all."
    ),
    limit!(
        origin_queue,
        "1024",
        count,
        "Requests that wait for a place at the origin; beyond: 503."
    ),
    limit!(
        origin_queue_timeout,
        "10s",
        parse_duration,
        "How long a request waits for a place at the origin; beyond: 503."
    ),
    limit!(
        origin_header_bytes,
        "256K",
        bytes,
        "The header section of the origin's response; beyond: 502."
    ),
    limit!(page_bytes, "8M", bytes, "A page's content; a longer one is passed on and not stored."),
    limit!(
        followers,
        "10000",
        count,
        "Requests that wait for one render; further ones are rendered by themselves."
    ),
    limit!(
        coding_queue,
        "4096",
        count,
        "Pages and files that wait for their codings to be made; further ones are sent as they are until they are rendered anew."
    ),
    limit!(
        solo,
        "10s",
        parse_duration,
        "How long requests for a page that could not be stored are not made to wait for each other."
    ),
    limit!(
        drain,
        "10s",
        parse_duration,
        "From the order to stop until the connections that are left are cut."
    ),
    limit!(
        handshake_timeout,
        "10s",
        parse_duration,
        "From a connection to the end of its TLS handshake; then it is closed."
    ),
    limit!(
        certificate_look,
        "5s",
        parse_duration,
        "How often it is looked whether the files of a certificate have changed."
    ),
    limit!(
        upgrades,
        "1024",
        count,
        "Connections at once that have changed to another protocol, such as WebSocket; beyond: 503."
    ),
    limit!(
        upgrade_idle_timeout,
        "1h",
        parse_duration,
        "How long nothing may be said on a connection that has changed to another protocol; then it is closed."
    ),
    limit!(
        http2_streams,
        "128",
        count,
        "Requests at once on a connection of HTTP/2; further ones are refused to be asked again."
    ),
    limit!(
        http2_resets,
        "64",
        count,
        "Requests that a client of HTTP/2 takes back before they were looked at; beyond: the connection is closed."
    ),
];

impl Default for Limits {
    fn default() -> Limits {
        let zero = std::time::Duration::ZERO;
        let mut limits = Limits {
            header_bytes: 0,
            headers: 0,
            uri_bytes: 0,
            body_bytes: 0,
            connections: 0,
            header_timeout: zero,
            idle_timeout: zero,
            body_timeout: zero,
            write_timeout: zero,
            origin_connect_timeout: zero,
            origin_timeout: zero,
            origin_connections: 0,
            origin_idle_connections: 0,
            origin_queue: 0,
            origin_queue_timeout: zero,
            origin_header_bytes: 0,
            page_bytes: 0,
            followers: 0,
            coding_queue: 0,
            solo: zero,
            drain: zero,
            handshake_timeout: zero,
            certificate_look: zero,
            upgrades: 0,
            upgrade_idle_timeout: zero,
            http2_streams: 0,
            http2_resets: 0,
        };
        for row in LIMITS {
            (row.set)(&mut limits, row.default).expect("the table's defaults are tested");
        }
        limits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_can_be_read_and_none_is_left_out() {
        let limits = format!("{:?}", Limits::default());
        for row in LIMITS {
            assert!(limits.contains(row.key), "{} is no field", row.key);
        }
        assert_eq!(limits.matches(": ").count(), LIMITS.len(), "a field without a row: {limits}");
    }

    #[test]
    fn every_option_is_a_key_of_the_file() {
        for row in OPTIONS {
            let value = match row.key {
                "site.hidden" | "codings.make" | "codings.types" => "[\"*.x\"]",
                "site.allow_symlinks"
                | "hits_in_front"
                | "keys.sort"
                | "keys.lower_case"
                | "codings.on_the_way"
                | "codings.files_beside" => "true",
                "site.aliases" | "trusted_proxies" | "keys.drop" | "keys.drop_also"
                | "keys.keep" | "keys.index" | "cookies.ignore" | "cookies.session" => "[\"x\"]",
                "site.php" | "site.cache" | "site.keys" | "site.cookies" => "{}",
                "rule" | "site.rule" => "[{ path = \"/x\" }]",
                "php.children" | "cache.heuristic_percent" | "codings.min_bytes" => "5",
                "https_redirect" => "308",
                "php.env" | "php.ini" => "{ a = \"b\" }",
                _ => "\"x\"",
            };
            let text = match row.key.split_once('.') {
                Some(("tls", _)) => "[[tls]]\ncertificate = \"x\"\nkey = \"y\"\n".to_owned(),
                Some((table, key)) => format!("[{table}]\n{key} = {value}\n"),
                None => format!("{} = {value}\n", row.key),
            };
            assert!(toml::from_str::<super::super::raw::File>(&text).is_ok(), "{text}");
        }
    }
}
