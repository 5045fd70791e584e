//! False positives, counted: who is deferred although it is no crawler. A site with two cores, six places and pages of
//! 30 ms, on a clock of its own: every event has its time, so each run is the same.
//!
//! Visitors, programs and the crawler send their requests at fixed times. PHP's cores are shared: a page takes longer
//! by the number of pages beside it. Visitors are counted by what they are, with what the design promises for them.

use miss_control::{
    ClientLevel, ClientTable, Deferral, HeldPlace, Miss, MissGroup, MissKind, MissOrder, MissQueue,
    QueueEntry, QueueLimits, RateOf, RequestRate, ShownEvidence, SiteRates, WaiterId,
    address_number,
};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::hash::{BuildHasherDefault, DefaultHasher};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

const PLACES: usize = 6;
const CORES: usize = 2;
const RENDER: Duration = Duration::from_millis(30);
/// Visits last for 90 s: from then on there are as many that begin as end, and requests are counted.
const COUNTED_FROM: Duration = Duration::from_secs(90);
const LASTS: Duration = Duration::from_secs(210);

/// The kind of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Who {
    /// A visitor with an address of its own.
    Visitor,
    /// One of 500 behind the address of an office.
    Office,
    /// A visitor of a carrier, which shares twelve addresses.
    Carrier,
    /// A phone with an address of an IPv6 network, which is in another network when it repeats a request.
    Mobile,
    /// An import, whose address is exempt: reads and writes.
    Import,
    /// A program whose credential the application has confirmed; its address is not exempt.
    Script,
    /// Three uptime checks with a query of their own each time, whose addresses are exempt.
    Uptime,
    /// The same, not exempt.
    OtherUptime,
    /// A search engine that is verified, with the rate that a site sets by default.
    SearchEngine,
    /// A signed-in visitor.
    SignedIn,
    /// A login or a comment of a visitor.
    Writer,
    Crawler,
}

impl Who {
    /// All visitors.
    const VISITORS: [Who; 6] =
        [Who::Visitor, Who::Office, Who::Carrier, Who::Mobile, Who::SignedIn, Who::Writer];
    /// The programs that the operator knows.
    const PROGRAMS: [Who; 5] =
        [Who::Import, Who::Script, Who::Uptime, Who::OtherUptime, Who::SearchEngine];
}

#[derive(Clone, Debug)]
struct SentMiss {
    who: Who,
    kind: MissKind,
    url: String,
    shown: ShownEvidence,
    tries: u32,
}

/// An event at its time.
#[derive(Clone, Debug)]
enum Event {
    Hits(IpAddr, u32),
    Send(SentMiss),
    /// The longest wait of a waiter is over.
    Patience(WaiterId),
}

#[derive(Default)]
struct Counted {
    requests: BTreeMap<Who, u32>,
    deferred: BTreeMap<Who, u32>,
    lost: BTreeMap<Who, u32>,
    /// The visitors' requests that were deferred although nobody crawls their group.
    deferred_elsewhere: u32,
    lost_elsewhere: u32,
}

struct Simulated {
    queue: MissQueue<SentMiss>,
    clients: ClientTable<BuildHasherDefault<DefaultHasher>>,
    rates: SiteRates,
    /// How often the crawler repeats a deferred request, with the ticket that it got.
    crawler_repeats: u32,
    /// A ticket that the crawler has copied to all its requests.
    crawler_ticket: Option<u64>,
    now: Duration,
    events: BinaryHeap<Reverse<(Duration, u64)>>,
    what: BTreeMap<u64, Event>,
    number: u64,
    /// The pages at PHP, with what each has left on a core alone.
    busy: Vec<(HeldPlace, Duration, Duration)>,
    worked_until: Duration,
    counted: Counted,
}

fn address(number: u32) -> IpAddr {
    IpAddr::V4(Ipv4Addr::from_bits(number))
}

impl Simulated {
    fn new() -> Simulated {
        let limits = QueueLimits::new(PLACES, 1_000, usize::MAX);
        Simulated {
            queue: MissQueue::new(limits, MissOrder::Rationed),
            clients: ClientTable::default(),
            rates: SiteRates::default(),
            crawler_repeats: 0,
            crawler_ticket: None,
            now: Duration::ZERO,
            events: BinaryHeap::new(),
            what: BTreeMap::new(),
            number: 0,
            busy: Vec::new(),
            worked_until: Duration::ZERO,
            counted: Counted::default(),
        }
    }

    fn at(&mut self, time: Duration, event: Event) {
        self.number += 1;
        self.events.push(Reverse((time, self.number)));
        self.what.insert(self.number, event);
    }

