//! The part of `pagewell check` that tests files, directories and ports as the user that will serve: `--user`, else
//! `user` of the configuration, else `User=` of the installed systemd unit (`unit`), else the current user.
//!
//! Root tests in a thread that becomes this user (groups, group, user), because root could read everything. Any
//! other user can test only as itself; what could not be tested is named. Nothing is created or changed: a port
//! is bound for a moment and never listened on.

use super::of_origins::name_of;
use super::unit::Unit;
use cli::doctor::{ListeningProcess, on_port, user_of_port};
use config::accounts::{Account, of};
use config::{AccessLogTo, AcmeStorage, Address, Config, ConfiguredFile, FileUse};
use pagewell::privileges::{DOCUMENT_ROOT_REMEDY, run_as};
use rustix::fs::Access;
use rustix::io::Errno;
use rustix::net::sockopt::{set_ipv6_v6only, set_socket_reuseaddr};
use rustix::net::{AddressFamily, SocketType, bind, socket};
use rustix::process::geteuid;
use std::collections::HashSet;
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use trusted_files::Writers;

/// The result of the tests.
#[derive(Debug, Default)]
pub struct ServiceReport {
    /// Problems that keep Pagewell from serving as this configuration says.
    pub errors: Vec<String>,
    /// Problems that may keep it from serving so.
    pub warnings: Vec<String>,
}

/// The most links that are followed to find the file that cannot be read.
const LINKS_MAX: usize = 8;

/// How a path is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Use {
    /// A file is read.
    Read,
    /// The same, with any owner and mode.
    ReadOfAnyone,
    /// A directory is listed, and its files are read.
    List,
    /// Files are created in the directory.
    Create,
    /// The same, and no other user may create files there.
    Own,
}

/// A path of the configuration, and what to do if it cannot be used.
struct PathUse {
    path: PathBuf,
    is_for: Use,
    remedy: &'static str,
    /// The consequence of a file that cannot be read, if the remedy does not show it.
    consequence: Option<&'static str>,
    /// Whether the service starts nevertheless.
    is_warning: bool,
}

const CERTIFICATES: &str = "copy it by a deploy hook: docs/guide/certbot.md";
const READABLE: &str = "let its group read it (chgrp, chmod 640)";
/// The consequence of [`FileUse::Reload`] for a service that does not start as root.
const AT_START: &str = "a start or a reload that cannot read it fails";
const ACME: &str =
    "give it to this user, who alone may use it (chown -R USER PATH; chmod 700 PATH)";
const DIRECTORIES: &str = "create it as root, and give it to this user (install -d -o USER PATH)";

/// The user that will serve.
pub struct ServiceUser {
    /// The account to become; `None`: the current user serves.
    pub account: Option<Account>,
    /// The name for messages.
    name: String,
    /// Whether the tests have to be left out, because only root can become that user.
    is_other: bool,
    /// Whether the service is started as root, which opens everything but the document roots first.
    begins_as_root: bool,
    /// Whether root tests as itself only because nothing names the user.
    pub is_assumed: bool,
    /// The command that runs this check again, without `--user`.
    pub check_command: String,
}

impl ServiceUser {
    /// Determines the user.
    ///
    /// # Errors
    /// `given` is no user of this machine: a sentence for the operator.
    pub fn of(config: &Config, given: Option<&str>, unit: &Unit) -> Result<ServiceUser, String> {
        let own = geteuid();
        let (name, group) = match (given, &config.user, &unit.user) {
            (Some(given), ..) => (Some(given), None),
            (None, Some(user), _) => (Some(user.as_str()), config.group.as_deref()),
            (None, None, Some(user)) => (Some(user.as_str()), unit.group.as_deref()),
            (None, None, None) => (None, None),
        };
        let current = |is_other| ServiceUser {
            account: None,
            name: name_of("/etc/passwd", own.as_raw()),
            is_other,
            begins_as_root: false,
            is_assumed: false,
            check_command: "pagewell check".into(),
        };
        let assumed = || ServiceUser { is_assumed: own.is_root(), ..current(false) };
        let Some(name) = name else { return Ok(assumed()) };
        if name_of("/etc/passwd", own.as_raw()) == name {
            return Ok(current(false));
        }
        let account = match of(name, group) {
            Ok(account) => account,
            Err(why) if given.is_some() => return Err(why),
            // `of_machine` says so, and a unit may be that of another machine.
            Err(_) => return Ok(assumed()),
        };
        if account.uid == own.as_raw() {
            return Ok(current(false));
        }
        let begins_as_root = given.is_none() && config.user.is_some() && config.user != unit.user;
        let name = account.name.clone();
        Ok(if own.is_root() {
            ServiceUser { account: Some(account), name, begins_as_root, ..current(false) }
        } else {
            ServiceUser { name, ..current(true) }
        })
    }

