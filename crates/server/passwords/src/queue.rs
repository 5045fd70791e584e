//! Checks of passwords: remembered ones, and those for which a hash is computed.
//!
//! A right password is remembered for five minutes, as an HMAC of the content of the file, and of user and password as
//! the client has encoded them, with a key that only this process has. So a changed file is a new start, and memory
//! reveals no password. Nobody can compute an HMAC without the key, so the time of a look-up tells nothing about the
//! others. The table is bounded; if it is full, the oldest entry is replaced. A wrong password is never remembered.
//!
//! A client that has sent too many wrong passwords for a user ([`WrongPasswords`]) gets no further hash: asked before a
//! check waits, and at its turn, which counts a wrong one. As many more as are computed at once may pass the limit.
//!
//! Hashes are computed on threads for blocking work, few at once. The permit of a hash belongs to the thread, so a
//! client that disconnects does not make room for another hash while its own still runs.

use crate::basic::{Credentials, token_of};
use crate::file::PasswordFile;
use ring::hmac;
use ring::rand::SystemRandom;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::sync::Semaphore;

/// How long a right password is remembered.
const REMEMBERED_FOR: Duration = Duration::from_secs(300);
/// The most remembered passwords: 64 KiB.
const REMEMBERED_MAX: usize = 1_024;
/// How many checks wait for their turn.
const WAITING_MAX: usize = 64;

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PasswordOutcome {
    /// The user exists, and has this password.
    Right,
    /// There is no such user, or the password is another one.
    Wrong,
    /// Too many checks are waiting.
    Busy,
    /// The client has sent too many wrong passwords for this user: the seconds until it may send another.
    Limited(u32),
}

/// The wrong passwords that a client has sent for one user.
pub trait WrongPasswords: Send + Sync + 'static {
    /// Whether the client may send another password.
    ///
    /// # Errors
    /// The seconds until it may.
    fn may_try(&self) -> Result<(), u32>;

    /// Counts a wrong password.
    fn count(&self);
}

/// The checks of a process.
pub struct PasswordQueue {
    /// `None` without randomness: then nothing is remembered.
    key: Option<hmac::Key>,
    /// The HMACs of right passwords, each with the time of its check.
    remembered: RwLock<HashMap<[u8; 32], Duration>>,
    /// The places of checks that wait or run.
    places: Arc<Semaphore>,
    /// The permits to compute a hash.
    turns: Arc<Semaphore>,
}

impl PasswordQueue {
    /// A queue that computes `at_once` hashes at the same time.
    pub fn new(at_once: usize) -> PasswordQueue {
        let at_once = at_once.max(1);
        PasswordQueue {
            key: hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new()).ok(),
            remembered: RwLock::default(),
            places: Arc::new(Semaphore::new(at_once + WAITING_MAX)),
            turns: Arc::new(Semaphore::new(at_once)),
        }
    }

    /// Whether this value of `Authorization` has a password that is remembered as right, for the file as last read. Takes no
    /// turn and allocates nothing.
    pub fn remembers(&self, file: &PasswordFile, value: &[u8], now: Duration) -> bool {
        let (Some(key), Some(token)) = (&self.key, token_of(value)) else { return false };
        self.has(&name_of(key, &file.print(), token), now)
    }

    /// Checks the credentials of a client. `wrong`: those that it has sent before, if a hash is needed.
    pub async fn check<W: WrongPasswords>(
        &self,
        file: &PasswordFile,
        given: &Credentials,
        now: Duration,
        wrong: impl FnOnce() -> W,
    ) -> PasswordOutcome {
        let users = file.users();
        let name = self.key.as_ref().map(|key| name_of(key, &users.print, given.token()));
        let is_known = || name.is_some_and(|name| self.has(&name, now));
        if is_known() {
            return PasswordOutcome::Right;
        }
        let wrong = wrong();
        if let Err(seconds) = wrong.may_try() {
            return PasswordOutcome::Limited(seconds);
        }
        let Ok(place) = self.places.clone().try_acquire_owned() else {
            return PasswordOutcome::Busy;
        };
        let Ok(turn) = self.turns.clone().acquire_owned().await else {
            return PasswordOutcome::Busy;
        };
        // Meanwhile this password may have been checked for another request, or wrong ones of the client.
        if is_known() {
            return PasswordOutcome::Right;
        }
        if let Err(seconds) = wrong.may_try() {
            return PasswordOutcome::Limited(seconds);
        }
        let (user, password) = (given.user().to_owned(), given.password().to_vec());
        let checked = tokio::task::spawn_blocking(move || {
            let is_right = users.is_right(&user, &password);
            if !is_right {
                wrong.count();
            }
            drop((turn, place));
            is_right
        });
        match (checked.await, name) {
            (Ok(true), name) => {
                name.inspect(|name| self.remember(*name, now));
                PasswordOutcome::Right
            }
            (Ok(false) | Err(_), _) => PasswordOutcome::Wrong,
        }
    }

    fn has(&self, name: &[u8; 32], now: Duration) -> bool {
        let remembered = self.remembered.read().unwrap_or_else(PoisonError::into_inner);
        remembered.get(name).is_some_and(|at| now.saturating_sub(*at) < REMEMBERED_FOR)
    }

    fn remember(&self, name: [u8; 32], now: Duration) {
        let mut remembered = self.remembered.write().unwrap_or_else(PoisonError::into_inner);
        if remembered.len() >= REMEMBERED_MAX {
            remembered.retain(|_, at| now.saturating_sub(*at) < REMEMBERED_FOR);
        }
        if remembered.len() >= REMEMBERED_MAX
            && let Some(oldest) =
                remembered.iter().min_by_key(|(_, at)| **at).map(|(name, _)| *name)
        {
            remembered.remove(&oldest);
        }
        remembered.insert(name, now);
    }
}

