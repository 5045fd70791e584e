//! Reload of the configuration by the real binary. New values apply at once, also on open connections. Pages
//! whose meaning has changed are purged. A setting that needs a restart, or an invalid file, changes nothing.

use acceptance::{
    BOUND, Raw, Site, asked, binary, cache_status, client, counter, get_meanwhile, is_hit,
    trial_report, until,
};
use harness::{Address, Client, Pagewell, Request, Response, Signal};
use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;

const PAGE: &str = "<?php keep(); echo 'the page';";

/// Pagewell in front of an origin that the test plays, with a configuration file that can be rewritten.
struct PlayedSite {
    pagewell: Pagewell,
    origin: TcpListener,
    file: PathBuf,
    site: Site,
}

fn played(config: &str) -> PlayedSite {
    let site = Site::new(&[]);
    let origin = TcpListener::bind("127.0.0.1:0").expect("a port");
    let file = site.at("played.toml");
    let own = PlayedSite::text(&origin, config);
    fs::write(&file, own).expect("written");
    let args = ["--memory", "64M", "--config", &file.display().to_string()];
    let pagewell = Pagewell::start(binary(), &args).expect("pagewell starts");
    PlayedSite { pagewell, origin, file, site }
}

impl PlayedSite {
    fn text(origin: &TcpListener, config: &str) -> String {
        let address = origin.local_addr().expect("bound");
        format!("site.origin = \"http://{address}\"\n{config}\n")
    }

    fn rewrite(&self, config: &str) {
        fs::write(&self.file, PlayedSite::text(&self.origin, config)).expect("written");
    }

    /// Answers the next request.
    fn answer(&self, content: &str) {
        let (mut stream, _) = asked(&self.origin);
        stream.write_all(response(content).as_bytes()).expect("sent");
    }

    fn get(&self, target: &str, content: &str) -> Response {
        let asking = get_meanwhile(&self.pagewell, target);
        self.answer(content);
        asking.join().expect("it ran")
    }
}

fn response(content: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nConnection: close\r\n\
         Content-Length: {}\r\n\r\n{content}",
        content.len()
    )
}

fn reload(pagewell: &Pagewell) -> Response {
    let request = Request::new("POST", "/v1/reload").content(b"{}");
    let request = request.header("Content-Type", "application/json");
    Client::new(pagewell.admin().clone()).within(BOUND).send(&request).expect("an answer")
}

fn reloaded(pagewell: &Pagewell) -> serde_json::Value {
    let answer = reload(pagewell);
    assert_eq!(answer.status, 200, "{}", answer.text());
    serde_json::from_str(&answer.text()).expect("JSON")
}

/// Status, explanation.
fn refused(pagewell: &Pagewell) -> String {
    let answer = reload(pagewell);
    assert_eq!(answer.status, 409, "{}", answer.text());
    let value: serde_json::Value = serde_json::from_str(&answer.text()).expect("JSON");
    assert_eq!(value["error"], "not-reloaded");
    value["explanation"].as_str().expect("a sentence").to_owned()
}

#[test]
fn a_new_rule_applies_at_once_and_purges_pages() {
    let site = Site::new(&[("page.php", PAGE)]);
    let pagewell = site.serve("");
    // A connection whose requests the front answers, and one that the HTTP library has used.
    let (mut plain, mut other) = (Raw::connect(&pagewell), Raw::connect(&pagewell));
    let ask = "GET /page.php HTTP/1.1\r\nHost: a\r\n\r\n";
    let status = |raw: &mut Raw| {
        raw.send(ask);
        raw.answer().header("cache-status").expect("always").to_owned()
    };
    assert!(status(&mut plain).contains("stored"));
    assert!(status(&mut plain).contains("hit") && status(&mut other).contains("hit"));
    site.config("[[rule]]\npath = \"/page.php\"\nbypass = true\n", "");
    let value = reloaded(&pagewell);
    assert_eq!(value["dropped"], 1);
    assert_eq!(value["changed"][0]["key"], "rule[1].bypass");
    assert_eq!(value["changed"][0]["to"], "true");
    assert!(value["changed"][0].get("from").is_none(), "{value}");
    assert!(status(&mut plain).contains("fwd=bypass"), "the connection goes on, by the new rules");
    assert!(status(&mut other).contains("fwd=bypass"));
    assert_eq!(counter(&pagewell, "pages"), 0);
    assert!(pagewell.log().contains("config-changed"), "{}", pagewell.log());
    // And back.
    site.config("", "");
    assert_eq!(reloaded(&pagewell)["changed"].as_array().map(Vec::len), Some(2));
    assert!(status(&mut plain).contains("stored") && status(&mut other).contains("hit"));
}

