//! The current certificates by server name.
//!
//! For a server name, the certificate with exactly that name is used, else one with a matching wildcard (one label,
//! RFC 6125 section 6.4.3), else the default. Without a default, the handshake fails.

use crate::source::LoadedSource;
use rustls::sign::CertifiedKey;
use std::collections::HashMap;
use std::sync::Arc;

/// Certificates by name. It never changes: a new one replaces it.
#[derive(Debug, Default)]
pub struct ByName {
    names: HashMap<String, Arc<CertifiedKey>>,
    default: Option<Arc<CertifiedKey>>,
}

impl ByName {
    /// The certificates of these sources. If two have the same name, the first is used.
    pub fn of(sources: &[LoadedSource]) -> ByName {
        let mut by_name = ByName::default();
        for LoadedSource { source, certificates, .. } in sources {
            let default = certificates.first().filter(|_| source.has_default());
            by_name.default = by_name.default.or_else(|| default.map(|first| first.key.clone()));
            for certificate in certificates {
                for name in &certificate.names {
                    let key = || certificate.key.clone();
                    by_name.names.entry(name.clone()).or_insert_with(key);
                }
            }
        }
        by_name
    }

    /// The certificate for this server name.
    pub fn find(&self, name: Option<&str>) -> Option<Arc<CertifiedKey>> {
        let Some(name) = name.map(str::to_ascii_lowercase) else { return self.default.clone() };
        self.find_named(&name).or(self.default.as_ref()).cloned()
    }

    /// The certificate that names this server name, which is in lower case.
    pub fn find_named(&self, name: &str) -> Option<&Arc<CertifiedKey>> {
        let wildcard = || {
            let (_, parent) = name.split_once('.')?;
            self.names.get(&format!("*.{parent}"))
        };
        self.names.get(name).or_else(wildcard)
    }

    /// Whether there is a certificate for unknown server names.
    pub fn has_default(&self) -> bool {
        self.default.is_some()
    }
}
