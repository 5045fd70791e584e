//! Rules for access, scripts and response fields: which apply, and which are refused when they are read. How paths are
//! read is tested beside the code (`edge/paths.rs`).

use crate::common::{files, read, read_with, view};
use http::header::HeaderMap;
use http::{Method, StatusCode};
use site_rules::{AccessRequest, LimitCount, PageAccess, ScriptPath, ScriptRefusal, SiteRules};

fn status(rules: &SiteRules, method: &Method, url: &str) -> Option<u16> {
    let asked = AccessRequest::new(rules, view(method, url), None);
    rules.denial(&asked).map(|denial| denial.status.as_u16())
}

/// Whether every client that sends this request gets the page.
fn is_open(rules: &SiteRules, url: &str) -> bool {
    rules.page_access(view(&Method::GET, url)) == Some(PageAccess::Everybody)
}

#[test]
fn the_first_rule_with_deny_decides() {
    let rules = read(
        "rule = [
            { host = 'open.test', deny = false },
            { path = '/a/**', method = '!GET', deny = 405 },
            { path = '/a/**', bypass = true },
            { path = '/a/b', deny = 410 },
            { query = ['key_x=*', '!token=right'], deny = 404 },
        ]",
    );
    let get = |url: &str| status(&rules, &Method::GET, url);
    assert_eq!(status(&rules, &Method::POST, "a.test/a/b"), Some(405));
    assert_eq!(status(&rules, &Method::HEAD, "a.test/a/c"), None);
    assert_eq!(get("a.test/a/b"), Some(410));
    assert_eq!(get("open.test/a/b"), None);
    assert_eq!(get("open.test.:8080/a/b"), None);
    for query in [
        "key_x=1",
        "key.x=1",
        "key%5fx=1",
        "%20key_x=1",
        "+key_x=1",
        "key_x[]=1",
        "key_x%5B0%5D=1",
        "key_x%00y=1",
        "key[x=1",
    ] {
        assert_eq!(get(&format!("a.test/?b=1&{query}")), Some(404), "{query}");
        assert_eq!(get(&format!("a.test/?token=right&{query}")), None, "{query}");
        assert_eq!(get(&format!("a.test/?t%6fken=right&{query}")), Some(404), "{query}");
    }
    assert_eq!(get("a.test/?xkey_x=1"), None);
    let denial = rules.denial(&AccessRequest::new(&rules, view(&Method::PUT, "a/a/x"), None));
    assert_eq!(denial.map(|denial| denial.allow()).as_deref(), Some("GET, HEAD"));
}

#[test]
fn either_form_of_a_request_is_enough_for_a_restriction() {
    let rules = read(
        "rule = [{ path = '/open/**', deny = false }, { host = 'a.test', path = '/admin/**', deny = 403 }]",
    );
    let both = |sent: &str, normal: &str| {
        let normal = Some(view(&Method::GET, normal));
        rules.denial(&AccessRequest::new(&rules, view(&Method::GET, sent), normal)).is_some()
    };
    assert!(both("www.a.test/ADMIN/x", "a.test/admin/x") && both("a.test/admin/x", "b.test/x"));
    assert!(!both("www.a.test/x", "a.test/x"));
    assert!(both("a.test/admin/x", "a.test/open/x") && !both("a.test/open/x", "a.test/open/x"));
}

#[test]
fn a_hit_is_open_only_if_nobody_is_refused() {
    let rules = read(
        "rule = [
            { path = '/both/open', deny = false },
            { path = '/both/**', from = '!10.0.0.0/8', deny = 403 },
            { path = '/bots/**', agent = 'crawler', deny = 403 },
            { path = '/post/**', method = 'POST', deny = 403 },
        ]",
    );
    for (url, right) in [
        ("a/", true),
        ("a/both/open", true),
        ("a/both/x", false),
        ("a/bots/x", false),
        ("a/%62ots/x", false),
        ("a/post/x", true),
    ] {
        assert_eq!(is_open(&rules, url), right, "{url}");
        let asked = AccessRequest::new(&rules, view(&Method::GET, url), None);
        assert!(right || rules.is_for_some_clients(&asked), "{url}");
    }
    let fragment = |path: &str| {
        let asked = AccessRequest::new(&rules, view(&Method::GET, path), None);
        rules.fragment_denial(&asked).is_some()
    };
    assert!(fragment("a/both/x") && !fragment("a/both/open"));
    // The same restriction, written as an exemption.
    let rules = read(
        "rule = [
            { path = '/office/**', from = '10.0.0.0/8', deny = false },
            { path = '/office/**', deny = 403 },
            { path = '/plain', deny = 403 },
        ]",
    );
    let fragment = |path: &str| {
        let asked = AccessRequest::new(&rules, view(&Method::GET, path), None);
        rules.fragment_denial(&asked).is_some()
    };
    assert!(fragment("a/office/x") && !fragment("a/plain"));
    // A rule for some clients of all pages does not change what a plain one means.
    let rules =
        read("rule = [{ agent = 'crawler', deny = 403 }, { path = '/box/**', deny = 404 }]");
    let asked = AccessRequest::new(&rules, view(&Method::GET, "a/box/x"), None);
    assert!(rules.fragment_denial(&asked).is_none() && rules.denial(&asked).is_some());
}

