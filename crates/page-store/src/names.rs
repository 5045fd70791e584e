//! What pages depend on and what changes: sites, targets, changes, the dependencies of a page.
//!
//! A page depends on its tags and, without saying so, on three names more: everything of its site, its own
//! URL (path and query) and, where it has a query, its path. A change names the same things, so that
//! dropping a URL, a path or a whole site obeys the same rules as dropping a tag.
//! Invariant: a list that was cut or over a limit is never used: it refuses the page instead.

use crate::hash::{Id, Kind, Seeds};
use crate::refused::Refused;

/// One of the sites that share the store; the caller numbers them. Names of data are the site's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Site(pub u32);

/// Something that changed, and with it every page that depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target<'a> {
    /// A name of data, opaque bytes.
    Tag(&'a [u8]),
    /// One URL: path and query as the pages were stored with (no scheme, no host), every scheme and variant.
    Url(&'a [u8]),
    /// A path with any query or none. A query given here is ignored.
    Path(&'a [u8]),
    /// Every page of the site.
    Everything,
}

/// A change: things of one site that changed at once and get one number.
#[derive(Clone, Copy, Debug)]
pub struct Change<'a> {
    /// Whose names these are.
    pub site: Site,
    /// What changed. Repeated targets count once.
    pub targets: &'a [Target<'a>],
}

/// What becomes of the pages that a change touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strength {
    /// They leave the store (a hard invalidation).
    Drop,
    /// They stay, marked: usable only as stale, where the site allows it (a soft invalidation).
    Mark,
}

impl Change<'_> {
    /// The hashes of the targets, each once.
    pub(crate) fn ids(&self, seeds: &Seeds) -> Vec<Id> {
        let mut ids = Vec::with_capacity(self.targets.len());
        for target in self.targets {
            target.ids(self.site, seeds, &mut ids);
        }
        ids.sort_unstable();
        ids.dedup();
        ids
    }
}

impl Target<'_> {
    /// Adds the hashes whose pages this target touches.
    pub(crate) fn ids(&self, site: Site, seeds: &Seeds, ids: &mut Vec<Id>) {
        match self {
            Self::Tag(tag) => ids.push(seeds.id(site, Kind::Tag, tag)),
            Self::Url(url) => ids.push(seeds.id(site, Kind::Url, url)),
            Self::Path(path) => {
                // A page without a query has no edge for its path: its URL is its path.
                let (path, _) = split(path);
                ids.push(seeds.id(site, Kind::Url, path));
                ids.push(seeds.id(site, Kind::Path, path));
            }
            Self::Everything => ids.push(everything(site, seeds)),
        }
    }
}

/// What one page was made from. Made by [`Store::dependencies`](crate::Store::dependencies), which adds the
/// names every page depends on; the caller adds the tags.
#[derive(Clone, Debug)]
pub struct Dependencies {
    seeds: Seeds,
    site: Site,
    /// Sorted, each once.
    ids: Vec<Id>,
    /// How many of `ids` are not tags.
    implied: usize,
    tags_max: usize,
    tag_bytes_max: usize,
    refused: Option<Refused>,
}

impl Dependencies {
    pub(crate) fn new(
        seeds: &Seeds,
        site: Site,
        path_and_query: &[u8],
        tags_max: usize,
        tag_bytes_max: usize,
    ) -> Self {
        let mut ids = vec![everything(site, seeds), seeds.id(site, Kind::Url, path_and_query)];
        let (path, query) = split(path_and_query);
        if query == Query::Present {
            ids.push(seeds.id(site, Kind::Path, path));
        }
        ids.sort_unstable();
        let implied = ids.len();
        let seeds = seeds.clone();
        Self { seeds, site, ids, implied, tags_max, tag_bytes_max, refused: None }
    }

    /// Adds a tag; one that is there already counts once. A tag over the length limit, or one too many, is
    /// remembered, and the page will not be stored: a list that was cut would promise what it cannot keep.
    pub fn tag(&mut self, tag: &[u8]) -> &mut Self {
        if tag.len() > self.tag_bytes_max {
            self.refused = Some(Refused::TagTooLong);
            return self;
        }
        let id = self.seeds.id(self.site, Kind::Tag, tag);
        if let Err(place) = self.ids.binary_search(&id) {
            if self.tags() == self.tags_max {
                self.refused = Some(Refused::TooManyTags);
            } else {
                self.ids.insert(place, id);
            }
        }
        self
    }

    /// Says that the caller could not read the list of tags in full; the page will not be stored.
    pub fn cut(&mut self) -> &mut Self {
        self.refused = Some(Refused::TooManyTags);
        self
    }

    /// How many different tags there are.
    pub fn tags(&self) -> usize {
        self.ids.len() - self.implied
    }

    /// The site whose names these are.
    pub fn site(&self) -> Site {
        self.site
    }

    pub(crate) fn ids(&self) -> &[Id] {
        &self.ids
    }

    pub(crate) fn refused(&self) -> Option<Refused> {
        self.refused
    }
}

/// The name that every page of a site depends on.
pub(crate) fn everything(site: Site, seeds: &Seeds) -> Id {
    seeds.id(site, Kind::Everything, b"")
}

#[derive(PartialEq, Eq)]
enum Query {
    Present,
    Absent,
}

fn split(path_and_query: &[u8]) -> (&[u8], Query) {
    match path_and_query.iter().position(|byte| *byte == b'?') {
        Some(at) => (&path_and_query[..at], Query::Present),
        None => (path_and_query, Query::Absent),
    }
}
