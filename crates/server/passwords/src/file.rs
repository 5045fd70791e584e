//! A password file: lines of a user, a colon, and a hash. Read at the start and when it has changed, as certificates are.
//!
//! Invariant: a file that cannot be used changes nothing, so that a half-written file locks nobody out. A file about which
//! the disk says nothing admits nobody: a user may have been removed from it. Each change is reported once.

use crate::hash::StoredHash;
use ring::digest;
use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, RwLock};
use std::time::Duration;
use tokio::sync::Semaphore;
use trusted_files::FileStamp;

/// The longest file, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// How often a file is looked at, while requests need it.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// How long a request waits for a look,
const LOOK_MAX: Duration = Duration::from_secs(5);
/// and while another has waited in vain: many requests would wait for the same disk.
const LOOK_MAX_WHILE_HANGING: Duration = Duration::from_millis(100);

/// The users of a file.
pub(crate) struct PasswordUsers {
    by_name: HashMap<String, usize>,
    /// The hashes by number. A user that does not exist has the number of one that does, by its name, so that a check
    /// takes as long, also if the hashes are of several kinds.
    hashes: Vec<StoredHash>,
    /// A part of a digest of the file, by which remembered checks belong to this content.
    pub(crate) print: [u8; 16],
}

impl PasswordUsers {
    /// Reads the lines of a file.
    ///
    /// # Errors
    /// A sentence for the operator, with the line, and the command that mends it.
    fn read(text: &str, path: &Path) -> Result<PasswordUsers, String> {
        let (mut by_name, mut hashes) = (HashMap::new(), Vec::new());
        for (at, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let wrong = |why: String| Err(format!("{}: line {}: {why}", path.display(), at + 1));
            let Some((name, rest)) = line.split_once(':').filter(|(name, _)| !name.is_empty())
            else {
                return wrong("no user and hash; write them with: htpasswd -B FILE USER".into());
            };
            // Other programs write further fields after the hash.
            let text = rest.split(':').next().unwrap_or_default();
            let hash = match StoredHash::read(text) {
                Ok(hash) => hash,
                Err(why) => {
                    return wrong(format!(
                        "the user {name:?} {why}; set the password with: htpasswd -B {} {name}",
                        path.display()
                    ));
                }
            };
            hashes.push(hash);
            if by_name.insert(name.to_owned(), hashes.len() - 1).is_some() {
                return wrong(format!("the user {name:?} is there twice; remove one of the lines"));
            }
        }
        if hashes.is_empty() {
            let path = path.display();
            return Err(format!("{path}: has no user; add one with: htpasswd -B {path} USER"));
        }
        let mut print = [0; 16];
        print.copy_from_slice(&digest::digest(&digest::SHA256, text.as_bytes()).as_ref()[..16]);
        Ok(PasswordUsers { by_name, hashes, print })
    }

    /// Whether this is the password of the user. Takes as long for a user that does not exist.
    pub(crate) fn is_right(&self, user: &str, password: &[u8]) -> bool {
        let known = self.by_name.get(user);
        self.hash_of(user, known).is_of(password) && known.is_some()
    }

    /// The hash of the user with this number, or that with which the password of an unknown user is compared.
    fn hash_of(&self, user: &str, known: Option<&usize>) -> &StoredHash {
        // The same for all files and contents, so that a reload shows nothing.
        static NUMBERS: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        let decoy = || (NUMBERS.hash_one(user) % self.hashes.len() as u64) as usize;
        &self.hashes[known.copied().unwrap_or_else(decoy)]
    }
}

/// The error of a look that takes too long: the disk hangs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LookUnfinished;

