//! Other connections to databases: over TLS with and without certificate verification, to another server after
//! a failover, to a replica that lags, and from several nodes at once.

use super::{MariaDb, PrivateDir, config_by};
use super::{Pagewell, Paper, RULES, counter, get, is_hit, logging, post, shows, stored};
use crate::certificates::{certificates, written};
use crate::paper::run;
use acceptance::{advance, trial_found, trial_report, until};
use harness::SqlProduct;
use std::fs;

#[test]
fn certificates_are_verified_as_configured() {
    let dir = PrivateDir::temporary("tls").expect("a directory");
    let (ca, leaf, key) = certificates();
    let write = |name: &str, text: &str| written(&dir, name, text);
    let (ca, other) = (write("ca.pem", &ca), write("other.pem", &certificates().0));
    let cert = format!("--ssl-cert={}", write("cert.pem", &leaf));
    let key = format!("--ssl-key={}", write("key.pem", &key));
    let (paper, port) = Paper::over_tcp(&[&cert, &key]);
    paper.database.sql("ALTER USER follower@'127.0.0.1' REQUIRE SSL").expect("it demands TLS");
    let url = |host: &str, more: &str| format!("mysql://follower:secret@{host}:{port}/paper{more}");
    let refused = |url: String, part: &str| {
        let config = format!("[[database]]\nurl = {url:?}\n{RULES}");
        let file = paper.site.config(&config, "").display().to_string();
        let root = paper.site.root().display().to_string();
        let args = [root.as_str(), "--memory", "64M", "--config", &file];
        let error = Pagewell::start(acceptance::binary(), &args).expect_err("it does not start");
        assert!(error.to_string().contains(part), "{url}: {error}");
    };
    refused(url("127.0.0.1", ""), "access-denied");
    refused(url("127.0.0.1", &format!("?ssl-mode=verify-ca&ssl-ca={other}")), "certificate");
    refused(url("127.0.0.1", &format!("?ssl-mode=verify-full&ssl-ca={ca}")), "certificate");
    refused(url("localhost", &format!("?ssl-mode=verify-full&ssl-ca={other}")), "certificate");
    refused(url("localhost", "?ssl-mode=verify-full&ssl-ca=/no/such.pem"), "/no/such.pem");
    for (round, (host, more)) in [
        ("127.0.0.1", "?ssl-mode=required".to_owned()),
        ("127.0.0.1", format!("?ssl-mode=verify-ca&ssl-ca={ca}")),
        ("localhost", format!("?ssl-mode=verify-full&ssl-ca={ca}")),
    ]
    .into_iter()
    .enumerate()
    {
        let pagewell = paper.serve_by(&url(host, &more), "");
        stored(&pagewell, "/show.php?id=1");
        paper.sql(&format!("UPDATE news SET title = 'secret{round}' WHERE id = 1"));
        shows(&pagewell, "/show.php?id=1", &format!("title=secret{round}"));
    }
}

/// A second server that replicates the one on this port; `logs`: whether replicated changes are in its own log.
fn replica(paper: &Paper, port: u16, logs: bool) -> MariaDb {
    let account = "CREATE USER replica@'127.0.0.1' IDENTIFIED BY 'secret';
         GRANT REPLICATION SLAVE ON *.* TO replica@'127.0.0.1'";
    paper.database.sql(account).expect("an account");
    let product = paper.database.product();
    let option = match product {
        SqlProduct::MariaDb => "log-slave-updates",
        SqlProduct::MySql => "log-replica-updates",
    };
    let second = logging(None, &["--server-id=2", &format!("--{option}={}", u8::from(logs))]);
    let source = match product {
        SqlProduct::MariaDb => format!(
            "CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={port}, MASTER_USER='replica',
             MASTER_PASSWORD='secret', MASTER_USE_GTID=slave_pos"
        ),
        SqlProduct::MySql => format!(
            "CHANGE REPLICATION SOURCE TO SOURCE_HOST='127.0.0.1', SOURCE_PORT={port}, SOURCE_USER='replica',
             SOURCE_PASSWORD='secret', SOURCE_AUTO_POSITION=1, GET_SOURCE_PUBLIC_KEY=1"
        ),
    };
    second.sql(&format!("{source}; START REPLICA")).expect("it replicates");
    second
}

