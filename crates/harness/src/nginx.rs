//! A private nginx, for comparisons and as an HTTP origin.
//!
//! The caller writes what it serves (directives for the `http` block and for one `server` block);
//! the frame around it (process id, logs, temporary files, user, port) is private to its directory.
//! Runs in the foreground with a master, so that the CPU time of its workers is that of one tree.

use crate::address::{Address, free_port};
use crate::process::{Process, Stopped};
use crate::users;
use crate::{PrivateDir, StartError, StartReason, find};
use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const READY_WITHIN: Duration = Duration::from_secs(20);
/// How often a start is tried when somebody takes the port in between.
const PORT_ATTEMPTS: usize = 4;

/// What an nginx serves.
#[derive(Debug, Clone)]
pub struct NginxConf {
    /// Directives inside `http { … }`, before the server: `fastcgi_cache_path …;`.
    pub http: String,
    /// Directives inside `server { … }`; `listen` is added.
    pub server: String,
    /// How many workers.
    pub workers: usize,
}

/// A running nginx.
#[derive(Debug)]
pub struct Nginx {
    process: Process,
    address: SocketAddr,
    _dir: PrivateDir,
}

impl Nginx {
    /// Starts one on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// `NotInstalled`, or whatever kept it from becoming ready: a mistake in `conf` is `Ended`.
    pub fn start(dir: PrivateDir, conf: &NginxConf) -> Result<Nginx, StartError> {
        let serves = http_block(&dir, conf);
        Nginx::start_with(dir, conf.workers, &serves)
    }

    /// Starts one that carries connections on: `directives` go inside `stream { server { … } }`.
    ///
    /// # Errors
    /// As for [`Nginx::start`]; `Ended` where nginx has no stream module.
    pub fn start_stream(dir: PrivateDir, directives: &str) -> Result<Nginx, StartError> {
        let serves = format!("stream {{\nserver {{\nlisten {LISTEN};\n{directives}\n}}\n}}\n");
        Nginx::start_with(dir, 1, &serves)
    }

    fn start_with(dir: PrivateDir, workers: usize, serves: &str) -> Result<Nginx, StartError> {
        let account = users::for_server(&["www-data", "nobody", "nginx", "http"]);
        dir.part("temp", account.as_ref())?;
        let program = find::program(&["nginx"])?;
        let mut attempts = PORT_ATTEMPTS;
        loop {
            let port = free_port()
                .map_err(|error| StartError::new("nginx", StartReason::CannotPrepare, error))?;
            let user = account.as_ref().map(|account| account.name.as_str());
            let serves = serves.replace(LISTEN, &format!("127.0.0.1:{port}"));
            let file = dir.file("nginx.conf", &frame(&dir, workers, user, &serves))?;
            let mut command = Command::new(&program);
            command.args(["-e", "stderr", "-p"]).arg(dir.path()).arg("-c").arg(file);
            let log = dir.path().join("nginx.log");
            let mut process = Process::spawn("nginx", &mut command, &log)?;
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
            let pid_file = dir.path().join("nginx.pid");
            // The pid file comes after the sockets are bound: another server on this port cannot
            // be taken for this one.
            let ready = || pid_file.exists() && Address::Tcp(address).accepts();
            match process.wait_ready(READY_WITHIN, ready) {
                Ok(()) => return Ok(Nginx { process, address, _dir: dir }),
                Err(error) if attempts > 1 && error.detail.contains("in use") => attempts -= 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The process id of its master.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// The end of what it has logged.
    #[must_use]
    pub fn log(&self) -> String {
        self.process.log()
    }

    /// Stops it in good order.
    pub fn stop(&mut self) -> Stopped {
        self.process.stop()
    }
}

/// Stands for the address until a free port is found.
const LISTEN: &str = "@listen@";
/// Where distributions put the module that they build apart.
const STREAM_MODULE: &str = "/usr/lib/nginx/modules/ngx_stream_module.so";

fn frame(dir: &PrivateDir, workers: usize, user: Option<&str>, serves: &str) -> String {
    let mut text = String::new();
    if serves.starts_with("stream") && Path::new(STREAM_MODULE).exists() {
        let _ = writeln!(text, "load_module {STREAM_MODULE};");
    }
    text.push_str("daemon off;\nerror_log stderr warn;\n");
    if let Some(user) = user {
        let _ = writeln!(text, "user {user};");
    }
    let _ = writeln!(text, "worker_processes {};", workers.max(1));
    let _ = writeln!(text, "pid {}/nginx.pid;", dir.path().display());
    text.push_str("events { worker_connections 1024; }\n");
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
    let _ = write!(text, "\nserver {{\nlisten {LISTEN};\n{}\n}}\n}}\n", conf.server);
    text
}
