//! Faults of the authority and of the clock: the old certificate stays, the waiting time is stored, and there is no
//! second order. Not here: faults of the storage (`storage_faults`).

use super::fake::{FakeAuthority, Fault};
use super::{DAY, Dir, Node};
use crate::storage::{StorageKey, ValueKind};
use crate::{Authority, ChallengeKind};
use certificates::{ChallengeAnswer, ManagedHosts};
use std::time::Duration;
use telemetry::clock::Clock;

const HOST: &str = "a.example.org";

/// A node for the host, at this authority.
pub(super) async fn started(authority: &FakeAuthority, dir: &Dir) -> Node {
    Node::start(&[authority], dir.storage(), &[HOST], Clock::still()).await
}

/// The same, which rehearses at this directory after a failure.
async fn rehearsed(authority: &FakeAuthority, dir: &Dir, rehearsal: String) -> Node {
    let set =
        |_: &mut config::Acme, known: &mut Vec<Authority>| known[0].rehearsal = Some(rehearsal);
    Node::with(&[authority], dir.storage(), &[HOST], Clock::still(), set).await
}

/// A node with a second authority, and that one's directory: on the same server, so that one root is enough.
async fn with_second(first: &FakeAuthority, dir: &Dir) -> (Node, String) {
    let second = first.directory.replace("/directory", "/directory?second");
    let add = |config: &mut config::Acme, known: &mut Vec<Authority>| {
        config.fallback.push(second.clone());
        known.push(Authority { directory: second.clone(), rehearsal: None });
    };
    let node = Node::with(&[first], dir.storage(), &[HOST], Clock::still(), add).await;
    (node, second)
}

/// Waits for the record that this directory has issued the certificate. A look may find the certificate before that.
async fn until_issued_by(node: &Node, directory: &str) {
    let issued_by = |node: &Node| node.manager.state(HOST).unwrap().record.issued_by;
    node.until("its record", |node| issued_by(node).as_deref() == Some(directory)).await;
}

/// A node with a certificate that is due, at an authority with this fault. It fails once.
async fn fails(fault: Fault, words: &str) {
    let (dir, authority) = (Dir::new(), FakeAuthority::start().await);
    let node = started(&authority, &dir).await;
    node.until_ready(HOST).await;
    let text = node.manager.state(HOST).unwrap().text;
    let wait = if fault == Fault::Html { 7_200_000..=7_200_000 } else { 54_000..=66_000 };
    authority.set(|desk| (desk.fault, desk.ahead_s) = (fault, 61 * 86_400));
    node.clock.advance(DAY * 61);
    node.until_failed(HOST, 1).await;
    let state = node.manager.state(HOST).unwrap();
    assert!(state.record.failure_text.contains(words), "{}", state.record.failure_text);
    assert!(wait.contains(&state.record.wait_ms), "{}", state.record.wait_ms);
    assert_eq!(state.text, text);
    assert!(node.certificates.is_ready(HOST), "the old certificate stays in use");
    let orders = authority.orders(HOST);
    // It stays in use also when it has ended.
    node.stop().await;
    let clock = Clock::still();
    clock.advance(DAY * 61);
    authority.set(|desk| (desk.fault, desk.nodes) = (Fault::None, Vec::new()));
    let node = Node::start(&[&authority], dir.storage(), &[HOST], clock).await;
    assert!(node.certificates.is_ready(HOST));
    assert_eq!(node.status(HOST).failure.unwrap().text, state.record.failure_text);
    assert_eq!(authority.orders(HOST), orders, "a restart waits as long");
    node.clock.advance(Duration::from_secs(7_300));
    node.until("renewed", |node| node.manager.state(HOST).unwrap().text != text).await;
    node.stop().await;
}

#[tokio::test]
async fn an_authority_that_hangs() {
    fails(Fault::Hang, "no complete answer within").await;
}

#[tokio::test]
async fn half_an_answer() {
    fails(Fault::Truncate, "localhost").await;
}

