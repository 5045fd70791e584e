//! Makes a recording of Debian's WordPress: the statements of each page, the row changes, and the truth.
//!
//! The blog is a real one on a private MariaDB, without a plugin and without a cache. All pages are rendered
//! before and after each change; a page changed if its response did. The format is in
//! `tests/footprints/README.md`. Not here: what footprints make of it.

mod binary_log;
mod capture;
mod editor;
mod plan;
mod responder;
mod site;

use super::recording::{RecordedChange, RecordedPage, Recording};
use binary_log::BinaryLog;
pub use editor::Editor;
use flate2::Compression;
use flate2::write::GzEncoder;
use harness::{Deadline, Response};
pub use plan::{ChangeAction, RecordingPlan};
pub use site::{AdminRequest, Blog, Sidebar};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A state: for each URL what was seen.
type State = BTreeMap<String, RecordedPage>;

/// Records the whole plan and writes the recording to `out`, and the options of each page beside it.
///
/// # Errors
/// A message, if a server is not installed, a change is refused, or a file cannot be written.
pub fn run(has_widgets: bool, out: &Path) -> Result<(), String> {
    let sidebar = if has_widgets { Sidebar::Default } else { Sidebar::Empty };
    let blog = Blog::start(sidebar)?;
    let (recording, options) = record(&blog, &RecordingPlan::whole())?;
    let beside = options_file(out);
    write(out, &recording)?;
    write(&beside, &options)?;
    println!("{} and {}", out.display(), beside.display());
    Ok(())
}

/// The name of the file with the options: `-options` before the extension.
fn options_file(out: &Path) -> PathBuf {
    let name = out.file_name().unwrap_or_default().to_string_lossy();
    let (stem, extension) = name.split_once('.').unwrap_or((&name, "json"));
    out.with_file_name(format!("{stem}-options.{extension}"))
}

fn write(file: &Path, content: &impl serde::Serialize) -> Result<(), String> {
    let fault = |error: std::io::Error| format!("{}: {error}", file.display());
    let json =
        serde_json::to_vec(content).map_err(|error| format!("{}: {error}", file.display()))?;
    let mut output = File::create(file).map_err(fault)?;
    if file.extension().is_some_and(|extension| extension == "gz") {
        let mut encoder = GzEncoder::new(output, Compression::best());
        encoder.write_all(&json).and_then(|()| encoder.finish().map(drop)).map_err(fault)
    } else {
        output.write_all(&json).map_err(fault)
    }
}

/// Records a plan on a blog: the recording, and for each URL the options that it asked for.
fn record(
    blog: &Blog,
    plan: &RecordingPlan,
) -> Result<(Recording, BTreeMap<String, BTreeSet<String>>), String> {
    let editor = Editor::log_in(blog)?;
    let mut recorder = Recorder::new(blog, plan)?;
    // The first visits compute what later ones find in the database.
    recorder.look()?;
    let tables = blog.dump()?;
    recorder.log.changes()?;
    let mut states = vec![recorder.look()?];
    let mut changes = Vec::new();
    for (name, action) in &plan.changes {
        println!("{name}");
        editor.perform(*action).map_err(|error| format!("{name}: {error}"))?;
        let events = recorder.log.changes()?;
        if events.is_empty() && !matches!(action, ChangeAction::Nothing) {
            return Err(format!("{name}: it has changed no row"));
        }
        let after = recorder.look()?;
        changes.push(recorded_change(name, events, &states, &after));
        states.push(after);
    }
    if plan.idle_seconds > 0 {
        println!("idle");
        let (events, after) = recorder.idle(Duration::from_secs(plan.idle_seconds))?;
        changes.push(recorded_change("idle: visits alone", events, &states, &after));
        states.push(after);
    }
    let recording = Recording {
        app: "wp".to_owned(),
        urls: plan.urls.iter().map(|&url| url.to_owned()).collect(),
        schema: tables.schema,
        initial: tables.initial,
        statements: recorder.statements,
        states,
        changes,
    };
    Ok((recording, recorder.options))
}

fn recorded_change(
    name: &str,
    events: Vec<super::recording::RecordedEvent>,
    states: &[State],
    after: &State,
) -> RecordedChange {
    let before = states.last();
    let is_changed = |(url, page): &(&String, &RecordedPage)| {
        before.and_then(|state| state.get(*url)).is_none_or(|before| before.hash != page.hash)
    };
    let changed = after.iter().filter(is_changed).map(|(url, _)| url.as_str().into());
    let changed = changed.collect();
    let (before, after) = (states.len() - 1, Some(states.len()));
    RecordedChange { name: name.to_owned(), before, after, events, changed }
}

/// Visits the pages, and collects their statements.
#[derive(Debug)]
struct Recorder<'b> {
    blog: &'b Blog,
    urls: &'b [&'static str],
    log: BinaryLog,
    statements: Vec<String>,
    numbers: HashMap<String, usize>,
    options: BTreeMap<String, BTreeSet<String>>,
}

impl<'b> Recorder<'b> {
    fn new(blog: &'b Blog, plan: &'b RecordingPlan) -> Result<Recorder<'b>, String> {
        Ok(Recorder {
            blog,
            urls: &plan.urls,
            log: BinaryLog::open(blog.wordpress().database())?,
            statements: Vec::new(),
            numbers: HashMap::new(),
            options: BTreeMap::new(),
        })
    }

    /// Visits all pages.
    fn look(&mut self) -> Result<State, String> {
        let mut state = State::new();
        for url in self.urls {
            let (response, captured) = self.blog.visit(url)?;
            self.options.entry((*url).to_owned()).or_default().extend(captured.options);
            let mut numbers = |texts: Vec<String>| -> Vec<usize> {
                texts
                    .into_iter()
                    .map(|text| intern(&mut self.statements, &mut self.numbers, text))
                    .collect()
            };
            let page = RecordedPage {
                statements: numbers(captured.statements),
                late_statements: numbers(captured.late_statements),
                status: response.status,
                location: response.header("location").unwrap_or_default().to_owned(),
                hash: hash(&response),
                length: response.content.len(),
                events: self.log.changes()?,
            };
            state.insert((*url).to_owned(), page);
        }
        Ok(state)
    }

    /// Visits the pages again and again. The row changes are those of all visits.
    fn idle(
        &mut self,
        duration: Duration,
    ) -> Result<(Vec<super::recording::RecordedEvent>, State), String> {
        let deadline = Deadline::after(duration);
        let mut events = Vec::new();
        loop {
            let state = self.look()?;
            events.extend(state.values().flat_map(|page| page.events.iter().cloned()));
            if deadline.passed() {
                return Ok((events, state));
            }
        }
    }
}

fn intern(
    statements: &mut Vec<String>,
    numbers: &mut HashMap<String, usize>,
    text: String,
) -> usize {
    *numbers.entry(text).or_insert_with_key(|text| {
        statements.push(text.clone());
        statements.len() - 1
    })
}

/// A value that differs if anything in the response differs.
fn hash(response: &Response) -> String {
    let mut hasher = DefaultHasher::new();
    (response.status, &response.headers, &response.content).hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

#[cfg(test)]
mod tests;
