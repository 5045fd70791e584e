//! The example site without declarations: neither dependencies nor changes. Every page is stored nevertheless, and
//! no change leaves one stale.
//!
//! Once with a library that does nothing, and a connection over PHP's default socket, which is relayed. Once over
//! TCP, with the library's class for connections, which reports the statements.

use super::{Application, ComparedSite, Figures};
use crate::news::token_of;
use acceptance::{cache_status, is_hit};
use harness::{MariaDbOptions, NewsSite, Port, PrivateDir, Request, Response};
use std::path::Path;
use std::process::Command;

const ARTICLES: u32 = 60;

/// The pages of the site: lists, feed, searches with and without results, articles, errors and redirects.
const URLS: [&str; 17] = [
    "/",
    "/page/2/",
    "/page/3/",
    "/page/4/",
    "/rss.xml",
    "/letters/",
    "/news/1/",
    "/news/4/",
    "/news/5/",
    "/news/30/",
    "/news/60/",
    "/news/61/",
    "/news/62/",
    "/search/harbour/",
    "/search/zebracorn/",
    "/search/M%C3%BCller/",
    "/search/100%25/",
];

/// The functions and classes of the library that the site uses. Attributes need no class as long as no code asks for them.
const STUB: &str = "<?php
namespace Pagewell;
function usesOf(mixed ...$all): void {}
function changed(mixed ...$all): void {}
final class RequestScope
{
    public static function current(): self { return new self(); }
    /** @return list<string> */
    public function tags(): array { return []; }
}
";

/// The library with declarations that do nothing.
const MUTE: &str = "<?php
namespace Pagewell {
    function uses(mixed ...$all): void {}
    function usesOf(mixed ...$all): void {}
    function changed(mixed ...$all): void {}
}
namespace {
    require __DIR__ . '/library.php';
}
";

/// How the statements of a page get to Pagewell.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// By a relay between PHP and the database.
    Relay,
    /// By the library, whose connection uses TCP.
    Library,
}

/// A copy of the repository's example that declares nothing.
fn copy_without_declarations(way: Way) -> PrivateDir {
    let copy = PrivateDir::temporary("undeclared").expect("a directory");
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let copied = |part: &str| {
        let (from, to) = (repository.join(part), copy.path().join(part));
        std::fs::create_dir_all(to.parent().expect("a parent")).expect("a directory");
        let mut command = Command::new("cp");
        assert!(command.arg("-r").arg(from).arg(to).status().expect("cp runs").success());
    };
    copied("examples/news");
    let autoload = copy.path().join("php/client/autoload.php");
    match way {
        Way::Relay => {
            for part in ["php/client", "php/core"] {
                std::fs::create_dir_all(copy.path().join(part)).expect("a directory");
            }
            std::fs::write(autoload, STUB).expect("written");
        }
        Way::Library => {
            copied("php/client");
            copied("php/core");
            std::fs::rename(&autoload, autoload.with_file_name("library.php")).expect("renamed");
            std::fs::write(autoload, MUTE).expect("written");
            let database = copy.path().join("examples/news/src/Libraries/Database.php");
            let text = std::fs::read_to_string(&database).expect("a file");
            let reporting = text.replace("new \\PDO(", "new \\Pagewell\\Pdo(");
            assert_ne!(text, reporting);
            std::fs::write(database, reporting).expect("written");
        }
    }
    let mut command = Command::new("chmod");
    command.args(["-R", "a+rX"]).arg(copy.path());
    assert!(command.status().expect("chmod runs").success());
    copy
}

/// The time of the render is in the footer.
fn comparable(page: &str) -> String {
    let lines = page.lines().filter(|line| !line.contains("<footer>Made at "));
    lines.collect::<Vec<_>>().join("\n")
}

/// The site, the database account and the comparison.
struct Paper {
    compared: ComparedSite,
    news: NewsSite,
    _copy: PrivateDir,
    _port: Port,
}

/// A variable of the site's environment.
fn value_of(news: &NewsSite, name: &str) -> String {
    let pair = news.env().iter().find(|(other, _)| other == name);
    pair.expect("a variable of the site").1.clone()
}

