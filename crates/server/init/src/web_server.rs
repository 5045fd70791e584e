//! The sites that nginx and Apache serve on this machine, from their configuration files as text.
//!
//! Only names, document roots, certificates, addresses, sizes of contents and names of parameters are read, and whether
//! a site has rules that would be lost without that server. Variables are not expanded. Not here: which server listens.

mod apache;
mod nginx;

use crate::machine::ExaminedMachine;
use config::units::parse_bytes;
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// The maximum number of configuration files, and the depth of `include`.
const FILES_MAX: usize = 500;
const DEPTH_MAX: usize = 8;
/// The ports that URLs need not name.
const DEFAULT_PORTS: [u16; 2] = [80, 443];

/// A web server whose configuration is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WebServer {
    /// The web server nginx.
    Nginx,
    /// The web server Apache (httpd).
    Apache,
}

impl fmt::Display for WebServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == WebServer::Nginx { "nginx" } else { "Apache" })
    }
}

/// A site of a web server: a `server` block, or a `VirtualHost`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServedSite {
    /// The server that serves it.
    pub server: WebServer,
    /// The configuration file that defines it.
    pub file: PathBuf,
    /// Its host names, without patterns.
    pub names: Vec<String>,
    /// The addresses at which it answers, as this machine reaches them. Of nginx only.
    pub listens: Vec<ServedAddress>,
    /// The document root, if it names one.
    pub root: Option<PathBuf>,
    /// The files of its certificate and key.
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// The address of php-fpm, as `php.at` has it.
    pub php: Option<String>,
    /// The addresses to which it passes requests: a host with a port, or a socket.
    pub passes_to: Vec<String>,
    /// The names of the parameters that it sends to PHP, without those that every server sends.
    pub parameters: Vec<String>,
    /// How long it waits for PHP, as its configuration has it: `300`, `5m`. `None`: its default, a minute.
    pub waits_for_php: Option<String>,
    /// The largest size of a request's content that it accepts, as its configuration has it: `256m`, or `0` without a
    /// limit. `None`: its default. Of nginx only.
    pub body_size: Option<String>,
    /// Whether it sends `open_basedir` to PHP.
    pub sets_basedir: bool,
    /// Whether it sends an `auto_prepend_file` to PHP, other than Pagewell's.
    pub sets_prepend: bool,
    /// Rules of its own: directives that Pagewell does not have.
    pub rules: Vec<String>,
}

/// An address at which a site answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServedAddress {
    /// The address to connect to.
    pub at: SocketAddr,
    /// Whether connections are over TLS.
    pub secure: bool,
}

/// All sites of nginx and Apache.
#[must_use]
pub fn served_sites(machine: &ExaminedMachine) -> Vec<ServedSite> {
    let mut all = nginx::sites(machine);
    all.extend(apache::sites(machine));
    all
}

impl ServedSite {
    fn new(server: WebServer, file: &Path) -> ServedSite {
        ServedSite {
            server,
            file: file.to_owned(),
            names: Vec::new(),
            listens: Vec::new(),
            root: None,
            certificate: None,
            php: None,
            passes_to: Vec::new(),
            parameters: Vec::new(),
            waits_for_php: None,
            body_size: None,
            sets_basedir: false,
            sets_prepend: false,
            rules: Vec::new(),
        }
    }

    /// The ports at which it answers, each once.
    #[must_use]
    pub fn ports(&self) -> Vec<u16> {
        let mut all: Vec<u16> = self.listens.iter().map(|listen| listen.at.port()).collect();
        if all.is_empty() {
            all.extend(DEFAULT_PORTS);
        }
        all.sort_unstable();
        all.dedup();
        all
    }

    /// The first port that URLs of visitors have to name.
    #[must_use]
    pub fn other_port(&self) -> Option<u16> {
        self.ports().into_iter().find(|port| !DEFAULT_PORTS.contains(port))
    }

    /// Whether it answers at a port that URLs need not name.
    #[must_use]
    pub fn has_default_port(&self) -> bool {
        self.ports().iter().any(|port| DEFAULT_PORTS.contains(port))
    }

    fn name(&mut self, name: &str) {
        let name = name.to_ascii_lowercase();
        if is_host(&name) && !self.names.contains(&name) {
            self.names.push(name);
        }
    }

    fn parameter(&mut self, name: &str) {
        if !name.is_empty() && !self.parameters.iter().any(|known| known == name) {
            self.parameters.push(name.to_owned());
        }
    }

    /// Notes a size of a request's content, if it is larger than the others.
    fn accepts(&mut self, size: &str) {
        if accepted_bytes(size) > self.body_size.as_deref().and_then(accepted_bytes) {
            self.body_size = Some(size.to_owned());
        }
    }

    fn rule(&mut self, directive: &str) {
        if !self.rules.iter().any(|known| known == directive) {
            self.rules.push(directive.to_owned());
        }
    }
}

/// The number of bytes of a size in the configuration of nginx, where `0` stands for no limit. `None` if it is no size.
#[must_use]
pub fn accepted_bytes(size: &str) -> Option<u64> {
    let bytes = parse_bytes(size).ok()?;
    Some(if bytes == 0 { u64::MAX } else { bytes })
}

/// Whether a text is the name of a host that visitors could use, with an optional port: no pattern, no
/// variable.
#[must_use]
pub fn is_host(text: &str) -> bool {
    let name = text
        .split_once(':')
        .map_or(text, |(name, port)| if port.parse::<u16>().is_ok() { name } else { "" });
    let is_letter =
        |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
    !name.is_empty()
        && name.len() < 254
        && name.chars().all(is_letter)
        && !name.starts_with(['.', '-'])
}
