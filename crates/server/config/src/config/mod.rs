//! The configuration, in two stages: as written (`raw`, one TOML file and the flags that are its
//! short form) and as used (`Config`, every value checked and filled in).
//!
//! Unknown keys are errors that suggest the right one. Every key stands in `table::OPTIONS`, from
//! which the manual is made; a test holds the table and the types together.

mod access_log;
mod codings;
mod database;
mod dialects;
mod limits;
mod memcached;
mod misread;
mod private;
mod purging;
pub mod raw;
mod resolve;
mod resolve_rules;
mod resolve_sites;
mod rewarm;
pub mod secret;
pub mod shown;
mod snapshot;
mod stream;
mod symlinks;
pub mod table;
mod table_changes;
mod table_limits;
mod traces;
pub mod units;
mod unused;
mod wake;
pub mod written;

use crate::networks::Networks;
use http::StatusCode;
use http_cache::Policy;
use site_rules::SiteRules;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

pub use access_log::{AccessLog, AccessLogTo};
pub use codings::Codings;
pub use database::{
    Account, Database, DatabaseKind, DatabaseServer, DatabaseTls, Manage, OnLag, Place, PositionBy,
    Replication, SharedStream, Trust, database_servers,
};
pub use stream::STREAM;
pub use traces::Traces;

pub use dialects::Dialects;
pub use memcached::Memcached;
pub use private::PrivateCopies;
pub use purging::Purging;
pub use resolve::{LoadError, load, machine_memory_bytes};
pub use resolve_sites::resolve;
pub use rewarm::Rewarm;
pub use snapshot::Snapshot;
pub use wake::Wake;

/// Where a socket is: `127.0.0.1:8080` or `unix:/run/pagewell.sock`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A TCP address.
    Tcp(SocketAddr),
    /// The path of a Unix socket.
    Unix(PathBuf),
}

impl Address {
    /// Whether only this machine can reach the address.
    pub fn is_local(&self) -> bool {
        match self {
            Address::Tcp(address) => address.ip().is_loopback(),
            Address::Unix(_) => true,
        }
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Address::Tcp(address) => write!(f, "{address}"),
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// What a connection begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// What its client says.
    Client,
    /// The PROXY protocol.
    Proxied,
}

/// The configuration as used.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where visitors are served.
    pub listen: Vec<Address>,
    /// Where visitors are served over TLS.
    pub listen_tls: Vec<Address>,
    /// Those of both at which connections begin with the PROXY protocol.
    pub proxied: Vec<Address>,
    /// The certificates with their keys; the first is for whoever names no other.
    pub tls: Vec<TlsPair>,
    /// The status by which visitors in the clear are sent to HTTPS, if they are.
    pub https_redirect: Option<StatusCode>,
    /// Where the control interface is.
    pub admin: Address,
    /// What the control interface asks for besides being local: a bearer token.
    pub admin_token: Option<String>,
    /// Whom it becomes, where it is root.
    pub user: Option<String>,
    /// With which group.
    pub group: Option<String>,
    /// Where content of requests waits that is too long for memory; none: in the usual place.
    pub uploads: Option<PathBuf>,
    /// The site's page budget in bytes: contents, headers and index together.
    pub memory_bytes: usize,
    /// The site.
    pub site: SiteConfig,
    /// Further sites of the same process; theirs is empty.
    pub other_sites: Vec<Arc<Config>>,
    /// What is stored, and how long it is good.
    pub policy: Policy,
    /// In which codings content is sent.
    pub codings: Codings,
    /// After how long a page goes that nobody asks for; none: when its room is needed.
    pub unused_for: Option<Duration>,
    /// How pages are rendered anew in the background after a change; none: only when somebody asks.
    pub rewarm: Option<Rewarm>,
    /// Addresses that are requested at intervals.
    pub wakes: Vec<Wake>,
    /// How pages outlive the process; none: they do not.
    pub snapshot: Option<Snapshot>,
    /// What stays the same where pages mean the same, and are found by the same requests.
    pub print: u128,
    /// The databases that are followed for changes, each with its rules.
    pub databases: Vec<Arc<Database>>,
    /// The stream by which machines tell each other what was changed; none: there is one machine.
    pub stream: Option<Arc<Database>>,
    /// Where spans go; none: nothing is traced.
    pub traces: Option<Traces>,
    /// The memcached port; none: there is none.
    pub memcached: Option<Memcached>,
    /// Who may purge, and how.
    pub purging: Purging,
    /// Which other caches' languages are spoken.
    pub dialects: Dialects,
    /// Which private copies are kept; none: nothing private is.
    pub private: Option<PrivateCopies>,
    /// How each answer is logged; none: it is not.
    pub access_log: Option<AccessLog>,
    /// Whether a response says how long the origin took (`Server-Timing`).
    pub server_timing: bool,
    /// Whether pages are put together of fragments, where the application asks for it (ESI).
    pub esi: bool,
    /// Whether plain hits are answered in front of the HTTP library.
    pub hits_in_front: bool,
    /// Rules, the normal form of URLs, which cookies count.
    pub rules: SiteRules,
    /// The hosts that the site answers for.
    pub hosts: Hosts,
    /// Whose word about their clients is believed.
    pub trusted_proxies: Networks,
    /// Whose connections are not counted by address.
    pub connections_exempt: Networks,
    /// The bounds on everything that comes in.
    pub limits: Limits,
}

