//! A whole snapshot: prefix, head, statements and pages in pieces of about a megabyte, end.
//!
//! | part | followed by |
//! |---|---|
//! | prefix: magic bytes, version, file number | the head |
//! | head: number, time, fingerprints of the site and of its tables, positions | statements, pages, or the end |
//! | statements: for each its key and its bytes | statements, pages, or the end |
//! | pages | pages, or the end |
//! | end: the number of pages | nothing |
//!
//! Statements come first: a reader needs them before it follows the databases, and the pages only after that.
//!
//! [`Writer`] produces the bytes to be written; [`Reader`] says how many bytes it needs next. Each of them
//! buffers at most one piece.

use crate::SnapshotError;
use crate::frame::{self, Before, FRAME_BYTES, FRAME_BYTES_MAX, Place};
use crate::parts::{Put, Rest};
use crate::record::{SavedPage, read_page, write_page};

const MAGIC: &[u8; 8] = b"PwPages\n";
/// The version of the format.
pub const VERSION: u32 = 2;
/// The length of the prefix in bytes: magic, version, file number.
pub const PREFIX_BYTES: usize = 8 + 4 + 8;
/// The maximum number of change sources whose position a snapshot records.
pub const SOURCES_MAX: usize = 64;
/// A piece is complete once it has this many bytes.
const PIECE_BYTES: usize = 1 << 20;
/// The maximum length of a position and of a source's name, in bytes.
const POSITION_BYTES_MAX: usize = 1 << 20;

const HEAD: u8 = 1;
const PAGES: u8 = 2;
const END: u8 = 3;
// 4 and 5 are the pieces of a journal.
const STATEMENTS: u8 = 6;

/// A position in a stream of changes: the pages of the snapshot include every change up to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// The name of the stream.
    pub source: Vec<u8>,
    /// How far the stream was applied, in the stream's own format.
    pub at: Vec<u8>,
}

/// The head of a snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// The snapshot's number; each snapshot has the previous number plus one.
    pub generation: u64,
    /// The time at which the snapshot was begun, in milliseconds since the Unix epoch.
    pub begun_ms: u64,
    /// The fingerprint: a hash of the configuration and the program, on which the meaning of the pages
    /// depends.
    pub print: u128,
    /// The fingerprint of the database's tables, for which the statements are valid; `None` if there are none.
    pub tables: Option<u128>,
    /// The positions in all streams of changes.
    pub positions: Vec<Position>,
}

/// The end of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// The number of pages in the snapshot.
    pub pages: u64,
}

/// Writes a snapshot into a buffer, from which the caller takes the bytes.
#[derive(Debug)]
pub struct Writer {
    place: Place,
    pages: u64,
    /// The incomplete piece, if there is one.
    begun: Option<BegunPiece>,
    out: Vec<u8>,
}

/// A piece that is not complete.
#[derive(Clone, Copy, Debug)]
struct BegunPiece {
    kind: u8,
    /// The offset at which it begins.
    at: usize,
}

/// The result of adding a page or a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteOutcome {
    /// The page or statement was added.
    Yes,
    /// The page or statement was left out, because it does not fit a piece.
    TooLarge,
    /// The statement was left out, because there are pages already.
    TooLate,
}

impl Writer {
    /// Begins a snapshot. `file` is a number that identifies the file.
    pub fn new(head: &Head, file: u64) -> Writer {
        let mut out = MAGIC.to_vec();
        out.u32(VERSION);
        out.u64(file);
        let mut writer = Writer { place: Place { file, number: 0 }, pages: 0, begun: None, out };
        let at = frame::begin(&mut writer.out);
        let out = &mut writer.out;
        out.u64(head.generation);
        out.u64(head.begun_ms);
        out.u128(head.print);
        out.u8(u8::from(head.tables.is_some()));
        head.tables.iter().for_each(|tables| out.u128(*tables));
        out.u32(head.positions.len() as u32);
        for position in &head.positions {
            out.bytes(&position.source);
            out.bytes(&position.at);
        }
        writer.end_piece(at, HEAD);
        writer
    }

    /// Adds a statement: its key, by which pages name it, and its bytes. All statements come before the first page.
    pub fn statement(&mut self, key: u128, bytes: &[u8]) -> WriteOutcome {
        if self.pages > 0 {
            return WriteOutcome::TooLate;
        }
        self.add(STATEMENTS, |out| {
            out.u128(key);
            out.extend_from_slice(bytes);
        })
    }

