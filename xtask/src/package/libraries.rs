//! The licences of the libraries that are linked into the program: a part of the package's `copyright`. Their
//! licences require that copyright notices and texts stay with the program, and Debian's policy (section
//! 12.5) that they are in this one file.
//!
//! The texts are those that each library brings, from its directory on disk: nothing is fetched. Equal texts
//! appear once. Licences that Debian has in `/usr/share/common-licenses` are named instead of repeated.

use crate::tidy::licences::metadata;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// A file with one of these names, in any case and with any ending, is a licence or a notice.
const NAMES: [&str; 6] = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE"];
/// How many directories below that of the library its licences may be: C sources have their own.
const DEPTH: u32 = 3;
/// Beginnings of licences that Debian has in `/usr/share/common-licenses`, without white space.
const COMMON: [&str; 2] = ["ApacheLicenseVersion2.0", "GNUGENERALPUBLICLICENSEVersion2"];

const HEAD: &str = "\
\n\nLibraries\n=========\n\n\
/usr/bin/pagewell contains parts of these libraries, and of Rust's standard library (MIT or Apache-2.0,\n\
Copyright (c) The Rust Project Contributors, https://github.com/rust-lang/rust/blob/main/COPYRIGHT). Each has\n\
its version and its licence as an SPDX expression. Where an expression has a choice, the first licence of it\n\
other than Apache-2.0 applies. The text of Apache-2.0 is in /usr/share/common-licenses/Apache-2.0.\n\n";

/// The section of the libraries: their names, versions and licences, then each text.
///
/// # Errors
/// cargo does not know the libraries, or a licence cannot be read.
pub fn section(repository: &Path) -> Result<String, String> {
    let all = metadata(repository)?;
    let (mut section, mut texts) = (HEAD.to_owned(), BTreeMap::<String, BTreeSet<String>>::new());
    for library in linked(&all)? {
        let text = |key: &str| library[key].as_str().unwrap_or_default();
        let name = format!("{} {}", text("name"), text("version"));
        let authors = library["authors"].as_array().into_iter().flatten();
        let authors: Vec<&str> = authors.filter_map(Value::as_str).collect();
        let by =
            if authors.is_empty() { String::new() } else { format!("; {}", authors.join(", ")) };
        let _ = writeln!(section, "{name}: {}{by}", text("license"));
        let place = Path::new(text("manifest_path")).parent().unwrap_or(Path::new("/"));
        collect(place, DEPTH, &mut |licence| {
            texts.entry(licence).or_default().insert(name.clone());
        })?;
    }
    let mut by_libraries: Vec<_> = texts.into_iter().map(|(text, of)| (of, text)).collect();
    by_libraries.sort();
    for (of, text) in by_libraries {
        let of = of.into_iter().collect::<Vec<_>>().join(", ");
        let _ = write!(section, "\n\n---- {of}\n\n{}\n", text.trim_matches('\n'));
    }
    Ok(section)
}

/// The names and versions of the libraries that the program is linked with.
///
/// # Errors
/// cargo does not know the libraries.
pub fn names(repository: &Path) -> Result<Vec<(String, String)>, String> {
    let all = metadata(repository)?;
    let text = |one: &Value, key: &str| one[key].as_str().unwrap_or_default().to_owned();
    Ok(linked(&all)?.into_iter().map(|one| (text(one, "name"), text(one, "version"))).collect())
}

