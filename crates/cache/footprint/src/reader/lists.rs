//! The lists of the servers' manuals, as far as they matter for pages: statements, `SHOW`, system variables,
//! storage engines. Functions have a file of their own (`crate::functions`).
//!
//! Invariant: each list has what is harmless, with its reason; everything that is not on it is refused. A name is
//! on a list only if the result changes with rows that the change stream has, with a definition, or with a setting
//! that an administrator makes. Sources: MariaDB's manual up to 11.8, "SHOW", "Server System Variables", "Storage
//! Engines", "SQL Statements"; the same chapters of MySQL's up to 9.5. `tests/mariadb/lists.rs` compares the lists
//! with those of a real server. Not here: how a statement of a kind is read.

/// How a statement is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StatementKind {
    /// A query: the rows of its tables.
    Query,
    /// A write: nothing, or what it returns.
    Write,
    /// A table or another object is created.
    Creation,
    /// A setting of the session.
    Setting,
    /// Another database becomes the current one.
    Use,
    /// The columns of a table: its definition.
    Columns,
    /// System variables by their names.
    Variables,
    /// Nothing that changes while a server runs.
    NoReads,
}

use StatementKind::{Columns, Creation, NoReads, Query, Setting, Use, Variables, Write};

/// The kinds of statements, by their first words. `GLOBAL`, `SESSION`, `LOCAL` and `FULL` behind `SHOW` are left out.
///
/// Not on the list, among others:
///
/// | statement | because |
/// |---|---|
/// | `CALL`, `EXECUTE`, `DO`, `HANDLER`, `LOAD`, `XA`, `BEGIN NOT ATOMIC` | it runs or reads what its text does not show |
/// | `EXPLAIN`, `ANALYZE`, `CHECK`, `CHECKSUM`, `HELP` | statistics, or rows in a form that nothing compares |
/// | `SHOW INDEX` | the number of different values, which is estimated |
/// | `SHOW CREATE TABLE` | the next automatic value, which changes with rows, and without |
/// | `SHOW WARNINGS`, `SHOW ERRORS` | values of rows that are not in the result |
/// | `SHOW STATUS`, `SHOW TABLE STATUS`, `SHOW PROCESSLIST`, … | the state of the server |
/// | `SHOW TABLES`, `SHOW TRIGGERS`, `SHOW CREATE VIEW`, `SHOW GRANTS`, … | no row or table stands for a list of objects |
const STATEMENTS: [(&str, StatementKind); 33] = [
    ("SELECT", Query),
    ("WITH", Query),
    ("TABLE", Query),
    ("VALUES", Query),
    ("INSERT", Write),
    ("REPLACE", Write),
    ("UPDATE", Write),
    ("DELETE", Write),
    ("TRUNCATE", Write),
    ("CREATE", Creation),
    ("ALTER", NoReads),
    ("DROP", NoReads),
    ("RENAME", NoReads),
    ("SET", Setting),
    ("USE", Use),
    ("BEGIN", NoReads),
    ("BEGIN WORK", NoReads),
    ("START TRANSACTION", NoReads),
    ("COMMIT", NoReads),
    ("ROLLBACK", NoReads),
    ("SAVEPOINT", NoReads),
    ("RELEASE SAVEPOINT", NoReads),
    ("LOCK TABLE", NoReads),
    ("LOCK TABLES", NoReads),
    ("UNLOCK TABLE", NoReads),
    ("UNLOCK TABLES", NoReads),
    ("SHOW COLUMNS", Columns),
    ("SHOW FIELDS", Columns),
    ("DESCRIBE", Columns),
    ("DESC", Columns),
    ("SHOW VARIABLES", Variables),
    // The character sets and collations that the server was built with.
    ("SHOW CHARACTER SET", NoReads),
    ("SHOW COLLATION", NoReads),
];

/// The kind of a statement with these words; `None`: it is refused.
pub(super) fn statement_kind(words: &[&str]) -> Option<StatementKind> {
    let is =
        |at: usize, word: &str| words.get(at).is_some_and(|own| own.eq_ignore_ascii_case(word));
    let is_scope =
        is(0, "SHOW") && ["GLOBAL", "SESSION", "LOCAL", "FULL"].iter().any(|scope| is(1, scope));
    let place = |at: usize| if at > 0 && is_scope { at + 1 } else { at };
    let begins = |(text, _): &&(&str, StatementKind)| {
        text.split(' ').enumerate().all(|(at, word)| is(place(at), word))
    };
    let (text, kind) = STATEMENTS.iter().filter(begins).max_by_key(|(text, _)| text.len())?;
    // More words would make another statement of it.
    (*text != "BEGIN" || words.len() == 1).then_some(*kind)
}