/// A password file, with its users as last read.
pub struct PasswordFile {
    path: PathBuf,
    users: RwLock<Arc<PasswordUsers>>,
    /// The file as it was before it was last read; `None` if it cannot be used. Locked while it is read, so that an older
    /// content never replaces a newer one.
    seen: Mutex<Option<FileStamp>>,
    /// When the last look began, in milliseconds. Written when that look has ended.
    looked_at: AtomicU64,
    /// The permit to look. It belongs to the thread that reads, also if the client disconnects or waits no longer.
    turn: Arc<Semaphore>,
    /// Whether a request has waited for a look in vain, and no look has ended since.
    hangs: AtomicBool,
    /// Why the content cannot be used as it is now.
    failure: Mutex<Option<String>>,
}

impl fmt::Debug for PasswordFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PasswordFile").field(&self.path).finish()
    }
}

impl PasswordFile {
    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, others may write it, or a line cannot be used: a sentence for the operator.
    pub fn load(path: &Path) -> Result<PasswordFile, String> {
        let seen = FileStamp::at(path);
        let users = RwLock::new(Arc::new(read(path)?));
        let (path, looked_at) = (path.to_owned(), AtomicU64::new(0));
        let (seen, turn) = (Mutex::new(seen), Arc::new(Semaphore::new(1)));
        let (hangs, failure) = (AtomicBool::new(false), Mutex::default());
        Ok(PasswordFile { path, users, seen, looked_at, turn, hangs, failure })
    }

    /// Its path, as configured.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether a look that has ended began within the last second, or later than `now`: then the users as last read may
    /// be used.
    pub fn is_fresh(&self, now: Duration) -> bool {
        // A caller that sees the time of a look also sees its users.
        let before = self.looked_at.load(Ordering::Acquire);
        (now.as_millis() as u64).saturating_sub(before) < LOOK_INTERVAL.as_millis() as u64
    }

    /// Looks at the file, unless it is fresh for a request that has arrived at `arrived`. One request looks, the others
    /// wait for it. `now`: the time when the look begins. `report` gets the result of a look, also if the request has
    /// been cancelled: as of [`refresh`](Self::refresh).
    ///
    /// The look is noted when it has ended. Noted at its beginning, this order admits a removed user:
    ///
    /// | time | request A | request B, a cache hit |
    /// |---|---|---|
    /// | 0 s | | the password of anna is remembered |
    /// | 1 s | | anna is removed from the file |
    /// | 9 s | notes a look, and waits for the disk | |
    /// | 9.5 s | | finds a look within the last second, and anna among the users of before |
    ///
    /// # Errors
    /// The look has not ended within five seconds, or 100 ms if another request has waited in vain. It goes on, and the
    /// users from before must not be used: a user that is removed from the file would be admitted while the disk hangs.
    /// This is reported once, until a look ends.
    pub async fn look(
        self: &Arc<Self>,
        arrived: Duration,
        now: impl FnOnce() -> Duration,
        report: impl Fn(&PasswordFile, Result<bool, String>) + Clone + Send + 'static,
    ) -> Result<(), LookUnfinished> {
        let end = async { tokio::time::sleep(self.longest_wait()).await };
        self.look_until(arrived, now, report, end).await
    }

    /// How long a request that arrives now waits for a look.
    fn longest_wait(&self) -> Duration {
        if self.hangs.load(Ordering::Acquire) { LOOK_MAX_WHILE_HANGING } else { LOOK_MAX }
    }

    async fn look_until(
        self: &Arc<Self>,
        arrived: Duration,
        now: impl FnOnce() -> Duration,
        report: impl Fn(&PasswordFile, Result<bool, String>) + Clone + Send + 'static,
        end: impl Future<Output = ()>,
    ) -> Result<(), LookUnfinished> {
        if self.is_fresh(arrived) {
            return Ok(());
        }
        tokio::select! {
            biased;
            () = self.look_in_turn(arrived, now, report.clone()) => return Ok(()),
            () = end => {}
        }
        if !self.hangs.swap(true, Ordering::AcqRel) {
            let (path, seconds) = (self.path.display(), LOOK_MAX.as_secs());
            report(self, Err(format!("{path}: the disk has not answered for {seconds} seconds")));
        }
        Err(LookUnfinished)
    }

