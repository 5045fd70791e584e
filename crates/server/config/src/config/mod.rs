//! The configuration, in two stages. It is parsed as written (`raw`: one TOML file and its command
//! line flags) and then completed (`Config`: every value checked, with defaults).
//!
//! Unknown keys are errors with a suggestion. Every key is in `table::OPTIONS`, from which the
//! manual is generated; a test compares the table with the types.

mod access_log;
mod acme;
mod address;
mod audit;
mod automatic;
mod cluster;
mod codings;
mod database;
mod dialects;
mod document_root;
mod files_read;
mod inactive;
mod internal_files;
mod limits;
mod machine;
mod memcached;
mod misread;
mod misses;
mod origin_servers;
mod private;
mod public_name;
mod purging;
pub mod raw;
mod resolve;
mod resolve_rules;
mod resolve_sites;
mod rewarm;
pub mod secret;
pub mod shown;
mod snapshot;
mod symlinks;
mod table_limits;
#[cfg(test)]
mod table_tests;
mod traces;
mod trial;
pub mod units;
mod wake;
pub mod written;

/// Every key of the configuration, as data. The tests compare the rows with the types of the file as written.
pub mod table {
    pub use super::table_limits::{LIMITS, LimitRow};
    pub use option_table::{OPTIONS, OptionRow};
}

use http::StatusCode;
use http_cache::Policy;
use passwords::PasswordFiles;
use request_values::hosts::Hosts;
use request_values::networks::Networks;
use site_rules::SiteRules;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub use access_log::{AccessLog, AccessLogTo};
pub use acme::{Acme, AcmeStorage, ExternalAccount, LETS_ENCRYPT, SecretBytes};
pub use address::check_admin_address;
pub use automatic::{Automatic, CaptureKind, PartnerLookups, UntrackedPages};
pub use cluster::CLUSTER;
pub use codings::Codings;
pub use database::{
    Account, Database, DatabaseKind, DatabaseServer, DatabaseTls, Manage, OnLag, Place, PositionBy,
    Replication, SharedStream, Trust, UnpublishedWrites, database_servers,
};
pub use traces::Traces;
pub use trial::{ALL_VISITORS, Trial, UnrequestedPaths, shares_without_trial};

pub use audit::{AUDIT_UNIT, Audit, HitWatch};
pub use dialects::Dialects;
pub use document_root::DOCUMENT_ROOTS;
pub use files_read::{ConfiguredFile, FileUse};
pub use machine::machine_memory_bytes;
pub use memcached::Memcached;
pub use misses::{Misses, MissesMode, VerifiedCrawler};
pub use origin_servers::{OriginServer, OriginServers};
pub use private::PrivateCopies;
pub use public_name::name_refusal;
pub use purging::Purging;
pub use resolve::{LoadError, load};
pub use resolve_sites::{resolve, resolve_after};
pub use rewarm::Rewarm;
pub use site_files::{ErrorPage, ErrorPages, RedirectFiles, UnusableFile, WatchedFile};
pub use snapshot::{RecordFiles, Snapshot};
pub use wake::Wake;

/// The address of a socket: `127.0.0.1:8080` or `unix:/run/pagewell.sock`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A TCP address with its port.
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

/// The first bytes that a connection must send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// The bytes of the client itself.
    Client,
    /// A header of the PROXY protocol.
    Proxied,
}

