//! Faults of the storage: full, slow, damaged, open to other users, and locks whose holders have died. Certificates in
//! use stay, and nothing is ordered that could not be stored.

use super::fake::{FakeAuthority, Fault};
use super::faults::started;
use super::{DAY, Dir, Node, node_parts};
use crate::answers::{ChallengeReads, HostChallenge};
use crate::leaf::Bundle;
use crate::record::NameRecord;
use crate::storage::{Directory, LockTimes, Storage, ValueKind};
use certificates::ManagedHosts;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use telemetry::clock::Clock;
use telemetry::phase::Phase;
use tokio::sync::{Semaphore, watch};

const HOST: &str = "a.example.org";

#[tokio::test]
async fn a_full_disk_orders_nothing_and_recovers() {
    let (dir, authority) = (Dir::new(), FakeAuthority::start().await);
    authority.set(|desk| desk.fault = Fault::Hang);
    let node = started(&authority, &dir).await;
    let Storage::Directory(directory) = node.manager.storage.clone() else { panic!("a directory") };
    directory.is_full.store(true, Ordering::Relaxed);
    node.until_failed(HOST, 1).await;
    assert_eq!(node.status(HOST).failure.unwrap().cause.as_str(), "storage");
    assert!(node.manager.report().storage_error.unwrap().contains("no storage space"));
    assert_eq!(authority.orders(HOST), 0);
    authority.set(|desk| desk.fault = Fault::None);
    directory.is_full.store(false, Ordering::Relaxed);
    node.clock.advance(Duration::from_secs(700));
    node.until_ready(HOST).await;
    assert_eq!(authority.orders(HOST), 1);
    node.stop().await;
}

#[tokio::test]
async fn a_certificate_that_cannot_be_stored_is_used_and_stored_later() {
    let (dir, authority) = (Dir::new(), FakeAuthority::start().await);
    let (manager, parts) = node_parts(&authority, dir.storage(), &[HOST]);
    manager.begin(&parts).await;
    let Storage::Directory(directory) = manager.storage.clone() else { panic!("a directory") };
    directory.is_full.store(true, Ordering::Relaxed);
    let made = rcgen::generate_simple_self_signed(vec![HOST.to_owned()]).unwrap();
    let text = format!("{}{}", made.signing_key.serialize_pem(), made.cert.pem());
    let bundle = Bundle::read(HOST, text.as_bytes()).unwrap();
    manager.use_certificate(HOST, bundle, text.clone(), NameRecord::default()).await;
    let (certificates, clock) = (parts.certificates.clone(), manager.clock.clone());
    certificates.refresh().unwrap();
    assert!(certificates.is_ready(HOST));
    assert!(manager.report().storage_error.unwrap().contains("no storage space"));
    let file = dir.0.join("certificates/a.example.org.pem");
    assert!(!file.exists());
    directory.is_full.store(false, Ordering::Relaxed);
    let (phase, stop) = watch::channel(Phase::default());
    let running = tokio::spawn(manager.clone().run(parts, stop));
    let node = Node { manager, certificates, clock, running, phase };
    let is_stored = |_: &Node| std::fs::read_to_string(&file).is_ok_and(|found| found == text);
    node.until("it is stored", is_stored).await;
    assert_eq!(authority.orders(HOST), 0);
    node.stop().await;
}

