//! Search engines by the names of their addresses, as they recommend: the address has a name (PTR) in a domain of the
//! crawler, and the name leads back to the address (A or AAAA). Anybody can give an address of their own any name, so
//! only both together count.
//!
//! At most 16 lookups at a time, two of them for addresses of one network (/24, or /48 for IPv6), each at most five
//! seconds: a network whose zone never answers cannot prevent the lookups of others. An answer is remembered: a
//! crawler six hours, another client one hour, a failure of the resolver one minute.

use config::{Misses, VerifiedCrawler};
use dns_query::{AnswerError, DnsQuery, DnsRecord, DomainName, RecordContent, RecordKind};
use miss_control::{ClientNetwork, OutsideAnswer, OutsideAnswers};
use random_number::random_number;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use telemetry::clock::Clock;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;

const LOOKUPS_MAX: usize = 16;
/// The lookups at a time for addresses of one network.
const NETWORK_LOOKUPS_MAX: usize = 2;
/// A question is asked at least so often, if there is one server.
const TRIES: usize = 2;
/// An address of a search engine has one name. Of more, only the first are looked up.
const NAMES_MAX: usize = 4;
/// The longest answer over UDP without EDNS is 512 bytes; some servers send more.
const DATAGRAM_BYTES: usize = 4_096;

const CRAWLER_LASTS: Duration = Duration::from_secs(6 * 3_600);
const OTHER_LASTS: Duration = Duration::from_secs(3_600);
const FAILURE_LASTS: Duration = Duration::from_secs(60);

/// The timeouts of a lookup.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LookupTimes {
    /// How long a lookup may take.
    lookup: Duration,
    /// How long one server may take for one question; resolv.conf(5) has 5 s, but no lookup is worth that here.
    question: Duration,
}

impl Default for LookupTimes {
    fn default() -> LookupTimes {
        LookupTimes { lookup: Duration::from_secs(5), question: Duration::from_millis(1_200) }
    }
}

/// The crawlers that are recognised by names, the DNS servers, and the answers.
pub(crate) struct CrawlerNames {
    times: LookupTimes,
    servers: Vec<SocketAddr>,
    crawlers: Vec<VerifiedCrawler>,
    answers: OutsideAnswers<IpAddr, Option<usize>>,
}

/// No server has answered a question.
#[derive(Debug, PartialEq, Eq)]
struct NoAnswer;

impl CrawlerNames {
    /// None if no crawler is recognised by names.
    pub(crate) fn of(misses: &Misses, times: LookupTimes) -> Option<CrawlerNames> {
        let has_names = misses.crawlers.iter().any(|crawler| !crawler.hosts.is_empty());
        has_names.then(|| CrawlerNames {
            times,
            servers: misses.resolvers.clone(),
            crawlers: misses.crawlers.clone(),
            answers: OutsideAnswers::new(LOOKUPS_MAX),
        })
    }

    /// The crawler at this address, or that there is none; `None` if that is not known.
    pub(crate) fn get(&self, address: IpAddr, now: Duration) -> Option<Option<usize>> {
        self.answers.get(address.to_canonical(), now)
    }

    /// Looks the address up in the background, unless that is done already, or too many lookups are, of all or of its
    /// network.
    pub(crate) fn look_up(self: &Arc<CrawlerNames>, address: IpAddr, clock: &Clock) {
        let (address, names, clock) = (address.to_canonical(), self.clone(), clock.clone());
        let network = ClientNetwork::of(address);
        let is_near = |asked: &IpAddr| ClientNetwork::of(*asked) == network;
        let now = clock.monotonic();
        if !self.answers.begin_among(address, now, is_near, NETWORK_LOOKUPS_MAX) {
            return;
        }
        tokio::spawn(async move {
            let found = timeout(names.times.lookup, names.crawler_of(address)).await;
            let (answer, lasts) = match found {
                Ok(Ok(Some(crawler))) => (Some(crawler), CRAWLER_LASTS),
                Ok(Ok(None)) => (None, OTHER_LASTS),
                Ok(Err(NoAnswer)) | Err(_) => (None, FAILURE_LASTS),
            };
            let answer = OutsideAnswer { answer, lasts, is_genuine: answer.is_some() };
            names.answers.end(address, answer, clock.monotonic());
        });
    }

    /// The crawler whose name the address has, if the name leads back to it.
    async fn crawler_of(&self, address: IpAddr) -> Result<Option<usize>, NoAnswer> {
        let records = self.ask(DomainName::of_address(address), RecordKind::Ptr).await?;
        let names = records.into_iter().filter_map(|record| match record.data {
            RecordContent::Name(name) => Some((self.domain_of(&name)?, name)),
            _ => None,
        });
        let kind = if address.is_ipv4() { RecordKind::A } else { RecordKind::Aaaa };
        for (crawler, name) in names.take(NAMES_MAX) {
            let records = self.ask(name, kind).await?;
            if records.iter().any(|record| record.data == RecordContent::Address(address)) {
                return Ok(Some(crawler));
            }
        }
        Ok(None)
    }

