//! Sends finished spans to the collector in batches, over HTTP/1.1, from a background task. The queue
//! is bounded; spans that do not fit, or that the collector rejects, are dropped and counted.
//!
//! A batch is sent at most twice: again if the collector is unreachable or returns a retryable status
//! (OTLP, "Retryable Response Codes").

use super::span::{self, Span};
use super::traceparent::TraceParent;
use crate::clock::Clock;
use crate::counters::{Counter, Counters};
use bytes::Bytes;
use config;
use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use random_number::random_number;
use serde_json::Value;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::{Notify, mpsc};

/// Maximum number of queued spans; each takes some hundred bytes.
const WAITING_MAX: usize = 4_096;
/// Maximum number of spans per request.
const AT_ONCE: usize = 512;
/// How long the first span of a batch waits for others.
const GATHER: Duration = Duration::from_millis(500);
/// Time limit for a request to the collector.
const PATIENCE: Duration = Duration::from_secs(5);
/// The wait before the second attempt.
const AGAIN: Duration = Duration::from_secs(1);
/// Maximum number of bytes that are read of the collector's response.
const ANSWER_BYTES: usize = 64 << 10;

/// The queue of spans, and the settings of the collector.
pub struct Exporter {
    config: config::Traces,
    queue: mpsc::Sender<Span>,
    waiting: Mutex<Option<mpsc::Receiver<Span>>>,
    over: AtomicBool,
    ending: Notify,
    pub(super) clock: Clock,
    exported: Arc<Counter>,
    dropped: Arc<Counter>,
}

impl Exporter {
    /// For the configured collector; nothing is sent before [`run`].
    pub fn new(config: &config::Traces, clock: Clock, counters: &Counters) -> Exporter {
        let (queue, waiting) = mpsc::channel(WAITING_MAX);
        Exporter {
            config: config.clone(),
            queue,
            waiting: Mutex::new(Some(waiting)),
            over: AtomicBool::new(false),
            ending: Notify::new(),
            clock,
            exported: counters.spans_exported.clone(),
            dropped: counters.spans_dropped.clone(),
        }
    }

    /// Makes [`run`] send the remaining spans and return.
    pub fn end(&self) {
        self.over.store(true, Ordering::Release);
        self.ending.notify_one();
    }

    /// A random span number; never zero.
    pub fn number(&self) -> u64 {
        random_number().max(1)
    }

    /// The context of a new trace, sampled with the configured probability.
    pub fn new_trace(&self) -> TraceParent {
        let trace = u128::from(self.number()) << 64 | u128::from(self.number());
        let is_kept = self.number() as f64 / u64::MAX as f64 <= self.config.share;
        let is_sampled = is_kept && self.config.share > 0.0;
        TraceParent { trace, span: self.number(), is_sampled }
    }

    /// Queues a finished span, or counts it as dropped.
    pub fn put(&self, span: Span) {
        if self.queue.try_send(span).is_err() {
            self.dropped.add();
        }
    }
}

/// Sends spans until [`Exporter::end`] is called, and then the remaining ones.
pub async fn run(exporter: Option<Arc<Exporter>>) {
    let Some(exporter) = &exporter else { return };
    let waiting = exporter.waiting.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(mut waiting) = waiting else { return };
    let (mut spans, mut is_away) = (Vec::new(), false);
    loop {
        let is_over = gather(exporter, &mut waiting, &mut spans).await;
        while spans.len() < AT_ONCE
            && let Ok(span) = waiting.try_recv()
        {
            spans.push(span);
        }
        if !spans.is_empty() {
            let (taken, sent) = send_twice(&exporter.config, &spans).await;
            exporter.exported.add_many(taken);
            exporter.dropped.add_many(spans.len() as u64 - taken);
            tell(&mut is_away, sent);
            spans.clear();
        }
        if is_over && (is_away || waiting.is_empty()) {
            return;
        }
    }
}

/// Waits for spans, and briefly for further ones. Returns true after [`Exporter::end`].
async fn gather(
    exporter: &Exporter,
    waiting: &mut mpsc::Receiver<Span>,
    spans: &mut Vec<Span>,
) -> bool {
    let over = || exporter.over.load(Ordering::Acquire);
    let ending = exporter.ending.notified();
    if over() {
        return true;
    }
    let gathered = async {
        let count = waiting.recv_many(spans, AT_ONCE).await;
        if count < AT_ONCE {
            tokio::time::sleep(GATHER).await;
        }
    };
    tokio::select! {
        () = ending => true,
        () = gathered => over(),
    }
}

