//! What becomes of a panic, which is a bug of Pagewell's own.
//!
//! | a panic in | ends | and then |
//! |---|---|---|
//! | the task of a connection | that connection (of HTTP/2: that request) | all others go on |
//! | a render | that render | its visitor gets 500 (`bug`), followers take another turn: `render` |
//! | work that a request waits for (`spawn_blocking`) | that request | it is answered with an error |
//! | the store, while it holds a lock | Pagewell, with status [`BROKEN`] | the service manager starts it anew |
//!
//! Each is counted and logged with its place. The runtime keeps panics of tasks apart; locks of this crate
//! are taken whether or not they are poisoned, for each guards values that are whole at every moment. The
//! store's are not ([0050](../../../docs/decisions/0050-what-a-panic-ends.md)): of a half-made change nobody
//! knows which pages it has dropped, and whoever comes next would panic as well. A server that is up and
//! answers nobody is worse than one that is started anew.
//!
//! With the feature of the tests (`settable-clock`) one can be provoked.

use std::panic::PanicHookInfo;
use std::sync::atomic::{AtomicU64, Ordering};

/// The exit status when the store is not to be trusted any more: EX_SOFTWARE of sysexits(3).
pub const BROKEN: i32 = 70;

static PANICS: AtomicU64 = AtomicU64::new(0);

/// How many there have been.
pub fn count() -> u64 {
    PANICS.load(Ordering::Relaxed)
}

/// From now on panics are counted and logged, and end what they should.
pub fn watch() {
    std::panic::set_hook(Box::new(|panic| {
        PANICS.fetch_add(1, Ordering::Relaxed);
        let message = message(panic);
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        let thread = std::thread::current().name().unwrap_or("unnamed").to_owned();
        tracing::error!(event = "panicked", %place, thread, message);
        if message.starts_with(page_store::POISONED) {
            tracing::error!(event = "store-broken", status = BROKEN);
            std::process::exit(BROKEN);
        }
    }));
}

fn message<'a>(panic: &'a PanicHookInfo<'_>) -> &'a str {
    let payload = panic.payload();
    let text = payload.downcast_ref::<&'static str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("of no kind that says anything")
}

/// A place where one can be provoked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// While a request is answered, in the task of its connection.
    Request,
    /// When the origin has answered a render.
    Render,
    /// In the store, as after a panic under one of its locks.
    Store,
}

#[cfg(feature = "settable-clock")]
mod provoked {
    use super::{AtomicU64, Ordering, Place};

    /// Where the next one is to happen, plus one.
    static AT: AtomicU64 = AtomicU64::new(0);

    impl Place {
        /// The place of this name.
        pub fn named(name: &str) -> Option<Place> {
            let all =
                [("request", Place::Request), ("render", Place::Render), ("store", Place::Store)];
            all.into_iter().find(|(known, _)| *known == name).map(|(_, place)| place)
        }
    }

    /// The next one who comes by there panics; nobody after him.
    pub fn provoke(place: Place) {
        AT.store(place as u64 + 1, Ordering::SeqCst);
    }

    /// Panics, if that was asked for.
    pub fn may_happen(place: Place) {
        let here = place as u64 + 1;
        if AT.load(Ordering::Relaxed) == here
            && AT.compare_exchange(here, 0, Ordering::SeqCst, Ordering::SeqCst).is_ok()
        {
            match place {
                Place::Store => panic!("{}", page_store::POISONED),
                place => panic!("provoked: {place:?}"),
            }
        }
    }
}

#[cfg(feature = "settable-clock")]
pub use provoked::{may_happen, provoke};

/// Nothing, in what is shipped.
#[cfg(not(feature = "settable-clock"))]
#[inline(always)]
pub fn may_happen(_place: Place) {}
