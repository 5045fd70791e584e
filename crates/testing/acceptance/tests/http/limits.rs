//! Limits for connections and slow clients in the real binary: the behaviour at each limit, service for clients
//! within the limits, and the counter for each limit. No test depends on the speed of the machine: slow clients
//! are much slower than the limit, and continue until the limit applies.

use acceptance::{Raw, Site, binary, client, counter, is_hit, until};
use harness::{Client, Pagewell};
use serde_json::Value;
use socket2::{Domain, Socket, Type};
use std::io::Read;
use std::time::Duration;

const PAGE: &str = "<?php keep(); echo 'whole';";
/// The pause of a slow client between two bytes. Their number depends on the machine.
const SLOWLY: Duration = Duration::from_millis(10);

/// The number of times that a limit was reached, which must be the same in JSON and in the metrics.
fn hit(pagewell: &Pagewell, limit: &str) -> u64 {
    let mut admin = Client::new(pagewell.admin().clone());
    let mut before = None;
    loop {
        let stats = admin.get("/v1/stats").expect("an answer");
        let stats: Value = serde_json::from_slice(&stats.content).expect("JSON");
        let count = stats["limits_hit"][limit].as_u64().unwrap_or_else(|| panic!("no {limit}"));
        let metrics = admin.get("/metrics").expect("an answer").text();
        if metrics.contains(&format!("\npagewell_limits_hit_total{{limit=\"{limit}\"}} {count}\n"))
        {
            return count;
        }
        // It was reached once more between the two.
        assert_ne!(before.replace(count), Some(count), "{metrics}");
    }
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: a.test\r\n\r\n")
}

#[test]
fn a_client_waits_when_all_connections_are_in_use() {
    let site = Site::new(&[("page.php", PAGE)]);
    let pagewell = site.serve("[limits]\nconnections = 2\n");
    let mut held: Vec<_> = (0..2).map(|_| Raw::with(&pagewell, get("/page.php"))).collect();
    for one in &mut held {
        assert_eq!(one.answer().content, "whole");
    }
    let mut waits = Raw::with(&pagewell, get("/page.php"));
    until("somebody waits", || hit(&pagewell, "connections") > 0);
    assert_eq!(counter(&pagewell, "connections"), 2);
    held.pop();
    assert_eq!(waits.answer().content, "whole");
}