#[test]
fn rules_that_a_reload_brings_apply_to_pages_and_files_that_were_free() {
    let site = Site::new(&[("page.php", PAGE), ("style.css", "style"), ("moved.tsv", "/x\t/y\n")]);
    let moved = format!("site.redirect_files = [{:?}]\n", site.root().join("moved.tsv"));
    let rules = |more: &str| format!("{moved}[[rule]]\npath = \"/other\"\ndeny = 403\n{more}");
    let pagewell = site.serve(&rules(""));
    let mut plain = Raw::connect(&pagewell);
    let mut status = |path: &str| {
        plain.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
        plain.answer().status
    };
    let mut both = || {
        // The first answers are stored, the second ones compared with the rules, the third ones found free.
        let all = [(); 3].map(|()| (status("/page.php"), status("/style.css")));
        assert!(all.iter().all(|one| *one == all[0]), "{all:?}");
        all[0]
    };
    assert_eq!(both(), (200, 200));
    for path in ["/page.php", "/style.css"] {
        site.config(&rules(&format!("[[rule]]\npath = {path:?}\ndeny = 410\n")), "");
        assert_eq!(reloaded(&pagewell)["dropped"], 0);
        assert_eq!(both(), if path == "/page.php" { (410, 200) } else { (200, 410) });
    }
    site.config(&rules(""), "");
    reloaded(&pagewell);
    assert_eq!(both(), (200, 200));
    site.file("moved.tsv", "/page.php\t/new\n/style.css\t/new.css\n");
    reloaded(&pagewell);
    assert_eq!(both(), (301, 301));
    assert_eq!(counter(&pagewell, "pages"), 1, "the page is still stored");
}

#[test]
fn a_rewrite_that_a_reload_brings_applies_to_a_file_that_was_just_sent() {
    let site = Site::new(&[("page.php", PAGE), ("private.txt", "the file")]);
    let pagewell = site.serve("");
    let mut plain = Raw::connect(&pagewell);
    let mut content = || {
        plain.send("GET /private.txt HTTP/1.1\r\nHost: a\r\n\r\n");
        plain.answer().content
    };
    assert_eq!([content(), content()], ["the file"; 2]);
    site.config("[[rule]]\npath = \"/private.txt\"\nrewrite = \"/page.php\"\n", "");
    reloaded(&pagewell);
    assert_eq!(content(), "the page");
    site.config("", "");
    reloaded(&pagewell);
    assert_eq!([content(), content()], ["the file"; 2]);
}

