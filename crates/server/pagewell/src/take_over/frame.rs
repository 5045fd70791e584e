//! The protocol between the old and the new process after the handover. The old one sends changes,
//! requests of pending writes to wait, and the end; the new one sends answers. A frame has the
//! length of the rest (`u32`), a kind, a number, the site's host (empty for a single site), and
//! data. Lengths are little-endian. An answer has the number and one byte.
//!
//! Both processes run as the same user, so neither is hostile. Frames are still bounded and
//! checked. An invalid frame ends the connection, and the new process then starts with an empty
//! cache.

use page_store::{ChangeTarget, Strength};
use site_state::propagation::Propagation;
use std::io::{self, Read};

/// The longest frame in bytes: a call of the control interface, with some reserve.
const BYTES_MAX: u32 = 64 << 20;

/// A message of the old process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// A change of pages.
    Change {
        /// Whether pages are purged or marked stale.
        strength: Strength,
        /// The pages that change.
        names: Vec<Name>,
    },
    /// A request to wait until the committed changes of the databases are applied.
    Barrier,
    /// Permission for the new process to answer from its cache. The old process will not take its
    /// place back.
    Serve,
    /// The last message: no further change will follow.
    Over,
}

/// A [`ChangeTarget`] that owns its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    kind: u8,
    one: Vec<u8>,
    other: Vec<u8>,
}

impl Name {
    fn of(target: &ChangeTarget<'_>) -> Name {
        let (kind, one, other): (u8, &[u8], &[u8]) = match target {
            ChangeTarget::Everything => (0, b"", b""),
            ChangeTarget::Tag(tag) => (1, tag, b""),
            ChangeTarget::Url(url) => (2, url, b""),
            ChangeTarget::Path(path) => (3, path, b""),
            ChangeTarget::Prefix(prefix) => (4, prefix, b""),
            ChangeTarget::Owner(owner) => (5, owner, b""),
            ChangeTarget::OwnerTag { owner, tag } => (6, owner, tag),
            ChangeTarget::OwnerUrl { owner, url } => (7, owner, url),
        };
        Name { kind, one: one.to_vec(), other: other.to_vec() }
    }

    /// Returns the target; every page if the kind is not known.
    pub fn target(&self) -> ChangeTarget<'_> {
        let (one, other) = (&self.one[..], &self.other[..]);
        match self.kind {
            1 => ChangeTarget::Tag(one),
            2 => ChangeTarget::Url(one),
            3 => ChangeTarget::Path(one),
            4 => ChangeTarget::Prefix(one),
            5 => ChangeTarget::Owner(one),
            6 => ChangeTarget::OwnerTag { owner: one, tag: other },
            7 => ChangeTarget::OwnerUrl { owner: one, url: other },
            _ => ChangeTarget::Everything,
        }
    }
}

/// A frame with its number and the host of its site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumberedFrame {
    /// The number that an answer refers to.
    pub number: u64,
    /// The site's host; empty for a single site.
    pub host: String,
    /// The message that the frame carries.
    pub frame: Frame,
}

