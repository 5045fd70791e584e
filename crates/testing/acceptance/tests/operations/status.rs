//! `pagewell status`, `GET /v1/status`, the metric and `pagewell doctor` show one list of what needs attention.

use acceptance::{MountedTmpfs, Raw, Site, binary, client, skip, until};
use harness::{Client, Pagewell, Request};
use serde_json::Value;
use std::fs;
use std::path::Path;
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

/// Replaces a file in one step, so that no look at it finds a part of it.
fn replace(path: &Path, text: &str) {
    let new = path.with_extension("new");
    fs::write(&new, text).expect("written");
    fs::rename(new, path).expect("replaced");
}

#[test]
fn a_trial_is_listed_and_is_no_problem() {
    let site = Site::new(&[("index.php", "<?php echo 1;")]);
    let pagewell = site.serve("mode = \"trial\"\n");
    let (text, code) = status(&pagewell, &[]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.starts_with("No problem was found.\n\ntrial-running ("), "{text}");
    assert!(text.contains("The site is under trial"), "{text}");
    let (json, code) = status(&pagewell, &["--json"]);
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!((code, &json["well"]), (Some(0), &Value::Bool(true)), "{json}");
    assert_eq!(json["findings"][0]["name"], "trial-running");
    let answer = Client::new(pagewell.admin().clone()).get("/metrics").expect("an answer");
    let text = answer.text();
    // Its alert rule is that any of them is above 0.
    let mut findings = text.lines().filter(|line| line.starts_with("pagewell_findings{"));
    let is_zero = findings.clone().all(|line| line.ends_with("\"} 0"));
    assert!(is_zero && findings.next().is_some(), "{text}");
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
    let (text, code) = status(&pagewell, &[]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.starts_with("All is well.\n\nNext steps:\n1. No request has"), "{text}");
    assert_eq!(metric(&pagewell, "origin-failing"), 0);
    let request = Request::get("/").header("Host", "a.test");
    assert_eq!(client(&pagewell).send(&request).expect("an answer").status, 502);
    assert_eq!(names(&pagewell), ["origin-failing"]);
    let (text, code) = status(&pagewell, &[]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.starts_with("origin-failing (") && !text.contains("(for 0 s)"), "{text}");
    assert!(!text.contains("Next steps"), "{text}");
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
    // The log does not grow with the requests.
    for _ in 0..50 {
        assert_eq!(client(&pagewell).send(&request).expect("an answer").status, 502);
    }
    let logged = pagewell.times_logged("origin-refused");
    assert!((1..50).contains(&logged), "{}", pagewell.log());
}

/// As WordPress answers without its database. A longer lifetime would not help.
#[test]
fn server_errors_of_the_site_are_named() {
    let page = "<?php http_response_code(500); \
                header('Cache-Control: no-cache, must-revalidate, max-age=0'); echo 'no database';";
    let site = Site::new(&[("index.php", page)]);
    let pagewell = site.serve("");
    assert!(names(&pagewell).is_empty());
    for _ in 0..25 {
        let answer = client(&pagewell).get("/").expect("an answer");
        assert_eq!(answer.status, 500);
        assert!(answer.header("cache-status").is_some_and(|text| text.contains("server-error")));
    }
    assert_eq!(names(&pagewell), ["origin-errors"]);
    assert_eq!(metric(&pagewell, "origin-errors"), 1);
    let (text, code) = status(&pagewell, &[]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("answers 500 to 25 of 25 requests"), "{text}");
    assert!(text.contains(", for example http://") && text.contains("database"), "{text}");
    assert!(!text.contains("max-age"), "{text}");
    let logged = pagewell.times_logged("origin-error");
    assert!((1..25).contains(&logged), "{}", pagewell.log());
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
    // The one in use has still ended.
    until("both are named", || names(&pagewell) == ["certificate-ends", "certificate-unreadable"]);
    fs::remove_dir_all(&snapshots).expect("removed");
    let (text, _) = status(&pagewell, &[]);
    assert!(text.contains("directory-not-writable") && text.contains("is missing"), "{text}");
}

