//! Reads the tables of a PostgreSQL database for the rules, and detects changed definitions.
//!
//! Rules name tables of the account's current schema (`public` by default) without a schema, and
//! others `schema.table`. Rows of partitions and of inheriting tables also count as rows of their
//! parents. The stream has no definitions, so each table has a *print* (fingerprint): its storage,
//! its columns and its children, each with the transaction that wrote it to the catalogue (`xmin`).
//! So a definition that is changed and changed back has another print. A table with another print
//! counts as another table. Source: PostgreSQL's manual, "System Catalogs". Not here: when the
//! catalogue is queried.

use super::connection::Connection;
use change_feed::Rules;
use change_feed::schema::{Action, Column, ForeignKey, Schema, TableDefinition};
use database_links::fault::ConnectionError;
use postgres_replication::message::Identity;
use postgres_replication::wire::query::{Rows, identifier, literal};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The most levels of inheritance that are followed.
const DEPTH_MAX: usize = 32;

const OWN: &str =
    "n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname NOT LIKE 'pg\\_%'";
/// `VACUUM` and `ANALYZE` write to `pg_class` in place, which keeps `xmin`.
const PRINT: &str = "concat_ws('/', c.oid, c.relname, n.nspname, c.relfilenode, c.relreplident, c.xmin, \
     coalesce((SELECT string_agg(concat_ws(' ', a.attnum, a.attname, a.atttypid, a.atttypmod, a.xmin), \
     ',' ORDER BY a.attnum) FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0), ''), \
     coalesce((SELECT string_agg(concat_ws(' ', i.inhrelid, i.xmin), ',' ORDER BY i.inhrelid) \
     FROM pg_inherits i WHERE i.inhparent = c.oid), ''), \
     coalesce((SELECT string_agg(concat_ws(' ', r.oid, r.xmin), ',' ORDER BY r.oid) \
     FROM pg_policy r WHERE r.polrelid = c.oid), ''))";
/// The name of a table as rules have it.
const NAME: &str = "CASE n.nspname WHEN coalesce(current_schema(), 'public') THEN c.relname::text \
     ELSE n.nspname || '.' || c.relname END";
const COLUMNS: &str = "SELECT a.attrelid, a.attname, format_type(a.atttypid, NULL), \
     a.attgenerated <> '', a.attnum = ANY (p.indkey), a.attnum = ANY (r.indkey) \
     FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid \
     JOIN pg_namespace n ON n.oid = c.relnamespace \
     LEFT JOIN pg_index p ON p.indrelid = c.oid AND p.indisprimary \
     LEFT JOIN pg_index r ON r.indrelid = c.oid AND r.indisreplident \
     WHERE a.attnum > 0 AND NOT a.attisdropped AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND ";
const KEYS: &str = "SELECT k.conrelid, k.confrelid, (SELECT string_agg(a.attname, E'\\x01' ORDER BY u.at) \
     FROM unnest(k.conkey) WITH ORDINALITY u (num, at) JOIN pg_attribute a \
     ON a.attrelid = k.conrelid AND a.attnum = u.num), (SELECT string_agg(a.attname, E'\\x01' \
     ORDER BY u.at) FROM unnest(k.confkey) WITH ORDINALITY u (num, at) JOIN pg_attribute a \
     ON a.attrelid = k.confrelid AND a.attnum = u.num) FROM pg_constraint k WHERE k.contype = 'f'";

/// The tables of a database.
#[derive(Debug, Clone, Default)]
pub struct Catalogue {
    /// The tables as the rules need them.
    pub schema: Schema,
    tables: BTreeMap<String, Table>,
    /// The names that rules use, by schema and table name.
    places: HashMap<String, HashMap<String, String>>,
}

