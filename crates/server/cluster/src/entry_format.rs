//! Converts a change to the fields of a stream entry, and back.
//!
//! | field | value | occurrences |
//! |---|---|---|
//! | `tag` | a tag (surrogate key) | any number |
//! | `url` | a path with its query, or an absolute URL | any number |
//! | `path` | a path, with any query | any number |
//! | `prefix` | a path, and everything below it | any number |
//! | `all` | every page; the value is ignored | any number |
//! | `soft` | `1`: pages are marked stale, not purged | once |
//! | `from` | the publishing process, which skips its own entries | once |
//!
//! An entry that cannot be parsed, or names nothing, means every page, because some change was
//! published. Nodes of different versions may read the same stream.

use page_store::{ChangeTarget, Strength};
use random_number::random_number;
use site_rules::KeyForm;
use site_state::page_name::{path_and_query as named_page, prefix as named_prefix};
use std::sync::OnceLock;
use valkey::{Entry, NewEntry};

/// If the names of a change take more bytes, it becomes a change of every page. A reply then has
/// room for a full read of entries. The limit is about 6,000 names.
const NAMES_BYTES_MAX: usize = 1 << 20;

/// An invalidation that another node has published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerInvalidation {
    /// The publishing process; empty if the entry does not name it.
    pub from: Box<str>,
    /// Whether pages are purged or marked stale.
    pub strength: Strength,
    names: Vec<Name>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Name {
    Tag(Vec<u8>),
    Url(String),
    Path(String),
    Prefix(String),
    Everything,
}

/// Returns the identifier of this process.
pub fn own() -> &'static str {
    static OWN: OnceLock<String> = OnceLock::new();
    OWN.get_or_init(|| format!("{}-{:016x}", std::process::id(), random_number()))
}

