//! The answers of a certificate authority and the DNS: problems, certificates, messages, CAA records. Nothing panics, a
//! message can be shown in a terminal, and a certificate is used only for its host.
//!
//! The first byte chooses the reader.

use acme::{Bundle, ChallengeKind, OrderFailure, TEXT_CHARACTERS};
use certificates::LeafFacts;
use doctor::caa::{domains, refusal};
use doctor::dns::{RecordKind, answer, question};

const HOST: &str = "a.example.org";

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
            let records: Vec<Vec<u8>> = rest.split(|byte| *byte == b'\n').map(Into::into).collect();
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

/// Two bytes of the number, then the message.
fn message(data: &[u8]) {
    let Some((number, _)) = data.split_first_chunk::<2>() else { return };
    let number = u16::from_be_bytes(*number);
    for kind in [RecordKind::A, RecordKind::Aaaa, RecordKind::Caa] {
        if let Some(found) = answer(data, number, HOST, kind) {
            let bytes: usize = found.records.iter().map(Vec::len).sum();
            assert!(bytes <= data.len());
        }
    }
    let Ok(name) = std::str::from_utf8(data) else { return };
    if let Some(asked) = question(number, name, RecordKind::Caa) {
        assert!(asked.len() <= 12 + 255 + 4 + 11);
        assert!(answer(&asked, number, name, RecordKind::Caa).is_none());
    }
    assert!(domains(name).count() <= data.len() + 1);
}
