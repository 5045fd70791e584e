//! The machine that figures belong to, and the versions of what runs on it.
//!
//! For reports of benchmarks and of other long runs: figures without their machine say little. What is
//! not installed has an empty version.

use crate::{cpu, root};
use serde_json::{Value, json};
use std::fs;
use std::process::Command;

/// The machine and the versions that figures belong to.
pub fn machine() -> Value {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let cpu = read("/proc/cpuinfo");
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or_default();
    json!({
        "cpu": model.trim_start_matches(['\t', ' ', ':']),
        "cores": cpu::cores().len(),
        "kernel": read("/proc/sys/kernel/osrelease").trim(),
        "commit": said("git", &["rev-parse", "--short", "HEAD"]),
        "nginx": said("nginx", &["-v"]),
        "varnish": said("varnishd", &["-V"]),
        "haproxy": said("haproxy", &["-v"]),
        "traffic_server": said("traffic_server", &["-V"]),
        "h2o": said("h2o", &["--version"]),
        "apache": said("apache2", &["-v"]),
        "memcached": said("memcached", &["-V"]),
        "php": said("php", &["-v"]),
    })
}

/// The first line that a program says, on either output; empty if it cannot be run.
fn said(program: &str, args: &[&str]) -> String {
    let Ok(path) = crate::program(&[program]) else { return String::new() };
    let output = Command::new(path).args(args).current_dir(root::repository()).output();
    let text = output.map(|output| [output.stdout, output.stderr].concat()).unwrap_or_default();
    String::from_utf8_lossy(&text).lines().next().unwrap_or_default().trim().to_owned()
}