/// The libraries that the program is linked with, by name; those that only build it are left out.
fn linked(all: &Value) -> Result<Vec<&Value>, String> {
    let unread = || "package: cargo metadata has no list of dependencies".to_owned();
    let list = |value: &'_ Value| value.as_array().cloned().ok_or_else(unread);
    let packages = all["packages"].as_array().ok_or_else(unread)?;
    let known: BTreeMap<&str, &Value> =
        packages.iter().filter_map(|one| Some((one["id"].as_str()?, one))).collect();
    let mut needs = BTreeMap::new();
    for node in list(&all["resolve"]["nodes"])? {
        let is_linked = |one: &Value| {
            one["dep_kinds"]
                .as_array()
                .is_some_and(|kinds| kinds.iter().any(|kind| kind["kind"].is_null()))
        };
        let deps = list(&node["deps"])?.into_iter().filter(is_linked);
        let ids: Vec<String> =
            deps.filter_map(|one| Some(one["pkg"].as_str()?.to_owned())).collect();
        needs.insert(node["id"].as_str().ok_or_else(unread)?.to_owned(), ids);
    }
    let is_program = |one: &&Value| one["name"] == "pagewell" && one["source"].is_null();
    let program = packages.iter().find(is_program).and_then(|one| one["id"].as_str());
    let (mut found, mut open) = (BTreeSet::new(), vec![program.ok_or_else(unread)?.to_owned()]);
    while let Some(id) = open.pop() {
        if found.insert(id.clone()) {
            open.extend(needs.get(&id).into_iter().flatten().cloned());
        }
    }
    let mut linked: Vec<&Value> = found
        .iter()
        .filter_map(|id| known.get(id.as_str()).copied())
        .filter(|one| !one["source"].is_null() && !is_macro(one))
        .collect();
    linked.sort_by_key(|one| (one["name"].to_string(), one["version"].to_string()));
    Ok(linked)
}

/// A library of macros runs in the compiler.
fn is_macro(package: &Value) -> bool {
    let targets = package["targets"].as_array().into_iter().flatten();
    targets
        .filter_map(|target| target["kind"].as_array())
        .any(|kinds| kinds.iter().any(|kind| kind == "proc-macro"))
}

/// Passes each licence in a directory of a library to `keep`.
fn collect(place: &Path, depth: u32, keep: &mut impl FnMut(String)) -> Result<(), String> {
    let fault = |error| super::error_text(place, error);
    for entry in fs::read_dir(place).map_err(fault)? {
        let entry = entry.map_err(fault)?;
        let kind = entry.file_type().map_err(fault)?;
        let name = entry.file_name().to_string_lossy().to_uppercase();
        if kind.is_dir() && depth > 0 {
            collect(&entry.path(), depth - 1, keep)?;
        } else if kind.is_file() && NAMES.iter().any(|start| name.starts_with(start)) {
            let text = fs::read(entry.path()).map_err(fault)?;
            let text = String::from_utf8_lossy(&text).replace('\r', "");
            let start: String =
                text.split_whitespace().collect::<String>().chars().take(60).collect();
            if !COMMON.iter().any(|common| start.starts_with(common)) && !name.ends_with(".RS") {
                keep(without_apache(text));
            }
        }
    }
    Ok(())
}

/// The conditions of Apache-2.0 within a longer text are replaced by the place where Debian has them.
fn without_apache(text: String) -> String {
    let (start, end) =
        ("TERMS AND CONDITIONS FOR USE, REPRODUCTION", "END OF TERMS AND CONDITIONS");
    let Some((before, rest)) = text.split_once(start) else { return text };
    let Some((_, after)) = rest.split_once(end) else { return text };
    format!("{before}[see /usr/share/common-licenses/Apache-2.0]{after}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use harness::root;

    #[test]
    fn a_linked_library_is_named_with_its_licence_and_a_macro_is_not() {
        let section = section(&root::repository()).expect("cargo knows them");
        let has = |start: &str| section.lines().any(|line| line.starts_with(start));
        assert!(has("hyper 1.") && has("zstd-sys ") && has("ring 0."), "{section}");
        assert!(!has("serde_derive ") && !has("proptest "), "a macro, or a library of the tests");
        assert!(section.contains("Sean McArthur"), "a notice");
        assert!(!section.contains("TERMS AND CONDITIONS FOR USE, REPRODUCTION"), "Debian has it");
    }
}
