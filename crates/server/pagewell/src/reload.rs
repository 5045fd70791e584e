//! The configuration, read again while Pagewell runs: on SIGHUP, and when the control interface is told to.
//!
//! All or nothing: the file is read, checked and compared with what counts; one key that cannot change
//! without a restart, and nothing is applied. Then every site gets a successor with the same live part
//! (`site`), and requests that come from then on are answered by it. No connection ends, and no page goes
//! where it means what it did: where anything has changed that decides what a page is and which request
//! finds it (the print, as for snapshots), all pages of that site are dropped.
//!
//! Invariant: no page made by former rules is found by later ones once the reload has returned. They are
//! dropped before the successor takes over, and after, which outdates the leases of all renders that had
//! begun; one that begins even later outdates its lease itself (`render`). Lock: `state`, for a whole reload.

mod diff;

pub use diff::{Changed, may_change};

use crate::config::Config;
use crate::options::ServeArgs;
use crate::site::Site;
use crate::sites::Neighbours;
use crate::why::Cause;
use page_store::{ChangeTarget, Strength};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::Mutex;

/// What reads the configuration again.
pub struct Reload {
    args: ServeArgs,
    file: PathBuf,
    state: Mutex<State>,
}

/// What counts now.
struct State {
    /// The file as it was written.
    written: toml::Table,
    /// The site that connections come to first, where it is not the one of the start: nobody else might
    /// hold it.
    _door: Option<Arc<Site>>,
}

/// What came of it.
#[derive(Debug, PartialEq, Eq)]
pub struct Reloaded {
    /// What is different now.
    pub changed: Vec<Changed>,
    /// Pages that could not be kept.
    pub dropped: u64,
}

/// Why nothing was applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotReloaded {
    /// Pagewell was started without a file.
    NoFile,
    /// The file cannot be used: what is wrong with it.
    Wrong(String),
    /// These need a restart.
    NeedsRestart(Vec<Changed>),
}

impl std::fmt::Display for NotReloaded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NotReloaded::NoFile => f.write_str("there is no --config to be read again"),
            NotReloaded::Wrong(why) => f.write_str(why),
            NotReloaded::NeedsRestart(changed) => {
                let keys: Vec<&str> = changed.iter().map(|changed| changed.key.as_str()).collect();
                write!(f, "needs a restart, so nothing was applied: {}", keys.join(", "))
            }
        }
    }
}

impl Reload {
    /// For a server that was started with these arguments; none where they name no file.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn of(args: &ServeArgs) -> Result<Option<Reload>, String> {
        let Some(file) = args.config.clone() else { return Ok(None) };
        let state = Mutex::new(State { written: written(&file)?, _door: None });
        Ok(Some(Reload { args: args.clone(), file, state }))
    }

    /// Reads the configuration again. When this returns it counts, or nothing has changed.
    ///
    /// # Errors
    /// Why not.
    pub async fn run(&self, door: &Arc<Site>) -> Result<Reloaded, NotReloaded> {
        let mut state = self.state.lock().await;
        let done = self.try_run(&door.now(), &mut state).await;
        match &done {
            Ok(Reloaded { changed, dropped }) => {
                for Changed { key, from, to } in changed {
                    tracing::info!(event = "config-changed", key, from, to);
                }
                tracing::info!(event = "reloaded", changed = changed.len(), dropped);
            }
            Err(error) => tracing::error!(event = "not-reloaded", %error),
        }
        done
    }

    async fn try_run(&self, door: &Arc<Site>, state: &mut State) -> Result<Reloaded, NotReloaded> {
        // Twice read, by the same words: what stands there, and what it means.
        let (config, _) = self.args.read().map_err(NotReloaded::Wrong)?;
        let written = written(&self.file).map_err(NotReloaded::Wrong)?;
        let changed = diff::between(&state.written, &written);
        let fixed: Vec<_> = changed.iter().filter(|one| !may_change(&one.key)).cloned().collect();
        if !fixed.is_empty() {
            return Err(NotReloaded::NeedsRestart(fixed));
        }
        let (dropped, successor) = put_in_place(door, Arc::new(config)).await;
        *state = State { written, _door: Some(successor) };
        Ok(Reloaded { changed, dropped })
    }
}

fn written(file: &Path) -> Result<toml::Table, String> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| format!("{} cannot be read: {error}", file.display()))?;
    text.parse().map_err(|error| format!("{}:\n{error}", file.display()))
}

/// Has this configuration count; how many pages were dropped for it, and the door as it is now.
async fn put_in_place(door: &Arc<Site>, config: Arc<Config>) -> (u64, Arc<Site>) {
    // In the order of the file, which has not changed: hosts and sites need a restart.
    let others: Vec<Arc<Site>> = door
        .all_or(None)
        .skip(1)
        .zip(&config.other_sites)
        .map(|(site, config)| site.read_anew(config.clone(), Neighbours::default()))
        .collect();
    let successor = door.read_anew(config, Neighbours::new(others));
    let outdated: Vec<Arc<Site>> = door
        .all_or(None)
        .zip(successor.all_or(None))
        .filter(|(before, after)| before.config.print != after.config.print)
        .map(|(_, after)| after.clone())
        .collect();
    let mut paused = Vec::new();
    for snapshots in outdated.iter().filter_map(|site| site.snapshots.as_ref()) {
        paused.push(snapshots.pause().await);
    }
    let before = drop_all(outdated.clone()).await;
    // The door last: who comes by it finds the others in place.
    for site in successor.all_or(None).skip(1) {
        site.take_over();
    }
    successor.take_over();
    for snapshots in outdated.iter().filter_map(|site| site.snapshots.as_ref()) {
        snapshots.start_over();
    }
    let after = drop_all(outdated.clone()).await;
    drop(paused);
    (before + after, successor)
}

/// Drops all pages of these sites: not where visitors are served, for it may take a while.
async fn drop_all(sites: Vec<Arc<Site>>) -> u64 {
    let dropping = tokio::task::spawn_blocking(move || {
        let all = sites.iter();
        all.map(|site| {
            site.change(&[ChangeTarget::Everything], Strength::Drop, Cause::Reload).dropped
        })
        .sum()
    });
    // A panic has been logged.
    dropping.await.unwrap_or_default()
}
