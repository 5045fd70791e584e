//! Variants of a page: the fields in `Vary`, the cookies in `X-LiteSpeed-Vary`, and whether a request
//! selects a stored response by them (RFC 9110 §12.5.5, RFC 9111 §4.1).
//!
//! Invariants: nominated fields are sorted by name, without duplicates. Values are compared after the
//! normalisation that §4.1 permits: lines are combined, white space around members is removed, and case and
//! order are ignored only if the field's grammar says so. An absent field matches only an absent one. The
//! same holds for cookies, whose values are compared exactly. A few fields count as nominated whatever
//! `Vary` says ([`ImpliedFields`]).

use crate::litespeed::{CacheControl, Switch, VARY_FIELD, VARY_VALUE_FIELD, VaryRefused, vary_of};
use crate::policy::{FieldUse, Policy};
use crate::sparse::MaybeEmpty;
use crate::stored::allocated;
use http::HeaderMap;
use http::header::{ACCEPT, ACCEPT_ENCODING, HeaderName, ORIGIN, VARY};
use http_fields::cookie_name::CookieName;
use http_fields::fields::{self, Fields, trim};

/// The prefix of a cookie's name in a variant key; no field has this name.
const COOKIE_MARK: &[u8] = b"cookie ";

/// The fields and cookies that a response nominates, each with the value in its request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NominatedFields {
    fields: Vec<(HeaderName, Option<Vec<u8>>)>,
    cookies: Vec<Cookie>,
}

impl MaybeEmpty for NominatedFields {
    const EMPTY: &'static NominatedFields =
        &NominatedFields { fields: Vec::new(), cookies: Vec::new() };

    fn is_nothing(&self) -> bool {
        self.is_empty()
    }
}

/// The name of a cookie and its value in the request.
type Cookie = (Vec<u8>, Option<Vec<u8>>);

/// The reason why no request can select a response by its `Vary`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotSelectable {
    Star,
    Unreadable,
    TooLong,
    /// The server passed another value with this request.
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

impl NominatedFields {
    /// The fields and cookies that the response nominates, with their values in the request.
    pub(crate) fn of(
        response: &HeaderMap,
        request: &dyn Fields,
        policy: &Policy,
    ) -> Result<NominatedFields, NotSelectable> {
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
        for name in ImpliedFields::of(request).names() {
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
        Ok(NominatedFields { fields: names.into_iter().map(value).collect(), cookies })
    }

    /// The fields and cookies that a response nominates, with their values in the request, whether or not
    /// it is stored. `None` if no request can select it.
    pub fn read(
        response: &HeaderMap,
        request: &dyn Fields,
        policy: &Policy,
    ) -> Option<NominatedFields> {
        NominatedFields::of(response, request, policy).ok()
    }

    /// The nominated fields and cookies with one more field, and its value in the request.
    pub fn with(&self, name: HeaderName, request: &dyn Fields) -> NominatedFields {
        let mut all = self.clone();
        if !all.names().any(|known| *known == name) {
            let value = normalised(name.as_str(), request);
            all.fields.push((name, value));
            all.fields.sort_unstable_by(|one, other| one.0.as_str().cmp(other.0.as_str()));
        }
        all
    }

    /// Restores the output of [`fields`](Self::fields) and [`cookies`](Self::cookies).
    pub fn of_parts(
        mut fields: Vec<(HeaderName, Option<Vec<u8>>)>,
        cookies: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    ) -> NominatedFields {
        fields.sort_unstable_by(|one, other| one.0.as_str().cmp(other.0.as_str()));
        fields.dedup_by(|one, other| one.0 == other.0);
        NominatedFields { fields, cookies }
    }

    /// The nominated fields with their normalised values in the request, sorted by name.
    pub fn fields(&self) -> impl ExactSizeIterator<Item = (&HeaderName, Option<&[u8]>)> {
        self.fields.iter().map(|(name, value)| (name, value.as_deref()))
    }

    /// The nominated cookies with their values in the request.
    pub fn cookies(&self) -> impl ExactSizeIterator<Item = (&[u8], Option<&[u8]>)> {
        self.cookies.iter().map(|(name, value)| (name.as_slice(), value.as_deref()))
    }

    /// Whether a cookie of this name is nominated: all that the application can read of it selects the response.
    pub fn has_cookie(&self, name: &CookieName<'_>) -> bool {
        self.cookies.iter().any(|(known, _)| CookieName::of(known).is_same(name))
    }

    /// Whether nothing is nominated: every request for the page selects the response.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty() && self.cookies.is_empty()
    }

    /// The names of the fields, sorted.
    pub fn names(&self) -> impl Iterator<Item = &HeaderName> {
        self.fields.iter().map(|(name, _)| name)
    }

    /// Whether a request selects the response (RFC 9111 §4.1). It allocates only if fields are nominated.
    pub fn is_selected_by(&self, request: &dyn Fields) -> bool {
        self.is_selected(request, || ImpliedFields::of(request))
    }

    /// As [`is_selected_by`](Self::is_selected_by); `implied` returns [`ImpliedFields::of`] the request. A field of
    /// these that the response does not nominate had no unusual value in the response's own request, so the two
    /// requests differ in it.
    pub(crate) fn is_selected(
        &self,
        request: &dyn Fields,
        implied: impl FnOnce() -> ImpliedFields,
    ) -> bool {
        self.has_values_of(request)
            && implied().names().all(|name| self.names().any(|known| *known == name))
    }

