//! The client that a call assumes (`--client`), as a request of it would be ordered at the origin: its level and the
//! evidence for it, its group, and the result now.
//!
//! The functions that order requests decide; nothing is counted, and no service is asked.

use super::judge::{ExplainVerdict, Judgement};
use super::{ExplainRequest, client, rules};
use config::MissesMode;
use delivery::services::LookUp;
use delivery::visitors;
use exchange::check_limit;
use exchange::steps::RequestStep;
use http::header;
use http_cache::Method as Kind;
use miss_control::{
    ClientLevel, Miss, MissGroup, MissKind, MissOutlook, RateOf, ShownEvidence, address_number,
};
use reasons::Reason;
use serde_json::{Value, json};
use site_rules::{LimitCount, LimitRule};
use telemetry::client::{Client, whole_seconds};

/// The client of the call; null without an address.
pub(super) fn json(asked: &ExplainRequest, judged: &Judgement) -> Value {
    let Some(address) = asked.from else { return Value::Null };
    let (site, headers) = (&asked.site, &asked.headers);
    let client = client(asked);
    let shown = visitors::evidence(site, &client, headers, &asked.target.host);
    let crawler = visitors::verified_crawler(site, &client, headers, LookUp::Never);
    let is_write = Kind::of(&asked.method) == Kind::Unsafe;
    let level = client.level(&shown);
    let refusal = refusal(asked, judged, (&client, level));
    let (kind, level) = match judged.verdict {
        _ if is_write => (MissKind::Write, level.of_write()),
        _ if crawler.is_some() => (MissKind::Crawler, ClientLevel::Known),
        ExplainVerdict::Bypass
            if judged.reason == Some(Reason::Trial) && judged.cookies.is_empty() =>
        {
            (MissKind::Page, level)
        }
        ExplainVerdict::Bypass if headers.contains_key(header::AUTHORIZATION) => {
            (MissKind::Credential, level)
        }
        ExplainVerdict::Bypass => (MissKind::Personal, level),
        _ => (MissKind::Page, level),
    };
    let group = MissGroup::of(kind, &asked.target.path_and_query);
    let (credit, address_number) = (client.credit(level, &shown), address_number(address));
    let miss = Miss { level, credit, group, address: Some(address_number) };
    let needs_origin = matches!(judged.verdict, ExplainVerdict::Render | ExplainVerdict::Bypass);
    let outlook = needs_origin.then(|| site.origin.places().outlook(&miss));
    json!({
        "address": address,
        "level": level.as_str(),
        "evidence": evidence(&shown, level),
        "crawler": crawler.map(|at| &site.config.misses.crawlers[at].name),
        "group": group.to_string(),
        "kind": kind.as_str(),
        "now": refusal.unwrap_or_else(|| match outlook {
            Some(outlook) => sentence(outlook, site.config.misses.mode),
            None => "a request like this one does not need the origin".into(),
        }),
    })
}

/// Whether a rule would refuse the request now, in words. Nothing is counted, and a given password counts as right.
fn refusal(
    asked: &ExplainRequest,
    judged: &Judgement,
    (client, level): (&Client, ClientLevel),
) -> Option<String> {
    let site = &asked.site;
    let (limit, password) = judged.checks;
    let limit_of = |count: LimitCount| limit.filter(|limit| limit.count == count);
    let spent = |limit: LimitRule| {
        let seconds = check_limit((&asked.default_site, site), client, limit).err()?;
        let (rule, rate) = (site.config.rules.named_rule(limit.rule), limit.rate);
        Some(format!(
            "429: the limit of rule {rule}, {rate}, is spent for this client, the next one in {seconds} s"
        ))
    };
    let has_step = |name: &str| judged.steps.contains(&name);
    if has_step("limited")
        && let Some(spent) = limit_of(LimitCount::All).and_then(spent)
    {
        return Some(spent);
    }
    if let Some(number) = password
        && has_step("password")
        && !asked.headers.contains_key(header::AUTHORIZATION)
    {
        return Some(format!(
            "401: rule {} needs a password",
            site.config.rules.named_rule(number)
        ));
    }
    if judged.verdict == ExplainVerdict::Render && judged.waiting.is_some() {
        // It shares the render of another request.
        return None;
    }
    if let Some(spent) = renders_spent(asked, judged, level) {
        return Some(spent);
    }
    let is_sent = rules::later_steps(asked, judged).contains(&"limited-origin");
    let limit = limit_of(LimitCount::Origin).filter(|_| is_sent && !is_hit_of_trial(judged));
    Some(limit.and_then(spent)? + OR_STALE)
}

