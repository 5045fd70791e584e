//! False positives, counted: who is deferred although it is no crawler. A site with two cores, six places and pages of
//! 30 ms, on a clock of its own: every event has its time, so each run is the same.
//!
//! Visitors, programs and the crawler send their requests at fixed times. PHP's cores are shared: a page takes longer
//! by the number of pages beside it. Visitors are counted by what they are, with what the design promises for them.

use miss_control::{
    ClientLevel, ClientTable, Deferral, HeldPlace, Miss, MissGroup, MissKind, MissOrder, MissQueue,
    QueueEntry, QueueLimits, ShownEvidence, WaiterId, address_number,
};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::hash::{BuildHasherDefault, DefaultHasher};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

const PLACES: usize = 6;
const CORES: usize = 2;
const RENDER: Duration = Duration::from_millis(30);
/// The measured time.
const LASTS: Duration = Duration::from_secs(120);

/// The kind of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Who {
    /// A visitor with an address of its own.
    Visitor,
    /// One of 500 behind the address of an office.
    Office,
    /// A visitor of a carrier, which shares twelve addresses.
    Carrier,
    /// A phone with an address of an IPv6 network.
    Mobile,
    /// An import, whose address is exempt: reads and writes.
    Import,
    /// Three uptime checks with a query of their own each time, whose addresses are exempt.
    Uptime,
    /// A search engine that is verified, within its rate.
    SearchEngine,
    /// A signed-in visitor.
    SignedIn,
    /// A login or a comment of a visitor.
    Writer,
    Crawler,
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
}

struct Simulated {
    queue: MissQueue<SentMiss>,
    clients: ClientTable<BuildHasherDefault<DefaultHasher>>,
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
        let limits = QueueLimits { places: PLACES, waiting: 1_000, unknown: usize::MAX };
        Simulated {
            queue: MissQueue::new(limits, MissOrder::Rationed),
            clients: ClientTable::default(),
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
        if sent.tries == 0 {
            *self.counted.requests.entry(sent.who).or_default() += 1;
        }
        let level = self.clients.level(&sent.shown, self.now);
        self.clients.note_miss_of(&sent.shown, self.now);
        let (level, kind) = match (sent.who, sent.kind) {
            (Who::SearchEngine, _) => (ClientLevel::Known, MissKind::Crawler),
            (_, MissKind::Write) => (level.of_write(), MissKind::Write),
            (_, kind) => (level, kind),
        };
        let group = MissGroup::of(kind, &sent.url);
        let miss = Miss { level, group, address: sent.shown.address.map(address_number) };
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

    /// A browser loads again after two seconds, with its ticket; a crawler does not.
    fn deferred(&mut self, sent: SentMiss) {
        *self.counted.deferred.entry(sent.who).or_default() += u32::from(sent.tries == 0);
        if sent.who == Who::Crawler {
            return;
        }
        // Behind an address with too many waiters, a colleague without a ticket waits two seconds.
        let is_elsewhere = sent.who != Who::Office && sent.url.starts_with("/search");
        self.counted.deferred_elsewhere += u32::from(is_elsewhere);
        if sent.tries == 4 {
            *self.counted.lost.entry(sent.who).or_default() += 1;
            return;
        }
        self.number += 1;
        let ticket = sent.shown.ticket.or(Some(self.number));
        let shown = ShownEvidence { ticket, ..sent.shown };
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
                let url = match (visit + page / 6) % 3 {
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
        self.program(Who::SearchEngine, 0.5, |n| {
            let shown = ShownEvidence {
                address: Some(address(0x4200_0000 + n % 40)),
                ..ShownEvidence::default()
            };
            (MissKind::Page, format!("/shop/?page={n}&s=1"), shown)
        });
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

/// Per cent of those who were deferred.
fn percent(counted: &Counted, who: Who) -> f64 {
    let of = |of: &BTreeMap<Who, u32>| f64::from(of.get(&who).copied().unwrap_or(0));
    of(&counted.deferred) * 100.0 / of(&counted.requests).max(1.0)
}

#[test]
fn without_a_crawler_nobody_is_deferred() {
    let mut site = Simulated::new();
    site.all_visitors(1.0);
    site.programs();
    let counted = site.run();
    assert!(
        counted.requests.len() == 9 && counted.requests[&Who::Visitor] > 100,
        "{:?}",
        counted.requests
    );
    assert_eq!(counted.deferred, BTreeMap::new());
}

#[test]
fn six_times_the_usual_visitors_are_not_deferred() {
    let mut site = Simulated::new();
    site.all_visitors(6.0);
    assert_eq!(site.run().deferred, BTreeMap::new());
}

/// Everything is purged: for some seconds each page view needs PHP, and most pages are requested by several.
#[test]
fn after_a_purge_of_everything_nobody_is_deferred() {
    let mut site = Simulated::new();
    site.all_visitors(2.0);
    for n in 0..300 {
        let shown =
            ShownEvidence { address: Some(address(0x5000_0000 + n * 256)), ..Default::default() };
        let (kind, url) = (MissKind::Page, format!("/news/{n}/"));
        // Page views that were hits before, for ten seconds.
        let time = Duration::from_secs(30) + Duration::from_millis(33) * n;
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
    for who in [Who::Import, Who::Uptime, Who::SearchEngine, Who::SignedIn, Who::Writer] {
        assert!(counted.requests[&who] > 5, "{who:?}");
        assert_eq!(percent(&counted, who), 0.0, "{who:?}");
    }
    assert!(percent(&counted, Who::Crawler) > 50.0);
    for who in [Who::Visitor, Who::Office, Who::Carrier, Who::Mobile] {
        // Two thirds of their misses are in the groups that are crawled; one in six is their first request.
        assert!(percent(&counted, who) <= 30.0, "{who:?}: {} %", percent(&counted, who));
    }
    assert_eq!(counted.deferred_elsewhere, 0, "in a group that is not crawled");
    let lost: u32 = counted.lost.values().sum();
    assert_eq!(lost, 0, "{:?}", counted.lost);
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
    assert_eq!(counted.lost, BTreeMap::new());
    assert_eq!(counted.deferred_elsewhere, 0, "in a group that is not crawled");
}
