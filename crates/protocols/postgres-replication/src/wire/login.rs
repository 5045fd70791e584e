//! The login: start-up message, password, session settings.
//!
//! | the server | effect |
//! |---|---|
//! | requests SCRAM-SHA-256 | two messages in each direction; the server also proves that it knows the password |
//! | requests MD5 | the hash is sent |
//! | requests the plain password | it is sent over a Unix socket or TLS, otherwise refused |
//! | accepts | settings arrive until the server is ready: done |
//!
//! The session settings determine how values are written as text ([`crate::row`]). The number of hash
//! iterations that a server may request is limited. Source: PostgreSQL's manual, "SASL Authentication",
//! "Start-up". Not here: GSSAPI, SSPI, Kerberos; channel binding.

use super::error::{ServerError, ServerErrorKind};
use super::frame::Frame;
use crate::Refusal;
use crate::reader::Reader;
use bytes::BytesMut;
use postgres_protocol::authentication::{md5_hash, sasl};
use postgres_protocol::message::frontend;
use std::fmt;
use std::io;

const SCRAM: &str = "SCRAM-SHA-256";
/// The maximum number of hash iterations; 4,096 are usual.
const ROUNDS_MAX: u64 = 1_000_000;

/// The settings that determine the text form of values and prevent truncation.
const SETTINGS: [(&str, &str); 7] = [
    ("application_name", "pagewell"),
    ("client_encoding", "UTF8"),
    ("DateStyle", "ISO"),
    ("IntervalStyle", "postgres"),
    ("TimeZone", "UTC"),
    ("extra_float_digits", "1"),
    ("bytea_output", "hex"),
];

/// The user, password and database of a login.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Account {
    /// The role to log in as.
    pub user: String,
    /// The password of the role; empty if none is needed.
    pub password: String,
    /// The name of the database.
    pub database: String,
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Account").field("user", &self.user).finish_non_exhaustive()
    }
}

/// The kind of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channel {
    /// A network connection without encryption.
    Plain,
    /// A TLS connection.
    Tls,
    /// A Unix socket.
    Local,
}

/// The purpose of the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Statements only.
    Statements,
    /// The replication stream; statements as well, until the stream starts.
    Replication,
}

/// The next step of the login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoginStep {
    /// Send these bytes.
    Send(Vec<u8>),
    /// Wait for the next frame.
    Wait,
    /// The login is complete.
    Done,
}

/// The reason why the login failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoginRefused {
    /// The server reported an error.
    Server(ServerError),
    /// The server requests an unsupported authentication method.
    UnknownMethod(String),
    /// The server requests the plain password over an unencrypted network connection.
    PasswordInTheClear,
    /// The server requests a password, and none is configured.
    NoPassword,
    /// The server's proof is wrong: the password is wrong, or another server answers.
    BadProof(String),
    /// A frame is invalid.
    Frame(Refusal),
}

impl LoginRefused {
    /// The name of the reason in logs.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            LoginRefused::Server(error) => error.kind().as_str(),
            LoginRefused::UnknownMethod(_) => "unknown-method",
            LoginRefused::PasswordInTheClear => "password-in-the-clear",
            LoginRefused::NoPassword => ServerErrorKind::AccessDenied.as_str(),
            LoginRefused::BadProof(_) => "bad-proof",
            LoginRefused::Frame(refusal) => refusal.as_str(),
        }
    }

    /// Whether a new attempt fails in the same way until a setting or an account is changed.
    #[must_use]
    pub fn is_lasting(&self) -> bool {
        match self {
            LoginRefused::Server(error) => error.kind().is_lasting(),
            LoginRefused::UnknownMethod(_)
            | LoginRefused::PasswordInTheClear
            | LoginRefused::NoPassword
            | LoginRefused::BadProof(_) => true,
            LoginRefused::Frame(_) => false,
        }
    }
}

impl fmt::Display for LoginRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoginRefused::Server(error) => error.fmt(f),
            LoginRefused::UnknownMethod(name) => {
                write!(f, "the server wants a login by {name}; here are SCRAM-SHA-256 and md5")
            }
            LoginRefused::PasswordInTheClear => f.write_str(
                "the server wants the password itself, and the connection is in the clear: \
                 set scram-sha-256 in pg_hba.conf, or use a Unix socket",
            ),
            LoginRefused::NoPassword => f.write_str("the server asks for a password"),
            LoginRefused::BadProof(why) => write!(f, "the server's proof is wrong: {why}"),
            LoginRefused::Frame(refusal) => refusal.fmt(f),
        }
    }
}

impl std::error::Error for LoginRefused {}

