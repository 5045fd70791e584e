//! The example site `examples/news` on a private MariaDB, behind the real binary: which pages each write purges
//! and which stay cached; which pages are never cached; the behaviour while the database is down.
//!
//! "Purged" and "cached" are observed from outside, by whether the next response is a hit. A write is
//! acknowledged once it has taken effect, so no test waits after one. Every tenth hit is audited, and nothing is found.

use acceptance::{BOUND, cache_status, client, counter, is_hit, until};
use harness::{Client, NewsSite, Pagewell, PrivateDir, Request, Response};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const ARTICLES: u32 = 60;

/// Pages that are cached. They depend on different data.
const KEPT: [&str; 8] = [
    "/",
    "/page/2/",
    "/rss.xml",
    "/search/harbour/",
    "/letters/",
    "/news/1/",
    "/news/4/",
    "/news/5/",
];

struct Paper {
    pagewell: Pagewell,
    site: NewsSite,
    _sessions: PrivateDir,
}

impl Drop for Paper {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // The footer of each page says when it was made.
            acceptance::audit_found_nothing(&self.pagewell, &["audit_by_the_clock"]);
        }
    }
}

impl Paper {
    fn start() -> Paper {
        let dir = PrivateDir::temporary("news").expect("a directory can be made");
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
        let site = NewsSite::start(&repository, dir, ARTICLES).expect("the site starts");
        let sessions = PrivateDir::temporary("sess").expect("a directory can be made");
        let open = fs::Permissions::from_mode(0o733);
        fs::set_permissions(sessions.path(), open).expect("its mode can be set");
        let config = sessions.path().join("pagewell.toml");
        let path = sessions.path().display();
        let text = format!("audit = \"1 in 10\"\n[php.ini]\n\"session.save_path\" = \"{path}\"\n");
        fs::write(&config, text).expect("a file can be written");
        let mut args = site.serve_args();
        args.extend(["--config".into(), config.display().to_string(), "--memory=64M".into()]);
        let pagewell = Pagewell::start(acceptance::binary(), &args).expect("pagewell starts");
        Paper { pagewell, site, _sessions: sessions }
    }

    fn client(&self) -> Client {
        client(&self.pagewell).host("post.test")
    }

    fn get(&self, path: &str) -> Response {
        self.client().get(path).expect("an answer")
    }

    /// Requests every cacheable page, so that each is cached.
    fn fill(&self) {
        for path in KEPT {
            let page = self.get(path);
            assert_eq!(page.status, 200, "{path}: {}", page.text());
            assert!(is_hit(&self.get(path)), "{path}: {}", cache_status(&page));
        }
    }

    /// Requests every cacheable page, and returns those that were hits.
    fn hits(&self) -> Vec<&'static str> {
        KEPT.into_iter().filter(|path| is_hit(&self.get(path))).collect()
    }
}

/// An editor who is logged in.
struct Editor<'a> {
    paper: &'a Paper,
    cookie: String,
}

impl Editor<'_> {
    fn sign_in(paper: &Paper) -> Editor<'_> {
        let form = paper.get("/office/");
        let mut editor = Editor { paper, cookie: cookie_of(&form).expect("a session") };
        let fields = format!("token={}&password=office", token_of(&form));
        let response = editor.post("/office/", &fields);
        assert_eq!(response.status, 303, "{}", response.text());
        editor.cookie = cookie_of(&response).expect("a new session");
        editor
    }

    fn get(&self, path: &str) -> Response {
        let request = Request::get(path).header("Cookie", &self.cookie);
        self.paper.client().send(&request).expect("an answer")
    }

    fn post(&self, path: &str, fields: &str) -> Response {
        let request = Request::form(path, fields).header("Cookie", &self.cookie);
        self.paper.client().send(&request).expect("an answer")
    }

    fn save(&self, path: &str, title: &str, publish: &str) -> Response {
        let token = token_of(&self.get(path));
        let fields = format!(
            "token={token}&topic=Harbour&title={title}&summary=Short&body=Long&author=Ada{publish}"
        );
        let response = self.post(path, &fields);
        assert_eq!(response.status, 303, "{}", response.text());
        response
    }
}

