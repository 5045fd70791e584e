//! The keys of the memcached port in the store. They begin with a prefix that no key of an HTTP
//! request has. After it comes a path, for a page of the site, or anything else, for a client's own
//! item. Rules for pages do not apply to such items.

/// The prefix of these keys: no URI scheme can contain a line end.
pub const NAMESPACE: &[u8] = b"memcached\n";

/// Whether a key belongs to a client's own item, and not to a page of the site.
pub fn is_of_client(key: &[u8]) -> bool {
    key.strip_prefix(NAMESPACE).is_some_and(|key| !key.starts_with(b"/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_with_a_slash_names_a_page_and_any_other_a_value_of_a_client() {
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
