//! Every key of the configuration, as data: name, default, description. The manual page
//! `docs/operating/options.md` is generated from these tables, and a test fails if it is out of
//! date. The rows about data changes are in `table_changes`, those from `[keys]` on in `table_keys`.
//!
//! Also here: how a text is written as a value. Not here: what a key means to the program (`config`), and the rows of
//! `[limits]`, which set the fields of a type (`config::table::LIMITS`).

mod table_changes;
mod table_keys;

use self::table_changes::CHANGES;
use self::table_keys::KEYS;
use std::fmt::Write as _;

/// One key outside `[limits]`.
#[derive(Clone, Copy)]
pub struct OptionRow {
    /// The key with its table, such as `site.root`.
    pub key: &'static str,
    /// The corresponding command line flag, or an empty string.
    pub flag: &'static str,
    /// The default, in words or as written in the file.
    pub default: &'static str,
    /// The description for the manual.
    pub help: &'static str,
}

type Text = &'static str;

const fn row(key: Text, flag: Text, default: Text, help: Text) -> OptionRow {
    OptionRow { key, flag, default, help }
}

/// Every key outside `[limits]`.
pub const OPTIONS: &[OptionRow] =
    &joined::<{ FIRST.len() + CHANGES.len() + REST.len() + KEYS.len() }>();

/// Concatenates the rows of all four tables.
const fn joined<const ROWS: usize>() -> [OptionRow; ROWS] {
    let mut all = [FIRST[0]; ROWS];
    let (mut part, mut at) = (0, 0);
    while part < 4 {
        let rows = [FIRST, CHANGES, REST, KEYS][part];
        let mut row = 0;
        while row < rows.len() {
            all[at] = rows[row];
            (row, at) = (row + 1, at + 1);
        }
        part += 1;
    }
    all
}

