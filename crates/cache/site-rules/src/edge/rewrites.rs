//! `rewrite`: another script or file below the document root answers a request. The first rule that matches decides,
//! and it is applied once.
//!
//! Invariants: the key of a page, its name for purges and the URL in logs are those of the client, so the conditions
//! must follow from the key: URL, method, and what is on the disk. A rule about the client (`cookie`, `header`, `agent`,
//! `from`) needs `bypass = true`, and counts only for a request whose response is not stored.
//!
//! Not here: whether a file is there, and the route of the new path (`forward::rewrites`).

use super::redirects::{FilledTarget, as_get};
use super::{FileSurroundings, is_edge_rule};
use crate::raw;
use crate::rules::SiteRules;
use rule_conditions::{RequestConditions, RequestView, ResponseConditions};

/// A rule with `rewrite`.
#[derive(Clone, Debug)]
pub(crate) struct RewriteRule {
    pub(crate) number: usize,
    pub(crate) conditions: RequestConditions,
    pub(crate) file: Option<FileCondition>,
    /// `None`: the rule exempts.
    target: Option<FilledTarget>,
    /// The effect on a URL that it fits, as it was written.
    written: Box<str>,
}

/// The condition `file`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileCondition {
    Missing,
    Exists,
}

/// Another path and query, which answer a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rewrite {
    /// The number of the rule.
    pub rule: usize,
    /// The path below the document root, percent-encoded.
    pub path: String,
    /// The query: that of the target, then the client's.
    pub query: String,
}

/// The requests for which a rewrite is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RewriteFor {
    /// Those whose response may be stored. Rules about the client do not count.
    Page,
    /// One whose response is not stored.
    Client,
}

/// Reads the actions of a rule; `None` if it has none of them.
pub(crate) fn read(
    raw: &raw::Rule,
    number: usize,
    conditions: &RequestConditions,
    response: Option<&ResponseConditions>,
    files: Option<&FileSurroundings>,
) -> Result<Option<RewriteRule>, String> {
    let file = match raw.file.as_deref() {
        None => None,
        Some("missing") => Some(FileCondition::Missing),
        Some("exists") => Some(FileCondition::Exists),
        Some(other) => return Err(format!("file: {other:?}: write missing or exists")),
    };
    let written = match &raw.rewrite {
        None if file.is_some() => return Err("file: is a condition for rewrite only".into()),
        None => return Ok(None),
        Some(written) => written,
    };
    if files.is_none() {
        return Err("rewrite: needs site.root: an HTTP origin maps its own paths".into());
    }
    let without = raw::Rule { rewrite: None, file: None, ..raw.clone() };
    if file.is_some() && (is_edge_rule(&without) || raw.store.is_some()) {
        return Err(
            "file: is a condition for rewrite only; write the other actions in a rule of their own"
                .into(),
        );
    }
    if response.is_some() {
        return Err("rewrite: is decided before there is a response, so when_status and when_header cannot be conditions".into());
    }
    if conditions.distinguish_clients() && !raw.bypass {
        return Err("rewrite: the page of a URL would depend on cookie, header, agent or from; add bypass = true, so that it is not stored".into());
    }
    let target = match written {
        raw::RuleTarget::Flag(true) => {
            return Err("rewrite: true: write the target, or false to exempt".into());
        }
        raw::RuleTarget::Flag(false) => None,
        raw::RuleTarget::To(text) => {
            let target = FilledTarget::read(text, conditions)
                .map_err(|error| format!("rewrite: {error}"))?;
            if !target.target.is_plain_path() {
                return Err(format!(
                    "rewrite: {text:?}: write the path of a script or file below the document root; use redirect for another address"
                ));
            }
            Some(target)
        }
    };
    let written = format!("{:?} {:?} {:?} {:?}", raw.rewrite, raw.path, raw.path_regex, file);
    let (conditions, written) = (conditions.clone(), written.into());
    Ok(Some(RewriteRule { number, conditions, file, target, written }))
}

impl SiteRules {
    /// Whether any rule has `rewrite`.
    #[inline]
    pub fn has_rewrites(&self) -> bool {
        !self.edge.rewrites.is_empty()
    }

    /// The rewrite of a request, if a rule has one. `is_file` says whether the path names a file or directory.
    pub fn rewrite(
        &self,
        view: &RequestView<'_>,
        of: RewriteFor,
        is_file: impl FnOnce() -> bool,
    ) -> Option<Rewrite> {
        let view = &as_get(*view);
        let (mut known, mut is_file) = (None, Some(is_file));
        let mut is_file = || *known.get_or_insert_with(|| is_file.take().is_some_and(|ask| ask()));
        let rule = self.edge.rewrites.iter().find(|rule| {
            let counts = of == RewriteFor::Client || !rule.conditions.distinguish_clients();
            counts
                && rule.conditions.fit(view)
                && rule.file.is_none_or(|file| (file == FileCondition::Exists) == is_file())
        })?;
        let filled = rule.target.as_ref()?.filled(view)?;
        let (path, query) = match filled.split_once('?') {
            Some((path, query)) => (path, query),
            None => (&*filled, ""),
        };
        let queries = [query, view.query().unwrap_or_default()].into_iter();
        let query = queries.filter(|query| !query.is_empty()).collect::<Vec<_>>().join("&");
        Some(Rewrite { rule: rule.number, path: path.to_owned(), query })
    }

    /// Whether a rewrite may answer for a file or directory that is there.
    pub fn rewrites_file(&self, view: &RequestView<'_>) -> bool {
        self.edge.rewrites.iter().any(|rule| {
            let RequestConditions { host, path, regex, .. } = &rule.conditions;
            let plain = view.plain_path();
            rule.file != Some(FileCondition::Missing)
                && rule.target.is_some()
                && host.fit(view.host_name().as_bytes())
                && path.fit(&plain)
                && regex.fit(&plain)
        })
    }

    /// Whether these rules rewrite no URL otherwise than `other`.
    pub fn rewrites_as(&self, other: &SiteRules) -> bool {
        let all = |rules: &SiteRules| -> Vec<String> {
            rules.edge.rewrites.iter().map(|rule| format!("{:?}", rule.without_number())).collect()
        };
        all(self) == all(other)
    }

    /// Whether these rules rewrite the page at a URL as `other` does: the same rules fit it, in the same order.
    pub fn rewrites_page_as(&self, other: &SiteRules, view: &RequestView<'_>) -> bool {
        fn of<'r>(rules: &'r SiteRules, view: &RequestView<'_>) -> Vec<&'r str> {
            let fits = |rule: &&RewriteRule| {
                !rule.conditions.distinguish_clients() && rule.conditions.fit_url(view)
            };
            rules.edge.rewrites.iter().filter(fits).map(|rule| &*rule.written).collect()
        }
        of(self, view) == of(other, view)
    }
}

impl RewriteRule {
    fn without_number(&self) -> RewriteRule {
        RewriteRule { number: 0, ..self.clone() }
    }
}
