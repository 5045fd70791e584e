//! memcached's protocols: nothing panics, and the requests are the same however the bytes are split. No more
//! than a line or a value is buffered. Invalid requests are answered with a known line.
//!
//! The data is the bytes of a client; the first byte defines the split.

use bytes::BytesMut;
use memcache::{Decoder, LINE_BYTES_MAX, Limits, Request, Step};

const LIMITS: Limits = Limits { item_bytes_max: 4_096 };

/// Decodes the data whole, and in pieces.
pub fn run(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else { return };
    let pieces = usize::from(*first).max(1);
    let whole = requests(rest, rest.len().max(1));
    assert_eq!(whole, requests(rest, pieces));
}

fn requests(data: &[u8], piece: usize) -> (Vec<Request>, bool) {
    let (mut decoder, mut input) = (Decoder::new(LIMITS), BytesMut::new());
    let mut requests = Vec::new();
    for piece in data.chunks(piece) {
        input.extend_from_slice(piece);
        loop {
            match decoder.next(&mut input) {
                Step::Request(request) => requests.push(request),
                Step::Close(_) => return (requests, false),
                Step::More(more) => {
                    assert!(more > 0 && more <= LIMITS.item_bytes_max + 2);
                    assert!(input.len() <= LINE_BYTES_MAX + LIMITS.item_bytes_max);
                    break;
                }
            }
        }
    }
    (requests, true)
}
