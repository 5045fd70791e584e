//! Two HTTP servers as the origin. One of them is killed under load, comes back, or does not answer. They are played by
//! the test, so that a kill is a kill: all connections are reset, and the port is closed at once.
//!
//! Failover with nginx, TLS and checks is in `several_origins`.

use acceptance::{Raw, Site, asked_again, cache_status, client, until};
use harness::{Address, Pagewell, Port, Request};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

/// A server with a name, which it says in each answer.
struct PlayedServer {
    name: &'static str,
    /// Stays reserved while nobody listens.
    port: Arc<Port>,
    address: SocketAddr,
    state: Arc<ServerState>,
    accepts: Option<JoinHandle<()>>,
}

/// The state of a played server, shared with its connections.
#[derive(Default)]
struct ServerState {
    is_killed: AtomicBool,
    requests: AtomicUsize,
    streams: Mutex<Vec<TcpStream>>,
}

impl PlayedServer {
    fn start(name: &'static str) -> PlayedServer {
        PlayedServer::at(Arc::new(Port::take().expect("a port")), name)
    }

    fn at(port: Arc<Port>, name: &'static str) -> PlayedServer {
        let address = port.address();
        let listener = TcpListener::bind(address).expect("it is reserved");
        let state = Arc::new(ServerState::default());
        let of_connections = state.clone();
        let accepts = Some(thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if of_connections.is_killed.load(Ordering::Acquire) {
                    return;
                }
                let state = of_connections.clone();
                let known = stream.try_clone().expect("a stream");
                state.streams.lock().unwrap_or_else(PoisonError::into_inner).push(known);
                thread::spawn(move || serve(stream, name, &state));
            }
        }));
        PlayedServer { name, port, address, state, accepts }
    }

    fn requests(&self) -> usize {
        self.state.requests.load(Ordering::Acquire)
    }

    /// Closes the port and all connections.
    fn kill(&mut self) {
        self.state.is_killed.store(true, Ordering::Release);
        // Ends the accepting thread, which closes the port.
        let _ = TcpStream::connect(self.address);
        self.accepts.take().expect("it runs").join().expect("it has ended");
        assert!(Address::from(self.address).closes());
        let mut streams = self.state.streams.lock().unwrap_or_else(PoisonError::into_inner);
        for stream in streams.drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// The same server at its port again.
    fn restarted(&self) -> PlayedServer {
        PlayedServer::at(self.port.clone(), self.name)
    }
}

