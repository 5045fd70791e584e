//! Properties of arbitrary bytes, split anywhere: one side decodes what the other encodes, however it arrives.
//! Random bytes are refused without a panic, and memory is bounded. Each property takes plain bytes and lengths
//! of pieces, so that a fuzzer can use it as well.

use bytes::{Bytes, BytesMut};
use fastcgi::peer::{RequestEvent, RequestReader};
use fastcgi::record::{HEADER_LEN, RecordHeader, RecordType, VERSION};
use fastcgi::{
    AfterRequest, CgiHeadReader, EndRequest, Event, HeadLimits, HeadRefused, HeadStep, Params,
    ParamsLimits, ProtocolStatus, ResponseReader, STDIN_END, pairs, peer, split_stdin,
};
use proptest::collection::vec;
use proptest::prelude::*;

/// Splits `bytes` into pieces of the lengths `lens`, repeatedly.
fn pieces<'a>(mut bytes: &'a [u8], lens: &'a [usize]) -> impl Iterator<Item = &'a [u8]> {
    let mut lens = lens.iter().cycle();
    std::iter::from_fn(move || {
        let len = (*lens.next()?).clamp(1, bytes.len().max(1));
        let piece = bytes.get(..len).filter(|piece| !piece.is_empty())?;
        bytes = &bytes[len..];
        Some(piece)
    })
}

fn piece_lens() -> impl Strategy<Value = Vec<usize>> {
    vec(prop_oneof![1..10usize, 1..5_000usize, 1..200_000usize], 1..6)
}

fn content() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        vec(any::<u8>(), 0..40),
        (0..150_000usize, any::<u8>()).prop_map(|(len, start)| {
            (0..len).map(|index| (index as u8).wrapping_mul(31).wrapping_add(start)).collect()
        })
    ]
}

fn a_pair() -> impl Strategy<Value = (String, Vec<u8>)> {
    let value =
        prop_oneof![vec(1..=255u8, 0..300), (0..65_000usize).prop_map(|len| vec![b'v'; len])];
    ("[A-Z_]{1,200}", value)
}

#[derive(Clone, Debug)]
enum SentRecord {
    Stdout(Vec<u8>),
    Stderr(Vec<u8>),
    Values,
    UnknownType,
    Padded(u8, Vec<u8>),
}

fn a_record() -> impl Strategy<Value = SentRecord> {
    prop_oneof![
        content().prop_map(SentRecord::Stdout),
        vec(any::<u8>(), 0..200).prop_map(SentRecord::Stderr),
        Just(SentRecord::Values),
        Just(SentRecord::UnknownType),
        (any::<u8>(), vec(any::<u8>(), 1..50))
            .prop_map(|(pad, bytes)| SentRecord::Padded(pad, bytes)),
    ]
}

fn encode(record: &SentRecord, out: &mut BytesMut) {
    match record {
        SentRecord::Stdout(bytes) => peer::encode_stdout(1, bytes, out),
        SentRecord::Stderr(bytes) => peer::encode_stderr(1, bytes, out),
        SentRecord::Values => peer::encode_values(&[("FCGI_MAX_CONNS", "1")], out),
        SentRecord::UnknownType => peer::encode_unknown_type(77, out),
        SentRecord::Padded(padding_len, bytes) => {
            let header = RecordHeader::new(RecordType::Stdout, 1, bytes.len() as u16);
            let header = RecordHeader { padding_len: *padding_len, ..header };
            out.extend_from_slice(&header.encode());
            out.extend_from_slice(bytes);
            out.resize(out.len() + usize::from(*padding_len), 0xaa);
        }
    }
}

/// Random bytes that often have a valid record header.
fn noise() -> impl Strategy<Value = Vec<u8>> {
    let record = (0..13u8, 0..3u16, 0..20u16, 0..9u8, vec(any::<u8>(), 0..30)).prop_map(
        |(type_number, request_id, content_len, padding_len, content)| {
            let header = RecordHeader {
                version: VERSION,
                type_number,
                request_id,
                content_len,
                padding_len,
            };
            [&header.encode()[..], &content[..]].concat()
        },
    );
    prop_oneof![vec(any::<u8>(), 0..300), vec(record, 0..12).prop_map(|records| records.concat())]
}

/// The result for a head: status, fields and content, or the refusal; `None` if the head is incomplete.
type HeadOutcome = Option<Result<(u16, Vec<(String, Vec<u8>)>, Vec<u8>), HeadRefused>>;

