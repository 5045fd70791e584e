//! The periodic background tasks of a process: tidying up the store after large changes, compression,
//! cache warming, audits, closing idle connections to the origin, returning memory to the system, watching the
//! clock, removing inactive pages, reloading certificates and other files, recording the metrics of the last hour. Each
//! ends when the process begins to leave.

use crate::automatic_https::AutomaticHttps;
use crate::clock_skew;
use crate::file_looks::FileLooks;
use crate::idle_expiry::{self, BETWEEN_BATCHES};
use crate::wake;
use certificates::Certificates;
use control::history::{self, MetricsHistory};
use control::reload::Reload;
use delivery::codings::{self, Compressor};
use delivery::site::Site;
use origin::Origin;
use render::rewarm;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use telemetry::phase::{Phase, PhaseWatch};
use telemetry::release_memory;

/// How often idle connections to the origin and the memory of clients' connections are checked.
const SWEEP: Duration = Duration::from_secs(5);
/// How often the records of trial and audit are saved: a crash loses a minute of counts.
const SAVE_RECORDS: Duration = Duration::from_secs(60);
/// Memory is returned to the system after at least this many connections have become idle,
const CROWD: u64 = 1000;
/// once fewer than this many more become idle between two checks. Until then the memory is reused.
const CALM: u64 = 50;

/// Starts the tasks of each site and of the process. With `tls`, its certificates are reloaded when the
/// files change; with `https`, they are obtained and renewed. Other files are read again by `reload`. The figures of
/// the last hour are recorded in `figures`.
pub fn start(
    default_site: &Arc<Site>,
    (tls, https): (Option<Arc<Certificates>>, Option<AutomaticHttps>),
    (figures, reload): (Arc<MetricsHistory>, Arc<OnceLock<Reload>>),
    stopped: &PhaseWatch,
) {
    let compressor = Arc::new(Compressor::default());
    for site in default_site.selected_or_all(None) {
        tokio::spawn(sweep(site.clone(), stopped.clone()));
        tokio::spawn(tidy(site.clone(), stopped.clone()));
        tokio::spawn(codings::run(site.clone(), compressor.clone(), stopped.clone()));
        tokio::spawn(rewarm::run(site.clone(), stopped.clone()));
        tokio::spawn(audit::run(site.clone(), stopped.clone()));
        tokio::spawn(audit::trial::run(site.clone(), stopped.clone()));
        tokio::spawn(keep_records(site.clone(), stopped.clone()));
        wake::begin(site, stopped);
    }
    if let Some(https) = https {
        https.run(stopped);
    }
    if let Some(tls) = tls {
        tokio::spawn(follow_certificates(tls, default_site.clone(), stopped.clone()));
    }
    tokio::spawn(follow_files(reload, default_site.clone(), stopped.clone()));
    tokio::spawn(release_memory(default_site.clone(), stopped.clone()));
    tokio::spawn(clock_skew::run(default_site.clone(), stopped.clone()));
    tokio::spawn(history::run(figures, default_site.clone(), stopped.clone()));
    tokio::spawn(idle_expiry::run(default_site.clone(), stopped.clone()));
}

/// Saves the records of trial and audit at once, so that their directory is there, and from time to time. `server` saves
/// them for the last time.
async fn keep_records(site: Arc<Site>, mut stop: PhaseWatch) {
    loop {
        save_records(&site).await;
        tokio::select! {
            biased;
            _ = stop.wait_for(Phase::is_leaving) => return,
            () = tokio::time::sleep(SAVE_RECORDS) => {}
        }
    }
}

/// Saves the records of trial and audit, if they have changed.
pub async fn save_records(site: &Arc<Site>) {
    let site = site.clone();
    let save = move || site.records().iter().for_each(|record| record.save());
    // A panic is in the log already.
    let _ = tokio::task::spawn_blocking(save).await;
}

/// Tidies up the store after large changes, one batch at a time.
async fn tidy(site: Arc<Site>, mut stop: PhaseWatch) {
    loop {
        tokio::select! {
            _ = stop.wait_for(Phase::is_leaving) => return,
            () = site.untidy.notified() => {}
        }
        while site.store.tidy() {
            tokio::time::sleep(BETWEEN_BATCHES).await;
        }
    }
}

/// Reloads the certificates when their source has changed.
async fn follow_certificates(tls: Arc<Certificates>, site: Arc<Site>, mut stop: PhaseWatch) {
    loop {
        tokio::select! {
            _ = stop.wait_for(Phase::is_leaving) => return,
            () = tokio::time::sleep(site.now().limits.certificate_look) => {}
        }
        // On a blocking thread, because the disk may hang.
        let tls = tls.clone();
        match tokio::task::spawn_blocking(move || tls.refresh()).await {
            Ok(Ok(true)) => tracing::info!(event = "certificates-read"),
            Ok(Ok(false)) => {}
            Ok(Err(error)) => tracing::error!(event = "certificates-unusable", %error),
            // A panic is in the log already.
            Err(_) => {}
        }
    }
}

/// Reads files of the configuration again when they have changed: one that cannot be used, once for each change
/// (`WatchedFile`); all of them, with growing pauses, until the configuration as a whole can be used (`FileLooks`), and
/// when its file is restored after a failed reload.
async fn follow_files(reload: Arc<OnceLock<Reload>>, site: Arc<Site>, mut stop: PhaseWatch) {
    let mut looks = FileLooks::default();
    loop {
        let interval = site.now().limits.certificate_look;
        tokio::select! {
            _ = stop.wait_for(Phase::is_leaving) => return,
            () = tokio::time::sleep(interval) => {}
        }
        let of_look = reload.clone();
        let Some(reload) = reload.get() else { continue };
        let now = site.now();
        let has_failed = now.failed_reload.of_files().is_some();
        // On a blocking thread, because the disk may hang. A panic is in the log already.
        let look = tokio::task::spawn_blocking(move || {
            let files = now.all_sites().flat_map(|site| &site.config.watched_files);
            let is_restored = of_look.get().is_some_and(|reload| reload.is_restored(&now));
            let changed = looks.look(files, interval, (has_failed, is_restored));
            (looks, changed)
        });
        let (after, changed) = look.await.unwrap_or_default();
        looks = after;
        if let Some(files) = changed {
            reload.read_watched_files(&site).await;
            looks.note(files, interval, site.failed_reload.of_files().is_some());
        }
    }
}

/// Returns memory to the system after many connections were active at the same time and have become
/// idle.
async fn release_memory(default_site: Arc<Site>, mut stop: PhaseWatch) {
    let (mut seen, mut waiting) = (0, 0);
    loop {
        tokio::select! {
            _ = stop.wait_for(Phase::is_leaving) => return,
            () = tokio::time::sleep(SWEEP) => {}
        }
        let rested = default_site
            .selected_or_all(None)
            .map(|site| site.counters.connections_rested.get())
            .sum();
        let more = rested - seen;
        (seen, waiting) = (rested, waiting + more);
        if waiting >= CROWD && more < CALM {
            waiting = 0;
            // On a blocking thread, because it may take some milliseconds.
            let _ = tokio::task::spawn_blocking(release_memory::heap).await;
        }
    }
}

/// Closes connections to the origin that have been idle for long.
async fn sweep(site: Arc<Site>, mut stop: PhaseWatch) {
    loop {
        tokio::select! {
            _ = stop.wait_for(Phase::is_leaving) => return,
            () = tokio::time::sleep(SWEEP) => {}
        }
        if let Origin::FastCgi(origin) = &*site.origin {
            origin.close_idle();
        }
    }
}