/// A table of the catalogue.
#[derive(Debug, Clone)]
pub struct Table {
    oid: String,
    /// Its schema and its name.
    pub place: (String, String),
    /// Its name in rules, then the names of its parents.
    pub names: Vec<String>,
    /// Whether it has rows itself, or its partitions, or neither.
    pub kind: Kind,
    /// Which columns identify a row in the stream (`REPLICA IDENTITY`).
    pub identity: Identity,
    /// The columns, in the order of the table.
    pub columns: Vec<ColumnOf>,
    print: String,
}

/// The kind of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A table that has rows itself.
    Ordinary,
    /// A table whose rows are in its partitions.
    Partitioned,
    /// A table whose rows are not written to the log.
    Unlogged,
    /// A view or similar, without rows of its own.
    View,
}

/// A column of a table.
#[derive(Debug, Clone)]
pub struct ColumnOf {
    /// The name of the column.
    pub name: String,
    /// Whether the stream has its value from before a change.
    pub is_identity: bool,
    /// Whether it is a generated column, which the stream leaves out.
    pub is_generated: bool,
    /// Whether it is part of the primary key.
    pub is_primary: bool,
}

impl Catalogue {
    /// Queries the catalogue.
    ///
    /// # Errors
    /// A query failed.
    pub async fn read(connection: &mut Connection) -> Result<Catalogue, ConnectionError> {
        let tables = format!(
            "SELECT c.oid, n.nspname, c.relname, c.relkind, c.relpersistence, c.relreplident, {PRINT}, \
             {NAME} FROM pg_class c \
             JOIN pg_namespace n ON n.oid = c.relnamespace \
             WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND {OWN}"
        );
        let rows = connection.query(&tables).await?;
        let columns = format!("{COLUMNS}{OWN} ORDER BY a.attrelid, a.attnum");
        let mut columns = columns_of(&connection.query(&columns).await?);
        let above = connection.query("SELECT inhrelid, inhparent FROM pg_inherits").await?;
        let mut catalogue = Catalogue::default();
        let mut by_oid = HashMap::new();
        for row in 0..rows.rows.len() {
            let table = table(&rows, row, &mut columns);
            by_oid.insert(table.oid.clone(), table);
        }
        let parents = pairs(&above);
        for table in by_oid.values() {
            let mut table = table.clone();
            table.names = names_above(&table, &by_oid, &parents);
            catalogue.add(table);
        }
        let keys = connection.query(KEYS).await?;
        catalogue.schema.foreign_keys = foreign_keys(&keys, &by_oid);
        Ok(catalogue)
    }

    fn add(&mut self, table: Table) {
        let Some(name) = table.names.first().cloned() else { return };
        let (schema, own) = table.place.clone();
        self.schema.add(definition(&table));
        self.places.entry(schema).or_default().insert(own, name.clone());
        self.tables.insert(name, table);
    }

    /// Returns the table with this schema and name.
    #[must_use]
    pub fn at(&self, schema: &str, name: &str) -> Option<&Table> {
        self.tables.get(self.places.get(schema)?.get(name)?)
    }

    /// Iterates over all tables.
    pub fn all(&self) -> impl Iterator<Item = &Table> {
        self.tables.values()
    }

    /// Returns whether a table is a partition of another one.
    #[must_use]
    pub fn is_partition(&self, table: &Table) -> bool {
        let above = table.names.iter().skip(1).filter_map(|name| self.tables.get(name));
        above.into_iter().any(|above| above.kind == Kind::Partitioned)
    }

    /// Returns the rule names of all tables that differ from `before` or no longer exist, and those
    /// of their parents.
    #[must_use]
    pub fn changed_since(&self, before: &Catalogue) -> Vec<String> {
        let print = |catalogue: &Catalogue, name: &String| {
            catalogue.tables.get(name).map(|table| table.print.clone())
        };
        let names = self.tables.keys().chain(before.tables.keys());
        let changed = names.filter(|name| print(self, name) != print(before, name));
        let above = |name: &String| {
            let found = [self.tables.get(name), before.tables.get(name)];
            found.into_iter().flatten().flat_map(|table| table.names.clone()).collect::<Vec<_>>()
        };
        changed.flat_map(above).collect()
    }
}

