//! The request fields that are forwarded to the origin for a page that may be shared.
//!
//! | role | example | a page that may be shared is rendered |
//! |---|---|---|
//! | in the key | any field in `keys.fields` or in a condition of a rule | with it |
//! | shared | `Accept`, `User-Agent` | with it |
//! | harmless | any field in `keys.harmless_fields` | with it |
//! | dropped | `Referer`, `Sec-Fetch-Mode`, `CF-IPCountry` | without it |
//! | custom | `X-Tenant`, `SSL`: any other | with it, and for this client only, unless `Vary` names the field |
//! | for one client | `X-Api-Key`, `HX-Request` | not at all: the request bypasses the cache |
//!
//! A field outside the key and `Vary` would allow one client to influence the page of all others. The list
//! of shared fields is therefore short, and each entry has a reason. A proxy forwards fields that it does not
//! know (RFC 9110 §5.1), so custom fields are forwarded, and the response is stored only if its `Vary` names
//! them. If `Vary` names a dropped field, it is forwarded from then on. The server does that
//! (`render::fields`), and it handles the fields that only Pagewell and trusted proxies may set.
//!
//! Names are in lower case, except for [`reason_to_bypass`], which every hit calls and which accepts any
//! case.

use crate::plan::{BypassBecause, Plan};
use crate::rules::SiteRules;
use http_cache::Fields;
use known_names::personal::CREDENTIALS;

/// The maximum number of fields in the key.
pub(crate) const KEY_FIELDS_MAX: usize = 32;
/// The maximum length of one field's value in the key, in bytes.
const KEY_VALUE_BYTES_MAX: usize = 256;

/// Fields that are forwarded with every render.
const SHARED: &[&str] = &[
    // Negotiation. Applications name these in `Vary`. `Origin`, and an `Accept` that browsers do not send
    // for a page or an image, count as named (`http_cache`). Rules replace the languages and the device by
    // the class of the copy.
    "accept",
    "accept-encoding",
    "accept-language",
    "origin",
    "user-agent",
    // RFC 9111 §3.5: the response is stored only if it is marked as shared.
    "authorization",
    // As planned: without cookies that do not count.
    "cookie",
    // In the key.
    "host",
    // Directives to caches behind this one (RFC 9111 §5.2.1).
    "cache-control",
    "pragma",
    // Identifiers that connect log entries of different servers.
    "traceparent",
    "tracestate",
];

/// Fields that browsers and proxies add to requests for any page, and hop-by-hop fields. They are not forwarded
/// for a page that may be shared. If they were forwarded, nearly no response could be stored.
const DROPPED: &[&str] = &[
    "accept-charset",
    "accept-datetime",
    "alt-used",
    "b3",
    "baggage",
    "cache-status",
    "cdn-loop",
    "connection",
    "content-disposition",
    "content-encoding",
    "content-language",
    "content-length",
    "content-location",
    "content-md5",
    "content-range",
    "content-type",
    "device-memory",
    "device-stock-ua",
    "dnt",
    "downlink",
    "dpr",
    "early-data",
    "ect",
    "expect",
    "from",
    "http2-settings",
    "keep-alive",
    "max-forwards",
    "priority",
    "profile",
    "proxy-authorization",
    "proxy-connection",
    "purpose",
    "range",
    "referer",
    "rtt",
    "save-data",
    "sentry-trace",
    "te",
    "trailer",
    "transfer-encoding",
    "ua-cpu",
    "ua-os",
    "upgrade",
    "upgrade-insecure-requests",
    "via",
    "viewport-width",
    "wap-connection",
    "warning",
    "width",
    "x-att-deviceid",
    "x-bolt-phone-ua",
    "x-client-data",
    "x-correlation-id",
    "x-device-user-agent",
    "x-moz",
    "x-original-user-agent",
    "x-purpose",
    "x-request-id",
    "x-requested-with",
    "x-scanner",
    "x-skyfire-phone",
];

