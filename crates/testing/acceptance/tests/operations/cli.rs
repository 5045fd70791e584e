//! The command line and the control API as operators use them: help, checking a configuration, invalidation,
//! counters, Unix sockets, the token, and refused clients.

use acceptance::{Site, client, is_hit};
use harness::{Address, Client, Pagewell, Request, Response, free_port};
use std::fs;
use std::io::Write;
use std::process::{Command, Output, Stdio};

/// The result of a command of Pagewell.
pub fn run(args: &[&str]) -> Output {
    Command::new(acceptance::binary()).args(args).output().expect("it runs")
}

/// The output of a command that succeeds.
pub fn said(args: &[&str]) -> String {
    let output = run(args);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {errors}");
    String::from_utf8(output.stdout).expect("text")
}

/// The error output of a command that must fail with this status.
fn complaint(args: &[&str], code: i32) -> String {
    let output = run(args);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{args:?}: {errors}");
    assert!(!errors.contains("panicked"), "{args:?}: {errors}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "", "{args:?}");
    errors
}

fn kept_site() -> Site {
    Site::new(&[(
        "index.php",
        "<?php keep(); header('Cache-Groups: \"a\", \"all\"'); echo $_SERVER['REQUEST_URI'];",
    )])
}

/// Requests a page twice, so that it is cached.
fn keep(pagewell: &Pagewell, path: &str) {
    client(pagewell).get(path).expect("an answer");
    assert!(is_hit(&client(pagewell).get(path).expect("an answer")), "{path}");
}

fn is_kept(pagewell: &Pagewell, path: &str) -> bool {
    is_hit(&client(pagewell).get(path).expect("an answer"))
}

#[test]
fn another_server_is_not_mistaken_for_pagewell() {
    let site = kept_site();
    let pagewell = site.serve("");
    let Address::Tcp(visitors) = *pagewell.address() else { panic!("not TCP") };
    let visitors = visitors.to_string();
    for command in [&["ready"][..], &["stats"], &["reload"], &["invalidate", "--all"], &["misses"]]
    {
        let told = complaint(&[command, &["--admin", &visitors]].concat(), 1);
        assert!(told.contains("not as Pagewell's control interface"), "{command:?}: {told}");
    }
}

#[test]
fn a_closed_output_pipe_is_no_failure() {
    let site = kept_site();
    let pagewell = site.serve("");
    let admin = pagewell.admin().to_string();
    let mut stats = Command::new(acceptance::binary())
        .args(["stats", "--admin", &admin])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    // Closed before anything can be written.
    drop(stats.stdout.take());
    let ended = stats.wait_with_output().expect("it ends");
    let errors = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success() && errors.is_empty(), "{errors}");
}

#[test]
fn help_names_every_command_and_flag() {
    let all = said(&["--help"]);
    for command in ["serve", "check", "config", "reload", "purge", "stats"] {
        assert!(all.contains(&format!("\n  {command} ")), "{command} is not in\n{all}");
    }
    for (command, flags) in [
        (
            "serve",
            &[
                "--access-log",
                "[DIR]",
                "--listen",
                "--admin",
                "--admin-token-file",
                "--memory",
                "--config",
                "--php",
                "--php-env",
                "--origin",
                "--log",
                "--trial",
                "--take-over",
            ][..],
        ),
        ("check", &["[FILE]", "--config", "--user", "--offline", "--running"]),
        (
            "purge",
            &["--tag", "--url", "--prefix", "--site", "--all", "--soft", "--admin", "--token-file"],
        ),
        ("stats", &["--admin", "--token-file", "--json", "--watch", "--site"]),
    ] {
        let help = said(&[command, "--help"]);
        for flag in flags {
            assert!(help.contains(flag), "{command}: {flag} is not in\n{help}");
        }
        let admin = if command == "check" { "" } else { "127.0.0.1:8081" };
        assert!(help.contains(admin), "{command}: the default is not in\n{help}");
        // A flag that is missing in this test's list.
        let words = help.split_whitespace().filter(|word| word.starts_with("--"));
        for word in words.map(|word| word.trim_end_matches([',', ':', ';', '.', ')'])) {
            assert!(flags.contains(&word) || word == "--help", "{command}: {word} is new");
        }
    }
    assert!(said(&["--version"]).contains(env!("CARGO_PKG_VERSION")));
}

