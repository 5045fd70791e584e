//! `pagewell doctor`: collects facts about the machine, PHP and the site, has the crate `doctor` judge
//! them, and prints what was found.
//!
//! It only reads: `/proc`, `/sys`, configuration files, what `php-fpm -i` says, and a few pages of the
//! site. A fact that cannot be had is left out, and nothing is said about it; only a configuration that
//! cannot be read is an error. The limits looked at are those of a running Pagewell, where there is one.

mod ask;
mod processes;

use crate::config::{Address, Config, load, resolve};
use crate::options::DoctorArgs;
use doctor::{Cgroup, Facts, Finding, Kernel, Opcache, Pool, Weight, examine, read};
use processes::Processes;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// How many files of the site are looked at, at most.
const SITE_FILES: usize = 200_000;
/// How many connections MariaDB and MySQL take, where no file says otherwise.
const DATABASE_CONNECTIONS: u64 = 151;
const LOGS: &str = "/var/log";

/// Looks at everything.
///
/// # Errors
/// When the configuration cannot be read.
pub fn look(args: &DoctorArgs) -> Result<Vec<Finding>, String> {
    let config = match &args.config {
        Some(path) => {
            let (file, _) = load(path).map_err(|error| error.to_string())?;
            Some(resolve(&file).map_err(|error| format!("{}: {error}", path.display()))?)
        }
        None => None,
    };
    let mut facts = machine();
    if let Some(config) = &config {
        site(&mut facts, config);
    }
    facts.answers = match args.urls.as_slice() {
        [] => own_url(config.as_ref()).into_iter().filter_map(|url| ask::ask(&url).ok()).collect(),
        urls => urls.iter().map(|url| ask::ask(url)).collect::<Result<_, _>>()?,
    };
    Ok(examine(&facts))
}

/// Whether anything fails or will.
#[must_use]
pub fn hurts(findings: &[Finding]) -> bool {
    findings.iter().any(|finding| finding.weight <= Weight::WillFail)
}

/// What was found, for people or as JSON.
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
        0 => "Nothing was found that hurts under load.".into(),
        count => format!("{text}{count} found; nothing was changed."),
    }
}

