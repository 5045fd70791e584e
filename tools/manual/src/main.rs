//! Writes the pages of the manual that are made from tables in the code (`cargo xtask gen-docs` calls it), and says
//! which names the pages written by hand leave out.
//!
//! Exit status: 0 done, 1 a page cannot be written or leaves out a name, which only a person can mend.

mod docs;
mod man;

use std::process::ExitCode;

fn main() -> ExitCode {
    match docs::run(&harness::root::repository()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}
