//! The rules of the rationed order, one test each.

use miss_control::{
    ClientLevel, Deferral, HeldPlace, Miss, MissGroup, MissKind, MissOrder, MissQueue,
    OverloadChange, QueueEntry, QueueLimits,
};
use std::time::Duration;

/// How long a place is held.
const MS: Duration = Duration::from_millis(30);

struct Origin {
    queue: MissQueue<String>,
    places: Vec<HeldPlace>,
    now: Duration,
}

impl Origin {
    fn new(places: usize, waiting: usize) -> Origin {
        let limits = QueueLimits::new(places, waiting, usize::MAX);
        let queue = MissQueue::new(limits, MissOrder::Rationed);
        Origin { queue, places: Vec::new(), now: Duration::ZERO }
    }

    fn enter(&mut self, level: ClientLevel, url: &str) -> QueueEntry {
        self.enter_as(level, MissKind::Page, url, None)
    }

    fn enter_as(
        &mut self,
        level: ClientLevel,
        kind: MissKind,
        url: &str,
        address: Option<u64>,
    ) -> QueueEntry {
        self.enter_miss(Miss { level, credit: 0, group: MissGroup::of(kind, url), address }, url)
    }

    fn enter_miss(&mut self, miss: Miss, url: &str) -> QueueEntry {
        self.queue.note_time(self.now);
        let entry = self.queue.enter(miss, || url.to_owned(), &mut None);
        self.queue.note_time(self.now);
        if let QueueEntry::Place(place) = &entry {
            let HeldPlace { level, group, was_alone } = *place;
            self.places.push(HeldPlace { level, group, was_alone });
        }
        entry
    }

    /// Fills all places by confirmed visitors.
    fn fill(&mut self) {
        while matches!(self.enter(ClientLevel::Confirmed, "/account"), QueueEntry::Place(_)) {}
        while self.queue.waiting() > 0 {
            let place = self.places.pop().expect("all are held");
            self.queue.release(place, MS);
            let (_, place) = self.queue.give().expect("one waits");
            self.places.push(place);
        }
    }

    /// Frees one place after the other. Returns the order in which the waiters get it.
    fn order(&mut self) -> Vec<String> {
        let mut order = Vec::new();
        while let Some(place) = self.places.pop() {
            self.queue.release(place, MS);
            order.extend(self.given());
        }
        order
    }

    /// Ends these requests. Returns the URLs of the waiters that get a place then.
    fn end(&mut self, these: std::ops::Range<usize>) -> Vec<String> {
        self.places.drain(these).for_each(|place| self.queue.release(place, MS));
        self.given()
    }

    /// Gives places to all that may have one. Returns their URLs.
    fn given(&mut self) -> Vec<String> {
        let mut given = Vec::new();
        while let Some((url, place)) = self.queue.give() {
            given.push(url);
            self.places.push(place);
        }
        given
    }

    /// Has a request wait for so long that overload begins.
    fn overload(&mut self) {
        self.fill();
        assert!(matches!(self.enter(ClientLevel::Unknown, "/begin"), QueueEntry::Waits(..)));
        self.now += Duration::from_millis(1_001);
        assert_eq!(self.queue.note_time(self.now), Some(OverloadChange::Began));
        assert_eq!(self.order(), ["/begin"]);
    }
}

fn waits(entry: &QueueEntry) -> bool {
    matches!(entry, QueueEntry::Waits(..))
}

#[test]
fn confirmed_visitors_are_first_but_for_one_place_in_eight() {
    let mut origin = Origin::new(1, 100);
    origin.fill();
    assert!(waits(&origin.enter(ClientLevel::Unknown, "/crawled")));
    for n in 0..9 {
        assert!(waits(&origin.enter(ClientLevel::Confirmed, &format!("/{n}"))));
    }
    let order = origin.order();
    assert_eq!(order.iter().position(|url| url == "/crawled"), Some(7), "{order:?}");
}

#[test]
fn a_flood_of_one_group_does_not_delay_another() {
    let mut origin = Origin::new(1, 1_000);
    origin.fill();
    for n in 0..100 {
        assert!(waits(&origin.enter(ClientLevel::Known, &format!("/shop/?a={n}&b=1"))));
    }
    for url in ["/news/4", "/search?q=x", "/shop"] {
        assert!(waits(&origin.enter(ClientLevel::Unknown, url)));
    }
    let order = origin.order();
    for url in ["/news/4", "/search?q=x", "/shop"] {
        let at = order.iter().position(|one| one == url);
        assert!(at.is_some_and(|at| at < 4), "{url}: {at:?}");
    }
}

