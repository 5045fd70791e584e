//! TLS and HTTP/2 in the real binary, with independent clients: curl and openssl. TLS is served on a Unix
//! socket, so that no port needs to be known. Certificates are created for each test.

use acceptance::{Raw, Site, client, counter, skip, until};
use harness::Pagewell;
use std::net::{Shutdown, SocketAddr, TcpListener};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fs, io, thread};

const PAGE: &str =
    "<?php header('Cache-Control: max-age=60'); echo $_SERVER['HTTPS'] ?? 'off', ' ',
    $_SERVER['REQUEST_SCHEME'] ?? '', ' ', $_SERVER['SERVER_PROTOCOL'], ' ',
    strlen(file_get_contents('php://input')), ' ', $_SERVER['HTTP_COOKIE'] ?? '';";

/// A site with certificates for these names, each in files with its name.
fn site(names: &[&str]) -> Site {
    let site = Site::new(&[("page.php", PAGE), ("file.txt", "a file")]);
    for name in names {
        certify(&site, name);
    }
    site
}

/// Creates a certificate for `name`. The key is written before the certificate.
fn certify(site: &Site, name: &str) -> String {
    let made = rcgen::generate_simple_self_signed([name.to_owned()]).expect("a certificate");
    fs::write(site.at(&format!("{name}.key")), made.signing_key.serialize_pem()).expect("written");
    fs::write(site.at(&format!("{name}.crt")), made.cert.pem()).expect("written");
    made.cert.pem()
}

fn serve(site: &Site, names: &[&str], more: &str) -> Pagewell {
    serve_within(site, names, (more, "1m"))
}

/// The same with this time for a handshake.
fn serve_within(site: &Site, names: &[&str], (more, handshake): (&str, &str)) -> Pagewell {
    let socket = site.at("tls.sock");
    let mut config = format!("listen_tls = \"unix:{}\"\n{more}\n", socket.display());
    for name in names {
        let path = |end: &str| site.at(&format!("{name}.{end}")).display().to_string();
        config += &format!("[[tls]]\ncertificate = {:?}\nkey = {:?}\n", path("crt"), path("key"));
    }
    config +=
        &format!("[limits]\ncertificate_look = \"20ms\"\nhandshake_timeout = {handshake:?}\n");
    site.serve(&config)
}

/// The output of curl.
fn curl(args: &[&str]) -> String {
    let out = Command::new("curl")
        .args(["--silent", "--show-error", "--include", "--insecure", "--max-time", "120"])
        .args(args)
        .output()
        .expect("curl can be started");
    let said = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(out.status.success(), "{args:?}: {said}{}", String::from_utf8_lossy(&out.stderr));
    said.to_ascii_lowercase()
}

/// The output of curl over TLS.
fn curl_tls(site: &Site, args: &[&str]) -> String {
    let socket = site.at("tls.sock").display().to_string();
    curl(&[&["--unix-socket", socket.as_str()], args].concat())
}

/// The certificate that the server sends for `name`, or openssl's error.
fn shown(socket: &Path, name: &str, more: &[&str]) -> String {
    let out = Command::new("openssl")
        .args(["s_client", "-unix", &socket.display().to_string(), "-servername", name])
        .args(more)
        .stdin(Stdio::null())
        .output()
        .expect("openssl can be started");
    let said = String::from_utf8_lossy(&out.stdout);
    let begin = said.find("-----BEGIN CERTIFICATE").unwrap_or(0);
    let end = said.find("-----END CERTIFICATE-----").map_or(said.len(), |at| at + 25);
    said[begin..end].to_owned()
}

fn text(pem: &str) -> String {
    pem.lines().map(str::trim).collect()
}

