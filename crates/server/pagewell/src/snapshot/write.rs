//! Writes a snapshot, periodically and once more at shutdown.
//!
//! It first saves the databases' positions up to which all changes are applied and visible to every
//! reader, and begins a new journal. Then it reads the statements of all pages, and the pages, in
//! small batches, each page in its current state. So no page is older than the positions, and every
//! change that the snapshot may lack is after the positions or in the journal. A hit never waits: the
//! index is locked only while [`PLACES`] references are cloned, and only changes and stores wait for
//! that lock.
//!
//! Not here: whether a snapshot may be used at the start (`load`).

use super::page::{self, PageForm};
use change_sources::{Feed, LogRetention};
use delivery::site::Site;
use page_snapshot::{Head, Position, WriteOutcome, Writer};
use page_store::Walk;
use random_number::random_number;
use site_state::journal::{ForgottenBecause, Open, Snapshots, Stage};
use statements::footprints::StatementWalk;
use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;
use telemetry::phase::{Phase, PhaseWatch};
use tokio::time::Instant;

/// The places of the store that are read while its index is locked once.
const PLACES: usize = 256;
/// After this many bytes the writer waits for the disk (`fdatasync`). Changes, which are appended
/// to a file on the same disk, then never wait for more.
const SYNC_BYTES: u64 = 32 << 20;
/// How many snapshots may fail in a row before the journals are given up.
const JOURNALS_MAX: u64 = 64;
/// The pause between two batches while requests are served.
const PAUSE: Duration = Duration::from_micros(200);

/// A snapshot that was begun, before its first page is read.
pub struct StartedSnapshot {
    head: Head,
    /// Keeps the databases' logs from the positions of this snapshot; released when it is dropped.
    logs: Vec<LogRetention>,
}

/// The reasons for which a snapshot is not written.
#[derive(Debug)]
enum NotWritten {
    /// A database is not followed, or a change that is open since a gap is not visible to every
    /// reader.
    NotFollowed,
    /// The snapshot of an earlier process is not completely restored yet.
    NotLoaded,
    /// Changes are unpublished in the cluster, and their mark cannot be written.
    Unpublished,
    /// Pagewell stops, or the time limit is reached.
    Interrupted,
    /// A change could not be recorded while the snapshot was written.
    Journal,
    /// The file cannot be written.
    Io(io::Error),
}

impl NotWritten {
    fn as_str(&self) -> &'static str {
        match self {
            NotWritten::NotFollowed => "not-followed",
            NotWritten::NotLoaded => "not-loaded",
            NotWritten::Unpublished => "unpublished",
            NotWritten::Interrupted => "interrupted",
            NotWritten::Journal => "journal",
            NotWritten::Io(_) => "file",
        }
    }

    fn say(&self, site: &Site) {
        site.counters.snapshots_failed.add();
        let error = match self {
            NotWritten::Io(error) => error.to_string(),
            _ => String::new(),
        };
        tracing::warn!(event = "snapshot-not-written", reason = self.as_str(), error);
        if let Some(snapshots) = &site.snapshots {
            let reason = if error.is_empty() { self.as_str().to_owned() } else { error };
            snapshots.note_end(Some(reason));
        }
    }
}

impl From<io::Error> for NotWritten {
    fn from(error: io::Error) -> NotWritten {
        NotWritten::Io(error)
    }
}

/// Restores the old snapshot, then writes one periodically until Pagewell stops.
pub async fn run(site: Arc<Site>, loading: Option<super::Loading>, mut stop: PhaseWatch) {
    let Some(snapshots) = &site.snapshots else { return };
    if let Some(loading) = loading {
        let (own, stop) = (site.clone(), stop.clone());
        let all =
            tokio::task::spawn_blocking(move || loading.load(&own, &|| stop.borrow().is_leaving()));
        // A panic is in the log already; no snapshot is written then.
        let whole = all.await.unwrap_or(false);
        site.footprints.end_restoring(site.clock.monotonic());
        snapshots.restored(whole);
        if !whole {
            return;
        }
    }
    snapshots.restored(true);
    loop {
        tokio::select! {
            _ = stop.wait_for(Phase::is_leaving) => return,
            () = tokio::time::sleep(snapshots.config.every) => {}
        }
        let stop = stop.clone();
        write_one(&site, snapshots, move || stop.borrow().is_leaving()).await;
    }
}

/// Writes a snapshot immediately, for a successor process, while requests are served.
pub async fn write_now(site: &Arc<Site>, stop: PhaseWatch) {
    if let Some(snapshots) = &site.snapshots {
        write_one(site, snapshots, move || stop.borrow().is_leaving()).await;
    }
}

