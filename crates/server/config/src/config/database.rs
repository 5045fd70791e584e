//! `[[database]]` and `[[change]]` as used: the databases that are followed, and the rules that map
//! changed rows to tags. Rules are compiled here and checked against the schema when Pagewell
//! connects. The address is a URL; percent-encoded parts are decoded. If a site has several
//! databases, each has a name, to which its rules refer.

pub(super) mod url;

use super::raw;
use super::resolve::{LoadError, SECRET_BYTES_MAX, wrong};
use super::units::{parse_bytes, parse_duration};
use change_feed::{ChangeRule, Rules};
use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use url::Dialect;

const LAG_MAX: Duration = Duration::from_secs(10);
pub(super) const BARRIER: Duration = Duration::from_millis(250);
const SETTLE: Duration = Duration::from_millis(100);
/// Maximum time for which a write may be held, and for which a change may stay open without being
/// settled.
pub(super) const WAIT_MAX: Duration = Duration::from_secs(60);

/// Maximum number of databases of a site.
const DATABASES_MAX: usize = 16;
/// Maximum length of a database's name.
const NAME_MAX: usize = 64;
/// The default for `keep_log`: the amount that is read in a few seconds when a stream is resumed.
const KEEP_BYTES: u64 = 256 << 20;
/// Maximum length of a name in PostgreSQL (`NAMEDATALEN`).
const SLOT_MAX: usize = 63;

/// A database that is followed for changes.
#[derive(Clone, Debug)]
pub struct Database {
    /// The name in the configuration and in the log; unique within the site.
    pub name: String,
    /// The server, and the account that reads it.
    pub server: DatabaseServer,
    /// The rules that map its rows to tags.
    pub rules: Rules,
    /// The behaviour while the database is not followed.
    pub on_lag: OnLag,
    /// Maximum time for which the response to a write is held.
    pub barrier: Duration,
    /// Time after which a change counts as settled if the database does not report that.
    pub settle: Duration,
}

/// A database server, and the part of it that is followed.
#[derive(Clone, Debug)]
pub struct DatabaseServer {
    /// The protocol of the server.
    pub kind: DatabaseKind,
    /// The address of the server.
    pub place: Place,
    /// The account that reads the changes, and the database's name.
    pub account: Account,
    /// The TLS settings; `None`: no TLS.
    pub tls: Option<DatabaseTls>,
    /// The kind of position in the change stream.
    pub by: PositionBy,
}

/// The kind of position in a change stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PositionBy {
    /// GTIDs if the server supports them; otherwise as `File`.
    Gtid,
    /// A log file and an offset in it.
    File,
}

/// The TLS settings for a database connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseTls {
    /// How the server's certificate is verified.
    pub trust: Trust,
    /// A file with the trusted certificates; `None`: those of the system.
    pub authorities: Option<PathBuf>,
}

/// How a server's certificate is verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// `required`: the certificate is not verified.
    Anybody,
    /// `verify-ca`: it must be signed by a trusted authority.
    Signed,
    /// `verify-full`: it must be signed, and issued for the requested host.
    SignedForHost,
}

/// The protocol that a database uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DatabaseKind {
    /// The protocol of MariaDB and MySQL.
    MariaDb,
    /// The protocol of PostgreSQL, with its replication settings.
    Postgres(Replication),
    /// The protocol of Valkey and Redis: a stream through which nodes exchange invalidations.
    Valkey(SharedStream),
}

/// A stream through which nodes exchange invalidations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedStream {
    /// The key of the stream.
    pub key: String,
    /// The approximate number of entries that it keeps.
    pub keep: u64,
    /// The behaviour of a node that cannot publish.
    pub unpublished: UnpublishedWrites,
}

/// The behaviour of a node of a cluster towards writes while it cannot publish their changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnpublishedWrites {
    /// It accepts them; their changes reach the other nodes later.
    Accept,
    /// It refuses them, and the other nodes purge their pages when it has become silent.
    Refuse,
}

/// The replication settings for PostgreSQL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replication {
    /// The replication slot, which has one reader.
    pub slot: String,
    /// The name of the publication.
    pub publication: String,
    /// Whether Pagewell may create both.
    pub manage: Manage,
    /// Maximum amount of log that the server retains for snapshots, in bytes.
    pub keep_bytes: u64,
}