/// The rows before those of `table_changes`.
const FIRST: &[OptionRow] = &[
    row(
        "listen",
        "--listen",
        "127.0.0.1:8080",
        "Addresses for visitors' requests: `address:port` or `unix:path`; one, or a list. `:80` means every IPv4 address, `[::]:80` usually also every IPv6 address.",
    ),
    row(
        "listen_tls",
        "",
        "none",
        "Addresses for visitors' requests over TLS: `address:port` or `unix:path`; one, or a list. Requires `[acme]` or a `[[tls]]`.",
    ),
    row(
        "proxy_protocol",
        "",
        "none",
        "The addresses of `listen` and `listen_tls`, written as there, at which every connection begins with the PROXY protocol (version 1 or 2). Only `trusted_proxies` may connect there.",
    ),
    row(
        "tls.certificate",
        "",
        "none",
        "A PEM file with the certificate chain, the site's own certificate first. It is chosen by the client's host name (SNI); the first `[[tls]]` is the default. A changed file is reloaded.",
    ),
    row("tls.key", "", "none", "A PEM file with the certificate's private key."),
    row(
        "acme.email",
        "",
        "none",
        "`[acme]` turns automatic certificates on, and is the agreement to the certificate authority's terms. The address that the authority may write to.",
    ),
    row(
        "acme.directory",
        "",
        "Let's Encrypt",
        "The certificate authority: the URL of its directory (RFC 8555).",
    ),
    row(
        "acme.fallback",
        "",
        "none",
        "Further directories, each after three failed rounds of the one before; `Retry-After` counts per authority.",
    ),
    row(
        "acme.profile",
        "",
        "that of the authority",
        "A profile of the authority, such as `tlsserver` or `shortlived`.",
    ),
    row(
        "acme.eab",
        "",
        "none",
        "An account that was made outside of ACME: `{ key_id = \"…\", key_file = \"…\" }`; the file has the key in base64.",
    ),
    row(
        "acme.storage",
        "",
        "/var/lib/pagewell/acme",
        "The directory of certificates, keys and accounts; nodes may share it. Or `valkey`: the server of `[cluster]`.",
    ),
    row(
        "acme.seal_key_file",
        "",
        "none",
        "Required for `storage = \"valkey\"`: a file with 64 hexadecimal digits, the key that encrypts what is stored there. The same for all nodes.",
    ),
    row(
        "acme.copy",
        "",
        "/var/lib/pagewell/acme-copy with Valkey",
        "This node's own directory for a copy of the certificates, encrypted as in Valkey: a restart needs no storage.",
    ),
    row(
        "https_redirect",
        "",
        "none",
        "`301` or `308`: requests over plain HTTP are redirected to HTTPS with this status, except for `/.well-known/acme-challenge/`, and hosts that wait for their first certificate of `[acme]`.",
    ),
    row(
        "admin",
        "--admin",
        "127.0.0.1:8081",
        "The address of the control interface: `address:port` or `unix:path`.",
    ),
    row(
        "admin_token_file",
        "--admin-token-file",
        "none",
        "A file with the token that the control interface requires (`Authorization: Bearer …`). Required if `admin` can be reached from other machines.",
    ),
    row(
        "user",
        "",
        "the user that starts Pagewell",
        "For a start as root: the user (name or number) that Pagewell becomes after it has bound its sockets and read its certificates. The private php-fpm runs as this user too.",
    ),
    row(
        "group",
        "",
        "the group of `user`",
        "The group (name or number). Requires `user`. The user's supplementary groups apply as well.",
    ),
    row(
        "memory",
        "--memory",
        "a quarter of the machine's memory",
        "The page budget, such as `256M`: contents, header fields and index together.",
    ),
    row(
        "uploads",
        "",
        "`TMPDIR`, or `/var/tmp`, or `/tmp`",
        "The directory for temporary files: long request content until it is complete, and responses for slow clients (`limits.body_disk`, `limits.client_backlog_disk`).",
    ),
    row(
        "hits_in_front",
        "",
        "true",
        "Whether plain cache hits are answered before the HTTP library, which saves CPU.",
    ),
    row(
        "audit",
        "",
        "off",
        "The share of cache hits that are [compared with a render](../guarantees.md#audit) in the background, such as `1 in 1000`.",
    ),
    row(
        "mode",
        "--trial",
        "serve",
        "`trial`: visitors get the origin's answers only, and Pagewell [compares](../guarantees.md#audit) them with the pages that it would have sent.",
    ),
    row("trial.serve", "", "0%", "The share of client addresses that get hits during a trial."),
    row(
        "trial.budget",
        "",
        "5%",
        "The share of all origin connections' time for a trial's comparisons; by default at most a quarter of the visitors' PHP time.",
    ),
    row(
        "trial.never",
        "",
        "none",
        "Paths that trial and audit never request, as in [rules](../guide/rules.md#conditions): `/cart/**`.",
    ),
    row("trial.accept", "", "none", "Accepted differences, such as `random /news/**`."),
    row(
        "trusted_proxies",
        "",
        "none",
        "Proxies whose `X-Forwarded-For` and `X-Forwarded-Proto` are trusted: addresses, networks (`10.0.0.0/8`), and the word `unix`.",
    ),
    row(
        "connections_exempt",
        "",
        "`127.0.0.0/8` and `::1`",
        "Addresses and networks that `limits.connections_per_address` does not count, like `trusted_proxies`.",
    ),
    row(
        "purge.from",
        "",
        "`127.0.0.0/8` and `::1`",
        "Clients that may send `PURGE`, `BAN` and similar methods: addresses, networks, and the word `unix`. Requests that were forwarded for another client are rejected.",
    ),
    row(
        "purge.token_file",
        "",
        "none",
        "A file with a token of at least 16 characters. A client that sends it (`Authorization: Bearer …`, `Fastly-Key: …`) may purge from any address.",
    ),
    row(
        "purge.get_below",
        "",
        "none",
        "A path such as `/purge`: then `GET /purge/a` purges `/a`, for clients that may purge. Paths below it are no longer pages of the site.",
    ),
];