    async fn look_in_turn(
        self: &Arc<Self>,
        arrived: Duration,
        now: impl FnOnce() -> Duration,
        report: impl FnOnce(&PasswordFile, Result<bool, String>) + Send + 'static,
    ) {
        let Ok(turn) = self.turn.clone().acquire_owned().await else { return };
        if self.is_fresh(arrived) {
            return;
        }
        let (file, began) = (self.clone(), now());
        let look = move || {
            let result = file.refresh();
            file.looked_at.fetch_max(began.as_millis() as u64, Ordering::Release);
            file.hangs.store(false, Ordering::Release);
            drop(turn);
            report(&file, result);
        };
        // A look that panics is not noted: the next request looks again.
        let _ = tokio::task::spawn_blocking(look).await;
    }

    /// Reads the file again if it has changed, and returns whether it has. Blocks.
    ///
    /// # Errors
    /// It has changed and cannot be used: a sentence for the operator, once. Its users stay as they were.
    pub fn refresh(&self) -> Result<bool, String> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let now = FileStamp::at(&self.path);
        // A file that changes while it is read is read again at the next look.
        if std::mem::replace(&mut *seen, now) == now {
            return Ok(false);
        }
        let users = match read(&self.path) {
            Ok(users) => Arc::new(users),
            Err(why) => {
                // It is tried again, because it may be readable soon with the same metadata.
                *seen = None;
                let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
                let known = failure.replace(why.clone());
                return if known.as_ref() == Some(&why) { Ok(false) } else { Err(why) };
            }
        };
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = None;
        *self.users.write().unwrap_or_else(PoisonError::into_inner) = users;
        Ok(true)
    }

    /// The reason why the file cannot be used as it was when it was last looked at; its users from before count.
    pub fn failure(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn users(&self) -> Arc<PasswordUsers> {
        self.users.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The print of its content, as last read.
    pub(crate) fn print(&self) -> [u8; 16] {
        self.users.read().unwrap_or_else(PoisonError::into_inner).print
    }
}

/// The password files of a site, by the numbers of the rules that name them: a cache hit finds its file without a search.
#[derive(Clone, Debug, Default)]
pub struct PasswordFiles(Vec<Option<Arc<PasswordFile>>>);

impl PasswordFiles {
    /// Reads the files of rules with these numbers and paths. A file that several rules name is read once. Those of
    /// `before` are not read: they are read again when requests need them.
    ///
    /// # Errors
    /// As for [`PasswordFile::load`], after the rule and its key.
    pub fn load<'a>(
        rules: impl Iterator<Item = (usize, &'a str)>,
        before: Option<&PasswordFiles>,
    ) -> Result<PasswordFiles, String> {
        let mut by_path: HashMap<&str, Arc<PasswordFile>> = HashMap::new();
        let mut files = Vec::new();
        for (rule, path) in rules {
            let of_before = || before?.all().find(|file| file.path() == Path::new(path));
            let file = match by_path.get(path).or_else(of_before) {
                Some(file) => Arc::clone(file),
                None => {
                    let file = PasswordFile::load(Path::new(path));
                    Arc::new(file.map_err(|error| format!("rule {rule}: auth_file: {error}"))?)
                }
            };
            by_path.insert(path, file.clone());
            if files.len() <= rule {
                files.resize(rule + 1, None);
            }
            files[rule] = Some(file);
        }
        Ok(PasswordFiles(files))
    }

    /// The files of all rules; one that several rules name is there several times.
    pub fn all(&self) -> impl Iterator<Item = &Arc<PasswordFile>> {
        self.0.iter().flatten()
    }

    /// The file of the rule with this number.
    #[inline]
    pub fn of_rule(&self, rule: usize) -> Option<&Arc<PasswordFile>> {
        self.0.get(rule)?.as_ref()
    }
}

fn read(path: &Path) -> Result<PasswordUsers, String> {
    let text = trusted_files::read_text(path, FILE_BYTES_MAX).map_err(|error| {
        let path = path.display();
        match error.kind() {
            ErrorKind::NotFound => {
                format!("{path}: there is no such file; create it with: htpasswd -B -c {path} USER")
            }
            _ => format!("{path}: {error}"),
        }
    })?;
    PasswordUsers::read(&text, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    const APR1: &str = "$apr1$abcdefgh$h9FWgUz3n9YxylKLlR5SQ/";

    fn users(text: &str) -> Result<PasswordUsers, String> {
        PasswordUsers::read(text, Path::new("/etc/staff"))
    }

    #[test]
    fn the_lines_of_a_file_are_its_users() {
        let users = users(&format!("# staff\n\nanna:{APR1}\r\nbert:{APR1}:Bert:x\n")).unwrap();
        for (user, password, right) in [
            ("anna", "secret", true),
            ("bert", "secret", true),
            ("anna", "wrong", false),
            ("Anna", "secret", false),
            ("", "secret", false),
            ("# staff", "secret", false),
        ] {
            assert_eq!(users.is_right(user, password.as_bytes()), right, "{user} {password}");
        }
    }

    #[test]
    fn an_unknown_user_costs_the_hash_of_one_that_exists() {
        let slow = "$2y$04$fnQwoA9.coPo9XjTlKCSnug.qmDJXi/QQ9JCiMv3tsjCWhfSHE7Eq";
        let users = users(&format!("anna:{APR1}\nbert:{slow}\n")).unwrap();
        let names: Vec<String> = (0..64).map(|n| format!("nobody-{n}")).collect();
        let of = |name: &str| std::ptr::from_ref(users.hash_of(name, None));
        let of_kind = |number: usize| {
            names
                .iter()
                .filter(|name| of(name) == std::ptr::from_ref(&users.hashes[number]))
                .count()
        };
        assert_eq!(of_kind(0) + of_kind(1), names.len());
        assert!(of_kind(0) > 0 && of_kind(1) > 0, "each kind stands for some");
        assert!(names.iter().all(|name| of(name) == of(name)), "always the same");
        for name in &names {
            crate::hash::COMPUTED.take();
            assert!(!users.is_right(name, b"secret"), "{name}");
            assert_eq!(crate::hash::COMPUTED.take(), [of(name)], "the hash is computed, once");
        }
    }

    #[test]
    fn a_wrong_line_is_an_error_with_its_remedy() {
        for (text, parts) in [
            (
                format!("anna:{APR1}\nbert:secret\n"),
                &["/etc/staff: line 2", "\"bert\"", "htpasswd -B /etc/staff bert"][..],
            ),
            ("anna:rqXexS6ZhobKA".into(), &["line 1", "DES"]),
            ("anna".into(), &["line 1", "no user and hash"]),
            (format!(":{APR1}"), &["line 1", "no user and hash"]),
            (format!("a:{APR1}\na:{APR1}"), &["line 2", "twice"]),
            ("# nobody\n".into(), &["no user", "htpasswd -B /etc/staff USER"]),
        ] {
            let said = users(&text).err().unwrap_or_else(|| panic!("{text}"));
            assert!(parts.iter().all(|part| said.contains(part)), "{text}: {said}");
        }
    }

    #[test]
    fn a_changed_file_is_read_again_and_a_broken_one_changes_nothing() {
        let path = std::env::temp_dir().join(format!("passwords-{}", std::process::id()));
        std::fs::write(&path, format!("anna:{APR1}\n")).unwrap();
        let file = PasswordFile::load(&path).unwrap();
        assert_eq!(file.refresh(), Ok(false));
        std::fs::write(&path, format!("anna:{APR1}\nbert:sec")).unwrap();
        assert!(file.refresh().unwrap_err().contains("line 2"));
        assert_eq!(file.refresh(), Ok(false), "it is reported once");
        assert!(file.failure().is_some_and(|why| why.contains("line 2")), "until it is mended");
        assert!(file.users().is_right("anna", b"secret"));
        std::fs::write(&path, format!("bert:{APR1}\n")).unwrap();
        assert_eq!(file.refresh(), Ok(true));
        assert!(!file.users().is_right("anna", b"secret"));
        assert!(file.users().is_right("bert", b"secret"));
        assert_eq!(file.failure(), None);
        std::fs::remove_file(&path).unwrap();
        assert!(file.refresh().is_err());
        assert!(file.users().is_right("bert", b"secret"));
    }

    #[test]
    fn a_file_that_was_away_for_a_moment_has_no_failure() {
        let name = |end: &str| format!("passwords-{end}-{}", std::process::id());
        let [mount, away] = ["mount", "away"].map(|end| std::env::temp_dir().join(name(end)));
        std::fs::create_dir_all(&mount).unwrap();
        std::fs::write(mount.join("staff"), format!("anna:{APR1}\n")).unwrap();
        let file = PasswordFile::load(&mount.join("staff")).unwrap();
        std::fs::rename(&mount, &away).unwrap();
        assert!(file.refresh().is_err());
        assert_eq!(file.refresh(), Ok(false), "it is reported once");
        assert!(file.failure().is_some());
        std::fs::rename(&away, &mount).unwrap();
        assert_eq!((file.refresh(), file.failure()), (Ok(true), None));
        assert_eq!(file.refresh(), Ok(false));
        std::fs::remove_dir_all(&mount).unwrap();
    }

    #[test]
    fn rules_with_the_same_path_have_the_same_file() {
        let path = |name: &str| std::env::temp_dir().join(format!("{name}-{}", std::process::id()));
        let (one, other) = (path("rules-one"), path("rules-other"));
        let [one_name, other_name] = [&one, &other].map(|path| path.display().to_string());
        std::fs::write(&one, format!("anna:{APR1}\n")).unwrap();
        std::fs::write(&other, format!("bert:{APR1}\n")).unwrap();
        let rules = [(2, &*one_name), (5, &*other_name), (3, &*one_name)];
        let files = PasswordFiles::load(rules.into_iter(), None).unwrap();
        let of = |rule: usize| files.of_rule(rule).map(Arc::as_ptr);
        assert!(of(2).is_some() && of(2) == of(3) && of(5).is_some() && of(5) != of(2));
        for rule in [0, 1, 4, 6, usize::MAX] {
            assert_eq!(of(rule), None, "{rule}");
        }
        assert!(files.of_rule(5).unwrap().users().is_right("bert", b"secret"));
        std::fs::remove_file(&other).unwrap();
        let error = PasswordFiles::load([(7, &*other_name)].into_iter(), None).unwrap_err();
        let missing = format!("rule 7: auth_file: {other_name}: there is no such file; create it");
        assert!(error.starts_with(&missing), "{error}");
        let again = PasswordFiles::load([(1, &*other_name)].into_iter(), Some(&files)).unwrap();
        assert_eq!(again.of_rule(1).map(Arc::as_ptr), of(5), "the file from before");
        assert_eq!((files.all().count(), again.all().count()), (3, 1));
        std::fs::remove_file(&one).unwrap();
    }

    #[test]
    fn a_look_counts_when_it_has_ended_and_only_one_reads() {
        let path = std::env::temp_dir().join(format!("looks-{}", std::process::id()));
        std::fs::write(&path, format!("anna:{APR1}\n")).unwrap();
        let file = Arc::new(PasswordFile::load(&path).unwrap());
        // Of another length, because its time may be the same.
        std::fs::write(&path, format!("\nbert:{APR1}\n")).unwrap();
        let reports: Arc<Mutex<Vec<Result<bool, String>>>> = Arc::default();
        let look = |ms: u64| {
            let (file, reports) = (file.clone(), reports.clone());
            let time = Duration::from_millis(ms);
            async move {
                let note = move |_: &PasswordFile, result: Result<bool, String>| {
                    reports.lock().unwrap().push(result);
                };
                // Without a timeout: the load of the machine must not end a look.
                file.look_until(time, || time, note, std::future::pending()).await
            }
        };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        // The disk is slow: the first look waits here.
        let slow = file.seen.lock().unwrap();
        let first = runtime.spawn(look(5_000));
        let second = runtime.spawn(look(5_300));
        runtime.block_on(async {
            while file.turn.available_permits() > 0 {
                tokio::task::yield_now().await;
            }
            // The second has begun, too: tasks take turns.
            tokio::task::yield_now().await;
        });
        assert!(!first.is_finished() && !second.is_finished(), "no request uses the old users");
        for ms in [5_000, 5_300, 5_999] {
            assert!(!file.is_fresh(Duration::from_millis(ms)), "{ms}: nor does a cache hit");
        }
        drop(slow);
        runtime.block_on(async {
            assert_eq!((first.await.unwrap(), second.await.unwrap()), (Ok(()), Ok(())));
        });
        let is_right = |user: &str| file.users().is_right(user, b"secret");
        assert!(!is_right("anna") && is_right("bert"));
        let are = |wanted: &[Result<bool, String>]| reports.lock().unwrap().as_slice() == wanted;
        assert!(are(&[Ok(true)]), "the second uses what the first has read");
        let is_fresh = |ms| file.is_fresh(Duration::from_millis(ms));
        assert!(is_fresh(5_300) && is_fresh(5_999) && !is_fresh(6_000));
        assert_eq!(runtime.block_on(look(6_000)), Ok(()));
        assert!(are(&[Ok(true), Ok(false)]));
        assert!(is_fresh(6_999));
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn requests_do_not_wait_for_a_disk_that_hangs_and_admit_nobody() {
        let path = std::env::temp_dir().join(format!("hangs-{}", std::process::id()));
        std::fs::write(&path, format!("anna:{APR1}\n")).unwrap();
        let file = Arc::new(PasswordFile::load(&path).unwrap());
        // Of another length, because its time may be the same.
        std::fs::write(&path, format!("\nbert:{APR1}\n")).unwrap();
        let reports: Arc<Mutex<Vec<Result<bool, String>>>> = Arc::default();
        let (time, ends) = (Duration::from_secs(9), Arc::new(Semaphore::new(0)));
        let look = || {
            let (file, reports, ends) = (file.clone(), reports.clone(), ends.clone());
            async move {
                let note = move |_: &PasswordFile, result| reports.lock().unwrap().push(result);
                let end = async { drop(ends.acquire().await) };
                file.look_until(time, || time, note, end).await
            }
        };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let slow = file.seen.lock().unwrap();
        assert_eq!(file.longest_wait(), LOOK_MAX);
        let pending = [(); 3].map(|()| runtime.spawn(look()));
        runtime.block_on(async {
            while file.turn.available_permits() > 0 {
                tokio::task::yield_now().await;
            }
            // Now the time is over for each.
            ends.add_permits(1);
            for one in pending {
                assert_eq!(one.await.unwrap(), Err(LookUnfinished));
            }
        });
        assert!(!file.is_fresh(time), "nor does a cache hit use the old users");
        assert_eq!(file.longest_wait(), LOOK_MAX_WHILE_HANGING, "the next request gives up soon");
        let reported = reports.lock().unwrap().clone();
        assert!(
            matches!(&reported[..], [Err(why)] if why.contains("not answered")),
            "{reported:?}"
        );
        drop(slow);
        // The look that was begun goes on, and the next request uses its result.
        let again = file.look_until(time, || time, |_, _| {}, std::future::pending());
        assert_eq!(runtime.block_on(again), Ok(()));
        drop(runtime);
        assert_eq!(file.longest_wait(), LOOK_MAX, "it has answered");
        assert!(file.is_fresh(time) && file.users().is_right("bert", b"secret"));
        assert!(!file.users().is_right("anna", b"secret"));
        assert_eq!(*reports.lock().unwrap(), [reported, vec![Ok(true)]].concat());
        std::fs::remove_file(&path).unwrap();
    }
}
