//! Cookies as evidence about a client: sessions, logins, tickets.

use http::{HeaderMap, HeaderValue};
use http_cache::Policy;
use site_rules::raw::{Cookies, Keys};
use site_rules::{Secret, SiteRules, Surroundings, VisitorCookies, is_same_code};

fn rules(key: u8) -> SiteRules {
    let around = Surroundings {
        base: Policy::default(),
        secret: Secret::new([key; 32]),
        has_trusted_proxies: false,
        files: None,
    };
    SiteRules::read(&[], &Keys::default(), &Cookies::default(), around).expect("no rules")
}

fn found(sent: &str, set: &[&str]) -> VisitorCookies {
    let mut headers = HeaderMap::new();
    headers.insert("cookie", HeaderValue::from_str(sent).expect("a value"));
    let set = set.iter().map(|line| line.as_bytes());
    rules(1).visitor_cookies(&headers, set, ("a.test", 1_000))
}

const ID: &str = "PHPSESSID=0123456789abcdef0123";

#[test]
fn a_session_is_the_set_of_session_cookies_in_any_order() {
    let one = found(&format!("{ID}; _ga=1; csrf=x"), &[]);
    assert!(!one.session.is_empty());
    assert_eq!(one, found(&format!("csrf=x; {ID}"), &[]));
    assert_ne!(one.session, found(ID, &[]).session, "one of the cookies alone");
    assert_ne!(one.session, found(&format!("{ID}; csrf=y"), &[]).session);
    for none in ["_ga=0123456789abcdef0123", "PHPSESSID=short", "wp_lang=de_DE; x=1"] {
        assert!(found(none, &[]).session.is_empty(), "{none}");
    }
    let many: Vec<String> = (0..17).map(|n| format!("a{n}sess=0123456789abcdef")).collect();
    assert!(found(&many.join("; "), &[]).session.is_empty(), "too many");
}

#[test]
fn the_next_session_has_the_cookies_that_the_response_sets() {
    let new = "PHPSESSID=ffffffffffffffff0123";
    let set = format!("{new}; path=/; HttpOnly");
    assert_eq!(found(ID, &[&set]).session, found(new, &[]).session);
    assert_eq!(found("_ga=1", &[&set]).session, found(new, &[]).session);
    let both = found(&format!("{ID}; csrf=x"), &["csrf=deleted; Max-Age=0"]);
    assert_eq!(both.session, found(ID, &[]).session);
    assert_eq!(found(ID, &["theme=dark"]).session, found(ID, &[]).session);
}

#[test]
fn a_login_has_a_secret_in_a_cookie_of_signed_in_visitors() {
    let login = "wordpress_logged_in_5=me%7C1700000000%7Csecret";
    let of = |line: &str| rules(1).login_set_by(line.as_bytes()).map(<[u8]>::to_vec);
    assert_eq!(of(&format!("{login}; path=/; HttpOnly")), Some(login.as_bytes().to_vec()));
    assert_eq!(found(&format!("a=1; {login}"), &[]).logins, [login.as_bytes()]);
    for none in [
        "wordpress_logged_in_5=%20; Max-Age=0",
        "wordpress_logged_in_5=; Max-Age=0",
        "PHPSESSID=0123456789abcdef0123",
        "comment_author_email_5=somebody@example.com",
        "xwordpress_logged_in_5=0123456789abcdef",
    ] {
        assert_eq!(of(none), None, "{none}");
    }
}

#[test]
fn cookies_without_sessions_are_those_that_identify_no_user() {
    let left = |line: &str, is_other: fn(&[u8]) -> bool| {
        let left = rules(1).cookies_without_sessions(line.as_bytes(), is_other);
        left.map(|left| String::from_utf8(left).expect("text"))
    };
    let sent =
        format!("{ID}; theme=dark; wordpress_logged_in_5=me%7C1; pagewell-place=1; my-auth=2");
    assert_eq!(left(&sent, |_| false), Some("theme=dark; pagewell-place=1".to_owned()));
    let others = left(&sent, |name| name.starts_with(b"my-"));
    assert_eq!(others, Some("theme=dark; pagewell-place=1; my-auth=2".to_owned()));
    assert_eq!(left(&format!("{ID}; fe.typo.user=1"), |_| false), None);
}

#[test]
fn the_code_of_a_ticket_is_for_its_host_and_key() {
    let code = rules(1).ticket_code("a.test", b"ticket");
    assert!(is_same_code(&code, &rules(1).ticket_code("a.test", b"ticket")));
    assert!(!is_same_code(&code, &rules(2).ticket_code("a.test", b"ticket")));
    assert!(!is_same_code(&code, &rules(1).ticket_code("b.test", b"ticket")));
    assert!(!is_same_code(&code, &rules(1).ticket_code("a.test", b"ticke")));
    assert_eq!(found("pagewell-place=1.2.3", &[]).ticket.as_deref(), Some(&b"1.2.3"[..]));
}
