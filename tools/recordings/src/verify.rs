//! Checks automatic dependencies with the real server: Debian's WordPress behind Pagewell, and the truth beside it.
//!
//! After each change of the plan, and once Pagewell has applied it, each page from the cache must be what
//! WordPress itself answers. Pages that really changed are counted beside those that were purged. The changes are
//! made past Pagewell, so that only the database tells of them. Not here: the changes (`record`).

use super::record::{AdminRequest, Blog, Editor, RecordingPlan, Sidebar};
use harness::{Client, Deadline, Pagewell, PrivateDir, Request, Response};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

/// How long a page may need until it is stored, after a change that is not visible yet.
const STORED_WITHIN: Duration = Duration::from_secs(60);
/// How many times a page is stored, and gone at the next visit, until it counts as not stored; also, how many times its
/// statements are not known.
const VISITS_MAX: usize = 20;
/// The pause before the next visit.
const BETWEEN_VISITS: Duration = Duration::from_millis(10);

/// How often scheduled tasks run in a time without changes, and how often each page is visited.
const CRON_EVERY: Duration = Duration::from_secs(10);
const ROUND_EVERY: Duration = Duration::from_secs(1);

/// The figures of a run.
#[derive(Debug, Default)]
pub struct Verification {
    /// The number of changes.
    pub changes: usize,
    /// The pages that are stored, of all URLs.
    pub stored: usize,
    /// The pages from the cache that differ from the truth.
    pub stale: Vec<String>,
    /// The stored pages that really changed.
    pub changed: usize,
    /// The stored pages that were purged.
    pub purged: usize,
    /// Those of them that were purged by changes that change no page.
    pub idle: usize,
    /// The visits of a time without changes, and those of them that the cache did not answer.
    pub visits: usize,
    pub visit_misses: usize,
}

impl Verification {
    /// The figures in a line.
    #[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
    fn summary(&self) -> String {
        format!(
            "{} changes, {} URLs stored, stale {}, really changed {}, purged {} ({:.2} times), of them {} by changes \
             that change nothing; {} visits without a change, {} not from the cache",
            self.changes,
            self.stored,
            self.stale.len(),
            self.changed,
            self.purged,
            self.purged as f64 / self.changed.max(1) as f64,
            self.idle,
            self.visits,
            self.visit_misses
        )
    }
}

/// Runs the whole plan against the Pagewell at `binary`, and prints the figures.
///
/// # Errors
/// A message, if a server does not start, a change is refused, or a page is stale.
pub fn run(has_widgets: bool, binary: &Path) -> Result<(), String> {
    let sidebar = if has_widgets { Sidebar::Default } else { Sidebar::Empty };
    let blog = Blog::start(sidebar)?;
    let verification = verify(&blog, binary, &RecordingPlan::whole())?;
    println!("{}", verification.summary());
    match verification.stale.len() {
        0 => Ok(()),
        stale => Err(format!("{stale} pages were stale")),
    }
}

/// Runs a plan on a blog.
fn verify(blog: &Blog, binary: &Path, plan: &RecordingPlan) -> Result<Verification, String> {
    let site = CachedSite::start(blog, binary)?;
    let editor = Editor::log_in(blog)?;
    let mut result = Verification::default();
    // The first visits compute what later ones find in the database.
    site.truths(&plan.urls)?;
    site.applied()?;
    let mut truth = site.truths(&plan.urls)?;
    let mut stored = site.fill(&plan.urls)?;
    result.stored = stored.len();
    println!("really changed  purged  stale  change");
    for (name, action) in &plan.changes {
        editor.perform(*action).map_err(|error| format!("{name}: {error}"))?;
        site.applied()?;
        let after = site.truths(&plan.urls)?;
        // Visits to compute the truth may have changed rows, too.
        site.applied()?;
        let (mut changed, mut purged) = (BTreeSet::new(), BTreeSet::new());
        let mut stale = Vec::new();
        for url in &stored {
            if truth.get(url) != after.get(url) {
                changed.insert(*url);
            }
            let page = site.get(url)?;
            if !is_hit(&page) {
                purged.insert(*url);
            } else if after.get(url) != Some(&Content::of(&page)) {
                stale.push(format!("{name}: {url}"));
            }
        }
        println!("{:>14}  {:>6}  {:>5}  {name}", changed.len(), purged.len(), stale.len());
        result.changes += 1;
        result.changed += changed.len();
        result.purged += purged.len();
        if changed.is_empty() {
            result.idle += purged.len();
        }
        result.stale.append(&mut stale);
        truth = after;
        stored = site.fill(&plan.urls)?;
    }
    site.idle(&stored, Duration::from_secs(plan.idle_seconds), &mut result)?;
    Ok(result)
}

