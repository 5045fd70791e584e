//! `pagewell check` as the user of the service: keys, directories and ports, tested by root as that user, and what
//! an ordinary user gets a message.

use acceptance::{Site, binary};
use harness::am_root;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// A user that exists on every Debian system.
const USER: &str = "www-data";

/// The output of `pagewell check` with these arguments, and whether it found no errors.
fn check(args: &[&str]) -> (String, bool) {
    let output = Command::new(binary()).arg("check").arg("--offline").args(args).output();
    let output = output.expect("it runs");
    let text = [output.stdout, output.stderr].concat();
    (String::from_utf8_lossy(&text).into_owned(), output.status.success())
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("can be set");
}

/// A site that every user can read, and a configuration with these lines.
fn site(config: &str) -> (Site, String) {
    let site = Site::new(&[("index.php", "<?php echo 1;")]);
    mode(site.root().parent().expect("above it"), 0o755);
    let file = site.at("checked.toml");
    let root = site.root().display().to_string();
    fs::write(&file, format!("{config}\n[site]\nroot = {root:?}\n")).expect("can be written");
    (site, file.display().to_string())
}

#[test]
fn root_tests_certificates_as_the_user_of_the_service() {
    if !am_root() {
        println!("not run: only root can become somebody else");
        return;
    }
    let (site, file) = site("");
    let live = site.at("live");
    fs::create_dir(&live).expect("a directory");
    let (key, certificate) = (live.join("privkey.pem"), live.join("fullchain.pem"));
    let made = rcgen::generate_simple_self_signed(["a.test".to_owned()]).expect("a certificate");
    fs::write(&key, made.signing_key.serialize_pem()).expect("written");
    fs::write(&certificate, made.cert.pem()).expect("written");
    let (root, socket) = (site.root().display().to_string(), site.at("tls.sock"));
    let socket = format!("unix:{}", socket.display());
    let toml = format!(
        "listen_tls = {socket:?}\n[[tls]]\ncertificate = {certificate:?}\nkey = {key:?}\n\
         [site]\nroot = {root:?}\n"
    );
    fs::write(&file, toml).expect("written");
    mode(site.root().parent().expect("above it"), 0o777);
    mode(&live, 0o700);
    mode(&key, 0o600);
    let (text, good) = check(&[&file, "--user", USER]);
    assert!(!good, "{text}");
    for path in [&key, &certificate] {
        let line = format!(
            "{}: user {USER} cannot read it (directory {} is 0700 root) – copy it by a deploy hook: docs/guide/certbot.md",
            path.display(),
            live.display()
        );
        assert!(text.contains(&line), "{line}\n{text}");
    }
    mode(&live, 0o755);
    let (text, good) = check(&[&file, "--user", USER]);
    let line = format!("cannot read it ({} is 0600 root)", key.display());
    assert!(!good && text.contains(&line) && text.contains("1 error"), "{text}");
    mode(&key, 0o644);
    let (text, good) = check(&[&file, "--user", USER]);
    let line = format!("tls.key: {0}: every user can read it: chmod o-r {0}", key.display());
    assert!(good && text.contains("no errors") && text.contains(&line), "{text}");
    // Without a user, root serves, which can read everything.
    mode(&key, 0o600);
    let (text, good) = check(&[&file, "--user", "root"]);
    assert!(good && !text.contains(&line), "{text}");
    // The directory above keeps others away.
    mode(&key, 0o644);
    mode(&live, 0o700);
    let (text, good) = check(&[&file, "--user", "root"]);
    assert!(good && !text.contains(&line), "{text}");
}