/// The configuration as used.
#[derive(Clone, Debug)]
pub struct Config {
    /// The addresses of the HTTP listeners.
    pub listen: Vec<Address>,
    /// The addresses of the TLS listeners.
    pub listen_tls: Vec<Address>,
    /// The addresses of both kinds at which connections begin with the PROXY protocol.
    pub proxied: Vec<Address>,
    /// The certificates with their keys; the first is used if SNI matches no other.
    pub tls: Vec<TlsPair>,
    /// The certificates that are obtained from a certificate authority; `None`: none.
    pub acme: Option<Acme>,
    /// The status code of the redirect from HTTP to HTTPS; `None`: no redirect.
    pub https_redirect: Option<StatusCode>,
    /// The address of the control interface.
    pub admin: Address,
    /// The bearer token that the control interface requires, in addition to a local client.
    pub admin_token: Option<String>,
    /// The file of this token.
    pub admin_token_file: Option<PathBuf>,
    /// The user to which root privileges are dropped.
    pub user: Option<String>,
    /// The group to which root privileges are dropped.
    pub group: Option<String>,
    /// The directory for request content that is too long for memory; `None`: the default.
    pub uploads: Option<PathBuf>,
    /// The site's page budget in bytes: contents, headers and index together.
    pub memory_bytes: usize,
    /// The site and its origin.
    pub site: SiteConfig,
    /// Further sites of the same process; their own list is empty.
    pub other_sites: Vec<Arc<Config>>,
    /// The rules for storing responses, and for their freshness lifetimes.
    pub policy: Policy,
    /// The content codings in which responses are sent.
    pub codings: Codings,
    /// The time after which an unrequested page is removed; `None`: only when memory is needed.
    pub inactive: Option<Duration>,
    /// How pages are fetched again after a change (cache warming); `None`: only on request.
    pub rewarm: Option<Rewarm>,
    /// Which share of the hits is compared with renders; `None`: none.
    pub audit: Option<Audit>,
    /// The trial; `None`: hits are sent.
    pub trial: Option<Trial>,
    /// The files for records of trial and audit; `None`: these end with the process.
    pub records: Option<RecordFiles>,
    /// The paths that no comparison of a trial or an audit requests.
    pub unrequested: UnrequestedPaths,
    /// The questions about a request that may be a plain hit. One value, so that nothing that is off costs a hit more
    /// than its comparison.
    pub watches_hits: HitWatch,
    /// How requests that need the origin are treated.
    pub misses: Misses,
    /// The URLs that are requested at intervals.
    pub wakes: Vec<Wake>,
    /// How pages survive a restart; `None`: they do not.
    pub snapshot: Option<Snapshot>,
    /// The pages for Pagewell's own errors.
    pub error_pages: ErrorPages,
    /// Files that are read again when they change.
    pub watched_files: Vec<WatchedFile>,
    /// The files with secrets and networks, each with its key ([`Config::files_read`]).
    pub value_files: Vec<(&'static str, PathBuf)>,
    /// The redirect files, as they were read.
    pub redirect_files: RedirectFiles,
    /// The fingerprint: a hash of all that determines the pages and which requests find them.
    pub print: u128,
    /// The databases that are followed for changes, each with its rules.
    pub databases: Vec<Arc<Database>>,
    /// The settings for automatic dependencies; `None`: pages depend on what they declare.
    pub automatic: Option<Automatic>,
    /// The stream through which nodes exchange invalidations; `None`: a single node.
    pub cluster: Option<Arc<Database>>,
    /// The collector of spans; `None`: no tracing.
    pub traces: Option<Traces>,
    /// The memcached port; `None`: disabled.
    pub memcached: Option<Memcached>,
    /// The authorisation of purge requests.
    pub purging: Purging,
    /// The compatibility headers of other caches that are used.
    pub dialects: Dialects,
    /// The settings for private copies; `None`: they are not stored.
    pub private: Option<PrivateCopies>,
    /// The access log; `None`: there is none.
    pub access_log: Option<AccessLog>,
    /// Whether responses contain the origin's response time (`Server-Timing`).
    pub server_timing: bool,
    /// Whether pages are assembled from ESI fragments if the application requests it.
    pub esi: bool,
    /// Whether plain hits are answered without the HTTP library.
    pub hits_in_front: bool,
    /// The rules, URL normalisation, and the cookies that are part of the key.
    pub rules: SiteRules,
    /// The password files that rules name.
    pub passwords: PasswordFiles,
    /// The hosts of the site.
    pub hosts: Hosts,
    /// The trusted proxies, whose forwarding fields are used.
    pub trusted_proxies: Networks,
    /// The networks whose connections are not limited by address.
    pub connections_exempt: Networks,
    /// The limits on input, connections and waiting times.
    pub limits: Limits,
}

impl Config {
    /// The redirect files and error pages that cannot be used now.
    pub fn unusable_files(&self) -> impl Iterator<Item = &UnusableFile> {
        self.redirect_files.unusable.iter().chain(self.error_pages.unusable())
    }

    /// The first bytes that connections to this address must send.
    #[inline]
    pub fn begin_at(&self, address: &Address) -> Begin {
        if self.proxied.contains(address) { Begin::Proxied } else { Begin::Client }
    }
}

/// A certificate chain and its private key, in PEM files.
#[derive(Clone, Debug)]
pub struct TlsPair {
    /// The certificate chain, the site's own certificate first.
    pub certificate: PathBuf,
    /// The private key of the certificate.
    pub key: PathBuf,
}

/// The site and its origin.
#[derive(Clone, Debug)]
pub struct SiteConfig {
    /// The origin: PHP, or another web server.
    pub origin: OriginConfig,
    /// The document root and its routing; `None` in front of an HTTP origin.
    pub files: Option<FilesConfig>,
}

/// The document root and how paths are resolved in it.
#[derive(Clone, Debug)]
pub struct FilesConfig {
    /// The document root, absolute, with symbolic links resolved.
    pub root: PathBuf,
    /// The script for paths that are not files, relative to the root.
    pub front_controller: String,
    /// File names that are never served, as patterns with `*`. A pattern with a leading slash
    /// matches only directly below the root.
    pub hidden: Vec<String>,
    /// Whether a `vendor` in the root that has Composer's autoloader is hidden as well.
    pub hides_libraries: bool,
    /// The file name extensions of scripts, without the dot. Scripts are executed and never shown.
    pub scripts: Vec<String>,
    /// The index files of a directory, in the order of precedence.
    pub indexes: Vec<String>,
    /// The permitted targets of symbolic links.
    pub symlinks: Symlinks,
    /// The directories whose files are sent if the application names them, and never otherwise.
    pub internal: Vec<InternalDirectory>,
}

/// A directory whose files are sent if the application names them (`X-Accel-Redirect`, `X-Sendfile`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InternalDirectory {
    /// The path that stands for it in `X-Accel-Redirect`, with a slash at both ends.
    pub prefix: String,
    /// The directory, absolute, with symbolic links resolved.
    pub directory: PathBuf,
}

