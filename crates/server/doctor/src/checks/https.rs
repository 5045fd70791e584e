//! Automatic HTTPS: what keeps a certificate authority from issuing a certificate.
//!
//! Hosts with the same fault are one finding. Nothing that an authority alone can see is judged: it reaches the machine
//! from elsewhere.

use crate::{
    AddressFacts, AuthorityFacts, CaaFacts, Facts, Finding, HostFacts, PortAnswer, Weight,
};

/// A clock that differs by more than this, in seconds, is wrong.
const CLOCK_SECONDS: u64 = 300;
/// Maximum number of hosts that a finding names.
const NAMED_MAX: usize = 3;

const READS: &str = "None: the command only reads.";

/// A fault of a host: the finding without its hosts, and what was seen.
struct HostFault {
    name: &'static str,
    what: &'static str,
    seen: String,
    command: String,
    risk: &'static str,
}

pub(super) fn all(facts: &Facts) -> Vec<Finding> {
    let Some(https) = &facts.https else { return Vec::new() };
    let mut faults: Vec<(HostFault, Vec<&str>)> = Vec::new();
    for host in &https.hosts {
        let of_host = dns(host).into_iter().chain(caa(host, &https.authority, https.has_plain));
        for fault in of_host.chain(addresses(host, https.has_plain)) {
            let same = faults
                .iter_mut()
                .find(|(known, _)| (known.name, &known.seen) == (fault.name, &fault.seen));
            match same {
                Some((_, hosts)) => hosts.push(&host.name),
                None => faults.push((fault, vec![&host.name])),
            }
        }
    }
    let of_hosts = faults.into_iter().map(|(fault, hosts)| finding(fault, &hosts));
    authority(&https.authority).into_iter().chain(of_hosts).collect()
}

fn finding(fault: HostFault, hosts: &[&str]) -> Finding {
    let mut named = hosts.iter().take(NAMED_MAX).copied().collect::<Vec<_>>().join(", ");
    if let Some(more @ 1..) = hosts.len().checked_sub(NAMED_MAX) {
        named.push_str(&format!(" and {more} more"));
    }
    Finding {
        name: fault.name,
        weight: Weight::WillFail,
        what: format!("{named}: {}", fault.what),
        evidence: fault.seen,
        command: fault.command,
        risk: fault.risk,
    }
}

/// The clock, and an authority that cannot be used.
fn authority(facts: &AuthorityFacts) -> Option<Finding> {
    let directory = &facts.directory;
    if let Some(ahead_s) = facts.ahead_s.filter(|ahead_s| ahead_s.unsigned_abs() > CLOCK_SECONDS) {
        let way = if ahead_s > 0 { "ahead of" } else { "behind" };
        let seconds = ahead_s.unsigned_abs();
        let length = match seconds {
            0..7200 => format!("{} minutes", seconds / 60),
            7200..172_800 => format!("{} hours", seconds / 3600),
            _ => format!("{} days", seconds / 86_400),
        };
        return Some(Finding {
            name: "certificate-clock",
            weight: Weight::WillFail,
            what: "The clock of this machine is wrong: certificates seem to be invalid or due."
                .into(),
            evidence: format!("It is {length} {way} the clock of {directory}."),
            command: "timedatectl set-ntp true".into(),
            risk: "A clock that is far off is corrected in one step.",
        });
    }
    let failure = facts.failure.as_ref()?;
    Some(Finding {
        name: "certificate-authority",
        weight: Weight::WillFail,
        what: "The certificate authority cannot be used: no certificate is issued or renewed."
            .into(),
        evidence: format!("{directory}: {failure}."),
        command: format!(
            "curl -sv '{directory}'    # then the firewall, the DNS, or acme.directory"
        ),
        risk: READS,
    })
}

fn dns(host: &HostFacts) -> Option<HostFault> {
    let why = host.dns_failure.as_ref()?;
    Some(HostFault {
        name: "certificate-dns",
        what: "the DNS has no address, so no certificate is issued.",
        seen: format!("{why}."),
        command: format!(
            "dig +short {} A    # add an A or AAAA record that leads to this machine",
            host.name
        ),
        risk: READS,
    })
}

