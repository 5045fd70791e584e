//! Responses of a responder, read by `ResponseReader`: one test for each row of its table. The bytes are
//! written by hand or by the responder's side. Splits and random bytes are in `properties.rs`. FastCGI §3.3,
//! §4, §5.3, §5.5.

use bytes::{Bytes, BytesMut};
use fastcgi::record::{RecordHeader, RecordType};
use fastcgi::response::IGNORED_BYTES_MAX;
use fastcgi::{EndRequest, Event, ProtocolError, ProtocolStatus, ResponseReader, peer};

const COMPLETE: EndRequest =
    EndRequest { app_status: 0, protocol_status: ProtocolStatus::RequestComplete };

/// All events in `bytes`, and the error that ended them, if any.
fn read_all(bytes: &[u8]) -> (Vec<Event>, Option<ProtocolError>) {
    let mut reader = ResponseReader::new();
    let mut input = BytesMut::from(bytes);
    let mut events = Vec::new();
    loop {
        match reader.read(&mut input) {
            Ok(Some(event)) => events.push(event),
            Ok(None) => return (events, None),
            Err(error) => {
                assert_eq!(reader.read(&mut BytesMut::new()), Err(error), "a refusal is final");
                return (events, Some(error));
            }
        }
    }
}

fn stdout(text: &'static str) -> Event {
    Event::Stdout(Bytes::from_static(text.as_bytes()))
}

fn stderr(text: &'static str) -> Event {
    Event::Stderr(Bytes::from_static(text.as_bytes()))
}

#[test]
fn a_plain_response() {
    let mut bytes = BytesMut::new();
    peer::encode_stdout(1, b"page", &mut bytes);
    peer::encode_stdout_end(1, &mut bytes);
    peer::encode_end(1, COMPLETE, &mut bytes);
    assert_eq!(read_all(&bytes), (vec![stdout("page"), Event::End(COMPLETE)], None));
}

#[test]
fn php_fpm_leaves_out_the_end_of_stdout_and_puts_anything_into_reserved_bytes() {
    let bytes = b"\x01\x06\0\x01\0\x04\x04\0pagexxxx\x01\x03\0\x01\0\x08\0\0\0\0\0\0\0a=1";
    assert_eq!(read_all(bytes), (vec![stdout("page"), Event::End(COMPLETE)], None));
}

#[test]
fn stdout_is_handed_out_before_its_record_is_whole() {
    let mut reader = ResponseReader::new();
    let mut input = BytesMut::from(&b"\x01\x06\0\x01\xff\xff\0\0first"[..]);
    assert_eq!(reader.read(&mut input), Ok(Some(stdout("first"))));
    assert_eq!(reader.read(&mut input), Ok(None));
    input.extend_from_slice(b"more");
    assert_eq!(reader.read(&mut input), Ok(Some(stdout("more"))));
    assert!(input.is_empty() && reader.end().is_none() && !reader.at_end());
}

#[test]
fn stderr_may_come_before_between_and_after_stdout() {
    let mut bytes = BytesMut::new();
    peer::encode_stderr(1, b"a", &mut bytes);
    peer::encode_stdout(1, b"page", &mut bytes);
    peer::encode_stdout_end(1, &mut bytes);
    peer::encode_stderr(1, b"b", &mut bytes);
    bytes.extend_from_slice(&RecordHeader::new(RecordType::Stderr, 1, 0).encode());
    peer::encode_end(1, COMPLETE, &mut bytes);
    let events = vec![stderr("a"), stdout("page"), stderr("b"), Event::End(COMPLETE)];
    assert_eq!(read_all(&bytes), (events, None));
}

#[test]
fn each_end_keeps_its_status() {
    let named = [
        (0, ProtocolStatus::RequestComplete, "request-complete"),
        (1, ProtocolStatus::CannotMultiplex, "cannot-multiplex"),
        (2, ProtocolStatus::Overloaded, "overloaded"),
        (3, ProtocolStatus::UnknownRole, "unknown-role"),
        (9, ProtocolStatus::Other(9), "unknown-protocol-status"),
    ];
    for (number, protocol_status, name) in named {
        let bytes = [1, 3, 0, 1, 0, 8, 0, 0, 0, 0, 1, 0xff, number, 0, 0, 0];
        let end = EndRequest { app_status: 511, protocol_status };
        assert_eq!(read_all(&bytes), (vec![Event::End(end)], None));
        assert_eq!((protocol_status.number(), protocol_status.as_str()), (number, name));
    }
}

