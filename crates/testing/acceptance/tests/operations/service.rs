//! Pagewell under a service manager like systemd, which the test plays: the messages to the manager, and the
//! sockets that it passes. Also the units of `contrib/systemd`, as systemd parses them.

use acceptance::{BOUND, Site, binary};
use harness::{Client, Pagewell, PrivateDir, Signal, Wait};
use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixDatagram, UnixListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The next message to the manager.
fn told(manager: &UnixDatagram) -> String {
    let mut bytes = [0; 1024];
    let length = manager.recv(&mut bytes).expect("a message");
    String::from_utf8_lossy(&bytes[..length]).into_owned()
}

fn managed(site: &Site, name: &str, more: &[(&str, &str)]) -> Pagewell {
    let mut command = Command::new(binary());
    command.arg("serve").arg(site.root()).args(["--memory", "64M"]);
    command.args(["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
    command.env("NOTIFY_SOCKET", name).envs(more.iter().copied());
    let dir = PrivateDir::temporary("managed").expect("a directory can be made");
    Pagewell::start_command(dir, &mut command).expect("pagewell starts")
}

#[test]
fn the_manager_is_notified_of_start_watchdog_and_stop() {
    let site = Site::new(&[("file.txt", "a file")]);
    let path = site.at("notify");
    let manager = UnixDatagram::bind(&path).expect("a socket");
    manager.set_read_timeout(Some(BOUND)).expect("can be set");
    let name = path.display().to_string();
    // The socket holds ten messages, and loses further ones: at this rate, the test reads in time.
    let mut pagewell = managed(&site, &name, &[("WATCHDOG_USEC", "1000000")]);
    assert_eq!(told(&manager), "READY=1\nSTATUS=Serving");
    assert_eq!(acceptance::client(&pagewell).get("/file.txt").expect("an answer").text(), "a file");
    for _ in 0..5 {
        // php-fpm, which can send such messages too, sends none.
        assert_eq!(told(&manager), "WATCHDOG=1");
    }
    pagewell.signal(Signal::TERM);
    let mut last = told(&manager);
    while last == "WATCHDOG=1" {
        last = told(&manager);
    }
    assert_eq!(last, "STOPPING=1\nSTATUS=Stopping");
    assert!(matches!(pagewell.wait(BOUND), Wait::Ended(status) if status.success()));
}

#[test]
fn a_manager_with_an_abstract_socket() {
    let site = Site::new(&[]);
    let name = format!("pagewell-test-{}", std::process::id());
    let address = UnixAddress::from_abstract_name(&name).expect("a name");
    let manager = UnixDatagram::bind_addr(&address).expect("a socket");
    manager.set_read_timeout(Some(BOUND)).expect("can be set");
    let more = [("WATCHDOG_USEC", "30000"), ("WATCHDOG_PID", "1")];
    let mut pagewell = managed(&site, &format!("@{name}"), &more);
    assert_eq!(told(&manager), "READY=1\nSTATUS=Serving");
    // The watchdog is meant for another process.
    pagewell.stop();
    assert_eq!(told(&manager), "STOPPING=1\nSTATUS=Stopping");
}

#[test]
fn an_absent_manager_does_not_prevent_the_start() {
    let site = Site::new(&[("file.txt", "a file")]);
    let pagewell = managed(&site, "/nowhere/notify", &[]);
    assert_eq!(acceptance::client(&pagewell).get("/file.txt").expect("an answer").status, 200);
    assert!(pagewell.log().contains("manager-unreachable"), "{}", pagewell.log());
}

/// Starts Pagewell with this socket as descriptor 3.
fn handed(socket: OwnedFd, site: &Site, listen: &str) -> Child {
    let script = "exec 3<&0 </dev/null; LISTEN_PID=$$ LISTEN_FDS=1 exec \"$@\"";
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh"]).arg(binary()).arg("serve").arg(site.root());
    command.args(["--memory", "64M", "--admin", "127.0.0.1:0", "--listen", listen]);
    command.stdin(Stdio::from(socket)).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("it starts")
}

fn end(mut child: Child) {
    let id = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(id, rustix::process::Signal::TERM).expect("it runs");
    assert!(child.wait().expect("it ends").success());
}

/// Waits until the process reports that it serves.
fn serves(child: &mut Child) -> String {
    let out = child.stdout.take().expect("piped");
    let mut line = String::new();
    BufReader::new(out).read_line(&mut line).expect("a line");
    line
}

#[test]
fn a_passed_port_outlives_the_process() {
    let site = Site::new(&[("file.txt", "a file")]);
    let port = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).expect("a port");
    let number = port.local_addr().expect("bound").port();
    let at = SocketAddr::from((Ipv4Addr::LOCALHOST, number));
    for _ in 0..2 {
        let copy = port.try_clone().expect("a copy");
        let mut child = handed(copy.into(), &site, &format!(":{number}"));
        let line = serves(&mut child);
        assert_eq!(line, format!("listening on http://0.0.0.0:{number}\n"));
        assert_eq!(
            Client::new(at).within(BOUND).get("/file.txt").expect("an answer").text(),
            "a file"
        );
        end(child);
        // The next process accepts the next connection.
        std::net::TcpStream::connect(at).expect("connections wait");
    }
}

#[test]
fn the_file_of_a_passed_unix_socket_stays() {
    let site = Site::new(&[("file.txt", "a file")]);
    let path = site.at("listen.sock");
    let socket = UnixListener::bind(&path).expect("a socket");
    let mut child = handed(socket.into(), &site, &format!("unix:{}", path.display()));
    serves(&mut child);
    let address = harness::Address::Unix(path.clone());
    assert_eq!(Client::new(address).get("/file.txt").expect("an answer").text(), "a file");
    end(child);
    assert!(path.exists());
}

#[test]
fn a_passed_socket_that_is_not_configured_is_refused() {
    let site = Site::new(&[]);
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let number = port.local_addr().expect("bound").port();
    let mut child = handed(port.into(), &site, "127.0.0.1:0");
    assert_eq!(child.wait().expect("it ends").code(), Some(1));
    let mut error = String::new();
    child.stderr.take().expect("piped").read_to_string(&mut error).expect("text");
    let right =
        format!("handed over that listens at 127.0.0.1:{number}, but listen does not name it");
    assert!(error.contains(&right), "{error}");
}

#[test]
fn systemd_accepts_the_units() {
    let dir = PrivateDir::temporary("units").expect("a directory can be made");
    let contrib = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../contrib/systemd");
    for name in ["pagewell.service", "pagewell-php.service", "pagewell.socket"] {
        let text = std::fs::read_to_string(contrib.join(name)).expect("it is there");
        let here = text.replace("/usr/bin/pagewell", &binary().display().to_string());
        std::fs::write(dir.path().join(name), here).expect("can be written");
    }
    let unit = dir.path().join("pagewell.service");
    let mut verify = Command::new("systemd-analyze");
    let said = verify.args(["verify", "--man=no"]).arg(&unit).output().expect("it is there");
    let error = String::from_utf8_lossy(&said.stderr).into_owned();
    let ours: Vec<&str> = error.lines().filter(|line| line.contains("pagewell")).collect();
    assert!(said.status.success() && ours.is_empty(), "{error}");
    let mut security = Command::new("systemd-analyze");
    security.args(["security", "--offline=true", "--threshold=30"]).arg(&unit);
    let said = security.output().expect("it is there");
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stdout));
}

