//! Captures: the SQL statements of a render. WordPress reports them, with the names of options, over a Unix
//! socket, and so does an application with the PHP library; for any other, [`relay`] sees them on their way to
//! the database.
//!
//! | step, for reports | where |
//! |---|---|
//! | [`Captures::begin`] draws the token of a request | here |
//! | the FastCGI params name the socket and the token | `fastcgi` |
//! | `php/capture/prepend.php` runs `capture.php` for such a request | PHP |
//! | `php/capture/wordpress.php` (`capture.php`) or `php/client/src/Capture` collects the statements, and sends them | PHP |
//! | the socket accepts one report for each token, within its limits | `socket` |
//! | the report is read | `format` |
//!
//! A capture that fails says nothing about the page: its statements are then not known ([`NotCaptured`]).
//! The token is the secret: a peer without one is disconnected. Not here: what the statements mean, and which
//! requests are captured. See the decisions 0086 and 0090.

mod format;
pub mod relay;
mod socket;

pub use format::{CaptureReport, OptionNames, ParsedCapture, parse_capture};

use self::relay::{RelayCapture, RelayTarget, RelayTicket, SqlRelay};
use self::socket::{Pending, bind, serve};
use config::{Automatic, CaptureKind, Config, Database, DatabaseServer};
use reasons::Reason;
use std::fs::{File, Permissions, set_permissions};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;
use trusted_files::Writers;

/// The names and contents of the files in the directory, for WordPress. PHP runs the first, which loads the others.
/// A php-fpm that is not Pagewell's own runs a copy of the first that stays when the directory disappears.
const FILES: [(&str, &str); 5] = [
    ("prepend.php", include_str!("../../../../php/capture/prepend.php")),
    ("capture.php", include_str!("../../../../php/capture/wordpress.php")),
    ("statement-count.php", include_str!("../../../../php/capture/statement-count.php")),
    ("session-rules.php", include_str!("../../../../php/client/src/Capture/session-rules.php")),
    ("report.php", include_str!("../../../../php/client/src/Capture/report.php")),
];
const SOCKET: &str = "capture.sock";
/// The length of a token in bytes: 128 random bits as hexadecimal digits.
const TOKEN_BYTES: usize = 32;

/// A token, which the report of a request must begin with.
pub type Token = [u8; TOKEN_BYTES];

/// The users whose PHP may read the capture file, and connect to the socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaptureAccess {
    /// Only the user that runs Pagewell.
    Owner,
    /// The user with this number, and the one that runs Pagewell. The file can be read by all that enter the directory.
    User(u32),
    /// Every user that may enter the directory: the workers of php-fpm run as another one.
    Everyone,
}

/// How the statements of a render get here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaptureUse {
    /// Not at all.
    Off,
    /// PHP reports them.
    Reports(CaptureReporter),
    /// The connections to this database are relayed.
    Relay(RelayTarget),
}

/// The PHP code that reports the statements of a render.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaptureReporter {
    /// The capture file, which PHP runs before each script, and which knows WordPress.
    WordPress,
    /// The PHP library, which the application has loaded.
    Library {
        /// The name of the database whose tables are known. Statements of a session with another one are not.
        schema: String,
    },
}

impl CaptureUse {
    /// The use for a site whose origin has `workers` PHP workers.
    ///
    /// # Errors
    /// The database is not configured: a sentence for the operator.
    pub fn of(config: &Config, workers: usize) -> Result<CaptureUse, String> {
        let Some(automatic) = &config.automatic else { return Ok(CaptureUse::Off) };
        Ok(match automatic.capture {
            CaptureKind::WordPress => CaptureUse::Reports(CaptureReporter::WordPress),
            CaptureKind::Library => CaptureUse::Reports(CaptureReporter::Library {
                schema: server_of(config, automatic)?.account.database.clone(),
            }),
            CaptureKind::Relay => CaptureUse::Relay(RelayTarget::of(config, automatic, workers)?),
        })
    }
}

