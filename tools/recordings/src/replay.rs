//! Replays a recording: which pages the footprints of their statements would have purged, beside those that
//! really changed.
//!
//! The tables are kept in memory, so that the join check finds the partners that a database would find.
//! Not here: the reading of statements and rows, and the checks, which are the product's.

use super::recording::{Recording, positional_row, read_file};
use footprint::profile::{Filter, SqlProfile};
use footprint::schema::{SqlSchema, TableId};
use footprint::{
    Affects, Lookup, PartnerRows, Reads, RecentRows, RowEvent, SqlMode, SqlRow, SqlValue,
    StatementReader,
};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The number of rows before changes that are remembered for the join check.
const RECENT_MAX: usize = 4096;

/// Replays the recording, prints a line for each change and the totals.
///
/// `options` is a file that says for each page which WordPress options it asked for.
///
/// # Errors
/// A message, if a file cannot be read or a page that changed was missed.
pub fn run(file: &Path, options: Option<&Path>) -> Result<(), String> {
    let total = replay(file, options)?;
    println!("{}", total.summary());
    match total.missed {
        0 => Ok(()),
        missed => Err(format!("{missed} pages were missed")),
    }
}

fn replay(file: &Path, options: Option<&Path>) -> Result<Total, String> {
    let recording = Recording::read(file)?;
    let asked = options.map(read_options).transpose()?.unwrap_or_default();
    let mut reader = StatementReader::new(Arc::new(recording.schema()));
    let reads = read_all(&recording, &mut reader);
    let schema = reader.schema().clone();
    let mut tables = Tables::new(&recording, &schema);
    let (profile, prefix) = profile(&recording);
    let mut filter = profile.for_schema(&schema, prefix);
    let mut recent = RecentRows::new(RECENT_MAX);
    // By page and statement: the options that a page asks for are the same in all states.
    let mut narrowed: HashMap<(&str, usize), Reads> = HashMap::new();
    let mut total = Total::default();
    println!("really changed  missed  touched  unchanged and touched  look-ups  change");
    for (position, change) in (1..).zip(&recording.changes) {
        let events = shown(change.row_events(&schema), &mut filter, &mut tables);
        // All look-ups for the changes before this one have been made.
        recent.forget_up_to(position - 1);
        events.iter().for_each(|event| recent.push(position, event));
        let changed: BTreeSet<&str> =
            change.changed.iter().map(|page| recording.url(page)).collect();
        let Some(state) = recording.states.get(change.before) else { continue };
        let mut partners = PartnerRows::new(&recent);
        let mut lookups = 0;
        let mut touched: BTreeSet<&str> = BTreeSet::new();
        for (url, look) in state {
            let mut is_affected = |at: &usize| {
                let reads = narrowed
                    .entry((url.as_str(), *at))
                    .or_insert_with(|| narrow(&mut reader, &reads[*at], asked.get(url)));
                events
                    .iter()
                    .any(|event| affects(reads, event, &mut partners, &tables, &mut lookups))
            };
            if look.statements.iter().any(&mut is_affected) {
                touched.insert(url);
            }
        }
        total.add(&changed, &touched, lookups, &change.name);
    }
    Ok(total)
}

/// The changes that pages may show. All of them change the tables.
fn shown(
    events: Vec<(RowEvent<'static>, i64)>,
    filter: &mut Filter,
    tables: &mut Tables,
) -> Vec<RowEvent<'static>> {
    let mut shown = Vec::new();
    for (event, second) in events {
        tables.apply(&event);
        let now = Duration::from_secs(u64::try_from(second).unwrap_or_default());
        filter.take(event, now, |event| shown.push(event));
    }
    // Nothing is inserted again before the next change.
    filter.release(Duration::MAX, |event| shown.push(event));
    shown
}

/// The rules for the application, and the prefix of its tables.
fn profile(recording: &Recording) -> (SqlProfile, &'static str) {
    match recording.app.as_str() {
        "wp" => (SqlProfile::wordpress(), "wp_"),
        "mw" => (SqlProfile::mediawiki(), ""),
        _ => (SqlProfile::default(), ""),
    }
}

fn read_options(file: &Path) -> Result<HashMap<String, Vec<String>>, String> {
    let fault = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
    serde_json::from_slice(&read_file(file)?).map_err(|error| fault(&error))
}

/// The statement that loads all options reads those that the page asks for.
fn narrow(reader: &mut StatementReader, reads: &Reads, asked: Option<&Vec<String>>) -> Reads {
    let (schema, mut reads) = (reader.schema().clone(), reads.clone());
    let options = schema.table_id("wp_options");
    if let (Some(asked), Some(table)) = (asked, options) {
        let asked: Vec<&str> = asked.iter().map(String::as_str).collect();
        let column = schema.table(table).column("option_name");
        if let Some(column) = column {
            reader.narrow(&mut reads, table, column, &asked);
        }
    }
    reads
}

fn read_all(recording: &Recording, reader: &mut StatementReader) -> Vec<Reads> {
    let mut reads = Vec::with_capacity(recording.statements.len());
    for text in &recording.statements {
        reads.push(reader.read(text.as_bytes(), SqlMode::default()).unwrap_or_else(|reason| {
            println!("unknown reads: {reason}: {text}");
            Reads::default()
        }));
    }
    reads
}

