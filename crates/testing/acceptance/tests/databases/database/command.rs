//! `pagewell check` and `pagewell changes suggest` with the real program and a real database.

use super::{Paper, get, stored};
use crate::paper::run;

#[test]
fn rules_are_suggested_and_a_configuration_is_checked() {
    let paper = Paper::new(&[]);
    let (text, good) = run(&["changes", "suggest", &paper.url()]);
    assert!(good, "{text}");
    assert!(
        text.contains(
            "table = \"comments\"\ntags = [\"comments\", \"comments:{id}\", \"news:{news_id}\"]"
        ),
        "{text}"
    );
    assert!(!text.contains("headlines"), "a view is no table: {text}");

    // The suggested rules can be used, and pages whose tags no row touches are reported.
    let rules = format!("{text}\n[site]\nroot = {:?}", paper.site.root());
    let file = paper.site.config(&paper.config("", &rules), "").display().to_string();
    let check = |more: &[&str]| run(&[&["check", "--config", &file], more].concat());
    let (text, good) = check(&[]);
    assert!(good && text.contains("no errors"), "{text}");
    assert!(text.contains("paper: answers, and can be followed"), "{text}");
    let pagewell = paper.site.serve_with_args(&["--config", &file]);
    stored(&pagewell, "/show.php?id=1");
    stored(&pagewell, "/plain.php");
    assert_eq!(get(&pagewell, "/show.php?id=2").status, 200);
    let config = std::fs::read_to_string(&file).expect("a file");
    std::fs::write(&file, format!("admin = \"{}\"\n{config}", pagewell.admin())).expect("written");
    let (text, good) = check(&["--running"]);
    assert!(
        good && text.contains("the tag plain,") && text.contains("the tag any-news,"),
        "{text}"
    );
    assert!(!text.contains("news:"), "{text}");

    // Problems are reported before they have an effect.
    for (sql, part) in [
        ("SET GLOBAL binlog_format = 'MIXED'", "binlog_format is MIXED"),
        ("SET GLOBAL binlog_row_image = 'MINIMAL'", "binlog_row_image is MINIMAL"),
    ] {
        paper.database.sql(sql).expect("it runs");
        let (text, good) = check(&[]);
        assert!(good && text.contains(part), "{text}");
    }
    for (sql, part) in [
        (
            "ALTER TABLE paper.comments RENAME COLUMN news_id TO article",
            "it has: id, article, body",
        ),
        ("ALTER TABLE paper.comments RENAME COLUMN article TO news_id", "no errors"),
        ("REVOKE REPLICATION SLAVE ON *.* FROM follower@localhost", "REPLICATION SLAVE"),
        ("REVOKE ALL ON paper.* FROM follower@localhost", "paper"),
    ] {
        paper.database.sql(sql).expect("it runs");
        let (text, good) = check(&[]);
        assert!(text.contains(part) && good == (part == "no errors"), "{sql}: {text}");
    }
    drop(paper.database);
    let (text, good) = check(&[]);
    assert!(!good && text.contains("--offline"), "{text}");
    let (text, good) = check(&["--offline"]);
    assert!(good, "{text}");
}
