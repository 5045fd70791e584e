//! Rules about the manual: its links and paths lead somewhere, its commands exist, its pages can be reached.
//!
//! A link within the repository names a file that is there, and a heading that is in it. A path in
//! back-quotes names a file or directory that is there; a name behind the path of a source file is in that file. A command
//! in the README's blocks is a target of the Makefile, a task of `cargo xtask`, or something that
//! the `pagewell` binary lists in its help; the last is looked up only if the binary has been built.

use super::files::SourceFile;
use super::lexer::is_word;
use super::{Finding, finding};
use std::collections::{BTreeMap, HashSet};
use std::path::{Component, Path, PathBuf};
use std::process::Command;

/// Links lead to files and headings that exist.
pub fn links(files: &[SourceFile], root: &Path) -> Vec<Finding> {
    let mut found = Vec::new();
    for file in files.iter().filter(|file| file.extension() == "md") {
        for (line, target) in targets(&file.text) {
            if let Some(message) = dead(file, &target, files, root) {
                found.push(finding(file, line, "link", &message));
            }
        }
    }
    found
}

/// Paths in back-quotes lead to files and directories that exist. Only paths in the repository count: they
/// begin with one of its directories, or name a Rust file, perhaps without the directories in front of it.
pub fn paths(files: &[SourceFile], root: &Path) -> Vec<Finding> {
    let mut found = Vec::new();
    for file in files.iter().filter(|file| file.extension() == "md") {
        for (line, path) in quoted(&file.text).into_iter().filter(|(_, path)| is_path(path)) {
            if !is_there(path, files, root) {
                found.push(finding(
                    file,
                    line,
                    "path",
                    &format!("`{path}`: there is no such file"),
                ));
            }
        }
    }
    found
}

/// A name behind the path of a source file is in that file: `` `front/src/listen.rs` `serve` ``.
pub fn names_in_files(files: &[SourceFile]) -> Vec<Finding> {
    let mut found = Vec::new();
    for file in files.iter().filter(|file| file.extension() == "md") {
        for (number, line) in file.text.lines().enumerate() {
            let parts: Vec<&str> = line.split('`').collect();
            // Texts in back-quotes are the second, the fourth and so on.
            let pairs = parts.windows(3).skip(1).step_by(2).filter(|three| three[1] == " ");
            for (path, name) in pairs.map(|three| (three[0], three[2])) {
                let last = name.rsplit("::").next().unwrap_or_default();
                let is_name = !last.is_empty() && last.bytes().all(is_word);
                if path.ends_with(".rs") && is_name && !is_in(path, last, files) {
                    let message = format!("`{path}` has no `{name}`");
                    found.push(finding(file, number + 1, "name-in-file", &message));
                }
            }
        }
    }
    found
}

/// Whether a file with this path, or the end of it, has the name. Files that are not there are another fault.
fn is_in(path: &str, name: &str, files: &[SourceFile]) -> bool {
    let end = format!("/{path}");
    let mut named = files.iter().filter(|file| file.path == path || file.path.ends_with(&end));
    let has = |file: &SourceFile| {
        file.text
            .split(|letter: char| !letter.is_alphanumeric() && letter != '_')
            .any(|w| w == name)
    };
    named.clone().next().is_none() || named.any(has)
}

/// The directories of the repository with which a path begins.
const DIRECTORIES: [&str; 11] = [
    "contract/",
    "contrib/",
    "crates/",
    "docs/",
    "examples/",
    "fuzz/",
    "php/",
    "scripts/",
    "tests/",
    "tools/",
    "xtask/",
];

/// Texts between back-quotes outside of blocks of code, with their lines.
fn quoted(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut in_block = false;
    for (number, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
        } else if !in_block {
            found.extend(line.split('`').skip(1).step_by(2).map(|word| (number + 1, word)));
        }
    }
    found
}

fn is_path(word: &str) -> bool {
    let is_example = word.contains(['*', '<', '>', '{', '}', '…', '$', '=', ' ', ':']);
    let begins = DIRECTORIES.iter().any(|directory| word.starts_with(directory));
    !is_example && (begins || word.ends_with(".rs"))
}

fn is_there(path: &str, files: &[SourceFile], root: &Path) -> bool {
    let end = format!("/{path}");
    let is_end = || files.iter().any(|file| file.path.ends_with(&end));
    root.join(path).exists() || (path.ends_with(".rs") && is_end())
}