/// The database whose statements are captured.
fn server_of<'c>(config: &'c Config, automatic: &Automatic) -> Result<&'c DatabaseServer, String> {
    let is_named = |database: &&Arc<Database>| database.name == automatic.database;
    let database = config.databases.iter().find(is_named);
    Ok(&database.ok_or("automatic.database: there is no such [[database]]")?.server)
}

/// The producer of a site's captures.
#[derive(Clone)]
pub enum CaptureSource {
    /// PHP reports its statements.
    Reports(Arc<Captures>),
    /// The connections to the database are relayed.
    Relay(Arc<SqlRelay>),
}

impl CaptureSource {
    /// Opens the files and sockets of a producer in `directory`. `None` if captures are off.
    ///
    /// # Errors
    /// The system refuses one of them: a sentence for the operator.
    pub fn open(
        directory: &Path,
        access: CaptureAccess,
        capture: CaptureUse,
    ) -> Result<Option<CaptureSource>, String> {
        Ok(match capture {
            CaptureUse::Off => None,
            CaptureUse::Reports(reporter) => {
                let captures = Captures::open(directory, access, reporter)?;
                Some(CaptureSource::Reports(Arc::new(captures)))
            }
            CaptureUse::Relay(target) => {
                Some(CaptureSource::Relay(Arc::new(SqlRelay::open(directory, access, target)?)))
            }
        })
    }

    /// Begins the capture of one request.
    pub fn begin(&self) -> Capture {
        match self {
            CaptureSource::Reports(captures) => captures.begin(),
            CaptureSource::Relay(relay) => Capture(Producer::Relay(relay.begin())),
        }
    }

    /// The slot of the relay for a new FastCGI connection, if there is a relay.
    pub fn lease(&self) -> Option<relay::SlotLease> {
        match self {
            CaptureSource::Reports(_) => None,
            CaptureSource::Relay(relay) => Some(relay.lease()),
        }
    }

    /// Whether the files and sockets exist; a clean-up job might have removed them.
    pub fn are_there(&self) -> bool {
        match self {
            CaptureSource::Reports(captures) => captures.are_there(),
            CaptureSource::Relay(relay) => relay.are_there(),
        }
    }

    /// Writes the files and opens the sockets again.
    ///
    /// # Errors
    /// As for [`CaptureSource::open`].
    pub fn restore(&self) -> Result<(), String> {
        match self {
            CaptureSource::Reports(captures) => captures.restore(),
            CaptureSource::Relay(relay) => relay.restore(),
        }
    }

    /// The file for PHP's setting `auto_prepend_file`, if there is one.
    pub fn file(&self) -> Option<PathBuf> {
        match self {
            CaptureSource::Reports(captures) => captures.file(),
            CaptureSource::Relay(relay) => Some(relay.file()),
        }
    }
}

/// The captures of a site: a Unix socket on which PHP reports the statements of a render.
pub struct Captures {
    directory: PathBuf,
    reporter: CaptureReporter,
    socket: Arc<Path>,
    access: CaptureAccess,
    pending: Arc<Pending>,
    /// The task that serves the socket. Held only to replace it.
    serving: Mutex<Option<AbortHandle>>,
}

