//! Conditions: which rows satisfy them, and which tables they restrict.
//!
//! Each table of the documentation of `src/footprint.rs` and `src/reader/predicate.rs` has its cases here.
//! Not here: how a text is split.

use crate::{check, check_in};
use footprint::SqlMode;

#[test]
fn a_constant_is_passed_on_to_the_column_that_equals() {
    check(&[
        (
            "SELECT meta.value FROM meta JOIN post ON meta.post = post.id WHERE post.id IN (5, 6)",
            &["+meta post=5", "+meta post=6", "-meta post=7", "+meta post=?", "-post id=7"],
        ),
        // `ß` is `s` by one collation and `ss` by another, and each column may have its own.
        (
            "SELECT meta.value FROM meta JOIN person ON meta.name = person.name WHERE person.name = 's'",
            &["+meta name=ss", "+meta name=S", "+meta name=ß", "-meta name=a"],
        ),
        // The right side of an outer join needs a partner, the left side does not.
        (
            "SELECT post.id, meta.id FROM post LEFT JOIN meta ON meta.post = post.id AND post.id = 5",
            &["+post id=7"],
        ),
    ]);
}

#[test]
fn a_condition_tests_the_row_before_and_the_row_after() {
    check(&[
        (
            "SELECT title FROM post WHERE status = 'publish'",
            &[
                "-post status=draft",
                "+post status=publish",
                "+post status=PUBLISH",
                "+post status=?",
                "-post status=NULL",
                "-post status=draft;title=a -> status=draft;title=b",
                "+post status=publish;title=a -> status=publish;title=b",
                "-post status=publish;author=1 -> status=publish;author=2",
                "+post status=draft -> status=publish",
                "+post status=publish -> status=draft",
                "-post status=publish -> status=Publish",
            ],
        ),
        ("SELECT COUNT(*) FROM post", &["+post", "-post title=a -> title=b"]),
        ("SELECT * FROM post", &["+post", "+post title=a -> title=b"]),
        ("SELECT title FROM post WHERE 1 = 0", &["-post"]),
        ("SELECT title FROM post WHERE 0 OR author = 5", &["+post author=5", "-post"]),
        (
            "SELECT title FROM post ORDER BY score",
            &["+post score=1 -> score=2", "-post author=1 -> author=2"],
        ),
        ("SELECT COUNT(*) FROM post GROUP BY author", &["+post author=1 -> author=2"]),
        ("SELECT title FROM post HAVING COUNT(author) > 1", &["+post author=1 -> author=2"]),
        ("SELECT COUNT(*) OVER (PARTITION BY author) FROM post", &["+post author=1 -> author=2"]),
    ]);
}

#[test]
fn comparisons_are_those_of_the_columns_kind() {
    check(&[
        ("SELECT 1 FROM post WHERE author = 5", &["+post author=5", "-post author=6"]),
        ("SELECT 1 FROM post WHERE 5 < author", &["+post author=6", "-post author=5"]),
        ("SELECT 1 FROM post WHERE author = -5", &["+post author=-5", "-post author=5"]),
        ("SELECT 1 FROM post WHERE author = '5x'", &["+post author=5", "+post author=6"]),
        ("SELECT 1 FROM post WHERE author NOT IN (5, 6)", &["+post author=7", "-post author=6"]),
        ("SELECT 1 FROM post WHERE author NOT IN (5, NULL)", &["+post author=7"]),
        ("SELECT 1 FROM post WHERE author BETWEEN 2 AND 5", &["+post author=5", "-post author=6"]),
        ("SELECT 1 FROM post WHERE author <=> 5", &["+post author=6"]),
        ("SELECT 1 FROM post WHERE author IS NULL", &["+post author=NULL", "-post author=6"]),
        ("SELECT 1 FROM post WHERE author IS NOT NULL", &["-post author=NULL", "+post author=6"]),
        ("SELECT 1 FROM post WHERE author = author", &["+post author=6"]),
        ("SELECT 1 FROM post WHERE author + 1 = 6", &["+post author=6"]),
        (
            "SELECT 1 FROM post WHERE score > 1.5",
            &["+post score=2", "+post score=1.50", "-post score=1.25"],
        ),
        ("SELECT 1 FROM post WHERE title = 5", &["+post title=a"]),
        ("SELECT 1 FROM post WHERE title > 'm'", &["+post title=a"]),
        (
            "SELECT 1 FROM post WHERE title = 'strasse'",
            &["+post title=Straße", "-post title=Gasse"],
        ),
        ("SELECT 1 FROM post WHERE title LIKE 'a%'", &["+post title=Ab", "-post title=ba"]),
        ("SELECT 1 FROM post WHERE title NOT LIKE 'a%'", &["-post title=Ab", "+post title=ba"]),
        ("SELECT 1 FROM post WHERE title LIKE 'a|%' ESCAPE '|'", &["+post title=ba"]),
        ("SELECT 1 FROM post WHERE title = 'a' COLLATE utf8mb4_bin", &["+post title=b"]),
        ("SELECT 1 FROM post WHERE title REGEXP 'a'", &["+post title=b"]),
        ("SELECT 1 FROM post WHERE raw = 'a'", &["+post raw=a", "-post raw=A"]),
        ("SELECT 1 FROM post WHERE flag = 'a'", &["+post flag=b"]),
        (
            "SELECT 1 FROM post WHERE YEAR(posted) = 2026",
            &["+post", "-post posted=2025-01-01 00:00:00"],
        ),
        (
            "SELECT 1 FROM post WHERE posted < '2026-01-01'",
            &["-post", "+post posted=2025-01-01 00:00:00"],
        ),
        ("SELECT 1 FROM post WHERE posted < '2026-02-31'", &["+post"]),
        ("SELECT 1 FROM post WHERE posted IS NULL", &["-post", "+post posted=0000-00-00 00:00:00"]),
        ("SELECT 1 FROM post WHERE (author, id) = (5, 6)", &["+post author=6"]),
    ]);
}