#[test]
fn a_wrong_command_line_is_refused_with_a_hint() {
    assert!(complaint(&["serve", "--lisen", "x"], 2).contains("--listen"));
    assert!(complaint(&["invalidate"], 2).contains("--tag"));
    // An unset variable of a script.
    assert!(complaint(&["invalidate", "--tag", ""], 2).contains("--tag"));
    assert!(complaint(&["chekc"], 2).contains("check"));
    let both = ["serve", "--php", "127.0.0.1:9000", "--origin", "http://127.0.0.1:8000"];
    assert!(complaint(&both, 2).contains("cannot be used with"));
    let site = kept_site();
    let root = site.root().display().to_string();
    assert!(complaint(&["serve", &root, "--listen", "nowhere"], 1).contains("nowhere"));
    assert!(complaint(&["serve", &root, "--log", "loud"], 2).contains("error, warn, info"));
    assert!(complaint(&["serve", &root, "--memory", "much"], 1).contains("256M"));
    assert!(complaint(&["serve", &root, "--php-env", "X"], 2).contains("write NAME=VALUE"));
    assert!(complaint(&["explain", "/", "--cookie", "foo"], 2).contains("write NAME=VALUE"));
    assert!(complaint(&["explain", "/", "--header", "foo"], 2).contains("write NAME: VALUE"));
    for other in [["--url", "/"], ["--tag", "a"], ["--prefix", "/"]] {
        let said = complaint(&["invalidate", "--all", other[0], other[1]], 2);
        assert!(said.contains("cannot be used with"), "{said}");
    }
    let socket = complaint(&["serve", &root, "--php", "/run/php.sock"], 1);
    assert!(socket.contains("write unix:/run/php.sock"), "{socket}");
    assert!(complaint(&["serve", "--origin", "ftp://x"], 1).contains("http://127.0.0.1"));
    let both = complaint(&["serve", &root, "--origin", "http://127.0.0.1:8000"], 1);
    assert!(both.contains("DIR and --origin are both given"), "{both}");
    let open = complaint(&["serve", &root, "--admin", "0.0.0.0:0"], 1);
    assert!(open.contains("admin_token_file"), "{open}");
}

