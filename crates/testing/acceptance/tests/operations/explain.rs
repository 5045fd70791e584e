//! `pagewell explain` and `pagewell misses` as an operator uses them, on the real binary with a real
//! php-fpm: why a page is never a hit, which change purged it, which pages have a tag; also over a Unix socket
//! and with a token. The content of each explanation is tested in the scenarios (`tests/scenarios/explain`).

use crate::cli::{run, said};
use acceptance::{Raw, Site, cache_status, client, get_meanwhile, is_hit, until};
use harness::{Address, Pagewell, Request, Stopwatch};
use std::fs;

fn admin(pagewell: &Pagewell) -> String {
    match pagewell.admin() {
        Address::Tcp(address) => address.to_string(),
        Address::Unix(path) => format!("unix:{}", path.display()),
    }
}

fn site() -> Site {
    Site::new(&[
        ("news.php", "<?php keep(3600); header('Cache-Groups: \"news:4\"'); echo 'news';"),
        ("shop.php", "<?php session_start(); keep(3600); echo 'shop';"),
        ("slow.php", "<?php note('started'); wait_for('go'); keep(3600); echo 'slow';"),
        ("save.php", "<?php header('Cache-Group-Invalidation: \"news:4\"'); echo 'saved';"),
    ])
}

#[test]
fn an_operator_finds_out_why() {
    let site = site();
    let pagewell = site.serve("");
    let admin = admin(&pagewell);
    let explain = |args: &[&str]| said(&[&["explain", "--admin", &admin], args].concat());
    let get = |path: &str| client(&pagewell).get(path).expect("an answer");

    for _ in 0..3 {
        assert!(!is_hit(&get("/shop.php")));
    }
    let shop = explain(&["/shop.php"]);
    assert!(shop.contains("it sets the cookie `PHPSESSID` on every response"), "{shop}");
    assert!(shop.contains("3 of 3 not stored"), "{shop}");
    assert!(shop.contains("what to do"), "{shop}");

    get("/news.php");
    assert!(is_hit(&get("/news.php")));
    let news = explain(&["/news.php"]);
    assert!(news.contains("hit ") && news.contains("served once"), "{news}");
    assert!(news.contains("depends on   news:4"), "{news}");
    let tagged = explain(&["--tag", "news:4"]);
    assert!(tagged.starts_with("news:4: 1 page\n") && tagged.contains("/news.php"), "{tagged}");

    let save = Request::new("POST", "/save.php").content(b"x");
    client(&pagewell).send(&save).expect("an answer");
    let news = explain(&["/news.php"]);
    assert!(news.contains("purged by the response to POST http://"), "{news}");
    assert!(news.contains("/save.php (change ") && news.contains(", tag news:4)"), "{news}");
    let changes = explain(&["--changes"]);
    assert!(changes.contains("tag news:4; 1 purged, 0 marked stale"), "{changes}");

    let signed = explain(&["/news.php", "--cookie", "_ga=1", "--cookie", "PHPSESSID=topsecret"]);
    assert!(
        signed.contains("the cookie `PHPSESSID`, which counts as a session cookie"),
        "{signed}"
    );
    assert!(!signed.contains("topsecret"), "{signed}");
    let told = explain(&["/news.php", "--header", "Accept-Language: de", "--json"]);
    let told: serde_json::Value = serde_json::from_str(&told).expect("JSON");
    assert_eq!(told["verdict"], "render");
}

#[test]
fn the_applications_own_reason_is_shown_and_one_visitors_is_not_everybodys() {
    let refusing = "<?php if (isset($_COOKIE['weird'])) {
            header('Pagewell-Cache-Control: no-store'); header('X-Pagewell-Refusal: visitors-cookie');
        } else { keep(3600); } echo 'page';";
    let framework = "<?php setcookie('shopvisit', 'topsecret'); header('Cache-Control: private');
        header('X-Pagewell-Refusal: set-cookie'); echo 'shop';";
    let error =
        "<?php http_response_code(500); header('Cache-Control: no-cache, private'); echo 'x';";
    let site = Site::new(&[("page.php", refusing), ("shop.php", framework), ("error.php", error)]);
    let pagewell = site.serve("");
    let admin = admin(&pagewell);
    let explain = |args: &[&str]| said(&[&["explain", "--admin", &admin], args].concat());
    let get = |path: &str| client(&pagewell).get(path).expect("an answer");

    let weird = Request::new("GET", "/page.php").header("Cookie", "weird=topsecret");
    let refused = client(&pagewell).send(&weird).expect("an answer");
    assert_eq!(refused.header("x-pagewell-refusal"), Some("visitors-cookie"));
    let page = explain(&["/page.php"]);
    assert!(page.contains("its request had the cookie `weird`"), "{page}");
    assert!(page.contains("a request without it may be stored"), "{page}");
    assert!(page.contains("name it in cookies.ignore"), "{page}");
    assert!(
        page.contains("not stored (the application does not offer it: visitors-cookie; no-store)")
    );
    assert!(!page.contains("topsecret") && !page.contains("emove "), "{page}");
    assert!(!page.contains("a guess"), "{page}");
    let same = explain(&["/page.php", "--cookie", "weird=1"]);
    assert!(same.contains("It is not cached: the application does not offer it"), "{same}");
    get("/page.php");
    assert!(is_hit(&get("/page.php")));

    for (path, reason) in [("/shop.php", "set-cookie"), ("/error.php", "server-error")] {
        let status = get(path);
        assert!(cache_status(&status).contains(reason), "{}", cache_status(&status));
    }
    let shop = explain(&["/shop.php"]);
    assert!(shop.contains("the application does not offer it: `set-cookie`"), "{shop}");
    assert!(shop.contains("it sets the cookie `shopvisit`"), "{shop}");
    assert!(!shop.contains("emove private"), "{shop}");
    let misses = said(&["misses", "--admin", &admin]);
    assert!(misses.contains("the application does not offer it: visitors-cookie; no-store  e.g."));
    assert!(!misses.contains("topsecret"), "{misses}");
    let signed = explain(&["/page.php", "--cookie", "PHPSESSID=x"]);
    assert!(signed.contains("forwarded to the origin, and the response is not stored"), "{signed}");
    assert!(!signed.contains("private copy"), "{signed}");
    let slash = explain(&["/page.php/"]);
    assert!(slash.contains("A page is cached under `/page.php`"), "{slash}");
}

