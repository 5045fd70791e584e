//! Traces, with a collector that the test plays over HTTP: the exported data must conform to OTLP's JSON
//! (opentelemetry-proto, "JSON Protobuf Encoding"), and spans of PHP are children of Pagewell's.

use acceptance::{BOUND, Site, client, counter, is_hit, until};
use harness::{Pagewell, Request, Response, Signal, Wait};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};

/// Prints the trace context it received, and sends more fields than are to be stored.
const PAGE: &str = r#"<?php
keep();
header('Traceresponse: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01');
echo $_SERVER['HTTP_TRACEPARENT'] ?? 'none', ' ', $_SERVER['HTTP_TRACESTATE'] ?? 'none';
"#;

const GIVEN: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// A collector, with its requests.
struct Collector {
    at: SocketAddr,
    requests: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Collector {
    fn start() -> Collector {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let at = listener.local_addr().expect("bound");
        let requests = Arc::new(Mutex::new(Vec::new()));
        let kept = requests.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let mut from = BufReader::new(stream);
                let (mut head, mut length) = (String::new(), 0);
                while from.read_line(&mut head).is_ok_and(|read| read > 2) {}
                for line in head.lines() {
                    if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                        length = value.trim().parse().expect("a number");
                    }
                }
                let mut body = vec![0; length];
                from.read_exact(&mut body).expect("all of it");
                let value = serde_json::from_slice(&body).expect("JSON");
                kept.lock().unwrap_or_else(PoisonError::into_inner).push((head, value));
                let answer = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
                from.get_mut().write_all(answer.as_bytes()).expect("it is taken");
            }
        });
        Collector { at, requests }
    }

    fn config(&self, share: &str, more: &str) -> String {
        format!(
            "{more}\n[traces]\nto = \"http://{}\"\nshare = {share}\nservice = \"a shop\"\n",
            self.at
        )
    }

    fn spans(&self) -> Vec<Value> {
        let all = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        let of = |value: &Value| {
            let spans = &value["resourceSpans"][0]["scopeSpans"][0]["spans"];
            spans.as_array().cloned().unwrap_or_default()
        };
        all.iter().flat_map(|(_, value)| of(value)).collect()
    }

    /// Waits for this number of spans.
    fn wait_for(&self, count: usize) -> Vec<Value> {
        until(&format!("{count} spans are there"), || self.spans().len() >= count);
        self.spans()
    }
}

fn asked(pagewell: &Pagewell, target: &str, headers: &[(&str, &str)]) -> Response {
    let mut request = Request::new("GET", target);
    for (name, value) in headers {
        request = request.header(name, value);
    }
    client(pagewell).send(&request).expect("an answer")
}

fn attribute<'a>(span: &'a Value, key: &str) -> &'a Value {
    let all = span["attributes"].as_array().expect("a list");
    let found = all.iter().find(|one| one["key"] == key);
    &found.unwrap_or_else(|| panic!("no {key} in {span}"))["value"]
}

fn of_kind(spans: &[Value], kind: u64) -> Vec<&Value> {
    spans.iter().filter(|span| span["kind"] == kind).collect()
}

fn is_hex(value: &Value, length: usize) -> bool {
    value.as_str().is_some_and(|text| {
        text.len() == length && text.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
    })
}

