//! The progress of each response on one HTTP/2 connection: how much content hyper has, and how much the
//! client has taken. Detects clients that are too slow. "Taken" counts the payload of DATA frames of
//! the stream that the socket has accepted.
//!
//! | state of the stream | limit |
//! |---|---|
//! | waits for the origin: the client has taken all that hyper has | none |
//! | waits for the client, which takes nothing for `write_timeout` | the stream is reset |
//! | has waited for the client for more than `write_timeout` in total since the last check of its rate | the stream is reset if the client took less than its share of `write_rate` |
//!
//! The share is `write_rate` divided by the number of streams that wait for the client, because they
//! share the client's bandwidth. hyper does not expose the stream of a request, so the front adds it as
//! a field, [`FIELD`], together with what it has found out about the request.
//!
//! One lock per connection, held to add or remove a stream or to count a frame.

use config::Limits;
use http::HeaderMap;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use telemetry::limit_hits::Limit;
use tokio::time::Instant;

/// The field that names the stream in hyper's requests, and the configuration that does not redirect them. The front
/// appends it, so it comes after any field of this name from the client.
pub const FIELD: &str = "pagewell-stream";
/// The number of digits of a stream, and of the number of a configuration, in its value.
const STREAM_DIGITS: usize = 10;
const READING_DIGITS: usize = 20;
/// The size of the field in a field list, in bytes (RFC 9113 section 6.5.2).
pub const FIELD_COUNTS: usize = FIELD.len() + STREAM_DIGITS + READING_DIGITS + 32;

/// The value of the field for a stream. `unredirected` is the number of the site's configuration by which the request is
/// not redirected; 0 if that is not known.
pub fn field_value(stream: u32, unredirected: u64) -> String {
    format!("{stream:0STREAM_DIGITS$}{unredirected:0READING_DIGITS$}")
}

/// Removes the field from a request, and returns both numbers; 0 if there is none.
pub fn take_field(headers: &mut HeaderMap) -> (u32, u64) {
    let value = headers.get_all(FIELD).iter().next_back();
    let numbers = value.and_then(|value| {
        let (stream, unredirected) = value.to_str().ok()?.split_at_checked(STREAM_DIGITS)?;
        Some((stream.parse().ok()?, unredirected.parse().ok()?))
    });
    headers.remove(FIELD);
    numbers.unwrap_or_default()
}

/// The progress of the content of one response.
#[derive(Default)]
pub struct StreamProgress {
    /// Bytes that hyper has been given.
    handed: AtomicU64,
    /// Bytes that the socket has accepted.
    taken: AtomicU64,
    /// Whether hyper has been given all of the content.
    has_ended: AtomicBool,
}

impl StreamProgress {
    /// Records that hyper is given `bytes` bytes.
    pub fn hand(&self, bytes: usize) {
        self.handed.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    fn counts(&self) -> (u64, u64) {
        (self.handed.load(Ordering::Relaxed), self.taken.load(Ordering::Relaxed))
    }

    fn is_over(&self) -> bool {
        let (handed, taken) = self.counts();
        self.has_ended.load(Ordering::Relaxed) && handed <= taken
    }
}

/// The responses of a connection, by stream.
#[derive(Default)]
pub struct Streams {
    open: Mutex<HashMap<u32, Arc<StreamProgress>>>,
    /// The streams that have to be reset, and whether there are any.
    resets: Mutex<Vec<u32>>,
    has_resets: AtomicBool,
}

impl Streams {
    /// Adds the stream of a new request.
    pub fn begin(&self, stream: u32) -> Arc<StreamProgress> {
        let progress = Arc::<StreamProgress>::default();
        self.open().insert(stream, progress.clone());
        progress
    }

    /// Records that hyper has the complete response, or has dropped it.
    pub fn end(&self, stream: u32) {
        self.note(stream, |progress| progress.has_ended.store(true, Ordering::Relaxed));
    }

    /// Records that the socket has accepted `bytes` bytes of payload of a stream.
    pub fn took(&self, stream: u32, bytes: usize) {
        self.note(stream, |progress| {
            progress.taken.fetch_add(bytes as u64, Ordering::Relaxed);
        });
    }

