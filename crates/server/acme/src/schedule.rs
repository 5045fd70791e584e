//! The schedule of a host: pure functions of its record, its certificate and the time.
//!
//! | situation | next step |
//! |---|---|
//! | a failure | after 1, 10 and 100 minutes, then daily, each ±10 %; if all authorities sent a `Retry-After`, the shortest replaces that |
//! | no certificate | order |
//! | the authority suggests a window (ARI) | order at a random time in it, if the certificate is a day old |
//! | it suggests none | order when one third of the lifetime is left; half, if the lifetime is under 10 days |
//! | the last tenth of the lifetime | order, whatever the authority suggests |
//!
//! The suggestion is asked for twice a day (RFC 9773 section 4.3). A recorded failure that lies in the future was
//! recorded with a wrong clock, and does not delay.

use crate::leaf::Lifetime;
use crate::record::{ChallengeKind, NameRecord, SuggestionRecord};

/// One minute in milliseconds.
const MINUTE_MS: u64 = 60_000;
/// One day in milliseconds.
const DAY_MS: u64 = 24 * 60 * MINUTE_MS;
/// The waiting times after the first failures.
const WAITS_MS: [u64; 3] = [MINUTE_MS, 10 * MINUTE_MS, 100 * MINUTE_MS];
/// How often the suggested renewal time is asked for.
const SUGGESTION_MS: u64 = DAY_MS / 2;
/// A lifetime under this is renewed at its half.
const SHORT_MS: u64 = 10 * DAY_MS;
/// The bounds of a `Retry-After` field.
const RETRY_AFTER_MS: (u64, u64) = (MINUTE_MS, 31 * DAY_MS);
/// How many failed rounds lead to the next authority.
const ROUNDS: u32 = 3;

/// The next step for a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostStep {
    /// Nothing to do until this time.
    Wait(u64),
    /// Ask the authority for the renewal time.
    AskRenewalTime,
    /// Order a certificate.
    Order,
}

/// The next step for a host with this record and certificate.
pub fn next_step(record: &NameRecord, lifetime: Option<Lifetime>, now_ms: u64) -> HostStep {
    if record.failures > 0 && record.failed_at_ms <= now_ms + MINUTE_MS {
        let retry_ms = record.failed_at_ms.saturating_add(record.wait_ms);
        if now_ms < retry_ms {
            return HostStep::Wait(retry_ms);
        }
    }
    let Some(lifetime) = lifetime else { return HostStep::Order };
    let renewal_ms = renewal(record, lifetime);
    if now_ms >= last_tenth(lifetime) {
        return HostStep::Order;
    }
    if record.failures > 0 && record.failed_at_ms > now_ms + MINUTE_MS && record.issued_by.is_some()
    {
        // The record is corrected then.
        return HostStep::AskRenewalTime;
    }
    let asked_ms = record.suggestion.as_ref().map(|asked| asked.asked_ms);
    let is_recent = |asked_ms: u64| asked_ms <= now_ms && now_ms < asked_ms + SUGGESTION_MS;
    match asked_ms.filter(|asked_ms| is_recent(*asked_ms)) {
        _ if record.issued_by.is_none() && now_ms < renewal_ms => HostStep::Wait(renewal_ms),
        None if record.issued_by.is_some() => HostStep::AskRenewalTime,
        _ if now_ms >= renewal_ms => HostStep::Order,
        Some(asked_ms) => HostStep::Wait(renewal_ms.min(asked_ms + SUGGESTION_MS)),
        None => HostStep::Order,
    }
}

/// When the certificate is renewed.
pub fn renewal(record: &NameRecord, lifetime: Lifetime) -> u64 {
    let suggestion = record.suggestion.as_ref();
    match suggestion.filter(|suggestion| suggestion.window_ms.is_some()) {
        // A window in the past must not lead to orders without end.
        Some(suggestion) => suggestion
            .chosen_ms
            .max(lifetime.from_ms.saturating_add(DAY_MS))
            .min(last_tenth(lifetime)),
        None => {
            let length_ms = lifetime.length_ms();
            let share = if length_ms < SHORT_MS { 2 } else { 3 };
            lifetime.until_ms - length_ms / share
        }
    }
}

