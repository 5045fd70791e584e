//! Scripts in Pagewell's own php-fpm whose connections to a real MariaDB are relayed.
//!
//! Each script runs PHP code from its query, as an application would: with mysqli or PDO, and the default socket.

use super::{PATIENCE, PhpSite, send};
use capture::{CaptureReport, NotCaptured};
use config::{Config, raw, resolve};
use footprint::SqlCharset;
use harness::{MariaDb, MariaDbOptions, PhpFpm, PoolOptions, PrivateDir, SqlProduct};
use origin::Origin;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;

/// The beginning of each script: connections by mysqli and by PDO.
const START: &str = r#"<?php
mysqli_report(MYSQLI_REPORT_ERROR | MYSQLI_REPORT_STRICT);
function my(string $host = 'localhost') { $db = mysqli_init(); $db->options(MYSQLI_OPT_LOCAL_INFILE, true);
    $db->real_connect($host, 'app', 'secret', 'shop'); return $db; }
function pdo(array $options = []) { return new PDO('mysql:host=localhost;dbname=shop;charset=utf8mb4', 'app',
    'secret', $options); }
"#;

/// A MariaDB with an account, and a site whose scripts reach it through the relay.
struct Shop {
    db: MariaDb,
    site: PhpSite,
    /// The scripts.
    _dir: PrivateDir,
}

impl Shop {
    async fn start(options: &[&str], scripts: &[(&str, &str)]) -> Shop {
        let dir = PrivateDir::temporary("relay-db").expect("a directory");
        let options = MariaDbOptions {
            port: None,
            options: options.iter().map(|option| (*option).to_owned()).collect(),
        };
        let db = MariaDb::start_with(dir, options).expect("MariaDB starts");
        db.create_database("shop", "app", "secret").expect("a database");
        db.sql_in(
            "shop",
            "CREATE TABLE item (id INT PRIMARY KEY, name LONGTEXT); INSERT INTO item VALUES (1, 'one'), (2, 'two');
             CREATE TABLE log (text LONGTEXT);",
        )
        .expect("tables");
        let dir = PrivateDir::temporary("relay").expect("a directory");
        for (name, code) in [("index.php", "")].iter().chain(scripts) {
            let path = dir.path().join(name);
            fs::write(&path, format!("{START}{code}")).expect("can be written");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("can be read");
        }
        let url = format!("mysql://follower@localhost/shop?socket={}", db.socket().display());
        let config = configuration(&dir, &url);
        let site = PhpSite::start_with(dir.path(), config).await;
        Shop { db, site, _dir: dir }
    }

    /// Requests a script; its content, and the texts of its statements.
    async fn run(&self, script: &str) -> (String, Result<Vec<String>, NotCaptured>) {
        let (response, report) = self.site.capture(script, &format!("/{script}")).await;
        let content = response.map(|(_, content)| content).unwrap_or_default();
        (content, report.map(texts))
    }
}

fn configuration(dir: &PrivateDir, url: &str) -> Config {
    let text = format!(
        "site.root = {:?}\n[php]\nchildren = 3\nini.memory_limit = \"512M\"\nini.display_errors = \"1\"\n\
         ini.\"mysqli.allow_local_infile\" = \"1\"\n\
         [automatic]\nenabled = true\n[[database]]\nurl = {url:?}\n\
         [[change]]\ntable = \"a\"\ntags = [\"a\"]\n",
        dir.path()
    );
    let file: raw::File = toml::from_str(&text).expect("a configuration");
    resolve(&file).expect("a configuration")
}

fn texts(report: CaptureReport) -> Vec<String> {
    let statements = report.statements.into_iter().map(|text| String::from_utf8(text.into_vec()));
    statements.collect::<Result<_, _>>().expect("UTF-8")
}

fn list(texts: &[&str]) -> Result<Vec<String>, NotCaptured> {
    Ok(texts.iter().map(|text| (*text).to_owned()).collect())
}

fn assert_incomplete(found: &Result<Vec<String>, NotCaptured>, part: &str) {
    match found {
        Err(NotCaptured::Incomplete(reason)) => assert!(reason.contains(part), "{reason}"),
        other => panic!("{other:?}, not {part}"),
    }
}

