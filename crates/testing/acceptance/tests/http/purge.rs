//! Permission to purge, for cases that scenarios cannot test: a token in a file, and Unix sockets, which have
//! no client address.

use acceptance::{Site, client, is_hit};
use harness::{Address, Client, Pagewell, Request, Response};
use std::fs;

const KEPT: &str = "<?php keep(); echo $_SERVER['REQUEST_URI'];";

fn get(pagewell: &Pagewell, path: &str) -> Response {
    client(pagewell).host("a.test").get(path).expect("an answer")
}

fn is_kept(pagewell: &Pagewell, path: &str) -> bool {
    get(pagewell, path);
    is_hit(&get(pagewell, path))
}

fn purge(address: &Address, fields: &[(&str, &str)]) -> u16 {
    let request = Request::new("PURGE", "/one").header("Host", "a.test");
    let request = fields.iter().fold(request, |all, (name, value)| all.header(name, value));
    Client::new(address.clone()).send(&request).expect("an answer").status
}

#[test]
fn a_token_purges_from_anywhere() {
    let site = Site::new(&[("index.php", KEPT)]);
    let token = site.at("token");
    fs::write(&token, "0123456789abcdef\n").expect("can be written");
    let pagewell = site.serve(&format!("[purge]\nfrom = []\ntoken_file = {token:?}\n"));
    let address = pagewell.address();
    assert!(is_kept(&pagewell, "/one"));
    let through = ("X-Forwarded-For", "192.0.2.1");
    for wrong in [
        &[][..],
        &[("Authorization", "Bearer 0123456789abcdeX")],
        &[("Authorization", "Bearer 0123456789abcdef0")],
        &[("Authorization", "Basic 0123456789abcdef")],
        &[("Authorization", "0123456789abcdef")],
        &[("Fastly-Key", "0123456789abcde")],
        &[("Fastly-Key", "")],
    ] {
        assert_eq!(purge(address, wrong), 405, "{wrong:?}");
    }
    assert!(is_hit(&get(&pagewell, "/one")));
    let right = ("Authorization", "Bearer 0123456789abcdef");
    for fields in [&[right][..], &[right, through], &[("Fastly-Key", "0123456789abcdef"), through]]
    {
        assert!(is_kept(&pagewell, "/one"));
        assert_eq!(purge(address, fields), 200, "{fields:?}");
        assert!(!is_hit(&get(&pagewell, "/one")), "{fields:?}");
    }
}

#[test]
fn purges_over_a_unix_socket_need_permission() {
    let site = Site::new(&[("index.php", KEPT)]);
    for (config, status) in [("", 405), ("[purge]\nfrom = [\"unix\"]\n", 200)] {
        let socket = format!("unix:{}", site.at("v.sock").display());
        let file = site.config(config, "").display().to_string();
        let pagewell = site.serve_with_args(&["--config", &file, "--listen", &socket]);
        let address: Address = socket.parse().expect("an address");
        assert_eq!(purge(&address, &[]), status, "{config}");
        assert_eq!(purge(&address, &[("Via", "1.1 x")]), 405, "{config}");
        drop(pagewell);
    }
}