async fn write_one(
    site: &Arc<Site>,
    snapshots: &Snapshots,
    is_over: impl Fn() -> bool + Send + 'static,
) {
    let writing = snapshots.pause().await;
    snapshots.remove_what_is_left();
    match begin(site, snapshots) {
        Ok(begun) => {
            let own = site.clone();
            // The task owns the guard, so it continues even if the caller is cancelled.
            let write = move || {
                let _writing = writing;
                write(&own, begun, Some(PAUSE), &is_over)
            };
            // A panic is in the log already.
            let _ = tokio::task::spawn_blocking(write).await;
        }
        Err(why) => why.say(site),
    }
}

/// Begins the last snapshot, while the databases are still followed.
pub fn begin_last(site: &Arc<Site>) -> Option<StartedSnapshot> {
    let snapshots = site.snapshots.as_ref()?;
    begin(site, snapshots).inspect_err(|why| why.say(site)).ok()
}

/// Writes the last snapshot after the last request, for at most `limits.snapshot_stop`.
pub async fn write_last(site: &Arc<Site>, begun: StartedSnapshot) {
    let Some(snapshots) = &site.snapshots else { return };
    let _writing = snapshots.pause().await;
    let until = Instant::now() + site.limits.snapshot_stop;
    let own = site.clone();
    let write = move || {
        // The writer checks this after every batch.
        let is_written = write(&own, begun, None, &|| Instant::now() >= until);
        if is_written && let Some(snapshots) = &own.snapshots {
            end(snapshots);
        }
    };
    // A panic is in the log already.
    let _ = tokio::task::spawn_blocking(write).await;
}

/// Deletes the snapshot at shutdown, because an operation in flight may still change data at the
/// origin. Keeps it if a successor process has the pages, which is informed separately.
pub fn forget(site: &Site) {
    let Some(snapshots) = &site.snapshots else { return };
    if !site.successor().is_some_and(|successor| successor.has_served()) {
        let why = "an operation was still in flight";
        snapshots.forget(&mut snapshots.journal(), ForgottenBecause::InFlight, &why);
    }
}

/// Records an orderly shutdown: everything is on disk, so the next process may use it even after a
/// reboot.
fn end(snapshots: &Snapshots) {
    let mut journal = snapshots.journal();
    if let Err(error) = journal.as_ref().map_or(Ok(()), Open::sync) {
        // After a failed `fsync` the written data may be lost, in memory too.
        snapshots.forget(&mut journal, ForgottenBecause::Journal, &error);
        return;
    }
    if let Err(error) = snapshots.files.end_running() {
        tracing::warn!(event = "snapshot-not-written", reason = "end", %error);
    }
}

fn begin(site: &Arc<Site>, snapshots: &Snapshots) -> Result<StartedSnapshot, NotWritten> {
    if snapshots.stage() != Stage::Writing {
        return Err(NotWritten::NotLoaded);
    }
    if snapshots.lacks_mark() {
        return Err(NotWritten::Unpublished);
    }
    snapshots.files.begin_running()?;
    let (positions, logs) = positions(site)?;
    let generation = begin_journal(snapshots)?;
    // Read after the journal was begun: a reload that changes the configuration deletes that
    // journal again.
    let (begun_ms, print) = (site.clock.now().0, site.now().config.print);
    // The statements are those of the tables as they are when the pages are read.
    let head = Head { generation, begun_ms, print, tables: None, positions };
    Ok(StartedSnapshot { head, logs })
}

/// Returns the positions up to which the databases' changes are in the pages, and keeps their logs
/// from there.
fn positions(site: &Site) -> Result<(Vec<Position>, Vec<LogRetention>), NotWritten> {
    let position = |feed: &Arc<Feed>| {
        let (bookmark, log) = feed.begin_snapshot().ok_or(NotWritten::NotFollowed)?;
        let (source, at) = (feed.name().as_bytes().to_vec(), bookmark.to_string().into_bytes());
        Ok((Position { source, at }, log))
    };
    site.sources.feeds.iter().map(position).collect()
}

