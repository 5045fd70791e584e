//! The waiting for a place: interleavings of the table in `places`.

use super::*;
use crate::admission::{OriginClass, SharedLevel};
use miss_control::MissGroup;
use telemetry::client::PageAtOrigin;

/// Longer than any test takes.
const LONG: Duration = Duration::from_secs(600);

/// Places of an origin with this mode and queue. Unless it is overloaded, no wait ends by time.
fn places(count: usize, mode: MissesMode, queue: usize) -> Arc<Places> {
    let queue = QueueLimits { longest_wait: LONG, ..QueueLimits::new(count, queue, usize::MAX) };
    let limits = Limits { origin_queue_timeout: LONG, ..Limits::default() };
    Arc::new(Places::with(queue, &limits, (mode, 1 << 20)))
}

fn admission(level: ClientLevel, url: &str) -> Admission {
    Admission {
        class: OriginClass::Page,
        level: SharedLevel::new(level, 0),
        group: MissGroup::of(MissKind::Page, url),
        address: None,
        page: None,
        network: None,
        agent: None,
    }
}

fn unknown() -> Admission {
    admission(ClientLevel::Unknown, "/")
}

type Waiter = tokio::task::JoinHandle<Result<OriginPermit, Failure>>;

/// Has a request wait, and returns when it does.
async fn wait(places: &Arc<Places>, admission: Admission) -> Waiter {
    let (others, own) = (places.waiting(), places.clone());
    let waiter = tokio::spawn(async move { own.enter(&admission).await });
    while places.waiting() == others {
        tokio::task::yield_now().await;
    }
    waiter
}

#[tokio::test]
async fn a_place_is_spare_while_one_is_free_and_no_request_waits() {
    let places = places(1, MissesMode::Observe, 10);
    assert!(places.is_one_to_spare());
    let place = places.enter(&unknown()).await.unwrap();
    assert!(!places.is_one_to_spare());
    let waiting = wait(&places, unknown()).await;
    drop(place);
    let place = waiting.await.unwrap().unwrap();
    assert!(!places.is_one_to_spare());
    drop(place);
    assert!(places.is_one_to_spare());
}

#[tokio::test]
async fn a_reference_render_leaves_one_place_for_a_client() {
    let places = places(3, MissesMode::Observe, 10);
    let one = places.enter_if_two_are_free(&unknown()).expect("three are free");
    let two = places.enter_if_two_are_free(&unknown()).expect("two are free");
    assert!(places.enter_if_two_are_free(&unknown()).is_none(), "one is free");
    let client = places.enter(&unknown()).await.expect("a client gets the last one");
    let waiting = wait(&places, unknown()).await;
    drop((one, two));
    let selected = waiting.await.expect("no panic").expect("it is selected first");
    assert!(places.enter_if_two_are_free(&unknown()).is_none(), "one is free");
    drop((client, selected));
    drop(places.enter_if_two_are_free(&unknown()).expect("all are free"));
    assert_eq!((places.taken(), places.waiting()), (0, 0));
}

#[tokio::test]
async fn a_waiter_that_leaves_is_not_selected() {
    let places = places(1, MissesMode::Observe, 10);
    let place = places.enter(&unknown()).await.unwrap();
    let (gone, waiting) = (wait(&places, unknown()).await, wait(&places, unknown()).await);
    gone.abort();
    assert!(gone.await.unwrap_err().is_cancelled());
    assert_eq!(places.waiting(), 1);
    drop(place);
    drop(waiting.await.unwrap().unwrap());
    assert_eq!((places.taken(), places.waiting()), (0, 0));
}

/// The runtime has one thread, so the waiter cannot run between its selection and the abortion.
#[tokio::test]
async fn the_place_of_a_waiter_that_leaves_when_it_is_selected_goes_to_the_next() {
    let places = places(1, MissesMode::Observe, 10);
    let place = places.enter(&unknown()).await.unwrap();
    let (gone, waiting) = (wait(&places, unknown()).await, wait(&places, unknown()).await);
    drop(place);
    assert_eq!((places.taken(), places.waiting()), (1, 1), "selected");
    gone.abort();
    assert!(gone.await.unwrap_err().is_cancelled());
    drop(waiting.await.unwrap().unwrap());
    assert_eq!((places.taken(), places.waiting()), (0, 0));
}

#[tokio::test]
async fn a_waiter_that_gives_way_is_deferred() {
    let places = places(1, MissesMode::Protect, 1);
    let place = places.enter(&unknown()).await.unwrap();
    let crawler = wait(&places, unknown()).await;
    let own = places.clone();
    let known = admission(ClientLevel::Known, "/");
    let known = tokio::spawn(async move { own.enter(&known).await });
    assert_eq!(crawler.await.unwrap().unwrap_err(), Failure::Deferred);
    drop(place);
    assert!(known.await.unwrap().is_ok());
    assert_eq!(places.figures().deferred, 1);
}

#[tokio::test]
async fn a_write_or_fragment_of_a_flood_that_gives_way_is_refused_and_not_deferred() {
    let of_kind = |class, kind, level| {
        let group = MissGroup::of(kind, "/comment");
        Admission { class, group, ..admission(level, "/comment") }
    };
    for (class, kind) in
        [(OriginClass::Write, MissKind::Write), (OriginClass::Fragment, MissKind::Part)]
    {
        let places = places(1, MissesMode::Protect, 1);
        let place = places.enter(&unknown()).await.unwrap();
        let flood = wait(&places, of_kind(class, kind, ClientLevel::Unknown)).await;
        let own = places.clone();
        let login = of_kind(OriginClass::Write, MissKind::Write, ClientLevel::Confirmed);
        let login = tokio::spawn(async move { own.enter(&login).await });
        assert_eq!(flood.await.unwrap().unwrap_err(), Failure::Overloaded, "{kind:?}");
        drop(place);
        assert!(login.await.unwrap().is_ok(), "{kind:?}");
        assert_eq!(places.figures().deferred, 0, "{kind:?}");
    }
}

