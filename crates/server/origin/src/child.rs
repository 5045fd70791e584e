//! Ends a child process when Pagewell is killed, and limits its open files. For this, code has to run in
//! the child between fork and exec, which needs `unsafe`. All other process handling uses safe calls.
//!
//! This module contains nothing else.

use rustix::process::{Resource, Rlimit, setrlimit};
use tokio::process::Command;

/// Makes the kernel send SIGTERM to the process that `command` starts when Pagewell ends in any way.
/// The signal is tied to the thread that starts the process. So call this from a thread that lives as
/// long as Pagewell: the main thread or a worker of the runtime, never the blocking pool.
#[allow(unsafe_code)]
pub fn end_with_us(command: &mut Command) {
    let set = || {
        let signal = Some(rustix::process::Signal::TERM);
        rustix::process::set_parent_process_death_signal(signal).map_err(std::io::Error::from)
    };
    // SAFETY: between fork and exec only async-signal-safe calls are allowed. The closure makes a
    // single system call (prctl), allocates nothing, takes no lock and touches no shared state.
    unsafe { command.pre_exec(set) };
}

/// Gives the process that `command` starts this limit of open files. If the system refuses, it keeps Pagewell's.
#[allow(unsafe_code)]
pub fn limit_open_files(command: &mut Command, limit: Rlimit) {
    let set = move || {
        let _ = setrlimit(Resource::Nofile, limit);
        Ok(())
    };
    // SAFETY: as for `end_with_us`. The closure makes a single system call (prlimit64), allocates nothing, takes no
    // lock and touches no shared state: it has a copy of the limit.
    unsafe { command.pre_exec(set) };
}
