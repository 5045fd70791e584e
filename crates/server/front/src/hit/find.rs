//! Finds the page of a plain hit. It writes the cache key, gets the candidates from the store, and
//! calls `lookup` and `page::select`, as `exchange` and `serve` do for all other requests.
//!
//! No memory is allocated. The key is written into a buffer of the connection. The page's header
//! lines were laid out when it was stored. The lines that differ from hit to hit (Age, ttl) go into
//! another buffer. Most requests of a connection have the same host. So the beginning of the key is
//! reused for the next request, together with the Host line from which it was derived.
//!
//! If no page is stored, a file of the document root that was found within the last second is sent
//! in the same way; else a redirect, if the site has any.

use super::read::{self, GivenPassword, LineAt, Lines, PlainFacts, PlainHead, PlainRequest};
use super::redirects;
use super::send::{FoundHit, Hit, HitForm, HitParts};
use config::HitWatch;
use delivery::audit::{AuditedHit, is_drawn};
use delivery::codings;
use delivery::lookup::{self, StoredPages};
use delivery::site::Site;
use http::{HeaderMap, HeaderName, HeaderValue, Version};
use http_cache::{Answer, Method, RequestFacts, Reuse, Timestamp, Verdict};
use request_values::networks::Networks;
use request_values::target::TargetUri;
use rule_conditions::{Peer, RequestClient, RequestView};
use site_rules::{Handling, Plan};
use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;
use stored_pages::page::{ReadPage, Section, SharedPage, select};
use telemetry::client::{Client, ClientConnection};

/// A request that is no plain hit.
pub struct UnansweredRequest {
    /// The buffer, for reuse.
    pub buffer: Vec<u8>,
    /// The number of the site's configuration (`SiteState::reading`) by which the request is not redirected; 0 if that is
    /// not known.
    pub unredirected: u64,
}

/// The reason why no answer was found.
pub(super) enum NoHit {
    /// It may have a password, without which it is looked for again.
    MayHavePassword,
    /// The configuration of its site with this number does not redirect it.
    Unredirected(u64),
    /// Any other.
    Other,
}

/// Looks up plain hits for one connection.
pub struct HitFinder {
    /// The default site of the listener. It has references to the other sites.
    site: Arc<Site>,
    scheme: &'static str,
    key: Key,
    /// Reusable buffer for the positions of the header lines.
    places: Vec<LineAt>,
    connection: ConnectionPeer,
    /// Maximum content length of a plain hit, in bytes. Larger hits are sent by hyper.
    content_max: usize,
}

/// The other end of a connection.
pub(super) struct ConnectionPeer {
    /// Whether it is a trusted proxy, whose forwarding fields are used.
    proxy_trust: Peer,
    address: Option<IpAddr>,
    client: Arc<ClientConnection>,
}

/// The client of a plain request. Its address is computed when it is used.
pub(super) struct PlainClient<'a> {
    peer: &'a ConnectionPeer,
    proxies: &'a Networks,
    lines: Lines<'a>,
}

impl RequestClient for PlainClient<'_> {
    fn address(&self) -> Option<IpAddr> {
        match self.peer.proxy_trust {
            Peer::Trusted => self.lines.client_address(self.proxies).or(self.peer.address),
            Peer::Anybody => self.peer.address,
        }
    }

    fn peer(&self) -> Peer {
        self.peer.proxy_trust
    }
}

/// A buffer for cache keys. Scheme and host are reused for the next request.
#[derive(Default)]
pub(super) struct Key {
    bytes: Vec<u8>,
    /// The length of scheme and host in `bytes`; 0 if they are unknown.
    origin_bytes: usize,
    scheme: &'static str,
    /// The Host line from which they were derived.
    host_line: Vec<u8>,
}

impl HitFinder {
    /// Creates a finder for the connection of this client to `site`.
    pub fn new(site: Arc<Site>, client: &Arc<ClientConnection>) -> HitFinder {
        let (key, places, scheme) = (Key::default(), Vec::new(), client.scheme);
        let address = client.peer.map(|peer| peer.ip());
        let connection =
            ConnectionPeer { proxy_trust: client.proxy_trust, address, client: client.clone() };
        HitFinder { site, scheme, key, places, connection, content_max: usize::MAX }
    }

