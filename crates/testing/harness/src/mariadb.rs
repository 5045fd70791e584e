//! A private MariaDB, or MySQL where only that is installed, with its own data directory and Unix socket,
//! without network by default.
//!
//! Statements are passed to the `mariadb` client's standard input, as the user of this process. MariaDB
//! authenticates that user, and no other, by the socket's credentials, so there is no administrator password.
//! MySQL's administrator is `root` without a password. Applications get accounts from
//! [`MariaDb::create_database`]. An existing data directory is reused. As root, the server runs as `mysql`.
//!
//! For fault tests it can be stopped, killed and started again on the same data.

use crate::address::Address;
use crate::directory::open_to_all;
use crate::process::{Process, READY_WITHIN, StopResult};
use crate::sql_product::SqlProduct;
use crate::template::Template;
use crate::users::{self, Account};
use crate::{PrivateDir, StartError, StartReason, find};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// A data directory with the system tables only.
static FRESH: Template = Template::new("mariadb-fresh");

/// Options for the start of a server.
#[derive(Debug, Clone, Default)]
pub struct MariaDbOptions {
    /// A TCP port of 127.0.0.1 to listen on in addition to the socket; `None` disables the network.
    pub port: Option<u16>,
    /// Further command-line options of `mariadbd`, such as `--log-bin`.
    pub options: Vec<String>,
}

impl MariaDbOptions {
    /// The options of a server whose binary log Pagewell can follow, and further ones; without network.
    #[must_use]
    pub fn followed(more: &[&str]) -> MariaDbOptions {
        let options = ["--log-bin=bin", "--binlog-format=ROW", "--server-id=1"];
        let options = options.iter().chain(more).map(|option| (*option).to_owned());
        MariaDbOptions { port: None, options: options.collect() }
    }
}

/// A private MariaDB, running or (in fault tests) stopped.
#[derive(Debug)]
pub struct MariaDb {
    // Fields are dropped in this order: the process before its directory.
    process: Option<Process>,
    options: MariaDbOptions,
    account: Option<Account>,
    product: SqlProduct,
    program: PathBuf,
    socket: PathBuf,
    data_dir: PathBuf,
    scratch_dir: PathBuf,
    dir: PrivateDir,
}

impl MariaDb {
    /// Creates a data directory in `dir` unless it exists, and starts a server on it.
    ///
    /// # Errors
    /// `NotInstalled`, or the reason why it did not become ready.
    pub fn start(dir: PrivateDir) -> Result<MariaDb, StartError> {
        Self::start_with(dir, MariaDbOptions::default())
    }

    /// Starts a server like [`MariaDb::start`], with options.
    ///
    /// # Errors
    /// As for [`MariaDb::start`].
    pub fn start_with(dir: PrivateDir, options: MariaDbOptions) -> Result<MariaDb, StartError> {
        let (product, program) = SqlProduct::installed()?;
        let account = users::for_server(&["mysql", "nobody"]);
        let data_dir = dir.part("data", account.as_ref())?;
        // Servers name temporary tables by their process id only. In a shared directory, the tables of two
        // servers that start at the same time could collide.
        let scratch_dir = dir.part("scratch", account.as_ref())?;
        let socket = dir.part("run", account.as_ref()).and_then(|_| dir.socket("run/db.sock"))?;
        open_to_all(socket.parent().unwrap_or(dir.path()))?;
        if !data_dir.join("mysql").is_dir() {
            FRESH.copy(&data_dir, account.as_ref(), |data, made| {
                let scratch = made.part("scratch", account.as_ref())?;
                let log = made.path().join("install.log");
                match product {
                    SqlProduct::MariaDb => install(data, &scratch, &log, account.as_ref()),
                    SqlProduct::MySql => initialize(&program, data, &log, account.as_ref()),
                }
            })?;
        }
        let mut server = MariaDb {
            process: None,
            options,
            account,
            product,
            program,
            socket,
            data_dir,
            scratch_dir,
            dir,
        };
        server.start_again()?;
        Ok(server)
    }

    /// Whether it is MariaDB or MySQL.
    #[must_use]
    pub fn product(&self) -> SqlProduct {
        self.product
    }

