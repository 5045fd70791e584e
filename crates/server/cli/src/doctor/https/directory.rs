//! The directory of a certificate authority (RFC 8555 section 7.1.1): whether it can be reached, its clock, and its
//! names in CAA records.
//!
//! If its certificate is refused, it is asked once more without that check: a wrong clock of this machine has that
//! effect, and the authority's `Date` shows it. Bounds: 64 KiB, no redirect, and the time of the caller.

use super::{Deadline, ProbeSettings};
use config::{DatabaseTls, Trust};
use database_links::link::client;
use doctor::AuthorityFacts;
use http::Uri;
use http_fields::Timestamp;
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use telemetry::clock::Clock;

/// The longest answer in bytes.
const ANSWER_BYTES_MAX: usize = 64 << 10;
/// Maximum number of names of an authority.
const IDENTITIES_MAX: usize = 10;

/// Looks at the directory with this URL.
pub(super) fn look(url: &str, settings: &ProbeSettings, deadline: Deadline) -> AuthorityFacts {
    let mut facts = AuthorityFacts { directory: url.to_owned(), ..AuthorityFacts::default() };
    let within = settings.times.probe;
    let checked = answer(url, settings, Trust::SignedForHost, deadline.part(within));
    let answer = match checked {
        Ok(answer) => Ok(answer),
        Err(why) => {
            facts.failure = Some(why);
            answer(url, settings, Trust::Anybody, deadline.part(within))
        }
    };
    let Ok(answer) = answer else { return facts };
    let text = String::from_utf8_lossy(&answer).into_owned();
    let (head, content) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let now_ms = Clock::start().now().0.saturating_add_signed(settings.clock_s * 1000);
    facts.ahead_s = date_ms(head, now_ms).map(|date_ms| (now_ms as i64 - date_ms as i64) / 1000);
    let directory: Value = serde_json::from_str(content).unwrap_or_default();
    let identities = directory["meta"]["caaIdentities"].as_array().map(Vec::as_slice);
    let names = identities.unwrap_or_default().iter().filter_map(Value::as_str);
    facts.identities = names.take(IDENTITIES_MAX).map(str::to_owned).collect();
    let status = head.split(' ').nth(1).unwrap_or_default();
    if facts.failure.is_none() && (status != "200" || !directory["newOrder"].is_string()) {
        facts.failure = Some(
            format!("it answers {status}, and no directory of ACME").replace(char::is_control, " "),
        );
    }
    facts
}

fn date_ms(head: &str, now_ms: u64) -> Option<u64> {
    let fields = head.lines().filter_map(|line| line.split_once(':'));
    let mut dates = fields.filter(|(name, _)| name.eq_ignore_ascii_case("date"));
    let (_, date) = dates.next()?;
    http_fields::date::parse(date.trim().as_bytes(), Timestamp(now_ms)).map(|date| date.0)
}

/// The bytes of the response, as far as they fit.
fn answer(
    url: &str,
    settings: &ProbeSettings,
    trust: Trust,
    deadline: Deadline,
) -> Result<Vec<u8>, String> {
    let uri: Uri = url.parse().map_err(|_| "not a URL".to_owned())?;
    let authority = uri.authority().ok_or("a URL without a host")?;
    let host = authority.host().trim_matches(['[', ']']);
    let place = (host, authority.port_u16().unwrap_or(443));
    let said = |error: std::io::Error| error.to_string();
    let addresses = place.to_socket_addrs().map_err(said)?;
    let mut stream = Err("the name has no address".to_owned());
    for address in addresses {
        let wait = deadline.wait().map_err(said)?;
        stream = TcpStream::connect_timeout(&address, wait).map_err(said);
        if stream.is_ok() {
            break;
        }
    }
    let stream = stream?;
    let tls = DatabaseTls { trust, authorities: settings.authorities.clone() };
    let config = client(&tls).map_err(|error| error.to_string())?;
    let name = ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())?;
    let connection =
        ClientConnection::new(Arc::new(config), name).map_err(|error| error.to_string())?;
    let mut stream = StreamOwned::new(connection, stream);
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let request =
        format!("GET {path} HTTP/1.0\r\nHost: {authority}\r\nUser-Agent: pagewell-doctor\r\n\r\n");
    let bound = |stream: &TcpStream| -> std::io::Result<()> {
        let wait = Some(deadline.wait()?);
        stream.set_read_timeout(wait)?;
        stream.set_write_timeout(wait)
    };
    bound(&stream.sock).map_err(said)?;
    stream.write_all(request.as_bytes()).map_err(said)?;
    let (mut bytes, mut piece) = (Vec::new(), [0; 4096]);
    while bytes.len() < ANSWER_BYTES_MAX {
        bound(&stream.sock).map_err(said)?;
        match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(count) => bytes.extend(&piece[..count]),
            // A server may end without the end of TLS.
            Err(_) if !bytes.is_empty() => break,
            Err(error) => return Err(error.to_string()),
        }
    }
    if bytes.is_empty() { Err("no answer".into()) } else { Ok(bytes) }
}