impl Table {
    /// Returns the quoted name for use in statements.
    #[must_use]
    pub fn quoted(&self) -> String {
        format!("{}.{}", identifier(&self.place.0), identifier(&self.place.1))
    }
}

/// Returns a statement that computes four fingerprints. The first covers the tables that rules name,
/// whether they exist or not, and their children; the second what the publication sends of them. The
/// third identifies the publication itself: a table that is removed and added again gets another
/// number, and an altered publication another `xmin`. The fourth covers the views that read the
/// tables, and the labels of enumerations.
#[must_use]
pub fn prints(rules: &Rules, publication: &str) -> String {
    // Rules ignore the case of names. The server's `lower` may leave letters beyond ASCII.
    let names: BTreeSet<String> = rules
        .tables()
        .flat_map(|name| [name.to_owned(), name.to_lowercase()])
        .map(|name| literal(&name))
        .collect();
    let names = Vec::from_iter(names).join(", ");
    let names = if names.is_empty() { "NULL".to_owned() } else { names };
    let publication = literal(publication);
    format!(
        "WITH RECURSIVE below AS (SELECT c.oid FROM pg_class c JOIN pg_namespace n \
         ON n.oid = c.relnamespace WHERE {NAME} IN ({names}) OR lower({NAME}) IN ({names}) \
         UNION SELECT i.inhrelid FROM pg_inherits i JOIN below ON below.oid = i.inhparent), \
         own AS (SELECT c.oid, n.nspname, c.relname, {PRINT} AS print FROM below \
         JOIN pg_class c ON c.oid = below.oid JOIN pg_namespace n ON n.oid = c.relnamespace), \
         readers AS (SELECT oid FROM own UNION SELECT r.ev_class FROM readers \
         JOIN pg_depend d ON d.refclassid = 'pg_class'::regclass AND d.refobjid = readers.oid \
         AND d.classid = 'pg_rewrite'::regclass JOIN pg_rewrite r ON r.oid = d.objid) \
         SELECT (SELECT md5(coalesce(string_agg(print, ';' ORDER BY oid), '')) FROM own), \
         (SELECT md5(coalesce(string_agg(t::text, ';' ORDER BY t::text), '')) \
         FROM pg_publication_tables t JOIN own ON own.nspname = t.schemaname \
         AND own.relname = t.tablename WHERE t.pubname = {publication}), \
         (SELECT md5(coalesce(string_agg(concat_ws(' ', p::text, p.xmin::text, d.classid::text, \
         d.objid::text), ';' ORDER BY d.classid, d.objid), '')) FROM pg_publication p \
         LEFT JOIN pg_depend d ON d.refclassid = 'pg_publication'::regclass AND d.refobjid = p.oid \
         WHERE p.pubname = {publication}), \
         md5(concat((SELECT string_agg(concat_ws(' ', r.oid, r.xmin), ',' ORDER BY r.oid) \
         FROM pg_rewrite r JOIN readers ON readers.oid = r.ev_class), ';', \
         (SELECT string_agg(concat_ws(' ', e.oid, e.xmin), ',' ORDER BY e.oid) FROM pg_enum e)))"
    )
}

fn text(rows: &Rows, row: usize, column: usize) -> String {
    rows.text(row, column).unwrap_or_default()
}

