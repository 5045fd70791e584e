//! The project's tasks that are more than one command: `cargo xtask --help` lists them.
//!
//! Each task is a module that returns an outcome; this file selects one and
//! turns its outcome into an exit status: 0 done, 1 findings or failures, 2 wrong usage.
//! Tasks never change the repository, except `gen-docs` and `tidy --lower`.

mod book;
mod demo;
mod dist;
mod package;
mod tidy;

use clap::{CommandFactory, Parser, Subcommand};
use harness::root::{self, Profile};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Tasks of the project")]
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
        /// Run the commands that the demo prints, check their results, and end
        #[arg(long, conflicts_with = "port")]
        check: bool,
        /// Serve HTTPS as well, with a certificate of a local authority (Pebble)
        #[arg(long)]
        https: bool,
    },
    /// Writes the pages of the manual that are made from tables in the code
    GenDocs,
    /// Builds packages for Debian (target/package/pagewell_VERSION_ARCHITECTURE.deb, and pagewell-dbgsym with the
    /// debug symbols) and the zip archives of the plugins (pagewell-wordpress-VERSION.zip,
    /// pagewell-mediawiki-VERSION.zip)
    Package {
        /// Build Pagewell as the tests do: a slower program, but a faster build
        #[arg(long)]
        dev: bool,
    },
    /// Builds the files of a release in target/dist: an archive with an installer, for every glibc from 2.31 on,
    /// Debian packages, archives of the plugins, the bill of materials
    Dist {
        /// Take this program instead of building one with cargo-zigbuild, for tests: in target/dist-to-test, without
        /// a bill of materials
        #[arg(long, value_name = "FILE")]
        program: Option<PathBuf>,
        /// Build only the archive, for musl (Alpine); needs the standard library of that target
        #[arg(long, conflicts_with = "program")]
        musl: bool,
    },
    /// Builds the manual as HTML with a search, by mdBook, in target/book/html, and checks its links and searches
    Book,
    /// Checks the project rules that no compiler checks
    Tidy {
        /// Lower the numbers of the ratchet (xtask/tidy.toml) to today's values
        #[arg(long)]
        lower: bool,
        /// Only list all places of one number of the ratchet: comment_words, flag_matches, …
        #[arg(long, value_name = "NUMBER", conflicts_with = "lower")]
        list: Option<String>,
    },
}

fn main() -> ExitCode {
    let outcome = match Options::parse().task {
        Task::Demo { check: true, https, .. } => demo::check(https),
        Task::Demo { port, https, .. } => demo::run(port, https),
        Task::GenDocs => gen_docs(),
        Task::Package { dev } => package::run(profile(dev)),
        Task::Book => book::run().map(|page| println!("{}", page.display())),
        Task::Dist { musl: true, .. } => dist::run_musl(),
        Task::Dist { program, .. } => dist::run(program.as_deref()),
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

/// The tables are in the server's crates, without which this program is built.
fn gen_docs() -> Result<(), String> {
    let mut command = root::cargo();
    command.args(["run", "--quiet", "--bin", "manual"]);
    // With the features of the tests, so that nothing is built again.
    command.args(["--features", "pagewell/settable-clock"]);
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err("gen-docs: the pages are not complete".into()),
        Err(error) => Err(format!("gen-docs: cargo cannot be run: {error}")),
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
