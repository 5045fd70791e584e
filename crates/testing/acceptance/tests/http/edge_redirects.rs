//! Redirects by rules and redirect files on a site with files and a real php-fpm, over HTTP/1.1 and HTTP/2, and after a
//! changed file. The targets in all their spellings are in `tests/scenarios/edge`.

use acceptance::{Site, binary, cache_status, client, counter, until};
use harness::Pagewell;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

const SCRIPT: &str = "<?php keep(); echo 'ran ', $_SERVER['SCRIPT_NAME'];";

/// A site with a redirect file of these lines.
fn site(lines: &str) -> (Site, PathBuf) {
    let site = Site::new(&[
        ("index.php", SCRIPT),
        ("shop/index.php", SCRIPT),
        ("LICENSE", "a licence"),
        ("page.html", "a page"),
    ]);
    let file = site.at("redirects.tsv");
    fs::write(&file, lines).expect("written");
    (site, file)
}

/// Status and `Location`.
fn asked(pagewell: &Pagewell, path: &str) -> (u16, Option<String>) {
    let response = client(pagewell).get(path).expect("an answer");
    (response.status, response.header("location").map(str::to_owned))
}

fn to(status: u16, location: &str) -> (u16, Option<String>) {
    (status, Some(location.to_owned()))
}

#[test]
fn lines_of_a_file_redirect_files_scripts_and_pages_alike() {
    let (site, file) = site(
        "/page.html\t/new\n/old.php\t/x?y\t302\n/?p=7\t/seven\n/gone\t\t410\n/a%20b\t/c\n/LICENSE\thttps://b.test/l\n",
    );
    let pagewell = site.serve(&format!("site.redirect_files = [{file:?}]\n"));
    for _ in 0..3 {
        for (path, right) in [
            ("/page.html", to(301, "/new")),
            ("/page.html?a=b", to(301, "/new?a=b")),
            ("/%70age.html", to(301, "/new")),
            ("/old.php?a", to(302, "/x?y")),
            ("/?p=7", to(301, "/seven")),
            ("/?utm_source=x&p=7", to(301, "/seven")),
            ("/?p=8", (200, None)),
            ("/gone", (410, None)),
            ("/a%20b", to(301, "/c")),
            ("/LICENSE", to(301, "https://b.test/l")),
            ("/page.htm", (200, None)),
        ] {
            assert_eq!(asked(&pagewell, path), right, "{path}");
        }
    }
    let url = format!("http://{}/page.html", pagewell.address());
    let Output { stdout, .. } = Command::new("nghttp").args(["-nv", &url]).output().expect("runs");
    let head = String::from_utf8_lossy(&stdout);
    assert!(head.contains(":status: 301") && head.contains("location: /new"), "{head}");
    let gone = client(&pagewell).get("/gone").expect("an answer");
    assert_eq!(cache_status(&gone), "pagewell; detail=redirected");
    for (url, part) in [
        ("/old.php?a", "The status is 302, the new address /x?y, by line 2 of "),
        ("/gone", "The status is 410, by line 4 of "),
        ("/?p=7", "by line 3 of "),
    ] {
        let told = pagewell.explain(&format!("{{\"url\":{url:?}}}")).expect("an explanation");
        let told = told.to_string();
        assert!(told.contains(part) && told.contains(&file.display().to_string()), "{told}");
    }
}

#[test]
fn slash_makes_no_loop_with_directories_and_files() {
    let (site, _) = site("");
    let pagewell = site.serve("[[rule]]\npath = \"/**\"\nslash = \"remove\"\n");
    assert_eq!(asked(&pagewell, "/blog/"), to(301, "/blog"));
    assert_eq!(asked(&pagewell, "/shop/"), (200, None));
    assert_eq!(asked(&pagewell, "/shop"), to(301, "/shop/"));
    drop(pagewell);
    let pagewell = site.serve("[[rule]]\nslash = \"add\"\n");
    assert_eq!(asked(&pagewell, "/blog"), to(301, "/blog/"));
    assert_eq!(asked(&pagewell, "/LICENSE"), (200, None));
    assert_eq!(asked(&pagewell, "/shop"), to(301, "/shop/"));
}

