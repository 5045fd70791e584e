//! `[traces]`: the collector of spans, and the share of traced requests.
//!
//! Without `to` nothing is traced, and the other keys are refused, because they would have no
//! effect. The collector is not contacted here: it may be started later.

use super::raw;
use super::resolve::{LoadError, wrong};
use http::Uri;

/// The default share of requests that begin a trace: one in a hundred.
const SHARE: f64 = 0.01;
/// The path to which collectors accept traces (OTLP over HTTP).
const PATH: &str = "/v1/traces";

/// The collector of spans, and the share of traced requests.
#[derive(Clone, Debug, PartialEq)]
pub struct Traces {
    /// The collector's host and port.
    pub authority: String,
    /// The path at the collector.
    pub path: String,
    /// The share of requests, from 0 to 1, that are traced if no other party has decided.
    pub share: f64,
    /// Pagewell's service name in traces.
    pub service: String,
}

/// Checks and completes `[traces]`; `None` if nothing is traced.
pub(super) fn resolve(raw: &raw::Traces) -> Result<Option<Traces>, LoadError> {
    let Some(to) = &raw.to else {
        return if raw.share.is_some() || raw.service.is_some() {
            wrong("traces.to", "is required, because it turns traces on")
        } else {
            Ok(None)
        };
    };
    let uri: Option<Uri> = to.parse().ok();
    let uri = uri.filter(|uri| uri.scheme_str() == Some("http") && uri.query().is_none());
    let host = uri.as_ref().and_then(|uri| uri.host().filter(|host| !host.is_empty()));
    let (Some(uri), Some(host)) = (&uri, host) else {
        return wrong("traces.to", format!("{to:?}: write http://host:4318/v1/traces"));
    };
    let path = if matches!(uri.path(), "" | "/") { PATH } else { uri.path() };
    let share = raw.share.unwrap_or(SHARE);
    if !(0.0..=1.0).contains(&share) {
        return wrong("traces.share", format!("{share}: must be from 0 to 1"));
    }
    Ok(Some(Traces {
        authority: format!("{host}:{}", uri.port_u16().unwrap_or(4318)),
        path: path.to_owned(),
        share,
        service: raw.service.clone().unwrap_or_else(|| "pagewell".into()),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Option<Traces>, LoadError> {
        resolve(&toml::from_str(text).unwrap())
    }

    #[test]
    fn the_address_has_a_port_and_a_path() {
        let right = |text: &str| {
            let traces = read(&format!("to = {text:?}")).unwrap().unwrap();
            (traces.authority, traces.path)
        };
        let usual = ("127.0.0.1:4318".to_owned(), "/v1/traces".to_owned());
        assert_eq!(right("http://127.0.0.1:4318/v1/traces"), usual);
        assert_eq!(right("http://127.0.0.1"), usual);
        assert_eq!(right("http://[::1]:1/x"), ("[::1]:1".into(), "/x".into()));
        for wrong in ["", "127.0.0.1:4318", "https://a/", "http://", "http://a/?b"] {
            assert!(read(&format!("to = {wrong:?}")).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_share_is_a_share() {
        assert_eq!(read("").unwrap(), None);
        assert!(read("share = 1.0").is_err() && read("to = \"http://a\"\nshare = 1.1").is_err());
        assert!(read("to = \"http://a\"\nshare = -0.1").is_err());
        assert_eq!(read("to = \"http://a\"\nshare = 1.0").unwrap().unwrap().share, 1.0);
        assert_eq!(read("to = \"http://a\"").unwrap().unwrap().share, SHARE);
    }
}
