//! Maps purge requests to the pages that they select: one match arm per method, and the header fields that each
//! method uses.
//!
//! | request | selects | used by |
//! |---|---|---|
//! | `PURGE /a?b` | this URL, including its query | Varnish, MediaWiki, W3 Total Cache, Fastly, Symfony |
//! | … `X-Purge-Method: default` | the path with any query | Proxy Cache Purge and its VCL |
//! | … `X-Purge-Method: regex`, or `.*` at the end | URLs with this prefix; an expression, if it is one | Proxy Cache Purge, WP Rocket |
//! | … `X-Purge-Regex`, `X-Ban-Regex` | URLs that match this expression; the URL is ignored | VCL code |
//! | `PURGE /a/*` | URLs with this prefix | ngx_cache_purge |
//! | `PURGE /.*`, `/*`, `/purgeall` | all pages of the site | endurance-page-cache, Nginx Helper |
//! | `PURGE` with a field of tags | these tags; the URL is ignored | Souin, xkey, Magento, Drupal |
//! | `REFRESH /a` | this URL, soft | LiteSpeed |
//! | `BAN` with `X-Host`, `X-Url`, `X-Content-Type`, tags | pages that match all conditions; with tags, the tags | FOSHttpCache, Drupal |
//! | `BAN /a` | URLs that match this expression | VCL code |
//! | `URIBAN /a` | this URL | VCL code for Drupal |
//! | `PURGEKEYS` | `xkey-purge` hard, `xkey-softpurge` soft | FOSHttpCache with xkey |
//! | `PURGETAGS` | the tags of `X-Cache-Tags` | FOSHttpCache with Symfony's cache |
//! | `GET /purge/a` | as `PURGE /a` | Nginx Helper, ngx_cache_purge |

use crate::pattern::{Conditions, Pattern};
use crate::spelling::UrlExpression;
use crate::tag_pattern::{TagPattern, read_tag_pattern};
use crate::url_pattern::{UrlPattern, is_directory, read_url_pattern};
use crate::{Coverage, Purge, PurgeRefusal, Scope, Selection, TAGS_MAX};
use http::{HeaderMap, HeaderValue};

/// The methods that purge. Methods are case-sensitive (RFC 9110 section 9.1).
const METHODS: [&str; 6] = ["PURGE", "REFRESH", "BAN", "URIBAN", "PURGEKEYS", "PURGETAGS"];

/// The fields that list tags, and their separators. A piece that contains a comma, in a list separated by
/// spaces, counts as one tag and as several, because some programs use both separators.
const TAG_FIELDS: [(&str, Separator); 10] = [
    ("surrogate-key", Separator::Space),
    ("xkey", Separator::Space),
    ("xkey-purge", Separator::Space),
    ("cache-tag", Separator::Comma),
    ("edge-cache-tag", Separator::Comma),
    ("x-cache-tags", Separator::Comma),
    ("cache-tags", Separator::Pattern),
    ("purge-cache-tags", Separator::Pattern),
    ("x-magento-tags-pattern", Separator::Pattern),
    ("xkey-softpurge", Separator::Space),
];

/// Paths that select all pages of the site.
const EVERYTHING: [&str; 4] = ["/purgeall", "/purge_all", "/purge-all", "/souin-api/souin/flush"];

/// How a field separates its tags.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Separator {
    Space,
    Comma,
    /// The field is an expression over tags, see [`read_tag_pattern`].
    Pattern,
}

/// Whether requests with this method are purge requests.
pub fn is_purge_method(method: &str) -> bool {
    METHODS.contains(&method)
}

/// Parses a purge request. Returns `None` if the method does not purge. `path_and_query` begins with a slash.
///
/// # Errors
/// The reason why the request is invalid. No part of it may be carried out then.
pub fn read(
    method: &str,
    path_and_query: &str,
    fields: &HeaderMap,
) -> Option<Result<Purge, PurgeRefusal>> {
    if !is_purge_method(method) {
        return None;
    }
    if let Err(unknown) = check_fields(fields) {
        return Some(Err(unknown));
    }
    Some(match method {
        "PURGE" => purge(path_and_query, fields),
        "REFRESH" => address(path_and_query, fields).map(soft).map(of_named_host),
        "BAN" => by_expression(path_and_query, fields),
        "URIBAN" => Ok(of_named_host(hard(vec![Selection::Url(path_and_query.to_owned())]))),
        "PURGEKEYS" => purge_keys(fields),
        "PURGETAGS" => tags_wanted(fields).map(hard),
        _ => return None,
    })
}

