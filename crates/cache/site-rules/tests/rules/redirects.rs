//! Redirects and rewrites: which rule or line decides, where it leads, and which are refused when they are read.

use crate::common::{files, read, read_with, view};
use http::Method;
use rule_conditions::RequestView;
use site_rules::{
    AccessRequest, KeyForm, PageAccess, RedirectFault, RedirectMap, RewriteFor, SiteRules, raw,
};

/// The rules with the lines of a redirect file.
fn with_lines(text: &str, lines: &[(&str, &str)]) -> SiteRules {
    let (mut rules, mut map) = (read(text), RedirectMap::default());
    let form = KeyForm::read(&raw::Keys::default()).expect("defaults");
    for ((old, target), number) in lines.iter().zip(1..) {
        map.begin_line(number);
        map.add(&form, old, target, None).expect("a line");
    }
    rules.set_redirect_map(map);
    rules
}

fn location(rules: &SiteRules, url: &str) -> Option<String> {
    let get = Method::GET;
    let view = view(&get, url);
    let found = rules.redirect(&AccessRequest::new(rules, view, None));
    assert!(rules.may_answer() || found.is_none());
    // A request that may be redirected is no plain hit.
    assert!(found.is_none() || rules.page_access(view).is_none(), "{url}");
    found.and_then(|redirect| redirect.location)
}

#[test]
fn a_file_comes_before_rules_and_slash_comes_last() {
    let rules = with_lines(
        "rule = [
            { path = '/x/**', slash = 'add' },
            { path = '/x/open/**', redirect = false },
            { path = '/x/*/old', redirect = '/new/$1' },
            { path_regex = '^/archives/(\\d+)$', redirect = '/?p=$1', redirect_status = 308 },
            { host = 'shop.test', path = '/**', redirect = 'https://a.test/shop/$1' },
            { path = '/m', cookie = 'm', redirect = '/mobile' },
        ]",
        &[("/x/file", "/line"), ("/x/file?a=1", "/with")],
    );
    for (url, right) in [
        ("a.test/x/file", Some("/line")),
        ("a.test/x/file?b=2", Some("/line?b=2")),
        ("a.test/x/file?a=1", Some("/with")),
        ("a.test//x/%66ile", Some("/line")),
        ("a.test/x/a%20b/old?q", Some("/new/a%20b?q")),
        ("a.test/x/open/a", None),
        ("a.test/x/y", Some("/x/y/")),
        ("a.test/x/y/", None),
        ("a.test/x/y.css", None),
        ("a.test//x/y?a", Some("/x/y/?a")),
        ("a.test/archives/12", Some("/?p=12")),
        ("a.test/archives/12?x=1", Some("/?p=12")),
        ("shop.test/a?b", Some("https://a.test/shop/a?b")),
        ("a.test/m", None),
        ("a.test/", None),
    ] {
        assert_eq!(location(&rules, url).as_deref(), right, "{url}");
    }
    let rules = read("rule = [{ slash = 'remove' }]");
    let access = rules.page_access(view(&Method::GET, "a.test/x"));
    assert_eq!(access, Some(PageAccess::Everybody));
    assert_eq!(location(&read("rule = [{ slash = 'remove' }]"), "a/b//?c"), Some("/b?c".into()));
    assert_eq!(
        location(&read("rule = [{ slash = 'remove' }]"), "a//evil.test/"),
        Some("/evil.test".into())
    );
}

#[test]
fn no_request_is_redirected_to_another_host_or_to_a_second_field() {
    let rules = read(
        "rule = [
            { path_regex = '(?s)^/go(.*)$', redirect = '/$1' },
            { path = '/out/**', redirect = 'https://b.test/$1' },
            { path = '/query/**', redirect = '/search?q=$1&page=1' },
        ]",
    );
    for (url, right) in [
        ("a/go/evil.test", "/evil.test"),
        ("a/go//evil.test", "/evil.test"),
        ("a/go/%2Fevil.test", "/evil.test"),
        ("a/go/%5Cevil.test", "/%5Cevil.test"),
        ("a/go%5C%5Cevil.test", "/%5C%5Cevil.test"),
        ("a/go@evil.test", "/@evil.test"),
        ("a/go/%0d%0aSet-Cookie:x", "/%0D%0ASet-Cookie:x"),
        ("a/go/%00%09%c3%a9\u{e9}", "/%00%09%C3%A9%C3%A9"),
        ("a/out/@evil.test", "https://b.test/@evil.test"),
        ("a/query/x&page=2%26y?z=1", "/search?q=x%26page%3D2%26y&page=1"),
    ] {
        assert_eq!(location(&rules, url).as_deref(), Some(right), "{url}");
    }
}

