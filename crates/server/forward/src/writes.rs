//! Unsafe requests. Their invalidations take effect before the client gets the response.
//! Invalidated are the target URI, Location and Content-Location (RFC 9111 section 4.4), the
//! response's groups (RFC 9875 section 3), and the sender's private copies. If it is unknown
//! whether the request was executed, the target is invalidated, too (decision 0032).

use crate::client_gone;
use crate::owner_copies;
use crate::send::{collect_content, send_collected};
use delivery::site::Site;
use history::ChangeSource;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use http_cache::tags::{self, GroupInvalidation, TagsRefused};
use http_cache::{Failure, Method as Kind};
use origin::{OriginRequest, OriginResponse, Unsent};
use page_store::{ChangeTarget as Changed, Strength};
use reasons::Reason;
use request_values::target::TargetUri;
use rule_conditions::RequestView;
use site_state::pending_changes::PendingChange;
use site_state::propagation::Propagation;
use std::sync::Arc;
use telemetry::client::Client;
use telemetry::request_fields::AsSent;
use telemetry::request_fields::view_of;
use telemetry::traces::Trace;
use tokio::task::JoinError;

/// Sends an unsafe request and applies its invalidations, even if the client disconnects, because
/// the application has executed it.
///
/// # Errors
/// The task that sends the request has panicked.
pub async fn send(
    site: &Arc<Site>,
    outgoing: OriginRequest,
    target: TargetUri,
    client: &Client,
    head: Arc<http::request::Parts>,
) -> Result<Result<(OriginResponse, Propagation), (Unsent, Propagation)>, JoinError> {
    client_gone::to_its_end(write(site.clone(), outgoing, target, client.clone(), head)).await
}

async fn write(
    site: Arc<Site>,
    mut outgoing: OriginRequest,
    target: TargetUri,
    client: Client,
    head: Arc<http::request::Parts>,
) -> Result<(OriginResponse, Propagation), (Unsent, Propagation)> {
    if let Err(unsent) = collect_content(&site, &mut outgoing).await {
        // Nothing was done, and nothing is acknowledged.
        return Err((unsent, Propagation::NotNeeded));
    }
    let pending = PendingChange::begin(site.state()).await;
    let reached = outgoing.progress.clone();
    let sent = send_collected(&site, &mut outgoing).await;
    // Also without a response, because the application may have written data.
    owner_copies::wrote(&site, &head.headers, sent.as_ref().ok());
    let mut response = match sent {
        Ok(response) => response,
        Err(unsent) => {
            if reached.may_have() && !matches!(unsent, Unsent::Failed(Failure::Refused)) {
                let (nothing, failed) = (HeaderMap::new(), StatusCode::BAD_GATEWAY);
                if reached.was_too_long() {
                    log_unreadable(&target, Reason::HeadTooLarge);
                    let cause = ChangeSource::response(&head.method, &target.uri());
                    site.changes().apply(&[Changed::Everything], Strength::Drop, cause);
                } else {
                    invalidate(&site, (&head.method, &target), failed, &nothing);
                }
            }
            return Err((unsent, pending.acknowledge().await));
        }
    };
    invalidate(&site, (&head.method, &target), response.status, &response.headers);
    let waits = client.extras.trace.as_ref().map(Trace::waits);
    let committed = change_sources::barrier(site.state(), &site.sources).await;
    let waited = pending.acknowledge_after(committed).await;
    if let Some(waits) = waits.filter(|_| waited != Propagation::NotNeeded) {
        waits.ended(waited == Propagation::Applied);
    }
    let fields = AsSent(&head.headers);
    // The cookie is for the page's canonical host, whichever alias the client requested.
    let target = site.shared(&target).unwrap_or(target);
    mark(&site, &view_of(&target, &head.method, &fields, &client), &mut response);
    Ok((response, waited))
}

/// Sets a cookie after an unsafe request that may have succeeded, if a rule requires it. The
/// client's requests then bypass the cache for a while.
fn mark(site: &Arc<Site>, view: &RequestView<'_>, response: &mut OriginResponse) {
    if response.status.is_client_error() {
        return;
    }
    let rules = &site.config.rules;
    let Some(for_ms) = rules.after_write_ms(view) else { return };
    let line = rules.mark(view, site.clock.now().0, for_ms);
    let line = HeaderValue::from_str(&line).expect("a mark is visible ASCII");
    response.headers.append(header::SET_COOKIE, line);
}

/// Invalidates the pages that an unsafe request changed, or may have changed.
fn invalidate(
    site: &Arc<Site>,
    (method, target): (&Method, &TargetUri),
    status: StatusCode,
    headers: &HeaderMap,
) {
    let hosts = std::iter::once(&target.host).chain(site.config.hosts.same_as(&target.host));
    // `*` is not a URI; the groups in the response are invalidated anyway.
    let urls: Vec<String> = target.uri().parse().map_or_else(
        |_| Vec::new(),
        |uri| {
            hosts
                .flat_map(|host| http_cache::invalidates(Kind::Unsafe, host, &uri, status, headers))
                .collect()
        },
    );
    // Pages are stored under normalised URLs.
    let form = site.config.rules.form();
    let urls: Vec<_> = urls.iter().map(|url| form.normal(url).page).collect();
    let mut changed: Vec<Changed<'_>> =
        urls.iter().map(|url| Changed::Url(url.as_bytes())).collect();
    let said = tags::read_invalidated_groups(headers);
    match &said {
        Ok(GroupInvalidation::Groups(groups)) => changed.extend(groups.iter().map(Changed::Tag)),
        Ok(GroupInvalidation::Everything) => changed = vec![Changed::Everything],
        // The announced change cannot be parsed, so every page might be affected.
        Err(refused) => {
            changed = vec![Changed::Everything];
            let reason = match refused {
                TagsRefused::TooLong => Reason::TagsTooLong,
                TagsRefused::Unreadable => Reason::TagsUnreadable,
            };
            log_unreadable(target, reason);
        }
    }
    if !changed.is_empty() {
        site.changes().apply(
            &changed,
            Strength::Drop,
            ChangeSource::response(method, &target.uri()),
        );
    }
}

/// Logs that the invalidations of a response could not be parsed.
fn log_unreadable(target: &TargetUri, reason: Reason) {
    let (url, reason) = (target.uri(), reason.as_str());
    tracing::error!(event = "change-unreadable", url, reason);
}