#[test]
fn a_render_has_two_spans_and_php_gets_the_inner_one() {
    let collector = Collector::start();
    let site = Site::new(&[("page.php", PAGE)]);
    let pagewell = site.serve(&collector.config("1.0", ""));
    // The trace context of an untrusted client is not used as the parent.
    let page =
        asked(&pagewell, "/page.php?q=secret", &[("Traceparent", GIVEN), ("Tracestate", "a=b")]);
    let told = page.text();
    assert!(
        told.starts_with("00-") && told.ends_with("-01 none") && !told.contains(&GIVEN[3..35]),
        "{told}"
    );
    assert!(page.header("traceresponse").is_none(), "{page:?}");
    let spans = collector.wait_for(2);
    for span in &spans {
        assert!(is_hex(&span["traceId"], 32) && is_hex(&span["spanId"], 16), "{span}");
        let time = |key: &str| -> u64 {
            span[key]
                .as_str()
                .and_then(|text| text.parse().ok())
                .unwrap_or_else(|| panic!("{span}"))
        };
        assert!(time("startTimeUnixNano") <= time("endTimeUnixNano"), "{span}");
        assert!(time("startTimeUnixNano") > 1_600_000_000_000_000_000, "{span}");
        assert_eq!(attribute(span, "http.request.method")["stringValue"], "GET");
        assert_eq!(attribute(span, "url.path")["stringValue"], "/page.php");
        assert_eq!(attribute(span, "http.response.status_code")["intValue"], "200");
        assert!(!span.to_string().contains("secret"), "{span}");
        assert!(span.get("status").is_none(), "{span}");
    }
    let (server, origin) = (of_kind(&spans, 2), of_kind(&spans, 3));
    assert_eq!((server.len(), origin.len()), (1, 1), "{spans:?}");
    assert!(server[0].get("parentSpanId").is_none(), "{spans:?}");
    assert_eq!(server[0]["traceId"], origin[0]["traceId"]);
    assert_eq!(origin[0]["parentSpanId"], server[0]["spanId"]);
    let right = format!("00-{}-{}-01 none", &told[3..35], &told[36..52]);
    assert_eq!(told, right);
    assert_eq!(
        (origin[0]["traceId"].as_str(), origin[0]["spanId"].as_str()),
        (Some(&told[3..35]), Some(&told[36..52]))
    );
    let status = attribute(server[0], "pagewell.cache_status")["stringValue"].as_str();
    assert!(status.is_some_and(|status| status.contains("stored")), "{spans:?}");
    let (head, value) =
        collector.requests.lock().unwrap_or_else(PoisonError::into_inner)[0].clone();
    assert!(head.starts_with("POST /v1/traces HTTP/1.1\r\n"), "{head}");
    assert!(head.to_ascii_lowercase().contains("content-type: application/json\r\n"), "{head}");
    let resource = &value["resourceSpans"][0]["resource"];
    assert_eq!(attribute(resource, "service.name")["stringValue"], "a shop");
    until("it is counted", || counter(&pagewell, "spans_exported") == 2);
    // The page is the same for all clients, also for one with another trace context.
    let again =
        asked(&pagewell, "/page.php?q=secret", &[("Traceparent", &GIVEN.replace("4b", "5b"))]);
    assert!(is_hit(&again) && again.text() == told && again.header("traceresponse").is_none());
}

#[test]
fn a_trusted_proxys_trace_continues_and_its_flag_decides() {
    let collector = Collector::start();
    let site = Site::new(&[("page.php", PAGE), ("fails.php", "<?php http_response_code(500);")]);
    let pagewell = site.serve(&collector.config("0.0", "trusted_proxies = [\"127.0.0.1\"]"));
    let unsampled = GIVEN.replace("-01", "-00");
    let told = |target: &str, context: &str| {
        let headers = [("Traceparent", context), ("Tracestate", "vendor=x")];
        asked(&pagewell, target, &headers).text()
    };
    let text = told("/page.php?1", &unsampled);
    assert!(text.starts_with(&GIVEN[..36]) && text.ends_with("-00 vendor=x"), "{text}");
    assert!(!text.contains(&GIVEN[36..52]), "{text}");
    // A context with any invalid byte is ignored. At a ratio of 0 no own trace is sampled.
    let text = told("/page.php?2", &GIVEN.to_uppercase());
    assert!(!text.contains("4bf92f35") && text.ends_with("-00 none"), "{text}");
    let text = told("/page.php?3", GIVEN);
    assert!(text.starts_with(&GIVEN[..36]) && text.ends_with("-01 vendor=x"), "{text}");
    let spans = collector.wait_for(2);
    let server = of_kind(&spans, 2);
    assert_eq!(server[0]["parentSpanId"], "00f067aa0ba902b7");
    assert_eq!(server[0]["traceId"], "4bf92f3577b34da6a3ce929d0e0e4736");
    // A hit has a span if the client's context requests it.
    let hit = asked(&pagewell, "/page.php?3", &[("Traceparent", GIVEN)]);
    assert!(is_hit(&hit));
    let spans = collector.wait_for(3);
    let last = spans.last().expect("three");
    let status = attribute(last, "pagewell.cache_status")["stringValue"].as_str();
    assert!(status.is_some_and(|status| status.starts_with("pagewell; hit")), "{last}");
    told("/fails.php", GIVEN);
    let spans = collector.wait_for(5);
    assert!(spans[3..].iter().all(|span| span["status"]["code"] == 2), "{spans:?}");
    assert_eq!(spans.len(), 5);
}

