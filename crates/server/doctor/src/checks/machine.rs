//! Memory, swap, cgroup limits, disk and clock.
//!
//! Of the memory of the cgroup and of the machine the smaller counts. Kernel counters run since the boot, so
//! they only matter if they rise.

use super::php::{all_children_bytes, fewer};
use super::{lately, shown};
use crate::{Facts, Finding, Weight};

/// Below this number of free bytes, the file system of the logs will soon be full.
const LOG_SPACE: u64 = 500_000_000;

/// Checks whether memory in use has been swapped to disk.
pub(super) fn swap(facts: &Facts) -> Option<Finding> {
    let memory = facts.memory;
    let used = memory.swap_total?.saturating_sub(memory.swap_free?);
    let back = memory.swapped_in.unwrap_or(0);
    (used > 64_000_000 && back > 1000).then(|| Finding {
        name: "swap",
        weight: Weight::Slow,
        what: "Memory that is in use lies on a disk: pages from memory become pages from disk."
            .into(),
        evidence: format!("{} of swap are used, and {back} pages were brought back.", shown(used)),
        command:
            "sysctl -w vm.swappiness=10    # and a smaller `memory`, or fewer php-fpm children"
                .into(),
        risk: "With less swapping a machine that is too small kills processes sooner instead.",
    })
}

/// Checks whether a process was killed for lack of memory.
pub(super) fn killed(facts: &Facts) -> Option<Finding> {
    let killed = facts.cgroup.killed.filter(|count| *count > 0)?;
    let (weight, lately) = lately(killed, facts.before.cgroup.killed);
    Some(Finding {
        name: "killed-for-memory",
        weight,
        what: "Processes were killed because memory had run out.".into(),
        evidence: format!("oom_kill in the group's memory.events is {killed}; {lately}."),
        command: "journalctl -k -g 'killed process'    # names them; then fewer children, a smaller `memory`, or more memory".into(),
        risk: "None: it only looks.",
    })
}

/// Checks whether a CPU limit throttles the cgroup.
pub(super) fn throttled(facts: &Facts) -> Option<Finding> {
    let throttled = facts.cgroup.throttled.filter(|count| *count > 100)?;
    Some(Finding {
        name: "cpu-throttled",
        weight: Weight::Slow,
        what: "The group's share of CPU was used up: everything stands still for up to 100 ms then.".into(),
        evidence: format!("nr_throttled in the group's cpu.stat is {throttled}."),
        command: "systemctl set-property pagewell.service CPUQuota=    # or a larger cpu limit of the container".into(),
        risk: "Other services of the machine get less when this one is busy.",
    })
}

/// Checks whether the page budget, PHP and everything else fit into the memory together.
pub(super) fn memory_for_all(facts: &Facts) -> Option<Finding> {
    let memory = facts.cgroup.memory_max.into_iter().chain(facts.memory.total).min()?;
    let budget = facts.page_budget?;
    let php = all_children_bytes(facts);
    let wanted = budget.saturating_add(php);
    let quarter = (memory / 4 / 1_000_000).max(16);
    // One tenth is left for the kernel, the minimum of the database, and the rest.
    (wanted > memory / 10 * 9).then(|| Finding {
        name: "memory-for-all",
        weight: Weight::WillFail,
        what: "When the page budget is full and PHP is busy, memory runs out.".into(),
        evidence: format!(
            "The page budget ({}) and all children of php-fpm ({}) want {} of {}.",
            shown(budget),
            shown(php),
            shown(wanted),
            shown(memory)
        ),
        // A page budget that is already small is not the cause.
        command: match budget > quarter * 1_000_000 {
            true => format!("memory = \"{quarter}M\"    # in Pagewell's configuration"),
            false => fewer(facts, memory / 2).unwrap_or_default(),
        },
        risk: "A smaller budget keeps fewer pages (watch `evicted`); fewer children render fewer at once.",
    })
}

/// Checks whether transparent huge pages are enabled for all processes.
pub(super) fn huge_pages(facts: &Facts) -> Option<Finding> {
    (facts.kernel.huge_pages.as_deref() == Some("always")).then(|| Finding {
        name: "huge-pages",
        weight: Weight::Note,
        what: "Processes take more memory than they use, and stand still while pages are put together.".into(),
        evidence: "/sys/kernel/mm/transparent_hugepage/enabled says [always].".into(),
        command: "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled".into(),
        risk: "A program that gained from it without asking (few do) becomes a little slower.",
    })
}

/// Checks whether logs are written to a rotating disk.
pub(super) fn turning_disk(facts: &Facts) -> Option<Finding> {
    facts.turning_disk.filter(|turns| *turns).map(|_| Finding {
        name: "slow-disk",
        weight: Weight::Slow,
        what: "Logs, and the database if it is there, are written to a disk that turns.".into(),
        evidence: "`rotational` of the disk under /var/log is 1.".into(),
        command:
            "lsblk -o NAME,ROTA,MOUNTPOINT    # and move what is written often to one with ROTA 0"
                .into(),
        risk: "None: it only looks. (Some virtual disks say so without turning.)",
    })
}

/// Checks whether the disk of the logs is nearly full.
pub(super) fn log_space(facts: &Facts) -> Option<Finding> {
    let space = facts.log_space.filter(|space| *space < LOG_SPACE)?;
    Some(Finding {
        name: "disk-full",
        weight: Weight::WillFail,
        what: "When the disk is full, the database stops taking writes.".into(),
        evidence: format!("{} are free under /var/log.", shown(space)),
        command: "du -xh --max-depth=2 /var | sort -h | tail".into(),
        risk: "None: it only looks.",
    })
}

/// Checks whether the clock is slow to read, or not synchronised.
pub(super) fn clock(facts: &Facts) -> Option<Finding> {
    let source = facts.clock_source.as_deref().unwrap_or("tsc");
    if matches!(source, "hpet" | "acpi_pm" | "refined-jiffies" | "jiffies") {
        return Some(Finding {
            name: "clock-source",
            weight: Weight::Slow,
            what: "Reading the clock, which every request does, goes through the kernel and slow hardware.".into(),
            evidence: format!("The kernel's clock source is {source}."),
            command: "cat /sys/devices/system/clocksource/clocksource0/available_clocksource    # then echo tsc (or kvm-clock) to current_clocksource beside it".into(),
            risk: "The kernel may have left tsc for a reason: dmesg | grep -i clocksource.",
        });
    }
    (facts.clock_kept == Some(false)).then(|| Finding {
        name: "clock-not-kept",
        weight: Weight::Note,
        what: "Nothing keeps the clock right: dates, cookies and certificates go wrong with it."
            .into(),
        evidence: "No time service runs (systemd-timesyncd, chronyd, ntpd).".into(),
        command: "timedatectl set-ntp true".into(),
        risk: "A clock that is far off jumps once.",
    })
}
