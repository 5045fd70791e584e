//! The meta-variables of a request (RFC 3875 §4.1), and the variables that a client must not be able to set.
//! Whole lists are compared, so that an extra variable fails as well as a missing one. Not here: the behaviour
//! of php-fpm, which needs a real one.

use fastcgi::{
    CgiRequest, Params, ParamsLimits, ParamsRefused, Scheme, Script, ServerPlace, cgi_params,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Version};
use std::net::{IpAddr, SocketAddr};

fn fields(list: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in list {
        let name = HeaderName::from_bytes(name.as_bytes()).expect("a token");
        headers.append(name, HeaderValue::from_str(value).expect("plain text"));
    }
    headers
}

fn request(headers: &HeaderMap) -> CgiRequest<'_> {
    CgiRequest {
        method: &Method::GET,
        version: Version::HTTP_11,
        scheme: Scheme::Http,
        host: b"example.org:8080",
        request_uri: b"/news/4%20/?a=b",
        query: b"a=b",
        headers,
        content_length: None,
        script: Script {
            document_root: b"/srv/site/public",
            filename: b"/srv/site/public/index.php",
            name: b"/index.php",
            path_info: b"",
        },
        client: Some(SocketAddr::from(([192, 0, 2, 1], 4711))),
        user: None,
        server: ServerPlace {
            name: b"example.org",
            addr: Some(IpAddr::from([192, 0, 2, 80])),
            port: 8080,
            software: "pagewell/0.1.0",
        },
    }
}

fn made(request: &CgiRequest<'_>) -> Params {
    cgi_params(request, ParamsLimits::default()).expect("within limits")
}

/// `NAME=value` for each pair whose name satisfies `pass`, sorted.
fn shown(params: &Params, pass: impl Fn(&str) -> bool) -> Vec<String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let pairs = params.to_pairs().into_iter().map(|(name, value)| (text(&name), text(&value)));
    let mut lines: Vec<String> = pairs
        .filter(|(name, _)| pass(name))
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    lines.sort();
    lines
}

#[test]
fn the_variables_of_a_plain_request() {
    let headers = fields(&[]);
    assert_eq!(
        shown(&made(&request(&headers)), |_| true),
        [
            "DOCUMENT_ROOT=/srv/site/public",
            "DOCUMENT_URI=/index.php",
            "GATEWAY_INTERFACE=CGI/1.1",
            "HTTP_HOST=example.org:8080",
            "QUERY_STRING=a=b",
            "REDIRECT_STATUS=200",
            "REMOTE_ADDR=192.0.2.1",
            "REMOTE_PORT=4711",
            "REQUEST_METHOD=GET",
            "REQUEST_SCHEME=http",
            "REQUEST_URI=/news/4%20/?a=b",
            "SCRIPT_FILENAME=/srv/site/public/index.php",
            "SCRIPT_NAME=/index.php",
            "SERVER_ADDR=192.0.2.80",
            "SERVER_NAME=example.org",
            "SERVER_PORT=8080",
            "SERVER_PROTOCOL=HTTP/1.1",
            "SERVER_SOFTWARE=pagewell/0.1.0",
        ]
    );
}

#[test]
fn content_is_described_when_there_is_some() {
    let headers = fields(&[("content-type", "text/plain"), ("content-length", "99")]);
    let with = CgiRequest { content_length: Some(7), ..request(&headers) };
    let params = shown(&made(&with), |name| name.contains("CONTENT"));
    assert_eq!(params, ["CONTENT_LENGTH=7", "CONTENT_TYPE=text/plain"], "the field is not trusted");
    let without = shown(&made(&request(&headers)), |name| name.contains("CONTENT"));
    assert_eq!(without, ["CONTENT_TYPE=text/plain"]);
}

#[test]
fn https_is_on_or_missing() {
    let headers = fields(&[]);
    let secure = CgiRequest { scheme: Scheme::Https, ..request(&headers) };
    let about = |name: &str| name == "HTTPS" || name == "REQUEST_SCHEME";
    assert_eq!(shown(&made(&secure), about), ["HTTPS=on", "REQUEST_SCHEME=https"]);
    assert_eq!(shown(&made(&request(&headers)), about), ["REQUEST_SCHEME=http"]);
}

#[test]
fn path_info_and_its_translation() {
    let headers = fields(&[]);
    let with = |path_info: &'static [u8]| {
        let plain = request(&headers);
        let script = Script { path_info, ..plain.script };
        shown(&made(&CgiRequest { script, ..plain }), |name| {
            name.starts_with("PATH_") || name == "DOCUMENT_URI"
        })
    };
    assert_eq!(
        with(b"/a/b"),
        ["DOCUMENT_URI=/index.php/a/b", "PATH_INFO=/a/b", "PATH_TRANSLATED=/srv/site/public/a/b"]
    );
    assert_eq!(
        with(b"/../../etc/passwd"),
        ["DOCUMENT_URI=/index.php/../../etc/passwd", "PATH_INFO=/../../etc/passwd"],
        "no path outside the root"
    );
    assert_eq!(with(b""), ["DOCUMENT_URI=/index.php"]);
}

