//! A cursor over bytes: decodes the integers and strings of the client/server protocol and of the log.
//!
//! Every read checks that enough bytes are left. After an error the position is unspecified, because callers
//! stop. Nothing is copied. Sources: "Basic Data Types" of the client/server protocol (MySQL internals manual,
//! "Protocol::Integer", "Protocol::LengthEncodedInteger").
//!
//! Not here: the meaning of the bytes.

use crate::Refusal;

/// Bytes that have not been read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// A cursor at the start of `bytes`.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes }
    }

    /// The bytes that have not been read.
    #[must_use]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Whether all bytes have been read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Consumes and returns all bytes that are left.
    pub fn take_rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    /// The next `count` bytes.
    ///
    /// # Errors
    /// `Truncated` if fewer bytes are left, as for all other methods.
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], Refusal> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(Refusal::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    /// The next `count` bytes, for a count received from the peer.
    ///
    /// # Errors
    /// `Truncated`.
    pub fn take_long(&mut self, count: u64) -> Result<&'a [u8], Refusal> {
        self.take(usize::try_from(count).map_err(|_| Refusal::Truncated)?)
    }

    /// The next bytes as an array.
    ///
    /// # Errors
    /// `Truncated`.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Refusal> {
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or(Refusal::Truncated)?;
        self.rest = rest;
        Ok(*taken)
    }

    /// The next byte.
    ///
    /// # Errors
    /// `Truncated`.
    pub fn u8(&mut self) -> Result<u8, Refusal> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// The next two bytes as a little-endian integer.
    ///
    /// # Errors
    /// `Truncated`.
    pub fn u16(&mut self) -> Result<u16, Refusal> {
        self.array().map(u16::from_le_bytes)
    }

    /// The next four bytes as a little-endian integer.
    ///
    /// # Errors
    /// `Truncated`.
    pub fn u32(&mut self) -> Result<u32, Refusal> {
        self.array().map(u32::from_le_bytes)
    }

    /// The next eight bytes as a little-endian integer.
    ///
    /// # Errors
    /// `Truncated`.
    pub fn u64(&mut self) -> Result<u64, Refusal> {
        self.array().map(u64::from_le_bytes)
    }

    /// The next `count` bytes (at most 8) as a little-endian integer.
    ///
    /// # Errors
    /// `Truncated`; `BadLength` if `count` is more than 8.
    pub fn uint(&mut self, count: usize) -> Result<u64, Refusal> {
        let mut wide = [0; 8];
        wide.get_mut(..count).ok_or(Refusal::BadLength)?.copy_from_slice(self.take(count)?);
        Ok(u64::from_le_bytes(wide))
    }

    /// The next `count` bytes (at most 8) as a big-endian integer.
    ///
    /// # Errors
    /// `Truncated`; `BadLength` if `count` is more than 8.
    pub fn uint_big(&mut self, count: usize) -> Result<u64, Refusal> {
        if count > 8 {
            return Err(Refusal::BadLength);
        }
        Ok(self.take(count)?.iter().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }

    /// The next length-encoded integer.
    ///
    /// # Errors
    /// `Truncated`; `BadValue` if the first byte is 0xfb (NULL) or 0xff.
    pub fn lenenc(&mut self) -> Result<u64, Refusal> {
        match self.u8()? {
            0xfc => self.uint(2),
            0xfd => self.uint(3),
            0xfe => self.uint(8),
            0xfb | 0xff => Err(Refusal::BadValue),
            small => Ok(u64::from(small)),
        }
    }

    /// A length-encoded number of elements that each take at least one byte.
    ///
    /// # Errors
    /// As [`Reader::lenenc`]; `BadLength` if fewer bytes are left.
    pub fn lenenc_count(&mut self) -> Result<usize, Refusal> {
        let count = usize::try_from(self.lenenc()?).map_err(|_| Refusal::BadLength)?;
        if count > self.rest.len() { Err(Refusal::BadLength) } else { Ok(count) }
    }

    /// Bytes preceded by their length-encoded length.
    ///
    /// # Errors
    /// As [`Reader::lenenc`].
    pub fn lenenc_bytes(&mut self) -> Result<&'a [u8], Refusal> {
        let count = self.lenenc()?;
        self.take_long(count)
    }

    /// Bytes up to a NUL, which is consumed too; all bytes that are left if there is none.
    pub fn nul_bytes(&mut self) -> &'a [u8] {
        let end = self.rest.iter().position(|byte| *byte == 0).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest.get(1..).unwrap_or_default();
        taken
    }

    /// An integer of the serialization library of MySQL 8.3 and later: the number of trailing 1-bits in the
    /// first byte is the number of bytes that follow ("Variable-length integers" of its manual).
    ///
    /// # Errors
    /// `Truncated`.
    pub fn varlen(&mut self) -> Result<u64, Refusal> {
        let first = self.u8()?;
        let more = first.trailing_ones() as usize;
        let above = self.uint(more)?;
        Ok(match more {
            8 => above,
            // Eight bits, minus one for each byte that follows, and minus one for the zero bit that ends them.
            7 => above,
            _ => above << (7 - more) | u64::from(first) >> (more + 1),
        })
    }
}

/// Appends a length-encoded integer to `out`.
pub fn put_lenenc(out: &mut Vec<u8>, value: u64) {
    let bytes = value.to_le_bytes();
    match value {
        0..=0xfa => out.push(bytes[0]),
        0xfb..=0xffff => {
            out.push(0xfc);
            out.extend_from_slice(&bytes[..2]);
        }
        0x1_0000..=0xff_ffff => {
            out.push(0xfd);
            out.extend_from_slice(&bytes[..3]);
        }
        _ => {
            out.push(0xfe);
            out.extend_from_slice(&bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn length_encoded_integers_go_there_and_back() {
        for value in [0, 0xfa, 0xfb, 0xffff, 0x1_0000, 0xff_ffff, 0x100_0000, u64::MAX] {
            let mut out = Vec::new();
            put_lenenc(&mut out, value);
            let mut reader = Reader::new(&out);
            assert_eq!((reader.lenenc(), reader.is_empty()), (Ok(value), true));
        }
        assert_eq!(Reader::new(&[0xfb]).lenenc(), Err(Refusal::BadValue));
        assert_eq!(Reader::new(&[0xfc, 1]).lenenc(), Err(Refusal::Truncated));
    }

    #[test]
    fn variable_length_integers() {
        // The example of the manual: 65535 in three bytes.
        assert_eq!(Reader::new(&[0b1111_1011, 0xff, 0b0000_0111]).varlen(), Ok(65535));
        assert_eq!(Reader::new(&[0]).varlen(), Ok(0));
        assert_eq!(Reader::new(&[127 << 1]).varlen(), Ok(127));
        assert_eq!(Reader::new(&[0x7f, 1, 2, 3, 4, 5, 6, 7]).varlen(), Ok(0x07_0605_0403_0201));
        assert_eq!(Reader::new(&[0xff; 9]).varlen(), Ok(u64::MAX));
    }

    #[test]
    fn strings_end_at_nul_or_at_the_end() {
        let mut reader = Reader::new(b"ab\0c");
        assert_eq!((reader.nul_bytes(), reader.nul_bytes()), (&b"ab"[..], &b"c"[..]));
        assert!(reader.is_empty());
    }
}
