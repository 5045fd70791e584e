//! Two questions. During the run: has a machine published the changes that were late? At the end: does every
//! machine show the newest version of every page?
//!
//! At the end nobody writes and nothing fails. Every machine has to publish its pending changes, and every
//! page, in every variant, has to show all versions that are due. A page that does not is requested again until
//! the time is up. A request makes no outdated page a new one.

use super::machine::Machine;
use super::stand::Stand;
use super::{locked, pause};
use crate::judge::{Judgement, Question, judge};
use crate::run::HOST;
use crate::site::Page;
use crate::stamp::dotted;
use harness::stand::AuditCounts;
use harness::{Client, Deadline, Request};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

/// How long machines may take, when nothing is disturbed any more, to tell what they have, and then to show
/// it.
const WITHIN: Duration = Duration::from_secs(60);
/// How long an answer may take.
const ANSWER: Duration = Duration::from_secs(30);
/// The time in which an audit sees that a page which it watches was purged, on any machine.
const WATCHED_MAX: Duration = Duration::from_secs(20);
/// How often it is looked.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Checks during the run which changes machines have published.
pub fn watch(stand: &Stand, is_over: &AtomicBool) {
    while !is_over.load(SeqCst) {
        for machine in &stand.machines {
            look(stand, machine);
        }
        pause(LOOK_EVERY);
    }
}

/// Whether a machine has published everything; none where it does not answer now.
fn look(stand: &Stand, machine: &Machine) -> Option<bool> {
    let held = machine.hold_if_free()?;
    let pagewell = held.as_ref()?;
    let moment = locked(&machine.late).moment();
    let untold = pagewell.stats().ok()?.get("cluster_pending").copied()?;
    if untold == 0 {
        let published = locked(&machine.late).published(moment);
        stand.due.owe(&published);
    }
    Some(untold == 0)
}

/// Counters of all machines together, of the lives that they are in.
pub fn counters(stand: &Stand) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    for machine in &stand.machines {
        let counters = machine.hold().as_ref().and_then(|pagewell| pagewell.stats().ok());
        for (name, count) in counters.unwrap_or_default() {
            *all.entry(name).or_default() += count;
        }
    }
    all
}

/// The counts of the audits of all machines in all of their lives, once they have seen which of the pages that they watch
/// were purged; and how many they still watch.
pub fn audited(stand: &Stand) -> (AuditCounts, u64) {
    let deadline = Deadline::after(WATCHED_MAX);
    let watched = || counters(stand).get("audit_watched").copied().unwrap_or_default();
    while watched() > 0 && !deadline.passed() {
        pause(LOOK_EVERY);
    }
    let mut all = AuditCounts::default();
    for machine in &stand.machines {
        match machine.audited() {
            Ok(counts) => all.join(&counts),
            Err(error) => stand.fail(format!("machine {}: {error}", machine.number)),
        }
    }
    (all, watched())
}

/// Waits, bounded, until every machine shows all versions that are due; returns the outdated pages, in words.
pub fn settle(stand: &Stand) -> Vec<String> {
    let deadline = Deadline::after(WITHIN);
    for machine in &stand.machines {
        while look(stand, machine) != Some(true) {
            if deadline.passed() {
                stand.fail(format!("machine {} has not published everything", machine.number));
                break;
            }
            pause(LOOK_EVERY);
        }
        let published = locked(&machine.late).take();
        stand.due.owe(&published);
    }
    thread::scope(|scope| {
        let all = stand.machines.iter().map(|machine| scope.spawn(|| shows_all(stand, machine)));
        let all: Vec<_> = all.collect();
        let panicked = |_| vec!["the check at the end panicked".to_owned()];
        all.into_iter().flat_map(|one| one.join().unwrap_or_else(panicked)).collect()
    })
}

fn shows_all(stand: &Stand, machine: &Machine) -> Vec<String> {
    let mut client = Client::new(stand.address(machine.number)).host(HOST).within(ANSWER);
    let pages = stand.due.site.pages.iter();
    let mut left: Vec<(&Page, char, String)> = pages
        .flat_map(|page| page.variants().iter().map(move |name| (page, *name, String::new())))
        .collect();
    let deadline = Deadline::after(WITHIN);
    loop {
        left.retain_mut(|(page, variant, why)| match shows(stand, &mut client, page, *variant) {
            Ok(()) => false,
            Err(error) => {
                *why = error;
                true
            }
        });
        if left.is_empty() || deadline.passed() {
            break;
        }
        pause(LOOK_EVERY);
    }
    let text = |(page, variant, why): (&Page, char, String)| {
        format!("machine {}: {}, variant {variant}: {why}", machine.number, page.target)
    };
    left.into_iter().map(text).collect()
}

fn shows(stand: &Stand, client: &mut Client, page: &Page, variant: char) -> Result<(), String> {
    let request = Request::get(&page.target).header("X-Variant", &variant.to_string());
    let (site, acknowledged) = (&stand.due.site, stand.due.wanted(page));
    let sent_micros = stand.tally.micros();
    let response = client.send(&request).map_err(|error| error.to_string())?;
    let (is_head, condition) = (false, None);
    let question = Question { site, page, variant, is_head, condition, acknowledged, sent_micros };
    match judge(&question, &response) {
        Judgement::Right(_) | Judgement::Stale(_) => Ok(()),
        Judgement::None => Err(format!("status {}", response.status)),
        Judgement::Wrong(fault, stamp) => Err(format!(
            "{}; it has to be made from {} at least, and was made from {}; status {}, \
             Cache-Status: {}, Age: {}",
            fault.as_str(),
            dotted(&acknowledged),
            stamp.map_or("nothing known".to_owned(), |stamp| dotted(&stamp.versions)),
            response.status,
            response.header("cache-status").unwrap_or("none"),
            response.header("age").unwrap_or("none"),
        )),
    }
}
