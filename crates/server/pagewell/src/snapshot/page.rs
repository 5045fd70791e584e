//! Converts a stored page to its form in a snapshot, and back.
//!
//! A snapshot has no private copies, because they would outlive the session of their owner on disk.
//! It also has no items of the memcached port, whose clients manage expiry themselves. The
//! dependencies of a page follow from its key and its tags, as when it was first stored.

use bytes::Bytes;
use exchange::site::Site;
use page_snapshot::{Content, Record, SavedPage};
use page_store::{NotRestored, RestoreSession, Stay, WalkedPage, Worth};
use site_state::page::{IdentityContent, NewPage, ReadPage, StoredPage, variant};

const PROVEN: u8 = 1 << 7;
const USES: u8 = 0b11;

/// Returns the snapshot form of a page; `None` if the page is not written.
pub fn record(found: &WalkedPage<StoredPage>) -> Option<Record<'_>> {
    let page = found.page.payload();
    // The statements of a page are not written yet, so it would lack dependencies.
    if page.item().is_some()
        || page.reads().is_some()
        || page.stored.is_private()
        || path_of(found.page.key().bytes()).is_none()
    {
        return None;
    }
    let content = match found.page.plain().content() {
        Some(content) => Content::Kept(content),
        None => Content::InCodings(found.page.length() as u64),
    };
    let stay = if found.worth.stay == Stay::Proven { PROVEN } else { 0 };
    let forms = page.forms().codings().iter();
    let in_coding = |coding| page.forms().get(coding)?.form().content();
    let forms = forms.filter_map(|coding| Some((*coding, in_coding(*coding)?)));
    Some(Record {
        key: found.page.key().bytes(),
        worth: found.worth.uses & USES | stay,
        marked_at_ms: found.page.marked().map(|marked| marked.at_ms),
        stored: found.page.response(),
        content,
        forms: forms.collect(),
    })
}

/// Restores a page to the store.
///
/// # Errors
/// The store rejected the page, for example because a change has invalidated it.
pub fn restore(
    site: &Site,
    restoring: &RestoreSession<StoredPage>,
    saved: SavedPage<'_>,
) -> Result<(), NotRestored> {
    // Every written page has a key with a path.
    let Some(path) = path_of(saved.key) else { return Err(NotRestored::Known) };
    let stay = if saved.worth & PROVEN == 0 { Stay::Untried } else { Stay::Proven };
    let worth = Worth { uses: saved.worth & USES, stay };
    let made_from = site.dependencies(&saved.stored, None, path, None);
    let variant = variant(&saved.stored);
    let key = site.store.key(saved.key);
    // The bytes are copied, because the buffer of the piece is reused.
    let own = |bytes: &[u8]| Bytes::copy_from_slice(bytes);
    let plain = match saved.content {
        Content::Kept(content) => IdentityContent::Kept(own(content)),
        Content::InCodings(bytes) => IdentityContent::InCodings(bytes as usize),
    };
    let coded = saved.forms.iter().map(|(coding, content)| (*coding, own(content))).collect();
    let page = NewPage::restored(saved.stored, plain, coded);
    page.put(|new| restoring.restore(key, variant, &made_from, new, worth, saved.marked_at_ms))
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
