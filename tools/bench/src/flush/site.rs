//! The news site on a php-fpm whose renders take as long as those of a usual site, and are noted.
//!
//! A script before each page waits as a page waits for its database and for other services (the
//! example site asks for little, and is done in two or three milliseconds), notes when the render
//! began and ended, and says by a header field in which generation it was made: before the flush or
//! after it. While memory is filled nothing waits.

use crate::error_text;
use harness::root;
use harness::{NewsSite, PhpFpm, PoolOptions, PrivateDir};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// The field that says the generation.
pub const GENERATION: &str = "X-Generation";

const PREPEND: &str = r#"<?php
(static function (): void {
    $dir = getenv('FLUSH_DIR');
    $begun = microtime(true);
    header('X-Generation: ' . file_get_contents("$dir/generation"));
    if (!file_exists("$dir/warm")) {
        usleep((int) getenv('FLUSH_PAUSE_MICROS'));
    }
    register_shutdown_function(static function () use ($dir, $begun): void {
        $line = sprintf("%.6F %.6F %s\n", $begun, microtime(true), $_SERVER['REQUEST_URI']);
        file_put_contents("$dir/renders", $line, FILE_APPEND | LOCK_EX);
    });
})();
"#;

/// The path of a page, counted from 0.
pub fn target(page: u32) -> String {
    format!("/news/{}/", page + 1)
}

/// The running site: PHP and its pages.
pub struct Site {
    php: PhpFpm,
    news: NewsSite,
    generation: AtomicU64,
    dir: PrivateDir,
}

/// The renders of PHP, counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Renders {
    /// How many renders there were.
    pub count: u64,
    /// Of how many pages.
    pub pages: u64,
    /// The most of one page at once.
    pub most_of_a_page: u64,
    /// The most at once.
    pub most: u64,
}

impl Site {
    /// Starts database and php-fpm.
    ///
    /// # Errors
    /// A server that did not start.
    pub fn start(pages: u32, children: u32, render_ms: u32) -> Result<Site, String> {
        let temporary = |name: &str| PrivateDir::temporary(name).map_err(error_text);
        let dir = temporary("flush")?;
        let notes = notes_of(&dir);
        fs::create_dir(&notes).map_err(system)?;
        // The children of php-fpm write there, who may be of another user.
        fs::set_permissions(&notes, fs::Permissions::from_mode(0o777)).map_err(system)?;
        let prepend = notes.join("prepend.php");
        fs::write(&prepend, PREPEND).map_err(system)?;
        fs::write(notes.join("generation"), "0").map_err(system)?;
        let news =
            NewsSite::start(&root::repository(), temporary("news")?, pages).map_err(error_text)?;
        let mut env = news.env().to_vec();
        env.push(("FLUSH_DIR".to_owned(), notes.display().to_string()));
        env.push(("FLUSH_PAUSE_MICROS".to_owned(), (u64::from(render_ms) * 1000).to_string()));
        let ini = vec![("auto_prepend_file".to_owned(), prepend.display().to_string())];
        let php = PhpFpm::start(temporary("php")?, &PoolOptions { children, env, ini });
        Ok(Site { php: php.map_err(error_text)?, news, generation: AtomicU64::new(0), dir })
    }

    /// The directory of the site.
    pub fn root(&self) -> &Path {
        self.news.dir()
    }

    /// The socket of its php-fpm.
    pub fn php(&self) -> &Path {
        self.php.socket()
    }

    /// Whether renders take no longer than they have to.
    ///
    /// # Errors
    /// Those of the system.
    pub fn warm(&self, is_warm: bool) -> Result<(), String> {
        let file = notes_of(&self.dir).join("warm");
        if is_warm { fs::write(file, "") } else { fs::remove_file(file) }.map_err(system)
    }

    /// Pages that are rendered from now on are of the generation that is returned.
    ///
    /// # Errors
    /// Those of the system.
    pub fn next_generation(&self) -> Result<u64, String> {
        let generation = self.generation.fetch_add(1, SeqCst) + 1;
        // At once, so that no render reads half of it.
        let (next, now) = ("generation.next", "generation");
        let dir = notes_of(&self.dir);
        fs::write(dir.join(next), generation.to_string()).map_err(system)?;
        fs::rename(dir.join(next), dir.join(now)).map_err(system)?;
        Ok(generation)
    }

    /// Forgets the renders so far.
    ///
    /// # Errors
    /// Those of the system.
    pub fn forget_renders(&self) -> Result<(), String> {
        match fs::remove_file(notes_of(&self.dir).join("renders")) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(system(error)),
            _ => Ok(()),
        }
    }

    /// The renders since they were last forgotten.
    ///
    /// # Errors
    /// Those of the system.
    pub fn renders(&self) -> Result<Renders, String> {
        match fs::read_to_string(notes_of(&self.dir).join("renders")) {
            Ok(notes) => Ok(read(&notes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Renders::default()),
            Err(error) => Err(system(error)),
        }
    }
}

impl Renders {
    /// Adds those of another flush.
    pub fn add(&mut self, other: &Renders) {
        self.count += other.count;
        self.pages += other.pages;
        self.most_of_a_page = self.most_of_a_page.max(other.most_of_a_page);
        self.most = self.most.max(other.most);
    }
}

fn notes_of(dir: &PrivateDir) -> PathBuf {
    dir.path().join("notes")
}

fn system(error: io::Error) -> String {
    format!("bench: {error}")
}

/// From lines of begin, end, and target.
fn read(notes: &str) -> Renders {
    let mut pages: BTreeMap<&str, Vec<(f64, f64)>> = BTreeMap::new();
    for line in notes.lines() {
        let mut words = line.split(' ');
        let mut time = || words.next().and_then(|word| word.parse().ok());
        let (Some(begun), Some(ended)) = (time(), time()) else { continue };
        pages.entry(words.next().unwrap_or_default()).or_default().push((begun, ended));
    }
    let all: Vec<(f64, f64)> = pages.values().flatten().copied().collect();
    Renders {
        count: all.len() as u64,
        pages: pages.len() as u64,
        most_of_a_page: pages.values().map(|times| at_once(times)).max().unwrap_or(0),
        most: at_once(&all),
    }
}

/// How many of these stretches of time have a moment in common.
fn at_once(times: &[(f64, f64)]) -> u64 {
    let mut steps: Vec<(f64, i64)> =
        times.iter().flat_map(|(begun, ended)| [(*begun, 1), (*ended, -1)]).collect();
    // A render that ends when another begins was there before it.
    steps.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
    let (mut now, mut most) = (0_i64, 0_i64);
    for (_, step) in steps {
        now += step;
        most = most.max(now);
    }
    most.unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renders_are_counted_from_their_notes() {
        let notes = "1.0 3.0 /a\n2.0 4.0 /a\n4.0 5.0 /a\n2.5 2.75 /b\nnonsense\n";
        let renders = read(notes);
        assert_eq!(renders, Renders { count: 4, pages: 2, most_of_a_page: 2, most: 3 });
        assert_eq!(read(""), Renders::default());
    }
}