#[test]
fn within_a_group_the_level_decides() {
    let mut origin = Origin::new(1, 100);
    origin.fill();
    for level in ClientLevel::ALL.into_iter().rev() {
        assert!(waits(&origin.enter(level, &format!("/news/{}", level.as_str()))));
    }
    let names: Vec<String> =
        ClientLevel::ALL.iter().map(|level| format!("/news/{}", level.as_str())).collect();
    assert_eq!(origin.order(), names);
}

#[test]
fn under_overload_places_are_reserved_and_the_newest_is_first() {
    let mut origin = Origin::new(9, 100);
    origin.overload();
    for n in 0..5 {
        origin.enter(ClientLevel::Unknown, &format!("/shop?{n}"));
    }
    assert_eq!((origin.queue.busy(), origin.queue.waiting()), (2, 3), "a quarter for unknown");
    // A third for all but sessions, while there are sessions.
    origin.enter(ClientLevel::Known, "/news/1");
    assert_eq!(origin.given(), ["/news/1"]);
    origin.enter(ClientLevel::Known, "/news/2");
    assert_eq!((origin.given(), origin.queue.busy()), (vec![], 3));
    for n in 3..8 {
        assert_eq!(origin.queue.busy(), n);
        origin.enter(ClientLevel::Confirmed, "/account");
        assert_eq!(origin.given(), ["/account"]);
    }
    // Their requests have taken the place that is free now, until they end.
    assert!(origin.end(0..1).is_empty());
    assert_eq!(origin.end(2..7), ["/news/2"]);
    assert_eq!(origin.end(1..3), ["/shop?4"]);
}

/// A request of a known client with this credit, for a page of one group.
fn known(credit: u8) -> Miss {
    let group = MissGroup::of(MissKind::Page, "/shop?a");
    Miss { level: ClientLevel::Known, credit, group, address: None }
}

/// A crawler like a browser has the credit of one page at each address, a visitor that of a visit.
#[test]
fn of_known_clients_the_oldest_is_first_and_under_overload_the_one_with_the_most_credit() {
    let enter = |origin: &mut Origin, credit: u8, url: &str| {
        assert!(waits(&origin.enter_miss(known(credit), url)));
    };
    let clients = [(6, "crawler"), (9, "visitor"), (6, "newer crawler"), (3, "first page")];
    let mut origin = Origin::new(1, 100);
    origin.fill();
    clients.iter().for_each(|(credit, url)| enter(&mut origin, *credit, url));
    assert_eq!(origin.order(), ["crawler", "visitor", "newer crawler", "first page"]);
    let mut origin = Origin::new(1, 100);
    origin.overload();
    origin.fill();
    clients.iter().for_each(|(credit, url)| enter(&mut origin, *credit, url));
    // A better level comes before any credit, and a worse one after it.
    assert!(waits(&origin.enter(ClientLevel::Unknown, "/shop?a=unknown")));
    let order = ["visitor", "newer crawler", "crawler", "first page", "/shop?a=unknown"];
    assert_eq!(origin.order(), order);
}

/// A visitor with more credit than the crawler waits for a page that the crawler has requested first.
#[test]
fn under_overload_a_raised_waiter_has_the_credit_of_its_follower() {
    let mut origin = Origin::new(1, 100);
    origin.overload();
    origin.fill();
    let QueueEntry::Waits(id, Some(_)) = origin.enter_miss(known(6), "led") else {
        panic!("it waits");
    };
    for (credit, url) in [(9, "9"), (60, "60"), (6, "6")] {
        assert!(waits(&origin.enter_miss(known(credit), url)));
    }
    assert!(origin.queue.raise(id, (ClientLevel::Known, 40)));
    // Neither less credit nor a worse level lowers it.
    assert!(!origin.queue.raise(id, (ClientLevel::Known, 3)));
    assert!(!origin.queue.raise(id, (ClientLevel::Unknown, 60)));
    assert_eq!(origin.order(), ["60", "led", "9", "6"]);
    assert!(!origin.queue.raise(id, (ClientLevel::Known, 60)), "it does not wait any more");

    // A better level comes with its own credit.
    origin.fill();
    let QueueEntry::Waits(id, _) = origin.enter(ClientLevel::Unknown, "/shop?a=led") else {
        panic!("it waits");
    };
    for (credit, url) in [(9, "9"), (60, "60")] {
        assert!(waits(&origin.enter_miss(known(credit), url)));
    }
    origin.queue.raise(id, (ClientLevel::Known, 40));
    assert_eq!(origin.order(), ["60", "/shop?a=led", "9"]);
}

