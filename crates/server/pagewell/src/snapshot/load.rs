//! Checks the snapshot of an earlier process, and restores its pages.
//!
//! | step | when |
//! |---|---|
//! | check owner, site and configuration of the snapshot, and that its journals are complete | before any request is served |
//! | take a lease, apply the changes of the journals, follow the databases from its positions | before any request is served |
//! | expect its statements: they enter the index when the tables are defined, before a later row is looked for | before any request is served |
//! | read the whole file and verify every checksum | in the background |
//! | wait until the later changes of the databases are applied and the gate has opened | in the background |
//! | restore the pages, frequently used ones first, except those that a later change invalidates | in the background |
//!
//! An unusable snapshot is renamed (`NAME.refused`), and the cache starts empty. Requests are
//! served while pages are restored; missing pages are fetched from the origin.

use super::page::{self, LeftOut};
use databases::stream_types::Bookmark;
use delivery::site::Site;
use page_snapshot::{
    ChangedName, Head, JournalContents, Piece, Reader, SnapshotError, read_journal,
};
use page_store::{ChangeTarget, NotRestored, RestoreSession, StoreRefusal};
use site_state::changes::LocalCause;
use site_state::journal::{ForgottenBecause, Open, Running, Snapshots, target};
use statements::footprints::EarlierStatements;
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::sync::Arc;
use std::time::Duration;
use stored_pages::page::StoredPage;

/// How far the clock may be behind the time at which a snapshot was begun, in milliseconds.
const BEHIND_MAX_MS: u64 = 2_000;
/// How often the loader checks whether the gate has opened.
const LOOK: Duration = Duration::from_millis(5);

/// The reasons for which a snapshot is rejected.
#[derive(Debug)]
enum NotUsed {
    /// Its content cannot be parsed.
    Unreadable(SnapshotError),
    /// It belongs to another configuration, or another version of Pagewell.
    OtherConfiguration,
    /// The system was stopped before Pagewell had shut down in an orderly way.
    SystemStopped,
    /// It was begun at a time in the future: the clock was set back.
    ClockBehind,
    /// Pagewell was killed while an operation was in flight that may have changed any page.
    InFlight,
    /// One of its journals is missing.
    JournalMissing,
    /// A file cannot be read.
    Io(io::Error),
}

impl NotUsed {
    fn as_str(&self) -> &'static str {
        match self {
            NotUsed::Unreadable(why) => why.as_str(),
            NotUsed::OtherConfiguration => "other-configuration",
            NotUsed::SystemStopped => "system-stopped",
            NotUsed::ClockBehind => "clock-behind",
            NotUsed::InFlight => "in-flight",
            NotUsed::JournalMissing => "journal-missing",
            NotUsed::Io(_) => "file",
        }
    }
}

impl fmt::Display for NotUsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotUsed::Io(error) => error.fmt(f),
            other => f.write_str(other.as_str()),
        }
    }
}

impl From<io::Error> for NotUsed {
    fn from(error: io::Error) -> NotUsed {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => NotUsed::Unreadable(SnapshotError::CutOff),
            _ => NotUsed::Io(error),
        }
    }
}

impl From<SnapshotError> for NotUsed {
    fn from(why: SnapshotError) -> NotUsed {
        NotUsed::Unreadable(why)
    }
}

/// A usable snapshot with its journals.
struct Usable {
    file: File,
    length: u64,
    names: Vec<ChangedName>,
    positions: Vec<Bookmark>,
    statements: Option<EarlierStatements>,
    open: Open,
}

/// A snapshot whose pages are about to be restored.
pub struct Loading {
    restoring: RestoreSession<StoredPage>,
    file: File,
    length: u64,
}

/// The state of the previous process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    /// It has ended, or there was none.
    Ended,
    /// It has handed over (zero-downtime restart), and still reports its pending changes.
    HandedOver,
}

/// Takes the lock of the directory, and begins to use the snapshot. Must be called before the
/// site's databases are followed, and before any request is served.
///
/// # Errors
/// The directory cannot be used: a sentence for the operator.
pub fn begin(site: &Arc<Site>, before: Before) -> Result<Option<Loading>, String> {
    let Some(snapshots) = &site.snapshots else { return Ok(None) };
    snapshots.files.take_hold()?;
    let was_running = snapshots.files.running() != Running::No && before == Before::Ended;
    site.sources.feeds.iter().for_each(|feed| feed.keep_for_snapshots());
    // This check must come before `begin_running`. Otherwise the next process would only see a
    // killed process here, and might accept a snapshot that is rejected now.
    let left = match look(site, snapshots) {
        Ok(left) => left,
        Err(why) => {
            refuse(site, snapshots, &why);
            removed(snapshots, &why)?;
            None
        }
    };
    if site.cluster.is_some()
        && (snapshots.files.has_unpublished() || was_running && left.is_none())
    {
        let wrong = |error| format!("snapshot.directory: {error}");
        snapshots.found_unpublished().map_err(wrong)?;
    }
    if let Err(error) = snapshots.files.begin_running() {
        snapshots.forget(&mut snapshots.journal(), ForgottenBecause::Running, &error);
        removed(snapshots, &error)?;
        return Ok(None);
    }
    if left.is_none() {
        snapshots.files.remove_journals(u64::MAX);
    }
    Ok(left.map(|left| apply(site, snapshots, left)))
}

