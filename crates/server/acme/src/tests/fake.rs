//! A small certificate authority with faults (RFC 8555, RFC 9773), over HTTPS at a free port. It validates a host by
//! reading the challenge as a node would answer it. Signatures of requests are not checked: Pebble does that.

use certificates::{ChallengeAnswer, ManagedHosts};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, PublicKeyData};
use rustls::ServerConfig;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::prelude::FromDer;

/// A fault of the authority.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    None,
    /// Every new order is refused for this many seconds.
    RateLimited(u64),
    /// The same, because of the host.
    Rejected(u64),
    /// No answer.
    Hang,
    /// Half an answer.
    Truncate,
    /// An answer that does not end.
    Endless,
    Redirect,
    /// HTTP 503 in HTML.
    Html,
    /// A certificate for another name.
    WrongName,
    /// A certificate for another key.
    WrongKey,
    /// A certificate that has ended.
    Ended,
    /// Every new order is refused, because the account is unknown.
    NoAccount,
}

/// The state of the authority.
pub struct Desk {
    pub fault: Fault,
    /// How many days its certificates last.
    pub days: u64,
    /// The suggested renewal window, relative to the authority's time, in seconds; `None`: it has no ARI.
    pub window_s: Option<(i64, i64)>,
    /// How far its clock is ahead of the machine's, in seconds.
    pub ahead_s: i64,
    /// Hosts that are refused, with the type of the problem.
    pub refused: HashMap<String, &'static str>,
    /// The nodes that answer challenges.
    pub nodes: Vec<Arc<dyn ManagedHosts>>,
    /// The hosts of all orders, with `replaces`.
    pub orders: Vec<(String, Option<String>)>,
    /// The hosts of all certificates.
    pub issued: Vec<String>,
    /// The kinds of all challenges.
    pub challenges: Vec<String>,
    pub accounts: usize,
    /// The bindings of all accounts to accounts outside of ACME, and the profiles of all orders.
    pub bindings: Vec<Value>,
    pub profiles: Vec<Value>,
    /// Whether addresses are refused.
    pub refuses_contact: bool,
    /// How often an address was refused.
    pub refused_contacts: usize,
    /// The time that a validation takes.
    pub pause: Duration,
    open: Vec<OpenOrder>,
}

#[derive(Clone)]
struct OpenOrder {
    host: String,
    status: &'static str,
    chain: String,
    problem: Option<Value>,
}

/// A running authority; dropped with its runtime.
pub struct FakeAuthority {
    pub directory: String,
    pub root: CertificateDer<'static>,
    pub desk: Arc<Mutex<Desk>>,
    issuer: Arc<Issuer<'static, KeyPair>>,
}

/// A public key of a request.
struct RequestKey(Vec<u8>);

impl PublicKeyData for RequestKey {
    fn der_bytes(&self) -> &[u8] {
        &self.0
    }

    fn algorithm(&self) -> &'static rcgen::SignatureAlgorithm {
        &rcgen::PKCS_ECDSA_P256_SHA256
    }
}

impl FakeAuthority {
    pub async fn start() -> FakeAuthority {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(rcgen::DnType::CommonName, "Fake Root");
        let root = params.self_signed(&key).unwrap().der().clone();
        FakeAuthority::with(root, Arc::new(Issuer::new(params, key))).await
    }

    /// Another authority with the same root, which is the only one that a node of a test trusts.
    pub async fn beside(&self) -> FakeAuthority {
        FakeAuthority::with(self.root.clone(), self.issuer.clone()).await
    }

