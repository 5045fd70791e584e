//! How the program is linked, and the version that it prints.
//!
//! Its relocations are packed: half a megabyte of the file that would be read at each start otherwise. A C library
//! of 2.36 (Debian 12) can read them so; with an older one, or when built for another machine, they stay as they
//! are. PAGEWELL_GLIBC is the oldest release that the program is built for, if it is not the one of this machine.
//!
//! A release names its commit: PAGEWELL_COMMIT, or that of the checkout. Other builds do not, because each commit
//! would build them again.

use std::env;
use std::path::Path;
use std::process::Command;

/// The first release of glibc that reads packed relocations (DT_RELR).
const FIRST: (u32, u32) = (2, 36);

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=PAGEWELL_GLIBC");
    println!("cargo:rerun-if-env-changed=PAGEWELL_COMMIT");
    let is_gnu_linux = env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux")
        && env::var("CARGO_CFG_TARGET_ENV").is_ok_and(|env| env == "gnu");
    let is_for_here = env::var("HOST").ok() == env::var("TARGET").ok();
    if is_gnu_linux && is_for_here && glibc().is_some_and(|version| version >= FIRST) {
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
    if is_gnu_linux && env::var("PAGEWELL_GLIBC").is_ok() {
        // The package of debug symbols needs it, and zig's linker adds none by itself.
        println!("cargo:rustc-link-arg-bins=-Wl,--build-id=sha1");
    }
    if env::var("PROFILE").is_ok_and(|profile| profile == "release")
        && let Some(commit) = commit()
    {
        let version = env::var("CARGO_PKG_VERSION").unwrap_or_default();
        println!("cargo:rustc-env=PAGEWELL_VERSION={version} ({commit})");
    }
}

/// The commit that is built; `None` outside of a checkout.
fn commit() -> Option<String> {
    if let Some(given) = env::var("PAGEWELL_COMMIT").ok().filter(|given| !given.is_empty()) {
        return Some(given.chars().take(12).collect());
    }
    // Both change with the commit: HEAD names the branch, and the log of HEAD has a line for each step.
    for file in ["HEAD", "logs/HEAD"] {
        let path = said("git", &["rev-parse", "--git-path", file])?;
        if Path::new(&path).exists() {
            println!("cargo:rerun-if-changed={path}");
        }
    }
    said("git", &["rev-parse", "--short=12", "HEAD"])
}

/// The oldest release of the C library that the program is for.
fn glibc() -> Option<(u32, u32)> {
    let found = match env::var("PAGEWELL_GLIBC") {
        Ok(given) => given,
        Err(_) => said("getconf", &["GNU_LIBC_VERSION"])?.strip_prefix("glibc ")?.to_owned(),
    };
    let (major, minor) = found.split_once('.')?;
    Some((major.parse().ok()?, minor.split('.').next()?.parse().ok()?))
}

/// The output of a program, if it succeeds.
fn said(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let text = output.status.success().then(|| String::from_utf8(output.stdout).ok())??;
    Some(text.trim().to_owned())
}
