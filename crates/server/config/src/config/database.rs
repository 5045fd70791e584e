//! `[[database]]` and `[[change]]`: which database is followed, and which tags its rows touch, as
//! used. Rules are compiled here and held against the database's schema when it is connected to.
//! The address is a URL; percent-encoded parts are decoded. Of several databases of a site each has a
//! name, by which the rules say whose they are.

pub(super) mod url;

use super::raw;
use super::resolve::{LoadError, wrong};
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
/// The longest that a write may be held, and that a change may be open without being shown settled.
pub(super) const WAIT_MAX: Duration = Duration::from_secs(60);

/// The most databases of a site.
const DATABASES_MAX: usize = 16;
/// The longest name of one.
const NAME_MAX: usize = 64;
/// What is read in a few seconds when a stream is taken up.
const KEEP_BYTES: u64 = 256 << 20;
/// The longest name in PostgreSQL (`NAMEDATALEN`).
const SLOT_MAX: usize = 63;

/// A database that is followed.
#[derive(Clone, Debug)]
pub struct Database {
    /// What it is called, here and in the log; no other of the site is called so.
    pub name: String,
    /// Where it is, and who follows it.
    pub server: DatabaseServer,
    /// What its rows touch.
    pub rules: Rules,
    /// What happens while it is not followed.
    pub on_lag: OnLag,
    /// How long the answer to a write is held.
    pub barrier: Duration,
    /// How long a change stays open where nothing shows it settled.
    pub settle: Duration,
}

/// A server, and what is to be followed of it.
#[derive(Clone, Debug)]
pub struct DatabaseServer {
    /// What it speaks.
    pub kind: DatabaseKind,
    /// Where it is.
    pub place: Place,
    /// Who follows it, and the database's name.
    pub account: Account,
    /// How TLS is used; none: it is not.
    pub tls: Option<DatabaseTls>,
    /// By what a place in the stream is named.
    pub by: PositionBy,
}

/// By what a place in the stream is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PositionBy {
    /// GTIDs, where the server has them; or else as `File`.
    Gtid,
    /// A file of the log and an offset in it.
    File,
}

/// TLS to a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseTls {
    /// Whom to believe.
    pub trust: Trust,
    /// A file with the certificates that are trusted; none: those of the system.
    pub authorities: Option<PathBuf>,
}

/// Whose certificate is believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// `required`: anybody's.
    Anybody,
    /// `verify-ca`: one that is signed by somebody who is trusted.
    Signed,
    /// `verify-full`: one that is signed, and for the host that was asked for.
    SignedForHost,
}

/// What a database speaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DatabaseKind {
    /// What MariaDB and MySQL speak.
    MariaDb,
    /// What PostgreSQL speaks, and by what it is followed.
    Postgres(Replication),
    /// What Valkey and Redis speak: a stream of changes that machines tell each other.
    Valkey(SharedStream),
}

/// A stream by which machines tell each other what was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedStream {
    /// Its key.
    pub key: String,
    /// How many entries it keeps, about.
    pub keep: u64,
}

/// By what a PostgreSQL is followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replication {
    /// The slot, which has one reader.
    pub slot: String,
    /// The publication.
    pub publication: String,
    /// Whether both may be made.
    pub manage: Manage,
    /// How many bytes of its log the server may be made to keep for snapshots.
    pub keep_bytes: u64,
}

/// Whether slot and publication may be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manage {
    /// They may.
    Yes,
    /// An operator makes them.
    No,
}

/// Who follows a database.
#[derive(Clone, PartialEq, Eq)]
pub struct Account {
    /// The account's name.
    pub user: String,
    /// Its password; may be empty.
    pub password: String,
    /// The database's name.
    pub database: String,
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Account {{ user: {:?}, database: {:?} }}", self.user, self.database)
    }
}

/// Where a database is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A host and a port.
    Tcp(String, u16),
    /// A Unix socket.
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

/// What happens while the database is not followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnLag {
    /// Pages are served as they are.
    Serve,
    /// After so long they are dropped, and none is stored.
    BypassAfter(Duration),
}