/// Begins a new journal for all further changes.
fn begin_journal(snapshots: &Snapshots) -> Result<u64, NotWritten> {
    let files = &snapshots.files;
    let mut journal = snapshots.journal();
    let (last, complete) = match journal.as_ref() {
        Some(open) => (open.generation, open.complete),
        None => (files.last_journal().unwrap_or(0), None),
    };
    let generation = last + 1;
    if complete.is_some_and(|complete| generation - complete > JOURNALS_MAX) {
        let why = "too many snapshots in a row were not written";
        snapshots.forget(&mut journal, ForgottenBecause::Journals, &why);
        return Err(NotWritten::Journal);
    }
    let open = Open::begin(files.create_journal()?, generation, complete, random_number())?;
    files.name_journal(generation)?;
    snapshots.begin_with(&mut journal, open);
    if journal.is_some() { Ok(generation) } else { Err(NotWritten::Journal) }
}

/// Writes a snapshot, and returns whether it is complete and in place.
fn write(
    site: &Site,
    begun: StartedSnapshot,
    pause: Option<Duration>,
    is_over: &dyn Fn() -> bool,
) -> bool {
    let Some(snapshots) = &site.snapshots else { return false };
    let began = site.clock.monotonic();
    let generation = begun.head.generation;
    let written = write_pages(site, snapshots, &begun.head, pause, is_over)
        .and_then(|done| put_in_place(snapshots, generation).map(|()| done));
    match written {
        Ok(done) => {
            begun.logs.into_iter().for_each(LogRetention::written);
            site.counters.snapshots_written.add();
            snapshots.note_end(None);
            let ms = (site.clock.monotonic() - began).as_millis() as u64;
            let Done { pages, bytes, left_out } = done;
            tracing::info!(event = "snapshot-written", generation, pages, bytes, left_out, ms);
            true
        }
        Err(why) => {
            snapshots.files.discard_snapshot();
            why.say(site);
            false
        }
    }
}

struct Done {
    pages: u64,
    bytes: u64,
    left_out: u64,
}

fn write_pages(
    site: &Site,
    snapshots: &Snapshots,
    head: &Head,
    pause: Option<Duration>,
    is_over: &dyn Fn() -> bool,
) -> Result<Done, NotWritten> {
    let mut out = Out { file: snapshots.files.create_snapshot()?, bytes: 0, synced: 0 };
    let bytes_max = snapshots.config.bytes_max;
    let mut statements = site.footprints.begin_walk();
    let head = Head { tables: statements.as_ref().map(StatementWalk::tables), ..head.clone() };
    let (mut writer, mut walk, mut left_out) =
        (Writer::new(&head, random_number()), Walk::default(), 0);
    let rest = || {
        if is_over() {
            return Err(NotWritten::Interrupted);
        }
        pause.into_iter().for_each(std::thread::sleep);
        Ok(())
    };
    // Pages whose statements are new since, or did not fit, are left out when they are loaded.
    while let Some(walk) = &mut statements
        && out.bytes < bytes_max
        && let Some(part) = site.footprints.walk(walk)
    {
        for (key, bytes) in part {
            writer.statement(key, &bytes);
            writer.take(|bytes| out.write(bytes)).transpose()?;
        }
        rest()?;
    }
    while !walk.is_over() {
        for found in site.store.walk(&mut walk, PLACES) {
            let is_written = match page::form(site, statements.as_ref(), &found) {
                PageForm::Excluded => continue,
                PageForm::WithoutStatements => false,
                PageForm::Saved(saved) => {
                    out.bytes < bytes_max && writer.page(&saved) == WriteOutcome::Yes
                }
            };
            left_out += u64::from(!is_written);
            writer.take(|bytes| out.write(bytes)).transpose()?;
        }
        rest()?;
    }
    let pages = writer.end().pages;
    writer.take(|bytes| out.write(bytes)).transpose()?;
    out.file.sync_all()?;
    Ok(Done { pages, bytes: out.bytes, left_out })
}

struct Out {
    file: File,
    bytes: u64,
    synced: u64,
}

impl Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.bytes += bytes.len() as u64;
        if self.bytes - self.synced >= SYNC_BYTES {
            self.file.sync_data()?;
            self.synced = self.bytes;
        }
        Ok(())
    }
}

/// Replaces the old snapshot, unless a change could not be recorded in the meantime.
fn put_in_place(snapshots: &Snapshots, generation: u64) -> Result<(), NotWritten> {
    let mut journal = snapshots.journal();
    let open = journal.as_mut().filter(|open| open.generation == generation);
    let open = open.ok_or(NotWritten::Journal)?;
    snapshots.files.replace_snapshot()?;
    open.complete = Some(generation);
    // Files that could not be deleted earlier are replaced by now.
    snapshots.files.are_usable();
    drop(journal);
    snapshots.files.sync()?;
    snapshots.files.remove_journals(generation);
    Ok(())
}
