//! `POST /v1/explain`: explains how a URL is answered, or which pages depend on a tag. It changes
//! nothing and sends no request to the origin. This file parses the call and finds the site;
//! [`crate::explain`] creates the explanation.

use super::ControlError;
use crate::explain::{self, ExplainRequest, NotAsked};
use delivery::site::Site;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

/// The body of a call: a URL with its request, or a tag.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Explain {
    /// A path with its query, or an absolute URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The method of the request; the default is GET.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// The header fields of the request.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// A tag (surrogate key).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// Limits the call to the site with this host or alias.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub site: Option<String>,
    /// The address of the client; none is assumed without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<IpAddr>,
}

/// Executes a call.
///
/// # Errors
/// The call is invalid, or names an unknown site.
pub(super) fn explain(
    default_site: &Arc<Site>,
    call: &Explain,
) -> Result<serde_json::Value, ControlError> {
    let unknown = |host: &str| ControlError::SiteUnknown(host.to_owned());
    let chosen =
        call.site.as_deref().map(|host| default_site.named(host).ok_or_else(|| unknown(host)));
    let chosen = chosen.transpose()?;
    let is_request = call.method.is_some() || !call.headers.is_empty() || call.from.is_some();
    match (&call.url, &call.tag) {
        (Some(url), None) => {
            let asked = explain::explain_request(
                default_site,
                chosen,
                url,
                call.method.as_deref(),
                &call.headers,
            );
            match asked {
                Ok(asked) => Ok(explain::url(&ExplainRequest { from: call.from, ..asked })),
                Err(NotAsked::Unreadable(what)) => Err(ControlError::Unreadable(what)),
                Err(NotAsked::SiteUnknown(host)) => Err(ControlError::SiteUnknown(host)),
            }
        }
        (None, Some(tag)) if !is_request => Ok(explain::tag(default_site, chosen, tag)),
        _ => {
            let text = "name a url, with method and headers if need be, or a tag: {\"url\":\"/\"}";
            Err(ControlError::Unreadable(text.into()))
        }
    }
}
