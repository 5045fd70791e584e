//! Each obstacle with real servers on the loopback interface: a server of the DNS, an authority with TLS, and programs at
//! the port of challenges. The answers of hostile servers are bounded in time and size.

use super::{ProbeSettings, ProbeTimes, directory, is_own, probed, resolver};
use doctor::{CaaFacts, Facts, Finding, HttpsFacts, PortAnswer, examine};
use harness::{Address, Client, PebbleVersion, PrivateDir, StartReason};
use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

const HOST: &str = "www.example.org";
const V4: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const V6: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);
const PAGEWELL: &str = "HTTP/1.1 404 x\r\nCache-Status: Pagewell; detail=acme-challenge\r\n\r\n";
const NGINX: &str = "HTTP/1.1 404 x\r\nServer: nginx\r\n\r\n";

/// No test that waits for an answer reaches these.
const LONG: ProbeTimes = ProbeTimes {
    all: Duration::from_secs(120),
    probe: Duration::from_secs(60),
    question: Duration::from_secs(60),
};

/// The kinds of records, by their numbers.
const A: u16 = 1;
const AAAA: u16 = 28;
const CAA: u16 = 257;

type Zone = HashMap<(&'static str, u16), Vec<Vec<u8>>>;

/// How a server of the DNS answers.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    /// As it should.
    Right,
    /// Cut off over UDP.
    CutOff,
    /// First with another number and with garbage, then as it should.
    Noisy,
    /// Not at all.
    Silent,
    /// That it has failed.
    Failing,
    /// That the name does not exist.
    NoName,
}

/// A server of the DNS, for as long as the test runs.
fn name_server(zone: Zone, way: Way) -> SocketAddr {
    let (udp, tcp) = loop {
        let tcp = TcpListener::bind((V4, 0)).unwrap();
        if let Ok(udp) = UdpSocket::bind(tcp.local_addr().unwrap()) {
            break (udp, tcp);
        }
    };
    let (at, same) = (udp.local_addr().unwrap(), zone.clone());
    thread::spawn(move || {
        let mut bytes = [0; 2048];
        while let Ok((length, client)) = udp.recv_from(&mut bytes) {
            let question = &bytes[..length];
            let mut right = reply(&zone, question, way);
            if way == Way::Silent {
                continue;
            }
            if way == Way::Noisy {
                let mut other = right.clone();
                other[0] ^= 1;
                for noise in [&other[..], b"noise", &[0xc0; 600]] {
                    let _ = udp.send_to(noise, client);
                }
            }
            if way == Way::CutOff {
                right[2] |= 2;
                right.truncate(question.len());
            }
            let _ = udp.send_to(&right, client);
        }
    });
    thread::spawn(move || {
        for mut stream in tcp.incoming().flatten() {
            let mut length = [0; 2];
            stream.read_exact(&mut length).unwrap();
            let mut question = vec![0; usize::from(u16::from_be_bytes(length))];
            stream.read_exact(&mut question).unwrap();
            let right = reply(&same, &question, Way::Right);
            let length = u16::try_from(right.len()).unwrap().to_be_bytes();
            // In two pieces.
            stream.write_all(&length).unwrap();
            stream.write_all(&right).unwrap();
        }
    });
    at
}

/// The answer to a question.
fn reply(zone: &Zone, question: &[u8], way: Way) -> Vec<u8> {
    let (name, kind) = question[12..].split_at(question.len() - 16);
    let kind = u16::from_be_bytes([kind[0], kind[1]]);
    let mut labels = Vec::new();
    let mut rest = name;
    while let [length, after @ ..] = rest
        && *length > 0
    {
        let (label, after) = after.split_at(usize::from(*length));
        labels.push(std::str::from_utf8(label).unwrap());
        rest = after;
    }
    let name = labels.join(".");
    let of_name = zone.iter().find(|((of, is), _)| *of == name && *is == kind);
    let records = of_name.map(|(_, records)| records.clone()).unwrap_or_default();
    let mut bytes = question.to_vec();
    bytes[2] = 0x81;
    bytes[3] = match way {
        Way::Failing => 0x82,
        Way::NoName => 0x83,
        _ => 0x80,
    };
    bytes[7] = u8::try_from(records.len()).unwrap();
    for record in records {
        bytes.extend([0xc0, 12]);
        for word in [kind, 1, 0, 60, u16::try_from(record.len()).unwrap()] {
            bytes.extend(word.to_be_bytes());
        }
        bytes.extend(record);
    }
    bytes
}

