//! The address of a database as a URL: protocol, server, account and database name.
//!
//! Forms: `mysql://user:password@host:port/name?socket=/path`,
//! `postgres://user:password@host:port/name?host=/directory`, and for a stream
//! `redis://user:password@host:port/number?socket=/path`. Further parameters set TLS and the kind
//! of position. Percent-encoded parts are decoded (RFC 3986 section 2.1). An unknown parameter is
//! an error. No connection is made here.

use super::{Account, DatabaseTls, Place, PositionBy, Trust};
use http_fields::percent::decode_strictly;
use std::borrow::Cow;

/// The protocol, according to the URL's scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// MariaDB and MySQL: `mysql://`, `mariadb://`.
    MySql,
    /// PostgreSQL: `postgres://`, `postgresql://`.
    Postgres,
    /// A stream: `redis://`, `valkey://`; over TLS `rediss://`, `valkeys://`.
    Valkey,
}

/// The parts of a parsed URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseUrl {
    /// The protocol that the database uses.
    pub dialect: Dialect,
    /// The address of the server.
    pub place: Place,
    /// The account that reads the changes.
    pub account: Account,
    /// The TLS settings; `None`: no TLS.
    pub tls: Option<DatabaseTls>,
    /// The kind of position in the change stream.
    pub by: PositionBy,
}

impl Dialect {
    fn port(self) -> u16 {
        match self {
            Dialect::MySql => 3306,
            Dialect::Postgres => 5432,
            Dialect::Valkey => 6379,
        }
    }

    fn form(self) -> &'static str {
        match self {
            Dialect::MySql => FORM,
            Dialect::Postgres => {
                "write postgres://user:password@host:port/name, or \
                 postgres://user@localhost/name?host=/run/postgresql"
            }
            Dialect::Valkey => {
                "write redis://user:password@host:port, or \
                 redis://localhost?socket=/run/valkey/valkey.sock"
            }
        }
    }
}

const FORM: &str = "write mysql://user:password@host:port/name, or \
                    mysql://user@localhost/name?socket=/run/mysqld/mysqld.sock; \
                    PostgreSQL: postgres://user:password@host:port/name, or \
                    postgres://user@localhost/name?host=/run/postgresql";

/// Parses the URL of a database.
///
/// # Errors
/// The invalid part, and a valid alternative.
pub fn read(url: &str) -> Result<DatabaseUrl, String> {
    let (dialect, rest) = match url.split_once("://") {
        Some(("mysql" | "mariadb", rest)) => (Dialect::MySql, rest),
        Some(("postgres" | "postgresql", rest)) => (Dialect::Postgres, rest),
        _ => return Err(FORM.into()),
    };
    let form = dialect.form();
    let (rest, query) = match rest.split_once('?') {
        Some((rest, query)) => (rest, Some(query)),
        None => (rest, None),
    };
    let (authority, name) = rest.split_once('/').ok_or(form)?;
    let (who, host) = authority.rsplit_once('@').ok_or(form)?;
    let (user, password) = who.split_once(':').unwrap_or((who, ""));
    let account =
        Account { user: decoded(user)?, password: decoded(password)?, database: decoded(name)? };
    if account.user.is_empty() || account.database.is_empty() {
        return Err(form.into());
    }
    let place = tcp(host, dialect)?;
    let mut read = DatabaseUrl { dialect, place, account, tls: None, by: PositionBy::Gtid };
    parameters(query.unwrap_or_default(), &mut read)?;
    Ok(read)
}

/// Parses the URL of a stream. The account is optional, and the database is a number, 0 by default.
///
/// # Errors
/// As for [`read`].
pub fn read_stream(url: &str) -> Result<DatabaseUrl, String> {
    let dialect = Dialect::Valkey;
    let form = dialect.form();
    let (tls, rest) = match url.split_once("://") {
        Some(("redis" | "valkey", rest)) => (None, rest),
        Some(("rediss" | "valkeys", rest)) => (tls("rediss", "verify-full")?, rest),
        _ => return Err(form.into()),
    };
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, number) = rest.split_once('/').unwrap_or((rest, ""));
    let (who, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    let (user, password) = who.split_once(':').unwrap_or((who, ""));
    // The error message must not contain a part of the password.
    if number.contains('@') || !authority.contains('@') && query.contains('@') {
        return Err("the password contains / ? # or @: write %2F %3F %23 %40 instead".into());
    }
    let number = if number.is_empty() { "0" } else { number };
    if number.parse::<u16>().is_err() {
        return Err(format!("/{number}: the database must be a number; {form}"));
    }
    let account =
        Account { user: decoded(user)?, password: decoded(password)?, database: number.into() };
    let place = tcp(host, dialect)?;
    let mut read = DatabaseUrl { dialect, place, account, tls, by: PositionBy::Gtid };
    parameters(query, &mut read)?;
    Ok(read)
}

