//! A site on a real php-fpm: routing, what a script sees of a request, what becomes of what it
//! answers, and that a page which broke off is never kept.
//!
//! php-fpm is Pagewell's own, started and ended with it, except where a test brings one along.

mod common;

use common::{Raw, Site, cache_status, client, counter, get_meanwhile, is_hit, until};
use harness::{PhpFpm, PoolOptions, PrivateDir, Request};
use std::os::unix::fs::symlink;

/// Shows what a script sees, one line a variable.
const SHOW: &str = "<?php foreach ($_SERVER as $name => $value) {
    if (!is_array($value)) { echo \"$name=$value\\n\"; }
}";

#[test]
fn paths_find_their_script() {
    let script = "<?php echo $_SERVER['SCRIPT_NAME'], '|', $_SERVER['PATH_INFO'] ?? '-', '|',
        $_SERVER['REQUEST_URI'], '|', basename($_SERVER['SCRIPT_FILENAME']);";
    let site = Site::new(&[
        ("index.php", script),
        ("tool.php", script),
        ("office/index.php", script),
        ("docs/index.html", "the manual"),
        ("docs/index.txt", "x"),
        ("empty/readme.txt", "x"),
    ]);
    let pagewell = site.serve("");
    let mut client = client(&pagewell);
    for (path, said) in [
        ("/", "/index.php|-|/|index.php"),
        ("/?a=1", "/index.php|-|/?a=1|index.php"),
        ("/news/4/?x=%20y", "/index.php|-|/news/4/?x=%20y|index.php"),
        ("/no-such.css", "/index.php|-|/no-such.css|index.php"),
        ("/no-such.php", "/index.php|-|/no-such.php|index.php"),
        ("/empty/", "/index.php|-|/empty/|index.php"),
        ("/tool.php", "/tool.php|-|/tool.php|tool.php"),
        ("/tool.php/a%20b/c?q", "/tool.php|/a b/c|/tool.php/a%20b/c?q|tool.php"),
        ("/TOOL.PHP", "/index.php|-|/TOOL.PHP|index.php"),
        ("/x/../tool.php", "/tool.php|-|/x/../tool.php|tool.php"),
        ("//tool.php", "/tool.php|-|//tool.php|tool.php"),
        ("/office/", "/office/index.php|-|/office/|index.php"),
        ("/docs/", "the manual"),
    ] {
        let response = client.get(path).expect("an answer");
        assert_eq!((response.status, response.text().as_str()), (200, said), "{path}");
    }
    for (path, to) in [("/office", "/office/"), ("/docs?a=b", "/docs/?a=b")] {
        let response = client.get(path).expect("an answer");
        assert_eq!((response.status, response.header("location")), (301, Some(to)), "{path}");
    }
}

#[test]
fn what_nobody_may_see_is_not_found() {
    let site = Site::new(&[
        (".env", "SECRET"),
        (".git/config", "SECRET"),
        (".htaccess", "SECRET"),
        (".well-known/security.txt", "Contact: x"),
        ("backup.sql", "SECRET"),
        ("backup.sql.gz", "SECRET"),
        ("index.php~", "SECRET"),
        (".index.php.swp", "SECRET"),
        ("index.php.bak", "SECRET"),
        ("composer.json", "SECRET"),
        ("php.ini", "SECRET"),
        ("error.log", "SECRET"),
        ("sub/.secret/file.txt", "SECRET"),
        ("upper.PHP", "<?php echo 'SEC' . 'RET'; // SOURCE"),
    ]);
    std::fs::write(site.at("outside.txt"), "SECRET").expect("a file can be written");
    std::fs::write(site.at("outside.php"), "<?php echo 'SEC' . 'RET';").expect("can be written");
    symlink(site.at("outside.txt"), site.root().join("link.txt")).expect("a link can be made");
    symlink(site.at("outside.php"), site.root().join("link.php")).expect("a link can be made");
    symlink(site.at("."), site.root().join("up")).expect("a link can be made");
    symlink("index.php", site.root().join("source.txt")).expect("a link can be made");
    let pagewell = site.serve("");
    let mut client = client(&pagewell);
    for path in [
        "/.env",
        "/%2eenv",
        "/.git/config",
        "/.htaccess",
        "/backup.sql",
        "/BACKUP.sql",
        "/backup.sql.gz",
        "/index.php~",
        "/.index.php.swp",
        "/index.php.bak",
        "/composer.json",
        "/php.ini",
        "/error.log",
        "/sub/.secret/file.txt",
        "/link.txt",
        "/link.php",
        "/up/outside.txt",
        "/up/outside.php",
        "/source.txt",
        "/../outside.txt",
        "/%2e%2e/outside.txt",
        "/sub/..%2f..%2foutside.txt",
        "/..%5coutside.txt",
        "/index.php%00.txt",
        "/upper.PHP",
    ] {
        let response = client.get(path).expect("an answer");
        assert!(!response.text().contains("SECRET"), "{path}: {}", response.text());
        assert!(!response.text().contains("SOURCE"), "{path}: {}", response.text());
        assert_ne!(response.status, 200, "{path}: {}", response.text());
    }
    let response = client.get("/.well-known/security.txt").expect("an answer");
    assert_eq!((response.status, response.text().as_str()), (200, "Contact: x"));
}

