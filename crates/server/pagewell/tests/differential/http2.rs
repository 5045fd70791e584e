//! The same for HTTP/2: valid frames with header blocks in every encoding (indexed, with and without indexing,
//! split into CONTINUATION frames, padded, with priorities), with unusual or wrong fields, and occasionally a
//! damaged byte. Plain hits are answered by the front, or not: each stream must end in the same way with the
//! same response. The origin must receive the same requests.

use super::{BEHIND_PASSWORD, BOUND, LIMIT, LINES, PASSWORD, Side, TARGETS, TRIES, number};
use front::http2::PREFACE;
use front::http2::frame::{FrameHead, HEAD_BYTES, flag, kind, write_number};
use harness::{Random, Stopwatch};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf};

/// RFC 7541 appendix A, as far as requests need it: fields that a client sends by their index.
const INDEXED: [(&str, &str, u8); 5] = [
    (":method", "GET", 0x82),
    (":method", "POST", 0x83),
    (":path", "/", 0x84),
    (":scheme", "http", 0x86),
    (":scheme", "https", 0x87),
];
/// The first index of the dynamic table.
const FIRST_DYNAMIC: usize = 62;

type Field = (String, String);

/// The header compression of a client.
#[derive(Default)]
struct Encoder {
    /// The newest field first. The table stays so small that no field is evicted.
    table: Vec<Field>,
}

impl Encoder {
    fn encode(&mut self, fields: &[Field], random: &mut Random) -> Vec<u8> {
        let mut block = Vec::new();
        for field in fields {
            let known =
                INDEXED.iter().find(|(name, value, _)| (*name, *value) == (&field.0, &field.1));
            let held = self.table.iter().position(|known| known == field);
            match (known, held) {
                (Some((.., byte)), _) if !random.chance(4) => block.push(*byte),
                (_, Some(at)) => block.push(0x80 | (FIRST_DYNAMIC + at) as u8),
                _ => {
                    let kept = random.chance(2) && self.table.len() < 40;
                    block.push(if kept { 0x40 } else { random.one(&[0x00, 0x10]) });
                    for text in [&field.0, &field.1] {
                        assert!(text.len() < 127, "{text}");
                        block.push(text.len() as u8);
                        block.extend_from_slice(text.as_bytes());
                    }
                    if kept {
                        self.table.insert(0, field.clone());
                    }
                }
            }
        }
        block
    }
}

/// The fields of a request, mostly well-formed.
fn fields(random: &mut Random) -> Vec<Field> {
    let method = random.one(&["GET", "GET", "GET", "GET", "GET", "HEAD", "POST", "PURGE", "get"]);
    let scheme = if random.chance(20) { "https" } else { "http" };
    let authority = random.one(&["a.test", "a.test", "a.test", "a.test", "A.Test:80", "a b", ""]);
    let path = random.one(TARGETS);
    let mut all =
        vec![(":method", method), (":scheme", scheme), (":authority", authority), (":path", path)];
    match random.below(40) {
        0 => drop(all.remove(random.below(4))),
        1 => all.push(all[random.below(4)]),
        2 => all.swap(0, 3),
        3 => all.push(("host", random.one(&["a.test", "b.test"]))),
        4 => all.push((":protocol", "websocket")),
        _ => {}
    }
    for _ in 0..random.below(4) {
        let line = random.one(LINES).lines().next().unwrap_or_default();
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        all.push((name, value.trim()));
    }
    if path == BEHIND_PASSWORD && !random.chance(4) {
        all.push(("authorization", PASSWORD));
    }
    for _ in 0..random.below(3) {
        all.push(random.one(&[("cookie", "a=b"), ("cookie", "c=d; e=f"), ("te", "trailers")]));
    }
    if random.chance(30) {
        all.push((":path", "/late"));
    }
    if random.chance(30) {
        // More than the limits allow, in bytes or in number; the relevant field is last.
        let many = random.one(&[30, 99, 110, 400, 900]);
        all.extend(std::iter::repeat_n(("cookie", "a=b"), many));
        all.push(("cookie", "PHPSESSID=0123456789abcdef"));
    }
    let keep_case = random.chance(30);
    let name = |name: &str| if keep_case { name.to_owned() } else { name.to_ascii_lowercase() };
    all.into_iter().map(|(n, value)| (name(n), value.to_owned())).collect()
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    FrameHead { length: payload.len(), kind, flags, stream }.write(&mut bytes);
    [bytes, payload.to_vec()].concat()
}