#[test]
fn a_changed_file_is_read_again_and_a_wrong_one_is_not_used() {
    let (site, file) = site("/a\t/1\n");
    let config =
        format!("site.redirect_files = [{file:?}]\n[limits]\ncertificate_look = \"10ms\"\n");
    let pagewell = site.serve(&config);
    let page = client(&pagewell).get("/page").expect("an answer");
    assert!(cache_status(&page).contains("stored"));
    assert_eq!(asked(&pagewell, "/a"), to(301, "/1"));
    // The configuration file is changed, too, but not reloaded.
    site.config("[[rule]]\npath = \"/a\"\ndeny = 403\n", "");
    let write = |lines: &str| {
        let next = site.at("next");
        fs::write(&next, lines).expect("written");
        fs::rename(&next, &file).expect("renamed");
    };
    write("/a\t/2\n");
    until("the new line counts", || asked(&pagewell, "/a") == to(301, "/2"));
    let page = client(&pagewell).get("/page").expect("an answer");
    assert!(cache_status(&page).contains("hit"), "redirects purge nothing");
    write("/a\t/3\nwrong\n");
    until("it is reported", || pagewell.log().contains("line 2: write the old path"));
    assert_eq!(asked(&pagewell, "/a"), to(301, "/2"));
    let refused = pagewell.times_logged("not-reloaded");
    write("/a\t/4\n");
    until("the next one counts", || asked(&pagewell, "/a") == to(301, "/4"));
    assert_eq!((refused, counter(&pagewell, "pages")), (1, 1));
    write("/a\t/b\n/b\t/a\n");
    until("the circle is reported", || {
        let log = pagewell.log();
        log.contains("redirects-endless") && log.contains("/a never ends: /a → /b")
    });
}

#[test]
fn check_reports_what_is_wrong_with_redirects() {
    let checked = |lines: &str, config: &str| {
        let (site, file) = site(lines);
        let text = format!(
            "[site]\nroot = {:?}\nredirect_files = {file:?}\n{config}",
            site.root().display().to_string()
        );
        let path = site.at("checked.toml");
        fs::write(&path, text).expect("written");
        let path = path.display().to_string();
        let Output { status, stdout, stderr } = Command::new(binary())
            .args(["check", "--offline", "--config", &path])
            .output()
            .expect("runs");
        (status.success(), String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned())
    };
    let chain =
        |last: usize| -> String { (1..=last).map(|n| format!("/{n}\t/{}\n", n + 1)).collect() };
    assert!(checked(&chain(20), "").0, "20 redirects");
    let long = chain(21);
    for (lines, config, part) in [
        ("/a\t/b\n/b\t/a\n", "", "the redirect of /a never ends: /a → /b → /a ("),
        ("/b/x\t/a/x\n", "[[rule]]\npath = \"/a/**\"\nredirect = \"/b/$1\"\n", ".tsv, line 1)"),
        (
            "",
            "[[rule]]\npath = \"/a/**\"\nredirect = \"/a/b\"\n",
            "rule 1: redirect: never ends: /a/b → /a/b",
        ),
        (&long, "", "the redirect of /1 takes more than 20 redirects, and browsers follow 20"),
        ("/a\tb\n", "", "line 1: \"b\": begin with /"),
    ] {
        let (is_fine, said) = checked(lines, config);
        assert!(!is_fine && said.contains(part), "{part}: {said}");
    }
    for (lines, config, part) in [
        ("/a\t/b\n/a\t/c\n", "", "line 2: never counts"),
        ("/a\t/b\n", "[[rule]]\npath = \"/a\"\ndeny = 403\n", "the redirect of /a never happens"),
        (
            "",
            "[[rule]]\ndeny = 403\n[[rule]]\npath = \"/a\"\ndeny = 404\n",
            "rule 2 is never reached for deny",
        ),
        (
            "",
            "[[rule]]\npath = \"/**\"\nstore = \"1s\"\n[[rule]]\npath = \"/admin/**\"\nbypass = true\n",
            "rule 2 is never reached for caching: rule 1 fits all its requests",
        ),
    ] {
        let (is_fine, said) = checked(lines, config);
        assert!(is_fine && said.contains(part), "{part}: {said}");
    }
}
