//! Splits a statement into words: names, symbols, literals, without comments.
//!
//! Executable comments (`/*!50001 …*/`, `/*M!100100 …*/`) count as text, because a server executed them. Double
//! quotes enclose a name or a literal, depending on the SQL mode; both are accepted. Backslashes in literals
//! escape, as in the default mode. An unterminated literal marks the statement as damaged
//! ([`Words::is_damaged`]); so does a backslash before a double quote, because what it does depends on the mode. Not
//! here: the meaning of words.

use super::XaId;

/// A word of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Word {
    /// Letters, digits, `_` and `$`.
    Plain(String),
    /// Text between backquotes or double quotes.
    Quoted(String),
    /// The bytes between single quotes.
    Literal(Vec<u8>),
    /// Any other character.
    Mark(u8),
}

impl Word {
    /// Whether the word is this keyword, which is given in upper case.
    pub(super) fn is(&self, keyword: &str) -> bool {
        match self {
            Word::Plain(word) => word.eq_ignore_ascii_case(keyword),
            Word::Mark(mark) => keyword.as_bytes() == [*mark],
            Word::Quoted(_) | Word::Literal(_) => false,
        }
    }

    /// The word as a name.
    pub(super) fn as_name(&self) -> Option<&str> {
        match self {
            Word::Plain(name) | Word::Quoted(name) => Some(name),
            Word::Literal(_) | Word::Mark(_) => None,
        }
    }
}

/// The maximum length of a name in bytes: 64 characters of up to four bytes.
const NAME_MAX: usize = 256;

pub(super) struct Words<'a> {
    sql: &'a [u8],
    peeked: Option<Word>,
    has_escapes: bool,
    is_damaged: bool,
    is_after_gap: bool,
}