/// A plain hit and the same page by the longer way have the same `Cache-Control`.
#[test]
fn a_page_is_private_where_some_clients_are_refused_and_nowhere_else() {
    let rules = read(
        "rule = [
            { path = '/open', deny = false },
            { path = ['/open', '/near'], from = '!10.0.0.0/8', deny = 403 },
            { path = ['/office', '/known'], from = '10.0.0.0/8', deny = false },
            { path = '/office', deny = 403 },
            { path = '/closed', deny = 403 },
            { path = '/closed', agent = 'crawler', deny = 404 },
            { path = '/free', auth_file = false },
            { path = '/away', from = '10.0.0.0/8', auth_file = false },
            { path = ['/free', '/away', '/staff'], auth_file = '/f' },
        ]",
    );
    for (path, is_page_open, is_private) in [
        ("/", true, false),
        ("/open", true, false),
        ("/near", false, true),
        ("/office", false, true),
        ("/known", true, false),
        ("/closed", false, false),
        ("/free", true, false),
        ("/away", false, true),
        ("/staff", false, true),
    ] {
        for method in [&Method::GET, &Method::HEAD] {
            let url = format!("a.test{path}");
            let asked = AccessRequest::new(&rules, view(method, &url), None);
            let found = (
                rules.page_access(view(method, &url)) == Some(PageAccess::Everybody),
                rules.is_for_some_clients(&asked),
            );
            assert_eq!(found, (is_page_open, is_private), "{method} {path}");
        }
    }
}

#[test]
fn scripts_run_only_where_no_rule_forbids_it() {
    let text = "rule = [
        { host = 'old.test', path = '/**', php = true },
        { path = '/uploads/tool.php', php = true },
        { path = ['/uploads/**', '!/uploads/kept/*.php'], php = false },
        { path_regex = '^/cache/', php = false },
    ]";
    let rules = read(text);
    let refusal = |path: &str, name: &str, real: Option<&str>| {
        rules.script_refusal("a.test", path, Some(ScriptPath { name, real }))
    };
    let front = |path: &str| refusal(path, "/index.php", Some("/index.php"));
    assert_eq!(refusal("/uploads/x.php", "/uploads/x.php", None), Some(ScriptRefusal::Rule(3)));
    assert_eq!(
        refusal("/pictures/x.php", "/pictures/x.php", Some("/uploads/x.php")),
        Some(ScriptRefusal::Rule(3))
    );
    for path in ["/uploads/a.jpg/b.php", "/uploads/b.PHTML/c", "/uploads/b.php.", "/cache/x.phar"] {
        assert!(front(path).is_some(), "{path}");
    }
    for path in ["/uploads/", "/uploads/a.jpg", "/news/x.php/uploads", "/"] {
        assert_eq!(front(path), None, "{path}");
    }
    assert_eq!(refusal("/uploads/tool.php", "/uploads/tool.php", Some("/uploads/tool.php")), None);
    assert_eq!(refusal("/uploads/kept/a.php", "/uploads/kept/a.php", None), None);
    // The link leads elsewhere: only one of the two names is exempt.
    assert!(refusal("/uploads/tool.php", "/uploads/tool.php", Some("/uploads/evil.php")).is_some());
    assert_eq!(rules.script_refusal("old.test:80", "/uploads/x.php", None), None);

    let rules = read_with("rule = []", files(Some(&["/tool.php", "/wp-*.php"]))).unwrap();
    let runs = |name: &str| {
        rules.script_refusal("a", "/", Some(ScriptPath { name, real: None })).is_none()
    };
    assert!(runs("/index.php") && runs("/tool.php") && runs("/wp-login.php"));
    assert!(!runs("/a/index.php") && !runs("/wp-a/b.php"));
    for nothing in [&[][..], &["!/tool.php"]] {
        let Ok(rules) = read_with("rule = []", files(Some(nothing))) else { continue };
        let name = |name| Some(ScriptPath { name, real: None });
        assert_eq!(rules.script_refusal("a", "/", name("/index.php")), None);
        let other = rules.script_refusal("a", "/", name("/x.php"));
        assert_eq!(other, Some(ScriptRefusal::NoEntryPoint), "{nothing:?}");
    }
}