/// Parses `GET /purge/a?b`, where `below` is the configured path `/purge`. Returns `None` for paths that are
/// not below it.
///
/// # Errors
/// As [`read`].
pub fn read_get(
    below: &str,
    path_and_query: &str,
    fields: &HeaderMap,
) -> Option<Result<Purge, PurgeRefusal>> {
    let rest = path_and_query.strip_prefix(below.trim_end_matches('/'))?;
    let by_address = || {
        check_fields(fields)
            .and_then(|()| address(rest, fields))
            .map(|found| by_strength(found, fields))
    };
    rest.starts_with('/').then(|| by_address().map(of_named_host))
}

/// Fields of purge requests that are known, in addition to [`TAG_FIELDS`].
const KNOWN_FIELDS: [&str; 11] = [
    "fastly-soft-purge",
    "x-ban-host",
    "x-ban-regex",
    "x-ban-url",
    "x-host",
    "x-litespeed-purge",
    "x-litespeed-purge2",
    "x-purge-method",
    "x-purge-regex",
    "x-url",
    "x-vc-purge-method",
];
/// The last words of fields that select nothing: credentials, and notes for the log.
const HARMLESS: [&str; 8] = ["auth", "debug", "id", "key", "reason", "secret", "token", "user"];

/// Refuses a field that is made for purges and not known: a success status would be wrong if it selects pages.
fn check_fields(fields: &HeaderMap) -> Result<(), PurgeRefusal> {
    let is_unknown = |name: &str| {
        let mut words = name.split('-');
        let is_for_purges =
            words.any(|word| matches!(word, "purge" | "softpurge" | "ban" | "invalidate"));
        is_for_purges
            && !KNOWN_FIELDS.contains(&name)
            && !TAG_FIELDS.iter().any(|(known, _)| *known == name)
            && !name.rsplit('-').next().is_some_and(|last| HARMLESS.contains(&last))
    };
    match fields.keys().find(|name| is_unknown(name.as_str())) {
        Some(name) => Err(PurgeRefusal::FieldUnknown(name.as_str().to_owned())),
        None => Ok(()),
    }
}

fn hard(hard: Vec<Selection>) -> Purge {
    Purge { hard, ..Purge::default() }
}

fn soft(soft: Vec<Selection>) -> Purge {
    Purge { soft, ..Purge::default() }
}

fn of_named_host(purge: Purge) -> Purge {
    Purge { scope: Scope::NamedHost, ..purge }
}

/// Selects softly if the request has Fastly's field `Fastly-Soft-Purge`, otherwise hard.
fn by_strength(selected: Vec<Selection>, fields: &HeaderMap) -> Purge {
    let flag = fields.get("fastly-soft-purge").map(HeaderValue::as_bytes).map(<[u8]>::trim_ascii);
    match flag {
        Some(flag) if !matches!(flag, b"" | b"0" | b"false") => soft(selected),
        _ => hard(selected),
    }
}

fn purge(path_and_query: &str, fields: &HeaderMap) -> Result<Purge, PurgeRefusal> {
    let mut found = TagSelection::default();
    found.fields(fields, &["xkey-softpurge"])?;
    let softly = listed(fields, "xkey-softpurge", Separator::Space)?;
    if found.is_empty() && softly.is_empty() {
        // Purges by pool are not supported, so a success status would be wrong.
        if fields.contains_key("x-pool") {
            return Err(PurgeRefusal::PoolUnsupported);
        }
        return Ok(of_named_host(by_strength(address(path_and_query, fields)?, fields)));
    }
    let taken = found.taken;
    let mut purge = by_strength(found.selected(), fields);
    purge.soft.extend(softly.into_iter().map(Selection::Tag));
    Ok(Purge { taken, ..purge })
}

fn purge_keys(fields: &HeaderMap) -> Result<Purge, PurgeRefusal> {
    let read = |name: &str| listed(fields, name, Separator::Space);
    let (hard, soft) = (read("xkey-purge")?, read("xkey-softpurge")?);
    if hard.is_empty() && soft.is_empty() {
        return Err(PurgeRefusal::TagsMissing);
    }
    let selected = |tags: Vec<Vec<u8>>| tags.into_iter().map(Selection::Tag).collect();
    Ok(Purge { hard: selected(hard), soft: selected(soft), ..Purge::default() })
}