/// Every page of the manual can be reached by links from its index.
pub fn reachable(files: &[SourceFile]) -> Vec<Finding> {
    let pages: BTreeMap<&str, &SourceFile> =
        files.iter().filter(|file| is_page(file)).map(|file| (file.path.as_str(), file)).collect();
    let mut waiting: Vec<&SourceFile> = pages.get(INDEX).copied().into_iter().collect();
    let mut seen: HashSet<&str> = waiting.iter().map(|file| file.path.as_str()).collect();
    while let Some(page) = waiting.pop() {
        for (to, _) in linked(page) {
            if let Some(next) = pages.get(to.as_str()).filter(|next| seen.insert(&next.path)) {
                waiting.push(next);
            }
        }
    }
    let message = format!("no links lead here from {INDEX}");
    let lost = pages.values().filter(|page| !seen.contains(page.path.as_str()));
    lost.map(|page| finding(page, 1, "unreachable", &message)).collect()
}

/// The page from which every other page of the manual can be reached.
const INDEX: &str = "docs/README.md";

fn is_page(file: &SourceFile) -> bool {
    file.extension() == "md" && file.path.starts_with("docs/")
}

/// The targets of links outside of code, with their lines.
fn targets(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut in_block = false;
    for (number, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
        }
        if in_block {
            continue;
        }
        // Text between back-quotes is an example.
        let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join(" ");
        for (at, _) in prose.match_indices("](") {
            if let Some((target, _)) = prose[at + 2..].split_once(')') {
                let target = target.split_whitespace().next().unwrap_or_default();
                found.push((number + 1, target.to_owned()));
            }
        }
    }
    found
}

fn dead(file: &SourceFile, target: &str, files: &[SourceFile], root: &Path) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (path, heading) = target.split_once('#').unwrap_or((target, ""));
    let to = if path.is_empty() {
        PathBuf::from(&file.path)
    } else {
        normal(&Path::new(&file.path).parent().unwrap_or(Path::new("")).join(path))
    };
    if !root.join(&to).exists() {
        return Some(format!("`{target}`: there is no {}", to.display()));
    }
    let to_file = files.iter().find(|file| Path::new(&file.path) == to)?;
    let is_there = heading.is_empty() || headings(&to_file.text).contains(heading);
    (!is_there).then(|| format!("`{target}`: {} has no such heading", to.display()))
}

fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                normal.pop();
            }
            Component::CurDir => {}
            other => normal.push(other),
        }
    }
    normal
}

/// The names by which links know the headings of a text.
fn headings(text: &str) -> HashSet<String> {
    let titles = text.lines().filter(|line| line.starts_with('#'));
    titles.map(|line| slug(line.trim_start_matches('#').trim())).collect()
}

/// The name by which links know a heading: small letters, hyphens, no punctuation.
pub fn slug(title: &str) -> String {
    let lower = title.to_lowercase();
    let letters = lower.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    letters.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// The files of the repository that a page links to, each with the name of the heading or an empty text.
pub fn linked(page: &SourceFile) -> Vec<(String, String)> {
    let own = targets(&page.text).into_iter().filter(|(_, target)| !target.contains("://"));
    own.filter_map(|(_, target)| {
        let (path, heading) = target.split_once('#').unwrap_or((&target, ""));
        let directory = Path::new(&page.path).parent().unwrap_or(Path::new(""));
        let to =
            if path.is_empty() { PathBuf::from(&page.path) } else { normal(&directory.join(path)) };
        Some((to.to_str()?.to_owned(), heading.to_owned()))
    })
    .collect()
}

/// The commands in the README exist. `tasks` are those of `cargo xtask`.
pub fn commands(files: &[SourceFile], tasks: &[String]) -> Vec<Finding> {
    let text = |path: &str| files.iter().find(|file| file.path == path);
    let Some(readme) = text("README.md") else { return Vec::new() };
    let make: HashSet<String> =
        text("Makefile").map(|file| make_targets(&file.text)).unwrap_or_default();
    let mut found = Vec::new();
    for (line, command) in shown(&readme.text) {
        let words: Vec<&str> = command.split_whitespace().collect();
        let unknown = match words.as_slice() {
            ["make", target, ..] => !make.contains(*target),
            ["cargo", "xtask", task, ..] => !tasks.iter().any(|known| known == task),
            [program, rest @ ..] if program.rsplit('/').next() == Some("pagewell") => {
                !pagewell_knows(rest)
            }
            _ => false,
        };
        if unknown {
            found.push(finding(readme, line, "command", &format!("`{command}`: no such command")));
        }
    }
    found
}

/// The commands in blocks of code, without a prompt and without a remark after them.
fn shown(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut in_block = false;
    for (number, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
        } else if in_block {
            let line = line.trim().trim_start_matches("$ ");
            let command = line.split(" #").next().unwrap_or_default().trim();
            found.push((number + 1, command.to_owned()));
        }
    }
    found
}

