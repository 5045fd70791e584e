//! Collapse, turn by turn: which request leads, follows, is refused or renders alone, and that nothing is
//! left behind.
//!
//! One thread: followers do not wait here, they check and continue. Interleavings: `model.rs`, `loom.rs`.

use crate::common::*;
use page_store::{
    Arrival, Change, FillLimits, Fills, Follower, Key, Leader, SoloReason, SoloRender, Store,
    StoreRefusal, Strength, Turn,
};

struct Table {
    store: Store<TestPayload>,
    fills: Fills<&'static str>,
}

impl Table {
    fn new(limits: FillLimits) -> Self {
        Self { store: roomy(), fills: Fills::new(limits) }
    }

    fn key<'k>(&self, url: &'k str) -> Key<'k> {
        self.store.key(url.as_bytes())
    }

    fn turn(&self, url: &str) -> Turn<&'static str> {
        self.turn_at(url, 0)
    }

    fn turn_at(&self, url: &str, now_ms: u64) -> Turn<&'static str> {
        self.fills.turn(&self.store, self.key(url), self.store.number(), now_ms, || "wait")
    }

    fn again(&self, refused: Follower<&'static str>) -> Turn<&'static str> {
        self.fills.again(&self.store, refused, 0, || "wait")
    }
}

fn lead(turn: Turn<&'static str>) -> Leader<&'static str> {
    match turn {
        Turn::Lead(leader) => leader,
        other => panic!("should lead: {other:?}"),
    }
}

fn follow(turn: Turn<&'static str>) -> Follower<&'static str> {
    match turn {
        Turn::Follow(follower) => follower,
        other => panic!("should follow: {other:?}"),
    }
}

fn alone(turn: Turn<&'static str>) -> SoloRender {
    match turn {
        Turn::Alone(alone) => alone,
        other => panic!("should be alone: {other:?}"),
    }
}

#[test]
fn the_first_leads_and_the_others_follow() {
    let table = Table::new(FillLimits::default());
    let leader = lead(table.turn("/a"));
    let follower = follow(table.turn("/a"));
    assert_eq!((*leader.waiter(), *follower.waiter()), ("wait", "wait"));
    assert_eq!((leader.key(), leader.followers()), (table.key("/a"), 1));
    assert_eq!(follower.lease(), leader.lease().number());
    let other = lead(table.turn("/b"));
    assert_eq!(table.fills.stats().in_progress, 2);
    drop((leader, other));
    assert_eq!(table.fills.stats().in_progress, 0);
    assert_eq!(table.store.stats().leases, 1, "a follower keeps the lease of its render");
    drop(follower);
    assert_eq!(table.store.stats().leases, 0);
    lead(table.turn("/a"));
}

#[test]
fn a_follower_that_came_after_a_change_goes_to_a_newer_render() {
    let table = Table::new(FillLimits::default());
    let old = lead(table.turn("/a"));
    let early = follow(table.turn("/a"));
    drop_all(&table.store, tag("t"));
    let late = [(); 3].map(|()| follow(table.turn("/a")));
    let dependencies = depends(&table.store, "/a", &["t"]);
    assert_eq!(early.may_share(&table.store, &dependencies), Ok(()));
    for follower in &late {
        let refused = follower.may_share(&table.store, &dependencies);
        assert_eq!(refused, Err(StoreRefusal::ChangedSince));
    }
    let [one, two, three] = late;
    let new = lead(table.again(one));
    let two = follow(table.again(two));
    drop(old);
    let three = follow(table.again(three));
    assert!(new.lease().number() > early.lease());
    drop_all(&table.store, tag("t"));
    for follower in [two, three] {
        assert_eq!(follower.arrived(), Arrival::Before);
        assert_eq!(follower.may_share(&table.store, &dependencies), Ok(()));
    }
    drop((new, early));
    assert_eq!((table.fills.stats().in_progress, table.store.stats().leases), (0, 0));
    assert_eq!((table.fills.stats().led, table.fills.stats().followed), (2, 6));
}

#[test]
fn while_a_change_is_open_no_request_waits_for_more_than_two_renders() {
    let table = Table::new(FillLimits::default());
    let change = Change { site: SITE, targets: &[tag("t")] };
    let opened = table.store.open(&change, Strength::Drop);
    let dependencies = depends(&table.store, "/a", &["t"]);
    let _first = lead(table.turn("/a"));
    let followers = [(); 4].map(|()| follow(table.turn("/a")));
    let mut led = Vec::new();
    for follower in followers {
        let refused = follower.may_share(&table.store, &dependencies);
        assert_eq!(refused, Err(StoreRefusal::Unsettled));
        match table.again(follower) {
            Turn::Lead(leader) => led.push(leader),
            Turn::Follow(follower) => {
                assert_eq!(follower.may_share(&table.store, &dependencies), Ok(()));
            }
            Turn::Alone(alone) => panic!("{alone:?}"),
        }
    }
    assert_eq!(led.len(), 1);
    table.store.settle(opened);
}

#[test]
fn a_dropped_leader_is_replaced_by_a_follower() {
    let table = Table::new(FillLimits::default());
    let leader = lead(table.turn("/a"));
    let followers = [(); 2].map(|()| follow(table.turn("/a")));
    let panicking = std::panic::AssertUnwindSafe(|| {
        let _leader = leader;
        panic!("the render failed");
    });
    std::panic::catch_unwind(panicking).unwrap_err();
    let [one, two] = followers;
    let _leader = lead(table.again(one));
    follow(table.again(two));
}

#[test]
fn the_end_of_an_old_render_does_not_take_the_newer_one_out() {
    let table = Table::new(FillLimits::default());
    let old = lead(table.turn("/a"));
    let new = lead(table.again(follow(table.turn("/a"))));
    drop(old);
    let follower = follow(table.turn("/a"));
    drop(new);
    lead(table.turn("/a"));
    drop(follower);
}

#[test]
fn too_many_followers_render_alone() {
    let table = Table::new(FillLimits { followers_max: 1, alone_max: 64 });
    let leader = lead(table.turn("/a"));
    let follower = follow(table.turn("/a"));
    assert_eq!(alone(table.turn("/a")).why, SoloReason::TooManyFollowers);
    drop(follower);
    assert_eq!(leader.followers(), 0);
    follow(table.turn("/a"));
    assert_eq!(table.fills.stats().alone_too_many_followers, 1);
}

#[test]
fn a_request_that_joins_never_leads_and_obeys_the_same_rules() {
    let table = Table::new(FillLimits { followers_max: 2, alone_max: 64 });
    let join = |url, now_ms| table.fills.join(table.key(url), table.store.number(), now_ms);
    assert!(join("/a", 0).is_none(), "nothing is in progress");
    assert_eq!(table.fills.stats().in_progress, 0);
    let leader = lead(table.turn("/a"));
    assert!(join("/b", 0).is_none());
    let early = join("/a", 0).expect("joined");
    drop_all(&table.store, tag("t"));
    let late = join("/a", 0).expect("joined");
    assert!(join("/a", 0).is_none(), "as many follow as may");
    let dependencies = depends(&table.store, "/a", &["t"]);
    assert_eq!(early.may_share(&table.store, &dependencies), Ok(()));
    assert_eq!(late.may_share(&table.store, &dependencies), Err(StoreRefusal::ChangedSince));
    drop(early);
    leader.not_shareable(1_000);
    assert!(join("/a", 999).is_none(), "what it renders is nobody else's");
    join("/a", 1_000).expect("joined");
    drop((leader, late));
    assert!(join("/a", 1_000).is_none());
    assert_eq!((table.fills.stats().led, table.fills.stats().followed), (1, 3));
    assert_eq!((table.fills.stats().in_progress, table.store.stats().leases), (0, 0));
}

#[test]
fn every_request_renders_an_unshareable_page_until_its_expiry() {
    let table = Table::new(FillLimits::default());
    let leader = lead(table.turn_at("/a", 1_000));
    let follower = follow(table.turn_at("/a", 1_000));
    leader.not_shareable(2_000);
    let one = alone(table.again(follower));
    assert_eq!((one.why, one.lease.number()), (SoloReason::NotShareable, table.store.number()));
    drop(leader);
    assert_eq!(alone(table.turn_at("/a", 1_999)).why, SoloReason::NotShareable);
    lead(table.turn_at("/b", 1_999));
    lead(table.turn_at("/a", 2_000));
    let leader = lead(table.turn_at("/a", 2_000));
    leader.not_shareable(9_000);
    drop(leader);
    table.fills.shareable(table.key("/a"));
    lead(table.turn_at("/a", 2_001));
    assert_eq!(table.fills.stats().alone_not_shareable, 2);
}
