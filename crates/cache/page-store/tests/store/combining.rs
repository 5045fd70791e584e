//! Combining two renders (RFC 9111 section 3.4). The lease of the newer render suffices on two conditions.
//! The older one is looked up after that lease was taken, and the result has the dependencies of both.
//!
//! The test tries every order of the steps of two renders and two changes of their data; each step is one
//! call of the store. After each step no page may be stored with data whose change has been acknowledged.
//! With the lookup before the lease some orders go wrong, so the test can fail.

use crate::common::{TestPayload, drop_all, put_made, roomy, tag};
use page_store::{Lease, Store};

/// The time at which the newer render looks up the older one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LookUp {
    AfterTheLease,
    BeforeTheLease,
}

/// The current versions of the data `a` and `b`, and the acknowledged ones.
#[derive(Clone, Copy, Default)]
struct Truth {
    now: [u64; 2],
    acknowledged: [u64; 2],
}

/// The number of remaining steps: of the older render, the newer render, the change of `a`, the change of
/// `b`.
type RemainingSteps = [usize; 4];

const STEPS: RemainingSteps = [3, 4, 2, 2];

struct Story {
    store: Store<TestPayload>,
    truth: Truth,
    leases: [Option<Lease>; 2],
    read: [u64; 2],
    /// The version of the older part that the newer render has found.
    older: Option<u64>,
}

impl Story {
    fn new() -> Story {
        let leases = [None, None];
        Story { store: roomy(), truth: Truth::default(), leases, read: [0; 2], older: None }
    }

    fn found(&self) -> Option<u64> {
        self.store.candidates(self.store.key(b"/part")).iter().next().map(|p| p.payload().from)
    }

    /// Stores a result of these versions of `a` and `b`; 9 stands for neither.
    fn put(&mut self, render: usize, a: u64, b: u64) {
        let tags: &[&str] = match (a, b) {
            (9, _) => &["b"],
            (_, 9) => &["a"],
            _ => &["a", "b"],
        };
        let lease = self.leases[render].take().expect("taken before");
        let made = TestPayload { from: a * 10 + b, bytes: 10 };
        // A refusal is an acceptable outcome.
        let _ = put_made(&self.store, "/part", 0, tags, &lease, made);
    }

    fn step(&mut self, actor: usize, at: usize, look_up: LookUp) {
        let early = look_up == LookUp::BeforeTheLease;
        match (actor, at) {
            (0, 0) => self.leases[0] = Some(self.store.lease()),
            (0, 1) => self.read[0] = self.truth.now[0],
            (0, _) => self.put(0, self.read[0], 9),
            (1, 0) if early => self.older = self.found(),
            (1, 1) if early => self.leases[1] = Some(self.store.lease()),
            (1, 2) if early => self.read[1] = self.truth.now[1],
            (1, 0) => self.leases[1] = Some(self.store.lease()),
            (1, 1) => self.read[1] = self.truth.now[1],
            (1, 2) => self.older = self.found(),
            (1, _) => {
                let a = self.older.map_or(9, |from| from / 10);
                self.put(1, a, self.read[1]);
            }
            (change, 0) => self.truth.now[change - 2] += 1,
            (change, _) => {
                drop_all(&self.store, tag(["a", "b"][change - 2]));
                self.truth.acknowledged[change - 2] = self.truth.now[change - 2];
            }
        }
    }

    fn is_right(&self) -> bool {
        let Some(from) = self.found() else { return true };
        let made = [from / 10, from % 10];
        (0..2).all(|data| made[data] == 9 || made[data] >= self.truth.acknowledged[data])
    }
}

/// Tries every order that begins with `done`; returns the number of orders and of those that go wrong.
fn search(done: &mut Vec<usize>, left: RemainingSteps, look_up: LookUp) -> (u32, u32) {
    if left == [0; 4] {
        let (mut story, mut taken, mut right) = (Story::new(), [0; 4], true);
        for actor in &*done {
            story.step(*actor, taken[*actor], look_up);
            taken[*actor] += 1;
            right &= story.is_right();
        }
        story.store.validate();
        return (1, u32::from(!right));
    }
    let mut sum = (0, 0);
    for actor in 0..left.len() {
        if left[actor] == 0 {
            continue;
        }
        let mut left = left;
        left[actor] -= 1;
        done.push(actor);
        let (orders, wrong) = search(done, left, look_up);
        done.pop();
        sum = (sum.0 + orders, sum.1 + wrong);
    }
    sum
}

#[test]
fn no_order_of_steps_leaves_outdated_parts() {
    // 11! / (3! 4! 2! 2!)
    assert_eq!(search(&mut Vec::new(), STEPS, LookUp::AfterTheLease), (69_300, 0));
}

#[test]
fn a_look_up_before_the_lease_would() {
    let (orders, wrong) = search(&mut Vec::new(), STEPS, LookUp::BeforeTheLease);
    assert!(orders == 69_300 && wrong > 0);
}