#[test]
fn links_may_lead_out_where_that_is_allowed() {
    let site = Site::new(&[]);
    std::fs::write(site.at("outside.txt"), "shared").expect("a file can be written");
    symlink(site.at("outside.txt"), site.root().join("link.txt")).expect("a link can be made");
    let pagewell = site.serve("[site]\nallow_symlinks = true\n");
    assert_eq!(client(&pagewell).get("/link.txt").expect("an answer").text(), "shared");
}

#[test]
fn a_script_sees_the_request_as_cgi_says() {
    let site = Site::new(&[("show.php", SHOW)]);
    let pagewell = site.serve("");
    let port = pagewell.address().port().expect("a TCP port");
    let request = Request::get("/show.php/extra/%C3%A9?a=1&b=%2F")
        .header("Host", "News.Example:8080")
        .header("Cookie", "a=1")
        .header("Cookie", "b=2")
        .header("X-Twice", "one")
        .header("X-Twice", "two")
        .header("X_Under_Score", "no")
        .header("Proxy", "http://evil.test")
        .header("X-Forwarded-For", "203.0.113.9")
        .header("Connection", "x-hop")
        .header("X-Hop", "gone")
        .header("Accept-Language", "de");
    let said = client(&pagewell).send(&request).expect("an answer").text();
    let root = site.root().canonicalize().expect("it is there");
    let root = root.display();
    let version = env!("CARGO_PKG_VERSION");
    for line in [
        "REQUEST_METHOD=GET".to_owned(),
        "REQUEST_URI=/show.php/extra/%C3%A9?a=1&b=%2F".into(),
        "QUERY_STRING=a=1&b=%2F".into(),
        "SCRIPT_NAME=/show.php".into(),
        format!("SCRIPT_FILENAME={root}/show.php"),
        "PATH_INFO=/extra/é".into(),
        format!("PATH_TRANSLATED={root}/extra/é"),
        format!("DOCUMENT_ROOT={root}"),
        "SERVER_PROTOCOL=HTTP/1.1".into(),
        "GATEWAY_INTERFACE=CGI/1.1".into(),
        format!("SERVER_SOFTWARE=pagewell/{version}"),
        "SERVER_NAME=news.example".into(),
        format!("SERVER_PORT={port}"),
        "SERVER_ADDR=127.0.0.1".into(),
        "REMOTE_ADDR=127.0.0.1".into(),
        "REQUEST_SCHEME=http".into(),
        "HTTP_HOST=news.example:8080".into(),
        "HTTP_COOKIE=a=1; b=2".into(),
        "HTTP_X_TWICE=one, two".into(),
        "HTTP_ACCEPT_LANGUAGE=de".into(),
        "HTTP_VIA=1.1 pagewell".into(),
        "REDIRECT_STATUS=200".into(),
    ] {
        assert!(said.lines().any(|found| found == line), "{line} is not in\n{said}");
    }
    let absent = ["HTTP_PROXY=", "HTTP_X_FORWARDED_FOR=", "HTTP_X_UNDER", "HTTP_X_HOP", "HTTPS="];
    for name in absent.iter().chain(&["CONTENT_LENGTH=", "CONTENT_TYPE=", "HTTP_CONNECTION="]) {
        assert!(!said.lines().any(|found| found.starts_with(name)), "{name} is in\n{said}");
    }
}

