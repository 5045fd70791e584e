//! Snapshots: the pages of a site outlive the process, and are as exact afterwards as they were.
//!
//! | file | |
//! |---|---|
//! | `files` | the directory: whose it is, what lies in it, replacing a file in one step |
//! | `journal` | changes by word of mouth, appended before they are acknowledged |
//! | `write` | all pages into a file, now and then and at the end |
//! | `load` | what was left is looked through, and put in again |
//! | `page` | a page of the store as a page of a snapshot, and back |
//!
//! A snapshot has positions from before its first page was read; its journal, and those after it, have
//! every later change that no database tells. [0036](../../../../docs/decisions/0036-warm-restart.md).
//! Lock: `journal`, held to append, to begin one, to put a snapshot in place; none is taken under it.

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
use page_snapshot::ChangedName;
use page_store::ChangeTarget;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a site has of snapshots.
pub struct Snapshots {
    config: config::Snapshot,
    files: Files,
    /// None: no snapshot could be relied on, so nothing is noted.
    journal: Mutex<Option<Open>>,
    /// How much is in hand that may tell of a change; changed with the journal held.
    in_hand: AtomicUsize,
    /// Held by whoever writes a snapshot, until he has ended: his task may be given up before.
    writing: Arc<tokio::sync::Mutex<()>>,
    /// Whether it is written that a process runs: without that nothing that is written may be relied on.
    runs: AtomicBool,
    /// Whether what was left is put in: before, a snapshot would leave out what is still to come.
    loaded: AtomicBool,
    /// Whether there is something that nobody may rely on and that could not be removed.
    unremoved: AtomicBool,
    /// Whether there is nothing to be put in any more, whatever came of it.
    taken_up: AtomicBool,
    /// Whether an earlier process may have left something that the other machines were not told.
    left_untold: AtomicBool,
    /// Whether there is something of the kind here, and it could not be written down: no journal may say that all
    /// is well.
    lacks_mark: AtomicBool,
}

impl Snapshots {
    /// Nothing is read or written before [`begin`].
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

    /// Whether an earlier process may have ended before the other machines were told all that it had changed:
    /// it says so, or was killed with something in hand. Known after [`begin`].
    #[must_use]
    pub fn was_left_untold(&self) -> bool {
        self.left_untold.load(Ordering::Acquire)
    }

    /// Writes down that the other machines have not been told everything; whether it is.
    pub fn mark_untold(&self) -> bool {
        let marked = self.files.mark_untold();
        if let Err(error) = &marked {
            // Without a journal that is whole the next process takes it for so.
            self.lacks_mark.store(true, Ordering::Release);
            self.forget(&mut self.journal(), "untold", error);
        }
        marked.is_ok()
    }

    /// They have been told everything; whether that is written down.
    pub fn unmark_untold(&self) -> bool {
        let unmarked = self.files.unmark_untold().is_ok();
        if unmarked {
            self.lacks_mark.store(false, Ordering::Release);
        }
        unmarked
    }

    /// Whether something is untold, and could not be written down.
    pub fn lacks_mark(&self) -> bool {
        self.lacks_mark.load(Ordering::Acquire)
    }

    /// Whether what was left is put in or given up.
    #[must_use]
    pub fn is_taken_up(&self) -> bool {
        self.taken_up.load(Ordering::Acquire)
    }

    /// Notes a change that was applied and is not acknowledged yet. Those of private pages alone are not
    /// noted, for no private page is written.
    pub fn note(&self, targets: &[ChangeTarget<'_>]) {
        let names: Vec<ChangedName> = targets.iter().filter_map(name).collect();
        if !names.is_empty() {
            self.append(&names);
        }
    }

    /// Notes a change of what has no name.
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
            self.forget(&mut journal, "journal", &error);
        }
    }

    /// Something is in hand that may tell of a change: noted before it is begun, until what is returned is
    /// dropped, when the change is noted. Whoever is killed meanwhile has not heard of it.
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

    /// From now on changes are noted in this journal.
    fn begin_with(&self, journal: &mut Option<Open>, open: Open) {
        *journal = Some(open);
        if self.in_hand.load(Ordering::Relaxed) > 0 {
            self.say_in_hand(journal, true);
        }
    }

    /// Has it written that a process runs, where that is not so yet: a disk may have had no room.
    fn begin_running(&self) -> std::io::Result<()> {
        if !self.runs.load(Ordering::Acquire) {
            self.files.begin_running()?;
            self.runs.store(true, Ordering::Release);
        }
        Ok(())
    }

    /// Waits until no snapshot is being written; none is begun while the guard is held.
    pub async fn pause(&self) -> tokio::sync::OwnedMutexGuard<()> {
        self.writing.clone().lock_owned().await
    }

    /// Another process goes on with what is there: the journal is closed, and the directory let go of. No
    /// snapshot is written here any more.
    pub async fn hand_over(&self) {
        self.loaded.store(false, Ordering::Release);
        let _writing = self.pause().await;
        *self.journal() = None;
        self.files.let_go();
    }

    /// Another process was to go on with what is there, and does not: nobody may.
    pub fn take_back(&self) {
        if let Err(error) = self.files.take_hold() {
            // It is not noted here who has it; what is there is removed all the same.
            tracing::warn!(event = "snapshot-not-written", reason = "lock", error);
        }
        self.start_over();
    }

    /// Notes nothing any more, not even that what is in hand has ended.
    pub fn abandon(&self) {
        *self.journal() = None;
    }

    /// Takes everything away, because pages mean something else from now on. The next snapshot is written
    /// in its time.
    pub fn start_over(&self) {
        let mut journal = self.journal();
        self.give_up(&mut journal);
    }

    /// What is not noted must never be relied on: takes everything away that a later process could use.
    /// The journal is spoilt first, for where the files cannot be removed that is what a reader finds.
    fn forget(&self, journal: &mut Option<Open>, reason: &str, error: &dyn std::fmt::Display) {
        tracing::error!(event = "snapshot-forgotten", reason, %error);
        self.give_up(journal);
    }

    /// Notes nothing any more, and takes everything away.
    fn give_up(&self, journal: &mut Option<Open>) {
        if let Some(Err(error)) = journal.take().map(|open| open.spoil()) {
            tracing::error!(event = "snapshot-not-removed", file = "journal", %error);
        }
        self.unremoved.store(true, Ordering::Release);
        self.remove_what_is_left();
    }

    /// Tries (again) to remove what must not be relied on; nothing if there is nothing of the kind.
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

/// Something that is in hand.
pub struct InHand(Arc<Snapshots>);

impl Drop for InHand {
    fn drop(&mut self) {
        let mut journal = self.0.journal();
        if self.0.in_hand.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.0.say_in_hand(&mut journal, false);
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

fn target(name: &ChangedName) -> ChangeTarget<'_> {
    match name {
        ChangedName::Tag(tag) => ChangeTarget::Tag(tag),
        ChangedName::Url(url) => ChangeTarget::Url(url),
        ChangedName::Path(path) => ChangeTarget::Path(path),
        ChangedName::Prefix(prefix) => ChangeTarget::Prefix(prefix),
        ChangedName::Everything => ChangeTarget::Everything,
    }
}
