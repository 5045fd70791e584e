//! `pagewell check` and `pagewell changes suggest` with the real program and a real PostgreSQL. Neither changes
//! the database.

use super::{Paper, RULES, TABLES, get, shows, stored};
use crate::paper::run;
use harness::PostgresOptions;

/// The number of publications and slots.
fn there(paper: &Paper) -> String {
    paper.sql(
        "SELECT (SELECT count(*) FROM pg_publication), (SELECT count(*) FROM pg_publication_tables), \
         (SELECT count(*) FROM pg_replication_slots)",
    )
}

#[test]
fn rules_are_suggested_for_tables_that_can_be_followed() {
    let tables = format!(
        "{TABLES} CREATE TABLE keyless (n int); CREATE UNLOGGED TABLE draft (id int PRIMARY KEY);
         CREATE SCHEMA shop; CREATE TABLE shop.price (product int, shop int, PRIMARY KEY (product, shop));
         CREATE TABLE visit (id int PRIMARY KEY, news_id int REFERENCES news) PARTITION BY RANGE (id);
         CREATE TABLE visit_1 PARTITION OF visit FOR VALUES FROM (0) TO (100);"
    );
    // The database allows its owner to create schemas.
    let paper = Paper::with(PostgresOptions::default(), &tables);
    let (text, good) = run(&["changes", "suggest", &paper.url()]);
    assert!(good, "{text}");
    for rule in [
        "table = \"comments\"\ntags = [\"comments\", \"comments:{id}\", \"news:{news_id}\"]",
        "table = \"news\"\ntags = [\"news\", \"news:{id}\"]\nany_row = [\"news\"]",
        "table = \"visit\"\ntags = [\"visit\", \"visit:{id}\", \"news:{news_id}\"]",
        "table = \"shop.price\"\ntags = [\"shop.price\"]",
        "# the rows of table \"public\".\"keyless\" cannot be identified",
        "# table \"public\".\"draft\" is unlogged",
    ] {
        assert!(text.contains(rule), "{rule}: {text}");
    }
    for wrong in ["headlines", "visit_1", "table = \"keyless\"", "table = \"draft\""] {
        assert!(!text.contains(wrong), "{wrong}: {text}");
    }
    assert_eq!(there(&paper).trim(), "0\t0\t0", "nothing was made");

    // The suggested rules can be used unchanged.
    let rules = format!("{text}\n[site]\nroot = {:?}", paper.site.root());
    let config = paper.config("manage = true", &rules);
    let file = paper.site.config(&config, "").display().to_string();
    let (text, good) = run(&["check", "--config", &file]);
    assert!(good && text.contains("no errors"), "{text}");
    assert!(text.contains("CREATE PUBLICATION \"pagewell\" FOR TABLE"), "{text}");
    assert_eq!(there(&paper).trim(), "0\t0\t0", "a check makes nothing");
    let pagewell = paper.site.serve_with_args(&["--config", &file]);
    stored(&pagewell, "/show.php?id=1");
    paper.sql("UPDATE news SET title = 'new' WHERE id = 1");
    shows(&pagewell, "/show.php?id=1", "title=new");
    // Pagewell is running and uses the slot: a check does not disturb it.
    let (text, good) = run(&["check", "--config", &file]);
    assert!(good && text.contains("no errors"), "{text}");
    assert!(text.contains("paper: answers, and can be followed"), "{text}");
    stored(&pagewell, "/plain.php");
    assert_eq!(get(&pagewell, "/show.php?id=2").status, 200);

    // Tags of pages that no row touches are reported.
    let written = std::fs::read_to_string(&file).expect("a file");
    let config = format!("admin = \"{}\"\n{written}", pagewell.admin());
    std::fs::write(&file, config).expect("written");
    let (text, good) = run(&["check", "--config", &file, "--running"]);
    assert!(good && text.contains("the tag plain,"), "{text}");
    assert!(!text.contains("the tag news"), "{text}");
}

#[test]
fn a_configuration_is_checked_against_the_database() {
    let tables = TABLES.replace("ALTER TABLE comments REPLICA IDENTITY FULL;", "");
    let settings = vec!["max_replication_slots=1".to_owned()];
    let mut paper = Paper::with(PostgresOptions { settings, ..Default::default() }, &tables);
    let root = format!("\n[site]\nroot = {:?}", paper.site.root());
    let check = |paper: &Paper, more: &str, rules: &str| {
        let config = paper.config(more, &format!("{rules}{root}"));
        let file = paper.site.config(&config, "").display().to_string();
        run(&["check", "--config", &file])
    };
    let wrong = |paper: &Paper, more: &str, rules: &str, part: &str| {
        let (text, good) = check(paper, more, rules);
        assert!(!good && text.contains(part), "{part}: {text}");
    };
    let rule = |table: &str, tag: &str| format!("[[change]]\ntable = {table:?}\ntags = [{tag:?}]");
    let managed = "manage = true";
    wrong(&paper, managed, &rule("comment", "x"), "no table comment ");
    wrong(&paper, managed, &rule("news", "news:{nr}"), "no column nr");
    wrong(&paper, managed, &rule("headlines", "x"), "headlines is a view");
    wrong(&paper, "", RULES, "CREATE PUBLICATION");
    // Possible improvements, and the objects that would be created.
    let (text, good) = check(&paper, managed, RULES);
    assert!(good, "{text}");
    for part in [
        "at the start it is made, CREATE PUBLICATION",
        "ALTER TABLE \"public\".\"comments\" REPLICA IDENTITY FULL",
        "max_slot_wal_keep_size is -1",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(there(&paper).trim(), "0\t0\t0", "a check makes nothing");
    // A missing privilege is reported before the objects are created.
    paper.sql("ALTER TABLE news OWNER TO postgres");
    wrong(&paper, managed, RULES, "must be owner of table news");
    paper.sql("ALTER TABLE news OWNER TO writer");
    paper.sql("SELECT pg_create_logical_replication_slot('other', 'pgoutput')");
    wrong(&paper, managed, RULES, "max_replication_slots");
    paper.sql("SELECT pg_drop_replication_slot('other')");
    paper.sql("ALTER ROLE writer NOREPLICATION");
    wrong(&paper, managed, RULES, "(SQLSTATE 42501)");
    paper.sql("ALTER ROLE writer REPLICATION");
    let (text, good) = check(&paper, managed, RULES);
    assert!(good, "{text}");
    paper.database.stop();
    wrong(&paper, managed, RULES, "--offline");
}