#[test]
fn connections_are_limited_per_address() {
    let site = Site::new(&[("page.php", PAGE)]);
    let (plain, proxied) = (site.at("plain.sock"), site.at("proxied.sock"));
    let config = format!(
        "proxy_protocol = \"unix:{}\"\ntrusted_proxies = [\"unix\"]\nconnections_exempt = []\n\
         [limits]\nconnections_per_address = 3\n",
        proxied.display()
    );
    let file = site.config(&config, "").display().to_string();
    let sockets = [&plain, &proxied].map(|socket| format!("unix:{}", socket.display()));
    let pagewell = site.serve_with_args(&[
        "--config",
        &file,
        "--listen",
        "127.0.0.1:0",
        "--listen",
        &sockets[0],
        "--listen",
        &sockets[1],
    ]);
    let mut held: Vec<_> = (0..3).map(|_| Raw::with(&pagewell, get("/page.php"))).collect();
    for one in &mut held {
        assert_eq!(one.answer().content, "whole");
    }
    assert_eq!(Raw::with(&pagewell, get("/page.php")).rest(), "", "the fourth is closed");
    assert_eq!(hit(&pagewell, "connections_per_address"), 1);
    // A proxy's connections belong to its clients, which only the PROXY protocol names.
    let ask = |socket: &std::path::Path, first: &str| {
        let mut client = std::os::unix::net::UnixStream::connect(socket).expect("it listens");
        std::io::Write::write_all(&mut client, format!("{first}{}", get("/page.php")).as_bytes())
            .expect("sent");
        client
    };
    let served = |client: &mut std::os::unix::net::UnixStream| {
        let mut begin = [0; 12];
        client.read_exact(&mut begin).is_ok() && begin == *b"HTTP/1.1 200"
    };
    let mut many: Vec<_> = (0..8).map(|_| ask(&plain, "")).collect();
    assert!(many.iter_mut().all(served));
    let from = |host: u8| format!("PROXY TCP4 192.0.2.{host} 192.0.2.99 1000 80\r\n");
    let mut named: Vec<_> = (0..4).map(|_| ask(&proxied, &from(1))).collect();
    assert_eq!(named.iter_mut().filter_map(|one| served(one).then_some(())).count(), 3);
    assert!(served(&mut ask(&proxied, &from(2))));
    assert_eq!(hit(&pagewell, "connections_per_address"), 2);
    // A client whose connection has ended may open another one.
    drop(held);
    until("they have ended", || {
        Raw::with(&pagewell, get("/page.php").replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n"))
            .rest()
            .ends_with("whole")
    });
}

#[test]
fn loopback_is_not_limited_unless_configured() {
    let site = Site::new(&[("page.php", PAGE)]);
    let pagewell = site.serve("[limits]\nconnections_per_address = 3\n");
    let mut held: Vec<_> = (0..20).map(|_| Raw::with(&pagewell, get("/page.php"))).collect();
    assert!(held.iter_mut().all(|one| one.answer().content == "whole"));
    assert_eq!(hit(&pagewell, "connections_per_address"), 0);
}

/// An address at which no process accepts: the kernel silently drops further connections.
fn silent() -> (std::net::SocketAddr, Vec<std::net::TcpStream>, std::net::TcpListener) {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    let any: std::net::SocketAddr = "127.0.0.1:0".parse().expect("an address");
    socket.bind(&any.into()).expect("a port");
    socket.listen(0).expect("it listens");
    let listener = std::net::TcpListener::from(socket);
    let at = listener.local_addr().expect("bound");
    let connect = || std::net::TcpStream::connect_timeout(&at, Duration::from_millis(200)).ok();
    let held = std::iter::from_fn(connect).take(8).collect::<Vec<_>>();
    assert!(held.len() < 8, "everybody is let in");
    (at, held, listener)
}

#[test]
fn connecting_to_an_unreachable_origin_times_out() {
    let (at, _held, _listener) = silent();
    let site = Site::new(&[]);
    let root = format!("site.root = {:?}\nphp.at = \"{at}\"", site.root());
    for origin in [format!("site.origin = \"http://{at}\""), root] {
        let file = site.at("away.toml");
        let config = format!("{origin}\n[limits]\norigin_connect_timeout = \"50ms\"\n");
        std::fs::write(&file, config).expect("written");
        let args = ["--memory", "64M", "--config", &file.display().to_string()];
        let pagewell = Pagewell::start(binary(), &args).expect("it starts");
        let answer = client(&pagewell).get("/index.php").expect("an answer");
        assert_eq!(answer.status, 504, "{answer:?}");
        let status = answer.header("cache-status").expect("it says why");
        assert!(status.contains("timed-out"), "{status}");
        assert_eq!(hit(&pagewell, "origin_connect_timeout"), 1, "{origin}");
        // The origin never received it.
        assert_eq!(hit(&pagewell, "origin_timeout"), 0, "{origin}");
    }
}

#[test]
fn the_last_request_of_a_connection_is_answered_with_close() {
    let site = Site::new(&[("page.php", PAGE)]);
    let pagewell = site.serve("[limits]\nconnection_requests = 5\n");
    let mut raw = Raw::connect(&pagewell);
    for number in 1..=5 {
        raw.send(get("/page.php"));
        let answer = raw.answer();
        assert_eq!(answer.content, "whole");
        assert_eq!(answer.header("connection") == Some("close"), number == 5, "{}", answer.head);
    }
    assert_eq!(raw.rest(), "");
    assert_eq!(hit(&pagewell, "connection_requests"), 1);
    // A client that sends all requests at once gets the same number of responses.
    let mut raw = Raw::with(&pagewell, get("/page.php").repeat(9));
    assert_eq!(raw.rest().matches("HTTP/1.1 200").count(), 5);
}

#[test]
fn content_that_arrives_too_slowly_is_refused() {
    let site = Site::new(&[("form.php", "<?php echo strlen(file_get_contents('php://input'));")]);
    let pagewell = site.serve("[limits]\nbody_timeout = \"300ms\"\nbody_rate = \"100K\"\n");
    let head = "POST /form.php HTTP/1.1\r\nHost: a.test\r\nContent-Length: 1000000\r\n\r\n";
    // A fast start does not help either.
    for (number, first) in [0, 900_000].into_iter().enumerate() {
        // On a busy machine, this client may be silent for longer than it may.
        until("it is too slow, and not silent", || {
            let silent = hit(&pagewell, "body_timeout");
            let mut slow = Raw::with(&pagewell, head);
            slow.send("a".repeat(first));
            until("a limit is reached", || {
                slow.send("a");
                std::thread::park_timeout(SLOWLY);
                hit(&pagewell, "body_rate") > number as u64
                    || hit(&pagewell, "body_timeout") > silent
            });
            let answer = slow.answer();
            assert_eq!(answer.status, 408);
            assert_eq!(counter(&pagewell, "origin_places_taken"), 0);
            answer.content.contains("content-too-slow")
        });
        assert_eq!(hit(&pagewell, "body_rate"), number as u64 + 1);
    }
    // The same content in one piece is accepted.
    let all = "a".repeat(1_000_000);
    until("it is accepted", || {
        client(&pagewell).post("/form.php", &all).is_ok_and(|answer| answer.text() == "1000000")
    });
}

#[test]
fn slow_content_starts_no_origin_request() {
    let site = Site::new(&[
        ("page.php", PAGE),
        ("form.php", "<?php echo strlen(file_get_contents('php://input'));"),
    ]);
    let pagewell = site.serve("[php]\nchildren = 1\n");
    let length = "POST /form.php HTTP/1.1\r\nHost: a.test\r\nContent-Length: 100\r\n\r\n";
    let chunks = "POST /form.php HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n";
    let mut slow: Vec<_> = (0..8)
        .map(|number| match number % 2 {
            0 => Raw::with(&pagewell, format!("{length}{}", "a".repeat(40))),
            _ => Raw::with(&pagewell, format!("{chunks}28\r\n{}\r\n", "a".repeat(40))),
        })
        .collect();
    until("all have come", || counter(&pagewell, "forwards") == 8);
    assert_eq!(counter(&pagewell, "origin_places_taken"), 0);
    let page = client(&pagewell).get("/page.php").expect("an answer");
    assert_eq!(page.text(), "whole", "PHP's only child is free");
    for (number, one) in slow.iter_mut().enumerate() {
        match number % 2 {
            0 => one.send("a".repeat(60)),
            _ => one.send(format!("3c\r\n{}\r\n0\r\n\r\n", "a".repeat(60))),
        }
        assert_eq!(one.answer().content, "100");
    }
    // Without it, the whole content waits on disk.
    let pagewell = site.serve("[limits]\nbody_ahead = \"0\"\n[php]\nchildren = 1\n");
    let mut slow = Raw::with(&pagewell, format!("{length}{}", "a".repeat(40)));
    until("it is there", || counter(&pagewell, "uploads_bytes") > 0);
    assert_eq!(counter(&pagewell, "origin_places_taken"), 0);
    slow.send("a".repeat(60));
    assert_eq!(slow.answer().content, "100");
}

#[test]
fn a_client_that_reads_too_slowly_is_disconnected() {
    let long = "<?php for ($i = 0; $i < 64; $i++) { out(str_repeat('y', 1048576)); }";
    let site = Site::new(&[("page.php", PAGE), ("long.php", long)]);
    site.file("file.txt", "x".repeat(1 << 20));
    let pagewell = site.serve("[limits]\nwrite_timeout = \"2s\"\nwrite_rate = \"1G\"\n");
    // On a busy machine, this client may read nothing for longer than it may.
    until("it is too slow, and has read", || {
        let silent = hit(&pagewell, "write_timeout");
        let mut slow = Raw::with(&pagewell, get("/long.php"));
        slow.until("yyyy");
        // More data than the socket buffer holds waits for this client.
        until("a limit is reached", || {
            // The connection may have ended since the last look.
            let _ = slow.stream().read(&mut vec![0; 256 << 10]);
            std::thread::park_timeout(SLOWLY);
            hit(&pagewell, "write_rate") > 0 || hit(&pagewell, "write_timeout") > silent
        });
        assert!(!slow.rest().ends_with("0\r\n\r\n"), "it does not look whole");
        hit(&pagewell, "write_timeout") == silent
    });
    assert_eq!(hit(&pagewell, "write_rate"), 1);
    // A client that reads everything is served, and so are all others.
    let mut other = client(&pagewell);
    assert_eq!(other.get("/file.txt").expect("an answer").content.len(), 1 << 20);
    assert_eq!(other.get("/page.php").expect("an answer").text(), "whole");
    assert!(is_hit(&other.get("/page.php").expect("an answer")));
}
