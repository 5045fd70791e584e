//! Rules that no request reaches, because an earlier rule of their kind covers them.

use crate::common::{read, view};
use http::Method;
use site_rules::{AccessRequest, Load, SiteRules};

#[test]
fn rules_that_nothing_reaches_are_reported() {
    let rules = read(
        "rule = [
            { from = '10.0.0.0/8', deny = false },
            { deny = 403 },
            { path = '/a', deny = 404, redirect = '/b' },
            { path = '/c', deny = 404, php = false },
        ]",
    );
    let warnings = rules.unreached_rules();
    assert_eq!(warnings.len(), 1);
    assert!(
        warnings[0].starts_with("rules 3 to 4 are never reached for deny: rule 2"),
        "{warnings:?}"
    );
}

#[test]
fn rules_are_reported_with_their_names() {
    let rules = read(
        "rule = [
            { name = 'all', deny = 403 },
            { name = 'admin', path = '/a', deny = 404 },
            { path = '/b', deny = 404 },
            { name = 'last', path = '/c' },
        ]",
    );
    let warnings = rules.unreached_rules();
    assert!(
        warnings[0]
            .starts_with("rules 2 (admin) to 3 are never reached for deny: rule 1 (all) has"),
        "{warnings:?}"
    );
    let last = rules.without_effect().expect("it sets nothing");
    assert!(last.starts_with("rule 4 (last) has no effect"), "{last}");
    let of_two_keys =
        "rule = [{ path = '/**', redirect = '/x' }, { path = '/b/**', slash = 'add' }]";
    let warning = &read(of_two_keys).unreached_rules()[0];
    assert!(warning.contains("never reached for slash: rule 1 "), "{warning}");
    assert!(warning.ends_with("the first rule with redirect that fits counts"), "{warning}");
}

/// A rule is reported only if no request reaches it, however it is spelt.
#[test]
fn a_rule_is_never_reached_if_an_earlier_one_of_its_kind_covers_it() {
    let office = "from = '10.0.0.0/8'";
    for (rules, right) in [
        ("{ path = '/**', store = '1s' }, { path = '/admin/**', bypass = true }", "2 caching:"),
        ("{ path = '/**', store = '1s' }, { cookie = 'x', bypass = true }", "2 caching:"),
        ("{ path = '/a', store = '1s' }, { path = ['/a', '/b'], bypass = true }", ""),
        ("{ path = '/a/**', method = 'GET', store = '1s' }, { path = '/a/b', store = '2s' }", ""),
        ("{ path = ['/**', '!/a/x'], store = '1s' }, { path = '/a/*', store = '2s' }", ""),
        (
            "{ path = ['/**', '!/a/x'], store = '1s' }, { path = ['/a/*', '!/a/*'], store = '2s' }",
            "2 caching:",
        ),
        (
            "{ host = '*.a', store = '1s' }, { host = 'b.A', query = 'p=1', bypass = true }",
            "2 caching:",
        ),
        ("{ query = 'p', store = '1s' }, { query = ['p=1', 'p=2'], bypass = true }", "2 caching:"),
        ("{ query = 'p=1', store = '1s' }, { query = 'p', bypass = true }", ""),
        ("{ header = 'x-*', bypass = true }, { header = 'x-a', bypass = true }", ""),
        ("{ header = 'x-a', bypass = true }, { header = 'x-a: b', bypass = true }", "2 caching:"),
        ("{ when_status = 404, store = '1s' }, { path = '/a', store = '2s' }", ""),
        (
            "{ when_status = '4xx', store = '1s' }, { when_status = 404, store = '2s' }",
            "2 caching:",
        ),
        ("{ OFFICE, store = '1s' }, { from = '10.1.0.0/16', bypass = true }", "2 caching:"),
        ("{ from = '10.1.0.0/16', store = '1s' }, { OFFICE, bypass = true }", ""),
        ("{ method = 'GET', store = '1s' }, { method = 'HEAD', bypass = true }", ""),
        ("{ method = 'GET', deny = 403 }, { method = 'HEAD', deny = 404 }", "2 deny:"),
        ("{ path = '/**', store = '1s' }, { path = '/a', deny = 403 }", ""),
        ("{ path = '/f/**', deny = 403 }, { path = '/f/x', deny = 404 }", "2 deny:"),
        // Other forms of a path: an exemption needs all of them.
        ("{ path = '/f/**', deny = false }, { path = '/f/x', deny = 404 }", ""),
        ("{ OFFICE, deny = false }, { OFFICE, path = '/f/x', deny = 404 }", "2 deny:"),
        // Fragments.
        ("{ path = '/f/**', deny = 403 }, { path = '/f/**', OFFICE, deny = 404 }", ""),
        (
            "{ path = '/f/**', deny = 403 }, { path = '/f/**', OFFICE, deny = false }",
            "2 deny, except by ESI fragments:",
        ),
        (
            "{ path = '/**', limit = { rate = '9/s' } }, { path = '/a', limit = { rate = '1/s' } }",
            "2 limit:",
        ),
        (
            "{ path_regex = '^/a', deny = 403 }, { path_regex = '^/a', path = '/a', deny = 404 }",
            "2 deny:",
        ),
        ("{ path = '/u/**', php = false }, { path = '/u/x/**', php = true }", "2 php:"),
        ("{ path = '/**', redirect = '/x' }, { path = '/blog/**', slash = 'add' }", "2 slash:"),
        ("{ path = '/blog/**', slash = 'add' }, { path = '/**', redirect = '/x' }", "1 slash:"),
        ("{ path = '/a/**', redirect = false }, { path = '/a/b', redirect = '/c' }", "2 redirect:"),
        (
            "{ path = '/m/**', rewrite = '/x.php' }, { path = '/m/*', file = 'missing', rewrite = '/y.php' }",
            "2 rewrite:",
        ),
        (
            "{ path = '/m/**', file = 'missing', rewrite = '/x.php' }, { path = '/m/*', rewrite = '/y.php' }",
            "",
        ),
    ] {
        let rules = rules.replace("OFFICE", office);
        let warnings = read(&format!("rule = [{rules}]")).unreached_rules();
        let first = warnings.first().map(String::as_str).unwrap_or_default();
        let first = first.replace("rule ", "").replace("is never reached", "").replace("for ", "");
        let first = first.replace("  ", " ").replace(" :", ":");
        let is_right = if right.is_empty() { first.is_empty() } else { first.starts_with(right) };
        assert!(is_right && warnings.len() < 2, "{rules}: {warnings:?}");
    }
}

