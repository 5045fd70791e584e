//! Files of the document root: types, validators, ranges, large files, and files that change.
//!
//! No PHP runs here: the address of the origin leads nowhere, so that every response is a file.

use acceptance::{Raw, Site, client, counter, until};
use harness::{Pagewell, Request, Response};
use std::fs;
use std::io::Write;

const LARGE: usize = 3 << 20;

fn serve(site: &Site) -> Pagewell {
    let nowhere = format!("unix:{}", site.at("nobody.sock").display());
    site.serve_with_args(&["--php", &nowhere])
}

fn large() -> Vec<u8> {
    (0..LARGE).map(|at| (at / 7 % 253) as u8).collect()
}

/// Small and large files are sent by different code; both must give these responses.
fn site_of_two() -> (Site, Vec<u8>) {
    let site = Site::new(&[("small.txt", "0123456789")]);
    let content = large();
    site.file("large.bin", &content);
    (site, content)
}

fn get(pagewell: &Pagewell, path: &str, fields: &[(&str, &str)]) -> Response {
    let with = |request: Request, (name, value): &(&str, &str)| request.header(name, value);
    let request = fields.iter().fold(Request::get(path), with);
    client(pagewell).send(&request).expect("an answer")
}

#[test]
fn the_media_type_depends_on_the_file_name() {
    let types = [
        ("a.html", "text/html; charset=utf-8"),
        ("a.css", "text/css; charset=utf-8"),
        ("a.js", "text/javascript; charset=utf-8"),
        ("a.txt", "text/plain; charset=utf-8"),
        ("a.json", "application/json"),
        ("a.svg", "image/svg+xml"),
        ("a.png", "image/png"),
        ("a.webp", "image/webp"),
        ("a.avif", "image/avif"),
        ("a.ico", "image/x-icon"),
        ("a.woff2", "font/woff2"),
        ("a.pdf", "application/pdf"),
        ("a.mp4", "video/mp4"),
        ("a.wasm", "application/wasm"),
        ("A.CSS", "text/css; charset=utf-8"),
        ("a.unheard-of", "application/octet-stream"),
        ("LICENSE", "application/octet-stream"),
    ];
    let site = Site::new(&types.map(|(name, _)| (name, "x")));
    let pagewell = serve(&site);
    let mut client = client(&pagewell);
    for (name, media_type) in types {
        let response = client.get(&format!("/{name}?v=1")).expect("an answer");
        assert_eq!(response.status, 200, "{name}");
        assert_eq!(response.header("content-type"), Some(media_type), "{name}");
    }
}

#[test]
fn files_have_validators_and_are_revalidated() {
    let (site, content) = site_of_two();
    let pagewell = serve(&site);
    for (path, length) in [("/small.txt", 10), ("/large.bin", content.len())] {
        let first = get(&pagewell, path, &[]);
        assert_eq!((first.status, first.content.len()), (200, length), "{path}");
        let etag = first.header("etag").expect("a validator").to_owned();
        assert!(etag.starts_with('"'), "a strong one: {etag}");
        let modified = first.header("last-modified").expect("a date").to_owned();
        assert_eq!(first.header("accept-ranges"), Some("bytes"));
        // The second response, a hit if the file is small, is the same.
        let second = get(&pagewell, path, &[]);
        assert_eq!(second.header("etag"), Some(etag.as_str()));
        assert!(second.content == first.content, "{path}");

        let list = format!("\"x\", W/{etag}");
        let matching = [("If-None-Match", etag.as_str()), ("If-None-Match", list.as_str())];
        let dates = [("If-Modified-Since", modified.as_str())];
        for condition in matching.iter().chain(&dates).chain(&[("If-None-Match", "*")]) {
            let same = get(&pagewell, path, &[*condition]);
            assert_eq!((same.status, same.content.len()), (304, 0), "{path} {condition:?}");
            assert_eq!(same.header("etag"), Some(etag.as_str()));
        }
        for condition in [
            ("If-None-Match", "\"x\""),
            ("If-Modified-Since", "Thu, 01 Jan 1970 00:00:00 GMT"),
            ("If-Match", etag.as_str()),
        ] {
            assert_eq!(get(&pagewell, path, &[condition]).status, 200, "{path} {condition:?}");
        }
        assert_eq!(get(&pagewell, path, &[("If-Match", "\"x\"")]).status, 412);
        // RFC 9110, 13.1.3: the date is ignored if there is an entity tag.
        let both = [("If-None-Match", "\"x\""), ("If-Modified-Since", modified.as_str())];
        assert_eq!(get(&pagewell, path, &both).status, 200);

        let head = client(&pagewell).head(path).expect("an answer");
        assert_eq!((head.status, head.content.len()), (200, 0));
        assert_eq!(head.header("content-length"), Some(length.to_string().as_str()));
        assert_eq!(head.header("etag"), Some(etag.as_str()));
    }
}

