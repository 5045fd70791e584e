//! How values of the file are read that may be written in more than one way: a word or a list of them, a
//! table `[site]` or several, a setting of PHP as text, number or switch.
//!
//! What is wanted is said in words for whoever wrote the file; where it stands says the reader.

use super::Site;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

/// A word, or a list of words.
#[derive(Debug, Deserialize, Clone)]
#[serde(untagged, expecting = "write a text, or a list of them: [\"a\", \"b\"]")]
#[allow(missing_docs)]
pub enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

/// Where symbolic links may lead: anywhere or nowhere outside the root, or into some directories as well.
#[derive(Debug, Deserialize, Clone)]
#[serde(untagged, expecting = "write true, false, or a list of directories: [\"/srv/media\"]")]
#[allow(missing_docs)]
pub enum AllowSymlinks {
    All(bool),
    Into(Vec<PathBuf>),
}

/// Reads a list of words, of which one may stand alone.
pub(super) fn words<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    Ok(match OneOrMany::deserialize(from)? {
        OneOrMany::One(word) => vec![word],
        OneOrMany::Many(words) => words,
    })
}

/// The same where nothing given is something else than an empty list.
pub(super) fn some_words<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<Vec<String>>, D::Error> {
    words(from).map(Some)
}

/// A value of php.ini. A switch is what PHP takes for one.
#[derive(Deserialize)]
#[serde(untagged, expecting = "write a text, a whole number, true or false")]
enum Setting {
    Text(String),
    Number(i64),
    Switch(bool),
}

/// Reads settings of PHP.
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

/// Reads `[site]`, or a list of `[[site]]`.
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
            match list.is_empty() {
                true => Err(A::Error::custom("the list of sites is empty")),
                false => Ok(Site { list, ..Site::default() }),
            }
        }
    }
    from.deserialize_any(OneOrList)
}
