//! The lines of redirect files: old paths and their targets, in a compact hash table.
//!
//! A path is compared as an application reads it: decoded, without double slashes and dot segments. The query of a
//! line is compared in its normal form (`KeyForm`), so order and tracking parameters do not count.
//!
//! All lines are in one byte string; the table has their positions. Of several lines for one path, the first counts.
//!
//! Not here: the format of the files, which `config` reads.

use super::redirects::status_of;
use super::targets::UrlTarget;
use crate::form::KeyForm;
use foldhash::quality::FixedState;
use http::{Method, StatusCode};
use rule_conditions::RequestView;
use std::fmt;
use std::hash::{BuildHasher, Hasher};

/// The maximum length of an old path with its query, in bytes.
const OLD_BYTES_MAX: usize = 8 << 10;
/// The length of a record without its texts: the lengths of path, query (plus one) and target, and the status, two bytes
/// each; and four for the number of the line.
const HEAD_BYTES: usize = 12;
/// The number of a line is in 32 bits of a slot, and so is the position of its record.
const BYTES_MAX: usize = u32::MAX as usize - 1;

/// The lines of redirect files, by their old path, or path and query.
#[derive(Clone, Default)]
pub struct RedirectMap {
    /// The records, one behind the other.
    records: Vec<u8>,
    /// For each record 32 bits of its hash, and its position plus one; 0 is an empty slot. The number of slots is a
    /// power of two.
    slots: Vec<u64>,
    lines: usize,
    /// The number of the line that is added next.
    number: u32,
    /// Whether any line has a query.
    has_queries: bool,
}

/// A line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RedirectLine<'a> {
    /// The old path as an application reads it.
    pub(crate) path: &'a [u8],
    /// The query in its normal form, if the line has one.
    pub(crate) query: Option<&'a str>,
    /// The target; empty for 410.
    pub(crate) target: &'a str,
    pub(crate) status: StatusCode,
    /// The number of the line ([`RedirectMap::begin_line`]).
    pub(crate) number: u32,
}

/// Whether a line is in the map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddedLine {
    /// The line counts.
    Added,
    /// An earlier line has the same path and query, so this one never counts.
    Repeated,
}

impl RedirectMap {
    /// Gives the line that is added next a number, by which its place is found again.
    pub fn begin_line(&mut self, number: u32) {
        self.number = number;
    }

    /// Adds a line: the old path, which may have a query; the target; the status.
    ///
    /// # Errors
    /// The line is wrong: a message for the operator.
    pub fn add(
        &mut self,
        form: &KeyForm,
        old: &str,
        target: &str,
        status: Option<&str>,
    ) -> Result<AddedLine, String> {
        if !old.starts_with('/') {
            return Err(format!("{old:?}: the old path begins with /"));
        }
        if old.contains('#') {
            return Err(format!("{old:?}: clients do not send what follows #; write %23 for it"));
        }
        if old.len() > OLD_BYTES_MAX {
            return Err(format!("{} bytes are too many: {OLD_BYTES_MAX} at most", old.len()));
        }
        let status = match status.map(str::trim).filter(|status| !status.is_empty()) {
            None if target.trim() == "410" => {
                return Err("410: a status comes after the target, which is empty then".into());
            }
            None => StatusCode::MOVED_PERMANENTLY,
            Some(text) => {
                let code = text.parse().ok();
                let is_gone = code == Some(StatusCode::GONE.as_u16());
                let status = code.and_then(status_of);
                status.or(is_gone.then_some(StatusCode::GONE)).ok_or_else(|| {
                    format!("{text:?}: the status is 301, 302, 303, 307, 308 or 410")
                })?
            }
        };
        let target = if status == StatusCode::GONE { "" } else { target };
        if status != StatusCode::GONE && UrlTarget::read(target)?.captures() > 0 {
            return Err(format!("{target:?}: a line has no captures; write %24 for $"));
        }
        let path = RequestView::of_url(&Method::GET, "http", "", old).plain_path().into_owned();
        let query = match old.split_once('?') {
            None => None,
            Some(_) => {
                let query = normal_query(form, old);
                Some(query.ok_or_else(|| {
                    format!("{old:?}: never matches, because keys.drop removes its query")
                })?)
            }
        };
        self.insert(&path, query.as_deref(), target, status)
    }

