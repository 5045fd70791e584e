//! The same for redirects: by rules of all kinds, lines of a file and the canonical host, in all spellings, among rules
//! that decide before. Whether or not the front answers them, responses, counters and access log are the same.

use super::{LAST, LONG_LIMIT, Side};
use harness::PrivateDir;
use http::StatusCode;
use reasons::Reason;
use std::fs;

/// Lines of the redirect file.
const LINES: &str = "/old\t/new\n/old?x=1&y=2\t/with\t302\n/gone\t\t410\n/far\thttps://b.test/far#part\t308\n\
    /denied\t/1\n/some\t/2\n/exempt\t/3\n/counted\t/4\n/p/line\t/5\n/special\t/6\n/nosniff.css\t/7\n/empty\t/8\n";

/// The rules. A redirect file comes before the rules with a redirect.
const RULES: &str = r#"
[[rule]]
path = "/denied"
deny = 403
[[rule]]
path_regex = "\\.(sql|bak)$"
deny = 403
[[rule]]
path = "/exempt"
deny = false
[[rule]]
path = ["/some", "/exempt"]
from = "!127.0.0.0/8"
deny = 403
[[rule]]
path = "/counted"
limit = { rate = "1/h", burst = 3, count = "all" }
[[rule]]
path = "/r/**"
limit = { rate = "1/h" }
[[rule]]
set_headers = { X-Frame-Options = "DENY" }
remove_headers = "x-powered-by"
[[rule]]
path = "/special"
add_headers = { X-Special = "1" }
[[rule]]
path = "/**.css"
when_status = 200
add_headers = { X-Content-Type-Options = "nosniff" }
[[rule]]
path_regex = "^/archives/(\\d+)$"
redirect = "/?p=$1"
redirect_status = 303
[[rule]]
path_regex = ["^/wiki/(.*)/(\\d+)$", "!/0$"]
redirect = "/w/$2?of=$1"
[[rule]]
path = "/r/**"
redirect = "/to/$1"
redirect_status = 307
[[rule]]
path = "/by/cookie"
cookie = "m=1"
redirect = "/m"
[[rule]]
path = "/by/address"
from = "127.0.0.0/8"
redirect = "/near"
[[rule]]
path = "/by/header"
header = "Referer"
redirect = "/referred"
[[rule]]
path = "/by/query"
query = "a=*"
redirect = "/a"
[[rule]]
path = "/by/post"
method = "POST"
redirect = "/posted"
[[rule]]
host = "shop.test"
path = "/shop"
redirect = "https://a.test/shop"
[[rule]]
path = "/never/**"
redirect = false
[[rule]]
path = ["/never/**", "/dir/**"]
slash = "add"
"#;

const TARGETS: [&str; 49] = [
    "/old",
    "/old?b=2",
    "/old?utm_source=x",
    "/old?utm_source=x&b=2",
    "/old?y=2&x=1",
    "/old?",
    "/old?%22%5C'|",
    "/%6fld",
    "/ol%64?b",
    "//old",
    "/./old",
    "/x/../old",
    "/old/",
    "/OLD",
    "/old#part",
    "/gone",
    "/far?x",
    "/denied",
    "/%64enied",
    "/some",
    "/exempt",
    "/counted",
    "/p/line",
    "/special",
    "/nosniff.css",
    "/empty",
    "/archives/12",
    "/archives/12?a=b&c",
    "/archives/%312",
    "/archives/x",
    "/r/a%20b%0d%0aX:%20y",
    "/r//evil.test",
    "/r/\\evil",
    "/r/",
    "/r/a.sql",
    "/r/x.php/a.bak",
    "/r/x.php/y",
    "/wiki/a/b/7",
    "/wiki/a/0",
    "/by/cookie",
    "/by/address",
    "/by/header",
    "/by/query?a=1",
    "/by/post",
    "/shop",
    "/dir/one?x=1",
    "/never/one",
    "/.well-known/acme-challenge/x",
    "/a",
];
const HOSTS: [&str; 6] = ["a.test", "A.Test:80", "www.a.test", "shop.test", "a.test:8080", "[::1]"];
const FIELDS: [&str; 7] = [
    "",
    "Cookie: m=1\r\n",
    "Authorization: Basic YTpi\r\n",
    "Authorization: Basic eDpi\r\n",
    "Accept-Encoding: gzip, br\r\nUser-Agent: Test/1\r\nReferer: http://b.test/\r\n",
    "If-None-Match: *\r\nRange: bytes=0-1\r\n",
    "X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Proto: https\r\n",
];

