//! The invariant of the crate against a real MariaDB: where a change of a row changes the result of a
//! statement, a footprint of the statement is touched, the index finds it, and the join check lets it pass.
//!
//! Each case has random tables, statements and changes. `PROPTEST_RNG_SEED` is the seed of the first case, and
//! `PROPTEST_CASES` their number; a failure names the seed of its case. Not here: single statements
//! (`tests/reader.rs`).

mod lists;
mod nearest;
mod predicates;
mod statements;
mod tables;

use followed_database::sql::MariaDbConnection;
use footprint::schema::{SqlColumn, SqlSchema};
use footprint::{
    Affects, Index, PartnerRows, Reads, RecentRows, RowEvent, SqlCharset, SqlMode, SqlRow,
    SqlValue, StatementId, StatementReader,
};

use harness::{MariaDb, MariaDbOptions, PrivateDir, Random, SqlProduct};
use nearest::EarlierChange;
use statements::Generator;
use std::fmt::Write;
use std::sync::Arc;
use tables::{Class, RecordedChange, SqlTable};

const CASES: u64 = 40;
const STATEMENTS: usize = 40;
const CHANGES: usize = 30;
const FAILURES_MAX: usize = 8;

const MODES: [&str; 12] = [
    "",
    "",
    "",
    "ANSI_QUOTES",
    "STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_AUTO_CREATE_USER,NO_ENGINE_SUBSTITUTION",
    "",
    "",
    "TRADITIONAL",
    "ANSI_QUOTES,PIPES_AS_CONCAT",
    "NO_BACKSLASH_ESCAPES",
    "HIGH_NOT_PRECEDENCE",
    "PAD_CHAR_TO_FULL_LENGTH",
];

/// A mode that MySQL has no more.
const GONE: &str = "NO_AUTO_CREATE_USER";

/// The rows of a result in a fixed order, or the error.
type Answer = Result<Vec<Vec<Option<Vec<u8>>>>, String>;
type Image = Option<Vec<Option<Vec<u8>>>>;

/// A statement that the server accepts.
struct Query {
    sql: String,
    reads: Reads,
    id: StatementId,
    answer: Answer,
    /// Whether a change of its result was missed: once is enough.
    has_failed: bool,
}

#[derive(Debug, Default)]
struct Totals {
    drawn: usize,
    accepted: usize,
    with_rows: usize,
    unknown: usize,
    whole: usize,
    changes: usize,
    pairs: usize,
    touched: usize,
    /// Those that the join check lets pass.
    affected: usize,
    differing: usize,
    /// Those that a look-up of the nearest rows leaves out.
    farther: usize,
}

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

#[test]
fn a_change_of_a_result_touches_a_footprint() {
    let dir = PrivateDir::temporary("footprint").expect("a directory");
    let options = ["--innodb-flush-log-at-trx-commit=0", "--innodb-flush-method=nosync"];
    let options = options.map(String::from).to_vec();
    let server = MariaDb::start_with(dir, MariaDbOptions { port: None, options }).expect("MariaDB");
    server.create_database("items", "writer", "secret").expect("a database");
    let (seed, cases) = (number("PROPTEST_RNG_SEED", 1), number("PROPTEST_CASES", CASES));
    let (mut totals, mut failures) = (Totals::default(), Vec::new());
    for seed in seed..seed.saturating_add(cases) {
        let mut case = Case::start(&server, seed);
        case.run(&mut totals, &mut failures);
        if failures.len() >= FAILURES_MAX {
            break;
        }
    }
    println!("{totals:?}");
    assert!(failures.is_empty(), "{}\n\n{totals:?}", failures.join("\n\n"));
    if cases < CASES {
        return;
    }
    // Otherwise the test would pass by refusing all statements, or by touching all footprints.
    assert!(totals.accepted * 2 > totals.drawn, "few statements are accepted: {totals:?}");
    assert!(totals.with_rows * 2 > totals.accepted, "few statements find rows: {totals:?}");
    assert!(totals.unknown * 10 < totals.accepted, "many statements are refused: {totals:?}");
    assert!(totals.whole * 2 < totals.accepted, "many tables count as a whole: {totals:?}");
    assert!(totals.touched * 20 < totals.pairs * 17, "nearly all is touched: {totals:?}");
    assert!(totals.differing * 20 > totals.pairs, "few results differ: {totals:?}");
    assert!(totals.farther * 1000 > totals.pairs, "few rows are farther: {totals:?}");
}

