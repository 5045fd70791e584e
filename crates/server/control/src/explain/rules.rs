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
use rule_conditions::RequestView;
use serde_json::{Value, json};
use site_rules::{AccessRequest, LimitCount, RedirectSource, ScriptRefusal};

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
    if let Some(limit) = limit {
        add("limit", limit.rule);
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

/// The line of a redirect file in words, if the redirect is one.
fn of_line(asked: &ExplainRequest, source: RedirectSource) -> String {
    let place = source.line.and_then(|line| asked.site.config.redirect_files.places.of(line));
    place.map(|(path, line)| format!(", by line {line} of {}", path.display())).unwrap_or_default()
}

/// The checks that the request has to pass, in words, with the answers to requests that do not. The explanation is about
/// one that does.
fn of_checks(asked: &ExplainRequest, judged: &Judgement) -> String {
    let (limit, password) = judged.checks;
    let rule = |number: usize| format!("Rule {}", asked.site.config.rules.named_rule(number));
    let is_reached = |step: &str| judged.steps.contains(&step);
    let of_limit = limit.and_then(|limit| {
        let (counted, otherwise) = match limit.count {
            LimitCount::All => is_reached("limited").then_some(("", ""))?,
            LimitCount::Origin => later_steps(asked, judged)
                .contains(&"limited-origin")
                .then_some((" at the origin", ", or a stale page where that is allowed"))?,
        };
        let (rule, rate, burst) = (rule(limit.rule), limit.rate, limit.rate.burst);
        Some(format!(
            " {rule} limits each client to {rate}{counted}, {burst} at once: a request beyond gets a 429{otherwise}."
        ))
    });
    let of_password = password.filter(|_| is_reached("password")).map(|number| {
        format!(" {} needs a password: a request without one gets a 401.", rule(number))
    });
    let is_rendered = matches!(judged.verdict, ExplainVerdict::Render | ExplainVerdict::Bypass);
    let of_renders = judged.renders.filter(|_| is_rendered).map(|(number, rate)| {
        format!(
            " {} has renders = \"{rate}\": a request beyond gets a stale page or a 429.",
            rule(number)
        )
    });
    of_limit.unwrap_or_default()
        + &of_password.unwrap_or_default()
        + &of_renders.unwrap_or_default()
}

/// The answer of a rule in words, and the address of the client that is assumed, if a rule depends on it.
pub(super) fn sentence(asked: &ExplainRequest, judged: &Judgement) -> String {
    let answer = match (judged.step, judged.location.as_deref()) {
        (RequestStep::Denied(denial), _) => format!(" The status is {}.", denial.status.as_u16()),
        (RequestStep::Redirected(source), location) => {
            let (status, by) = (source.status.as_u16(), of_line(asked, source));
            let to = location.map(|location| format!(", the new address {location}"));
            format!(" The status is {status}{}{by}.", to.unwrap_or_default())
        }
        _ => String::new(),
    };
    let answer = answer + &of_checks(asked, judged);
    let target = &asked.target;
    let path = &target.path_and_query;
    let sent = RequestView::of_url(&asked.method, target.scheme, &target.host, path);
    let rules = &asked.site.config.rules;
    if !rules.depends_on_address(&AccessRequest::new(rules, sent, None)) {
        return answer;
    }
    answer
        + &match asked.from {
            Some(address) => format!(" The client's address is assumed to be {address}."),
            None => " The client is assumed to have no address: name one with --client.".to_owned(),
        }
}
