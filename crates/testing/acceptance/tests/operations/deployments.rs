//! Deployments by a `current` link (docs/guide/many-sites.md): the document root is a link to a release. Pagewell
//! resolves it when it starts, so a zero-downtime restart (SIGUSR2) is the last step of a deployment.

use acceptance::{BOUND, Site, binary, client, is_hit, until};
use harness::{Client, Pagewell, PrivateDir, Signal, Wait, cpu};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Makes `current` lead to another release, in one step.
fn switch(site: &Site, release: &str) {
    let new = site.at("root/current.new");
    symlink(Path::new("releases").join(release), &new).expect("a link");
    fs::rename(new, site.at("root/current")).expect("the link is replaced");
}

/// The process that has taken over, by the log of the first one.
pub(super) fn successor(log: &str) -> u32 {
    let pid = log.split("event=\"successor-started\" pid=").nth(1);
    let pid = pid.and_then(|rest| rest.split_whitespace().next()).and_then(|pid| pid.parse().ok());
    pid.unwrap_or_else(|| panic!("no successor: {log}"))
}

#[test]
fn a_changed_link_to_the_release_counts_after_a_restart_without_a_failed_request() {
    let script = |release: &str| format!("<?php keep(600); echo 'page {release}';");
    let (one, two) = (script("1"), script("2"));
    let site = Site::new(&[
        ("releases/1/public/index.php", &one),
        ("releases/1/public/version.txt", "file 1"),
        ("releases/2/public/index.php", &two),
        ("releases/2/public/version.txt", "file 2"),
    ]);
    switch(&site, "1");
    let root = site.at("root/current/public").display().to_string();
    let config = site.config("", "").display().to_string();
    // Addresses that the other process has, too: it would choose another port for 0.
    let [listen, admin] =
        ["site.sock", "admin.sock"].map(|name| format!("unix:{}", site.at(name).display()));
    let mut serve = Command::new(binary());
    serve.args(["serve", root.as_str(), "--memory", "64M", "--config", &config]);
    serve.args(["--listen", &listen, "--admin", &admin]);
    let dir = PrivateDir::temporary("deployed").expect("a directory can be made");
    let mut first = Pagewell::start_command(dir, &mut serve).expect("pagewell starts");
    let get = |path: &str| {
        Client::new(first.address().clone()).within(BOUND).get(path).expect("an answer")
    };
    assert_eq!(get("/").text(), "page 1");
    until("the page is stored", || is_hit(&get("/")));

    let (is_over, count) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|threads| {
        // Each request has a connection of its own.
        threads.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let text = get("/version.txt").text();
                assert!(text == "file 1" || text == "file 2", "{text}");
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
        let requested = || count.load(Ordering::Relaxed);
        until("requests are sent", || requested() > 0);
        switch(&site, "2");
        assert_eq!(get("/version.txt").text(), "file 1", "the link was resolved at the start");
        first.signal(Signal::USR2);
        until("the first has ended", || !cpu::is_running(first.pid()));
        let before = requested();
        until("requests are sent to the other process", || requested() > before + 1);
        is_over.store(true, Ordering::Relaxed);
    });
    assert_eq!(get("/version.txt").text(), "file 2");
    let purged = first.invalidate("{\"all\":true}").expect("an answer");
    assert_eq!(purged.status, 200, "{}", purged.text());
    assert_eq!(client(&first).get("/").expect("an answer").text(), "page 2");

    let pid = successor(&first.log());
    let id = rustix::process::Pid::from_raw(pid as i32).expect("a process");
    rustix::process::kill_process(id, rustix::process::Signal::TERM).expect("it runs");
    until("its successor has ended", || !cpu::is_running(pid));
    assert!(matches!(first.wait(BOUND), Wait::Ended(status) if status.success()));
}
