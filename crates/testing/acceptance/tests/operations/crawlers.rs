//! Rationed misses as operators and search engines see them: a crawler is verified by its networks, or by the name of
//! its address at a resolver of the test's own; a ticket counts on each node with the same secret, and after a restart;
//! the requests of one HTTP/2 connection that wait are bounded; the log and `pagewell misses` name a crawl; hits give
//! credit; a browser without JavaScript gets its page.
//!
//! The order of requests, and what is deferred, is tested in the scenarios (`tests/scenarios/misses`).

use acceptance::http2::FrameHead;
use acceptance::http2::flag::{END_HEADERS, END_STREAM};
use acceptance::http2::kind::HEADERS;
use acceptance::{
    Frames, Raw, Site, advance, asked, asked_again, before_origin, block, client, counter, until,
};
use harness::{Address, Browser, Client, Deadline, Pagewell, PrivateDir, Request, Response};
use serde_json::{Value, json};
use socket2::{Domain, Socket, Type};
use std::fs;
use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// A resolver for one crawler: every address has the name `c.bot.test`, which leads to 127.0.0.1. Returns the number of
/// questions, too.
fn resolver() -> (SocketAddr, Arc<AtomicU64>) {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let address = socket.local_addr().expect("bound");
    let questions = Arc::new(AtomicU64::new(0));
    let count = questions.clone();
    std::thread::spawn(move || {
        let mut message = [0; 512];
        while let Ok((length, from)) = socket.recv_from(&mut message) {
            count.fetch_add(1, Ordering::Relaxed);
            let mut answer = message[..length].to_vec();
            let kind = answer[length - 3];
            let content: &[u8] = match kind {
                12 => b"\x01c\x03bot\x04test\0",
                _ => &[127, 0, 0, 1],
            };
            (answer[2], answer[3], answer[7]) = (0x81, 0x80, 1);
            answer.extend([0xc0, 12, 0, kind, 0, 1, 0, 0, 0, 60, 0]);
            answer.push(u8::try_from(content.len()).expect("short"));
            answer.extend(content);
            let _ = socket.send_to(&answer, from);
        }
    });
    (address, questions)
}

/// The client of an explanation.
fn explained(pagewell: &Pagewell, call: &str) -> Value {
    let mut admin = Client::new(pagewell.admin().clone());
    let request = Request::new("POST", "/v1/explain").header("Content-Type", "application/json");
    let answer = admin.send(&request.content(call.as_bytes())).expect("an answer");
    let answer: Value = serde_json::from_slice(&answer.content).expect("JSON");
    answer["client"].clone()
}

