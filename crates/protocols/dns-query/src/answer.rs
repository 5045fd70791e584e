//! The answer to a question: its identifier, question and code are checked, and aliases are followed.
//!
//! | answer | result |
//! |---|---|
//! | another identifier or question, or no response | [`AnswerError::NotOurs`] |
//! | truncated | [`AnswerError::Truncated`]: the same question over TCP |
//! | the name does not exist | [`AnswerError::NoSuchName`] |
//! | the name has no record of this kind | no records |
//! | any other code than 0 (success) and 3 (no such name) | [`AnswerError::Failed`] |
//!
//! Only the section of answers is read; records of other names and kinds are left out.

use crate::{DnsQuery, DomainName, RecordKind};
use std::net::IpAddr;

/// The number of a CNAME record: the name is an alias of another one.
const CNAME: u16 = 5;
const CLASS_INTERNET: u16 = 1;
const NO_SUCH_NAME: u8 = 3;
/// Maximum number of aliases from the name to its records. A resolver follows aliases itself, and sends no
/// longer chain.
const ALIASES_MAX: usize = 16;
/// More records than any name has that somebody uses; the rest of an answer is not read.
const RECORDS_MAX: usize = 256;

/// A record of the name that was asked for, or of the end of its aliases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DnsRecord {
    /// How long the record may be used, in seconds (RFC 1035, section 3.2.1).
    pub ttl: u32,
    /// The content of the record.
    pub data: RecordContent,
}

/// The content of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordContent {
    /// An address: A (RFC 1035, section 3.4.1) or AAAA (RFC 3596, section 2.2).
    Address(IpAddr),
    /// PTR: the name of an address (RFC 1035, section 3.3.12).
    Name(DomainName),
    /// CAA (RFC 8659, section 4.1).
    Authority {
        /// A certificate authority that does not know the tag must not issue.
        is_critical: bool,
        /// The property in lower case: `issue`, `issuewild`, `iodef` or another one.
        tag: String,
        /// The value of the property; bytes that are no UTF-8 are replaced.
        value: String,
    },
    /// A CAA record that breaks the grammar of RFC 8659: the caller has to assume that it forbids a certificate.
    /// The other records of the answer are returned, too.
    InvalidAuthority,
}

/// The reasons for which an answer has no records to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerError {
    /// The message belongs to another question: the caller ignores it and waits on.
    NotOurs,
    /// The answer did not fit (TC; RFC 1035, section 4.1.1): the caller repeats the question over TCP.
    Truncated,
    /// The message violates RFC 1035.
    Malformed,
    /// The name does not exist, so it has records of no kind (the code 3, NXDOMAIN).
    NoSuchName,
    /// The resolver could not answer: its code (RCODE; RFC 1035, section 4.1.1: 2 for a failure, 5 for a refusal).
    Failed(u8),
}

impl DnsQuery {
    /// Decodes a message that may be the answer to this question. Returns its records of the kind that was asked for: none
    /// if the name has none. At most 256 records of a message are read.
    ///
    /// # Errors
    /// The message is no answer to this question, or has no records to use: see [`AnswerError`].
    pub fn read(&self, message: &[u8]) -> Result<Vec<DnsRecord>, AnswerError> {
        let (code, is_truncated, mut at) = self.header(message)?;
        if is_truncated {
            return Err(AnswerError::Truncated);
        }
        match code {
            0 => {}
            NO_SUCH_NAME => return Err(AnswerError::NoSuchName),
            code => return Err(AnswerError::Failed(code)),
        }
        let count = usize::from(number(message, 6).ok_or(AnswerError::Malformed)?);
        let mut found = Vec::new();
        for _ in 0..count.min(RECORDS_MAX) {
            let (record, after) = RawRecord::read(message, at).ok_or(AnswerError::Malformed)?;
            at = after;
            if record.class == CLASS_INTERNET {
                found.push(record);
            }
        }
        let owner = self.canonical_name(message, &found)?;
        let ours = found.iter().filter(|record| record.kind == self.kind as u16);
        let ours = ours.filter(|record| record.owner == owner);
        let read = |record: &RawRecord| {
            let data = record.data(message, self.kind).ok_or(AnswerError::Malformed)?;
            Ok(DnsRecord { ttl: record.ttl, data })
        };
        ours.map(read).collect()
    }

