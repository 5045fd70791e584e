//! Parsers for the texts of `/proc`, of php-fpm's configuration and of `php-fpm -i`.
//!
//! Missing or malformed values are `None` or left out, because kernels differ in the values that they report.
//! No input causes a panic.

use crate::{Conntrack, Memory, Opcache, Pool, Tcp};
use process_limits::meminfo_bytes;

/// The number in a file that contains nothing else.
#[must_use]
pub fn number(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

/// The two numbers in a file: `32768 60999`.
#[must_use]
pub fn two_numbers(text: &str) -> Option<(u64, u64)> {
    let mut numbers = text.split_whitespace().map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// The selected value in brackets: `always [madvise] never`.
#[must_use]
pub fn chosen(text: &str) -> Option<String> {
    let (_, rest) = text.split_once('[')?;
    rest.split_once(']').map(|(word, _)| word.to_owned())
}

/// The soft limit with this name in `/proc/PID/limits`; `unlimited` is the largest number.
#[must_use]
pub fn soft_limit(text: &str, name: &str) -> Option<u64> {
    limit(text, name, 0)
}

/// The hard limit with this name in `/proc/PID/limits`; `unlimited` is the largest number.
#[must_use]
pub fn hard_limit(text: &str, name: &str) -> Option<u64> {
    limit(text, name, 1)
}

/// The number in this column of the line with this name.
fn limit(text: &str, name: &str, column: usize) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    match line.split_whitespace().nth(column)? {
        "unlimited" => Some(u64::MAX),
        number => number.parse().ok(),
    }
}

/// The number of TIME-WAIT connections in `/proc/net/tcp` and `tcp6` whose local port is in this range.
/// Connections at a server's own port are not counted, because they do not block other connections.
#[must_use]
pub fn ports_kept(tables: &str, (first, last): (u64, u64)) -> u64 {
    let keeps_one = |line: &&str| {
        let mut fields = line.split_whitespace();
        let port = fields.nth(1).and_then(|local| local.rsplit_once(':'));
        let port = port.and_then(|(_, port)| u64::from_str_radix(port, 16).ok());
        fields.nth(1) == Some(TIME_WAIT) && port.is_some_and(|port| (first..=last).contains(&port))
    };
    tables.lines().filter(keeps_one).count() as u64
}

/// The state TIME-WAIT in `/proc/net/tcp`.
const TIME_WAIT: &str = "06";

/// Parses `/proc/net/netstat` and `/proc/net/sockstat`.
#[must_use]
pub fn tcp(netstat: &str, sockstat: &str) -> Tcp {
    let counted = |name: &str| {
        let mut lines = netstat.lines().filter_map(|line| line.strip_prefix("TcpExt:"));
        let (names, values) = (lines.next()?, lines.next()?);
        let place = names.split_whitespace().position(|one| one == name)?;
        values.split_whitespace().nth(place)?.parse().ok()
    };
    let time_wait = sockstat.lines().find_map(|line| line.strip_prefix("TCP:")).and_then(|line| {
        let mut words = line.split_whitespace();
        words.find(|word| *word == "tw")?;
        words.next()?.parse().ok()
    });
    Tcp {
        listen_overflows: counted("ListenOverflows"),
        listen_drops: counted("ListenDrops"),
        syn_drops: counted("TCPReqQFullDrop"),
        time_wait_overflows: counted("TCPTimeWaitOverflow"),
        memory_aborts: counted("TCPAbortOnMemory"),
        time_wait,
        ports_kept: None,
    }
}

/// Parses `/proc/sys/net/netfilter/nf_conntrack_count` and `_max`, and `/proc/net/stat/nf_conntrack`, which has
/// one line of hexadecimal numbers per CPU.
#[must_use]
pub fn conntrack(count: &str, max: &str, stat: &str) -> Conntrack {
    let mut lines = stat.lines();
    let names: Vec<&str> = lines.next().unwrap_or_default().split_whitespace().collect();
    let place = names.iter().position(|name| *name == "drop");
    let drops = place.map(|place| {
        let value = |line: &str| {
            let word = line.split_whitespace().nth(place)?;
            u64::from_str_radix(word, 16).ok()
        };
        lines.filter_map(value).fold(0, u64::saturating_add)
    });
    Conntrack { count: number(count), max: number(max), drops }
}

/// Parses `/proc/meminfo` and `/proc/vmstat`.
#[must_use]
pub fn memory(meminfo: &str, vmstat: &str) -> Memory {
    let swapped_in = vmstat.lines().find_map(|line| number(line.strip_prefix("pswpin ")?));
    Memory {
        total: meminfo_bytes(meminfo, "MemTotal"),
        available: meminfo_bytes(meminfo, "MemAvailable"),
        swap_total: meminfo_bytes(meminfo, "SwapTotal"),
        swap_free: meminfo_bytes(meminfo, "SwapFree"),
        swapped_in,
    }
}

/// The value for a key in a file with lines such as `oom_kill 3`.
#[must_use]
pub fn keyed(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(' ')?;
        (name == key).then(|| number(value))?
    })
}

