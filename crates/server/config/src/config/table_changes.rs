//! The rows of [`table`](super::table) about data changes: databases, the rules for their rows, and
//! the stream through which nodes exchange invalidations. They are in a separate file only because
//! of their length; readers use `table::OPTIONS`.

use super::table::{OptionRow, Text, row};

const SEARCHES: Text = "In `[[change]]`: the searches in its text, `{ kind = \"search\", columns = [\"title\"] }`: pages with a tag `search:PHP` are dropped when `PHP` occurs in one of these columns, before or after.";

/// The rows about data changes.
pub const CHANGES: &[OptionRow] = &[
    row(
        "database.url",
        "",
        "none",
        "In `[[database]]`: the database whose changes are followed, `mysql://user:password@host:port/name`, or `mysql://user@localhost/name?socket=/run/mysqld/mysqld.sock`: MariaDB, MySQL. `postgres://user:password@host:port/name`, or `postgres://user@localhost/name?host=/run/postgresql`: PostgreSQL. Over TLS with `?ssl-mode=` `required`, `verify-ca` or `verify-full`, and `&ssl-ca=FILE`.",
    ),
    row(
        "database.name",
        "",
        "the database's own name",
        "In `[[database]]`: what it is called in `[[change]]` and in the log, where a site has several.",
    ),
    row("database.password_file", "", "none", "In `[[database]]`: a file with the password."),
    row(
        "database.slot",
        "",
        "pagewell",
        "In `[[database]]`, PostgreSQL: the replication slot that keeps the changes until they are applied here. Each site, and each Pagewell, needs one of its own.",
    ),
    row(
        "database.publication",
        "",
        "pagewell",
        "In `[[database]]`, PostgreSQL: the publication that tells of the tables.",
    ),
    row(
        "database.manage",
        "",
        "false",
        "In `[[database]]`, PostgreSQL: whether publication and slot are made where they are missing. Otherwise the start fails, with the statements that make them.",
    ),
    row(
        "database.keep_log",
        "",
        "256M",
        "In `[[database]]`, PostgreSQL, where snapshots are written: how much of its log the server may be made to keep, so that pages are taken up after a kill as well. Beyond it the slot lets go, and a kill starts cold until the next snapshot. Never more than half of the server's `max_slot_wal_keep_size`. `0`: nothing is kept for it.",
    ),
    row(
        "database.on_lag",
        "",
        "bypass",
        "In `[[database]]`: what happens when the database has not been followed for `lag_max`. `bypass`: the site's pages are dropped and none is stored until it is followed again. `serve`: they stay.",
    ),
    row(
        "database.lag_max",
        "",
        "10s",
        "In `[[database]]`: how long pages are served while the database cannot be followed, and how far it may be behind, where `on_lag` is `bypass`.",
    ),
    row(
        "database.barrier",
        "",
        "250ms",
        "In `[[database]]`: how long the answer to a write is held until what was committed before it is applied. `0s`: not at all.",
    ),
    row(
        "database.settle",
        "",
        "100ms",
        "In `[[database]]`: how long after a change nothing that depends on it is stored, where the database cannot be asked whether everybody sees it.",
    ),
    row(
        "change.database",
        "",
        "the only one",
        "In `[[change]]`: the name of the table's database, where a site has several.",
    ),
    row("change.table", "", "none", "In `[[change]]`: the table whose rows are meant."),
    row(
        "change.tags",
        "",
        "none",
        "In `[[change]]`: the tags that a changed row drops; `{column}` stands for its value before and after, `{column:7}` for the first seven characters of it.",
    ),
    row("change.searches", "", "none", SEARCHES),
    row(
        "change.where",
        "",
        "every row",
        "In `[[change]]`: values of columns, `{ option_name = [\"blogname\", \"widget_*\"] }`: a row drops the tags only if it has one of these values, before or after. `*` stands for any text; case does not matter. Several columns: each has to match.",
    ),
    row(
        "change.unless",
        "",
        "none",
        "In `[[change]]`: values of columns with which a row drops nothing, written as for `where`; case matters.",
    ),
    row(
        "change.when_changed",
        "",
        "all columns",
        "In `[[change]]`: an update counts only if one of these columns, or one in the tags, changes.",
    ),
    row(
        "change.any_row",
        "",
        "every page of the site",
        "In `[[change]]`: the tags that are dropped when it is not known which rows changed.",
    ),
    row(
        "cluster.url",
        "",
        "none",
        "Changes that are told to this machine are told to all that name the same stream: `redis://user:password@host:port`, or `redis://localhost?socket=/run/valkey/valkey.sock`: Valkey, or Redis from version 7 on. `/2` behind the port is the database with that number. Over TLS with `?ssl-mode=` `required`, `verify-ca` or `verify-full`, and `&ssl-ca=FILE`; `rediss://` is `verify-full`.",
    ),
    row("cluster.password_file", "", "none", "A file with the password."),
    row(
        "cluster.key",
        "",
        "pagewell",
        "The stream's key; where the site has a `host`, a colon and that are put behind it.",
    ),
    row(
        "cluster.keep",
        "",
        "100000",
        "How many changes the stream keeps, about: a machine that has been away for longer drops every page.",
    ),
    row(
        "cluster.on_lag",
        "",
        "bypass",
        "What happens when the stream has not been followed for `lag_max`. `bypass`: the site's pages are dropped and none is stored until it is followed again. `serve`: they stay.",
    ),
    row(
        "cluster.lag_max",
        "",
        "10s",
        "How long pages are served while the stream cannot be followed, and how far it may be behind, where `on_lag` is `bypass`.",
    ),
    row(
        "cluster.barrier",
        "",
        "250ms",
        "How long whoever has changed something is held until all machines have applied it. `0s`: not at all.",
    ),
];