impl Config {
    /// What connections to this address begin with.
    #[inline]
    pub fn begin_at(&self, address: &Address) -> Begin {
        match self.proxied.contains(address) {
            true => Begin::Proxied,
            false => Begin::Client,
        }
    }
}

/// The hosts that the site answers for.
#[derive(Clone, Debug, Default)]
pub struct Hosts {
    /// The one that stands in the key and goes to the origin for pages; none: each its own.
    pub canonical: Option<String>,
    /// Others that are the same site.
    pub aliases: Vec<String>,
    /// Whether hosts that are none of these are refused.
    pub others: OtherHosts,
}

impl Hosts {
    /// Every host that is named.
    pub fn all(&self) -> impl Iterator<Item = &String> {
        self.canonical.iter().chain(&self.aliases)
    }

    /// The other names of the host, if it is the site's.
    pub fn same_as<'a>(&'a self, host: &'a str) -> impl Iterator<Item = &'a String> {
        let all = || self.canonical.iter().chain(&self.aliases);
        let is_site = all().any(|known| known == host);
        all().filter(move |known| is_site && *known != host)
    }

    /// Whether requests for this host are answered.
    #[inline]
    pub fn have(&self, host: &str) -> bool {
        self.others == OtherHosts::Serve
            || self.canonical.as_deref() == Some(host)
            || self.aliases.iter().any(|alias| alias == host)
    }
}

/// What becomes of requests for hosts that are not named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OtherHosts {
    /// They are served, each with pages of its own.
    #[default]
    Serve,
    /// They are refused: 421.
    Refuse,
}

/// A certificate chain and its private key, in PEM files.
#[derive(Clone, Debug)]
pub struct TlsPair {
    /// The chain, the site's own certificate first.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// The site and its origin.
#[derive(Clone, Debug)]
pub struct SiteConfig {
    /// Where PHP is, or which server stands behind.
    pub origin: OriginConfig,
    /// The document root and how it is routed; none in front of an HTTP origin.
    pub files: Option<FilesConfig>,
}

/// The document root and how paths are found in it.
#[derive(Clone, Debug)]
pub struct FilesConfig {
    /// The document root, absolute, with symbolic links resolved.
    pub root: PathBuf,
    /// The script that answers what is no file, below the root.
    pub front_controller: String,
    /// File names that are never served, as patterns with `*`; with a slash in front, directly below the root.
    pub hidden: Vec<String>,
    /// Whether a `vendor` in the root that has Composer's autoloader is hidden as well.
    pub hides_libraries: bool,
    /// What the names of scripts end with, without the dot: they are run, and never shown.
    pub scripts: Vec<String>,
    /// The files that answer for their directory, in the order in which they are looked for.
    pub indexes: Vec<String>,
    /// Where symbolic links may lead.
    pub symlinks: Symlinks,
}

/// Where symbolic links below the document root may lead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Symlinks {
    /// To what lies in the root.
    InRoot,
    /// Into these directories as well: absolute, symbolic links resolved.
    Into(Vec<PathBuf>),
    /// Anywhere.
    Anywhere,
}

impl FilesConfig {
    /// The files that answer for their directory where these are the scripts.
    pub fn indexes_of(scripts: &[String]) -> Vec<String> {
        let of_scripts = scripts.iter().map(|script| format!("index.{script}"));
        of_scripts.chain(["index.html".to_owned()]).collect()
    }
}

/// What renders the pages.
#[derive(Clone, Debug)]
pub enum OriginConfig {
    /// A php-fpm of our own.
    OwnPhp(OwnPhp),
    /// A FastCGI responder that is already there.
    FastCgi(Address),
    /// An HTTP server that is already there: its authority, `127.0.0.1:8000`.
    Http(String),
}

/// How our own php-fpm is started.
#[derive(Clone, Debug)]
pub struct OwnPhp {
    /// The program; searched for when not given.
    pub binary: Option<PathBuf>,
    /// How many children render at most.
    pub children: usize,
    /// Environment for the scripts.
    pub env: Vec<(String, String)>,
    /// php.ini settings.
    pub ini: Vec<(String, String)>,
    /// Whom the children run as when Pagewell was started by root.
    pub user: String,
    /// What the names of scripts end with: nothing else is run.
    pub scripts: Vec<String>,
}

