//! A private Varnish, for comparisons.
//!
//! The caller writes its VCL. The rest of the configuration (working directory, port, memory storage, no CLI)
//! is private to its directory. Runs in the foreground with its manager, so that the CPU time of both processes
//! is that of one process tree. VCL is compiled with the C compiler that the package depends on, which takes a
//! second or two.

use crate::on_port::OnPort;
use crate::port::Start;
use crate::{PrivateDir, StartError, find};
use std::process::Command;

/// Starts a Varnish with this VCL and `memory_mb` MiB on a free port of 127.0.0.1.
///
/// # Errors
/// `NotInstalled`, or the reason why it did not become ready: a mistake in the VCL, or a missing module, is
/// reported as `Ended`.
pub fn start(dir: PrivateDir, vcl: &str, memory_mb: u32) -> Result<OnPort, StartError> {
    start_with(dir, vcl, memory_mb, "")
}

/// Starts a Varnish like [`start`] whose connections begin with the PROXY protocol.
///
/// # Errors
/// As for [`start`].
pub fn start_proxied(dir: PrivateDir, vcl: &str, memory_mb: u32) -> Result<OnPort, StartError> {
    start_with(dir, vcl, memory_mb, ",PROXY")
}

fn start_with(
    dir: PrivateDir,
    vcl: &str,
    memory_mb: u32,
    protocol: &str,
) -> Result<OnPort, StartError> {
    let program = find::program(&["varnishd"])?;
    let vcl = dir.file("default.vcl", vcl)?;
    // The pid file is written after the child process has been started.
    let started = Start::new("varnish", dir.path()).on_free_port(|address| {
        let mut command = Command::new(&program);
        command.args(["-F", "-T", "none", "-a", &format!("{address}{protocol}")]);
        command.args(["-s", &format!("malloc,{memory_mb}M"), "-f"]).arg(&vcl);
        command.arg("-n").arg(dir.path().join("varnish"));
        command.arg("-P").arg(dir.path().join("varnish.pid"));
        Ok(command)
    })?;
    Ok(OnPort::new(started, dir))
}
