//! Writes commands in the form that clients send: an array of bulk strings (RESP2). The commands for a stream
//! or a hash take its key. Nothing is escaped, because each string is preceded by its length. Not here: the
//! reply to each command.

use crate::place::Id;
use crate::reply::VALUE_BYTES;

/// A command that consists of these words.
#[must_use]
pub fn command(words: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::with_capacity(words.iter().map(|word| word.len() + 16).sum::<usize>() + 16);
    begin(&mut out, words.len());
    words.iter().for_each(|one| word(&mut out, one));
    out
}

fn begin(out: &mut Vec<u8>, words: usize) {
    out.extend_from_slice(format!("*{words}\r\n").as_bytes());
}

fn word(out: &mut Vec<u8>, word: &[u8]) {
    out.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
    out.extend_from_slice(word);
    out.extend_from_slice(b"\r\n");
}

/// `AUTH`. Without a user name, the server authenticates the user `default`.
#[must_use]
pub fn authenticate(user: &str, password: &str) -> Vec<u8> {
    if user.is_empty() {
        command(&[b"AUTH", password.as_bytes()])
    } else {
        command(&[b"AUTH", user.as_bytes(), password.as_bytes()])
    }
}

/// `SELECT`: selects the database with this number.
#[must_use]
pub fn select(database: &str) -> Vec<u8> {
    command(&[b"SELECT", database.as_bytes()])
}

/// A Lua script that begins with a function `said`: it returns the reply of `XINFO STREAM` without the entries.
macro_rules! script {
    ($rest:literal) => {
        concat!(
            "local function said(key) local all=redis.pcall('XINFO','STREAM',key) \
             if all.err then return all end local said={} for i=1,#all,2 do \
             if type(all[i+1])~='table' then said[#said+1]=all[i] said[#said+1]=all[i+1] end end \
             return said end ",
            $rest
        )
        .as_bytes()
    };
}

/// A script that returns the reply of `XINFO STREAM`, without the first and the last entry, which may be long.
#[must_use]
pub fn ask_extent(stream: &str) -> Vec<u8> {
    const SAY: &[u8] = script!("return said(KEYS[1])");
    command(&[b"EVAL", SAY, b"1", stream.as_bytes()])
}

/// `XREAD`: at most `count` entries after `id`. With `wait_ms`, the server waits up to that many milliseconds
/// for the first entry.
#[must_use]
pub fn read_after(stream: &str, id: Id, count: usize, wait_ms: Option<u64>) -> Vec<u8> {
    let (count, id) = (count.to_string(), id.to_string());
    let wait = wait_ms.map(|wait_ms| wait_ms.to_string());
    let mut words: Vec<&[u8]> = vec![b"XREAD", b"COUNT", count.as_bytes()];
    if let Some(wait) = &wait {
        words.extend([&b"BLOCK"[..], wait.as_bytes()]);
    }
    words.extend([&b"STREAMS"[..], stream.as_bytes(), id.as_bytes()]);
    command(&words)
}

/// A script that reads at most `count` entries after `id` and the extent of the stream, atomically. The reply
/// is a list of the reply of `XREAD` and a part of the reply of `XINFO STREAM`.
#[must_use]
pub fn read_whole(stream: &str, id: Id, count: usize) -> Vec<u8> {
    const READ: &[u8] = script!(
        "return {redis.call('XREAD','COUNT',ARGV[2],'STREAMS',KEYS[1],ARGV[1]),said(KEYS[1])}"
    );
    let (count, id) = (count.to_string(), id.to_string());
    command(&[b"EVAL", READ, b"1", stream.as_bytes(), id.as_bytes(), count.as_bytes()])
}

/// An `XADD` that always fails. The error shows whether an entry could be added: a permission error, for
/// example, differs from the error about the id `0-0`.
#[must_use]
pub fn add_nothing(stream: &str) -> Vec<u8> {
    command(&[b"XADD", stream.as_bytes(), b"0-0", b"tag", b"none"])
}

/// `HSET` of one field.
#[must_use]
pub fn set_field(hash: &str, field: &str, value: &str) -> Vec<u8> {
    command(&[b"HSET", hash.as_bytes(), field.as_bytes(), value.as_bytes()])
}

/// `HGETALL`: all fields of a hash.
#[must_use]
pub fn all_fields(hash: &str) -> Vec<u8> {
    command(&[b"HGETALL", hash.as_bytes()])
}

/// A script that deletes one field of a hash, but only if the field still has this value.
#[must_use]
pub fn remove_field_if(hash: &str, field: &str, value: &str) -> Vec<u8> {
    const IF: &[u8] = b"if redis.call('HGET',KEYS[1],ARGV[1])==ARGV[2] then \
                        return redis.call('HDEL',KEYS[1],ARGV[1]) end return 0";
    command(&[b"EVAL", IF, b"1", hash.as_bytes(), field.as_bytes(), value.as_bytes()])
}

/// An entry to add: a list of fields. A field name may occur more than once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewEntry {
    words: Vec<u8>,
    fields: usize,
}

impl NewEntry {
    /// Appends a field with its value.
    pub fn field(&mut self, name: &str, value: &[u8]) {
        word(&mut self.words, name.as_bytes());
        word(&mut self.words, value);
        self.fields += 1;
    }

    /// The approximate number of bytes that the entry needs when it is sent, and in memory when it is read.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.words.len() + 2 * VALUE_BYTES * self.fields
    }
}

/// `XADD` with an id assigned by the server. The stream is trimmed to about `keep` entries.
#[must_use]
pub fn add(stream: &str, keep: u64, added: &NewEntry) -> Vec<u8> {
    let keep = keep.to_string();
    let first: [&[u8]; 6] = [b"XADD", stream.as_bytes(), b"MAXLEN", b"~", keep.as_bytes(), b"*"];
    let mut out = Vec::with_capacity(added.words.len() + 100);
    begin(&mut out, first.len() + 2 * added.fields);
    first.iter().for_each(|one| word(&mut out, one));
    out.extend_from_slice(&added.words);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_clients_write_them() {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        assert_eq!(text(select("2")), "*2\r\n$6\r\nSELECT\r\n$1\r\n2\r\n");
        assert_eq!(text(authenticate("", "x")), "*2\r\n$4\r\nAUTH\r\n$1\r\nx\r\n");
        let waits = text(read_after("s", Id { ms: 7, number: 1 }, 64, Some(500)));
        assert!(
            waits.starts_with("*8\r\n")
                && waits.ends_with("$7\r\nSTREAMS\r\n$1\r\ns\r\n$3\r\n7-1\r\n")
        );
        let mut added = NewEntry::default();
        added.field("tag", b"a\r\n");
        added.field("tag", b"");
        let added = text(add("s", 10, &added));
        assert!(added.starts_with(
            "*10\r\n$4\r\nXADD\r\n$1\r\ns\r\n$6\r\nMAXLEN\r\n$1\r\n~\r\n$2\r\n10\r\n$1\r\n*\r\n"
        ));
        assert!(added.ends_with("$3\r\ntag\r\n$3\r\na\r\n\r\n$3\r\ntag\r\n$0\r\n\r\n"));
    }
}