fn caa(host: &HostFacts, authority: &AuthorityFacts, has_plain: bool) -> Option<HostFault> {
    let (domain, why) = match &host.caa {
        CaaFacts::Unknown | CaaFacts::Nowhere => return None,
        CaaFacts::Failing(domain) => (domain, "the servers of the domain fail".to_owned()),
        CaaFacts::At(domain, records) => {
            let methods =
                if has_plain { &["http-01", "tls-alpn-01"][..] } else { &["tls-alpn-01"] };
            (domain, crate::caa::refusal(records, &authority.identities, methods)?)
        }
    };
    let wanted = authority.identities.first().map_or("AUTHORITY", String::as_str);
    Some(HostFault {
        name: "certificate-caa",
        what: "CAA records do not allow the certificate authority.",
        seen: format!("CAA records of {domain}: {why}."),
        command: format!(
            "dig {domain} CAA    # then add, at your DNS provider: {domain}. CAA 0 issue \"{wanted}\""
        ),
        risk: "The authority that you add may issue certificates for this domain.",
    })
}

/// The faults of the addresses of a host: one that an authority may choose decides.
fn addresses(host: &HostFacts, has_plain: bool) -> Vec<HostFault> {
    let is_right = |one: &&AddressFacts| one.answer == PortAnswer::Pagewell;
    let has_right_v4 =
        host.addresses.iter().filter(|one| one.address.is_ipv4()).any(|one| is_right(&one));
    let wrong = host.addresses.iter().filter(|one| !is_right(one));
    let fault = |one: &AddressFacts| {
        if one.address.is_ipv6() && has_right_v4 && !one.is_own {
            ipv6(one, has_plain)
        } else {
            address(one, has_plain)
        }
    };
    wrong.map(fault).collect()
}

fn port(has_plain: bool) -> u16 {
    if has_plain { 80 } else { 443 }
}

fn ipv6(one: &AddressFacts, has_plain: bool) -> HostFault {
    HostFault {
        name: "certificate-ipv6",
        what: "the AAAA record leads elsewhere. A certificate authority prefers it to the A record.",
        seen: seen(one, has_plain),
        command: "ip -6 address show scope global    # then correct the AAAA record, or remove it"
            .into(),
        risk: "Without an AAAA record, visitors use IPv4.",
    }
}

fn address(one: &AddressFacts, has_plain: bool) -> HostFault {
    let at = one.address;
    let (name, what, command, risk) = match &one.answer {
        PortAnswer::Silent(_) => (
            if has_plain { "certificate-port-80" } else { "certificate-port-443" },
            "the port is closed, so a certificate authority cannot validate the host.",
            format!(
                "ss -ltnp sport = :{}    # then `listen`, and the firewall of machine and provider",
                port(has_plain)
            ),
            "Some routers lead no machine to its own public address: then test from outside.",
        ),
        PortAnswer::Redirect(_) => (
            "certificate-redirected",
            "challenges are redirected, so a certificate authority does not find their answer.",
            "exempt /.well-known/acme-challenge/ from the redirect of the proxy or CDN".into(),
            "None: only an authority requests these paths.",
        ),
        _ if one.is_own => (
            "certificate-other-program",
            "another program has the port, and answers the challenges.",
            format!(
                "ss -ltnp sport = :{}    # stop that program, and let Pagewell listen there",
                port(has_plain)
            ),
            "The pages of that program are gone.",
        ),
        _ => (
            "certificate-other-server",
            "the DNS leads to another server, which answers the challenges.",
            format!(
                "ip address show scope global    # then let the record lead here instead of {at}"
            ),
            "Visitors reach this machine instead of the other one.",
        ),
    };
    HostFault { name, what, seen: seen(one, has_plain), command, risk }
}

