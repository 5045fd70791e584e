//! The login as a state machine: payloads in, payloads to send out.
//!
//! | state | the server sends | then |
//! |---|---|---|
//! | `Greeting` | its greeting | `Tls` (a TLS request is sent), or `Proof` (the login is sent) |
//! | `Tls` | nothing; the caller does TLS and says so | `Proof` |
//! | `Proof` | OK | done |
//! | | another plugin and challenge | `Proof`, with that plugin's proof |
//! | | "go on" of `caching_sha2_password` | `Proof`; the password itself is sent if nobody can listen |
//! | | an error | refused |
//!
//! Invariant: the password leaves in the clear only over TLS or a Unix socket. At most
//! [`STEPS_MAX`] exchanges: a server cannot keep a login going for ever.

use super::auth::Plugin;
use super::greeting::{Greeting, LoginAs};
use super::packet::Packet;
use super::packet::put_packet;
use super::response::{self, Response, ServerError};
use crate::Refusal;
use crate::reader::Reader;
use std::fmt;

/// Exchanges after the greeting.
pub const STEPS_MAX: u32 = 8;
const AUTH_MORE: u8 = 0x01;
const AUTH_SWITCH: u8 = 0xfe;
const FAST_OK: u8 = 3;
const SEND_PASSWORD: u8 = 4;

/// What carries the bytes, and who could listen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Channel {
    /// TCP as it is.
    Plain,
    /// TCP that is to be made TLS before anything is said about the account.
    Tls,
    /// A Unix socket: nobody can listen.
    Local,
}

/// Who logs in.
#[derive(Clone, PartialEq, Eq)]
pub struct Account {
    /// The account's name.
    pub user: String,
    /// Its password; may be empty.
    pub password: String,
    /// The database that statements are about; may be empty.
    pub database: String,
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Account {{ user: {:?}, database: {:?} }}", self.user, self.database)
    }
}

/// What to do next. Bytes to send are whole packets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoginStep {
    /// Send this; then give the next packet to [`Login::read`].
    Send(Vec<u8>),
    /// Send this, do TLS on the connection, then call [`Login::tls_is_up`].
    StartTls(Vec<u8>),
    /// Nothing to send; give the next packet.
    Wait,
    /// Logged in.
    Done,
}

/// Why a login failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoginRefused {
    /// The server says no.
    Server(ServerError),
    /// TLS is wanted, and the server has none.
    NoTls,
    /// The server is too old.
    OldServer,
    /// The account's plugin is none that is known here.
    UnknownPlugin(String),
    /// `caching_sha2_password` wants the password itself, and the connection is neither TLS nor a
    /// Unix socket. Its RSA exchange is not done here.
    PasswordInTheClear,
    /// The server goes on and on.
    TooManySteps,
    /// A packet that cannot be read.
    Packet(Refusal),
}

impl LoginRefused {
    /// Its name, as in logs.
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
    /// A login that has not begun: the first packet to give it is the server's greeting.
    /// `packet_max` is told the server as the longest packet that is taken.
    #[must_use]
    pub fn new(account: Account, channel: Channel, packet_max: u32) -> Login {
        Login { account, channel, packet_max, greeting: None, state: State::Greeting, steps: 0 }
    }

    /// What the server said first, once it has.
    #[must_use]
    pub fn greeting(&self) -> Option<&Greeting> {
        self.greeting.as_ref()
    }

    /// Takes the server's next packet.
    ///
    /// # Errors
    /// Why the login failed.
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

    /// TLS is up after a [`LoginStep::StartTls`]: the login goes over it.
    ///
    /// # Errors
    /// `UnexpectedPacket` if TLS was not asked for; `UnknownPlugin`.
    pub fn tls_is_up(&mut self) -> Result<LoginStep, LoginRefused> {
        if self.state != State::Tls {
            return Err(Refusal::UnexpectedPacket.into());
        }
        // The TLS request had number 1.
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
        // A plugin that is not known here is the server's default, perhaps not the account's: the
        // server switches to the account's when it sees another.
        let plugin = Plugin::by_name(&greeting.plugin).unwrap_or(Plugin::Native);
        let proof = match plugin {
            // Its challenge comes with the switch only.
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

    /// "Protocol::AuthSwitchRequest".
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
        // A signature must not be of something else that somebody would like signed.
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
