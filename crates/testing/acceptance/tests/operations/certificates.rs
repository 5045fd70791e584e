//! Automatic HTTPS with the real binary and Pebble, a certificate authority for tests: both kinds of challenges,
//! renewal, a restart, an authority and a Valkey that are down, and nodes that share a directory or a Valkey. Faults
//! of an authority that Pebble does not have are tested in the crate `acme`.

use acceptance::{Site, advance, binary, skip, until};
use harness::{
    Address, Client, Pagewell, Pebble, PebbleSettings, PebbleVersion, PrivateDir, Process, Request,
    StartReason, Stopwatch, Valkey, free_port,
};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use serde_json::Value;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

const HOST: &str = "site.example.org";
const DAY: Duration = Duration::from_secs(86_400);

/// The ports of a node.
#[derive(Clone, Copy)]
struct Ports {
    http: u16,
    tls: u16,
}

impl Ports {
    fn new() -> Ports {
        Ports { http: free_port().expect("a port"), tls: free_port().expect("a port") }
    }
}

/// Starts Pebble, or says that it is not installed.
fn pebble(ports: Ports, lifetime: Duration, validation: Option<Duration>) -> Option<Pebble> {
    pebble_of(PebbleVersion::Installed, ports, lifetime, validation)
}

/// The same of this version.
fn pebble_of(
    version: PebbleVersion,
    ports: Ports,
    lifetime: Duration,
    validation: Option<Duration>,
) -> Option<Pebble> {
    let (http_port, tls_port) = (ports.http, ports.tls);
    let settings = PebbleSettings { http_port, tls_port, lifetime, validation, version };
    let key = KeyPair::generate().expect("a key");
    let mut params = CertificateParams::new(Vec::new()).expect("valid");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let root = params.self_signed(&key).expect("a root").pem();
    let issuer = Issuer::new(params, key);
    let own = KeyPair::generate().expect("a key");
    let leaf = CertificateParams::new(["localhost".to_owned()]).expect("valid");
    let leaf = leaf.signed_by(&own, &issuer).expect("a certificate").pem();
    match Pebble::start(settings, (&leaf, &own.serialize_pem(), &root)) {
        Ok(pebble) => Some(pebble),
        Err(error) if error.reason == StartReason::NotInstalled => {
            skip(&format!("{error}: scripts/setup test"));
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// A node: a running Pagewell that obtains certificates from Pebble.
struct Node {
    pagewell: Pagewell,
    ports: Ports,
}

impl Node {
    /// Starts a node. `acme` is the content of `[acme]`, `more` further configuration.
    fn start(site: &Site, pebble: &Pebble, ports: Ports, hosts: &[&str], more: &str) -> Node {
        let storage = site.at("acme");
        let acme = format!("storage = {storage:?}");
        Node::with(site, pebble, ports, hosts, &acme, more)
    }

    fn with(
        site: &Site,
        pebble: &Pebble,
        ports: Ports,
        hosts: &[&str],
        acme: &str,
        more: &str,
    ) -> Node {
        let (host, aliases) = hosts.split_first().expect("a host");
        let copy = if acme.contains("valkey") {
            format!("copy = {:?}", copy(site, ports))
        } else {
            String::new()
        };
        let text = format!(
            "listen = \"127.0.0.1:{}\"\nlisten_tls = \"127.0.0.1:{}\"\nadmin = \"127.0.0.1:0\"\nhttps_redirect = 308\nmemory = \"64M\"\n\
             [site]\nhost = {host:?}\naliases = {aliases:?}\n[acme]\ndirectory = {:?}\n{acme}\n{copy}\n\
             [limits]\ncertificate_look = \"50ms\"\n{more}\n",
            ports.http,
            ports.tls,
            pebble.directory()
        );
        let file = site.at(&format!("node-{}.toml", ports.tls));
        fs::write(&file, text).expect("written");
        let mut command = Command::new(binary());
        command.arg("serve").arg(site.root()).arg("--config").arg(&file);
        command.env("SSL_CERT_FILE", pebble.roots());
        let dir = PrivateDir::temporary("node").expect("a directory");
        let pagewell = Pagewell::start_command(dir, &mut command).expect("pagewell starts");
        Node { pagewell, ports }
    }

    /// The answer of `GET /v1/certificates` for a host.
    fn status(&self, host: &str) -> Value {
        let answer = Client::new(self.pagewell.admin().clone()).get("/v1/certificates");
        let answer: Value =
            serde_json::from_slice(&answer.expect("an answer").content).expect("JSON");
        let all = answer["certificates"].as_array().expect("a list").clone();
        all.into_iter().find(|one| one["name"] == host).expect("the host is managed")
    }

    /// The status code of a page over TLS, and the issuer and end of the certificate, as curl sees them.
    fn https(&self, host: &str) -> Option<String> {
        let at = format!("{host}:{}:127.0.0.1", self.ports.tls);
        let url = format!("https://{host}:{}/", self.ports.tls);
        let out = Command::new("curl")
            .args(["--silent", "--insecure", "--verbose", "--max-time", "60"])
            .args(["--resolve", &at, &url])
            .output()
            .expect("curl can be started");
        out.status.success().then(|| String::from_utf8_lossy(&out.stderr).into_owned())
    }

    fn http(&self, host: &str, target: &str) -> harness::Response {
        let address = Address::Tcp(SocketAddr::from(([127, 0, 0, 1], self.ports.http)));
        let request = Request::new("GET", target).header("Host", host);
        Client::new(address).send(&request).expect("an answer")
    }

    /// Waits until the certificate is used, which is a moment after it was obtained.
    fn until_https(&self, host: &str) {
        let mut said = None;
        until(&format!("{host}: {}", self.status(host)), || {
            said = self.status(host)["issuer"].is_string().then(|| self.https(host)).flatten();
            said.is_some()
        });
        let said = said.expect("HTTPS works");
        assert!(said.contains("Pebble Intermediate CA"), "{said}");
    }

    /// The output and the exit status of a command that calls this node.
    fn text(&self, args: &[&str]) -> (String, i32) {
        let admin = match self.pagewell.admin() {
            Address::Tcp(address) => address.to_string(),
            Address::Unix(path) => format!("unix:{}", path.display()),
        };
        let out =
            Command::new(binary()).args(args).args(["--admin", &admin]).output().expect("it runs");
        (String::from_utf8_lossy(&out.stdout).into_owned(), out.status.code().unwrap_or(-1))
    }
}

#[test]
fn a_public_name_gets_https_and_only_then_the_redirect() {
    let ports = Ports::new();
    let Some(mut pebble) = pebble(ports, DAY * 90, None) else { return };
    let site = Site::new(&[("file.txt", "a file")]);
    site.file(".well-known/acme-challenge/uploaded", "an upload");
    // The authority is down at the start.
    let away = pebble.directory();
    pebble.stop();
    let node = Node::start(&site, &pebble, ports, &[HOST, "bad_name.example.org"], "");
    until("a failure", || node.status(HOST)["failure"].is_object());
    assert_eq!(node.status(HOST)["failure"]["cause"], "authority", "{away}");
    assert_eq!(node.https(HOST), None, "the handshake fails without a certificate");
    let page = node.http(HOST, "/file.txt");
    assert_eq!(
        (page.status, page.text().as_str()),
        (200, "a file"),
        "the plain listener serves the site"
    );
    for target in ["uploaded", "", "x/y", "%75ploaded"] {
        let answer = node.http(HOST, &format!("/.well-known/acme-challenge/{target}"));
        assert_eq!(answer.status, 404, "no file answers a challenge: {target}");
        // `pagewell doctor` recognises Pagewell by this.
        let status = answer.header("cache-status").unwrap_or_default();
        assert!(status.contains("detail=acme-challenge"), "{status}");
    }
    let (text, _) = node.text(&["certificates"]);
    assert!(text.contains(&format!("{HOST}: no certificate yet")), "{text}");
    assert!(text.contains("bad_name.example.org: no certificate: not a valid host name"), "{text}");
    let (text, code) = node.text(&["status"]);
    assert!(code == 1 && text.contains("certificate-not-obtained"), "{text}");
    let metrics =
        Client::new(node.pagewell.admin().clone()).get("/metrics").expect("metrics").text();
    assert!(metrics.contains("pagewell_acme_orders_total{result=\"failed\"} 1"), "{metrics}");
    // A restart keeps the waiting time: nothing is tried again.
    let next = node.status(HOST)["next_try_ms"].clone();
    drop(node);
    pebble.start_again().expect("it starts");
    let node = Node::start(&site, &pebble, ports, &[HOST], "");
    until("its record is read", || node.status(HOST)["next_try_ms"] == next);
    assert_eq!(pebble.issued(), 0);
    pebble.stop();
    let mut doctor = Command::new(binary());
    doctor.args(["doctor", "--config"]).arg(site.at(&format!("node-{}.toml", ports.tls)));
    let out = doctor.arg(site.root()).env("SSL_CERT_FILE", pebble.roots()).output();
    let out = out.expect("doctor runs");
    let text = String::from_utf8_lossy(&out.stdout);
    assert!(out.status.code() == Some(3) && text.contains("certificate-authority"), "{text}");
    assert!(text.contains(&format!("{away}: Connection refused")), "{text}");
}

#[test]
fn http_01_gives_https_and_a_restart_needs_no_order() {
    let ports = Ports::new();
    let Some(pebble) = pebble(ports, DAY * 90, None) else { return };
    let (site, other) = (Site::new(&[]), "other.example.org");
    let pair = given(&site, other);
    let node = Node::start(&site, &pebble, ports, &[HOST, "www.example.org", other], &pair);
    node.until_https(HOST);
    node.until_https("www.example.org");
    let said = node.https(other).expect("HTTPS by the certificate in a file");
    assert!(!said.contains("Pebble"), "{said}");
    until("now the redirect takes effect", || node.http(HOST, "/").status == 308);
    let metrics =
        Client::new(node.pagewell.admin().clone()).get("/metrics").expect("metrics").text();
    assert!(metrics.contains("pagewell_acme_orders_total{result=\"issued\"} 2"), "{metrics}");
    assert!(
        metrics.contains(&format!("pagewell_certificate_expiry_seconds{{name=\"{HOST}\"}} 77")),
        "{metrics}"
    );
    drop(node);
    let node = Node::start(&site, &pebble, ports, &[HOST, "www.example.org"], "");
    node.until_https(HOST);
    assert_eq!(pebble.issued(), 2, "one certificate for each name");
}

/// `make acme` shows the time from the start to HTTPS, with the settings of the guide. Pebble takes up to 3 seconds for
/// the validation, as an authority on the Internet does.
#[test]
fn https_works_after_the_start() {
    let ports = Ports::new();
    let Some(pebble) = pebble(ports, DAY * 90, Some(Duration::from_secs(3))) else { return };
    let site = Site::new(&[]);
    let text = format!(
        "listen = \"127.0.0.1:{}\"\nlisten_tls = \"127.0.0.1:{}\"\nhttps_redirect = 308\n\
         admin = \"127.0.0.1:0\"\nmemory = \"64M\"\n\
         [site]\nhost = {HOST:?}\n[acme]\ndirectory = {:?}\nstorage = {:?}\n",
        ports.http,
        ports.tls,
        pebble.directory(),
        site.at("acme")
    );
    let file = site.at("guide.toml");
    fs::write(&file, text).expect("written");
    let mut command = Command::new(binary());
    command.arg("serve").arg(site.root()).arg("--config").arg(&file);
    command.env("SSL_CERT_FILE", pebble.roots());
    let dir = PrivateDir::temporary("node").expect("a directory");
    let clock = Stopwatch::start();
    let pagewell = Pagewell::start_command(dir, &mut command).expect("pagewell starts");
    let node = Node { pagewell, ports };
    node.until_https(HOST);
    println!("HTTPS works {:.1} s after the start", clock.elapsed().as_secs_f64());
    assert_eq!(pebble.issued(), 1);
}

#[test]
fn tls_alpn_01_needs_no_plain_listener() {
    let ports = Ports::new();
    let Some(pebble) = pebble(ports, DAY * 90, None) else { return };
    let (site, admin) = (Site::new(&[]), free_port().expect("a port"));
    let text = format!(
        "listen = []\nlisten_tls = \"127.0.0.1:{}\"\nadmin = \"127.0.0.1:{admin}\"\nmemory = \"64M\"\n\
         [site]\nhost = {HOST:?}\n[acme]\ndirectory = {:?}\nstorage = {:?}\n",
        ports.tls,
        pebble.directory(),
        site.at("acme")
    );
    let file = site.at("alone.toml");
    fs::write(&file, text).expect("written");
    let mut command = Command::new(binary());
    command.arg("serve").arg(site.root()).arg("--config").arg(&file);
    command.env("SSL_CERT_FILE", pebble.roots());
    let mut process =
        Process::spawn("pagewell", &mut command, &site.at("pagewell.log")).expect("it starts");
    let admin = Address::Tcp(SocketAddr::from(([127, 0, 0, 1], admin)));
    until("a certificate", || {
        let answer = Client::new(admin.clone()).get("/v1/certificates");
        answer.is_ok_and(|answer| answer.text().contains("Pebble Intermediate CA"))
    });
    assert_eq!(pebble.issued(), 1);
    process.stop();
}

#[test]
fn a_short_certificate_is_renewed_while_it_is_used() {
    let ports = Ports::new();
    let Some(pebble) = pebble(ports, Duration::from_secs(30), None) else { return };
    let site = Site::new(&[]);
    let node = Node::start(&site, &pebble, ports, &[HOST], "");
    node.until_https(HOST);
    let first = node.status(HOST)["ends_ms"].clone();
    until("a renewal", || node.status(HOST)["ends_ms"] != first);
    node.until_https(HOST);
}

#[test]
fn a_newer_authority_suggests_when_to_renew() {
    let ports = Ports::new();
    let newer = PebbleVersion::Newer;
    let Some(pebble) = pebble_of(newer, ports, DAY * 90, None) else { return };
    let site = Site::new(&[]);
    let node = Node::start(&site, &pebble, ports, &[HOST], "");
    node.until_https(HOST);
    let file = site.at("acme").join(format!("hosts/{HOST}.json"));
    let mut window = Value::Null;
    until("a suggestion", || {
        let record: Value =
            serde_json::from_slice(&fs::read(&file).unwrap_or_default()).unwrap_or_default();
        window = record["suggestion"]["window_ms"].clone();
        window.is_array()
    });
    let status = node.status(HOST);
    let (from_ms, until_ms) = (window[0].as_u64(), window[1].as_u64());
    assert!(from_ms < until_ms && until_ms < status["ends_ms"].as_u64(), "{window} {status}");
    assert_eq!(pebble.issued(), 1);
}

/// Three nodes. One is killed while a certificate is ordered: in a directory the one that orders, unless it is
/// the first.
fn killed_holder(site: &Site, pebble: &Pebble, ports: [Ports; 3], acme: &str, more: &str) {
    let start = |ports| Node::with(site, pebble, ports, &[HOST], acme, more);
    let mut nodes: Vec<Node> = ports.map(start).into_iter().collect();
    // It orders while Pebble validates, which takes seconds.
    until("an order", || site_has_order(site, pebble));
    // Pebble connects to the first node, which therefore stays; any other may be the one that orders.
    let is_holder = |node: &Node| holder(site) == Some(node.pagewell.pid());
    let at = nodes.iter().position(is_holder).filter(|at| *at > 0).unwrap_or(2);
    nodes.remove(at).pagewell.kill();
    for node in &nodes {
        node.until_https(HOST);
    }
    let ends: Vec<Value> = nodes.iter().map(|node| node.status(HOST)["ends_ms"].clone()).collect();
    assert!(ends.iter().all(|end| *end == ends[0]), "all nodes use the same certificate: {ends:?}");
    assert_eq!(pebble.issued(), 1);
}

#[test]
fn a_pending_challenge_is_answered_for_its_host_and_token_over_plain_http_only() {
    let ports = Ports::new();
    // Pebble draws how many seconds below this it waits: of so many it is never as short as this test.
    let Some(pebble) = pebble(ports, DAY * 90, Some(DAY * 10_000)) else { return };
    let (site, other) = (Site::new(&[]), "other.example.org");
    let pair = given(&site, other);
    let node = Node::start(&site, &pebble, ports, &[HOST, other], &pair);
    let file = site.at("acme").join(format!("challenges/{HOST}.json"));
    let mut pending = Value::Null;
    until("a challenge", || {
        let text = fs::read(&file).unwrap_or_default();
        pending = serde_json::from_slice(&text).unwrap_or_default();
        pending["token"].is_string()
    });
    let path = format!("/.well-known/acme-challenge/{}", pending["token"].as_str().expect("text"));
    let answer = node.http(HOST, &path);
    let secret = pending["authorization"].as_str().expect("text");
    assert_eq!((answer.status, answer.text().as_str()), (200, secret));
    let (dot, port) = (format!("{HOST}."), format!("{HOST}:{}", ports.http));
    for host in [port.as_str(), "SITE.EXAMPLE.ORG", &dot] {
        let answer = node.http(host, &path);
        assert!(matches!(answer.status, 200 | 421), "one normal form: {host}: {}", answer.status);
    }
    for (host, path) in [
        (HOST, format!("{path}x")),
        (HOST, format!("{path}?x")),
        (HOST, path[..path.len() - 1].to_owned()),
        (other, path.clone()),
        ("unknown.example.org", path.clone()),
        ("user@site.example.org", path.clone()),
    ] {
        let answer = node.http(host, &path);
        let is_right = host != HOST || answer.status == 404;
        assert!(is_right && !answer.text().contains(secret), "{host}{path}: {}", answer.status);
    }
    // The SNI of a host with a certificate, and the other host in the request.
    let at = format!("{other}:{}:127.0.0.1", ports.tls);
    let url = format!("https://{other}:{}{path}", ports.tls);
    let out = Command::new("curl")
        .args(["-sk", "--http1.1", "--resolve", &at])
        .args(["-H", &format!("Host: {HOST}"), &url])
        .output()
        .expect("curl runs");
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(out.status.success() && !text.contains(secret), "over HTTPS: {text}");
    assert!(fs::exists(&file).expect("readable"), "the challenge was pending all the time");
}

/// The configuration of a certificate in a file, which is made here.
fn given(site: &Site, host: &str) -> String {
    let key = KeyPair::generate().expect("a key");
    let made = CertificateParams::new([host.to_owned()]).expect("valid").self_signed(&key);
    let (certificate, file) = (site.at("given.pem"), site.at("given.key"));
    fs::write(&certificate, made.expect("made").pem()).expect("written");
    fs::write(&file, key.serialize_pem()).expect("written");
    format!("[[tls]]\ncertificate = {certificate:?}\nkey = {file:?}\n")
}

#[test]
fn certificates_in_files_are_listed_with_their_end_and_a_renewal_that_cannot_be_used() {
    let site = Site::new(&[]);
    let pair = given(&site, HOST);
    let text = format!(
        "listen_tls = \"unix:{}\"\n[limits]\ncertificate_look = \"20ms\"\n{pair}",
        site.at("tls.sock").display()
    );
    let pagewell = site.serve(&text);
    let node = Node { pagewell, ports: Ports { http: 0, tls: 0 } };
    let status = node.status(HOST);
    let file = site.at("given.pem").display().to_string();
    assert_eq!((status["file"].as_str(), &status["failure"]), (Some(file.as_str()), &Value::Null));
    assert!(status["issuer"].is_string() && status["next_try_ms"].is_null(), "{status}");
    assert!(status["ends_in_s"].as_i64().expect("a number") > 86_400, "{status}");
    let metrics =
        Client::new(node.pagewell.admin().clone()).get("/metrics").expect("metrics").text();
    let series = format!("pagewell_certificate_expiry_seconds{{name=\"{HOST}\"}} ");
    assert!(metrics.contains(&series) && !metrics.contains("pagewell_acme_orders"), "{metrics}");
    // The key of another certificate: the old pair stays in use.
    fs::write(site.at("given.key"), KeyPair::generate().expect("a key").serialize_pem())
        .expect("written");
    until("the failure", || node.status(HOST)["failure"]["cause"] == "file");
    let (text, _) = node.text(&["certificates"]);
    assert!(text.contains("is not the key of"), "{text}");
    assert!(text.contains(&format!("  from {file}")) && text.contains("  do  the file"), "{text}");
    let (text, code) = node.text(&["status"]);
    assert!(code == 1 && text.contains("certificate-ends"), "{text}");
    assert!(text.contains("was renewed, and the new one cannot be used"), "{text}");
}

/// Whether the TLS session in a file goes on at this socket. Without the file, a new session is stored in it.
fn goes_on(socket: &Path, session: &Path) -> bool {
    let option = if session.exists() { "-sess_in" } else { "-sess_out" };
    let out = Command::new("openssl")
        .args(["s_client", "-tls1_2", "-servername", HOST, "-unix"])
        .arg(socket)
        .arg(option)
        .arg(session)
        .stdin(Stdio::null())
        .output()
        .expect("openssl can be started");
    let said = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(said.contains("Cipher is ECDHE"), "{said}");
    said.contains("Reused, ")
}

#[test]
fn a_tls_session_goes_on_at_another_node_until_its_key_is_forgotten() {
    let site = Site::new(&[]);
    let (pair, storage) = (given(&site, HOST), site.at("acme"));
    let node = |name: &str| {
        let socket = site.at(name);
        let text = format!(
            "listen_tls = \"unix:{}\"\n[site]\nhost = {HOST:?}\n[acme]\nstorage = {storage:?}\n\
             [limits]\ncertificate_look = \"20ms\"\n{pair}",
            socket.display()
        );
        (site.serve(&text), socket)
    };
    let ((one, at_one), (two, at_two)) = (node("one.sock"), node("two.sock"));
    let (first, second) = (site.at("first.session"), site.at("second.session"));
    let pass_six_hours = || {
        for node in [&one, &two] {
            advance(node, 6 * 3600);
        }
    };
    assert!(!goes_on(&at_one, &first), "it is new");
    until("it goes on at the other node", || goes_on(&at_two, &first));
    let key = || fs::read(storage.join("tickets/keys.json")).expect("shared keys");
    let before = key();
    pass_six_hours();
    until("another key", || key() != before);
    // Until a node has looked, its tickets are of the key before.
    until("the second session is of the other key", || {
        let _ = fs::remove_file(&second);
        assert!(!goes_on(&at_one, &second), "it is new");
        !same_key(&first, &second)
    });
    until("it goes on at the other node", || goes_on(&at_two, &second));
    assert!(goes_on(&at_two, &first), "that of the key before, too");
    pass_six_hours();
    until("the first key is forgotten", || !goes_on(&at_two, &first));
    assert!(goes_on(&at_two, &second));
}

/// Whether the tickets of two sessions begin with the name of the same key.
fn same_key(one: &Path, other: &Path) -> bool {
    let name = |session: &Path| {
        let out = Command::new("openssl")
            .args(["sess_id", "-noout", "-text", "-in"])
            .arg(session)
            .output()
            .expect("openssl can be started");
        let said = String::from_utf8_lossy(&out.stdout).into_owned();
        let line = said.lines().find(|line| line.trim_start().starts_with("0000 - "));
        line.unwrap_or_else(|| panic!("no ticket: {said}")).to_owned()
    };
    name(one) == name(other)
}

/// Whether a node has begun an order.
fn site_has_order(site: &Site, pebble: &Pebble) -> bool {
    pebble.has_order() && (holder(site).is_some() || !site.at("acme").exists())
}

/// The process that has the lock of the host in the shared directory.
fn holder(site: &Site) -> Option<u32> {
    let lock = fs::read_to_string(site.at("acme").join("locks").join(HOST)).ok()?;
    lock.rsplit(' ').next()?.parse().ok()
}

#[test]
fn three_nodes_on_a_directory_have_one_certificate() {
    let ports = [Ports::new(), Ports::new(), Ports::new()];
    let Some(pebble) = pebble(ports[0], DAY * 90, Some(Duration::from_secs(3))) else { return };
    let site = Site::new(&[]);
    let acme = format!("storage = {:?}", site.at("acme"));
    killed_holder(&site, &pebble, ports, &acme, "");
}

/// The configuration of `[acme]` with this Valkey, and that of the cluster.
fn in_valkey(site: &Site, valkey: &Valkey) -> (String, String) {
    let seal = site.at("seal.key");
    fs::write(&seal, "0f".repeat(32)).expect("written");
    restrict(&seal);
    let acme = format!("storage = \"valkey\"\nseal_key_file = {seal:?}");
    (acme, format!("[cluster]\nurl = \"redis://127.0.0.1:{}\"\n", valkey.port()))
}

/// The certificate of the host as Valkey has it.
fn stored(valkey: &Valkey) -> String {
    let key = format!("pagewell:{HOST}:acme:certificates:{HOST}");
    valkey.command(&["GET", &key]).expect("an answer")
}

/// The directory of a node's copy.
fn copy(site: &Site, ports: Ports) -> PathBuf {
    site.at(&format!("copy-{}", ports.tls))
}

#[test]
fn a_node_that_starts_while_valkey_and_the_authority_are_away_has_https() {
    let ports = Ports::new();
    let Some(mut pebble) = pebble(ports, DAY * 90, None) else { return };
    let mut valkey = Valkey::start(&[]).expect("valkey starts");
    let site = Site::new(&[]);
    let (acme, cluster) = in_valkey(&site, &valkey);
    let node = Node::with(&site, &pebble, ports, &[HOST], &acme, &cluster);
    node.until_https(HOST);
    let ends = node.status(HOST)["ends_ms"].clone();
    let file = copy(&site, ports).join(format!("certificates/{HOST}.pem"));
    until("a copy", || file.exists());
    drop(node);
    valkey.stop();
    pebble.stop();
    let node = Node::with(&site, &pebble, ports, &[HOST], &acme, &cluster);
    node.until_https(HOST);
    assert_eq!(node.status(HOST)["ends_ms"], ends);
    until("the fault is shown", || {
        node.text(&["certificates"]).0.contains("storage: acme.storage: the server of [cluster]")
    });
    // It comes back without its values, and gets the certificate again.
    valkey.start_again().expect("it starts");
    until("it is stored again", || !stored(&valkey).is_empty());
}

#[test]
fn three_nodes_on_valkey_have_one_certificate() {
    let ports = [Ports::new(), Ports::new(), Ports::new()];
    let Some(pebble) = pebble(ports[0], DAY * 90, Some(Duration::from_secs(3))) else { return };
    let valkey = Valkey::start(&[]).expect("valkey starts");
    let site = Site::new(&[]);
    let (acme, cluster) = in_valkey(&site, &valkey);
    killed_holder(&site, &pebble, ports, &acme, &cluster);
    let stored = stored(&valkey);
    assert!(
        !stored.is_empty() && !stored.contains("PRIVATE KEY") && !stored.contains("CERTIFICATE")
    );
}

fn restrict(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).expect("its mode can be set");
}
