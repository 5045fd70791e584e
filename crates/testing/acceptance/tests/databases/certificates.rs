//! Certificates for databases, created by the test: a CA, and a server certificate that it has signed.

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};

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
