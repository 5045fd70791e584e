//! The configuration as written: the tables of the TOML file, checked only for their structure. The
//! derived parsers refuse unknown keys; `resolve` checks the values. The keys are documented only
//! in `table`, and not at the fields.

mod values;

pub use values::{AllowSymlinks, OneOrMany};

use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use values::{one_or_list, settings, some_words, words};

/// The configuration file as written.
#[derive(Debug, Default, Deserialize, Clone)]
#[serde(deny_unknown_fields, default)]
pub struct File {
    /// See [`crate::config::table`] for this and all that follow.
    pub listen: Option<OneOrMany>,
    #[allow(missing_docs)]
    pub listen_tls: Option<OneOrMany>,
    #[allow(missing_docs)]
    pub proxy_protocol: Option<OneOrMany>,
    #[allow(missing_docs)]
    pub https_redirect: Option<u16>,
    #[allow(missing_docs)]
    pub admin: Option<String>,
    #[allow(missing_docs)]
    pub admin_token_file: Option<PathBuf>,
    #[allow(missing_docs)]
    pub user: Option<String>,
    #[allow(missing_docs)]
    pub group: Option<String>,
    #[allow(missing_docs)]
    pub memory: Option<String>,
    #[allow(missing_docs)]
    pub uploads: Option<PathBuf>,
    #[allow(missing_docs)]
    pub hits_in_front: Option<bool>,
    #[allow(missing_docs)]
    pub audit: Option<String>,
    #[allow(missing_docs)]
    pub mode: Option<String>,
    #[allow(missing_docs)]
    pub trial: TrialKeys,
    #[allow(missing_docs)]
    #[serde(deserialize_with = "one_or_list")]
    pub site: Site,
    #[allow(missing_docs)]
    pub php: Php,
    #[allow(missing_docs)]
    pub cache: Cache,
    #[allow(missing_docs)]
    #[serde(deserialize_with = "words")]
    pub trusted_proxies: Vec<String>,
    #[allow(missing_docs)]
    #[serde(deserialize_with = "some_words")]
    pub connections_exempt: Option<Vec<String>>,
    #[allow(missing_docs)]
    pub keys: site_rules::raw::Keys,
    #[allow(missing_docs)]
    pub cookies: site_rules::raw::Cookies,
    #[allow(missing_docs)]
    pub rule: Vec<site_rules::raw::Rule>,
    #[allow(missing_docs)]
    pub error_pages: BTreeMap<String, PathBuf>,
    #[allow(missing_docs)]
    pub codings: Codings,
    #[allow(missing_docs)]
    pub access_log: AccessLog,
    #[allow(missing_docs)]
    pub traces: Traces,
    #[allow(missing_docs)]
    pub rewarm: Rewarm,
    #[allow(missing_docs)]
    pub misses: MissesKeys,
    #[allow(missing_docs)]
    pub wake: Vec<Wake>,
    #[allow(missing_docs)]
    pub snapshot: Snapshot,
    #[allow(missing_docs)]
    pub purge: Purge,
    #[allow(missing_docs)]
    pub dialects: Dialects,
    #[allow(missing_docs)]
    pub database: Vec<Database>,
    #[allow(missing_docs)]
    pub change: Vec<change_feed::ChangeRule>,
    #[allow(missing_docs)]
    pub automatic: AutomaticKeys,
    #[allow(missing_docs)]
    pub cluster: ClusterKeys,
    #[allow(missing_docs)]
    pub private: Private,
    #[allow(missing_docs)]
    pub memcached: Memcached,
    #[allow(missing_docs)]
    pub tls: Vec<Tls>,
    #[allow(missing_docs)]
    pub acme: Option<AcmeKeys>,
    #[allow(missing_docs)]
    pub limits: BTreeMap<String, toml::Value>,
}

/// The keys of the `[acme]` table.
#[derive(Debug, Default, Deserialize, Clone)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs)]
pub struct AcmeKeys {
    pub email: Option<String>,
    pub directory: Option<String>,
    #[serde(deserialize_with = "words")]
    pub fallback: Vec<String>,
    pub profile: Option<String>,
    pub eab: Option<EabKeys>,
    pub storage: Option<PathBuf>,
    pub seal_key_file: Option<PathBuf>,
    pub copy: Option<PathBuf>,
}

/// The keys of the `acme.eab` table.
#[derive(Debug, Default, Deserialize, Clone)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs)]
pub struct EabKeys {
    pub key_id: String,
    pub key_file: PathBuf,
}