#[test]
fn check_reports_the_errors_of_a_configuration() {
    let site = kept_site();
    let file = site.at("checked.toml");
    let root = site.root().display().to_string();
    let check = |text: &str| {
        fs::write(&file, text).expect("can be written");
        run(&["check", "--config", &file.display().to_string()])
    };
    let good = check(&format!(
        "listen = [\"127.0.0.1:8080\", \"unix:/run/x.sock\"]\nmemory = \"256M\"\n\
         [site]\nroot = {root:?}\nhidden = [\"*.x\"]\n[php]\nchildren = 4\n\
         [php.env]\nA = \"b\"\n[cache]\ndefault_lifetime = \"1s\"\n[limits]\nheaders = 50\n"
    ));
    assert!(good.status.success(), "{}", String::from_utf8_lossy(&good.stderr));
    assert!(String::from_utf8_lossy(&good.stdout).contains("no errors"));
    let site_line = format!("[site]\nroot = {root:?}\n");
    let rule = "[[rule]]\npath = \"/x\"\nmethod = \"PSOT\"\ndeny = 405\n";
    let odd = check(&format!("{rule}{site_line}[php]\nchildren = 4\n"));
    assert!(odd.status.success() && String::from_utf8_lossy(&odd.stdout).contains("\"PSOT\""));
    for (text, words) in [
        ("memry = \"1G\"\n", &["memry", "did you mean `memory`?", "checked.toml"][..]),
        ("[site]\nfront_contoller = \"x\"\n", &["did you mean `front_controller`?"]),
        ("[limits]\nheader_byte = 5\n", &["header_byte", "did you mean `header_bytes`?"]),
        ("[lmits]\n", &["lmits", "did you mean `limits`?"]),
        ("memory = 5\n", &["memory: write a size in quotes, such as \"5M\""]),
        ("[site]\nlisten = \":80\"\n", &["line 2", "belongs at the top of the file, before"]),
        ("[limits]\nheaders = 9\nbody = 1\n", &["line 3, column", "did you mean `body_bytes`?"]),
        (
            &format!("[[rule]]\npath = \"/x\"\nagent = \"robot\"\n{site_line}"),
            &["at line 3, column 9", "rule 1: agent: \"robot\""],
        ),
        (
            &format!("{site_line}front_controller = \"app.php\"\n"),
            &["site.front_controller: there is no app.php in /"],
        ),
        ("memory = \n", &["checked.toml", "line 1"]),
        (&format!("{site_line}[limits]\nidle_timeout = \"soon\"\n"), &["idle_timeout", "soon"]),
        (&format!("{site_line}[php]\nchildren = 0\n"), &["php.children"]),
        (
            &format!("admin_token_file = \"/no/such\"\n{site_line}"),
            &["admin_token_file", "/no/such"],
        ),
        ("[site]\nroot = \"/no/such\"\n", &["site.root", "/no/such"]),
        (
            "memory = \"64M\"\n",
            &[
                "site.root: is not set, and the working directory is no site (no index.php",
                "root = \"/var/www/site\"",
            ],
        ),
    ] {
        let output = check(text);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{text:?}: {errors}");
        for word in words {
            assert!(errors.contains(word), "{text:?}: {word:?} is not in {errors:?}");
        }
    }
    let elsewhere = check(&format!(
        "user = \"nobodyatall\"\nmemory = \"900T\"\n{site_line}\
         front_controller = \"/index.php\"\n[php]\nbinary = \"/no/such\"\n"
    ));
    let text = String::from_utf8_lossy(&elsewhere.stdout);
    assert!(elsewhere.status.success() && text.contains("no errors"), "{elsewhere:?}");
    for warning in ["no such user", "php.binary: there is no file /no/such", "memory: 943718400M"] {
        let is_told = |line: &str| line.contains("on this machine: ") && line.contains(warning);
        assert!(text.lines().any(is_told), "{warning}: {text}");
    }
    assert!(complaint(&["check", "--config", "/no/such.toml"], 1).contains("/no/such.toml"));
}

#[test]
fn check_names_the_shares_of_a_trial_that_is_off() {
    let site = kept_site();
    let (file, root) = (site.at("shares.toml"), site.root().display().to_string());
    let text = format!("trial.serve = \"5%\"\n[site]\nroot = {root:?}\n[php]\nchildren = 4\n");
    fs::write(&file, text).expect("can be written");
    let checked = run(&["check", "--config", &file.display().to_string()]);
    let said = String::from_utf8_lossy(&checked.stdout);
    assert!(checked.status.success() && said.contains("trial.serve has no effect"), "{said}");
}

#[test]
fn invalidate_and_stats_reach_a_running_one() {
    let site = kept_site();
    let pagewell = site.serve("");
    let admin = pagewell.admin().to_string();
    let invalidate = |args: &[&str]| said(&[&["invalidate", "--admin", &admin], args].concat());
    for (args, told, one, two) in [
        (&["--url", "/one"][..], "purged 1 page ", false, true),
        (&["--url", "http://any.test/one", "--url", "/two"], "purged 2 pages ", false, false),
        (&["--tag", "a"], "purged 2 pages ", false, false),
        (&["--tag", "b", "--url", "/two"], "purged 1 page ", true, false),
        (&["--tag", "unheard-of"], "purged 0 pages ", true, true),
        (&["--prefix", "/one"], "purged 1 page ", false, true),
        (&["--prefix", "/on", "--prefix", "https://any.test/t/"], "purged 0 pages ", true, true),
        // They are marked as stale, and do not allow stale use.
        (&["--soft", "--url", "/two"], "marked 1 page ", true, false),
        (&["--all"], "purged 2 pages ", false, false),
    ] {
        keep(&pagewell, "/one");
        keep(&pagewell, "/two");
        let line = invalidate(args);
        assert!(line.starts_with(told), "{args:?}: {line}");
        assert_eq!(
            (is_kept(&pagewell, "/one"), is_kept(&pagewell, "/two")),
            (one, two),
            "{args:?}"
        );
    }
    let stats: serde_json::Value =
        serde_json::from_str(&said(&["stats", "--json", "--admin", &admin])).expect("JSON");
    assert_eq!(stats["invalidations"], 9);
    assert_eq!(stats["pages"], 2);
    assert!(stats["hits"].as_u64() > Some(10), "{stats}");
    let memory = stats["memory_bytes"].as_u64();
    assert!(memory > Some(0) && memory <= stats["memory_budget_bytes"].as_u64(), "{stats}");
    assert!(complaint(&["invalidate", "--admin", &admin, "--url", "x y"], 1).contains("x y"));
}

