//! MySQL's GTIDs: the server's UUID, from 8.3 on an optional tag, and a number; and sets of GTIDs.
//!
//! A set is kept as sorted ranges that do not overlap: `uuid:1-5:7,uuid:tag:1-3`. Sources: MySQL's manual,
//! "GTID Format and Storage" and "GTID Sets"; for the encoding, `Gtid_set::encode`. The number of ranges is
//! bounded; a larger set is refused.

use super::{NoPosition, PositionOrder};
use mysql_wire::Refusal;
use mysql_wire::reader::Reader;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

const RANGES_MAX: usize = 1 << 20;
const TAG_MAX: usize = 32;
/// The largest number of a GTID.
const NUMBER_MAX: u64 = i64::MAX as u64 - 1;

/// The source of a transaction: a server, and an optional tag.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceId {
    /// The UUID of the server.
    pub uuid: [u8; 16],
    /// The tag in lower case; usually empty.
    pub tag: String,
}

impl SourceId {
    fn uuid_text(&self) -> String {
        crate::value::uuid_text(&self.uuid)
    }
}

/// A GTID of MySQL.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MySqlGtid {
    /// The source of the transaction.
    pub source: SourceId,
    /// The number of the transaction at this source, from 1.
    pub number: u64,
}

impl fmt::Display for MySqlGtid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let colon = if self.source.tag.is_empty() { "" } else { ":" };
        write!(f, "{}{colon}{}:{}", self.source.uuid_text(), self.source.tag, self.number)
    }
}

/// A set of GTIDs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GtidSet {
    /// The ranges of each source, both ends inclusive.
    ranges: BTreeMap<SourceId, Vec<(u64, u64)>>,
}

impl GtidSet {
    /// Whether the set contains `gtid`.
    #[must_use]
    pub fn has(&self, gtid: &MySqlGtid) -> bool {
        let ranges = self.ranges.get(&gtid.source).map(Vec::as_slice).unwrap_or_default();
        let after = ranges.partition_point(|(from, _)| *from <= gtid.number);
        after > 0 && ranges[after - 1].1 >= gtid.number
    }

    /// Adds `gtid` to the set.
    pub fn add(&mut self, gtid: &MySqlGtid) {
        match self.ranges.get_mut(&gtid.source) {
            Some(ranges) => add_range(ranges, gtid.number, gtid.number),
            None => {
                self.ranges.insert(gtid.source.clone(), vec![(gtid.number, gtid.number)]);
            }
        }
    }

    /// The relation to `other`.
    #[must_use]
    pub fn compare(&self, other: &GtidSet) -> PositionOrder {
        PositionOrder::of(self.has_all(other), other.has_all(self))
    }

    fn has_all(&self, other: &GtidSet) -> bool {
        other.ranges.iter().all(|(source, wanted)| {
            let ranges = self.ranges.get(source).map(Vec::as_slice).unwrap_or_default();
            wanted.iter().all(|(from, to)| {
                let after = ranges.partition_point(|(start, _)| start <= from);
                after > 0 && ranges[after - 1].1 >= *to
            })
        })
    }

    fn count(&self) -> usize {
        self.ranges.values().map(Vec::len).sum()
    }