/// The bounds on everything that comes in. Units are in the names.
#[derive(Clone, Debug)]
pub struct Limits {
    /// A request's header section, with its request line.
    pub header_bytes: usize,
    /// Header lines of a request.
    pub headers: usize,
    /// A request target.
    pub uri_bytes: usize,
    /// A request's content.
    pub body_bytes: u64,
    /// Connections at once.
    pub connections: usize,
    /// From a request's first byte to the end of its header section.
    pub header_timeout: Duration,
    /// Between two requests of a connection.
    pub idle_timeout: Duration,
    /// Between two pieces of a request's content.
    pub body_timeout: Duration,
    /// Between two pieces of a response that the client takes.
    pub write_timeout: Duration,
    /// To reach the origin.
    pub origin_connect_timeout: Duration,
    /// From the request's end to the response's header section, and between two pieces after it.
    pub origin_timeout: Duration,
    /// Requests at the origin at once.
    pub origin_connections: usize,
    /// Kept-alive connections to the origin without work.
    pub origin_idle_connections: usize,
    /// Requests that wait for a place at the origin.
    pub origin_queue: usize,
    /// How long one waits for a place.
    pub origin_queue_timeout: Duration,
    /// A response's header section.
    pub origin_header_bytes: usize,
    /// A page's content; a longer one is passed on and not stored.
    pub page_bytes: usize,
    /// Requests that wait for one render.
    pub followers: usize,
    /// Pages that wait for their codings.
    pub coding_queue: usize,
    /// Pages dropped or marked that wait to be rendered anew in the background.
    pub rewarm_pages: usize,
    /// How long a page that could not be stored is not waited for.
    pub solo: Duration,
    /// From the order to stop to the end.
    pub drain: Duration,
    /// How long the last snapshot may take.
    pub snapshot_stop: Duration,
    /// From a connection to the end of its TLS handshake.
    pub handshake_timeout: Duration,
    /// Between two looks whether a certificate has changed.
    pub certificate_look: Duration,
    /// Connections at once that have changed to another protocol.
    pub upgrades: usize,
    /// How long nothing may be said on one of them.
    pub upgrade_idle_timeout: Duration,
    /// Requests at once on a connection of HTTP/2.
    pub http2_streams: usize,
    /// Requests that were taken back before they were looked at, on a connection of HTTP/2.
    pub http2_resets: usize,
    #[allow(missing_docs)]
    pub http2_streams_per_address: usize,
    #[allow(missing_docs)]
    pub connections_per_address: usize,
    #[allow(missing_docs)]
    pub connection_requests: usize,
    #[allow(missing_docs)]
    pub body_rate: u64,
    #[allow(missing_docs)]
    pub body_ahead: usize,
    #[allow(missing_docs)]
    pub body_disk: u64,
    #[allow(missing_docs)]
    pub write_rate: u64,
    #[allow(missing_docs)]
    pub client_backlog_bytes: usize,
    #[allow(missing_docs)]
    pub client_backlog_disk: u64,
}

/// The default file name patterns that are never served.
pub const HIDDEN: &[&str] = &[
    "*.bak",
    "*.backup",
    "*.old",
    "*.orig",
    "*.save",
    "*~",
    "#*#",
    "*.swp",
    "*.swo",
    "*.tmp",
    "*.sql",
    "*.sql.gz",
    "*.sqlite",
    "*.sqlite3",
    "*.db",
    "*.ini",
    "*.log",
    "*.env",
    "*.inc",
    "*.dist",
    "*.phps",
    "*.phar",
    "*.twig",
    "*.tpl",
    "*.yml",
    "*.yaml",
    "*.neon",
    "*.lock",
    "*.sh",
    "*.pem",
    "*.key",
    "*.crt",
    "composer.*",
    "installed.json",
    "/node_modules",
    "package.json",
    "package-lock.json",
    "Makefile",
    "Dockerfile",
    "wp-config.php",
    "LocalSettings.php",
];

/// What is never shown, not even where it is not run: PHP under all its names, and what CGI runs.
pub const SOURCES: [&str; 12] =
    ["php", "phtml", "pht", "php3", "php4", "php5", "php6", "php7", "php8", "pl", "pm", "cgi"];

/// The document root for `dir`: itself when it has one of these files (an index, the front controller), else
/// its `public`, `web`, `htdocs` or `pub`.
///
/// # Errors
/// A sentence that says what was looked for and where.
pub fn find_root(dir: &Path, indexes: &[String]) -> Result<PathBuf, String> {
    let tried = ["", "public", "web", "htdocs", "pub"].map(|below| dir.join(below));
    let mut unknown = None;
    for candidate in tried {
        match has_index(&candidate, indexes) {
            Ok(false) => {}
            Ok(true) => {
                return candidate
                    .canonicalize()
                    .map_err(|e| format!("{}: {e}", candidate.display()));
            }
            Err(why) => unknown = unknown.or(Some(why)),
        }
    }
    match (unknown, dir.is_dir()) {
        (Some(why), _) => Err(why),
        (None, false) => Err(format!("there is no directory {}", dir.display())),
        (None, true) => Err(format!(
            "no {} in {}, nor in its public, web, htdocs or pub",
            indexes.join(" or "),
            dir.display()
        )),
    }
}

/// Whether a directory has one of these files.
///
/// # Errors
/// It cannot be told: the directory may not be searched.
fn has_index(dir: &Path, indexes: &[String]) -> Result<bool, String> {
    for index in indexes.iter().map(|name| dir.join(name)) {
        match index.metadata() {
            Ok(found) if found.is_file() => return Ok(true),
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                return Err(format!("{} cannot be looked into: {error}", dir.display()));
            }
            _ => {}
        }
    }
    Ok(false)
}