#[test]
fn wrong_redirects_are_refused() {
    for (rule, part) in [
        ("path = '/a', redirect = true", "write the target"),
        ("path = '/a', redirect = '/b', slash = 'add'", "use two rules"),
        ("slash = 'maybe'", "add or remove"),
        ("redirect_status = 302", "belongs to redirect"),
        ("path = '/a', redirect = '/b', redirect_status = 200", "301, 302"),
        ("path = '/a', redirect = '/b', redirect_status = 410", "deny = 410"),
        ("path = ['/a/*', '/b/*'], redirect = '/b/$1'", "captures need one"),
        ("path = '/a/*', redirect = '/b/$2'", "has 1 captures"),
        ("path = '/a/*', redirect = 'https://$1/'", "without captures"),
        ("path = '/a/*', redirect = '//b/$1'", "read a host after //"),
        ("when_status = 404, redirect = '/b'", "when_status"),
    ] {
        let error = read_with(&format!("rule = [{{ {rule} }}]"), files(None)).expect_err(rule);
        assert!(error.contains(part), "{rule}: {error}");
    }
}

#[test]
fn redirects_that_never_end_are_found() {
    let hosts = ["a.test", "www.a.test"];
    for rules in [
        "{ path = '/a/**', redirect = '/a/new/$1' }",
        "{ path_regex = '^/(\\d+)$', redirect = '/$1?x' }",
        "{ path = '/a', redirect = 'http://www.a.test/a' }",
        "{ path = '/a', redirect = '/b' }, { path = '/b', redirect = '/a' }",
        "{ path = '/a', redirect = '/a/' }, { slash = 'remove' }",
        "{ redirect = '/welcome', cookie = '!seen' }",
        "{ path = '/old', query = 'p=*', redirect = '/old' }",
        "{ path = '/a', cookie = 'x', redirect = '/b' }, { path = '/b', cookie = 'x', redirect = '/a' }",
        "{ path = '/a', from = '10.1.0.0/16', redirect = '/b' }, { path = '/b', from = '10.0.0.0/8', redirect = '/a' }",
    ] {
        let rules = read(&format!("rule = [{rules}]"));
        assert!(!rules.loops_of_rules(&hosts).is_empty(), "{rules:?}");
    }
    for rules in [
        "{ path = '/a/**', redirect = '/b/$1' }, { path = '/b/*/x', redirect = '/c' }",
        "{ path_regex = '^/(.*)\\.html$', redirect = '/$1' }",
        "{ path = '/a', redirect = 'https://b.test/a' }",
        "{ path = '/', agent = 'phone', redirect = '/m/' }, { path = '/m/', agent = 'desktop', redirect = '/' }",
        "{ host = 'www.a.test', path = '/**', redirect = 'http://a.test/$1' }",
        "{ path = '/a', deny = 403 }, { path = '/a', redirect = '/a/' }, { slash = 'remove' }",
        "{ slash = 'add' }",
        "{ path = '/a', cookie = 'x', redirect = '/b' }, { path = '/b', cookie = 'y', redirect = '/a' }",
        "{ path = '/a', cookie = 'x', redirect = 'http://www.a.test/b' }, { path = '/b', cookie = 'x', redirect = 'http://a.test/a' }",
        "{ path = '/b', cookie = 'x', redirect = false }, { path = '/a', cookie = 'x', redirect = '/b' }, { path = '/b', redirect = '/a' }",
    ] {
        let rules = read(&format!("rule = [{rules}]"));
        assert!(rules.loops_of_rules(&hosts).is_empty(), "{rules:?}");
    }
    // The chain begins with the URL that is redirected, and ends where it comes back.
    let told = |faults: Vec<RedirectFault>| faults.into_iter().map(|one| one.message);
    let two = read("rule = [{ path = '/a', redirect = '/b' }, { path = '/b', redirect = '/a' }]");
    assert_eq!(
        told(two.loops_of_rules(&hosts)).collect::<Vec<_>>(),
        [
            "rule 1: redirect: never ends: /a → /b → /a",
            "rule 2: redirect: never ends: /b → /a → /b"
        ]
    );
    let list: Vec<(String, String)> = (1..9)
        .map(|at| (format!("/{at}"), format!("/{}", if at == 8 { 2 } else { at + 1 })))
        .collect();
    let list: Vec<(&str, &str)> = list.iter().map(|(old, new)| (&**old, &**new)).collect();
    let message = told(with_lines("rule = []", &list).loops_of_lines(&hosts)).next();
    let right = "the redirect of /1 never ends: /1 → /2 → /3 → /4 → … → /2";
    assert_eq!(message.as_deref(), Some(right));
    let both = with_lines(
        "rule = [{ path = '/a/**', redirect = '/b/$1' }]",
        &[("/b/x", "/a/x"), ("/c", "/d")],
    );
    // The line has its part in both.
    let lines = |faults: Vec<RedirectFault>| faults.iter().map(|one| one.line).collect::<Vec<_>>();
    assert_eq!(lines(both.loops_of_rules(&hosts)), [Some(1)]);
    assert_eq!(lines(both.loops_of_lines(&hosts)), [Some(1)]);
    let alone = read("rule = [{ path = '/a', redirect = '/a' }]");
    assert_eq!(lines(alone.loops_of_rules(&hosts)), [None]);
    let lines = with_lines(
        "rule = [{ path = '/c', deny = 403 }]",
        &[("/a", "/b"), ("/b", "/a?x"), ("/c", "/d")],
    );
    assert_eq!(lines.loops_of_lines(&hosts).len(), 2);
    assert_eq!(lines.denied_lines("a.test").len(), 1);
}