    fn run(mut self) -> Counted {
        loop {
            let next = self.events.peek().map(|Reverse((time, _))| *time);
            let done = self.next_done();
            let Some(time) = next.into_iter().chain(done).min().filter(|time| *time < LASTS) else {
                return self.counted;
            };
            self.work(time);
            self.now = time;
            self.queue.note_time(time);
            if next == Some(time) {
                let Some(Reverse((_, number))) = self.events.pop() else { return self.counted };
                if let Some(event) = self.what.remove(&number) {
                    self.happen(event);
                }
            }
            while let Some(at) = self.busy.iter().position(|(_, left, _)| left.is_zero()) {
                let (place, _, begun) = self.busy.swap_remove(at);
                self.queue.release(place, self.now.saturating_sub(begun));
            }
            while let Some((_, place)) = self.queue.give() {
                self.busy.push((place, RENDER, self.now));
            }
            self.queue.note_time(time);
        }
    }

    /// How much slower a page is because of those beside it.
    fn slower(&self) -> u32 {
        self.busy.len().div_ceil(CORES).max(1) as u32
    }

    fn next_done(&self) -> Option<Duration> {
        let least = self.busy.iter().map(|(_, left, _)| *left).min()?;
        Some(self.worked_until + least * self.slower())
    }

    fn work(&mut self, until: Duration) {
        let worked = (until - self.worked_until) / self.slower();
        for (_, left, _) in &mut self.busy {
            *left = left.saturating_sub(worked);
            // Divisions leave a nanosecond.
            if *left < Duration::from_micros(1) {
                *left = Duration::ZERO;
            }
        }
        self.worked_until = until;
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Hits(address, hits) => self.clients.add(address, hits, self.now),
            Event::Send(sent) => self.send(sent),
            Event::Patience(id) => {
                if let Deferral::Deferred(sent) = self.queue.defer(id) {
                    self.deferred(sent);
                }
            }
        }
    }

    fn send(&mut self, sent: SentMiss) {
        if sent.tries == 0 && self.now >= COUNTED_FROM {
            *self.counted.requests.entry(sent.who).or_default() += 1;
        }
        let (level, credit) = self.clients.note_miss_of(&sent.shown, self.now);
        let (level, kind) = match (sent.who, sent.kind) {
            (Who::SearchEngine, _) if self.is_in_rate() => (ClientLevel::Known, MissKind::Crawler),
            (_, MissKind::Write) => (level.of_write(), MissKind::Write),
            (_, kind) => (level, kind),
        };
        let group = MissGroup::of(kind, &sent.url);
        let address = sent.shown.address.map(address_number);
        let miss = Miss { level, credit, group, address };
        let mut gives_way = None;
        match self.queue.enter(miss, || sent.clone(), &mut gives_way) {
            QueueEntry::Place(place) => self.busy.push((place, RENDER, self.now)),
            QueueEntry::Waits(id, Some(longest)) => {
                self.at(self.now + longest, Event::Patience(id));
            }
            QueueEntry::Waits(_, None) => {}
            QueueEntry::Full | QueueEntry::Deferred => self.deferred(sent),
        }
        if let Some(other) = gives_way {
            self.deferred(other);
        }
    }

    fn is_in_rate(&self) -> bool {
        let rate = RequestRate::read("60/m").expect("a rate");
        self.rates.take(RateOf::Crawler(0), rate, self.now).is_ok()
    }

    /// A browser loads again after two seconds, with its ticket; a crawler only if it is like a browser.
    fn deferred(&mut self, sent: SentMiss) {
        if sent.tries == 0 && self.now >= COUNTED_FROM {
            *self.counted.deferred.entry(sent.who).or_default() += 1;
        }
        if sent.who == Who::Crawler && sent.tries >= self.crawler_repeats {
            return;
        }
        // Behind an address with too many waiters, a colleague without a ticket waits two seconds.
        let is_elsewhere = sent.who != Who::Office && sent.url.starts_with("/search");
        self.counted.deferred_elsewhere += u32::from(is_elsewhere);
        if sent.tries == 4 {
            *self.counted.lost.entry(sent.who).or_default() += 1;
            self.counted.lost_elsewhere += u32::from(is_elsewhere);
            return;
        }
        self.number += 1;
        let mut shown = sent.shown;
        if shown.ticket.is_none() {
            (shown.ticket, shown.is_own_ticket) = (Some(self.number), true);
        }
        if sent.who == Who::Mobile {
            shown.is_own_ticket = false;
            let network = 0x2a02_0db8_u128 << 96 | u128::from(self.number) << 64;
            shown.address = Some(IpAddr::V6(network.into()));
        }
        let again = SentMiss { tries: sent.tries + 1, shown, ..sent };
        self.at(self.now + Duration::from_secs(2), Event::Send(again));
    }

    /// `visits` each second of visitors with this address: six pages, of six of them one needs PHP, and hits.
    fn visitors(
        &mut self,
        who: Who,
        visits: f64,
        address_of: impl Fn(u32) -> IpAddr,
        session: bool,
    ) {
        let count = (LASTS.as_secs_f64() * visits) as u32;
        for visit in 0..count {
            let begins = Duration::from_secs_f64(f64::from(visit) / visits);
            let address = address_of(visit);
            let session = session.then_some(u64::from(visit) << 8 | who as u64);
            let shown =
                ShownEvidence { address: Some(address), session, ..ShownEvidence::default() };
            self.at(begins + Duration::from_millis(300), Event::Hits(address, 4));
            for page in 0..6 {
                let time = begins + Duration::from_secs(18) * page;
                self.at(time + Duration::from_millis(300), Event::Hits(address, 1));
                // One page in six, and all of a signed-in visitor.
                if session.is_none() && (visit + page) % 6 != 0 {
                    continue;
                }
                // First and later pages of all three groups.
                let url = match (visit / 6 + page) % 3 {
                    0 => format!("/news/{visit}-{page}/"),
                    1 => format!("/shop/?a={visit}&b={page}"),
                    _ => format!("/search?q={visit}-{page}"),
                };
                let kind = if session.is_some() { MissKind::Personal } else { MissKind::Page };
                self.at(time, Event::Send(SentMiss { who, kind, url, shown, tries: 0 }));
            }
            if visit % 20 == 0 {
                let (kind, url) = (MissKind::Write, "/comment".to_owned());
                let sent = SentMiss { who: Who::Writer, kind, url, shown, tries: 0 };
                self.at(begins + Duration::from_secs(20), Event::Send(sent));
            }
        }
    }

    fn all_visitors(&mut self, times: f64) {
        self.visitors(Who::Visitor, 1.6 * times, |n| address(0x1400_0000 + n * 256), false);
        self.visitors(Who::Office, 0.3 * times, |_| address(0x1e00_0001), false);
        self.visitors(Who::Carrier, 0.45 * times, |n| address(0x2800_0000 + n % 12), false);
        let mobile = |n: u32| {
            let network = 0x2a01_0db8_0000_u128 + u128::from(n % 3);
            IpAddr::V6((network << 80 | u128::from(n) << 64 | 1).into())
        };
        self.visitors(Who::Mobile, 0.3 * times, mobile, false);
        self.visitors(Who::SignedIn, 0.3 * times, |n| address(0x3200_0000 + n * 256), true);
    }

    /// Requests at a steady rate.
    fn program(
        &mut self,
        who: Who,
        per_second: f64,
        of: impl Fn(u32) -> (MissKind, String, ShownEvidence),
    ) {
        for n in 0..(LASTS.as_secs_f64() * per_second) as u32 {
            let (kind, url, shown) = of(n);
            let time = Duration::from_secs_f64(f64::from(n) / per_second);
            self.at(time, Event::Send(SentMiss { who, kind, url, shown, tries: 0 }));
        }
    }

    fn programs(&mut self) {
        let exempt = |n: u32| ShownEvidence {
            address: Some(address(0x3c00_0000 + n)),
            is_exempt: true,
            ..ShownEvidence::default()
        };
        self.program(Who::Import, 10.0, |n| {
            let kind = if n % 2 == 0 { MissKind::Write } else { MissKind::Credential };
            (kind, format!("/api/products/{n}"), exempt(1))
        });
        self.program(Who::Uptime, 0.05, |n| {
            (MissKind::Page, format!("/health?t={n}"), exempt(2 + n % 3))
        });
        self.program(Who::OtherUptime, 0.05, |n| {
            let shown = ShownEvidence { is_exempt: false, ..exempt(5 + n % 3) };
            (MissKind::Page, format!("/health?t={n}"), shown)
        });
        self.program(Who::Script, 1.0, |n| {
            let shown = ShownEvidence { is_exempt: false, session: Some(1), ..exempt(9) };
            (MissKind::Credential, format!("/shop/?a=script{n}&b=1"), shown)
        });
        self.program(Who::SearchEngine, 0.5, |n| {
            let shown = ShownEvidence {
                address: Some(address(0x4200_0000 + n % 40)),
                ..ShownEvidence::default()
            };
            (MissKind::Page, format!("/shop/?page={n}&s=1"), shown)
        });
    }

    /// Crawler E: each page from another address, which has loaded so many files and stored pages before, and repeats a
    /// deferred request three times with its ticket.
    fn crawler_like_a_browser(&mut self, hits: u32) {
        self.crawler_repeats = 3;
        for n in 0..(LASTS.as_secs_f64() * 200.0) as u32 {
            let address = address(0xc612_0000 + n % 50_000 * 7);
            let time = Duration::from_secs_f64(f64::from(n) / 200.0);
            self.at(time, Event::Hits(address, hits));
            let url = match n % 10 {
                0 => format!("/news/c{n}/"),
                _ => format!("/shop/?a=c{n}&b={n}"),
            };
            let ticket = self.crawler_ticket;
            let shown = ShownEvidence { address: Some(address), ticket, ..Default::default() };
            let (who, kind) = (Who::Crawler, MissKind::Page);
            let sent = SentMiss { who, kind, url, shown, tries: 0 };
            self.at(time + Duration::from_secs(3), Event::Send(sent));
        }
    }

    /// Crawler B: each request from another address.
    fn crawler(&mut self) {
        self.program(Who::Crawler, 200.0, |n| {
            let url = match n % 10 {
                0 => format!("/news/c{n}/"),
                _ => format!("/shop/?a=c{n}&b={n}"),
            };
            let shown = ShownEvidence {
                address: Some(address(0xc612_0000 + n * 7)),
                ..ShownEvidence::default()
            };
            (MissKind::Page, url, shown)
        });
    }
}

