//! `[automatic]`: whether pages depend on the rows that their render has read (automatic
//! dependencies), and what no page shows.
//!
//! Not here: how statements are read (`footprint`), and how they get here (`origin`, `capture`).

use super::raw;
use super::resolve::{LoadError, wrong};
use super::units::parse_duration;
use crate::config::{Database, DatabaseKind, OriginConfig};
use footprint::profile::{IgnoreRule, SqlProfile};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The default maximum lifetime of a page that declares none; for WordPress, the time for which its nonces
/// are valid at least.
const LIFETIME_MAX: Duration = Duration::from_secs(24 * 60 * 60);
const WORDPRESS_LIFETIME_MAX: Duration = Duration::from_secs(12 * 60 * 60);
/// The maximum number of `[[automatic.ignore]]` tables.
const IGNORED_MAX: usize = 1_000;
/// The applications that have a profile, `library` for one with the PHP library, and `none`.
const APPLICATIONS: &str = "wordpress, mediawiki, library or none";

/// The settings for automatic dependencies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Automatic {
    /// The name of the followed database, whose statements are read.
    pub database: String,
    /// How the statements of a render get here.
    pub capture: CaptureKind,
    /// The directory for the files and sockets of captures, for a php-fpm that Pagewell does not start.
    pub capture_directory: Option<PathBuf>,
    /// Changes that no page shows, and reads of every page that no statement shows.
    pub profile: SqlProfile,
    /// The text before the name of each table of the application, such as `wp_`.
    pub table_prefix: String,
    /// The longest lifetime of a page that declares none itself.
    pub lifetime_max: Duration,
    /// The use of a page that declares a lifetime and whose reads are not known.
    pub untracked: UntrackedPages,
    /// The media types, beside those of pages, of responses without caching headers that are stored; in lower
    /// case, `*` stands for anything.
    pub content_types: Vec<String>,
    /// Whether partners of a changed row are looked up in the database.
    pub partners: PartnerLookups,
}

/// How the statements of a render get here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaptureKind {
    /// From WordPress, by the filters `query` and `pre_option`.
    WordPress,
    /// From the PHP library, which the application has loaded.
    Library,
    /// From a relay between PHP and its database.
    Relay,
}

/// The use of a page that declares a lifetime, has no tags, and whose reads are not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UntrackedPages {
    /// It is not stored.
    Never,
    /// It is stored for a short time; it is not stored if a cache is known to hide reads.
    Short,
    /// It is stored for its lifetime.
    Store,
}

/// Whether partners of a changed row are looked up in the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartnerLookups {
    /// They are looked up.
    Made,
    /// They count as present.
    LeftOut,
}

/// Checks and completes `[automatic]`; `None` if it is off.
pub(super) fn resolve(
    raw: &raw::AutomaticKeys,
    origin: &OriginConfig,
    databases: &[Arc<Database>],
) -> Result<Option<Automatic>, LoadError> {
    let (capture, mut profile, prefix) = match raw.application.as_deref() {
        Some("wordpress") => (CaptureKind::WordPress, SqlProfile::wordpress(), "wp_"),
        Some("mediawiki") => (CaptureKind::Relay, SqlProfile::mediawiki(), ""),
        Some("library") => (CaptureKind::Library, SqlProfile::default(), ""),
        None | Some("none") => (CaptureKind::Relay, SqlProfile::default(), ""),
        Some(other) => {
            return wrong("automatic.application", format!("{other:?}: write {APPLICATIONS}"));
        }
    };
    if raw.ignore.len() > IGNORED_MAX {
        return wrong("automatic.ignore", format!("at most {IGNORED_MAX} tables"));
    }
    for ignored in &raw.ignore {
        profile.rules.push(rule(ignored)?);
    }
    let lifetime_max = match raw.lifetime_max.as_deref().map(parse_duration) {
        None if capture == CaptureKind::WordPress => WORDPRESS_LIFETIME_MAX,
        None => LIFETIME_MAX,
        Some(Ok(lifetime)) if !lifetime.is_zero() => lifetime,
        Some(Ok(_)) => {
            return wrong(
                "automatic.lifetime_max",
                "must be at least 1s; `enabled = false` turns it off",
            );
        }
        Some(Err(why)) => return wrong("automatic.lifetime_max", why),
    };
    let untracked = untracked(raw.untracked.as_deref())?;
    let content_types = content_types(&raw.content_types)?;
    let partners = match raw.look_up {
        None | Some(true) => PartnerLookups::Made,
        Some(false) => PartnerLookups::LeftOut,
    };
    if !raw.enabled.unwrap_or(false) {
        return Ok(None);
    }
    let database = database(raw.database.as_deref(), databases)?;
    let uses_tls = |known: &Arc<Database>| known.name == database && known.server.tls.is_some();
    if capture == CaptureKind::Relay && databases.iter().any(uses_tls) {
        return wrong(
            "automatic.enabled",
            format!(
                "PHP's connections to the database {database} would be relayed without TLS, which its URL asks \
                 for: name its Unix socket in the URL (?socket=...), or leave ssl-mode out if the network is trusted"
            ),
        );
    }
    let capture_directory = capture_directory(raw.capture_directory.as_ref(), origin)?;
    let table_prefix = raw.table_prefix.clone().unwrap_or_else(|| prefix.to_owned());
    Ok(Some(Automatic {
        database,
        capture,
        capture_directory,
        profile,
        table_prefix,
        lifetime_max,
        untracked,
        content_types,
        partners,
    }))
}

