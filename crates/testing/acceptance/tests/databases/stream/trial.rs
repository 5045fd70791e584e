//! A trial and an audit on two nodes of a cluster: a change on one ends the pages of both, so it is no difference, also
//! while its write is in flight; a page that one node finds to be a leak is removed on all.

use super::{Machines, ONE, TWO, get, post, shows, stored};
use acceptance::{advance, client, counter, is_hit, trial_found, until};
use harness::{Pagewell, Request, Response};
use std::thread::JoinHandle;

impl Machines {
    fn trial(&self, more: &str) -> Pagewell {
        let trial = "mode = \"trial\"\ntrial.budget = \"100%\"\nphp.children = 4\n";
        self.site.serve(&format!("{trial}{more}{}", self.config("", "")))
    }
}

/// Visits a page, and waits for the end of the comparison.
fn compared(pagewell: &Pagewell, path: &str, text: &str) {
    let before = counter(pagewell, "trial_answers");
    assert_eq!(get(pagewell, path).text(), text, "a visitor gets the answer of the origin");
    until("it is compared", || counter(pagewell, "trial_answers") > before);
}

#[test]
fn a_write_on_one_node_is_no_difference_on_another() {
    let machines = Machines::new();
    let both = [machines.trial(""), machines.trial("")];
    for round in 1..=8 {
        assert_eq!(post(&both[round % 2], &format!("/write.php?n=1&to={round}")).status, 200);
        for node in &both {
            (0..3).for_each(|_| compared(node, ONE, &format!("1={round}")));
        }
    }
    // A change that nobody announces is one.
    both.iter().for_each(|node| (0..3).for_each(|_| compared(node, TWO, "2=old")));
    both.iter().for_each(|node| advance(node, 11));
    machines.truth(2, "new");
    both.iter().for_each(|node| compared(node, TWO, "2=new"));
    for node in &both {
        until("it is found", || {
            advance(node, 61);
            !trial_found(node, true).is_empty()
        });
        // The query is no part of a pattern.
        assert_eq!(trial_found(node, true), ["broken-promise /page.php"], "{}", node.log());
        assert_eq!(node.times_logged("trial-found"), 1, "{}", node.log());
    }
}

/// Sends a write to a node; its script has written, and does not answer before the note `go`.
fn written_and_held(machines: &Machines, node: &Pagewell) -> JoinHandle<Response> {
    let mut client = client(node);
    let request = Request::form("/write.php?n=1&to=new&held", "").header("Host", "paper.test");
    let write = std::thread::spawn(move || client.send(&request).expect("an answer"));
    machines.site.wait_for("written");
    write
}

#[test]
fn a_trial_has_no_verdict_by_a_write_that_is_in_flight_on_another_node() {
    let machines = Machines::new();
    let (here, there) = (machines.trial(""), machines.machine("", ""));
    (0..3).for_each(|_| compared(&here, ONE, "1=old"));
    let write = written_and_held(&machines, &there);
    assert_eq!(get(&here, ONE).text(), "1=new");
    until("the page is watched", || counter(&here, "audit_watched") == 1);
    machines.site.note("go");
    assert_eq!(write.join().expect("it was sent").status, 200);
    until("the watch ends", || counter(&here, "audit_watched") == 0);
    assert_eq!(trial_found(&here, true), [""; 0], "{}", here.log());
}

#[test]
fn an_audit_has_no_verdict_by_a_write_that_is_in_flight_on_another_node() {
    let machines = Machines::new();
    let config = format!("audit = \"1 in 1\"\nphp.children = 4\n{}", machines.config("", ""));
    let (here, there) = (machines.site.serve(&config), machines.machine("", ""));
    stored(&here, ONE);
    until("it is compared", || counter(&here, "audit_compared") == 1);
    let write = written_and_held(&machines, &there);
    // It is not acknowledged.
    assert!(is_hit(&get(&here, ONE)));
    until("the page is watched", || counter(&here, "audit_watched") == 1);
    machines.site.note("go");
    assert_eq!(write.join().expect("it was sent").status, 200);
    until("there is no verdict", || counter(&here, "audit_unjudged") == 1);
    let late = (counter(&here, "audit_late"), counter(&here, "audit_broken_promises"));
    assert_eq!(late, (0, 0), "{}", here.log());
}

#[test]
fn a_leak_that_a_trial_finds_on_one_node_is_removed_on_all() {
    let machines = Machines::new();
    machines.site.file(
        "leak.php",
        "<?php header('Cache-Control: max-age=3600'); echo $_SERVER['HTTP_USER_AGENT'] ?? '';",
    );
    let here = machines.trial("trial.serve = \"100%\"\n");
    let there = machines.machine("", "");
    let visit =
        |node: &Pagewell| super::ask(node, Request::get("/leak.php").header("User-Agent", "odd"));
    until("it is stored", || is_hit(&visit(&there)));
    until("it is found", || {
        visit(&here);
        counter(&here, "audit_purged") > 0
    });
    until("it is removed", || !is_hit(&visit(&there)));
    shows(&there, TWO, "2=old");
}
