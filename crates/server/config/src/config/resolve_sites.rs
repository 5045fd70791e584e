//! Converts the configuration as written to the configuration as used: several sites.
//!
//! Each table `[[site]]` is resolved as if it were alone, with its own tables instead of those at
//! the top of the file. This module handles the common parts: the budgets, whose sum never exceeds
//! `memory`, the hosts, and the default site for unconfigured hosts.

use super::Config;
use super::machine::default_children;
use super::raw::{File, Site};
use super::resolve::{LoadError, memory_bytes, resolve_one, wrong};
use super::units::parse_bytes;
use request_values::hosts::{Hosts, OtherHosts};
use std::collections::HashSet;
use std::sync::Arc;

/// Maximum number of sites in a process.
const SITES_MAX: usize = 1_000;
/// The minimum page budget of a site.
const SITE_BYTES_MIN: usize = 1 << 20;

impl Config {
    /// The configurations of all sites of the process: that of the default site, which this is, and those of the others.
    pub fn all_sites(&self) -> impl Iterator<Item = &Config> {
        std::iter::once(self).chain(self.other_sites.iter().map(|site| &**site))
    }

    /// The first host of this site, as the beginning of a warning; empty without one.
    pub fn warning_prefix(&self) -> String {
        self.hosts.all().next().map(|host| format!("{host}: ")).unwrap_or_default()
    }

    /// Warnings about the rules of this site that no request reaches, or that have no effect.
    pub fn rule_warnings(&self) -> Vec<String> {
        let prefix = self.warning_prefix();
        let rules = self.rules.unreached_rules().into_iter().chain(self.rules.without_effect());
        rules.map(|warning| format!("{prefix}{warning}")).collect()
    }
}

/// Checks and completes a configuration. With several sites it returns the configuration of the
/// default site, which contains those of the others. That is the site for unconfigured hosts, or
/// else the first.
///
/// # Errors
/// The first invalid value: its key, the problem, and a valid alternative.
pub fn resolve(file: &File) -> Result<Config, LoadError> {
    resolve_after(file, None)
}

/// Does the same after `before`, the configuration in effect. A redirect file or error page that cannot be used is no
/// error then: its content from before counts. Password files are those from before.
///
/// # Errors
/// As for [`resolve`].
pub fn resolve_after(file: &File, before: Option<&Config>) -> Result<Config, LoadError> {
    if file.site.list.is_empty() {
        let mut only = of_site(file, &file.site);
        if file.site.memory.is_some() {
            only.memory = Some(budgets(file, &[&file.site])?[0].to_string());
        }
        return resolve_one(&only, before);
    }
    let list: Vec<&Site> = file.site.list.iter().collect();
    if file.memcached.listen.is_some() {
        return wrong(
            "memcached.listen",
            "is for a single site only, because its keys have no host",
        );
    }
    if list.len() > SITES_MAX {
        return wrong("site", format!("at most {SITES_MAX} sites"));
    }
    let own_php = |site: &&&Site| site.origin.is_none() && php(file, site).at.is_none();
    let children = (default_children() / list.iter().filter(own_php).count().max(1)).max(2);
    let mut sites = Vec::new();
    for (at, (site, bytes)) in list.iter().zip(budgets(file, &list)?).enumerate() {
        let Some(host) = &site.host else {
            let number = at + 1;
            return wrong(
                "site.host",
                format!("[[site]] number {number} has none; each needs one: requests select it so"),
            );
        };
        let mut own = of_site(file, site);
        own.memory = Some(bytes.to_string());
        own.php.children.get_or_insert(children);
        own.site.other_hosts.get_or_insert("refuse".into());
        let resolved = resolve_one(&own, before);
        sites.push(resolved.map_err(|LoadError(why)| LoadError(format!("{host}: {why}")))?);
    }
    together(sites)
}

/// Returns the configuration in effect of the site with these hosts.
pub(super) fn in_effect<'a>(before: Option<&'a Config>, hosts: &Hosts) -> Option<&'a Config> {
    before?.all_sites().find(|site| site.hosts.canonical == hosts.canonical)
}

/// Returns the PHP settings of a site.
fn php<'a>(file: &'a File, site: &'a Site) -> &'a super::raw::Php {
    site.php.as_ref().unwrap_or(&file.php)
}