/// The permitted targets of symbolic links below the document root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Symlinks {
    /// Only targets within the root.
    InRoot,
    /// Targets in these directories as well: absolute, with symbolic links resolved.
    Into(Vec<PathBuf>),
    /// Any target is permitted.
    Anywhere,
}

impl FilesConfig {
    /// The default index files for these script extensions.
    pub fn indexes_of(scripts: &[String]) -> Vec<String> {
        let of_scripts = scripts.iter().map(|script| format!("index.{script}"));
        of_scripts.chain(["index.html".to_owned()]).collect()
    }
}

/// The origin, which renders the pages.
#[derive(Clone, Debug)]
pub enum OriginConfig {
    /// A php-fpm that Pagewell starts.
    OwnPhp(OwnPhp),
    /// A FastCGI responder that is already running.
    FastCgi(Address),
    /// HTTP servers that are already running.
    Http(OriginServers),
}

/// How Pagewell's own php-fpm is started.
#[derive(Clone, Debug)]
pub struct OwnPhp {
    /// The path of the program; `None`: it is searched for.
    pub binary: Option<PathBuf>,
    /// Maximum number of php-fpm children.
    pub children: usize,
    /// Environment variables for the scripts.
    pub env: Vec<(String, String)>,
    /// The php.ini settings for the scripts.
    pub ini: Vec<(String, String)>,
    /// The user of the children if Pagewell was started by root.
    pub user: String,
    /// The file name extensions of scripts; no other files are executed.
    pub scripts: Vec<String>,
}

/// The limits on input, connections and waiting times. Units are in the names.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Maximum length of a request's header section, including the request line.
    pub header_bytes: usize,
    /// Maximum number of header lines in a request.
    pub headers: usize,
    /// Maximum length of a request target.
    pub uri_bytes: usize,
    /// Maximum length of a request's content.
    pub body_bytes: u64,
    /// Maximum number of concurrent connections.
    pub connections: usize,
    /// Maximum time from a request's first byte to the end of its header section.
    pub header_timeout: Duration,
    /// Maximum idle time between two requests of a connection.
    pub idle_timeout: Duration,
    /// Maximum time between two pieces of a request's content.
    pub body_timeout: Duration,
    /// Maximum time in which a client reads nothing of a pending response.
    pub write_timeout: Duration,
    /// How long a request continues after its client has closed its sending direction.
    pub half_closed_timeout: Duration,
    /// Maximum time to connect to the origin.
    pub origin_connect_timeout: Duration,
    /// Maximum time from the end of the request to the response's header section, and between later pieces.
    pub origin_timeout: Duration,
    /// Maximum number of concurrent origin requests.
    pub origin_connections: usize,
    /// Maximum number of idle connections to the origin.
    pub origin_idle_connections: usize,
    /// Maximum number of requests that queue for the origin.
    pub origin_queue: usize,
    /// Maximum time in that queue.
    pub origin_queue_timeout: Duration,
    /// Maximum length of a response's header section.
    pub origin_header_bytes: usize,
    /// Maximum length of a page's content; a longer page is forwarded and not stored.
    pub page_bytes: usize,
    /// Maximum number of requests that wait for one render.
    pub followers: usize,
    /// Maximum number of pages that wait for compression.
    pub coding_queue: usize,
    /// Maximum number of purged or marked pages that wait for cache warming.
    pub rewarm_pages: usize,
    /// How long requests for a page that could not be stored do not wait for each other (hit-for-miss).
    pub hit_for_miss: Duration,
    /// Maximum time from the signal to stop to the end of the process.
    pub drain: Duration,
    /// Maximum duration of the last snapshot.
    pub snapshot_stop: Duration,
    /// Maximum time from the connection to the end of its TLS handshake.
    pub handshake_timeout: Duration,
    /// Time between two checks whether a certificate has changed.
    pub certificate_look: Duration,
    /// Maximum number of concurrent upgraded connections.
    pub upgrades: usize,
    /// Maximum idle time of an upgraded connection.
    pub upgrade_idle_timeout: Duration,
    /// Maximum number of concurrent requests on an HTTP/2 connection.
    pub http2_streams: usize,
    /// Maximum number of requests that were reset before they were processed, per HTTP/2 connection.
    pub http2_resets: usize,
    /// Maximum number of hashes of passwords that are computed at once.
    pub password_checks: usize,
    /// The number of clients whose rates are known.
    pub rate_limit_entries: usize,
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

/// File name extensions that are never shown, even if they are not executed: PHP under all its
/// names, and CGI scripts.
pub const SOURCES: [&str; 13] = [
    "php", "phtml", "pht", "phar", "php3", "php4", "php5", "php6", "php7", "php8", "pl", "pm",
    "cgi",
];
