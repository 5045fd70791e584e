//! The upgrade of a running Pagewell when a new version of the package is installed: `postinst`, run as it is
//! against a real process. Two things of its surroundings are the test's: `systemctl`, which notes its
//! arguments and does the same to that process, and the directory by which systemd is known to be there. With
//! a real systemd, `scripts/package-test` does the same in Debian 12 and 13.

use harness::root::{self, Profile};
use harness::{Address, Client, Deadline, Pagewell, PrivateDir, Signal, cpu};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

const BOUND: Duration = Duration::from_secs(60);

/// Notes its arguments; the main process is the one that the manager was notified of last.
const SYSTEMCTL: &str = r#"#!/bin/sh
echo "$*" >> "$PLACE/said"
case "$*" in
    "--quiet is-active "*) test -s "$PLACE/main" ;;
    show*) cat "$PLACE/main" ;;
    kill*) kill -USR2 "$(cat "$PLACE/main")" ;;
esac
"#;

/// A machine with systemd, as far as the script asks for it.
struct Machine {
    place: PrivateDir,
}

impl Machine {
    fn new() -> Machine {
        let place = PrivateDir::temporary("upgrade").expect("a directory");
        fs::create_dir(place.path().join("bin")).expect("a directory");
        let machine = Machine { place };
        let users = "#!/bin/sh\necho \"${0##*/} $*\" >> \"$PLACE/users\"\n";
        let getent = "#!/bin/sh\ntest \"$1\" = group && test -e \"$PLACE/group-$2\"\n";
        for (name, text) in [
            ("systemctl", SYSTEMCTL),
            ("adduser", users),
            ("systemd-sysusers", users),
            ("getent", getent),
            (
                "runuser",
                "#!/bin/sh\necho \"$*\" >> \"$PLACE/checked\"\n! cat \"$PLACE/fault\" 2>/dev/null\n",
            ),
            ("deb-systemd-helper", "#!/bin/sh\n"),
            ("install", "#!/bin/sh\n"),
        ] {
            harness::write_script(&machine.at("bin").join(name), text).expect("written");
        }
        machine.is_main("");
        machine
    }

    fn at(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    /// From now on this is the service's main process.
    fn is_main(&self, pid: &str) {
        fs::write(self.at("main.new"), pid).expect("written");
        fs::rename(self.at("main.new"), self.at("main")).expect("renamed");
    }

    /// The first installation.
    fn configure(&self) -> Output {
        self.configure_after("")
    }

    /// An upgrade from this version; empty for the first installation.
    fn configure_after(&self, before: &str) -> Output {
        let script = root::repository().join("contrib/debian/postinst");
        let script = fs::read_to_string(script).expect("it is there");
        let script = script
            .replace("/run/systemd/system", &self.place.path().display().to_string())
            .replace("/etc/pagewell/pagewell.toml", &self.at("pagewell.toml").display().to_string())
            .replace("/var/lib/pagewell-php", &self.at("php").display().to_string())
            .replace("/usr/sbin/policy-rc.d", &self.at("bin/policy-rc.d").display().to_string())
            .replace("patience=120", "patience=2");
        let path = format!("{}:/usr/sbin:/usr/bin:/sbin:/bin", self.at("bin").display());
        let mut command = Command::new("sh");
        command.args(["-c", &script, "postinst", "configure", before]);
        command.env("PATH", path).env("PLACE", self.place.path());
        let output = command.output().expect("it runs");
        assert!(output.status.success(), "{output:?}");
        output
    }

    /// The arguments of systemctl, but for those that only ask.
    fn calls(&self) -> Vec<String> {
        let all = fs::read_to_string(self.at("said")).expect("it was called");
        let asks = |line: &&str| line.starts_with("show") || line.starts_with("--quiet");
        all.lines().filter(|line| !asks(line)).map(str::to_owned).collect()
    }

    /// A Pagewell that this machine's manager has started.
    fn serve(&self, manager: &Path) -> Pagewell {
        let config = self.at("pagewell.toml");
        fs::write(&config, "site.origin = \"http://127.0.0.1:1\"\n").expect("written");
        let socket = |name: &str| format!("unix:{}", self.at(name).display());
        let mut command = Command::new(root::pagewell(Profile::Dev).expect("it is built"));
        command.args(["serve", "--config", &config.display().to_string()]);
        command.args(["--listen", &socket("public"), "--admin", &socket("admin")]);
        command.env("NOTIFY_SOCKET", manager);
        let dir = PrivateDir::temporary("installed").expect("a directory");
        let pagewell = Pagewell::start_command(dir, &mut command).expect("it starts");
        self.is_main(&pagewell.pid().to_string());
        pagewell
    }
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Deadline::after(BOUND);
    while !holds() {
        assert!(!deadline.passed(), "not within {BOUND:?}: {what}");
        std::thread::park_timeout(Duration::from_millis(2));
    }
}

fn is_ready(admin: &Address) -> bool {
    Client::new(admin.clone()).get("/v1/ready").is_ok_and(|answer| answer.status == 200)
}

const RELOAD: &str = "--system daemon-reload";
const TAKE_OVER: &str = "kill --signal=USR2 --kill-whom=main pagewell.service";

#[test]
fn one_that_can_be_taken_over_is() {
    let machine = Machine::new();
    let at = machine.at("notify");
    let manager = UnixDatagram::bind(&at).expect("a socket");
    let first = machine.serve(&at);
    let (before, admin) = (first.pid(), first.admin().clone());
    let after = std::thread::scope(|threads| {
        threads.spawn(|| machine.configure());
        manager.set_read_timeout(Some(BOUND)).expect("can be set");
        let mut bytes = [0; 1024];
        loop {
            let length = manager.recv(&mut bytes).expect("a message");
            let text = String::from_utf8_lossy(&bytes[..length]).into_owned();
            if let Some(pid) = text.lines().find_map(|line| line.strip_prefix("MAINPID=")) {
                machine.is_main(pid);
                break pid.parse::<u32>().expect("a process id");
            }
        }
    });
    assert_eq!(machine.calls(), [RELOAD, TAKE_OVER]);
    until("the one before has ended", || !cpu::is_running(before));
    assert!(is_ready(&admin) && cpu::is_running(after) && after != before);
    let id = rustix::process::Pid::from_raw(after as i32).expect("a process");
    rustix::process::kill_process(id, Signal::TERM).expect("it runs");
    until("it has ended", || !cpu::is_running(after));
}

#[test]
fn where_the_new_one_does_not_start_the_one_before_serves_on() {
    let machine = Machine::new();
    let at = machine.at("notify");
    let _manager = UnixDatagram::bind(&at).expect("a socket");
    let first = machine.serve(&at);
    fs::write(machine.at("pagewell.toml"), "no such key = 1\n").expect("written");
    let output = machine.configure();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("still serves"), "{error}");
    assert_eq!(machine.calls(), [RELOAD, TAKE_OVER]);
    assert!(cpu::is_running(first.pid()) && is_ready(first.admin()));
}