impl Captures {
    /// Writes the files of the reporter into `directory`, opens the socket there, and serves it on a task that
    /// ends when this is dropped. The files stay: PHP tolerates that they are missing, but needs no warning in
    /// its log. Needs a tokio runtime.
    ///
    /// # Errors
    /// The system refuses a file, the socket, or random numbers, or other users can write to the directory: a
    /// sentence for the operator.
    pub fn open(
        directory: &Path,
        access: CaptureAccess,
        reporter: CaptureReporter,
    ) -> Result<Captures, String> {
        check_directory(directory)?;
        random_token().map_err(|error| format!("the system has no random numbers: {error}"))?;
        let captures = Captures {
            directory: directory.to_owned(),
            reporter,
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
        for (name, content) in self.files().iter().rev() {
            write_file(&self.directory, self.access, name, content)?;
        }
        let listener = bind(&self.socket, self.access)?;
        let task = tokio::spawn(serve(listener, self.access, self.pending.clone()));
        self.serve_by(Some(task.abort_handle()));
        Ok(())
    }

    /// Whether the files and the socket exist; a clean-up job might have removed them.
    pub fn are_there(&self) -> bool {
        let is_there = |name: &str| self.directory.join(name).symlink_metadata().is_ok();
        is_there(SOCKET) && self.files().iter().all(|(name, _)| is_there(name))
    }

    /// The socket on which PHP reports.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// The file for PHP's setting `auto_prepend_file`, if the reporter is in one.
    pub fn file(&self) -> Option<PathBuf> {
        self.files().first().map(|(name, _)| self.directory.join(name))
    }

    fn files(&self) -> &'static [(&'static str, &'static str)] {
        match self.reporter {
            CaptureReporter::WordPress => &FILES,
            CaptureReporter::Library { .. } => &[],
        }
    }

