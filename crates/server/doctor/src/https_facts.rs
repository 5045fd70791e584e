//! Facts about automatic HTTPS: what a certificate authority would find, as seen from this machine.
//!
//! An authority asks the DNS for the addresses and the CAA records of a host, and requests a path at port 80 of them.
//! Not here: how the facts are collected, and what they mean (`checks::https`).

use dns_query::RecordContent;
use std::net::IpAddr;

/// The facts that decide on the certificates of an authority.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HttpsFacts {
    /// The certificate authority: its directory and its clock.
    pub authority: AuthorityFacts,
    /// The hosts that are to have a certificate.
    pub hosts: Vec<HostFacts>,
    /// Whether Pagewell answers challenges over plain HTTP, or only over TLS.
    pub has_plain: bool,
}

/// A certificate authority, by the answer of its directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuthorityFacts {
    /// The URL of the directory.
    pub directory: String,
    /// Its names in CAA records; empty if it names none.
    pub identities: Vec<String>,
    /// How far this machine's clock is ahead of its clock, in seconds.
    pub ahead_s: Option<i64>,
    /// Why it cannot be used, if so.
    pub failure: Option<String>,
}

/// A host that is to have a certificate.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostFacts {
    /// The name of the host.
    pub name: String,
    /// Its addresses, each with the answer at the port of the challenge.
    pub addresses: Vec<AddressFacts>,
    /// Why the DNS has no address, if so.
    pub dns_failure: Option<String>,
    /// The CAA records that count.
    pub caa: CaaFacts,
}

/// The CAA records that count for a host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum CaaFacts {
    /// They were not found out.
    #[default]
    Unknown,
    /// No domain has any.
    Nowhere,
    /// The servers of this domain fail, which an authority takes as a refusal.
    Failing(String),
    /// The domain that has CAA records, and these records.
    At(String, Vec<RecordContent>),
}

/// An address of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddressFacts {
    /// The address in the DNS.
    pub address: IpAddr,
    /// Whether it is one of this machine's own.
    pub is_own: bool,
    /// The program of this machine that listens at the port, if it is known.
    pub program: Option<String>,
    /// The answer at the port.
    pub answer: PortAnswer,
}

/// The answer to a challenge that nobody has begun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PortAnswer {
    /// No connection, or no answer: the reason.
    Silent(String),
    /// A redirect to this URL.
    Redirect(String),
    /// An answer that is not Pagewell's: its status, and the name of its program if it says that.
    Other(u16, Option<String>),
    /// Pagewell answers challenges there.
    Pagewell,
}