#[test]
fn ranges_of_files() {
    let (site, content) = site_of_two();
    let pagewell = serve(&site);
    for (path, whole) in [("/small.txt", b"0123456789".as_slice()), ("/large.bin", &content)] {
        let length = whole.len();
        for (range, from, to) in [
            ("bytes=0-0", 0, 0),
            ("bytes=2-4", 2, 4),
            ("bytes=-3", length - 3, length - 1),
            ("bytes=5-", 5, length - 1),
            ("bytes=5-99999999", 5, length - 1),
        ] {
            let part = get(&pagewell, path, &[("Range", range)]);
            assert_eq!(part.status, 206, "{path} {range}");
            assert!(part.content == whole[from..=to], "{path} {range}");
            let said = format!("bytes {from}-{to}/{length}");
            assert_eq!(part.header("content-range"), Some(said.as_str()));
        }
        let beyond = get(&pagewell, path, &[("Range", "bytes=99999999-")]);
        assert_eq!(beyond.status, 416);
        assert_eq!(beyond.header("content-range"), Some(format!("bytes */{length}").as_str()));
        for nonsense in ["bytes=4-2", "bytes=x", "lines=1-2"] {
            assert_eq!(get(&pagewell, path, &[("Range", nonsense)]).status, 200, "{nonsense}");
        }
        let etag = get(&pagewell, path, &[]).header("etag").expect("a validator").to_owned();
        let range = ("Range", "bytes=2-4");
        assert_eq!(get(&pagewell, path, &[range, ("If-Range", &etag)]).status, 206);
        assert_eq!(get(&pagewell, path, &[range, ("If-Range", "\"x\"")]).status, 200);
    }
    let several = get(&pagewell, "/small.txt", &[("Range", "bytes=0-1,8-9")]);
    assert_eq!(several.status, 206);
    let kind = several.header("content-type").expect("a type");
    assert!(kind.starts_with("multipart/byteranges"), "{kind}");
    let text = several.text();
    assert!(text.contains("\r\n\r\n01\r\n") && text.contains("\r\n\r\n89\r\n"), "{text}");
}

#[test]
fn a_large_file_is_streamed_as_the_client_takes_it() {
    const HUGE: u64 = 1 << 30;
    let site = Site::new(&[]);
    let file = fs::File::create(site.root().join("huge.bin")).expect("a file can be made");
    file.set_len(HUGE).expect("it can have holes");
    let pagewell = serve(&site);
    get(&pagewell, "/huge.bin", &[("Range", "bytes=0-9")]);
    let before = pagewell.rss_bytes();
    let mut slow: Vec<Raw> = Vec::new();
    for _ in 0..4 {
        let mut raw = Raw::with(&pagewell, "GET /huge.bin HTTP/1.1\r\nHost: a\r\n\r\n");
        let head = raw.until("\r\n\r\n");
        assert!(head.contains(&format!("content-length: {HUGE}\r\n")), "{head}");
        raw.until(&"\0".repeat(1 << 20));
        slow.push(raw);
    }
    // Another request is answered while four clients read nothing.
    assert_eq!(get(&pagewell, "/huge.bin", &[("Range", "bytes=-5")]).content, b"\0\0\0\0\0");
    let grown = pagewell.rss_bytes().saturating_sub(before);
    assert!(grown < 64 << 20, "four clients that take nothing hold {grown} bytes");
    drop(slow);
    until("they are gone", || counter(&pagewell, "connections") == 0);
}