    fn insert(
        &mut self,
        path: &[u8],
        query: Option<&str>,
        target: &str,
        status: StatusCode,
    ) -> Result<AddedLine, String> {
        if self.find(path, query).is_some() {
            return Ok(AddedLine::Repeated);
        }
        let at = self.records.len();
        let query_bytes = query.map_or(0, |query| query.len() + 1);
        let next = at + HEAD_BYTES + path.len() + query_bytes + target.len();
        if next >= BYTES_MAX {
            return Err("the lines are too long: 4 GiB at most together".into());
        }
        // All three are shorter than `OLD_BYTES_MAX` and the longest target.
        for number in [path.len(), query_bytes, target.len(), usize::from(status.as_u16())] {
            self.records.extend_from_slice(&(number as u16).to_ne_bytes());
        }
        self.records.extend_from_slice(&self.number.to_ne_bytes());
        for text in [path, query.unwrap_or_default().as_bytes(), target.as_bytes()] {
            self.records.extend_from_slice(text);
        }
        self.has_queries |= query.is_some();
        self.lines += 1;
        if self.lines * 3 > self.slots.len() * 2 {
            self.grow();
        }
        self.put(u64::from(hash(path, query)) << 32 | (at as u64 + 1));
        Ok(AddedLine::Added)
    }

    /// Adds the lines of another map with numbers above `after`, up to `last`. The first of these numbers becomes
    /// `begin` plus one.
    ///
    /// # Errors
    /// The lines are too long together: a message for the operator.
    pub fn add_lines(
        &mut self,
        other: &RedirectMap,
        (after, last): (u32, u32),
        begin: u32,
    ) -> Result<(), String> {
        for line in other.all().filter(|line| line.number > after && line.number <= last) {
            self.begin_line(begin.saturating_add(line.number - after));
            self.insert(line.path, line.query, line.target, line.status)?;
        }
        Ok(())
    }

    fn grow(&mut self) {
        let more = vec![0; (self.slots.len() * 2).max(16)];
        for slot in std::mem::replace(&mut self.slots, more).into_iter().filter(|slot| *slot != 0) {
            self.put(slot);
        }
    }

    fn put(&mut self, slot: u64) {
        let mask = self.slots.len() - 1;
        let mut at = (slot >> 32) as usize & mask;
        while self.slots[at] != 0 {
            at = (at + 1) & mask;
        }
        self.slots[at] = slot;
    }

    /// Releases the memory that further lines would use.
    pub fn shrink(&mut self) {
        self.records.shrink_to_fit();
    }

    /// The line for a path as an application reads it, and its query in normal form; with its place in the table.
    fn find(&self, path: &[u8], query: Option<&str>) -> Option<(usize, RedirectLine<'_>)> {
        let mask = self.slots.len().checked_sub(1)?;
        let hash = hash(path, query);
        let mut at = hash as usize & mask;
        loop {
            let slot = *self.slots.get(at).filter(|slot| **slot != 0)?;
            if slot >> 32 == u64::from(hash) {
                let (line, _) = self.line_at((slot & u64::from(u32::MAX)) as usize - 1)?;
                if line.path == path && line.query == query {
                    return Some((at, line));
                }
            }
            at = (at + 1) & mask;
        }
    }

    /// The line of a request: first by path and query, then by its path.
    pub(crate) fn line_of(&self, path: &[u8], query: Option<&str>) -> Option<RedirectLine<'_>> {
        self.place_of(path, query).map(|(_, line)| line)
    }

    /// The same, with the place of the line in the table: below [`places`](Self::places).
    pub(crate) fn place_of(
        &self,
        path: &[u8],
        query: Option<&str>,
    ) -> Option<(usize, RedirectLine<'_>)> {
        let with_query = query.filter(|query| self.has_queries && !query.is_empty());
        with_query.and_then(|query| self.find(path, Some(query))).or_else(|| self.find(path, None))
    }

    /// The number of places in the table.
    pub(crate) fn places(&self) -> usize {
        self.slots.len()
    }

    /// The line whose record is at this position, and the position of the next.
    fn line_at(&self, at: usize) -> Option<(RedirectLine<'_>, usize)> {
        let record = self.records.get(at..)?;
        let head: &[u8; HEAD_BYTES] = record.first_chunk()?;
        let number = |at: usize| u16::from_ne_bytes([head[at], head[at + 1]]);
        let path_end = HEAD_BYTES + usize::from(number(0));
        let query_bytes = usize::from(number(2));
        let query_end = path_end + query_bytes.saturating_sub(1);
        let end = query_end + usize::from(number(4));
        let text = |bytes| str::from_utf8(bytes).ok();
        let query = match query_bytes {
            0 => None,
            _ => Some(text(record.get(path_end..query_end)?)?),
        };
        let line = RedirectLine {
            path: record.get(HEAD_BYTES..path_end)?,
            query,
            target: text(record.get(query_end..end)?)?,
            status: StatusCode::from_u16(number(6)).ok()?,
            number: u32::from_ne_bytes([head[8], head[9], head[10], head[11]]),
        };
        Some((line, at + end))
    }

    /// All lines, in their order.
    pub(crate) fn all(&self) -> impl Iterator<Item = RedirectLine<'_>> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let (line, next) = self.line_at(at)?;
            at = next;
            Some(line)
        })
    }

    /// The number of lines.
    pub fn len(&self) -> usize {
        self.lines
    }

    /// Whether there are no lines.
    pub fn is_empty(&self) -> bool {
        self.lines == 0
    }
}

