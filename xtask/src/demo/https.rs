//! `cargo xtask demo --https`: the demo with HTTPS. Pebble, a certificate authority for tests, runs beside it, and
//! Pagewell obtains its certificate there as it would at a public authority.
//!
//! Not here: trust. The root of Pebble is made for each run, and no browser knows it.

use harness::{
    Client, Deadline, Pagewell, Pebble, PebbleSettings, PebbleVersion, StartReason, free_port,
};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// The host of the demo. Authorities certify no `localhost`.
pub const HOST: &str = "post.example.org";
const LIFETIME: Duration = Duration::from_secs(90 * 86_400);
/// How long the certificate may take.
const ISSUED_WITHIN: Duration = Duration::from_secs(180);

/// A running authority, and the port of HTTPS.
pub struct HttpsDemo {
    pebble: Pebble,
    port: u16,
}

impl HttpsDemo {
    /// Starts the authority. It validates hosts at this port of 127.0.0.1.
    pub fn start(http_port: u16) -> Result<HttpsDemo, String> {
        let port = free_port().map_err(|error| format!("demo: {error}"))?;
        let settings = PebbleSettings {
            http_port,
            tls_port: port,
            lifetime: LIFETIME,
            validation: None,
            version: PebbleVersion::Installed,
        };
        let (leaf, key, root) = own_certificate().map_err(|error| format!("demo: {error}"))?;
        let pebble = Pebble::start(settings, (&leaf, &key, &root)).map_err(|error| {
            let hint = match error.reason {
                StartReason::NotInstalled => "\nHTTPS=1 scripts/setup demo installs it.",
                _ => "",
            };
            format!("demo: {error}{hint}")
        })?;
        Ok(HttpsDemo { pebble, port })
    }

    /// The configuration of Pagewell, whose certificates are stored below `dir`.
    pub fn config(&self, dir: &Path) -> String {
        // The authority of another day is gone, and so is its account.
        let storage = dir.join("acme");
        let _ = std::fs::remove_dir_all(&storage);
        format!(
            "listen_tls = \"127.0.0.1:{}\"\n[site]\nhost = \"{HOST}\"\naliases = [\"127.0.0.1\", \"localhost\"]\n\
             [acme]\ndirectory = {:?}\nstorage = {storage:?}\n",
            self.port,
            self.pebble.directory()
        )
    }

    /// Lets Pagewell trust the authority's own certificate.
    pub fn trust(&self, command: &mut Command) {
        command.env("SSL_CERT_FILE", self.pebble.roots());
    }

    /// Waits for the certificate.
    pub fn wait(&self, server: &Pagewell) -> Result<(), String> {
        let deadline = Deadline::after(ISSUED_WITHIN);
        let mut client = Client::new(server.admin().clone());
        loop {
            let answer =
                client.get("/v1/certificates").map_err(|error| format!("demo: {error}"))?;
            if answer.text().contains("Pebble Intermediate CA") {
                return Ok(());
            }
            if deadline.passed() {
                return Err(format!("demo: no certificate: {}\n{}", answer.text(), server.log()));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The commands to try.
    pub fn instructions(&self, server: &Pagewell) -> String {
        let (port, admin) = (self.port, server.admin());
        format!(
            "
With HTTPS, by a certificate of the local authority Pebble:

  7. curl -kv --resolve {HOST}:{port}:127.0.0.1 https://{HOST}:{port}/ -o /dev/null 2>&1 | grep -E 'issuer|HTTP/2 '
        … Pebble Intermediate CA …  issued within seconds of the start, renewed by itself
  8. pagewell certificates --admin {admin}
        issuer, end, and the next call of the authority
"
        )
    }
}

/// The authority's own certificate, its key and its root, in PEM.
fn own_certificate() -> Result<(String, String, String), rcgen::Error> {
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::new(Vec::new())?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let root = params.self_signed(&key)?.pem();
    let issuer = Issuer::new(params, key);
    let own = KeyPair::generate()?;
    let leaf = CertificateParams::new(["localhost".to_owned()])?.signed_by(&own, &issuer)?;
    Ok((leaf.pem(), own.serialize_pem(), root))
}
