//! A column of the matrix: a source with a proxy before it, a Pagewell that follows it, and the truth. For a
//! cluster there is a second node, which publishes the changes; it reaches the server directly, with an account
//! of its own.

use super::{Source, SourceFault};
use crate::error_text;
use harness::wire::HttpConnection;
use harness::{
    Address, Client, ConnectionEnd, Deadline, FaultyNetwork, MariaDb, MariaDbOptions, NetworkFault,
    Pagewell, Port, Postgres, PostgresOptions, PrivateDir, Request, Response, Signal, Stopwatch,
    TestServer, Valkey,
};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

/// Everything is well again after so long, or never.
const WELL_WITHIN: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// How long a process is stopped.
const STOPPED_FOR: Duration = Duration::from_secs(1);
const RULES: &str = "[[change]]\ntable = \"item\"\ntags = [\"item:{id}\"]\nany_row = [\"items\"]\n";
/// The account of the second node, which may be refused.
pub(super) const ACCOUNT: &str = "ACL SETUSER teller on >secret ~* +@all";

enum Server {
    MariaDb(MariaDb),
    Postgres(Postgres),
    Stream(Valkey),
}

/// A source, and what follows it. Fields are dropped in this order.
pub struct SourceColumn {
    pagewell: Pagewell,
    teller: Option<Pagewell>,
    network: FaultyNetwork,
    server: Server,
    truth: Arc<AtomicU64>,
    lag_max: Duration,
    _origin: TestServer,
    _port: Port,
    _dir: PrivateDir,
}

impl SourceColumn {
    /// Starts everything, with the page in the cache.
    ///
    /// # Errors
    /// The reason why a server did not start.
    pub fn start(binary: &Path, source: Source, lag_max: Duration) -> Result<SourceColumn, String> {
        let dir = PrivateDir::temporary("sources").map_err(error_text)?;
        let port = Port::take().map_err(error_text)?;
        let (server, behind) = server(source, port.address().port())?;
        let network = FaultyNetwork::before(behind).map_err(error_text)?;
        let truth = Arc::new(AtomicU64::new(1));
        let origin = origin(truth.clone()).map_err(error_text)?;
        let node = |name: &str, source: String| {
            let file = dir.path().join(name);
            fs::write(&file, source).map_err(error_text)?;
            let (file, origin) =
                (file.display().to_string(), format!("http://{}", origin.address()));
            let args = ["--config", &file, "--origin", &origin, "--memory", "64M", "--log", "warn"];
            Pagewell::start(binary, &args).map_err(error_text)
        };
        let config = |port, user: &str| server.config(port, user, lag_max);
        let pagewell = node("follower.toml", config(network.port(), "follower"))?;
        let teller = match source {
            Source::Stream => Some(node("teller.toml", config(behind, "teller"))?),
            Source::MariaDb | Source::Postgres => None,
        };
        let column = SourceColumn {
            pagewell,
            teller,
            network,
            server,
            truth,
            lag_max,
            _origin: origin,
            _port: port,
            _dir: dir,
        };
        column.well_again()?;
        Ok(column)
    }

    /// Lets a fault happen with a change, and waits until everything is well again. Returns for how long the
    /// old page was served.
    ///
    /// # Errors
    /// It never was well again; or what kept the fault from happening.
    pub fn suffer(&mut self, fault: SourceFault) -> Result<Duration, String> {
        let age = match fault {
            SourceFault::Quiet => self.change()?,
            SourceFault::StalledToPagewell => self.lasting(NetworkFault::StalledToClient)?,
            SourceFault::StalledToServer => self.lasting(NetworkFault::StalledToServer)?,
            SourceFault::Stalled => self.lasting(NetworkFault::Stalled)?,
            SourceFault::Cut => self.ended(ConnectionEnd::Cut)?,
            SourceFault::Reset => self.ended(ConnectionEnd::Reset)?,
            SourceFault::Refused => {
                self.network.set(NetworkFault::Refused);
                self.network.end_all(ConnectionEnd::Cut);
                self.change()?
            }
            SourceFault::Killed => {
                self.server.kill_and_start()?;
                self.change()?
            }
            SourceFault::LogLost => {
                self.next();
                self.tell()?;
                self.server.lose_log()?;
                self.until_new(Stopwatch::start())?
            }
            SourceFault::Redefined => {
                self.next();
                self.server.sql(REDEFINED)?;
                self.until_new(Stopwatch::start())?
            }
            SourceFault::Recreated => {
                self.server.sql("DROP TABLE item")?;
                // Nothing is stored, or everything again, without the table.
                self.until_asked_again()?;
                self.server.create()?;
                self.well_again()?;
                self.change()?
            }
            SourceFault::Woken => {
                self.pagewell.freeze();
                self.next();
                self.tell()?;
                let since = Stopwatch::start();
                thread::sleep(STOPPED_FOR);
                self.pagewell.signal(Signal::CONT);
                self.until_new(since)?
            }
            SourceFault::Hostile => {
                self.server
                    .command("XADD pagewell * tag")
                    .or_else(|_| self.server.command("XADD pagewell * tags x url a/b"))?;
                self.change()?
            }
            SourceFault::Unpublished | SourceFault::Full | SourceFault::ReadOnly => {
                let [refuse, _] = fault.commands().ok_or("no commands")?;
                self.server.command(refuse)?;
                self.change()?
            }
        };
        self.network.set(NetworkFault::None);
        if let Some([_, accept]) = fault.commands() {
            self.server.command(accept)?;
        }
        self.well_again()?;
        // The next change has to be seen, too.
        let after = self.change()?;
        self.well_again()?;
        Ok(age.max(after))
    }