#[test]
fn keys_of_acme_that_every_user_can_read_are_named() {
    let (site, file) = site("");
    let (root, socket) = (site.root().display().to_string(), site.at("tls.sock"));
    let keys = [("eab.key_file", site.at("eab.key")), ("seal_key_file", site.at("seal.key"))];
    let [(_, eab), (_, seal)] = &keys;
    fs::write(eab, "AQID").expect("written");
    fs::write(seal, "0f".repeat(32)).expect("written");
    let toml = format!(
        "listen_tls = \"unix:{}\"\n[site]\nroot = {root:?}\nhost = \"a.test\"\n\
         [cluster]\nurl = \"redis://127.0.0.1:1\"\n\
         [acme]\nstorage = \"valkey\"\nseal_key_file = {seal:?}\n\
         eab = {{ key_id = \"k\", key_file = {eab:?} }}\n",
        socket.display()
    );
    fs::write(&file, toml).expect("written");
    for (bits, is_named) in [(0o644, true), (0o640, false)] {
        for (_, path) in &keys {
            mode(path, bits);
        }
        let (text, _) = check(&[&file]);
        // Another warning shows that the configuration was read.
        assert!(text.contains("listens at neither"), "{text}");
        for (key, path) in &keys {
            let path = path.display();
            let line = format!("acme.{key}: {path}: every user can read it: chmod o-r {path}");
            assert_eq!(text.contains(&line), is_named, "{line}\n{text}");
        }
    }
}

#[test]
fn root_tests_directories_as_the_user_of_the_service() {
    if !am_root() {
        println!("not run: only root can become somebody else");
        return;
    }
    let (site, file) = site("");
    let (snapshots, root) = (site.at("snapshots"), site.root().display().to_string());
    let toml = format!(
        "[site]\nroot = {root:?}\n[snapshot]\ndirectory = {:?}\nunwatched = \"serve\"\n",
        snapshots.join("below")
    );
    fs::write(&file, toml).expect("written");
    fs::create_dir(&snapshots).expect("a directory");
    mode(&snapshots, 0o755);
    let (text, good) = check(&[&file, "--user", USER]);
    let line = format!("cannot write to it (directory {} is 0755 root)", snapshots.display());
    assert!(!good && text.contains(&line), "{line}\n{text}");
    mode(&snapshots, 0o777);
    let (text, good) = check(&[&file, "--user", USER]);
    assert!(good, "{text}");
    mode(&site.root(), 0o700);
    let (text, good) = check(&[&file, "--user", USER]);
    let line = format!("{root}: user {USER} cannot read it (directory {root} is 0700 root)");
    assert!(!good && text.contains(&line), "{line}\n{text}");
}

#[test]
fn root_tests_the_directory_of_captures_as_the_user_of_the_service() {
    if !am_root() {
        println!("not run: only root can become somebody else");
        return;
    }
    let (site, file) = site("");
    let (captures, root) = (site.at("captures"), site.root().display().to_string());
    let toml = format!(
        "[site]\nroot = {root:?}\n[php]\nat = \"unix:{}\"\n\
         [[database]]\nurl = \"mysql://p@localhost/shop?socket=/x\"\n\
         [automatic]\nenabled = true\ncapture_directory = {captures:?}\n",
        site.at("php.sock").display()
    );
    fs::write(&file, toml).expect("written");
    fs::create_dir(&captures).expect("a directory");
    mode(&captures, 0o755);
    let (text, good) = check(&[&file, "--user", USER]);
    let shown = captures.display();
    let line =
        format!("{shown}: user {USER} cannot write to it (directory {shown} is 0755 root) – ");
    assert!(!good && text.contains(&line), "{line}\n{text}");
    mode(&captures, 0o777);
    let (text, _) = check(&[&file, "--user", USER]);
    assert!(!text.contains("cannot write to it"), "{text}");
}

