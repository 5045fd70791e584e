//! Planning a request at a site without rules allocates nothing, whatever its cookies and query.
//!
//! The only test in its binary, for it counts what the whole process allocates on this thread. The
//! counting allocator needs `unsafe`; it hands everything on to the system's.
#![allow(unsafe_code)]

use http_cache::Fields;
use site_rules::raw::{Cookies, Keys};
use site_rules::{Handling, Load, Peer, Planned, RequestView, Secret, SiteRules, Surroundings};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call is handed on unchanged to the system's allocator, which keeps the contract; the
// counter is a constant-initialised thread local without destructor, so it allocates nothing itself.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

#[test]
fn a_plan_without_rules_allocates_nothing() {
    let around = Surroundings {
        base: http_cache::Policy::default(),
        secret: Secret::new([1; 32]),
        has_trusted_proxies: false,
    };
    let rules = SiteRules::read(&[], &Keys::default(), &Cookies::default(), around).expect("rules");
    let browser: &[(&[u8], &[u8])] = &[
        (b"User-Agent", b"Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"),
        (b"Cookie", b"_ga=GA1.1.2; _gid=3; theme=dark; CookieConsent=yes; pagewell-wrote=9.ab"),
    ];
    let mut key = Vec::with_capacity(256);
    let before = ALLOCATIONS.get();
    let normal = rules.form().normal("/news/4/?page=2&sort=new");
    let view = RequestView {
        method: &http::Method::GET,
        scheme: "http",
        host: "example.org",
        path_and_query: &normal.page,
        fields: &browser,
        peer: Peer::Anybody,
    };
    let plan = rules.plan(&view, Load::Normal, 1_000);
    rules.write_key(&plan, view.fields, &mut key);
    let mut cookies = 0;
    Planned::new(&rules, plan, view.fields).values("cookie", &mut |_| cookies += 1);
    let allocated = ALLOCATIONS.get() - before;
    assert_eq!((plan.handling, cookies, key.len()), (Handling::Store, 1, 0));
    assert_eq!(allocated, 0);
    assert!(before > 0, "the allocator counts");
}
