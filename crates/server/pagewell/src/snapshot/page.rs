//! Converts a stored page to its form in a snapshot, and back.
//!
//! A snapshot has no private copies, because they would outlive the session of their owner on disk.
//! It also has no items of the memcached port, whose clients manage expiry themselves. The
//! dependencies of a page follow from its key, its tags and its statements, as when it was first
//! stored.

use bytes::Bytes;
use delivery::site::Site;
use page_snapshot::{Content, PageStatements, SavedPage};
use page_store::{NotRestored, RestoreSession, WalkedPage, Worth};
use statements::footprints::StatementWalk;
use std::sync::Arc;
use stored_pages::page::{IdentityContent, NewPage, ReadPage, StoredPage, variant};

const PROVEN: u8 = 1 << 7;
const USES: u8 = 0b11;

/// The snapshot form of a page.
pub enum PageForm<'p> {
    /// It is written.
    Saved(Box<SavedPage<'p>>),
    /// It does not belong in a snapshot.
    Excluded,
    /// The snapshot does not have its statements.
    WithoutStatements,
}

/// Returns the snapshot form of a page. `walk` is the walk through the statements of the snapshot.
pub fn form<'p>(
    site: &Site,
    walk: Option<&StatementWalk>,
    found: &'p WalkedPage<StoredPage>,
) -> PageForm<'p> {
    let page = found.page.payload();
    if page.item().is_some()
        || page.stored.is_private()
        || path_of(found.page.key().bytes()).is_none()
    {
        return PageForm::Excluded;
    }
    let statements = match page.reads() {
        None => None,
        Some(reads) => match walk.and_then(|walk| site.footprints.keys(reads, walk)) {
            Some(keys) => Some(PageStatements { is_timed: reads.is_timed, keys }),
            None => return PageForm::WithoutStatements,
        },
    };
    let content = match found.page.plain().content() {
        Some(content) => Content::Kept(content),
        None => Content::InCodings(found.page.length() as u64),
    };
    let stay = if found.worth.is_proven { PROVEN } else { 0 };
    let forms = page.forms().codings().iter();
    let in_coding = |coding| page.forms().get(coding)?.form().content();
    let forms = forms.filter_map(|coding| Some((*coding, in_coding(*coding)?)));
    PageForm::Saved(Box::new(SavedPage {
        key: found.page.key().bytes(),
        worth: found.worth.uses & USES | stay,
        marked_at_ms: found.page.marked().map(|marked| marked.at_ms),
        stored: found.page.response(),
        content,
        forms: forms.collect(),
        statements,
    }))
}

/// The reasons for which a page is not restored.
#[derive(Debug)]
pub enum LeftOut {
    /// The store rejected it, for example because a change has invalidated it.
    Rejected(NotRestored),
    /// The statements on which it depends are not known: the tables have changed.
    Statements,
}

/// Restores a page to the store.
///
/// # Errors
/// The reason why it is left out.
pub fn restore(
    site: &Site,
    restoring: &RestoreSession<StoredPage>,
    saved: SavedPage<'_>,
) -> Result<(), LeftOut> {
    // Every written page has a key with a path.
    let Some(path) = path_of(saved.key) else { return Err(LeftOut::Rejected(NotRestored::Known)) };
    let reads = match saved.statements {
        None => None,
        Some(PageStatements { is_timed, keys }) => {
            let reads = site.footprints.restore(&keys, is_timed);
            Some(Arc::new(reads.ok_or(LeftOut::Statements)?))
        }
    };
    let is_proven = saved.worth & PROVEN != 0;
    let worth = Worth { uses: saved.worth & USES, is_proven };
    let made_from = site.dependencies(&saved.stored, reads.as_deref(), path, None);
    let variant = variant(&saved.stored);
    let key = site.store.key(saved.key);
    // The bytes are copied, because the buffer of the piece is reused.
    let own = |bytes: &[u8]| Bytes::copy_from_slice(bytes);
    let plain = match saved.content {
        Content::Kept(content) => IdentityContent::Kept(own(content)),
        Content::InCodings(bytes) => IdentityContent::InCodings(bytes as usize),
    };
    let coded = saved.forms.iter().map(|(coding, content)| (*coding, own(content))).collect();
    let page = NewPage::restored(saved.stored, plain, coded).with_reads(reads);
    page.put(|new| restoring.restore(key, variant, &made_from, new, worth, saved.marked_at_ms))
        .map_err(LeftOut::Rejected)
}

/// Returns path and query from a key: the part between the host and whatever distinguishes
/// variants.
fn path_of(key: &[u8]) -> Option<&str> {
    let key = str::from_utf8(key).ok()?;
    let (_, rest) = key.split_once("://")?;
    let rest = rest.split('\n').next().unwrap_or_default();
    rest.find('/').map(|at| &rest[at..])
}

#[cfg(test)]
mod tests {
    use super::path_of;

    #[test]
    fn paths_of_keys() {
        for (key, path) in [
            ("http://a/", Some("/")),
            ("https://a:81/b?c=/d", Some("/b?c=/d")),
            ("http://[::1]/x\nvary y\n", Some("/x")),
            ("http://a/\nparts", Some("/")),
            ("memcached\n/x", None),
            ("", None),
        ] {
            assert_eq!(path_of(key.as_bytes()), path, "{key}");
        }
    }
}
