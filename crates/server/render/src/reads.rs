//! The reads of a render: PHP reports the statements that it has run, and they become dependencies
//! of the page (automatic dependencies).
//!
//! The statements are known at the end of the response. A page that declares its lifetime itself is
//! stored without them if they are not known. A page that does not is stored only with them.

use super::{OriginTimes, Render, RenderOutcome, revised};
use config::log::Seldom;
use http_cache::{LifetimeSource, NotStored, StoredResponse};
use origin::OriginResponse;
use origin::capture::{CaptureParameters, CaptureReport, NotCaptured, OptionNames};
use site_state::footprints::{PageReads, ReadsRefused, RenderStatements};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// How long the report may be later than the end of the response. PHP sends it before that, unless
/// the script continues after its response (`fastcgi_finish_request`).
const REPORT_WITHIN: Duration = Duration::from_millis(250);
/// The longest lifetime of a page that depends on the time of day, in milliseconds.
const TIMED_LIFETIME_MS: u64 = 60_000;
/// The reason not to store a page whose statements are not known.
const UNSEEN: &str = "reads-unseen";

impl Render {
    /// Begins the capture of the next request's statements, if the site has automatic dependencies.
    pub(super) fn begin_capture(&mut self) -> Option<CaptureParameters> {
        self.capture = match self.ask.owner {
            None if self.site.footprints.health.is_due() => self.site.origin.begin_capture(),
            None | Some(_) => None,
        };
        self.capture.as_ref().map(|capture| capture.parameters())
    }

    /// The form in which a response is stored. One that declares no lifetime needs its statements.
    ///
    /// # Errors
    /// The reason not to store it.
    pub(super) fn storable(
        &self,
        response: &OriginResponse,
        sent: &OriginTimes,
    ) -> Result<StoredResponse, &'static str> {
        let stored = revised::keep(&self.site, &self.ask, response, sent)?;
        match stored.lifetime_source {
            LifetimeSource::Reads if self.capture.is_none() => Err(NotStored::NoLifetime.as_str()),
            _ => Ok(stored),
        }
    }

    /// Waits for the statements of a response that is complete, unless there is a reason `against`
    /// storing it. Returns that reason, or why it must not be stored without its statements.
    pub(super) async fn know_reads(
        &mut self,
        stored: &mut StoredResponse,
        against: Option<&'static str>,
    ) -> Option<&'static str> {
        if against.is_some() {
            return against;
        }
        let capture = self.capture.take()?;
        let reported = capture.report(REPORT_WITHIN).await;
        match &reported {
            Err(NotCaptured::NoReport) => self.site.footprints.health.missed(),
            Ok(_) | Err(_) => self.site.footprints.health.arrived(),
        }
        let (reason, logged, why) = match reported.map(|report| self.depend(report)) {
            Ok(Ok(reads)) => {
                self.site.counters.reads_known.add();
                if reads.is_timed && stored.lifetime_source == LifetimeSource::Reads {
                    let most_ms = TIMED_LIFETIME_MS + stored.initial_age_ms();
                    let lifetime_ms = stored.lifetime_ms().min(most_ms);
                    stored.set_lifetime_ms(lifetime_ms);
                }
                self.reads = Some(Arc::new(reads));
                return None;
            }
            Ok(Err(refused)) => (refused.as_str(), refused.as_str(), refused.to_string()),
            Err(unseen) => (UNSEEN, unseen.as_str(), unseen.to_string()),
        };
        self.log_refused(logged, &why);
        (stored.lifetime_source == LifetimeSource::Reads).then_some(reason)
    }

    /// The reads of a reported render.
    fn depend(&self, mut report: CaptureReport) -> Result<PageReads, ReadsRefused> {
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
        };
        let (site, since) = (&self.site, self.right.lease().number());
        site.footprints.check_server(&report.server)?;
        site.footprints.depend(statements, since, (self.asked, site.clock.now()))
    }

    /// Counts a page whose reads are not known. Logs why, at most once in ten seconds.
    fn log_refused(&self, reason: &'static str, why: &str) {
        self.site.counters.reads_refused.add();
        static LOGGED: Seldom = Seldom::once_in(Duration::from_secs(10));
        let path = &self.ask.target.path_and_query;
        if reason == ReadsRefused::Changed.as_str() {
            tracing::debug!(event = "reads-changed", path, why);
        } else if LOGGED.is_due(self.site.clock.monotonic()) {
            tracing::warn!(event = "reads-refused", reason, path, why);
        }
    }

    /// The outcome of a complete response that is not stored. A page whose rows changed meanwhile may
    /// be stored by the next render.
    pub(super) fn not_stored_outcome(&self, reason: &'static str) -> RenderOutcome {
        if reason != ReadsRefused::Changed.as_str() {
            self.not_shareable();
            return RenderOutcome::NotShareable;
        }
        self.site.counters.not_stored.add();
        if let Some(for_nobody) = &self.for_nobody {
            for_nobody.is_outdated.store(true, Relaxed);
        }
        RenderOutcome::GivenUp
    }
}