    /// Limits plain hits to `content_max` bytes of content. Larger ones are sent by hyper.
    pub fn bound(&mut self, content_max: usize) {
        self.content_max = content_max;
    }

    /// Returns the answer to the request at the start of `bytes` and the length of its header
    /// section, if it is a plain hit. `buffer` is reused.
    pub fn find(
        &mut self,
        bytes: &[u8],
        buffer: Vec<u8>,
    ) -> Result<(Hit, usize), UnansweredRequest> {
        if !self.site.is_current() {
            self.site = self.site.now();
            // A process that hands over never becomes current again, so this costs hits nothing.
            if !self.site.answers_from_cache() {
                return Err(UnansweredRequest { buffer, unredirected: 0 });
            }
        }
        let mut places = std::mem::take(&mut self.places);
        let found = self.find_in(bytes, &mut places);
        self.places = places;
        match found {
            Ok(((found, parts), head_bytes)) => Ok((Hit::new(found, parts, buffer), head_bytes)),
            Err(NoHit::Unredirected(unredirected)) => {
                Err(UnansweredRequest { buffer, unredirected })
            }
            Err(_) => Err(UnansweredRequest { buffer, unredirected: 0 }),
        }
    }

    fn find_in(
        &mut self,
        bytes: &[u8],
        places: &mut Vec<LineAt>,
    ) -> Result<((FoundHit, HitParts), usize), NoHit> {
        let request = read::read(bytes, &self.site.limits, places).ok_or(NoHit::Other)?;
        let head_bytes = request.head_bytes;
        match self.find_by_head(&request, None) {
            Ok(found) => Ok((found, head_bytes)),
            Err(NoHit::MayHavePassword) => {
                let facts = request.facts();
                Ok((self.find_with_password(facts, bytes, places)?, head_bytes))
            }
            Err(other) => Err(other),
        }
    }

    /// Finds the answer to a request with `Authorization`. As in `exchange`, all but the check of the password is done as if
    /// the field was not there.
    #[inline(never)]
    fn find_with_password(
        &mut self,
        facts: PlainFacts,
        bytes: &[u8],
        places: &mut Vec<LineAt>,
    ) -> Result<(FoundHit, HitParts), NoHit> {
        let found = PlainHead::without_password(facts, bytes, places);
        let (request, value) = found.ok_or(NoHit::Other)?;
        self.find_by_head(&request, Some(value))
    }

    /// Frees the buffers and the cached beginning of the key.
    pub fn rest(&mut self) {
        self.places = Vec::new();
        self.key = Key::default();
    }

    /// Returns the header lines of the request last passed to `find`. `head` begins with its header
    /// section.
    pub fn lines<'a>(&'a self, head: &'a [u8]) -> Lines<'a> {
        Lines::at(head, &self.places)
    }

    fn find_by_head(
        &mut self,
        request: &PlainHead<'_>,
        password: Option<&[u8]>,
    ) -> Result<(FoundHit, HitParts), NoHit> {
        let asked = request.read_lines(&self.site, self.connection.proxy_trust, self.scheme);
        let mut asked = asked.ok_or(NoHit::Other)?;
        let schemes = Schemes { target: asked.scheme, connection: self.scheme };
        self.key.write(schemes, asked.host, request.target).ok_or(NoHit::Other)?;
        let site = if self.site.other_sites.is_empty() {
            &self.site
        } else {
            self.site.for_host(self.key.host().ok_or(NoHit::Other)?)
        };
        let instant = site.clock.instant();
        let now = site.clock.at(instant);
        match password {
            // It may be a password: it is found without this field, or by `exchange`.
            None if asked.facts.authorization && site.config.rules.has_passwords() => {
                return Err(NoHit::MayHavePassword);
            }
            None => {}
            Some(value) => {
                asked.password = Some(GivenPassword { value, default_site: &self.site });
            }
        }
        let (when, most) = ((now, instant), self.content_max);
        let is_plain = asked.is_plain_for(site, &self.key);
        if is_plain {
            let page = HitFinder::page(site, &self.connection, &asked, &mut self.key, when, most);
            let found = page.or_else(|| HitFinder::file(site, &asked, &self.key, when, most));
            if let Some(found) = found {
                return Ok(found);
            }
        }
        if !redirects::may_be(site) {
            return Err(NoHit::Other);
        }
        let request = (&asked, &self.key, is_plain);
        redirects::find((&self.site, site), &self.connection, request, when, most)
    }

