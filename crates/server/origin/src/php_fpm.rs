//! Pagewell's own php-fpm: finds the program, writes its configuration into a private directory, starts
//! it, and ends it at shutdown. If php-fpm exits or its socket disappears, it is restarted with
//! back-off.
//!
//! php-fpm has a process group of its own, so that its workers can be ended even if their master was
//! killed. The kernel signals it if Pagewell dies. All workers are started at once. The reason: a
//! worker with a kept-alive connection looks idle to php-fpm, which then would not start a worker for a
//! new connection.

use super::child::{end_with_us, limit_open_files};
use super::private_directory::{DirectoryEntry, PrivateDirectory};
use crate::SERVICE_MANAGER_ENVIRONMENT;
use capture::relay::{PeerUsers, users};
use capture::{CaptureAccess, CaptureReporter, CaptureSource, CaptureUse};
use config::OwnPhp;
use std::fmt::Write as _;
use std::io::Write as _;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use telemetry::open_files;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::watch;

/// The initial and the maximum wait before php-fpm is restarted.
const BACK_OFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));
/// After php-fpm has run for this time, the next wait is the initial one again.
const WELL_AFTER: Duration = Duration::from_secs(10);
/// How much higher the `oom_score_adj` of php-fpm is than Pagewell's (proc(5)), so that the kernel
/// kills it first when memory runs out.
const GIVES_WAY_BY: i32 = 300;
/// Time limit for php-fpm to open its socket.
const START_TIMEOUT: Duration = Duration::from_secs(10);
/// How often the socket's existence is checked. A clean-up job for `/run` or `/tmp` may delete it, and
/// php-fpm continues to run unreachable.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How long the workers may take to finish their requests at shutdown.
const QUIT_TIMEOUT: Duration = Duration::from_secs(3);

/// A running php-fpm; ended by [`PhpFpm::stop`].
pub struct PhpFpm {
    socket: PathBuf,
    captures: Option<CaptureSource>,
    stop: watch::Sender<bool>,
    watcher: tokio::task::JoinHandle<()>,
}

impl PhpFpm {
    /// Starts php-fpm, and waits until it accepts connections. With `capture` its scripts can report their
    /// statements ([`PhpFpm::captures`]).
    ///
    /// # Errors
    /// The program is missing or does not start: a sentence for the operator with its output.
    pub async fn start(options: &OwnPhp, capture: CaptureUse) -> Result<PhpFpm, String> {
        let binary = find_binary(options)?;
        let (directory, captures) = match capture {
            CaptureUse::Off => (PrivateDirectory::make(DirectoryEntry::Owner)?, None),
            capture => with_captures(options, capture)?,
        };
        let socket = directory.path().join("php.sock");
        let file = captures.as_ref().and_then(CaptureSource::file);
        let text = configuration(options, &socket, file.as_deref());
        let own = PrivateFpm {
            binary,
            directory,
            socket: socket.clone(),
            captures: captures.clone(),
            text,
            at_start: settings_at_start(options),
        };
        let child = own.start().await?;
        tracing::info!(
            event = "php-fpm-started",
            binary = %own.binary.display(),
            pid = child.id(),
            children = options.children
        );
        let (stop, stopped) = watch::channel(false);
        let watcher = tokio::spawn(watch_over(own, child, stopped));
        Ok(PhpFpm { socket, captures, stop, watcher })
    }

    /// The socket that php-fpm listens on.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// The captures of its scripts, if it was started with any.
    pub fn captures(&self) -> Option<&CaptureSource> {
        self.captures.as_ref()
    }

    /// Ends php-fpm after its workers have finished, within a time limit.
    pub async fn stop(self) {
        let _ = self.stop.send(true);
        let _ = self.watcher.await;
    }
}

/// The program, directory and configuration with which php-fpm is started.
struct PrivateFpm {
    binary: PathBuf,
    directory: PrivateDirectory,
    socket: PathBuf,
    captures: Option<CaptureSource>,
    /// The content of the configuration file.
    text: String,
    /// The settings on the command line.
    at_start: Vec<String>,
}

impl PrivateFpm {
    /// Writes the configuration, and starts php-fpm with it. If its socket does not open, php-fpm is
    /// killed.
    async fn start(&self) -> Result<Child, String> {
        let config = self.directory.path().join("php-fpm.conf");
        write_secret(&config, &self.text)
            .map_err(|e| format!("{} cannot be written: {e}", config.display()))?;
        let mut child = spawn(&self.binary, &config, &self.at_start)?;
        if let Err(error) = wait_for_socket(&self.socket, &mut child, &self.binary).await {
            end_group(child.id());
            return Err(error);
        }
        Ok(child)
    }

