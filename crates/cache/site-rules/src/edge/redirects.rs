//! `redirect`, `slash`, and the lines of redirect files: requests that are answered by another address.
//!
//! First the files, then the first rule that matches, with `slash` last. The target of a rule may contain captures of
//! its pattern (`$1` to `$9`), and the target of a path is sent as it is, so that host and port stay those of the
//! client. HEAD counts as GET.
//!
//! Not here: the response and the directories of the document root (`exchange`), the form of a target (`targets`), the
//! lines (`redirect_map`), and what `pagewell check` finds (`redirect_faults`).

use super::access::AccessRequest;
use super::redirect_map::RedirectLine;
use super::targets::{UrlTarget, location_of_text, push_sent, with_one_slash};
use crate::raw;
use crate::rules::SiteRules;
use http::{Method, StatusCode};
use rule_conditions::{
    CapturedTexts, Glob, PathRegex, RequestConditions, RequestView, ResponseConditions,
};

/// A rule with `redirect` or `slash`.
#[derive(Clone, Debug)]
pub(crate) struct RedirectRule {
    pub(crate) number: usize,
    pub(crate) conditions: RequestConditions,
    pub(crate) status: StatusCode,
    pub(crate) action: RedirectAction,
}

#[derive(Clone, Debug)]
pub(crate) enum RedirectAction {
    /// `redirect = false`.
    Exempt,
    /// To this target.
    Target(FilledTarget),
    /// `slash`: with one at the end of the path, or without.
    Slash(SlashChange),
}

/// What `slash` does with the end of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlashChange {
    /// It adds a slash.
    Add,
    /// It removes the slash.
    Remove,
}

/// A target, and the source of its captures.
#[derive(Clone, Debug)]
pub(crate) struct FilledTarget {
    pub(crate) target: UrlTarget,
    captures: CaptureSource,
}

/// The pattern that captures parts of a path.
#[derive(Clone, Debug)]
enum CaptureSource {
    /// The target has no captures.
    None,
    /// The only `path_regex` of the rule.
    Regex(PathRegex),
    /// The only `path` of the rule, with one wildcard.
    Wildcard(Glob),
    /// The only `path` of the rule, as a regular expression.
    Wildcards(PathRegex),
}

/// Where a request is redirected to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirect {
    /// How it was found.
    pub source: RedirectSource,
    /// The value of `Location`; `None` with status 410.
    pub location: Option<String>,
}

/// The origin of a redirect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RedirectSource {
    /// The number of the rule; `None` for a line of a file.
    pub rule: Option<usize>,
    /// The number of the line, if it is one ([`RedirectMap::begin_line`](super::RedirectMap::begin_line)).
    pub line: Option<u32>,
    /// The status of the response.
    pub status: StatusCode,
    /// The change of the path's end, if it is a rule with `slash`.
    pub slash: Option<SlashChange>,
}

/// The status of a redirect.
pub(crate) fn status_of(code: u16) -> Option<StatusCode> {
    matches!(code, 301 | 302 | 303 | 307 | 308).then(|| StatusCode::from_u16(code).ok()).flatten()
}

/// Reads the actions of a rule; `None` if it has none of them.
pub(crate) fn read(
    raw: &raw::Rule,
    number: usize,
    conditions: &RequestConditions,
    response: Option<&ResponseConditions>,
) -> Result<Option<RedirectRule>, String> {
    let action = match (&raw.redirect, raw.slash.as_deref()) {
        (None, None) if raw.redirect_status.is_some() => {
            return Err("redirect_status: belongs to redirect or slash".into());
        }
        (None, None) => return Ok(None),
        (Some(_), Some(_)) => {
            return Err("slash: and redirect are both given: use two rules".into());
        }
        (Some(raw::RuleTarget::Flag(true)), None) => {
            return Err("redirect: true: write the target, or false to exempt".into());
        }
        (Some(raw::RuleTarget::Flag(false)), None) => RedirectAction::Exempt,
        (Some(raw::RuleTarget::To(target)), None) => RedirectAction::Target(
            FilledTarget::read(target, conditions).map_err(|error| format!("redirect: {error}"))?,
        ),
        (None, Some("add")) => RedirectAction::Slash(SlashChange::Add),
        (None, Some("remove")) => RedirectAction::Slash(SlashChange::Remove),
        (None, Some(other)) => return Err(format!("slash: {other:?}: write add or remove")),
    };
    if response.is_some() {
        return Err("redirect, slash: are decided before there is a response, so when_status and when_header cannot be conditions".into());
    }
    let status = match (raw.redirect_status, &action) {
        (None, _) => StatusCode::MOVED_PERMANENTLY,
        (Some(_), RedirectAction::Exempt) => {
            return Err("redirect_status: a rule that exempts has no status".into());
        }
        (Some(410), _) => return Err("redirect_status: 410: write deny = 410".into()),
        (Some(code), _) => status_of(code)
            .ok_or_else(|| format!("redirect_status: {code}: write 301, 302, 303, 307 or 308"))?,
    };
    Ok(Some(RedirectRule { number, conditions: conditions.clone(), status, action }))
}

