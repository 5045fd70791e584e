//! Why a connection is not relayed any further, and the error packet for its client.
//!
//! Every reason closes the connection. The client gets an error packet ("ERR_Packet") with the sentence for
//! people, unless the connection is in the middle of a packet. Not here: the log.

use mysql_wire::packet::put_packet;
use std::fmt;

/// `ER_UNKNOWN_ERROR`, for which the text says everything.
const CODE: u16 = 1105;

/// The reason why a connection is closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RelayRefused {
    /// The frames of a payload are out of order, or a command does not begin at zero.
    OutOfSequence,
    /// A packet of the login is longer than any real one.
    LoginTooLong,
    /// The server or the client has another version of the protocol, or the packet is not valid.
    Protocol(&'static str),
    /// The client uses a capability that was removed from the greeting.
    Capability(&'static str),
    /// The server would take the user that runs Pagewell for the client. The account's name.
    SocketAccount(String),
    /// The account has the name of the user that runs Pagewell, by which the server may identify it.
    OwnName(String),
    /// The client changes to another account within the connection.
    OtherAccount,
    /// A command that no application needs, such as that of a replica. Its number.
    Command(u8),
    /// The client sends a command before the response to the previous one is complete.
    Overlap,
}

impl RelayRefused {
    /// The name of the reason in the log.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            RelayRefused::OutOfSequence => "out-of-sequence",
            RelayRefused::LoginTooLong => "login-too-long",
            RelayRefused::Protocol(_) => "protocol",
            RelayRefused::Capability(_) => "capability",
            RelayRefused::SocketAccount(_) => "socket-account",
            RelayRefused::OwnName(_) => "own-name",
            RelayRefused::OtherAccount => "other-account",
            RelayRefused::Command(_) => "command",
            RelayRefused::Overlap => "overlap",
        }
    }
}

impl fmt::Display for RelayRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RelayRefused::OutOfSequence => f.write_str("packets are out of order"),
            RelayRefused::LoginTooLong => f.write_str("a packet of the login is too long"),
            RelayRefused::Protocol(flaw) => f.write_str(flaw),
            RelayRefused::Capability(name) => {
                write!(f, "{name} cannot be used through Pagewell: turn it off in the application")
            }
            RelayRefused::SocketAccount(user) => write!(
                f,
                "the account '{user}' has no password: the database would identify Pagewell's user instead \
                 of PHP's. Give it one: ALTER USER '{user}'@'localhost' IDENTIFIED BY '...'"
            ),
            RelayRefused::OwnName(user) => write!(
                f,
                "the account '{user}' may be that of the user who runs Pagewell, by whom the database would \
                 identify it: use another account with a password"
            ),
            RelayRefused::OtherAccount => f.write_str(
                "a change to another account within a connection cannot be used through Pagewell: open \
                 another connection",
            ),
            RelayRefused::Command(number) => {
                write!(f, "the command {number} cannot be used through Pagewell")
            }
            RelayRefused::Overlap => {
                f.write_str("a command was sent before the response to the previous one was read")
            }
        }
    }
}

impl std::error::Error for RelayRefused {}

/// An error packet with this sequence number, for a client. `is_greeted` says whether the client has seen a
/// greeting: before it, an error has no SQLSTATE.
#[must_use]
pub fn error_packet(sequence: u8, text: &str, is_greeted: IsGreeted) -> Vec<u8> {
    let mut payload = vec![0xff];
    payload.extend_from_slice(&CODE.to_le_bytes());
    if is_greeted == IsGreeted::Yes {
        payload.extend_from_slice(b"#HY000");
    }
    payload.extend_from_slice(b"Pagewell: ");
    payload.extend_from_slice(text.as_bytes());
    let mut packet = Vec::with_capacity(payload.len() + 4);
    put_packet(&mut packet, sequence, &payload);
    packet
}

/// Whether a client has seen the greeting of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IsGreeted {
    /// The client has seen the greeting, so the packet has an SQL state.
    Yes,
    /// The error packet is the first one that the client gets.
    No,
}
