//! Reloads the configuration at run time: on SIGHUP, and by a call of the control interface.
//!
//! It is atomic: the file is read, checked and compared with the current one. If a changed key
//! requires a restart, nothing is applied. Otherwise every site gets a successor with the same live
//! state (`site`), which answers later requests. Connections stay open. If the fingerprint changes
//! (the settings that decide what a page is and which request finds it), the site's pages are
//! purged; if only rewrites change, those whose URL they concern.
//!
//! Invariant: after the reload returns, no page made under the old rules is found. Pages are purged
//! before the successor is activated, and again afterwards, which invalidates the leases of all
//! renders in progress. A later render invalidates its lease itself (`render`). Lock: `state`, for
//! a whole reload.

mod diff;

pub use diff::{ChangedKey, may_change};

use command_line::options::ServeArgs;
use config::{Config, UnusableFile, WatchedFile};
use delivery::site::Site;
use delivery::site::SiteTable;
use history::ChangeSource;
use http::Method;
use page_store::{ChangeTarget, Page, PagePredicate, Strength};
use request_values::target::TargetUri;
use rule_conditions::RequestView;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use stored_pages::page::StoredPage;
use tokio::sync::Mutex;

/// Reloads the configuration of a running server.
pub struct Reload {
    args: ServeArgs,
    file: PathBuf,
    state: Mutex<State>,
}

/// The configuration that is in effect.
struct State {
    /// The configuration file as parsed TOML.
    written: toml::Table,
    /// The default site, if it is not the one of the start. This may be the only reference to it.
    _default_site: Option<Arc<Site>>,
}

/// The result of a successful reload.
#[derive(Debug, PartialEq, Eq)]
pub struct ReloadResult {
    /// The keys that have changed.
    pub changed: Vec<ChangedKey>,
    /// The number of purged pages.
    pub dropped: u64,
    /// Problems of the new configuration, which is in effect nevertheless, and trials with a new record.
    pub warnings: Vec<String>,
}

/// The reasons for which nothing was applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotReloaded {
    /// Pagewell was started without a configuration file.
    NoFile,
    /// The file is invalid, with an explanation.
    Wrong(String),
    /// These changed keys require a restart.
    NeedsRestart(Vec<ChangedKey>),
    /// The file has so many more sites, or fewer if it is negative, which requires a restart.
    OtherSites(i64),
}

/// The command that puts the whole configuration in effect.
const RESTART: &str = "sudo systemctl restart pagewell";

impl std::fmt::Display for NotReloaded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NotReloaded::NoFile => f.write_str("Pagewell was started without --config, so there is no file to reload; start it with --config FILE"),
            NotReloaded::Wrong(why) => f.write_str(why),
            NotReloaded::NeedsRestart(changed) => {
                let keys: Vec<&str> = changed.iter().map(|changed| changed.key.as_str()).collect();
                write!(f, "needs a restart ({RESTART}), so nothing was applied: {}", keys.join(", "))
            }
            NotReloaded::OtherSites(more) => {
                let site = if *more > 0 { "a new site" } else { "a removed site" };
                write!(f, "{site} needs a restart, so nothing was applied: {RESTART}")
            }
        }
    }
}

