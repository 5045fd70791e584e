//! Clients that request long pages and do not read them, with the real binary. The memory for them is limited
//! (`limits.client_backlog_bytes`), and the slowest are disconnected, over HTTP/1.1 and HTTP/2. Clients that
//! read get their whole page. Each client has a receive buffer of a few kilobytes, so that its unread data
//! waits in Pagewell.

use acceptance::{binary, client, counter, is_hit, limit_hit, slow_client, until};
use harness::{Pagewell, PrivateDir, page_origin};
use std::fs;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

/// The length of each page in bytes.
const PAGE_BYTES: usize = 3 << 20;
const MEMORY_BYTES: usize = 32 << 20;
const BACKLOG_BYTES: usize = 12 << 20;
/// Clients that do not read. Four of their pages fit into the backlog limit, and ten into the store.
const CLIENTS: usize = 60;
const CUT_MIN: u64 = 40;
/// The allowed memory in addition: buffers of pages that are being received. At most two of them grow at the
/// same time.
const BESIDE_BYTES: usize = 32 << 20;

/// Pagewell in front of an origin with a different page for each URL.
struct UnreadPages {
    pagewell: Pagewell,
    _dir: PrivateDir,
    /// The resident memory at first, in bytes.
    resident: usize,
}

fn serve() -> UnreadPages {
    let dir = PrivateDir::temporary("backlog").expect("a directory can be made");
    let config = dir.path().join("pagewell.toml");
    let text = format!(
        "memory = \"{MEMORY_BYTES}\"\n[limits]\nclient_backlog_bytes = \"{BACKLOG_BYTES}\"\npage_bytes = \"4M\"\n\
         write_timeout = \"1h\"\n"
    );
    fs::write(&config, text).expect("a file can be written");
    let origin = format!("http://{}", page_origin(PAGE_BYTES).expect("an origin"));
    let config = config.display().to_string();
    let args = ["--origin", &origin, "--config", &config];
    let pagewell = Pagewell::start(binary(), &args).expect("pagewell starts");
    let resident = pagewell.rss_bytes() as usize;
    UnreadPages { pagewell, _dir: dir, resident }
}

impl UnreadPages {
    /// The number of clients that were disconnected.
    fn cut(&self) -> u64 {
        limit_hit(&self.pagewell, "client_backlog_bytes")
    }

    fn backlog(&self) -> usize {
        counter(&self.pagewell, "client_backlog_bytes") as usize
    }

    fn is_bounded(&self) {
        until("what waits is within its bound", || self.backlog() <= BACKLOG_BYTES);
        let resident = self.pagewell.rss_bytes() as usize - self.resident;
        assert!(
            resident <= MEMORY_BYTES + BACKLOG_BYTES + BESIDE_BYTES,
            "{resident} bytes are resident"
        );
    }

    /// Each client requests its own page, and the next one starts when it has arrived.
    fn each(&self, mut ask: impl FnMut(usize), mut meanwhile: impl FnMut()) {
        for number in 0..CLIENTS {
            let before = counter(&self.pagewell, "stored");
            ask(number);
            until("it has come", || counter(&self.pagewell, "stored") > before);
            meanwhile();
            self.is_bounded();
        }
    }
}

