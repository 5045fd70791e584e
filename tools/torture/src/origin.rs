//! The origin: an HTTP/1.1 server of threads, one for each kept connection.
//!
//! It can refuse connections for a while: then its port is closed, and existing connections are
//! closed at their next request. It ends when it is dropped. Connections end when the other side
//! closes them, or after an idle time. Connections, heads and times are bounded. It counts its
//! renders, and the concurrent renders of one page.

use super::renders::Renders;
use super::script::{Faults, ReceivedRequest, Step, perform};
use super::site::Site;
use harness::Chance;
use harness::Port;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::thread::{self, JoinHandle, sleep};
use std::time::Duration;

/// More connections than Pagewell opens; further ones are closed at once.
const CONNECTIONS: usize = 512;
/// The longest line of a request, and the longest content.
const LINE_BYTES: u64 = 64 << 10;
/// How long a connection may be silent.
const SILENCE: Duration = Duration::from_secs(60);
/// How often a listener that refuses looks whether it still should.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// A running origin; it ends when it is dropped.
pub struct Origin {
    shared: Arc<OriginState>,
    listening: Option<JoinHandle<()>>,
}

struct OriginState {
    site: Arc<Site>,
    faults: Faults,
    seed: u64,
    port: Port,
    refusing: AtomicBool,
    stopping: AtomicBool,
    connections: AtomicUsize,
    accepted: AtomicU64,
    cut: AtomicU64,
    renders: Renders,
}

impl Origin {
    /// Starts it on a port of its own.
    ///
    /// # Errors
    /// Those of the system.
    pub fn start(site: &Arc<Site>, seed: u64, faults: Faults) -> io::Result<Origin> {
        let shared = Arc::new(OriginState {
            site: site.clone(),
            faults,
            seed,
            port: Port::take()?,
            refusing: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            connections: AtomicUsize::new(0),
            accepted: AtomicU64::new(0),
            cut: AtomicU64::new(0),
            renders: Renders::new(site.pages.len()),
        });
        let listener = TcpListener::bind(shared.port.address())?;
        let listening = thread::Builder::new().name("origin".into()).spawn({
            let shared = shared.clone();
            move || listen(&shared, listener)
        })?;
        Ok(Origin { shared, listening: Some(listening) })
    }

    /// The address at which it listens.
    pub fn address(&self) -> SocketAddr {
        self.shared.port.address()
    }

    /// Refuses connections for so long.
    pub fn refuse_for(&self, time: Duration) {
        self.shared.refusing.store(true, SeqCst);
        self.wake();
        sleep(time);
        self.shared.refusing.store(false, SeqCst);
    }

    /// How many answers it has cut.
    pub fn cut(&self) -> u64 {
        self.shared.cut.load(SeqCst)
    }

    /// The renders of each page, counted.
    pub fn renders(&self) -> &Renders {
        &self.shared.renders
    }

    /// The listener looks at its orders when somebody connects.
    fn wake(&self) {
        let _ = TcpStream::connect(self.address());
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.shared.stopping.store(true, SeqCst);
        let Some(listening) = self.listening.take() else { return };
        // One call may come between two listeners.
        while !listening.is_finished() {
            self.wake();
            sleep(LOOK_EVERY);
        }
        let _ = listening.join();
    }
}

impl OriginState {
    fn is(&self, order: &AtomicBool) -> bool {
        order.load(SeqCst)
    }
}

fn listen(shared: &Arc<OriginState>, first: TcpListener) {
    let mut listener = Some(first);
    while !shared.is(&shared.stopping) {
        if let Some(open) = listener.take().or_else(|| TcpListener::bind(shared.address()).ok()) {
            accept(shared, &open);
        }
        while shared.is(&shared.refusing) && !shared.is(&shared.stopping) {
            sleep(LOOK_EVERY);
        }
    }
}

impl OriginState {
    fn address(&self) -> SocketAddr {
        self.port.address()
    }
}

/// Accepts until there is another order.
fn accept(shared: &Arc<OriginState>, listener: &TcpListener) {
    for stream in listener.incoming() {
        if shared.is(&shared.stopping) || shared.is(&shared.refusing) {
            return;
        }
        let Ok(stream) = stream else { continue };
        if shared.connections.fetch_add(1, SeqCst) >= CONNECTIONS {
            shared.connections.fetch_sub(1, SeqCst);
            continue;
        }
        let stream_number = shared.accepted.fetch_add(1, SeqCst);
        let shared = shared.clone();
        let _ = thread::Builder::new().name("origin connection".into()).spawn(move || {
            // The other side may be gone at any moment: that ends the connection, nothing else.
            let _ = serve(&shared, stream, Chance::new(shared.seed, 1 << 32 | stream_number));
            shared.connections.fetch_sub(1, SeqCst);
        });
    }
}