    /// Adds a page to the snapshot.
    pub fn page(&mut self, page: &SavedPage<'_>) -> WriteOutcome {
        let outcome = self.add(PAGES, |out| write_page(page, out));
        self.pages += u64::from(outcome == WriteOutcome::Yes);
        outcome
    }

    /// Adds an element to the piece of its kind.
    fn add(&mut self, kind: u8, write: impl FnOnce(&mut Vec<u8>)) -> WriteOutcome {
        if self.begun.is_some_and(|begun| begun.kind != kind) {
            self.end_begun();
        }
        let at = match self.begun {
            Some(begun) => begun.at,
            None => {
                let at = frame::begin(&mut self.out);
                self.begun = Some(BegunPiece { kind, at });
                at
            }
        };
        let start = self.out.len();
        self.out.u32(0);
        write(&mut self.out);
        let length = self.out.len() - start - 4;
        // Refused if it would not fit a piece of its own either.
        if length + 4 > FRAME_BYTES_MAX - PIECE_BYTES {
            self.out.truncate(start);
            return WriteOutcome::TooLarge;
        }
        self.out[start..start + 4].copy_from_slice(&(length as u32).to_le_bytes());
        if self.out.len() - at >= PIECE_BYTES {
            self.end_begun();
        }
        WriteOutcome::Yes
    }

    /// Ends the snapshot. The next [`take`](Self::take) returns the last bytes.
    pub fn end(&mut self) -> End {
        self.end_begun();
        let at = frame::begin(&mut self.out);
        self.out.u64(self.pages);
        self.end_piece(at, END);
        End { pages: self.pages }
    }

    /// The number of pages added.
    pub fn pages(&self) -> u64 {
        self.pages
    }

    /// Passes all complete pieces to `write` and removes them from the buffer. Returns `None`, without
    /// calling `write`, if no piece is complete.
    pub fn take<R>(&mut self, write: impl FnOnce(&[u8]) -> R) -> Option<R> {
        let end = self.begun.map_or(self.out.len(), |begun| begun.at);
        if end == 0 {
            return None;
        }
        let written = write(&self.out[..end]);
        self.out.drain(..end);
        self.begun = self.begun.map(|begun| BegunPiece { at: 0, ..begun });
        Some(written)
    }

    fn end_begun(&mut self) {
        if let Some(BegunPiece { kind, at }) = self.begun.take() {
            self.end_piece(at, kind);
        }
    }

    fn end_piece(&mut self, at: usize, kind: u8) {
        frame::end(&mut self.out, at, kind, self.place);
        self.place.number += 1;
    }
}

/// Reads a snapshot. Supply exactly as many bytes as [`wants`](Reader::wants) returns, until it returns
/// `None`.
#[derive(Debug)]
pub struct Reader {
    place: Place,
    pages: u64,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Prefix,
    /// Before the frame of a piece; `last` is the kind of the piece before, or [`NONE`].
    Before {
        last: u8,
    },
    Piece {
        before: Before,
    },
    Over,
}

/// The kind of no piece.
const NONE: u8 = 0;

/// Whether a piece of the kind `next` may follow one of the kind `last`.
fn may_follow(last: u8, next: u8) -> bool {
    match last {
        NONE => next == HEAD,
        HEAD | STATEMENTS => matches!(next, STATEMENTS | PAGES | END),
        _ => matches!(next, PAGES | END),
    }
}

/// The result of one read.
#[derive(Debug)]
pub enum Piece<'a> {
    /// Bytes that are no complete element; read on.
    Part,
    /// The head.
    Head(Head),
    /// Some statements.
    Statements(SavedStatements<'a>),
    /// Some pages.
    Pages(Pages<'a>),
    /// The end.
    End(End),
}

/// The pages of one piece.
#[derive(Debug)]
pub struct Pages<'a>(&'a [u8]);

/// The statements of one piece.
#[derive(Debug)]
pub struct SavedStatements<'a>(&'a [u8]);

impl Default for Reader {
    fn default() -> Reader {
        let place = Place { file: 0, number: 0 };
        Reader { place, pages: 0, state: State::Prefix }
    }
}

impl Reader {
    /// The number of bytes that the next read needs; `None` after the end.
    pub fn wants(&self) -> Option<usize> {
        match self.state {
            State::Prefix => Some(PREFIX_BYTES),
            State::Before { .. } => Some(FRAME_BYTES),
            State::Piece { before } => Some(before.length),
            State::Over => None,
        }
    }

