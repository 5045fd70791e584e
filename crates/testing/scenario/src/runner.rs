//! Runs all scenarios below a directory, several at once, and prints a summary.
//!
//! `SCENARIO=words` in the environment runs only the scenarios whose path contains it. At most [`THREADS`]
//! scenarios run at once; the summary is sorted by path. A run without scenarios is a failure, because it has
//! tested nothing.

use crate::failure::{Failure, Mismatch};
use crate::{StartSubject, Story, parse_story, run_story};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The maximum number of scenarios that run at once.
const THREADS: usize = 4;

/// The result of one scenario.
#[derive(Clone, Debug)]
pub enum Ending {
    /// The scenario passed.
    Passed,
    /// The scenario failed.
    Failed(Failure),
    /// The scenario failed, and is marked as `pending` with this reason.
    Pending(String),
    /// The caller excluded the scenario.
    Skipped,
}

/// The result of a run.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// The path of each scenario below the directory and its result, sorted by path.
    pub stories: Vec<(String, Ending)>,
}

impl Summary {
    /// The number of scenarios that passed.
    pub fn passed(&self) -> usize {
        self.stories.iter().filter(|(_, ending)| matches!(ending, Ending::Passed)).count()
    }

    /// The scenarios that failed.
    pub fn failures(&self) -> impl Iterator<Item = &Failure> {
        self.stories.iter().filter_map(|(_, ending)| match ending {
            Ending::Failed(failure) => Some(failure),
            _ => None,
        })
    }

    /// Fails the calling test if a scenario failed, or if none ran.
    ///
    /// # Panics
    /// With the numbers; the failures themselves have been printed during the run.
    pub fn assert_good(&self) {
        let text = self.to_string();
        let counts = text.lines().last().unwrap_or_default();
        assert!(self.failures().next().is_none(), "{counts}");
        assert!(self.passed() > 0, "no story ran: {counts}");
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for failure in self.failures() {
            writeln!(f, "{failure}")?;
        }
        for (name, ending) in &self.stories {
            if let Ending::Pending(why) = ending {
                writeln!(f, "pending: {name}: {why}")?;
            }
        }
        let count = |test: fn(&Ending) -> bool| self.stories.iter().filter(|s| test(&s.1)).count();
        write!(f, "scenarios: {} passed, {} failed", self.passed(), self.failures().count())?;
        match count(|ending| matches!(ending, Ending::Pending(_))) {
            0 => {}
            pending => write!(f, ", {pending} pending")?,
        }
        match count(|ending| matches!(ending, Ending::Skipped)) {
            0 => Ok(()),
            skipped => write!(f, ", {skipped} skipped"),
        }
    }
}

/// Runs every `*.scn` file below `dir` (sorted; limited by `SCENARIO` in the environment), each with a subject
/// of its own, and prints the summary.
pub fn run_dir(dir: &Path, start: &StartSubject) -> Summary {
    run_dir_where(dir, start, &|_| true)
}

/// Runs scenarios like [`run_dir`], but only those that `wanted` accepts; the others count as skipped.
pub fn run_dir_where(
    dir: &Path,
    start: &StartSubject,
    wanted: &(dyn Fn(&Story) -> bool + Sync),
) -> Summary {
    let filter = std::env::var("SCENARIO").unwrap_or_default();
    let mut files = Vec::new();
    if let Err(error) = collect(dir, &mut files) {
        return broken(dir, "a directory of stories", &error.to_string());
    }
    let name_of = |path: &Path| path.strip_prefix(dir).unwrap_or(path).display().to_string();
    files.retain(|path| name_of(path).contains(&filter));
    files.sort();
    if files.is_empty() {
        return broken(dir, "a *.scn file", &format!("none whose path contains {filter:?}"));
    }
    let next = AtomicUsize::new(0);
    let stories = Mutex::new(Vec::new());
    let work = || {
        while let Some(path) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            let ending = run_file(path, &name_of(path), start, wanted);
            let mut stories = stories.lock().expect("no thread panics while it holds the list");
            stories.push((name_of(path), ending));
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..THREADS.min(files.len()) {
            scope.spawn(work);
        }
    });
    let mut stories = stories.into_inner().expect("no thread panics while it holds the list");
    stories.sort_by(|a, b| a.0.cmp(&b.0));
    let summary = Summary { stories };
    println!("{summary}");
    summary
}

/// The summary of a run that could not begin.
fn broken(dir: &Path, expected: &str, got: &str) -> Summary {
    let failure = failed(&dir.display().to_string(), 0, "", expected, got);
    Summary { stories: vec![(dir.display().to_string(), Ending::Failed(failure))] }
}

fn failed(file: &str, line: usize, text: &str, expected: &str, got: &str) -> Failure {
    let wrong = vec![Mismatch::new(expected, got)];
    Failure { file: file.into(), line, text: text.into(), wrong, transcript: Vec::new() }
}

fn collect(dir: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "scn") {
            files.push(path);
        }
    }
    Ok(())
}

fn run_file(
    path: &Path,
    name: &str,
    start: &StartSubject,
    wanted: &(dyn Fn(&Story) -> bool + Sync),
) -> Ending {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) => return Ending::Failed(failed(name, 0, "", "a story", &error.to_string())),
    };
    let story = match parse_story(name, &text) {
        Ok(story) => story,
        Err(e) => return Ending::Failed(failed(name, e.line, &e.text, e.expected, &e.got)),
    };
    if !wanted(&story) {
        return Ending::Skipped;
    }
    let ran = catch_unwind(AssertUnwindSafe(|| run_story(&story, start)));
    match (ran, &story.pending) {
        (Ok(Ok(())), None) => Ending::Passed,
        (Ok(Ok(())), Some(why)) => {
            let expected = format!("a story that fails, for it is pending: {why}");
            Ending::Failed(failed(name, 0, "", &expected, "it passes: take the line out"))
        }
        (Ok(Err(_)), Some(why)) => Ending::Pending(why.clone()),
        (Ok(Err(failure)), None) => Ending::Failed(failure),
        (Err(panic), _) => {
            let said = panic.downcast_ref::<String>().map(String::as_str);
            let said = said.or(panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
            Ending::Failed(failed(name, 0, "", "a story that ends", &format!("a panic: {said}")))
        }
    }
}
