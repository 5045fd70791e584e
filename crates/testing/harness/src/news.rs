//! The example site `examples/news` on its own database, filled with articles.
//!
//! The demo, the benchmark and the interoperability tests serve it. Its database account gets a new password at
//! each start, which the site reads from its environment. If servers run as other users and cannot read the
//! checkout (root's home directory), a readable copy of the site is made.

use crate::{MariaDb, MariaDbOptions, PrivateDir, StartError, StartReason, find, users};
use random_number::random_number;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The directories of the site, relative to the root of the repository.
const PARTS: [&str; 3] = ["examples/news", "php/client", "php/core"];

/// The example site with its database.
#[derive(Debug)]
pub struct NewsSite {
    database: MariaDb,
    env: Vec<(String, String)>,
    dir: PathBuf,
    _copy: Option<PrivateDir>,
}

impl NewsSite {
    /// Starts a MariaDB in `dir`, and fills it with this number of articles unless it has some. `repository` is
    /// the root of the checkout.
    ///
    /// # Errors
    /// The reason why the database did not start, or why `fill.php` failed.
    pub fn start(
        repository: &Path,
        dir: PrivateDir,
        articles: u32,
    ) -> Result<NewsSite, StartError> {
        Self::start_with(repository, dir, articles, MariaDbOptions::default())
    }

    /// Starts the site like [`NewsSite::start`], with options for the database: a binary log, a port.
    ///
    /// # Errors
    /// As for [`NewsSite::start`].
    pub fn start_with(
        repository: &Path,
        dir: PrivateDir,
        articles: u32,
        options: MariaDbOptions,
    ) -> Result<NewsSite, StartError> {
        let (root, copy) = readable(repository)?;
        let database = MariaDb::start_with(dir, options)?;
        let password = format!("{:016x}{:016x}", random_number(), random_number());
        database.create_database("news", "news", &password)?;
        let dsn = format!(
            "mysql:unix_socket={};dbname=news;charset=utf8mb4",
            database.socket().display()
        );
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let env = vec![
            pair("NEWS_DB_DSN", &dsn),
            pair("NEWS_DB_USER", "news"),
            pair("NEWS_DB_PASSWORD", &password),
            pair("NEWS_OFFICE_PASSWORD", "office"),
        ];
        let site = NewsSite { database, env, dir: root.join(PARTS[0]), _copy: copy };
        site.fill(articles)?;
        Ok(site)
    }

    /// The directory of the site, for `pagewell serve`. The document root is its subdirectory `public`.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The environment that its scripts need.
    #[must_use]
    pub fn env(&self) -> &[(String, String)] {
        &self.env
    }

    /// The arguments for `pagewell serve`: the directory, and the environment for its php-fpm.
    #[must_use]
    pub fn serve_args(&self) -> Vec<String> {
        crate::pagewell::serve_args(&self.dir, &self.env)
    }

    /// The database of the site.
    #[must_use]
    pub fn database(&self) -> &MariaDb {
        &self.database
    }

    /// The database of the site, to stop and start it.
    pub fn database_mut(&mut self) -> &mut MariaDb {
        &mut self.database
    }

    /// Executes statements in the site's database.
    ///
    /// # Errors
    /// `Refused`, with the server's message.
    pub fn sql(&self, statements: &str) -> Result<String, StartError> {
        self.database.sql_in("news", statements)
    }

    fn fill(&self, articles: u32) -> Result<(), StartError> {
        let fault =
            |detail: String| StartError::new("fill.php", StartReason::CannotPrepare, detail);
        let mut command = Command::new(find::program(&["php"])?);
        command.arg(self.dir.join("fill.php")).arg(format!("--news={articles}"));
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        let output = command.output().map_err(|error| fault(error.to_string()))?;
        if output.status.success() {
            return Ok(());
        }
        let (said, wrote) =
            (String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout));
        Err(fault(format!("{}: {said}{wrote}", output.status)))
    }
}

/// The root of the checkout, or of a copy of the site that other users can read.
fn readable(repository: &Path) -> Result<(PathBuf, Option<PrivateDir>), StartError> {
    let unmade = |error: io::Error| StartError::new("site", StartReason::CannotPrepare, error);
    let repository = &repository.canonicalize().map_err(unmade)?;
    if !users::am_root() || PARTS.iter().all(|part| open_to_others(&repository.join(part))) {
        return Ok((repository.to_owned(), None));
    }
    let dir = PrivateDir::temporary("site")?;
    for part in PARTS {
        let parent = dir.path().join(part.split('/').next().unwrap_or(part));
        DirBuilder::new().recursive(true).mode(0o755).create(&parent).map_err(unmade)?;
        copy(&repository.join(part), &dir.path().join(part)).map_err(unmade)?;
    }
    Ok((dir.path().to_owned(), Some(dir)))
}

/// Whether other users than the owner can enter and list a directory.
pub(crate) fn open_to_others(path: &Path) -> bool {
    let mode = |path: &Path| fs::metadata(path).map_or(0, |found| found.permissions().mode());
    mode(path) & 0o005 == 0o005 && path.ancestors().skip(1).all(|dir| mode(dir) & 0o001 != 0)
}

/// Copies a directory so that every user can read the copy. Only files and directories are copied.
pub(crate) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).create(to)?;
    fs::set_permissions(to, fs::Permissions::from_mode(0o755))?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (kind, target) = (entry.file_type()?, to.join(entry.file_name()));
        if kind.is_dir() {
            copy(&entry.path(), &target)?;
        } else if kind.is_file() {
            fs::copy(entry.path(), &target)?;
            fs::set_permissions(&target, fs::Permissions::from_mode(0o644))?;
        }
    }
    Ok(())
}