/// Creates the frame for a change.
pub fn change(strength: Strength, targets: &[ChangeTarget<'_>]) -> Frame {
    Frame::Change { strength, names: targets.iter().map(Name::of).collect() }
}

impl NumberedFrame {
    /// Encodes the frame. If the names are too long, it becomes a change of every page.
    pub fn bytes(&self) -> Vec<u8> {
        let mut body = Vec::new();
        let kind = match &self.frame {
            Frame::Over => 0,
            Frame::Barrier => 1,
            Frame::Change { strength: Strength::Drop, .. } => 2,
            Frame::Change { strength: Strength::Mark, .. } => 3,
            Frame::Serve => 4,
        };
        body.push(kind);
        body.extend(self.number.to_le_bytes());
        put(&mut body, self.host.as_bytes());
        if let Frame::Change { names, .. } = &self.frame {
            let before = body.len();
            for name in names {
                body.push(name.kind);
                put(&mut body, &name.one);
                put(&mut body, &name.other);
            }
            if body.len() >= BYTES_MAX as usize {
                body.truncate(before);
                body.push(0);
                put(&mut body, b"");
                put(&mut body, b"");
            }
        }
        let mut all = (body.len() as u32).to_le_bytes().to_vec();
        all.append(&mut body);
        all
    }

    /// Reads the next frame.
    ///
    /// # Errors
    /// The I/O error of the system, or the bytes are not a frame.
    pub fn read(from: &mut impl Read) -> io::Result<NumberedFrame> {
        let mut length = [0; 4];
        from.read_exact(&mut length)?;
        let length = u32::from_le_bytes(length);
        if length > BYTES_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut body = Vec::new();
        if from.take(length.into()).read_to_end(&mut body)? != length as usize {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        parse(&body).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}

fn put(body: &mut Vec<u8>, bytes: &[u8]) {
    body.extend((bytes.len() as u32).to_le_bytes());
    body.extend(bytes);
}

fn take<'a>(body: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, rest) = body.split_first_chunk::<4>()?;
    let length = u32::from_le_bytes(*length) as usize;
    let (bytes, rest) = rest.split_at_checked(length)?;
    *body = rest;
    Some(bytes)
}

fn parse(mut body: &[u8]) -> Option<NumberedFrame> {
    let (kind, rest) = body.split_first()?;
    let (number, rest) = rest.split_first_chunk::<8>()?;
    body = rest;
    let host = str::from_utf8(take(&mut body)?).ok()?.to_owned();
    let mut names = Vec::new();
    while let Some((kind, rest)) = body.split_first() {
        body = rest;
        let (one, other) = (take(&mut body)?.to_vec(), take(&mut body)?.to_vec());
        names.push(Name { kind: *kind, one, other });
    }
    let frame = match kind {
        0 => Frame::Over,
        1 => Frame::Barrier,
        2 => Frame::Change { strength: Strength::Drop, names },
        3 => Frame::Change { strength: Strength::Mark, names },
        4 => Frame::Serve,
        _ => return None,
    };
    Some(NumberedFrame { number: u64::from_le_bytes(*number), host, frame })
}

/// An answer of the new process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The number of the frame that it answers.
    pub number: u64,
    /// The result of waiting. For a change: that it has been applied.
    pub waited: Propagation,
}

impl Answer {
    /// Encodes the answer to nine bytes.
    pub fn bytes(self) -> [u8; 9] {
        let mut all = [0; 9];
        all[..8].copy_from_slice(&self.number.to_le_bytes());
        all[8] = match self.waited {
            Propagation::NotNeeded => 0,
            Propagation::Applied => 1,
            Propagation::TimedOut => 2,
        };
        all
    }

    /// Reads the next answer.
    ///
    /// # Errors
    /// The I/O error of the system.
    pub fn read(from: &mut impl Read) -> io::Result<Answer> {
        let (mut number, mut waited) = ([0; 8], [0]);
        from.read_exact(&mut number)?;
        from.read_exact(&mut waited)?;
        let waited = match waited {
            [0] => Propagation::NotNeeded,
            [1] => Propagation::Applied,
            _ => Propagation::TimedOut,
        };
        Ok(Answer { number: u64::from_le_bytes(number), waited })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_read_as_they_were_written() {
        let targets = [
            ChangeTarget::Everything,
            ChangeTarget::Tag(b"news:4"),
            ChangeTarget::Url(b"/a?b"),
            ChangeTarget::Path(b"/a"),
            ChangeTarget::Prefix(b"/news"),
            ChangeTarget::Owner(b"\0me"),
            ChangeTarget::OwnerTag { owner: b"me", tag: b"cart" },
            ChangeTarget::OwnerUrl { owner: b"me", url: b"/cart" },
        ];
        let frames = [change(Strength::Mark, &targets), Frame::Barrier, Frame::Serve, Frame::Over];
        for (number, frame) in (7..).zip(frames) {
            let told = NumberedFrame { number, host: "a.example".into(), frame };
            let bytes = told.bytes();
            assert_eq!(NumberedFrame::read(&mut &bytes[..]).expect("whole"), told);
            for cut in 0..bytes.len() {
                assert!(
                    NumberedFrame::read(&mut &bytes[..cut]).is_err(),
                    "{cut} of {}",
                    bytes.len()
                );
            }
            if let Frame::Change { names, .. } = &told.frame {
                let back: Vec<_> = names.iter().map(Name::target).collect();
                assert_eq!(format!("{back:?}"), format!("{targets:?}"));
            }
        }
    }

    #[test]
    fn a_change_that_is_too_long_is_one_of_everything() {
        let tag = vec![b'x'; BYTES_MAX as usize];
        let frame = change(Strength::Drop, &[ChangeTarget::Tag(&tag)]);
        let told = NumberedFrame { number: 1, host: String::new(), frame };
        let read = NumberedFrame::read(&mut &told.bytes()[..]).expect("it fits");
        let Frame::Change { names, .. } = read.frame else { panic!("a change") };
        assert!(matches!(names[..], [Name { kind: 0, .. }]));
        assert!(NumberedFrame::read(&mut &[0xff; 32][..]).is_err());
    }

    #[test]
    fn answers() {
        for waited in [Propagation::NotNeeded, Propagation::Applied, Propagation::TimedOut] {
            let answer = Answer { number: 1 << 40, waited };
            assert_eq!(Answer::read(&mut &answer.bytes()[..]).expect("whole"), answer);
        }
    }
}
