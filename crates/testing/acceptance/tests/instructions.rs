//! Limits for the number of instructions per cache hit. callgrind counts them, so the load of the machine does
//! not matter. The limits are in `instructions.toml` beside this file, which explains how to change them.
//!
//! The binary is the one of all acceptance tests, with light optimisation: additional work per hit shows in it
//! as in the release build, and nothing is built for this test alone
//! (docs/decisions/measuring.md). `cargo measure instructions` counts for the release
//! build.

use harness::PrivateDir;
use harness::instructions::{
    BROWSER_HEADERS, Bounds, HitMeasurement, PerHit, Protocol, TARGET, costs_of_run,
};
use std::fmt::Write;

const BOUNDS: &str = include_str!("instructions.toml");
/// So many hits that the start and the end, which vary by some 200,000 instructions, cause an error of at most
/// 1 %.
const HITS: u64 = 2_000;
/// Counts at most so often, and takes the least: load only adds.
const COUNTS_MAX: usize = 5;

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

/// The additional instructions of a hit with an audit of 1 in 1000: those of each hit, and a thousandth of those of a
/// hit that is copied for the audit. The comparison itself is no part of a hit: it is counted in `audit_compare_us`.
#[test]
fn an_audit_adds_at_most_two_thousandths_to_a_hit() {
    let bounds = Bounds::read(BOUNDS, "dev").expect("instructions.toml");
    let dir = PrivateDir::temporary("audited").expect("a directory");
    let (out, config) = (dir.path().join("callgrind.out"), dir.path().join("pagewell.toml"));
    let (of, inner) = (["front", "site_rules", "rule_conditions"], ["front", "find", "audit"]);
    let costs = |headers: &[(&str, &str)], audit: &str, hits: u64| {
        std::fs::write(&config, format!("audit = \"{audit}\"\n")).expect("it is written");
        let more = ["--config", &config.display().to_string()];
        let (binary, protocol, fields) = (acceptance::binary(), Protocol::Http1, &[][..]);
        let measurement = HitMeasurement { binary, more: &more, protocol, fields, target: TARGET };
        measurement.run(headers, hits, &out).expect("callgrind counts");
        costs_of_run(&out, &of, &inner).expect("a profile")
    };
    // Two runs without an audit, two with one that hardly copies, and the copy of a hit.
    let count = |headers: &[(&str, &str)]| -> [u64; 5] {
        let own = |audit: &str, times: u64| costs(headers, audit, HITS * times).own;
        let (off, drawn) = ("off", "1 in 1000000");
        let copied = costs(headers, "1 in 100", HITS);
        // Hits are drawn without a rhythm.
        assert!(copied.calls > 0, "{copied:?}");
        let copy = copied.called / copied.calls;
        [own(off, 1), own(off, 2), own(drawn, 1), own(drawn, 2), copy]
    };
    let added = |[off, off_twice, drawn, drawn_twice, copy]: [u64; 5]| {
        let per_hit = |once: u64, twice: u64| twice.saturating_sub(once) / HITS;
        per_hit(drawn, drawn_twice).saturating_sub(per_hit(off, off_twice)) * 1_000 + copy
    };
    for (headers, bound) in [(&[][..], bounds.bare), (&BROWSER_HEADERS[..], bounds.browser)] {
        let mut least = count(headers);
        for _ in 1..COUNTS_MAX {
            if added(least) > bound * 2 {
                let again = count(headers);
                least = std::array::from_fn(|at| least[at].min(again[at]));
            }
        }
        let added = added(least);
        println!("{least:?} instructions of the runs, {added} thousandths are added to a hit");
        assert!(added <= bound * 2, "{added} thousandths of an instruction, {bound} are a hit's");
    }
}

/// Writes a configuration with these lines, and returns its path with the directory, which is removed at the end.
fn configuration(lines: &str) -> (PrivateDir, String) {
    let dir = PrivateDir::temporary("rules").expect("a directory");
    let file = dir.path().join("pagewell.toml");
    std::fs::write(&file, lines).expect("a configuration");
    (dir, file.display().to_string())
}

/// The kinds of rules that `pagewell init` and its guides write, but `php = false`, which needs a document root and
/// concerns no hit: response fields are laid out with the page, and the limit counts requests that reach the origin.
const RULES: &str = "[[rule]]\npath = \"/wp-login.php\"\nmethod = \"POST\"\n\
    limit = { rate = \"10/m\", burst = 5 }\n\
    [[rule]]\nset_headers = { X-Content-Type-Options = \"nosniff\" }\nremove_headers = \"x-powered-by\"\n";
/// Rules with which the first hit of each page is compared.
const DENIALS: &str = "[[rule]]\npath_regex = \"\\\\.(sql|bak|log)$\"\ndeny = 403\n\
    [[rule]]\npath = \"/xmlrpc.php\"\ndeny = 403\n";
const REDIRECTS: &str = "[[rule]]\npath_regex = \"^/archives/(\\\\d+)$\"\nredirect = \"/?p=$1\"\n\
    [[rule]]\nfrom = \"192.0.2.0/24\"\npath = \"/wp-admin/**\"\ndeny = 403\n";

#[test]
fn rules_about_url_and_method_add_at_most_a_twentieth_to_a_hit() {
    let (_dir, file) = configuration(RULES);
    check("dev", Protocol::Http1, &["--config", &file]);
    let (_dir, file) = configuration(&format!("{RULES}{DENIALS}{REDIRECTS}"));
    check("dev", Protocol::Http1, &["--config", &file]);
}