    /// The crawler in whose domain the name is.
    fn domain_of(&self, name: &DomainName) -> Option<usize> {
        let name = name.text()?;
        let is_in = |domain: &String| {
            let before = name.strip_suffix(domain.as_str());
            before.is_some_and(|before| before.is_empty() || before.ends_with('.'))
        };
        self.crawlers.iter().position(|crawler| crawler.hosts.iter().any(is_in))
    }

    async fn ask(&self, name: DomainName, kind: RecordKind) -> Result<Vec<DnsRecord>, NoAnswer> {
        let servers = self.servers.iter().cycle().take(self.servers.len().max(TRIES));
        for server in servers {
            // An attacker who does not see the question cannot guess the identifier.
            let query = DnsQuery { id: random_number() as u16, name: name.clone(), kind };
            let answer = timeout(self.times.question, ask_server(*server, &query)).await;
            match answer {
                Ok(Ok(Ok(records))) => return Ok(records),
                Ok(Ok(Err(AnswerError::NoSuchName))) => return Ok(Vec::new()),
                _ => {}
            }
        }
        Err(NoAnswer)
    }
}

/// Asks over UDP, and over TCP if the answer is truncated. The socket is connected and has a port of its own, so only
/// the server's address can answer.
async fn ask_server(
    server: SocketAddr,
    query: &DnsQuery,
) -> io::Result<Result<Vec<DnsRecord>, AnswerError>> {
    let any: IpAddr =
        if server.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0)).await?;
    socket.connect(server).await?;
    socket.send(&query.datagram()).await?;
    let mut message = [0; DATAGRAM_BYTES];
    loop {
        let length = socket.recv(&mut message).await?;
        match query.read(&message[..length]) {
            Err(AnswerError::NotOurs) => {}
            Err(AnswerError::Truncated) => return over_tcp(server, query).await,
            answer => return Ok(answer),
        }
    }
}

