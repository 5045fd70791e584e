//! Targets of changes beyond tags and URLs: prefixes of paths, and the pages of one owner.
//!
//! Each test shows the pages that the change drops, and that an older render is refused. Soft changes and
//! the time of a mark are tested here as well. Random sequences of all of them are in `random.rs`.

use crate::common::{SITE, TestPayload, depends, drop_all, has, put, roomy, tag};
use page_store::{
    Change, ChangeTarget, Dependencies, Lease, Limits, Site, SoftMark, Store, StoreRefusal,
    Strength,
};

/// Stores pages at all `urls` and returns which of them are left after a change of `target`.
fn left(store: &Store<TestPayload>, urls: &[&str], target: ChangeTarget<'_>) -> Vec<u8> {
    for url in urls {
        put(store, url, &[], &store.lease()).expect("nothing changed");
    }
    drop_all(store, target);
    store.validate();
    urls.iter().map(|url| u8::from(has(store, url))).collect()
}

#[test]
fn a_prefix_names_whole_segments() {
    let store = roomy();
    let urls = ["/news", "/news?x", "/news/", "/news/?x", "/news/4", "/news/4/?x", "/newsy/", "/"];
    let left = |prefix: &'static str| left(&store, &urls, ChangeTarget::Prefix(prefix.as_bytes()));
    assert_eq!(left("/news/"), [1, 1, 0, 0, 0, 0, 1, 1]);
    assert_eq!(left("/news"), [0, 0, 0, 0, 0, 0, 1, 1]);
    assert_eq!(left("/news/?x=1"), [1, 1, 0, 0, 0, 0, 1, 1]);
    assert_eq!(left("/news/4"), [1, 1, 1, 1, 0, 0, 1, 1]);
    assert_eq!(left("/news/4/"), [1, 1, 1, 1, 1, 0, 1, 1]);
    assert_eq!(left("/new"), [1; 8]);
    assert_eq!(left("/"), [0; 8]);
    assert_eq!(left(""), [0; 8]);
}

/// Below the eighth level a prefix affects more pages than it names, never fewer.
#[test]
fn deep_prefixes_end_at_the_eighth_level() {
    let store = roomy();
    let urls = ["/1/2/3/4/5/6/7/8/9/10/a", "/1/2/3/4/5/6/7/8/other/a", "/1/2/3/4/5/6/7/a"];
    let left = |prefix: &'static str| left(&store, &urls, ChangeTarget::Prefix(prefix.as_bytes()));
    assert_eq!(left("/1/2/3/4/5/6/7/8/9/10/"), [0, 0, 1]);
    assert_eq!(left("/1/2/3/4/5/6/7/8/9/10/a"), [0, 0, 1]);
    assert_eq!(left("/1/2/3/4/5/6/7/8/"), [0, 0, 1]);
    assert_eq!(left("/1/2/3/4/5/6/7/"), [0, 0, 0]);
    assert_eq!(left("/1/2/3/4/5/6/7/9/"), [1, 1, 1]);
}

/// A page with two directories in its path has two more edges; a query adds one.
#[test]
fn a_page_has_an_edge_for_each_directory_above_it() {
    let store = roomy();
    let edges = |url: &str| {
        let before = store.stats().edges;
        put(&store, url, &[], &store.lease()).unwrap();
        store.stats().edges - before
    };
    assert_eq!(["/", "/a", "/a/", "/a/b", "/a/b/", "/a/b/?x"].map(edges), [2, 2, 2, 3, 3, 4]);
    assert_eq!(edges("/1/2/3/4/5/6/7/8/9/10/11/12"), 2 + 8);
}

#[cfg(not(feature = "without-lease-check"))]
#[test]
fn a_render_from_before_a_prefix_is_refused() {
    let store = roomy();
    let lease = store.lease();
    drop_all(&store, ChangeTarget::Prefix(b"/news/"));
    let after = |url| put(&store, url, &[], &lease).map(|_| ());
    assert_eq!(after("/news/4?x"), Err(StoreRefusal::ChangedSince));
    assert_eq!(after("/news/"), Err(StoreRefusal::ChangedSince));
    assert_eq!(after("/news"), Ok(()));
    store.validate();
}

/// The dependencies of a page of `owner`.
fn private(
    store: &Store<TestPayload>,
    url: &str,
    owner: &str,
    public: &[&str],
    own: &[&str],
) -> Dependencies {
    let mut dependencies = depends(store, url, public);
    dependencies.owner(owner.as_bytes());
    for tag in own {
        dependencies.private_tag(tag.as_bytes());
    }
    dependencies
}

