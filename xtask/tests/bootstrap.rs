//! `scripts/bootstrap` on machines that lack things: what it says, what it does, and with which status it ends.
//!
//! The machine is a directory of stand-ins that is the script's whole path, and a directory with the files of
//! rustup's server. Nothing is really installed: the stand-ins of apt and rustup make programs appear in the
//! directory. The last test runs the real rustup with a server that has the toolchain of this machine.

use harness::PrivateDir;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The programs that the script itself runs, and those of `scripts/setup`.
const TOOLS: [&str; 22] = [
    "bash",
    "sh",
    "env",
    "dirname",
    "sed",
    "sort",
    "paste",
    "grep",
    "cut",
    "head",
    "cat",
    "awk",
    "rm",
    "chmod",
    "true",
    "mktemp",
    "sha256sum",
    "uname",
    "cp",
    "mkdir",
    "setsid",
    "tr",
];

struct Machine {
    dir: PrivateDir,
}

impl Machine {
    /// A machine with apt and root, and nothing else.
    fn new() -> Machine {
        let machine = Machine { dir: PrivateDir::temporary("bootstrap").expect("can be made") };
        for name in ["bin", "home", "server"] {
            fs::create_dir(machine.at(name)).expect("a directory");
        }
        for tool in TOOLS {
            let real = harness::program(&[tool]).expect("a tool of every system");
            symlink(real, machine.at("bin").join(tool)).expect("can be linked");
        }
        machine.has("id", "echo 0");
        // Installed programs appear; curl is the real one.
        let curl = harness::program(&["curl"]).expect("curl");
        machine.has(
            "apt-get",
            &format!(
                "echo \"$*\" >>\"$NOTES\"\ncase $* in *install*) for name; do case $name in\n\
                 make|git) printf '#!/bin/sh\\necho \"%s $*, $(cargo --version)\" >>\"$NOTES\"\\n' $name >\"$BIN/$name\"; chmod 755 \"$BIN/$name\" ;;\n\
                 curl) cp {} \"$BIN/curl\" ;;\nesac; done ;; esac",
                curl.display()
            ),
        );
        machine
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn has(&self, program: &str, does: &str) {
        write_program(&self.at("bin").join(program), does);
    }

    /// The server has a rustup, which installs a cargo of this version.
    fn serves_rustup(&self, version: &str) {
        let place =
            self.at("server/dist").join(format!("{}-unknown-linux-gnu", std::env::consts::ARCH));
        fs::create_dir_all(&place).expect("a directory");
        let init = place.join("rustup-init");
        write_program(
            &init,
            &format!(
                "echo \"rustup-init $*\" >>\"$NOTES\"\nmkdir -p \"$HOME/.cargo/bin\"\n\
                 printf '#!/bin/sh\\necho cargo {version}\\n' >\"$HOME/.cargo/bin/cargo\"\n\
                 chmod 755 \"$HOME/.cargo/bin/cargo\""
            ),
        );
        let sum = Command::new("sha256sum").arg(&init).output().expect("it runs").stdout;
        fs::write(place.join("rustup-init.sha256"), sum).expect("written");
    }

    /// A command that finds this machine's programs alone, and its server of rustup.
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env_clear().stdin(Stdio::null());
        command.env("PATH", self.at("bin")).env("BIN", self.at("bin")).env("HOME", self.at("home"));
        command.env("NOTES", self.at("notes")).env("SETUP_PATH", self.at("bin"));
        let server = format!("file://{}", self.at("server").display());
        command.env("RUSTUP_UPDATE_ROOT", server);
        command
    }

    /// Runs the script without a terminal. Returns its status and what it printed.
    fn bootstrap(&self, args: &[&str]) -> (i32, String) {
        // A session of its own has no terminal that could be asked.
        let mut command = self.command(&self.at("bin/setsid"));
        command.arg("--wait").arg(self.at("bin/sh")).arg(script()).args(args);
        let Output { status, stdout, stderr } = command.output().expect("it runs");
        let printed = [stdout, stderr].concat();
        (status.code().unwrap_or(-1), String::from_utf8_lossy(&printed).into_owned())
    }

    fn notes(&self) -> Vec<String> {
        let notes = fs::read_to_string(self.at("notes")).unwrap_or_default();
        notes.lines().map(str::to_owned).collect()
    }
}

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/bootstrap")
}

fn write_program(path: &Path, does: &str) {
    harness::write_script(path, &format!("#!/bin/sh\n{does}\n")).expect("can be written");
}

const INIT: &str =
    "rustup-init -y --no-modify-path --profile minimal --component clippy --component rustfmt";

#[test]
fn it_changes_nothing_without_an_answer() {
    let machine = Machine::new();
    machine.serves_rustup("99.1.0");
    let (status, printed) = machine.bootstrap(&["build"]);
    assert_eq!(status, 2, "{printed}");
    assert!(printed.contains("by apt: make git curl") && printed.contains("--yes"), "{printed}");
    assert!(
        printed.contains("for make build: build-essential") && printed.contains("Rust 1."),
        "{printed}"
    );
    assert_eq!(machine.notes(), [""; 0]);
}