    /// The code of the answer, whether it is truncated, and the place after its question.
    fn header(&self, message: &[u8]) -> Result<(u8, bool, usize), AnswerError> {
        let [id @ .., high, low] = message.first_chunk::<4>().ok_or(AnswerError::NotOurs)?;
        let is_response = high & 0x80 != 0 && high & 0x78 == 0;
        if id[..] != self.id.to_be_bytes() || !is_response {
            return Err(AnswerError::NotOurs);
        }
        let (code, is_truncated) = (low & 0xf, high & 0x02 != 0);
        // Some resolvers leave the question out of a refusal. Only the identifier recognises that, and it
        // gives nothing that a forged answer could use.
        if number(message, 4) == Some(0) && !matches!(code, 0 | NO_SUCH_NAME) {
            return Ok((code, false, 12));
        }
        let (name, after) = DomainName::read(message, 12).ok_or(AnswerError::NotOurs)?;
        let kind = number(message, after) == Some(self.kind as u16);
        let class = number(message, after + 2) == Some(CLASS_INTERNET);
        if number(message, 4) != Some(1) || name != self.name || !kind || !class {
            return Err(AnswerError::NotOurs);
        }
        Ok((code, is_truncated, after + 4))
    }

    /// The name at the end of the aliases.
    fn canonical_name(
        &self,
        message: &[u8],
        found: &[RawRecord],
    ) -> Result<DomainName, AnswerError> {
        let mut owner = self.name.clone();
        for _ in 0..=ALIASES_MAX {
            let is_alias = |record: &&RawRecord| record.kind == CNAME && record.owner == owner;
            let Some(alias) = found.iter().find(is_alias) else { return Ok(owner) };
            owner = alias.name(message).ok_or(AnswerError::Malformed)?;
        }
        Err(AnswerError::Malformed)
    }
}

/// A record whose content is not decoded yet: its place in the message.
struct RawRecord {
    owner: DomainName,
    kind: u16,
    class: u16,
    ttl: u32,
    begin: usize,
    end: usize,
}

impl RawRecord {
    fn read(message: &[u8], at: usize) -> Option<(Self, usize)> {
        let (owner, at) = DomainName::read(message, at)?;
        let (kind, class) = (number(message, at)?, number(message, at + 2)?);
        let ttl = u32::from(number(message, at + 4)?) << 16 | u32::from(number(message, at + 6)?);
        let (begin, length) = (at + 10, usize::from(number(message, at + 8)?));
        let end = begin + length;
        // RFC 2181, section 8: a time with the highest bit set is none
        let ttl = if ttl > u32::MAX >> 1 { 0 } else { ttl };
        (end <= message.len()).then_some((Self { owner, kind, class, ttl, begin, end }, end))
    }

    fn data(&self, message: &[u8], kind: RecordKind) -> Option<RecordContent> {
        let content = message.get(self.begin..self.end)?;
        Some(match kind {
            RecordKind::A => RecordContent::Address(<[u8; 4]>::try_from(content).ok()?.into()),
            RecordKind::Aaaa => RecordContent::Address(<[u8; 16]>::try_from(content).ok()?.into()),
            RecordKind::Ptr => RecordContent::Name(self.name(message)?),
            RecordKind::Caa => authority(content).unwrap_or(RecordContent::InvalidAuthority),
        })
    }

    /// The name that is the whole content.
    fn name(&self, message: &[u8]) -> Option<DomainName> {
        let (name, after) = DomainName::read(message, self.begin)?;
        (after == self.end).then_some(name)
    }
}

fn authority(content: &[u8]) -> Option<RecordContent> {
    let ([flags, length], rest) = content.split_first_chunk::<2>()?;
    let (tag, value) = rest.split_at_checked(usize::from(*length))?;
    if tag.is_empty() || !tag.iter().all(u8::is_ascii_alphanumeric) {
        return None;
    }
    Some(RecordContent::Authority {
        is_critical: flags & 0x80 != 0,
        tag: String::from_utf8_lossy(tag).to_ascii_lowercase(),
        value: String::from_utf8_lossy(value).into_owned(),
    })
}

fn number(message: &[u8], at: usize) -> Option<u16> {
    let bytes = message.get(at..at.checked_add(2)?)?;
    Some(u16::from_be_bytes([bytes[0], bytes[1]]))
}
