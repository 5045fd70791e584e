//! Tests of whole rounds, with a small certificate authority that has faults. Each node is a manager of its own; they
//! share a directory or a Valkey. Pebble and the whole server: `acceptance`.

mod accounts;
mod attack;
mod cluster;
mod copies;
mod fake;
mod faults;
mod storage_faults;

use crate::client::AuthorityTrust;
use crate::record::ChallengeKind;
use crate::storage::{LockTimes, Storage, ValueKind};
use crate::{AcmeHosts, AcmeParts, AcmeTimes, Authority, ManagedSource};
use certificates::{CertificateStatus, Certificates, ManagedHosts};
use config::{Acme, AcmeStorage};
use fake::{FakeAuthority, Fault};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use telemetry::clock::Clock;
use telemetry::phase::Phase;
use tokio::sync::watch;
use tokio::task::JoinHandle;

const BOTH: [ChallengeKind; 2] = [ChallengeKind::Http01, ChallengeKind::TlsAlpn01];
/// The time after which a test gives up.
const DEADLINE: Duration = Duration::from_secs(180);
/// The timeout for reading a challenge, which no test reaches.
const READ_WITHIN: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(86_400);

/// A directory for each test; removed when dropped.
struct Dir(PathBuf);

impl Dir {
    fn new() -> Dir {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        Dir(std::env::temp_dir().join(format!("pagewell-acme-{}-{count}", std::process::id())))
    }

