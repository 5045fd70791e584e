//! `pagewell init` for a plain PHP site: the file that it writes serves the site with the php-fpm that it found,
//! and `init --verify` is green. A site whose pages are not cached, or whose visitors share pages, is not.
//!
//! The machine is a tree with links to the real site and socket; so the written paths are real ones.

use acceptance::{Site, binary, client};
use harness::nginx;
use harness::{
    Address, Client, NginxConf, Pagewell, PhpFpm, PoolOptions, Port, PrivateDir, Request,
};
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};

/// The directives of nginx's block for the site that stay in it.
const SERVER: &str = "server_name site.example; client_max_body_size 8m;";

/// The tree of a machine with this php-fpm and this site, and nginx in front or no other server.
fn machine(site: &Site, php: &PhpFpm, with_nginx: bool) -> std::path::PathBuf {
    let tree = site.at("machine");
    let root = site.root();
    let link = |path: &Path| {
        let below = tree.join(path.strip_prefix("/").expect("an absolute path"));
        fs::create_dir_all(below.parent().expect("it has a parent")).expect("a directory");
        symlink(path, below).expect("a link");
    };
    let file = |path: &str, text: &str| {
        let path = tree.join(path);
        fs::create_dir_all(path.parent().expect("it has a parent")).expect("a directory");
        fs::write(path, text).expect("a file");
    };
    link(&root);
    link(php.socket());
    let pool = format!("[www]\nuser = www-data\nlisten = {}\n", php.socket().display());
    file("etc/php/8.2/fpm/pool.d/www.conf", &pool);
    let server = format!("http {{ server {{ listen 8090; {SERVER} root {}; }} }}", root.display());
    if with_nginx {
        file("etc/nginx/nginx.conf", &server);
    }
    tree
}

/// Runs `init` for a site. Returns the file that it has written, and what it said.
fn written(site: &Site, php: &PhpFpm, with_nginx: bool) -> (String, String) {
    let shown = |path: &Path| path.display().to_string();
    let tree = shown(&machine(site, php, with_nginx));
    let (root, file) = (shown(&site.root()), shown(&site.at("written.toml")));
    // The link to the site leads out of the tree, and so does the file beside it.
    let below = Path::new(&tree).join(site.at("").strip_prefix("/").expect("an absolute path"));
    let output = pagewell(&["init", &root, "--yes", "--machine", &tree, "--output", &file]);
    assert!(output.status.success(), "{}", text(&output));
    fs::rename(below.join("written.toml"), &file).expect("init has written the file");
    (file, text(&output))
}

fn pagewell(args: &[&str]) -> Output {
    Command::new(binary()).args(args).output().expect("it runs")
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}

/// Serves a site with the configuration that `init` writes, and verifies it.
fn verified(page: &str, more: &str) -> Output {
    let site = Site::new(&[("index.php", page)]);
    let dir = PrivateDir::temporary("fpm").expect("a directory");
    let php = PhpFpm::start(dir, &PoolOptions::default()).expect("php-fpm starts");
    let shown = |path: &Path| path.display().to_string();
    let (file, said) = written(&site, &php, true);
    assert!(said.contains("nginx stays in front"), "{said}");
    let root = shown(&site.root());
    let toml = fs::read_to_string(&file).expect("it can be read");
    assert!(
        toml.contains("host = \"site.example\"") && toml.contains(&shown(php.socket())),
        "{toml}"
    );
    fs::write(&file, format!("{toml}{more}")).expect("it can be written");

    let again = pagewell(&["init", &root, "--yes", "--machine", "/", "--output", &file]);
    assert!(
        !again.status.success() && text(&again).contains("not overwritten"),
        "{}",
        text(&again)
    );

    let server = Pagewell::start(binary(), &["--config", &file]).expect("pagewell starts");
    let Address::Tcp(address) = server.address() else { panic!("not TCP") };
    let at = format!("http://{address}/");
    let output = pagewell(&["init", "--verify", "--output", &file, "--url", &at]);
    drop(server);
    output
}

#[test]
fn the_written_file_serves_the_site_and_is_verified() {
    let output = verified("<?php header('Cache-Control: max-age=60'); echo 'page';", "");
    let said = text(&output);
    assert!(output.status.success(), "{said}");
    for part in
        ["hits: request 2", "they do not get the shared page", "a purged page is fetched again"]
    {
        assert!(said.contains(part), "{part}\n{said}");
    }
    assert!(!said.contains("FAILED") && !said.contains("weak"), "{said}");
}

