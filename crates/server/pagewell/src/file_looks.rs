//! Decides at which look the files of the configuration are read again: redirect files, error pages.
//!
//! A changed file is read at the next look. While the configuration as a whole cannot be used, a file that has changed
//! differs from what is in effect at each look, and all files, of up to a million lines, would be read each time. So they are
//! read when one has changed since the last try, and after a growing pause, because the cause may be elsewhere: in a
//! file that is not watched. Not here: when looks happen (`periodic`), and what reading does (`control::reload`).

use config::WatchedFile;
use std::time::Duration;

/// The longest pause between two tries, unless looks are rarer.
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// The result of the looks so far.
#[derive(Debug, Default)]
pub(crate) struct FileLooks {
    failed: Option<FailedTry>,
}

/// A try after which the configuration as a whole could not be used.
#[derive(Debug)]
struct FailedTry {
    /// The files as they were before it.
    files: Vec<WatchedFile>,
    /// The pause after it, and what is left of it.
    pause: Duration,
    left: Duration,
}

impl FileLooks {
    /// Looks at these files, the time `interval` after the last look. If they are to be read now, returns them as they
    /// are. `has_failed`: after the last try, the configuration could not be used. `is_restored`: a reload has failed,
    /// and the configuration file says again what is in effect. Blocks while the disk does.
    pub(crate) fn look<'a>(
        &mut self,
        files: impl Iterator<Item = &'a WatchedFile>,
        interval: Duration,
        (has_failed, is_restored): (bool, bool),
    ) -> Option<Vec<WatchedFile>> {
        let files: Vec<&WatchedFile> = files.collect();
        if !has_failed {
            // Also after a reload of the whole configuration, which has read them.
            self.failed = None;
        }
        let is_due = match &mut self.failed {
            Some(failed) => failed.is_over_after(interval),
            None => is_restored || files.iter().any(|file| file.is_changed()),
        };
        is_due.then(|| files.iter().map(|file| file.as_now()).collect())
    }

    /// Notes the result of a try to read `files`, which the last look has returned.
    pub(crate) fn note(&mut self, files: Vec<WatchedFile>, interval: Duration, has_failed: bool) {
        let before = self.failed.take().map(|failed| failed.pause);
        if has_failed {
            let longest = PAUSE_MAX.max(interval);
            let pause = before.map_or(interval, |pause| pause.saturating_mul(2).min(longest));
            self.failed = Some(FailedTry { files, pause, left: pause });
        }
    }
}

impl FailedTry {
    fn is_over_after(&mut self, interval: Duration) -> bool {
        self.left = self.left.saturating_sub(interval);
        self.left.is_zero() || self.files.iter().any(WatchedFile::is_changed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::PathBuf;

    const INTERVAL: Duration = Duration::from_secs(5);

    /// A file, and the looks at it by a configuration that has read it when it was empty.
    struct Watched {
        path: PathBuf,
        file: WatchedFile,
        looks: FileLooks,
        has_failed: bool,
        is_restored: bool,
    }

    impl Watched {
        fn new(name: &str) -> Watched {
            let name = format!("pagewell-looks-{name}-{}", std::process::id());
            let path = std::env::temp_dir().join(name);
            fs::write(&path, "").expect("written");
            let file = WatchedFile::of(path.clone(), &fs::metadata(&path).expect("a file"));
            let looks = FileLooks::default();
            Watched { path, file, looks, has_failed: false, is_restored: false }
        }

        /// Looks, and reads the file if it is to be read. Returns whether it was read.
        fn look(&mut self, fails: bool) -> bool {
            let files = std::iter::once(&self.file);
            let Some(read) = self.looks.look(files, INTERVAL, (self.has_failed, self.is_restored))
            else {
                return false;
            };
            self.looks.note(read, INTERVAL, fails);
            self.has_failed = fails;
            true
        }

        /// The number of looks up to the next one that reads.
        fn looks_until_read(&mut self) -> usize {
            (1..100).find(|_| self.look(true)).expect("it is read again")
        }
    }

    impl Drop for Watched {
        fn drop(&mut self) {
            let _ = fs::remove_file(&self.path);
        }
    }

    #[test]
    fn a_configuration_that_cannot_be_used_is_tried_more_and_more_rarely() {
        let mut watched = Watched::new("pause");
        assert!(!watched.look(true), "nothing has changed");
        fs::write(&watched.path, "/a\t/b\n").expect("written");
        assert!(watched.look(true));
        let mut pauses = [0; 7];
        pauses.fill_with(|| watched.looks_until_read());
        assert_eq!(pauses, [1, 2, 4, 8, 12, 12, 12], "a minute is the longest");
    }

    #[test]
    fn a_change_is_read_at_once_during_a_pause() {
        let mut watched = Watched::new("change");
        fs::write(&watched.path, "/a\t/b\n").expect("written");
        assert!(watched.look(true));
        for _ in 0..4 {
            watched.looks_until_read();
        }
        assert!(!watched.look(true), "a pause");
        fs::write(&watched.path, "/a\t/b/c\n").expect("written");
        assert!(watched.look(true), "it has changed since the last try");
        assert!(!watched.look(true), "the pause begins again");
    }

    #[test]
    fn files_are_read_when_the_configuration_file_is_restored() {
        let mut watched = Watched::new("restored");
        watched.is_restored = true;
        assert!(watched.look(true));
        assert_eq!(watched.looks_until_read(), 1, "the first pause");
        assert_eq!(watched.looks_until_read(), 2, "the second");
        assert!((1..100).any(|_| watched.look(false)));
        watched.is_restored = false;
        assert!(!watched.look(false), "nothing has changed");
    }

    #[test]
    fn a_reload_ends_the_pause() {
        let mut watched = Watched::new("reload");
        fs::write(&watched.path, "/a\t/b\n").expect("written");
        assert!(watched.look(true));
        for _ in 0..4 {
            watched.looks_until_read();
        }
        // A reload has found the configuration usable, but the file is another one again.
        watched.has_failed = false;
        assert!(watched.look(true));
        assert_eq!(watched.looks_until_read(), 1, "the first pause");
    }
}