impl Reload {
    /// Creates the state for a server that was started with these arguments; `None` if they name no
    /// file.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn of(args: &ServeArgs) -> Result<Option<Reload>, String> {
        let Some(file) = args.config.clone() else { return Ok(None) };
        let state = Mutex::new(State { written: written(&file)?, _default_site: None });
        Ok(Some(Reload { args: args.clone(), file, state }))
    }

    /// Reloads the configuration. When this returns, the new one is in effect, or nothing has
    /// changed.
    ///
    /// # Errors
    /// The file is invalid, or a changed key or another number of sites requires a restart.
    pub async fn run(&self, default_site: &Arc<Site>) -> Result<ReloadResult, NotReloaded> {
        let mut state = self.state.lock().await;
        let done = self.try_run(&default_site.now(), &mut state).await;
        default_site.failed_reload.note(done.as_ref().err().map(NotReloaded::to_string));
        match &done {
            Ok(ReloadResult { changed, dropped, .. }) => {
                for ChangedKey { key, from, to } in changed {
                    tracing::info!(event = "config-changed", key, from, to);
                }
                tracing::info!(event = "reloaded", changed = changed.len(), dropped);
            }
            Err(error) => tracing::error!(event = "not-reloaded", %error),
        }
        done
    }

    /// Whether the last reload has failed, and the configuration file says again what is in effect. Then reading the
    /// other files again ends the failure. Blocks while the disk does, and while a reload runs.
    pub fn is_restored(&self, default_site: &Site) -> bool {
        let has_failed = default_site.failed_reload.of_reload().is_some();
        has_failed && self.is_in_effect(&self.state.blocking_lock())
    }

    fn is_in_effect(&self, state: &State) -> bool {
        written(&self.file).is_ok_and(|written| written == state.written)
    }

    /// Reads the files again that are part of the configuration in effect (`Config::watched_files`). What the
    /// configuration file says now does not count. A file that cannot be used keeps its content from before. If the
    /// configuration as a whole cannot be used, the failure is noted (`FailedReload`), and logged if it is a new one.
    pub async fn read_watched_files(&self, default_site: &Arc<Site>) {
        let mut state = self.state.lock().await;
        let default_site = default_site.now();
        let (args, written) = (self.args.clone(), toml::Value::Table(state.written.clone()));
        let before = default_site.config.clone();
        let resolved = read_apart(move || {
            let file = written.try_into().map_err(|error| error.to_string())?;
            let config = args.resolved(file, "", Some(&before))?;
            warn_of_loops(&config);
            let is_news = warn_of_unusable(&before, &config);
            Ok((config, is_news))
        });
        match resolved.await {
            Ok((config, is_news)) => {
                let (_, successor) = put_in_place(&default_site, Arc::new(config)).await;
                state._default_site = Some(successor);
                if is_news {
                    tracing::info!(event = "files-reloaded");
                }
                // The file and the files that it names can be used: that is what a reload would find.
                if self.is_in_effect(&state) {
                    default_site.failed_reload.note(None);
                } else {
                    default_site.failed_reload.note_files(None);
                }
            }
            Err(error) => {
                let error = error.to_string();
                if default_site.failed_reload.of_files().as_ref() != Some(&error) {
                    tracing::error!(event = "not-reloaded", error);
                }
                default_site.failed_reload.note_files(Some(error));
            }
        }
    }

    async fn try_run(
        &self,
        default_site: &Arc<Site>,
        state: &mut State,
    ) -> Result<ReloadResult, NotReloaded> {
        // The file is read twice: as resolved configuration, and as written keys for the
        // comparison.
        let args = self.args.clone();
        let read = read_apart(move || {
            let (config, _) = args.read()?;
            let mut warnings = warn_of_loops(&config);
            warnings.extend(config.all_sites().flat_map(Config::rule_warnings));
            Ok((config, warnings))
        });
        let (config, mut warnings) = read.await?;
        let more = config.all_sites().count() as i64 - default_site.all_sites().count() as i64;
        if more != 0 {
            return Err(NotReloaded::OtherSites(more));
        }
        let written = written(&self.file).map_err(NotReloaded::Wrong)?;
        let changed = diff::between(&state.written, &written);
        let fixed: Vec<_> = changed.iter().filter(|one| !may_change(&one.key)).cloned().collect();
        if !fixed.is_empty() {
            return Err(NotReloaded::NeedsRestart(fixed));
        }
        let records: Vec<u64> =
            default_site.all_sites().map(|site| site.trial.generation()).collect();
        let (dropped, successor) = put_in_place(default_site, Arc::new(config)).await;
        warnings.extend(new_records(&records, &successor));
        *state = State { written, _default_site: Some(successor) };
        Ok(ReloadResult { changed, dropped, warnings })
    }
}

/// Reads the configuration on a thread of its own, because its files may be large.
async fn read_apart<T: Send + 'static>(
    read: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, NotReloaded> {
    let read = tokio::task::spawn_blocking(read).await;
    // A panic is in the log already.
    let read = read.unwrap_or_else(|error| Err(error.to_string()));
    read.map_err(NotReloaded::Wrong)
}

/// Logs the redirect files that lead in a circle, and returns a sentence about each. `pagewell check` refuses them, but a
/// file is read without it.
pub fn warn_of_loops(config: &Config) -> Vec<String> {
    let endless = config.all_sites().filter_map(|site| site.redirect_files.endless.as_ref());
    let warn = |error: &String| {
        tracing::warn!(event = "redirects-endless", error);
        format!(
            "A redirect file leads in a circle, and its redirects are sent nevertheless: {error}."
        )
    };
    endless.map(warn).collect()
}

/// A sentence about each trial that has begun a new record. `before` has the numbers of the records before the reload:
/// 0 for a trial that was never on.
fn new_records(before: &[u64], default_site: &Arc<Site>) -> Vec<String> {
    let begun = default_site.all_sites().zip(before);
    let begun = begun.filter(|(site, before)| **before != 0 && site.trial.generation() != **before);
    let sentence = |(site, _): (&Arc<Site>, &u64)| {
        let of = site.config.hosts.canonical.as_ref();
        let of = of.map(|host| format!(" of {host}")).unwrap_or_default();
        format!("The trial{of} has begun a new record, because the rules of the site have changed.")
    };
    begun.map(sentence).collect()
}

