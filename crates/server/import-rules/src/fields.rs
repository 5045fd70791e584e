//! Changes of response fields, in the terms of Pagewell: fields that belong to it are left out, with the reason.
//!
//! Not here: the directives that set them, which differ (`apache::answers`, `nginx::answers`).

use crate::draft::{RuleDraft, string};
use crate::report::Judgements;
use crate::source::Directive;

/// Fields that Pagewell writes itself.
const OWN_FIELDS: [&str; 12] = [
    "vary",
    "content-encoding",
    "content-length",
    "connection",
    "keep-alive",
    "date",
    "age",
    "transfer-encoding",
    "etag",
    "last-modified",
    "expires",
    "x-fastcgi-cache",
];

/// The fields that a rule changes.
#[derive(Debug, Clone, Default)]
pub(crate) struct FieldChanges {
    set: Vec<(String, String)>,
    added: Vec<(String, String)>,
    removed: Vec<String>,
    file_cache: Vec<String>,
}

impl FieldChanges {
    /// Adds a field. `is_set`: it replaces that of the application.
    pub(crate) fn add(
        &mut self,
        judgements: &mut Judgements,
        of: &Directive,
        name: &str,
        value: &str,
        is_set: bool,
    ) {
        let lower = name.to_ascii_lowercase();
        let value = value.trim();
        if lower == "cache-control" {
            for directive in value.split(',').map(str::trim).filter(|one| !one.is_empty()) {
                self.lifetime(&directive.to_ascii_lowercase());
            }
            judgements.translated_but(of, "for files: pages keep the Cache-Control of PHP");
        } else if OWN_FIELDS.contains(&lower.as_str()) {
            judgements.built_in_but(of, "Pagewell writes this field itself");
        } else if matches!(
            lower.as_str(),
            "set-cookie" | "location" | "www-authenticate" | "content-range"
        ) {
            judgements.not_translated(of, "a rule cannot set this field");
        } else if value.contains(['$', '%']) || !value.bytes().all(|b| (0x20..0x7f).contains(&b)) {
            judgements.not_translated(of, "the value has a variable or a special character");
        } else if value.is_empty() {
            self.remove(name);
            judgements.translated(of);
        } else {
            let list = if is_set && lower != "link" { &mut self.set } else { &mut self.added };
            list.retain(|(known, _)| !known.eq_ignore_ascii_case(name) || lower == "link");
            list.push((name.to_owned(), value.to_owned()));
            judgements.translated(of);
        }
    }

    /// Removes a field of the application.
    pub(crate) fn remove(&mut self, name: &str) {
        let own = ["set-cookie", "cache-control", "vary", "expires"];
        if !own.contains(&name.to_ascii_lowercase().as_str()) {
            self.removed.push(name.to_owned());
        }
    }

    /// Adds a directive of `Cache-Control` for files.
    pub(crate) fn lifetime(&mut self, directive: &str) {
        let name = directive.split('=').next().unwrap_or_default();
        if !self.file_cache.iter().any(|known| known.split('=').next() == Some(name)) {
            self.file_cache.push(directive.to_owned());
        }
    }

    /// The rule with these changes, if there are any.
    pub(crate) fn rule(&self, mut rule: RuleDraft) -> Option<RuleDraft> {
        let table = |all: &[(String, String)]| {
            let rows: Vec<_> = all
                .iter()
                .map(|(name, value)| format!("{} = {}", string(name), string(value)))
                .collect();
            format!("{{ {} }}", rows.join(", "))
        };
        if !self.file_cache.is_empty() {
            rule = rule.with("file_cache", string(&self.file_cache.join(", ")));
        }
        if !self.set.is_empty() {
            rule = rule.with("set_headers", table(&self.set));
        }
        if !self.added.is_empty() {
            // Several lines of one name are a list; the importer writes only the last.
            let mut last: Vec<(String, String)> = Vec::new();
            for (name, value) in &self.added {
                last.retain(|(known, _)| known != name);
                last.push((name.clone(), value.clone()));
            }
            rule = rule.with("add_headers", table(&last));
        }
        if !self.removed.is_empty() {
            rule = rule.with("remove_headers", crate::draft::words(&self.removed));
        }
        (!rule.actions.is_empty()).then_some(rule)
    }
}

/// Whether proxies set this field to describe the client or its request.
pub(crate) fn is_from_proxies(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.starts_with("x-forwarded-")
        || matches!(&*name, "forwarded" | "x-real-ip" | "client-ip" | "x-client-ip")
        || matches!(&*name, "true-client-ip" | "cf-connecting-ip" | "cf-visitor" | "x-https")
}
