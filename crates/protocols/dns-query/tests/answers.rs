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
    let there_and_back = [record(5, b"\x01b\xc0\x0e"), record_of(b"\x01b\xc0\x0e", 5, b"\xc0\x0c")];
    assert_eq!(ask.read(&answer(&ask, 0, &there_and_back)), Err(AnswerError::Malformed));
}

#[test]
fn a_chain_of_sixteen_aliases_is_followed_and_a_longer_one_is_not() {
    let ask = query("a.example", RecordKind::A);
    let name = |at: u8| [1, b'a' + at, 0xc0, 0x0e];
    let chain = |length: u8| {
        let mut records: Vec<_> =
            (0..length).map(|at| record_of(&name(at), 5, &name(at + 1))).collect();
        records.push(record_of(&name(length), 1, &[192, 0, 2, 1]));
        ask.read(&answer(&ask, 0, &records))
    };
    assert_eq!(data(chain(16)), [RecordContent::Address([192, 0, 2, 1].into())]);
    assert_eq!(chain(17), Err(AnswerError::Malformed));
}

#[test]
fn a_caa_record_that_breaks_the_grammar_hides_no_other() {
    let ask = query("shop.example", RecordKind::Caa);
    for wrong in [&b""[..], b"\0", b"\0\0ca.test", b"\0\x09issue", b"\0\x06is sueca.test"] {
        let records = [record(257, b"\0\x05issueca.test"), record(257, wrong)];
        let found = data(ask.read(&answer(&ask, 0, &records)));
        let (tag, value) = ("issue".to_owned(), "ca.test".to_owned());
        let right = RecordContent::Authority { is_critical: false, tag, value };
        assert_eq!(found, [right, RecordContent::InvalidAuthority], "{wrong:?}");
    }
}

#[test]
fn the_owner_of_a_record_is_no_pointer_to_itself_or_forward() {
    let ask = query("a.example", RecordKind::A);
    let owner = u16::try_from(ask.datagram().len()).expect("a short message");
    for target in [owner, owner + 1, 0x3fff] {
        let pointer = (target | 0xc000).to_be_bytes();
        let message = answer(&ask, 0, &[record_of(&pointer, 1, &[192, 0, 2, 1])]);
        assert_eq!(ask.read(&message), Err(AnswerError::Malformed), "to {target}");
    }
}

#[test]
fn no_part_of_an_answer_is_one_and_no_damaged_byte_panics() {
    let ask = query("a.example", RecordKind::Caa);
    let foreign = record_of(b"\x01b\xc0\x0e", 257, b"\0\x05issueevil");
    let whole = answer(&ask, 0, &[record(257, b"\0\x05issueca.test"), foreign]);
    assert_eq!(data(ask.read(&whole)).len(), 1, "the record of another name is left out");
    for end in 0..whole.len() {
        assert!(ask.read(&whole[..end]).is_err(), "{end} bytes");
        for value in 0..=255 {
            let mut damaged = whole.clone();
            damaged[end] = value;
            assert!(ask.read(&damaged).map_or(0, |found| found.len()) <= 2);
        }
    }
}

#[test]
fn names_without_records_and_failures_of_the_resolver_differ() {
    let ask = query(PTR, RecordKind::Ptr);
    assert_eq!(ask.read(&answer(&ask, 3, &[])), Err(AnswerError::NoSuchName));
    assert_eq!(ask.read(&answer(&ask, 0, &[])), Ok(Vec::new()));
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
