//! Drops root privileges: a process that was started as root to bind ports continues as an ordinary
//! user. Call this after the sockets are bound and the certificates are read, and before another thread
//! is started. Linux changes the user of one thread, and later threads inherit it
//! (docs/decisions/operation.md).
//!
//! Users and groups are looked up in /etc/passwd and /etc/group, or given as numbers. Files that
//! Pagewell writes later (snapshots, the access log, Unix sockets) are given to the user if they
//! belonged to root. Files that the user cannot read are reported.

pub use config::accounts::{Account, of};

use config::{AccessLogTo, Address, Config, FileUse, OriginConfig};
use rustix::fs::{Gid, Uid};
use rustix::process::{DumpableBehavior, getegid, geteuid, getuid, set_dumpable_behavior};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid, set_thread_uid};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The remedy for a document root that the user cannot read.
pub const DOCUMENT_ROOT_REMEDY: &str =
    "let this user enter the directories and read the files (a group, or chmod o+rx)";

/// The user that Pagewell runs as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The user that started it, who is not root.
    Own,
    /// Root, who started it.
    Root,
    /// This account, after privileges were dropped.
    Becomes(Account),
}

impl Standing {
    /// The id of the user that Pagewell switches to, if any.
    pub fn becomes(&self) -> Option<u32> {
        match self {
            Standing::Becomes(account) => Some(account.uid),
            Standing::Own | Standing::Root => None,
        }
    }
}

/// Determines the user that Pagewell runs as.
///
/// # Errors
/// A sentence for the operator: no such user or group, or not started as root.
pub fn standing(config: &Config) -> Result<Standing, String> {
    let own = geteuid();
    let Some(user) = &config.user else {
        return Ok(if own.is_root() { Standing::Root } else { Standing::Own });
    };
    let account = of(user, config.group.as_deref())?;
    match (own.is_root(), own.as_raw() == account.uid) {
        (true, _) => Ok(Standing::Becomes(account)),
        // Started by a process that has already dropped privileges: a service manager, or the
        // predecessor in a zero-downtime restart.
        (false, true) => Ok(Standing::Own),
        (false, false) => Err(format!(
            "user = {user:?}: only root can become somebody else, and this is user {}",
            own.as_raw()
        )),
    }
}

/// Switches to the user permanently, if one is configured. `file`: the configuration file, if there is one.
///
/// # Errors
/// A sentence for the operator: the system refuses, or the user cannot read the site.
pub fn drop_to(standing: &Standing, config: &Config, file: Option<&Path>) -> Result<(), String> {
    match standing {
        Standing::Own => {}
        Standing::Root => {
            tracing::warn!(
                event = "runs-as-root",
                remedy =
                    "set user in the configuration, or have a service manager start it as a user"
            );
        }
        Standing::Becomes(account) => {
            give(account, config)?;
            become_other(account)?;
            // The change of the user has reset it.
            protect_memory();
            let Account { name, uid, gid, .. } = account;
            tracing::info!(event = "privileges-dropped", user = name, uid, gid);
            if has_own_php(config) {
                let remedy = "run php-fpm as another user (pagewell-php.service), and name its socket in php.at";
                tracing::warn!(event = "php-shares-user", user = name, remedy);
            }
            look(account, config, file)?;
        }
    }
    Ok(())
}

/// Whether Pagewell starts the php-fpm of a site itself. No process of root remains that could start it as another user,
/// after its death or for the process that takes over (docs/decisions/operation.md).
fn has_own_php(config: &Config) -> bool {
    config.all_sites().any(|site| matches!(site.site.origin, OriginConfig::OwnPhp(_)))
}

/// Keeps other processes of this user, such as PHP scripts, from reading and tracing this one, and the system
/// from writing its memory to a file (PR_SET_DUMPABLE, prctl(2)). Call it first, and again after a change of
/// the user. A program that this one starts is not protected.
pub fn protect_memory() {
    // It cannot fail with this value.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
}

/// Sets the supplementary groups, the group and the user. The order matters, because afterwards none of
/// them can be changed.
fn become_other(account: &Account) -> Result<(), String> {
    let threads = fs::read_dir("/proc/self/task").map_or(0, Iterator::count);
    if threads != 1 {
        return Err(format!("user: {threads} threads run already: this is a fault of Pagewell"));
    }
    set_ids(account)?;
    let (uid, gid) = (Uid::from_raw(account.uid), Gid::from_raw(account.gid));
    let is_other = (getuid(), geteuid(), getegid()) == (uid, uid, gid);
    if is_other && set_thread_uid(Uid::ROOT).is_err() {
        Ok(())
    } else {
        Err("user: the system has not released the privileges of root".into())
    }
}

/// Sets the groups, the group and the user of this thread. Threads that it starts inherit them.
fn set_ids(account: &Account) -> Result<(), String> {
    let wrong = |error: rustix::io::Errno| {
        format!("user: the system does not let Pagewell become {}: {error}", account.name)
    };
    let (uid, gid) = (Uid::from_raw(account.uid), Gid::from_raw(account.gid));
    let groups: Vec<Gid> = account.groups.iter().copied().map(Gid::from_raw).collect();
    set_thread_groups(&groups).map_err(wrong)?;
    set_thread_res_gid(gid, gid, gid).map_err(wrong)?;
    set_thread_res_uid(uid, uid, uid).map_err(wrong)
}