    /// Returns the page that answers the request, if it is a plain hit.
    fn page(
        site: &Site,
        peer: &ConnectionPeer,
        asked: &PlainRequest<'_>,
        key: &mut Key,
        (now, instant): (Timestamp, Instant),
        content_max: usize,
    ) -> Option<(FoundHit, HitParts)> {
        let plan = asked.plan(site, peer, now, key)?;
        let candidates = site.store.candidates(site.store.key(&key.bytes));
        let pages = candidates.as_slice();
        if pages.is_empty() {
            return None;
        }
        let shared = StoredPages::Shared(pages);
        let verdict = lookup::choose(site, &asked.facts, &asked.fields, &plan, shared, now);
        let Verdict::Reuse { candidate, state: Reuse::Fresh, answer } = &verdict else {
            return None;
        };
        let page = &pages[*candidate];
        let form = form(&asked.facts, page, answer, content_max)?;
        if site.config.watches_hits != HitWatch::Nothing {
            if site.config.watches_hits == HitWatch::Rules
                && !asked.is_admitted(site, key, (page, true), instant)
            {
                return None;
            }
            if site.config.audit.is_some_and(is_drawn) {
                asked.audit(site, peer, key, (plan, page));
            }
        }
        if form.coding.is_none() && form.head == Section::Whole {
            codings::wanted(site, &asked.facts, page);
        }
        site.counters.requests.add();
        site.counters.hits.add();
        page.serve();
        Some((FoundHit::Page(page.clone()), asked.answered(form, (now, instant))))
    }

    /// Returns the file that answers the request, if it was found at its path within the last
    /// second.
    fn file(
        site: &Site,
        asked: &PlainRequest<'_>,
        key: &Key,
        (now, instant): (Timestamp, Instant),
        content_max: usize,
    ) -> Option<(FoundHit, HitParts)> {
        let (_, files) = site.files.as_deref()?;
        let path = asked.target.split('?').next()?;
        let file = files.found(path, site.reading(), now)?;
        if asked.facts.cache_control.only_if_cached || !site.config.hosts.have(key.host()?) {
            return None;
        }
        let length = file.length() as u64;
        let answer = http_cache::answer(&asked.facts, &file.payload().stored, Some(length));
        let form = form(&asked.facts, &file, &answer, content_max)?;
        // The file is that of the path, under every host and with every query.
        let is_of_path = path.len() == asked.target.len();
        let is_kept = || is_of_path && !site.config.rules.answers_by_host();
        if site.config.watches_hits == HitWatch::Rules
            && !asked.is_admitted(site, key, (&file, is_kept()), instant)
        {
            return None;
        }
        site.counters.requests.add();
        site.counters.files.add();
        Some((FoundHit::File(file), asked.answered(form, (now, instant))))
    }
}

impl Key {
    /// Writes the key of a request in origin form. `None` if only hyper and `exchange` can
    /// interpret the request.
    fn write(&mut self, schemes: Schemes, host_line: &[u8], path: &str) -> Option<()> {
        let scheme = schemes.target;
        let known = self.origin_bytes > 0 && self.scheme == scheme && self.host_line == host_line;
        if known {
            self.bytes.truncate(self.origin_bytes);
        } else {
            self.origin_bytes = 0;
            write_plain_origin(schemes, host_line, &mut self.bytes)?;
            self.origin_bytes = self.bytes.len();
            self.scheme = scheme;
            self.host_line.clear();
            self.host_line.extend_from_slice(host_line);
        }
        write_plain_path(path, &mut self.bytes)
    }

    /// The host of the key, normalised.
    pub(super) fn host(&self) -> Option<&str> {
        str::from_utf8(&self.bytes[self.scheme.len() + 3..self.origin_bytes]).ok()
    }
}

