//! Parses names of pages: a path, or a whole URL, whose scheme and host are ignored. Control calls,
//! stream entries and `explain` use them. The result is not normalised: the site does that
//! (`site_rules::KeyForm`).

/// The hint for an invalid page name.
pub const PATH_OR_URL: &str = "write a path, such as /news/4/, or a whole URL";

/// Returns path and query of a URL. Scheme and host are ignored: a site has one page for all of
/// them.
///
/// # Errors
/// A sentence: the text is neither a path nor a URL.
pub fn path_and_query(url: &str) -> Result<String, String> {
    if url.starts_with('/') && !url.starts_with("//") {
        return Ok(url.split('#').next().unwrap_or_default().to_owned());
    }
    if !url.contains("://") {
        return Err(format!("{url:?}: {PATH_OR_URL}"));
    }
    let uri: http::Uri = url.parse().map_err(|error| format!("{url:?}: {error}"))?;
    match (uri.scheme_str(), uri.path_and_query()) {
        (Some("http" | "https"), Some(both)) => Ok(both.to_string()),
        _ => Err(format!("{url:?}: {PATH_OR_URL}")),
    }
}

/// Returns the path of a prefix, which has no query.
///
/// # Errors
/// As for [`path_and_query`], or the prefix has a query.
pub fn prefix(url: &str) -> Result<String, String> {
    match path_and_query(url)? {
        path if path.contains(['?', '*']) => {
            Err(format!("{url:?}: a prefix is a path without a query or a star, such as /news/"))
        }
        path => Ok(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_and_paths() {
        assert_eq!(path_and_query("/a?b#c"), Ok("/a?b".into()));
        assert_eq!(path_and_query("http://x/a?b"), Ok("/a?b".into()));
        assert_eq!(path_and_query("https://x"), Ok("/".into()));
        let told = path_and_query("news/4");
        assert!(told.is_err_and(|text| text.ends_with(PATH_OR_URL)));
        assert!(path_and_query("//x/a").is_err());
    }

    #[test]
    fn prefixes() {
        assert_eq!(prefix("/news/"), Ok("/news/".into()));
        assert_eq!(prefix("https://x/news"), Ok("/news".into()));
        for wrong in ["/a?b", "/a*", "a", "ftp://x/"] {
            assert!(prefix(wrong).is_err(), "{wrong}");
        }
    }
}
