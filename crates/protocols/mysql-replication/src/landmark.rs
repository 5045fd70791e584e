//! Detects whether a log is the one that was read before, by an event before the position and the creation time
//! of its file.
//!
//! A log that was replaced (`RESET MASTER`, a restored backup, a crash that lost the end) reaches the same
//! positions with other transactions. A [`Landmark`] is the last event read: its file, its offset and its first
//! bytes (time, server id, length, and the number of a commit). [`LandmarkCheck`] checks that this event is still
//! there, on a separate stream that starts at it ([`Landmark::start`]).
//!
//! [`Track`] updates the landmark while a stream is read. It also detects a skipped file: if the file being
//! read is deleted, the server continues with the next one, which was not announced. After a server start the
//! next file is not announced either, but then a stop event ends the file before, or the new one has a creation
//! time (`created`). MySQL may remove that time (`Binlog_sender`): the GTIDs before the file must be those read.

use crate::event::{EventBody, EventReader, HEADER_LEN, Header};
use crate::position::{FilePosition, GtidSet, Gtids, NoPosition, Position, Start};
use crate::transactions::StreamRefused;
use mysql_wire::Refusal;
use mysql_wire::packet::Packet;
use mysql_wire::reader::Reader;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// The number of bytes kept of an event: its header, and the number of a commit.
const HEAD_LEN: usize = HEADER_LEN + 8;
/// The offset of the first event of a file.
const FIRST: u64 = 4;
/// The flag for an artificial event, which is in no file.
const MADE_UP: u16 = 0x20;
const NAME_MAX: usize = 512;

type Head = [u8; HEAD_LEN];

/// An event by which a log is recognised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Landmark {
    file: Arc<str>,
    /// The time at which the file was created, in seconds since 1970 by the server's clock.
    begun: u32,
    /// The offset of the event; without an event, the offset up to which the log was read.
    offset: u64,
    event: Option<Head>,
}

impl Landmark {
    /// The position at which a stream for the check must start.
    #[must_use]
    pub fn start(&self) -> Start {
        Start::File(self.place())
    }

    fn place(&self) -> FilePosition {
        FilePosition { file: self.file.clone(), offset: self.offset }
    }
}

/// Written as hexadecimal digits without spaces, because the file name may contain any character.
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

/// The result of the check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// The log is the one that the landmark is from.
    Same,
    /// The log is another one, or this part of the log is lost.
    Another,
}

/// Checks a landmark. It reads the beginning of a stream that was started at [`Landmark::start`].
#[derive(Debug)]
pub struct LandmarkCheck {
    landmark: Landmark,
    events: EventReader,
}

impl LandmarkCheck {
    /// A check of this landmark.
    #[must_use]
    pub fn new(landmark: Landmark) -> LandmarkCheck {
        LandmarkCheck { landmark, events: EventReader::new(0) }
    }

    /// Processes the next packet. Returns `None` if another packet is needed.
    ///
    /// # Errors
    /// The server refuses: the position does not exist any more, or the account lacks a privilege.
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
        // An event that cannot be decoded is not the landmark.
        Ok(match self.events.read(&event) {
            Ok(event) => self.around(event.header, &event.body),
            Err(_) => Some(Proof::Another),
        })
    }

    /// Judges an event that is sent before the landmark, or in its place if nothing follows.
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

/// Whether the server generated the event only for this stream.
fn is_made_up(header: Header) -> bool {
    header.end == 0 || header.flags & MADE_UP != 0
}

fn head(event: &[u8]) -> Option<Head> {
    event.first_chunk().copied()
}

/// Updates the landmark while a stream is read.
#[derive(Debug, Default)]
pub(crate) struct Track {
    landmark: Option<Landmark>,
    /// The creation time of the current file.
    begun: Option<u32>,
    /// The first bytes of the last event.
    head: Option<Head>,
    /// The next file, as announced at the end of the previous one.
    announced: Option<Arc<str>>,
    is_unannounced: bool,
    /// Whether a stop event was read at the end of the file.
    is_stopped: bool,
    /// Whether the GTIDs before the current file must be those that were read.
    needs_gtids: bool,
}

impl Track {
    /// Continues from the landmark of an earlier stream.
    pub(crate) fn go_on(&mut self, landmark: Landmark) {
        self.landmark = Some(landmark);
    }

    pub(crate) fn landmark(&self) -> Option<&Landmark> {
        self.landmark.as_ref()
    }

    /// Whether the server has sent the name and the creation time of its file.
    pub(crate) fn has_begun(&self) -> bool {
        self.begun.is_some()
    }

    /// Records the first bytes of an event.
    pub(crate) fn came(&mut self, event: &[u8]) {
        self.head = head(event);
    }

    /// The log continues in another file; `own` is the current position.
    pub(crate) fn rotated(
        &mut self,
        header: Header,
        own: Option<&FilePosition>,
        next: &FilePosition,
    ) {
        if !is_made_up(header) {
            self.announced = Some(next.file.clone());
        } else if own.is_some_and(|own| own.file != next.file) {
            let is_announced = self.announced.take().is_some_and(|file| file == next.file);
            self.is_unannounced = !std::mem::take(&mut self.is_stopped) && !is_announced;
        }
    }

    /// The server has stopped: the file ends, and the next one is the one that it begins when it starts.
    pub(crate) fn stopped(&mut self) {
        self.is_stopped = true;
    }

    /// A file begins: at the start of a stream, or after another file.
    ///
    /// # Errors
    /// `Replaced`.
    pub(crate) fn begins(
        &mut self,
        header: Header,
        created_seconds: u32,
        own: &Position,
    ) -> Result<(), StreamRefused> {
        self.needs_gtids = false;
        if std::mem::take(&mut self.is_unannounced) && created_seconds == 0 {
            match own.gtids {
                Gtids::MySql(_) => self.needs_gtids = true,
                Gtids::MariaDb(_) | Gtids::None => return Err(StreamRefused::Replaced),
            }
        }
        let place = own.file.as_ref();
        self.begun = Some(header.seconds);
        if let (None, Some(place)) = (&self.landmark, place) {
            let (file, offset) = (place.file.clone(), FIRST);
            self.landmark = Some(Landmark { file, begun: header.seconds, offset, event: None });
        }
        Ok(())
    }

    /// The GTIDs before the file that has begun.
    ///
    /// # Errors
    /// `Replaced`.
    pub(crate) fn preceded(&mut self, by: &GtidSet, own: &Position) -> Result<(), StreamRefused> {
        let is_read = matches!(&own.gtids, Gtids::MySql(own) if own == by);
        if std::mem::take(&mut self.needs_gtids) && !is_read {
            return Err(StreamRefused::Replaced);
        }
        Ok(())
    }

    /// The last event ended a transaction.
    pub(crate) fn ended(&mut self, header: Header, after: Option<&FilePosition>) {
        let (Some(begun), Some(after)) = (self.begun, after) else { return };
        if is_made_up(header) {
            return;
        }
        let at = after.offset.checked_sub(u64::from(header.len)).filter(|at| *at >= FIRST);
        // The dump command has 32 bits for the offset. For larger offsets only the file is checked.
        let (offset, event) = match (at.filter(|at| *at <= u64::from(u32::MAX)), self.head) {
            (Some(at), Some(head)) => (at, Some(head)),
            _ => (FIRST, None),
        };
        self.landmark = Some(Landmark { file: after.file.clone(), begun, offset, event });
    }

    /// There are no events up to this position. A landmark with an event is stronger, so it is kept while the
    /// log continues in the same file.
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