/// The name under which a right password is remembered. All prints have the same length.
fn name_of(key: &hmac::Key, print: &[u8; 16], token: &[u8]) -> [u8; 32] {
    let mut context = hmac::Context::with_key(key);
    context.update(print);
    context.update(token);
    let mut name = [0; 32];
    name.copy_from_slice(context.sign().as_ref());
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// A file of one user, `anna` with the password `secret`; removed at the end.
    struct Place(std::path::PathBuf);

    impl Place {
        fn new(name: &str) -> Place {
            let path = std::env::temp_dir().join(format!("queue-{name}-{}", std::process::id()));
            std::fs::write(&path, "anna:$apr1$abcdefgh$h9FWgUz3n9YxylKLlR5SQ/\n").unwrap();
            Place(path)
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    /// Counts wrong passwords of one client, and allows so many.
    #[derive(Clone)]
    struct Counted(Arc<AtomicU32>, u32);

    impl Counted {
        fn allowing(most: u32) -> Counted {
            Counted(Arc::default(), most)
        }
    }

    impl WrongPasswords for Counted {
        fn may_try(&self) -> Result<(), u32> {
            if self.0.load(Ordering::SeqCst) < self.1 { Ok(()) } else { Err(7) }
        }

        fn count(&self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn any() -> Counted {
        Counted::allowing(u32::MAX)
    }

    /// The credentials `anna:secret` and `anna:wrong`.
    fn credentials() -> (Credentials, Credentials) {
        let read = |text: &str| Credentials::read(text.as_bytes()).unwrap();
        (read("Basic YW5uYTpzZWNyZXQ="), read("Basic YW5uYTp3cm9uZw=="))
    }

    #[tokio::test]
    async fn a_right_password_is_remembered_for_five_minutes_and_for_this_file() {
        let (place, queue) = (Place::new("remembered"), PasswordQueue::new(2));
        let file = PasswordFile::load(&place.0).unwrap();
        let (right, wrong) = credentials();
        let second = Duration::from_secs;
        assert_eq!(queue.check(&file, &wrong, second(1), any).await, PasswordOutcome::Wrong);
        assert_eq!(queue.check(&file, &right, second(1), any).await, PasswordOutcome::Right);
        let places = queue.places.clone().try_acquire_many_owned(66).unwrap();
        // Without a free place, only what is remembered can be right.
        assert_eq!(queue.check(&file, &right, second(300), any).await, PasswordOutcome::Right);
        assert_eq!(queue.check(&file, &right, second(301), any).await, PasswordOutcome::Busy);
        assert_eq!(queue.check(&file, &wrong, second(1), any).await, PasswordOutcome::Busy);
        std::fs::write(&place.0, "anna:$apr1$s$EpqI6uEp3OR4bun9kSXHW/\n").unwrap();
        assert_eq!(file.refresh(), Ok(true));
        assert_eq!(queue.check(&file, &right, second(2), any).await, PasswordOutcome::Busy);
        drop(places);
        assert_eq!(queue.check(&file, &right, second(2), any).await, PasswordOutcome::Wrong);
    }

    #[tokio::test]
    async fn a_plain_hit_finds_what_is_remembered_and_nothing_else() {
        let (place, queue) = (Place::new("plain"), PasswordQueue::new(2));
        let file = PasswordFile::load(&place.0).unwrap();
        let (right, _) = credentials();
        let second = Duration::from_secs;
        let value = b"Basic YW5uYTpzZWNyZXQ=";
        assert!(!queue.remembers(&file, value, second(1)), "it was not checked");
        assert_eq!(queue.check(&file, &right, second(1), any).await, PasswordOutcome::Right);
        assert!(queue.remembers(&file, value, second(300)));
        assert!(queue.remembers(&file, b"BASIC  YW5uYTpzZWNyZXQ=", second(300)));
        for wrong in [
            &b"Basic YW5uYTp3cm9uZw=="[..],
            b"Bearer YW5uYTpzZWNyZXQ=",
            b"YW5uYTpzZWNyZXQ=",
            b"Basic ",
            b"Basic",
            b"",
            b"Basic YW5uYTpzZWNyZXQ=, Basic YW5uYTpzZWNyZXQ=",
        ] {
            assert!(!queue.remembers(&file, wrong, second(1)), "{}", wrong.escape_ascii());
        }
        assert!(!queue.remembers(&file, value, second(301)), "five minutes have passed");
        std::fs::write(&place.0, "anna:$apr1$s$EpqI6uEp3OR4bun9kSXHW/\n").unwrap();
        assert_eq!(file.refresh(), Ok(true));
        assert!(!queue.remembers(&file, value, second(2)), "the file has changed");
    }

    #[tokio::test]
    async fn a_thousand_checks_at_once_are_bounded() {
        let (place, queue) = (Place::new("bounded"), Arc::new(PasswordQueue::new(2)));
        let file = Arc::new(PasswordFile::load(&place.0).unwrap());
        let (_, wrong) = credentials();
        // No check gets its turn until all have arrived.
        let turns = queue.turns.clone().try_acquire_many_owned(2).unwrap();
        let checks: Vec<_> = (0..1_000)
            .map(|_| {
                let (queue, file, wrong) = (queue.clone(), file.clone(), wrong.clone());
                tokio::spawn(async move { queue.check(&file, &wrong, Duration::ZERO, any).await })
            })
            .collect();
        while queue.places.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        let (right, _) = credentials();
        assert_eq!(queue.check(&file, &right, Duration::ZERO, any).await, PasswordOutcome::Busy);
        drop(turns);
        let mut outcomes = Vec::new();
        for check in checks {
            outcomes.push(check.await.unwrap());
        }
        let of = |wanted| outcomes.iter().filter(|outcome| **outcome == wanted).count();
        assert_eq!(of(PasswordOutcome::Right), 0);
        assert!(of(PasswordOutcome::Wrong) >= 66);
        assert_eq!(of(PasswordOutcome::Wrong) + of(PasswordOutcome::Busy), 1_000);
        assert_eq!(queue.places.available_permits(), 66);
    }

    #[tokio::test]
    async fn wrong_passwords_are_limited_and_a_remembered_one_is_not() {
        let (place, queue) = (Place::new("limited"), Arc::new(PasswordQueue::new(2)));
        let file = Arc::new(PasswordFile::load(&place.0).unwrap());
        let (right, wrong) = credentials();
        let client = Counted::allowing(3);
        let check = |given| queue.check(&file, given, Duration::ZERO, || client.clone());
        assert_eq!(check(&right).await, PasswordOutcome::Right);
        for _ in 0..3 {
            assert_eq!(check(&wrong).await, PasswordOutcome::Wrong);
        }
        assert_eq!(check(&wrong).await, PasswordOutcome::Limited(7));
        assert_eq!(check(&right).await, PasswordOutcome::Right, "it is remembered");
        let later = REMEMBERED_FOR + Duration::from_secs(1);
        let outcome = queue.check(&file, &right, later, || client.clone()).await;
        assert_eq!(outcome, PasswordOutcome::Limited(7));
        assert_eq!(queue.check(&file, &right, later, any).await, PasswordOutcome::Right);
    }

    #[tokio::test]
    async fn checks_that_wait_for_their_turn_do_not_evade_the_limit() {
        let (place, queue) = (Place::new("waiting"), Arc::new(PasswordQueue::new(2)));
        let file = Arc::new(PasswordFile::load(&place.0).unwrap());
        let client = Counted::allowing(5);
        let turns = queue.turns.clone().try_acquire_many_owned(2).unwrap();
        let checks: Vec<_> = (0..60)
            .map(|_| {
                let (queue, file, client) = (queue.clone(), file.clone(), client.clone());
                let (_, wrong) = credentials();
                tokio::spawn(
                    async move { queue.check(&file, &wrong, Duration::ZERO, || client).await },
                )
            })
            .collect();
        while queue.places.available_permits() > 6 {
            tokio::task::yield_now().await;
        }
        drop(turns);
        let mut computed = 0;
        for check in checks {
            computed += u32::from(check.await.unwrap() == PasswordOutcome::Wrong);
        }
        assert_eq!(computed, client.0.load(Ordering::SeqCst));
        assert!((5..=6).contains(&computed), "{computed} hashes");
    }

    #[test]
    fn the_table_is_bounded() {
        let queue = PasswordQueue::new(2);
        for number in 0..5_000_u64 {
            let mut name = [0; 32];
            name[..8].copy_from_slice(&number.to_le_bytes());
            queue.remember(name, Duration::from_millis(number));
            assert!(queue.has(&name, Duration::from_millis(number)));
        }
        assert_eq!(queue.remembered.read().unwrap().len(), REMEMBERED_MAX);
    }
}
