//! Finds parts of a configuration that do not work on this machine, though they may on another. These
//! are users, php-fpm, memory, space for snapshots, and directories for files and sockets (a systemd unit may create
//! those). For all but memory and space, `serve` fails; `check` only warns. A running Pagewell watches its disks.
//!
//! This module only reads files. It starts no process, binds no socket and connects to nothing.

use super::of_origins::{USER_OF_UNIT, name_of};
use cli::doctor::{configured_pools, external_php};
use config::{
    AccessLogTo, Address, Config, FilesConfig, OriginConfig, machine_memory_bytes, name_refusal,
};
use control::attention::free_space;
use doctor::{ExternalPhp, Pool};
use init::machine::ExaminedMachine;
use init::php_pools::{PREPEND_FILE, PhpPool, php_pools};
use origin::php_fpm::find_binary;
use origin::routes::leading_outside;
use pagewell::privileges::of;
use rustix::process::geteuid;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The warnings about `config`, one sentence each, sorted and without duplicates.
pub fn warnings(config: &Config) -> Vec<String> {
    let mut all = BTreeSet::new();
    if let Some(user) = &config.user {
        all.extend(of(user, config.group.as_deref()).err());
    }
    let pools = configured_pools();
    for site in config.all_sites() {
        all.extend(external_php(site).and_then(|php| places(&php, &pools)));
        all.extend(site.site.files.as_ref().and_then(links));
        all.extend(shared_user(config, &site.site.origin));
        let OriginConfig::OwnPhp(php) = &site.site.origin else { continue };
        all.extend(find_binary(php).err());
        // If `user` is set, Pagewell and php-fpm no longer run as root, so php-fpm cannot switch users.
        if config.user.is_none() {
            let wrong = of(&php.user, None).err();
            all.extend(wrong.map(|why| format!("php.{why}")));
        }
    }
    all.extend(memory(config));
    all.extend(snapshot_space(config, free_space));
    let has_file = Path::new(PREPEND_FILE).try_exists().unwrap_or(true);
    all.extend(closed_prepends(&php_pools(&ExaminedMachine::new("/".into())), has_file));
    all.extend(automatic_https(config));
    let keys = config.tls.iter().map(|pair| ("tls.key", &pair.key));
    let secrets = config.acme.iter().flat_map(|acme| &acme.secret_files);
    let secrets = secrets.map(|(key, file)| (*key, file));
    all.extend(keys.chain(secrets).filter_map(|(key, file)| public_file(key, file)));
    all.extend(directories(config));
    all.into_iter().collect()
}

/// Warnings about `[acme]`: names without a certificate, and ports that the certificate authority cannot reach.
fn automatic_https(config: &Config) -> Vec<String> {
    if config.acme.is_none() {
        return Vec::new();
    }
    let hosts: Vec<&String> = config.all_sites().flat_map(|site| site.hosts.all()).collect();
    let refused = hosts.iter().filter_map(|host| {
        let why = name_refusal(host)?;
        Some(format!("acme: {host} gets no certificate: {why}"))
    });
    let mut all: Vec<String> = refused.collect();
    if hosts.is_empty() {
        all.push("acme: no certificate is obtained, because no site.host is set".into());
    }
    let has = |addresses: &[Address], port| {
        addresses.iter().any(|address| matches!(address, Address::Tcp(tcp) if tcp.port() == port))
    };
    if !has(&config.listen, 80) && !has(&config.listen_tls, 443) {
        all.push(
            "acme: the certificate authority connects to port 80 or 443, and Pagewell listens at neither: \
             let the machine in front forward one of them"
                .into(),
        );
    }
    all
}

/// A warning about a file of a secret that every user of this machine can read: its mode and those of all directories
/// above allow it. `key`: its key in the configuration.
fn public_file(key: &str, file: &Path) -> Option<String> {
    let has =
        |path: &Path, bit: u32| std::fs::metadata(path).is_ok_and(|found| found.mode() & bit != 0);
    let is_public = has(file, 0o004) && file.ancestors().skip(1).all(|above| has(above, 0o001));
    let file = file.display();
    is_public.then(|| format!("{key}: {file}: every user can read it: chmod o-r {file}"))
}

