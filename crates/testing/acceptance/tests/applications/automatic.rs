//! Automatic dependencies with complete applications that declare nothing: their connections are relayed, and
//! after each change every page from the cache must be what the application itself answers.
//!
//! [`ComparedSite`] has two Pagewells on one application: one with automatic dependencies, and one that
//! bypasses the cache. The second is the truth. After a change, a request that writes
//! nothing is held until the change is applied, so no test waits for a time.

mod bad_input;
mod library;
mod mediawiki;
mod news;
mod undeclared;

use acceptance::{BOUND, TrialVisitors, cache_status, client, is_hit, trial_config, until};
use harness::{MariaDb, Pagewell, PrivateDir, Request, Response};
use std::collections::BTreeMap;
use std::process::Command;

/// The first block in this language of a section of the guide, without its indentation.
fn guide(heading: &str, language: &str) -> String {
    let text = include_str!("../../../../../docs/guide/automatic.md");
    let (_, section) = text.split_once(&format!("\n## {heading}\n")).expect("a section");
    let section = section.split("\n## ").next().unwrap_or_default();
    let (_, block) = section.split_once(&format!("```{language}\n")).expect("a block");
    let block = block.split("```").next().unwrap_or_default();
    block.lines().map(|line| line.trim_start().to_owned() + "\n").collect()
}

/// The part of a response that must be the same.
#[derive(Debug, PartialEq, Eq)]
struct Content {
    status: u16,
    location: Option<String>,
    text: String,
}

/// The parts of a test that depend on the application.
struct Application {
    host: &'static str,
    /// The document root, and the environment of the scripts.
    root: String,
    env: Vec<(String, String)>,
    /// Additional configuration of the Pagewell that stores nothing.
    plain_config: String,
    /// Settings of PHP in place of the guide's about APCu; empty: the guide's.
    apcu: String,
    /// The section of the guide with the configuration.
    guide: &'static str,
    /// A request of an unsafe method that PHP answers, and that writes nothing.
    idle_write: Request,
    /// The page without the parts that differ between two renders of the same rows.
    comparable: fn(&str) -> String,
    /// What `comparable` leaves out, as the findings that a trial accepts (`trial.accept`).
    accepted: &'static [&'static str],
}

/// The figures of a run, and the truth after its latest change.
#[derive(Default)]
struct Figures {
    truth: BTreeMap<&'static str, Content>,
    /// Stored pages that really changed, over all changes.
    changed: usize,
    /// Stored pages that were purged.
    purged: usize,
    /// Stored pages that differ from the truth.
    stale: Vec<String>,
}

impl std::fmt::Debug for Figures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "changed {}, purged {}, stale {:?}", self.changed, self.purged, self.stale)
    }
}

/// An application behind Pagewell, and the same without a cache.
struct ComparedSite {
    cached: Pagewell,
    visitors: Option<TrialVisitors>,
    plain: Pagewell,
    application: Application,
    _dir: PrivateDir,
}

impl Drop for ComparedSite {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.visitors.iter().for_each(|visitors| visitors.found_nothing(&self.cached));
            // An audit finds the clock that a trial accepts (`by-the-clock /**`).
            let has_clock = !self.application.accepted.is_empty();
            let accepted: &[&str] = if has_clock { &["audit_by_the_clock"] } else { &[] };
            acceptance::audit_found_nothing(&self.cached, accepted);
        }
    }
}

