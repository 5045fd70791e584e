//! Profiles: changes of rows that no page shows, and reads that no statement shows.
//!
//! | rule | effect |
//! |---|---|
//! | [`IgnoreRule::Row`] | a change of a row with one of these values, before and after, is none |
//! | [`IgnoreRule::Columns`] | a change of these columns alone is none |
//! | [`IgnoreRule::Rebuilt`] | a row that is deleted and inserted again with equal values within a second did not change |
//!
//! Invariant: nothing is ignored that no rule names, and a deleted row is held back for at most one second.
//! A held row is a change that has not been applied: a wait for the database's changes waits for it, or has it
//! released. Not here: the configuration, and the clock: times are arguments.

use crate::row::{RowEvent, SqlRow, SqlValue};
use crate::schema::{ColumnKey, Columns, SqlColumn, SqlColumnKind, SqlSchema, SqlTable, TableId};
use std::collections::VecDeque;
use std::time::Duration;

/// How long a deleted row is held back, in case it is inserted again.
pub const HELD_FOR: Duration = Duration::from_secs(1);
/// The maximum number of rows that are held back.
const HELD_MAX: usize = 1_000;

/// Meta of users that only WordPress's administration reads, and writes while they edit. With the usual
/// prefix of tables, which some of these keys begin with.
const WORDPRESS_PREFERENCES: [&str; 11] = [
    "session_tokens",
    "_application_passwords",
    "community-events-location",
    "dismissed_wp_pointers",
    "closedpostboxes_*",
    "meta-box-order_*",
    "metaboxhidden_*",
    "wp_persisted_preferences",
    "wp_user-settings*",
    "wp_dashboard_quick_press_last_post_id",
    "wp_media_library_mode",
];

/// A rule about changes that no page shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IgnoreRule {
    /// Whole rows, by the value of a column. A pattern may end with `*`.
    Row {
        /// The table's name, without the prefix.
        table: String,
        /// The column.
        column: String,
        /// The values of the column, as patterns.
        patterns: Vec<String>,
    },
    /// Columns of a table; without columns, all of them.
    Columns {
        /// The table's name, without the prefix.
        table: String,
        /// The columns.
        columns: Vec<String>,
    },
    /// Rows that an application deletes and builds again, by the value of a column.
    Rebuilt {
        /// The table's name, without the prefix.
        table: String,
        /// The column.
        column: String,
        /// The values of the column, as patterns.
        patterns: Vec<String>,
    },
}

/// The rules of an application.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SqlProfile {
    /// Changes that no page shows.
    pub rules: Vec<IgnoreRule>,
    /// Statements that stand for the reads of every page that no statement shows.
    pub statements: Vec<String>,
    /// The table, without the prefix, and the column of the application's options. It loads all of them at
    /// once, and tells by name which it uses.
    pub options: Option<(String, String)>,
}

impl SqlProfile {
    /// WordPress: scheduled tasks, transients, edit locks, notes of editing together, sessions and
    /// preferences of users, and the counts that Paid Memberships Pro writes with each page view.
    #[must_use]
    pub fn wordpress() -> SqlProfile {
        let row = |table: &str, column: &str, patterns: &[&str]| IgnoreRule::Row {
            table: table.to_owned(),
            column: column.to_owned(),
            patterns: patterns.iter().map(|&pattern| pattern.to_owned()).collect(),
        };
        let internal = [
            "cron",
            "_transient_timeout_*",
            "_site_transient_timeout_*",
            "_transient_doing_cron",
            "pmpro_visits",
            "pmpro_views",
            "pmpro_logins",
        ];
        let locks = ["_edit_lock", "_edit_last", "_encloseme", "_pingme", "wp_sync_*"];
        let transients = ["_transient_*", "_site_transient_*"];
        let rebuilt = IgnoreRule::Rebuilt {
            table: "options".to_owned(),
            column: "option_name".to_owned(),
            patterns: transients.map(str::to_owned).to_vec(),
        };
        SqlProfile {
            rules: vec![
                row("options", "option_name", &internal),
                row("postmeta", "meta_key", &locks),
                row("posts", "post_type", &["wp_sync_storage"]),
                row("usermeta", "meta_key", &WORDPRESS_PREFERENCES),
                rebuilt,
            ],
            statements: Vec::new(),
            options: Some(("options".to_owned(), "option_name".to_owned())),
        }
    }

