//! `cargo xtask demo`: the example site, with a database of its own, until Ctrl-C.
//!
//! Builds Pagewell as the tests do (unless PAGEWELL_BIN names a program), starts a private MariaDB in `target/demo` (kept, so that the second time is
//! quick), fills it, serves `examples/news` from it, and prints the addresses and some commands to try. SIGINT
//! and SIGTERM stop everything; so does the death of this program. `--check` runs these commands as
//! a visitor would, in a process of its own, and checks that no process is left ([`check`]). `--https` adds a
//! certificate authority and HTTPS ([`https`]).

mod check;
mod https;

use harness::root;
use harness::{
    Client, Deadline, MariaDbOptions, NewsSite, Pagewell, PrivateDir, StartReason, Stopwatch, Wait,
    suits_servers,
};
use https::HttpsDemo;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::fs;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

pub use check::check;

/// How many articles there are: a few thousand, in a few seconds.
const ARTICLES: u32 = 3000;
/// Which of the site's pages a changed row concerns.
const CHANGES: &str = r#"
[[change]]
table = "news"
tags = ["news", "news:{id}"]
any_row = ["news", "news:*"]

[[change]]
table = "comments"
tags = ["comments", "news:{news_id}"]
any_row = ["comments", "news:*"]
"#;
/// How long it may take until the database is followed.
const FOLLOWED_WITHIN: Duration = Duration::from_secs(60);
/// How often it is asked whether Pagewell still runs.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Runs the demo on a port of 127.0.0.1 (0: a free one) until a signal ends it.
///
/// # Errors
/// The reason why it did not run, in words for the person at the terminal.
pub fn run(port: u16, has_https: bool) -> Result<(), String> {
    let admin_port = free_admin_port(port)?;
    // From here on a signal is an orderly end, also in the middle of the start.
    let ended = signals()?;
    let binary = root::tested()?;
    let mut phases = Phases::start();
    println!("demo: starting MariaDB and filling it with {ARTICLES} articles …");
    let log = ["--max-binlog-size=16M", "--binlog-expire-logs-seconds=3600"];
    let options = MariaDbOptions::followed(&log);
    let dir = place("database", port)?;
    let site = NewsSite::start_with(&root::repository(), dir, ARTICLES, options);
    let site = site.map_err(|error| advice(&error))?;
    phases.ended("MariaDB has them");
    if is_stopped(&ended) {
        return Ok(());
    }
    let listen = if has_https && port == 0 { free()? } else { port };
    let https = has_https.then(|| HttpsDemo::start(listen)).transpose()?;
    let mut command = Command::new(&binary);
    command.arg("serve").args(site.serve_args());
    command.args(["--listen", &format!("127.0.0.1:{listen}")]);
    command.args(["--admin", &format!("127.0.0.1:{admin_port}")]);
    let place = place("pagewell", port)?;
    command.arg("--config").arg(config(&site, place.path(), https.as_ref())?);
    https.iter().for_each(|https| https.trust(&mut command));
    let mut server =
        Pagewell::start_command(place, &mut command).map_err(|error| advice(&error))?;
    wait_until_followed(&server)?;
    phases.ended("Pagewell serves the site and follows the database");
    let mut of_https = String::new();
    if let Some(https) = &https {
        https.wait(&server)?;
        phases.ended("Pagewell has a certificate");
        of_https = https.instructions(&server);
    }
    println!("{}", instructions(&server, &site, &of_https));
    let outcome = wait(&mut server, &ended);
    println!("demo: stopping …");
    drop(server);
    drop(site);
    println!("demo: stopped; nothing is left running");
    outcome
}

/// Prints how long each step of the start took.
struct Phases {
    since: Stopwatch,
}

impl Phases {
    fn start() -> Phases {
        Phases { since: Stopwatch::start() }
    }

    fn ended(&mut self, what: &str) {
        println!("demo: {what} ({:.1} s)", self.since.elapsed().as_secs_f64());
        self.since = Stopwatch::start();
    }
}

/// The configuration: the site's database is followed, by an account that may do no more.
fn config(site: &NewsSite, dir: &Path, https: Option<&HttpsDemo>) -> Result<PathBuf, String> {
    let name =
        |(name, value): &(String, String)| (name == "NEWS_DB_PASSWORD").then(|| value.clone());
    let password = site.env().iter().find_map(name).unwrap_or_default();
    let account = format!(
        "CREATE USER IF NOT EXISTS pagewell@localhost;
         ALTER USER pagewell@localhost IDENTIFIED BY '{password}';
         GRANT REPLICATION SLAVE ON *.* TO pagewell@localhost;
         GRANT SELECT ON news.* TO pagewell@localhost;"
    );
    site.database().sql(&account).map_err(|error| advice(&error))?;
    let socket = site.database().socket().display();
    let path = dir.join("pagewell.toml");
    let https = https.map(|https| https.config(dir)).unwrap_or_default();
    let text = format!(
        "{https}[[database]]\nurl = \"mysql://pagewell:{password}@localhost/news?socket={socket}\"\n{CHANGES}"
    );
    fs::write(&path, text).map_err(|error| format!("demo: {}: {error}", path.display()))?;
    Ok(path)
}

