//! The part of `pagewell check` that connects to the origins: php-fpm (`php.at`) and HTTP servers
//! (`site.origin`). `serve` looks at the sockets of php-fpm when it starts, without connecting.
//!
//! Each address is tested once, with the sites that use it. Root may connect to any socket, but
//! Pagewell does not serve as root. So the test runs as the user that will serve (`of_service`). Failures are warnings, because an origin may be started after
//! Pagewell.

use config::{Address, Config, OriginConfig, OriginServer};
use init::machine::ExaminedMachine;
use init::php_pools::{PhpPool, php_pools};
use init::steps::join_group;
use origin::probe::{self, ProbeFailure};
use origin_servers::Connector;
use pagewell::privileges::{Account, run_as};
use rustix::fs::Access;
use rustix::process::{getegid, geteuid, getgroups};
use std::collections::BTreeMap;
use std::fs;
use std::io::{Error, ErrorKind};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::time::Duration;

/// The user of the systemd unit in the package.
pub const USER_OF_UNIT: &str = "pagewell";

/// Maximum time to connect, and then to wait for an answer. `limits.origin_connect_timeout` may be
/// shorter.
const AT_MOST: Duration = Duration::from_secs(3);

/// Maximum number of addresses that are tested at the same time.
const AT_ONCE: usize = 64;

/// One line for each origin: that it answers; or, as an error, the reason why not and what to do.
///
/// # Errors
/// The test itself could not run: a sentence for the operator.
pub fn report(
    config: &Config,
    account: Option<&Account>,
) -> Result<Vec<Result<String, String>>, String> {
    let mut places: BTreeMap<String, TestedOrigin> = BTreeMap::new();
    for site in config.all_sites() {
        let limit = site.limits.origin_connect_timeout.min(AT_MOST);
        for (option, place) in places_of(&site.site.origin, limit)? {
            let name = format!("{option} {}", place.shown());
            let tested = TestedOrigin { place, limit, hosts: Vec::new() };
            let tested = places.entry(name).or_insert(tested);
            tested.hosts.extend(site.hosts.canonical.as_ref().map(ToString::to_string));
        }
    }
    if places.is_empty() {
        return Ok(Vec::new());
    }
    let (results, user) = match run_as(account, || test(&places)) {
        // In a container, root may not have the privilege to change the user. The lines then name root.
        Err(_) if account.is_some() => (run_as(None, || test(&places))??, User::of(None)),
        tested => (tested??, User::of(account)),
    };
    let line = |((name, tested), result): ((&String, &TestedOrigin), Result<(), ProbeFailure>)| {
        let hosts = tested.hosts.join(", ") + if tested.hosts.is_empty() { "" } else { ": " };
        match result {
            Ok(()) => Ok(format!("{hosts}{name}: answers (connected as {})", user.shown)),
            Err(why) => Err(format!("{hosts}{name}: {}", sentence(&why, &tested.place, &user))),
        }
    };
    Ok(places.iter().zip(results).map(line).collect())
}

/// The addresses of a site's origin, each with its option.
///
/// # Errors
/// TLS to its servers cannot be prepared: a sentence for the operator.
fn places_of(origin: &OriginConfig, limit: Duration) -> Result<Vec<(&str, Place)>, String> {
    match origin {
        OriginConfig::OwnPhp(_) => Ok(Vec::new()),
        OriginConfig::FastCgi(address) => Ok(vec![("php.at", Place::FastCgi(address.clone()))]),
        OriginConfig::Http(servers) => {
            let connector = Connector::new(servers, limit)?;
            let place = |server: &OriginServer| Place::Http(server.clone(), connector.clone());
            Ok(servers.all().map(|server| ("site.origin", place(server))).collect())
        }
    }
}

/// Warns about sockets of php-fpm that are missing, or that this process may not connect to. Nothing
/// is connected: the files are looked at only, so that a start is not delayed. Call this after
/// privileges are dropped.
pub fn warn_of_sockets(config: &Config) {
    let mut sockets = BTreeMap::new();
    for site in config.all_sites() {
        if let OriginConfig::FastCgi(address @ Address::Unix(path)) = &site.site.origin {
            sockets.insert(path.clone(), address.clone());
        }
    }
    for (path, address) in sockets {
        if let Err(error) = look_at(&path) {
            let (user, place) = (User::of(None), Place::FastCgi(address));
            tracing::warn!(
                event = "origin-unusable",
                origin = place.shown(),
                reason = not_connected(&error, &place, &user)
            );
        }
    }
}

