//! A certificate chain with its key, in PEM: first the key, then the chain, in one file, so that both always belong
//! together.
//!
//! Invariant: a bundle is accepted only if its key is that of the first certificate, and the host is one of its names.
//! Not here: trust in the issuer, which clients check.

use certificates::{Certificate, LeafFacts};
use rustls::crypto::ring;
use rustls::sign::CertifiedKey;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::sync::Arc;

/// The longest bundle in bytes.
pub const BUNDLE_BYTES_MAX: usize = 256 << 10;

/// When a certificate is valid, in milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetime {
    /// The begin of the lifetime.
    pub from_ms: u64,
    /// The end of the lifetime.
    pub until_ms: u64,
}

impl Lifetime {
    /// The length of the lifetime in milliseconds.
    pub fn length_ms(self) -> u64 {
        self.until_ms.saturating_sub(self.from_ms)
    }
}

/// A certificate of a host, ready for use.
#[derive(Clone, Debug)]
pub struct Bundle {
    /// The chain with the key, for the host.
    pub certificate: Certificate,
    /// When the first certificate is valid.
    pub lifetime: Lifetime,
    /// The name of the issuer.
    pub issuer: String,
}

impl Bundle {
    /// Reads a bundle for a host.
    ///
    /// # Errors
    /// The bundle cannot be used for this host: a sentence without its begin.
    pub fn read(host: &str, pem: &[u8]) -> Result<Bundle, String> {
        if pem.len() > BUNDLE_BYTES_MAX {
            return Err(format!("more than {BUNDLE_BYTES_MAX} bytes"));
        }
        let chain = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
        let chain = chain.map_err(|error| format!("no certificate: {error}"))?;
        let first = chain.first().ok_or("no certificate in it")?;
        let (lifetime, issuer) = facts(host, first)?;
        let key = PrivateKeyDer::from_pem_slice(pem);
        let key = key.map_err(|error| format!("no private key: {error}"))?;
        let key = CertifiedKey::from_der(chain, key, &ring::default_provider())
            .map_err(|error| format!("the key is not that of the certificate: {error}"))?;
        let certificate = Certificate { key: Arc::new(key), names: vec![host.to_owned()] };
        Ok(Bundle { certificate, lifetime, issuer })
    }

    /// Whether this certificate begins later than the other one, or there is no other one.
    pub fn is_newer(&self, other: Option<&Bundle>) -> bool {
        other.is_none_or(|other| self.lifetime.from_ms > other.lifetime.from_ms)
    }

    /// The host's own certificate, the first of the chain.
    pub fn leaf(&self) -> &CertificateDer<'static> {
        &self.certificate.key.cert[0]
    }
}

/// The lifetime and the issuer of a certificate, which must name the host.
fn facts(host: &str, leaf: &CertificateDer<'_>) -> Result<(Lifetime, String), String> {
    let facts = LeafFacts::read(leaf).ok_or("not a certificate")?;
    if !facts.names.iter().any(|name| name.eq_ignore_ascii_case(host)) {
        return Err(format!("it is not for {host}"));
    }
    let lifetime = Lifetime { from_ms: facts.begins_ms, until_ms: facts.ends_ms };
    if lifetime.until_ms <= lifetime.from_ms {
        return Err("it ends before it begins".into());
    }
    Ok((lifetime, facts.issuer))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pem(name: &str) -> (String, String) {
        let made = rcgen::generate_simple_self_signed(vec![name.to_owned()]).expect("made");
        (made.signing_key.serialize_pem(), made.cert.pem())
    }

    #[test]
    fn key_chain_and_host_belong_together() {
        let ((key, chain), (other_key, _)) = (pem("a.org"), pem("a.org"));
        let bundle = Bundle::read("a.org", format!("{key}{chain}").as_bytes()).expect("a bundle");
        assert!(bundle.lifetime.length_ms() > 0 && !bundle.issuer.is_empty());
        assert_eq!(bundle.certificate.names, ["a.org"]);
        let of = |host: &str, pem: String| Bundle::read(host, pem.as_bytes()).expect_err("refused");
        assert_eq!(of("b.org", format!("{key}{chain}")), "it is not for b.org");
        assert!(of("a.org", format!("{other_key}{chain}")).contains("not that of the certificate"));
        assert!(of("a.org", chain.clone()).starts_with("no private key"));
        assert_eq!(of("a.org", key), "no certificate in it");
        assert!(of("a.org", "x".repeat(BUNDLE_BYTES_MAX + 1)).starts_with("more than"));
    }
}
