//! CAA records (RFC 8659): whether they allow a certificate authority to issue a certificate for a host.
//!
//! The records of the host count, else those of the nearest domain above it that has some ([`domains`]). Of their
//! properties, `issue` names authorities, with parameters (RFC 8657). Invariant: what cannot be understood forbids, as
//! it does for an authority. Not here: the encoding of the records (the crate `dns-query`).

use dns_query::RecordContent;

/// The domains whose records may count, the nearest first: the name, and all above it.
pub fn domains(name: &str) -> impl Iterator<Item = &str> {
    let name = Some(name.trim_end_matches('.')).filter(|name| !name.is_empty());
    std::iter::successors(name, |name| Some(name.split_once('.')?.1))
}

/// Why these records of one domain forbid a certificate; `None` if they allow it. `identities` are the names of the
/// authority; without any, only records that allow nobody forbid. `methods` are the challenges that can be answered.
#[must_use]
pub fn refusal(
    records: &[RecordContent],
    identities: &[String],
    methods: &[&str],
) -> Option<String> {
    let (mut allowed, mut has_issue) = (Vec::new(), false);
    for record in records {
        let RecordContent::Authority { is_critical, tag, value } = record else {
            return Some("one of them cannot be read".into());
        };
        match tag.as_str() {
            "issue" => {
                has_issue = true;
                allowed.extend(Permission::read(value));
            }
            "issuewild" | "iodef" | "contactemail" | "contactphone" | "issuemail" | "issuevmc" => {}
            tag if *is_critical => {
                return Some(format!("one of them requires that {tag} is understood"));
            }
            _ => {}
        }
    }
    if !has_issue {
        return None;
    }
    let names: Vec<&str> = allowed.iter().map(|one| one.issuer.as_str()).collect();
    if names.is_empty() {
        return Some("they allow no authority".into());
    }
    let is_own = |one: &&Permission| {
        identities.is_empty() || identities.iter().any(|own| own.eq_ignore_ascii_case(&one.issuer))
    };
    let own: Vec<&Permission> = allowed.iter().filter(is_own).collect();
    if own.is_empty() {
        let names = names.join(", ");
        return Some(format!("they allow {names}, and not {}", identities.join(" or ")));
    }
    let is_possible = |one: &&Permission| match &one.methods {
        None => true,
        Some(allowed) => methods.iter().any(|method| allowed.iter().any(|one| one == method)),
    };
    if own.iter().any(is_possible) {
        return None;
    }
    let known = own.iter().filter_map(|one| one.methods.as_ref()).flatten();
    let known: Vec<&str> = known.map(String::as_str).collect();
    Some(format!(
        "they allow the challenges {}, and not {}",
        known.join(", "),
        methods.join(" or ")
    ))
}

/// The value of an `issue` property that names an authority.
struct Permission {
    issuer: String,
    /// The challenges that it allows, if it names some.
    methods: Option<Vec<String>>,
}

impl Permission {
    /// `None` for a value without an authority, or one that breaks the grammar.
    fn read(value: &str) -> Option<Permission> {
        if !value.is_ascii() {
            return None;
        }
        let (issuer, parameters) = value.split_once(';').unwrap_or((value, ""));
        let issuer = issuer.trim_matches([' ', '\t']).to_ascii_lowercase();
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.';
        if issuer.is_empty() || !issuer.bytes().all(is_name) {
            return None;
        }
        let mut methods = None;
        for parameter in parameters.split(';').map(|one| one.trim_matches([' ', '\t'])) {
            if parameter.is_empty() {
                continue;
            }
            let (tag, value) = parameter.split_once('=')?;
            if tag.trim_end().eq_ignore_ascii_case("validationmethods") {
                methods = Some(value.split(',').map(|one| one.trim().to_owned()).collect());
            }
        }
        Some(Permission { issuer, methods })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(flags: u8, tag: &str, value: &str) -> RecordContent {
        let (tag, value) = (tag.to_owned(), value.to_owned());
        RecordContent::Authority { is_critical: flags & 0x80 != 0, tag, value }
    }

    fn why(records: &[(u8, &str, &str)]) -> Option<String> {
        let records: Vec<RecordContent> =
            records.iter().map(|(flags, tag, value)| record(*flags, tag, value)).collect();
        let identities = ["letsencrypt.org".to_owned()];
        refusal(&records, &identities, &["http-01", "tls-alpn-01"])
    }

    #[test]
    fn the_domains_above_a_name_follow_it() {
        let all: Vec<&str> = domains("www.example.org.").collect();
        assert_eq!(all, ["www.example.org", "example.org", "org"]);
        assert_eq!(domains("").count(), 0);
    }

    #[test]
    fn properties_allow_and_forbid_as_rfc_8659_says() {
        assert_eq!(why(&[(0, "issue", "letsencrypt.org")]), None);
        assert_eq!(why(&[(0, "issue", " LetsEncrypt.org ; a=b")]), None);
        assert_eq!(why(&[(0, "issue", "ca.test"), (128, "issue", "letsencrypt.org")]), None);
        assert_eq!(why(&[(0, "iodef", "mailto:a@b"), (0, "issuewild", ";")]), None, "no issue");
        assert_eq!(why(&[(0, "unknown", "x")]), None);
        let of = |records: &[(u8, &str, &str)]| why(records).unwrap();
        assert_eq!(of(&[(0, "issue", "ca.test")]), "they allow ca.test, and not letsencrypt.org");
        assert_eq!(of(&[(0, "issue", ";")]), "they allow no authority");
        assert_eq!(of(&[(0, "issue", "")]), "they allow no authority");
        assert_eq!(of(&[(0, "issue", "letsencrypt.org; nonsense")]), "they allow no authority");
        assert!(of(&[(128, "unknown", "x")]).contains("requires that unknown is understood"));
        assert_eq!(of(&[(0, "issue", "letsencrypt.org; a=\u{fffd}")]), "they allow no authority");
    }

    #[test]
    fn a_record_that_cannot_be_read_forbids() {
        let records = [record(0, "issue", "ca.test"), RecordContent::InvalidAuthority];
        let why = refusal(&records, &["ca.test".to_owned()], &["http-01"]);
        assert_eq!(why.as_deref(), Some("one of them cannot be read"));
    }

    #[test]
    fn the_challenges_that_are_allowed_count() {
        let of = |value| why(&[(0, "issue", value)]);
        assert_eq!(of("letsencrypt.org; validationmethods=dns-01,http-01"), None);
        let why = of("letsencrypt.org;validationmethods=dns-01").unwrap();
        assert_eq!(why, "they allow the challenges dns-01, and not http-01 or tls-alpn-01");
    }

    #[test]
    fn without_a_name_of_the_authority_only_nobody_is_forbidden() {
        let of = |value| refusal(&[record(0, "issue", value)], &[], &["http-01"]);
        assert_eq!((of("any.test"), of(";").as_deref()), (None, Some("they allow no authority")));
    }

    #[test]
    fn no_value_panics() {
        let whole = b"letsencrypt.org; validationmethods=http-01";
        let judge = |value: &[u8]| {
            let records = [record(0, "issue", &String::from_utf8_lossy(value))];
            let _ = refusal(&records, &["a".into()], &["http-01"]);
        };
        for end in 0..whole.len() {
            judge(&whole[..end]);
            for value in 0..=255 {
                let mut damaged = *whole;
                damaged[end] = value;
                judge(&damaged);
            }
        }
    }
}
