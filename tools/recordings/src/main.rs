//! Recordings of applications, to see how exact footprints are: `cargo recordings --help` lists the tasks.
//!
//! A recording has the statements of each page, the rows that changes changed, and the pages that really
//! changed. Exit status: 0 done, 1 it found or failed something, 2 wrong usage. Not here: footprints themselves.

mod cost;
mod record;
mod recording;
mod replay;
mod verify;

use clap::Parser;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Parser)]
#[command(
    name = "cargo recordings",
    about = "Recordings of applications: how exact footprints are"
)]
enum Task {
    /// Makes a recording of Debian's WordPress on a private MariaDB; takes minutes
    Record {
        /// With the widgets of a new WordPress; without, the sidebar is empty
        #[arg(long)]
        widgets: bool,
        /// The file to write: JSON, compressed if it ends with .gz; the options of each page go to the same name
        /// with -options before the extension
        out: PathBuf,
    },
    /// Measures the CPU time that the capture of statements adds to a render of WordPress
    Cost {
        /// How many renders to measure in each way
        #[arg(long, default_value_t = 400, value_parser = clap::value_parser!(u32).range(8..=100_000))]
        renders: u32,
    },
    /// Compares the pages that footprints would purge with those that really changed
    Replay {
        /// The recording: JSON, compressed by gzip or not
        file: PathBuf,
        /// For each page the WordPress options that it asked for: JSON
        #[arg(long, value_name = "FILE")]
        options: Option<PathBuf>,
    },
    /// Changes Debian's WordPress behind Pagewell, and compares each page with that of WordPress itself; takes minutes
    Verify {
        /// With the widgets of a new WordPress; without, the sidebar is empty
        #[arg(long)]
        widgets: bool,
        /// The program
        #[arg(long, value_name = "FILE", default_value = "target/release/pagewell")]
        pagewell: PathBuf,
    },
}

fn main() -> ExitCode {
    let outcome = match Task::parse() {
        Task::Record { widgets, out } => record::run(widgets, &out),
        Task::Cost { renders } => cost::run(renders),
        Task::Replay { file, options } => replay::run(&file, options.as_deref()),
        Task::Verify { widgets, pagewell } => verify::run(widgets, &pagewell),
    };
    harness::stand::exit_code(outcome)
}