#[test]
fn tags_come_from_standard_input_too() {
    let site = kept_site();
    let pagewell = site.serve("");
    let admin = pagewell.admin().to_string();
    let with_input = |input: &str| {
        let args = ["invalidate", "--admin", &admin, "--tag", "-"];
        let mut command = Command::new(acceptance::binary());
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it runs");
        let mut pipe = child.stdin.take().expect("a pipe");
        pipe.write_all(input.as_bytes()).expect("it reads");
        drop(pipe);
        child.wait_with_output().expect("it ends")
    };
    keep(&pagewell, "/one");
    let many: String = (0..9_999).map(|n| format!("tag:{n}\n")).collect();
    let output = with_input(&many);
    assert!(output.stdout.starts_with(b"purged 0 pages "), "{output:?}");
    assert!(is_kept(&pagewell, "/one"));
    let output = with_input(&format!("{many}\r\na\n"));
    assert!(output.stdout.starts_with(b"purged 1 page "), "{output:?}");
    let output = with_input("\n\n");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.contains("one to a line"), "{said}");
}

#[test]
fn a_wrong_address_is_reported() {
    let port = free_port().expect("a port");
    let nobody = format!("127.0.0.1:{port}");
    for args in [&["stats", "--admin", &nobody][..], &["invalidate", "--all", "--admin", &nobody]] {
        let error = complaint(args, 1);
        assert!(error.contains(&nobody) && error.contains("--admin"), "{error}");
    }
    let error = complaint(&["stats", "--admin", "unix:/no/such.sock"], 1);
    assert!(error.contains("/no/such.sock"), "{error}");
    // The public address is not the control API.
    let site = kept_site();
    let pagewell = site.serve("");
    let error = complaint(&["invalidate", "--all", "--admin", &pagewell.address().to_string()], 1);
    assert!(!error.is_empty());
}

#[test]
fn everything_works_over_unix_sockets() {
    let site = kept_site();
    let socket = |name: &str| format!("unix:{}", site.at(name).display());
    let (visitors, second, admin) = (socket("v.sock"), socket("w.sock"), socket("a.sock"));
    let config = site.config("", "").display().to_string();
    let args = ["--listen", &visitors, "--listen", &second, "--admin", &admin, "--config", &config];
    // A socket left behind by a crash does not prevent the start.
    drop(std::os::unix::net::UnixListener::bind(site.at("v.sock")).expect("a socket"));
    assert!(Address::Unix(site.at("v.sock")).closes());
    let mut pagewell = site.serve_with_args(&args);
    assert_eq!(pagewell.admin().to_string(), admin);
    let get = |at: &str, path: &str| {
        let address: Address = at.parse().expect("an address");
        Client::new(address).host("a.test").get(path).expect("an answer")
    };
    assert_eq!(get(&visitors, "/x").text(), "/x");
    assert!(is_hit(&get(&second, "/x")), "one site behind all addresses");
    assert_eq!(said(&["invalidate", "--all", "--admin", &admin])[..13], *"purged 1 page");
    assert!(!is_hit(&get(&visitors, "/x")));
    let stats = said(&["stats", "--admin", &admin]);
    let requests = "               3  requests                  Requests answered.";
    assert!(stats.lines().any(|line| line == requests), "{stats}");
    // A socket on which a process listens does.
    let taken = [
        "serve",
        &site.root().display().to_string(),
        "--listen",
        &visitors,
        "--admin",
        "127.0.0.1:0",
    ]
    .map(str::to_owned);
    let taken: Vec<&str> = taken.iter().map(String::as_str).collect();
    assert!(complaint(&taken, 1).contains("another program is listening"));
    assert!(!is_hit(&get(&visitors, "/y")), "and is left alone");
    let another = ["serve", taken[1], "--listen", &visitors, "--admin", &admin];
    let said = complaint(&another, 1);
    assert!(said.contains("another program is listening") && said.contains("a Pagewell"), "{said}");
    assert!(said.contains("pagewell reload") && said.contains("--take-over"), "{said}");
    pagewell.stop();
    for name in ["v.sock", "w.sock", "a.sock"] {
        assert!(!site.at(name).exists(), "{name} is left");
    }
}

