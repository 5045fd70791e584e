//! php-fpm's children, opcache, and the database's connections.
//!
//! The memory of the children is estimated from the running ones, each counted separately. Memory that they
//! share (opcache) is counted more than once, so that the advice is on the safe side.

use super::shown;
use crate::{Facts, Finding, Pool, Weight};

/// The memory of a child without requests, in bytes: the minimum per child.
const CHILD_BYTES: u64 = 30_000_000;

/// The memory of one child of a pool, in bytes.
fn each(pool: &Pool) -> u64 {
    pool.child_bytes.unwrap_or(CHILD_BYTES).max(1)
}

/// The memory of all children when they are busy, in bytes.
pub(super) fn all_children_bytes(facts: &Facts) -> u64 {
    let pools = facts.pools.iter().map(|pool| pool.children.saturating_mul(each(pool)));
    pools.fold(0, u64::saturating_add)
}

/// The command that makes the largest pool fit into `bytes` bytes.
pub(super) fn fewer(facts: &Facts, bytes: u64) -> Option<String> {
    let pool = facts.pools.iter().max_by_key(|pool| pool.children)?;
    let (fit, file) = ((bytes / each(pool)).clamp(1, pool.children.max(1)), &pool.file);
    Some(if pool.own {
        format!("children = {fit}    # in [php] of {file}, then restart Pagewell")
    } else {
        format!("pm.max_children = {fit}    # in {file}, then: systemctl reload php-fpm")
    })
}

/// Checks whether all children fit into the memory.
pub(super) fn children(facts: &Facts) -> Option<Finding> {
    let memory = facts.usable_memory()?;
    let pool = facts.pools.iter().max_by_key(|pool| pool.children)?;
    let all: u64 = facts.pools.iter().map(|pool| pool.children).fold(0, u64::saturating_add);
    let wanted = all_children_bytes(facts);
    // Half of the machine's memory; the other half is for the database and the pages.
    let command = fewer(facts, memory / 2)?;
    (wanted > memory / 4 * 3).then(|| Finding {
        name: "php-children",
        weight: Weight::WillFail,
        what: "When all children of php-fpm are busy, memory is exhausted.".into(),
        evidence: format!(
            "{all} children ({}) of {} each need {} of {}.",
            if pool.own { "php.children" } else { "pm.max_children" },
            shown(each(pool)),
            shown(wanted),
            shown(memory)
        ),
        command,
        risk: "Fewer concurrent renders: further requests wait. Cached pages need none.",
    })
}

/// Checks whether there are more children than database connections.
pub(super) fn database(facts: &Facts) -> Option<Finding> {
    let connections = facts.database_connections?;
    let pools = facts.pools.iter().map(|pool| pool.children);
    let children = pools.fold(0, u64::saturating_add);
    (children.saturating_add(10) > connections).then(|| Finding {
        name: "database-connections",
        weight: Weight::WillFail,
        what: "When all children of php-fpm are busy, the database refuses some connections (\"Too many connections\").".into(),
        evidence: format!(
            "php-fpm may have {children} children, the database accepts {connections} connections (max_connections)."
        ),
        command: format!("max_connections = {}    # in the database's configuration; or fewer children", children.saturating_add(50)),
        risk: "Each database connection may need some megabytes.",
    })
}

/// Checks whether Pagewell sends more requests at a time than the pool of `php.at` has children.
pub(super) fn places(facts: &Facts) -> Option<Finding> {
    let mut used = facts.external_php.iter();
    let (php, pool) = used.find_map(|php| Some((php, php.smaller_pool(&facts.pools)?)))?;
    let (places, children) = (php.places, pool.children);
    Some(Finding {
        name: "php-places",
        weight: Weight::Slow,
        what: "Requests wait inside php-fpm, in the order of arrival: visitors behind crawlers."
            .into(),
        evidence: format!(
            "Pagewell sends {places} requests at a time (limits.origin_connections) to {}, whose pool {} has {children} \
             children (pm.max_children in {}).",
            php.at, pool.name, pool.file
        ),
        command: format!(
            "origin_connections = {children}    # in [limits], then restart Pagewell; with several sites, in each"
        ),
        risk: "Further requests wait in Pagewell, which puts visitors first (misses.mode = \"protect\").",
    })
}

