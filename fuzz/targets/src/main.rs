//! `cargo run --release -- TARGET|all [--seconds N] [--seed S]`: runs a target on damaged inputs from its
//! corpus, with the stable compiler.
//!
//! A failure ends the run with the input on standard error; the same seed reproduces it.

use fuzz_targets::mutate::{Inputs, run_showing};
use fuzz_targets::{TARGETS, Target};
use std::time::{Duration, Instant};

#[allow(clippy::disallowed_methods, reason = "it runs for so many seconds of anybody's clock")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |flag: &str, otherwise: u64| {
        let at = words.iter().position(|word| word == flag);
        at.map_or(Ok(otherwise), |at| words.get(at + 1).map_or("", String::as_str).parse())
    };
    let (seconds, seed) = (number("--seconds", 10)?, number("--seed", 1)?);
    let name = words.first().map_or("all", String::as_str);
    let chosen: Vec<Target> =
        TARGETS.into_iter().filter(|target| name == "all" || target.0 == name).collect();
    if chosen.is_empty() {
        let names = TARGETS.map(|target| target.0).join(", ");
        return Err(format!("no target {name}; there are: all, {names}").into());
    }
    for target in chosen {
        let mut inputs = Inputs::new(target.0, seed)?;
        let (began, mut count) = (Instant::now(), 0u64);
        while began.elapsed() < Duration::from_secs(seconds) {
            run_showing(target, &inputs.draw());
            count += 1;
        }
        println!("{}: {count} inputs, seed {seed}, nothing found", target.0);
    }
    Ok(())
}
