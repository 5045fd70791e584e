//! The tasks of the house that are more than one command: `cargo xtask --help` lists them.
//!
//! Each task is a module that returns an outcome for people to read; this file only chooses one and
//! turns its outcome into an exit status: 0 done, 1 it found or failed something, 2 wrong usage.
//! Tasks never change the repository, except `tidy --lower`.

#[allow(dead_code)]
mod root;
mod tidy;

use clap::{CommandFactory, Parser, Subcommand};
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Tasks of the house")]
struct Options {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Checks the rules of the house that no compiler checks
    Tidy {
        /// Lower the ratchet to what is true now
        #[arg(long)]
        lower: bool,
    },
}

fn main() -> ExitCode {
    let outcome = match Options::parse().task {
        Task::Tidy { lower } => tidy(lower),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
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
