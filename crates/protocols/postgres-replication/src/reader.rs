//! A cursor over bytes: reads the big-endian integers and the strings of PostgreSQL's protocol.
//!
//! Every read checks that enough bytes are left; after an error the cursor must not be used. Nothing is copied.
//! Source: PostgreSQL's manual, "Message Data Types". Not here: the meaning of the bytes.

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

    /// The next `count` bytes.
    ///
    /// # Errors
    /// `Truncated` if fewer bytes are left, as for all other methods.
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], Refusal> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(Refusal::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Refusal> {
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

    /// The next two bytes as an integer.
    ///
    /// # Errors
    /// `Truncated`.
    pub fn u16(&mut self) -> Result<u16, Refusal> {
        self.array().map(u16::from_be_bytes)
    }

    /// The next four bytes as an integer.
    ///
    /// # Errors
    /// `Truncated`.
    pub fn u32(&mut self) -> Result<u32, Refusal> {
        self.array().map(u32::from_be_bytes)
    }

    /// The next eight bytes as an integer.
    ///
    /// # Errors
    /// `Truncated`.
    pub fn u64(&mut self) -> Result<u64, Refusal> {
        self.array().map(u64::from_be_bytes)
    }

    /// Bytes that are preceded by their length, a four-byte integer.
    ///
    /// # Errors
    /// `Truncated`; `BadLength` if the length is negative.
    pub fn counted(&mut self) -> Result<&'a [u8], Refusal> {
        let count = i32::from_be_bytes(self.array()?);
        self.take(usize::try_from(count).map_err(|_| Refusal::BadLength)?)
    }

    /// A string that ends with a zero byte. The zero byte is consumed too.
    ///
    /// # Errors
    /// `Truncated` if there is no zero byte; `BadText` if the string is not UTF-8.
    pub fn text(&mut self) -> Result<&'a str, Refusal> {
        let end = self.rest.iter().position(|byte| *byte == 0).ok_or(Refusal::Truncated)?;
        let taken = self.take(end)?;
        self.take(1)?;
        std::str::from_utf8(taken).map_err(|_| Refusal::BadText)
    }

    /// Checks that all bytes have been read.
    ///
    /// # Errors
    /// `LeftOver` if bytes are left.
    pub fn end(self) -> Result<(), Refusal> {
        if self.rest.is_empty() { Ok(()) } else { Err(Refusal::LeftOver) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_end_at_zero_and_lengths_are_checked() {
        let mut reader = Reader::new(b"ab\0\0\0\0\x01x\xff\xff\xff\xff");
        assert_eq!((reader.text(), reader.counted()), (Ok("ab"), Ok(&b"x"[..])));
        assert_eq!(reader.counted(), Err(Refusal::BadLength));
        assert_eq!(Reader::new(b"ab").text(), Err(Refusal::Truncated));
        assert_eq!(Reader::new(b"\xff\0").text(), Err(Refusal::BadText));
        assert_eq!(Reader::new(b"\0\0\0\x02x").counted(), Err(Refusal::Truncated));
    }
}
