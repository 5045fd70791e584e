//! The client that a call assumes (`--client`), as a request of it would be ordered at the origin: its level and the
//! evidence for it, its group, and the result now.
//!
//! The functions that order requests decide; nothing is counted, and no service is asked.

use super::judge::{ExplainVerdict, Judgement};
use super::{ExplainRequest, client};
use config::MissesMode;
use delivery::services::LookUp;
use delivery::visitors;
use http::header;
use http_cache::Method as Kind;
use miss_control::{
    ClientLevel, Miss, MissGroup, MissKind, MissOutlook, ShownEvidence, address_number,
};
use serde_json::{Value, json};

/// The client of the call; null without an address.
pub(super) fn json(asked: &ExplainRequest, judged: &Judgement) -> Value {
    let Some(address) = asked.from else { return Value::Null };
    let (site, headers) = (&asked.site, &asked.headers);
    let client = client(asked);
    let shown = visitors::evidence(site, &client, headers, &asked.target.host);
    let crawler = visitors::verified_crawler(site, &client, headers, LookUp::Never);
    let is_write = Kind::of(&asked.method) == Kind::Unsafe;
    let level = client.level(&shown);
    let (kind, level) = match judged.verdict {
        _ if is_write => (MissKind::Write, level.of_write()),
        _ if crawler.is_some() => (MissKind::Crawler, ClientLevel::Known),
        ExplainVerdict::Bypass if headers.contains_key(header::AUTHORIZATION) => {
            (MissKind::Credential, level)
        }
        ExplainVerdict::Bypass => (MissKind::Personal, level),
        _ => (MissKind::Page, level),
    };
    let group = MissGroup::of(kind, &asked.target.path_and_query);
    let miss = Miss { level, group, address: Some(address_number(address)) };
    let needs_origin = matches!(judged.verdict, ExplainVerdict::Render | ExplainVerdict::Bypass);
    let outlook = needs_origin.then(|| site.origin.places().outlook(&miss));
    json!({
        "address": address,
        "level": level.as_str(),
        "evidence": evidence(&shown, level),
        "crawler": crawler.map(|at| &site.config.misses.crawlers[at].name),
        "group": group.to_string(),
        "kind": kind.as_str(),
        "now": outlook.map_or("a request like this one does not need the origin".into(), |outlook| {
            sentence(outlook, site.config.misses.mode)
        }),
    })
}

/// The evidence for the level, in words.
fn evidence(shown: &ShownEvidence, level: ClientLevel) -> &'static str {
    match level {
        ClientLevel::Confirmed if shown.is_exempt => "misses.exempt has its address",
        ClientLevel::Confirmed => "the application has confirmed its session",
        ClientLevel::Known | ClientLevel::KnownAgain if shown.session.is_some() => {
            "a confirmed session with more than two requests a second for the origin"
        }
        ClientLevel::Known | ClientLevel::KnownAgain if shown.written.is_some() => {
            "it has sent a write just before"
        }
        ClientLevel::Known | ClientLevel::KnownAgain => "hits and files of its address",
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
            most.as_secs_f32()
        ),
        (MissOutlook::Waits(None), MissesMode::Protect) => {
            "it would wait for its turn; it is not deferred".into()
        }
        (MissOutlook::Waits(None), _) => "it would wait in the order of arrival".into(),
    }
}
