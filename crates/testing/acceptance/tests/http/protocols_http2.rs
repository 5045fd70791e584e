//! HTTP/2 with real clients (nghttp and h2load of nghttp2), and with raw frames where a client would not send
//! the input. Frames that flood or violate the protocol are limited, and end only their own connection.
//!
//! The header blocks are encoded by hand: indexed fields and literals without Huffman coding (RFC 7541).

use acceptance::http2::PREFACE;
use acceptance::http2::flag::{ACK, END_HEADERS, END_STREAM};
use acceptance::http2::kind::{CONTINUATION, DATA, HEADERS, RST_STREAM, SETTINGS, WINDOW_UPDATE};
use acceptance::http2::{FrameHead, error};
use acceptance::{Frames, Site, asked, before_origin, block, client, counter, until};
use harness::Pagewell;
use std::fs;
use std::io::{Read, Write};
use std::process::{Command, Output};

/// RFC 9113 section 7; the server does not use it.
const REFUSED_STREAM: u32 = 7;

/// Stores a page, with the request that `block` encodes.
fn keep(pagewell: &Pagewell, path: &str) {
    for _ in 0..2 {
        client(pagewell).host("a.test").get(path).expect("an answer");
    }
}

fn site() -> Site {
    let site = Site::new(&[
        ("page.php", "<?php keep(3600); echo str_repeat('p', 2042);"),
        ("held.php", "<?php note('held'); wait_for('go'); echo 'held';"),
        ("count.php", "<?php echo strlen(file_get_contents('php://input'));"),
    ]);
    site.file("long.bin", vec![b'x'; 3 << 20]);
    site
}

fn run(program: &str, args: &[&str]) -> String {
    let Output { stdout, stderr, status } =
        Command::new(program).args(args).output().expect("it can be started");
    let said = String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned();
    assert!(status.success(), "{program} {args:?}: {said}");
    said
}

fn url(pagewell: &Pagewell, path: &str) -> String {
    format!("http://{}{path}", pagewell.address())
}

#[test]
fn h2load_gets_every_response_with_and_without_tls() {
    let site = site();
    let made = rcgen::generate_simple_self_signed(["a.test".to_owned()]).expect("a certificate");
    let at = |name: &str| site.at(name).display().to_string();
    fs::write(at("key"), made.signing_key.serialize_pem()).expect("written");
    fs::write(at("crt"), made.cert.pem()).expect("written");
    let pagewell = site.serve(&format!(
        "listen_tls = \"unix:{}\"\n[[tls]]\ncertificate = {:?}\nkey = {:?}\n",
        at("tls.sock"),
        at("crt"),
        at("key")
    ));
    let all = "2000 succeeded, 0 failed, 0 errored, 0 timeout";
    let many = ["-n", "2000", "-c", "4", "-m", "32"];
    for path in ["/page.php", "/long.bin"] {
        let many = if path == "/page.php" { many } else { ["-n", "20", "-c", "2", "-m", "5"] };
        let all =
            if path == "/page.php" { all } else { "20 succeeded, 0 failed, 0 errored, 0 timeout" };
        let plain = url(&pagewell, path);
        let said = run("h2load", &[&many[..], &[&plain]].concat());
        assert!(said.contains(all), "{said}");
        let base = format!("--base-uri=unix:{}", at("tls.sock"));
        let secure = format!("https://a.test{path}");
        let said = run("h2load", &[&many[..], &[&base, &secure]].concat());
        assert!(said.contains(all) && said.contains("Application protocol: h2"), "{said}");
    }
    assert_eq!(counter(&pagewell, "renders"), 2, "one for each scheme");
    until("all have gone", || counter(&pagewell, "connections") == 0);
}

