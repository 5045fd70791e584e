//! Answers of a DNS resolver: nothing panics, and only the answer to the question is accepted.
//!
//! The data is a file like `/etc/resolv.conf`, and what follows the header and the question of an answer.

use dns_query::{
    AnswerError, DnsQuery, DomainName, RecordContent, RecordKind, SERVERS_MAX, name_servers,
};

/// Reads the data as an answer of each kind, to this question and to another one.
pub fn run(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data) {
        assert!(name_servers(text).len() <= SERVERS_MAX);
        if let Ok(name) = DomainName::from_text(text) {
            assert!(name.to_string().len() < 255);
        }
    }
    let name = DomainName::of_address([66, 249, 66, 1].into());
    for kind in [RecordKind::A, RecordKind::Ptr, RecordKind::Aaaa, RecordKind::Caa] {
        let query = DnsQuery { id: 7, name: name.clone(), kind };
        let _ = query.read(data);
        let mut message = query.datagram();
        (message[2], message[7]) = (0x81, 8);
        message.extend(data);
        let Ok(found) = query.read(&message) else { continue };
        assert!(found.len() <= 8);
        for record in found {
            if let RecordContent::Name(name) = record.data {
                assert!(name.text().is_none_or(|text| DomainName::from_text(&text) == Ok(name)));
            }
        }
        assert_eq!(DnsQuery { id: 8, ..query }.read(&message), Err(AnswerError::NotOurs));
    }
}
