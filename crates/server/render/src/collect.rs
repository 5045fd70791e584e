//! Collects the content of a page that may be stored, and sends it to the client at the same time.
//!
//! First the response is held back for a moment. Most pages are complete within that time. They are
//! sent with their length, a validator and the result of storing them. A page that takes longer is
//! streamed at the client's speed while it is collected at the origin's. Once it is complete, the
//! client gets the rest from the stored page's bytes. So there is no second copy, and the render
//! does not wait for the client. All content that is collected counts (`send_backlog`). A page that exceeds the limit,
//! or for which no memory is left, is buffered in memory and on disk
//! (`response_spool`), and still read at the origin's speed.

use super::superseded::UnstoredResponse;
use super::{Render, RenderOutcome, admission, parts};
use bytes::Bytes;
use delivery::body::{Content, ContentBuffer, ResponseBody, SpoolContent};
use delivery::codings::{self, Demand};
use delivery::response_spool::{ClientGone, ContentEnd, Piece, SpoolSender, response_spool};
use delivery::send_backlog::CollectedBytes;
use delivery::serve;
use delivery::site::Site;
use forward::litespeed;
use forward::owner_copies;
use history::{ChangeSource, Content as Told};
use http::{HeaderMap, HeaderValue, Method, Response, header};
use http_cache::codings::Coding;
use http_cache::status::CacheStatus;
use http_cache::validators::own_etag;
use http_cache::{Failure, Forms, StoredResponse};
use origin::{OriginBody, OriginResponse};
use page_store::{ChangeTarget, NotStored as Refusal, Page, StoreRefusal, Strength};
use reasons::Reason;
use site_rules::key_without_vary;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use stored_pages::page::{NewPage, ReadPage, SharedPage, variant};
use telemetry::limit_hits::Limit;
use xxhash_rust::xxh3::xxh3_128;

/// Maximum time for which a response is held back until its content is complete.
const HOLD: Duration = Duration::from_millis(100);
/// Maximum number of bytes that are held back.
const HOLD_BYTES: usize = 256 << 10;
/// Maximum number of bytes handed to the client at a time.
const PIECE_BYTES: usize = 16 << 10;

/// The compressed forms of the content.
type ContentForms = Vec<(Coding, Bytes)>;

/// A complete page, whether stored or not.
pub(super) struct CompletePage {
    page: SharedPage,
    /// The header fields that are sent with the page.
    fields: HeaderMap,
    /// The reason why the page was not stored; `None` if it was.
    pub(super) refused: Option<Reason>,
}

/// The result of holding back a response.
enum HoldOutcome {
    Complete,
    Going,
    /// There is no memory for more.
    Short,
    Failed(Failure),
    Abandoned,
}

impl Render {
    /// Collects the content, stores the page and answers the client.
    pub(super) async fn collect(
        mut self: Box<Self>,
        mut stored: StoredResponse,
        response: OriginResponse,
        status: CacheStatus<'static>,
    ) {
        let mut body = response.body;
        let (mut content, mut collected) =
            (ContentBuffer::default(), CollectedBytes::of(self.site.state()));
        match self.hold(&mut body, &mut content, &mut collected).await {
            HoldOutcome::Complete => {
                let content = content.into_bytes();
                let against = body.ended().against_storing();
                let against =
                    against.or_else(|| litespeed::against_storing(&self.site, &stored, &content));
                drop(body);
                match self.know_reads(&mut stored, against).await {
                    None if parts::is_part(&stored) => {
                        self.store_part(stored, Bytes::copy_from_slice(&content), status);
                    }
                    None => {
                        let content = self.without_inlines(&stored, content);
                        self.store(stored, content, Vec::new(), status);
                    }
                    Some(reason) => self.show(stored, content, status, reason),
                }
            }
            HoldOutcome::Failed(failure) => {
                self.tell_complete(&self.ask.key, &stored, Err(failure.into()));
                let response = super::on_failure(&self.site, &self.ask, failure, self.recipient());
                self.give_up(response, RenderOutcome::Failed(failure));
            }
            HoldOutcome::Abandoned => {}
            // This is rare. The future is boxed so that the common ones stay smaller.
            held @ (HoldOutcome::Going | HoldOutcome::Short) => {
                let against = match held {
                    HoldOutcome::Short => Some(Reason::MemoryShort),
                    _ if content.len() > self.site.limits.page_bytes => Some(Reason::TooLarge),
                    _ => None,
                };
                let content = (content.into_vec(), collected);
                Box::pin(self.stream(stored, body, content, against, status)).await
            }
        }
    }

