//! The memcached port of the real binary: items stored there are invalidated like any page, and a render that
//! began before a change is not stored after it. With plain connections, and with PHP's two memcached
//! extensions. A real nginx in front is tested in `nginx_config`.

use acceptance::Site;
use harness::{Client, Pagewell};
use serde_json::Value;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Pagewell with a memcached port, and the path of its socket.
fn start(site: &Site) -> (Pagewell, PathBuf) {
    let socket = site.at("memcached.sock");
    let pagewell = site.serve(&format!("[memcached]\nlisten = \"unix:{}\"\n", socket.display()));
    (pagewell, socket)
}

/// The answers to these commands.
fn say(socket: &Path, said: &str) -> String {
    let mut stream = UnixStream::connect(socket).expect("it listens");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a time over zero");
    stream.write_all(format!("{said}quit\r\n").as_bytes()).expect("it reads");
    let mut heard = String::new();
    stream.read_to_string(&mut heard).expect("it answers, and closes the connection");
    heard
}

fn set(key: &str, value: &str) -> String {
    format!("set {key} 0 0 {}\r\n{value}\r\n", value.len())
}

fn lease(socket: &Path) -> String {
    let heard = say(socket, "get pagewell:lease\r\n");
    heard.lines().nth(1).expect("a lease").to_owned()
}

fn get(socket: &Path, key: &str) -> Option<String> {
    let heard = say(socket, &format!("get {key}\r\n"));
    heard.lines().nth(1).map(str::to_owned)
}

