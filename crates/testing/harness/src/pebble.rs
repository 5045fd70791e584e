//! A private certificate authority: Pebble, with its server for DNS (`pebble-challtestsrv`), on free ports.
//!
//! It validates every host at 127.0.0.1, at the ports that the test names. Its own certificate is made here;
//! [`Pebble::roots`] is the file that clients trust. Debian has both programs in the package `pebble`. `scripts/setup`
//! builds newer ones where Go is new enough, for what Debian's lack.

use crate::address::Address;
use crate::process::{Process, READY_WITHIN};
use crate::{PrivateDir, StartError, StartReason, find, free_port, root};
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A running Pebble with its server for DNS.
#[derive(Debug)]
pub struct Pebble {
    process: Process,
    _names: Process,
    port: u16,
    dns: u16,
    settings: PebbleSettings,
    dir: PrivateDir,
}

/// How Pebble validates and issues.
#[derive(Clone, Copy, Debug)]
pub struct PebbleSettings {
    /// The port of HTTP-01.
    pub http_port: u16,
    /// The port of TLS-ALPN-01.
    pub tls_port: u16,
    /// The lifetime of certificates.
    pub lifetime: Duration,
    /// How long a validation takes at most; without it, no time.
    pub validation: Option<Duration>,
    /// Whose programs are started.
    pub version: PebbleVersion,
}

/// The versions of Pebble that tests can start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PebbleVersion {
    /// The one on the path, which is that of the system.
    Installed,
    /// A newer one, which suggests renewal times (ARI, RFC 9773).
    Newer,
}

impl Pebble {
    /// Starts Pebble, whose own certificate and key are given in PEM, with their root.
    ///
    /// # Errors
    /// `NotInstalled`, or the reason why it did not become ready.
    pub fn start(
        settings: PebbleSettings,
        (certificate, key, root): (&str, &str, &str),
    ) -> Result<Pebble, StartError> {
        let dir = PrivateDir::temporary("pebble")?;
        let fault = |error| StartError::new("pebble", StartReason::CannotPrepare, error);
        let free = || free_port().map_err(fault);
        let (port, management, dns, names) = (free()?, free()?, free()?, free()?);
        let at = |name: &str| dir.path().join(name);
        for (name, text) in [("own.crt", certificate), ("own.key", key), ("root.crt", root)] {
            fs::write(at(name), text).map_err(fault)?;
        }
        // Newer versions have the lifetime in profiles.
        let seconds = settings.lifetime.as_secs();
        let config = format!(
            r#"{{"pebble": {{"listenAddress": "127.0.0.1:{port}", "managementListenAddress": "127.0.0.1:{management}",
            "certificate": {:?}, "privateKey": {:?}, "httpPort": {}, "tlsPort": {}, "ocspResponderURL": "",
            "externalAccountBindingRequired": false, "certificateValidityPeriod": {seconds}, "profiles": {{"default": {{"description": "", "validityPeriod": {seconds}}}}}}}}}"#,
            at("own.crt"),
            at("own.key"),
            settings.http_port,
            settings.tls_port,
        );
        fs::write(at("config.json"), config).map_err(fault)?;
        let names_process = name_server((dns, names), &at("names.log"), settings.version)?;
        let process = run(dir.path(), port, dns, &settings)?;
        Ok(Pebble { process, _names: names_process, port, dns, settings, dir })
    }

    /// The URL of its directory.
    #[must_use]
    pub fn directory(&self) -> String {
        format!("https://localhost:{}/dir", self.port)
    }

    /// The file with the root of its own certificate, for `SSL_CERT_FILE`.
    #[must_use]
    pub fn roots(&self) -> PathBuf {
        self.dir.path().join("root.crt")
    }

    /// How many certificates it has issued.
    #[must_use]
    pub fn issued(&self) -> usize {
        let log = fs::read_to_string(self.dir.path().join("pebble.log")).unwrap_or_default();
        log.matches("Issued certificate serial").count()
    }

    /// Whether it has an order.
    #[must_use]
    pub fn has_order(&self) -> bool {
        let log = fs::read_to_string(self.dir.path().join("pebble.log")).unwrap_or_default();
        log.contains("POST /order-plz")
    }

    /// Starts it again at the same port, without its former accounts.
    ///
    /// # Errors
    /// As for [`start`](Self::start).
    pub fn start_again(&mut self) -> Result<(), StartError> {
        self.process = run(self.dir.path(), self.port, self.dns, &self.settings)?;
        Ok(())
    }

    /// Stops it: nothing answers at its port.
    pub fn stop(&mut self) {
        self.process.stop();
    }

    /// How it validates and issues.
    #[must_use]
    pub fn settings(&self) -> PebbleSettings {
        self.settings
    }
}