#[test]
fn the_time_of_a_comparison_is_that_of_no_client() {
    let places = places(2, MissesMode::Protect, 10);
    let group = MissGroup::of(MissKind::Page, "/");
    let place = places.line.lock().enter_if_free(group, 2).expect("two are free");
    places.line.release(place, Duration::from_millis(30), true);
    let figures = places.figures();
    assert_eq!((figures.comparison_us, figures.busy_us.iter().sum::<u64>()), (30_000, 0));
    let place = places.line.lock().enter_if_free(group, 2).expect("two are free");
    places.line.release(place, Duration::from_millis(20), false);
    // It needs no lock: with one, this would not end.
    let queue = places.line.lock();
    assert_eq!(places.busy_time(), Duration::from_millis(20));
    drop(queue);
}

/// A place may have become free by time alone, without a request that would give it away.
#[test]
fn a_waiter_whose_longest_wait_ends_gets_a_place_that_is_free_for_it() {
    let places = places(1, MissesMode::Protect, 10);
    let group = MissGroup::of(MissKind::Page, "/");
    let miss = Miss { level: ClientLevel::Unknown, credit: 0, group, address: None };
    let entry = places.line.lock().enter(miss, || panic!("it does not wait"), &mut None);
    let QueueEntry::Place(held) = entry else { panic!("the place is free") };
    let Arrival::Waits { position, mut receiver, .. } = places.line.enter(&unknown()) else {
        panic!("it waits")
    };
    places.line.lock().release(held, Duration::from_millis(30));
    assert_eq!((places.taken(), places.waiting()), (0, 1), "nobody has given it");
    assert!(matches!(position.defer(), Deferral::Gone));
    assert_eq!((places.taken(), places.waiting()), (1, 0));
    drop(receiver.try_recv().expect("its permit is in the channel"));
    assert_eq!((places.taken(), places.figures().deferred), (0, 0));
}

#[tokio::test]
async fn a_page_is_deferred_before_its_first_fragment_or_not_at_all() {
    let places = places(1, MissesMode::Protect, 100);
    let _place = places.enter(&unknown()).await.unwrap();
    let [begun, late] = [(); 2].map(|()| Some(Arc::new(PageAtOrigin::default())));
    let fragment = |page: &Option<Arc<PageAtOrigin>>, address| Admission {
        class: OriginClass::Fragment,
        group: MissGroup::of(MissKind::Part, "/part"),
        address: Some(address),
        page: page.clone(),
        ..unknown()
    };
    for _ in 0..8 {
        wait(&places, fragment(&begun, 7)).await;
    }
    for _ in 0..2 {
        let first = places.enter(&fragment(&late, 7)).await;
        assert_eq!(first.unwrap_err(), Failure::Deferred);
    }
    wait(&places, fragment(&begun, 7)).await;
    wait(&places, fragment(&late, 8)).await;
    // By the request of another address, it has begun.
    wait(&places, fragment(&late, 7)).await;
    assert_eq!((places.waiting(), places.figures().deferred), (11, 1), "one page was deferred");
}

#[tokio::test]
async fn a_follower_raises_its_leader_while_it_waits_and_before() {
    let places = places(1, MissesMode::Protect, 10);
    let place = places.enter(&unknown()).await.unwrap();
    let other = wait(&places, admission(ClientLevel::Known, "/")).await;
    let leader = unknown();
    let level = leader.level.clone();
    let leader = wait(&places, leader).await;
    assert!(level.raise(ClientLevel::Known, 9));
    assert!(!level.raise(ClientLevel::Known, 9), "it has that credit already");
    assert!(level.raise(ClientLevel::Known, 10));
    assert!(level.raise(ClientLevel::Confirmed, 0));
    drop(place);
    let place = leader.await.unwrap().unwrap();
    assert!(!other.is_finished());
    let early = unknown();
    assert!(early.level.raise(ClientLevel::Known, 3));
    assert!(early.level.raise(ClientLevel::Confirmed, 0));
    let early = wait(&places, early).await;
    drop(place);
    drop(early.await.unwrap().unwrap());
    let other = other.await.unwrap().unwrap();
    // A request that was sent comes no earlier: after a wait, and without one.
    let (waited, at_once) = (admission(ClientLevel::Known, "/"), unknown());
    let level = waited.level.clone();
    let waited = wait(&places, waited).await;
    drop(other);
    drop(waited.await.unwrap().unwrap());
    let place = places.enter(&at_once).await.unwrap();
    for level in [level, at_once.level.clone()] {
        assert!(!level.raise(ClientLevel::Confirmed, 0));
    }
    drop(place);
    assert_eq!((places.taken(), places.waiting()), (0, 0));
}

#[tokio::test]
async fn without_protection_the_first_is_the_first_and_none_is_deferred() {
    let places = places(1, MissesMode::Observe, 1);
    let place = places.enter(&unknown()).await.unwrap();
    let crawler = wait(&places, unknown()).await;
    let late = places.enter(&admission(ClientLevel::Confirmed, "/account")).await;
    assert_eq!(late.unwrap_err(), Failure::Overloaded);
    drop(place);
    assert!(crawler.await.unwrap().is_ok());
    assert_eq!(places.figures().deferred, 0);
}