/// Per cent of the requests of these that were deferred.
fn percent_of(counted: &Counted, these: &[Who]) -> f64 {
    let of = |of: &BTreeMap<Who, u32>| -> f64 {
        these.iter().map(|who| f64::from(of.get(who).copied().unwrap_or(0))).sum()
    };
    of(&counted.deferred) * 100.0 / of(&counted.requests).max(1.0)
}

fn percent(counted: &Counted, who: Who) -> f64 {
    percent_of(counted, &[who])
}

/// Programs that the operator knows, sessions and writes are never deferred.
fn assert_never_deferred(counted: &Counted) {
    for who in [&Who::PROGRAMS[..], &[Who::SignedIn, Who::Writer]].concat() {
        assert!(counted.requests[&who] > 4, "{who:?}");
        assert_eq!(percent(counted, who), 0.0, "{who:?}");
    }
}

fn shown(counted: &Counted) -> String {
    let of = |who: &Who| format!("{who:?} {:.1} %", percent(counted, *who));
    let all: Vec<String> = counted.requests.keys().map(of).collect();
    let visitors = percent_of(counted, &Who::VISITORS);
    format!("all visitors {visitors:.1} %; {}; lost {:?}", all.join(", "), counted.lost)
}

#[test]
fn without_a_crawler_nobody_is_deferred() {
    let mut site = Simulated::new();
    site.all_visitors(1.0);
    site.programs();
    let counted = site.run();
    assert!(
        counted.requests.len() == 11 && counted.requests[&Who::Visitor] > 100,
        "{:?}",
        counted.requests
    );
    assert_eq!(counted.deferred, BTreeMap::new());
}

