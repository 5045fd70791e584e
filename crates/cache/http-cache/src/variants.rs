//! Variants of a page: the fields that `Vary` nominates, the cookies that `X-LiteSpeed-Vary` names, and
//! whether a request selects a stored response by them (RFC 9110 §12.5.5, RFC 9111 §4.1).
//!
//! Invariants: nominated fields are sorted by name and occur once; values are compared after the
//! normalisation that §4.1 permits, and no further: lines combined, white space around members
//! dropped, case and order only where the field's own grammar gives them no meaning. An absent field
//! matches an absent one only. So it is with cookies, whose values are compared as they stand. A few fields
//! count as nominated whatever `Vary` says ([`implied`]).

use crate::cookie_name::CookieName;
use crate::fields::{self, Fields, trim};
use crate::litespeed::{CacheControl, Switch, VARY_FIELD, VARY_VALUE_FIELD, VaryRefused, vary_of};
use crate::policy::{FieldUse, Policy};
use crate::rare::Emptiable;
use crate::stored::allocated;
use http::HeaderMap;
use http::header::{ACCEPT, ACCEPT_ENCODING, HeaderName, ORIGIN, VARY};

/// Before the name of a cookie in a variant's key: no field is called so.
const COOKIE_MARK: &[u8] = b"cookie ";

/// The fields that a response nominated, each with the value its request had.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Nominated {
    fields: Vec<(HeaderName, Option<Vec<u8>>)>,
    cookies: Vec<Cookie>,
}

impl Emptiable for Nominated {
    const EMPTY: &'static Nominated = &Nominated { fields: Vec::new(), cookies: Vec::new() };

    fn is_nothing(&self) -> bool {
        self.is_empty()
    }
}

/// A cookie's name and its value in the request.
type Cookie = (Vec<u8>, Option<Vec<u8>>);

/// Why no request could select a response by its `Vary`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotSelectable {
    Star,
    Unreadable,
    TooLong,
    /// The server's own word, which this request did not get.
    OtherValue,
}

impl From<VaryRefused> for NotSelectable {
    fn from(refused: VaryRefused) -> NotSelectable {
        match refused {
            VaryRefused::Unreadable => NotSelectable::Unreadable,
            VaryRefused::TooLong => NotSelectable::TooLong,
        }
    }
}

impl Nominated {
    /// The fields and cookies that the response nominates, and their values in the request.
    pub(crate) fn of(
        response: &HeaderMap,
        request: &dyn Fields,
        policy: &Policy,
    ) -> Result<Nominated, NotSelectable> {
        let mut names: Vec<HeaderName> = Vec::new();
        for line in response.get_all(VARY) {
            for member in fields::members(line.as_bytes()) {
                if member == b"*" {
                    return Err(NotSelectable::Star); // In any position, RFC 9110 §12.5.5.
                }
                let name = HeaderName::from_bytes(member).map_err(|_| NotSelectable::Unreadable)?;
                if !names.contains(&name) {
                    names.push(name);
                }
                if names.len() > policy.nominated_max {
                    return Err(NotSelectable::TooLong);
                }
            }
        }
        if policy.accept_encoding == FieldUse::Ignore {
            names.retain(|name| *name != ACCEPT_ENCODING);
        }
        for name in implied(request) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names.sort_unstable_by(|one, other| one.as_str().cmp(other.as_str()));
        let value = |name: HeaderName| {
            let value = normalised(name.as_str(), request);
            (name, value)
        };
        let cookies = cookies_of(response, request, policy)?;
        Ok(Nominated { fields: names.into_iter().map(value).collect(), cookies })
    }

    /// The fields and cookies that a response nominates, and their values in the request, whether or not the
    /// response is stored; `None` where no request could select it.
    pub fn read(response: &HeaderMap, request: &dyn Fields, policy: &Policy) -> Option<Nominated> {
        Nominated::of(response, request, policy).ok()
    }

    /// What [`fields`](Self::fields) and [`cookies`](Self::cookies) gave, read back.
    pub fn of_parts(
        mut fields: Vec<(HeaderName, Option<Vec<u8>>)>,
        cookies: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    ) -> Nominated {
        fields.sort_unstable_by(|one, other| one.0.as_str().cmp(other.0.as_str()));
        fields.dedup_by(|one, other| one.0 == other.0);
        Nominated { fields, cookies }
    }

