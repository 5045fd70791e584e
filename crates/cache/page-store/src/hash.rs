//! Seeded 64-bit hashes of cache keys and of names (tags, URLs, paths).
//!
//! An attacker may choose URLs and tags. Every store therefore has its own random seeds, and every process
//! its own random constants, so nobody outside can produce collisions. A collision costs a page, never
//! freshness. Two keys with one hash displace each other, because the whole key is compared. Two names with
//! one hash are one dependency, and a change of either drops the pages of both. The names themselves are
//! not stored. Hashes differ between processes: never write one to disk.

use foldhash::SharedSeed;
use foldhash::quality::SeedableRandomState;
use random_number::random_number;
use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher};
use std::sync::OnceLock;

/// One of the sites that share the store, numbered by the caller. Each site has its own names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Site(pub u32);

/// The hash of a name that a page can depend on. It is stored in two halves, so that it needs no 8-byte
/// alignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Id([u32; 2]);

impl Id {
    pub(crate) fn of(hash: u64) -> Id {
        Id([(hash >> 32) as u32, hash as u32])
    }

    pub(crate) fn bits(self) -> u64 {
        u64::from(self.0[0]) << 32 | u64::from(self.0[1])
    }
}

impl Hash for Id {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.bits());
    }
}

/// The kind of a hashed name. It distinguishes the tag `/a` from the URL `/a`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Tag = 1,
    Url = 2,
    Path = 3,
    Everything = 4,
    Below = 5,
    Owner = 6,
    OwnerTag = 7,
    OwnerUrl = 8,
    Place = 9,
}

/// The hash seeds of one store.
#[derive(Clone, Debug)]
pub(crate) struct Seeds {
    key: SeedableRandomState,
    name: SeedableRandomState,
}

impl Seeds {
    /// Unpredictable seeds, from the system's source of randomness.
    pub(crate) fn random() -> Self {
        Self::from_seed(random_number())
    }

    /// Seeds that are the same for the same number within one process.
    pub(crate) fn from_seed(seed: u64) -> Self {
        let source = SeedableRandomState::with_seed(seed, process_seed());
        let state =
            |salt: u64| SeedableRandomState::with_seed(source.hash_one(salt), process_seed());
        Self { key: state(1), name: state(2) }
    }

    /// The hash of a key's bytes.
    pub(crate) fn key(&self, bytes: &[u8]) -> u64 {
        let mut hasher = self.key.build_hasher();
        hasher.write(bytes);
        hasher.finish()
    }

    /// The hash of a name of `site`.
    pub(crate) fn id(&self, site: Site, kind: Kind, name: &[u8]) -> Id {
        self.scoped(site, kind, None, name)
    }

    /// The hash of a name in the scope of an owner, given the hash of the owner.
    pub(crate) fn owned(&self, site: Site, kind: Kind, owner: Id, name: &[u8]) -> Id {
        self.scoped(site, kind, Some(owner), name)
    }

    /// The hash of a page's place: the hash of its key and its variant. `None` stands for any variant.
    pub(crate) fn place(&self, key: u64, variant: Option<u32>) -> Id {
        let mut hasher = self.name.build_hasher();
        hasher.write_u64(Kind::Place as u64);
        hasher.write_u64(key);
        hasher.write_u64(variant.map_or(u64::MAX, u64::from));
        Id::of(hasher.finish())
    }

    fn scoped(&self, site: Site, kind: Kind, owner: Option<Id>, name: &[u8]) -> Id {
        let mut hasher = self.name.build_hasher();
        hasher.write_u64((u64::from(site.0) << 8) | kind as u64);
        if let Some(owner) = owner {
            hasher.write_u64(owner.bits());
        }
        hasher.write(name);
        Id::of(hasher.finish())
    }
}

/// A hasher that returns the hash that the key already is.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Identity(u64);

/// Builds [`Identity`] for maps whose keys are hashes.
pub(crate) type BuildIdentity = BuildHasherDefault<Identity>;

impl Hasher for Identity {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

fn process_seed() -> &'static SharedSeed {
    static SEED: OnceLock<SharedSeed> = OnceLock::new();
    SEED.get_or_init(|| SharedSeed::from_u64(random_number()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_sites_and_names_are_kept_apart() {
        let seeds = Seeds::from_seed(1);
        let mut ids = Vec::new();
        for site in [Site(0), Site(1), Site(256)] {
            for kind in [Kind::Tag, Kind::Url, Kind::Path, Kind::Everything, Kind::Below] {
                for name in [&b""[..], b"\0", b"\0\0", b"/a", b"/a/b", b"news:4"] {
                    ids.push(seeds.id(site, kind, name));
                }
            }
            for owner in [&b""[..], b"a", b"/a"].map(|name| seeds.id(site, Kind::Owner, name)) {
                ids.push(owner);
                for kind in [Kind::OwnerTag, Kind::OwnerUrl] {
                    ids.extend([&b""[..], b"/a", b"a"].map(|n| seeds.owned(site, kind, owner, n)));
                }
            }
        }
        let before = ids.len();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), before);
        assert!(ids.iter().all(|id| Id::of(id.bits()) == *id));
    }

    #[test]
    fn places_differ_by_key_and_variant() {
        let seeds = Seeds::from_seed(1);
        let keys = [0, 1, u64::MAX];
        let variants = [None, Some(0), Some(1), Some(u32::MAX)];
        let place = |key| variants.map(|variant| seeds.place(key, variant));
        let mut ids: Vec<Id> = keys.into_iter().flat_map(place).collect();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), keys.len() * variants.len());
    }

    #[test]
    fn stores_hash_differently() {
        let (one, other) = (Seeds::random(), Seeds::random());
        assert_ne!(one.key(b"/"), other.key(b"/"));
        let tag = |seeds: &Seeds| seeds.id(Site(0), Kind::Tag, b"news");
        assert_ne!(tag(&one), tag(&other));
        assert_eq!(Seeds::from_seed(7).key(b"/"), Seeds::from_seed(7).key(b"/"));
    }
}
