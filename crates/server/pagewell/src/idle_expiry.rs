//! Removes the pages that were not requested for the time `cache.inactive` (nginx: `inactive`),
//! if it is set.
//!
//! The store records in which of the last scans each page was requested (`page_store`,
//! `inactive.rs`). One scan runs per eighth of that time, in batches of some hundred pages with a
//! pause in between. So hits and changes wait for at most one batch. A page stays for at least that
//! time after its last request, and is removed within the next eighth. If the time is reconfigured,
//! or the machine's clock is set back, counting starts again: a page may then stay longer, never
//! shorter.
//!
//! Every lookup for a request counts, hit or not, and so does a background refresh. Items under
//! keys of memcached clients stay, because they have their own expiry time.

use delivery::site::Site;
use http_cache::Timestamp;
use page_store::{AgeStep, IdleScan};
use site_state::memcached_keys::is_of_client;
use std::sync::Arc;
use std::time::Duration;
use telemetry::phase::{Phase, PhaseWatch};

/// How often the task checks whether a scan is due.
const LOOK: Duration = Duration::from_secs(1);
/// The pause between two batches of removing pages from the store.
pub(crate) const BETWEEN_BATCHES: Duration = Duration::from_millis(1);
/// The number of scans per `cache.inactive`.
const ROUNDS: u64 = 8;

/// Runs the scans until Pagewell stops.
pub async fn run(default_site: Arc<Site>, mut stop: PhaseWatch) {
    let mut sites: Vec<(Arc<Site>, Rounds)> =
        default_site.all_sites().map(|site| (site.clone(), Rounds::default())).collect();
    loop {
        tokio::select! {
            _ = stop.wait_for(Phase::is_leaving) => return,
            () = tokio::time::sleep(LOOK) => {}
        }
        for (site, rounds) in &mut sites {
            let inactive = site.now().config.inactive;
            if let Some(older) = rounds.due(inactive, site.clock.now()) {
                make_round(site, older, &stop).await;
            }
        }
    }
}

/// The time of the last scan, and the configured duration; `None`: no scan, or none recently.
#[derive(Default)]
struct Rounds(Option<(Duration, Timestamp)>);

impl Rounds {
    /// Returns by how many scan intervals the pages have aged; `None`: no scan is due.
    fn due(&mut self, inactive: Option<Duration>, now: Timestamp) -> Option<AgeStep> {
        let Some(inactive) = inactive else {
            self.0 = None;
            return None;
        };
        let older = match self.0 {
            Some((same, last)) if same == inactive && last <= now => {
                let length_ms = (inactive.as_millis() as u64 / ROUNDS).max(1);
                match (now.0 - last.0) / length_ms {
                    0 => return None,
                    rounds => AgeStep::By(u8::try_from(rounds).unwrap_or(u8::MAX)),
                }
            }
            _ => AgeStep::Anew,
        };
        self.0 = Some((inactive, now));
        Some(older)
    }
}

async fn make_round(site: &Site, older: AgeStep, stop: &PhaseWatch) {
    let mut round = IdleScan::new(older);
    while !round.is_over() && !stop.borrow().is_leaving() {
        let mut inactive = site.store.grow_older(&mut round);
        inactive.retain(|page| !is_of_client(page.key().bytes()));
        if site.store.remove_inactive(&inactive) > 0 {
            site.untidy.notify_one();
        }
        drop(inactive);
        tokio::time::sleep(BETWEEN_BATCHES).await;
    }
    site.counters.unused_rounds.add();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_is_due_in_every_eighth_and_again_after_a_changed_time() {
        let mut rounds = Rounds::default();
        let mut due = |minutes: Option<u64>, now_s: u64| {
            rounds.due(minutes.map(|n| Duration::from_secs(60 * n)), Timestamp(now_s * 1_000))
        };
        assert_eq!(due(None, 1_000), None);
        assert_eq!(due(Some(8), 1_000), Some(AgeStep::Anew));
        assert_eq!(due(Some(8), 1_059), None);
        assert_eq!(due(Some(8), 1_061), Some(AgeStep::By(1)));
        assert_eq!(due(Some(8), 1_120), None, "from the last on, not by the clock");
        assert_eq!(due(Some(8), 1_121), Some(AgeStep::By(1)));
        assert_eq!(due(Some(8), 1_121 + 150), Some(AgeStep::By(2)));
        assert_eq!(due(Some(8), 9_000_000), Some(AgeStep::By(u8::MAX)));
        assert_eq!(due(Some(16), 9_000_001), Some(AgeStep::Anew));
        assert_eq!(due(Some(16), 8_000_000), Some(AgeStep::Anew), "the clock was put back");
        assert_eq!(due(None, 8_000_001), None);
        assert_eq!(due(Some(16), 8_000_002), Some(AgeStep::Anew));
    }
}
