//! The new process, as the old one sees it: a change is acknowledged only after the new process has
//! applied it. Changes before the new process serves are queued and wait for that.
//!
//! Locks: `writer` while a frame is written, `waiting` to add or remove a waiter; `waiting` is
//! taken under `writer` only to release all waiters. A waiting change blocks its thread, whose
//! other tasks move to another thread first (`Changes::hand_on`). They may be the tasks that follow
//! databases, which must end before the new process can begin. A change waits for at most
//! [`PATIENCE`]. Then the connection is cut, so the new process knows that it has missed a change,
//! and purges its pages.

use super::frame::{self, Answer, Frame, NumberedFrame};
use page_store::{ChangeTarget, Strength};
use site_state::propagation::Propagation;
use site_state::successor::{HandOver, SuccessorProcess};
use std::collections::HashMap;
use std::io::{self, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;
use telemetry::runtime::off_the_way;
use tokio::sync::oneshot;

/// How long a change waits for the new process.
const PATIENCE: Duration = Duration::from_secs(30);

/// Whether the new process answers from its cache. Decided once, by whichever comes first: its
/// report that it is ready, or the end of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Serves {
    NotYet,
    /// The new process answers from its cache, or has done so.
    Yes,
    /// The new process never will, because it waits for permission.
    Never,
}

/// The waiter for an answer.
enum Waiting {
    Here(mpsc::SyncSender<Propagation>),
    InATask(oneshot::Sender<Propagation>),
}

/// The process that has taken over.
pub struct Successor {
    stream: UnixStream,
    /// Frames that are queued until the new process may receive them; `None` from then on.
    writer: Mutex<Option<Vec<u8>>>,
    waiting: Mutex<Option<HashMap<u64, Waiting>>>,
    serves: Mutex<Serves>,
    last: AtomicU64,
}

impl Successor {
    /// Creates the state for the process at the other end. [`Successor::listen`] must run.
    pub fn new(stream: UnixStream) -> Successor {
        let waiting = Mutex::new(Some(HashMap::new()));
        // Setting a non-zero timeout cannot fail (socket(7)).
        let _ = stream.set_write_timeout(Some(PATIENCE));
        let writer = Mutex::new(Some(Vec::new()));
        let serves = Mutex::new(Serves::NotYet);
        Successor { stream, writer, waiting, serves, last: AtomicU64::new(0) }
    }

    /// Sends this line, and then all queued frames. No frame is sent before.
    ///
    /// # Errors
    /// The I/O error of the system.
    pub fn begin(&self, line: &str) -> io::Result<()> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = format!("{line}\n").into_bytes();
        all.append(&mut writer.take().unwrap_or_default());
        (&self.stream).write_all(&all)
    }

    /// Reads answers until the connection ends, then releases all waiters. The first answer reports
    /// that the new process is ready: it gets permission to serve, and `serves` is called. Blocks
    /// the thread.
    pub fn listen(&self, serves: impl FnOnce()) {
        let mut serves = Some(serves);
        while let Ok(answer) = Answer::read(&mut &self.stream) {
            if let Some(serves) = serves.take() {
                if self.decide(Serves::Yes) == Serves::Never {
                    break;
                }
                self.write(&NumberedFrame { number: 0, host: String::new(), frame: Frame::Serve });
                serves();
                continue;
            }
            let waiting = self.waiting().as_mut().and_then(|all| all.remove(&answer.number));
            match waiting {
                // A waiter that timed out has dropped its receiver.
                Some(Waiting::Here(who)) => drop(who.send(answer.waited)),
                Some(Waiting::InATask(who)) => drop(who.send(answer.waited)),
                None => {}
            }
        }
        self.cut();
    }

    /// Waits until the databases' changes are applied there, which that process does for as long as `bound`.
    async fn databases_applied(&self, host: Option<&str>, bound: Duration) -> Propagation {
        let (who, answer) = oneshot::channel();
        let (mut who, mut told) = (Some(who), None);
        // Writing may block while other frames are written.
        off_the_way(&mut || {
            told =
                who.take().and_then(|who| self.tell(host, Frame::Barrier, Waiting::InATask(who)));
        });
        match told {
            Some(()) => match tokio::time::timeout(bound + PATIENCE, answer).await {
                Ok(Ok(waited)) => waited,
                Ok(Err(_)) | Err(_) => Propagation::TimedOut,
            },
            None => Propagation::TimedOut,
        }
    }

    /// Stops waiting for the new process. Returns whether it serves all the same.
    pub fn give_up(&self) -> bool {
        self.decide(Serves::Never) == Serves::Yes || {
            self.cut();
            false
        }
    }

    fn tell(&self, host: Option<&str>, frame: Frame, who: Waiting) -> Option<()> {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        self.waiting().as_mut()?.insert(number, who);
        self.write(&NumberedFrame { number, host: host.unwrap_or_default().to_owned(), frame })
    }

    fn write(&self, numbered: &NumberedFrame) -> Option<()> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(held) = writer.as_mut() {
            held.append(&mut numbered.bytes());
            return Some(());
        }
        // After a partial write the connection cannot be used any more.
        (&self.stream).write_all(&numbered.bytes()).map_err(|_| self.cut()).ok()
    }

    /// Decides whether the new process serves, unless that is decided already. Returns the
    /// decision.
    fn decide(&self, serves: Serves) -> Serves {
        let mut decided = self.serves();
        if *decided == Serves::NotYet {
            *decided = serves;
        }
        *decided
    }

    /// Closes the connection and releases all waiters.
    fn cut(&self) {
        self.decide(Serves::Never);
        // It may be cut already.
        let _ = self.stream.shutdown(Shutdown::Both);
        *self.waiting() = None;
    }

    fn serves(&self) -> MutexGuard<'_, Serves> {
        self.serves.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn waiting(&self) -> MutexGuard<'_, Option<HashMap<u64, Waiting>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SuccessorProcess for Successor {
    /// Tells of a change of the site with this host, and waits until it is applied. Blocks.
    fn change(
        &self,
        host: Option<&str>,
        targets: &[ChangeTarget<'_>],
        strength: Strength,
    ) -> HandOver {
        let (who, answer) = mpsc::sync_channel(1);
        let told = self.tell(host, frame::change(strength, targets), Waiting::Here(who));
        match told.and_then(|()| answer.recv_timeout(PATIENCE).ok()) {
            Some(_) => HandOver::Applied,
            None => {
                self.cut();
                HandOver::Lost
            }
        }
    }

    /// Whether it answers from memory, or has.
    fn has_served(&self) -> bool {
        *self.serves() == Serves::Yes
    }

    /// Reports that no further change will follow, because no operation in flight can cause one.
    fn over(&self) {
        let _ = self.write(&NumberedFrame { number: 0, host: String::new(), frame: Frame::Over });
        self.cut();
    }

    fn barrier<'s>(
        &'s self,
        host: Option<&'s str>,
        bound: Duration,
    ) -> Pin<Box<dyn Future<Output = Propagation> + Send + 's>> {
        Box::pin(self.databases_applied(host, bound))
    }
}