    /// Whether this process can read the certificates and keys, or can say that they are missing, to test what is in them.
    /// Only root and the user that will serve have to.
    pub fn can_read_keys(&self, config: &Config) -> bool {
        let mut files = config.tls.iter().flat_map(|pair| [&pair.certificate, &pair.key]);
        let is_known =
            |path: &PathBuf| fs::File::open(path).map_or_else(|error| is_missing(&error), |_| true);
        !self.is_other || files.all(is_known)
    }
}

/// Tests the files of the certificates alone. Returns a sentence for each problem.
pub fn unreadable_certificates(config: &Config, user: &ServiceUser, unit: &Unit) -> Vec<String> {
    let is_certificate = |one: &PathUse| one.remedy == CERTIFICATES;
    let wanted: Vec<_> = wanted(config, user, unit).into_iter().filter(is_certificate).collect();
    let report = tested(&wanted, user, unit);
    report.errors.into_iter().chain(report.warnings).collect()
}

/// Tests everything. `file`: the configuration file, if the service reads it; `unit`: the installed unit, whose
/// restrictions apply to `config` too; `answers`: asks whether a Pagewell answers at the control interface.
pub fn report(
    config: &Config,
    file: Option<&Path>,
    user: &ServiceUser,
    unit: &Unit,
    answers: &dyn Fn() -> bool,
) -> ServiceReport {
    let mut wanted = wanted(config, user, unit);
    // A pipe cannot be read twice.
    let file = file.filter(|file| file.is_file());
    wanted.extend(file.map(|file| PathUse::of_file(file, Use::ReadOfAnyone, user)));
    // A missing certificate is named when it is loaded, with its line of the configuration.
    wanted.retain(|one| one.remedy != CERTIFICATES || !is_missing_file(&one.path));
    let mut report = tested(&wanted, user, unit);
    let mut warnings = ports(config, answers);
    warnings.append(&mut report.warnings);
    report.warnings = warnings;
    report
}

/// Tests these paths as the user that will serve.
fn tested(wanted: &[PathUse], user: &ServiceUser, unit: &Unit) -> ServiceReport {
    let mut report = ServiceReport::default();
    for one in wanted {
        let creates = matches!(one.is_for, Use::Create | Use::Own);
        let closed = unit.hides(&one.path);
        report.errors.extend(closed.or_else(|| unit.protects(&one.path).filter(|_| creates)));
    }
    if user.is_other {
        let mut paths: Vec<_> = wanted.iter().map(|one| one.path.display().to_string()).collect();
        paths.dedup();
        if !paths.is_empty() {
            report.warnings.push(format!(
                "not tested as the user {}, which only root can: {}: run this as root",
                user.name,
                paths.join(", ")
            ));
        }
        return report;
    }
    let test = || -> Vec<_> { wanted.iter().map(|one| one.test(user)).collect() };
    // In a container, root may not have the privilege to become another user.
    let results = match run_as(user.account.as_ref(), test) {
        Ok(results) => results,
        Err(why) => {
            report.warnings.push(format!("not tested as the user {}: {why}", user.name));
            return report;
        }
    };
    for (one, problem) in wanted.iter().zip(results) {
        // Where no unit is installed, it is no error that nothing names the user.
        let is_warning = one.is_warning || one.likely_user(user).is_some();
        let list = if is_warning { &mut report.warnings } else { &mut report.errors };
        list.extend(problem);
    }
    report
}