    /// Creates the directory again if it was removed. The path stays the same, because the origin
    /// refers to the socket by it.
    fn restore(&mut self) -> Result<(), String> {
        if !self.directory.is_there() {
            self.directory.make_again()?;
        }
        self.restore_captures()
    }

    /// Creates the files and sockets of captures again if they were removed. Without the capture file, PHP
    /// answers no request.
    fn restore_captures(&self) -> Result<(), String> {
        match &self.captures {
            Some(captures) if !captures.are_there() => captures.restore(),
            _ => Ok(()),
        }
    }

    /// Completes when the socket has disappeared, or the capture file and cannot be written again.
    async fn is_gone(&self) {
        let mut looks = tokio::time::interval(LOOK_EVERY);
        loop {
            looks.tick().await;
            let is_gone = std::fs::symlink_metadata(&self.socket).is_err();
            if is_gone || self.restore_captures().is_err() {
                return;
            }
        }
    }
}

/// The directory with the files and sockets of captures, which the workers must be able to enter.
fn with_captures(
    options: &OwnPhp,
    mut capture: CaptureUse,
) -> Result<(PrivateDirectory, Option<CaptureSource>), String> {
    if capture == CaptureUse::Reports(CaptureReporter::WordPress)
        && options.ini.iter().any(|(name, _)| name == "auto_prepend_file")
    {
        return Err(
            "php.ini: auto_prepend_file cannot be set here while statements are captured. \
                    Set it in PHP's own php.ini, from where the capture file loads it"
                .to_owned(),
        );
    }
    // As root, the workers run as another user.
    let (entry, access) = if rustix::process::geteuid().is_root() {
        let access = match workers(options) {
            PeerUsers::Only(user) => CaptureAccess::User(user),
            PeerUsers::Everyone => CaptureAccess::Everyone,
        };
        (DirectoryEntry::Everyone, access)
    } else {
        (DirectoryEntry::Owner, CaptureAccess::Owner)
    };
    let directory = PrivateDirectory::make(entry)?;
    let is_closed = |above: &&Path| {
        std::fs::metadata(above).is_ok_and(|found| found.permissions().mode() & 0o001 == 0)
    };
    if entry == DirectoryEntry::Everyone
        && let Some(closed) = directory.path().ancestors().find(is_closed)
    {
        return Err(format!(
            "the user {user} cannot enter the directory of captures below {closed}: chmod o+x {closed}, or run Pagewell as {user}",
            user = options.user,
            closed = closed.display(),
        ));
    }
    if let CaptureUse::Relay(target) = &mut capture {
        target.users = workers(options);
    }
    let captures = CaptureSource::open(directory.path(), access, capture)?;
    Ok((directory, captures))
}

/// The users of the workers, as far as `/etc/passwd` names them.
fn workers(options: &OwnPhp) -> PeerUsers {
    if !rustix::process::geteuid().is_root() {
        return PeerUsers::Only(rustix::process::geteuid().as_raw());
    }
    let named = options.user.parse().ok().or_else(|| users::number_of(&options.user));
    named.map_or(PeerUsers::Everyone, PeerUsers::Only)
}

/// Writes a file that only its owner can read: it may have passwords for the scripts.
fn write_secret(path: &Path, text: &str) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}

/// The configured program, or the newest php-fpm in `PATH` or the usual directories.
///
/// # Errors
/// There is no such program: a sentence for the operator.
pub fn find_binary(options: &OwnPhp) -> Result<PathBuf, String> {
    if let Some(binary) = &options.binary {
        return if binary.is_file() {
            Ok(binary.clone())
        } else {
            Err(format!("php.binary: there is no file {}", binary.display()))
        };
    }
    newest_binary().ok_or_else(|| {
        "no php-fpm was found. Install it (on Debian and Ubuntu: apt install php-fpm), name it with php.binary, or point --php or --origin at what renders the pages".to_owned()
    })
}