fn cookie_of(response: &Response) -> Option<String> {
    response.header("set-cookie")?.split(';').next().map(str::to_owned)
}

/// The token of the form in a page.
pub fn token_of(page: &Response) -> String {
    let text = page.text();
    let (_, rest) = text.split_once("name=\"token\" value=\"").expect("a form with a token");
    rest.split('"').next().expect("its value").to_owned()
}

#[test]
fn a_page_is_rendered_once_and_then_a_hit() {
    let paper = Paper::start();
    let first = paper.get("/news/1/");
    assert!(cache_status(&first).starts_with("pagewell; fwd=uri-miss"), "{}", cache_status(&first));
    assert_eq!(first.header("pagewell-cache-control"), None, "it is for Pagewell alone");
    let second = paper.get("/news/1/");
    assert!(is_hit(&second), "{}", cache_status(&second));
    assert_eq!(second.content, first.content);
    // Renders for an audit are never stored.
    until("it is counted", || counter(&paper.pagewell, "stored") == 1);
    // Browsers revalidate, and get a 304.
    let etag = second.header("etag").expect("a validator");
    let again = Request::get("/news/1/").header("If-None-Match", etag);
    assert_eq!(paper.client().send(&again).expect("an answer").status, 304);
    assert_eq!(paper.client().head("/news/1/").expect("an answer").status, 200);
    assert_eq!(counter(&paper.pagewell, "stored"), 1);
}

#[test]
fn a_comment_purges_only_the_pages_that_show_it() {
    let paper = Paper::start();
    paper.fill();
    for number in 0..5 {
        let words = format!("Well+put+{number}");
        let fields = format!("author=Ada+L.&body={words}");
        let response = paper.client().post("/news/4/", &fields).expect("an answer");
        assert_eq!(response.status, 303, "{}", response.text());
        // The write is acknowledged, so every client now sees it.
        let page = paper.get("/news/4/");
        assert!(page.text().contains(&format!("Well put {number}")));
        assert!(!is_hit(&page), "{}", cache_status(&page));
        assert!(is_hit(&paper.get("/news/4/")));
        let stay = ["/", "/page/2/", "/rss.xml", "/search/harbour/", "/news/1/", "/news/5/"];
        let hits = paper.hits();
        let others: Vec<&str> = hits.iter().copied().filter(|path| *path != "/news/4/").collect();
        assert_eq!(others, stay, "all but /letters/");
        assert!(paper.get("/letters/").text().contains(&format!("Well put {number}")));
    }
    // A refused comment changes nothing.
    let refused = paper.client().post("/news/4/", "author=&body=x").expect("an answer");
    assert_eq!(refused.status, 422);
    assert!(!is_hit(&refused));
}

#[test]
fn publishing_purges_the_lists_and_keeps_the_articles() {
    let paper = Paper::start();
    let editor = Editor::sign_in(&paper);
    paper.fill();
    editor.save("/office/new/", "A+draft", "");
    assert_eq!(paper.hits(), KEPT, "a draft that stays one changes nothing");

    editor.save("/office/new/", "Ferry+afloat+again", "&publish=yes");
    assert!(paper.get("/").text().contains("Ferry afloat again"));
    assert!(paper.get("/rss.xml").text().contains("Ferry afloat again"));
    paper.fill();
    editor.save("/office/new/", "Another+ferry", "&publish=yes");
    assert_eq!(paper.hits(), ["/news/1/", "/news/4/", "/news/5/"]);

    paper.fill();
    editor.save("/office/news/5/", "Quite+another+title", "&publish=yes");
    assert_eq!(paper.hits(), ["/news/1/", "/news/4/"], "an edit drops its article and the lists");
    assert!(paper.get("/news/5/").text().contains("Quite another title"));

    paper.fill();
    editor.save("/office/news/5/", "Quite+another+title", "");
    assert_eq!(paper.get("/news/5/").status, 404, "withdrawn");
}