#[test]
fn the_control_address_can_be_set_in_the_environment() {
    let site = kept_site();
    let token = site.at("token");
    fs::write(&token, "0123456789abcdef\n").expect("can be written");
    let pagewell = site.serve(&format!("admin_token_file = {:?}\n", token.display().to_string()));
    let run = |args: &[&str]| {
        let mut command = Command::new(acceptance::binary());
        command.env("PAGEWELL_ADMIN", pagewell.admin().to_string());
        command.env("PAGEWELL_TOKEN_FILE", &token).args(args).output().expect("it runs")
    };
    let ready = run(&["ready"]);
    assert_eq!(String::from_utf8_lossy(&ready.stdout), "ready\n", "{ready:?}");
    // The command line takes precedence.
    let said = run(&["ready", "--admin", "unix:/no/such.sock"]);
    assert!(String::from_utf8_lossy(&said.stderr).contains("/no/such.sock"), "{said:?}");
    let help = run(&["ready", "--help"]);
    let help = String::from_utf8_lossy(&help.stdout).into_owned();
    assert!(help.contains("PAGEWELL_ADMIN") && help.contains("PAGEWELL_TOKEN_FILE"), "{help}");
    assert!(!help.contains("token\n") && !help.contains(&pagewell.admin().to_string()), "{help}");
}

#[test]
fn the_token_is_required() {
    let site = kept_site();
    let token = site.at("token");
    fs::write(&token, "0123456789abcdef\n").expect("can be written");
    let wrong = site.at("wrong");
    fs::write(&wrong, "0123456789abcdeX\n").expect("can be written");
    let (token, wrong) = (token.display().to_string(), wrong.display().to_string());
    let pagewell = site.serve(&format!("admin_token_file = {token:?}\n"));
    let admin = pagewell.admin().to_string();
    keep(&pagewell, "/one");
    for args in [&["--all"][..], &["--all", "--token-file", &wrong]] {
        let error = complaint(&[&["invalidate", "--admin", &admin], args].concat(), 1);
        assert!(error.contains("401") && error.contains("admin_token_file"), "{error}");
    }
    assert!(complaint(&["stats", "--admin", &admin], 1).contains("401"));
    assert!(is_kept(&pagewell, "/one"), "nothing was dropped");
    let done = said(&["invalidate", "--all", "--admin", &admin, "--token-file", &token]);
    assert!(done.starts_with("purged 1 page "), "{done}");
    let missing = complaint(&["stats", "--admin", &admin, "--token-file", "/no/such"], 1);
    assert!(missing.contains("/no/such"), "{missing}");

    fs::write(site.at("token"), "short\n").expect("can be written");
    let config = site.config(&format!("admin_token_file = {token:?}\n"), "").display().to_string();
    let root = site.root().display().to_string();
    let error = complaint(&["serve", &root, "--config", &config], 1);
    assert!(error.contains("16 characters"), "{error}");
}

