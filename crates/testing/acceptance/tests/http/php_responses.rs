//! Responses of a site on a real php-fpm: how Pagewell handles a script's response, that a truncated page is
//! never stored, and which connections to php-fpm are reused.
//!
//! Pagewell starts and stops the php-fpm, unless a test uses its own. How a script sees a request is in
//! `php.rs`.

use acceptance::{Raw, Site, cache_status, client, counter, get_meanwhile, is_hit, until};
use harness::{PhpFpm, PoolOptions, PrivateDir, Request};

#[test]
fn status_and_location_follow_cgi() {
    let site = Site::new(&[
        ("teapot.php", "<?php http_response_code(418); echo 'short and stout';"),
        ("gone.php", "<?php header('Status: 410 Gone'); echo 'gone';"),
        ("away.php", "<?php header('Location: https://other.test/x?y');"),
        ("moved.php", "<?php header('Location: /target.php', true, 301);"),
        // PHP sends no Status with 200; CGI then treats it as a local redirect (RFC 3875, 6.2.2).
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
fn a_worker_that_continues_after_its_response_gets_no_request() {
    let site = Site::new(&[
        (
            "finish.php",
            "<?php echo getmypid(); fastcgi_finish_request(); note('f' . $_GET['n']); wait_for('go');",
        ),
        ("quick.php", "<?php echo getmypid();"),
    ]);
    let pagewell = site.serve("php.children = 3\n");
    let mut client = client(&pagewell);
    let mut get = |path: &str| client.get(path).expect("an answer").text();
    // Two of three workers are busy after their response. Every further request finds the third.
    let busy = [get("/finish.php?n=1"), get("/finish.php?n=2")];
    site.wait_for("f1");
    site.wait_for("f2");
    assert_ne!(busy[0], busy[1]);
    for _ in 0..10 {
        assert!(!busy.contains(&get("/quick.php")));
    }
    let posted = acceptance::client(&pagewell).send(&Request::form("/quick.php", "a=1"));
    assert!(!busy.contains(&posted.expect("an answer").text()));
    site.note("go");
    // Their workers serve again.
    until("all workers are used", || {
        let all: Vec<_> = (0..3).map(|_| get_meanwhile(&pagewell, "/quick.php")).collect();
        let pids: Vec<_> =
            all.into_iter().map(|one| one.join().expect("an answer").text()).collect();
        busy.iter().any(|pid| pids.contains(pid))
    });
}

#[test]
fn output_is_forwarded_before_the_script_ends() {
    let script = |head: &str| format!("<?php {head} out('first '); wait_for('go'); echo 'last';");
    let site = Site::new(&[
        ("live.php", &script("")),
        ("kept.php", &script("keep();")),
        ("measured.php", &script("keep(); header('Content-Length: 10');")),
    ]);
    let pagewell = site.serve("");
    let mut stored = 0;
    for (path, kept) in [("/live.php", false), ("/kept.php", true), ("/measured.php", true)] {
        site.clear_notes();
        let mut raw = Raw::with(&pagewell, format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
        raw.until("first ");
        site.note("go");
        raw.until("last");
        if kept {
            stored += 1;
            until("it is stored", || counter(&pagewell, "stored") == stored);
        }
        let again = client(&pagewell).host("a").get(path).expect("an answer");
        assert_eq!(again.text(), "first last");
        assert_eq!(is_hit(&again), kept, "{path}: {}", cache_status(&again));
    }
}

#[test]
fn stderr_of_a_script_is_logged_with_its_url() {
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

/// An exception has many lines; one event of the log shows all of it.
#[test]
fn an_exception_is_one_line_of_the_log() {
    let script =
        "<?php error_log('before'); function f() { throw new Exception('the cellar'); } f();";
    let site = Site::new(&[("thrown.php", script)]);
    let pagewell = site.serve("");
    let response = client(&pagewell).get("/thrown.php").expect("an answer");
    assert_eq!(response.status, 500);
    let lines = || {
        let log = pagewell.log();
        log.lines().filter(|line| line.contains("origin-stderr")).map(str::to_owned).collect()
    };
    let mut all: Vec<String> = Vec::new();
    until("both are in the log", || {
        all = lines();
        all.iter().any(|line| line.contains("Stack trace:"))
    });
    assert_eq!(all.len(), 2, "{all:#?}");
    assert!(all[0].contains("before") && !all[0].contains("cellar"), "{all:#?}");
    assert!(all[1].contains("the cellar") && all[1].contains("thrown in"), "{all:#?}");
}

#[test]
fn large_output_is_forwarded_and_not_stored() {
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
fn a_connection_to_php_is_reused() {
    let site = Site::new(&[("pid.php", "<?php echo getmypid();")]);
    let pagewell = site.serve("");
    let mut client = client(&pagewell);
    // A worker that takes long to wait for its next request loses its connection.
    until("one worker gets twenty requests in sequence", || {
        let mut pid = |number| client.get(&format!("/pid.php?{number}")).expect("an answer").text();
        let first = pid(0);
        (1..20).all(|number| pid(number) == first)
    });
    // Requests with content use new connections, which the same workers accept.
    for number in 0..20 {
        let pid = client.post("/pid.php", "a=b").expect("an answer").text();
        assert!(pid.parse::<u32>().is_ok(), "post {number}: {pid}");
    }
}

#[test]
fn as_many_scripts_run_at_once_as_there_are_children() {
    let script = "<?php note('started' . $_GET['n']); wait_for('go'); echo 'whole';";
    let site = Site::new(&[("waits.php", script), ("quick.php", "<?php usleep(1000);")]);
    let pagewell = site.serve("[php]\nchildren = 6\n");
    // Some connections are open from before, others must be opened.
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
fn a_connection_that_php_closed_loses_no_request() {
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
fn the_response_is_sent_before_a_script_finishes_its_later_work() {
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
fn a_page_whose_script_dies_is_not_stored() {
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
    // A page whose first part has been sent when the script dies.
    let mut raw = Raw::with(&pagewell, "GET /slow.php HTTP/1.1\r\nHost: a\r\n\r\n");
    raw.until("half ");
    site.note("go");
    raw.until("0\r\n\r\n");
    assert_eq!(counter(&pagewell, "pages"), 0);
    // The exit status belongs to the script: the page is complete.
    for hit in [false, true] {
        let whole = client.get("/exits.php").expect("an answer");
        assert_eq!((whole.text().as_str(), is_hit(&whole)), ("whole", hit));
    }
}

#[test]
fn connections_do_not_block_the_workers_of_an_external_php_fpm() {
    let site = Site::new(&[("pid.php", "<?php echo getmypid();")]);
    let dir = PrivateDir::temporary("fpm").expect("a directory can be made");
    let pool = PoolOptions { children: 1, ..PoolOptions::default() };
    let php = PhpFpm::start(dir, &pool).expect("php-fpm starts");
    let at = format!("unix:{}", php.socket().display());
    // A connection kept open by one of the two would block its only worker permanently.
    let (one, other) =
        (site.serve_with_args(&["--php", &at]), site.serve_with_args(&["--php", &at]));
    for _ in 0..3 {
        assert_eq!(client(&one).get("/pid.php").expect("an answer").status, 200);
        assert_eq!(client(&other).get("/pid.php").expect("an answer").status, 200);
    }
}

#[test]
fn a_page_may_have_64_kb_of_tags_in_one_field_line_or_several() {
    let script = "<?php keep();
        $tags = array_map(fn (int $n): string => str_pad(\"node:$n\", 64, '-'), range(1, 999));
        foreach (array_chunk($tags, (int) $_GET['each']) as $some) {
            header('Cache-Tag: ' . implode(',', [...$some, 'last']), false);
        }
        echo count($tags);";
    let site = Site::new(&[("tagged.php", script)]);
    let pagewell = site.serve("");
    for each in [999, 100, 20] {
        let mut client = client(&pagewell);
        let mut get = || client.get(&format!("/tagged.php?each={each}")).expect("an answer");
        for tag in ["last".to_owned(), format!("{:-<64}", "node:999")] {
            assert!(cache_status(&get()).contains("stored"), "{each}");
            assert!(is_hit(&get()), "{each}");
            let dropped =
                pagewell.invalidate(&format!("{{\"tags\":[\"{tag}\"]}}")).expect("an answer");
            assert!(dropped.text().contains("\"dropped\":1,"), "{each} {tag}: {}", dropped.text());
        }
        assert!(!is_hit(&get()), "{each}");
        pagewell.invalidate("{\"all\":true}").expect("an answer");
    }
}