/// Returns the file as it would be with this site alone.
fn of_site(file: &File, site: &Site) -> File {
    let mut own = file.clone();
    own.php = php(file, site).clone();
    own.site = site.clone();
    own.cache = site.cache.clone().unwrap_or(own.cache);
    own.keys = site.keys.clone().unwrap_or(own.keys);
    own.cookies = site.cookies.clone().unwrap_or(own.cookies);
    own.error_pages = site.error_pages.clone().unwrap_or(own.error_pages);
    own.rule = site.rule.clone().unwrap_or(own.rule);
    own.wake = site.wake.clone().unwrap_or(own.wake);
    own.private = site.private.clone().unwrap_or(own.private);
    own.dialects = site.dialects.clone().unwrap_or(own.dialects);
    own.automatic = site.automatic.clone().unwrap_or(own.automatic);
    own.database = site.database.clone().unwrap_or(own.database);
    own.change = site.change.clone().unwrap_or(own.change);
    own.cluster = site.cluster.clone().unwrap_or(own.cluster);
    own.mode = site.mode.clone().or(own.mode);
    own.trial = site.trial.clone().unwrap_or(own.trial);
    own
}

/// Returns each site's page budget in bytes: the configured one, or an equal share of the rest.
fn budgets(file: &File, sites: &[&Site]) -> Result<Vec<usize>, LoadError> {
    let total = memory_bytes(file)?;
    let read = |site: &&Site| site.memory.as_deref().map(|text| budget(text, total)).transpose();
    let said = sites.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let taken = said.iter().flatten().fold(0, |sum: usize, bytes| sum.saturating_add(*bytes));
    let Some(left) = total.checked_sub(taken) else {
        let why = format!("the sites together use {taken} bytes, but memory is {total}");
        return wrong("site.memory", why);
    };
    let silent = said.iter().filter(|said| said.is_none()).count();
    let part = left / silent.max(1);
    if silent > 0 && part < SITE_BYTES_MIN {
        return wrong(
            "site.memory",
            "too little is left for the other sites: each needs at least 1M",
        );
    }
    Ok(said.into_iter().map(|said| said.unwrap_or(part)).collect())
}

fn budget(text: &str, total: usize) -> Result<usize, LoadError> {
    let bytes = match text.strip_suffix('%').map(str::parse::<u8>) {
        None => parse_bytes(text).or_else(|e| wrong("site.memory", e))? as usize,
        Some(Ok(percent @ 1..=100)) => total / 100 * usize::from(percent),
        Some(_) => return wrong("site.memory", format!("{text:?}: must be 1% to 100%")),
    };
    if bytes < SITE_BYTES_MIN {
        wrong("site.memory", format!("{text:?}: a site needs at least 1M"))
    } else {
        Ok(bytes)
    }
}

/// Combines the sites into one configuration.
fn together(mut sites: Vec<Config>) -> Result<Config, LoadError> {
    let mut seen = HashSet::new();
    for host in sites.iter().flat_map(|site| site.hosts.all()) {
        if !seen.insert(host) {
            return wrong("site.host", format!("{host} is given twice"));
        }
    }
    let serves = |site: &Config| site.hosts.others == OtherHosts::Serve;
    if sites.iter().filter(|site| serves(site)).count() > 1 {
        return wrong("site.other_hosts", "at most one site can \"serve\" unknown hosts");
    }
    check_capture_directories(&sites)?;
    let default_site = sites.iter().position(serves).unwrap_or(0);
    let mut default_site = sites.remove(default_site);
    default_site.other_sites = sites.into_iter().map(Arc::new).collect();
    Ok(default_site)
}