/// The newest php-fpm in `PATH` or the usual directories. Its name is `php-fpm` with or without a
/// version number; a file with another suffix is not run.
pub fn newest_binary() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let usual = ["/usr/sbin", "/usr/local/sbin", "/usr/bin", "/usr/local/bin", "/opt/php/sbin"];
    let directories = std::env::split_paths(&path).chain(usual.iter().map(PathBuf::from));
    let mut found: Vec<(Vec<u32>, PathBuf)> = Vec::new();
    for directory in directories {
        for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
            let name = entry.file_name();
            if let Some(version) = name.to_str().and_then(version_in_name) {
                found.push((version, entry.path()));
            }
        }
    }
    found.into_iter().max_by(|a, b| a.0.cmp(&b.0)).map(|(_, path)| path)
}

/// The version in a name such as `php-fpm8.2`. Plain `php-fpm` counts as newer than all versions.
fn version_in_name(name: &str) -> Option<Vec<u32>> {
    let rest = name.strip_prefix("php-fpm")?.trim_start_matches('-');
    match rest {
        "" => Some(vec![u32::MAX]),
        version => version.split('.').map(|part| part.parse().ok()).collect(),
    }
}

/// The content of php-fpm's configuration file.
fn configuration(options: &OwnPhp, socket: &Path, capture_file: Option<&Path>) -> String {
    let root = rustix::process::geteuid().is_root();
    let mut text = format!(
        "[global]\nerror_log = /proc/self/fd/2\nlog_level = notice\nlog_limit = 8192\ndaemonize = no\n\n\
         [pagewell]\nlisten = {}\nlisten.mode = 0600\nlisten.backlog = 4096\n\
         pm = static\npm.max_children = {}\n\
         catch_workers_output = yes\ndecorate_workers_output = no\nclear_env = yes\n\
         security.limit_extensions = .{}\n",
        socket.display(),
        options.children,
        options.scripts.join(" ."),
    );
    if root {
        let _ = writeln!(text, "user = {}", options.user);
    }
    for (name, value) in &options.env {
        let _ = writeln!(text, "env[{name}] = {}", quoted(value));
    }
    let _ = writeln!(text, "php_admin_flag[log_errors] = on");
    if let Some(file) = capture_file {
        // In the pool and not with each request (PHP_VALUE): see docs/decisions/capture.md.
        let value = quoted(&file.display().to_string());
        let _ = writeln!(text, "php_value[auto_prepend_file] = {value}");
    }
    for (name, value) in &options.ini {
        let value = match (name.as_str(), capture_file.and_then(Path::parent)) {
            ("open_basedir", Some(directory)) if !value.is_empty() => {
                format!("{value}:{}/", directory.display())
            }
            _ => value.clone(),
        };
        let _ = writeln!(text, "php_admin_value[{name}] = {}", quoted(&value));
    }
    text
}

/// Quotes a value for php-fpm's configuration parser.
fn quoted(value: &str) -> String {
    format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
}

/// The settings that PHP reads only when it starts: those of extensions with shared memory. A pool's configuration
/// comes too late for them.
fn settings_at_start(options: &OwnPhp) -> Vec<String> {
    let is_read_at_start = |name: &str| name.starts_with("apc.") || name.starts_with("opcache.");
    let settings = options.ini.iter().filter(|(name, _)| is_read_at_start(name));
    settings.map(|(name, value)| format!("{name}={}", quoted(value))).collect()
}

fn spawn(binary: &Path, config: &Path, at_start: &[String]) -> Result<Child, String> {
    let mut command = Command::new(binary);
    command.arg("--nodaemonize").arg("--fpm-config").arg(config);
    for setting in at_start {
        command.arg("-d").arg(setting);
    }
    if rustix::process::geteuid().is_root() {
        command.arg("--allow-to-run-as-root");
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).process_group(0);
    // A php-fpm with systemd support would otherwise report to Pagewell's service manager that it is
    // ready.
    for name in SERVICE_MANAGER_ENVIRONMENT {
        command.env_remove(name);
    }
    // Pagewell's setting for huge pages does not suit PHP's workers, which are small and many.
    command.env_remove("GLIBC_TUNABLES");
    end_with_us(&mut command);
    if let Some(limit) = open_files::earlier_limit() {
        limit_open_files(&mut command, limit);
    }
    let mut child =
        command.spawn().map_err(|e| format!("{} cannot be started: {e}", binary.display()))?;
    if let Some(stderr) = child.stderr.take() {
        tokio::spawn(pass_on_log(stderr));
    }
    if let Some(pid) = child.id() {
        give_way(pid);
    }
    Ok(child)
}

