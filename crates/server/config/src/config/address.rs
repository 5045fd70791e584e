//! Addresses as text: of sockets that Pagewell opens or connects to, and of the control interface that
//! the commands call. An error names what was probably meant.
//!
//! Not here: the URLs of HTTP origins (`resolve`) and of databases (`database`).

use super::Address;
use super::resolve::{LoadError, wrong};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

/// The key of the control interface's address.
const ADMIN: &str = "admin";

/// Reads the value of `key`: `address:port`, `:port` for all addresses of this machine, or `unix:path`.
/// A name is looked up.
pub(super) fn parse_address(key: &str, text: &str) -> Result<Address, LoadError> {
    if let Some(path) = text.strip_prefix("unix:") {
        return if path.starts_with('/') {
            Ok(Address::Unix(PathBuf::from(path)))
        } else {
            wrong(key, format!("{text:?}: a unix: path must begin with /"))
        };
    }
    let with_host = if text.starts_with(':') { format!("0.0.0.0{text}") } else { text.to_owned() };
    let found = with_host.to_socket_addrs().ok().and_then(|mut all| all.next());
    match found {
        Some(address) => Ok(Address::Tcp(address)),
        None => wrong(key, format!("{text:?} is no address; {}", address_meant(key, text))),
    }
}

/// Checks the form of the control interface's address before a command connects to it. Names are not
/// looked up.
///
/// # Errors
/// The text is neither `host:port` nor `unix:path`: what to write instead.
pub fn check_admin_address(text: &str) -> Result<(), String> {
    let has_form = match text.strip_prefix("unix:") {
        Some(path) => path.starts_with('/'),
        None => host_and_port(text).is_some(),
    };
    if has_form {
        Ok(())
    } else {
        Err(format!("{text:?} is no address; {}", address_meant(ADMIN, text)))
    }
}

/// Splits `host:port`. An IPv6 address is in brackets.
fn host_and_port(text: &str) -> Option<(&str, u16)> {
    let (host, port) = text.rsplit_once(':')?;
    let is_name = |host: &str| !host.is_empty() && !host.contains([':', '/', '[', ']', '@', ' ']);
    let is_host = is_name(host) || text.parse::<SocketAddr>().is_ok();
    is_host.then_some(host).zip(port.parse().ok())
}

/// Suggests what was meant by a text that is not an address.
fn address_meant(key: &str, text: &str) -> String {
    if text.starts_with('/') {
        return format!("write unix:{text} for a Unix socket");
    }
    if let Some(path) = text.strip_prefix("unix:") {
        return format!("write the whole path, such as unix:/run/{path}");
    }
    let (port, socket) = match key {
        "php.at" => (9000, "/run/php/php-fpm.sock"),
        "memcached.listen" => (11211, "/run/pagewell/memcached.sock"),
        ADMIN => (8081, "/run/pagewell/admin.sock"),
        _ => (8080, "/run/pagewell.sock"),
    };
    // A URL, such as the dashboard's: its authority.
    let (is_url, rest) = match text.split_once("://") {
        Some((_, rest)) => (true, rest),
        None => (false, text),
    };
    let rest = rest.split('/').next().unwrap_or_default();
    let bare = rest.strip_prefix(':').unwrap_or(rest);
    if bare.parse::<u16>().is_ok() {
        let all = format!(", or :{bare} for all addresses of this machine");
        let all = if text == rest && rest == bare { all.as_str() } else { "" };
        return format!("write 127.0.0.1:{bare}{all}");
    }
    let named = match host_and_port(rest) {
        Some(_) => rest.to_owned(),
        None => format!("{rest}:{port}"),
    };
    let is_meant =
        is_url || rest != text || rest == "localhost" || rest.parse::<std::net::IpAddr>().is_ok();
    if is_meant && host_and_port(&named).is_some() {
        return format!("write {named} (or unix:{socket} for a Unix socket)");
    }
    format!("write for example 127.0.0.1:{port}, [::]:{port} or unix:{socket}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_address_gets_the_valid_one_as_a_suggestion() {
        for (text, meant) in [
            ("http://127.0.0.1:8081", "write 127.0.0.1:8081 (or unix:"),
            ("http://localhost:9881/dashboard", "write localhost:9881 (or unix:"),
            ("http://[::1]:9881/", "write [::1]:9881 (or unix:"),
            ("http://localhost/", "write localhost:8081 (or unix:"),
            ("localhost", "write localhost:8081 (or unix:"),
            ("10.0.0.5", "write 10.0.0.5:8081 (or unix:"),
            ("127.0.0.1:8081/", "write 127.0.0.1:8081 (or unix:"),
            ("8081/", "write 127.0.0.1:8081"),
            ("8081", "write 127.0.0.1:8081"),
            (":8081", "write 127.0.0.1:8081"),
            ("/run/admin.sock", "write unix:/run/admin.sock"),
            ("unix:admin.sock", "write the whole path, such as unix:/run/admin.sock"),
            ("off", "write for example 127.0.0.1:8081, [::]:8081 or unix:/run/pagewell/admin.sock"),
            ("", "write for example 127.0.0.1:8081"),
            ("127.0.0.1:80810", "write for example 127.0.0.1:8081"),
        ] {
            let error = check_admin_address(text).expect_err(text);
            assert!(error.contains(meant), "{text}: {error}");
        }
        for right in ["127.0.0.1:1", "[::1]:8081", "localhost:8081", "pagewell:8081", "unix:/a"] {
            assert_eq!(check_admin_address(right), Ok(()), "{right}");
        }
    }

    #[test]
    fn the_example_has_the_port_of_the_key() {
        for (key, port) in [("admin", "8081"), ("listen", "8080"), ("php.at", "9000")] {
            let error = parse_address(key, "no such").expect_err("no address").to_string();
            assert!(error.contains(&format!("127.0.0.1:{port}")), "{error}");
        }
    }
}