/// The treatment of a page that declares a lifetime and whose reads are not known.
fn untracked(named: Option<&str>) -> Result<UntrackedPages, LoadError> {
    match named {
        None | Some("short") => Ok(UntrackedPages::Short),
        Some("never") => Ok(UntrackedPages::Never),
        Some("store") => Ok(UntrackedPages::Store),
        Some(other) => wrong("automatic.untracked", format!("{other:?}: never, short or store")),
    }
}

/// The content types that are pages beside those that always are, in lower case.
fn content_types(named: &[String]) -> Result<Vec<String>, LoadError> {
    match named.iter().find(|kind| !kind.contains('/') || has_inner_star(kind)) {
        Some(bad) => wrong(
            "automatic.content_types",
            format!(
                "{bad:?}: write for example application/json, or application/* with one * at the end"
            ),
        ),
        None => Ok(named.iter().map(|kind| kind.to_ascii_lowercase()).collect()),
    }
}

/// Whether a pattern has an asterisk elsewhere than at its end, where it stands for anything.
fn has_inner_star(pattern: &str) -> bool {
    pattern.strip_suffix('*').unwrap_or(pattern).contains('*')
}

/// The directory for captures: one that PHP can enter, which only Pagewell's own php-fpm has already.
fn capture_directory(
    named: Option<&PathBuf>,
    origin: &OriginConfig,
) -> Result<Option<PathBuf>, LoadError> {
    const KEY: &str = "automatic.capture_directory";
    match (origin, named) {
        (OriginConfig::Http(_), _) => wrong(
            "automatic.enabled",
            "needs PHP over FastCGI: set site.root, and php.at if php-fpm is running",
        ),
        (OriginConfig::FastCgi(_), None) => wrong(
            KEY,
            "is needed for a php-fpm that is running: a directory in which PHP finds the sockets of Pagewell, \
             such as \"/var/lib/pagewell/capture\"",
        ),
        (OriginConfig::FastCgi(_), Some(directory)) if directory.is_absolute() => {
            Ok(Some(directory.clone()))
        }
        (OriginConfig::FastCgi(_), Some(directory)) => {
            wrong(KEY, format!("{}: write an absolute path", directory.display()))
        }
        (OriginConfig::OwnPhp(_), Some(_)) => {
            wrong(KEY, "is for a php-fpm that is running (php.at); Pagewell's own needs none")
        }
        (OriginConfig::OwnPhp(_), None) => Ok(None),
    }
}

fn rule(ignored: &raw::IgnoreKeys) -> Result<IgnoreRule, LoadError> {
    let table = ignored.table.clone();
    match (&ignored.column, ignored.values.is_empty(), ignored.columns.is_empty()) {
        (None, true, _) => Ok(IgnoreRule::Columns { table, columns: ignored.columns.clone() }),
        (Some(_), false, true) if ignored.values.iter().any(|value| has_inner_star(value)) => {
            wrong("automatic.ignore", format!("{table}: in `values`, * stands only at the end"))
        }
        (Some(column), false, true) => {
            let (column, patterns) = (column.clone(), ignored.values.clone());
            Ok(IgnoreRule::Row { table, column, patterns })
        }
        _ => wrong(
            "automatic.ignore",
            format!(
                "{table}: write `columns`, or `column` with `values`, or neither for the whole table"
            ),
        ),
    }
}

