//! A private PostgreSQL with its own data directory and Unix socket, without network by default.
//!
//! It logs enough for logical replication (`wal_level = logical`) and does not wait for the disk. Statements
//! are passed to the `psql` client's standard input as the administrator, who needs no password on the socket.
//! Accounts created by [`Postgres::create_database`] use SCRAM. As root, everything runs as `postgres` or
//! `nobody`, because the server refuses to run as root. For fault tests it can be stopped, killed and started
//! again on the same data.

use crate::address::Address;
use crate::clock::Deadline;
use crate::directory::open_to_all;
use crate::process::{Process, READY_WITHIN, StopResult};
use crate::template::Template;
use crate::users::{self, Account};
use crate::{PrivateDir, Signal, StartError, StartReason, find};
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

const NAME: &str = "postgres";
/// A data directory as created by initdb.
static FRESH: Template = Template::new("postgres-fresh");
const STILL_IN_USE: &str = "is still in use";
/// The port in the name of the socket. The server does not listen on it by default.
const SOCKET_PORT: u16 = 5432;
/// The authentication rules: the administrator without a password on the socket, all others with SCRAM.
const HBA: &str = "local all postgres trust\nlocal replication postgres trust\n\
                   local all all scram-sha-256\nhost all all 127.0.0.1/32 scram-sha-256\n";

/// Options for the start of a server.
#[derive(Debug, Clone, Default)]
pub struct PostgresOptions {
    /// A TCP port of 127.0.0.1 to listen on in addition to the socket; `None` disables the network.
    pub port: Option<u16>,
    /// Further settings, as in `postgresql.conf`: `max_slot_wal_keep_size=1MB`.
    pub settings: Vec<String>,
    /// Lines of `pg_hba.conf` before the usual ones.
    pub hba: String,
    /// A certificate and its key, both PEM; enables TLS on TCP connections.
    pub certificate: Option<(String, String)>,
    /// Whether the server has its own system identifier.
    pub identity: Identity,
}

/// The identifier that a server reports to replication clients (`system_identifier`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Identity {
    /// The same as other servers of this process: the data directory is a copy, which saves seconds.
    #[default]
    Shared,
    /// A unique identifier.
    Own,
}

/// A private PostgreSQL, running or (in fault tests) stopped.
#[derive(Debug)]
pub struct Postgres {
    // Fields are dropped in this order: the process before its directory.
    process: Option<Process>,
    options: PostgresOptions,
    account: Option<Account>,
    run_dir: PathBuf,
    data_dir: PathBuf,
    dir: PrivateDir,
}

impl Postgres {
    /// Creates a data directory in `dir` unless it exists, and starts a server on it.
    ///
    /// # Errors
    /// `NotInstalled`, or the reason why it did not become ready.
    pub fn start(dir: PrivateDir) -> Result<Postgres, StartError> {
        Self::start_with(dir, PostgresOptions::default())
    }

    /// Starts a server like [`Postgres::start`], with options.
    ///
    /// # Errors
    /// As for [`Postgres::start`].
    pub fn start_with(dir: PrivateDir, options: PostgresOptions) -> Result<Postgres, StartError> {
        let account = users::for_server(&["postgres", "nobody"]);
        let data_dir = dir.part("data", account.as_ref())?;
        let run_dir = dir.part("run", account.as_ref())?;
        dir.socket(&format!("run/{}", socket_name(SOCKET_PORT)))?;
        open_to_all(&run_dir)?;
        if !data_dir.join("PG_VERSION").is_file() {
            let make = |data: &Path, dir: &PrivateDir| {
                install(data, &dir.path().join("initdb.log"), account.as_ref())
            };
            match options.identity {
                Identity::Shared => FRESH.copy(&data_dir, account.as_ref(), make)?,
                Identity::Own => make(&data_dir, &dir)?,
            }
        }
        let put = |name: &str, text: &str| {
            own_file(&data_dir.join(name), text, account.as_ref())
                .map_err(|error| StartError::new(NAME, StartReason::CannotPrepare, error))
        };
        put("pg_hba.conf", &format!("{}{HBA}", options.hba))?;
        if let Some((certificate, key)) = &options.certificate {
            put("server.crt", certificate)?;
            put("server.key", key)?;
        }
        let mut server = Postgres { process: None, options, account, run_dir, data_dir, dir };
        server.start_again()?;
        Ok(server)
    }

