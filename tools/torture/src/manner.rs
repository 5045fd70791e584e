//! The ways in which a change is published: the modes of a run, and the draws of each.
//!
//! | mode | the change is published by |
//! |---|---|
//! | mixed | headers and the control interface in turn |
//! | headers | the response to a POST that went through (RFC 9875, RFC 9111 section 4.4) |
//! | api | a call of the control interface, after the commit |
//! | purge | `PURGE` of every address that shows it, after the commit |
//! | ban | `BAN`, `PURGEKEYS` and `PURGETAGS` with tags; `BAN` with an expression over addresses |
//! | keys | `PURGEKEYS` with tags, `PURGE` of addresses: a Varnish with xkey understands both as well |
//! | soft | a soft call of the control interface; one in ten is hard |
//! | litespeed | `X-LiteSpeed-Purge` on the response to a POST, or to a GET |

use harness::Chance;

/// One change in so many drops everything, where there is a way to say that.
const ALL_ONE_IN: usize = 200;
/// In the mode `soft` one change in so many is hard.
const HARD_ONE_IN: usize = 10;

/// The way in which a run's changes are published.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum By {
    /// By headers and by the control interface, in turn
    Mixed,
    /// By the response to the write
    Headers,
    /// By the control interface
    Api,
    /// By PURGE of addresses
    Purge,
    /// By BAN, PURGEKEYS and PURGETAGS
    Ban,
    /// By PURGEKEYS of tags and PURGE of addresses
    Keys,
    /// Softly, by the control interface
    Soft,
    /// By X-LiteSpeed-Purge on any response
    Litespeed,
}

impl By {
    /// In a word, as on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            By::Mixed => "mixed",
            By::Headers => "headers",
            By::Api => "api",
            By::Purge => "purge",
            By::Ban => "ban",
            By::Keys => "keys",
            By::Soft => "soft",
            By::Litespeed => "litespeed",
        }
    }
}

/// How strong a change is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strength {
    /// Once it is acknowledged nobody gets what was before.
    Hard,
    /// The old page may still be served where the site allows it, for as long as it allows.
    Soft,
}

/// One way to tell a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// The response to a POST names the tags of items.
    Through,
    /// A POST to a page's own address, or with a Location that names it.
    Target,
    /// A call with the tags of items.
    Tags,
    /// A call with every page that shows an item.
    Urls,
    /// A call with a page's own address.
    OwnUrl,
    /// A call with a page's own path as prefix.
    Prefix,
    /// A call for everything.
    All,
    /// `PURGE` of every page that shows an item.
    PurgeUrls,
    /// `PURGE` of a page's own address.
    PurgeOwn,
    /// `PURGE` with a field of tags.
    PurgeTags,
    /// `PURGE` of everything.
    PurgeAll,
    /// `BAN` with a field of tags, one of them an expression.
    BanTags,
    /// `PURGEKEYS` with tags.
    Keys,
    /// `PURGETAGS` with tags.
    TagsMethod,
    /// `BAN` with an expression over addresses.
    BanUrl,
    /// A hard call with tags among soft ones.
    HardTags,
    /// A GET whose response announces what it has changed.
    Get,
}

impl Manner {
    /// All of them; a manner's place in this list is its place in every count.
    pub const ALL: [Manner; 17] = [
        Manner::Through,
        Manner::Target,
        Manner::Tags,
        Manner::Urls,
        Manner::OwnUrl,
        Manner::Prefix,
        Manner::All,
        Manner::PurgeUrls,
        Manner::PurgeOwn,
        Manner::PurgeTags,
        Manner::PurgeAll,
        Manner::BanTags,
        Manner::Keys,
        Manner::TagsMethod,
        Manner::BanUrl,
        Manner::HardTags,
        Manner::Get,
    ];

    /// In words, as printed.
    pub fn as_str(self) -> &'static str {
        match self {
            Manner::Through => "through",
            Manner::Target => "target",
            Manner::Tags => "tags",
            Manner::Urls => "urls",
            Manner::OwnUrl => "own-url",
            Manner::Prefix => "prefix",
            Manner::All => "all",
            Manner::PurgeUrls => "purge-urls",
            Manner::PurgeOwn => "purge-own",
            Manner::PurgeTags => "purge-tags",
            Manner::PurgeAll => "purge-all",
            Manner::BanTags => "ban-tags",
            Manner::Keys => "keys",
            Manner::TagsMethod => "purgetags",
            Manner::BanUrl => "ban-url",
            Manner::HardTags => "hard-tags",
            Manner::Get => "get",
        }
    }

    /// Draws one of a mode.
    pub fn draw(by: By, chance: &mut Chance) -> Manner {
        let all = chance.one_in(ALL_ONE_IN);
        let of_hundred = chance.below(100);
        match (by, of_hundred) {
            (By::Mixed | By::Api, _) if all => Manner::All,
            (By::Purge, _) if all => Manner::PurgeAll,
            (By::Mixed, 0..45) | (By::Headers, 0..75) | (By::Litespeed, 0..40) => Manner::Through,
            (By::Mixed, 45..60) | (By::Headers, _) | (By::Litespeed, 80..) => Manner::Target,
            (By::Litespeed, _) => Manner::Get,
            (By::Mixed, 60..88) | (By::Api, 0..60) => Manner::Tags,
            (By::Mixed, 88..94) | (By::Api, 60..75) => Manner::Urls,
            (By::Mixed, _) | (By::Api, 75..88) => Manner::OwnUrl,
            (By::Api, _) => Manner::Prefix,
            (By::Purge, 0..55) => Manner::PurgeUrls,
            (By::Purge, 55..80) => Manner::PurgeOwn,
            (By::Purge, _) => Manner::PurgeTags,
            (By::Ban, 0..30) => Manner::BanTags,
            (By::Ban, 30..55) | (By::Keys, 0..75) => Manner::Keys,
            (By::Ban, 55..75) => Manner::TagsMethod,
            (By::Ban, _) => Manner::BanUrl,
            (By::Keys, _) => Manner::PurgeOwn,
            (By::Soft, _) if chance.one_in(HARD_ONE_IN) => Manner::HardTags,
            (By::Soft, 0..75) => Manner::Tags,
            (By::Soft, _) => Manner::OwnUrl,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    fn drawn(by: By) -> Vec<Manner> {
        let mut chance = Chance::new(1, 1);
        let all: Vec<Manner> = (0..2000).map(|_| Manner::draw(by, &mut chance)).collect();
        Manner::ALL.into_iter().filter(|manner| all.contains(manner)).collect()
    }

    #[test]
    fn every_manner_has_its_place_and_is_drawn_in_some_mode() {
        let any: Vec<Manner> = By::value_variants().iter().flat_map(|by| drawn(*by)).collect();
        for (place, manner) in Manner::ALL.into_iter().enumerate() {
            assert_eq!(manner as usize, place);
            assert!(any.contains(&manner), "{}", manner.as_str());
        }
    }

    #[test]
    fn modes_keep_to_their_ways() {
        assert_eq!(drawn(By::Headers), [Manner::Through, Manner::Target]);
        assert_eq!(drawn(By::Keys), [Manner::PurgeOwn, Manner::Keys]);
        assert_eq!(drawn(By::Soft), [Manner::Tags, Manner::OwnUrl, Manner::HardTags]);
        assert_eq!(drawn(By::Mixed).len(), 6);
        for by in By::value_variants() {
            let value = by.to_possible_value().expect("none is hidden");
            assert_eq!(value.get_name(), by.as_str());
        }
    }
}
