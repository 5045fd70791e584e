//! A private Sentinel of Valkey or Redis, which monitors one primary and makes a replica the new one.
//!
//! It decides alone (a quorum of one), within about a second. After a failover a script of it makes a symbolic
//! link lead to the socket of the new primary, as others move a virtual address
//! (`sentinel client-reconfig-script`). Not here: the servers (`valkey`).

use crate::address::Address;
use crate::process::{Process, READY_WITHIN};
use crate::{PrivateDir, StartError, StartReason, find, free_port, write_script};
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

const NAME: &str = "sentinel";

/// A running Sentinel with one primary, named `pages`. It ends with this value.
#[derive(Debug)]
pub struct Sentinel {
    // Fields are dropped in this order: the process before its directory.
    _process: Process,
    port: u16,
    _dir: PrivateDir,
}

impl Sentinel {
    /// Starts a Sentinel for the primary at `primary` (a port of 127.0.0.1). `sockets` are the ports and Unix
    /// sockets of the primary and its replicas; `link` leads to the socket of the present primary.
    ///
    /// # Errors
    /// `NotInstalled`, or the reason why it did not become ready.
    pub fn start(
        primary: u16,
        sockets: &[(u16, &Path)],
        link: &Path,
    ) -> Result<Sentinel, StartError> {
        let fault = |error: std::io::Error| {
            StartError::new(NAME, StartReason::CannotPrepare, error.to_string())
        };
        let dir = PrivateDir::temporary(NAME)?;
        let port = free_port().map_err(fault)?;
        let moved = dir.path().join("moved");
        write_script(&moved, &script(sockets, link)).map_err(fault)?;
        let config = format!(
            "port {port}\nbind 127.0.0.1\ndir {dir}\nsentinel monitor pages 127.0.0.1 {primary} 1\n\
             sentinel down-after-milliseconds pages 300\nsentinel failover-timeout pages 3000\n\
             sentinel client-reconfig-script pages {script}\n",
            dir = dir.path().display(),
            script = moved.display(),
        );
        let file = dir.file("sentinel.conf", &config)?;
        let mut command = Command::new(find::program(&["valkey-server", "redis-server"])?);
        command.arg(file).arg("--sentinel");
        let mut process = Process::spawn(NAME, &mut command, &dir.path().join("sentinel.log"))?;
        let address = Address::Tcp(([127, 0, 0, 1], port).into());
        process.wait_ready(READY_WITHIN, || address.accepts())?;
        Ok(Sentinel { _process: process, port, _dir: dir })
    }

    /// The port of the present primary, if Sentinel answers.
    #[must_use]
    pub fn primary(&self) -> Option<u16> {
        let answer = self.command(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", "pages"])?;
        answer.lines().nth(1)?.parse().ok()
    }

    /// The number of replicas that Sentinel knows.
    #[must_use]
    pub fn replicas(&self) -> usize {
        let answer = self.command(&["SENTINEL", "REPLICAS", "pages"]).unwrap_or_default();
        answer.lines().filter(|line| *line == "runid").count()
    }

    fn command(&self, words: &[&str]) -> Option<String> {
        let client = find::program(&["valkey-cli", "redis-cli"]).ok()?;
        let port = self.port.to_string();
        let output = Command::new(client).args(["-p", &port]).args(words).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// The script is called with the name, role, state, and the old and new host and port.
fn script(sockets: &[(u16, &Path)], link: &Path) -> String {
    let mut text = "#!/bin/sh\nset -e\ncase $7 in\n".to_owned();
    for (port, socket) in sockets {
        let _ = writeln!(text, "{port}) socket='{}' ;;", socket.display());
    }
    let link = link.display();
    let _ = writeln!(text, "esac\nln -s \"$socket\" '{link}.moved'\nmv -T '{link}.moved' '{link}'");
    text
}