#[tokio::test]
async fn an_answer_without_end() {
    fails(Fault::Endless, "length limit exceeded").await;
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    fails(Fault::Redirect, "redirects").await;
}

#[tokio::test]
async fn an_error_page_with_its_waiting_time() {
    fails(Fault::Html, "503").await;
}

#[tokio::test]
async fn a_certificate_for_another_name() {
    fails(Fault::WrongName, "it is not for a.example.org").await;
}

#[tokio::test]
async fn a_certificate_for_another_key() {
    fails(Fault::WrongKey, "not that of the certificate").await;
}

#[tokio::test]
async fn a_certificate_that_has_ended_is_not_ordered_again_at_once() {
    fails(Fault::Ended, "ends already").await;
}

#[tokio::test]
async fn an_authority_with_an_unknown_root_gets_nothing() {
    let (dir, known) = (Dir::new(), FakeAuthority::start().await);
    let other = FakeAuthority::start().await;
    let set = |_: &mut config::Acme, all: &mut Vec<Authority>| {
        all[0].directory = other.directory.clone();
    };
    let node = Node::with(&[&known], dir.storage(), &[HOST], Clock::still(), set).await;
    node.until_failed(HOST, 1).await;
    let failure = node.status(HOST).failure.unwrap();
    assert_eq!(failure.cause.as_str(), "authority");
    assert!(failure.text.contains("invalid peer certificate"), "{}", failure.text);
    assert_eq!((other.orders(HOST), other.desk.lock().unwrap().accounts), (0, 0));
    node.stop().await;
}

#[tokio::test]
async fn a_rate_limit_waits_as_long_as_the_authority_says() {
    let (dir, authority) = (Dir::new(), FakeAuthority::start().await);
    authority.set(|desk| desk.fault = Fault::RateLimited(90_000));
    let node = started(&authority, &dir).await;
    node.until_failed(HOST, 1).await;
    let status = node.status(HOST);
    assert_eq!(status.failure.unwrap().cause.as_str(), "rate-limited");
    assert_eq!(status.next_try_ms, Some(node.clock.now().0 + 90_000_000));
    assert_eq!(authority.orders(HOST), 1);
    node.stop().await;
}

#[tokio::test]
async fn another_authority_follows_after_three_rounds() {
    let (dir, first) = (Dir::new(), FakeAuthority::start().await);
    first.set(|desk| desk.fault = Fault::Html);
    let (node, second) = with_second(&first, &dir).await;
    for failures in 1..=3 {
        node.until_failed(HOST, failures).await;
        if failures == 3 {
            first.set(|desk| desk.fault = Fault::None);
        }
        node.clock.advance(Duration::from_secs(7_300));
        first.set(|desk| desk.ahead_s += 7_300);
    }
    node.until_ready(HOST).await;
    until_issued_by(&node, &second).await;
    node.stop().await;
}

#[tokio::test]
async fn another_authority_does_not_wait_for_one_that_asks_for_time() {
    let (dir, first) = (Dir::new(), FakeAuthority::start().await);
    first.set(|desk| desk.fault = Fault::RateLimited(90_000));
    let (node, second) = with_second(&first, &dir).await;
    node.until_failed(HOST, 1).await;
    let record = node.manager.state(HOST).unwrap().record;
    assert!((54_000..=66_000).contains(&record.wait_ms), "{}", record.wait_ms);
    // The second one asks for less time, which then is the time of both.
    first.set(|desk| desk.fault = Fault::RateLimited(7_200));
    node.clock.advance(Duration::from_secs(70));
    node.until_failed(HOST, 2).await;
    assert_eq!(node.manager.state(HOST).unwrap().record.wait_ms, 7_200_000);
    first.set(|desk| desk.fault = Fault::None);
    node.clock.advance(Duration::from_secs(7_201));
    node.until_ready(HOST).await;
    until_issued_by(&node, &second).await;
    node.stop().await;
}

