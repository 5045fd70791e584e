//! The text of a few words of a response, while it is cut into tokens.
//!
//! Tokens have no text. A caller that needs the text of some of them names their indices, and cuts the same response once
//! more.

use std::collections::BTreeSet;

/// The longest text that is kept, in bytes: 200 characters of four bytes.
const KEPT_BYTES: usize = 800;

/// The words that are kept as text while a response is cut into tokens.
#[derive(Debug, Default)]
pub(crate) struct KeptWords {
    /// The indices of these words among the tokens.
    wanted: BTreeSet<u32>,
    words: Vec<KeptWord>,
    bytes: usize,
    /// Whether no white space is before the next word.
    pub(crate) is_joined: bool,
}

#[derive(Debug)]
struct KeptWord {
    index: u32,
    is_joined: bool,
    text: String,
}

impl KeptWords {
    /// Begins to keep the words with these indices.
    pub(crate) fn of(wanted: BTreeSet<u32>) -> KeptWords {
        KeptWords { wanted, ..KeptWords::default() }
    }

    /// Sees a token; keeps it if it is wanted.
    pub(crate) fn see(&mut self, index: usize, text: &[u8]) {
        let is_joined = std::mem::take(&mut self.is_joined);
        let index = index as u32;
        if self.bytes < KEPT_BYTES && self.wanted.contains(&index) {
            let text = &text[..text.len().min(KEPT_BYTES)];
            self.bytes += text.len();
            let text = String::from_utf8_lossy(text).into_owned();
            self.words.push(KeptWord { index, is_joined, text });
        }
    }

    /// All of it, with a mark where something between two words is the same in both responses.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        let mut last = None;
        for word in &self.words {
            text.push_str(match last {
                None => "",
                Some(last) if last + 1 != word.index => " … ",
                Some(_) if word.is_joined => "",
                Some(_) => " ",
            });
            text.push_str(&word.text);
            last = Some(word.index);
        }
        text
    }
}