/// The one that gives way is the one that would be served last, in both orders.
#[test]
fn of_a_full_queue_of_known_clients_the_last_in_the_order_gives_way() {
    let credits = [6, 9, 3, 60, 3, 6];
    for is_overloaded in [false, true] {
        let mut origin = Origin::new(1, credits.len());
        if is_overloaded {
            origin.overload();
        }
        origin.fill();
        for (n, credit) in credits.into_iter().enumerate() {
            assert!(waits(&origin.enter_miss(known(credit), &n.to_string())));
        }
        let mut gave_way = Vec::new();
        // A confirmed visitor is no victim, and needs room.
        for _ in credits {
            let group = MissGroup::of(MissKind::Personal, "/account");
            let miss = Miss { level: ClientLevel::Confirmed, credit: 0, group, address: None };
            let mut deferred = None;
            let entry = origin.queue.enter(miss, || "session".to_owned(), &mut deferred);
            assert!(waits(&entry));
            gave_way.extend(deferred);
        }
        let expected = if is_overloaded {
            ["2", "4", "0", "5", "1", "3"]
        } else {
            ["5", "4", "3", "2", "1", "0"]
        };
        assert_eq!(gave_way, expected, "overloaded: {is_overloaded}");
    }
}

/// Others with more credit come all the time: a client with little is deferred after its longest wait, and not later. It
/// gets the next place when none of them waits.
#[test]
fn a_known_client_with_little_credit_is_deferred_in_time_or_served() {
    const LONGEST: Duration = Duration::from_millis(500);
    let mut origin = Origin::new(1, 1_000);
    origin.overload();
    origin.fill();
    let QueueEntry::Waits(poor, Some(longest)) = origin.enter_miss(known(3), "poor") else {
        panic!("it waits");
    };
    assert_eq!(longest, LONGEST);
    // Each 30 ms a place is free, and two more have arrived.
    let until = origin.now + longest;
    while origin.now < until {
        for _ in 0..2 {
            assert!(waits(&origin.enter_miss(known(60), "rich")));
        }
        origin.now += MS;
        let place = origin.places.pop().expect("it is held");
        origin.queue.release(place, MS);
        assert_eq!(origin.given(), ["rich"]);
    }
    assert!(matches!(origin.queue.defer(poor), Deferral::Deferred(url) if url == "poor"));
    // It comes again while others still wait.
    assert!(waits(&origin.enter_miss(known(6), "poor again")));
    let order = origin.order();
    assert_eq!(order.last().map(String::as_str), Some("poor again"), "{order:?}");
    assert_eq!((origin.queue.waiting(), origin.queue.busy()), (0, 0));
}

/// Without sessions, reserved places would be idle.
#[test]
fn places_are_reserved_for_sessions_only_while_there_are_some() {
    let mut origin = Origin::new(9, 100);
    origin.overload();
    for n in 0..9 {
        origin.enter(ClientLevel::Known, &format!("/news/{n}"));
    }
    assert_eq!((origin.queue.busy(), origin.queue.other_places()), (3, 3));
    origin.now += Duration::from_secs(10);
    origin.queue.note_time(origin.now);
    assert_eq!(origin.given().len(), 6);
    assert_eq!((origin.queue.busy(), origin.queue.other_places()), (9, 9));
}

/// Refreshes, cache warming and scheduled tasks are put off while places are rationed, though some are free.
#[test]
fn under_overload_no_place_is_spare_for_background_work() {
    let mut origin = Origin::new(9, 100);
    assert!(origin.queue.has_one_to_spare());
    origin.overload();
    assert_eq!((origin.queue.busy(), origin.queue.waiting()), (0, 0));
    assert!(!origin.queue.has_one_to_spare());
    let group = MissGroup::of(MissKind::Page, "/stored");
    assert!(origin.queue.enter_if_free(group, 2).is_none());
    origin.queue.note_time(origin.now);
    origin.now += Duration::from_secs(11);
    origin.queue.note_time(origin.now);
    assert!(origin.queue.has_one_to_spare());
}