/// Beside the directives that stay. The host of a visitor reaches PHP, with the port.
#[test]
fn nginx_accepts_the_printed_location() {
    let site = Site::new(&[("index.php", "<?php echo $_SERVER['HTTP_HOST'];")]);
    let dir = |name| PrivateDir::temporary(name).expect("a directory");
    let php = PhpFpm::start(dir("fpm"), &PoolOptions::default()).expect("php-fpm starts");
    let (file, said) = written(&site, &php, true);
    let server = Pagewell::start(binary(), &["--config", &file]).expect("pagewell starts");
    let lines = said.lines().skip_while(|line| !line.contains("replace `location /`")).skip(1);
    let lines = lines.take_while(|line| line.starts_with("       "));
    // The harness has chosen the address.
    let pass = format!("        proxy_pass http://{};", server.address());
    let is_pass = |line: &str| line.contains("proxy_pass ");
    let lines = lines.map(|line| if is_pass(line) { pass.as_str() } else { line });
    let location: Vec<&str> = lines.collect();
    let conf = NginxConf {
        http: String::new(),
        server: format!("{SERVER}\n{}", location.join("\n")),
        workers: 1,
    };
    let nginx = nginx::start(dir("nginx"), &conf).expect("nginx starts");
    let mut client = Client::new(Address::Tcp(nginx.address())).host("site.example:8090");
    assert_eq!(client.get("/").expect("an answer").text(), "site.example:8090", "{location:?}");
}

/// While PHP is stopped, the cache still has the page, and keeps it.
#[test]
fn a_site_whose_php_is_stopped_fails_and_keeps_its_page() {
    let page = "<?php header('Cache-Control: max-age=600'); echo 'page';";
    let site = Site::new(&[("index.php", page)]);
    let dir = PrivateDir::temporary("fpm").expect("a directory");
    let mut php = PhpFpm::start(dir, &PoolOptions::default()).expect("php-fpm starts");
    let (file, _) = written(&site, &php, true);
    let server = Pagewell::start(binary(), &["--config", &file]).expect("pagewell starts");
    let Address::Tcp(address) = server.address() else { panic!("not TCP") };
    let (at, host) = (format!("http://{address}/"), address.to_string());
    let verify = || pagewell(&["init", "--verify", "--output", &file, "--url", &at]);
    let output = verify();
    assert!(output.status.success(), "{}", text(&output));
    php.kill();
    let output = verify();
    let said = text(&output);
    assert!(!output.status.success(), "{said}");
    for part in [
        "ok      hits: request 2",
        "FAILED  signed-in visitors: the site answers 502",
        "FAILED  purges: not tried, because the site answers 502",
    ] {
        assert!(said.contains(part), "{part}\n{said}");
    }
    let request = Request::get("/").header("Host", &host);
    let answer = client(&server).send(&request).expect("an answer");
    assert_eq!((answer.status, answer.text().as_str()), (200, "page"));
}

#[test]
fn a_site_that_is_not_cached_or_shares_pages_fails() {
    let output = verified("<?php echo 'page';", "");
    let said = text(&output);
    assert!(!output.status.success() && said.contains("the page is not cached"), "{said}");
    assert!(said.contains("no-lifetime") && said.contains("pagewell explain"), "{said}");

    let page = "<?php header('Cache-Control: max-age=60'); echo 'page';";
    let output = verified(page, "\n[[rule]]\nshared_with_sessions = true\n");
    let said = text(&output);
    assert!(!output.status.success() && said.contains("gets the shared page"), "{said}");
}

/// Serves a site over HTTPS with a certificate that signs itself. Returns Pagewell, its configuration file, and that of
/// the certificate.
fn served_over_https(site: &Site, is_ca: IsCa) -> (Pagewell, String, String) {
    let mut params = CertificateParams::new(["site.example".to_owned()]).expect("a name");
    params.is_ca = is_ca;
    let signing_key = KeyPair::generate().expect("a key");
    let [pem, key, file] = ["a.pem", "a.key", "https.toml"].map(|name| site.at(name));
    fs::write(&pem, params.self_signed(&signing_key).expect("signed").pem()).expect("written");
    fs::write(&key, signing_key.serialize_pem()).expect("written");
    let (port, root) = (Port::take().expect("a port"), site.root());
    let toml = format!(
        "listen_tls = \"{}\"\nmemory = \"64M\"\n[[tls]]\ncertificate = {pem:?}\nkey = {key:?}\n\
         [site]\nroot = {root:?}\nhost = \"site.example\"\n",
        port.address()
    );
    fs::write(&file, toml).expect("written");
    let [file, pem] = [file, pem].map(|path| path.display().to_string());
    let server = Pagewell::start(binary(), &["--config", &file]).expect("pagewell starts");
    (server, file, pem)
}