/// The part of a response that must be the same.
#[derive(Debug, PartialEq, Eq)]
struct Content {
    status: u16,
    location: Option<String>,
    body: Vec<u8>,
}

impl Content {
    fn of(response: &Response) -> Content {
        Content {
            status: response.status,
            location: response.header("location").map(str::to_owned),
            body: response.content.clone(),
        }
    }
}

fn is_hit(response: &Response) -> bool {
    response.header("cache-status").is_some_and(|status| status.contains("; hit"))
}

/// A blog behind Pagewell, with automatic dependencies and no plugin.
struct CachedSite<'b> {
    blog: &'b Blog,
    pagewell: Pagewell,
    _dir: PrivateDir,
}

impl<'b> CachedSite<'b> {
    fn start(blog: &'b Blog, binary: &Path) -> Result<CachedSite<'b>, String> {
        let (args, dir) = CachedSite::configure(blog)?;
        let pagewell = Pagewell::start(binary, &args).map_err(|error| error.to_string())?;
        Ok(CachedSite { blog, pagewell, _dir: dir })
    }

    /// The arguments for Pagewell, and the directory with its configuration and its snapshots.
    fn configure(blog: &Blog) -> Result<(Vec<String>, PrivateDir), String> {
        let text = |error: harness::StartError| error.to_string();
        let database = blog.wordpress().database();
        database.create_follower("localhost", "wordpress").map_err(text)?;
        let dir = PrivateDir::temporary("automatic").map_err(text)?;
        let socket = database.socket().display();
        let url = format!("mysql://follower:secret@localhost/wordpress?socket={socket}");
        let configuration = format!(
            "[[database]]\nurl = {url:?}\nbarrier = \"1m\"\nlag_max = \"1m\"\n\
             [automatic]\nenabled = true\napplication = \"wordpress\"\n[php]\nchildren = 2\n\
             [snapshot]\ndirectory = {:?}\n",
            dir.path().join("snapshots")
        );
        let file = dir.path().join("pagewell.toml");
        std::fs::write(&file, configuration)
            .map_err(|error| format!("{}: {error}", file.display()))?;
        let mut args = blog.wordpress().serve_args();
        args.push(format!("--config={}", file.display()));
        Ok((args, dir))
    }

    fn get(&self, url: &str) -> Result<Response, String> {
        self.send(&Request::get(url)).map_err(|error| format!("{url}: {error}"))
    }

    /// Sends a request on a connection of its own: between two changes, Pagewell closes idle ones.
    fn send(&self, request: &Request) -> Result<Response, String> {
        let mut client = Client::new(self.pagewell.address().clone()).host(Blog::HOST);
        client.send(request).map_err(|error| error.to_string())
    }

    /// Waits until Pagewell has applied what the database has committed: the response to a write is held until
    /// then. This one changes nothing.
    fn applied(&self) -> Result<(), String> {
        let call = "<methodCall><methodName>system.listMethods</methodName></methodCall>";
        let request = Request::new("POST", "/xmlrpc.php")
            .header("Content-Type", "text/xml")
            .content(call.as_bytes());
        let response = self.send(&request)?;
        let status = response.header("cache-status").unwrap_or_default();
        if response.status == 200 && !status.contains("changes-late") {
            return Ok(());
        }
        Err(format!("a write was not held until it was applied: {} {status}", response.status))
    }

    /// The answers of WordPress itself.
    fn truths<'u>(&self, urls: &[&'u str]) -> Result<BTreeMap<&'u str, Content>, String> {
        let truth = |url: &&'u str| {
            let request = AdminRequest { method: "GET", target: url, ..AdminRequest::default() };
            Ok((*url, Content::of(&self.blog.send(&request)?)))
        };
        urls.iter().map(truth).collect()
    }

    /// Visits the stored pages again and again, while scheduled tasks run: nothing else changes.
    fn idle(
        &self,
        urls: &BTreeSet<&str>,
        duration: Duration,
        result: &mut Verification,
    ) -> Result<(), String> {
        let end = Deadline::after(duration);
        while !end.passed() {
            self.blog.wordpress().cron().map_err(|error| error.to_string())?;
            let next = Deadline::after(duration.min(CRON_EVERY));
            while !next.passed() {
                for url in urls {
                    result.visits += 1;
                    result.visit_misses += usize::from(!is_hit(&self.get(url)?));
                }
                std::thread::sleep(ROUND_EVERY);
            }
        }
        Ok(())
    }

    /// Visits the pages until they are stored, and returns those that are. Prints why others are not.
    fn fill<'u>(&self, urls: &[&'u str]) -> Result<BTreeSet<&'u str>, String> {
        let mut stored = BTreeSet::new();
        for url in urls {
            match self.reason_not_stored(url)? {
                None => {
                    stored.insert(*url);
                }
                Some(status) => eprintln!("{url} is not stored: {status}"),
            }
        }
        Ok(stored)
    }

    /// Visits a page until it is stored. If it is not, returns the last `Cache-Status`.
    fn reason_not_stored(&self, url: &str) -> Result<Option<String>, String> {
        let (deadline, mut refilled, mut late) = (Deadline::after(STORED_WITHIN), 0, 0);
        loop {
            let page = self.get(url)?;
            if is_hit(&page) {
                return Ok(None);
            }
            let status = page.header("cache-status").unwrap_or_default();
            refilled += usize::from(status.contains("stored"));
            // A change that is not visible to every reader keeps its pages out for a moment. Of a page whose content comes
            // late, the first response does not say whether it is stored.
            let is_soon = ["stored", "in-progress", "unsettled", "changed"]
                .iter()
                .any(|word| status.contains(word));
            // A report that comes late on a busy machine is not used. The next one may be in time.
            let is_late = ["reads-unseen", "no-lifetime"].iter().any(|word| status.contains(word));
            late += usize::from(is_late);
            let is_enough = refilled.max(late) >= VISITS_MAX || deadline.passed();
            if is_enough || !(is_soon || is_late) {
                return Ok(Some(status.to_owned()));
            }
            std::thread::sleep(BETWEEN_VISITS);
        }
    }
}