fn serve(shared: &OriginState, mut stream: TcpStream, mut chance: Chance) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(SILENCE))?;
    stream.set_write_timeout(Some(SILENCE))?;
    let mut reader = BufReader::new(stream.try_clone()?);
    while let Some(asked) = read_request(&mut reader)? {
        if shared.is(&shared.refusing) {
            return Ok(());
        }
        let page = shared.site.page_at(&asked.target).filter(|_| asked.method == "GET");
        let mut running = page.map(|page| shared.renders.begin(page));
        let steps = perform(&shared.site, &asked, shared.faults, &mut chance);
        let last = steps.iter().rposition(|step| matches!(step, Step::Send(_)));
        for (at, step) in steps.into_iter().enumerate() {
            if Some(at) == last {
                // A client that has the last byte may send its next request at once.
                running = None;
            }
            match step {
                Step::Send(bytes) => stream.write_all(&bytes)?,
                Step::Pause(time) => sleep(time),
                Step::Cut => {
                    shared.cut.fetch_add(1, SeqCst);
                    return Ok(());
                }
            }
        }
        drop(running);
    }
    Ok(())
}

/// The next request; none when the other side has closed the connection.
fn read_request(from: &mut impl BufRead) -> io::Result<Option<ReceivedRequest>> {
    let Some(first) = line(from)? else { return Ok(None) };
    let mut words = first.split(' ');
    let mut word = || words.next().unwrap_or_default().to_owned();
    let mut asked =
        ReceivedRequest { method: word(), target: word(), ..ReceivedRequest::default() };
    let mut content_bytes = 0;
    while let Some(field) = line(from)? {
        if field.is_empty() {
            break;
        }
        let (name, value) = field.split_once(':').unwrap_or((&field, ""));
        let value = value.trim();
        match name.to_ascii_lowercase().as_str() {
            "if-none-match" => asked.condition = Some(value.to_owned()),
            "x-variant" => asked.variant = value.chars().next(),
            "content-length" => content_bytes = value.parse().unwrap_or(0),
            _ => {}
        }
    }
    io::copy(&mut from.take(content_bytes), &mut io::sink())?;
    Ok(Some(asked))
}

fn line(from: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut text = String::new();
    if from.take(LINE_BYTES).read_line(&mut text)? == 0 {
        return Ok(None);
    }
    Ok(Some(text.trim_end().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use harness::{Client, Deadline, Request};

    #[test]
    fn serves_refuses_and_serves_again() {
        let site = Arc::new(Site::new(1, 60, 10));
        let origin = Origin::start(&site, 1, Faults::Off).expect("it starts");
        let mut client = Client::new(origin.address());
        let page = client.get("/page/1").expect("it answers");
        assert_eq!(page.header("x-made-from"), Some("1 - 0.0.0.0.0"));
        let posted = Request::new("POST", "/page/1").content(b"text");
        assert_eq!(client.send(&posted).expect("it answers").header("x-committed"), Some("61:1"));
        origin.shared.refusing.store(true, SeqCst);
        origin.wake();
        // The kept connection is closed, and then there is no other.
        assert!(client.send(&posted).is_err());
        origin.shared.refusing.store(false, SeqCst);
        let deadline = Deadline::after(SILENCE);
        while client.get("/page/1").is_err() {
            assert!(!deadline.passed(), "it goes on refusing");
        }
        assert_eq!(origin.cut(), 0);
    }

    #[test]
    fn requests_are_read_with_their_content() {
        let mut wire = "POST /a?b HTTP/1.1\r\nContent-Length: 3\r\nX-Variant: b\r\n\r\nxyz\
                        GET /c HTTP/1.1\r\nIf-None-Match: \"1\"\r\n\r\n"
            .as_bytes();
        let first = read_request(&mut wire).expect("text").expect("a request");
        assert_eq!((first.method.as_str(), first.target.as_str()), ("POST", "/a?b"));
        assert_eq!(first.variant, Some('b'));
        let second = read_request(&mut wire).expect("text").expect("another");
        assert_eq!((second.target.as_str(), second.condition.as_deref()), ("/c", Some("\"1\"")));
        assert_eq!(read_request(&mut wire).expect("text"), None);
    }
}
