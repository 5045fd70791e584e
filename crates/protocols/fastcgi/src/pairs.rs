//! Name-value pairs, the content of PARAMS and GET_VALUES (FastCGI §3.4).
//!
//! A pair is encoded as length of the name, length of the value, name, value. A length up to 127 takes one
//! byte. A longer one takes four, with the highest bit set. Both parts are plain bytes without a terminator.
//! Not here: the division of pairs into records ([`crate::params`]), and the check of names.

use bytes::{Buf, Bytes};

/// A name and its value. Both share the buffer that they were decoded from.
pub type Pair = (Bytes, Bytes);

/// The error for bytes that end inside a name-value pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairsCutShort;

impl std::fmt::Display for PairsCutShort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("name-value pairs end in the middle of a pair")
    }
}

impl std::error::Error for PairsCutShort {}

/// The length in bytes of a pair when encoded.
pub fn encoded_len(name: &[u8], value: &[u8]) -> usize {
    len_encoded(name.len(), value.len())
}

/// The length in bytes of an encoded pair, from the lengths of its parts.
pub(crate) fn len_encoded(name_len: usize, value_len: usize) -> usize {
    length_len(name_len) + length_len(value_len) + name_len + value_len
}

/// Appends an encoded pair to `out`. Each part must be shorter than 2³¹ bytes; [`crate::Params`] ensures this.
pub fn encode(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    encode_lengths(name.len(), value.len(), out);
    out.extend_from_slice(name);
    out.extend_from_slice(value);
}

/// Appends the two lengths with which an encoded pair begins.
pub(crate) fn encode_lengths(name_len: usize, value_len: usize, out: &mut Vec<u8>) {
    encode_length(name_len, out);
    encode_length(value_len, out);
}

/// Removes the next pair from the front of `bytes` (FastCGI §3.4). Returns `Ok(None)` if `bytes` is empty.
///
/// # Errors
/// `bytes` ends inside a pair. Its content is unspecified then.
pub fn decode_next(bytes: &mut Bytes) -> Result<Option<Pair>, PairsCutShort> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let name_len = decode_length(bytes)?;
    let value_len = decode_length(bytes)?;
    // The sum of two 31-bit numbers cannot overflow 64 bits.
    if (bytes.len() as u64) < name_len as u64 + value_len as u64 {
        return Err(PairsCutShort);
    }
    let name = bytes.split_to(name_len);
    let value = bytes.split_to(value_len);
    Ok(Some((name, value)))
}

/// All pairs in `bytes`, in order.
///
/// # Errors
/// `bytes` ends inside a pair.
pub fn decode_all(mut bytes: Bytes) -> Result<Vec<Pair>, PairsCutShort> {
    let mut pairs = Vec::new();
    while let Some(pair) = decode_next(&mut bytes)? {
        pairs.push(pair);
    }
    Ok(pairs)
}

fn length_len(len: usize) -> usize {
    if len < 128 { 1 } else { 4 }
}

fn encode_length(len: usize, out: &mut Vec<u8>) {
    if len < 128 {
        out.push(len as u8);
    } else {
        out.extend_from_slice(&(len as u32 | 0x8000_0000).to_be_bytes());
    }
}

fn decode_length(bytes: &mut Bytes) -> Result<usize, PairsCutShort> {
    let first = *bytes.first().ok_or(PairsCutShort)?;
    if first < 128 {
        bytes.advance(1);
        return Ok(usize::from(first));
    }
    if bytes.len() < 4 {
        return Err(PairsCutShort);
    }
    Ok((bytes.get_u32() & 0x7fff_ffff) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_switch_to_four_bytes_at_128() {
        let mut out = Vec::new();
        encode(&[b'n'; 127], &[b'v'; 128], &mut out);
        assert_eq!(out[..5], [127, 0x80, 0, 0, 128]);
        assert_eq!(out.len(), encoded_len(&[b'n'; 127], &[b'v'; 128]));
        let pairs = decode_all(Bytes::from(out)).unwrap();
        assert_eq!((pairs[0].0.len(), pairs[0].1.len()), (127, 128));
    }

    #[test]
    fn every_cut_inside_a_pair_is_noticed() {
        let mut out = Vec::new();
        encode(b"NAME", &[b'v'; 200], &mut out);
        for len in 1..out.len() {
            assert_eq!(decode_all(Bytes::copy_from_slice(&out[..len])), Err(PairsCutShort));
        }
        assert_eq!(decode_all(Bytes::new()).unwrap(), vec![]);
    }

    #[test]
    fn lengths_beyond_the_bytes_are_refused_without_reserving_room() {
        let huge = Bytes::from_static(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]);
        assert_eq!(decode_all(huge), Err(PairsCutShort));
    }
}
