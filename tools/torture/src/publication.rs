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
pub enum Publication {
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

impl Publication {
    /// All of them; a publication's place in this list is its place in every count.
    pub const ALL: [Publication; 17] = [
        Publication::Through,
        Publication::Target,
        Publication::Tags,
        Publication::Urls,
        Publication::OwnUrl,
        Publication::Prefix,
        Publication::All,
        Publication::PurgeUrls,
        Publication::PurgeOwn,
        Publication::PurgeTags,
        Publication::PurgeAll,
        Publication::BanTags,
        Publication::Keys,
        Publication::TagsMethod,
        Publication::BanUrl,
        Publication::HardTags,
        Publication::Get,
    ];

    /// In words, as printed.
    pub fn as_str(self) -> &'static str {
        match self {
            Publication::Through => "through",
            Publication::Target => "target",
            Publication::Tags => "tags",
            Publication::Urls => "urls",
            Publication::OwnUrl => "own-url",
            Publication::Prefix => "prefix",
            Publication::All => "all",
            Publication::PurgeUrls => "purge-urls",
            Publication::PurgeOwn => "purge-own",
            Publication::PurgeTags => "purge-tags",
            Publication::PurgeAll => "purge-all",
            Publication::BanTags => "ban-tags",
            Publication::Keys => "keys",
            Publication::TagsMethod => "purgetags",
            Publication::BanUrl => "ban-url",
            Publication::HardTags => "hard-tags",
            Publication::Get => "get",
        }
    }

    /// Draws one of a mode.
    pub fn draw(by: By, chance: &mut Chance) -> Publication {
        let all = chance.one_in(ALL_ONE_IN);
        let of_hundred = chance.below(100);
        match (by, of_hundred) {
            (By::Mixed | By::Api, _) if all => Publication::All,
            (By::Purge, _) if all => Publication::PurgeAll,
            (By::Mixed, 0..45) | (By::Headers, 0..75) | (By::Litespeed, 0..40) => {
                Publication::Through
            }
            (By::Mixed, 45..60) | (By::Headers, _) | (By::Litespeed, 80..) => Publication::Target,
            (By::Litespeed, _) => Publication::Get,
            (By::Mixed, 60..88) | (By::Api, 0..60) => Publication::Tags,
            (By::Mixed, 88..94) | (By::Api, 60..75) => Publication::Urls,
            (By::Mixed, _) | (By::Api, 75..88) => Publication::OwnUrl,
            (By::Api, _) => Publication::Prefix,
            (By::Purge, 0..55) => Publication::PurgeUrls,
            (By::Purge, 55..80) => Publication::PurgeOwn,
            (By::Purge, _) => Publication::PurgeTags,
            (By::Ban, 0..30) => Publication::BanTags,
            (By::Ban, 30..55) | (By::Keys, 0..75) => Publication::Keys,
            (By::Ban, 55..75) => Publication::TagsMethod,
            (By::Ban, _) => Publication::BanUrl,
            (By::Keys, _) => Publication::PurgeOwn,
            (By::Soft, _) if chance.one_in(HARD_ONE_IN) => Publication::HardTags,
            (By::Soft, 0..75) => Publication::Tags,
            (By::Soft, _) => Publication::OwnUrl,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    fn drawn(by: By) -> Vec<Publication> {
        let mut chance = Chance::new(1, 1);
        let all: Vec<Publication> = (0..2000).map(|_| Publication::draw(by, &mut chance)).collect();
        Publication::ALL.into_iter().filter(|publication| all.contains(publication)).collect()
    }

    #[test]
    fn every_manner_has_its_place_and_is_drawn_in_some_mode() {
        let any: Vec<Publication> = By::value_variants().iter().flat_map(|by| drawn(*by)).collect();
        for (place, publication) in Publication::ALL.into_iter().enumerate() {
            assert_eq!(publication as usize, place);
            assert!(any.contains(&publication), "{}", publication.as_str());
        }
    }

    #[test]
    fn modes_keep_to_their_ways() {
        assert_eq!(drawn(By::Headers), [Publication::Through, Publication::Target]);
        assert_eq!(drawn(By::Keys), [Publication::PurgeOwn, Publication::Keys]);
        assert_eq!(
            drawn(By::Soft),
            [Publication::Tags, Publication::OwnUrl, Publication::HardTags]
        );
        assert_eq!(drawn(By::Mixed).len(), 6);
        for by in By::value_variants() {
            let value = by.to_possible_value().expect("none is hidden");
            assert_eq!(value.get_name(), by.as_str());
        }
    }
}