#[test]
fn nghttp_with_small_windows_large_tables_priorities_and_trailers() {
    let site = site();
    let pagewell = site.serve("");
    let (page, long) = (url(&pagewell, "/page.php"), url(&pagewell, "/long.bin"));
    // Windows of 1 KiB: the long file is sent in a thousand small steps, interleaved with the others.
    let small = ["--no-dep", "--window-bits=10", "--connection-window-bits=10", "-m", "3"];
    let said = run("nghttp", &[&small[..], &["-s", "-n", &page, &long]].concat());
    assert_eq!(said.matches(" 200 ").count(), 6, "{said}");
    let large =
        ["--header-table-size=1M", "--encoder-header-table-size=1M", "-p", "200", "-m", "20"];
    let cookie = format!("x-large: {}", "v".repeat(3_000));
    let said = run("nghttp", &[&large[..], &["-s", "-n", "-H", &cookie, &page]].concat());
    assert_eq!(said.matches(" 200 ").count(), 20, "{said}");
    let content = site.at("content");
    fs::write(&content, vec![b'x'; 300_000]).expect("written");
    let count = url(&pagewell, "/count.php");
    let content = content.display().to_string();
    let said = run("nghttp", &["-d", &content, "--trailer", "x-sum: 7", &count]);
    assert_eq!(said.trim(), "300000");
}

#[test]
fn an_upload_that_is_too_large_is_answered() {
    let site = site();
    let pagewell = site.serve("[limits]\nbody_bytes = \"100K\"\n");
    let target = url(&pagewell, "/count.php");
    for bytes in [120_000, 200_000, 3_000_000] {
        let content = site.at("content");
        fs::write(&content, vec![b'x'; bytes]).expect("written");
        let content = content.display().to_string();
        // A client that continues, whatever the response. curl would end a request of a known length too early,
        // and the stream is reset for that (RFC 9113 section 8.1.1), sometimes before the content is sent.
        let said = run("nghttp", &["-v", "-t", "120", "-d", &content, &target]);
        let is_answered =
            said.contains(":status: 413") && said.contains("pagewell: content-too-large");
        assert!(is_answered, "{bytes}: {said}");
        // Without a length.
        let h2 = ["-sS", "-i", "--http2-prior-knowledge", "--max-time", "120"];
        let said =
            run("curl", &[&h2[..], &["-H", "Content-Length:", "-T", &content, &target]].concat());
        assert!(said.starts_with("HTTP/2 413"), "{bytes}: {said}");
        assert!(said.contains("pagewell: content-too-large"), "{said}");
    }
    until("all have gone", || counter(&pagewell, "connections") == 0);
}

#[test]
fn a_frame_that_is_too_large_ends_the_connection() {
    let site = site();
    let pagewell = site.serve("");
    let mut frames = Frames::begin(&pagewell, &[]);
    frames.send(HEADERS, END_STREAM | END_HEADERS, 1, &vec![0x82; 16_385]);
    assert_eq!(frames.given_up(), Some(error::FRAME_SIZE));
    assert_eq!(client(&pagewell).get("/page.php").expect("an answer").status, 200);
}

#[test]
fn a_flood_of_continuations_is_bounded() {
    let site = site();
    let pagewell = site.serve("");
    let mut frames = Frames::begin(&pagewell, &[]);
    assert!(frames.send(HEADERS, END_STREAM, 1, &block("/page.php")));
    // A literal field of 4,000 bytes in each. Only the server's limit ends them.
    let field = [&[0x00, 0x01, b'x', 0x7f, 0xa1, 0x1e][..], &[b'v'; 4_000]].concat();
    let mut sent = 0;
    while frames.send(CONTINUATION, 0, 1, &field) {
        sent += 1;
        assert!(sent < 20_000, "it takes them all");
    }
    assert_eq!(counter(&pagewell, "requests"), 0);
    until("it has gone", || counter(&pagewell, "connections") == 0);
    assert_eq!(client(&pagewell).get("/page.php").expect("an answer").status, 200);
}

#[test]
fn rapid_resets_are_bounded() {
    let site = site();
    let pagewell = site.serve("[limits]\nhttp2_resets = 20\n");
    let mut frames = Frames::begin(&pagewell, &[]);
    for stream in (1..20_001).step_by(2) {
        if !frames.get(stream, "/count.php") || !frames.send(RST_STREAM, 0, stream, &[0, 0, 0, 8]) {
            break;
        }
    }
    // The reason is not always read before the connection ends.
    let error = frames.given_up();
    assert!(error.is_none_or(|code| code == error::ENHANCE_YOUR_CALM), "{error:?}");
    until("it has gone", || counter(&pagewell, "connections") == 0);
    assert!(counter(&pagewell, "requests") < 10_000);
    assert_eq!(client(&pagewell).get("/page.php").expect("an answer").status, 200);
}

