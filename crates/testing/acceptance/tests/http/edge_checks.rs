//! Passwords, and files that the application names, on a site with files and a real php-fpm, over HTTP/1.1 and HTTP/2.
//! Rate limits are in `tests/scenarios/edge`.

use acceptance::{Site, binary, cache_status, client, counter, is_hit, limit_hit, until};
use harness::{Pagewell, Request, Response};
use std::os::unix::fs::symlink;
use std::process::{Command, Output};

/// `anna:secret` and `bert:secret` by bcrypt; `old:secret` by apr1.
const STAFF: &str = "anna:$2y$04$fnQwoA9.coPo9XjTlKCSnug.qmDJXi/QQ9JCiMv3tsjCWhfSHE7Eq\n\
    bert:$2y$04$fnQwoA9.coPo9XjTlKCSnug.qmDJXi/QQ9JCiMv3tsjCWhfSHE7Eq\n\
    old:$apr1$abcdefgh$h9FWgUz3n9YxylKLlR5SQ/\n";
const ANNA: &str = "Basic YW5uYTpzZWNyZXQ=";
const BERT: &str = "Basic YmVydDpzZWNyZXQ=";
const OLD: &str = "Basic b2xkOnNlY3JldA==";
const ANNA_WRONG: &str = "Basic YW5uYTp3cm9uZw==";
const NOBODY: &str = "Basic bm9ib2R5OnNlY3JldA==";

fn site() -> Site {
    let script = "<?php keep(); echo 'ran ', $_SERVER['REQUEST_URI'], '; ', \
        $_SERVER['HTTP_AUTHORIZATION'] ?? 'no field', '; ', $_SERVER['REMOTE_USER'] ?? 'nobody';";
    let site = Site::new(&[
        ("index.php", script),
        ("staff/index.php", script),
        ("staff/style.css", "secret style"),
        (
            "staff/stale.php",
            "<?php header('Cache-Control: max-age=0, stale-while-revalidate=600'); echo 'old';",
        ),
        ("own/index.php", script),
        // A local redirect (RFC 3875 section 6.2.2).
        ("own/inside.php", "<?php header('Location: /own/index.php', true, 200);"),
        ("part.php", "<?php keep(); echo 'part';"),
        ("staff/part.php", "<?php keep(); echo 'secret part';"),
        (
            "page.php",
            "<?php keep(); header('Surrogate-Control: content=\"ESI/1.0\"'); \
             echo '[<esi:include src=\"/staff/part.php\" onerror=\"continue\"/>]';",
        ),
        (
            "staff/page.php",
            "<?php keep(); header('Surrogate-Control: content=\"ESI/1.0\"'); \
             echo '[<esi:include src=\"/staff/part.php\" onerror=\"continue\"/>]';",
        ),
    ]);
    std::fs::write(site.at("staff"), STAFF).expect("a password file");
    site
}

fn rules(site: &Site) -> String {
    let file = site.at("staff").display().to_string();
    format!(
        "cache.esi = true\n\
         [[rule]]\npath = \"/staff/open\"\nauth_file = false\n\
         [[rule]]\npath = [\"/staff\", \"/staff/**\"]\nauth_file = {file:?}\nauth_realm = \"Staff\"\n\
         [[rule]]\npath = \"/own/**\"\nauth_file = {file:?}\nauth_forward = true\n"
    )
}

fn get(pagewell: &Pagewell, path: &str, authorization: Option<&str>) -> Response {
    let request = Request::get(path);
    let request = match authorization {
        Some(value) => request.header("authorization", value),
        None => request,
    };
    client(pagewell).send(&request).expect("an answer")
}

/// Sends a request over HTTP/2, and returns which frames were received.
fn over_http2(pagewell: &Pagewell, path: &str, fields: &[(&str, &str)]) -> String {
    let mut command = Command::new("nghttp");
    command.arg("-v");
    for (name, value) in fields {
        command.args(["-H", &format!("{name}: {value}")]);
    }
    let url = format!("http://{}{path}", pagewell.address());
    let Output { stdout, stderr, .. } = command.arg(&url).output().expect("nghttp runs");
    String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned()
}