#[test]
fn forms_and_uploads_arrive() {
    let site = Site::new(&[(
        "form.php",
        "<?php echo json_encode([$_SERVER['REQUEST_METHOD'], $_POST, array_map(
            fn ($file) => [$file['name'], $file['error'], file_get_contents($file['tmp_name'])],
            $_FILES), file_get_contents('php://input')]);",
    )]);
    let pagewell = site.serve("");
    let mut client = client(&pagewell);
    let response = client.post("/form.php", "name=Ada&text=Well+put%21").expect("an answer");
    let said = r#"["POST",{"name":"Ada","text":"Well put!"},[],"name=Ada&text=Well+put%21"]"#;
    assert_eq!(response.text(), said);
    assert_eq!(cache_status(&response), "pagewell; fwd=method; fwd-status=200");

    let parts = "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--b\r\n\
        Content-Disposition: form-data; name=\"f\"; filename=\"x.txt\"\r\n\r\nfile\r\n--b--\r\n";
    let request = Request::new("POST", "/form.php")
        .header("Content-Type", "multipart/form-data; boundary=b")
        .content(parts.as_bytes());
    let response = client.send(&request).expect("an answer");
    assert_eq!(response.text(), r#"["POST",{"a":"1"},{"f":["x.txt",0,"file"]},""]"#);

    for method in ["PUT", "PATCH", "DELETE", "OPTIONS", "REPORT"] {
        let request = Request::new(method, "/form.php").content(b"xyz");
        let response = client.send(&request).expect("an answer");
        assert_eq!(response.text(), format!("[\"{method}\",[],[],\"xyz\"]"));
    }
    let response = client.send(&Request::new("POST", "/form.php").content(b"")).expect("an answer");
    assert_eq!(response.text(), r#"["POST",[],[],""]"#);
}

#[test]
fn an_upload_reaches_the_script_while_it_arrives() {
    const HALF: usize = 4 << 20;
    let site = Site::new(&[(
        "upload.php",
        "<?php $in = fopen('php://input', 'rb'); $hash = hash_init('md5'); $length = 0;
        while (($piece = fread($in, 65536)) !== false && $piece !== '') {
            hash_update($hash, $piece);
            $length += strlen($piece);
            if ($length >= 1 << 20) { note('begun'); }
        }
        echo $length, ' ', hash_final($hash);",
    )]);
    // PHP itself would read all content before it starts the script.
    let pagewell = site.serve_with_ini("", "enable_post_data_reading = \"0\"");
    let content: Vec<u8> = (0..HALF * 2).map(|at| (at % 251) as u8).collect();
    let head =
        format!("POST /upload.php HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", HALF * 2);
    let mut raw = Raw::with(&pagewell, head);
    raw.send(&content[..HALF]);
    site.wait_for("begun");
    raw.send(&content[HALF..]);
    // md5 of bytes 0 to 250, over and over, 8 MiB of them.
    assert_eq!(raw.answer().content, format!("{} {}", HALF * 2, md5_by_php(&site, &content)));
}

/// The hash as PHP's own command line makes it from a file: independent of the way over the wire.
fn md5_by_php(site: &Site, content: &[u8]) -> String {
    let file = site.at("content");
    std::fs::write(&file, content).expect("can be written");
    let php = harness::program(&["php"]).expect("php is installed");
    let said = std::process::Command::new(php)
        .args(["-r", "echo md5_file($argv[1]);", "--"])
        .arg(&file)
        .output();
    String::from_utf8(said.expect("php runs").stdout).expect("a hash")
}

#[test]
fn chunked_content_is_given_its_length_or_refused() {
    let site = Site::new(&[(
        "length.php",
        "<?php echo $_SERVER['CONTENT_LENGTH'] ?? 'none', ' ', file_get_contents('php://input');",
    )]);
    let pagewell = site.serve("");
    let head = "POST /length.php HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    let mut raw = Raw::with(&pagewell, format!("{head}3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\n\r\n"));
    let answer = raw.answer();
    assert_eq!((answer.status, answer.content.as_str()), (200, "7 abcdefg"));

    let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
    let mut raw = Raw::with(&pagewell, head);
    for _ in 0..17 {
        raw.send(&chunk);
    }
    raw.send("0\r\n\r\n");
    let answer = raw.answer();
    assert_eq!(answer.status, 411, "{answer:?}");
    until("the place is free", || counter(&pagewell, "origin_places_taken") == 0);
}

#[test]
fn params_of_any_size_within_the_limits_arrive() {
    let site = Site::new(&[(
        "many.php",
        "<?php $all = array_filter($_SERVER, fn ($name) => str_starts_with($name, 'HTTP_X_'),
            ARRAY_FILTER_USE_KEY);
        echo count($all), ' ', array_sum(array_map('strlen', $all)), ' ',
            md5(implode(',', array_map('md5', $all)));",
    )]);
    let pagewell = site.serve("[limits]\nheader_bytes = \"256K\"\n");
    let mut request = Request::get("/many.php").header("X-Long", &"l".repeat(60_000));
    for number in 0..70 {
        request = request.header(&format!("X-N{number}"), &number.to_string().repeat(1_000));
    }
    let said = client(&pagewell).send(&request).expect("an answer");
    let bytes = 60_000 + 10 * 1_000 + 60 * 2_000;
    let text = said.text();
    assert!(text.starts_with(&format!("71 {bytes} ")), "{} {text}", said.status);

    let pagewell = site.serve("");
    let refused = client(&pagewell).send(&request).expect("an answer");
    assert_eq!(refused.status, 431);
}

