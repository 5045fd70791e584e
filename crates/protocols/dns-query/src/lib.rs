//! Questions to a DNS resolver and its answers: PTR, A, AAAA and CAA, over UDP and TCP.
//!
//! | file | contents |
//! |---|---|
//! | `name` | [`DomainName`]: a domain name; the name under which an address has its PTR record |
//! | `query` | [`DnsQuery`]: encodes a question |
//! | `answer` | decodes the answer to a question, and follows its aliases |
//! | `servers` | the resolvers that `/etc/resolv.conf` names |
//!
//! Sources: RFC 1035, RFC 8659 (CAA). No EDNS: an answer of more than 512 bytes is truncated, and the caller asks
//! again over TCP. No sockets, no clock, no randomness: the caller draws the identifier and the source port. An
//! answer that belongs to another question is [`AnswerError::NotOurs`]: the caller ignores it and waits on.

#![forbid(unsafe_code)]

mod answer;
mod name;
mod query;
mod servers;

pub use answer::{AnswerError, DnsRecord, RecordContent};
pub use name::{DomainName, InvalidName};
pub use query::{DnsQuery, RecordKind};
pub use servers::{DNS_PORT, SERVERS_MAX, name_servers};
