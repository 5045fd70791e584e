//! `pagewell import`: the configurations that fourteen applications document, in nginx or Apache and imported in
//! Pagewell, answer the same probes with real php-fpm: class of the status, `Location`, and the script with its query.
//!
//! A difference fails, unless Pagewell refuses more and the report says that a line is wider, or the probe names a
//! remark that is in the report. `IMPORT_ONLY=drupal` runs one of them; with `--nocapture`, all figures are printed.
//! While the program does not know a key (it is asked), the rules with that key are left out, and their differences are
//! counted.

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

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../server/import-rules/tests/documents")
}

/// The answer of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Observed {
    class: u16,
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
        Observed { class: response.status / 100, location, content, is_hidden }
    }

    fn is_refusal(&self) -> bool {
        self.class == 4
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
    later: usize,
    failed: Vec<String>,
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
    for probe in &probes.all {
        let (original, answer) = (Observed::of(&mut theirs, probe), Observed::of(&mut ours, probe));
        if original == (Observed { is_hidden: false, ..answer.clone() }) {
            figures.agree += 1;
            continue;
        }
        let is_wider = answer.is_refusal() && !original.is_refusal() && original.location.is_none();
        let is_narrower = original.is_refusal() && answer.class == 2;
        if probe.remark.as_ref().is_some_and(|remark| imported.report.contains(remark.as_str()))
            || original.is_source() && answer.is_refusal()
        {
            figures.explained += 1;
        } else if is_wider
            && (probe.is_spelling || answer.is_hidden || imported.report.contains("wider"))
        {
            figures.wider += 1;
        } else if imported.lacks_keys() && !(is_narrower && probe.is_spelling) {
            figures.later += 1;
        } else {
            figures
                .failed
                .push(format!("{} {}: {original:?}, but {answer:?}", probe.method, probe.target));
        }
    }
    println!(
        "{document}: {} probes, {} agree, {} wider, {} explained, {} wait for a key {:?}",
        probes.all.len(),
        figures.agree,
        figures.wider,
        figures.explained,
        figures.later,
        imported.lacking,
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
    let (mut failed, mut agree) = (Vec::new(), 0);
    for document in DOCUMENTS.iter().filter(|document| document.starts_with(&only)) {
        let figures = compare(document);
        agree += figures.agree;
        failed.extend(figures.failed.into_iter().map(|line| format!("{document} {line}")));
    }
    println!("{agree} probes agree");
    assert!(failed.is_empty(), "{} differences:\n{}", failed.len(), failed.join("\n"));
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
