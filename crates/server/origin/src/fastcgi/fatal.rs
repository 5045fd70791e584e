//! How a response ended or will end: whether PHP has reported a fatal error on STDERR.
//!
//! A short response arrives together with its error messages. So the reason not to store it can be sent
//! in its header section. To look ahead consumes nothing and waits for nothing: the records are read
//! from a copy, of [`READ_BYTES`] at most. A message that arrives later is found at the end.

use super::{Event, PhpFatal, PhpFatalWatch, READ_BYTES, Reply};
use crate::ResponseEnd;
use bytes::BytesMut;

impl Reply {
    /// How the response ended; see [`crate::OriginBody::ended`]. PHP ends a request with a fatal error
    /// like any other; only the message on STDERR shows the error.
    pub fn ended(&self) -> ResponseEnd {
        end_after(&self.fatal)
    }

    /// How the response will end; see [`crate::OriginBody::end_so_far`].
    pub fn end_so_far(&self) -> ResponseEnd {
        let (mut reader, mut fatal) = (self.reader.clone(), self.fatal.clone());
        let mut input = BytesMut::from(&self.input[..self.input.len().min(READ_BYTES)]);
        while let Ok(Some(event)) = reader.read(&mut input) {
            match event {
                Event::Stderr(bytes) => fatal.push(&bytes),
                Event::Stdout(_) => {}
                Event::End(_) => break,
            }
        }
        end_after(&fatal)
    }
}

fn end_after(messages: &PhpFatalWatch) -> ResponseEnd {
    match messages.fatal() {
        PhpFatal::Reported => ResponseEnd::PhpFatal,
        PhpFatal::NotReported => ResponseEnd::Well,
    }
}
