//! `pagewell init --verify`: looks at each running site from outside, by requests that change nothing but one
//! cached page.
//!
//! | Check | Requests | Right |
//! |---|---|---|
//! | hits | the page, up to four times | the last is a hit |
//! | signed-in visitors | the page with a session cookie | not a hit, no server error |
//! | purges | one to the origin, `PURGE` of the page, the page | not a hit; no purge while the origin fails |
//! | PHP below uploads | a `.php` that does not exist, there and elsewhere | refused there; wrong if Pagewell would run it |
//! | certificate | a TLS handshake, if there is HTTPS | trusted, as by a browser |
//! | certificate files | none: they are read as the user of the service | readable |

use crate::application::recognise;
use crate::file_text::uploads;
use crate::http::{ProbedPlace, ResponseHead, StartTls, VerifyTls};
use crate::machine::ExaminedMachine;
use crate::web_server::{ServedAddress, ServedSite, served_sites};
use command_line::options::{InitArgs, SiteKind};
use config::{Address, Begin, Config, load, resolve};
use random_number::random_number;
use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::time::Duration;

/// The number of requests after which a page must be a hit: a new WordPress writes during the first two.
const HIT_WITHIN: usize = 4;
/// Maximum number of redirects that are followed.
const REDIRECTS_MAX: usize = 3;
/// Maximum time to find out whether a server listens at a port of this machine.
const CONNECT_WITHIN: Duration = Duration::from_secs(2);
/// The remedy if the origin answers with a server error.
const ORIGIN_FAILS: &str = "look into PHP's log or the database";

/// The word of the TLS library for a certificate of an authority that a server shows as its own.
const AUTHORITY_AS_SERVER: &str = "CaUsedAsEndEntity";

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
enum CheckResult {
    /// It is right.
    Right(String),
    /// It is a weakness of the set-up, with the remedy.
    Weak(String),
    /// It is wrong, with the remedy.
    Wrong(String),
}

/// Functions of higher crates that the checks call.
#[derive(Clone, Copy)]
pub struct VerifyTools<'a> {
    /// Starts TLS, and accepts any certificate.
    pub tls: StartTls<'a>,
    /// Verifies the certificate of a server, as a browser does.
    pub trust: VerifyTls<'a>,
    /// Reads the certificates and keys of the configuration as the user of the service. The error is a sentence for
    /// each file that cannot be read.
    pub read_certificates: &'a dyn Fn(&Config) -> Result<(), Vec<String>>,
}

/// Runs all checks, of each site. Returns the text to print, and the number of checks that failed.
///
/// # Errors
/// The configuration or the URL cannot be used, or the only site does not answer: a sentence.
pub fn verify(args: &InitArgs, tools: VerifyTools<'_>) -> Result<(String, usize), String> {
    let path = args.output.as_deref().unwrap_or(Path::new(crate::facts::CONFIG));
    let (file, _) = load(path).map_err(|error| error.to_string())?;
    let config = resolve(&file).map_err(|error| format!("{}: {error}", path.display()))?;
    let given = args.url.as_deref().map(ProbedPlace::of_url).transpose()?;
    let sites: Vec<&Config> = match &given {
        Some(given) => vec![site_of(given, &config)],
        None => config.all_sites().collect(),
    };
    let (mut text, mut failed) = (String::new(), 0);
    for site in &sites {
        let (requested, results) = match checks(site, given.as_ref(), args, tools) {
            Ok((place, results)) => (place.url(), results),
            Err(why) if sites.len() == 1 => return Err(why),
            Err(why) => {
                let host = site.hosts.canonical.clone().unwrap_or_default();
                (host, vec![CheckResult::Wrong(why)])
            }
        };
        let _ = writeln!(text, "Requested: {requested}");
        failed += add_lines(&mut text, &results);
    }
    if !config.listen_tls.is_empty() {
        failed += add_lines(&mut text, &certificate_files(&config, tools));
    }
    Ok((text, failed))
}

/// The site with the host of this place; the default site if no site has it.
fn site_of<'c>(place: &ProbedPlace, config: &'c Config) -> &'c Config {
    let is_host = |host: &String| *host == place.authority || *host == place.host();
    let is_requested = |site: &&Config| site.hosts.all().any(is_host);
    config.all_sites().find(is_requested).unwrap_or(config)
}

