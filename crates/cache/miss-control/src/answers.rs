//! The answers of outside services about clients, such as a resolver's: each is remembered for a time, and questions
//! are asked in the background. Until the answer is there, the client is an unknown one.
//!
//! Everything is bounded: the answers, and the questions at a time. A further question is not asked, so a flood of
//! clients is a flood for nobody else. In a full table, answers that have ended give way first, then those that are
//! worth nothing, then the least recently used: invented clients cannot displace those that were found genuine.
//!
//! | call | when |
//! |---|---|
//! | [`OutsideAnswers::get`] | a request needs the answer |
//! | [`OutsideAnswers::begin`] | there is none: whether the caller is to ask |
//! | [`OutsideAnswers::end`] | the question has ended, with or without an answer |
//!
//! One lock guards the table, for a lookup or a scan of it; no other lock is taken under it.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The most answers of a table.
const ANSWERS_MAX: usize = 4_096;

/// An answer, and how long it may be used.
#[derive(Clone, Debug)]
pub struct OutsideAnswer<A> {
    /// The answer of the service.
    pub answer: A,
    /// How long it is remembered.
    pub lasts: Duration,
    /// Whether it was expensive to get for its client: others give way first.
    pub is_genuine: bool,
}

struct Entry<A> {
    answer: A,
    ends: Duration,
    used: Duration,
    is_genuine: bool,
}

/// The answers about clients with keys of this kind.
pub struct OutsideAnswers<K, A> {
    /// The most questions at a time.
    questions_max: usize,
    state: Mutex<AnswerState<K, A>>,
}

struct AnswerState<K, A> {
    known: HashMap<K, Entry<A>>,
    asked: HashSet<K>,
}

impl<K, A> fmt::Debug for OutsideAnswers<K, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutsideAnswers").finish_non_exhaustive()
    }
}

impl<K: Copy + Eq + Hash, A: Clone> OutsideAnswers<K, A> {
    /// A table without answers. At most so many questions are asked at a time.
    pub fn new(questions_max: usize) -> OutsideAnswers<K, A> {
        let state = AnswerState { known: HashMap::new(), asked: HashSet::new() };
        OutsideAnswers { questions_max, state: Mutex::new(state) }
    }

    /// The answer about this client, if it is known.
    pub fn get(&self, client: K, now: Duration) -> Option<A> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = state.known.get_mut(&client).filter(|entry| entry.ends > now)?;
        entry.used = now;
        Some(entry.answer.clone())
    }

    /// Whether the caller is to ask about this client, and to call [`end`](Self::end) afterwards. It is not if the
    /// answer is known, the question is on its way, or there are too many.
    pub fn begin(&self, client: K, now: Duration) -> bool {
        self.begin_among(client, now, |_| false, usize::MAX)
    }

    /// As [`begin`](Self::begin), and not if `alike_max` questions about clients that are `alike` are on their way: one
    /// network cannot delay the questions of all others.
    pub fn begin_among(
        &self,
        client: K,
        now: Duration,
        alike: impl Fn(&K) -> bool,
        alike_max: usize,
    ) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = state.known.get(&client).is_some_and(|entry| entry.ends > now);
        !is_known
            && state.asked.len() < self.questions_max
            && state.asked.iter().filter(|asked| alike(asked)).count() < alike_max
            && state.asked.insert(client)
    }

    /// Records the answer to a question that was begun.
    pub fn end(&self, client: K, answer: OutsideAnswer<A>, now: Duration) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.asked.remove(&client);
        if state.known.len() >= ANSWERS_MAX && !state.known.contains_key(&client) {
            let worth = |entry: &Entry<A>| (entry.ends > now, entry.is_genuine, entry.used);
            let least = state.known.iter().min_by_key(|(_, entry)| worth(entry));
            let Some((least, entry)) = least.map(|(key, entry)| (*key, entry)) else { return };
            if !answer.is_genuine && worth(entry) > (true, false, now) {
                return;
            }
            state.known.remove(&least);
        }
        let OutsideAnswer { answer, lasts, is_genuine } = answer;
        let entry = Entry { answer, ends: now.saturating_add(lasts), used: now, is_genuine };
        state.known.insert(client, entry);
    }

    /// The number of answers, and that of questions on their way.
    pub fn len(&self) -> (usize, usize) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        (state.known.len(), state.asked.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn answer(lasts: u64, is_genuine: bool) -> OutsideAnswer<bool> {
        OutsideAnswer { answer: is_genuine, lasts: at(lasts), is_genuine }
    }

    #[test]
    fn an_answer_is_asked_for_once_and_ends() {
        let all = OutsideAnswers::new(2);
        assert!(all.begin(1, at(0)) && !all.begin(1, at(0)), "it is on its way");
        assert_eq!(all.get(1, at(0)), None);
        assert!(all.begin(2, at(0)) && !all.begin(3, at(0)), "two at a time");
        all.end(1, answer(60, true), at(1));
        assert_eq!((all.get(1, at(60)), all.begin(1, at(60))), (Some(true), false));
        assert_eq!((all.get(1, at(61)), all.begin(1, at(61))), (None, true));
        assert!(!all.begin(3, at(61)));
        all.end(2, answer(5, false), at(61));
        assert_eq!((all.get(2, at(62)), all.begin(3, at(62))), (Some(false), true));
    }

    #[test]
    fn clients_that_are_alike_have_a_part_of_the_questions() {
        let all = OutsideAnswers::new(4);
        let is_small = |client: &u32| *client < 10;
        let begin = |client: u32| all.begin_among(client, at(0), is_small, 2);
        assert!(begin(1) && begin(2) && !begin(3), "two of them");
        assert!(all.begin(20, at(0)), "others have the rest");
        all.end(1, answer(60, false), at(0));
        assert!(begin(3) && !begin(4));
    }

    #[test]
    fn invented_clients_displace_no_genuine_one() {
        let all = OutsideAnswers::new(1);
        let ask = |client: u32, is_genuine, now| {
            assert!(all.begin(client, now));
            all.end(client, answer(100_000, is_genuine), now);
        };
        (0..100).for_each(|client| ask(client, true, at(0)));
        (1_000..20_000).for_each(|client| ask(client, false, at(u64::from(client))));
        assert_eq!(all.len(), (ANSWERS_MAX, 0));
        assert!((0..100).all(|client| all.get(client, at(20_000)) == Some(true)));
        // Genuine ones give way to each other, and a full table of them takes nothing worthless.
        (30_000..40_000).for_each(|client| ask(client, true, at(30_000)));
        ask(50_000, false, at(30_001));
        assert_eq!((all.len().0, all.get(50_000, at(30_001))), (ANSWERS_MAX, None));
    }

    proptest! {
        /// In any order of questions and answers, the table is never larger, and no question is on its way twice.
        #[test]
        fn everything_is_bounded(calls in proptest::collection::vec((0_u8..20, any::<bool>(), 0_u64..50), 1..400)) {
            let (all, mut asked, mut now) = (OutsideAnswers::new(4), HashSet::new(), 0);
            for (client, ends, step) in calls {
                now += step;
                if ends && asked.remove(&client) {
                    all.end(client, answer(100, client % 2 == 0), at(now));
                } else if all.begin(client, at(now)) {
                    prop_assert!(asked.insert(client));
                }
                prop_assert!(all.len().1 == asked.len() && asked.len() <= 4);
            }
        }
    }
}
