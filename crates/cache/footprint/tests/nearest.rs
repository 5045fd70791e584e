//! Statements whose result is the rows nearest to a bound, against a plain search: where a transaction changes a
//! result, its statement is touched, with look-ups at any later moment; and little else is touched.
//!
//! Not here: the database (`tests/mariadb`), and how later changes are known (`change-sources`).

use footprint::schema::{SqlColumn, SqlSchema, TableId};
use footprint::{
    Index, NearestLookup, RowEvent, SqlMode, SqlRow, SqlValue, StatementId, StatementReader,
    TableChange,
};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const COLLATION: Option<&str> = Some("utf8mb4_unicode_520_ci");

fn schema() -> Arc<SqlSchema> {
    let mut schema = SqlSchema::new("site");
    let columns = vec![
        SqlColumn::new("id", "bigint(20)", None, "PRI"),
        SqlColumn::new("at", "datetime", None, "MUL"),
        SqlColumn::new("kind", "varchar(20)", COLLATION, ""),
        SqlColumn::new("title", "text", COLLATION, ""),
    ];
    schema.add("post", columns);
    let table = schema.table_id("post").expect("added");
    schema.set_logged_first(table);
    Arc::new(schema)
}

/// The form of a bound.
#[derive(Debug, Clone, Copy)]
enum Form {
    /// `at > X`
    Beyond,
    /// `at >= X`
    From,
    /// `at > X OR at = X AND id > 3`, as WordPress compares with the date and the id.
    Pair,
}

#[derive(Debug, Clone, Copy)]
struct Query {
    is_later: bool,
    form: Form,
    bound: u32,
    kind: &'static str,
    count: usize,
}

