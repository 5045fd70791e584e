//! The address of a database as a URL: what it speaks, where it is, who follows it.
//!
//! `mysql://user:password@host:port/name?socket=/path`, `postgres://user:password@host:port/name?host=/directory`.
//! Percent-encoded parts are decoded (RFC 3986 section 2.1); what is not known is an error. Not here:
//! whether anything is there.

use super::{Account, Place};

/// What a database speaks, as its URL says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// `mysql://`, `mariadb://`.
    MySql,
    /// `postgres://`, `postgresql://`.
    Postgres,
}

/// A URL that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    /// What the database speaks.
    pub dialect: Dialect,
    /// Where it is.
    pub place: Place,
    /// Who follows it.
    pub account: Account,
}

impl Dialect {
    fn port(self) -> u16 {
        match self {
            Dialect::MySql => 3306,
            Dialect::Postgres => 5432,
        }
    }

    fn form(self) -> &'static str {
        match self {
            Dialect::MySql => FORM,
            Dialect::Postgres => {
                "write postgres://user:password@host:port/name, or \
                 postgres://user@localhost/name?host=/run/postgresql"
            }
        }
    }
}

const FORM: &str = "write mysql://user:password@host:port/name, or \
                    mysql://user@localhost/name?socket=/run/mysqld/mysqld.sock; \
                    PostgreSQL: postgres://user:password@host:port/name, or \
                    postgres://user@localhost/name?host=/run/postgresql";

/// Reads it.
///
/// # Errors
/// What is wrong with it, and what would be right.
pub fn read(url: &str) -> Result<Read, String> {
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
    let place = match query {
        None | Some("") => tcp(host, dialect)?,
        Some(query) => match (dialect, query.split_once('=')) {
            (_, Some(("socket", path))) if !path.contains('&') => {
                Place::Unix(decoded(path)?.into())
            }
            (Dialect::Postgres, Some(("host", directory))) if !directory.contains('&') => {
                let Place::Tcp(_, port) = tcp(host, dialect)? else { return Err(form.into()) };
                let directory = std::path::PathBuf::from(decoded(directory)?);
                // As every client of PostgreSQL puts it together.
                Place::Unix(directory.join(format!(".s.PGSQL.{port}")))
            }
            (Dialect::MySql, _) => return Err(format!("?{query}: only ?socket=PATH is known")),
            (Dialect::Postgres, _) => {
                return Err(format!("?{query}: only ?host=DIRECTORY and ?socket=PATH are known"));
            }
        },
    };
    Ok(Read { dialect, place, account })
}

fn tcp(host: &str, dialect: Dialect) -> Result<Place, String> {
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => {
            (name, port.parse().map_err(|_| format!("{port:?} is no port"))?)
        }
        _ => (host, dialect.port()),
    };
    match name.trim_matches(['[', ']']) {
        "" => Err(dialect.form().into()),
        name => Ok(Place::Tcp(name.to_owned(), port)),
    }
}

/// Percent-encoded bytes as what they stand for (RFC 3986 section 2.1).
fn decoded(text: &str) -> Result<String, String> {
    let wrong = || format!("{text:?} is not percent-encoded as it should be");
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let digits = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        bytes.push(u8::from_str_radix(digits.ok_or_else(wrong)?, 16).map_err(|_| wrong())?);
        rest = &after[2..];
    }
    String::from_utf8(bytes).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_mariadb() {
        let Read { dialect, place, account } =
            read("mysql://a:p%40s@db.test:3307/news").expect("a URL");
        assert_eq!((dialect, place), (Dialect::MySql, Place::Tcp("db.test".into(), 3307)));
        assert_eq!((account.user.as_str(), account.password.as_str()), ("a", "p@s"));
        let place = |url| read(url).expect("a URL").place;
        let unix = place("mysql://a@localhost/news?socket=/run/db.sock");
        assert_eq!(unix, Place::Unix("/run/db.sock".into()));
        assert_eq!(place("mysql://a@[::1]/n"), Place::Tcp("::1".into(), 3306));
    }

    #[test]
    fn of_postgresql() {
        let Read { dialect, place, .. } = read("postgresql://a@db.test/news").expect("a URL");
        assert_eq!((dialect, place), (Dialect::Postgres, Place::Tcp("db.test".into(), 5432)));
        let place = |url| read(url).expect("a URL").place;
        let unix = place("postgres://a@localhost:5433/news?host=%2Frun/postgresql");
        assert_eq!(unix, Place::Unix("/run/postgresql/.s.PGSQL.5433".into()));
        let unix = place("postgres://a@localhost/news?socket=/run/x.sock");
        assert_eq!(unix, Place::Unix("/run/x.sock".into()));
    }

    #[test]
    fn what_is_wrong_is_refused() {
        for wrong in [
            "x",
            "oracle://a@b/n",
            "mysql://a@b",
            "mysql://b/n",
            "mysql://a@b/",
            "mysql://a@b:x/n",
            "mysql://a@b/n?tls=1",
            "mysql://a@b/n?host=/run",
            "postgres://a@b/n?sslmode=require",
            "postgres://a@/n",
            "mysql://%zz@b/n",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