/// Whether Pagewell may create the slot and the publication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manage {
    /// Pagewell creates them if they are missing.
    Yes,
    /// An operator has to create them.
    No,
}

/// The account that reads a database's changes.
#[derive(Clone, PartialEq, Eq)]
pub struct Account {
    /// The account's user name.
    pub user: String,
    /// The account's password; may be empty.
    pub password: String,
    /// The name of the database.
    pub database: String,
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Account {{ user: {:?}, database: {:?} }}", self.user, self.database)
    }
}

/// The address of a database server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A host name and a TCP port.
    Tcp(String, u16),
    /// The path of a Unix socket.
    Unix(PathBuf),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Tcp(host, port) => write!(f, "{host}:{port}"),
            Place::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// The behaviour while the database is not followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnLag {
    /// Stored pages are served as they are.
    Serve,
    /// After this time all pages are purged, and none is stored.
    BypassAfter(Duration),
}

/// Checks and completes `[[database]]` and `[[change]]`.
pub(super) fn resolve(file: &raw::File) -> Result<Vec<Arc<Database>>, LoadError> {
    let (databases, changes) = (&file.database[..], &file.change[..]);
    let is_automatic = file.automatic.enabled.unwrap_or(false);
    match (databases.len(), changes.is_empty()) {
        (0, true) => return Ok(Vec::new()),
        (0, false) => return wrong("change", "there is no [[database]] for these rules"),
        (1.., true) if !is_automatic => {
            return wrong(
                "change",
                "there is no [[change]] rule for the database, and [automatic] is off",
            );
        }
        (count, false) if count > DATABASES_MAX => {
            return wrong("database", format!("at most {DATABASES_MAX} databases for each site"));
        }
        _ => {}
    }
    let found = databases.iter().map(server).collect::<Result<Vec<_>, _>>()?;
    let names = names(databases, &found)?;
    whose(changes, &names)?;
    let mut resolved = Vec::new();
    for ((raw, server), name) in databases.iter().zip(found).zip(&names) {
        resolved.push(Arc::new(one(raw, server, name, own(changes, name, names.len()))?));
    }
    Ok(resolved)
}

/// Returns the databases by name, without rules: those of a configuration, or the one of a URL.
///
/// # Errors
/// The value that cannot be used.
pub fn database_servers(
    databases: &[raw::Database],
    url: Option<&str>,
) -> Result<Vec<(String, DatabaseServer)>, LoadError> {
    if let Some(url) = url {
        let raw = raw::Database { url: url.to_owned(), ..raw::Database::default() };
        let server = server(&raw)?;
        return Ok(vec![(server.account.database.clone(), server)]);
    }
    let found = databases.iter().map(server).collect::<Result<Vec<_>, _>>()?;
    let name = |raw: &raw::Database, server: &DatabaseServer| {
        raw.name.clone().unwrap_or_else(|| server.account.database.clone())
    };
    let named = databases.iter().zip(found).map(|(raw, server)| (name(raw, &server), server));
    Ok(named.collect())
}

/// Parses the address and the account of a database.
fn server(raw: &raw::Database) -> Result<DatabaseServer, LoadError> {
    let read = url::read(&raw.url).or_else(|why| wrong("database.url", why))?;
    let url::DatabaseUrl { dialect, place, account, tls, by } = read;
    let kind = kind(raw, dialect)?;
    let mut server = DatabaseServer { kind, place, account, tls, by };
    if let Some(path) = &raw.password_file {
        server.account.password = password("database.password_file", path)?;
    }
    Ok(server)
}