const METHODS: [Method; 4] = [Method::GET, Method::HEAD, Method::POST, Method::OPTIONS];
/// In several spellings. Applications read some of them in two ways.
const URLS: [&str; 12] = [
    "a.test/",
    "b.test/a/b",
    "a.test/a/b?p=1",
    "a.test/a/b?p=2",
    "a.test/a%2Fb?%70=1",
    "a.test/a%5Cb",
    "c/a/b/c",
    "a.test/c",
    "a.test/x.php/a/b",
    "a.test/a/x.php/b?q",
    "a.test/a/",
    "a.test//a/../c/",
];

/// Whether rule 2 is reported. `of_kind` follows in the message.
fn reports_second(rules: &SiteRules, of_kind: &str) -> bool {
    let begin = format!("rule 2 is never reached{of_kind}");
    rules.unreached_rules().iter().any(|warning| warning.starts_with(&begin))
}

/// Whether a request is found for which this holds.
fn any_request(holds: impl Fn(&Method, &str) -> bool) -> bool {
    METHODS.iter().any(|method| URLS.iter().any(|url| holds(method, url)))
}

/// Compares all pairs of these conditions. Returns how many rules were reported.
fn compare(conditions: &[String]) -> usize {
    let mut reported = 0;
    for (first, second) in
        conditions.iter().flat_map(|one| conditions.iter().map(move |two| (one, two)))
    {
        let of = |actions: [&str; 2], more: &str| {
            let rules = [first, second].into_iter().zip(actions);
            let rules: String =
                rules.map(|(one, action)| format!("{{ {one}{action} }}, ")).collect();
            read(&format!("rule = [{rules}{more}]"))
        };
        let denial = |rules: &SiteRules, method: &Method, url: &str| {
            let found = rules.denial(&AccessRequest::new(rules, view(method, url), None));
            found.map(|denial| denial.rule)
        };
        let case = format!("{first} before {second}");
        let all = of(
            [
                "bypass = true, deny = 403, redirect = '/1'",
                "bypass = true, deny = 404, redirect = '/2'",
            ],
            "",
        );
        if reports_second(&all, ":") {
            reported += 1;
            let is_second = |method: &Method, url: &str| {
                let plan = all.plan(&view(method, url), Load::Normal, 0);
                all.ruling_of(&plan).is_some_and(|ruling| ruling.number == 2)
            };
            assert!(!any_request(is_second), "{case}");
        }
        if reports_second(&all, " for redirect:") {
            reported += 1;
            let is_second = |method: &Method, url: &str| {
                let found = all.redirect(&AccessRequest::new(&all, view(method, url), None));
                found.is_some_and(|redirect| redirect.source.rule == Some(2))
            };
            assert!(!any_request(is_second), "{case}");
        }
        // Exemptions are reported for fewer conditions.
        if !reports_second(&all, " for deny:") {
            continue;
        }
        reported += 1;
        assert!(!any_request(|method, url| denial(&all, method, url) == Some(2)), "{case}");
        let exempted = of(["deny = 403", "deny = false"], "{ deny = 410 }");
        if reports_second(&exempted, " for deny, except by ESI fragments:") {
            reported += 1;
            assert!(!any_request(|method, url| denial(&exempted, method, url).is_none()), "{case}");
        }
        let exempting = of(["deny = false", "deny = 404"], "");
        if reports_second(&exempting, " for deny:") {
            reported += 1;
            assert!(
                !any_request(|method, url| denial(&exempting, method, url) == Some(2)),
                "{case}"
            );
        }
    }
    reported
}

/// All pairs of some conditions: no request reaches a rule that is reported.
#[test]
fn no_report_is_wrong() {
    let paths = [
        "",
        "path = '/**', ",
        "path = '/a/**', ",
        "path = '/a/*', ",
        "path = '/a/b', ",
        "path = ['/a/b', '/c'], ",
        "path = ['/**', '!/a/b'], ",
        "path = ['/a/*', '!/a/*'], ",
        "path = '/**.php', ",
    ];
    let methods = [
        "",
        "method = 'GET', ",
        "method = 'HEAD', ",
        "method = '!GET', ",
        "method = ['GET', '!HEAD'], ",
        "method = ['GET', 'POST'], ",
    ];
    let queries =
        ["", "query = 'p', ", "query = 'p=1', ", "query = '!p', ", "query = ['q', '!p'], "];
    let hosts = ["", "host = '*.test', ", "host = 'A.test', ", "host = '!c', "];
    let pairs = |some: &[&str], others: &[&str]| -> Vec<String> {
        let joined =
            |one: &&str| others.iter().map(move |two| format!("{one}{two}")).collect::<Vec<_>>();
        some.iter().flat_map(joined).collect()
    };
    assert!(compare(&pairs(&paths, &methods)) > 500);
    assert!(compare(&pairs(&queries, &hosts)) > 50);
}
