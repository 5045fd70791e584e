//! The one place where `unsafe` is needed: to have the kernel end a child process when Pagewell
//! itself is killed, something has to run in the child between fork and exec. Everything else about
//! processes is done with safe calls.

use tokio::process::Command;

/// Has the kernel send SIGTERM to the process that `command` starts when Pagewell ends, however it
/// ends. The kernel goes by the thread that starts the process: it must be one that lives as long as
/// Pagewell, so the main thread or a worker of the runtime, never one of its blocking pool.
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
