//! The response fields that apply to this cache: targeted fields (RFC 9213), with LiteSpeed's after the one
//! with this cache's own name; then Surrogate-Control and X-Accel-Expires; then Cache-Control with Expires.
//!
//! Invariant: the first valid field replaces all later ones (RFC 9213 §2.2), even if it is less
//! restrictive: `CDN-Cache-Control: none` with `Cache-Control: no-store` is storable (§3.1). A targeted
//! field that is empty or not a Dictionary counts as absent.

use crate::freshness::LifetimeSource;
use crate::litespeed::CacheControl;
use crate::policy::{FieldUse, Policy};
use http::HeaderMap;
use http_fields::date;
use http_fields::directives::{Argument, ResponseDirectives, split};
use http_fields::fields;
use http_fields::time::{SECONDS_MAX, Timestamp};
use sfv::{BareItem, Dictionary, ListEntry, Parser};

/// The directives of a response for this cache, and the field that contains them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Declaration {
    pub(crate) directives: ResponseDirectives,
    pub(crate) by: DeclaredBy,
}

/// The field that applies to this cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DeclaredBy {
    /// A targeted field, RFC 9213.
    Targeted,
    LiteSpeed,
    SurrogateControl,
    XAccelExpires,
    /// Cache-Control; only with it does Expires apply (RFC 9213 §2.2).
    CacheControl,
}

impl DeclaredBy {
    /// The lifetime source of this field; `otherwise` for Cache-Control.
    pub(crate) fn source(self, otherwise: LifetimeSource) -> LifetimeSource {
        match self {
            DeclaredBy::Targeted => LifetimeSource::Targeted,
            DeclaredBy::LiteSpeed => LifetimeSource::LiteSpeed,
            DeclaredBy::SurrogateControl => LifetimeSource::SurrogateControl,
            DeclaredBy::XAccelExpires => LifetimeSource::XAccelExpires,
            DeclaredBy::CacheControl => otherwise,
        }
    }
}

/// Finds the field that applies, and reads it.
pub(crate) fn declared(headers: &HeaderMap, policy: &Policy, now: Timestamp) -> Declaration {
    let litespeed = CacheControl::read(headers)
        .filter(|control| policy.litespeed == FieldUse::Obey && control.speaks());
    for target in &policy.targets {
        if litespeed.is_some() && !is_own(target.as_str(), policy) {
            break; // Other targeted fields also address other caches; LiteSpeed's address the one at the site.
        }
        let lines = fields::lines(headers, target.as_str()).map(|value| value.as_bytes());
        if let Some(directives) = dictionary(lines) {
            return Declaration { directives, by: DeclaredBy::Targeted };
        }
    }
    if let Some(control) = litespeed {
        return Declaration { directives: control.directives(), by: DeclaredBy::LiteSpeed };
    }
    if policy.surrogate_control == FieldUse::Obey {
        let lines = fields::lines(headers, "surrogate-control").map(|value| value.as_bytes());
        if let Some(directives) = surrogate_control(lines, &policy.cache_name) {
            return Declaration { directives, by: DeclaredBy::SurrogateControl };
        }
    }
    if policy.x_accel_expires == FieldUse::Obey {
        let value = fields::first(headers, "x-accel-expires");
        if let Some(directives) = value.and_then(|value| x_accel_expires(value, now)) {
            return Declaration { directives, by: DeclaredBy::XAccelExpires };
        }
    }
    let lines = headers.get_all(http::header::CACHE_CONTROL).iter().map(|value| value.as_bytes());
    Declaration { directives: ResponseDirectives::read(lines), by: DeclaredBy::CacheControl }
}

/// Whether a targeted field addresses this cache only: `Pagewell-Cache-Control`.
fn is_own(target: &str, policy: &Policy) -> bool {
    let name = target.strip_suffix("-cache-control");
    name.is_some_and(|name| name.eq_ignore_ascii_case(&policy.cache_name))
}

/// Reads a targeted field (RFC 9213 §2.1): a Dictionary whose members are directives. `None` if it is empty
/// or unreadable. A value of a wrong type is ignored (§2.1), and an ignored lifetime is zero, as in
/// Cache-Control. Parameters are ignored.
fn dictionary<'a>(lines: impl Iterator<Item = &'a [u8]>) -> Option<ResponseDirectives> {
    let lines: Vec<_> = lines.collect();
    if lines.is_empty() {
        return None;
    }
    let joined = lines.join(&b", "[..]);
    let members: Dictionary = Parser::new(&joined).parse().ok()?;
    if members.is_empty() {
        return None;
    }
    let mut directives = ResponseDirectives::default();
    for (name, member) in &members {
        let name = name.as_str().as_bytes();
        let ListEntry::Item(item) = member else {
            directives.add(name, &Argument::Malformed);
            continue;
        };
        match &item.bare_item {
            BareItem::Boolean(false) => {}
            BareItem::Boolean(true) => directives.add(name, &Argument::Absent),
            BareItem::Integer(number) => directives.add(name, &seconds(i64::from(*number))),
            BareItem::String(text) if matches!(name, b"no-cache" | b"private") => {
                directives.add(name, &Argument::Text(text.as_str().as_bytes()));
            }
            _ => directives.add(name, &Argument::Malformed),
        }
    }
    Some(directives)
}

