//! Requests to a site on a real php-fpm: which script a path selects, which files are never served, and how a
//! script sees a request and its content.
//!
//! Pagewell starts and stops the php-fpm. The handling of responses is in `php_responses.rs`.

use acceptance::{Raw, Site, cache_status, client, counter, is_hit, until};
use harness::{FcgiWrap, PrivateDir, Random, Request};
use http_cache::CookieName;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::fs::symlink;

/// Prints the variables that a script sees, one per line.
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

/// Any FastCGI program works: here Perl with fcgiwrap.
#[test]
fn scripts_need_not_be_php() {
    let script =
        "#!/usr/bin/perl\nprint \"Content-Type: text/plain\\nCache-Control: max-age=60\\n\\n\";
        print \"$ENV{SCRIPT_NAME}|\", $ENV{PATH_INFO} // '-', \"|$ENV{REQUEST_URI}\";\n";
    let site = Site::new(&[("app.pl", script), ("sub/run.pl", script), ("style.css", "x")]);
    std::fs::remove_file(site.root().join("index.php")).expect("it is ours");
    for name in ["app.pl", "sub/run.pl"] {
        let all_may = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(site.root().join(name), all_may).expect("it is ours");
    }
    let dir = PrivateDir::temporary("fcgiwrap").expect("a directory");
    let fcgiwrap = FcgiWrap::start(dir, 2).expect("fcgiwrap starts");
    let at = fcgiwrap.socket().display();
    let file = site.at("perl.toml");
    let config = format!("[site]\nfront_controller = \"app.pl\"\n[php]\nat = \"unix:{at}\"\n");
    std::fs::write(&file, config).expect("a file can be written");
    let pagewell = site.serve_with_args(&["--config", &file.display().to_string()]);
    let mut client = client(&pagewell);
    for (path, said) in [
        ("/", "/app.pl||/"),
        ("/news/4/?a=b", "/app.pl||/news/4/?a=b"),
        ("/app.pl", "/app.pl||/app.pl"),
        ("/sub/run.pl/a/b", "/sub/run.pl|/a/b|/sub/run.pl/a/b"),
        ("/style.css", "x"),
    ] {
        let response = client.get(path).expect("an answer");
        let text = response.text().replace('-', "");
        assert_eq!((response.status, text.as_str()), (200, said), "{path}: {}", pagewell.log());
    }
    assert!(is_hit(&client.get("/news/4/?a=b").expect("an answer")));
}

#[test]
fn hidden_files_are_not_found() {
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
        "/index.php%00.txt",
        "/upper.PHP",
    ] {
        let response = client.get(path).expect("an answer");
        assert!(!response.text().contains("SECRET"), "{path}: {}", response.text());
        assert!(!response.text().contains("SOURCE"), "{path}: {}", response.text());
        assert_ne!(response.status, 200, "{path}: {}", response.text());
    }
    // These files do not exist, so the application is called.
    for path in ["/BACKUP.sql", "/..%5coutside.txt"] {
        assert!(!client.get(path).expect("an answer").text().contains("SECRET"), "{path}");
    }
    let response = client.get("/.well-known/security.txt").expect("an answer");
    assert_eq!((response.status, response.text().as_str()), (200, "Contact: x"));
}

#[test]
fn hidden_names_without_a_file_go_to_the_application() {
    let site = Site::new(&[
        (
            "index.php",
            "<?php echo 'page of ', $_SERVER['REQUEST_URI'], ' ', $_SERVER['PATH_INFO'] ?? '';",
        ),
        (".git/config", "SECRET"),
        (".env", "SECRET"),
        ("Dump.sql", "SECRET"),
    ]);
    // With lower-case URLs, files keep their names.
    let pagewell = site.serve("[keys]\nlower_case = true\n");
    let mut client = client(&pagewell);
    for path in ["/wiki/.net_framework", "/wiki/wave~", "/wiki/dump.sql", "/wiki/back%5cslash"] {
        let response = client.get(path).expect("an answer");
        assert_eq!((response.status, response.text()), (200, format!("page of {path} ")));
    }
    let response = client.get("/index.php/.net").expect("an answer");
    assert_eq!(response.text(), "page of /index.php/.net /.net");
    for path in ["/.git/config", "/.git/none", "/.env", "/Dump.sql", "/index.php/.env", "/.git"] {
        let response = client.get(path).expect("an answer");
        assert_eq!(response.status, 404, "{path}: {}", response.text());
        assert!(!response.text().contains("page of"), "{path}: {}", response.text());
    }
    assert_eq!(client.get("/a%00.sql").expect("an answer").status, 400);
}