    /// The nominated fields with the values that the request had, normalised; sorted by name.
    pub fn fields(&self) -> impl ExactSizeIterator<Item = (&HeaderName, Option<&[u8]>)> {
        self.fields.iter().map(|(name, value)| (name, value.as_deref()))
    }

    /// The nominated cookies with the values that the request had.
    pub fn cookies(&self) -> impl ExactSizeIterator<Item = (&[u8], Option<&[u8]>)> {
        self.cookies.iter().map(|(name, value)| (name.as_slice(), value.as_deref()))
    }

    /// Whether there are none: every request for the page selects the response.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty() && self.cookies.is_empty()
    }

    /// The names of fields, sorted.
    pub fn names(&self) -> impl Iterator<Item = &HeaderName> {
        self.fields.iter().map(|(name, _)| name)
    }

    /// Whether a request selects the response (RFC 9111 §4.1). Allocates only where fields are
    /// nominated.
    pub fn is_selected_by(&self, request: &dyn Fields) -> bool {
        self.fields.iter().all(|(name, value)| normalised(name.as_str(), request) == *value)
            && self.cookies.iter().all(|(name, value)| cookie(name, request) == *value)
    }

    /// The bytes by which the variant is told from others of the page: names and normalised values.
    /// Equal for two responses exactly if they nominate the same fields with the same values, so that
    /// the newer may replace the older. Empty where nothing is nominated.
    pub fn variant_key(&self) -> Vec<u8> {
        let mut key = Vec::new();
        for (name, value) in &self.fields {
            write_part(&mut key, name.as_str().as_bytes(), value.as_deref());
        }
        for (name, value) in &self.cookies {
            write_part(&mut key, &[COOKIE_MARK, name].concat(), value.as_deref());
        }
        key
    }

    /// The [`variant_key`](Nominated::variant_key) that a response to this request would have if it
    /// nominated the same fields.
    pub fn variant_key_for(&self, request: &dyn Fields) -> Vec<u8> {
        let mut key = Vec::new();
        for (name, _) in &self.fields {
            let value = normalised(name.as_str(), request);
            write_part(&mut key, name.as_str().as_bytes(), value.as_deref());
        }
        for (name, _) in &self.cookies {
            let value = cookie(name, request);
            write_part(&mut key, &[COOKIE_MARK, name].concat(), value.as_deref());
        }
        key
    }

    /// An estimate of its bytes on the heap.
    pub(crate) fn heap_bytes(&self) -> usize {
        let taken = |value: &Option<Vec<u8>>| allocated(value.as_ref().map_or(0, Vec::capacity));
        let values: usize = self
            .fields
            .iter()
            .map(|(name, value)| allocated(name.as_str().len()) + taken(value))
            .sum();
        let in_cookies = |(name, value): &Cookie| allocated(name.capacity()) + taken(value);
        let cookies: usize = self.cookies.iter().map(in_cookies).sum();
        allocated(size_of_val(&*self.fields))
            + allocated(size_of_val(&*self.cookies))
            + values
            + cookies
    }
}

/// Fields of the request that count as nominated though `Vary` may not name them: applications answer by
/// them, and many forget to say so. An `Origin`, which is echoed in `Access-Control-Allow-Origin`, and an
/// `Accept` that no browser sends for a page, an image or a script.
fn implied(request: &dyn Fields) -> impl Iterator<Item = HeaderName> {
    let (mut has_origin, mut is_unusual) = (false, false);
    request.values(ORIGIN.as_str(), &mut |_| has_origin = true);
    request.values(ACCEPT.as_str(), &mut |line| is_unusual |= !is_usual_accept(line));
    [has_origin.then_some(ORIGIN), is_unusual.then_some(ACCEPT)].into_iter().flatten()
}

