//! Other connections to databases: over TLS with and without certificate verification, to another server after
//! a failover, and from several nodes at once.

use super::{MariaDb, PrivateDir, config_by};
use super::{Pagewell, Paper, RULES, counter, get, is_hit, logging, post, shows, stored};
use crate::certificates::{certificates, written};
use crate::paper::run;
use acceptance::until;
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
