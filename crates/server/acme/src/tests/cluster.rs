//! Three nodes that share a storage, whose holders of the lock are killed at any moment: each host gets one
//! certificate, and every node uses it and answers its challenges.
//!
//! `ACME_RUNS` is the number of runs for each storage; 10 if it is not set.

use super::fake::FakeAuthority;
use super::{DAY, Dir, Node};
use crate::storage::{LockTimes, Storage, StorageKey, ValueKind};
use crate::tickets::SharedTickets;
use certificates::{Certificates, ManagedHosts};
use config::{
    Account, AcmeStorage, DatabaseKind, DatabaseServer, Place, PositionBy, SecretBytes,
    SharedStream, UnpublishedWrites,
};
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;
use telemetry::clock::Clock;

const NODES: usize = 3;

fn runs() -> usize {
    std::env::var("ACME_RUNS").ok().and_then(|runs| runs.parse().ok()).unwrap_or(10)
}

/// One run: of three nodes, the first holder of the lock is killed `after` this many milliseconds.
async fn run(storage: AcmeStorage, host: String, after_ms: u64) -> usize {
    let authority = Arc::new(FakeAuthority::start().await);
    authority.set(|desk| desk.pause = Duration::from_millis(40));
    let mut nodes = Vec::new();
    for _ in 0..NODES {
        nodes.push(Node::start(&[&authority], storage.clone(), &[&host], Clock::still()).await);
    }
    tokio::time::sleep(Duration::from_millis(after_ms)).await;
    // A node that has not begun is no holder: then it does not matter which one is killed.
    let holder = nodes.iter().position(|node| node.manager.is_holding(&host)).unwrap_or(0);
    let killed = nodes.remove(holder);
    let manager: Arc<dyn certificates::ManagedHosts> = killed.manager.clone();
    authority.set(|desk| desk.nodes.retain(|node| !Arc::ptr_eq(node, &manager)));
    killed.kill();
    for node in &nodes {
        node.until_ready(&host).await;
    }
    let texts: Vec<_> = nodes.iter().map(|node| node.manager.state(&host).unwrap().text).collect();
    assert_eq!(texts[0], texts[1], "both use the same certificate");
    for node in nodes {
        node.stop().await;
    }
    assert_eq!(authority.issued(&host), 1, "after {after_ms} ms");
    authority.orders(&host)
}

