//! Which licences the libraries have: each must be usable under one of those that the house takes
//! (`ALLOWED`). Cargo says what each library declares, from what it has on disk: nothing is fetched.
//!
//! Expressions are SPDX's (version 2.3, annex D), in which `AND` binds closer than `OR`; the slash is how
//! older crates write `OR`. A licence file in place of an expression is for a person to read: it counts
//! as not allowed until a row here says otherwise. Whether a library has known faults is not asked here:
//! that needs a list that changes daily.

use super::{Finding, SourceFile, finding};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Permissive ones, that ask for no more than their text to be kept.
const ALLOWED: [&str; 11] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Libraries without an allowed licence, as cargo at `root` says.
pub fn licences(root: &Path) -> Vec<Finding> {
    match declared(root) {
        Ok(all) => all.iter().filter_map(|(name, licence)| judge(name, licence)).collect(),
        Err(error) => vec![told(&error)],
    }
}

/// Each library with what it declares.
fn declared(root: &Path) -> Result<Vec<(String, String)>, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    // Those of other systems are not on disk.
    let platform = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let said = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--offline", "--locked"])
        .args(["--filter-platform", &platform])
        .current_dir(root)
        .output()
        .map_err(|error| format!("cargo metadata: {error}"))?;
    if !said.status.success() {
        return Err(format!("cargo metadata: {}", String::from_utf8_lossy(&said.stderr).trim()));
    }
    let all: Value = serde_json::from_slice(&said.stdout).map_err(|error| error.to_string())?;
    let text = |package: &Value, key: &str| package[key].as_str().unwrap_or_default().to_owned();
    let packages = all["packages"].as_array().ok_or("cargo metadata: no packages")?;
    // Those of the workspace have no source.
    let others = packages.iter().filter(|package| !package["source"].is_null());
    Ok(others.map(|package| (text(package, "name"), text(package, "license"))).collect())
}

fn judge(name: &str, licence: &str) -> Option<Finding> {
    (!is_allowed(licence)).then(|| {
        told(&format!(
            "{name} is under {licence:?}, which is none of {}: leave it, or add the licence to \
             xtask/src/tidy/licences.rs and say why in docs/decisions/0003-libraries.md",
            ALLOWED.join(", ")
        ))
    })
}

fn told(message: &str) -> Finding {
    let lock = SourceFile { path: "Cargo.lock".into(), text: String::new() };
    finding(&lock, 1, "licence", message)
}

/// Whether an expression leaves a way that is allowed.
fn is_allowed(expression: &str) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut words = words.as_slice();
    let allowed = any(&mut words);
    allowed == Some(true) && words.is_empty()
}

fn any(words: &mut &[&str]) -> Option<bool> {
    let mut allowed = all(words)?;
    while let ["OR", rest @ ..] = *words {
        *words = rest;
        allowed |= all(words)?;
    }
    Some(allowed)
}

fn all(words: &mut &[&str]) -> Option<bool> {
    let mut allowed = one(words)?;
    while let ["AND", rest @ ..] = *words {
        *words = rest;
        allowed &= one(words)?;
    }
    Some(allowed)
}

fn one(words: &mut &[&str]) -> Option<bool> {
    match *words {
        ["(", rest @ ..] => {
            *words = rest;
            let allowed = any(words)?;
            *words = words.strip_prefix(&[")"])?;
            Some(allowed)
        }
        [name, "WITH", exception, rest @ ..] => {
            *words = rest;
            Some(ALLOWED.contains(&format!("{name} WITH {exception}").as_str()))
        }
        [name, rest @ ..] if !["OR", "AND", ")"].contains(name) => {
            *words = rest;
            Some(ALLOWED.contains(name))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions() {
        for allowed in [
            "MIT",
            "MIT/Apache-2.0",
            "MIT OR LGPL-2.1-or-later",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "GPL-3.0-only OR Zlib AND ISC",
            "Apache-2.0 WITH LLVM-exception",
        ] {
            assert!(is_allowed(allowed), "{allowed}");
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
            assert!(!is_allowed(not), "{not}");
        }
        assert!(judge("one", "AGPL-3.0-only").is_some());
    }
}