#[test]
fn status_and_location_mean_what_cgi_says() {
    let site = Site::new(&[
        ("teapot.php", "<?php http_response_code(418); echo 'short and stout';"),
        ("gone.php", "<?php header('Status: 410 Gone'); echo 'gone';"),
        ("away.php", "<?php header('Location: https://other.test/x?y');"),
        ("moved.php", "<?php header('Location: /target.php', true, 301);"),
        // PHP sends no Status with 200: to CGI a redirect within the site (RFC 3875, 6.2.2).
        ("inside.php", "<?php header('Location: /target.php/p?q=1', true, 200);"),
        ("circle.php", "<?php header('Location: /circle.php', true, 200);"),
        (
            "target.php",
            "<?php echo 'target ', $_SERVER['REQUEST_METHOD'], ' ',
            $_SERVER['PATH_INFO'] ?? '', ' ', $_SERVER['QUERY_STRING'];",
        ),
        ("empty.php", "<?php http_response_code(204);"),
    ]);
    let pagewell = site.serve("");
    let mut client = client(&pagewell);
    let mut get = |path: &str| client.get(path).expect("an answer");
    let response = get("/teapot.php");
    assert_eq!((response.status, response.text().as_str()), (418, "short and stout"));
    assert_eq!(get("/gone.php").status, 410);
    let response = get("/away.php");
    assert_eq!(response.status, 302);
    assert_eq!(response.header("location"), Some("https://other.test/x?y"));
    let response = get("/moved.php");
    assert_eq!((response.status, response.header("location")), (301, Some("/target.php")));
    let response = get("/inside.php");
    assert_eq!((response.status, response.text().as_str()), (200, "target GET /p q=1"));
    assert_eq!(response.header("location"), None);
    assert_eq!(get("/circle.php").status, 502);
    let response = get("/empty.php");
    assert_eq!((response.status, response.content.len()), (204, 0));
    for response in [get("/teapot.php"), get("/away.php")] {
        assert_eq!(response.header("status"), None, "Status is for the server alone");
    }
}

