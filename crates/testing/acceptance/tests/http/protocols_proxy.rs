//! The PROXY protocol in the real binary: a load balancer's header is trusted only on configured listeners and
//! from configured addresses; other connections are refused. The peers are raw sockets, curl, and nginx's
//! stream module.

use acceptance::{Raw, Site, counter, until};
use harness::{Address, Client, NginxConf, Pagewell, PrivateDir, Request, nginx};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::Command;

const WHO: &str = "<?php header('Cache-Control: no-store'); echo $_SERVER['REMOTE_ADDR'], ' ',
    $_SERVER['SERVER_ADDR'], ' ', $_SERVER['REQUEST_SCHEME'];";
const ASK: &str = "GET /who.php HTTP/1.1\r\nHost: a\r\nConnection: close\r\n";
const V2: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

fn serve(site: &Site, trusted: &str) -> Pagewell {
    serve_with(site, trusted, "")
}

fn serve_with(site: &Site, trusted: &str, more: &str) -> Pagewell {
    let unix = format!("unix:{}", site.at("proxied.sock").display());
    let config = format!(
        "proxy_protocol = [\"127.0.0.1:0\", {unix:?}]\ntrusted_proxies = [{trusted}]\n{more}"
    );
    let file = site.config(&config, "").display().to_string();
    site.serve_with_args(&["--config", &file, "--listen", "127.0.0.1:0", "--listen", &unix])
}

fn start(trusted: &str) -> (Site, Pagewell) {
    let site = Site::new(&[("who.php", WHO)]);
    let pagewell = serve(&site, trusted);
    (site, pagewell)
}

/// The whole response to these bytes.
fn said(pagewell: &Pagewell, header: &[u8], fields: &str) -> String {
    Raw::with(pagewell, [header, ASK.as_bytes(), fields.as_bytes(), b"\r\n"].concat()).rest()
}

fn v2(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
    let length = u16::try_from(rest.len()).expect("short").to_be_bytes();
    [V2, &[command, family], &length, rest].concat()
}

#[test]
fn a_trusted_proxy_names_the_client() {
    let (_site, pagewell) = start("\"127.0.0.1\"");
    let v1 = b"PROXY TCP4 192.0.2.7 198.51.100.1 56324 4711\r\n";
    assert!(said(&pagewell, v1, "").contains("192.0.2.7 198.51.100.1 http\r\n"));
    let v1 = b"PROXY TCP6 2001:db8::7 2001:db8::1 56324 4711\r\n";
    assert!(said(&pagewell, v1, "").contains("2001:db8::7 2001:db8::1 http\r\n"));
    let addresses = [192, 0, 2, 8, 198, 51, 100, 1, 0xdc, 4, 0x12, 0x67];
    let fields = [&addresses[..], &[0x04, 0, 200], &[0; 200]].concat();
    assert!(
        said(&pagewell, &v2(0x21, 0x11, &fields), "").contains("192.0.2.8 198.51.100.1 http\r\n")
    );
    // The named client is not trusted, so its statements about other clients are ignored.
    let forwarded = "X-Forwarded-For: 6.6.6.6\r\nX-Forwarded-Proto: https\r\n";
    assert!(said(&pagewell, v1, forwarded).contains("2001:db8::7 2001:db8::1 http\r\n"));
    assert_eq!(counter(&pagewell, "proxies_refused"), 0);
}

#[test]
fn a_named_client_that_is_a_trusted_proxy_is_trusted() {
    let (_site, pagewell) = start("\"127.0.0.1\", \"192.0.2.0/24\"");
    let v1 = b"PROXY TCP4 192.0.2.7 198.51.100.1 56324 4711\r\n";
    let forwarded = "X-Forwarded-For: 203.0.113.5\r\nX-Forwarded-Proto: https\r\n";
    assert!(said(&pagewell, v1, forwarded).contains("203.0.113.5 198.51.100.1 https\r\n"));
}

#[test]
fn an_unnamed_client_keeps_the_socket_address_and_is_untrusted() {
    let (_site, pagewell) = start("\"127.0.0.1\"");
    let forwarded = "X-Forwarded-For: 6.6.6.6\r\nX-Forwarded-Proto: https\r\n";
    for unknown in [b"PROXY UNKNOWN\r\n".to_vec(), v2(0x21, 0, &[]), v2(0x21, 0x31, &[0; 216])] {
        let answer = said(&pagewell, &unknown, forwarded);
        assert!(answer.contains("127.0.0.1 ") && answer.contains(" http\r\n"), "{answer}");
    }
    // The proxy's own connection is as trusted as the proxy.
    let own = said(&pagewell, &v2(0x20, 0, &[]), forwarded);
    assert!(own.contains("6.6.6.6 ") && own.contains(" https\r\n"), "{own}");
}

