//! A site is purged repeatedly while clients request its pages, with hard and with soft changes. The test
//! checks the requests at the origin and the responses of the clients. The server runs in this process; the
//! origin is an HTTP server that counts the concurrent renders of each page.

use config::raw::File;
use config::{Address, resolve};
use harness::Client;
use history::ChangeSource;
use page_store::{ChangeTarget, Strength};
use pagewell::server::Server;
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use telemetry::clock::Clock;

const PAGES: usize = 20;
const VISITORS: usize = 4;
const FLUSHES: u64 = 10;
const NOBODY_PANICS: &str = "nobody panics under this lock";

/// An origin whose pages contain the version of the data that they depend on.
#[derive(Default)]
struct Origin {
    truth: AtomicU64,
    renders: AtomicU64,
    running: Mutex<HashMap<String, u64>>,
    most_of_a_page: AtomicU64,
}

impl Origin {
    fn start() -> (Arc<Origin>, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let (origin, address) =
            (Arc::new(Origin::default()), listener.local_addr().expect("it is bound"));
        let shared = origin.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let origin = shared.clone();
                thread::spawn(move || origin.serve(stream));
            }
        });
        (origin, address)
    }

    fn serve(&self, stream: TcpStream) {
        let mut reader = BufReader::new(stream.try_clone().expect("a second handle"));
        let mut stream = stream;
        let mut lines = Vec::new();
        let mut line = String::new();
        while reader.read_line(&mut line).is_ok_and(|read| read > 0) {
            if line.trim().is_empty() {
                let path: String = std::mem::take(&mut lines).remove(0);
                let content = self.render(&path).to_string();
                let head = "HTTP/1.1 200 OK\r\ncache-control: max-age=600\r\ncontent-length";
                let answer = format!("{head}: {}\r\n\r\n{content}", content.len());
                if stream.write_all(answer.as_bytes()).is_err() {
                    return;
                }
            } else {
                lines.push(line.clone());
            }
            line.clear();
        }
    }

    fn render(&self, request_line: &str) -> u64 {
        self.renders.fetch_add(1, SeqCst);
        let running = {
            let mut all = self.running.lock().expect(NOBODY_PANICS);
            let running = all.entry(request_line.to_owned()).or_insert(0);
            *running += 1;
            *running
        };
        self.most_of_a_page.fetch_max(running, SeqCst);
        let truth = self.truth.load(SeqCst);
        // Long enough for other requests to arrive.
        (0..500).for_each(|_| thread::yield_now());
        *self.running.lock().expect(NOBODY_PANICS).get_mut(request_line).expect("it runs") -= 1;
        truth
    }
}

/// Pagewell in front of the origin, with a clock that stands still.
struct Running {
    runtime: tokio::runtime::Runtime,
    server: Server,
    clock: Clock,
    origin: Arc<Origin>,
}

fn start(config: &str) -> Running {
    let (origin, address) = Origin::start();
    let text = format!(
        "listen = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\nmemory = \"16M\"\n\
         [site]\norigin = \"http://{address}\"\n{config}"
    );
    let file: File = toml::from_str(&text).expect("a good file");
    let clock = Clock::still();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let started =
        Server::start(Arc::new(resolve(&file).expect("a good configuration")), clock.clone());
    let server = runtime.block_on(started).expect("it starts");
    Running { runtime, server, clock, origin }
}

impl Running {
    fn client(&self) -> Client {
        let Address::Tcp(address) = &self.server.addresses()[0] else { panic!("it is TCP") };
        Client::new(*address).host("example.test")
    }

    /// Changes the data, and then purges all pages.
    fn flush(&self, strength: Strength) -> u64 {
        let truth = self.origin.truth.fetch_add(1, SeqCst) + 1;
        self.server.site().changes().apply(
            &[ChangeTarget::Everything],
            strength,
            ChangeSource::Memcached,
        );
        truth
    }

    fn renders(&self) -> u64 {
        self.origin.renders.load(SeqCst)
    }

    fn end(self) {
        drop(self.server);
        self.runtime.shutdown_timeout(Duration::from_secs(2));
    }
}

/// The version of the data in the page.
fn get(client: &mut Client, page: usize) -> u64 {
    let response = client.get(&format!("/{page}")).expect("an answer");
    assert_eq!(response.status, 200);
    String::from_utf8_lossy(&response.content).parse().expect("a number")
}

#[test]
fn a_flush_under_load_renders_each_page_once_at_a_time() {
    let running = start("[rewarm]\nenabled = true\npages_per_second = 1000\n");
    let (acknowledged, done) = (AtomicU64::new(0), AtomicBool::new(false));
    let answers = AtomicU64::new(0);
    thread::scope(|scope| {
        let visitors: Vec<_> = (0..VISITORS)
            .map(|visitor| {
                let (running, acknowledged, done) = (&running, &acknowledged, &done);
                let answers = &answers;
                scope.spawn(move || {
                    let mut client = running.client();
                    for n in visitor.. {
                        let must_see = acknowledged.load(SeqCst);
                        assert!(get(&mut client, n % PAGES) >= must_see, "a stale page");
                        answers.fetch_add(1, SeqCst);
                        if done.load(SeqCst) {
                            return;
                        }
                    }
                })
            })
            .collect();
        for flush in 0..FLUSHES {
            // A few hundred responses between two purges.
            while answers.load(SeqCst) < 200 * (flush + 1)
                && !visitors.iter().any(|v| v.is_finished())
            {
                thread::yield_now();
            }
            acknowledged.store(running.flush(Strength::Drop), SeqCst);
        }
        done.store(true, SeqCst);
    });
    let (renders, answers) = (running.renders(), answers.load(SeqCst));
    println!("{answers} answers, {FLUSHES} flushes of {PAGES} pages, {renders} renders");
    assert_eq!(running.origin.most_of_a_page.load(SeqCst), 1, "renders of a page at once");
    // Each purge costs one render per page, and one more if a render was in progress.
    assert!(renders <= 2 * (FLUSHES + 1) * PAGES as u64, "{renders} renders");
    running.end();
}

#[test]
fn a_marked_page_is_served_stale_while_one_render_refreshes_it() {
    let running = start("[cache]\nsoft_for = \"30s\"\n");
    let mut client = running.client();
    assert_eq!(get(&mut client, 0), 0);
    running.flush(Strength::Mark);
    // First the old page, and then the new one, which one render has produced.
    assert_eq!(get(&mut client, 0), 0);
    while get(&mut client, 0) != 1 {
        thread::yield_now();
    }
    assert_eq!(running.renders(), 2);
    // Too long after the change no client gets the old page. A second soft change does not extend this time.
    running.flush(Strength::Mark);
    running.clock.advance(Duration::from_secs(20));
    running.flush(Strength::Mark);
    running.clock.advance(Duration::from_secs(11));
    assert_eq!(get(&mut client, 0), 3);
    // A hard change removes the page at once.
    running.flush(Strength::Mark);
    running.flush(Strength::Drop);
    assert_eq!(get(&mut client, 0), 5);
    assert_eq!(running.renders(), 4);
    running.end();
}
