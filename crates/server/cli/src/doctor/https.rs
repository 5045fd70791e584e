//! The view of a certificate authority: its directory, and for each host the DNS, the CAA records, and the answer
//! to a challenge at each address.
//!
//! | file | contents |
//! |---|---|
//! | `resolver` | questions to the servers of `/etc/resolv.conf` |
//! | `port` | the answer to a challenge at an address |
//! | `directory` | the directory of the authority, with its clock |
//!
//! Invariants: every wait has a timeout, and so have all together ([`ProbeTimes`]); what is unknown until then is left
//! out. Nobody is trusted here: an answer only leads to a finding.

mod directory;
mod port;
mod resolver;

use certificates::Certificates;
use config::{Config, name_refusal};
use doctor::{AddressFacts, AuthorityFacts, HostFacts, HttpsFacts};
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};
use telemetry::clock::Clock;

/// Maximum number of hosts that are probed.
const HOSTS_MAX: usize = 20;
/// Maximum number of addresses of a host that are probed.
const ADDRESSES_MAX: usize = 4;

/// The timeouts of probes.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProbeTimes {
    /// That of all probes together.
    pub(super) all: Duration,
    /// That of one probe, so that the time suffices for those after it.
    pub(super) probe: Duration,
    /// That of one question to one server of the DNS.
    pub(super) question: Duration,
}

impl Default for ProbeTimes {
    fn default() -> ProbeTimes {
        let [all, probe, question] = [25, 4, 2].map(Duration::from_secs);
        ProbeTimes { all, probe, question }
    }
}

/// How to probe: tests have servers of their own.
#[derive(Clone, Debug)]
pub(super) struct ProbeSettings {
    /// The servers of the DNS.
    pub(super) resolvers: Vec<SocketAddr>,
    /// The port of challenges.
    pub(super) port: u16,
    /// Whether challenges are answered over plain HTTP.
    pub(super) has_plain: bool,
    /// The authorities to trust instead of the system's.
    pub(super) authorities: Option<PathBuf>,
    /// How far the clock is moved, in seconds.
    pub(super) clock_s: i64,
    /// Whether an address is one of this machine's own.
    pub(super) is_own: fn(IpAddr) -> bool,
    /// How long probes may take.
    pub(super) times: ProbeTimes,
}

impl ProbeSettings {
    fn of(config: &Config) -> ProbeSettings {
        let has_plain = !config.listen.is_empty();
        ProbeSettings {
            resolvers: resolver::configured(),
            port: if has_plain { 80 } else { 443 },
            has_plain,
            authorities: None,
            clock_s: 0,
            is_own,
            times: ProbeTimes::default(),
        }
    }
}

/// The facts for a configuration with `[acme]`.
pub(super) fn facts(config: &Config) -> Option<HttpsFacts> {
    let directory = config.acme.as_ref()?.directory.clone();
    Some(probed(directory, names(config), ProbeSettings::of(config)))
}

/// Probes everything at the same time.
fn probed(directory: String, names: BTreeSet<String>, settings: ProbeSettings) -> HttpsFacts {
    let authority = AuthorityFacts { directory, ..AuthorityFacts::default() };
    let has_plain = settings.has_plain;
    let mut facts = HttpsFacts { authority, hosts: Vec::new(), has_plain };
    let (deadline, settings) = (Deadline::after(settings.times.all), Arc::new(settings));
    let (of_authority, authorities) = mpsc::channel();
    let (of_hosts, hosts) = mpsc::channel();
    let (url, shared) = (facts.authority.directory.clone(), settings.clone());
    thread::spawn(move || of_authority.send(directory::look(&url, &shared, deadline)));
    for name in names {
        let (sender, shared) = (of_hosts.clone(), settings.clone());
        thread::spawn(move || sender.send(host(name, &shared, deadline)));
    }
    drop(of_hosts);
    // A thread that is late ends with the process.
    while let Ok(host) = hosts.recv_timeout(deadline.left()) {
        facts.hosts.push(host);
    }
    facts.hosts.sort_by(|one, other| one.name.cmp(&other.name));
    if let Ok(authority) = authorities.recv_timeout(deadline.left()) {
        facts.authority = authority;
    }
    facts
}

/// The hosts whose certificates are obtained.
fn names(config: &Config) -> BTreeSet<String> {
    let given = Certificates::of_files(&config.tls).ok();
    let all = config.all_sites().flat_map(|site| site.hosts.all());
    let names = all.map(|host| host.to_ascii_lowercase()).filter(|host| {
        let is_given = given.as_ref().is_some_and(|given| given.is_given(host));
        !is_given && name_refusal(host).is_none()
    });
    names.take(HOSTS_MAX).collect()
}

fn host(name: String, settings: &ProbeSettings, deadline: Deadline) -> HostFacts {
    let (servers, times) = (&settings.resolvers, settings.times);
    let resolver = resolver::Resolver { servers, question: times.question, deadline };
    let found = resolver.addresses(&name);
    let caa = resolver.caa(&name);
    let (addresses, dns_failure) = match found {
        Ok(addresses) => (addresses, None),
        Err(why) => (Vec::new(), Some(why)),
    };
    let addresses = addresses.into_iter().take(ADDRESSES_MAX).map(|address| {
        let is_own = (settings.is_own)(address);
        let at = SocketAddr::new(address, settings.port);
        let request = settings.has_plain.then_some(name.as_str());
        let answer = port::answer(at, request, deadline.part(times.probe));
        let program = super::on_port(settings.port).filter(|_| is_own).map(|found| found.name);
        AddressFacts { address, is_own, program, answer }
    });
    HostFacts { addresses: addresses.collect(), name, dns_failure, caa }
}

/// Whether an address is one of this machine's own: only then a socket can have it.
fn is_own(address: IpAddr) -> bool {
    UdpSocket::bind((address, 0)).is_ok()
}

/// The end of a wait.
#[derive(Clone, Copy, Debug)]
struct Deadline(Instant);

impl Deadline {
    fn after(time: Duration) -> Deadline {
        Deadline(Clock::start().instant() + time)
    }

    fn left(self) -> Duration {
        self.0.saturating_duration_since(Clock::start().instant())
    }

    /// The end of one step, which has at most this long.
    fn part(self, time: Duration) -> Deadline {
        Deadline(self.0.min(Deadline::after(time).0))
    }

    /// The time that is left for a socket, which takes no zero.
    fn wait(self) -> std::io::Result<Duration> {
        let left = self.left();
        if left.is_zero() { Err(std::io::ErrorKind::TimedOut.into()) } else { Ok(left) }
    }
}

#[cfg(test)]
mod tests;
