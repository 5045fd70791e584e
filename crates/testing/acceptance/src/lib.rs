//! Shared code of the acceptance tests: a small PHP site in a private directory, the real binary in front of
//! it, a raw connection, and bounded waits for a condition.
//!
//! Scripts and tests synchronise through files in the directory `notes`: a script waits for a note with
//! `wait_for('go')` and leaves one with `note('started')`. A test can thus hold a render at an exact point.
//! Nothing here sleeps for a fixed time to let something happen, and no port or path is fixed. The tests decide
//! which results are correct.

mod frames;
pub mod http2;
pub mod mediawiki;
mod mounted_tmpfs;
mod played;
mod raw;
mod trial_visitors;

pub use frames::{Frames, block, block_of};
pub use harness::skip;
pub use mounted_tmpfs::MountedTmpfs;
pub use played::{asked, asked_again, before_origin, comes_again};
pub use raw::{Answer, Raw};
pub use trial_visitors::{TrialVisitors, trial_config, trial_found, trial_report, trial_suspects};

use harness::stand::AuditCounts;
use harness::{Address, Client, Deadline, Pagewell, PrivateDir, Request, Response, cpu};
use socket2::{Domain, Socket, Type};
use std::fs;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

/// The timeout of every wait.
pub const BOUND: Duration = Duration::from_secs(60);

/// Included before each script: notes, unbuffered output, and a cache lifetime, which is longer than any test takes.
const PRELUDE: &str = r#"<?php
function note(string $name): void
{
    $file = getenv('NOTES') . '/' . $name;
    file_put_contents("$file.new", (string) getmypid());
    rename("$file.new", $file);
}
function wait_for(string $name): void
{
    for ($left = 30000; !file_exists(getenv('NOTES') . '/' . $name); $left--) {
        if ($left === 0) {
            exit("no note $name");
        }
        usleep(2000);
        clearstatcache();
    }
}
function out(string $text): void
{
    while (ob_get_level() > 0) {
        ob_end_flush();
    }
    echo $text;
    flush();
}
function keep(int $seconds = 3600): void
{
    header("Cache-Control: max-age=$seconds");
}
"#;

/// The program under test: the one in `PAGEWELL_BIN`, or the one that was built beside the tests.
///
/// # Panics
/// If there is none, or if one of its source files is newer: cargo does not build a program for the tests of
/// another package.
pub fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        let binary = harness::binary().expect("the program is built");
        if std::env::var_os("PAGEWELL_BIN").is_none()
            && let Some(source) = newer_source(&binary)
        {
            panic!(
                "{} is older than {}: cargo build -p pagewell --features settable-clock",
                binary.display(),
                source.display()
            );
        }
        binary
    })
}

/// The first source file of the program that is newer than the program.
fn newer_source(binary: &Path) -> Option<PathBuf> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let built = fs::metadata(binary).and_then(|file| file.modified()).ok()?;
    let mut left: Vec<PathBuf> = ["cache", "protocols", "server"]
        .iter()
        .filter_map(|layer| fs::read_dir(crates.join(layer)).ok())
        .flat_map(|entries| entries.flatten().map(|entry| entry.path().join("src")))
        .collect();
    while let Some(path) = left.pop() {
        if let Ok(entries) = fs::read_dir(&path) {
            left.extend(entries.flatten().map(|entry| entry.path()));
        } else if path.extension().is_some_and(|end| end == "rs")
            && fs::metadata(&path).and_then(|file| file.modified()).is_ok_and(|at| at > built)
        {
            return Some(path);
        }
    }
    None
}

/// A site in a private directory, which is removed when the site is dropped.
pub struct Site {
    dir: PrivateDir,
}

impl Site {
    /// A site with these files (path, content). Scripts begin after `<?php`.
    pub fn new(files: &[(&str, &str)]) -> Site {
        let site = Site { dir: PrivateDir::temporary("site").expect("a directory can be made") };
        for (dir, mode) in [("root", 0o755), ("notes", 0o777)] {
            fs::create_dir(site.at(dir)).expect("a directory can be made");
            let mode = fs::Permissions::from_mode(mode);
            fs::set_permissions(site.at(dir), mode).expect("its mode can be set");
        }
        fs::write(site.at("prelude.php"), PRELUDE).expect("a file can be written");
        site.file("index.php", "<?php header('X-Script: index'); echo $_SERVER['REQUEST_URI'];");
        for (path, content) in files {
            site.file(path, content);
        }
        site
    }

