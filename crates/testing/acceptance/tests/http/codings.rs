//! Compression of files and pages as a real client sees it: curl requests and decodes it, and the result must
//! equal the file on disk or PHP's output.

use acceptance::{Site, counter, until};
use harness::Pagewell;
use std::fs;
use std::process::Command;
use std::time::Duration;

/// A response as curl reports it: header section in lower case, content decoded.
struct CurlResponse {
    head: String,
    content: Vec<u8>,
    downloaded: usize,
}

impl CurlResponse {
    fn field(&self, name: &str) -> Option<&str> {
        let start = format!("{name}: ");
        self.head.lines().find_map(|line| line.strip_prefix(&start)).map(str::trim_end)
    }
}

fn curl(site: &Site, pagewell: &Pagewell, path: &str, args: &[&str]) -> CurlResponse {
    let (head, content) = (site.at("curl-head"), site.at("curl-content"));
    let _ = fs::remove_file(&content);
    let url = format!("http://{}{path}", pagewell.address());
    let output = Command::new("curl")
        .args(["--silent", "--show-error", "--max-time", "60", "--write-out", "%{size_download}"])
        .arg("--dump-header")
        .arg(&head)
        .arg("--output")
        .arg(&content)
        .args(args)
        .arg(url)
        .output()
        .expect("curl runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let downloaded = String::from_utf8_lossy(&output.stdout).trim().parse().expect("a size");
    let head = fs::read_to_string(head).expect("a header section").to_ascii_lowercase();
    CurlResponse { head, content: fs::read(content).unwrap_or_default(), downloaded }
}

fn text(lines: usize) -> Vec<u8> {
    (0..lines).flat_map(|n| format!("line {n} of some text\n").into_bytes()).collect()
}

fn serve_files(site: &Site, config: &str) -> Pagewell {
    let file = site.at("pagewell.toml");
    fs::write(&file, config).expect("a file can be written");
    let nowhere = format!("unix:{}", site.at("nobody.sock").display());
    let file = file.display().to_string();
    site.serve_with_args(&["--config", &file, "--php", &nowhere])
}

#[test]
fn small_and_large_files_are_stored_compressed() {
    let site = Site::new(&[]);
    let (small, large) = (text(500), text(40_000));
    site.file("small.css", &small);
    site.file("large.js", &large);
    let pagewell = serve_files(&site, "");
    // The first time they are compressed while being sent, if the client accepts it.
    for (path, content) in [("/small.css", &small), ("/large.js", &large)] {
        let plain = curl(&site, &pagewell, path, &[]);
        assert!(plain.content == *content && plain.field("content-encoding").is_none(), "{path}");
        assert_eq!(plain.field("vary"), Some("accept-encoding"), "{path}");
    }
    until("both are coded", || counter(&pagewell, "coded") == 2);
    for (path, content) in [("/small.css", &small), ("/large.js", &large)] {
        let plain = curl(&site, &pagewell, path, &[]);
        let tag = plain.field("etag").expect("a tag").trim_matches('"').to_owned();
        for (name, suffix) in [("gzip", "-gz"), ("br", "-br"), ("zstd", "-zst")] {
            let accept = format!("Accept-Encoding: {name}");
            let got = curl(&site, &pagewell, path, &["--compressed", "--header", &accept]);
            assert_eq!(got.field("content-encoding"), Some(name), "{path}");
            assert!(got.content == *content, "{path} in {name}");
            assert!(got.downloaded * 3 < content.len(), "{path} in {name}: {}", got.downloaded);
            let coded_tag = format!("\"{tag}{suffix}\"");
            assert_eq!(got.field("etag"), Some(coded_tag.as_str()));
            let length = got.downloaded.to_string();
            assert_eq!(got.field("content-length"), Some(length.as_str()));
            let condition = format!("If-None-Match: {coded_tag}");
            let same = curl(&site, &pagewell, path, &["--header", &accept, "--header", &condition]);
            assert!(same.head.starts_with("http/1.1 304"), "{}", same.head);
            assert_eq!(same.field("etag"), Some(coded_tag.as_str()));
        }
        let any = curl(&site, &pagewell, path, &["--compressed"]);
        assert!(any.content == *content && any.field("content-encoding").is_some(), "{path}");
        let part = curl(&site, &pagewell, path, &["--compressed", "--range", "5-9"]);
        assert!(part.head.starts_with("http/1.1 206"), "{}", part.head);
        assert!(part.content == content[5..=9] && part.field("content-encoding").is_none());
    }
}

#[test]
fn a_changed_file_is_not_sent_in_an_old_compressed_form() {
    let site = Site::new(&[]);
    let file = site.file("a.css", text(500));
    let pagewell = serve_files(&site, "");
    curl(&site, &pagewell, "/a.css", &[]);
    until("it is coded", || counter(&pagewell, "coded") == 1);
    let new = text(700);
    fs::write(&file, &new).expect("a file can be written");
    until("the new one is seen", || {
        curl(&site, &pagewell, "/a.css", &["--compressed"]).content == new
    });
    until("it is coded too", || counter(&pagewell, "coded") == 2);
    let got = curl(&site, &pagewell, "/a.css", &["--compressed"]);
    assert!(got.content == new && !got.field("etag").expect("a tag").starts_with("w/"));
}

#[test]
fn a_precompressed_file_is_used_if_accepted_and_not_older() {
    let site = Site::new(&[]);
    let marked = |name: &str| {
        let from = site.at(name);
        fs::write(&from, text(500)).expect("a file can be written");
        let made = Command::new("gzip").arg("-9").arg("--keep").arg(&from).status();
        assert!(made.expect("gzip runs").success());
        fs::read(from.with_extension("css.gz")).expect("gzip's file")
    };
    let form = marked("x.css");
    for name in ["new.css", "old.css"] {
        site.file(name, text(500));
        let beside = site.file(&format!("{name}.gz"), &form);
        if name == "old.css" {
            let file = fs::File::options().append(true).open(beside).expect("the form");
            let now = file.metadata().and_then(|found| found.modified()).expect("its time");
            let before = now - Duration::from_secs(3_600);
            file.set_modified(before).expect("its time can be set");
        }
    }
    let pagewell = serve_files(&site, "[codings]\nfiles_beside = true\nmake = [\"gzip\"]\n");
    for (name, taken) in [("/new.css", true), ("/old.css", false)] {
        let coded = counter(&pagewell, "coded");
        curl(&site, &pagewell, name, &[]);
        until("it is coded", || counter(&pagewell, "coded") > coded);
        let raw = curl(&site, &pagewell, name, &["--header", "Accept-Encoding: gzip"]);
        assert_eq!(raw.field("content-encoding"), Some("gzip"), "{name}");
        assert_eq!(raw.content == form, taken, "{name}");
        let got = curl(&site, &pagewell, name, &["--compressed"]);
        assert!(got.content == text(500), "{name}");
    }
}

#[test]
fn pages_are_stored_compressed_and_php_does_not_compress() {
    let script = "<?php keep(); ini_set('zlib.output_compression', '1');
        for ($n = 0; $n < 500; $n++) { echo \"<p>line $n</p>\\n\"; }
        echo $_SERVER['HTTP_ACCEPT_ENCODING'] ?? 'not asked';";
    let own = "<?php header('Cache-Control: private'); for ($n = 0; $n < 500; $n++) { echo \"<p>line $n</p>\\n\"; }";
    let unasked = "<?php keep(); header('Content-Encoding: gzip'); echo gzencode(str_repeat('unasked ', 500));";
    let site = Site::new(&[("index.php", script), ("own.php", own), ("unasked.php", unasked)]);
    let pagewell = site.serve("");
    let first = curl(&site, &pagewell, "/", &["--compressed"]);
    assert_eq!(first.field("content-encoding"), Some("gzip"));
    assert!(first.content.ends_with(b"not asked"), "{}", first.head);
    curl(&site, &pagewell, "/", &["--compressed"]);
    until("it is coded", || counter(&pagewell, "coded") == 1);
    for name in ["gzip", "br", "zstd"] {
        let accept = format!("Accept-Encoding: {name}");
        let hit = curl(&site, &pagewell, "/", &["--compressed", "--header", &accept]);
        assert_eq!(hit.field("content-encoding"), Some(name));
        assert!(hit.field("cache-status").is_some_and(|s| s.starts_with("pagewell; hit")));
        assert!(hit.content == first.content, "{name}");
    }
    let own = curl(&site, &pagewell, "/own.php", &["--compressed"]);
    assert_eq!(own.field("content-encoding"), Some("gzip"));
    assert!(own.content.ends_with(b"<p>line 499</p>\n"));
    let unasked = curl(&site, &pagewell, "/unasked.php", &[]);
    assert!(unasked.content == b"unasked ".repeat(500), "{}", unasked.head);
}

#[test]
fn a_long_page_is_stored_compressed_only_and_decoded_on_demand() {
    let script = "<?php keep(); header('ETag: \"long\"');
        for ($n = 0; $n < 20000; $n++) { echo \"<p>line $n</p>\\n\"; }";
    let site = Site::new(&[("index.php", script)]);
    let pagewell = site.serve("");
    let before = counter(&pagewell, "memory_bytes");
    let first = curl(&site, &pagewell, "/", &[]);
    assert!(first.content.len() > 300_000, "{}", first.content.len());
    assert_eq!(curl(&site, &pagewell, "/", &["--compressed"]).content, first.content);
    until("it is coded", || counter(&pagewell, "coded") == 1);
    let kept = counter(&pagewell, "memory_bytes") - before;
    assert!(kept < first.content.len() as u64, "{kept} bytes are kept");
    let gzip = "Accept-Encoding: gzip";
    for args in [&[][..], &["--compressed"], &["--compressed", "--header", gzip]] {
        let hit = curl(&site, &pagewell, "/", args);
        assert!(hit.field("cache-status").is_some_and(|s| s.starts_with("pagewell; hit")));
        assert!(hit.content == first.content, "{args:?}");
    }
    let kept = counter(&pagewell, "memory_bytes") - before;
    assert!(kept > first.content.len() as u64, "{kept} bytes: it was asked for as it came");
    let length = first.content.len().to_string();
    let head = curl(&site, &pagewell, "/", &["--head"]);
    assert_eq!(head.field("content-length"), Some(length.as_str()));
    let part = curl(&site, &pagewell, "/", &["--range", "100000-100099"]);
    assert!(part.content == first.content[100_000..100_100], "{}", part.head);
    let same = curl(&site, &pagewell, "/", &["--header", "If-None-Match: \"long\""]);
    assert!(same.head.starts_with("http/1.1 304"), "{}", same.head);
}
