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
use super::targets::{UrlTarget, push_sent, with_one_slash};
use crate::raw;
use crate::regexes::pattern;
use crate::rule::{Conditions, ResponseConditions};
use crate::rules::SiteRules;
use crate::view::RequestView;
use http::{Method, StatusCode};
use regex::bytes::Regex;

/// A rule with `redirect` or `slash`.
#[derive(Clone, Debug)]
pub(crate) struct RedirectRule {
    pub(crate) number: usize,
    pub(crate) conditions: Conditions,
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

/// A target, and the pattern of its captures if it has any.
#[derive(Clone, Debug)]
pub(crate) struct FilledTarget {
    pub(crate) target: UrlTarget,
    captures: Option<Regex>,
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
    conditions: &Conditions,
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
            .ok_or_else(|| format!("redirect_status: {code}: 301, 302, 303, 307 or 308"))?,
    };
    Ok(Some(RedirectRule { number, conditions: conditions.clone(), status, action }))
}

impl FilledTarget {
    pub(crate) fn read(written: &str, conditions: &Conditions) -> Result<FilledTarget, String> {
        let target = UrlTarget::read(written)?;
        let highest = target.captures();
        if highest == 0 {
            return Ok(FilledTarget { target, captures: None });
        }
        let captures = match (&*conditions.regex.any, &*conditions.path.any) {
            ([regex], _) => regex.clone(),
            ([], [glob]) => pattern(&glob.capturing())?,
            _ => {
                return Err(format!(
                    "{written:?}: captures need one path_regex, or one path with wildcards"
                ));
            }
        };
        let known = captures.captures_len() - 1;
        if highest > known {
            return Err(format!("{written:?}: ${highest}: the pattern has {known} captures"));
        }
        Ok(FilledTarget { target, captures: Some(captures) })
    }

    /// The value of `Location` for a request; `None` if the pattern of the captures does not match.
    pub(crate) fn location(&self, view: &RequestView<'_>) -> Option<String> {
        self.with_captures(view, |captures| self.target.location(captures, view.query()))
    }

    /// Path and query for a request, without the client's query.
    pub(crate) fn filled(&self, view: &RequestView<'_>) -> Option<String> {
        self.with_captures(view, |captures| self.target.filled(captures))
    }

    fn with_captures(
        &self,
        view: &RequestView<'_>,
        fill: impl Fn(&[&[u8]]) -> String,
    ) -> Option<String> {
        let Some(pattern) = &self.captures else { return Some(fill(&[])) };
        let path = view.plain_path();
        let captures = pattern.captures(&path)?;
        let texts = captures.iter().skip(1).map(|one| one.map_or(&b""[..], |one| one.as_bytes()));
        Some(fill(&texts.collect::<Vec<_>>()))
    }
}

impl SiteRules {
    /// The redirect of a request, if a file or a rule has one.
    pub fn redirect(&self, asked: &AccessRequest<'_>) -> Option<Redirect> {
        let (sent, normal) = (as_get(asked.sent), asked.normal.unwrap_or(asked.sent));
        if let Some(line) = self.line_of(&sent, normal.query()) {
            return Some(redirect_of_line(line, sent.query()));
        }
        self.first_redirect(&sent, |rule| rule.conditions.fit(&sent))
    }

    /// The redirect by the first rule that matches, with `slash` last.
    pub(crate) fn first_redirect(
        &self,
        view: &RequestView<'_>,
        fits: impl Fn(&RedirectRule) -> bool,
    ) -> Option<Redirect> {
        let is_slash = |rule: &&RedirectRule| matches!(rule.action, RedirectAction::Slash(_));
        let rules = || self.edge.redirects.iter().filter(|rule| fits(rule));
        let first = rules().find(|rule| !is_slash(rule));
        first.or_else(|| rules().find(is_slash))?.redirect(view)
    }

    pub(crate) fn line_of(
        &self,
        view: &RequestView<'_>,
        query: Option<&str>,
    ) -> Option<RedirectLine<'_>> {
        self.edge.redirect_map.as_ref()?.line_of(&view.plain_path(), query)
    }

    /// Whether a client that sends this request may be redirected: for plain hits. A request in its normal form.
    pub(crate) fn may_redirect(&self, view: &RequestView<'_>) -> bool {
        if self.edge.redirects.is_empty() && self.edge.redirect_map.is_none() {
            return false;
        }
        let view = as_get(*view);
        self.line_of(&view, view.query()).is_some()
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
    let source = RedirectSource { rule: None, status: line.status, slash: None };
    let target = UrlTarget::read(line.target).ok();
    // The query of a line is a part of the old address.
    let query = query.filter(|_| line.query.is_none());
    Redirect { source, location: target.map(|target| target.location(&[], query)) }
}

/// The request as a GET, if it is a HEAD.
pub(crate) fn as_get(view: RequestView<'_>) -> RequestView<'_> {
    let method = if view.method == Method::HEAD { &Method::GET } else { view.method };
    RequestView { method, ..view }
}

impl RedirectRule {
    fn redirect(&self, view: &RequestView<'_>) -> Option<Redirect> {
        let (location, slash) = match &self.action {
            RedirectAction::Exempt => return None,
            RedirectAction::Target(target) => (target.location(view)?, None),
            RedirectAction::Slash(change) => (change.location(view)?, Some(*change)),
        };
        let source = RedirectSource { rule: Some(self.number), status: self.status, slash };
        Some(Redirect { source, location: Some(location) })
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
