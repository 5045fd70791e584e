//! The elements that only LiteSpeed's plugins write: fragments whose content is in the page (`esi:inline`), and
//! fragments that are requested together (`combine`).
//!
//! A combined request is a POST of the addresses to the address of the element with `combine="main"`; its
//! response has an inline element for each. Only fragments that are not stored are requested so. A
//! fragment that the response lacks is requested alone. Invariants: a combined request is no write: it
//! invalidates nothing, unless its response says so. No fragment that a rule refuses or counts is in one.

use super::{DEPTH_MAX, FRAGMENTS_MAX, Page, Whole};
use crate::dispatch::fragment;
use crate::edge::EdgeMatches;
use crate::signed_in::shared_fields;
use crate::steps::AskedRequest;
use bytes::Bytes;
use delivery::esi::field_value;
use delivery::template_mark::template_dialect;
use delivery::trial::is_in_trial;
use esi::{Combine, EsiDialect, Include, Template};
use http::{HeaderValue, Method, Request, StatusCode, header};
use http_cache::litespeed::{CacheControl, Switch};
use render::{IncludeTags, InlineStore};
use request_values::target::TargetUri;
use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt::Write as _;
use std::sync::Arc;
use telemetry::client::{Client, FragmentRequest, FragmentSharing};
use telemetry::request_content::RequestContent;
use tokio::time::timeout_at;

/// Maximum number of bytes of the content of a combined request.
const COMBINED_BYTES_MAX: usize = 256 << 10;