/// Checks whether the hits of clients cannot be credited to them.
pub(super) fn hidden_clients(facts: &Facts) -> Option<Finding> {
    facts.hides_clients.then(|| Finding {
        name: "clients-hidden",
        weight: Weight::Note,
        what: "An HTTP proxy hides which client has used the cache: more visitors are deferred while a crawler is there.".into(),
        evidence: "misses.mode is protect, and trusted_proxies is set without proxy_protocol.".into(),
        command: "proxy_protocol = [\"127.0.0.1:8081\"]    # and in the proxy, for instance nginx's proxy_protocol on".into(),
        risk: "The address must be reachable by the proxy only.",
    })
}

/// The command for a PHP setting, if Pagewell runs its own php-fpm.
fn in_ini(facts: &Facts, name: &str, value: &str) -> Option<String> {
    let file = facts.own_php.as_ref()?;
    Some(format!(
        "ini = {{ \"{name}\" = \"{value}\" }}    # in [php] of {file}, then restart Pagewell"
    ))
}

/// The finding that opcache is missing or disabled.
fn off(facts: &Facts, is_installed: bool) -> Finding {
    let evidence = if is_installed {
        "opcache.enable is off in php-fpm."
    } else {
        "php-fpm -i does not list opcache: it is not installed, or not loaded."
    };
    let command = if is_installed {
        in_ini(facts, "opcache.enable", "1").unwrap_or_else(|| ENABLE.into())
    } else {
        match facts.own_php {
            Some(_) => format!("{INSTALL}    # then restart Pagewell"),
            None => format!("{INSTALL}; {RELOAD}"),
        }
    };
    Finding {
        name: "opcache-off",
        weight: Weight::Slow,
        what: "PHP compiles every script again for each render.".into(),
        evidence: evidence.into(),
        command,
        risk: "Changed scripts take effect after opcache.revalidate_freq seconds (2).",
    }
}

/// Installs opcache.
const INSTALL: &str = "apt-get install php-opcache; phpenmod opcache";
/// Makes every php-fpm reload its configuration.
const RELOAD: &str = "systemctl reload 'php*-fpm'";
/// Enables opcache for every version of PHP.
const ENABLE: &str = "phpenmod opcache; for dir in /etc/php/*/fpm/conf.d; do echo 'opcache.enable=1' > \"$dir/60-opcache.ini\"; done; systemctl reload 'php*-fpm'";

/// Checks whether opcache is disabled, or checks the timestamp of every file.
pub(super) fn opcache(facts: &Facts) -> Vec<Finding> {
    let Some(opcache) = facts.opcache else { return Vec::new() };
    if !opcache.enabled {
        return vec![off(facts, opcache.installed)];
    }
    let validates = opcache.validates.then(|| Finding {
        name: "opcache-validates",
        weight: Weight::Note,
        what: "PHP checks the date of each script every few seconds.".into(),
        evidence: "opcache.validate_timestamps is on.".into(),
        command: in_ini(facts, "opcache.validate_timestamps", "0").unwrap_or_else(|| {
            "opcache.validate_timestamps=0    # in php.ini, if deployments reload php-fpm".into()
        }),
        risk: "A changed script takes effect only after a reload of php-fpm.",
    });
    validates.into_iter().collect()
}

/// Checks whether opcache is too small for the site.
pub(super) fn opcache_files(facts: &Facts) -> Option<Finding> {
    let opcache = facts.opcache.filter(|opcache| opcache.enabled)?;
    let (files, room) = (facts.php_files?, opcache.files?);
    let megabytes = opcache.megabytes.unwrap_or(128);
    // A compiled script takes about 20 KB on average.
    let wanted = files / 50;
    (files > room || wanted > megabytes).then(|| Finding {
        name: "opcache-small",
        weight: Weight::Slow,
        what: "Not all scripts fit into opcache; the others are compiled for each render.".into(),
        evidence: format!(
            "The site has {files} .php files; opcache has room for {room} of them and {megabytes} MB."
        ),
        command: format!(
            "opcache.max_accelerated_files={}, opcache.memory_consumption={}    # in {}",
            (files * 3 / 2).max(room),
            (wanted * 3 / 2).max(megabytes),
            match &facts.own_php {
                Some(file) => format!("[php] ini of {file}, the names in quotes"),
                None => "php.ini".into(),
            }
        ),
        risk: "This much shared memory, once for all children.",
    })
}