#[test]
fn a_changed_file_is_noticed() {
    let (site, _) = site_of_two();
    site.file("index.html", "");
    let pagewell = serve(&site);
    let text = |path: &str| get(&pagewell, path, &[]).text();
    assert_eq!(text("/small.txt"), "0123456789");
    let old = get(&pagewell, "/small.txt", &[]).header("etag").map(str::to_owned);
    site.file("small.txt", "changed");
    until("the new content is served", || text("/small.txt") == "changed");
    let new = get(&pagewell, "/small.txt", &[("If-None-Match", &old.expect("a validator"))]);
    assert_eq!(new.status, 200, "the old validator does not match the new content");

    // Replaced as by editors and deployments, with a file of the same length and time.
    let file = site.root().join("small.txt");
    let time = fs::metadata(&file).and_then(|found| found.modified()).expect("a time");
    let mut next = fs::File::create(site.root().join("next")).expect("a file can be made");
    next.write_all(b"CHANGED").and_then(|()| next.set_modified(time)).expect("can be written");
    fs::rename(site.root().join("next"), &file).expect("can be renamed");
    until("the file in its place is served", || text("/small.txt") == "CHANGED");

    // Written in place, in the same inode, by a deployment that gives all files one time.
    let old = get(&pagewell, "/small.txt", &[]).header("etag").map(str::to_owned);
    let mut same = fs::OpenOptions::new().write(true).open(&file).expect("it can be opened");
    same.write_all(b"INPLACE").and_then(|()| same.set_modified(time)).expect("can be written");
    until("the content written in place is served", || text("/small.txt") == "INPLACE");
    let new = get(&pagewell, "/small.txt", &[("If-None-Match", &old.expect("a validator"))]);
    assert_eq!(new.status, 200, "the old validator does not match the new content");

    // Grown beyond the limit for cached files, and back.
    site.file("small.txt", "x".repeat(200_000));
    until("it has grown", || text("/small.txt").len() == 200_000);
    site.file("small.txt", "small again");
    until("it has shrunk", || text("/small.txt") == "small again");

    fs::remove_file(&file).expect("can be removed");
    until("it is gone", || get(&pagewell, "/small.txt", &[]).status != 200);
    site.file("small.txt", "back");
    until("it is back", || text("/small.txt") == "back");
}

#[test]
fn a_file_allows_get_and_head_only() {
    let (site, _) = site_of_two();
    let pagewell = serve(&site);
    for path in ["/small.txt", "/large.bin"] {
        for method in ["POST", "PUT", "DELETE", "PATCH"] {
            let request = Request::new(method, path).content(b"x");
            let response = client(&pagewell).send(&request).expect("an answer");
            assert_eq!(response.status, 405, "{method} {path}");
            assert_eq!(response.header("allow"), Some("GET, HEAD"));
        }
    }
    assert_eq!(get(&pagewell, "/small.txt", &[]).text(), "0123456789");
}

#[test]
fn names_and_sizes_of_all_kinds() {
    let site = Site::new(&[("empty.css", ""), ("sp ace é+%.txt", "odd"), ("64k", "")]);
    site.file("64k", "y".repeat(64 << 10));
    site.file("64k+1", "y".repeat((64 << 10) + 1));
    let pagewell = serve(&site);
    for _ in 0..2 {
        let empty = get(&pagewell, "/empty.css", &[]);
        assert_eq!((empty.status, empty.header("content-length")), (200, Some("0")));
        assert_eq!(get(&pagewell, "/sp%20ace%20%C3%A9+%25.txt", &[]).text(), "odd");
        assert_eq!(get(&pagewell, "/64k", &[]).content.len(), 64 << 10);
        assert_eq!(get(&pagewell, "/64k+1", &[]).content.len(), (64 << 10) + 1);
    }
    assert_eq!(get(&pagewell, "/empty.css", &[("Range", "bytes=0-")]).status, 416);
}