#[test]
fn six_times_the_usual_visitors_are_not_deferred() {
    let mut site = Simulated::new();
    site.all_visitors(6.0);
    site.programs();
    assert_eq!(site.run().deferred, BTreeMap::new());
}

/// Everything is purged: for some seconds each page view needs PHP, and most pages are requested by several.
#[test]
fn after_a_purge_of_everything_nobody_is_deferred() {
    let mut site = Simulated::new();
    site.all_visitors(2.0);
    site.programs();
    for n in 0..300 {
        let shown =
            ShownEvidence { address: Some(address(0x5000_0000 + n * 256)), ..Default::default() };
        let (kind, url) = (MissKind::Page, format!("/news/{n}/"));
        // Page views that were hits before, for ten seconds.
        let time = Duration::from_secs(100) + Duration::from_millis(33) * n;
        site.at(time, Event::Send(SentMiss { who: Who::Visitor, kind, url, shown, tries: 0 }));
    }
    assert_eq!(site.run().deferred, BTreeMap::new());
}

#[test]
fn beside_a_crawler_programs_and_sessions_are_not_deferred_and_visitors_seldom() {
    let mut site = Simulated::new();
    site.all_visitors(1.0);
    site.programs();
    site.crawler();
    let counted = site.run();
    println!("{}", shown(&counted));
    assert_never_deferred(&counted);
    assert!(percent(&counted, Who::Crawler) > 50.0);
    // Nearly all of them are first visits to a page of the crawled groups: without credit, they look like the crawl.
    let visitors = percent_of(&counted, &Who::VISITORS);
    assert!(visitors <= 6.0, "{}", shown(&counted));
    for who in [Who::Visitor, Who::Office, Who::Carrier, Who::Mobile] {
        // Two thirds of their misses are in the groups that are crawled; one in six is their first request.
        assert!(percent(&counted, who) <= 15.0, "{who:?}: {} %", percent(&counted, who));
    }
    assert_eq!(counted.deferred_elsewhere, 0, "in a group that is not crawled");
    let lost: u32 = counted.lost.values().sum();
    assert_eq!(lost, 0, "{:?}", counted.lost);
}