/// The keys of a `[[database]]` table.
#[derive(Debug, Default, Deserialize, Clone)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Database {
    pub name: Option<String>,
    pub url: String,
    pub password_file: Option<PathBuf>,
    pub on_lag: Option<String>,
    pub lag_max: Option<String>,
    pub barrier: Option<String>,
    pub settle: Option<String>,
    pub slot: Option<String>,
    pub publication: Option<String>,
    pub manage: Option<bool>,
    pub keep_log: Option<String>,
}

/// The keys of the `[automatic]` table.
#[derive(Debug, Default, Deserialize, Clone)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs)]
pub struct AutomaticKeys {
    pub enabled: Option<bool>,
    pub application: Option<String>,
    pub database: Option<String>,
    pub table_prefix: Option<String>,
    pub lifetime_max: Option<String>,
    pub untracked: Option<String>,
    pub content_types: Vec<String>,
    pub look_up: Option<bool>,
    pub capture_directory: Option<PathBuf>,
    pub ignore: Vec<IgnoreKeys>,
}

/// The keys of an `[[automatic.ignore]]` table.
#[derive(Debug, Default, Deserialize, Clone)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct IgnoreKeys {
    pub table: String,
    #[serde(default)]
    pub columns: Vec<String>,
    pub column: Option<String>,
    #[serde(default)]
    pub values: Vec<String>,
}

/// The keys of the `[cluster]` table.
#[derive(Debug, Default, Deserialize, Clone)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs)]
pub struct ClusterKeys {
    pub url: Option<String>,
    pub password_file: Option<PathBuf>,
    pub key: Option<String>,
    pub keep: Option<u64>,
    pub on_lag: Option<String>,
    pub lag_max: Option<String>,
    pub barrier: Option<String>,
    pub unpublished: Option<String>,
}

/// The keys of a `[[tls]]` table.
#[derive(Debug, Deserialize, Clone)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Tls {
    pub certificate: PathBuf,
    pub key: PathBuf,
}

/// The keys of `[site]`, or of one of the tables `[[site]]`.
#[derive(Debug, Default, Deserialize, Clone)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs)]
pub struct Site {
    pub root: Option<PathBuf>,
    #[serde(deserialize_with = "some_words")]
    pub origin: Option<Vec<String>>,
    #[serde(deserialize_with = "some_words")]
    pub origin_backup: Option<Vec<String>>,
    pub origin_tls: Option<OriginTls>,
    pub origin_check: Option<String>,
    pub front_controller: Option<String>,
    #[serde(deserialize_with = "some_words")]
    pub hidden: Option<Vec<String>>,
    #[serde(deserialize_with = "some_words")]
    pub scripts: Option<Vec<String>>,
    pub allow_symlinks: Option<AllowSymlinks>,
    #[serde(deserialize_with = "some_words")]
    pub entry_points: Option<Vec<String>>,
    pub internal_files: BTreeMap<String, PathBuf>,
    pub host: Option<String>,
    #[serde(deserialize_with = "words")]
    pub aliases: Vec<String>,
    pub other_hosts: Option<String>,
    pub canonical_redirect: Option<u16>,
    #[serde(deserialize_with = "words")]
    pub redirect_files: Vec<String>,
    pub memory: Option<String>,
    pub php: Option<Php>,
    pub cache: Option<Cache>,
    pub keys: Option<site_rules::raw::Keys>,
    pub cookies: Option<site_rules::raw::Cookies>,
    pub rule: Option<Vec<site_rules::raw::Rule>>,
    pub error_pages: Option<BTreeMap<String, PathBuf>>,
    pub wake: Option<Vec<Wake>>,
    pub dialects: Option<Dialects>,
    pub database: Option<Vec<Database>>,
    pub change: Option<Vec<change_feed::ChangeRule>>,
    pub automatic: Option<AutomaticKeys>,
    pub cluster: Option<ClusterKeys>,
    pub private: Option<Private>,
    pub mode: Option<String>,
    pub trial: Option<TrialKeys>,
    /// The tables of `[[site]]`; if there are any, all other fields are empty.
    #[serde(skip)]
    pub list: Vec<Site>,
}

/// The keys of `site.origin_tls`.
#[derive(Debug, Default, Deserialize, Clone)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs)]
pub struct OriginTls {
    pub name: Option<String>,
    pub ca_file: Option<PathBuf>,
}

/// The keys of the `[php]` table.
#[derive(Debug, Default, Deserialize, Clone)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs)]
pub struct Php {
    pub at: Option<String>,
    pub binary: Option<PathBuf>,
    pub children: Option<usize>,
    pub user: Option<String>,
    pub env: BTreeMap<String, String>,
    #[serde(deserialize_with = "settings")]
    pub ini: BTreeMap<String, String>,
}

