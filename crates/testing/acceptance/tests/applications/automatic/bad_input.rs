//! Statements and reports that nobody expects: too many, too long, not UTF-8, and reports that are forged. A page
//! is answered as without a cache in each case, and the other pages of the site stay exact.

use acceptance::{Site, cache_status, client, is_hit, until};
use harness::{MariaDb, MariaDbOptions, Pagewell, PrivateDir, Request, Response};

const DB: &str = "<?php $db = new PDO('mysql:host=localhost;dbname=paper', 'writer', 'secret');
    $title = fn($where) => $db->query('SELECT title FROM wp_posts WHERE ' . $where)->fetchColumn();";

const TABLES: &str =
    "CREATE TABLE wp_posts (ID INT PRIMARY KEY, title VARCHAR(50)) CHARSET utf8mb4;
    INSERT INTO wp_posts VALUES (1, 'one'), (2, 'two');";

/// A site with a followed database.
pub(super) struct Paper {
    pub(super) pagewell: Pagewell,
    database: MariaDb,
    pub(super) site: Site,
}

impl Paper {
    pub(super) fn start(automatic: &str, scripts: &[(&str, &str)]) -> Paper {
        let dir = PrivateDir::temporary("paper").expect("a directory");
        let database = MariaDb::start_with(dir, MariaDbOptions::followed(&[])).expect("it starts");
        database.create_database("paper", "writer", "secret").expect("a database");
        database.create_follower("localhost", "paper").expect("an account");
        database.sql_in("paper", TABLES).expect("tables");
        let idle = [("db.php", DB), ("idle.php", "<?php echo 'done';")];
        let site = Site::new(&[&idle, scripts].concat());
        let socket = database.socket().display();
        let config = format!(
            "[[database]]\nurl = \"mysql://follower:secret@localhost/paper?socket={socket}\"\n\
             barrier = \"1m\"\nlag_max = \"1m\"\n[automatic]\nenabled = true\n{automatic}\n"
        );
        // Captures of WordPress take the place of `auto_prepend_file`, and do not set the socket.
        let config = if automatic.contains("application") {
            format!("{config}[php.ini]\n\"mysqli.default_socket\" = \"{socket}\"\n")
        } else {
            config
        };
        let file = site.at("pagewell.toml");
        std::fs::write(&file, config).expect("written");
        let pagewell = site.serve_with_args(&["--config", &file.display().to_string()]);
        Paper { pagewell, database, site }
    }

    /// The database's own socket, which bypasses the relay.
    pub(super) fn socket(&self) -> String {
        self.database.socket().display().to_string()
    }

    pub(super) fn get(&self, path: &str) -> Response {
        client(&self.pagewell).host("paper.test").get(path).expect("an answer")
    }

    pub(super) fn stored(&self, path: &str) {
        until(&format!("{path} is stored"), || is_hit(&self.get(path)));
    }

    /// The page is answered with this text, and is not stored for this reason.
    pub(super) fn refused(&self, path: &str, text: &str, reason: &str) {
        for _ in 0..3 {
            let page = self.get(path);
            assert_eq!((page.status, page.text().as_str()), (200, text), "{path}");
            let status = cache_status(&page);
            assert!(!is_hit(&page) && !status.contains("stored"), "{path}: {status}");
            assert!(status.contains(reason), "{path}: {status}, not {reason}");
        }
    }

    /// Executes a statement, and waits until it is applied.
    pub(super) fn sql(&self, text: &str) {
        self.database.sql_in("paper", text).expect("it is done");
        let idle = Request::form("/idle.php", "").header("Host", "paper.test");
        assert_eq!(client(&self.pagewell).send(&idle).expect("an answer").status, 200);
    }
}

