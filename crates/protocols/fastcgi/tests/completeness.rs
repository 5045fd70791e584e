//! Whether a response counts as complete, and whether its connection may be reused: one case for each reason.
//! The END_REQUEST record is built by hand or by the responder's side. FastCGI §5.5, RFC 9110 §8.6.

use bytes::BytesMut;
use fastcgi::{
    AfterRequest, CloseReason, Completeness, ContentFraming, EndRequest, IncompleteReason,
    PhpFatal, ProtocolStatus, ResponseReader, Reuse, StdinSent, peer,
};
use http::{Method, StatusCode};

const COMPLETE: EndRequest =
    EndRequest { app_status: 0, protocol_status: ProtocolStatus::RequestComplete };

fn incomplete(reason: IncompleteReason) -> Completeness {
    Completeness::Incomplete(reason)
}

#[test]
fn a_response_is_whole_when_the_end_says_so_and_the_length_agrees() {
    let of = |declared, received| {
        Completeness::of(Some(COMPLETE), ContentFraming::Content, declared, received)
    };
    assert_eq!(of(None, 10), Completeness::Complete);
    assert_eq!(of(Some(10), 10), Completeness::Complete);
    assert_eq!(of(Some(10), 9), incomplete(IncompleteReason::ContentShort));
    assert_eq!(of(Some(10), 11), incomplete(IncompleteReason::ContentLong));
    assert_eq!(of(Some(0), 0), Completeness::Complete);
}

#[test]
fn without_content_the_declared_length_counts_for_nothing() {
    let of = |framing| Completeness::of(Some(COMPLETE), framing, Some(10), 0);
    for (method, status) in [
        (Method::HEAD, StatusCode::OK),
        (Method::GET, StatusCode::NOT_MODIFIED),
        (Method::DELETE, StatusCode::NO_CONTENT),
    ] {
        assert_eq!(of(ContentFraming::of(&method, status)), Completeness::Complete);
    }
    let get = ContentFraming::of(&Method::GET, StatusCode::OK);
    assert_eq!(of(get), incomplete(IncompleteReason::ContentShort));
}

#[test]
fn any_other_end_leaves_a_response_incomplete() {
    let of = |end| Completeness::of(end, ContentFraming::Content, Some(4), 4);
    assert_eq!(of(None), incomplete(IncompleteReason::EndMissing));
    let overloaded = EndRequest { protocol_status: ProtocolStatus::Overloaded, ..COMPLETE };
    assert_eq!(
        of(Some(overloaded)),
        incomplete(IncompleteReason::Protocol(ProtocolStatus::Overloaded))
    );
    let died = EndRequest { app_status: 137, ..COMPLETE };
    assert_eq!(of(Some(died)), incomplete(IncompleteReason::AppStatus(137)));
}

#[test]
fn a_fatal_error_of_php_makes_a_complete_response_incomplete() {
    let whole = Completeness::Complete;
    assert_eq!(whole.and_php(PhpFatal::NotReported), whole);
    assert_eq!(whole.and_php(PhpFatal::Reported), incomplete(IncompleteReason::PhpFatal));
    let cut = incomplete(IncompleteReason::EndMissing);
    assert_eq!(cut.and_php(PhpFatal::Reported), cut, "the first reason stays");
}

/// A reader that has read END_REQUEST with this protocol status.
fn ended(protocol_status: ProtocolStatus) -> ResponseReader {
    let mut bytes = BytesMut::new();
    peer::encode_end(1, EndRequest { app_status: 0, protocol_status }, &mut bytes);
    let mut reader = ResponseReader::new();
    let event = reader.read(&mut bytes).expect("a good record");
    assert!(event.is_some(), "END_REQUEST is whole");
    reader
}

#[test]
fn a_connection_is_kept_only_when_both_sides_are_through() {
    let keep = AfterRequest::KeepOpen;
    let done = ended(ProtocolStatus::RequestComplete);
    let whole = StdinSent::Whole;
    assert_eq!(Reuse::of(keep, whole, &done, 0), Reuse::Keep);

    let closed =
        |after, sent, reader: &ResponseReader, unread| match Reuse::of(after, sent, reader, unread)
        {
            Reuse::Keep => panic!("kept"),
            Reuse::Close(reason) => reason,
        };
    assert_eq!(closed(AfterRequest::Close, whole, &done, 0), CloseReason::NotAsked);
    assert_eq!(closed(keep, StdinSent::Partly, &done, 0), CloseReason::StdinUnfinished);
    assert_eq!(closed(keep, whole, &done, 1), CloseReason::BytesAfterEnd);
    let fresh = ResponseReader::new();
    assert_eq!(closed(keep, whole, &fresh, 0), CloseReason::ResponseUnfinished);
    let full = ended(ProtocolStatus::Overloaded);
    assert_eq!(closed(keep, whole, &full, 0), CloseReason::Protocol(ProtocolStatus::Overloaded));
}

#[test]
fn a_connection_that_went_wrong_after_the_end_is_not_kept() {
    let mut reader = ended(ProtocolStatus::RequestComplete);
    reader.read(&mut BytesMut::from(&b"x"[..])).unwrap_err();
    assert_eq!(
        Reuse::of(AfterRequest::KeepOpen, StdinSent::Whole, &reader, 0),
        Reuse::Close(CloseReason::ResponseUnfinished)
    );
}
