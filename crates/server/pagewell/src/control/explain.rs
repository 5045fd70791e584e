//! `POST /v1/explain`: why an address is answered as it is, or what a tag is in.
//! Changes nothing and renders nothing. What is explained how is in [`crate::explain`];
//! here a call is read and held against the sites.

use super::ControlError;
use crate::explain::{self, NotAsked};
use crate::site::Site;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a call asks about: an address with what belongs to it, or a tag.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Explain {
    /// A path with its query, or a whole URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The method of the request; GET unless it says otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Header lines of the request.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// A name of data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// Only in the site that has this host or alias.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub site: Option<String>,
}

/// Carries a call out.
///
/// # Errors
/// What is wrong with it.
pub(super) fn explain(door: &Arc<Site>, call: &Explain) -> Result<serde_json::Value, ControlError> {
    let unknown = |host: &str| ControlError::SiteUnknown(host.to_owned());
    let chosen = call.site.as_deref().map(|host| door.named(host).ok_or_else(|| unknown(host)));
    let chosen = chosen.transpose()?;
    let is_request = call.method.is_some() || !call.headers.is_empty();
    match (&call.url, &call.tag) {
        (Some(url), None) => {
            let asked = explain::asked(door, chosen, url, call.method.as_deref(), &call.headers);
            match asked {
                Ok(asked) => Ok(explain::url(&asked)),
                Err(NotAsked::Unreadable(what)) => Err(ControlError::Unreadable(what)),
                Err(NotAsked::SiteUnknown(host)) => Err(ControlError::SiteUnknown(host)),
            }
        }
        (None, Some(tag)) if !is_request => Ok(explain::tag(door, chosen, tag)),
        _ => {
            let text = "name a url, with method and headers if need be, or a tag: {\"url\":\"/\"}";
            Err(ControlError::Unreadable(text.into()))
        }
    }
}
