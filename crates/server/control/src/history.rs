//! The metrics of the last hour, for the dashboard: one sample every [`STEP`], of all sites together
//! and, if there are several, of each. `GET /v1/history` returns it.
//!
//! One task per process reads the counters; requests do nothing for it. The task ends when the
//! process begins to leave. Each process begins with an empty history: after a restart, and also
//! after a zero-downtime restart, because the counters begin at zero as well.
//!
//! Memory: [`RING_BYTES`] (127 KiB) per site, and as much for the sum of several sites. At most
//! [`SITES_MAX`] sites have a history of their own, so it is 12.5 MiB at most. The metric
//! `history_bytes` has the current value.
//!
//! Lock: one, around all rings; no other lock is taken under it.

use crate::attention::Attention;
use crate::metrics_table::{
    self, Kind, RECORDED, RECORDED_LIMITS_HIT, kind_of, limits_hit, recorded_place,
};
use delivery::site::Site;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use telemetry::phase::{Phase, PhaseWatch};
use tokio::time::MissedTickBehavior;

/// The interval between two samples.
pub const STEP: Duration = Duration::from_secs(10);
/// The most samples of a site: those of one hour.
pub const SAMPLES_MAX: usize = 360;
/// The most sites with a history of their own. Of further sites only the sum is recorded.
pub const SITES_MAX: usize = 100;
/// The memory of one site's samples, in bytes.
pub const RING_BYTES: usize = SAMPLES_MAX * size_of::<FigureSample>();

/// The number of buckets in the histogram of the origin's times.
const BUCKETS: usize = 12;

/// The metrics of a site at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FigureSample {
    /// The time since the start of the process, in milliseconds.
    pub at_ms: u64,
    figures: [u64; RECORDED.len()],
    /// The histogram of the times until the origin's header section arrived.
    pub origin_counts: [u64; BUCKETS],
    /// The sum of these times, in microseconds.
    pub origin_sum_us: u64,
}

impl FigureSample {
    /// A sample of zeros.
    pub(crate) fn new(at_ms: u64) -> FigureSample {
        let (figures, origin_counts) = ([0; RECORDED.len()], [0; BUCKETS]);
        FigureSample { at_ms, figures, origin_counts, origin_sum_us: 0 }
    }

    /// Returns the values of the recorded metrics, in the order of [`RECORDED`].
    pub fn values(&self) -> &[u64] {
        &self.figures
    }

    /// Reads a site's part of the metrics.
    fn read(at_ms: u64, site: &Site) -> FigureSample {
        let mut sample = FigureSample::new(at_ms);
        sample.put(metrics_table::of_the_site(site));
        sample.put([(RECORDED_LIMITS_HIT, limits_hit(site).map(|(_, count)| count).sum())]);
        let times = site.counters.origin_times.snapshot();
        for (count, (_, value)) in sample.origin_counts.iter_mut().zip(&times.buckets) {
            *count = *value;
        }
        sample.origin_sum_us = times.sum.as_micros() as u64;
        sample
    }

    /// Adds the metrics of another site: counters are added, of delays the longest stays.
    fn add(&mut self, other: &FigureSample) {
        static KINDS: LazyLock<[Kind; RECORDED.len()]> = LazyLock::new(|| RECORDED.map(kind_of));
        let figures = self.figures.iter_mut().zip(&other.figures).zip(KINDS.iter());
        figures.for_each(|((all, value), kind)| *all = kind.combined(*all, *value));
        let counts = self.origin_counts.iter_mut().zip(&other.origin_counts);
        counts.for_each(|(sum, value)| *sum += value);
        self.origin_sum_us += other.origin_sum_us;
    }

