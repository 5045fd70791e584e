//! Validates the arguments of `pagewell nginx-config` and converts them to nginx's syntax, quoted
//! if necessary. A value that nginx would reject or misinterpret is refused with a sentence: for
//! example, `$` begins a variable there and cannot be escaped.

use std::net::{Ipv6Addr, SocketAddr};
use std::path::{Path, absolute};

/// `sun_path` of a Unix socket's address has 108 bytes, with the NUL at the end.
const SOCKET_PATH_BYTES: usize = 107;

/// The host that nginx serves, with its port if given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerName {
    /// The host name in lower case.
    pub host: String,
    port: Option<u16>,
}

impl ServerName {
    /// Returns a regular expression for the `Host` fields of this server, if nginx listens at
    /// `listen`.
    pub(crate) fn regex(&self, listen: &str) -> String {
        let of_listen = listen.rsplit(':').next().and_then(|port| port.parse::<u16>().ok());
        let host = regex(&self.host, "");
        match (self.port, of_listen) {
            (Some(port), _) => format!("^{host}:{port}$"),
            (None, Some(port)) => format!("^{host}(?::{port})?$"),
            (None, None) => format!("^{host}$"),
        }
    }
}

/// Parses `example.org` or `example.org:8080`.
pub(crate) fn server_name(text: &str) -> Result<ServerName, String> {
    let (host, port) = match text.split_once(':') {
        Some((host, number)) => (host, Some(port(number)?)),
        None => (text, None),
    };
    if is_host(host) {
        Ok(ServerName { host: host.to_ascii_lowercase(), port })
    } else {
        Err("write the site's one host, such as example.org".into())
    }
}

/// Parses the address of a server that nginx contacts: `unix:/path`, `/path` or `host:port`.
pub(crate) fn asked(text: &str) -> Result<String, String> {
    let path = text.strip_prefix("unix:").or(text.starts_with('/').then_some(text));
    if let Some(path) = path {
        return socket(path);
    }
    let wrong = "write address:port or unix:/path/of/the/socket";
    let text = text.strip_prefix("tcp:").unwrap_or(text);
    let (host, number) = text.rsplit_once(':').ok_or(wrong)?;
    let port = port(number)?;
    let is_v6 = || {
        let inside = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        inside.is_some_and(|inside| inside.parse::<Ipv6Addr>().is_ok())
    };
    if is_host(host) || is_v6() { Ok(format!("{host}:{port}")) } else { Err(wrong.into()) }
}

/// Parses the address at which nginx listens: `80`, `:80`, `*:80`, `address:80` or `unix:/path`.
pub(crate) fn listen(text: &str) -> Result<String, String> {
    if let Some(path) = text.strip_prefix("unix:") {
        return socket(path);
    }
    let alone = text.strip_prefix(':').or_else(|| text.strip_prefix("*:")).unwrap_or(text);
    if alone.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(port(alone)?.to_string());
    }
    match text.parse::<SocketAddr>() {
        Ok(address) if address.port() > 0 => Ok(address.to_string()),
        _ => Err("write a port, address:port or unix:/path; what else nginx's listen takes \
                  (ssl, default_server) is added to what is printed"
            .into()),
    }
}

/// Returns the document root as an absolute path.
pub(crate) fn root(text: &str) -> Result<String, String> {
    let path = absolute(text).map_err(|error| error.to_string())?;
    let path = path.to_str().ok_or("nginx needs a path in UTF-8")?;
    quoted(path)
}

/// Validates the name of a cookie (RFC 6265 section 4.1.1: a token), in which `*` matches anything.
pub(crate) fn cookie(text: &str) -> Result<String, String> {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if !text.is_empty() && text.bytes().all(is_token) {
        Ok(text.to_owned())
    } else {
        Err("write the name of a cookie, in which * stands for anything: SESS*".into())
    }
}