#[test]
fn named_clients_get_hits() {
    let site = Site::new(&[("page.php", "<?php keep(); echo 'the page';")]);
    let pagewell = serve(&site, "\"127.0.0.1\"");
    let mut raw = Raw::with(&pagewell, "PROXY TCP4 192.0.2.7 198.51.100.1 56324 80\r\n");
    for status in ["fwd=uri-miss", "hit"] {
        raw.send("GET /page.php HTTP/1.1\r\nHost: a\r\nX-Forwarded-Proto: https\r\n\r\n");
        let answer = raw.answer();
        assert_eq!(answer.content, "the page");
        assert!(answer.header("cache-status").is_some_and(|said| said.contains(status)));
    }
}

#[test]
fn only_the_load_balancers_own_connection_may_purge() {
    let site = Site::new(&[("page.php", "<?php keep(); echo 'the page';")]);
    let pagewell = serve(&site, "\"127.0.0.1\"");
    let purge = |header: &[u8]| {
        let ask = "PURGE /page.php HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
        let answer = Raw::with(&pagewell, [header, ask.as_bytes()].concat()).rest();
        answer.split(' ').nth(1).unwrap_or_default().to_owned()
    };
    for named in [
        b"PROXY TCP4 127.0.0.1 127.0.0.1 56324 80\r\n".to_vec(),
        b"PROXY TCP6 ::1 ::1 56324 80\r\n".to_vec(),
        b"PROXY TCP6 ::ffff:127.0.0.1 ::1 56324 80\r\n".to_vec(),
        b"PROXY TCP4 192.0.2.7 198.51.100.1 56324 80\r\n".to_vec(),
        b"PROXY UNKNOWN\r\n".to_vec(),
    ] {
        assert_eq!(purge(&named), "405", "{}", String::from_utf8_lossy(&named));
    }
    // A connection of the load balancer itself, which runs on this machine.
    assert_eq!(purge(&v2(0x20, 0, &[])), "200");
    assert_eq!(counter(&pagewell, "purges_refused"), 5);
}

/// With the nginx configuration of the guide, on the same machine.
#[test]
fn untrusted_clients_do_not_purge_through_a_local_nginx() {
    let site = Site::new(&[("page.php", "<?php keep(); echo 'the page';")]);
    let pagewell = site.serve("[purge]\nget_below = \"/purge\"\n");
    let Address::Tcp(address) = pagewell.address() else { panic!("not TCP") };
    let server = format!(
        "location / {{ proxy_pass http://{address}; proxy_http_version 1.1;\n\
         proxy_set_header Connection \"\"; proxy_set_header Host $host;\n\
         proxy_set_header X-Forwarded-For $remote_addr; }}"
    );
    let conf = NginxConf { http: String::new(), server, workers: 1 };
    let dir = PrivateDir::temporary("nginx").expect("a directory");
    let nginx = nginx::start(dir, &conf).expect("nginx starts");
    let mut through = Client::new(Address::Tcp(nginx.address()));
    let mut here = Client::new(pagewell.address().clone());
    let page = Request::get("/page.php").header("Host", "a");
    assert_eq!(through.send(&page).expect("an answer").status, 200);
    for (method, path, status) in
        [("PURGE", "/page.php", 405), ("BAN", "/", 405), ("GET", "/purge/page.php", 404)]
    {
        let purge = Request::new(method, path).header("Host", "a");
        assert_eq!(through.send(&purge).expect("an answer").status, status, "{method}");
    }
    assert_eq!(counter(&pagewell, "purges_refused"), 3);
    assert_eq!(counter(&pagewell, "pages"), 1);
    let purge = Request::get("/purge/page.php").header("Host", "a");
    assert_eq!(here.send(&purge).expect("an answer").status, 200);
    assert_eq!(counter(&pagewell, "pages"), 0);
}

