//! The control API: live events (`/v1/live`), the last hour (`/v1/history`), the most requested pages,
//! readiness (`/v1/ready`), access control, the connection that is closed when there are too many, and the
//! files of the dashboard.

use acceptance::{BOUND, Raw, Site, client, counter, until};
use control::api::{FILES, STREAMS};
use harness::{Client, Pagewell, Request, Response, Signal, Wait, free_port};
use serde_json::{Value, json};

/// The maximum number of open connections to the control API.
const CONNECTIONS: usize = 256;
const HEALTH: &str = "GET /v1/health HTTP/1.1\r\nHost: localhost\r\n\r\n";
const LIVE: &str = "GET /v1/live HTTP/1.1\r\nHost: localhost\r\n\r\n";

fn call(pagewell: &Pagewell, request: &Request) -> Response {
    Client::new(pagewell.admin().clone()).send(request).expect("an answer")
}

fn get(pagewell: &Pagewell, path: &str) -> Response {
    call(pagewell, &Request::get(path))
}

fn kept_site() -> Site {
    Site::new(&[("index.php", "<?php keep(); echo 1;")])
}

/// The events in a response.
fn events(text: &str) -> Vec<Value> {
    let events = text.split("\n\n").filter(|event| !event.is_empty());
    let data = events.map(|event| {
        event
            .strip_prefix("event: figures\ndata: ")
            .unwrap_or_else(|| panic!("no event: {event:?}"))
    });
    data.map(|data| serde_json::from_str(data).expect("JSON")).collect()
}

#[test]
fn the_figures_come_as_events() {
    let site = kept_site();
    let pagewell = site.serve("");
    let mut client = client(&pagewell);
    for _ in 0..3 {
        client.get("/").expect("an answer");
    }
    let response = get(&pagewell, "/v1/live?events=2");
    assert_eq!(response.header("content-type"), Some("text/event-stream"));
    let events = events(&response.text());
    assert_eq!(events.len(), 2);
    let (first, second) = (&events[0], &events[1]);
    assert_eq!(first["figures"]["requests"], 3);
    assert_eq!(first["figures"]["hits"], 2);
    assert!(first["at_ms"].as_u64() < second["at_ms"].as_u64(), "{first} {second}");
    assert_eq!(first["not_ready"], json!([]));
    assert!(first["cores"].as_u64() >= Some(1));
    let counts = first["origin_times"]["counts"].as_array().expect("counts");
    let bounds = first["origin_times"]["bounds_ms"].as_array().expect("bounds");
    assert_eq!(counts.len(), bounds.len() + 1);
    assert_eq!(counts.iter().filter_map(Value::as_u64).sum::<u64>(), 1, "one render");
    for name in ["process_cpu_us", "process_resident_bytes"] {
        assert!(second["figures"][name].as_u64() > Some(1000), "{name}: {second}");
    }
    assert_eq!(get(&pagewell, "/v1/live?evnts=2").status, 400);
    assert_eq!(get(&pagewell, "/v1/live?e%76ents=%31").status, 200);
}

