//! The guides show what `init` writes: for each application, a page has a configuration all of whose lines are
//! in the written file.

use crate::tree::{Tree, lines};
use command_line::options::{InitArgs, SiteKind};
use std::fs;
use std::path::{Path, PathBuf};

/// The machine and the host of each guide.
const GUIDES: [(SiteKind, &str, &str, bool); 4] = [
    (SiteKind::WordPress, "/var/www/blog", "blog.example www.blog.example", true),
    (SiteKind::MediaWiki, "/var/www/wiki", "wiki.example", false),
    (SiteKind::Php, "/var/www/site", "example.org", false),
    (SiteKind::Magento, "/var/www/shop", "shop.example", false),
];

#[test]
fn each_guide_shows_the_configuration_that_init_writes() {
    let blocks = blocks();
    for (kind, dir, names, is_behind_nginx) in GUIDES {
        let (tree, _) = Tree::with_php().site(kind);
        let tree = if is_behind_nginx { tree.with_nginx(dir, names) } else { tree };
        let host = names.split(' ').next().map(str::to_owned);
        let (_, written) = tree.init_with(&InitArgs { name: host, ..tree.args(dir) });
        let written = lines(&written);
        let marker = if kind == SiteKind::Magento {
            "host = \"shop.example\""
        } else {
            &format!("root = \"{dir}\"")
        };
        let is_shown = |block: &&Vec<String>| {
            let has = |line: &str| block.iter().any(|is| is == line);
            has(marker) && has("[site]") && block.iter().all(|line| written.contains(line))
        };
        assert!(
            blocks.iter().any(|block| is_shown(&block)),
            "no page below docs shows the configuration of {kind:?}:\n{}",
            written.join("\n")
        );
    }
}

/// The configurations in all pages.
fn blocks() -> Vec<Vec<String>> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(3)
        .expect("the pages below docs")
        .join("docs");
    let (mut dirs, mut blocks) = (vec![docs], Vec::new());
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