#[test]
fn a_flood_of_writes_has_a_share_of_its_own() {
    let mut origin = Origin::new(8, 1_000);
    origin.overload();
    for n in 0..100 {
        origin.enter_as(ClientLevel::Unknown, MissKind::Write, &format!("/comment?{n}"), None);
    }
    assert_eq!(origin.queue.busy(), 2, "a quarter");
    // Neither pages nor writes of known visitors wait for them.
    for (level, kind) in [
        (ClientLevel::Unknown, MissKind::Page),
        (ClientLevel::Known, MissKind::Write),
        (ClientLevel::Confirmed, MissKind::Write),
    ] {
        origin.enter_as(level, kind, kind.as_str(), None);
        assert_eq!(origin.given(), [kind.as_str()]);
    }
}

#[test]
fn a_verified_crawler_is_never_deferred() {
    let mut origin = Origin::new(1, 3);
    origin.fill();
    let entry = origin.enter_as(ClientLevel::Known, MissKind::Crawler, "/bot", Some(7));
    let QueueEntry::Waits(id, None) = entry else { panic!("{entry:?}") };
    assert!(matches!(origin.queue.defer(id), Deferral::Stays));
    // It is no victim of a full queue, either.
    for n in 0..5 {
        origin.enter(ClientLevel::Unknown, &format!("/shop?{n}"));
    }
    assert!(origin.order().contains(&"/bot".to_owned()));
}

#[test]
fn waits_are_shorter_under_overload_and_writes_wait_as_long_as_any_request() {
    let mut origin = Origin::new(1, 100);
    origin.fill();
    let longest = |entry| match entry {
        QueueEntry::Waits(_, longest) => longest,
        other => panic!("{other:?}"),
    };
    let seconds = Duration::from_secs;
    assert_eq!(longest(origin.enter(ClientLevel::Unknown, "/")), Some(seconds(2)));
    assert_eq!(longest(origin.enter(ClientLevel::Confirmed, "/")), None);
    for kind in [MissKind::Write, MissKind::Part] {
        assert_eq!(longest(origin.enter_as(ClientLevel::OverRate, kind, "/", None)), None);
    }
    origin.now += Duration::from_millis(1_500);
    let late = longest(origin.enter(ClientLevel::Known, "/"));
    assert_eq!(late, Some(Duration::from_millis(500)));
    // After the queue was empty for a while, the waits are those of a calm time.
    origin.order();
    origin.now += seconds(11);
    origin.queue.note_time(origin.now);
    origin.now += seconds(11);
    let ended = origin.queue.note_time(origin.now);
    assert!(matches!(ended, Some(OverloadChange::Ended(_))), "{ended:?}");
}

/// A crawler that comes in bursts: whatever it does, only order and waits change.
#[test]
fn an_overload_that_begins_and_ends_often_refuses_no_visitor_and_costs_no_place() {
    let mut origin = Origin::new(8, 100);
    for cycle in 0..20 {
        for n in 0..60 {
            origin.enter(ClientLevel::Unknown, &format!("/shop?{n}"));
        }
        origin.now += Duration::from_millis(1_001);
        assert_eq!(origin.queue.note_time(origin.now), Some(OverloadChange::Began), "{cycle}");
        for (level, kind) in [
            (ClientLevel::Confirmed, MissKind::Personal),
            (ClientLevel::Known, MissKind::Page),
            (ClientLevel::Known, MissKind::Write),
            (ClientLevel::Unknown, MissKind::Write),
        ] {
            let entry = origin.enter_as(level, kind, &format!("/visitor/{}", kind.as_str()), None);
            assert!(waits(&entry), "{cycle}: {entry:?}");
        }
        let served = origin.order();
        let visitors = served.iter().filter(|url| url.starts_with("/visitor/"));
        assert_eq!(visitors.count(), 4, "{cycle}: {served:?}");
        assert_eq!((origin.queue.busy(), origin.queue.waiting()), (0, 0));
        origin.queue.note_time(origin.now);
        origin.now += Duration::from_millis(10_001);
        let ended = origin.queue.note_time(origin.now);
        assert!(matches!(ended, Some(OverloadChange::Ended(_))), "{cycle}: {ended:?}");
        assert_eq!((origin.queue.unknown_places(), origin.queue.other_places()), (7, 8));
    }
}

