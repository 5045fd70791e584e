//! The inline elements of a template of LiteSpeed's ESI: `<esi:inline name="…">` contains a fragment as it is
//! for the client of this render.
//!
//! Invariants: a stored template has no inline elements, so no other client gets their contents with the
//! page. A private content is stored as a copy of the render's client alone, a public one only if the
//! client has no session, and under the address of a fragment that is not stored yet: so a page that a visitor can
//! write into replaces nothing that others get. Each is stored under the lease of the render, with the lifetime and the tags of
//! its element, and with the tags of the include elements of the page that insert it. The assembly of a
//! page that is not stored inserts the contents itself.

use super::reads::limit_untracked;
use super::{Render, RenderPermit, RenderRequest};
use ::esi::{EsiDialect, Inline, Template};
use bytes::Bytes;
use delivery::codings;
use delivery::esi;
use delivery::plan::{self, plan};
use delivery::site::Site;
use forward::owner_copies;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Version, header};
use http_cache::litespeed::CACHE_CONTROL_FIELD;
use http_cache::{ForwardReason, OwnedTerms, StoredResponse, storable, storable_for_owner};
use reasons::Reason;
use request_values::target::TargetUri;
use site_rules::{BypassBecause, Handling, Owner, Plan, PlannedFields};
use std::collections::HashMap;
use std::sync::Arc;
use stored_pages::page::{NewPage, variant};
use telemetry::client::{Client, FragmentRequest, FragmentSharing};
use telemetry::request_fields::{AsSent, read_facts};

/// Maximum number of inline contents that a template may store.
const INLINES_MAX: usize = 100;

/// The parameter that the addresses of fragments have. Content for all is stored under no other address.
const FRAGMENT: &str = "lsesi=";

/// For whom inline contents may be stored.
#[derive(Clone, Copy, PartialEq, Eq)]
enum InlineSharing {
    /// As their element says.
    AsDeclared,
    /// Private ones only.
    OwnerOnly,
}

/// A fragment to be stored: the response, its key, and its owner if it is private.
type Fragment = (StoredResponse, Vec<u8>, Option<Owner>);

/// The tags that the include elements of a page give to their fragments, by the normalised addresses of these.
pub struct IncludeTags(HashMap<String, Vec<HeaderValue>>);

impl IncludeTags {
    /// Reads the elements of a template, which is the content of `page`.
    pub fn of(site: &Site, template: &Template<'_>, page: &TargetUri) -> IncludeTags {
        let mut all: HashMap<String, Vec<HeaderValue>> = HashMap::new();
        for include in template.includes() {
            let tags = include.cache_tag.as_deref().and_then(esi::field_value);
            let target = page.resolve(&include.src, &site.config.hosts);
            if let (Some(tags), Some(target)) = (tags, target) {
                let target = site.shared(&target).unwrap_or(target);
                all.entry(target.page().to_owned()).or_default().push(tags);
            }
        }
        IncludeTags(all)
    }

    fn for_fragment(&self, target: &TargetUri) -> &[HeaderValue] {
        self.0.get(target.page()).map_or(&[], Vec::as_slice)
    }
}

impl Render {
    /// The content without inline elements. Their contents are stored as fragments.
    pub(super) fn without_inlines(&self, stored: &StoredResponse, content: Bytes) -> Bytes {
        if !stored.says_esi() || !esi::is_litespeeds(&self.site) {
            return content;
        }
        let template = Template::read_as(&content, EsiDialect::LiteSpeed);
        if template.inlines().next().is_none() {
            return content;
        }
        let tags = IncludeTags::of(&self.site, &template, &self.ask.target);
        let (mut kept, mut at) = (Vec::with_capacity(content.len()), 0);
        for (number, inline) in template.inlines().enumerate() {
            kept.extend_from_slice(&content[at..inline.element.start]);
            at = inline.element.end;
            if number < INLINES_MAX {
                let fields = (&stored.headers, InlineSharing::AsDeclared);
                self.store_inline(fields, (inline, &tags), content.slice(inline.content.clone()));
            }
        }
        kept.extend_from_slice(&content[at..]);
        Bytes::from(kept)
    }

