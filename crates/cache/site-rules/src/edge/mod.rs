//! Rules that do not concern the cache: access (`deny`, `limit`, `auth_file`), scripts (`php`,
//! `site.entry_points`), and the fields of
//! responses. Each kind has its own list, and its own first match; the fields of all matching rules apply.
//!
//! | file | contents |
//! |---|---|
//! | `read` | reads the keys of these kinds, and refuses contradictions |
//! | `paths` | the forms of a path, and what matches them |
//! | `access` | `deny` |
//! | `checks` | `limit`, `auth_file` |
//! | `redirects`, `targets` | `redirect`, `slash`, and the form of their targets |
//! | `redirect_map` | the lines of redirect files |
//! | `redirect_chains` | chains of redirects that never end |
//! | `redirect_faults` | messages about them |
//! | `rewrites` | `rewrite`, `file` |
//! | `scripts` | `php`, `site.entry_points` |
//! | `response_fields` | `set_headers`, `add_headers`, `remove_headers`, `file_cache` |
//! | `unreached` | rules that no request reaches |
//!
//! The order of the kinds is in `exchange::steps`.

mod access;
mod checks;
mod paths;
mod read;
mod redirect_chains;
mod redirect_faults;
mod redirect_map;
mod redirects;
mod response_fields;
mod rewrites;
mod scripts;
mod targets;
mod unreached;

pub use access::{AccessRequest, Denial, PageAccess};
pub use checks::{AuthRule, LimitCount, LimitRule};
pub use read::FileSurroundings;
pub use redirect_faults::RedirectFault;
pub use redirect_map::{AddedLine, RedirectMap};
pub use redirects::{Redirect, RedirectSource, SlashChange};
pub use rewrites::{Rewrite, RewriteFor};
pub use scripts::{ScriptPath, ScriptRefusal};

pub(crate) use read::{complete, is_access_rule, is_edge_rule, read};

use crate::raw::named;
use crate::rules::SiteRules;
use access::AccessRule;
use checks::Check;
use redirects::RedirectRule;
use response_fields::FieldRule;
use rewrites::RewriteRule;
use rule_conditions::RequestView;
use scripts::{EntryPoints, ScriptRule};
use std::sync::Arc;

/// The rules of a site that do not concern the cache.
#[derive(Clone, Debug, Default)]
pub(crate) struct EdgeRules {
    access: Vec<AccessRule>,
    limits: Vec<Check<LimitRule>>,
    auth: Vec<Check<AuthRule>>,
    /// Whether a rule may refuse a request that a cached page could answer.
    may_refuse: bool,
    /// Those with `slash` are the last.
    redirects: Vec<RedirectRule>,
    redirect_map: Option<Arc<RedirectMap>>,
    /// Whether a rule may answer a request instead of a page or file.
    may_answer: bool,
    /// Whether one of those rules has a condition on the host.
    answers_by_host: bool,
    rewrites: Vec<RewriteRule>,
    scripts: Vec<ScriptRule>,
    entry_points: Option<EntryPoints>,
    /// The endings of scripts that the site names (`site.scripts`).
    script_endings: Vec<Box<str>>,
    fields: Vec<FieldRule>,
    fields_follow_path: bool,
    fields_print: u64,
    /// The names of all rules, if they have one.
    names: Vec<Option<Box<str>>>,
    /// Warnings about methods that no application is known to use.
    unusual_methods: Vec<String>,
}

impl EdgeRules {
    fn rule_name(&self, number: usize) -> Option<&str> {
        self.names.get(number.checked_sub(1)?)?.as_deref()
    }

    pub(crate) fn named_rule(&self, number: usize) -> String {
        named(number, self.rule_name(number))
    }
}

impl SiteRules {
    /// Adds the lines of redirect files.
    pub fn set_redirect_map(&mut self, map: RedirectMap) {
        self.edge.redirect_map = (!map.is_empty()).then(|| Arc::new(map));
        self.edge.may_answer = self.has_access_rules() || self.has_redirects();
    }

    /// Warnings about conditions on methods that are probably misspelled. Any method may be used in HTTP.
    pub fn unusual_methods(&self) -> &[String] {
        &self.edge.unusual_methods
    }

    /// The lines of redirect files, if there are any.
    pub fn redirect_map(&self) -> Option<&RedirectMap> {
        self.edge.redirect_map.as_deref()
    }

    /// Whether the host makes a difference to [`page_access`](Self::page_access). If not, that follows from method, path
    /// and query.
    pub fn answers_by_host(&self) -> bool {
        self.edge.answers_by_host
    }

    /// Whether any request may be answered by a rule: by a refusal or a redirect.
    #[inline]
    pub fn may_answer(&self) -> bool {
        self.edge.may_answer
    }

    /// Which clients get the page, if no rule answers any of them but for a missing password: for plain hits. A request in
    /// its normal form.
    pub fn page_access(&self, view: RequestView<'_>) -> Option<PageAccess> {
        let access = self.access_of_all(&AccessRequest::new(self, view, None));
        access.filter(|_| !self.may_redirect(&view))
    }

    /// The name of the rule with this number, if it has one.
    pub fn rule_name(&self, number: usize) -> Option<&str> {
        self.edge.rule_name(number)
    }

    /// The number of a rule, with its name if it has one: `3 (admin)`.
    pub fn named_rule(&self, number: usize) -> String {
        self.edge.named_rule(number)
    }
}