    /// Sets the values of the metrics that are recorded.
    pub(crate) fn put(&mut self, metrics: impl IntoIterator<Item = (&'static str, u64)>) {
        for (name, value) in metrics {
            if let Some(at) = recorded_place(name) {
                self.figures[at] = value;
            }
        }
    }
}

/// The memory of all rings of this process, in bytes.
static BYTES: AtomicUsize = AtomicUsize::new(0);

/// Returns the memory of all recorded samples of this process, in bytes.
pub fn memory_bytes() -> usize {
    BYTES.load(Ordering::Relaxed)
}

/// The samples of one site, or of all sites together. The oldest one leaves when there are
/// [`SAMPLES_MAX`].
struct SampleRing(VecDeque<FigureSample>);

impl Default for SampleRing {
    fn default() -> SampleRing {
        BYTES.fetch_add(RING_BYTES, Ordering::Relaxed);
        SampleRing(VecDeque::with_capacity(SAMPLES_MAX))
    }
}

impl Drop for SampleRing {
    fn drop(&mut self) {
        BYTES.fetch_sub(RING_BYTES, Ordering::Relaxed);
    }
}

impl SampleRing {
    fn push(&mut self, sample: FigureSample) {
        if self.0.len() == SAMPLES_MAX {
            self.0.pop_front();
        }
        self.0.push_back(sample);
    }

    /// Returns the samples of the last hour, oldest first. After a gap, for example because the
    /// process was stopped (SIGSTOP), these are fewer than the ring holds.
    fn last_hour(&self, now_ms: u64) -> impl Iterator<Item = &FigureSample> {
        let hour_ms = STEP.as_millis() as u64 * SAMPLES_MAX as u64;
        self.0.iter().filter(move |sample| sample.at_ms + hour_ms > now_ms)
    }
}

/// The samples of all sites.
#[derive(Default)]
pub struct MetricsHistory {
    rings: Mutex<Rings>,
    /// The problems, looked for with each sample.
    pub attention: Attention,
}

#[derive(Default)]
struct Rings {
    all: Option<SampleRing>,
    /// By the canonical host of the site, if there are several.
    sites: BTreeMap<String, SampleRing>,
}

impl MetricsHistory {
    /// Records a sample of each site, and one of all sites together.
    pub fn sample(&self, default_site: &Arc<Site>) {
        let (all, sites) = read_all(default_site);
        let mut rings = self.rings();
        rings.all.get_or_insert_default().push(all);
        for (name, sample) in sites {
            rings.push(name, sample);
        }
    }

    /// Returns the samples of the last hour, oldest first; of `site`, or of all sites together. The
    /// last one is taken now, unless one is younger than a second.
    pub fn last_hour(&self, default_site: &Arc<Site>, site: Option<&Site>) -> Vec<FigureSample> {
        let site = site.filter(|_| default_site.all_sites().nth(1).is_some());
        let now = match site {
            Some(site) => read_one(default_site, site),
            None => read_all(default_site).0,
        };
        let rings = self.rings();
        let ring = match site {
            Some(site) => rings.sites.get(&name(site)),
            None => rings.all.as_ref(),
        };
        let before = ring.into_iter().flat_map(|ring| ring.last_hour(now.at_ms)).copied();
        let mut samples: Vec<_> = before.collect();
        if samples.last().is_none_or(|last| now.at_ms >= last.at_ms + 1000) {
            samples.push(now);
        }
        samples
    }

    /// Reads the metrics of all sites together.
    pub(crate) fn now(default_site: &Arc<Site>) -> FigureSample {
        read_all(default_site).0
    }

