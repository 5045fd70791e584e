//! The login as a state machine: payloads in, payloads to send out.
//!
//! | state | the server sends | effect |
//! |---|---|---|
//! | `Greeting` | its greeting | `Tls` (a TLS request is sent), or `Proof` (the login is sent) |
//! | `Tls` | nothing; the caller starts TLS and reports it | `Proof` |
//! | `Proof` | OK | done |
//! | `Proof` | another plugin and challenge | `Proof`, with that plugin's response |
//! | `Proof` | "continue" of `caching_sha2_password` | `Proof`; the plain password is sent if the channel is secure |
//! | `Proof` | an error | refused |
//!
//! Invariant: the plain password is sent only over TLS or a Unix socket. A server can cause at most
//! [`STEPS_MAX`] exchanges.

use super::auth::Plugin;
use super::greeting::{Greeting, LoginAs};
use super::packet::{Packet, put_packet};
use super::response::{self, AUTH_MORE, AUTH_SWITCH, Response, ServerError};
use crate::Refusal;
use crate::reader::Reader;
use std::fmt;

/// The maximum number of exchanges after the greeting.
pub const STEPS_MAX: u32 = 8;
const FAST_OK: u8 = 3;
const SEND_PASSWORD: u8 = 4;

/// The kind of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Channel {
    /// A TCP connection without encryption.
    Plain,
    /// A TCP connection that must be upgraded to TLS before account data is sent.
    Tls,
    /// A Unix socket, on which nobody can eavesdrop.
    Local,
}

/// The account of a login.
#[derive(Clone, PartialEq, Eq)]
pub struct Account {
    /// The name of the account.
    pub user: String,
    /// The password; may be empty.
    pub password: String,
    /// The default database; may be empty.
    pub database: String,
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Account {{ user: {:?}, database: {:?} }}", self.user, self.database)
    }
}

/// The next step of a login. Bytes to send are complete packets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoginStep {
    /// Send these bytes; then pass the next packet to [`Login::read`].
    Send(Vec<u8>),
    /// Send these bytes, start TLS on the connection, then call [`Login::tls_is_up`].
    StartTls(Vec<u8>),
    /// Nothing to send; pass the next packet.
    Wait,
    /// The login is complete.
    Done,
}

/// The reason why a login failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoginRefused {
    /// The server reported an error.
    Server(ServerError),
    /// TLS is required, and the server does not support it.
    NoTls,
    /// The server is too old.
    OldServer,
    /// The account uses an unsupported login plugin.
    UnknownPlugin(String),
    /// `caching_sha2_password` requests the plain password, and the connection is neither TLS nor a Unix
    /// socket. The RSA exchange is not supported.
    PasswordInTheClear,
    /// The server exceeded [`STEPS_MAX`].
    TooManySteps,
    /// A packet is invalid.
    Packet(Refusal),
}

impl LoginRefused {
    /// The name of the reason in logs.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            LoginRefused::Server(error) => error.kind().as_str(),
            LoginRefused::NoTls => "no-tls",
            LoginRefused::OldServer => "old-server",
            LoginRefused::UnknownPlugin(_) => "unknown-plugin",
            LoginRefused::PasswordInTheClear => "password-in-the-clear",
            LoginRefused::TooManySteps => "too-many-steps",
            LoginRefused::Packet(refusal) => refusal.as_str(),
        }
    }

    /// Whether a new attempt fails in the same way until a setting or an account is changed.
    #[must_use]
    pub fn is_lasting(&self) -> bool {
        match self {
            LoginRefused::Server(error) => error.kind().is_lasting(),
            LoginRefused::NoTls
            | LoginRefused::OldServer
            | LoginRefused::UnknownPlugin(_)
            | LoginRefused::PasswordInTheClear => true,
            LoginRefused::TooManySteps | LoginRefused::Packet(_) => false,
        }
    }
}

impl fmt::Display for LoginRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoginRefused::Server(error) => error.fmt(f),
            LoginRefused::NoTls => f.write_str("the server offers no TLS"),
            LoginRefused::OldServer => f.write_str("the server speaks too old a protocol"),
            LoginRefused::UnknownPlugin(name) => write!(f, "the login plugin {name} is not known"),
            LoginRefused::PasswordInTheClear => f.write_str(
                "the server wants the password itself; use TLS or a Unix socket, \
                 or log in once with another client so that the server has it cached",
            ),
            LoginRefused::TooManySteps => f.write_str("the login does not come to an end"),
            LoginRefused::Packet(refusal) => refusal.fmt(f),
        }
    }
}

impl std::error::Error for LoginRefused {}

impl From<Refusal> for LoginRefused {
    fn from(refusal: Refusal) -> LoginRefused {
        LoginRefused::Packet(refusal)
    }
}

/// A login in progress.
#[derive(Debug)]
pub struct Login {
    account: Account,
    channel: Channel,
    packet_max: u32,
    greeting: Option<Greeting>,
    state: State,
    steps: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Greeting,
    Tls,
    Proof(Plugin),
    Done,
}

impl Login {
    /// A new login; the first packet to pass is the server's greeting. `packet_max` is the maximum packet
    /// length in bytes that is announced to the server.
    #[must_use]
    pub fn new(account: Account, channel: Channel, packet_max: u32) -> Login {
        Login { account, channel, packet_max, greeting: None, state: State::Greeting, steps: 0 }
    }

