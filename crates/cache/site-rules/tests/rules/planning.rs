//! Plans of requests and decisions on responses, rule by rule: the decision, the key, the forwarded fields,
//! and the rules that are refused.

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use http_cache::{Fields, Policy, RequestFacts, StoredResponse, Timestamp, storable};
use proptest::prelude::*;
use rule_conditions::{Peer, RequestView};
use site_rules::raw::{Cookies, Keys, Rule};
use site_rules::{
    BypassBecause, COOKIES_REPORTED_MAX, Handling, Load, NoRole, Plan, PlannedFields, Refusal,
    Secret, SiteRules, Surroundings, is_marked_as_shared,
};

#[derive(serde::Deserialize, Default)]
#[serde(default)]
struct Text {
    rule: Vec<Rule>,
    keys: Keys,
    cookies: Cookies,
}

fn try_rules(text: &str) -> Result<SiteRules, String> {
    let text: Text = toml::from_str(text).map_err(|error| error.to_string())?;
    let around = Surroundings {
        base: Policy::default(),
        secret: Secret::new([1; 32]),
        has_trusted_proxies: true,
        files: None,
    };
    SiteRules::read(&text.rule, &text.keys, &text.cookies, around).map_err(|error| error.0)
}

fn rules(text: &str) -> SiteRules {
    try_rules(text).expect("rules")
}

fn headers(lines: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        let name = HeaderName::from_bytes(name.as_bytes()).expect("a name");
        headers.append(name, HeaderValue::from_str(value).expect("a value"));
    }
    headers
}

fn view<'a>(url: &'a str, fields: &'a HeaderMap) -> RequestView<'a> {
    RequestView {
        method: &Method::GET,
        scheme: "http",
        host: "a.test",
        path_and_query: url,
        fields,
        client: &Peer::Trusted,
    }
}

fn plan(rules: &SiteRules, url: &str, lines: &[(&str, &str)]) -> Plan {
    rules.plan(&view(url, &headers(lines)), Load::Normal, 1_000)
}

fn handling(rules: &SiteRules, url: &str, lines: &[(&str, &str)]) -> Handling {
    plan(rules, url, lines).handling
}

fn key(rules: &SiteRules, url: &str, lines: &[(&str, &str)]) -> String {
    let lines = headers(lines);
    let view = view(url, &lines);
    let mut key = Vec::new();
    rules.write_key(&rules.plan(&view, Load::Normal, 1_000), &lines, &mut key);
    String::from_utf8(key).expect("text")
}

fn sent(rules: &SiteRules, url: &str, lines: &[(&str, &str)], name: &str) -> Vec<String> {
    let lines = headers(lines);
    let plan = rules.plan(&view(url, &lines), Load::Normal, 1_000);
    let planned = PlannedFields::new(rules, plan, &lines);
    let mut values = Vec::new();
    planned.values(name, &mut |value| values.push(String::from_utf8_lossy(value).into_owned()));
    values
}

fn stored(lines: &[(&str, &str)], policy: &Policy) -> StoredResponse {
    let now = Timestamp(1_000_000);
    let none = HeaderMap::new();
    let facts = RequestFacts::new(http_cache::Method::Get);
    storable(&facts, &none, StatusCode::OK, &headers(lines), now, now, policy).expect("storable")
}

const STORE: Handling = Handling::Store;
const SESSION: Handling = Handling::Bypass(BypassBecause::SessionCookie);
const RULE: Handling = Handling::Bypass(BypassBecause::Rule);

