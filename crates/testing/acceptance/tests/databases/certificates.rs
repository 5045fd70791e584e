//! Certificates for databases, created by the test: a CA, and a server certificate that it has signed.

use harness::PrivateDir;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// Writes a PEM file that a server of another user can read, and returns its path.
pub fn written(dir: &PrivateDir, name: &str, text: &str) -> String {
    let path = dir.path().join(name);
    fs::write(&path, text).expect("a file");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("its mode");
    path.display().to_string()
}

/// A CA, a certificate for `localhost` that it has signed, and the key of that certificate, all PEM.
pub fn certificates() -> (String, String, String) {
    let mut params = CertificateParams::new(Vec::new()).expect("parameters");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca_key = KeyPair::generate().expect("a key");
    let ca = params.self_signed(&ca_key).expect("an authority");
    let issuer = Issuer::from_params(&params, &ca_key);
    let key = KeyPair::generate().expect("a key");
    let leaf = CertificateParams::new(vec!["localhost".to_owned()]).expect("parameters");
    let leaf = leaf.signed_by(&key, &issuer).expect("a certificate");
    (ca.pem(), leaf.pem(), key.serialize_pem())
}