#[test]
fn output_is_passed_on_before_the_script_ends() {
    let script = |head: &str| format!("<?php {head} out('first '); wait_for('go'); echo 'last';");
    let site = Site::new(&[
        ("live.php", &script("")),
        ("kept.php", &script("keep();")),
        ("measured.php", &script("keep(); header('Content-Length: 10');")),
    ]);
    let pagewell = site.serve("");
    for (path, kept) in [("/live.php", false), ("/kept.php", true), ("/measured.php", true)] {
        site.clear_notes();
        let mut raw = Raw::with(&pagewell, format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
        raw.until("first ");
        site.note("go");
        raw.until("last");
        let again = client(&pagewell).host("a").get(path).expect("an answer");
        assert_eq!(again.text(), "first last");
        assert_eq!(is_hit(&again), kept, "{path}: {}", cache_status(&again));
    }
}

#[test]
fn what_a_script_says_on_stderr_is_logged_with_its_url() {
    let site = Site::new(&[("note.php", "<?php error_log('the cellar is flooded'); echo 'ok';")]);
    let pagewell = site.serve("");
    let response = client(&pagewell).host("news.test").get("/note.php?a=1").expect("an answer");
    assert_eq!(response.text(), "ok");
    let line = |log: &str| {
        let wanted = ["origin-stderr", "the cellar is flooded", "http://news.test/note.php?a=1"];
        log.lines().any(|line| wanted.iter().all(|word| line.contains(word)))
    };
    until("it is in the log", || line(&pagewell.log()));
}

#[test]
fn large_output_goes_through_and_is_not_kept() {
    const LENGTH: usize = 20 << 20;
    let site = Site::new(&[
        (
            "large.php",
            "<?php keep(); for ($i = 0; $i < 320; $i++) {
            echo str_repeat(chr(65 + $i % 26), 65536); }",
        ),
        (
            "measured.php",
            "<?php keep(); header('Content-Length: 20971520');
            for ($i = 0; $i < 320; $i++) { echo str_repeat(chr(65 + $i % 26), 65536); }",
        ),
        ("fits.php", "<?php keep(); echo str_repeat('x', 4 << 20);"),
    ]);
    let expected: Vec<u8> = (0..LENGTH).map(|at| b'A' + (at / 65536 % 26) as u8).collect();
    let pagewell = site.serve("");
    let mut client = client(&pagewell);
    for path in ["/large.php", "/measured.php"] {
        for _ in 0..2 {
            let response = client.get(path).expect("a whole answer");
            assert!(response.content == expected, "{path}: {} bytes", response.content.len());
            assert!(!is_hit(&response), "{path}: {}", cache_status(&response));
        }
    }
    assert_eq!(counter(&pagewell, "pages"), 0);
    for hit in [false, true] {
        let response = client.get("/fits.php").expect("a whole answer");
        assert_eq!((response.content.len(), is_hit(&response)), (4 << 20, hit));
    }
}

#[test]
fn a_connection_to_php_is_used_again() {
    let site = Site::new(&[("pid.php", "<?php echo getmypid();")]);
    let pagewell = site.serve("");
    let mut client = client(&pagewell);
    let first = client.get("/pid.php?0").expect("an answer").text();
    for number in 1..20 {
        let pid = client.get(&format!("/pid.php?{number}")).expect("an answer").text();
        assert_eq!(pid, first, "request {number}");
        let pid = client.post("/pid.php", "a=b").expect("an answer").text();
        assert_eq!(pid, first, "post {number}");
    }
}