    /// MediaWiki: counters of users, jobs and the object cache; and the messages that every page has.
    #[must_use]
    pub fn mediawiki() -> SqlProfile {
        let columns = |table: &str, columns: &[&str]| IgnoreRule::Columns {
            table: table.to_owned(),
            columns: columns.iter().map(|&column| column.to_owned()).collect(),
        };
        SqlProfile {
            rules: vec![
                columns("user", &["user_editcount", "user_touched"]),
                columns("job", &[]),
                columns("objectcache", &[]),
            ],
            statements: vec!["SELECT * FROM page WHERE page_namespace = 8".to_owned()],
            options: None,
        }
    }

    /// The tables of options, each with the column of their names.
    pub fn option_tables<'s>(
        &'s self,
        schema: &'s SqlSchema,
        prefix: &'s str,
    ) -> impl Iterator<Item = (TableId, u16)> + 's {
        let found = move |(name, column): &'s (String, String)| {
            let own = schema
                .table_ids()
                .filter(move |id| is_table(&schema.table(*id).name, prefix, name));
            own.filter_map(move |id| Some((id, schema.table(id).column(column)?)))
        };
        self.options.iter().flat_map(found)
    }

    /// The rules for the tables of a schema. `prefix` is the text before the name of each table of the
    /// application, such as `wp_`.
    #[must_use]
    pub fn for_schema(&self, schema: &SqlSchema, prefix: &str) -> Filter {
        let tables =
            schema.table_ids().map(|id| TableRules::new(&self.rules, schema.table(id), prefix));
        Filter { tables: tables.collect(), held: VecDeque::new() }
    }
}

/// A profile's rules for one schema, with the rows that are held back.
#[derive(Debug)]
pub struct Filter {
    tables: Vec<TableRules>,
    held: VecDeque<HeldRow>,
}

#[derive(Debug)]
struct HeldRow {
    event: RowEvent<'static>,
    until: Duration,
}

#[derive(Debug, Default)]
struct TableRules {
    rows: Vec<(u16, Vec<String>)>,
    rebuilt: Vec<(u16, Vec<String>)>,
    ignored: Columns,
    /// The columns that may differ in a row that was built again: its automatic key.
    automatic: Columns,
}

impl TableRules {
    fn new(rules: &[IgnoreRule], table: &SqlTable, prefix: &str) -> TableRules {
        let mut own = TableRules::default();
        let is_key = |column: &SqlColumn| column.key == ColumnKey::Primary;
        let mut keys = table.columns.iter().enumerate().filter(|(_, column)| is_key(column));
        if let (Some((at, key)), None) = (keys.next(), keys.next())
            && key.kind == SqlColumnKind::Integer
        {
            own.automatic.insert(at);
        }
        let is_own = |name: &str| is_table(&table.name, prefix, name);
        for rule in rules {
            match rule {
                IgnoreRule::Row { table: name, column, patterns } if is_own(name) => {
                    own.rows.extend(table.column(column).map(|column| (column, patterns.clone())));
                }
                IgnoreRule::Rebuilt { table: name, column, patterns } if is_own(name) => {
                    own.rebuilt
                        .extend(table.column(column).map(|column| (column, patterns.clone())));
                }
                IgnoreRule::Columns { table: name, columns } if is_own(name) => {
                    if columns.is_empty() {
                        own.ignored = Columns::ALL;
                    }
                    let known = columns.iter().filter_map(|column| table.column(column));
                    known.for_each(|column| own.ignored.insert(column.into()));
                }
                IgnoreRule::Row { .. }
                | IgnoreRule::Rebuilt { .. }
                | IgnoreRule::Columns { .. } => {}
            }
        }
        own
    }

    /// Whether no page shows the change. Leaves ignored columns out of it.
    fn ignores(&self, event: &mut RowEvent<'_>) -> bool {
        if self.rows.iter().any(|rule| matches(rule, event)) || self.ignored == Columns::ALL {
            return true;
        }
        if event.before.is_some() && event.after.is_some() {
            event.changed = event.changed.without(self.ignored);
        }
        event.changed.is_empty()
    }
}