#[test]
fn a_404_is_stored_until_the_page_exists() {
    let paper = Paper::start();
    let editor = Editor::sign_in(&paper);
    let next = format!("/news/{}/", ARTICLES + 1);
    assert_eq!(paper.get(&next).status, 404);
    let kept = paper.get(&next);
    assert_eq!((kept.status, is_hit(&kept)), (404, true));
    editor.save("/office/new/", "Here+at+last", "&publish=yes");
    let page = paper.get(&next);
    assert_eq!(page.status, 200, "{}", cache_status(&page));
    assert!(page.text().contains("Here at last"));
}

#[test]
fn undeclared_and_personal_pages_are_never_stored() {
    let paper = Paper::start();
    let editor = Editor::sign_in(&paper);
    for _ in 0..3 {
        for path in ["/random/", "/office/", "/office/new/", "/no/such/page"] {
            for page in [paper.get(path), editor.get(path)] {
                assert!(!is_hit(&page), "{path}: {}", cache_status(&page));
                assert!(!cache_status(&page).contains("stored"), "{path}: {}", cache_status(&page));
            }
        }
    }
    assert_eq!(counter(&paper.pagewell, "pages"), 0);
    assert!(editor.get("/office/").text().contains("/office/new/"), "signed in");
    assert!(!paper.get("/office/").text().contains("/office/new/"), "nobody else is");
}

#[test]
fn the_control_api_purges_by_tag_and_by_url() {
    let paper = Paper::start();
    paper.fill();
    paper.pagewell.invalidate(r#"{"tags":["news:4"]}"#).expect("an answer");
    let hits = paper.hits();
    assert_eq!(hits.len(), KEPT.len() - 1);
    assert!(!hits.contains(&"/news/4/"));
    paper.fill();
    paper.pagewell.invalidate(r#"{"urls":["/rss.xml"]}"#).expect("an answer");
    let hits = paper.hits();
    assert_eq!(hits.len(), KEPT.len() - 1);
    assert!(!hits.contains(&"/rss.xml"));
    paper.fill();
    paper.pagewell.invalidate(r#"{"tags":["news"]}"#).expect("an answer");
    assert_eq!(paper.hits(), ["/news/1/", "/news/4/", "/news/5/"]);
    paper.fill();
    paper.pagewell.invalidate(r#"{"all":true}"#).expect("an answer");
    assert_eq!(paper.hits(), [""; 0]);
}

#[test]
fn without_the_database_hits_continue_and_errors_are_not_stored() {
    let mut paper = Paper::start();
    paper.fill();
    paper.site.database_mut().stop();
    assert_eq!(paper.hits(), KEPT, "what is in memory needs no database");
    for _ in 0..2 {
        let page = paper.get("/news/7/");
        assert_eq!(page.status, 503, "{}", page.text());
        assert!(!cache_status(&page).contains("stored"), "{}", cache_status(&page));
    }
    let comment = paper.client().post("/news/4/", "author=Ada&body=Lost").expect("an answer");
    assert_eq!(comment.status, 503);
    let page = paper.get("/news/4/");
    assert_eq!(page.status, 503, "what may have been written drops its page");
    assert!(is_hit(&paper.get("/news/5/")), "and no other");

    paper.site.database_mut().start_again().expect("the database starts");
    let page = paper.get("/news/7/");
    assert_eq!(page.status, 200, "it recovers by itself: {}", page.text());
    assert!(is_hit(&paper.get("/news/7/")));
    let comment = paper.client().post("/news/4/", "author=Ada&body=Found").expect("an answer");
    assert_eq!(comment.status, 303);
    assert!(paper.get("/news/4/").text().contains("Found"));

    paper.site.database_mut().kill();
    assert_eq!(paper.client().within(BOUND).get("/news/8/").expect("an answer").status, 503);
    paper.site.database_mut().start_again().expect("the database starts");
    assert_eq!(paper.get("/news/8/").status, 200);
}
