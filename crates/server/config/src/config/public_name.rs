//! Which hosts a public certificate authority can have certificates for (CA/Browser Forum baseline requirements,
//! section 7.1.4.2): a name of at least two labels below a public suffix.
//!
//! The list of public suffixes changes weekly and is not built in. The names that are reserved for private use
//! (RFC 2606, RFC 6761, RFC 8375, RFC 9476) are refused here, all others by the authority.

/// Labels at the end of names that no public authority certifies.
const PRIVATE: [&str; 17] = [
    "alt",
    "arpa",
    "corp",
    "example",
    "home",
    "internal",
    "intranet",
    "invalid",
    "lan",
    "local",
    "localdomain",
    "localhost",
    "mail",
    "onion",
    "private",
    "test",
    "workgroup",
];

/// The longest name in bytes.
const NAME_BYTES_MAX: usize = 253;

/// Returns why a host gets no certificate; `None` if it can have one.
pub fn name_refusal(host: &str) -> Option<&'static str> {
    let last = host.rsplit('.').next().unwrap_or_default();
    if host.contains(':') || last.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some("an IP address");
    }
    let is_label = |label: &str| {
        let is_plain =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(is_plain)
    };
    if host.contains('*') {
        return Some("a wildcard; give its certificate in a [[tls]]");
    }
    if !host.contains('.') || PRIVATE.contains(&last) {
        return Some("not a public name");
    }
    let is_name = host.len() <= NAME_BYTES_MAX && host.split('.').all(is_label);
    (!is_name).then_some("not a valid host name")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_names_are_accepted() {
        for host in ["example.org", "www.example.co.uk", "xn--bcher-kva.example.net", "a-1.de"] {
            assert_eq!(name_refusal(host), None, "{host}");
        }
    }

    #[test]
    fn all_others_are_not() {
        let long = format!("{}.org", "a.".repeat(130));
        for host in [
            "localhost",
            "site.localhost",
            "10.0.0.1",
            "::1",
            "[::1]",
            "*.example.org",
            "a.test",
            "nas.local",
            "intranet",
            "",
            ".",
            "a..org",
            "-a.org",
            "a_b.org",
            "../etc.org",
            "A.org",
            &long,
        ] {
            assert!(name_refusal(host).is_some(), "{host}");
        }
    }
}