/// Clients refuse the certificate of an authority as that of a server, even if it is named.
#[test]
fn a_certificate_that_openssl_makes_for_an_authority_is_named_with_the_remedy() {
    let site = Site::new(&[("index.php", "<?php header('Cache-Control: max-age=60'); echo 1;")]);
    let (_server, file, pem) = served_over_https(&site, IsCa::Ca(BasicConstraints::Unconstrained));
    for more in [&[] as &[&str], &["--ca", &pem]] {
        let output = pagewell(&[&["init", "--verify", "--output", &file], more].concat());
        let said = text(&output);
        assert!(!output.status.success(), "{said}");
        assert!(said.contains("-addext basicConstraints=CA:FALSE"), "{said}");
        assert!(!said.contains("CaUsedAsEndEntity"), "{said}");
    }
}

/// The certificate of an own authority is trusted if that is named. Pagewell's own HTTPS address is requested, which is
/// not the port that visitors use.
#[test]
fn https_is_verified_with_an_own_authority() {
    let site = Site::new(&[("index.php", "<?php header('Cache-Control: max-age=60'); echo 1;")]);
    let (_server, file, pem) = served_over_https(&site, IsCa::NoCa);
    let output = pagewell(&["init", "--verify", "--output", &file, "--ca", &pem]);
    let said = text(&output);
    assert!(output.status.success(), "{said}");
    for part in [
        "Requested: https://site.example/",
        "hits: request 2",
        "certificate: clients trust it for site.example",
        "certificate files: the service can read them",
    ] {
        assert!(said.contains(part), "{part}\n{said}");
    }
    let output = pagewell(&["init", "--verify", "--output", &file]);
    let said = text(&output);
    assert!(!output.status.success(), "{said}");
    assert!(said.contains("FAILED  certificate: clients do not trust it"), "{said}");
    assert!(said.contains("--ca FILE"), "{said}");
}

/// Each site of a configuration is verified, and one that is not cached is named.
#[test]
fn several_sites_are_verified() {
    let cached = Site::new(&[("index.php", "<?php header('Cache-Control: max-age=60'); echo 1;")]);
    let plain = Site::new(&[("index.php", "<?php echo 2;")]);
    let hosts = ["one.example", "two.example"].map(str::to_owned);
    let made = rcgen::generate_simple_self_signed(hosts).expect("made");
    let [pem, key, file] = ["a.pem", "a.key", "sites.toml"].map(|name| cached.at(name));
    fs::write(&pem, made.cert.pem()).expect("written");
    fs::write(&key, made.signing_key.serialize_pem()).expect("written");
    let port = Port::take().expect("a port");
    let toml = format!(
        "listen_tls = \"{}\"\nmemory = \"64M\"\nphp.children = 2\n\
         [[tls]]\ncertificate = {pem:?}\nkey = {key:?}\n\
         [[site]]\nroot = {:?}\nhost = \"one.example\"\n\
         [[site]]\nroot = {:?}\nhost = \"two.example\"\n",
        port.address(),
        cached.root(),
        plain.root()
    );
    fs::write(&file, toml).expect("written");
    let [file, pem] = [file, pem].map(|path| path.display().to_string());
    let _server = Pagewell::start(binary(), &["--config", &file]).expect("pagewell starts");
    let output = pagewell(&["init", "--verify", "--output", &file, "--ca", &pem]);
    let said = text(&output);
    assert!(!output.status.success() && said.contains("checks that failed: 1"), "{said}");
    let (first, second) = said.split_once("Requested: https://two.example/").expect("both sites");
    assert!(first.contains("Requested: https://one.example/"), "{said}");
    assert!(first.contains("hits: request 2") && !first.contains("FAILED"), "{said}");
    assert!(second.contains("FAILED  hits: the page is not cached"), "{said}");
    for part in ["clients trust it for one.example", "clients trust it for two.example"] {
        assert!(said.contains(part), "{part}\n{said}");
    }
    assert_eq!(said.matches("certificate files: ").count(), 1, "{said}");
}