/// The pools in a php-fpm configuration file, without `[global]` and without pools that have no number of
/// children.
#[must_use]
pub fn pools(text: &str, file: &str) -> Vec<Pool> {
    let mut found: Vec<Pool> = Vec::new();
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            let (name, file) = (name.to_owned(), file.to_owned());
            found.push(Pool { name, file, ..Pool::default() });
            continue;
        }
        let (Some((key, value)), Some(pool)) = (line.split_once('='), found.last_mut()) else {
            continue;
        };
        let value = value.split(';').next().unwrap_or_default().trim().trim_matches('"');
        match key.trim() {
            "pm.max_children" => pool.children = number(value).unwrap_or(0),
            "listen.backlog" => pool.backlog = value.parse().ok(),
            "listen" => {
                pool.tcp = !value.starts_with('/');
                pool.at = pool_address(&value.replace("$pool", &pool.name));
            }
            _ => {}
        }
    }
    found.retain(|pool| pool.name != "global" && pool.children > 0);
    found
}

/// The address of a pool as `php.at` has it, from the value of its `listen`: `unix:/run/php.sock`, `127.0.0.1:9000`.
#[must_use]
pub fn pool_address(listen: &str) -> String {
    match listen {
        path if path.starts_with('/') => format!("unix:{path}"),
        port if port.parse::<u16>().is_ok() => format!("127.0.0.1:{port}"),
        any if any.starts_with("[::]:") || any.starts_with("0.0.0.0:") || any.starts_with('*') => {
            let port = any.rsplit(':').next().unwrap_or_default();
            format!("127.0.0.1:{port}")
        }
        other => other.to_owned(),
    }
}

/// Parses the section on opcache in the output of `php-fpm -i`; `None` if it is not the output of PHP.
#[must_use]
pub fn opcache(info: &str) -> Option<Opcache> {
    let value = |key: &str| {
        let line = info.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" => "))?;
        line.split(" => ").next().map(str::trim)
    };
    let on = |text: &str| matches!(text, "On" | "1");
    let Some(enabled) = value("opcache.enable") else {
        return value("PHP Version").map(|_| Opcache::default());
    };
    Some(Opcache {
        installed: true,
        enabled: on(enabled),
        megabytes: value("opcache.memory_consumption").and_then(number),
        files: value("opcache.max_accelerated_files").and_then(number),
        validates: value("opcache.validate_timestamps").is_some_and(on),
    })
}

/// The settings in a sysctl file: dotted names, and their values.
#[must_use]
pub fn sysctl(text: &str) -> Vec<(String, String)> {
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';']));
    let pairs = lines.filter_map(|line| line.split_once('='));
    let plain = |name: &str| name.trim().trim_start_matches('-').replace('/', ".");
    pairs.map(|(name, value)| (plain(name), value.trim().to_owned())).collect()
}

/// The value of a key in the configuration of MariaDB or MySQL, in any section; the last one counts.
#[must_use]
pub fn database_option(text: &str, key: &str) -> Option<u64> {
    let wanted = key.replace('-', "_");
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';']));
    let mut values = lines.filter_map(|line| {
        let (name, value) = line.split_once('=')?;
        let value = value.split('#').next().unwrap_or_default().trim();
        let value = value.trim_matches(['"', '\'']);
        (name.trim().replace('-', "_") == wanted).then(|| number(value))?
    });
    values.next_back()
}
