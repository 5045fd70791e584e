//! `pagewell check` connects to the origins of the sites: a real php-fpm, a real HTTP server, a socket
//! without permission, an address where nothing listens, and servers of another protocol. An unreachable
//! origin is a warning: the exit status stays 0.

use acceptance::{Site, binary};
use harness::nginx::{NginxConf, start as start_nginx};
use harness::{Address, PhpFpm, PoolOptions, Port, PrivateDir, am_root};
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

/// The lines that `pagewell check` prints about origins, for a configuration without errors.
fn checked(site: &Site, toml: &str, args: &[&str]) -> Vec<String> {
    let file = site.at("checked.toml");
    // The user of the configuration has to be able to read the site.
    let root = site.root();
    let above = root.parent().expect("above it");
    fs::set_permissions(above, fs::Permissions::from_mode(0o755)).expect("can be set");
    fs::write(&file, toml).expect("can be written");
    let mut command = Command::new(binary());
    let output =
        command.args(["check", "--config"]).arg(&file).args(args).output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && text.contains("no errors"), "{toml}\n{output:?}");
    let start = format!("{}: ", file.display());
    let lines = text.lines().filter_map(|line| line.strip_prefix(&start));
    let about = |line: &&str| {
        let is_of_origin = line.contains("php.at") || line.contains("site.origin");
        is_of_origin && !line.contains("PHP scripts run as")
    };
    lines.filter(about).map(str::to_owned).collect()
}

/// A site of one php-fpm, checked as this user if root may choose one. The answer has as much time as the program gives.
fn with_php(site: &Site, at: &str, user: &str) -> String {
    let user = if am_root() { format!("user = {user:?}\n") } else { String::new() };
    let root = site.root().display().to_string();
    let toml = format!("{user}[site]\nroot = {root:?}\n[php]\nat = {at:?}\n");
    let lines = checked(site, &toml, &[]);
    assert_eq!(lines.len(), 1, "{lines:?}");
    lines[0].clone()
}

fn unix(path: &Path) -> String {
    format!("unix:{}", path.display())
}

#[test]
fn a_php_fpm_answers_without_running_a_script() {
    let site = Site::new(&[]);
    let dir = PrivateDir::temporary("fpm").expect("a directory");
    let php = PhpFpm::start(dir, &PoolOptions::default()).expect("php-fpm starts");
    let at = unix(php.socket());
    let line = with_php(&site, &at, "www-data");
    assert!(line.starts_with(&format!("php.at {at}: answers (connected as user ")), "{line}");
    assert!(!am_root() || line.contains("user www-data, groups www-data"), "{line}");
    assert_eq!(php.requests(), 0);
    // Each address is tested once, and the sites that use it are named.
    let root = site.root().display().to_string();
    let one = |host: &str| format!("[[site]]\nhost = {host:?}\nroot = {root:?}\n");
    let toml = format!("{}{}[php]\nat = {at:?}\n", one("a.example"), one("b.example"));
    let lines = checked(&site, &toml, &[]);
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(
        lines[0].starts_with(&format!("a.example, b.example: php.at {at}: answers")),
        "{lines:?}"
    );
    assert!(checked(&site, &toml, &["--offline"]).is_empty());
}

#[test]
fn a_socket_without_permission_is_reported_with_its_owner_and_the_remedy() {
    let site = Site::new(&[]);
    let dir = PrivateDir::temporary("fpm").expect("a directory");
    let php = PhpFpm::start(dir, &PoolOptions::default()).expect("php-fpm starts");
    // As root, the harness gives the socket to www-data with mode 660.
    if !am_root() {
        let mode = fs::Permissions::from_mode(0o060);
        fs::set_permissions(php.socket(), mode).expect("its owner may");
    }
    let line = with_php(&site, &unix(php.socket()), "nobody");
    assert!(line.contains("permission denied for user "), "{line}");
    assert!(line.contains("the socket belongs to ") && line.contains(", mode "), "{line}");
    if am_root() {
        let remedy = "www-data:www-data, mode 660; run `usermod --append --groups www-data nobody`, and restart \
                      Pagewell";
        assert!(line.contains("for user nobody, groups nogroup: "), "{line}");
        assert!(line.ends_with(remedy), "{line}");
    }
    fs::set_permissions(php.socket(), fs::Permissions::from_mode(0o600)).expect("its owner may");
    if am_root() {
        let line = with_php(&site, &unix(php.socket()), "nobody");
        assert!(line.contains("set `listen.mode = 0660` and a `listen.group`"), "{line}");
    }
}