/// All runs, some at a time. Returns how many had an order whose holder was killed before it had stored it.
async fn all(storage: impl Fn(usize) -> AcmeStorage) -> usize {
    let (mut abandoned, numbers) = (0, (0..runs()).collect::<Vec<_>>());
    for some in numbers.chunks(10) {
        let mut tasks = tokio::task::JoinSet::new();
        for at in some {
            let after_ms = (*at as u64 * 37) % 250;
            tasks.spawn(run(storage(*at), format!("run-{at}.example.org"), after_ms));
        }
        while let Some(orders) = tasks.join_next().await {
            abandoned += orders.unwrap() - 1;
        }
    }
    abandoned
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_holders_on_a_shared_directory_lead_to_one_certificate() {
    let dirs: Vec<Dir> = (0..runs()).map(|_| Dir::new()).collect();
    let abandoned = all(|at| dirs[at].storage()).await;
    println!("{} runs, {abandoned} orders abandoned before they were stored", runs());
}

/// The storage in this Valkey, under keys that begin with a prefix, for an account (name and password).
pub(super) fn in_valkey(
    server: &harness::Valkey,
    prefix: String,
    (user, password): (&str, &str),
) -> AcmeStorage {
    let stream =
        SharedStream { key: "p".into(), keep: 1000, unpublished: UnpublishedWrites::Accept };
    AcmeStorage::Valkey {
        server: Box::new(DatabaseServer {
            kind: DatabaseKind::Valkey(stream),
            place: Place::Unix(server.socket().to_owned()),
            account: Account { user: user.into(), password: password.into(), database: "0".into() },
            tls: None,
            by: PositionBy::Gtid,
        }),
        prefix,
        seal_key: SecretBytes(vec![7; 32]),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_holders_on_valkey_lead_to_one_certificate() {
    let server = harness::Valkey::start(&[]).unwrap();
    let abandoned = all(|at| in_valkey(&server, format!("p{at}:acme:"), ("", ""))).await;
    println!("{} runs, {abandoned} orders abandoned before they were stored", runs());
}

/// The account of the guide may do all that the storage does, also in scripts.
#[tokio::test]
async fn the_privileges_of_the_guide_are_enough() {
    let guide = harness::root::repository().join("docs/guide/several-machines.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let line = |begin: &str| guide.lines().find(|line| line.starts_with(begin)).unwrap();
    let more = line("`acme.storage = \"valkey\"` also needs");
    let more = more.split([' ', '`', '.']).filter(|word| word.starts_with('+'));
    let account = line("ACL SETUSER pagewell on >secret ").split(' ').chain(more);
    let server = harness::Valkey::start(&[]).unwrap();
    server.command(&account.collect::<Vec<_>>()).unwrap();
    let place = in_valkey(&server, "pagewell:a:acme:".into(), ("pagewell", "secret"));
    let storage = Storage::new(&place, LockTimes::default(), Clock::still());
    let key = StorageKey { kind: ValueKind::Challenge, name: "a.example.org" };
    storage.write(key, b"value").await.unwrap();
    assert_eq!(storage.read(key).await.unwrap().as_deref(), Some(&b"value"[..]));
    assert!(!storage.version().await.unwrap().is_empty());
    storage.remove(key).await.unwrap();
    let lock = storage.lock("a.example.org").await.unwrap().unwrap();
    assert!(lock.refresh().await.unwrap());
    assert!(storage.lock("a.example.org").await.unwrap().is_none());
    lock.release().await;
    assert!(storage.lock("a.example.org").await.unwrap().is_some());
}

#[tokio::test]
async fn nodes_share_the_keys_of_session_tickets_and_replace_them() {
    let (dir, authority) = (Dir::new(), FakeAuthority::start().await);
    let clock = Clock::still();
    let hosts = ["a.example.org"];
    let first = Node::start(&[&authority], dir.storage(), &hosts, clock.clone()).await;
    let second = Node::start(&[&authority], dir.storage(), &hosts, clock.clone()).await;
    let are_same = |node: &Node| node.manager.tickets.has_those_of(&first.manager.tickets);
    second.until("the same keys", are_same).await;
    let begin = clock.now().0;
    assert_eq!(first.manager.tickets.made_ms(), [begin]);
    let hours = |hours: u64| Duration::from_secs(3600 * hours);
    clock.advance(hours(6));
    first.until("a new key", |node| node.manager.tickets.made_ms().len() == 2).await;
    second.until("the same keys", are_same).await;
    let middle = begin + 6 * 3_600_000;
    assert_eq!(second.manager.tickets.made_ms(), [middle, begin], "the one before is accepted");
    clock.advance(hours(6));
    let is_gone = |node: &Node| !node.manager.tickets.made_ms().contains(&begin);
    first.until("the first is forgotten", is_gone).await;
    second.until("the same keys", are_same).await;
    assert_eq!(second.manager.tickets.made_ms().len(), 2);
    // The storage cannot be used: each node forgets the keys by its own monotonic clock.
    let tickets = &second.manager.tickets;
    std::fs::set_permissions(&dir.0, std::fs::Permissions::from_mode(0o755)).unwrap();
    second.until("an error", |node| node.manager.report().storage_error.is_some()).await;
    tickets.forget(&second.certificates, second.clock.instant() + hours(11));
    assert_eq!(tickets.in_use(), 2);
    tickets.forget(&second.certificates, second.clock.instant() + hours(12));
    assert_eq!(tickets.in_use(), 0, "then tickets have keys of this process only");
    for node in [first, second] {
        node.stop().await;
    }
}

/// A look of a node with this clock. Returns when the keys were made that it then has.
async fn look(tickets: &SharedTickets, storage: &Storage, clock: &Clock) -> Vec<u64> {
    let certificates = Certificates::load(Vec::new()).unwrap();
    let at = (true, clock.now().0, clock.instant());
    tickets.look(storage, &certificates, at).await.unwrap();
    tickets.made_ms()
}

#[tokio::test]
async fn nodes_whose_clocks_differ_by_a_year_replace_a_key_once_in_its_time() {
    let dir = Dir::new();
    let (right, ahead) = (Clock::still(), Clock::still());
    ahead.advance(DAY * 365);
    let storage = Storage::new(&dir.storage(), LockTimes::default(), right.clone());
    let (one, other) = (SharedTickets::default(), SharedTickets::default());
    let first = look(&one, &storage, &right).await;
    assert_eq!(first, [right.now().0]);
    // A process that has just started knows its own clock only.
    let second = look(&other, &storage, &ahead).await;
    assert_eq!(second, [ahead.now().0, first[0]]);
    for _ in 0..3 {
        assert_eq!(look(&one, &storage, &right).await, second);
        assert_eq!(look(&other, &storage, &ahead).await, second);
    }
    for clock in [&right, &ahead] {
        clock.advance(Duration::from_secs(6 * 3600));
    }
    let third = look(&one, &storage, &right).await;
    assert_eq!(third, [right.now().0, second[0]]);
    for _ in 0..3 {
        assert_eq!(look(&other, &storage, &ahead).await, third);
        assert_eq!(look(&one, &storage, &right).await, third);
    }
    // Lost keys are replaced at once.
    storage.remove(StorageKey { kind: ValueKind::Tickets, name: "keys" }).await.unwrap();
    assert_eq!(look(&one, &storage, &right).await, [right.now().0]);
}
