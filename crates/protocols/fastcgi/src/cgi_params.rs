//! The CGI meta-variables of one request (RFC 3875 §4.1), as params.
//!
//! This is a pure function from borrowed parts of a request to [`Params`]. The names are those that nginx and
//! Apache pass to PHP, so that applications find what they expect.
//!
//! Invariants: a request field can only set `HTTP_*` variables, and cannot imitate another field. `HTTP_HOST`
//! is the host in the cache key, whatever the `Host` field contains. Not here: the choice of the script, PHP
//! settings (`PHP_VALUE`), the content.

use crate::params::{Params, ParamsLimits, ParamsRefused};
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use std::net::{IpAddr, SocketAddr};

/// The scheme of the request from the client's point of view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// `http`
    Http,
    /// `https`: the param `HTTPS` is `on`; it is absent for `http`.
    Https,
}

/// The script that answers the request, as chosen by routing. Paths are bytes as in the file system.
#[derive(Clone, Copy, Debug)]
pub struct Script<'a> {
    /// `DOCUMENT_ROOT`: the directory of the site, without a trailing slash.
    pub document_root: &'a [u8],
    /// `SCRIPT_FILENAME`: the file to run.
    pub filename: &'a [u8],
    /// `SCRIPT_NAME`: the URI path of the script, decoded (`/index.php`).
    pub name: &'a [u8],
    /// `PATH_INFO`: the part of the URI path after the script's name, decoded, with its leading slash; may be
    /// empty.
    pub path_info: &'a [u8],
}

/// The address and name of the server.
#[derive(Clone, Copy, Debug)]
pub struct ServerPlace<'a> {
    /// `SERVER_NAME`: the name of the site, without a port. Applications may build links from it. It must
    /// therefore be a configured name, or a request's host that is known to belong to the site.
    pub name: &'a [u8],
    /// `SERVER_ADDR`: the address that the client connected to; `None` for a Unix socket.
    pub addr: Option<IpAddr>,
    /// `SERVER_PORT`: the port from the client's point of view.
    pub port: u16,
    /// `SERVER_SOFTWARE`, in the form `name/version`.
    pub software: &'a str,
}

/// The parts of a request that the params are built from.
#[derive(Clone, Copy, Debug)]
pub struct CgiRequest<'a> {
    /// The method, for the parameter `REQUEST_METHOD`.
    pub method: &'a http::Method,
    /// `SERVER_PROTOCOL`: the protocol version of the client's request.
    pub version: http::Version,
    /// The scheme, for the parameters `REQUEST_SCHEME` and `HTTPS`.
    pub scheme: Scheme,
    /// `HTTP_HOST`: host and optional port of the target URI (RFC 9110 §7.1). The `Host` field is not used.
    /// Empty if the request names no host.
    pub host: &'a [u8],
    /// `REQUEST_URI`: path and query exactly as the client sent them.
    pub request_uri: &'a [u8],
    /// `QUERY_STRING`: without the question mark, not decoded. The param is sent even if it is empty.
    pub query: &'a [u8],
    /// The fields of the request.
    pub headers: &'a HeaderMap,
    /// `CONTENT_LENGTH`: the number of bytes in STDIN; `None` if there is no content.
    pub content_length: Option<u64>,
    /// The script that answers the request.
    pub script: Script<'a>,
    /// `REMOTE_ADDR` and `REMOTE_PORT`: the client's address; `None` for a Unix socket.
    pub client: Option<SocketAddr>,
    /// `REMOTE_USER`: the user whose password was checked (Basic), if the script gets it.
    pub user: Option<&'a str>,
    /// The address and name of the server.
    pub server: ServerPlace<'a>,
}

/// The params for `request`. The caller may add more.
///
/// # Errors
/// A pair, or all pairs together, exceed `limits`; or a value contains a NUL byte, which is possible in a
/// decoded path.
pub fn cgi_params(request: &CgiRequest<'_>, limits: ParamsLimits) -> Result<Params, ParamsRefused> {
    let mut params = Params::new(limits);
    push_request(request, &mut params)?;
    push_script(&request.script, &mut params)?;
    push_places(request, &mut params)?;
    push_fields(request, &mut params)?;
    Ok(params)
}

