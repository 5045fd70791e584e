//! Panics in the real binary: what they end, and what continues. The tests provoke them, which is only possible
//! in a test build (feature `settable-clock`).
//!
//! After each panic all other clients are served, no resources are leaked, and the panic is counted and logged.

use acceptance::{BOUND, Raw, Site, client, counter, get_meanwhile, is_hit, until};
use harness::{Client, Pagewell, Request, Wait};

const WAITS: &str = "<?php keep(); note('started'); wait_for('go'); echo 'whole';";

/// Makes the next request that reaches this place panic.
fn provoke(pagewell: &Pagewell, place: &str) {
    let call = Request::new("POST", "/v1/panic").header("Content-Type", "application/json");
    let call = call.content(format!("{{\"at\":\"{place}\"}}").as_bytes());
    let answer = Client::new(pagewell.admin().clone()).send(&call).expect("an answer");
    assert_eq!(answer.status, 200, "{}", answer.text());
}

/// Checks that the panic was counted and logged with its place, and that nothing is left behind.
fn is_over(pagewell: &Pagewell, panics: u64) {
    assert_eq!(counter(pagewell, "panics"), panics);
    assert!(pagewell.log().contains("event=\"panicked\" place=crates/"), "{}", pagewell.log());
    for left in ["followers", "leases", "origin_places_taken", "origin_queue"] {
        until(left, || counter(pagewell, left) == 0);
    }
}

#[test]
fn a_panic_ends_only_its_connection() {
    let site = Site::new(&[("page.php", "<?php keep(); echo 'whole';")]);
    let pagewell = site.serve("");
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: a.test\r\n\r\n");
    let mut others: Vec<_> = (0..8).map(|_| Raw::with(&pagewell, get("/page.php"))).collect();
    for other in &mut others {
        assert_eq!(other.answer().content, "whole");
    }
    for round in 1..=20 {
        let mut unlucky = Raw::with(&pagewell, get("/page.php"));
        unlucky.answer();
        provoke(&pagewell, "request");
        // The page is not cached, so the request reaches the place of the panic.
        unlucky.send(get(&format!("/page.php?{round}")));
        assert_eq!(unlucky.rest(), "", "the connection ends without an answer");
        assert_eq!(counter(&pagewell, "panics"), round);
        for other in &mut others {
            other.send(get("/page.php"));
            assert_eq!(other.answer().content, "whole");
        }
    }
    until("the places of the others are free", || counter(&pagewell, "connections") == 8);
    drop(others);
    until("all are", || counter(&pagewell, "connections") == 0);
    is_over(&pagewell, 20);
    let metrics = Client::new(pagewell.admin().clone()).get("/metrics").expect("an answer");
    assert!(metrics.text().contains("\npagewell_panics_total 20\n"), "{}", metrics.text());
}

#[test]
fn followers_of_a_render_that_panics_are_served_by_another() {
    let site = Site::new(&[("waits.php", WAITS)]);
    let pagewell = site.serve("");
    let leads = get_meanwhile(&pagewell, "/waits.php");
    site.wait_for("started");
    let follow: Vec<_> = (0..5).map(|_| get_meanwhile(&pagewell, "/waits.php")).collect();
    until("five follow", || counter(&pagewell, "followers") == 5);
    provoke(&pagewell, "render");
    site.note("go");
    let response = leads.join().expect("it ran");
    assert_eq!(response.status, 500);
    assert!(response.text().contains("bug"), "{}", response.text());
    for one in follow {
        let response = one.join().expect("it ran");
        assert_eq!((response.status, response.text().as_ref()), (200, "whole"));
    }
    assert_eq!(counter(&pagewell, "renders"), 2, "one that panicked, and one for all who waited");
    assert!(is_hit(&client(&pagewell).get("/waits.php").expect("an answer")));
    is_over(&pagewell, 1);
}

#[test]
fn a_panic_in_the_store_ends_the_process() {
    let site = Site::new(&[("page.php", "<?php keep(); echo 'whole';")]);
    let mut pagewell = site.serve("");
    assert_eq!(client(&pagewell).get("/page.php").expect("an answer").text(), "whole");
    provoke(&pagewell, "store");
    // The process ends while it answers.
    let _ = client(&pagewell).get("/page.php?other");
    let Wait::Ended(status) = pagewell.wait(BOUND) else { panic!("it goes on") };
    assert_eq!(status.code(), Some(70));
    assert!(pagewell.log().contains("event=\"store-broken\""), "{}", pagewell.log());
}