    /// The path of its Unix socket.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// The process id; `None` while it is stopped.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(Process::id)
    }

    /// The end of its log.
    #[must_use]
    pub fn log(&self) -> String {
        self.process.as_ref().map(Process::log).unwrap_or_default()
    }

    /// Executes statements as the administrator. Returns the rows, with tabs between columns.
    ///
    /// # Errors
    /// `Refused`, with the server's message.
    pub fn sql(&self, statements: &str) -> Result<String, StartError> {
        self.sql_in("", statements)
    }

    /// Executes statements in a database as the administrator.
    ///
    /// # Errors
    /// `Refused`, with the server's message.
    pub fn sql_in(&self, database: &str, statements: &str) -> Result<String, StartError> {
        let refused = |why: &str| StartError::new("mariadb", StartReason::Refused, why.trim_end());
        let fault = |error: std::io::Error| refused(&error.to_string());
        let input = self.dir.spooled(statements).map_err(fault)?;
        let mut command = self.client()?;
        if !database.is_empty() {
            command.arg(database);
        }
        let Output { status, stdout, stderr } = command.stdin(input).output().map_err(fault)?;
        if status.success() {
            return Ok(String::from_utf8_lossy(&stdout).into_owned());
        }
        Err(refused(&String::from_utf8_lossy(&stderr)))
    }

    /// Creates a database, unless it exists, and an account with all privileges on it. The names must be plain
    /// words, and the password must not contain quotes.
    ///
    /// # Errors
    /// `Refused`, with the server's message.
    pub fn create_database(
        &self,
        name: &str,
        user: &str,
        password: &str,
    ) -> Result<(), StartError> {
        self.sql(&format!(
            "CREATE DATABASE IF NOT EXISTS `{name}` CHARACTER SET utf8mb4;
             CREATE USER IF NOT EXISTS `{user}`@localhost;
             ALTER USER `{user}`@localhost IDENTIFIED BY '{password}';
             GRANT ALL ON `{name}`.* TO `{user}`@localhost;"
        ))
        .map(|_| ())
    }

    /// Creates an account `follower` at a host, with the password `secret`. It has only the privileges to read
    /// the binary log and one database.
    ///
    /// # Errors
    /// `Refused`, with the server's message.
    pub fn create_follower(&self, host: &str, database: &str) -> Result<(), StartError> {
        self.sql(&format!(
            "CREATE USER follower@`{host}` IDENTIFIED BY 'secret';
             GRANT REPLICATION SLAVE ON *.* TO follower@`{host}`;
             GRANT SELECT ON `{database}`.* TO follower@`{host}`;"
        ))?;
        match (self.product, self.options.port) {
            (SqlProduct::MySql, Some(port)) if host != "localhost" => self.log_in_once(port),
            _ => Ok(()),
        }
    }

    /// Logs in as the follower over TLS, which makes the server remember the password: MySQL accepts a login
    /// without TLS only after that.
    fn log_in_once(&self, port: u16) -> Result<(), StartError> {
        let refused = |why: &str| StartError::new("mysql", StartReason::Refused, why.trim_end());
        let mut command = Command::new(find::program(&["mysql"])?);
        command.args(["--no-defaults", "--host=127.0.0.1", "--user=follower", "--execute=DO 0"]);
        command.arg(format!("--port={port}")).env("MYSQL_PWD", "secret");
        let output = command.output().map_err(|error| refused(&error.to_string()))?;
        if output.status.success() {
            return Ok(());
        }
        Err(refused(&String::from_utf8_lossy(&output.stderr)))
    }

    /// Stops the server gracefully; its data are kept.
    pub fn stop(&mut self) -> Option<StopResult> {
        self.process.take().map(|mut process| process.stop())
    }

    /// Kills the server like a crash; its data stay as they were.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill();
        }
    }

    /// Starts the server again on its data. Does nothing if it is running.
    ///
    /// # Errors
    /// As for [`MariaDb::start`].
    pub fn start_again(&mut self) -> Result<(), StartError> {
        if self.process.is_some() {
            return Ok(());
        }
        // A socket left behind by a killed server would look like a server that refuses connections.
        let _ = fs::remove_file(&self.socket);
        let log = self.dir.path().join("mariadbd.log");
        let mut process = Process::spawn("mariadbd", &mut self.command(), &log)?;
        let address = Address::Unix(self.socket.clone());
        process.wait_ready(READY_WITHIN, || address.accepts())?;
        self.process = Some(process);
        Ok(())
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("--no-defaults");
        command.arg(option("datadir", &self.data_dir));
        command.arg(option("tmpdir", &self.scratch_dir));
        command.arg(option("socket", &self.socket));
        command.arg(option("pid-file", &self.data_dir.join("mariadbd.pid")));
        command.args(["--innodb-buffer-pool-size=64M", "--skip-name-resolve"]);
        command.args(["--character-set-server=utf8mb4", "--skip-log-bin"]);
        // A commit outlives the server that is killed, but not the machine.
        command.args(["--innodb-flush-log-at-trx-commit=2", "--sync-binlog=0"]);
        match self.options.port {
            Some(port) => {
                command.args(["--bind-address=127.0.0.1".into(), format!("--port={port}")])
            }
            None => command.arg("--skip-networking"),
        };
        run_as(&mut command, self.account.as_ref());
        command.args(self.product.options()).args(&self.options.options);
        command
    }

    fn client(&self) -> Result<Command, StartError> {
        let mut command = Command::new(find::program(&["mariadb", "mysql"])?);
        command.args(["--no-defaults", "--batch", "--skip-column-names"]);
        command.arg("--default-character-set=utf8mb4").arg(option("socket", &self.socket));
        match (self.product, users::current()) {
            (SqlProduct::MySql, _) => {
                command.arg("--user=root");
            }
            (SqlProduct::MariaDb, Some(user)) => {
                command.arg(format!("--user={}", user.name));
            }
            (SqlProduct::MariaDb, None) => {}
        }
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Ok(command)
    }
}