/// A site without snapshots writes the record of its trial, and an access log, to the disk that is full.
#[test]
fn a_full_disk_of_a_record_and_of_the_access_log_is_named() {
    let site = Site::new(&[("index.php", "<?php echo 1;")]);
    let small = site.at("small");
    fs::create_dir(&small).expect("a directory");
    let Some(_mounted) = MountedTmpfs::of(&small, "4m") else {
        skip("only root can mount a small disk");
        return;
    };
    let [records, logs, filler] = ["records", "logs", "filler"].map(|name| small.join(name));
    fs::create_dir(&records).expect("a directory");
    fs::create_dir(&logs).expect("a directory");
    let pagewell = site.serve(&format!(
        "mode = \"trial\"\naccess_log.to = {:?}\n\
         [snapshot]\ndirectory = {records:?}\nunwatched = \"drop\"\n",
        logs.join("access.log")
    ));
    let (text, code) = status(&pagewell, &[]);
    assert!(code == Some(0) && text.starts_with("No problem was found."), "{text}");
    fs::write(&filler, vec![b'x'; 8 << 20]).expect_err("there is not so much room");
    let (text, code) = status(&pagewell, &[]);
    assert_eq!(code, Some(1), "{text}");
    for (directory, what) in [(&records, "snapshot.directory"), (&logs, "the access log")] {
        let part = format!("The disk of {what} is full");
        assert!(text.contains(&part), "{part}: {text}");
        let part = format!("do  df -h {} ", directory.display());
        assert!(text.contains(&part), "{part}: {text}");
    }
    assert_eq!(metric(&pagewell, "disk-full"), 2);
    fs::remove_file(&filler).expect("removed");
    let (text, code) = status(&pagewell, &[]);
    assert!(code == Some(0) && text.starts_with("No problem was found."), "{text}");
}

/// A host of the site that no certificate names is a problem until one names it.
#[test]
fn a_host_without_a_certificate_is_named() {
    let site = Site::new(&[("index.php", "<?php echo 1;")]);
    let key = rcgen::KeyPair::generate().expect("a key");
    let certificate_of = |hosts: &[&str]| {
        let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
        let parameters = rcgen::CertificateParams::new(hosts).expect("names");
        parameters.self_signed(&key).expect("a certificate").pem()
    };
    let [key_file, file, socket] = ["key", "crt", "sock"].map(|end| site.at(&format!("a.{end}")));
    fs::write(&key_file, key.serialize_pem()).expect("written");
    fs::write(&file, certificate_of(&["a.test"])).expect("written");
    let pagewell = site.serve(&format!(
        "listen_tls = \"unix:{}\"\nsite.host = \"a.test\"\nsite.aliases = [\"www.a.test\"]\n\
         [[tls]]\ncertificate = {file:?}\nkey = {key_file:?}\n\
         [limits]\ncertificate_look = \"10ms\"\n",
        socket.display()
    ));
    assert_eq!(names(&pagewell), ["certificate-missing"]);
    assert_eq!(metric(&pagewell, "certificate-missing"), 1);
    let (text, code) = status(&pagewell, &[]);
    assert_eq!(code, Some(1), "{text}");
    assert!(
        text.starts_with("certificate-missing (") && text.contains("\n  do  Name it"),
        "{text}"
    );
    assert!(text.contains("browsers refuse https://www.a.test/."), "{text}");
    replace(&file, &certificate_of(&["a.test", "www.a.test"]));
    until("both are named by the new one", || names(&pagewell).is_empty());
}

/// A snapshot that fails is a problem until the next one is written.
#[test]
fn a_snapshot_that_was_not_written_is_named() {
    let site = Site::new(&[("index.php", "<?php echo 1;")]);
    let snapshots = site.at("snapshots");
    fs::create_dir(&snapshots).expect("a directory");
    // A directory is where the new journal has to be.
    let blocked = snapshots.join("site.journal.new");
    fs::create_dir(&blocked).expect("a directory");
    let pagewell = site.serve(&format!(
        "[snapshot]\ndirectory = {snapshots:?}\nevery = \"1s\"\nunwatched = \"serve\"\n"
    ));
    until("it is found", || names(&pagewell) == ["snapshot-not-written"]);
    let (text, code) = status(&pagewell, &[]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("a directory") && text.contains("df -h"), "{text}");
    fs::remove_dir(&blocked).expect("removed");
    until("the next one is written", || names(&pagewell).is_empty());
}