    async fn hold(
        &mut self,
        body: &mut OriginBody,
        content: &mut ContentBuffer,
        collected: &mut CollectedBytes,
    ) -> HoldOutcome {
        let most = HOLD_BYTES.min(self.site.limits.page_bytes);
        let until = tokio::time::sleep(HOLD);
        let mut until = std::pin::pin!(until);
        loop {
            let piece = tokio::select! {
                biased;
                piece = body.next() => piece,
                () = &mut until => return HoldOutcome::Going,
                () = self.abandoned() => return HoldOutcome::Abandoned,
            };
            match piece {
                None => return HoldOutcome::Complete,
                Some(Err(failure)) => return HoldOutcome::Failed(failure),
                Some(Ok(bytes)) => {
                    let has_room = collected.grow(bytes.len());
                    content.push(bytes);
                    if !has_room {
                        return HoldOutcome::Short;
                    }
                }
            }
            if content.len() > most {
                return HoldOutcome::Going;
            }
        }
    }

    /// Stores a complete page, notifies the followers, answers the client. `coded` contains the
    /// compressed forms of the same content, if known.
    pub(super) fn store(
        self: Box<Self>,
        stored: StoredResponse,
        content: Bytes,
        coded: ContentForms,
        mut status: CacheStatus<'static>,
    ) {
        let CompletePage { page, fields, refused } = self.put(stored, content, coded);
        let outcome = self.outcome(page.clone());
        self.right.end(outcome);
        let Some(answer) = self.answer else { return };
        let now = self.site.clock.now();
        let stored = &page.payload().stored;
        status.stored = refused.is_none();
        let why = refused.or(self.ask.owner.as_ref().map(|_| Reason::Private)).or(self.untracked);
        status.detail = status.detail.or(why.map(Reason::as_str));
        status.ttl_seconds = Some(stored.ttl_seconds(now));
        let facts = self.ask.facts();
        let _ = answer.send(serve::new_page(&facts, &page, fields, now, &status));
    }

    /// Answers the client with a complete response that must not be stored.
    fn show(
        self: Box<Self>,
        mut stored: StoredResponse,
        content: Bytes,
        mut status: CacheStatus<'static>,
        reason: Reason,
    ) {
        self.refused(&stored, reason);
        stored.set_content_length(Some(content.len() as u64));
        status.detail = status.detail.or(Some(reason.as_str()));
        let now = self.site.clock.now();
        let page = NewPage::new(stored, content).apart();
        let response = serve::unstored_page(&self.ask.facts(), &page, now, &status);
        self.give_up(response, RenderOutcome::NotShared);
    }

    /// Reports that a complete response is not stored, and why. The followers cannot share it.
    fn refused(&self, stored: &StoredResponse, reason: Reason) {
        self.supersede(UnstoredResponse::of(stored, reason));
        self.count_not_stored(reason);
        self.tell_complete(&self.ask.key, stored, Err(reason));
    }

