//! Compares the description of the control API, `docs/operating/control-openapi.json`, with the running binary.
//! Every path, method and status in it is exercised, and the response is checked against the schema. The
//! description contains every route of the binary. Requests that violate a schema are refused.

use acceptance::Site;
use control::api::{REQUEST_STREAMS, ROUTES, STREAMS};
use harness::{Client, Pagewell, Request, Response};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;

fn document() -> Value {
    let text = include_str!("../../../../../docs/operating/control-openapi.json");
    serde_json::from_str(text).expect("JSON")
}

/// The target of a reference.
fn resolved<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    match value.get("$ref").and_then(Value::as_str) {
        Some(at) => document.pointer(&at[1..]).unwrap_or_else(|| panic!("{at} is not there")),
        None => value,
    }
}

/// The violation of a schema by a value. Only the keywords that the document uses are supported.
fn wrong(document: &Value, schema: &Value, value: &Value) -> Option<String> {
    let schema = resolved(document, schema);
    let words: BTreeSet<&str> =
        schema.as_object().expect("a schema").keys().map(|k| &**k).collect();
    let known = [
        "type",
        "required",
        "properties",
        "additionalProperties",
        "items",
        "enum",
        "minProperties",
        "description",
        "anyOf",
    ];
    assert!(words.iter().all(|word| known.contains(word)), "a word that is not checked: {words:?}");
    if let Some(any) = schema.get("anyOf").and_then(Value::as_array) {
        let all: Option<Vec<_>> = any.iter().map(|one| wrong(document, one, value)).collect();
        return all.map(|all| all.join(", or "));
    }
    let is_type = match schema.get("type") {
        None => true,
        Some(Value::Array(types)) => types.iter().any(|one| is_of_type(one, value)),
        Some(one) => is_of_type(one, value),
    };
    if !is_type {
        return Some(format!("{value} is no {}", schema["type"]));
    }
    if let Some(list) = schema.get("enum").and_then(Value::as_array)
        && !list.contains(value)
    {
        return Some(format!("{value} is none of {list:?}"));
    }
    let items = value.as_array().into_iter().flatten();
    let wrong_item = items.filter_map(|item| wrong(document, schema.get("items")?, item)).next();
    wrong_item.or_else(|| wrong_members(document, schema, value))
}

fn is_of_type(name: &Value, value: &Value) -> bool {
    match name.as_str().expect("the name of a type") {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "null" => value.is_null(),
        other => panic!("a type that is not checked: {other}"),
    }
}

fn wrong_members(document: &Value, schema: &Value, value: &Value) -> Option<String> {
    let members = value.as_object()?;
    for name in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
        let name = name.as_str().expect("a name");
        if !members.contains_key(name) {
            return Some(format!("{name} is missing"));
        }
    }
    if schema
        .get("minProperties")
        .and_then(Value::as_u64)
        .is_some_and(|n| (members.len() as u64) < n)
    {
        return Some("too few members".into());
    }
    for (name, member) in members {
        let found =
            match (schema.pointer(&format!("/properties/{name}")), &schema["additionalProperties"])
            {
                (Some(schema), _) => wrong(document, schema, member),
                (None, Value::Bool(false)) => Some("is not in the schema".into()),
                (None, Value::Null | Value::Bool(true)) => None,
                (None, more) => wrong(document, more, member),
            };
        if let Some(found) = found {
            return Some(format!("{name}: {found}"));
        }
    }
    None
}

fn call(pagewell: &Pagewell, request: &Request) -> Response {
    Client::new(pagewell.admin().clone()).send(request).expect("an answer")
}

fn post(content: &str) -> Request {
    post_to("/v1/invalidate", content)
}

fn post_to(path: &str, content: &str) -> Request {
    let request = Request::new("POST", path).content(content.as_bytes());
    request.header("Content-Type", "application/json")
}

fn reload(content: &str) -> Request {
    let request = Request::new("POST", "/v1/reload").content(content.as_bytes());
    request.header("Content-Type", "application/json")
}

