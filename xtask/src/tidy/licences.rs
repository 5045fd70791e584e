//! The licences of the libraries: each must be usable under one of those in `deny.toml`, which cargo-deny
//! reads as well (`make lint`). Cargo says what each library declares, from what it has on disk: nothing
//! is fetched. So `make test` checks licences without cargo-deny, whose installation takes minutes.
//!
//! Expressions are SPDX's (version 2.3, annex D), in which `AND` binds closer than `OR`; the slash is how
//! older crates write `OR`. A licence file in place of an expression is for a person to read: it counts
//! as not allowed until a row here says otherwise. Whether a library has known faults is not asked here:
//! that needs a list that changes daily.

use super::{Finding, SourceFile, finding};
use serde_json::Value;
use std::path::Path;

/// Libraries without an allowed licence, as cargo at `root` says.
pub fn licences(root: &Path) -> Vec<Finding> {
    match (allowed(root), declared(root)) {
        (Ok(allowed), Ok(all)) => {
            all.iter().filter_map(|(name, licence)| judge(name, licence, &allowed)).collect()
        }
        (Err(error), _) | (_, Err(error)) => vec![in_lock_file(&error)],
    }
}

/// The licences that are allowed (`licenses.allow` in `deny.toml`).
fn allowed(root: &Path) -> Result<Vec<String>, String> {
    let text = std::fs::read_to_string(root.join("deny.toml"));
    let text = text.map_err(|error| format!("deny.toml: {error}"))?;
    let table: toml::Table = text.parse().map_err(|error| format!("deny.toml: {error}"))?;
    let allow = table.get("licenses").and_then(|licenses| licenses.get("allow"));
    let names = allow.and_then(toml::Value::as_array).ok_or("deny.toml: no licenses.allow")?;
    Ok(names.iter().filter_map(toml::Value::as_str).map(str::to_owned).collect())
}

/// The workspace and its libraries, as `cargo metadata` prints them. The crates of
/// other systems are left out, because they are not on disk.
///
/// # Errors
/// cargo cannot be run, or has failed.
pub fn metadata(root: &Path) -> Result<Value, String> {
    let platform = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let output = harness::root::cargo()
        .args(["metadata", "--format-version", "1", "--offline", "--locked"])
        .args(["--filter-platform", &platform])
        .current_dir(root)
        .output()
        .map_err(|error| format!("cargo metadata: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("cargo metadata: {error}"))
}

/// Each library with what it declares.
fn declared(root: &Path) -> Result<Vec<(String, String)>, String> {
    let all = metadata(root)?;
    let text = |package: &Value, key: &str| package[key].as_str().unwrap_or_default().to_owned();
    let packages = all["packages"].as_array().ok_or("cargo metadata: no packages")?;
    // Those of the workspace have no source.
    let others = packages.iter().filter(|package| !package["source"].is_null());
    Ok(others.map(|package| (text(package, "name"), text(package, "license"))).collect())
}

fn judge(name: &str, licence: &str, allowed: &[String]) -> Option<Finding> {
    (!is_allowed(licence, allowed)).then(|| {
        in_lock_file(&format!(
            "{name} is under {licence:?}, which is none of {}: leave it, or add the licence to \
             deny.toml and say why in docs/decisions/libraries.md",
            allowed.join(", ")
        ))
    })
}

fn in_lock_file(message: &str) -> Finding {
    let lock = SourceFile { path: "Cargo.lock".into(), text: String::new() };
    finding(&lock, 1, "licence", message)
}

/// Whether an expression leaves a way that is allowed.
fn is_allowed(expression: &str, list: &[String]) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut words = words.as_slice();
    let allowed = any(&mut words, list);
    allowed == Some(true) && words.is_empty()
}

fn any(words: &mut &[&str], list: &[String]) -> Option<bool> {
    let mut allowed = all(words, list)?;
    while let ["OR", rest @ ..] = *words {
        *words = rest;
        allowed |= all(words, list)?;
    }
    Some(allowed)
}

fn all(words: &mut &[&str], list: &[String]) -> Option<bool> {
    let mut allowed = one(words, list)?;
    while let ["AND", rest @ ..] = *words {
        *words = rest;
        allowed &= one(words, list)?;
    }
    Some(allowed)
}

fn one(words: &mut &[&str], list: &[String]) -> Option<bool> {
    let is_listed = |name: &str| list.iter().any(|allowed| allowed == name);
    match *words {
        ["(", rest @ ..] => {
            *words = rest;
            let allowed = any(words, list)?;
            *words = words.strip_prefix(&[")"])?;
            Some(allowed)
        }
        [name, "WITH", exception, rest @ ..] => {
            *words = rest;
            Some(is_listed(&format!("{name} WITH {exception}")))
        }
        [name, rest @ ..] if !["OR", "AND", ")"].contains(name) => {
            *words = rest;
            Some(is_listed(name))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let list = super::allowed(&root).expect("a list");
        assert!(list.len() > 5, "{list:?}");
        for allowed in [
            "MIT",
            "MIT/Apache-2.0",
            "MIT OR LGPL-2.1-or-later",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "GPL-3.0-only OR Zlib AND ISC",
            "Apache-2.0 WITH LLVM-exception",
        ] {
            assert!(is_allowed(allowed, &list), "{allowed}");
        }
        for not in [
            "",
            "GPL-3.0-only",
            "MIT AND GPL-3.0-only",
            "GPL-2.0-only WITH Classpath-exception-2.0",
            "(MIT OR Apache-2.0",
            "MIT OR",
            "MIT ISC",
        ] {
            assert!(!is_allowed(not, &list), "{not}");
        }
        assert!(judge("one", "AGPL-3.0-only", &list).is_some());
    }
}
