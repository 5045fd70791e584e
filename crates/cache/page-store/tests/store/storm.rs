//! Many changes and requests for one page on real threads: at most one render of it runs at a time.
//!
//! The test counts concurrent renders, and the renders for which a request waits: at most two, at any rate
//! of changes. `model.rs` tries every interleaving of a few actors and counts as well.

use crate::common::{TestPayload, depends, drop_all, put_made, roomy, tag};
use page_store::{FillLimits, Fills, Leader, Store, Turn};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Condvar, Mutex};
use std::thread;

const VISITORS: usize = 8;
const REQUESTS: usize = 300;
const NOBODY_PANICS: &str = "nobody panics under this lock";

/// The object on which followers wait: the version that the render has read.
#[derive(Default)]
struct Waiter {
    answer: Mutex<Option<u64>>,
    is_there: Condvar,
}

impl Waiter {
    fn tell(&self, truth: u64) {
        *self.answer.lock().expect(NOBODY_PANICS) = Some(truth);
        self.is_there.notify_all();
    }

    fn wait(&self) -> u64 {
        let answer = self.answer.lock().expect(NOBODY_PANICS);
        let answer =
            self.is_there.wait_while(answer, |answer| answer.is_none()).expect(NOBODY_PANICS);
        answer.expect("it was waited for")
    }
}

struct Site {
    store: Store<TestPayload>,
    fills: Fills<Waiter>,
    truth: AtomicU64,
    /// The version after the last acknowledged change.
    acknowledged: AtomicU64,
    running: AtomicU64,
    most_at_once: AtomicU64,
    renders: AtomicU64,
}

impl Site {
    fn render(&self, leader: &Leader<Waiter>) -> u64 {
        let running = self.running.fetch_add(1, SeqCst) + 1;
        self.most_at_once.fetch_max(running, SeqCst);
        self.renders.fetch_add(1, SeqCst);
        let from = self.truth.load(SeqCst);
        // Long enough for changes and other requests in between.
        (0..20).for_each(|_| thread::yield_now());
        let made = TestPayload { from, bytes: 10 };
        let _ = put_made(&self.store, "/a", 0, &["t"], leader.lease(), made);
        self.running.fetch_sub(1, SeqCst);
        leader.waiter().tell(from);
        from
    }

    /// Requests the page; returns the version from which it was rendered, and the number of renders waited
    /// for.
    fn ask(&self) -> (u64, usize) {
        let arrival = self.store.number();
        let key = self.store.key(b"/a");
        if let Some(page) = self.store.candidates(key).iter().next() {
            return (page.payload().from, 0);
        }
        let mut turn = self.fills.turn(&self.store, key, arrival, 0, Waiter::default);
        let mut waited = 0;
        loop {
            waited += 1;
            match turn {
                Turn::Lead(leader) => return (self.render(&leader), waited),
                Turn::Follow(follower) => {
                    let from = follower.waiter().wait();
                    let made_from = depends(&self.store, "/a", &["t"]);
                    if follower.may_share(&self.store, &made_from).is_ok() {
                        return (from, waited);
                    }
                    turn = self.fills.again(&self.store, follower, 0, Waiter::default);
                }
                Turn::Alone(alone) => panic!("{alone:?}"),
            }
        }
    }
}

#[test]
fn one_render_at_a_time() {
    let site = Site {
        store: roomy(),
        fills: Fills::new(FillLimits::default()),
        truth: AtomicU64::new(0),
        acknowledged: AtomicU64::new(0),
        running: AtomicU64::new(0),
        most_at_once: AtomicU64::new(0),
        renders: AtomicU64::new(0),
    };
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let visit = || {
            for _ in 0..REQUESTS {
                let must_see = site.acknowledged.load(SeqCst);
                let (from, waited) = site.ask();
                assert!(cfg!(feature = "without-lease-check") || from >= must_see, "a stale page");
                assert!(waited <= 2, "waited for {waited} renders");
            }
        };
        let visitors: Vec<_> = (0..VISITORS).map(|_| scope.spawn(visit)).collect();
        scope.spawn(|| {
            while !done.load(SeqCst) {
                let truth = site.truth.fetch_add(1, SeqCst) + 1;
                drop_all(&site.store, tag("t"));
                site.acknowledged.store(truth, SeqCst);
                thread::yield_now();
            }
        });
        let panicked = visitors.into_iter().filter_map(|visitor| visitor.join().err()).count();
        done.store(true, SeqCst);
        assert_eq!(panicked, 0);
    });
    let (renders, changes) = (site.renders.load(SeqCst), site.truth.load(SeqCst));
    let most = site.most_at_once.load(SeqCst);
    println!("{renders} renders for {} requests, {changes} changes", VISITORS * REQUESTS);
    assert_eq!(most, 1, "renders at once");
    site.store.validate();
}
