//! `POST /v1/invalidate`: what an operator or a program drops, or marks, by name.
//!
//! All that one call names is one change in each site that it is for, and it is answered when nobody
//! gets a page of before any more. What is not understood changes nothing: an unknown key, a URL that
//! is none, and a call that names nothing are errors.

use super::ControlError;
use crate::site::Site;
use crate::why::Cause;
use crate::why::shown::cut;
use page_store::{AppliedChange, ChangeTarget, Strength};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::sync::Arc;

/// What a call names.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Invalidate {
    /// Names of data.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// URLs, or paths with their query.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub urls: Vec<String>,
    /// Paths, or URLs without a query: each stands for all that lies below it, and itself.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub prefixes: Vec<String>,
    /// Everything.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub all: bool,
    /// Mark pages instead of dropping them: they are used as stale only, where they allow that.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub soft: bool,
    /// Only in the site that has this host or alias; without it in every site.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub site: Option<String>,
}

/// What came of it.
#[derive(Debug, Deserialize, Serialize)]
pub struct Invalidated {
    /// The change's number; of several sites the highest.
    pub number: u64,
    /// How many pages were dropped.
    pub dropped: u64,
    /// How many pages were marked that were not marked before.
    #[serde(default)]
    pub marked: u64,
    /// The other machines of a `[stream]` have not all been told yet, because it cannot be reached.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub late: bool,
}

/// Carries a call out.
///
/// # Errors
/// What is wrong with it; nothing was changed then.
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
    let mut targets: Vec<ChangeTarget<'_>> = Vec::new();
    targets.extend(call.tags.iter().map(|tag| ChangeTarget::Tag(tag.as_bytes())));
    if call.all {
        targets.push(ChangeTarget::Everything);
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

/// Takes the change in, at one site.
fn change(
    site: &Arc<Site>,
    targets: &[ChangeTarget<'_>],
    (urls, prefixes): (&[String], &[String]),
    strength: Strength,
    by: Cause,
) -> AppliedChange {
    let mut targets = targets.to_vec();
    // However they were written: the page is stored by its normal form.
    let form = site.config.rules.form();
    let urls: Vec<_> = urls.iter().map(|url| form.normal(url).page).collect();
    let prefixes: Vec<_> = prefixes.iter().map(|path| form.normal(path).page).collect();
    targets.extend(urls.iter().map(|page| ChangeTarget::Url(page.as_bytes())));
    targets.extend(prefixes.iter().map(|path| ChangeTarget::Prefix(path.as_bytes())));
    site.change(&targets, strength, by)
}

/// What to write where a page is named.
pub const PATH_OR_URL: &str = "write a path, such as /news/4/, or a whole URL";

/// Path and query of a URL, whatever its scheme and host: a site has one page for all of them.
///
/// # Errors
/// A sentence: it is no such thing.
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

/// The same for a prefix, which has no query.
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