impl FilledTarget {
    pub(crate) fn read(
        written: &str,
        conditions: &RequestConditions,
    ) -> Result<FilledTarget, String> {
        let target = UrlTarget::read(written)?;
        let highest = target.captures();
        if highest == 0 {
            return Ok(FilledTarget { target, captures: CaptureSource::None });
        }
        let (captures, known) = match (&*conditions.regex.any, &*conditions.path.any) {
            ([regex], _) => (CaptureSource::Regex(regex.clone()), regex.captures_count()),
            ([], [glob]) if glob.has_one_wildcard() => (CaptureSource::Wildcard(glob.clone()), 1),
            ([], [glob]) => {
                let regex = PathRegex::read(&glob.capturing())?;
                let known = regex.captures_count();
                (CaptureSource::Wildcards(regex), known)
            }
            _ => {
                return Err(format!(
                    "{written:?}: captures need one path_regex, or one path with wildcards"
                ));
            }
        };
        if highest > known {
            return Err(format!("{written:?}: ${highest}: the pattern has {known} captures"));
        }
        Ok(FilledTarget { target, captures })
    }

    /// The captures of a request with this plain path that meets all other conditions of the rule. `None` if
    /// `path_regex`, one of these conditions, does not match: its captures are taken by the comparison itself.
    fn captured<'p>(
        &self,
        path: &'p [u8],
        conditions: &RequestConditions,
    ) -> Option<CapturedTexts<'p>> {
        let regex = &conditions.regex;
        let fits = match &self.captures {
            CaptureSource::Regex(_) => !regex.exclude(path),
            _ => regex.fit(path),
        };
        fits.then(|| self.captures_of(path)).flatten()
    }

    /// Path and query for a request, without the client's query; `None` if the pattern of the captures does not match.
    pub(crate) fn filled(&self, view: &RequestView<'_>) -> Option<String> {
        let path = view.plain_path();
        Some(self.target.filled(&self.captures_of(&path)?))
    }

    fn captures_of<'p>(&self, path: &'p [u8]) -> Option<CapturedTexts<'p>> {
        match &self.captures {
            CaptureSource::None => Some(CapturedTexts::default()),
            CaptureSource::Regex(regex) | CaptureSource::Wildcards(regex) => regex.captures(path),
            CaptureSource::Wildcard(glob) => {
                let mut texts = CapturedTexts::default();
                texts[0] = glob.captured(path)?;
                Some(texts)
            }
        }
    }
}

impl SiteRules {
    /// Whether a file or a rule redirects any request.
    #[inline]
    pub fn has_redirects(&self) -> bool {
        !self.edge.redirects.is_empty() || self.edge.redirect_map.is_some()
    }

    /// The redirect of a request, if a file or a rule has one.
    pub fn redirect(&self, asked: &AccessRequest<'_>) -> Option<Redirect> {
        let (sent, path) = (as_get(asked.sent), asked.plain_path());
        if let Some(map) = &self.edge.redirect_map {
            let query = sent.query();
            let normal = asked.normal.as_ref().map_or(query, RequestView::query);
            if let Some(line) = map.line_of(path, normal) {
                return Some(redirect_of_line(line, query));
            }
        }
        self.first_redirect(&sent, path, |rule| {
            let conditions = &rule.conditions;
            conditions.fit_url_but_regex(&sent, path) && conditions.fit_client(&sent)
        })
    }

