//! Configured files and directories are checked before they are used: a file that another user could have put
//! there is refused with the remedy, a link is not written through, and a FIFO does not block the start.

use acceptance::{BOUND, Site, binary};
use harness::Deadline;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::fs::{self, Permissions};
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

/// The output of a start that must fail. A start that blocks is ended, and fails the test.
fn refusal(site: &Site, config: &str) -> String {
    let file = site.config(config, "").display().to_string();
    let mut command = Command::new(binary());
    command.arg("serve").arg(site.root()).args(["--config", &file, "--memory", "64M"]);
    command.args(["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it runs");
    let deadline = Deadline::after(BOUND);
    while child.try_wait().expect("a child").is_none() && !deadline.passed() {
        std::thread::park_timeout(std::time::Duration::from_millis(2));
    }
    let _ = child.kill();
    let status = child.wait().expect("it ended");
    let mut said = String::new();
    child.stderr.take().expect("piped").read_to_string(&mut said).expect("a text");
    assert_eq!(status.code(), Some(1), "{config}: {said}");
    said
}

/// A database is of no use without a rule.
const CHANGE: &str = "[[change]]\ntable = \"news\"\ntags = [\"news\"]\n";

fn fifo(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).expect("a FIFO");
}

fn directory(path: &Path, mode: u32) {
    fs::create_dir(path).expect("a directory");
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("its mode");
}

fn snapshots(directory: &Path) -> String {
    format!("[snapshot]\ndirectory = {directory:?}\nunwatched = \"serve\"\n")
}

#[test]
fn a_snapshot_directory_that_others_may_write_is_refused() {
    let site = Site::new(&[]);
    let (shared, victim) = (site.at("shared"), site.at("victim"));
    directory(&shared, 0o777);
    fs::write(&victim, "precious").expect("written");
    for name in ["lock", "running", "snapshot.new", "journal.new", "unpublished"] {
        symlink(&victim, shared.join(format!("site.{name}"))).expect("a link");
    }
    let said = refusal(&site, &snapshots(&shared));
    assert!(said.contains("snapshot.directory") && said.contains("chmod go-w"), "{said}");
    assert_eq!(fs::read(&victim).expect("it is there"), b"precious");
}

#[test]
fn links_and_fifos_in_a_snapshot_directory_are_not_used() {
    let site = Site::new(&[]);
    let (own, victim) = (site.at("own"), site.at("victim"));
    directory(&own, 0o700);
    fs::write(&victim, "precious").expect("written");
    // The name of the files is that of the site.
    drop(site.serve(&snapshots(&own)));
    let mut all = fs::read_dir(&own).expect("a list").flatten().map(|one| one.path());
    let lock = all.find(|path| path.extension().is_some_and(|end| end == "lock"));
    let lock = lock.expect("there is a lock");
    for place in [fifo as fn(&Path), |path: &Path| fs::create_dir(path).expect("made")] {
        fs::remove_file(&lock).expect("removed");
        place(&lock);
        let said = refusal(&site, &snapshots(&own));
        assert!(said.contains("and not a file"), "{said}");
        fs::remove_file(&lock).or_else(|_| fs::remove_dir(&lock)).expect("removed");
        fs::write(&lock, "").expect("written");
    }
    fs::remove_file(&lock).expect("removed");
    symlink(&victim, &lock).expect("a link");
    assert!(refusal(&site, &snapshots(&own)).contains("a symbolic link"));
    assert_eq!(fs::read(&victim).expect("it is there"), b"precious");
}

#[test]
fn every_other_configured_file_is_checked() {
    let site = Site::new(&[]);
    let (pipe, open, target) = (site.at("pipe"), site.at("open"), site.at("target"));
    fifo(&pipe);
    for file in [&open, &target] {
        fs::write(file, "a secret of more than thirty-two characters").expect("written");
    }
    fs::set_permissions(&open, Permissions::from_mode(0o666)).expect("its mode");
    let link = site.at("link");
    symlink(&target, &link).expect("a link");
    let tls = |certificate: &Path, key: &Path| {
        format!(
            "listen_tls = \"127.0.0.1:0\"\n[[tls]]\ncertificate = {certificate:?}\nkey = {key:?}\n"
        )
    };
    let database = |file: &Path| {
        format!("[[database]]\nurl = \"mysql://a@localhost/b\"\npassword_file = {file:?}\n{CHANGE}")
    };
    let of_kinds = |config: &dyn Fn(&Path) -> String| {
        let said = refusal(&site, &config(&pipe));
        assert!(said.contains("it is a FIFO and not a file"), "{said}");
        let said = refusal(&site, &config(&open));
        assert!(said.contains("other users may write it: chmod go-w"), "{said}");
    };
    of_kinds(&|file| format!("admin_token_file = {file:?}\n"));
    of_kinds(&|file| format!("[cookies]\nsecret_file = {file:?}\n"));
    of_kinds(&|file| format!("[purge]\ntoken_file = {file:?}\n"));
    of_kinds(&|file| format!("[site]\nredirect_files = {file:?}\n"));
    of_kinds(&|file| tls(file, file));
    of_kinds(&database);
    for (to, why) in [(&link, "a symbolic link"), (&open, "other users may write it: chmod go-w")] {
        let said = refusal(&site, &format!("[access_log]\nto = {to:?}\n"));
        assert!(said.contains(why), "{said}");
    }
    // A log may be read from a pipe. The start does not wait for the reader.
    drop(site.serve(&format!("[access_log]\nto = {pipe:?}\n")));
    // Uploads have no name, so a sticky directory such as /tmp is enough for them.
    let shared = site.at("uploads");
    directory(&shared, 0o777);
    let said = refusal(&site, &format!("uploads = {shared:?}\n"));
    assert!(said.contains("uploads") && said.contains("chmod go-w"), "{said}");
    fs::set_permissions(&shared, Permissions::from_mode(0o1777)).expect("its mode");
    drop(site.serve(&format!("uploads = {shared:?}\n")));
}
