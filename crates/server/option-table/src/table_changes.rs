//! The rows about data changes: databases, the rules for their rows, and
//! the stream through which nodes exchange invalidations. They are in a separate file only because
//! of their length; readers use `OPTIONS`.

use super::{OptionRow, Text, row};

const SEARCHES: Text = "Searches in the text of this table: with `{ kind = \"search\", columns = [\"title\"] }`, a page with the tag `search:PHP` is purged when `PHP` occurs in the title before or after the change.";

/// The rows about data changes.
pub const CHANGES: &[OptionRow] = &[
    row(
        "automatic.enabled",
        "",
        "false",
        "Whether pages depend on the rows that their render has read. Pages without caching headers are then stored too, if all their reads are known. Needs a `[[database]]` of MariaDB or MySQL.",
    ),
    row(
        "automatic.application",
        "",
        "none",
        "`wordpress`, `mediawiki`, `library` or `none`: which rows no page shows, and how statements are captured (`library`: by the PHP library).",
    ),
    row(
        "automatic.database",
        "",
        "the only one",
        "The name of the database that the application uses, for a site with several.",
    ),
    row(
        "automatic.table_prefix",
        "",
        "`wp_` for `wordpress`, else empty",
        "The text before the name of each table of the application.",
    ),
    row(
        "automatic.lifetime_max",
        "",
        "`12h` for `wordpress`, else `1d`",
        "The longest lifetime of a page that declares none. WordPress's nonces are valid for 12 hours at least.",
    ),
    row(
        "automatic.untracked",
        "",
        "short",
        "A page with a TTL, without tags, and with unknown reads. `short`: it is stored for 60 seconds, and not at all if a cache is known to hide reads. `never`: it is not stored. `store`: it is stored for its TTL, and can be old.",
    ),
    row(
        "automatic.content_types",
        "",
        "none",
        "Further media types that are stored without caching headers, such as `application/json`; `*` stands for anything. Pages, feeds, plain text, style sheets and scripts always are.",
    ),
    row(
        "automatic.look_up",
        "",
        "true",
        "Whether the rows that a changed row is joined with are looked up. Without it, more pages are purged.",
    ),
    row(
        "automatic.capture_directory",
        "",
        "none; required with `php.at`",
        "A directory that PHP can enter, for sockets, and for `wordpress` also `capture.php`, which PHP has to run before each script.",
    ),
    row(
        "automatic.ignore.table",
        "",
        "none",
        "A table, without the prefix, whose changes no page shows.",
    ),
    row("automatic.ignore.columns", "", "all", "Columns whose changes no page shows."),
    row(
        "automatic.ignore.column",
        "",
        "none",
        "Only rows with one of the `values` in this column are ignored.",
    ),
    row("automatic.ignore.values", "", "none", "The values of `column`. A value may end with `*`."),
    row(
        "database.url",
        "",
        "none",
        "The database whose changes are followed. MariaDB and MySQL: `mysql://user:password@host:port/name`, or `mysql://user@localhost/name?socket=/run/mysqld/mysqld.sock`. PostgreSQL: `postgres://user:password@host:port/name`, or `postgres://user@localhost/name?host=/run/postgresql`. Over TLS with `?ssl-mode=` `required`, `verify-ca` or `verify-full`, and `&ssl-ca=FILE`.",
    ),
    row(
        "database.name",
        "",
        "the database's own name",
        "The name of the database in `[[change]]` and in the log, for a site with several.",
    ),
    row("database.password_file", "", "none", "A file with the password."),
    row(
        "database.slot",
        "",
        "pagewell",
        "PostgreSQL: the replication slot. Each site, and each Pagewell process, needs its own.",
    ),
    row(
        "database.publication",
        "",
        "pagewell",
        "PostgreSQL: the publication that contains the tables.",
    ),
    row(
        "database.manage",
        "",
        "false",
        "PostgreSQL: whether Pagewell creates a missing publication and slot. Otherwise the start fails and prints the statements.",
    ),
    row(
        "database.keep_log",
        "",
        "256M",
        "PostgreSQL, with snapshots: how much of its log (WAL) the server keeps for Pagewell, at most half of `max_slot_wal_keep_size`. Beyond it, a kill before the next snapshot means a cold start.",
    ),
    row(
        "database.on_lag",
        "",
        "bypass",
        "After the database has not been followed for `lag_max`: `bypass` (pages are purged, and none is stored until it is followed again), or `serve` (pages stay, and can be old).",
    ),
    row(
        "database.lag_max",
        "",
        "10s",
        "With `on_lag = \"bypass\"`: how long pages are served while the database cannot be followed, and the largest permitted lag.",
    ),
    row(
        "database.barrier",
        "",
        "250ms",
        "How long the response to a write is held at most until the changes committed before it are applied. Then it is sent anyway (`changes-late`).",
    ),
    row(
        "database.settle",
        "",
        "100ms",
        "How long after a change no page that depends on it is stored, where the database cannot report whether every reader sees it.",
    ),
    row(
        "change.database",
        "",
        "the only one",
        "The name of the table's database, for a site with several.",
    ),
    row("change.table", "", "none", "The table whose changed rows this rule is for."),
    row(
        "change.tags",
        "",
        "none",
        "The tags that a changed row purges. `{column}` is the column's value before and after the change, `{column:7}` its first seven characters.",
    ),
    row("change.searches", "", "none", SEARCHES),
    row(
        "change.where",
        "",
        "every row",
        "A row counts only if each of these columns has one of these values before or after the change: `{ option_name = [\"blogname\", \"widget_*\"] }`. Case does not matter.",
    ),
    row(
        "change.unless",
        "",
        "none",
        "Column values for which a row purges nothing, written as for `where`; case matters.",
    ),
    row(
        "change.when_changed",
        "",
        "all columns",
        "An update counts only if one of these columns, or one in the tags, changes.",
    ),
    row(
        "change.any_row",
        "",
        "every page of the site",
        "The tags to purge when it is unknown which rows changed.",
    ),
    row(
        "cluster.url",
        "",
        "none",
        "The server whose stream connects the nodes (Valkey, or Redis 7 or later): `redis://user:password@host:port`, or `redis://localhost?socket=/run/valkey/valkey.sock`. `/2` after the port selects database 2. Over TLS with `?ssl-mode=` `required`, `verify-ca` or `verify-full`, and `&ssl-ca=FILE`; `rediss://` means `verify-full`.",
    ),
    row("cluster.password_file", "", "none", "A file with the password."),
    row(
        "cluster.key",
        "",
        "pagewell",
        "The stream's key. If the site has a `host`, a colon and the host are appended.",
    ),
    row(
        "cluster.keep",
        "",
        "100000",
        "How many changes the stream keeps. A node that missed more purges every page.",
    ),
    row(
        "cluster.on_lag",
        "",
        "bypass",
        "After the stream has not been followed for `lag_max`: `bypass` or `serve`, as for `database.on_lag`.",
    ),
    row(
        "cluster.lag_max",
        "",
        "10s",
        "With `on_lag = \"bypass\"`: how long pages are served while the stream cannot be followed, and the largest permitted lag.",
    ),
    row(
        "cluster.barrier",
        "",
        "250ms",
        "How long the response to a write is held at most until all nodes have applied its changes. Then it is sent anyway (`changes-late`).",
    ),
    row(
        "cluster.unpublished",
        "",
        "accept",
        "Writes while their invalidations cannot be published. `accept`: they are answered with `changes-late`, and other nodes may show old pages. `refuse`: they get a 503, and a node that becomes silent makes the others purge their pages.",
    ),
];