#[test]
fn a_page_behind_a_password_is_cached_and_given_to_nobody_without_it() {
    let site = site();
    let pagewell = site.serve(&rules(&site));
    let first = get(&pagewell, "/staff/", Some(ANNA));
    assert_eq!((first.status, first.text().as_str()), (200, "ran /staff/; no field; nobody"));
    assert!(cache_status(&first).contains("stored"), "{}", cache_status(&first));
    for (user, is_right) in [
        (Some(ANNA), true),
        (Some(BERT), true),
        (Some(OLD), true),
        (Some(ANNA_WRONG), false),
        (Some(NOBODY), false),
        (Some("Bearer secret"), false),
        (None, false),
    ] {
        // Twice: the second check of a right password is remembered.
        for _ in 0..2 {
            let response = get(&pagewell, "/staff/", user);
            let fields: Vec<_> = user.map(|user| ("authorization", user)).into_iter().collect();
            let frames = over_http2(&pagewell, "/staff/", &fields);
            if is_right {
                assert!(is_hit(&response), "{user:?}: {}", cache_status(&response));
                assert_eq!(response.header("cache-control"), Some("private, max-age=3600"));
                assert!(
                    frames.contains(":status: 200") && frames.contains("pagewell; hit"),
                    "{frames}"
                );
                continue;
            }
            assert_eq!(response.status, 401, "{user:?}");
            let challenge = response.header("www-authenticate");
            assert_eq!(challenge, Some("Basic realm=\"Staff\", charset=\"UTF-8\""));
            assert_eq!(cache_status(&response), "pagewell; detail=password-required");
            assert!(!response.text().contains("ran"), "{user:?}");
            assert!(frames.contains(":status: 401") && !frames.contains("ran"), "{frames}");
        }
    }
    assert!(counter(&pagewell, "passwords_refused") >= 16);
    let open = get(&pagewell, "/staff/open", None);
    assert_eq!((open.status, open.header("cache-control")), (200, Some("max-age=3600")));
    // A purge needs no password; afterwards the page still does.
    pagewell.invalidate("{\"all\":true}").expect("an answer");
    assert_eq!(get(&pagewell, "/staff/", None).status, 401);
    assert_eq!(get(&pagewell, "/staff/", Some(BERT)).status, 200);
}

#[test]
fn no_spelling_of_a_path_evades_a_password() {
    let site = site();
    let pagewell = site.serve(&rules(&site));
    for path in [
        "/staff",
        "/staff/style.css",
        "//staff/style.css",
        "/./staff/style.css",
        "/%73taff/style.css",
        "/x/../staff/style.css",
        "/staff%2fstyle.css",
        "/staff%5cstyle.css",
        "/x%5c..%5cstaff%5cstyle.css",
        "/index.php/staff/x",
        "/staff/index.php/x",
        "/staff/open/../style.css",
        "/staff/open%2f..%2fstyle.css",
        "/staff/page.php?a=b",
    ] {
        for method in ["GET", "HEAD", "POST", "OPTIONS"] {
            let request = Request::new(method, path).header("content-length", "0");
            let response = client(&pagewell).send(&request).expect("an answer");
            assert_eq!(response.status, 401, "{method} {path}");
            assert!(
                !response.text().contains("secret") && !response.text().contains("ran"),
                "{path}"
            );
        }
        for (name, value) in [(":method", "GET"), (":method", "HEAD")] {
            let frames = over_http2(&pagewell, path, &[(name, value)]);
            assert!(frames.contains(":status: 401"), "{path}: {frames}");
        }
    }
    for _ in 0..3 {
        let file = get(&pagewell, "/staff/style.css", Some(ANNA));
        assert_eq!((file.status, file.text().as_str()), (200, "secret style"));
        assert_eq!(file.header("cache-control"), Some("private"));
        assert_eq!(get(&pagewell, "/staff/style.css", None).status, 401);
    }
}