/// Fails if an unusable snapshot could not be deleted, because a later process might use it.
fn removed(snapshots: &Snapshots, why: &dyn fmt::Display) -> Result<(), String> {
    if !snapshots.files.has_unusable() {
        return Ok(());
    }
    let directory = snapshots.files.directory().display();
    Err(format!(
        "snapshot.directory {directory}: what is in it cannot be used ({why}), nor removed"
    ))
}

fn look(site: &Site, snapshots: &Snapshots) -> Result<Option<Usable>, NotUsed> {
    let Some((mut file, length)) = snapshots.files.open_snapshot()? else { return Ok(None) };
    let head = read_head(&mut file, length)?;
    if snapshots.files.running() == Running::SystemStopped {
        return Err(NotUsed::SystemStopped);
    }
    if head.print != snapshots.config.print {
        return Err(NotUsed::OtherConfiguration);
    }
    if head.begun_ms > site.clock.now().0.saturating_add(BEHIND_MAX_MS) {
        return Err(NotUsed::ClockBehind);
    }
    let positions = positions(site, &head)?;
    let (names, open) = journals(snapshots, head.generation)?;
    let statements = read_statements(site, &head, &mut file, length)?;
    Ok(Some(Usable { file, length, names, positions, statements, open }))
}

fn read_head(file: &mut File, length: u64) -> Result<Head, NotUsed> {
    let mut found = None;
    each_piece(file, length, &mut |piece| {
        if let Piece::Head(head) = piece {
            found = Some(head);
        }
        found.is_none()
    })?;
    found.ok_or(NotUsed::Unreadable(SnapshotError::CutOff))
}

/// Returns the statements of the pages; `None` if there are none.
fn read_statements(
    site: &Site,
    head: &Head,
    file: &mut File,
    length: u64,
) -> Result<Option<EarlierStatements>, NotUsed> {
    let Some(tables) = head.tables else { return Ok(None) };
    let (mut earlier, mut invalid) = (site.footprints.earlier(tables), None);
    each_piece(file, length, &mut |piece| {
        let statements = match piece {
            Piece::Part | Piece::Head(_) => return true,
            Piece::Statements(statements) => statements,
            Piece::Pages(_) | Piece::End(_) => return false,
        };
        for statement in statements.iter() {
            match statement {
                Ok((key, bytes)) => earlier.add(key, bytes),
                Err(why) => invalid = Some(why),
            }
        }
        invalid.is_none()
    })?;
    match invalid {
        None => Ok(Some(earlier)),
        Some(why) => Err(why.into()),
    }
}

/// Returns the position of each of the site's databases.
fn positions(site: &Site, head: &Head) -> Result<Vec<Bookmark>, NotUsed> {
    let position = |name: &str| {
        let found = head.positions.iter().find(|position| position.source == name.as_bytes());
        let text = found.and_then(|position| str::from_utf8(&position.at).ok());
        text.and_then(|text| text.parse().ok()).ok_or(NotUsed::OtherConfiguration)
    };
    site.sources.feeds.iter().map(|feed| position(feed.name())).collect()
}

/// Returns the journalled changes since this snapshot, and the journal to continue.
fn journals(snapshots: &Snapshots, generation: u64) -> Result<(Vec<ChangedName>, Open), NotUsed> {
    let last = snapshots.files.last_journal().ok_or(NotUsed::JournalMissing)?;
    let (mut names, mut open) = (Vec::new(), None);
    let mut was_in_flight = false;
    for number in generation..=last {
        let found = snapshots.files.read_journal(number)?;
        let (bytes, file) = found.ok_or(NotUsed::JournalMissing)?;
        let JournalContents { names: more, in_flight, journal } = read_journal(&bytes, number)?;
        names.extend(more);
        was_in_flight = in_flight;
        open = Some(Open::resume(file, number, generation, journal, bytes.len() as u64));
    }
    // After a zero-downtime restart the old process reports its pending changes itself (`pending_changes`).
    if was_in_flight && snapshots.operations_in_flight() == 0 {
        return Err(NotUsed::InFlight);
    }
    Ok((names, open.ok_or(NotUsed::JournalMissing)?))
}

