//! Tags for text searches in rows: a page is purged if a row enters its result, leaves it, or changes within
//! it, and stays cached otherwise. For either kind of database.

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

/// The changes and the expected purges. `any` is a statement whose changed rows are unknown.
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
    // Rendered again, because all earlier changes have settled now.
    sql("UPDATE news SET title = 'uno' WHERE id = 1");
    for (page, ids) in [(&php, "4"), (&cache, "5"), (&perl, "")] {
        found(page, ids);
    }

    // Another text.
    sql("UPDATE news SET title = 'un' WHERE id = 1");
    shows(pagewell, "/show.php?id=1", "title=un");
    stay(&[&php, &cache, &perl]);
    // A row that enters, in different case; a row that changes within the result.
    sql("INSERT INTO news (id, title) VALUES (6, 'More PhpUnit')");
    found(&php, "4,6");
    stay(&[&cache, &perl]);
    // A row that leaves, and enters another result.
    sql("UPDATE news SET title = 'perl' WHERE id = 4");
    found(&php, "6");
    found(&perl, "4");
    stay(&[&cache]);
    sql("DELETE FROM news WHERE id = 6");
    found(&php, "");
    stay(&[&cache, &perl]);
    // The changed rows are unknown.
    sql(any);
    for page in [&php, &cache, &perl] {
        acceptance::until("it is made anew", || !is_hit(&get(pagewell, page)));
    }
}