    /// Begins the capture of one request.
    pub fn begin(self: &Arc<Self>) -> Capture {
        let token = random_token().expect("the same call succeeded when the socket was opened");
        let report = self.pending.expect(token);
        let captures = self.clone();
        Capture(Producer::Report(ReportCapture { token, report, captures }))
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

/// Writes a file for PHP in one step, so that PHP never reads a part of it.
fn write_file(
    directory: &Path,
    access: CaptureAccess,
    name: &str,
    content: &str,
) -> Result<(), String> {
    let (path, new) = (directory.join(name), temporary(directory, name));
    let mode = if access == CaptureAccess::Owner { 0o600 } else { 0o644 };
    // A name that exists is not written through: it may be a link.
    let _ = std::fs::remove_file(&new);
    let written = File::create_new(&new)
        .and_then(|mut file| file.write_all(content.as_bytes()))
        .and_then(|()| set_permissions(&new, Permissions::from_mode(mode)))
        .and_then(|()| std::fs::rename(&new, &path));
    written.map_err(|error| format!("{} cannot be written: {error}", path.display()))
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

/// The capture of one request. Dropping it ends it.
pub struct Capture(Producer);

enum Producer {
    Report(ReportCapture),
    Relay(RelayCapture),
}

/// The capture of a request whose script reports its statements. Dropping it makes its token invalid.
struct ReportCapture {
    token: Token,
    report: oneshot::Receiver<Result<CaptureReport, NotCaptured>>,
    captures: Arc<Captures>,
}

impl Capture {
    /// The parameters for the request to the origin; see `origin::OriginRequest::capture`.
    pub fn parameters(&self) -> CaptureParameters {
        match &self.0 {
            Producer::Report(capture) => CaptureParameters::Report {
                captures: capture.captures.clone(),
                token: capture.token,
            },
            Producer::Relay(capture) => CaptureParameters::Relay(capture.ticket()),
        }
    }

    /// Waits for a report until `within` has passed. PHP sends it at the end of the script, which may be
    /// after the end of the response. A relay has seen everything by then.
    ///
    /// # Errors
    /// The reason why the statements of the request are not known.
    pub async fn report(self, within: Duration) -> Result<CaptureReport, NotCaptured> {
        match self.0 {
            Producer::Relay(capture) => capture.report(),
            Producer::Report(mut capture) => {
                match tokio::time::timeout(within, &mut capture.report).await {
                    Ok(Ok(outcome)) => outcome,
                    Ok(Err(_)) | Err(_) => Err(NotCaptured::NoReport),
                }
            }
        }
    }
}

impl Drop for ReportCapture {
    fn drop(&mut self) {
        self.captures.pending.forget(&self.token);
    }
}

/// The part of a request to the origin that its capture needs.
#[derive(Clone)]
pub enum CaptureParameters {
    /// FastCGI params by which PHP finds the socket, and names the request.
    Report {
        /// The socket, and the database if the reporter compares it.
        captures: Arc<Captures>,
        /// The token of the request.
        token: Token,
    },
    /// The number by which the relay knows the request.
    Relay(RelayTicket),
}

impl CaptureParameters {
    /// The names and values of the params.
    pub fn pairs(&self) -> impl Iterator<Item = (&'static str, &[u8])> {
        let pairs = match self {
            CaptureParameters::Report { captures, token } => {
                let database = match &captures.reporter {
                    CaptureReporter::WordPress => None,
                    CaptureReporter::Library { schema } => Some(schema.as_bytes()),
                };
                [
                    Some(("PAGEWELL_CAPTURE", captures.socket.as_os_str().as_bytes())),
                    Some(("PAGEWELL_CAPTURE_TOKEN", token.as_slice())),
                    database.map(|name| ("PAGEWELL_CAPTURE_DATABASE", name)),
                ]
            }
            CaptureParameters::Relay(_) => [None; 3],
        };
        pairs.into_iter().flatten()
    }

    /// The ticket for the relay.
    pub fn ticket(&self) -> Option<&RelayTicket> {
        match self {
            CaptureParameters::Report { .. } => None,
            CaptureParameters::Relay(ticket) => Some(ticket),
        }
    }
}

/// Refuses a directory in which other users could replace the file that PHP runs, or the sockets over which
/// it sends the password of its database.
fn check_directory(directory: &Path) -> Result<(), String> {
    trusted_files::directory(directory, Writers::Owner)
        .map_err(|error| format!("the directory of captures {}: {error}", directory.display()))
}

/// Why the statements of a request are not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotCaptured {
    /// No report came in time.
    NoReport,
    /// The report began, and did not end in time or before the connection closed.
    CutOff,
    /// The list of statements is not complete; the reason.
    Incomplete(Box<str>),
    /// A cache outside of the database was used, or may have been, which no statement shows; its name.
    Hidden(Box<str>),
    /// The report is not in the format; what is wrong with it.
    Malformed(&'static str),
    /// The statements exceed a limit; which one.
    TooLarge(&'static str),
    /// No connection to the database passed through the relay.
    NoConnection,
}

impl NotCaptured {
    /// The reason not to store the page.
    pub fn reason(&self) -> Reason {
        match self {
            NotCaptured::Hidden(_) => Reason::ReadsHidden,
            _ => Reason::ReadsUnseen,
        }
    }

    /// The name of the cause in the log, without its details.
    pub fn as_str(&self) -> &'static str {
        match self {
            NotCaptured::NoReport => "capture-no-report",
            NotCaptured::CutOff => "capture-cut-off",
            NotCaptured::Incomplete(_) => "capture-incomplete",
            NotCaptured::Hidden(_) => "capture-hidden",
            NotCaptured::Malformed(_) => "capture-malformed",
            NotCaptured::TooLarge(_) => "capture-too-large",
            NotCaptured::NoConnection => "capture-no-connection",
        }
    }
}

impl std::fmt::Display for NotCaptured {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NotCaptured::NoReport => f.write_str(
                "PHP sent no report: check that the script loads the library (`library`), or that \
                 auto_prepend_file is prepend.php also with the .user.ini of the site (`wordpress`), and that \
                 the script was not killed",
            ),
            NotCaptured::CutOff => {
                f.write_str("PHP's report was cut off: check whether the script was killed")
            }
            NotCaptured::Incomplete(reason) => {
                write!(f, "not all statements of the page are known: {reason}")
            }
            NotCaptured::Hidden(name) => write!(
                f,
                "the cache {name} hides reads of the page: turn it off, or send tags for its pages"
            ),
            NotCaptured::Malformed(flaw) => write!(
                f,
                "PHP's report is not valid ({flaw}): check that capture.php or the library is the one of this \
                 Pagewell"
            ),
            NotCaptured::TooLarge(limit) => {
                write!(f, "the statements of the page exceed the limit of {limit}")
            }
            NotCaptured::NoConnection => f.write_str(
                "no connection to the database passed through the relay: check that the application connects \
                 to localhost without a port and without a socket of its own",
            ),
        }
    }
}

impl std::error::Error for NotCaptured {}
