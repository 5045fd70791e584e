//! The reads of a render: PHP reports the statements that it has run, and they become dependencies
//! of the page (automatic dependencies).
//!
//! | reads | declares no lifetime | declares one, has no tags | has tags, or its lifetime is a rule's |
//! |---|---|---|---|
//! | known | stored, depends on them | the same | the same |
//! | changed during the render | not stored | not stored | not stored |
//! | not known | not stored | `automatic.untracked`: by default for 60 seconds | stored |
//! | hidden by a cache | not stored | by default not stored | stored |
//!
//! The statements are known at the end of the response. Invariant: a page that a row changed while it was made is
//! never stored, whatever it declares, because no later change would end it. A row of a table whose changes the page's
//! tags tell (`Pagewell-Tagged-Tables`) is none of these: the write that changes it purges the tag, and the tag is newer
//! than the lease.
//!
//! | interleaving of a render with a change of a row that it reads | what happens |
//! |---|---|
//! | the change is applied before the lease | the render reads the new row, or the change is still open: refused by the recent changes |
//! | between the lease and `depend` | `depend` finds it in the recent changes: `reads-changed`, not stored |
//! | between `depend` and the insertion | the statements are in the index: the tag is newer than the lease, and the store refuses the page |
//! | after the insertion | the page is purged |

use super::revised::{self, NotKept};
use super::{OriginTimes, Render, parts, undeclared};
use capture::{CaptureParameters, CaptureReport, NotCaptured, OptionNames};
use config::UntrackedPages;
use delivery::site::Site;
use event_log::Seldom;
use http::header::USER_AGENT;
use http_cache::{LifetimeSource, StoredResponse};
use origin::OriginResponse;
use origin::routes::Script;
use reasons::Reason;
use statements::footprints::{PageReads, ReadsRefused, RenderStatements};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// How long the report may be later than the end of the response. PHP sends it before that, unless
/// the script continues after its response (`fastcgi_finish_request`).
const REPORT_WITHIN: Duration = Duration::from_millis(250);
/// The longest lifetime of a page that depends on the time of day, in milliseconds.
const TIMED_LIFETIME_MS: u64 = 60_000;
/// The longest lifetime of a page that declares one and whose reads are not known, in milliseconds.
const UNTRACKED_LIFETIME_MS: u64 = 60_000;

impl Render {
    /// Begins the capture of the next request's statements, if the site has automatic dependencies.
    pub(super) fn begin_capture(&mut self, script: Option<&Script>) -> Option<CaptureParameters> {
        let health = &self.site.footprints.health;
        let name = script.map(|script| script.filename.as_os_str().as_bytes());
        let script = health.script(name.unwrap_or_default());
        let is_due = self.ask.owner.is_none() && health.is_due(script, self.site.clock.monotonic());
        let capture = is_due.then(|| self.site.origin.begin_capture()).flatten();
        self.capture = capture.map(|capture| (capture, script));
        self.capture.as_ref().map(|(capture, _)| capture.parameters())
    }

    /// The form in which a response is stored. One that declares no lifetime needs its statements.
    ///
    /// # Errors
    /// The reason not to store it.
    pub(super) fn storable(
        &self,
        response: &OriginResponse,
        sent: &OriginTimes,
    ) -> Result<StoredResponse, NotKept> {
        let stored = revised::keep(&self.site, &self.ask, response, sent)?;
        let Some(automatic) = self.site.footprints.settings() else { return Ok(stored) };
        let is_undeclared = stored.lifetime_source == LifetimeSource::Reads;
        if is_undeclared && self.capture.is_none() {
            return Err(Reason::NoLifetime.into());
        }
        if is_undeclared {
            undeclared::check(automatic, response.status, &response.headers)?;
        }
        // Other requests select it by the class of their device. Of an undeclared one, the reads are known first.
        let is_by_device = stored.nominated().names().any(|name| *name == USER_AGENT);
        if !sent.is_fixed && is_by_device && !is_undeclared {
            return Err(Reason::AsSent.into());
        }
        Ok(stored)
    }

    /// Waits for the statements of a response that is complete, unless there is a reason `against`
    /// storing it. Returns that reason, or why it must not be stored without its statements.
    pub(super) async fn know_reads(
        &mut self,
        stored: &mut StoredResponse,
        against: Option<Reason>,
    ) -> Option<Reason> {
        if against.is_some() {
            return against;
        }
        let against = self.learn_reads(stored).await;
        match against {
            None | Some(Reason::AsSent) => self.note_storable(true),
            Some(Reason::ReadsChanged) => {}
            Some(_) => self.note_storable(false),
        }
        against
    }

    async fn learn_reads(&mut self, stored: &mut StoredResponse) -> Option<Reason> {
        let Some((capture, script)) = self.capture.take() else {
            let is_shared = self.ask.owner.is_none() && self.site.footprints.settings().is_some();
            return if is_shared {
                self.store_untracked(stored, Reason::ReadsUnseen)
            } else {
                None
            };
        };
        let reported = capture.report(REPORT_WITHIN).await;
        let (health, now) = (&self.site.footprints.health, self.site.clock.monotonic());
        match &reported {
            Err(NotCaptured::NoReport) => health.missed(script, now),
            Ok(_) | Err(_) => health.arrived(script, now),
        }
        let (reason, logged, why) =
            match reported.map(|report| self.depend(report, &stored.tagged_tables())) {
                // A part is combined with others, which have other reads.
                Ok(Ok(_)) if parts::is_part(stored) => {
                    return self.store_untracked(stored, Reason::ReadsUnknown);
                }
                Ok(Ok(reads)) => {
                    self.site.counters.reads_known.add();
                    if !self.is_fixed && stored.lifetime_source == LifetimeSource::Reads {
                        return Some(Reason::AsSent);
                    }
                    if stored.lifetime_source == LifetimeSource::Reads {
                        lasts_ms(&reads).into_iter().for_each(|most_ms| shorten(stored, most_ms));
                    }
                    stored.leave_out_table_tags();
                    self.reads = Some(Arc::new(reads));
                    return None;
                }
                Ok(Err(refused)) => {
                    let reason = refused.reason();
                    (reason, reason.as_str(), refused.to_string())
                }
                Err(unseen) => (unseen.reason(), unseen.as_str(), unseen.to_string()),
            };
        self.log_refused(reason, logged, &why);
        self.store_untracked(stored, reason)
    }

