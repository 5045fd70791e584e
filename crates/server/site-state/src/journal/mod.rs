//! The part of a site's snapshots that outlives the process: its files, and the journal of changes that no database
//! reports. A change is recorded here before it is acknowledged. Writing and restoring pages is `snapshot`.
//!
//! | [`Stage`] | restoring is over | a snapshot may be written | entered |
//! |---|---|---|---|
//! | `Restoring` | no | no | at the start, until the pages of the earlier process are in the store |
//! | `Writing` | yes | yes | when they are, or there are none that may be used |
//! | `Incomplete` | yes | no | when restoring was cut short: a new snapshot would lack the remaining pages |
//! | `HandedOver` | yes | no | when a successor process uses the directory |
//!
//! A snapshot has the databases' positions from before its first page was read. Its journal and those after it have
//! every later change that no database reports. [0036](../../../../docs/decisions/restart.md). Lock:
//! `journal`, held to append to it, to begin one, and to replace the snapshot; no other lock is taken under it.

mod files;
mod open;

pub use files::{Files, Running};
pub use open::Open;

use config;
use page_snapshot::ChangedName;
use page_store::ChangeTarget;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The state of restoring the snapshot of an earlier process, and whether new snapshots may be
/// written. See the table above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Pages of an earlier process may still be restored.
    Restoring,
    /// Snapshots may be written.
    Writing,
    /// Restoring was cut short.
    Incomplete,
    /// A successor process has the directory.
    HandedOver,
}

/// The mark next to the snapshots, which informs a later process that the cluster lacks changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UnsentMark {
    /// Every change was sent, or the mark exists.
    InOrder,
    /// An earlier process has left the mark, or ended without an orderly shutdown.
    LeftBehind,
    /// A change is not sent, and the mark could not be written: no snapshot may be begun.
    NotWritten,
}

/// Why a snapshot and its journals are deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForgottenBecause {
    /// A change could not be recorded.
    Journal,
    /// The start of the process could not be recorded.
    Running,
    /// Too many snapshots in a row were not written.
    Journals,
    /// The mark of changes that the cluster lacks could not be written.
    Unpublished,
    /// A write was unfinished at the end of the process.
    InFlight,
}

impl ForgottenBecause {
    /// The reason in the log.
    fn as_str(self) -> &'static str {
        match self {
            ForgottenBecause::Journal => "journal",
            ForgottenBecause::Running => "running",
            ForgottenBecause::Journals => "journals",
            ForgottenBecause::Unpublished => "unpublished",
            ForgottenBecause::InFlight => "in-flight",
        }
    }
}

/// The snapshots of a site: its files, its journal, and the state of loading and writing.
pub struct Snapshots {
    /// The configuration of the snapshots.
    pub config: config::Snapshot,
    /// The files of the snapshots, and their state.
    pub files: Files,
    /// `None`: there is no usable snapshot, so no change is recorded.
    journal: Mutex<Option<Open>>,
    /// The number of operations in flight that may lead to a change. It is modified with `journal`
    /// locked.
    in_flight: AtomicUsize,
    /// Held while a snapshot is written. The writer runs on even if the task that started it is
    /// cancelled.
    writing: Arc<tokio::sync::Mutex<()>>,
    stage: AtomicU8,
    mark: AtomicU8,
    /// Why the last snapshot was not written; `None`: it was, or none has been due.
    failure: Mutex<Option<String>>,
}

impl Snapshots {
    /// Creates the state. Nothing is read or written before `snapshot::begin`.
    pub fn new(config: config::Snapshot) -> Snapshots {
        let files = Files::new(&config);
        Snapshots {
            config,
            files,
            journal: Mutex::new(None),
            in_flight: AtomicUsize::new(0),
            writing: Arc::default(),
            stage: AtomicU8::new(Stage::Restoring as u8),
            mark: AtomicU8::new(UnsentMark::InOrder as u8),
            failure: Mutex::new(None),
        }
    }

    /// Records whether the last snapshot was written: the reason if not.
    pub fn note_end(&self, failure: Option<String>) {
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = failure;
    }