/// Each kind of answer is shown to those who have selected it, over every protocol; without a watcher nothing is
/// collected.
#[test]
fn requests_are_shown_to_those_who_watch() {
    let site = Site::new(&[
        ("index.php", "<?php keep(); echo 1;"),
        ("gone.php", "<?php http_response_code(404);"),
        ("robots.txt", "allow"),
    ]);
    let pagewell = site.serve("");
    let mut client = client(&pagewell);
    client.get("/?before").expect("an answer");
    let watch = |query: &str| {
        let mut stream = Raw::to(pagewell.admin());
        stream.send(format!("GET /v1/requests{query} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        stream.until("event: requests");
        stream
    };
    let (mut all, mut missing, mut hits) =
        (watch(""), watch("?status=4"), watch("?path=/&outcome=hit"));
    // The connection is older than the watchers, and has had a request.
    for path in ["/?a=1", "/?a=1", "/gone.php", "/robots.txt", "/robots.txt"] {
        client.get(path).expect("an answer");
    }
    let long = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(20_000));
    assert_eq!(Raw::with(&pagewell, long).answer().status, 414);
    let mut text = all.until("\"outcome\":\"rejected\"") + &all.until("\n\n");
    let seen = |text: &str, target: &str, outcome: &str| {
        let events = text.split("data: ").skip(1).filter_map(|part| {
            serde_json::from_str::<Value>(part.lines().next().unwrap_or_default()).ok()
        });
        let shown: Vec<Value> = events
            .flat_map(|event| event["requests"].as_array().cloned().unwrap_or_default())
            .collect();
        shown.iter().filter(|one| one["target"] == target && one["outcome"] == outcome).count()
    };
    let expected = [
        ("/?a=…", "miss", 1),
        ("/?a=…", "hit", 1),
        ("/gone.php", "miss", 1),
        ("/robots.txt", "file", 2),
    ];
    // Those of another connection may be shown later.
    while expected.iter().any(|(target, outcome, count)| seen(&text, target, outcome) < *count) {
        text += &all.until("\n\n");
    }
    assert!(!text.contains("?before"), "{text}");
    for (target, outcome, count) in expected {
        assert_eq!(seen(&text, target, outcome), count, "{target} {outcome}\n{text}");
    }
    let text = missing.until("/gone.php");
    assert!(text.contains("\"status\":404") && !text.contains("/robots.txt"), "{text}");
    let text = hits.until("\"outcome\":\"hit\"");
    assert!(!text.contains("\"outcome\":\"miss\""), "{text}");
    assert_eq!(get(&pagewell, "/v1/requests?events=1").status, 200);
    assert_eq!(get(&pagewell, "/v1/requests?status=ok").status, 400);
}

/// A young process has all its samples for each span.
#[test]
fn the_history_of_a_day_and_of_a_week() {
    let site = kept_site();
    let pagewell = site.serve("");
    client(&pagewell).get("/").expect("an answer");
    for span in ["hour", "day", "week"] {
        let history = history(&pagewell, &format!("?span={span}"));
        assert_eq!((&history["span"], &history["step_ms"]), (&json!(span), &json!(10_000)));
        let times = history["at_ms"].as_array().expect("times");
        assert!(!times.is_empty(), "{history}");
    }
    assert_eq!(get(&pagewell, "/v1/history?span=year").status, 400);
    assert_eq!(get(&pagewell, "/v1/history?span=day&span=day").status, 400);
}

/// The history of a site, or of all sites together.
fn history(pagewell: &Pagewell, query: &str) -> Value {
    let response = get(pagewell, &format!("/v1/history{query}"));
    assert_eq!(response.status, 200, "{}", response.text());
    serde_json::from_str(&response.text()).expect("JSON")
}

#[test]
fn the_last_hour_is_recorded_without_any_reader() {
    let site = Site::new(&[("one/index.php", "<?php echo 1;"), ("two/index.php", "<?php echo 2;")]);
    let sites = ["one", "two"].map(|name| {
        let root = site.root().join(name).display().to_string();
        format!("[[site]]\nhost = \"{name}.test\"\nroot = {root:?}\n")
    });
    let file = site.at("several.toml");
    std::fs::write(&file, sites.concat()).expect("can be written");
    let args = ["--memory", "64M", "--config", &file.display().to_string()];
    let pagewell = Pagewell::start(acceptance::binary(), &args).expect("pagewell starts");
    let mut client = client(&pagewell);
    for host in ["one.test", "two.test", "two.test"] {
        let request = Request::get("/").header("Host", host);
        assert_eq!(client.send(&request).expect("an answer").status, 200);
    }
    let at_ms = |history: &Value| history["at_ms"].as_array().expect("times").len();
    // Two samples of the task, the last of them after the requests, and one of now.
    until("samples are recorded", || {
        let all = history(&pagewell, "");
        let sampled = all["figures"]["requests"].as_array().expect("values");
        sampled.len() >= 3 && sampled[sampled.len() - 2] == 3
    });
    for (query, host, requests) in [
        ("", Value::Null, 3),
        ("?site=one.test", json!("one.test"), 1),
        ("?site=two.test", json!("two.test"), 2),
        ("?site=two%2Etest", json!("two.test"), 2),
    ] {
        let history = history(&pagewell, query);
        assert_eq!(history["site"], host);
        let count = at_ms(&history);
        let figures = history["figures"].as_object().expect("figures");
        for (name, values) in figures {
            assert_eq!(values.as_array().map(Vec::len), Some(count), "{name}");
        }
        for name in ["counts", "sum_us"] {
            let values = history["origin_times"][name].as_array();
            assert_eq!(values.map(Vec::len), Some(count), "{name}");
        }
        // The last but one was recorded while nobody called the API.
        let sampled = figures["requests"].as_array().expect("values");
        assert_eq!(
            (&sampled[count - 2], &sampled[count - 1]),
            (&json!(requests), &json!(requests)),
            "{query}"
        );
        let times: Vec<_> = history["at_ms"].as_array().into_iter().flatten().collect();
        assert!(times.is_sorted_by_key(|time| time.as_u64()), "{times:?}");
        assert!(figures["process_resident_bytes"][0].as_u64() > Some(1000));
    }
    let unknown = get(&pagewell, "/v1/history?site=three%2etest");
    assert_eq!(unknown.status, 404);
    let text = unknown.text();
    assert!(text.contains("three.test") && text.contains("pagewell stats --json"), "{text}");
    // The samples of each site, and of their sum.
    assert_eq!(counter(&pagewell, "history_bytes"), 3 * control::history::HISTORY_BYTES as u64);
}

#[test]
fn the_most_requested_pages_are_listed() {
    let site =
        Site::new(&[("index.php", "<?php keep(); header('Vary: Accept-Language'); echo 1;")]);
    let pagewell = site.serve("");
    let mut client = client(&pagewell);
    for (path, language, count) in
        [("/?b=1", "en", 2), ("/?a=secret", "en", 3), ("/?a=secret", "de", 3)]
    {
        for _ in 0..count {
            let request = Request::get(path).header("Accept-Language", language);
            client.send(&request).expect("an answer");
        }
    }
    let response = get(&pagewell, "/v1/most-requested").text();
    let answer: Value = serde_json::from_str(&response).expect("JSON");
    let pages: Vec<_> = answer["pages"].as_array().into_iter().flatten().collect();
    let served: Vec<_> = pages.iter().map(|page| page["served"].as_u64()).collect();
    assert_eq!(served, [Some(4), Some(1)], "{response}");
    let variants: Vec<_> = pages.iter().map(|page| page["variants"].as_u64()).collect();
    assert_eq!(variants, [Some(2), Some(1)], "one row for each URL: {response}");
    assert!(pages[0]["url"].as_str().is_some_and(|url| url.contains("a=")), "{response}");
    assert!(!response.contains("secret"), "{response}");
}

#[test]
fn live_clients_are_bounded_and_do_not_delay_the_stop() {
    let site = kept_site();
    let mut pagewell = site.serve("");
    let mut listening: Vec<_> = (0..STREAMS).map(|_| Raw::to(pagewell.admin())).collect();
    for stream in &mut listening {
        stream.send(LIVE);
        stream.until("event: figures");
    }
    let refused = get(&pagewell, "/v1/live?events=1");
    assert_eq!((refused.status, refused.text().contains("streams-full")), (503, true));
    listening.pop();
    until("a place is free", || get(&pagewell, "/v1/live?events=1").status == 200);
    pagewell.signal(Signal::TERM);
    for stream in &mut listening {
        assert!(stream.rest().ends_with("0\r\n\r\n"), "it is ended, and not cut off");
    }
    assert!(matches!(pagewell.wait(BOUND), Wait::Ended(status) if status.success()));
}

#[test]
fn the_connection_that_has_been_idle_longest_gives_way_to_a_new_call() {
    let pagewell = kept_site().serve("");
    let called = || {
        let mut raw = Raw::to(pagewell.admin());
        raw.send(HEALTH);
        assert_eq!(raw.answer().status, 200);
        raw
    };
    let mut live = Raw::to(pagewell.admin());
    live.send(LIVE);
    live.until("event: figures");
    let mut idle: Vec<_> = (1..CONNECTIONS).map(|_| called()).collect();
    idle[0].send(HEALTH);
    assert_eq!(idle[0].answer().status, 200, "now another one has been idle longest");
    let _new: Vec<_> = (0..4).map(|_| called()).collect();
    for raw in &mut idle[1..5] {
        assert_eq!(raw.rest(), "", "it is closed, and nothing was said");
    }
    for at in [0, 5, 6, CONNECTIONS - 2] {
        idle[at].send(HEALTH);
        assert_eq!(idle[at].answer().status, 200, "the others are there: {at}");
    }
    live.until("event: figures");
}

#[test]
fn idle_connections_do_not_block_other_clients() {
    let pagewell = kept_site().serve("");
    let last = HEALTH.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n");
    let (head, rest) = last.split_at(20);
    let silent = |at: usize| {
        let mut raw = Raw::to(pagewell.admin());
        raw.send(if at.is_multiple_of(2) { "" } else { head });
        raw
    };
    // They also leave room for new clients.
    let all: Vec<_> = (0..=CONNECTIONS).map(silent).collect();
    let mut new: Vec<_> = (0..4).map(|_| Raw::to(pagewell.admin())).collect();
    for raw in &mut new {
        raw.send(HEALTH);
        assert_eq!(raw.answer().status, 200);
    }
    let mut answered = 0;
    for (at, mut raw) in all.into_iter().enumerate() {
        raw.send(if at.is_multiple_of(2) { &last } else { rest });
        answered += usize::from(raw.rest().starts_with("HTTP/1.1 200"));
    }
    let left = CONNECTIONS - new.len()..=CONNECTIONS;
    assert!(left.contains(&answered), "one has gone for each that came, at most: {answered}");
}

#[test]
fn it_is_ready_until_it_stops() {
    let site = kept_site();
    let mut pagewell = site.serve("");
    let ready = get(&pagewell, "/v1/ready");
    assert_eq!((ready.status, ready.text().trim()), (200, r#"{"ready":true,"reasons":[]}"#));
    let mut asking = Raw::to(pagewell.admin());
    asking.send("GET /v1/ready HTTP/1.1\r\n");
    // The listener accepts in order. When this request has been answered, the earlier connection has been
    // accepted.
    assert_eq!(counter(&pagewell, "requests"), 0);
    pagewell.signal(Signal::TERM);
    until("nobody new is let in", || !pagewell.address().accepts());
    asking.send("Host: localhost\r\n\r\n");
    let answer = asking.answer();
    assert_eq!(answer.status, 503);
    assert_eq!(answer.content.trim(), r#"{"ready":false,"reasons":["stopping"]}"#);
    assert!(matches!(pagewell.wait(BOUND), Wait::Ended(_)));
}

#[test]
fn it_is_not_ready_without_its_database() {
    let site = kept_site();
    let port = free_port().expect("a port");
    let pagewell = site.serve(&format!(
        "[[database]]\nurl = \"mysql://a:b@127.0.0.1:{port}/x\"\n\
         [[change]]\ntable = \"news\"\ntags = [\"news\"]\n"
    ));
    let ready = get(&pagewell, "/v1/ready");
    assert_eq!(ready.status, 503);
    let told: Value = serde_json::from_str(&ready.text()).expect("JSON");
    assert_eq!(told, json!({ "ready": false, "reasons": ["database-not-followed"] }));
    assert_eq!(get(&pagewell, "/v1/health").status, 200, "it answers");
    let live = get(&pagewell, "/v1/live?events=1");
    assert_eq!(events(&live.text())[0]["not_ready"], json!(["database-not-followed"]));
}

#[test]
fn the_dashboard_needs_no_token_and_contains_no_data() {
    let site = kept_site();
    let token = site.at("token");
    std::fs::write(&token, "0123456789abcdef").expect("can be written");
    let pagewell = site.serve(&format!("admin_token_file = {token:?}\n"));
    for file in FILES {
        let response = get(&pagewell, file.path);
        assert_eq!((response.status, response.content.as_slice()), (200, file.content));
        assert_eq!(response.header("content-type"), Some(file.media_type), "{}", file.path);
        let policy = response.header("content-security-policy").expect("a policy");
        for part in ["default-src 'none'", "script-src 'self';", "frame-ancestors 'none'"] {
            assert!(policy.contains(part), "{policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(response.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(call(&pagewell, &Request::new("POST", file.path)).status, 405);
        let elsewhere = Request::get(file.path).header("Host", "evil.test");
        assert_eq!(call(&pagewell, &elsewhere).status, 403);
    }
    for path in ["/v1/live", "/v1/stats", "/v1/ready", "/dashboard/", "/dashboard/main.js/"] {
        assert_eq!(get(&pagewell, path).status, 401, "{path}");
    }
}