/// A server that answers like Pagewell, and refuses a script below the uploads or knows none of its name.
fn answering(refuses: bool) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        let mut is_stored = false;
        for stream in listener.incoming().flatten() {
            answer(&stream, refuses, &mut is_stored);
        }
    });
    address
}

fn answer(mut stream: &TcpStream, refuses: bool, is_stored: &mut bool) {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let first = lines.next().unwrap_or_default();
    let has_cookie =
        lines.take_while(|line| !line.is_empty()).any(|line| line.starts_with("Cookie"));
    let (status, cache) = match first.split(' ').collect::<Vec<_>>()[..] {
        ["PURGE", ..] => (200, "fwd=method"),
        [_, path, ..] if path.starts_with("/wp-content/uploads/") && refuses => {
            (403, "detail=refused")
        }
        [_, path, ..] if path.ends_with(".php") => (404, "fwd=uri-miss"),
        _ if has_cookie => (200, "fwd=bypass"),
        _ if *is_stored => (200, "hit"),
        _ => (200, "fwd=uri-miss; stored"),
    };
    *is_stored = status == 200 && !first.starts_with("PURGE");
    let head = format!(
        "HTTP/1.1 {status} x\r\nCache-Status: pagewell; {cache}\r\nContent-Length: 0\r\n\r\n"
    );
    let _ = stream.write_all(head.as_bytes());
}

/// A script in the directory of uploads must not run.
#[test]
fn php_below_the_uploads_is_tried() {
    let version = "<?php $wp_version = '6.1';";
    let site = Site::new(&[
        ("index.php", "<?php"),
        ("wp-load.php", "<?php"),
        ("wp-includes/version.php", version),
    ]);
    let (file, root) = (site.at("written.toml"), site.root());
    fs::write(&file, format!("[site]\nroot = {root:?}\n")).expect("written");
    let file = file.display().to_string();
    for (refuses, expected) in [
        (true, "ok      PHP below /wp-content/uploads/: refused (403)"),
        (false, "FAILED  PHP below /wp-content/uploads/: a script there would run (404"),
    ] {
        let at = format!("http://{}/", answering(refuses));
        let output = pagewell(&["init", "--verify", "--output", &file, "--url", &at]);
        let said = text(&output);
        assert!(said.contains(expected), "{said}");
        assert!(said.contains("php = false") != refuses, "{said}");
        assert_eq!(output.status.success(), refuses, "{said}");
    }
}

/// No other program tells which site is meant: port 443 of this machine may be that of another one.
#[test]
fn a_site_without_a_host_is_requested_where_nginx_listens() {
    let site = Site::new(&[("index.php", "<?php")]);
    let (port, front) = (Port::take().expect("a port"), answering(true));
    let (file, tree, own) = (site.at("written.toml"), site.at("machine"), port.address());
    let toml = format!("listen = \"{own}\"\n[site]\nroot = {:?}\n", site.root());
    fs::write(&file, toml).expect("written");
    let block = format!(
        "http {{ server {{ listen {front}; server_name _; location / {{ proxy_pass http://{own}; }} }} }}"
    );
    fs::create_dir_all(tree.join("etc/nginx")).expect("a directory");
    fs::write(tree.join("etc/nginx/nginx.conf"), block).expect("written");
    let [file, tree] = [file, tree].map(|path| path.display().to_string());
    let output = pagewell(&["init", "--verify", "--output", &file, "--machine", &tree]);
    let said = text(&output);
    assert!(output.status.success(), "{said}");
    assert!(said.contains(&format!("Requested: http://{front}/\n")), "{said}");
}

/// An application: files by which it is recognised, a script that visitors may have uploaded, and files that its
/// configuration denies.
struct AttackedSite {
    title: &'static str,
    files: &'static [(&'static str, &'static str)],
    script: &'static str,
    denied: &'static [&'static str],
}

const FRONT: &str = "<?php echo 'front';";
const ATTACK: &str = "<?php echo 'attack ran';";

