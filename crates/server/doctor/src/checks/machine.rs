//! Memory, swap, cgroup limits, disk and clock.
//!
//! Of the memory of the cgroup and of the machine the smaller counts. Kernel counters run since the boot, so
//! they only matter if they rise.

use super::php::{all_children_bytes, fewer};
use super::{lately, shown};
use crate::{DiskSpace, Facts, Finding, Weight, WrittenFiles};

/// Below this number of free bytes, the file system of the logs will soon be full.
const LOG_SPACE: u64 = 500_000_000;
/// The bytes beside its pages that a snapshot needs: for names, and the journal of changes.
const JOURNAL_SPACE: u64 = 1_000_000;
/// Below this number of free bytes, a disk is full: small files may still fit, and a record or a log does not.
const FULL_SPACE: u64 = 1_000_000;

/// Checks whether memory in use has been swapped to disk.
pub(super) fn swap(facts: &Facts) -> Option<Finding> {
    let memory = facts.memory;
    let used = memory.swap_total?.saturating_sub(memory.swap_free?);
    let back = memory.swapped_in.unwrap_or(0);
    (used > 64_000_000 && back > 1000).then(|| Finding {
        name: "swap",
        weight: Weight::Slow,
        what: "Memory in use was swapped out to disk: cached pages must then be read from disk."
            .into(),
        evidence: format!(
            "{} of swap is in use, and {back} memory pages were read back.",
            shown(used)
        ),
        command:
            "sysctl -w vm.swappiness=10    # and a smaller `memory`, or fewer php-fpm children"
                .into(),
        risk: "With less swapping, a machine with too little memory kills processes sooner.",
    })
}

/// Checks whether a process was killed for lack of memory.
pub(super) fn killed(facts: &Facts) -> Option<Finding> {
    let killed = facts.cgroup.killed.filter(|count| *count > 0)?;
    let (weight, lately) = lately(killed, facts.before.cgroup.killed);
    Some(Finding {
        name: "killed-for-memory",
        weight,
        what: "The kernel killed processes because memory was exhausted.".into(),
        evidence: format!("oom_kill in the cgroup's memory.events is {killed}; {lately}."),
        command: "journalctl -k -g 'killed process'    # names them; then fewer children, a smaller `memory`, or more memory".into(),
        risk: "None: the command only reads.",
    })
}

/// Checks whether a CPU limit throttles the cgroup.
pub(super) fn throttled(facts: &Facts) -> Option<Finding> {
    let throttled = facts.cgroup.throttled.filter(|count| *count > 100)?;
    Some(Finding {
        name: "cpu-throttled",
        weight: Weight::Slow,
        what: "The CPU limit of the cgroup was reached: all its processes then pause for up to 100 ms.".into(),
        evidence: format!("nr_throttled in the cgroup's cpu.stat is {throttled}."),
        command: "systemctl set-property pagewell.service CPUQuota=    # or a larger cpu limit of the container".into(),
        risk: "Other services of the machine get less CPU when Pagewell is busy.",
    })
}

/// Checks whether the page budget, PHP and everything else fit into the memory together.
pub(super) fn memory_for_all(facts: &Facts) -> Option<Finding> {
    let memory = facts.usable_memory()?;
    let budget = facts.page_budget?;
    let php = all_children_bytes(facts);
    let wanted = budget.saturating_add(php);
    let quarter = (memory / 4 / 1_000_000).max(16);
    // One tenth is left for the kernel, the minimum of the database, and the rest.
    (wanted > memory / 10 * 9).then(|| Finding {
        name: "memory-for-all",
        weight: Weight::WillFail,
        what: "When the page budget is full and all PHP children are busy, memory is exhausted.".into(),
        evidence: format!(
            "The page budget ({}) and all children of php-fpm ({}) need {} of {}.",
            shown(budget),
            shown(php),
            shown(wanted),
            shown(memory)
        ),
        // A page budget that is already small is not the cause.
        command: if budget > quarter * 1_000_000 {
format!("memory = \"{quarter}M\"    # in Pagewell's configuration")
} else {
fewer(facts, memory / 2).unwrap_or_default()
},
        risk: "A smaller budget caches fewer pages (watch `evicted`); fewer children render fewer pages at a time.",
    })
}