#[test]
fn symbolic_links_may_leave_the_root_if_allowed() {
    let site = Site::new(&[]);
    std::fs::write(site.at("outside.txt"), "shared").expect("a file can be written");
    symlink(site.at("outside.txt"), site.root().join("link.txt")).expect("a link can be made");
    let pagewell = site.serve("[site]\nallow_symlinks = true\n");
    assert_eq!(client(&pagewell).get("/link.txt").expect("an answer").text(), "shared");
}

/// If all pages of a site are hits, PHP's scheduled tasks would never run.
#[test]
fn a_wake_url_is_requested_at_intervals() {
    let script = "<?php keep(3600);
        if ($_GET['fail'] ?? 0) { http_response_code(500); }
        $name = \"$_SERVER[HTTP_HOST]-$_SERVER[HTTP_USER_AGENT]\";
        note(file_exists(getenv('NOTES') . \"/$name\") ? \"$name-again\" : $name);";
    let site = Site::new(&[("cron.php", script)]);
    let pagewell = site.serve(
        "site.host = \"a.test\"\n[[wake]]\nurl = \"/cron.php\"\nevery = \"1s\"\n\
         [[wake]]\nurl = \"http://b.test/cron.php?fail=1\"\nevery = \"1s\"\n",
    );
    // A response that could be stored is not used for the next request.
    site.wait_for("a.test-pagewell-wake-again");
    site.wait_for("b.test-pagewell-wake-again");
    until("failures are logged", || pagewell.log().contains("wake-failed"));
    let log = pagewell.log();
    assert!(log.contains("url=\"http://b.test/cron.php?fail=1\" status=500"), "{log}");
    assert!(counter(&pagewell, "wakes") >= 4 && counter(&pagewell, "wakes_failed") >= 1);
}

#[test]
fn a_script_gets_the_variables_of_cgi() {
    let site = Site::new(&[("show.php", SHOW)]);
    let pagewell = site.serve("");
    assert_ne!(pagewell.address().port(), Some(8080));
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
        // The port of the URL, whichever port of Pagewell received the request.
        "SERVER_PORT=8080".into(),
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
    let plain = Request::get("/show.php").header("Host", "news.example");
    let said = client(&pagewell).send(&plain).expect("an answer").text();
    assert!(said.lines().any(|line| line == "SERVER_PORT=80"), "{said}");
}

/// A script may decide by the port whether the request uses TLS, as WordPress does.
#[test]
fn a_page_does_not_depend_on_the_port_of_its_request() {
    let script = "<?php keep(); echo $_SERVER['SERVER_NAME'], ':', $_SERVER['SERVER_PORT'];";
    let site = Site::new(&[("port.php", script)]);
    let pagewell = site.serve("");
    assert!(pagewell.address().port().is_some_and(|port| port > 1_000));
    let ask = Request::get("/port.php").header("Host", "news.example");
    let answer = client(&pagewell).send(&ask).expect("an answer");
    assert_eq!(answer.text(), "news.example:80");
    assert!(cache_status(&answer).ends_with("stored"), "{}", cache_status(&answer));
}

/// PHP's own parser is the reference: Pagewell checks every name under which a script may find a cookie.
#[test]
fn every_cookie_name_that_php_reads_is_checked() {
    const PARTS: [&str; 14] =
        ["a", "B", "_", "-", ".", " ", "[", "]", "[x]", "%5f", "%5B", "+", "%", "\t"];
    let script = "<?php header('Cache-Control: no-store');
        foreach (array_keys($_COOKIE) as $name) { echo $name, \"\\n\"; }";
    let site = Site::new(&[("names.php", script)]);
    let pagewell = site.serve("");
    let mut client = client(&pagewell);
    let mut random = Random::new(1);
    let mut folded = 0;
    for _ in 0..400 {
        let parts = 1 + random.below(6);
        let name: String = (0..parts).map(|_| random.one(&PARTS)).collect();
        let request = Request::get("/names.php").header("Cookie", &format!("{name}=1"));
        let said = client.send(&request).expect("an answer").text();
        let readings = CookieName::of(name.as_bytes()).readings();
        for found in said.lines() {
            assert!(readings.iter().any(|one| one == found.as_bytes()), "{name:?}: {found:?}");
            folded += u32::from(found != name);
        }
    }
    assert!(folded > 50, "PHP has folded {folded} names");
}

/// The signs by which plugins recognise the cache (docs/guide/litespeed.md): some in a param, some in a request
/// field.
#[test]
fn plugins_detect_the_cache_as_on_litespeed() {
    let site = Site::new(&[("show.php", SHOW)]);
    let request = Request::get("/show.php")
        .header(
            "User-Agent",
            "Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X) Mobile/15E148",
        )
        .header("X-LSCACHE", "on,esi,forged")
        .header("X-LSCACHE-Vary-Value", "forged");
    let told = |config: &str| {
        let pagewell = site.serve(config);
        let said = client(&pagewell).send(&request).expect("an answer").text();
        let about = |line: &&str| line.contains("LSCACHE") || line.contains("LITEMAGE");
        let mut lines: Vec<String> = said.lines().filter(about).map(str::to_owned).collect();
        assert!(!said.contains("LSWS_EDITION") && !said.contains("forged"), "{said}");
        lines.sort_unstable();
        lines
    };
    let rule = "[[rule]]\npath = \"/show.php\"\ndevice_classes = true\n";
    assert_eq!(
        told(rule),
        [
            "HTTP_X_LITEMAGE=on",
            "HTTP_X_LSCACHE=on,crawler",
            "HTTP_X_LSCACHE_VARY_VALUE=ismobile",
            "LSCACHE_VARY_VALUE=ismobile",
            "X-LITEMAGE=on",
            "X-LSCACHE=on,crawler",
        ]
    );
    assert_eq!(told(&format!("{rule}[dialects]\nlitespeed = false\n")), [""; 0]);
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
fn an_upload_reaches_the_script_when_it_is_complete() {
    const HALF: usize = 4 << 20;
    let site = Site::new(&[(
        "upload.php",
        "<?php note('begun'); $in = fopen('php://input', 'rb'); $hash = hash_init('md5'); $length = 0;
        while (($piece = fread($in, 65536)) !== false && $piece !== '') {
            hash_update($hash, $piece);
            $length += strlen($piece);
        }
        echo $length, ' ', hash_final($hash);",
    )]);
    // By default PHP reads all content before it starts the script.
    let pagewell = site.serve_with_ini("", "enable_post_data_reading = \"0\"");
    let content: Vec<u8> = (0..HALF * 2).map(|at| (at % 251) as u8).collect();
    let head =
        format!("POST /upload.php HTTP/1.1\r\nHost: a\r\nContent-Length: {}\r\n\r\n", HALF * 2);
    let mut raw = Raw::with(&pagewell, head);
    raw.send(&content[..HALF]);
    until("half of it is there", || counter(&pagewell, "uploads_bytes") > (HALF as u64) / 2);
    assert!(!site.has_note("begun"));
    assert_eq!(counter(&pagewell, "origin_places_taken"), 0);
    raw.send(&content[HALF..]);
    // The md5 of 8 MiB of the repeated bytes 0 to 250.
    assert_eq!(raw.answer().content, format!("{} {}", HALF * 2, md5_by_php(&site, &content)));
}

/// The hash that PHP's command line computes from a file, independently of the transfer.
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
fn chunked_content_gets_a_content_length() {
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
    for _ in 0..33 {
        raw.send(&chunk);
    }
    raw.send("0\r\n\r\n");
    let content = raw.answer().content;
    assert_eq!(content, format!("{} {}", 33 << 16, "x".repeat(33 << 16)), "however long it is");
    until("the place is free", || counter(&pagewell, "origin_places_taken") == 0);
}

#[test]
fn params_of_any_size_within_the_limits_arrive() {
    let site = Site::new(&[(
        "many.php",
        "<?php $all = array_filter($_SERVER, fn ($name) => preg_match('/^HTTP_X_(LONG|N[0-9]+)$/', $name),
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

/// A page that depends on news, and a GET that changes them; each with the real library.
const NEWS: [(&str, &str); 3] = [
    (
        "page.php",
        "<?php require __DIR__ . '/../php/client/autoload.php'; \\Pagewell\\uses('news'); echo 'page';",
    ),
    (
        "change.php",
        "<?php require __DIR__ . '/../php/client/autoload.php'; \\Pagewell\\changed('news'); echo 'changed';",
    ),
    (
        "show.php",
        "<?php echo getenv('PAGEWELL_ADMIN') ?: 'unset', ' ', getenv('PAGEWELL_TOKEN_FILE') ?: 'unset';",
    ),
];

/// A site with these scripts and a copy of the library, which every user can read.
fn site_with_library() -> Site {
    let site = Site::new(&NEWS);
    std::fs::create_dir(site.at("php")).expect("a directory");
    for part in ["client", "core"] {
        let from = format!("{}/../../../php/{part}", env!("CARGO_MANIFEST_DIR"));
        let mut cp = std::process::Command::new("cp");
        let copied = cp.arg("-r").arg(from).arg(site.at("php"));
        assert!(copied.status().expect("cp runs").success());
    }
    let mut chmod = std::process::Command::new("chmod");
    let opened = chmod.args(["-R", "a+rX"]).arg(site.at("php"));
    assert!(opened.status().expect("chmod runs").success());
    site
}

#[test]
fn scripts_call_the_control_interface_of_their_own_pagewell() {
    let site = site_with_library();
    let token = site.at("token");
    std::fs::write(&token, "a-token-of-sixteen").expect("written");
    let mode = |mode| {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(&token, mode).expect("it is ours");
    };
    mode(0o644);
    let with_token = format!("admin_token_file = {token:?}\n");
    for config in ["", with_token.as_str()] {
        let pagewell = site.serve(config);
        let mut client = client(&pagewell);
        let named = if config.is_empty() { "unset".into() } else { token.display().to_string() };
        let shown = client.get("/show.php").expect("an answer").text();
        assert_eq!(shown, format!("{} {named}", pagewell.admin()));
        client.get("/page.php").expect("an answer");
        until("it is stored", || is_hit(&client.get("/page.php").expect("an answer")));
        assert_eq!(client.get("/change.php").expect("an answer").text(), "changed");
        let next = client.get("/page.php").expect("an answer");
        assert!(!is_hit(&next), "{config}: {}", pagewell.log());
    }
    // The operator's own address, which does not get the token of this Pagewell.
    let file = site.config(&with_token, "").display().to_string();
    let own = ["--config", &file, "--php-env", "PAGEWELL_ADMIN=127.0.0.1:1"];
    let pagewell = site.serve_with_args(&own);
    let shown = client(&pagewell).get("/show.php").expect("an answer").text();
    assert_eq!(shown, "127.0.0.1:1 unset");
    drop(pagewell);
    // Root starts Pagewell, and php-fpm's children are another user.
    if rustix::process::geteuid().is_root() {
        mode(0o600);
        let pagewell = site.serve(&with_token);
        let shown = client(&pagewell).get("/show.php").expect("an answer").text();
        assert_eq!(shown, format!("{} unset", pagewell.admin()));
        assert!(pagewell.log().contains("token-file-not-passed"), "{}", pagewell.log());
    }
}
