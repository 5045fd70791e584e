//! Cycles of the modules of a crate: modules that depend on each other in a circle can only be understood, tested
//! and moved together.
//!
//! Counted are the top-level modules of each crate. A module depends on another if a path in it leads there:
//! `crate::`, `self::`, `super::`, a child, or a name that a module exports again. Tests do not count. The largest
//! circle of a crate may have [`CYCLE_MODULES`] modules; `[module_cycles]` of `tidy.toml` has the exceptions.

use super::Finding;
use super::files::SourceFile;
use super::lexer::{Language, code_only, is_word};
use super::manifests::Member;
use super::ratchet::{NumberKind, RatchetNumber};
use std::collections::{BTreeMap, BTreeSet};

/// The most modules of a crate that may depend on each other in a circle.
const CYCLE_MODULES: usize = 3;

/// The place of a module in its crate; empty for the root.
type ModulePath = Vec<String>;

/// The largest circle of each crate.
pub fn cycles(files: &[SourceFile], members: &[Member]) -> Vec<RatchetNumber> {
    members.iter().filter_map(|member| of_crate(files, member)).collect()
}

fn of_crate(files: &[SourceFile], member: &Member) -> Option<RatchetNumber> {
    let sources = format!("{}/src/", member.directory);
    let own = files.iter().filter(|file| file.extension() == "rs" && !file.is_test());
    let modules: BTreeMap<ModulePath, Vec<String>> = own
        .filter_map(|file| Some((module_path(file.path.strip_prefix(&sources)?), tokens_of(file))))
        .collect();
    let dependencies = dependencies(&modules);
    let largest = largest_circle(&dependencies);
    if largest.is_empty() {
        return None;
    }
    let (name, value) = (member.name.clone(), largest.len());
    let message = format!("{value} modules depend on each other: {}", largest.join(", "));
    let path = format!("{}/Cargo.toml", member.directory);
    let places = vec![Finding { path, line: 1, rule: "cycle", message }];
    Some(RatchetNumber { name, kind: NumberKind::Circle, limit: CYCLE_MODULES, value, places })
}

/// `a/b.rs` and `a/b/mod.rs` are `a::b`, `lib.rs` and `main.rs` the root.
fn module_path(file: &str) -> ModulePath {
    let path = file.strip_suffix(".rs").unwrap_or(file);
    let path = path.strip_suffix("/mod").unwrap_or(path);
    if matches!(path, "lib" | "main") {
        return Vec::new();
    }
    path.split('/').map(str::to_owned).collect()
}

/// The words, the `::` and the other signs of a file without its tests.
fn tokens_of(file: &SourceFile) -> Vec<String> {
    without_tests(tokens(&code_only(&file.text, Language::Rust)))
}

fn tokens(code: &str) -> Vec<String> {
    let (bytes, mut found, mut at) = (code.as_bytes(), Vec::new(), 0);
    while let Some(byte) = bytes.get(at) {
        let length = match byte {
            byte if is_word(*byte) => bytes[at..].iter().take_while(|byte| is_word(**byte)).count(),
            b':' if bytes.get(at + 1) == Some(&b':') => 2,
            byte if byte.is_ascii_whitespace() || !byte.is_ascii() => {
                at += 1;
                continue;
            }
            _ => 1,
        };
        found.push(String::from_utf8_lossy(&bytes[at..at + length]).into_owned());
        at += length;
    }
    found
}

/// Removes modules behind `#[cfg(test)]` and `#[cfg(all(test, …))]`.
fn without_tests(tokens: Vec<String>) -> Vec<String> {
    let (mut kept, mut at) = (Vec::new(), 0);
    while at < tokens.len() {
        let is_test =
            |words: &[&str]| tokens[at..].iter().zip(words).all(|(own, word)| own == word);
        let begins = is_test(&["#", "[", "cfg", "(", "test"])
            || is_test(&["#", "[", "cfg", "(", "all", "(", "test"]);
        match begins.then(|| end_of_module(&tokens, at)).flatten() {
            Some(end) => at = end,
            None => {
                kept.push(tokens[at].clone());
                at += 1;
            }
        }
    }
    kept
}

/// The end of the module whose attributes begin at `at`; `None` if another item follows them.
fn end_of_module(tokens: &[String], mut at: usize) -> Option<usize> {
    while tokens.get(at)? == "#" {
        at = end_of_group(tokens, at + 1)?;
    }
    if tokens.get(at)? == "pub" {
        at += 1;
        if tokens.get(at)? == "(" {
            at = end_of_group(tokens, at)?;
        }
    }
    if tokens.get(at)? != "mod" {
        return None;
    }
    if tokens.get(at + 2)? == ";" { Some(at + 3) } else { end_of_group(tokens, at + 2) }
}

