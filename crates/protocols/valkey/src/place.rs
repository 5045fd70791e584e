//! How far a stream is read: the id of its last entry, and how many were ever added up to there. The number
//! shows what ids do not: that entries were taken out before they were read (a stream that was trimmed,
//! or deleted and begun anew). Not here: when that is asked (`whole`, by whoever reads on).

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// What an entry is called: when it was added, in milliseconds since 1970, and a number. Later entries of a
/// stream have higher ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id {
    /// When.
    pub ms: u64,
    /// Which of that millisecond.
    pub number: u64,
}

/// A place in a stream: everything up to an entry, with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The entry; zero before the first.
    pub id: Id,
    /// How many were added up to here since the stream was begun, whether or not they are there still.
    pub added: u64,
    /// How many of the stream had been taken out when this was asked; 0 where it was not asked.
    pub gone: u64,
    /// The last that was taken out by its id when this was asked; zero where none was, or it was not asked.
    pub deleted: Id,
}

impl Place {
    /// Whether everything of `other` is in this one. A place where as many entries cannot have come
    /// between is one of another stream.
    #[must_use]
    pub fn has_all(&self, other: &Place) -> bool {
        match self.id.cmp(&other.id) {
            Ordering::Greater => self.added > other.added,
            Ordering::Equal => self.added == other.added,
            Ordering::Less => false,
        }
    }

    /// Whether a stream that the server says has come to `now` cannot be read on from here: something was
    /// taken out of it before it was read, or it is another one.
    #[must_use]
    pub fn is_lost_by(&self, now: &Place) -> bool {
        !now.has_all(self) || now.gone > self.added || now.deleted > self.id
    }

    /// The place after reading on from here: `count` entries up to `last`, at the moment at which the server says
    /// that the stream has come to `now`. None: something was taken out before it was read, or it is another
    /// stream. `is_all`: no more were to be had.
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
        let is_there = match is_all {
            true => (now.id, now.added) == (after.id, after.added),
            false => now.has_all(&after),
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

/// A text that is no place, or no id.
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
    fn what_was_not_read_is_noticed() {
        let read = at("50-0/5");
        assert!(read.has_all(&at("40-0/4")) && read.has_all(&read) && !read.has_all(&at("60-0/6")));
        assert!(!read.is_lost_by(&read) && !read.is_lost_by(&at("60-0/6")));
        // Trimmed as far as it was read, and further.
        assert!(!read.is_lost_by(&Place { gone: 5, ..at("60-0/9") }));
        assert!(read.is_lost_by(&Place { gone: 6, ..at("60-0/9") }));
        // What was read of a stream in which the entries between were gone.
        assert!(read.is_lost_by(&at("50-0/7")));
        // Deleted; and begun anew since.
        assert!(read.is_lost_by(&Place::default()));
        assert!(read.is_lost_by(&at("60-0/1")) && read.is_lost_by(&at("60-0/5")));
        // One was taken out by its id: it had been read, or not.
        let deleted = |text: &str| text.parse().expect("an id");
        let now = Place { gone: 1, ..at("60-0/6") };
        assert!(!read.is_lost_by(&Place { deleted: deleted("50-0"), ..now }));
        assert!(read.is_lost_by(&Place { deleted: deleted("55-0"), ..now }));
    }

    #[test]
    fn what_is_read_on_is_whole() {
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
        // The first of two was trimmed, and so were both.
        assert_eq!(read(1, id(70), true, Place { gone: 6, ..at("70-0/7") }), None);
        assert_eq!(read(0, None, true, Place { gone: 7, ..at("70-0/7") }), None);
        // Deleted, begun anew, and as long again.
        assert_eq!(read(5, id(70), true, at("70-0/5")), None);
        assert_eq!(read(5, id(70), false, at("90-0/9")), None);
        assert_eq!(read(0, None, true, Place::default()), None);
        let begun = Place::default().read_on(1, id(7), true, &at("7-0/1"));
        assert_eq!(begun, Some(at("7-0/1")));
    }
}
