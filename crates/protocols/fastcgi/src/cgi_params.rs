//! The meta-variables of CGI for one request (RFC 3875 §4.1), as params.
//!
//! A pure function from borrowed parts of a request to [`Params`]; the names are those that nginx
//! and Apache give to PHP, so that applications find what they know.
//!
//! Invariants: a field of the request can set no variable but `HTTP_*`, nor pretend to be another
//! field; `HTTP_HOST` is the host that the cache key was made of, whatever the `Host` field says.
//! Not here: the script that answers a URI, PHP settings (`PHP_VALUE`), the content.

use crate::params::{Params, ParamsLimits, ParamsRefused};
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use std::net::{IpAddr, SocketAddr};

/// The scheme by which the client reached the site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// `http`
    Http,
    /// `https`; the param `HTTPS` is then `on`, and missing otherwise.
    Https,
}

/// The script that answers, as routing has found it. Paths are bytes as the file system has them.
#[derive(Clone, Copy, Debug)]
pub struct Script<'a> {
    /// `DOCUMENT_ROOT`: directory of the site, without a slash at its end.
    pub document_root: &'a [u8],
    /// `SCRIPT_FILENAME`: the file to run.
    pub filename: &'a [u8],
    /// `SCRIPT_NAME`: the URI path of the script, decoded (`/index.php`).
    pub name: &'a [u8],
    /// `PATH_INFO`: what follows the script's name in the URI path, decoded, with its slash; empty
    /// when nothing does.
    pub path_info: &'a [u8],
}

/// The server's own place and name.
#[derive(Clone, Copy, Debug)]
pub struct ServerPlace<'a> {
    /// `SERVER_NAME`: the site's name, without a port. An application may build links from it: a
    /// configured name, or the request's host once that is known to be one of the site's.
    pub name: &'a [u8],
    /// `SERVER_ADDR`: the address that the client connected to; `None` for a Unix socket.
    pub addr: Option<IpAddr>,
    /// `SERVER_PORT`: the port in the client's eyes.
    pub port: u16,
    /// `SERVER_SOFTWARE`, as `name/version`.
    pub software: &'a str,
}

/// What params are made from.
#[derive(Clone, Copy, Debug)]
pub struct CgiRequest<'a> {
    /// `REQUEST_METHOD`.
    pub method: &'a http::Method,
    /// `SERVER_PROTOCOL`: the version of the client's request.
    pub version: http::Version,
    /// `REQUEST_SCHEME` and `HTTPS`.
    pub scheme: Scheme,
    /// `HTTP_HOST`: host, and port if any, of the target URI (RFC 9110 §7.1). The `Host` field is
    /// not looked at. Empty when the request names none.
    pub host: &'a [u8],
    /// `REQUEST_URI`: path and query as the client sent them.
    pub request_uri: &'a [u8],
    /// `QUERY_STRING`: without the question mark, not decoded; sent even when empty.
    pub query: &'a [u8],
    /// The request's fields.
    pub headers: &'a HeaderMap,
    /// `CONTENT_LENGTH`: the bytes that STDIN will carry; `None` when there is no content.
    pub content_length: Option<u64>,
    /// The script that answers.
    pub script: Script<'a>,
    /// `REMOTE_ADDR` and `REMOTE_PORT`: the client; `None` for a Unix socket.
    pub client: Option<SocketAddr>,
    /// The server.
    pub server: ServerPlace<'a>,
}

/// The params for `request`. More may be pushed afterwards.
///
/// # Errors
/// A pair or all of them pass `limits`, or a value holds a NUL byte (a path may, after decoding).
pub fn cgi_params(request: &CgiRequest<'_>, limits: ParamsLimits) -> Result<Params, ParamsRefused> {
    let mut params = Params::new(limits);
    push_request(request, &mut params)?;
    push_script(&request.script, &mut params)?;
    push_places(request, &mut params)?;
    push_fields(request, &mut params)?;
    Ok(params)
}

