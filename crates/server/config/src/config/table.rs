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
        "Where visitors are served: `address:port` or `unix:path`; one, or a list. `:80` is every address of IPv4; `[::]:80`, where the system is as usual, of both.",
    ),
    row(
        "listen_tls",
        "",
        "none",
        "Where visitors are served over TLS: `address:port` or `unix:path`; one, or a list. Needs a `[[tls]]`.",
    ),
    row(
        "proxy_protocol",
        "",
        "none",
        "Those addresses of `listen` and `listen_tls`, written as there, at which every connection begins with the PROXY protocol (version 1 or 2): one, or a list. Only `trusted_proxies` may connect there.",
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
        "user",
        "",
        "who has started it",
        "Started as root, Pagewell goes on as this user once its sockets are bound and its certificates read: a name in `/etc/passwd`, or a number. A php-fpm of its own runs as this user, too. Started as this user, it stays so.",
    ),
    row(
        "group",
        "",
        "the user's",
        "Needs `user`: the group, by its name in `/etc/group` or its number. The groups that name the user are his as well.",
    ),
    row(
        "memory",
        "--memory",
        "a quarter of the machine's memory",
        "The page budget: contents, headers and index together, such as `256M`.",
    ),
    row(
        "uploads",
        "",
        "`TMPDIR`, or `/var/tmp`, or `/tmp`",
        "The directory in which content waits in files without a name: of requests until all of it is there, where it is longer than `limits.body_ahead`, and of responses until their clients take it. It has to be there, and Pagewell to be allowed to make files in it. How much of the disk that may take: `limits.body_disk` and `limits.client_backlog_disk`.",
    ),
    row(
        "hits_in_front",
        "",
        "true",
        "Whether plain hits are answered in front of the HTTP library, which is cheaper. Nothing else differs; turn it off to compare.",
    ),
    row(
        "trusted_proxies",
        "",
        "none",
        "Addresses, networks such as `10.0.0.0/8`, and the word `unix`: whose `X-Forwarded-For` and `X-Forwarded-Proto` are believed.",
    ),
    row(
        "connections_exempt",
        "",
        "`127.0.0.0/8` and `::1`",
        "Addresses and networks whose connections `limits.connections_per_address` does not count; nor does it count `trusted_proxies`.",
    ),
    row(
        "purge.from",
        "",
        "`127.0.0.0/8` and `::1`",
        "Addresses, networks, and the word `unix`: who may send `PURGE`, `BAN` and the like, as long as nothing in the request says that it was passed on for somebody else. An empty list: nobody by address.",
    ),
    row(
        "purge.token_file",
        "",
        "none",
        "A file with a token of 16 characters at least: whoever sends it (`Authorization: Bearer …` or `Fastly-Key: …`) may purge from anywhere.",
    ),
    row(
        "purge.get_below",
        "",
        "none",
        "A path such as `/purge`: then `GET /purge/a` purges `/a`, for those who may. Nothing below it is a page of the site any more.",
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
        "An HTTP server that renders the pages, such as `http://127.0.0.1:8000`; then no files are served and no PHP is started.",
    ),
    row(
        "site.front_controller",
        "",
        "index.php",
        "The script, below the root, that answers every path that is no file. It has to be there. What its name ends with counts as one of `scripts`.",
    ),
    row(
        "site.scripts",
        "",
        ".php",
        "What the names of scripts end with, one or a list: such files are run by the responder and their text is never shown. The case counts: `old.PHP` is run only if `.PHP` is in the list, and is never shown. For other languages over FastCGI: `[\".pl\", \".cgi\"]`.",
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
        "Where symbolic links may lead outside the document root: into the directories of a list (`[\"/usr/share/javascript\"]`), or anywhere with `true`. Hidden names, dotfiles and source are not served through a link either.",
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
    row("site.wake", "", "the tables `[[wake]]`", "`[[site.wake]]`: the site's own."),
    row(
        "site.dialects",
        "",
        "the table `[dialects]`",
        "`[site.dialects]`: the site's own, in place of `[dialects]`.",
    ),
    row("site.database", "", "the tables `[[database]]`", "`[[site.database]]`: the site's own."),
    row("site.change", "", "the tables `[[change]]`", "`[[site.change]]`: the site's own."),
    row(
        "site.cluster",
        "",
        "the table `[cluster]`",
        "`[site.cluster]`: the site's own, in place of `[cluster]`.",
    ),
    row(
        "site.private",
        "",
        "the table `[private]`",
        "`[site.private]`: the site's own, in place of `[private]`.",
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
    row(
        "php.ini",
        "",
        "none",
        "A table of php.ini settings for the scripts: texts, numbers, `true` or `false`.",
    ),
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
        "0",
        "Heuristic freshness, for a response with `Last-Modified` and no declared lifetime: its lifetime as a share of the time since its last modification, in per cent; 0 turns it off. RFC 9111 names 10. A response that the application takes back is used until this lifetime is over.",
    ),
    row("cache.heuristic_max", "", "10m", "The longest heuristic lifetime."),
    row(
        "cache.stale_while_revalidate",
        "",
        "0s",
        "How long a page may be served stale while it is rendered anew, when it does not say so itself.",
    ),
    row(
        "cache.stale_if_error",
        "",
        "1h if the origin cannot be reached, else 0s",
        "How long a page may be served stale when the origin fails, when it does not say so itself; 0s turns it off.",
    ),
    row(
        "cache.soft_for",
        "",
        "0s",
        "How long a page that a soft change has marked may still be served while it is rendered anew. What the page itself says in `stale-while-revalidate` holds as well; `no-cache` and `must-revalidate` forbid it.",
    ),
    row("cache.inactive", "", "none", super::inactive::HELP),
    row(
        "cache.server_timing",
        "",
        "false",
        "Whether a response says in `Server-Timing` how many milliseconds the origin took until its header section was there. Only responses that the origin was asked for.",
    ),
    row(
        "cache.esi",
        "",
        "false",
        "Whether pages are put together of fragments, where the application asks for it: the origin is told that it may (`Surrogate-Capability`), and a response that says `Surrogate-Control: content=\"ESI/1.0\"` is a template.",
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
        "keys.fields",
        "",
        "none",
        "Request fields that the application reads and does not name in `Vary`, such as `CF-IPCountry`. Their values are part of the key, and the origin gets them for pages that are cached; 256 bytes each.",
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
        "dialects.litespeed",
        "",
        "true",
        "Whether LiteSpeed's plugins find a cache here, and what they say is obeyed ([guide](../guide/litespeed.md)).",
    ),
    row(
        "dialects.pass_on",
        "",
        "none",
        "Fields of tags, such as `Cache-Tag`, and fields that name a file to be sent (`X-Accel-Redirect`, `X-Sendfile`), that clients get all the same, because a cache or a web server in front of Pagewell needs them.",
    ),
    row(
        "private.enabled",
        "",
        "true where `cookies` are named; else for what LiteSpeed's plugins call private",
        "Whether pages that are `private` are kept for the one visitor they were made for ([guide](../guide/private-copies.md)).",
    ),
    row(
        "private.cookies",
        "",
        "none; for LiteSpeed's plugins the session cookies of the software they are for",
        "The names of the cookies by which a visitor is known, with `*`: `[\"PHPSESSID\"]`. Values of 16 bytes at least, secret and each visitor's own. They count as session cookies.",
    ),
    row(
        "private.pages_per_owner",
        "",
        "50",
        "The most private copies of one visitor, 1 to 10000; more displace his oldest.",
    ),
    row(
        "private.lifetime_max",
        "",
        "10m",
        "How long a private copy is good at most, whatever the page says.",
    ),
    row(
        "access_log.to",
        "--access-log",
        "none",
        "Where a line goes for each answer: the path of a file (opened again on SIGHUP and SIGUSR1), `stdout`, `syslog` (the daemon at `/dev/log`), or `syslog:/its/socket`.",
    ),
    row(
        "access_log.format",
        "",
        "combined",
        "How lines are written: `common`, `combined`, `json`, or fields in braces, such as `{client} {target} {cache}`.",
    ),
    row(
        "access_log.buffer",
        "",
        "4M",
        "How much may wait to be written. What does not fit is dropped and counted (`access_log_dropped`); no visitor waits.",
    ),
    row(
        "access_log.mask_addresses",
        "",
        "false",
        "Whether of addresses only the network is logged: /24, or /48 of IPv6.",
    ),
    row(
        "access_log.mask_queries",
        "",
        "false",
        "Whether of queries, in the target and in `Referer`, only the names of parameters are logged.",
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
    row(
        "memcached.listen",
        "",
        "none",
        "Where memcached's text and meta protocols are spoken: `address:port` or `unix:path`; one, or a list. Addresses of this machine only. For a single site.",
    ),
    row(
        "memcached.socket_mode",
        "",
        "666",
        "Who may connect to its Unix sockets, and so store pages: permission bits as `chmod` has them. `660` is for Pagewell's own user and group.",
    ),
    row(
        "memcached.item_bytes",
        "",
        "1M",
        "How large an item may be there, key and some 60 bytes included, as with memcached's `-I`.",
    ),
    row(
        "memcached.render_time",
        "",
        "60s",
        "How long the render of a page may take that is stored there: every change within this time counts against a page that comes without a lease, and a lease is good for so long.",
    ),
    row(
        "snapshot.directory",
        "",
        "none: pages end with the process",
        "Where pages are kept that outlive the process: a directory of Pagewell's own, made where there is none. Every site has files of its own in it.",
    ),
    row(
        "snapshot.every",
        "",
        "10m",
        "From the end of one writing to the beginning of the next; one more is written when Pagewell stops.",
    ),
    row(
        "snapshot.max_size",
        "",
        "the site's `memory`",
        "How long a snapshot may become; of what does not fit, the used pages are in it first.",
    ),
    row(
        "snapshot.unwatched",
        "",
        "none; has to be given where no `[[database]]` is followed",
        "What is done with the pages of a site whose database nobody follows, so that nobody tells what changed while Pagewell was down: `serve` them all the same, or `drop` them.",
    ),
    row(
        "traces.to",
        "",
        "none",
        "Turns traces on: where spans go, by OTLP over HTTP: `http://127.0.0.1:4318/v1/traces`.",
    ),
    row(
        "traces.share",
        "",
        "0.01",
        "How many of the requests that nobody else has decided about are traced: from 0 to 1. A `traceparent` of `trusted_proxies` decides for its own.",
    ),
    row("traces.service", "", "pagewell", "What Pagewell is called there (`service.name`)."),
    row(
        "rewarm.enabled",
        "",
        "false",
        "Whether pages that a change has dropped or marked are rendered anew in the background, the most used first.",
    ),
    row("rewarm.pages_per_second", "", "10", "How many a second at most, for each site."),
    row("rewarm.at_once", "", "2", "How many at once at most, while the origin has a place free."),
    row("rewarm.min_uses", "", "1", "How often a page must have been used, up to 3; 0: any page."),
    row(
        "wake.url",
        "",
        "",
        "In `[[wake]]`: an address that is requested at intervals, such as `/wp-cron.php`. Without `site.host`, the whole address. 16 of a site at most.",
    ),
    row(
        "wake.every",
        "",
        "",
        "In `[[wake]]`: the time from the end of one request to the beginning of the next, from `1s` to `1d`.",
    ),
];

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
