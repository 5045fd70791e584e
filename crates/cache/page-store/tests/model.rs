//! Every interleaving of calls of the real store and the real table of renders by a few actors. The actors
//! are requests (arrive, look up, lead or follow, render, store, answer), renders that only store, and
//! writers (commit, then apply the change). Some writers are streams whose events arrive before their rows
//! are visible.
//!
//! The oracle: no request is answered from data older than acknowledged at its arrival; no stored page is
//! older than acknowledged; no two requests have the same page rendered at once. Without the lease check
//! (`--features without-lease-check`) the search finds a stale page. `loom.rs` tests interleavings within
//! the calls.

#![cfg(not(feature = "loom"))]

#[path = "model/actors.rs"]
mod actors;
#[path = "model/search.rs"]
mod search;

use actors::{
    Actor, Limits, Pages, Way, cluster_late, request, store_only, stream, writer, writer_by,
};
use page_store::Strength::{Drop, Mark};
use search::explore;

/// Two pages: `/a` depends on the first datum, `/b` on both.
const A: Pages = Pages { url: "/p/a", reads: &[0], owner: None };
const B: Pages = Pages { url: "/p/b", reads: &[0, 1], owner: None };
/// The first page as a private page of its owner.
const ANNS: Pages = Pages { owner: Some("ann"), ..A };

fn check(name: &str, limits: Limits, actors: fn() -> Vec<Box<dyn Actor>>) {
    let found = explore(limits, actors);
    println!("{name}: {} interleavings, {:?}", found.interleavings, found.stale);
    if cfg!(feature = "without-lease-check") {
        assert!(found.stale.is_some(), "{name}: the search must find what the check prevents");
    } else {
        assert_eq!(found.stale, None, "{name}");
        assert!(found.interleavings > 100, "{name} explores nothing");
    }
}

#[test]
fn two_requests_and_a_change() {
    check("two requests, a change", Limits::ROOMY, || vec![request(A), request(A), writer(0)]);
}

#[test]
fn three_requests_and_a_change() {
    check("three requests, a change", Limits::ROOMY, || {
        vec![request(A), request(A), request(A), writer(0)]
    });
}

#[test]
fn requests_a_stream_and_a_change() {
    check("requests, a stream, a change", Limits::ROOMY, || {
        vec![request(A), request(A), stream(0), writer(0)]
    });
}

#[test]
fn requests_for_two_pages_and_two_changes() {
    check("two pages, two changes", Limits::ROOMY, || {
        vec![request(B), store_only(A), writer(0), writer(1)]
    });
}

#[test]
fn a_soft_change() {
    check("a soft change", Limits::ROOMY, || {
        vec![request(A), store_only(A), actors::soft_writer(0), writer(0)]
    });
}

#[test]
fn a_stream_whose_events_come_before_the_rows() {
    check("early events", Limits::ROOMY, || vec![request(A), request(A), stream(0)]);
}

#[test]
fn a_stream_whose_events_come_after_the_rows() {
    check("late events", Limits::ROOMY, || vec![request(A), request(A), cluster_late(0)]);
}

#[test]
fn two_streams_and_a_change_of_the_same_datum() {
    check("overlapping opens", Limits::ROOMY, || {
        vec![store_only(A), stream(0), stream(0), writer(0)]
    });
}

#[test]
fn a_stream_that_loses_its_place() {
    check("an abandoned open", Limits::ROOMY, || {
        vec![request(A), store_only(A), actors::stream_that_breaks(0)]
    });
}

#[test]
fn a_memory_of_one_change() {
    check("one change remembered", Limits::FORGETFUL, || {
        vec![store_only(A), store_only(B), writer(0), writer(1)]
    });
    check("one change remembered, requests", Limits::FORGETFUL, || {
        vec![request(B), writer(0), writer(1), writer(0)]
    });
}

#[test]
fn so_few_open_names_that_the_site_is_opened() {
    check("the site opened", Limits::NO_OPENS, || vec![request(B), store_only(B), stream(0)]);
}

#[test]
fn changes_by_prefix() {
    check("a prefix", Limits::ROOMY, || vec![request(A), request(A), writer_by(Way::Prefix, Drop)]);
    check("a soft prefix, a tag", Limits::ROOMY, || {
        vec![request(A), store_only(A), writer_by(Way::Prefix, Mark), writer(0)]
    });
}

#[test]
fn changes_by_predicate() {
    check("a predicate", Limits::ROOMY, || {
        vec![request(A), request(A), writer_by(Way::Predicate, Drop)]
    });
    check("two predicates, one soft", Limits::ROOMY, || {
        let soft = writer_by(Way::Predicate, Mark);
        vec![request(A), store_only(A), soft, writer_by(Way::Predicate, Drop)]
    });
    check("one predicate remembered", Limits::FORGETFUL, || {
        let by = || writer_by(Way::Predicate, Drop);
        vec![store_only(A), store_only(B), by(), by()]
    });
}

/// Rule 9: after a response that is not stored, nothing older is found or shared.
#[test]
fn answers_that_are_not_stored() {
    check("a page is taken back", Limits::ROOMY, || {
        vec![request(A), store_only(A), actors::withdrawal(A)]
    });
    check("two requests, a page is taken back", Limits::ROOMY, || {
        vec![request(A), request(A), actors::withdrawal(A)]
    });
    check("a page is taken back twice", Limits::ROOMY, || {
        vec![store_only(A), actors::withdrawal(A), actors::withdrawal(A)]
    });
    check("a page is taken back, a change", Limits::ROOMY, || {
        vec![store_only(A), actors::withdrawal(A), writer(0)]
    });
    check("a page is taken back, one answer remembered", Limits::FORGETFUL, || {
        vec![store_only(A), actors::withdrawal(A), writer(1)]
    });
}

#[test]
fn private_pages() {
    check("a private tag", Limits::ROOMY, || {
        let by = writer_by(Way::OwnerTag("ann"), Drop);
        vec![request(ANNS), request(ANNS), by]
    });
    check("a private tag, soft, and a prefix", Limits::ROOMY, || {
        let by = writer_by(Way::OwnerTag("ann"), Mark);
        vec![request(ANNS), store_only(ANNS), by, writer_by(Way::Prefix, Drop)]
    });
}

/// The search detects a follower that is answered from a render older than it must see.
#[test]
fn following_without_a_check_is_found() {
    let careless =
        explore(Limits::ROOMY, || vec![request(A), actors::careless_request(A), writer(0)]);
    assert!(careless.stale.is_some());
}

/// The search detects a stored render whose rows were not visible when it began.
#[test]
fn settling_too_early_is_found() {
    let early = explore(Limits::ROOMY, || vec![store_only(A), actors::stream_settled_early(0)]);
    assert!(early.stale.is_some());
}