impl Filter {
    /// Takes a changed row, and calls `pass` for each change that pages may show, in order. `now` is the
    /// time since any moment, the same for all calls.
    pub fn take(
        &mut self,
        event: RowEvent<'static>,
        now: Duration,
        mut pass: impl FnMut(RowEvent<'static>),
    ) {
        self.release(now, &mut pass);
        let mut event = event;
        let Some(rules) = self.tables.get(event.table.0 as usize) else { return pass(event) };
        if rules.ignores(&mut event) {
            return;
        }
        let is_rebuilt = rules.rebuilt.iter().any(|rule| matches(rule, &event));
        match (&event.before, &event.after) {
            (Some(_), None) if is_rebuilt && self.held.len() < HELD_MAX => {
                self.held.push_back(HeldRow { event, until: now + HELD_FOR });
            }
            (None, Some(after)) if is_rebuilt => {
                match take_rebuilt(&mut self.held, event.table, after, &rules.rebuilt) {
                    Some(before) => {
                        let (is_equal, automatic) =
                            (is_equal(&before, after, rules.automatic), rules.automatic);
                        if !is_equal {
                            pass(RowEvent {
                                before: Some(before),
                                changed: Columns::ALL.without(automatic),
                                ..event
                            });
                        }
                    }
                    None => pass(event),
                }
            }
            _ => pass(event),
        }
    }

    /// Passes the deleted rows that were not inserted again in time.
    pub fn release(&mut self, now: Duration, mut pass: impl FnMut(RowEvent<'static>)) {
        while self.held.front().is_some_and(|held| held.until <= now) {
            self.held.pop_front().into_iter().for_each(|held| pass(held.event));
        }
    }

    /// Whether a rule may ignore or hold back changes of a table that differ in one of these columns, or rows of it.
    #[must_use]
    pub fn may_leave_out(&self, table: TableId, columns: Columns) -> bool {
        self.tables.get(table.0 as usize).is_some_and(|rules| {
            !rules.rows.is_empty()
                || !rules.rebuilt.is_empty()
                || !rules.ignored.intersection(columns).is_empty()
        })
    }

    /// The number of rows that are held back.
    #[must_use]
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// The row that was held back last, if there is one.
    #[must_use]
    pub fn newest_held(&self) -> Option<&RowEvent<'static>> {
        self.held.back().map(|held| &held.event)
    }

    /// The time at which [`Filter::release`] has something to pass.
    #[must_use]
    pub fn next_release(&self) -> Option<Duration> {
        self.held.front().map(|held| held.until)
    }
}

/// Whether a table has this name behind the prefix, or behind the prefix and the number of a blog (`wp_2_`).
fn is_table(table: &str, prefix: &str, name: &str) -> bool {
    let is_digit = |letter: char| letter.is_ascii_digit();
    let own = table.strip_prefix(prefix);
    own.is_some_and(|own| {
        let blog = own.trim_start_matches(is_digit).strip_prefix('_');
        own == name || own.starts_with(is_digit) && blog == Some(name)
    })
}

/// The held row that this one replaces: with the same value in the column of a rule.
fn take_rebuilt(
    held: &mut VecDeque<HeldRow>,
    table: TableId,
    after: &SqlRow<'_>,
    rules: &[(u16, Vec<String>)],
) -> Option<SqlRow<'static>> {
    let is_same = |held: &HeldRow| {
        let before = held.event.before.as_ref();
        let has_value = |row: &SqlRow<'_>| {
            rules.iter().all(|(column, _)| row.get(*column) == after.get(*column))
        };
        held.event.table == table && before.is_some_and(has_value)
    };
    let at = held.iter().position(is_same)?;
    held.remove(at)?.event.before
}

fn is_equal(before: &SqlRow<'_>, after: &SqlRow<'_>, automatic: Columns) -> bool {
    let columns = (0..before.len().max(after.len()))
        .filter(|column| !automatic.contains(usize::from(*column)));
    let mut columns = columns.into_iter();
    columns.all(|column| {
        before.get(column) == after.get(column) && *before.get(column) != SqlValue::Unknown
    })
}