impl Paper {
    fn start(way: Way) -> Paper {
        let copy = copy_without_declarations(way);
        let dir = PrivateDir::temporary("news").expect("a directory");
        let port = Port::take().expect("a port");
        let mut options = MariaDbOptions::followed(&[]);
        options.port = (way == Way::Library).then(|| port.address().port());
        let news = NewsSite::start_with(copy.path(), dir, ARTICLES, options).expect("it starts");
        let socket = news.database().socket().display().to_string();
        let (address, plain_config, guide) = match way {
            Way::Relay => (
                "host=localhost".to_owned(),
                format!("[php.ini]\n\"pdo_mysql.default_socket\" = {socket:?}\n"),
                "Your own PHP application in five minutes",
            ),
            Way::Library => (
                format!("host=127.0.0.1;port={}", port.address().port()),
                String::new(),
                "An application with the PHP library",
            ),
        };
        let password = value_of(&news, "NEWS_DB_PASSWORD");
        let account = format!(
            "CREATE USER news@127.0.0.1 IDENTIFIED BY '{password}';
             GRANT ALL ON news.* TO news@127.0.0.1;"
        );
        news.database().sql(&account).expect("an account");
        let dsn = ("NEWS_DB_DSN", format!("mysql:{address};dbname=news;charset=utf8mb4"));
        let other = news.env().iter().filter(|(name, _)| *name != dsn.0).cloned();
        let env = std::iter::once((dsn.0.to_owned(), dsn.1.clone())).chain(other).collect();
        let application = Application {
            host: "post.test",
            root: news.dir().join("public").display().to_string(),
            env,
            plain_config,
            apcu: String::new(),
            guide,
            idle_write: Request::form("/news/4/", "author=&body="),
            comparable,
            accepted: &["by-the-clock /**"],
        };
        let compared = ComparedSite::start(news.database(), "news", application);
        Paper { compared, news, _copy: copy, _port: port }
    }

    fn sql(&self, text: &str) {
        self.news.sql(text).expect("it is done");
    }

    fn comment(&self, news: u32, words: &str) {
        let form = Request::form(&format!("/news/{news}/"), &format!("author=Ada&body={words}"));
        let response = self.compared.send(&form);
        assert_eq!(response.status, 303, "{}", response.text());
    }
}

/// An editor who is logged in.
struct Editor<'a> {
    paper: &'a Paper,
    cookie: String,
}

impl Editor<'_> {
    fn sign_in(paper: &Paper) -> Editor<'_> {
        let form = paper.compared.get("/office/");
        let mut editor = Editor { paper, cookie: cookie_of(&form) };
        let fields = format!("token={}&password=office", token_of(&form));
        let response = editor.post("/office/", &fields);
        assert_eq!(response.status, 303, "{}", response.text());
        editor.cookie = cookie_of(&response);
        editor
    }

    fn get(&self, path: &str) -> Response {
        self.paper.compared.send(&Request::get(path).header("Cookie", &self.cookie))
    }

    fn post(&self, path: &str, fields: &str) -> Response {
        self.paper.compared.send(&Request::form(path, fields).header("Cookie", &self.cookie))
    }

    fn save(&self, path: &str, title: &str, publish: &str) {
        let token = token_of(&self.get(path));
        let fields = format!(
            "token={token}&topic=Harbour&title={title}&summary=Short&body=Long&author=Ada{publish}"
        );
        let response = self.post(path, &fields);
        assert_eq!(response.status, 303, "{}", response.text());
    }

    fn remove_comment(&self, id: u32) {
        let token = token_of(&self.get("/office/news/4/"));
        let response = self.post(&format!("/office/comments/{id}/"), &format!("token={token}"));
        assert_eq!(response.status, 303, "{}", response.text());
    }
}

fn cookie_of(response: &Response) -> String {
    let cookie = response.header("set-cookie").expect("a session");
    cookie.split(';').next().unwrap_or_default().to_owned()
}

#[test]
fn the_newspaper_without_declarations_serves_no_stale_page() {
    serves_no_stale_page(Way::Relay);
}

#[test]
fn the_newspaper_with_reports_of_the_library_serves_no_stale_page() {
    serves_no_stale_page(Way::Library);
}

