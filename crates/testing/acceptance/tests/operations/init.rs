//! `pagewell init` for a plain PHP site: the file that it writes serves the site with the php-fpm that it found,
//! and `init --verify` is green. A site whose pages are not cached, or whose visitors share pages, is not.
//!
//! The machine is a tree with links to the real site and socket; so the written paths are real ones.

use acceptance::{Site, binary};
use harness::{Address, Pagewell, PhpFpm, PoolOptions, PrivateDir};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};

/// The tree of a machine with nginx in front, this php-fpm and this site.
fn machine(site: &Site, php: &PhpFpm) -> std::path::PathBuf {
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
    let server =
        format!("http {{ server {{ server_name site.example; root {}; }} }}", root.display());
    file("etc/nginx/nginx.conf", &server);
    tree
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
    let (tree, root, file) =
        (shown(&machine(&site, &php)), shown(&site.root()), shown(&site.at("written.toml")));
    // The link to the site leads out of the tree, and so does the file beside it.
    let below = Path::new(&tree).join(site.at("").strip_prefix("/").expect("an absolute path"));
    let written = below.join("written.toml");
    let output = pagewell(&["init", &root, "--yes", "--machine", &tree, "--output", &file]);
    assert!(output.status.success(), "{}", text(&output));
    assert!(text(&output).contains("nginx stays in front"), "{}", text(&output));
    fs::rename(&written, &file).expect("init has written the file");
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
