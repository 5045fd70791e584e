//! Encodes fields as literals without indexing (RFC 7541 section 6.2.2), so the peer's dynamic table does not
//! change. Another encoder on the same connection can therefore use that table. Names of the static table are
//! written as indices. Strings are not Huffman-coded, which saves the peer the decoding.

/// Appends a field that is not to be indexed to `out`. `name` must be in lower case (RFC 9113 section 8.2). A
/// name of the static table is written as its index; other strings are written without Huffman coding.
pub fn write_field(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    match index_of(name) {
        Some(index) => write_integer(0x00, 4, index.into(), out),
        None => {
            out.push(0x00);
            write_string(name, out);
        }
    }
    write_string(value, out);
}

/// Appends the pseudo-header field `:status` to `out`.
pub fn write_status(status: u16, out: &mut Vec<u8>) {
    let known: Option<u8> = match status {
        200 => Some(8),
        204 => Some(9),
        206 => Some(10),
        304 => Some(11),
        400 => Some(12),
        404 => Some(13),
        500 => Some(14),
        _ => None,
    };
    match known {
        Some(index) => out.push(0x80 | index),
        None => {
            let digit = |place: u16| b'0' + (status / place % 10) as u8;
            out.push(8);
            write_string(&[digit(100), digit(10), digit(1)], out);
        }
    }
}

/// The static-table index of a field name that is common in responses.
fn index_of(name: &[u8]) -> Option<u8> {
    Some(match name {
        b"accept-ranges" => 18,
        b"age" => 21,
        b"cache-control" => 24,
        b"content-encoding" => 26,
        b"content-language" => 27,
        b"content-length" => 28,
        b"content-location" => 29,
        b"content-type" => 31,
        b"date" => 33,
        b"etag" => 34,
        b"expires" => 36,
        b"last-modified" => 44,
        b"link" => 45,
        b"location" => 46,
        b"server" => 54,
        b"set-cookie" => 55,
        b"strict-transport-security" => 56,
        b"vary" => 59,
        _ => return None,
    })
}

fn write_string(text: &[u8], out: &mut Vec<u8>) {
    write_integer(0x00, 7, text.len(), out);
    out.extend_from_slice(text);
}

/// Appends an integer whose `prefix` lowest bits are in the first byte (section 5.1). `first` holds the other
/// bits of that byte.
fn write_integer(first: u8, prefix: u32, value: usize, out: &mut Vec<u8>) {
    let most = (1 << prefix) - 1;
    if value < most {
        out.push(first | value as u8);
        return;
    }
    out.push(first | most as u8);
    let mut left = value - most;
    while left >= 0x80 {
        out.push(0x80 | (left & 0x7f) as u8);
        left >>= 7;
    }
    out.push(left as u8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Decoder;
    use crate::table::STATIC;
    use proptest::prelude::*;

    #[test]
    fn names_are_found_where_they_stand() {
        let mut found = 0;
        for (at, (name, _)) in STATIC.iter().enumerate() {
            if let Some(index) = index_of(name.as_bytes()) {
                assert_eq!(usize::from(index), at + 1, "{name}");
                found += 1;
            }
        }
        assert_eq!(found, 18, "all that are written by their index");
    }

    #[test]
    fn a_status_is_read_again() {
        for status in [100, 200, 204, 206, 301, 304, 400, 404, 451, 500, 503, 999] {
            let mut block = Vec::new();
            write_status(status, &mut block);
            let mut seen = Vec::new();
            let mut see = |name: &[u8], value: &[u8]| seen = [name, b" ", value].concat();
            Decoder::default().decode(&block, &mut see).unwrap();
            assert_eq!(seen, format!(":status {status}").into_bytes());
        }
    }

    proptest! {
        #[test]
        fn written_fields_are_decoded_unchanged(
            list in prop::collection::vec(("[a-z-]{0,20}", prop::collection::vec(any::<u8>(), 0..300)), 0..9),
        ) {
            let mut block = Vec::new();
            list.iter().for_each(|(name, value)| write_field(name.as_bytes(), value, &mut block));
            let mut seen = Vec::new();
            let see = |name: &[u8], value: &[u8]| seen.push((name.to_vec(), value.to_vec()));
            Decoder::default().decode(&block, see).unwrap();
            let list: Vec<_> = list.into_iter().map(|(name, value)| (name.into_bytes(), value)).collect();
            prop_assert_eq!(seen, list);
        }
    }
}