fn serves_no_stale_page(way: Way) {
    let paper = Paper::start(way);
    personal_and_random_pages(&paper);
    let editor = Editor::sign_in(&paper);
    let mut figures = Figures::default();
    let mut step = |name: &str, change: &mut dyn FnMut()| {
        paper.compared.step(&URLS, name, change, &mut figures);
    };
    step("nothing", &mut || ());
    step("a comment", &mut || paper.comment(4, "Well+put"));
    step("another comment", &mut || paper.comment(30, "Indeed"));
    step("a draft", &mut || editor.save("/office/new/", "A+draft", ""));
    step("the draft is edited", &mut || editor.save("/office/news/61/", "A+zebracorn", ""));
    step("it is published", &mut || editor.save("/office/news/61/", "A+zebracorn", "&publish=yes"));
    step("a new article", &mut || editor.save("/office/new/", "100%25+true", "&publish=yes"));
    step("a title", &mut || editor.save("/office/news/5/", "Quite+another", "&publish=yes"));
    step("withdrawn", &mut || editor.save("/office/news/5/", "Quite+another", ""));
    step("a comment is removed", &mut || editor.remove_comment(first_comment(&paper, 4)));
    for (name, text) in CHANGES {
        step(name, &mut || paper.sql(text));
    }
    assert!(figures.stale.is_empty(), "{:?}", figures.stale);
    assert!(figures.changed > 60, "{figures:?}");
    assert!(figures.purged <= 2 * figures.changed, "{figures:?}");
}

/// Changes at the SQL prompt.
const CHANGES: [(&str, &str); 16] = [
    ("SQL: an author", "UPDATE news SET author = 'J. Müller' WHERE id IN (1, 60)"),
    ("SQL: a summary of an old article", "UPDATE news SET summary = 'A zebracorn.' WHERE id = 1"),
    ("SQL: a body that a search finds", "UPDATE news SET body = 'ZEBRACORN' WHERE id = 30"),
    ("SQL: a body that no list shows", "UPDATE news SET body = 'Nothing.' WHERE id = 4"),
    (
        "SQL: a comment",
        "INSERT INTO comments (news_id, author, body, written) VALUES (4, 'a', 'b', NOW())",
    ),
    ("SQL: a renamed commenter", "UPDATE comments SET author = 'Eve' WHERE news_id = 30"),
    (
        "SQL: a comment moves",
        "UPDATE comments SET news_id = 1 WHERE news_id = 30 ORDER BY id LIMIT 1",
    ),
    ("SQL: comments are deleted", "DELETE FROM comments WHERE news_id = 4"),
    (
        "SQL: two changes in a transaction",
        "START TRANSACTION; UPDATE news SET title = 'One' WHERE id = 60;
        UPDATE news SET title = 'Two' WHERE id = 59; COMMIT",
    ),
    ("SQL: a change that is undone", "START TRANSACTION; UPDATE news SET title = 'No'; ROLLBACK"),
    ("SQL: the same values", "UPDATE news SET title = title"),
    ("SQL: an article is deleted", "DELETE FROM news WHERE id = 60"),
    ("SQL: an article on page 2", "UPDATE news SET published = NULL WHERE id = 30"),
    (
        "SQL: a number is reused",
        "INSERT INTO news (id, topic, title, summary, body, author, published)
        VALUES (60, 'Trade', 'Back', 'Back', 'Harbour', 'Eve', '2027-01-01')",
    ),
    ("SQL: all topics", "UPDATE news SET topic = 'Weather'"),
    ("SQL: all comments", "DELETE FROM comments"),
];

fn first_comment(paper: &Paper, news: u32) -> u32 {
    let sql = format!("SELECT MIN(id) FROM comments WHERE news_id = {news}");
    paper.news.sql(&sql).expect("it is done").trim().parse().expect("a number")
}

/// A page of a session is not stored; one that depends on chance is, for a minute.
fn personal_and_random_pages(paper: &Paper) {
    for _ in 0..3 {
        let page = paper.compared.get("/office/");
        assert!(!is_hit(&page), "{}", cache_status(&page));
    }
    // This page uses no database. Nothing shows that its reads are all known.
    for _ in 0..3 {
        let status = cache_status(&paper.compared.get("/search/")).to_owned();
        assert!(status.contains("detail=reads-unseen"), "{status}");
    }
    paper.compared.fill(&["/random/"]);
    let status = cache_status(&paper.compared.get("/random/")).to_owned();
    let ttl = status.split("ttl=").nth(1).and_then(|ttl| ttl.split(';').next()?.parse().ok());
    assert!(ttl.is_some_and(|ttl: i64| ttl <= 60), "{status}");
}