    fn note(&self, stream: u32, note: impl FnOnce(&StreamProgress)) {
        let mut open = self.open();
        let Some(progress) = open.get(&stream) else { return };
        note(progress);
        if progress.is_over() {
            open.remove(&stream);
        }
    }

    /// Removes a stream that either side has reset.
    pub fn forget(&self, stream: u32) {
        self.open().remove(&stream);
    }

    /// Whether no response waits for the origin or the client.
    pub fn is_empty(&self) -> bool {
        self.open().is_empty()
    }

    /// Requests that the front reset these streams.
    pub fn reset(&self, streams: impl IntoIterator<Item = u32>) {
        self.resets.lock().unwrap_or_else(PoisonError::into_inner).extend(streams);
        self.has_resets.store(true, Ordering::Release);
    }

    /// Whether there are streams to reset.
    pub fn has_resets(&self) -> bool {
        self.has_resets.load(Ordering::Relaxed)
    }

    /// Takes the list of streams to reset, and removes them.
    pub fn take_resets(&self) -> Vec<u32> {
        self.has_resets.store(false, Ordering::Release);
        let resets =
            std::mem::take(&mut *self.resets.lock().unwrap_or_else(PoisonError::into_inner));
        resets.iter().for_each(|stream| self.forget(*stream));
        resets
    }

    fn open(&self) -> MutexGuard<'_, HashMap<u32, Arc<StreamProgress>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The record of each stream that waits for the client. Stream 0 stands for the front's own responses.
#[derive(Default)]
pub struct StreamWatch(HashMap<u32, StreamRecord>);

struct StreamRecord {
    taken: u64,
    looked: Instant,
    /// When the client last took bytes, or the wait for it began.
    moved: Instant,
    /// How long the client was waited for since the last check of its rate, and how many bytes it took
    /// in that time.
    waited: Duration,
    waited_bytes: u64,
}

impl StreamRecord {
    fn new(taken: u64, now: Instant) -> StreamRecord {
        StreamRecord { taken, looked: now, moved: now, waited: Duration::ZERO, waited_bytes: 0 }
    }

