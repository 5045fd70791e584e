//! Tags (surrogate keys): the names of the data on which a page depends, as responses carry them. They come
//! in `Cache-Groups` (RFC 9875) and in the tag fields of other caches. Also here: the groups that a write
//! invalidates.
//!
//! Invariants: each field has one separator from a table, never guessed, because tags contain colons, dots
//! and underscores. Repeated fields are joined, and duplicates removed. A list that is unreadable or
//! exceeds a limit is refused as a whole: a page with only some of its tags would miss changes.

use crate::sparse::MaybeEmpty;
use crate::stored::allocated;
use http::HeaderMap;
use sfv::{BareItem, List, ListEntry, Parser};
use std::fmt;

/// The maximum length of a tag in bytes.
pub const TAG_MAX_BYTES: usize = 1024;
/// The maximum total length of a page's tags in bytes, without separators.
pub const TAGS_MAX_BYTES: usize = 128 << 10;
/// The maximum number of tags of a page.
pub const TAGS_MAX: usize = 4096;
/// The field that names the tables whose changes the tags tell (`tagged_tables`).
pub const TAGGED_TABLES_FIELD: &str = "pagewell-tagged-tables";
/// The field that names the tags that stand for statements (`tagged_tables`).
pub const TABLE_TAGS_FIELD: &str = "pagewell-table-tags";

/// A field that carries tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dialect {
    /// The field's name, in lower case.
    pub field: &'static str,
    /// The separator of its tags.
    pub separator: Separator,
}

/// The separator of the tags in a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Separator {
    /// A structured list of strings (RFC 9875 §2).
    Strings,
    /// Spaces.
    Space,
    /// Commas, with optional white space around them.
    Comma,
    /// Spaces or commas.
    SpaceOrComma,
    /// Commas. A leading `public` or `private` is a scope instead of a tag, and so is the prefix `public:`
    /// ([`litespeed`](crate::litespeed)).
    Scoped,
}

/// The fields that are read: RFC 9875; Fastly and Pantheon; Cloudflare; Akamai; Varnish's xkey;
/// FOSHttpCache (Symfony); Magento; two Drupal modules; LiteSpeed.
pub const DIALECTS: [Dialect; 11] = [
    Dialect { field: "cache-groups", separator: Separator::Strings },
    Dialect { field: "surrogate-key", separator: Separator::Space },
    Dialect { field: "cache-tag", separator: Separator::Comma },
    Dialect { field: "edge-cache-tag", separator: Separator::Comma },
    Dialect { field: "xkey", separator: Separator::SpaceOrComma },
    Dialect { field: "x-hashtwo", separator: Separator::SpaceOrComma },
    Dialect { field: "x-cache-tags", separator: Separator::Comma },
    Dialect { field: "x-magento-tags", separator: Separator::Comma },
    Dialect { field: "cache-tags", separator: Separator::Space },
    Dialect { field: "purge-cache-tags", separator: Separator::Space },
    Dialect { field: "x-litespeed-tag", separator: Separator::Scoped },
];

/// The fields of [`DIALECTS`] that are meant for server-side caches only: all except `Cache-Groups`, which
/// clients' caches use too (RFC 9875).
pub fn internal_tag_fields() -> impl Iterator<Item = &'static str> {
    DIALECTS.iter().map(|dialect| dialect.field).filter(|field| *field != "cache-groups")
}

/// The reason why the tags of a response are refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TagsRefused {
    /// The length of a tag, the number of tags or their total length exceeds a limit.
    TooLong,
    /// `Cache-Groups` or `Cache-Group-Invalidation` is not a list of strings.
    Unreadable,
}

impl TagsRefused {
    /// The name of the reason, as logs and metrics show it.
    pub fn as_str(self) -> &'static str {
        match self {
            TagsRefused::TooLong => "tags-too-long",
            TagsRefused::Unreadable => "tags-unreadable",
        }
    }
}

impl fmt::Display for TagsRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::error::Error for TagsRefused {}

/// A list of tags without duplicates, in the order of reception.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tags {
    /// Each tag after its length, which takes two bytes.
    packed: Vec<u8>,
    count: u32,
}

impl MaybeEmpty for Tags {
    const EMPTY: &'static Tags = &Tags::NONE;

    fn is_nothing(&self) -> bool {
        self.is_empty()
    }
}

/// The bytes of a tag's length.
const LENGTH_BYTES: usize = size_of::<u16>();

impl Tags {
    pub(crate) const NONE: Tags = Tags { packed: Vec::new(), count: 0 };

