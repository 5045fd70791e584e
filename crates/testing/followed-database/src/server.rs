//! The database: MariaDB (or MySQL, where only that is installed) or PostgreSQL, with the same tables, and
//! followed by the same rules.
//!
//! Neither waits for a disk with each commit: that is the disk's time, not ours. PostgreSQL's slot and
//! publication are made by Pagewell.

use super::sql::Sql;
use harness::{MariaDb, MariaDbOptions, Postgres, PostgresOptions, PrivateDir, numbers};

/// The kind of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// MariaDB; MySQL where only that is installed
    Mariadb,
    /// PostgreSQL
    Postgres,
}

/// A running database; it ends when it is dropped.
pub enum Server {
    /// MariaDB.
    MariaDb(MariaDb),
    /// PostgreSQL.
    Postgres(Postgres),
}

impl Server {
    /// Starts it, with so many items.
    ///
    /// # Errors
    /// The reason why it did not start.
    pub fn start(kind: Kind, items: usize) -> Result<Server, String> {
        let dir = PrivateDir::temporary("rows-db").map_err(super::told)?;
        match kind {
            Kind::Mariadb => mariadb(dir, items).map(Server::MariaDb),
            Kind::Postgres => postgres(dir, items).map(Server::Postgres),
        }
    }

    /// The kind of this database.
    pub fn kind(&self) -> Kind {
        match self {
            Server::MariaDb(_) => Kind::Mariadb,
            Server::Postgres(_) => Kind::Postgres,
        }
    }

    /// The path of its Unix socket.
    pub fn socket(&self) -> std::path::PathBuf {
        match self {
            Server::MariaDb(server) => server.socket().to_path_buf(),
            Server::Postgres(server) => server.socket(),
        }
    }

    /// The table `[[database]]` by which it is followed.
    pub fn config(&self) -> String {
        let socket = self.socket();
        let socket = socket.display();
        match self {
            Server::MariaDb(_) => format!(
                "[[database]]\nurl = \"mysql://follower:secret@localhost/items?socket={socket}\"\n"
            ),
            Server::Postgres(_) => format!(
                "[[database]]\nurl = \"postgres://writer:secret@localhost/items?socket={socket}\"\n\
                 manage = true\n"
            ),
        }
    }

    /// A connection for one who writes.
    ///
    /// # Errors
    /// Why there is none.
    pub fn sql(&self) -> Result<Sql, String> {
        Sql::open(self.kind(), &self.socket())
    }

    /// Ends the connections by which the stream is read; how many.
    ///
    /// # Errors
    /// Why it could not.
    pub fn cut(&self) -> Result<u64, String> {
        const STREAMS: &str =
            "SELECT ID FROM information_schema.PROCESSLIST WHERE COMMAND LIKE 'Binlog Dump%'";
        const READERS: &str = "SELECT count(pg_terminate_backend(active_pid)) \
             FROM pg_replication_slots WHERE active";
        match self {
            Server::MariaDb(server) => {
                let found = server.sql(STREAMS).map_err(super::told)?;
                // It may have gone by itself.
                let gone = |id: &&str| server.sql(&format!("KILL {id}")).is_ok();
                Ok(found.split_whitespace().filter(gone).count() as u64)
            }
            Server::Postgres(server) => {
                let count = server.sql(READERS).map_err(super::told)?;
                Ok(count.trim().parse().unwrap_or_default())
            }
        }
    }
}

fn mariadb(dir: PrivateDir, items: usize) -> Result<MariaDb, String> {
    // The log is not forced to disk with each commit: that is the disk's time, not ours.
    let options = MariaDbOptions::followed(&["--innodb-flush-log-at-trx-commit=0"]);
    let database = MariaDb::start_with(dir, options).map_err(super::told)?;
    database.create_database("items", "writer", "secret").map_err(super::told)?;
    database.create_follower("localhost", "items").map_err(super::told)?;
    let sql = format!(
        "USE items;
         CREATE TABLE item (id INT UNSIGNED PRIMARY KEY, n BIGINT UNSIGNED NOT NULL);
         CREATE TABLE other (id INT UNSIGNED AUTO_INCREMENT PRIMARY KEY, item INT UNSIGNED,
             body VARCHAR(100));
         CREATE TABLE note (id INT UNSIGNED AUTO_INCREMENT PRIMARY KEY, body MEDIUMTEXT);
         INSERT INTO item SELECT seq, 1 FROM {};",
        numbers(0, items.saturating_sub(1) as u64)
    );
    database.sql(&sql).map_err(super::told)?;
    Ok(database)
}

fn postgres(dir: PrivateDir, items: usize) -> Result<Postgres, String> {
    // Many threads write and read, each by a connection of its own.
    let settings = ["max_connections=300", "max_slot_wal_keep_size=4GB"];
    let settings = settings.iter().map(|setting| (*setting).to_owned()).collect();
    let options = PostgresOptions { settings, ..PostgresOptions::default() };
    let database = Postgres::start_with(dir, options).map_err(super::told)?;
    database.create_database("items", "writer", "secret").map_err(super::told)?;
    database.sql("ALTER ROLE writer REPLICATION").map_err(super::told)?;
    let sql = format!(
        "SET ROLE writer;
         CREATE TABLE item (id int PRIMARY KEY, n bigint NOT NULL);
         CREATE TABLE other (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, item int, body text);
         ALTER TABLE other REPLICA IDENTITY FULL;
         INSERT INTO item SELECT i, 1 FROM generate_series(0, {items} - 1) i;"
    );
    database.sql_in("items", &sql).map_err(super::told)?;
    Ok(database)
}