/// The paths of the configuration that the user has to be able to use.
fn wanted(config: &Config, user: &ServiceUser, unit: &Unit) -> Vec<PathUse> {
    let mut all = Vec::new();
    let mut add = |path: &Path, is_for, remedy, is_warning| {
        let path = path.to_owned();
        all.push(PathUse { path, is_for, remedy, consequence: None, is_warning });
    };
    for site in config.all_sites() {
        if let Some(files) = &site.site.files {
            add(&files.root, Use::List, DOCUMENT_ROOT_REMEDY, false);
        }
        if user.begins_as_root {
            continue;
        }
        if let Some(directory) = site.kept_directory() {
            add(directory, Use::Own, DIRECTORIES, false);
        }
        let automatic = site.automatic.as_ref();
        if let Some(directory) = automatic.and_then(|on| on.capture_directory.as_ref()) {
            add(directory, Use::Create, DIRECTORIES, false);
        }
    }
    let copy = config.acme.iter().filter_map(|acme| acme.copy.as_ref());
    let storage = config.acme.iter().filter_map(|acme| match &acme.storage {
        AcmeStorage::Directory(directory) => Some(directory),
        AcmeStorage::Valkey { .. } => None,
    });
    for directory in storage.chain(copy) {
        match directory.parent() {
            Some(parent) if !directory.exists() => add(parent, Use::Create, DIRECTORIES, false),
            _ => add(directory, Use::Own, ACME, false),
        }
    }
    if let Some(uploads) = &config.uploads {
        add(uploads, Use::Create, DIRECTORIES, false);
    }
    if !user.begins_as_root {
        let log = config.access_log.as_ref().and_then(|log| match &log.to {
            AccessLogTo::File(path) => Some(path.clone()),
            _ => None,
        });
        let sockets = addresses(config).into_iter().filter_map(|(_, address)| match address {
            Address::Unix(path) => Some(path.clone()),
            Address::Tcp(_) => None,
        });
        for path in sockets.chain(log) {
            // A missing directory is a warning of `of_machine`.
            let parent = path.parent().filter(|parent| parent.is_dir());
            parent.into_iter().for_each(|parent| add(parent, Use::Create, DIRECTORIES, false));
        }
    }
    // The unit creates these when it starts.
    all.retain(|one| !unit.creates(&one.path) || one.path.exists());
    let files = config.all_sites().flat_map(Config::files_read);
    all.extend(files.map(|file| PathUse::of_configured(&file, user)));
    // Sites have files of the top of the configuration in common.
    let mut seen = HashSet::new();
    all.retain(|one| seen.insert((one.path.clone(), one.is_for)));
    all
}

impl PathUse {
    /// A file that the configuration names.
    fn of_configured(file: &ConfiguredFile, user: &ServiceUser) -> PathUse {
        let one = PathUse::of_file(&file.path, Use::Read, user);
        match file.is_for {
            FileUse::Reload => one,
            // Root reads it at the start; a renewed one is read by the user.
            FileUse::Renewal => PathUse { remedy: CERTIFICATES, consequence: None, ..one },
            FileUse::Connection => PathUse {
                is_for: Use::ReadOfAnyone,
                consequence: Some(file.is_for.consequence()),
                is_warning: false,
                ..one
            },
        }
    }

    /// A file that is read at the start and at each reload. Root reads it at the start; a reload reads it as the user.
    fn of_file(path: &Path, is_for: Use, user: &ServiceUser) -> PathUse {
        let is_warning = user.begins_as_root;
        let consequence = if is_warning { FileUse::Reload.consequence() } else { AT_START };
        PathUse {
            path: path.to_owned(),
            is_for,
            remedy: READABLE,
            consequence: Some(consequence),
            is_warning,
        }
    }

    /// The owner of a directory that root may not use, if nothing names the user of the service: it is probably that.
    fn likely_user(&self, user: &ServiceUser) -> Option<String> {
        let owner = fs::metadata(&self.path).map_or(0, |found| found.uid());
        let is_likely = user.is_assumed && self.is_for == Use::Own && owner != 0;
        is_likely.then(|| name_of("/etc/passwd", owner))
    }