#[test]
fn traces_over_http2_are_the_same() {
    let collector = Collector::start();
    let site = Site::new(&[("page.php", PAGE)]);
    let pagewell = site.serve(&collector.config("1.0", "trusted_proxies = [\"127.0.0.1\"]"));
    let ask = |headers: &[&str]| {
        let lines = headers.iter().flat_map(|line| ["-H", line]);
        let asked = Command::new("curl")
            .args(["-sSi", "--http2-prior-knowledge", "--max-time", "60"])
            .args(lines)
            .arg(format!("http://{}/page.php", pagewell.address()))
            .output()
            .expect("curl can be started");
        let said = String::from_utf8_lossy(&asked.stdout).into_owned();
        assert!(said.starts_with("HTTP/2 200"), "{said}");
        said
    };
    assert!(ask(&[]).contains("00-"), "PHP is told");
    assert_eq!(collector.wait_for(2).len(), 2);
    // A plain hit is not traced; a hit with a sampled context is.
    assert!(ask(&[]).contains("pagewell; hit"));
    assert!(ask(&[&format!("traceparent: {GIVEN}")]).contains("pagewell; hit"));
    let spans = collector.wait_for(3);
    assert_eq!(spans.len(), 3, "{spans:?}");
    assert_eq!(spans[2]["parentSpanId"], "00f067aa0ba902b7");
    let status = attribute(&spans[2], "pagewell.cache_status")["stringValue"].as_str();
    assert!(status.is_some_and(|status| status.starts_with("pagewell; hit")), "{spans:?}");
}

#[test]
fn an_unreachable_collector_blocks_no_request() {
    let site = Site::new(&[("page.php", PAGE)]);
    let nobody = harness::free_port().expect("a port");
    let config = format!("[traces]\nto = \"http://127.0.0.1:{nobody}/v1/traces\"\nshare = 1.0\n");
    let pagewell = site.serve(&config);
    assert_eq!(asked(&pagewell, "/page.php", &[]).status, 200);
    until("it is counted", || counter(&pagewell, "spans_dropped") == 2);
    until("it is logged", || pagewell.log().contains("traces-not-exported"));
}

#[test]
fn pending_spans_are_sent_at_the_stop() {
    let collector = Collector::start();
    let site = Site::new(&[("page.php", PAGE)]);
    let mut pagewell = site.serve(&collector.config("1.0", ""));
    for n in 0..600 {
        assert_eq!(asked(&pagewell, &format!("/page.php?{n}"), &[]).status, 200);
    }
    pagewell.signal(Signal::TERM);
    assert!(matches!(pagewell.wait(BOUND), Wait::Ended(status) if status.success()));
    assert_eq!(collector.spans().len(), 1_200, "{}", pagewell.log());
}

#[test]
fn without_tracing_contexts_are_forwarded_unchanged() {
    let site = Site::new(&[("page.php", PAGE)]);
    let pagewell = site.serve("");
    assert_eq!(asked(&pagewell, "/page.php?1", &[]).text(), "none none");
    let page = asked(&pagewell, "/page.php?2", &[("Traceparent", GIVEN), ("Tracestate", "a=b")]);
    assert_eq!(page.text(), format!("{GIVEN} a=b"));
}