impl fmt::Debug for RedirectMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} lines", self.lines)
    }
}

/// The query of a URL in its normal form; `None` if nothing of it is left.
fn normal_query(form: &KeyForm, url: &str) -> Option<String> {
    let normal = form.normal(url);
    normal.page.split_once('?').map(|(_, query)| query.to_owned())
}

fn hash(path: &[u8], query: Option<&str>) -> u32 {
    let mut hasher = FixedState::default().build_hasher();
    hasher.write(path);
    if let Some(query) = query {
        hasher.write_u8(b'?');
        hasher.write(query.as_bytes());
    }
    hasher.finish() as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    fn form() -> KeyForm {
        KeyForm::read(&crate::raw::Keys::default()).unwrap()
    }

    #[test]
    fn wrong_lines_are_refused() {
        let mut map = RedirectMap::default();
        for (old, target, status) in [
            ("a", "/b", None),
            ("/a", "b", None),
            ("/a", "/b", Some("200")),
            ("/a", "/b$1", None),
            ("/a", "/b\r\nX: y", None),
            ("/a#b", "/b", None),
            ("/a?utm_source=x", "/b", None),
            ("/a", "//evil.test", None),
        ] {
            assert!(map.add(&form(), old, target, status).is_err(), "{old} {target}");
        }
        assert!(map.is_empty());
    }

    #[test]
    fn lines_are_found_by_path_and_query() {
        let (mut map, form) = (RedirectMap::default(), form());
        for (old, target, status) in [
            ("/a", "/1", None),
            ("/a?x=1&y=2", "/2", Some("302")),
            ("/%61%2Fb//c", "/3", None),
            ("/gone", "", Some("410")),
        ] {
            assert_eq!(map.add(&form, old, target, status), Ok(AddedLine::Added));
        }
        assert_eq!(map.add(&form, "/a?y=2&x=1", "/4", None), Ok(AddedLine::Repeated));
        let of = |path: &str, query| {
            map.line_of(path.as_bytes(), query).map(|line| (line.target, line.status.as_u16()))
        };
        assert_eq!(of("/a", None), Some(("/1", 301)));
        assert_eq!(of("/a", Some("z")), Some(("/1", 301)));
        assert_eq!(of("/a", Some("x=1&y=2")), Some(("/2", 302)));
        assert_eq!(of("/a/b/c", None), Some(("/3", 301)));
        assert_eq!(of("/gone", None), Some(("", 410)));
        assert_eq!((of("/b", None), of("/a?x=1&y=2", None)), (None, None));
        assert_eq!((map.len(), map.all().count()), (4, 4));
    }

    proptest! {
        #[test]
        fn it_is_a_map(lines in proptest::collection::vec(("/[a-c]{0,2}", "/[a-z]{1,3}"), 0..60)) {
            let (mut map, mut right) = (RedirectMap::default(), HashMap::new());
            for (old, target) in &lines {
                let is_new = !right.contains_key(old);
                right.entry(old).or_insert(target);
                let added = map.add(&form(), old, target, None).unwrap();
                prop_assert_eq!(added == AddedLine::Added, is_new);
            }
            prop_assert_eq!(map.len(), right.len());
            for (old, target) in right {
                prop_assert_eq!(map.line_of(old.as_bytes(), None).map(|line| line.target), Some(&**target));
            }
        }
    }
}
