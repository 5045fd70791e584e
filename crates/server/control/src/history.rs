//! The metrics of the last hour, day and week, for the dashboard: of all sites together and, if there are
//! several, of each. `GET /v1/history` returns them.
//!
//! One task per process reads the counters every [`STEP`]; requests do nothing for it. A sample of the day is one
//! of these every ten minutes, one of the week every hour. The task ends when the process begins to leave. Each
//! process begins with an empty history: after a restart, and also after a zero-downtime restart, because the
//! counters begin at zero as well.
//!
//! Memory: [`HISTORY_BYTES`] (278 KiB) per site, and as much for the sum of several sites. At most [`SITES_MAX`]
//! sites have a history of their own, so it is 27.4 MiB at most. The metric `history_bytes` has the current value.
//!
//! Lock: one, around all rings; no other lock is taken under it.

use crate::attention::Attention;
use crate::metrics_table::{self, Kind, RECORDED, kind_of, recorded_place};
use delivery::site::Site;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use telemetry::phase::{Phase, PhaseWatch};
use tokio::time::{Instant, MissedTickBehavior};

/// The interval between two samples.
pub const STEP: Duration = Duration::from_secs(10);
/// The most sites with a history of their own. Of further sites only the sum is recorded.
pub const SITES_MAX: usize = 100;
/// The memory of one site's samples, in bytes.
pub const HISTORY_BYTES: usize = size_of::<FigureSample>()
    * (HistorySpan::Hour.samples_max()
        + HistorySpan::Day.samples_max()
        + HistorySpan::Week.samples_max());

/// A length of time until now that has samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HistorySpan {
    /// The last hour.
    Hour,
    /// The last 24 hours.
    Day,
    /// The last seven days.
    Week,
}

impl HistorySpan {
    /// All spans, the shortest first.
    pub const ALL: [HistorySpan; 3] = [HistorySpan::Hour, HistorySpan::Day, HistorySpan::Week];

    /// Returns the name in the query of `/v1/history`.
    pub const fn name(self) -> &'static str {
        match self {
            HistorySpan::Hour => "hour",
            HistorySpan::Day => "day",
            HistorySpan::Week => "week",
        }
    }

    /// Returns the interval between two samples.
    pub const fn step(self) -> Duration {
        match self {
            HistorySpan::Hour => STEP,
            HistorySpan::Day => Duration::from_secs(600),
            HistorySpan::Week => Duration::from_secs(3600),
        }
    }

    /// Returns the most samples of a site.
    pub const fn samples_max(self) -> usize {
        match self {
            HistorySpan::Hour => 360,
            HistorySpan::Day => 144,
            HistorySpan::Week => 168,
        }
    }

    fn length_ms(self) -> u64 {
        self.step().as_millis() as u64 * self.samples_max() as u64
    }

    /// The shortest span that has all there is at this age of the process, and at most this one: its samples are
    /// the closest to each other.
    #[must_use]
    pub fn shortest_with_all(self, now_ms: u64) -> HistorySpan {
        let has_all = |span: &HistorySpan| span.length_ms() > now_ms || *span == self;
        HistorySpan::ALL.into_iter().find(has_all).unwrap_or(self)
    }
}

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

/// The samples of one span. The oldest one leaves when there are as many as the span has.
struct SampleRing {
    span: HistorySpan,
    samples: VecDeque<FigureSample>,
}

impl SampleRing {
    fn new(span: HistorySpan) -> SampleRing {
        SampleRing { span, samples: VecDeque::with_capacity(span.samples_max()) }
    }

    /// Adds a sample, if the last one is old enough.
    fn push(&mut self, sample: FigureSample) {
        let step_ms = self.span.step().as_millis() as u64;
        // The hour has every sample, whatever the delay of the task was.
        let is_due = |last: &FigureSample| sample.at_ms >= last.at_ms + step_ms;
        if self.span != HistorySpan::Hour && !self.samples.back().is_none_or(is_due) {
            return;
        }
        if self.samples.len() == self.span.samples_max() {
            self.samples.pop_front();
        }
        self.samples.push_back(sample);
    }

    /// Returns the samples of the span until now, oldest first. After a gap, for example because the process was
    /// stopped (SIGSTOP), these are fewer than the ring holds.
    fn until(&self, now_ms: u64) -> impl Iterator<Item = &FigureSample> {
        let length_ms = self.span.length_ms();
        self.samples.iter().filter(move |sample| sample.at_ms + length_ms > now_ms)
    }
}

/// The samples of one site, or of all sites together.
struct SampleRings([SampleRing; HistorySpan::ALL.len()]);

impl Default for SampleRings {
    fn default() -> SampleRings {
        BYTES.fetch_add(HISTORY_BYTES, Ordering::Relaxed);
        SampleRings(HistorySpan::ALL.map(SampleRing::new))
    }
}

impl Drop for SampleRings {
    fn drop(&mut self) {
        BYTES.fetch_sub(HISTORY_BYTES, Ordering::Relaxed);
    }
}

impl SampleRings {
    fn push(&mut self, sample: FigureSample) {
        self.0.iter_mut().for_each(|ring| ring.push(sample));
    }

