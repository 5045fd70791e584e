//! Tests that cannot run on this machine: each is said on standard error, which the test harness does not capture, and
//! noted in the file `PAGEWELL_SKIPPED`, whose lines `make test` counts.
//!
//! Not here: the reason, which names what would have to be installed.

use std::fs::OpenOptions;
use std::io::Write;

/// Says and notes that the running test is skipped.
///
/// # Panics
/// The file cannot be written.
pub fn skip(why: &str) {
    let line = format!("skipped: {}: {why}\n", std::thread::current().name().unwrap_or("a test"));
    let _ = std::io::stderr().write_all(line.as_bytes());
    if let Some(path) = std::env::var_os("PAGEWELL_SKIPPED") {
        let file = OpenOptions::new().append(true).create(true).open(path);
        file.and_then(|mut file| file.write_all(line.as_bytes())).expect("it can be written");
    }
}
