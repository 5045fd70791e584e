//! Decodes strings in the Huffman code of RFC 7541 (section 5.2 and appendix B).
//!
//! The code is canonical: codes of one length are consecutive in the order of their symbols, and the codes of
//! the next length begin where they ended. The code lengths therefore define the code, and the tables are
//! computed from them at compile time. Short codes, which are nearly all that occur, are looked up by their
//! first eight bits.

use crate::Error;

/// The length in bits of the code of each byte, and last that of the end-of-string symbol.
#[rustfmt::skip]
const LENGTHS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28,
    28, 28, 28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7,
    7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21,
    23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24,
    21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
];

/// The end-of-string symbol (EOS), which follows the 256 bytes. A string must not contain it.
const END: u16 = 256;
const LONGEST: usize = 30;
/// The number of bits by which short codes are looked up.
const SHORT_BITS: u32 = 8;

/// The codes, grouped by their lengths.
struct Codes {
    /// For each length, the first 32-bit value that does not begin with a code of at most that length.
    ends: [u64; LONGEST + 1],
    /// For each length, its first code.
    firsts: [u32; LONGEST + 1],
    /// For each length, the index in `symbols` of the symbol of its first code.
    offsets: [u16; LONGEST + 1],
    /// The symbols, in the order of their codes.
    symbols: [u16; 257],
    /// For each value of the first eight bits, the length and symbol of the code that they begin with. The
    /// length is 0 if that code is longer than eight bits.
    short: [(u8, u8); 1 << SHORT_BITS],
}

const CODES: Codes = codes();

const fn codes() -> Codes {
    let mut codes = Codes {
        ends: [0; LONGEST + 1],
        firsts: [0; LONGEST + 1],
        offsets: [0; LONGEST + 1],
        symbols: [0; 257],
        short: [(0, 0); 1 << SHORT_BITS],
    };
    let (mut code, mut placed, mut length) = (0_u32, 0, 1);
    while length <= LONGEST {
        codes.firsts[length] = code;
        codes.offsets[length] = placed as u16;
        let mut symbol = 0;
        while symbol < LENGTHS.len() {
            if LENGTHS[symbol] as usize == length {
                codes.symbols[placed] = symbol as u16;
                placed += 1;
                if length as u32 <= SHORT_BITS {
                    let spare = SHORT_BITS - length as u32;
                    let (from, to) = (code << spare, (code + 1) << spare);
                    let mut at = from;
                    while at < to {
                        codes.short[at as usize] = (length as u8, symbol as u8);
                        at += 1;
                    }
                }
                code += 1;
            }
            symbol += 1;
        }
        codes.ends[length] = (code as u64) << (32 - length);
        code <<= 1;
        length += 1;
    }
    codes
}

/// The length in bits and the symbol of the code at the start of `bits`.
fn first(bits: u32) -> (u32, u16) {
    let (length, symbol) = CODES.short[(bits >> (32 - SHORT_BITS)) as usize];
    if length != 0 {
        return (length.into(), symbol.into());
    }
    let mut length = SHORT_BITS as usize + 1;
    // The code is complete: the codes of the greatest length end after all 32-bit values.
    while length < LONGEST && u64::from(bits) >= CODES.ends[length] {
        length += 1;
    }
    let code = bits >> (32 - length);
    let at = usize::from(CODES.offsets[length]) + (code - CODES.firsts[length]) as usize;
    (length as u32, CODES.symbols[at])
}

/// Decodes a Huffman-coded string and appends it to `out`. The result has at most 8/5 of the bytes of `coded`.
///
/// # Errors
/// [`Error::HuffmanInvalid`]: the string contains EOS, or its padding is not zero to seven one-bits.
pub fn decode(coded: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
    let mut bytes = coded.iter();
    let (mut bits, mut held) = (0_u64, 0_u32);
    loop {
        while held <= 32 {
            let Some(byte) = bytes.next() else { break };
            bits = bits << 8 | u64::from(*byte);
            held += 8;
        }
        // Bits after the end count as ones, like the padding.
        let window = match held.checked_sub(32) {
            Some(spare) => (bits >> spare) as u32,
            None if held == 0 => return Ok(()),
            None => ((bits << (32 - held)) as u32) | (u32::MAX >> held),
        };
        let (length, symbol) = first(window);
        if length > held {
            let is_padding = held < 8 && window == u32::MAX;
            return if is_padding { Ok(()) } else { Err(Error::HuffmanInvalid) };
        }
        if symbol == END {
            return Err(Error::HuffmanInvalid);
        }
        out.push(symbol as u8);
        held -= length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The code of a symbol, and its length in bits.
    fn code(symbol: u16) -> (u64, u32) {
        let at = CODES.symbols.iter().position(|known| *known == symbol).unwrap();
        let length = usize::from(LENGTHS[usize::from(symbol)]);
        let code = CODES.firsts[length] + (at as u32 - u32::from(CODES.offsets[length]));
        (code.into(), length as u32)
    }

    /// Encodes symbols, and pads with ones.
    fn encode(symbols: impl IntoIterator<Item = u16>) -> Vec<u8> {
        let mut bits = Vec::new();
        for symbol in symbols {
            let (code, length) = code(symbol);
            bits.extend((0..length).rev().map(|at| code >> at & 1 == 1));
        }
        let byte = |bits: &[bool]| {
            (0..8).fold(0, |byte, at| byte << 1 | u8::from(bits.get(at).is_none_or(|bit| *bit)))
        };
        bits.chunks(8).map(byte).collect()
    }

    #[test]
    fn codes_of_appendix_b() {
        for (symbol, known) in [
            (u16::from(b'0'), (0x0, 5)),
            (u16::from(b'A'), (0x21, 6)),
            (u16::from(b'z'), (0x7b, 7)),
            (u16::from(b'&'), (0xf8, 8)),
            (u16::from(b'!'), (0x3f8, 10)),
            (u16::from(b'\\'), (0x7fff0, 19)),
            (0, (0x1ff8, 13)),
            (255, (0x3ff_ffee, 26)),
            (10, (0x3fff_fffc, 30)),
            (END, (0x3fff_ffff, 30)),
        ] {
            assert_eq!(code(symbol), known, "{symbol}");
        }
    }

    #[test]
    fn wrong_endings() {
        let read = |coded: &[u8]| decode(coded, &mut Vec::new());
        assert_eq!(read(&encode([END])), Err(Error::HuffmanInvalid));
        assert_eq!(read(&[0xff, 0xff]), Err(Error::HuffmanInvalid), "eight ones and more");
        assert_eq!(read(&[0xff]), Err(Error::HuffmanInvalid));
        // The code of '0' is 00000. The three padding bits after it are not all ones.
        assert_eq!(read(&[0b0000_0110]), Err(Error::HuffmanInvalid));
        assert_eq!(read(&[0b0000_0111]), Ok(()));
    }

    proptest! {
        #[test]
        fn encoded_text_is_decoded_unchanged(text in prop::collection::vec(any::<u8>(), 0..80)) {
            let mut out = b"before".to_vec();
            decode(&encode(text.iter().map(|byte| u16::from(*byte))), &mut out).unwrap();
            prop_assert_eq!(&out[6..], &text[..]);
        }

        #[test]
        fn anything_is_read_or_refused(coded in prop::collection::vec(any::<u8>(), 0..80)) {
            let mut out = Vec::new();
            if decode(&coded, &mut out).is_ok() {
                prop_assert_eq!(encode(out.iter().map(|byte| u16::from(*byte))), coded);
            }
        }
    }
}