    fn until(&self, span: HistorySpan, now_ms: u64) -> impl Iterator<Item = &FigureSample> {
        let span = span.shortest_with_all(now_ms);
        self.0.iter().filter(move |ring| ring.span == span).flat_map(move |ring| ring.until(now_ms))
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
    all: Option<SampleRings>,
    /// By the canonical host of the site, if there are several.
    sites: BTreeMap<String, SampleRings>,
}

impl MetricsHistory {
    /// A history with one sample. Begun before the first connection, it has all requests.
    pub fn begin(default_site: &Arc<Site>) -> Arc<MetricsHistory> {
        let history = Arc::<MetricsHistory>::default();
        history.sample(default_site);
        history
    }

    /// Records a sample of each site, and one of all sites together.
    pub fn sample(&self, default_site: &Arc<Site>) {
        let (all, sites) = read_all(default_site);
        let mut rings = self.rings();
        rings.all.get_or_insert_default().push(all);
        for (name, sample) in sites {
            rings.push(name, sample);
        }
    }

    /// Returns the samples of a span, oldest first; of `site`, or of all sites together. The last one is
    /// taken now, unless one is younger than a second.
    pub fn samples(
        &self,
        default_site: &Arc<Site>,
        site: Option<&Site>,
        span: HistorySpan,
    ) -> Vec<FigureSample> {
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
        let before = ring.into_iter().flat_map(|ring| ring.until(span, now.at_ms)).copied();
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

/// Records samples until the process begins to leave, and looks for problems at once and with each of them.
pub async fn run(history: Arc<MetricsHistory>, default_site: Arc<Site>, mut stop: PhaseWatch) {
    let mut due = tokio::time::interval_at(Instant::now() + STEP, STEP);
    due.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let (site, looked_at) = (default_site.now(), history.clone());
        // It reads certificates, and may wait for the disk.
        let look = move || drop(looked_at.attention.look(&site, &looked_at));
        let _ = tokio::task::spawn_blocking(look).await;
        tokio::select! {
            _ = stop.wait_for(Phase::is_leaving) => return,
            _ = due.tick() => {}
        }
        history.sample(&default_site.now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use telemetry::counters::Times;

    fn times(ring: &SampleRing, now_ms: u64) -> Vec<u64> {
        ring.until(now_ms).map(|sample| sample.at_ms).collect()
    }

    #[test]
    fn the_oldest_sample_leaves_a_full_ring() {
        for span in HistorySpan::ALL {
            let mut ring = SampleRing::new(span);
            let (capacity, step_ms) = (ring.samples.capacity(), span.step().as_millis() as u64);
            let most = span.samples_max() as u64;
            assert!(times(&ring, 0).is_empty());
            (0..most + 5).for_each(|n| ring.push(FigureSample::new(n * step_ms)));
            let now_ms = (most + 4) * step_ms;
            let shown = times(&ring, now_ms);
            assert_eq!(shown.len(), span.samples_max());
            assert_eq!((shown[0], shown[shown.len() - 1]), (5 * step_ms, now_ms));
            assert_eq!(ring.samples.capacity(), capacity, "its memory is fixed");
        }
    }

    #[test]
    fn samples_from_before_a_gap_leave_after_an_hour() {
        let mut ring = SampleRing::new(HistorySpan::Hour);
        for at_ms in [0, 10_000, 3_000_000, 3_605_000] {
            ring.push(FigureSample::new(at_ms));
        }
        assert_eq!(times(&ring, 3_605_000), [10_000, 3_000_000, 3_605_000]);
        assert_eq!(times(&ring, 3_610_000), [3_000_000, 3_605_000]);
        assert!(times(&ring, 9_000_000).is_empty());
    }

    #[test]
    fn the_longer_spans_have_fewer_samples_of_an_hour() {
        let mut rings = SampleRings::default();
        let hours = 30;
        (0..=hours * 360).for_each(|n| rings.push(FigureSample::new(n * 10_001)));
        let now_ms = hours * 360 * 10_001;
        let shown = |span, now_ms| rings.until(span, now_ms).count();
        let of = HistorySpan::ALL.map(|span| shown(span, now_ms));
        assert_eq!(of, [360, 144, 31]);
        // A young process has closer samples for each span.
        let mut rings = SampleRings::default();
        (0..=2).for_each(|n| rings.push(FigureSample::new(n * 10_000)));
        let of = HistorySpan::ALL.map(|span| rings.until(span, 25_000).count());
        assert_eq!(of, [3, 3, 3]);
    }

    #[test]
    fn the_number_of_sites_is_bounded() {
        let mut rings = Rings::default();
        for n in 0..SITES_MAX + 10 {
            rings.push(n.to_string(), FigureSample::new(0));
            rings.push("0".into(), FigureSample::new(10_000));
        }
        assert_eq!(rings.sites.len(), SITES_MAX);
        assert_eq!(rings.sites["0"].0[0].samples.len(), SITES_MAX + 11);
        assert!(memory_bytes() >= SITES_MAX * HISTORY_BYTES);
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
        assert_eq!(HISTORY_BYTES, 284_928, "the documentation says 278 KiB per site");
    }
}
