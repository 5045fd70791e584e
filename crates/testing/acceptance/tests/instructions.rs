//! Limits for the number of instructions per cache hit. callgrind counts them, so the load of the machine does
//! not matter. The limits are in `instructions.toml` beside this file, which explains how to change them.
//!
//! The binary is the one of all acceptance tests, with light optimisation: additional work per hit shows in it
//! as in the release build, and nothing is built for this test alone
//! (docs/decisions/measuring.md). `cargo measure instructions` counts for the release
//! build.

use harness::instructions::{Bounds, HitMeasurement, Protocol};

const BOUNDS: &str = include_str!("instructions.toml");
/// So many hits that the start and the end, which vary by some 200,000 instructions, cause an error of at most
/// 1 %.
const HITS: u64 = 2_000;

#[test]
fn a_hit_stays_within_its_instruction_limit() {
    check("dev", Protocol::Http1, &[]);
}

#[test]
fn a_hit_with_access_log_stays_within_its_instruction_limit() {
    check("dev_access_log", Protocol::Http1, &["--access-log", "/dev/null"]);
}

#[test]
fn a_hit_over_http2_stays_within_its_instruction_limit() {
    check("dev_http2", Protocol::Http2, &[]);
}

fn check(section: &str, protocol: Protocol, more: &[&str]) {
    let bounds = Bounds::read(BOUNDS, section).expect("instructions.toml");
    let binary = acceptance::binary();
    let counted =
        HitMeasurement { binary, more, protocol }.per_hit(HITS).expect("callgrind counts");
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
