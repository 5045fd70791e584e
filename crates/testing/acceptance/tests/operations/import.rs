//! `pagewell import`: the configurations that fourteen applications document, in nginx or Apache and imported in
//! Pagewell, answer the same probes with real php-fpm: class of the status, `Location`, and the script with its query.
//!
//! A difference fails, unless the probe names a remark that is in the report, or Pagewell refuses a spelling of a path
//! that both refuse, or a file that it never serves. An answer where the original refuses (it is narrower) always
//! fails, unless the probe says that the original only lacks a file (404) or an index (403). `IMPORT_ONLY=drupal` runs one of them; with
//! `--nocapture`, all figures are printed.

mod imported;
mod probes;
mod reference;

use acceptance::{Site, binary};
use harness::{Client, PhpFpm, PoolOptions, PrivateDir, Request};
use imported::Imported;
use probes::{Probe, Probes};
use reference::Reference;
use std::path::{Path, PathBuf};

/// The documents, and the least number of probes for each.
const DOCUMENTS: [&str; 14] = [
    "wordpress.nginx",
    "laravel.nginx",
    "symfony.nginx",
    "mediawiki.nginx",
    "magento.nginx",
    "nextcloud.nginx",
    "matomo.nginx",
    "phpbb.nginx",
    "grav.nginx",
    "drupal.htaccess",
    "joomla.htaccess",
    "prestashop.htaccess",
    "flarum.htaccess",
    "dokuwiki.htaccess",
];
const PROBES_MIN: usize = 60;
/// The least number of probes that agree, and the most that Pagewell refuses beyond the original, of all documents.
const AGREE_MIN: usize = 997;
const WIDER_MAX: usize = 24;

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../server/import-rules/tests/documents")
}

/// The answer of a server.
#[derive(Debug)]
struct Observed {
    status: u16,
    location: Option<String>,
    /// The script or file, for a success.
    content: Option<String>,
    /// Whether Pagewell says that it never serves a file of this name.
    is_hidden: bool,
}

impl Observed {
    fn of(client: &mut Client, probe: &Probe) -> Observed {
        let request = Request::new(&probe.method, &probe.target);
        let request = if probe.method == "POST" { request.content(b"a=b") } else { request };
        let response = client.send(&request).unwrap_or_else(|error| panic!("{probe:?}: {error}"));
        let location = response.header("location").map(|location| {
            let path = location
                .split_once("://")
                .map_or(location, |(_, rest)| rest.find('/').map_or("/", |at| &rest[at..]));
            path.to_owned()
        });
        let is_success = response.status / 100 == 2 && probe.method != "HEAD";
        let content = is_success.then(|| response.text().trim().to_owned());
        let said = response.header("cache-status").unwrap_or_default();
        let is_hidden = said.contains("hidden");
        assert!(response.status < 500, "{probe:?}: {}", response.text());
        Observed { status: response.status, location, content, is_hidden }
    }

    fn agrees_with(&self, other: &Observed) -> bool {
        self.status / 100 == other.status / 100
            && self.location == other.location
            && self.content == other.content
    }

    fn is_refusal(&self) -> bool {
        self.status / 100 == 4
    }

    /// Whether this may be the answer for a path without a file, or for a directory without an index.
    fn is_absence(&self, probe: &Probe) -> bool {
        self.status == 404 || self.status == 403 && probe.target.ends_with('/')
    }

    /// Whether the source of a script was sent, which nginx does where no `fastcgi_pass` is.
    fn is_source(&self) -> bool {
        self.content.as_ref().is_some_and(|content| content.starts_with("<?php"))
    }
}

/// The result for one document.
#[derive(Debug, Default)]
struct Figures {
    agree: usize,
    wider: usize,
    explained: usize,
    failed: Vec<String>,
}

impl Figures {
    /// Counts the answers to a probe. `is_restricted` says whether both servers refuse the path that it spells.
    fn add(
        &mut self,
        probe: &Probe,
        (original, answer): (&Observed, &Observed),
        (report, is_restricted): (&str, bool),
    ) {
        let is_wider = answer.is_refusal() && !original.is_refusal() && original.location.is_none();
        let is_narrower = original.is_refusal() && !answer.is_refusal();
        let is_explained =
            probe.remark.as_ref().is_some_and(|remark| report.contains(remark.as_str()));
        if original.agrees_with(answer) {
            self.agree += 1;
        } else if is_narrower && !(probe.is_absent && original.is_absence(probe)) {
            self.failed.push(format!("narrower: {probe:?}: {original:?}, but {answer:?}"));
        } else if is_wider
            && (is_explained || is_restricted || answer.is_hidden || original.is_source())
        {
            self.wider += 1;
        } else if is_explained {
            self.explained += 1;
        } else {
            self.failed.push(format!("{probe:?}: {original:?}, but {answer:?}"));
        }
    }
}