/// Raises the `oom_score_adj` of php-fpm, which its workers inherit. So if memory runs out, the kernel
/// kills a worker, which costs one page, rather than the cache. Errors are ignored.
fn give_way(pid: u32) {
    let own = std::fs::read_to_string("/proc/self/oom_score_adj").unwrap_or_default();
    let adjusted = own.trim().parse().unwrap_or(0_i32).saturating_add(GIVES_WAY_BY).min(1000);
    let _ = std::fs::write(format!("/proc/{pid}/oom_score_adj"), adjusted.to_string());
}

/// Forwards php-fpm's log to Pagewell's log, line by line.
async fn pass_on_log(stderr: tokio::process::ChildStderr) {
    let mut lines = BufReader::new(stderr).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let line = line.split_once("] ").map_or(line.as_str(), |(_, rest)| rest);
        match line {
            _ if line.contains("ERROR") || line.contains("ALERT") => {
                tracing::error!(event = "php-fpm-log", line)
            }
            _ if line.contains("WARNING") => tracing::warn!(event = "php-fpm-log", line),
            _ => tracing::debug!(event = "php-fpm-log", line),
        }
    }
}

async fn wait_for_socket(socket: &Path, child: &mut Child, binary: &Path) -> Result<(), String> {
    let deadline = tokio::time::Instant::now() + START_TIMEOUT;
    loop {
        if tokio::net::UnixStream::connect(socket).await.is_ok() {
            // Only the owner, the user that runs Pagewell, may connect.
            let _ = std::fs::set_permissions(socket, std::fs::Permissions::from_mode(0o600));
            return Ok(());
        }
        if let Ok(Some(status)) = child.try_wait() {
            return Err(format!(
                "{} ended at once ({status}); what it said is in the log above",
                binary.display()
            ));
        }
        if tokio::time::Instant::now() > deadline {
            return Err(format!(
                "{} did not open its socket within {START_TIMEOUT:?}",
                binary.display()
            ));
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Restarts php-fpm whenever it exits or its socket disappears, until shutdown.
async fn watch_over(mut own: PrivateFpm, mut child: Child, mut stopped: watch::Receiver<bool>) {
    let mut back_off = BACK_OFF.0;
    loop {
        let group = child.id();
        let since = tokio::time::Instant::now();
        let status = tokio::select! {
            status = child.wait() => status.map_or_else(|error| error.to_string(), |status| status.to_string()),
            () = own.is_gone() => format!("its socket {} is gone", own.socket.display()),
            _ = stopped.changed() => return quit(child).await,
        };
        if since.elapsed() > WELL_AFTER {
            back_off = BACK_OFF.0;
        }
        tracing::error!(event = "php-fpm-died", status, again_in = ?back_off);
        end_group(group);
        let _ = child.wait().await;
        loop {
            tokio::select! {
                () = tokio::time::sleep(back_off) => {}
                _ = stopped.changed() => return,
            }
            back_off = (back_off * 2).min(BACK_OFF.1);
            let started = match own.restore() {
                Ok(()) => own.start().await,
                Err(error) => Err(error),
            };
            match started {
                Ok(new) => {
                    tracing::info!(event = "php-fpm-started", pid = new.id());
                    child = new;
                    break;
                }
                Err(error) => tracing::error!(event = "php-fpm-start-failed", error),
            }
        }
    }
}

/// Kills the workers of a master that has exited. They would serve the old socket for ever.
fn end_group(group: Option<u32>) {
    let group = group.and_then(|id| rustix::process::Pid::from_raw(id as i32));
    if let Some(group) = group {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
}

async fn quit(mut child: Child) {
    let group = child.id();
    let pid = group.and_then(|id| rustix::process::Pid::from_raw(id as i32));
    if let Some(pid) = pid {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::QUIT);
    }
    if tokio::time::timeout(QUIT_TIMEOUT, child.wait()).await.is_err() {
        end_group(group);
        let _ = child.wait().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_versions() {
        assert_eq!(version_in_name("php-fpm8.2"), Some(vec![8, 2]));
        assert!(version_in_name("php-fpm8.10") > version_in_name("php-fpm8.2"));
        assert_eq!(version_in_name("php-fpm"), Some(vec![u32::MAX]));
        assert_eq!(version_in_name("php-fpmx"), None);
        assert_eq!(version_in_name("php-fpm8.2-restart"), None);
        assert_eq!(version_in_name("php"), None);
    }

    #[test]
    fn values_are_quoted() {
        assert_eq!(quoted(r#"a"b\c"#), r#""a\"b\\c""#);
    }
}
