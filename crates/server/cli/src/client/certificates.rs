//! The text of `pagewell certificates`: one paragraph for each certificate in a file, and for each managed host.
//!
//! Invariant: no text depends on this machine's clock; the running Pagewell counts the seconds.

use super::lasted;
use serde_json::Value;

/// The text of the answer of `GET /v1/certificates`.
pub(super) fn text(answer: &Value) -> String {
    let of = |key: &str| answer[key].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut text: String = of("certificates").iter().map(paragraph).collect();
    for skipped in of("skipped") {
        let word = |key: &str| skipped[key].as_str().unwrap_or_default();
        text.push_str(&format!("{}: no certificate: {}\n", word("name"), word("why")));
    }
    if let Some(error) = answer["storage_error"].as_str() {
        text.push_str(&format!("storage: {error}\n"));
    }
    if text.is_empty() {
        return "No certificates: the configuration has neither [acme] nor [[tls]].".into();
    }
    text.trim_end().to_owned()
}

fn paragraph(one: &Value) -> String {
    let name = one["name"].as_str().unwrap_or_default();
    let has = match (one["issuer"].as_str(), one["ends_in_s"].as_i64()) {
        (Some(issuer), Some(left @ 0..)) => {
            format!("issued by {issuer}, ends in {}", lasted(left.unsigned_abs()))
        }
        (Some(issuer), Some(left)) => {
            format!("issued by {issuer}, has ended {} ago", lasted(left.unsigned_abs()))
        }
        _ => "no certificate yet".to_owned(),
    };
    let mut text = format!("{name}: {has}\n");
    if let Some(file) = one["file"].as_str() {
        text.push_str(&format!("  from {file}, which is read again when it changes\n"));
    }
    if let Some(seconds) = one["next_try_in_s"].as_u64() {
        text.push_str(&format!("  next call of the authority in {}\n", lasted(seconds)));
    }
    if let Some(failure) = one["failure"].as_object() {
        let word = |key: &str| failure.get(key).and_then(Value::as_str).unwrap_or_default();
        text.push_str(&format!("  last error  {}\n  do  {}\n", word("message"), word("remedy")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_host_has_its_paragraph() {
        let answer = json!({
            "certificates": [
                {"name": "a.org", "issuer": "R3", "ends_in_s": 5_184_000, "next_try_in_s": 40_000},
                {"name": "b.org", "next_try_in_s": 60, "failure": {"message": "refused", "remedy": "open it"}},
                {"name": "c.org", "issuer": "R3", "ends_in_s": -7_200, "file": "/c.pem"},
            ],
            "skipped": [{"name": "localhost", "why": "not a public name"}],
        });
        let text = text(&answer);
        assert!(text.starts_with("a.org: issued by R3, ends in 60 days\n  next call"), "{text}");
        assert!(text.contains("b.org: no certificate yet\n"), "{text}");
        assert!(text.contains("  last error  refused\n  do  open it\n"), "{text}");
        assert!(text.contains("c.org: issued by R3, has ended 2 h ago\n  from /c.pem"), "{text}");
        assert!(text.ends_with("localhost: no certificate: not a public name"), "{text}");
        assert!(super::text(&json!({})).contains("neither [acme] nor"));
    }
}
