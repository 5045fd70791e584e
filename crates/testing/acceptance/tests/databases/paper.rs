//! A small newspaper in either kind of database: its rules, its pages, and requests for them. The tables and
//! the connection are in the modules of each database.

use acceptance::{Site, binary, cache_status, client, counter, is_hit, until};
use harness::{Pagewell, Request, Response};
use std::process::Command;

/// The change rules for the newspaper's tables.
pub const RULES: &str = r#"
[[change]]
table = "news"
when_changed = ["title"]
tags = ["news", "news:{id}"]
any_row = ["news", "any-news"]

[[change]]
table = "comments"
tags = ["thread:{news_id}"]
any_row = ["any-thread"]
"#;

const SHOW: &str = r#"<?php
require 'db.php';
keep(3600);
$id = (int) $_GET['id'];
header("Cache-Groups: \"news:$id\", \"any-news\"");
echo 'title=', db()->query("SELECT title FROM news WHERE id = $id")->fetchColumn();
"#;

const THREAD: &str = r#"<?php
require 'db.php';
keep(3600);
$id = (int) $_GET['id'];
header("Cache-Groups: \"thread:$id\", \"any-thread\"");
echo 'comments=', db()->query("SELECT COUNT(*) FROM comments WHERE news_id = $id")->fetchColumn();
"#;

const PLAIN: &str = "<?php keep(3600); header('Cache-Groups: \"plain\"'); echo 'plain';";

/// The newspaper's pages. `db` is the PHP code that connects to the database, `write` the code that adds a
/// comment.
pub fn site(db: &str, write: &str) -> Site {
    Site::new(&[
        ("db.php", db),
        ("show.php", SHOW),
        ("thread.php", THREAD),
        ("write.php", write),
        ("plain.php", PLAIN),
    ])
}

/// The configuration with the database at this URL. If `more` does not set the time limits, they are longer than a busy
/// machine needs: with the defaults, it may answer a write too early, or purge its pages.
pub fn config_by(url: &str, more: &str, rules: &str) -> String {
    let lag = if more.contains("lag") { "" } else { "lag_max = \"60s\"\n" };
    let barrier = if more.contains("barrier") { "" } else { "barrier = \"20s\"\n" };
    format!("[[database]]\nurl = {url:?}\n{lag}{barrier}{more}\n{rules}")
}

/// Sends a request. Its host is the same whatever the port is, because some pages outlive a process.
pub fn ask(pagewell: &Pagewell, request: Request) -> Response {
    client(pagewell).send(&request.header("Host", "paper.test")).expect("an answer")
}

/// Requests a page.
pub fn get(pagewell: &Pagewell, path: &str) -> Response {
    ask(pagewell, Request::get(path))
}

/// Repeats the request until it is a hit.
pub fn stored(pagewell: &Pagewell, path: &str) {
    until(&format!("{path} is stored"), || is_hit(&get(pagewell, path)));
}

/// Repeats the request until the page contains this text.
pub fn shows(pagewell: &Pagewell, path: &str, text: &str) {
    until(&format!("{path} shows {text}"), || get(pagewell, path).text() == text);
}

/// Waits until the changes that the database has committed are applied, and counted: a write waits for that.
pub fn applied(pagewell: &Pagewell) {
    until("all changes are applied", || {
        !cache_status(&post(pagewell, "/")).contains("changes-late")
    });
}

/// Sends an empty form.
pub fn post(pagewell: &Pagewell, path: &str) -> Response {
    let response = ask(pagewell, Request::form(path, ""));
    assert_eq!(response.status, 200, "{}", response.text());
    response
}

/// Rows changed at the SQL prompt, transactions, and rows that a foreign key removes purge exactly their pages.
pub fn rows_purge_their_pages(pagewell: &Pagewell, sql: &dyn Fn(&str)) {
    let pages = ["/show.php?id=1", "/show.php?id=2", "/thread.php?id=3"];
    let fill = || pages.iter().for_each(|path| stored(pagewell, path));
    let changes = || {
        applied(pagewell);
        counter(pagewell, "database_changes")
    };
    fill();

    // A row: its page is refreshed, the others stay cached.
    sql("UPDATE news SET title = 'uno' WHERE id = 1");
    shows(pagewell, pages[0], "title=uno");
    assert!(is_hit(&get(pagewell, pages[1])) && is_hit(&get(pagewell, pages[2])));
    stored(pagewell, pages[0]);

    // A transaction is one change. Rolled-back changes and irrelevant columns are no change.
    let before = changes();
    sql("BEGIN; UPDATE news SET title = 'a' WHERE id = 1;
         UPDATE news SET title = 'b' WHERE id = 2; UPDATE news SET title = 'c' WHERE id = 1; COMMIT;
         BEGIN; UPDATE news SET title = 'never' WHERE id = 1; ROLLBACK;
         UPDATE news SET seen = seen + 1;
         INSERT INTO comments (news_id, body) VALUES (3, 'second');");
    shows(pagewell, pages[2], "comments=2");
    assert_eq!(changes(), before + 2);
    assert_eq!(get(pagewell, pages[0]).text(), "title=c");
    assert_eq!(get(pagewell, pages[1]).text(), "title=b");

    // Rows that a foreign key removes, which are in no binary log.
    fill();
    sql("DELETE FROM news WHERE id = 3");
    shows(pagewell, pages[2], "comments=0");
    assert!(is_hit(&get(pagewell, pages[0])));

    // Truncated: any row.
    sql("INSERT INTO comments (news_id, body) VALUES (1, 'x')");
    shows(pagewell, "/thread.php?id=1", "comments=1");
    stored(pagewell, "/thread.php?id=1");
    sql("TRUNCATE comments");
    shows(pagewell, "/thread.php?id=1", "comments=0");
    assert!(is_hit(&get(pagewell, "/plain.php")), "what depends on nothing of it stays");
}

/// Clients read what they have written, also after a write of `rows` rows. `how` is added to the URL of a write.
pub fn writes_are_read(pagewell: &Pagewell, rows: u64, how: impl Fn(u64) -> &'static str) {
    for count in 1..=60 {
        let status = post(pagewell, &format!("/write.php?id=1{}", how(count)));
        assert!(!cache_status(&status).contains("changes-late"), "{}", cache_status(&status));
        let page = get(pagewell, "/thread.php?id=1");
        assert_eq!(page.text(), format!("comments={count}"), "{}", cache_status(&page));
        if count % 3 == 0 {
            stored(pagewell, "/thread.php?id=1");
        }
    }
    // So much data that the stream takes longer than the response: without the barrier the page would be old.
    for count in 1..=3 {
        stored(pagewell, "/thread.php?id=2");
        post(pagewell, &format!("/write.php?id=2&rows={rows}"));
        let page = get(pagewell, "/thread.php?id=2");
        assert_eq!(page.text(), format!("comments={}", count * rows), "{}", cache_status(&page));
    }
}

/// Runs the program. Returns its output, and whether it succeeded.
pub fn run(args: &[&str]) -> (String, bool) {
    let output = Command::new(binary()).args(args).output().expect("it runs");
    let text = [output.stdout, output.stderr].concat();
    (String::from_utf8_lossy(&text).into_owned(), output.status.success())
}
