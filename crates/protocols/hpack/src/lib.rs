//! Header compression for HTTP/2 (RFC 7541): header blocks are read, with the dynamic table that they build
//! up, and written without one.
//!
//! Where to read: `decode.rs` (blocks and their fields), `table.rs` (the static and the dynamic table),
//! `huffman.rs` (the code for strings), `encode.rs` (fields as literals). Invariants: nothing panics on
//! anything that came in; a decoder holds no more than the table's size that was announced; a block that
//! cannot be read leaves a decoder that must not be used again (section 2.3: the connection is over).
//! Deliberately not here: frames, what fields mean, how many a block may have (the visitor counts), and an
//! encoder's dynamic table. No I/O, no time.

#![forbid(unsafe_code)]

mod decode;
mod encode;
mod huffman;
mod table;

pub use decode::Decoder;
pub use encode::{write_field, write_status};

/// The size of a dynamic table, in bytes as section 4.1 counts them, where no SETTINGS frame says another.
pub const TABLE_BYTES: usize = 4096;

/// What is added to the bytes of a field when it is counted (section 4.1).
pub const FIELD_BYTES: usize = 32;

/// Why a header block cannot be read. All are a connection error of type COMPRESSION_ERROR (RFC 9113
/// section 4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// It ends in the middle of a field.
    Truncated,
    /// An integer is larger than anything that can be meant (section 5.1).
    IntegerTooLarge,
    /// An index that names no field (section 2.3.3).
    IndexUnknown,
    /// A string in the Huffman code with a code that is none, or is padded wrongly (section 5.2).
    HuffmanInvalid,
    /// The table is to be larger than was announced, or is resized behind a field (sections 4.2 and 6.3).
    TableSize,
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Error::Truncated => "a header block that ends in the middle of a field",
            Error::IntegerTooLarge => "an integer that is too large",
            Error::IndexUnknown => "an index that names no field",
            Error::HuffmanInvalid => "a string that is not in the Huffman code",
            Error::TableSize => "a size that the dynamic table may not have",
        })
    }
}

impl std::error::Error for Error {}