    fn storage(&self) -> AcmeStorage {
        AcmeStorage::Directory(self.0.clone())
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A node: a manager that runs, with its certificates.
struct Node {
    manager: Arc<AcmeHosts>,
    certificates: Arc<Certificates>,
    clock: Clock,
    running: JoinHandle<()>,
    phase: watch::Sender<Phase>,
}

impl Node {
    async fn start(
        authorities: &[&FakeAuthority],
        storage: AcmeStorage,
        hosts: &[&str],
        clock: Clock,
    ) -> Node {
        Node::with(authorities, storage, hosts, clock, |_, _| {}).await
    }

    /// A node with other settings.
    async fn with(
        authorities: &[&FakeAuthority],
        storage: AcmeStorage,
        hosts: &[&str],
        clock: Clock,
        edit: impl FnOnce(&mut Acme, &mut Vec<Authority>),
    ) -> Node {
        let look = Duration::from_millis(30);
        Node::with_look(look, authorities, storage, (hosts, clock), edit).await
    }

    /// The same, with looks that are so far apart.
    async fn with_look(
        look: Duration,
        authorities: &[&FakeAuthority],
        storage: AcmeStorage,
        (hosts, clock): (&[&str], Clock),
        edit: impl FnOnce(&mut Acme, &mut Vec<Authority>),
    ) -> Node {
        let directories: Vec<String> =
            authorities.iter().map(|authority| authority.directory.clone()).collect();
        let mut config = Acme {
            email: Some("admin@example.org".into()),
            directory: directories[0].clone(),
            fallback: directories[1..].to_vec(),
            profile: None,
            eab: None,
            storage,
            copy: None,
            secret_files: Vec::new(),
        };
        let of = |directory: String| Authority { directory, rehearsal: None };
        let mut known = directories.into_iter().map(of).collect();
        edit(&mut config, &mut known);
        let lock =
            LockTimes { refresh: Duration::from_millis(300), stale: Duration::from_secs(10) };
        let times = AcmeTimes { lock, challenge_read: READ_WITHIN };
        let trust = AuthorityTrust::Only(authorities[0].root.clone());
        let manager = AcmeHosts::with(&config, (known, trust), BOTH.to_vec(), times, &clock);
        let parts = parts(&manager, hosts, look);
        let certificates = parts.certificates.clone();
        manager.begin(&parts).await;
        for authority in authorities {
            authority.set(|desk| desk.nodes.push(manager.clone()));
        }
        let (phase, stop) = watch::channel(Phase::default());
        let running = tokio::spawn(manager.clone().run(parts, stop));
        Node { manager, certificates, clock, running, phase }
    }

    /// The reads of values of this kind from a directory.
    fn reads(&self, kind: ValueKind) -> usize {
        let Storage::Directory(directory) = &self.manager.storage else { panic!("a directory") };
        directory.reads[kind as usize].load(Ordering::Relaxed)
    }

    fn status(&self, host: &str) -> CertificateStatus {
        let report = self.manager.report();
        report.certificates.into_iter().find(|status| status.name == host).unwrap()
    }

    /// Waits until a condition holds.
    async fn until(&self, what: &str, is_so: impl Fn(&Node) -> bool) {
        let wait = async {
            while !is_so(self) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let waited = tokio::time::timeout(DEADLINE, wait).await;
        assert!(waited.is_ok(), "{what}: {:?}", self.manager.report());
    }

    async fn until_ready(&self, host: &str) {
        self.until(host, |node| node.certificates.is_ready(host)).await;
    }

    /// Waits until a host has failed this many times.
    async fn until_failed(&self, host: &str, failures: u32) {
        self.until("a failure", |node| {
            node.manager.state(host).unwrap().record.failures == failures
        })
        .await;
    }

    /// The process is killed: nothing is released.
    fn kill(self) {
        self.running.abort();
    }

    async fn stop(self) {
        self.phase.send_replace(Phase::Stopping);
        self.running.await.unwrap();
    }
}

/// The parts of a manager, whose certificates are those of the listeners.
fn parts(manager: &Arc<AcmeHosts>, hosts: &[&str], look: Duration) -> AcmeParts {
    let source = ManagedSource(manager.clone());
    let certificates = Arc::new(Certificates::load(vec![Box::new(source)]).unwrap());
    certificates.set_managed(manager.clone());
    let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
    AcmeParts { certificates, hosts: Box::new(move || hosts.clone()), look: Box::new(move || look) }
}

/// A manager that has not begun, with its parts.
fn node_parts(
    authority: &FakeAuthority,
    storage: AcmeStorage,
    hosts: &[&str],
) -> (Arc<AcmeHosts>, AcmeParts) {
    let directory = authority.directory.clone();
    let config = Acme {
        email: None,
        directory: directory.clone(),
        fallback: Vec::new(),
        profile: None,
        eab: None,
        storage,
        copy: None,
        secret_files: Vec::new(),
    };
    let known = vec![Authority { directory, rehearsal: None }];
    let trust = AuthorityTrust::Only(authority.root.clone());
    let times = AcmeTimes { challenge_read: READ_WITHIN, ..AcmeTimes::default() };
    let manager = AcmeHosts::with(&config, (known, trust), BOTH.to_vec(), times, &Clock::still());
    let parts = parts(&manager, hosts, Duration::from_millis(30));
    (manager, parts)
}

#[tokio::test]
async fn a_host_gets_a_certificate_and_a_restart_orders_no_other() {
    let (dir, authority) = (Dir::new(), FakeAuthority::start().await);
    let node = Node::start(&[&authority], dir.storage(), &["a.example.org"], Clock::still()).await;
    assert!(!node.certificates.is_ready("a.example.org"));
    node.until_ready("a.example.org").await;
    let status = node.status("a.example.org");
    assert_eq!((status.issuer.as_deref(), status.failure), (Some("Fake Root"), None));
    node.until("no step is due", |node| {
        node.status("a.example.org").next_try_ms > Some(node.clock.now().0)
    })
    .await;
    node.stop().await;
    authority.set(|desk| desk.nodes.clear());
    let node = Node::start(&[&authority], dir.storage(), &["a.example.org"], Clock::still()).await;
    assert!(node.certificates.is_ready("a.example.org"), "from the storage, before any look");
    node.stop().await;
    assert_eq!(
        (authority.orders("a.example.org"), authority.desk.lock().unwrap().accounts),
        (1, 1)
    );
}

#[tokio::test]
async fn a_refused_alias_does_not_block_the_others() {
    let (dir, authority) = (Dir::new(), FakeAuthority::start().await);
    authority.refuse("bad.example.org", "connection");
    let hosts = ["bad.example.org", "a.example.org", "b.example.org", "localhost", "10.0.0.1"];
    let node = Node::start(&[&authority], dir.storage(), &hosts, Clock::still()).await;
    node.until_ready("a.example.org").await;
    node.until_ready("b.example.org").await;
    node.until_failed("bad.example.org", 1).await;
    let failure = node.status("bad.example.org").failure.unwrap();
    assert_eq!(failure.cause.as_str(), "port-80");
    assert!(failure.text.contains("Connection refused"), "{}", failure.text);
    assert_eq!(node.manager.report().skipped.len(), 2);
    // One minute later the other kind of challenge is tried.
    node.clock.advance(Duration::from_secs(70));
    node.until_failed("bad.example.org", 2).await;
    assert_eq!(node.status("bad.example.org").failure.unwrap().cause.as_str(), "port-443");
    authority.set(|desk| desk.refused.clear());
    node.clock.advance(Duration::from_secs(700));
    node.until_ready("bad.example.org").await;
    node.until("no failure", |node| node.status("bad.example.org").failure.is_none()).await;
    assert_eq!(authority.orders("a.example.org"), 1);
    node.stop().await;
}

#[tokio::test]
async fn ten_orders_begin_in_a_minute() {
    let (dir, authority) = (Dir::new(), FakeAuthority::start().await);
    let hosts: Vec<String> = (10..23).map(|at| format!("h{at}.example.org")).collect();
    let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
    let node = Node::start(&[&authority], dir.storage(), &hosts, Clock::still()).await;
    node.until("ten certificates", |node| {
        hosts.iter().filter(|host| node.certificates.is_ready(host)).count() == 10
    })
    .await;
    let waiting = node.manager.report().certificates;
    let waiting = waiting.iter().filter(|status| status.issuer.is_none()).count();
    assert_eq!((waiting, authority.desk.lock().unwrap().orders.len()), (3, 10));
    assert!(node.manager.due().iter().all(|busy| node.certificates.is_ready(&busy.host)));
    node.stop().await;
}

#[tokio::test]
async fn a_finished_task_reads_no_other_host() {
    let (dir, authority) = (Dir::new(), FakeAuthority::start().await);
    let hosts: Vec<String> = (10..50).map(|at| format!("h{at}.example.org")).collect();
    let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
    let hour = Duration::from_secs(3600);
    let of = (&hosts[..], Clock::still());
    let node = Node::with_look(hour, &[&authority], dir.storage(), of, |_, _| {}).await;
    node.until("ten certificates", |node| {
        hosts.iter().filter(|host| node.certificates.is_ready(host)).count() == 10
    })
    .await;
    // Each host twice at the start, and those with an order once more.
    node.until("the reads", |node| node.reads(ValueKind::Certificate) >= 90).await;
    assert_eq!(node.reads(ValueKind::Certificate), 90);
    node.stop().await;
}

#[tokio::test]
async fn tasks_that_wait_for_a_place_count_as_orders() {
    let (dir, authority) = (Dir::new(), FakeAuthority::start().await);
    authority.set(|desk| desk.fault = Fault::Hang);
    let hosts: Vec<String> = (10..50).map(|at| format!("h{at}.example.org")).collect();
    let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
    let hour = Duration::from_secs(3600);
    let of = (&hosts[..], Clock::still());
    let node = Node::with_look(hour, &[&authority], dir.storage(), of, |_, _| {}).await;
    node.until("a task", |node| hosts.iter().any(|host| node.manager.is_holding(host))).await;
    assert_eq!(node.manager.due().len(), 0, "ten have a task, some of them only wait");
    node.stop().await;
}

#[tokio::test]
async fn a_task_that_is_aborted_leaves_its_host_due() {
    let (dir, authority) = (Dir::new(), FakeAuthority::start().await);
    authority.set(|desk| desk.fault = Fault::Hang);
    let host = "a.example.org";
    let node = Node::start(&[&authority], dir.storage(), &[host], Clock::still()).await;
    node.until("a task", |node| node.manager.is_holding(host)).await;
    assert_eq!(node.manager.due().len(), 0);
    node.running.abort();
    node.until("due", |node| node.manager.due().len() == 1).await;
}

#[tokio::test]
async fn a_refused_address_stops_no_order() {
    let (dir, authority) = (Dir::new(), FakeAuthority::start().await);
    authority.set(|desk| desk.refuses_contact = true);
    let hosts = ["a.example.org", "b.example.org"];
    let node = Node::start(&[&authority], dir.storage(), &hosts, Clock::still()).await;
    node.until_ready("a.example.org").await;
    node.until_ready("b.example.org").await;
    node.stop().await;
    let refused = || authority.desk.lock().unwrap().refused_contacts;
    assert_eq!(refused(), 1);
    // Another address, for an account that there is.
    authority.set(|desk| desk.nodes.clear());
    let hosts = ["c.example.org", "d.example.org"];
    let edit = |config: &mut Acme, _: &mut _| config.email = Some("other@example.com".into());
    let node = Node::with(&[&authority], dir.storage(), &hosts, Clock::still(), edit).await;
    node.until_ready("c.example.org").await;
    node.until_ready("d.example.org").await;
    assert!((2..=3).contains(&refused()), "told once, or by two tasks at the same time");
    node.stop().await;
}

#[tokio::test]
async fn a_certificate_is_renewed_with_another_key() {
    let (dir, authority) = (Dir::new(), FakeAuthority::start().await);
    let node = Node::start(&[&authority], dir.storage(), &["a.example.org"], Clock::still()).await;
    node.until_ready("a.example.org").await;
    let first = node.manager.state("a.example.org").unwrap().text;
    authority.set(|desk| desk.ahead_s = 61 * 86_400);
    node.clock.advance(DAY * 61);
    node.until("renewed", |node| node.manager.state("a.example.org").unwrap().text != first).await;
    let second = node.manager.state("a.example.org").unwrap().text;
    assert_ne!(first[..100], second[..100], "the key, which comes first");
    assert_eq!(authority.orders("a.example.org"), 2);
    node.stop().await;
}

#[tokio::test]
async fn the_suggested_window_renews_and_names_the_old_certificate() {
    let (dir, authority) = (Dir::new(), FakeAuthority::start().await);
    authority.set(|desk| desk.window_s = Some((20 * 86_400, 21 * 86_400)));
    let node = Node::start(&[&authority], dir.storage(), &["a.example.org"], Clock::still()).await;
    node.until("a suggestion", |node| {
        let record = node.manager.state("a.example.org").unwrap().record;
        record.suggestion.is_some_and(|suggestion| suggestion.window_ms.is_some())
    })
    .await;
    // The certificate is revoked: the window lies in the past, a day later.
    authority.set(|desk| (desk.window_s, desk.ahead_s) = (Some((-100, -50)), 90_000));
    node.clock.advance(Duration::from_secs(90_000));
    node.until("renewed", |_| authority.issued("a.example.org") == 2).await;
    // Also for the new one it lies in the past, but that is from today.
    node.until("no step is due", |node| {
        let (state, status) = (node.manager.state("a.example.org"), node.status("a.example.org"));
        let suggestion = state.unwrap().record.suggestion;
        let window_ms = suggestion.and_then(|suggestion| suggestion.window_ms);
        window_ms.is_some_and(|(_, until_ms)| until_ms < node.clock.now().0)
            && status.next_try_ms > Some(node.clock.now().0)
    })
    .await;
    assert_eq!(authority.issued("a.example.org"), 2);
    let orders = authority.desk.lock().unwrap().orders.clone();
    assert_eq!(orders[0].1, None);
    assert!(orders[1].1.as_ref().is_some_and(|replaces| replaces.contains('.')), "{orders:?}");
    node.kill();
}