/// Following it would work, but no changes would arrive: replicated changes are not in its log.
#[test]
fn a_replica_without_log_replica_updates_is_refused() {
    let (paper, port) = Paper::over_tcp(&[]);
    let second = replica(&paper, port, false);
    let last = paper.position();
    let replicated = match paper.database.product() {
        SqlProduct::MariaDb => "SELECT @@gtid_slave_pos",
        SqlProduct::MySql => "SELECT @@global.gtid_executed",
    };
    until("it has it all", || second.sql(replicated).is_ok_and(|at| at == last));
    let socket = second.socket().display();
    let url = format!("mysql://follower:secret@localhost/paper?socket={socket}");
    let root = format!("{RULES}\n[site]\nroot = {:?}", paper.site.root());
    if paper.database.product() == SqlProduct::MySql {
        // Whether the server is a replica is not known, so that is a warning.
        let file = paper.site.config(&config_by(&url, "", &root), "").display().to_string();
        let (text, good) = run(&["check", "--config", &file]);
        assert!(good && text.contains("log_replica_updates is OFF"), "{text}");
        return;
    }
    for state in ["START SLAVE", "STOP SLAVE"] {
        second.sql(state).expect("it runs");
        for more in ["", "&position=file"] {
            let config = config_by(&format!("{url}{more}"), "", &root);
            let file = paper.site.config(&config, "").display().to_string();
            let (text, good) = run(&["check", "--config", &file]);
            assert!(!good && text.contains("log_slave_updates"), "{text}");
            let args = ["--memory", "64M", "--config", &file];
            let error =
                Pagewell::start(acceptance::binary(), &args).expect_err("it does not start");
            assert!(error.to_string().contains("log_slave_updates"), "{error}");
        }
    }
    second.sql("RESET SLAVE ALL; SET GLOBAL gtid_slave_pos = ''").expect("it is no replica");
    let file = paper.site.config(&config_by(&url, "", &root), "").display().to_string();
    let (text, good) = run(&["check", "--config", &file]);
    assert!(good, "{text}");
}

#[test]
fn after_a_failover_the_other_server_is_followed() {
    let (mut paper, port) = Paper::over_tcp(&[]);
    let second = replica(&paper, port, true);
    let pagewell = paper.serve("lag_max = \"60s\"");
    let path = "/show.php?id=1";
    paper.sql("UPDATE news SET title = 'first' WHERE id = 1");
    shows(&pagewell, path, "title=first");
    stored(&pagewell, path);
    stored(&pagewell, "/show.php?id=2");
    let at = |server: &MariaDb| server.sql(server.product().logged_gtids()).expect("a position");
    let last = at(&paper.database);
    until("the other has it all", || at(&second) == last);

    // The first server stops, and the second answers at its address.
    paper.database.stop();
    let _ = fs::remove_file(paper.database.socket());
    std::os::unix::fs::symlink(second.socket(), paper.database.socket()).expect("a link");
    second.sql("STOP REPLICA; UPDATE paper.news SET title = 'second' WHERE id = 1").expect("a row");
    shows(&pagewell, path, "title=second");
    assert!(is_hit(&get(&pagewell, "/show.php?id=2")), "{}", pagewell.log());
    stored(&pagewell, path);
    second.sql("UPDATE paper.news SET title = 'third' WHERE id = 1").expect("a row");
    shows(&pagewell, path, "title=third");
    assert_eq!(counter(&pagewell, "database_gaps"), 0, "{}", pagewell.log());
}