#[test]
fn signed_in_visitors_share_by_vary_cookies_alone() {
    let shares = |config: &str, cookies: &str| {
        let rules = rules(config);
        rules.shares_by_vary_cookies(&plan(&rules, "/a", &[("cookie", cookies)]))
    };
    let both = "PHPSESSID=1; _lscache_vary=x; theme=dark";
    assert_eq!(shares("", both), Ok(()));
    for (cookies, reason) in [
        ("PHPSESSID=1", NoRole::NoVaryCookie),
        ("_lscache_vary=x", NoRole::NoSession),
        ("theme=dark; _lscache_vary=x", NoRole::NoSession),
        ("", NoRole::NoSession),
    ] {
        assert_eq!(shares("", cookies), Err(reason), "{cookies}");
    }
    for (config, reason) in [
        ("[cookies]\nunknown = \"bypass\"", NoRole::UnknownCookie),
        ("[[rule]]\ndevice_classes = true", NoRole::RuleDistinguishes),
        ("[[rule]]\nlanguage = [\"de\", \"en\"]", NoRole::RuleDistinguishes),
        ("[[rule]]\nbypass = true", NoRole::NoSession),
        ("[[rule]]\nshared_with_sessions = true", NoRole::NoSession),
    ] {
        assert_eq!(shares(config, both), Err(reason), "{config}");
    }
    let rules = rules("");
    let of = |line: &str| rules.session_and_vary_cookies(&headers(&[("cookie", line)]));
    let marked = of(both).expect("short");
    assert_eq!(marked, b"\nowner PHPSESSID=1\nowner _lscache_vary=x");
    assert_eq!(of("_ga=2; theme=light; PHPSESSID=1; _lscache_vary=x"), Ok(marked.clone()));
    for other in ["PHPSESSID=2; _lscache_vary=x", "PHPSESSID=1; _lscache_vary=y", "PHPSESSID=1"] {
        assert_ne!(of(other), Ok(marked.clone()), "{other}");
    }
    let long = format!("PHPSESSID={}", "x".repeat(5_000));
    assert_eq!(of(&long), Err(NoRole::TooLong));
    assert_eq!(of("PHPSESSID=1; _lscache_vary=commenter"), Err(NoRole::Commenter));
}

/// The cookies that the origin gets for a page of a role, and the names of those that may not decide what is in it.
fn of_role(config: &str, cookies: &str) -> (String, String) {
    let (rules, lines) = (rules(config), headers(&[("cookie", cookies)]));
    let all = rules.role_cookies(&plan(&rules, "/a", &[("cookie", cookies)]), &lines);
    let forwarded = String::from_utf8(all.forwarded).expect("text");
    assert_eq!(all.leaves_some_out, forwarded != cookies, "{cookies}");
    (forwarded, all.at_large.join(","))
}

#[test]
fn no_cookie_of_one_visitor_is_in_the_page_of_a_role() {
    let role = "wordpress_logged_in_a=1; _lscache_vary=x";
    let with = |more: &str| format!("{role}; {more}");
    assert_eq!(of_role("", role), (role.into(), String::new()));
    assert_eq!(of_role("", &with("_ga=1; cmplz_banner=2")), (role.into(), String::new()));
    let hash = "0123456789abcdef0123456789abcdef";
    for drupals in [format!("SESS{hash}=1"), format!("SSESS{hash}=1")] {
        assert_eq!(of_role("", &with(&drupals)), (with(&drupals), String::new()));
    }
    // A name that only looks like a session is not the login, nor is a name that can be read as another.
    for (more, names) in [
        ("theme=dark", "theme"),
        ("user_color=red; cart_note=x", "user_color,cart_note"),
        ("0123456789abcdef0123456789abcdef=x", "0123456789abcdef0123456789abcdef"),
        ("wp-postpass_1=x", "wp-postpass_1"),
        ("session_lang=x; SESSx=1", "session_lang,SESSx"),
        ("theme[PHPSESSID=x", "theme[PHPSESSID"),
        ("PHPSESSID[x]=x", "PHPSESSID[x]"),
        ("nameless", ""),
    ] {
        let (forwarded, at_large) = of_role("", &with(more));
        assert_eq!((forwarded, &*at_large), (with(more), names), "{more}");
    }
    let rules = rules("");
    let nameless = rules.role_cookies(&rules.plain_plan(), &headers(&[("cookie", "nameless")]));
    assert_eq!(nameless.at_large, ["".into()]);
    let many = "theme=1; ".repeat(COOKIES_REPORTED_MAX) + "evil=1; worse=2";
    let many = rules.role_cookies(&rules.plain_plan(), &headers(&[("cookie", &many)]));
    assert_eq!(many.at_large.len(), COOKIES_REPORTED_MAX + 1);
    assert_eq!((&*many.at_large[0], many.at_large.last()), ("theme", Some(&"".into())));

    let own = "cookies.session = [\"gate\"]\ncookies.ignore = [\"layout-*\"]";
    let expected = with("gate=1");
    assert_eq!(
        of_role(own, &with("gate=1; layout-1=a; wp-settings-1=a")),
        (expected, String::new())
    );
    assert_eq!(of_role("cookies.unknown = \"ignore\"", &with("theme=1")).0, role);
    let rule = "[[rule]]\nvary_cookies = [\"theme\"]\nignore_cookies = [\"user_*\"]";
    assert_eq!(of_role(rule, &with("user_a=1; theme=2")), (with("theme=2"), String::new()));
    assert_eq!(of_role(rule, &with("theme[x]=2")).1, "", "the key has the whole pair");
}