#[test]
fn both_versions_of_http_share_pages_over_tls() {
    let site = site(&["a.test"]);
    let pagewell = serve(&site, &["a.test"], "");
    let url = "https://a.test/page.php";
    let first = curl_tls(&site, &["--http2", url]);
    assert!(first.starts_with("http/2 200"), "{first}");
    assert!(first.contains("fwd=uri-miss"), "{first}");
    assert!(first.contains("on https http/2.0 0"), "{first}");
    let second = curl_tls(&site, &["--http1.1", url]);
    assert!(second.starts_with("http/1.1 200") && second.contains("pagewell; hit"), "{second}");
    let both = curl_tls(&site, &["--http2", url, "https://a.test/file.txt"]);
    assert!(both.contains("pagewell; hit") && both.contains("a file"), "{both}");
    // The scheme is part of the key.
    let plain = client(&pagewell).get("/page.php").expect("an answer");
    assert!(plain.text().starts_with("off http"), "{plain:?}");
    assert_eq!(counter(&pagewell, "renders"), 2);
    assert_eq!(counter(&pagewell, "http2_connections"), 2);
}

#[test]
fn only_tls_1_2_and_1_3_are_accepted() {
    let site = site(&["a.test"]);
    let pagewell = serve(&site, &["a.test"], "");
    let socket = site.at("tls.sock");
    for version in ["-tls1_2", "-tls1_3"] {
        assert!(shown(&socket, "a.test", &[version]).contains("BEGIN CERT"), "{version}");
    }
    let old = ["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"];
    assert!(!shown(&socket, "a.test", &old).contains("BEGIN CERT"));
    // Neither a connection that is no handshake, nor one that never sends a handshake.
    let plain = Command::new("curl")
        .args(["-sS", "--max-time", "120", "--unix-socket", &socket.display().to_string()])
        .arg("http://a.test/file.txt")
        .output()
        .expect("curl can be started");
    assert!(!String::from_utf8_lossy(&plain.stdout).contains("a file"));
    until("both are counted", || counter(&pagewell, "handshakes_failed") >= 2);
    drop(pagewell);
    let pagewell = serve_within(&site, &["a.test"], ("", "200ms"));
    let silent = UnixStream::connect(&socket).expect("it accepts");
    until("the silent one is let go", || counter(&pagewell, "handshakes_failed") >= 1);
    until("and nothing is left of them", || counter(&pagewell, "connections") == 0);
    drop(silent);
}

#[test]
fn certificates_are_chosen_by_sni_and_reloaded_without_a_restart() {
    let names = ["a.test", "*.b.test"];
    let site = site(&names);
    let pagewell = serve(&site, &names, "");
    let socket = site.at("tls.sock");
    let on_disk = |name: &str| {
        text(&fs::read_to_string(site.at(&format!("{name}.crt"))).expect("a certificate"))
    };
    let shows = |name: &str| text(&shown(&socket, name, &[]));
    assert_eq!(shows("a.test"), on_disk("a.test"));
    assert_eq!(shows("x.b.test"), on_disk("*.b.test"));
    assert_eq!(shows("stranger.test"), on_disk("a.test"));
    // A broken pair of files: the old certificate stays in use, and the log names the file.
    let old = on_disk("a.test");
    fs::write(site.at("a.test.key"), "no key").expect("written");
    until("the log says so", || pagewell.log().contains("certificates-unusable"));
    assert!(pagewell.log().contains("a.test.key"), "{}", pagewell.log());
    assert_eq!(shows("a.test"), old);
    let new = text(&certify(&site, "a.test"));
    assert_ne!(new, old);
    until("the new one is shown", || shows("a.test") == new);
}

#[test]
fn http2_without_tls() {
    let site = site(&[]);
    let pagewell = site.serve("[limits]\nbody_bytes = \"1M\"\nuri_bytes = 200\n");
    let url = |path: &str| format!("http://{}{path}", pagewell.address());
    let h2 = |args: &[&str]| curl(&[&["--http2-prior-knowledge"], args].concat());
    let page = url("/page.php");
    let first = h2(&[&page]);
    assert!(first.starts_with("http/2 200") && first.contains("fwd=uri-miss"), "{first}");
    let content = site.at("content");
    fs::write(&content, vec![b'x'; 300_000]).expect("written");
    let upload = format!("@{}", content.display());
    let post = h2(&["--data-binary", &upload, "-H", "cookie: a=1", "-H", "cookie: b=2", &page]);
    assert!(post.contains("300000 a=1; b=2"), "{post}");
    let long = url(&format!("/{}", "x".repeat(300)));
    assert!(h2(&[&long]).contains("http/2 414"));
    assert!(h2(&["-X", "TRACE", &page]).contains("http/2 405"));
    // The POST has purged the page.
    assert!(h2(&[&page]).contains("fwd=uri-miss"));
    let head = h2(&["--head", &page]);
    assert!(head.contains("pagewell; hit") && head.contains("content-length"), "{head}");
    until("all have gone", || counter(&pagewell, "connections") == 0);
    until("the places are free", || counter(&pagewell, "origin_places_taken") == 0);
}