/// The place behind the bracket that closes the one at `at`.
fn end_of_group(tokens: &[String], at: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (place, token) in tokens.iter().enumerate().skip(at) {
        match token.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(place + 1);
                }
            }
            _ => {}
        }
    }
    None
}

/// A path as written, and whether it is exported again.
struct WrittenPath {
    words: Vec<String>,
    is_exported: bool,
}

/// All paths of a module: those behind `use`, and those that begin with `crate`, `self` or `super`.
fn written_paths(tokens: &[String]) -> Vec<WrittenPath> {
    let (mut found, mut at) = (Vec::new(), 0);
    while at < tokens.len() {
        let follows = tokens.get(at + 1).map(String::as_str);
        match tokens[at].as_str() {
            "use" if follows != Some("<") => {
                let rest = &tokens[at + 1..];
                let length = rest.iter().position(|token| token == ";").unwrap_or(rest.len());
                let is_exported = at > 0 && matches!(tokens[at - 1].as_str(), "pub" | ")");
                let mut all = Vec::new();
                expand(&[], &rest[..length], &mut all);
                found.extend(all.into_iter().map(|words| WrittenPath { words, is_exported }));
                at += 1 + length;
            }
            "crate" | "self" | "super" if follows == Some("::") => {
                let mut words = vec![tokens[at].clone()];
                while tokens.get(at + 1).is_some_and(|token| token == "::")
                    && tokens.get(at + 2).is_some_and(|word| is_word(word.as_bytes()[0]))
                {
                    words.push(tokens[at + 2].clone());
                    at += 2;
                }
                found.push(WrittenPath { words, is_exported: false });
                at += 1;
            }
            _ => at += 1,
        }
    }
    found
}

/// `a::{b, c::{d, e}}` as a list of paths, without the other names behind `as`.
fn expand(prefix: &[String], tree: &[String], found: &mut Vec<Vec<String>>) {
    let mut path = prefix.to_vec();
    for (at, token) in tree.iter().enumerate() {
        match token.as_str() {
            "::" => {}
            "as" => break,
            "{" => {
                let end = end_of_group(tree, at).unwrap_or(tree.len());
                for part in split_at_commas(&tree[at + 1..end.saturating_sub(1).max(at + 1)]) {
                    expand(&path, part, found);
                }
                return;
            }
            word => path.push(word.to_owned()),
        }
    }
    if path.len() > prefix.len() {
        found.push(path);
    }
}

