//! A private Apache httpd, for comparisons and as an HTTP origin.
//!
//! The caller selects the modules and writes the directives. The rest of the configuration (process id, logs,
//! user, port, threads) is private to its directory. Of the system's configuration only the table of media
//! types is read. Runs in the foreground with threads (event MPM), as its manual recommends.

use crate::on_port::OnPort;
use crate::port::Start;
use crate::users;
use crate::{PrivateDir, StartError, find};
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

/// The directory in which distributions install Apache's modules.
const SERVER_ROOT: &str = "/usr/lib/apache2";

/// The configuration of an Apache server.
#[derive(Debug, Clone)]
pub struct ApacheConf {
    /// Additional modules, by the names of their files: `cache` for `mod_cache.so`.
    pub modules: Vec<&'static str>,
    /// Directives; `@cache@` in them is replaced by a private, writable directory.
    pub directives: String,
}

/// Starts an Apache on a free port of 127.0.0.1.
///
/// # Errors
/// `NotInstalled`, or the reason why it did not become ready: a mistake in `conf` is reported as `Ended`.
pub fn start(dir: PrivateDir, conf: &ApacheConf) -> Result<OnPort, StartError> {
    let program = find::program(&["apache2", "httpd"])?;
    let account = users::for_server(&["www-data", "nobody", "apache", "http"]);
    let cache = dir.part("cache", account.as_ref())?;
    let started = Start::new("apache", dir.path()).on_free_port(|address| {
        let user = account.as_ref().map(|account| account.name.as_str());
        let text = frame(dir.path(), &cache, user, address, conf);
        let file = dir.file("apache.conf", &text)?;
        let mut command = Command::new(&program);
        command.arg("-f").arg(file).arg("-DFOREGROUND");
        Ok(command)
    })?;
    Ok(OnPort::new(started, dir))
}

fn frame(
    dir: &Path,
    cache: &Path,
    user: Option<&str>,
    address: SocketAddr,
    conf: &ApacheConf,
) -> String {
    let mut text = format!("ServerRoot {SERVER_ROOT}\n");
    for module in ["mpm_event", "authz_core", "mime"].iter().chain(&conf.modules) {
        let _ = writeln!(text, "LoadModule {module}_module modules/mod_{module}.so");
    }
    if let Some(user) = user {
        let _ = writeln!(text, "User {user}\nGroup #{}", group(user));
    }
    let dir = dir.display();
    let _ = write!(
        text,
        "PidFile {dir}/apache.pid\nDefaultRuntimeDir {dir}\nListen {address}\n\
         ServerName localhost\nErrorLog /dev/stderr\nLogLevel warn\nTypesConfig /etc/mime.types\n\
         KeepAlive On\nMaxKeepAliveRequests 0\nKeepAliveTimeout 60\nStartServers 1\n\
         ServerLimit 4\nThreadsPerChild 256\nThreadLimit 256\nMaxRequestWorkers 1024\n{}\n",
        conf.directives.replace("@cache@", &cache.display().to_string())
    );
    text
}

/// The primary group id of a user.
fn group(user: &str) -> u32 {
    users::for_server(&[user]).map_or(0, |account| account.gid)
}
