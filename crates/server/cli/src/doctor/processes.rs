//! The running processes by name: their ids, and the memory of those with a given title.
//!
//! They are read once from `/proc`. Processes that exit meanwhile are left out, and so is this process.

use std::fs;

/// The processes that ran when [`Processes::now`] was called.
pub(super) struct Processes {
    all: Vec<ListedProcess>,
}

struct ListedProcess {
    pid: u32,
    name: String,
    title: String,
}

impl Processes {
    /// Reads all processes from `/proc`.
    pub(super) fn now() -> Processes {
        let own = std::process::id();
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let look = |pid| {
            let text = |file: &str| {
                let bytes = fs::read(format!("/proc/{pid}/{file}")).ok()?;
                Some(String::from_utf8_lossy(&bytes).replace('\0', " ").trim().to_owned())
            };
            Some(ListedProcess { pid, name: text("comm")?, title: text("cmdline")? })
        };
        Processes { all: pids.filter(|pid| *pid != own).filter_map(look).collect() }
    }

    /// The id of the first process whose name begins with `name`.
    pub(super) fn first(&self, name: &str) -> Option<u32> {
        self.all.iter().find(|one| one.name.starts_with(name)).map(|one| one.pid)
    }

    /// Whether a process has a title (command line) for which `is` returns true.
    pub(super) fn any_titled(&self, is: impl Fn(&str) -> bool) -> bool {
        self.all.iter().any(|one| is(&one.title))
    }

    /// Average resident memory, in bytes, of the processes with exactly this title.
    pub(super) fn average_bytes(&self, title: &str) -> Option<u64> {
        let like = self.all.iter().filter(|one| one.title == title);
        let bytes: Vec<u64> = like.filter_map(|one| resident_bytes(one.pid)).collect();
        bytes.iter().sum::<u64>().checked_div(bytes.len() as u64)
    }
}

fn resident_bytes(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}