#[test]
fn root_tests_the_files_that_a_reload_reads_as_the_user_of_the_service() {
    if !am_root() {
        println!("not run: only root can become somebody else");
        return;
    }
    let (site, file) = site("");
    let (redirects, root) = (site.at("redirects.tsv"), site.root().display().to_string());
    let passwords = site.at("staff.htpasswd");
    fs::write(&redirects, "/a\t/b\n").expect("written");
    fs::write(&passwords, "anna:$apr1$abcdefgh$h9FWgUz3n9YxylKLlR5SQ/\n").expect("written");
    let toml = format!(
        "[site]\nroot = {root:?}\nredirect_files = [{redirects:?}]\n[[rule]]\nauth_file = {passwords:?}\n"
    );
    fs::write(&file, &toml).expect("written");
    mode(&redirects, 0o600);
    mode(&passwords, 0o600);
    let (text, good) = check(&[&file, "--user", USER]);
    assert!(!good && text.contains("2 errors"), "{text}");
    for path in [&redirects, &passwords] {
        let path = path.display();
        let line =
            format!("{path}: user {USER} cannot read it ({path} is 0600 root) – let its group");
        assert!(text.contains(&line), "{line}\n{text}");
    }
    // Root begins and reads them: Pagewell starts, but a reload would fail.
    fs::write(&file, format!("user = {USER:?}\n{toml}")).expect("written");
    let (text, good) = check(&[&file]);
    let warning = "a reload that cannot read it fails";
    assert!(good && text.matches(warning).count() == 2, "{text}");
    mode(&redirects, 0o644);
    mode(&passwords, 0o644);
    let (text, good) = check(&[&file]);
    assert!(good && !text.contains(warning), "{text}");
    // They may belong to the user of the service.
    fs::write(&file, &toml).expect("written");
    for path in [&redirects, &passwords] {
        chown(path, Some(33), None).expect("given");
        mode(path, 0o600);
    }
    let (text, good) = check(&[&file, "--user", USER]);
    assert!(good, "{text}");
    let (text, good) = check(&[&file]);
    let again = format!("pagewell check --offline {file} --user");
    let hint = format!("if the service runs as this user, name it: {again} NAME");
    assert!(!good && text.contains("belongs to the user 33") && text.contains(&hint), "{text}");
    // So may a directory that no other user may write.
    let snapshots = site.at("snapshots");
    let toml = format!(
        "[site]\nroot = {root:?}\n[snapshot]\ndirectory = {snapshots:?}\nunwatched = \"serve\"\n"
    );
    fs::write(&file, toml).expect("written");
    fs::create_dir(&snapshots).expect("a directory");
    chown(&snapshots, Some(33), None).expect("given");
    let (text, good) = check(&["--config", &file]);
    let remedy = format!("pagewell check --offline --config {file} --user {USER}");
    assert!(good && text.contains(&remedy), "nothing names the user: {text}");
    let (text, good) = check(&["--config", &file, "--user", "root"]);
    assert!(!good && text.contains("root cannot write to it"), "{text}");
}

/// The output of the same command as [`USER`], which only root can become.
fn check_as_user(args: &[&str]) -> String {
    let mut command = Command::new(binary());
    let output = command.arg("check").arg("--offline").args(args).uid(33).gid(33).output();
    let output = output.expect("it runs");
    let text = [output.stdout, output.stderr].concat();
    String::from_utf8_lossy(&text).into_owned()
}

#[test]
fn a_user_gets_no_warning_of_a_port_that_pagewell_has() {
    if !am_root() {
        println!("not run: only root can become somebody else");
        return;
    }
    let (site, file) = site("");
    let pagewell = site.serve("");
    let root = site.root().display().to_string();
    let toml = |listen: &str, admin: &str| {
        let text = format!("listen = {listen:?}\nadmin = {admin:?}\n[site]\nroot = {root:?}\n");
        fs::write(&file, text).expect("can be written");
    };
    let (listen, admin) = (pagewell.address().to_string(), pagewell.admin().to_string());
    toml(&listen, &admin);
    for text in [check_as_user(&[&file]), check(&[&file]).0] {
        assert!(text.contains("no errors") && !text.contains("in use by"), "{text}");
    }
    let text = check_as_user(&[&file]);
    let user = format!("PHP scripts run as the user {USER}, as Pagewell does");
    assert!(text.contains(&user), "{text}");
    // Where no Pagewell answers, another program has it.
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("bound").to_string();
    toml(&address, "127.0.0.1:0");
    let text = check_as_user(&[&file]);
    let line = format!("listen: {address}: in use by a process that only root can see: stop that");
    assert!(text.contains(&line), "{text}");
}

