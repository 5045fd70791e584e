//! One page as bytes: its key, its worth for eviction, the stored response, its content in each compression, and
//! the keys of its statements.
//!
//! Values that follow from these are not written: the laid-out header section, the times parsed from header
//! fields, the other dependencies. Reading enforces the limits and invariants of `http_cache::StoredResponse`. A private
//! page is refused, because private pages are never written.

use crate::SnapshotError;
use crate::parts::{Put, Rest};
use http::header::{HeaderName, HeaderValue};
use http::{HeaderMap, StatusCode};
use http_cache::codings::Coding;
use http_cache::litespeed::{CacheControl, Scope, StorePermission, Switch};
use http_cache::tags::{TAGS_MAX, Tags};
use http_cache::validators::{EntityTag, EtagSource};
use http_cache::variants::NominatedFields;
use http_cache::{
    Forms, LifetimeSource, ResponseDirectives, ResponseExtras, SECONDS_MAX, StoredResponse,
    Timestamp,
};

/// The maximum length of a key, in bytes.
pub(crate) const KEY_BYTES_MAX: usize = 64 << 10;
/// The maximum number of statements of a page.
const STATEMENTS_MAX: usize = 1_024;
/// The maximum number of header lines of a page, and of fields and cookies in its `Vary`.
const LINES_MAX: usize = 4_096;

/// The statements on which a page depends, by their keys in the snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageStatements {
    /// Whether the result of a statement depends on the time of day, or on chance.
    pub is_timed: bool,
    /// The key of each statement. One that the render has run twice is there twice.
    pub keys: Vec<u128>,
}

/// A page as a snapshot has it, to be written or read.
#[derive(Clone, Debug)]
pub struct SavedPage<'a> {
    /// The cache key of the page.
    pub key: &'a [u8],
    /// The page's worth for eviction, in the caller's encoding.
    pub worth: u8,
    /// The time at which a soft invalidation marked the page, in milliseconds since the Unix epoch.
    pub marked_at_ms: Option<u64>,
    /// The stored response of the page.
    pub stored: StoredResponse,
    /// The uncompressed content of the page.
    pub content: Content<'a>,
    /// The compressed contents, at most one for each content coding.
    pub forms: Vec<(Coding, &'a [u8])>,
    /// The statements on which the page depends; `None` if it depends on none.
    pub statements: Option<PageStatements>,
}

/// The uncompressed content of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content<'a> {
    /// The content itself.
    Kept(&'a [u8]),
    /// Only its length in bytes: the content is stored in compressed form only.
    InCodings(u64),
}

/// Appends a page to `out`.
pub fn write_page(page: &SavedPage<'_>, out: &mut Vec<u8>) {
    out.bytes(page.key);
    out.u8(page.worth);
    out.maybe(page.marked_at_ms);
    write_stored(&page.stored, out);
    match page.content {
        Content::Kept(content) => {
            out.u8(0);
            out.bytes(content);
        }
        Content::InCodings(bytes) => {
            out.u8(1);
            out.u64(bytes);
        }
    }
    out.u8(page.forms.len() as u8);
    for (coding, content) in &page.forms {
        out.u8(coding_number(*coding));
        out.bytes(content);
    }
    out.u8(u8::from(page.statements.is_some()));
    if let Some(PageStatements { is_timed, keys }) = &page.statements {
        out.u8(u8::from(*is_timed));
        out.u32(keys.len() as u32);
        keys.iter().for_each(|key| out.u128(*key));
    }
}

