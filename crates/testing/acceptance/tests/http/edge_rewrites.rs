//! Rewrites and error pages on a site with files and a real php-fpm: the examples that Magento, Nextcloud, DokuWiki and
//! phpBB document for nginx and Apache; keys and purges by the URL of the client; and what a rewrite does not reach.

use acceptance::{Site, cache_status, client, counter};
use harness::{Pagewell, Request};
use std::fs;
use std::process::{Command, Output};

const SCRIPT: &str = "<?php keep(); echo $_SERVER['SCRIPT_NAME'], '|', $_SERVER['PATH_INFO'] ?? '', '|', $_SERVER['QUERY_STRING'], '|', $_SERVER['REQUEST_URI'];";

const DOCUMENTED: &str = r#"
# Magento 2: nginx.conf.sample
[[rule]]
path = "/media/**"
file = "missing"
rewrite = "/get.php"
[[rule]]
path_regex = "^/static/version\\d+/(.*)$"
file = "missing"
rewrite = "/static/$1"
[[rule]]
path = "/static/**"
file = "missing"
rewrite = "/static.php?resource=$1"
# Nextcloud: nginx documentation
[[rule]]
path_regex = "^/remote/(.*)$"
rewrite = "/remote.php/$1"
[[rule]]
path_regex = "^/ocs/v2/(.*)$"
rewrite = "/ocs/v2.php/$1"
# DokuWiki: nginx documentation
[[rule]]
path_regex = "^/_media/(.*)$"
rewrite = "/lib/exe/fetch.php?media=$1"
[[rule]]
path_regex = "^/_export/([^/]+)/(.*)$"
rewrite = "/doku.php?do=export_$1&id=$2"
[[rule]]
path_regex = "^/wiki/(.*)$"
file = "missing"
rewrite = "/doku.php?id=$1"
# phpBB: nginx.sample.conf
[[rule]]
path = "/forum/**"
file = "missing"
rewrite = "/app.php"
"#;

/// Status and content.
fn asked(pagewell: &Pagewell, path: &str) -> (u16, String) {
    let response = client(pagewell).get(path).expect("an answer");
    (response.status, response.text())
}

fn ran(text: &str) -> (u16, String) {
    (200, text.to_owned())
}

#[test]
fn documented_rewrites_are_expressed() {
    let site = Site::new(&[
        ("index.php", SCRIPT),
        ("get.php", SCRIPT),
        ("media/there.png", "a picture"),
        ("static.php", SCRIPT),
        ("static/there.css", "a style"),
        ("remote.php", SCRIPT),
        ("ocs/v2.php", SCRIPT),
        ("doku.php", SCRIPT),
        ("lib/exe/fetch.php", SCRIPT),
        ("app.php", SCRIPT),
    ]);
    let pagewell = site.serve(DOCUMENTED);
    for _ in 0..2 {
        for (path, right) in [
            ("/media/there.png", "a picture"),
            ("/media/x/y.png?w=2", "/get.php||w=2|/media/x/y.png?w=2"),
            ("/static/version12/there.css", "a style"),
            ("/static/a/b.js", "/static.php||resource=a/b.js|/static/a/b.js"),
            ("/remote/dav/files", "/remote.php|/dav/files||/remote/dav/files"),
            ("/ocs/v2/cloud", "/ocs/v2.php|/cloud||/ocs/v2/cloud"),
            (
                "/_media/ns:a%20b.png?w=3",
                "/lib/exe/fetch.php||media=ns:a%20b.png&w=3|/_media/ns:a%20b.png?w=3",
            ),
            ("/_export/pdf/start", "/doku.php||do=export_pdf&id=start|/_export/pdf/start"),
            ("/wiki/a%26do=admin", "/doku.php||id=a%26do%3Dadmin|/wiki/a%26do=admin"),
            ("/forum/topic/4?p=1", "/app.php||p=1|/forum/topic/4?p=1"),
            ("/other?x", "/index.php||x|/other?x"),
        ] {
            assert_eq!(asked(&pagewell, path), ran(right), "{path}");
        }
    }
    // The second of each path is a hit, but for that of the file.
    assert!(counter(&pagewell, "rewritten") >= 9);
}