/// Converts a pattern with `*` to a regular expression, in which `star` replaces `*`.
pub(crate) fn regex(pattern: &str, star: &str) -> String {
    let mut regex = String::new();
    for character in pattern.chars() {
        match character {
            '*' => regex.push_str(star),
            plain if plain.is_ascii_alphanumeric() || matches!(plain, '-' | '_') => {
                regex.push(plain);
            }
            // In a character class: nginx removes backslashes before quotes.
            '^' => regex.push_str(r"\^"),
            special => regex.extend(['[', special, ']']),
        }
    }
    regex
}

fn socket(path: &str) -> Result<String, String> {
    if !Path::new(path).is_absolute() {
        return Err("a socket needs its whole path: unix:/run/…".into());
    }
    if path.len() > SOCKET_PATH_BYTES {
        return Err(format!("a socket's path has {SOCKET_PATH_BYTES} bytes at most"));
    }
    quoted(&format!("unix:{path}"))
}

fn port(text: &str) -> Result<u16, String> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|number| digits && *number > 0);
    number.ok_or_else(|| format!("{text:?} is no port: write a number from 1 to 65535"))
}

fn is_host(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let is_name = !text.is_empty() && text.len() < 254 && !text.starts_with(['.', '-']);
    is_name && !text.contains("..") && text.bytes().all(plain)
}

/// Formats a value as one word of nginx's configuration.
fn quoted(text: &str) -> Result<String, String> {
    if text.contains('$') || text.chars().any(char::is_control) {
        return Err("nginx cannot have a $ or a control character there".into());
    }
    let plain = |c: char| c.is_alphanumeric() || "/:._-+@,=~".contains(c);
    if text.chars().all(plain) {
        return Ok(text.to_owned());
    }
    Ok(format!("\"{}\"", text.replace('\\', r"\\").replace('"', r#"\""#)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn valid_values_are_normalised() {
        for (read, text, right) in [
            (asked as fn(&str) -> Result<String, String>, "/run/php.sock", "unix:/run/php.sock"),
            (asked, "tcp:127.0.0.1:9000", "127.0.0.1:9000"),
            (asked, "[::1]:9000", "[::1]:9000"),
            (asked, "unix:/run/my php.sock", "\"unix:/run/my php.sock\""),
            (listen, ":80", "80"),
            (listen, "*:8080", "8080"),
            (listen, "[::]:80", "[::]:80"),
            (root, "/srv/my \"site\\", r#""/srv/my \"site\\""#),
            (cookie, "SESS*", "SESS*"),
        ] {
            assert_eq!(read(text).as_deref(), Ok(right), "{text}");
        }
        let here = std::env::current_dir().unwrap();
        assert_eq!(root("site").unwrap(), here.join("site").to_str().unwrap());
    }

    #[test]
    fn values_that_nginx_would_refuse_or_misread_are_refused() {
        for (read, text) in [
            (asked as fn(&str) -> Result<String, String>, "foo:bar"),
            (asked, "foo"),
            (asked, "unix:run/x"),
            (asked, "127.0.0.1:0"),
            (asked, "a;b:80"),
            (listen, "80 ssl"),
            (listen, ""),
            (listen, "99999"),
            (listen, "example"),
            (root, "/srv/$x"),
            (root, "/srv/a\nb"),
            (root, ""),
            (cookie, ""),
            (cookie, "a=b"),
            (cookie, "a b"),
        ] {
            assert!(read(text).is_err(), "{text:?}");
        }
        let long = format!("/{}", "x".repeat(SOCKET_PATH_BYTES));
        assert!(asked(&long).is_err());
        for text in ["", "*.example.org", "a b", "http://a", "a:b", "a..b", "_;"] {
            assert!(server_name(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_host_is_itself_at_the_port_where_nginx_listens() {
        let regex = |name: &str, listen: &str| server_name(name).unwrap().regex(listen);
        assert_eq!(regex("Example.org", "80"), "^example[.]org(?::80)?$");
        assert_eq!(regex("a", "127.0.0.1:81"), "^a(?::81)?$");
        assert_eq!(regex("a", "unix:/run/x"), "^a$");
        assert_eq!(regex("a:8080", "80"), "^a:8080$");
    }
}