#[test]
fn the_unit_of_php_starts_the_newest_php_fpm_or_names_the_package() {
    let dir = PrivateDir::temporary("sbin").expect("a directory can be made");
    let unit =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../contrib/systemd/pagewell-php.service");
    let unit = std::fs::read_to_string(unit).expect("it is there").replace("\\\n", " ");
    let command = unit
        .lines()
        .find_map(|line| line.strip_prefix("ExecStart=/bin/sh -c '")?.strip_suffix('\''))
        .expect("a command for a shell");
    let programs = format!("{}/php-fpm", dir.path().display());
    let command = command.replace("$$", "$").replace("/usr/sbin/php-fpm", &programs);
    let run = || Command::new("sh").args(["-c", &command]).output().expect("it runs");
    let ended = run();
    let error = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(1), "{error}");
    assert!(error.contains("apt-get install php-fpm") && error.lines().count() == 1, "{error}");
    for version in ["8.2", "8.10"] {
        let text = format!("#!/bin/sh\necho {version} $*\n");
        harness::write_script(format!("{programs}{version}").as_ref(), &text).expect("a script");
    }
    let printed = String::from_utf8_lossy(&run().stdout).into_owned();
    assert_eq!(printed, "8.10 --nodaemonize --fpm-config /etc/pagewell/php-fpm.conf\n");
}