#[test]
fn file_cache_has_directives_with_seconds() {
    for (value, right) in [
        ("public, max-age=31536000, immutable", true),
        ("no-cache", true),
        ("max-age=abc", false),
        ("1h", false),
        ("max-age", false),
        ("", false),
    ] {
        let text = format!("rule = [{{ file_cache = '{value}' }}]");
        assert_eq!(read_with(&text, files(None)).is_ok(), right, "{value}");
    }
}

#[test]
fn a_path_with_very_many_scripts_is_restricted_without_a_search() {
    let rules = read(
        "rule = [
            { path = '/open/**', deny = false },
            { path = '/shut', deny = 403 },
            { path = '/uploads/**', php = false },
        ]",
    );
    let path = |count: usize| "/a.pl".repeat(count);
    let get = |path: &str| status(&rules, &Method::GET, &format!("a{path}"));
    assert_eq!((get(&path(16)), get(&path(17))), (None, Some(403)));
    let script = Some(ScriptPath { name: "/index.php", real: None });
    assert_eq!(rules.script_refusal("a", &path(16), script), None);
    let refused = rules.script_refusal("a", &path(1_600), script);
    assert_eq!(refused, Some(ScriptRefusal::TooManyScripts));
}

#[test]
fn fields_are_common_if_no_rule_with_conditions_changes_them() {
    let get = Method::GET;
    let is_common = |rules: &SiteRules, url: &str| rules.has_common_fields(&view(&get, url));
    let rules = read(
        "rule = [
            { set_headers = { X-A = '1' } },
            { path = '/b/**', set_headers = { X-A = '2' } },
            { path = '/c/**', file_cache = 'max-age=9' },
            { path = '/d', when_status = 200, remove_headers = ['x-gone'] },
            { method = 'POST', set_headers = { X-Post = 'yes' } },
        ]",
    );
    for (url, right) in [("a/", true), ("a/b/c", false), ("a/c/d", true), ("a/d", false)] {
        assert_eq!(is_common(&rules, url), right, "{url}");
    }
    // A rule about statuses may apply to any response.
    let rules = read("rule = [{ when_status = '4xx', set_headers = { X-A = '1' } }]");
    assert!(!is_common(&rules, "a/"));
}

#[test]
fn fields_are_changed_in_the_order_of_the_rules_and_again_without_effect() {
    let rules = read(
        "rule = [
            { set_headers = { X-A = '1', Content-Disposition = 'inline' }, remove_headers = ['x-gone'] },
            { path = '/b/**', set_headers = { X-A = '2' }, add_headers = { Link = ['</x>', '</y>'] } },
            { when_status = '4xx', set_headers = { X-Bad = 'yes' } },
            { method = 'POST', set_headers = { X-Post = 'yes' } },
            { path = '/b/*.css', file_cache = 'max-age=9' },
        ]",
    );
    assert!(!rules.fields_follow_path());
    let get = Method::GET;
    let fields = |method: &Method, url: &str, code: u16| {
        let mut headers = HeaderMap::new();
        headers.insert("x-gone", "1".parse().unwrap());
        headers.insert("link", "</x>".parse().unwrap());
        let code = StatusCode::from_u16(code).unwrap();
        rules.change_fields(&view(method, url), code, &mut headers);
        let once = headers.clone();
        rules.change_fields(&view(method, url), code, &mut headers);
        assert_eq!(once, headers, "{url}");
        let mut all: Vec<String> = headers
            .iter()
            .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
            .collect();
        all.sort();
        all.join(", ")
    };
    assert_eq!(fields(&get, "a/", 200), "content-disposition: inline, link: </x>, x-a: 1");
    assert_eq!(fields(&get, "a/", 304), "link: </x>, x-a: 1");
    assert_eq!(
        fields(&Method::HEAD, "a/b/x", 206),
        "content-disposition: inline, link: </x>, link: </y>, x-a: 2"
    );
    assert_eq!(
        fields(&Method::POST, "a/", 404),
        "content-disposition: inline, link: </x>, x-a: 1, x-bad: yes, x-post: yes"
    );
    assert_eq!(rules.field_rules_of(&view(&get, "a/b/x.css")), [1, 2]);
    assert_eq!(rules.file_cache_rule_of(&view(&get, "a/b/x.css")), Some(5));
    assert_eq!(rules.file_cache_rule_of(&view(&get, "a/b/x.js")), None);
    let mut file = HeaderMap::new();
    rules.cache_file(&view(&get, "a/b/x.css"), &mut file);
    assert_eq!(file["cache-control"], "max-age=9");
}

