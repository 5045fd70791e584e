//! FastCGI from both sides, and the head of a CGI response (RFC 3875 section 6), split anywhere.
//!
//! The first bytes of the data define how the rest is split. The events are the same for every split, a refusal
//! is final, and no incomplete record is buffered.

use bytes::{Bytes, BytesMut};
use fastcgi::peer::RequestReader;
use fastcgi::record::HEADER_LEN;
use fastcgi::{CgiHeadReader, Event, HeadLimits, HeadStep, ResponseReader, pairs};

/// The events in a responder's bytes.
#[derive(Default, PartialEq, Debug)]
struct ResponderEvents {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    end: Option<fastcgi::EndRequest>,
    refused: Option<fastcgi::ProtocolError>,
}

/// Decodes the data as a responder's bytes, as a server's bytes, as pairs and as the head of a CGI response.
pub fn run(data: &[u8]) {
    let (cuts, bytes) = data.split_at(data.len().min(4));
    let whole = respond(&[bytes]);
    let cut = cut(bytes, cuts);
    assert_eq!(whole, respond(&cut), "the cuts matter");
    let (mut reader, mut input) = (RequestReader::new(), BytesMut::new());
    for piece in &cut {
        input.extend_from_slice(piece);
        while let Ok(Some(_)) = reader.read(&mut input) {}
    }
    let _ = pairs::decode_all(Bytes::copy_from_slice(bytes));
    assert_eq!(head(&[bytes]), head(&cut), "the cuts matter");
    assert_eq!(head(&[&whole.stdout]), head(&self::cut(&whole.stdout, cuts)));
}

fn cut<'a>(mut bytes: &'a [u8], cuts: &[u8]) -> Vec<&'a [u8]> {
    let mut pieces = Vec::new();
    for len in cuts.iter().cycle() {
        let (piece, rest) =
            bytes.split_at(usize::from(*len).clamp(1, bytes.len().max(1)).min(bytes.len()));
        if piece.is_empty() {
            break;
        }
        pieces.push(piece);
        bytes = rest;
    }
    pieces
}

fn respond(pieces: &[&[u8]]) -> ResponderEvents {
    let (mut reader, mut input, mut came) =
        (ResponseReader::new(), BytesMut::new(), ResponderEvents::default());
    for piece in pieces {
        input.extend_from_slice(piece);
        loop {
            match reader.read(&mut input) {
                Ok(Some(Event::Stdout(chunk))) => came.stdout.extend_from_slice(&chunk),
                Ok(Some(Event::Stderr(chunk))) => came.stderr.extend_from_slice(&chunk),
                Ok(Some(Event::End(end))) => came.end = Some(end),
                Ok(None) => break assert!(input.len() < HEADER_LEN, "held: {}", input.len()),
                Err(refused) => {
                    assert_eq!(reader.read(&mut BytesMut::new()), Err(refused));
                    came.refused = Some(refused);
                    return came;
                }
            }
        }
    }
    came
}

/// Status, number of fields and content.
type Head = (u16, usize, Vec<u8>);

/// The decoded head, or the name of the refusal; `None` if it is incomplete.
fn head(pieces: &[&[u8]]) -> Option<Result<Head, String>> {
    let limits = HeadLimits::default();
    let mut reader = CgiHeadReader::new(limits);
    let mut pieces = pieces.iter();
    loop {
        match reader.read(Bytes::copy_from_slice(pieces.next()?)) {
            Ok(HeadStep::More(more)) => reader = more,
            Ok(HeadStep::Done(head)) => {
                assert!(head.headers.len() <= limits.fields);
                let mut content = head.content.to_vec();
                pieces.for_each(|piece| content.extend_from_slice(piece));
                return Some(Ok((head.status.as_u16(), head.headers.len(), content)));
            }
            Err(refused) => return Some(Err(format!("{refused:?}"))),
        }
    }
}