/// A request to the control API.
fn call(pagewell: &Pagewell, request: Request) -> Response {
    Client::new(pagewell.admin().clone()).send(&request).expect("an answer")
}

#[test]
fn cross_site_requests_of_browsers_are_refused() {
    let site = kept_site();
    let pagewell = site.serve("");
    keep(&pagewell, "/one");
    let all = br#"{"all":true}"#;
    let post = || Request::new("POST", "/v1/invalidate").content(all);
    for media_type in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"] {
        let response = call(&pagewell, post().header("Content-Type", media_type));
        assert_eq!(response.status, 415, "{media_type}: {}", response.text());
    }
    assert_eq!(call(&pagewell, post()).status, 415, "no type at all");
    let json = || post().header("Content-Type", "application/json");
    for host in ["evil.test", "localhost.evil.test", "127.0.0.1.evil.test", "pagewell:8081"] {
        let response = call(&pagewell, json().header("Host", host));
        assert_eq!(response.status, 403, "{host}: {}", response.text());
        let response = call(&pagewell, Request::get("/v1/stats").header("Host", host));
        assert_eq!(response.status, 403, "{host}: {}", response.text());
    }
    assert!(is_kept(&pagewell, "/one"), "nothing was dropped");
    for host in ["localhost", "localhost:8081", "127.0.0.1:8081", "[::1]:8081"] {
        assert_eq!(call(&pagewell, json().header("Host", host)).status, 200, "{host}");
    }
    assert!(!is_kept(&pagewell, "/one"));
}