/// Converts a change to an entry.
pub fn entry(targets: &[ChangeTarget<'_>], strength: Strength) -> NewEntry {
    let mut added = NewEntry::default();
    added.field("from", own().as_bytes());
    if strength == Strength::Mark {
        added.field("soft", b"1");
    }
    for target in targets {
        match target {
            ChangeTarget::Tag(tag) => added.field("tag", tag),
            ChangeTarget::Url(url) => added.field("url", url),
            ChangeTarget::Path(path) => added.field("path", path),
            ChangeTarget::Prefix(prefix) => added.field("prefix", prefix),
            // Names of an owner are published as tags.
            ChangeTarget::Everything
            | ChangeTarget::Owner(_)
            | ChangeTarget::OwnerTag { .. }
            | ChangeTarget::OwnerUrl { .. } => added.field("all", b"1"),
        }
        if added.bytes() > NAMES_BYTES_MAX {
            return entry(&[ChangeTarget::Everything], strength);
        }
    }
    added
}

/// Parses an entry of the stream.
pub fn read(entry: &Entry) -> PeerInvalidation {
    let (mut from, mut strength, mut names) = ("", Strength::Drop, Vec::new());
    for (field, value) in &entry.fields {
        let text = str::from_utf8(value);
        match (&field[..], text) {
            (b"from", Ok(text)) => from = text,
            (b"soft", Ok("1")) => strength = Strength::Mark,
            (b"tag", _) if !value.is_empty() => names.push(Name::Tag(value.clone())),
            (b"url", Ok(text)) => names.push(named_page(text).map_or(Name::Everything, Name::Url)),
            (b"path", Ok(text)) => {
                names.push(named_page(text).map_or(Name::Everything, Name::Path))
            }
            (b"prefix", Ok(text)) => {
                names.push(named_prefix(text).map_or(Name::Everything, Name::Prefix));
            }
            _ => names.push(Name::Everything),
        }
    }
    if names.is_empty() {
        names.push(Name::Everything);
    }
    if names.contains(&Name::Everything) {
        names = vec![Name::Everything];
    }
    PeerInvalidation { from: from.into(), strength, names }
}

impl PeerInvalidation {
    /// Calls `then` with the targets, with URLs in the site's normal form (URL normalisation).
    pub fn with_targets<T>(
        &self,
        form: &KeyForm,
        then: impl FnOnce(&[ChangeTarget<'_>]) -> T,
    ) -> T {
        let normal = |name: &Name| match name {
            Name::Url(text) | Name::Path(text) | Name::Prefix(text) => {
                form.normal(text).page.into_owned()
            }
            Name::Tag(_) | Name::Everything => String::new(),
        };
        let pages: Vec<String> = self.names.iter().map(normal).collect();
        let targets: Vec<ChangeTarget<'_>> = self
            .names
            .iter()
            .zip(&pages)
            .map(|(name, page)| match name {
                Name::Tag(tag) => ChangeTarget::Tag(tag),
                Name::Url(_) => ChangeTarget::Url(page.as_bytes()),
                Name::Path(_) => ChangeTarget::Path(page.as_bytes()),
                Name::Prefix(_) => ChangeTarget::Prefix(page.as_bytes()),
                Name::Everything => ChangeTarget::Everything,
            })
            .collect();
        then(&targets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use valkey::{Id, Replies, Reply, add};

    /// Converts a change to a command and back, and returns the result as text.
    fn there_and_back(targets: &[ChangeTarget<'_>], strength: Strength) -> String {
        let mut replies = Replies::new(4 << 20);
        replies.push(&add("s", 7, &entry(targets, strength)));
        let Ok(Some(Reply::List(words))) = replies.read() else { panic!("a command") };
        let mut words = words.into_iter().skip(6).map(|word| match word {
            Reply::Bytes(bytes) => bytes,
            _ => panic!("a word"),
        });
        let mut fields = Vec::new();
        while let (Some(name), Some(value)) = (words.next(), words.next()) {
            fields.push((name, value));
        }
        shown(&Entry { id: Id::default(), fields })
    }

    fn shown(entry: &Entry) -> String {
        let heard = read(entry);
        let form = KeyForm::read(&Default::default()).expect("the usual form");
        heard.with_targets(&form, |targets| format!("{:?} {targets:?}", heard.strength))
    }

    fn said(fields: &[(&str, &str)]) -> String {
        let field =
            |(name, value): &(&str, &str)| (name.as_bytes().to_vec(), value.as_bytes().to_vec());
        shown(&Entry { id: Id::default(), fields: fields.iter().map(field).collect() })
    }

    #[test]
    fn entries_are_read_as_they_were_written() {
        let all = [
            ChangeTarget::Tag(b"news:4"),
            ChangeTarget::Tag(b"\0owner \xff\r\n"),
            ChangeTarget::Url(b"/a?b"),
            ChangeTarget::Path(b"/a"),
            ChangeTarget::Prefix(b"/news/"),
        ];
        for strength in [Strength::Drop, Strength::Mark] {
            assert_eq!(there_and_back(&all, strength), format!("{strength:?} {all:?}"));
        }
        for everything in [
            &[ChangeTarget::Everything][..],
            &[ChangeTarget::Tag(b"a"), ChangeTarget::Everything],
            &[ChangeTarget::Owner(b"a")],
            &[ChangeTarget::Tag(&vec![b'x'; NAMES_BYTES_MAX])],
            &[],
        ] {
            assert_eq!(there_and_back(everything, Strength::Drop), "Drop [Everything]");
        }
    }

    #[test]
    fn entries_written_by_hand_are_read() {
        let tag = format!("Drop {:?}", [ChangeTarget::Tag(b"news")]);
        assert_eq!(said(&[("tag", "news")]), tag);
        let url = format!("Mark {:?}", [ChangeTarget::Url(b"/a?b=c")]);
        assert_eq!(said(&[("url", "https://a.example/a?b=c#d"), ("soft", "1")]), url);
        for unclear in [
            &[("tags", "news")][..],
            &[("tag", "a"), ("Tag", "b")],
            &[("tag", "")],
            &[("url", "a/b")],
            &[("prefix", "/a?b")],
            &[("soft", "yes"), ("tag", "a")],
            &[("from", "a")],
            &[],
        ] {
            assert!(said(unclear).ends_with("[Everything]"), "{unclear:?}");
        }
    }
}
