//! Snapshots keep the pages of a site across restarts, as correct as they were before (warm
//! restart).
//!
//! | file | contents |
//! |---|---|
//! | `files` | the directory: its lock, its files, replacing a file atomically |
//! | `journal` | changes that no database reports, appended before they are acknowledged |
//! | `write` | writes all pages to a file, periodically and at shutdown |
//! | `load` | checks the snapshot of an earlier process, and restores its pages |
//! | `page` | converts a stored page to its form in a snapshot, and back |
//!
//! A snapshot has the databases' positions from before its first page was read. Its journal and
//! those after it have every later change that no database reports.
//! [0036](../../../../docs/decisions/0036-warm-restart.md). Lock: `journal`, held to append to it,
//! to begin one, and to replace the snapshot; no other lock is taken under it.

mod files;
mod journal;
mod load;
mod page;
mod write;

pub use load::{Before, Loading, begin};
pub use write::{Begun, begin_last, forget, run, write_last, write_now};

use crate::config;
use files::Files;
use journal::Open;
use page_snapshot::Name;
use page_store::Target;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The snapshots of a site: its files, its journal, and the state of loading and writing.
pub struct Snapshots {
    config: config::Snapshot,
    files: Files,
    /// `None`: there is no usable snapshot, so no change is recorded.
    journal: Mutex<Option<Open>>,
    /// The number of operations in flight that may lead to a change. It is modified with `journal`
    /// locked.
    in_hand: AtomicUsize,
    /// Held while a snapshot is written. The writer runs on even if the task that started it is
    /// cancelled.
    writing: Arc<tokio::sync::Mutex<()>>,
    /// Whether `NAME.running` is written. Without it no snapshot may be used.
    runs: AtomicBool,
    /// Whether the old snapshot is restored. A new snapshot before that would lack its remaining
    /// pages.
    loaded: AtomicBool,
    /// Whether an unusable snapshot or journal could not be deleted.
    unremoved: AtomicBool,
    /// Whether restoring has ended, successfully or not.
    taken_up: AtomicBool,
    /// Whether an earlier process may have left changes unpublished in the cluster.
    left_untold: AtomicBool,
    /// Whether changes are unpublished and their mark could not be written. No snapshot is begun
    /// then.
    lacks_mark: AtomicBool,
}

impl Snapshots {
    /// Creates the state. Nothing is read or written before [`begin`].
    pub fn new(config: config::Snapshot) -> Snapshots {
        let files = Files::new(&config);
        let (journal, writing) = (Mutex::new(None), Arc::default());
        let [runs, loaded, unremoved, taken_up, left_untold, lacks_mark] =
            [(); 6].map(|()| AtomicBool::new(false));
        let in_hand = AtomicUsize::new(0);
        Snapshots {
            config,
            files,
            journal,
            in_hand,
            writing,
            runs,
            loaded,
            unremoved,
            taken_up,
            left_untold,
            lacks_mark,
        }
    }

    /// Returns whether an earlier process may have ended before it had published all of its changes
    /// in the cluster. It left a mark, or was killed with an operation in flight. Known after
    /// [`begin`].
    #[must_use]
    pub fn was_left_untold(&self) -> bool {
        self.left_untold.load(Ordering::Acquire)
    }

    /// Writes the mark for unpublished changes. Returns whether it is on disk.
    pub fn mark_untold(&self) -> bool {
        let marked = self.files.mark_untold();
        if let Err(error) = &marked {
            // Without a complete journal the next process assumes unpublished changes.
            self.lacks_mark.store(true, Ordering::Release);
            self.forget(&mut self.journal(), "untold", error);
        }
        marked.is_ok()
    }

    /// Deletes the mark, after all changes are published. Returns whether it is deleted.
    pub fn unmark_untold(&self) -> bool {
        let unmarked = self.files.unmark_untold().is_ok();
        if unmarked {
            self.lacks_mark.store(false, Ordering::Release);
        }
        unmarked
    }

    /// Returns whether changes are unpublished and their mark could not be written.
    pub fn lacks_mark(&self) -> bool {
        self.lacks_mark.load(Ordering::Acquire)
    }

    /// Returns whether restoring has ended, successfully or not.
    #[must_use]
    pub fn is_taken_up(&self) -> bool {
        self.taken_up.load(Ordering::Acquire)
    }