    /// Decides on a page whose reads are not known, for this reason. Returns the reason if it must not be stored.
    /// A page that is stored for a short time shows the reason in `Cache-Status`.
    pub(super) fn store_untracked(
        &mut self,
        stored: &mut StoredResponse,
        reason: Reason,
    ) -> Option<Reason> {
        match limit_untracked(&self.site, stored, reason) {
            Ok(Tracking::NotNeeded) => None,
            Ok(Tracking::Replaced) => {
                self.untracked = Some(reason);
                None
            }
            Err(reason) => Some(reason),
        }
    }

    /// The reads of a reported render, without those of `tagged` tables alone.
    fn depend(
        &self,
        mut report: CaptureReport,
        tagged: &[String],
    ) -> Result<PageReads, ReadsRefused> {
        // Code that runs at the end of the script may still print.
        report.statements.append(&mut report.late_statements);
        let names = |names: Vec<Box<[u8]>>| {
            let texts = names.into_iter().map(|name| String::from_utf8(name.into_vec()).ok());
            let mut texts = texts.collect::<Option<Vec<String>>>()?;
            texts.sort_unstable();
            Some(texts)
        };
        let options = match report.options {
            OptionNames::Complete(all) => names(all),
            OptionNames::Unknown => None,
        };
        let statements = RenderStatements {
            texts: &report.statements,
            options: options.as_deref(),
            mode: report.mode,
            own: &report.transactions,
            tagged,
        };
        let (site, since) = (&self.site, self.right.lease().number());
        site.footprints.check_server(&report.server)?;
        site.depend(statements, since, (self.asked, site.clock.now()))
    }

    /// Counts a page whose reads are not known. Logs why, at most once in ten seconds.
    fn log_refused(&self, reason: Reason, logged: &str, why: &str) {
        self.site.counters.reads_refused.add();
        static LOGGED: Seldom = Seldom::once_in(Duration::from_secs(10));
        let path = &self.ask.target.path_and_query;
        self.site.footprints.refused_pages.note(path, why);
        if reason == Reason::ReadsChanged {
            tracing::debug!(event = "reads-changed", path, why);
        } else if LOGGED.is_due(self.site.clock.monotonic()) {
            tracing::warn!(event = "reads-refused", reason = logged, path, why);
        }
    }

    /// Counts a complete response that is not stored, and marks its page as hit-for-miss. If that is no matter of the
    /// page, it may be stored by the next render.
    pub(super) fn count_not_stored(&self, reason: Reason) {
        let is_changed = reason == Reason::ReadsChanged;
        // The next request of this client's own kind gets no fixed values either.
        let is_own = reason == Reason::AsSent && self.names.is_none();
        if is_own || !reason.is_of_this_render() {
            self.not_shareable();
            return;
        }
        self.site.counters.not_stored.add();
        if let Some(for_nobody) = self.for_nobody.as_ref().filter(|_| is_changed) {
            for_nobody.is_outdated.store(true, Relaxed);
        }
    }
}

/// How long a page may be used whose statements depend on the time of day, in milliseconds.
fn lasts_ms(reads: &PageReads) -> Option<u64> {
    let day_ms = reads.day_lasts.map(|lasts| u64::try_from(lasts.as_millis()).unwrap_or(u64::MAX));
    let timed_ms = reads.is_timed.then_some(TIMED_LIFETIME_MS);
    day_ms.into_iter().chain(timed_ms).min()
}

/// Ends the lifetime of a page at this many milliseconds from now at the latest.
fn shorten(stored: &mut StoredResponse, most_ms: u64) {
    let most_ms = most_ms + stored.initial_age_ms();
    let lifetime_ms = stored.lifetime_ms().min(most_ms);
    stored.set_lifetime_ms(lifetime_ms);
}

/// Whether a page whose reads are not known was given a short lifetime in place of dependencies.
pub(super) enum Tracking {
    NotNeeded,
    Replaced,
}

/// Limits the lifetime of a page whose reads are not known, for this reason, as `automatic.untracked` says.
///
/// # Errors
/// The reason not to store it.
pub(super) fn limit_untracked(
    site: &Site,
    stored: &mut StoredResponse,
    reason: Reason,
) -> Result<Tracking, Reason> {
    if stored.lifetime_source == LifetimeSource::Reads || reason == Reason::ReadsChanged {
        return Err(reason);
    }
    // Its tags tell of changes, or the operator has decided for this page.
    let has_tags = stored.tags().iter().next().is_some();
    if has_tags || stored.lifetime_source == LifetimeSource::Rule {
        return Ok(Tracking::NotNeeded);
    }
    match site.footprints.settings().map(|settings| settings.untracked) {
        None | Some(UntrackedPages::Store) => Ok(Tracking::NotNeeded),
        Some(UntrackedPages::Short) if reason != Reason::ReadsHidden => {
            shorten(stored, UNTRACKED_LIFETIME_MS);
            Ok(Tracking::Replaced)
        }
        Some(UntrackedPages::Short | UntrackedPages::Never) => Err(reason),
    }
}
