//! Encoding of integers and byte strings. Integers are little-endian; a byte string is preceded by its
//! length in four bytes. Reading allocates nothing and refuses to read past the end. The meaning of the
//! values is decided elsewhere.

use crate::SnapshotError;

/// Appends values to a buffer.
pub(crate) trait Put {
    fn u8(&mut self, value: u8);
    fn u32(&mut self, value: u32);
    fn u64(&mut self, value: u64);
    fn u128(&mut self, value: u128);
    fn bytes(&mut self, bytes: &[u8]);
    /// Appends an optional integer: a flag byte, then the value if there is one.
    fn maybe(&mut self, value: Option<u64>);
    /// Appends an optional byte string: a flag byte, then the string if there is one.
    fn maybe_bytes(&mut self, bytes: Option<&[u8]>);
}

impl Put for Vec<u8> {
    fn u8(&mut self, value: u8) {
        self.push(value);
    }

    fn u32(&mut self, value: u32) {
        self.extend_from_slice(&value.to_le_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.extend_from_slice(&value.to_le_bytes());
    }

    fn u128(&mut self, value: u128) {
        self.extend_from_slice(&value.to_le_bytes());
    }

    /// A string whose length does not fit four bytes exceeds every limit. Its length is written as a value
    /// that no reader accepts.
    fn bytes(&mut self, bytes: &[u8]) {
        self.u32(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
        self.extend_from_slice(bytes);
    }

    fn maybe(&mut self, value: Option<u64>) {
        self.u8(u8::from(value.is_some()));
        if let Some(value) = value {
            self.u64(value);
        }
    }

    fn maybe_bytes(&mut self, bytes: Option<&[u8]>) {
        self.u8(u8::from(bytes.is_some()));
        if let Some(bytes) = bytes {
            self.bytes(bytes);
        }
    }
}

/// The bytes that are still to be read.
pub(crate) struct Rest<'a>(pub(crate) &'a [u8]);

impl<'a> Rest<'a> {
    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], SnapshotError> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(SnapshotError::CutOff)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], SnapshotError> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(SnapshotError::CutOff)?;
        self.0 = rest;
        Ok(*taken)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, SnapshotError> {
        self.array().map(u8::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, SnapshotError> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, SnapshotError> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn u128(&mut self) -> Result<u128, SnapshotError> {
        self.array().map(u128::from_le_bytes)
    }

    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], SnapshotError> {
        let length = self.u32()? as usize;
        self.take(length)
    }

    /// Reads a count of elements.
    ///
    /// # Errors
    /// [`SnapshotError::TooLarge`] if it exceeds `max`.
    pub(crate) fn count(&mut self, max: usize) -> Result<usize, SnapshotError> {
        let count = self.u32()? as usize;
        if count > max { Err(SnapshotError::TooLarge) } else { Ok(count) }
    }

    pub(crate) fn flag(&mut self) -> Result<bool, SnapshotError> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(SnapshotError::Invalid),
        }
    }

    pub(crate) fn maybe(&mut self) -> Result<Option<u64>, SnapshotError> {
        Ok(if self.flag()? { Some(self.u64()?) } else { None })
    }

    pub(crate) fn maybe_bytes(&mut self) -> Result<Option<&'a [u8]>, SnapshotError> {
        Ok(if self.flag()? { Some(self.bytes()?) } else { None })
    }

    /// Checks that nothing is left.
    ///
    /// # Errors
    /// [`SnapshotError::Invalid`] if bytes are left.
    pub(crate) fn end(&self) -> Result<(), SnapshotError> {
        if self.0.is_empty() { Ok(()) } else { Err(SnapshotError::Invalid) }
    }
}