    /// The server's greeting, once it has arrived.
    #[must_use]
    pub fn greeting(&self) -> Option<&Greeting> {
        self.greeting.as_ref()
    }

    /// Processes the server's next packet.
    ///
    /// # Errors
    /// The reason why the login failed.
    pub fn read(&mut self, packet: &Packet) -> Result<LoginStep, LoginRefused> {
        let payload = packet.whole()?;
        if let Response::Err(error) = response::read(payload) {
            return Err(LoginRefused::Server(error));
        }
        self.steps += 1;
        if self.steps > STEPS_MAX {
            return Err(LoginRefused::TooManySteps);
        }
        match self.state {
            State::Greeting => self.greeted(payload, packet.sequence),
            State::Proof(plugin) => self.answered(plugin, payload, packet.sequence),
            State::Tls | State::Done => Err(Refusal::UnexpectedPacket.into()),
        }
    }

    /// Continues the login over TLS, after a [`LoginStep::StartTls`].
    ///
    /// # Errors
    /// `UnexpectedPacket` if TLS was not requested; `UnknownPlugin`.
    pub fn tls_is_up(&mut self) -> Result<LoginStep, LoginRefused> {
        if self.state != State::Tls {
            return Err(Refusal::UnexpectedPacket.into());
        }
        // The TLS request had sequence number 1.
        self.log_in(2)
    }

    fn greeted(&mut self, payload: &[u8], sequence: u8) -> Result<LoginStep, LoginRefused> {
        let greeting = Greeting::read(payload)?;
        if !greeting.is_recent() {
            return Err(LoginRefused::OldServer);
        }
        let (offers_tls, tls_request) =
            (greeting.offers_tls(), greeting.tls_request(&self.account.database, self.packet_max));
        self.greeting = Some(greeting);
        let sequence = sequence.wrapping_add(1);
        match (self.channel, offers_tls) {
            (Channel::Tls, false) => Err(LoginRefused::NoTls),
            (Channel::Tls, true) => {
                self.state = State::Tls;
                Ok(LoginStep::StartTls(framed(sequence, &tls_request)))
            }
            (Channel::Plain | Channel::Local, _) => self.log_in(sequence),
        }
    }

    fn log_in(&mut self, sequence: u8) -> Result<LoginStep, LoginRefused> {
        let greeting = self.greeting.as_ref().ok_or(Refusal::UnexpectedPacket)?;
        // An unsupported plugin is the server's default, and perhaps not the account's. If they differ, the
        // server switches to the account's plugin.
        let plugin = Plugin::by_name(&greeting.plugin).unwrap_or(Plugin::Native);
        let proof = match plugin {
            // Its challenge only arrives with the switch.
            Plugin::Ed25519 => Vec::new(),
            plugin => plugin.proof(self.account.password.as_bytes(), &greeting.challenge),
        };
        let who = LoginAs {
            user: &self.account.user,
            database: &self.account.database,
            plugin: plugin.as_str(),
            with_tls: self.channel == Channel::Tls,
            packet_max: self.packet_max,
        };
        let payload = greeting.login(&who, &proof);
        self.state = State::Proof(plugin);
        Ok(LoginStep::Send(framed(sequence, &payload)))
    }

    fn answered(
        &mut self,
        plugin: Plugin,
        payload: &[u8],
        sequence: u8,
    ) -> Result<LoginStep, LoginRefused> {
        let mut reader = Reader::new(payload);
        match (reader.u8()?, plugin) {
            (0, _) => {
                self.state = State::Done;
                Ok(LoginStep::Done)
            }
            (AUTH_SWITCH, _) => self.switched(reader, sequence),
            (AUTH_MORE, Plugin::CachingSha2) => match reader.u8()? {
                FAST_OK => Ok(LoginStep::Wait),
                SEND_PASSWORD if self.channel == Channel::Plain => {
                    Err(LoginRefused::PasswordInTheClear)
                }
                SEND_PASSWORD => {
                    let mut password = self.account.password.clone().into_bytes();
                    password.push(0);
                    Ok(LoginStep::Send(framed(sequence.wrapping_add(1), &password)))
                }
                _ => Err(Refusal::UnexpectedPacket.into()),
            },
            _ => Err(Refusal::UnexpectedPacket.into()),
        }
    }

    /// Handles "Protocol::AuthSwitchRequest".
    fn switched(
        &mut self,
        mut reader: Reader<'_>,
        sequence: u8,
    ) -> Result<LoginStep, LoginRefused> {
        let name = String::from_utf8_lossy(reader.nul_bytes()).into_owned();
        let Some(plugin) = Plugin::by_name(&name) else {
            return Err(LoginRefused::UnknownPlugin(name));
        };
        let challenge = reader.rest();
        let challenge = challenge.strip_suffix(b"\0").unwrap_or(challenge);
        // Other lengths are refused, so that a server cannot obtain a signature of other data.
        let challenge = match plugin {
            Plugin::Ed25519 if reader.rest().len() != 32 => {
                return Err(Refusal::BadLength.into());
            }
            Plugin::Ed25519 => reader.rest(),
            _ => challenge,
        };
        let proof = plugin.proof(self.account.password.as_bytes(), challenge);
        self.state = State::Proof(plugin);
        Ok(LoginStep::Send(framed(sequence.wrapping_add(1), &proof)))
    }
}

fn framed(sequence: u8, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(payload.len() + 4);
    put_packet(&mut out, sequence, payload);
    out
}