    /// The limit that the client violates, if any. `sharing` streams share its bandwidth.
    fn judge(
        &mut self,
        taken: u64,
        now: Instant,
        sharing: usize,
        limits: &Limits,
    ) -> Option<Limit> {
        let more = taken - self.taken.min(taken);
        self.waited += now.duration_since(self.looked);
        (self.taken, self.looked) = (taken, now);
        self.waited_bytes += more;
        if more > 0 {
            self.moved = now;
        }
        if now.duration_since(self.moved) >= limits.write_timeout {
            return Some(Limit::WriteTimeout);
        }
        if self.waited <= limits.write_timeout {
            return None;
        }
        let due = limits.write_rate as f64 * self.waited.as_secs_f64() / sharing as f64;
        let is_slow = (self.waited_bytes as f64) < due;
        (self.waited, self.waited_bytes) = (Duration::ZERO, 0);
        is_slow.then_some(Limit::WriteRate)
    }
}

/// The streams that the client reads too slowly.
pub struct SlowStreams {
    /// Each such stream, with the limit that it violates.
    pub streams: Vec<(u32, Limit)>,
    /// Whether these are all streams of the connection, or include the front's own responses.
    pub are_all: bool,
}

impl StreamWatch {
    /// Determines which streams are too slow. `front` is the total number of bytes that the client has
    /// taken, if the front's responses wait for it.
    pub fn look(
        &mut self,
        all: &Streams,
        front: Option<u64>,
        limits: &Limits,
        now: Instant,
    ) -> SlowStreams {
        let open = all.open();
        let counts = open.iter().map(|(stream, progress)| (*stream, progress.counts()));
        let counts: Vec<_> = counts.chain(front.map(|taken| (0, (u64::MAX, taken)))).collect();
        drop(open);
        let waiting = |(handed, taken): (u64, u64)| handed > taken;
        let sharing = counts.iter().filter(|(_, counts)| waiting(*counts)).count();
        self.0.retain(|stream, _| {
            counts.iter().any(|(other, counts)| other == stream && waiting(*counts))
        });
        let mut streams = Vec::new();
        for (stream, counts) in counts.iter().filter(|(_, counts)| waiting(*counts)) {
            let taken = counts.1;
            let seen = self.0.entry(*stream).or_insert_with(|| StreamRecord::new(taken, now));
            let slow = seen.judge(taken, now, sharing, limits);
            streams.extend(slow.map(|limit| (*stream, limit)));
        }
        let are_all =
            streams.len() == counts.len() || streams.iter().any(|(stream, _)| *stream == 0);
        SlowStreams { are_all: are_all && !streams.is_empty(), streams }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> Limits {
        Limits { write_timeout: Duration::from_secs(10), write_rate: 100, ..Limits::default() }
    }

    /// Checks streams at successive times.
    #[derive(Default)]
    struct Looks {
        all: Streams,
        watch: StreamWatch,
        passed: u64,
        begun: Option<Instant>,
    }

    impl Looks {
        /// Checks after `seconds` more seconds.
        fn after(&mut self, seconds: u64, front: Option<u64>) -> SlowStreams {
            self.passed += seconds;
            let begun = *self.begun.get_or_insert_with(Instant::now);
            let now = begun + Duration::from_secs(self.passed);
            self.watch.look(&self.all, front, &limits(), now)
        }
    }

    #[test]
    fn each_stream_is_judged_by_its_own_payload() {
        let mut looks = Looks::default();
        [1, 3, 5].iter().for_each(|stream| looks.all.begin(*stream).hand(10_000));
        // This stream waits for the origin.
        looks.all.took(5, 10_000);
        for _ in 0..2 {
            assert!(looks.after(5, None).streams.is_empty());
            looks.all.took(3, 1_000);
        }
        let slow = looks.after(5, None);
        assert_eq!(slow.streams, [(1, Limit::WriteTimeout)]);
        assert!(!slow.are_all);
        looks.all.reset([1]);
        assert_eq!(looks.all.take_resets(), [1]);
        assert!(looks.after(0, None).streams.is_empty());
    }

    #[test]
    fn a_client_that_takes_a_byte_at_a_time_is_too_slow_and_a_line_is_shared() {
        let mut looks = Looks::default();
        [1, 3].iter().for_each(|stream| looks.all.begin(*stream).hand(100_000));
        let mut step = |one, other| {
            looks.after(0, None);
            looks.all.took(1, one);
            looks.all.took(3, other);
            looks.after(6, None);
            looks.after(6, None).streams
        };
        // 100 bytes a second in total, for twelve seconds.
        assert!(step(600, 600).is_empty());
        assert_eq!(step(600, 10), [(3, Limit::WriteRate)]);
    }

    #[test]
    fn a_connection_of_slow_streams_alone_is_slow() {
        let mut looks = Looks::default();
        looks.all.begin(1).hand(1);
        looks.after(0, None);
        assert!(looks.after(10, None).are_all);
        // A connection is slow, too, if its client does not take the front's responses.
        looks.all.begin(3);
        looks.after(0, Some(7));
        assert!(looks.after(10, Some(7)).are_all);
    }

    #[test]
    fn a_stream_whose_content_was_taken_is_removed() {
        let all = Streams::default();
        all.begin(1).hand(10);
        all.end(1);
        all.took(1, 9);
        assert!(!all.is_empty());
        all.took(1, 1);
        assert!(all.is_empty());
    }

    #[test]
    fn the_field_is_the_last_of_its_name() {
        let mut headers = HeaderMap::new();
        for value in ["7".to_owned(), field_value(7, 7), field_value(11, 3)] {
            headers.append(FIELD, value.parse().unwrap());
        }
        assert_eq!(take_field(&mut headers), (11, 3));
        assert!(headers.is_empty());
        headers.append(FIELD, field_value(u32::MAX, u64::MAX).parse().unwrap());
        assert_eq!(take_field(&mut headers), (u32::MAX, u64::MAX));
        assert_eq!(field_value(1, 0).len(), STREAM_DIGITS + READING_DIGITS);
    }
}
