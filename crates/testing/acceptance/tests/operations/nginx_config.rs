//! The output of `pagewell nginx-config` in a real nginx: nginx accepts each kind of output. A site behind it
//! is served from the memcached port, except for clients with a session. Hidden files are not served, scripts
//! are run, other hosts are refused.

use acceptance::{Site, binary};
use harness::{Address, Client, NginxConf, OnPort, Pagewell, PhpFpm, PoolOptions, PrivateDir};
use harness::{Request, nginx};
use std::path::{Path, PathBuf};
use std::process::Command;

const HOST: &str = "site.test";

const INDEX: &str = r#"<?php
    $m = new Memcached;
    $m->setOption(Memcached::OPT_COMPRESSION, false);
    $m->addServer(getenv('STORE'), 0);
    $lease = $m->get('pagewell:lease');
    $uri = $_SERVER['REQUEST_URI'];
    $page = 'rendered ' . $_SERVER['REQUEST_METHOD'] . ' ' . $uri;
    if ($_SERVER['REQUEST_METHOD'] === 'GET' && !isset($_COOKIE['PHPSESSID'])) {
        $m->set(str_replace('%', '%25', $uri), 'Pagewell-Page: tags=news lease=' . $lease . "\n" . $page);
    }
    echo $page;
"#;

/// Pagewell with a memcached port, php-fpm, and nginx with the printed configuration.
struct Stack {
    pagewell: Pagewell,
    fpm: PhpFpm,
    nginx: OnPort,
}

impl Stack {
    fn start(site: &Site, more: &[&str]) -> Stack {
        site.file("index.php", INDEX);
        let socket = site.at("memcached.sock");
        let config = format!("[memcached]\nlisten = \"unix:{}\"\n", socket.display());
        let pagewell = site.serve(&config);
        let store = ("STORE".to_owned(), socket.display().to_string());
        let options = PoolOptions { env: vec![store], ..PoolOptions::default() };
        let dir = |name| PrivateDir::temporary(name).expect("a directory");
        let fpm = PhpFpm::start(dir("fpm"), &options).expect("php-fpm");
        let php = Address::Unix(fpm.socket().to_owned()).to_string();
        let memcached = format!("unix:{}", socket.display());
        let mut args = vec!["--server-name", HOST, "--memcached", &memcached, "--php", &php];
        args.extend(more);
        let text = printed(&args, &site.root());
        // The harness has its own outer configuration, which sets nginx's address.
        let (http, server) = text.split_once("server {\n    listen 80;\n").expect("a server");
        let server = server.trim_end().strip_suffix('}').expect("its end");
        let conf = NginxConf { http: http.to_owned(), server: server.to_owned(), workers: 1 };
        let nginx = nginx::start(dir("nginx"), &conf).expect("nginx");
        Stack { pagewell, fpm, nginx }
    }

    fn send(&self, request: &Request) -> (u16, String) {
        let mut http = Client::new(Address::Tcp(self.nginx.address())).host(HOST);
        let response = http.send(request).expect("it answers");
        (response.status, response.text())
    }

    fn get(&self, path: &str) -> (u16, String) {
        self.send(&Request::new("GET", path))
    }

    fn text(&self, path: &str) -> String {
        self.get(path).1
    }
}

/// The printed configuration.
fn printed(args: &[&str], root: &Path) -> String {
    let mut command = Command::new(binary());
    let out = command.arg("nginx-config").args(args).arg("--root").arg(root).output();
    let out = out.expect("it runs");
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).expect("text")
}