fn zone(records: &[(&'static str, u16, &[u8])]) -> Zone {
    let mut zone = Zone::new();
    for (name, kind, record) in records {
        zone.entry((*name, *kind)).or_default().push(record.to_vec());
    }
    zone
}

fn leads_here() -> Zone {
    zone(&[(HOST, A, &[127, 0, 0, 1])])
}

/// A program that answers every request at an address, for as long as the test runs. Port 0 is a free one.
fn program(at: IpAddr, port: u16, text: &'static str) -> Option<u16> {
    let listener = TcpListener::bind((at, port)).ok()?;
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 2048]);
            let _ = stream.write_all(text.as_bytes());
        }
    });
    Some(port)
}

/// An authority with this content of its directory, and the file of its root.
fn authority(date: &'static str, content: String, place: &PrivateDir) -> (String, PathBuf) {
    let key = KeyPair::generate().unwrap();
    let made = CertificateParams::new(vec!["localhost".to_owned()]).unwrap().self_signed(&key);
    let made = made.unwrap();
    let root = place.path().join("root.pem");
    std::fs::write(&root, made.pem()).unwrap();
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.der().clone()], key)
        .unwrap();
    let (config, listener) = (Arc::new(config), TcpListener::bind((V4, 0)).unwrap());
    let url = format!("https://localhost:{}/directory", listener.local_addr().unwrap().port());
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut stream =
                StreamOwned::new(ServerConnection::new(config.clone()).unwrap(), stream);
            if !matches!(stream.read(&mut [0; 2048]), Ok(1..)) {
                continue;
            }
            let head = format!("HTTP/1.0 200 OK\r\nDate: {date}\r\n\r\n");
            let _ = stream.write_all(format!("{head}{content}").as_bytes());
            stream.conn.send_close_notify();
            let _ = stream.flush();
        }
    });
    (url, root)
}

fn settings(resolver: SocketAddr, port: u16) -> ProbeSettings {
    ProbeSettings {
        resolvers: vec![resolver],
        port,
        has_plain: true,
        authorities: None,
        clock_s: 0,
        is_own,
        times: LONG,
    }
}

/// The facts of the host; the authority cannot be reached.
fn seen(settings: ProbeSettings) -> HttpsFacts {
    let closed = harness::free_port().unwrap();
    probed(format!("https://{V4}:{closed}/"), [HOST.to_owned()].into(), settings)
}

/// The findings about hosts.
fn findings(settings: ProbeSettings) -> Vec<Finding> {
    let mut found = examine(&Facts { https: Some(seen(settings)), ..Facts::default() });
    found.retain(|finding| finding.name != "certificate-authority");
    found
}

fn names(settings: ProbeSettings) -> Vec<&'static str> {
    findings(settings).iter().map(|finding| finding.name).collect()
}

#[test]
fn a_port_that_pagewell_answers_is_right() {
    let port = program(V4, 0, PAGEWELL).unwrap();
    assert!(names(settings(name_server(leads_here(), Way::Right), port)).is_empty());
}

#[test]
fn a_closed_port_is_seen() {
    let port = harness::free_port().unwrap();
    let found = findings(settings(name_server(leads_here(), Way::Right), port));
    assert_eq!(found[0].name, "certificate-port-80");
    assert!(found[0].evidence.contains("refused"), "{}", found[0].evidence);
    assert!(found[0].what.starts_with("www.example.org: the port is closed"));
}

#[test]
fn another_program_at_the_port_is_named() {
    let port = program(V4, 0, NGINX).unwrap();
    let found = findings(settings(name_server(leads_here(), Way::Right), port));
    assert_eq!(found[0].name, "certificate-other-program");
    assert!(found[0].evidence.contains("answered 404, as nginx. The program is "));
}

#[test]
fn an_address_of_another_machine_is_seen() {
    let port = program(V4, 0, NGINX).unwrap();
    let resolver = name_server(leads_here(), Way::Right);
    let settings = ProbeSettings { is_own: |_| false, ..settings(resolver, port) };
    assert_eq!(names(settings), ["certificate-other-server"]);
}

#[test]
fn a_redirect_of_the_challenge_is_seen() {
    let text =
        "HTTP/1.1 301 x\r\nLocation: https://www.example.org/.well-known/acme-challenge/x\r\n\r\n";
    let port = program(V4, 0, text).unwrap();
    let found = findings(settings(name_server(leads_here(), Way::Right), port));
    assert_eq!(found[0].name, "certificate-redirected");
    assert!(found[0].evidence.contains("to https://www.example.org/.well-known"));
}

