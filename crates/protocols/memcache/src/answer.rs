//! An answer to send: text, and large values that are not copied into the text.
//!
//! Invariant: the positions of the values are within the text and do not decrease, so [`Answer::parts`]
//! iterates over both once. This module does not write to sockets.

use bytes::Bytes;

/// The minimum length in bytes of a value that is sent without being copied.
const SPLICED_BYTES: usize = 512;

/// An answer to send.
#[derive(Debug, Default)]
pub struct Answer {
    text: Vec<u8>,
    /// The values, each with the length of the text before it.
    values: Vec<(usize, Bytes)>,
}

/// The length of an answer at some point, to which it can be reset.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    text: usize,
    values: usize,
}

impl Answer {
    /// Whether there is nothing to send.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty() && self.values.is_empty()
    }

    /// The number of bytes to send.
    pub fn len(&self) -> usize {
        self.text.len() + self.values.iter().map(|(_, value)| value.len()).sum::<usize>()
    }

    /// Removes the content, and keeps the allocated memory for the next answer.
    pub fn clear(&mut self) {
        self.text.clear();
        self.values.clear();
    }

    /// The bytes to send, in order. No part is empty.
    pub fn parts(&self) -> impl Iterator<Item = &[u8]> {
        let mut from = 0;
        let ends = self.values.iter().map(|(at, value)| (*at, &value[..]));
        let ends = ends.chain(std::iter::once((self.text.len(), &b""[..])));
        ends.flat_map(move |(to, value)| {
            let text = &self.text[from..to];
            from = to;
            [text, value]
        })
        .filter(|part| !part.is_empty())
    }

    /// A copy of all bytes to send.
    pub fn to_vec(&self) -> Vec<u8> {
        self.parts().flatten().copied().collect()
    }

    pub(crate) fn text(&mut self, text: &[u8]) -> &mut Self {
        self.text.extend_from_slice(text);
        self
    }

    pub(crate) fn line(&mut self, text: &str) -> &mut Self {
        self.text(text.as_bytes()).text(b"\r\n")
    }

    pub(crate) fn number(&mut self, number: u64) -> &mut Self {
        // A `u64` has at most twenty digits.
        let mut digits = [0; 20];
        let (mut at, mut left) = (digits.len(), number);
        loop {
            at -= 1;
            digits[at] = b'0' + (left % 10) as u8;
            left /= 10;
            if left == 0 {
                break;
            }
        }
        self.text(&digits[at..])
    }

    pub(crate) fn value(&mut self, value: &Bytes) -> &mut Self {
        if value.len() < SPLICED_BYTES {
            return self.text(value);
        }
        self.values.push((self.text.len(), value.clone()));
        self
    }

    /// Ends a chain of calls with the unit value.
    pub(crate) fn done(&mut self) {}

    pub(crate) fn mark(&self) -> Mark {
        Mark { text: self.text.len(), values: self.values.len() }
    }

    pub(crate) fn back_to(&mut self, mark: Mark) {
        self.text.truncate(mark.text);
        self.values.truncate(mark.values);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_values_come_in_order() {
        let large = Bytes::from(vec![b'x'; 600]);
        let mut answer = Answer::default();
        answer
            .value(&large)
            .text(b"a")
            .number(0)
            .value(&Bytes::from_static(b"small"))
            .value(&large);
        answer.number(u64::MAX).line("!");
        let mut all = large.to_vec();
        all.extend_from_slice(b"a0small");
        all.extend_from_slice(&large);
        all.extend_from_slice(b"18446744073709551615!\r\n");
        assert_eq!(answer.to_vec(), all);
        assert_eq!(answer.len(), all.len());
        assert_eq!(answer.parts().count(), 4);
    }

    #[test]
    fn an_answer_is_taken_back() {
        let mut answer = Answer::default();
        answer.text(b"kept");
        let mark = answer.mark();
        answer.value(&Bytes::from(vec![0; 9_000])).line("gone");
        answer.back_to(mark);
        assert_eq!(answer.to_vec(), b"kept");
        answer.clear();
        assert!(answer.is_empty());
    }
}
