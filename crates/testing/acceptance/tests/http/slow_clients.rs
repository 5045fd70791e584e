//! Clients that request long uncached responses and do not read them, with the real binary. PHP and an HTTP
//! origin are free as soon as they have answered. Waiting data is limited in memory and on disk. Responses that
//! the origin sends in small pieces still arrive in small pieces.

use acceptance::http2::flag::END_STREAM;
use acceptance::http2::kind::{DATA, RST_STREAM, SETTINGS, WINDOW_UPDATE};
use acceptance::{BOUND, Frames, Site, client, counter, limit_hit, slow_client, until};
use harness::{Deadline, Pagewell};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

/// RFC 9113 section 6.5.2.
const INITIAL_WINDOW_SIZE: u16 = 4;
const PAGE: &str = "<?php keep(); echo 'whole';";
/// A response as long as the query says, for this client only.
const LONG: &str =
    "<?php header('Cache-Control: no-store'); echo str_repeat('y', (int) $_GET['n']);
    note('made' . $_GET['k']);";
/// A response like this without an end.
const ENDLESS: &str = "<?php header('Cache-Control: no-store');
    while (true) { out(str_repeat('z', 65536)); }";
const FORM: &str = "<?php echo $_POST['x'];";
const CHILDREN: u32 = 6;

fn site() -> Site {
    Site::new(&[
        ("page.php", PAGE),
        ("long.php", LONG),
        ("endless.php", ENDLESS),
        ("form.php", FORM),
    ])
}

fn places(pagewell: &Pagewell) -> u64 {
    counter(pagewell, "origin_places_taken")
}

/// Checks that a miss, a logged-in client and a write are answered.
fn others_are_served(pagewell: &Pagewell) {
    let mut others = client(pagewell).host("a.test");
    assert_eq!(others.get("/page.php?miss").expect("an answer").text(), "whole");
    let signed_in = harness::Request::get("/page.php").header("Cookie", "PHPSESSID=x");
    assert_eq!(others.send(&signed_in).expect("an answer").text(), "whole");
    assert_eq!(others.post("/form.php", "x=1").expect("an answer").text(), "1");
}

#[test]
fn streams_without_a_window_occupy_no_php() {
    const BYTES: usize = 1_000_000;
    let site = site();
    let pagewell = site.serve(&format!("[php]\nchildren = {CHILDREN}\n"));
    let mut frames = Frames::begin(&pagewell, &[(INITIAL_WINDOW_SIZE, 0)]);
    for number in 0..CHILDREN {
        assert!(frames.get(2 * number + 1, &format!("/long.php?n={BYTES}&k={number}")));
    }
    for number in 0..CHILDREN {
        site.wait_for(&format!("made{number}"));
    }
    until("PHP is free", || places(&pagewell) == 0);
    others_are_served(&pagewell);
    // The client gets all waiting data, in order, as soon as it reads.
    let stream = 2 * CHILDREN - 1;
    let mut got = 0;
    for stream in [0, stream] {
        assert!(frames.send(WINDOW_UPDATE, 0, stream, &(BYTES as u32).to_be_bytes()));
    }
    loop {
        let (_, flags, of, payload) = frames.next_of(DATA).expect("content");
        assert!(of == stream && payload.iter().all(|byte| *byte == b'y'), "stream {of}");
        got += payload.len();
        if flags & END_STREAM != 0 {
            break;
        }
    }
    assert_eq!(got, BYTES);
    drop(frames);
    until("nothing waits", || {
        counter(&pagewell, "client_backlog_bytes") == 0
            && counter(&pagewell, "client_backlog_disk_bytes") == 0
    });
}

