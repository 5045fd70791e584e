//! Resources of a process and its descendants, read from `/proc`: CPU time, memory, file descriptors; and the
//! binding of threads to CPU cores.
//!
//! On Linux, CPU time has a resolution of 10 ms: measure for seconds. The CPU time of children that have ended
//! and were waited for counts for their parent. The sum therefore never decreases while the root process is
//! alive.

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::Path;

/// The CPU time (user and system) of `pid` and all its descendants, in seconds.
#[must_use]
pub fn seconds(pid: u32) -> f64 {
    let ticks: u64 = tree(pid).iter().map(|process| process.ticks).sum();
    let per_second = rustix::param::clock_ticks_per_second();
    #[allow(clippy::cast_precision_loss, reason = "2^52 ticks are a million years")]
    let seconds = ticks as f64 / per_second as f64;
    seconds
}

/// The CPU time of the first threads of `pid` and all its descendants, in seconds, exact to nanoseconds:
/// for processes of one thread. Processes that have ended do not count.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "a time for people and ratios")]
pub fn scheduled_seconds(pid: u32) -> f64 {
    let nanoseconds = |process: &u32| -> Option<u64> {
        let line = fs::read_to_string(format!("/proc/{process}/schedstat")).ok()?;
        line.split(' ').next()?.parse().ok()
    };
    descendants(pid).iter().filter_map(nanoseconds).sum::<u64>() as f64 / 1e9
}

/// The resident memory of `pid` and all its descendants, in bytes. A shared page counts for each process.
#[must_use]
pub fn rss_bytes(pid: u32) -> u64 {
    let page = rustix::param::page_size() as u64;
    tree(pid).iter().map(|process| process.rss_pages * page).sum()
}

/// The resident memory of `pid` without its descendants, in bytes.
#[must_use]
pub fn rss_bytes_alone(pid: u32) -> u64 {
    look(pid).map_or(0, |process| process.rss_pages * rustix::param::page_size() as u64)
}

/// The proportional memory (PSS) of `pid` and all its descendants, in bytes: a shared page counts in equal
/// parts for each process. If the kernel does not provide it, the value of [`rss_bytes_alone`] is used.
#[must_use]
pub fn pss_bytes(pid: u32) -> u64 {
    tree(pid).iter().map(|process| pss_bytes_alone(process.pid)).sum()
}

/// The proportional memory (PSS) of `pid` without its descendants, in bytes.
#[must_use]
pub fn pss_bytes_alone(pid: u32) -> u64 {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let pss = rollup.lines().find_map(|line| line.strip_prefix("Pss:"));
    let kilobytes = pss.and_then(|pss| pss.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kilobytes.map_or_else(|| rss_bytes_alone(pid), |kilobytes| kilobytes << 10)
}

/// The number of open file descriptors of `pid` without its descendants.
#[must_use]
pub fn open_fds(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count)
}

/// The process ids of `pid` and all its descendants.
#[must_use]
pub fn descendants(pid: u32) -> Vec<u32> {
    tree(pid).iter().map(|process| process.pid).collect()
}

/// Whether the process exists and is not a zombie.
#[must_use]
pub fn is_running(pid: u32) -> bool {
    let state = state(Path::new(&format!("/proc/{pid}")));
    state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

/// Whether all threads of the process are stopped. After SIGSTOP this may take a moment.
#[must_use]
pub fn is_stopped(pid: u32) -> bool {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let states: Vec<Option<char>> = threads.map(|thread| state(&thread.path())).collect();
    !states.is_empty() && states.iter().all(|state| *state == Some('T'))
}

/// The state of a process or thread, from its directory in `/proc`.
fn state(of: &Path) -> Option<char> {
    let stat = fs::read_to_string(of.join("stat")).ok()?;
    let (_, behind) = stat.rsplit_once(')')?;
    behind.trim_start().chars().next()
}

/// Runs `f` with this thread, and everything that `f` starts, bound to one CPU core.
///
/// # Errors
/// Errors of the system: the core does not exist, or is not allowed.
pub fn on_core<T>(core: usize, f: impl FnOnce() -> T) -> io::Result<T> {
    let before = sched_getaffinity(None)?;
    let mut only = CpuSet::new();
    only.set(core);
    sched_setaffinity(None, &only)?;
    let outcome = f();
    sched_setaffinity(None, &before)?;
    Ok(outcome)
}

/// Binds the first thread of a process to one CPU core.
///
/// # Errors
/// Errors of the system.
pub fn bind(pid: u32, core: usize) -> io::Result<()> {
    let raw = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let mut only = CpuSet::new();
    only.set(core);
    Ok(sched_setaffinity(raw, &only)?)
}

/// The CPU cores on which this thread may run.
#[must_use]
pub fn cores() -> Vec<usize> {
    let allowed = sched_getaffinity(None);
    allowed.map_or_else(
        |_| vec![0],
        |set| (0..CpuSet::MAX_CPU).filter(|core| set.is_set(*core)).collect(),
    )
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ProcessStat {
    pid: u32,
    parent: u32,
    ticks: u64,
    rss_pages: u64,
}

fn tree(root: u32) -> Vec<ProcessStat> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let mut children: HashMap<u32, Vec<ProcessStat>> = HashMap::new();
    let mut found = Vec::new();
    for seen in pids.filter_map(look) {
        if seen.pid == root {
            found.push(seen);
        } else {
            children.entry(seen.parent).or_default().push(seen);
        }
    }
    let mut next = 0;
    while let Some(parent) = found.get(next).map(|seen| seen.pid) {
        found.extend(children.remove(&parent).unwrap_or_default());
        next += 1;
    }
    found
}

fn look(pid: u32) -> Option<ProcessStat> {
    parse(pid, &fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// Parses `/proc/PID/stat` (proc(5)). The name is in parentheses and may itself contain spaces and parentheses.
fn parse(pid: u32, stat: &str) -> Option<ProcessStat> {
    let after_name = &stat[stat.rfind(')')? + 1..];
    let fields: Vec<&str> = after_name.split_ascii_whitespace().collect();
    let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
    // Fields 14 to 17 of the line: utime, stime, cutime, cstime; 24: rss.
    let ticks = number(11)? + number(12)? + number(13)? + number(14)?;
    Some(ProcessStat {
        pid,
        parent: u32::try_from(number(1)?).ok()?,
        ticks,
        rss_pages: number(21)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_spaces_and_parentheses_is_passed_over() {
        let stat = "7 (a) (b c) S 5 0 0 0 0 0 0 0 0 0 10 20 3 4 0 0 1 0 9 1000 42 0";
        assert_eq!(
            parse(7, stat),
            Some(ProcessStat { pid: 7, parent: 5, ticks: 37, rss_pages: 42 })
        );
    }

    #[test]
    fn this_process_is_seen() {
        let pid = std::process::id();
        assert!(descendants(pid).contains(&pid));
        assert!(rss_bytes(pid) > 100_000);
        assert!(pss_bytes_alone(pid) > 100_000);
        assert!(open_fds(pid) >= 3);
    }

    #[test]
    fn a_thread_is_bound_to_a_core_and_let_go_again() {
        let before = cores();
        let inside = on_core(before[0], cores).expect("its own core is allowed");
        assert_eq!((inside, cores()), (vec![before[0]], before));
    }
}
