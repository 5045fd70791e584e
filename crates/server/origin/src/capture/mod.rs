//! Captures: the SQL statements and option names of a render, reported by PHP over a Unix socket.
//!
//! | step | where |
//! |---|---|
//! | [`Captures::begin`] draws the token of a request | here |
//! | the FastCGI params name the socket and the token | `fastcgi` |
//! | `php/capture/wordpress.php` collects the statements, and sends them | PHP |
//! | the socket accepts one report for each token, within its limits | `socket` |
//! | the report is read | `format` |
//!
//! A capture that fails says nothing about the page: its statements are then not known ([`NotCaptured`]).
//! The token is the secret: a peer without one is disconnected. Not here: what the statements mean, and which
//! requests are captured. See docs/decisions/0086-capture.md.

mod format;
mod socket;

pub use format::{CaptureReport, OptionNames, ParsedCapture, parse_capture};

use self::socket::{Pending, bind, serve};
use std::fs::{Permissions, set_permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

/// The names and contents of the files in the directory. PHP runs the first, which loads the other.
const FILES: [(&str, &str); 2] = [
    ("capture.php", include_str!("../../../../../php/capture/wordpress.php")),
    ("select-count.php", include_str!("../../../../../php/capture/select-count.php")),
];
const SOCKET: &str = "capture.sock";
/// The length of a token in bytes: 128 random bits as hexadecimal digits.
const TOKEN_BYTES: usize = 32;

/// A token, which the report of a request must begin with.
type Token = [u8; TOKEN_BYTES];

/// The users whose PHP may read the capture file, and connect to the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaptureAccess {
    /// Only the user that runs Pagewell.
    Owner,
    /// Every user that may enter the directory: the workers of php-fpm run as another one.
    Everyone,
}

/// Whether Pagewell's own php-fpm can report the statements of a render.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaptureUse {
    /// PHP runs without the capture file.
    Off,
    /// PHP runs the capture file before each script.
    On,
}

/// The captures of a site: a Unix socket on which PHP reports the statements of a render.
pub struct Captures {
    directory: PathBuf,
    socket: Arc<Path>,
    access: CaptureAccess,
    pending: Arc<Pending>,
    /// The task that serves the socket. Held only to replace it.
    serving: Mutex<Option<AbortHandle>>,
}

impl Captures {
    /// Writes the capture file into `directory`, opens the socket there, and serves it on a task that ends
    /// when this is dropped. The files stay, because a php-fpm with the file as its `auto_prepend_file`
    /// answers no request without it. Needs a tokio runtime.
    ///
    /// # Errors
    /// The system refuses a file, the socket, or random numbers: a sentence for the operator.
    pub fn open(directory: &Path, access: CaptureAccess) -> Result<Captures, String> {
        random_token().map_err(|error| format!("the system has no random numbers: {error}"))?;
        let captures = Captures {
            directory: directory.to_owned(),
            socket: directory.join(SOCKET).into(),
            access,
            pending: Arc::default(),
            serving: Mutex::default(),
        };
        captures.restore()?;
        Ok(captures)
    }

    /// Writes the files and opens the socket again. Captures that have begun stay valid.
    ///
    /// # Errors
    /// As for [`Captures::open`].
    pub fn restore(&self) -> Result<(), String> {
        for (name, content) in FILES.iter().rev() {
            self.write(name, content)?;
        }
        let mode = if self.access == CaptureAccess::Owner { 0o600 } else { 0o666 };
        let listener = bind(&self.socket, mode)?;
        let task = tokio::spawn(serve(listener, self.pending.clone()));
        self.serve_by(Some(task.abort_handle()));
        Ok(())
    }

    /// Whether the files and the socket exist; a clean-up job might have removed them.
    pub fn are_there(&self) -> bool {
        let is_there = |name: &str| self.directory.join(name).symlink_metadata().is_ok();
        is_there(SOCKET) && FILES.iter().all(|(name, _)| is_there(name))
    }

    /// The socket on which PHP reports.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// The file for PHP's setting `auto_prepend_file`.
    pub fn file(&self) -> PathBuf {
        self.directory.join(FILES[0].0)
    }

    /// Begins the capture of one request.
    pub fn begin(self: &Arc<Self>) -> Capture {
        let token = random_token().expect("the same call succeeded when the socket was opened");
        let report = self.pending.expect(token);
        let parameters = CaptureParameters { socket: self.socket.clone(), token };
        Capture { parameters, report, captures: self.clone() }
    }