/// The bytes of a connection with a request for each target.
fn requests(method: &str, version: &str, host: &str, fields: &str) -> String {
    let one = |target: &&str| {
        format!(
            "{method} {target} {version}\r\nHost: {host}\r\nConnection: keep-alive\r\n{fields}\r\n"
        )
    };
    TARGETS.iter().map(one).collect::<String>() + LAST
}

/// A site with the redirects. Its access log is in the directory.
async fn start(hits_in_front: bool, dir: &PrivateDir) -> Side {
    let (lines, log) = (dir.path().join("redirects.tsv"), dir.path().join("access.log"));
    fs::write(&lines, LINES).unwrap();
    let config = format!(
        "[site]\nhost = \"a.test\"\naliases = [\"www.a.test\"]\ncanonical_redirect = 308\nredirect_files = [{lines:?}]\n\
         [access_log]\nto = {log:?}\nformat = \"{{client}} {{method}} {{scheme}} {{host}} {{target}} {{protocol}} \
         {{status}} {{bytes}} {{cache}} {{detail}} {{referer}} {{user_agent}}\"\n{RULES}"
    );
    Side::start_with(hits_in_front, &config, LONG_LIMIT).await
}

/// Whether a response to a redirect was laid out for plain requests.
fn has_answered_in_front(side: &Side) -> bool {
    let mut was_made = true;
    let make = || {
        was_made = false;
        delivery::serve::moved(StatusCode::SEE_OTHER, Reason::Redirected, None)
            .map(delivery::body::ResponseBody::whole)
    };
    side.server.site().redirect_forms.get(StatusCode::SEE_OTHER, Reason::Redirected, make);
    was_made
}

fn counted(side: &Side) -> Vec<(&'static str, u64)> {
    let names = ["requests", "redirected", "denied", "rate_limited", "hits", "renders", "bypasses"];
    let rows = side.server.site().counters.rows().into_iter();
    rows.filter(|(name, ..)| names.contains(name)).map(|(name, _, count)| (name, count)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redirects_in_front_change_nothing() {
    let dirs = [(); 2].map(|()| PrivateDir::temporary("redirects").unwrap());
    let (front, behind) = (start(true, &dirs[0]).await, start(false, &dirs[1]).await);
    let mut redirected = 0;
    for (method, version) in [("GET", "HTTP/1.1"), ("HEAD", "HTTP/1.1"), ("GET", "HTTP/1.0")] {
        for host in HOSTS {
            for fields in FIELDS {
                let bytes = requests(method, version, host, fields);
                let piece = if fields.is_empty() { 7 } else { 4096 };
                let one = front.exchange(bytes.as_bytes(), piece).await;
                let other = behind.exchange(bytes.as_bytes(), piece).await;
                assert_eq!(one.0.len(), TARGETS.len() + 1, "each has a response: {one:#?}");
                for (at, (one, other)) in one.0.iter().zip(&other.0).enumerate() {
                    let target = TARGETS.get(at).unwrap_or(&"/end");
                    assert_eq!(one, other, "{method} {target} {version} {host} {fields}");
                    redirected += usize::from(one.contains("location:"));
                }
                assert_eq!(one, other, "{method} {version} {host} {fields}");
            }
        }
    }
    assert!(redirected > 2_000, "most requests are redirected: {redirected}");
    assert_eq!(counted(&front), counted(&behind));
    assert_eq!((has_answered_in_front(&front), has_answered_in_front(&behind)), (true, false));
    let (front, behind) = (front.server, behind.server);
    tokio::join!(front.stop(), behind.stop());
    // Lines of several threads may be in another order.
    let [one, other] = dirs.map(|dir| {
        let text = fs::read_to_string(dir.path().join("access.log")).unwrap();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    });
    assert!(one.iter().any(|line| line.contains("/old HTTP/1.1 301 ")), "{one:?}");
    for (one, other) in one.iter().zip(&other) {
        assert_eq!(one, other);
    }
    assert_eq!(one.len(), other.len());
}

/// Of each visible character, in the path and in the query.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_character_of_a_redirected_target_is_read_alike() {
    let start = |hits_in_front| Side::start_with(hits_in_front, super::RULES, LONG_LIMIT);
    let (front, behind) = (start(true).await, start(false).await);
    let mut redirected = 0;
    for byte in 0x21..=0x7e_u8 {
        for target in [format!("/r/{}", char::from(byte)), format!("/r/1?{}", char::from(byte))] {
            let bytes = format!("GET {target} HTTP/1.1\r\nHost: a.test\r\n\r\n{LAST}");
            let one = front.exchange(bytes.as_bytes(), 4096).await;
            let other = behind.exchange(bytes.as_bytes(), 4096).await;
            assert_eq!(one, other, "{target}");
            redirected += usize::from(one.0[0].contains("location:"));
        }
    }
    assert!(redirected > 150, "{redirected}");
}