#[test]
fn a_request_that_only_begins_like_http2_is_http1_or_refused() {
    let site = site(&[]);
    let pagewell = site.serve("");
    let mut raw = Raw::with(&pagewell, "P");
    raw.send("UT /file.txt HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(raw.answer().status, 405);
    assert_eq!(Raw::with(&pagewell, "PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n").answer().status, 400);
    let impatient = site.serve("[limits]\nheader_timeout = \"200ms\"\n");
    assert_eq!(Raw::with(&impatient, "PRI * HT").answer().status, 408);
    let mut empty_line = Raw::with(&pagewell, "\r\nGET /file.txt HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(empty_line.answer().content, "a file");
}

#[test]
fn clients_without_tls_are_redirected_to_https() {
    let site = site(&["a.test"]);
    site.file(".well-known/acme-challenge/token", "the token");
    let pagewell = serve(&site, &["a.test"], "https_redirect = 308");
    let mut raw = Raw::connect(&pagewell);
    for target in ["/page.php?a=b", "/file.txt"] {
        raw.send(format!("GET {target} HTTP/1.1\r\nHost: a.test\r\n\r\n"));
        let answer = raw.answer();
        assert_eq!(answer.status, 308);
        assert_eq!(answer.header("location"), Some(&*format!("https://a.test{target}")));
    }
    raw.send("GET /.well-known/acme-challenge/token HTTP/1.1\r\nHost: a.test\r\n\r\n");
    assert_eq!(raw.answer().content, "the token");
    assert!(curl_tls(&site, &["https://a.test/page.php"]).starts_with("http/2 200"));
    assert!(curl_tls(&site, &["https://a.test/page.php"]).contains("pagewell; hit"));
    raw.send("GET /page.php HTTP/1.1\r\nHost: a.test\r\n\r\n");
    assert_eq!(raw.answer().status, 308, "nor from memory");
}

#[test]
fn a_proxy_over_tls_that_names_http_is_redirected_to_https() {
    let site = site(&["a.test"]);
    let more = "https_redirect = 308\ntrusted_proxies = [\"unix\"]";
    let _served = serve(&site, &["a.test"], more);
    let url = "https://a.test/file.txt";
    for version in ["--http1.1", "--http2"] {
        // The second response is from memory.
        for said in [curl_tls(&site, &[version, url]), curl_tls(&site, &[version, url])] {
            assert!(said.contains("a file"), "{said}");
        }
        let said = curl_tls(&site, &[version, "-H", "X-Forwarded-Proto: http", url]);
        assert!(said.contains(&format!("location: {url}")) && !said.contains("a file"), "{said}");
    }
}

/// The status line of a request over TLS with the server name `a.test` and this `Host`, and its `Location`.
fn with_host(site: &Site, version: &str, path: &str, host: &str) -> (String, String) {
    let (url, host) = (format!("https://a.test{path}"), format!("Host: {host}"));
    let said = curl_tls(site, &[version, "-H", &host, &url]);
    let status = said.split_whitespace().nth(1).unwrap_or_default().to_owned();
    let location = said.lines().find_map(|line| line.strip_prefix("location: "));
    (status, location.unwrap_or_default().trim().to_owned())
}

#[test]
fn the_host_decides_about_rules_and_not_the_server_name() {
    let site = site(&["a.test"]);
    let rules = "[site]\nhost = \"a.test\"\naliases = [\"www.a.test\", \"closed.test\"]\nother_hosts = \"refuse\"\n\
        [[rule]]\nhost = \"closed.test\"\ndeny = 403\n\
        [[rule]]\npath = \"/old\"\nredirect = \"/file.txt\"\n";
    let served = serve(&site, &["a.test"], rules);
    for version in ["--http1.1", "--http2"] {
        let ask = |path: &str, host: &str| with_host(&site, version, path, host);
        for (path, host, right) in [
            ("/file.txt", "a.test", ("200", "")),
            ("/file.txt", "A.TEST", ("200", "")),
            ("/file.txt", "a.test:443", ("200", "")),
            ("/old", "a.test:443", ("301", "/file.txt")),
            ("/old", "www.a.test", ("301", "/file.txt")),
            ("/file.txt", "closed.test", ("403", "")),
            ("/file.txt", "CLOSED.test:443", ("403", "")),
            ("/old", "closed.test", ("403", "")),
            ("/file.txt", "b.test", ("421", "")),
            ("/old", "b.test", ("421", "")),
            ("/file.txt", "a.test.", ("421", "")),
            ("/file.txt", "closed.test.", ("421", "")),
            ("/file.txt", "a.test@b.test", ("400", "")),
            ("/file.txt", "closed.test@a.test", ("400", "")),
        ] {
            // Twice: the second answer may come from memory.
            for _ in 0..2 {
                let (status, location) = ask(path, host);
                assert_eq!((&*status, &*location), right, "{version} {host}{path}");
            }
        }
    }
    drop(served);
    let rules = rules.replace("[[rule]]\nhost", "canonical_redirect = 301\n[[rule]]\nhost");
    let _served = serve(&site, &["a.test"], &rules);
    for version in ["--http1.1", "--http2"] {
        for host in ["www.a.test", "WWW.A.test", "www.a.test:443", "closed.test"] {
            let found = with_host(&site, version, "/file.txt?a=b", host);
            assert_eq!(found, ("301".into(), "https://a.test/file.txt?a=b".into()), "{host}");
        }
        assert_eq!(with_host(&site, version, "//b.test/", "b.test").0, "421");
        let (_, location) = with_host(&site, version, "//b.test/", "www.a.test");
        assert_eq!(location, "https://a.test//b.test/", "{version}");
    }
}

/// Listens on a free port of the loopback interface, and passes each connection on to this socket.
fn forward_to(socket: PathBuf) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("its address");
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let Ok(server) = UnixStream::connect(&socket) else { return };
            let (mut up, mut down) = (client.try_clone().expect("a copy"), client);
            let (mut to, mut from) = (server.try_clone().expect("a copy"), server);
            thread::spawn(move || {
                let _ = io::copy(&mut up, &mut to);
                let _ = to.shutdown(Shutdown::Write);
            });
            thread::spawn(move || {
                let _ = io::copy(&mut from, &mut down);
                let _ = down.shutdown(Shutdown::Both);
            });
        }
    });
    address
}