#[test]
fn as_many_scripts_run_at_once_as_there_are_children() {
    let script = "<?php note('started' . $_GET['n']); wait_for('go'); echo 'whole';";
    let site = Site::new(&[("waits.php", script), ("quick.php", "<?php usleep(1000);")]);
    let pagewell = site.serve("[php]\nchildren = 6\n");
    // Some connections are kept from before, others have to be made.
    for kept in [0, 1, 4] {
        site.clear_notes();
        let quick = |n| get_meanwhile(&pagewell, &format!("/quick.php?{n}"));
        for response in (0..kept).map(quick).collect::<Vec<_>>() {
            assert_eq!(response.join().expect("it ran").status, 200);
        }
        let get = |n| get_meanwhile(&pagewell, &format!("/waits.php?n={n}"));
        let waiting: Vec<_> = (0..6).map(get).collect();
        for number in 0..6 {
            site.wait_for(&format!("started{number}"));
        }
        site.note("go");
        for response in waiting {
            assert_eq!(response.join().expect("it ran").text(), "whole");
        }
    }
}

#[test]
fn a_connection_that_php_closed_meanwhile_costs_no_request() {
    let site = Site::new(&[("pid.php", "<?php echo getmypid();")]);
    // A child that ends after each request leaves a dead connection behind.
    let dir = PrivateDir::temporary("fpm").expect("a directory can be made");
    let php = PhpFpm::start(dir, &PoolOptions::default()).expect("php-fpm starts");
    let config = site.at("idle.toml");
    std::fs::write(&config, "[limits]\norigin_idle_connections = 2\n").expect("can be written");
    let at = format!("unix:{}", php.socket().display());
    let config = config.display().to_string();
    let pagewell = site.serve_with_args(&["--php", &at, "--config", &config]);
    let mut client = client(&pagewell);
    let mut seen = Vec::new();
    for number in 0..3 {
        let pid = client.get(&format!("/pid.php?{number}")).expect("an answer").text();
        let pid: u32 = pid.parse().expect("a process id");
        assert!(!seen.contains(&pid), "the worker was killed, and another had to answer");
        seen.push(pid);
        kill(pid);
        until("the worker has ended", || !harness::cpu::is_running(pid));
    }
}

fn kill(pid: u32) {
    let kill = std::process::Command::new("kill").args(["-KILL", &pid.to_string()]).status();
    assert!(kill.expect("kill runs").success());
}

#[test]
fn head_conditions_and_ranges_are_answered_from_the_page() {
    let site = Site::new(&[
        ("own.php", "<?php keep(); header('ETag: \"v1\"'); echo '0123456789';"),
        ("none.php", "<?php keep(); echo '0123456789';"),
        ("live.php", "<?php echo '0123456789'; header('X-M: ' . $_SERVER['REQUEST_METHOD']);"),
    ]);
    let pagewell = site.serve("");
    let mut client = client(&pagewell);
    let head = client.head("/none.php").expect("an answer");
    assert_eq!((head.status, head.content.len()), (200, 0));
    assert_eq!(head.header("content-length"), Some("10"));
    for (path, etag) in [("/own.php", Some("\"v1\"")), ("/none.php", None)] {
        let page = client.get(path).expect("an answer");
        let found = page.header("etag").expect("a page has a validator").to_owned();
        assert_eq!(etag.unwrap_or(&found), found);
        assert_eq!(page.header("content-length"), Some("10"));
        let request = Request::get(path).header("If-None-Match", &found);
        let same = client.send(&request).expect("an answer");
        assert_eq!((same.status, same.content.len()), (304, 0), "{path}");
        assert_eq!(same.header("etag"), Some(found.as_str()));
        assert!(is_hit(&same));
        let request = Request::get(path).header("If-None-Match", "\"other\"");
        assert_eq!(client.send(&request).expect("an answer").status, 200);
        let request = Request::get(path).header("Range", "bytes=2-4");
        let part = client.send(&request).expect("an answer");
        assert_eq!((part.status, part.text().as_str()), (206, "234"));
        assert_eq!(part.header("content-range"), Some("bytes 2-4/10"));
        let request = Request::get(path).header("Range", "bytes=20-");
        assert_eq!(client.send(&request).expect("an answer").status, 416);
        let head = client.head(path).expect("an answer");
        assert_eq!((head.status, head.header("content-length")), (200, Some("10")));
        assert!(is_hit(&head) && head.content.is_empty());
    }
    assert_eq!(counter(&pagewell, "renders"), 2, "one for each page");
    let head = client.head("/live.php").expect("an answer");
    assert_eq!((head.status, head.content.len()), (200, 0));
    assert_eq!(client.get("/live.php").expect("an answer").text(), "0123456789");
}