#[test]
fn a_fragment_behind_a_password_needs_the_rule_of_its_page() {
    let site = site();
    let pagewell = site.serve(&rules(&site));
    assert_eq!(get(&pagewell, "/staff/part.php", Some(ANNA)).text(), "secret part");
    for user in [None, Some(ANNA), Some(ANNA_WRONG)] {
        assert_eq!(get(&pagewell, "/page.php", user).text(), "[]", "{user:?}");
    }
    assert_eq!(get(&pagewell, "/staff/page.php", Some(BERT)).text(), "[secret part]");
    assert_eq!(get(&pagewell, "/staff/page.php", None).status, 401);
}

#[test]
fn a_forwarded_password_bypasses_the_cache() {
    let site = site();
    let pagewell = site.serve(&rules(&site));
    for (user, name) in [(ANNA, "anna"), (BERT, "bert"), (ANNA, "anna")] {
        let response = get(&pagewell, "/own/", Some(user));
        assert_eq!(response.text(), format!("ran /own/; {user}; {name}"));
        assert_eq!(cache_status(&response), "pagewell; fwd=bypass; fwd-status=200; detail=rule");
        assert!(response.header("cache-control").is_some_and(|value| value.starts_with("private")));
    }
    assert_eq!(get(&pagewell, "/own/", None).status, 401);
    assert_eq!(counter(&pagewell, "stored"), 0);
    let inside = get(&pagewell, "/own/inside.php", Some(BERT));
    assert_eq!(inside.text(), format!("ran /own/index.php; {BERT}; bert"));
}

#[test]
fn a_stale_page_behind_a_password_needs_it_too() {
    let site = site();
    let pagewell = site.serve(&rules(&site));
    assert_eq!(get(&pagewell, "/staff/stale.php", Some(ANNA)).text(), "old");
    for _ in 0..2 {
        assert_eq!(get(&pagewell, "/staff/stale.php", None).status, 401);
        let stale = get(&pagewell, "/staff/stale.php", Some(BERT));
        assert_eq!((stale.status, stale.text().as_str()), (200, "old"));
        assert!(is_hit(&stale), "{}", cache_status(&stale));
        assert!(stale.header("cache-control").is_some_and(|value| value.starts_with("private")));
    }
}

#[test]
fn rules_are_found_once_for_the_request_as_it_was_sent() {
    let site = site();
    let file = site.at("staff").display().to_string();
    let pagewell = site.serve(&format!(
        "[[rule]]\npath = \"/staff/**\"\nheader = \"!authorization\"\ndeny = 404\n\
         [[rule]]\nheader = \"authorization\"\nlimit = false\n\
         [[rule]]\nlimit = {{ rate = \"1/h\", count = \"all\" }}\n\
         [[rule]]\npath = \"/staff/**\"\nauth_file = {file:?}\n\
         [[rule]]\npath = \"/staff/old\"\nheader = \"authorization\"\nredirect = \"/staff/\"\n"
    ));
    assert_eq!(get(&pagewell, "/staff/", None).status, 404);
    assert_eq!(get(&pagewell, "/staff/", Some(ANNA_WRONG)).status, 401);
    // The exemption holds after the check has consumed the field, and so does the redirect.
    for _ in 0..3 {
        assert_eq!(get(&pagewell, "/staff/", Some(ANNA)).status, 200);
    }
    let old = get(&pagewell, "/staff/old", Some(ANNA));
    assert_eq!((old.status, old.header("location")), (301, Some("/staff/")));
    assert_eq!(get(&pagewell, "/part.php", None).status, 200);
    assert_eq!(get(&pagewell, "/part.php", None).status, 429);
}