/// Whether the row has one of the values, before and after.
fn matches((column, patterns): &(u16, Vec<String>), event: &RowEvent<'_>) -> bool {
    event.images().all(|row| match row.get(*column) {
        SqlValue::Text(text) => patterns.iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(start) => text.starts_with(start),
            None => text == pattern,
        }),
        SqlValue::Null | SqlValue::Unknown => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::SqlColumn;

    fn options() -> (SqlSchema, TableId) {
        let mut schema = SqlSchema::new("site");
        let text = |name: &str, key: &str| {
            SqlColumn::new(name, "varchar(191)", Some("utf8mb4_unicode_520_ci"), key)
        };
        let id = SqlColumn::new("option_id", "bigint(20) unsigned", None, "PRI");
        schema.add("wp_options", vec![id, text("option_name", "UNI"), text("option_value", "")]);
        let table = schema.table_id("wp_options").expect("added");
        (schema, table)
    }

    fn row(values: [&str; 3]) -> SqlRow<'static> {
        SqlRow::new(values.map(|value| SqlValue::Text(value.to_owned().into())).to_vec())
    }

    /// A row before, a row after, and the second of the change.
    type Change = (Option<[&'static str; 3]>, Option<[&'static str; 3]>, u64);

    /// The changes that pages may show.
    fn passed(changes: &[Change]) -> Vec<String> {
        let (schema, table) = options();
        let mut filter = SqlProfile::wordpress().for_schema(&schema, "wp_");
        let mut passed = Vec::new();
        let mut pass = |event: RowEvent<'static>| {
            passed.push(format!(
                "{}{}",
                if event.before.is_some() { "-" } else { "" },
                if event.after.is_some() { "+" } else { "" }
            ));
        };
        for (before, after, second) in changes {
            let event = RowEvent::new(&schema, table, before.map(row), after.map(row));
            filter.take(event, Duration::from_secs(*second), &mut pass);
        }
        filter.release(Duration::from_secs(60), &mut pass);
        passed
    }

    #[test]
    fn a_row_that_no_page_shows_is_ignored() {
        let (cron, other) = (["1", "cron", "a"], ["1", "cron", "b"]);
        assert!(passed(&[(Some(cron), Some(other), 0)]).is_empty());
        assert_eq!(passed(&[(Some(cron), Some(["1", "blogname", "b"]), 0)]), ["-+"], "renamed");
        assert_eq!(passed(&[(None, Some(["2", "blogname", "b"]), 0)]), ["+"]);
    }

    /// Whether pages may show a new row of a table with this value in a column.
    fn is_shown(table: &str, column: &str, value: &str) -> bool {
        let mut schema = SqlSchema::new("site");
        let id = SqlColumn::new("id", "bigint(20) unsigned", None, "PRI");
        let collation = Some("utf8mb4_unicode_520_ci");
        schema.add(table, vec![id, SqlColumn::new(column, "varchar(255)", collation, "MUL")]);
        let id = schema.table_id(table).expect("added");
        let mut filter = SqlProfile::wordpress().for_schema(&schema, "wp_");
        let values = ["1", value].map(|value| SqlValue::Text(value.to_owned().into()));
        let event = RowEvent::new(&schema, id, None, Some(SqlRow::new(values.to_vec())));
        let mut is_shown = false;
        filter.take(event, Duration::ZERO, |_| is_shown = true);
        is_shown
    }

    #[test]
    fn rows_that_wordpress_writes_while_users_edit_are_ignored() {
        for (table, column, value) in [
            ("wp_postmeta", "meta_key", "_edit_lock"),
            ("wp_postmeta", "meta_key", "wp_sync_update"),
            ("wp_2_postmeta", "meta_key", "wp_sync_awareness"),
            ("wp_posts", "post_type", "wp_sync_storage"),
            ("wp_usermeta", "meta_key", "wp_persisted_preferences"),
            ("wp_usermeta", "meta_key", "wp_user-settings-time"),
            ("wp_usermeta", "meta_key", "closedpostboxes_post"),
            ("wp_options", "option_name", "cron"),
            ("wp_options", "option_name", "_transient_timeout_doing"),
            ("wp_options", "option_name", "pmpro_views"),
        ] {
            assert!(!is_shown(table, column, value), "{table} {value}");
        }
        for (table, column, value) in [
            ("wp_postmeta", "meta_key", "_thumbnail_id"),
            ("wp_posts", "post_type", "post"),
            ("wp_options", "option_name", "pmpro_currency"),
            ("wp_usermeta", "meta_key", "description"),
            ("wp_usermeta", "meta_key", "wp_capabilities"),
        ] {
            assert!(is_shown(table, column, value), "{table} {value}");
        }
    }

    #[test]
    fn a_row_that_is_rebuilt_with_equal_values_did_not_change() {
        let (old, same, new) =
            (["1", "_transient_a", "x"], ["2", "_transient_a", "x"], ["2", "_transient_a", "y"]);
        assert!(passed(&[(Some(old), None, 0), (None, Some(same), 0)]).is_empty());
        assert_eq!(passed(&[(Some(old), None, 0), (None, Some(new), 0)]), ["-+"]);
        assert_eq!(passed(&[(Some(old), None, 0), (None, Some(same), 1)]), ["-", "+"], "too late");
        assert_eq!(passed(&[(Some(old), None, 0)]), ["-"], "after a second");
        assert_eq!(passed(&[(None, Some(same), 0)]), ["+"]);
    }
}