#[test]
fn an_aaaa_record_that_leads_elsewhere_is_seen() {
    let port = loop {
        let port = program(V4, 0, PAGEWELL).unwrap();
        match program(V6, port, NGINX) {
            Some(port) => break port,
            None if TcpListener::bind((V6, 0)).is_err() => return harness::skip("no IPv6"),
            None => {}
        }
    };
    let here: &[u8] = &Ipv6Addr::LOCALHOST.octets();
    let zone = zone(&[(HOST, A, &[127, 0, 0, 1]), (HOST, AAAA, here)]);
    let settings = settings(name_server(zone, Way::Right), port);
    assert_eq!(
        names(ProbeSettings { is_own: |address| address.is_ipv4(), ..settings }),
        ["certificate-ipv6"]
    );
}

#[test]
fn a_host_without_address_is_seen() {
    let found = findings(settings(name_server(Zone::new(), Way::Right), 80));
    assert_eq!(found[0].name, "certificate-dns");
    let found = findings(settings(name_server(Zone::new(), Way::Failing), 80));
    let names: Vec<_> = found.iter().map(|finding| finding.name).collect();
    assert_eq!(names, ["certificate-dns", "certificate-caa"], "servers that fail forbid");
    let found = findings(settings(name_server(Zone::new(), Way::NoName), 80));
    assert_eq!((found.len(), found[0].name), (1, "certificate-dns"));
    assert!(found[0].evidence.contains("NXDOMAIN"), "{}", found[0].evidence);
}

