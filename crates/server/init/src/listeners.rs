//! Which TCP ports of this machine are in use, from `/proc/net/tcp` and `tcp6`, and by which program, from
//! `/proc/PID/fd`.
//!
//! The program of another user is known to root only. The numbers of processes and of files are bounded.

use crate::machine::ExaminedMachine;
use std::path::{Path, PathBuf};

/// Maximum number of processes and of their open files that are looked at.
const PROCESSES_MAX: usize = 4_096;
/// The state LISTEN in `/proc/net/tcp`.
const LISTEN: &str = "0A";

/// A TCP port on which a program listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsedPort {
    /// The number of the port.
    pub port: u16,
    /// The name of the program; `None` if this user may not know it.
    pub program: Option<String>,
}

/// The ports in use among `ports`, each once.
#[must_use]
pub fn listeners(machine: &ExaminedMachine, ports: &[u16]) -> Vec<UsedPort> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(|path| machine.text_or_none(path));
    let mut found: Vec<(u16, String)> = Vec::new();
    for (port, inode) in tables.iter().flatten().flat_map(|text| text.lines()).filter_map(listening)
    {
        if ports.contains(&port) && !found.iter().any(|(known, _)| *known == port) {
            found.push((port, format!("socket:[{inode}]")));
        }
    }
    let programs = if found.is_empty() { Vec::new() } else { programs(machine, &found) };
    let program = |socket: &str| {
        let found = programs.iter().find(|(target, _)| target == socket);
        found.map(|(_, program)| program.clone())
    };
    let mut all: Vec<UsedPort> = found
        .iter()
        .map(|(port, socket)| UsedPort { port: *port, program: program(socket) })
        .collect();
    all.sort_by_key(|listener| listener.port);
    all
}

/// The port and the inode of a line of the table, if it listens.
fn listening(line: &str) -> Option<(u16, &str)> {
    let mut fields = line.split_whitespace().skip(1);
    let local = fields.next()?;
    let is_listening = fields.nth(1)? == LISTEN;
    let port = u16::from_str_radix(local.rsplit_once(':')?.1, 16).ok()?;
    let inode = fields.nth(5)?;
    is_listening.then_some((port, inode))
}

/// The programs that have these sockets open.
fn programs(machine: &ExaminedMachine, wanted: &[(u16, String)]) -> Vec<(String, String)> {
    let names = machine.names(Path::new("/proc")).into_iter();
    let pids =
        names.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit())).take(PROCESSES_MAX);
    let mut found = Vec::new();
    for pid in pids {
        let process = PathBuf::from("/proc").join(&pid);
        let files = process.join("fd");
        for file in machine.names(&files).into_iter().take(PROCESSES_MAX) {
            let Some(target) = machine.link_target(&files.join(file)) else { continue };
            if wanted.iter().any(|(_, socket)| *socket == target) {
                let name = machine.text_or_none(process.join("comm")).unwrap_or_default();
                found.push((target, name.trim().to_owned()));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_table_is_read() {
        let line = "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1";
        assert_eq!(listening(line), Some((8080, "4711")));
        assert_eq!(listening(&line.replace(" 0A ", " 01 ")), None);
        assert_eq!(listening("  sl  local_address rem_address   st"), None);
        assert_eq!(listening("0: x"), None);
    }
}