/// A page that is being assembled waits for its fragment, whatever else is requested.
#[test]
fn a_fragment_comes_before_the_pages_of_its_group_that_wait() {
    let mut origin = Origin::new(1, 100);
    origin.fill();
    for n in 0..9 {
        origin.enter(ClientLevel::Unknown, &format!("/news/{n}"));
    }
    origin.enter_as(ClientLevel::Unknown, MissKind::Part, "/news/part", None);
    // The turn of the pages began earlier; then it is that of fragments.
    assert_eq!(origin.order().iter().position(|url| url == "/news/part"), Some(1));
}

#[test]
fn writes_and_fragments_of_visitors_alone_are_no_overload() {
    for kind in [MissKind::Write, MissKind::Part] {
        let mut origin = Origin::new(1, 100);
        origin.fill();
        assert!(waits(&origin.enter_as(ClientLevel::Known, kind, "/comment", None)));
        origin.now += Duration::from_secs(5);
        assert_eq!(origin.queue.note_time(origin.now), None, "{kind:?}");
        // Those of clients without evidence are: else a flood would have all places.
        assert!(waits(&origin.enter_as(ClientLevel::Unknown, kind, "/comment", None)));
        origin.now += Duration::from_secs(2);
        assert_eq!(origin.queue.note_time(origin.now), Some(OverloadChange::Began), "{kind:?}");
    }
}

#[test]
fn of_a_full_queue_the_fullest_group_gives_way() {
    let mut origin = Origin::new(1, 5);
    origin.fill();
    for n in 0..4 {
        origin.enter(ClientLevel::Unknown, &format!("/shop?{n}"));
    }
    origin.enter_as(ClientLevel::Returned, MissKind::Write, "/comment", None);
    let mut deferred = None;
    let group = MissGroup::of(MissKind::Page, "/news/1");
    let miss = Miss { level: ClientLevel::OverRate, credit: 0, group, address: None };
    let entry = origin.queue.enter(miss, || "/news/1".to_owned(), &mut deferred);
    assert!(waits(&entry));
    // The oldest is next, so the newest gives way.
    assert_eq!(deferred.as_deref(), Some("/shop?3"));
    // The fullest group is the newcomer's own, and the newcomer has the worst level.
    let entry = origin.enter(ClientLevel::OverRate, "/shop?9");
    assert!(matches!(entry, QueueEntry::Deferred));
}

#[test]
fn of_a_queue_full_of_writes_none_gives_way() {
    let mut origin = Origin::new(1, 2);
    origin.fill();
    for n in 0..2 {
        origin.enter_as(ClientLevel::Returned, MissKind::Write, &format!("/{n}"), None);
    }
    let entry = origin.enter_as(ClientLevel::Returned, MissKind::Write, "/3", None);
    assert!(matches!(entry, QueueEntry::Full));
    assert_eq!(origin.queue.waiting(), 2);
}

#[test]
fn in_a_flood_of_requests_that_are_never_deferred_visitors_with_evidence_are_not_refused() {
    [MissKind::Write, MissKind::Part].into_iter().for_each(assert_visitors_enter_in_a_flood_of);
}

fn assert_visitors_enter_in_a_flood_of(flood: MissKind) {
    let mut origin = Origin::new(1, 5);
    origin.fill();
    for n in 0..5 {
        origin.enter_as(ClientLevel::Unknown, flood, &format!("/comment?{n}"), None);
    }
    let mut enter = |level, kind, url: &str| {
        let mut refused = None;
        let miss = Miss { level, credit: 0, group: MissGroup::of(kind, url), address: None };
        let entry = origin.queue.enter(miss, || url.to_owned(), &mut refused);
        (waits(&entry), refused)
    };
    for (n, (level, kind)) in [
        (ClientLevel::Confirmed, MissKind::Write),
        (ClientLevel::Confirmed, MissKind::Personal),
        (ClientLevel::Known, MissKind::Write),
        (ClientLevel::Known, MissKind::Crawler),
    ]
    .into_iter()
    .enumerate()
    {
        // The newest gives way: the oldest is next.
        let refused = Some(format!("/comment?{}", 4 - n));
        assert_eq!(
            enter(level, kind, kind.as_str()),
            (true, refused),
            "{flood:?} {level:?} {kind:?}"
        );
    }
    assert_eq!(enter(ClientLevel::Unknown, flood, "/comment?9"), (false, None));
    let last = Some("/comment?0".to_owned());
    assert_eq!(enter(ClientLevel::Confirmed, MissKind::Write, "/last"), (true, last));
    // All that wait have evidence.
    assert_eq!(enter(ClientLevel::Confirmed, MissKind::Write, "/none"), (false, None));
    assert_eq!(origin.queue.waiting(), 5);
}