impl ComparedSite {
    /// Starts both. `schema` is the name of the application's database.
    fn start(database: &MariaDb, schema: &str, application: Application) -> ComparedSite {
        database.create_follower("localhost", schema).expect("an account");
        let dir = PrivateDir::temporary("automatic").expect("a directory");
        let socket = database.socket().display();
        let url = format!("mysql://follower:secret@localhost/{schema}?socket={socket}");
        // The guide's configuration, with the paths and the account of this test.
        let config: String = guide(application.guide, "toml")
            .lines()
            .map(|line| match line.split_once(" = ") {
                Some(("root", _)) => format!("root = {:?}\n", application.root),
                Some(("\"apc.enabled\"", _)) if !application.apcu.is_empty() => {
                    application.apcu.clone()
                }
                // A busy machine is late.
                Some(("url", _)) => {
                    format!("url = {url:?}\nbarrier = \"1m\"\nlag_max = \"1m\"\n")
                }
                _ => format!("{line}\n"),
            })
            .collect();
        let plain = format!(
            "[site]\nroot = {:?}\n[[rule]]\nbypass = true\n{}",
            application.root, application.plain_config
        );
        let env = application
            .env
            .iter()
            .flat_map(|(name, value)| ["--php-env".to_owned(), format!("{name}={value}")]);
        let env: Vec<String> = env.collect();
        let (mut trial, mut children) = (trial_config(), 2);
        if !trial.is_empty() {
            // Changes that do not pass through Pagewell arrive late on a busy machine.
            let accepted = [&["late /**"], application.accepted].concat();
            trial += &format!("trial.accept = {accepted:?}\n");
            // Renders of a trial need free children beside the requests.
            children = 6;
        }
        let start = |name: &str, config: &str| {
            let file = dir.path().join(name);
            let config = format!("{config}[php]\nchildren = {children}\n");
            std::fs::write(&file, config).expect("written");
            let mut command = Command::new(acceptance::binary());
            command.arg("serve").arg("--config").arg(file).arg("--memory=64M").args(&env);
            command.args(["--listen=127.0.0.1:0", "--admin=127.0.0.1:0"]);
            // On a busy machine, too, the look-ups of rows limit the purges.
            command.env("PAGEWELL_LOOKUP_TIME_MS", "60000");
            let own = PrivateDir::temporary("serve").expect("a directory");
            Pagewell::start_command(own, &mut command).expect("pagewell starts")
        };
        // Every tenth hit is audited, so that each test shows more.
        let config = format!("{trial}audit = \"1 in 10\"\n{config}");
        let (cached, visitors) = TrialVisitors::start(|| start("cached.toml", &config));
        let plain = start("plain.toml", &plain);
        ComparedSite { cached, visitors, plain, application, _dir: dir }
    }

    /// Sends a request to the Pagewell that caches, on a connection of its own: between two changes, idle ones
    /// are closed.
    fn send(&self, request: &Request) -> Response {
        let mut client = client(&self.cached).host(self.application.host).within(BOUND);
        let response = client.send(request).expect("an answer");
        let visitors = self.visitors.iter();
        visitors.for_each(|them| them.visit(&self.cached, request, self.application.host));
        response
    }

    fn get(&self, path: &str) -> Response {
        self.send(&Request::get(path))
    }

    /// Waits until what the database has committed is applied.
    fn applied(&self) {
        let response = self.send(&self.application.idle_write);
        assert!(response.status < 500, "{} {}", response.status, response.text());
        let status = cache_status(&response);
        assert!(!status.contains("changes-late"), "{status}");
    }

    fn content(&self, response: &Response) -> Content {
        Content {
            status: response.status,
            location: response.header("location").map(str::to_owned),
            text: (self.application.comparable)(&response.text()),
        }
    }

    /// The answers of the application itself.
    fn truths(&self, urls: &[&'static str]) -> BTreeMap<&'static str, Content> {
        let mut client = client(&self.plain).host(self.application.host).within(BOUND);
        let mut truth = |url: &'static str| {
            let response = client.get(url).expect("an answer");
            assert!(!is_hit(&response), "{url}: {}", cache_status(&response));
            self.content(&response)
        };
        urls.iter().map(|url| (*url, truth(url))).collect()
    }

    /// Requests each page until it is a hit.
    fn fill(&self, urls: &[&str]) {
        for url in urls {
            until(&format!("{url} is stored"), || {
                let response = self.get(url);
                let status = cache_status(&response).to_owned();
                // Only a change that was made a moment ago may keep a page out of the cache, and once another page of
                // the script that cannot be stored.
                let usual = ["hit", "stored", "unsettled", "changed", "as-sent"];
                // Whether a page that PHP sends slowly is stored is not said. A report that comes late is not used, and
                // the script's next ones are not asked for at once. Under trial, further visitors wait for the same render.
                let busy = ["in-progress", "reads-unseen", "no-lifetime", "collapsed"];
                assert!(
                    usual.iter().chain(&busy).any(|word| status.contains(word)),
                    "{url}: {} {status}\n{}",
                    response.status,
                    self.cached.log()
                );
                is_hit(&response)
            });
        }
    }

    /// Makes one change, and compares all pages before and after it.
    fn step(&self, urls: &[&'static str], name: &str, change: &mut dyn FnMut(), sum: &mut Figures) {
        if sum.truth.is_empty() {
            sum.truth = self.truths(urls);
            self.applied();
        }
        self.fill(urls);
        change();
        self.applied();
        let after = self.truths(urls);
        // A visit may write rows, too.
        self.applied();
        for url in urls {
            let page = self.get(url);
            sum.changed += usize::from(sum.truth[url] != after[url]);
            sum.purged += usize::from(!is_hit(&page));
            if self.content(&page) != after[url] {
                sum.stale.push(format!("{name}: {url} {}", cache_status(&page)));
            }
        }
        sum.truth = after;
    }
}