    /// Writes a file in one step, so that PHP never reads a part of it.
    fn write(&self, name: &str, content: &str) -> Result<(), String> {
        let (path, new) = (self.directory.join(name), temporary(&self.directory, name));
        let mode = if self.access == CaptureAccess::Owner { 0o600 } else { 0o644 };
        let written = std::fs::write(&new, content)
            .and_then(|()| set_permissions(&new, Permissions::from_mode(mode)))
            .and_then(|()| std::fs::rename(&new, &path));
        written.map_err(|error| format!("{} cannot be written: {error}", path.display()))
    }

    fn serve_by(&self, task: Option<AbortHandle>) {
        let mut serving = self.serving.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(before) = std::mem::replace(&mut *serving, task) {
            before.abort();
        }
    }
}

impl Drop for Captures {
    fn drop(&mut self) {
        self.serve_by(None);
    }
}

/// The name under which a file is prepared, before it is renamed.
fn temporary(directory: &Path, name: &str) -> PathBuf {
    directory.join(format!("{name}.{}", std::process::id()))
}

fn random_token() -> Result<Token, rustix::io::Errno> {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut bytes = [0; TOKEN_BYTES / 2];
    // Requests of up to 256 bytes are answered in full (getrandom(2)).
    let length = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    if length != bytes.len() {
        return Err(rustix::io::Errno::IO);
    }
    let mut token = [0; TOKEN_BYTES];
    for (pair, byte) in token.chunks_exact_mut(2).zip(bytes) {
        pair[0] = DIGITS[usize::from(byte >> 4)];
        pair[1] = DIGITS[usize::from(byte & 15)];
    }
    Ok(token)
}

/// The capture of one request. Dropping it makes its token invalid.
pub struct Capture {
    parameters: CaptureParameters,
    report: oneshot::Receiver<Result<CaptureReport, NotCaptured>>,
    captures: Arc<Captures>,
}

impl Capture {
    /// The FastCGI params for the request to the origin; see [`crate::OriginRequest::capture`].
    pub fn parameters(&self) -> CaptureParameters {
        self.parameters.clone()
    }

    /// Waits for the report until `within` has passed. PHP sends it at the end of the script, which may be
    /// after the end of the response.
    ///
    /// # Errors
    /// The reason why the statements of the request are not known.
    pub async fn report(mut self, within: Duration) -> Result<CaptureReport, NotCaptured> {
        match tokio::time::timeout(within, &mut self.report).await {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(_)) | Err(_) => Err(NotCaptured::NoReport),
        }
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        self.captures.pending.forget(&self.parameters.token);
    }
}

/// The FastCGI params by which PHP finds the socket, and names the request.
#[derive(Clone)]
pub struct CaptureParameters {
    socket: Arc<Path>,
    token: Token,
}

impl CaptureParameters {
    /// The names and values of the params.
    pub fn pairs(&self) -> [(&'static str, &[u8]); 2] {
        [
            ("PAGEWELL_CAPTURE", self.socket.as_os_str().as_bytes()),
            ("PAGEWELL_CAPTURE_TOKEN", &self.token),
        ]
    }
}

/// Why the statements of a request are not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotCaptured {
    /// No report came in time.
    NoReport,
    /// The report began, and did not end in time or before the connection closed.
    CutOff,
    /// PHP says that its list is not complete, with the reason.
    Incomplete(Box<str>),
    /// The report is not in the format; what is wrong with it.
    Malformed(&'static str),
    /// The report exceeds a limit; which one.
    TooLarge(&'static str),
}

impl NotCaptured {
    /// The name of the reason, without its details.
    pub fn as_str(&self) -> &'static str {
        match self {
            NotCaptured::NoReport => "capture-no-report",
            NotCaptured::CutOff => "capture-cut-off",
            NotCaptured::Incomplete(_) => "capture-incomplete",
            NotCaptured::Malformed(_) => "capture-malformed",
            NotCaptured::TooLarge(_) => "capture-too-large",
        }
    }
}

impl std::fmt::Display for NotCaptured {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NotCaptured::NoReport => f.write_str(
                "PHP sent no report: check that auto_prepend_file is capture.php also with the .user.ini of \
                 the site, and that the script was not killed",
            ),
            NotCaptured::CutOff => {
                f.write_str("PHP's report was cut off: check whether the script was killed")
            }
            NotCaptured::Incomplete(reason) => {
                write!(f, "PHP cannot list all statements of the page: {reason}")
            }
            NotCaptured::Malformed(flaw) => write!(
                f,
                "PHP's report is not valid ({flaw}): check that capture.php is the one of this Pagewell"
            ),
            NotCaptured::TooLarge(limit) => {
                write!(f, "PHP's report exceeds the limit of {limit}; the page is too large to be captured")
            }
        }
    }
}

impl std::error::Error for NotCaptured {}
