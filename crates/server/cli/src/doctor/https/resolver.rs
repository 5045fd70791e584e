//! Questions to the servers of the DNS, over UDP, and over TCP for an answer that was cut off.
//!
//! A server that does not answer within [`ANSWER_WITHIN`] is followed by the next one. Invariants: a datagram counts
//! only if it comes from the server that was asked and answers the question (`doctor::dns`); an answer over TCP has at
//! most 64 KiB. Not here: `/etc/hosts`, which no certificate authority knows.

use super::Deadline;
use doctor::CaaFacts;
use doctor::caa::domains;
use doctor::dns::{self, DnsAnswer, RecordKind};
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

/// The timeout of one question to one server.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// Maximum number of servers that are asked.
const SERVERS_MAX: usize = 3;
/// Maximum number of domains whose CAA records are asked for.
const DOMAINS_MAX: usize = 10;
const CONFIGURATION: &str = "/etc/resolv.conf";
/// The code of an answer: the name does not exist.
const NO_SUCH_NAME: u8 = 3;

/// The servers in `/etc/resolv.conf`; the machine itself if it names none.
pub(super) fn configured() -> Vec<SocketAddr> {
    of_text(&crate::doctor::text_of(CONFIGURATION))
}

fn of_text(text: &str) -> Vec<SocketAddr> {
    let words = text.lines().filter_map(|line| line.trim().strip_prefix("nameserver"));
    let addresses = words.filter_map(|word| word.trim().parse::<IpAddr>().ok());
    let mut servers: Vec<SocketAddr> =
        addresses.take(SERVERS_MAX).map(|address| SocketAddr::new(address, 53)).collect();
    if servers.is_empty() {
        servers.push((Ipv4Addr::LOCALHOST, 53).into());
    }
    servers
}

/// The servers, with the time that is left.
pub(super) struct Resolver<'a> {
    pub(super) servers: &'a [SocketAddr],
    pub(super) deadline: Deadline,
}

impl Resolver<'_> {
    /// The addresses of a host, those of IPv6 first, as an authority prefers them.
    pub(super) fn addresses(&self, name: &str) -> Result<Vec<IpAddr>, String> {
        let (mut found, mut failed) = (Vec::new(), None);
        for kind in [RecordKind::Aaaa, RecordKind::A] {
            match self.ask(name, kind) {
                Ok(answer) if answer.code == 0 => {
                    found.extend(answer.records.iter().filter_map(|bytes| address(bytes)));
                }
                Ok(answer) => failed = Some(said(answer.code)),
                Err(why) => failed = Some(why),
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
                Ok(answer) if matches!(answer.code, 0 | NO_SUCH_NAME) => {
                    if !answer.records.is_empty() {
                        return CaaFacts::At(domain.to_owned(), answer.records);
                    }
                }
                Ok(_) => return CaaFacts::Failing(domain.to_owned()),
                // No server was reached, which says nothing about the domain.
                Err(_) => return CaaFacts::Unknown,
            }
        }
        CaaFacts::Nowhere
    }

    /// The first answer that is no failure of the server; else the last failure.
    fn ask(&self, name: &str, kind: RecordKind) -> Result<DnsAnswer, String> {
        let number = RandomState::new().build_hasher().finish() as u16;
        let question = dns::question(number, name, kind).ok_or("not a name of the DNS")?;
        let mut failed = Err("no server of the DNS answers (/etc/resolv.conf)".to_owned());
        for server in self.servers.iter().take(SERVERS_MAX) {
            let read = |bytes: &[u8]| dns::answer(bytes, number, name, kind);
            let deadline = self.deadline.part(ANSWER_WITHIN);
            let answer = match datagram(*server, &question, deadline, read) {
                Ok(answer) if answer.is_cut_off => stream(*server, &question, deadline, read),
                other => other,
            };
            match answer {
                Ok(answer) if matches!(answer.code, 0 | NO_SUCH_NAME) => return Ok(answer),
                Ok(answer) => failed = Ok(answer),
                Err(_) => {}
            }
        }
        failed
    }
}

fn said(code: u8) -> String {
    match code {
        NO_SUCH_NAME => "the name does not exist (NXDOMAIN)".into(),
        2 => "the servers of the domain fail (SERVFAIL)".into(),
        code => format!("the servers of the domain refuse (code {code})"),
    }
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    v4.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from)).ok()
}

fn datagram(
    server: SocketAddr,
    question: &[u8],
    deadline: Deadline,
    read: impl Fn(&[u8]) -> Option<DnsAnswer>,
) -> std::io::Result<DnsAnswer> {
    let any: IpAddr = if server.is_ipv4() { [0; 4].into() } else { [0; 16].into() };
    let socket = UdpSocket::bind((any, 0))?;
    // Datagrams of others are not received then.
    socket.connect(server)?;
    socket.send(question)?;
    let mut bytes = [0; 4096];
    loop {
        socket.set_read_timeout(Some(deadline.wait()?))?;
        let length = socket.recv(&mut bytes)?;
        if let Some(answer) = read(&bytes[..length]) {
            return Ok(answer);
        }
    }
}

fn stream(
    server: SocketAddr,
    question: &[u8],
    deadline: Deadline,
    read: impl Fn(&[u8]) -> Option<DnsAnswer>,
) -> std::io::Result<DnsAnswer> {
    let mut stream = TcpStream::connect_timeout(&server, deadline.wait()?)?;
    let length = u16::try_from(question.len()).map_err(|_| ErrorKind::InvalidInput)?;
    stream.set_write_timeout(Some(deadline.wait()?))?;
    stream.write_all(&[&length.to_be_bytes(), question].concat())?;
    let mut bytes = Vec::new();
    loop {
        if let Some((length, rest)) = bytes.split_first_chunk::<2>() {
            let length = usize::from(u16::from_be_bytes(*length));
            if rest.len() >= length {
                return read(&rest[..length]).ok_or(ErrorKind::InvalidData.into());
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