/// Logs the first failure, and the first success after failures.
fn tell(is_away: &mut bool, sent: Result<(), NotSent>) {
    match sent {
        Ok(()) if *is_away => tracing::info!(event = "traces-exported-again"),
        Err(NotSent { why, .. }) if !*is_away => {
            tracing::warn!(event = "traces-not-exported", error = why);
        }
        _ => return,
    }
    *is_away = !*is_away;
}

/// Spans that the collector has rejected ("Partial Success").
#[derive(Debug, Default, PartialEq, Eq)]
struct RejectedSpans {
    spans: u64,
    why: String,
}

impl RejectedSpans {
    /// Parses the collector's response; zero spans if it reports none.
    fn read(body: &[u8]) -> RejectedSpans {
        let value: Value = serde_json::from_slice(body).unwrap_or_default();
        let partial = &value["partialSuccess"];
        // 64-bit numbers are strings, but may be numbers (ProtoJSON).
        let spans = &partial["rejectedSpans"];
        let spans = spans.as_u64().or_else(|| spans.as_str()?.parse().ok()).unwrap_or(0);
        let why = partial["errorMessage"].as_str().unwrap_or_default().to_owned();
        RejectedSpans { spans, why }
    }
}

struct NotSent {
    why: String,
    may_again: bool,
}

/// Sends spans, and returns how many the collector has accepted, and the error if any.
async fn send_twice(to: &config::Traces, spans: &[Span]) -> (u64, Result<(), NotSent>) {
    let text = Bytes::from(span::request(&to.service, spans).to_string());
    let sent = match send(to, text.clone()).await {
        Err(NotSent { may_again: true, .. }) => {
            tokio::time::sleep(AGAIN).await;
            send(to, text).await
        }
        sent => sent,
    };
    let count = spans.len() as u64;
    match sent {
        Ok(RejectedSpans { spans: 0, .. }) => (count, Ok(())),
        Ok(RejectedSpans { spans, why }) => {
            let why = format!("{}: it refuses {spans}: {why}", to.authority);
            (count.saturating_sub(spans), Err(NotSent { why, may_again: false }))
        }
        Err(not_sent) => (0, Err(not_sent)),
    }
}

async fn send(to: &config::Traces, text: Bytes) -> Result<RejectedSpans, NotSent> {
    let again = |why: String| NotSent { why: format!("{}: {why}", to.authority), may_again: true };
    match tokio::time::timeout(PATIENCE, post(to, text)).await {
        Ok(Ok((status, body))) if status.is_success() => Ok(RejectedSpans::read(&body)),
        Ok(Ok((status, _))) => {
            let may_again = matches!(status.as_u16(), 429 | 502..=504);
            Err(NotSent { may_again, ..again(format!("it answers {status}")) })
        }
        Ok(Err(error)) => Err(again(error.to_string())),
        Err(_) => Err(again(format!("no answer within {PATIENCE:?}"))),
    }
}

type Error = Box<dyn std::error::Error + Send + Sync>;

async fn post(to: &config::Traces, text: Bytes) -> Result<(StatusCode, Bytes), Error> {
    let stream = TcpStream::connect(&to.authority).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let driver = tokio::spawn(connection);
    let request = Request::builder()
        .method(Method::POST)
        .uri(&to.path)
        .header(header::HOST, &to.authority)
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::CONNECTION, "close")
        .body(Full::new(text))?;
    let answer = async {
        let response = sender.send_request(request).await?;
        let status = response.status();
        // If the content is too long or cut off, the status alone is used.
        let read = Limited::new(response.into_body(), ANSWER_BYTES).collect().await;
        Ok((status, read.map_or_else(|_| Bytes::new(), |whole| whole.to_bytes())))
    };
    let answered = answer.await;
    driver.abort();
    answered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejected_spans_are_read_from_the_response_of_a_collector() {
        let refused = |body: &str| RejectedSpans::read(body.as_bytes());
        let three = RejectedSpans { spans: 3, why: "too old".into() };
        let body = r#"{"partialSuccess":{"rejectedSpans":"3","errorMessage":"too old"}}"#;
        assert_eq!(refused(body), three);
        assert_eq!(refused(&body.replace("\"3\"", "3")), three);
        for nothing in ["", "{}", "[]", "no", r#"{"partialSuccess":{}}"#] {
            assert_eq!(refused(nothing), RejectedSpans::default(), "{nothing}");
        }
    }
}