/// Checks whether transparent huge pages are enabled for all processes.
pub(super) fn huge_pages(facts: &Facts) -> Option<Finding> {
    (facts.kernel.huge_pages.as_deref() == Some("always")).then(|| Finding {
        name: "huge-pages",
        weight: Weight::Note,
        what: "Processes occupy more memory than they use, and pause while the kernel builds huge pages.".into(),
        evidence: "/sys/kernel/mm/transparent_hugepage/enabled says [always].".into(),
        command: "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled".into(),
        risk: "Few programs gain from huge pages that they did not request; those become a little slower.",
    })
}

/// Checks whether logs are written to a rotating disk.
pub(super) fn turning_disk(facts: &Facts) -> Option<Finding> {
    facts.turning_disk.filter(|turns| *turns).map(|_| Finding {
        name: "slow-disk",
        weight: Weight::Slow,
        what: "Logs, and the database if it is on the same disk, are written to a rotating disk.".into(),
        evidence: "`rotational` of the disk under /var/log is 1.".into(),
        command:
            "lsblk -o NAME,ROTA,MOUNTPOINT    # and move files that are written often to a disk with ROTA 0"
                .into(),
        risk: "None: the command only reads. (Some virtual disks report 1 without rotating.)",
    })
}

/// Checks whether disks are nearly full: that of the logs, and those of snapshots, records and the access log.
pub(super) fn disks(facts: &Facts) -> Vec<Finding> {
    facts.disks.iter().filter_map(full).collect()
}

fn full(disk: &DiskSpace) -> Option<Finding> {
    let DiskSpace { directory, free, files } = disk;
    let free_text = format!("{} is free under {directory}", shown(*free));
    let make_room =
        || format!("df -h {directory}    # then remove files there, or use a larger disk");
    let (what, evidence, command) = match files {
        WrittenFiles::Snapshots(bytes) if *free < bytes.saturating_add(JOURNAL_SPACE) => (
            "The next snapshot does not fit on its disk, so a restart begins with the pages of an older one, or with \
             none.",
            format!("{free_text}; the pages have {}.", shown(*bytes)),
            make_room(),
        ),
        WrittenFiles::Records if *free < FULL_SPACE => (
            "The disk of snapshot.directory is full, so a restart loses what a trial or an audit has counted.",
            format!("{free_text}."),
            make_room(),
        ),
        WrittenFiles::AccessLog if *free < FULL_SPACE => (
            "The disk of the access log is full, so its lines are lost.",
            format!("{free_text}."),
            make_room(),
        ),
        WrittenFiles::MachineLogs if *free < LOG_SPACE => (
            "When the disk is full, the database refuses writes.",
            format!("{free_text}."),
            "du -xh -d 2 /var | sort -h | tail".into(),
        ),
        _ => return None,
    };
    Some(Finding {
        name: "disk-full",
        weight: Weight::WillFail,
        what: what.into(),
        evidence,
        command,
        risk: "None: the command only reads.",
    })
}

/// Checks whether the clock is slow to read, or not synchronised.
pub(super) fn clock(facts: &Facts) -> Option<Finding> {
    let source = facts.clock_source.as_deref().unwrap_or("tsc");
    if matches!(source, "hpet" | "acpi_pm" | "refined-jiffies" | "jiffies") {
        return Some(Finding {
            name: "clock-source",
            weight: Weight::Slow,
            what: "Every request reads the clock, which needs a system call and slow hardware here.".into(),
            evidence: format!("The kernel's clock source is {source}."),
            command: "cat /sys/devices/system/clocksource/clocksource0/available_clocksource    # then echo tsc (or kvm-clock) to current_clocksource beside it".into(),
            risk: "The kernel may have rejected tsc for a reason: dmesg | grep -i clocksource.",
        });
    }
    (facts.clock_kept == Some(false)).then(|| Finding {
        name: "clock-not-kept",
        weight: Weight::Note,
        what: "The clock is not synchronised: dates, cookies and certificates depend on it.".into(),
        evidence: "No time service runs (systemd-timesyncd, chronyd, ntpd).".into(),
        command: "timedatectl set-ntp true".into(),
        risk: "A clock that is far off is corrected in one step.",
    })
}