    /// The encoded set, as in the dump command (`Gtid_set::encode`). The format with tags, which servers before
    /// 8.3 do not understand, is used only if there are tags.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let tagged = self.ranges.keys().any(|source| !source.tag.is_empty());
        let count = self.ranges.len() as u64;
        let head = if tagged { 1 << 56 | count << 8 | 1 } else { count };
        let mut out = head.to_le_bytes().to_vec();
        for (source, ranges) in &self.ranges {
            out.extend_from_slice(&source.uuid);
            if tagged {
                // A variable-length integer below 128 (`Reader::varlen`).
                out.push((source.tag.len() as u8) << 1);
                out.extend_from_slice(source.tag.as_bytes());
            }
            out.extend_from_slice(&(ranges.len() as u64).to_le_bytes());
            for (from, to) in ranges {
                out.extend_from_slice(&from.to_le_bytes());
                out.extend_from_slice(&(to + 1).to_le_bytes());
            }
        }
        out
    }

    /// Decodes a set, as encoded by [`GtidSet::encode`] and in the previous-GTIDs event.
    ///
    /// # Errors
    /// `Truncated`, `LeftOver`, `BadValue`, `TooLong`.
    pub fn decode(bytes: &[u8]) -> Result<GtidSet, Refusal> {
        let mut reader = Reader::new(bytes);
        let head = reader.u64()?;
        let (tagged, sources) = match head >> 56 {
            0 => (false, head),
            1 => (true, head >> 8 & 0xffff_ffff_ffff),
            _ => return Err(Refusal::BadValue),
        };
        let mut set = GtidSet::default();
        for _ in 0..sources {
            let uuid = reader.array()?;
            let tag = if tagged { read_tag(&mut reader)? } else { String::new() };
            for _ in 0..reader.u64()? {
                let (from, after) = (reader.u64()?, reader.u64()?);
                if from == 0 || after <= from || after > NUMBER_MAX + 1 {
                    return Err(Refusal::BadValue);
                }
                let ranges = set.ranges.entry(SourceId { uuid, tag: tag.clone() }).or_default();
                add_range(ranges, from, after - 1);
                if ranges.len() > RANGES_MAX {
                    return Err(Refusal::TooLong);
                }
            }
        }
        if reader.is_empty() { Ok(set) } else { Err(Refusal::LeftOver) }
    }
}

/// Decodes a tag preceded by its length: letters, digits and `_`, at most 32.
pub(crate) fn read_tag(reader: &mut Reader<'_>) -> Result<String, Refusal> {
    let len = reader.varlen()?;
    if len > TAG_MAX as u64 {
        return Err(Refusal::BadLength);
    }
    let tag = std::str::from_utf8(reader.take_long(len)?).map_err(|_| Refusal::BadValue)?;
    if is_tag(tag) || tag.is_empty() { Ok(tag.to_owned()) } else { Err(Refusal::BadValue) }
}

fn is_tag(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
    (1..=TAG_MAX).contains(&text.len())
        && text.bytes().all(|byte| is_letter(byte) || byte.is_ascii_digit())
        && text.bytes().next().is_some_and(is_letter)
}

/// Adds a range, and joins it with adjacent and overlapping ranges.
fn add_range(ranges: &mut Vec<(u64, u64)>, mut from: u64, mut to: u64) {
    // The usual case: the next number.
    if let Some(last) = ranges.last_mut()
        && last.1.checked_add(1) == Some(from)
    {
        last.1 = to;
        return;
    }
    let first = ranges.partition_point(|(_, end)| end.saturating_add(1) < from);
    let past = ranges.partition_point(|(start, _)| *start <= to.saturating_add(1));
    if first < past {
        from = from.min(ranges[first].0);
        to = to.max(ranges[past - 1].1);
    }
    ranges.splice(first..past, [(from, to)]);
}

impl fmt::Display for GtidSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut before: Option<&SourceId> = None;
        for (source, ranges) in &self.ranges {
            if before.is_none_or(|before| before.uuid != source.uuid) {
                write!(f, "{}{}", if before.is_some() { "," } else { "" }, source.uuid_text())?;
            }
            if !source.tag.is_empty() {
                write!(f, ":{}", source.tag)?;
            }
            for (from, to) in ranges {
                if from == to { write!(f, ":{from}")? } else { write!(f, ":{from}-{to}")? }
            }
            before = Some(source);
        }
        Ok(())
    }
}

impl FromStr for GtidSet {
    type Err = NoPosition;