/// Runs a site with all visitors and programs, and a crawler with so many hits before each page, which may have a ticket.
/// Programs and groups that are not crawled lose nothing.
fn beside_a_crawler_like_a_browser(hits: u32, ticket: Option<u64>) -> Counted {
    let mut site = Simulated::new();
    site.all_visitors(1.0);
    site.programs();
    site.crawler_ticket = ticket;
    site.crawler_like_a_browser(hits);
    let counted = site.run();
    println!("{}", shown(&counted));
    assert_never_deferred(&counted);
    assert_eq!((counted.deferred_elsewhere, counted.lost_elsewhere), (0, 0));
    counted
}

#[test]
fn beside_a_crawler_like_a_browser_other_groups_lose_nothing() {
    // Three files and three stored pages, as in the design.
    let counted = beside_a_crawler_like_a_browser(6, None);
    // Two thirds of these visitors' misses are in the crawled groups, in which their credit decides. Most of those that
    // are deferred open the first or second page of their visit.
    let visitors = percent_of(&counted, &Who::VISITORS);
    assert!(visitors <= 25.0, "{}", shown(&counted));
    for who in [Who::Office, Who::Carrier] {
        assert!(percent(&counted, who) <= 25.0, "{who:?}: {}", shown(&counted));
    }
}

/// One valid ticket, copied to all addresses of the crawler, brings them no credit: visitors get what they get without it.
#[test]
fn a_ticket_that_a_crawler_like_a_browser_copies_gains_nothing() {
    let counted = beside_a_crawler_like_a_browser(6, Some(u64::MAX));
    // If each copy added to the credit, it would be twice as many as without.
    let visitors = percent_of(&counted, &Who::VISITORS);
    assert!(visitors <= 16.0, "{}", shown(&counted));
}

/// With as much credit as an address can have for each page, it comes before most visitors in the groups that it crawls,
/// and only there.
#[test]
fn beside_a_crawler_with_all_the_credit_there_is_other_groups_lose_nothing() {
    let counted = beside_a_crawler_like_a_browser(60, None);
    let visitors = percent_of(&counted, &Who::VISITORS);
    assert!(visitors <= 40.0, "{}", shown(&counted));
}

/// Beyond its rate a search engine is a client like others; within it, none of its requests is deferred.
#[test]
fn a_search_engine_beyond_its_rate_keeps_its_rate() {
    let mut site = Simulated::new();
    site.all_visitors(1.0);
    site.crawler();
    site.program(Who::SearchEngine, 10.0, |n| {
        let address = Some(address(0x4200_0000 + n % 40));
        let shown = ShownEvidence { address, ..ShownEvidence::default() };
        (MissKind::Page, format!("/shop/?page={n}&s=1"), shown)
    });
    let counted = site.run();
    let (sent, deferred) =
        (counted.requests[&Who::SearchEngine], counted.deferred[&Who::SearchEngine]);
    assert!(deferred > 0 && sent - deferred >= 110, "{sent} sent, {deferred} deferred");
}

/// The attacker is one of 500 behind an office's address, and spends what they share.
#[test]
fn a_crawler_within_an_office_does_not_lock_it_out() {
    let mut site = Simulated::new();
    site.all_visitors(1.0);
    site.program(Who::Crawler, 200.0, |n| {
        let shown = ShownEvidence { address: Some(address(0x1e00_0001)), ..Default::default() };
        (MissKind::Page, format!("/shop/?a=c{n}&b={n}"), shown)
    });
    let counted = site.run();
    println!("{}", shown(&counted));
    assert_eq!(counted.lost, BTreeMap::new());
    assert_eq!(counted.deferred_elsewhere, 0, "in a group that is not crawled");
    // Colleagues share its credit and its waiters until they have a ticket: most wait for two seconds.
    assert!(percent(&counted, Who::Office) <= 90.0, "{}", shown(&counted));
    let others = [Who::Visitor, Who::Carrier, Who::Mobile, Who::SignedIn, Who::Writer];
    assert!(percent_of(&counted, &others) <= 6.0, "{}", shown(&counted));
}