/// Checks and completes `[[database]]` and `[[change]]`.
pub(super) fn resolve(
    databases: &[raw::Database],
    changes: &[ChangeRule],
) -> Result<Vec<Arc<Database>>, LoadError> {
    match (databases.len(), changes.is_empty()) {
        (0, true) => return Ok(Vec::new()),
        (0, false) => return wrong("change", "there is no [[database]] that they could be about"),
        (1.., true) => return wrong("change", "no [[change]] says what the database's rows touch"),
        (count, false) if count > DATABASES_MAX => {
            return wrong("database", format!("{DATABASES_MAX} databases a site at most"));
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

/// The databases alone, by name: those of a configuration, or the one of a URL.
///
/// # Errors
/// What cannot be used.
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

/// Where a database is, and who follows it.
fn server(raw: &raw::Database) -> Result<DatabaseServer, LoadError> {
    let read = url::read(&raw.url).or_else(|why| wrong("database.url", why))?;
    let url::Read { dialect, place, account, tls, by } = read;
    let kind = kind(raw, dialect)?;
    let mut server = DatabaseServer { kind, place, account, tls, by };
    if let Some(path) = &raw.password_file {
        server.account.password = password("database.password_file", path)?;
    }
    Ok(server)
}

/// A password that stands in a file.
pub(super) fn password(key: &str, path: &Path) -> Result<String, LoadError> {
    let text = std::fs::read_to_string(path);
    let text = text.or_else(|e| wrong(key, format!("{}: {e}", path.display())))?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

fn kind(raw: &raw::Database, dialect: Dialect) -> Result<DatabaseKind, LoadError> {
    match dialect {
        Dialect::Postgres => Ok(DatabaseKind::Postgres(replication(raw)?)),
        // `url::read` reads none.
        Dialect::Valkey => wrong("database.url", "a stream is given as [stream]"),
        Dialect::MySql => {
            let postgres_only = [
                ("database.slot", raw.slot.is_some()),
                ("database.publication", raw.publication.is_some()),
                ("database.manage", raw.manage.is_some()),
                ("database.keep_log", raw.keep_log.is_some()),
            ];
            match postgres_only.into_iter().find(|(_, is_set)| *is_set) {
                Some((key, _)) => wrong(key, "only PostgreSQL has one: the URL is of another"),
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
        let why = format!("{slot:?}: 1 to {SLOT_MAX} small letters, digits and underscores");
        return wrong("database.slot", why);
    }
    if publication.is_empty() || publication.len() > SLOT_MAX || publication.contains('\0') {
        return wrong("database.publication", format!("{publication:?}: 1 to {SLOT_MAX} bytes"));
    }
    let manage = if raw.manage == Some(true) { Manage::Yes } else { Manage::No };
    let keep_bytes = match raw.keep_log.as_deref().map(parse_bytes) {
        None => KEEP_BYTES,
        Some(Ok(bytes)) => bytes,
        Some(Err(error)) => return wrong("database.keep_log", error),
    };
    Ok(Replication { slot, publication, manage, keep_bytes })
}

/// What each is called: as it says, or else as the database is.
fn names(databases: &[raw::Database], found: &[DatabaseServer]) -> Result<Vec<String>, LoadError> {
    let mut names = Vec::new();
    for (raw, server) in databases.iter().zip(found) {
        let name = raw.name.as_ref().unwrap_or(&server.account.database);
        if raw.name.is_some() && (name.is_empty() || name.len() > NAME_MAX) {
            return wrong("database.name", format!("{name:?}: 1 to {NAME_MAX} bytes"));
        }
        if names.contains(name) {
            let why = format!("two are called {name:?}: give each a name of its own");
            return wrong("database.name", why);
        }
        names.push(name.clone());
    }
    Ok(names)
}

/// Whether each rule says whose it is, where that is a question.
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
                let why = format!("table {table}: say of which database it is: {}", there());
                return wrong("change.database", why);
            }
            _ => {}
        }
    }
    let said: BTreeSet<&String> =
        changes.iter().filter_map(|rule| rule.database.as_ref()).collect();
    match names.iter().find(|name| names.len() > 1 && !said.contains(name)) {
        Some(name) => {
            wrong("change", format!("no [[change]] says what the rows of {name:?} touch"))
        }
        None => Ok(()),
    }
}

/// The rules of one database.
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

/// What happens while it is not followed, by two keys of this table.
pub(super) fn on_lag(
    table: &str,
    on_lag: &Option<String>,
    lag_max: &Option<String>,
) -> Result<OnLag, LoadError> {
    let lag_max = wait(&format!("{table}.lag_max"), lag_max, LAG_MAX, Duration::MAX)?;
    match on_lag.as_deref() {
        None | Some("bypass") => Ok(OnLag::BypassAfter(lag_max)),
        Some("serve") => Ok(OnLag::Serve),
        Some(other) => wrong(&format!("{table}.on_lag"), format!("{other:?}: serve or bypass")),
    }
}

/// How long somebody waits.
pub(super) fn wait(
    key: &str,
    text: &Option<String>,
    default: Duration,
    most: Duration,
) -> Result<Duration, LoadError> {
    let Some(text) = text else { return Ok(default) };
    match parse_duration(text) {
        Ok(time) if time <= most => Ok(time),
        Ok(_) => wrong(key, format!("{text:?}: {most:?} at most")),
        Err(error) => wrong(key, error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(database: &str, changes: &str) -> Result<Vec<Arc<Database>>, String> {
        let text = format!("{database}\n{changes}");
        let file: raw::File = toml::from_str(&text).map_err(|error| error.to_string())?;
        resolve(&file.database, &file.change).map_err(|error| error.0)
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
    fn what_cannot_be_used_says_why() {
        let url = "[[database]]\nurl = \"mysql://a@b/n\"";
        let other = "[[database]]\nname = \"m\"\nurl = \"mysql://a@b/n\"";
        assert!(read("", "").expect("nothing").is_empty());
        let found = &read(url, RULE).expect("it can be used")[0];
        assert_eq!((found.name.as_str(), found.on_lag), ("n", OnLag::BypassAfter(LAG_MAX)));
        for (database, changes, part) in [
            ("", RULE, "no [[database]]"),
            (url, "", "no [[change]]"),
            (&format!("{url}\n{url}"), RULE, "name of its own"),
            (&format!("{url}\n{other}"), RULE, "of which database it is: n, m"),
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