#[test]
fn a_socket_behind_a_closed_directory_is_reported() {
    let site = Site::new(&[]);
    let closed = site.at("closed");
    fs::create_dir(&closed).expect("a directory");
    let listener = UnixListener::bind(closed.join("php.sock")).expect("a socket");
    fs::set_permissions(closed.join("php.sock"), fs::Permissions::from_mode(0o666)).expect("set");
    let mode = if am_root() { 0o700 } else { 0o600 };
    fs::set_permissions(&closed, fs::Permissions::from_mode(mode)).expect("set");
    let line = with_php(&site, &unix(&closed.join("php.sock")), "nobody");
    assert!(line.contains("a directory above the socket cannot be searched"), "{line}");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).expect("set");
    drop(listener);
}

#[test]
fn addresses_where_nothing_listens_are_reported() {
    let site = Site::new(&[]);
    let port = Port::take().expect("a port");
    let line = with_php(&site, &port.address().to_string(), "nobody");
    assert!(line.contains("connection refused, nothing listens there: start php-fpm"), "{line}");
    let socket = site.at("left.sock");
    let line = with_php(&site, &unix(&socket), "nobody");
    assert!(line.contains("there is no such socket: start php-fpm"), "{line}");
    // That of the package is started with Pagewell.
    let line = with_php(&site, "unix:/run/pagewell-php/no-such.sock", "nobody");
    assert!(line.contains("(`apt-get install php-fpm`)"), "{line}");
    drop(UnixListener::bind(&socket).expect("a socket"));
    assert!(Address::Unix(socket.clone()).closes());
    fs::set_permissions(&socket, fs::Permissions::from_mode(0o666)).expect("set");
    let line = with_php(&site, &unix(&socket), "nobody");
    assert!(line.contains("connection refused, nothing listens there"), "{line}");
    let toml = format!("[site]\norigin = \"http://{}\"\n", port.address());
    let lines = checked(&site, &toml, &[]);
    let right = format!("warning: site.origin http://{}: connection refused", port.address());
    assert!(lines.len() == 1 && lines[0].starts_with(&right), "{lines:?}");
}

#[test]
fn an_http_server_answers_and_another_protocol_is_noticed() {
    let site = Site::new(&[]);
    let conf = NginxConf { http: String::new(), server: "return 503;".into(), workers: 1 };
    let nginx = start_nginx(PrivateDir::temporary("ngx").expect("a directory"), &conf);
    let nginx = nginx.expect("nginx starts");
    let at = nginx.address().to_string();
    let origin =
        |at: &str| checked(&site, &format!("[site]\norigin = \"http://{at}\"\n"), &[]).concat();
    let line = origin(&at);
    assert!(line.starts_with(&format!("site.origin http://{at}: answers")), "{line}");
    let line = with_php(&site, &at, "nobody");
    assert!(line.contains("the answer is not FastCGI"), "{line}");
    let line = checked(&site, &format!("[site]\norigin = \"https://{at}\"\n"), &[]).concat();
    assert!(line.contains("the server speaks HTTP, not HTTPS"), "{line}");
    // A listener that accepts, and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = silent.local_addr().expect("bound").to_string();
    assert!(origin(&at).contains("connected, but no answer in time"), "{}", origin(&at));
    assert!(with_php(&site, &at, "nobody").contains("raise `pm.max_children`"));
}