    fn rings(&self) -> MutexGuard<'_, Rings> {
        self.rings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Rings {
    fn push(&mut self, name: String, sample: FigureSample) {
        if let Some(ring) = self.sites.get_mut(&name) {
            ring.push(sample);
        } else if self.sites.len() < SITES_MAX {
            self.sites.entry(name).or_default().push(sample);
        }
    }
}

/// Reads the metrics of one site, and those of the process.
fn read_one(default_site: &Site, site: &Site) -> FigureSample {
    let mut sample = FigureSample::read(default_site.clock.monotonic().as_millis() as u64, site);
    sample.put(metrics_table::of_this_process());
    sample
}

/// Reads the metrics: of all sites together, and of each by its name if there are several.
fn read_all(default_site: &Arc<Site>) -> (FigureSample, Vec<(String, FigureSample)>) {
    let at_ms = default_site.clock.monotonic().as_millis() as u64;
    let process: Vec<_> = metrics_table::of_this_process().collect();
    let mut all = FigureSample::new(at_ms);
    let mut sites = Vec::new();
    for site in default_site.all_sites() {
        let mut sample = FigureSample::read(at_ms, site);
        all.add(&sample);
        sample.put(process.iter().copied());
        sites.push((name(site), sample));
    }
    all.put(process.iter().copied());
    if sites.len() == 1 {
        sites.clear();
    }
    (all, sites)
}

fn name(site: &Site) -> String {
    site.config.hosts.canonical.clone().unwrap_or_default()
}

/// Records samples until the process begins to leave. The first one is taken at once.
pub async fn run(history: Arc<MetricsHistory>, default_site: Arc<Site>, mut stop: PhaseWatch) {
    let mut due = tokio::time::interval(STEP);
    due.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = stop.wait_for(Phase::is_leaving) => return,
            _ = due.tick() => {}
        }
        let (site, history) = (default_site.now(), history.clone());
        history.sample(&site);
        // It reads certificates, and may wait for the disk.
        let look = move || drop(history.attention.look(&site, &history));
        let _ = tokio::task::spawn_blocking(look).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use telemetry::counters::Times;

    fn times(ring: &SampleRing, now_ms: u64) -> Vec<u64> {
        ring.last_hour(now_ms).map(|sample| sample.at_ms).collect()
    }

    #[test]
    fn the_oldest_sample_leaves_a_full_ring() {
        let mut ring = SampleRing::default();
        let capacity = ring.0.capacity();
        assert!(times(&ring, 0).is_empty());
        for n in 0..SAMPLES_MAX as u64 + 5 {
            ring.push(FigureSample::new(n * 10_000));
        }
        let now_ms = (SAMPLES_MAX as u64 + 4) * 10_000;
        let shown = times(&ring, now_ms);
        assert_eq!(shown.len(), SAMPLES_MAX);
        assert_eq!((shown[0], shown[SAMPLES_MAX - 1]), (50_000, now_ms));
        assert_eq!(ring.0.capacity(), capacity, "its memory is fixed");
    }

    #[test]
    fn samples_from_before_a_gap_leave_after_an_hour() {
        let mut ring = SampleRing::default();
        for at_ms in [0, 10_000, 3_000_000, 3_605_000] {
            ring.push(FigureSample::new(at_ms));
        }
        assert_eq!(times(&ring, 3_605_000), [10_000, 3_000_000, 3_605_000]);
        assert_eq!(times(&ring, 3_610_000), [3_000_000, 3_605_000]);
        assert!(times(&ring, 9_000_000).is_empty());
    }

    #[test]
    fn the_number_of_sites_is_bounded() {
        let mut rings = Rings::default();
        for n in 0..SITES_MAX + 10 {
            rings.push(n.to_string(), FigureSample::new(0));
            rings.push("0".into(), FigureSample::new(10_000));
        }
        assert_eq!(rings.sites.len(), SITES_MAX);
        assert_eq!(rings.sites["0"].0.len(), SITES_MAX + 11);
        assert!(memory_bytes() >= SITES_MAX * RING_BYTES);
    }

    #[test]
    fn counters_of_sites_are_added_and_the_longest_lag_stays() {
        let sample = |requests, lag_us| {
            let mut sample = FigureSample::new(0);
            sample.put([("requests", requests), ("database_lag_us", lag_us), ("unused", 9)]);
            sample
        };
        let mut all = FigureSample::new(0);
        [sample(3, 700), sample(5, 900), sample(7, 800)].iter().for_each(|one| all.add(one));
        assert_eq!(all, sample(15, 900));
    }

    #[test]
    fn the_size_of_a_ring_is_as_documented() {
        assert_eq!(Times::default().snapshot().buckets.len(), BUCKETS);
        assert_eq!(RING_BYTES, 129_600, "the documentation says 127 KiB per site");
    }
}