#[test]
fn a_trial_begins_and_ends_without_a_restart_and_keeps_the_pages() {
    let site = Site::new(&[("page.php", PAGE)]);
    let pagewell = site.serve("");
    let (mut plain, mut other) = (Raw::connect(&pagewell), Raw::connect(&pagewell));
    let status = |raw: &mut Raw| {
        raw.send("GET /page.php HTTP/1.1\r\nHost: a\r\n\r\n");
        raw.answer().header("cache-status").expect("always").to_owned()
    };
    assert!(status(&mut plain).contains("stored"));
    assert!(status(&mut plain).contains("hit") && status(&mut other).contains("hit"));
    site.config("mode = \"trial\"\n", "");
    let value = reloaded(&pagewell);
    assert_eq!((&value["dropped"], &value["changed"][0]["key"]), (&0.into(), &"mode".into()));
    assert!(status(&mut plain).contains("detail=trial"), "also on open connections");
    assert!(status(&mut other).contains("detail=trial"));
    until("both are counted", || trial_report(&pagewell)["requests"] == 2);
    site.config("mode = \"serve\"\n", "");
    reloaded(&pagewell);
    assert!(status(&mut plain).contains("hit") && status(&mut other).contains("hit"));
    assert_eq!(counter(&pagewell, "stored"), 1);
    site.config("mode = \"trial\"\ntrial.budget = \"10%\"\n", "");
    assert_eq!(reloaded(&pagewell)["warnings"].as_array().map(Vec::len), Some(0));
    assert_eq!(trial_report(&pagewell)["requests"], 2, "its record goes on");
    site.config("mode = \"trial\"\n[keys]\nlower_case = true\n", "");
    assert_eq!(
        reloaded(&pagewell)["warnings"][0],
        "The trial has begun a new record, because the rules of the site have changed."
    );
    assert_eq!(trial_report(&pagewell)["requests"], 0, "other rules begin a new one");
}

#[test]
fn pages_with_the_same_meaning_stay_cached() {
    let site = Site::new(&[("page.php", PAGE)]);
    let pagewell = site.serve("");
    let mut client = client(&pagewell);
    client.get("/page.php").expect("an answer");
    site.config("[limits]\nuri_bytes = 100\n", "");
    let value = reloaded(&pagewell);
    assert_eq!(
        (&value["dropped"], &value["changed"][0]["key"]),
        (&0.into(), &"limits.uri_bytes".into())
    );
    assert!(is_hit(&client.get("/page.php").expect("an answer")));
    // It applies to new connections.
    let long = format!("/page.php?{}", "x".repeat(100));
    let refused = acceptance::client(&pagewell).get(&long).expect("an answer");
    assert_eq!(refused.status, 414);
    let nothing = serde_json::json!({ "changed": [], "dropped": 0, "warnings": [] });
    assert_eq!(reloaded(&pagewell), nothing);
}

#[test]
fn a_reload_warns_of_a_rule_that_is_never_reached() {
    let site = Site::new(&[]);
    let pagewell = site.serve("");
    let rule =
        |cookie: &str| format!("[[rule]]\npath = \"/shop/\"\nvary_cookies = [\"{cookie}\"]\n");
    site.config(&rule("nick"), "");
    assert_eq!(reloaded(&pagewell)["warnings"].as_array().map(Vec::len), Some(0));
    site.config(&(rule("nick") + &rule("currency")), "");
    let value = reloaded(&pagewell);
    let warning = value["warnings"][0].as_str().unwrap_or_default();
    assert!(warning.contains("rule 2 is never reached for caching: rule 1 fits"), "{value}");
}

#[test]
fn a_reload_that_needs_a_restart_is_refused_completely() {
    let site = Site::new(&[("page.php", PAGE)]);
    let pagewell = site.serve("");
    let mut client = client(&pagewell);
    client.get("/page.php").expect("an answer");
    site.config(
        "memory = \"65M\"\n[cache]\ndefault_lifetime = \"1s\"\n[limits]\nconnections = 7\n",
        "",
    );
    let said = refused(&pagewell);
    assert!(
        said.starts_with("needs a restart (sudo systemctl restart pagewell)")
            && said.ends_with(": limits.connections, memory"),
        "{said}"
    );
    assert!(is_hit(&client.get("/page.php").expect("an answer")), "nothing was applied");
    for (config, part) in [
        ("[[rule]]\npath = \"/x\"\nstor = false\n", "stor"),
        ("[limits]\nidle_timeout = \"soon\"\n", "at line 2, column 16\n"),
        ("[cache\n", "pagewell.toml: at line 1"),
    ] {
        fs::write(site.at("pagewell.toml"), config).expect("written");
        let said = refused(&pagewell);
        assert!(said.contains(part), "{config}: {said}");
        assert!(is_hit(&client.get("/page.php").expect("an answer")), "nothing was applied");
    }
    fs::remove_file(site.at("pagewell.toml")).expect("it is there");
    assert!(refused(&pagewell).contains("cannot be read"));
    assert_eq!(pagewell.times_logged("not-reloaded"), 5, "{}", pagewell.log());
}