#[test]
fn padding_after_the_end_belongs_to_it() {
    let mut reader = ResponseReader::new();
    let mut input = BytesMut::from(&b"\x01\x03\0\x01\0\x08\x03\0\0\0\0\0\0\0\0\0--"[..]);
    assert_eq!(reader.read(&mut input), Ok(Some(Event::End(COMPLETE))));
    assert!(!reader.at_end(), "one byte of padding is still to come");
    input.extend_from_slice(b"-");
    assert_eq!(reader.read(&mut input), Ok(None));
    assert!(reader.at_end() && input.is_empty());
}

#[test]
fn other_protocols_are_refused_at_the_first_record() {
    let (events, error) = read_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    assert_eq!(
        (events, error),
        (vec![], Some(ProtocolError::VersionUnsupported { version: b'H' }))
    );
    let (_, error) = read_all(b"\x02\x06\0\x01\0\x01\0\0x");
    assert_eq!(error, Some(ProtocolError::VersionUnsupported { version: 2 }));
}

#[test]
fn another_requests_record_is_refused() {
    let mut bytes = BytesMut::new();
    peer::encode_stdout(1, b"ours", &mut bytes);
    peer::encode_stdout(2, b"theirs", &mut bytes);
    let refused = ProtocolError::RequestIdWrong { request_id: 2 };
    assert_eq!(read_all(&bytes), (vec![stdout("ours")], Some(refused)));
}

#[test]
fn record_types_that_no_responder_sends_are_refused() {
    for type_number in (0..=255u8).filter(|number| !matches!(number, 3 | 6 | 7)) {
        let header = RecordHeader { type_number, ..RecordHeader::new(RecordType::Stdout, 1, 8) };
        let (events, error) = read_all(&header.encode());
        let refused = ProtocolError::TypeUnexpected { type_number };
        assert_eq!((events, error), (vec![], Some(refused)));
    }
}

#[test]
fn management_records_are_skipped_up_to_a_bound() {
    let mut bytes = BytesMut::new();
    peer::encode_values(&[("FCGI_MPXS_CONNS", "0")], &mut bytes);
    peer::encode_unknown_type(42, &mut bytes);
    bytes.extend_from_slice(&[1, 200, 0, 0, 0, 1, 7, 0, 1, 2, 3, 4, 5, 6, 7, 8]);
    peer::encode_stdout(1, b"page", &mut bytes);
    assert_eq!(read_all(&bytes), (vec![stdout("page")], None));

    let empty = RecordHeader::new(RecordType::GetValuesResult, 0, 0).encode();
    let most = IGNORED_BYTES_MAX / empty.len();
    assert_eq!(read_all(&empty.repeat(most)), (vec![], None));
    assert_eq!(read_all(&empty.repeat(most + 1)), (vec![], Some(ProtocolError::TooMuchIgnored)));
}

#[test]
fn an_end_of_another_length_is_refused() {
    for content_len in [0, 7, 9, 65_535] {
        let header = RecordHeader::new(RecordType::EndRequest, 1, content_len);
        let refused = ProtocolError::EndLengthWrong { content_len };
        assert_eq!(read_all(&header.encode()), (vec![], Some(refused)));
    }
}

#[test]
fn stdout_after_its_end_is_refused() {
    let mut bytes = BytesMut::new();
    peer::encode_stdout_end(1, &mut bytes);
    peer::encode_stdout_end(1, &mut bytes);
    peer::encode_stdout(1, b"late", &mut bytes);
    assert_eq!(read_all(&bytes), (vec![], Some(ProtocolError::StdoutAfterItsEnd)));
}

#[test]
fn a_byte_after_the_end_is_refused() {
    let mut bytes = BytesMut::new();
    peer::encode_end(1, COMPLETE, &mut bytes);
    peer::encode_stdout(1, b"whose?", &mut bytes);
    assert_eq!(read_all(&bytes), (vec![Event::End(COMPLETE)], Some(ProtocolError::BytesAfterEnd)));
}
