//! The fields that an index names (RFC 7541 section 2.3): the static table, which is the same for all
//! (appendix A), and behind it the dynamic one, which a connection's header blocks build up. The newest field
//! has the lowest index there, and the oldest leave when there is no room (section 4).

use crate::{Error, FIELD_BYTES};
use std::collections::VecDeque;

/// Appendix A; the first has index 1.
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
    /// Where the name ends.
    name: usize,
}

/// A dynamic table.
#[derive(Debug, Default)]
pub struct Table {
    /// The newest first.
    fields: VecDeque<Field>,
    /// What they count, in bytes.
    bytes: usize,
    /// What they may count.
    bytes_max: usize,
}

impl Table {
    /// An empty one that may hold so many bytes.
    pub fn new(bytes_max: usize) -> Table {
        Table { bytes_max, ..Table::default() }
    }

    /// Name and value of the field with this index.
    ///
    /// # Errors
    /// [`Error::IndexUnknown`].
    pub fn get(&self, index: usize) -> Result<(&[u8], &[u8]), Error> {
        let at = index.checked_sub(1).ok_or(Error::IndexUnknown)?;
        if let Some((name, value)) = STATIC.get(at) {
            return Ok((name.as_bytes(), value.as_bytes()));
        }
        let field = self.fields.get(at - STATIC.len()).ok_or(Error::IndexUnknown)?;
        Ok(field.bytes.split_at(field.name))
    }

    /// Puts a field in front, whose name ends at `name`; others leave for it, and all do for one that is too
    /// large (section 4.4).
    pub fn add(&mut self, bytes: Box<[u8]>, name: usize) {
        let counted = bytes.len() + FIELD_BYTES;
        self.shrink(self.bytes_max.saturating_sub(counted));
        if counted <= self.bytes_max {
            self.bytes += counted;
            self.fields.push_front(Field { bytes, name });
        }
    }

    /// It may hold so many bytes from now on (section 4.3).
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

    /// What it counts, in bytes.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}