/// Reads a page that [`write_page`] has written.
///
/// # Errors
/// The bytes cannot be the output of `write_page`, or exceed a limit.
pub fn read_page(bytes: &[u8]) -> Result<SavedPage<'_>, SnapshotError> {
    let mut rest = Rest(bytes);
    let key = rest.bytes()?;
    if key.len() > KEY_BYTES_MAX {
        return Err(SnapshotError::TooLarge);
    }
    let (worth, marked_at_ms) = (rest.u8()?, rest.maybe()?);
    let stored = read_stored(&mut rest)?;
    let content = match rest.u8()? {
        0 => Content::Kept(rest.bytes()?),
        1 => Content::InCodings(rest.u64()?),
        _ => return Err(SnapshotError::Invalid),
    };
    let mut forms: Vec<(Coding, &[u8])> = Vec::new();
    for _ in 0..rest.u8()? {
        let coding = coding_of(rest.u8()?)?;
        if forms.iter().any(|(other, _)| *other == coding) {
            return Err(SnapshotError::Invalid);
        }
        forms.push((coding, rest.bytes()?));
    }
    let statements = if rest.flag()? { Some(read_statements(&mut rest)?) } else { None };
    rest.end()?;
    if forms.is_empty() && matches!(content, Content::InCodings(_)) {
        return Err(SnapshotError::Invalid);
    }
    Ok(SavedPage { key, worth, marked_at_ms, stored, content, forms, statements })
}

fn read_statements(rest: &mut Rest<'_>) -> Result<PageStatements, SnapshotError> {
    let is_timed = rest.flag()?;
    let mut keys = Vec::new();
    for _ in 0..rest.count(STATEMENTS_MAX)? {
        keys.push(rest.u128()?);
    }
    Ok(PageStatements { is_timed, keys })
}

fn coding_number(coding: Coding) -> u8 {
    match coding {
        Coding::Gzip => 1,
        Coding::Brotli => 2,
        Coding::Zstd => 3,
    }
}

fn coding_of(number: u8) -> Result<Coding, SnapshotError> {
    Coding::ALL
        .into_iter()
        .find(|coding| coding_number(*coding) == number)
        .ok_or(SnapshotError::Invalid)
}

fn write_stored(stored: &StoredResponse, out: &mut Vec<u8>) {
    out.u32(u32::from(stored.status.as_u16()));
    write_lines(&stored.headers, out);
    write_lines(stored.internal_fields(), out);
    out.u64(stored.request_time().0);
    out.u64(stored.response_time.0);
    out.u64(stored.initial_age_ms());
    out.u64(stored.lifetime_ms());
    out.u8(source_number(stored.lifetime_source));
    write_directives(&stored.directives.unpacked(), out);
    write_pairs(
        stored.nominated().fields().map(|(name, value)| (name.as_str().as_bytes(), value)),
        out,
    );
    write_pairs(stored.nominated().cookies(), out);
    out.u32(stored.tags().len() as u32);
    stored.tags().iter().for_each(|tag| out.bytes(tag));
    match stored.etag.source() {
        None => out.u8(0),
        Some(EtagSource::Origins) => out.u8(1),
        Some(EtagSource::Own) => out.u8(2),
    }
    stored.etag.as_it_came().iter().for_each(|tag| out.bytes(tag));
    out.u8(match stored.forms {
        Forms::One => 0,
        Forms::ByCoding => 1,
        Forms::Assembled => 2,
    });
    out.maybe(stored.content_length());
    out.u8(u8::from(stored.extras().litespeed.is_some()));
    if let Some(control) = &stored.extras().litespeed {
        write_litespeed(control, out);
    }
}

