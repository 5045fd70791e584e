//! How the program is linked: its relocations packed, half a megabyte of the file that would be read at
//! each start otherwise. A C library of 2.36 (Debian 12) can read them so; with an older one, or when built
//! for another machine, they stay as they are.

use std::env;
use std::process::Command;

/// The first release of glibc that reads packed relocations (DT_RELR).
const FIRST: (u32, u32) = (2, 36);

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let is_gnu_linux = env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux")
        && env::var("CARGO_CFG_TARGET_ENV").is_ok_and(|env| env == "gnu");
    let is_for_here = env::var("HOST").ok() == env::var("TARGET").ok();
    if is_gnu_linux && is_for_here && glibc().is_some_and(|version| version >= FIRST) {
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// The release of the C library of this machine.
fn glibc() -> Option<(u32, u32)> {
    let said = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let said = String::from_utf8(said.stdout).ok()?;
    let (major, minor) = said.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.split('.').next()?.parse().ok()?))
}