#[test]
fn a_fatal_error_after_the_first_output_is_the_reason() {
    let unbuffered =
        "<?php while (ob_get_level()) { ob_end_flush(); } echo 'half '; no_such_function();";
    let flushed = "<?php out('half '); wait_for('go'); no_such_function();";
    let site = Site::new(&[("short.php", unbuffered), ("flushed.php", flushed)]);
    let pagewell = site.serve("");
    let admin = admin(&pagewell);
    let reason = |path: &str| {
        let told = said(&["explain", "--admin", &admin, path, "--json"]);
        let told: serde_json::Value = serde_json::from_str(&told).expect("JSON");
        told["last_render"]["reason"].as_str().expect("it was not stored").to_owned()
    };
    // The message has arrived together with the header section.
    let short = client(&pagewell).get("/short.php").expect("an answer");
    assert_eq!((short.status, short.text().as_str()), (200, "half "));
    assert!(cache_status(&short).contains("php-fatal-error"), "{}", cache_status(&short));
    assert_eq!(reason("/short.php"), "php-fatal-error");
    // The header section has gone out before.
    let mut raw = Raw::with(&pagewell, "GET /flushed.php HTTP/1.1\r\nHost: a\r\n\r\n");
    raw.until("half ");
    assert_eq!(reason("http://a/flushed.php"), "no-lifetime");
    site.note("go");
    raw.until("0\r\n\r\n");
    assert_eq!(reason("http://a/flushed.php"), "php-fatal-error");
}

#[test]
fn the_causes_of_misses_are_listed_the_worst_first() {
    let site = site();
    let pagewell = site.serve("");
    let get = |path: &str| client(&pagewell).get(path).expect("an answer");
    let clock = Stopwatch::start();
    for path in ["/shop.php", "/shop.php", "/news.php?page=topsecret"] {
        get(path);
    }
    // It takes longer than all others together, however busy the machine is.
    let others = clock.elapsed();
    let slow = get_meanwhile(&pagewell, "/slow.php");
    site.wait_for("started");
    let clock = Stopwatch::start();
    until("it is the slowest", || clock.elapsed() > others);
    site.note("go");
    slow.join().expect("it ran");
    let admin = admin(&pagewell);
    let told = said(&["misses", "--admin", &admin]);
    let at = |text: &str| told.find(text).unwrap_or_else(|| panic!("{text} is not in\n{told}"));
    assert!(at("Responses that were not stored") < at("set-cookie  e.g. http"));
    assert!(at("PHPSESSID of PHP (set)") > 0 && at("news.php?page=…") > 0);
    let slowest = told.split("Slowest origin requests\n").nth(1).expect("a section");
    assert!(slowest.lines().next().is_some_and(|line| line.contains("/slow.php")), "{told}");
    assert!(!told.contains("topsecret"), "{told}");
    let told = said(&["misses", "--admin", &admin, "--json"]);
    let told: serde_json::Value = serde_json::from_str(&told).expect("JSON");
    assert_eq!(told["not_stored"][0]["count"], 2);
}

#[test]
fn access_and_errors_are_those_of_other_calls() {
    let site = site();
    let token = site.at("token");
    fs::write(&token, "0123456789abcdef").expect("can be written");
    let pagewell = site.serve(&format!("admin_token_file = {token:?}\n"));
    let (admin, token) = (admin(&pagewell), token.display().to_string());
    let refused = run(&["explain", "/", "--admin", &admin]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("401"), "{refused:?}");
    let right = said(&["explain", "/", "--admin", &admin, "--token-file", &token]);
    assert!(right.contains("nothing is known about earlier ones"), "{right}");
    for (args, code) in [
        (&["explain"][..], 2),
        (&["explain", "/a", "--tag", "b"], 2),
        (&["explain", "--tag", "b", "--cookie", "a=b"], 2),
        (&["explain", "/a", "--cookie", "a"], 2),
        (&["explain", "/a", "--header", "a"], 2),
    ] {
        assert_eq!(run(args).status.code(), Some(code), "{args:?}");
    }
}
