//! Tests which searches a changed text purges.
//!
//! They include interleavings of a scan, a settlement and a render.

use super::*;
use change_feed::schema::Schema;
use change_feed::{Cell, ChangeRule, Feed, RowImages, RowKind, Rules, Searches};
use page_store::{Change, Lease, Limits, OpenChange, Payload, Site, Store, StoreRefusal, Strength};

struct Content;

impl Payload for Content {
    fn bytes(&self) -> usize {
        0
    }
}

struct Text(&'static str);

impl RowImages for Text {
    fn kind(&self) -> RowKind {
        RowKind::Insert
    }
    fn before(&self, _: &str) -> Cell<'_> {
        Cell::LeftOut
    }
    fn after(&self, _: &str) -> Cell<'_> {
        Cell::Text(self.0.into())
    }
    fn may_have_changed(&self, _: &str) -> bool {
        true
    }
}

/// A site with search pages.
struct Stage {
    store: Store<Content>,
    terms: Terms,
    feed: Feed,
}

const SITE: Site = Site(0);

impl SearchedPages for Stage {
    fn number(&self) -> Number {
        self.store.number()
    }

    fn drop_pages(&self, targets: &[ChangeTarget<'_>]) {
        self.store.change(&Change { site: SITE, targets }, Strength::Drop);
    }
}

impl Stage {
    fn new() -> Stage {
        let searches = Some(Searches { kind: "search".into(), columns: vec!["title".into()] });
        let rule = ChangeRule { table: "news".into(), searches, ..ChangeRule::default() };
        let rules = Rules::compile(&[rule]).expect("a rule");
        let feed = Feed::new(&rules, &Schema::default());
        let store = Store::with_seed(Limits::new(1 << 24), 1);
        Stage { store, terms: Terms::new(["search".to_owned()]), feed }
    }

    /// Stores the page of a search, rendered under this lease.
    fn store(&self, search: &str, lease: &Lease) -> Result<(), StoreRefusal> {
        let tag = format!("search:{search}");
        let mut dependencies = self.store.dependencies(SITE, tag.as_bytes());
        dependencies.tag(tag.as_bytes());
        let tags = std::iter::once(tag.as_bytes());
        self.terms.depend(&mut dependencies, tags, Some(lease.number()), self);
        let key = self.store.key(tag.as_bytes());
        let stored = self.store.insert(key, 0, &dependencies, lease, Content);
        stored.map(drop).map_err(|refused| refused.reason)
    }

    fn render(&self, search: &str) -> Result<(), StoreRefusal> {
        self.store(search, &self.store.lease())
    }

    fn has(&self, search: &str) -> bool {
        let tag = format!("search:{search}");
        !self.store.candidates(self.store.key(tag.as_bytes())).as_slice().is_empty()
    }

    /// Commits a row with this text: what it touches is purged, and the change is open.
    fn open(&self, text: &'static str) -> (OpenChange, Look) {
        let mut touched = TouchedTags::default();
        self.feed.row("news", &Text(text), &mut touched);
        self.open_touched(&touched)
    }

    fn open_touched(&self, touched: &TouchedTags) -> (OpenChange, Look) {
        let (tags, look) = self.terms.look(touched).expect("a text is touched");
        let targets: Vec<_> = tags.iter().map(|tag| ChangeTarget::Tag(tag)).collect();
        (self.store.open(&Change { site: SITE, targets: &targets }, Strength::Drop), look)
    }

    /// Makes the change visible to all readers.
    fn settle(&self, (opened, look): (OpenChange, Look)) {
        self.store.settle(opened);
        self.terms.settled(look);
    }