    fn store_inline(
        &self,
        (page, sharing): (&HeaderMap, InlineSharing),
        (inline, tags): (&Inline<'_>, &IncludeTags),
        content: Bytes,
    ) {
        if !inline.is_closed {
            return;
        }
        let site = &self.site;
        let named = self.ask.target.resolve(&inline.name, &site.config.hosts);
        let Some(named) = named else { return };
        let target = site.shared(&named).unwrap_or_else(|| named.clone());
        let mut client = self.ask.client.clone();
        client.extras.fragment = Some(Arc::new(FragmentRequest {
            page: self.ask.target.path_and_query.clone(),
            content_type: None,
            tags: None,
            sharing: FragmentSharing::AsDeclared,
        }));
        let media_type = page.get(header::CONTENT_TYPE);
        let headers = fields_of(media_type, inline, tags.for_fragment(&target));
        let (plan, key) = plan(site, &Method::GET, &self.ask.headers, &target, &client);
        let fragment = match plan.handling {
            Handling::Store if self.may_store_for_everybody(page, sharing, (&target, &plan)) => {
                self.for_everybody(&plan, key, &headers)
            }
            Handling::Store => None,
            Handling::Bypass(BypassBecause::SessionCookie) => {
                self.for_owner(&plan, (&named, &client), &headers)
            }
            Handling::Bypass(_) => None,
        };
        let Some((mut stored, key, owner)) = fragment else { return };
        esi::note(site, &headers, &mut stored);
        stored.set_content_length(Some(content.len() as u64));
        let lease = self.right.lease();
        let path = target.page();
        // A fragment for everybody was made from what the page around it was made from.
        let reads = self.reads.clone().filter(|_| owner.is_none());
        let is_untracked =
            owner.is_none() && reads.is_none() && site.footprints.settings().is_some();
        if is_untracked && limit_untracked(site, &mut stored, Reason::ReadsUnknown).is_err() {
            return;
        }
        let mut made_from =
            site.dependencies(&stored, reads.as_deref(), path, Some(lease.number()));
        if let Some(owner) = &owner {
            owner_copies::depend(&mut made_from, owner, &stored, path);
        }
        let (key, variant) = (site.store.key(&key), variant(&stored));
        // A visitor who can write into the page could otherwise replace the fragment of all others.
        let is_theirs = owner.is_none() && site.store.candidates(key).iter().next().is_some();
        self.outdate();
        if !is_theirs && !self.is_overtaken(key, variant) {
            let page = codings::shared_page(NewPage::made(stored, content, Vec::new()).0);
            let page = page.with_reads(reads);
            // A refusal means that the fragment is requested instead.
            let _ = page.put(|new| site.store.insert(key, variant, &made_from, lease, new));
        }
    }

    /// Whether the page that contains the content is the same for all clients with this plan: both depend on the
    /// same request fields and cookies.
    fn may_store_for_everybody(
        &self,
        page: &HeaderMap,
        sharing: InlineSharing,
        (target, plan): (&TargetUri, &Plan),
    ) -> bool {
        let query = target.path_and_query.split_once('?').map_or("", |(_, query)| query);
        let is_fragment = query.split('&').any(|parameter| parameter.starts_with(FRAGMENT));
        let (rules, sent) = (&self.site.config.rules, AsSent(&*self.ask.headers));
        let key_parts = |plan: &Plan| {
            let mut key = Vec::new();
            rules.write_key(plan, &PlannedFields::new(rules, *plan, &sent), &mut key);
            key
        };
        sharing == InlineSharing::AsDeclared
            && is_fragment
            && self.ask.plan.handling == Handling::Store
            && !page.contains_key(header::VARY)
            && key_parts(&self.ask.plan) == key_parts(plan)
    }

    /// The fragment as one for all clients with this plan.
    fn for_everybody(&self, plan: &Plan, key: Vec<u8>, headers: &HeaderMap) -> Option<Fragment> {
        let rules = &self.site.config.rules;
        let sent = AsSent(&*self.ask.headers);
        let fields = PlannedFields::new(rules, *plan, &sent);
        let facts = read_facts(&Method::GET, &self.ask.headers);
        let (asked, now, policy) = (self.asked, self.site.clock.now(), rules.policy(plan));
        let stored = storable(&facts, &fields, StatusCode::OK, headers, asked, now, policy).ok()?;
        rules.keeps(plan, &fields, &stored).ok()?;
        (!stored.says_no_vary()).then_some((stored, key, None))
    }

    /// The fragment as a private copy of the render's client.
    fn for_owner(
        &self,
        plan: &Plan,
        (target, client): (&TargetUri, &Client),
        headers: &HeaderMap,
    ) -> Option<Fragment> {
        let (site, sent) = (&self.site, &*self.ask.headers);
        let copies = site.config.private.as_ref()?;
        let owner = site.config.rules.owner(&copies.cookies, &AsSent(sent)).ok()?;
        let terms = OwnedTerms {
            request_time: self.asked,
            response_time: site.clock.now(),
            word: copies.word,
            lifetime_max_ms: u64::try_from(copies.lifetime_max.as_millis()).unwrap_or(u64::MAX),
        };
        let (facts, policy) = (read_facts(&Method::GET, sent), site.config.rules.policy(plan));
        let (fields, status) = (AsSent(sent), StatusCode::OK);
        let stored = storable_for_owner(&facts, &fields, status, headers, terms, policy);
        let key = plan::copy_key(site, (target, client), plan, &owner, sent);
        Some((stored.ok()??, key, Some(owner)))
    }
}

/// Stores the inline contents of a response that is not stored itself. It is created before the request, so that
/// any later change refuses them. `None` if nothing may be stored: the request has cookies that a page for
/// everybody does not depend on, and all of them are sent.
pub struct InlineStore(Option<Box<Render>>);

impl InlineStore {
    /// Takes a lease for the request of this client.
    pub fn begin(
        site: &Arc<Site>,
        target: &TargetUri,
        headers: Arc<HeaderMap>,
        client: &Client,
    ) -> InlineStore {
        let (plan, key) = plan(site, &Method::GET, &headers, target, client);
        if plan.handling == Handling::Store && headers.contains_key(header::COOKIE) {
            return InlineStore(None);
        }
        let page = (target.clone(), key, plan);
        let asked = (Method::GET, Version::HTTP_11, headers);
        let ask = RenderRequest::of_page(page, asked, client.clone(), ForwardReason::Bypass);
        let lease = site.store.lease();
        InlineStore(Some(Render::for_nobody(site, ask, RenderPermit::Solo(lease)).0))
    }