/// A request for a route that is answered with 200.
fn right(method: &'static str, path: &'static str) -> Request {
    match path {
        // Without a limit the response would not end.
        "/v1/live" => Request::get("/v1/live?events=1"),
        "/v1/requests" => Request::get("/v1/requests?events=1&status=2&path=/&outcome=hit"),
        "/v1/reload" => reload("{}"),
        "/v1/explain" => post_to(path, r#"{"url":"/","headers":{"cookie":"a=b"}}"#),
        "/v1/trial" if method == "POST" => post_to(path, r#"{"restart":true}"#),
        _ if method == "POST" => {
            post(r#"{"tags":["a"],"urls":["/a"],"prefixes":["/b/"],"soft":true}"#)
        }
        path => Request::new(method, path),
    }
}

/// Requests for each status other than 200: path, status, request.
fn failing() -> Vec<(&'static str, u16, Request)> {
    let mut all = Vec::new();
    let looks = ROUTES.iter().filter(|(method, _)| *method == "GET");
    for path in looks.map(|(_, path)| *path) {
        all.push((path, 403, Request::get(path).header("Host", "evil.test")));
        all.push((path, 405, Request::new("PUT", path)));
    }
    all.push(("/v1/live", 400, Request::get("/v1/live?events=few")));
    all.push(("/v1/requests", 400, Request::get("/v1/requests?outcome=good")));
    all.push(("/v1/history", 400, Request::get("/v1/history?host=a.test")));
    all.push(("/v1/history", 404, Request::get("/v1/history?site=nobody.test")));
    let path = "/v1/trial";
    all.push((path, 400, Request::get("/v1/trial?host=a.test")));
    all.push((path, 400, Request::get("/v1/trial?text=no")));
    all.push((path, 404, post_to(path, r#"{"restart":true,"site":"nobody.test"}"#)));
    all.push((path, 413, post_to(path, &format!("{{\"site\":\"{}\"}}", "x".repeat(17 << 20)))));
    all.push((path, 415, Request::new("POST", path).content(b"{}")));
    let path = "/v1/invalidate";
    all.push((path, 400, post("{}")));
    all.push((path, 403, post(r#"{"all":true}"#).header("Host", "evil.test")));
    all.push((path, 404, post(r#"{"all":true,"site":"nobody.test"}"#)));
    all.push((path, 405, Request::get(path)));
    all.push((path, 413, post(&format!("{{\"tags\":[\"{}\"]}}", "x".repeat(17 << 20)))));
    all.push((path, 415, Request::new("POST", path).content(b"{}")));
    let path = "/v1/explain";
    let to = |content: &str| post_to(path, content);
    all.push((path, 400, to("{}")));
    all.push((path, 403, to(r#"{"url":"/"}"#).header("Host", "evil.test")));
    all.push((path, 404, to(r#"{"url":"/","site":"nobody.test"}"#)));
    all.push((path, 405, Request::get(path)));
    all.push((path, 413, to(&format!("{{\"url\":\"/{}\"}}", "x".repeat(17 << 20)))));
    all.push((path, 415, Request::new("POST", path).content(b"{}")));
    let path = "/v1/reload";
    all.push((path, 400, reload(r#"{"all":true}"#)));
    all.push((path, 403, reload("{}").header("Host", "evil.test")));
    all.push((path, 405, Request::get(path)));
    all.push((path, 413, reload(&format!("{{\"x\":\"{}\"}}", "x".repeat(17 << 20)))));
    all.push((path, 415, Request::new("POST", path).content(b"{}")));
    all
}

/// Checks a response, and records that its status was seen.
fn check(document: &Value, path: &str, response: &Response, seen: &mut BTreeSet<(String, String)>) {
    let operations = document["paths"][path].as_object().expect("a path of the document");
    let status = response.status.to_string();
    let kind = response.header("content-type").expect("a type");
    let value = match kind {
        "application/json" => serde_json::from_str(&response.text()).expect("JSON"),
        _ => Value::String(response.text()),
    };
    // A path with two methods has two schemas.
    let answers = operations.values().filter_map(|operation| operation["responses"].get(&status));
    let faults = answers.map(|answer| {
        let schema = &resolved(document, answer)["content"][kind]["schema"];
        assert!(schema.is_object(), "{path} {status}: {kind} is not in the document");
        wrong(document, schema, &value)
    });
    let faults: Vec<_> = faults.collect();
    assert!(faults.contains(&None), "{path} {status}: {value}: {faults:?}");
    seen.insert((path.to_owned(), status));
}

#[test]
fn the_description_lists_the_routes_of_the_binary() {
    let document = document();
    let paths = document["paths"].as_object().expect("paths");
    let described: BTreeSet<(String, String)> = paths
        .iter()
        .flat_map(|(path, methods)| {
            let methods = methods.as_object().expect("methods").keys();
            methods.map(move |method| (method.to_uppercase(), path.clone()))
        })
        .collect();
    let there: BTreeSet<(String, String)> =
        ROUTES.iter().map(|(method, path)| (method.to_string(), path.to_string())).collect();
    assert_eq!(described, there, "left: the document, right: the binary");

    let site = Site::new(&[]);
    let token = site.at("token");
    fs::write(&token, "0123456789abcdef").expect("can be written");
    let (open, closed) = (site.serve(""), site.serve(&format!("admin_token_file = {token:?}\n")));
    // Both were started with the same file.
    site.config("", "");
    let mut seen = BTreeSet::new();
    for (method, path) in ROUTES {
        let request = right(method, path);
        let right = call(&open, &request);
        assert_eq!(right.status, 200, "{path}: {}", right.text());
        check(&document, path, &right, &mut seen);
        let refused = call(&closed, &request);
        assert_eq!(refused.status, 401, "{path}");
        check(&document, path, &refused, &mut seen);
    }
    for (path, status, request) in failing() {
        let response = call(&open, &request);
        assert_eq!(response.status, status, "{path}: {}", response.text());
        check(&document, path, &response, &mut seen);
    }
    unready(&document, &site, &mut seen);
    fs::write(site.at("pagewell.toml"), "x = 1").expect("can be written");
    let unusable = call(&open, &reload("{}"));
    assert_eq!(unusable.status, 409, "{}", unusable.text());
    check(&document, "/v1/reload", &unusable, &mut seen);
    for (path, methods) in paths {
        for (_, operation) in methods.as_object().expect("methods") {
            for status in operation["responses"].as_object().expect("responses").keys() {
                assert!(
                    seen.contains(&(path.clone(), status.clone())),
                    "{path} {status} was not seen"
                );
            }
        }
    }
}

/// Requests to a process that is not ready, and to one with the maximum number of listeners.
fn unready(document: &Value, site: &Site, seen: &mut BTreeSet<(String, String)>) {
    let port = harness::free_port().expect("a port");
    let pagewell = site.serve(&format!(
        "[[database]]\nurl = \"mysql://a:b@127.0.0.1:{port}/x\"\n\
         [[change]]\ntable = \"news\"\ntags = [\"news\"]\n"
    ));
    let response = call(&pagewell, &Request::get("/v1/ready"));
    check(document, "/v1/ready", &response, seen);
    for (path, most) in [("/v1/live", STREAMS), ("/v1/requests", REQUEST_STREAMS)] {
        let mut listening: Vec<_> =
            (0..most).map(|_| acceptance::Raw::to(pagewell.admin())).collect();
        for stream in &mut listening {
            stream.send(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
            stream.until("event: ");
        }
        let response = call(&pagewell, &Request::get(path));
        check(document, path, &response, seen);
    }
}

#[test]
fn the_schema_of_a_call_allows_exactly_the_accepted_values() {
    let document = document();
    let schema = json!({ "$ref": "#/components/schemas/Invalidate" });
    let site = Site::new(&[]);
    let pagewell = site.serve("");
    let values = |name: &str| match name {
        "all" | "soft" => vec![json!(true), json!("yes"), json!(1)],
        "site" => vec![json!(["a"]), json!(true)],
        _ => vec![json!(["/a"]), json!("/a"), json!([1]), json!({})],
    };
    let properties = document["components"]["schemas"]["Invalidate"]["properties"].as_object();
    let mut tried = 0;
    for name in properties.expect("properties").keys().map(String::as_str).chain(["tagz"]) {
        for value in values(name) {
            let mut body = json!({ "all": true });
            body[name] = value;
            let allowed = wrong(&document, &schema, &body).is_none();
            let response = call(&pagewell, &post(&body.to_string()));
            assert_eq!(response.status == 200, allowed, "{body}: {}", response.text());
            assert!(allowed || response.text().contains("unreadable"), "{body}");
            tried += 1;
        }
    }
    assert!(tried > 15, "{tried}");
}

#[test]
fn every_name_of_an_error_is_in_the_description() {
    use control::api::ControlError as E;
    let names =
        document()["components"]["schemas"]["Refused"]["properties"]["error"]["enum"].clone();
    let known = [
        E::HostRefused,
        E::CrossSite,
        E::TokenRefused,
        E::NotFound,
        E::Method("GET"),
        E::NotJson,
        E::Unreadable(String::new()),
        E::SiteUnknown(String::new()),
        E::NotReloaded(control::reload::NotReloaded::NoFile),
        E::TooLarge,
        E::StreamsFull(STREAMS),
    ];
    let known: Vec<&str> = known.iter().map(|error| error.status().1).collect();
    assert_eq!(names, json!(known));
}

/// Everything that an explanation may contain is described: for a page that is cached, purged, marked as stale,
/// never stored, bypassed; for a tag; for changes and the top causes of misses.
#[test]
fn explanations_match_their_schema() {
    let document = document();
    let site = Site::new(&[
        (
            "kept.php",
            "<?php keep(); header('Cache-Groups: \"a\"'); header('Vary: Accept'); echo 1;",
        ),
        ("never.php", "<?php session_start(); keep(); echo 1;"),
    ]);
    let rules = "[[rule]]\nname = \"kept\"\npath = \"/kept.php\"\nstore = \"1h\"\n";
    let pagewell = site.serve(rules);
    let mut seen = BTreeSet::new();
    let mut look = |request: &Request, path: &str, has: &str| {
        let response = call(&pagewell, request);
        check(&document, path, &response, &mut seen);
        assert!(response.text().contains(has), "{has} is not in {}", response.text());
    };
    let explain = |content: &str| post_to("/v1/explain", content);
    let get = |path: &str| acceptance::client(&pagewell).get(path).expect("an answer");
    let kept = explain(r#"{"url":"/kept.php"}"#);
    look(&explain(r#"{"url":"/"}"#), "/v1/explain", "nothing is known about earlier ones");
    let client = explain(r#"{"url":"/kept.php","from":"192.0.2.1"}"#);
    look(&client, "/v1/explain", r#""level":"unknown""#);
    get("/kept.php");
    get("/kept.php?utm_source=x&q=1");
    look(&kept, "/v1/explain", r#""verdict":"hit""#);
    look(&kept, "/v1/explain", r#""name":"kept""#);
    look(&explain(r#"{"tag":"a"}"#), "/v1/explain", r#""pages_total":2"#);
    call(&pagewell, &post(r#"{"tags":["a"],"soft":true}"#));
    look(&kept, "/v1/explain", r#""how":"marked""#);
    call(&pagewell, &post(r#"{"tags":["a"]}"#));
    look(&kept, "/v1/explain", r#""how":"purged""#);
    get("/kept.php");
    look(&kept, "/v1/explain", r#""unchanged":true"#);
    look(&explain(r#"{"tag":"a"}"#), "/v1/explain", r#""kind":"control""#);
    get("/never.php");
    get("/never.php");
    look(&explain(r#"{"url":"/never.php"}"#), "/v1/explain", "PHPSESSID");
    let signed = Request::get("/never.php").header("Cookie", "PHPSESSID=0123456789abcdef");
    acceptance::client(&pagewell).send(&signed).expect("an answer");
    look(&Request::get("/v1/changes"), "/v1/changes", r#""strength":"mark""#);
    look(&Request::get("/v1/misses"), "/v1/misses", r#""effect":"bypass""#);
}

/// The results of an audit match their schema.
#[test]
fn the_results_of_an_audit_match_their_schema() {
    let pagewell = Site::new(&[]).serve("audit = \"1 in 10\"\n");
    let status = call(&pagewell, &Request::get("/v1/status"));
    check(&document(), "/v1/status", &status, &mut BTreeSet::new());
    assert!(status.text().contains("counted_seconds"), "{}", status.text());
}

/// The report of a trial and its verdict in the status match their schemas.
#[test]
fn a_running_trial_matches_its_schema() {
    let document = document();
    let pagewell = Site::new(&[]).serve("mode = \"trial\"\n");
    let mut seen = BTreeSet::new();
    for (path, has) in [("/v1/trial", "\"running_seconds\""), ("/v1/status", "trial-running")] {
        let response = call(&pagewell, &Request::get(path));
        check(&document, path, &response, &mut seen);
        assert!(response.text().contains(has), "{has} is not in {}", response.text());
    }
    let restarted = call(&pagewell, &post_to("/v1/trial", r#"{"restart":true}"#));
    check(&document, "/v1/trial", &restarted, &mut seen);
    assert_eq!(restarted.text().trim(), r#"{"restarted":[null]}"#);
    let (_site, with_leak) = super::proof::trial_with_leak();
    let report = call(&with_leak, &Request::get("/v1/trial"));
    check(&document, "/v1/trial", &report, &mut seen);
    assert!(report.text().contains(r#""group":1"#), "{}", report.text());
    let wrong = call(&pagewell, &post_to("/v1/trial", r#"{"restart":false}"#));
    assert_eq!(wrong.status, 400);
    let metrics = call(&pagewell, &Request::get("/metrics")).text();
    for name in ["pagewell_trial{of=\"compared\"} 0", "pagewell_trial_found{class=\"leak\"} 0"] {
        assert!(metrics.contains(name), "{name}: {metrics}");
    }
}
