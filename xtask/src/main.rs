//! The tasks of the house that are more than one command: `cargo xtask --help` lists them.
//!
//! Each task is a module that returns an outcome for people to read; this file only chooses one and
//! turns its outcome into an exit status: 0 done, 1 it found or failed something, 2 wrong usage.
//! Tasks never change the repository, except `gen-docs` and `tidy --lower`.

mod demo;
mod docs;
mod footprints;
mod man;
mod package;
mod tidy;

use clap::{CommandFactory, Parser, Subcommand};
use harness::root::{self, Profile};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Tasks of the house")]
struct Options {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Serves the example site on a database of its own until Ctrl-C
    Demo {
        /// The port of 127.0.0.1 to serve on; 0 takes a free one
        #[arg(long, default_value_t = 8080)]
        port: u16,
        /// Do what the demo tells people to try, see that it is so, and end
        #[arg(long, conflicts_with = "port")]
        check: bool,
        /// Build Pagewell as the tests do, not as it is shipped: slower, but sooner there
        #[arg(long)]
        dev: bool,
    },
    /// Recordings of applications: how exact footprints are
    Footprints {
        #[command(subcommand)]
        task: FootprintTask,
    },
    /// Writes the pages of the manual that are made from tables in the code
    GenDocs,
    /// Builds packages for Debian (target/package/pagewell_VERSION_ARCHITECTURE.deb, and pagewell-dbgsym with the
    /// debug symbols) and the zip archives of the plugins (pagewell-wordpress-VERSION.zip,
    /// pagewell-mediawiki-VERSION.zip)
    Package {
        /// Build Pagewell as the tests do, not as it is shipped: slower, but sooner there
        #[arg(long)]
        dev: bool,
    },
    /// Checks the rules of the house that no compiler checks
    Tidy {
        /// Lower the numbers of the ratchet (xtask/tidy.toml) to what is true now
        #[arg(long)]
        lower: bool,
        /// Only list all places of one number of the ratchet: comment_words, flag_matches, …
        #[arg(long, value_name = "NUMBER", conflicts_with = "lower")]
        list: Option<String>,
    },
}

#[derive(Subcommand)]
enum FootprintTask {
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
    let outcome = match Options::parse().task {
        Task::Demo { check: true, dev, .. } => demo::check(profile(dev)),
        Task::Demo { port, dev, .. } => demo::run(port, profile(dev)),
        Task::Footprints { task: FootprintTask::Record { widgets, out } } => {
            footprints::record(widgets, &out)
        }
        Task::Footprints { task: FootprintTask::Cost { renders } } => footprints::cost(renders),
        Task::Footprints { task: FootprintTask::Replay { file, options } } => {
            footprints::replay(&file, options.as_deref())
        }
        Task::Footprints { task: FootprintTask::Verify { widgets, pagewell } } => {
            footprints::verify(widgets, &pagewell)
        }
        Task::GenDocs => docs::run(&root::repository()),
        Task::Package { dev } => package::run(profile(dev)),
        Task::Tidy { list: Some(name), .. } => list(&name),
        Task::Tidy { lower, .. } => tidy(lower),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn profile(dev: bool) -> Profile {
    if dev { Profile::Dev } else { Profile::Release }
}

fn tidy(lower: bool) -> Result<(), String> {
    let root = root::repository();
    if lower {
        tidy::lower(&root).map_err(|error| format!("tidy: {error}"))?;
    }
    let outcome = tidy::run(&root, &tasks()).map_err(|error| format!("tidy: {error}"))?;
    if outcome.findings().next().is_some() {
        return Err(outcome.to_string());
    }
    println!("{outcome}");
    Ok(())
}

fn list(name: &str) -> Result<(), String> {
    println!("{}", tidy::list(&root::repository(), name)?);
    Ok(())
}

fn tasks() -> Vec<String> {
    Options::command().get_subcommands().map(|task| task.get_name().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_house_is_tidy() {
        let outcome = crate::tidy::run(&crate::root::repository(), &crate::tasks());
        let outcome = outcome.expect("the repository can be read");
        assert!(outcome.findings().next().is_none(), "\n{outcome}");
    }
}