/// Waits until the database is followed: no page is cached before.
fn wait_until_followed(server: &Pagewell) -> Result<(), String> {
    let deadline = Deadline::after(FOLLOWED_WITHIN);
    let mut client = Client::new(server.address().clone());
    loop {
        let page = client.get("/letters/").map_err(|error| format!("demo: {error}"))?;
        if page.header("cache-status").is_some_and(|status| status.contains("; hit")) {
            return Ok(());
        }
        if deadline.passed() {
            return Err(format!("demo: the database is not followed:\n{}", server.log()));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The control interface beside the site, or anywhere when that port is taken.
fn free_admin_port(port: u16) -> Result<u16, String> {
    let is_free = |port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok();
    if port == 0 {
        return Ok(0);
    }
    if !is_free(port) {
        return Err(format!(
            "demo: port {port} of 127.0.0.1 is taken by another program (`ss -ltnp` shows which).\n\
             End that one, or choose another port: cargo xtask demo --port {}",
            port.saturating_add(1000).max(1024)
        ));
    }
    Ok(port.checked_add(1).filter(|beside| is_free(*beside)).unwrap_or(0))
}

/// A directory in `target/demo`. Elsewhere, and not kept, where servers could not use that, and for a
/// demo on any port: several of those may run at once.
fn place(name: &str, port: u16) -> Result<PrivateDir, String> {
    let path = root::target().join("demo").join(name);
    let dir = if port != 0 && suits_servers(&path) {
        PrivateDir::kept(&path)
    } else {
        PrivateDir::temporary(name)
    };
    dir.map_err(|error| error.to_string())
}

fn free() -> Result<u16, String> {
    harness::free_port().map_err(|error| format!("demo: no free port: {error}"))
}

fn signals() -> Result<Receiver<i32>, String> {
    let mut signals =
        Signals::new([SIGINT, SIGTERM]).map_err(|error| format!("demo: no signals: {error}"))?;
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for signal in signals.forever() {
            let _ = sender.send(signal);
        }
    });
    Ok(receiver)
}

fn is_stopped(ended: &Receiver<i32>) -> bool {
    ended.try_recv().is_ok()
}

fn wait(server: &mut Pagewell, ended: &Receiver<i32>) -> Result<(), String> {
    loop {
        match ended.recv_timeout(LOOK_EVERY) {
            Ok(_) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
            Err(RecvTimeoutError::Timeout) => {
                if let Wait::Ended(status) = server.wait(Duration::ZERO) {
                    return Err(format!("demo: pagewell ended, {status}:\n{}", server.log()));
                }
            }
        }
    }
}

fn advice(error: &harness::StartError) -> String {
    let hint = match error.reason {
        StartReason::NotInstalled => "\nscripts/setup demo installs what is missing.",
        StartReason::PortTaken => "\nChoose another port: cargo xtask demo --port 9080",
        _ => "",
    };
    format!("demo: {error}{hint}")
}

fn instructions(server: &Pagewell, site: &NewsSite, https: &str) -> String {
    let socket = site.database().socket().display();
    let (site, admin) = (server.address(), server.admin());
    format!(
        "
The Wrackham Post is on

    http://{site}/

Open it in a browser, or see in another terminal how pages are cached and purged:

  1. curl -si http://{site}/news/4/ | grep -i ^cache-status
        … fwd=uri-miss … stored     rendered by PHP and MariaDB, and cached now
  2. the same again
        … hit …                     from the cache, without PHP
  3. curl -si http://{site}/news/4/ --data 'author=Ada&body=Well said' | head -1
        HTTP/1.1 303 See Other      a new comment purges the pages that depend on it
  4. the first again
        … fwd=uri-miss … stored     rendered again, with the comment; all other pages stay cached
  5. mariadb --no-defaults --socket={socket} news -e \
     \"UPDATE news SET title = 'Changed by hand' WHERE id = 4\"
        Pagewell reads this change from the database's log
  6. the first again
        … fwd=uri-miss … stored     rendered again, with the new title
{https}
The back office, to write and edit: http://{site}/office/ (password: office)
The dashboard, to watch it:         http://{admin}/

This is a test build. For measurements use make build.
Ctrl-C stops everything."
    )
}