/// Files of the configuration that cannot be used are named until they are mended, and stop no others.
#[test]
fn files_that_cannot_be_used_are_named() {
    const STAFF: &str = "anna:$apr1$abcdefgh$h9FWgUz3n9YxylKLlR5SQ/\n";
    let lists = [("moved.tsv", "/a\t/1\n"), ("other.tsv", "/x\t/1\n")];
    let site = Site::new(&[("index.php", "<?php echo 1;"), lists[0], lists[1]]);
    let (staff, [moved, other]) = (site.at("staff"), lists.map(|(name, _)| site.root().join(name)));
    fs::write(&staff, STAFF).expect("written");
    let config = format!(
        "site.redirect_files = [{moved:?}, {other:?}]\n[limits]\ncertificate_look = \"10ms\"\n\
         [[rule]]\npath = \"/staff/*\"\nauth_file = {staff:?}\n"
    );
    let pagewell = site.serve(&config);
    assert!(names(&pagewell).is_empty());
    let location = |path: &str| {
        let answer = client(&pagewell).get(path).expect("an answer");
        answer.header("location").map(str::to_owned)
    };
    replace(&moved, "/a\t/2\nwrong\n");
    until("it is found", || names(&pagewell) == ["file-not-read"]);
    replace(&other, "/x\t/2\n");
    until("the other file is read", || location("/x").as_deref() == Some("/2"));
    assert_eq!(location("/a").as_deref(), Some("/1"), "the line from before");
    // No request needs the passwords.
    replace(&staff, "anna:secret\n");
    until("both are named", || names(&pagewell) == ["file-not-read"; 2]);
    assert_eq!(metric(&pagewell, "file-not-read"), 2);
    let (text, code) = status(&pagewell, &[]);
    assert_eq!(code, Some(1), "{text}");
    for part in [
        "moved.tsv",
        "line 2: write the old path",
        "so Pagewell still sends the former redirects",
        "staff",
        "htpasswd -B",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    replace(&staff, STAFF);
    replace(&moved, "/a\t/b\n/b\t/a\n");
    until("the circle is named", || names(&pagewell) == ["redirects-endless"]);
    assert!(status(&pagewell, &[]).0.contains("/a never ends"));
    let admin = pagewell.admin().to_string();
    let warned = Command::new(binary()).args(["reload", "--admin", &admin]).output();
    let warned = String::from_utf8_lossy(&warned.expect("it runs").stdout).into_owned();
    assert!(warned.contains("warning: A redirect file leads in a circle"), "{warned}");
    replace(&moved, "/a\t/3\n");
    until("all is well", || names(&pagewell).is_empty());
    assert_eq!(location("/a").as_deref(), Some("/3"));
}

/// A changed file is not forgotten while another file keeps the whole configuration from being read.
#[test]
fn a_changed_file_is_read_once_the_configuration_can_be() {
    let site = Site::new(&[("index.php", "<?php echo 1;"), ("moved.tsv", "/a\t/1\n")]);
    let (mount, away, moved) = (site.at("mount"), site.at("away"), site.root().join("moved.tsv"));
    let secret = mount.join("secret");
    fs::create_dir(&mount).expect("a directory");
    fs::write(&secret, "0123456789abcdef0123456789abcdef").expect("written");
    let pagewell = site.serve(&format!(
        "site.redirect_files = {moved:?}\n[limits]\ncertificate_look = \"10ms\"\n\
         [cookies]\nsecret_file = {secret:?}\n"
    ));
    let location = || {
        let answer = client(&pagewell).get("/a").expect("an answer");
        answer.header("location").map(str::to_owned)
    };
    fs::rename(&mount, &away).expect("moved");
    replace(&moved, "/a\t/2\n");
    until("it is found", || names(&pagewell) == ["file-not-read"]);
    assert!(status(&pagewell, &[]).0.contains("cookies.secret_file"));
    assert_eq!(location().as_deref(), Some("/1"));
    fs::rename(&away, &mount).expect("moved");
    until("the new line counts", || location().as_deref() == Some("/2"));
    until("all is well", || names(&pagewell).is_empty());
    assert_eq!(pagewell.times_logged("not-reloaded"), 1, "{}", pagewell.log());
}

/// A file whose disk was away for a moment is named until it is back, though it has not changed.
#[test]
fn a_file_that_was_away_is_named_until_it_is_back() {
    let site = Site::new(&[("index.php", "<?php echo 1;")]);
    let (mount, away) = (site.at("mount"), site.at("away"));
    let moved = mount.join("moved.tsv");
    fs::create_dir(&mount).expect("a directory");
    fs::write(&moved, "/a\t/1\n").expect("written");
    let pagewell = site.serve(&format!(
        "site.redirect_files = {moved:?}\n[limits]\ncertificate_look = \"10ms\"\n"
    ));
    fs::rename(&mount, &away).expect("moved");
    until("it is found", || names(&pagewell) == ["file-not-read"]);
    fs::rename(&away, &mount).expect("moved");
    until("all is well", || names(&pagewell).is_empty());
}

/// A reload that fails is a problem until one succeeds, or the file says again what is in effect.
#[test]
fn a_failed_reload_is_named() {
    const LIMITS: &str = "[limits]\ncertificate_look = \"10ms\"\n";
    let site = Site::new(&[("index.php", "<?php echo 1;")]);
    let pagewell = site.serve(LIMITS);
    let reload = || {
        let request = Request::new("POST", "/v1/reload").content(b"{}");
        let request = request.header("Content-Type", "application/json");
        Client::new(pagewell.admin().clone()).send(&request).expect("an answer").status
    };
    let fails = |config: &str| {
        site.config(config, "");
        assert_eq!((reload(), names(&pagewell)), (409, vec!["reload-failed".to_owned()]));
    };
    fails(&format!("{LIMITS}connections = 7\n"));
    let (text, _) = status(&pagewell, &[]);
    assert!(text.contains("limits.connections") && text.contains("pagewell check"), "{text}");
    site.config(&format!("{LIMITS}headers = 100\n"), "");
    assert_eq!((reload(), names(&pagewell)), (200, Vec::new()));
    fails(&format!("{LIMITS}headers = none\n"));
    site.config(&format!("{LIMITS}headers = 100\n"), "");
    until("the file says what is in effect", || names(&pagewell).is_empty());
}

/// While one response is collected, there is no room for another, which is therefore not stored.
#[test]
fn responses_that_find_no_room_are_named() {
    let page =
        "<?php keep(); out(str_repeat('x', 80000)); if (isset($_GET['hold'])) { wait_for('go'); }";
    let site = Site::new(&[("index.php", page)]);
    let pagewell = site.serve("[limits]\npage_bytes = \"100K\"\nclient_backlog_bytes = \"120K\"\n");
    let mut held = Raw::with(&pagewell, "GET /?hold HTTP/1.1\r\nHost: a\r\n\r\n");
    // The received part was collected before.
    held.until("xxxx");
    let late = client(&pagewell).get("/").expect("an answer");
    assert_eq!(late.content.len(), 80_000, "it is forwarded nevertheless");
    let found = names(&pagewell);
    assert!(found.contains(&"memory-short".to_owned()), "{found:?}");
    assert_eq!(metric(&pagewell, "memory-short"), 1);
    site.note("go");
}

/// The steps after the first start are listed until they are done.
#[test]
fn the_next_steps_are_those_that_are_not_done() {
    let page =
        "<?php keep(); if (isset($_GET['tag'])) { header('Cache-Groups: \"news\"'); } echo 1;";
    let site = Site::new(&[("index.php", page)]);
    let pagewell = site.serve("");
    let next = || -> Vec<String> {
        let answer = Client::new(pagewell.admin().clone()).get("/v1/status").expect("an answer");
        let value: Value = serde_json::from_slice(&answer.content).expect("JSON");
        let steps = value["next"].as_array().expect("a list");
        steps.iter().map(|one| one["name"].as_str().expect("a name").to_owned()).collect()
    };
    assert_eq!(next(), ["send-requests"]);
    for number in 0..20 {
        client(&pagewell).get(&format!("/?n={number}")).expect("an answer");
        let is_last = number == 19;
        assert_eq!(next().is_empty(), !is_last, "{number}");
    }
    assert_eq!(next(), ["declare-tags", "follow-database"]);
    let wordpress = site.root().join("wp-load.php");
    fs::write(&wordpress, "<?php").expect("written");
    assert_eq!(next(), ["install-plugin", "follow-database"]);
    client(&pagewell).get("/?tag").expect("an answer");
    assert!(next().is_empty(), "its plugin purges: {:?}", next());
    fs::remove_file(&wordpress).expect("removed");
    assert_eq!(next(), ["follow-database"]);
    pagewell.invalidate(r#"{"tags":["news"]}"#).expect("an answer");
    assert!(next().is_empty(), "{:?}", next());
}