/// When the last tenth of a lifetime begins.
pub fn last_tenth(lifetime: Lifetime) -> u64 {
    lifetime.until_ms - lifetime.length_ms() / 10
}

/// A suggestion with a random time in its window. A window that is known already keeps its time. `random` is from 0
/// to 1.
pub fn suggestion(
    before: Option<&SuggestionRecord>,
    window_ms: Option<(u64, u64)>,
    now_ms: u64,
    random: f64,
) -> SuggestionRecord {
    let chosen_ms = match (before, window_ms) {
        (Some(before), Some(_)) if before.window_ms == window_ms => before.chosen_ms,
        (_, Some((from_ms, until_ms))) => {
            from_ms + (until_ms.saturating_sub(from_ms) as f64 * random) as u64
        }
        (_, None) => 0,
    };
    SuggestionRecord { asked_ms: now_ms, window_ms, chosen_ms }
}

/// How long to wait after this many failed rounds. `random` is from 0 to 1.
pub fn wait_after(failures: u32, retry_after_ms: Option<u64>, random: f64) -> u64 {
    if let Some(retry_after_ms) = retry_after_ms {
        return bounded(retry_after_ms);
    }
    let at = failures.saturating_sub(1) as usize;
    let wait_ms = WAITS_MS.get(at).copied().unwrap_or(DAY_MS);
    (wait_ms as f64 * (0.9 + 0.2 * random)) as u64
}

/// The time that an authority asks to wait, within bounds.
pub fn bounded(retry_after_ms: u64) -> u64 {
    retry_after_ms.clamp(RETRY_AFTER_MS.0, RETRY_AFTER_MS.1)
}

/// The position of the authority for the next round in a list of this length: the next one after three failures. One
/// that must not be called yet is passed over, unless all are such.
pub fn authority_at(failures: u32, authorities: usize, waits: impl Fn(usize) -> bool) -> usize {
    let (first, all) = ((failures / ROUNDS) as usize, authorities.max(1));
    let mut turns = (first..first + all).map(|turn| turn % all);
    turns.find(|at| !waits(*at)).unwrap_or(first % all)
}

