//! Tests of the reader with hand-made frames in arbitrary pieces. They check which requests are
//! answered, which frames hyper gets, and which errors end the connection.
//!
//! `crates/server/pagewell/tests/differential/http2.rs` tests what hyper does with the frames.

use super::*;
use crate::http2::PREFACE;
use crate::http2::frame::{write_content, write_number};
use hpack::write_field;
use proptest::prelude::*;

const LINE: [(&str, &str); 4] =
    [(":method", "GET"), (":scheme", "http"), (":authority", "a.test"), (":path", "/")];

fn block(list: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    list.iter().for_each(|(n, v)| write_field(n.as_bytes(), v.as_bytes(), &mut block));
    block
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    FrameHead { length: payload.len(), kind, flags, stream }.write(&mut out);
    [out, payload.to_vec()].concat()
}

fn request(stream: u32) -> Vec<u8> {
    frame(kind::HEADERS, flag::END_STREAM | flag::END_HEADERS, stream, &block(&LINE))
}

fn number(kind: u8, stream: u32, number: u32) -> Vec<u8> {
    let mut out = Vec::new();
    write_number(kind, stream, number, &mut out);
    out
}

fn settings(list: &[(u16, u32)]) -> Vec<u8> {
    let setting = |(id, value): &(u16, u32)| [&id.to_be_bytes()[..], &value.to_be_bytes()].concat();
    frame(kind::SETTINGS, 0, 0, &list.iter().flat_map(setting).collect::<Vec<_>>())
}

/// The header block that hyper gets when `block` opens this stream.
fn handed(stream: u32, block: &[u8]) -> Vec<u8> {
    handed_under(0, stream, block)
}

/// The same, if the configuration with this number does not redirect the request.
fn handed_under(unredirected: u64, stream: u32, block: &[u8]) -> Vec<u8> {
    let mut of_stream = Vec::new();
    let value = field_value(stream, unredirected);
    write_field(FIELD.as_bytes(), value.as_bytes(), &mut of_stream);
    [block, &of_stream].concat()
}

/// A reader, and the results of what it has read.
struct Read {
    reader: Reader,
    windows: Windows,
    /// Selects the streams that are answered by the reader's caller.
    answered: fn(u32) -> bool,
    /// The streams that were offered, with the window available to each.
    offered: Vec<(u32, usize)>,
    handed: Vec<u8>,
}

impl Read {
    fn new(answered: fn(u32) -> bool) -> Read {
        let reader = Reader::new(PREFACE.to_vec(), 16 << 10);
        let windows = Windows::default();
        Read { reader, windows, answered, offered: Vec::new(), handed: Vec::new() }
    }

    /// Processes received bytes. Each answer has ten bytes of content.
    fn arrive(&mut self, bytes: &[u8]) -> Result<(), ErrorCode> {
        let Read { reader, windows, answered, offered, handed } = self;
        reader.arrive(bytes);
        loop {
            while reader.hand_on(7, |bytes| handed.extend_from_slice(bytes)) > 0 {}
            let step = reader.step(windows, |request| {
                offered.push((request.stream, request.room));
                let is_answered = answered(request.stream) && request.room >= 10;
                is_answered.then_some(10).ok_or(LeftRequest { unredirected: 0 })
            })?;
            let waits = reader.forward.len() > reader.forwarded
                || matches!(reader.state, State::Pass { left } if left > 0 && reader.at < reader.arrived.len());
            if step == Step::Starved && !waits {
                return Ok(());
            }
        }
    }

    /// The frames that hyper got after the preface: type, flags, stream and payload.
    fn frames(&self) -> Vec<(u8, u8, u32, Vec<u8>)> {
        let mut rest = self.handed.strip_prefix(PREFACE).expect("the preface");
        let mut frames = Vec::new();
        while let Some(head) = FrameHead::read(rest) {
            let (payload, behind) = rest[HEAD_BYTES..].split_at(head.length);
            frames.push((head.kind, head.flags, head.stream, payload.to_vec()));
            rest = behind;
        }
        assert!(rest.is_empty(), "whole frames");
        frames
    }

    /// The streams of the frames of type `kind`.
    fn streams(&self, kind: u8) -> Vec<u32> {
        self.frames().iter().filter(|frame| frame.0 == kind).map(|frame| frame.2).collect()
    }
}

#[test]
fn streams_answered_here_are_not_passed_to_hyper() {
    let mut read = Read::new(|stream| stream % 4 == 3);
    read.arrive(&settings(&[])).unwrap();
    read.arrive(&number(kind::WINDOW_UPDATE, 0, 200_000)).unwrap();
    for stream in [1, 3, 5, 7, 11] {
        read.arrive(&request(stream)).unwrap();
    }
    // After the end of a stream that was answered here, of one that hyper answered, and of one that
    // both have skipped.
    for stream in [7, 11, 5, 3] {
        read.arrive(&number(kind::RST_STREAM, stream, 8)).unwrap();
        read.arrive(&number(kind::WINDOW_UPDATE, stream, 1)).unwrap();
    }
    assert_eq!(
        read.offered.iter().map(|(stream, _)| *stream).collect::<Vec<_>>(),
        [1, 3, 5, 7, 11]
    );
    assert_eq!(read.streams(kind::HEADERS), [1, 5]);
    assert_eq!(read.streams(kind::RST_STREAM), [5, 3]);
    assert_eq!(read.streams(kind::WINDOW_UPDATE), [0, 5, 3]);
    assert_eq!(read.reader.last(), 11);
    let room = read.windows.ours() as usize;
    assert_eq!(room, 132_768 - 30, "what was sent here is gone");
}