fn tags_wanted(fields: &HeaderMap) -> Result<Vec<Selection>, PurgeRefusal> {
    let mut found = TagSelection::default();
    found.fields(fields, &[])?;
    if found.is_empty() { Err(PurgeRefusal::TagsMissing) } else { Ok(found.selected()) }
}

/// The pages that a URL selects, depending on wildcards at its end and on `X-Purge-Method`.
fn address(path_and_query: &str, fields: &HeaderMap) -> Result<Vec<Selection>, PurgeRefusal> {
    let path = path_and_query.split('?').next().unwrap_or_default();
    if EVERYTHING.contains(&path) {
        return Ok(vec![Selection::Everything]);
    }
    if let Some(pattern) = text(fields, &["x-ban-regex", "x-purge-regex"])? {
        return Ok(vec![searched(read_url_pattern(pattern)?)]);
    }
    let way = text(fields, &["x-purge-method", "x-vc-purge-method"])?.unwrap_or_default();
    let is = |word: &str| way.eq_ignore_ascii_case(word);
    if !["", "default", "exact", "regex"].iter().any(|known| is(known)) {
        return Err(PurgeRefusal::FieldUnknown(format!("X-Purge-Method: {way}")));
    }
    let address = path_and_query.to_owned();
    if is("exact") {
        return Ok(vec![Selection::Url(address)]);
    }
    let start = address.strip_suffix(".*").or_else(|| address.strip_suffix('*'));
    match start {
        Some(start) if !has_expression(start) => Ok(vec![beginning(start)]),
        // The literal URL is also selected: it may be a URL that only looks like an expression.
        Some(_) => {
            Ok(vec![searched(read_url_pattern(&format!("^{address}"))?), Selection::Url(address)])
        }
        None if is("regex") => {
            let found = if has_expression(&address) {
                searched(read_url_pattern(&format!("^{address}"))?)
            } else {
                beginning(&address)
            };
            Ok(vec![found, Selection::Url(address)])
        }
        None if is("default") => Ok(vec![Selection::Path(path.to_owned())]),
        None => Ok(vec![Selection::Url(address)]),
    }
}

/// Whether the URL contains special characters of expressions. A dot and a question mark do not count: they are
/// taken literally.
fn has_expression(address: &str) -> bool {
    address.contains(['\\', '(', ')', '[', ']', '{', '}', '|', '^', '$', '*', '+'])
}

/// Selects all URLs with this prefix.
fn beginning(start: &str) -> Selection {
    match start {
        "" | "/" => Selection::Everything,
        path if is_directory(path) => Selection::Below(path.to_owned()),
        start => {
            let url = Some(UrlExpression::starts_with(start));
            Selection::Where(Conditions { url, ..Conditions::default() })
        }
    }
}

fn searched(pattern: UrlPattern) -> Selection {
    match pattern {
        UrlPattern::Any => Selection::Everything,
        UrlPattern::Exact(url) => Selection::Url(url),
        UrlPattern::Below(path) => Selection::Below(path),
        UrlPattern::Search(pattern) => {
            Selection::Where(Conditions { url: Some(pattern), ..Conditions::default() })
        }
    }
}

fn by_expression(path_and_query: &str, fields: &HeaderMap) -> Result<Purge, PurgeRefusal> {
    let mut found = TagSelection { as_expressions: true, ..TagSelection::default() };
    found.fields(fields, &[])?;
    let any = |pattern: &&str| !matches!(*pattern, ".*" | "" | "^.*$" | "^.*");
    let hosts = text(fields, &["x-host", "x-ban-host"])?.filter(any);
    let hosts = hosts.map(Pattern::read).transpose()?;
    // If tags are given, only the tags count. Programs that send tags as well send wildcards for URL and media
    // type.
    if !found.is_empty() && !found.matches_any_tag {
        let taken = found.taken;
        return Ok(Purge { taken, hosts, ..by_strength(found.selected(), fields) });
    }
    let url = text(fields, &["x-url", "x-ban-url"])?;
    let content_type = text(fields, &["x-content-type"])?;
    let is_described = url.is_some() || content_type.is_some() || hosts.is_some();
    let content_type = content_type.filter(any).map(Pattern::read).transpose()?;
    let scope = if is_described || found.matches_any_tag { Scope::Site } else { Scope::NamedHost };
    let mut selected = match (url, found.matches_any_tag) {
        (Some(url), _) => vec![searched(read_url_pattern(url)?)],
        (None, false) if !is_described => {
            // Selected as an expression, and as the literal URL that it may be.
            let as_written = Selection::Url(path_and_query.to_owned());
            vec![searched(read_url_pattern(path_and_query)?), as_written]
        }
        (None, _) => vec![Selection::Everything],
    };
    if hosts.is_some() || content_type.is_some() {
        selected = selected.into_iter().map(|one| narrowed(one, &hosts, &content_type)).collect();
    }
    Ok(Purge { hosts, scope, ..by_strength(selected, fields) })
}

