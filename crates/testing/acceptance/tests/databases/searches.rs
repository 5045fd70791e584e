//! Searches in the text of rows: a page goes when a row enters it, leaves it, or stands in it and changes, and
//! stays whatever else happens. With either kind of database.

use crate::paper::{get, shows, stored};
use acceptance::is_hit;
use harness::Pagewell;

pub const RULES: &str = r#"
[[change]]
table = "news"
tags = ["news:{id}"]
searches = { kind = "search", columns = ["title"] }
any_row = ["any-news"]
"#;

pub const SEARCH: &str = r#"<?php
require 'db.php';
keep(3600);
$word = $_GET['q'];
header('Cache-Groups: "search:' . $word . '"');
$found = db()->prepare('SELECT id FROM news WHERE LOWER(title) LIKE ? ORDER BY id');
$found->execute(['%' . mb_strtolower($word) . '%']);
echo 'found=', implode(',', $found->fetchAll(PDO::FETCH_COLUMN));
"#;

/// What happens; `any` is a statement of which no rows are known.
pub fn are_dropped_exactly(pagewell: &Pagewell, sql: &dyn Fn(&str), any: &str) {
    let [php, cache, perl] = ["php", "cache", "Perl"].map(|word| format!("/search.php?q={word}"));
    let stay = |pages: &[&String]| {
        for page in pages {
            assert!(is_hit(&get(pagewell, page)), "{page}");
        }
    };
    let found = |page: &String, ids: &str| {
        shows(pagewell, page, &format!("found={ids}"));
        stored(pagewell, page);
    };
    sql("INSERT INTO news (id, title) VALUES (4, 'PHP caching'), (5, 'a Cache')");
    for (page, ids) in [(&php, "4"), (&cache, "5"), (&perl, "")] {
        found(page, ids);
    }
    // Rendered once more, for now all that was there before them has settled.
    sql("UPDATE news SET title = 'uno' WHERE id = 1");
    for (page, ids) in [(&php, "4"), (&cache, "5"), (&perl, "")] {
        found(page, ids);
    }

    // Another text.
    sql("UPDATE news SET title = 'un' WHERE id = 1");
    shows(pagewell, "/show.php?id=1", "title=un");
    stay(&[&php, &cache, &perl]);
    // One that enters, in other letters; one that stands in it.
    sql("INSERT INTO news (id, title) VALUES (6, 'More PhpUnit')");
    found(&php, "4,6");
    stay(&[&cache, &perl]);
    // One that leaves, and enters another.
    sql("UPDATE news SET title = 'perl' WHERE id = 4");
    found(&php, "6");
    found(&perl, "4");
    stay(&[&cache]);
    sql("DELETE FROM news WHERE id = 6");
    found(&php, "");
    stay(&[&cache, &perl]);
    // Nobody knows which.
    sql(any);
    for page in [&php, &cache, &perl] {
        acceptance::until("it is made anew", || !is_hit(&get(pagewell, page)));
    }
}