#[test]
fn key_and_purge_have_the_url_of_the_client() {
    let site = Site::new(&[("index.php", SCRIPT), ("wiki.php", SCRIPT), ("other.php", SCRIPT)]);
    let of =
        |script: &str| format!("[[rule]]\npath = \"/w/*\"\nrewrite = \"/{script}.php?id=$1\"\n");
    let pagewell = site.serve(&of("wiki"));
    let status = |path: &str| {
        let response = client(&pagewell).get(path).expect("an answer");
        cache_status(&response).to_owned()
    };
    assert!(status("/w/a").contains("stored") && status("/w/b").contains("stored"));
    assert!(status("/w/a").contains("hit") && status("/w/b").contains("hit"));
    // The script's own URL has pages of its own.
    assert!(status("/wiki.php?id=a").contains("stored") && status("/other").contains("stored"));
    let purge = Request::new("PURGE", "/wiki.php?id=b");
    assert_eq!(client(&pagewell).send(&purge).expect("an answer").status, 200);
    assert!(status("/w/b").contains("hit"));
    let purge = Request::new("PURGE", "/w/b");
    assert_eq!(client(&pagewell).send(&purge).expect("an answer").status, 200);
    assert!(status("/w/b").contains("stored") && status("/w/a").contains("hit"));
    // A changed rewrite purges the pages that it concerns.
    site.config(&of("other"), "");
    let reload = Request::new("POST", "/v1/reload").content(b"{}");
    let reload = reload.header("Content-Type", "application/json");
    let mut admin = harness::Client::new(pagewell.admin().clone()).within(acceptance::BOUND);
    assert_eq!(admin.send(&reload).expect("an answer").status, 200);
    assert_eq!(counter(&pagewell, "pages"), 2);
    assert!(status("/w/a").contains("stored") && status("/other").contains("hit"));
    assert!(asked(&pagewell, "/w/a").1.starts_with("/other.php||id=a"));
}

#[test]
fn a_rewrite_reaches_nothing_that_is_refused() {
    let site = Site::new(&[
        ("index.php", SCRIPT),
        ("uploads/x.php", SCRIPT),
        ("closed/page.html", "closed"),
        (".env", "secret"),
        ("beta.php", SCRIPT),
        ("page.html", "a page"),
        ("new.html", "the new page"),
    ]);
    let rules = r#"
[[rule]]
path = "/closed/**"
deny = 403
[[rule]]
path = "/uploads/**"
php = false
[[rule]]
path_regex = "^/r/(.*)$"
rewrite = "/$1"
[[rule]]
path = "/app"
cookie = "beta=*"
bypass = true
rewrite = "/beta.php"
[[rule]]
path = "/page.html"
query = "new"
rewrite = "/new.html"
"#;
    let pagewell = site.serve(rules);
    for path in [
        "/r/uploads/x.php",
        "/r/uploads/x.php/y",
        "/r/uploads%2fx.php",
        "/r/x/..%2fuploads/x.php",
        "/r/uploads/x.PHP",
        "/r/.env",
        "/r/x.php%00",
    ] {
        let (status, text) = asked(&pagewell, path);
        let is_safe = !text.contains("uploads/x.php|") && !text.contains("secret");
        assert!(is_safe && matches!(status, 400 | 404), "{path}: {status} {text}");
    }
    // A deny protects paths of clients; a rewrite may lead there.
    assert_eq!(asked(&pagewell, "/closed/page.html").0, 403);
    assert_eq!(asked(&pagewell, "/r/closed/page.html"), ran("closed"));
    // A rule about the client never decides what is stored.
    assert!(asked(&pagewell, "/app").1.starts_with("/index.php"));
    for _ in 0..2 {
        let beta = Request::get("/app").header("cookie", "beta=1");
        let response = client(&pagewell).send(&beta).expect("an answer");
        assert!(response.text().starts_with("/beta.php"), "{}", response.text());
        assert!(!cache_status(&response).contains("hit"));
        assert!(asked(&pagewell, "/app").1.starts_with("/index.php"));
    }
    // A file that plain hits serve by its path is still rewritten by its query.
    for _ in 0..3 {
        assert_eq!(asked(&pagewell, "/page.html"), ran("a page"));
        assert_eq!(asked(&pagewell, "/page.html?new"), ran("the new page"));
    }
}

