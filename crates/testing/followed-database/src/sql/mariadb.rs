//! Statements to MariaDB over its Unix socket, one after the other.
//!
//! The bytes are those of `mysql_wire`. After an error of the network the connection is not used
//! again; after one of a statement it can be.

use super::{PATIENCE, READ_BYTES, Row};
use bytes::BytesMut;
use mysql_wire::login::{Account, Channel, Login, LoginStep};
use mysql_wire::packet::{Packet, PacketReader};
use mysql_wire::query::{Query, QueryLimits, Rows, query};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

const PACKET_BYTES: usize = 16 << 20;

/// A connection as `writer` to the database `items`.
pub struct Connection {
    socket: UnixStream,
    packets: PacketReader,
    input: BytesMut,
    piece: Vec<u8>,
}

impl Connection {
    /// Connects and logs in.
    ///
    /// # Errors
    /// Why it could not.
    pub fn open(socket: &Path) -> Result<Connection, String> {
        let socket = UnixStream::connect(socket).map_err(|error| format!("MariaDB: {error}"))?;
        socket.set_read_timeout(Some(PATIENCE)).map_err(|error| error.to_string())?;
        let (packets, input) = (PacketReader::new(PACKET_BYTES), BytesMut::new());
        let mut sql = Connection { socket, packets, input, piece: vec![0; READ_BYTES] };
        let word = |text: &str| text.to_owned();
        let account =
            Account { user: word("writer"), password: word("secret"), database: word("items") };
        let mut login = Login::new(account, Channel::Local, 1 << 24);
        loop {
            let packet = sql.receive()?;
            match login.read(&packet).map_err(|error| error.to_string())? {
                LoginStep::Send(bytes) => sql.send(&bytes)?,
                LoginStep::Wait => {}
                LoginStep::StartTls(_) => return Err("MariaDB: TLS was not asked for".into()),
                LoginStep::Done => return Ok(sql),
            }
        }
    }

    /// Runs a statement.
    ///
    /// # Errors
    /// The error of the server or of the network.
    pub fn run(&mut self, statement: &str) -> Result<Vec<Row>, String> {
        let rows = self.rows(statement)?;
        Ok((0..rows.rows.len()).map(|at| (rows.text(at, 0), rows.text(at, 1))).collect())
    }

    /// Runs a statement, and returns all columns of its rows.
    ///
    /// # Errors
    /// The error of the server or of the network.
    pub fn rows(&mut self, statement: &str) -> Result<Rows, String> {
        self.send(&query(statement))?;
        let mut reading = Query::new(QueryLimits::default());
        loop {
            let packet = self.receive()?;
            let read = reading.read(&packet);
            if let Some(rows) = read.map_err(|error| format!("{statement}: {error}"))? {
                return Ok(rows);
            }
        }
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.socket.write_all(bytes).map_err(|error| format!("MariaDB: {error}"))
    }

    fn receive(&mut self) -> Result<Packet, String> {
        loop {
            let packet = self.packets.read(&mut self.input);
            if let Some(packet) = packet.map_err(|refusal| refusal.to_string())? {
                return Ok(packet);
            }
            match self.socket.read(&mut self.piece) {
                Ok(0) => return Err("MariaDB has closed a connection".into()),
                Ok(len) => self.input.extend_from_slice(&self.piece[..len]),
                Err(error) => return Err(format!("MariaDB: {error}")),
            }
        }
    }
}
