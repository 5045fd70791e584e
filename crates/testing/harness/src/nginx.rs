//! A private nginx, for comparisons and as an HTTP origin.
//!
//! The caller writes the directives for the `http` block and for one `server` block. The rest of the
//! configuration (process id, logs, temporary files, user, port) is private to its directory. Runs in the
//! foreground with a master, so that the CPU time of its workers is that of one process tree.

use crate::on_port::OnPort;
use crate::port::Start;
use crate::users;
use crate::{PrivateDir, StartError, find};
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// The configuration of an nginx server.
#[derive(Debug, Clone)]
pub struct NginxConf {
    /// Directives inside `http { … }`, before the server: `fastcgi_cache_path …;`.
    pub http: String,
    /// Directives inside `server { … }`; `listen` is added, with TLS if they name a certificate.
    pub server: String,
    /// The number of workers.
    pub workers: usize,
}

/// Starts an nginx on a free port of 127.0.0.1.
///
/// # Errors
/// `NotInstalled`, or the reason why it did not become ready: a mistake in `conf` is reported as `Ended`.
pub fn start(dir: PrivateDir, conf: &NginxConf) -> Result<OnPort, StartError> {
    start_wide(dir, conf, CONNECTIONS)
}

/// Starts an nginx like [`start`] whose connections begin with the PROXY protocol, for thousands of clients.
///
/// # Errors
/// As for [`start`].
pub fn start_proxied(dir: PrivateDir, conf: &NginxConf) -> Result<OnPort, StartError> {
    let proxied = format!("listen {LISTEN} proxy_protocol;");
    let block = http_block(&dir, conf).replace(&format!("listen {LISTEN};"), &proxied);
    let serves = format!("events {{ worker_connections {PROXIED_CONNECTIONS}; }}\n{block}");
    start_with(dir, conf.workers, &serves)
}

/// Starts an nginx like [`start`], with this number of connections per worker.
///
/// # Errors
/// As for [`start`].
pub fn start_wide(
    dir: PrivateDir,
    conf: &NginxConf,
    connections: usize,
) -> Result<OnPort, StartError> {
    let serves = format!("events {{ worker_connections {connections}; }}\n");
    let serves = serves + &http_block(&dir, conf);
    start_with(dir, conf.workers, &serves)
}

/// Starts an nginx that forwards connections: `directives` go inside `stream { server { … } }`.
///
/// # Errors
/// As for [`start`]; `Ended` if nginx has no stream module.
pub fn start_stream(dir: PrivateDir, directives: &str) -> Result<OnPort, StartError> {
    let events = format!("events {{ worker_connections {CONNECTIONS}; }}\n");
    let serves = format!("{events}stream {{\nserver {{\nlisten {LISTEN};\n{directives}\n}}\n}}\n");
    start_with(dir, 1, &serves)
}

fn start_with(dir: PrivateDir, workers: usize, serves: &str) -> Result<OnPort, StartError> {
    let account = users::for_server(&["www-data", "nobody", "nginx", "http"]);
    dir.part("temp", account.as_ref())?;
    let program = find::program(&["nginx"])?;
    let started = Start::new("nginx", dir.path()).on_free_port(|address| {
        let user = account.as_ref().map(|account| account.name.as_str());
        let serves = serves.replace(LISTEN, &address.to_string());
        let file = dir.file("nginx.conf", &frame(&dir, workers, user, &serves))?;
        let mut command = Command::new(&program);
        command.args(["-e", "stderr", "-p"]).arg(dir.path()).arg("-c").arg(file);
        Ok(command)
    })?;
    Ok(OnPort::new(started, dir))
}

/// The default number of connections per worker.
const CONNECTIONS: usize = 1024;
/// The same behind the PROXY protocol: a crawler that does not wait has a connection for each request in progress.
const PROXIED_CONNECTIONS: usize = 8192;
/// Placeholder for the address until a free port is found.
const LISTEN: &str = "@listen@";
/// The path of the stream module, which distributions package separately.
const STREAM_MODULE: &str = "/usr/lib/nginx/modules/ngx_stream_module.so";

fn frame(dir: &PrivateDir, workers: usize, user: Option<&str>, serves: &str) -> String {
    let mut text = String::new();
    if serves.contains("\nstream {") && Path::new(STREAM_MODULE).exists() {
        let _ = writeln!(text, "load_module {STREAM_MODULE};");
    }
    text.push_str("daemon off;\nerror_log stderr warn;\n");
    if let Some(user) = user {
        let _ = writeln!(text, "user {user};");
    }
    let _ = writeln!(text, "worker_processes {};", workers.max(1));
    let _ = writeln!(text, "pid {}/nginx.pid;", dir.path().display());
    text + serves
}

fn http_block(dir: &PrivateDir, conf: &NginxConf) -> String {
    let temp = dir.path().join("temp");
    let temp = temp.display();
    let mut text = String::from("http {\naccess_log off;\n");
    for kind in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"] {
        let _ = writeln!(text, "{kind}_temp_path {temp}/{kind};");
    }
    text.push_str(&conf.http);
    let tls = if conf.server.contains("ssl_certificate ") { " ssl" } else { "" };
    let _ = write!(text, "\nserver {{\nlisten {LISTEN}{tls};\n{}\n}}\n}}\n", conf.server);
    text
}
