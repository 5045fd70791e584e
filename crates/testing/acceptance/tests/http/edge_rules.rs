//! Rules for access, scripts and response fields on a site with files and a real php-fpm, over HTTP/1.1 and HTTP/2.
//! How paths are read in all their spellings is also in `tests/scenarios/edge`.

use acceptance::{Site, cache_status, client, counter};
use harness::{Pagewell, Request};
use std::process::{Command, Output};

const RULES: &str = "
[[rule]]
path = \"/uploads/tool.php\"
php = true

[[rule]]
path = \"/uploads/**\"
php = false

[[rule]]
path = \"/admin/**\"
deny = 403

[[rule]]
path = [\"/**.css\", \"/**.bin\"]
file_cache = \"public, max-age=31536000, immutable\"
set_headers = { Access-Control-Allow-Origin = \"*\" }

[[rule]]
set_headers = { X-All = \"yes\" }
";

fn site() -> Site {
    let script = "<?php keep(); echo 'ran ', $_SERVER['SCRIPT_NAME'];";
    let site = Site::new(&[
        ("index.php", script),
        ("tool.php", script),
        ("other.php", script),
        ("admin/index.php", script),
        ("admin/style.css", "secret"),
        ("uploads/x.php", script),
        ("uploads/x.PHP", script),
        ("uploads/x.phtml", script),
        ("uploads/x.phar", script),
        ("uploads/x.php5", script),
        ("uploads/tool.php", script),
        ("uploads/deep/index.php", script),
        ("uploads/x.jpg", "a picture"),
        ("style.css", "style"),
    ]);
    site.file("large.bin", vec![b'x'; 3 << 20]);
    std::os::unix::fs::symlink(site.root().join("uploads"), site.root().join("pictures"))
        .expect("a link");
    site
}

/// Sends this target over HTTP/2 and returns the head of the response, and which frames were received.
fn over_http2(pagewell: &Pagewell, method: &str, path: &str) -> String {
    let url = format!("http://{}{path}", pagewell.address());
    let Output { stdout, stderr, .. } = Command::new("nghttp")
        .args(["-nv", "-H", &format!(":method: {method}"), &url])
        .output()
        .expect("nghttp runs");
    String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned()
}

#[test]
fn no_script_runs_where_a_rule_says_so() {
    let site = site();
    let pagewell = site.serve(RULES);
    for path in [
        "/uploads/x.php",
        "/uploads/x.php?a=b",
        "/uploads/x.php/y",
        "/uploads/x.PHP",
        "/uploads/x.phtml",
        "/uploads/x.phar",
        "/uploads/x.php5",
        "/uploads/x.jpg/y.php",
        "/uploads/no-such.php",
        "/uploads/no-such.pHp/x",
        "/uploads/x.php%20",
        "/uploads/x.php.",
        "/uploads/deep/",
        "/uploads/deep/index.php",
        "//uploads/x.php",
        "/./uploads/x.php",
        "/%75ploads/x.php",
        "/a/..%2fuploads%2fx.php",
        "/uploads%2fx.php",
        "/uploads%5cx.php",
        "/pictures/x.php",
        "/tool.php/../uploads/x.php",
        // Its lower case is longer.
        "/uploads/%C4%B0.PHP",
        "/%C4%B0/..%2fuploads/x.php",
    ] {
        for method in ["GET", "HEAD", "POST"] {
            let request = Request::new(method, path).header("content-length", "0");
            let response = client(&pagewell).send(&request).expect("an answer");
            let text = response.text();
            assert_eq!(response.status, 404, "{method} {path}: {text}");
            assert!(!text.contains("ran") && !text.contains("<?php"), "{method} {path}: {text}");
        }
        for method in ["GET", "HEAD"] {
            let head = over_http2(&pagewell, method, path);
            assert!(head.contains(":status: 404"), "{method} {path}: {head}");
            assert_eq!(head.contains("recv DATA"), method == "GET", "{method} {path}: {head}");
        }
    }
    let refused = client(&pagewell).get("/uploads/x.php").expect("an answer");
    assert_eq!(cache_status(&refused), "pagewell; detail=script-refused");
    assert!(counter(&pagewell, "scripts_refused") > 50);
    for (path, said) in [
        ("/uploads/x.jpg", "a picture"),
        ("/uploads/tool.php", "ran /uploads/tool.php"),
        ("/uploads/", "ran /index.php"),
        ("/tool.php", "ran /tool.php"),
        ("/uploadsx/x.php", "ran /index.php"),
    ] {
        let response = client(&pagewell).get(path).expect("an answer");
        assert_eq!((response.status, response.text().as_str()), (200, said), "{path}");
    }
    let malformed = client(&pagewell).get("/uploads/x.php%00.jpg").expect("an answer");
    assert_eq!(malformed.status, 400);
}

#[test]
fn only_entry_points_run() {
    let site = site();
    let pagewell = site.serve(
        "site.entry_points = [\"/tool.php\", \"/admin/**.php\"]\n\
         [[rule]]\npath = \"/moved\"\nrewrite = \"/other.php\"\n",
    );
    for (path, status) in [
        ("/", 200),
        ("/news/4/", 200),
        ("/tool.php", 200),
        ("/tool.php/x", 200),
        ("/admin/", 200),
        ("/other.php", 404),
        ("/other.php/x", 404),
        ("/uploads/x.php", 404),
        ("/uploads/deep/", 404),
        ("/style.css", 200),
    ] {
        let response = client(&pagewell).get(path).expect("an answer");
        assert_eq!(response.status, status, "{path}: {}", response.text());
        let head = over_http2(&pagewell, "GET", path);
        assert!(head.contains(&format!(":status: {status}")), "{path}: {head}");
    }
    for path in [
        "/other.php?a=b",
        "/OTHER.PHP",
        "/other.php.",
        "/other.php%20",
        "/%6fther.php",
        "/%6fther%2ephp",
        "//other.php",
        "/./other.php",
        "/tool.php/../other.php",
        "/admin/../other.php",
        "/admin%2f..%2fother.php",
        "/admin%5c..%5cother.php",
        "/uploads/x.PHP",
        "/uploads/x.phtml",
        "/uploads/x.phar",
        "/uploads/x.jpg/y.php",
        "/no-such.php/tool.php",
        "/pictures/x.php",
        "/moved",
        "/uploads/%C4%B0.PHP",
    ] {
        for method in ["GET", "HEAD", "POST"] {
            let request = Request::new(method, path).header("content-length", "0");
            let response = client(&pagewell).send(&request).expect("an answer");
            // A path without a script is a page of the front controller.
            let text = response.text().replace("ran /index.php", "");
            assert!(!text.contains("ran") && !text.contains("<?php"), "{method} {path}: {text}");
            let is_page = response.status == 200 && (text.is_empty() || method == "HEAD");
            assert!(response.status == 404 || is_page, "{method} {path}: {text}");
            if method == "GET" {
                let head = over_http2(&pagewell, "GET", path);
                assert!(head.contains(&format!(":status: {}", response.status)), "{path}: {head}");
            }
        }
    }
    assert_eq!(client(&pagewell).get("/moved").expect("an answer").status, 404);
    assert_eq!(client(&pagewell).get("/%6fther%2ephp").expect("an answer").status, 404);
}

#[test]
fn files_and_scripts_are_denied_alike() {
    let site = site();
    let pagewell = site.serve(RULES);
    for path in [
        "/admin/",
        "/admin/index.php",
        "/admin/style.css",
        "//admin/style.css",
        "/%61dmin/style.css",
        "/x/../admin/style.css",
        "/admin%2fstyle.css",
        "/index.php/admin/x",
        "/x%5c..%5cadmin%5cstyle.css",
    ] {
        for _ in 0..3 {
            let response = client(&pagewell).get(path).expect("an answer");
            let found = (response.status, cache_status(&response));
            assert_eq!(found, (403, "pagewell; detail=denied"), "{path}");
            assert_eq!(response.header("x-all"), Some("yes"), "{path}");
        }
        let head = over_http2(&pagewell, "GET", path);
        assert!(head.contains(":status: 403"), "{path}: {head}");
    }
}

#[test]
fn files_get_the_fields_of_rules() {
    let site = site();
    let pagewell = site.serve(RULES);
    let mut client = client(&pagewell);
    for path in ["/style.css", "/large.bin"] {
        // The second and third response are plain hits, if the file is small.
        let mut etag = String::new();
        for _ in 0..3 {
            let response = client.get(path).expect("an answer");
            assert_eq!(response.status, 200, "{path}");
            let caching = response.header("cache-control");
            assert_eq!(caching, Some("public, max-age=31536000, immutable"), "{path}");
            assert_eq!(response.header("access-control-allow-origin"), Some("*"), "{path}");
            assert_eq!(response.header("x-all"), Some("yes"), "{path}");
            etag = response.header("etag").expect("a validator").to_owned();
        }
        let request = Request::get(path).header("if-none-match", &etag);
        let response = client.send(&request).expect("an answer");
        assert_eq!((response.status, response.header("x-all")), (304, Some("yes")), "{path}");
        let caching = response.header("cache-control");
        assert_eq!(caching, Some("public, max-age=31536000, immutable"), "{path}");
        let head = over_http2(&pagewell, "GET", path);
        assert!(head.contains("immutable") && head.contains("x-all: yes"), "{path}: {head}");
    }
    let picture = client.get("/uploads/x.jpg").expect("an answer");
    assert_eq!((picture.header("cache-control"), picture.header("x-all")), (None, Some("yes")));
    let missing = client.get("/no-such.css").expect("an answer");
    assert!(!missing.header("cache-control").is_some_and(|value| value.contains("immutable")));
}

#[test]
fn a_file_that_is_free_under_one_host_and_without_a_query_is_refused_otherwise() {
    let site = site();
    let pagewell = site.serve(
        "[[rule]]\npath = \"/style.css\"\nhost = \"closed.test\"\ndeny = 403\n\
         [[rule]]\nquery = \"old\"\ndeny = 410\n",
    );
    let open = site.serve("[[rule]]\nquery = \"old\"\ndeny = 410\n");
    let status = |pagewell: &Pagewell, host: &str, path: &str| {
        let request = Request::get(path).header("Host", host);
        client(pagewell).send(&request).expect("an answer").status
    };
    for _ in 0..3 {
        assert_eq!(status(&pagewell, "open.test", "/style.css"), 200);
        assert_eq!(status(&pagewell, "closed.test", "/style.css"), 403);
        for pagewell in [&pagewell, &open] {
            assert_eq!(status(pagewell, "open.test", "/style.css"), 200);
            assert_eq!(status(pagewell, "open.test", "/style.css?new"), 200);
            assert_eq!(status(pagewell, "open.test", "/style.css?old"), 410);
        }
    }
}
