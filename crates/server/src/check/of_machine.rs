//! What of a configuration does not hold on this machine, though it may on the one that it is for: users,
//! php-fpm, the memory. `serve` fails on the first two; `check` warns of all, and leaves it to whoever reads it.
//!
//! Looks at files only: nothing is started, bound or asked.

use pagewell::config::{Config, OriginConfig, machine_memory_bytes};
use pagewell::origin::php_fpm::find_binary;
use pagewell::privileges::of;
use std::collections::BTreeSet;

/// Each in a sentence.
pub fn warnings(config: &Config) -> Vec<String> {
    let mut all = BTreeSet::new();
    if let Some(user) = &config.user {
        all.extend(of(user, config.group.as_deref()).err());
    }
    let others = config.other_sites.iter().map(|site| &**site);
    for site in std::iter::once(config).chain(others) {
        let OriginConfig::OwnPhp(php) = &site.site.origin else { continue };
        all.extend(find_binary(php).err());
        // With a user of its own Pagewell is no root any more, and php-fpm neither.
        if config.user.is_none() {
            let wrong = of(&php.user, None).err();
            all.extend(wrong.map(|why| format!("php.{why}")));
        }
    }
    all.extend(memory(config));
    all.into_iter().collect()
}

fn memory(config: &Config) -> Option<String> {
    let sites = config.other_sites.iter().map(|site| site.memory_bytes);
    let wanted = sites.fold(config.memory_bytes, usize::saturating_add);
    let there = machine_memory_bytes();
    let why = format!("memory: {}M are more than there are, {}M", wanted >> 20, there >> 20);
    (wanted > there).then_some(why)
}