/// Applies the journalled changes, and sets the databases' positions.
fn apply(site: &Arc<Site>, snapshots: &Snapshots, left: Usable) -> Loading {
    // The gates first: a gate that closes later is about a gap.
    change_sources::close_gates(site.state(), &site.sources);
    let restoring = site.store.restoring(site.name);
    let targets: Vec<ChangeTarget<'_>> = left.names.iter().map(target).collect();
    if !targets.is_empty() {
        site.changes().drop_local(&targets, LocalCause::Snapshot);
    }
    if let Some(statements) = left.statements {
        site.footprints.expect(statements);
    }
    for (feed, bookmark) in site.sources.feeds.iter().zip(left.positions) {
        feed.begin_at(bookmark);
    }
    snapshots.begin_with(&mut snapshots.journal(), left.open);
    Loading { restoring, file: left.file, length: left.length }
}

/// Renames the snapshot, and makes sure that none of its parts is used later.
fn refuse(site: &Site, snapshots: &Snapshots, why: &NotUsed) {
    let (snapshot, reason) = (snapshots.files.snapshot(), why.as_str());
    let snapshot = snapshot.display();
    tracing::error!(event = "snapshot-refused", %snapshot, reason, error = %why);
    let mut journal = snapshots.journal();
    snapshots.files.set_aside();
    snapshots.give_up(&mut journal);
    // Last: where it is counted, the snapshot has its other name.
    site.counters.snapshots_refused.add();
}

/// Counts what happened to the pages.
#[derive(Default)]
struct Put {
    pages: u64,
    changed: u64,
    left_out: u64,
    /// The pages whose statements are not known.
    without_statements: u64,
}

impl Loading {
    /// Reads the whole file, waits for the gate, and restores the pages. Returns false if `is_over`
    /// ended it early.
    pub fn load(mut self, site: &Arc<Site>, is_over: &dyn Fn() -> bool) -> bool {
        let Some(snapshots) = &site.snapshots else { return true };
        let began = site.clock.monotonic();
        let elapsed = || (site.clock.monotonic() - began).as_millis() as u64;
        if let Err(why) = each_piece(&mut self.file, self.length, &mut |_| !is_over()) {
            refuse(site, snapshots, &why);
            return true;
        }
        let read_ms = elapsed();
        while self.restoring.is_held_up() && !is_over() {
            std::thread::sleep(LOOK);
        }
        let waited_ms = elapsed();
        let mut put = Put::default();
        let outcome = each_piece(&mut self.file, self.length, &mut |piece| {
            if let Piece::Pages(pages) = piece {
                pages.iter().for_each(|page| put.one(site, &self.restoring, page));
            }
            !is_over()
        });
        if is_over() {
            return false;
        }
        if let Err(why) = outcome {
            // The restored pages are correct; the file has changed since the first pass.
            refuse(site, snapshots, &why);
        }
        site.counters.snapshot_pages.set(put.pages);
        let Put { pages, changed, left_out, without_statements } = put;
        let ms = elapsed();
        tracing::info!(
            event = "snapshot-loaded",
            pages,
            changed,
            without_statements,
            left_out,
            read_ms,
            waited_ms,
            ms
        );
        true
    }
}

impl Put {
    fn one(
        &mut self,
        site: &Site,
        restoring: &RestoreSession<StoredPage>,
        page: Result<page_snapshot::SavedPage<'_>, SnapshotError>,
    ) {
        // A page from the future would stay fresh for too long.
        let now = site.clock.now().0.saturating_add(BEHIND_MAX_MS);
        let page = page.ok().filter(|page| page.stored.response_time.0 <= now);
        let Some(page) = page else {
            self.left_out += 1;
            return;
        };
        match page::restore(site, restoring, page) {
            Ok(()) => self.pages += 1,
            Err(LeftOut::Rejected(NotRestored::Refused(
                StoreRefusal::ChangedSince | StoreRefusal::LeaseTooOld,
            ))) => self.changed += 1,
            Err(LeftOut::Statements) => self.without_statements += 1,
            Err(_) => self.left_out += 1,
        }
    }
}

/// Reads a snapshot from its beginning, one verified piece at a time, for as long as `each` returns true.
fn each_piece(
    file: &mut File,
    length: u64,
    each: &mut dyn FnMut(Piece<'_>) -> bool,
) -> Result<(), NotUsed> {
    file.rewind()?;
    let (mut reader, mut buffer, mut left) = (Reader::default(), Vec::new(), length);
    while let Some(count) = reader.wants() {
        // Never allocate more than the file has left.
        left = left.checked_sub(count as u64).ok_or(SnapshotError::CutOff)?;
        buffer.resize(count, 0);
        file.read_exact(&mut buffer)?;
        if !each(reader.read(&buffer)?) {
            return Ok(());
        }
    }
    if left > 0 { Err(SnapshotError::Damaged.into()) } else { Ok(()) }
}