    async fn with(
        root: CertificateDer<'static>,
        issuer: Arc<Issuer<'static, KeyPair>>,
    ) -> FakeAuthority {
        let own = KeyPair::generate().unwrap();
        let leaf = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let leaf = leaf.signed_by(&own, &issuer).unwrap();
        let own = PrivateKeyDer::try_from(own.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![leaf.der().clone()], own)
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("https://localhost:{}", listener.local_addr().unwrap().port());
        let desk = Arc::new(Mutex::new(Desk {
            fault: Fault::None,
            days: 90,
            window_s: None,
            ahead_s: 0,
            refused: HashMap::new(),
            nodes: Vec::new(),
            orders: Vec::new(),
            issued: Vec::new(),
            challenges: Vec::new(),
            accounts: 0,
            bindings: Vec::new(),
            profiles: Vec::new(),
            refuses_contact: false,
            refused_contacts: 0,
            pause: Duration::ZERO,
            open: Vec::new(),
        }));
        let (acceptor, directory) =
            (TlsAcceptor::from(Arc::new(config)), format!("{base}/directory"));
        let shared = (desk.clone(), issuer.clone());
        tokio::spawn(async move {
            let (desk, issuer) = shared;
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (acceptor, desk) = (acceptor.clone(), desk.clone());
                let (issuer, base) = (issuer.clone(), base.clone());
                tokio::spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    serve(stream, &desk, &issuer, &base).await;
                });
            }
        });
        FakeAuthority { directory, root, desk, issuer }
    }

    pub fn set(&self, change: impl FnOnce(&mut Desk)) {
        change(&mut self.desk.lock().unwrap());
    }

    /// Refuses a host with this type of problem.
    pub fn refuse(&self, host: &str, name: &'static str) {
        self.set(|desk| {
            desk.refused.insert(host.to_owned(), name);
        });
    }

    /// Removes all orders.
    pub fn forget(&self) {
        self.set(|desk| desk.open.clear());
    }

    pub fn orders(&self, host: &str) -> usize {
        self.desk.lock().unwrap().orders.iter().filter(|(of, _)| of == host).count()
    }

    pub fn issued(&self, host: &str) -> usize {
        self.desk.lock().unwrap().issued.iter().filter(|of| *of == host).count()
    }
}

async fn serve(
    mut stream: tokio_rustls::server::TlsStream<tokio::net::TcpStream>,
    desk: &Arc<Mutex<Desk>>,
    issuer: &Issuer<'_, KeyPair>,
    base: &str,
) {
    let mut bytes = Vec::new();
    let (head, body) = loop {
        if stream.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
            return;
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.to_ascii_lowercase();
        let length = length
            .split("content-length: ")
            .nth(1)
            .and_then(|rest| rest.lines().next())
            .map(str::to_owned);
        if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
            break (head.to_owned(), body.to_owned());
        }
    };
    let path = head.split([' ', '?']).nth(1).unwrap().to_owned();
    let fault = desk.lock().unwrap().fault.clone();
    match fault {
        Fault::Hang => return std::future::pending().await,
        Fault::Truncate => {
            let half = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{\"newNonce\":";
            stream.write_all(half).await.unwrap();
            return stream.shutdown().await.unwrap_or(());
        }
        Fault::Endless => {
            stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
            while stream.write_all(&[b' '; 65536]).await.is_ok() {}
            return;
        }
        Fault::Redirect => {
            let text = b"HTTP/1.1 302 Found\r\nLocation: https://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n";
            return drop(stream.write_all(text).await);
        }
        Fault::Html => {
            let text = b"HTTP/1.1 503 x\r\nContent-Type: text/html\r\nRetry-After: 7200\r\nContent-Length: 0\r\n\r\n";
            return drop(stream.write_all(text).await);
        }
        _ => {}
    }
    let (status, more, content) = answer(&path, &body, desk, issuer, base).await;
    let kind = if status < 400 { "application/json" } else { "application/problem+json" };
    let ahead_s = desk.lock().unwrap().ahead_s;
    let date = httpdate(now_s().saturating_add_signed(ahead_s));
    let head = format!(
        "HTTP/1.1 {status} x\r\nReplay-Nonce: bm9uY2U\r\nDate: {date}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n{more}\r\n",
        content.len()
    );
    let content =
        if head.starts_with("HTTP/1.1") && path == "/nonce" { String::new() } else { content };
    let _ = stream.write_all(format!("{head}{content}").as_bytes()).await;
    let _ = stream.shutdown().await;
}

type Reply = (u16, String, String);

fn problem(status: u16, name: &str, detail: &str) -> Reply {
    let body = json!({"type": format!("urn:ietf:params:acme:error:{name}"), "detail": detail});
    (status, String::new(), body.to_string())
}