impl Page {
    /// The contents of fragments that need no request of their own, by their addresses.
    pub(super) async fn given(
        self: &Arc<Self>,
        content: &Bytes,
        template: &Template<'_>,
        (target, dialect): (&TargetUri, EsiDialect),
    ) -> HashMap<String, Bytes> {
        if dialect == EsiDialect::Standard {
            return HashMap::new();
        }
        let mut given = self.inlines(content, template, target);
        let includes = template.includes();
        // Public fragments are requested alone: those of a combined response depend on the page.
        let is_sub = |include: &&Include<'_>| {
            include.combine == Combine::Sub && !says_any(include, &["public"])
        };
        let Some(main) = includes.clone().find(|include| include.combine == Combine::Main) else {
            return given;
        };
        let (mut missing, mut wanted) = (Vec::new(), HashSet::new());
        for sub in includes.filter(is_sub).take(FRAGMENTS_MAX) {
            let Some(address) = target.resolve(&sub.src, &self.site.config.hosts) else {
                continue;
            };
            if given.contains_key(&address.path_and_query) || !self.is_open(&address, &Method::GET)
            {
                continue;
            }
            match self.stored(address.clone(), sub).await {
                Some(content) => drop(given.insert(address.path_and_query, content)),
                None => {
                    missing.push(&*sub.src);
                    wanted.insert(address.path_and_query);
                }
            }
        }
        let Some(main_target) = target.resolve(&main.src, &self.site.config.hosts) else {
            return given;
        };
        // A single fragment is requested alone, because its response then has its own header fields.
        if missing.len() > 1 && self.is_open(&main_target, &Method::POST) {
            let tags = IncludeTags::of(&self.site, template, target);
            let combined = Box::pin(self.combined((main_target, main), &missing, &tags));
            let found = timeout_at(self.until, combined).await.ok().flatten().unwrap_or_default();
            given.extend(found.into_iter().filter(|(address, _)| wanted.contains(address)));
        }
        given
    }

    /// Whether no rule refuses the page's request for this address, or counts it. Only such fragments are requested
    /// together; all others alone, where they are refused or counted.
    fn is_open(&self, address: &TargetUri, method: &Method) -> bool {
        let rules = &self.site.config.rules;
        if !rules.has_access_rules() && !rules.has_limits() {
            return true;
        }
        let (headers, matches) = (shared_fields(&self.site, &self.headers), EdgeMatches::default());
        let asked = AskedRequest {
            site: &self.site,
            method,
            headers: &headers,
            target: Ok(address),
            client: &self.client,
            is_purge: false,
            offers_upgrade: false,
            has_content: false,
            is_fragment: true,
            matches: &matches,
        };
        asked.next_check().is_none() && asked.checks().0.is_none()
    }

    /// The content of a fragment if it is stored, and is no template itself.
    async fn stored(&self, target: TargetUri, include: &Include<'_>) -> Option<Bytes> {
        let mut request = Request::new(RequestContent::default());
        *request.uri_mut() = target.path_and_query.parse().ok()?;
        *request.headers_mut() = shared_fields(&self.site, &self.headers);
        let only = HeaderValue::from_static("only-if-cached");
        request.headers_mut().insert(header::CACHE_CONTROL, only);
        let client = self.client_for(include);
        let response = Box::pin(fragment(&self.site, request, target, &client)).await;
        let is_plain = template_dialect(&response).is_none() && response.status() == StatusCode::OK;
        if is_plain { self.gather(response.into_body()).await.ok() } else { None }
    }

    /// Requests several fragments together. Returns those that the response has.
    async fn combined(
        &self,
        (target, main): (TargetUri, &Include<'_>),
        addresses: &[&str],
        tags: &IncludeTags,
    ) -> Option<HashMap<String, Bytes>> {
        let mut form = String::new();
        for address in addresses {
            let separator = if form.is_empty() { "" } else { "&" };
            write!(form, "{separator}esi_include%5B%5D=").ok()?;
            for byte in address.bytes() {
                match byte {
                    b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => {
                        form.push(byte.into())
                    }
                    byte => write!(form, "%{byte:02X}").ok()?,
                }
            }
        }
        let mut headers = shared_fields(&self.site, &self.headers);
        let media_type = HeaderValue::from_static("application/x-www-form-urlencoded");
        headers.insert(header::CONTENT_TYPE, media_type);
        if form.len() > COMBINED_BYTES_MAX || headers.contains_key(header::AUTHORIZATION) {
            return None;
        }
        self.take(&self.left, 1)?;
        self.site.counters.requests.add();
        self.site.counters.fragments.add();
        let _turn = self.turns.acquire().await;
        // The answer that a visitor gets in a trial is not stored.
        let store = (!is_in_trial(&self.site, &self.client)).then(|| {
            InlineStore::begin(&self.site, &target, Arc::new(headers.clone()), &self.client)
        });
        let (client, content) = (self.client_for(main), Bytes::from(form));
        let mut response =
            forward::post_form(&self.site, target.clone(), headers, &client, content).await?;
        let said = CacheControl::read(&response.headers);
        if !response.status.is_success() || said.is_none_or(|said| said.esi == Switch::Off) {
            return None;
        }
        let mut content = Vec::new();
        while let Some(piece) = response.body.next().await {
            let piece = piece.ok()?;
            self.take(&self.bytes_left, piece.len())?;
            content.extend_from_slice(&piece);
        }
        if response.body.ended().against_storing().is_some() {
            return None;
        }
        let content = Bytes::from(content);
        if let Some(store) = store {
            store.keep(&response.headers, &content, tags);
        }
        let template = Template::read_as(&content, EsiDialect::LiteSpeed);
        Some(self.inlines(&content, &template, &target))
    }

    /// The contents of the inline elements of a template, by their addresses.
    fn inlines(
        &self,
        content: &Bytes,
        template: &Template<'_>,
        target: &TargetUri,
    ) -> HashMap<String, Bytes> {
        let found = template.inlines().filter(|inline| inline.is_closed).filter_map(|inline| {
            let name = target.resolve(&inline.name, &self.site.config.hosts)?;
            Some((name.path_and_query, content.slice(inline.content.clone())))
        });
        found.take(FRAGMENTS_MAX).collect()
    }

    /// The given content for an include, with its address.
    pub(super) fn given_for(
        &self,
        given: &HashMap<String, Bytes>,
        include: &Include<'_>,
        target: &TargetUri,
    ) -> Option<(Bytes, TargetUri)> {
        if given.is_empty() {
            return None;
        }
        let src = target.resolve(&include.src, &self.site.config.hosts)?;
        let content = given.get(&src.path_and_query)?.clone();
        Some((content, src))
    }

    /// Assembles the given content of a fragment, which may have elements itself.
    pub(super) async fn inserted(
        self: Arc<Self>,
        (content, target): (Bytes, TargetUri),
        (dialect, depth): (EsiDialect, usize),
    ) -> Whole {
        if depth > DEPTH_MAX || self.take(&self.bytes_left, content.len()).is_none() {
            return Ok(VecDeque::new());
        }
        self.put_together(content, target, (dialect, depth)).await
    }

    /// The client of the page, as that of the request for a fragment.
    pub(super) fn client_for(&self, include: &Include<'_>) -> Client {
        let mut client = self.client.clone();
        client.extras.fragment = Some(Arc::new(self.context_of(include)));
        client
    }

    /// The page and the include element, for the request of a fragment.
    fn context_of(&self, include: &Include<'_>) -> FragmentRequest {
        let is_for_one = says_any(include, &["private", "shared", "no-cache", "no-store"]);
        let sharing =
            if is_for_one { FragmentSharing::OneVisitor } else { FragmentSharing::AsDeclared };
        let tags = include.cache_tag.as_deref().and_then(field_value);
        FragmentRequest { tags, sharing, ..self.context.clone() }
    }
}

/// Whether the element's `cache-control` has one of these words.
fn says_any(include: &Include<'_>, known: &[&str]) -> bool {
    let control = include.cache_control.as_deref().unwrap_or_default();
    let mut words = control.split(',').map(str::trim);
    words.any(|word| known.iter().any(|known| word.eq_ignore_ascii_case(known)))
}
