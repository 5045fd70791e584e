//! What pages depend on and what changes: sites, targets, changes, the dependencies of a page.
//!
//! A page depends on its tags and, without saying so, on more names: everything of its site, its own URL
//! (path and query), its path where it has a query, and each directory that it lies below, the site's root
//! and more than [`DIRECTORIES_MAX`] levels left out. A change names the same things, so that dropping a
//! URL, a path, a prefix or a whole site obeys the same rules as dropping a tag.
//! A page with an owner (a private one) depends on its owner and on its URL as the owner's as well; a tag in
//! the owner's scope is another name than the tag in public.
//! Invariant: a list that was cut or over a limit is never used: it refuses the page instead.

use crate::address;
use crate::hash::{Id, Kind, Seeds};
use crate::page::Key;
use crate::refused::Refused;

/// One of the sites that share the store; the caller numbers them. Names of data are the site's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Site(pub u32);

/// Something that changed, and with it every page that depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target<'a> {
    /// A name of data, opaque bytes.
    Tag(&'a [u8]),
    /// One URL: path and query (no scheme, no host), every scheme and variant, however it is percent-encoded.
    Url(&'a [u8]),
    /// A path with any query or none. A query given here is ignored.
    Path(&'a [u8]),
    /// Every page whose path begins with these whole segments, with any query or none: `/news/` is the
    /// prefix of `/news/`, `/news/4/` and `/news/4?x`, and `/news` that of all these and of `/news`. A query
    /// given here is ignored. A directory more than eight levels deep takes with it all that lies below its
    /// eighth level.
    Prefix(&'a [u8]),
    /// Every page of the site.
    Everything,
    /// Every page of this owner.
    Owner(&'a [u8]),
    /// Pages of this owner that have the tag in the owner's scope.
    OwnerTag {
        /// Whose.
        owner: &'a [u8],
        /// The tag.
        tag: &'a [u8],
    },
    /// The owner's own pages of one URL, written as in [`Url`](Self::Url).
    OwnerUrl {
        /// Whose.
        owner: &'a [u8],
        /// Path and query.
        url: &'a [u8],
    },
}

/// The directories above a page that it depends on, counted from the root.
const DIRECTORIES_MAX: usize = 8;

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
            Self::Url(url) => ids.push(seeds.id(site, Kind::Url, &address::name(url))),
            Self::Path(path) => {
                // A page without a query has no edge for its path: its URL is its path.
                let path = address::name(split(path).0);
                let path = &*path;
                ids.push(seeds.id(site, Kind::Url, path));
                ids.push(seeds.id(site, Kind::Path, path));
            }
            Self::Prefix(prefix) => prefix_ids(&address::name(split(prefix).0), site, seeds, ids),
            Self::Everything => ids.push(everything(site, seeds)),
            Self::Owner(owner) => ids.push(seeds.id(site, Kind::Owner, owner)),
            Self::OwnerTag { owner, tag } => {
                let owner = seeds.id(site, Kind::Owner, owner);
                ids.push(seeds.owned(site, Kind::OwnerTag, owner, tag));
            }
            Self::OwnerUrl { owner, url } => {
                let owner = seeds.id(site, Kind::Owner, owner);
                ids.push(seeds.owned(site, Kind::OwnerUrl, owner, &address::name(url)));
            }
        }
    }
}

/// What lies below a prefix, and the pages whose path the prefix is itself: they have no edge for it.
fn prefix_ids(prefix: &[u8], site: Site, seeds: &Seeds, ids: &mut Vec<Id>) {
    let mut directory = prefix.to_vec();
    if directory.last() != Some(&b'/') {
        directory.push(b'/');
        Target::Path(prefix).ids(site, seeds, ids);
    }
    if directory == b"/" {
        ids.push(everything(site, seeds));
        return;
    }
    Target::Path(&directory).ids(site, seeds, ids);
    // Deeper than pages have edges: what lies below is found by its last directory that has them.
    let below = directories(&directory).nth(DIRECTORIES_MAX - 1).unwrap_or(&directory);
    ids.push(seeds.id(site, Kind::Below, below));
}

/// The directories above `path`, the root and `path` itself left out, the highest first.
fn directories(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let inside = 1..path.len().saturating_sub(1);
    inside.filter(|at| path[*at] == b'/').map(|at| &path[..=at])
}

/// What one page was made from. Made by [`Store::dependencies`](crate::Store::dependencies), which adds the
/// names every page depends on; the caller adds the tags.
#[derive(Clone, Debug)]
pub struct Dependencies {
    seeds: Seeds,
    site: Site,
    path_and_query: Box<[u8]>,
    owner: Option<Id>,
    /// Where the page is stored, if the caller says so: the place of the variant, and that of the key.
    places: Option<[Id; 2]>,
    url: Id,
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
        let path_and_query = &*address::name(path_and_query);
        let url = seeds.id(site, Kind::Url, path_and_query);
        let mut ids = vec![everything(site, seeds), url];
        let (path, query) = split(path_and_query);
        if query == Query::Present {
            ids.push(seeds.id(site, Kind::Path, path));
        }
        let above = directories(path).take(DIRECTORIES_MAX);
        ids.extend(above.map(|directory| seeds.id(site, Kind::Below, directory)));
        ids.sort_unstable();
        let implied = ids.len();
        let (seeds, path_and_query) = (seeds.clone(), path_and_query.into());
        let (owner, places, refused) = (None, None, None);
        Self {
            seeds,
            site,
            path_and_query,
            owner,
            places,
            url,
            ids,
            implied,
            tags_max,
            tag_bytes_max,
            refused,
        }
    }

    /// Makes the page private: `owner`'s, and nobody else's. Whatever drops the page without this drops it
    /// still. That nobody but the owner finds it is up to the caller's key. Said before the private tags; a
    /// page has one owner, and one with two is refused.
    pub fn owner(&mut self, owner: &[u8]) -> &mut Self {
        let owner = self.seeds.id(self.site, Kind::Owner, owner);
        match self.owner {
            Some(same) if same == owner => return self,
            Some(_) => self.refused = Some(Refused::OwnerUnclear),
            None => {}
        }
        self.owner = Some(owner);
        let url = self.seeds.owned(self.site, Kind::OwnerUrl, owner, &self.path_and_query);
        for id in [owner, url] {
            if let Err(place) = self.ids.binary_search(&id) {
                self.ids.insert(place, id);
                self.implied += 1;
            }
        }
        self
    }

    /// Says under which key and as which variant the page is stored: a later answer of the origin for that
    /// place ([`Store::supersede`](crate::Store::supersede)) forbids to share it. It is no dependency: nothing
    /// is kept for it with the page.
    pub fn place(&mut self, key: Key<'_>, variant: u32) -> &mut Self {
        self.places = Some([Some(variant), None].map(|at| self.seeds.place(key.hash, at)));
        self
    }

    /// Adds a tag in the scope of the page's owner: [`Target::OwnerTag`] names it, [`Target::Tag`] does not.
    /// Counts as a tag. Without an owner the page will not be stored.
    pub fn private_tag(&mut self, tag: &[u8]) -> &mut Self {
        match self.owner {
            Some(owner) => {
                let id = self.seeds.owned(self.site, Kind::OwnerTag, owner, tag);
                self.add_tag(tag, id)
            }
            None => {
                self.refused = Some(Refused::OwnerUnclear);
                self
            }
        }
    }

    /// Adds a tag; one that is there already counts once. A tag over the length limit, or one too many, is
    /// remembered, and the page will not be stored: a list that was cut would promise what it cannot keep.
    pub fn tag(&mut self, tag: &[u8]) -> &mut Self {
        let id = self.seeds.id(self.site, Kind::Tag, tag);
        self.add_tag(tag, id)
    }

    fn add_tag(&mut self, tag: &[u8], id: Id) -> &mut Self {
        if tag.len() > self.tag_bytes_max {
            self.refused = Some(Refused::TagTooLong);
            return self;
        }
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

    /// The name of its URL; one of [`ids`](Self::ids).
    pub(crate) fn url(&self) -> Id {
        self.url
    }

    /// The name of the page's owner, if it has one.
    pub(crate) fn owner_id(&self) -> Option<Id> {
        self.owner
    }

    pub(crate) fn places(&self) -> Option<[Id; 2]> {
        self.places
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