#[test]
fn statements_beyond_the_limits_are_answered_and_not_stored() {
    let paper = Paper::start(
        "",
        &[
            ("news.php", "<?php require 'db.php'; echo $title('ID = ' . (int) $_GET['id']);"),
            (
                "many.php",
                "<?php require 'db.php'; for ($id = 0; $id < 2000; $id++) echo $title(\"ID = $id\");",
            ),
            (
                "long.php",
                "<?php require 'db.php'; echo $title('ID = 1 AND title <> ' . $db->quote(str_repeat('x', 1 << 20)));",
            ),
            ("nested.php", "<?php require 'db.php';
                echo $title(str_repeat('(', 3000) . 'ID = 1' . str_repeat(')', 3000));"),
            ("bytes.php", "<?php require 'db.php'; $db->exec('SET NAMES latin1');
                echo $title(\"ID = 1 AND title <> '\\xff\\xfe\\x80'\");"),
            ("fault.php", "<?php require 'db.php';
                try { $title(\"title = '\\xf0\\x28 AND (\"); } catch (PDOException) {} echo $title('ID = 2');"),
        ],
    );
    paper.stored("/news.php?id=1");
    paper.stored("/news.php?id=2");
    paper.refused("/many.php", "onetwo", "reads-too-many");
    paper.refused("/long.php", "one", "reads-unseen");
    paper.refused("/fault.php", "two", "reads-unseen");
    paper.stored("/nested.php");
    paper.stored("/bytes.php");
    paper.sql("UPDATE wp_posts SET title = 'new' WHERE ID = 1");
    for (path, text) in [
        ("/many.php", "newtwo"),
        ("/long.php", "new"),
        ("/nested.php", "new"),
        ("/bytes.php", "new"),
        ("/fault.php", "two"),
    ] {
        let page = paper.get(path);
        assert_eq!((page.text().as_str(), is_hit(&page)), (text, false), "{path}");
    }
    let new = paper.get("/news.php?id=1");
    assert_eq!((new.text().as_str(), is_hit(&new)), ("new", false));
    assert!(is_hit(&paper.get("/news.php?id=2")));
}

/// Sends reports for its own request: a true one, and one with other statements than those that it has run. The first
/// report with the token counts, so each is received before the next is sent: Pagewell then closes the connection.
const FORGE: &str = "<?php
    function record($kind, $content) { return $kind . pack('N', strlen($content)) . $content; }
    function report($bytes) {
        $socket = @stream_socket_client('unix://' . getenv('PAGEWELL_CAPTURE'));
        @fwrite($socket, $bytes);
        @stream_socket_shutdown($socket, STREAM_SHUT_WR);
        @stream_get_contents($socket);
        @fclose($socket);
    }
    function page($token, $sql) {
        return \"pagewell-capture 1\\n\" . record('T', $token) . record('V', '6.4') . record('S', $sql) . record('E', '');
    }
    $db = new mysqli('localhost', 'writer', 'secret', 'paper');";

#[test]
fn a_forged_report_harms_only_its_own_page() {
    let show = |claimed: &str, shown: &str, garbage: &str| {
        format!(
            "<?php require 'forge.php'; $token = getenv('PAGEWELL_CAPTURE_TOKEN'); {garbage}
            echo $db->query('SELECT title FROM wp_posts WHERE ID = {shown}')->fetch_column();
            report(page($token, 'SELECT title FROM wp_posts WHERE ID = {claimed}'));"
        )
    };
    let garbage =
        "report(random_bytes(100)); report(page(str_repeat('0', strlen($token)), 'SELECT 1'));
        report(\"pagewell-capture 1\\nT\\xff\\xff\\xff\\xff\");";
    let honest = show("1", "1", "");
    let noisy = show("2", "2", garbage);
    let forged = show("1", "2", "");
    let bytes = show("1", "1", "report(page($token, \"SELECT '\\xff\\xfe\"));");
    let paper = Paper::start(
        "application = \"wordpress\"",
        &[
            ("forge.php", FORGE),
            ("honest.php", &honest),
            ("noisy.php", &noisy),
            ("forged.php", &forged),
            ("bytes.php", &bytes),
        ],
    );
    let pages = ["/honest.php", "/noisy.php", "/forged.php"];
    pages.iter().for_each(|path| paper.stored(path));
    paper.refused("/bytes.php", "one", "reads-un");
    let texts_and_hits =
        || pages.map(|path| paper.get(path)).map(|page| (page.text(), is_hit(&page)));
    let expected = |all: [(&str, bool); 3]| all.map(|(text, is_hit)| (text.to_owned(), is_hit));
    paper.sql("UPDATE wp_posts SET title = 'second' WHERE ID = 2");
    assert_eq!(texts_and_hits(), expected([("one", true), ("second", false), ("two", true)]));
    pages.iter().for_each(|path| paper.stored(path));
    paper.sql("UPDATE wp_posts SET title = 'first' WHERE ID = 1");
    assert_eq!(texts_and_hits(), expected([("first", false), ("second", true), ("second", false)]));
}
