//! The seam for sources of certificates: a trait, and the certificates that a source has loaded.
//!
//! Not here: the choice among sources by server name (`lib.rs`), and the source that reads files (`files.rs`).

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
}

/// Where certificates come from. A source may change them at any time, each host by itself; it is asked for changes
/// every few seconds, and at once after `Certificates::refresh`.
pub trait CertificateSource: Send + Sync {
    /// Loads all certificates of the source, if they may have changed since the last call; `None` if they have not.
    ///
    /// # Errors
    /// A sentence for the operator, once for each change. The certificates that were loaded before stay in use.
    fn load_changed(&self) -> Result<Option<Vec<Certificate>>, String>;

    /// Whether its first certificate is for clients that send no server name, or an unknown one. Otherwise their
    /// handshake fails.
    fn has_default(&self) -> bool {
        false
    }
}