    /// Whether each nominated field and cookie has the same value in a request.
    pub(crate) fn has_values_of(&self, request: &dyn Fields) -> bool {
        self.fields.iter().all(|(name, value)| normalised(name.as_str(), request) == *value)
            && self.cookies.iter().all(|(name, value)| cookie(name, request) == *value)
    }

    /// The bytes that identify the variant of the page: names and normalised values. They are equal for two
    /// responses exactly if both nominate the same fields with the same values, so that the newer may
    /// replace the older. Empty if nothing is nominated.
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

    /// The [`variant_key`](NominatedFields::variant_key) of a response to this request that nominates the same
    /// fields.
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

    /// An estimate of the heap bytes.
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

/// Request fields that count as nominated even if `Vary` does not name them, because many applications use
/// them without saying so. They are `Origin`, which is repeated in `Access-Control-Allow-Origin`, and an
/// `Accept` that browsers do not send for a page, an image or a script. They count when a response is stored,
/// and when one is selected: a request that has one of them selects only a response that nominates it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ImpliedFields {
    origin: bool,
    accept: bool,
}

impl ImpliedFields {
    /// The implied fields of a request. This allocates nothing.
    pub(crate) fn of(request: &dyn Fields) -> ImpliedFields {
        let mut implied = ImpliedFields { origin: false, accept: false };
        request.values(ORIGIN.as_str(), &mut |_| implied.origin = true);
        request.values(ACCEPT.as_str(), &mut |line| {
            implied.accept |= is_unusual_accept(line);
        });
        implied
    }

    fn names(self) -> impl Iterator<Item = HeaderName> {
        [self.origin.then_some(ORIGIN), self.accept.then_some(ACCEPT)].into_iter().flatten()
    }
}

/// The most frequent values of Accept, as browsers write them. [`is_usual_accept`] is true for each, and takes
/// longer.
const BROWSERS_ACCEPT: [&[u8]; 6] = [
    b"*/*",
    b"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    b"text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8",
    b"text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8,application/signed-exchange;v=b3;q=0.7",
    b"image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8",
    b"text/css,*/*;q=0.1",
];

/// Whether this line of Accept names a type that browsers do not ask for. It allocates nothing, because it runs for
/// each hit.
pub(crate) fn is_unusual_accept(line: &[u8]) -> bool {
    !BROWSERS_ACCEPT.contains(&line) && !is_usual_accept(line)
}

/// Whether this line of Accept names only types that browsers accept.
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

/// The cookies in `X-LiteSpeed-Vary`, with their values in the request; none with `no-vary`.
fn cookies_of(
    response: &HeaderMap,
    request: &dyn Fields,
    policy: &Policy,
) -> Result<Vec<Cookie>, NotSelectable> {
    if policy.litespeed == FieldUse::Ignore || !fields::is_there(response, VARY_FIELD) {
        return Ok(Vec::new());
    }
    let vary = vary_of(response, policy.nominated_max)?;
    // The value that the server passes to the application, as it went to the origin.
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

/// The value of a cookie in a request, `None` if it is absent. It contains all values if there are several,
/// because the application chooses among them. If the name has another spelling (`name[key]`), it contains
/// the pair after a line feed, which no value contains.
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

/// Writes a name and a value, each after its length, so that different lists never produce the same bytes.
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

/// How a field's value may be normalised without changing its meaning (RFC 9111 §4.1).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Grammar {
    /// A single value in which a comma has no meaning: User-Agent, Cookie and others.
    Single,
    /// A list, or unknown. Intermediaries may combine lines with a comma and white space (RFC 9110 §5.3),
    /// so white space there has no meaning.
    List,
    /// A list of weighted values in any case and any order (RFC 9110 §12.5.1–§12.5.3).
    Weighted,
    /// As [`Weighted`](Grammar::Weighted), but the order of equal weights is kept, because some origins treat it
    /// as a preference (RFC 9110 §12.5.4).
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
            let mut values: Vec<WeightedValue> = members().map(WeightedValue::read).collect();
            values.sort_unstable_by(|one, other| one.text.cmp(&other.text));
            values.dedup();
            written(&values)
        }
        Grammar::WeightedInOrder => {
            let mut values: Vec<WeightedValue> = members().map(WeightedValue::read).collect();
            values.sort_by_key(|value| std::cmp::Reverse(value.weight));
            written(&values)
        }
    })
}

fn written(values: &[WeightedValue]) -> Vec<u8> {
    let parts: Vec<Vec<u8>> = values.iter().map(WeightedValue::written).collect();
    parts.join(&b", "[..])
}

/// A value with a weight (RFC 9110 §12.4.2).
#[derive(PartialEq, Eq)]
struct WeightedValue {
    /// In lower case and without white space, except in quotes; without the weight.
    text: Vec<u8>,
    /// In thousandths.
    weight: u16,
}

impl WeightedValue {
    fn read(member: &[u8]) -> WeightedValue {
        let mut value = WeightedValue { text: Vec::with_capacity(member.len()), weight: 1000 };
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

/// The end of a parameter: a semicolon outside quotes.
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

/// Appends the text in lower case and without white space. Text with quotes is appended unchanged.
fn push_plain(out: &mut Vec<u8>, part: &[u8]) {
    match part.iter().position(|byte| *byte == b'"') {
        Some(_) => out.extend_from_slice(part),
        None => out.extend(
            part.iter().filter(|byte| !fields::is_space(**byte)).map(u8::to_ascii_lowercase),
        ),
    }
}

/// A weight in thousandths from `0` or `1` with up to three decimals; `None` for other text.
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