/// The error that a connection to this socket would have, as far as its file shows it.
fn look_at(path: &Path) -> Result<(), Error> {
    if !fs::metadata(path)?.file_type().is_socket() {
        return Err(ErrorKind::ConnectionRefused.into());
    }
    Ok(rustix::fs::access(path, Access::WRITE_OK)?)
}

/// An address, and the sites that use it.
struct TestedOrigin {
    place: Place,
    limit: Duration,
    hosts: Vec<String>,
}

/// The address of an origin.
#[derive(Clone)]
enum Place {
    FastCgi(Address),
    Http(OriginServer, Connector),
}

impl Place {
    /// The address as it is written in the configuration.
    fn shown(&self) -> String {
        match self {
            Place::FastCgi(address) => address.to_string(),
            Place::Http(server, _) => server.to_string(),
        }
    }

    fn socket(&self) -> Option<&Path> {
        match self {
            Place::FastCgi(Address::Unix(path)) => Some(path),
            _ => None,
        }
    }

    async fn test(self, limit: Duration) -> Result<(), ProbeFailure> {
        match self {
            Place::FastCgi(address) => probe::fastcgi(&address, limit).await,
            Place::Http(server, connector) => probe::http(&server, connector, limit).await,
        }
    }
}

/// Tests all addresses, in their order.
fn test(places: &BTreeMap<String, TestedOrigin>) -> Result<Vec<Result<(), ProbeFailure>>, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let results = runtime.block_on(async {
        let mut results = Vec::new();
        let places: Vec<&TestedOrigin> = places.values().collect();
        for some in places.chunks(AT_ONCE) {
            let started = some.iter().map(|one| tokio::spawn(one.place.clone().test(one.limit)));
            for one in started.collect::<Vec<_>>() {
                results.push(one.await.map_err(|error| error.to_string())?);
            }
        }
        Ok(results)
    });
    // A name that is still being looked up is not waited for.
    runtime.shutdown_background();
    results
}

/// The user that connects.
struct User {
    name: String,
    /// The names of the user's groups.
    groups: Vec<String>,
    /// The user with groups, for a sentence.
    shown: String,
}

impl User {
    /// This account, or the user of this process.
    fn of(account: Option<&Account>) -> User {
        let (name, groups) = match account {
            Some(account) => (account.name.clone(), account.groups.clone()),
            None => {
                let mut groups = vec![getegid().as_raw()];
                let others = getgroups().unwrap_or_default();
                groups.extend(others.iter().map(|group| group.as_raw()));
                (name_of("/etc/passwd", geteuid().as_raw()), groups)
            }
        };
        let mut names: Vec<_> = groups.iter().map(|group| name_of("/etc/group", *group)).collect();
        names.dedup();
        let is_root = account.is_none() && geteuid().is_root();
        let shown = if is_root {
            "root".into()
        } else {
            format!("user {name}, groups {}", names.join(" "))
        };
        User { name, groups: names, shown }
    }
}

/// The name for a number in `/etc/passwd` or `/etc/group`, or the number if it has no name.
pub(super) fn name_of(file: &str, number: u32) -> String {
    let text = fs::read_to_string(file).unwrap_or_default();
    let is_it = |line: &&str| line.split(':').nth(2) == Some(&*number.to_string());
    let line = text.lines().find(is_it).and_then(|line| line.split(':').next());
    line.map_or_else(|| number.to_string(), str::to_owned)
}

/// The failure as a sentence, with the remedy.
fn sentence(failure: &ProbeFailure, place: &Place, user: &User) -> String {
    let is_php = matches!(place, Place::FastCgi(_));
    let server = if is_php { "php-fpm" } else { "the server" };
    match (failure, is_php) {
        (ProbeFailure::NotConnected(error), _) => not_connected(error, place, user),
        (ProbeFailure::ConnectTimedOut, _) => {
            format!("no connection in time: {server} is overloaded, or a firewall is in between")
        }
        (ProbeFailure::Closed, true) => "the connection was closed without an answer: correct the \
             address if it is not that of php-fpm, or allow this client in `listen.allowed_clients` \
             of the pool"
            .into(),
        (ProbeFailure::AnswerTimedOut, true) => "connected, but no answer in time: correct the \
             address if it is not that of php-fpm (an HTTP server is named by `site.origin`), or raise \
             `pm.max_children` of the pool if all workers are busy"
            .into(),
        (ProbeFailure::OtherProtocol, true) => "the answer is not FastCGI: name the address of \
             php-fpm; an HTTP server is named by `site.origin`"
            .into(),
        (ProbeFailure::AnswerTimedOut, false) => "connected, but no answer in time: the server is \
             overloaded, or the address is not that of an HTTP server"
            .into(),
        (ProbeFailure::Closed | ProbeFailure::OtherProtocol, false) => "the answer is not HTTP: name \
             the address of an HTTP server; php-fpm is named by `php.at`"
            .into(),
    }
}