fn table(rows: &Rows, row: usize, columns: &mut HashMap<String, Vec<ColumnRow>>) -> Table {
    let text = |column| text(rows, row, column);
    let kind = match (text(3).as_str(), text(4).as_str()) {
        ("r", "p") => Kind::Ordinary,
        ("p", _) => Kind::Partitioned,
        ("r", _) => Kind::Unlogged,
        _ => Kind::View,
    };
    let letter = text(5).bytes().next().unwrap_or(b'n');
    let identity = Identity::of(letter).unwrap_or(Identity::Nothing);
    let listed = columns.remove(&text(0)).unwrap_or_default();
    let columns = listed.into_iter().map(|column| ColumnOf {
        is_identity: match identity {
            Identity::Full => true,
            Identity::Default => column.is_primary,
            Identity::Index => column.is_in_index,
            Identity::Nothing => false,
        },
        name: column.name,
        is_generated: column.is_generated,
        is_primary: column.is_primary,
    });
    Table {
        oid: text(0),
        place: (text(1), text(2)),
        names: vec![text(7)],
        kind,
        identity,
        columns: columns.collect(),
        print: text(6),
    }
}

struct ColumnRow {
    name: String,
    is_generated: bool,
    is_primary: bool,
    is_in_index: bool,
}

fn columns_of(rows: &Rows) -> HashMap<String, Vec<ColumnRow>> {
    let mut columns: HashMap<String, Vec<ColumnRow>> = HashMap::new();
    for row in 0..rows.rows.len() {
        let is = |column| rows.text(row, column).as_deref() == Some("t");
        let (is_generated, is_primary, is_in_index) = (is(3), is(4), is(5));
        let name = text(rows, row, 1);
        let listed = ColumnRow { name, is_generated, is_primary, is_in_index };
        columns.entry(text(rows, row, 0)).or_default().push(listed);
    }
    columns
}

/// Converts a table to its definition for the rules.
#[must_use]
pub fn definition(table: &Table) -> TableDefinition {
    TableDefinition {
        name: table.names.first().cloned().unwrap_or_default(),
        is_view: table.kind == Kind::View,
        columns: table.columns.iter().map(column_of).collect(),
    }
}

fn column_of(column: &ColumnOf) -> Column {
    Column {
        name: column.name.clone(),
        is_primary_key: column.is_primary,
        // The stream contains rows that a foreign key changes, so nothing is derived from parent rows.
        is_loosely_equal: true,
        is_generated: false,
        is_text: true,
        collation: None,
    }
}

fn pairs(rows: &Rows) -> HashMap<String, Vec<String>> {
    let mut pairs: HashMap<String, Vec<String>> = HashMap::new();
    for row in 0..rows.rows.len() {
        pairs.entry(text(rows, row, 0)).or_default().push(text(rows, row, 1));
    }
    pairs
}

fn names_above(
    table: &Table,
    by_oid: &HashMap<String, Table>,
    parents: &HashMap<String, Vec<String>>,
) -> Vec<String> {
    let mut names = table.names.clone();
    let mut level = vec![table.oid.clone()];
    for _ in 0..DEPTH_MAX {
        if level.is_empty() {
            break;
        }
        level =
            level.iter().flat_map(|oid| parents.get(oid).cloned().unwrap_or_default()).collect();
        for above in level.iter().filter_map(|oid| by_oid.get(oid)) {
            let own = above.names.iter().filter(|name| !names.contains(name)).cloned();
            names.extend(own.collect::<Vec<_>>());
        }
    }
    names
}

/// Reads the foreign keys for rule proposals. The stream already contains every row that they
/// change.
fn foreign_keys(rows: &Rows, by_oid: &HashMap<String, Table>) -> Vec<ForeignKey> {
    let name = |row, column| {
        by_oid.get(&text(rows, row, column)).and_then(|table| table.names.first().cloned())
    };
    let columns = |row, column| text(rows, row, column).split('\x01').map(str::to_owned).collect();
    let key = |row| {
        Some(ForeignKey {
            child: name(row, 0)?,
            columns: columns(row, 2),
            parent: name(row, 1)?,
            parent_columns: columns(row, 3),
            on_delete: Action::Refuse,
            on_update: Action::Refuse,
        })
    };
    (0..rows.rows.len()).filter_map(key).collect()
}