/// A warning about scripts that run as Pagewell's user. Of a php-fpm that Pagewell does not start, the owner of the
/// socket is taken for the user of its scripts.
fn shared_user(config: &Config, origin: &OriginConfig) -> Option<String> {
    let own = geteuid();
    let user = match (&config.user, own.is_root()) {
        (Some(user), _) => Some(user.clone()),
        // Root starts the unit, if there is one. Without it, Pagewell stays root, and PHP does not.
        (None, true) => of(USER_OF_UNIT, None).ok().map(|account| account.name),
        (None, false) => Some(name_of("/etc/passwd", own.as_raw())),
    };
    let user = user?;
    let uid =
        if own.is_root() { of(&user, config.group.as_deref()).ok()?.uid } else { own.as_raw() };
    let shares = match origin {
        OriginConfig::OwnPhp(_) => true,
        OriginConfig::FastCgi(Address::Unix(path)) => {
            std::fs::metadata(path).is_ok_and(|found| found.uid() == uid)
        }
        OriginConfig::FastCgi(Address::Tcp(_)) | OriginConfig::Http(_) => false,
    };
    shares.then(|| {
        format!(
            "php: PHP scripts run as the user {user}, as Pagewell does, and can read its keys, tokens and \
             snapshots: run php-fpm as another user (pagewell-php.service), and name its socket in php.at"
        )
    })
}

/// A warning about more requests at a time than php-fpm has children.
fn places(php: &ExternalPhp, pools: &[Pool]) -> Option<String> {
    let pool = php.smaller_pool(pools)?;
    let (children, file) = (pool.children, &pool.file);
    Some(format!(
        "limits.origin_connections: Pagewell sends {} requests at a time to {}, which has {children} children \
         (pm.max_children in {file}), so visitors wait behind crawlers and comparisons: set origin_connections = \
         {children}",
        php.places, php.at
    ))
}

/// Warnings about pools of php-fpm whose scripts must load Pagewell's file, and cannot. `has_file`: whether it exists.
fn closed_prepends(pools: &[PhpPool], has_file: bool) -> Vec<String> {
    let directory = Path::new(PREPEND_FILE).parent().unwrap_or(Path::new("/"));
    let warning = |pool: &PhpPool| {
        let remedy = if !has_file {
            format!("{PREPEND_FILE} does not exist: install it, or remove the line")
        } else if !pool.may_open(directory) {
            format!(
                "its open_basedir lacks {}: add it in {}",
                directory.display(),
                pool.basedir_file.display()
            )
        } else {
            return None;
        };
        Some(format!(
            "php: PHP answers no request of the pool {}, because its auto_prepend_file cannot be opened: {remedy}, and \
             reload php-fpm ({})",
            pool.name,
            pool.file.display()
        ))
    };
    pools.iter().filter(|pool| pool.prepend == PREPEND_FILE).filter_map(warning).collect()
}

/// A warning about symbolic links that lead out of the document root and are therefore answered with
/// 404.
fn links(files: &FilesConfig) -> Option<String> {
    let outside = leading_outside(files)?;
    let (link, target) = &outside.example;
    Some(format!(
        "site.root: {} symbolic links lead outside {} and are answered with 404, such as {} -> {}; to allow them: {}",
        outside.count,
        files.root.display(),
        link.display(),
        target.display(),
        outside.allowing()
    ))
}

/// Warnings about directories that do not exist, each with the configuration key that needs it.
fn directories(config: &Config) -> Vec<String> {
    let of = |key: &'static str, addresses: &[Address]| -> Vec<_> {
        let paths = addresses.iter().filter_map(|address| match address {
            Address::Unix(path) => Some((key, path.clone())),
            Address::Tcp(_) => None,
        });
        paths.collect()
    };
    let mut wanted = of("listen", &config.listen);
    wanted.extend(of("listen_tls", &config.listen_tls));
    wanted.extend(of("admin", std::slice::from_ref(&config.admin)));
    let memcached =
        config.memcached.as_ref().map(|memcached| of("memcached.listen", &memcached.listen));
    wanted.extend(memcached.unwrap_or_default());
    if let Some(AccessLogTo::File(path)) = config.access_log.as_ref().map(|log| &log.to) {
        wanted.push(("access_log.to", path.clone()));
    }
    let missing = wanted.iter().filter_map(|(key, path)| Some((key, path.parent()?)));
    let missing = missing.filter(|(_, parent)| !Path::new(parent).is_dir());
    missing
        .map(|(key, parent)| format!("{key}: there is no directory {}", parent.display()))
        .collect()
}