/// Reads a password from a file.
pub(super) fn password(key: &str, path: &Path) -> Result<String, LoadError> {
    let text = trusted_files::read_text(path, SECRET_BYTES_MAX);
    let text = text.or_else(|e| wrong(key, format!("{}: {e}", path.display())))?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

fn kind(raw: &raw::Database, dialect: Dialect) -> Result<DatabaseKind, LoadError> {
    match dialect {
        Dialect::Postgres => Ok(DatabaseKind::Postgres(replication(raw)?)),
        // `url::read` does not return this variant.
        Dialect::Valkey => wrong("database.url", "write this URL in [cluster]"),
        Dialect::MySql => {
            let postgres_only = [
                ("database.slot", raw.slot.is_some()),
                ("database.publication", raw.publication.is_some()),
                ("database.manage", raw.manage.is_some()),
                ("database.keep_log", raw.keep_log.is_some()),
            ];
            match postgres_only.into_iter().find(|(_, is_set)| *is_set) {
                Some((key, _)) => {
                    wrong(key, "is for PostgreSQL only, and the URL is for another database")
                }
                None => Ok(DatabaseKind::MariaDb),
            }
        }
    }
}

fn replication(raw: &raw::Database) -> Result<Replication, LoadError> {
    let name = |text: &Option<String>| text.clone().unwrap_or_else(|| "pagewell".into());
    let (slot, publication) = (name(&raw.slot), name(&raw.publication));
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    if slot.is_empty() || slot.len() > SLOT_MAX || !slot.bytes().all(is_plain) {
        let why =
            format!("{slot:?}: write 1 to {SLOT_MAX} lower-case letters, digits and underscores");
        return wrong("database.slot", why);
    }
    if publication.is_empty() || publication.len() > SLOT_MAX || publication.contains('\0') {
        return wrong(
            "database.publication",
            format!("{publication:?}: must have 1 to {SLOT_MAX} bytes"),
        );
    }
    let manage = if raw.manage == Some(true) { Manage::Yes } else { Manage::No };
    let keep_bytes = match raw.keep_log.as_deref().map(parse_bytes) {
        None => KEEP_BYTES,
        Some(Ok(bytes)) => bytes,
        Some(Err(error)) => return wrong("database.keep_log", error),
    };
    Ok(Replication { slot, publication, manage, keep_bytes })
}

/// Returns the name of each database: the configured one, or else the database's own.
fn names(databases: &[raw::Database], found: &[DatabaseServer]) -> Result<Vec<String>, LoadError> {
    let mut names = Vec::new();
    for (raw, server) in databases.iter().zip(found) {
        let name = raw.name.as_ref().unwrap_or(&server.account.database);
        if raw.name.is_some() && (name.is_empty() || name.len() > NAME_MAX) {
            return wrong("database.name", format!("{name:?}: must have 1 to {NAME_MAX} bytes"));
        }
        if names.contains(name) {
            let why = format!("two databases are called {name:?}: give each a name of its own");
            return wrong("database.name", why);
        }
        names.push(name.clone());
    }
    Ok(names)
}

/// Checks that each rule names its database, if the site has several.
fn whose(changes: &[ChangeRule], names: &[String]) -> Result<(), LoadError> {
    let there = || names.join(", ");
    for change in changes {
        let table = &change.table;
        match &change.database {
            Some(name) if !names.contains(name) => {
                let why = format!(
                    "table {table}: no [[database]] is called {name:?}; there is: {}",
                    there()
                );
                return wrong("change.database", why);
            }
            None if names.len() > 1 => {
                let why = format!("table {table}: set database to one of: {}", there());
                return wrong("change.database", why);
            }
            _ => {}
        }
    }
    let said: BTreeSet<&String> =
        changes.iter().filter_map(|rule| rule.database.as_ref()).collect();
    match names.iter().find(|name| names.len() > 1 && !said.contains(name)) {
        Some(name) => {
            wrong("change", format!("there is no [[change]] rule for the rows of {name:?}"))
        }
        None => Ok(()),
    }
}

/// Selects the rules of one database.
fn own(changes: &[ChangeRule], name: &str, of: usize) -> Vec<ChangeRule> {
    let is_own = |rule: &&ChangeRule| of == 1 || rule.database.as_deref() == Some(name);
    changes.iter().filter(is_own).cloned().collect()
}

fn one(
    raw: &raw::Database,
    server: DatabaseServer,
    name: &str,
    changes: Vec<ChangeRule>,
) -> Result<Database, LoadError> {
    let rules = Rules::compile(&changes).or_else(|error| wrong("change", error))?;
    Ok(Database {
        name: name.to_owned(),
        server,
        rules,
        on_lag: on_lag("database", &raw.on_lag, &raw.lag_max)?,
        barrier: wait("database.barrier", &raw.barrier, BARRIER, WAIT_MAX)?,
        settle: wait("database.settle", &raw.settle, SETTLE, WAIT_MAX)?,
    })
}

/// Parses the behaviour while it is not followed from two keys of this table.
pub(super) fn on_lag(
    table: &str,
    on_lag: &Option<String>,
    lag_max: &Option<String>,
) -> Result<OnLag, LoadError> {
    let lag_max = wait(&format!("{table}.lag_max"), lag_max, LAG_MAX, Duration::MAX)?;
    match on_lag.as_deref() {
        None | Some("bypass") => Ok(OnLag::BypassAfter(lag_max)),
        Some("serve") => Ok(OnLag::Serve),
        Some(other) => {
            wrong(&format!("{table}.on_lag"), format!("{other:?}: must be serve or bypass"))
        }
    }
}

/// Parses a waiting time.
pub(super) fn wait(
    key: &str,
    text: &Option<String>,
    default: Duration,
    most: Duration,
) -> Result<Duration, LoadError> {
    let Some(text) = text else { return Ok(default) };
    match parse_duration(text) {
        Ok(time) if time <= most => Ok(time),
        Ok(_) => wrong(key, format!("{text:?}: must be at most {most:?}")),
        Err(error) => wrong(key, error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(database: &str, changes: &str) -> Result<Vec<Arc<Database>>, String> {
        let text = format!("{database}\n{changes}");
        let file: raw::File = toml::from_str(&text).map_err(|error| error.to_string())?;
        resolve(&file).map_err(|error| error.0)
    }

    const RULE: &str = "[[change]]\ntable = \"news\"\ntags = [\"news\"]";

    #[test]
    fn of_several_each_has_its_own_rules() {
        let url = "[[database]]\nurl = \"mysql://a@b/n\"\n";
        let rules = format!("{RULE}\ndatabase = \"n\"\n{RULE}\ndatabase = \"m\"\n");
        let found = read(&format!("{url}{url}name = \"m\""), &rules).expect("both can be used");
        let names: Vec<&str> = found.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["n", "m"]);
        assert_eq!(found[0].rules, found[1].rules);
        assert!(!found[0].rules.is_empty());
    }

    #[test]
    fn an_invalid_value_is_refused_with_a_reason() {
        let url = "[[database]]\nurl = \"mysql://a@b/n\"";
        let other = "[[database]]\nname = \"m\"\nurl = \"mysql://a@b/n\"";
        assert!(read("", "").expect("nothing").is_empty());
        let found = &read(url, RULE).expect("it can be used")[0];
        assert_eq!((found.name.as_str(), found.on_lag), ("n", OnLag::BypassAfter(LAG_MAX)));
        for (database, changes, part) in [
            ("", RULE, "no [[database]]"),
            (url, "", "no [[change]]"),
            (&format!("{url}\n{url}"), RULE, "name of its own"),
            (&format!("{url}\n{other}"), RULE, "set database to one of: n, m"),
            (&format!("{url}\n{other}"), &format!("{RULE}\ndatabase = \"n\""), "rows of \"m\""),
            (url, &format!("{RULE}\ndatabase = \"m\""), "is called \"m\"; there is: n"),
            (&format!("{url}\nname = \"\""), RULE, "1 to 64 bytes"),
            (&format!("{url}\non_lag = \"x\""), RULE, "serve or bypass"),
            (&format!("{url}\nbarrier = \"2m\""), RULE, "at most"),
            (&format!("{url}\nlag_max = \"soon\""), RULE, "database.lag_max"),
            (&format!("{url}\npassword_file = \"/no/such\""), RULE, "/no/such"),
            (url, "[[change]]\ntable = \"a\"\ntags = [\"{\"]", "brace"),
            (url, "[[change]]\ntable = \"a\"\ntags = [\"b\"]\ntag = 1", "unknown field"),
        ] {
            let said = read(database, changes).expect_err("refused");
            assert!(said.contains(part), "{part}: {said}");
        }
    }
}