/// Renders of Pagewell read the replica, as visitors do. With the note `primary`, visitors read the first server, as after a
/// write of their own.
fn page_of_both(primary: &MariaDb, replica: &MariaDb) -> String {
    let (primary, replica) = (primary.socket().display(), replica.socket().display());
    format!(
        "<?php
        $is_visitor = !isset($_SERVER['HTTP_PAGEWELL_REFERENCE']);
        $has_written = $is_visitor && file_exists(getenv('NOTES') . '/primary');
        $socket = $has_written ? '{primary}' : '{replica}';
        $db = new PDO(\"mysql:unix_socket=$socket;dbname=paper\", 'writer', 'secret');
        keep(3600);
        header('Cache-Groups: \"news:1\"');
        echo 'title=', $db->query('SELECT title FROM news WHERE id = 1')->fetchColumn();"
    )
}

/// The replica is followed. While it lags, its old data are no fault of a page; what only the first server shows has no
/// verdict.
#[test]
fn a_trial_says_what_a_replica_that_lags_kept_from_being_judged() {
    let (paper, port) = Paper::over_tcp(&[]);
    let second = replica(&paper, port, true);
    let at = |server: &MariaDb| server.sql(server.product().logged_gtids()).expect("a position");
    let last = at(&paper.database);
    until("the replica has it all", || at(&second) == last);
    paper.site.file("both.php", page_of_both(&paper.database, &second));
    let url =
        format!("mysql://follower:secret@localhost/paper?socket={}", second.socket().display());
    let config = config_by(&url, "", RULES);
    let trial = "mode = \"trial\"\ntrial.budget = \"100%\"\nphp.children = 4\n";
    let pagewell = paper.site.serve(&format!("{trial}{config}"));
    let answers = || counter(&pagewell, "trial_answers");
    let visit = |text: &str| {
        let before = answers();
        assert_eq!(get(&pagewell, "/both.php").text(), text);
        until("it is compared", || answers() > before);
    };
    let versions = || trial_report(&pagewell)["versions"].as_u64();
    until("the page is judged", || {
        visit("title=one");
        versions() == Some(1)
    });

    second.sql("STOP REPLICA").expect("it lags");
    paper.sql("UPDATE news SET title = 'new' WHERE id = 1");
    (0..3).for_each(|_| visit("title=one"));
    paper.site.note("primary");
    visit("title=new");
    let report = trial_report(&pagewell);
    assert_eq!(report["unjudged"]["cause-unknown"], 1, "{report}");
    assert_eq!(report["suspects"][0], "/both.php", "{report}");

    second.sql("START REPLICA").expect("it goes on");
    until("the change is judged", || {
        visit("title=new");
        versions() == Some(2)
    });
    // A page that was found wrong would be reported after a minute.
    advance(&pagewell, 61);
    until("no page is watched", || counter(&pagewell, "audit_watched") == 0);
    assert_eq!(trial_found(&pagewell, true), [""; 0], "{}", pagewell.log());
}

/// Each node has its own cache, and receives the changes of the other node's clients from the database.
#[test]
fn two_nodes_apply_the_same_changes() {
    let paper = Paper::new(&[]);
    let both = [paper.serve(""), paper.serve("")];
    for pagewell in &both {
        for path in ["/show.php?id=1", "/show.php?id=2", "/thread.php?id=3"] {
            stored(pagewell, path);
        }
    }
    paper.sql("UPDATE news SET title = 'seen by both' WHERE id = 1");
    for pagewell in &both {
        shows(pagewell, "/show.php?id=1", "title=seen by both");
        assert!(is_hit(&get(pagewell, "/show.php?id=2")), "{}", pagewell.log());
    }
    post(&both[0], "/write.php?id=3");
    assert_eq!(get(&both[0], "/thread.php?id=3").text(), "comments=2");
    shows(&both[1], "/thread.php?id=3", "comments=2");
    for pagewell in &both {
        assert_eq!(counter(pagewell, "database_gaps"), 0, "{}", pagewell.log());
    }
}