const ATTACKED: [AttackedSite; 5] = [
    AttackedSite {
        title: "WordPress",
        files: &[
            ("wp-includes/version.php", "<?php $wp_version = '6.1';"),
            ("wp-includes/css/a.css", "style"),
            ("index.php", FRONT),
            ("wp-content/uploads/2026/x.php", ATTACK),
        ],
        script: "/wp-content/uploads/2026/x.php",
        denied: &[],
    },
    AttackedSite {
        title: "Laravel",
        files: &[("artisan", ""), ("public/index.php", FRONT), ("public/storage/x.php", ATTACK)],
        script: "/storage/x.php",
        denied: &[],
    },
    AttackedSite {
        title: "Symfony",
        files: &[
            ("config/bundles.php", "<?php"),
            ("public/index.php", FRONT),
            ("public/uploads/x.php", ATTACK),
        ],
        script: "/uploads/x.php",
        denied: &[],
    },
    AttackedSite {
        title: "Drupal",
        files: &[
            ("web/core/lib/Drupal.php", "<?php class Drupal { const VERSION = '10.3.1'; }"),
            ("web/index.php", FRONT),
            ("web/sites/default/files/x.php", ATTACK),
            ("web/modules/a.inc", "secret"),
            ("web/modules/A.INC", "secret"),
            ("web/a.Twig", "secret"),
        ],
        script: "/sites/default/files/x.php",
        denied: &["/modules/a.inc", "/modules/A.INC", "/a.Twig"],
    },
    AttackedSite {
        title: "MediaWiki",
        files: &[
            ("includes/WebStart.php", "<?php"),
            ("index.php", FRONT),
            ("images/x.php", ATTACK),
        ],
        script: "/images/x.php",
        denied: &[],
    },
];

/// Spellings of a path.
fn spellings(path: &str) -> Vec<String> {
    let (start, name) = path.rsplit_once('/').expect("a slash");
    let upper = name.to_ascii_uppercase();
    [
        path.to_owned(),
        format!("{path}?a=b"),
        format!("{path}/y"),
        format!("{path}/index.php"),
        format!("/{path}"),
        format!("/.{path}"),
        format!("/zz/..{path}"),
        format!("/index.php/..{path}"),
        format!("/%{:02x}{}", path.as_bytes()[1], &path[2..]),
        format!("{start}%2f{name}"),
        format!("{start}%5c{name}"),
        format!("/zz%2f..{start}%2f{name}"),
        format!("/zz%5c..{}%5c{name}", start.replace('/', "%5c")),
        format!("{start}/{upper}"),
        format!("{path}%20"),
        format!("{path}."),
        format!("{path}%00.jpg"),
    ]
    .into()
}

/// The configuration that `init` writes for each application, with the attacks on scripts and denied files.
#[test]
fn rules_written_by_init_let_no_uploaded_script_run() {
    let fpm = PrivateDir::temporary("fpm").expect("a directory");
    let php = PhpFpm::start(fpm, &PoolOptions::default()).expect("php-fpm starts");
    for AttackedSite { title, files, script, denied } in ATTACKED {
        let site = Site::new(files);
        if !files.iter().any(|(name, _)| *name == "index.php") {
            fs::remove_file(site.root().join("index.php")).expect("a file of every site");
        }
        let (file, said) = written(&site, &php, false);
        assert!(said.contains(title), "{title}: {said}");
        let server = Pagewell::start(binary(), &["--config", &file]).expect("pagewell starts");
        let mut client = client(&server);
        assert_eq!(client.get("/").expect("an answer").text(), "front", "{title}");
        for path in spellings(script) {
            for method in ["GET", "HEAD", "POST"] {
                let request = Request::new(method, &path).header("content-length", "0");
                let response = client.send(&request).expect("an answer");
                let text = response.text();
                let is_harmless = !text.contains("attack") && !text.contains("<?php");
                assert!(is_harmless, "{title}: {method} {path}: {text}");
            }
            let url = format!("http://{}{path}", server.address());
            let over_http2 = Command::new("nghttp").arg(&url).output().expect("nghttp runs");
            assert!(!text(&over_http2).contains("attack"), "{title}: {path}");
        }
        assert_eq!(client.get(script).expect("an answer").status, 404, "{title}");
        for path in denied.iter().flat_map(|path| spellings(path)) {
            let response = client.get(&path).expect("an answer");
            assert!(!response.text().contains("secret"), "{title}: {path}");
        }
        for path in denied {
            assert_eq!(client.get(path).expect("an answer").status, 403, "{title}: {path}");
        }
        if title == "WordPress" {
            let style = client.get("/wp-includes/css/a.css").expect("an answer");
            assert!(style.header("cache-control").is_some_and(|value| value.contains("immutable")));
            for path in ["/", "/wp-includes/css/a.css", script] {
                let response = client.get(path).expect("an answer");
                let fields = ["x-content-type-options", "x-frame-options"];
                let found = fields.map(|name| response.header(name).unwrap_or_default());
                assert_eq!(found, ["nosniff", "SAMEORIGIN"], "{path}");
            }
        }
    }
}