#[test]
fn cookies_without_rules() {
    let rules = rules("");
    assert_eq!(handling(&rules, "/", &[]), STORE);
    assert_eq!(handling(&rules, "/", &[("cookie", "_ga=1; theme=dark")]), STORE);
    assert_eq!(
        handling(&rules, "/", &[("cookie", "_ga=1"), ("cookie", "x=1; PHPSESSID=1")]),
        SESSION
    );
    let lines = [("cookie", "_ga=1; theme=dark; x=2; pagewell-wrote=9.ab")];
    assert_eq!(sent(&rules, "/", &lines, "cookie"), ["theme=dark", "x=2"]);
    assert_eq!(sent(&rules, "/", &[("accept", "a")], "accept"), ["a"]);
}

#[test]
fn unknown_cookies_by_choice() {
    let theme = [("cookie", "theme=dark")];
    let bypass = rules("cookies.unknown = \"bypass\"");
    assert_eq!(handling(&bypass, "/", &theme), Handling::Bypass(BypassBecause::UnknownCookie));
    let ignore = rules("cookies.unknown = \"ignore\"");
    assert_eq!(handling(&ignore, "/", &theme), STORE);
    assert!(sent(&ignore, "/", &theme, "cookie").is_empty());
    let own = rules("[cookies]\nsession = [\"theme\"]\nignore = [\"PHPSESSID\"]");
    assert_eq!(handling(&own, "/", &theme), SESSION);
    assert_eq!(handling(&own, "/", &[("cookie", "PHPSESSID=1")]), STORE);
}

#[test]
fn unknown_cookies_are_read_as_they_were_written_in_one_order() {
    let rules = rules("[[rule]]\npath = \"/blind\"\nignore_cookies = \"currency\"");
    let pairs = |url: &str, lines: &[&str]| {
        let lines: Vec<_> = lines.iter().map(|line| ("cookie", *line)).collect();
        let found = rules.stranger_pairs(&plan(&rules, url, &lines), &headers(&lines));
        let text = |pair: Box<[u8]>| String::from_utf8_lossy(&pair).into_owned();
        found.into_iter().map(text).collect::<Vec<_>>()
    };
    let one = ["currency=EUR", "visitor_name=Anna"];
    assert_eq!(pairs("/", &["_ga=1; visitor_name=Anna;currency=EUR"]), one);
    assert_eq!(pairs("/", &["currency=EUR; currency", " visitor_name=Anna; _ga=2"]), one);
    assert_eq!(pairs("/blind", &["visitor_name=Anna;currency=EUR"]), one[1..]);
    assert!(pairs("/", &["_ga=1"]).is_empty() && pairs("/", &[]).is_empty());
    let lines = headers(&[("cookie", "b=1; a=2")]);
    let names = rules.stranger_cookies(&plan(&rules, "/", &[("cookie", "b=1; a=2")]), &lines);
    assert_eq!(names.join(" "), "b a");
}

#[test]
fn a_response_to_an_unknown_cookie_is_for_its_client_unless_it_varies_by_cookies() {
    let rules = rules("[[rule]]\nstore = \"1s\"");
    let (none, dark) = (headers(&[]), headers(&[("cookie", "theme=dark")]));
    let plain = plan(&rules, "/", &[]);
    let strange = plan(&rules, "/", &[("cookie", "theme=dark")]);
    let policy = rules.policy(&plain);
    let by_rule = stored(&[], policy);
    let declared = stored(&[("cache-control", "max-age=9")], policy);
    assert!(rules.may_use(&plain, &by_rule) && rules.keeps(&plain, &none, &by_rule).is_ok());
    assert!(!rules.may_use(&strange, &by_rule));
    assert!(rules.may_use(&strange, &declared));
    assert_eq!(rules.keeps(&strange, &dark, &declared), Err(Refusal::UnknownCookie));
    assert!(!is_marked_as_shared(&declared));
    for marked in [
        ("cache-control", "s-maxage=9"),
        ("cache-control", "public, max-age=9"),
        ("pagewell-cache-control", "max-age=9"),
        ("x-accel-expires", "9"),
        ("surrogate-key", "news"),
        ("vary", "Cookie"),
    ] {
        let is_by_cookies = marked.0 == "vary";
        let marked = stored(&[marked], policy);
        assert!(is_marked_as_shared(&marked) && rules.may_use(&strange, &marked));
        assert_eq!(rules.keeps(&strange, &dark, &marked).is_ok(), is_by_cookies);
    }
}