/// Runs a task in a thread of its own, as this account if there is one. This process must then be
/// root. The other threads remain root, so this tests the permissions of the account, and protects nothing.
///
/// # Errors
/// A sentence for the operator: the system does not permit the change, or no thread can be started.
pub fn run_as<T: Send>(
    account: Option<&Account>,
    task: impl FnOnce() -> T + Send,
) -> Result<T, String> {
    std::thread::scope(|scope| {
        let run = move || account.map_or(Ok(()), set_ids).map(|()| task());
        let started = std::thread::Builder::new().spawn_scoped(scope, run);
        let thread = started.map_err(|error| format!("no thread can be started: {error}"))?;
        thread.join().unwrap_or_else(|_| Err("the check has failed: see above".into()))
    })
}

/// Changes the owner of the files that Pagewell writes to, from root to the user. Files of other owners
/// are not changed.
fn give(account: &Account, config: &Config) -> Result<(), String> {
    let mut given: Vec<PathBuf> = Vec::new();
    for directory in config.all_sites().filter_map(Config::kept_directory) {
        // Nobody else can put a link there, or the name of another file of root.
        trusted_files::create_directory(directory)
            .map_err(|error| format!("snapshot.directory {}: {error}", directory.display()))?;
        given.extend(fs::read_dir(directory).into_iter().flatten().flatten().map(|one| one.path()));
        given.push(directory.to_owned());
    }
    if let Some(AccessLogTo::File(path)) = config.access_log.as_ref().map(|log| &log.to) {
        given.push(path.clone());
    }
    let items = config.memcached.iter().flat_map(|port| &port.listen);
    let addresses =
        config.listen.iter().chain(&config.listen_tls).chain(items).chain([&config.admin]);
    given.extend(addresses.filter_map(|address| match address {
        Address::Unix(path) => Some(path.clone()),
        Address::Tcp(_) => None,
    }));
    given.iter().try_for_each(|path| give_one(path, account))
}

fn give_one(path: &Path, account: &Account) -> Result<(), String> {
    // Links are not followed, because following them as root is unsafe.
    let Ok(found) = fs::symlink_metadata(path) else { return Ok(()) };
    if found.uid() != 0 || found.is_symlink() || found.nlink() > 1 && found.is_file() {
        return Ok(());
    }
    std::os::unix::fs::lchown(path, Some(account.uid), Some(account.gid))
        .map_err(|error| format!("{} cannot be given to {}: {error}", path.display(), account.name))
}

/// Checks that the user can read the document roots, and warns if it cannot read the configuration file again, or a
/// file that this names.
fn look(account: &Account, config: &Config, file: Option<&Path>) -> Result<(), String> {
    for files in config.all_sites().filter_map(|site| site.site.files.as_ref()) {
        fs::read_dir(&files.root).map_err(|error| {
            let root = files.root.display();
            format!(
                "site.root {root}: the user {} cannot read it ({error}): {DOCUMENT_ROOT_REMEDY}; `pagewell check` \
                 names the directory that is closed",
                account.name
            )
        })?;
    }
    for (path, is_for) in read_again(config, file) {
        if let Err(error) = fs::File::open(&path) {
            let (path, then) = (path.display(), is_for.consequence());
            tracing::warn!(event = "not-read-again", %path, user = account.name, %error, then);
        }
    }
    Ok(())
}

/// The files that are read again after the start. One with several uses has the use with the worst consequence. `file`:
/// the configuration file, if there is one.
fn read_again(config: &Config, file: Option<&Path>) -> BTreeMap<PathBuf, FileUse> {
    // A pipe cannot be read twice. The user does not see what is in a directory that it may not enter.
    let own = file.filter(|file| fs::metadata(file).map_or(true, |found| found.is_file()));
    let own = own.map(|file| (file.to_owned(), FileUse::Reload));
    let named = config.all_sites().flat_map(Config::files_read);
    let mut all = BTreeMap::new();
    for (path, is_for) in own.into_iter().chain(named.map(|file| (file.path, file.is_for))) {
        let worst = all.entry(path).or_insert(is_for);
        *worst = is_for.min(*worst);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_again_for_the_use_with_the_worst_consequence() {
        let toml = "listen_tls = \":1\"\n[site]\norigin = \"https://127.0.0.1:1\"\n\
                    origin_tls = { ca_file = \"/x/both.pem\" }\n\
                    [[tls]]\ncertificate = \"/x/both.pem\"\nkey = \"/x/tls.key\"\n";
        let file = toml::from_str(toml).expect("a configuration");
        let config = config::resolve(&file).expect("it can be used");
        let all = |file: Option<&str>| read_again(&config, file.map(Path::new));
        let is_for = |file: Option<&str>, path: &str| all(file).get(Path::new(path)).copied();
        assert_eq!(is_for(None, "/x/both.pem"), Some(FileUse::Renewal));
        assert_eq!(is_for(Some("/x/both.pem"), "/x/both.pem"), Some(FileUse::Reload));
        let own = "/x/pagewell.toml";
        assert_eq!(is_for(Some(own), own), Some(FileUse::Reload), "it may be there");
        assert_eq!(is_for(Some("/dev/null"), "/dev/null"), None, "it is no file");
        assert_eq!((all(None).len(), all(Some(own)).len()), (2, 3));
    }
}
