//! How many instructions a hit may take. HitMeasurement by callgrind, so the machine may be as busy as it
//! likes; the bounds are in `instructions.toml` beside this file, which says how to change them.
//!
//! The binary is the one that all these tests are run with, optimised a little: a step too much on the
//! way of a hit shows in it as in the one that is shipped, and nothing is built for this alone
//! (docs/decisions/0037-counting-instructions.md). `cargo measure instructions` counts for that one.

use harness::instructions::{Bounds, HitMeasurement, Protocol};

const BOUNDS: &str = include_str!("instructions.toml");
/// So many that start and end, whose instructions differ by some 200,000 from run to run, weigh no
/// more than one in a hundred.
const HITS: u64 = 2_000;

#[test]
fn a_hit_takes_no_more_instructions_than_it_did() {
    check("dev", Protocol::Http1, &[]);
}

#[test]
fn nor_does_one_with_its_line_in_the_access_log() {
    check("dev_access_log", Protocol::Http1, &["--access-log", "/dev/null"]);
}

#[test]
fn nor_does_one_over_http2() {
    check("dev_http2", Protocol::Http2, &[]);
}

fn check(section: &str, protocol: Protocol, more: &[&str]) {
    let bounds = Bounds::read(BOUNDS, section).expect("instructions.toml");
    let binary = acceptance::binary();
    let counted = HitMeasurement { binary, more, protocol }.per_hit(HITS).expect("callgrind counts");
    println!("{section}: {counted:?}");
    for (kind, bound, counted) in
        [("bare", bounds.bare, counted.bare), ("browser", bounds.browser, counted.browser)]
    {
        assert!(
            !bounds.exceeded(bound, counted),
            "a hit ({kind} headers) takes {counted} instructions; {bound} are written down, and \
             {} % more are allowed.\nWhere: cargo measure instructions --dev --places\n\
             If it is worth that: write {counted} into crates/testing/acceptance/tests/instructions.toml, \
             [{section}] {kind}, and say why in the commit.",
            bounds.margin_percent
        );
    }
}