#[test]
fn a_directory_must_be_private() {
    let dir = Dir::new();
    let directory = Directory::new(dir.0.clone(), LockTimes::default(), Clock::still());
    directory.write(ValueKind::Certificate, "a.org", b"key").unwrap();
    assert_eq!(directory.read(ValueKind::Certificate, "a.org").unwrap().unwrap(), b"key");
    let mode =
        |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let file = dir.0.join("certificates/a.org.pem");
    assert_eq!((mode(&dir.0), mode(&file)), (0o700, 0o600));
    let chmod = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    chmod(&file, 0o640);
    let why = directory.read(ValueKind::Certificate, "a.org").unwrap_err();
    assert!(why.ends_with(&format!("chmod 600 {}", file.display())), "{why}");
    chmod(&file, 0o600);
    chmod(&dir.0, 0o755);
    let why = directory.read(ValueKind::Certificate, "a.org").unwrap_err();
    assert!(why.ends_with(&format!("chmod 700 {}", dir.0.display())), "{why}");
    chmod(&dir.0, 0o700);
    std::fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", &file).unwrap();
    assert!(directory.read(ValueKind::Certificate, "a.org").is_err(), "a link");
    if std::os::unix::fs::chown(&dir.0, Some(65_534), None).is_ok() {
        let why = directory.read(ValueKind::Host, "a.org").unwrap_err();
        assert!(why.contains("another user (uid 65534): chown -R 0 "), "{why}");
    }
}

#[test]
fn a_lock_has_one_holder_and_becomes_free() {
    let dir = Dir::new();
    let times = LockTimes { refresh: Duration::ZERO, stale: Duration::ZERO };
    let node = |times| Arc::new(Directory::new(dir.0.clone(), times, Clock::still()));
    let (one, other, late) = (node(LockTimes::default()), node(LockTimes::default()), node(times));
    assert!(one.lock("a", "1").unwrap());
    assert!(!other.lock("a", "2").unwrap());
    assert!(!late.lock("a", "3").unwrap(), "seen for the first time");
    assert!(one.refresh("a", "1").unwrap());
    assert!(!late.lock("a", "3").unwrap(), "it has changed");
    assert!(late.lock("a", "3").unwrap(), "nobody has refreshed it");
    assert!(!one.refresh("a", "1").unwrap() && !one.unlock("a", "1").unwrap(), "it is lost");
    assert!(late.unlock("a", "3").unwrap());
    // The file of a process that died while it wrote.
    std::fs::write(dir.0.join("locks/a"), "").unwrap();
    std::fs::set_permissions(dir.0.join("locks/a"), std::fs::Permissions::from_mode(0o600))
        .unwrap();
    assert!(!late.lock("a", "4").unwrap() && late.lock("a", "4").unwrap());
    // The lock of a process of this machine that has ended is free at once.
    let mut ended = std::process::Command::new("true").spawn().unwrap();
    ended.wait().unwrap();
    let text = std::fs::read_to_string(dir.0.join("locks/a")).unwrap();
    let own = std::process::id().to_string();
    std::fs::write(dir.0.join("locks/a"), text.replace(&own, &ended.id().to_string())).unwrap();
    assert!(one.lock("a", "5").unwrap());
}

#[tokio::test]
async fn a_stored_certificate_that_cannot_be_used_is_replaced() {
    let (dir, authority) = (Dir::new(), FakeAuthority::start().await);
    let file = |host: &str| dir.0.join(format!("certificates/{host}.pem"));
    let damaged = ["x".into(), "x".repeat(300 << 10), "x".repeat(2 << 20)];
    let hosts = ["a.example.org", "b.example.org", "c.example.org"];
    let directory = Directory::new(dir.0.clone(), LockTimes::default(), Clock::still());
    for (host, text) in hosts.iter().zip(damaged) {
        directory.write(ValueKind::Certificate, host, text.as_bytes()).unwrap();
    }
    let node = Node::start(&[&authority], dir.storage(), &hosts, Clock::still()).await;
    for host in hosts {
        node.until_ready(host).await;
        assert!(std::fs::read_to_string(file(host)).unwrap().contains("BEGIN CERTIFICATE"));
        assert_eq!(authority.orders(host), 1);
    }
    assert_eq!(node.manager.report().storage_error, None);
    // A running node uses the one in memory, and replaces the damaged one when it is due.
    directory.write(ValueKind::Certificate, HOST, b"y").unwrap();
    authority.set(|desk| desk.ahead_s = 61 * 86_400);
    node.clock.advance(DAY * 61);
    node.until("replaced", |_| std::fs::read_to_string(file(HOST)).unwrap().len() > 100).await;
    assert_eq!(authority.orders(HOST), 2);
    node.stop().await;
}