/// The frames of a request, which ends its stream.
fn request(stream: u32, encoder: &mut Encoder, random: &mut Random) -> Vec<u8> {
    let fields = fields(random);
    let block = encoder.encode(&fields, random);
    let has_content = fields.iter().any(|field| field.1 == "POST");
    let mut flags = if has_content { 0 } else { flag::END_STREAM };
    let mut payload = Vec::new();
    let padding = if random.chance(5) { random.below(20) } else { 0 };
    if padding > 0 {
        flags |= flag::PADDED;
        payload.push(padding as u8);
    }
    if random.chance(5) {
        flags |= flag::PRIORITY;
        payload.extend(random.below(4).to_be_bytes().last_chunk::<4>().unwrap());
        payload.push(15);
    }
    let cut = if random.chance(5) { random.below(block.len()) } else { block.len() };
    let (first, rest) = block.split_at(cut);
    payload.extend_from_slice(first);
    payload.resize(payload.len() + padding, 0);
    let last = |rest: &[u8]| if rest.is_empty() { flag::END_HEADERS } else { 0 };
    let mut bytes = frame(kind::HEADERS, flags | last(rest), stream, &payload);
    if !rest.is_empty() {
        bytes.extend(frame(kind::CONTINUATION, flag::END_HEADERS, stream, rest));
    }
    if has_content {
        bytes.extend(frame(kind::DATA, flag::END_STREAM, stream, b"abc"));
    }
    bytes
}

/// Frames between requests.
fn extras(stream: u32, random: &mut Random) -> Vec<u8> {
    let mut bytes = Vec::new();
    let earlier = stream.saturating_sub(2 * random.below(4) as u32).max(1);
    match random.below(12) {
        0 if earlier < stream => write_number(kind::RST_STREAM, earlier, 8, &mut bytes),
        1 if earlier < stream => write_number(kind::WINDOW_UPDATE, earlier, 100, &mut bytes),
        2 => write_number(kind::WINDOW_UPDATE, 0, 1 << 20, &mut bytes),
        3 => bytes = frame(kind::SETTINGS, 0, 0, &[0, 4, 0, 1, 0, 0]),
        4 => bytes = frame(6, 0, 0, b"pingping"),
        5 => bytes = frame(0xee, 7, stream, b"unknown"),
        6 => bytes = frame(2, 0, stream, &[0, 0, 0, 0, 3]),
        _ => {}
    }
    bytes
}

/// The end of a stream, or of its connection.
#[derive(Debug, PartialEq, Eq)]
enum End {
    Answer(Vec<String>, Vec<u8>),
    Reset(u32),
    Gone(u32),
    Closed,
}

/// Reads until the stream has ended.
async fn end_of(
    stream: u32,
    from: &mut ReadHalf<DuplexStream>,
    decoder: &mut hpack::Decoder,
) -> End {
    let (mut fields, mut content) = (Vec::new(), Vec::new());
    loop {
        let mut head = [0; HEAD_BYTES];
        if from.read_exact(&mut head).await.is_err() {
            return End::Closed;
        }
        let head = FrameHead::read(&head).unwrap();
        let mut payload = vec![0; head.length];
        if from.read_exact(&mut payload).await.is_err() {
            return End::Closed;
        }
        let number = |at: usize| payload[at..].first_chunk().copied().map(u32::from_be_bytes);
        match head.kind {
            kind::HEADERS => {
                assert!(head.has(flag::END_HEADERS), "short enough for one frame");
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                let see = |name: &[u8], value: &[u8]| {
                    fields.push(format!("{}: {}", text(name), text(value)));
                };
                decoder.decode(&payload, see).expect("a block that can be read");
            }
            kind::DATA => content.extend_from_slice(&payload),
            kind::GOAWAY => return End::Gone(number(4).unwrap()),
            kind::RST_STREAM if head.stream == stream => return End::Reset(number(0).unwrap()),
            _ => continue,
        }
        if matches!(head.kind, kind::HEADERS | kind::DATA) {
            assert_eq!(head.stream, stream, "one is asked after the other");
        }
        if head.has(flag::END_STREAM) {
            fields.retain(|field| !field.starts_with("date:"));
            fields.sort();
            return End::Answer(fields, content);
        }
    }
}