#[tokio::test]
async fn a_rehearsal_must_succeed_after_a_failure() {
    let (dir, authority) = (Dir::new(), FakeAuthority::start().await);
    authority.refuse(HOST, "caa");
    let rehearsal = authority.directory.replace("/directory", "/directory?rehearsal");
    let node = rehearsed(&authority, &dir, rehearsal).await;
    node.until_failed(HOST, 1).await;
    assert_eq!(node.status(HOST).failure.unwrap().cause.as_str(), "caa");
    assert_eq!(authority.desk.lock().unwrap().accounts, 1);
    node.clock.advance(Duration::from_secs(70));
    node.until_failed(HOST, 2).await;
    // Only the rehearsal was tried: one order more.
    assert_eq!((authority.orders(HOST), authority.desk.lock().unwrap().accounts), (2, 2));
    authority.set(|desk| desk.refused.clear());
    node.clock.advance(Duration::from_secs(700));
    node.until_ready(HOST).await;
    assert_eq!((authority.orders(HOST), authority.issued(HOST)), (4, 2));
    node.stop().await;
}

#[tokio::test]
async fn an_order_without_a_decision_goes_on_without_a_rehearsal() {
    let (dir, authority) = (Dir::new(), FakeAuthority::start().await);
    authority.set(|desk| desk.pause = Duration::from_secs(600));
    let rehearsal = authority.directory.replace("/directory", "/directory?rehearsal");
    let node = rehearsed(&authority, &dir, rehearsal).await;
    node.until_failed(HOST, 1).await;
    assert_eq!(node.status(HOST).failure.unwrap().cause.as_str(), "authority");
    authority.set(|desk| desk.pause = Duration::ZERO);
    node.clock.advance(Duration::from_secs(70));
    node.until_ready(HOST).await;
    assert_eq!((authority.orders(HOST), authority.desk.lock().unwrap().accounts), (1, 1));
    node.stop().await;
}

#[tokio::test]
async fn an_order_that_is_lost_is_rehearsed_again() {
    let (dir, authority) = (Dir::new(), FakeAuthority::start().await);
    let staging = authority.beside().await;
    authority.set(|desk| desk.pause = Duration::from_secs(600));
    let rehearsal = staging.directory.clone();
    let node = rehearsed(&authority, &dir, rehearsal).await;
    staging.set(|desk| desk.nodes.push(node.manager.clone()));
    node.until_failed(HOST, 1).await;
    let record = node.manager.state(HOST).unwrap().record;
    assert!(record.order.is_some_and(|order| order.directory == authority.directory));
    authority.forget();
    authority.set(|desk| desk.pause = Duration::ZERO);
    staging.refuse(HOST, "caa");
    node.clock.advance(Duration::from_secs(70));
    node.until_failed(HOST, 2).await;
    assert_eq!(node.status(HOST).failure.unwrap().cause.as_str(), "caa");
    assert_eq!((authority.orders(HOST), staging.orders(HOST)), (1, 1));
    staging.set(|desk| desk.refused.clear());
    node.clock.advance(Duration::from_secs(700));
    node.until_ready(HOST).await;
    assert_eq!((authority.orders(HOST), staging.orders(HOST)), (2, 2));
    node.stop().await;
}

