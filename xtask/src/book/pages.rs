//! The chapters of the book, from `docs/README.md`.
//!
//! Its sections are the parts, the pages that they link to the chapters, each once. The book has the pages of
//! `docs` at its top, and other pages below their directories; `README.md` is `index.md`.

use super::fault;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

const INDEX: &str = "docs/README.md";
/// The section for authors of the code: its pages are not in the book.
const LEFT_OUT: &str = "Change Pagewell";

/// A page of the book.
pub struct Chapter {
    /// Its path in the book.
    pub path: String,
    /// The first heading of the page.
    pub title: String,
    /// The page, with links to the chapters of the book.
    pub text: String,
}

/// The book before mdBook has made HTML of it.
pub struct Book {
    /// The chapters, the index first.
    pub chapters: Vec<Chapter>,
    /// Files in the repository, each with its path in the book.
    pub images: BTreeMap<PathBuf, String>,
    /// The name of each part, and the number of its first chapter.
    parts: Vec<(String, usize)>,
}

impl Book {
    /// Reads the pages of the manual.
    ///
    /// # Errors
    /// A page cannot be read.
    pub fn read(repository: &Path) -> Result<Book, String> {
        let page = |path: &str| {
            let path = repository.join(path);
            fs::read_to_string(&path).map_err(|error| fault(&path, error))
        };
        let (paths, parts) = contents(&page(INDEX)?);
        let known: BTreeSet<&str> = paths.iter().map(String::as_str).collect();
        let (mut chapters, mut images) = (Vec::new(), BTreeMap::new());
        for path in &paths {
            let text = page(path)?;
            let title = text.lines().find_map(|line| line.strip_prefix("# ")).unwrap_or(path);
            let linked = with_links(&text, |target| to_chapter(path, target, &known, &mut images));
            chapters.push(Chapter {
                path: in_the_book(path),
                title: title.to_owned(),
                text: linked,
            });
        }
        let images = images.into_iter().map(|(from, to)| (repository.join(from), to)).collect();
        Ok(Book { chapters, images, parts })
    }

    /// The table of contents, as mdBook reads it.
    pub fn summary(&self) -> String {
        let mut summary = "# Summary\n\n".to_owned();
        for (number, chapter) in self.chapters.iter().enumerate() {
            if let Some((part, _)) = self.parts.iter().find(|(_, first)| *first == number) {
                summary.push_str(&format!("\n# {part}\n\n"));
            }
            let mark = if number == 0 { "" } else { "- " };
            summary.push_str(&format!("{mark}[{}]({})\n", chapter.title, chapter.path));
        }
        summary
    }
}

/// The paths of the chapters, and the parts with the numbers of their first chapters.
fn contents(index: &str) -> (Vec<String>, Vec<(String, usize)>) {
    let (mut paths, mut parts) = (vec![INDEX.to_owned()], Vec::new());
    let mut part = None;
    for line in index.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            part = Some(heading).filter(|heading| *heading != LEFT_OUT);
        }
        let Some(part) = part.filter(|_| line.starts_with('|')) else { continue };
        for (target, _) in targets(line) {
            let path = resolved(INDEX, target.split('#').next().unwrap_or_default());
            if path.ends_with(".md") && !paths.contains(&path) {
                if parts.last().is_none_or(|(last, _)| last != part) {
                    parts.push((part.to_owned(), paths.len()));
                }
                paths.push(path);
            }
        }
    }
    (paths, parts)
}

/// The target of a link in the book; `None` if it leads to no page of it.
fn to_chapter(
    page: &str,
    target: &str,
    known: &BTreeSet<&str>,
    images: &mut BTreeMap<PathBuf, String>,
) -> Option<String> {
    if target.contains(':') || target.starts_with('#') {
        return Some(target.to_owned());
    }
    let (path, heading) = target.split_once('#').unwrap_or((target, ""));
    let path = resolved(page, path);
    let is_image = [".svg", ".png"].iter().any(|end| path.ends_with(end));
    if !is_image && !known.contains(path.as_str()) {
        return None;
    }
    let up = "../".repeat(in_the_book(page).matches('/').count());
    let to = in_the_book(&path);
    if is_image {
        images.insert(PathBuf::from(path), to.clone());
    }
    let heading = if heading.is_empty() { String::new() } else { format!("#{heading}") };
    Some(format!("{up}{to}{heading}"))
}