impl Side {
    /// The results of these requests, sent one after the other on one connection whose buffers hold `piece`
    /// bytes.
    async fn ask(
        &self,
        begin: &[u8],
        requests: &[Vec<u8>],
        piece: usize,
    ) -> (Vec<End>, Vec<String>) {
        let (client, _stop, served) = self.connect(piece);
        let (mut from, mut to) = tokio::io::split(client);
        let mut decoder = hpack::Decoder::default();
        let mut ends = Vec::new();
        to.write_all(begin).await.unwrap();
        for (at, request) in requests.iter().enumerate() {
            let stream = 2 * at as u32 + 1;
            let asking = async {
                let _ = to.write_all(request).await;
            };
            let ending = end_of(stream, &mut from, &mut decoder);
            let both = async { tokio::join!(asking, ending).1 };
            let end = tokio::time::timeout(BOUND, both);
            let end = end.await.unwrap_or_else(|_| panic!("no end: {}", request.escape_ascii()));
            let is_over = matches!(end, End::Gone(_) | End::Closed);
            ends.push(end);
            if is_over {
                break;
            }
        }
        drop((from, to));
        let ended = tokio::time::timeout(BOUND, served).await;
        ended.expect("the server ends with its client").expect("no panic");
        (ends, self.take_seen())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hits_in_front_change_nothing_over_http2() {
    let seed = number("DIFFERENTIAL_SEED", 0x5eed);
    let mut random = Random::new(seed);
    let (front, behind) = (Side::start(true).await, Side::start(false).await);
    let (mut hits, mut redirected, mut in_front) = (0, 0, 0);
    for case in 0..number("DIFFERENTIAL_CASES", 1500) {
        let mut begin = [PREFACE, &frame(kind::SETTINGS, 0, 0, &[])].concat();
        if !random.chance(5) {
            write_number(kind::WINDOW_UPDATE, 0, 1 << 20, &mut begin);
            in_front += 1;
        }
        let mut encoder = Encoder::default();
        let mut requests = Vec::new();
        for at in 0..1 + random.below(6) {
            let stream = 2 * at as u32 + 1;
            let mut bytes = extras(stream, &mut random);
            bytes.extend(request(stream, &mut encoder, &mut random));
            requests.push(bytes);
        }
        let piece = random.one(&[64, 1000, 64 << 10]);
        let mut tries = 0;
        let (one, other) = loop {
            let watch = Stopwatch::start();
            let one = front.ask(&begin, &requests, piece).await;
            let other = behind.ask(&begin, &requests, piece).await;
            tries += 1;
            if one == other || watch.elapsed() < LIMIT || tries == TRIES {
                break (one, other);
            }
        };
        let has = |text: &str| {
            let is_one = |end: &&End| matches!(end, End::Answer(fields, _) if fields.iter().any(|field| field.contains(text)));
            one.0.iter().filter(is_one).count()
        };
        hits += has("; hit;");
        redirected += has("=redirected");
        let shown: Vec<_> = requests.iter().map(|bytes| bytes.escape_ascii().to_string()).collect();
        assert_eq!(one, other, "seed {seed} case {case} piece {piece}: {shown:#?}");
    }
    assert!(hits > 100 && in_front > 100, "plain hits are among the cases: {hits}");
    assert!(redirected > 50, "redirects are among the cases: {redirected}");
}