#[test]
fn a_block_is_handed_on_so_that_it_stands_by_itself() {
    let mut read = Read::new(|_| false);
    // The field x enters the dynamic table; the next request refers to it by its index.
    let first = [&block(&LINE)[..], b"\x40\x01x\x01y"].concat();
    let second = [&block(&LINE)[..], b"\xbe"].concat();
    let flags = flag::END_STREAM | flag::END_HEADERS;
    read.arrive(&frame(kind::HEADERS, flags, 1, &first)).unwrap();
    // In three frames, with a priority and padding.
    let padded = [&[3, 0, 0, 0, 1, 15][..], &second[..4], &[0; 3]].concat();
    let flags = flag::END_STREAM | flag::PADDED | flag::PRIORITY;
    read.arrive(&frame(kind::HEADERS, flags, 3, &padded)).unwrap();
    read.arrive(&frame(kind::CONTINUATION, 0, 3, &second[4..9])).unwrap();
    assert_eq!(read.offered.len(), 1, "it is not whole");
    read.arrive(&frame(kind::CONTINUATION, flag::END_HEADERS, 3, &second[9..])).unwrap();
    let known = [&block(&LINE)[..], &block(&[("x", "y")])].concat();
    let flags = flag::END_STREAM | flag::END_HEADERS;
    let with_priority = [&[0, 0, 0, 1, 15][..], &handed(3, &known)].concat();
    assert_eq!(
        read.frames(),
        [
            (kind::HEADERS, flags, 1, handed(1, &known)),
            (kind::HEADERS, flags | flag::PRIORITY, 3, with_priority),
        ]
    );
}

#[test]
fn requests_that_need_hyper_are_not_offered() {
    let offered = |begin: &[u8], request: &[u8]| {
        let mut read = Read::new(|_| false);
        read.arrive(begin).unwrap();
        read.arrive(request).unwrap();
        assert_eq!(read.streams(kind::HEADERS), [1]);
        read.offered
    };
    assert_eq!(offered(&settings(&[]), &request(1)), [(1, 0)], "the window is hyper's");
    let much = number(kind::WINDOW_UPDATE, 0, 1 << 20);
    assert_eq!(offered(&much, &request(1)), [(1, 65_535)]);
    let small = settings(&[(SETTING_WINDOW, 100)]);
    assert_eq!(offered(&[small, much].concat(), &request(1)), [(1, 100)]);
    assert_eq!(offered(&settings(&[(SETTING_TABLE, 4095)]), &request(1)), []);
    assert_eq!(offered(&settings(&[(SETTING_TABLE, 65_536)]), &request(1)).len(), 1);
    let with_content = frame(kind::HEADERS, flag::END_HEADERS, 1, &block(&LINE));
    assert_eq!(offered(&[], &with_content), []);
    let flags = flag::END_STREAM | flag::END_HEADERS | flag::PRIORITY;
    let of_itself = [&[0x80, 0, 0, 1, 15][..], &block(&LINE)].concat();
    assert_eq!(offered(&[], &frame(kind::HEADERS, flags, 1, &of_itself)), []);
}

