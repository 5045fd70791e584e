//! Planning a request at a site without rules allocates nothing, whatever its cookies and query.
//!
//! There is one test in this program, because the allocator counts all allocations of the thread.

use counting_allocator::{Counting, allocations};
use http_cache::Fields;
use rule_conditions::{Peer, RequestView};
use site_rules::raw::{Cookies, Keys};
use site_rules::{Handling, Load, PlannedFields, Secret, SiteRules, Surroundings};

#[global_allocator]
static COUNTING: Counting = Counting;

#[test]
fn a_plan_without_rules_allocates_nothing() {
    let around = Surroundings {
        base: http_cache::Policy::default(),
        secret: Secret::new([1; 32]),
        has_trusted_proxies: false,
        files: None,
    };
    let rules = SiteRules::read(&[], &Keys::default(), &Cookies::default(), around).expect("rules");
    let browser: &[(&[u8], &[u8])] = &[
        (b"User-Agent", b"Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"),
        (b"Cookie", b"_ga=GA1.1.2; _gid=3; theme=dark; CookieConsent=yes; _pk_ses.1.2=x; pagewell-wrote=9.ab"),
    ];
    let mut key = Vec::with_capacity(256);
    let before = allocations();
    let normal = rules.form().normal("/news/4/?page=2&sort=new");
    let view = RequestView {
        method: &http::Method::GET,
        scheme: "http",
        host: "example.org",
        path_and_query: &normal.page,
        fields: &browser,
        client: &Peer::Anybody,
    };
    let plan = rules.plan(&view, Load::Normal, 1_000);
    rules.write_key(&plan, view.fields, &mut key);
    let mut cookies = 0;
    PlannedFields::new(&rules, plan, view.fields).values("cookie", &mut |_| cookies += 1);
    let allocated = allocations() - before;
    assert_eq!((plan.handling, cookies, key.len()), (Handling::Store, 1, 0));
    assert_eq!(allocated, 0);
    assert!(before > 0, "the allocator counts");
}
