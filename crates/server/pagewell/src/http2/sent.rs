//! What hyper writes to the client, followed frame by frame, so that the front's own frames come between two
//! of them and never into one, nor into a header block of several (RFC 9113 section 4.3). Seen on the way: that
//! the settings were sent, and the client's acknowledged, that the client was told to go, and what hyper has
//! used of its share of the client's windows.

use super::frame::{FrameHead, HEAD_BYTES, flag, kind};
use super::streams::Streams;
use super::windows::Windows;

/// How far hyper has come in what it writes.
#[derive(Debug, Default)]
pub struct Sent {
    /// The head of the frame that has begun.
    head: [u8; HEAD_BYTES],
    /// How much of the head was written.
    had: usize,
    /// How much of the payload has not been.
    left: usize,
    /// The header block goes on in the next frame.
    in_block: bool,
    /// A first frame was begun: the server's settings, before which nothing may be said (RFC 9113 section
    /// 3.4).
    pub greeted: bool,
    /// The client was told to go (section 6.8).
    pub goes: bool,
    /// How many settings of the client's were acknowledged (section 6.5.3).
    pub acknowledged: u32,
}

impl Sent {
    /// Whether other frames may come before the next byte.
    pub fn is_between(&self) -> bool {
        self.had == 0 && self.left == 0 && !self.in_block
    }

    /// Whether it is not known yet what frame has begun.
    pub fn is_in_head(&self) -> bool {
        self.had > 0
    }

    /// What is known to be missing of what may not be interrupted, in bytes; none where other frames may come.
    pub fn rest(&self) -> usize {
        match (self.had, self.left) {
            (0, 0) if self.in_block => HEAD_BYTES,
            (0, left) => left,
            (had, _) => HEAD_BYTES - had,
        }
    }

    /// hyper has written this. Returns the payload of the content that has begun, in bytes.
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
            // In several frames: nothing may come between them.
            write_block(1, 0, &[], &[0; 20_000], &mut bytes);
            ends.push(bytes.len());
            write_content(1, &[0; 1000], &mut bytes);
            ends.push(bytes.len());
            FrameHead { length: 0, kind: kind::SETTINGS, flags: flag::ACK, stream: 0 }.write(&mut bytes);
            ends.push(bytes.len());
            let goes = bytes.len() + HEAD_BYTES;
            write_goaway(1, ErrorCode::Protocol, &mut bytes);
            ends.push(bytes.len());
            let (mut sent, mut windows, mut at) = (Sent::default(), Windows::default(), 0);
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