    /// Records a change in the journal, after it is applied and before it is acknowledged. Changes
    /// of private copies are skipped, because these are never part of a snapshot.
    pub fn note(&self, targets: &[Target<'_>]) {
        let names: Vec<Name> = targets.iter().filter_map(name).collect();
        if !names.is_empty() {
            self.append(&names);
        }
    }

    /// Records a change of every page, for a change that has no name in the journal.
    pub fn note_everything(&self) {
        self.append(&[Name::Everything]);
    }

    fn append(&self, names: &[Name]) {
        let mut journal = self.journal();
        let Some(open) = journal.as_mut() else {
            self.remove_what_is_left();
            return;
        };
        if let Err(error) = open.append(names) {
            self.forget(&mut journal, "journal", &error);
        }
    }

    /// Records an operation in flight that may lead to a change, such as a write request. Must be
    /// called before the operation begins. The returned guard is dropped after its change is
    /// recorded. If the process is killed in between, the change is not known.
    pub fn in_hand(self: &Arc<Snapshots>) -> InHand {
        let mut journal = self.journal();
        if self.in_hand.fetch_add(1, Ordering::Relaxed) == 0 {
            self.say_in_hand(&mut journal, true);
        }
        drop(journal);
        InHand(self.clone())
    }

    fn say_in_hand(&self, journal: &mut Option<Open>, is: bool) {
        let said = journal.as_mut().map_or(Ok(()), |open| open.in_hand(is));
        if let Err(error) = said {
            self.forget(journal, "journal", &error);
        }
    }

    /// Switches to this journal for all further changes.
    fn begin_with(&self, journal: &mut Option<Open>, open: Open) {
        *journal = Some(open);
        if self.in_hand.load(Ordering::Relaxed) > 0 {
            self.say_in_hand(journal, true);
        }
    }

    /// Writes `NAME.running` if that has not succeeded yet, for example because the disk was full.
    fn begin_running(&self) -> std::io::Result<()> {
        if !self.runs.load(Ordering::Acquire) {
            self.files.begin_running()?;
            self.runs.store(true, Ordering::Release);
        }
        Ok(())
    }

    /// Waits until no snapshot is being written. None begins while the guard is held.
    pub async fn pause(&self) -> tokio::sync::OwnedMutexGuard<()> {
        self.writing.clone().lock_owned().await
    }

    /// Leaves the snapshots to another process: closes the journal, and releases the directory's
    /// lock. This process writes no snapshot any more.
    pub async fn hand_over(&self) {
        self.loaded.store(false, Ordering::Release);
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
    fn forget(&self, journal: &mut Option<Open>, reason: &str, error: &dyn std::fmt::Display) {
        tracing::error!(event = "snapshot-forgotten", reason, %error);
        self.give_up(journal);
    }

    /// Stops recording, and deletes the snapshot and its journals.
    fn give_up(&self, journal: &mut Option<Open>) {
        if let Some(Err(error)) = journal.take().map(|open| open.spoil()) {
            tracing::error!(event = "snapshot-not-removed", file = "journal", %error);
        }
        self.unremoved.store(true, Ordering::Release);
        self.remove_what_is_left();
    }

    /// Tries again to delete unusable files, if there are any.
    fn remove_what_is_left(&self) {
        if !self.unremoved.load(Ordering::Acquire) {
            return;
        }
        match self.files.remove_all() {
            Ok(()) => self.unremoved.store(false, Ordering::Release),
            Err(error) => {
                let directory = self.files.directory().display();
                tracing::error!(event = "snapshot-not-removed", %directory, %error);
            }
        }
    }

    fn journal(&self) -> MutexGuard<'_, Option<Open>> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A guard for an operation in flight that may lead to a change.
pub struct InHand(Arc<Snapshots>);

impl Drop for InHand {
    fn drop(&mut self) {
        let mut journal = self.0.journal();
        if self.0.in_hand.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.0.say_in_hand(&mut journal, false);
        }
    }
}

fn name(target: &Target<'_>) -> Option<Name> {
    Some(match target {
        Target::Tag(tag) => Name::Tag(tag.to_vec()),
        Target::Url(url) => Name::Url(url.to_vec()),
        Target::Path(path) => Name::Path(path.to_vec()),
        Target::Prefix(prefix) => Name::Prefix(prefix.to_vec()),
        Target::Everything => Name::Everything,
        Target::Owner(_) | Target::OwnerTag { .. } | Target::OwnerUrl { .. } => return None,
    })
}

fn target(name: &Name) -> Target<'_> {
    match name {
        Name::Tag(tag) => Target::Tag(tag),
        Name::Url(url) => Target::Url(url),
        Name::Path(path) => Target::Path(path),
        Name::Prefix(prefix) => Target::Prefix(prefix),
        Name::Everything => Target::Everything,
    }
}