/// A plain hit is answered before the reset is read, which costs no more than another request.
#[test]
fn resets_of_plain_hits_are_not_limited() {
    let site = site();
    let pagewell = site.serve("[limits]\nhttp2_resets = 20\n");
    keep(&pagewell, "/page.php");
    let before = counter(&pagewell, "hits");
    let mut frames = Frames::begin(&pagewell, &[]);
    assert!(frames.send(WINDOW_UPDATE, 0, 0, &(1_u32 << 30).to_be_bytes()));
    for stream in (1..2_001).step_by(2) {
        assert!(frames.get(stream, "/page.php"));
        assert!(frames.send(RST_STREAM, 0, stream, &[0, 0, 0, 8]));
        let (_, flags, answered, payload) = frames.next_of(DATA).expect("content");
        assert_eq!((answered, flags, payload.len()), (stream, END_STREAM, 2042));
    }
    assert_eq!(counter(&pagewell, "hits"), before + 1_000);
}

#[test]
fn requests_beyond_the_stream_limit_get_refused_stream() {
    let site = site();
    let pagewell = site.serve("[limits]\nhttp2_streams = 1\n");
    let mut frames = Frames::begin(&pagewell, &[]);
    assert!(frames.get(1, "/held.php"));
    site.wait_for("held");
    assert!(frames.get(3, "/page.php"));
    let (_, _, stream, reason) = frames.next_of(RST_STREAM).expect("it is refused");
    assert_eq!((stream, reason), (3, REFUSED_STREAM.to_be_bytes().to_vec()));
    site.note("go");
    let (_, mut flags, stream, _) = frames.next_of(HEADERS).expect("it is answered");
    assert_eq!(stream, 1);
    while flags & END_STREAM == 0 {
        flags = frames.next_of(DATA).expect("it goes on").1;
    }
    // Another stream is allowed again.
    let mut stream = 3;
    until("it is answered", || {
        stream += 2;
        assert!(frames.get(stream, "/page.php"));
        let (kind, _, of, _) = loop {
            let frame = frames.next_frame().expect("it is answered, or refused");
            if matches!(frame.0, HEADERS | RST_STREAM) {
                break frame;
            }
        };
        assert_eq!(of, stream);
        kind == HEADERS
    });
}

#[test]
fn a_client_without_a_window_blocks_no_other() {
    const INITIAL_WINDOW_SIZE: u16 = 4;
    let site = site();
    let pagewell = site.serve("");
    let mut frames = Frames::begin(&pagewell, &[(INITIAL_WINDOW_SIZE, 0)]);
    assert!(frames.get(1, "/page.php") && frames.get(3, "/page.php"));
    let mut heads = 0;
    while heads < 2 {
        let (kind, _, stream, _) = frames.next_frame().expect("it goes on");
        assert!(kind != DATA, "content without a window, on stream {stream}");
        heads += u32::from(kind == HEADERS);
    }
    assert_eq!(client(&pagewell).get("/page.php").expect("an answer").content.len(), 2042);
    // A byte for one of them, then everything for the other.
    frames.send(WINDOW_UPDATE, 0, 3, &1_u32.to_be_bytes());
    let (_, _, stream, payload) = frames.next_of(DATA).expect("content");
    assert_eq!((stream, payload.len()), (3, 1));
    frames.send(WINDOW_UPDATE, 0, 1, &2042_u32.to_be_bytes());
    let (_, _, stream, payload) = frames.next_of(DATA).expect("content");
    assert_eq!((stream, payload.len()), (1, 2042));
}

