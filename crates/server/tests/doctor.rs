//! `pagewell doctor` on the machine that the tests run on, with a site that is ill in known ways: what
//! it says of the machine is its own affair, what it says of the site is known.

mod common;

use common::Site;
use harness::{Address, Pagewell};
use std::process::{Command, Output};

fn doctor(args: &[&str]) -> Output {
    let mut command = Command::new(common::binary());
    command.arg("doctor").args(args).output().expect("it runs")
}

fn served(script: &str) -> (Site, Pagewell, String) {
    let site = Site::new(&[("index.php", script)]);
    let pagewell = site.serve("");
    let Address::Tcp(address) = pagewell.address().clone() else { panic!("TCP") };
    (site, pagewell, format!("http://{address}/"))
}

/// The names of what it finds, which it has to give as JSON.
fn names(output: &Output) -> Vec<String> {
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let findings = found["findings"].as_array().expect("a list").clone();
    for finding in &findings {
        for key in ["name", "weight", "what", "evidence", "command", "risk"] {
            assert!(finding[key].as_str().is_some_and(|text| !text.is_empty()), "{key}: {finding}");
        }
    }
    findings.iter().filter_map(|one| one["name"].as_str().map(str::to_owned)).collect()
}

#[test]
fn a_cookie_on_every_page_is_found_and_one_page_without_is_enough() {
    let script =
        "<?php if ($_SERVER['REQUEST_URI'] !== '/free') { setcookie('a', '1'); } echo 'x';";
    let (_site, _pagewell, url) = served(script);
    let output = doctor(&["--json", "--url", &url, "--url", &format!("{url}b")]);
    assert!(names(&output).contains(&"cookie-on-every-page".to_owned()));
    let output = doctor(&["--json", "--url", &url, "--url", &format!("{url}free")]);
    assert!(!names(&output).contains(&"cookie-on-every-page".to_owned()));
}

#[test]
fn a_site_that_fails_is_the_worst_and_the_exit_status_says_so() {
    let (_site, _pagewell, url) = served("<?php http_response_code(503);");
    let output = doctor(&["--url", &url]);
    assert_eq!(output.status.code(), Some(3));
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("no-answer (fails)") && said.contains("answered 503"), "{said}");
    assert!(said.contains("nothing was changed"), "{said}");
}

#[test]
fn what_cannot_be_looked_at_is_an_error() {
    for args in [&["--url", "ftp://a/"][..], &["--config", "/nonexistent.toml"]] {
        let output = doctor(args);
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.starts_with("pagewell: ") && !said.contains("panicked"), "{said}");
    }
}

#[test]
fn the_kernels_counts_are_among_the_figures_once() {
    let (_site, pagewell, _) = served("<?php echo 'x';");
    let stats = pagewell.stats().expect("counters");
    assert!(stats.contains_key("kernel_listen_overflows"), "{stats:?}");
    assert!(stats.contains_key("kernel_conntrack_drops"), "{stats:?}");
}