#[test]
fn http1_connections_that_do_not_read_occupy_no_php() {
    const BYTES: usize = 4 << 20;
    let site = site();
    let pagewell = site.serve(&format!("[php]\nchildren = {CHILDREN}\n"));
    let ask = |number: u32| {
        let mut stream = slow_client(&pagewell);
        let target = format!("/long.php?n={BYTES}&k={number}");
        let head = format!("GET {target} HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).expect("sent");
        stream
    };
    let mut held: Vec<_> = (0..CHILDREN).map(ask).collect();
    for number in 0..CHILDREN {
        site.wait_for(&format!("made{number}"));
    }
    until("PHP is free", || places(&pagewell) == 0);
    others_are_served(&pagewell);
    for stream in &mut held {
        let mut all = Vec::new();
        stream.read_to_end(&mut all).expect("all of it");
        let content = all.windows(4).position(|end| end == b"\r\n\r\n").expect("a head") + 4;
        assert!(all[content..].iter().filter(|byte| **byte == b'y').count() == BYTES);
    }
    until("nothing waits", || counter(&pagewell, "client_backlog_disk_bytes") == 0);
}

#[test]
fn an_endless_response_is_ended_when_its_slot_is_needed() {
    let site = site();
    let pagewell = site.serve("[limits]\nclient_backlog_disk = \"4M\"\n[php]\nchildren = 1\n");
    let mut slow = slow_client(&pagewell);
    slow.write_all(b"GET /endless.php HTTP/1.1\r\nHost: a.test\r\n\r\n").expect("sent");
    // An eighth of the disk space is for one response; a piece of up to 16 KB that does not fit is not written.
    until("it waits for its client", || {
        counter(&pagewell, "client_backlog_disk_bytes") > (512 - 16) << 10
    });
    assert_eq!(places(&pagewell), 1, "nobody else needs it");
    others_are_served(&pagewell);
    until("its place is free", || places(&pagewell) == 0);
    let mut all = Vec::new();
    let _ = slow.read_to_end(&mut all);
    assert!(!all.ends_with(b"0\r\n\r\n"), "it does not look whole");
}

#[test]
fn a_full_disk_disconnects_the_slowest_clients() {
    const BYTES: usize = 1_000_000;
    let site = site();
    let limits = "[limits]\nclient_backlog_disk = \"8M\"\n[php]\nchildren = 2\n";
    let pagewell = site.serve(limits);
    let mut held = Vec::new();
    for number in 0..16 {
        let mut frames = Frames::begin(&pagewell, &[(INITIAL_WINDOW_SIZE, 0)]);
        assert!(frames.get(1, &format!("/long.php?n={BYTES}&k={number}")));
        site.wait_for(&format!("made{number}"));
        held.push(frames);
        until("PHP is free", || places(&pagewell) == 0);
    }
    assert!(limit_hit(&pagewell, "client_backlog_disk") > 0);
    others_are_served(&pagewell);
}

#[test]
fn without_disk_space_a_response_waits_and_is_complete() {
    const BYTES: usize = 1_000_000;
    let site = site();
    let pagewell = site.serve("[limits]\nclient_backlog_disk = \"0\"\n[php]\nchildren = 2\n");
    let answer = client(&pagewell).get(&format!("/long.php?n={BYTES}&k=1")).expect("an answer");
    assert_eq!(answer.content.len(), BYTES);
    let mut slow = slow_client(&pagewell);
    let head = format!("GET /long.php?n={}&k=2 HTTP/1.0\r\nHost: a.test\r\n\r\n", 8 * BYTES);
    slow.write_all(head.as_bytes()).expect("sent");
    until("it waits for its client", || places(&pagewell) == 1);
    let mut all = Vec::new();
    slow.read_to_end(&mut all).expect("all of it");
    assert!(all.len() > 8 * BYTES);
}

/// A stream that its client does not read, on a connection that sends PINGs all the time, until the connection
/// or that stream ends.
fn pings_until_reset(frames: &mut Frames) -> Option<(u32, Vec<u8>)> {
    const PING: u8 = 6;
    while frames.send(PING, 0, 0, b"anybody?") {
        match frames.next_frame()? {
            (RST_STREAM, _, stream, error) => return Some((stream, error)),
            (DATA, ..) => panic!("content without a window"),
            _ => {}
        }
    }
    None
}

#[test]
fn an_unread_stream_is_reset_and_others_continue() {
    const CANCEL: [u8; 4] = [0, 0, 0, 8];
    let site = site();
    site.file("held.php", "<?php wait_for('go'); echo 'held';");
    let pagewell = site.serve("[limits]\nwrite_timeout = \"500ms\"\n");
    let mut frames = Frames::begin(&pagewell, &[(INITIAL_WINDOW_SIZE, 0)]);
    assert!(frames.get_all(&[(1, "/long.php?n=1000000&k=1"), (3, "/held.php")]));
    assert_eq!(pings_until_reset(&mut frames), Some((1, CANCEL.to_vec())));
    assert_eq!(limit_hit(&pagewell, "write_timeout"), 1);
    until("nothing waits for it", || counter(&pagewell, "client_backlog_disk_bytes") == 0);
    assert!(frames.send(WINDOW_UPDATE, 0, 3, &100_u32.to_be_bytes()));
    // A late frame of a stream that was reset is no error.
    assert!(frames.send(WINDOW_UPDATE, 0, 1, &100_u32.to_be_bytes()));
    site.note("go");
    let (_, _, stream, payload) = frames.next_of(DATA).expect("content");
    assert_eq!((stream, &payload[..]), (3, &b"held"[..]));
    // Before the request, whose response must not wait for its window.
    assert!(frames.send(SETTINGS, 0, 0, &[0, INITIAL_WINDOW_SIZE as u8, 0, 0, 1, 0]));
    assert!(frames.get(5, "/page.php"));
    let mut page = Vec::new();
    while page != b"whole" {
        let (_, _, stream, payload) = frames.next_of(DATA).expect("content");
        // The end of the other stream may be a separate frame.
        assert!(stream == 5 || payload.is_empty());
        page.extend(payload);
    }
}

#[test]
fn an_unread_connection_ends_despite_pings() {
    let site = site();
    let pagewell = site.serve("[limits]\nwrite_timeout = \"500ms\"\n");
    let mut frames = Frames::begin(&pagewell, &[(INITIAL_WINDOW_SIZE, 0)]);
    assert!(frames.get_all(&[(1, "/long.php?n=1000000&k=1"), (3, "/long.php?n=10&k=2")]));
    // The two ends may be a moment apart.
    while pings_until_reset(&mut frames).is_some() {}
    until("both are counted", || limit_hit(&pagewell, "write_timeout") == 2);
    until("it has gone", || counter(&pagewell, "connections") == 0);
}

#[test]
fn reading_a_byte_now_and_then_is_too_slow() {
    let site = site();
    let limits = "[limits]\nwrite_timeout = \"500ms\"\nwrite_rate = \"1M\"\n";
    let pagewell = site.serve(limits);
    let mut frames = Frames::begin(&pagewell, &[(INITIAL_WINDOW_SIZE, 0)]);
    assert!(frames.get(1, "/long.php?n=1000000&k=1"));
    while frames.send(WINDOW_UPDATE, 0, 1, &1_u32.to_be_bytes()) && frames.next_of(DATA).is_some() {
    }
    let hit = limit_hit(&pagewell, "write_rate") + limit_hit(&pagewell, "write_timeout");
    assert_eq!(hit, 1, "it may be the time on a machine that is busy");
}

#[test]
fn requests_per_address_are_limited_over_all_its_connections() {
    let site = site();
    site.file("held.php", "<?php wait_for('go'); echo 'held';");
    let pagewell = site.serve("connections_exempt = []\n[limits]\nhttp2_streams_per_address = 2\n");
    let mut held: Vec<_> = (0..2).map(|_| Frames::begin(&pagewell, &[])).collect();
    for (number, frames) in held.iter_mut().enumerate() {
        assert!(frames.get(1, &format!("/held.php?{number}")));
    }
    until("both are at the origin", || places(&pagewell) == 2);
    let mut third = Frames::begin(&pagewell, &[]);
    assert!(third.get(1, "/form.php"));
    let (.., payload) = third.next_of(DATA).expect("content");
    assert!(String::from_utf8_lossy(&payload).contains("too-many-streams"));
    assert_eq!(limit_hit(&pagewell, "http2_streams_per_address"), 1);
    site.note("go");
    held.iter_mut().for_each(|frames| assert!(frames.next_of(DATA).is_some()));
    until("there is a place again", || {
        let mut other = Frames::begin(&pagewell, &[]);
        other.get(1, "/page.php") && other.next_of(DATA).is_some_and(|(.., page)| page == b"whole")
    });
}

/// An origin that answers each request with 1 MB that is not to be stored.
fn heavy_origin() -> std::net::SocketAddr {
    const BYTES: usize = 1_000_000;
    let origin = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = origin.local_addr().expect("bound");
    let answer = |mut stream: TcpStream| {
        let (mut piece, mut asked) = ([0; 4096], Vec::new());
        while let Ok(count @ 1..) = stream.read(&mut piece) {
            asked.extend_from_slice(&piece[..count]);
            while let Some(end) = asked.windows(4).position(|end| end == b"\r\n\r\n") {
                asked.drain(..end + 4);
                let head = format!(
                    "HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Length: {BYTES}\r\n\r\n"
                );
                let written = stream.write_all(head.as_bytes());
                if written.and_then(|()| stream.write_all(&vec![b'x'; BYTES])).is_err() {
                    return;
                }
            }
        }
    };
    std::thread::spawn(move || {
        for stream in origin.incoming().flatten() {
            std::thread::spawn(move || answer(stream));
        }
    });
    address
}

/// Pagewell with a page budget of 64 MB in front of such an origin, and its resident memory at first, in bytes.
fn before_heavy_origin(limits: &str) -> (Pagewell, Site, u64) {
    let site = Site::new(&[]);
    let text = format!("site.origin = \"http://{}\"\n[limits]\n{limits}", heavy_origin());
    let file = site.at("heavy.toml");
    std::fs::write(&file, text).expect("written");
    let args = ["--memory", "64M", "--config", &file.display().to_string()];
    let pagewell = Pagewell::start(acceptance::binary(), &args).expect("it starts");
    let resident = pagewell.rss_bytes();
    (pagewell, site, resident)
}

const LIMITS: &str = "client_backlog_disk = \"2G\"\norigin_queue_timeout = \"1h\"\norigin_timeout = \"1h\"\n\
    write_timeout = \"1h\"\n";
const CONNECTIONS: usize = 10;
const STREAMS: u32 = 100;
/// The pause between two looks at all of them.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Sends all requests. Meanwhile the resident memory must stay within `most`.
fn ask_for_all(pagewell: &Pagewell, window: u32, resident: u64, most: u64) -> Vec<Frames> {
    let mut held = Vec::new();
    for _ in 0..CONNECTIONS {
        let socket = slow_client(pagewell);
        let mut frames = Frames::over(socket).settings(&[(INITIAL_WINDOW_SIZE, window)]);
        let _ = frames.send(WINDOW_UPDATE, 0, 0, &(1_u32 << 30).to_be_bytes());
        // A connection may be closed in the meantime.
        let _ = (0..STREAMS).all(|number| frames.get(2 * number + 1, &format!("/{number}")));
        held.push(frames);
        let now = pagewell.rss_bytes().saturating_sub(resident);
        assert!(now <= most, "{now} bytes are resident at {window}");
    }
    let asked = CONNECTIONS as u64 * u64::from(STREAMS);
    let are_all_answered = || {
        let now = pagewell.rss_bytes().saturating_sub(resident);
        assert!(now <= most, "{now} bytes are resident at {window}");
        // Connections may be closed before all of them have sent their requests.
        let have_asked = counter(pagewell, "renders") == asked
            || limit_hit(pagewell, "client_backlog_bytes") > 0;
        have_asked && places(pagewell) == 0 && counter(pagewell, "origin_queue") == 0
    };
    // A gigabyte of answers.
    let deadline = Deadline::after(BOUND * 10);
    let answered = deadline.poll(LOOK_EVERY, || are_all_answered().then_some(()));
    assert!(answered.is_some(), "not all is answered within {:?}", BOUND * 10);
    held
}

#[test]
fn a_thousand_stalled_streams_stay_within_the_limits() {
    const BACKLOG: u64 = 32 << 20;
    // Buffers of 64 origin connections, the state of a thousand requests, and free memory that the allocator
    // keeps.
    const BESIDE: u64 = 160 << 20;
    for window in [0, 1, 1 << 30] {
        let (pagewell, _site, resident) = before_heavy_origin(LIMITS);
        let held = ask_for_all(&pagewell, window, resident, BACKLOG + BESIDE);
        until("it is within its bound", || counter(&pagewell, "client_backlog_bytes") <= BACKLOG);
        if window == 0 {
            assert_eq!(limit_hit(&pagewell, "client_backlog_bytes"), 0, "the disk has room");
            assert!(counter(&pagewell, "client_backlog_disk_bytes") > 500 << 20);
        }
        let page = client(&pagewell).get("/other").expect("an answer");
        assert_eq!(page.content.len(), 1_000_000);
        drop(held);
        until("nothing waits", || counter(&pagewell, "client_backlog_bytes") == 0);
    }
}
