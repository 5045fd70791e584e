//! `/metrics`, parsed with the official Prometheus client library, in both formats.

use acceptance::{Site, binary, client};
use control::metrics_table;
use harness::{Client, Pagewell, Request};
use std::collections::BTreeSet;
use std::io::Write;
use std::process::{Command, Stdio};

/// Prints each sample as `type name {labels} value`; fails on every deviation from the format.
const READ: &str = "
import sys
from prometheus_client.parser import text_string_to_metric_families as prometheus
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
read = openmetrics if sys.argv[1] == 'openmetrics' else prometheus
for family in read(sys.stdin.read()):
    assert family.documentation, family.name
    for sample in family.samples:
        labels = ','.join(f'{name}={value}' for name, value in sorted(sample.labels.items()))
        print(family.type, sample.name, '{' + labels + '}', float(sample.value))
";

fn read(format: &str, text: &str) -> Vec<String> {
    let mut python = Command::new("/usr/bin/python3")
        .args(["-c", READ, format])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("Debian's Python");
    let input = python.stdin.take().expect("a pipe");
    { input }.write_all(text.as_bytes()).expect("it reads");
    let output = python.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{text}");
    String::from_utf8(output.stdout).expect("text").lines().map(str::to_owned).collect()
}

#[test]
fn both_formats_are_read_by_the_reader_of_prometheus() {
    let site = Site::new(&[("one/index.php", "<?php echo 1;"), ("two/index.php", "<?php echo 2;")]);
    let root = |name: &str| site.root().join(name).display().to_string();
    let (one, two) = (root("one"), root("two"));
    let text = format!(
        "[[site]]\nhost = \"one.test\"\nroot = {one:?}\n[[site]]\nhost = \"two.test\"\nroot = {two:?}\n"
    );
    let file = site.at("pagewell.toml");
    std::fs::write(&file, text).expect("a file can be written");
    let args = ["--memory", "64M", "--config", &file.display().to_string()];
    let pagewell = Pagewell::start(binary(), &args).expect("pagewell starts");
    let mut client = client(&pagewell);
    for _ in 0..2 {
        let request = Request::get("/").header("Host", "two.test");
        assert_eq!(client.send(&request).expect("an answer").text(), "2");
    }
    for (accept, format) in [("*/*", "prometheus"), ("application/openmetrics-text", "openmetrics")]
    {
        let request = Request::get("/metrics").header("Accept", accept);
        let response = Client::new(pagewell.admin().clone()).send(&request).expect("an answer");
        let samples = read(format, &response.text());
        for sample in [
            "counter pagewell_requests_total {site=two.test} 2.0",
            "counter pagewell_requests_total {site=one.test} 0.0",
            "gauge pagewell_followers {site=two.test} 0.0",
            "histogram pagewell_origin_seconds_count {site=two.test} 2.0",
            "histogram pagewell_origin_seconds_bucket {le=+Inf,site=two.test} 2.0",
        ] {
            assert!(samples.iter().any(|line| line == sample), "{format}: {sample}: {samples:#?}");
        }
        for (name, ..) in metrics_table::all() {
            let stem = format!(" pagewell_{}", name.trim_end_matches("_us"));
            assert!(samples.iter().any(|line| line.contains(&stem)), "{format}: {name}");
        }
    }
}

/// The names of the metrics in a text.
fn metrics_in(text: &str) -> BTreeSet<String> {
    let name = |rest: &str| {
        let is_inside = |letter: &char| letter.is_ascii_alphanumeric() || *letter == '_';
        format!("pagewell_{}", rest.chars().take_while(is_inside).collect::<String>())
    };
    text.split("pagewell_").skip(1).map(name).collect()
}

#[test]
fn the_dashboard_and_the_alert_rules_ask_for_metrics_that_are_there() {
    let site = Site::new(&[]);
    // Nothing listens at this port: metrics of certificates do not wait for an authority.
    let pagewell = site.serve(&format!(
        "listen_tls = \"unix:{}\"\n[site]\nhost = \"a.example.org\"\n\
         [acme]\ndirectory = \"https://127.0.0.1:1/\"\nstorage = {:?}\n",
        site.at("tls.sock").display(),
        site.at("acme"),
    ));
    let text = Client::new(pagewell.admin().clone()).get("/metrics").expect("metrics").text();
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    let there: BTreeSet<&str> = samples.filter_map(|line| line.split(['{', ' ']).next()).collect();
    let dashboard = metrics_in(include_str!("../../../../../contrib/grafana/pagewell.json"));
    let alerts = metrics_in(include_str!("../../../../../contrib/grafana/alerts.yml"));
    assert!(dashboard.len() > 30 && alerts.len() > 1, "{dashboard:?} {alerts:?}");
    for name in dashboard.iter().chain(&alerts) {
        assert!(there.contains(name.as_str()), "{name}: {there:?}");
    }
    let end = "pagewell_certificate_expiry_seconds";
    assert!(dashboard.contains(end) && alerts.contains(end));
}
