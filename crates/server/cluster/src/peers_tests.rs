//! The changes that a node has published: their order, their lag, their bound, and a stream that was deleted
//! between two of them. Nothing connects to a server.

use super::*;
use proptest::prelude::*;

/// Returns changes with these IDs; the first is the oldest.
fn sent(ids: &[Id], now: Instant) -> VecDeque<PublishedChange> {
    let age = |at: usize| Duration::from_millis((ids.len() - at) as u64);
    let change = |(at, id): (usize, &Id)| PublishedChange {
        number: at as u64,
        id: *id,
        since: now - age(at),
    };
    ids.iter().enumerate().map(change).collect()
}

proptest! {
    #[test]
    fn the_lag_is_that_of_the_first_change_after_the_position(
        ids in prop::collection::btree_set((0..40u64, 0..4u64), 0..40),
        (ms, number) in (0..41u64, 0..5u64),
    ) {
        let ids: Vec<_> = ids.into_iter().map(|(ms, number)| Id { ms, number }).collect();
        let (read, now) = (Id { ms, number }, Instant::now() + Duration::from_secs(1));
        let sent = sent(&ids, now);
        let scanned = sent.iter().find(|one| one.id > read);
        let scanned = scanned.map_or(Duration::ZERO, |one| now - one.since);
        prop_assert_eq!(lag(&sent, read, now), scanned);
    }
}

proptest! {
    #[test]
    fn ids_ascend_unless_the_stream_is_another(ids in prop::collection::vec(0..9u64, 0..6)) {
        let (mut sent, now, mut is_another) = (VecDeque::new(), Instant::now(), false);
        for id in ids {
            let id = Id { ms: id, number: 0 };
            is_another |= track(&mut sent, PublishedChange { number: 1, id, since: now });
        }
        prop_assert_eq!(!is_another, sent.iter().is_sorted_by(|one, next| one.id < next.id));
    }
}

#[test]
fn the_tracked_changes_are_bounded() {
    let (mut sent, now) = (VecDeque::new(), Instant::now());
    for n in 0..SENT_MAX as u64 + 2 {
        let change = PublishedChange { number: n, id: Id { ms: n, number: 0 }, since: now };
        assert!(!track(&mut sent, change));
    }
    let last = sent.back().map(|one| one.number);
    assert_eq!((sent.len(), last), (SENT_MAX, Some(SENT_MAX as u64 + 1)));
}

/// The stream was deleted between two entries, and its IDs began again lower.
#[test]
fn changes_that_a_lost_stream_may_have_had_are_published_again_once() {
    let now = Instant::now() + Duration::from_secs(1);
    let id = |ms| Id { ms, number: 0 };
    let (mut sent, mut batch) = (sent(&[id(90), id(50)], now), VecDeque::new());
    let since = sent[0].since;
    tell_all_again(&mut sent, &mut batch);
    assert!(sent.is_empty());
    assert_eq!(batch.iter().map(|one| (one.number, one.since)).collect::<Vec<_>>(), [(1, since)]);
    tell_all_again(&mut sent, &mut batch);
    assert_eq!(batch.len(), 1);
}