/// The alternative to a 429 for a page that may be sent stale.
const OR_STALE: &str = " (or a stale page where that is allowed)";

/// Whether the page would be a hit without the trial: such a request is not counted.
fn is_hit_of_trial(judged: &Judgement) -> bool {
    judged.step == RequestStep::Trial && judged.page.is_some()
}

/// Whether the `renders` of a rule are spent, in words.
fn renders_spent(asked: &ExplainRequest, judged: &Judgement, level: ClientLevel) -> Option<String> {
    let (rule, rate) = judged.renders?;
    let is_counted = match judged.verdict {
        ExplainVerdict::Render => true,
        ExplainVerdict::Bypass => {
            let is_trial = judged.step == RequestStep::Trial;
            is_trial || matches!(judged.step, RequestStep::Private | RequestStep::Bypass(_))
        }
        ExplainVerdict::Hit | ExplainVerdict::Stale | ExplainVerdict::Answered => false,
    };
    if !is_counted || is_hit_of_trial(judged) || level == ClientLevel::Confirmed {
        return None;
    }
    let site = &asked.site;
    let wait = site.rates.check(RateOf::Rule(rule), rate, site.clock.monotonic()).err()?;
    let (named, seconds) = (site.config.rules.named_rule(rule), whole_seconds(wait));
    let or_stale = if judged.page.is_some() { OR_STALE } else { "" };
    Some(format!(
        "429: rule {named} (renders = \"{rate}\") is spent, the next one in {seconds} s{or_stale}"
    ))
}

/// The evidence for the level, in words.
fn evidence(shown: &ShownEvidence, level: ClientLevel) -> &'static str {
    match level {
        ClientLevel::Confirmed if shown.is_exempt => "misses.exempt has its address",
        ClientLevel::Confirmed => "the application has confirmed its session",
        ClientLevel::Known if shown.session.is_some() => {
            "a confirmed session with more than two requests a second for the origin"
        }
        ClientLevel::Known if shown.written.is_some() => "it has sent a write just before",
        ClientLevel::Known => "hits and files of its address",
        ClientLevel::Passed => "a ticket, and the challenge has let it pass",
        ClientLevel::Returned => "the ticket of a deferral page",
        ClientLevel::Unknown => "none",
        ClientLevel::OverRate => "none, and more misses of its address than one visitor has",
    }
}

fn sentence(outlook: MissOutlook, mode: MissesMode) -> String {
    match (outlook, mode) {
        (MissOutlook::AtOnce, _) => {
            "a place at the origin is free: it would be sent at once".into()
        }
        (MissOutlook::Deferred, _) => {
            "it would be deferred at once: too many requests of its address wait".into()
        }
        (MissOutlook::QueueFull, _) => "the queue is full (limits.origin_queue)".into(),
        (MissOutlook::Waits(Some(most)), _) => format!(
            "it would wait for its turn, at most {} s, and then be deferred",
            whole_seconds(most)
        ),
        (MissOutlook::Waits(None), MissesMode::Protect) => {
            "it would wait for its turn; it is not deferred".into()
        }
        (MissOutlook::Waits(None), _) => "it would wait in the order of arrival".into(),
    }
}
