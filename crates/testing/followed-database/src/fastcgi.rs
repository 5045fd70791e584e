//! The origin as a FastCGI responder that reports its statements, as PHP with a capture file does.
//!
//! A connection carries one request at a time and is kept, if the client asks for that. The report is sent before
//! the response ends. Not here: the pages (`origin`), and the format of a report (`php/capture/wordpress.php`).
//! Sources: the FastCGI specification 1.0, sections 3.3, 5 and 8.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

const BEGIN_REQUEST: u8 = 1;
const END_REQUEST: u8 = 3;
const PARAMS: u8 = 4;
const STDIN: u8 = 5;
const STDOUT: u8 = 6;
/// The largest content of a record, in bytes.
const RECORD_BYTES: usize = 65_535;
/// The most bytes of params that are read.
const PARAMS_BYTES: usize = 1 << 20;

/// A request: its params by name.
pub struct ScriptRequest {
    params: HashMap<String, String>,
    is_kept: bool,
}

impl ScriptRequest {
    /// Reads a request; `None` at the end of the connection.
    ///
    /// # Errors
    /// The connection failed, or its bytes are no request.
    pub fn read(stream: &mut TcpStream) -> io::Result<Option<ScriptRequest>> {
        let (mut params, mut is_kept) = (Vec::new(), false);
        loop {
            let Some((kind, content)) = record(stream)? else { return Ok(None) };
            match kind {
                BEGIN_REQUEST => is_kept = content.get(2).is_some_and(|flags| flags & 1 == 1),
                PARAMS if params.len() + content.len() > PARAMS_BYTES => return Err(invalid()),
                PARAMS => params.extend_from_slice(&content),
                STDIN if content.is_empty() => break,
                _ => {}
            }
        }
        Ok(Some(ScriptRequest { params: pairs(&params)?, is_kept }))
    }

    /// The value of a param; empty without it.
    pub fn param(&self, name: &str) -> &str {
        self.params.get(name).map_or("", String::as_str)
    }

    /// Reports the statements, if the request asks for that, and answers. Returns whether the connection is kept.
    ///
    /// # Errors
    /// The connection failed.
    pub fn answer(
        &self,
        stream: &mut TcpStream,
        statements: &[String],
        response: &str,
    ) -> io::Result<bool> {
        let socket = self.param("PAGEWELL_CAPTURE");
        if !socket.is_empty() {
            // A Pagewell that was killed meanwhile has no socket.
            let _ = report(socket, self.param("PAGEWELL_CAPTURE_TOKEN"), statements);
        }
        let mut all = Vec::new();
        for piece in response.as_bytes().chunks(RECORD_BYTES) {
            append(&mut all, STDOUT, piece);
        }
        append(&mut all, STDOUT, &[]);
        append(&mut all, END_REQUEST, &[0; 8]);
        stream.write_all(&all)?;
        Ok(self.is_kept)
    }
}

/// The next record; `None` at the end of the connection.
fn record(stream: &mut TcpStream) -> io::Result<Option<(u8, Vec<u8>)>> {
    let mut head = [0; 8];
    match stream.read_exact(&mut head) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let length = usize::from(u16::from_be_bytes([head[4], head[5]]));
    let mut content = vec![0; length + usize::from(head[6])];
    stream.read_exact(&mut content)?;
    content.truncate(length);
    Ok(Some((head[1], content)))
}

fn append(all: &mut Vec<u8>, kind: u8, content: &[u8]) {
    let length = u16::try_from(content.len()).unwrap_or(u16::MAX).to_be_bytes();
    all.extend_from_slice(&[1, kind, 0, 1, length[0], length[1], 0, 0]);
    all.extend_from_slice(content);
}

/// The name-value pairs of params.
fn pairs(mut bytes: &[u8]) -> io::Result<HashMap<String, String>> {
    let mut found = HashMap::new();
    while !bytes.is_empty() {
        let (name, value) = (length(&mut bytes)?, length(&mut bytes)?);
        let mut text = |length: usize| {
            let (text, rest) = bytes.split_at_checked(length).ok_or_else(invalid)?;
            bytes = rest;
            Ok::<_, io::Error>(String::from_utf8_lossy(text).into_owned())
        };
        found.insert(text(name)?, text(value)?);
    }
    Ok(found)
}

fn length(bytes: &mut &[u8]) -> io::Result<usize> {
    match **bytes {
        [short @ 0..=127, ..] => {
            *bytes = &bytes[1..];
            Ok(usize::from(short))
        }
        [first, second, third, fourth, ..] => {
            *bytes = &bytes[4..];
            Ok(u32::from_be_bytes([first & 0x7f, second, third, fourth]) as usize)
        }
        _ => Err(invalid()),
    }
}

fn invalid() -> io::Error {
    io::ErrorKind::InvalidData.into()
}

/// Sends a report to the socket.
fn report(socket: &str, token: &str, statements: &[String]) -> io::Result<()> {
    let mut bytes = b"pagewell-capture 1\n".to_vec();
    let mut add = |kind: u8, content: &str| {
        bytes.push(kind);
        bytes.extend_from_slice(&u32::try_from(content.len()).unwrap_or(u32::MAX).to_be_bytes());
        bytes.extend_from_slice(content.as_bytes());
    };
    add(b'T', token);
    add(b'V', "");
    statements.iter().for_each(|statement| add(b'S', statement));
    add(b'E', "");
    UnixStream::connect(socket)?.write_all(&bytes)
}