#[test]
fn fields_become_variables() {
    let headers = fields(&[
        ("User-Agent", "browser"),
        ("Accept", "text/html"),
        ("Accept", "text/plain"),
        ("Cookie", "a=1"),
        ("Cookie", "b=2"),
        ("Authorization", "Basic dTpw"),
        ("X-Empty", ""),
    ]);
    assert_eq!(
        shown(&made(&request(&headers)), |name| name.starts_with("HTTP_") && name != "HTTP_HOST"),
        [
            "HTTP_ACCEPT=text/html, text/plain",
            "HTTP_AUTHORIZATION=Basic dTpw",
            "HTTP_COOKIE=a=1; b=2",
            "HTTP_USER_AGENT=browser",
            "HTTP_X_EMPTY=",
        ]
    );
}

#[test]
fn no_field_passes_for_another_or_for_the_server() {
    let headers = fields(&[
        ("Proxy", "http://evil.example/"),
        ("X_Forwarded_For", "203.0.113.9"),
        ("X.Forwarded.For", "203.0.113.9"),
        ("X-Forwarded_For", "203.0.113.9"),
        ("Host", "evil.example"),
        ("Content-Length", "1"),
        ("Connection", "close"),
        ("Transfer-Encoding", "chunked"),
        ("TE", "trailers"),
        ("Trailer", "x"),
        ("Upgrade", "h2c"),
        ("Keep-Alive", "1"),
        ("Proxy-Connection", "x"),
        ("Proxy-Authorization", "Basic x"),
    ]);
    let params = made(&request(&headers));
    let of_fields = shown(&params, |name| name.starts_with("HTTP_"));
    assert_eq!(of_fields, ["HTTP_HOST=example.org:8080"]);
}

#[test]
fn a_client_without_an_address_or_host() {
    let headers = fields(&[]);
    let plain = request(&headers);
    let server = ServerPlace { addr: None, ..plain.server };
    let local = CgiRequest { client: None, host: b"", server, version: Version::HTTP_10, ..plain };
    let about = |name: &str| {
        matches!(
            name,
            "REMOTE_ADDR" | "REMOTE_PORT" | "SERVER_ADDR" | "HTTP_HOST" | "SERVER_PROTOCOL"
        )
    };
    assert_eq!(shown(&made(&local), about), ["REMOTE_ADDR=unix:", "SERVER_PROTOCOL=HTTP/1.0"]);
}

#[test]
fn an_ipv4_address_is_written_as_one() {
    let headers = fields(&[]);
    let mapped =
        CgiRequest { client: Some("[::ffff:192.0.2.1]:9".parse().unwrap()), ..request(&headers) };
    assert_eq!(made(&mapped).get(b"REMOTE_ADDR").as_deref(), Some(&b"192.0.2.1"[..]));
    let six = CgiRequest { client: Some("[2001:db8::1]:9".parse().unwrap()), ..request(&headers) };
    assert_eq!(made(&six).get(b"REMOTE_ADDR").as_deref(), Some(&b"2001:db8::1"[..]));
}

#[test]
fn too_large_and_nul_are_refused() {
    let big = "v".repeat(70_000);
    let headers = fields(&[("x-big", &big)]);
    let refused = cgi_params(&request(&headers), ParamsLimits::default()).unwrap_err();
    assert_eq!(refused.as_str(), "param-too-large");

    let headers = fields(&[]);
    let limits = ParamsLimits { total_bytes: 100, ..ParamsLimits::default() };
    let refused = cgi_params(&request(&headers), limits).unwrap_err();
    assert_eq!(refused, ParamsRefused::TotalTooLarge { limit: 100 });

    let plain = request(&headers);
    let script = Script { path_info: b"/a\0b", ..plain.script };
    let refused = cgi_params(&CgiRequest { script, ..plain }, ParamsLimits::default()).unwrap_err();
    assert_eq!(refused.as_str(), "param-value-has-nul");
}

#[test]
fn a_checked_user_is_sent_and_a_field_cannot_set_it() {
    let headers = fields(&[("remote-user", "root"), ("remote_user", "root"), ("auth-type", "x")]);
    let about = |name: &str| matches!(name, "REMOTE_USER" | "AUTH_TYPE");
    assert!(shown(&made(&request(&headers)), about).is_empty());
    let checked = CgiRequest { user: Some("anna"), ..request(&headers) };
    assert_eq!(shown(&made(&checked), about), ["AUTH_TYPE=Basic", "REMOTE_USER=anna"]);
}