/// The path in the book of a page of the repository.
fn in_the_book(path: &str) -> String {
    let path = path.strip_prefix("docs/").unwrap_or(path);
    match path.strip_suffix("README.md") {
        Some(directory) => format!("{directory}index.md"),
        None => path.to_owned(),
    }
}

/// The path from the root of the repository of what a page links to.
fn resolved(page: &str, target: &str) -> String {
    let mut path = PathBuf::from(page);
    path.pop();
    for part in Path::new(target).components() {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            Component::Normal(name) => path.push(name),
            _ => {}
        }
    }
    path.to_string_lossy().into_owned()
}

/// The text with other targets of its links outside of code. A link without a target becomes its text.
fn with_links(text: &str, mut other: impl FnMut(&str) -> Option<String>) -> String {
    let (mut changed, mut in_block) = (String::new(), false);
    for line in text.split_inclusive('\n') {
        in_block ^= line.trim_start().starts_with("```");
        if in_block {
            changed.push_str(line);
            continue;
        }
        let mut done = 0;
        for (target, at) in targets(line) {
            let begin = line[..at].rfind('[').filter(|begin| *begin >= done).unwrap_or(at);
            let end = at + "](".len() + target.len() + ")".len();
            match other(target) {
                Some(new) => {
                    changed.push_str(&line[done..at]);
                    changed.push_str(&format!("]({new})"));
                }
                None => {
                    changed.push_str(&line[done..begin]);
                    changed.push_str(&line[(begin + 1).min(at)..at]);
                }
            }
            done = end;
        }
        changed.push_str(&line[done..]);
    }
    changed
}

/// The targets of the links of a line, with the places of their `](`. One within back-quotes is none.
fn targets(line: &str) -> Vec<(&str, usize)> {
    let is_code = |at: usize| line[..at].matches('`').count() % 2 == 1;
    let links = line.match_indices("](").filter(|(at, _)| !is_code(*at));
    links.filter_map(|(at, _)| Some((line[at + 2..].split_once(')')?.0, at))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use harness::root::repository;

    #[test]
    fn the_index_of_the_manual_is_the_list_of_chapters() {
        let book = Book::read(&repository()).expect("the manual can be read");
        let paths: Vec<&str> = book.chapters.iter().map(|chapter| chapter.path.as_str()).collect();
        assert_eq!(paths[0], "index.md");
        for path in
            ["guide/wordpress.md", "operating/options.md", "php/client/index.md", "GLOSSARY.md"]
        {
            assert!(paths.contains(&path), "{path} of {paths:?}");
        }
        assert!(!paths.iter().any(|path| path.contains("decisions")), "{paths:?}");
        let once: BTreeSet<&&str> = paths.iter().collect();
        assert_eq!(once.len(), paths.len());
        let summary = book.summary();
        assert!(summary.contains("\n# Operate\n\n- ["), "{summary}");
        assert!(!summary.contains(LEFT_OUT), "{summary}");
        assert!(book.images.keys().all(|image| image.exists()), "{:?}", book.images);
    }

    #[test]
    fn links_lead_to_chapters_or_become_text() {
        let known = BTreeSet::from(["docs/README.md", "docs/guide/a.md", "SECURITY.md"]);
        let mut images = BTreeMap::new();
        let text = "[a](a.md#b) [i](../README.md) [s](../../SECURITY.md) [d](../decisions/x.md), ![p](../p.svg)\n\
                    `[c](x.rs)` [w](https://example.org/) [`t`](../../x.rs)\n```\n[c](x.rs)\n```\n";
        let linked =
            with_links(text, |target| to_chapter("docs/guide/a.md", target, &known, &mut images));
        assert_eq!(
            linked,
            "[a](../guide/a.md#b) [i](../index.md) [s](../SECURITY.md) d, ![p](../p.svg)\n\
             `[c](x.rs)` [w](https://example.org/) `t`\n```\n[c](x.rs)\n```\n"
        );
        assert_eq!(images, BTreeMap::from([("docs/p.svg".into(), "p.svg".to_owned())]));
    }
}
