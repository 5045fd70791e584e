//! Lists the rules that apply to a request, without the one of the cache: for access, for scripts, for errors, and for
//! the fields of its response; and the steps that its answer passes.
//!
//! Each kind has its own first match; the fields of all matching rules apply.

use super::ExplainRequest;
use super::judge::{ExplainVerdict, Judgement};
use exchange::steps::{AnswerSource, RequestStep, later_step_names};
use forward::rewrites::{self, RoutedRequest};
use forward::{route_of, script_refusal};
use http::StatusCode;
use origin::routes::Route;
use reasons::Reason;
use serde_json::{Value, json};
use site_rules::{AccessRequest, RedirectSource, RequestView, ScriptRefusal};

/// Returns the rules, each with its kind, number and name. An entry that is no rule has no number.
pub(super) fn json(asked: &ExplainRequest, judged: &Judgement) -> Value {
    let rules = &asked.site.config.rules;
    let mut all: Vec<Value> = Vec::new();
    let mut add = |kind: &str, number: usize| {
        let name = rules.rule_name(number);
        all.push(json!({ "kind": kind, "number": number, "name": name }));
    };
    match judged.step {
        RequestStep::Denied(denial) => add("deny", denial.rule),
        RequestStep::Redirected(RedirectSource { rule: Some(number), slash, .. }) => {
            add(if slash.is_some() { "slash" } else { "redirect" }, number);
        }
        _ => {}
    }
    let (limit, password) = judged.checks;
    if let Some(number) = limit {
        add("limit", number);
    }
    if let Some(number) = password {
        add("password", number);
    }
    let routed = RoutedRequest::of_page(&judged.target, &asked.method);
    if !judged.step.is_answered_here()
        && let Some(rewrite) = rewrites::rewrite(&asked.site, &routed)
    {
        add("rewrite", rewrite.rule);
    }
    let target = &judged.target;
    let view = RequestView::of_url(&asked.method, target.scheme, &target.host, target.page());
    let refusal = (judged.reason == Some(Reason::ScriptRefused))
        .then(|| script_refusal(&asked.site, &routed))
        .flatten();
    if let Some(ScriptRefusal::Rule(number)) = refusal {
        add("php", number);
    }
    if judged.reason == Some(Reason::File)
        && let Some(number) = rules.file_cache_rule_of(&view)
    {
        add("file_cache", number);
    }
    rules.field_rules_of(&view).into_iter().for_each(|number| add("response fields", number));
    let other = match refusal {
        Some(ScriptRefusal::NoEntryPoint) => Some("site.entry_points does not name the script"),
        Some(ScriptRefusal::TooManyScripts) => Some("the path names more than 16 scripts"),
        Some(ScriptRefusal::Rule(_)) | None => None,
    };
    let of_script = other.map(|name| json!({ "kind": "php", "number": null, "name": name }));
    let page = error_status(judged).and_then(|status| asked.site.config.error_pages.of(status));
    let of_page = page.map(|page| {
        json!({ "kind": "error page", "number": null, "name": page.path.display().to_string() })
    });
    all.extend(of_script.into_iter().chain(of_page));
    all.into()
}

/// The status of an error of Pagewell that needs no request to the origin.
fn error_status(judged: &Judgement) -> Option<StatusCode> {
    match (judged.step, judged.reason) {
        (RequestStep::Denied(denial), _) => Some(denial.status),
        (RequestStep::Redirected(source), _) => Some(source.status),
        (_, Some(Reason::NotFound | Reason::ScriptRefused)) => Some(StatusCode::NOT_FOUND),
        _ => None,
    }
}

/// Returns the names of the steps that follow the one that answers the request.
pub(super) fn later_steps(asked: &ExplainRequest, judged: &Judgement) -> Vec<&'static str> {
    let site = &asked.site;
    let source = match judged.verdict {
        _ if judged.step.is_answered_here() => AnswerSource::Step,
        ExplainVerdict::Hit | ExplainVerdict::Stale => AnswerSource::Cache,
        ExplainVerdict::Answered if judged.reason == Some(Reason::OnlyIfCached) => {
            AnswerSource::Step
        }
        _ if site.files.is_none() => AnswerSource::Origin,
        _ => match route_of(site, &RoutedRequest::of_page(&judged.target, &asked.method)) {
            Route::Script(_) => AnswerSource::Script,
            _ => AnswerSource::Files,
        },
    };
    later_step_names(source)
}

/// The answer of a rule in words, and the address of the client that is assumed, if a rule depends on it.
pub(super) fn sentence(asked: &ExplainRequest, judged: &Judgement) -> String {
    let answer = match (judged.step, judged.location.as_deref()) {
        (RequestStep::Denied(denial), _) => format!(" The status is {}.", denial.status.as_u16()),
        (RequestStep::Redirected(source), Some(location)) => {
            let of_file = if source.rule.is_none() { ", by a redirect file" } else { "" };
            format!(
                " The status is {}, the new address {location}{of_file}.",
                source.status.as_u16()
            )
        }
        (RequestStep::Redirected(source), None) => {
            format!(" The status is {}, by a redirect file.", source.status.as_u16())
        }
        _ => String::new(),
    };
    let target = &asked.target;
    let path = &target.path_and_query;
    let sent = RequestView::of_url(&asked.method, target.scheme, &target.host, path);
    let request = AccessRequest { sent, normal: None };
    if !asked.site.config.rules.depends_on_address(&request) {
        return answer;
    }
    answer
        + &match asked.from {
            Some(address) => format!(" The client's address is assumed to be {address}."),
            None => " The client is assumed to have no address: name one with --from.".to_owned(),
        }
}
