//! A private WordPress: Debian's package with its own database, configuration and content.
//!
//! The programs that answer requests are copied, because they search for the configuration in their own
//! directory. The library (`wp-includes`) and the themes are symbolic links.
//! `php/wordpress/tests/site/install.php` creates the blog. Of the system's own WordPress only the programs are
//! read, and nothing is written.
//!
//! Commands ([`WordPress::command`]) run like commands in a shell: outside any request, on the same database.

use crate::news::copy;
use crate::{MariaDb, MariaDbOptions, PrivateDir, StartError, StartReason, find};
use std::fs::{self, DirBuilder};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The directory in which Debian's package installs the programs.
const INSTALLED: &str = "/usr/share/wordpress";

/// A WordPress with its database.
#[derive(Debug)]
pub struct WordPress {
    database: MariaDb,
    env: Vec<(String, String)>,
    dir: PrivateDir,
}

impl WordPress {
    /// Creates a WordPress with the plugin of this repository. `repository` is the root of the checkout.
    /// `control` is the address at which the plugin finds Pagewell's control API (`127.0.0.1:4711`).
    ///
    /// # Errors
    /// `NotInstalled` without the package; the reason why the database did not start, or why the blog could not
    /// be created.
    pub fn start(repository: &Path, control: &str) -> Result<WordPress, StartError> {
        if !Path::new(INSTALLED).join("wp-settings.php").is_file() {
            let detail = format!("not in {INSTALLED}; scripts/setup test installs it");
            return Err(StartError::new("wordpress", StartReason::NotInstalled, detail));
        }
        let dir = PrivateDir::temporary("wp")?;
        lay_out(&dir.path().join("site"), &repository.join("php/wordpress")).map_err(unmade)?;
        // The options that enable database-driven invalidation.
        let options = ["--log-bin=bin", "--binlog-format=ROW", "--server-id=1"].map(str::to_owned);
        let options = MariaDbOptions { port: None, options: options.into() };
        let database = MariaDb::start_with(PrivateDir::temporary("wpdb")?, options)?;
        let random = || RandomState::new().build_hasher().finish();
        let password = format!("{:016x}{:016x}", random(), random());
        database.create_database("wordpress", "wordpress", &password)?;
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let env = vec![
            pair("WP_DB_SOCKET", &database.socket().display().to_string()),
            pair("WP_DB_PASSWORD", &password),
            pair("PAGEWELL_ADMIN", control),
        ];
        let blog = WordPress { database, env, dir };
        let script = repository.join("php/wordpress/tests/site/install.php");
        blog.run(Command::new(find::program(&["php"])?).arg(script))?;
        Ok(blog)
    }

    /// The document root of the site.
    #[must_use]
    pub fn root(&self) -> PathBuf {
        self.dir.path().join("site")
    }

    /// The arguments for `pagewell serve`: the directory, and the environment for its php-fpm.
    #[must_use]
    pub fn serve_args(&self) -> Vec<String> {
        let mut args = vec![self.root().display().to_string()];
        for (name, value) in &self.env {
            args.extend(["--php-env".to_owned(), format!("{name}={value}")]);
        }
        args
    }

    /// The database of the blog.
    #[must_use]
    pub fn database(&self) -> &MariaDb {
        &self.database
    }

    /// Runs PHP code as a command in the directory of WordPress, with the environment of its scripts. Returns
    /// its output. The variables are those of a request for the front page, so that `require 'wp-load.php';`
    /// loads WordPress.
    ///
    /// # Errors
    /// `Refused` with its output, if it exits with an error.
    pub fn command(&self, php: &str) -> Result<String, StartError> {
        let request = "$_SERVER += ['HTTP_HOST' => 'blog.test', 'REQUEST_URI' => '/', \
                       'SERVER_PROTOCOL' => 'HTTP/1.1', 'REQUEST_METHOD' => 'GET'];";
        let code = format!("{request} {php}");
        self.run(Command::new(find::program(&["php"])?).args(["-r", &code]))
    }

    /// Runs the tasks that are due, like a system timer: `php wp-cron.php`.
    ///
    /// # Errors
    /// `Refused` with its output, if it exits with an error.
    pub fn cron(&self) -> Result<String, StartError> {
        let mut command = Command::new(find::program(&["php"])?);
        self.run(command.arg("wp-cron.php").env("HTTP_HOST", "blog.test"))
    }

    fn run(&self, command: &mut Command) -> Result<String, StartError> {
        let refused = |detail: String| StartError::new("php", StartReason::Refused, detail);
        command.current_dir(self.root());
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        let output = command.output().map_err(|error| refused(error.to_string()))?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        if output.status.success() {
            return Ok(said);
        }
        let errors = String::from_utf8_lossy(&output.stderr);
        Err(refused(format!("{}: {errors}{said}", output.status)))
    }
}

/// Creates the document root: programs, configuration, content.
fn lay_out(root: &Path, plugin: &Path) -> io::Result<()> {
    let installed = Path::new(INSTALLED);
    let make = |name: &str| DirBuilder::new().recursive(true).mode(0o755).create(root.join(name));
    make("wp-content/plugins")?;
    make("wp-content/mu-plugins")?;
    for entry in fs::read_dir(installed)?.flatten() {
        let name = entry.file_name();
        let is_program = name.to_string_lossy().ends_with(".php") && entry.file_type()?.is_file();
        if is_program && name != "wp-config.php" {
            fs::copy(entry.path(), root.join(name))?;
        }
    }
    copy(&installed.join("wp-admin"), &root.join("wp-admin"))?;
    symlink(installed.join("wp-includes"), root.join("wp-includes"))?;
    symlink(installed.join("wp-content/themes"), root.join("wp-content/themes"))?;
    copy(&plugin.join("pagewell"), &root.join("wp-content/plugins/pagewell"))?;
    let ours =
        [("wp-config.php", "wp-config.php"), ("quiet.php", "wp-content/mu-plugins/quiet.php")];
    for (name, place) in ours {
        fs::copy(plugin.join("tests/site").join(name), root.join(place))?;
        fs::set_permissions(root.join(place), fs::Permissions::from_mode(0o644))?;
    }
    Ok(())
}

fn unmade(error: io::Error) -> StartError {
    StartError::new("wordpress", StartReason::CannotPrepare, error)
}