/// Restricts a selection to pages whose host and media type match. A single URL and a path stay unrestricted:
/// this selects more, but needs no search.
fn narrowed(
    selected: Selection,
    host: &Option<Pattern>,
    content_type: &Option<Pattern>,
) -> Selection {
    let conditions = match selected {
        Selection::Where(conditions) => conditions,
        Selection::Everything => Conditions::default(),
        looked_up => return looked_up,
    };
    Selection::Where(Conditions {
        host: host.clone(),
        content_type: content_type.clone(),
        ..conditions
    })
}

/// The tags that the fields of a request name.
#[derive(Default)]
struct TagSelection {
    tags: Vec<Vec<u8>>,
    /// Whether an expression over tags matches every tag.
    matches_any_tag: bool,
    taken: Coverage,
    /// Whether fields that are normally lists of tags are expressions in this request.
    as_expressions: bool,
}

impl TagSelection {
    fn is_empty(&self) -> bool {
        self.tags.is_empty() && !self.matches_any_tag && self.taken == Coverage::AsNamed
    }

    fn fields(&mut self, fields: &HeaderMap, but: &[&str]) -> Result<(), PurgeRefusal> {
        for (name, separator) in TAG_FIELDS {
            if but.contains(&name) || !fields.contains_key(name) {
                continue;
            }
            match separator {
                Separator::Pattern => self.patterns(fields, name)?,
                _ if self.as_expressions => self.patterns(fields, name)?,
                separator => self.tags.extend(listed(fields, name, separator)?),
            }
            if self.tags.len() > TAGS_MAX {
                return Err(PurgeRefusal::TooManyTags);
            }
        }
        Ok(())
    }

    fn patterns(&mut self, fields: &HeaderMap, name: &str) -> Result<(), PurgeRefusal> {
        for line in fields.get_all(name) {
            let text = std::str::from_utf8(line.as_bytes()).unwrap_or_default();
            match read_tag_pattern(text) {
                TagPattern::Tags(tags) => self.tags.extend(tags),
                TagPattern::Any => self.matches_any_tag = true,
                TagPattern::Unknown => self.taken = Coverage::Everything,
            }
        }
        Ok(())
    }

    fn selected(self) -> Vec<Selection> {
        if self.matches_any_tag || self.taken == Coverage::Everything {
            return vec![Selection::Everything];
        }
        self.tags.into_iter().map(Selection::Tag).collect()
    }
}

/// The tags listed in all lines of a field.
fn listed(
    fields: &HeaderMap,
    name: &str,
    separator: Separator,
) -> Result<Vec<Vec<u8>>, PurgeRefusal> {
    let mut tags: Vec<Vec<u8>> = Vec::new();
    let mut add = |piece: &[u8]| {
        let piece = piece.trim_ascii();
        if !piece.is_empty() {
            tags.push(piece.to_owned());
        }
    };
    for line in fields.get_all(name) {
        let line = line.as_bytes();
        match separator {
            Separator::Space => {
                for piece in line.split(u8::is_ascii_whitespace) {
                    add(piece);
                    if piece.contains(&b',') {
                        piece.split(|byte| *byte == b',').for_each(&mut add);
                    }
                }
            }
            _ => line.split(|byte| *byte == b',').for_each(&mut add),
        }
    }
    if tags.len() > TAGS_MAX { Err(PurgeRefusal::TooManyTags) } else { Ok(tags) }
}

/// The first line of the first field in `names` that the request has.
fn text<'a>(fields: &'a HeaderMap, names: &[&str]) -> Result<Option<&'a str>, PurgeRefusal> {
    let Some(value) = names.iter().find_map(|name| fields.get(*name)) else { return Ok(None) };
    let text = std::str::from_utf8(value.as_bytes());
    let text = text.map_err(|error| PurgeRefusal::PatternUnusable(error.to_string()))?;
    Ok(Some(text.trim()))
}