struct Case {
    seed: u64,
    random: Random,
    /// Runs the statements, in their mode.
    reader: MariaDbConnection,
    /// Changes rows, in the same mode for all cases.
    writer: MariaDbConnection,
    sql_mode: &'static str,
    charset: SqlCharset,
    tables: Vec<SqlTable>,
    schema: Arc<SqlSchema>,
    index: Index,
}

impl Case {
    fn start(server: &MariaDb, seed: u64) -> Case {
        // Seeds that follow each other begin with similar numbers.
        let mut random = Random::new(seed.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let connect = || MariaDbConnection::open(server.socket()).expect("a connection");
        let (mut reader, mut writer) = (connect(), connect());
        let mut sql_mode = random.one(&MODES);
        if server.product() == SqlProduct::MySql && sql_mode.contains(GONE) {
            sql_mode = "STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION";
        }
        // MediaWiki sends bytes.
        let (charset, name) = match seed % 4 {
            3 => (SqlCharset::Binary, "binary"),
            _ => (SqlCharset::Utf8, "utf8mb4"),
        };
        reader.rows(&format!("SET NAMES {name}")).expect("a setting");
        reader.rows(&format!("SET sql_mode = '{sql_mode}'")).expect("a setting");
        writer.rows("SET NAMES utf8mb4, sql_mode = ''").expect("a setting");
        for at in 0..4 {
            writer.rows(&format!("DROP TABLE IF EXISTS t{at}")).expect("no table");
        }
        let tables: Vec<SqlTable> = (0..2 + random.below(3))
            .map(|at| SqlTable::draw(at, server.product(), &mut random))
            .collect();
        let mut schema = SqlSchema::new("items");
        for table in &tables {
            writer.rows(&table.create()).expect("a table");
            for _ in 0..4 + random.below(5) {
                // A row whose key exists is left out.
                let _ = writer.rows(&table.insert(&mut random).1);
            }
            schema.add(&table.name, columns(&mut writer, &table.name));
            let id = schema.table_id(&table.name).expect("added");
            schema.set_logged_first(id);
        }
        let schema = Arc::new(schema);
        let index = Index::new(Arc::clone(&schema));
        Case { seed, random, reader, writer, sql_mode, charset, tables, schema, index }
    }

    fn run(&mut self, totals: &mut Totals, failures: &mut Vec<String>) {
        let mut queries = self.queries(totals);
        let mut recent = RecentRows::new(1000);
        let mut earlier: Option<EarlierChange> = None;
        for position in 1..=CHANGES as u64 {
            let ids = self.ids();
            let change = RecordedChange::draw(&self.tables, &ids, &mut self.random);
            let before = self.row(change.table, change.before);
            if change.before.is_some() && before.is_none() || self.writer.rows(&change.sql).is_err()
            {
                continue;
            }
            let after = self.row(change.table, change.after);
            if before == after {
                continue;
            }
            totals.changes += 1;
            let table = self.schema.table_id(&self.tables[change.table].name).expect("a table");
            let events = self.events(change.table, &before, &after);
            // The look-ups of the changes before have been made.
            recent.forget_up_to(position - 1);
            recent.push(position, &events[0]);
            let found = events.each_ref().map(|event| self.index.touched(event));
            let nearest = events.each_ref().map(|event| self.nearest(event, None));
            if let Some(earlier) = earlier.take() {
                failures.extend(self.check_later(&earlier, &events));
            }
            let mut changed = Vec::new();
            let mut partners = [0; 3].map(|_| PartnerRows::new(&recent));
            for query in &mut queries {
                let answer = answer(&mut self.reader, &query.sql);
                let is_same = answer == query.answer;
                let mut own = query.reads.footprints().filter(|footprint| footprint.table == table);
                totals.pairs += usize::from(own.next().is_some());
                let touched = events.each_ref().map(|event| touches(&query.reads, event));
                let is_found = found.each_ref().map(|found| found.contains(&query.id));
                let mut affected = touched;
                for ((affected, event), partners) in
                    affected.iter_mut().zip(&events).zip(&mut partners)
                {
                    *affected = *affected && self.affects(&query.reads, event, partners);
                }
                for (affected, nearest) in affected.iter_mut().zip(&nearest) {
                    totals.farther += usize::from(*affected && !nearest.contains(&query.id));
                    *affected = *affected && nearest.contains(&query.id);
                }
                totals.touched += usize::from(touched[0]);
                totals.affected += usize::from(affected[0]);
                totals.differing += usize::from(!is_same);
                // The server's answer to an impossible date depends on its plan, which can change at any time.
                let is_read = query.sql.contains(&self.tables[change.table].name);
                let is_missed = !is_same && is_read && affected.contains(&false);
                if !is_same && is_read && !is_missed {
                    changed.push((query.id, query.sql.clone()));
                }
                if (is_missed || is_found != touched) && !query.has_failed {
                    query.has_failed = true;
                    let mut text = self.failure(query, &change, &events, &answer);
                    let _ = writeln!(
                        text,
                        "  touched {touched:?} found {is_found:?} affected {affected:?}"
                    );
                    failures.push(text);
                }
                query.answer = answer;
            }
            earlier = Some(EarlierChange { sql: change.sql, events, changed });
        }
    }

    /// Whether the join check lets the change pass, with the look-ups that it needs.
    fn affects(
        &mut self,
        reads: &Reads,
        event: &RowEvent<'_>,
        partners: &mut PartnerRows<'_>,
    ) -> bool {
        loop {
            match reads.affected_by(event, partners) {
                Affects::No => return false,
                Affects::Yes => return true,
                Affects::Unfinished => {}
            }
            for lookup in partners.take_missing() {
                let table = self.schema.table(lookup.table);
                let column = &table.columns[usize::from(lookup.column)].name;
                let value = lookup.value.replace('\\', "\\\\").replace('\'', "''");
                let sql = format!("SELECT * FROM {} WHERE `{column}` = '{value}'", table.name);
                let row = |row: &Vec<Option<Vec<u8>>>| {
                    SqlRow::new(row.iter().map(|value| text(value.as_deref())).collect())
                };
                // The server refuses some texts in comparisons with columns of fewer characters.
                let rows = self.writer.rows(&sql).ok();
                let rows = rows.map(|rows| rows.rows.iter().map(row).collect());
                partners.found(lookup, rows);
            }
        }
    }

    fn queries(&mut self, totals: &mut Totals) -> Vec<Query> {
        let mode = SqlMode { charset: self.charset, ..SqlMode::of(self.sql_mode) };
        let random = Random::new(self.seed.wrapping_add(7).wrapping_mul(0xA076_1D64_78BD_642F));
        let mut generator = Generator::new(&self.tables, mode, random);
        let mut reader = StatementReader::new(Arc::clone(&self.schema));
        let mut queries = Vec::new();
        for number in 0..STATEMENTS {
            let is_nearest = self.seed % 4 == 1 && number % 2 == 0;
            let sql = if is_nearest { generator.nearest() } else { generator.statement() };
            totals.drawn += 1;
            let answer = answer(&mut self.reader, &sql);
            let Ok(rows) = &answer else { continue };
            totals.accepted += 1;
            totals.with_rows += usize::from(!rows.is_empty());
            let Ok(reads) = reader.read(sql.as_bytes(), mode) else {
                totals.unknown += 1;
                continue;
            };
            totals.whole += usize::from(is_whole(&mut reader, &reads));
            let id = self.index.acquire(queries.len() as u128, || reads.clone());
            queries.push(Query { sql, reads, id, answer, has_failed: false });
        }
        queries
    }

    /// The ids of the rows of each table.
    fn ids(&mut self) -> Vec<Vec<usize>> {
        let mut ids = |table: &SqlTable| {
            let rows = self.writer.rows(&format!("SELECT id FROM {}", table.name)).expect("ids");
            let id = |row| rows.text(row, 0).and_then(|text| text.parse().ok());
            (0..rows.rows.len()).filter_map(id).collect()
        };
        self.tables.iter().map(&mut ids).collect()
    }

    fn row(&mut self, table: usize, id: Option<usize>) -> Image {
        let sql = self.tables[table].row(id?);
        let mut rows = self.writer.rows(&sql).expect("rows").rows;
        assert!(rows.len() <= 1, "{sql}");
        rows.pop()
    }

    /// The change as the server logs it with `row_image` FULL, NOBLOB and MINIMAL.
    fn events(&self, table: usize, before: &Image, after: &Image) -> [RowEvent<'static>; 3] {
        let id = self.schema.table_id(&self.tables[table].name).expect("a table");
        let own = &self.tables[table];
        let changed = |at: usize| match (before, after) {
            (Some(before), Some(after)) => before[at] != after[at],
            _ => true,
        };
        [0, 1, 2].map(|image: u8| {
            let row = |values: &Image, is_before: bool| {
                let values = values.as_ref()?.iter().enumerate();
                let value = |(at, value): (usize, &Option<Vec<u8>>)| {
                    let is_key = at == 0;
                    let is_logged = match image {
                        0 => true,
                        1 => !own.is_long(at) || changed(at) && !is_before,
                        _ => is_key && is_before || changed(at) && !is_before,
                    };
                    let is_logged = is_logged && !own.columns[at].is_generated;
                    let is_known = own.columns[at].class != Class::Other || image == 0;
                    if is_logged && is_known { text(value.as_deref()) } else { SqlValue::Unknown }
                };
                Some(SqlRow::new(values.map(value).collect()))
            };
            RowEvent::new(&self.schema, id, row(before, true), row(after, false))
        })
    }

    fn failure(
        &self,
        query: &Query,
        change: &RecordedChange,
        events: &[RowEvent<'_>; 3],
        answer: &Answer,
    ) -> String {
        let mut text =
            format!("seed {}, sql_mode '{}', {:?}\n", self.seed, self.sql_mode, self.charset);
        for table in &self.tables {
            let _ = writeln!(text, "{};", table.create());
        }
        let _ = writeln!(text, "{}\n  with {}", query.sql, change.sql);
        let _ = writeln!(text, "  before {}", shown(&query.answer));
        let _ = writeln!(text, "  after {}", shown(answer));
        for event in events {
            let is_touched = touches(&query.reads, event);
            let _ = writeln!(text, "  touched {is_touched} by {:?}", (&event.before, &event.after));
        }
        for footprint in query.reads.footprints().filter(|own| own.table == events[0].table) {
            let _ = writeln!(text, "  {footprint:?}");
        }
        text
    }
}

fn shown(answer: &Answer) -> String {
    match answer {
        Ok(rows) => {
            let text = |value: &Option<Vec<u8>>| {
                value.as_ref().map(|value| String::from_utf8_lossy(value).into_owned())
            };
            let rows: Vec<Vec<_>> = rows.iter().map(|row| row.iter().map(text).collect()).collect();
            format!("{rows:?}")
        }
        Err(error) => error.clone(),
    }
}

fn text(value: Option<&[u8]>) -> SqlValue<'static> {
    match value.map(|value| String::from_utf8(value.to_vec())) {
        None => SqlValue::Null,
        Some(Ok(text)) => SqlValue::Text(text.into()),
        Some(Err(_)) => SqlValue::Unknown,
    }
}

fn touches(reads: &Reads, event: &RowEvent<'_>) -> bool {
    reads.touched_by(event)
}

fn answer(connection: &mut MariaDbConnection, sql: &str) -> Answer {
    let mut rows = connection.rows(sql)?.rows;
    rows.sort();
    Ok(rows)
}

/// Whether each footprint is that of a whole table.
fn is_whole(reader: &mut StatementReader, reads: &Reads) -> bool {
    let schema = Arc::clone(reader.schema());
    reads.footprints().all(|own| {
        let sql = format!("SELECT * FROM {}", schema.table(own.table).name);
        let whole = reader.read(sql.as_bytes(), SqlMode::default()).expect("a table");
        whole.footprints().next() == Some(own)
    })
}

/// The columns of a table, from the server.
fn columns(connection: &mut MariaDbConnection, table: &str) -> Vec<SqlColumn> {
    let sql = format!(
        "SELECT COLUMN_NAME, DATA_TYPE, COLLATION_NAME, COLUMN_KEY, GENERATION_EXPRESSION
         FROM information_schema.COLUMNS
         WHERE TABLE_SCHEMA = 'items' AND TABLE_NAME = '{table}' ORDER BY ORDINAL_POSITION"
    );
    let rows = connection.rows(&sql).expect("columns");
    let text = |row, column| rows.text(row, column).unwrap_or_default();
    let column = |row: usize| {
        let collation = rows.text(row, 2);
        let column =
            SqlColumn::new(&text(row, 0), &text(row, 1), collation.as_deref(), &text(row, 3));
        // MariaDB has NULL for other columns, MySQL an empty text.
        if text(row, 4).is_empty() { column } else { column.generated() }
    };
    (0..rows.rows.len()).map(column).collect()
}