/// RFC 3875 §4.1.2, §4.1.3, §4.1.7, §4.1.12, §4.1.16.
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
    // php-cgi refuses to run without it when built to be called by redirects only.
    params.put("REDIRECT_STATUS", "200")
}

/// RFC 3875 §4.1.5, §4.1.6, §4.1.13.
fn push_script(script: &Script<'_>, params: &mut Params) -> Result<(), ParamsRefused> {
    params.put("DOCUMENT_ROOT", script.document_root)?;
    params.put("SCRIPT_FILENAME", script.filename)?;
    params.put("SCRIPT_NAME", script.name)?;
    if script.path_info.is_empty() {
        return params.put("DOCUMENT_URI", script.name);
    }
    params.put("DOCUMENT_URI", [script.name, script.path_info].concat())?;
    params.put("PATH_INFO", script.path_info)?;
    // §4.1.6: the path info as a path below the document root. One that climbs would name a file
    // outside; a program must not be told so, and the variable is optional.
    if !script.path_info.split(|byte| *byte == b'/').any(|segment| segment == b"..") {
        params.put("PATH_TRANSLATED", [script.document_root, script.path_info].concat())?;
    }
    Ok(())
}

/// RFC 3875 §4.1.8, §4.1.14, §4.1.15, §4.1.17.
fn push_places(request: &CgiRequest<'_>, params: &mut Params) -> Result<(), ParamsRefused> {
    match request.client {
        Some(client) => {
            params.put("REMOTE_ADDR", address(client.ip()))?;
            params.put("REMOTE_PORT", decimal(&mut [0; 20], client.port().into()))?;
        }
        // §4.1.8 wants the variable set; a Unix socket's client has no address. nginx's word.
        None => params.put("REMOTE_ADDR", "unix:")?,
    }
    if let Some(addr) = request.server.addr {
        params.put("SERVER_ADDR", address(addr))?;
    }
    params.put("SERVER_PORT", decimal(&mut [0; 20], request.server.port.into()))?;
    params.put("SERVER_NAME", request.server.name)?;
    params.put("SERVER_SOFTWARE", request.server.software)
}

/// An address as text. Those of four bytes are written here: the formatter takes ten times as long.
struct AddressText {
    room: [u8; ADDRESS_MAX],
    length: usize,
}

/// The longest address as text, in bytes: eight groups, the last two of them as four numbers.
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

/// A number as text, at the end of `room`, which the largest fits into.
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

/// RFC 3875 §4.1.18: each field as `HTTP_` and its name, in capitals, with `_` for `-`.
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
        // `HTTP_PROXY` is where programs look for the proxy of their own requests (CVE-2016-5385).
        "proxy"
            // Given by other variables, from what was really parsed.
            | "host" | "content-length" | "content-type"
            // RFC 3875 §4.1.18: fields of the connection may be left out. The content is passed on
            // without its transfer coding, so saying otherwise would be wrong.
            | "connection" | "transfer-encoding" | "te" | "trailer" | "upgrade"
            | "proxy-authorization" | "keep-alive" | "proxy-connection"
    );
    // Letters, digits and `-` only. `X_Real_Ip` would become the same variable as `X-Real-Ip`,
    // and so would `X.Real.Ip` within PHP, which turns dots into underscores: a client could
    // pass for the proxy in front of it.
    let plain = || name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    !is_given_elsewhere_or_not_at_all && plain()
}

/// A repeated field as one value (RFC 3875 §4.1.18, RFC 9110 §5.3); cookies are joined the way of
/// RFC 9113 §8.2.3.
fn joined(name: &HeaderName, headers: &HeaderMap) -> Vec<u8> {
    let separator: &[u8] = if *name == header::COOKIE { b"; " } else { b", " };
    let values: Vec<&[u8]> = headers.get_all(name).iter().map(HeaderValue::as_bytes).collect();
    values.join(separator)
}

/// RFC 3875 §4.1.16.
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
    /// `http` or `https`.
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
    fn numbers_and_addresses_are_what_the_formatter_makes_of_them() {
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
