//! Certificates in files, as `[[tls]]` names them. They are read again when a file has changed.
//!
//! If one certificate or key is invalid, none is replaced, so that a half-written renewal changes nothing.

use crate::source::{Certificate, CertificateSource, FileNames};
use config::TlsPair;
use rustls::Error;
use rustls::crypto::{CryptoProvider, ring};
use rustls::sign::CertifiedKey;
use rustls_pki_types::pem::{self, PemObject};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use trusted_files::FileStamp;

/// The longest file of a certificate chain or key, in bytes.
const PEM_BYTES_MAX: u64 = 1 << 20;

/// The pairs of files of a configuration.
pub struct CertificateFiles {
    pairs: Vec<TlsPair>,
    /// As they were before they were read last; `None` if they cannot be used.
    seen: Mutex<Option<Vec<Option<FileStamp>>>>,
}

impl CertificateFiles {
    /// The source for these pairs; the files are not read yet.
    ///
    /// # Errors
    /// There is no pair: a sentence for the operator.
    pub fn new(pairs: &[TlsPair]) -> Result<CertificateFiles, String> {
        if pairs.is_empty() {
            return Err("tls: no certificate is given".into());
        }
        Ok(CertificateFiles { pairs: pairs.to_vec(), seen: Mutex::default() })
    }

    /// The files as they are now.
    fn look(&self) -> Vec<Option<FileStamp>> {
        let looks = |pair: &TlsPair| [&pair.certificate, &pair.key].map(|path| FileStamp::at(path));
        self.pairs.iter().flat_map(looks).collect()
    }
}

impl CertificateSource for CertificateFiles {
    fn load_changed(&self) -> Result<Option<Vec<Certificate>>, String> {
        let now = self.look();
        let seen = || self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen().as_ref() == Some(&now) {
            return Ok(None);
        }
        let provider = ring::default_provider();
        let all: Result<Vec<_>, _> =
            self.pairs.iter().map(|pair| read_pair(pair, &provider)).collect();
        // Files that change while they are read are read again at the next look. So are those that cannot be used,
        // because they may be readable soon with the same metadata.
        *seen() = all.is_ok().then_some(now);
        all.map(Some)
    }

    fn has_default(&self) -> bool {
        true
    }

    fn files(&self) -> Vec<FileNames> {
        let of = |pair: &TlsPair| FileNames {
            certificate: pair.certificate.display().to_string(),
            key: pair.key.display().to_string(),
        };
        self.pairs.iter().map(of).collect()
    }
}

/// Loads a certificate chain with its key.
fn read_pair(pair: &TlsPair, provider: &CryptoProvider) -> Result<Certificate, String> {
    let (certificate, key) = (pair.certificate.display(), pair.key.display());
    let of_certificate = |why: String| format!("tls.certificate: {certificate}: {why}");
    let chain = read(&pair.certificate)
        .and_then(|text| CertificateDer::pem_slice_iter(&text).collect::<Result<Vec<_>, _>>())
        .map_err(|error| of_certificate(unread(&error, "certificate")))?;
    let first = chain.first().ok_or_else(|| of_certificate("no certificate in it".into()))?;
    let names = names(first).map_err(of_certificate)?;
    let private = read(&pair.key)
        .and_then(|text| PrivateKeyDer::from_pem_slice(&text))
        .map_err(|error| format!("tls.key: {key}: {}", unread(&error, "private key")))?;
    let certified =
        CertifiedKey::from_der(chain, private, provider).map_err(|error| match error {
            Error::InconsistentKeys(_) => format!("tls.key: {key} is not the key of {certificate}"),
            other => format!("tls: {certificate} with {key}: {other}"),
        })?;
    Ok(Certificate { key: Arc::new(certified), names })
}

/// The DNS names of a certificate, in lower case.
fn names(certificate: &CertificateDer<'_>) -> Result<Vec<String>, String> {
    let certificate = webpki::EndEntityCert::try_from(certificate);
    let certificate = certificate.map_err(|error| error.to_string())?;
    Ok(certificate.valid_dns_names().map(str::to_ascii_lowercase).collect())
}

fn read(path: &Path) -> Result<Vec<u8>, pem::Error> {
    trusted_files::read(path, PEM_BYTES_MAX).map_err(pem::Error::Io)
}

/// A sentence for the operator: why a PEM file could not be read.
fn unread(error: &pem::Error, what: &str) -> String {
    match error {
        pem::Error::Io(error) => error.to_string(),
        pem::Error::NoItemsFound => format!("no {what} in it"),
        other => other.to_string(),
    }
}