    fn from_str(text: &str) -> Result<GtidSet, NoPosition> {
        let mut set = GtidSet::default();
        for block in text.split(',').map(str::trim).filter(|block| !block.is_empty()) {
            let mut parts = block.split(':').map(str::trim);
            let uuid = parts.next().and_then(parse_uuid).ok_or(NoPosition)?;
            let mut source = SourceId { uuid, tag: String::new() };
            for part in parts {
                let lower = part.to_ascii_lowercase();
                if is_tag(&lower) {
                    source.tag = lower;
                    continue;
                }
                let (from, to) = part.split_once('-').unwrap_or((part, part));
                let number = |text: &str| text.trim().parse::<u64>().map_err(|_| NoPosition);
                let (from, to) = (number(from)?, number(to)?);
                if from == 0 || to < from || to > NUMBER_MAX || set.count() >= RANGES_MAX {
                    return Err(NoPosition);
                }
                add_range(set.ranges.entry(source.clone()).or_default(), from, to);
            }
        }
        Ok(set)
    }
}

fn parse_uuid(text: &str) -> Option<[u8; 16]> {
    let digits: Vec<u8> = text.bytes().filter(|byte| *byte != b'-').collect();
    if digits.len() != 32 {
        return None;
    }
    let mut uuid = [0; 16];
    for (byte, pair) in uuid.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(uuid)
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "3e11fa47-71ca-11e1-9e33-c80aa9429562";
    const B: &str = "4e11fa47-71ca-11e1-9e33-c80aa9429562";

    fn set(text: &str) -> GtidSet {
        text.parse().expect("a set")
    }

    #[test]
    fn sets_go_there_and_back() {
        for text in [
            String::new(),
            format!("{A}:1-5:7"),
            format!("{A}:1-5,{B}:9"),
            format!("{A}:1:mine:2-3:8:yours:1,{B}:_x:1"),
        ] {
            assert_eq!(set(&text).to_string(), text);
            assert_eq!(GtidSet::decode(&set(&text).encode()), Ok(set(&text)));
        }
        assert_eq!(set(&format!("{A}:4-5:1-3:2-9 , {A}:11")), set(&format!("{A}:1-9:11")));
        for bad in ["x:1", "3e11fa47:1", &format!("{A}:0"), &format!("{A}:5-4"), &format!("{A}:1-")]
        {
            assert!(bad.parse::<GtidSet>().is_err(), "{bad}");
        }
    }

    #[test]
    fn ranges_join() {
        let mut joined = set(&format!("{A}:1-3:5-6:9"));
        let gtid = |number| MySqlGtid {
            source: SourceId { uuid: parse_uuid(A).expect("a UUID"), tag: String::new() },
            number,
        };
        assert!(joined.has(&gtid(6)) && !joined.has(&gtid(4)) && !joined.has(&gtid(10)));
        joined.add(&gtid(4));
        joined.add(&gtid(10));
        joined.add(&gtid(2));
        assert_eq!(joined.to_string(), format!("{A}:1-6:9-10"));
        assert_eq!(gtid(4).to_string(), format!("{A}:4"));
    }

    #[test]
    fn sets_are_compared() {
        let small = set(&format!("{A}:1-5"));
        let large = set(&format!("{A}:1-7,{B}:1"));
        assert_eq!(large.compare(&small), PositionOrder::Ahead);
        assert_eq!(small.compare(&large), PositionOrder::Behind);
        assert_eq!(small.compare(&small), PositionOrder::Same);
        assert_eq!(set(&format!("{B}:2")).compare(&small), PositionOrder::Apart);
    }

    #[test]
    fn hostile_bytes_are_refused() {
        let mut bytes = set(&format!("{A}:1-5")).encode();
        bytes.push(0);
        assert_eq!(GtidSet::decode(&bytes), Err(Refusal::LeftOver));
        assert_eq!(GtidSet::decode(&[0xff; 8]), Err(Refusal::BadValue));
        let mut many = u64::MAX.to_le_bytes();
        many[7] = 0;
        assert_eq!(GtidSet::decode(&many), Err(Refusal::Truncated));
    }
}
