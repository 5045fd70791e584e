//! The consequences of a panic, which is always a bug in Pagewell.
//!
//! | a panic in | ends | consequence |
//! |---|---|---|
//! | the task of a connection | that connection (HTTP/2: that request) | all others continue |
//! | a fetch | that fetch | its client gets 500 (`bug`), its followers start another fetch: `render` |
//! | work that a request waits for (`spawn_blocking`) | that request | the response is an error |
//! | the store, while it holds a lock | Pagewell, with status [`BROKEN`] | the service manager restarts it |
//!
//! Each panic is counted and logged with its location. The runtime isolates panics of tasks. Locks of
//! this crate ignore poisoning, because each guards values that are valid at every moment. The store's
//! locks do not ([0050](../../../docs/decisions/operation.md)): after a partial change it
//! is unknown which pages were purged, and each later access would panic as well. A restart is better
//! than a server that answers no request.
//!
//! With the feature for tests (`settable-clock`), a panic can be provoked.

use std::panic::PanicHookInfo;
use std::sync::atomic::{AtomicU64, Ordering};

/// The exit status if the store is inconsistent: EX_SOFTWARE of sysexits(3).
pub const BROKEN: i32 = 70;

static PANICS: AtomicU64 = AtomicU64::new(0);

/// How many panics there have been since the start.
pub fn count() -> u64 {
    PANICS.load(Ordering::Relaxed)
}

/// Installs the panic hook, which counts and logs panics, and exits after a panic in the store.
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

/// A place where tests can provoke a panic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// While a request is answered, in the task of its connection.
    Request,
    /// After the origin has answered a fetch.
    Render,
    /// In the store, as after a panic under one of its locks.
    Store,
}

#[cfg(feature = "settable-clock")]
mod provoked {
    use super::{AtomicU64, Ordering, Place};

    /// The place of the next panic, plus one; 0 for none.
    static AT: AtomicU64 = AtomicU64::new(0);

    impl Place {
        /// The place with this name, as in the tests' control call.
        pub fn named(name: &str) -> Option<Place> {
            let all =
                [("request", Place::Request), ("render", Place::Render), ("store", Place::Store)];
            all.into_iter().find(|(known, _)| *known == name).map(|(_, place)| place)
        }
    }

    /// Makes the next call of [`may_happen`] for this place panic, once.
    pub fn provoke(place: Place) {
        AT.store(place as u64 + 1, Ordering::SeqCst);
    }

    /// Panics if a test has requested it for this place.
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

/// Does nothing; only test builds can provoke panics.
#[cfg(not(feature = "settable-clock"))]
#[inline(always)]
pub fn may_happen(_place: Place) {}
