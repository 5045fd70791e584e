//! Base64 for keys (RFC 4648 section 4, with padding), used by the flag `b` of the meta commands.
//!
//! As in memcached, text that does not decode to at least one byte is rejected. Keys are short, so the code is
//! not optimised for speed.

const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The decoded bytes; `None` if `text` is not valid base64 or is empty.
pub(crate) fn decode(text: &[u8]) -> Option<Vec<u8>> {
    if text.is_empty() || !text.len().is_multiple_of(4) {
        return None;
    }
    let padding = text.iter().rev().take_while(|byte| **byte == b'=').count();
    if padding > 2 {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count) = (0_u32, 0);
    for byte in &text[..text.len() - padding] {
        let letter = LETTERS.iter().position(|letter| letter == byte)?;
        bits = (bits << 6) | letter as u32;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    (!bytes.is_empty()).then_some(bytes)
}

/// `bytes` encoded as base64.
pub(crate) fn encode(bytes: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let mut bits = [0; 3];
        bits[..three.len()].copy_from_slice(three);
        let bits = u32::from_be_bytes([0, bits[0], bits[1], bits[2]]);
        for place in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * place)) as usize & 63];
            text.push(if place <= three.len() { letter } else { b'=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        for (bytes, text) in
            [("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(encode(bytes.as_bytes()), text.as_bytes());
            assert_eq!(decode(text.as_bytes()).as_deref(), Some(bytes.as_bytes()));
        }
        for wrong in ["", "Zg", "Z===", "====", "Zm9!", "Zg==Zg=="] {
            assert_eq!(decode(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
