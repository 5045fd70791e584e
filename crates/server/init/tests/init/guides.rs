//! The guides show what `init` writes: for each application, its page has all rules of the written file, and the page
//! or another one a configuration all of whose lines are in that file. They begin with `init`.

use crate::tree::{Tree, lines};
use command_line::options::{InitArgs, SiteKind};
use std::fs;
use std::path::{Path, PathBuf};

/// The page of each application, with the machine and the host of its configuration; whether nginx is in front.
const GUIDES: [(SiteKind, &str, &str, &str, bool); 5] = [
    (SiteKind::WordPress, "wordpress", "/var/www/blog", "blog.example www.blog.example", true),
    (SiteKind::WordPress, "wordpress", "/var/www/blog", "blog.example", false),
    (SiteKind::MediaWiki, "mediawiki", "/var/www/wiki", "wiki.example", false),
    (SiteKind::Php, "php", "/var/www/site", "example.org", false),
    (SiteKind::Magento, "shops", "/var/www/shop", "shop.example", false),
];

/// The pages with rules for the configuration of plain PHP.
const RULES_ONLY: [(SiteKind, &str); 3] =
    [(SiteKind::Laravel, "laravel"), (SiteKind::Symfony, "symfony"), (SiteKind::Drupal, "drupal")];

/// Further pages with a configuration that `init` writes.
const FURTHER: [&str; 2] = ["automatic", "nginx"];

#[test]
fn each_guide_shows_the_configuration_that_init_writes() {
    let blocks = blocks();
    for (kind, page, dir, names, is_behind_nginx) in GUIDES {
        let (tree, _) = Tree::with_php().site(kind);
        let tree = tree.file("/proc/meminfo", "MemTotal:        1048576 kB\nMemFree: 1 kB\n");
        let tree = if is_behind_nginx { tree.with_nginx(dir, names) } else { tree };
        let host = names.split(' ').next().map(str::to_owned);
        let (_, written) = tree.init_with(&InitArgs { name: host, ..tree.args(dir) });
        let written = lines(&written);
        let marker = if kind == SiteKind::Magento {
            "host = \"shop.example\""
        } else {
            &format!("root = \"{dir}\"")
        };
        // Without another server, `init` knows no further names of the site.
        let is_written = |line: &String| written.contains(line) || line.starts_with("aliases = ");
        let is_shown = |block: &&Vec<String>| {
            let has = |line: &str| block.iter().any(|is| is == line);
            let has_rules = is_behind_nginx || rules(&written).all(|line| has(line));
            has(marker) && has("[site]") && has_rules && block.iter().all(is_written)
        };
        assert_rules(kind, page, &written);
        assert!(
            blocks.iter().any(|block| is_shown(&block)),
            "no page below docs shows the configuration of {kind:?}:\n{}",
            written.join("\n")
        );
    }
}

#[test]
fn each_guide_shows_the_rules_that_init_writes() {
    for (kind, page) in RULES_ONLY {
        let (tree, dir) = Tree::with_php().site(kind);
        assert_rules(kind, page, &lines(&tree.init(dir).1));
    }
}

/// Each guide names `pagewell init` before its first configuration.
#[test]
fn each_guide_begins_with_init() {
    let of_applications = GUIDES.map(|(_, page, ..)| page).into_iter();
    let all = of_applications.chain(RULES_ONLY.map(|(_, page)| page)).chain(FURTHER);
    for page in all {
        let text = guide(page);
        let beginning = text.split("```toml").next().unwrap_or_default();
        assert!(beginning.contains("`sudo pagewell init "), "{page}.md");
    }
}

/// The lines of a configuration that restrict requests or change responses.
fn rules(written: &[String]) -> impl Iterator<Item = &String> {
    let start = written.iter().position(|line| line == "[[rule]]").unwrap_or(written.len());
    let points = written.iter().filter(|line| line.starts_with("entry_points"));
    let is_rule = |line: &&String| !line.starts_with("[key") && line.as_str() != "[snapshot]";
    points.chain(&written[start..]).take_while(is_rule)
}

/// The page of an application has all rules, each on a line or within a sentence.
fn assert_rules(kind: SiteKind, page: &str, written: &[String]) {
    let text = guide(page);
    for line in rules(written) {
        assert!(text.contains(line.as_str()), "{page}.md lacks a rule for {kind:?}: {line}");
    }
}

/// The text of a guide.
fn guide(page: &str) -> String {
    fs::read_to_string(docs().join(format!("guide/{page}.md"))).expect("a page")
}

fn docs() -> PathBuf {
    let above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(3);
    above.expect("the directory of the workspace").join("docs")
}

/// The configurations in all pages.
fn blocks() -> Vec<Vec<String>> {
    let (mut dirs, mut blocks) = (vec![docs()], Vec::new());
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir).expect("the pages below docs") {
            let path: PathBuf = entry.expect("the pages below docs").path();
            if path.is_dir() {
                dirs.push(path);
            } else if path.extension().is_some_and(|ending| ending == "md") {
                let text = fs::read_to_string(path).expect("the pages below docs");
                let parts = text.split("```toml\n").skip(1);
                blocks
                    .extend(parts.map(|part| lines(part.split("```").next().unwrap_or_default())));
            }
        }
    }
    blocks
}

/// The pages by which a site is set up.
const SET_UP: [&str; 17] = [
    "automatic",
    "classic-nginx",
    "database",
    "drupal",
    "from-varnish",
    "laravel",
    "litespeed",
    "load-balancer",
    "many-sites",
    "mediawiki",
    "nginx",
    "php",
    "postgresql",
    "several-machines",
    "shops",
    "symfony",
    "wordpress",
];

/// Each names the trial in a sentence before its first section.
#[test]
fn each_guide_begins_with_a_trial() {
    for page in SET_UP {
        let text = fs::read_to_string(docs().join(format!("guide/{page}.md"))).expect("a page");
        let beginning = text.split("\n## ").next().unwrap_or_default();
        let mut sentences = beginning.lines().filter(|line| !line.starts_with('|'));
        assert!(sentences.any(|line| line.contains("trial](trial.md)")), "{page}.md");
    }
}
