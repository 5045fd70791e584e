//! The texts of statements: their keys in the index, and their beginnings for messages.
//!
//! A key is a hash with a seed that is secret to visitors, who choose a part of the texts. Not here: what a text reads.

use super::OptionTables;
use footprint::schema::TableId;
use footprint::{SqlCharset, SqlMode};
use random_number::random_number;
use std::sync::LazyLock;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// The length of the machine's id (machine-id(5)), in bytes.
const MACHINE_ID_BYTES: usize = 32;

/// A number that is secret to visitors: the same for each process on this machine, so that a page of
/// a snapshot and a new one share their statements. Random without `/etc/machine-id`.
pub(super) fn machine_seed() -> u64 {
    static SEED: LazyLock<u64> = LazyLock::new(|| {
        let id = std::fs::read("/etc/machine-id").ok().filter(|id| id.len() >= MACHINE_ID_BYTES);
        id.map_or_else(random_number, |id| xxh3_64(&id))
    });
    *SEED
}

/// A statement of a render.
pub(super) struct TextWithOptions<'r> {
    pub text: &'r [u8],
    pub mode: SqlMode,
    pub options: Option<&'r [String]>,
}

impl TextWithOptions<'_> {
    /// The tables of options that the statement names, if it is known which options were asked for.
    pub fn options_in(&self, options: &OptionTables) -> Vec<(TableId, u16)> {
        let has = |name: &str| memchr::memmem::find(self.text, name.as_bytes()).is_some();
        let all = options.iter().filter(|_| self.options.is_some());
        all.filter(|(name, ..)| has(name)).map(|(_, table, column)| (*table, *column)).collect()
    }

    /// The keys of the statement in the index: as it stands, and narrowed to the options that were
    /// asked for.
    pub fn keys(&self, seed: u64, is_of_options: bool) -> [u128; 2] {
        let mut hash = Xxh3::with_seed(seed);
        hash.update(&mode_key(self.mode));
        hash.update(self.text);
        let by_text = hash.digest128();
        for name in self.options.filter(|_| is_of_options).unwrap_or_default() {
            hash.update(&[0]);
            hash.update(name.as_bytes());
        }
        [by_text, hash.digest128()]
    }
}

/// Bytes that differ for each mode: a text in another mode is another statement.
fn mode_key(mode: SqlMode) -> [u8; 4] {
    let SqlMode { has_ansi_quotes, has_plain_backslashes, has_other_meanings, charset } = mode;
    let charset = match charset {
        SqlCharset::Utf8 => 0,
        SqlCharset::Binary => 1,
        SqlCharset::Other => 2,
    };
    let [ansi, plain, other] =
        [has_ansi_quotes, has_plain_backslashes, has_other_meanings].map(u8::from);
    [ansi, plain, other, charset]
}

/// The beginning of a statement without its constants, which may be personal, for a message.
pub(super) fn shape(text: &[u8]) -> String {
    const LETTERS_MAX: usize = 120;
    let text = String::from_utf8_lossy(&text[..text.len().min(4 * LETTERS_MAX)]);
    let mut letters = text.chars();
    let mut shape = String::new();
    while let Some(letter) = letters.next()
        && shape.len() < LETTERS_MAX
    {
        match letter {
            '\'' | '"' => {
                let _ = letters.by_ref().find(|other| *other == letter);
                shape.push('…');
            }
            '0'..='9' => shape.push('#'),
            letter if letter.is_control() => shape.push(' '),
            letter => shape.push(letter),
        }
    }
    shape
}