/// The keys of the `[cache]` table.
#[derive(Debug, Default, Deserialize, Clone)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs)]
pub struct Cache {
    pub request_directives: Option<String>,
    pub default_lifetime: Option<String>,
    pub heuristic_percent: Option<u32>,
    pub heuristic_max: Option<String>,
    pub stale_while_revalidate: Option<String>,
    pub stale_if_error: Option<String>,
    pub soft_for: Option<String>,
    pub inactive: Option<String>,
    pub server_timing: Option<bool>,
    pub esi: Option<bool>,
}

/// The keys of a `[[wake]]` table.
#[derive(Debug, Default, Deserialize, Clone)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)]
pub struct Wake {
    pub url: String,
    pub every: String,
}

/// The keys of the `[rewarm]` table.
#[derive(Debug, Default, Deserialize, Clone)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs)]
pub struct Rewarm {
    pub enabled: Option<bool>,
    pub pages_per_second: Option<u32>,
    pub at_once: Option<usize>,
    pub min_uses: Option<u8>,
}

/// The keys of the `[trial]` table.
#[derive(Debug, Default, Deserialize, Clone)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs)]
pub struct TrialKeys {
    pub serve: Option<String>,
    pub budget: Option<String>,
    #[serde(deserialize_with = "words")]
    pub never: Vec<String>,
    #[serde(deserialize_with = "words")]
    pub accept: Vec<String>,
}

/// The keys of the `[misses]` table.
#[derive(Debug, Default, Deserialize, Clone)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs)]
pub struct MissesKeys {
    pub mode: Option<String>,
    pub stale: Option<String>,
    pub exempt: Vec<String>,
    pub resolver: Option<String>,
    pub challenge: Option<String>,
    pub crawlers: Vec<CrawlerKeys>,
}

/// The keys of a `[[misses.crawlers]]` table.
#[derive(Debug, Default, Deserialize, Clone)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs)]
pub struct CrawlerKeys {
    pub name: String,
    pub ranges: Option<PathBuf>,
    pub hosts: Vec<String>,
    pub rate: Option<String>,
}

/// The keys of the `[snapshot]` table.
#[derive(Debug, Default, Deserialize, Clone)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs)]
pub struct Snapshot {
    pub directory: Option<PathBuf>,
    pub every: Option<String>,
    pub max_size: Option<String>,
    pub unwatched: Option<String>,
}

/// The keys of the `[traces]` table.
#[derive(Debug, Default, Deserialize, Clone)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs)]
pub struct Traces {
    pub to: Option<String>,
    pub share: Option<f64>,
    pub service: Option<String>,
}

/// The keys of the `[dialects]` table.
#[derive(Debug, Default, Deserialize, Clone)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs)]
pub struct Dialects {
    pub litespeed: Option<bool>,
    pub litespeed_esi: Option<bool>,
    #[serde(deserialize_with = "words")]
    pub pass_on: Vec<String>,
}

/// The keys of the `[private]` table.
#[derive(Debug, Default, Deserialize, Clone)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs)]
pub struct Private {
    pub enabled: Option<bool>,
    #[serde(deserialize_with = "words")]
    pub cookies: Vec<String>,
    pub pages_per_owner: Option<usize>,
    pub lifetime_max: Option<String>,
}

/// The keys of the `[memcached]` table.
#[derive(Debug, Default, Deserialize, Clone)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs)]
pub struct Memcached {
    pub listen: Option<OneOrMany>,
    pub socket_mode: Option<String>,
    pub item_bytes: Option<String>,
    pub render_time: Option<String>,
}

/// The keys of the `[access_log]` table.
#[derive(Debug, Default, Deserialize, Clone)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs)]
pub struct AccessLog {
    pub to: Option<String>,
    pub format: Option<String>,
    pub buffer: Option<String>,
    pub mask_addresses: Option<bool>,
    pub mask_queries: Option<bool>,
}

/// The keys of the `[codings]` table.
#[derive(Debug, Default, Deserialize, Clone)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs)]
pub struct Codings {
    #[serde(deserialize_with = "some_words")]
    pub make: Option<Vec<String>>,
    #[serde(deserialize_with = "some_words")]
    pub types: Option<Vec<String>>,
    pub min_bytes: Option<u64>,
    pub on_the_way: Option<bool>,
    pub files_beside: Option<bool>,
}

/// The keys of the `[purge]` table.
#[derive(Debug, Default, Deserialize, Clone)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs)]
pub struct Purge {
    #[serde(deserialize_with = "some_words")]
    pub from: Option<Vec<String>>,
    pub token_file: Option<PathBuf>,
    pub get_below: Option<String>,
}
