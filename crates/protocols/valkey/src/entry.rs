//! Parses the entries in a reply to `XREAD` of one stream, and the fields in a reply to `HGETALL`.
//!
//! A reply with another structure is rejected as a whole; no entry is returned in part. Not here: the meaning
//! of a field.

use crate::extent::extent;
use crate::place::{Id, Place};
use crate::reply::Reply;

/// An entry of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The id of the entry.
    pub id: Id,
    /// The fields, in order. An entry that was deleted after it was listed has no fields.
    pub fields: Vec<(Vec<u8>, Vec<u8>)>,
}

/// The entries of a reply to `XREAD`, in order. `None` if the reply has another structure; an empty list if
/// there are no new entries.
#[must_use]
pub fn entries(reply: Reply) -> Option<Vec<Entry>> {
    let Reply::List(streams) = reply else {
        return (reply == Reply::Null).then(Vec::new);
    };
    let [Reply::List(stream)]: [Reply; 1] = streams.try_into().ok()? else { return None };
    let [Reply::Bytes(_), Reply::List(entries)]: [Reply; 2] = stream.try_into().ok()? else {
        return None;
    };
    entries.into_iter().map(entry).collect()
}

/// The entries of a reply to [`read_whole`](crate::read_whole), and the end of the stream at that moment.
/// `None` if the reply has another structure.
#[must_use]
pub fn whole(reply: Reply) -> Option<(Vec<Entry>, Place)> {
    let Reply::List(parts) = reply else { return None };
    let [read, said]: [Reply; 2] = parts.try_into().ok()?;
    Some((entries(read)?, extent(&said)?))
}

fn entry(reply: Reply) -> Option<Entry> {
    let Reply::List(parts) = reply else { return None };
    let [Reply::Bytes(id), fields]: [Reply; 2] = parts.try_into().ok()? else { return None };
    let id = str::from_utf8(&id).ok()?.parse().ok()?;
    Some(Entry { id, fields: self::fields(fields)? })
}

/// The names and values of a reply that lists them in turn. `None` if the reply has another structure.
#[must_use]
pub fn fields(reply: Reply) -> Option<Vec<(Vec<u8>, Vec<u8>)>> {
    let words = match reply {
        Reply::List(words) => words,
        Reply::Null => Vec::new(),
        _ => return None,
    };
    if !words.len().is_multiple_of(2) {
        return None;
    }
    let mut words = words.into_iter();
    let mut fields = Vec::with_capacity(words.len() / 2);
    while let (Some(name), Some(value)) = (words.next(), words.next()) {
        let (Reply::Bytes(name), Reply::Bytes(value)) = (name, value) else { return None };
        fields.push((name, value));
    }
    Some(fields)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Replies;

    fn read(text: &str) -> Option<Vec<Entry>> {
        let mut replies = Replies::new(1_000);
        replies.push(text.replace(' ', "\r\n").as_bytes());
        entries(replies.read().expect("a reply").expect("a whole one"))
    }

    #[test]
    fn entries_of_one_stream() {
        let found =
            read("*1 *2 $1 s *2 *2 $3 5-1 *4 $1 a $1 b $1 a $0  *2 $3 5-2 *-1 ").expect("entries");
        let field = |name: &str, value: &str| (name.as_bytes().to_vec(), value.as_bytes().to_vec());
        assert_eq!(found[0].id, Id { ms: 5, number: 1 });
        assert_eq!(found[0].fields, [field("a", "b"), field("a", "")]);
        assert_eq!((found.len(), found[1].fields.len()), (2, 0));
        assert_eq!(read("*-1 "), Some(Vec::new()));
        for wrong in [
            "+OK ",
            "*0 ",
            "*1 *2 $1 s $1 x ",
            "*1 *2 $1 s *1 *2 $1 x *-1 ",
            "*1 *2 $1 s *1 *2 $3 5-1 *1 $1 a ",
            "*1 *2 $1 s *1 *2 $3 5-1 *2 $1 a :1 ",
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
