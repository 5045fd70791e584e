//! By what a log is known again: what stands in it before a place, and when its file was begun.
//!
//! Positions are numbers, and a log that was begun anew (`RESET MASTER`, a copy put back, a crash that has
//! lost its end) comes to the same numbers with other transactions. A [`Landmark`] is the last event that was
//! counted: its file, its offset, its first bytes (when, by whom, how long, and the number that the
//! server gave its commit). [`Proving`] looks whether it still stands there, on a stream of its own that
//! begins at it ([`Landmark::start`]).
//!
//! [`Track`] keeps it while a stream is read, and sees a file that follows another without having been
//! announced at its end: a server goes on in the next file of its list when the one that it reads was
//! deleted under it. Only after a start of the server no event announces the next file, and then that
//! file says so (`created`).

use crate::Refusal;
use crate::event::{EventBody, EventReader, HEADER_LEN, Header};
use crate::position::{FilePosition, NoPosition, Start};
use crate::reader::Reader;
use crate::transactions::StreamRefused;
use crate::wire::packet::Packet;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// How much is kept of an event: its header, and of a commit its number.
const HEAD_LEN: usize = HEADER_LEN + 8;
/// The first event of a file.
const FIRST: u64 = 4;
/// The server has made the event up; it is in no file.
const MADE_UP: u16 = 0x20;
const NAME_MAX: usize = 512;

type Head = [u8; HEAD_LEN];

/// What stands in a log before a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Landmark {
    file: Arc<str>,
    /// When the file was begun, in seconds since 1970 by the server's clock.
    begun: u32,
    /// Of the event; without one, where the log was read up to.
    offset: u64,
    event: Option<Head>,
}

impl Landmark {
    /// Where a stream is to begin that proves it.
    #[must_use]
    pub fn start(&self) -> Start {
        Start::File(self.place())
    }

    fn place(&self) -> FilePosition {
        FilePosition { file: self.file.clone(), offset: self.offset }
    }
}

/// In hexadecimal digits, without a space: the file's name may have any character.
impl fmt::Display for Landmark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = |f: &mut fmt::Formatter<'_>, bytes: &[u8]| {
            bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
        };
        digits(f, self.file.as_bytes())?;
        write!(f, ":{:x}:{:x}:", self.begun, self.offset)?;
        digits(f, self.event.as_ref().map_or(&[], |event| event))
    }
}

impl FromStr for Landmark {
    type Err = NoPosition;

    fn from_str(text: &str) -> Result<Landmark, NoPosition> {
        let mut parts = text.splitn(4, ':');
        let mut part = || parts.next().ok_or(NoPosition);
        let (file, begun, offset, event) = (part()?, part()?, part()?, part()?);
        let file = bytes(file).and_then(|file| String::from_utf8(file).ok()).ok_or(NoPosition)?;
        let begun = u32::from_str_radix(begun, 16).map_err(|_| NoPosition)?;
        let offset = u64::from_str_radix(offset, 16).map_err(|_| NoPosition)?;
        let event = match event {
            "" => None,
            event => Some(bytes(event).and_then(|event| event.try_into().ok()).ok_or(NoPosition)?),
        };
        if file.is_empty() {
            return Err(NoPosition);
        }
        Ok(Landmark { file: file.into(), begun, offset, event })
    }
}

fn bytes(digits: &str) -> Option<Vec<u8>> {
    if digits.len() > 2 * NAME_MAX || !digits.is_ascii() || !digits.len().is_multiple_of(2) {
        return None;
    }
    let pairs = (0..digits.len()).step_by(2);
    pairs.map(|at| u8::from_str_radix(&digits[at..at + 2], 16).ok()).collect()
}

/// Whose log it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// The one in which the landmark was seen.
    Same,
    /// Another, or it has lost that part.
    Another,
}

/// Looks whether a landmark still stands: reads the beginning of a stream that was asked for from
/// [`Landmark::start`].
#[derive(Debug)]
pub struct Proving {
    landmark: Landmark,
    events: EventReader,
}

impl Proving {
    /// Of this landmark.
    #[must_use]
    pub fn new(landmark: Landmark) -> Proving {
        Proving { landmark, events: EventReader::new(0) }
    }

    /// Takes the next packet; none: the next one is needed as well.
    ///
    /// # Errors
    /// The server refuses: it does not have the place any more, or the account may not.
    pub fn read(&mut self, packet: &Packet) -> Result<Option<Proof>, StreamRefused> {
        match packet.payload.first() {
            Some(0) => {}
            Some(0xff) => return Err(StreamRefused::said(packet)),
            Some(0xfe) => return Ok(Some(Proof::Another)),
            _ => return Err(Refusal::UnexpectedPacket.into()),
        }
        let event = packet.payload.slice(1..);
        if let (Some(head), Ok(header)) = (head(&event), Header::read(&mut Reader::new(&event)))
            && !is_made_up(header)
            && !matches!(header.code, 4 | 15 | 27 | 41)
        {
            let same = self.landmark.event == Some(head);
            return Ok(Some(if same { Proof::Same } else { Proof::Another }));
        }
        // What cannot be read does not stand there as it did.
        Ok(match self.events.read(&event) {
            Ok(event) => self.around(event.header, &event.body),
            Err(_) => Some(Proof::Another),
        })
    }

