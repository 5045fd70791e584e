//! The answers of a certificate authority and the DNS: problems, certificates, messages, CAA records. Nothing panics, a
//! message can be shown in a terminal, and a certificate is used only for its host.
//!
//! The first byte chooses the reader.

use acme::{Bundle, ChallengeKind, OrderFailure, TEXT_CHARACTERS};
use certificates::LeafFacts;
use dns_query::{AnswerError, DnsQuery, DomainName, RecordContent, RecordKind};
use doctor::caa::{domains, refusal};

const HOST: &str = "a.example.org";
/// Maximum number of CAA records of the answer that is read.
const RECORDS_MAX: usize = 200;

/// Reads the data as one of these answers.
pub fn run(data: &[u8]) {
    let Some((first, rest)) = data.split_first() else { return };
    match first % 5 {
        0 => problem(rest),
        1 => {
            if let Ok(bundle) = Bundle::read(HOST, rest) {
                assert_eq!(bundle.certificate.names, [HOST]);
                assert!(bundle.lifetime.until_ms > bundle.lifetime.from_ms);
            }
        }
        2 => {
            if let Some(facts) = LeafFacts::read(&rest.into()) {
                assert!(!facts.issuer.chars().any(char::is_control));
            }
        }
        3 => message(rest),
        _ => {
            let records = authorities(rest);
            let own = ["ca.test".to_owned()];
            let is_allowed = refusal(&records, &own, &["http-01"]).is_none();
            // An authority that is unknown is refused by fewer records.
            assert!(!is_allowed || refusal(&records, &[], &["http-01"]).is_none());
        }
    }
}

fn problem(data: &[u8]) {
    for kind in [None, Some(ChallengeKind::Http01), Some(ChallengeKind::TlsAlpn01)] {
        let Some(failure) = OrderFailure::of_bytes(data, kind) else { return };
        assert!(failure.text.chars().count() <= TEXT_CHARACTERS);
        assert!(!failure.text.chars().any(char::is_control));
        assert!(!failure.cause.remedy().is_empty());
    }
}

/// The CAA records of an answer with these contents, one a line.
fn authorities(contents: &[u8]) -> Vec<RecordContent> {
    let name = DomainName::from_text(HOST).expect("a name");
    let query = DnsQuery { id: 7, name, kind: RecordKind::Caa };
    let mut message = query.datagram();
    message[2] = 0x81;
    for content in contents.split(|byte| *byte == b'\n').take(RECORDS_MAX) {
        let Ok(length) = u16::try_from(content.len()) else { break };
        message[7] += 1;
        message.extend([0xc0, 12]);
        for word in [RecordKind::Caa as u16, 1, 0, 60, length] {
            message.extend(word.to_be_bytes());
        }
        message.extend(content);
    }
    let found = query.read(&message).expect("CAA records of any content are read");
    found.into_iter().map(|record| record.data).collect()
}

/// Two bytes of the identifier, then the message.
fn message(data: &[u8]) {
    let Some((id, _)) = data.split_first_chunk::<2>() else { return };
    let id = u16::from_be_bytes(*id);
    let host = DomainName::from_text(HOST).expect("a name");
    for kind in [RecordKind::A, RecordKind::Aaaa, RecordKind::Caa] {
        if let Ok(found) = (DnsQuery { id, name: host.clone(), kind }).read(data) {
            assert!(found.len() <= data.len());
        }
    }
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(name) = DomainName::from_text(text) {
        let query = DnsQuery { id, name, kind: RecordKind::Caa };
        let asked = query.datagram();
        assert!(asked.len() <= 12 + 255 + 4);
        assert_eq!(query.read(&asked), Err(AnswerError::NotOurs));
    }
    assert!(domains(text).count() <= data.len() + 1);
}