fn seconds(number: i64) -> Argument<'static> {
    match u64::try_from(number) {
        Ok(number) => Argument::Seconds(number.min(u64::from(SECONDS_MAX)) as u32),
        Err(_) => Argument::Malformed,
    }
}

/// Reads Surrogate-Control (Edge Architecture 1.0): directives as in Cache-Control. A `;name` after a
/// directive addresses it to that surrogate only. `max-age=60+30` is fresh for 60 seconds and usable for 30
/// more while it is refreshed. `None` if nothing in it concerns storing: with `content="ESI/1.0"` alone,
/// Cache-Control still applies.
fn surrogate_control<'a>(
    lines: impl Iterator<Item = &'a [u8]>,
    cache_name: &str,
) -> Option<ResponseDirectives> {
    let mut directives = ResponseDirectives::default();
    let noted = |line: &&[u8]| directives.unreadable |= fields::has_open_quote(line);
    let lines: Vec<&[u8]> = lines.inspect(noted).collect();
    for member in lines.into_iter().flat_map(fields::members) {
        let mut parts = member.splitn(2, |byte| *byte == b';');
        let directive = fields::trim(parts.next().unwrap_or_default());
        let addressed = parts.next().map(fields::trim);
        if addressed.is_some_and(|name| !name.eq_ignore_ascii_case(cache_name.as_bytes())) {
            continue;
        }
        let (name, argument) = split(directive);
        match argument {
            Argument::Text(text) if name.eq_ignore_ascii_case(b"max-age") => {
                let mut spans = text.splitn(2, |byte| *byte == b'+');
                directives.add(name, &Argument::Text(spans.next().unwrap_or_default()));
                if let Some(extension) = spans.next() {
                    directives.add(b"stale-while-revalidate", &Argument::Text(extension));
                }
            }
            argument => directives.add(name, &argument),
        }
    }
    let speaks = directives.max_age.is_some()
        || directives.s_maxage.is_some()
        || directives.no_store
        || directives.no_cache
        || directives.private
        || directives.unreadable;
    speaks.then_some(directives)
}

/// Whether Surrogate-Control declares the content an ESI template (`content="ESI/1.0"`, Edge Architecture
/// 1.0, section 3), for all surrogates or for the one with this name.
pub fn says_esi(headers: &HeaderMap, cache_name: &str) -> bool {
    let lines = headers.get_all("surrogate-control").iter();
    lines.flat_map(|line| fields::members(line.as_bytes())).any(|member| {
        let mut parts = member.splitn(2, |byte| *byte == b';');
        let (name, argument) = split(fields::trim(parts.next().unwrap_or_default()));
        let addressed = parts.next().map(fields::trim);
        let is_ours = addressed.is_none_or(|name| name.eq_ignore_ascii_case(cache_name.as_bytes()));
        let Argument::Text(text) = argument else { return false };
        let mut words = text.split(|byte| byte.is_ascii_whitespace());
        is_ours && name.eq_ignore_ascii_case(b"content") && words.any(|word| word == b"ESI/1.0")
    })
}

/// Reads X-Accel-Expires as nginx documents it: seconds from now, `@` and a Unix time, or 0 and `off` for
/// not storing. `None` if it is unreadable.
fn x_accel_expires(value: &[u8], now: Timestamp) -> Option<ResponseDirectives> {
    let mut directives = ResponseDirectives::default();
    let ceiling = u64::from(SECONDS_MAX);
    let lifetime = match value {
        b"off" => 0,
        [b'@', epoch @ ..] => fields::digits(epoch, u64::MAX)?.saturating_sub(now.seconds()),
        value => fields::digits(value, ceiling)?,
    };
    directives.max_age = Some(lifetime.min(ceiling) as u32);
    directives.no_store = lifetime == 0;
    Some(directives)
}

/// Reads a date field; of several lines the first counts (RFC 9111 §4.2.1).
pub(crate) fn date_field(headers: &HeaderMap, name: &str, now: Timestamp) -> DateField {
    match fields::first(headers, name) {
        None => DateField::Absent,
        Some(value) => date::parse(value, now).map_or(DateField::Invalid, DateField::At),
    }
}