/// The rows of the table: a minute, a kind and a title by id.
type Rows = BTreeMap<u32, (Option<u32>, &'static str, u32)>;

fn moment(minute: u32) -> String {
    format!("2026-01-01 00:{minute:02}:00")
}

impl Query {
    fn sql(self) -> String {
        let Query { is_later, form, bound, kind, count } = self;
        let (sign, order) = if is_later { ('>', "ASC") } else { ('<', "DESC") };
        let at = moment(bound);
        let bound = match form {
            Form::Beyond => format!("p.at {sign} '{at}'"),
            Form::From => format!("p.at {sign}= '{at}'"),
            Form::Pair => format!("(p.at {sign} '{at}' OR (p.at = '{at}' AND p.id {sign} 3))"),
        };
        format!(
            "SELECT p.id, p.title FROM post AS p WHERE {bound} AND p.kind = '{kind}' \
             ORDER BY p.at {order}, p.id {order} LIMIT {count}"
        )
    }

    fn result(self, rows: &Rows) -> Vec<(u32, u32)> {
        let is_beyond = |at: u32| if self.is_later { at > self.bound } else { at < self.bound };
        let is_in = |id: u32, at: u32| match self.form {
            Form::Beyond => is_beyond(at),
            Form::From => is_beyond(at) || at == self.bound,
            Form::Pair => {
                is_beyond(at) || at == self.bound && if self.is_later { id > 3 } else { id < 3 }
            }
        };
        let mut found: Vec<(u32, u32, u32)> = Vec::new();
        for (id, (at, kind, title)) in rows {
            if let Some(at) = at.filter(|at| *kind == self.kind && is_in(*id, *at)) {
                found.push((at, *id, *title));
            }
        }
        found.sort_unstable();
        if !self.is_later {
            found.reverse();
        }
        found.truncate(self.count);
        found.into_iter().map(|(_, id, title)| (id, title)).collect()
    }
}

fn query() -> impl Strategy<Value = Query> {
    let form = prop_oneof![3 => Just(Form::Beyond), 1 => Just(Form::From), 1 => Just(Form::Pair)];
    let kind = prop_oneof![4 => Just("post"), 1 => Just("page")];
    (any::<bool>(), form, 0..30_u32, kind, 1..4_usize).prop_map(
        |(is_later, form, bound, kind, count)| Query { is_later, form, bound, kind, count },
    )
}

/// The new state of some rows; `None` deletes one.
type Transaction = Vec<(u32, Option<(Option<u32>, &'static str, u32)>)>;

fn transaction() -> impl Strategy<Value = Transaction> {
    let at = prop_oneof![8 => (0..30_u32).prop_map(Some), 1 => Just(None)];
    let kind = prop_oneof![5 => Just("post"), 1 => Just("page")];
    let row = prop_oneof![3 => (at, kind, 0..3_u32).prop_map(Some), 1 => Just(None)];
    proptest::collection::vec((0..12_u32, row), 1..4)
}

fn sql_row(id: u32, (at, kind, title): (Option<u32>, &str, u32)) -> SqlRow<'static> {
    let text = |text: String| SqlValue::Text(text.into());
    let at = at.map_or(SqlValue::Null, |at| text(moment(at)));
    SqlRow::new(vec![text(id.to_string()), at, text(kind.to_owned()), text(title.to_string())])
}

/// Applies a transaction, and returns its events.
fn apply(
    schema: &SqlSchema,
    table: TableId,
    rows: &mut Rows,
    transaction: &Transaction,
) -> Vec<RowEvent<'static>> {
    let mut events = Vec::new();
    for (id, new) in transaction {
        let old = match new {
            Some(new) => rows.insert(*id, *new),
            None => rows.remove(id),
        };
        if old != *new {
            let row = |row| sql_row(*id, row);
            events.push(RowEvent::new(schema, table, old.map(row), new.map(row)));
        }
    }
    events
}

/// The statements that the events of a transaction touch. `seen` are the rows when they are looked up, after the
/// transactions with the `later` changes.
fn touched(
    index: &Index,
    events: &[RowEvent<'static>],
    seen: &Rows,
    later: &[TableChange],
) -> BTreeSet<StatementId> {
    let seen: Vec<SqlRow<'static>> = seen.iter().map(|(id, row)| sql_row(*id, *row)).collect();
    let mut all = BTreeSet::new();
    for event in events {
        let found = index.find_touched(event);
        all.extend(found.touched);
        for lookup in &found.nearest {
            let is_in_doubt = later.iter().any(|change| lookup.is_in_doubt(&seen, change));
            let rows = (!is_in_doubt).then_some(&seen[..]);
            all.extend(index.nearest(event, lookup, rows));
        }
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn a_changed_result_is_touched(
        queries in proptest::collection::vec(query(), 1..30),
        transactions in proptest::collection::vec(transaction(), 2..12),
        lateness in 0..3_usize,
    ) {
        let schema = schema();
        let table = schema.table_id("post").expect("added");
        let mut reader = StatementReader::new(schema.clone());
        let mut index = Index::new(schema.clone());
        let ids: Vec<StatementId> = queries
            .iter()
            .zip(0..)
            .map(|(query, key)| {
                let reads = reader.read(query.sql().as_bytes(), SqlMode::default()).expect("known");
                index.acquire(key, || reads)
            })
            .collect();
        let mut states = vec![Rows::new()];
        let mut events = Vec::new();
        for transaction in &transactions {
            let mut rows = states.last().cloned().unwrap_or_default();
            events.push(apply(&schema, table, &mut rows, transaction));
            states.push(rows);
        }
        for at in 0..events.len() {
            let seen = (at + 1 + lateness).min(events.len());
            let later = events[at + 1..seen].iter().flatten().cloned();
            let later: Vec<TableChange> = later.map(TableChange::Row).collect();
            let touched = touched(&index, &events[at], &states[seen], &later);
            for (query, id) in queries.iter().zip(&ids) {
                let (before, after) = (query.result(&states[at]), query.result(&states[at + 1]));
                prop_assert!(before == after || touched.contains(id), "{}", query.sql());
                let is_wide = events[at].iter().any(|event| index.touched(event).contains(id));
                prop_assert!(is_wide || !touched.contains(id), "more than without look-ups");
            }
        }
        ids.iter().for_each(|id| index.release(*id));
        prop_assert!(index.is_empty() && index.of_table(table).is_empty());
    }
}

struct Stage {
    schema: Arc<SqlSchema>,
    reader: StatementReader,
    index: Index,
    table: TableId,
}

impl Stage {
    fn new() -> Stage {
        let schema = schema();
        let table = schema.table_id("post").expect("added");
        let (reader, index) = (StatementReader::new(schema.clone()), Index::new(schema.clone()));
        Stage { schema, reader, index, table }
    }

    fn add(&mut self, key: u32, sql: &str) -> StatementId {
        let reads = self.reader.read(sql.as_bytes(), SqlMode::default()).expect("known");
        self.index.acquire(key.into(), || reads)
    }

    fn insert(&self, id: u32, at: u32) -> RowEvent<'static> {
        RowEvent::new(&self.schema, self.table, None, Some(sql_row(id, (Some(at), "post", 0))))
    }

    /// The look-ups for a new row.
    fn lookups(&self, at: u32) -> Vec<NearestLookup> {
        self.index.find_touched(&self.insert(99, at)).nearest
    }
}

fn next_after(minute: u32) -> String {
    Query { is_later: true, form: Form::Beyond, bound: minute, kind: "post", count: 1 }.sql()
}

#[test]
fn a_new_article_touches_the_one_before_it() {
    let mut stage = Stage::new();
    let ids: Vec<StatementId> = (0..50).map(|at| stage.add(at, &next_after(at))).collect();
    let rows: Rows = (0..50).map(|id| (id, (Some(id), "post", 0))).collect();
    let event = stage.insert(99, 55);
    let found = touched(&stage.index, std::slice::from_ref(&event), &rows, &[]);
    assert_eq!(Vec::from_iter(found), [ids[49]]);
    assert_eq!(stage.index.touched(&event).len(), 50, "without the look-up");
    // A row of another kind between the two is not nearer, nor is one whose kind is not known.
    for kind in ["page", "p\u{f6}st"] {
        let rows = BTreeMap::from([(1, (Some(40), "post", 0)), (2, (Some(45), kind, 0))]);
        let found = touched(&stage.index, std::slice::from_ref(&event), &rows, &[]);
        assert_eq!(found.len(), 10, "{kind}");
    }
}

#[test]
fn rows_that_later_changes_have_put_there_do_not_count() {
    let mut stage = Stage::new();
    stage.add(0, &next_after(1));
    let [lookup] = &stage.lookups(20)[..] else { panic!("one look-up") };
    let rows = [sql_row(7, (Some(10), "post", 0))];
    let row = |id, at, kind| Some(sql_row(id, (Some(at), kind, 0)));
    let change =
        |before, after| TableChange::Row(RowEvent::new(&stage.schema, stage.table, before, after));
    let unknown = SqlRow::new(vec![SqlValue::Text("7".into())]);
    for (later, expected) in [
        (change(None, row(7, 10, "post")), true),
        (change(None, row(8, 15, "post")), true),
        (change(None, row(8, 9, "post")), false),
        (change(None, row(8, 21, "post")), false),
        (change(None, row(8, 10, "page")), false),
        (change(row(7, 5, "post"), row(7, 10, "post")), true),
        (change(row(7, 10, "page"), row(7, 10, "post")), true),
        (change(row(7, 10, "post"), row(7, 10, "post")), false),
        (change(row(7, 10, "post"), None), false),
        (change(row(7, 10, "post"), Some(unknown.clone())), true),
        (change(Some(unknown), row(7, 10, "post")), true),
        (TableChange::Table(stage.table), true),
        (TableChange::Everything, true),
    ] {
        assert_eq!(lookup.is_in_doubt(&rows, &later), expected, "{later:?}");
    }
}

#[test]
fn a_row_whose_value_is_not_known_touches_all() {
    let mut stage = Stage::new();
    for at in 0..5 {
        stage.add(at, &next_after(at));
    }
    let text = |text: &'static str| SqlValue::Text(text.into());
    for at in [SqlValue::Unknown, text("soon")] {
        let row = SqlRow::new(vec![text("9"), at, text("post"), text("x")]);
        let event = RowEvent::new(&stage.schema, stage.table, None, Some(row));
        let found = stage.index.find_touched(&event);
        assert_eq!((found.touched.len(), found.nearest.len()), (5, 0));
    }
    // No date satisfies the condition.
    let row = SqlRow::new(vec![text("9"), SqlValue::Null, text("post"), text("x")]);
    let event = RowEvent::new(&stage.schema, stage.table, None, Some(row));
    assert!(stage.index.touched(&event).is_empty());
    assert_eq!(stage.index.of_table(stage.table).len(), 5);
}

#[test]
fn the_query_for_the_rows_has_the_rest_of_the_condition() {
    let mut stage = Stage::new();
    stage.add(0, &next_after(1));
    let [lookup] = &stage.lookups(20)[..] else { panic!("one look-up") };
    assert_eq!(
        lookup.query(&stage.schema).0,
        "SELECT NULL,`at`,LEFT(`kind`,2049),NULL FROM `post` WHERE ((`kind`) IN (_utf8mb4 0x706f7374)) AND \
         `at`<_utf8mb4 0x323032362d30312d30312030303a32303a3030 ORDER BY `at` DESC LIMIT 1"
    );
}

#[test]
fn other_statements_have_no_look_up() {
    let usual = next_after(1);
    let changed = |from: &str, to: &str| {
        assert!(usual.contains(from), "{from}");
        usual.replace(from, to)
    };
    for (sql, expected) in [
        (usual.clone(), 1),
        (changed("p.id, p.title", "*"), 1),
        (changed("p.id, p.title", "p.*, 1"), 0),
        (changed("p.kind = 'post'", "p.kind IN ('post', 'page') AND 1 = 1"), 1),
        (changed("p.kind = 'post'", "(p.kind = 'post' OR p.id < 5)"), 1),
        (changed("p.kind = 'post'", "p.kind LIKE 'pos_'"), 1),
        (changed("ORDER BY p.at ASC, p.id ASC", "ORDER BY at"), 1),
        // The other direction, another order, or none.
        (changed("ORDER BY p.at ASC", "ORDER BY p.at DESC"), 0),
        (changed("ORDER BY p.at ASC, p.id ASC", "ORDER BY p.id ASC, p.at ASC"), 0),
        (changed("ORDER BY p.at ASC, p.id ASC", ""), 0),
        (changed("ORDER BY p.at ASC", "ORDER BY p.at + 1"), 0),
        (changed("p.at >", "p.at <>"), 0),
        // Not the first rows, or too many.
        (changed("LIMIT 1", "LIMIT 1 OFFSET 1"), 0),
        (changed("LIMIT 1", "LIMIT 1, 1"), 0),
        (changed("LIMIT 1", ""), 0),
        (changed("LIMIT 1", "LIMIT 0"), 0),
        (changed("LIMIT 1", "LIMIT 17"), 0),
        // Other rows have a say in the result.
        (changed("p.id, p.title", "COUNT(*)"), 0),
        (changed("p.id, p.title", "MAX(p.id)"), 0),
        (changed("p.id, p.title", "RANK() OVER (ORDER BY p.id)"), 0),
        (changed("SELECT", "SELECT DISTINCT"), 0),
        (changed("SELECT", "SELECT SQL_CALC_FOUND_ROWS"), 0),
        (changed("ORDER BY", "GROUP BY p.kind ORDER BY"), 0),
        (changed("ORDER BY", "HAVING p.id > 3 ORDER BY"), 0),
        (changed("p.id, p.title", "p.id, p.id AS at"), 0),
        (changed("post AS p", "post PARTITION (p0) AS p"), 0),
        (changed("post AS p", "post AS p JOIN post AS q ON q.id = p.id"), 0),
        (changed("p.id, p.title", "p.id, (SELECT MAX(id) FROM post)"), 0),
        (format!("({usual}) UNION ({})", next_after(2)), 0),
        (format!("SELECT * FROM ({usual}) AS n"), 0),
        // A condition that is not understood.
        (changed("p.kind = 'post'", "p.kind = 'post' AND LENGTH(p.title) > 3"), 0),
        (changed("p.kind = 'post'", "p.kind = 'post' AND p.title > 'a'"), 0),
        (changed("p.kind = 'post'", "p.kind = p.title"), 0),
        (changed("p.kind = 'post'", "(p.kind = 'post' OR LENGTH(p.title) > 3)"), 0),
        (changed("p.at > '2026-01-01 00:01:00'", "(p.at > '2026-01-01 00:01:00' OR p.id = 3)"), 0),
        (changed("p.at > '2026-01-01 00:01:00'", "p.at > p.kind"), 0),
        (changed("p.at > '2026-01-01 00:01:00'", "p.at > '2026-01-01 00:01:00.5'"), 0),
        (changed("p.at > '2026-01-01 00:01:00'", "YEAR(p.at) > 2020"), 0),
    ] {
        let mut stage = Stage::new();
        let id = stage.add(0, &sql);
        assert_eq!(stage.lookups(20).len(), expected, "{sql}");
        let event = stage.insert(99, 20);
        let is_touched = stage.index.reads(id).is_some_and(|reads| reads.touched_by(&event));
        assert_eq!(stage.index.touched(&event).contains(&id), is_touched, "{sql}");
    }
}