    /// Iterates over all of the tags.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = &self.packed[..];
        std::iter::from_fn(move || {
            let (length, after) = rest.split_first_chunk()?;
            let (tag, next) = after.split_at_checked(u16::from_le_bytes(*length).into())?;
            rest = next;
            Some(tag)
        })
    }

    /// A list of these tags without duplicates. Used to restore the output of [`iter`](Self::iter).
    ///
    /// # Errors
    /// The tags exceed a limit.
    pub fn of<'t>(tags: impl Iterator<Item = &'t [u8]>) -> Result<Tags, TagsRefused> {
        let mut all = Tags::default();
        for tag in tags {
            all.push(tag)?;
        }
        Ok(all.once())
    }

    /// The number of tags.
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(crate) fn push(&mut self, tag: &[u8]) -> Result<(), TagsRefused> {
        if tag.is_empty() {
            return Ok(());
        }
        let bytes = self.packed.len() - self.len() * LENGTH_BYTES + tag.len();
        if tag.len() > TAG_MAX_BYTES || bytes > TAGS_MAX_BYTES || self.len() >= TAGS_MAX {
            return Err(TagsRefused::TooLong);
        }
        self.add(tag);
        Ok(())
    }

    /// Adds a tag without checking its length.
    fn add(&mut self, tag: &[u8]) {
        self.packed.extend_from_slice(&(tag.len() as u16).to_le_bytes());
        self.packed.extend_from_slice(tag);
        self.count += 1;
    }

    /// Frees unused capacity.
    pub(crate) fn shrink(&mut self) {
        self.packed.shrink_to_fit();
    }

    /// The union of both lists.
    pub(crate) fn joined(mut self, other: &Tags) -> Result<Tags, TagsRefused> {
        for tag in other.iter() {
            self.push(tag)?;
        }
        Ok(self.once())
    }

    /// An estimate of the heap bytes.
    pub(crate) fn heap_bytes(&self) -> usize {
        allocated(self.packed.capacity())
    }

    /// Removes duplicates.
    pub(crate) fn once(self) -> Tags {
        let mut places: Vec<usize> = (0..self.len()).collect();
        let tags: Vec<&[u8]> = self.iter().collect();
        places.sort_by(|one, other| tags[*one].cmp(tags[*other]).then(one.cmp(other)));
        places.dedup_by(|one, other| tags[*one] == tags[*other]);
        if places.len() == tags.len() {
            return self;
        }
        places.sort_unstable();
        let mut kept = Tags::default();
        for place in places {
            kept.add(tags[place]);
        }
        kept
    }
}

/// The tags of a response, from all tag fields.
///
/// # Errors
/// The tags exceed a limit or are unreadable; the response must then not be stored.
pub fn read_tags(headers: &HeaderMap) -> Result<Tags, TagsRefused> {
    let mut tags = Tags::default();
    let is_there = |dialect: &&Dialect| headers.keys().any(|name| name.as_str() == dialect.field);
    for dialect in DIALECTS.iter().filter(is_there) {
        read_dialect(headers, dialect, &mut tags)?;
    }
    Ok(tags.once())
}

/// The invalidation in a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GroupInvalidation {
    /// The groups with these names; the list may be empty.
    Groups(Tags),
    /// Everything: every page.
    Everything,
}

/// The groups in `Cache-Group-Invalidation` (RFC 9875 §3), or everything if the Token `*` is among them.
/// RFC 9875 allows only Strings; `*` is an extension of Pagewell. The caller ensures that the method was
/// unsafe; otherwise the field must be ignored.
///
/// # Errors
/// The groups exceed a limit or are unreadable. RFC 9875 ignores such a field; the caller should log it as an
/// error, because an invalidation is lost.
pub fn read_invalidated_groups(headers: &HeaderMap) -> Result<GroupInvalidation, TagsRefused> {
    let mut tags = Tags::default();
    let everything = |item: &BareItem| item.as_token().is_some_and(|token| token.as_str() == "*");
    for member in &list_of(headers, "cache-group-invalidation")? {
        match member {
            ListEntry::Item(item) if everything(&item.bare_item) => {
                return Ok(GroupInvalidation::Everything);
            }
            member => tags.push(string(member)?)?,
        }
    }
    Ok(GroupInvalidation::Groups(tags.once()))
}

/// Adds the tags of one field.
fn read_dialect(
    headers: &HeaderMap,
    dialect: &Dialect,
    tags: &mut Tags,
) -> Result<(), TagsRefused> {
    let is_separator: fn(&u8) -> bool = match dialect.separator {
        Separator::Strings => return read_strings(headers, dialect.field, tags),
        Separator::Space => |byte| matches!(byte, b' ' | b'\t'),
        Separator::Comma => |byte| *byte == b',',
        Separator::SpaceOrComma => |byte| matches!(byte, b' ' | b'\t' | b','),
        Separator::Scoped => {
            return crate::litespeed::each_tag(headers, |_, tag| tags.push(tag));
        }
    };
    for line in headers.get_all(dialect.field) {
        for tag in line.as_bytes().split(is_separator) {
            tags.push(http_fields::fields::trim(tag))?;
        }
    }
    Ok(())
}

/// Adds the tags of a structured list of strings.
fn read_strings(headers: &HeaderMap, field: &str, tags: &mut Tags) -> Result<(), TagsRefused> {
    list_of(headers, field)?.iter().try_for_each(|member| tags.push(string(member)?))
}

/// All lines of a field as one structured list (RFC 9651 §3.1); empty if the field is absent.
fn list_of(headers: &HeaderMap, field: &str) -> Result<List, TagsRefused> {
    let lines: Vec<&[u8]> = headers.get_all(field).iter().map(|value| value.as_bytes()).collect();
    if lines.is_empty() {
        Ok(List::new())
    } else {
        Parser::new(&lines.join(&b", "[..])).parse().map_err(|_| TagsRefused::Unreadable)
    }
}

/// The string of a list member. Parameters are ignored (RFC 9875 §2).
fn string(member: &ListEntry) -> Result<&[u8], TagsRefused> {
    match member {
        ListEntry::Item(item) => {
            let tag = item.bare_item.as_string().ok_or(TagsRefused::Unreadable)?;
            Ok(tag.as_str().as_bytes())
        }
        ListEntry::InnerList(_) => Err(TagsRefused::Unreadable),
    }
}

#[cfg(test)]
#[path = "tags_tests.rs"]
mod tests;
