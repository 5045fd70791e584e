//! Several HTTP servers as the origin, with TLS or without: failover, backups, checks, and certificates. The servers are
//! real ones (nginx); one that loses its connections is played by the test.

use acceptance::{Site, asked_again, client, limit_hit, until};
use harness::nginx::{self, NginxConf};
use harness::{OnPort, Pagewell, PrivateDir, Request, Stopwatch};
use socket2::{Domain, Socket, Type};
use std::collections::BTreeSet;
use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

/// An nginx that says its name, also in answer to forms.
fn server(name: &str, more: &str) -> OnPort {
    let dir = PrivateDir::temporary(name).expect("a directory");
    let location = "location / { add_header Cache-Control no-store; ";
    let server = format!("{more}\n{location}return 200 '{name} $request_method'; }}");
    let conf = NginxConf { http: String::new(), server, workers: 1 };
    nginx::start(dir, &conf).expect("nginx starts")
}

fn serve(site: &Site, origin: &str) -> Pagewell {
    let file = site.at("origin.toml");
    fs::write(&file, format!("[site]\n{origin}\n")).expect("written");
    let args = ["--memory", "64M", "--config", &file.display().to_string()];
    Pagewell::start(acceptance::binary(), &args).expect("pagewell starts")
}

/// The bodies of so many answers. Each must be a 200.
fn answers(pagewell: &Pagewell, count: usize) -> BTreeSet<String> {
    let mut client = client(pagewell);
    let mut body = |number| {
        let response = client.get(&format!("/{number}")).expect("an answer");
        assert_eq!(response.status, 200, "{}\n{}", response.text(), pagewell.log());
        response.text()
    };
    (0..count).map(&mut body).collect()
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| format!("{name} GET")).collect()
}

#[test]
fn a_server_that_is_gone_costs_no_request() {
    let site = Site::new(&[]);
    let (mut one, two) = (server("one", ""), server("two", ""));
    let origin = format!("origin = [\"http://{}\", \"http://{}\"]", one.address(), two.address());
    let pagewell = serve(&site, &origin);
    assert_eq!(answers(&pagewell, 8), set(&["one", "two"]));
    let clock = Stopwatch::start();
    one.stop();
    // The content of a form goes to the other server.
    let mut client = client(&pagewell);
    for _ in 0..3 {
        let sent = client.send(&Request::form("/form", "a=b")).expect("an answer");
        assert_eq!((sent.status, sent.text()), (200, "two POST".into()));
    }
    assert_eq!(answers(&pagewell, 8), set(&["two"]));
    // It is left out for ten seconds each time.
    let times = pagewell.times_logged("origin-left-out");
    let times_max = 1 + clock.elapsed().as_secs() as usize / 10;
    assert!((1..=times_max).contains(&times), "{times}: {}", pagewell.log());
}

#[test]
fn a_backup_gets_requests_only_while_no_other_server_can() {
    let site = Site::new(&[]);
    let (mut one, spare) = (server("one", ""), server("spare", ""));
    let origin = format!(
        "origin = \"http://{}\"\norigin_backup = \"http://{}\"",
        one.address(),
        spare.address()
    );
    let pagewell = serve(&site, &origin);
    assert_eq!(answers(&pagewell, 6), set(&["one"]));
    one.stop();
    assert_eq!(answers(&pagewell, 6), set(&["spare"]));
    drop(spare);
    assert_eq!(client(&pagewell).get("/").expect("an answer").status, 502);
}

/// A server that reads each request and closes the connection. Returns its address.
fn loses_connections() -> String {
    let origin = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = origin.local_addr().expect("bound").to_string();
    thread::spawn(move || {
        while let Ok((mut stream, _)) = origin.accept() {
            asked_again(&mut stream);
        }
    });
    address
}

#[test]
fn a_lost_connection_is_repeated_for_reads_only() {
    let site = Site::new(&[]);
    let (lost, two) = (loses_connections(), server("two", ""));
    let pagewell =
        serve(&site, &format!("origin = [\"http://{lost}\", \"http://{}\"]", two.address()));
    assert_eq!(answers(&pagewell, 8), set(&["two"]));
    // Which server a form goes to is a matter of turns.
    let mut client = client(&pagewell);
    let mut status = || client.send(&Request::form("/", "a=b")).expect("an answer").status;
    let statuses: BTreeSet<u16> = (0..8).map(|_| status()).collect();
    assert_eq!(statuses, BTreeSet::from([200, 502]), "a form is sent once");
}

