//! Lists the rules that apply to a request, without the one of the cache: for access, for scripts, and for the fields of
//! its response.
//!
//! Each kind has its own first match; the fields of all matching rules apply.

use super::ExplainRequest;
use super::judge::Judgement;
use exchange::steps::RequestStep;
use forward::script_refusal;
use reasons::Reason;
use serde_json::{Value, json};
use site_rules::{RequestView, ScriptRefusal};

/// Returns the rules, each with its kind, number and name.
pub(super) fn json(asked: &ExplainRequest, judged: &Judgement) -> Value {
    let rules = &asked.site.config.rules;
    let mut all: Vec<(&str, usize)> = Vec::new();
    if let RequestStep::Denied(denial) = judged.step {
        all.push(("deny", denial.rule));
    }
    let (limit, password) = judged.checks;
    all.extend(limit.map(|number| ("limit", number)));
    all.extend(password.map(|number| ("password", number)));
    if let RequestStep::Redirected(redirect) = judged.step
        && let Some(number) = redirect.rule
    {
        all.push((if redirect.slash.is_some() { "slash" } else { "redirect" }, number));
    }
    if judged.reason == Some(Reason::ScriptRefused)
        && let Some(ScriptRefusal::Rule(number)) = script_refusal(&asked.site, &judged.target)
    {
        all.push(("php", number));
    }
    let target = &judged.target;
    let view = RequestView::of_url(&asked.method, target.scheme, &target.host, target.page());
    all.extend(rules.field_rules_of(&view).into_iter().map(|number| ("response fields", number)));
    let rows = all.into_iter().map(
        |(kind, number)| json!({ "kind": kind, "number": number, "name": rules.rule_name(number) }),
    );
    rows.collect()
}
