//! The system clock is set while Pagewell runs: dates of other servers are interpreted correctly, and no page
//! lives longer than its lifetime. Only the clock that Pagewell sees is set; the script compensates for it.

use acceptance::{Site, client, counter, is_hit, until};
use harness::{Client, Pagewell, Request, Response};

/// Fresh for ten minutes by the script's clock, which is ahead by the number of seconds in the query.
const PAGE: &str = r#"<?php
header('Expires: ' . gmdate('D, d M Y H:i:s \G\M\T', time() + (int) $_GET['ahead'] + 600));
echo 'page';
"#;
const HOURS_2: i64 = 7_200;

fn set(pagewell: &Pagewell, seconds: i64, times: usize) {
    let call = format!("{{\"set_ms\":{}}}", seconds * 1000);
    let request = Request::new("POST", "/v1/clock")
        .header("Content-Type", "application/json")
        .content(call.as_bytes());
    let answer = Client::new(pagewell.admin().clone()).send(&request).expect("an answer");
    assert_eq!(answer.status, 200, "{}", answer.text());
    until("it is noticed", || pagewell.times_logged("clock-moved") == times);
}

fn get(pagewell: &Pagewell, ahead: i64) -> Response {
    client(pagewell).get(&format!("/page.php?ahead={ahead}")).expect("an answer")
}

/// The remaining lifetime of the page in seconds.
fn ttl(response: &Response) -> i64 {
    let said = response.header("cache-status").expect("it is said");
    let (_, rest) = said.split_once("ttl=").expect(said);
    rest.split(';').next().and_then(|ttl| ttl.parse().ok()).expect(said)
}

#[test]
fn the_lifetime_of_a_page_survives_changes_of_the_clock() {
    let site = Site::new(&[("page.php", PAGE)]);
    let pagewell = site.serve("");
    assert!((1..=600).contains(&ttl(&get(&pagewell, 0))));
    assert!(is_hit(&get(&pagewell, 0)));

    // Clock ahead: a page with ten minutes of lifetime has expired.
    set(&pagewell, HOURS_2, 1);
    assert!(!is_hit(&get(&pagewell, 0)));
    let page = get(&pagewell, HOURS_2);
    assert!((1..=600).contains(&ttl(&page)), "{:?}", page.header("cache-status"));
    assert!(is_hit(&get(&pagewell, HOURS_2)));

    // Clock back again: the page would otherwise be fresh for two more hours.
    set(&pagewell, -HOURS_2, 2);
    assert!(!is_hit(&get(&pagewell, HOURS_2)));
    assert!((1..=600).contains(&ttl(&get(&pagewell, 0))));
    assert!(is_hit(&get(&pagewell, 0)));
    assert_eq!(counter(&pagewell, "invalidations"), 2, "before and after");
}