    /// Stores the inline contents of the response with these header fields. `tags` are those of the page for which
    /// the contents are.
    pub fn keep(self, headers: &HeaderMap, content: &Bytes, tags: &IncludeTags) {
        let Some(render) = self.0 else { return };
        // The application knows the page around the fragments, so their contents are for this visitor.
        let fields = (headers, InlineSharing::OwnerOnly);
        let template = Template::read_as(content, EsiDialect::LiteSpeed);
        for inline in template.inlines().take(INLINES_MAX) {
            render.store_inline(fields, (inline, tags), content.slice(inline.content.clone()));
        }
    }
}

/// The header fields of a fragment, as its own response would have them. `tags` are those of include elements.
fn fields_of(
    media_type: Option<&HeaderValue>,
    inline: &Inline<'_>,
    tags: &[HeaderValue],
) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let of_inline = inline.cache_tag.as_deref().and_then(esi::field_value);
    for tags in of_inline.iter().chain(tags) {
        headers.append(HeaderName::from_static("x-litespeed-tag"), tags.clone());
    }
    if let Some(control) = esi::field_value(&inline.cache_control) {
        headers.insert(HeaderName::from_static(CACHE_CONTROL_FIELD), control);
    }
    if let Some(media_type) = media_type {
        headers.insert(header::CONTENT_TYPE, media_type.clone());
    }
    headers
}
