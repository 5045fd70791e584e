//! Replies of Valkey or Redis: nothing panics, and the replies are the same however the bytes are split. None
//! exceeds the limits of length or depth. The change in an entry can be applied.
//!
//! The data is the bytes of a server; the first byte defines the split.

use valkey::{DEPTH_MAX, Place, Replies, Reply, ReplyError, entries, extent, fields, whole};

const BYTES_MAX: usize = 4_096;

/// Decodes the data whole, and in pieces.
pub fn run(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else { return };
    let pieces = usize::from(*first).max(1);
    let at_once = replies(rest, rest.len().max(1));
    assert_eq!(at_once, replies(rest, pieces));
    for reply in at_once.0 {
        assert!(depth(&reply) <= DEPTH_MAX);
        if let Some(place) = extent(&reply) {
            let text = place.to_string();
            let Place { id, added, .. } = text.parse().expect("a place is one");
            assert_eq!((id, added), (place.id, place.added));
            assert!(place.has_all(&place));
        }
        if let Some((read, now)) = whole(reply.clone()) {
            let (count, last) = (read.len() as u64, read.last().map(|entry| entry.id));
            if let Some(after) = Place::default().read_on(count, last, true, &now) {
                assert!(!after.is_lost_by(&Place { gone: 0, ..now }) && now.has_all(&after));
            }
        }
        let _ = fields(reply.clone());
        let _ = entries(reply);
    }
}

fn depth(reply: &Reply) -> usize {
    match reply {
        Reply::List(list) => 1 + list.iter().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

fn replies(data: &[u8], piece: usize) -> (Vec<Reply>, Option<ReplyError>) {
    let (mut reader, mut found) = (Replies::new(BYTES_MAX), Vec::new());
    for piece in data.chunks(piece) {
        reader.push(piece);
        loop {
            match reader.read() {
                Ok(Some(reply)) => found.push(reply),
                Ok(None) => break,
                Err(why) => return (found, Some(why)),
            }
        }
    }
    (found, None)
}
