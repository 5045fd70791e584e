//! Asks the subject before a request how it would answer, and compares that with the answer: explanations have no
//! rules of their own, and they change nothing, because the scenario passes as without them.
//!
//! Compared are the verdict, and the reason of a request that bypasses the cache. Not asked: while another request is
//! in flight, for bytes as written, for requests with content or with two lines of a field.

use super::Scene;
use crate::cache_status::CacheStatus;
use crate::failure::Mismatch;
use crate::story::{Message, Text};
use harness::Response;
use serde_json::{Map, Value, json};

/// How the subject would answer a request, by its own explanation.
pub(super) struct Explanation {
    verdict: String,
    reason: Option<String>,
}

impl Scene {
    /// Asks for the explanation of a request, if the subject is to be asked.
    pub(super) fn explanation(&self, message: &Message) -> Option<Explanation> {
        let Message::Http { method, target, fields, body: None } = message else { return None };
        if !self.subject.explains() || !self.under_way.is_empty() {
            return None;
        }
        let text = |text: &Text| String::from_utf8(self.fill(text).ok()?).ok();
        let mut headers = Map::new();
        for (name, value) in fields {
            if headers.insert(name.clone(), text(value)?.into()).is_some() {
                return None;
            }
        }
        let call = json!({ "url": text(target)?, "method": method, "headers": headers });
        let told = self.ask_json("POST", "/v1/explain", Some(&call)).ok()?;
        let word = |name: &str| told.get(name).and_then(Value::as_str).map(str::to_owned);
        Some(Explanation { verdict: word("verdict")?, reason: word("reason") })
    }
}

impl Explanation {
    /// Compares the explanation with the answer.
    pub(super) fn judge(&self, response: &Response) -> Result<(), Mismatch> {
        let status = CacheStatus::read(response);
        let (forward, detail) = (status.value("fwd"), status.value("detail"));
        let is_hit = status.value("hit").is_some();
        let is_bypass = matches!(forward, Some("bypass" | "method"));
        let is_right = match self.verdict.as_str() {
            "hit" | "stale" => is_hit,
            "render" => forward.is_some() && !is_bypass,
            // Or by the client's private copy.
            "bypass" => {
                is_bypass && (detail.is_none() || detail == self.reason.as_deref()) || is_hit
            }
            "answered" => !is_hit && forward.is_none(),
            _ => false,
        };
        let reason = self.reason.as_deref().unwrap_or("no reason");
        let expected = format!("as explained: {} ({reason})", self.verdict);
        let got = || {
            String::from_utf8_lossy(&response.field("cache-status").unwrap_or_default())
                .into_owned()
        };
        if is_right { Ok(()) } else { Err(Mismatch::new(expected, got())) }
    }
}