/// Adds the variables of RFC 3875 §4.1.2, §4.1.3, §4.1.7, §4.1.12 and §4.1.16.
fn push_request(request: &CgiRequest<'_>, params: &mut Params) -> Result<(), ParamsRefused> {
    params.put("REQUEST_METHOD", request.method.as_str())?;
    params.put("REQUEST_URI", request.request_uri)?;
    params.put("QUERY_STRING", request.query)?;
    params.put("SERVER_PROTOCOL", protocol(request.version))?;
    params.put("REQUEST_SCHEME", request.scheme.as_str())?;
    if request.scheme == Scheme::Https {
        params.put("HTTPS", "on")?;
    }
    // §4.1.2: set if and only if there is content.
    if let Some(bytes) = request.content_length {
        params.put("CONTENT_LENGTH", decimal(&mut [0; 20], bytes))?;
    }
    // §4.1.3: set if the request has the field.
    if let Some(value) = request.headers.get(header::CONTENT_TYPE) {
        params.put("CONTENT_TYPE", value.as_bytes())?;
    }
    params.put("GATEWAY_INTERFACE", "CGI/1.1")?;
    // A php-cgi built with `force-cgi-redirect` refuses to run without it.
    params.put("REDIRECT_STATUS", "200")
}

/// Adds the variables of RFC 3875 §4.1.5, §4.1.6 and §4.1.13.
fn push_script(script: &Script<'_>, params: &mut Params) -> Result<(), ParamsRefused> {
    params.put("DOCUMENT_ROOT", script.document_root)?;
    params.put("SCRIPT_FILENAME", script.filename)?;
    params.put("SCRIPT_NAME", script.name)?;
    if script.path_info.is_empty() {
        return params.put("DOCUMENT_URI", script.name);
    }
    params.put("DOCUMENT_URI", [script.name, script.path_info].concat())?;
    params.put("PATH_INFO", script.path_info)?;
    // §4.1.6: the path info as a path below the document root. With `..` it would name a file outside the
    // document root. The variable is optional, so it is left out in that case.
    if !script.path_info.split(|byte| *byte == b'/').any(|segment| segment == b"..") {
        params.put("PATH_TRANSLATED", [script.document_root, script.path_info].concat())?;
    }
    Ok(())
}

/// Adds the variables of RFC 3875 §4.1.8, §4.1.14, §4.1.15 and §4.1.17.
fn push_places(request: &CgiRequest<'_>, params: &mut Params) -> Result<(), ParamsRefused> {
    match request.client {
        Some(client) => {
            params.put("REMOTE_ADDR", address(client.ip()))?;
            params.put("REMOTE_PORT", decimal(&mut [0; 20], client.port().into()))?;
        }
        // §4.1.8 requires the variable. The client of a Unix socket has no address; this is nginx's value.
        None => params.put("REMOTE_ADDR", "unix:")?,
    }
    // §4.1.1, §4.1.11: both are set if a password was checked.
    if let Some(user) = request.user {
        params.put("AUTH_TYPE", "Basic")?;
        params.put("REMOTE_USER", user)?;
    }
    if let Some(addr) = request.server.addr {
        params.put("SERVER_ADDR", address(addr))?;
    }
    params.put("SERVER_PORT", decimal(&mut [0; 20], request.server.port.into()))?;
    params.put("SERVER_NAME", request.server.name)?;
    params.put("SERVER_SOFTWARE", request.server.software)
}

/// An address as text. IPv4 addresses are formatted here, because the standard formatter takes ten times as
/// long.
struct AddressText {
    room: [u8; ADDRESS_MAX],
    length: usize,
}

/// The maximum length of an address as text, in bytes: eight groups, the last two written as four numbers.
const ADDRESS_MAX: usize = "ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255".len();

fn address(address: IpAddr) -> AddressText {
    let mut text = AddressText { room: [0; ADDRESS_MAX], length: 0 };
    match address.to_canonical() {
        IpAddr::V4(address) => {
            for octet in address.octets() {
                if text.length > 0 {
                    text.push(b".");
                }
                text.push(decimal(&mut [0; 20], octet.into()));
            }
        }
        IpAddr::V6(address) => text.push(address.to_string().as_bytes()),
    }
    text
}

impl AddressText {
    fn push(&mut self, piece: &[u8]) {
        self.room[self.length..self.length + piece.len()].copy_from_slice(piece);
        self.length += piece.len();
    }
}

