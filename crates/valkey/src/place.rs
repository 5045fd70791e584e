//! How far a stream is read: the id of its last entry, and how many were ever added up to there. The number
//! shows what ids do not: that entries were taken out before they were read (a stream that was trimmed,
//! or deleted and begun anew).

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
        !now.has_all(self) || now.gone > self.added
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
        Ok(Place { id: id.parse()?, added: digits(added)?, gone: 0 })
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
    }
}
