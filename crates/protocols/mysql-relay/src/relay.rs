//! One relayed connection: bytes of each side in, bytes for the other side and events out.
//!
//! | phase | the client sends | the server sends |
//! |---|---|---|
//! | greeting | nothing | the greeting, reduced → response |
//! | response | its account, checked → login | an error |
//! | login | proofs | switches and more data; OK → commands |
//! | commands | commands: recorded when complete, before their last byte is passed on | responses: only the first packet is looked at |
//! | file | the content of a local file; an empty packet → commands | nothing |
//!
//! Invariants: a statement is reported before the server can have answered it. A command with an unknown
//! effect is never passed over in silence. Memory: one command of at most [`TEXT_MAX`] bytes, one packet of
//! a login of at most 64 KB, and the prepared statements. Not here: sockets, time, and which request a
//! statement belongs to.

use crate::RelayRefused;
use crate::frames::{FrameCutter, FramePiece};
use crate::login::{self, AccountCheck, LoginFacts};
use crate::prepared::PreparedStatements;
use crate::refused::{IsGreeted, error_packet};
use crate::session::{SessionEffect, SessionMode, SqlSession, StatusMoment};
use mysql_wire::commands::{
    COM_CHANGE_USER, COM_FIELD_LIST, COM_INIT_DB, COM_PING, COM_PROCESS_KILL, COM_QUERY, COM_QUIT,
    COM_RESET_CONNECTION, COM_SET_OPTION, COM_STATISTICS, COM_STMT_CLOSE, COM_STMT_EXECUTE,
    COM_STMT_FETCH, COM_STMT_PREPARE, COM_STMT_RESET, COM_STMT_SEND_LONG_DATA,
};
use mysql_wire::packet::put_packet;
use mysql_wire::reader::Reader;
use mysql_wire::response::{AUTH_MORE, AUTH_SWITCH, ERR, LOCAL_FILE, OK};

/// The maximum length of the text of a statement that is recorded, in bytes.
pub const TEXT_MAX: usize = 1 << 20;
/// The maximum length of a packet of a login.
const LOGIN_MAX: usize = 64 << 10;
/// The number of bytes of a response that are looked at.
const HEAD_BYTES: usize = 32;
/// A buffer that grew beyond this is freed after its command.
const BUFFER_KEPT: usize = 64 << 10;

/// Something that a connection has done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RelayEvent {
    /// The login is complete.
    Connected,
    /// A statement is sent, in this mode.
    Statement(Vec<u8>, SessionMode),
    /// Something is sent, and its reads are not known; the reason.
    Unknown(&'static str),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Greeting,
    Response,
    Login { is_switched: bool, is_first: bool },
    Commands,
    File,
}

/// The response that is expected next.
#[derive(Debug)]
enum ExpectedResponse {
    /// A success has this effect.
    Effect(SessionEffect),
    Query(SessionEffect),
    Prepared(Option<Vec<u8>>, SessionMode),
    Reset,
    /// Rows of a cursor, which begin as an OK packet does.
    Rows,
}

/// One connection between a client and a server, as the relay follows it.
#[derive(Debug)]
pub struct Relay {
    check: AccountCheck,
    /// The schema whose tables are known.
    schema: Box<[u8]>,
    phase: Phase,
    client: FrameCutter,
    server: FrameCutter,
    /// A packet of the login, or the command.
    from_client: Vec<u8>,
    /// The length of the command so far.
    command_bytes: usize,
    /// The header of a command whose first byte has not arrived.
    held_header: Option<[u8; 4]>,
    /// A packet of the login, or the beginning of a response.
    from_server: Vec<u8>,
    is_head_read: bool,
    /// Whether no byte of the server's packet has arrived.
    is_packet_new: bool,
    awaited: Option<ExpectedResponse>,
    login: LoginFacts,
    /// The account after a change of user, once it has succeeded.
    session: SqlSession,
    prepared: PreparedStatements,
    /// The sequence number of a packet that the client would expect next.
    sequence: u8,
}

