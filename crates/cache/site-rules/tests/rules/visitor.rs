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

/// Otherwise the sessions of strangers were one.
#[test]
fn values_that_others_have_or_know_are_no_secrets() {
    let own = found(ID, &[]).secrets;
    assert_eq!(own.len(), 1);
    for common in [
        "wikiUserName=An_Administrators_Name",
        "Wiki_UserName=%D0%98%D0%B2%D0%B0%D0%BD",
        "comment_author_email_0a=somebody%40example.com",
        "bp-message=Your%20message%20was%20sent",
        "woocommerce_cart_hash=0123456789abcdef0123",
    ] {
        assert_eq!(found(&format!("{common}; {ID}"), &[]).secrets, own, "{common}");
    }
    assert!(found("PHPSESSID=%41%41%41%41%41%41", &[]).secrets.is_empty(), "six letters");
}

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
    let many = found(&many.join("; "), &[]);
    assert!(many.session.is_empty() && many.secrets.is_empty(), "too many");
    assert_eq!(found(&format!("{ID}; {ID}"), &[]), found(ID, &[]), "a set has each once");
}

/// By its secrets, a session is found again beside cookies that a client has invented.
#[test]
fn a_secret_is_the_same_under_each_name_and_in_each_spelling() {
    let secret: &[u8] = b"0123456789abcdef0123";
    for one in [
        ID.to_owned(),
        format!("{ID}; csrf=x; _ga=0123456789abcdef0123"),
        "PHPSESSID=%30123456789%61bcdef0123".to_owned(),
        "PHPSESSID[0]= 0123456789abcdef0123 ; woocommerce_cart_hash=0123456789abcdef0123456789abcdef"
            .to_owned(),
    ] {
        assert_eq!(found(&one, &[]).secrets, [secret], "{one}");
    }
    let two = found(&format!("{ID}; x_session=ffffffffffffffff"), &[]);
    assert_eq!(two.secrets, [secret, &b"ffffffffffffffff"[..]]);
    let common = "woocommerce_cart_hash=0123456789abcdef0123456789abcdef";
    assert!(found(common, &[]).session.is_empty(), "other visitors may have the same cart");
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

/// The Set-Cookie lines with which applications answer a login form, and the beginning of the cookie that shows by itself
/// that somebody has signed in. The other sessions are confirmed by the next page, which has a field for it.
const LOGINS: [(&str, &[&str], Option<&str>); 7] = [
    (
        "WooCommerce",
        &[
            "wordpress_sec_37d007a5=me%7C1765540000%7Cx0Yt3sPzqGmUe1vB%7C5f2b9c; path=/wp-admin; secure; HttpOnly",
            "wordpress_logged_in_37d007a5=me%7C1765540000%7Cx0Yt3sPzqGmUe1vB%7C5f2b9c; path=/; secure; HttpOnly",
            "wp_woocommerce_session_37d007a5=7%7C%7C1764712800%7C%7C1764709200%7C%7C9f1d; path=/; HttpOnly",
        ],
        Some("wordpress_"),
    ),
    (
        "MediaWiki",
        &[
            "wikiUserID=7; expires=Tue, 29 Dec 2026 01:00:00 GMT; path=/; httponly; samesite=Lax",
            "wikiUserName=Me; expires=Tue, 29 Dec 2026 01:00:00 GMT; path=/; httponly; samesite=Lax",
            "wiki_session=8lq3bv5k1m0c2n7d9f4g6h8j0k2l4m6n; path=/; httponly; samesite=Lax",
            "UseDC=master; expires=Sun, 29 Nov 2026 01:00:10 GMT; path=/; HttpOnly",
        ],
        None,
    ),
    (
        "Laravel",
        &[
            "XSRF-TOKEN=eyJpdiI6IkZrWlE9PSIsInZhbHVlIjoi; expires=Sun, 29 Nov 2026 03:00:00 GMT; path=/; samesite=lax",
            "laravel_session=eyJpdiI6InpQdz09IiwidmFsdWUiOiJ; path=/; httponly; samesite=lax",
        ],
        None,
    ),
    (
        "Laravel, remembered",
        &[
            "laravel_session=eyJpdiI6InpQdz09IiwidmFsdWUiOiJ; path=/; httponly; samesite=lax",
            "remember_web_59ba36addc2b2f9401580f014c7f58ea4e30989d=eyJpdiI6IkR2Zz09Iiwi; path=/; httponly",
        ],
        Some("remember_web_"),
    ),
    (
        "Drupal",
        &[
            "SSESS2b9c5f1d8e7a=Vd3mK-0qXw7sLr9tYb2nJc5hGf8pZa1e; path=/; domain=.a.test; secure; HttpOnly",
        ],
        None,
    ),
    (
        "Symfony, remembered",
        &[
            "PHPSESSID=4g6h8j0k2l4m6n8lq3bv5k1m0c; path=/; httponly; samesite=lax",
            "REMEMBERME=App.Entity.User%3Abm9ib2R5%3A1767225600%3A5f2b9c; path=/; httponly; samesite=lax",
        ],
        Some("REMEMBERME"),
    ),
    ("PHP", &["PHPSESSID=4g6h8j0k2l4m6n8lq3bv5k1m0c; path=/; HttpOnly"], None),
];

#[test]
fn the_answers_of_applications_to_a_login_form_begin_a_session_that_the_next_request_has() {
    for (application, set, login) in LOGINS {
        let pair = |line: &&str| line.split(';').next().unwrap_or_default().to_owned();
        let sent: Vec<String> = set.iter().map(pair).collect();
        let next = found(&sent.join("; "), &[]);
        assert!(!next.session.is_empty(), "{application}");
        assert_eq!(found("_ga=1", set).session, next.session, "{application}");
        let is_login = |line: &&&str| rules(1).login_set_by(line.as_bytes()).is_some();
        let logins: Vec<&&str> = set.iter().filter(is_login).collect();
        assert_eq!(logins.is_empty(), login.is_none(), "{application}: {logins:?}");
        assert!(
            logins.iter().all(|line| login.is_some_and(|name| line.starts_with(name))),
            "{application}: {logins:?}"
        );
        assert_eq!(next.logins.len(), logins.len(), "{application}");
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