/// The challenge for the next round: another one after each failure.
pub fn challenge_kind(failures: u32, kinds: &[ChallengeKind]) -> Option<ChallengeKind> {
    kinds.get(failures as usize % kinds.len().max(1)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use certificates::FailureCause;

    const NOW: u64 = 1_800_000_000_000;

    fn lifetime(days_ago: u64, days: u64) -> Lifetime {
        let from_ms = NOW - days_ago * DAY_MS;
        Lifetime { from_ms, until_ms: from_ms + days * DAY_MS }
    }

    /// A record of a certificate without a suggestion, asked for just now.
    fn record() -> NameRecord {
        let mut record = NameRecord::default();
        record.succeed("https://ca.test/directory");
        record.suggestion = Some(suggestion(None, None, NOW, 0.0));
        record
    }

    #[test]
    fn a_certificate_is_renewed_when_a_third_is_left() {
        let of = |days_ago, days| next_step(&record(), Some(lifetime(days_ago, days)), NOW);
        assert!(matches!(of(59, 90), HostStep::Wait(_)));
        assert_eq!(of(60, 90), HostStep::Order);
        assert!(matches!(of(2, 6), HostStep::Wait(_)), "half of a short lifetime");
        assert_eq!(of(3, 6), HostStep::Order);
        assert_eq!(next_step(&NameRecord::default(), None, NOW), HostStep::Order);
        assert_eq!(of(500, 90), HostStep::Order, "expired");
    }

    #[test]
    fn the_suggestion_is_asked_for_twice_a_day_and_wins() {
        let mut record = record();
        let fresh = Some(lifetime(1, 90));
        let HostStep::Wait(until_ms) = next_step(&record, fresh, NOW) else { panic!("it waits") };
        assert_eq!(until_ms, NOW + DAY_MS / 2);
        assert_eq!(next_step(&record, fresh, NOW + DAY_MS / 2), HostStep::AskRenewalTime);
        assert_eq!(
            next_step(&record, fresh, NOW - 1),
            HostStep::AskRenewalTime,
            "a clock set back"
        );
        // A certificate that is revoked: the window lies in the past.
        record.suggestion = Some(suggestion(None, Some((NOW - 9, NOW - 5)), NOW, 0.5));
        assert_eq!(next_step(&record, fresh, NOW), HostStep::Order);
        assert_eq!(
            next_step(&record, Some(lifetime(0, 90)), NOW),
            HostStep::Wait(NOW + DAY_MS / 2)
        );
        assert_eq!(renewal(&record, lifetime(0, 90)), NOW + DAY_MS, "not again on the same day");
        assert_eq!(renewal(&record, lifetime(0, 1)), NOW + DAY_MS / 10 * 9, "the last tenth");
        // The window begins later than the usual time.
        let late = Some((NOW + 2 * DAY_MS, NOW + 4 * DAY_MS));
        record.suggestion = Some(suggestion(None, late, NOW, 0.5));
        assert_eq!(renewal(&record, lifetime(70, 90)), NOW + 3 * DAY_MS);
        assert!(matches!(next_step(&record, Some(lifetime(70, 90)), NOW), HostStep::Wait(_)));
        assert_eq!(next_step(&record, Some(lifetime(82, 90)), NOW), HostStep::Order, "last tenth");
        let again = suggestion(record.suggestion.as_ref(), late, NOW, 0.9);
        assert_eq!(again.chosen_ms, NOW + 3 * DAY_MS, "the same window keeps its time");
    }

    #[test]
    fn failures_wait_longer_and_longer() {
        let minutes = |failures| wait_after(failures, None, 0.5) / MINUTE_MS;
        assert_eq!([1, 2, 3, 4, 90].map(minutes), [1, 10, 100, 1440, 1440]);
        assert_eq!(wait_after(1, None, 0.0), 54_000);
        assert_eq!(wait_after(1, None, 1.0), 66_000);
        assert_eq!(wait_after(3, Some(7_200_000), 0.0), 7_200_000);
        assert_eq!(wait_after(3, Some(0), 0.0), MINUTE_MS);
        assert_eq!(wait_after(3, Some(u64::MAX), 0.0), 31 * DAY_MS);
    }

    #[test]
    fn a_failure_delays_also_an_expired_certificate_but_not_after_a_clock_was_set_back() {
        let mut record = record();
        record.fail("down", FailureCause::Authority, NOW, 10 * MINUTE_MS);
        let expired = Some(lifetime(100, 90));
        assert_eq!(next_step(&record, expired, NOW), HostStep::Wait(NOW + 10 * MINUTE_MS));
        assert_eq!(next_step(&record, expired, NOW + 10 * MINUTE_MS), HostStep::Order);
        record.failed_at_ms = NOW + 365 * DAY_MS;
        assert_eq!(next_step(&record, expired, NOW), HostStep::Order);
    }

    #[test]
    fn authorities_and_challenges_alternate() {
        let of = |failures, all, waiting: &[usize]| {
            authority_at(failures, all, |at| waiting.contains(&at))
        };
        assert_eq!([0, 2, 3, 5, 6, 9].map(|failures| of(failures, 2, &[])), [0, 0, 1, 1, 0, 1]);
        assert_eq!((of(7, 1, &[]), of(7, 1, &[0])), (0, 0));
        assert_eq!((of(0, 3, &[0]), of(3, 3, &[1, 2]), of(3, 2, &[0, 1])), (1, 0, 1));
        let both = [ChallengeKind::Http01, ChallengeKind::TlsAlpn01];
        assert_eq!(challenge_kind(0, &both), Some(ChallengeKind::Http01));
        assert_eq!(challenge_kind(1, &both), Some(ChallengeKind::TlsAlpn01));
        assert_eq!(challenge_kind(2, &both), Some(ChallengeKind::Http01));
        assert_eq!(challenge_kind(5, &both[1..]), Some(ChallengeKind::TlsAlpn01));
        assert_eq!(challenge_kind(5, &[]), None);
    }
}