fn read_stored(rest: &mut Rest<'_>) -> Result<StoredResponse, SnapshotError> {
    let status = u16::try_from(rest.u32()?).ok().and_then(|code| StatusCode::from_u16(code).ok());
    let status = status.filter(|status| !matches!(status.as_u16(), 100..=199 | 206 | 304));
    let status = status.ok_or(SnapshotError::Invalid)?;
    let (headers, internal) = (read_lines(rest)?, read_lines(rest)?);
    let (request_time, response_time) = (Timestamp(rest.u64()?), Timestamp(rest.u64()?));
    let mut stored =
        StoredResponse::of_file(headers, 0, response_time).with_internal_fields(internal);
    stored.status = status;
    stored.set_request_time(request_time);
    stored.set_initial_age_ms(span_ms(rest)?);
    stored.set_lifetime_ms(span_ms(rest)?);
    stored.lifetime_source = source_of(rest.u8()?)?;
    stored.directives = (&read_directives(rest)?).into();
    let fields = read_pairs(rest)?.into_iter().map(|(name, value)| Ok((field_name(&name)?, value)));
    let fields = fields.collect::<Result<Vec<_>, SnapshotError>>()?;
    stored.set_nominated(NominatedFields::of_parts(fields, read_pairs(rest)?));
    let mut tags = Vec::new();
    for _ in 0..rest.count(TAGS_MAX)? {
        tags.push(rest.bytes()?);
    }
    stored.set_tags(Tags::of(tags.into_iter()).map_err(|_| SnapshotError::TooLarge)?);
    stored.etag = match rest.u8()? {
        0 => EntityTag::NONE,
        1 => entity_tag(EtagSource::Origins, rest)?,
        2 => entity_tag(EtagSource::Own, rest)?,
        _ => return Err(SnapshotError::Invalid),
    };
    stored.forms = match rest.u8()? {
        0 => Forms::One,
        1 => Forms::ByCoding,
        2 => Forms::Assembled,
        _ => return Err(SnapshotError::Invalid),
    };
    stored.set_content_length(rest.maybe()?);
    let litespeed = if rest.flag()? { Some(read_litespeed(rest)?) } else { None };
    stored.set_extras(ResponseExtras { litespeed, ..ResponseExtras::default() });
    if stored.is_private() { Err(SnapshotError::Invalid) } else { Ok(stored) }
}

/// Reads a duration in milliseconds, at most that of RFC 9111 section 1.2.2.
fn span_ms(rest: &mut Rest<'_>) -> Result<u64, SnapshotError> {
    let span = rest.u64()?;
    if span > u64::from(SECONDS_MAX) * 1000 { Err(SnapshotError::Invalid) } else { Ok(span) }
}

/// Reads an entity tag that is a valid field value.
fn entity_tag(source: EtagSource, rest: &mut Rest<'_>) -> Result<EntityTag, SnapshotError> {
    let tag = rest.bytes()?;
    field_value(tag).map(|_| EntityTag::of(source, tag))
}

fn write_lines(lines: &HeaderMap, out: &mut Vec<u8>) {
    out.u32(lines.len() as u32);
    for (name, value) in lines {
        out.bytes(name.as_str().as_bytes());
        out.bytes(value.as_bytes());
    }
}

fn read_lines(rest: &mut Rest<'_>) -> Result<HeaderMap, SnapshotError> {
    let count = rest.count(LINES_MAX)?;
    let mut lines = HeaderMap::new();
    for _ in 0..count {
        let name = field_name(rest.bytes()?)?;
        let value = field_value(rest.bytes()?)?;
        lines.try_append(name, value).map_err(|_| SnapshotError::TooLarge)?;
    }
    Ok(lines)
}

fn field_name(bytes: &[u8]) -> Result<HeaderName, SnapshotError> {
    HeaderName::from_bytes(bytes).map_err(|_| SnapshotError::Invalid)
}

fn field_value(bytes: &[u8]) -> Result<HeaderValue, SnapshotError> {
    HeaderValue::from_bytes(bytes).map_err(|_| SnapshotError::Invalid)
}

/// A name and an optional value.
type Pair = (Vec<u8>, Option<Vec<u8>>);

fn write_pairs<'p>(
    pairs: impl ExactSizeIterator<Item = (&'p [u8], Option<&'p [u8]>)>,
    out: &mut Vec<u8>,
) {
    out.u32(pairs.len() as u32);
    for (name, value) in pairs {
        out.bytes(name);
        out.maybe_bytes(value);
    }
}

fn read_pairs(rest: &mut Rest<'_>) -> Result<Vec<Pair>, SnapshotError> {
    let count = rest.count(LINES_MAX)?;
    let mut pairs = Vec::new();
    for _ in 0..count {
        let name = rest.bytes()?.to_vec();
        pairs.push((name, rest.maybe_bytes()?.map(<[u8]>::to_vec)));
    }
    Ok(pairs)
}