    /// A path beside the document root.
    pub fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The document root of the site.
    pub fn root(&self) -> PathBuf {
        self.at("root")
    }

    /// Writes a file below the document root, and returns its path.
    pub fn file(&self, path: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let full = self.root().join(path);
        if let Some(parent) = full.parent() {
            fs::create_dir_all(parent).expect("a directory can be made");
        }
        fs::write(&full, content).expect("a file can be written");
        full
    }

    /// Starts Pagewell with its own php-fpm. `config` is additional TOML; tables must come last in it.
    pub fn serve(&self, config: &str) -> Pagewell {
        self.serve_with_ini(config, "")
    }

    /// Starts Pagewell like [`Site::serve`], with additional lines for php.ini.
    pub fn serve_with_ini(&self, config: &str, ini: &str) -> Pagewell {
        let file = self.config(config, ini).display().to_string();
        self.serve_with_args(&["--config", &file])
    }

    /// Starts Pagewell with these arguments, the site's directory and a small page budget.
    pub fn serve_with_args(&self, args: &[&str]) -> Pagewell {
        let root = self.root().display().to_string();
        let args = [&[root.as_str(), "--memory", "64M"], args].concat();
        Pagewell::start(binary(), &args).expect("pagewell starts")
    }

    /// Writes the configuration that [`Site::serve`] uses, and returns its path.
    pub fn config(&self, config: &str, ini: &str) -> PathBuf {
        let notes = self.at("notes").display().to_string();
        let prelude = self.at("prelude.php").display().to_string();
        let text = format!(
            "{config}\n[php.env]\nNOTES = {notes:?}\n[php.ini]\nauto_prepend_file = {prelude:?}\n\
             post_max_size = \"64M\"\ndisplay_errors = \"0\"\n{ini}\n"
        );
        let file = self.at("pagewell.toml");
        fs::write(&file, text).expect("a file can be written");
        file
    }

    /// The command for a process that takes over from `first` at the addresses that `first` was given, with the
    /// configuration of [`Site::serve`].
    pub fn next(&self, config: &str, first: &Pagewell) -> Command {
        let shown = |address: &Address| match address {
            Address::Tcp(address) => address.to_string(),
            Address::Unix(_) => panic!("a TCP address"),
        };
        let mut command = Command::new(binary());
        command.arg("serve").arg(self.root()).args(["--memory", "64M", "--take-over"]);
        command.arg("--config").arg(self.config(config, ""));
        command.args(["--listen", &shown(first.address()), "--admin", &shown(first.admin())]);
        command
    }

    /// Starts a process that takes over from `first`, and waits until it serves.
    pub fn take_over(&self, config: &str, first: &Pagewell) -> Pagewell {
        let dir = PrivateDir::temporary("next").expect("a directory can be made");
        Pagewell::start_command(dir, &mut self.next(config, first)).expect("it takes over")
    }

    /// Leaves a note for scripts that wait for it.
    pub fn note(&self, name: &str) {
        fs::write(self.at("notes").join(name), "").expect("a note can be left");
    }

    /// Whether a script has left this note.
    pub fn has_note(&self, name: &str) -> bool {
        self.at("notes").join(name).exists()
    }

    /// Waits for a script's note, and returns the process id of the worker that left it.
    pub fn wait_for(&self, name: &str) -> u32 {
        until(&format!("a script notes {name}"), || self.has_note(name));
        let text = fs::read_to_string(self.at("notes").join(name)).expect("a note can be read");
        text.parse().unwrap_or_default()
    }