#[test]
fn the_first_rule_that_fits_counts() {
    let rules = rules(
        "[[rule]]\npath = [\"/admin/**\", \"!/admin/open/**\"]\nbypass = true\n\
         [[rule]]\nhost = \"*.b.test\"\nbypass = true\n\
         [[rule]]\nquery = [\"preview\", \"p=x*\"]\nbypass = true\n\
         [[rule]]\nheader = \"x-debug: 1\"\nbypass = true\n\
         [[rule]]\ncookie = \"role=edit*\"\nbypass = true\n\
         [[rule]]\npath = \"/m\"\nmethod = \"HEAD\"\nbypass = true\n\
         [[rule]]\nstore = \"1s\"",
    );
    for (url, lines, right) in [
        ("/", &[][..], STORE),
        ("/admin/x", &[], RULE),
        ("/%61dmin//x", &[], RULE),
        ("/admin/open/x", &[], STORE),
        ("/?preview", &[], RULE),
        ("/?a=1&p=xyz", &[], RULE),
        ("/?p=y", &[], STORE),
        ("/", &[("x-debug", "1")], RULE),
        ("/", &[("x-debug", "2")], STORE),
        ("/", &[("cookie", "role=editor")], RULE),
        ("/m", &[], STORE),
    ] {
        assert_eq!(handling(&rules, url, lines), right, "{url}");
    }
    let none = HeaderMap::new();
    let other = RequestView { host: "x.b.test:81", ..view("/", &none) };
    assert_eq!(rules.plan(&other, Load::Normal, 0).handling, RULE);
}

#[test]
fn variants_differ_in_the_key() {
    let text = "[[rule]]\npath = \"/s\"\nsession_cookie = \"PHPSESSID\"\n\
                [[rule]]\npath = \"/v\"\nvary_cookies = [\"currency\"]\n\
                [[rule]]\npath = \"/d\"\ndevice_classes = true\n\
                [[rule]]\npath = \"/l\"\nlanguage = [\"en\", \"de\"]\n\
                [[rule]]\npath = \"/c\"\ncountry_header = \"CF-IPCountry\"\n\
                [[rule]]\nagent = \"crawler\"\nstore = \"1h\"";
    let rules = rules(text);
    let session = [("cookie", "a=1; PHPSESSID=x")];
    assert_eq!(handling(&rules, "/s", &session), STORE);
    assert_eq!(key(&rules, "/s", &session), "\nsession PHPSESSID=x");
    assert_eq!(key(&rules, "/s", &[]), "");
    assert_eq!(
        handling(&rules, "/s", &[("cookie", "PHPSESSID=x; wordpress_logged_in_1=y")]),
        SESSION
    );
    let euro = [("cookie", "currency=EUR; _ga=1")];
    assert_eq!(key(&rules, "/v", &euro), "\ncookie currency=EUR");
    assert_eq!(sent(&rules, "/v", &euro, "cookie"), ["currency=EUR"]);
    let phone = [("user-agent", "x Mobile y")];
    assert_eq!(key(&rules, "/d", &phone), "\ndevice phone");
    assert!(sent(&rules, "/d", &phone, "user-agent")[0].contains("iPhone"));
    let german = [("accept-language", "fr, de-AT;q=0.5")];
    assert_eq!(key(&rules, "/l", &german), "\nlanguage de");
    assert_eq!(sent(&rules, "/l", &german, "accept-language"), ["de"]);
    assert_eq!(key(&rules, "/c", &[("cf-ipcountry", "at")]), "\ncountry AT");
    assert_eq!(key(&rules, "/c", &[("cf-ipcountry", "Atlantis")]), "\ncountry --");
    assert_eq!(key(&rules, "/x", &[("user-agent", "Googlebot")]), "\nrule 5");
    assert_eq!(key(&rules, "/x", &[]), "");
}

#[test]
fn a_country_is_accepted_from_trusted_proxies_only() {
    let rules = rules("[[rule]]\ncountry_header = \"x-country\"");
    let lines = headers(&[("x-country", "DE")]);
    let view = RequestView { client: &Peer::Anybody, ..view("/", &lines) };
    let mut key = Vec::new();
    rules.write_key(&rules.plan(&view, Load::Normal, 0), &lines, &mut key);
    assert_eq!(key, b"\ncountry --");
}

