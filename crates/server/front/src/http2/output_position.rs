//! Tracks hyper's output to the client, frame by frame, so that the front inserts its own frames only
//! between two frames. A header block of several frames must not be interrupted either (RFC 9113
//! section 4.3).
//!
//! The state also contains whether the server's settings and GOAWAY were sent, and how many settings of
//! the client were acknowledged. hyper's use of its window is recorded in [`Windows`].

use super::frame::{FrameHead, HEAD_BYTES, flag, kind};
use super::streams::Streams;
use super::windows::Windows;

/// The position in hyper's output to the client.
#[derive(Debug, Default)]
pub struct OutputPosition {
    /// The header of the current frame.
    head: [u8; HEAD_BYTES],
    /// How many bytes of the header have been written.
    had: usize,
    /// How many bytes of the payload have not been written yet.
    left: usize,
    /// Whether the header block continues in the next frame.
    in_block: bool,
    /// Whether a frame was begun. The first are the server's settings, before which nothing may be sent
    /// (RFC 9113 section 3.4).
    pub greeted: bool,
    /// Whether GOAWAY was sent (section 6.8).
    pub goes: bool,
    /// How many SETTINGS frames of the client have been acknowledged (section 6.5.3).
    pub acknowledged: u32,
}

impl OutputPosition {
    /// Whether other frames may be inserted before the next byte.
    pub fn is_between(&self) -> bool {
        self.had == 0 && self.left == 0 && !self.in_block
    }

    /// Whether a frame header is incomplete, so that the type of the frame is unknown.
    pub fn is_in_head(&self) -> bool {
        self.had > 0
    }

    /// The known minimum of bytes until other frames may be inserted; 0 if they may be now.
    pub fn rest(&self) -> usize {
        match (self.had, self.left) {
            (0, 0) if self.in_block => HEAD_BYTES,
            (0, left) => left,
            (had, _) => HEAD_BYTES - had,
        }
    }

    /// Tracks `bytes`, which hyper has written. Returns the total payload of the DATA frames that begin
    /// in them, in bytes.
    pub fn wrote(&mut self, mut bytes: &[u8], windows: &mut Windows, streams: &Streams) -> usize {
        let mut payload = 0;
        while !bytes.is_empty() {
            let count = match self.left {
                0 => bytes.len().min(HEAD_BYTES - self.had),
                left => bytes.len().min(left),
            };
            let (now, then) = bytes.split_at(count);
            bytes = then;
            if self.left > 0 {
                self.left -= count;
                continue;
            }
            self.head[self.had..self.had + count].copy_from_slice(now);
            self.had += count;
            if self.had == HEAD_BYTES {
                self.had = 0;
                payload += self.begun(windows, streams);
            }
        }
        payload
    }

    fn begun(&mut self, windows: &mut Windows, streams: &Streams) -> usize {
        let Some(head) = FrameHead::read(&self.head) else { return 0 };
        self.left = head.length;
        self.greeted = true;
        match head.kind {
            kind::DATA => {
                windows.sent_behind(head.length as u32);
                streams.took(head.stream, head.length);
                return head.length;
            }
            kind::RST_STREAM => streams.forget(head.stream),
            kind::HEADERS | kind::CONTINUATION => self.in_block = !head.has(flag::END_HEADERS),
            kind::SETTINGS if head.has(flag::ACK) => self.acknowledged += 1,
            kind::GOAWAY => self.goes = true,
            _ => {}
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http2::frame::{ErrorCode, write_block, write_content, write_goaway, write_number};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn frames_are_followed_however_they_are_cut(cuts in prop::collection::vec(1..50_usize, 1..300)) {
            let mut bytes = Vec::new();
            let mut ends = Vec::new();
            write_number(kind::SETTINGS, 0, 1, &mut bytes);
            ends.push(bytes.len());
            // A block of several frames, into which nothing may be inserted.
            write_block(1, 0, &[], &[0; 20_000], &mut bytes);
            ends.push(bytes.len());
            write_content(1, &[0; 1000], &mut bytes);
            ends.push(bytes.len());
            FrameHead { length: 0, kind: kind::SETTINGS, flags: flag::ACK, stream: 0 }.write(&mut bytes);
            ends.push(bytes.len());
            let goes = bytes.len() + HEAD_BYTES;
            write_goaway(1, ErrorCode::Protocol, &mut bytes);
            ends.push(bytes.len());
            let (mut sent, mut windows, mut at) = (OutputPosition::default(), Windows::default(), 0);
            windows.allow(100_000).unwrap();
            let ours = windows.ours();
            for cut in cuts.into_iter().cycle().take(30_000) {
                let to = (at + cut).min(bytes.len());
                sent.wrote(&bytes[at..to], &mut windows, &Streams::default());
                at = to;
                prop_assert_eq!(sent.is_between(), ends.contains(&at));
                prop_assert_eq!(sent.rest() == 0, sent.is_between());
                prop_assert_eq!(sent.greeted, at >= 9);
                prop_assert_eq!(sent.goes, at >= goes);
                prop_assert_eq!(sent.acknowledged, u32::from(at >= ends[3]));
                if at == bytes.len() {
                    break;
                }
            }
            prop_assert_eq!(windows.ours(), ours, "that was hyper's to send");
        }
    }
}