#[test]
fn a_changed_password_file_counts_within_seconds() {
    let site = site();
    let pagewell = site.serve(&rules(&site));
    assert_eq!(get(&pagewell, "/staff/", Some(ANNA)).status, 200);
    let without_anna = STAFF.split_once('\n').expect("lines").1;
    std::fs::write(site.at("staff"), without_anna).expect("written");
    until("anna is refused", || get(&pagewell, "/staff/", Some(ANNA)).status == 401);
    assert_eq!(get(&pagewell, "/staff/", Some(BERT)).status, 200);
    // A file that cannot be used changes nothing.
    std::fs::write(site.at("staff"), "anna:secret\n").expect("written");
    until("the file is reported", || {
        assert_eq!(get(&pagewell, "/staff/", Some(BERT)).status, 200);
        pagewell.log().contains("passwords-unusable")
    });
    assert_eq!(get(&pagewell, "/staff/", Some(ANNA)).status, 401);
}

#[test]
fn wrong_passwords_of_an_address_are_limited_for_each_user() {
    let site = site();
    let own = format!("trusted_proxies = [\"127.0.0.1\", \"::1\"]\n{}", rules(&site));
    let pagewell = site.serve(&own);
    let get = |address: &str, user: &str| {
        let request = Request::get("/staff/").header("authorization", user);
        let request = match address {
            "" => request,
            address => request.header("x-forwarded-for", address),
        };
        client(&pagewell).send(&request).expect("an answer")
    };
    let attacker = "192.0.2.1";
    assert_eq!(get(attacker, BERT).status, 200);
    for number in 0..20 {
        assert_eq!(get(attacker, ANNA_WRONG).status, 401, "{number}");
    }
    // Every six seconds another one is allowed.
    until("they are limited", || {
        let response = get("::ffff:192.0.2.1", ANNA_WRONG);
        let is_limited = response.status == 429;
        if is_limited {
            assert_eq!(cache_status(&response), "pagewell; detail=rate-limited");
            assert!(response.header("retry-after").is_some());
        }
        is_limited
    });
    // Other users, a remembered password, another address, and the machine itself.
    assert_eq!((get(attacker, OLD).status, get(attacker, NOBODY).status), (200, 401));
    assert_eq!(get(attacker, BERT).status, 200);
    assert_eq!(get("192.0.2.2", ANNA_WRONG).status, 401);
    assert_eq!(get("", ANNA_WRONG).status, 401);
    assert_eq!(get("192.0.2.2", ANNA).status, 200);
    assert_eq!(get(attacker, ANNA).status, 200, "it is remembered now");
}

#[test]
fn many_wrong_passwords_at_once_are_bounded() {
    let site = site();
    // About 50 ms each: more clients than one check at a time and 64 that wait.
    const CLIENTS: usize = 200;
    let slow = "anna:$2y$10$fnQwoA9.coPo9XjTlKCSnug.qmDJXi/QQ9JCiMv3tsjCWhfSHE7Eq\n";
    std::fs::write(site.at("staff"), slow).expect("written");
    let config = format!("{}[limits]\npassword_checks = 1\n", rules(&site));
    let pagewell = site.serve(&config);
    let outcomes = std::thread::scope(|scope| {
        let ask = |number: usize| {
            let user = if number.is_multiple_of(2) { ANNA_WRONG } else { NOBODY };
            get(&pagewell, "/staff/", Some(user)).status
        };
        let clients: Vec<_> = (0..CLIENTS).map(|number| scope.spawn(move || ask(number))).collect();
        // Meanwhile, other requests are answered.
        assert_eq!(get(&pagewell, "/part.php", None).status, 200);
        clients.into_iter().map(|client| client.join().expect("an answer")).collect::<Vec<_>>()
    });
    let busy = outcomes.iter().filter(|status| **status == 503).count() as u64;
    assert!(outcomes.iter().all(|status| matches!(status, 401 | 503)), "{outcomes:?}");
    assert!(busy > 0, "the queue is bounded: {outcomes:?}");
    assert_eq!(limit_hit(&pagewell, "password_checks"), busy);
    let long = format!("Basic {}", "YWFh".repeat(2_000));
    assert_eq!(get(&pagewell, "/staff/", Some(&long)).status, 401);
}