fn write_directives(directives: &ResponseDirectives, out: &mut Vec<u8>) {
    let spans = [
        directives.max_age,
        directives.s_maxage,
        directives.stale_while_revalidate,
        directives.stale_if_error,
    ];
    spans.into_iter().for_each(|span| out.maybe(span.map(u64::from)));
    let words = [
        directives.no_cache,
        directives.no_store,
        directives.private,
        directives.public,
        directives.must_revalidate,
        directives.proxy_revalidate,
        directives.must_understand,
    ];
    out.u8((0..).zip(words).map(|(at, word)| u8::from(word) << at).sum());
    out.u32(directives.withheld.len() as u32);
    directives.withheld.iter().for_each(|name| out.bytes(name.as_str().as_bytes()));
}

fn read_directives(rest: &mut Rest<'_>) -> Result<ResponseDirectives, SnapshotError> {
    let mut span = || match rest.maybe()? {
        None => Ok(None),
        Some(span) => u32::try_from(span).map(Some).map_err(|_| SnapshotError::Invalid),
    };
    let (max_age, s_maxage) = (span()?, span()?);
    let (stale_while_revalidate, stale_if_error) = (span()?, span()?);
    let words = rest.u8()?;
    let word = |at: u8| words & (1 << at) != 0;
    let mut withheld = Vec::new();
    for _ in 0..rest.count(LINES_MAX)? {
        withheld.push(field_name(rest.bytes()?)?);
    }
    Ok(ResponseDirectives {
        max_age,
        s_maxage,
        no_cache: word(0),
        no_store: word(1),
        private: word(2),
        public: word(3),
        must_revalidate: word(4),
        proxy_revalidate: word(5),
        must_understand: word(6),
        stale_while_revalidate,
        stale_if_error,
        unreadable: false,
        withheld,
    })
}

const SOURCES: [LifetimeSource; 11] = [
    LifetimeSource::Targeted,
    LifetimeSource::LiteSpeed,
    LifetimeSource::SurrogateControl,
    LifetimeSource::XAccelExpires,
    LifetimeSource::SMaxage,
    LifetimeSource::MaxAge,
    LifetimeSource::Expires,
    LifetimeSource::Rule,
    LifetimeSource::Heuristic,
    LifetimeSource::None,
    LifetimeSource::Reads,
];

fn source_number(source: LifetimeSource) -> u8 {
    SOURCES.iter().position(|other| *other == source).unwrap_or(SOURCES.len()) as u8
}

fn source_of(number: u8) -> Result<LifetimeSource, SnapshotError> {
    SOURCES.get(usize::from(number)).copied().ok_or(SnapshotError::Invalid)
}

const SCOPES: [Scope; 3] = [Scope::Public, Scope::Private, Scope::SharedPrivate];
const KEEPINGS: [StorePermission; 3] =
    [StorePermission::Unsaid, StorePermission::Allowed, StorePermission::Forbidden];

fn write_litespeed(control: &CacheControl, out: &mut Vec<u8>) {
    let CacheControl { scope, keeping, lifetime_seconds, no_vary, esi, no_autoflush } = control;
    out.u8(SCOPES.iter().position(|other| other == scope).unwrap_or_default() as u8);
    out.u8(KEEPINGS.iter().position(|other| other == keeping).unwrap_or_default() as u8);
    out.maybe(lifetime_seconds.map(u64::from));
    for switch in [no_vary, esi, no_autoflush] {
        out.u8(u8::from(*switch == Switch::On));
    }
}

fn read_litespeed(rest: &mut Rest<'_>) -> Result<CacheControl, SnapshotError> {
    let scope = SCOPES.get(usize::from(rest.u8()?)).copied().ok_or(SnapshotError::Invalid)?;
    let keeping = KEEPINGS.get(usize::from(rest.u8()?)).copied().ok_or(SnapshotError::Invalid)?;
    let lifetime =
        rest.maybe()?.map(u32::try_from).transpose().map_err(|_| SnapshotError::Invalid)?;
    let mut switch = || rest.flag().map(|on| if on { Switch::On } else { Switch::Off });
    let (no_vary, esi, no_autoflush) = (switch()?, switch()?, switch()?);
    Ok(CacheControl { scope, keeping, lifetime_seconds: lifetime, no_vary, esi, no_autoflush })
}
