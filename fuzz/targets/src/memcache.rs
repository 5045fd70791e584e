//! memcached's protocols: nothing panics, however the bytes are cut the requests are the same, no more is
//! held back than a line or a value may be, and what is no request is answered with a known line.
//!
//! The data is what a client sends; its first byte says where it is cut.

use bytes::BytesMut;
use memcache::{Decoder, LINE_BYTES_MAX, Limits, Request, Step};

const LIMITS: Limits = Limits { item_bytes_max: 4_096 };

/// Reads the data whole, and in pieces.
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
