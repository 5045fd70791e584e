//! `POST /v1/invalidate`: purges pages, or marks them stale, by tag, URL or prefix.
//!
//! All names of a call form one change in each of its sites. The call returns when no request to
//! this node can get an old page any more. In a cluster it waits for the other nodes as well, for
//! at most `barrier`. An invalid call changes nothing: an unknown key, a malformed URL, or a call
//! without names is an error.

use super::ControlError;
use crate::site::Site;
use crate::why::Cause;
use crate::why::shown::cut;
use page_store::{Applied, Strength, Target};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::sync::Arc;

/// The body of a call.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Invalidate {
    /// Tags (surrogate keys) whose pages are invalidated.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Absolute URLs, or paths with their query.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub urls: Vec<String>,
    /// Paths, or URLs without a query. Each stands for itself and everything below it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub prefixes: Vec<String>,
    /// Invalidates every page of the site.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
    /// Marks pages stale instead of purging them. Marked pages are served only where stale use is
    /// allowed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub soft: bool,
    /// Limits the call to the site with this host or alias; the default is every site.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub site: Option<String>,
}

/// The result of a call.
#[derive(Debug, Deserialize, Serialize)]
pub struct Invalidated {
    /// The number of the change; the highest one if there are several sites.
    pub number: u64,
    /// The number of purged pages.
    pub dropped: u64,
    /// The number of pages that this call has marked stale.
    #[serde(default)]
    pub marked: u64,
    /// Whether the other nodes of the `[stream]` are not known to have applied the change within
    /// `barrier`, for example because the stream is unreachable.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub late: bool,
}

/// Executes a call.
///
/// # Errors
/// The call is invalid; nothing was changed.
pub(super) fn invalidate(
    site: &Arc<Site>,
    call: &Invalidate,
    peer: Option<SocketAddr>,
) -> Result<serde_json::Value, ControlError> {
    let by = Cause::Control { peer: peer.map(|peer| cut(&peer.ip().to_string())) };
    let lists = [&call.tags, &call.urls, &call.prefixes];
    if lists.iter().all(|list| list.is_empty()) && !call.all {
        let text = "name tags, urls, prefixes, or all: {\"tags\":[\"news:4\"]}";
        return Err(ControlError::Unreadable(text.into()));
    }
    if call.tags.iter().any(String::is_empty) {
        return Err(ControlError::Unreadable("a tag is empty: no page has that".into()));
    }
    let read = |list: &[String], reader: fn(&str) -> Result<String, String>| {
        let read: Result<Vec<_>, _> = list.iter().map(|url| reader(url)).collect();
        read.map_err(ControlError::Unreadable)
    };
    let (urls, prefixes) = (read(&call.urls, path_and_query)?, read(&call.prefixes, prefix)?);
    let mut targets: Vec<Target<'_>> = Vec::new();
    targets.extend(call.tags.iter().map(|tag| Target::Tag(tag.as_bytes())));
    if call.all {
        targets.push(Target::Everything);
    }
    let strength = if call.soft { Strength::Mark } else { Strength::Drop };
    let chosen = call
        .site
        .as_deref()
        .map(|host| site.named(host).ok_or_else(|| ControlError::SiteUnknown(host.to_owned())));
    let mut told = Invalidated { number: 0, dropped: 0, marked: 0, late: false };
    for site in site.all_or(chosen.transpose()?) {
        let applied = change(site, &targets, (&urls, &prefixes), strength, by.clone());
        told.number = told.number.max(applied.number.get());
        told.dropped += applied.dropped;
        told.marked += applied.marked;
    }
    serde_json::to_value(told).map_err(|error| ControlError::Unreadable(error.to_string()))
}

/// Applies the change to one site.
fn change(
    site: &Arc<Site>,
    targets: &[Target<'_>],
    (urls, prefixes): (&[String], &[String]),
    strength: Strength,
    by: Cause,
) -> Applied {
    let mut targets = targets.to_vec();
    // Pages are stored under normalised URLs, so the given ones are normalised too.
    let form = site.config.rules.form();
    let urls: Vec<_> = urls.iter().map(|url| form.normal(url).page).collect();
    let prefixes: Vec<_> = prefixes.iter().map(|path| form.normal(path).page).collect();
    targets.extend(urls.iter().map(|page| Target::Url(page.as_bytes())));
    targets.extend(prefixes.iter().map(|path| Target::Prefix(path.as_bytes())));
    site.changes().apply(&targets, strength, by)
}

/// The part of an error message that says how to name a page.
pub const PATH_OR_URL: &str = "write a path, such as /news/4/, or a whole URL";

/// Returns path and query of a URL. Scheme and host are ignored, because a site has one page for
/// all of them.
///
/// # Errors
/// The text is no path or URL: a sentence for the operator.
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

/// Returns the path of a prefix, which must have no query.
///
/// # Errors
/// As for [`path_and_query`].
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
