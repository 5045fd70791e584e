//! MariaDB or MySQL: which of the two is installed, and the statements and options in which they differ.
//!
//! MariaDB is used where it is installed. MySQL is used where there is only a `mysqld`, as in the roots of
//! `make compat`. Not here: what both understand.

use crate::{StartError, find};
use std::path::PathBuf;

/// The product that provides the database server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SqlProduct {
    /// MariaDB, 10.5 or newer: its server is named `mariadbd`.
    MariaDb,
    /// MySQL, 8.4 or newer.
    MySql,
}

impl SqlProduct {
    /// The installed server and its path.
    ///
    /// # Errors
    /// `NotInstalled` if neither is.
    pub(crate) fn installed() -> Result<(SqlProduct, PathBuf), StartError> {
        let mariadb = find::program(&["mariadbd"]).map(|path| (SqlProduct::MariaDb, path));
        mariadb.or_else(|missing| match find::program(&["mysqld"]) {
            Ok(path) => Ok((SqlProduct::MySql, path)),
            Err(_) => Err(missing),
        })
    }

    /// The options of every server of this product: no files outside its directory, no second port, and GTIDs,
    /// which MariaDB always has. Recursive queries are unbounded, for [`numbers`].
    pub(crate) fn options(self) -> &'static [&'static str] {
        match self {
            SqlProduct::MariaDb => &["--max-recursive-iterations=4294967295"],
            // The default directory for files is one that only the package of the server creates.
            SqlProduct::MySql => &[
                "--mysqlx=OFF",
                "--secure-file-priv=NULL",
                "--gtid-mode=ON",
                "--enforce-gtid-consistency=ON",
                "--cte-max-recursion-depth=4294967295",
            ],
        }
    }

    /// The statement that deletes all binary logs, so that the next transaction is the first one again.
    #[must_use]
    pub fn reset_logs(self) -> &'static str {
        match self {
            SqlProduct::MariaDb => "RESET MASTER",
            SqlProduct::MySql => "RESET BINARY LOGS AND GTIDS",
        }
    }

    /// The statement that shows the current file of the binary log, and the position in it.
    #[must_use]
    pub fn log_status(self) -> &'static str {
        match self {
            SqlProduct::MariaDb => "SHOW MASTER STATUS",
            SqlProduct::MySql => "SHOW BINARY LOG STATUS",
        }
    }

    /// The query of the GTIDs in the binary log.
    #[must_use]
    pub fn logged_gtids(self) -> &'static str {
        match self {
            SqlProduct::MariaDb => "SELECT @@gtid_binlog_pos",
            SqlProduct::MySql => "SELECT @@global.gtid_executed",
        }
    }
}

/// A subquery with one column, `seq`, with the numbers from `first` to `last`.
#[must_use]
pub fn numbers(first: u64, last: u64) -> String {
    format!(
        "(WITH RECURSIVE n (seq) AS (SELECT {first} UNION ALL SELECT seq + 1 FROM n WHERE seq < {last}) \
         SELECT seq FROM n) AS numbers"
    )
}