fn read_head<'a>(limits: HeadLimits, mut chunks: impl Iterator<Item = &'a [u8]>) -> HeadOutcome {
    let mut reader = CgiHeadReader::new(limits);
    loop {
        match reader.read(Bytes::copy_from_slice(chunks.next()?)) {
            Ok(HeadStep::More(more)) => reader = more,
            Ok(HeadStep::Done(head)) => {
                let fields = head.headers.iter();
                let fields =
                    fields.map(|(name, value)| (name.to_string(), value.as_bytes().into()));
                let mut content = head.content.to_vec();
                content.extend(chunks.flatten());
                return Some(Ok((head.status.as_u16(), fields.collect(), content)));
            }
            Err(refused) => return Some(Err(refused)),
        }
    }
}

fn head_text() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![
        4 => "(Status|Location|Content-Type|Content-Length|X-A|Set-Cookie): ?[ -~]{0,12}",
        2 => "(Status: 404 Not Found|Content-Length: 5|Location: /a|HTTP/1.1 200 OK)",
        1 => "[ -~\t\r]{0,20}",
    ];
    let end = prop_oneof![Just("\r\n"), Just("\n")];
    let lines = vec((line, end).prop_map(|(line, end)| line + end), 0..8);
    (lines, prop_oneof![Just(""), Just("\n"), Just("\r\n")], vec(any::<u8>(), 0..20)).prop_map(
        |(lines, blank, content)| [lines.concat().as_bytes(), blank.as_bytes(), &content].concat(),
    )
}