#[test]
fn error_pages_replace_the_content_of_own_errors_only() {
    let own = "<?php http_response_code(404); echo 'of the application';";
    let site = Site::new(&[
        ("own.php", own),
        (".env", "secret"),
        ("404.html", "<p>not here</p>"),
        ("errors/refused.json", "{}"),
        ("errors/4xx.txt", "other"),
    ]);
    let config = r#"
[error_pages]
404 = "404.html"
403 = "/errors/refused.json"
"4xx" = "errors/4xx.txt"
"5xx" = "errors/4xx.txt"
[limits]
certificate_look = "10ms"
[[rule]]
path = "/closed"
deny = 403
[[rule]]
path = "/read"
method = ["!GET"]
deny = 405
[[rule]]
path = "/busy"
deny = 503
retry_after = "5m"
[[rule]]
set_headers = { X-All = "yes" }
"#;
    let pagewell = site.serve(config);
    let missing = client(&pagewell).get("/.env").expect("an answer");
    assert_eq!((missing.status, missing.text().as_str()), (404, "<p>not here</p>"));
    for (name, right) in [
        ("content-type", "text/html; charset=utf-8"),
        ("content-length", "15"),
        ("cache-control", "no-store"),
        ("cache-status", "pagewell; detail=not-found"),
        ("x-all", "yes"),
    ] {
        assert_eq!(missing.header(name), Some(right), "{name}");
    }
    let head = client(&pagewell).send(&Request::new("HEAD", "/.env")).expect("an answer");
    assert_eq!((head.status, head.header("content-length")), (404, Some("15")));
    assert!(head.text().is_empty());
    let refused = client(&pagewell).get("/closed").expect("an answer");
    assert_eq!((refused.status, refused.text().as_str()), (403, "{}"));
    assert_eq!(refused.header("content-type"), Some("application/json"));
    let post = Request::new("POST", "/read").header("content-length", "0");
    let post = client(&pagewell).send(&post).expect("an answer");
    assert_eq!(
        (post.status, post.header("allow"), post.text().as_str()),
        (405, Some("GET, HEAD"), "other")
    );
    let busy = client(&pagewell).get("/busy").expect("an answer");
    assert_eq!(
        (busy.status, busy.header("retry-after"), busy.text().as_str()),
        (503, Some("300"), "other")
    );
    assert_eq!(asked(&pagewell, "/own.php"), (404, "of the application".to_owned()));
    assert_eq!(counter(&pagewell, "error_pages"), 5);
    fs::write(site.root().join("404.html"), "<p>changed</p>").expect("written");
    acceptance::until("the page is read again", || asked(&pagewell, "/.env").1 == "<p>changed</p>");
}

#[test]
fn explain_assumes_an_address_and_names_rewrites() {
    let site = Site::new(&[("index.php", SCRIPT), ("get.php", SCRIPT), ("x.inc7", SCRIPT)]);
    let rules = r#"
[site]
scripts = [".php", ".inc7"]
[[rule]]
name = "office"
path = "/intern/**"
from = "!192.0.2.0/24"
deny = 403
[[rule]]
path = "/x.inc7"
deny = 404
[[rule]]
path = "/media/**"
rewrite = "/get.php"
[[rule]]
path = "/uploads/**"
php = false
"#;
    let pagewell = site.serve(rules);
    let explained = |pagewell: &Pagewell, args: &[&str]| {
        let admin = pagewell.admin().to_string();
        let all = [&["explain", "--admin", &admin][..], args].concat();
        let Output { stdout, stderr, .. } =
            Command::new(acceptance::binary()).args(all).output().expect("runs");
        let text = String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned();
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    for (args, parts) in [
        (
            &["/intern/a"][..],
            &["The status is 403.", "assumed to have no address", "1 office (deny)"][..],
        ),
        (&["/intern/a", "--from", "192.0.3.1"], &["The status is 403.", "assumed to be 192.0.3.1"]),
        (&["/intern/a", "--from", "192.0.2.1"], &["assumed to be 192.0.2.1", "lookup"]),
        (&["/media/x"], &["3 (rewrite)"]),
        (&["/x.inc7/y"], &["2 (deny)"]),
    ] {
        let said = explained(&pagewell, args);
        assert!(parts.iter().all(|part| said.contains(part)), "{args:?}: {said}");
    }
    assert_eq!(asked(&pagewell, "/x.inc7/y").0, 404);
    drop(pagewell);
    let pagewell = site.serve("[[rule]]\npath = \"/uploads/**\"\nphp = false\n");
    let said = explained(&pagewell, &[&"/a.php".repeat(18)]);
    let parts = ["the path names more than 16 scripts (php)", "script-refused"];
    assert!(parts.iter().all(|part| said.contains(part)), "{said}");
}