impl PlainRequest<'_> {
    /// Combines the selected form with this request's method, version and connection options.
    pub(super) fn answered(&self, form: HitForm, (now, instant): (Timestamp, Instant)) -> HitParts {
        let is_get = self.kind == Method::Get;
        let (version, ends_connection) = (self.version, self.ends_connection);
        let is_for_some = self.password.is_some();
        HitParts { form, is_get, is_for_some, version, ends_connection, now, instant }
    }

    /// Whether the target is normalised and the host is the canonical host of the site.
    fn is_plain_for(&self, site: &Site, key: &Key) -> bool {
        let normal = site.config.rules.form().normal(self.target);
        let canonical = &site.config.hosts.canonical;
        matches!((normal.sent, normal.page), (Cow::Borrowed(_), Cow::Borrowed(_)))
            && (canonical.is_none() || canonical.as_deref() == key.host())
    }

    /// Lets the audit compare the answer of a GET in the background.
    #[cold]
    #[inline(never)]
    fn audit(
        &self,
        site: &Site,
        peer: &ConnectionPeer,
        key: &Key,
        (plan, page): (Plan, &SharedPage),
    ) -> Option<()> {
        if self.kind != Method::Get {
            return None;
        }
        let mut headers = HeaderMap::new();
        for (name, value) in self.fields.0.iter() {
            headers
                .append(HeaderName::from_bytes(name).ok()?, HeaderValue::from_bytes(value).ok()?);
        }
        let target = TargetUri {
            scheme: self.scheme,
            host: key.host()?.to_owned(),
            path_and_query: self.target.to_owned(),
            normal: None,
            written: None,
        };
        let client = Client::of_request(&peer.client, &site.config.trusted_proxies, &headers);
        let (headers, version) = (Arc::new(headers), Version::HTTP_11);
        let (key, page) = (key.bytes.clone(), page.clone());
        site.audit.add(AuditedHit { target, key, headers, version, client, plan, page });
        Some(())
    }

    /// The client that sent the request, as the rules see it.
    #[inline]
    pub(super) fn client<'s>(
        &'s self,
        site: &'s Site,
        peer: &'s ConnectionPeer,
    ) -> PlainClient<'s> {
        PlainClient { peer, proxies: &site.config.trusted_proxies, lines: self.fields.0 }
    }

    /// The request as the rules see it.
    #[inline]
    pub(super) fn view<'s>(
        &'s self,
        key: &'s Key,
        client: &'s PlainClient<'s>,
    ) -> Option<RequestView<'s>> {
        let is_head = self.kind == Method::Head;
        Some(RequestView {
            method: if is_head { &http::Method::HEAD } else { &http::Method::GET },
            scheme: self.scheme,
            host: key.host()?,
            path_and_query: self.target,
            fields: &self.fields,
            client,
        })
    }

    /// Applies the rules to the request and completes its key, which has been written. `None` if
    /// the request cannot be answered from the store here.
    fn plan(
        &self,
        site: &Site,
        peer: &ConnectionPeer,
        now: Timestamp,
        key: &mut Key,
    ) -> Option<Plan> {
        let rules = &site.config.rules;
        if !self.has_cookies && !rules.has_rules() {
            return Some(rules.plain_plan());
        }
        let client = self.client(site, peer);
        let plan = rules.plan(&self.view(key, &client)?, site.load(), now.0);
        rules.write_key(&plan, &self.fields, &mut key.bytes);
        (plan.handling == Handling::Store).then_some(plan)
    }
}

/// Returns the form of a page that answers the request unchanged, with at most `content_max` bytes
/// of content. `None` if the answer has to be built for the request: `serve` does that.
#[inline]
fn form(
    facts: &RequestFacts<'_>,
    page: &SharedPage,
    answer: &Answer,
    content_max: usize,
) -> Option<HitForm> {
    let selected = select(facts, page, answer);
    let (head, coding) = (selected.section?, selected.coding);
    let (lines, length) = (selected.lines()?, selected.content_bytes()?);
    (length <= content_max).then_some(HitForm { head, coding, lines_bytes: lines.len(), length })
}

/// The schemes of a request and of its connection.
#[derive(Clone, Copy)]
pub struct Schemes {
    /// The scheme of the target URI: the connection's, or the one that a trusted proxy sends.
    pub target: &'static str,
    /// The scheme of the connection.
    pub connection: &'static str,
}

impl Schemes {
    /// Whether either scheme equals `scheme`. If so, its default port is omitted from the key. A
    /// proxy that terminates TLS may forward the `Host` of either side.
    #[inline]
    fn have(self, scheme: &str) -> bool {
        self.target == scheme || self.connection == scheme
    }
}