#[test]
fn a_search_engine_is_verified_by_the_name_of_its_address_and_hits_ask_nobody() {
    let (resolver, questions) = resolver();
    let site = Site::new(&[
        ("cold.php", "<?php echo 'cold';"),
        ("page.php", "<?php keep(); echo 'page';"),
    ]);
    let pagewell = site.serve(&format!(
        "[misses]\nresolver = \"{resolver}\"\n[[misses.crawlers]]\nname = \"testbot\"\nhosts = [\"bot.test\"]\n"
    ));
    let mut client = client(&pagewell);
    let mut get = |target: &str, agent: &str| -> Response {
        let request = Request::get(target).header("User-Agent", agent);
        client.send(&request).expect("an answer")
    };
    // A client that does not say that it is the crawler is not looked up.
    assert_eq!(get("/cold.php?1", "Mozilla/5.0").text(), "cold");
    assert_eq!(questions.load(Ordering::Relaxed), 0);

    const CALL: &str = r#"{"url":"/cold.php","from":"127.0.0.1","headers":{"user-agent":"Mozilla/5.0 (compatible; TestBot/2.1)"}}"#;
    assert!(explained(&pagewell, CALL)["crawler"].is_null());
    assert_eq!(questions.load(Ordering::Relaxed), 0, "an explanation asks nobody");
    until("the crawler is verified", || {
        assert_eq!(get("/cold.php?2", "Mozilla/5.0 (compatible; TestBot/2.1)").text(), "cold");
        let verified = || (explained(&pagewell, CALL)["crawler"] == "testbot").then_some(());
        // A lookup takes at most 5 s. One that fails, because the machine is busy, is made again after a minute.
        let bound = Deadline::after(Duration::from_secs(6));
        let is_verified = bound.poll(Duration::from_millis(5), verified).is_some();
        if !is_verified {
            advance(&pagewell, 61);
        }
        is_verified
    });
    assert_eq!(explained(&pagewell, CALL)["kind"], "crawler");
    // More only if the resolver was slow.
    let asked = questions.load(Ordering::Relaxed);
    assert!(asked >= 2, "PTR, and A: {asked}");

    for target in ["/cold.php?3", "/cold.php?4", "/page.php", "/page.php", "/page.php"] {
        assert_eq!(get(target, "testbot").status, 200);
    }
    assert_eq!(questions.load(Ordering::Relaxed), asked, "the answer is remembered");
    let mut admin = Client::new(pagewell.admin().clone());
    let misses = admin.get("/v1/misses").expect("an answer").text();
    assert!(misses.contains(r#""kind":"crawler""#), "{misses}");
    // The address leads back to 127.0.0.1 only.
    let call = CALL.replace("127.0.0.1", "192.0.2.9");
    assert!(explained(&pagewell, &call)["crawler"].is_null());
}

#[test]
fn a_search_engine_is_known_by_the_networks_that_it_publishes_and_is_not_deferred() {
    const CALL: &str = r#"{"url":"http://localhost/cold","from":"127.0.0.1"}"#;
    let published = Site::new(&[]);
    let file = published.at("networks.json");
    fs::write(&file, r#"{"prefixes": [{"ipv4Prefix": "127.0.0.0/8"}]}"#).expect("written");
    let (pagewell, origin, _site) = before_origin(&format!(
        "[misses]\nmode = \"protect\"\n[[misses.crawlers]]\nname = \"testbot\"\nranges = {:?}\n\
         [limits]\norigin_connections = 1\n",
        file.display().to_string()
    ));
    let held = acceptance::get_meanwhile(&pagewell, "/held");
    let (stream, _) = asked(&origin);
    let client = explained(&pagewell, CALL);
    assert_eq!((&client["crawler"], &client["kind"]), (&json!("testbot"), &json!("crawler")));
    assert_eq!(client["now"], "it would wait for its turn; it is not deferred");
    assert!(explained(&pagewell, &CALL.replace("127.0.0.1", "192.0.2.9"))["crawler"].is_null());
    answer(stream);
    assert_eq!(held.join().expect("it ended").status, 200);
}

/// Has a request deferred, and returns its Set-Cookie line.
fn ticket(pagewell: &Pagewell, origin: &TcpListener) -> String {
    let held = acceptance::get_meanwhile(pagewell, "/held");
    let (mut stream, head) = asked(origin);
    assert!(head.starts_with("get /held"), "{head}");
    let request = Request::get("/cold").header("Accept", "text/html");
    let deferred = client(pagewell).host("localhost").send(&request).expect("an answer");
    assert_eq!(deferred.status, 503);
    stream
        .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        .expect("sent");
    assert_eq!(held.join().expect("it ended").status, 200);
    let line = deferred.header("set-cookie").expect("a ticket");
    line.split(';').next().expect("a pair").to_owned()
}

#[test]
fn a_ticket_counts_on_each_node_with_the_secret_and_on_no_other() {
    let secret = Site::new(&[]);
    let file = secret.at("secret");
    fs::write(&file, "0123456789abcdef0123456789abcdef").expect("written");
    let protect = "[misses]\nmode = \"protect\"\n[limits]\norigin_connections = 1\n";
    let with_secret =
        format!("[cookies]\nsecret_file = {:?}\n{protect}", file.display().to_string());
    let (one, origin, _site) = before_origin(&with_secret);
    let ticket = ticket(&one, &origin);
    let call = format!(
        r#"{{"url":"http://localhost/cold","from":"127.0.0.1","headers":{{"cookie":"{ticket}"}}}}"#
    );
    assert_eq!(explained(&one, &call)["level"], "returned");
    drop(one);
    // Another node; and this one after a restart, which is the same to it.
    let (other, _origin, _site) = before_origin(&with_secret);
    assert_eq!(explained(&other, &call)["level"], "returned");
    let (stranger, _origin, _site) = before_origin(protect);
    assert_eq!(explained(&stranger, &call)["level"], "unknown");
}

/// A challenge that lets clients with the cookie `solved=1` pass.
fn challenge() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let head = acceptance::asked_again(&mut stream);
            let status = if head.contains("solved=1") { "200 OK" } else { "401 Unauthorized" };
            let answer =
                format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    address
}

#[test]
fn a_client_that_the_challenge_lets_pass_comes_first_among_those_with_a_ticket() {
    let (pagewell, origin, _site) = before_origin(&format!(
        "[cookies]\nunknown = \"ignore\"\n[misses]\nmode = \"protect\"\nchallenge = \"http://{}\"\n[limits]\norigin_connections = 1\n",
        challenge()
    ));
    let ticket = ticket(&pagewell, &origin);
    let held = acceptance::get_meanwhile(&pagewell, "/held-again");
    let (mut stream, _) = asked(&origin);
    for (solved, level) in [("1", "passed"), ("2", "returned")] {
        let cookie = format!("{ticket}; solved={solved}");
        let request = Request::get("/cold").header("Accept", "text/html").header("Cookie", &cookie);
        assert_eq!(
            client(&pagewell).host("localhost").send(&request).expect("an answer").status,
            503
        );
        let call = format!(
            r#"{{"url":"http://localhost/cold","from":"127.0.0.1","headers":{{"cookie":"{cookie}"}}}}"#
        );
        until("the check is made", || {
            let is_made = explained(&pagewell, &call)["level"] == level;
            if !is_made {
                // A check that took too long is made again by a later request.
                client(&pagewell).host("localhost").send(&request).expect("an answer");
            }
            is_made
        });
    }
    stream
        .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        .expect("sent");
    assert_eq!(held.join().expect("it ended").status, 200);
}

#[test]
fn the_waiting_requests_of_an_http2_connection_are_bounded() {
    let (pagewell, origin, _site) = before_origin(
        "[misses]\nmode = \"protect\"\n[limits]\norigin_connections = 1\norigin_queue_timeout = \"60s\"\n",
    );
    let held = acceptance::get_meanwhile(&pagewell, "/held");
    let (mut stream, _) = asked(&origin);
    let mut frames = Frames::begin(&pagewell, &[]);
    // In one piece: eight that come later could wait, too.
    let mut all = Vec::new();
    for number in 0..40 {
        let block = block(&format!("/cold/{number}"));
        let flags = END_STREAM | END_HEADERS;
        let (length, stream) = (block.len(), 1 + 2 * number);
        FrameHead { length, kind: HEADERS, flags, stream }.write(&mut all);
        all.extend_from_slice(&block);
    }
    frames.stream.write_all(&all).expect("sent");
    // Each is deferred: eight after they have waited, the others at once, because eight of the address wait.
    for _ in 0..40 {
        frames.next_of(HEADERS).expect("a response");
    }
    assert_eq!(counter(&pagewell, "misses_deferred"), 40);
    assert!(counter(&pagewell, "misses_waited") <= 8 + 8, "at most eight at a time");
    stream
        .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        .expect("sent");
    assert_eq!(held.join().expect("it ended").status, 200);
    assert!(matches!(pagewell.address(), Address::Tcp(_)));
}

/// Answers a request at the origin, and closes its connection.
fn answer(mut stream: TcpStream) {
    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    stream.write_all(answer).expect("sent");
}

#[test]
fn the_log_and_pagewell_misses_name_the_crawl_and_what_to_do() {
    const AGENT: &str = "Mozilla/5.0 (a crawl)";
    let (pagewell, origin, _site) =
        before_origin("[limits]\norigin_connections = 1\norigin_queue_timeout = \"60s\"\n");
    let crawl = |number: u32| {
        let mut client = client(&pagewell);
        let request = Request::get(&format!("/shop/?a={number}&b=1")).header("User-Agent", AGENT);
        thread::spawn(move || client.send(&request).expect("an answer").status)
    };
    for number in 0..5 {
        let request = crawl(number);
        answer(asked(&origin).0);
        assert_eq!(request.join().expect("it ended"), 200);
    }
    let held = crawl(5);
    let (stream, _) = asked(&origin);
    let waiting = crawl(6);
    let log = || {
        let log = pagewell.log();
        let line = log.lines().find(|line| line.contains("misses-overload-began"));
        line.map(str::to_owned)
    };
    until("the overload is logged", || log().is_some());
    let line = log().expect("it is logged");
    for part in [
        "group=\"/shop?a&b\"",
        " share=100 time_share=100 seconds=",
        "networks=\"127.0.0.0/24 (100 %)\"",
        "agents=\"Mozilla/5.0 (a crawl) (100 %)\"",
        "waiting=1",
        "block it in the firewall. To let visitors come first, set misses.mode",
    ] {
        assert!(line.contains(part), "{part}: {line}");
    }
    answer(stream);
    answer(asked(&origin).0);
    for request in [held, waiting] {
        assert_eq!(request.join().expect("it ended"), 200);
    }

    let command = ["misses", "--admin", &pagewell.admin().to_string()];
    let said = Command::new(acceptance::binary()).args(command).output().expect("it runs");
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    for part in [
        "The origin is overloaded now, for ",
        " in all since the start. Requests that waited for it: ",
        " (misses.mode = \"observe\").\n",
        "  Networks: 127.0.0.0/24 (100 %)\n",
        "  User agents: Mozilla/5.0 (a crawl) (100 %)\n",
        "  Time of the origin since the start, by client: unknown 100 %\n",
        "  100 % of the requests are for URLs like /shop?a&b. Most come from one network, 127.0.0.0/24: ",
        "set misses.mode = \"protect\" and run pagewell reload. If visitors do not need ",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!said.contains("a 503 that reloads"), "nothing is deferred in this mode: {said}");
    let at = |part: &str| said.find(part).unwrap_or_else(|| panic!("{part}: {said}"));
    assert!(at("  /shop?a&b\n") < at("Slowest origin requests\n"), "the groups are first: {said}");
    let row = said.lines().find(|line| line.ends_with("  /shop?a&b")).expect("a row");
    let words: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(words[..4], ["100", "%", "100", "%"], "{row}");
    // One request had the only place for the second after which an overload begins.
    assert!(words[4].parse::<u64>().expect("seconds") >= 1, "{row}");
}

#[test]
fn hits_give_credit_to_the_client_and_not_behind_an_http_proxy_or_over_a_unix_socket() {
    let files = [
        ("cold.php", "<?php header('Cache-Control: no-store'); echo 'cold';"),
        ("page.php", "<?php keep(); echo 'page';"),
    ];
    const CALL: &str = r#"{"url":"/cold.php","from":"203.0.113.9"}"#;
    let ask = |more: &str| format!("GET /page.php HTTP/1.1\r\nHost: localhost\r\n{more}\r\n");

    // Behind an HTTP proxy, the hits of its connection are those of many clients.
    let site = Site::new(&files);
    let behind = site.serve("trusted_proxies = [\"127.0.0.0/8\"]\n");
    let forwarded = ask("X-Forwarded-For: 203.0.113.9\r\n").repeat(20);
    let last = ask("X-Forwarded-For: 203.0.113.9\r\nConnection: close\r\n");
    Raw::with(&behind, [forwarded, last].concat()).rest();
    assert!(counter(&behind, "hits") >= 19);

    // Over a Unix socket, the client has no address.
    let local = Site::new(&files);
    let unix = format!("unix:{}", local.at("visitors.sock").display());
    let file = local.config("", "").display().to_string();
    let nameless = local.serve_with_args(&["--config", &file, "--listen", &unix]);
    let Address::Unix(path) = nameless.address() else { panic!("not a Unix socket") };
    let mut stream = UnixStream::connect(path).expect("it accepts connections");
    let all = [ask("").repeat(20), ask("Connection: close\r\n")].concat();
    stream.write_all(all.as_bytes()).expect("sent");
    std::io::read_to_string(stream).expect("all responses");

    // The PROXY protocol names the client of the whole connection.
    let proxied = Site::new(&files);
    let pagewell = proxied.serve_with_args(&[
        "--config",
        &proxied
            .config("proxy_protocol = [\"127.0.0.1:0\"]\ntrusted_proxies = [\"127.0.0.1\"]\n", "")
            .display()
            .to_string(),
        "--listen",
        "127.0.0.1:0",
    ]);
    let header = "PROXY TCP4 203.0.113.9 198.51.100.1 56324 80\r\n".to_owned();
    // The page is stored first: hits that wait behind a miss are no plain ones.
    Raw::with(&pagewell, [&*header, &ask("Connection: close\r\n")].concat()).rest();
    let all = [&*header, &ask("").repeat(20), &ask("Connection: close\r\n")].concat();
    Raw::with(&pagewell, all).rest();
    until("two seconds later it is known", || explained(&pagewell, CALL)["level"] == "known");
    assert_eq!(explained(&pagewell, CALL)["evidence"], "hits and files of its address");

    // By now the others would be known, too.
    assert_eq!(explained(&behind, CALL)["level"], "unknown");
    assert_eq!(explained(&behind, &CALL.replace("203.0.113.9", "127.0.0.1"))["level"], "unknown");
    assert_eq!(client(&nameless).get("/cold.php").expect("an answer").text(), "cold");
    until("its time is counted", || {
        let misses = Client::new(nameless.admin().clone()).get("/v1/misses").expect("an answer");
        let misses: Value = serde_json::from_slice(&misses.content).expect("JSON");
        let origin = &misses["origins"][0];
        assert_eq!(origin["networks"], json!([]));
        origin["levels"] == json!([{ "level": "unknown", "percent_of_time": 100 }])
    });
}

/// The page that loads again needs no JavaScript, and its ticket keeps the place.
#[test]
fn a_browser_without_javascript_gets_the_page_after_it_has_loaded_again() {
    const PAGE: &str = "<!DOCTYPE html><title>page</title><p id=page>the page</p>\
        <script>document.getElementById('page').textContent = 'scripted'</script>";
    let (pagewell, origin, _site) = before_origin(
        "[cookies]\nunknown = \"ignore\"\n[misses]\nmode = \"protect\"\n[limits]\norigin_connections = 1\n",
    );
    let Address::Tcp(address) = *pagewell.address() else { panic!("not TCP") };
    let dir = PrivateDir::temporary("browser").expect("a directory");
    let mut browser = Browser::start(dir).expect("Chromium starts");
    let without = json!({ "value": true });
    browser.tools("Emulation.setScriptExecutionDisabled", &without).expect("it obeys");

    let held = acceptance::get_meanwhile(&pagewell, "/held");
    let (stream, _) = asked(&origin);
    browser.go(&format!("http://{address}/cold")).expect("it opens");
    assert_eq!(counter(&pagewell, "tickets_issued"), 1);
    assert!(browser.text("#page").is_err(), "deferred");
    // From now on every request is answered: the page, and the icon that browsers ask for.
    thread::spawn(move || {
        answer(stream);
        while let Ok((mut stream, _)) = origin.accept() {
            let head = asked_again(&mut stream);
            let content = if head.starts_with("get /cold ") { PAGE } else { "" };
            let _ = write!(
                stream,
                "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nCache-Control: max-age=60\r\n\
                 Content-Length: {}\r\nConnection: close\r\n\r\n{content}",
                content.len()
            );
        }
    });
    until("the page has loaded", || browser.text("#page").is_ok());
    assert_eq!(browser.text("#page").as_deref(), Ok("the page"), "no script was run");
    assert_eq!(held.join().expect("it ended").status, 200);
    assert_eq!(counter(&pagewell, "tickets_issued"), 1, "it kept its ticket");
}

/// A client of another address, whose request is sent.
fn crawler_asks(pagewell: &Pagewell, request: &str) -> TcpStream {
    let Address::Tcp(address) = pagewell.address() else { panic!("not TCP") };
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    let own = SocketAddr::from(([127, 0, 0, 2], 0));
    socket.bind(&own.into()).expect("all of 127.0.0.0/8 is loopback");
    socket.connect(&(*address).into()).expect("it accepts connections");
    let mut stream = TcpStream::from(socket);
    stream.write_all(request.as_bytes()).expect("sent");
    stream
}

/// Otherwise one client with credit could raise all requests of a crawler.
#[test]
fn a_follower_pays_for_a_request_that_it_raises_and_not_for_one_that_was_sent() {
    const PAGE: &[u8] = b"HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nContent-Length: 4\r\nConnection: close\r\n\r\npage";
    const CALL: &str = r#"{"url":"http://localhost/cold","from":"127.0.0.1"}"#;
    let ask = |target: &str, more: &str| {
        format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n{more}\r\n")
    };
    let last = |target: &str| ask(target, "Connection: close\r\n");
    // Requests wait as long as any: nothing is deferred.
    let (pagewell, origin, _site) =
        before_origin("[limits]\norigin_connections = 1\norigin_queue_timeout = \"60s\"\n");
    let answer = |target: &str| {
        let (mut stream, head) = asked(&origin);
        assert!(head.starts_with(&format!("get {target} ")), "{head}");
        stream.write_all(PAGE).expect("sent");
    };
    let follow = |target: &str| {
        let follower = Raw::with(&pagewell, last(target));
        until("it follows", || counter(&pagewell, "followers") == 1);
        follower
    };

    let mut first = Raw::with(&pagewell, last("/stored"));
    answer("/stored");
    assert!(first.rest().ends_with("page"));
    // The credit of four or five hits: enough for one miss.
    Raw::with(&pagewell, [ask("/stored", "").repeat(4), last("/stored")].concat()).rest();
    until("it is known", || explained(&pagewell, CALL)["level"] == "known");

    let _sent = crawler_asks(&pagewell, &last("/sent"));
    let (mut stream, _) = asked(&origin);
    let mut follower = follow("/sent");
    stream.write_all(PAGE).expect("sent");
    assert!(follower.rest().ends_with("page"));
    assert_eq!(explained(&pagewell, CALL)["level"], "known");

    let _held = crawler_asks(&pagewell, &last("/held"));
    let (mut stream, _) = asked(&origin);
    let _waits = crawler_asks(&pagewell, &last("/waits"));
    until("it waits", || counter(&pagewell, "origin_queue") == 1);
    let mut follower = follow("/waits");
    stream.write_all(PAGE).expect("sent");
    answer("/waits");
    assert!(follower.rest().ends_with("page"));
    assert_eq!(explained(&pagewell, CALL)["level"], "unknown");
}
