//! The certificates of authorities that sign the servers to which Pagewell connects: the system's, or those of a file.
//!
//! They are the same for HTTP origins, databases and certificate authorities. Not here: the names for which a
//! certificate must be valid.

use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use std::path::Path;
use std::sync::Arc;

/// Reads the certificates of authorities from a PEM file, or those that the system trusts. The system's files may have
/// certificates that rustls does not accept; these are left out.
///
/// # Errors
/// The file cannot be read, or there is no usable certificate: a sentence for the operator.
pub fn authorities(file: Option<&Path>) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    let Some(path) = file else {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if roots.is_empty() {
            return Err("the system trusts no authority: install the package ca-certificates, or \
                        name a file"
                .into());
        }
        return Ok(roots);
    };
    let said = |why: String| format!("{}: {why}", path.display());
    let read = CertificateDer::pem_file_iter(path).map_err(|error| said(error.to_string()))?;
    for certificate in read {
        let certificate = certificate.map_err(|error| said(error.to_string()))?;
        // A system's file may be named here, too.
        let _ = roots.add(certificate);
    }
    if roots.is_empty() { Err(said("no certificate is in it".into())) } else { Ok(roots) }
}

/// The TLS of a client that trusts these authorities: TLS 1.2 and 1.3, without a certificate of its own.
///
/// # Errors
/// The provider does not support these versions: a sentence.
pub fn client_config(roots: RootCertStore) -> Result<ClientConfig, String> {
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13, &rustls::version::TLS12])
        .map_err(|error| error.to_string())?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}