#[test]
fn an_address_has_only_so_many_waiters() {
    let mut origin = Origin::new(1, 1_000);
    origin.fill();
    for n in 0..9 {
        let url = format!("/{n}");
        let entry = origin.enter_as(ClientLevel::Unknown, MissKind::Page, &url, Some(7));
        assert_eq!(waits(&entry), n < 8, "{n}");
    }
    assert!(waits(&origin.enter_as(ClientLevel::Unknown, MissKind::Page, "/x", Some(8))));
    assert!(waits(&origin.enter_as(ClientLevel::Known, MissKind::Page, "/x", Some(7))));
    assert!(waits(&origin.enter_as(ClientLevel::Returned, MissKind::Page, "/x", Some(7))));
    // Ten of them wait. Behind an office's address there are more.
    for n in 10..40 {
        let known = origin.enter_as(ClientLevel::Known, MissKind::Page, &format!("/{n}"), Some(7));
        assert_eq!(waits(&known), n < 32, "{n}");
    }
    let write = origin.enter_as(ClientLevel::Unknown, MissKind::Write, "/x", Some(7));
    assert!(waits(&write), "a write is never deferred");
}

#[test]
fn a_raised_waiter_is_not_deferred_and_is_first() {
    let mut origin = Origin::new(1, 100);
    origin.fill();
    let QueueEntry::Waits(id, Some(_)) = origin.enter(ClientLevel::Unknown, "/led") else {
        panic!("it waits");
    };
    origin.enter(ClientLevel::Known, "/other");
    origin.queue.raise(id, (ClientLevel::Known, 0));
    origin.queue.raise(id, (ClientLevel::Confirmed, 0));
    origin.queue.raise(id, (ClientLevel::Unknown, 0));
    assert!(matches!(origin.queue.defer(id), Deferral::Stays));
    assert_eq!(origin.order(), ["/led", "/other"]);
    assert!(matches!(origin.queue.defer(id), Deferral::Gone));
}

#[test]
fn invented_first_segments_wait_together() {
    let mut origin = Origin::new(1, 10_000);
    origin.fill();
    for n in 0..1_000 {
        origin.enter(ClientLevel::Unknown, &format!("/s{n}/x"));
    }
    assert_eq!(origin.queue.groups(), 33);
    assert_eq!(origin.order().len(), 1_000);
    assert_eq!(origin.queue.groups(), 0);
}

/// Four children, pages of 0.4 s, and a crawl of one group: a visitor without credit who opens a page of another group
/// each second gets it.
#[test]
fn slow_pages_lengthen_the_wait_so_that_other_groups_get_their_turn() {
    const RENDER: Duration = Duration::from_millis(400);
    let (mut origin, mut busy, mut waiting) = (Origin::new(4, 1_000), Vec::new(), Vec::new());
    let (mut deferred, mut visits) = (0, 0);
    for tick in 1..=6_000_u64 {
        origin.now = Duration::from_millis(10 * tick);
        let now = origin.now;
        origin.queue.note_time(now);
        let ended = busy.extract_if(.., |(_, since)| now - *since >= RENDER);
        for (place, _) in ended.collect::<Vec<(HeldPlace, Duration)>>() {
            origin.queue.release(place, RENDER);
        }
        for (id, until, is_visit) in std::mem::take(&mut waiting) {
            if until > now {
                waiting.push((id, until, is_visit));
            } else if matches!(origin.queue.defer(id), Deferral::Deferred(_)) && is_visit {
                deferred += 1;
            }
        }
        let is_visit = tick > 2_000 && tick.is_multiple_of(100);
        for is_visit in [Some(false), is_visit.then_some(true)].into_iter().flatten() {
            visits += u32::from(is_visit);
            let url = if is_visit { "/news/1" } else { "/shop?a&b" };
            match origin.enter(ClientLevel::Unknown, url) {
                QueueEntry::Waits(id, Some(longest)) => waiting.push((id, now + longest, is_visit)),
                QueueEntry::Place(place) => busy.push((place, now)),
                other => assert!(!is_visit, "{other:?}"),
            }
        }
        busy.extend(std::iter::from_fn(|| origin.queue.give()).map(|(_, place)| (place, now)));
        origin.places.clear();
    }
    assert!(origin.queue.is_overloaded());
    assert_eq!((deferred, visits), (0, 40));
}