#[test]
fn a_reload_without_a_file_is_refused() {
    let site = Site::new(&[]);
    let pagewell = site.serve_with_args(&[]);
    assert!(refused(&pagewell).contains("started without --config"));
    pagewell.signal(Signal::HUP);
    assert_eq!(client(&pagewell).get("/x").expect("it goes on").status, 200);
}

#[test]
fn a_new_inactive_time_applies_from_the_reload_on() {
    let site = Site::new(&[("page.php", PAGE)]);
    let pagewell = site.serve("");
    client(&pagewell).get("/page.php").expect("an answer");
    site.config("[cache]\ninactive = \"2h\"\n", "");
    pagewell.signal(Signal::HUP);
    until("it is counted from", || counter(&pagewell, "unused_rounds") == 1);
    site.config("[cache]\ninactive = \"1h\"\n", "");
    pagewell.signal(Signal::HUP);
    until("it is counted anew", || counter(&pagewell, "unused_rounds") == 2);
    assert!(is_hit(&client(&pagewell).get("/page.php").expect("an answer")), "it was kept");
    assert_eq!(counter(&pagewell, "unused"), 0);
}

#[test]
fn a_signal_and_the_command_do_the_same() {
    let site = Site::new(&[("page.php", PAGE)]);
    let pagewell = site.serve("");
    site.config("[cache]\nsoft_for = \"5s\"\n", "");
    pagewell.signal(Signal::HUP);
    until("it is logged", || pagewell.log().contains("event=\"reloaded\" changed=1"));
    site.config("[cache]\nsoft_for = \"6s\"\n", "");
    let Address::Tcp(admin) = pagewell.admin() else { panic!("a TCP address") };
    let run = || {
        let mut command = Command::new(binary());
        command.args(["reload", "--admin", &admin.to_string()]).output().expect("it runs")
    };
    let said = run();
    let text = String::from_utf8_lossy(&said.stdout).into_owned();
    assert_eq!(
        text,
        "cache.soft_for: \"5s\" -> \"6s\"\nreloaded: 1 key has changed, pages purged: 0\n"
    );
    site.config("admin = \"127.0.0.1:1\"\n", "");
    let said = run();
    assert_eq!(said.status.code(), Some(1));
    let error = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(error.starts_with("pagewell: needs a restart") && error.contains("admin"), "{error}");
}

#[test]
fn a_render_with_the_old_rules_is_neither_stored_nor_shared() {
    let played = played("");
    let first = get_meanwhile(&played.pagewell, "/a");
    let (mut held, _) = asked(&played.origin);
    played.rewrite("[cookies]\nignore = [\"other\"]");
    assert_eq!(reloaded(&played.pagewell)["dropped"], 0);
    // A new request waits for it, but does not share it.
    let second = get_meanwhile(&played.pagewell, "/a");
    until("he waits", || counter(&played.pagewell, "followers") == 1);
    held.write_all(response("of before").as_bytes()).expect("sent");
    let first = first.join().expect("it ran");
    assert_eq!(first.text(), "of before", "who asked before is answered");
    assert!(!cache_status(&first).contains("stored"), "{}", cache_status(&first));
    let (mut other, _) = asked(&played.origin);
    other.write_all(response("of now").as_bytes()).expect("sent");
    let second = second.join().expect("it ran");
    assert_eq!(
        (second.text().as_str(), cache_status(&second).contains("stored")),
        ("of now", true)
    );
    assert!(is_hit(&client(&played.pagewell).get("/a").expect("an answer")));
}

