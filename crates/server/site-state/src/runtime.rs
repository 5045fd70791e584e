//! Work that takes long on a thread that also answers requests.
//!
//! tokio's threads each have a queue of tasks; one that blocks holds up the tasks behind it.

/// Does work that takes long. The thread's other tasks go to another thread first, so that no cache hit waits.
pub fn off_the_way(work: &mut dyn FnMut()) {
    let runtime = tokio::runtime::Handle::try_current().map(|runtime| runtime.runtime_flavor());
    match runtime {
        Ok(tokio::runtime::RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}
