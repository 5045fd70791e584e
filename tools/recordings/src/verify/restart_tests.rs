//! Pages with automatic dependencies survive a restart: WordPress behind a Pagewell that stops and starts again.
//!
//! Pages are hits after it, except those that a change concerns which was made meanwhile. Not here: changes
//! while Pagewell runs.

use super::*;
use harness::{Address, StopResult, root};
use std::path::PathBuf;
use std::process::Command;

/// How long the pages of a snapshot may take.
const LOADED_WITHIN: Duration = Duration::from_secs(60);

const URLS: [&str; 9] = [
    "/",
    "/2023/08/post-298/",
    "/2023/08/post-297/",
    "/2021/03/post-10/",
    "/category/science/",
    "/category/travel/",
    "/author/bob/",
    "/feed/",
    "/?s=zebracorn",
];

fn binary() -> PathBuf {
    root::repository().join("target/debug/pagewell")
}

/// A blog behind a Pagewell that is started several times with the same arguments.
struct Restarts<'b> {
    site: CachedSite<'b>,
    args: Vec<String>,
}

impl Restarts<'_> {
    fn start(blog: &Blog) -> Restarts<'_> {
        let (args, dir) = CachedSite::configure(blog).expect("a configuration");
        let pagewell = Pagewell::start(&binary(), &args).expect("it starts");
        Restarts { site: CachedSite { blog, pagewell, _dir: dir }, args }
    }

    fn stop(&mut self) {
        let stopped = self.site.pagewell.stop();
        let is_clean = matches!(stopped, StopResult::Ended(status) if status.success());
        assert!(is_clean, "{stopped:?}: {}", self.log());
    }

    /// Starts it again, and waits until the pages of the snapshot are restored.
    fn start_again(&mut self) {
        let pagewell = Pagewell::start(&binary(), &self.args).expect("it starts");
        self.continue_with(pagewell);
    }

    /// Lets another process take over. Returns the first one.
    fn take_over(&mut self) -> Pagewell {
        let shown = |address: &Address| match address {
            Address::Tcp(address) => address.to_string(),
            Address::Unix(_) => panic!("a TCP address"),
        };
        let mut command = Command::new(binary());
        command.arg("serve").args(&self.args).arg("--take-over");
        command.args(["--listen", &shown(self.site.pagewell.address())]);
        command.args(["--admin", &shown(self.site.pagewell.admin())]);
        let dir = PrivateDir::temporary("next").expect("a directory");
        let next = Pagewell::start_command(dir, &mut command).expect("it takes over");
        self.continue_with(next)
    }

    fn continue_with(&mut self, pagewell: Pagewell) -> Pagewell {
        let before = std::mem::replace(&mut self.site.pagewell, pagewell);
        let deadline = Deadline::after(LOADED_WITHIN);
        while !self.log().contains("snapshot-loaded") {
            assert!(!deadline.passed(), "no snapshot: {}", self.log());
            std::thread::sleep(Duration::from_millis(5));
        }
        before
    }

    fn log(&self) -> String {
        self.site.pagewell.log()
    }

    /// The pages that are in the cache.
    fn hits(&self) -> BTreeSet<&'static str> {
        URLS.into_iter().filter(|url| is_hit(&self.site.get(url).expect("a response"))).collect()
    }

    /// The pages whose content is not the truth.
    fn stale(&self) -> Vec<&'static str> {
        let truths = self.site.truths(&URLS).expect("the truth");
        let is_stale = |url: &&'static str| {
            let page = self.site.get(url).expect("a response");
            is_hit(&page) && truths.get(url) != Some(&Content::of(&page))
        };
        URLS.into_iter().filter(is_stale).collect()
    }

    /// Changes the title of a post, past Pagewell.
    fn retitle(&self, title: &str) {
        self.sql(&format!("UPDATE wp_posts SET post_title = '{title}' WHERE ID = 1297"));
    }

    fn sql(&self, sql: &str) {
        self.site.blog.wordpress().database().sql_in("wordpress", sql).expect("it runs");
    }

    /// The pages that are in the cache, when all changes so far are applied.
    fn hits_then(&self) -> BTreeSet<&'static str> {
        self.site.applied().expect("it is applied");
        self.hits()
    }

    fn fill_all(&self) -> BTreeSet<&'static str> {
        // The first visits compute what later ones find in the database.
        self.site.truths(&URLS).expect("the truth");
        self.site.applied().expect("it is applied");
        self.site.fill(&URLS).expect("it is filled")
    }
}

#[test]
fn pages_survive_a_restart_except_those_that_changed_meanwhile() {
    let blog = Blog::start(Sidebar::Empty).expect("the blog starts");
    let mut site = Restarts::start(&blog);
    let all = site.fill_all();
    assert!(all.len() >= 8, "{all:?}");
    // The same change twice: while it runs, and while it does not.
    site.retitle("By hand");
    let expected = site.hits_then();
    assert!(expected.len() < all.len() && !expected.is_empty(), "{expected:?} of {all:?}");
    assert_eq!(site.fill_all(), all);

    site.stop();
    site.start_again();
    assert_eq!(site.hits(), all, "{}", site.log());
    assert_eq!(site.stale(), Vec::<&str>::new());

    site.stop();
    site.retitle("By hand again");
    site.start_again();
    assert_eq!(site.hits(), expected, "{}", site.log());
    assert_eq!(site.stale(), Vec::<&str>::new());
    // Restored pages are purged by their rows as before.
    assert_eq!(site.fill_all(), all);
    site.stop();
    site.start_again();
    site.retitle("By hand, the third time");
    assert_eq!(site.hits_then(), expected, "{}", site.log());
    assert_eq!(site.stale(), Vec::<&str>::new());

    // After a kill, the snapshot is the one before the change.
    site.site.pagewell.kill();
    site.start_again();
    assert_eq!(site.hits(), expected, "{}", site.log());
    assert_eq!(site.stale(), Vec::<&str>::new());

    // A process that takes over has them too.
    assert_eq!(site.fill_all(), all);
    let mut before = site.take_over();
    assert_eq!(site.hits(), all, "{}", site.log());
    site.retitle("By hand, the fourth time");
    assert_eq!(site.hits_then(), expected, "{}", site.log());
    assert_eq!(site.stale(), Vec::<&str>::new());
    before.kill();

    // Statements of other tables mean something else.
    assert_eq!(site.fill_all(), all);
    site.stop();
    site.sql("ALTER TABLE wp_links ADD extra INT");
    site.start_again();
    assert_eq!(site.hits(), BTreeSet::new(), "{}", site.log());
    let count = format!("without_statements={}", all.len());
    assert!(site.log().contains(&count), "{}", site.log());
    assert_eq!(site.fill_all(), all);
    assert_eq!(site.stale(), Vec::<&str>::new());
}