/// Whether browsers accept nothing else than what this line of Accept names.
fn is_usual_accept(line: &[u8]) -> bool {
    const TYPES: [&str; 11] = [
        "*/*",
        "text/html",
        "text/css",
        "text/*",
        "text/javascript",
        "application/xhtml+xml",
        "application/xml",
        "application/signed-exchange",
        "application/javascript",
        "application/ecmascript",
        "application/x-ecmascript",
    ];
    const BEGIN: [&str; 4] = ["image/", "video/", "audio/", "font/"];
    fields::members(line).all(|member| {
        let media = trim(member.split(|byte| *byte == b';').next().unwrap_or_default());
        let begins = |begin: &str| {
            let first = media.get(..begin.len());
            first.is_some_and(|first| first.eq_ignore_ascii_case(begin.as_bytes()))
        };
        TYPES.iter().any(|known| media.eq_ignore_ascii_case(known.as_bytes()))
            || BEGIN.iter().any(|begin| begins(begin))
    })
}

/// The cookies that `X-LiteSpeed-Vary` names, with their values in the request; none under `no-vary`.
fn cookies_of(
    response: &HeaderMap,
    request: &dyn Fields,
    policy: &Policy,
) -> Result<Vec<Cookie>, NotSelectable> {
    if policy.litespeed == FieldUse::Ignore || !fields::is_there(response, VARY_FIELD) {
        return Ok(Vec::new());
    }
    let vary = vary_of(response, policy.nominated_max)?;
    // The word that the server gives a request, as it went to the origin.
    let given = normalised(VARY_VALUE_FIELD, request);
    if vary.value.is_some() && vary.value != given {
        return Err(NotSelectable::OtherValue);
    }
    let control = CacheControl::read(response);
    if control.is_some_and(|control| control.no_vary == Switch::On) {
        return Ok(Vec::new());
    }
    let value = |name: Vec<u8>| {
        let value = cookie(&name, request);
        (name, value)
    };
    Ok(vary.cookies.into_iter().map(value).collect())
}

/// The value of a cookie in a request; of several by the same name all, for which counts is the
/// application's choice. Where the name is written otherwise (`name[key]`) the pair, behind a line feed,
/// which no value has in it. `None` when there is none.
fn cookie(name: &[u8], request: &dyn Fields) -> Option<Vec<u8>> {
    let mut found: Option<Vec<u8>> = None;
    let name = CookieName::of(name);
    request.values("cookie", &mut |line| {
        for pair in line.split(|byte| *byte == b';').map(trim) {
            let (written, value) = CookieName::of_pair(pair);
            if !written.is_same(&name) {
                continue;
            }
            let all = match &mut found {
                None => found.insert(Vec::new()),
                Some(all) => {
                    all.push(b';');
                    all
                }
            };
            if written.is_plain() {
                all.extend_from_slice(trim(value.unwrap_or_default()));
            } else {
                all.push(b'\n');
                all.extend_from_slice(pair);
            }
        }
    });
    found
}

/// Lengths go before the parts, so that no two lists of parts give the same bytes.
fn write_part(key: &mut Vec<u8>, name: &[u8], value: Option<&[u8]>) {
    let length = |part: &[u8]| u32::try_from(part.len()).unwrap_or(u32::MAX - 1).to_le_bytes();
    key.extend_from_slice(&length(name));
    key.extend_from_slice(name);
    match value {
        None => key.extend_from_slice(&u32::MAX.to_le_bytes()),
        Some(value) => {
            key.extend_from_slice(&length(value));
            key.extend_from_slice(value);
        }
    }
}

/// How a field's value may be normalised without changing what it means (RFC 9111 §4.1).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Grammar {
    /// A single value in which a comma means nothing: User-Agent, Cookie and the like.
    Single,
    /// A list, or unknown: RFC 9110 §5.3 lets anybody on the way combine lines with a comma and
    /// white space, so white space there can carry no meaning.
    List,
    /// A list of weighted values in any case and any order (RFC 9110 §12.5.1–§12.5.3).
    Weighted,
    /// The same, but equal weights stay in order, for some origins take it for a preference
    /// (RFC 9110 §12.5.4).
    WeightedInOrder,
}

fn grammar(name: &str) -> Grammar {
    match name {
        "accept" | "accept-charset" | "accept-encoding" => Grammar::Weighted,
        "accept-language" => Grammar::WeightedInOrder,
        "authorization" | "cookie" | "from" | "host" | "origin" | "referer" | "user-agent" => {
            Grammar::Single
        }
        _ => Grammar::List,
    }
}