    /// The redirect of a request with this plain path by the first rule that matches. `fits` compares all conditions but
    /// `path_regex`.
    pub(crate) fn first_redirect(
        &self,
        view: &RequestView<'_>,
        path: &[u8],
        fits: impl Fn(&RedirectRule) -> bool,
    ) -> Option<Redirect> {
        let mut rules = self.edge.redirects.iter();
        rules.find_map(|rule| fits(rule).then(|| rule.redirect(view, path)).flatten())?
    }

    /// The line for a plain path and a query in its normal form.
    pub(crate) fn line_of(&self, path: &[u8], query: Option<&str>) -> Option<RedirectLine<'_>> {
        self.edge.redirect_map.as_ref()?.line_of(path, query)
    }

    /// Whether a client that sends this request may be redirected: for plain hits. A request in its normal form.
    pub(crate) fn may_redirect(&self, view: &RequestView<'_>) -> bool {
        if !self.has_redirects() {
            return false;
        }
        let view = as_get(*view);
        self.line_of(&view.plain_path(), view.query()).is_some()
            || self.edge.redirects.iter().any(|rule| {
                let acts = match &rule.action {
                    RedirectAction::Exempt => false,
                    RedirectAction::Target(_) => true,
                    RedirectAction::Slash(change) => change.kept(&view).is_some(),
                };
                acts && rule.conditions.fit_url(&view)
            })
    }
}

/// The redirect by a line of a file, for a request with this query.
pub(crate) fn redirect_of_line(line: RedirectLine<'_>, query: Option<&str>) -> Redirect {
    let (status, number) = (line.status, Some(line.number));
    let source = RedirectSource { rule: None, line: number, status, slash: None };
    // The query of a line is a part of the old address.
    let query = query.filter(|_| line.query.is_none());
    let has_target = status != StatusCode::GONE;
    Redirect { source, location: has_target.then(|| location_of_text(line.target, query)) }
}

/// The request as a GET, if it is a HEAD.
pub(crate) fn as_get(view: RequestView<'_>) -> RequestView<'_> {
    let method = if view.method == Method::HEAD { &Method::GET } else { view.method };
    RequestView { method, ..view }
}

impl RedirectRule {
    /// The redirect of a request that meets all conditions but perhaps `path_regex`: `None` if that does not match,
    /// `Some(None)` if the rule leaves the request as it is.
    fn redirect(&self, view: &RequestView<'_>, path: &[u8]) -> Option<Option<Redirect>> {
        let (location, slash) = match &self.action {
            RedirectAction::Target(target) => {
                let captures = target.captured(path, &self.conditions)?;
                (Some(target.target.location(&captures, view.query())), None)
            }
            _ if !self.conditions.regex.fit(path) => return None,
            RedirectAction::Exempt => (None, None),
            RedirectAction::Slash(change) => (change.location(view), Some(*change)),
        };
        let (rule, status) = (Some(self.number), self.status);
        let source = RedirectSource { rule, line: None, status, slash };
        Some(location.map(|location| Redirect { source, location: Some(location) }))
    }

    /// Whether it has `slash`: such a rule comes after all others.
    pub(super) fn is_slash(&self) -> bool {
        matches!(self.action, RedirectAction::Slash(_))
    }
}

impl SlashChange {
    /// The path with a slash at its end, or without; `None` if it is so already, or names a file.
    fn location(self, view: &RequestView<'_>) -> Option<String> {
        let kept = self.kept(view)?;
        let mut location = String::new();
        push_sent(kept, &mut location);
        if self == SlashChange::Add {
            location.push('/');
        }
        let mut location = with_one_slash(location);
        if let Some(query) = view.query() {
            location.push('?');
            push_sent(query, &mut location);
        }
        Some(location)
    }

    /// The path without a slash at its end, if it is changed.
    fn kept<'a>(self, view: &RequestView<'a>) -> Option<&'a str> {
        if *view.method != Method::GET {
            return None;
        }
        let path = view.path();
        let last = path.rsplit('/').next().unwrap_or_default();
        match self {
            SlashChange::Add if !last.is_empty() && !last.contains('.') => Some(path),
            SlashChange::Remove if last.is_empty() && path.len() > 1 => {
                Some(path.trim_end_matches('/'))
            }
            SlashChange::Add | SlashChange::Remove => None,
        }
    }
}
