//! Restarts while the shared storage is away, empty or older, and a node that could not write: the newest certificate
//! stays in use, on every node.

use super::cluster::in_valkey;
use super::fake::{FakeAuthority, Fault};
use super::{DAY, Dir, Node};
use crate::copies::LocalCopies;
use crate::storage::{Directory, LockTimes, Storage, ValueKind};
use certificates::ManagedHosts;
use config::{Acme, AcmeStorage, SecretBytes};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use telemetry::clock::Clock;

const HOST: &str = "a.example.org";

/// A directory with the shared storage and a node's copy.
struct Place(Dir);

impl Place {
    fn new() -> Place {
        Place(Dir::new())
    }

    fn shared(&self) -> PathBuf {
        self.0.0.join("shared")
    }

    fn storage(&self) -> AcmeStorage {
        AcmeStorage::Directory(self.shared())
    }

    fn copy(&self) -> PathBuf {
        self.0.0.join("copy")
    }

    /// The stored certificate; empty without one.
    fn stored(&self) -> Vec<u8> {
        fs::read(self.shared().join("certificates/a.example.org.pem")).unwrap_or_default()
    }

    fn copied(&self) -> Vec<u8> {
        fs::read(self.copy().join("certificates/a.example.org.pem")).unwrap_or_default()
    }

    /// Whether nodes may use the shared storage.
    fn allow(&self, is_allowed: bool) {
        chmod(&self.shared(), if is_allowed { 0o700 } else { 0o755 });
    }

    /// A node with a copy.
    async fn node(&self, authority: &FakeAuthority, storage: AcmeStorage, clock: &Clock) -> Node {
        authority.set(|desk| desk.nodes.clear());
        let edit = |config: &mut Acme, _: &mut _| config.copy = Some(self.copy());
        Node::with(&[authority], storage, &[HOST], clock.clone(), edit).await
    }
}

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn text(node: &Node) -> Vec<u8> {
    node.manager.state(HOST).unwrap().text
}

/// Time until certificates are due.
fn pass(authority: &FakeAuthority, clock: &Clock) {
    authority.set(|desk| desk.ahead_s += 61 * 86_400);
    clock.advance(DAY * 61);
}

#[tokio::test]
async fn a_restart_without_the_storage_changes_no_certificate_and_the_newest_one_wins() {
    let (place, authority, clock) = (Place::new(), FakeAuthority::start().await, Clock::still());
    let node = place.node(&authority, place.storage(), &clock).await;
    node.until_ready(HOST).await;
    let first = text(&node);
    node.until("a copy", |_| place.copied() == first).await;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let file = place.copy().join("certificates/a.example.org.pem");
    assert_eq!((mode(&place.copy()), mode(&file)), (0o700, 0o600));
    node.stop().await;
    // Another node renews the certificate.
    pass(&authority, &clock);
    authority.set(|desk| desk.nodes.clear());
    let other = Node::start(&[&authority], place.storage(), &[HOST], clock.clone()).await;
    other.until("another", |node| text(node) != first).await;
    let second = text(&other);
    other.until("it is stored", |_| place.stored() == second).await;
    other.stop().await;
    place.allow(false);
    let node = place.node(&authority, place.storage(), &clock).await;
    assert!(node.certificates.is_ready(HOST) && text(&node) == first, "at once");
    assert!(node.manager.report().storage_error.unwrap().contains("chmod 700"));
    place.allow(true);
    node.until("the newer one", |node| text(node) == second && place.copied() == second).await;
    assert_eq!(place.stored(), second);
    node.stop().await;
    // The storage is put back to a former state: the copy is newer.
    fs::write(place.shared().join("certificates/a.example.org.pem"), &first).unwrap();
    place.allow(false);
    let node = place.node(&authority, place.storage(), &clock).await;
    assert_eq!(text(&node), second);
    place.allow(true);
    node.until("the newer one is stored", |_| place.stored() == second).await;
    assert_eq!((text(&node), authority.orders(HOST)), (second, 2));
    node.stop().await;
}

#[tokio::test]
async fn valkey_may_be_away_and_come_back_empty() {
    let (place, authority, clock) = (Place::new(), FakeAuthority::start().await, Clock::still());
    let mut server = harness::Valkey::start(&[]).unwrap();
    let storage = in_valkey(&server, "p:acme:".into(), ("", ""));
    let node = place.node(&authority, storage.clone(), &clock).await;
    node.until_ready(HOST).await;
    node.until("a copy", |_| !place.copied().is_empty()).await;
    let copied = place.copied();
    assert!(!copied.windows(11).any(|part| part == b"PRIVATE KEY" || part == b"CERTIFICATE"));
    let first = text(&node);
    node.stop().await;
    server.stop();
    authority.set(|desk| desk.fault = Fault::Hang);
    let node = place.node(&authority, storage.clone(), &clock).await;
    assert!(node.certificates.is_ready(HOST) && text(&node) == first, "at once");
    assert!(node.manager.report().storage_error.unwrap().contains("the server of [cluster]"));
    server.start_again().unwrap();
    let is_stored = || server.command(&["EXISTS", "p:acme:certificates:a.example.org"]).unwrap();
    node.until("it is stored again", |_| is_stored() == "1").await;
    // A node without a copy finds it.
    authority.set(|desk| desk.nodes.clear());
    let other = Node::start(&[&authority], storage, &[HOST], clock.clone()).await;
    assert!(other.certificates.is_ready(HOST) && text(&other) == first);
    assert_eq!(authority.orders(HOST), 1);
    for node in [node, other] {
        node.stop().await;
    }
}