#[test]
fn shared_with_sessions_withholds_every_cookie() {
    let rules = rules("[[rule]]\npath = \"/n/**\"\nshared_with_sessions = true");
    let lines = [("cookie", "PHPSESSID=x; theme=dark")];
    assert_eq!(handling(&rules, "/n/1", &lines), STORE);
    assert!(sent(&rules, "/n/1", &lines, "cookie").is_empty());
    assert_eq!(key(&rules, "/n/1", &lines), "");
    assert!(rules.withholds_session(&plan(&rules, "/n/1", &lines)));
    assert_eq!(handling(&rules, "/other", &lines), SESSION);
}

#[test]
fn a_client_that_has_written_bypasses_for_a_while() {
    let rules = rules("[[rule]]\nafter_write = \"2s\"");
    let none = HeaderMap::new();
    let post = RequestView { method: &Method::POST, ..view("/form", &none) };
    let for_ms = rules.after_write_ms(&post).unwrap();
    let line = rules.mark(&post, 1_000, for_ms);
    let cookie = line.split(';').next().unwrap();
    let asked = headers(&[("cookie", cookie)]);
    let at = |now| rules.plan(&view("/", &asked), Load::Normal, now).handling;
    assert_eq!(at(2_999), Handling::Bypass(BypassBecause::AfterWrite));
    assert_eq!(at(3_000), STORE);
    let forged = [("cookie", "pagewell-wrote=99999999999999.00000000000000000000000000000000")];
    assert_eq!(handling(&rules, "/", &forged), STORE);
    assert!(self::rules("").after_write_ms(&post).is_none());
}

#[test]
fn responses_are_revised() {
    let rules = rules(
        "[[rule]]\nwhen_header = \"content-type: application/json*\"\nbypass = true\n\
         [[rule]]\nwhen_status = [404, \"4xx\"]\nstore = \"1m\"",
    );
    let none = HeaderMap::new();
    let view = view("/", &none);
    let plan = rules.plan(&view, Load::Normal, 0);
    let json = headers(&[("content-type", "application/json; charset=utf-8")]);
    let of = |status: u16, headers: &HeaderMap| {
        let status = StatusCode::from_u16(status).unwrap();
        rules.revise(&plan, &view, status, headers, Load::Normal).refusal
    };
    assert_eq!(of(200, &json), Some(Refusal::Rule));
    assert_eq!(of(200, &none), None);
    let lifetime =
        |status| rules.revise(&plan, &view, status, &none, Load::Normal).policy.default_lifetime_ms;
    assert_eq!((lifetime(StatusCode::GONE), lifetime(StatusCode::OK)), (Some(60_000), None));
    for (location, right) in [
        ("/", Some(Refusal::RedirectToItself)),
        ("/?utm_source=x#top", Some(Refusal::RedirectToItself)),
        ("http://A.test:80/", Some(Refusal::RedirectToItself)),
        ("", Some(Refusal::RedirectToItself)),
        ("?fbclid=1", Some(Refusal::RedirectToItself)),
        ("./", Some(Refusal::RedirectToItself)),
        ("//a.test", Some(Refusal::RedirectToItself)),
        ("//b.test/", None),
        ("https://a.test/", None),
        ("http://b.test/", None),
        ("/x", None),
    ] {
        assert_eq!(of(301, &headers(&[("location", location)])), right, "{location}");
    }
}

#[test]
fn lifetimes_by_status_and_load() {
    let rules = rules(
        "[[rule]]\nstore = { 200 = \"10m\", other = \"5s\" }\nignore = [\"cache-control\"]\n\
         when_saturated = { store = \"1h\", stale_while_revalidate = \"9s\" }",
    );
    assert!(rules.watches_load());
    let none = HeaderMap::new();
    let view = view("/", &none);
    let plan = rules.plan(&view, Load::Normal, 0);
    let of = |status, load| {
        let revision = rules.revise(&plan, &view, status, &none, load);
        (revision.policy.default_lifetime_ms, revision.policy.stale_while_revalidate_seconds)
    };
    assert_eq!(of(StatusCode::OK, Load::Normal), (Some(600_000), 0));
    assert_eq!(of(StatusCode::NOT_FOUND, Load::Normal), (Some(5_000), 0));
    assert_eq!(of(StatusCode::OK, Load::Saturated), (Some(3_600_000), 9));
    let ignored = rules.revise(&plan, &view, StatusCode::OK, &none, Load::Normal).ignored;
    let came = headers(&[("cache-control", "no-store"), ("pragma", "no-cache"), ("x", "y")]);
    let mut stripped = came.clone();
    ignored.strip(&mut stripped);
    assert_eq!(stripped, headers(&[("x", "y")]));
    ignored.restore(&came, &mut stripped);
    assert_eq!(stripped, came);
}

