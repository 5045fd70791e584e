//! The kinds of databases that can be followed: login, change stream, schema and queries of each, behind one
//! interface. Start reading at `source`.
//!
//! | file | contents |
//! |---|---|
//! | `source` | the interface to every kind of database: its operations |
//! | `stream_types` | positions in a stream, transactions, and what a new connection has found |
//! | `mariadb` | MariaDB and MySQL: login, change stream, schema, queries |
//! | `postgres` | PostgreSQL: the same, and its set-up (publication, slot) |
//!
//! Not here: when a change is applied, settled or waited for (`change_sources`), the bytes of the streams
//! (`mysql_replication`, `postgres_replication`), transport and failures of a connection (`database_links`).

mod mariadb;
mod postgres;
pub mod source;
pub mod stream_types;

pub use mariadb::{
    FollowedTables as MariaDbFollowedTables, ListedTable as MariaDbListedTable,
    Tables as MariaDbTables, TransactionChanges as MariaDbChanges,
};