    /// Stores a page. The result contains the reason if it was refused.
    pub(super) fn put(
        &self,
        mut stored: StoredResponse,
        content: Bytes,
        coded: ContentForms,
    ) -> CompletePage {
        let site = &self.site;
        codings::prepare(site, &mut stored, content.len());
        stored.set_content_length(Some(content.len() as u64));
        let hash = xxh3_128(&content);
        stored.set_own_etag(own_etag(hash));
        let path = self.ask.target.page();
        let (reads, lease) = (self.reads.as_deref(), self.right.lease().number());
        let mut made_from = site.dependencies(&stored, reads, path, Some(lease));
        if let Some(owner) = &self.ask.owner {
            owner_copies::depend(&mut made_from, owner, &stored, path);
        }
        let variant = variant(&stored);
        // The page is the same for all vary cookies, so it is stored once, under the key without
        // them.
        let plain = if stored.says_no_vary() && self.ask.owner.is_none() {
            key_without_vary(&self.ask.key)
        } else {
            None
        };
        let key = site.store.key(plain.as_deref().unwrap_or(&self.ask.key));
        let told = Told { variant, hash: hash as u64 };
        self.outdate();
        let coded = match stored.forms {
            Forms::One | Forms::Assembled => Vec::new(),
            Forms::ByCoding if coded.is_empty() => self.coded_before(&content),
            Forms::ByCoding => coded,
        };
        let (page, fields) = NewPage::made(stored, content, coded);
        let page = codings::shared_page(page).with_reads(self.reads.clone());
        let lease = self.right.lease();
        let is_overtaken = self.is_overtaken(key, variant);
        let put = page.put(|new| {
            if is_overtaken {
                Err(Refusal { reason: StoreRefusal::Superseded, page: Page::apart(new) })
            } else {
                site.store.insert(key, variant, &made_from, lease, new)
            }
        });
        match put {
            Ok(page) => {
                self.tell_complete(key.bytes(), &page.payload().stored, Ok(told));
                self.note_stored(&page);
                CompletePage { page, fields, refused: None }
            }
            Err(not_stored) => {
                site.counters.store_refused.add();
                if let Some(for_nobody) = &self.for_nobody {
                    for_nobody.is_outdated.store(not_stored.reason.is_outdated(), Relaxed);
                }
                let stored = &not_stored.page.payload().stored;
                let reason = Reason::from(not_stored.reason);
                if not_stored.reason != StoreRefusal::Superseded {
                    let headers = &not_stored.page.response().headers;
                    self.supersede(UnstoredResponse { status: stored.status, headers, reason });
                }
                self.tell_complete(key.bytes(), stored, Err(reason));
                let refused = Some(reason);
                CompletePage { page: not_stored.page, fields, refused }
            }
        }
    }

    /// Counts a page that was just stored, ends the pages that it replaces, and queues its compression.
    fn note_stored(&self, page: &SharedPage) {
        let site = &self.site;
        self.replaced(page);
        let tags = page.payload().stored.tags();
        site.uncovered_tags.note(&site.config.databases, tags.iter());
        if self.reads.is_some() || tags.iter().next().is_some() {
            site.counters.stored_with_dependencies.add();
        }
        match self.ask.owner {
            Some(_) => site.counters.private_stored.add(),
            None => {
                site.counters.stored.add();
                admission::shared_from_now(site, &self.ask, page);
            }
        }
        codings::have_made(site, page, self.demand());
    }

    /// Invalidates the page's URL if the site's rules have changed since the render began, so that
    /// the store refuses the page. The reload could not invalidate this render if it began shortly
    /// before.
    pub(super) fn outdate(&self) {
        if self.site.is_replaced() {
            let url = ChangeTarget::Url(self.ask.target.page().as_bytes());
            self.site.changes().apply(&[url], Strength::Drop, ChangeSource::Reload);
        }
    }

    /// The outcome of a page for the followers.
    fn outcome(&self, page: SharedPage) -> RenderOutcome {
        if self.site.is_current() { RenderOutcome::Page(page) } else { RenderOutcome::NotShared }
    }

    /// Whether the page is requested repeatedly.
    fn demand(&self) -> Demand {
        let had_codings = |old: &SharedPage| !old.payload().forms().codings().is_empty();
        if self.ask.fallback.as_ref().is_some_and(had_codings) || self.for_nobody.is_some() {
            Demand::Again
        } else {
            Demand::Once
        }
    }

    /// Returns the compressed forms of the page that is being replaced, if its content is the same.
    fn coded_before(&self, content: &Bytes) -> ContentForms {
        match &self.ask.fallback {
            Some(old) if is_same(old, content) => old.payload().forms().contents(),
            _ => Vec::new(),
        }
    }

