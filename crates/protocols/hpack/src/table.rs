//! The fields that an index refers to (RFC 7541 section 2.3). The static table is the same for all connections
//! (appendix A). After it comes the dynamic table, which the header blocks of a connection build. The newest
//! field there has the lowest index, and the oldest fields are evicted when space is needed (section 4).

use crate::{Error, FIELD_BYTES};
use std::collections::VecDeque;

/// The static table (appendix A). The first field has index 1.
#[rustfmt::skip]
pub const STATIC: [(&str, &str); 61] = [
    (":authority", ""), (":method", "GET"), (":method", "POST"), (":path", "/"), (":path", "/index.html"),
    (":scheme", "http"), (":scheme", "https"), (":status", "200"), (":status", "204"), (":status", "206"),
    (":status", "304"), (":status", "400"), (":status", "404"), (":status", "500"), ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"), ("accept-language", ""), ("accept-ranges", ""), ("accept", ""),
    ("access-control-allow-origin", ""), ("age", ""), ("allow", ""), ("authorization", ""),
    ("cache-control", ""), ("content-disposition", ""), ("content-encoding", ""), ("content-language", ""),
    ("content-length", ""), ("content-location", ""), ("content-range", ""), ("content-type", ""),
    ("cookie", ""), ("date", ""), ("etag", ""), ("expect", ""), ("expires", ""), ("from", ""), ("host", ""),
    ("if-match", ""), ("if-modified-since", ""), ("if-none-match", ""), ("if-range", ""),
    ("if-unmodified-since", ""), ("last-modified", ""), ("link", ""), ("location", ""),
    ("max-forwards", ""), ("proxy-authenticate", ""), ("proxy-authorization", ""), ("range", ""),
    ("referer", ""), ("refresh", ""), ("retry-after", ""), ("server", ""), ("set-cookie", ""),
    ("strict-transport-security", ""), ("transfer-encoding", ""), ("user-agent", ""), ("vary", ""),
    ("via", ""), ("www-authenticate", ""),
];

/// A field of the dynamic table: name and value in one allocation.
#[derive(Debug)]
struct Field {
    bytes: Box<[u8]>,
    /// The length of the name in bytes; the value follows it.
    name: usize,
}

/// The dynamic table of one direction of a connection.
#[derive(Debug, Default)]
pub struct Table {
    /// The fields, newest first.
    fields: VecDeque<Field>,
    /// The size of all fields in bytes (section 4.1).
    bytes: usize,
    /// The maximum of `bytes`.
    bytes_max: usize,
}

impl Table {
    /// An empty table of at most `bytes_max` bytes.
    pub fn new(bytes_max: usize) -> Table {
        Table { bytes_max, ..Table::default() }
    }

    /// The name and value of the field with this index.
    ///
    /// # Errors
    /// [`Error::IndexUnknown`] if neither table has a field with this index.
    pub fn get(&self, index: usize) -> Result<(&[u8], &[u8]), Error> {
        let at = index.checked_sub(1).ok_or(Error::IndexUnknown)?;
        if let Some((name, value)) = STATIC.get(at) {
            return Ok((name.as_bytes(), value.as_bytes()));
        }
        let field = self.fields.get(at - STATIC.len()).ok_or(Error::IndexUnknown)?;
        Ok(field.bytes.split_at(field.name))
    }

    /// Adds a field in front; the first `name` bytes of `bytes` are its name. The oldest fields are evicted to
    /// make room. A field larger than the whole table empties it (section 4.4).
    pub fn add(&mut self, bytes: Box<[u8]>, name: usize) {
        let counted = bytes.len() + FIELD_BYTES;
        self.shrink(self.bytes_max.saturating_sub(counted));
        if counted <= self.bytes_max {
            self.bytes += counted;
            self.fields.push_front(Field { bytes, name });
        }
    }

    /// Sets the maximum size in bytes, and evicts the oldest fields until the table fits (section 4.3).
    pub fn resize(&mut self, bytes_max: usize) {
        self.bytes_max = bytes_max;
        self.shrink(bytes_max);
    }

    fn shrink(&mut self, to: usize) {
        while self.bytes > to {
            let Some(field) = self.fields.pop_back() else { return };
            self.bytes -= field.bytes.len() + FIELD_BYTES;
        }
    }

    /// The current size in bytes (section 4.1).
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}