fn put_private(
    store: &Store<TestPayload>,
    url: &str,
    owner: &str,
    dependencies: &Dependencies,
    lease: &Lease,
) -> Result<(), StoreRefusal> {
    let key = format!("{url} {owner}");
    let made = TestPayload { from: 0, bytes: 100 };
    let stored = store.insert(store.key(key.as_bytes()), 0, dependencies, lease, made);
    stored.map(|_| ()).map_err(|refused| refused.reason)
}

#[test]
fn a_private_page_belongs_to_its_owner() {
    let store = roomy();
    let pages = [("/a", "ann"), ("/b", "ann"), ("/a", "bob")];
    let left = |target: ChangeTarget<'_>| {
        for (url, owner) in pages {
            let made_from = private(&store, url, owner, &["news"], &["cart", "news"]);
            put_private(&store, url, owner, &made_from, &store.lease()).unwrap();
        }
        put(&store, "/a", &["cart"], &store.lease()).unwrap();
        drop_all(&store, target);
        store.validate();
        let keys = ["/a ann", "/b ann", "/a bob", "/a"];
        keys.map(|key| u8::from(has(&store, key)))
    };
    let (ann, bob) = (&b"ann"[..], &b"bob"[..]);
    assert_eq!(left(ChangeTarget::Owner(ann)), [0, 0, 1, 1]);
    assert_eq!(left(ChangeTarget::Owner(b"an")), [1; 4]);
    assert_eq!(left(ChangeTarget::OwnerTag { owner: bob, tag: b"cart" }), [1, 1, 0, 1]);
    assert_eq!(left(ChangeTarget::OwnerTag { owner: bob, tag: b"news" }), [1, 1, 0, 1]);
    assert_eq!(left(ChangeTarget::OwnerUrl { owner: ann, url: b"/a" }), [0, 1, 1, 1]);
    assert_eq!(left(ChangeTarget::Tag(b"cart")), [1, 1, 1, 0]);
    // Changes of public names drop private pages as well.
    assert_eq!(left(ChangeTarget::Tag(b"news")), [0, 0, 0, 1]);
    assert_eq!(left(ChangeTarget::Url(b"/a")), [0, 1, 0, 0]);
    assert_eq!(left(ChangeTarget::Prefix(b"/")), [0; 4]);
    assert_eq!(left(ChangeTarget::Everything), [0; 4]);
}

#[cfg(not(feature = "without-lease-check"))]
#[test]
fn a_private_render_from_before_is_refused() {
    let store = roomy();
    let (ann, lease) = (&b"ann"[..], store.lease());
    let after = |owner, own: &[&str]| {
        let made_from = private(&store, "/a", owner, &[], own);
        put_private(&store, "/a", owner, &made_from, &lease)
    };
    drop_all(&store, ChangeTarget::OwnerTag { owner: ann, tag: b"cart" });
    assert_eq!(after("ann", &["cart"]), Err(StoreRefusal::ChangedSince));
    assert_eq!(after("ann", &[]), Ok(()));
    drop_all(&store, ChangeTarget::Owner(ann));
    assert_eq!(after("ann", &[]), Err(StoreRefusal::ChangedSince));
    assert_eq!(after("bob", &["cart"]), Ok(()));
    let made_from = private(&store, "/a", "ann", &[], &[]);
    let shared = store.may_share(lease.number(), store.number(), &made_from);
    assert_eq!(shared, Err(StoreRefusal::ChangedSince));
}

#[test]
fn an_owner_that_is_not_clear_refuses_the_page() {
    let store = roomy();
    let mut nobodys = depends(&store, "/a", &[]);
    nobodys.private_tag(b"cart");
    let mut twos = private(&store, "/a", "ann", &[], &[]);
    twos.owner(b"bob");
    for unclear in [nobodys, twos] {
        let refused = put_private(&store, "/a", "ann", &unclear, &store.lease());
        assert_eq!(refused, Err(StoreRefusal::OwnerUnclear));
    }
    let mut same = private(&store, "/a", "ann", &[], &["cart"]);
    same.owner(b"ann");
    assert_eq!(same.tags(), 1);
    assert_eq!(put_private(&store, "/a", "ann", &same, &store.lease()), Ok(()));
}