/// Answers the requests of a connection until it ends.
fn serve(mut stream: TcpStream, name: &str, state: &ServerState) {
    let mut byte = [0];
    while stream.peek(&mut byte).is_ok_and(|length| length == 1) {
        let head = asked_again(&mut stream);
        read_content(&mut stream, &head);
        state.requests.fetch_add(1, Ordering::AcqRel);
        let answer = if head.contains("upgrade: websocket") {
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
                .to_owned()
        } else if head.starts_with("get /silent") {
            continue;
        } else {
            let caching = if head.starts_with("get /stale") {
                "max-age=0, stale-if-error=600"
            } else {
                "no-store"
            };
            let length = name.len();
            format!(
                "HTTP/1.1 200 OK\r\nCache-Control: {caching}\r\nContent-Length: {length}\r\n\r\n{name}"
            )
        };
        if stream.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

/// Reads the content `a=b`, if the request has it.
fn read_content(stream: &mut TcpStream, head: &str) {
    let end: &[u8] = if head.contains("transfer-encoding: chunked") {
        b"0\r\n\r\n"
    } else if head.contains("content-length: 3\r\n") {
        b"a=b"
    } else {
        b""
    };
    let mut content = Vec::new();
    let mut byte = [0];
    while !content.ends_with(end) && stream.read_exact(&mut byte).is_ok() {
        content.push(byte[0]);
    }
}

/// Pagewell in front of two servers.
fn before(one: &PlayedServer, two: &PlayedServer, more: &str) -> (Pagewell, Site) {
    let site = Site::new(&[]);
    let origin = format!("origin = [\"http://{}\", \"http://{}\"]", one.address, two.address);
    let file = site.at("origin.toml");
    std::fs::write(&file, format!("{more}\n[site]\n{origin}\n")).expect("written");
    let args = ["--memory", "64M", "--config", &file.display().to_string()];
    (Pagewell::start(acceptance::binary(), &args).expect("pagewell starts"), site)
}

#[test]
fn a_server_that_is_killed_under_load_fails_no_get_and_comes_back() {
    const CLIENTS: usize = 8;
    let (mut one, mut two) = (PlayedServer::start("one"), PlayedServer::start("two"));
    let (pagewell, _site) = before(&one, &two, "");
    let under_load = Barrier::new(CLIENTS + 1);
    thread::scope(|scope| {
        for number in 0..CLIENTS {
            let (pagewell, under_load) = (&pagewell, &under_load);
            scope.spawn(move || {
                let mut client = client(pagewell);
                for request in 0..60 {
                    if request == 20 {
                        under_load.wait();
                    }
                    let response = client.get(&format!("/{number}/{request}")).expect("an answer");
                    let found = (response.status, response.text());
                    assert_eq!(found.0, 200, "{}\n{}", cache_status(&response), pagewell.log());
                    assert!(matches!(&*found.1, "one" | "two"), "{found:?}");
                }
            });
        }
        under_load.wait();
        one.kill();
    });
    assert!(one.requests() > 0 && two.requests() > 0);
    // It is left out for 10 s, and gets requests again.
    let one_again = one.restarted();
    until("the server is back", || {
        let response = client(&pagewell).get("/").expect("an answer");
        assert_eq!(response.status, 200);
        one_again.requests() > 0
    });
    two.kill();
    assert_eq!(client(&pagewell).get("/").expect("an answer").text(), "one");
}

#[test]
fn a_stale_page_answers_while_all_servers_are_out() {
    let (mut one, mut two) = (PlayedServer::start("one"), PlayedServer::start("two"));
    let (pagewell, _site) = before(&one, &two, "");
    let stored = client(&pagewell).get("/stale").expect("an answer");
    assert!(cache_status(&stored).contains("stored"), "{}", cache_status(&stored));
    one.kill();
    two.kill();
    for (path, status) in [("/stale", 200), ("/other", 502), ("/stale", 200)] {
        let response = client(&pagewell).get(path).expect("an answer");
        assert_eq!(response.status, status, "{}", cache_status(&response));
    }
}

#[test]
fn a_server_that_does_not_answer_is_not_replaced_for_that_request() {
    let (one, two) = (PlayedServer::start("one"), PlayedServer::start("two"));
    let (pagewell, _site) = before(&one, &two, "[limits]\norigin_timeout = \"500ms\"");
    let response = client(&pagewell).get("/silent").expect("an answer");
    assert_eq!(response.status, 504, "{}", cache_status(&response));
    // A played server may be slower than the time limit.
    until("a server gets it", || one.requests() + two.requests() > 0);
    assert_eq!(one.requests() + two.requests(), 1, "no other server gets it");
    until("they answer others", || client(&pagewell).get("/").expect("an answer").status == 200);
}

#[test]
fn a_get_with_content_is_sent_once() {
    let (one, mut two) = (PlayedServer::start("one"), PlayedServer::start("two"));
    let lost = TcpListener::bind("127.0.0.1:0").expect("a port");
    two.kill();
    two.address = lost.local_addr().expect("bound");
    let (pagewell, _site) = before(&one, &two, "");
    // This one reads each request, and closes the connection.
    thread::spawn(move || {
        while let Ok((mut stream, _)) = lost.accept() {
            asked_again(&mut stream);
        }
    });
    let mut client = client(&pagewell);
    let request = Request::get("/").content(b"a=b");
    // Which server a request goes to is a matter of turns and of requests in flight.
    let mut status = || client.send(&request).expect("an answer").status;
    let statuses: Vec<u16> = (0..8).map(|_| status()).collect();
    let count = |status: u16| statuses.iter().filter(|known| **known == status).count();
    assert!(count(502) > 0 && count(200) > 0 && count(502) + count(200) == 8, "{statuses:?}");
    assert_eq!(one.requests(), count(200), "none is repeated at the other server");
}

#[test]
fn an_upgrade_reaches_the_server_that_is_left() {
    let (mut one, two) = (PlayedServer::start("one"), PlayedServer::start("two"));
    let (pagewell, _site) = before(&one, &two, "");
    one.kill();
    for number in 1..=2 {
        let asks =
            "GET /chat HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
        let mut raw = Raw::with(&pagewell, asks);
        assert!(raw.until("\r\n\r\n").starts_with("HTTP/1.1 101 "), "{}", pagewell.log());
        assert_eq!(two.requests(), number);
    }
}
