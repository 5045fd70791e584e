//! A private H2O, for comparisons: it serves the files of a directory.
//!
//! It has one thread; its configuration (port, user, process id) is private to its directory. Runs in the
//! foreground as a single worker.

use crate::on_port::OnPort;
use crate::port::Start;
use crate::users;
use crate::{PrivateDir, StartError, find};
use std::path::Path;
use std::process::Command;

/// Starts an H2O on a free port of 127.0.0.1 with the files below `root`.
///
/// # Errors
/// `NotInstalled`, or the reason why it did not become ready.
pub fn start(dir: PrivateDir, root: &Path) -> Result<OnPort, StartError> {
    let program = find::program(&["h2o"])?;
    let account = users::for_server(&["www-data", "nobody", "http"]);
    // It writes its pid file after it has changed users.
    let own = dir.part("own", account.as_ref())?;
    let mut start = Start::new("h2o", dir.path());
    start.pid_file = Some(own.join("h2o.pid"));
    let started = start.on_free_port(|address| {
        let user = account.as_ref().map_or_else(String::new, |a| format!("user: {}\n", a.name));
        let text = format!(
            "num-threads: 1\nlisten:\n  host: {host}\n  port: {port}\n{user}\
             pid-file: {own}/h2o.pid\nmax-connections: 9000\nhttp1-request-timeout: 60\n\
             hosts:\n  \"default:{port}\":\n    paths:\n      \"/\":\n        \
             file.dir: {root}\n",
            host = address.ip(),
            port = address.port(),
            own = own.display(),
            root = root.display(),
        );
        let file = dir.file("h2o.conf", &text)?;
        let mut command = Command::new(&program);
        command.args(["-m", "worker", "-c"]).arg(file);
        Ok(command)
    })?;
    Ok(OnPort::new(started, dir))
}