#[test]
fn contradictory_rules_are_refused() {
    for (text, part) in [
        ("bypass = true\nstore = \"1s\"", "bypass"),
        ("ignore = \"set-cookie\"", "needs a path"),
        ("ignore = \"set-cookie\"\npath = \"/**\"", "needs a path"),
        ("ignore = \"vary\"", "cache-control, expires or set-cookie"),
        ("store = { 500 = \"1s\" }", "500"),
        ("store = \"soon\"", "store: \"soon\" is no duration"),
        ("when_status = 404\nlanguage = \"de\"", "wait for the response"),
        ("when_status = 404\nagent = \"crawler\"\nstore = \"1s\"", "variants cannot depend"),
        ("when_status = \"6xx\"", "4xx"),
        ("when_status = 42", "4xx"),
        ("shared_with_sessions = true\nsession_cookie = \"a\"", "one copy"),
        ("agent = \"robot\"", "crawler"),
        ("language = \"english\"", "language: \"english\": write it as browsers do"),
        ("language = [\"de\", \"en_GB\"]", "\"en_GB\": write it as browsers do"),
        ("stale_on = \"sunday\"", "timed-out"),
        ("header = \"a b\"", "name: value"),
        ("path = \"admin\"", "begin with /"),
        ("method = \"a b\"", "method"),
        ("when_status = 403\nstore = \"30m\"", "store: has no effect, because when_status"),
        ("when_status = [\"5xx\", 403]\nstore = \"1s\"", "they are given to [200, "),
        ("when_status = 404\nstore = { 200 = \"1s\" }", "\"200\" has no effect"),
        ("method = \"POST\"\nstore = \"1s\"", "only GET and HEAD"),
        ("method = [\"POST\", \"PUT\"]\nlanguage = \"de\"", "only GET and HEAD"),
        ("method = \"get\"", "method: \"get\": write GET"),
        ("method = [\"GET\", \"Purge\"]", "write PURGE"),
        ("host = \"http://x/\"", "host: \"http://x/\" is no host"),
        ("stale_if_error = \"soon\"", "stale_if_error: "),
        ("after_write = \"soon\"", "after_write: "),
    ] {
        let said = try_rules(&format!("[[rule]]\nname = \"it\"\n{text}")).unwrap_err();
        assert!(said.starts_with("rule 1 (it): ") && said.contains(part), "{text}: {said}");
    }
    for text in [
        "when_status = [403, 404]\nstore = \"1s\"",
        "when_status = \"4xx\"\nstore = { 404 = \"1s\", other = \"2s\" }",
        "method = [\"POST\", \"HEAD\"]\nstore = \"1s\"",
        "method = \"POST\"\nafter_write = \"1s\"",
    ] {
        assert!(try_rules(&format!("[[rule]]\n{text}")).is_ok(), "{text}");
    }
    assert!(try_rules("cookies.unknown = \"x\"").unwrap_err().contains("declared"));
    assert!(try_rules("keys.trailing_slash = \"x\"").unwrap_err().contains("keys.trailing_slash"));
}

/// Cookies of every kind, and rules that could confuse them.
const COOKIES: [&str; 6] =
    ["_ga=1", "theme=x", "PHPSESSID=me", "wordpress_logged_in_1=me", "currency=EUR", "gate=me"];
const SESSIONS: [&str; 3] = ["PHPSESSID=me", "wordpress_logged_in_1=me", "gate=me"];