#[test]
fn connections_without_a_valid_header_are_refused() {
    let (site, pagewell) = start("\"127.0.0.1\"");
    let mut refused = 0;
    for header in [
        b"".to_vec(),
        b"PROXY TCP4 192.0.2.7\r\n".to_vec(),
        b"PROXY TCP4 192.0.2.7 198.51.100.1 56324 4711\n".to_vec(),
        format!("PROXY UNKNOWN {}\r\n", "x".repeat(100)).into_bytes(),
        v2(0x22, 0x11, &[0; 12]),
        v2(0x21, 0x11, &[0; 5_000]),
        v2(0x21, 0x12, &[0; 12]),
    ] {
        assert_eq!(said(&pagewell, &header, ""), "", "{header:?}");
        refused += 1;
        assert_eq!(counter(&pagewell, "proxies_refused"), refused, "{header:?}");
    }
    // A client that disconnects within its header.
    let mut left = Raw::with(&pagewell, "PROXY TCP4 192.0");
    left.finish_sending();
    assert_eq!(left.rest(), "");
    assert_eq!(counter(&pagewell, "proxies_refused"), refused + 1);
    // A client that only checks the port is not counted.
    let before = counter(&pagewell, "connections_accepted");
    drop(Raw::connect(&pagewell));
    until("it has come", || counter(&pagewell, "connections_accepted") > before);
    until("it has gone", || counter(&pagewell, "connections") == 0);
    assert_eq!(counter(&pagewell, "proxies_refused"), refused + 1);
    assert_eq!(counter(&pagewell, "requests"), 0);
    // A header that never ends.
    let limits = "[limits]\nheader_timeout = \"300ms\"\n";
    drop(pagewell);
    let pagewell = serve_with(&site, "\"127.0.0.1\"", limits);
    assert_eq!(Raw::with(&pagewell, "PROXY TCP4 192.0").rest(), "");
    assert_eq!(counter(&pagewell, "proxies_refused"), 1);
}

#[test]
fn proxy_connections_from_untrusted_addresses_are_refused() {
    let (site, pagewell) = start("\"192.0.2.1\"");
    let v1 = b"PROXY TCP4 192.0.2.7 198.51.100.1 56324 4711\r\n";
    assert_eq!(said(&pagewell, v1, ""), "");
    let mut unix = UnixStream::connect(site.at("proxied.sock")).expect("it accepts");
    let _ = unix.write_all(v1);
    assert_eq!(unix.read(&mut [0]).unwrap_or(0), 0);
    until("both are counted", || counter(&pagewell, "proxies_refused") == 2);
}

#[test]
fn over_a_unix_socket_and_before_tls() {
    let site = Site::new(&[("who.php", WHO)]);
    let made = rcgen::generate_simple_self_signed(["a.test".to_owned()]).expect("a certificate");
    std::fs::write(site.at("key"), made.signing_key.serialize_pem()).expect("written");
    std::fs::write(site.at("crt"), made.cert.pem()).expect("written");
    let at = |name: &str| site.at(name).display().to_string();
    let socket = at("tls.sock");
    let pagewell = site.serve(&format!(
        "listen_tls = \"unix:{socket}\"\nproxy_protocol = \"unix:{socket}\"\n\
         trusted_proxies = [\"unix\"]\n[[tls]]\ncertificate = {:?}\nkey = {:?}\n",
        at("crt"),
        at("key")
    ));
    // curl sends UNKNOWN, because there are no addresses on a Unix socket.
    let out = Command::new("curl")
        .args(["-sSk", "--haproxy-protocol", "--max-time", "120", "--unix-socket", &socket])
        .args(["-H", "X-Forwarded-For: 6.6.6.6", "https://a.test/who.php"])
        .output()
        .expect("curl can be started");
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.success() && text.ends_with(" https") && !text.contains("6.6"), "{out:?}");
    // The other listener accepts all clients.
    assert!(said(&pagewell, b"", "").contains("127.0.0.1 "));
    assert_eq!(counter(&pagewell, "proxies_refused"), 0);
}

#[test]
fn curl_and_nginx_speak_it() {
    let (_site, pagewell) = start("\"127.0.0.1\"");
    let Address::Tcp(address) = pagewell.address() else { panic!("not TCP") };
    let out = Command::new("curl")
        .args(["-sS", "--haproxy-protocol", "--max-time", "120"])
        .arg(format!("http://{address}/who.php"))
        .output()
        .expect("curl can be started");
    let text = String::from_utf8_lossy(&out.stdout);
    assert_eq!(text, format!("127.0.0.1 {} http", address.ip()), "{out:?}");
    let dir = PrivateDir::temporary("nginx").expect("a directory");
    let pass = format!("proxy_pass {address};\nproxy_protocol on;");
    let nginx = nginx::start_stream(dir, &pass).expect("nginx starts");
    let out = Command::new("curl")
        .args(["-sS", "--interface", "127.0.0.9", "--max-time", "120"])
        .arg(format!("http://{}/who.php", nginx.address()))
        .output()
        .expect("curl can be started");
    let text = String::from_utf8_lossy(&out.stdout);
    assert_eq!(text, format!("127.0.0.9 {} http", nginx.address().ip()), "{out:?}");
}