impl AsRef<[u8]> for AddressText {
    fn as_ref(&self) -> &[u8] {
        &self.room[..self.length]
    }
}

/// A number as decimal text, right-aligned in `room`, which is large enough for every `u64`.
fn decimal(room: &mut [u8; 20], mut number: u64) -> &[u8] {
    let mut at = room.len();
    loop {
        at -= 1;
        room[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return &room[at..];
        }
    }
}

/// Adds the variables of RFC 3875 §4.1.18: the name of a field in upper case after `HTTP_`, with `_` for `-`.
fn push_fields(request: &CgiRequest<'_>, params: &mut Params) -> Result<(), ParamsRefused> {
    if !request.host.is_empty() {
        params.put("HTTP_HOST", request.host)?;
    }
    let is_single = request.headers.keys_len() == request.headers.len();
    if is_single {
        for (name, value) in request.headers.iter().filter(|(name, _)| is_passed(name)) {
            params.put_field(name.as_str(), value.as_bytes())?;
        }
        return Ok(());
    }
    for name in request.headers.keys().filter(|name| is_passed(name)) {
        let mut values = request.headers.get_all(name).iter();
        match (values.next(), values.next()) {
            (Some(only), None) => params.put_field(name.as_str(), only.as_bytes())?,
            _ => params.put_field(name.as_str(), &joined(name, request.headers))?,
        }
    }
    Ok(())
}

/// Whether a field becomes a variable.
fn is_passed(name: &HeaderName) -> bool {
    let name = name.as_str();
    let is_given_elsewhere_or_not_at_all = matches!(
        name,
        // Programs read the proxy for their own requests from `HTTP_PROXY` (CVE-2016-5385).
        "proxy"
            // Other variables contain these values, as they were parsed.
            | "host" | "content-length" | "content-type"
            // RFC 3875 §4.1.18: connection fields may be left out. The content is passed on without its
            // transfer coding, so these fields would be wrong.
            | "connection" | "transfer-encoding" | "te" | "trailer" | "upgrade"
            | "proxy-authorization" | "keep-alive" | "proxy-connection"
    );
    // Letters, digits and `-` only. `X_Real_Ip` would become the same variable as `X-Real-Ip`, and so would
    // `X.Real.Ip` within PHP, which replaces dots by underscores: a client could imitate a trusted proxy.
    let plain = || name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    !is_given_elsewhere_or_not_at_all && plain()
}

/// A repeated field as one value (RFC 3875 §4.1.18, RFC 9110 §5.3); cookies are joined as in RFC 9113 §8.2.3.
fn joined(name: &HeaderName, headers: &HeaderMap) -> Vec<u8> {
    let separator: &[u8] = if *name == header::COOKIE { b"; " } else { b", " };
    let values: Vec<&[u8]> = headers.get_all(name).iter().map(HeaderValue::as_bytes).collect();
    values.join(separator)
}

/// The value of `SERVER_PROTOCOL` (RFC 3875 §4.1.16).
fn protocol(version: http::Version) -> &'static str {
    match version {
        http::Version::HTTP_09 => "HTTP/0.9",
        http::Version::HTTP_10 => "HTTP/1.0",
        http::Version::HTTP_2 => "HTTP/2.0",
        http::Version::HTTP_3 => "HTTP/3.0",
        _ => "HTTP/1.1",
    }
}

impl Scheme {
    /// The scheme's name: `http` or `https`.
    pub fn as_str(self) -> &'static str {
        match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_addresses_are_written_as_by_the_standard_library() {
        for number in [0, 7, 10, 99, 65_535, u64::MAX] {
            assert_eq!(decimal(&mut [0; 20], number), number.to_string().as_bytes());
        }
        for text in ["0.0.0.0", "127.0.0.1", "203.0.113.255", "::1", "2001:db8::7"] {
            assert_eq!(address(text.parse().unwrap()).as_ref(), text.as_bytes());
        }
        assert_eq!(address("::ffff:192.0.2.1".parse().unwrap()).as_ref(), b"192.0.2.1");
        let longest = IpAddr::from([u16::MAX; 8]);
        assert_eq!(address(longest).as_ref(), longest.to_string().as_bytes());
    }
}
