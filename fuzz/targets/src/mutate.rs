//! The runner for the stable compiler: selects an input from a corpus, damages it, and runs the target.
//!
//! Deterministic: the same seed and corpus give the same inputs in the same order. It does not use code
//! coverage; libFuzzer on nightly does, with the same targets and corpora.

use harness::Random;
use std::path::{Path, PathBuf};

/// The maximum length of an input, in bytes.
const INPUT_BYTES_MAX: usize = 64 << 10;

/// Words that are common in hostile input.
const WORDS: [&[u8]; 30] = [
    b"\r\n",
    b"\n",
    b"\r\n\r\n",
    b"\0",
    b"%00",
    b"%2e%2e/",
    b"%2F",
    b"../",
    b"\"",
    b"\\\"",
    b",",
    b";",
    b"=",
    b"*",
    b"bytes=",
    b"-",
    b"max-age=",
    b"4294967296",
    b"18446744073709551616",
    b"no-store",
    b"W/\"",
    b"chunked",
    b"Content-Length: ",
    b"Host: ",
    b"\xff\xff",
    b"\x80",
    b"\x01\x06\x00\x01",
    b"\x01\x03\x00\x01\x00\x08\x00\x00",
    b".php/",
    b":80",
];

/// Generates inputs from a corpus.
pub struct Inputs {
    corpus: Vec<Vec<u8>>,
    random: Random,
}

impl Inputs {
    /// Reads the committed corpus of a target.
    ///
    /// # Errors
    /// The corpus cannot be read, or is empty.
    pub fn new(target: &str, seed: u64) -> std::io::Result<Inputs> {
        let mut names = std::fs::read_dir(corpus(target))?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<std::io::Result<Vec<PathBuf>>>()?;
        names.sort();
        let corpus = names.iter().map(std::fs::read).collect::<std::io::Result<Vec<_>>>()?;
        if corpus.is_empty() {
            Err(std::io::Error::other("the corpus is empty"))
        } else {
            Ok(Inputs { corpus, random: Random::new(seed.wrapping_mul(2)) })
        }
    }

    /// The inputs of the corpus, in the order of their file names.
    pub fn corpus(&self) -> &[Vec<u8>] {
        &self.corpus
    }

    /// Returns another input: one of the corpus, damaged at up to six places.
    pub fn draw(&mut self) -> Vec<u8> {
        let mut bytes = self.corpus[self.random.below(self.corpus.len())].clone();
        for _ in 0..1 + self.random.below(6) {
            self.damage(&mut bytes);
        }
        bytes.truncate(INPUT_BYTES_MAX);
        bytes
    }

    fn damage(&mut self, bytes: &mut Vec<u8>) {
        let random = &mut self.random;
        let at = random.below(bytes.len() + 1);
        let end = (at + 1 + random.below(12)).min(bytes.len());
        match random.below(7) {
            0 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            1 if at < bytes.len() => bytes[at] = random.below(256) as u8,
            2 => drop(bytes.drain(at.min(end)..end)),
            3 => {
                let piece = bytes[at.min(end)..end].to_vec();
                let times = 1 + random.below(40);
                bytes.splice(at..at, piece.repeat(times));
            }
            4 => {
                let other = &self.corpus[random.below(self.corpus.len())];
                let from = random.below(other.len() + 1);
                let to = from + random.below(other.len() - from + 1);
                bytes.splice(at.min(end)..end, other[from..to].iter().copied());
            }
            5 => bytes.truncate(at),
            _ => drop(bytes.splice(at..at, WORDS[random.below(WORDS.len())].iter().copied())),
        }
    }
}

/// The directory of a target's corpus.
fn corpus(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus").join(target)
}

/// Runs `target` on `input`. If it panics, prints the input on standard error.
pub fn run_showing(target: crate::Target, input: &[u8]) {
    let (name, run) = target;
    if let Err(panic) = std::panic::catch_unwind(|| run(input)) {
        eprintln!("{name} failed on b\"{}\"", input.escape_ascii());
        std::panic::resume_unwind(panic);
    }
}
