//! Sites, dependencies and changes: the names that pages depend on and that changes affect.
//!
//! A page depends on its tags and, implicitly, on further names: its whole site, its URL (path and query),
//! its path if it has a query, and the directories above it. The root and levels deeper than
//! [`DIRECTORIES_MAX`] are no such directories. A change affects the same names: purging a URL, a path, a
//! prefix or a site follows the rules for tags. A page with an owner (a private page) also depends on its
//! owner and on its URL in the owner's scope. A tag in the scope of an owner is not the same name as the
//! public tag. Invariant: a truncated list of tags, or one over a limit, is never used; it refuses the page
//! instead.

use crate::address::normal_spelling;
use crate::hash::{Id, Kind, Seeds, Site};
use crate::page::Key;
use crate::refused::StoreRefusal;

/// The target of a change: every page that depends on it is affected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeTarget<'a> {
    /// A tag, as opaque bytes.
    Tag(&'a [u8]),
    /// One URL: path and query, without scheme and host. It covers every scheme, variant and
    /// percent-encoding.
    Url(&'a [u8]),
    /// A path with any query or none. A query in the value is ignored.
    Path(&'a [u8]),
    /// Every page whose path begins with these whole segments, with any query or none. `/news/` covers
    /// `/news/`, `/news/4/` and `/news/4?x`; `/news` covers these and `/news` itself. A query in the value
    /// is ignored. A prefix of more than eight levels affects everything below its eighth level.
    Prefix(&'a [u8]),
    /// Every page of the site.
    Everything,
    /// Every page of this owner.
    Owner(&'a [u8]),
    /// The pages of this owner that have the tag in the owner's scope.
    OwnerTag {
        /// The owner.
        owner: &'a [u8],
        /// The tag.
        tag: &'a [u8],
    },
    /// The owner's private pages of one URL, written as in [`Url`](Self::Url).
    OwnerUrl {
        /// The owner.
        owner: &'a [u8],
        /// Path and query.
        url: &'a [u8],
    },
}

/// The maximum number of directories above a page that it depends on, counted from the root.
const DIRECTORIES_MAX: usize = 8;

/// A change: targets of one site that changed at once and get one number.
#[derive(Clone, Copy, Debug)]
pub struct Change<'a> {
    /// The site of the targets.
    pub site: Site,
    /// The targets. Repeated targets count once.
    pub targets: &'a [ChangeTarget<'a>],
}

/// The effect of a change on the pages that it affects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strength {
    /// The pages leave the store (a hard invalidation).
    Drop,
    /// The pages stay, marked, and may be used only as stale where the site allows it (a soft invalidation).
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

impl ChangeTarget<'_> {
    /// Adds the hashes of the names whose pages this target affects.
    pub(crate) fn ids(&self, site: Site, seeds: &Seeds, ids: &mut Vec<Id>) {
        match self {
            Self::Tag(tag) => ids.push(seeds.id(site, Kind::Tag, tag)),
            Self::Url(url) => ids.push(seeds.id(site, Kind::Url, &normal_spelling(url))),
            Self::Path(path) => {
                // A page without a query has no edge for its path: its URL is its path.
                let path = normal_spelling(split(path).0);
                let path = &*path;
                ids.push(seeds.id(site, Kind::Url, path));
                ids.push(seeds.id(site, Kind::Path, path));
            }
            Self::Prefix(prefix) => prefix_ids(&normal_spelling(split(prefix).0), site, seeds, ids),
            Self::Everything => ids.push(everything(site, seeds)),
            Self::Owner(owner) => ids.push(seeds.id(site, Kind::Owner, owner)),
            Self::OwnerTag { owner, tag } => {
                let owner = seeds.id(site, Kind::Owner, owner);
                ids.push(seeds.owned(site, Kind::OwnerTag, owner, tag));
            }
            Self::OwnerUrl { owner, url } => {
                let owner = seeds.id(site, Kind::Owner, owner);
                ids.push(seeds.owned(site, Kind::OwnerUrl, owner, &normal_spelling(url)));
            }
        }
    }
}

/// Adds the hashes for everything below a prefix, and for pages whose path is the prefix itself.
fn prefix_ids(prefix: &[u8], site: Site, seeds: &Seeds, ids: &mut Vec<Id>) {
    let mut directory = prefix.to_vec();
    if directory.last() != Some(&b'/') {
        directory.push(b'/');
        ChangeTarget::Path(prefix).ids(site, seeds, ids);
    }
    if directory == b"/" {
        ids.push(everything(site, seeds));
        return;
    }
    ChangeTarget::Path(&directory).ids(site, seeds, ids);
    // Pages have no edges for deeper levels; their last directory with an edge covers them.
    let below = directories(&directory).nth(DIRECTORIES_MAX - 1).unwrap_or(&directory);
    ids.push(seeds.id(site, Kind::Below, below));
}

/// The directories above `path`, from the highest, without the root and `path` itself.
fn directories(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let inside = 1..path.len().saturating_sub(1);
    inside.filter(|at| path[*at] == b'/').map(|at| &path[..=at])
}

/// The dependencies of one page. [`Store::dependencies`](crate::Store::dependencies) creates them with the
/// names that every page depends on; the caller adds the tags.
#[derive(Clone, Debug)]
pub struct Dependencies {
    seeds: Seeds,
    site: Site,
    path_and_query: Box<[u8]>,
    owner: Option<Id>,
    /// The place under which the page is stored, if the caller has set it: that of the variant, and that of
    /// the key.
    places: Option<[Id; 2]>,
    url: Id,
    /// Sorted, without duplicates.
    ids: Vec<Id>,
    /// The number of `ids` that are not tags.
    implied: usize,
    tags_max: usize,
    tag_bytes_max: usize,
    refused: Option<StoreRefusal>,
}

impl Dependencies {
    pub(crate) fn new(
        seeds: &Seeds,
        site: Site,
        path_and_query: &[u8],
        tags_max: usize,
        tag_bytes_max: usize,
    ) -> Self {
        let path_and_query = &*normal_spelling(path_and_query);
        let url = seeds.id(site, Kind::Url, path_and_query);
        let mut ids = vec![everything(site, seeds), url];
        let (path, has_query) = split(path_and_query);
        if has_query {
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

    /// Makes the page private to `owner`. Changes of its public names still affect it. The caller's key
    /// must ensure that only the owner finds the page. Call this before private tags are added. A page with
    /// two owners is refused.
    pub fn owner(&mut self, owner: &[u8]) -> &mut Self {
        let owner = self.seeds.id(self.site, Kind::Owner, owner);
        match self.owner {
            Some(same) if same == owner => return self,
            Some(_) => self.refused = Some(StoreRefusal::OwnerUnclear),
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

    /// Sets the key and the variant under which the page is stored. A later response of the origin for that
    /// place ([`Store::supersede`](crate::Store::supersede)) then forbids to share the page. This is no
    /// dependency and takes no memory in the page.
    pub fn place(&mut self, key: Key<'_>, variant: u32) -> &mut Self {
        self.places = Some([Some(variant), None].map(|at| self.seeds.place(key.hash, at)));
        self
    }

    /// Adds a tag in the scope of the page's owner, which [`ChangeTarget::OwnerTag`] affects and [`ChangeTarget::Tag`]
    /// does not. It counts as a tag. A page without an owner is not stored.
    pub fn private_tag(&mut self, tag: &[u8]) -> &mut Self {
        match self.owner {
            Some(owner) => {
                let id = self.seeds.owned(self.site, Kind::OwnerTag, owner, tag);
                self.add_tag(tag, id)
            }
            None => {
                self.refused = Some(StoreRefusal::OwnerUnclear);
                self
            }
        }
    }

    /// Adds a tag; duplicates count once. A tag over the length limit, or too many tags, prevent the page
    /// from being stored, because a truncated list would miss changes.
    pub fn tag(&mut self, tag: &[u8]) -> &mut Self {
        let id = self.seeds.id(self.site, Kind::Tag, tag);
        self.add_tag(tag, id)
    }

    fn add_tag(&mut self, tag: &[u8], id: Id) -> &mut Self {
        if tag.len() > self.tag_bytes_max {
            self.refused = Some(StoreRefusal::TagTooLong);
            return self;
        }
        if let Err(place) = self.ids.binary_search(&id) {
            if self.tags() == self.tags_max {
                self.refused = Some(StoreRefusal::TooManyTags);
            } else {
                self.ids.insert(place, id);
            }
        }
        self
    }

    /// Records that the caller could not read the full list of tags; the page will not be stored.
    pub fn cut(&mut self) -> &mut Self {
        self.refused = Some(StoreRefusal::TooManyTags);
        self
    }

    /// The number of different tags.
    pub fn tags(&self) -> usize {
        self.ids.len() - self.implied
    }

    /// The site of the page.
    pub fn site(&self) -> Site {
        self.site
    }

    pub(crate) fn ids(&self) -> &[Id] {
        &self.ids
    }

    /// The hash of the page's URL, which is one of [`ids`](Self::ids).
    pub(crate) fn url(&self) -> Id {
        self.url
    }

    /// The hash of the page's owner, if it has one.
    pub(crate) fn owner_id(&self) -> Option<Id> {
        self.owner
    }

    pub(crate) fn places(&self) -> Option<[Id; 2]> {
        self.places
    }

    pub(crate) fn refused(&self) -> Option<StoreRefusal> {
        self.refused
    }
}

/// The name that every page of a site depends on.
pub(crate) fn everything(site: Site, seeds: &Seeds) -> Id {
    seeds.id(site, Kind::Everything, b"")
}

/// Returns the path, and whether a query follows it.
fn split(path_and_query: &[u8]) -> (&[u8], bool) {
    match path_and_query.iter().position(|byte| *byte == b'?') {
        Some(at) => (&path_and_query[..at], true),
        None => (path_and_query, false),
    }
}
