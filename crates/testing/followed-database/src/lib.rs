//! A database that is followed, and pages made from its rows: what the torture and the benchmark of
//! changes share.
//!
//! One table, `item` (`id`, `n`). The origin ([`origin`]) makes a page from four items as the database
//! has them at that moment; Pagewell follows the database and knows which page is made from what. The
//! truth is in the database. All over Unix sockets and loopback; everything ends when it is dropped.

mod fastcgi;
pub mod origin;
mod server;
pub mod sql;

pub use origin::DependencySource;
pub use server::{Kind, Server};

use harness::stand::RestartedPagewell;
use harness::{Address, Pagewell, Port, PrivateDir};
use origin::Origin;
use sql::Sql;
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How many items a page is made from.
pub const OF_A_PAGE: usize = 4;
/// The first line of a configuration in which every tenth hit is audited, so that each use of it shows more.
pub const TENTH_HIT: &str = "audit = \"1 in 10\"\n";

/// The programs that are to run, and their settings.
#[derive(Clone, Copy)]
pub struct RowsSetup<'a> {
    /// The path of the program `pagewell`.
    pub binary: &'a Path,
    /// The kind of database to start.
    pub kind: Kind,
    /// How many items there are.
    pub items: usize,
    /// Pagewell's memory budget, as in the option `--memory`.
    pub memory: &'a str,
    /// How Pagewell knows which page is made from what.
    pub dependencies: DependencySource,
    /// The first lines: how many hits are audited.
    pub first: &'a str,
    /// Further lines of `[[database]]`.
    pub more: &'a str,
    /// Lines behind all tables: `[snapshot]`, say. `DIRECTORY` stands for a directory that exists.
    pub last: &'a str,
}

/// The tags of the tables' rows.
const RULES: &str = "[[change]]\ntable = \"item\"\ntags = [\"item:{id}\"]\nany_row = [\"items\"]\n\
                     [[change]]\ntable = \"other\"\ntags = [\"other:{item}\"]\nany_row = [\"others\"]\n";

/// The configuration of a site with automatic dependencies, whose files are in `dir`.
fn automatic(dir: &Path, origin: SocketAddr) -> Result<String, String> {
    let (root, capture) = (dir.join("root"), dir.join("capture"));
    for new in [&root, &capture] {
        fs::create_dir(new).map_err(|error| format!("{}: {error}", new.display()))?;
    }
    // Pagewell refuses a directory that others can write to, which the umask may allow.
    fs::set_permissions(&capture, fs::Permissions::from_mode(0o755))
        .map_err(|error| error.to_string())?;
    // The responder answers instead of this script.
    fs::write(root.join("index.php"), "").map_err(|error| error.to_string())?;
    Ok(format!(
        "[site]\nroot = {root:?}\n[php]\nat = \"{origin}\"\n\
         [automatic]\nenabled = true\napplication = \"wordpress\"\ncapture_directory = {capture:?}\n"
    ))
}

/// What runs. Fields are dropped in this order: each before what it asks.
pub struct Rows {
    pagewell: Mutex<RestartedPagewell<'static>>,
    address: Address,
    /// The origin, which renders the pages.
    pub origin: Origin,
    /// The database that Pagewell follows.
    pub database: Server,
    _ports: (Port, Port),
    _dir: PrivateDir,
}

impl Rows {
    /// Starts everything.
    ///
    /// # Errors
    /// A server that did not start.
    pub fn start(wanted: &RowsSetup<'_>) -> Result<Rows, String> {
        let dir = PrivateDir::temporary("rows").map_err(told)?;
        let database = Server::start(wanted.kind, wanted.items)?;
        let (socket, dependencies) = (database.socket(), wanted.dependencies);
        let origin = Origin::start(database.kind(), &socket, wanted.items, dependencies)?;
        let config = dir.path().join("pagewell.toml");
        let last = wanted.last.replace("DIRECTORY", &dir.path().display().to_string());
        let rules = match dependencies {
            DependencySource::Tags => RULES.to_owned(),
            DependencySource::Statements => automatic(dir.path(), origin.address())?,
        };
        let (first, more) = (wanted.first, wanted.more);
        let text = format!("{first}{}{more}\n{rules}{last}\n", database.config());
        fs::write(&config, text).map_err(|error| error.to_string())?;
        let system = |error: std::io::Error| error.to_string();
        let ports = (Port::take().map_err(system)?, Port::take().map_err(system)?);
        let [listen, admin] = [&ports.0, &ports.1].map(|port| port.address().to_string());
        let (config, url) = (config.display().to_string(), origin.url());
        let mut arguments = vec![
            ["--config", &config],
            ["--listen", &listen],
            ["--admin", &admin],
            ["--memory", wanted.memory],
            ["--log", "warn"],
        ];
        if dependencies == DependencySource::Tags {
            arguments.push(["--origin", &url]);
        }
        let arguments: Vec<String> = arguments.concat().into_iter().map(str::to_owned).collect();
        let binary = wanted.binary.to_owned();
        let pagewell = RestartedPagewell::start(move || Pagewell::start(&binary, &arguments))?;
        let address = pagewell.address().clone();
        let pagewell = Mutex::new(pagewell);
        Ok(Rows { pagewell, address, origin, database, _ports: ports, _dir: dir })
    }

    /// The address at which Pagewell serves pages.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The id of Pagewell's process.
    pub fn pid(&self) -> u32 {
        self.pagewell().pid()
    }

    /// Kills Pagewell as a crash would, and starts it again at the same address.
    ///
    /// # Errors
    /// It does not come up again.
    pub fn kill(&self) -> Result<(), String> {
        self.pagewell().kill_and_start()
    }

    /// A connection to the database, for one who writes.
    ///
    /// # Errors
    /// Why there is none.
    pub fn sql(&self) -> Result<Sql, String> {
        self.database.sql()
    }

    /// One of Pagewell's counters.
    ///
    /// # Errors
    /// When it does not say.
    pub fn counter(&self, name: &str) -> Result<u64, String> {
        self.pagewell().counter(name)
    }

    /// Checks that Pagewell's audit has found no wrong page in any of its lives. Returns the comparisons with a verdict.
    ///
    /// # Errors
    /// It has: the counters, and the log.
    pub fn check_audit(&self) -> Result<u64, String> {
        self.pagewell().check_audit()
    }

    /// The log of Pagewell's process so far.
    pub fn log(&self) -> String {
        self.pagewell().log()
    }

    fn pagewell(&self) -> MutexGuard<'_, RestartedPagewell<'static>> {
        self.pagewell.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The items that a page is made from.
pub fn items_of(page: usize, items: usize) -> [usize; OF_A_PAGE] {
    std::array::from_fn(|at| (page * 7 + at * 13) % items)
}

fn told(error: harness::StartError) -> String {
    error.to_string()
}