#[test]
fn a_server_that_fails_its_check_gets_no_requests() {
    let site = Site::new(&[]);
    let (ill, well) = (server("ill", "location = /health { return 503; }"), server("well", ""));
    let pagewell = serve(
        &site,
        &format!(
            "origin = [\"http://{}\", \"http://{}\"]\norigin_check = \"/health\"",
            ill.address(),
            well.address()
        ),
    );
    until("it is checked", || pagewell.log().contains("origin-check-failed"));
    assert_eq!(answers(&pagewell, 8), set(&["well"]));
}

#[test]
fn a_server_that_passes_its_checks_again_gets_requests() {
    let site = Site::new(&[]);
    let health = site.at("health");
    let location =
        format!("location /health {{ root {}; try_files /health =503; }}", site.at("").display());
    let (back, well) = (server("back", &location), server("well", ""));
    let pagewell = serve(
        &site,
        &format!(
            "origin = [\"http://{}\", \"http://{}\"]\norigin_check = \"/health\"",
            back.address(),
            well.address()
        ),
    );
    until("it is checked", || pagewell.log().contains("origin-check-failed"));
    assert_eq!(answers(&pagewell, 8), set(&["well"]));
    fs::write(&health, "well").expect("written");
    until("it has passed two checks", || pagewell.log().contains("origin-check-passed"));
    assert_eq!(answers(&pagewell, 8), set(&["back", "well"]));
}

/// A server whose queue for connections is full, so that the kernel answers no further one; with those in the queue.
fn accepts_nothing() -> (Socket, Vec<TcpStream>, SocketAddr) {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    let any: SocketAddr = "127.0.0.1:0".parse().expect("an address");
    socket.bind(&any.into()).expect("a port");
    socket.listen(0).expect("it listens");
    let address = socket.local_addr().ok().and_then(|address| address.as_socket());
    let address = address.expect("bound");
    let mut queued = Vec::new();
    while let Ok(stream) = TcpStream::connect_timeout(&address, Duration::from_millis(500)) {
        queued.push(stream);
        assert!(queued.len() < 64, "the queue ends");
    }
    (socket, queued, address)
}

#[test]
fn a_server_that_accepts_no_connection_in_time_is_left_out() {
    let site = Site::new(&[]);
    let two = server("two", "");
    let (_socket, _queued, full) = accepts_nothing();
    // This one accepts connections, but begins no TLS.
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let silent_at = silent.local_addr().expect("bound");
    for slow in [format!("http://{full}"), format!("https://{silent_at}")] {
        let limits = "[limits]\norigin_connect_timeout = \"300ms\"";
        let alone = serve(&site, &format!("origin = \"{slow}\"\n{limits}"));
        let response = client(&alone).get("/").expect("an answer");
        assert_eq!(response.status, 504, "{slow}");
        assert!(limit_hit(&alone, "origin_connect_timeout") >= 1, "{slow}");
        let both = format!("origin = [\"{slow}\", \"http://{}\"]\n{limits}", two.address());
        let pagewell = serve(&site, &both);
        assert_eq!(answers(&pagewell, 8), set(&["two"]));
        let sent = client(&pagewell).send(&Request::form("/form", "a=b")).expect("an answer");
        assert_eq!((sent.status, sent.text()), (200, "two POST".into()));
        assert!(pagewell.log().contains("origin-left-out"), "{}", pagewell.log());
    }
}

#[test]
fn the_certificate_of_a_server_is_verified() {
    let site = Site::new(&[]);
    let made = rcgen::generate_simple_self_signed(["shop.test".to_owned()]).expect("a certificate");
    let (certificate, key) = (site.at("shop.crt"), site.at("shop.key"));
    fs::write(&certificate, made.cert.pem()).expect("written");
    fs::write(&key, made.signing_key.serialize_pem()).expect("written");
    let tls = format!(
        "ssl_certificate {};\nssl_certificate_key {};",
        certificate.display(),
        key.display()
    );
    let server = server("safe", &tls);
    let origin = format!("origin = \"https://{}\"\n", server.address());
    let ca = format!("ca_file = {:?}", certificate.display().to_string());
    let right = serve(&site, &format!("{origin}origin_tls = {{ name = \"shop.test\", {ca} }}"));
    assert_eq!(answers(&right, 4), set(&["safe"]));
    for wrong in
        [format!("origin_tls = {{ {ca} }}"), "origin_tls = { name = \"shop.test\" }".into()]
    {
        let pagewell = serve(&site, &format!("{origin}{wrong}"));
        let response = client(&pagewell).get("/").expect("an answer");
        assert_eq!(response.status, 502, "{wrong}");
        let log = pagewell.log();
        assert!(log.contains("origin-refused") && log.contains("certificate"), "{log}");
    }
}