impl From<Refusal> for LoginRefused {
    fn from(refusal: Refusal) -> LoginRefused {
        LoginRefused::Frame(refusal)
    }
}

/// A string with a zero byte, or another value that cannot be encoded.
impl From<io::Error> for LoginRefused {
    fn from(_: io::Error) -> LoginRefused {
        LoginRefused::Frame(Refusal::BadText)
    }
}

/// A login in progress.
pub struct Login {
    account: Account,
    channel: Channel,
    scram: Option<sasl::ScramSha256>,
    phase: Phase,
    server_version: String,
    server_encoding: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The server has not accepted the login.
    Proving,
    /// The server has proved that it knows the password.
    Proved,
    /// The server has accepted the login.
    Welcome,
}

/// Encodes the request for TLS, which is sent before anything else. The server answers with one byte: `S` for
/// yes, `N` for no.
#[must_use]
pub fn tls_request() -> Vec<u8> {
    let mut out = BytesMut::new();
    frontend::ssl_request(&mut out);
    out.to_vec()
}

impl Login {
    /// A new login, and the bytes to send first.
    ///
    /// # Errors
    /// A name contains a zero byte.
    pub fn begin(
        account: Account,
        channel: Channel,
        purpose: Purpose,
    ) -> Result<(Login, Vec<u8>), LoginRefused> {
        let mut out = BytesMut::new();
        let mut parameters =
            vec![("user", account.user.as_str()), ("database", account.database.as_str())];
        if purpose == Purpose::Replication {
            parameters.push(("replication", "database"));
        }
        parameters.extend(SETTINGS);
        frontend::startup_message(parameters, &mut out)?;
        let (server_version, server_encoding) = (String::new(), String::new());
        let (scram, phase) = (None, Phase::Proving);
        let login = Login { account, channel, scram, phase, server_version, server_encoding };
        Ok((login, out.to_vec()))
    }

    /// The server's version as it reports it: `15.18 (Debian 15.18-0+deb12u1)`.
    #[must_use]
    pub fn server_version(&self) -> &str {
        &self.server_version
    }

    /// A statement that must be executed first, if any. A database without an encoding (`SQL_ASCII`) contains
    /// bytes that the server would refuse to send as UTF-8.
    #[must_use]
    pub fn first_statement(&self) -> Option<&'static str> {
        (self.server_encoding == "SQL_ASCII").then_some("SET client_encoding = 'SQL_ASCII'")
    }

    /// Processes the next frame.
    ///
    /// # Errors
    /// The reason why the login failed; the connection cannot be used any more.
    pub fn read(&mut self, frame: &Frame) -> Result<LoginStep, LoginRefused> {
        let payload = frame.whole()?;
        match (frame.tag, self.phase) {
            (b'E', _) => Err(LoginRefused::Server(ServerError::read(payload)?)),
            (b'N' | b'v', _) => Ok(LoginStep::Wait),
            (b'R', Phase::Proving | Phase::Proved) => self.prove(Reader::new(payload)),
            (b'K', Phase::Welcome) => Ok(LoginStep::Wait),
            (b'S', Phase::Welcome) => {
                let mut reader = Reader::new(payload);
                match (reader.text()?, reader.text()?) {
                    ("server_version", value) => value.clone_into(&mut self.server_version),
                    ("server_encoding", value) => value.clone_into(&mut self.server_encoding),
                    _ => {}
                }
                Ok(LoginStep::Wait)
            }
            (b'Z', Phase::Welcome) => Ok(LoginStep::Done),
            _ => Err(Refusal::UnexpectedMessage.into()),
        }
    }

    fn prove(&mut self, mut reader: Reader<'_>) -> Result<LoginStep, LoginRefused> {
        let mut out = BytesMut::new();
        match (reader.u32()?, &mut self.scram) {
            (0, scram) => {
                // A server that began the SCRAM exchange must complete it.
                if scram.is_some() && self.phase != Phase::Proved {
                    return Err(Refusal::UnexpectedMessage.into());
                }
                self.phase = Phase::Welcome;
                return Ok(LoginStep::Wait);
            }
            (3, None) => {
                if self.channel == Channel::Plain {
                    return Err(LoginRefused::PasswordInTheClear);
                }
                frontend::password_message(self.password()?, &mut out)?;
            }
            (5, None) => {
                let salt = reader.u32()?.to_be_bytes();
                let hash = md5_hash(self.account.user.as_bytes(), self.password()?, salt);
                frontend::password_message(hash.as_bytes(), &mut out)?;
            }
            (10, None) => {
                let methods = methods(reader)?;
                if !methods.iter().any(|method| method == SCRAM) {
                    return Err(LoginRefused::UnknownMethod(methods.join(", ")));
                }
                let binding = sasl::ChannelBinding::unsupported();
                let scram = sasl::ScramSha256::new(self.password()?, binding);
                frontend::sasl_initial_response(SCRAM, scram.message(), &mut out)?;
                self.scram = Some(scram);
            }
            (11, Some(scram)) => {
                check_rounds(reader.rest())?;
                scram.update(reader.rest()).map_err(bad_proof)?;
                frontend::sasl_response(scram.message(), &mut out)?;
            }
            (12, Some(scram)) => {
                scram.finish(reader.rest()).map_err(bad_proof)?;
                self.phase = Phase::Proved;
                return Ok(LoginStep::Wait);
            }
            (3 | 5 | 10 | 11 | 12, _) => return Err(Refusal::UnexpectedMessage.into()),
            (2, _) => return Err(LoginRefused::UnknownMethod("Kerberos".into())),
            (7, _) => return Err(LoginRefused::UnknownMethod("GSSAPI".into())),
            (9, _) => return Err(LoginRefused::UnknownMethod("SSPI".into())),
            (number, _) => return Err(LoginRefused::UnknownMethod(number.to_string())),
        }
        Ok(LoginStep::Send(out.to_vec()))
    }

    fn password(&self) -> Result<&[u8], LoginRefused> {
        match self.account.password.as_bytes() {
            [] => Err(LoginRefused::NoPassword),
            password => Ok(password),
        }
    }
}