fn make_targets(text: &str) -> HashSet<String> {
    let rules = text.lines().filter(|line| !line.starts_with(['\t', '#', '.', ' ']));
    let names = rules.filter_map(|line| line.split_once(':')).map(|(names, _)| names);
    names.flat_map(str::split_whitespace).map(str::to_owned).collect()
}

/// Whether the binary's help lists this subcommand and these options.
fn pagewell_knows(words: &[&str]) -> bool {
    let Ok(binary) = harness::binary() else { return true };
    let Some((subcommand, rest)) = words.split_first() else { return true };
    if subcommand.starts_with('-') {
        return matches!(*subcommand, "--help" | "--version");
    }
    let Ok(output) = Command::new(binary).args([*subcommand, "--help"]).output() else {
        return false;
    };
    let help = String::from_utf8_lossy(&output.stdout).into_owned();
    let options = rest.iter().filter(|word| word.starts_with("--"));
    let listed = |option: &&str| help.contains(option.split('=').next().unwrap_or_default());
    output.status.success() && options.into_iter().all(listed)
}

#[cfg(test)]
mod tests {
    use super::super::files::file;
    use super::*;

    #[test]
    fn dead_links_and_headings_are_found() {
        let text = "# One, two\n[a](https://x.test/) [b](src/main.rs) [c](#one-two)\n\
                    [d](none.md) `[e](none.md)` [f](#three)\n```\n[g](none.md)\n```\n";
        let files = [file("README.md", text)];
        let root = harness::PrivateDir::temporary("links").expect("a directory can be made");
        std::fs::create_dir(root.path().join("src")).expect("a directory can be made");
        for path in ["README.md", "src/main.rs"] {
            std::fs::write(root.path().join(path), text).expect("a file can be written");
        }
        let lines: Vec<usize> = links(&files, root.path()).iter().map(|found| found.line).collect();
        assert_eq!(lines, [3, 3]);
    }

    #[test]
    fn paths_that_lead_nowhere_are_found() {
        let text = "`docs/a.md` `docs/` `docs/none.md` `none/b.md`\n`inner/main.rs` `none.rs` `main.rs`\n\
                    `docs/<topic>.md` `docs/*.md`\n```\n`docs/none.md`\n```\n`xtask/none` docs/none.md\n";
        let files = [file("docs/a.md", text), file("crates/one/inner/main.rs", "")];
        let root = harness::PrivateDir::temporary("paths").expect("a directory can be made");
        std::fs::create_dir(root.path().join("docs")).expect("a directory can be made");
        std::fs::write(root.path().join("docs/a.md"), text).expect("a file can be written");
        let lines: Vec<usize> = paths(&files, root.path()).iter().map(|found| found.line).collect();
        assert_eq!(lines, [1, 2, 7]);
    }

    #[test]
    fn names_that_are_not_in_their_file_are_found() {
        let text = "`a.rs` `serve`, `one/src/a.rs` `Shard::get`\n`a.rs` `server`\n`a.rs` and `none`\n`x` `a.rs` `none`\n";
        let code = "fn serve() { get() }";
        let files = [file("docs/a.md", text), file("crates/one/src/a.rs", code)];
        let lines: Vec<usize> = names_in_files(&files).iter().map(|found| found.line).collect();
        assert_eq!(lines, [2, 4]);
    }

    #[test]
    fn pages_without_a_way_to_them_are_found() {
        let files = [
            file("docs/README.md", "[a](guide/a.md#top) `[d](d.md)`"),
            file("docs/guide/a.md", "[b](../b.md) [docs](../README.md)"),
            file("docs/b.md", ""),
            file("docs/d.md", "[b](b.md)"),
            file("README.md", "[d](docs/d.md)"),
        ];
        let found = reachable(&files);
        let paths: Vec<&str> = found.iter().map(|found| found.path.as_str()).collect();
        assert_eq!(paths, ["docs/d.md"]);
    }

    #[test]
    fn unknown_commands_are_found() {
        let readme = "make none\n```sh\n$ make demo  # shows it\nmake none\ncargo xtask tidy\n\
                      cargo xtask none\ncurl -i x\n```\n";
        let files = [file("Makefile", "demo: a\n\tx\n.PHONY: none\n"), file("README.md", readme)];
        let found = commands(&files, &["tidy".to_owned()]);
        let lines: Vec<usize> = found.iter().map(|found| found.line).collect();
        assert_eq!(lines, [4, 6]);
    }
}
