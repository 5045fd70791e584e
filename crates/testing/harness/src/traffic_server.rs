//! A private Apache Traffic Server, for comparisons: a memory cache in front of one origin.
//!
//! It has one event thread. All its files (runroot, records, rules, a small disk store that it needs to start)
//! are in its directory. Runs as `traffic_server` alone, without its manager.

use crate::on_port::OnPort;
use crate::port::Start;
use crate::users;
use crate::{PrivateDir, StartError, find};
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::process::Command;

const ALLOW: &str =
    "ip_allow:\n  - apply: in\n    ip_addrs: 127.0.0.1\n    action: allow\n    methods: ALL\n";

/// Starts a Traffic Server on a free port of 127.0.0.1, in front of an HTTP origin, with `memory_mb` MiB for
/// pages.
///
/// # Errors
/// `NotInstalled`, or the reason why it did not become ready.
pub fn start(dir: PrivateDir, origin: SocketAddr, memory_mb: u32) -> Result<OnPort, StartError> {
    let program = find::program(&["traffic_server"])?;
    let account = users::for_server(&["trafficserver", "nobody"]);
    for part in ["etc", "run", "log", "cache"] {
        dir.part(part, account.as_ref())?;
    }
    let place = dir.path().display();
    let mut roots = String::from(
        "prefix: /usr\nexec_prefix: /usr\nbindir: /usr/bin\nsbindir: /usr/sbin\n\
         datadir: /usr/share\nlibexecdir: /usr/lib/trafficserver/modules\n",
    );
    for (root, part) in [
        ("sysconfdir", "etc"),
        ("localstatedir", "run"),
        ("runtimedir", "run"),
        ("logdir", "log"),
        ("cachedir", "cache"),
    ] {
        let _ = writeln!(roots, "{root}: {place}/{part}");
    }
    let runroot = dir.file("runroot.yaml", &roots)?;
    dir.file("etc/ip_allow.yaml", ALLOW)?;
    dir.file("etc/remap.config", &format!("map / http://{origin}/\n"))?;
    dir.file("etc/storage.config", &format!("{place}/cache 256M\n"))?;
    let start = Start { pid_file: None, ..Start::new("trafficserver", dir.path()) };
    let user = account.as_ref().map_or("#-1", |account| account.name.as_str());
    let started = start.on_free_port(|address| {
        dir.file("etc/records.config", &records(address, user, memory_mb))?;
        let mut command = Command::new(&program);
        command.env("TS_RUNROOT", &runroot);
        Ok(command)
    })?;
    Ok(OnPort::new(started, dir))
}

fn records(address: SocketAddr, user: &str, memory_mb: u32) -> String {
    let port = address.port();
    let memory = u64::from(memory_mb) << 20;
    let mut text = String::new();
    for (name, value) in [
        ("http.server_ports", format!("STRING {port}:ip-in=127.0.0.1")),
        ("exec_thread.autoconfig", "INT 0".into()),
        ("exec_thread.limit", "INT 1".into()),
        ("exec_thread.affinity", "INT 0".into()),
        ("accept_threads", "INT 0".into()),
        ("task_threads", "INT 1".into()),
        ("cache.ram_cache.size", format!("INT {memory}")),
        ("http.cache.required_headers", "INT 0".into()),
        ("http.keep_alive_no_activity_timeout_in", "INT 300".into()),
        ("log.logging_enabled", "INT 0".into()),
        ("url_remap.remap_required", "INT 1".into()),
        ("admin.user_id", format!("STRING {user}")),
    ] {
        let _ = writeln!(text, "CONFIG proxy.config.{name} {value}");
    }
    text
}
