//! Facts of a host's own certificate: its names, its issuer and its lifetime (RFC 5280).
//!
//! Invariant: the issuer can be shown in a terminal, and has a bounded length. Not here: trust in the issuer, which
//! clients check, and keys.

use rustls_pki_types::CertificateDer;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

/// The most characters of an issuer that are shown.
const ISSUER_CHARACTERS: usize = 100;

/// The facts of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeafFacts {
    /// Its DNS names, in lower case.
    pub names: Vec<String>,
    /// The name of the issuer.
    pub issuer: String,
    /// When it begins, in milliseconds since 1970.
    pub begins_ms: u64,
    /// When it ends, in milliseconds since 1970.
    pub ends_ms: u64,
}

impl LeafFacts {
    /// Reads a certificate; `None` if it is none.
    pub fn read(certificate: &CertificateDer<'_>) -> Option<LeafFacts> {
        let (_, read) = X509Certificate::from_der(certificate).ok()?;
        let names = read.subject_alternative_name().ok().flatten();
        let names = names.map(|names| &names.value.general_names[..]).unwrap_or_default();
        let of_dns = |name: &GeneralName<'_>| match name {
            GeneralName::DNSName(name) => Some(name.to_ascii_lowercase()),
            _ => None,
        };
        let ms = |seconds: i64| u64::try_from(seconds).unwrap_or(0).saturating_mul(1000);
        let validity = read.validity();
        let name = read.issuer();
        let common = name.iter_common_name().chain(name.iter_organization()).next();
        let issuer = common.and_then(|name| name.as_str().ok()).unwrap_or("unknown");
        let shown = issuer.chars().filter(|character| !character.is_control());
        Some(LeafFacts {
            names: names.iter().filter_map(of_dns).collect(),
            issuer: shown.take(ISSUER_CHARACTERS).collect(),
            begins_ms: ms(validity.not_before.timestamp()),
            ends_ms: ms(validity.not_after.timestamp()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, DnType, KeyPair, date_time_ymd};

    #[test]
    fn a_certificate_is_read_and_a_damaged_one_is_none() {
        let mut params =
            CertificateParams::new(vec!["A.org".to_owned(), "10.0.0.1".into()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, format!("\x1b{}", "x".repeat(200)));
        (params.not_before, params.not_after) =
            (date_time_ymd(1970, 1, 2), date_time_ymd(2060, 1, 1));
        let made = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        let facts = LeafFacts::read(made.der()).unwrap();
        assert_eq!((facts.names, facts.issuer), (vec!["a.org".to_owned()], "x".repeat(100)));
        assert_eq!((facts.begins_ms, facts.ends_ms), (86_400_000, 2_840_140_800_000));
        for end in 0..made.der().len() {
            assert_eq!(LeafFacts::read(&made.der()[..end].to_vec().into()), None, "{end} bytes");
        }
    }
}