    /// The reason why the current user cannot use the path, with the remedy.
    fn test(&self, user: &ServiceUser) -> Option<String> {
        let path = &self.path;
        let tried = match self.is_for {
            Use::Read => trusted_files::open(path).map(drop),
            Use::ReadOfAnyone => fs::File::open(path).map(drop),
            Use::List => fs::read_dir(path).map(drop),
            Use::Create | Use::Own => can_create(path, self.is_for),
        };
        let error = tried.err()?;
        let shown = path.display();
        if matches!(self.is_for, Use::Read | Use::ReadOfAnyone) && is_missing(&error) {
            return Some(format!("{shown}: there is no such file: correct the path"));
        }
        if let Some(owner) = self.likely_user(user) {
            return Some(format!(
                "{shown}: it belongs to the user {owner}, and this was tested as root – test it as the user of the \
                 service: {} --user {owner}",
                user.check_command
            ));
        }
        let creates = matches!(self.is_for, Use::Create | Use::Own);
        let verb = if creates { "write to" } else { "read" };
        let culprit = culprit(path, self.is_for).unwrap_or_else(|| error.to_string());
        let then = self.consequence.map(|then| format!(": {then}")).unwrap_or_default();
        Some(format!(
            "{shown}: user {} cannot {verb} it ({culprit}) – {}{then}",
            user.name,
            self.remedy.replace("USER", &user.name).replace("PATH", &shown.to_string())
        ))
    }
}

fn is_missing(error: &std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::NotFound
}

fn is_missing_file(path: &Path) -> bool {
    fs::metadata(path).is_err_and(|error| is_missing(&error))
}

/// Whether files can be created in the directory, or the directory itself if it is missing.
fn can_create(path: &Path, is_for: Use) -> std::io::Result<()> {
    let is_there = |path: &&Path| fs::symlink_metadata(path).is_ok();
    let existing = path.ancestors().find(is_there).unwrap_or(path);
    if existing == path && is_for == Use::Own {
        trusted_files::directory(path, Writers::Owner)?;
    }
    rustix::fs::access(existing, Access::WRITE_OK | Access::EXEC_OK)?;
    Ok(())
}

/// The first directory on the way that the current user cannot enter, or the file itself: with mode and owner.
/// `None` if permission is not the reason.
fn culprit(path: &Path, is_for: Use) -> Option<String> {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        let mut above: Vec<&Path> = path.ancestors().skip(1).collect();
        above.reverse();
        let closed = above.iter().find(|one| {
            fs::metadata(one).is_ok() && rustix::fs::access(**one, Access::EXEC_OK).is_err()
        });
        if let Some(directory) = closed {
            return Some(format!("directory {}", owner_and_mode(directory)?));
        }
        let Ok(target) = fs::read_link(&path) else { break };
        path = path.parent().unwrap_or(Path::new("/")).join(target);
    }
    let needed = match is_for {
        Use::Read | Use::ReadOfAnyone => Access::READ_OK,
        Use::List => Access::READ_OK | Access::EXEC_OK,
        Use::Create | Use::Own => Access::WRITE_OK | Access::EXEC_OK,
    };
    let may_miss = matches!(is_for, Use::Create | Use::Own);
    let there = path.ancestors().find(|one| fs::symlink_metadata(one).is_ok())?;
    if there != path && !may_miss || rustix::fs::access(there, needed).is_ok() {
        return None;
    }
    let kind = if there.is_dir() { "directory " } else { "" };
    Some(format!("{kind}{}", owner_and_mode(there)?))
}

fn owner_and_mode(path: &Path) -> Option<String> {
    let found = fs::metadata(path).ok()?;
    let owner = name_of("/etc/passwd", found.uid());
    Some(format!("{} is {:04o} {owner}", path.display(), found.mode() & 0o7777))
}

/// All addresses on which Pagewell listens, each with its key.
fn addresses(config: &Config) -> Vec<(&'static str, &Address)> {
    let listen = config.listen.iter().map(|one| ("listen", one));
    let tls = config.listen_tls.iter().map(|one| ("listen_tls", one));
    let items = config.memcached.iter().flat_map(|port| &port.listen);
    let items = items.map(|one| ("memcached.listen", one));
    listen.chain(tls).chain(items).chain([("admin", &config.admin)]).collect()
}

/// Warnings about ports that another program has. `answers`: asks whether a Pagewell answers at the control interface.
fn ports(config: &Config, answers: &dyn Fn() -> bool) -> Vec<String> {
    // Every user can read which user opened a socket. Only root finds its process, because Pagewell protects its memory.
    let is_with_control = |port: u16| match &config.admin {
        Address::Tcp(control) => user_of_port(control.port()) == user_of_port(port),
        Address::Unix(_) => true,
    };
    let warning = |(key, address): (&str, &Address)| {
        let Address::Tcp(address) = address else { return None };
        let why = port(*address, &|| is_with_control(address.port()) && answers())?;
        Some(format!("{key}: {address}: {why}"))
    };
    addresses(config).into_iter().filter_map(warning).collect()
}