impl<'a> Words<'a> {
    pub(super) fn new(sql: &'a [u8]) -> Words<'a> {
        let (has_escapes, is_damaged, is_after_gap) = (true, false, false);
        Words { sql, peeked: None, has_escapes, is_damaged, is_after_gap }
    }

    /// The words of a statement in whose literals a backslash escapes, or does not.
    pub(super) fn in_mode(sql: &'a [u8], has_escapes: bool) -> Words<'a> {
        Words { has_escapes, ..Words::new(sql) }
    }

    /// Whether a literal, a name or a comment is unterminated, or its end depends on the SQL mode.
    pub(super) fn is_damaged(&self) -> bool {
        self.is_damaged
    }

    /// Whether a space or a comment comes before the word that was read last.
    pub(super) fn is_after_gap(&self) -> bool {
        self.is_after_gap
    }

    pub(super) fn next(&mut self) -> Option<Word> {
        self.peeked.take().or_else(|| self.read())
    }

    pub(super) fn peek(&mut self) -> Option<Word> {
        if self.peeked.is_none() {
            self.peeked = self.read();
        }
        self.peeked.clone()
    }

    pub(super) fn peek_is(&mut self, keywords: &[&str]) -> bool {
        self.peek().is_some_and(|word| keywords.iter().any(|keyword| word.is(keyword)))
    }

    /// Skips any number of these keywords.
    pub(super) fn skip_any(&mut self, keywords: &[&str]) {
        while self.peek_is(keywords) {
            self.peeked = None;
        }
    }

    /// The next word in upper case; empty if it is not a plain word.
    pub(super) fn keyword(&mut self) -> String {
        match self.next() {
            Some(Word::Plain(word)) => word.to_ascii_uppercase(),
            _ => String::new(),
        }
    }

    /// The kind of object that a definition concerns: the first word that is a kind.
    pub(super) fn kind(&mut self) -> String {
        const KINDS: [&str; 20] = [
            "TABLE",
            "TABLES",
            "VIEW",
            "SEQUENCE",
            "INDEX",
            "DATABASE",
            "SCHEMA",
            "TRIGGER",
            "PROCEDURE",
            "FUNCTION",
            "EVENT",
            "USER",
            "ROLE",
            "SERVER",
            "PACKAGE",
            "TABLESPACE",
            "LOGFILE",
            "INSTANCE",
            "RESOURCE",
            "SPATIAL",
        ];
        // The word after these is a value, as in DEFINER=event@localhost.
        let mut is_value = false;
        while let Some(word) = self.next() {
            if let Some(kind) = KINDS.iter().find(|kind| !is_value && word.is(kind)) {
                // SPATIAL REFERENCE SYSTEM, or a spatial index.
                return (*kind).to_owned();
            }
            is_value = matches!(word, Word::Mark(b'=' | b'@'));
        }
        String::new()
    }

    /// The next word as a name.
    pub(super) fn name(&mut self) -> Option<String> {
        match self.next()? {
            Word::Plain(name) | Word::Quoted(name) => Some(name),
            Word::Literal(_) | Word::Mark(_) => None,
        }
    }

    /// Parses `X'6162',X'',1` or `'ab','',1`. The second part and the format may be missing.
    pub(super) fn xa_id(&mut self) -> Option<XaId> {
        let global = self.xa_part()?;
        let mut branch = Vec::new();
        let mut format = 1;
        if self.peek() == Some(Word::Mark(b',')) {
            self.next();
            branch = self.xa_part()?;
        }
        if self.peek() == Some(Word::Mark(b',')) {
            self.next();
            let Some(Word::Plain(number)) = self.next() else { return None };
            format = number.parse().ok()?;
        }
        Some(XaId { format, global: global.into(), branch: branch.into() })
    }

    fn xa_part(&mut self) -> Option<Vec<u8>> {
        match self.next()? {
            Word::Literal(bytes) => Some(bytes),
            Word::Quoted(text) => Some(text.into_bytes()),
            Word::Plain(word) if word.eq_ignore_ascii_case("x") => match self.next()? {
                Word::Literal(digits) => unhex(&digits),
                _ => None,
            },
            Word::Plain(word) => unhex(word.strip_prefix("0x")?.as_bytes()),
            Word::Mark(_) => None,
        }
    }

    fn read(&mut self) -> Option<Word> {
        self.is_after_gap = false;
        loop {
            let (first, rest) = self.sql.split_first()?;
            match first {
                b' ' | b'\t' | b'\r' | b'\n' | 0x0b | 0x0c | b';' => self.sql = rest,
                b'#' => self.skip_line(),
                b'-' if rest.first() == Some(&b'-')
                    && rest.get(1).is_none_or(u8::is_ascii_whitespace) =>
                {
                    self.skip_line();
                }
                b'/' if rest.first() == Some(&b'*') => self.comment(),
                b'*' if rest.first() == Some(&b'/') => self.sql = &rest[1..],
                b'`' | b'"' => return Some(self.quoted(*first)),
                b'\'' => return Some(self.literal()),
                byte if is_word(*byte) => return Some(self.plain()),
                byte => {
                    self.sql = rest;
                    return Some(Word::Mark(*byte));
                }
            }
            self.is_after_gap = true;
        }
    }

    fn skip_line(&mut self) {
        let end = self.sql.iter().position(|byte| *byte == b'\n').unwrap_or(self.sql.len());
        self.sql = &self.sql[end..];
    }

    fn comment(&mut self) {
        let inside = &self.sql[2..];
        let run = inside.strip_prefix(b"!").or_else(|| inside.strip_prefix(b"M!"));
        if let Some(run) = run {
            let digits = run.iter().take_while(|byte| byte.is_ascii_digit()).count().min(6);
            self.sql = &run[digits..];
            return;
        }
        match inside.windows(2).position(|pair| pair == b"*/") {
            Some(end) => self.sql = &inside[end + 2..],
            None => {
                self.sql = &[];
                self.is_damaged = true;
            }
        }
    }

    fn plain(&mut self) -> Word {
        let end = self.sql.iter().position(|byte| !is_word(*byte)).unwrap_or(self.sql.len());
        let (word, rest) = self.sql.split_at(end);
        self.sql = rest;
        self.text(word, Word::Plain)
    }

    /// Inside quotes, a doubled quote stands for one.
    fn quoted(&mut self, quote: u8) -> Word {
        let mut name = Vec::new();
        let mut rest = &self.sql[1..];
        loop {
            let Some(end) = rest.iter().position(|byte| *byte == quote) else {
                self.sql = &[];
                self.is_damaged = true;
                return Word::Mark(quote);
            };
            let piece = &rest[..end];
            // In a literal, this backslash hides the quote; in a name it does not.
            let backslashes = piece.iter().rev().take_while(|byte| **byte == b'\\').count();
            self.is_damaged |= self.has_escapes && quote == b'"' && backslashes % 2 == 1;
            name.extend_from_slice(piece);
            rest = &rest[end + 1..];
            if rest.first() != Some(&quote) {
                self.sql = rest;
                return self.text(&name, Word::Quoted);
            }
            name.push(quote);
            rest = &rest[1..];
        }
    }

    fn text(&mut self, bytes: &[u8], word: fn(String) -> Word) -> Word {
        match std::str::from_utf8(bytes) {
            Ok(text) if text.len() <= NAME_MAX => word(text.to_owned()),
            // Too long for a name; it may be a literal.
            _ => Word::Literal(Vec::new()),
        }
    }

    fn literal(&mut self) -> Word {
        let mut text = Vec::new();
        let mut at = 1;
        while let Some(byte) = self.sql.get(at) {
            match (byte, self.sql.get(at + 1)) {
                (b'\\', Some(escaped)) if self.has_escapes => {
                    text.push(*escaped);
                    at += 2;
                }
                (b'\'', Some(b'\'')) => {
                    text.push(b'\'');
                    at += 2;
                }
                (b'\'', _) => {
                    self.sql = &self.sql[at + 1..];
                    return Word::Literal(text);
                }
                _ => {
                    text.push(*byte);
                    at += 1;
                }
            }
        }
        self.sql = &[];
        self.is_damaged = true;
        Word::Literal(text)
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || !byte.is_ascii()
}

fn unhex(digits: &[u8]) -> Option<Vec<u8>> {
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    let pairs = digits.chunks_exact(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}