proptest! {
    /// A request that is forwarded for a page that may be shared contains no session cookie outside the
    /// page's key.
    #[test]
    fn no_session_reaches_a_page_without_being_in_its_key(
        cookies in proptest::sample::subsequence(COOKIES.to_vec(), 0..=COOKIES.len()),
        unknown in prop_oneof![Just("declared"), Just("ignore"), Just("bypass")],
        actions in proptest::sample::subsequence(vec![
            "store = \"1s\"",
            "session_cookie = \"PHPSESSID\"",
            "vary_cookies = [\"currency\", \"theme\"]",
            "ignore_cookies = [\"theme\", \"wordpress_*\"]",
            "device_classes = true",
        ], 0..=5),
        shared: bool,
    ) {
        let shared = shared && !actions.iter().any(|action| action.starts_with("session"));
        let shared = if shared { "shared_with_sessions = true" } else { "" };
        let rules = rules(&format!(
            "[cookies]\nsession = [\"gate\"]\nunknown = \"{unknown}\"\n[[rule]]\n{shared}\n{}",
            actions.join("\n")
        ));
        let line = cookies.join("; ");
        let lines: Vec<(&str, &str)> =
            if line.is_empty() { Vec::new() } else { vec![("cookie", &line)] };
        if handling(&rules, "/", &lines) == STORE {
            let key = key(&rules, "/", &lines);
            for cookie in sent(&rules, "/", &lines, "cookie") {
                let in_key = key.contains(&cookie);
                prop_assert!(in_key || !SESSIONS.contains(&&*cookie), "{cookie} of {line}: {key:?}");
            }
        }
    }
}

#[test]
fn vary_cookies_are_in_the_key() {
    let plain = rules("");
    let vary = [("cookie", "_ga=1; _lscache_vary=ab12; X-Magento-Vary=c3"), ("cookie", "x=1")];
    assert_eq!(handling(&plain, "/", &vary), STORE);
    assert_eq!(key(&plain, "/", &vary), "\nvary _lscache_vary=ab12\nvary X-Magento-Vary=c3");
    let went = sent(&plain, "/", &vary, "cookie");
    assert_eq!(went, ["_lscache_vary=ab12", "X-Magento-Vary=c3", "x=1"]);
    // PHP treats the first as the second.
    assert_eq!(key(&plain, "/", &[("cookie", "_lscache.vary=z")]), "\nvary _lscache.vary=z");
    assert_eq!(key(&plain, "/", &[("cookie", "lscache_vary=z")]), "");
    // If the rule names it, removes it, or shares its pages with signed-in users.
    let ignoring = rules("[[rule]]\nignore_cookies = \"_lscache*\"");
    assert_eq!(key(&ignoring, "/", &vary), "\nvary X-Magento-Vary=c3");
    assert_eq!(sent(&ignoring, "/", &vary, "cookie"), ["X-Magento-Vary=c3", "x=1"]);
    let shared = rules("[[rule]]\nshared_with_sessions = true");
    let signed_in = [("cookie", "PHPSESSID=s; X-Magento-Vary=c3")];
    assert_eq!(handling(&plain, "/", &signed_in), SESSION);
    assert_eq!(key(&shared, "/", &signed_in), "\nvary X-Magento-Vary=c3");
    assert_eq!(sent(&shared, "/", &signed_in, "cookie"), ["X-Magento-Vary=c3"]);
}

#[test]
fn responses_that_set_a_cookie_of_the_key_or_a_session_for_all_are_refused() {
    let ignoring = rules("[[rule]]\npath = \"/news/**\"\nignore = \"set-cookie\"\nstore = \"1m\"");
    let none = HeaderMap::new();
    let view = view("/news/", &none);
    let of = |rules: &SiteRules, name: &str, value: &str| {
        let plan = rules.plan(&view, Load::Normal, 0);
        let lines = headers(&[(name, value)]);
        rules.revise(&plan, &view, StatusCode::OK, &lines, Load::Normal).refusal
    };
    for rules in [&ignoring, &rules("")] {
        let set = |value| of(rules, "set-cookie", value);
        assert_eq!(set("X-Magento-Vary=9; path=/"), Some(Refusal::VaryCookieSet));
        assert_eq!(set("_lscache_vary=deleted"), Some(Refusal::VaryCookieSet));
        assert_eq!(set("seen=_lscache_vary"), None);
        let shared = |value| of(rules, "lsc-cookie", value);
        assert_eq!(shared("PHPSESSID=abc; path=/"), Some(Refusal::SessionForAll));
        assert_eq!(shared("_lscache_vary=x"), Some(Refusal::VaryCookieSet));
        assert_eq!(shared("PrestaShop-lsc=guest"), None);
        assert_eq!(shared("wordpress_test_cookie=WP+Cookie+check"), None);
    }
}