#[test]
fn protocol_errors_end_the_connection() {
    let error = |bytes: &[&[u8]]| Read::new(|_| true).arrive(&bytes.concat()).unwrap_err();
    let much = number(kind::WINDOW_UPDATE, 0, 1 << 20);
    let begun = frame(kind::HEADERS, flag::END_STREAM, 1, &block(&LINE));
    let more = |stream| frame(kind::CONTINUATION, 0, stream, &[]);
    let all = flag::END_STREAM | flag::END_HEADERS;
    let of = |payload: &[u8], flags| frame(kind::HEADERS, all | flags, 1, payload);
    assert_eq!(error(&[&frame(kind::DATA, 0, 1, &[0; 16_385])]), ErrorCode::FrameSize);
    assert_eq!(error(&[&frame(kind::WINDOW_UPDATE, 0, 0, &[0; 5])]), ErrorCode::FrameSize);
    assert_eq!(error(&[&frame(kind::RST_STREAM, 0, 1, &[0; 3])]), ErrorCode::FrameSize);
    assert_eq!(error(&[&of(&[], flag::PADDED)]), ErrorCode::FrameSize);
    assert_eq!(error(&[&of(&[1, 2, 3], flag::PRIORITY)]), ErrorCode::FrameSize);
    assert_eq!(error(&[&of(&[3, 0, 0], flag::PADDED)]), ErrorCode::Protocol);
    assert_eq!(error(&[&more(1)]), ErrorCode::Protocol, "of no block");
    assert_eq!(error(&[&begun, &more(3)]), ErrorCode::Protocol, "of another block");
    assert_eq!(error(&[&begun, &settings(&[])]), ErrorCode::Protocol, "within a block");
    assert_eq!(error(&[&frame(kind::PUSH_PROMISE, 0, 1, &[])]), ErrorCode::Protocol);
    assert_eq!(error(&[&number(kind::WINDOW_UPDATE, 0, 0)]), ErrorCode::Protocol);
    let most = number(kind::WINDOW_UPDATE, 0, WINDOW_BYTES_MAX);
    assert_eq!(error(&[&most]), ErrorCode::FlowControl);
    assert_eq!(error(&[&of(&[0xff, 0xff], 0)]), ErrorCode::Compression);
    assert_eq!(error(&[&much, &request(1), &request(1)]), ErrorCode::StreamClosed);
    assert_eq!(error(&[&request(2)]), ErrorCode::Protocol, "a stream of the server");
    assert_eq!(error(&[&much, &request(5), &request(3)]), ErrorCode::Protocol, "it was skipped");
    let open = frame(kind::HEADERS, flag::END_HEADERS, 1, &block(&LINE));
    let reset = number(kind::RST_STREAM, 1, 8);
    assert_eq!(error(&[&open, &reset, &request(1)]), ErrorCode::StreamClosed, "it was reset");
    let last = frame(kind::DATA, flag::END_STREAM, 1, b"x");
    assert_eq!(error(&[&open, &last, &request(1)]), ErrorCode::StreamClosed, "half-closed");
    let content = frame(kind::DATA, 0, 1, b"x");
    assert_eq!(error(&[&much, &request(1), &content]), ErrorCode::StreamClosed);
    let flood = vec![more(1); 20].concat();
    assert_eq!(error(&[&begun, &flood]), ErrorCode::EnhanceYourCalm);
    let large = frame(kind::CONTINUATION, 0, 1, &[0; 16_000]);
    assert_eq!(error(&[&begun, &large, &large, &large]), ErrorCode::EnhanceYourCalm);
}

/// So the rules of redirects are not compared again for it.
#[test]
fn the_configuration_that_does_not_redirect_a_request_goes_with_it() {
    let mut read = Read::new(|_| false);
    read.arrive(&settings(&[])).unwrap();
    for (stream, unredirected) in [(1, 7), (3, 0)] {
        read.reader.arrive(&request(stream));
        let left = LeftRequest { unredirected };
        assert_eq!(read.reader.step(&mut read.windows, |_| Err(left)), Ok(Step::On));
        read.arrive(&[]).unwrap();
        let frames = read.frames();
        let last = frames.last().expect("a request");
        assert_eq!(last.3, handed_under(unredirected, stream, &block(&LINE)), "stream {stream}");
    }
}

#[test]
fn content_and_frames_that_are_not_known_go_on_as_they_are() {
    let mut read = Read::new(|_| true);
    let begin = |block: &[u8]| frame(kind::HEADERS, flag::END_HEADERS, 1, block);
    let mut bytes = Vec::new();
    write_content(1, &[7; 20_000], &mut bytes);
    for unknown in [2, 6, 7, 16, 0xfa] {
        bytes.extend(frame(unknown, 0xff, 9, b"payload"));
    }
    let arrives = [begin(&block(&LINE)), bytes.clone()].concat();
    arrives.iter().for_each(|byte| read.arrive(&[*byte]).unwrap());
    let all = [begin(&handed(1, &block(&LINE))), bytes].concat();
    assert!(read.handed.strip_prefix(PREFACE) == Some(&all[..]));
}

proptest! {
    /// The result does not depend on how the bytes are split.
    #[test]
    fn how_it_arrives_does_not_matter(
        which in prop::collection::vec(0..6_u8, 1..20),
        cuts in prop::collection::vec(1..60_usize, 1..20),
    ) {
        let mut bytes = number(kind::WINDOW_UPDATE, 0, 100_000);
        for (at, which) in which.iter().enumerate() {
            let stream = 2 * at as u32 + 1;
            bytes.extend(match which {
                0 => settings(&[(SETTING_WINDOW, 70_000)]),
                1 => number(kind::RST_STREAM, stream.saturating_sub(4) | 1, 8),
                2 => frame(kind::HEADERS, 0, stream, &block(&LINE)[..9]),
                _ => request(stream),
            });
            if *which == 2 {
                let rest = &block(&LINE)[9..];
                bytes.extend(frame(kind::CONTINUATION, flag::END_HEADERS, stream, rest));
            }
        }
        let mut whole = Read::new(|stream| stream % 4 == 1);
        whole.arrive(&bytes).unwrap();
        let (mut pieces, mut rest) = (Read::new(|stream| stream % 4 == 1), &bytes[..]);
        for cut in cuts.into_iter().cycle() {
            let (now, then) = rest.split_at(cut.min(rest.len()));
            pieces.arrive(now).unwrap();
            rest = then;
            if rest.is_empty() {
                break;
            }
        }
        prop_assert_eq!(whole.frames(), pieces.frames());
        prop_assert_eq!(whole.offered, pieces.offered);
    }
}
