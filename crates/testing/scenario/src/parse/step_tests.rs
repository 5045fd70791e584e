//! Every form of a step is parsed as in the manual, and other lines are rejected.

use super::*;
use crate::story::{RequestPattern, StatusTest};
use std::time::Duration;

#[test]
fn requests_have_a_host_and_fields() {
    let Action::Ask { client, message, .. } =
        parse("c1: get /a?b=1  accept: text/html => 200").unwrap()
    else {
        panic!("no request")
    };
    assert_eq!(client, "c1");
    let Message::Http { method, fields, body: None, .. } = message else { panic!("raw") };
    assert_eq!(method, "GET");
    let names: Vec<_> = fields.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["host", "accept"]);
}

#[test]
fn requests_go_on_or_are_judged() {
    assert!(matches!(parse("c1: post /a | x=1 &"), Ok(Action::Send { .. })));
    assert!(matches!(parse("PURGE /a => 200"), Ok(Action::Ask { .. })));
    assert!(matches!(parse("await c1 => 200 | one"), Ok(Action::Collect { .. })));
    assert!(matches!(parse("await get /a => 200 ; hit"), Ok(Action::Repeat { .. })));
    assert!(matches!(parse("more => 200"), Ok(Action::More { .. })));
    let raw = parse(r#"raw "GET / HTTP/1.1\r\n\r\n" => 400 closed"#).unwrap();
    let Action::Ask { message: Message::Raw(_), expect, .. } = raw else { panic!("{raw:?}") };
    assert!(expect.closed && expect.status == StatusTest::OneOf(vec![400]));
}

#[test]
fn steps_about_the_origin_are_parsed() {
    assert!(matches!(parse("origin down"), Ok(Action::OriginDown)));
    let saw = parse("origin saw 2 GET /a").unwrap();
    let Action::OriginSaw { count: 2, only: Some(only) } = saw else { panic!("{saw:?}") };
    assert_eq!(only, RequestPattern { method: Some("GET".into()), pattern: "/a".into() });
    assert!(matches!(parse("await origin g1 2"), Ok(Action::AwaitHold { count: 2, .. })));
    assert!(matches!(
        parse("origin last if-none-match: \"1\"  !range"),
        Ok(Action::OriginLast { only: None, .. })
    ));
}

#[test]
fn the_rest_is_read() {
    assert!(matches!(parse("clock +90s"), Ok(Action::Clock(d)) if d == Duration::from_secs(90)));
    assert!(matches!(
        parse("invalidate tag a b => 2"),
        Ok(Action::Invalidate { count: Some(2), .. })
    ));
    assert!(matches!(parse("invalidate all"), Ok(Action::Invalidate { count: None, .. })));
    assert!(matches!(parse("stat followers>=1"), Ok(Action::Stat { .. })));
    assert!(matches!(parse("admin GET /v1/stats => 200"), Ok(Action::Admin { .. })));
}

#[test]
fn invalid_steps_are_refused() {
    for wrong in [
        "get /a",
        "fetch /a => 200",
        "get => 200",
        "clock 11s",
        "clock +11",
        "origin sideways",
        "invalidate tag",
        "invalidate all /a",
        "stat pages",
        "await c1",
        "get /a => 200 ; fwd=",
        "get /a  x => 200",
    ] {
        let read = parse(wrong);
        assert!(read.is_err(), "{wrong}: {read:?}");
    }
}