#[test]
fn and_or_and_not_are_those_of_three_values() {
    let five_or_a: &[&str] =
        &["+post author=5;title=x", "+post author=6;title=a", "-post author=6;title=x"];
    check(&[
        ("SELECT 1 FROM post WHERE author = 5 OR title = 'a'", five_or_a),
        ("SELECT 1 FROM post WHERE NOT (author <> 5 AND title <> 'a')", five_or_a),
        ("SELECT 1 FROM post WHERE NOT NOT (author = 5 OR (title = 'a'))", five_or_a),
        (
            "SELECT 1 FROM post WHERE NOT (author = 5 OR title = 'a')",
            &["-post author=5", "+post author=6"],
        ),
        (
            "SELECT 1 FROM post WHERE NOT (author = 5 AND title = 'a')",
            &["+post author=NULL;title=b"],
        ),
        ("SELECT 1 FROM post WHERE author = 5 OR LENGTH(title) = 3", &["+post author=6"]),
        (
            "SELECT 1 FROM post WHERE author = 5 AND LENGTH(title) = 3",
            &["+post author=5", "-post author=6"],
        ),
        ("SELECT 1 FROM post WHERE NOT (author = 5 AND LENGTH(title) = 3)", &["+post author=5"]),
        ("SELECT 1 FROM post WHERE author = 5 && title = 'a'", &["-post author=6;title=a"]),
        ("SELECT 1 FROM post WHERE author = 5 || title = 'a'", &["+post author=6;title=b"]),
        ("SELECT 1 FROM post WHERE author = 5 XOR title = 'a'", &["+post author=6;title=b"]),
        ("SELECT 1 FROM post WHERE ! author = 5", &["+post author=5"]),
        ("SELECT 1 FROM post WHERE author = 5 = 1", &["+post author=6"]),
        ("SELECT 1 FROM post WHERE (author = 5) IS NOT TRUE", &["+post author=6"]),
        (
            "SELECT 1 FROM post WHERE author = 5 OR title = 'a' AND id = 7",
            &["+post author=5", "-post title=a"],
        ),
    ]);
    let mode = SqlMode::of("STRICT_TRANS_TABLES,HIGH_NOT_PRECEDENCE");
    check_in(mode, &[("SELECT 1 FROM post WHERE NOT author = 5", &["+post author=5"])]);
}

#[test]
fn outer_joins_restrict_one_side() {
    let left =
        "SELECT 1 FROM post p LEFT JOIN meta m ON m.post = p.id AND m.name = 'a' AND p.author = 5";
    let cases = |rest: &str| format!("{left}{rest}");
    check(&[
        (&cases(""), &["+post author=6", "+meta name=a", "-meta name=b"]),
        (&cases(" WHERE m.value = 'v'"), &["+post author=6", "-meta name=a", "+meta name=a;value=v"]),
        (&cases(" WHERE m.value IS NULL"), &["+meta name=a;value=v", "-meta name=b;value=v"]),
        (&cases(" WHERE NOT m.value = 'v'"), &["-meta name=a;value=v", "+meta name=a;value=w"]),
        (&cases(" WHERE m.value = 'v' OR p.id = 7"), &["+meta name=a;value=w"]),
        (&cases(" WHERE p.author = 7"), &["-post author=5", "+meta name=a"]),
        (
            "SELECT 1 FROM meta m RIGHT JOIN post p ON m.name = 'a' AND p.author = 5",
            &["+post author=6", "-meta name=b"],
        ),
        ("SELECT 1 FROM post p JOIN meta m ON m.name = 'a' AND p.author = 5", &["-post author=6"]),
        ("SELECT 1 FROM post NATURAL JOIN person", &["+person nick=a -> nick=b"]),
        (
            "SELECT 1 FROM post p LEFT JOIN (meta m LEFT JOIN person q ON q.nick = 'a') ON m.name = 'a'
             WHERE q.id IS NULL",
            &["+person nick=a", "-person nick=b", "-meta name=b"],
        ),
    ]);
}

#[test]
fn subqueries_have_footprints_of_their_own() {
    check(&[
        (
            "SELECT id FROM post p WHERE author = 5 AND EXISTS
             (SELECT 1 FROM meta WHERE meta.post = p.id AND name = 'a')",
            &[
                "+post author=5",
                "-post author=6",
                "+meta name=a",
                "-meta name=b",
                "+post author=5;id=1 -> author=5;id=2",
            ],
        ),
        (
            "SELECT id FROM post WHERE id IN (SELECT post FROM meta WHERE name = 'a')",
            &["-meta name=b", "+meta name=a"],
        ),
        (
            "SELECT (SELECT MAX(id) FROM meta WHERE name = 'a') FROM post",
            &["-meta name=b", "+meta name=a"],
        ),
        (
            "SELECT x FROM (SELECT author AS x, title FROM post WHERE id = 5) q",
            &["-post", "+post id=5"],
        ),
        (
            "SELECT id FROM post WHERE author = 5 UNION ALL SELECT id FROM meta WHERE name = 'a'",
            &["-post author=6", "+post author=5", "-meta name=b", "+meta name=a"],
        ),
        (
            "SELECT id FROM post WHERE author = (SELECT id FROM post WHERE title = 'a')",
            &["+post author=6;title=a", "+post author=7"],
        ),
    ]);
}
