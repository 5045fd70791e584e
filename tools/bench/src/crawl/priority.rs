//! The priorities of a run: its parts share the cores of one machine, but act as if they had machines of their own.
//!
//! | part | "nice" value | why |
//! |---|---|---|
//! | visitors | −10 | browsers are other machines, which do not wait for a core of the server |
//! | the server under test | 0 | `CPUWeight` in `contrib/systemd/pagewell.service` puts it before PHP |
//! | PHP, MariaDB | 5 | the site; a third of the server's weight |
//! | the crawler | 19 | another machine, for which nobody waits: a twentieth of PHP's weight |
//!
//! If the kernel groups tasks by session (`sched_autogroup_enabled`), the values count within a session only. Pagewell,
//! nginx, PHP and MariaDB stay in the session of this program.

use rustix::process::{Pid, setpriority_pgrp, setpriority_process};

/// Visitors. Without the permission for it, they have the priority of the server.
pub const VISITOR_NICE: i32 = -10;
/// The priority of PHP and MariaDB.
pub const SITE_NICE: i32 = 5;
/// The process of the crawler.
pub const CRAWLER_NICE: i32 = 19;

/// Sets the priority of this thread, and of those that it starts.
pub fn set_nice(nice: i32) {
    // On Linux this is the thread, not the process.
    let _ = setpriority_process(None, nice);
}

/// Sets the priority of all processes of a group, by its first process.
///
/// # Errors
/// The process has ended, or those of the system.
pub fn set_group_nice(leader: Option<u32>, nice: i32) -> Result<(), String> {
    let group = leader.and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
    let group = group.ok_or("bench: a process of the site has ended")?;
    setpriority_pgrp(Some(group), nice).map_err(|error| super::system(error.into()))
}
