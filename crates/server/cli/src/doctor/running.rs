//! Finds the process that listens on an address. If several Pagewells run, the one that a configuration
//! belongs to is the one that listens on the configured control interface.
//!
//! The socket is looked up in the kernel's tables (`/proc/net`), and its process by the open files in
//! `/proc`. A process of another user, whose open files cannot be read, is not found.

use config::Address;
use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

/// The state of a listening TCP socket in `/proc/net/tcp`, and the flags of a listening Unix socket.
const TCP_LISTENS: &str = "0A";
const UNIX_LISTENS: &str = "00010000";
/// The places of the user's ID and of the inode in a line of `/proc/net/tcp`.
const USER: usize = 7;
const INODE: usize = 9;

/// A process that listens on a port.
#[derive(Debug)]
pub struct ListeningProcess {
    /// The ID of the process in the kernel.
    pub pid: u32,
    /// The name of the program, as the kernel knows it.
    pub name: String,
}

impl ListeningProcess {
    /// The command that ends the process and so frees its port: by its unit, if systemd started it. For a port of a
    /// container, the command that names the container.
    #[must_use]
    pub fn stop_command(&self) -> String {
        if self.name == "docker-proxy" {
            return "docker ps".into();
        }
        let groups = super::text_of(format!("/proc/{}/cgroup", self.pid));
        match unit_of(&groups) {
            Some(unit) => format!("systemctl stop {unit}"),
            None => format!("kill {}", self.pid),
        }
    }
}

/// The service of the system that a process belongs to, from the text of its `/proc/PID/cgroup`. `None` for a process
/// of a user's session or of a container.
fn unit_of(groups: &str) -> Option<&str> {
    groups.lines().find_map(|line| {
        let path = line.splitn(3, ':').nth(2)?.strip_prefix("/system.slice/")?;
        path.rsplit('/').find_map(|part| part.strip_suffix(".service"))
    })
}

/// The process that listens on a TCP port, at whatever address.
#[must_use]
pub fn on_port(port: u16) -> Option<ListeningProcess> {
    let pid = holder(&field_of_listener(port, INODE)?)?;
    let name = super::text_of(format!("/proc/{pid}/comm")).trim().to_owned();
    Some(ListeningProcess { pid, name })
}

/// The ID of the user whose process opened the socket that listens on a TCP port, at whatever address.
#[must_use]
pub fn user_of_port(port: u16) -> Option<u32> {
    field_of_listener(port, USER)?.parse().ok()
}

/// A field of the kernel's line about the socket that listens on a TCP port.
fn field_of_listener(port: u16, field: usize) -> Option<String> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(super::text_of).concat();
    let wanted = format!(":{port:04X}");
    tables.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let listens = fields.get(1)?.ends_with(&wanted) && *fields.get(3)? == TCP_LISTENS;
        listens.then(|| fields.get(field).map(|found| (*found).to_owned()))?
    })
}

/// The id of the process that listens on `address`.
pub(super) fn at(address: &Address) -> Option<u32> {
    let inode = match address {
        Address::Tcp(tcp) => {
            let table = if tcp.is_ipv4() { "/proc/net/tcp" } else { "/proc/net/tcp6" };
            of_tcp(&super::text_of(table), *tcp)
        }
        Address::Unix(path) => of_unix(&super::text_of("/proc/net/unix"), path),
    }?;
    holder(&inode)
}

/// A process that has this socket open.
fn holder(inode: &str) -> Option<u32> {
    let socket = format!("socket:[{inode}]");
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.find(|pid| has_open(*pid, &socket))
}

fn has_open(pid: u32, socket: &str) -> bool {
    let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let mut links = files.filter_map(|file| fs::read_link(file.path()).ok());
    links.any(|link| link.to_str() == Some(socket))
}

/// The inode of the socket that listens on `address`, from the text of `/proc/net/tcp` or `tcp6`. The
/// table has addresses in hexadecimal, as 32-bit words in the machine's byte order.
fn of_tcp(table: &str, address: SocketAddr) -> Option<String> {
    let words = |octets: &[u8]| -> String {
        let words = octets.chunks_exact(4).filter_map(|four| four.try_into().ok());
        words.map(|four| format!("{:08X}", u32::from_ne_bytes(four))).collect()
    };
    let ip = match address.ip() {
        IpAddr::V4(v4) => words(&v4.octets()),
        IpAddr::V6(v6) => words(&v6.octets()),
    };
    let wanted = format!("{ip}:{:04X}", address.port());
    table.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let listens = *fields.get(1)? == wanted && *fields.get(3)? == TCP_LISTENS;
        listens.then(|| fields.get(9).map(|inode| (*inode).to_owned()))?
    })
}

/// The inode of the socket that listens on `path`, from the text of `/proc/net/unix`.
fn of_unix(table: &str, path: &Path) -> Option<String> {
    table.lines().find_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let listens = Path::new(*fields.get(7)?) == path && *fields.get(3)? == UNIX_LISTENS;
        listens.then(|| fields.get(6).map(|inode| (*inode).to_owned()))?
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::os::unix::net::UnixListener;

    #[test]
    fn a_process_is_stopped_by_its_unit_if_it_has_one() {
        for (groups, unit) in [
            ("0::/system.slice/nginx.service\n", Some("nginx")),
            ("12:cpu:/\n1:name=systemd:/system.slice/apache2.service\n", Some("apache2")),
            ("0::/system.slice/system-web.slice/web@1.service/worker\n", Some("web@1")),
            ("0::/user.slice/user-1.slice/user@1.service/app.slice/x.service\n", None),
            ("0::/system.slice/docker-0123.scope\n", None),
            ("0::/\n", None),
            ("", None),
        ] {
            assert_eq!(unit_of(groups), unit, "{groups}");
        }
        let of = |pid, name: &str| ListeningProcess { pid, name: name.into() }.stop_command();
        // No process has this id.
        assert_eq!(of(u32::MAX, "nginx"), format!("kill {}", u32::MAX));
        assert_eq!(of(u32::MAX, "docker-proxy"), "docker ps");
    }

    #[test]
    fn the_process_that_listens_is_found() {
        let own = Some(std::process::id());
        for any in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(any) else { continue };
            let address = listener.local_addr().unwrap();
            assert_eq!(at(&Address::Tcp(address)), own, "{address}");
            assert_eq!(on_port(address.port()).map(|by| by.pid), own, "{address}");
            drop(listener);
            assert!(harness::Address::from(address).closes());
            assert_eq!(at(&Address::Tcp(address)), None, "{address}");
        }
        let path = std::env::temp_dir().join(format!("pagewell-running-{}", std::process::id()));
        let listener = UnixListener::bind(&path).unwrap();
        let found = at(&Address::Unix(path.clone()));
        drop(listener);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(found, own);
    }
}
