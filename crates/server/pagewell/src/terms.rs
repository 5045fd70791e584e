//! What pages look for (`search:PHP`), so that a text that has changed drops the searches that it enters, leaves
//! or stands in, and no others ([0070](../../../docs/decisions/0070-searches.md)).
//!
//! A changed text is looked through for the words that are known, and the tags of those that occur in it change.
//! Invariant: a page depends on its tag alone only if its word was known before its lease, and every text that
//! was looked through without it had settled by then; any other depends on *any text* of its kind as well.
//! Checked against: looked through → known → lease → rendered from the row of before, which is still what
//! readers see → stored: the look has not settled, and any text is open. What is known is bounded: for one more,
//! all of it changes and is forgotten, under the lock; who was to depend on it began before, and is not stored.
//!
//! Lock: that of what is known; the store's are taken under it, by that change and to read its clock.

use change_feed::text::{Words, words};
use change_feed::{TouchedSearches, TouchedTags};
use page_store::{Change, ChangeTarget, Dependencies, Number, Payload, Site, Store, Strength};
use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many words are known, all kinds together.
const TERMS_MAX: usize = 4_096;
/// How many bytes their words have together: what looks for them takes some twenty times as many.
const WORD_BYTES_MAX: usize = 128 << 10;
/// The longest tag of which is known what it looks for, in bytes.
const TAG_BYTES_MAX: usize = 256;

/// The library's for all of a kind, beside each tag of one.
const ANY: &str = "*";
/// How a tag begins that the library found too long, and what it is of a kind.
const HASHED: &str = "%sha256-";

/// How the names of *any text* begin.
const ANY_TEXT: &[u8] = b"\0any-text ";

/// What the pages of a site look for.
pub struct Terms {
    /// How their tags begin.
    kinds: BTreeSet<String>,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// By their tags.
    terms: HashMap<Arc<str>, Term>,
    word_bytes: usize,
    /// What looks for all of them; none since one was added.
    finder: Option<Arc<Finder>>,
    /// Looks that have not settled.
    looks: BTreeSet<u64>,
    /// How many looks there have been.
    looks_begun: u64,
}

struct Term {
    words: Vec<String>,
    /// The first look that knew it.
    look: u64,
    /// From when on all looks before that have settled; none: nobody has seen that yet.
    from: Option<Number>,
}

/// All that is known, as a look uses it.
struct Finder {
    /// None where they are too many for memory: any of them may occur.
    words: Option<Words>,
    /// Whose each word is.
    tags: Vec<Arc<str>>,
}

/// Texts were looked through for a change. [`Terms::settled`] when the change is settled; dropped without, the
/// words that become known from then on are told apart by nobody.
#[must_use = "it is settled when its change is"]
pub struct Look(u64);

/// The name of *any text* of a kind: no field of a response can name it.
fn any_text(kind: &str) -> Vec<u8> {
    [ANY_TEXT, kind.as_bytes()].concat()
}

/// Whether it is the name of any text.
pub fn is_any_text(tag: &[u8]) -> bool {
    tag.starts_with(ANY_TEXT)
}

impl Terms {
    /// Of these kinds.
    pub fn new(kinds: impl IntoIterator<Item = String>) -> Terms {
        Terms { kinds: kinds.into_iter().collect(), known: Mutex::default() }
    }