#[test]
fn url_normalisation_does_not_change_file_names() {
    let site = Site::new(&[("Logo.PNG", "png"), ("docs/index.html", "docs")]);
    let config = site.at("keys.toml");
    fs::write(&config, "[keys]\nlower_case = true\ntrailing_slash = \"remove\"\n")
        .expect("written");
    let nowhere = format!("unix:{}", site.at("nobody.sock").display());
    let config = config.display().to_string();
    let pagewell = site.serve_with_args(&["--php", &nowhere, "--config", &config]);
    assert_eq!(get(&pagewell, "/Logo.PNG", &[]).status, 200);
    assert_eq!(get(&pagewell, "/docs", &[]).header("location"), Some("/docs/"));
    assert_eq!(get(&pagewell, "/docs/", &[]).status, 200);
}

/// A file requested again within a second is sent as a plain hit. The first time, and with `hits_in_front =
/// false`, it is sent by the HTTP library. Clients must see no difference.
#[test]
fn a_file_is_the_same_however_it_is_sent() {
    let (site, _) = site_of_two();
    site.file("style.css", "p { color: red }\n".repeat(300));
    site.file("app.js", "let x = 1;\n".repeat(20_000));
    site.file("sub/index.html", "an index");
    site.file("empty.txt", "");
    let off = site.at("off.toml");
    fs::write(&off, "hits_in_front = false\n").expect("written");
    let nowhere = format!("unix:{}", site.at("nobody.sock").display());
    let off =
        ["--php", nowhere.as_str(), "--config", &off.display().to_string()].map(str::to_owned);
    let behind = site.serve_with_args(&off.each_ref().map(String::as_str));
    let front = serve(&site);
    for pagewell in [&front, &behind] {
        for path in ["/style.css", "/app.js"] {
            get(pagewell, path, &[]);
        }
        until("they are coded", || counter(pagewell, "coded") == 2);
    }
    let etag = get(&behind, "/style.css", &[]).header("etag").expect("a validator").to_owned();
    let fields: [&[(&str, &str)]; 10] = [
        &[],
        &[("Accept-Encoding", "gzip")],
        &[("Accept-Encoding", "br, zstd")],
        &[("If-None-Match", &etag)],
        &[("If-None-Match", &etag), ("Accept-Encoding", "gzip")],
        &[("If-Match", "\"x\"")],
        &[("If-Modified-Since", "Fri, 01 Jan 2100 00:00:00 GMT")],
        &[("Range", "bytes=1-3")],
        &[("Cookie", "PHPSESSID=1"), ("Authorization", "Basic eDp5")],
        &[("Cache-Control", "only-if-cached")],
    ];
    let paths = ["/style.css", "/style.css?v=2", "/app.js", "/sub/", "/empty.txt", "/small.txt"];
    for path in paths {
        for fields in fields {
            for method in ["GET", "HEAD"] {
                let right = without_date(&behind, method, path, fields);
                for _ in 0..2 {
                    let here = without_date(&front, method, path, fields);
                    assert_eq!(here, right, "{method} {path} {fields:?}");
                }
            }
        }
    }
}

/// The response without its date, with lines sorted by name.
fn without_date(
    pagewell: &Pagewell,
    method: &str,
    path: &str,
    fields: &[(&str, &str)],
) -> Response {
    let with = |request: Request, (name, value): &(&str, &str)| request.header(name, value);
    let request = fields.iter().fold(Request::new(method, path), with);
    let mut response = client(pagewell).send(&request).expect("an answer");
    assert_eq!(response.all("date").count(), 1, "{method} {path}: {:?}", response.headers);
    response.headers.retain(|(name, _)| !name.eq_ignore_ascii_case("date"));
    response.headers.sort();
    response
}
