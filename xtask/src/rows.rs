//! A database that is followed, and pages made from its rows: what the torture and the benchmark of
//! changes share.
//!
//! One table, `item` (`id`, `n`). The origin ([`origin`]) makes a page from four items as the database
//! has them at that moment; Pagewell follows the database and knows which page is made from what. The
//! truth is in the database. All over Unix sockets and loopback; everything ends when it is dropped.

pub mod origin;
pub mod sql;

use harness::{MariaDb, MariaDbOptions, Pagewell, PrivateDir};
use origin::Origin;
use sql::Sql;
use std::fs;
use std::path::Path;

/// How many items a page is made from.
pub const OF_A_PAGE: usize = 4;

/// What runs. Fields are dropped in this order: each before what it asks.
pub struct Rows {
    /// Pagewell.
    pub pagewell: Pagewell,
    /// What makes the pages.
    pub origin: Origin,
    /// The database.
    pub database: MariaDb,
    _dir: PrivateDir,
}

impl Rows {
    /// Starts everything, with so many items; `more` stands in `[[database]]`.
    ///
    /// # Errors
    /// What did not start.
    pub fn start(binary: &Path, items: usize, memory: &str, more: &str) -> Result<Rows, String> {
        let dir = PrivateDir::temporary("rows").map_err(told)?;
        let options = ["--log-bin=bin", "--server-id=1", "--binlog-format=ROW"];
        // The log is not forced to disk with each commit: that is the disk's time, not ours.
        let options = options.iter().chain(&["--innodb-flush-log-at-trx-commit=0"]);
        let options =
            MariaDbOptions { port: None, options: options.map(|o| (*o).into()).collect() };
        let database = PrivateDir::temporary("rows-db").map_err(told)?;
        let database = MariaDb::start_with(database, options).map_err(told)?;
        database.create_database("items", "writer", "secret").map_err(told)?;
        let sql = format!(
            "CREATE USER follower@localhost IDENTIFIED BY 'secret';
             GRANT REPLICATION SLAVE ON *.* TO follower@localhost;
             GRANT SELECT ON items.* TO follower@localhost;
             USE items;
             CREATE TABLE item (id INT UNSIGNED PRIMARY KEY, n BIGINT UNSIGNED NOT NULL);
             CREATE TABLE other (id INT UNSIGNED AUTO_INCREMENT PRIMARY KEY, item INT UNSIGNED,
                 body VARCHAR(100));
             INSERT INTO item SELECT seq - 1, 1 FROM seq_1_to_{items};"
        );
        database.sql(&sql).map_err(told)?;
        let origin = Origin::start(database.socket(), items)?;
        let config = dir.path().join("pagewell.toml");
        let socket = database.socket().display();
        let text = format!(
            "[[database]]\nurl = \"mysql://follower:secret@localhost/items?socket={socket}\"\n{more}\n\
             [[change]]\ntable = \"item\"\ntags = [\"item:{{id}}\"]\nany_row = [\"items\"]\n\
             [[change]]\ntable = \"other\"\ntags = [\"other:{{item}}\"]\nany_row = [\"others\"]\n"
        );
        fs::write(&config, text).map_err(|error| error.to_string())?;
        let (config, asked) = (config.display().to_string(), origin.url());
        let args = ["--config", &config, "--origin", &asked, "--memory", memory, "--log", "warn"];
        let pagewell = Pagewell::start(binary, &args).map_err(told)?;
        Ok(Rows { pagewell, origin, database, _dir: dir })
    }

    /// A connection to the database, for one who writes.
    ///
    /// # Errors
    /// Why there is none.
    pub fn sql(&self) -> Result<Sql, String> {
        Sql::open(self.database.socket())
    }

    /// One of Pagewell's counters.
    ///
    /// # Errors
    /// When it does not say.
    pub fn counter(&self, name: &str) -> Result<u64, String> {
        let stats = self.pagewell.stats().map_err(|error| error.to_string())?;
        stats.get(name).copied().ok_or_else(|| format!("pagewell has no counter {name}"))
    }
}

/// The items that a page is made from.
pub fn items_of(page: usize, items: usize) -> [usize; OF_A_PAGE] {
    std::array::from_fn(|at| (page * 7 + at * 13) % items)
}

fn told(error: harness::StartError) -> String {
    error.to_string()
}