#[test]
fn an_owner_has_so_many_pages_and_displaces_its_own_only() {
    let store = Store::with_seed(Limits { owner_pages_max: 3, ..Limits::new(1 << 24) }, 1);
    put(&store, "/public", &[], &store.lease()).unwrap();
    let put_one = |url: &str, owner: &str| {
        let made_from = private(&store, url, owner, &[], &["t"]);
        put_private(&store, url, owner, &made_from, &store.lease()).unwrap();
        // Takes a step of the clock, so that the leases differ.
        drop_all(&store, tag("nothing"));
        store.validate();
    };
    let has = |keys: &[&str]| keys.iter().map(|key| u8::from(has(&store, key))).collect::<Vec<_>>();
    put_one("/0", "bob");
    for url in ["/1", "/2", "/3", "/2", "/4"] {
        put_one(url, "ann");
    }
    assert_eq!(
        has(&["/1 ann", "/2 ann", "/3 ann", "/4 ann", "/0 bob", "/public"]),
        [0, 1, 1, 1, 1, 1]
    );
    put_one("/5", "ann");
    // The second page was rendered again, so the third is the oldest.
    assert_eq!(has(&["/2 ann", "/3 ann", "/4 ann", "/5 ann"]), [1, 0, 1, 1]);
    assert_eq!(store.stats().counters.owner_displaced, 2);
}

/// Dropped pages that are not tidied up yet do not count for the owner.
#[test]
fn dropped_pages_leave_room_for_the_owner() {
    let limits = Limits { owner_pages_max: 3, sweep_pages: 16, ..Limits::new(1 << 24) };
    let store = Store::with_seed(limits, 1);
    for round in 0..3 {
        for url in ["/1", "/2", "/3"] {
            let made_from = private(&store, url, "ann", &[], &[]);
            put_private(&store, url, "ann", &made_from, &store.lease()).unwrap();
        }
        assert_eq!(store.stats().counters.owner_displaced, 0, "round {round}");
        drop_all(&store, ChangeTarget::Everything);
        store.validate();
    }
}

fn mark_at(store: &Store<TestPayload>, target: ChangeTarget<'_>, now_ms: u64) -> u64 {
    let change = Change { site: SITE, targets: &[target] };
    store.change_at(&change, Strength::Mark, now_ms).marked
}

fn marked(store: &Store<TestPayload>, url: &str) -> Option<SoftMark> {
    store.candidates(store.key(url.as_bytes())).iter().next()?.marked()
}

#[test]
fn a_mark_has_the_time_of_the_first_change() {
    let store = roomy();
    put(&store, "/a/b", &["t"], &store.lease()).unwrap();
    assert_eq!(marked(&store, "/a/b"), None);
    assert_eq!(mark_at(&store, ChangeTarget::Prefix(b"/a"), 1_000), 1);
    let first = marked(&store, "/a/b").unwrap();
    assert_eq!(first.at_ms, 1_000);
    // A later soft change neither changes the time of the mark nor counts as another.
    assert_eq!(mark_at(&store, tag("t"), 2_000), 0);
    assert_eq!(marked(&store, "/a/b"), Some(first));
    // A new render replaces the page without a mark; an older render is refused.
    put(&store, "/a/b", &["t"], &store.lease()).unwrap();
    assert_eq!(marked(&store, "/a/b"), None);
    store.validate();
}

#[test]
fn soft_then_hard_and_hard_then_soft_leave_nothing() {
    let store = roomy();
    put(&store, "/a", &["t"], &store.lease()).unwrap();
    mark_at(&store, tag("t"), 1);
    assert_eq!(drop_all(&store, tag("t")).dropped, 1);
    assert_eq!(mark_at(&store, tag("t"), 2), 0);
    assert!(!has(&store, "/a"));
    store.validate();
}

#[cfg(not(feature = "without-lease-check"))]
#[test]
fn a_soft_change_refuses_older_renders_as_a_hard_one_does() {
    let store = roomy();
    let lease = store.lease();
    put(&store, "/a", &["t"], &lease).unwrap();
    mark_at(&store, tag("t"), 7);
    assert_eq!(put(&store, "/a", &["t"], &lease).unwrap_err(), StoreRefusal::ChangedSince);
    assert_eq!(marked(&store, "/a").map(|mark| mark.at_ms), Some(7));
    assert!(drop_all(&store, ChangeTarget::Tag(b"other")).dropped == 0 && has(&store, "/a"));
}

#[test]
fn prefixes_and_owners_belong_to_their_site() {
    let store = roomy();
    let made_from = private(&store, "/a/b", "ann", &[], &[]);
    put_private(&store, "/a/b", "ann", &made_from, &store.lease()).unwrap();
    for target in [ChangeTarget::Prefix(b"/a/"), ChangeTarget::Owner(b"ann")] {
        let change = Change { site: Site(2), targets: &[target] };
        assert_eq!(store.change(&change, Strength::Drop).dropped, 0);
    }
}