    /// Streams the content to the client while it is collected.
    async fn stream(
        mut self: Box<Self>,
        stored: StoredResponse,
        body: OriginBody,
        (content, collected): (Vec<u8>, CollectedBytes),
        against: Option<Reason>,
        status: CacheStatus<'static>,
    ) {
        let length = stored.content_length();
        let (sender, receiver) = response_spool(&self.site);
        let sent = Content::Spool(Box::new(SpoolContent { receiver, length }));
        // Whether the page can be stored is known at its end only.
        let status =
            CacheStatus { detail: status.detail.or(Some(Reason::InProgress.as_str())), ..status };
        let head = self.head(&stored, &status, sent);
        if let Some(reason) = against {
            self.outgrown(&stored, reason);
        }
        let mut streaming = Streaming {
            site: self.site.clone(),
            received: content.len() as u64,
            content,
            collected,
            sent: 0,
            is_kept: against.is_none(),
            length,
            client: Some(sender),
        };
        match self.answer.take() {
            Some(answer) if self.ask.method != Method::HEAD => {
                if answer.send(head).is_err() {
                    streaming.client = None;
                }
            }
            Some(answer) => {
                let _ = answer.send(serve::without_body(head));
                streaming.client = None;
            }
            None => streaming.client = None,
        }
        self.finish(stored, body, streaming).await;
    }

    /// The response is not stored, because its content is too long, or that of all together.
    fn outgrown(&self, stored: &StoredResponse, reason: Reason) {
        if reason == Reason::TooLarge {
            self.site.counters.limit_hits.note(Limit::PageBytes);
        }
        self.refused(stored, reason);
        self.right.tell(RenderOutcome::NotShared);
    }

    async fn finish(
        mut self: Box<Self>,
        mut stored: StoredResponse,
        mut body: OriginBody,
        mut streaming: Streaming,
    ) {
        if !streaming.is_kept {
            streaming.hand_all().await;
        }
        loop {
            match streaming.step(&mut body).await {
                Step::Going => {}
                Step::Outgrown(reason) => {
                    // The followers are notified before the render waits for the client.
                    self.outgrown(&stored, reason);
                    streaming.hand_all().await;
                }
                Step::Left => return,
                Step::Failed(failure) => {
                    // The concurrency slot at the origin is released now; it must not depend on the
                    // client's speed.
                    drop(body);
                    self.tell_complete(&self.ask.key, &stored, Err(failure.into()));
                    self.right.end(RenderOutcome::Failed(failure));
                    return streaming.end(Some(failure));
                }
                Step::Complete => {
                    let ended = body.ended();
                    drop(body);
                    if streaming.is_kept {
                        let against =
                            litespeed::against_storing(&self.site, &stored, &streaming.content);
                        let against = against.or(ended.against_storing());
                        let against = self.know_reads(&mut stored, against).await;
                        return self.complete(stored, against, streaming);
                    }
                    drop(self);
                    return streaming.end(None);
                }
            }
        }
    }

    /// Stores the collected content, unless there is a reason against it, and leaves the rest to the
    /// client's spool. For a stored page the rest is a slice of the page's own bytes. Nothing here
    /// waits for the client.
    fn complete(
        self: Box<Self>,
        stored: StoredResponse,
        against: Option<Reason>,
        mut streaming: Streaming,
    ) {
        let content = Bytes::from(std::mem::take(&mut streaming.content).into_boxed_slice());
        let (content, page) = if let Some(reason) = against {
            self.refused(&stored, reason);
            self.right.end(RenderOutcome::NotShared);
            (content, None)
        } else if parts::is_part(&stored) {
            self.put_part(&stored, content.clone());
            (content, None)
        } else {
            let kept = self.without_inlines(&stored, content.clone());
            let is_cut = kept.len() != content.len();
            let page = self.put(stored, kept, Vec::new()).page;
            let outcome = self.outcome(page.clone());
            self.right.end(outcome);
            if is_cut { (content, None) } else { (page.content(), Some(page)) }
        };
        if let Some(client) = streaming.client {
            // The rest of content that is not a page's is copied, so that the whole buffer can be
            // freed.
            let content = if page.is_some() {
                content.slice(streaming.sent..)
            } else {
                Bytes::copy_from_slice(&content[streaming.sent..])
            };
            client.end(ContentEnd { content, page, ..ContentEnd::default() });
        }
    }

    /// The head of a response whose content is not complete yet.
    fn head(
        &self,
        stored: &StoredResponse,
        status: &CacheStatus<'_>,
        content: Content,
    ) -> Response<ResponseBody> {
        let mut response = serve::with(stored, stored.status, content);
        let headers = response.headers_mut();
        if let Some(length) = stored.content_length() {
            headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
        }
        headers.append("cache-status", serve::status_value(status));
        response
    }
}

