//! Which requests have an owner, which have none, and which cookies are in the key.

use super::*;
use crate::raw::{Cookies, Keys};
use crate::{Secret, Surroundings};
use http::{HeaderMap, HeaderName, HeaderValue};
use http_cache::Policy;

const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaa";
const B: &str = "bbbbbbbbbbbbbbbbbbbbbbbb";

fn fields(lines: &[(&'static str, String)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in lines {
        let value = HeaderValue::from_str(value).expect("a value");
        headers.append(HeaderName::from_static(name), value);
    }
    headers
}

fn named() -> OwnerCookies {
    let words = ["PHPSESSID", "my_session", "shop-*"].map(str::to_owned);
    OwnerCookies::read(&words).expect("patterns")
}

fn of(lines: &[(&'static str, String)]) -> Result<Owner, NoOwner> {
    let around = Surroundings {
        base: Policy::default(),
        secret: Secret::new([1; 32]),
        has_trusted_proxies: false,
        files: None,
    };
    let rules = SiteRules::read(&[], &Keys::default(), &Cookies::default(), around).expect("rules");
    rules.owner(&named(), &fields(lines))
}

fn cookies(line: &str) -> Result<Owner, NoOwner> {
    of(&[("cookie", line.to_owned())])
}

fn dropped(line: &str) -> Vec<String> {
    let mut found = Vec::new();
    named().each(&fields(&[("cookie", line.to_owned())]), &mut |cookie| {
        found.push(String::from_utf8_lossy(cookie).into_owned());
    });
    found
}

#[test]
fn an_owner_is_known_by_long_cookies_of_the_named_kinds() {
    let owner = cookies(&format!("theme=dark; PHPSESSID={A}; shop-1={B}; _ga=GA1.2")).unwrap();
    assert_eq!(owner.cookies, [format!("PHPSESSID={A}"), format!("shop-1={B}")].map(Vec::from));
    // Every cookie except a script's, as written and in order.
    let key = format!("\nowner theme=dark\nowner PHPSESSID={A}\nowner shop-1={B}");
    assert_eq!(owner.key, key.as_bytes());
    let twice = of(&[("cookie", format!("PHPSESSID={A}")), ("cookie", "theme=dark".to_owned())]);
    assert_ne!(twice.unwrap().key, owner.key);
}

#[test]
fn an_ambiguous_request_has_no_owner() {
    for (line, why) in [
        ("theme=dark".to_owned(), NoOwner::Nobody),
        ("PHPSESSID=short".to_owned(), NoOwner::Nobody),
        (format!("PHPSESSID={A}; PHPSESSID={B}"), NoOwner::Twice),
        (format!("PHPSESSID={A}; PHPSESSID="), NoOwner::Twice),
        (format!("my.session={A}; my_session={B}"), NoOwner::Twice),
        (format!("my session={A}; my_session={B}"), NoOwner::Twice),
        (format!("PHPSESSID={A}; x={}", "y".repeat(OWNER_KEY_BYTES_MAX)), NoOwner::TooLong),
        (
            (0..=OWNER_COOKIES_MAX).map(|n| format!("shop-{n}={A}")).collect::<Vec<_>>().join("; "),
            NoOwner::TooLong,
        ),
    ] {
        assert_eq!(cookies(&line), Err(why), "{line}");
    }
    let signed = [("cookie", format!("PHPSESSID={A}")), ("authorization", "Basic eDp5".to_owned())];
    assert_eq!(of(&signed), Err(NoOwner::Authorization));
}

#[test]
fn a_member_of_an_array_conflicts_with_the_name() {
    for line in [
        format!("PHPSESSID[x]={B}; PHPSESSID={A}"),
        format!("PHPSESSID={A}; PHPSESSID[]={B}"),
        format!("PHPSESSID={A}; PHPSESSID[={B}"),
        format!("my.session[a][b]={B}; my_session={A}"),
        format!("my[session={B}; my_session={A}"),
    ] {
        assert_eq!(cookies(&line), Err(NoOwner::Twice), "{line}");
    }
    // For PHP that is not a session id.
    assert_eq!(cookies(&format!("PHPSESSID[x]={A}")), Err(NoOwner::Nobody));
}

#[test]
fn purging_considers_every_reading_of_a_name() {
    assert_eq!(dropped("theme=dark"), [""; 0]);
    assert_eq!(dropped("PHPSESSID=x; my.session=y"), ["PHPSESSID=x", "my_session=y"]);
    assert_eq!(dropped("PHPSESSID[a]=x"), ["PHPSESSID_a]=x", "PHPSESSID=x"]);
    assert!(named().are_set_by(b"PHPSESSID=deleted; Max-Age=0"));
    assert!(!named().are_set_by(b"theme=dark; PHPSESSID=x"));
}

#[test]
fn a_pattern_that_fits_every_cookie_is_refused() {
    for word in ["*", "**", ""] {
        assert!(OwnerCookies::read(&[word.to_owned()]).is_err(), "{word:?}");
    }
}