impl Relay {
    /// The relay of a new connection. `schema` is the database whose tables are known.
    #[must_use]
    pub fn new(check: AccountCheck, schema: &[u8]) -> Relay {
        Relay {
            check,
            schema: schema.into(),
            phase: Phase::Greeting,
            client: FrameCutter::default(),
            server: FrameCutter::default(),
            from_client: Vec::new(),
            command_bytes: 0,
            held_header: None,
            from_server: Vec::new(),
            is_head_read: false,
            is_packet_new: false,
            awaited: None,
            login: LoginFacts::default(),
            session: SqlSession::default(),
            prepared: PreparedStatements::default(),
            sequence: 0,
        }
    }

    /// Whether the login is complete.
    #[must_use]
    pub fn is_logged_in(&self) -> bool {
        matches!(self.phase, Phase::Commands | Phase::File)
    }

    /// Whether the connection may end here without a loss: no command is being sent or answered.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        let is_between = self.client.is_between_packets() && self.server.is_between_packets();
        self.phase == Phase::Commands && is_between && self.awaited.is_none()
    }

    /// The packet that tells the client why it is disconnected. Empty in the middle of a packet.
    #[must_use]
    pub fn farewell(&self, refused: &RelayRefused) -> Vec<u8> {
        if self.is_logged_in() && !self.server.is_between_packets() {
            return Vec::new();
        }
        let is_greeted = if self.phase == Phase::Greeting { IsGreeted::No } else { IsGreeted::Yes };
        error_packet(self.sequence, &refused.to_string(), is_greeted)
    }

    /// Takes bytes from the server. Appends the bytes for the client to `out`.
    ///
    /// # Errors
    /// The connection must be closed. The bytes in `out` may be sent before the [`Relay::farewell`].
    pub fn take_from_server(
        &mut self,
        mut bytes: &[u8],
        out: &mut Vec<u8>,
        events: &mut Vec<RelayEvent>,
    ) -> Result<(), RelayRefused> {
        while let Some(piece) = self.server.next(&mut bytes)? {
            match (piece, self.is_logged_in()) {
                (FramePiece::Header { bytes: header, is_first }, true) => {
                    out.extend_from_slice(&header);
                    if is_first {
                        self.from_server.clear();
                        self.is_head_read = false;
                        self.is_packet_new = true;
                    }
                }
                (FramePiece::Data { bytes, is_last }, true) => {
                    out.extend_from_slice(bytes);
                    // No row and no definition of a column begins like this, so an error is seen after rows, too.
                    if let Some(first) = bytes.first()
                        && std::mem::take(&mut self.is_packet_new)
                        && *first == ERR
                    {
                        events.push(RelayEvent::Unknown("a statement failed"));
                    }
                    self.read_response(bytes, is_last);
                }
                (FramePiece::Header { bytes: header, .. }, false) => {
                    self.sequence = header[3];
                    self.from_server.clear();
                }
                (FramePiece::Data { bytes, is_last }, false) => {
                    hold(&mut self.from_server, bytes)?;
                    if is_last {
                        let payload = std::mem::take(&mut self.from_server);
                        self.login_packet(&payload, out, events)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Takes bytes from the client. Appends the bytes for the server to `out`.
    ///
    /// # Errors
    /// The connection must be closed, and the bytes in `out` must not be sent.
    pub fn take_from_client(
        &mut self,
        mut bytes: &[u8],
        out: &mut Vec<u8>,
        events: &mut Vec<RelayEvent>,
    ) -> Result<(), RelayRefused> {
        while let Some(piece) = self.client.next(&mut bytes)? {
            match (piece, self.phase) {
                (_, Phase::Greeting) => return Err(RelayRefused::Overlap),
                (
                    FramePiece::Header { bytes: header, .. },
                    Phase::Response | Phase::Login { .. },
                ) => {
                    self.sequence = header[3].wrapping_add(1);
                    self.from_client.clear();
                }
                (FramePiece::Data { bytes, is_last }, Phase::Response | Phase::Login { .. }) => {
                    hold(&mut self.from_client, bytes)?;
                    if is_last {
                        self.account_packet(out)?;
                    }
                }
                (FramePiece::Header { bytes: header, is_first }, Phase::Commands) => {
                    self.sequence = header[3].wrapping_add(1);
                    self.command_header(header, is_first, out)?;
                }
                (FramePiece::Data { bytes, is_last }, Phase::Commands) => {
                    self.command_data(bytes, is_last, out, events)?;
                }
                (FramePiece::Header { bytes: header, is_first }, Phase::File) => {
                    self.sequence = header[3].wrapping_add(1);
                    self.command_bytes = if is_first { 0 } else { self.command_bytes };
                    out.extend_from_slice(&header);
                }
                (FramePiece::Data { bytes, is_last }, Phase::File) => {
                    out.extend_from_slice(bytes);
                    self.command_bytes += bytes.len();
                    if is_last && self.command_bytes == 0 {
                        self.phase = Phase::Commands;
                    }
                }
            }
        }
        Ok(())
    }

    /// A whole packet of the server before the login is complete.
    fn login_packet(
        &mut self,
        payload: &[u8],
        out: &mut Vec<u8>,
        events: &mut Vec<RelayEvent>,
    ) -> Result<(), RelayRefused> {
        let first = payload.first().copied();
        match (self.phase, first) {
            (_, Some(ERR)) => {
                if let Phase::Login { is_first: false, .. } = self.phase {
                    self.phase = Phase::Commands;
                    self.session.apply(SessionEffect::unknown("a change of user failed"));
                }
            }
            (Phase::Greeting, _) => {
                put_packet(out, self.sequence, &login::reduced_greeting(payload)?);
                self.phase = Phase::Response;
                return Ok(());
            }
            (Phase::Login { is_switched, is_first }, Some(OK)) => {
                if is_first && !is_switched && self.check != AccountCheck::None {
                    let user = String::from_utf8_lossy(&self.login.user).into_owned();
                    return Err(RelayRefused::SocketAccount(user));
                }
                self.session.begin(self.login.collation, &self.login.schema);
                self.session.compare(ok_status(payload).unwrap_or_default(), StatusMoment::Start);
                self.prepared.clear();
                self.phase = Phase::Commands;
                if is_first {
                    events.push(RelayEvent::Connected);
                }
            }
            (Phase::Login { is_first, .. }, Some(AUTH_SWITCH)) if payload.len() > 1 => {
                if login::is_socket_plugin(login::switched_plugin(&payload[1..])) {
                    let user = String::from_utf8_lossy(&self.login.user).into_owned();
                    return Err(RelayRefused::SocketAccount(user));
                }
                self.phase = Phase::Login { is_switched: true, is_first };
            }
            (Phase::Login { .. }, Some(AUTH_MORE)) => {}
            _ => return Err(RelayRefused::Protocol("the database sent an unexpected packet")),
        }
        put_packet(out, self.sequence, payload);
        Ok(())
    }

    /// A whole packet of the client before the login is complete.
    fn account_packet(&mut self, out: &mut Vec<u8>) -> Result<(), RelayRefused> {
        let payload = std::mem::take(&mut self.from_client);
        let sequence = self.sequence.wrapping_sub(1);
        if self.phase == Phase::Response {
            let (facts, changed) = login::checked_response(&payload, &self.check)?;
            self.login = facts;
            self.phase = Phase::Login { is_switched: false, is_first: true };
            put_packet(out, sequence, &changed);
        } else {
            put_packet(out, sequence, &payload);
        }
        Ok(())
    }

    fn command_header(
        &mut self,
        header: [u8; 4],
        is_first: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), RelayRefused> {
        if !is_first {
            out.extend_from_slice(&header);
            return Ok(());
        }
        if header[3] != 0 {
            return Err(RelayRefused::OutOfSequence);
        }
        self.from_client.clear();
        self.command_bytes = 0;
        self.held_header = Some(header);
        Ok(())
    }

    fn command_data(
        &mut self,
        bytes: &[u8],
        is_last: bool,
        out: &mut Vec<u8>,
        events: &mut Vec<RelayEvent>,
    ) -> Result<(), RelayRefused> {
        let room = (TEXT_MAX + 1).saturating_sub(self.from_client.len());
        self.from_client.extend_from_slice(&bytes[..bytes.len().min(room)]);
        self.command_bytes += bytes.len();
        let Some(&command) = self.from_client.first() else {
            return Err(RelayRefused::Protocol("a command is empty"));
        };
        if command == COM_CHANGE_USER {
            return self.change_user(is_last, out);
        }
        if let Some(header) = self.held_header.take() {
            let is_answered = self.awaited.is_none() && self.server.is_between_packets();
            if !is_answered && command != COM_QUIT {
                return Err(RelayRefused::Overlap);
            }
            if !is_allowed(command) {
                return Err(RelayRefused::Command(command));
            }
            out.extend_from_slice(&header);
        }
        out.extend_from_slice(bytes);
        if is_last {
            let mut payload = std::mem::take(&mut self.from_client);
            let is_whole = payload.len() == self.command_bytes;
            self.command(command, &payload[1..], is_whole, events);
            payload.clear();
            payload.shrink_to(BUFFER_KEPT);
            self.from_client = payload;
        }
        Ok(())
    }

    /// Passes a change of user on as soon as it is known that the account stays the same.
    fn change_user(&mut self, is_last: bool, out: &mut Vec<u8>) -> Result<(), RelayRefused> {
        if self.command_bytes > LOGIN_MAX {
            return Err(RelayRefused::LoginTooLong);
        }
        if !is_last {
            return Ok(());
        }
        let payload = std::mem::take(&mut self.from_client);
        let facts = login::changed_user(&payload[1..], self.login.capabilities)?;
        if facts.user != self.login.user {
            return Err(RelayRefused::OtherAccount);
        }
        if self.awaited.is_some() || !self.server.is_between_packets() {
            return Err(RelayRefused::Overlap);
        }
        self.login = facts;
        self.held_header = None;
        self.phase = Phase::Login { is_switched: false, is_first: false };
        put_packet(out, 0, &payload);
        Ok(())
    }

    /// A command has arrived. `is_whole` is false if only the beginning of its payload is here.
    fn command(
        &mut self,
        command: u8,
        payload: &[u8],
        is_whole: bool,
        events: &mut Vec<RelayEvent>,
    ) {
        let id = || Reader::new(payload).u32().unwrap_or(u32::MAX);
        let mode = self.session.mode();
        match command {
            COM_QUERY if is_whole => {
                let effect = SessionEffect::of_text(payload, mode);
                if !effect.is_plain_setting() {
                    self.report(payload.to_vec(), mode, &effect, events);
                }
                self.awaited = Some(ExpectedResponse::Query(effect));
            }
            COM_QUERY => {
                events.push(RelayEvent::Unknown("a statement of more than 1 MB was sent"));
                self.awaited = Some(ExpectedResponse::Query(SessionEffect::of_long_text()));
            }
            COM_INIT_DB => {
                self.awaited = Some(ExpectedResponse::Effect(SessionEffect::schema(payload)));
            }
            COM_STMT_PREPARE => {
                let text = is_whole.then(|| payload.to_vec());
                self.awaited = Some(ExpectedResponse::Prepared(text, mode));
            }
            COM_STMT_EXECUTE => {
                let mut effect = SessionEffect::default();
                match self.prepared.execute(payload) {
                    Ok((text, prepared_in)) if is_whole => {
                        effect = SessionEffect::of_text(&text, prepared_in);
                        self.report(text, prepared_in, &effect, events);
                    }
                    Ok(_) => {
                        events.push(RelayEvent::Unknown("values of more than 1 MB were sent"));
                    }
                    Err(unknown) => events.push(RelayEvent::Unknown(unknown.0)),
                }
                self.awaited = Some(ExpectedResponse::Effect(effect));
            }
            // These two have no response.
            COM_STMT_SEND_LONG_DATA => self.prepared.note_piece(id()),
            COM_STMT_CLOSE => self.prepared.remove(id()),
            COM_STMT_RESET => {
                self.prepared.forget_pieces(id());
                self.awaited = Some(ExpectedResponse::Effect(SessionEffect::default()));
            }
            COM_STMT_FETCH => self.awaited = Some(ExpectedResponse::Rows),
            COM_RESET_CONNECTION => self.awaited = Some(ExpectedResponse::Reset),
            COM_QUIT => {}
            COM_FIELD_LIST => {
                events.push(RelayEvent::Unknown("the list of a table's columns was requested"));
                self.awaited = Some(ExpectedResponse::Effect(SessionEffect::default()));
            }
            // COM_STATISTICS and the others read no rows of a table.
            _ => self.awaited = Some(ExpectedResponse::Effect(SessionEffect::default())),
        }
    }

    fn report(
        &self,
        text: Vec<u8>,
        mode: SessionMode,
        effect: &SessionEffect,
        events: &mut Vec<RelayEvent>,
    ) {
        let schema = self.session.schema();
        events.push(match self.session.unknown().or(effect.unknown_reason()) {
            Some(reason) => RelayEvent::Unknown(reason),
            None if !schema.is_empty() && *schema != *self.schema => {
                RelayEvent::Unknown("the connection uses another database than the followed one")
            }
            None if text.len() > TEXT_MAX => {
                RelayEvent::Unknown("a statement of more than 1 MB was sent")
            }
            None => RelayEvent::Statement(text, mode),
        });
    }

    /// Looks at the beginning of the response to the last command.
    fn read_response(&mut self, bytes: &[u8], is_last: bool) {
        if self.is_head_read || self.awaited.is_none() {
            return;
        }
        let room = HEAD_BYTES - self.from_server.len();
        self.from_server.extend_from_slice(&bytes[..bytes.len().min(room)]);
        if !is_last && self.from_server.len() < HEAD_BYTES {
            return;
        }
        self.is_head_read = true;
        let head = std::mem::take(&mut self.from_server);
        match (self.awaited.take(), head.first().copied()) {
            (Some(ExpectedResponse::Query(effect)), Some(LOCAL_FILE)) => {
                self.awaited = Some(ExpectedResponse::Query(effect));
                self.phase = Phase::File;
            }
            (
                Some(ExpectedResponse::Effect(effect) | ExpectedResponse::Query(effect)),
                Some(ERR),
            ) => {
                self.session.apply_failed(&effect);
            }
            (Some(ExpectedResponse::Effect(effect) | ExpectedResponse::Query(effect)), first) => {
                self.session.apply(effect);
                if first == Some(OK)
                    && let Some(status) = ok_status(&head)
                {
                    self.session.compare(status, StatusMoment::Later);
                }
            }
            (Some(ExpectedResponse::Prepared(Some(text), mode)), Some(OK)) => {
                let mut reader = Reader::new(&head[1..]);
                if let (Ok(id), Ok(_), Ok(parameters)) = (reader.u32(), reader.u16(), reader.u16())
                {
                    self.prepared.add(id, text, mode, parameters);
                }
            }
            (Some(ExpectedResponse::Reset), Some(OK)) => {
                self.session.reset();
                self.prepared.clear();
            }
            _ => {}
        }
        self.from_server = head;
        self.from_server.clear();
    }
}

fn hold(held: &mut Vec<u8>, bytes: &[u8]) -> Result<(), RelayRefused> {
    if held.len() + bytes.len() > LOGIN_MAX {
        return Err(RelayRefused::LoginTooLong);
    }
    held.extend_from_slice(bytes);
    Ok(())
}

/// Whether a command may be passed on. The others are for replicas and administrators.
fn is_allowed(command: u8) -> bool {
    matches!(
        command,
        COM_QUIT
            | COM_INIT_DB
            | COM_QUERY
            | COM_FIELD_LIST
            | COM_STATISTICS
            | COM_PROCESS_KILL
            | COM_PING
            | COM_STMT_PREPARE
            | COM_STMT_EXECUTE
            | COM_STMT_SEND_LONG_DATA
            | COM_STMT_CLOSE
            | COM_STMT_RESET
            | COM_SET_OPTION
            | COM_STMT_FETCH
            | COM_RESET_CONNECTION
    )
}

/// The status flags of an OK packet.
fn ok_status(payload: &[u8]) -> Option<u16> {
    let mut reader = Reader::new(payload);
    reader.take(1).ok()?;
    reader.lenenc().ok()?;
    reader.lenenc().ok()?;
    reader.u16().ok()
}

#[cfg(test)]
#[path = "relay_tests.rs"]
mod tests;
