//! Runs long operations on threads that also answer requests.
//!
//! Each of tokio's threads has a queue of tasks; a task that blocks delays the tasks behind it.

/// Runs a long operation. The thread's other tasks are moved to another thread first, so that no
/// cache hit waits.
pub fn off_the_way(work: &mut dyn FnMut()) {
    let runtime = tokio::runtime::Handle::try_current().map(|runtime| runtime.runtime_flavor());
    match runtime {
        Ok(tokio::runtime::RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}