/// Why the system refused the connection, and what to do.
fn not_connected(error: &Error, place: &Place, user: &User) -> String {
    let is_php = matches!(place, Place::FastCgi(_));
    match (error.kind(), place.socket()) {
        (ErrorKind::NotFound, Some(path)) if path.starts_with("/run/pagewell-php") => {
            "there is no such socket: pagewell-php.service starts php-fpm with Pagewell; install it if it \
             is missing (`apt-get install php-fpm`)"
                .into()
        }
        (ErrorKind::NotFound, Some(_)) => "there is no such socket: start php-fpm, or name the \
             socket of its pool (`listen` in the pool's .conf)"
            .into(),
        (ErrorKind::ConnectionRefused, Some(path)) if !is_socket(path) => {
            "it is a directory or a file, not a socket: name the socket of php-fpm's pool (`listen` in \
             the pool's .conf)"
                .into()
        }
        (ErrorKind::PermissionDenied, Some(path)) => denied(path, user),
        (ErrorKind::ConnectionRefused, _) => {
            let server = if is_php { "php-fpm" } else { "the server" };
            format!(
                "connection refused, nothing listens there: start {server}, or correct the address"
            )
        }
        // The first record of TLS has a type that TLS does not know.
        _ if error.to_string().contains("InvalidContentType") => {
            "the server speaks HTTP, not HTTPS: write http://, or name the port of HTTPS".into()
        }
        _ => format!("cannot connect ({error}): correct the address"),
    }
}

fn is_socket(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.file_type().is_socket())
}

/// The owner and mode of a socket that the user may not connect to, and what to do.
fn denied(path: &Path, user: &User) -> String {
    let User { name, groups, shown } = user;
    let directory = format!(
        "permission denied for {shown}: a directory above the socket cannot be searched by {name}; \
         allow it (`chmod o+x DIRECTORY`)"
    );
    let Ok(found) = fs::metadata(path) else { return directory };
    let owner = name_of("/etc/passwd", found.uid());
    let group = name_of("/etc/group", found.gid());
    let mode = found.mode() & 0o777;
    let facts = format!(
        "permission denied for {shown}: the socket belongs to {owner}:{group}, mode {mode:o}"
    );
    let machine = ExaminedMachine::new("/".into());
    let pools = php_pools(&machine);
    let pool = pools.iter().find(|pool| pool.socket() == Some(path) && pool.has_access_list());
    if let Some(pool) = pool {
        return format!("{facts}; {}", list_remedy(pool, name, groups));
    }
    match (mode & 0o002, mode & 0o020) {
        (0, 0) => format!(
            "{facts}; set `listen.mode = 0660` and a `listen.group` that {name} is in, in the pool's \
             .conf, and restart php-fpm"
        ),
        (0, _) if group == "root" => format!(
            "{facts}; set a `listen.group` that {name} is in, in the pool's .conf, and restart php-fpm"
        ),
        (0, _) => {
            let join = join_group(&machine, name, &group);
            format!("{facts}; run `{join}`, and restart Pagewell")
        }
        _ => directory,
    }
}

/// The remedy for a user that may not connect to the socket of a pool with an access list. Its group and mode do not
/// count.
fn list_remedy(pool: &PhpPool, user: &str, groups: &[String]) -> String {
    let file = pool.file.display();
    if pool.lists(user, groups) {
        format!(
            "the access list in {file} has {user} or one of its groups: restart php-fpm if the list is new, and allow \
             {user} to search each directory above the socket (`chmod o+x DIRECTORY`)"
        )
    } else {
        format!("add {user} to `listen.acl_users` in {file}, and restart php-fpm")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_user_that_is_not_on_the_access_list_is_added_to_it() {
        let pool = PhpPool {
            file: "/etc/php-fpm.d/www.conf".into(),
            acl_users: vec!["apache".into()],
            acl_groups: vec!["web".into()],
            ..PhpPool::default()
        };
        let remedy = |user: &str, group: &str| list_remedy(&pool, user, &[group.to_owned()]);
        let add = "add pagewell to `listen.acl_users` in /etc/php-fpm.d/www.conf";
        assert!(remedy("pagewell", "pagewell").starts_with(add));
        for (user, group) in [("pagewell", "web"), ("apache", "apache")] {
            let said = remedy(user, group);
            assert!(said.contains("chmod o+x") && !said.contains("add "), "{said}");
        }
    }
}
