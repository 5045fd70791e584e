//! Every key of the configuration, as data: name, default, description. The manual page
//! `docs/operating/options.md` is generated from these tables, and a test fails if it is out of
//! date. The rows of `[limits]` are in `table_limits`, those about data changes in `table_changes`.

use super::table_changes::CHANGES;
pub use super::table_limits::{LIMITS, LimitRow};

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

pub(super) type Text = &'static str;

pub(super) const fn row(key: Text, flag: Text, default: Text, help: Text) -> OptionRow {
    OptionRow { key, flag, default, help }
}

/// Every key outside `[limits]`.
pub const OPTIONS: &[OptionRow] = &joined::<{ FIRST.len() + CHANGES.len() + REST.len() }>();

/// Concatenates the rows of all three tables.
const fn joined<const ROWS: usize>() -> [OptionRow; ROWS] {
    let mut all = [FIRST[0]; ROWS];
    let (mut part, mut at) = (0, 0);
    while part < 3 {
        let rows = [FIRST, CHANGES, REST][part];
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
        "Addresses for visitors' requests: `address:port` or `unix:path`; one, or a list. `:80` means every IPv4 address. `[::]:80` means every IPv6 address and, with the usual system settings, every IPv4 address too.",
    ),
    row(
        "listen_tls",
        "",
        "none",
        "Addresses for visitors' requests over TLS: `address:port` or `unix:path`; one, or a list. Requires a `[[tls]]`.",
    ),
    row(
        "proxy_protocol",
        "",
        "none",
        "The addresses of `listen` and `listen_tls`, written as there, at which every connection begins with the PROXY protocol (version 1 or 2): one, or a list. Only `trusted_proxies` may connect there.",
    ),
    row(
        "tls.certificate",
        "",
        "none",
        "A PEM file with the certificate chain, the site's own certificate first. Write one `[[tls]]` for each certificate. The certificate is chosen by the host name that the client sends (SNI). The first one is used for clients that send no name or an unknown one. The file is reloaded when it changes.",
    ),
    row("tls.key", "", "none", "A PEM file with the certificate's private key."),
    row(
        "https_redirect",
        "",
        "none",
        "`301` or `308`: requests over plain HTTP are redirected to HTTPS with this status, except for `/.well-known/acme-challenge/`.",
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
        "For a start as root: the user that Pagewell becomes after it has bound its sockets and read its certificates. A name in `/etc/passwd`, or a number. The private php-fpm runs as this user too. Pagewell started as this user stays this user.",
    ),
    row(
        "group",
        "",
        "the group of `user`",
        "The group, by its name in `/etc/group` or its number. Requires `user`. The supplementary groups of the user apply as well.",
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
        "The directory for temporary files without a name. Request content longer than `limits.body_ahead` waits there until it is complete; responses wait there for slow clients. The directory must exist, and Pagewell must be able to create files in it. `limits.body_disk` and `limits.client_backlog_disk` bound the space.",
    ),
    row(
        "hits_in_front",
        "",
        "true",
        "Whether plain cache hits are answered before the HTTP library, which uses less CPU. Nothing else differs; turn it off to compare.",
    ),
    row(
        "trusted_proxies",
        "",
        "none",
        "Proxies whose `X-Forwarded-For` and `X-Forwarded-Proto` are trusted: addresses, networks such as `10.0.0.0/8`, and the word `unix`.",
    ),
    row(
        "connections_exempt",
        "",
        "`127.0.0.0/8` and `::1`",
        "Addresses and networks whose connections `limits.connections_per_address` does not count. Connections of `trusted_proxies` are not counted either.",
    ),
    row(
        "purge.from",
        "",
        "`127.0.0.0/8` and `::1`",
        "Clients that may send `PURGE`, `BAN` and similar methods: addresses, networks, and the word `unix`. A request that was forwarded for another client is rejected. An empty list permits no client by its address.",
    ),
    row(
        "purge.token_file",
        "",
        "none",
        "A file with a token of at least 16 characters. A client that sends it (`Authorization: Bearer …` or `Fastly-Key: …`) may purge from any address.",
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
        "site.root",
        "DIR",
        "the working directory, or its `public`, `web`, `htdocs` or `pub`",
        "The document root.",
    ),
    row(
        "site.origin",
        "--origin",
        "none",
        "An HTTP server that renders the pages, such as `http://127.0.0.1:8000`. Then Pagewell serves no files and starts no PHP.",
    ),
    row(
        "site.front_controller",
        "",
        "index.php",
        "The script, below the root, that answers every path for which there is no file. It must exist. Its file name extension counts as one of `scripts`.",
    ),
    row(
        "site.scripts",
        "",
        ".php",
        "File name extensions of scripts, one or a list. Such files are run by PHP or another FastCGI program, and their text is never served. Upper and lower case differ: `old.PHP` is run only if `.PHP` is in the list, and is never served. For other languages over FastCGI: `[\".pl\", \".cgi\"]`.",
    ),
    row(
        "site.hidden",
        "",
        "see the guide to files",
        "File name patterns that are never served (`*` stands for anything). The list replaces the built-in one. PHP source and dotfiles are never served, whatever this list contains.",
    ),
    row(
        "site.allow_symlinks",
        "",
        "false",
        "Directories outside the document root into which symbolic links may lead: a list (`[\"/usr/share/javascript\"]`), or `true` for any directory. Hidden names, dotfiles and source are never served through a link.",
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
        "The treatment of requests for a host that is neither `site.host` nor an alias: `serve`, or `refuse` (421). With several sites, at most one may `serve` them, and none does by default.",
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
        "The address of a FastCGI server that is already running: `unix:/run/php/php8.2-fpm.sock` or `127.0.0.1:9000`.",
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
        "Heuristic freshness, for a response with `Last-Modified` and without a declared TTL: the TTL is this percentage of the time since the last modification. 0 turns it off; RFC 9111 suggests 10. A response that the application has replaced can be served until this TTL is over.",
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
        "How long a page that a soft purge has marked may be served while it is refreshed. The page's own `stale-while-revalidate` applies as well; `no-cache` and `must-revalidate` forbid it.",
    ),
    row("cache.inactive", "", "none", super::inactive::HELP),
    row(
        "cache.server_timing",
        "",
        "false",
        "Whether a response from the origin carries `Server-Timing` with the time, in milliseconds, until the origin's header section arrived.",
    ),
    row(
        "cache.esi",
        "",
        "false",
        "Whether pages are assembled from ESI fragments if the application asks for it. The origin receives `Surrogate-Capability`; a response with `Surrogate-Control: content=\"ESI/1.0\"` is a template.",
    ),
    row(
        "keys.drop",
        "",
        "the list in the guide to the cache key",
        "Query parameters (`*` stands for anything) that are neither part of the cache key nor sent to the origin. The list replaces the built-in one.",
    ),
    row("keys.drop_also", "", "none", "Query parameters to drop in addition to that list."),
    row(
        "keys.keep",
        "",
        "none",
        "Query parameters that are never dropped, and never count as personal data, whatever the lists contain.",
    ),
    row(
        "keys.sort",
        "",
        "true",
        "Whether the order of query parameters is ignored in the cache key.",
    ),
    row(
        "keys.lower_case",
        "",
        "false",
        "Whether upper and lower case in paths mean the same page.",
    ),
    row(
        "keys.trailing_slash",
        "",
        "keep",
        "The slash at the end of a path: `keep` it, or always `add` or `remove` it. Choose the form to which the application itself redirects.",
    ),
    row(
        "keys.index",
        "",
        "none",
        "Names of index files, such as `index.php`, that are left out at the end of a path.",
    ),
    row(
        "keys.fields",
        "",
        "none",
        "Request header fields that the application reads but does not name in `Vary`, such as `CF-IPCountry`. Their values are part of the cache key, and the origin receives them for pages that are cached. At most 256 bytes each.",
    ),
    row(
        "keys.harmless_fields",
        "",
        "none",
        "Request header fields on which no page depends, such as `X-Company-Proxy` of a proxy in front; `*` stands for anything. The origin receives them, and the response is stored for everybody. The response to a request with any other field of its own is for its client only, unless `Vary` names the field.",
    ),
    row(
        "cookies.ignore",
        "",
        "none",
        "Cookies that only scripts in the browser read, in addition to the known ones; `*` stands for anything.",
    ),
    row(
        "cookies.session",
        "",
        "none",
        "Cookies of sessions and logins, in addition to the known ones; `*` stands for anything.",
    ),
    row(
        "cookies.unknown",
        "",
        "declared",
        "The treatment of a cookie that is on no list: `declared` (its request gets only pages whose TTL the application declares), `ignore`, or `bypass`.",
    ),
    row(
        "cookies.secret_file",
        "",
        "random, new at each start",
        "A file with at least 32 random characters. It signs the mark of visitors that have just written. Use the same file on all nodes of a site.",
    ),
    row("dialects.litespeed", "", "true", super::dialects::LITESPEED_HELP),
    row("dialects.litespeed_esi", "", "false", super::dialects::LITESPEED_ESI_HELP),
    row(
        "dialects.pass_on",
        "",
        "none",
        "Response header fields that clients still receive because a cache or web server in front of Pagewell needs them. These are tag fields, such as `Cache-Tag`, and fields that name a file to send (`X-Accel-Redirect`, `X-Sendfile`).",
    ),
    row(
        "private.enabled",
        "",
        "true if `cookies` is set; otherwise only for pages that LiteSpeed's plugins mark private",
        "Whether `private` pages are stored for the one visitor for whom they were rendered ([guide](../guide/private-copies.md)).",
    ),
    row(
        "private.cookies",
        "",
        "none; for LiteSpeed's plugins, the session cookies of their software",
        "Names of the cookies that identify a visitor, with `*`: `[\"PHPSESSID\"]`. Their values must be secret, different for each visitor, and at least 16 bytes long. They count as session cookies.",
    ),
    row(
        "private.pages_per_owner",
        "",
        "50",
        "The largest number of private copies for one visitor, 1 to 10000. A further copy replaces the visitor's oldest one.",
    ),
    row(
        "private.lifetime_max",
        "",
        "10m",
        "The longest TTL of a private copy, whatever the page declares.",
    ),
    row(
        "access_log.to",
        "--access-log",
        "none",
        "The destination of the access log: the path of a file (reopened on SIGHUP and SIGUSR1), `stdout`, `syslog` (the daemon at `/dev/log`), or `syslog:/its/socket`.",
    ),
    row(
        "access_log.format",
        "",
        "combined",
        "The format of a line: `common`, `combined`, `json`, or fields in braces, such as `{client} {target} {cache}`.",
    ),
    row(
        "access_log.buffer",
        "",
        "4M",
        "The most that may wait to be written. Lines beyond that are dropped and counted (`access_log_dropped`); no request waits for the log.",
    ),
    row(
        "access_log.mask_addresses",
        "",
        "false",
        "Whether only the network of an address is logged: /24, or /48 for IPv6.",
    ),
    row(
        "access_log.mask_queries",
        "",
        "false",
        "Whether only the names of query parameters are logged, in the target and in `Referer`.",
    ),
    row(
        "codings.make",
        "",
        "[\"br\", \"zstd\", \"gzip\"]",
        "The compression formats of stored pages and files. A visitor gets the smallest stored form that the browser accepts. An empty list turns compression off; then `Accept-Encoding` is sent to the origin.",
    ),
    row(
        "codings.types",
        "",
        "text, scripts, JSON, XML, SVG and the like",
        "Media types to compress, such as `text/*`, or `!text/event-stream` to exclude one. The first matching pattern counts. The list replaces the built-in one.",
    ),
    row("codings.min_bytes", "", "256", "Content shorter than this is sent uncompressed."),
    row(
        "codings.on_the_way",
        "",
        "true",
        "Whether content without a stored compressed form, such as pages for signed-in visitors, is compressed (gzip) while it is sent.",
    ),
    row(
        "codings.files_beside",
        "",
        "false",
        "Whether a compressed file beside the original (`app.js.br`, `.zst`, `.gz`) is used if it is not older than the original.",
    ),
    row(
        "memcached.listen",
        "",
        "none",
        "Addresses for memcached's text protocol: `address:port` or `unix:path`; one, or a list. Only addresses of this machine, and only with a single site.",
    ),
    row(
        "memcached.socket_mode",
        "",
        "666",
        "Permission bits of its Unix sockets, as for `chmod`. A program that may connect may store pages. `660` permits Pagewell's own user and group only.",
    ),
    row(
        "memcached.item_bytes",
        "",
        "1M",
        "The largest item, including its key and about 60 bytes, as with memcached's `-I`.",
    ),
    row(
        "memcached.render_time",
        "",
        "60s",
        "The longest time that the render of a page stored there may take. A page without a lease is rejected if anything that it depends on has changed within this time. A lease is valid for this time.",
    ),
    row(
        "snapshot.directory",
        "",
        "none: pages are lost when the process ends",
        "A directory, used by Pagewell alone, for pages that survive a restart. It is created if it does not exist. Every site has its own files in it.",
    ),
    row(
        "snapshot.every",
        "",
        "10m",
        "The time from the end of one snapshot to the start of the next. Pagewell writes another one when it stops.",
    ),
    row(
        "snapshot.max_size",
        "",
        "the site's `memory`",
        "The largest size of a snapshot. If not all pages fit, used pages are written first.",
    ),
    row(
        "snapshot.unwatched",
        "",
        "none; required for a site without `[[database]]`",
        "The treatment of stored pages at the start, for a site whose database is not followed: `serve` them, although changes while Pagewell was down are unknown, or `drop` them.",
    ),
    row(
        "traces.to",
        "",
        "none",
        "Turns traces on. The address of the collector, by OTLP over HTTP: `http://127.0.0.1:4318/v1/traces`.",
    ),
    row(
        "traces.share",
        "",
        "0.01",
        "The share of requests to trace, from 0 to 1, where no `traceparent` decides. A `traceparent` from `trusted_proxies` decides for its own request.",
    ),
    row("traces.service", "", "pagewell", "Pagewell's name in traces (`service.name`)."),
    row(
        "rewarm.enabled",
        "",
        "false",
        "Whether pages that a change has purged or marked stale are refreshed in the background, the most used first.",
    ),
    row("rewarm.pages_per_second", "", "10", "The most pages per second, for each site."),
    row("rewarm.at_once", "", "2", "The most concurrent refreshes, while the origin has capacity."),
    row(
        "rewarm.min_uses",
        "",
        "1",
        "Pages used at least this often are refreshed, up to 3; 0 means every page.",
    ),
    row(
        "wake.url",
        "",
        "",
        "An address that Pagewell requests at intervals, such as `/wp-cron.php`. Without `site.host`, write the whole URL. At most 16 for a site. A document root with WordPress's `wp-cron.php` gets one for it, every minute, unless a `[[wake]]` names it.",
    ),
    row(
        "wake.every",
        "",
        "",
        "The time from the end of one request to the start of the next, from `1s` to `1d`.",
    ),
];

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
