//! Parses values that the file may contain in several forms. These are a word or a list of words,
//! one table `[site]` or several, and a PHP setting as text, number or boolean.
//!
//! Error messages describe the expected value for the author of the file; the TOML parser adds the
//! position.

use super::Site;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

/// A word, or a list of words.
#[derive(Debug, Deserialize, Clone)]
#[serde(untagged, expecting = "write a string, or a list of strings: [\"a\", \"b\"]")]
#[allow(missing_docs)]
pub enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

/// The permitted targets of symbolic links: any, none outside the root, or those in some
/// directories.
#[derive(Debug, Deserialize, Clone)]
#[serde(untagged, expecting = "write true, false, or a list of directories: [\"/srv/media\"]")]
#[allow(missing_docs)]
pub enum AllowSymlinks {
    All(bool),
    Into(Vec<PathBuf>),
}

/// Parses a list of words, or a single word.
pub(super) fn words<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    Ok(match OneOrMany::deserialize(from)? {
        OneOrMany::One(word) => vec![word],
        OneOrMany::Many(words) => words,
    })
}

/// Parses the same, but distinguishes an absent list from an empty one.
pub(super) fn some_words<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<Vec<String>>, D::Error> {
    words(from).map(Some)
}

/// A value of php.ini. A boolean becomes PHP's notation.
#[derive(Deserialize)]
#[serde(untagged, expecting = "write a string, a whole number, true or false")]
enum Setting {
    Text(String),
    Number(i64),
    Switch(bool),
}

/// Parses settings of PHP.
pub(super) fn settings<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<BTreeMap<String, String>, D::Error> {
    let text = |setting| match setting {
        Setting::Text(text) => text,
        Setting::Number(number) => number.to_string(),
        Setting::Switch(on) => u8::from(on).to_string(),
    };
    let all = BTreeMap::<String, Setting>::deserialize(from)?;
    Ok(all.into_iter().map(|(name, setting)| (name, text(setting))).collect())
}

/// Parses `[site]`, or a list of `[[site]]`.
pub(super) fn one_or_list<'de, D: Deserializer<'de>>(from: D) -> Result<Site, D::Error> {
    struct OneOrList;
    impl<'de> Visitor<'de> for OneOrList {
        type Value = Site;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a table [site], or tables [[site]]")
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Site, A::Error> {
            Site::deserialize(MapAccessDeserializer::new(map))
        }

        fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Site, A::Error> {
            let list = Vec::<Site>::deserialize(SeqAccessDeserializer::new(list))?;
            if list.is_empty() {
                Err(A::Error::custom("the list of sites is empty"))
            } else {
                Ok(Site { list, ..Site::default() })
            }
        }
    }
    from.deserialize_any(OneOrList)
}
