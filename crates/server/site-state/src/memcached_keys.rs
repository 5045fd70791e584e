//! Which keys of the store belong to the memcached port. They begin with a word that no key of an HTTP request
//! begins with. Behind it is a path for a page of the site, and anything else for an item of a client's own,
//! to which rules for pages do not apply.

/// What goes before a key: no scheme is written like this.
pub const NAMESPACE: &[u8] = b"memcached\n";

/// Whether a page's key is that of an item which is no page of the site, but a client's own.
pub fn is_of_client(key: &[u8]) -> bool {
    key.strip_prefix(NAMESPACE).is_some_and(|key| !key.starts_with(b"/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_begins_with_a_slash_is_a_page_and_the_rest_a_clients_own() {
        for (key, is_own) in [
            (&b"memcached\nsession:4"[..], true),
            (b"memcached\n", true),
            (b"memcached\n/news/", false),
            (b"http://a.test/memcached", false),
            (b"", false),
        ] {
            assert_eq!(is_of_client(key), is_own, "{}", key.escape_ascii());
        }
    }
}