/// sslyze compares the server with Mozilla's intermediate profile. The test's certificate is the only thing that may
/// be wrong: no authority that sslyze knows has signed it.
#[test]
fn the_grade_is_that_of_mozillas_intermediate_profile() {
    let program = harness::root::target().join("sslyze/bin/sslyze");
    if !program.exists() {
        return skip(&format!("there is no {}: scripts/setup test", program.display()));
    }
    let site = site(&["a.test"]);
    let _pagewell = serve(&site, &["a.test"], "");
    let address = forward_to(site.at("tls.sock"));
    let report = site.at("grade.json");
    let graded = Command::new(&program)
        .args(["--mozilla_config", "intermediate", "--json_out"])
        .arg(&report)
        .arg(format!("a.test:{}{{127.0.0.1}}", address.port()))
        .output();
    let graded = graded.unwrap_or_else(|error| panic!("{}: {error}", program.display()));
    let said = String::from_utf8_lossy(&graded.stdout);
    let (_, grade) = said.split_once("COMPLIANCE AGAINST").expect(&said);
    let complaints: Vec<&str> =
        grade.lines().map(str::trim).filter(|line| line.starts_with("* ")).collect();
    let of_the_certificate = ["* certificate_path_validation:", "* maximum_certificate_lifespan:"];
    let is_known = |line: &&str| of_the_certificate.iter().any(|known| line.starts_with(known));
    assert!(complaints.iter().all(is_known), "{said}");
    assert!(grade.contains("a.test:"), "{said}");
    let report = fs::read_to_string(&report).expect("a report");
    assert!(report.contains("TLS_AES_128_GCM_SHA256"), "it has found TLS 1.3: {said}");
}
