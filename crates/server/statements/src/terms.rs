//! The search terms of pages (`search:PHP`). A changed text purges only the search pages whose
//! words it gains, loses or contains ([0070](../../../docs/decisions/automatic-dependencies.md)).
//!
//! A changed text is scanned for the known words, and the tags of the words that occur in it
//! change. Invariant: a page depends on its tag alone only under two conditions. Its word was known
//! before its lease, and every scan without that word had settled by then. Any other page also
//! depends on *any text* of its kind. Checked interleaving: scan → word becomes known → lease →
//! render from the old row, which readers still see → store. The scan has not settled, so *any
//! text* is open and the page is rejected. The number of words is bounded. At the bound, all words
//! change and are forgotten, under the lock; renders that relied on them are rejected. Lock: that
//! of the known words. The store's locks are taken under it, for that change and to read its clock.

use change_feed::text::{Words, words};
use change_feed::{TouchedSearches, TouchedTags};
use page_store::{ChangeTarget, Dependencies, Number};
use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most known words, over all kinds.
const TERMS_MAX: usize = 4_096;
/// The most bytes of known words together. The search automaton takes about twenty times as much.
const WORD_BYTES_MAX: usize = 128 << 10;
/// The longest tag, in bytes, whose words are parsed.
const TAG_BYTES_MAX: usize = 256;

/// The search part of the library's tag for all searches of a kind, which accompanies each search
/// tag.
const ANY: &str = "*";
/// The prefix of a tag that the library has hashed because it was too long. Its words are unknown.
const HASHED: &str = "%sha256-";

/// The prefix of the tags for *any text*.
const ANY_TEXT: &[u8] = b"\0any-text ";

/// The known search terms of a site.
pub struct Terms {
    /// The prefixes of search tags, such as `search`.
    kinds: BTreeSet<String>,
    known: Mutex<TermTable>,
}

#[derive(Default)]
struct TermTable {
    /// The known terms by their tags.
    terms: HashMap<Arc<str>, Term>,
    word_bytes: usize,
    /// The automaton that finds all words; `None` since a term was added.
    finder: Option<Arc<Finder>>,
    /// The scans that have not settled.
    looks: BTreeSet<u64>,
    /// The number of scans so far.
    looks_begun: u64,
}

struct Term {
    words: Vec<String>,
    /// The number of the first scan that included the term.
    look: u64,
    /// The clock's value at which all earlier scans had settled; `None`: not known yet.
    from: Option<Number>,
}

/// The known words at the time of a scan.
struct Finder {
    /// `None` if there are too many words for memory: any of them may occur.
    words: Option<Words>,
    /// The tag that each word belongs to.
    tags: Vec<Arc<str>>,
}

/// A scan of texts for a change. Pass it to [`Terms::settled`] when the change is settled. If it is
/// dropped instead, terms that become known later always depend on *any text*.
#[must_use = "it is settled when its change is"]
pub struct Look(u64);

/// Returns the tag for *any text* of a kind. No response field can contain it.
fn any_text(kind: &str) -> Vec<u8> {
    [ANY_TEXT, kind.as_bytes()].concat()
}

/// Returns whether a tag is one for *any text*.
pub fn is_any_text(tag: &[u8]) -> bool {
    tag.starts_with(ANY_TEXT)
}

/// The pages that depend on searches, as far as the searches concern them.
pub trait SearchedPages {
    /// The number of the last change.
    fn number(&self) -> Number;

    /// Purges the pages with these dependencies before it returns.
    fn drop_pages(&self, targets: &[ChangeTarget<'_>]);
}

impl Terms {
    /// Creates the state for search tags of these kinds.
    pub fn new(kinds: impl IntoIterator<Item = String>) -> Terms {
        Terms { kinds: kinds.into_iter().collect(), known: Mutex::default() }
    }

    /// Adds the dependencies of a page with these tags. `since` is its lease's number; `None`: it
    /// is unknown which changes the page includes.
    pub fn depend<'t>(
        &self,
        dependencies: &mut Dependencies,
        tags: impl Iterator<Item = &'t [u8]>,
        since: Option<Number>,
        pages: &dyn SearchedPages,
    ) {
        if self.kinds.is_empty() {
            return;
        }
        let (mut any, mut whole, mut apart) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        for tag in tags {
            // A tag that is not UTF-8 cannot be a known term.
            let text = String::from_utf8_lossy(tag);
            if text.starts_with(HASHED) {
                any.extend(self.kinds.iter());
            }
            let (kind, search) = text.split_once(':').unwrap_or((&text, ANY));
            let Some(kind) = self.kinds.get(kind) else { continue };
            let is_text = matches!(text, Cow::Borrowed(_));
            let kinds = if is_text && search != ANY && self.tells_apart(&text, since, pages) {
                &mut apart
            } else if search == ANY {
                // The library adds this tag to each search tag. Alone, it stands for every search.
                &mut whole
            } else {
                &mut any
            };
            kinds.insert(kind);
        }
        any.extend(whole.difference(&apart));
        for kind in any {
            dependencies.tag(&any_text(kind));
        }
    }

    /// Whether every text change since `since` was scanned for this tag's word. The word is known
    /// from now on.
    fn tells_apart(&self, tag: &str, since: Option<Number>, pages: &dyn SearchedPages) -> bool {
        let Some(since) = since else { return false };
        let mut known = self.lock();
        if !known.terms.contains_key(tag) {
            let Some(words) = words_of(tag) else { return false };
            let bytes = words.iter().map(String::len).sum::<usize>();
            if known.terms.len() >= TERMS_MAX || known.word_bytes + bytes > WORD_BYTES_MAX {
                known.forget_all(pages);
            }
            let look = known.looks_begun;
            known.terms.insert(tag.into(), Term { words, look, from: None });
            known.word_bytes += bytes;
            known.finder = None;
        }
        let oldest = known.looks.first().copied();
        let Some(term) = known.terms.get_mut(tag) else { return false };
        if term.from.is_none() && oldest.is_none_or(|look| look >= term.look) {
            term.from = Some(pages.number());
        }
        term.from.is_some_and(|from| since >= from)
    }

    /// Scans the changed texts. Returns the tags that change, and the scan to settle; `None`: no
    /// text changed.
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

    /// Records that the change of a scan is settled.
    pub fn settled(&self, look: Look) {
        self.lock().looks.remove(&look.0);
    }

    fn lock(&self) -> MutexGuard<'_, TermTable> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn words_of(tag: &str) -> Option<Vec<String>> {
    let (_, search) = tag.split_once(':').filter(|_| tag.len() <= TAG_BYTES_MAX)?;
    words(search).filter(|_| !search.starts_with(HASHED))
}

impl TermTable {
    /// Begins a scan for all terms that are known now.
    fn begin_look(&mut self) -> (Look, Arc<Finder>) {
        let look = self.looks_begun;
        self.looks_begun += 1;
        self.looks.insert(look);
        let terms = &self.terms;
        let finder = self.finder.get_or_insert_with(|| Arc::new(Finder::new(terms)));
        (Look(look), finder.clone())
    }

    /// Purges all pages that depend on known terms, and forgets the terms.
    fn forget_all(&mut self, pages: &dyn SearchedPages) {
        let targets: Vec<_> =
            self.terms.keys().map(|tag| ChangeTarget::Tag(tag.as_bytes())).collect();
        pages.drop_pages(&targets);
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

    /// Calls `found` with the tag of each word that may occur in a text.
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