/// A client that has sent a request over HTTP/1.1.
fn asks(pagewell: &Pagewell, target: &str) -> TcpStream {
    let mut stream = slow_client(pagewell);
    let request = format!("GET {target} HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("sent");
    stream
}

/// The number of bytes until the end; `None` if the response breaks off.
fn all_of(stream: &mut TcpStream) -> Option<usize> {
    let mut all = Vec::new();
    stream.read_to_end(&mut all).ok()?;
    let head = all.windows(4).position(|end| end == b"\r\n\r\n")? + 4;
    Some(all.len() - head).filter(|bytes| *bytes == PAGE_BYTES)
}

#[test]
fn unread_pages_do_not_fill_memory_and_readers_get_theirs() {
    let served = serve();
    let mut fair = asks(&served.pagewell, "/fair");
    until("it has come", || counter(&served.pagewell, "stored") == 1);
    let mut piece = vec![0; PAGE_BYTES / CLIENTS - (1 << 10)];
    let (mut held, mut read) = (Vec::new(), 0);
    served.each(
        |number| held.push(asks(&served.pagewell, &format!("/slow/{number}"))),
        || {
            fair.read_exact(&mut piece).expect("he gets more of it");
            read += piece.len();
        },
    );
    until("the slowest are cut off", || served.cut() >= CUT_MIN);
    let mut rest = Vec::new();
    fair.read_to_end(&mut rest).expect("he gets the rest");
    assert!(read + rest.len() > PAGE_BYTES, "head and content");
    // Clients that were not disconnected can still read; a client that requests another page gets it.
    let whole = held.iter_mut().filter_map(all_of).count();
    assert!((1..=CLIENTS - CUT_MIN as usize).contains(&whole), "{whole} got all of it");
    let other = client(&served.pagewell).get("/other").expect("an answer");
    assert_eq!(other.content.len(), PAGE_BYTES);
    until("nothing waits", || served.backlog() == 0);
}

#[test]
fn replaced_pages_that_wait_do_not_fill_memory() {
    let served = serve();
    let mut reader = client(&served.pagewell).host("a.test");
    let mut held = Vec::new();
    for number in 0..CLIENTS {
        assert_eq!(reader.get("/page").expect("an answer").content.len(), PAGE_BYTES);
        let before = counter(&served.pagewell, "hits");
        held.push(asks(&served.pagewell, "/page"));
        until("it is a hit", || counter(&served.pagewell, "hits") > before);
        let everything = served.pagewell.invalidate(r#"{"all":true}"#);
        assert_eq!(everything.expect("an answer").status, 200, "the {number}th");
        served.is_bounded();
    }
    until("the slowest are cut off", || served.cut() >= CUT_MIN);
    let whole = held.iter_mut().filter_map(all_of).count();
    assert!((1..=CLIENTS - CUT_MIN as usize).contains(&whole), "{whole} got all of it");
    until("nothing waits", || served.backlog() == 0);
}

#[test]
fn a_stored_page_does_not_count_for_waiting_clients() {
    let served = serve();
    let mut reader = client(&served.pagewell).host("a.test");
    assert_eq!(reader.get("/page").expect("an answer").content.len(), PAGE_BYTES);
    let mut held: Vec<_> = (0..CLIENTS).map(|_| asks(&served.pagewell, "/page")).collect();
    until("they are waited for", || counter(&served.pagewell, "hits") >= CLIENTS as u64);
    until("none of it counts", || served.backlog() == 0);
    assert_eq!(held.iter_mut().filter_map(all_of).count(), CLIENTS);
    assert_eq!(served.cut(), 0);
    assert!(is_hit(&reader.get("/page").expect("an answer")));
}

/// An HTTP/2 client (RFC 9113).
struct Http2(TcpStream);

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const WINDOW_UPDATE: u8 = 8;
const END_STREAM: u8 = 0x1;
const END_HEADERS: u8 = 0x4;

impl Http2 {
    fn begin(pagewell: &Pagewell) -> Http2 {
        let mut http2 = Http2(slow_client(pagewell));
        http2.0.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").expect("sent");
        http2.frame(SETTINGS, 0, 0, &[]).expect("sent");
        http2
    }

    fn frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> io::Result<()> {
        let length = (payload.len() as u32).to_be_bytes();
        let head = [&length[1..], &[kind, flags], &stream.to_be_bytes()[..]].concat();
        self.0.write_all(&[&head, payload].concat())
    }

    fn get(&mut self, stream: u32, path: &str) -> io::Result<()> {
        self.get_with(stream, path, &[])
    }

    /// Sends a request. Each field is a literal, or one of the first entries of the static table; `more`
    /// follows them.
    fn get_with(&mut self, stream: u32, path: &str, more: &[u8]) -> io::Result<()> {
        let path = [&[0x04, path.len() as u8], path.as_bytes()].concat();
        let block = [&[0x82, 0x86][..], &path, &[0x01, 6], b"a.test", more].concat();
        self.frame(HEADERS, END_HEADERS | END_STREAM, stream, &block)
    }

    /// Reads a frame, and increases the window by its length. Returns the length of its content, and whether it
    /// was the last frame.
    fn read(&mut self) -> io::Result<(usize, bool)> {
        let mut head = [0; 9];
        self.0.read_exact(&mut head)?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        self.0.read_exact(&mut vec![0; length as usize])?;
        if head[3] != DATA {
            return Ok((0, false));
        }
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        for stream in [0, stream].into_iter().filter(|_| length > 0) {
            self.frame(WINDOW_UPDATE, 0, stream, &length.to_be_bytes())?;
        }
        Ok((length as usize, head[4] & END_STREAM != 0))
    }

    /// Reads at least this number of content bytes, or until the end.
    fn read_some(&mut self, bytes: usize) -> usize {
        let mut read = 0;
        while read < bytes {
            let (more, is_last) = self.read().expect("he gets more of it");
            read += more;
            if is_last {
                break;
            }
        }
        read
    }
}

#[test]
fn unread_pages_over_http2_do_not_fill_memory() {
    let served = serve();
    let mut fair = Http2::begin(&served.pagewell);
    fair.get(1, "/fair").expect("sent");
    until("it has come", || counter(&served.pagewell, "stored") == 1);
    let (mut held, mut read) = (Vec::new(), 0);
    served.each(
        |number| {
            // The windows keep their initial size.
            let mut http2 = Http2::begin(&served.pagewell);
            http2.get(1, &format!("/slow/{number}")).expect("sent");
            held.push(http2);
        },
        || read += fair.read_some(PAGE_BYTES / CLIENTS - (16 << 10)),
    );
    until("the slowest are cut off", || served.cut() >= CUT_MIN);
    read += fair.read_some(PAGE_BYTES - read);
    assert_eq!(read, PAGE_BYTES);
    drop(held);
    until("nothing waits", || served.backlog() == 0);
}

#[test]
fn an_http2_connection_with_many_requests_is_closed_as_one() {
    let served = serve();
    let mut http2 = Http2::begin(&served.pagewell);
    // One after the other: of pages that come at the same time, only some are collected.
    for number in 0..20 {
        let before = counter(&served.pagewell, "stored");
        // The connection may have been closed by now.
        let is_sent = http2.get(2 * number + 1, &format!("/slow/{number}")).is_ok();
        let is_over = || !is_sent || served.cut() > 0;
        until("it has come", || is_over() || counter(&served.pagewell, "stored") > before);
    }
    until("it is cut off", || served.cut() == 1);
    until("nothing waits", || served.backlog() == 0);
    let mut content = Vec::new();
    let _ = http2.0.read_to_end(&mut content);
    assert!(content.len() < PAGE_BYTES, "what the windows had");
}

#[test]
fn one_unread_byte_does_not_keep_a_whole_page_in_memory() {
    const WINDOW_OF_NONE: [u8; 6] = [0, 4, 0, 0, 0, 0];
    const RANGE: &[u8] = b"\x00\x05range\x09bytes=0-0";
    let served = serve();
    let mut reader = client(&served.pagewell).host("a.test");
    let mut http2 = Http2::begin(&served.pagewell);
    http2.frame(SETTINGS, 0, 0, &WINDOW_OF_NONE).expect("sent");
    for number in 0..CLIENTS {
        let path = format!("/page/{number}");
        assert_eq!(reader.get(&path).expect("an answer").content.len(), PAGE_BYTES);
        let before = counter(&served.pagewell, "hits");
        http2.get_with(2 * number as u32 + 1, &path, RANGE).expect("sent");
        until("it is a hit", || counter(&served.pagewell, "hits") > before);
        served.is_bounded();
    }
    until("none of it counts", || served.backlog() == 0);
    assert_eq!(served.cut(), 0);
}

/// Reads up to the end of a header section.
fn read_head(stream: &mut TcpStream) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("a header section");
        head.push(byte[0]);
    }
}