/// Clears `out` and writes the beginning of a host's keys into it: scheme and host. The bytes are
/// the same as those of [`TargetUri::read`](request_values::target::TargetUri::read), `by_scheme` and
/// `write_key`, but no memory is allocated. `None` if only those functions can interpret the host.
pub fn write_plain_origin(schemes: Schemes, host: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let name = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_');
    let colon = host.iter().position(|b| *b == b':').unwrap_or(host.len());
    let (name_part, port_part) = host.split_at(colon);
    let valid = !name_part.is_empty() && name_part.len() <= 255 && name_part.iter().all(name);
    if !valid {
        return None;
    }
    let port = match port_part {
        [] => &[][..],
        b":80" if schemes.have("http") => &[],
        b":443" if schemes.have("https") => &[],
        // Leading zeros and numbers beyond 65,535 are left to `TargetUri::read`.
        [b':', digits @ ..] if is_plain_port(digits) => port_part,
        _ => return None,
    };
    out.clear();
    out.extend_from_slice(schemes.target.as_bytes());
    out.extend_from_slice(b"://");
    out.extend(name_part.iter().map(u8::to_ascii_lowercase));
    out.extend_from_slice(port);
    Some(())
}

/// Whether a port is written in the same form as in a key.
fn is_plain_port(digits: &[u8]) -> bool {
    let begins = matches!(digits, [b'1'..=b'9', ..]) && digits.len() <= 5;
    begins && str::from_utf8(digits).is_ok_and(|digits| digits.parse::<u16>().is_ok())
}

/// Appends the path and query of a request in origin form to the output of [`write_plain_origin`].
/// `None` if only `TargetUri::read` can interpret them.
pub fn write_plain_path(path: &str, out: &mut Vec<u8>) -> Option<()> {
    let bytes = path.as_bytes();
    if bytes.first() != Some(&b'/') || memchr::memchr(b'#', bytes).is_some() {
        return None;
    }
    out.extend_from_slice(bytes);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::header;

    const HTTP: Schemes = Schemes { target: "http", connection: "http" };

    /// The key as `exchange` computes it.
    fn key(uri: &str, host: &str, schemes: Schemes) -> String {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, host.parse().unwrap());
        let uri = uri.parse().unwrap();
        let target = TargetUri::read(&uri, &headers, "fallback", schemes.connection).unwrap();
        let target = if schemes.target == schemes.connection {
            target
        } else {
            target.by_scheme(schemes.target)
        };
        let mut key = Vec::new();
        target.write_key(&mut key);
        String::from_utf8(key).unwrap()
    }

    #[test]
    fn the_two_writers_of_keys_agree() {
        let hosts = [
            "a", "A.b", "a:80", "a:443", "a:8080", "a:080", "a:65535", "a:65536", "a:+80", "[::1]",
            "a b", "",
        ];
        for host in hosts {
            for path in ["/", "/a?b=c", "/A%41", "/a#b", "//x"] {
                let mut plain = Vec::new();
                let written = write_plain_origin(HTTP, host.as_bytes(), &mut plain);
                if written.and_then(|()| write_plain_path(path, &mut plain)).is_some() {
                    assert_eq!(key(path, host, HTTP), String::from_utf8(plain).unwrap());
                }
            }
        }
        for (port, is_plain) in [(":1", true), (":8080", true), (":65535", true), (":65536", false)]
        {
            let mut plain = Vec::new();
            let host = format!("Example.org{port}");
            let written = write_plain_origin(HTTP, host.as_bytes(), &mut plain);
            assert_eq!(written.is_some(), is_plain, "{port}");
            assert!(!is_plain || write_plain_path("/a?b", &mut plain).is_some());
            assert!(!is_plain || plain == format!("http://example.org{port}/a?b").as_bytes());
        }
    }

    #[test]
    fn they_agree_behind_a_proxy_that_terminates_tls() {
        for host in ["a", "a:80", "a:443", "a:8080", "A.b:80"] {
            for connection in ["http", "https"] {
                for target in ["http", "https"] {
                    let (schemes, mut plain) = (Schemes { target, connection }, Vec::new());
                    write_plain_origin(schemes, host.as_bytes(), &mut plain).unwrap();
                    write_plain_path("/a", &mut plain).unwrap();
                    let plain = String::from_utf8(plain).unwrap();
                    assert_eq!(plain, key("/a", host, schemes), "over {connection}");
                }
            }
        }
    }
}