/// Many clients send a WINDOW_UPDATE only when more than half of the window is used.
#[test]
fn one_long_response_can_use_the_whole_window() {
    const INITIAL_WINDOW_SIZE: u16 = 4;
    const WINDOW: usize = 2_000_000;
    let site = site();
    let pagewell = site.serve("");
    let mut frames = Frames::begin(&pagewell, &[(INITIAL_WINDOW_SIZE, 1 << 30)]);
    let more = WINDOW as u32 - 65_535;
    assert!(frames.send(WINDOW_UPDATE, 0, 0, &more.to_be_bytes()));
    // First a response of the front, which uses a part of the window too.
    keep(&pagewell, "/page.php");
    assert!(frames.get(1, "/page.php"));
    let (.., first) = frames.next_of(DATA).expect("content");
    assert_eq!(first.len(), 2042);
    assert!(frames.get(3, "/long.bin"));
    let mut got = first.len();
    while got < WINDOW {
        let (.., payload) = frames.next_of(DATA).expect("more, without being allowed more");
        got += payload.len();
    }
    assert_eq!(got, WINDOW);
}

/// A client may use its old window until its settings are acknowledged (RFC 9113 section 6.5.3).
#[test]
fn a_new_window_size_applies_when_acknowledged() {
    const INITIAL_WINDOW_SIZE: u16 = 4;
    let site = site();
    site.file("wide.php", "<?php keep(); echo str_repeat('w', 100000);");
    let pagewell = site.serve("");
    keep(&pagewell, "/wide.php");
    let settings = [&INITIAL_WINDOW_SIZE.to_be_bytes()[..], &(1_u32 << 21).to_be_bytes()].concat();
    let mut all = PREFACE.to_vec();
    for (kind, flags, stream, payload) in [
        (SETTINGS, 0, 0, settings),
        (WINDOW_UPDATE, 0, 0, (1_u32 << 22).to_be_bytes().to_vec()),
        (HEADERS, END_STREAM | END_HEADERS, 1, block("/wide.php")),
    ] {
        FrameHead { length: payload.len(), kind, flags, stream }.write(&mut all);
        all.extend_from_slice(&payload);
    }
    let mut frames = Frames::connect(&pagewell);
    frames.stream.write_all(&all).expect("sent");
    let (mut is_acknowledged, mut got) = (false, 0);
    while got < 100_000 {
        let (kind, flags, _, payload) = frames.next_frame().expect("it goes on");
        is_acknowledged |= kind == SETTINGS && flags & ACK != 0;
        got += if kind == DATA { payload.len() } else { 0 };
        assert!(is_acknowledged || got <= 65_535, "{got} bytes before the acknowledgement");
    }
    assert!(is_acknowledged);
}

/// A client that always has more requests, and reads each response slowly.
#[test]
fn the_backlog_of_a_slow_client_is_limited_and_pings_are_answered() {
    const INITIAL_WINDOW_SIZE: u16 = 4;
    const PING: u8 = 6;
    const ASKED: u32 = 600;
    const AHEAD: u32 = 100;
    const BYTES: usize = 60_000;
    let site = site();
    site.file("wide.php", "<?php keep(); echo str_repeat('w', 60000);");
    let pagewell = site.serve("");
    keep(&pagewell, "/wide.php");
    let mut frames = Frames::begin(&pagewell, &[(INITIAL_WINDOW_SIZE, 1 << 30)]);
    assert!(frames.send(WINDOW_UPDATE, 0, 0, &(1_u32 << 30).to_be_bytes()));
    frames.next_of(SETTINGS).expect("its settings");
    let before = pagewell.rss_bytes();
    let ask = |frames: &mut Frames, n: u32| frames.get(2 * n + 1, "/wide.php");
    assert!((0..AHEAD).all(|n| ask(&mut frames, n)));
    assert!(frames.send(PING, 0, 0, b"are you?"));
    let (mut asked, mut answered, mut at_ping, mut most) = (AHEAD, 0, None, 0);
    while answered < ASKED {
        let (kind, flags, _, payload) = frames.next_frame().expect("it goes on");
        match kind {
            PING => at_ping = Some(answered),
            DATA if flags & END_STREAM != 0 => {
                answered += 1;
                most = most.max(pagewell.rss_bytes());
                if asked < ASKED {
                    assert!(ask(&mut frames, asked));
                    asked += 1;
                }
            }
            _ => {}
        }
        assert!(kind != DATA || payload.len() <= 16_384);
    }
    let at_ping = at_ping.expect("an answer to the ping");
    assert!(at_ping < ASKED / 2, "the ping is answered after {at_ping} of {ASKED}");
    let grown = most.saturating_sub(before);
    let all = ASKED as usize * BYTES;
    assert!(grown < all as u64 / 4, "{grown} bytes more are held, of {all} that were sent");
}