/// Reports the files that cannot be used any longer, and returns whether any other file was read.
fn warn_of_unusable(before: &Config, config: &Config) -> bool {
    let known: Vec<&UnusableFile> = before.all_sites().flat_map(Config::unusable_files).collect();
    let unusable = config.all_sites().flat_map(Config::unusable_files);
    for UnusableFile { path, why } in unusable.filter(|file| !known.contains(file)) {
        tracing::error!(event = "not-reloaded", error = format!("{}: {why}", path.display()));
    }
    let is_usable = |file: &WatchedFile| {
        config.all_sites().flat_map(Config::unusable_files).all(|one| one.path != file.path())
    };
    let mut files = watched_files(before).zip(watched_files(config));
    files.any(|(before, now)| before != now && is_usable(now))
}

fn watched_files(config: &Config) -> impl Iterator<Item = &WatchedFile> {
    config.all_sites().flat_map(|site| &site.watched_files)
}

fn written(file: &Path) -> Result<toml::Table, String> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| format!("{} cannot be read: {error}", file.display()))?;
    text.parse().map_err(|error| format!("{}:\n{error}", file.display()))
}

/// Activates a configuration. Returns the number of purged pages, and the new default site.
async fn put_in_place(default_site: &Arc<Site>, config: Arc<Config>) -> (u64, Arc<Site>) {
    // In the order of the file, which is unchanged: a change of hosts or sites requires a restart.
    let others: Vec<Arc<Site>> = default_site
        .all_sites()
        .skip(1)
        .zip(&config.other_sites)
        .map(|(site, config)| site.reread(config.clone(), SiteTable::default()))
        .collect();
    let successor = default_site.reread(config, SiteTable::new(others));
    let outdated: Vec<Arc<Site>> = default_site
        .all_sites()
        .zip(successor.all_sites())
        .filter(|(before, after)| before.config.print != after.config.print)
        .map(|(_, after)| after.clone())
        .collect();
    let rewritten: Vec<_> = default_site
        .all_sites()
        .zip(successor.all_sites())
        .filter(|(before, after)| before.config.print == after.config.print)
        .filter(|(before, after)| !before.config.rules.rewrites_as(&after.config.rules))
        .map(|(before, after)| (before.clone(), after.clone()))
        .collect();
    let mut paused = Vec::new();
    for snapshots in outdated.iter().filter_map(|site| site.snapshots.as_ref()) {
        paused.push(snapshots.pause().await);
    }
    let before = drop_all(outdated.clone()).await + drop_rewritten(rewritten.clone()).await;
    // The default site comes last, so that its requests find the other sites in place.
    for site in successor.all_sites().skip(1) {
        site.activate();
    }
    successor.activate();
    for snapshots in outdated.iter().filter_map(|site| site.snapshots.as_ref()) {
        snapshots.start_over();
    }
    let after = drop_all(outdated.clone()).await + drop_rewritten(rewritten).await;
    drop(paused);
    (before + after, successor)
}

/// Purges the pages of these sites, before and after the reload, that the rules now rewrite otherwise.
async fn drop_rewritten(sites: Vec<(Arc<Site>, Arc<Site>)>) -> u64 {
    let drop_one = |(before, after): (Arc<Site>, Arc<Site>)| {
        let (old, new) = (before.config.clone(), after.config.clone());
        let touches = move |page: &Page<StoredPage>| {
            let of_url = page.key().bytes().split(|byte| *byte == b'\n').next();
            let Some(target) = of_url.and_then(TargetUri::of_key) else { return true };
            let (scheme, host) = (target.scheme, &target.host);
            let view = RequestView::of_url(&Method::GET, scheme, host, &target.path_and_query);
            !old.rules.rewrites_page_as(&new.rules, &view)
        };
        let touches: PagePredicate<StoredPage> = Arc::new(touches);
        after.changes().apply_where(&touches, Strength::Drop, ChangeSource::Reload).dropped
    };
    let dropping =
        tokio::task::spawn_blocking(move || sites.into_iter().map(drop_one).sum::<u64>());
    // A panic is in the log already.
    dropping.await.unwrap_or_default()
}

/// Purges all pages of these sites, on a blocking thread because it may take a while.
async fn drop_all(sites: Vec<Arc<Site>>) -> u64 {
    let dropping = tokio::task::spawn_blocking(move || {
        let all = sites.iter();
        all.map(|site| {
            site.changes()
                .apply(&[ChangeTarget::Everything], Strength::Drop, ChangeSource::Reload)
                .dropped
        })
        .sum()
    });
    // A panic is in the log already.
    dropping.await.unwrap_or_default()
}
