//! `pagewell doctor`: collects facts about the machine, PHP and the site, lets the crate `doctor`
//! evaluate them, and prints the findings.
//!
//! It only reads: `/proc`, `/sys`, configuration files, the output of `php-fpm -i`, and a few pages of
//! the site. A fact that cannot be read is skipped silently. Only an invalid configuration is an error.
//! Process limits are those of the running Pagewell whose control interface has the configured address.
//! Counters are read twice, one second apart, to detect what is increasing now.

mod ask;
mod https;
mod processes;
mod running;

pub use ask::{secure, verify_certificate};
pub use running::{ListeningProcess, on_port, user_of_port};

use crate::client::{asked_status, lasts};
use command_line::options::{ControlArgs, DoctorArgs, ServeArgs};
use config::{Config, FilesConfig, MissesMode, OriginConfig, OwnPhp};
use control::attention::{NAMES, disk_of_logs, is_note};
use control::kernel_counts::{cgroup, kernel_counts};
use doctor::{
    EarlierCounters, ExternalPhp, Facts, Finding, Kernel, LinksOutside, Opcache, Pool, Weight,
    examine, read,
};
use origin::php_fpm::{find_binary, newest_binary};
use origin::routes::leading_outside;
use processes::Processes;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Maximum number of entries of the document root that are examined.
const SITE_FILES: usize = 200_000;
/// Default of `max_connections` in MariaDB and MySQL.
const DATABASE_CONNECTIONS: u64 = 151;
const LOGS: &str = "/var/log";
/// The interval between the two readings of counters.
const MOMENT: Duration = Duration::from_secs(1);
/// Maximum number of sites whose root page is requested.
const SITES: usize = 20;

/// Collects all facts and evaluates them.
///
/// # Errors
/// The configuration or a URL is invalid.
pub fn look(args: &DoctorArgs) -> Result<Vec<Finding>, String> {
    let config = configuration(args)?;
    let processes = Processes::now();
    let running = match &config {
        Some(config) => running::at(&config.admin),
        None => processes.first("pagewell"),
    };
    let before = counts(running);
    let answers = match (args.urls.as_slice(), &config) {
        ([], Some(config)) => {
            let sites = config.all_sites().take(SITES);
            sites
                .filter_map(|site| {
                    ask::root(&ask::SiteAddresses {
                        host: site.hosts.canonical.clone(),
                        ..ask::own(config)
                    })
                })
                .collect()
        }
        (urls, _) => urls.iter().map(|url| ask::ask(url)).collect::<Result<_, _>>()?,
    };
    std::thread::sleep(MOMENT);
    let mut facts = machine(&processes, running);
    (facts.before, facts.answers) = (before, answers);
    let own_php = config.as_ref().and_then(|config| site(&mut facts, config, args, &processes));
    facts.opcache = opcache(own_php);
    facts.https = config.as_ref().and_then(https::facts);
    let mut findings = examine(&facts);
    if let (Some(config), Some(_)) = (&config, running) {
        let reported = of_the_running(config, args);
        findings.retain(|one| reported.iter().all(|other| other.name != one.name));
        findings.splice(0..0, reported);
    }
    Ok(findings)
}

/// The problems that the running Pagewell reports itself (`attention`); none if it does not answer.
fn of_the_running(config: &Config, args: &DoctorArgs) -> Vec<Finding> {
    let file = args.config.as_ref().and_then(|path| config::load(path).ok());
    let token_file = file.and_then(|(file, _)| file.admin_token_file);
    let control = ControlArgs { admin: config.admin.to_string(), token_file };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let Ok(Ok(status)) = runtime.map(|runtime| runtime.block_on(asked_status(&control))) else {
        return Vec::new();
    };
    let finding = |one: &serde_json::Value| {
        let text = |key: &str| one[key].as_str().unwrap_or_default().to_owned();
        let name = NAMES.into_iter().find(|name| one["name"] == *name)?;
        Some(Finding {
            name,
            weight: weight_of(name),
            what: text("what"),
            evidence: format!("The running Pagewell reports it ({}).", lasts(one)),
            command: text("remedy"),
            risk: risk_of(name),
        })
    };
    let problems = status["findings"].as_array().map(Vec::as_slice).unwrap_or_default();
    problems.iter().filter_map(finding).collect()
}