async fn answer(
    path: &str,
    body: &str,
    desk: &Arc<Mutex<Desk>>,
    issuer: &Issuer<'_, KeyPair>,
    base: &str,
) -> Reply {
    let jws: Value = serde_json::from_str(body).unwrap_or_default();
    let payload = base64(jws["payload"].as_str().unwrap_or_default());
    let payload: Value = serde_json::from_slice(&payload).unwrap_or_default();
    let ok = |value: Value| (200, String::new(), value.to_string());
    let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    let at = parts.get(1).and_then(|at| at.parse::<usize>().ok()).unwrap_or(0);
    match parts[0] {
        "directory" => ok(directory(desk, base)),
        "nonce" => (200, String::new(), String::new()),
        "account" => {
            let mut desk = desk.lock().unwrap();
            let has_contact = payload["contact"].as_array().is_some_and(|all| !all.is_empty());
            if desk.refuses_contact && has_contact {
                desk.refused_contacts += 1;
                return problem(400, "invalidContact", "forbidden domain \"example.com\"");
            }
            desk.accounts += 1;
            desk.bindings.push(payload["externalAccountBinding"].clone());
            let location = format!("Location: {base}/account/1\r\n");
            (201, location, json!({"status": "valid"}).to_string())
        }
        "renewal" => {
            let window = desk.lock().unwrap().window_s.unwrap();
            let time = |offset: i64| rfc3339(now_s().saturating_add_signed(offset));
            let body = json!({"suggestedWindow": {"start": time(window.0), "end": time(window.1)}});
            (200, "Retry-After: 21600\r\n".into(), body.to_string())
        }
        "new-order" => new_order(desk, &payload, base),
        "order" if at >= desk.lock().unwrap().open.len() => {
            problem(404, "malformed", "no such order")
        }
        "order" => ok(order(desk, at, base)),
        "authz" => {
            let desk = desk.lock().unwrap();
            let open = &desk.open[at];
            let status = match open.status {
                "pending" => "pending",
                "invalid" => "invalid",
                _ => "valid",
            };
            let of = |kind: &str| json!({"type": kind, "url": format!("{base}/challenge/{at}/{kind}"), "token": format!("token-{at}"), "status": status, "error": open.problem});
            ok(
                json!({"status": status, "identifier": {"type": "dns", "value": open.host}, "challenges": [of("http-01"), of("tls-alpn-01")]}),
            )
        }
        "challenge" => {
            validate(desk, at, parts[2]).await;
            ok(
                json!({"type": parts[2], "url": format!("{base}{path}"), "token": format!("token-{at}"), "status": "processing"}),
            )
        }
        "finalize" => {
            finalize(desk, at, &payload, issuer);
            ok(order(desk, at, base))
        }
        "certificate" => (200, String::new(), desk.lock().unwrap().open[at].chain.clone()),
        _ => problem(404, "malformed", "no such page"),
    }
}

fn directory(desk: &Arc<Mutex<Desk>>, base: &str) -> Value {
    let mut directory = json!({"newNonce": format!("{base}/nonce"), "newAccount": format!("{base}/account"), "newOrder": format!("{base}/new-order"), "meta": {"profiles": {"short": "x"}}});
    if desk.lock().unwrap().window_s.is_some() {
        directory["renewalInfo"] = format!("{base}/renewal").into();
    }
    directory
}

fn new_order(desk: &Arc<Mutex<Desk>>, payload: &Value, base: &str) -> Reply {
    let mut all = desk.lock().unwrap();
    let host = payload["identifiers"][0]["value"].as_str().unwrap().to_owned();
    let replaces = payload["replaces"].as_str().map(str::to_owned);
    all.orders.push((host.clone(), replaces));
    all.profiles.push(payload["profile"].clone());
    if let Fault::RateLimited(seconds) | Fault::Rejected(seconds) = all.fault {
        let (status, _, body) = match all.fault {
            Fault::Rejected(_) => problem(403, "rejectedIdentifier", "forbidden by policy"),
            _ => problem(429, "rateLimited", "too many certificates"),
        };
        return (status, format!("Retry-After: {seconds}\r\n"), body);
    }
    if all.fault == Fault::NoAccount {
        return problem(400, "accountDoesNotExist", "unknown account");
    }
    all.open.push(OpenOrder { host, status: "pending", chain: String::new(), problem: None });
    let at = all.open.len() - 1;
    drop(all);
    let mut body = order(desk, at, base);
    body["replaces"] = payload["replaces"].clone();
    let location = format!("Location: {base}/order/{at}\r\n");
    (201, location, body.to_string())
}