fn bad_proof(error: io::Error) -> LoginRefused {
    LoginRefused::BadProof(error.to_string())
}

fn methods(mut reader: Reader<'_>) -> Result<Vec<String>, Refusal> {
    let mut methods = Vec::new();
    loop {
        match reader.text()? {
            "" => return Ok(methods),
            method => methods.push(method.to_owned()),
        }
    }
}

/// Checks the number of hash iterations at the end of the server's first message: `i=4096`.
fn check_rounds(message: &[u8]) -> Result<(), LoginRefused> {
    let text = std::str::from_utf8(message).map_err(|_| Refusal::BadText)?;
    let rounds = text.split(',').find_map(|part| part.strip_prefix("i="));
    let rounds = rounds.and_then(|rounds| rounds.parse::<u64>().ok()).ok_or(Refusal::BadValue)?;
    if rounds <= ROUNDS_MAX { Ok(()) } else { Err(Refusal::TooLong.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn frame(tag: u8, payload: &[u8]) -> Frame {
        let payload = Bytes::copy_from_slice(payload);
        Frame { tag, wire_bytes: payload.len() as u64, payload }
    }

    fn login(channel: Channel, password: &str) -> Login {
        let account = Account { user: "u".into(), password: password.into(), database: "d".into() };
        Login::begin(account, channel, Purpose::Replication).expect("it begins").0
    }

    #[test]
    fn a_password_is_not_sent_in_the_clear() {
        let asked = frame(b'R', &[0, 0, 0, 3]);
        let refused = login(Channel::Plain, "p").read(&asked);
        assert_eq!(refused, Err(LoginRefused::PasswordInTheClear));
        let sent = login(Channel::Local, "p").read(&asked);
        assert_eq!(sent, Ok(LoginStep::Send(b"p\0\0\0\x06p\0".to_vec())));
        let refused = login(Channel::Local, "").read(&asked);
        assert_eq!(refused, Err(LoginRefused::NoPassword));
    }

    #[test]
    fn a_server_without_proof_is_refused() {
        let mut login = login(Channel::Plain, "p");
        let begun = login.read(&frame(b'R', b"\0\0\0\x0aSCRAM-SHA-256\0\0"));
        assert!(matches!(begun, Ok(LoginStep::Send(_))));
        let content = login.read(&frame(b'R', &[0, 0, 0, 0]));
        assert_eq!(content, Err(Refusal::UnexpectedMessage.into()));
        let asked = login.read(&frame(b'R', b"\0\0\0\x0br=x,s=YQ==,i=999999999"));
        assert_eq!(asked, Err(Refusal::TooLong.into()));
    }

    #[test]
    fn other_methods_are_named() {
        for (payload, name) in [
            (&b"\0\0\0\x07"[..], "GSSAPI"),
            (b"\0\0\0\x0aSCRAM-SHA-512\0OTHER\0\0", "SCRAM-SHA-512, OTHER"),
        ] {
            let refused = login(Channel::Tls, "p").read(&frame(b'R', payload));
            assert_eq!(refused, Err(LoginRefused::UnknownMethod(name.into())));
        }
    }
}