/// The results for one site, and the place that was requested: `given`, or that of the configuration.
fn checks(
    site: &Config,
    given: Option<&ProbedPlace>,
    args: &InitArgs,
    tools: VerifyTools<'_>,
) -> Result<(ProbedPlace, Vec<CheckResult>), String> {
    let machine = ExaminedMachine::new(args.machine.clone());
    let requested = match given {
        Some(given) => given.clone(),
        None => place(site, &machine)?,
    };
    let root = site.site.files.as_ref().map(|files| files.root.clone());
    let kind = root.and_then(|root| recognise(&machine, &root, None).ok()).map(|site| site.kind);
    let place = landed(requested, tools.tls, given.is_some())?;
    let runs_php = site.site.files.is_some();
    let probe = Probe { place, tls: tools.tls, kind: kind.unwrap_or_default(), runs_php };
    let mut all = vec![probe.hits()];
    if !matches!(all[0], CheckResult::Wrong(_)) {
        all.extend([probe.signed_in(), probe.purges(own_address(site))]);
    }
    all.extend(probe.uploads());
    all.extend(secure_place(&probe.place, site).map(|place| certificate(&place, tools)));
    Ok((probe.place, all))
}

/// Where visitors get HTTPS: the requested place, or Pagewell's own address. `None` if there is none, or the host is
/// unknown.
fn secure_place(place: &ProbedPlace, config: &Config) -> Option<ProbedPlace> {
    if place.secure {
        // No certificate names the address of this machine, by which a site without a host is requested.
        let host = place.host().trim_matches(['[', ']']);
        return host.parse::<IpAddr>().is_err().then(|| place.clone());
    }
    let address = first_reachable(&config.listen_tls, config)?;
    let authority = config.hosts.canonical.clone()?;
    Some(ProbedPlace { secure: true, address: Some(address), authority, path: "/".into() })
}

fn certificate(place: &ProbedPlace, tools: VerifyTools<'_>) -> CheckResult {
    match place.trust(tools.trust) {
        Ok(()) => CheckResult::Right(format!("certificate: clients trust it for {}", place.host())),
        Err(why) => {
            let host = place.host();
            CheckResult::Wrong(format!(
                "certificate: clients do not trust it for {host} {}",
                reason_and_remedy(&why)
            ))
        }
    }
}

/// The reason why clients do not trust a certificate, with the remedy.
fn reason_and_remedy(why: &str) -> String {
    if why.contains(AUTHORITY_AS_SERVER) {
        return "(it is the certificate of an authority, CA:TRUE, as `openssl req -x509` makes it); make it again with \
                -addext basicConstraints=CA:FALSE, and name it by --ca FILE"
            .into();
    }
    format!(
        "({why}); name the right file in [[tls]], or your own certificate authority by --ca FILE"
    )
}

fn certificate_files(config: &Config, tools: VerifyTools<'_>) -> Vec<CheckResult> {
    match (tools.read_certificates)(config) {
        Ok(()) => {
            vec![CheckResult::Right("certificate files: the service can read them".into())]
        }
        Err(all) => all
            .into_iter()
            .map(|why| CheckResult::Wrong(format!("certificate files: {why}")))
            .collect(),
    }
}

/// Adds a line for each result. Returns how many of the checks failed.
fn add_lines(text: &mut String, all: &[CheckResult]) -> usize {
    for one in all {
        let (mark, sentence) = match one {
            CheckResult::Right(sentence) => ("ok", sentence),
            CheckResult::Weak(sentence) => ("weak", sentence),
            CheckResult::Wrong(sentence) => ("FAILED", sentence),
        };
        let _ = writeln!(text, "  {mark:<8}{sentence}");
    }
    all.iter().filter(|one| matches!(one, CheckResult::Wrong(_))).count()
}

/// The first TCP address of Pagewell for visitors, as this machine connects to it.
fn own_address(config: &Config) -> Option<SocketAddr> {
    first_reachable(&config.listen, config)
}

/// The first address that is requested without a proxy: none that expects its header (PROXY protocol).
fn first_reachable(addresses: &[Address], config: &Config) -> Option<SocketAddr> {
    let is_open = |address: &&Address| config.begin_at(address) == Begin::Client;
    addresses.iter().filter(is_open).find_map(reachable)
}

fn reachable(address: &Address) -> Option<SocketAddr> {
    match address {
        Address::Tcp(tcp) if tcp.ip().is_unspecified() => {
            Some(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), tcp.port()))
        }
        Address::Tcp(tcp) => Some(*tcp),
        Address::Unix(_) => None,
    }
}