/// Parses the query parameters. For PostgreSQL, the names of its own clients for TLS have the same
/// meaning (`sslmode`, `sslrootcert`). There is no fallback to a connection without TLS.
fn parameters(query: &str, read: &mut DatabaseUrl) -> Result<(), String> {
    let mut authorities = None;
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = decoded(value)?;
        match (read.dialect, name, value.as_str()) {
            (_, "socket", path) if !path.is_empty() => read.place = Place::Unix(path.into()),
            (Dialect::Postgres, "host", directory) if !directory.is_empty() => {
                read.place = in_directory(directory, &read.place);
            }
            (_, "ssl-mode", mode) => read.tls = tls(name, mode)?,
            (Dialect::Postgres, "sslmode", "disable") => read.tls = None,
            (Dialect::Postgres, "sslmode", "require") => read.tls = tls(name, "required")?,
            (Dialect::Postgres, "sslmode", mode) => read.tls = tls(name, mode)?,
            (_, "ssl-ca", path) | (Dialect::Postgres, "sslrootcert", path) if !path.is_empty() => {
                authorities = Some(path.into());
            }
            (Dialect::MySql, "position", "gtid") => read.by = PositionBy::Gtid,
            (Dialect::MySql, "position", "file") => read.by = PositionBy::File,
            (Dialect::MySql, ..) => {
                return Err(format!(
                    "?{pair}: unknown; supported are socket, ssl-mode, ssl-ca and position"
                ));
            }
            (Dialect::Valkey, ..) => {
                return Err(format!("?{pair}: unknown; supported are socket, ssl-mode and ssl-ca"));
            }
            (Dialect::Postgres, ..) => {
                return Err(format!(
                    "?{pair}: unknown; supported are host, socket, ssl-mode (or sslmode) and ssl-ca (or sslrootcert)"
                ));
            }
        }
    }
    match (&mut read.tls, &read.place, authorities) {
        (Some(_), Place::Unix(_), _) => Err("a Unix socket needs no TLS".into()),
        (Some(tls), Place::Tcp(..), authorities) => {
            tls.authorities = authorities;
            Ok(())
        }
        (None, _, Some(_)) => Err("ssl-ca needs ssl-mode=verify-ca or verify-full".into()),
        (None, _, None) => Ok(()),
    }
}

/// Returns the TLS settings for a mode of this parameter.
fn tls(name: &str, mode: &str) -> Result<Option<DatabaseTls>, String> {
    let trusts = |trust| Ok(Some(DatabaseTls { trust, authorities: None }));
    match mode {
        "disabled" => Ok(None),
        "required" => trusts(Trust::Anybody),
        "verify-ca" => trusts(Trust::Signed),
        "verify-full" => trusts(Trust::SignedForHost),
        other => {
            Err(format!("{name}={other}: must be disabled, required, verify-ca or verify-full"))
        }
    }
}

/// Returns the path of the Unix socket in a directory, as PostgreSQL's clients form it.
fn in_directory(directory: &str, place: &Place) -> Place {
    let port = match place {
        Place::Tcp(_, port) => *port,
        Place::Unix(_) => Dialect::Postgres.port(),
    };
    Place::Unix(std::path::Path::new(directory).join(format!(".s.PGSQL.{port}")))
}

fn tcp(host: &str, dialect: Dialect) -> Result<Place, String> {
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => {
            (name, port.parse().map_err(|_| "the port must be a number from 0 to 65535")?)
        }
        _ => (host, dialect.port()),
    };
    match name.trim_matches(['[', ']']) {
        "" => Err(dialect.form().into()),
        name => Ok(Place::Tcp(name.to_owned(), port)),
    }
}