/// The severity of a problem that the running Pagewell reports. A trial is none: it is reported so that nobody forgets it.
fn weight_of(name: &str) -> Weight {
    match name {
        note if is_note(note) => Weight::Note,
        "disk-full" => Weight::WillFail,
        _ => Weight::Fails,
    }
}

/// The risk of the remedy of a problem that the running Pagewell reports.
fn risk_of(name: &str) -> &'static str {
    if is_note(name) {
        "pagewell trial only reads. When the trial ends, visitors get pages from the cache."
    } else {
        "As the command says; reading the log changes nothing."
    }
}

/// The configuration of Pagewell, if the command line names one.
fn configuration(args: &DoctorArgs) -> Result<Option<Config>, String> {
    if args.config.is_none() && args.dir.is_none() {
        return Ok(None);
    }
    let (config, dir) = (args.config.clone(), args.dir.clone());
    let (config, _) = ServeArgs { config, dir, ..ServeArgs::default() }.read()?;
    Ok(Some(config))
}

fn counts(running: Option<u32>) -> EarlierCounters {
    let (tcp, conntrack) = kernel_counts();
    EarlierCounters { tcp, conntrack, cgroup: cgroup(&shown(running)) }
}

/// The directory name of a process in `/proc`; `self` if there is no such process.
fn shown(running: Option<u32>) -> String {
    running.map_or("self".to_owned(), |pid| pid.to_string())
}

/// Whether a finding says that something fails or will fail.
#[must_use]
pub fn hurts(findings: &[Finding]) -> bool {
    findings.iter().any(|finding| finding.weight <= Weight::WillFail)
}

/// The findings as text, or as JSON.
#[must_use]
pub fn text(findings: &[Finding], json: bool) -> String {
    if json {
        return serde_json::json!({ "findings": findings }).to_string();
    }
    let mut text = String::new();
    for finding in findings {
        let _ = writeln!(
            text,
            "{} ({})\n  {}\n  seen     {}\n  do       {}\n  risk     {}\n",
            finding.name,
            finding.weight.as_str(),
            finding.what,
            finding.evidence,
            finding.command,
            finding.risk
        );
    }
    match findings.len() {
        0 => "No problem was found.".into(),
        count => format!("{text}{count} found; nothing was changed."),
    }
}

fn text_of(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// The facts that do not depend on the configuration, for the process `running`.
fn machine(processes: &Processes, running: Option<u32>) -> Facts {
    let of = shown(running);
    let (mut tcp, conntrack) = kernel_counts();
    let kernel = kernel();
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(text_of).concat();
    tcp.ports_kept = kernel.ports.map(|ports| read::ports_kept(&tables, ports));
    let limits = text_of(format!("/proc/{of}/limits"));
    // A Pagewell that starts later will raise its soft limit.
    let limit = if running.is_some() { read::soft_limit } else { read::hard_limit };
    Facts {
        kernel,
        tcp,
        conntrack,
        memory: read::memory(&text_of("/proc/meminfo"), &text_of("/proc/vmstat")),
        cgroup: cgroup(&of),
        pools: pools(processes),
        database_connections: database(processes),
        open_files: limit(&limits, "Max open files"),
        running,
        turning_disk: turning_disk(),
        disks: disk_of_logs().into_iter().collect(),
        clock_source: Some(text_of(CLOCK_SOURCE).trim().to_owned()).filter(|name| !name.is_empty()),
        clock_kept: clock_kept(processes),
        sysctl_lines: sysctl_lines(),
        ..Facts::default()
    }
}

const CLOCK_SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

fn kernel() -> Kernel {
    let setting = |name: &str| read::number(&text_of(format!("/proc/sys/{name}")));
    Kernel {
        somaxconn: setting("net/core/somaxconn"),
        syn_backlog: setting("net/ipv4/tcp_max_syn_backlog"),
        syncookies: setting("net/ipv4/tcp_syncookies"),
        tw_recycle: setting("net/ipv4/tcp_tw_recycle"),
        timestamps: setting("net/ipv4/tcp_timestamps"),
        tw_buckets: setting("net/ipv4/tcp_max_tw_buckets"),
        ports: read::two_numbers(&text_of("/proc/sys/net/ipv4/ip_local_port_range")),
        file_max: setting("fs/file-max"),
        swappiness: setting("vm/swappiness"),
        huge_pages: read::chosen(&text_of("/sys/kernel/mm/transparent_hugepage/enabled")),
    }
}

/// The files in these directories that have this extension, sorted.
fn files_in(directories: &[impl AsRef<Path>], ending: &str) -> Vec<PathBuf> {
    let entries = directories.iter().filter_map(|dir| fs::read_dir(dir).ok()).flatten().flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|is| is == ending));
    paths.sort();
    paths
}