#[test]
fn the_nearest_caa_records_count_and_those_of_others_do_not() {
    let other: &[u8] = b"\x00\x05issueother.test";
    let right: &[u8] = b"\x00\x05issueca.test";
    let place = PrivateDir::temporary("directory").unwrap();
    let content = r#"{"newOrder": "https://x/", "meta": {"caaIdentities": ["ca.test"]}}"#;
    let (url, root) = authority("Mon, 01 Jan 2001 00:00:00 GMT", content.into(), &place);
    let port = program(V4, 0, PAGEWELL).unwrap();
    let of = |records: &[(&'static str, u16, &[u8])], way| {
        let mut all = leads_here();
        all.extend(zone(records));
        let settings = ProbeSettings {
            authorities: Some(root.clone()),
            ..settings(name_server(all, way), port)
        };
        let facts = probed(url.clone(), [HOST.to_owned()].into(), settings);
        let found = examine(&Facts { https: Some(facts), ..Facts::default() });
        let caa = found.into_iter().find(|finding| finding.name == "certificate-caa");
        caa.map(|finding| finding.evidence)
    };
    for way in [Way::Right, Way::CutOff, Way::Noisy] {
        let why = of(&[("example.org", CAA, other)], way).unwrap();
        assert_eq!(why, "CAA records of example.org: they allow other.test, and not ca.test.");
        let nearest = [(HOST, CAA, right), ("example.org", CAA, other)];
        assert_eq!(of(&nearest, way), None);
        assert_eq!(of(&[("org", CAA, other), ("org", CAA, right)], way), None);
    }
    let unreadable: &[u8] = b"\x00\x09issue";
    let why = of(&[(HOST, CAA, right), (HOST, CAA, unreadable)], Way::Right).unwrap();
    assert_eq!(why, "CAA records of www.example.org: one of them cannot be read.");
}

#[test]
fn a_real_server_of_the_dns_is_understood() {
    let place = PrivateDir::temporary("names").unwrap();
    let [dns, management] = [(); 2].map(|()| harness::free_port().unwrap());
    let (ports, log) = ((dns, management), place.path().join("log"));
    let mut process = match harness::name_server(ports, &log, PebbleVersion::Installed) {
        Ok(process) => process,
        Err(error) if error.reason == StartReason::NotInstalled => {
            return harness::skip(&format!("{error}: scripts/setup test"));
        }
        Err(error) => panic!("{error}"),
    };
    let mut client = Client::new(Address::Tcp((V4, management).into()));
    let caa = r#"{"host": "example.org.", "policies": [{"tag": "issue", "value": "other.test"}]}"#;
    assert_eq!(client.post("/add-caa", caa).unwrap().status, 200);
    let a = r#"{"host": "www.example.org.", "addresses": ["127.0.0.1", "127.0.0.2"]}"#;
    assert_eq!(client.post("/add-a", a).unwrap().status, 200);
    let port = program(V4, 0, PAGEWELL).unwrap();
    let facts = seen(settings((V4, dns).into(), port));
    let host = &facts.hosts[0];
    let addresses: Vec<String> = host.addresses.iter().map(|one| one.address.to_string()).collect();
    assert_eq!(addresses, ["127.0.0.1", "127.0.0.2"]);
    let CaaFacts::At(domain, records) = &host.caa else { panic!("{:?}", host.caa) };
    assert_eq!((domain.as_str(), records.len()), ("example.org", 1));
    process.stop();
}

#[test]
fn a_wrong_clock_is_seen_by_the_date_of_the_authority() {
    let place = PrivateDir::temporary("directory").unwrap();
    let content = r#"{"newOrder": "https://x/", "meta": {"caaIdentities": ["ca.test", 7]}}"#;
    let (url, root) = authority("Mon, 01 Jan 2001 00:00:00 GMT", content.into(), &place);
    let settings = settings((V4, 1).into(), 80);
    let soon = || super::Deadline::after(Duration::from_secs(60));
    let trusted = ProbeSettings { authorities: Some(root), ..settings.clone() };
    let facts = directory::look(&url, &trusted, soon());
    assert_eq!(
        (facts.failure.as_deref(), &facts.identities[..]),
        (None, &["ca.test".to_owned()][..])
    );
    let ahead_s = facts.ahead_s.unwrap();
    assert!(ahead_s > 25 * 365 * 86_400, "{ahead_s}");
    // A clock that is right, and one that is an hour behind, whatever the certificate says.
    for (by_s, right) in [(-ahead_s, 0), (-ahead_s - 3600, -3600)] {
        let settings = ProbeSettings { clock_s: by_s, ..settings.clone() };
        let facts = directory::look(&url, &settings, soon());
        assert!((facts.ahead_s.unwrap() - right).abs() <= 30, "{facts:?}");
        assert!(facts.failure.is_some(), "its certificate is not trusted");
    }
}

#[test]
fn a_directory_without_end_or_sense_is_a_failure() {
    let place = PrivateDir::temporary("directory").unwrap();
    for content in ["<html>".to_owned(), " ".repeat(1 << 20), "[".repeat(60_000)] {
        let (url, root) = authority("x", content, &place);
        let settings = ProbeSettings { authorities: Some(root), ..settings((V4, 1).into(), 80) };
        let soon = super::Deadline::after(Duration::from_secs(60));
        let facts = directory::look(&url, &settings, soon);
        assert_eq!(facts.failure.unwrap(), "it answers 200, and no directory of ACME");
        assert_eq!(facts.ahead_s, None);
    }
}

#[test]
fn servers_that_hang_or_never_end_cost_a_bounded_time() {
    let silent = TcpListener::bind((V4, 0)).unwrap();
    let at = silent.local_addr().unwrap();
    let soon = || super::Deadline::after(Duration::from_millis(200));
    let answer = super::port::answer(at, Some(HOST), soon());
    assert_eq!(answer, PortAnswer::Silent("it took too long".into()));
    let endless = TcpListener::bind((V4, 0)).unwrap();
    let at = endless.local_addr().unwrap();
    thread::spawn(move || {
        let (mut stream, _) = endless.accept().unwrap();
        while stream.write_all(&[b'x'; 4096]).is_ok() {}
    });
    let answer =
        super::port::answer(at, Some(HOST), super::Deadline::after(Duration::from_secs(60)));
    assert_eq!(answer, PortAnswer::Silent("an endless header section".into()));
    let servers = [name_server(leads_here(), Way::Silent)];
    let resolver =
        resolver::Resolver { servers: &servers, question: LONG.question, deadline: soon() };
    assert!(resolver.addresses(HOST).unwrap_err().starts_with("no server of the DNS answers"));
    assert_eq!(resolver.caa(HOST), CaaFacts::Unknown);
    // The next server is asked: after one that fails, and after one that is silent.
    let deadline = super::Deadline::after(Duration::from_secs(60));
    let failing = [Way::Failing, Way::Right].map(|way| name_server(leads_here(), way));
    let resolver = resolver::Resolver { servers: &failing, question: LONG.question, deadline };
    assert_eq!(resolver.addresses(HOST).unwrap(), [V4]);
    let next = UdpSocket::bind((V4, 0)).unwrap();
    let (servers, question) = ([servers[0], next.local_addr().unwrap()], Duration::from_millis(20));
    let resolver = resolver::Resolver { servers: &servers, question, deadline };
    assert!(resolver.addresses(HOST).is_err());
    assert!(next.recv_from(&mut [0; 512]).unwrap().0 > 0, "it was asked");
    let place = (silent.local_addr().unwrap(), soon());
    let url = format!("https://{}/", place.0);
    let facts = directory::look(&url, &settings((V4, 1).into(), 80), place.1);
    assert!(facts.failure.is_some() && facts.ahead_s.is_none());
}