#[cfg(test)]
#[path = "verify/restart_tests.rs"]
mod restart;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::ChangeAction;
    use harness::root;

    #[test]
    fn wordpress_without_a_plugin_serves_no_stale_page() {
        let blog = Blog::start(Sidebar::Default).expect("the blog starts");
        let binary = root::repository().join("target/debug/pagewell");
        let urls = [
            "/",
            "/2023/08/post-298/",
            "/2023/08/post-297/",
            "/category/science/",
            "/category/travel/",
            "/author/bob/",
            "/feed/",
            "/comments/feed/",
            "/?s=zebracorn",
            "/wp-json/wp/v2/posts?per_page=5",
        ];
        let publish = r#"{"title": "The news", "content": "A zebracorn.", "status": "publish",
                          "categories": [{term:science}]}"#;
        let changes = vec![
            ("nothing", ChangeAction::Nothing),
            (
                "a draft",
                ChangeAction::Rest("POST", "posts", r#"{"title": "A draft", "status": "draft"}"#),
            ),
            ("cron", ChangeAction::Cron),
            ("publish a post", ChangeAction::Rest("POST", "posts", publish)),
            (
                "edit its title",
                ChangeAction::Rest("POST", "posts/{post}", r#"{"title": "More news"}"#),
            ),
            ("delete it", ChangeAction::Rest("DELETE", "posts/{post}?force=true", "")),
            ("an option", ChangeAction::Command("update_option('blogdescription', 'Light');")),
            (
                "SQL: a display name",
                ChangeAction::Sql(
                    "UPDATE wp_users SET display_name = 'Rob' WHERE user_login = 'bob';",
                ),
            ),
            (
                "SQL: a title",
                ChangeAction::Sql("UPDATE wp_posts SET post_title = 'By hand' WHERE ID = 1297;"),
            ),
        ];
        let plan = RecordingPlan { urls: urls.to_vec(), changes, idle_seconds: 0 };
        let result = verify(&blog, &binary, &plan).expect("the run");
        assert!(result.stale.is_empty(), "{:?}", result.stale);
        assert!(result.stored >= 9, "{}", result.summary());
        assert!(result.changed > 10 && result.purged < 3 * result.changed, "{}", result.summary());
        assert_eq!(result.idle, 0, "{}", result.summary());
    }

    #[test]
    fn a_page_that_was_read_from_another_server_is_not_stored() {
        let blog = Blog::start(Sidebar::Empty).expect("the blog starts");
        let binary = root::repository().join("target/debug/pagewell");
        let site = CachedSite::start(&blog, &binary).expect("Pagewell starts");
        let url = "/2023/08/post-298/";
        assert_eq!(site.fill(&[url]).expect("visits").len(), 1);
        // The follower knows the identifier from before.
        let change =
            "SET GLOBAL server_id = 4711; UPDATE wordpress.wp_posts SET post_title = 'New';";
        blog.wordpress().database().sql(change).expect("the database accepts it");
        site.applied().expect("it is applied");
        assert_eq!(site.fill(&[url]).expect("visits").len(), 0);
        let page = site.get(url).expect("a page");
        let status = page.header("cache-status").unwrap_or_default();
        assert!(status.contains("reads-unknown"), "{status}");
    }
}