    fn change(&self, text: &'static str) {
        self.settle(self.open(text));
    }
}

#[test]
fn a_text_drops_the_searches_for_its_words_and_no_others() {
    let stage = Stage::new();
    for search in ["PHP", "cache", "Malm%C3%B6"] {
        stage.render(search).expect("nothing has changed");
    }
    stage.change("about perl");
    assert!(stage.has("PHP") && stage.has("cache"));
    stage.change("a Cache in MALMO");
    assert!(stage.has("PHP") && !stage.has("cache") && !stage.has("Malm%C3%B6"));
    // A change of any row purges all searches.
    let mut touched = TouchedTags::default();
    stage.feed.table("news", &mut touched);
    stage.settle(stage.open_touched(&touched));
    assert!(!stage.has("PHP"));
}

#[test]
fn a_text_that_was_looked_through_before_a_word_was_known_counts_for_it() {
    let stage = Stage::new();
    let lease = stage.store.lease();
    // This scan does not include PHP, which no page has searched for yet.
    stage.change("about PHP");
    assert_eq!(stage.store("PHP", &lease), Err(StoreRefusal::ChangedSince));
    stage.render("PHP").expect("it began after the change");
    stage.change("about perl");
    assert!(stage.has("PHP"), "it is told apart");
}

#[test]
fn a_render_is_not_stored_before_its_text_is_visible() {
    let stage = Stage::new();
    let perl = stage.open("about perl");
    assert_eq!(stage.render("PHP"), Err(StoreRefusal::Unsettled));
    // The term is known now, but the row of the earlier scan may not be visible yet.
    assert_eq!(stage.render("PHP"), Err(StoreRefusal::Unsettled));
    let lease = stage.store.lease();
    stage.settle(perl);
    assert_eq!(stage.store("PHP", &lease), Err(StoreRefusal::ChangedSince));
    stage.render("PHP").expect("all is visible");
    // A text that was scanned for the term without a match does not affect it.
    let other = stage.open("about ruby");
    assert!(stage.has("PHP"));
    stage.render("PHP").expect("that row is not in it");
    assert_eq!(stage.render("ruby"), Err(StoreRefusal::Unsettled));
    stage.settle(other);
    stage.change("about PHP");
    assert!(!stage.has("PHP"));
}

#[test]
fn after_an_abandoned_change_any_text_touches_new_words() {
    let stage = Stage::new();
    stage.render("cache").expect("nothing has changed");
    let (opened, look) = stage.open("about perl");
    drop((opened, look));
    stage.store.settle_abandoned();
    stage.render("PHP").expect("nothing is open");
    stage.render("cache").expect("nothing is open");
    stage.change("about ruby");
    assert!(!stage.has("PHP"), "any text is one for it");
    assert!(stage.has("cache"), "known before");
}

#[test]
fn a_search_without_a_word_is_one_for_any_text() {
    let stage = Stage::new();
    stage.render("??").expect("nothing has changed");
    stage.change("about perl");
    assert!(!stage.has("??"));
}

#[test]
fn known_words_are_bounded_and_pages_of_forgotten_ones_are_removed() {
    let stage = Stage::new();
    for n in 0..TERMS_MAX {
        stage.render(&format!("w{n}x")).expect("nothing has changed");
    }
    let lease = stage.store.lease();
    stage.render("one more").expect("it is stored");
    assert!(!stage.has("w0x") && stage.has("one more"));
    assert_eq!(stage.store("w1x", &lease), Err(StoreRefusal::ChangedSince));
    stage.render("w1x").expect("it is known again");
    // This render began before the terms were forgotten, so it depended on any text.
    stage.render("one more").expect("it is known");
    stage.change("w1x");
    assert!(!stage.has("w1x") && stage.has("one more"));
    assert!(stage.terms.lock().terms.len() <= TERMS_MAX);
    // Of long words, fewer fit.
    for n in 0..TERMS_MAX {
        stage.render(&format!("{n} {}", "x".repeat(40))).expect("nothing has changed");
        assert!(stage.terms.lock().word_bytes <= WORD_BYTES_MAX);
    }
    assert!(!stage.has(&format!("0 {}", "x".repeat(40))));
}

#[test]
fn tags_of_other_kinds_are_no_searches() {
    let stage = Stage::new();
    let tags: [&[u8]; 2] = [b"news:4", b"\xff"];
    let mut dependencies = stage.store.dependencies(SITE, b"/");
    stage.terms.depend(&mut dependencies, tags.into_iter(), None, &stage);
    assert!(stage.terms.lock().terms.is_empty());
}

#[test]
fn searches_without_a_word_depend_on_any_text() {
    let searches: [&[&[u8]]; 6] = [
        &[b"search:\xff"],
        &[b"search"],
        &[b"search:*"],
        &[b"search:%sha256-0123456789abcdef"],
        &[b"%sha256-0123456789abcdef"],
        &["search:\u{3055}\u{304f}\u{3089}".as_bytes()],
    ];
    for tags in searches {
        assert!(!is_kept(tags), "{tags:?}");
    }
    assert!(is_kept(&[b"search:PHP", b"search:*"]), "as the library writes it");
}

/// Returns whether a page with these tags stays when another text changes.
fn is_kept(tags: &[&[u8]]) -> bool {
    let stage = Stage::new();
    let (key, lease) = (stage.store.key(b"/"), stage.store.lease());
    let mut dependencies = stage.store.dependencies(SITE, b"/");
    let since = Some(lease.number());
    stage.terms.depend(&mut dependencies, tags.iter().copied(), since, &stage);
    stage.store.insert(key, 0, &dependencies, &lease, Content).expect("nothing has changed");
    stage.change("about perl");
    !stage.store.candidates(key).as_slice().is_empty()
}
