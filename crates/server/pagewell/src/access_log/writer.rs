//! Where the lines of the access log go: a file, the standard output, or the system's log; and the
//! thread that brings them there.
//!
//! | the writer | until |
//! |---|---|
//! | sleeps | a shard has its first line, or there is an order |
//! | gathers | a moment has passed, a shard is filling up, or there is an order |
//! | writes all shards, one after the other | |
//!
//! What cannot be written is dropped and counted; that it cannot is logged once, and once more when it
//! can again. It is never tried twice: a disk that is full would hold up what comes behind.

use super::{AccessLog, lock};
use crate::config::AccessLogTo;
use crate::site::Site;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;
use tokio::sync::oneshot;

/// For so long lines gather, looked at so often.
const GATHER: (u32, Duration) = (10, Duration::from_millis(10));
/// Facility local7, severity info: what nginx uses, too.
const PRIORITY: u8 = 23 * 8 + 6;

/// Where lines go.
pub enum Sink {
    /// A file that is appended to.
    File {
        /// Its path.
        path: PathBuf,
        /// The file as it is open.
        file: File,
        /// The last write has left half a line.
        is_torn: bool,
    },
    /// The standard output.
    Stdout,
    /// The system's log.
    Syslog {
        /// Where its daemon listens.
        path: PathBuf,
        /// The way there; none where there is none at the moment.
        socket: Option<UnixDatagram>,
    },
}

impl Sink {
    /// Opens what was chosen.
    ///
    /// # Errors
    /// It cannot be opened: a sentence for the operator.
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

    /// Opens the file again; everything else stays as it is.
    fn reopen(&mut self) -> io::Result<()> {
        if let Sink::File { path, file, is_torn } = self {
            *file = append(path)?;
            *is_torn = false;
        }
        Ok(())
    }

    /// Writes whole lines.
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
    // Who may read it is the group's business: it says who has visited what.
    OpenOptions::new().append(true).create(true).mode(0o640).open(path)
}

fn connect(path: &Path) -> io::Result<UnixDatagram> {
    let socket = UnixDatagram::unbound()?;
    socket.connect(path)?;
    Ok(socket)
}

/// One datagram a line, as RFC 3164 has it and daemons read it at their local socket. The daemon adds the
/// time and the machine's name itself, so neither is sent.
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

/// The writer, to be ended.
pub struct Writing {
    log: Arc<AccessLog>,
    ended: oneshot::Receiver<()>,
}

impl Writing {
    /// Writes what there is, and ends; done once that is done.
    pub async fn end(self) {
        self.log.end();
        // It has gone in any case.
        let _ = self.ended.await;
    }
}

/// Starts the thread that writes; what it drops is counted by `site`.
///
/// # Errors
/// The system has no thread for it.
pub fn start(log: &Arc<AccessLog>, mut sink: Sink, site: Arc<Site>) -> Result<Writing, String> {
    let (end, ended) = oneshot::channel();
    let writer = log.clone();
    let thread = thread::Builder::new()
        .name("access-log".into())
        .spawn(move || {
            write_all(&writer, &mut sink, &site);
            let _ = end.send(());
        })
        .map_err(|error| format!("access_log: no thread for it ({error})"))?;
    let _ = log.writer.set(thread.thread().clone());
    Ok(Writing { log: log.clone(), ended })
}

fn write_all(log: &AccessLog, sink: &mut Sink, site: &Site) {
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
                    site.counters.access_log_dropped.add_many(lines as u64);
                }
                note(&mut failing, written);
                empty.clear();
            }
        }
        if last {
            return;
        }
        // Once what came before is in the old file.
        if log.orders.reopen.swap(false, Ordering::AcqRel) {
            match sink.reopen() {
                Ok(()) => tracing::info!(event = "access-log-reopened"),
                Err(error) => tracing::error!(event = "access-log-failed", %error),
            }
        }
    }
}

/// Says that writing fails, or works again.
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