    /// Returns the reason why the last snapshot was not written.
    #[must_use]
    pub fn last_failure(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the current stage of the snapshots.
    #[must_use]
    pub fn stage(&self) -> Stage {
        match self.stage.load(Ordering::Acquire) {
            stage if stage == Stage::Restoring as u8 => Stage::Restoring,
            stage if stage == Stage::Writing as u8 => Stage::Writing,
            stage if stage == Stage::Incomplete as u8 => Stage::Incomplete,
            _ => Stage::HandedOver,
        }
    }

    /// Records that restoring has ended. `is_whole`: every page was examined. If a successor has
    /// the directory already, the stage stays unchanged.
    pub fn restored(&self, is_whole: bool) {
        let next = if is_whole { Stage::Writing } else { Stage::Incomplete } as u8;
        let from = Stage::Restoring as u8;
        // It fails only if the directory was handed over in between.
        let _ = self.stage.compare_exchange(from, next, Ordering::AcqRel, Ordering::Acquire);
    }

    fn mark(&self, mark: UnsentMark) {
        self.mark.store(mark as u8, Ordering::Release);
    }

    fn is_mark(&self, mark: UnsentMark) -> bool {
        self.mark.load(Ordering::Acquire) == mark as u8
    }

    /// Returns whether an earlier process may have ended before it had published all of its changes
    /// in the cluster. It left a mark, or was killed with an operation in flight. Known after
    /// `snapshot::begin`.
    #[must_use]
    pub fn was_left_unpublished(&self) -> bool {
        self.is_mark(UnsentMark::LeftBehind)
    }

    /// Writes the mark for unpublished changes. Returns whether it is on disk.
    pub fn mark_unpublished(&self) -> bool {
        let marked = self.files.mark_unpublished();
        if let Err(error) = &marked {
            // Without a complete journal the next process assumes unpublished changes.
            self.mark(UnsentMark::NotWritten);
            self.forget(&mut self.journal(), ForgottenBecause::Unpublished, error);
        }
        marked.is_ok()
    }

    /// Deletes the mark, after all changes are published. Returns whether it is deleted.
    pub fn unmark_unpublished(&self) -> bool {
        let unmarked = self.files.unmark_unpublished().is_ok();
        if unmarked {
            self.mark(UnsentMark::InOrder);
        }
        unmarked
    }

    /// Returns whether changes are unpublished and their mark could not be written.
    pub fn lacks_mark(&self) -> bool {
        self.is_mark(UnsentMark::NotWritten)
    }

    /// Returns whether restoring has ended, successfully or not.
    #[must_use]
    pub fn is_taken_up(&self) -> bool {
        self.stage() != Stage::Restoring
    }

    /// The number of operations in flight.
    #[must_use]
    pub fn operations_in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// Records a change in the journal, after it is applied and before it is acknowledged. Changes
    /// of private copies are skipped, because these are never part of a snapshot.
    pub fn note(&self, targets: &[ChangeTarget<'_>]) {
        let names: Vec<ChangedName> = targets.iter().filter_map(name).collect();
        if !names.is_empty() {
            self.append(&names);
        }
    }

    /// Records a change of every page, for a change that has no name in the journal.
    pub fn note_everything(&self) {
        self.append(&[ChangedName::Everything]);
    }

    fn append(&self, names: &[ChangedName]) {
        let mut journal = self.journal();
        let Some(open) = journal.as_mut() else {
            self.remove_what_is_left();
            return;
        };
        if let Err(error) = open.append(names) {
            self.forget(&mut journal, ForgottenBecause::Journal, &error);
        }
    }

    /// Records an operation in flight that may lead to a change, such as a write request. Must be
    /// called before the operation begins. The returned guard is dropped after its change is
    /// recorded. If the process is killed in between, the change is not known.
    pub fn begin_in_flight(self: &Arc<Snapshots>) -> WriteInFlight {
        let mut journal = self.journal();
        if self.in_flight.fetch_add(1, Ordering::Relaxed) == 0 {
            self.write_in_flight(&mut journal, true);
        }
        drop(journal);
        WriteInFlight(self.clone())
    }

    fn write_in_flight(&self, journal: &mut Option<Open>, is: bool) {
        let said = journal.as_mut().map_or(Ok(()), |open| open.set_in_flight(is));
        if let Err(error) = said {
            self.forget(journal, ForgottenBecause::Journal, &error);
        }
    }

    /// Switches to this journal for all further changes.
    pub fn begin_with(&self, journal: &mut Option<Open>, open: Open) {
        *journal = Some(open);
        if self.in_flight.load(Ordering::Relaxed) > 0 {
            self.write_in_flight(journal, true);
        }
    }

    /// An earlier process may have left changes unpublished: writes the mark for them.
    ///
    /// # Errors
    /// The mark cannot be written.
    pub fn found_unpublished(&self) -> std::io::Result<()> {
        self.mark(UnsentMark::LeftBehind);
        self.files.mark_unpublished()
    }

    /// Waits until no snapshot is being written. None begins while the guard is held.
    pub async fn pause(&self) -> tokio::sync::OwnedMutexGuard<()> {
        self.writing.clone().lock_owned().await
    }

    /// Leaves the snapshots to another process: closes the journal, and releases the directory's
    /// lock. This process writes no snapshot any more.
    pub async fn hand_over(&self) {
        self.stage.store(Stage::HandedOver as u8, Ordering::Release);
        let _writing = self.pause().await;
        *self.journal() = None;
        self.files.let_go();
    }

    /// Takes the snapshots back from a successor that failed, and deletes them: they miss changes.
    pub fn take_back(&self) {
        if let Err(error) = self.files.take_hold() {
            // Changes are not recorded for the process that has the lock, so the files are deleted
            // all the same.
            tracing::warn!(event = "snapshot-not-written", reason = "lock", error);
        }
        self.start_over();
    }

    /// Stops recording, including the end of operations in flight.
    pub fn abandon(&self) {
        *self.journal() = None;
    }

    /// Deletes the snapshot and its journals, because pages have another meaning from now on. The
    /// next snapshot is written at the usual time.
    pub fn start_over(&self) {
        let mut journal = self.journal();
        self.give_up(&mut journal);
    }

    /// Handles a change that could not be recorded: deletes everything that a later process could
    /// use. The journal is emptied first, in case the files cannot be deleted.
    pub fn forget(
        &self,
        journal: &mut Option<Open>,
        because: ForgottenBecause,
        error: &dyn std::fmt::Display,
    ) {
        tracing::error!(event = "snapshot-forgotten", reason = because.as_str(), %error);
        self.give_up(journal);
    }

    /// Stops recording, and deletes the snapshot and its journals.
    pub fn give_up(&self, journal: &mut Option<Open>) {
        if let Some(Err(error)) = journal.take().map(|open| open.spoil()) {
            tracing::error!(event = "snapshot-not-removed", file = "journal", %error);
        }
        self.files.are_unusable();
        self.remove_what_is_left();
    }

    /// Tries again to delete unusable files, if there are any.
    pub fn remove_what_is_left(&self) {
        if let Err(error) = self.files.remove_unusable() {
            let directory = self.files.directory().display();
            tracing::error!(event = "snapshot-not-removed", %directory, %error);
        }
    }

    /// The journal; locked until the guard is dropped.
    pub fn journal(&self) -> MutexGuard<'_, Option<Open>> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A guard for an operation in flight that may lead to a change.
pub struct WriteInFlight(Arc<Snapshots>);

impl Drop for WriteInFlight {
    fn drop(&mut self) {
        let mut journal = self.0.journal();
        if self.0.in_flight.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.0.write_in_flight(&mut journal, false);
        }
    }
}

fn name(target: &ChangeTarget<'_>) -> Option<ChangedName> {
    Some(match target {
        ChangeTarget::Tag(tag) => ChangedName::Tag(tag.to_vec()),
        ChangeTarget::Url(url) => ChangedName::Url(url.to_vec()),
        ChangeTarget::Path(path) => ChangedName::Path(path.to_vec()),
        ChangeTarget::Prefix(prefix) => ChangedName::Prefix(prefix.to_vec()),
        ChangeTarget::Everything => ChangedName::Everything,
        ChangeTarget::Owner(_) | ChangeTarget::OwnerTag { .. } | ChangeTarget::OwnerUrl { .. } => {
            return None;
        }
    })
}

/// The target of a change that the journal has recorded.
pub fn target(name: &ChangedName) -> ChangeTarget<'_> {
    match name {
        ChangedName::Tag(tag) => ChangeTarget::Tag(tag),
        ChangedName::Url(url) => ChangeTarget::Url(url),
        ChangedName::Path(path) => ChangeTarget::Path(path),
        ChangedName::Prefix(prefix) => ChangeTarget::Prefix(prefix),
        ChangedName::Everything => ChangeTarget::Everything,
    }
}