fn order(desk: &Arc<Mutex<Desk>>, at: usize, base: &str) -> Value {
    let desk = desk.lock().unwrap();
    let open = &desk.open[at];
    json!({"status": open.status, "identifiers": [{"type": "dns", "value": open.host}], "authorizations": [format!("{base}/authz/{at}")],
        "finalize": format!("{base}/finalize/{at}"), "certificate": format!("{base}/certificate/{at}")})
}

/// Validates a host: every node must have the answer.
async fn validate(desk: &Arc<Mutex<Desk>>, at: usize, kind: &str) {
    let (host, nodes, pause) = {
        let mut desk = desk.lock().unwrap();
        desk.challenges.push(kind.to_owned());
        (desk.open[at].host.clone(), desk.nodes.clone(), desk.pause)
    };
    tokio::time::sleep(pause).await;
    let mut is_answered = !nodes.is_empty();
    for node in &nodes {
        is_answered &= match node.challenge(&host).await {
            Some(ChallengeAnswer::Http { token, content }) => {
                kind == "http-01" && token == format!("token-{at}") && content.starts_with(&token)
            }
            Some(ChallengeAnswer::Tls(_)) => kind == "tls-alpn-01",
            None => false,
        };
    }
    let mut desk = desk.lock().unwrap();
    let refused = desk.refused.get(&host).copied();
    let open = &mut desk.open[at];
    let name = refused.or((!is_answered).then_some("unauthorized"));
    open.status = if name.is_some() { "invalid" } else { "ready" };
    open.problem = name.map(|name| json!({"type": format!("urn:ietf:params:acme:error:{name}"), "detail": "192.0.2.1: Connection refused"}));
}

fn finalize(desk: &Arc<Mutex<Desk>>, at: usize, payload: &Value, issuer: &Issuer<'_, KeyPair>) {
    let mut desk = desk.lock().unwrap();
    let request = base64(payload["csr"].as_str().unwrap());
    let (_, request) = X509CertificationRequest::from_der(&request).unwrap();
    let key = request.certification_request_info.subject_pki.subject_public_key.data.to_vec();
    let host = desk.open[at].host.clone();
    let name = if desk.fault == Fault::WrongName { "other.example.org" } else { &host };
    let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    // The identifier of the issuer's key, which ARI needs.
    params.use_authority_key_identifier_extension = true;
    let before_s = if desk.fault == Fault::Ended { (desk.days + 1) * 86_400 } else { 60 };
    let from_s = now_s().saturating_add_signed(desk.ahead_s) - before_s;
    let from = rcgen::date_time_ymd(1970, 1, 1) + Duration::from_secs(from_s);
    (params.not_before, params.not_after) = (from, from + Duration::from_secs(desk.days * 86_400));
    let made = if desk.fault == Fault::WrongKey {
        params.signed_by(&KeyPair::generate().unwrap(), issuer).unwrap()
    } else {
        params.signed_by(&RequestKey(key), issuer).unwrap()
    };
    desk.issued.push(host);
    let open = &mut desk.open[at];
    (open.status, open.chain) = ("valid", made.pem());
}

/// Seconds since 1970.
#[allow(clippy::disallowed_methods)]
pub fn now_s() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs()
}

fn httpdate(seconds: u64) -> String {
    let bytes = http_fields::date::format(http_fields::Timestamp(seconds * 1000));
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn rfc3339(seconds: u64) -> String {
    let date = httpdate(seconds);
    let months = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let month = months.find(&date[8..11]).unwrap() / 3 + 1;
    format!("{}-{month:02}-{}T{}Z", &date[12..16], &date[5..7], &date[17..25])
}

pub fn base64(text: &str) -> Vec<u8> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let (mut bytes, mut bits, mut count) = (Vec::new(), 0usize, 0);
    for byte in text.bytes() {
        bits = (bits << 6 | DIGITS.iter().position(|digit| *digit == byte).unwrap()) & 0xfff_ffff;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    bytes
}