#[test]
fn an_old_version_is_restarted_and_a_stopped_service_is_not_started() {
    let machine = Machine::new();
    machine.configure();
    assert_eq!(machine.calls(), [RELOAD]);
    // For this one SIGUSR2 would be the end.
    let mut other = Command::new("sleep").arg("600").spawn().expect("it runs");
    machine.is_main(&other.id().to_string());
    machine.configure();
    assert_eq!(machine.calls()[1..], [RELOAD, "try-restart pagewell.service"]);
    assert!(other.try_wait().expect("a process").is_none());
    other.kill().expect("it ends");
    other.wait().expect("it has ended");
}

#[test]
fn a_service_is_left_alone_with_a_faulty_configuration_or_if_the_policy_forbids_it() {
    let machine = Machine::new();
    // A SIGUSR2 would end it, so would a restart.
    let mut other = Command::new("sleep").arg("600").spawn().expect("it runs");
    machine.is_main(&other.id().to_string());
    fs::write(machine.at("pagewell.toml"), "").expect("written");
    fs::write(machine.at("fault"), "line 3: unknown key\n").expect("written");
    let output = machine.configure_after("0.1.0-1");
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("still serves") && error.contains("line 3: unknown key"), "{error}");
    let checked = fs::read_to_string(machine.at("checked")).expect("it was checked");
    let config = machine.at("pagewell.toml").display().to_string();
    let check = format!("-u pagewell -- /usr/bin/pagewell check --offline --config {config}\n");
    assert_eq!(checked, check);
    fs::remove_file(machine.at("fault")).expect("removed");
    let policy = machine.at("bin/policy-rc.d");
    let refuses = "#!/bin/sh\necho \"$*\" > \"$PLACE/policy\"\nexit 101\n";
    harness::write_script(&policy, refuses).expect("written");
    let output = machine.configure_after("0.1.0-1");
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("still serves") && error.contains("policy"), "{error}");
    let policy = fs::read_to_string(machine.at("policy")).expect("it was asked");
    assert_eq!(policy, "pagewell.service restart\n");
    assert_eq!(machine.calls(), [RELOAD, RELOAD]);
    assert!(other.try_wait().expect("a process").is_none());
    other.kill().expect("it ends");
    other.wait().expect("it has ended");
}

#[test]
fn the_users_are_made_at_each_installation_and_upgrade() {
    let called =
        |machine: &Machine| fs::read_to_string(machine.at("users")).expect("it was called");
    let create = "systemd-sysusers pagewell.conf\n";
    let machine = Machine::new();
    machine.configure();
    assert_eq!(called(&machine), create);
    machine.configure_after("0.1.0-1");
    assert_eq!(called(&machine), create.repeat(2));
}

#[test]
fn the_file_that_php_runs_stays_when_the_package_is_purged() {
    let machine = Machine::new();
    let file = machine.at("php/prepend.php");
    machine.configure();
    let mode = fs::metadata(&file).expect("it is written").permissions().mode();
    assert_eq!(mode & 0o777, 0o644, "every user's PHP can read it");
    assert_eq!(fs::read_dir(machine.at("php")).expect("a directory").count(), 1);
    // An upgrade replaces it.
    fs::write(&file, "of the version before").expect("written");
    machine.configure_after("0.1.0-1");
    assert_ne!(fs::read_to_string(&file).expect("text"), "of the version before");
    let script = root::repository().join("contrib/debian/postrm");
    let script = fs::read_to_string(script).expect("it is there");
    let script = script.replace("/var/lib/pagewell-php", &machine.at("php").display().to_string());
    let script = script.replace("/var/l", &machine.at("var-l").display().to_string());
    for action in ["remove", "purge"] {
        let mut command = Command::new("sh");
        let output = command.args(["-c", &script, "postrm", action]).output().expect("it runs");
        assert!(output.status.success() && file.exists(), "{action}: {output:?}");
    }
}