#[test]
fn the_answer_goes_out_before_the_work_that_a_script_does_after_it() {
    let site = Site::new(&[
        (
            "after.php",
            "<?php keep(); echo 'thanks'; fastcgi_finish_request(); wait_for('go'); note('done');",
        ),
        ("next.php", "<?php echo 'next';"),
    ]);
    let pagewell = site.serve("");
    let mut client = client(&pagewell);
    for hit in [false, true] {
        let response = client.get("/after.php").expect("an answer");
        assert_eq!((response.text().as_str(), is_hit(&response)), ("thanks", hit));
    }
    assert!(!site.has_note("done"), "the script is still at work");
    site.note("go");
    site.wait_for("done");
    assert_eq!(client.get("/next.php").expect("an answer").text(), "next");
}

#[test]
fn a_page_whose_script_dies_is_not_kept() {
    let site = Site::new(&[
        ("early.php", "<?php keep(); echo 'half '; no_such_function();"),
        (
            "late.php",
            "<?php keep(); out('half ');
            no_such_function();",
        ),
        (
            "slow.php",
            "<?php keep(); out('half ');
            wait_for('go'); no_such_function();",
        ),
        ("measured.php", "<?php keep(); header('Content-Length: 100'); echo 'half ';"),
        ("exits.php", "<?php keep(); echo 'whole'; exit(3);"),
        ("header.php", "<?php keep(); header('Bad Name: x'); echo 'x';"),
    ]);
    let pagewell = site.serve("");
    let mut client = client(&pagewell);
    for _ in 0..2 {
        assert_eq!(client.get("/early.php").expect("an answer").status, 500);
        let late = client.get("/late.php").expect("an answer");
        assert_eq!(late.status, 200, "the status had gone out before");
        assert_eq!(late.text(), "half ", "what there is goes to the one who asked");
        assert!(!is_hit(&late), "{}", cache_status(&late));
        assert!(cache_status(&late).contains("php-fatal-error"), "{}", cache_status(&late));
        let short = client.get("/measured.php").expect("an answer");
        assert_eq!(short.status, 502, "fewer bytes than were announced");
        let bad = client.get("/header.php").expect("an answer");
        assert_eq!(bad.status, 502);
    }
    // One that has begun to go out when the script dies.
    let mut raw = Raw::with(&pagewell, "GET /slow.php HTTP/1.1\r\nHost: a\r\n\r\n");
    raw.until("half ");
    site.note("go");
    raw.until("0\r\n\r\n");
    assert_eq!(counter(&pagewell, "pages"), 0);
    // An exit status is the script's own affair: the page is whole.
    for hit in [false, true] {
        let whole = client.get("/exits.php").expect("an answer");
        assert_eq!((whole.text().as_str(), is_hit(&whole)), ("whole", hit));
    }
}

#[test]
fn a_php_fpm_that_somebody_else_runs_is_left_its_workers() {
    let site = Site::new(&[("pid.php", "<?php echo getmypid();")]);
    let dir = PrivateDir::temporary("fpm").expect("a directory can be made");
    let pool = PoolOptions { children: 1, ..PoolOptions::default() };
    let php = PhpFpm::start(dir, &pool).expect("php-fpm starts");
    let at = format!("unix:{}", php.socket().display());
    // Its one worker would be taken for good by a connection that one of the two kept.
    let (one, other) =
        (site.serve_with_args(&["--php", &at]), site.serve_with_args(&["--php", &at]));
    for _ in 0..3 {
        assert_eq!(client(&one).get("/pid.php").expect("an answer").status, 200);
        assert_eq!(client(&other).get("/pid.php").expect("an answer").status, 200);
    }
}