    /// The path of its Unix socket.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.run_dir.join(socket_name(self.port()))
    }

    /// The directory of its Unix socket.
    #[must_use]
    pub fn socket_dir(&self) -> &Path {
        &self.run_dir
    }

    /// The data directory of the server.
    #[must_use]
    pub fn data_dir(&self) -> &Path {
        &self.data_dir
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
        self.sql_in("postgres", statements)
    }

    /// Executes statements in a database as the administrator.
    ///
    /// # Errors
    /// `Refused`, with the server's message.
    pub fn sql_in(&self, database: &str, statements: &str) -> Result<String, StartError> {
        let refused = |why: &str| StartError::new(NAME, StartReason::Refused, why.trim_end());
        let fault = |error: std::io::Error| refused(&error.to_string());
        let input = self.dir.spooled(statements).map_err(fault)?;
        let mut command = self.client(database)?;
        let Output { status, stdout, stderr } = command.stdin(input).output().map_err(fault)?;
        if status.success() {
            return Ok(String::from_utf8_lossy(&stdout).into_owned());
        }
        Err(refused(&String::from_utf8_lossy(&stderr)))
    }

    /// Creates a database, and a role that owns it. The names must be plain words, and the password must not
    /// contain quotes.
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
            "CREATE ROLE \"{user}\" LOGIN PASSWORD '{password}';
             CREATE DATABASE \"{name}\" OWNER \"{user}\" ENCODING 'UTF8' TEMPLATE template0;"
        ))
        .map(|_| ())
    }

    /// Stops the server gracefully, without waiting for connected clients; its data are kept.
    pub fn stop(&mut self) -> Option<StopResult> {
        self.process.take().map(|mut process| {
            // SIGTERM would wait until all clients have disconnected.
            process.signal(Signal::INT);
            process.stop()
        })
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
    /// As for [`Postgres::start`].
    pub fn start_again(&mut self) -> Result<(), StartError> {
        if self.process.is_some() {
            return Ok(());
        }
        let deadline = Deadline::after(READY_WITHIN);
        let log = self.dir.path().join("postgres.log");
        let process = loop {
            // A socket left behind by a killed server would look like a running server.
            let _ = fs::remove_file(self.socket());
            match self.started(&log) {
                // The child processes of a killed server take a moment to end.
                Err(error) if error.detail.contains(STILL_IN_USE) && !deadline.passed() => {
                    let _ = fs::remove_file(&log);
                }
                process => break process?,
            }
        };
        self.process = Some(process);
        Ok(())
    }

    fn started(&self, log: &Path) -> Result<Process, StartError> {
        let mut process = Process::spawn(NAME, &mut self.command()?, log)?;
        let address = Address::Unix(self.socket());
        // The socket exists before the server accepts logins.
        process.wait_ready(READY_WITHIN, || address.accepts() && self.sql("SELECT 1").is_ok())?;
        Ok(process)
    }

    /// The port on which it listens, or that is in the name of its socket.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.options.port.unwrap_or(SOCKET_PORT)
    }

    fn command(&self) -> Result<Command, StartError> {
        let mut command = Command::new(program("postgres")?);
        as_account(&mut command, self.account.as_ref());
        command.current_dir(&self.data_dir).arg("-D").arg(&self.data_dir);
        let mut set = |setting: &str| {
            command.arg("-c").arg(setting);
        };
        set(&format!("unix_socket_directories={}", self.run_dir.display()));
        set("unix_socket_permissions=0777");
        set(if self.options.port.is_some() {
            "listen_addresses=127.0.0.1"
        } else {
            "listen_addresses="
        });
        set(&format!("port={}", self.port()));
        let usual = ["wal_level=logical", "fsync=off", "shared_buffers=16MB", "max_connections=50"];
        usual.iter().for_each(|setting| set(setting));
        if self.options.certificate.is_some() {
            set("ssl=on");
        }
        self.options.settings.iter().for_each(|setting| set(setting));
        Ok(command)
    }

    fn client(&self, database: &str) -> Result<Command, StartError> {
        let mut command = Command::new(client_program()?);
        command.args(["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "-F", "\t"]);
        command.args(["-v", "ON_ERROR_STOP=1", "-U", "postgres", "-d", database]);
        command.arg("-h").arg(&self.run_dir).arg("-p").arg(self.port().to_string());
        command.env("LC_ALL", "C").env("PGCLIENTENCODING", "UTF8");
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Ok(command)
    }
}

impl Drop for Postgres {
    /// SIGTERM, which ends other servers, makes PostgreSQL wait until all clients have disconnected.
    fn drop(&mut self) {
        self.stop();
    }
}

fn socket_name(port: u16) -> String {
    format!(".s.PGSQL.{port}")
}

/// Finds a program. Debian installs each version in a separate directory off the path; the newest is used.
fn program(name: &str) -> Result<PathBuf, StartError> {
    find::program(&[name]).or_else(|missing| {
        let versions = fs::read_dir("/usr/lib/postgresql").map_err(|_| missing.clone())?;
        let found = versions.flatten().filter_map(|entry| {
            let version: u32 = entry.file_name().to_string_lossy().parse().ok()?;
            let path = entry.path().join("bin").join(name);
            path.is_file().then_some((version, path))
        });
        found.max().map(|(_, path)| path).ok_or(missing)
    })
}

/// Finds the client itself. On Debian's path there is a script that searches for it at each call.
fn client_program() -> Result<PathBuf, StartError> {
    let server = program("postgres").ok().and_then(|server| fs::canonicalize(server).ok());
    let beside = server.map(|server| server.with_file_name("psql")).filter(|psql| psql.is_file());
    beside.map_or_else(|| find::program(&["psql"]), Ok)
}

/// Creates a file that only the server's account can read, as the server requires for a key.
fn own_file(path: &Path, text: &str, account: Option<&Account>) -> std::io::Result<()> {
    use std::os::unix::fs::{PermissionsExt, chown};
    fs::write(path, text)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    match account {
        Some(account) => chown(path, Some(account.uid), Some(account.gid)),
        None => Ok(()),
    }
}

fn as_account(command: &mut Command, account: Option<&Account>) {
    if let Some(account) = account {
        command.uid(account.uid).gid(account.gid);
    }
    command.env("LC_ALL", "C");
}

fn install(data_dir: &Path, log: &Path, account: Option<&Account>) -> Result<(), StartError> {
    let mut command = Command::new(program("initdb")?);
    as_account(&mut command, account);
    command.current_dir(data_dir).arg("-D").arg(data_dir);
    command.args(["-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync"]);
    let mut process = Process::spawn("initdb", &mut command, log)?;
    match process.wait(Duration::from_secs(120)) {
        crate::Wait::Ended(status) if status.success() => Ok(()),
        crate::Wait::Ended(status) => {
            Err(process.fault(StartReason::CannotPrepare, &status.to_string()))
        }
        crate::Wait::Running => Err(process.fault(StartReason::NotReady, "not done in 120 s")),
    }
}
