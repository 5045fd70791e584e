//! The environment variables by which the scripts of a private php-fpm find the control interface of
//! this Pagewell: `PAGEWELL_ADMIN`, and `PAGEWELL_TOKEN_FILE` if a token is required.
//!
//! Without them the PHP library calls 127.0.0.1:8081, where another Pagewell may answer. A variable
//! that the operator has set (`php.env`, `--php-env`) is left alone. If the operator has named another
//! address, the token of this Pagewell is not passed on.
//!
//! The token file is passed on only if the user of php-fpm's children can read it. The test runs as
//! that user, so that it covers groups, access lists and the directories above the file.

use crate::privileges::{of as account_of, run_as};
use config::{Address, Config, OriginConfig, OwnPhp};
use std::fs::File;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

/// The address of the control interface, for the PHP library.
const ADMIN: &str = "PAGEWELL_ADMIN";
/// The file with its token.
const TOKEN_FILE: &str = "PAGEWELL_TOKEN_FILE";

/// Returns the variables for a site's scripts; none if the site has no private php-fpm. `admin` is
/// the bound address of the control interface. A token file that php-fpm's children cannot read is
/// left out, with a line in the log.
pub fn of(site: &Config, admin: &Address, token_file: Option<&Path>) -> Vec<(String, String)> {
    let OriginConfig::OwnPhp(php) = &site.site.origin else { return Vec::new() };
    let is_set = |variable: &str| php.env.iter().any(|(name, _)| name == variable);
    if is_set(ADMIN) {
        return Vec::new();
    }
    let mut environment = vec![(ADMIN.to_owned(), reachable(admin).to_string())];
    let token_file = token_file.filter(|_| !is_set(TOKEN_FILE));
    // PHP may run in another directory.
    let token_file = token_file.and_then(|file| std::path::absolute(file).ok());
    if let Some(file) = token_file {
        match readable(php, &file) {
            Ok(()) => environment.push((TOKEN_FILE.to_owned(), file.display().to_string())),
            Err(Unreadable { user, why }) => tracing::warn!(
                event = "token-file-not-passed",
                path = %file.display(),
                user,
                error = why,
                remedy = "changes that PHP sends to the control interface are refused: let this user \
                          read the file, or set php.env.PAGEWELL_TOKEN_FILE, and restart Pagewell"
            ),
        }
    }
    environment
}

/// The address at which this machine reaches the interface: loopback if it listens on all addresses.
fn reachable(admin: &Address) -> Address {
    match admin {
        Address::Tcp(tcp) if tcp.ip().is_unspecified() => {
            let loopback = match tcp {
                SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
                SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
            };
            Address::Tcp(SocketAddr::new(loopback, tcp.port()))
        }
        other => other.clone(),
    }
}

/// The user that cannot read the token file, and the reason.
struct Unreadable {
    user: String,
    why: String,
}

/// Opens the file as the user of php-fpm's children: `php.user` if root runs Pagewell, otherwise the
/// user of this process.
fn readable(php: &OwnPhp, file: &Path) -> Result<(), Unreadable> {
    let open = || File::open(file).map(drop).map_err(|error| error.to_string());
    let own = rustix::process::geteuid();
    let (user, opened) = if own.is_root() {
        let account = account_of(&php.user, None);
        let opened = account.and_then(|account| run_as(Some(&account), open));
        (php.user.clone(), opened.and_then(|opened| opened))
    } else {
        (format!("number {}", own.as_raw()), open())
    };
    opened.map_err(|why| Unreadable { user, why })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn php_calls_a_loopback_address() {
        let shown = |text: &str| reachable(&Address::Tcp(text.parse().unwrap())).to_string();
        assert_eq!(shown("0.0.0.0:9881"), "127.0.0.1:9881");
        assert_eq!(shown("[::]:9881"), "[::1]:9881");
        assert_eq!(shown("192.0.2.1:9881"), "192.0.2.1:9881");
    }
}
