//! The process that has taken over, as the old one sees it: who tells it of a change waits until it has
//! applied it, and only then the change is acknowledged. What is told before the new process serves waits
//! for that.
//!
//! Locks: `writer` for as long as a frame is written, `waiting` to put in or take out who waits; `waiting`
//! under `writer` only to say that nobody waits any more. Who waits for a change holds up his thread, which
//! serves nobody else meanwhile (`Site::hand_on`): the new process may only begin when the tasks of this one
//! have ended that follow databases, and they may be that thread's. Never longer than [`PATIENCE`]: then the
//! connection is cut, by which the new process knows that it has missed something, and drops its pages.

use super::frame::{self, Answer, Frame, Numbered};
use crate::database::Waited;
use crate::site::off_the_way;
use page_store::{ChangeTarget, Strength};
use std::collections::HashMap;
use std::io::{self, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;
use tokio::sync::oneshot;

/// How long a change waits for the new process.
const PATIENCE: Duration = Duration::from_secs(30);

/// What became of a change that was to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handed {
    /// It is applied there.
    Applied,
    /// Nobody is there (any more).
    Lost,
}

/// Whether the new process answers from memory. Decided once, by whichever comes first: its word that it is
/// ready, or the end of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Serves {
    NotYet,
    /// It does, or has.
    Yes,
    /// It never will: it waits to be told that it may.
    Never,
}

/// Who waits for an answer.
enum Waiting {
    Here(mpsc::SyncSender<Waited>),
    InATask(oneshot::Sender<Waited>),
}

/// The process that has taken over.
pub struct Successor {
    stream: UnixStream,
    /// What waits to be written until the new process may have it; none from then on.
    writer: Mutex<Option<Vec<u8>>>,
    waiting: Mutex<Option<HashMap<u64, Waiting>>>,
    serves: Mutex<Serves>,
    last: AtomicU64,
}

impl Successor {
    /// The one at the other end. [`Successor::listen`] has to run.
    pub fn new(stream: UnixStream) -> Successor {
        let waiting = Mutex::new(Some(HashMap::new()));
        // It can always be set (socket(7)).
        let _ = stream.set_write_timeout(Some(PATIENCE));
        let writer = Mutex::new(Some(Vec::new()));
        let serves = Mutex::new(Serves::NotYet);
        Successor { stream, writer, waiting, serves, last: AtomicU64::new(0) }
    }

    /// Says this line, and then what it was to be told meanwhile: nobody is told anything before.
    ///
    /// # Errors
    /// As the system says.
    pub fn begin(&self, line: &str) -> io::Result<()> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = format!("{line}\n").into_bytes();
        all.append(&mut writer.take().unwrap_or_default());
        (&self.stream).write_all(&all)
    }

    /// Reads answers until the connection ends; then nobody waits any more. With the first the new process
    /// says that it is ready: it is told that it may serve, and `serves` is called. Blocks.
    pub fn listen(&self, serves: impl FnOnce()) {
        let mut serves = Some(serves);
        while let Ok(answer) = Answer::read(&mut &self.stream) {
            if let Some(serves) = serves.take() {
                if self.decide(Serves::Yes) == Serves::Never {
                    break;
                }
                self.write(&Numbered { number: 0, host: String::new(), frame: Frame::Serve });
                serves();
                continue;
            }
            let waiting = self.waiting().as_mut().and_then(|all| all.remove(&answer.number));
            match waiting {
                // Who has given up does not mind.
                Some(Waiting::Here(who)) => drop(who.send(answer.waited)),
                Some(Waiting::InATask(who)) => drop(who.send(answer.waited)),
                None => {}
            }
        }
        self.cut();
    }

    /// Tells of a change of the site with this host, and waits until it is applied. Blocks.
    pub fn change(
        &self,
        host: Option<&str>,
        targets: &[ChangeTarget<'_>],
        strength: Strength,
    ) -> Handed {
        let (who, answer) = mpsc::sync_channel(1);
        let told = self.tell(host, frame::change(strength, targets), Waiting::Here(who));
        match told.and_then(|()| answer.recv_timeout(PATIENCE).ok()) {
            Some(_) => Handed::Applied,
            None => {
                self.cut();
                Handed::Lost
            }
        }
    }

    /// Waits until the databases' changes are applied there, which that process does for as long as `bound`.
    pub async fn barrier(&self, host: Option<&str>, bound: Duration) -> Waited {
        let (who, answer) = oneshot::channel();
        let (mut who, mut told) = (Some(who), None);
        // It may have to wait for what others write.
        off_the_way(&mut || {
            told =
                who.take().and_then(|who| self.tell(host, Frame::Barrier, Waiting::InATask(who)));
        });
        match told {
            Some(()) => match tokio::time::timeout(bound + PATIENCE, answer).await {
                Ok(Ok(waited)) => waited,
                Ok(Err(_)) | Err(_) => Waited::Late,
            },
            None => Waited::Late,
        }
    }

    /// It is not waited for any more; whether it serves all the same.
    pub fn give_up(&self) -> bool {
        self.decide(Serves::Never) == Serves::Yes || {
            self.cut();
            false
        }
    }

    /// Whether it answers from memory, or has.
    pub fn has_served(&self) -> bool {
        *self.serves() == Serves::Yes
    }

    /// There is nothing more to tell: nothing is in hand any more that could change anything.
    pub fn over(&self) {
        let _ = self.write(&Numbered { number: 0, host: String::new(), frame: Frame::Over });
        self.cut();
    }

    fn tell(&self, host: Option<&str>, frame: Frame, who: Waiting) -> Option<()> {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        self.waiting().as_mut()?.insert(number, who);
        self.write(&Numbered { number, host: host.unwrap_or_default().to_owned(), frame })
    }

    fn write(&self, numbered: &Numbered) -> Option<()> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(held) = writer.as_mut() {
            held.append(&mut numbered.bytes());
            return Some(());
        }
        // What was written in part cannot be gone on with.
        (&self.stream).write_all(&numbered.bytes()).map_err(|_| self.cut()).ok()
    }

    /// Decides whether it serves, where that is open; what was decided.
    fn decide(&self, serves: Serves) -> Serves {
        let mut decided = self.serves();
        if *decided == Serves::NotYet {
            *decided = serves;
        }
        *decided
    }

    /// Nobody is told anything any more, and nobody waits.
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

/// Whether a site's pages are not this process's any more, and whose they are.
#[derive(Default)]
pub struct Leaving {
    is: AtomicBool,
    /// Whether it was not told of a change, though it may have answered from memory since.
    unheard: AtomicBool,
    successor: Mutex<Option<Arc<Successor>>>,
}

impl Leaving {
    /// They are.
    pub fn is(&self) -> bool {
        self.is.load(Ordering::Acquire)
    }

    /// It was not told of a change.
    pub fn unheard(&self) {
        self.unheard.store(true, Ordering::Release);
    }

    /// Whether there was such a change.
    pub fn is_unheard(&self) -> bool {
        self.unheard.load(Ordering::Acquire)
    }

    /// To whom they went last.
    pub fn successor(&self) -> Option<Arc<Successor>> {
        self.successor.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// They are nobody's: the server stops.
    pub fn alone(&self) {
        self.is.store(true, Ordering::Release);
    }

    /// They go to this one.
    pub fn to(&self, successor: Arc<Successor>) {
        *self.successor.lock().unwrap_or_else(PoisonError::into_inner) = Some(successor);
        self.is.store(true, Ordering::Release);
    }
}