#[tokio::test]
async fn statements_of_each_interface_are_captured() {
    let cases = [
        (
            "my.php",
            "$db = my(); $db->set_charset('utf8mb4'); $db->query(\"SET SESSION sql_mode = ''\");
             echo $db->query('SELECT name FROM item WHERE id = 1')->fetch_row()[0];",
            "one",
            &["SELECT name FROM item WHERE id = 1"][..],
        ),
        (
            "prepared.php",
            "$db = my(); $s = $db->prepare('SELECT name FROM item WHERE id = ? AND name <> ?'); $id = 2; $no = \"o'ne\";
             $s->bind_param('is', $id, $no); foreach ([2, 1] as $id) { $s->execute();
             echo $s->get_result()->fetch_row()[0]; }",
            "twoone",
            &[
                "SELECT name FROM item WHERE id =  2  AND name <>  'o''ne' ",
                "SELECT name FROM item WHERE id =  1  AND name <>  'o''ne' ",
            ],
        ),
        (
            "emulated.php",
            "$s = pdo()->prepare('SELECT name FROM item WHERE id = ?'); $s->execute([2]); echo $s->fetchColumn();",
            "two",
            &["SELECT name FROM item WHERE id = '2'"],
        ),
        (
            "native.php",
            "$s = pdo([PDO::ATTR_EMULATE_PREPARES => false])->prepare('SELECT name FROM item WHERE id = :id');
             $s->bindValue('id', 2, PDO::PARAM_INT); $s->execute(); echo $s->fetchColumn();",
            "two",
            &["SELECT name FROM item WHERE id =  2 "],
        ),
        (
            "write.php",
            "my()->query(\"INSERT INTO log VALUES ('x')\"); echo 'written';",
            "written",
            &["INSERT INTO log VALUES ('x')"],
        ),
        ("idle.php", "my(); echo 'nothing';", "nothing", &[]),
    ];
    let scripts: Vec<(&str, &str)> = cases.iter().map(|(name, code, ..)| (*name, *code)).collect();
    let shop = Shop::start(&[], &scripts).await;
    for (name, _, content, statements) in cases {
        assert_eq!(shop.run(name).await, (content.to_owned(), list(statements)), "{name}");
    }
    shop.site.php.stop().await;
}

#[tokio::test]
async fn statements_that_cannot_be_followed_make_a_capture_incomplete() {
    let cases = [
        ("none.php", "echo 'static';", "static", None),
        (
            "error.php",
            "try { my()->query('SELECT x FROM y'); } catch (Exception $e) { echo $e->getCode(); }",
            "1146",
            Some("a statement failed"),
        ),
        (
            "use.php",
            "$db = my(); $db->select_db('information_schema'); echo $db->query('SELECT 1')->fetch_row()[0];",
            "1",
            Some("another database"),
        ),
        (
            "mode.php",
            "$db = my(); $db->query(\"SET sql_mode = CONCAT(@@sql_mode, ',ANSI_QUOTES')\");
             echo $db->query('SELECT 1')->fetch_row()[0];",
            "1",
            Some("sql_mode was set to an expression"),
        ),
        (
            "dirty.php",
            "$db = my(); $db->query('SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED');
             echo $db->query('SELECT 1')->fetch_row()[0];",
            "1",
            Some("not committed"),
        ),
        (
            "pieces.php",
            "$db = my(); $s = $db->prepare('SELECT CONCAT(?, 1)'); $no = null; $s->bind_param('b', $no);
             $s->send_long_data(0, 'ab'); $s->execute(); echo $s->get_result()->fetch_row()[0];",
            "ab1",
            Some("in pieces"),
        ),
        (
            "temporary.php",
            "$db = my(); $db->query('CREATE TEMPORARY TABLE item (id INT)'); $db->query('SELECT id FROM item');
             echo 'ok';",
            "ok",
            Some("temporary table"),
        ),
    ];
    let scripts: Vec<(&str, &str)> = cases.iter().map(|(name, code, ..)| (*name, *code)).collect();
    let shop = Shop::start(&[], &scripts).await;
    for (name, _, content, reason) in cases {
        let (shown, found) = shop.run(name).await;
        assert_eq!(shown, content, "{name}");
        match reason {
            Some(reason) => assert_incomplete(&found, reason),
            None => assert_eq!(found, Err(NotCaptured::NoConnection), "{name}"),
        }
    }
    shop.site.php.stop().await;
}

