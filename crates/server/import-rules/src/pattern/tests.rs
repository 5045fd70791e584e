//! Expressions of real configurations, and that a glob or an expanded look-ahead equals the original.
//!
//! Not here: patterns in whole configurations (`tests/translation.rs`).

use super::*;

fn globs_of(expression: &str) -> Vec<String> {
    PathPattern::read(expression, false, Exactness::Exact).expect("a pattern").globs
}

#[test]
fn expressions_become_globs_where_they_are_equal() {
    for (expression, expected) in [
        ("\\.(css|jpe?g)$", &["/**.css", "/**.jpg", "/**.jpeg"][..]),
        ("^/admin(/|$)", &["/admin/**", "/admin"]),
        ("^/uploads/.*\\.php$", &["/uploads/**.php"]),
        ("/(?:uploads|files)/.*\\.php$", &["**/uploads/**.php", "**/files/**.php"]),
        ("/\\.", &["**/.**"]),
        ("^/[^/]*\\.sql$", &["/*.sql"]),
        ("^/index\\.php$", &["/index.php"]),
        ("^\\/index\\.php(?:$|\\/)", &["/index.php", "/index.php/**"]),
        ("\\d+", &[]),
        ("^/a.b$", &[]),
        ("^/a+$", &[]),
        ("a[^b]", &[]),
        ("(a|b){2}", &[]),
    ] {
        let mut found = globs_of(expression);
        let mut expected: Vec<String> = expected.iter().map(ToString::to_string).collect();
        found.sort();
        expected.sort();
        expected.iter_mut().for_each(|word| *word = word.replace("***", "**"));
        assert_eq!(found, expected, "{expression}");
    }
    assert!(PathPattern::read("\\.CSS$", true, Exactness::Exact).expect("one").globs.is_empty());
}

#[test]
fn a_negative_look_ahead_is_expanded() {
    let pattern = PathPattern::read("/\\.(?!well-known|x/)", false, Exactness::Exact);
    let pattern = pattern.expect("a pattern");
    assert!(pattern.is_exact);
    for (path, expected) in [
        ("/.git", true),
        ("/.", true),
        ("/.w", true),
        ("/.well-know", true),
        ("/.x", true),
        ("/.well-known", false),
        ("/.well-known/acme", false),
        ("/.x/", false),
        ("/.well-known/.git", true),
        ("/a", false),
    ] {
        assert_eq!(pattern.matches(path), expected, "{path}: {}", pattern.regex);
    }
}

#[test]
fn another_look_around_only_widens_restrictions() {
    for expression in ["^/(?!a).b", "(?<!x)\\.php$", "^(?=/a)/.*b"] {
        assert!(PathPattern::read(expression, false, Exactness::Exact).is_err(), "{expression}");
        let wide = PathPattern::read(expression, false, Exactness::MayWiden).expect("a pattern");
        assert!(!wide.is_exact, "{expression}");
    }
    let wide = PathPattern::read("(?<!x)\\.php$", false, Exactness::MayWiden).expect("a pattern");
    assert!(wide.matches("/x.php") && wide.matches("/y.php"));
    assert!(PathPattern::read("(a)\\1", false, Exactness::MayWiden).is_err());
}

#[test]
fn values_have_other_globs_than_paths() {
    for (expression, expected) in [
        ("bot", &["*bot*"][..]),
        ("^a|b$", &["a*", "*b"]),
        ("(x|y)z", &["*xz*", "*yz*"]),
        ("^https://example\\.org/", &["https://example.org/*"]),
    ] {
        assert_eq!(value_globs(expression).expect("globs"), expected, "{expression}");
    }
}

#[test]
fn scripts_have_globs() {
    for (expression, expected) in [
        ("^/index\\.php(/|$)", Some(&["/index.php"][..])),
        ("^/(index|get|errors/404)\\.php$", Some(&["/index.php", "/get.php", "/errors/404.php"])),
        (
            "^/(?:index|ocs/v[12]|up/.+)\\.php(?:$|/)",
            Some(&["/index.php", "/ocs/v1.php", "/ocs/v2.php", "/up/**.php"]),
        ),
        ("^/[^/]+\\.php$", Some(&["/*.php"])),
        ("^/x$", None),
    ] {
        let found = script_globs(expression);
        assert_eq!(
            found.as_deref().map(|all| all.iter().map(String::as_str).collect()),
            expected.map(<[&str]>::to_vec),
            "{expression}"
        );
    }
}

#[test]
fn paths_that_cannot_meet_are_known() {
    let meet = |one: &str, other: &str| {
        let others = shapes(other);
        shapes(one).iter().any(|one| others.iter().any(|other| one.may_meet(other)))
    };
    assert!(!meet("\\.css$", "\\.php$") && !meet("^/a/", "^/b/") && !meet("^/a$", "^/b$"));
    assert!(meet("\\.css$", "^/a/") && meet("^/a", "^/a/b\\d+$") && meet("^/a$", "a$"));
    assert!(meet("\\d", "^/x$") && meet("(?i)\\.php$", "^/x/.*\\.PHP$"));
    assert!(!meet("^/robots\\.txt$", "^/x"));
}