fn seen(one: &AddressFacts, has_plain: bool) -> String {
    let place = std::net::SocketAddr::new(one.address, port(has_plain));
    let program = one.program.as_ref().map(|name| format!(" The program is {name}."));
    let said = match &one.answer {
        PortAnswer::Silent(why) => format!("gives no answer: {why}"),
        PortAnswer::Redirect(to) => format!("redirects a challenge to {to}"),
        PortAnswer::Other(status, Some(server)) => format!("answered {status}, as {server}"),
        PortAnswer::Other(status, None) => format!("answered {status}, and is not Pagewell"),
        PortAnswer::Pagewell => "is Pagewell".into(),
    };
    format!("{place} {said}.{}", program.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HttpsFacts;
    use dns_query::RecordContent;

    fn at(address: &str, answer: PortAnswer) -> AddressFacts {
        let address = address.parse().unwrap();
        AddressFacts { address, is_own: false, program: None, answer }
    }

    fn found(addresses: Vec<AddressFacts>, caa: CaaFacts) -> Vec<Finding> {
        let host = HostFacts { name: "a.org".into(), addresses, dns_failure: None, caa };
        let identities = vec!["ca.test".to_owned()];
        let authority = AuthorityFacts { identities, ..AuthorityFacts::default() };
        let https = HttpsFacts { authority, hosts: vec![host], has_plain: true };
        all(&Facts { https: Some(https), ..Facts::default() })
    }

    fn names(addresses: Vec<AddressFacts>) -> Vec<&'static str> {
        found(addresses, CaaFacts::Nowhere).iter().map(|finding| finding.name).collect()
    }

    #[test]
    fn each_answer_has_its_finding() {
        let (v4, v6) = ("192.0.2.1", "2001:db8::1");
        let silent = || PortAnswer::Silent("refused".into());
        let other = || PortAnswer::Other(404, Some("nginx".into()));
        assert!(names(vec![at(v4, PortAnswer::Pagewell), at(v6, PortAnswer::Pagewell)]).is_empty());
        assert_eq!(names(vec![at(v4, silent())]), ["certificate-port-80"]);
        assert_eq!(names(vec![at(v4, other())]), ["certificate-other-server"]);
        let own = AddressFacts { is_own: true, program: Some("apache2".into()), ..at(v4, other()) };
        assert_eq!(names(vec![own.clone()]), ["certificate-other-program"]);
        assert!(
            found(vec![own], CaaFacts::Nowhere)[0].evidence.ends_with("The program is apache2.")
        );
        let redirect = PortAnswer::Redirect("https://a.org/".into());
        assert_eq!(names(vec![at(v4, redirect)]), ["certificate-redirected"]);
        for answer in [silent(), other()] {
            let both = vec![at(v4, PortAnswer::Pagewell), at(v6, answer)];
            assert_eq!(names(both), ["certificate-ipv6"]);
        }
        assert_eq!(names(vec![at(v6, silent())]), ["certificate-port-80"], "no A record is right");
    }

    #[test]
    fn caa_records_that_forbid_are_named() {
        let at = |value: &str| {
            let (tag, value) = ("issue".to_owned(), value.to_owned());
            let record = RecordContent::Authority { is_critical: false, tag, value };
            CaaFacts::At("org".into(), vec![record])
        };
        let found_at = found(Vec::new(), at("other.test"));
        assert_eq!(found_at[0].name, "certificate-caa");
        assert!(found_at[0].evidence.contains("of org: they allow other.test, and not ca.test"));
        assert!(found_at[0].command.ends_with("org. CAA 0 issue \"ca.test\""));
        assert!(found(Vec::new(), at("ca.test")).is_empty());
        assert_eq!(found(Vec::new(), CaaFacts::Failing("org".into())).len(), 1);
    }

    #[test]
    fn hosts_with_the_same_fault_are_one_finding() {
        let host = |at: usize| HostFacts {
            name: format!("h{at}.org"),
            dns_failure: Some("the name does not exist".into()),
            ..HostFacts::default()
        };
        let https = HttpsFacts { hosts: (1..6).map(host).collect(), ..HttpsFacts::default() };
        let found = all(&Facts { https: Some(https), ..Facts::default() });
        assert_eq!(found.len(), 1);
        assert!(found[0].what.starts_with("h1.org, h2.org, h3.org and 2 more: the DNS"));
    }

    #[test]
    fn a_clock_that_is_five_minutes_off_is_wrong() {
        let of = |ahead_s| {
            let failure = Some("certificate expired".to_owned());
            let authority =
                AuthorityFacts { ahead_s: Some(ahead_s), failure, ..AuthorityFacts::default() };
            let https = HttpsFacts { authority, ..HttpsFacts::default() };
            let found = all(&Facts { https: Some(https), ..Facts::default() });
            (found[0].name, found[0].evidence.clone())
        };
        assert_eq!(of(300).0, "certificate-authority");
        assert!(of(-31_536_000).1.starts_with("It is 365 days behind"));
        assert_eq!(of(301).0, "certificate-clock");
    }
}