/// The php-fpm of a site, if Pagewell does not start it.
#[must_use]
pub fn external_php(site: &Config) -> Option<ExternalPhp> {
    let OriginConfig::FastCgi(address) = &site.site.origin else { return None };
    Some(ExternalPhp { at: address.to_string(), places: site.limits.origin_connections as u64 })
}

/// The pools in the configuration of this machine's php-fpm.
#[must_use]
pub fn configured_pools() -> Vec<Pool> {
    let mut places = vec!["/etc/php-fpm.d".to_owned(), "/usr/local/etc/php-fpm.d".to_owned()];
    let versions = fs::read_dir("/etc/php").into_iter().flatten().flatten();
    places.extend(versions.map(|one| format!("{}/fpm/pool.d", one.path().display())));
    let places: Vec<&str> = places.iter().map(String::as_str).collect();
    let files = files_in(&places, "conf").into_iter();
    files.flat_map(|path| read::pools(&text_of(&path), &path.display().to_string())).collect()
}

/// The pools that are running.
fn pools(processes: &Processes) -> Vec<Pool> {
    // Pools count only if a php-fpm other than Pagewell's own is running.
    if !processes.any_titled(is_foreign_php) {
        return Vec::new();
    }
    let mut found = configured_pools();
    for pool in &mut found {
        pool.child_bytes = processes.average_bytes(&format!("php-fpm: pool {}", pool.name));
    }
    found
}

/// Whether `title` belongs to a php-fpm master that is not Pagewell's own. Pagewell's has its
/// configuration in a private directory.
fn is_foreign_php(title: &str) -> bool {
    title.starts_with("php-fpm: master process (") && !title.contains("/pagewell-")
}

/// The opcache settings that php-fpm reports: Pagewell's own php-fpm with its settings, else the
/// machine's newest.
fn opcache(own: Option<&OwnPhp>) -> Option<Opcache> {
    let mut command = match own {
        Some(php) => {
            let mut command = Command::new(find_binary(php).ok()?);
            for (name, value) in &php.ini {
                command.arg("-d").arg(format!("{name}={value}"));
            }
            command
        }
        None => Command::new(newest_binary()?),
    };
    let output = command.arg("-i").stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    read::opcache(&String::from_utf8_lossy(&output.stdout))
}

fn database(processes: &Processes) -> Option<u64> {
    processes.first("mariadbd").or(processes.first("mysqld"))?;
    Some(max_connections(Path::new("/etc")).unwrap_or(DATABASE_CONNECTIONS))
}

/// `max_connections` in the option files of MariaDB or MySQL below `/etc`: RHEL's `my.cnf` and `my.cnf.d`, and Debian's.
fn max_connections(etc: &Path) -> Option<u64> {
    let places =
        ["", "my.cnf.d", "mysql", "mysql/conf.d", "mysql/mariadb.conf.d", "mysql/mysql.conf.d"];
    let texts = files_in(&places.map(|place| etc.join(place)), "cnf").into_iter().map(text_of);
    let mut said = texts.filter_map(|text| read::database_option(&text, "max_connections"));
    // The last file takes precedence.
    said.next_back()
}

fn turning_disk() -> Option<bool> {
    let device = fs::metadata(LOGS).ok()?.dev();
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let place = PathBuf::from(format!("/sys/dev/block/{major}:{minor}"));
    let texts = [place.join("queue/rotational"), place.join("../queue/rotational")].map(text_of);
    let turns = texts.iter().find_map(|text| read::number(text))?;
    Some(turns == 1)
}