/// The prefixes of whole families of such fields.
const DROPPED_BEGIN: &[&str] = &[
    "akamai-",
    "cf-",
    "cloudfront-",
    "fastly-",
    "if-",
    "sec-",
    "x-amz",
    "x-appengine-",
    "x-azure-",
    "x-b3-",
    "x-cloud-",
    "x-datadog-",
    "x-envoy-",
    "x-huawei-",
    "x-mobile-",
    "x-nokia-",
    "x-operamini-",
    "x-orange-",
    "x-puffin-",
    "x-ucbrowser-",
    "x-vodafone-",
    "x-wap-",
];

/// Fields other than User-Agent and Accept from which PHP libraries derive the device (Mobile_Detect,
/// Matomo's DeviceDetector, WURFL). If copies are cached per device class, only the class counts.
const OF_DEVICE: &[&str] = &[
    "device-memory",
    "device-stock-ua",
    "dpr",
    "from",
    "profile",
    "ua-cpu",
    "ua-os",
    "viewport-width",
    "wap-connection",
    "width",
    "x-att-deviceid",
    "x-bolt-phone-ua",
    "x-device-user-agent",
    "x-original-user-agent",
    "x-requested-with",
    "x-scanner",
    "x-skyfire-phone",
];

const OF_DEVICE_BEGIN: &[&str] = &[
    "cloudfront-is-",
    "sec-ch-",
    "x-huawei-",
    "x-mobile-",
    "x-nokia-",
    "x-operamini-",
    "x-orange-",
    "x-puffin-",
    "x-ucbrowser-",
    "x-vodafone-",
    "x-wap-",
];

/// Media types in Accept by which Mobile_Detect and other libraries recognise a phone.
const OF_PHONE: &[&[u8]] = &[b"vnd.wap", b"vnd.rim.html", b"x-obml2d"];

/// Fields by which scripts request a part of a page, or another form of it.
const PARTIAL: &[&str] = &["hx-request", "turbo-frame", "x-inertia", "x-pjax", "x-up-target"];

/// The same, if it has this value. Browsers embedded in phone applications send this field with the
/// application's name.
const REQUESTED_WITH: (&str, &str) = ("x-requested-with", "xmlhttprequest");

fn is_one_of(name: &str, names: &[&str], begin: &[&str]) -> bool {
    names.contains(&name) || begin.iter().any(|begin| name.starts_with(begin))
}

/// The option to use instead, if a field cannot be part of the key.
pub(crate) fn other_option(name: &str) -> Option<&'static str> {
    match name {
        "cookie" => Some("name cookies in `vary_cookies` of a rule"),
        "host" => Some("the host is part of every key"),
        "user-agent" => Some("write `device_classes = true` in a rule"),
        "authorization" => Some("the response must say `public` (RFC 9111 section 3.5)"),
        "accept-encoding" => Some("a page is compressed after it is stored"),
        "range" | "expect" | "cache-control" | "pragma" => Some("it has a meaning of its own"),
        "content-type" | "content-length" | "content-encoding" | "content-range" => {
            Some("a request with content bypasses the cache")
        }
        _ if name.starts_with("if-") => Some("it has a meaning of its own"),
        _ => None,
    }
}

/// Whether the field is forwarded with every render.
pub(crate) fn is_shared(name: &str) -> bool {
    SHARED.contains(&name)
}

/// Whether PHP libraries may derive the device from the field.
pub(crate) fn reveals_device(name: &str) -> bool {
    is_one_of(name, OF_DEVICE, OF_DEVICE_BEGIN)
}

/// Whether a line of Accept indicates a phone.
pub(crate) fn is_of_phone(accept: &[u8]) -> bool {
    let has = |word: &[u8]| accept.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word));
    OF_PHONE.iter().any(|word| has(word))
}

