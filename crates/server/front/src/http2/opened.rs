//! The streams that a client has opened: what a HEADERS frame for a stream means (RFC 9113 sections 5.1 and 5.1.1).
//!
//! | the stream is | HEADERS is |
//! |---|---|
//! | odd and above all others | a request |
//! | open: the client has not ended it | its trailers |
//! | used and ended | an error: STREAM_CLOSED |
//! | even, or was skipped | an error: PROTOCOL_ERROR |
//!
//! The memory is bounded. Of more open streams the oldest are forgotten, and hyper judges their frames.

use super::fields::Block;
use super::frame::ErrorCode;
use std::collections::VecDeque;

/// The most open streams that are remembered; far more than a client may have at a time.
const OPEN_MAX: usize = 1_024;
/// The most ranges of skipped streams that are remembered.
const SKIPPED_MAX: usize = 64;

/// The streams of one connection.
#[derive(Default)]
pub struct OpenedStreams {
    /// The highest stream that the client has opened.
    last: u32,
    /// Streams that the client has not ended, the oldest first.
    open: VecDeque<u32>,
    /// Whether an open stream was forgotten: streams up to this one may be open.
    forgotten: u32,
    /// Ranges of streams that were skipped.
    skipped: VecDeque<(u32, u32)>,
}

impl OpenedStreams {
    /// The highest stream that the client has opened.
    pub fn last(&self) -> u32 {
        self.last
    }

    /// Judges a HEADERS frame, and records the stream if it is new.
    ///
    /// # Errors
    /// The frame is not allowed; the connection has to end.
    pub fn headers(&mut self, stream: u32, ends: bool) -> Result<Block, ErrorCode> {
        if stream.is_multiple_of(2) {
            return Err(ErrorCode::Protocol);
        }
        if stream > self.last {
            self.open(stream, ends);
            return Ok(Block::Request);
        }
        if self.open.contains(&stream) {
            if ends {
                self.end(stream);
            }
            return Ok(Block::Trailers);
        }
        if self.skipped.iter().any(|(from, to)| (*from..=*to).contains(&stream)) {
            return Err(ErrorCode::Protocol);
        }
        if stream <= self.forgotten { Ok(Block::Trailers) } else { Err(ErrorCode::StreamClosed) }
    }

    fn open(&mut self, stream: u32, ends: bool) {
        let next = if self.last == 0 { 1 } else { self.last + 2 };
        if next < stream {
            if self.skipped.len() == SKIPPED_MAX {
                self.skipped.pop_front();
            }
            self.skipped.push_back((next, stream - 2));
        }
        self.last = stream;
        if ends {
            return;
        }
        if self.open.len() == OPEN_MAX {
            self.forgotten = self.open.pop_front().unwrap_or_default();
        }
        self.open.push_back(stream);
    }

    /// Records that the client has ended a stream, by END_STREAM or by a reset.
    pub fn end(&mut self, stream: u32) {
        self.open.retain(|open| *open != stream);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_by_the_state_of_their_stream() {
        let mut streams = OpenedStreams::default();
        assert_eq!(streams.headers(0, true), Err(ErrorCode::Protocol));
        assert_eq!(streams.headers(2, true), Err(ErrorCode::Protocol));
        assert_eq!(streams.headers(3, true), Ok(Block::Request));
        assert_eq!(streams.headers(1, true), Err(ErrorCode::Protocol), "it was skipped");
        assert_eq!(streams.headers(3, true), Err(ErrorCode::StreamClosed), "half-closed");
        assert_eq!(streams.headers(5, false), Ok(Block::Request));
        assert_eq!(streams.headers(5, true), Ok(Block::Trailers));
        assert_eq!(streams.headers(5, true), Err(ErrorCode::StreamClosed));
        assert_eq!(streams.headers(7, false), Ok(Block::Request));
        streams.end(7);
        assert_eq!(streams.headers(7, true), Err(ErrorCode::StreamClosed), "it was reset");
        assert_eq!(streams.last(), 7);
    }

    #[test]
    fn remembered_streams_are_bounded() {
        let mut streams = OpenedStreams::default();
        for at in 0..5_000 {
            assert_eq!(streams.headers(8 * at + 5, false), Ok(Block::Request));
        }
        assert_eq!((streams.open.len(), streams.skipped.len()), (OPEN_MAX, SKIPPED_MAX));
        assert_eq!(streams.headers(5, true), Ok(Block::Trailers), "hyper judges it");
        assert_eq!(streams.headers(streams.last(), true), Ok(Block::Trailers));
    }
}
