//! What hyper writes to the client, followed frame by frame, so that the front's own frames come between two
//! of them and never into one. Seen on the way: that the settings were sent, that the client was told to go,
//! and what hyper has used of its share of the client's windows.

use super::frame::{FrameHead, HEAD_BYTES, kind};
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
    /// A first frame was begun: the server's settings, before which nothing may be said (RFC 9113 section
    /// 3.4).
    pub greeted: bool,
    /// The client was told to go (section 6.8).
    pub goes: bool,
}

impl Sent {
    /// Whether the next byte begins a frame.
    pub fn is_between(&self) -> bool {
        self.had == 0 && self.left == 0
    }

    /// What is known to be missing of the frame that has begun, in bytes; none between two.
    pub fn rest(&self) -> usize {
        match (self.had, self.left) {
            (0, left) => left,
            (had, _) => HEAD_BYTES - had,
        }
    }

    /// hyper has written this.
    pub fn wrote(&mut self, mut bytes: &[u8], windows: &mut Windows) {
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
                self.begun(windows);
            }
        }
    }

    fn begun(&mut self, windows: &mut Windows) {
        let Some(head) = FrameHead::read(&self.head) else { return };
        self.left = head.length;
        self.greeted = true;
        match head.kind {
            kind::DATA => windows.sent_behind(head.length as u32),
            kind::GOAWAY => self.goes = true,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http2::frame::{ErrorCode, write_content, write_goaway, write_number};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn frames_are_followed_however_they_are_cut(cuts in prop::collection::vec(1..50_usize, 1..300)) {
            let mut bytes = Vec::new();
            write_number(kind::SETTINGS, 0, 1, &mut bytes);
            write_content(1, &[0; 1000], &mut bytes);
            write_goaway(1, ErrorCode::Protocol, &mut bytes);
            let ends = [13, 13 + 1009, 13 + 1009 + 17];
            let (mut sent, mut windows, mut at) = (Sent::default(), Windows::default(), 0);
            windows.allow(100_000).unwrap();
            let ours = windows.ours();
            for cut in cuts.into_iter().cycle().take(2000) {
                let to = (at + cut).min(bytes.len());
                sent.wrote(&bytes[at..to], &mut windows);
                at = to;
                prop_assert_eq!(sent.is_between(), ends.contains(&at));
                prop_assert_eq!(sent.rest() == 0, sent.is_between());
                prop_assert_eq!(sent.greeted, at >= 9);
                prop_assert_eq!(sent.goes, at >= 13 + 1009 + 9);
                if at == bytes.len() {
                    break;
                }
            }
            prop_assert_eq!(windows.ours(), ours, "that was hyper's to send");
        }
    }
}
