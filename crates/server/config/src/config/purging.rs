//! `[purge]` as used: the authorisation of `PURGE`, `BAN` and similar requests. By default only
//! local requests are allowed, and only without signs that a proxy forwarded them. `purger` checks
//! requests; this module only contains the operator's settings.

use super::raw;
use super::resolve::{LoadError, read_token, wrong};
use request_values::networks::Networks;

/// The default networks that may purge without a token.
pub(super) const LOOPBACK: [&str; 2] = ["127.0.0.0/8", "::1"];

/// The authorisation of purge requests.
#[derive(Clone, Debug, Default)]
pub struct Purging {
    /// The networks that may purge without a token.
    pub from: Networks,
    /// The token with which any address may purge.
    pub token: Option<String>,
    /// The path below which GET requests purge, without a trailing slash.
    pub get_below: Option<String>,
}

/// Checks and completes `[purge]`.
pub(super) fn resolve(raw: &raw::Purge) -> Result<Purging, LoadError> {
    let from = match &raw.from {
        Some(words) => words.clone(),
        None => LOOPBACK.map(str::to_owned).to_vec(),
    };
    let get_below = raw.get_below.as_deref().map(path).transpose()?;
    Ok(Purging {
        from: Networks::read(&from).or_else(|error| wrong("purge.from", error))?,
        token: read_token("purge.token_file", raw.token_file.as_deref())?,
        get_below,
    })
}

fn path(text: &str) -> Result<String, LoadError> {
    let path = text.trim_end_matches('/');
    if path.len() > 1 && path.starts_with('/') && !path.contains(['?', '#', '*', ' ']) {
        Ok(path.to_owned())
    } else {
        wrong("purge.get_below", format!("{text:?}: write a path, such as /purge"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Purging, LoadError> {
        resolve(&toml::from_str(text).unwrap())
    }

    #[test]
    fn loopback_is_the_default() {
        let found = read("").unwrap();
        for (address, right) in
            [("127.0.0.1", true), ("127.9.9.9", true), ("::1", true), ("10.0.0.1", false)]
        {
            assert_eq!(found.from.have(address.parse().unwrap()), right, "{address}");
        }
        assert!(!found.from.have_peer(None));
        assert!(read("from = []").unwrap().from.is_empty());
        assert_eq!(read("get_below = \"/purge/\"").unwrap().get_below.as_deref(), Some("/purge"));
    }

    #[test]
    fn an_invalid_value_is_refused_with_a_reason() {
        for (text, part) in [
            ("from = [\"here\"]", "purge.from"),
            ("token_file = \"/no/such\"", "purge.token_file"),
            ("get_below = \"/\"", "purge.get_below"),
            ("get_below = \"purge\"", "such as /purge"),
        ] {
            assert!(read(text).unwrap_err().0.contains(part), "{text}");
        }
    }
}