impl Drop for MariaDb {
    /// A server whose data disappear with it has nothing to write down.
    fn drop(&mut self) {
        if self.dir.is_temporary() {
            self.kill();
        }
    }
}

fn option(name: &str, value: &Path) -> String {
    format!("--{name}={}", value.display())
}

/// Creates the system tables. The administrator is the user of this process, authenticated by the socket. If
/// that user has no name (in some containers), it is root without a password.
fn install(
    data_dir: &Path,
    scratch_dir: &Path,
    log: &Path,
    account: Option<&Account>,
) -> Result<(), StartError> {
    let name = "mariadb-install-db";
    let mut command = Command::new(find::program(&[name, "mysql_install_db"])?);
    // `--force`: it also runs where the name of the host cannot be resolved.
    command.args(["--no-defaults", "--force", "--skip-test-db", "--skip-name-resolve"]);
    command.arg(option("datadir", data_dir)).arg(option("tmpdir", scratch_dir));
    match users::current() {
        Some(user) => {
            command.arg("--auth-root-authentication-method=socket");
            command.arg(format!("--auth-root-socket-user={}", user.name));
        }
        None => {
            command.arg("--auth-root-authentication-method=normal");
        }
    }
    run_as(&mut command, account);
    finish(&mut Process::spawn(name, &mut command, log)?)
}

/// Creates MySQL's system tables, with the administrator `root` without a password.
fn initialize(
    program: &Path,
    data_dir: &Path,
    log: &Path,
    account: Option<&Account>,
) -> Result<(), StartError> {
    let mut command = Command::new(program);
    command.args(["--no-defaults", "--initialize-insecure"]).arg(option("datadir", data_dir));
    run_as(&mut command, account);
    finish(&mut Process::spawn("mysqld", &mut command, log)?)?;
    // Each copy of this directory makes up a UUID of its own.
    let _ = fs::remove_file(data_dir.join("auto.cnf"));
    Ok(())
}

fn run_as(command: &mut Command, account: Option<&Account>) {
    if let Some(account) = account {
        command.arg(format!("--user={}", account.name));
    }
}

/// Waits for the end of an installation.
fn finish(process: &mut Process) -> Result<(), StartError> {
    match process.wait(Duration::from_secs(120)) {
        crate::Wait::Ended(status) if status.success() => Ok(()),
        crate::Wait::Ended(status) => {
            Err(process.fault(StartReason::CannotPrepare, &status.to_string()))
        }
        crate::Wait::Running => Err(process.fault(StartReason::NotReady, "not done in 120 s")),
    }
}
