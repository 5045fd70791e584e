//! The store's byte counts agree with the real heap within a tenth, and the documented costs (bytes per
//! page, per tag) are not exceeded.
//!
//! There is one test, because the allocator counts for the whole process.

#[cfg(not(feature = "loom"))]
mod common;

#[cfg(not(feature = "loom"))]
mod heap {
    use super::common::SITE;
    use counting_allocator::{Counting, held_bytes, taken_bytes as taken};
    use page_store::{
        Audience, ChangeTarget, EDGE_BYTES_TYPICAL, Limits, NAME_BYTES_TYPICAL, PAGE_BYTES_TYPICAL,
        Payload, Store, Strength,
    };

    #[global_allocator]
    static COUNTING: Counting = Counting;

    struct Content(Box<[u8]>);

    impl Payload for Content {
        fn bytes(&self) -> usize {
            taken(self.0.len())
        }

        fn audience(&self) -> Audience {
            Audience::Anybody
        }
    }

    fn fill(store: &Store<Content>, pages: usize, tags: usize, names: usize) {
        let lease = store.lease();
        for n in 0..pages {
            let url = format!("/articles/2026/{n}");
            let mut dependencies = store.dependencies(SITE, url.as_bytes());
            for tag in 0..tags {
                dependencies.tag(format!("tag:{}", (n * 31 + tag * 7) % names).as_bytes());
            }
            let content = Content(vec![0; 100].into());
            store
                .insert(store.key(url.as_bytes()), 0, &dependencies, &lease, content)
                .expect("nothing changed");
        }
    }

    /// Checks that real and counted bytes agree; returns the real bytes since `before`.
    fn compare(store: &Store<Content>, before: usize, what: &str) -> usize {
        let (real, counted) = (held_bytes() - before, store.stats().bytes.total());
        assert!(real as f64 <= counted as f64 * 1.1, "{what}: real {real}, counted {counted}");
        assert!(counted as f64 <= real as f64 * 1.1, "{what}: real {real}, counted {counted}");
        real
    }

    /// Tags that no other page has: the cost of a name.
    fn pages_with_a_thousand_tags(before: usize) {
        let store = Store::<Content>::new(Limits::new(1 << 26));
        let lease = store.lease();
        let empty = compare(&store, before, "empty");
        for n in 0..20 {
            let url = format!("/{n}");
            let mut dependencies = store.dependencies(SITE, url.as_bytes());
            for tag in 0..1_000 {
                dependencies.tag(format!("{n}:{tag}").as_bytes());
            }
            let content = Content(vec![0; 100].into());
            let key = store.key(url.as_bytes());
            store.insert(key, 0, &dependencies, &lease, content).expect("nothing changed");
        }
        let name = (compare(&store, before, "pages with a thousand tags") - empty) / 20_000;
        assert!(name <= NAME_BYTES_TYPICAL, "a tag of one page costs {name} bytes");
        println!("bytes: tag that no other page has {name}");
    }

    fn private_pages_and_waiting_keys(before: usize) {
        let limits = Limits { rewarm_pages_max: 10_000, ..Limits::new(1 << 26) };
        let store = Store::<Content>::new(Limits { rewarm_uses_min: 0, ..limits });
        let lease = store.lease();
        for n in 0..20_000 {
            let url = format!("/cart/{n}");
            let mut dependencies = store.dependencies(SITE, url.as_bytes());
            dependencies.owner(format!("owner {}", n / 10).as_bytes()).private_tag(b"cart");
            let content = Content(vec![0; 100].into());
            let key = store.key(url.as_bytes());
            store.insert(key, 0, &dependencies, &lease, content).expect("nothing changed");
        }
        compare(&store, before, "private pages");
        let everything = page_store::Change { site: SITE, targets: &[ChangeTarget::Everything] };
        store.change(&everything, Strength::Drop);
        assert!(store.stats().to_rewarm > 3_000);
        compare(&store, before, "private pages dropped, keys waiting");
        store.validate();
    }

    #[test]
    fn counted_bytes_are_the_real_bytes() {
        let before = held_bytes();
        let store = Store::<Content>::new(Limits::new(1 << 26));
        compare(&store, before, "empty");
        let lease = store.lease();
        let held = held_bytes();
        fill(&store, 20_000, 0, 1);
        let bare = compare(&store, before, "pages without tags");
        let each = (held_bytes() - held) / 20_000;
        let payload_and_key = taken(100) + "/articles/2026/12345".len();
        let page = each - payload_and_key;
        assert!(page <= PAGE_BYTES_TYPICAL, "a page costs {page} bytes beside payload and key");
        store.change(
            &page_store::Change { site: SITE, targets: &[ChangeTarget::Everything] },
            Strength::Drop,
        );
        compare(&store, before, "after everything was dropped, changes remembered");

        fill(&store, 20_000, 20, 5_000);
        let tagged = compare(&store, before, "pages with 20 tags");
        let edge = (tagged - bare) / (20_000 * 20);
        assert!(edge <= EDGE_BYTES_TYPICAL, "a tag on a page costs {edge} bytes");
        println!("bytes: page {page}, tag on a page {edge}");

        drop(lease);
        fill(&store, 120_000, 20, 5_000);
        assert!(store.stats().counters.evicted > 0);
        compare(&store, before, "full");
        assert!(held_bytes() - before <= (1 << 26) + (1 << 22), "the budget is kept in the heap");
        store.validate();
        drop(store);
        pages_with_a_thousand_tags(before);
        private_pages_and_waiting_keys(before);
        let left = held_bytes() - before;
        assert!(left < 10_000, "{left} bytes were not given back");
    }
}