/// Whether a service keeps the clock synchronised. `None` in a container without systemd, where the
/// host sets the clock.
fn clock_kept(processes: &Processes) -> Option<bool> {
    let services = ["systemd-timesyn", "chronyd", "ntpd", "openntpd", "ptp4l"];
    let runs = services.iter().any(|name| processes.first(name).is_some());
    (runs || Path::new("/run/systemd/system").exists()).then_some(runs)
}

fn sysctl_lines() -> Vec<(String, String)> {
    let mut paths = files_in(&["/etc/sysctl.d", "/run/sysctl.d", "/usr/lib/sysctl.d"], "conf");
    paths.push("/etc/sysctl.conf".into());
    let lines = paths.into_iter().flat_map(|path| {
        let settings = read::sysctl(&text_of(&path));
        let file = path.display().to_string();
        settings.into_iter().map(move |(name, value)| (format!("{name}={value}"), file.clone()))
    });
    lines.collect()
}

/// Adds the facts from the configuration and from the document root. Returns the settings of Pagewell's
/// own php-fpm, if it has one.
fn site<'a>(
    facts: &mut Facts,
    config: &'a Config,
    args: &DoctorArgs,
    processes: &Processes,
) -> Option<&'a OwnPhp> {
    facts.connections = Some(config.limits.connections as u64);
    facts.page_budget = Some(config.memory_bytes as u64);
    facts.external_php = config.all_sites().filter_map(external_php).collect();
    facts.hides_clients = config.misses.mode == MissesMode::Protect
        && !config.trusted_proxies.is_empty()
        && config.proxied.is_empty();
    facts.php_files = config.site.files.as_ref().map(|files| php_files(&files.root));
    facts.links_outside = config.site.files.as_ref().and_then(links_outside);
    let path = args.config.as_ref().map(|path| path.display().to_string());
    let file = path.unwrap_or_else(|| "Pagewell's configuration".into());
    let own: Vec<&OwnPhp> = config
        .all_sites()
        .filter_map(|site| match &site.site.origin {
            OriginConfig::OwnPhp(php) => Some(php),
            _ => None,
        })
        .collect();
    let child_bytes = processes.average_bytes("php-fpm: pool pagewell");
    facts.pools.extend(own.iter().map(|php| Pool {
        name: "pagewell".into(),
        file: file.clone(),
        own: true,
        children: php.children as u64,
        child_bytes,
        ..Pool::default()
    }));
    facts.own_php = own.first().map(|_| file);
    own.first().copied()
}

fn links_outside(files: &FilesConfig) -> Option<LinksOutside> {
    let found = leading_outside(files)?;
    let (link, target) = &found.example;
    Some(LinksOutside {
        count: found.count,
        example: (link.display().to_string(), target.display().to_string()),
        allowing: found.allowing(),
    })
}

fn php_files(root: &Path) -> u64 {
    let (mut waiting, mut seen, mut found) = (vec![root.to_owned()], 0, 0);
    while let Some(dir) = waiting.pop() {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            seen += 1;
            if seen > SITE_FILES {
                return found;
            }
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_dir() {
                waiting.push(entry.path());
            } else if entry.path().extension().is_some_and(|is| is == "php") {
                found += 1;
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_the_database_are_read_where_each_distribution_has_them() {
        for directory in ["", "my.cnf.d", "mysql/mariadb.conf.d"] {
            let etc = harness::PrivateDir::temporary("options").expect("a directory");
            let place = etc.path().join(directory);
            fs::create_dir_all(&place).expect("a directory");
            fs::write(place.join("my.cnf"), "[mysqld]\nmax_connections = 77\n").expect("a file");
            assert_eq!(max_connections(etc.path()), Some(77), "{directory}");
        }
    }

    #[test]
    fn a_trial_is_no_failure() {
        assert_eq!(weight_of("trial-running"), Weight::Note);
        assert_eq!(weight_of("database-not-followed"), Weight::Fails);
        assert!(risk_of("trial-running").starts_with("pagewell trial only reads."));
        assert!(risk_of("database-not-followed").contains("reading the log"));
    }
}