#[test]
fn a_stop_sends_goaway_and_finishes_open_streams() {
    let site = site();
    let mut pagewell = site.serve("");
    let mut frames = Frames::begin(&pagewell, &[]);
    assert!(frames.get(1, "/held.php"));
    site.wait_for("held");
    let stopping = std::thread::spawn(move || {
        pagewell.stop();
    });
    assert_eq!(frames.given_up(), Some(0), "GOAWAY, and no error");
    site.note("go");
    let (_, _, stream, payload) = frames.next_of(DATA).expect("content");
    assert_eq!((stream, &payload[..]), (1, &b"held"[..]));
    while frames.next_frame().is_some() {}
    stopping.join().expect("it has stopped");
}

/// A literal field with a new name, without Huffman coding.
fn literal(name: &str, value: &str) -> Vec<u8> {
    let length = |text: &str| u8::try_from(text.len()).expect("short");
    [&[0x00, length(name)][..], name.as_bytes(), &[length(value)], value.as_bytes()].concat()
}

/// RFC 9113 section 8.1.1: a malformed request is an error of its stream only.
#[test]
fn a_malformed_request_ends_its_stream() {
    let site = site();
    let pagewell = site.serve("");
    keep(&pagewell, "/page.php");
    let mut frames = Frames::begin(&pagewell, &[]);
    let mut stream = 1;
    let malformed = [0, 0, 0, error::PROTOCOL as u8];
    // Section 8.2.1: no white space around a value.
    for value in [" x", "x ", "\tx", "x\t"] {
        let block = [block("/page.php"), literal("x-a", value)].concat();
        assert!(frames.send(HEADERS, END_STREAM | END_HEADERS, stream, &block));
        let reset = frames.next_of(RST_STREAM).expect("a reset");
        assert_eq!((reset.2, &*reset.3), (stream, &malformed[..]), "{value:?}");
        stream += 2;
    }
    // Section 8.1: trailers must not contain pseudo-header fields.
    for trailers in [literal(":path", "/other"), [literal("x-a", "b"), literal(":x", "y")].concat()]
    {
        assert!(frames.send(HEADERS, END_HEADERS, stream, &block("/count.php")));
        assert!(frames.send(DATA, 0, stream, b"abc"));
        assert!(frames.send(HEADERS, END_STREAM | END_HEADERS, stream, &trailers));
        let reset = frames.next_of(RST_STREAM).expect("a reset");
        assert_eq!((reset.2, &*reset.3), (stream, &malformed[..]));
        stream += 2;
    }
    assert!(frames.get(stream, "/page.php"));
    let answer = frames.next_of(HEADERS).expect("an answer");
    assert_eq!(answer.2, stream);
}

#[test]
fn content_of_a_get_without_a_length_arrives_at_an_http_origin() {
    let (pagewell, origin, _site) = before_origin("");
    let mut frames = Frames::begin(&pagewell, &[]);
    assert!(frames.send(HEADERS, END_HEADERS, 1, &block("/search")));
    assert!(frames.send(DATA, END_STREAM, 1, b"q=1"));
    let (mut at_origin, head) = asked(&origin);
    let content = if head.contains("transfer-encoding: chunked\r\n") {
        "3\r\nq=1\r\n0\r\n\r\n"
    } else {
        assert!(head.contains("content-length: 3\r\n"), "{head}");
        "q=1"
    };
    let mut came = vec![0; content.len()];
    at_origin.read_exact(&mut came).expect("content");
    assert_eq!(String::from_utf8_lossy(&came), content);
}