/// The normalised value of a field of the request; `None` when it is absent.
fn normalised(name: &str, request: &dyn Fields) -> Option<Vec<u8>> {
    let mut lines: Option<Vec<&[u8]>> = None;
    request.values(name, &mut |value| lines.get_or_insert_default().push(trim(value)));
    let lines = lines?;
    let members = || lines.iter().flat_map(|line| fields::members(line));
    Some(match grammar(name) {
        Grammar::Single if name == "cookie" => lines.join(&b"; "[..]),
        Grammar::Single => lines.join(&b", "[..]),
        Grammar::List => members().collect::<Vec<_>>().join(&b", "[..]),
        Grammar::Weighted => {
            let mut values: Vec<Weighted> = members().map(Weighted::read).collect();
            values.sort_unstable_by(|one, other| one.text.cmp(&other.text));
            values.dedup();
            written(&values)
        }
        Grammar::WeightedInOrder => {
            let mut values: Vec<Weighted> = members().map(Weighted::read).collect();
            values.sort_by_key(|value| std::cmp::Reverse(value.weight));
            written(&values)
        }
    })
}

fn written(values: &[Weighted]) -> Vec<u8> {
    let parts: Vec<Vec<u8>> = values.iter().map(Weighted::written).collect();
    parts.join(&b", "[..])
}

/// A value with a weight (RFC 9110 §12.4.2).
#[derive(PartialEq, Eq)]
struct Weighted {
    /// In lower case and without white space, save in quotes; weight left out.
    text: Vec<u8>,
    /// In thousandths.
    weight: u16,
}

impl Weighted {
    fn read(member: &[u8]) -> Weighted {
        let mut value = Weighted { text: Vec::with_capacity(member.len()), weight: 1000 };
        let mut rest = member;
        loop {
            let end = parameter_end(rest);
            let part = trim(&rest[..end]);
            match part {
                [b'q' | b'Q', b'=', number @ ..] if weight(number).is_some() => {
                    value.weight = weight(number).unwrap_or(1000);
                }
                part => {
                    if !value.text.is_empty() {
                        value.text.push(b';');
                    }
                    push_plain(&mut value.text, part);
                }
            }
            match rest.get(end + 1..) {
                Some(next) => rest = next,
                None => return value,
            }
        }
    }

    fn written(&self) -> Vec<u8> {
        let mut out = self.text.clone();
        if self.weight != 1000 {
            out.extend_from_slice(format!(";q={}", self.weight).as_bytes());
        }
        out
    }
}

/// Where a parameter ends: at a semicolon outside quotes.
fn parameter_end(text: &[u8]) -> usize {
    let mut at = 0;
    while at < text.len() {
        match text[at] {
            b';' => return at,
            b'"' => match fields::closing_quote(text, at) {
                Some(close) => at = close + 1,
                None => break,
            },
            _ => at += 1,
        }
    }
    let rest = text[at..].iter().position(|byte| *byte == b';');
    rest.map_or(text.len(), |length| at + length)
}

/// Appends in lower case and without white space, but what is quoted as it is.
fn push_plain(out: &mut Vec<u8>, part: &[u8]) {
    match part.iter().position(|byte| *byte == b'"') {
        Some(_) => out.extend_from_slice(part),
        None => out.extend(
            part.iter().filter(|byte| !fields::is_space(**byte)).map(u8::to_ascii_lowercase),
        ),
    }
}

/// A weight in thousandths: `0`, `1`, with up to three decimals; `None` for anything else.
pub(crate) fn weight(text: &[u8]) -> Option<u16> {
    let (whole, decimals) = match text {
        [whole] => (*whole, &[][..]),
        [whole, b'.', decimals @ ..] if decimals.len() <= 3 => (*whole, decimals),
        _ => return None,
    };
    if !matches!(whole, b'0' | b'1') || !decimals.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let digit = |at: usize| u16::from(decimals.get(at).map_or(0, |byte| byte - b'0'));
    let weight = u16::from(whole - b'0') * 1000 + digit(0) * 100 + digit(1) * 10 + digit(2);
    (weight <= 1000).then_some(weight)
}

#[cfg(test)]
#[path = "variants_tests.rs"]
mod tests;