#[test]
fn only_the_changed_site_loses_its_pages() {
    let config = |more: &str, origin: &str| {
        format!(
            "[[site]]\nhost = \"a.test\"\norigin = \"{origin}\"\n\
             [[site]]\nhost = \"b.test\"\norigin = \"{origin}\"\n{more}\n"
        )
    };
    let site = Site::new(&[]);
    let origin = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}", origin.local_addr().expect("bound"));
    let file = site.at("two.toml");
    fs::write(&file, config("", &address)).expect("written");
    let args = ["--memory", "64M", "--config", &file.display().to_string()];
    let pagewell = Pagewell::start(binary(), &args).expect("pagewell starts");
    let address_of = pagewell.address().clone();
    let ask = |host: &str| {
        let mut client = Client::new(address_of.clone()).host(host).within(BOUND);
        std::thread::spawn(move || client.get("/").expect("an answer"))
    };
    for host in ["a.test", "b.test"] {
        let asking = ask(host);
        let (mut stream, _) = asked(&origin);
        stream.write_all(response(host).as_bytes()).expect("sent");
        assert!(cache_status(&asking.join().expect("it ran")).contains("stored"));
    }
    fs::write(&file, config("[site.keys]\nlower_case = true", &address)).expect("written");
    let value = reloaded(&pagewell);
    assert_eq!(
        (&value["dropped"], &value["changed"][0]["key"]),
        (&1.into(), &"site[2].keys.lower_case".into())
    );
    assert!(is_hit(&ask("a.test").join().expect("it ran")));
    let asking = ask("b.test");
    let (mut stream, _) = asked(&origin);
    stream.write_all(response("again").as_bytes()).expect("sent");
    assert_eq!(asking.join().expect("it ran").text(), "again");
    let third = format!("[[site]]\nhost = \"c.test\"\norigin = \"{address}\"");
    fs::write(&file, config(&third, &address)).expect("written");
    let restart = "site needs a restart, so nothing was applied: sudo systemctl restart pagewell";
    assert_eq!(refused(&pagewell), format!("a new {restart}"));
    let one = format!("site.host = \"a.test\"\nsite.origin = \"{address}\"\n");
    fs::write(&file, one).expect("written");
    assert_eq!(refused(&pagewell), format!("a removed {restart}"));
}

#[test]
fn a_snapshot_of_the_old_configuration_is_not_restored() {
    let snapshot = |site: &Site, more: &str| {
        let directory = site.at("kept").display().to_string();
        format!(
            "{more}\n[snapshot]\ndirectory = {directory:?}\nevery = \"1s\"\nunwatched = \"serve\"\n"
        )
    };
    let mut played = played("");
    let on = snapshot(&played.site, "");
    played.rewrite(&on);
    fs::create_dir(played.site.at("kept")).expect("can be made");
    played.pagewell.stop();
    let args = ["--memory", "64M", "--config", &played.file.display().to_string()];
    played.pagewell = Pagewell::start(binary(), &args).expect("pagewell starts");
    assert_eq!(played.get("/a", "one").status, 200);
    until("a snapshot", || counter(&played.pagewell, "snapshots_written") > 0);
    played.rewrite(&snapshot(&played.site, "[cookies]\nignore = [\"x\"]"));
    assert_eq!(reloaded(&played.pagewell)["dropped"], 1);
    // The old configuration is back in the file, and the process is killed: no snapshot of either configuration
    // may be there.
    let kept = |played: &PlayedSite| {
        let all = fs::read_dir(played.site.at("kept")).expect("it is there").flatten();
        all.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect::<Vec<_>>()
    };
    played.rewrite(&on);
    played.pagewell.kill();
    let left = kept(&played);
    played.pagewell = Pagewell::start(binary(), &args).expect("pagewell starts");
    assert_eq!(counter(&played.pagewell, "snapshot_pages"), 0, "{left:?}");
    let again = played.get("/a", "two");
    assert_eq!(again.text(), "two");
}
