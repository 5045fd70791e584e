//! Receives what `php/capture/wordpress.php` collects: the statements and option names of a request.
//!
//! The format is in that file; the crate `capture` reads it. A thread accepts the connections, because PHP waits
//! until its records are read. Each read is limited in time and bytes; a list without its end is an
//! error.

use capture::{NotCaptured, OptionNames, ParsedCapture, parse_capture};
use std::fs;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);
/// The limit of the sender, with room for its other records.
const BYTES_MAX: u64 = 5 << 20;

/// The statements and options of a request.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct CapturedRequest {
    /// The name that the web server gave to the request.
    pub token: String,
    /// The version of WordPress.
    pub version: String,
    /// The options that the request asked for; none if WordPress is older than 6.1.
    pub options: Vec<String>,
    /// The statements of the page, in order.
    pub statements: Vec<String>,
    /// The statements after its output.
    pub late_statements: Vec<String>,
    /// The reason why the lists are empty.
    pub incomplete: Option<String>,
}

/// A Unix socket that receives captures.
#[derive(Debug)]
pub struct CaptureSocket {
    path: PathBuf,
    captures: Receiver<Result<CapturedRequest, String>>,
    thread: Option<JoinHandle<()>>,
}

impl CaptureSocket {
    /// Opens the socket in a directory that php-fpm may enter.
    ///
    /// # Errors
    /// A message, if the system refuses.
    pub fn open(dir: &Path) -> Result<CaptureSocket, String> {
        let path = dir.join("capture.sock");
        let fault = |error: std::io::Error| format!("{}: {error}", path.display());
        let listener = UnixListener::bind(&path).map_err(fault)?;
        // php-fpm runs as another user.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).map_err(fault)?;
        let (sender, captures) = sync_channel(1);
        let thread = thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                match read(stream) {
                    // The request to end, from `drop`.
                    Ok(bytes) if bytes.is_empty() => return,
                    bytes => {
                        let capture = bytes.and_then(|bytes| CapturedRequest::parse(&bytes));
                        if sender.send(capture).is_err() {
                            return;
                        }
                    }
                }
            }
        });
        Ok(CaptureSocket { path, captures, thread: Some(thread) })
    }

    /// The path of the socket.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The next capture, which must have this token.
    ///
    /// # Errors
    /// A message, if none arrives in time, or it is another one.
    pub fn take(&self, token: &str) -> Result<CapturedRequest, String> {
        let capture = self.captures.recv_timeout(PATIENCE);
        let capture = capture.map_err(|_| format!("no capture within {PATIENCE:?}"))??;
        if capture.token != token {
            return Err(format!("the capture of {}, not of {token}", capture.token));
        }
        Ok(capture)
    }

    /// Whether a capture has arrived that nobody has taken.
    #[cfg(test)]
    pub fn has_capture(&self) -> bool {
        self.captures.try_recv().is_ok()
    }
}

impl Drop for CaptureSocket {
    fn drop(&mut self) {
        // Empties the queue, so that the thread is not blocked, and makes it accept once more.
        while self.captures.try_recv().is_ok() {}
        if UnixStream::connect(&self.path).is_ok()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
    }
}

fn read(stream: UnixStream) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    stream.set_read_timeout(Some(PATIENCE)).map_err(|error| format!("capture: {error}"))?;
    match stream.take(BYTES_MAX).read_to_end(&mut bytes) {
        Err(error) if error.kind() != ErrorKind::ConnectionReset => {
            Err(format!("capture: {error}"))
        }
        _ => Ok(bytes),
    }
}

impl CapturedRequest {
    /// Reads the records of a capture.
    fn parse(bytes: &[u8]) -> Result<CapturedRequest, String> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let texts = |list: &[Box<[u8]>]| list.iter().map(|bytes| text(bytes)).collect();
        let ParsedCapture { token, outcome } = parse_capture(bytes);
        let mut capture = CapturedRequest { token: text(&token), ..CapturedRequest::default() };
        match outcome {
            Ok(report) => {
                capture.version = report.version.into();
                capture.statements = texts(&report.statements);
                capture.late_statements = texts(&report.late_statements);
                if let OptionNames::Complete(names) = &report.options {
                    capture.options = texts(names);
                }
            }
            Err(NotCaptured::Incomplete(reason)) => capture.incomplete = Some(reason.into()),
            Err(error) => return Err(format!("capture: {error}")),
        }
        Ok(capture)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capture_without_its_end_is_refused() {
        let whole = b"pagewell-capture 1\nT\0\0\0\x011V\0\0\0\0S\0\0\0\x03a\0bE\0\0\0\0";
        let capture = CapturedRequest::parse(whole).expect("valid");
        assert_eq!((capture.token.as_str(), capture.statements), ("1", vec!["a\0b".to_owned()]));
        for length in 0..whole.len() {
            assert!(CapturedRequest::parse(&whole[..length]).is_err(), "{length}");
        }
        assert!(CapturedRequest::parse(&[whole.as_slice(), b"E"].concat()).is_err());
    }
}
