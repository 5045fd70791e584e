//! A password file: lines of a user, a colon, and a hash. Read at the start and when it has changed, as certificates are.
//!
//! Invariant: a file that cannot be used changes nothing, so that a half-written file locks nobody out. Each change is
//! reported once.

use crate::hash::StoredHash;
use ring::digest;
use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, RwLock};
use std::time::Duration;

/// The longest file, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// How often a file is looked at, while requests need it.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// The users of a file.
pub(crate) struct PasswordUsers {
    by_name: HashMap<String, usize>,
    /// The hashes by number. A user that does not exist has the number of one that does, by its name, so that a check
    /// takes as long, also if the hashes are of several kinds.
    hashes: Vec<StoredHash>,
    /// A digest of the file, by which remembered checks belong to this content.
    pub(crate) print: [u8; 32],
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
        let mut print = [0; 32];
        print.copy_from_slice(digest::digest(&digest::SHA256, text.as_bytes()).as_ref());
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

/// The metadata of a file; it differs if the file has changed.
type FileStamp = Option<(u64, i64, i64, u64)>;

/// A password file, with its users as last read.
pub struct PasswordFile {
    path: PathBuf,
    users: RwLock<Arc<PasswordUsers>>,
    /// The metadata from before the file was last read. Held while it is read, so that an older content never replaces
    /// a newer one.
    seen: Mutex<FileStamp>,
    /// When it was last looked at, in milliseconds.
    looked_at: AtomicU64,
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
        let seen = stamp(path);
        let users = RwLock::new(Arc::new(read(path)?));
        let (path, looked_at) = (path.to_owned(), AtomicU64::new(0));
        Ok(PasswordFile { path, users, seen: Mutex::new(seen), looked_at })
    }

    /// Whether the file was not looked at for a second. True for one caller only.
    pub fn is_due(&self, now: Duration) -> bool {
        let (now, before) = (now.as_millis() as u64, self.looked_at.load(Ordering::Relaxed));
        now.saturating_sub(before) >= LOOK_INTERVAL.as_millis() as u64
            && self
                .looked_at
                .compare_exchange(before, now, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
    }

    /// Reads the file again if it has changed, and returns whether it has. Blocks.
    ///
    /// # Errors
    /// It has changed and cannot be used: a sentence for the operator. Its users stay as they were.
    pub fn refresh(&self) -> Result<bool, String> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let now = stamp(&self.path);
        // A file that changes while it is read is read again at the next look.
        let before = std::mem::replace(&mut *seen, now);
        if before == now {
            return Ok(false);
        }
        let users = match read(&self.path) {
            Ok(users) => Arc::new(users),
            Err(why) => {
                // A file that cannot be read at this moment is tried again.
                if std::fs::File::open(&self.path).is_err() {
                    *seen = before;
                }
                return Err(why);
            }
        };
        *self.users.write().unwrap_or_else(PoisonError::into_inner) = users;
        Ok(true)
    }

    pub(crate) fn users(&self) -> Arc<PasswordUsers> {
        self.users.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The password files of a site, by their paths.
#[derive(Clone, Debug, Default)]
pub struct PasswordFiles(HashMap<Box<str>, Arc<PasswordFile>>);

impl PasswordFiles {
    /// Reads these files.
    ///
    /// # Errors
    /// As for [`PasswordFile::load`].
    pub fn load<'a>(paths: impl Iterator<Item = &'a str>) -> Result<PasswordFiles, String> {
        let mut files = HashMap::new();
        for path in paths {
            if !files.contains_key(path) {
                files.insert(path.into(), Arc::new(PasswordFile::load(Path::new(path))?));
            }
        }
        Ok(PasswordFiles(files))
    }

    /// The file with this path.
    pub fn get(&self, path: &str) -> Option<&Arc<PasswordFile>> {
        self.0.get(path)
    }
}

fn stamp(path: &Path) -> FileStamp {
    let found = std::fs::metadata(path).ok()?;
    // The time of the last change: programs can set the modification time.
    Some((found.ino(), found.ctime(), found.ctime_nsec(), found.size()))
}

fn read(path: &Path) -> Result<PasswordUsers, String> {
    let text = trusted_files::read_text(path, FILE_BYTES_MAX)
        .map_err(|error| format!("{}: {error}", path.display()))?;
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
        assert!(file.users().is_right("anna", b"secret"));
        std::fs::write(&path, format!("bert:{APR1}\n")).unwrap();
        assert_eq!(file.refresh(), Ok(true));
        assert!(!file.users().is_right("anna", b"secret"));
        assert!(file.users().is_right("bert", b"secret"));
        std::fs::remove_file(&path).unwrap();
        assert!(file.refresh().is_err());
        assert!(file.users().is_right("bert", b"secret"));
        let second = Duration::from_secs;
        assert!(file.is_due(second(5)) && !file.is_due(second(5)) && file.is_due(second(6)));
    }
}
