//! A connection to the stream's server: a command, its reply.
//!
//! A connection that fails is opened again the next time. Every wait is bounded, so a command without an answer
//! may have taken effect all the same.

use harness::{Address, Stream};
use std::io::{Read, Write};
use std::path::Path;
use std::time::Duration;
use valkey::{Replies, Reply, command};

/// How long connecting, or an answer, may take.
const WITHIN: Duration = Duration::from_secs(1);
/// The longest reply.
const REPLY_BYTES: usize = 1 << 20;

/// A connection that is made when it is needed.
pub struct Wire {
    address: Address,
    within: Duration,
    stream: Option<(Stream, Replies)>,
}

impl Wire {
    /// To the server at this socket.
    pub fn new(socket: &Path) -> Wire {
        Wire { address: Address::Unix(socket.to_owned()), within: WITHIN, stream: None }
    }

    /// Sends a command; its reply.
    ///
    /// # Errors
    /// There was none, or it says that it was refused.
    pub fn ask(&mut self, words: &[&str]) -> Result<Reply, String> {
        let (mut stream, mut replies) = match self.stream.take() {
            Some(open) => open,
            None => {
                let stream =
                    self.address.connect(self.within).map_err(|error| error.to_string())?;
                (stream, Replies::new(REPLY_BYTES))
            }
        };
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        stream.write_all(&command(&words)).map_err(|error| error.to_string())?;
        let mut buffer = [0; 4096];
        let reply = loop {
            if let Some(reply) = replies.read().map_err(|error| format!("{error:?}"))? {
                break reply;
            }
            match stream.read(&mut buffer).map_err(|error| error.to_string())? {
                0 => return Err("the connection was closed".to_owned()),
                count => replies.push(&buffer[..count]),
            }
        };
        self.stream = Some((stream, replies));
        match reply {
            Reply::Error(text) => Err(text),
            reply => Ok(reply),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use harness::Valkey;

    #[test]
    fn reconnects_after_a_cut() {
        let mut server = Valkey::start(&[]).expect("a server");
        let mut wire = Wire { within: Duration::from_secs(60), ..Wire::new(server.socket()) };
        assert_eq!(wire.ask(&["INCR", "a"]), Ok(Reply::Integer(1)));
        assert!(wire.ask(&["XLEN"]).is_err(), "that is no command");
        server.kill();
        assert!(wire.ask(&["INCR", "a"]).is_err());
        server.start_again().expect("it starts");
        assert_eq!(wire.ask(&["INCR", "a"]), Ok(Reply::Integer(1)));
    }
}
