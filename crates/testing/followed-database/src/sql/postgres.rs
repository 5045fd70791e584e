//! Statements to PostgreSQL over its Unix socket, one after the other.
//!
//! The bytes are those of `postgres_replication::wire`. After an error the connection is not used again.

use super::{PATIENCE, READ_BYTES, Row};
use bytes::BytesMut;
use postgres_replication::wire::frame::{Frame, FrameReader};
use postgres_replication::wire::login::{Account, Channel, Login, LoginStep, Purpose};
use postgres_replication::wire::query::{Query, QueryLimits, query};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

const FRAME_BYTES: usize = 16 << 20;

/// A connection as `writer` to the database `items`.
pub struct Connection {
    socket: UnixStream,
    frames: FrameReader,
    input: BytesMut,
    piece: Vec<u8>,
}

impl Connection {
    /// Connects and logs in.
    ///
    /// # Errors
    /// Why it could not.
    pub fn open(socket: &Path) -> Result<Connection, String> {
        let socket = UnixStream::connect(socket).map_err(|error| format!("PostgreSQL: {error}"))?;
        socket.set_read_timeout(Some(PATIENCE)).map_err(|error| error.to_string())?;
        let (frames, input) = (FrameReader::new(FRAME_BYTES), BytesMut::new());
        let mut sql = Connection { socket, frames, input, piece: vec![0; READ_BYTES] };
        let word = |text: &str| text.to_owned();
        let account =
            Account { user: word("writer"), password: word("secret"), database: word("items") };
        let begun = Login::begin(account, Channel::Local, Purpose::Statements);
        let (mut login, hello) = begun.map_err(|error| error.to_string())?;
        sql.send(&hello)?;
        loop {
            let frame = sql.receive()?;
            match login.read(&frame).map_err(|error| error.to_string())? {
                LoginStep::Send(bytes) => sql.send(&bytes)?,
                LoginStep::Wait => {}
                LoginStep::Done => return Ok(sql),
            }
        }
    }

    /// Runs a statement.
    ///
    /// # Errors
    /// The error of the server or of the network.
    pub fn run(&mut self, statement: &str) -> Result<Vec<Row>, String> {
        self.send(&query(statement).map_err(|error| error.to_string())?)?;
        let mut reading = Query::new(QueryLimits::default());
        loop {
            let frame = self.receive()?;
            let read = reading.read(&frame);
            if let Some(rows) = read.map_err(|error| format!("{statement}: {error}"))? {
                let row = |at| (rows.text(at, 0), rows.text(at, 1));
                return Ok((0..rows.rows.len()).map(row).collect());
            }
        }
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.socket.write_all(bytes).map_err(|error| format!("PostgreSQL: {error}"))
    }

    fn receive(&mut self) -> Result<Frame, String> {
        loop {
            let frame = self.frames.read(&mut self.input);
            if let Some(frame) = frame.map_err(|refusal| refusal.to_string())? {
                return Ok(frame);
            }
            match self.socket.read(&mut self.piece) {
                Ok(0) => return Err("PostgreSQL has closed a connection".into()),
                Ok(len) => self.input.extend_from_slice(&self.piece[..len]),
                Err(error) => return Err(format!("PostgreSQL: {error}")),
            }
        }
    }
}