#[test]
fn root_tests_the_configuration_and_its_secrets_as_the_user_of_the_service() {
    if !am_root() {
        println!("not run: only root can become somebody else");
        return;
    }
    let (site, file) = site("");
    let root = site.root().display().to_string();
    let (token, password, ranges) =
        (site.at("admin.token"), site.at("database.password"), site.at("crawler.networks"));
    fs::write(&token, "0123456789abcdef").expect("written");
    fs::write(&password, "secret").expect("written");
    fs::write(&ranges, "192.0.2.0/24\n").expect("written");
    let toml = format!(
        "admin_token_file = {token:?}\n[site]\nroot = {root:?}\n\
         [[misses.crawlers]]\nname = \"mine\"\nranges = {ranges:?}\n\
         [[database]]\nurl = \"mysql://p@localhost/shop?socket=/x\"\npassword_file = {password:?}\n\
         [[change]]\ntable = \"x\"\ntags = [\"y\"]\n"
    );
    fs::write(&file, &toml).expect("written");
    let all: [&Path; 4] = [Path::new(&file), &token, &password, &ranges];
    for path in all {
        mode(path, 0o600);
    }
    let (text, good) = check(&[&file, "--user", USER]);
    assert!(!good && text.contains("4 errors"), "{text}");
    for path in all {
        let path = path.display();
        let line = format!(
            "{path}: user {USER} cannot read it ({path} is 0600 root) – let its group read it (chgrp, chmod 640): a \
             start or a reload that cannot read it fails"
        );
        assert!(text.contains(&line), "{line}\n{text}");
    }
    // Root begins and reads them: Pagewell starts, but a reload would fail.
    fs::write(&file, format!("user = {USER:?}\n{toml}")).expect("written");
    let (text, good) = check(&[&file]);
    let warning = "a reload that cannot read it fails";
    assert!(good && text.matches(warning).count() == 4, "{text}");
    fs::write(&file, &toml).expect("written");
    for path in all {
        mode(path, 0o644);
    }
    let (text, good) = check(&[&file, "--user", USER]);
    assert!(good && !text.contains("cannot read it"), "{text}");
}

#[test]
fn root_gets_a_hint_at_the_option_for_another_user() {
    if !am_root() {
        println!("not run: only root can become somebody else");
        return;
    }
    let (_site, file) = site("");
    let hint = "tested as root: --user NAME";
    let (text, good) = check(&[&file]);
    assert!(good && text.contains(hint), "{text}");
    for user in ["root", USER] {
        let (text, _) = check(&[&file, "--user", user]);
        assert!(!text.contains(hint), "{user}: {text}");
    }
}

#[test]
fn an_ordinary_user_gets_a_list_of_tests_that_did_not_run() {
    if am_root() {
        println!("not run: root can become the user (see `of_service` for the report)");
        return;
    }
    let (site, file) = site("");
    let (text, good) = check(&[&file, "--user", USER]);
    assert!(
        good && text.contains("not tested as the user www-data, which only root can"),
        "{text}"
    );
    assert!(text.contains(&site.root().display().to_string()), "{text}");
}

/// It is no error: a site that moves to Pagewell is checked while its former server still has the port.
#[test]
fn a_port_that_another_program_has_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("bound");
    let (_site, file) = site(&format!("listen = \"{address}\"\nadmin = \"127.0.0.1:0\""));
    let (text, good) = check(&[&file]);
    assert!(good && text.contains(&format!("listen: {address}: in use by ")), "{text}");
    let own = std::process::id();
    let by = format!("(process {own}): stop that (");
    assert!(text.contains(&by), "{text}");
    // Or by the service that runs the tests.
    let commands = [format!("kill {own}), or "), "systemctl stop ".to_owned()];
    assert!(commands.iter().any(|one| text.contains(&format!("{by}{one}"))), "{text}");
    drop(taken);
    let (text, _) = check(&[&file]);
    assert!(!text.contains("in use by"), "{text}");
}

#[test]
fn the_file_is_an_argument() {
    let (site, file) = site("");
    let dir = site.root().display().to_string();
    for args in [&[&*file][..], &["--config", &file], &[&dir, "--config", &file]] {
        let (text, good) = check(args);
        assert!(good && text.contains("checked.toml: no errors"), "{args:?}: {text}");
    }
    // A site that is served without a file is checked without one.
    let (text, good) = check(&[&dir]);
    assert!(good && text.contains(&format!("{dir}: no errors")), "{text}");
    let (text, good) = check(&[&file, "--config", &file]);
    assert!(!good && text.contains("two configuration files"), "{text}");
    let (text, good) = check(&[&file, "--user", "nobodyatall"]);
    assert!(!good && text.contains("nobodyatall"), "{text}");
}