/// Starts Pebble's server for DNS on the first port of 127.0.0.1. Every host has the address 127.0.0.1 there, unless a
/// call at the second port has set other records.
///
/// # Errors
/// `NotInstalled`, or the reason why it did not become ready.
pub fn name_server(
    (dns, management): (u16, u16),
    log: &Path,
    version: PebbleVersion,
) -> Result<Process, StartError> {
    let name = "pebble-challtestsrv";
    let program = program(name, version)?;
    let mut command = Command::new(&program);
    command.args(["-defaultIPv6", "", "-http01", "", "-https01", "", "-tlsalpn01", ""]);
    // Newer versions have another name for the address of DNS, and would use a fixed port for DNS over HTTPS.
    let is_newer = has_option(&program, "-dnsserver ");
    if is_newer {
        command.args(["-doh", ""]);
    }
    let dns_option = if is_newer { "-dnsserver" } else { "-dns01" };
    command.args([dns_option, &format!("127.0.0.1:{dns}")]);
    command.args(["-management", &format!("127.0.0.1:{management}")]);
    let mut process = Process::spawn(name, &mut command, log)?;
    let at = [management, dns].map(|port| Address::Tcp(SocketAddr::from(([127, 0, 0, 1], port))));
    process.wait_ready(READY_WITHIN, || at.iter().all(Address::accepts))?;
    Ok(process)
}

fn run(dir: &Path, port: u16, dns: u16, settings: &PebbleSettings) -> Result<Process, StartError> {
    let mut command = Command::new(program("pebble", settings.version)?);
    command.arg("-config").arg(dir.join("config.json"));
    command.args(["-strict", "-dnsserver", &format!("127.0.0.1:{dns}")]);
    // Some nonces are refused, as a busy authority does; more than three in a row are too rare for a test.
    command.env("PEBBLE_WFE_NONCEREJECT", "5").env("PEBBLE_AUTHZREUSE", "0");
    match settings.validation {
        Some(time) => command.env("PEBBLE_VA_SLEEPTIME", time.as_secs().to_string()),
        None => command.env("PEBBLE_VA_NOSLEEP", "1"),
    };
    let mut process = Process::spawn("pebble", &mut command, &dir.join("pebble.log"))?;
    let address = Address::Tcp(SocketAddr::from(([127, 0, 0, 1], port)));
    process.wait_ready(READY_WITHIN, || address.accepts())?;
    Ok(process)
}

/// Whether the help of a program names this option.
fn has_option(program: &Path, option: &str) -> bool {
    let help = Command::new(program).arg("-help").output();
    help.is_ok_and(|help| String::from_utf8_lossy(&help.stderr).contains(option))
}

/// The program of this name.
fn program(name: &str, version: PebbleVersion) -> Result<PathBuf, StartError> {
    if version == PebbleVersion::Installed {
        return find::program(&[name]);
    }
    let built = root::target().join("pebble").join(name);
    if built.exists() {
        return Ok(built);
    }
    let detail = format!("there is no {}, which needs a new Go", built.display());
    Err(StartError::new(name, StartReason::NotInstalled, detail))
}
