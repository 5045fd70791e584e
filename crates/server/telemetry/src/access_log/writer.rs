//! The destinations of the access log (a file, standard output, syslog), and the thread that writes to
//! them.
//!
//! | state of the writer | until |
//! |---|---|
//! | sleeps | a shard has its first line, or there is a request to reopen or exit |
//! | gathers | 100 ms have passed, a shard is half full, or there is such a request |
//! | writes all shards, one after the other | all are written |
//!
//! Lines that cannot be written are dropped and counted. The first failure is logged, and so is the
//! first success after it. A failed write is not retried, because retrying on a full disk would delay
//! later lines.

use super::{AccessLog, lock};
use crate::counters::Counter;
use config::AccessLogTo;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;
use tokio::sync::oneshot;

/// How long lines are gathered before a write: this many waits of this duration.
const GATHER: (u32, Duration) = (10, Duration::from_millis(10));
/// The syslog priority: facility local7, severity info, as nginx's default.
const PRIORITY: u8 = 23 * 8 + 6;

/// The destination of the access log's lines.
pub enum Sink {
    /// A file that is appended to.
    File {
        /// The path of the file, for reopening it.
        path: PathBuf,
        /// The open file.
        file: File,
        /// Whether the last write failed, so that the file may end with a partial line.
        is_torn: bool,
    },
    /// The standard output.
    Stdout,
    /// A syslog daemon on the same machine.
    Syslog {
        /// The path of the daemon's socket.
        path: PathBuf,
        /// The connection to it; `None` after an error, until the next write.
        socket: Option<UnixDatagram>,
    },
}

impl Sink {
    /// Opens the configured destination.
    ///
    /// # Errors
    /// The file or socket cannot be opened: a sentence for the operator.
    pub fn open(to: &AccessLogTo) -> Result<Sink, String> {
        let wrong = |path: &Path, error| format!("access_log.to: {}: {error}", path.display());
        match to {
            AccessLogTo::Stdout => Ok(Sink::Stdout),
            AccessLogTo::File(path) => {
                let file = append(path).map_err(|error| wrong(path, error))?;
                Ok(Sink::File { path: path.clone(), file, is_torn: false })
            }
            AccessLogTo::Syslog(path) => {
                let socket = connect(path).map_err(|error| wrong(path, error))?;
                Ok(Sink::Syslog { path: path.clone(), socket: Some(socket) })
            }
        }
    }

    /// Reopens the file; does nothing for other destinations.
    fn reopen(&mut self) -> io::Result<()> {
        if let Sink::File { path, file, is_torn } = self {
            *file = append(path)?;
            *is_torn = false;
        }
        Ok(())
    }

    /// Writes `lines`, which are complete, to the destination.
    fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        match self {
            Sink::Stdout => {
                let mut out = io::stdout().lock();
                out.write_all(lines)?;
                out.flush()
            }
            Sink::File { file, is_torn, .. } => {
                if *is_torn {
                    file.write_all(b"\n")?;
                }
                let written = file.write_all(lines);
                *is_torn = written.is_err();
                written
            }
            Sink::Syslog { path, socket } => {
                if socket.is_none() {
                    *socket = Some(connect(path)?);
                }
                let sent = socket.as_ref().map_or(Ok(()), |socket| send(socket, lines));
                if sent.is_err() {
                    *socket = None;
                }
                sent
            }
        }
    }
}

fn append(path: &Path) -> io::Result<File> {
    // Group members may read it, others may not: the log contains clients' addresses.
    trusted_files::open_log(path, 0o640)
}

fn connect(path: &Path) -> io::Result<UnixDatagram> {
    let socket = UnixDatagram::unbound()?;
    socket.connect(path)?;
    Ok(socket)
}

/// Sends one datagram per line, in the form of RFC 3164 that daemons read at their local socket. The
/// daemon adds the time and the host name, so neither is sent.
fn send(socket: &UnixDatagram, lines: &[u8]) -> io::Result<()> {
    let head = format!("<{PRIORITY}>pagewell[{}]: ", std::process::id());
    let mut datagram = head.clone().into_bytes();
    for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        datagram.truncate(head.len());
        datagram.extend_from_slice(line);
        socket.send(&datagram)?;
    }
    Ok(())
}

/// A handle to the running writer.
pub struct Writing {
    log: Arc<AccessLog>,
    ended: oneshot::Receiver<()>,
}

impl Writing {
    /// Makes the writer write all buffered lines and exit; completes when it has.
    pub async fn end(self) {
        self.log.end();
        // An error means that the thread has exited, too.
        let _ = self.ended.await;
    }
}

/// Starts the writer's thread. `dropped` counts the lines that it drops.
///
/// # Errors
/// The system cannot start a thread.
pub fn start(
    log: &Arc<AccessLog>,
    mut sink: Sink,
    dropped: Arc<Counter>,
) -> Result<Writing, String> {
    let (end, ended) = oneshot::channel();
    let writer = log.clone();
    let thread = thread::Builder::new()
        .name("access-log".into())
        .spawn(move || {
            write_all(&writer, &mut sink, &dropped);
            let _ = end.send(());
        })
        .map_err(|error| format!("access_log: no thread for it ({error})"))?;
    let _ = log.writer.set(thread.thread().clone());
    Ok(Writing { log: log.clone(), ended })
}

fn write_all(log: &AccessLog, sink: &mut Sink, dropped: &Counter) {
    let mut empty = Vec::with_capacity(log.shard_bytes);
    let mut failing = false;
    loop {
        if !log.orders.hurry.load(Ordering::Acquire) {
            thread::park();
        }
        for _ in 0..GATHER.0 {
            if log.orders.hurry.load(Ordering::Acquire) {
                break;
            }
            thread::sleep(GATHER.1);
        }
        log.orders.hurry.store(false, Ordering::Release);
        let last = log.orders.end.load(Ordering::Acquire);
        for shard in &log.shards {
            std::mem::swap(&mut lock(shard).text, &mut empty);
            if !empty.is_empty() {
                let written = sink.write(&empty);
                if written.is_err() {
                    let lines = empty.iter().filter(|byte| **byte == b'\n').count();
                    dropped.add_many(lines as u64);
                }
                note(&mut failing, written);
                empty.clear();
            }
        }
        if last {
            return;
        }
        // Only now, so that earlier lines are in the old file.
        if log.orders.reopen.swap(false, Ordering::AcqRel) {
            match sink.reopen() {
                Ok(()) => tracing::info!(event = "access-log-reopened"),
                Err(error) => tracing::error!(event = "access-log-failed", %error),
            }
        }
    }
}

/// Logs the first failure, and the first success after failures.
fn note(failing: &mut bool, written: io::Result<()>) {
    match (*failing, written) {
        (false, Err(error)) => {
            *failing = true;
            tracing::error!(event = "access-log-failed", %error);
        }
        (true, Ok(())) => {
            *failing = false;
            tracing::info!(event = "access-log-written-again");
        }
        _ => {}
    }
}