#[test]
fn a_method_that_no_application_uses_is_a_warning() {
    let rules = read(
        "rule = [
            { name = 'orders', method = 'PSOT', deny = 405 },
            { path = '/a', method = ['!PROPFIND', 'GET'], deny = 405 },
        ]",
    );
    let [warning] = rules.unusual_methods() else { panic!("{:?}", rules.unusual_methods()) };
    assert!(warning.starts_with("rule 1 (orders): method: "), "{warning}");
    assert!(warning.contains("\"PSOT\"") && warning.contains("GET, HEAD, POST"), "{warning}");
}

#[test]
fn rules_that_cannot_work_are_refused_with_the_reason() {
    for (rule, part) in [
        ("deny = 400", "403, 404, 405, 410 or 503"),
        ("deny = true", "write the status"),
        ("deny = 'no'", "write 403"),
        ("deny = 403\nretry_after = '5s'", "deny = 503"),
        ("retry_after = '5s'", "deny = 503"),
        ("deny = 403\nwhen_status = 404", "before the response"),
        ("deny = 403\nfrom = '10.0.0.0/99'", "from: "),
        ("deny = 403\npath_regex = '('", "path_regex: "),
        ("deny = 403\nmethod = '!get'", "write GET"),
        ("php = false\nmethod = 'GET'", "only host, path and path_regex"),
        ("php = false\nfrom = '10.0.0.1'", "only host, path and path_regex"),
        ("set_headers = { A = '1' }\ncookie = 'a'", "stored with the page"),
        ("remove_headers = 'a'\nfrom = '10.0.0.1'", "stored with the page"),
        ("set_headers = { A = '1' }\nmethod = 'HEAD'", "write GET"),
        ("set_headers = { Vary = 'cookie' }", "belongs to the message"),
        ("remove_headers = 'Set-Cookie'", "belongs to the message"),
        ("set_headers = { Cache-Control = 'no-store' }", "file_cache"),
        ("add_headers = { Transfer-Encoding = 'chunked' }", "belongs to the message"),
        ("set_headers = { A = \"b\\r\\nC: d\" }", "visible ASCII"),
        ("set_headers = { A = \"b\\u0000\" }", "visible ASCII"),
        ("set_headers = { A = '' }", "empty"),
        ("set_headers = { 'A b' = 'c' }", "no name of a field"),
        ("set_headers = { A = ['1', '2'] }", "add_headers"),
        ("file_cache = \"a\\nb\"", "visible ASCII"),
    ] {
        let error = read_with(&format!("[[rule]]\n{rule}"), files(None)).unwrap_err();
        assert!(error.contains(part), "{rule}: {error}");
    }
    for rule in ["php = false", "file_cache = 'no-cache'"] {
        let error = read_with(&format!("[[rule]]\n{rule}"), None).unwrap_err();
        assert!(error.contains("site.root"), "{rule}: {error}");
    }
    let entries = read_with("rule = []", files(Some(&["index.php"]))).unwrap_err();
    assert!(entries.contains("site.entry_points") && entries.contains("begin with /"), "{entries}");
}

/// The rule whose password the request needs, and the one under whose limit it counts.
fn checks(rules: &SiteRules, method: &Method, url: &str) -> (Option<usize>, Option<usize>) {
    let asked = AccessRequest::new(rules, view(method, url), None);
    (
        rules.auth_rule(&asked).map(|auth| auth.rule),
        rules.limit_rule(&asked).map(|limit| limit.rule),
    )
}