/// Whether an event affects what was read; looks up partners until that is known.
fn affects(
    reads: &Reads,
    event: &RowEvent<'_>,
    partners: &mut PartnerRows<'_>,
    tables: &Tables,
    lookups: &mut usize,
) -> bool {
    loop {
        match reads.affected_by(event, partners) {
            Affects::No => return false,
            Affects::Yes => return true,
            Affects::Unfinished => {
                for lookup in partners.take_missing() {
                    *lookups += 1;
                    let rows = tables.find(&lookup);
                    partners.found(lookup, Some(rows));
                }
            }
        }
    }
}

/// The rows of all tables, as the changes leave them.
struct Tables(BTreeMap<TableId, Vec<SqlRow<'static>>>);

impl Tables {
    fn new(recording: &Recording, schema: &SqlSchema) -> Tables {
        let mut tables = BTreeMap::new();
        for (name, rows) in &recording.initial {
            if let Some(id) = schema.table_id(name) {
                let rows: Vec<SqlRow<'static>> =
                    rows.iter().map(|row| positional_row(schema, id, row)).collect();
                tables.insert(id, rows);
            }
        }
        Tables(tables)
    }

    fn apply(&mut self, event: &RowEvent<'static>) {
        let rows = self.0.entry(event.table).or_default();
        if let Some(before) = &event.before
            && let Some(at) = rows.iter().position(|row| row == before)
        {
            rows.swap_remove(at);
        }
        rows.extend(event.after.clone());
    }

    fn find(&self, lookup: &Lookup) -> Vec<SqlRow<'static>> {
        let value = SqlValue::Text(lookup.value.as_ref().into());
        let rows = self.0.get(&lookup.table).into_iter().flatten();
        rows.filter(|row| *row.get(lookup.column) == value).cloned().collect()
    }
}

#[derive(Default)]
struct Total {
    changed: usize,
    missed: usize,
    touched: usize,
    idle: usize,
    lookups: usize,
}

impl Total {
    fn add(
        &mut self,
        changed: &BTreeSet<&str>,
        touched: &BTreeSet<&str>,
        lookups: usize,
        name: &str,
    ) {
        let missed: Vec<&&str> = changed.difference(touched).collect();
        println!(
            "{:>14}  {:>6}  {:>7}  {:>21}  {lookups:>8}  {name}",
            changed.len(),
            missed.len(),
            touched.len(),
            touched.difference(changed).count(),
        );
        missed.iter().for_each(|url| println!("    missed: {url}"));
        if changed.is_empty() {
            touched.iter().for_each(|url| println!("    touched: {url}"));
        }
        self.changed += changed.len();
        self.missed += missed.len();
        self.touched += touched.len();
        self.lookups += lookups;
        if changed.is_empty() {
            self.idle += touched.len();
        }
    }

    fn summary(&self) -> String {
        format!(
            "really changed {}, missed {}, touched {} ({:.2} times), of them {} by changes that change nothing; \
             {} look-ups",
            self.changed,
            self.missed,
            self.touched,
            self.ratio(),
            self.idle,
            self.lookups
        )
    }

    /// How many pages are touched for each that really changes.
    #[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
    fn ratio(&self) -> f64 {
        self.touched as f64 / self.changed.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use footprint::ReadsLoader;

    #[test]
    fn wordpress_as_recorded_misses_no_page_and_purges_few_others() {
        let recordings = harness::root::repository().join("tests/footprints");
        let total = replay(
            &recordings.join("wordpress.json.gz"),
            Some(&recordings.join("wordpress-options.json.gz")),
        );
        let total = total.expect("a recording");
        assert_eq!((total.changed, total.missed), (592, 0), "{}", total.summary());
        assert!(total.ratio() < 2.1, "{}", total.summary());
        assert!(total.idle <= 3, "{}", total.summary());
    }
    /// As for a restart of Pagewell.
    #[test]
    fn all_recorded_statements_come_back_from_bytes() {
        let recordings = harness::root::repository().join("tests/footprints");
        let recording = Recording::read(&recordings.join("wordpress.json.gz")).expect("a file");
        let asked = read_options(&recordings.join("wordpress-options.json.gz")).expect("a file");
        let mut reader = StatementReader::new(Arc::new(recording.schema()));
        let reads = read_all(&recording, &mut reader);
        let (options, _) = asked.iter().max_by_key(|(_, names)| names.len()).expect("a page");
        let narrowed: Vec<Reads> =
            reads.iter().map(|own| narrow(&mut reader, own, asked.get(options))).collect();
        assert_ne!(reads, narrowed, "a statement loads all options");
        let mut loader = ReadsLoader::new(reader.schema().clone());
        let mut bytes = |all: &[Reads]| -> usize {
            let bytes = all.iter().map(|own| {
                let saved = own.save().expect("within the limits");
                assert_eq!(loader.read(&saved).as_ref(), Ok(own));
                saved.len()
            });
            bytes.sum()
        };
        let (plain, count) = (bytes(&reads), reads.len());
        assert!(plain / count < 200, "{plain} bytes for {count} statements");
        // Those that read options name all options of the page.
        let narrow = bytes(&narrowed);
        assert!(narrow / count < 3_000, "{narrow} bytes for {count} statements");
    }
}
