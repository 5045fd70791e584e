//! A question to a resolver: one name and one kind of record, recursion desired (RFC 1035, section 4.1).
//!
//! The caller draws the identifier: a random one, because an answer is recognised by it.

use crate::DomainName;

/// The kinds of records that can be asked for, with their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum RecordKind {
    /// An address of IPv4 (RFC 1035, section 3.4.1).
    A = 1,
    /// The name of an address (RFC 1035, section 3.3.12).
    Ptr = 12,
    /// An address of IPv6 (RFC 3596, section 2.1).
    Aaaa = 28,
    /// The certificate authorities that may issue for a name (RFC 8659, section 4).
    Caa = 257,
}

/// A question, which also recognises its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DnsQuery {
    /// A random number: an answer has to repeat it.
    pub id: u16,
    /// The name that is asked for.
    pub name: DomainName,
    /// The kind of record that is asked for.
    pub kind: RecordKind,
}

impl DnsQuery {
    /// The message to send over UDP.
    pub fn datagram(&self) -> Vec<u8> {
        let name = self.name.wire();
        let mut message = Vec::with_capacity(16 + name.len());
        message.extend(self.id.to_be_bytes());
        // A standard query, recursion desired; one question; no answer, authority or additional record
        message.extend([1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
        message.extend(name);
        message.extend((self.kind as u16).to_be_bytes());
        message.extend([0, 1]);
        message
    }

    /// The message to send over TCP: its length comes first, as in the answer (RFC 1035, section 4.2.2).
    pub fn framed(&self) -> Vec<u8> {
        let message = self.datagram();
        let length = u16::try_from(message.len()).expect("a name of 255 bytes and 16 more");
        [&length.to_be_bytes()[..], &message].concat()
    }
}