    /// Of what comes before the event, and of what comes in its place where nothing follows.
    fn around(&self, header: Header, body: &EventBody) -> Option<Proof> {
        match body {
            EventBody::Rotate(place) if is_made_up(header) && place.file == self.landmark.file => {
                None
            }
            EventBody::Format(_) if header.seconds != self.landmark.begun => Some(Proof::Another),
            EventBody::Format(_) if self.landmark.event.is_none() => Some(Proof::Same),
            EventBody::Rotate(_) | EventBody::Heartbeat => Some(Proof::Another),
            _ => None,
        }
    }
}

/// Whether the server has made it up.
fn is_made_up(header: Header) -> bool {
    header.end == 0 || header.flags & MADE_UP != 0
}

fn head(event: &[u8]) -> Option<Head> {
    event.first_chunk().copied()
}

/// The landmark of a stream that is being read.
#[derive(Debug, Default)]
pub(crate) struct Track {
    landmark: Option<Landmark>,
    /// When the file that is read was begun.
    begun: Option<u32>,
    /// The beginning of the event that came last.
    head: Option<Head>,
    /// The file that the end of the one before has named.
    announced: Option<Arc<str>>,
    is_unannounced: bool,
}

impl Track {
    /// Goes on from what was read before, by another stream.
    pub(crate) fn go_on(&mut self, landmark: Landmark) {
        self.landmark = Some(landmark);
    }

    pub(crate) fn landmark(&self) -> Option<&Landmark> {
        self.landmark.as_ref()
    }

    /// Whether the server has named its file, and said when it was begun.
    pub(crate) fn has_begun(&self) -> bool {
        self.begun.is_some()
    }

    /// An event has come.
    pub(crate) fn came(&mut self, event: &[u8]) {
        self.head = head(event);
    }

    /// The log goes on in another file; `own` is where it is.
    pub(crate) fn rotated(
        &mut self,
        header: Header,
        own: Option<&FilePosition>,
        next: &FilePosition,
    ) {
        if !is_made_up(header) {
            self.announced = Some(next.file.clone());
        } else if own.is_some_and(|own| own.file != next.file) {
            self.is_unannounced = self.announced.take().is_none_or(|file| file != next.file);
        }
    }

    /// A file begins: at the beginning of a stream, or after another.
    ///
    /// # Errors
    /// `Replaced`.
    pub(crate) fn begins(
        &mut self,
        header: Header,
        created_seconds: u32,
        place: Option<&FilePosition>,
    ) -> Result<(), StreamRefused> {
        if std::mem::take(&mut self.is_unannounced) && created_seconds == 0 {
            return Err(StreamRefused::Replaced);
        }
        self.begun = Some(header.seconds);
        if let (None, Some(place)) = (&self.landmark, place) {
            let (file, offset) = (place.file.clone(), FIRST);
            self.landmark = Some(Landmark { file, begun: header.seconds, offset, event: None });
        }
        Ok(())
    }

    /// A transaction has ended with the event that came last.
    pub(crate) fn ended(&mut self, header: Header, after: Option<&FilePosition>) {
        let (Some(begun), Some(after)) = (self.begun, after) else { return };
        if is_made_up(header) {
            return;
        }
        let at = after.offset.checked_sub(u64::from(header.len)).filter(|at| *at >= FIRST);
        // The command that asks for a place has room for 32 bits: of what is beyond, the file is proven.
        let (offset, event) = match (at.filter(|at| *at <= u64::from(u32::MAX)), self.head) {
            (Some(at), Some(head)) => (at, Some(head)),
            _ => (FIRST, None),
        };
        self.landmark = Some(Landmark { file: after.file.clone(), begun, offset, event });
    }

    /// The server has nothing more to say up to this place. What proves an event proves more, so long as
    /// its file is there: it is kept while the log goes on in the same.
    pub(crate) fn is_idle(&mut self, place: Option<&FilePosition>) {
        let (Some(begun), Some(place)) = (self.begun, place) else { return };
        let known = self.landmark.as_ref();
        if known.is_some_and(|known| known.event.is_some() && known.file == place.file) {
            return;
        }
        let offset = if place.offset > u64::from(u32::MAX) { FIRST } else { place.offset };
        self.landmark = Some(Landmark { file: place.file.clone(), begun, offset, event: None });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn landmarks_go_there_and_back() {
        let event = Some([0xa7; HEAD_LEN]);
        for (file, event) in [("bin.000001", event), ("a ~b:c", None)] {
            let landmark = Landmark { file: file.into(), begun: 1_700_000_000, offset: 4, event };
            let text = landmark.to_string();
            assert!(!text.contains(' '), "{text}");
            assert_eq!(text.parse(), Ok(landmark));
        }
        for wrong in ["", "62", "62:1:4", "62:1:4:00", ":1:4:", "6:1:4:", "6x:1:4:", "62:x:4:"] {
            assert_eq!(wrong.parse::<Landmark>(), Err(NoPosition), "{wrong}");
        }
    }
}
