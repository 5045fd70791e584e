//! The steps that use the subject's control API: JSON over HTTP on its admin address.
//!
//! | step | request | checked in the answer |
//! |---|---|---|
//! | `stat` | `GET /v1/stats` | the number with that name; dots separate nested keys |
//! | `invalidate` | `POST /v1/invalidate` with `{"tags":[…]}`, `{"urls":[…]}` or `{"all":true}` | `dropped` |
//! | `admin` | as written | as expected |

use super::play::ask;
use super::{Scene, describe};
use crate::check::{compares, sign};
use crate::deadline::LOOK_EVERY;
use crate::failure::Mismatch;
use crate::request::Request;
use crate::story::{Comparison, Expectation, Invalidation, Message, Text};
use crate::transcript::shorten;
use harness::Client;
use serde_json::{Value, json};

impl Scene {
    /// Sends a request to the control API on a separate connection.
    pub(super) fn admin(
        &mut self,
        message: &Message,
        expect: &Expectation,
    ) -> Result<(), Vec<Mismatch>> {
        let request = self.request(message)?;
        let mut client = Client::new(self.subject.admin_address());
        let answer = ask(&mut client, &request, self.deadline());
        self.transcript.add(describe(&answer));
        let judged = self.judge(&mut client, answer, expect);
        client.close();
        judged
    }

    /// Waits until a number of the statistics matches: some are counted after the answer.
    pub(super) fn stat(
        &mut self,
        name: &str,
        comparison: Comparison,
        number: f64,
    ) -> Result<(), Mismatch> {
        let expected = format!("{name}{}{number}", sign(comparison));
        let mut got = String::new();
        let deadline = self.deadline();
        let judge = || match self.ask_json("GET", "/v1/stats", None) {
            Err(wrong) => Some(Err(wrong)),
            Ok(stats) => match number_at(&stats, name) {
                None => {
                    let all = shorten(stats.to_string().as_bytes(), 1000);
                    Some(Err(Mismatch::new(expected.clone(), format!("no such number in {all}"))))
                }
                Some(found) if compares(comparison, found, number, 0.0) => Some(Ok(())),
                Some(found) => {
                    got = format!("{name}={found}");
                    None
                }
            },
        };
        deadline.poll(LOOK_EVERY, judge).unwrap_or_else(|| Err(Mismatch::new(expected, got)))
    }

    /// Invalidates pages, and checks how many were removed.
    pub(super) fn invalidate(
        &mut self,
        what: &Invalidation,
        count: Option<u64>,
    ) -> Result<(), Mismatch> {
        let names = |texts: &[Text]| -> Result<Vec<String>, Mismatch> {
            let fill = |text| self.fill(text).map_err(|mut wrong| wrong.remove(0));
            texts.iter().map(|t| Ok(String::from_utf8_lossy(&fill(t)?).into_owned())).collect()
        };
        let content = match what {
            Invalidation::Tags(tags) => json!({ "tags": names(tags)? }),
            Invalidation::Urls(urls) => json!({ "urls": names(urls)? }),
            Invalidation::All => json!({ "all": true }),
        };
        let answer = self.ask_json("POST", "/v1/invalidate", Some(&content))?;
        self.transcript.add(format!("  came: {answer}"));
        let dropped = answer.get("dropped").and_then(Value::as_u64);
        match (count, dropped) {
            (_, None) => Err(Mismatch::new("the number of pages dropped", answer.to_string())),
            (Some(count), Some(dropped)) if count != dropped => {
                Err(Mismatch::new(format!("{count} dropped"), format!("{dropped} dropped")))
            }
            _ => Ok(()),
        }
    }

    /// Sends a request to the control API, and parses its answer as JSON.
    pub(super) fn ask_json(
        &self,
        method: &str,
        path: &str,
        content: Option<&Value>,
    ) -> Result<Value, Mismatch> {
        let what = format!("JSON from {method} {path}");
        let mut fields = vec![("host".to_owned(), b"localhost".to_vec())];
        if content.is_some() {
            fields.push(("content-type".to_owned(), b"application/json".to_vec()));
        }
        let body = content.map(|content| content.to_string().into_bytes());
        let request = Request::http(method, path.as_bytes(), fields, body);
        let mut client = Client::new(self.subject.admin_address());
        let answer = ask(&mut client, &request, self.deadline());
        client.close();
        let answer = answer.map_err(|trouble| Mismatch::new(what.clone(), trouble.to_string()))?;
        let answer = self.with_own_names(answer);
        let got = || format!("{} | {}", answer.status, shorten(&answer.content, 300));
        if answer.status != 200 {
            return Err(Mismatch::new(what, got()));
        }
        serde_json::from_slice(&answer.content).map_err(|_| Mismatch::new(what, got()))
    }
}

/// The number with this name: a key, or a path of keys separated by dots.
fn number_at(stats: &Value, name: &str) -> Option<f64> {
    let found = match stats.get(name) {
        Some(found) => Some(found),
        None => name.split('.').try_fold(stats, |table, key| table.get(key)),
    };
    found.and_then(Value::as_f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_flat_or_nested() {
        let stats = json!({ "pages": 3, "a.b": 1, "bytes": { "index": 9 } });
        assert_eq!(number_at(&stats, "pages"), Some(3.0));
        assert_eq!(number_at(&stats, "a.b"), Some(1.0));
        assert_eq!(number_at(&stats, "bytes.index"), Some(9.0));
        assert_eq!(number_at(&stats, "bytes"), None);
        assert_eq!(number_at(&stats, "other"), None);
    }
}