async fn over_tcp(
    server: SocketAddr,
    query: &DnsQuery,
) -> io::Result<Result<Vec<DnsRecord>, AnswerError>> {
    let mut stream = TcpStream::connect(server).await?;
    stream.write_all(&query.framed()).await?;
    let length = stream.read_u16().await?;
    let mut message = vec![0; length.into()];
    stream.read_exact(&mut message).await?;
    Ok(query.read(&message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dns_query::DomainName;
    use miss_control::RequestRate;

    /// A resolver that knows one zone. It answers so many datagrams, or truncates each of them.
    async fn resolver(
        records: &'static [(&'static str, u16, &'static [u8])],
        truncates: bool,
    ) -> SocketAddr {
        // A port that is free for both protocols.
        let (listener, address, socket) = loop {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            if let Ok(socket) = UdpSocket::bind(address).await {
                break (listener, address, socket);
            }
        };
        tokio::spawn(async move {
            loop {
                let mut message = [0; 512];
                let (length, client) = socket.recv_from(&mut message).await.unwrap();
                // First an answer to another question, which has to be ignored.
                let mut forged = answer_to(&message[..length], &[]);
                forged[0] ^= 1;
                socket.send_to(&forged, client).await.unwrap();
                let mut answer = answer_to(&message[..length], records);
                if truncates {
                    answer[2] |= 2;
                }
                socket.send_to(&answer, client).await.unwrap();
            }
        });
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let length = stream.read_u16().await.unwrap();
                let mut message = vec![0; length.into()];
                stream.read_exact(&mut message).await.unwrap();
                let answer = answer_to(&message, records);
                stream.write_u16(answer.len() as u16).await.unwrap();
                stream.write_all(&answer).await.unwrap();
            }
        });
        address
    }

    fn answer_to(question: &[u8], records: &[(&str, u16, &[u8])]) -> Vec<u8> {
        let mut answer = question.to_vec();
        (answer[2], answer[3]) = (0x81, 0x80);
        for (name, kind, content) in records {
            let kinds = [RecordKind::Ptr, RecordKind::A, RecordKind::Aaaa];
            let kind = kinds.into_iter().find(|known| *known as u16 == *kind).unwrap();
            let name = DomainName::from_text(name).unwrap();
            let asked = DnsQuery { id: 0, name, kind };
            if asked.datagram()[2..] == question[2..] {
                answer[7] += 1;
                answer.extend([0xc0, 0x0c]);
                answer.extend((kind as u16).to_be_bytes());
                answer.extend([0, 1, 0, 0, 0, 60]);
                answer.extend((content.len() as u16).to_be_bytes());
                answer.extend(*content);
            }
        }
        if answer[7] == 0 {
            // The name does not exist.
            answer[3] |= 3;
        }
        answer
    }

    /// A resolver that fails.
    async fn failing() -> SocketAddr {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        tokio::spawn(async move {
            loop {
                let mut message = [0; 512];
                let (length, client) = socket.recv_from(&mut message).await.unwrap();
                (message[2], message[3]) = (0x81, 0x82);
                socket.send_to(&message[..length], client).await.unwrap();
            }
        });
        address
    }

    /// No test that waits for an answer reaches these.
    const LONG: LookupTimes =
        LookupTimes { lookup: Duration::from_secs(60), question: Duration::from_secs(60) };

    fn names(servers: Vec<SocketAddr>, times: LookupTimes) -> CrawlerNames {
        let crawler = VerifiedCrawler {
            name: "google".into(),
            networks: request_values::networks::Networks::default(),
            hosts: vec!["bot.test".into()],
            rate: RequestRate::read("60/m").unwrap(),
        };
        let other = VerifiedCrawler { hosts: vec!["other.test".into()], ..crawler.clone() };
        let misses =
            Misses { crawlers: vec![other, crawler], resolvers: servers, ..Misses::default() };
        CrawlerNames::of(&misses, times).unwrap()
    }

    const ZONE: &[(&str, u16, &[u8])] = &[
        ("1.2.0.192.in-addr.arpa", 12, b"\x01c\x03bot\x04test\0"),
        ("c.bot.test", 1, &[192, 0, 2, 1]),
        // Somebody names an address of theirs as one of the crawler's.
        ("9.2.0.192.in-addr.arpa", 12, b"\x01c\x03bot\x04test\0"),
        // Another domain with the same end.
        ("3.2.0.192.in-addr.arpa", 12, b"\x06notbot\x04test\0"),
        ("notbot.test", 1, &[192, 0, 2, 3]),
        ("4.2.0.192.in-addr.arpa", 12, b"\x03bot\x04test\0"),
        ("bot.test", 1, &[192, 0, 2, 4]),
    ];

    #[tokio::test]
    async fn a_crawler_is_one_by_the_name_and_the_way_back() {
        for truncates in [false, true] {
            let names = names(vec![resolver(ZONE, truncates).await], LONG);
            let found = async |last| names.crawler_of([192, 0, 2, last].into()).await;
            assert_eq!(found(1).await, Ok(Some(1)));
            assert_eq!(found(9).await, Ok(None), "the name leads elsewhere");
            assert_eq!(found(3).await, Ok(None), "a domain that only ends alike");
            assert_eq!(found(4).await, Ok(Some(1)), "the domain itself");
            assert_eq!(found(5).await, Ok(None), "no name");
        }
    }

    #[tokio::test]
    async fn the_next_server_is_asked_and_the_answer_is_there_later() {
        let servers = vec![failing().await, resolver(ZONE, false).await];
        let (names, clock) = (Arc::new(names(servers, LONG)), Clock::start());
        let address: IpAddr = "::ffff:192.0.2.1".parse().unwrap();
        names.look_up(address, &clock);
        assert_eq!(names.get(address, clock.monotonic()), None, "nobody waits");
        names.look_up(address, &clock);
        assert_eq!(names.answers.len(), (0, 1), "one lookup for an address");
        while names.answers.len().1 > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(names.get(address, clock.monotonic()), Some(Some(1)));
    }

    #[tokio::test]
    async fn one_network_has_a_part_of_the_lookups() {
        let mute = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let names = Arc::new(names(vec![mute.local_addr().unwrap()], LONG));
        let clock = Clock::start();
        let look_up = |address: &str| {
            names.look_up(address.parse().unwrap(), &clock);
            names.answers.len().1
        };
        let begun: Vec<usize> =
            ["192.0.2.1", "192.0.2.2", "192.0.2.3", "2001:db8::1", "2001:db8:0:1::1"]
                .into_iter()
                .map(look_up)
                .collect();
        assert_eq!(begun, [1, 2, 2, 3, 4]);
        assert_eq!((look_up("2001:db8:0:2::1"), look_up("2001:db8:1::1")), (4, 5));
        assert_eq!(look_up("198.51.100.1"), 6);
    }

    #[tokio::test]
    async fn a_mute_resolver_is_followed_by_the_next_and_the_last_ends_the_lookup() {
        let bind = async || UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let mute = [bind().await, bind().await];
        let servers = mute.iter().map(|one| one.local_addr().unwrap()).collect();
        let times = LookupTimes { question: Duration::from_millis(20), ..LONG };
        let found = names(servers, times).crawler_of([192, 0, 2, 1].into()).await;
        assert_eq!(found, Err(NoAnswer));
        for one in mute {
            assert!(one.recv_from(&mut [0; 512]).await.unwrap().0 > 0, "it was asked");
        }
    }

    #[tokio::test]
    async fn a_lookup_has_a_timeout_for_all_its_questions() {
        let mute = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let times = LookupTimes { lookup: Duration::ZERO, ..LONG };
        let names = Arc::new(names(vec![mute.local_addr().unwrap()], times));
        let (clock, address) = (Clock::start(), IpAddr::from([192, 0, 2, 1]));
        names.look_up(address, &clock);
        while names.answers.len().1 > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(names.get(address, clock.monotonic()), Some(None), "a failure is remembered");
    }
}