fn compare(document: &str) -> Figures {
    let site = Site::new(&[]);
    let name = document.split('.').next().expect("a name");
    let probes = Probes::read(&directory().join(format!("{name}.probes")));
    probes.make_tree(&site);
    let fpm = PrivateDir::temporary("fpm").expect("a directory");
    let fpm = PhpFpm::start(fpm, &PoolOptions::default()).expect("php-fpm");
    let reference = Reference::start(&directory().join(document), &site, fpm.socket());
    let imported = Imported::start(&reference.file, &site, fpm.socket());
    let mut theirs = Client::new(reference.address()).host("example.org");
    let mut ours = Client::new(imported.pagewell.address().clone()).host("example.org");
    let mut figures = Figures::default();
    // The first spelling of a restricted path is the path itself.
    let mut spelled = ("", false);
    for probe in &probes.all {
        let (original, answer) = (Observed::of(&mut theirs, probe), Observed::of(&mut ours, probe));
        let path = probe.spells.as_deref().unwrap_or_default();
        if spelled.0 != path {
            spelled = (path, original.is_refusal() && answer.is_refusal());
        }
        let is_restricted = !path.is_empty() && spelled.1;
        figures.add(probe, (&original, &answer), (&imported.report, is_restricted));
    }
    println!(
        "{document}: {} probes, {} agree, {} wider, {} explained",
        probes.all.len(),
        figures.agree,
        figures.wider,
        figures.explained,
    );
    assert!(probes.all.len() >= PROBES_MIN, "{document}: {} probes", probes.all.len());
    for line in &figures.failed {
        println!("  {document} {line}");
    }
    if !figures.failed.is_empty() {
        println!("{}\n{}", imported.text, imported.report);
    }
    figures
}

#[test]
fn imported_documents_answer_like_the_original() {
    let only = std::env::var("IMPORT_ONLY").unwrap_or_default();
    let (mut failed, mut agree, mut wider) = (Vec::new(), 0, 0);
    for document in DOCUMENTS.iter().filter(|document| document.starts_with(&only)) {
        let figures = compare(document);
        agree += figures.agree;
        wider += figures.wider;
        failed.extend(figures.failed.into_iter().map(|line| format!("{document} {line}")));
    }
    assert!(failed.is_empty(), "{} differences:\n{}", failed.len(), failed.join("\n"));
    println!("{agree} probes agree, {wider} are wider");
    let is_as_before = agree >= AGREE_MIN && wider <= WIDER_MAX;
    assert!(!only.is_empty() || is_as_before, "{agree} probes agree, {wider} are wider");
}

#[test]
fn the_command_writes_new_files_only_and_reports_lost_restrictions() {
    let site = Site::new(&[]);
    let file = site.file("x.conf", "server { root /srv; location /a { auth_request /x; } }");
    let run = |args: &[&str]| {
        let mut command = std::process::Command::new(binary());
        let out =
            command.args(["import", "nginx"]).arg(&file).args(args).output().expect("it runs");
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        (out.status.code(), text(&out.stdout), text(&out.stderr))
    };
    let (status, text, report) = run(&[]);
    assert_eq!(status, Some(2), "{report}");
    assert!(
        text.contains("root = \"/srv\"") && report.contains("x.conf:1: not translated"),
        "{text}{report}"
    );
    let (status, _, report) = run(&["--json"]);
    let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
    assert_eq!((status, report["lacks_restrictions"].as_bool()), (Some(2), Some(true)));
    let output = site.at("new.toml").display().to_string();
    let second = site.at("report").display().to_string();
    let args = ["--output", &output, "--report", &second];
    assert_eq!(run(&args).0, Some(2));
    let (status, _, error) = run(&args);
    assert!(status == Some(1) && error.contains("is not overwritten"), "{error}");
    std::fs::write(&file, "server { a \"b }").expect("a file");
    let (status, _, error) = run(&[]);
    assert!(status == Some(1) && error.contains("x.conf:1: a quoted word"), "{error}");
}