/// Each site has a socket of the same name in its directory for captures: reports to another site's are refused.
fn check_capture_directories(sites: &[Config]) -> Result<(), LoadError> {
    let mut seen = HashSet::new();
    let automatic = sites.iter().filter_map(|site| site.automatic.as_ref());
    for directory in automatic.filter_map(|one| one.capture_directory.as_ref()) {
        if !seen.insert(directory) {
            let text = format!(
                "{}: two sites have it; give each one of its own, such as {0}/HOST",
                directory.display()
            );
            return wrong("automatic.capture_directory", text);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = "memory = \"100M\"\n\
        [[site]]\nhost = \"a\"\norigin = \"http://127.0.0.1:1\"\n\
        [[site]]\nhost = \"b\"\norigin = \"http://127.0.0.1:2\"\n";

    fn read(text: &str) -> Result<Config, LoadError> {
        resolve(&toml::from_str(text).unwrap())
    }

    #[test]
    fn budgets_are_shared_out_and_never_more_than_there_is() {
        let bytes = |text: &str| {
            let default_site = read(text).unwrap();
            (default_site.memory_bytes, default_site.other_sites[0].memory_bytes)
        };
        assert_eq!(bytes(TWO), (50 << 20, 50 << 20));
        assert_eq!(bytes(&format!("{TWO}memory = \"64M\"")), (36 << 20, 64 << 20));
        assert_eq!(bytes(&format!("{TWO}memory = \"25%\"")), (75 << 20, 25 << 20));
        for (more, part) in [
            ("memory = \"101M\"", "together"),
            ("memory = \"100M\"", "too little"),
            ("memory = \"101%\"", "1% to 100%"),
            ("memory = \"5K\"", "at least 1M"),
        ] {
            let said = read(&format!("{TWO}{more}")).unwrap_err().0;
            assert!(said.contains(part), "{more}: {said}");
        }
        let one = "memory = \"100M\"\nsite = { origin = \"http://127.0.0.1:1\", memory = \"10%\" }";
        assert_eq!(read(one).unwrap().memory_bytes, 10 << 20);
    }

    #[test]
    fn two_sites_need_two_directories_for_captures() {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../php/capture");
        let both = |second: &str| {
            let site = |host: &str, directory: &str| {
                format!(
                    "[[site]]\nhost = \"{host}\"\nroot = {root:?}\nfront_controller = \"wordpress.php\"\n\
                     [site.php]\nat = \"unix:/run/php/{host}.sock\"\n\
                     [[site.database]]\nname = \"{host}\"\nurl = \"mysql://a:b@localhost/{host}\"\n\
                     [site.automatic]\nenabled = true\ncapture_directory = \"{directory}\"\n"
                )
            };
            read(&format!("memory = \"100M\"\n{}{}", site("a", "/run/pagewell"), site("b", second)))
        };
        let said = both("/run/pagewell").unwrap_err().0;
        assert!(said.contains("such as /run/pagewell/HOST"), "{said}");
        both("/run/pagewell/b").expect("two directories");
    }

    #[test]
    fn tables_of_a_site_replace_those_at_the_top() {
        let text = format!(
            "cache.default_lifetime = \"1s\"\n{TWO}[site.cache]\ndefault_lifetime = \"5s\"\n"
        );
        let default_site = read(&text).unwrap();
        assert_eq!(default_site.policy.default_lifetime_ms, Some(1_000));
        assert_eq!(default_site.other_sites[0].policy.default_lifetime_ms, Some(5_000));
    }

    #[test]
    fn one_site_answers_for_other_hosts_or_none() {
        let default_site = read(&format!("{TWO}other_hosts = \"serve\"")).unwrap();
        assert_eq!(default_site.hosts.canonical.as_deref(), Some("b"));
        assert!(default_site.hosts.have("c") && !default_site.other_sites[0].hosts.have("c"));
        assert!(!read(TWO).unwrap().hosts.have("c"));
    }

    #[test]
    fn an_invalid_value_is_refused_with_a_reason() {
        let third = "[[site]]\norigin = \"http://127.0.0.1:3\"\n";
        for (more, part) in [
            (third.to_owned(), "needs one"),
            (format!("{third}host = \"c\"\naliases = [\"a\"]"), "a is given twice"),
            (format!("{third}host = \"c\"\nphp.at = \"nowhere\"\norigi = 1"), "origi"),
            (
                format!("other_hosts = \"serve\"\n{third}host = \"c\"\nother_hosts = \"serve\""),
                "at most one site",
            ),
            ("[site.cache]\nheuristic_max = \"soon\"".into(), "b: cache.heuristic_max"),
        ] {
            let text = format!("{TWO}{more}");
            let said = match toml::from_str(&text) {
                Ok(file) => resolve(&file).unwrap_err().0,
                Err(error) => error.to_string(),
            };
            assert!(said.contains(part), "{more}: {said}");
        }
        assert!(toml::from_str::<File>("site = []").is_err());
    }
}