/// Decodes percent-encoded bytes.
fn decoded(text: &str) -> Result<String, String> {
    // The text is not in the message, because it may be the password.
    let wrong = || "its percent-encoding is invalid; write %25 for a %".to_owned();
    decode_strictly(text).map(Cow::into_owned).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_mariadb() {
        let DatabaseUrl { dialect, place, account, .. } =
            read("mysql://a:p%40s@db.test:3307/news").expect("a URL");
        assert_eq!((dialect, place), (Dialect::MySql, Place::Tcp("db.test".into(), 3307)));
        assert_eq!((account.user.as_str(), account.password.as_str()), ("a", "p@s"));
        let place = |url| read(url).expect("a URL").place;
        let unix = place("mysql://a@localhost/news?socket=/run/db.sock");
        assert_eq!(unix, Place::Unix("/run/db.sock".into()));
        assert_eq!(place("mysql://a@[::1]/n"), Place::Tcp("::1".into(), 3306));
        let found = read("mysql://a@b/n?ssl-ca=/ca%2epem&ssl-mode=verify-ca").expect("a URL");
        let tls = DatabaseTls { trust: Trust::Signed, authorities: Some("/ca.pem".into()) };
        assert_eq!(found.tls, Some(tls));
    }

    #[test]
    fn of_postgresql() {
        let DatabaseUrl { dialect, place, .. } =
            read("postgresql://a@db.test/news").expect("a URL");
        assert_eq!((dialect, place), (Dialect::Postgres, Place::Tcp("db.test".into(), 5432)));
        let place = |url| read(url).expect("a URL").place;
        let unix = place("postgres://a@localhost:5433/news?host=%2Frun/postgresql");
        assert_eq!(unix, Place::Unix("/run/postgresql/.s.PGSQL.5433".into()));
        let unix = place("postgres://a@localhost/news?socket=/run/x.sock");
        assert_eq!(unix, Place::Unix("/run/x.sock".into()));
        let tls = |url| read(url).expect("a URL").tls;
        let trusted = |trust, authorities: Option<&str>| {
            Some(DatabaseTls { trust, authorities: authorities.map(Into::into) })
        };
        assert_eq!(tls("postgres://a@b/n?sslmode=disable"), None);
        for url in ["postgres://a@b/n?ssl-mode=required", "postgres://a@b/n?sslmode=require"] {
            assert_eq!(tls(url), trusted(Trust::Anybody, None), "{url}");
        }
        for url in [
            "postgres://a@b/n?ssl-mode=verify-full&ssl-ca=/ca.pem",
            "postgres://a@b/n?sslrootcert=/ca.pem&sslmode=verify-full",
        ] {
            assert_eq!(tls(url), trusted(Trust::SignedForHost, Some("/ca.pem")), "{url}");
        }
    }

    #[test]
    fn of_a_stream() {
        let found = read_stream("redis://:p%40s@cache.test/3").expect("a URL");
        assert_eq!(found.place, Place::Tcp("cache.test".into(), 6379));
        let Account { user, password, database } = found.account;
        assert_eq!((user.as_str(), password.as_str(), database.as_str()), ("", "p@s", "3"));
        let found = read_stream("valkey://localhost?socket=/run/v.sock").expect("a URL");
        assert_eq!((found.place, found.tls), (Place::Unix("/run/v.sock".into()), None));
        let found = read_stream("rediss://a@[::1]:7000/?ssl-ca=/ca.pem").expect("a URL");
        let tls = DatabaseTls { trust: Trust::SignedForHost, authorities: Some("/ca.pem".into()) };
        assert_eq!((found.place, found.tls), (Place::Tcp("::1".into(), 7000), Some(tls)));
        for wrong in [
            "localhost",
            "mysql://a@b/n",
            "redis://",
            "redis://a/name",
            "redis://a?db=1",
            "redis://a:b",
        ] {
            assert!(read_stream(wrong).is_err(), "{wrong}");
        }
        assert!(read("redis://a@b/0").is_err());
    }

    #[test]
    fn no_error_shows_a_password() {
        for url in [
            "redis://:se/cret@a",
            "redis://:se?cret@a",
            "redis://me:se@x/cret@a",
            "redis://:secret",
            "redis://me:se%zzcret@a",
        ] {
            let said = read_stream(url).map(|_| ()).expect_err("refused");
            assert!(!said.contains("se") || !said.contains("cret"), "{said}");
        }
        for url in ["mysql://me:se/cret@a/n", "mysql://me:se?cret@a/n", "mysql://me:secret/n"] {
            let said = read(url).map(|_| ()).expect_err("refused");
            assert!(!said.contains("cret"), "{said}");
        }
    }

    #[test]
    fn invalid_urls_are_refused() {
        for wrong in [
            "x",
            "oracle://a@b/n",
            "mysql://a@b",
            "mysql://b/n",
            "mysql://a@b/",
            "mysql://a@b:x/n",
            "mysql://a@b/n?tls=1",
            "mysql://a@b/n?host=/run",
            "mysql://a@b/n?ssl-mode=prefer",
            "mysql://a@b/n?ssl-ca=/ca.pem",
            "mysql://a@b/n?socket=/s&ssl-mode=required",
            "postgres://a@b/n?sslmode=prefer",
            "postgres://a@b/n?sslrootcert=/ca.pem",
            "postgres://a@b/n?position=file",
            "postgres://a@b/n?host=/run&sslmode=require",
            "mysql://a@b/n?sslmode=require",
            "postgres://a@/n",
            "mysql://%zz@b/n",
            "mysql://%+f@b/n",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        let said = read("mysql://a:secr%t@b/n").expect_err("no escape");
        assert!(!said.contains("secr"), "{said}");
    }
}
