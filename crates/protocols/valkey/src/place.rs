//! The position in a stream: the id of the last entry read, and the number of entries ever added up to it. The
//! number shows what ids do not: entries that were removed before they were read, because the stream was
//! trimmed, or deleted and created again. Not here: when to check this (callers use `whole` while they read).

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// The id of an entry: the time at which it was added, in milliseconds since 1970, and a sequence number. Later
/// entries of a stream have higher ids.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id {
    /// The time in milliseconds since 1970.
    pub ms: u64,
    /// The sequence number among the entries of that millisecond.
    pub number: u64,
}

/// A position in a stream: everything up to and including an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The id of the entry; zero before the first entry.
    pub id: Id,
    /// The number of entries added to the stream up to this position, including those that were removed since.
    pub added: u64,
    /// The number of entries that had been removed from the stream when it was queried; 0 if it was not
    /// queried.
    pub gone: u64,
    /// The id of the latest entry that had been deleted by id when the stream was queried; zero if there was
    /// none, or it was not queried.
    pub deleted: Id,
}

impl Place {
    /// Whether this position includes everything up to `other`. It does not if so many entries cannot have been
    /// added in between: the positions then belong to different streams.
    #[must_use]
    pub fn has_all(&self, other: &Place) -> bool {
        match self.id.cmp(&other.id) {
            Ordering::Greater => self.added > other.added,
            Ordering::Equal => self.added == other.added,
            Ordering::Less => false,
        }
    }

    /// Whether reading cannot continue from this position in a stream that now ends at `now`: entries were
    /// removed before they were read, or it is another stream.
    #[must_use]
    pub fn is_lost_by(&self, now: &Place) -> bool {
        !now.has_all(self) || now.gone > self.added || now.deleted > self.id
    }

    /// The position after `count` more entries were read, up to `last`. `now` is the end of the stream at the
    /// time of that read. `is_all`: the read reached the end of the stream. Returns `None` if entries were
    /// removed before they were read, or if it is another stream.
    #[must_use]
    pub fn read_on(
        &self,
        count: u64,
        last: Option<Id>,
        is_all: bool,
        now: &Place,
    ) -> Option<Place> {
        let id = last.unwrap_or(self.id);
        let after = Place { id, added: self.added + count, ..Place::default() };
        let is_there = if is_all {
            (now.id, now.added) == (after.id, after.added)
        } else {
            now.has_all(&after)
        };
        (is_there && !self.is_lost_by(now)).then_some(after)
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.ms, self.number)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.id, self.added)
    }
}

/// A text is not a valid position, or not a valid id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoPlace;

impl FromStr for Id {
    type Err = NoPlace;

    fn from_str(text: &str) -> Result<Id, NoPlace> {
        let (ms, number) = text.split_once('-').ok_or(NoPlace)?;
        Ok(Id { ms: digits(ms)?, number: digits(number)? })
    }
}

impl FromStr for Place {
    type Err = NoPlace;

    fn from_str(text: &str) -> Result<Place, NoPlace> {
        let (id, added) = text.split_once('/').ok_or(NoPlace)?;
        Ok(Place { id: id.parse()?, added: digits(added)?, ..Place::default() })
    }
}

fn digits(text: &str) -> Result<u64, NoPlace> {
    let all = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if all { text.parse().map_err(|_| NoPlace) } else { Err(NoPlace) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Place {
        text.parse().expect("a place")
    }

    #[test]
    fn there_and_back() {
        assert_eq!(at("1700000000000-3/17").to_string(), "1700000000000-3/17");
        for wrong in
            ["", "1-2", "1/2", "a-1/2", "1-/2", "1-2/", "+1-2/3", "99999999999999999999-0/1"]
        {
            assert!(wrong.parse::<Place>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn lost_entries_are_noticed() {
        let read = at("50-0/5");
        assert!(read.has_all(&at("40-0/4")) && read.has_all(&read) && !read.has_all(&at("60-0/6")));
        assert!(!read.is_lost_by(&read) && !read.is_lost_by(&at("60-0/6")));
        // Trimmed up to the last entry read, and beyond it.
        assert!(!read.is_lost_by(&Place { gone: 5, ..at("60-0/9") }));
        assert!(read.is_lost_by(&Place { gone: 6, ..at("60-0/9") }));
        // The entries in between were gone when the stream was read.
        assert!(read.is_lost_by(&at("50-0/7")));
        // Deleted; and created again since.
        assert!(read.is_lost_by(&Place::default()));
        assert!(read.is_lost_by(&at("60-0/1")) && read.is_lost_by(&at("60-0/5")));
        // One entry was deleted by id: an entry that had been read, and one that had not.
        let deleted = |text: &str| text.parse().expect("an id");
        let now = Place { gone: 1, ..at("60-0/6") };
        assert!(!read.is_lost_by(&Place { deleted: deleted("50-0"), ..now }));
        assert!(read.is_lost_by(&Place { deleted: deleted("55-0"), ..now }));
    }

    #[test]
    fn a_position_advances_only_over_complete_reads() {
        let from = at("50-0/5");
        let id = |ms| Some(Id { ms, number: 0 });
        let read = |count, last, is_all, now: Place| {
            from.read_on(count, last, is_all, &now).map(|place| place.to_string())
        };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(read(0, None, true, at("50-0/5")), some("50-0/5"));
        assert_eq!(read(2, id(70), true, at("70-0/7")), some("70-0/7"));
        assert_eq!(read(2, id(70), false, at("70-0/7")), some("70-0/7"));
        assert_eq!(read(2, id(70), false, at("90-0/9")), some("70-0/7"));
        // The first of two entries was trimmed, and then both.
        assert_eq!(read(1, id(70), true, Place { gone: 6, ..at("70-0/7") }), None);
        assert_eq!(read(0, None, true, Place { gone: 7, ..at("70-0/7") }), None);
        // Deleted, created again, and now as long as before.
        assert_eq!(read(5, id(70), true, at("70-0/5")), None);
        assert_eq!(read(5, id(70), false, at("90-0/9")), None);
        assert_eq!(read(0, None, true, Place::default()), None);
        let begun = Place::default().read_on(1, id(7), true, &at("7-0/1"));
        assert_eq!(begun, Some(at("7-0/1")));
    }
}
