//! `cargo xtask bench …`: figures, beside those of other servers in the same run.
//!
//! Each benchmark is a module. They share the floor (a bare epoll loop), the figures (medians, spread,
//! ratios), and the rule that what is measured is verified first: a fast wrong answer does not count.
//! Tables go to the terminal, everything else to `target/bench/NAME.json`.

pub mod figures;
pub mod floor;
pub mod flush;
pub mod hit;
pub mod instructions;
pub mod rig;

use crate::root;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// Writes a benchmark's figures; returns where.
///
/// # Errors
/// Those of the system.
pub fn write(name: &str, figures: &Value) -> Result<PathBuf, String> {
    let dir = root::target().join("bench");
    let path = dir.join(format!("{name}.json"));
    let text = format!("{figures:#}\n");
    fs::create_dir_all(&dir)
        .and_then(|()| fs::write(&path, text))
        .map_err(|error| format!("bench: {}: {error}", path.display()))?;
    Ok(path)
}

/// The machine and the versions that figures belong to.
pub fn machine() -> Value {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let cpu = read("/proc/cpuinfo");
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or_default();
    json!({
        "cpu": model.trim_start_matches(['\t', ' ', ':']),
        "cores": harness::cpu::cores().len(),
        "kernel": read("/proc/sys/kernel/osrelease").trim(),
        "commit": said("git", &["rev-parse", "--short", "HEAD"]),
        "nginx": said("nginx", &["-v"]),
    })
}

/// What a program says, on either output; empty if it cannot be run.
fn said(program: &str, args: &[&str]) -> String {
    let Ok(path) = harness::program(&[program]) else { return String::new() };
    let output = Command::new(path).args(args).current_dir(root::repository()).output();
    let text = output.map(|output| [output.stdout, output.stderr].concat()).unwrap_or_default();
    String::from_utf8_lossy(&text).trim().to_owned()
}
