//! Answers of resolvers: recorded forms, forged and damaged ones.
//!
//! The property tests: no bytes panic, and an accepted answer belongs to the question.

use dns_query::{AnswerError, DnsQuery, DnsRecord, DomainName, RecordContent, RecordKind};
use proptest::prelude::*;

const PTR: &str = "1.66.249.66.in-addr.arpa";

fn query(name: &str, kind: RecordKind) -> DnsQuery {
    DnsQuery { id: 0x1234, name: DomainName::from_text(name).expect("a name"), kind }
}

/// The message of the question, made an answer with this code and these records.
fn answer(query: &DnsQuery, code: u8, records: &[Vec<u8>]) -> Vec<u8> {
    let mut message = query.datagram();
    (message[2], message[3]) = (0x81, 0x80 | code);
    message[7] = u8::try_from(records.len()).expect("few records");
    message.extend(records.concat());
    message
}

/// A record whose owner is the name of the question.
fn record(kind: u16, content: &[u8]) -> Vec<u8> {
    record_of(b"\xc0\x0c", kind, content)
}

fn record_of(owner: &[u8], kind: u16, content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len()).expect("a short content").to_be_bytes();
    [owner, &kind.to_be_bytes(), &[0, 1, 0, 0, 1, 0x2c], &length, content].concat()
}

fn data(found: Result<Vec<DnsRecord>, AnswerError>) -> Vec<RecordContent> {
    let found = found.expect("an answer");
    assert!(found.iter().all(|record| record.ttl == 300));
    found.into_iter().map(|record| record.data).collect()
}

#[test]
fn records_of_each_kind_are_read() {
    let ask = query(PTR, RecordKind::Ptr);
    let content = b"\x05crawl\x09googlebot\x03com\0";
    let name = DomainName::from_text("crawl.googlebot.com").expect("a name");
    let found = data(ask.read(&answer(&ask, 0, &[record(12, content)])));
    assert_eq!(found, [RecordContent::Name(name)]);

    let ask = query("crawl.googlebot.com", RecordKind::A);
    let found = data(ask.read(&answer(&ask, 0, &[record(1, &[66, 249, 66, 1])])));
    assert_eq!(found, [RecordContent::Address([66, 249, 66, 1].into())]);

    let ask = query("crawl.googlebot.com", RecordKind::Aaaa);
    let found = data(ask.read(&answer(&ask, 0, &[record(28, &[0x20; 16])])));
    assert_eq!(found, [RecordContent::Address([0x20u8; 16].into())]);

    let ask = query("shop.example", RecordKind::Caa);
    let content = b"\x80\x05Issueletsencrypt.org";
    let found = data(ask.read(&answer(&ask, 0, &[record(257, content)])));
    let value = "letsencrypt.org".to_owned();
    let tag = "issue".to_owned();
    assert_eq!(found, [RecordContent::Authority { is_critical: true, tag, value }]);
}

#[test]
fn aliases_are_followed_and_strangers_left_out() {
    let ask = query("a.example", RecordKind::A);
    let records = [
        record_of(b"\x01c\xc0\x0e", 1, &[192, 0, 2, 1]),
        record_of(b"\x01b\xc0\x0e", 5, b"\x01C\xc0\x0e"),
        record(5, b"\x01b\xc0\x0e"),
        record_of(b"\x01x\xc0\x0e", 1, &[192, 0, 2, 9]),
    ];
    let found = data(ask.read(&answer(&ask, 0, &records)));
    assert_eq!(found, [RecordContent::Address([192, 0, 2, 1].into())]);

    let circle = answer(&ask, 0, &[record(5, b"\xc0\x0c")]);
    assert_eq!(ask.read(&circle), Err(AnswerError::Malformed));
}

#[test]
fn a_name_that_does_not_exist_has_no_records_and_a_failure_is_one() {
    let ask = query(PTR, RecordKind::Ptr);
    assert_eq!(ask.read(&answer(&ask, 3, &[])), Ok(Vec::new()));
    assert_eq!(ask.read(&answer(&ask, 2, &[])), Err(AnswerError::Failed(2)));
    let mut short = answer(&ask, 5, &[])[..12].to_vec();
    short[5] = 0;
    assert_eq!(ask.read(&short), Err(AnswerError::Failed(5)));
    let mut truncated = answer(&ask, 0, &[]);
    truncated[2] |= 2;
    assert_eq!(ask.read(&truncated), Err(AnswerError::Truncated));
}

#[test]
fn answers_to_other_questions_are_recognised() {
    let ask = query(PTR, RecordKind::Ptr);
    let right = answer(&ask, 0, &[record(12, b"\x01a\0")]);
    for (why, at) in [("id", 1), ("a query", 2), ("name", 13), ("kind", 39), ("class", 41)] {
        let mut other = right.clone();
        other[at] ^= if at == 2 { 0x80 } else { 3 };
        assert_eq!(ask.read(&other), Err(AnswerError::NotOurs), "{why}");
    }
    assert_eq!(ask.read(&right[..right.len() - 1]), Err(AnswerError::Malformed));
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..512)) {
        for kind in [RecordKind::A, RecordKind::Ptr, RecordKind::Aaaa, RecordKind::Caa] {
            let ask = query(PTR, kind);
            let _ = ask.read(&bytes);
            let mut message = answer(&ask, 0, &[]);
            message[7] = 9;
            message.extend(&bytes);
            if let Ok(found) = ask.read(&message) {
                prop_assert!(found.len() <= 9);
            }
        }
    }

    #[test]
    fn a_damaged_answer_is_no_answer_to_another_question(at in 0usize..64, with in any::<u8>()) {
        let ask = query(PTR, RecordKind::Ptr);
        let right = answer(&ask, 0, &[record(12, b"\x01a\x03com\0")]);
        let mut damaged = right.clone();
        let at = at % damaged.len();
        damaged[at] = with;
        if ask.read(&damaged).is_ok() && at < 42 {
            // Case of letters, and the bits of the header that have no meaning here
            prop_assert!(damaged[..2] == right[..2]);
            prop_assert!(damaged[12..42].eq_ignore_ascii_case(&right[12..42]));
        }
    }

    #[test]
    fn a_name_as_text_is_the_same_name(text in "[a-z0-9_-]{1,63}(\\.[a-z0-9-]{1,20}){0,6}") {
        let name = DomainName::from_text(&text).expect("a name");
        prop_assert_eq!(name.text(), Some(text.clone()));
        prop_assert_eq!(name.to_string(), text);
    }
}
