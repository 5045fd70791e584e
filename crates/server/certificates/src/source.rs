//! The seam for sources of certificates: a trait, and the certificates that a source has loaded.
//!
//! Not here: the choice among sources by server name (`lib.rs`), and the source that reads files (`files.rs`).

use crate::leaf::LeafFacts;
use crate::managed::{CertificateStatus, FailureCause, TryFailure};
use rustls::sign::CertifiedKey;
use std::sync::Arc;

/// A certificate chain with its key.
#[derive(Clone, Debug)]
pub struct Certificate {
    /// The chain and the key.
    pub key: Arc<CertifiedKey>,
    /// The server names for which it is used, in lower case; `*.` stands for one label.
    pub names: Vec<String>,
}

/// A source with its certificates as last loaded.
pub struct LoadedSource {
    /// The source, which is asked again for changes.
    pub source: Box<dyn CertificateSource>,
    /// Its certificates; none before the first load.
    pub certificates: Vec<Certificate>,
    /// Why its last load failed, if it did.
    pub failure: Option<String>,
}

impl LoadedSource {
    /// A source that has not been loaded.
    pub fn new(source: Box<dyn CertificateSource>) -> LoadedSource {
        LoadedSource { source, certificates: Vec::new(), failure: None }
    }

    /// The state of its certificates that are in files.
    pub fn given(&self) -> impl Iterator<Item = CertificateStatus> {
        self.source.files().into_iter().zip(&self.certificates).map(|(files, certificate)| {
            let facts = certificate.key.cert.first().and_then(LeafFacts::read);
            let name = match certificate.names.first() {
                Some(name) => name.clone(),
                None => files.certificate.clone(),
            };
            let is_about =
                |why: &&String| why.contains(&files.certificate) || why.contains(&files.key);
            let failure = self.failure.as_ref().filter(is_about).map(|why| TryFailure {
                at_ms: None,
                text: why.clone(),
                cause: FailureCause::File,
            });
            CertificateStatus {
                name,
                issuer: facts.as_ref().map(|facts| facts.issuer.clone()),
                begins_ms: facts.as_ref().map(|facts| facts.begins_ms),
                ends_ms: facts.as_ref().map(|facts| facts.ends_ms),
                next_try_ms: None,
                failure,
                file: Some(files.certificate),
            }
        })
    }
}

/// The files of a certificate.
pub struct FileNames {
    /// That of the chain.
    pub certificate: String,
    /// That of the key.
    pub key: String,
}

/// Where certificates come from. A source may change them at any time, each host by itself; it is asked for changes
/// every few seconds, and at once after `Certificates::refresh`.
pub trait CertificateSource: Send + Sync {
    /// Loads all certificates of the source, if they may have changed since the last call; `None` if they have not.
    ///
    /// # Errors
    /// A sentence for the operator, perhaps at each call until they can be used. The certificates that were loaded
    /// before stay in use.
    fn load_changed(&self) -> Result<Option<Vec<Certificate>>, String>;

    /// Whether its first certificate is for clients that send no server name, or an unknown one. Otherwise their
    /// handshake fails.
    fn has_default(&self) -> bool {
        false
    }

    /// The files of its certificates, in their order, if they are in files of the configuration.
    fn files(&self) -> Vec<FileNames> {
        Vec::new()
    }
}
