//! The probes of a document, and the tree of files that they ask for.
//!
//! A file has one item on each line: `+index.php` is a file of the tree, `@/admin/x` a restricted path that is asked for
//! in all spellings, and `/x` or `POST /x` a probe. The text behind ` ~ ` is in the report if the answers may differ; it
//! begins with `absent: ` if the original has no file or index there, where Pagewell may have an answer.

use acceptance::Site;
use std::fs;
use std::path::Path;

/// A request to both servers.
#[derive(Debug, Clone)]
pub struct Probe {
    pub method: String,
    pub target: String,
    /// Part of the report that explains a difference.
    pub remark: Option<String>,
    /// Whether the original only lacks a file or index there, and restricts nothing.
    pub is_absent: bool,
    /// The restricted path that it spells.
    pub spells: Option<String>,
}

/// The probes and the tree.
#[derive(Debug, Default)]
pub struct Probes {
    pub all: Vec<Probe>,
    files: Vec<String>,
}

/// Paths for every site.
const COMMON: [&str; 16] = [
    "/",
    "/index.php",
    "/index.php?a=b",
    "/?a=b",
    "/style.css",
    "/no-such-page",
    "/no-such-page?a=b",
    "/no-such/page/deep",
    "/no-such-page/",
    "/%6eo-such-page",
    "/a//b",
    "/x/../no-such-page",
    "HEAD /",
    "HEAD /style.css",
    "POST /",
    "/%2e%2e/%2e%2e/etc/passwd",
];

impl Probes {
    /// Reads a file.
    pub fn read(path: &Path) -> Probes {
        let text = fs::read_to_string(path).expect("the probes");
        let mut probes = Probes::default();
        let mut common: Vec<String> = COMMON.iter().map(ToString::to_string).collect();
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            if let Some(file) = line.strip_prefix('+') {
                probes.files.push(file.to_owned());
            } else if let Some(line) = line.strip_prefix('@') {
                let (path, remark) = line.split_once(" ~ ").unwrap_or((line, ""));
                probes.spellings(path, remark);
            } else {
                // A line about a common probe replaces it.
                let target = line.split(" ~ ").next().unwrap_or_default();
                common.retain(|known| known != target);
                probes.add(line, None);
            }
        }
        for line in common {
            probes.add(&line, None);
        }
        probes
    }

    fn add(&mut self, line: &str, spells: Option<&str>) {
        let (request, remark) = match line.split_once(" ~ ") {
            Some((request, remark)) => (request, Some(remark)),
            None => (line, None),
        };
        let absent = remark.and_then(|remark| remark.strip_prefix("absent: "));
        let (is_absent, remark) = (absent.is_some(), absent.or(remark).map(str::to_owned));
        let (method, target) = request.split_once(' ').unwrap_or(("GET", request));
        let (method, target) = (method.to_owned(), target.to_owned());
        let spells = spells.map(str::to_owned);
        self.all.push(Probe { method, target, remark, is_absent, spells });
    }

    /// The spellings of a path that is restricted.
    fn spellings(&mut self, path: &str, remark: &str) {
        let remark = if remark.is_empty() { String::new() } else { format!(" ~ {remark}") };
        let (first, rest) = (path.as_bytes()[1], &path[2..]);
        for spelling in [
            path.to_owned(),
            format!("/{path}"),
            format!("/.{path}"),
            format!("/zz/..{path}"),
            format!("/%{first:02x}{rest}"),
            format!("{path}?a=b"),
            format!("HEAD {path}"),
            format!("POST {path}"),
            format!("/%2e{path}"),
        ] {
            self.add(&format!("{spelling}{remark}"), Some(path));
        }
    }

    /// Writes the files. Each says its name: a script by `SCRIPT_FILENAME`, with the parameters that it gets.
    pub fn make_tree(&self, site: &Site) {
        fs::remove_file(site.root().join("index.php")).expect("it is there");
        let root = site.root().display().to_string();
        for name in self.files.iter().map(String::as_str).chain(["style.css"]) {
            let text = if name.ends_with(".php") {
                let status =
                    if name.ends_with("404.php") { "http_response_code(404);" } else { "" };
                format!(
                    "<?php {status} ksort($_GET); header('Cache-Control: no-store'); echo 'ran ', str_replace('{root}', '', $_SERVER['SCRIPT_FILENAME']), ' ', json_encode($_GET);"
                )
            } else {
                format!("file /{name}")
            };
            site.file(name, text);
        }
    }
}
