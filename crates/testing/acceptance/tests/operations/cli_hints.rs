//! Messages of the commands that cannot do what was meant: a wrong address or token, a name without
//! its option, a purge that matches nothing, two programs at one address, a missing socket of php-fpm.
//! Each message names the remedy.

use acceptance::{Site, binary, client, is_hit, until};
use harness::Pagewell;
use std::fs;
use std::process::{Command, Output};

fn run(args: &[&str]) -> Output {
    let mut command = Command::new(binary());
    command.env_remove("PAGEWELL_ADMIN").env_remove("PAGEWELL_TOKEN_FILE");
    command.args(args).output().expect("it runs")
}

/// The standard error of a command that ends with this exit status.
fn complaint(args: &[&str], status: i32) -> String {
    let output = run(args);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(status), "{args:?}: {text}");
    text
}

fn site() -> Site {
    Site::new(&[("index.php", "<?php keep(); header('Cache-Groups: \"a\"'); echo 'page';")])
}

fn keep(pagewell: &Pagewell, path: &str) {
    let mut client = client(pagewell);
    until("it is stored", || is_hit(&client.get(path).expect("an answer")));
}

#[test]
fn a_text_that_is_no_address_gets_the_one_that_was_meant() {
    for (given, meant) in [
        ("http://127.0.0.1:9881/", "write 127.0.0.1:9881 (or unix:"),
        ("localhost", "write localhost:8081"),
        ("8081/", "write 127.0.0.1:8081"),
    ] {
        let error = complaint(&["stats", "--admin", given], 1);
        assert!(error.contains(meant) && error.contains("PAGEWELL_ADMIN"), "{error}");
    }
    let site = site();
    let root = site.root().display().to_string();
    let error = complaint(&["serve", &root, "--admin", "off"], 1);
    assert!(error.contains("127.0.0.1:8081") && !error.contains("8080"), "{error}");
}

#[test]
fn a_missing_and_a_wrong_token_are_distinguished() {
    let site = site();
    let (token, wrong) = (site.at("token"), site.at("wrong"));
    fs::write(&token, "0123456789abcdef\n").expect("can be written");
    fs::write(&wrong, "0123456789abcdeX\n").expect("can be written");
    let pagewell = site.serve(&format!("admin_token_file = {token:?}\n"));
    let admin = pagewell.admin().to_string();
    let wrong = wrong.display().to_string();
    let none = complaint(&["stats", "--admin", &admin], 1);
    assert!(none.contains("--token-file or PAGEWELL_TOKEN_FILE"), "{none}");
    assert!(!none.contains("Bearer") && !none.contains("another token"), "{none}");
    let other = complaint(&["stats", "--admin", &admin, "--token-file", &wrong], 1);
    assert!(other.contains(&format!("{wrong} has another token")), "{other}");
}

#[test]
fn a_name_without_its_option_gets_the_option() {
    let page = complaint(&["purge", "/news/4/"], 2);
    assert!(page.contains("--url /news/4/"), "{page}");
    let tag = complaint(&["purge", "news:4"], 2);
    assert!(tag.contains("--tag news:4"), "{tag}");
}

#[test]
fn a_purge_that_matches_nothing_succeeds_with_a_hint() {
    let site = site();
    let pagewell = site.serve("");
    let admin = pagewell.admin().to_string();
    let purge = |args: &[&str]| {
        let output = run(&[&["purge", "--admin", &admin], args].concat());
        assert!(output.status.success(), "{output:?}");
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        (text(&output.stdout), text(&output.stderr))
    };
    for (args, hint) in [
        (&["--tag", "b"][..], "`pagewell explain --tag b`"),
        (&["--url", "/page"], "`pagewell explain /page`"),
        (&["--url", "/news/*"], "use --prefix /news/"),
        (&["--tag", "b,c"], "use --tag b --tag c"),
    ] {
        let (out, error) = purge(args);
        assert!(out.starts_with("purged 0 pages (invalidation "), "{out}");
        assert!(error.contains(hint), "{args:?}: {error}");
    }
    keep(&pagewell, "/");
    let (out, error) = purge(&["--url", "/"]);
    assert!(out.starts_with("purged 1 page (invalidation ") && error.is_empty(), "{out}{error}");
    let (_, error) = purge(&["--all"]);
    assert!(error.is_empty(), "an empty cache is purged: {error}");
}

#[test]
fn every_address_in_use_is_named_at_once() {
    let site = site();
    let first = site.serve("");
    let (listen, admin) = (first.address().to_string(), first.admin().to_string());
    let root = site.root().display().to_string();
    let error = complaint(&["serve", &root, "--listen", &listen, "--admin", &admin], 1);
    for words in
        [&*listen, &*admin, "pagewell reload", "--take-over", "--listen 127", "--admin 127"]
    {
        assert!(error.contains(words), "{words}: {error}");
    }
    // Another program, not Pagewell.
    let other = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = other.local_addr().expect("its address").to_string();
    let error = complaint(&["serve", &root, "--listen", &taken, "--admin", "127.0.0.1:0"], 1);
    assert!(error.contains("--listen 127") && !error.contains("--take-over"), "{error}");
}

#[test]
fn an_unusable_socket_of_php_fpm_is_logged_at_the_start() {
    let site = site();
    let file = site.at("no-socket");
    fs::write(&file, "").expect("can be written");
    for (at, words) in [
        ("unix:/no/such.sock".to_owned(), "there is no such socket: start php-fpm"),
        (format!("unix:{}", file.display()), "not a socket"),
    ] {
        let pagewell = site.serve_with_args(&["--php", &at]);
        let log = pagewell.log();
        let line = log.lines().find(|line| line.contains("origin-unusable"));
        assert!(line.is_some_and(|line| line.contains(words) && line.contains(&at)), "{log}");
    }
}

#[test]
fn errors_of_the_file_have_a_line_and_one_suggestion() {
    let site = site();
    let root = site.root().display().to_string();
    let file = site.at("checked.toml");
    let path = file.display().to_string();
    let tls = format!(
        "listen_tls = \"127.0.0.1:0\"\n[site]\nroot = {root:?}\n[[tls]]\ncertificate = \"/no/such.crt\"\nkey = \"/no/such.key\"\n"
    );
    for (text, words) in [
        (&*tls, &["at line 5", "/no/such.crt", &path][..]),
        ("memry = \"1G\"\n", &["did you mean `memory`?"]),
        ("[control]\ntoken_file = \"/x\"\n", &["`admin`", "`admin_token_file`"]),
    ] {
        fs::write(&file, text).expect("can be written");
        for command in [&["check", "--config", &path][..], &["serve", "--config", &path]] {
            let error = complaint(command, 1);
            assert!(words.iter().all(|word| error.contains(word)), "{command:?}: {error}");
            assert!(!error.contains("known there"), "{error}");
        }
    }
}
