//! `pagewell status`, `GET /v1/status`, the metric and `pagewell doctor` show one list of what needs attention.

use acceptance::{Site, binary, client};
use harness::{Client, Pagewell, Request};
use serde_json::Value;
use std::fs;
use std::process::Command;

/// The output of `pagewell status`, and its exit status.
fn status(pagewell: &Pagewell, more: &[&str]) -> (String, Option<i32>) {
    let admin = pagewell.admin().to_string();
    let output = Command::new(binary()).args(["status", "--admin", &admin]).args(more).output();
    let output = output.expect("it runs");
    let text = [output.stdout, output.stderr].concat();
    (String::from_utf8_lossy(&text).into_owned(), output.status.code())
}

/// The names of the findings.
fn names(pagewell: &Pagewell) -> Vec<String> {
    let answer = Client::new(pagewell.admin().clone()).get("/v1/status").expect("an answer");
    let value: Value = serde_json::from_slice(&answer.content).expect("JSON");
    let findings = value["findings"].as_array().expect("a list").clone();
    assert_eq!(value["well"], findings.is_empty());
    let name = |one: &Value| one["name"].as_str().expect("a name").to_owned();
    findings.iter().map(name).collect()
}

fn metric(pagewell: &Pagewell, name: &str) -> u64 {
    let answer = Client::new(pagewell.admin().clone()).get("/metrics").expect("an answer");
    let start = format!("pagewell_findings{{name=\"{name}\"}} ");
    let text = answer.text();
    let value = text.lines().find_map(|line| line.strip_prefix(&start));
    value.unwrap_or_else(|| panic!("no {start} in {text}")).parse().expect("a number")
}

#[test]
fn all_is_well_until_the_origin_fails() {
    let site = Site::new(&[]);
    // A port that nothing listens on.
    let closed = harness::Port::take().expect("a port");
    let config = format!("site.origin = \"http://{}\"\n", closed.address());
    let path = site.at("origin.toml");
    fs::write(&path, &config).expect("written");
    let file = path.display().to_string();
    let pagewell = Pagewell::start(binary(), &["--memory", "64M", "--config", &file]);
    let pagewell = pagewell.expect("it starts");
    assert_eq!(status(&pagewell, &[]), ("All is well.\n".to_owned(), Some(0)));
    assert_eq!(metric(&pagewell, "origin-failing"), 0);
    let request = Request::get("/").header("Host", "a.test");
    assert_eq!(client(&pagewell).send(&request).expect("an answer").status, 502);
    assert_eq!(names(&pagewell), ["origin-failing"]);
    let (text, code) = status(&pagewell, &[]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.starts_with("origin-failing (for "), "{text}");
    assert!(
        text.contains("failed to answer 1 of 1 requests") && text.contains("\n  do  "),
        "{text}"
    );
    let (json, code) = status(&pagewell, &["--json"]);
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!((code, &json["findings"][0]["name"]), (Some(1), &Value::from("origin-failing")));
    assert_eq!(metric(&pagewell, "origin-failing"), 1);
    fs::write(&path, format!("admin = \"{}\"\n{config}", pagewell.admin())).expect("written");
    let doctor = Command::new(binary()).args(["doctor", "--json", "--config", &file]).output();
    let doctor = String::from_utf8_lossy(&doctor.expect("it runs").stdout).into_owned();
    assert!(doctor.contains("\"name\":\"origin-failing\""), "{doctor}");
}

#[test]
fn certificates_and_directories_are_looked_at() {
    let site = Site::new(&[("index.php", "<?php echo 1;")]);
    let mut parameters = rcgen::CertificateParams::new(["a.test".to_owned()]).expect("names");
    parameters.not_after = rcgen::date_time_ymd(2021, 3, 4);
    let key = rcgen::KeyPair::generate().expect("a key");
    let certificate = parameters.self_signed(&key).expect("a certificate");
    let [key_file, file, socket] = ["key", "crt", "sock"].map(|end| site.at(&format!("a.{end}")));
    fs::write(&key_file, key.serialize_pem()).expect("written");
    fs::write(&file, certificate.pem()).expect("written");
    let snapshots = site.at("snapshots");
    fs::create_dir(&snapshots).expect("a directory");
    let pagewell = site.serve(&format!(
        "listen_tls = \"unix:{}\"\n[[tls]]\ncertificate = {file:?}\nkey = {key_file:?}\n\
         [snapshot]\ndirectory = {snapshots:?}\nunwatched = \"serve\"\n",
        socket.display()
    ));
    assert_eq!(names(&pagewell), ["certificate-ends"]);
    assert!(status(&pagewell, &[]).0.contains("a.crt has ended "), "{}", status(&pagewell, &[]).0);
    fs::rename(&file, site.at("elsewhere")).expect("moved");
    assert_eq!(names(&pagewell), ["certificate-unreadable"]);
    fs::remove_dir_all(&snapshots).expect("removed");
    let (text, _) = status(&pagewell, &[]);
    assert!(text.contains("directory-not-writable") && text.contains("is missing"), "{text}");
}