#[test]
fn passwords_and_limits_have_their_own_first_match() {
    let rules = read(
        "rule = [
            { path = '/staff/open', auth_file = false, limit = false },
            { path = '/staff/**', auth_file = '/f', deny = false },
            { path = '/staff/**', method = 'POST', limit = { rate = '10/m', burst = 5 } },
            { path = '/**', limit = { rate = '2/s', count = 'all' } },
            { path = '/staff/**', auth_file = '/g', auth_realm = 'Other', auth_forward = true },
        ]",
    );
    for (method, url, right) in [
        (Method::GET, "a/staff/open", (None, None)),
        (Method::GET, "a/staff/x", (Some(2), Some(4))),
        (Method::HEAD, "a/index.php/staff/x", (Some(2), Some(4))),
        (Method::POST, "a/staff/x", (Some(2), Some(3))),
        (Method::POST, "a//%73taff/x", (Some(2), Some(3))),
        (Method::GET, "a/x%5c..%2fstaff/x", (Some(2), Some(4))),
        // An exemption needs every reading of the path.
        (Method::GET, "a/staff/open%2f..%2fx", (Some(2), Some(4))),
        (Method::GET, "a/", (None, Some(4))),
    ] {
        assert_eq!(checks(&rules, &method, url), right, "{method} {url}");
    }
    let post = AccessRequest::new(&rules, view(&Method::POST, "a/staff/x"), None);
    let limit = rules.limit_rule(&post).unwrap();
    assert_eq!(
        (limit.rate.interval.as_secs(), limit.rate.burst, limit.count),
        (6, 5, LimitCount::Origin)
    );
    let auth = rules.auth_rule(&post).unwrap();
    assert_eq!((&*auth.file, &*auth.realm, auth.is_forwarded), ("/f", "Restricted", false));
}

#[test]
fn a_hit_behind_a_password_or_a_limit_for_all_is_not_open() {
    let rules = read(
        "rule = [
            { path = '/staff/open', auth_file = false },
            { path = '/staff/**', from = '!10.0.0.0/8', auth_file = '/f' },
            { path = '/slow/**', limit = { rate = '1/s', count = 'all' } },
            { path = '/php/**', limit = { rate = '1/s' } },
        ]",
    );
    assert!(rules.has_access_rules());
    for (url, right, is_private) in [
        ("a/staff/open", true, false),
        ("a/staff/x", false, true),
        ("a/%73taff/x", false, true),
        ("a/slow/x", false, false),
        ("a/php/x", true, false),
        ("a/", true, false),
    ] {
        assert_eq!(is_open(&rules, url), right, "{url}");
        let asked = AccessRequest::new(&rules, view(&Method::GET, url), None);
        assert_eq!(rules.is_for_some_clients(&asked), is_private, "{url}");
    }
    // Only requests that reach the origin count: a hit costs nothing more.
    assert!(!read("rule = [{ limit = { rate = '1/s' } }]").has_access_rules());
}

#[test]
fn a_page_is_for_all_with_a_password_if_nothing_else_decides() {
    let rules = read(
        "rule = [
            { path = '/staff/open', auth_file = false },
            { path = '/staff/office', from = '10.0.0.0/8', auth_file = false },
            { path = '/agents/**', agent = 'crawler', auth_file = '/f' },
            { path = '/own/**', auth_file = '/f', auth_forward = true },
            { path = '/staff/slow', limit = { rate = '1/s', count = 'all' } },
            { path = '/staff/denied', deny = 403 },
            { path = '/staff/bots', agent = 'crawler', deny = 403 },
            { path = '/staff/old', redirect = '/staff/' },
            { path = '/staff/get', method = 'POST', auth_file = '/g' },
            { path = ['/staff', '/staff/**'], auth_file = '/f' },
        ]",
    );
    let (all, password) = (PageAccess::Everybody, PageAccess::Password(10));
    for (url, right) in [
        ("a/", Some(all)),
        ("a/staff/open", Some(all)),
        ("a/staff", Some(password)),
        ("a/staff/x", Some(password)),
        ("a/staff/x?open", Some(password)),
        ("a/staff/get", Some(password)),
        ("a/staff/index.php/x", Some(password)),
        ("a/staff/office", None),
        ("a/agents/x", None),
        ("a/own/x", None),
        ("a/staff/slow", None),
        ("a/staff/denied", None),
        ("a/staff/bots", None),
        ("a/staff/old", None),
    ] {
        for method in [&Method::GET, &Method::HEAD] {
            let found = rules.page_access(view(method, url));
            assert_eq!(found, right, "{method} {url}");
            let asked = AccessRequest::new(&rules, view(method, url), None);
            if let Some(access) = found {
                let number = rules.auth_rule(&asked).map(|auth| auth.rule);
                assert_eq!(number, (access == password).then_some(10), "{url}");
            }
        }
    }
}