    /// Removes all notes of the site.
    pub fn clear_notes(&self) {
        for entry in fs::read_dir(self.at("notes")).expect("the notes can be listed").flatten() {
            // A script may be about to rename one.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Waits until `holds` returns true, at most [`BOUND`].
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Deadline::after(BOUND);
    while !holds() {
        assert!(!deadline.passed(), "not within {BOUND:?}: {what}");
        std::thread::park_timeout(Duration::from_millis(2));
    }
}

/// A client for the public address.
pub fn client(pagewell: &Pagewell) -> Client {
    Client::new(pagewell.address().clone()).within(BOUND)
}

/// A connection with a small receive buffer: unread data wait in Pagewell.
pub fn slow_client(pagewell: &Pagewell) -> TcpStream {
    let Address::Tcp(address) = pagewell.address() else { panic!("not TCP") };
    let socket = Socket::new(Domain::for_address(*address), Type::STREAM, None).expect("a socket");
    socket.set_recv_buffer_size(4 << 10).expect("a small buffer");
    socket.connect(&(*address).into()).expect("it accepts connections");
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(BOUND)).expect("can be set");
    stream
}

/// The number of times that a limit was reached.
pub fn limit_hit(pagewell: &Pagewell, key: &str) -> u64 {
    let stats = Client::new(pagewell.admin().clone()).get("/v1/stats").expect("an answer");
    let stats: serde_json::Value = serde_json::from_slice(&stats.content).expect("JSON");
    stats["limits_hit"][key].as_u64().expect("it is counted")
}

/// Moves the clock of Pagewell on.
pub fn advance(pagewell: &Pagewell, seconds: u64) {
    let content = format!(r#"{{"advance_ms":{}}}"#, seconds * 1_000);
    let clock = Request::new("POST", "/v1/clock")
        .header("Content-Type", "application/json")
        .content(content.as_bytes());
    let mut admin = Client::new(pagewell.admin().clone()).host("localhost");
    assert_eq!(admin.send(&clock).expect("an answer").status, 200);
}

/// The audit of a running Pagewell has found no wrong page, and watches none that is still stored. `accepted` are counters
/// of findings that the application explains. A short test may end before a comparison: nothing has to be compared.
///
/// # Panics
/// It has: with its log.
pub fn audit_found_nothing(pagewell: &Pagewell, accepted: &[&str]) {
    // The watch over a page that was purged ends a moment later.
    until("no page is watched", || counter(pagewell, "audit_watched") == 0);
    let mut counts = AuditCounts::default();
    counts.add(&pagewell.stats().expect("counters")).expect("those of an audit");
    counts.findings.retain(|name, _| !accepted.contains(name));
    assert!(counts.findings.is_empty(), "{:?}: {}", counts.findings, pagewell.log());
}

/// Limits the size of files that this process writes: the system accepts only as many bytes as fit. This
/// includes its log.
pub fn bound_files(pagewell: &Pagewell, bytes: Option<u64>) {
    use rustix::process::{Pid, Resource, Rlimit, prlimit};
    let pid = Pid::from_raw(pagewell.pid() as i32).expect("it has a number");
    let limit = Rlimit { current: bytes, maximum: None };
    prlimit(Some(pid), Resource::Fsize, limit).expect("it can be bounded");
}

/// Sends one request on its own connection, in a separate thread.
pub fn get_meanwhile(pagewell: &Pagewell, target: &str) -> std::thread::JoinHandle<Response> {
    let (mut client, target) = (client(pagewell), target.to_owned());
    std::thread::spawn(move || client.get(&target).expect("an answer"))
}

/// The value of Cache-Status.
pub fn cache_status(response: &Response) -> &str {
    response.header("cache-status").unwrap_or("none")
}

/// Whether the response is a cache hit.
pub fn is_hit(response: &Response) -> bool {
    cache_status(response).starts_with("pagewell; hit")
}

/// A counter of a running Pagewell.
pub fn counter(pagewell: &Pagewell, name: &str) -> u64 {
    let all = pagewell.stats().expect("the control interface answers");
    *all.get(name).unwrap_or_else(|| panic!("no counter {name} in {all:?}"))
}

/// The process id of Pagewell's php-fpm master, its only direct child.
pub fn php_master(pagewell: &Pagewell) -> Option<u32> {
    let all = cpu::descendants(pagewell.pid());
    all.get(1).copied().filter(|pid| cpu::is_running(*pid))
}