proptest! {
    #[test]
    fn a_request_arrives_as_sent(
        list in vec(a_pair(), 0..12), body in content(), lens in piece_lens(), keep in any::<bool>()
    ) {
        let after = if keep { AfterRequest::KeepOpen } else { AfterRequest::Close };
        let mut params = Params::new(ParamsLimits { total_bytes: 4 << 20, ..Default::default() });
        for (name, value) in &list {
            params.push(name, value).unwrap();
        }
        let mut bytes = params.into_request_start(after);
        let mut left = Bytes::from(body.clone());
        while let Some((header, chunk)) = split_stdin(&mut left) {
            bytes.extend_from_slice(&header);
            bytes.extend_from_slice(&chunk);
        }
        bytes.extend_from_slice(&STDIN_END);

        let (mut reader, mut input) = (RequestReader::new(), BytesMut::new());
        let (mut begun, mut pairs, mut stdin, mut ends) = (None, None, Vec::new(), 0);
        for piece in pieces(&bytes, &lens) {
            input.extend_from_slice(piece);
            while let Some(event) = reader.read(&mut input).unwrap() {
                match event {
                    RequestEvent::Begin { request_id, role, after } => begun = Some((request_id, role, after)),
                    RequestEvent::Params(found) => pairs = Some(found),
                    RequestEvent::Stdin(chunk) => stdin.extend_from_slice(&chunk),
                    RequestEvent::StdinEnd => ends += 1,
                    other => prop_assert!(false, "{other:?}"),
                }
            }
        }
        prop_assert_eq!(begun, Some((1, 1, after)));
        let found = pairs.expect("params have come").into_iter();
        let found: Vec<_> = found.map(|(name, value)| (name.to_vec(), value.to_vec())).collect();
        let sent: Vec<_> = list.iter().map(|(name, value)| (name.clone().into_bytes(), value.clone())).collect();
        prop_assert_eq!(found, sent);
        prop_assert!(stdin == body);
        prop_assert_eq!((ends, input.len()), (1, 0));
    }

    #[test]
    fn params_records_hold_whole_pairs_and_no_more_than_php_fpm_takes(list in vec(a_pair(), 0..30)) {
        let mut params = Params::new(ParamsLimits { total_bytes: 4 << 20, ..Default::default() });
        for (name, value) in &list {
            params.push(name, value).unwrap();
        }
        let bytes = Bytes::from(params.into_request_start(AfterRequest::Close));
        let (mut rest, mut found) = (bytes.slice(2 * HEADER_LEN..), 0);
        while let Some(header) = RecordHeader::peek(&rest) {
            let (content, padding) = (usize::from(header.content_len), usize::from(header.padding_len));
            prop_assert!(content + padding <= 65_535 && (content + padding) % 8 == 0);
            let pairs = pairs::decode_all(rest.slice(HEADER_LEN..HEADER_LEN + content));
            found += pairs.expect("whole pairs").len();
            rest = rest.slice(HEADER_LEN + content + padding..);
        }
        prop_assert_eq!((found, rest.len()), (list.len(), 0));
    }

    #[test]
    fn a_response_arrives_as_sent(
        records in vec(a_record(), 0..12), app_status in any::<u32>(), status in any::<u8>(), lens in piece_lens()
    ) {
        let end = EndRequest { app_status, protocol_status: ProtocolStatus::from_number(status) };
        let (mut bytes, mut out, mut err) = (BytesMut::new(), Vec::new(), Vec::new());
        for record in &records {
            encode(record, &mut bytes);
            match record {
                SentRecord::Stdout(sent) | SentRecord::Padded(_, sent) => out.extend_from_slice(sent),
                SentRecord::Stderr(sent) => err.extend_from_slice(sent),
                SentRecord::Values | SentRecord::UnknownType => {}
            }
        }
        peer::encode_stdout_end(1, &mut bytes);
        peer::encode_end(1, end, &mut bytes);

        let (mut reader, mut input) = (ResponseReader::new(), BytesMut::new());
        let (mut stdout, mut stderr, mut ended) = (Vec::new(), Vec::new(), None);
        for piece in pieces(&bytes, &lens) {
            input.extend_from_slice(piece);
            while let Some(event) = reader.read(&mut input).unwrap() {
                match event {
                    Event::Stdout(chunk) => { prop_assert!(!chunk.is_empty()); stdout.extend_from_slice(&chunk) }
                    Event::Stderr(chunk) => { prop_assert!(!chunk.is_empty()); stderr.extend_from_slice(&chunk) }
                    Event::End(end) => ended = Some(end),
                }
            }
            prop_assert!(input.len() < HEADER_LEN, "nothing waits for the rest of its record");
        }
        prop_assert!(stdout == out && stderr == err);
        prop_assert_eq!((ended, reader.end(), reader.at_end()), (Some(end), Some(end), true));
    }

    #[test]
    fn noise_is_read_or_refused(bytes in noise(), lens in piece_lens()) {
        let (mut response, mut request) = (ResponseReader::new(), RequestReader::new());
        let (mut from_responder, mut from_server) = (BytesMut::new(), BytesMut::new());
        for piece in pieces(&bytes, &lens) {
            from_responder.extend_from_slice(piece);
            from_server.extend_from_slice(piece);
            while let Ok(Some(_)) = response.read(&mut from_responder) {}
            while let Ok(Some(_)) = request.read(&mut from_server) {}
        }
        if let Err(refused) = response.read(&mut from_responder) {
            prop_assert_eq!(response.read(&mut BytesMut::new()), Err(refused));
            prop_assert!(!response.at_end());
        }
        let _ = pairs::decode_all(Bytes::from(bytes));
    }

    #[test]
    fn pairs_that_decode_encode_to_their_meaning(bytes in vec(any::<u8>(), 0..60)) {
        if let Ok(decoded) = pairs::decode_all(Bytes::from(bytes)) {
            let mut again = Vec::new();
            for (name, value) in &decoded {
                pairs::encode(name, value, &mut again);
            }
            prop_assert_eq!(pairs::decode_all(Bytes::from(again)).unwrap(), decoded);
        }
    }

    #[test]
    fn a_head_means_the_same_however_it_is_cut(text in head_text(), lens in vec(1..9usize, 1..5)) {
        let limits = HeadLimits::default();
        prop_assert_eq!(read_head(limits, [&text[..]].into_iter()), read_head(limits, pieces(&text, &lens)));
    }

    #[test]
    fn a_head_never_passes_its_bounds(text in head_text(), lens in vec(1..9usize, 1..5), bytes in 0..60usize, fields in 0..4usize) {
        let limits = HeadLimits { bytes, fields };
        let outcome = read_head(limits, pieces(&text, &lens));
        prop_assert_eq!(&outcome, &read_head(limits, [&text[..]].into_iter()));
        match outcome {
            None => prop_assert!(text.len() <= bytes),
            Some(Ok((_, found, content))) => {
                prop_assert!(found.len() <= fields);
                prop_assert!(text.len() - content.len() <= bytes);
            }
            Some(Err(_)) => {}
        }
    }
}
