//! Questions to the servers of the DNS, over UDP, and over TCP for a truncated answer.
//!
//! A server that does not answer in time is followed by the next one. Invariants: a datagram counts only if it comes
//! from the server that was asked and answers the question (the crate `dns-query`); an answer over TCP has at most
//! 64 KiB. Not here: `/etc/hosts`, which no certificate authority knows.

use super::Deadline;
use dns_query::{
    AnswerError, DNS_PORT, DnsQuery, DnsRecord, DomainName, RecordContent, RecordKind, SERVERS_MAX,
    name_servers,
};
use doctor::CaaFacts;
use doctor::caa::domains;
use random_number::random_number;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

/// Maximum number of domains whose CAA records are asked for.
const DOMAINS_MAX: usize = 10;
const CONFIGURATION: &str = "/etc/resolv.conf";

/// The servers in `/etc/resolv.conf`; the machine itself if it names none.
pub(super) fn configured() -> Vec<SocketAddr> {
    of_text(&crate::doctor::text_of(CONFIGURATION))
}

fn of_text(text: &str) -> Vec<SocketAddr> {
    let mut servers = name_servers(text);
    if servers.is_empty() {
        servers.push((Ipv4Addr::LOCALHOST, DNS_PORT).into());
    }
    servers
}

/// The reasons for which a question to all servers has no answer with records.
enum DnsFailure {
    /// The name does not exist.
    NoSuchName,
    /// The servers of the domain fail or refuse: the response code.
    Failed(u8),
    /// No server has answered, or none validly, which says nothing about the name: a text for the finding.
    NoAnswer(&'static str),
}

impl DnsFailure {
    fn text(&self) -> String {
        match self {
            DnsFailure::NoSuchName => "the name does not exist (NXDOMAIN)".into(),
            DnsFailure::Failed(2) => "the servers of the domain fail (SERVFAIL)".into(),
            DnsFailure::Failed(code) => format!("the servers of the domain refuse (code {code})"),
            DnsFailure::NoAnswer(why) => (*why).into(),
        }
    }
}

/// The servers, with the time that is left.
pub(super) struct Resolver<'a> {
    pub(super) servers: &'a [SocketAddr],
    /// The timeout of one question to one server.
    pub(super) question: Duration,
    pub(super) deadline: Deadline,
}

impl Resolver<'_> {
    /// The addresses of a host, those of IPv6 first, as an authority prefers them.
    pub(super) fn addresses(&self, name: &str) -> Result<Vec<IpAddr>, String> {
        let (mut found, mut failed) = (Vec::new(), None);
        for kind in [RecordKind::Aaaa, RecordKind::A] {
            match self.ask(name, kind) {
                Ok(records) => found.extend(records.iter().filter_map(address)),
                Err(why) => failed = Some(why.text()),
            }
        }
        match failed {
            _ if !found.is_empty() => Ok(found),
            Some(why) => Err(why),
            None => Err("neither an A nor an AAAA record".into()),
        }
    }

    /// The CAA records that count for a host (RFC 8659 section 3).
    pub(super) fn caa(&self, name: &str) -> CaaFacts {
        for domain in domains(name).take(DOMAINS_MAX) {
            match self.ask(domain, RecordKind::Caa) {
                Ok(records) if records.is_empty() => {}
                Ok(records) => return CaaFacts::At(domain.to_owned(), records),
                Err(DnsFailure::NoSuchName) => {}
                Err(DnsFailure::Failed(_)) => return CaaFacts::Failing(domain.to_owned()),
                Err(DnsFailure::NoAnswer(_)) => return CaaFacts::Unknown,
            }
        }
        CaaFacts::Nowhere
    }

    /// The first answer that is no failure of the server; else the last failure.
    fn ask(&self, name: &str, kind: RecordKind) -> Result<Vec<RecordContent>, DnsFailure> {
        let name = DomainName::from_text(name)
            .map_err(|_| DnsFailure::NoAnswer("not a name of the DNS"))?;
        let mut failed = DnsFailure::NoAnswer(
            "no server of the DNS answers, or its answer is invalid (/etc/resolv.conf)",
        );
        for server in self.servers.iter().take(SERVERS_MAX) {
            // An attacker who does not see the question cannot guess the identifier.
            let query = DnsQuery { id: random_number() as u16, name: name.clone(), kind };
            let deadline = self.deadline.part(self.question);
            let answer = match datagram(*server, &query, deadline) {
                Ok(Err(AnswerError::Truncated)) => stream(*server, &query, deadline),
                other => other,
            };
            match answer {
                Ok(Ok(records)) => {
                    return Ok(records.into_iter().map(|record| record.data).collect());
                }
                Ok(Err(AnswerError::NoSuchName)) => return Err(DnsFailure::NoSuchName),
                Ok(Err(AnswerError::Failed(code))) => failed = DnsFailure::Failed(code),
                Ok(Err(_)) | Err(_) => {}
            }
        }
        Err(failed)
    }
}

fn address(record: &RecordContent) -> Option<IpAddr> {
    match record {
        RecordContent::Address(address) => Some(*address),
        _ => None,
    }
}

/// An answer to the question: its records, or the reason for which it has none to use.
type Answer = Result<Vec<DnsRecord>, AnswerError>;

fn datagram(server: SocketAddr, query: &DnsQuery, deadline: Deadline) -> std::io::Result<Answer> {
    let any: IpAddr = if server.is_ipv4() { [0; 4].into() } else { [0; 16].into() };
    let socket = UdpSocket::bind((any, 0))?;
    // Datagrams of others are not received then.
    socket.connect(server)?;
    socket.send(&query.datagram())?;
    let mut bytes = [0; 4096];
    loop {
        socket.set_read_timeout(Some(deadline.wait()?))?;
        let length = socket.recv(&mut bytes)?;
        let answer = query.read(&bytes[..length]);
        if answer != Err(AnswerError::NotOurs) {
            return Ok(answer);
        }
    }
}

fn stream(server: SocketAddr, query: &DnsQuery, deadline: Deadline) -> std::io::Result<Answer> {
    let mut stream = TcpStream::connect_timeout(&server, deadline.wait()?)?;
    stream.set_write_timeout(Some(deadline.wait()?))?;
    stream.write_all(&query.framed())?;
    let mut bytes = Vec::new();
    loop {
        if let Some((length, rest)) = bytes.split_first_chunk::<2>() {
            let length = usize::from(u16::from_be_bytes(*length));
            if rest.len() >= length {
                return Ok(query.read(&rest[..length]));
            }
        }
        stream.set_read_timeout(Some(deadline.wait()?))?;
        let mut piece = [0; 4096];
        match stream.read(&mut piece)? {
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            count => bytes.extend(&piece[..count]),
        }
    }
}

#[test]
fn the_servers_of_the_machine_are_read() {
    let text =
        "# x\nnameserver 192.0.2.53\nnameserver fe80::1%eth0\n nameserver ::1\noptions edns0\n";
    let address = |text: &str| text.parse::<SocketAddr>().expect("an address");
    let servers = [address("192.0.2.53:53"), address("[::1]:53")];
    assert_eq!(of_text(text), servers);
    assert_eq!(of_text(""), [address("127.0.0.1:53")]);
}