    fn lasting(&self, fault: NetworkFault) -> Result<Duration, String> {
        self.network.set(fault);
        self.change()
    }

    fn ended(&self, how: ConnectionEnd) -> Result<Duration, String> {
        self.network.end_all(how);
        self.change()
    }

    /// Changes the truth and tells the source. Returns for how long the old page was served after that.
    fn change(&self) -> Result<Duration, String> {
        self.next();
        self.tell()?;
        self.until_new(Stopwatch::start())
    }

    fn next(&self) {
        self.truth.fetch_add(1, SeqCst);
    }

    fn tell(&self) -> Result<(), String> {
        if let Some(teller) = &self.teller {
            let answer = teller.invalidate("{\"tags\":[\"item:1\"]}").map_err(error_text)?;
            return if answer.status == 200 { Ok(()) } else { Err(answer.text()) };
        }
        self.server.sql("UPDATE item SET n = n + 1 WHERE id = 1")
    }

    fn until_new(&self, told_at: Stopwatch) -> Result<Duration, String> {
        let (wanted, deadline) =
            (self.truth.load(SeqCst), Deadline::after(self.lag_max + WELL_WITHIN));
        let mut old_for = Duration::ZERO;
        loop {
            // A page is as old as that when it is asked for; its answer may take a while to come.
            let asked_after = told_at.elapsed();
            let shown = number(&self.get()?)?;
            if shown >= wanted {
                return Ok(old_for);
            }
            old_for = asked_after;
            if deadline.passed() {
                return Err(format!(
                    "the page is still old after {old_for:?}: {}",
                    self.pagewell.log()
                ));
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    /// Waits until the page is rendered once more.
    fn until_asked_again(&self) -> Result<(), String> {
        let deadline = Deadline::after(WELL_WITHIN);
        while is_hit(&self.get()?) {
            if deadline.passed() {
                return Err(format!("the drop is not seen: {}", self.pagewell.log()));
            }
            thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    /// Waits until the page is stored.
    fn well_again(&self) -> Result<(), String> {
        let deadline = Deadline::after(WELL_WITHIN);
        while !is_hit(&self.get()?) {
            if deadline.passed() {
                return Err(format!("nothing is stored again: {}", self.pagewell.log()));
            }
            thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    fn get(&self) -> Result<Response, String> {
        let request = Request::get("/").header("Host", "sources.test");
        Client::new(Address::clone(self.pagewell.address())).send(&request).map_err(error_text)
    }
}

const REDEFINED: &str =
    "ALTER TABLE item DROP COLUMN extra; ALTER TABLE item ADD COLUMN extra int DEFAULT 7";

impl Server {
    fn config(&self, port: u16, user: &str, lag_max: Duration) -> String {
        let lag_max = format!("lag_max = \"{}s\"\n", lag_max.as_secs());
        match self {
            Server::MariaDb(_) => {
                format!(
                    "[[database]]\nurl = \"mysql://{user}:secret@127.0.0.1:{port}/paper\"\n{lag_max}{RULES}"
                )
            }
            Server::Postgres(_) => format!(
                "[[database]]\nurl = \"postgres://writer:secret@127.0.0.1:{port}/paper\"\nmanage = true\n{lag_max}{RULES}"
            ),
            Server::Stream(_) => {
                let account = if user == "teller" { "teller:secret@" } else { "" };
                format!("[cluster]\nurl = \"redis://{account}127.0.0.1:{port}\"\n{lag_max}")
            }
        }
    }

    fn create(&self) -> Result<(), String> {
        self.sql(
            "CREATE TABLE item (id int PRIMARY KEY, n int, extra int); INSERT INTO item VALUES (1, 1, 7)",
        )
    }

    fn sql(&self, sql: &str) -> Result<(), String> {
        match self {
            Server::MariaDb(server) => server.sql_in("paper", sql).map_err(error_text)?,
            Server::Postgres(server) => {
                server.sql_in("paper", &format!("SET ROLE writer; {sql}")).map_err(error_text)?
            }
            Server::Stream(_) => return Err("a stream has no tables".into()),
        };
        Ok(())
    }

    fn command(&self, command: &str) -> Result<(), String> {
        let Server::Stream(server) = self else { return Err("this is no stream".into()) };
        server.command(&command.split(' ').collect::<Vec<_>>()).map(drop)
    }

    fn kill_and_start(&mut self) -> Result<(), String> {
        match self {
            Server::MariaDb(server) => {
                server.kill();
                server.start_again().map_err(error_text)
            }
            Server::Postgres(server) => {
                server.kill();
                server.start_again().map_err(error_text)
            }
            Server::Stream(server) => {
                server.kill();
                server.start_again().map_err(error_text)?;
                self.command(ACCOUNT)
            }
        }
    }

    fn lose_log(&self) -> Result<(), String> {
        match self {
            Server::MariaDb(server) => {
                let reset = server
                    .sql("RESET MASTER")
                    .or_else(|_| server.sql("RESET BINARY LOGS AND GTIDS"));
                reset.map(drop).map_err(error_text)
            }
            Server::Postgres(server) => {
                let drop = "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots; \
                     SELECT pg_drop_replication_slot('pagewell')";
                let deadline = Deadline::after(WELL_WITHIN);
                // The reader may be quicker.
                while server.sql_in("paper", drop).is_err() && !deadline.passed() {
                    thread::sleep(LOOK_EVERY);
                }
                Ok(())
            }
            Server::Stream(_) => self.command("DEL pagewell"),
        }
    }
}

fn server(source: Source, port: u16) -> Result<(Server, u16), String> {
    let dir = || PrivateDir::temporary("source").map_err(error_text);
    let server = match source {
        Source::MariaDb => {
            let options = MariaDbOptions { port: Some(port), ..MariaDbOptions::followed(&[]) };
            let server = MariaDb::start_with(dir()?, options).map_err(error_text)?;
            server.create_database("paper", "writer", "secret").map_err(error_text)?;
            server.create_follower("127.0.0.1", "paper").map_err(error_text)?;
            Server::MariaDb(server)
        }
        Source::Postgres => {
            let options = PostgresOptions { port: Some(port), ..PostgresOptions::default() };
            let server = Postgres::start_with(dir()?, options).map_err(error_text)?;
            server.create_database("paper", "writer", "secret").map_err(error_text)?;
            server.sql("ALTER ROLE writer REPLICATION").map_err(error_text)?;
            server.sql_in("paper", "GRANT ALL ON SCHEMA public TO writer").map_err(error_text)?;
            Server::Postgres(server)
        }
        Source::Stream => {
            let server = Valkey::start(&[]).map_err(error_text)?;
            let port = server.port();
            let server = Server::Stream(server);
            server.command(ACCOUNT)?;
            return Ok((server, port));
        }
    };
    server.create()?;
    Ok((server, port))
}

/// An origin whose page shows the truth of the moment.
fn origin(truth: Arc<AtomicU64>) -> std::io::Result<TestServer> {
    TestServer::start(move |accepted| {
        let Ok(stream) = accepted.stream.try_clone() else { return };
        let mut connection = HttpConnection::of(stream);
        while connection.read_request().is_ok() {
            let body = truth.load(SeqCst).to_string();
            let page = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nCache-Control: max-age=36000\r\n\
                 Cache-Groups: \"item:1\", \"items\"\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            );
            if connection.write(page.as_bytes()).is_err() {
                return;
            }
        }
    })
}

fn number(response: &Response) -> Result<u64, String> {
    let text = response.text();
    text.parse().map_err(|_| format!("{}: {text}", response.status))
}

fn is_hit(response: &Response) -> bool {
    response.header("cache-status").is_some_and(|status| status.starts_with("pagewell; hit"))
}