/// The system variables that are settings, in lower case: of the server, or of a session that the application sets up
/// by constants. Not on the list is what statements and rows change (`last_insert_id`, `warning_count`, `last_gtid`),
/// what the server moves (`gtid_binlog_pos`, `innodb_buffer_pool_size`), and what nobody has asked for yet.
const SETTINGS: &str = "
    auto_increment_increment auto_increment_offset autocommit basedir bind_address binlog_format binlog_row_image
    character_set_client character_set_connection character_set_database character_set_filesystem
    character_set_results character_set_server character_set_system character_sets_dir
    collation_connection collation_database collation_server completion_type connect_timeout
    datadir default_collation_for_utf8mb4 default_storage_engine default_table_encryption default_tmp_storage_engine
    default_week_format div_precision_increment event_scheduler
    explicit_defaults_for_timestamp foreign_key_checks ft_boolean_syntax ft_max_word_len ft_min_word_len
    group_concat_max_len have_compress have_crypt have_dynamic_loading have_geometry have_openssl have_profiling
    have_query_cache have_rtree_keys have_ssl have_symlink hostname init_connect innodb_default_row_format
    innodb_file_format innodb_file_per_table innodb_flush_log_at_trx_commit innodb_ft_enable_stopword
    innodb_ft_max_token_size innodb_ft_min_token_size innodb_large_prefix innodb_lock_wait_timeout innodb_page_size
    innodb_rollback_on_timeout innodb_strict_mode innodb_version
    interactive_timeout join_buffer_size lc_messages lc_time_names license local_infile lock_wait_timeout log_bin
    low_priority_updates lower_case_file_system lower_case_table_names max_allowed_packet max_connections
    max_error_count max_execution_time max_heap_table_size max_join_size max_length_for_sort_data max_sort_length
    max_statement_time max_user_connections net_buffer_length net_read_timeout net_retry_count net_write_timeout
    ngram_token_size old_mode old_passwords optimizer_switch port protocol_version
    query_cache_limit query_cache_size query_cache_type read_buffer_size read_only read_rnd_buffer_size
    regexp_stack_limit regexp_time_limit require_secure_transport secure_file_priv server_id server_uuid
    show_compatibility_56 skip_name_resolve skip_networking socket sort_buffer_size sql_auto_is_null sql_big_selects
    sql_generate_invisible_primary_key sql_mode sql_notes sql_quote_show_create sql_require_primary_key
    sql_safe_updates sql_select_limit sql_warnings ssl_ca ssl_cert ssl_cipher ssl_key storage_engine
    super_read_only system_time_zone time_format time_zone tls_version tmp_table_size tmpdir
    transaction_isolation transaction_read_only tx_isolation tx_read_only unique_checks updatable_views_with_limit
    version version_comment version_compile_machine version_compile_os version_compile_zlib version_ssl_library
    wait_timeout windowing_use_high_precision";

/// Whether a system variable, without `@@` and its scope, is a setting.
pub(super) fn is_setting(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SETTINGS.split_ascii_whitespace().any(|known| known == name)
}

/// The storage engines whose rows change by statements alone, which the server logs: in lower case.
///
/// | not on the list | because |
/// |---|---|
/// | `MRG_MyISAM`, `OQGRAPH` | its rows are those of other tables |
/// | `FEDERATED`, `CONNECT`, `SPIDER`, `S3`, `CASSANDRA`, `SPHINX`, `NDB` | its rows are elsewhere, where others change them |
/// | `CSV`, `ColumnStore` | its rows are in files that other programs write |
/// | `MEMORY` | its rows are gone after a restart, which is logged when the table is first used |
/// | `BLACKHOLE`, `EXAMPLE`, `SEQUENCE`, `PERFORMANCE_SCHEMA` | it has no rows, or makes them up |
const LOGGED_ENGINES: [&str; 7] =
    ["innodb", "myisam", "aria", "archive", "rocksdb", "tokudb", "xtradb"];

/// Whether the rows of a table with this storage engine change by statements alone, which the server logs.
#[must_use]
pub fn is_logged_engine(engine: &str) -> bool {
    let engine = engine.to_ascii_lowercase();
    LOGGED_ENGINES.contains(&engine.as_str())
}