/// The content of a date field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DateField {
    Absent,
    Invalid,
    At(Timestamp),
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::header::{HeaderName, HeaderValue};

    const NOW: Timestamp = Timestamp::from_seconds(1_000);

    fn read(lines: &[(&str, &str)]) -> Declaration {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            let name = HeaderName::from_bytes(name.as_bytes()).expect("a name");
            headers.append(name, HeaderValue::from_str(value).expect("a value"));
        }
        declared(&headers, &Policy::default(), NOW)
    }

    #[test]
    fn the_first_valid_target_replaces_all_others() {
        // RFC 9213 §2.2.
        let found = read(&[
            ("cache-control", "no-store"),
            ("cdn-cache-control", "max-age=20"),
            ("pagewell-cache-control", "max-age=10"),
        ]);
        assert_eq!(found.by, DeclaredBy::Targeted);
        assert_eq!(found.directives.max_age, Some(10));
        assert!(!found.directives.no_store);
        let none = read(&[("cache-control", "no-store"), ("cdn-cache-control", "none")]);
        assert_eq!((none.by, none.directives.no_store), (DeclaredBy::Targeted, false));
    }

    #[test]
    fn an_empty_field_or_no_dictionary_counts_as_absent() {
        for value in ["", "max-age =10", "Max-Age=10", "max-age=10,", "max-age=\"x", "&=1"] {
            let found = read(&[("cache-control", "max-age=5"), ("cdn-cache-control", value)]);
            assert_eq!(found.by, DeclaredBy::CacheControl, "{value}");
            assert_eq!(found.directives.max_age, Some(5), "{value}");
        }
    }

    #[test]
    fn members_of_another_type_do_not_count() {
        // RFC 9213 §2.1: a decimal is not coerced.
        for value in ["max-age=1.5", "max-age=\"10\"", "max-age=(10 20)", "max-age=-1", "max-age"] {
            assert_eq!(
                read(&[("cdn-cache-control", value)]).directives.max_age,
                Some(0),
                "{value}"
            );
        }
        let found =
            read(&[("cdn-cache-control", "no-store=?0, max-age=9999999999;a=1, private=\"x\"")]);
        assert!(!found.directives.no_store && !found.directives.private);
        assert_eq!(found.directives.max_age, Some(SECONDS_MAX));
        assert_eq!(found.directives.withheld, ["x"]);
    }

    #[test]
    fn surrogate_control() {
        let found = read(&[
            ("cache-control", "private"),
            ("surrogate-control", "max-age=60+30, no-store;other, content=\"ESI/1.0\""),
        ]);
        assert_eq!(found.by, DeclaredBy::SurrogateControl);
        assert_eq!(found.directives.max_age, Some(60));
        assert_eq!(found.directives.stale_while_revalidate, Some(30));
        assert!(!found.directives.no_store);
        let mine = read(&[("surrogate-control", "max-age=3, no-store;Pagewell")]);
        assert!(mine.directives.no_store);
        let esi =
            read(&[("cache-control", "max-age=5"), ("surrogate-control", "content=\"ESI/1.0\"")]);
        assert_eq!(esi.by, DeclaredBy::CacheControl);
    }

    #[test]
    fn templates_of_esi() {
        let says = |value: &'static str| {
            let fields = [(HeaderName::from_static("surrogate-control"), value)];
            let fields = fields.map(|(name, value)| (name, HeaderValue::from_static(value)));
            says_esi(&HeaderMap::from_iter(fields), "pagewell")
        };
        for value in [
            "content=\"ESI/1.0\"",
            "no-store, content=\"ESI/1.0 Other/2\"",
            "content=\"ESI/1.0\";Pagewell",
            "Content=\"Other/2 ESI/1.0\", max-age=9",
        ] {
            assert!(says(value), "{value}");
        }
        for value in ["max-age=9", "content=\"ESI/1.0\";other", "content=\"ESI/2.0\"", "content"] {
            assert!(!says(value), "{value}");
        }
    }

    #[test]
    fn x_accel_expires() {
        let found = |value| {
            let found = read(&[("x-accel-expires", value), ("cache-control", "max-age=5")]);
            (found.directives.max_age, found.directives.no_store)
        };
        assert_eq!(found("60"), (Some(60), false));
        assert_eq!(found("@1030"), (Some(30), false));
        assert_eq!(found("@30"), (Some(0), true));
        assert_eq!(found("0"), (Some(0), true));
        assert_eq!(found("off"), (Some(0), true));
        assert_eq!(found("soon"), (Some(5), false));
    }
}