/// Content that is sent to the client while it is collected.
struct Streaming {
    site: Arc<Site>,
    /// All content received so far, as long as it may be stored.
    content: Vec<u8>,
    collected: CollectedBytes,
    /// The number of bytes handed to the client.
    sent: usize,
    /// Whether the content will be stored.
    is_kept: bool,
    received: u64,
    length: Option<u64>,
    /// The client's spool; none once the client has disconnected.
    client: Option<SpoolSender>,
}

enum Step {
    Going,
    /// The content is not kept any more.
    Outgrown(Reason),
    Complete,
    Failed(Failure),
    /// Neither the client nor the store needs more content.
    Left,
}

/// The side that became ready first.
enum Side {
    Origin(Option<Piece>),
    Client,
    ClientLeft,
}

impl Streaming {
    /// Receives a piece from the origin or hands one to the client, whichever is ready first.
    async fn step(&mut self, body: &mut OriginBody) -> Step {
        if self.client.is_none() && !self.is_kept {
            return Step::Left;
        }
        let turn = tokio::select! {
            piece = body.next() => Side::Origin(piece),
            ready = ready(self.client.as_ref()), if self.may_hand() => match ready {
                Ok(client) => {
                    let end = self.content.len().min(self.sent + PIECE_BYTES);
                    client.send_now(&self.content[self.sent..end]);
                    self.sent = end;
                    Side::Client
                }
                Err(ClientGone) => Side::ClientLeft,
            }
        };
        match turn {
            Side::Origin(None) => Step::Complete,
            Side::Origin(Some(Err(failure))) => Step::Failed(failure),
            Side::Origin(Some(Ok(bytes))) => self.take(bytes).await,
            Side::Client => Step::Going,
            Side::ClientLeft => {
                self.client = None;
                Step::Going
            }
        }
    }

    /// Whether there is content to hand to the client. The end of a response with a declared length
    /// is handed on only after the page has been stored.
    fn may_hand(&self) -> bool {
        let is_all = self.length.is_some_and(|length| self.received >= length);
        let is_some = self.is_kept && self.client.is_some() && self.sent < self.content.len();
        is_some && !is_all
    }

    /// Appends a piece; hands everything to the client if the content can no longer be stored.
    async fn take(&mut self, bytes: Bytes) -> Step {
        self.received += bytes.len() as u64;
        if self.is_kept {
            let against = if self.content.len() + bytes.len() > self.site.limits.page_bytes {
                Some(Reason::TooLarge)
            } else if !self.collected.grow(bytes.len()) {
                Some(Reason::MemoryShort)
            } else {
                None
            };
            self.content.extend_from_slice(&bytes);
            self.is_kept = against.is_none();
            return against.map_or(Step::Going, Step::Outgrown);
        }
        self.hand(bytes).await;
        Step::Going
    }

    /// Hands all received content to the client.
    async fn hand_all(&mut self) {
        let content = Bytes::from(std::mem::take(&mut self.content));
        let unsent = content.slice(std::mem::take(&mut self.sent)..);
        drop(content);
        self.hand(unsent).await;
        self.collected.release();
    }

    async fn hand(&mut self, bytes: Bytes) {
        let Some(client) = &self.client else { return };
        if client.send(bytes).await == Err(ClientGone) {
            self.client = None;
        }
    }

    /// Ends the client's response: with the rest of content that is not stored, or with the
    /// failure.
    fn end(mut self, failure: Option<Failure>) {
        if let Some(client) = self.client {
            let at = self.sent.min(self.content.len());
            let content = Bytes::from(self.content.split_off(at));
            client.end(ContentEnd { content, failure, ..ContentEnd::default() });
        }
    }
}

async fn ready(client: Option<&SpoolSender>) -> Result<&SpoolSender, ClientGone> {
    let client = client.ok_or(ClientGone)?;
    client.ready().await?;
    Ok(client)
}

/// Whether a page has this content. A page stored only in compressed forms is decompressed for the
/// comparison.
fn is_same(page: &SharedPage, content: &Bytes) -> bool {
    page.length() == content.len() && page.content() == *content
}