fn memory(config: &Config) -> Option<String> {
    let wanted = config.all_sites().map(|site| site.memory_bytes).fold(0, usize::saturating_add);
    let there = machine_memory_bytes();
    let why = format!("memory: {}M are more than there are, {}M", wanted >> 20, there >> 20);
    (wanted > there).then_some(why)
}

/// Warnings about directories of snapshots whose disk has no space for those of a full cache. `free`: the free bytes on
/// the disk of a directory.
fn snapshot_space(config: &Config, free: impl Fn(&Path) -> Option<u64>) -> Vec<String> {
    let mut wanted: BTreeMap<&Path, u64> = BTreeMap::new();
    for site in config.all_sites() {
        let Some(snapshot) = &site.snapshot else { continue };
        let bytes = wanted.entry(&snapshot.directory).or_default();
        *bytes = bytes.saturating_add(snapshot.bytes_max.min(site.memory_bytes as u64));
    }
    let warning = |(directory, bytes): (&Path, u64)| {
        let there = directory.ancestors().find(|above| above.is_dir())?;
        let free = free(there).filter(|free| *free < bytes)?;
        Some(format!(
            "snapshot.directory: {}M are free under {}, and a full cache needs {}M: name a larger disk, or set \
             snapshot.max_size",
            free >> 20,
            directory.display(),
            bytes >> 20
        ))
    };
    wanted.into_iter().filter_map(warning).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_is_too_small_for_the_snapshots_is_named() {
        let warnings = |max_size: &str| {
            let text = format!(
                "memory = \"64M\"\n[site]\norigin = \"http://127.0.0.1:1\"\n\
                 [snapshot]\ndirectory = \"/no/such\"\nunwatched = \"serve\"\n{max_size}"
            );
            let file = toml::from_str(&text).expect("a configuration");
            let config = config::resolve(&file).expect("it can be used");
            snapshot_space(&config, |there| (there == Path::new("/")).then_some(10 << 20))
        };
        let said = warnings("");
        let expected = "10M are free under /no/such, and a full cache needs 64M";
        assert!(said.len() == 1 && said[0].contains(expected), "{said:?}");
        assert_eq!(warnings("max_size = \"10M\"\n"), Vec::<String>::new());
    }

    #[test]
    fn a_pool_that_cannot_load_pagewells_file_is_named() {
        let pool = |prepend: &str, open_basedir: &str| PhpPool {
            name: "blog".into(),
            prepend: prepend.into(),
            open_basedir: open_basedir.into(),
            basedir_file: "/etc/php.ini".into(),
            ..PhpPool::default()
        };
        let with_file = |open_basedir| pool(PREPEND_FILE, open_basedir);
        let pools = [with_file(""), with_file("/tmp:/var/lib/"), pool("/x/waf.php", "/tmp")];
        assert_eq!(closed_prepends(&pools, true), Vec::<String>::new());
        assert_eq!(closed_prepends(&pools, false).len(), 2);
        let said = closed_prepends(&[with_file("/var/www/blog:/tmp")], true);
        assert!(said[0].contains("of the pool blog"), "{said:?}");
        let remedy = "its open_basedir lacks /var/lib/pagewell-php: add it in /etc/php.ini";
        assert!(said[0].contains(remedy), "{said:?}");
    }

    #[test]
    fn only_the_pool_of_the_address_is_compared() {
        let pool = |at: &str, children| Pool { at: at.into(), children, ..Pool::default() };
        let pools = [pool("unix:/run/other.sock", 2), pool("unix:/run/php.sock", 4)];
        let php = |at: &str, number| ExternalPhp { at: at.into(), places: number };
        let said = places(&php("unix:/run/php.sock", 64), &pools).expect("64 are too many");
        assert!(
            said.contains("has 4 children") && said.ends_with("origin_connections = 4"),
            "{said}"
        );
        assert_eq!(places(&php("unix:/run/php.sock", 4), &pools), None);
        assert_eq!(places(&php("127.0.0.1:9000", 64), &pools), None, "its pool is unknown");
    }
}