    /// Reads that many bytes.
    ///
    /// # Errors
    /// The bytes are not those that were written there. The reader cannot be used any further.
    pub fn read<'a>(&mut self, bytes: &'a [u8]) -> Result<Piece<'a>, SnapshotError> {
        match self.state {
            State::Prefix => self.prefix(bytes),
            State::Before { last } => {
                let bytes = bytes.try_into().map_err(|_| SnapshotError::CutOff)?;
                let before = Before::read(bytes)?;
                if !may_follow(last, before.kind) {
                    return Err(SnapshotError::Damaged);
                }
                self.state = State::Piece { before };
                Ok(Piece::Part)
            }
            State::Piece { before } => {
                before.check(bytes, self.place)?;
                self.place.number += 1;
                self.state = State::Before { last: before.kind };
                self.piece(before.kind, bytes)
            }
            State::Over => Err(SnapshotError::Invalid),
        }
    }

    fn prefix(&mut self, bytes: &[u8]) -> Result<Piece<'static>, SnapshotError> {
        let mut rest = Rest(bytes);
        if rest.take(8)? != MAGIC {
            return Err(SnapshotError::Foreign);
        }
        if rest.u32()? != VERSION {
            return Err(SnapshotError::OtherVersion);
        }
        self.place.file = rest.u64()?;
        self.state = State::Before { last: NONE };
        Ok(Piece::Part)
    }

    fn piece<'a>(&mut self, kind: u8, bytes: &'a [u8]) -> Result<Piece<'a>, SnapshotError> {
        match kind {
            HEAD => read_head(bytes).map(Piece::Head),
            STATEMENTS => Ok(Piece::Statements(SavedStatements(bytes))),
            PAGES => {
                let pages = Pages(bytes);
                self.pages += pages.count()?;
                Ok(Piece::Pages(pages))
            }
            _ => {
                let mut rest = Rest(bytes);
                let end = End { pages: rest.u64()? };
                rest.end()?;
                self.state = State::Over;
                if end.pages == self.pages {
                    Ok(Piece::End(end))
                } else {
                    Err(SnapshotError::Damaged)
                }
            }
        }
    }
}

impl<'a> SavedStatements<'a> {
    /// The statements one by one: the key and the bytes of each.
    pub fn iter(&self) -> impl Iterator<Item = Result<(u128, &'a [u8]), SnapshotError>> + use<'a> {
        elements(self.0).map(|statement| {
            let mut rest = Rest(statement?);
            Ok((rest.u128()?, rest.0))
        })
    }
}

impl<'a> Pages<'a> {
    /// The number of pages.
    fn count(&self) -> Result<u64, SnapshotError> {
        let (mut rest, mut count) = (Rest(self.0), 0);
        while !rest.0.is_empty() {
            rest.bytes()?;
            count += 1;
        }
        Ok(count)
    }

    /// Decodes the pages one by one.
    pub fn iter(&self) -> impl Iterator<Item = Result<SavedPage<'a>, SnapshotError>> + use<'a> {
        elements(self.0).map(|page| page.and_then(read_page))
    }
}

/// The elements of a piece, up to the first whose length is wrong.
fn elements<'a>(
    piece: &'a [u8],
) -> impl Iterator<Item = Result<&'a [u8], SnapshotError>> + use<'a> {
    let mut rest = Rest(piece);
    std::iter::from_fn(move || {
        if rest.0.is_empty() {
            return None;
        }
        let element = rest.bytes();
        if element.is_err() {
            rest = Rest(&[]);
        }
        Some(element)
    })
}

fn read_head(bytes: &[u8]) -> Result<Head, SnapshotError> {
    let mut rest = Rest(bytes);
    let (generation, begun_ms, print) = (rest.u64()?, rest.u64()?, rest.u128()?);
    let tables = if rest.flag()? { Some(rest.u128()?) } else { None };
    let count = rest.count(SOURCES_MAX)?;
    let mut positions = Vec::new();
    for _ in 0..count {
        let (source, at) = (rest.bytes()?, rest.bytes()?);
        if source.len().max(at.len()) > POSITION_BYTES_MAX {
            return Err(SnapshotError::TooLarge);
        }
        positions.push(Position { source: source.to_vec(), at: at.to_vec() });
    }
    rest.end()?;
    Ok(Head { generation, begun_ms, print, tables, positions })
}