/// Accepts requests, and sends of each response all but the last byte. Sends that when `go` says so.
fn unfinished_origin(requests: usize) -> (String, Sender<()>, Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it has one");
    let ((go, told), (arrived, all_sent)) = (channel::<()>(), channel());
    thread::spawn(move || {
        let mut open = Vec::new();
        for stream in listener.incoming().take(requests) {
            let mut stream = stream.expect("accepted");
            read_head(&mut stream);
            let fields = "HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nConnection: close\r\n";
            let head = format!("{fields}Content-Length: {PAGE_BYTES}\r\n\r\n");
            stream.write_all(head.as_bytes()).expect("sent");
            stream.write_all(&vec![b'x'; PAGE_BYTES - 1]).expect("sent");
            let _ = arrived.send(());
            open.push(stream);
        }
        // The test is over if nothing comes.
        if told.recv().is_ok() {
            open.iter_mut().for_each(|stream| stream.write_all(b"x").expect("sent"));
        }
    });
    (format!("http://{address}"), go, all_sent)
}

#[test]
fn pages_that_are_collected_at_the_same_time_have_a_bound_together() {
    /// Two pages fit into half of the bound, with a little for their clients.
    const COLLECTED_BYTES: usize = 16 << 20;
    const FITTING: usize = 2;
    const PAGES: usize = 6;
    let backlog = |pagewell: &Pagewell| counter(pagewell, "client_backlog_bytes") as usize;
    let dir = PrivateDir::temporary("collected").expect("a directory can be made");
    let config = dir.path().join("pagewell.toml");
    let text = format!(
        "memory = \"64M\"\n[limits]\nclient_backlog_bytes = \"{COLLECTED_BYTES}\"\npage_bytes = \"4M\"\n\
         write_timeout = \"1h\"\norigin_timeout = \"1h\"\n"
    );
    fs::write(&config, text).expect("a file can be written");
    let (origin, go, all_sent) = unfinished_origin(PAGES);
    let config = config.display().to_string();
    let args = ["--origin", &origin, "--config", &config];
    let pagewell = Pagewell::start(binary(), &args).expect("pagewell starts");
    // A client that has read all but the last byte shows that all but the last byte is collected.
    let mut fitting: Vec<TcpStream> = Vec::new();
    for page in 0..FITTING {
        let mut stream = asks(&pagewell, &format!("/{page}"));
        all_sent.recv().expect("the origin has sent a page");
        read_head(&mut stream);
        stream.read_exact(&mut vec![0; PAGE_BYTES - 1]).expect("its content");
        fitting.push(stream);
    }
    assert!(backlog(&pagewell) >= FITTING * (PAGE_BYTES - 1));
    let mut others = Vec::new();
    for refused in 1..=PAGES - FITTING {
        others.push(asks(&pagewell, &format!("/other/{refused}")));
        all_sent.recv().expect("the origin has sent a page");
        until("it is not stored", || counter(&pagewell, "not_stored") == refused as u64);
        until("what waits is within its bound", || backlog(&pagewell) <= COLLECTED_BYTES);
    }
    go.send(()).expect("the origin waits");
    for stream in &mut fitting {
        stream.read_exact(&mut [0]).expect("the last byte");
    }
    let readers = others.into_iter().map(|mut stream| thread::spawn(move || all_of(&mut stream)));
    for reader in readers.collect::<Vec<_>>() {
        assert_eq!(reader.join().expect("no panic"), Some(PAGE_BYTES));
    }
    until("two are stored", || counter(&pagewell, "stored") == FITTING as u64);
}
