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
use random_number::random_number;
use std::fs::{self, DirBuilder};
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
        let blog = Self::create(repository, &[("PAGEWELL_ADMIN", control)], Extras::Plugin)?;
        blog.run_script(&repository.join("php/wordpress/tests/site/install.php"))?;
        Ok(blog)
    }

    /// Creates a WordPress without a plugin, as it is after its installation. `script` fills its database: a PHP
    /// file that is run as a command. `env` is added to the environment of all scripts. Database-driven
    /// invalidation is possible as with [`WordPress::start`].
    ///
    /// # Errors
    /// As for [`WordPress::start`].
    pub fn start_plain(
        repository: &Path,
        script: &Path,
        env: &[(&str, &str)],
    ) -> Result<WordPress, StartError> {
        let env: Vec<(&str, &str)> =
            [("WP_DEBUG", "0")].into_iter().chain(env.iter().copied()).collect();
        let blog = Self::create(repository, &env, Extras::None)?;
        blog.run_script(script)?;
        Ok(blog)
    }

    /// Lays out the files and starts the database, which is empty.
    fn create(
        repository: &Path,
        env: &[(&str, &str)],
        extras: Extras,
    ) -> Result<WordPress, StartError> {
        if !Path::new(INSTALLED).join("wp-settings.php").is_file() {
            let detail = format!("not in {INSTALLED}; scripts/setup test installs it");
            return Err(StartError::new("wordpress", StartReason::NotInstalled, detail));
        }
        let dir = PrivateDir::temporary("wp")?;
        let site = dir.path().join("site");
        lay_out(&site, &repository.join("php/wordpress/tests/site"), extras).map_err(unmade)?;
        if extras == Extras::Plugin {
            install_plugin(repository, "wordpress", &site.join("wp-content/plugins"))?;
        }
        // The options that enable database-driven invalidation.
        let options = MariaDbOptions::followed(&[]);
        let database = MariaDb::start_with(PrivateDir::temporary("wpdb")?, options)?;
        let password = format!("{:016x}{:016x}", random_number(), random_number());
        database.create_database("wordpress", "wordpress", &password)?;
        let socket = database.socket().display().to_string();
        let own = [("WP_DB_SOCKET", socket.as_str()), ("WP_DB_PASSWORD", &password)];
        let env = own.iter().chain(env).map(|(name, value)| (name.to_string(), value.to_string()));
        let env = env.collect();
        Ok(WordPress { database, env, dir })
    }

    fn run_script(&self, script: &Path) -> Result<(), StartError> {
        // No mail leaves the machine.
        let mut command = Command::new(find::program(&["php"])?);
        self.run(command.args(["-d", "sendmail_path=/bin/true"]).arg(script)).map(drop)
    }

    /// The environment of the scripts: names and values.
    #[must_use]
    pub fn env(&self) -> &[(String, String)] {
        &self.env
    }

    /// The document root of the site.
    #[must_use]
    pub fn root(&self) -> PathBuf {
        self.dir.path().join("site")
    }

    /// The arguments for `pagewell serve`: the directory, and the environment for its php-fpm.
    #[must_use]
    pub fn serve_args(&self) -> Vec<String> {
        crate::pagewell::serve_args(&self.root(), &self.env)
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

/// Files that a blog has in addition to those of Debian's package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extras {
    /// Nothing.
    None,
    /// The plugin of this repository, and what the tests need (`quiet.php`).
    Plugin,
}

/// Creates the document root: programs, configuration, content.
fn lay_out(root: &Path, files: &Path, extras: Extras) -> io::Result<()> {
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
    let place = |name: &str, place: &str| {
        fs::copy(files.join(name), root.join(place))?;
        fs::set_permissions(root.join(place), fs::Permissions::from_mode(0o644))
    };
    place("wp-config.php", "wp-config.php")?;
    if extras == Extras::Plugin {
        place("quiet.php", "wp-content/mu-plugins/quiet.php")?;
    }
    Ok(())
}

/// Installs a plugin of the checkout into a directory of `application` (`wordpress`, `mediawiki`), with the script
/// that users run. `repository` is the root of the checkout.
///
/// # Errors
/// `Refused` with the output of the script, if it fails.
pub fn install_plugin(
    repository: &Path,
    application: &str,
    directory: &Path,
) -> Result<(), StartError> {
    let refused = |detail: String| StartError::new("build-plugin", StartReason::Refused, detail);
    let mut script = Command::new(repository.join("php/build-plugin"));
    let output = script.arg(application).arg(directory).output();
    let output = output.map_err(|error| refused(error.to_string()))?;
    if output.status.success() {
        return Ok(());
    }
    Err(refused(String::from_utf8_lossy(&output.stderr).into_owned()))
}

fn unmade(error: io::Error) -> StartError {
    StartError::new("wordpress", StartReason::CannotPrepare, error)
}