#[test]
fn a_file_with_clear_text_is_an_error_with_its_remedy() {
    let site = site();
    std::fs::write(site.at("staff"), format!("{STAFF}carl:secret\n")).expect("written");
    let config = site.config(&rules(&site), "");
    let mut command = Command::new(binary());
    let found = command.arg("check").arg(site.root()).arg("--config").arg(&config).output();
    let Output { status, stdout, stderr } = found.expect("it runs");
    let said = String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned();
    let remedy = format!("htpasswd -B {} carl", site.at("staff").display());
    assert!(!status.success(), "{said}");
    for part in ["auth_file", "line 4", "clear text", &remedy] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn a_limit_counts_over_http2_too() {
    let site = site();
    let pagewell = site.serve(
        "[[rule]]\npath = \"/part.php\"\nlimit = { rate = \"2/h\", count = \"all\" }\n\
         [[rule]]\npath = \"/index.php\"\nlimit = { rate = \"1/h\" }\n",
    );
    assert_eq!(get(&pagewell, "/part.php", None).status, 200);
    assert!(over_http2(&pagewell, "/part.php", &[]).contains("pagewell; hit"));
    assert!(over_http2(&pagewell, "/part.php", &[]).contains(":status: 429"));
    let refused = get(&pagewell, "/part.php", None);
    assert_eq!((refused.status, cache_status(&refused)), (429, "pagewell; detail=rate-limited"));
    assert!(over_http2(&pagewell, "/index.php?a", &[]).contains(":status: 200"));
    assert!(over_http2(&pagewell, "/index.php?b", &[]).contains(":status: 429"));
    assert!(over_http2(&pagewell, "/index.php?a", &[]).contains("pagewell; hit"));
}

#[test]
fn an_explanation_names_the_checks_and_goes_on() {
    let site = site();
    let limit = "[[rule]]\nname = \"all\"\nlimit = { rate = \"9/s\", count = \"all\" }\n";
    let pagewell = site.serve(&format!("{}{limit}", rules(&site)));
    assert_eq!(get(&pagewell, "/staff/", Some(ANNA)).status, 200);
    let told = pagewell.explain("{\"url\":\"/staff/\"}").expect("an explanation");
    assert_eq!(told["verdict"], "hit", "{told}");
    let rules = serde_json::json!([
        { "kind": "limit", "number": 4, "name": "all" },
        { "kind": "password", "number": 2, "name": null },
    ]);
    assert_eq!(told["other_rules"], rules, "{told}");
    for part in [
        "Rule 4 (all) limits each client to 9/s, 9 at once: a request beyond gets a 429.",
        "Rule 2 needs a password: a request without one gets a 401.",
    ] {
        assert!(told["sentence"].as_str().is_some_and(|text| text.contains(part)), "{told}");
    }
    let told = pagewell.explain("{\"url\":\"/staff/\",\"from\":\"192.0.2.1\"}");
    let told = told.expect("an explanation");
    assert_eq!(told["client"]["now"], "401: rule 2 needs a password", "{told}");
    let told = pagewell.explain("{\"url\":\"/own/\"}").expect("an explanation");
    assert_eq!((&told["verdict"], &told["reason"]), (&"bypass".into(), &"rule".into()), "{told}");
}

/// A site that names files: a shop, Laravel, and a program like Nextcloud.
fn downloads() -> (Site, Pagewell) {
    let site = Site::new(&[
        (
            "download.php",
            "<?php keep(); header('Content-Type: application/octet-stream'); \
             header('Content-Disposition: attachment; filename=\"a.pdf\"'); setcookie('seen', '1'); \
             header('X-Accel-Redirect: /protected/' . rawurlencode($_GET['file']));",
        ),
        ("raw.php", "<?php header('X-Accel-Redirect: ' . $_GET['to']); echo 'left over';"),
        ("sendfile.php", "<?php header('X-Sendfile: ' . $_GET['to']);"),
        ("uploads/shop/book.txt", "a book"),
        ("uploads/shop/run.php", "<?php echo 'ran';"),
        ("uploads/free.txt", "free"),
    ]);
    let private = site.at("private");
    std::fs::create_dir_all(private.join("sub")).expect("a directory");
    std::fs::write(private.join("a b.pdf"), "0123456789").expect("a file");
    std::fs::write(private.join("photo.png"), vec![b'x'; 300_000]).expect("a file");
    std::fs::write(site.at("outside"), "outside").expect("a file");
    symlink(site.at("outside"), private.join("link")).expect("a link");
    let (private, shop) = (private.display().to_string(), site.root().join("uploads/shop"));
    let pagewell = site.serve(&format!(
        "[site.internal_files]\n\"/protected/\" = {private:?}\n\"/uploads/shop/\" = {:?}\n",
        shop.display().to_string()
    ));
    (site, pagewell)
}

#[test]
fn a_file_that_the_application_names_is_sent_as_any_other() {
    let (site, pagewell) = downloads();
    let mut client = client(&pagewell);
    let mut etag = String::new();
    for _ in 0..2 {
        let response = client.get("/download.php?file=a%20b.pdf").expect("an answer");
        assert_eq!((response.status, response.text().as_str()), (200, "0123456789"));
        for (name, value) in [
            ("content-type", "application/octet-stream"),
            ("content-disposition", "attachment; filename=\"a.pdf\""),
            ("cache-control", "max-age=3600"),
            ("content-length", "10"),
            ("accept-ranges", "bytes"),
        ] {
            assert_eq!(response.header(name), Some(value), "{name}");
        }
        assert!(response.header("set-cookie").is_some_and(|value| value.starts_with("seen=1")));
        assert!(response.header("x-accel-redirect").is_none());
        assert!(!is_hit(&response), "{}", cache_status(&response));
        etag = response.header("etag").expect("a validator").to_owned();
    }
    let with =
        |name: &str, value: &str| Request::get("/download.php?file=a%20b.pdf").header(name, value);
    let head_field = |name: &str| {
        let response = acceptance::client(&pagewell).head("/download.php?file=a%20b.pdf");
        response.expect("an answer").header(name).expect("a field").to_owned()
    };
    let part = client.send(&with("range", "bytes=2-4")).expect("an answer");
    assert_eq!((part.status, part.text().as_str()), (206, "234"));
    assert_eq!(part.header("content-range"), Some("bytes 2-4/10"));
    let beyond = client.send(&with("range", "bytes=20-")).expect("an answer");
    assert_eq!(beyond.status, 416);
    let known = client.send(&with("if-none-match", &etag)).expect("an answer");
    assert_eq!((known.status, known.text().as_str()), (304, ""));
    let modified = head_field("last-modified");
    let unmodified = client.send(&with("if-modified-since", &modified)).expect("an answer");
    assert_eq!((unmodified.status, unmodified.text().as_str()), (304, ""));
    for (validator, right) in [(&*etag, 206), ("\"other\"", 200)] {
        let request = with("range", "bytes=2-4").header("if-range", validator);
        assert_eq!(client.send(&request).expect("an answer").status, right, "{validator}");
    }
    let head = client.head("/download.php?file=a%20b.pdf").expect("an answer");
    assert_eq!((head.status, head.header("content-length")), (200, Some("10")));
    let form = Request::form("/download.php?file=a%20b.pdf", "agreed=1");
    assert_eq!(client.send(&form).expect("an answer").text(), "0123456789");
    // Large, by another field, with PHP's default type.
    let to = site.at("private").join("photo.png").display().to_string();
    let photo = client.get(&format!("/sendfile.php?to={to}")).expect("an answer");
    assert_eq!((photo.status, photo.content.len()), (200, 300_000));
    assert_eq!(photo.header("content-type"), Some("image/png"));
    let frames = over_http2(&pagewell, "/download.php?file=a%20b.pdf", &[("range", "bytes=0-3")]);
    assert!(frames.contains(":status: 206") && frames.contains("0123"), "{frames}");
    let shop = client.get("/raw.php?to=/uploads/shop/book.txt").expect("an answer");
    assert_eq!((shop.status, shop.text().as_str()), (200, "a book"));
    assert_eq!(counter(&pagewell, "sendfiles_removed"), 0);
}

#[test]
fn a_file_that_is_named_for_a_fragment_is_its_content() {
    let page = "<?php header('Surrogate-Control: content=\"ESI/1.0\"'); \
        echo '[<esi:include src=\"/banner.php?f=banner.html\"/>', \
        '<esi:include src=\"/banner.php?f=no-such\" onerror=\"continue\"/>]';";
    let banner = "<?php header('X-Accel-Redirect: /protected/' . $_GET['f']); echo 'left over';";
    let site = Site::new(&[("page.php", page), ("banner.php", banner)]);
    let private = site.at("private");
    std::fs::create_dir_all(&private).expect("a directory");
    std::fs::write(private.join("banner.html"), "a banner").expect("a file");
    let pagewell = site.serve(&format!(
        "cache.esi = true\n[site.internal_files]\n\"/protected/\" = {:?}\n",
        private.display().to_string()
    ));
    let request = Request::get("/page.php").header("range", "bytes=0-1");
    for request in [Request::get("/page.php"), request] {
        let response = client(&pagewell).send(&request).expect("an answer");
        assert_eq!(response.text(), "[a banner]");
    }
    assert!(pagewell.log().contains("fragment-failed") && pagewell.log().contains("no-such"));
}

#[test]
fn no_file_outside_of_the_directories_is_sent() {
    let (site, pagewell) = downloads();
    let mut client = client(&pagewell);
    for path in [
        "/download.php?file=no-such",
        "/download.php?file=../outside",
        "/download.php?file=sub/../../outside",
        "/download.php?file=%252e%252e/outside",
        "/download.php?file=/etc/passwd",
        "/download.php?file=link",
        "/download.php?file=sub",
        "/download.php?file=",
        "/raw.php?to=/protected/%252e%252e/outside",
        "/raw.php?to=/protected//etc/passwd",
    ] {
        let response = client.get(path).expect("an answer");
        assert_eq!(response.status, 404, "{path}: {}", response.text());
        assert!(
            !response.text().contains("outside") && !response.text().contains("root:"),
            "{path}"
        );
    }
    let outside = site.at("outside").display().to_string();
    let dotted = site.at("private/../outside").display().to_string();
    for to in [&*outside, &*dotted, "/etc/passwd", "relative"] {
        let response = client.get(&format!("/sendfile.php?to={to}")).expect("an answer");
        assert_eq!((response.status, response.text().as_str()), (200, ""), "{to}");
        assert!(response.header("x-sendfile").is_none());
    }
    let other = client.get("/raw.php?to=/uploads/free.txt").expect("an answer");
    assert_eq!((other.status, other.text().as_str()), (200, "left over"));
    assert!(counter(&pagewell, "sendfiles_removed") >= 5);
    // The directories are closed to requests.
    for path in ["/uploads/shop/book.txt", "/uploads/shop/run.php", "/uploads/shop%2fbook.txt"] {
        for _ in 0..2 {
            let response = client.get(path).expect("an answer");
            assert!(
                !response.text().contains("a book") && !response.text().contains("ran"),
                "{path}"
            );
            assert_ne!(response.status, 200, "{path}");
        }
    }
    assert_eq!(client.get("/uploads/free.txt").expect("an answer").text(), "free");
}
