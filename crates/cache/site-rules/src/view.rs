//! A request as the rules see it, and as the origin and the variants of a page see it under its plan:
//! without cookies that do not count, and with device and language replaced by their class.
//!
//! Invariant: for a page that may be shared, the origin gets only what [`PlannedFields`] returns. The page can
//! therefore depend only on its key and on its nominated fields. Fields that are usually not forwarded
//! (`fields`) are returned as well, so that requests differ by them if `Vary` names one.

use crate::agent::Agent;
use crate::compile::SiteRules;
use crate::cookies::pairs;
use crate::fields::is_of_phone;
use crate::plan::{NOWHERE, Plan};
use http::Method;
use http_cache::Fields;
use std::borrow::Cow;

/// The properties of a request that the rules read.
#[derive(Clone, Copy)]
pub struct RequestView<'a> {
    /// The method of the request.
    pub method: &'a Method,
    /// The scheme: `http` or `https`.
    pub scheme: &'a str,
    /// Host as in the key.
    pub host: &'a str,
    /// Path and query, normalised.
    pub path_and_query: &'a str,
    /// The header lines that may be forwarded to the origin.
    pub fields: &'a dyn Fields,
    /// Whether the connection comes from a trusted proxy.
    pub peer: Peer,
}

/// The peer of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// A proxy that the site trusts.
    Trusted,
    /// Any other client or proxy.
    Anybody,
}

impl<'a> RequestView<'a> {
    /// The host without its port.
    pub(crate) fn host_name(&self) -> &'a str {
        match self.host.rfind(':') {
            Some(at) if !self.host[at..].contains(']') => &self.host[..at],
            _ => self.host,
        }
    }

    pub(crate) fn query(&self) -> Option<&'a str> {
        self.path_and_query.split_once('?').map(|(_, query)| query)
    }

    /// The path as an application reads it: decoded, without doubled slashes and dot segments. An unusual
    /// spelling of a path therefore does not evade a rule.
    pub(crate) fn plain_path(&self) -> Cow<'a, [u8]> {
        let path = self.path_and_query.split('?').next().unwrap_or_default();
        if !path.contains('%') && !path.contains("//") && !path.contains("/.") {
            return Cow::Borrowed(path.as_bytes());
        }
        let decoded = decode(path.as_bytes());
        let mut segments: Vec<&[u8]> = Vec::new();
        let last = decoded.split(|byte| *byte == b'/').next_back().unwrap_or_default();
        for segment in decoded.split(|byte| *byte == b'/') {
            match segment {
                b"" | b"." => {}
                b".." => drop(segments.pop()),
                segment => segments.push(segment),
            }
        }
        let mut plain = Vec::with_capacity(decoded.len());
        for segment in &segments {
            plain.push(b'/');
            plain.extend_from_slice(segment);
        }
        if segments.is_empty() || matches!(last, b"" | b"." | b"..") {
            plain.push(b'/');
        }
        Cow::Owned(plain)
    }
}

/// Decodes percent-encoded bytes.
pub(crate) fn decode(path: &[u8]) -> Vec<u8> {
    let digit = |at: usize| char::from(*path.get(at)?).to_digit(16).map(|digit| digit as u8);
    let (mut decoded, mut at) = (Vec::with_capacity(path.len()), 0);
    while let Some(byte) = path.get(at) {
        let escaped = (*byte == b'%').then(|| digit(at + 1).zip(digit(at + 2))).flatten();
        decoded.push(escaped.map_or(*byte, |(high, low)| high << 4 | low));
        at += if escaped.is_some() { 3 } else { 1 };
    }
    decoded
}

/// The header lines of a request under a plan.
#[derive(Clone, Copy)]
pub struct PlannedFields<'a> {
    rules: &'a SiteRules,
    plan: Plan,
    fields: &'a dyn Fields,
    /// Whether the device is fixed although the plan does not distinguish devices.
    fixes_device: bool,
}

impl<'a> PlannedFields<'a> {
    /// The lines of `fields` under `plan`.
    pub fn new(rules: &'a SiteRules, plan: Plan, fields: &'a dyn Fields) -> PlannedFields<'a> {
        let fixes_device = rules.fixes_device(&plan);
        PlannedFields { rules, plan, fields, fixes_device }
    }

    /// The same lines with the client's own device, for a response that only this client gets.
    pub fn of_client(self) -> PlannedFields<'a> {
        PlannedFields { fixes_device: false, ..self }
    }

    /// The names of the fields that the plan changes. A request that is forwarded under the plan must use
    /// these lines.
    pub fn changed(&self) -> impl Iterator<Item = &'a str> {
        let is_device = self.plan.device.is_some() || self.fixes_device;
        let device = is_device.then_some("user-agent");
        let language = self.plan.language.map(|_| "accept-language");
        let country = self.rules.country_header(&self.plan);
        let accept = self.plan.device.map(|_| "accept");
        [Some("cookie"), device, accept, language, country].into_iter().flatten()
    }
}

impl Fields for PlannedFields<'_> {
    fn values<'b>(&'b self, name: &str, visit: &mut dyn FnMut(&'b [u8])) {
        match (name, self.plan.device, self.plan.language) {
            // Each cookie is visited separately, so the result does not depend on the cookies left out
            // between them.
            ("cookie", _, _) => self.fields.values("cookie", &mut |line| {
                for pair in pairs(line).filter(|pair| self.rules.counts(&self.plan, &pair.name)) {
                    visit(pair.written);
                }
            }),
            ("user-agent", Some(device), _) => visit(device.user_agent().as_bytes()),
            ("user-agent", None, _) if self.fixes_device => {
                visit(Agent::of(self.fields).device().user_agent().as_bytes());
            }
            ("accept", Some(_), _) => self.fields.values("accept", &mut |line| {
                visit(if is_of_phone(line) { b"*/*" } else { line });
            }),
            ("accept-language", _, Some(at)) => {
                if let Some(language) = self.rules.language(&self.plan, at) {
                    visit(language.as_bytes());
                }
            }
            _ if self.rules.country_header(&self.plan) == Some(name) => {
                if let Some(country) = self.plan.country.as_ref().filter(|at| **at != NOWHERE) {
                    visit(country);
                }
            }
            _ if !self.rules.may_send_field(&self.plan, name) => {}
            _ => self.fields.values(name, visit),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_spelling_of_a_path_gets_around_a_rule() {
        let none: &[(&[u8], &[u8])] = &[];
        for (path, plain) in [
            ("/a/b?c", "/a/b"),
            ("/%61/b", "/a/b"),
            ("//a///b/", "/a/b/"),
            ("/x/../a/./b", "/a/b"),
            ("/a/b/..", "/a/"),
            ("/%2e%2e/a", "/a"),
            ("/a%2Fb", "/a/b"),
            ("/%zz%4", "/%zz%4"),
            ("/%+1%1+", "/%+1%1+"),
            ("/..", "/"),
        ] {
            let view = RequestView {
                method: &Method::GET,
                scheme: "http",
                host: "a:80",
                path_and_query: path,
                fields: &none,
                peer: Peer::Anybody,
            };
            assert_eq!(view.plain_path(), plain.as_bytes(), "{path}");
            assert_eq!(view.host_name(), "a");
        }
    }
}
