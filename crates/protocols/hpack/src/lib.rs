//! Header compression for HTTP/2 (RFC 7541): decodes header blocks with a dynamic table, and encodes them
//! without one.
//!
//! Where to read: `decode.rs` (blocks and their fields), `table.rs` (the static and the dynamic table),
//! `huffman.rs` (the string code), `encode.rs` (fields as literals). Invariants: no input causes a panic; a
//! decoder's table never exceeds the announced size; after an invalid block the decoder must not be used again
//! (section 2.3: the connection is closed). Not here: frames, the meaning of fields, the maximum number of
//! fields (the caller counts), and a dynamic table for encoding. No I/O, no time.

#![forbid(unsafe_code)]

mod decode;
mod encode;
mod huffman;
mod table;

pub use decode::Decoder;
pub use encode::{write_field, write_status};

/// The size of a dynamic table in bytes, counted as in section 4.1, if no SETTINGS frame sets another size.
pub const TABLE_BYTES: usize = 4096;

/// The bytes that are added to the length of a field's name and value when its size is counted (section 4.1).
pub const FIELD_BYTES: usize = 32;

/// The reason why a header block is invalid. Each is a connection error of type COMPRESSION_ERROR (RFC 9113
/// section 4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The block ends in the middle of a field.
    Truncated,
    /// An integer is larger than any valid value (section 5.1).
    IntegerTooLarge,
    /// An index has no field in either table (section 2.3.3).
    IndexUnknown,
    /// A Huffman-coded string contains EOS or has invalid padding (section 5.2).
    HuffmanInvalid,
    /// A table size update exceeds the announced size, or comes after a field (sections 4.2 and 6.3).
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
