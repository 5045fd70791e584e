//! Clients that ask for challenges: they stop no order, and cost few reads.

use super::fake::{FakeAuthority, Fault};
use super::{Dir, Node};
use crate::ChallengeKind;
use crate::record::ChallengeRecord;
use crate::storage::{StorageKey, ValueKind};
use certificates::{ChallengeAnswer, ManagedHosts};
use std::sync::Arc;
use std::time::Duration;
use telemetry::clock::Clock;

const HOST: &str = "a.example.org";

/// Asks many times at once. Returns how many clients got an answer.
async fn answers(node: &Node, clients: usize) -> usize {
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..clients {
        let manager = node.manager.clone();
        tasks.spawn(async move { manager.challenge(HOST).await.is_some() });
    }
    tasks.join_all().await.into_iter().filter(|is_answered| *is_answered).count()
}

#[tokio::test]
async fn clients_share_reads_and_a_stored_challenge_is_answered_at_once() {
    let (dir, authority) = (Dir::new(), FakeAuthority::start().await);
    authority.set(|desk| desk.fault = Fault::Hang);
    let node = Node::start(&[&authority], dir.storage(), &[HOST], Clock::still()).await;
    // One read that the first of them begins, and one for all those that ask after it has begun. On a busy machine the
    // last of them may ask when that one has begun, too.
    assert_eq!(answers(&node, 100).await, 0);
    let reads = node.reads(ValueKind::Challenge);
    assert!((2..=3).contains(&reads), "{reads}");
    let (token, authorization) = ("t".to_owned(), "t.k".to_owned());
    let record = ChallengeRecord { kind: ChallengeKind::Http01, token, authorization };
    let key = StorageKey { kind: ValueKind::Challenge, name: HOST };
    let bytes = serde_json::to_vec(&record).unwrap();
    node.manager.storage.write(key, &bytes).await.unwrap();
    // The read before it has found none, a moment ago.
    assert_eq!(answers(&node, 100).await, 100);
    assert!(node.reads(ValueKind::Challenge) <= 6, "{}", node.reads(ValueKind::Challenge));
    // A client that goes away does not leave the others without an answer.
    let gone = tokio::spawn({
        let manager = node.manager.clone();
        async move { manager.challenge(HOST).await.is_some() }
    });
    tokio::task::yield_now().await;
    gone.abort();
    assert_eq!(answers(&node, 10).await, 10);
    node.kill();
}

#[tokio::test]
async fn the_node_that_orders_answers_without_the_storage() {
    let (dir, authority) = (Dir::new(), FakeAuthority::start().await);
    // Long enough for all that is asked while the order waits, and less than the node waits for an answer.
    authority.set(|desk| desk.pause = Duration::from_secs(5));
    let node = Node::start(&[&authority], dir.storage(), &[HOST], Clock::still()).await;
    node.until("a challenge", |_| !authority.desk.lock().unwrap().challenges.is_empty()).await;
    std::fs::remove_file(dir.0.join("challenges/a.example.org.json")).unwrap();
    let before = node.reads(ValueKind::Challenge);
    assert_eq!((answers(&node, 100).await, node.reads(ValueKind::Challenge)), (100, before));
    node.until_ready(HOST).await;
    // The challenge has ended: memory answers it no more.
    let pending = node.manager.state(HOST).unwrap().challenge;
    node.until("no challenge", |_| Arc::strong_count(&pending) == 2).await;
    assert!(node.manager.challenge(HOST).await.is_none());
    assert_eq!(authority.orders(HOST), 1);
    node.stop().await;
}

#[tokio::test]
async fn an_order_that_is_abandoned_leaves_the_challenge_of_the_storage() {
    let (dir, authority) = (Dir::new(), FakeAuthority::start().await);
    authority.set(|desk| desk.pause = Duration::from_secs(600));
    let node = Node::start(&[&authority], dir.storage(), &[HOST], Clock::still()).await;
    node.until("a challenge", |_| !authority.desk.lock().unwrap().challenges.is_empty()).await;
    let manager = node.manager.clone();
    node.stop().await;
    let (token, authorization) = ("t".to_owned(), "t.k".to_owned());
    let record = ChallengeRecord { kind: ChallengeKind::Http01, token, authorization };
    let key = StorageKey { kind: ValueKind::Challenge, name: HOST };
    manager.storage.write(key, &serde_json::to_vec(&record).unwrap()).await.unwrap();
    let Some(ChallengeAnswer::Http { token, .. }) = manager.challenge(HOST).await else {
        panic!("an answer")
    };
    assert_eq!(token, "t", "that of the next holder of the lock");
}