#[tokio::test]
async fn a_lost_or_damaged_value_costs_no_certificate() {
    let (place, authority, clock) = (Place::new(), FakeAuthority::start().await, Clock::still());
    let node = place.node(&authority, place.storage(), &clock).await;
    node.until_ready(HOST).await;
    let first = text(&node);
    node.until("both have it", |_| place.stored() == first && place.copied() == first).await;
    authority.set(|desk| desk.fault = Fault::Hang);
    fs::remove_file(place.shared().join("certificates/a.example.org.pem")).unwrap();
    node.until("stored again", |_| place.stored() == first).await;
    node.stop().await;
    // All is lost while the node is down, and the authority is, too.
    while place.shared().exists() {
        // A write that had begun before the stop may still put something in.
        let _ = fs::remove_dir_all(place.shared());
        tokio::task::yield_now().await;
    }
    let node = place.node(&authority, place.storage(), &clock).await;
    assert!(node.certificates.is_ready(HOST) && text(&node) == first, "at once");
    node.until("stored again", |_| place.stored() == first).await;
    node.stop().await;
    // A stored value that is damaged.
    fs::write(place.shared().join("certificates/a.example.org.pem"), "x").unwrap();
    let node = place.node(&authority, place.storage(), &clock).await;
    assert!(node.certificates.is_ready(HOST) && text(&node) == first, "at once");
    assert_eq!(authority.orders(HOST), 1);
    node.stop().await;
}

#[tokio::test]
async fn a_node_that_could_not_write_leaves_a_newer_certificate() {
    let (place, authority, clock) = (Place::new(), FakeAuthority::start().await, Clock::still());
    let authorities = [&authority];
    let start = || Node::start(&authorities, place.storage(), &[HOST], clock.clone());
    let node = start().await;
    node.until_ready(HOST).await;
    let first = text(&node);
    let Storage::Directory(directory) = node.manager.storage.clone() else { panic!("a directory") };
    directory.is_full.store(true, Ordering::Relaxed);
    pass(&authority, &clock);
    node.until("unsaved", |node| node.manager.state(HOST).unwrap().is_unsaved).await;
    let other = start().await;
    other.until("another", |node| text(node) != first).await;
    let second = text(&other);
    other.until("it is stored", |_| place.stored() == second).await;
    node.until("the newer one", |node| text(node) == second).await;
    directory.is_full.store(false, Ordering::Relaxed);
    node.until("saved", |node| !node.manager.state(HOST).unwrap().is_unsaved).await;
    assert_eq!((place.stored(), authority.orders(HOST)), (second, 2));
    for node in [node, other] {
        node.stop().await;
    }
}

#[tokio::test]
async fn a_copy_opens_with_its_key_and_in_a_private_directory_only() {
    let (place, clock) = (Place::new(), Clock::still());
    let server = harness::Valkey::start(&[]).unwrap();
    let copies = |key: u8| {
        let mut storage = in_valkey(&server, "p:acme:".into(), ("", ""));
        if let AcmeStorage::Valkey { seal_key, .. } = &mut storage {
            *seal_key = SecretBytes(vec![key; 32]);
        }
        let (directory, copy) = ("https://ca.test/".to_owned(), Some(place.copy()));
        let (fallback, profile, eab, email) = (Vec::new(), None, None, None);
        let secret_files = Vec::new();
        let config = Acme { email, directory, fallback, profile, eab, storage, copy, secret_files };
        LocalCopies::new(&config, &clock).unwrap()
    };
    let (right, wrong) = (copies(7), copies(8));
    assert_eq!(right.read(HOST).await, Ok(None));
    right.write(HOST, b"text").await.unwrap();
    assert_eq!(right.read(HOST).await, Ok(Some(b"text".to_vec())));
    let why = wrong.read(HOST).await.unwrap_err();
    assert!(
        why.starts_with("acme.copy: a.example.org: ") && why.contains("seal_key_file"),
        "{why}"
    );
    // The copy of another host.
    let directory = Directory::new(place.copy(), LockTimes::default(), clock.clone());
    directory.write(ValueKind::Certificate, "b.example.org", &place.copied()).unwrap();
    assert!(right.read("b.example.org").await.is_err());
    chmod(&place.copy(), 0o755);
    for why in [right.read(HOST).await.unwrap_err(), right.write(HOST, b"x").await.unwrap_err()] {
        assert!(why.starts_with("acme.copy: ") && why.contains("chmod 700"), "{why}");
    }
}
