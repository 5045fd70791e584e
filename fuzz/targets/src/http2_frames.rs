//! The bytes of an HTTP/2 client, arbitrary; the first byte defines how the rest is split. After the preface
//! only whole frames are forwarded, and each header block in them is self-contained. Nothing of a stream that
//! the front answered is forwarded. A request, converted to HTTP/1.1, parses as exactly one request.

use config::Limits;
use front::hit::read;
use front::http2::PREFACE;
use front::http2::frame::{FrameHead, HEAD_BYTES, flag, kind};
use front::http2::reader::{LeftRequest, Reader, Step};
use front::http2::windows::Windows;

/// The maximum size of a header list in bytes.
const HEADER_BYTES: usize = 16 << 10;

/// Processes the data as the bytes of a client.
pub fn run(data: &[u8]) {
    let Some((cut, data)) = data.split_first() else { return };
    let mut reader = Reader::new(PREFACE.to_vec(), HEADER_BYTES);
    let (mut windows, mut handed, mut answered) = (Windows::default(), Vec::new(), Vec::new());
    while reader.hand_on(100, |bytes| handed.extend_from_slice(bytes)) > 0 {}
    for piece in data.chunks(1 + usize::from(*cut)) {
        reader.arrive(piece);
        loop {
            while reader.hand_on(100, |bytes| handed.extend_from_slice(bytes)) > 0 {}
            let step = reader.step(&mut windows, |request| {
                let mut text = Vec::new();
                let written = request.fields.write_plain("http", &mut text);
                written.ok_or(LeftRequest::default())?;
                is_one_request(&text);
                let length = text.len();
                let is_answered = request.stream % 4 == 1 && length <= request.room;
                if is_answered {
                    answered.push(request.stream);
                }
                is_answered.then_some(length).ok_or(LeftRequest::default())
            });
            match step {
                Ok(Step::On) => {}
                Ok(Step::Starved) => {
                    if reader.hand_on(100, |bytes| handed.extend_from_slice(bytes)) == 0 {
                        break;
                    }
                }
                Err(_) => return is_for_hyper(&handed, &answered),
            }
        }
    }
    is_for_hyper(&handed, &answered);
}

/// Nothing in the fields ends the header section early, or extends beyond it.
fn is_one_request(text: &[u8]) {
    let mut places = Vec::new();
    if let Some(plain) = read::read(text, &Limits::default(), &mut places) {
        assert_eq!(plain.head_bytes, text.len());
    }
}

fn is_for_hyper(handed: &[u8], answered: &[u32]) {
    assert!(answered.is_sorted_by(|one, next| one < next));
    let mut rest = handed.strip_prefix(PREFACE).expect("the preface");
    let (mut block, mut last) = (Vec::new(), 0);
    while let Some(head) = FrameHead::read(rest) {
        // The last frame may be incomplete.
        let behind = &rest[HEAD_BYTES..];
        let (payload, behind) = behind.split_at(head.length.min(behind.len()));
        rest = behind;
        let is_block = matches!(head.kind, kind::HEADERS | kind::CONTINUATION);
        if is_block || head.kind == kind::DATA {
            // hyper considers streams below a known one as closed.
            let is_new = head.stream > last && answered.contains(&head.stream);
            assert!(!is_new, "stream {}", head.stream);
            last = last.max(head.stream);
        }
        if is_block {
            let before = if head.has(flag::PRIORITY) && head.kind == kind::HEADERS { 5 } else { 0 };
            block.extend_from_slice(&payload[before..]);
            if head.has(flag::END_HEADERS) {
                let read = hpack::Decoder::default().decode(&block, |_, _| {});
                assert_eq!(read, Ok(()), "it stands by itself");
                block.clear();
            }
        }
    }
}