    /// Adds what a page with these tags depends on besides. `since` is its lease's number; none: nobody knows
    /// which changes it has seen.
    pub fn depend<'t, P: Payload>(
        &self,
        dependencies: &mut Dependencies,
        tags: impl Iterator<Item = &'t [u8]>,
        since: Option<Number>,
        (store, site): (&Store<P>, Site),
    ) {
        if self.kinds.is_empty() {
            return;
        }
        let (mut any, mut whole, mut apart) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for tag in tags {
            // What is no text is no search that is told apart.
            let text = String::from_utf8_lossy(tag);
            if text.starts_with(HASHED) {
                any.extend(self.kinds.iter());
            }
            let (kind, search) = text.split_once(':').unwrap_or((&text, ANY));
            let Some(kind) = self.kinds.get(kind) else { continue };
            let is_text = matches!(text, Cow::Borrowed(_));
            match is_text && search != ANY && self.tells_apart(&text, since, store, site) {
                true => drop(apart.insert(kind)),
                // The library's, beside each other tag of a kind; by itself it means what it says.
                false if search == ANY => drop(whole.insert(kind)),
                false => drop(any.insert(kind)),
            }
        }
        any.extend(whole.difference(&apart));
        for kind in any {
            dependencies.tag(&any_text(kind));
        }
    }

    /// Whether every change of a text since then was looked through for this. It is known from now on.
    fn tells_apart<P: Payload>(
        &self,
        tag: &str,
        since: Option<Number>,
        store: &Store<P>,
        site: Site,
    ) -> bool {
        let Some(since) = since else { return false };
        let mut known = self.lock();
        if !known.terms.contains_key(tag) {
            let Some(words) = words_of(tag) else { return false };
            let bytes = words.iter().map(String::len).sum::<usize>();
            if known.terms.len() >= TERMS_MAX || known.word_bytes + bytes > WORD_BYTES_MAX {
                known.forget_all(store, site);
            }
            let look = known.looks_begun;
            known.terms.insert(tag.into(), Term { words, look, from: None });
            known.word_bytes += bytes;
            known.finder = None;
        }
        let oldest = known.looks.first().copied();
        let Some(term) = known.terms.get_mut(tag) else { return false };
        if term.from.is_none() && oldest.is_none_or(|look| look >= term.look) {
            term.from = Some(store.number());
        }
        term.from.is_some_and(|from| since >= from)
    }

    /// The tags that change with what was touched, and what is to be settled with them; none: no text was.
    pub fn look(&self, touched: &TouchedTags) -> Option<(Vec<Vec<u8>>, Look)> {
        touched.searches().next()?;
        let (look, finder) = self.lock().begin_look();
        let mut tags = BTreeSet::new();
        for (kind, searched) in touched.searches() {
            tags.insert(any_text(kind));
            let is_of_kind = |tag: &str| tag.split_once(':').is_some_and(|(own, _)| own == kind);
            let mut add = |tag: &str| {
                if is_of_kind(tag) {
                    tags.insert(tag.into());
                }
            };
            match searched {
                TouchedSearches::Texts(texts) => {
                    texts.iter().for_each(|text| finder.find(text, &mut add))
                }
                TouchedSearches::Any => finder.tags.iter().for_each(|tag| add(tag)),
            }
        }
        Some((tags.into_iter().collect(), look))
    }

    /// The change that texts were looked through for is settled.
    pub fn settled(&self, look: Look) {
        self.lock().looks.remove(&look.0);
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn words_of(tag: &str) -> Option<Vec<String>> {
    let (_, search) = tag.split_once(':').filter(|_| tag.len() <= TAG_BYTES_MAX)?;
    words(search).filter(|_| !search.starts_with(HASHED))
}

impl Known {
    /// A look at all that is known now.
    fn begin_look(&mut self) -> (Look, Arc<Finder>) {
        let look = self.looks_begun;
        self.looks_begun += 1;
        self.looks.insert(look);
        let terms = &self.terms;
        let finder = self.finder.get_or_insert_with(|| Arc::new(Finder::new(terms)));
        (Look(look), finder.clone())
    }

    /// All of it changes, and is forgotten.
    fn forget_all<P: Payload>(&mut self, store: &Store<P>, site: Site) {
        let targets: Vec<_> =
            self.terms.keys().map(|tag| ChangeTarget::Tag(tag.as_bytes())).collect();
        store.change(&Change { site, targets: &targets }, Strength::Drop);
        tracing::info!(event = "searches-forgotten", searches = targets.len());
        (self.terms, self.word_bytes, self.finder) = (HashMap::new(), 0, None);
    }
}

impl Finder {
    fn new(terms: &HashMap<Arc<str>, Term>) -> Finder {
        let each = |(tag, term): (&Arc<str>, &'_ Term)| vec![tag.clone(); term.words.len()];
        let tags = terms.iter().flat_map(each).collect();
        let words = terms.values().flat_map(|term| &term.words).map(String::as_str);
        Finder { words: Words::new(words), tags }
    }

    /// Calls `found` with the tag of each that may occur in a text.
    fn find(&self, text: &str, found: &mut impl FnMut(&str)) {
        match &self.words {
            Some(words) => words.find(text, |at| found(&self.tags[at])),
            None => self.tags.iter().for_each(|tag| found(tag)),
        }
    }
}

#[cfg(test)]
#[path = "terms_tests.rs"]
mod tests;
