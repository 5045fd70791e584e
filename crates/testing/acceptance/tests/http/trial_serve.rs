//! `trial.serve`: which visitors get hits during a trial. Their addresses decide, also after a restart; what other fields
//! they send does not.

use acceptance::{Site, client, is_hit};
use harness::{Pagewell, Request};

const PAGE: &str = "<?php header('Cache-Control: public, max-age=600'); echo '<p>text';";
/// Addresses that ask; a quarter of them gets hits.
const ADDRESSES: usize = 400;

fn config(site: &Site) -> String {
    format!(
        "mode = \"trial\"\ntrusted_proxies = [\"127.0.0.0/8\", \"::1\"]\nphp.children = 4\n[trial]\nserve = \"25%\"\n\
         [snapshot]\ndirectory = {:?}\nunwatched = \"serve\"\n",
        site.at("snapshots")
    )
}

/// The addresses that get a hit, of those that `address` gives.
fn served(pagewell: &Pagewell, address: impl Fn(usize) -> String) -> Vec<usize> {
    let is_served = |number: usize| {
        let request = Request::get("/page.php")
            .header("X-Forwarded-For", &address(number))
            .header("Cookie", &format!("_ga={number}"));
        is_hit(&client(pagewell).host("a.test").send(&request).expect("an answer"))
    };
    // The first requests show that no address makes most of them, and store the page.
    let _ = (0..ADDRESSES / 4).filter(|number| is_served(*number)).count();
    (0..ADDRESSES).filter(|number| is_served(*number)).collect()
}

#[test]
fn a_share_of_the_addresses_gets_hits_also_after_a_restart() {
    let site = Site::new(&[("page.php", PAGE)]);
    let ipv4 = |number: usize| format!("192.0.{}.{}", number / 200, number % 200 + 1);
    let ipv6 = |last: usize| move |number: usize| format!("2001:db8:0:{number:x}::{last:x}");
    let mut pagewell = site.serve(&config(&site));
    let (before, networks) = (served(&pagewell, ipv4), served(&pagewell, ipv6(1)));
    for count in [before.len(), networks.len()] {
        assert!((60..=140).contains(&count), "{count} of {ADDRESSES}");
    }
    assert_eq!(served(&pagewell, ipv6(2)), networks, "an IPv6 network is one address");
    pagewell.stop();
    let pagewell = site.serve(&config(&site));
    assert_eq!(served(&pagewell, ipv4), before);
}