#[tokio::test]
async fn several_results_local_files_and_modes() {
    let shop = Shop::start(&["--local-infile=1"], &[
        (
            "multi.php",
            "$db = my(); $db->multi_query('SELECT 1; SELECT 2'); do { echo $db->store_result()->fetch_row()[0]; }
             while ($db->more_results() && $db->next_result()); echo $db->query('SELECT 3')->fetch_row()[0];",
        ),
        (
            "file.php",
            "$db = my(); file_put_contents($f = tempnam('/tmp', 'relay'), str_repeat(\"3\\tfile\\n\", 300000));
             $db->query(\"LOAD DATA LOCAL INFILE '$f' INTO TABLE log (text)\"); unlink($f);
             echo $db->query('SELECT COUNT(*) FROM log')->fetch_row()[0];",
        ),
        (
            "ansi.php",
            "$db = my(); $db->query(\"SET sql_mode = 'ANSI_QUOTES'\");
             echo $db->query('SELECT \"name\" FROM item WHERE id = 1')->fetch_row()[0];",
        ),
    ])
    .await;
    let (content, found) = shop.run("multi.php").await;
    assert_eq!(content, "123");
    assert_incomplete(&found, "several statements");
    let (content, found) = shop.run("file.php").await;
    let found = found.expect("a report");
    assert_eq!((content.as_str(), found.len()), ("300000", 2));
    assert_eq!(found[1], "SELECT COUNT(*) FROM log");
    let (response, report) = shop.site.capture("ansi.php", "/").await;
    assert_eq!(response.expect("a response").1, "one");
    assert!(report.expect("a report").mode.has_ansi_quotes);
    shop.site.php.stop().await;
}

#[tokio::test]
async fn the_mode_of_the_server_counts() {
    let code = "echo my()->query(\"SELECT 'a' WHERE 1 = 1 OR 'é' = ''\")->fetch_row()[0];";
    let option = "--sql-mode=ANSI_QUOTES,NO_BACKSLASH_ESCAPES";
    let shop = Shop::start(&[option], &[("a.php", code)]).await;
    // MySQL does not tell clients. There, automatic dependencies are refused when the database is followed.
    let tells_quotes = shop.db.product() == SqlProduct::MariaDb;
    let (response, report) = shop.site.capture("a.php", "/").await;
    assert_eq!(response.expect("a response").1, "a");
    let mode = report.expect("a report").mode;
    assert!(
        mode.has_ansi_quotes == tells_quotes
            && mode.has_plain_backslashes
            && mode.charset == SqlCharset::Utf8,
        "{mode:?}"
    );
    shop.site.php.stop().await;
}

#[tokio::test]
async fn persistent_connections_count_for_the_request_that_uses_them() {
    let my = "$db = my('p:localhost'); echo $db->thread_id, ' ', $db->query(\"SELECT '$_GET[n]'\")->fetch_row()[0];";
    let pdo = "$db = pdo([PDO::ATTR_PERSISTENT => true]);
        echo $db->query('SELECT CONNECTION_ID()')->fetchColumn(), ' ', $db->query(\"SELECT '$_GET[n]'\")->fetchColumn();";
    let shop = Shop::start(&[], &[("my.php", my), ("pdo.php", pdo)]).await;
    for script in ["my.php", "pdo.php"] {
        let mut ids = Vec::new();
        for number in 0..12 {
            let target = format!("/{script}?n={number}");
            let (response, report) = shop.site.capture(script, &target).await;
            let content = response.expect("a response").1;
            let (id, shown) = content.split_once(' ').expect("two words");
            assert_eq!(shown, number.to_string());
            let found = texts(report.expect("a report"));
            assert_eq!(found.last(), Some(&format!("SELECT '{number}'")), "{script}");
            assert_eq!(found.iter().filter(|text| text.starts_with("SELECT '")).count(), 1);
            ids.push(id.to_owned());
        }
        // Three workers, each with a connection of its own.
        ids.sort_unstable();
        ids.dedup();
        assert!(ids.len() <= 3, "{ids:?}");
    }
    shop.site.php.stop().await;
}

#[tokio::test]
async fn concurrent_requests_are_never_mixed() {
    let code = "$db = my(); for ($i = 0; $i < 20; $i++) { $db->query(\"SELECT '$_GET[n]', $i, SLEEP(0.002)\"); }";
    let shop = Arc::new(Shop::start(&[], &[("many.php", code)]).await);
    let one = |number: usize| {
        let shop = shop.clone();
        async move {
            for round in 0..5 {
                let name = format!("{number}-{round}");
                let (_, report) =
                    shop.site.capture("many.php", &format!("/many.php?n={name}")).await;
                let found = texts(report.expect("a report"));
                let wanted: Vec<String> =
                    (0..20).map(|i| format!("SELECT '{name}', {i}, SLEEP(0.002)")).collect();
                assert_eq!(found, wanted);
            }
        }
    };
    tokio::join!(one(0), one(1), one(2));
}

#[tokio::test]
async fn big_results_and_statements_pass_unchanged() {
    let big = "$db = my(); $db->query('SET SESSION net_read_timeout = 600');
        mt_srand(7); $text = ''; while (strlen($text) < 20 << 20) { $text .= md5(mt_rand(), true); }
        $hex = \"INSERT INTO log VALUES (x'\" . bin2hex($text) . \"')\"; $db->query($hex);
        $row = $db->query('SELECT text, SHA2(text, 256) FROM log')->fetch_row();
        echo strlen($row[0]), ' ', $row[0] === $text ? 'same' : 'other', ' ', $row[1] === hash('sha256', $text) ? 'same' : 'other';";
    let read = "$row = my()->query('SELECT text, SHA2(text, 256) FROM log')->fetch_row();
        echo strlen($row[0]), ' ', hash('sha256', $row[0]) === $row[1] ? 'same' : 'other';";
    let shop =
        Shop::start(&["--max-allowed-packet=128M"], &[("big.php", big), ("read.php", read)]).await;
    shop.db.sql_in("shop", "ALTER TABLE log MODIFY text LONGBLOB").expect("altered");
    let (content, found) = shop.run("big.php").await;
    assert_eq!(content, "20971520 same same");
    assert_incomplete(&found, "more than 1 MB");
    let (content, found) = shop.run("read.php").await;
    assert_eq!(content, "20971520 same");
    assert_eq!(found, list(&["SELECT text, SHA2(text, 256) FROM log"]));
    shop.site.php.stop().await;
}

#[tokio::test]
async fn connections_that_are_killed() {
    let server = "$db = my(); $db->query('SELECT 1'); try { $db->query('KILL ' . $db->thread_id);
        $db->query('SELECT 2'); echo 'alive'; } catch (Exception $e) { echo 'killed'; }";
    let worker = "my()->query(\"SELECT SLEEP(30) + '\" . getmypid() . \"'\");";
    let shop = Shop::start(&[], &[("server.php", server), ("worker.php", worker)]).await;
    // Over a new connection: over one that was kept, the request would be sent again.
    let capture = shop.site.origin.begin_capture().expect("captures were asked for");
    let parameters = Some(capture.parameters());
    let (response, ()) = tokio::join!(shop.site.send("worker.php", "/", parameters), async {
        let list = "SELECT info FROM information_schema.processlist WHERE user = 'app'";
        let pid = loop {
            let running = shop.db.sql(list).expect("a list");
            if let Some((_, rest)) = running.split_once("+ '") {
                break rest.split('\'').next().expect("a number").parse().expect("a number");
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        };
        let pid = rustix::process::Pid::from_raw(pid).expect("a process");
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("killed");
    });
    assert!(response.is_none(), "{response:?}");
    // The response has failed, so nothing is stored, whatever was seen.
    let found = capture.report(PATIENCE).await.map(texts);
    assert!(found.is_err() || found.is_ok_and(|found| found.len() == 1));
    for _ in 0..2 {
        assert_eq!(shop.run("server.php").await.0, "killed");
    }
    shop.site.php.stop().await;
}

#[tokio::test]
async fn accounts_and_their_plugins() {
    let login = "mysqli_report(MYSQLI_REPORT_OFF); $db = mysqli_init();
        if (!@$db->real_connect('localhost', $_GET['user'], $_GET['password'], 'shop')) { die(mysqli_connect_error()); }
        if (isset($_GET['to'])) { if (!@$db->change_user($_GET['to'], '', 'shop')) { die($db->error); } }
        echo $db->query('SELECT CURRENT_USER()')->fetch_row()[0];";
    let shop = Shop::start(&[], &[("login.php", login)]).await;
    let own = shop.db.sql("SELECT CURRENT_USER()").expect("a user");
    let own = own.trim().split('@').next().expect("a name").to_owned();
    let product = shop.db.product();
    // MySQL has other plugins for the users of the system, and an account has one plugin.
    let by_system = match product {
        SqlProduct::MySql => {
            "INSTALL PLUGIN auth_socket SONAME 'auth_socket.so';
             CREATE USER games@localhost IDENTIFIED WITH auth_socket;
             CREATE USER either@localhost IDENTIFIED BY 'secret';"
        }
        SqlProduct::MariaDb => {
            "CREATE USER games@localhost IDENTIFIED VIA unix_socket;
             CREATE USER either@localhost IDENTIFIED VIA unix_socket OR mysql_native_password USING PASSWORD('secret');"
        }
    };
    let accounts = format!(
        "CREATE USER `empty`@localhost IDENTIFIED BY ''; {by_system}
         GRANT ALL ON shop.* TO `empty`@localhost; GRANT ALL ON shop.* TO either@localhost;"
    );
    shop.db.sql(&accounts).expect("accounts");
    for (query, content) in [
        ("user=app&password=secret", "app@localhost"),
        ("user=empty&password=", "empty@localhost"),
        ("user=either&password=secret", "either@localhost"),
        ("user=app&password=wrong", "Access denied for user 'app'@'localhost'"),
        ("user=either&password=wrong", "Access denied for user 'either'@'localhost'"),
    ] {
        let target = format!("/login.php?{query}");
        let (response, _) = shop.site.capture("login.php", &target).await;
        let shown = response.expect("a response").1;
        assert!(shown.starts_with(content), "{query}: {shown}");
    }
    // PHP runs as another user only if this test runs as root.
    if harness::am_root() && product == SqlProduct::MariaDb {
        let target = format!("/login.php?user={own}&password=");
        let (response, report) = shop.site.capture("login.php", &target).await;
        let shown = response.expect("a response").1;
        assert!(shown.contains("use another account"), "{shown}");
        assert_incomplete(&report.map(texts), "refused");
        // Neither PHP's user nor that of the relay.
        let target = "/login.php?user=games&password=";
        let (response, report) = shop.site.capture("login.php", target).await;
        let shown = response.expect("a response").1;
        assert!(shown.starts_with("Access denied for user 'games'"), "{shown}");
        assert_eq!(report, Err(NotCaptured::NoConnection));
    }
    // MySQL's administrator has no password in these tests.
    if product == SqlProduct::MariaDb {
        let target = format!("/login.php?user=app&password=secret&to={own}");
        let shown = shop.site.capture("login.php", &target).await.0.expect("a response").1;
        assert!(!shown.contains(&own), "{shown}");
    }
    shop.site.php.stop().await;
}

#[tokio::test]
async fn the_reason_of_a_refusal_reaches_the_script() {
    let connect = "mysqli_report(MYSQLI_REPORT_OFF); $db = mysqli_init();
        if (!@$db->real_connect('localhost', 'app', 'secret', 'shop', 0, null, FLAGS)) { die(mysqli_connect_error()); }";
    let compressed = connect.replace("FLAGS", "MYSQLI_CLIENT_COMPRESS");
    // The database refuses the statement by its length, while it is still sent.
    let large = "$db->query(\"SELECT '\" . str_repeat('a', 15 << 20) . \"'\"); echo $db->errno;";
    let large = connect.replace("FLAGS", "0") + large;
    let scripts = [("compressed.php", &*compressed), ("large.php", &*large)];
    let shop = Shop::start(&["--max-allowed-packet=1M"], &scripts).await;
    let shown = shop.run("compressed.php").await.0;
    assert!(shown.contains("MYSQLI_CLIENT_COMPRESS) cannot be used"), "{shown}");
    for _ in 0..5 {
        assert_eq!(shop.run("large.php").await.0, "1153");
    }
    shop.site.php.stop().await;
}

#[tokio::test]
async fn a_database_that_is_not_there_is_named() {
    let dir = PrivateDir::temporary("relay").expect("a directory");
    let path = dir.path().join("index.php");
    let code = "try { my(); } catch (Exception $e) { echo $e->getMessage(); }";
    fs::write(&path, format!("{START}{code}")).expect("can be written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("can be read");
    let config = configuration(&dir, "mysql://follower@localhost/shop?socket=/none/db.sock");
    let site = PhpSite::start_with(dir.path(), config).await;
    let (response, report) = site.capture("index.php", "/").await;
    let shown = response.expect("a response").1;
    assert!(shown.contains("the database at unix:/none/db.sock cannot be reached"), "{shown}");
    assert_eq!(report, Err(NotCaptured::NoConnection));
    site.php.stop().await;
}

#[tokio::test]
async fn a_directory_that_others_can_write_to_is_refused() {
    let dir = PrivateDir::temporary("relay-open").expect("a directory");
    let directory = dir.path().join("sockets");
    fs::create_dir(&directory).expect("can be made");
    fs::write(dir.path().join("index.php"), "").expect("can be written");
    for application in ["", "application = \"wordpress\"\n"] {
        let text = format!(
            "site.root = {:?}\nphp.at = \"unix:/none/fpm.sock\"\n\
             [automatic]\nenabled = true\n{application}capture_directory = {directory:?}\n\
             [[database]]\nurl = \"mysql://follower@localhost/shop?socket=/none/db.sock\"\n",
            dir.path(),
        );
        let config = resolve(&toml::from_str(&text).expect("TOML")).expect("a configuration");
        let config = Arc::new(config);
        for (mode, is_refused) in [(0o775, true), (0o757, true), (0o755, false)] {
            fs::set_permissions(&directory, fs::Permissions::from_mode(mode)).expect("set");
            let refused = Origin::start(&config).await.err().map(|error| error.to_string());
            assert_eq!(refused.is_some(), is_refused, "{mode:o}: {refused:?}");
            assert!(refused.is_none_or(|error| error.contains("chmod go-w")));
        }
    }
}

#[tokio::test]
async fn a_php_fpm_that_is_running_uses_the_sockets_of_the_directory() {
    let code = "echo my()->query('SELECT name FROM item WHERE id = 1')->fetch_row()[0];";
    let shop = Shop::start(&[], &[("my.php", code)]).await;
    let dir = PrivateDir::temporary("relay-fpm").expect("a directory");
    let fpm = PhpFpm::start(dir, &PoolOptions::default()).expect("php-fpm starts");
    let sockets = PrivateDir::temporary("relay-sockets").expect("a directory");
    fs::set_permissions(sockets.path(), fs::Permissions::from_mode(0o711)).expect("set");
    let text = format!(
        "site.root = {:?}\nphp.at = \"unix:{}\"\n[limits]\norigin_connections = 2\n\
         [automatic]\nenabled = true\ncapture_directory = {:?}\n\
         [[database]]\nurl = \"mysql://follower@localhost/shop?socket={}\"\n\
         [[change]]\ntable = \"a\"\ntags = [\"a\"]\n",
        shop.site.root,
        fpm.socket().display(),
        sockets.path(),
        shop.db.socket().display()
    );
    let config =
        resolve(&toml::from_str(&text).expect("a configuration")).expect("a configuration");
    let (origin, own) = Origin::start(&Arc::new(config)).await.expect("the sockets are opened");
    assert!(own.is_none() && sockets.path().join("sql-4.sock").exists());
    for _ in 0..3 {
        let capture = origin.begin_capture().expect("captures were asked for");
        let parameters = Some(capture.parameters());
        let response = send(&origin, &shop.site.root, ("my.php", "/"), parameters).await;
        assert_eq!(response.expect("a response").1, "one");
        let found = capture.report(PATIENCE).await.map(texts);
        assert_eq!(found, list(&["SELECT name FROM item WHERE id = 1"]));
    }
    shop.site.php.stop().await;
}

#[tokio::test]
async fn sockets_that_were_removed_come_back() {
    let code = "mysqli_report(MYSQLI_REPORT_OFF);
        $db = @mysqli_connect('localhost', 'app', 'secret', 'shop'); echo $db ? 'connected' : 'not';";
    let shop = Shop::start(&[], &[("my.php", code)]).await;
    let (value, _) = shop.run("my.php").await;
    assert_eq!(value, "connected");
    let directory = shop.site.php.socket().parent().expect("a directory");
    for slot in 0..=6 {
        fs::remove_file(directory.join(format!("sql-{slot}.sock"))).expect("can be removed");
    }
    let connected = async {
        while shop.run("my.php").await.0 != "connected" {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, connected).await.expect("a connection");
    assert!(shop.run("my.php").await.1.is_ok());
    shop.site.php.stop().await;
}