#[test]
fn a_wrong_limit_or_password_is_refused_with_its_remedy() {
    for (rule, part) in [
        ("limit = true", "write the rate"),
        ("limit = { rate = '10' }", "limit.rate"),
        ("limit = { rate = '0/s' }", "limit.rate"),
        ("limit = { rate = '1/d' }", "limit.rate"),
        ("limit = { rate = '1/s', burst = 0 }", "limit.burst"),
        ("limit = { rate = '1/s', count = 'php' }", "origin or all"),
        ("limit = { rates = '1/s' }", "but with rate"),
        ("limit = { rate = '1/s' }, when_status = 404", "limit: is decided before"),
        ("auth_file = true", "path of a password file"),
        ("auth_file = ''", "is empty"),
        ("auth_file = '/f', when_status = 404", "auth_file: is decided before"),
        ("auth_realm = 'x'", "belongs to auth_file"),
        ("auth_file = false, auth_forward = true", "belongs to auth_file"),
        ("auth_file = '/f', auth_realm = 'a\"b'", "visible ASCII"),
    ] {
        let said = read_with(&format!("rule = [{{ {rule} }}]"), files(None)).unwrap_err();
        assert!(said.contains(part), "{rule}: {said}");
    }
}

/// The note beside a page for the next hits holds for its host, path and query, under GET and HEAD.
#[test]
fn a_free_url_is_free_for_every_client_and_rules_without_an_answer_concern_no_hit() {
    let init = read("rule = [{ path = '/wp-content/uploads/**', php = false }]");
    assert!(!init.may_answer() && !init.answers_by_host());
    let rules = read(
        "rule = [
            { path = '/get', method = 'GET', deny = 403 },
            { path = '/head', method = 'HEAD', deny = 403 },
            { path = '/write', method = 'POST', deny = 403 },
            { path = '/from', from = '192.0.2.0/24', deny = 403 },
            { path = '/agent', agent = 'crawler', deny = 403 },
            { path = '/cookie', cookie = 'a', deny = 403 },
            { path = '/header', header = 'x-a', deny = 403 },
            { path = '/staff', auth_file = '/x' },
            { path = '/often', limit = { rate = '1/m', count = 'all' } },
            { path = '/seldom', limit = { rate = '1/m' } },
            { path = '/old', from = '192.0.2.0/24', redirect = '/new' },
            { query = 'old', redirect = '/new' },
        ]",
    );
    assert!(rules.may_answer() && !rules.answers_by_host());
    let is_free = |method: &Method, url: &str| {
        rules.page_access(view(method, url)) == Some(PageAccess::Everybody)
    };
    for (path, free) in [
        ("/", [true, true]),
        ("/get", [false, false]),
        ("/head", [true, false]),
        ("/write", [true, true]),
        ("/from", [false, false]),
        ("/agent", [false, false]),
        ("/cookie", [false, false]),
        ("/header", [false, false]),
        ("/staff", [false, false]),
        ("/often", [false, false]),
        ("/seldom", [true, true]),
        ("/old", [false, false]),
        ("/?old", [false, false]),
    ] {
        let url = format!("a.test{path}");
        assert_eq!(
            [&Method::GET, &Method::HEAD].map(|method| is_free(method, &url)),
            free,
            "{path}"
        );
    }
    for rule in [
        "deny = 403",
        "auth_file = '/x'",
        "limit = { rate = '1/m' }",
        "redirect = '/b'",
        "slash = 'add'",
    ] {
        assert!(
            read(&format!("rule = [{{ host = 'a.test', {rule} }}]")).answers_by_host(),
            "{rule}"
        );
    }
    assert!(!read("rule = [{ host = 'a.test', bypass = true }]").answers_by_host());
}
