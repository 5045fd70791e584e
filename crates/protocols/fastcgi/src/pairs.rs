//! Name-value pairs, the content of PARAMS and GET_VALUES (FastCGI §3.4).
//!
//! Length of the name, length of the value, name, value. A length up to 127 takes one byte, a
//! longer one four, with the highest bit set. Both parts are plain bytes, no terminator.
//! Not here: how pairs are cut into records ([`crate::params`]), or which names may be sent.

use bytes::{Buf, Bytes};

/// A name and its value, sharing the buffer they were decoded from.
pub type Pair = (Bytes, Bytes);

/// The bytes were not a whole number of name-value pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PairsCutShort;

impl std::fmt::Display for PairsCutShort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("name-value pairs end in the middle of a pair")
    }
}

impl std::error::Error for PairsCutShort {}

/// Bytes that a pair takes once encoded.
pub fn encoded_len(name: &[u8], value: &[u8]) -> usize {
    len_encoded(name.len(), value.len())
}

/// The same of a pair whose parts are so long.
pub(crate) fn len_encoded(name_len: usize, value_len: usize) -> usize {
    length_len(name_len) + length_len(value_len) + name_len + value_len
}

/// Appends one pair. Lengths must be below 2³¹ bytes, which [`crate::Params`] sees to.
pub fn encode(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    encode_lengths(name.len(), value.len(), out);
    out.extend_from_slice(name);
    out.extend_from_slice(value);
}

/// Appends how a pair begins whose parts are so long.
pub(crate) fn encode_lengths(name_len: usize, value_len: usize, out: &mut Vec<u8>) {
    encode_length(name_len, out);
    encode_length(value_len, out);
}

/// Takes the next pair from the front of `bytes`: `Ok(None)` when none are left, an error when
/// the bytes end inside a pair (`bytes` is then left in an unspecified state).
pub fn decode_next(bytes: &mut Bytes) -> Result<Option<Pair>, PairsCutShort> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let name_len = decode_length(bytes)?;
    let value_len = decode_length(bytes)?;
    // Two 31-bit numbers: their sum cannot overflow 64 bits.
    if (bytes.len() as u64) < name_len as u64 + value_len as u64 {
        return Err(PairsCutShort);
    }
    let name = bytes.split_to(name_len);
    let value = bytes.split_to(value_len);
    Ok(Some((name, value)))
}

/// All pairs in `bytes`, in order, or an error when the bytes end inside a pair.
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
