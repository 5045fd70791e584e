//! A request as the origin and the variants of a page see it under its plan: without cookies that do not
//! count, and with device and language replaced by their class.
//!
//! Invariant: for a page that may be shared, the origin gets only what [`PlannedFields`] returns. The page can
//! therefore depend only on its key and on its nominated fields. Fields that are usually not forwarded
//! (`fields`) are returned as well, so that requests differ by them if `Vary` names one.

use crate::fields::is_of_phone;
use crate::plan::{NOWHERE, Plan};
use crate::rules::SiteRules;
use http::header::USER_AGENT;
use http_cache::Fields;
use http_cache::variants::NominatedFields;
use http_fields::cookies::pairs;
use rule_conditions::Agent;

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

/// Whether a page with these nominated fields is the one for plain clients: it varies by nothing but the class of
/// the device, and is for desktops.
pub fn is_of_desktops(nominated: &NominatedFields) -> bool {
    let desktop = Agent::Desktop.user_agent().as_bytes();
    nominated.cookies().len() == 0
        && nominated.fields().all(|(name, value)| *name == USER_AGENT && value == Some(desktop))
}