/// Where visitors connect: Pagewell's own address for HTTPS, or the server in front, or Pagewell itself.
fn place(config: &Config, machine: &ExaminedMachine) -> Result<ProbedPlace, String> {
    let host = config.hosts.canonical.as_ref().map(ToString::to_string);
    if let Some(tls) = first_reachable(&config.listen_tls, config) {
        let authority = host.unwrap_or_else(|| tls.to_string());
        return Ok(ProbedPlace { secure: true, address: Some(tls), authority, path: "/".into() });
    }
    let own = own_address(config);
    let fronts = match own {
        Some(own) if !own.ip().is_loopback() => Vec::new(),
        _ => fronts(own, host.as_deref(), machine),
    };
    let answers =
        |front: &ServedAddress| TcpStream::connect_timeout(&front.at, CONNECT_WITHIN).is_ok();
    let own = own.map(|at| ServedAddress { at, secure: false });
    let found = fronts.into_iter().find(answers).or(own);
    let ServedAddress { at, secure } =
        found.ok_or("listen has no TCP address: name the URL of visitors by --url")?;
    Ok(ProbedPlace {
        secure,
        address: Some(at),
        authority: host.unwrap_or_else(|| at.to_string()),
        path: "/".into(),
    })
}

/// The addresses of the server in front, HTTPS first: those of nginx's blocks that pass to `own`, if possible with this
/// host; else the usual ports of this machine.
fn fronts(
    own: Option<SocketAddr>,
    host: Option<&str>,
    machine: &ExaminedMachine,
) -> Vec<ServedAddress> {
    let own = own.map(|own| own.to_string());
    let mut sites = served_sites(machine);
    sites.retain(|site| own.as_ref().is_some_and(|own| site.passes_to.contains(own)));
    let has_host = |site: &ServedSite| site.names.iter().any(|name| Some(name.as_str()) == host);
    if sites.iter().any(has_host) {
        sites.retain(has_host);
    }
    let mut all: Vec<ServedAddress> = sites.into_iter().flat_map(|site| site.listens).collect();
    if all.is_empty() {
        let usual = |port: u16| ServedAddress {
            at: SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
            secure: port == 443,
        };
        return [443, 80].map(usual).into();
    }
    all.sort_by_key(|one| !one.secure);
    all
}

/// The place after the redirects of the front page. `is_given`: the operator has named it.
fn landed(
    mut place: ProbedPlace,
    tls: StartTls<'_>,
    is_given: bool,
) -> Result<ProbedPlace, String> {
    let hints = [
        ("or name the URL of visitors by --url", "or name the URL by --url"),
        ("and see that this is the URL of visitors", "or name that URL"),
    ];
    let (hint, hint_elsewhere) = hints[usize::from(is_given)];
    for _ in 0..REDIRECTS_MAX {
        let head = place.request("GET", "", tls).map_err(|error| {
            format!("{}: no answer ({error}); start the service, {hint}", place.url())
        })?;
        let location = head.field("location").filter(|_| (300..400).contains(&head.status));
        match location.map(|location| place.redirected(location)) {
            Some(Some(next)) if next != place => place = next,
            Some(None) => {
                return Err(format!(
                    "{} is redirected to another host ({}): set site.host to that, {hint_elsewhere}",
                    place.url(),
                    crate::plan::plain_text(location.unwrap_or_default())
                ));
            }
            _ => return Ok(place),
        }
    }
    Ok(place)
}

struct Probe<'a> {
    place: ProbedPlace,
    tls: StartTls<'a>,
    kind: SiteKind,
    /// Whether Pagewell itself runs the scripts of the site.
    runs_php: bool,
}