#[test]
fn nginx_answers_from_the_port() {
    let site = Site::new(&[]);
    site.file("style.css", "a file");
    let stack = Stack::start(&site, &[]);
    for path in ["/news/4/", "/news/4/?page=2", "/s/a%20b/", "/index.php"] {
        for _ in 0..3 {
            assert_eq!(stack.text(path), format!("rendered GET {path}"));
        }
    }
    assert_eq!(stack.text("/style.css"), "a file");
    assert_eq!(stack.fpm.requests(), 4, "{}", stack.nginx.log());
    let post = Request::new("POST", "/news/4/").content(b"a=b");
    assert_eq!(stack.send(&post).1, "rendered POST /news/4/");
    let signed_in = Request::new("GET", "/news/4/").header("Cookie", "PHPSESSID=1");
    assert_eq!(stack.send(&signed_in).1, "rendered GET /news/4/");
    assert_eq!(stack.fpm.requests(), 6);
    stack.pagewell.invalidate(r#"{"tags":["news"]}"#).expect("it answers");
    stack.text("/news/4/");
    stack.text("/news/4/");
    assert_eq!(stack.fpm.requests(), 7);
    // A page whose URL contains a `%` is purged by that URL.
    stack.text("/s/a%20b/");
    stack.pagewell.invalidate(r#"{"urls":["/s/a%20b/"]}"#).expect("it answers");
    stack.text("/s/a%20b/");
    assert_eq!(stack.fpm.requests(), 9);
}

#[test]
fn clients_with_any_session_cookie_get_no_stored_page() {
    let site = Site::new(&[]);
    let names = ["--session-cookie", "SESS*", "--session-cookie", "wordpress_logged_in_*"];
    let stack = Stack::start(&site, &names);
    stack.text("/a");
    let with = |cookies: &str| {
        let before = stack.fpm.requests();
        stack.send(&Request::new("GET", "/a").header("Cookie", cookies));
        stack.fpm.requests() - before
    };
    for cookies in ["SESS12ab=x", "a=b; SESS12ab=x", "a=b;SESS=", "c=1; wordpress_logged_in_f=u"] {
        assert_eq!(with(cookies), 1, "{cookies}");
    }
    for cookies in ["a=SESS1", "MYSESS1=x", "sess1=x", "a=b", "a=b; c=SESS12=x"] {
        assert_eq!(with(cookies), 0, "{cookies}");
    }
}

#[test]
fn existing_scripts_run_and_hidden_files_are_not_served() {
    let site = Site::new(&[]);
    let script = "<?php echo $_SERVER['SCRIPT_NAME'], ' ', $_SERVER['PATH_INFO'] ?? '';";
    for name in ["cron.php", "sub/index.php", "sub/a b.php", "s p/index.php"] {
        site.file(name, script);
    }
    for name in [
        ".env",
        ".git/config",
        "sub/.htpasswd",
        "dump.SQL",
        "wp-config.php",
        "a.yml",
        "v.phtml",
        "h.pl",
    ] {
        site.file(name, "secret");
    }
    site.file(".well-known/acme/x", "shown");
    site.file("not.sqlx", "shown");
    let stack = Stack::start(&site, &[]);
    for (path, right) in [
        ("/cron.php", "/cron.php "),
        ("/cron.php?a=b", "/cron.php "),
        ("/cron.php/x/y", "/cron.php /x/y"),
        ("/sub/", "/sub/index.php "),
        ("/sub/index.php", "/sub/index.php "),
        ("/sub/a%20b.php", "/sub/a b.php "),
        ("/sub/a%20b.php/c%20d", "/sub/a b.php /c d"),
        ("/none.php", "rendered GET /none.php"),
        ("/", "rendered GET /"),
        ("/.well-known/acme/x", "shown"),
        ("/not.sqlx", "shown"),
    ] {
        assert_eq!(stack.get(path), (200, right.to_owned()), "{path}");
    }
    for path in [
        "/.env",
        "/.git/config",
        "/sub/.htpasswd",
        "/dump.SQL",
        "/wp-config.php",
        "/a.yml",
        "/v.phtml",
        "/h.pl",
    ] {
        assert_eq!(stack.get(path).0, 404, "{path}");
    }
    for (path, right) in [("/sub", "/sub/"), ("/s%20p?a=b", "/s%20p/?a=b")] {
        let mut http = Client::new(Address::Tcp(stack.nginx.address())).host(HOST);
        let response = http.get(path).expect("it answers");
        assert_eq!(response.status, 301, "{path}");
        let to = response.header("location").unwrap_or_default();
        assert!(to.ends_with(right), "{path}: {to}");
    }
}

#[test]
fn hidden_names_without_a_file_go_to_the_application() {
    let site = Site::new(&[]);
    site.file("cron.php", "<?php echo $_SERVER['SCRIPT_NAME'], ' ', $_SERVER['PATH_INFO'];");
    for name in [".env", ".git/config", "dump.SQL", "wp-config.php", "old.bak/x"] {
        site.file(name, "secret");
    }
    let stack = Stack::start(&site, &[]);
    for (path, right) in [
        ("/wiki/.NET_Framework", "rendered GET /wiki/.NET_Framework"),
        ("/wiki/Wave~", "rendered GET /wiki/Wave~"),
        ("/sub/dump.sql", "rendered GET /sub/dump.sql"),
        ("/wiki/Back%5Cslash", "rendered GET /wiki/Back%5Cslash"),
        ("/a/.well-known/x", "rendered GET /a/.well-known/x"),
        ("/.wellknown", "rendered GET /.wellknown"),
        ("/.Well-Known/x", "rendered GET /.Well-Known/x"),
        ("/cron.php/.x", "/cron.php /.x"),
        ("/h.pm", "rendered GET /h.pm"),
    ] {
        assert_eq!(stack.get(path), (200, right.to_owned()), "{path}");
    }
    for path in [
        "/%2eenv",
        "/.git",
        "/.git/none",
        "/.git/none.php",
        "/wp-config.php/x",
        "/dump.SQL/x",
        "/old.bak/.x",
        "/old.bak/x.sql/y",
    ] {
        assert_eq!(stack.get(path).0, 404, "{path}");
    }
}

#[test]
fn another_host_is_refused_and_stores_nothing() {
    let site = Site::new(&[]);
    let stack = Stack::start(&site, &[]);
    for host in ["evil.example", "site.test.evil.example", "sitestest", "site.test:81"] {
        assert_eq!(stack.send(&Request::new("GET", "/").header("Host", host)).0, 421, "{host}");
    }
    assert_eq!(stack.fpm.requests(), 0);
    for host in ["site.test", "Site.Test", "site.test:80"] {
        assert_eq!(stack.send(&Request::new("GET", "/").header("Host", host)).0, 200, "{host}");
    }
}

#[test]
fn nginx_accepts_each_kind_of_output() {
    let dir = PrivateDir::temporary("nginx -t").expect("a directory");
    let root = dir.path().join("my \"site");
    let socket = format!("unix:{}/l.sock", dir.path().display());
    for args in [
        &["--listen", ":8080"][..],
        &["--listen", "127.0.0.1:80", "--php", "/run/php.sock"],
        &["--listen", "[::1]:8080", "--php", "[::1]:9000"],
        &["--listen", &socket, "--memcached", "unix:/run/my mem.sock"],
        &["--php", "unix:/run/my php.sock", "--memcached", "localhost:11211"],
        &["--session-cookie", "*", "--session-cookie", "!#$%&'*+-.^_`|~"],
    ] {
        let mut all = vec!["--server-name", "a-b.example.org:8080"];
        all.extend(args);
        let said = tried(&dir, &printed(&all, &root));
        assert!(said.is_ok(), "{args:?}: {said:?}");
    }
}

#[test]
fn a_root_may_be_relative_and_unsupported_settings_are_refused() {
    let text = printed(&["--server-name", "a"], Path::new("site"));
    let here: PathBuf = std::env::current_dir().expect("a directory");
    assert!(text.contains(&format!("root {};", here.join("site").display())), "{text}");
    for args in [&["--php", "foo:bar"], &["--listen", "80 ssl"], &["--session-cookie", "a=b"]] {
        let mut command = Command::new(binary());
        let out = command.args(["nginx-config", "--server-name", "a"]).args(args).output();
        let out = out.expect("it runs");
        assert_eq!(out.status.code(), Some(2), "{args:?}");
        let said = String::from_utf8_lossy(&out.stderr);
        assert!(said.contains("write ") && out.stdout.is_empty(), "{said}");
    }
}

/// The result of `nginx -t`.
fn tried(dir: &PrivateDir, text: &str) -> Result<(), String> {
    let temp = dir.path().display().to_string();
    let paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    let paths = paths.map(|kind| format!("{kind}_temp_path \"{temp}/{kind}\";\n")).concat();
    let conf =
        format!("pid \"{temp}/pid\";\nevents {{}}\nhttp {{\naccess_log off;\n{paths}{text}\n}}\n");
    let file = dir.path().join("nginx.conf");
    std::fs::write(&file, conf).expect("it can be written");
    let mut command = Command::new("nginx");
    let out =
        command.args(["-t", "-e", "stderr", "-p"]).arg(dir.path()).arg("-c").arg(file).output();
    let out = out.expect("nginx runs");
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    out.status.success().then_some(()).ok_or(said)
}