#[test]
fn invalid_calls_change_nothing() {
    let site = kept_site();
    let pagewell = site.serve("");
    keep(&pagewell, "/one");
    let json = |content: &str| {
        let request = Request::new("POST", "/v1/invalidate").content(content.as_bytes());
        call(&pagewell, request.header("Content-Type", "application/json; charset=utf-8"))
    };
    for content in [
        "",
        "{",
        "{}",
        "[]",
        "null",
        r#"{"tag":["a"]}"#,
        r#"{"tags":"a"}"#,
        r#"{"tags":[1]}"#,
        r#"{"all":false}"#,
        r#"{"tags":[]}"#,
        r#"{"urls":["//x/one"]}"#,
        r#"{"urls":["one"]}"#,
        r#"{"urls":["/one","ftp://x/"]}"#,
        r#"{"all":true,"tags":["a"],"more":1}"#,
    ] {
        let response = json(content);
        assert_eq!(response.status, 400, "{content}: {}", response.text());
        assert!(response.text().contains("\"explanation\""), "{content}: {}", response.text());
    }
    for (method, path, status) in [
        ("GET", "/v1/invalidate", 405),
        ("POST", "/v1/stats", 405),
        ("DELETE", "/v1/health", 405),
        ("GET", "/v2/stats", 404),
        ("GET", "/index.html", 404),
        ("POST", "/", 405),
    ] {
        let response = call(&pagewell, Request::new(method, path));
        assert_eq!(response.status, status, "{method} {path}");
        assert_eq!(response.header("allow").is_some(), status == 405, "{method} {path}");
    }
    let large = format!("{{\"tags\":[\"{}\"]}}", "x".repeat(17 << 20));
    assert_eq!(json(&large).status, 413);
    assert_eq!(call(&pagewell, Request::get("/v1/health")).text().trim(), "{\"healthy\":true}");
    assert!(is_kept(&pagewell, "/one"), "nothing was dropped");
    // Many tags in one call are one change.
    let many: Vec<String> = (0..10_000).map(|n| format!("\"tag:{n}\"")).collect();
    assert_eq!(json(&format!("{{\"tags\":[{}]}}", many.join(","))).status, 200);
    assert!(is_kept(&pagewell, "/one"));
    assert_eq!(json(r#"{"tags":["x","a"]}"#).status, 200);
    assert!(!is_kept(&pagewell, "/one"));
}

#[test]
fn check_shows_the_line_of_an_error() {
    let site = Site::new(&[]);
    let config = site.config("[limits]\nidle_timeout = \"soon\"\n", "").display().to_string();
    let error = complaint(&["check", "--config", &config, "--offline"], 1);
    let right =
        "at line 2, column 16\n  |\n2 | idle_timeout = \"soon\"\n  |                ^^^^^^\n";
    assert!(error.contains(right) && error.contains("limits.idle_timeout"), "{error}");
}

#[test]
fn config_prints_effective_values_and_their_sources() {
    let site = kept_site();
    let config = site.config("[limits]\nheaders = 7\n", "").display().to_string();
    let root = site.root().display().to_string();
    let args = ["config", &root, "--config", &config, "--memory", "64M", "--php-env", "SECRET=it"];
    let text = said(&args);
    let line = |key: &str| {
        let found = text.lines().find(|line| line.starts_with(&format!("{key} = ")));
        let words = found.unwrap_or_else(|| panic!("no {key} in {text}")).split_whitespace();
        words.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(line("memory"), "memory = \"64M\" # --memory");
    assert_eq!(line("limits.headers"), "limits.headers = 7 # line 2");
    assert_eq!(line("limits.uri_bytes"), "limits.uri_bytes = \"8K\" # default");
    let first = text.split("\n\n").next().unwrap_or_default();
    assert!(first.contains("limits.headers = 7") && !first.contains("# default"), "{text}");
    assert_eq!(said(&[&args[..], &["--set"]].concat()).trim_end(), first);
    let help = said(&["config", "--help"]);
    assert!(!help.contains("--take-over") && help.contains("--set"), "{help}");
    assert_eq!(line("site.root"), format!("site.root = {root:?} # DIR"));
    assert!(line("php.children").contains("# default"), "{text}");
    assert!(!text.contains("SECRET") && !text.contains("\"it\""), "{text}");
}

#[test]
fn check_warns_of_unreachable_rules_and_missing_directories() {
    let site = kept_site();
    let file = site.at("warned.toml");
    let text = "admin = \"unix:/no/such/admin.sock\"\n[access_log]\nto = \"/no/such/access.log\"\n\
                [memcached]\nlisten = \"unix:/no/such/m.sock\"\n\
                [[rule]]\npath = \"/a\"\n[[rule]]\nstore = \"1s\"\n[[rule]]\npath = \"/b\"\n";
    fs::write(&file, text).expect("can be written");
    let (path, root) = (file.display().to_string(), site.root().display().to_string());
    std::os::unix::fs::symlink("/proc/version", site.root().join("version.txt")).expect("a link");
    let out = run(&["check", "--config", &path, &root]);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let said = String::from_utf8_lossy(&out.stdout);
    for words in [
        "version.txt -> /proc/version; to allow them: site.allow_symlinks = [\"/proc\"]",
        "access_log.to: there is no directory /no/such",
        "admin: there is no directory /no/such",
        "memcached.listen: there is no directory /no/such",
        "rule 3 is never reached for caching: rule 2 has no conditions",
        "rule 3 has no effect: it sets nothing",
    ] {
        assert!(said.contains(words), "{words} is not in\n{said}");
    }
}

#[test]
fn check_warns_of_scripts_that_share_pagewells_user() {
    if !rustix::process::geteuid().is_root() {
        println!("not run: only root can start Pagewell as somebody else");
        return;
    }
    let site = Site::new(&[]);
    let check = |config: &str| {
        let file = site.at("shared.toml");
        fs::write(&file, format!("{config}[site]\nroot = {:?}\n", site.root())).expect("written");
        let file = file.display().to_string();
        said(&["check", "--offline", "--config", &file])
    };
    let warning = "PHP scripts run as the user www-data, as Pagewell does";
    assert!(check("user = \"www-data\"\n").contains(warning));
    let socket = site.at("php.sock");
    let _listening = std::os::unix::net::UnixListener::bind(&socket).expect("bound");
    let at = format!("user = \"www-data\"\nphp.at = \"unix:{}\"\n", socket.display());
    assert!(!check(&at).contains(warning), "it is root's");
    std::os::unix::fs::chown(&socket, Some(33), None).expect("given");
    assert!(check(&at).contains(warning));
}