impl Probe<'_> {
    fn get(&self, lines: &str) -> Option<ResponseHead> {
        self.place.request("GET", lines, self.tls).ok()
    }

    fn hits(&self) -> CheckResult {
        let mut last = ResponseHead::default();
        for number in 1..=HIT_WITHIN {
            let Some(head) = self.get("") else {
                return CheckResult::Wrong("hits: no answer".into());
            };
            if number > 1 && head.is_hit() {
                return CheckResult::Right(format!(
                    "hits: request {number} is answered from the cache"
                ));
            }
            last = head;
        }
        let Some(status) = last.cache_status() else {
            return CheckResult::Wrong(format!(
                "hits: the response {} has no Cache-Status of Pagewell: the server in front does not pass requests \
                 to it yet, or is that of another site: name the URL of visitors by --url",
                last.status
            ));
        };
        let remedy = match self.kind {
            _ if status.contains("detail=trial") => {
                "the site is under trial: `pagewell trial` says when it is safe to end it"
                    .to_owned()
            }
            SiteKind::WordPress if status.contains("no-lifetime") => {
                "activate the plugin Pagewell".to_owned()
            }
            _ => format!("`pagewell explain {}` says more", self.place.url()),
        };
        CheckResult::Wrong(format!("hits: the page is not cached ({status}); {remedy}"))
    }

    fn signed_in(&self) -> CheckResult {
        let cookie = self.session_cookie();
        match self.get(&format!("Cookie: {cookie}\r\n")) {
            None => CheckResult::Wrong("signed-in visitors: no answer".into()),
            Some(head) if head.status >= 500 => CheckResult::Wrong(format!(
                "signed-in visitors: the site answers {}; {ORIGIN_FAILS}",
                head.status
            )),
            Some(head) if head.is_hit() && self.kind == SiteKind::Magento => {
                CheckResult::Right("signed-in visitors: a rule shares this page with them".into())
            }
            Some(head) if head.is_hit() => CheckResult::Wrong(format!(
                "signed-in visitors: a request with the cookie {cookie} gets the shared page; look for `ignore` and \
                 `shared_with_sessions` in the configuration"
            )),
            Some(_) => {
                CheckResult::Right("signed-in visitors: they do not get the shared page".into())
            }
        }
    }

    fn session_cookie(&self) -> &'static str {
        match self.kind {
            SiteKind::WordPress => "wordpress_logged_in_verify=pagewell",
            _ => "PHPSESSID=pagewellverify",
        }
    }

    /// The status with which the origin answers now. The request has a parameter that no other one has, and the cookie
    /// of a session. `None` if the cache answers nevertheless.
    fn origin_status(&self) -> Option<u16> {
        let path = &self.place.path;
        let mark = if path.contains('?') { '&' } else { '?' };
        let place =
            self.place.with_path(&format!("{path}{mark}pagewell-verify={:x}", random_number()));
        let cookie = format!("Cookie: {}\r\n", self.session_cookie());
        let head = place.request("GET", &cookie, self.tls).ok()?;
        (!head.is_hit()).then_some(head.status)
    }

    /// Purges the page where visitors connect, or at Pagewell itself if a server in between refuses it. While the
    /// origin fails, nothing is purged: visitors would get the failure instead of the page.
    fn purges(&self, own: Option<SocketAddr>) -> CheckResult {
        let Some(page) = self.get("") else {
            return CheckResult::Wrong("purges: no answer".into());
        };
        match self.origin_status() {
            Some(status) if status >= 500 => {
                return CheckResult::Wrong(format!(
                    "purges: not tried, because the site answers {status}; {ORIGIN_FAILS}"
                ));
            }
            Some(status) if status == page.status => {}
            _ => {
                return CheckResult::Weak(format!(
                    "purges: not tried, because only the cache answers {}; name another page by --url",
                    page.status
                ));
            }
        }
        let direct = own.map(|address| ProbedPlace {
            secure: false,
            address: Some(address),
            ..self.place.clone()
        });
        let is_purged = |place: &ProbedPlace| {
            place.request("PURGE", "", self.tls).is_ok_and(|head| (200..300).contains(&head.status))
        };
        if !is_purged(&self.place) && !direct.as_ref().is_some_and(is_purged) {
            return CheckResult::Wrong(
                "purges: PURGE of the page was refused; allow this machine in purge.from".into(),
            );
        }
        match self.get("") {
            Some(head) if !head.is_hit() && head.status == page.status => {
                CheckResult::Right("purges: a purged page is fetched again".into())
            }
            Some(head) if !head.is_hit() => CheckResult::Wrong(format!(
                "purges: the status of the page was {}, and is {} after PURGE",
                page.status, head.status
            )),
            _ => CheckResult::Wrong("purges: the page is still cached after PURGE".into()),
        }
    }

    /// Whether a `.php` below the directory of uploads is refused. `None` if there is no such directory.
    fn uploads(&self) -> Option<CheckResult> {
        let directory = uploads(self.kind)?;
        // No file of the site has this number in its name.
        let name = format!("pagewell-verify-{:08x}.php", random_number() as u32);
        let ask = |path: String| self.place.with_path(&path).request("GET", "", self.tls).ok();
        let (there, elsewhere) = (ask(format!("{directory}{name}"))?, ask(format!("/{name}"))?);
        if there.status >= 500 {
            let status = there.status;
            return Some(CheckResult::Wrong(format!(
                "PHP below {directory}: not known, because the site answers {status}; {ORIGIN_FAILS}"
            )));
        }
        let status = there.cache_status();
        let refused = status.is_some_and(|status| status.contains("detail=script-refused"))
            || matches!(there.status, 403 | 410)
            || there.status == 404 && elsewhere.status != 404;
        if refused {
            let right = format!("PHP below {directory}: refused ({})", there.status);
            return Some(CheckResult::Right(right));
        }
        let would_run = format!(
            "PHP below {directory}: a script there would run ({} for a name that does not exist, as elsewhere);",
            there.status
        );
        let rule = format!("write a [[rule]] with path = \"{directory}**\" and php = false");
        Some(if self.runs_php && status.is_some() {
            CheckResult::Wrong(format!("{would_run} {rule}"))
        } else {
            CheckResult::Weak(format!(
                "{would_run} let the server that runs PHP refuse it: location ~* ^{directory}.*\\.php$ {{ deny all; }}"
            ))
        })
    }
}