/// The reason why a request with this field is specific to its client; usually `None`. `name` may have any
/// case.
#[inline]
pub fn reason_to_bypass(name: &[u8], value: &[u8]) -> Option<BypassBecause> {
    // Every hit runs this: the last two letters exclude nearly every field that browsers send.
    let [.., one, two] = name else { return None };
    const fn end(letters: &[u8; 2]) -> u16 {
        u16::from_be_bytes(*letters)
    }
    const AL: u16 = end(b"al");
    const AX: u16 = end(b"ax");
    const CE: u16 = end(b"ce");
    const EN: u16 = end(b"en");
    const ET: u16 = end(b"et");
    const EY: u16 = end(b"ey");
    const IA: u16 = end(b"ia");
    const ID: u16 = end(b"id");
    const LS: u16 = end(b"ls");
    const ME: u16 = end(b"me");
    const ON: u16 = end(b"on");
    const RD: u16 = end(b"rd");
    const RE: u16 = end(b"re");
    const ST: u16 = end(b"st");
    const TH: u16 = end(b"th");
    const WT: u16 = end(b"wt");
    match u16::from_be_bytes([one | 0x20, two | 0x20]) {
        AL | AX | CE | EN | ET | EY | IA | ID | LS | ME | ON | RD | RE | TH | WT => {
            known_reason(name, value)
        }
        // Not `Sec-Fetch-Dest`.
        ST if name.len() == "hx-request".len() => known_reason(name, value),
        _ => None,
    }
}

#[cold]
fn known_reason(name: &[u8], value: &[u8]) -> Option<BypassBecause> {
    let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
    if PARTIAL.iter().any(|known| is(known)) {
        return Some(BypassBecause::PartialPage);
    }
    let (requested, with) = REQUESTED_WITH;
    if is(requested) && value.trim_ascii().eq_ignore_ascii_case(with.as_bytes()) {
        return Some(BypassBecause::PartialPage);
    }
    // These have rules of their own: RFC 9111 §3.5, RFC 9110 §11.7.2, RFC 6455 §4.1.
    if is("authorization") || is("proxy-authorization") || is("sec-websocket-key") {
        return None;
    }
    let last = name.rsplit(|byte| *byte == b'-').next().unwrap_or_default();
    let identifies_client =
        CREDENTIALS.iter().any(|word| last.eq_ignore_ascii_case(word.as_bytes()))
            || is("x-session-id")
            || is("session-id");
    identifies_client.then_some(BypassBecause::Credential)
}

impl SiteRules {
    /// Whether the site has the field in its keys.
    pub fn has_field_in_key(&self, name: &str) -> bool {
        self.key_fields.iter().any(|known| **known == *name)
    }

    /// Whether the field (its name in lower case) is forwarded with every render, whose response may be stored.
    pub fn sends_field(&self, name: &str) -> bool {
        is_shared(name) || self.has_field_in_key(name) || self.harmless_fields.have(name.as_bytes())
    }

    /// Whether the field may be forwarded if the response's `Vary` names it.
    pub fn may_send_field(&self, plan: &Plan, name: &str) -> bool {
        self.has_field_in_key(name) || plan.device.is_none() || !reveals_device(name)
    }

    /// Whether the field is forwarded, and its response is then for this client only, unless `Vary` names it.
    pub fn is_custom_field(&self, name: &str) -> bool {
        !self.sends_field(name) && !is_one_of(name, DROPPED, DROPPED_BEGIN)
    }

    /// The reason why a request with this field bypasses the cache under the plan; `None` if it does not.
    pub fn field_bypasses(&self, plan: &Plan, name: &str, value: &[u8]) -> Option<BypassBecause> {
        let is_for_all = plan.rule.is_some_and(|at| self.rules[at].shared_with_sessions);
        if is_for_all || self.has_field_in_key(name) {
            return None;
        }
        reason_to_bypass(name.as_bytes(), value)
    }

    /// Whether a field of the key has a longer value than the limit.
    pub(crate) fn has_long_field(&self, fields: &dyn Fields) -> bool {
        self.key_fields.iter().any(|name| {
            let mut bytes = 0;
            fields.values(name, &mut |value| bytes += value.len() + 2);
            bytes > KEY_VALUE_BYTES_MAX
        })
    }