#[tokio::test]
async fn a_rehearsal_under_a_rate_limit_keeps_no_host_from_its_certificate() {
    let (dir, authority) = (Dir::new(), FakeAuthority::start().await);
    let staging = authority.beside().await;
    authority.refuse(HOST, "caa");
    staging.set(|desk| desk.fault = Fault::RateLimited(90_000));
    let rehearsal = staging.directory.clone();
    let node = rehearsed(&authority, &dir, rehearsal).await;
    node.until_failed(HOST, 1).await;
    node.clock.advance(Duration::from_secs(70));
    node.until_failed(HOST, 2).await;
    assert_eq!(node.status(HOST).failure.unwrap().cause.as_str(), "caa");
    assert_eq!((authority.orders(HOST), staging.orders(HOST)), (2, 1));
    // Only the server for rehearsals has asked for time: ten minutes is the usual time after two failures.
    let record = node.manager.state(HOST).unwrap().record;
    assert!((540_000..=660_000).contains(&record.wait_ms), "{}", record.wait_ms);
    let now_ms = node.clock.now().0;
    assert_eq!(record.asked_wait_ms(&authority.directory, now_ms), None);
    assert_eq!(record.asked_wait_ms(&staging.directory, now_ms), Some(90_000_000));
    authority.set(|desk| desk.refused.clear());
    node.clock.advance(Duration::from_secs(700));
    node.until_ready(HOST).await;
    assert_eq!((authority.orders(HOST), staging.orders(HOST)), (3, 1), "it is not called before");
    node.stop().await;
}

#[tokio::test]
async fn the_time_that_a_rehearsal_asks_for_is_not_the_authoritys() {
    let (dir, authority) = (Dir::new(), FakeAuthority::start().await);
    let staging = authority.beside().await;
    authority.refuse(HOST, "caa");
    let rehearsal = staging.directory.clone();
    let node = rehearsed(&authority, &dir, rehearsal).await;
    node.until_failed(HOST, 1).await;
    staging.set(|desk| desk.fault = Fault::Rejected(7_200));
    node.clock.advance(Duration::from_secs(70));
    node.until_failed(HOST, 2).await;
    let record = node.manager.state(HOST).unwrap().record;
    assert!(record.failure_text.contains("rejectedIdentifier"), "{}", record.failure_text);
    assert!((540_000..=660_000).contains(&record.wait_ms), "{}", record.wait_ms);
    let now_ms = node.clock.now().0;
    assert_eq!(record.asked_wait_ms(&authority.directory, now_ms), None);
    assert_eq!(record.asked_wait_ms(&staging.directory, now_ms), Some(7_200_000));
    node.stop().await;
}

#[tokio::test]
async fn a_rehearsal_that_is_impossible_keeps_no_host_from_its_certificate() {
    let (dir, authority) = (Dir::new(), FakeAuthority::start().await);
    authority.refuse(HOST, "caa");
    // Nothing listens there.
    let rehearsal = "https://localhost:1/directory".to_owned();
    let node = rehearsed(&authority, &dir, rehearsal).await;
    node.until_failed(HOST, 1).await;
    authority.set(|desk| desk.refused.clear());
    node.clock.advance(Duration::from_secs(70));
    node.until_ready(HOST).await;
    assert_eq!((authority.orders(HOST), authority.issued(HOST)), (2, 1));
    node.stop().await;
}

#[tokio::test]
async fn a_clock_that_is_a_year_behind_lets_no_certificate_end() {
    let (dir, authority) = (Dir::new(), FakeAuthority::start().await);
    let node = started(&authority, &dir).await;
    node.until_ready(HOST).await;
    let first = node.manager.state(HOST).unwrap().text;
    // Two months later by the authority's clock. This machine's clock is set back.
    authority.set(|desk| desk.ahead_s = 61 * 86_400);
    node.clock.put_right(-(DAY.as_millis() as i64) * 365);
    node.until("renewed", |node| node.manager.state(HOST).unwrap().text != first).await;
    let is_at_rest = |node: &Node| node.status(HOST).next_try_ms > Some(node.clock.now().0);
    node.until("no step is due", is_at_rest).await;
    assert_eq!((authority.orders(HOST), node.status(HOST).failure), (2, None));
    // Nor does it order again when the clock is right.
    node.clock.put_right((DAY.as_millis() as i64) * (365 + 61));
    node.until("no step is due", is_at_rest).await;
    assert_eq!(authority.orders(HOST), 2);
    node.stop().await;
}