#[test]
fn a_hit_behind_a_password_stays_within_its_instruction_limit() {
    let (dir, file) = configuration("");
    let passwords = dir.path().join("staff.htpasswd");
    std::fs::write(&passwords, "anna:$apr1$abcdefgh$h9FWgUz3n9YxylKLlR5SQ/\n").expect("written");
    let rule = format!("[[rule]]\nauth_file = {:?}\n", passwords.display().to_string());
    std::fs::write(&file, rule).expect("a configuration");
    let fields = [("Authorization", "Basic YW5uYTpzZWNyZXQ=")];
    check_with("dev_password", (Protocol::Http1, TARGET), (&["--config", &file], &fields));
}

#[test]
fn a_redirect_stays_within_its_instruction_limit() {
    let (dir, file) = configuration("");
    let lines = dir.path().join("redirects.tsv");
    std::fs::write(&lines, "/old\t/new\n").expect("written");
    let lines = lines.display().to_string();
    let text = format!("site.redirect_files = [{lines:?}]\n{RULES}{DENIALS}{REDIRECTS}");
    std::fs::write(&file, text).expect("a configuration");
    for target in ["/old", "/archives/12"] {
        check_with("dev_redirect", (Protocol::Http1, target), (&["--config", &file], &[]));
    }
}

/// The page of the other tests is denied, so that its target would not do.
#[test]
fn another_target_is_requested_over_http2_as_well() {
    let (dir, file) = configuration(&format!(
        "[[rule]]\npath = \"/old\"\nredirect = \"/new\"\n\
         [[rule]]\npath = \"{TARGET}\"\ndeny = 403\n"
    ));
    let out = dir.path().join("callgrind.out");
    let more = ["--config", &file];
    let count = |target: &str, protocol: Protocol| {
        let binary = acceptance::binary();
        let measurement = HitMeasurement { binary, more: &more, protocol, fields: &[], target };
        measurement.run(&[], 2, &out).map(|thread| thread.instructions)
    };
    for protocol in [Protocol::Http1, Protocol::Http2] {
        count("/old", protocol).expect("it is redirected");
        let error = count("/page", protocol).expect_err("it is a page").to_string();
        assert!(error.contains("not all were answered"), "{error}");
    }
}

/// A path of 8,000 bytes takes four times the instructions of one of 2,000; a tenth more is allowed. Among the patterns are
/// some that take exponential time elsewhere. Their ends are those of the path, so that all of it is compared.
#[test]
fn five_hundred_patterns_take_linear_time() {
    let (dir, file) = configuration("");
    let mut text = "limits.uri_bytes = \"16K\"\n".to_owned();
    for at in 0..166 {
        writeln!(
            text,
            "[[rule]]\npath_regex = \"^/(a+)+b{at}.*end$\"\nredirect = \"/b\"\n\
             [[rule]]\npath_regex = \"^(/[a-z]*)*/{at}.*end$\"\ndeny = 403\n\
             [[rule]]\npath = \"/**a**a**a**a**a**a**a**b{at}\"\nredirect = \"/c\""
        )
        .expect("a string grows");
    }
    text.push_str("[[rule]]\npath = \"/**end\"\nredirect = \"/last\"\n");
    std::fs::write(&file, text).expect("a configuration");
    let out = dir.path().join("callgrind.out");
    let more = ["--config", &file];
    let costs = |bytes: usize| {
        let target = format!("/{}end", "a".repeat(bytes));
        let (binary, protocol) = (acceptance::binary(), Protocol::Http1);
        let measurement =
            HitMeasurement { binary, more: &more, protocol, fields: &[], target: &target };
        measurement.run(&[], 2, &out).expect("callgrind counts");
        let of = ["site_rules", "rule_conditions", "regex"];
        costs_of_run(&out, &of, &["no function"]).expect("a profile").own
    };
    // The start is the same in all runs.
    let (start, short, long) = (costs(0), costs(2_000), costs(8_000));
    let (short, long) = (short.saturating_sub(start), long.saturating_sub(start));
    println!("{start} instructions of the start, {short} and {long} for the paths");
    assert!(short > 1_000_000, "the patterns are compared: {short}");
    assert!(long * 10 <= short * 44, "{short} and {long}");
}

fn check(section: &str, protocol: Protocol, more: &[&str]) {
    check_with(section, (protocol, TARGET), (more, &[]));
}

fn check_with(
    section: &str,
    (protocol, target): (Protocol, &str),
    (more, fields): (&[&str], &[(&str, &str)]),
) {
    let bounds = Bounds::read(BOUNDS, section).expect("instructions.toml");
    let binary = acceptance::binary();
    let measurement = HitMeasurement { binary, more, protocol, fields, target };
    let count = || measurement.count(HITS).expect("callgrind counts");
    let is_over = |counted: PerHit| {
        bounds.exceeded(bounds.bare, counted.bare)
            || bounds.exceeded(bounds.browser, counted.browser)
    };
    let mut least = count();
    for _ in 1..COUNTS_MAX {
        if is_over(least.per_hit()) {
            least = least.least(count());
        }
    }
    let counted = least.per_hit();
    println!("{section}: {counted:?}");
    assert!(
        !is_over(counted),
        "a hit takes {counted:?} instructions; {} and {} are written down, and {} % more are allowed.\n\
         Where: cargo measure instructions --dev --places\n\
         If it is worth that: write the counts into crates/testing/acceptance/tests/instructions.toml, \
         [{section}], and say why in the commit.",
        bounds.bare,
        bounds.browser,
        bounds.margin_percent
    );
}