    /// Appends the fields of the key to it. An absent field and an empty one differ.
    pub(crate) fn write_fields(&self, fields: &dyn Fields, key: &mut Vec<u8>) {
        for name in &self.key_fields {
            let mut is_first = true;
            fields.values(name, &mut |value| {
                if std::mem::take(&mut is_first) {
                    key.extend_from_slice(b"\nfield ");
                    key.extend_from_slice(name.as_bytes());
                    key.push(b' ');
                } else {
                    key.extend_from_slice(b", ")
                }
                key.extend_from_slice(value.trim_ascii());
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_that_identifies_the_client_bypasses() {
        for name in [
            "X-Api-Key",
            "X-WP-Nonce",
            "x-auth-token",
            "API-KEY",
            "apikey",
            "X-CSRF-TOKEN",
            "Private-Token",
            "X-Session-Id",
            "X-Auth",
            "X-JWT",
            "X-Hub-Signature",
            "Token",
            "X-Authorization",
            "X-Client-Secret",
            "X-Password",
            "PHP-Session",
            "X-Credentials",
        ] {
            let reason = reason_to_bypass(name.as_bytes(), b"x");
            assert_eq!(reason, Some(BypassBecause::Credential), "{name}");
        }
    }

    #[test]
    fn a_field_that_asks_for_a_part_bypasses() {
        for (name, value) in [
            ("X-Requested-With", "XMLHttpRequest"),
            ("HX-Request", "true"),
            ("X-PJAX", "true"),
            ("Turbo-Frame", "cart"),
            ("X-Inertia", "true"),
            ("X-Up-Target", ".main"),
        ] {
            let reason = reason_to_bypass(name.as_bytes(), value.as_bytes());
            assert_eq!(reason, Some(BypassBecause::PartialPage), "{name}");
        }
    }

    #[test]
    fn fields_of_browsers_do_not_bypass() {
        for name in SHARED.iter().chain(DROPPED).copied().chain([
            "connection",
            "sec-ch-ua",
            "sec-ch-ua-mobile",
            "sec-ch-ua-platform",
            "sec-fetch-dest",
            "sec-fetch-mode",
            "sec-fetch-site",
            "sec-fetch-user",
            "sec-gpc",
            "if-none-match",
            "if-modified-since",
            "keep-alive",
            "te",
            "proxy-authorization",
            "x",
            "",
        ]) {
            assert_eq!(reason_to_bypass(name.as_bytes(), b"com.example.browser"), None, "{name}");
        }
    }

    #[test]
    fn every_known_name_passes_the_check_of_the_last_letters() {
        for word in CREDENTIALS.iter().chain(PARTIAL) {
            assert!(reason_to_bypass(word.as_bytes(), b"").is_some() || *word == "authorization");
        }
    }

    #[test]
    fn the_site_vouches_for_fields_by_name() {
        let rules = |names: &[&str]| {
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            let keys = crate::raw::Keys { harmless_fields: names, ..Default::default() };
            SiteRules::read(
                &[],
                &keys,
                &crate::raw::Cookies::default(),
                crate::Surroundings {
                    base: http_cache::Policy::default(),
                    secret: crate::Secret::new([0; 32]),
                    has_trusted_proxies: false,
                    files: None,
                },
            )
        };
        let vouched = rules(&["X-Company-Proxy", "Test-*"]).unwrap();
        for (name, is_sent, is_custom) in [
            ("x-company-proxy", true, false),
            ("test-id", true, false),
            ("x-tenant", false, true),
            ("referer", false, false),
        ] {
            assert_eq!(vouched.sends_field(name), is_sent, "{name}");
            assert_eq!(vouched.is_custom_field(name), is_custom, "{name}");
        }
        for (name, why) in [
            ("*", "name the fields"),
            ("a b", "no name"),
            ("Cookie", "vary_cookies"),
            ("X-Api-Key", "keys.fields"),
        ] {
            let error = rules(&[name]).unwrap_err().0;
            assert!(error.contains(why), "{name}: {error}");
        }
    }

    #[test]
    fn device_fields_are_dropped_fields() {
        for name in OF_DEVICE {
            assert!(is_one_of(name, DROPPED, DROPPED_BEGIN), "{name}");
        }
        for begin in OF_DEVICE_BEGIN {
            assert!(DROPPED_BEGIN.iter().any(|known| begin.starts_with(known)), "{begin}");
        }
    }
}