#[tokio::test]
async fn a_clock_that_jumps_by_a_year_orders_nothing() {
    let (dir, authority) = (Dir::new(), FakeAuthority::start().await);
    let node = started(&authority, &dir).await;
    node.until_ready(HOST).await;
    node.clock.advance(DAY * 365);
    node.until_failed(HOST, 1).await;
    let failure = node.status(HOST).failure.unwrap();
    assert_eq!(failure.cause.as_str(), "clock");
    assert!(failure.text.contains("8760 hours ahead of"), "{}", failure.text);
    assert!(node.certificates.is_ready(HOST));
    // The clock is set right again: the record of the wrong year does not delay.
    node.clock.put_right(-(DAY.as_millis() as i64) * 365);
    node.until("no failure", |node| node.status(HOST).failure.is_none()).await;
    assert!(node.status(HOST).next_try_ms < Some(node.clock.now().0 + 86_400_000 * 61));
    assert_eq!(authority.orders(HOST), 1);
    node.stop().await;
}

#[tokio::test]
async fn a_challenge_is_answered_for_its_host_and_token_only() {
    let (dir, authority) = (Dir::new(), FakeAuthority::start().await);
    authority.set(|desk| desk.fault = Fault::Hang);
    let node =
        Node::start(&[&authority], dir.storage(), &[HOST, "b.example.org"], Clock::still()).await;
    let record = crate::record::ChallengeRecord {
        kind: ChallengeKind::Http01,
        token: "t".into(),
        authorization: "t.k".into(),
    };
    let key = StorageKey { kind: ValueKind::Challenge, name: HOST };
    let bytes = serde_json::to_vec(&record).unwrap();
    node.manager.storage.write(key, &bytes).await.unwrap();
    let Some(ChallengeAnswer::Http { token, content }) = node.manager.challenge(HOST).await else {
        panic!("an answer");
    };
    assert_eq!((token.as_str(), content.as_str()), ("t", "t.k"));
    assert!(node.manager.challenge("b.example.org").await.is_none());
    let other = StorageKey { kind: ValueKind::Challenge, name: "c.example.org" };
    node.manager.storage.write(other, &bytes).await.unwrap();
    assert!(node.manager.challenge("c.example.org").await.is_none(), "a host that is not managed");
    node.kill();
}

#[tokio::test]
async fn a_certificate_is_used_until_the_last_second_and_beyond() {
    let (dir, authority) = (Dir::new(), FakeAuthority::start().await);
    let node = started(&authority, &dir).await;
    node.until_ready(HOST).await;
    let ends_ms = node.status(HOST).ends_ms.unwrap();
    authority.set(|desk| desk.fault = Fault::Html);
    for left_ms in [1000_i64, 0, -1000, -400 * DAY.as_millis() as i64] {
        let now_ms = node.clock.now().0;
        let by_ms = ends_ms.saturating_add_signed(-left_ms) - now_ms;
        authority.set(|desk| desk.ahead_s += (by_ms / 1000) as i64);
        node.clock.advance(Duration::from_millis(by_ms));
        let failures = node.manager.state(HOST).unwrap().record.failures;
        if left_ms == 1000 {
            node.until_failed(HOST, failures + 1).await;
        }
        assert!(node.certificates.is_ready(HOST), "{left_ms} ms are left");
        assert_eq!(node.status(HOST).ends_ms, Some(ends_ms));
    }
    // A restart uses it, too, if nothing better exists.
    let clock = node.clock.clone();
    node.stop().await;
    authority.set(|desk| desk.nodes.clear());
    let node = Node::start(&[&authority], dir.storage(), &[HOST], clock).await;
    assert!(node.certificates.is_ready(HOST));
    authority.set(|desk| desk.fault = Fault::None);
    node.clock.advance(Duration::from_secs(7_300));
    authority.set(|desk| desk.ahead_s += 7_300);
    node.until("another", |node| node.status(HOST).ends_ms > Some(ends_ms)).await;
    node.stop().await;
}