/// The database whose statements are read: the named one, or the only one that can be.
fn database(named: Option<&str>, databases: &[Arc<Database>]) -> Result<String, LoadError> {
    let is_readable =
        |database: &&Arc<Database>| matches!(database.server.kind, DatabaseKind::MariaDb);
    let readable: Vec<&str> =
        databases.iter().filter(is_readable).map(|database| database.name.as_str()).collect();
    match (named, &readable[..]) {
        (_, []) => wrong(
            "automatic.enabled",
            "needs a [[database]] of MariaDB or MySQL, the one that the application uses",
        ),
        (None, [only]) => Ok((*only).to_owned()),
        (None, _) => wrong("automatic.database", format!("name one of {}", readable.join(", "))),
        (Some(name), _) if readable.contains(&name) => Ok(name.to_owned()),
        (Some(name), _) => wrong(
            "automatic.database",
            format!(
                "{name:?} is no database of MariaDB or MySQL here; there is {}",
                readable.join(", ")
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    use crate::config::{Automatic, CaptureKind, PartnerLookups, resolve};
    use std::time::Duration;

    const DATABASE: &str = "[[database]]\nurl = \"mysql://p@localhost/shop?socket=/x\"\n";

    fn read(text: &str) -> Result<Option<Automatic>, String> {
        // A document root needs a script.
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../php/capture");
        let site = format!("site.root = {root:?}\nsite.front_controller = \"wordpress.php\"\n");
        let file = toml::from_str(&format!("{site}{text}")).map_err(|error| error.to_string())?;
        resolve(&file).map(|config| config.automatic).map_err(|error| error.0)
    }

    #[test]
    fn it_reads_the_only_database_of_its_kind() {
        let on = format!("{DATABASE}[automatic]\nenabled = true\n");
        let automatic = read(&on).expect("it can be used").expect("it is on");
        assert_eq!((automatic.database.as_str(), automatic.table_prefix.as_str()), ("shop", ""));
        assert_eq!(automatic.capture, CaptureKind::Relay);
        assert_eq!(automatic.lifetime_max, Duration::from_secs(86_400));
        assert_eq!(automatic.partners, PartnerLookups::Made);
        let wordpress = format!("{on}application = \"wordpress\"\nlook_up = false\n");
        let automatic = read(&wordpress).expect("it can be used").expect("it is on");
        assert_eq!((automatic.table_prefix.as_str(), automatic.profile.rules.len()), ("wp_", 5));
        assert_eq!(automatic.capture, CaptureKind::WordPress);
        assert_eq!(automatic.partners, PartnerLookups::LeftOut);
    }

    /// The connections of the library are PHP's own, so TLS is no obstacle.
    #[test]
    fn the_library_needs_no_socket_of_the_database() {
        let text = "[[database]]\nurl = \"mysql://p@db/shop?ssl-mode=required\"\n[automatic]\nenabled = true\napplication = \"library\"\n";
        let automatic = read(text).expect("it can be used").expect("it is on");
        assert_eq!(automatic.capture, CaptureKind::Library);
        assert_eq!((automatic.database.as_str(), automatic.table_prefix.as_str()), ("shop", ""));
        assert_eq!(automatic.lifetime_max, Duration::from_secs(86_400));
    }

    #[test]
    fn invalid_values_are_refused() {
        for (text, part) in [
            ("[automatic]\nenabled = true", "needs a [[database]]"),
            (&format!("{DATABASE}[automatic]\nenabled = true\ndatabase = \"x\""), "there is shop"),
            ("[automatic]\napplication = \"x\"", "wordpress, mediawiki, library or none"),
            ("[automatic]\nlifetime_max = \"0s\"", "at least 1s"),
            ("[automatic]\nuntracked = \"maybe\"", "never, short or store"),
            ("[automatic]\ncontent_types = [\"json\"]", "application/json"),
            ("[automatic]\ncontent_types = [\"application/**\"]", "one * at the end"),
            ("[automatic]\ncontent_types = [\"*/json\"]", "one * at the end"),
            (
                "[automatic]\nignore = [{ table = \"a\", column = \"b\", values = [\"x**\"] }]",
                "only at the end",
            ),
            ("[automatic]\nignore = [{ table = \"a\", column = \"b\" }]", "with `values`"),
            (
                "[[database]]\nurl = \"mysql://p@db/shop?ssl-mode=required\"\n[automatic]\nenabled = true",
                "relayed without TLS",
            ),
            (DATABASE, "no [[change]] rule"),
            (&format!("php.at = \"unix:/x\"\n{DATABASE}[automatic]\nenabled = true"), "is needed"),
            (
                &format!("{DATABASE}[automatic]\nenabled = true\ncapture_directory = \"/x\""),
                "Pagewell's own needs none",
            ),
        ] {
            let said = read(text).expect_err("it is refused");
            assert!(said.contains(part), "{text}: {said}");
        }
        assert_eq!(read("[automatic]\nenabled = false").expect("it can be used"), None);
    }
}