#[tokio::test]
async fn an_unusable_storage_is_a_failure_of_the_host_until_it_is_mended() {
    let (dir, authority) = (Dir::new(), FakeAuthority::start().await);
    let directory = Directory::new(dir.0.clone(), LockTimes::default(), Clock::still());
    directory.write(ValueKind::Certificate, HOST, b"x").unwrap();
    let file = dir.0.join("certificates/a.example.org.pem");
    let chmod = |mode| {
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    chmod(0o644);
    let node = started(&authority, &dir).await;
    node.until("a failure", |node| node.status(HOST).failure.is_some()).await;
    let failure = node.status(HOST).failure.unwrap();
    assert_eq!(failure.cause.as_str(), "storage");
    assert!(failure.text.contains("chmod 600"), "{}", failure.text);
    assert_eq!(authority.orders(HOST), 0);
    chmod(0o600);
    node.until_ready(HOST).await;
    node.until("no failure", |node| node.status(HOST).failure.is_none()).await;
    node.stop().await;
}

#[tokio::test]
async fn a_restart_uses_a_certificate_that_others_can_read_but_none_that_they_can_write() {
    let (dir, authority) = (Dir::new(), FakeAuthority::start().await);
    let node = started(&authority, &dir).await;
    node.until_ready(HOST).await;
    node.until("no step is due", |node| node.status(HOST).next_try_ms > Some(node.clock.now().0))
        .await;
    node.stop().await;
    let file = dir.0.join("certificates/a.example.org.pem");
    let chmod = |directory, mode| {
        for (path, mode) in [(&dir.0, directory), (&file, mode)] {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        }
    };
    for (directory, mode, is_used, command) in [
        (0o755, 0o644, true, "chmod 700"),
        (0o700, 0o644, true, "chmod 600"),
        (0o775, 0o600, false, "chmod 700"),
        (0o700, 0o620, false, "chmod 600"),
    ] {
        chmod(directory, mode);
        let (manager, parts) = node_parts(&authority, dir.storage(), &[HOST]);
        manager.begin(&parts).await;
        let case = format!("{directory:o} {mode:o}");
        assert_eq!(parts.certificates.is_ready(HOST), is_used, "{case}");
        let error = manager.report().storage_error.unwrap();
        assert!(error.contains(command), "{case}: {error}");
    }
    chmod(0o700, 0o600);
    let node = started(&authority, &dir).await;
    assert!(node.certificates.is_ready(HOST));
    assert_eq!((node.manager.report().storage_error, authority.orders(HOST)), (None, 1));
    node.stop().await;
}

#[tokio::test]
async fn a_storage_that_hangs_at_the_start_leaves_what_was_read() {
    let (dir, authority) = (Dir::new(), FakeAuthority::start().await);
    let hosts = [HOST, "b.example.org", "hangs.example.org"];
    let node = Node::start(&[&authority], dir.storage(), &hosts[..2], Clock::still()).await;
    node.until_ready(hosts[0]).await;
    node.until_ready(hosts[1]).await;
    node.stop().await;
    let (manager, parts) = node_parts(&authority, dir.storage(), &hosts);
    let Storage::Directory(directory) = manager.storage.clone() else { panic!("a directory") };
    let hang = |name: Option<&str>| *directory.hangs.lock().unwrap() = name.map(str::to_owned);
    hang(Some(hosts[2]));
    manager.begin(&parts).await;
    assert!(parts.certificates.is_ready(hosts[0]) && parts.certificates.is_ready(hosts[1]));
    assert!(manager.report().storage_error.unwrap().contains("does not answer"));
    hang(None);
}

#[tokio::test]
async fn a_challenge_that_is_not_read_in_time_is_not_answered() {
    let dir = Dir::new();
    let storage = Storage::new(&dir.storage(), LockTimes::default(), Clock::still());
    // Other reads have all places.
    let reads = ChallengeReads { places: Semaphore::new(0), within: Duration::ZERO };
    assert!(HostChallenge::default().find(&storage, &reads, HOST).await.is_none());
}
