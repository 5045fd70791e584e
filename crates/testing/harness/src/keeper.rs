//! A watcher process that cleans up after this process, however it ends.
//!
//! Normally, `drop` stops every server. It does not run if a test is killed, aborts, or keeps a server in a
//! static. For these cases a small shell process is started with the first server. When its input ends, it
//! stops the processes that are still on its list (SIGTERM, five seconds, SIGKILL to their process group) and
//! removes the temporary directories. The list is updated by lines on its standard input: `+ PID`, `- PID`, `d
//! DIR`, `u DIR`. The watcher is only a safety net: if it cannot be started, everything else works.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// The prefix of directories that the watcher may remove.
pub(crate) const REMOVABLE: &str = "pagewell-";

static KEEPER: Mutex<Option<ChildStdin>> = Mutex::new(None);

const SCRIPT: &str = r#"
trap '' INT TERM HUP
pids= dirs=
without() { for each in $1; do [ "$each" = "$2" ] || printf '%s ' "$each"; done; }
while read -r sign what; do
    case $sign in
        +) pids="$pids $what" ;;
        -) pids=$(without "$pids" "$what") ;;
        d) dirs="$dirs $what" ;;
        u) dirs=$(without "$dirs" "$what") ;;
    esac
done
for pid in $pids; do kill -TERM "$pid"; done
left=50
while [ $left -gt 0 ]; do
    alive=
    for pid in $pids; do kill -0 "$pid" && alive=yes; done
    [ -n "$alive" ] || break
    sleep 0.1
    left=$((left - 1))
done
for pid in $pids; do kill -KILL -"$pid"; done
for dir in $dirs; do
    case ${dir##*/} in pagewell-*) rm -rf -- "$dir" ;; esac
done
"#;

/// Adds a process to the list.
pub(crate) fn watch(pid: u32) {
    send_line(&format!("+ {pid}\n"));
}

/// Removes a process from the list, after its end.
pub(crate) fn forget(pid: u32) {
    send_line(&format!("- {pid}\n"));
}

/// Adds a temporary directory to the list.
pub(crate) fn watch_dir(path: &Path) {
    if let Some(path) = plain(path) {
        send_line(&format!("d {path}\n"));
    }
}

/// Removes a directory from the list, after it has been removed.
pub(crate) fn forget_dir(path: &Path) {
    if let Some(path) = plain(path) {
        send_line(&format!("u {path}\n"));
    }
}

/// The path as text; `None` if the watcher's shell would interpret it differently.
fn plain(path: &Path) -> Option<&str> {
    let text = path.to_str()?;
    let safe = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+".contains(&byte);
    text.bytes().all(safe).then_some(text)
}

fn send_line(line: &str) {
    let mut keeper = KEEPER.lock().unwrap_or_else(PoisonError::into_inner);
    if keeper.is_none() {
        *keeper = start();
    }
    if let Some(input) = keeper.as_mut() {
        let _ = input.write_all(line.as_bytes());
    }
}

fn start() -> Option<ChildStdin> {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", SCRIPT]).current_dir("/").process_group(0);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().ok()?.stdin.take()
}