fn split_at_commas(tokens: &[String]) -> Vec<&[String]> {
    let (mut parts, mut begin, mut depth) = (Vec::new(), 0, 0_usize);
    for (at, token) in tokens.iter().enumerate() {
        match token.as_str() {
            "{" => depth += 1,
            "}" => depth = depth.saturating_sub(1),
            "," if depth == 0 => {
                parts.push(&tokens[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&tokens[begin..]);
    parts
}

/// The modules of a crate, and the names that each of them exports again: where they are, and their names there.
struct Crate<'a> {
    modules: &'a BTreeMap<ModulePath, Vec<String>>,
    exported: BTreeMap<(ModulePath, String), (ModulePath, Option<String>)>,
}

impl Crate<'_> {
    /// The module that a path in `from` leads to, and the rest of the path; `None` for another crate.
    fn resolve(&self, from: &[String], words: &[String]) -> Option<(ModulePath, Vec<String>)> {
        let (mut at, mut rest) = (from.to_vec(), words);
        match words.first()?.as_str() {
            "crate" => (at, rest) = (Vec::new(), &words[1..]),
            "self" => rest = &words[1..],
            "super" => {
                while rest.first().is_some_and(|word| word == "super") {
                    at.pop();
                    rest = &rest[1..];
                }
            }
            child => {
                let child = [from, &[child.to_owned()]].concat();
                self.modules.get(&child)?;
            }
        }
        Some(self.descend(at, rest))
    }

    fn descend(&self, mut at: ModulePath, mut rest: &[String]) -> (ModulePath, Vec<String>) {
        while let Some(word) = rest.first() {
            let child = [at.as_slice(), std::slice::from_ref(word)].concat();
            if !self.modules.contains_key(&child) {
                break;
            }
            (at, rest) = (child, &rest[1..]);
        }
        (at, rest.to_vec())
    }

    /// The module in which the thing is declared that a path leads to.
    fn declared(&self, from: &[String], words: &[String]) -> Option<ModulePath> {
        let (mut at, mut rest) = self.resolve(from, words)?;
        let mut seen = BTreeSet::new();
        while let Some(first) = rest.first() {
            let here = (at.clone(), first.clone());
            let Some((target, name)) = self.exported.get(&here) else { break };
            if *target == at || !seen.insert(here) {
                break;
            }
            let further: Vec<String> = name.iter().chain(&rest[1..]).cloned().collect();
            (at, rest) = self.descend(target.clone(), &further);
        }
        Some(at)
    }
}

/// Which top-level module depends on which.
fn dependencies(modules: &BTreeMap<ModulePath, Vec<String>>) -> BTreeMap<String, BTreeSet<String>> {
    let paths: Vec<(&ModulePath, Vec<WrittenPath>)> =
        modules.iter().map(|(module, tokens)| (module, written_paths(tokens))).collect();
    let mut whole = Crate { modules, exported: BTreeMap::new() };
    for (module, path) in paths.iter().flat_map(|(m, all)| all.iter().map(move |one| (m, one))) {
        let Some(last) = path.words.last().filter(|_| path.is_exported) else { continue };
        let Some((at, rest)) = whole.resolve(module, &path.words) else { continue };
        if let Some(name) = rest.first() {
            whole.exported.insert(((*module).clone(), name.clone()), (at, Some(name.clone())));
        } else if last != "*" {
            whole.exported.insert(((*module).clone(), last.clone()), (at, None));
        }
    }
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (module, path) in paths.iter().flat_map(|(m, all)| all.iter().map(move |one| (m, one))) {
        let Some(declared) = whole.declared(module, &path.words) else { continue };
        if let (Some(from), Some(to)) = (module.first(), declared.first())
            && from != to
        {
            found.entry(from.clone()).or_default().insert(to.clone());
        }
    }
    found
}

/// The largest set of modules that all reach each other.
fn largest_circle(dependencies: &BTreeMap<String, BTreeSet<String>>) -> Vec<&str> {
    let reached: BTreeMap<&str, BTreeSet<&str>> =
        dependencies.keys().map(|from| (from.as_str(), reach(dependencies, from))).collect();
    let reaches = |from: &str, to: &str| reached.get(from).is_some_and(|all| all.contains(to));
    let circle = |one: &str| -> Vec<&str> {
        let others = reached.keys().copied();
        others.filter(|other| reaches(one, other) && reaches(other, one)).collect()
    };
    reached.keys().map(|one| circle(one)).max_by_key(Vec::len).unwrap_or_default()
}

fn reach<'a>(
    dependencies: &'a BTreeMap<String, BTreeSet<String>>,
    from: &str,
) -> BTreeSet<&'a str> {
    let (mut found, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(module) = open.pop() {
        for next in dependencies.get(module).into_iter().flatten() {
            if found.insert(next.as_str()) {
                open.push(next);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circle(sources: &[(&str, &str)]) -> String {
        let file = |(path, text): &(&str, &str)| SourceFile {
            path: format!("crates/x/src/{path}"),
            text: (*text).to_owned(),
        };
        let files: Vec<SourceFile> = sources.iter().map(file).collect();
        let (name, directory) = ("x".to_owned(), "crates/x".to_owned());
        let member = Member { name, directory, dependencies: Vec::new() };
        let found = cycles(&files, std::slice::from_ref(&member));
        found.first().map_or(String::new(), |number| number.places[0].message.clone())
    }

    #[test]
    fn paths_of_every_kind_are_followed() {
        for (a, b) in [
            ("use crate::b::X;", "use crate::a::{Y, Z};"),
            ("use super::b;", "fn f() { crate::a::g() }"),
            ("use crate::{b::{self, X}, c};", "use super::a::Y as Other;"),
            // By a name that the root exports again.
            ("use crate::X;", "use crate::a::Y;"),
            ("pub(crate) use super::b::X;", "type T = super::a::Y;"),
        ] {
            let found =
                circle(&[("lib.rs", "mod a; mod b; pub use b::X;"), ("a.rs", a), ("b.rs", b)]);
            assert_eq!(found, "2 modules depend on each other: a, b", "{a} {b}");
        }
    }

    #[test]
    fn tests_remarks_and_other_crates_are_no_dependencies() {
        for b in [
            "#[cfg(test)] mod tests { use crate::a::Y; }",
            "#[cfg(all(test, feature = \"x\"))] #[path = \"y.rs\"] mod tests { use crate::a::Y; }",
            "// use crate::a::Y;",
            "fn f() -> &'static str { \"crate::a::Y\" }",
            "use a_crate::a::Y; use std::fmt;",
            "mod c; use c::Y;",
        ] {
            let (lib, a) = (("lib.rs", "mod a; mod b;"), ("a.rs", "use crate::b::X;"));
            assert_eq!(circle(&[lib, a, ("b.rs", b), ("b/c.rs", "")]), "", "{b}");
        }
    }

    #[test]
    fn children_count_as_their_module_and_the_root_does_not() {
        let found = circle(&[
            ("lib.rs", "mod a; mod b; mod c; use a::Y;"),
            ("a.rs", "mod inner; use crate::Root;"),
            ("a/inner.rs", "use crate::b::X;"),
            ("b/mod.rs", "use super::c::Z;"),
            ("c.rs", "use crate::a::inner::Y;"),
        ]);
        assert_eq!(found, "3 modules depend on each other: a, b, c");
    }
}