#[test]
fn missing_programs_are_installed_and_make_runs_with_the_toolchain() {
    let machine = Machine::new();
    machine.serves_rustup("99.1.0");
    let (status, printed) = machine.bootstrap(&["--yes", "package"]);
    assert_eq!(status, 0, "{printed}");
    let notes = machine.notes();
    assert_eq!(notes[0], "-q update");
    assert!(
        notes[1].starts_with("-q install -y --no-install-recommends make git curl"),
        "{notes:?}"
    );
    assert_eq!(notes[2..], [INIT.to_owned(), "make package, cargo 99.1.0".to_owned()]);
    // Where everything is there, nothing is asked and nothing fetched.
    machine.has("cc", "");
    let (status, printed) = machine.bootstrap(&["build"]);
    assert_eq!((status, machine.notes().len()), (0, 5), "{printed}");
    assert_eq!(machine.notes()[4], "make build, cargo 99.1.0");
}

#[test]
fn a_download_shows_its_progress_on_a_terminal() {
    let real = harness::program(&["curl"]).expect("curl");
    let terminal = harness::program(&["script"]).expect("a tool of every system");
    for (has_terminal, option) in [(false, "--silent"), (true, "--progress-bar")] {
        let machine = Machine::new();
        machine.serves_rustup("99.1.0");
        machine.has("make", "");
        machine.has("git", "");
        let note = "echo \"curl $*\" >>\"$NOTES\"";
        machine.has("curl", &format!("{note}\nexec {} \"$@\"", real.display()));
        let ended = if has_terminal {
            let shell = machine.at("bin/sh");
            let line = format!("{} {} --yes build", shell.display(), script().display());
            let mut command = machine.command(&terminal);
            command.args(["-qec", &line, "/dev/null"]).output().expect("it runs").status.code()
        } else {
            Some(machine.bootstrap(&["--yes", "build"]).0)
        };
        let notes = machine.notes();
        let fetched: Vec<&String> = notes.iter().filter(|note| note.starts_with("curl ")).collect();
        assert_eq!((ended, fetched.len()), (Some(0), 2), "{notes:?}");
        assert!(fetched.iter().all(|note| note.contains(option)), "{notes:?}");
    }
}

#[test]
fn a_failure_is_reported() {
    // A download that is not what its sum says.
    let machine = Machine::new();
    machine.serves_rustup("99.1.0");
    let arch = std::env::consts::ARCH;
    let sum = machine.at(&format!("server/dist/{arch}-unknown-linux-gnu/rustup-init.sha256"));
    fs::write(&sum, "0".repeat(64)).expect("written");
    let (status, printed) = machine.bootstrap(&["--yes", "build"]);
    assert!(status == 4 && printed.contains("not what the server says"), "{status}: {printed}");
    assert!(!machine.notes().iter().any(|note| note.starts_with("rustup-init")));
    // No server.
    fs::remove_file(&sum).expect("removed");
    let (status, printed) = machine.bootstrap(&["--yes", "build"]);
    assert!(status == 4 && printed.contains("cannot be fetched"), "{status}: {printed}");
    // A Rust that is too old; rustup knows no newer one.
    machine.has("cargo", "echo cargo 1.2.0");
    machine.has("rustup", "echo \"rustup $*\" >>\"$NOTES\"");
    let (status, printed) = machine.bootstrap(&["--yes", "build"]);
    assert!(status == 4 && printed.contains("is found is 1.2.0"), "{status}: {printed}");
    assert_eq!(machine.notes().last().map(String::as_str), Some("rustup update stable"));
    // No apt, and no way to become root.
    let machine = Machine::new();
    machine.has("id", "echo 1000");
    let (status, printed) = machine.bootstrap(&["--yes", "build"]);
    assert!(status == 3 && printed.contains("as root"), "{status}: {printed}");
    fs::remove_file(machine.at("bin/apt-get")).expect("removed");
    let (status, printed) = machine.bootstrap(&["--yes", "build"]);
    assert!(
        status == 3 && printed.contains("no apt-get") && printed.contains("make git curl"),
        "{printed}"
    );
    assert_eq!(machine.bootstrap(&["--no-such-option"]).0, 2);
}

#[test]
fn the_real_rustup_installs_a_toolchain_for_the_user() {
    if harness::program(&["rustup"]).is_err() {
        eprintln!("skipped: there is no rustup to pack");
        return;
    }
    let dir = PrivateDir::temporary("rustup").expect("a directory");
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts");
    let server = dir.path().join("server");
    let packed =
        Command::new(scripts.join("rustup-server")).arg(&server).status().expect("it runs");
    assert!(packed.success());
    let mut command = Command::new("sh");
    command.arg(scripts.join("bootstrap")).args(["--yes", "help"]).env("HOME", dir.path());
    command.env("PATH", "/usr/bin:/bin").stdin(Stdio::null());
    for name in ["CARGO", "CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN"] {
        command.env_remove(name);
    }
    for name in ["RUSTUP_UPDATE_ROOT", "RUSTUP_DIST_SERVER"] {
        command.env(name, format!("file://{}", server.display()));
    }
    let output = command.output().expect("it runs");
    let printed = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success() && printed.contains("the example site"), "{printed}");
    let cargo = dir.path().join(".cargo/bin/cargo");
    for arguments in [["--version", "--verbose"], ["clippy", "--version"], ["fmt", "--version"]] {
        let mut command = Command::new(&cargo);
        command.args(arguments).env("HOME", dir.path());
        let version = command.env_remove("RUSTUP_TOOLCHAIN").env_remove("RUSTUP_HOME").output();
        assert!(version.expect("it runs").status.success(), "{arguments:?}");
    }
    assert!(!dir.path().join(".profile").exists(), "the user's shell is left alone");
}