#[test]
fn the_first_rewrite_that_fits_is_applied_once() {
    let rules = read(
        "rule = [
            { path = '/media/keep/**', rewrite = false },
            { path = '/media/**', file = 'missing', rewrite = '/get.php?a=1' },
            { path_regex = '^/wiki/(.*)$', method = 'GET', rewrite = '/doku.php?id=$1' },
            { path = '/app/**', cookie = 'beta', bypass = true, rewrite = '/beta.php' },
            { path = '/app/*', rewrite = '/app.php/$1' },
            { path = '/old.html', file = 'exists', rewrite = '/new.html' },
        ]",
    );
    let get = Method::GET;
    let of = |url: &str, is_file: bool| {
        let found = rules.rewrite(&view(&get, url), RewriteFor::Page, || is_file);
        found.map(|rewrite| format!("{} {}?{}", rewrite.rule, rewrite.path, rewrite.query))
    };
    for (url, is_file, right) in [
        ("a/media/x.png?w=2", false, Some("2 /get.php?a=1&w=2")),
        ("a/media/x.png", true, None),
        ("a/media/keep/x.png", false, None),
        ("a/wiki/a%26b/c%20d", false, Some("3 /doku.php?id=a%26b/c%20d")),
        ("a/app/x%2e%2e", false, Some("5 /app.php/x..?")),
        ("a/old.html", true, Some("6 /new.html?")),
        ("a/old.html", false, None),
    ] {
        assert_eq!(of(url, is_file).as_deref(), right, "{url}");
    }
    let post = Method::POST;
    assert!(rules.rewrite(&view(&post, "a/wiki/x"), RewriteFor::Page, || false).is_none());
    assert!(rules.rewrite(&view(&Method::HEAD, "a/wiki/x"), RewriteFor::Page, || false).is_some());
    // Rules about the client count only for a response that is not stored.
    let cookies: &[(&[u8], &[u8])] = &[(b"cookie", b"beta=1")];
    let with_cookie = RequestView { fields: &cookies, ..view(&get, "a/app/x") };
    let rule = |of| rules.rewrite(&with_cookie, of, || false).map(|rewrite| rewrite.rule);
    assert_eq!((rule(RewriteFor::Page), rule(RewriteFor::Client)), (Some(5), Some(4)));
    assert!(!rules.may_answer() && rules.has_rewrites());
    assert!(rules.rewrites_file(&view(&get, "a/old.html")));
    assert!(!rules.rewrites_file(&view(&get, "a/media/x.png")));
    let other = read("rule = [{ path = '/app/*', rewrite = '/app.php/$1' }]");
    assert!(!other.rewrites_as(&rules));
    for (url, is_same) in
        [("a/app/x", true), ("a/", true), ("a/wiki/x", false), ("a/media/x", false)]
    {
        assert_eq!(rules.rewrites_page_as(&other, &view(&get, url)), is_same, "{url}");
    }
    for (rule, part) in [
        ("path = '/a', rewrite = true", "write the target"),
        ("path = '/a', rewrite = 'https://a/b'", "use redirect"),
        ("path = '/a', rewrite = '/b#c'", "use redirect"),
        ("path = '/a', rewrite = 'b'", "begin with /"),
        ("path = '/a', file = 'gone', rewrite = '/b'", "missing or exists"),
        ("path = '/a', file = 'missing', deny = 403", "for rewrite only"),
        ("path = '/a', file = 'missing', deny = 403, rewrite = '/b'", "rule of their own"),
        ("path = '/a', cookie = 'x', rewrite = '/b'", "add bypass = true"),
        ("path = '/a', from = '10.0.0.0/8', rewrite = '/b'", "add bypass = true"),
        ("path = '/a', when_status = 404, rewrite = '/b'", "when_status"),
    ] {
        let error = read_with(&format!("rule = [{{ {rule} }}]"), files(None)).expect_err(rule);
        assert!(error.contains(part), "{rule}: {error}");
    }
    let error = read_with("rule = [{ path = '/a', rewrite = '/b' }]", None).expect_err("no root");
    assert!(error.contains("needs site.root"), "{error}");
}