/// The rows after those of `table_changes`.
const REST: &[OptionRow] = &[
    row("rule", "", "none", "A list of tables, `[[rule]]`: see the guide to rules."),
    row(
        "error_pages",
        "",
        "none",
        "`[error_pages]`: for a status (`404`) or class (`\"5xx\"`) a file below the document root with the content of Pagewell's own error ([guide](../guide/rules.md#error-pages)).",
    ),
    row(
        "site.root",
        "DIR",
        "the working directory, or its `public`, `web`, `htdocs`, `pub` or `html`",
        "The document root.",
    ),
    row(
        "site.origin",
        "--origin",
        "none",
        "The HTTP server that renders the pages, such as `http://127.0.0.1:8000`, or a list of servers. Then Pagewell serves no files and starts no PHP.",
    ),
    row(
        "site.origin_backup",
        "",
        "none",
        "The server or servers that get requests only while none of `site.origin` can.",
    ),
    row(
        "site.origin_tls.name",
        "",
        "the host of the URL",
        "The name that the certificates of `https://` servers must have.",
    ),
    row(
        "site.origin_tls.ca_file",
        "",
        "the system's authorities",
        "A PEM file with the only certificates that may sign theirs. They are always verified.",
    ),
    row(
        "site.origin_check",
        "",
        "none",
        "A path that is requested of each server every 5 s. A server without an answer of 2xx or 3xx gets no requests until it has given two.",
    ),
    row(
        "site.front_controller",
        "",
        "index.php",
        "The script, below the root, that answers every path without a file. Its extension counts as one of `scripts`.",
    ),
    row(
        "site.scripts",
        "",
        ".php",
        "File name extensions of scripts, which are run and never sent as text. Case matters. For other languages over FastCGI: `[\".pl\", \".cgi\"]`.",
    ),
    row(
        "site.hidden",
        "",
        "see the guide to files",
        "File name patterns that are never served (`*` stands for anything). The list replaces the built-in one. PHP source and dotfiles are never served.",
    ),
    row(
        "site.allow_symlinks",
        "",
        "false",
        "Directories outside the document root into which symbolic links may lead (`[\"/usr/share/javascript\"]`), or `true` for any.",
    ),
    row(
        "site.entry_points",
        "",
        "none: every script below the root runs",
        "The scripts that run, as paths: `[\"/index.php\", \"/wp-admin/**.php\"]`. Any other script is a 404. The front controller always runs ([guide](../guide/rules.md#scripts)).",
    ),
    row(
        "site.internal_files",
        "",
        "none",
        "Directories whose files are sent if the application names them in `X-Accel-Redirect` (by the path) or `X-Sendfile`, and never otherwise: `{ \"/protected/\" = \"/srv/private\" }` ([guide](files.md#files-that-an-application-wants-sent-x-sendfile-x-accel-redirect)).",
    ),
    row(
        "site.host",
        "",
        "none: each host has pages of its own",
        "The site's canonical host. It is part of the cache key, and the origin receives it for pages.",
    ),
    row("site.aliases", "", "none", "Other hosts of the same site. They share its pages."),
    row(
        "site.other_hosts",
        "",
        "serve",
        "Requests for a host that is neither `site.host` nor an alias: `serve`, or `refuse` (421). With several sites, at most one may `serve` them, and none does by default.",
    ),
    row(
        "site.canonical_redirect",
        "",
        "none",
        "`301` or `308`: requests for an alias are redirected to `site.host` with this status, after the redirect to HTTPS.",
    ),
    row(
        "site.redirect_files",
        "",
        "none",
        "Files with redirects, one per line: old path, target, status ([guide](../guide/rules.md#redirects)). A changed file is reloaded.",
    ),
    row(
        "site.memory",
        "",
        "an equal part of what the other sites leave of `memory`",
        "The site's own page budget: a size such as `64M`, or a share such as `25%` of `memory`.",
    ),
    row("site.php", "", "the table `[php]`", "`[site.php]` replaces `[php]` for this site."),
    row(
        "site.cache",
        "",
        "the table `[cache]`",
        "`[site.cache]` replaces `[cache]` for this site.",
    ),
    row("site.keys", "", "the table `[keys]`", "`[site.keys]` replaces `[keys]` for this site."),
    row(
        "site.cookies",
        "",
        "the table `[cookies]`",
        "`[site.cookies]` replaces `[cookies]` for this site.",
    ),
    row(
        "site.rule",
        "",
        "the tables `[[rule]]`",
        "`[[site.rule]]` replaces all `[[rule]]` for this site.",
    ),
    row(
        "site.wake",
        "",
        "the tables `[[wake]]`",
        "`[[site.wake]]`: the scheduled requests of this site.",
    ),
    row(
        "site.error_pages",
        "",
        "the table `[error_pages]`",
        "`[site.error_pages]` replaces `[error_pages]` for this site.",
    ),
    row(
        "site.dialects",
        "",
        "the table `[dialects]`",
        "`[site.dialects]` replaces `[dialects]` for this site.",
    ),
    row(
        "site.database",
        "",
        "the tables `[[database]]`",
        "`[[site.database]]`: the databases of this site.",
    ),
    row(
        "site.change",
        "",
        "the tables `[[change]]`",
        "`[[site.change]]`: the change rules of this site.",
    ),
    row(
        "site.automatic",
        "",
        "the table `[automatic]`",
        "`[site.automatic]` replaces `[automatic]` for this site.",
    ),
    row(
        "site.cluster",
        "",
        "the table `[cluster]`",
        "`[site.cluster]` replaces `[cluster]` for this site.",
    ),
    row("site.mode", "", "the key `mode`", "`mode` of this site."),
    row("site.trial", "", "the table `[trial]`", "`[trial]` of this site."),
    row(
        "site.private",
        "",
        "the table `[private]`",
        "`[site.private]` replaces `[private]` for this site.",
    ),
    row(
        "php.at",
        "--php",
        "a private php-fpm",
        "A FastCGI server that is already running: `unix:/run/php/php8.2-fpm.sock` or `127.0.0.1:9000`.",
    ),
    row(
        "php.binary",
        "",
        "`php-fpm`, or the newest `php-fpmN.N` in the path",
        "The php-fpm program to start.",
    ),
    row(
        "php.children",
        "",
        "by cores and memory",
        "The number of php-fpm children, and so of concurrent PHP requests.",
    ),
    row("php.user", "", "www-data", "The user of php-fpm's children if root starts Pagewell."),
    row("php.env", "--php-env", "none", "A table of environment variables for the scripts."),
    row(
        "php.ini",
        "",
        "none",
        "A table of php.ini settings for the scripts: strings, numbers, `true` or `false`.",
    ),
    row(
        "cache.request_directives",
        "",
        "ignore",
        "The effect of `Cache-Control` in a visitor's request: `ignore`, or `honour` to let a browser's reload cause an origin request.",
    ),
    row(
        "cache.default_lifetime",
        "",
        "none",
        "The TTL of a response without caching headers, such as `1s`. Without this option such a response is not stored.",
    ),
    row(
        "cache.heuristic_percent",
        "",
        "0",
        "The TTL of a response with `Last-Modified` and without a TTL, in percent of the time since the last modification. 0 turns it off; RFC 9111 suggests 10.",
    ),
    row("cache.heuristic_max", "", "10m", "The longest heuristic TTL."),
    row(
        "cache.stale_while_revalidate",
        "",
        "0s",
        "How long a page may be served stale while it is refreshed, if the page does not specify it.",
    ),
    row(
        "cache.stale_if_error",
        "",
        "1h if the origin cannot be reached, else 0s",
        "How long a page may be served stale when the origin fails, if the page does not specify it; 0s turns it off.",
    ),
    row(
        "cache.soft_for",
        "",
        "0s",
        "How long a page that a soft purge has marked may be served while it is refreshed, unless it has `no-cache` or `must-revalidate`.",
    ),
    row(
        "cache.inactive",
        "",
        "none",
        "How long a page may be unused before it is removed, such as `2h`; at least one minute. Without it, or with `0s`, pages stay until their space is needed.",
    ),
    row(
        "cache.server_timing",
        "",
        "false",
        "Whether a response from the origin carries `Server-Timing` with the origin's time in milliseconds.",
    ),
    row(
        "cache.esi",
        "",
        "false",
        "Whether a response with `Surrogate-Control: content=\"ESI/1.0\"` is assembled from ESI fragments. The origin receives `Surrogate-Capability`.",
    ),
];

/// A text as a value of the configuration: a basic string of TOML, on one line.
pub fn toml_string(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(quoted, "\\u{:04X}", u32::from(c));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::toml_string;

    #[test]
    fn quotes_backslashes_and_controls_are_escaped() {
        assert_eq!(toml_string("a b"), "\"a b\"");
        assert_eq!(toml_string("^/a\\.\"$"), "\"^/a\\\\.\\\"$\"");
        assert_eq!(toml_string("a\nb\u{7f}"), "\"a\\u000Ab\\u007F\"");
    }
}