/// Why this address cannot be bound; `None` if it can, or Pagewell or the service manager has it. `is_own`: whether
/// Pagewell has it, if its process cannot be seen.
fn port(address: SocketAddr, is_own: &dyn Fn() -> bool) -> Option<String> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket(family, SocketType::STREAM, None).ok()?;
    // As Pagewell does: connections that have ended do not count. The socket never listens.
    set_socket_reuseaddr(&socket, true).ok()?;
    if address.is_ipv6() {
        set_ipv6_v6only(&socket, !address.ip().is_unspecified()).ok()?;
    }
    let error = bind(&socket, &address).err()?;
    match error {
        Errno::ADDRINUSE => {
            let by = on_port(address.port());
            let is_expected = |by: &ListeningProcess| matches!(&*by.name, "pagewell" | "systemd");
            if by.as_ref().map_or_else(is_own, is_expected) {
                return None;
            }
            let (by, stop) = match by {
                Some(by) => (
                    format!("{} (process {})", by.name, by.pid),
                    format!(" ({})", by.stop_command()),
                ),
                None if geteuid().is_root() => ("another process".into(), String::new()),
                None => ("a process that only root can see".into(), String::new()),
            };
            Some(format!("in use by {by}: stop that{stop}, or choose another port"))
        }
        Errno::ACCESS | Errno::PERM if geteuid().is_root() => Some(error.to_string()),
        // A service gets this right from its manager.
        Errno::ACCESS | Errno::PERM => None,
        _ => Some(format!("{error}: correct the address")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_that_need_root_are_named() {
        let toml = "[site]\norigin = \"http://127.0.0.1:1\"\n[snapshot]\ndirectory = \"/no/such\"\n\
                    unwatched = \"serve\"\n";
        let file = toml::from_str(toml).expect("a configuration");
        let config = config::resolve(&file).expect("it can be used");
        let user = ServiceUser {
            account: None,
            name: "pagewell".into(),
            is_other: true,
            begins_as_root: false,
            is_assumed: false,
            check_command: String::new(),
        };
        let report = report(&config, None, &user, &Unit::default(), &|| false);
        assert!(report.errors.is_empty(), "{:?}", report.errors);
        let told =
            "not tested as the user pagewell, which only root can: /no/such: run this as root";
        assert!(report.warnings.iter().any(|one| one == told), "{:?}", report.warnings);
    }

    fn current(is_assumed: bool) -> ServiceUser {
        ServiceUser {
            account: None,
            name: "me".into(),
            is_other: false,
            begins_as_root: false,
            is_assumed,
            check_command: "pagewell check".into(),
        }
    }

    #[test]
    fn a_file_that_is_missing_is_named_once_with_the_remedy() {
        let wanted = PathUse {
            path: "/no/such/file".into(),
            is_for: Use::Read,
            remedy: CERTIFICATES,
            consequence: None,
            is_warning: false,
        };
        let said = wanted.test(&current(false)).expect("it is not there");
        assert_eq!(said, "/no/such/file: there is no such file: correct the path");
        let toml = "listen_tls = \":1\"\nsite.origin = \"http://127.0.0.1:1\"\n\
                    [[tls]]\ncertificate = \"/no/such/file\"\nkey = \"/no/such/file\"\n";
        let config = config::resolve(&toml::from_str(toml).expect("a configuration"));
        let config = config.expect("it can be used");
        for is_other in [true, false] {
            let user = ServiceUser { is_other, ..current(false) };
            let report = report(&config, None, &user, &Unit::default(), &|| false);
            assert!(user.can_read_keys(&config), "it is named when it is loaded");
            assert!(!report.errors.concat().contains("/no/such/file"), "{:?}", report.errors);
        }
    }

    #[test]
    fn a_directory_that_cannot_be_made_is_named_with_the_command() {
        let wanted = PathUse {
            path: "/etc/passwd/below".into(),
            is_for: Use::Create,
            remedy: DIRECTORIES,
            consequence: None,
            is_warning: false,
        };
        let said = wanted.test(&current(false)).expect("nobody can create it");
        assert!(said.ends_with("(install -d -o me /etc/passwd/below)"), "{said}");
    }
}