fn text_of(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// What the kernel has counted about TCP and the firewall's table.
#[must_use]
pub fn kernel_counts() -> (doctor::Tcp, doctor::Conntrack) {
    let tcp = read::tcp(&text_of("/proc/net/netstat"), &text_of("/proc/net/sockstat"));
    let conntrack = read::conntrack(
        &text_of("/proc/sys/net/netfilter/nf_conntrack_count"),
        &text_of("/proc/sys/net/netfilter/nf_conntrack_max"),
        &text_of("/proc/net/stat/nf_conntrack"),
    );
    (tcp, conntrack)
}

/// All that does not depend on the configuration.
fn machine() -> Facts {
    let processes = Processes::now();
    let running = processes.first("pagewell");
    let of = running.map_or("self".to_owned(), |pid| pid.to_string());
    let (tcp, conntrack) = kernel_counts();
    let limits = text_of(format!("/proc/{of}/limits"));
    Facts {
        kernel: kernel(),
        tcp,
        conntrack,
        memory: read::memory(&text_of("/proc/meminfo"), &text_of("/proc/vmstat")),
        cgroup: cgroup(&of),
        pools: pools(&processes),
        opcache: opcache(),
        database_connections: database(&processes),
        open_files: read::soft_limit(&limits, "Max open files"),
        open_files_of_running: running.is_some(),
        turning_disk: turning_disk(),
        log_space: rustix::fs::statvfs(LOGS).ok().map(|found| found.f_bavail * found.f_frsize),
        clock_source: Some(text_of(CLOCK_SOURCE).trim().to_owned()).filter(|name| !name.is_empty()),
        clock_kept: clock_kept(&processes),
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

/// The second version of control groups; of the first nothing is known.
fn cgroup(of: &str) -> Cgroup {
    let groups = text_of(format!("/proc/{of}/cgroup"));
    let Some(group) = groups.lines().find_map(|line| line.strip_prefix("0::")) else {
        return Cgroup::default();
    };
    let place = PathBuf::from("/sys/fs/cgroup").join(group.trim_start_matches('/'));
    Cgroup {
        memory_max: read::number(&text_of(place.join("memory.max"))),
        killed: read::keyed(&text_of(place.join("memory.events")), "oom_kill"),
        throttled: read::keyed(&text_of(place.join("cpu.stat")), "nr_throttled"),
        pids_max: read::number(&text_of(place.join("pids.max"))),
    }
}

/// The files of these directories with this ending, in order.
fn files_in(directories: &[&str], ending: &str) -> Vec<PathBuf> {
    let entries = directories.iter().filter_map(|dir| fs::read_dir(dir).ok()).flatten().flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|is| is == ending));
    paths.sort();
    paths
}

fn pools(processes: &Processes) -> Vec<Pool> {
    let mut places = vec!["/etc/php-fpm.d".to_owned(), "/usr/local/etc/php-fpm.d".to_owned()];
    let versions = fs::read_dir("/etc/php").into_iter().flatten().flatten();
    places.extend(versions.map(|one| format!("{}/fpm/pool.d", one.path().display())));
    let places: Vec<&str> = places.iter().map(String::as_str).collect();
    let mut found = Vec::new();
    // Pools of a php-fpm that does not run want nothing.
    for path in files_in(&places, "conf") {
        for mut pool in read::pools(&text_of(&path), &path.display().to_string()) {
            pool.child_bytes = processes.average_bytes(&format!("php-fpm: pool {}", pool.name));
            found.push(pool);
        }
    }
    if processes.first("php-fpm").is_none() {
        found.clear();
    }
    found
}

fn opcache() -> Option<Opcache> {
    let mut programs: Vec<PathBuf> = ["/usr/sbin", "/usr/local/sbin"]
        .iter()
        .filter_map(|dir| fs::read_dir(dir).ok())
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.file_name().is_some_and(|n| n.to_string_lossy().starts_with("php-fpm")))
        .collect();
    programs.sort();
    let mut command = Command::new(programs.pop()?);
    let output = command.arg("-i").stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    read::opcache(&String::from_utf8_lossy(&output.stdout))
}

fn database(processes: &Processes) -> Option<u64> {
    processes.first("mariadbd").or(processes.first("mysqld"))?;
    let places =
        ["/etc/mysql", "/etc/mysql/conf.d", "/etc/mysql/mariadb.conf.d", "/etc/mysql/mysql.conf.d"];
    let texts = files_in(&places, "cnf").into_iter().map(text_of);
    let mut said = texts.filter_map(|text| read::database_option(&text, "max_connections"));
    // The last file counts.
    Some(said.next_back().unwrap_or(DATABASE_CONNECTIONS))
}

fn turning_disk() -> Option<bool> {
    let device = fs::metadata(LOGS).ok()?.dev();
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let place = PathBuf::from(format!("/sys/dev/block/{major}:{minor}"));
    let texts = [place.join("queue/rotational"), place.join("../queue/rotational")].map(text_of);
    let turns = texts.iter().find_map(|text| read::number(text))?;
    Some(turns == 1)
}

/// In a container without an init of its own the clock is somebody else's.
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

/// What the configuration says, and what lies in the document root.
fn site(facts: &mut Facts, config: &Config) {
    facts.connections = Some(config.limits.connections as u64);
    facts.page_budget = Some(config.memory_bytes as u64);
    facts.php_files = config.site.files.as_ref().map(|files| php_files(&files.root));
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

fn own_url(config: Option<&Config>) -> Option<String> {
    let addresses = config?.listen.iter();
    let address = addresses.filter_map(|one| match one {
        Address::Tcp(tcp) => Some(*tcp),
        Address::Unix(_) => None,
    });
    let mut address = address.into_iter().next()?;
    if address.ip().is_unspecified() {
        address.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
    }
    Some(format!("http://{address}/"))
}