#[test]
fn a_change_purges_only_dependent_items() {
    let site = Site::new(&[]);
    let (pagewell, socket) = start(&site);
    let pages = [("/news/4/", "news,news:4"), ("/news/", "news"), ("/about/", "about")];
    for (key, tags) in pages {
        assert_eq!(
            say(&socket, &set(key, &format!("Pagewell-Page: tags={tags}\n{key}"))),
            "STORED\r\n"
        );
        // The first line with the page metadata is removed.
        assert_eq!(get(&socket, key).as_deref(), Some(key));
    }
    pagewell.invalidate(r#"{"tags":["news:4"]}"#).expect("it answers");
    let left = |key| get(&socket, key).is_some();
    assert_eq!([left("/news/4/"), left("/news/"), left("/about/")], [false, true, true]);
    // By its URL, by a prefix, and softly: it is removed as well.
    pagewell.invalidate(r#"{"urls":["/about/"]}"#).expect("it answers");
    assert!(!left("/about/"));
    pagewell.invalidate(r#"{"prefixes":["/news/"],"soft":true}"#).expect("it answers");
    assert!(!left("/news/"));
}

/// The explanation of a URL includes the item that nginx reads for it.
#[test]
fn a_page_stored_here_is_explained() {
    let site = Site::new(&[]);
    let (pagewell, socket) = start(&site);
    let page = "Pagewell-Page: tags=a%2Cb,a%20b\n<p>four";
    assert_eq!(say(&socket, &set("/news/4/", page)), "STORED\r\n");
    let explained = || {
        let told = pagewell.explain(r#"{"url":"/news/4/"}"#).expect("it answers");
        told["memcached"].as_array().expect("a list").clone()
    };
    let item = &explained()[0];
    assert_eq!((&item["key"], &item["bytes"]), (&"/news/4/".into(), &7.into()));
    assert_eq!((&item["ends_at_ms"], &item["has_ended"]), (&Value::Null, &false.into()));
    // A tag may contain a comma and a space.
    pagewell.invalidate(r#"{"tags":["a"]}"#).expect("it answers");
    assert_eq!(explained().len(), 1);
    pagewell.invalidate(r#"{"tags":["a,b"]}"#).expect("it answers");
    assert_eq!(explained().len(), 0);
    assert_eq!(say(&socket, &set("/late/", page)), "NOT_STORED\r\n");
}

/// A TLS ClientHello contains bytes chosen by the client. A line among them must not store anything.
#[test]
fn a_connection_that_begins_with_no_command_is_closed() {
    let site = Site::new(&[]);
    let (pagewell, socket) = start(&site);
    for begins in ["\x16\x03\x01\x02\0\r\n", "\r\n", "nonsense\r\n", "get\r\n"] {
        let mut stream = UnixStream::connect(&socket).expect("it listens");
        let all = format!("{begins}set item 0 0 1\r\nx\r\n");
        let mut answer = String::new();
        // The server may close the connection before everything is written or read.
        let _ = stream.write_all(all.as_bytes()).and_then(|()| stream.read_to_string(&mut answer));
        assert_eq!(answer, "", "{begins:?}");
        assert_eq!(say(&socket, "get item\r\n"), "END\r\n", "{begins:?}");
    }
    acceptance::until("it is logged", || pagewell.log().contains("reason=\"no-command\""));
    assert_eq!(say(&socket, "version\r\nnonsense\r\nget item\r\n").lines().count(), 3);
}

/// All incomplete items together may use only a part of the page budget.
#[test]
fn incomplete_items_use_limited_memory() {
    let site = Site::new(&[]);
    let (pagewell, socket) = start(&site);
    let value = vec![b'x'; 1_000_000];
    let mut held = Vec::new();
    // The budget is 64 MiB: the seventeenth item reaches a quarter of it.
    for n in 0..20 {
        let mut stream = UnixStream::connect(&socket).expect("it listens");
        let begun = format!("set item{n} 0 0 1000000\r\n").into_bytes();
        // The server may close the connection in the meantime.
        let _ = stream.write_all(&begun).and_then(|()| stream.write_all(&value));
        held.push(stream);
    }
    acceptance::until("some are let go of", || pagewell.log().contains("reason=\"no-room\""));
    drop(held);
    acceptance::until("there is room again", || say(&socket, &set("item", "x")) == "STORED\r\n");
}

/// The operator decides which system users may store pages.
#[test]
fn the_socket_has_the_configured_permissions() {
    let site = Site::new(&[]);
    let mode = |said: &str| {
        let socket = site.at("items.sock");
        let listen = format!("[memcached]\nlisten = \"unix:{}\"\n{said}", socket.display());
        let _pagewell = site.serve(&listen);
        std::fs::metadata(&socket).expect("it is there").permissions().mode() & 0o777
    };
    assert_eq!(mode(""), 0o666);
    assert_eq!(mode("socket_mode = \"660\"\n"), 0o660);
}

#[test]
fn a_render_that_began_before_a_change_is_not_stored_after_it() {
    let site = Site::new(&[]);
    let (pagewell, socket) = start(&site);
    let page = |lease: &str| set("/a", &format!("Pagewell-Page: tags=a lease={lease}\nold"));
    let (before, other) = (lease(&socket), lease(&socket));
    pagewell.invalidate(r#"{"tags":["a"]}"#).expect("it answers");
    assert_eq!(say(&socket, &page(&before)), "NOT_STORED\r\n");
    // Another page whose render began at that time is stored.
    let beside = set("/b", &format!("Pagewell-Page: tags=b lease={other}\nb"));
    assert_eq!(say(&socket, &beside), "STORED\r\n");
    assert_eq!(say(&socket, &page(&lease(&socket))), "STORED\r\n");
    // Without a lease, the render is assumed to have begun before the change.
    pagewell.invalidate(r#"{"tags":["a"]}"#).expect("it answers");
    assert_eq!(say(&socket, &set("/a", "Pagewell-Page: tags=a\nold")), "NOT_STORED\r\n");
    assert_eq!(say(&socket, &set("/c", "Pagewell-Page: tags=c\nc")), "STORED\r\n");
    assert_eq!(say(&socket, &page("none")), "NOT_STORED\r\n");
    assert_eq!(get(&socket, "/a"), None);
    let stats = pagewell.stats().expect("it answers");
    assert_eq!(stats["memcached_refused"], 3);
    assert_eq!(stats["memcached_stored"], 3);
}

/// Neither with a binary key, nor with compressed content.
#[test]
fn no_page_bypasses_a_change() {
    let site = Site::new(&[]);
    let (pagewell, socket) = start(&site);
    let bytes = |said: &[u8]| {
        let mut stream = UnixStream::connect(&socket).expect("it listens");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a time over zero");
        stream.write_all(said).expect("it reads");
        let mut heard = Vec::new();
        stream.read_to_end(&mut heard).expect("it answers, and ends");
        heard
    };
    assert_eq!(bytes(b"set /\xe4 0 0 1\r\nx\r\nquit\r\n"), b"STORED\r\n");
    pagewell.invalidate(r#"{"prefixes":["/"]}"#).expect("it answers");
    assert_eq!(bytes(b"get /\xe4\r\nquit\r\n"), b"END\r\n");
    assert_eq!(bytes(b"set /\xe4 0 0 1\r\nx\r\nquit\r\n"), b"NOT_STORED\r\n");
    let encoded = "CLIENT_ERROR a page has flags 0: text, not compressed\r\n";
    assert_eq!(say(&socket, "set /z 48 0 1\r\nx\r\n"), encoded);
    assert_eq!(get(&socket, "/z"), None);
    // An item that is not a page may contain anything.
    assert_eq!(say(&socket, "set z 48 0 1\r\nx\r\n"), "STORED\r\n");
    let binary = [&[0x80_u8, 0x0b][..], &[0; 22]].concat();
    assert_eq!(bytes(&binary), b"");
    assert!(pagewell.log().contains("binary-protocol"), "{}", pagewell.log());
    // The value of a meta command is not executed.
    assert_eq!(bytes(b"get y\r\nms y 15\r\nset y 0 0 1\r\nx\r\n"), b"END\r\n");
    assert_eq!(get(&socket, "y"), None);
    acceptance::until("it is logged", || pagewell.log().contains("meta-commands"));
}

#[test]
fn deleting_a_page_is_a_change() {
    let site = Site::new(&[]);
    let (_pagewell, socket) = start(&site);
    let begun = lease(&socket);
    assert_eq!(say(&socket, &set("/a", "one")), "STORED\r\n");
    assert_eq!(say(&socket, "delete /a\r\n"), "DELETED\r\n");
    // The render that was in progress.
    let late = set("/a", &format!("Pagewell-Page: lease={begun}\nold"));
    assert_eq!(say(&socket, &late), "NOT_STORED\r\n");
    assert_eq!(say(&socket, &set("/a", "old")), "NOT_STORED\r\n");
    // For items that are not pages, the port behaves like memcached.
    let other = format!("{}delete a\r\n{}get a\r\n", set("a", "one"), set("a", "two"));
    assert_eq!(
        say(&socket, &other),
        "STORED\r\nDELETED\r\nSTORED\r\nVALUE a 0 3\r\ntwo\r\nEND\r\n"
    );
}

#[test]
fn items_and_http_pages_are_separate() {
    let site = Site::new(&[("a.php", "<?php keep(); echo 'from php';")]);
    let (pagewell, socket) = start(&site);
    assert_eq!(say(&socket, &set("/a.php", "an item")), "STORED\r\n");
    let mut http = Client::new(pagewell.address().clone());
    for _ in 0..2 {
        assert_eq!(http.get("/a.php").expect("it answers").text(), "from php");
    }
    assert_eq!(get(&socket, "/a.php").as_deref(), Some("an item"));
    let heard = say(&socket, "flush_all\r\nget /a.php\r\n");
    assert_eq!(heard, "OK\r\nEND\r\n");
    assert_eq!(http.get("/a.php").expect("it answers").text(), "from php");
    assert_eq!(pagewell.stats().expect("it answers")["renders"], 1);
}

#[test]
fn values_are_kept_as_memcached_keeps_them() {
    let site = Site::new(&[]);
    let (_pagewell, socket) = start(&site);
    let said = "set n 7 0 2\r\n10\r\nincr n 5\r\nappend n 0 0 1\r\n0\r\ntouch n 100\r\nget n\r\n\
                set gone 0 -1 1\r\nx\r\nget gone\r\ncas n 0 0 1 1\r\nx\r\nPagewell\r\nset bad 0 0 18\r\nPagewell-Page: x=1\r\n";
    let heard = "STORED\r\n15\r\nSTORED\r\nTOUCHED\r\nVALUE n 7 3\r\n150\r\nEND\r\n\
                 STORED\r\nEND\r\nEXISTS\r\nERROR\r\nCLIENT_ERROR unreadable page line\r\n";
    assert_eq!(say(&socket, said), heard);
    assert!(say(&socket, "version\r\n").starts_with("VERSION 1.6."));
    assert!(say(&socket, "stats\r\n").contains("STAT cmd_get "));
}

/// The same with both of PHP's extensions.
#[test]
fn phps_own_extensions_store_pages() {
    let site = Site::new(&[]);
    let (pagewell, socket) = start(&site);
    let memcached = "$m = new Memcached; $m->setOption(Memcached::OPT_COMPRESSION, false); $m->addServer($argv[1], 0);";
    let memcache = "$m = new Memcache; $m->addServer('unix://' . $argv[1], 0);";
    for connect in [memcached, memcache] {
        let begin = format!("{connect} echo $m->get('pagewell:lease');");
        let store = format!(
            "{connect} $page = 'Pagewell-Page: tags=a lease=' . $argv[2] . \"\\n\" . str_repeat('page', 1000);
             var_dump($m->set('/p', $page)); echo strlen((string) $m->get('/p'));"
        );
        let begun = php(&begin, &socket, "");
        assert_eq!(php(&store, &socket, &begun), "bool(true)\n4000");
        let begun = php(&begin, &socket, "");
        pagewell.invalidate(r#"{"tags":["a"]}"#).expect("it answers");
        assert_eq!(php(&store, &socket, &begun), "bool(false)\n0");
    }
    let getters = format!(
        "{memcached} var_dump($m->set('n', 5), $m->increment('n', 2), $m->getMulti(['n', 'x']),
         $m->touch('n', 50), $m->delete('n'), count($m->getVersion()));"
    );
    let said = php(&getters, &socket, "");
    assert!(said.starts_with("bool(true)\nint(7)\narray(1)"), "{said}");
    assert!(said.ends_with("bool(true)\nbool(true)\nint(1)\n"), "{said}");
}

fn php(script: &str, socket: &Path, argument: &str) -> String {
    let out = Command::new("php").args(["-r", script, "--"]).arg(socket).arg(argument).output();
    let out = out.expect("php runs");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).expect("text")
}
