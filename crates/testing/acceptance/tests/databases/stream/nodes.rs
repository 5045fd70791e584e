//! Operators see the nodes of a cluster and their lag (`GET /v1/sources`): a connected node, one that has
//! stopped in an orderly way, and one that was killed. While the stream is away, nothing is known of them.

use super::Machines;
use acceptance::until;
use harness::{Client, Pagewell, Request, Signal};
use serde_json::{Value, json};

fn sources(pagewell: &Pagewell) -> Value {
    let mut client = Client::new(pagewell.admin().clone());
    let response = client.send(&Request::get("/v1/sources")).expect("an answer");
    serde_json::from_str(&response.text()).expect("JSON")
}

/// The state of a node, as another node shows it.
fn state(sources: &Value, name: &Value) -> Value {
    node(sources, name)["state"].clone()
}

fn node(sources: &Value, name: &Value) -> Value {
    let mut nodes = sources["nodes"].as_array().expect("a list").iter();
    nodes.find(|node| node["name"] == *name).cloned().unwrap_or_default()
}

#[test]
fn nodes_are_listed_with_their_state() {
    let machines = Machines::new();
    let start = || machines.machine("lag_max = \"1s\"\n", "");
    let (here, stopped, killed) = (start(), start(), start());
    let [stopped_name, killed_name] =
        [&stopped, &killed].map(|one| sources(one)["own_name"].clone());
    let host_name = sources(&here)["own_host_name"].clone();
    assert_eq!(host_name, sources(&killed)["own_host_name"], "they are on one machine");
    let is = |name: &Value, expected: &str| state(&sources(&here), name) == expected;
    until("both are connected", || is(&stopped_name, "connected") && is(&killed_name, "connected"));
    let seen = sources(&here);
    assert_eq!(state(&seen, &seen["own_name"]), Value::Null, "itself is not listed");
    assert!(seen["nodes"].as_array().is_some_and(|all| all.iter().all(|one| one["lag_ms"] == 0)));

    until("the lag is measured, and pages are stored", || {
        let stream = sources(&here)["databases"][0].clone();
        assert_eq!(stream["kind"], "cluster");
        !stream["lag_us"].is_null() && stream["followed"] == true && stream["stores_pages"] == true
    });

    stopped.signal(Signal::TERM);
    killed.signal(Signal::KILL);
    // One that has stopped is not listed for long.
    for (name, expected) in [(&stopped_name, "stopped"), (&killed_name, "silent")] {
        let mut seen = Value::Null;
        until(expected, || {
            seen = node(&sources(&here), name);
            seen["state"] == expected
        });
        assert_eq!((&seen["host_name"], &seen["lag_ms"]), (&host_name, &Value::Null), "{seen}");
    }
}

#[test]
fn without_the_stream_nodes_and_lags_are_unknown() {
    let mut machines = Machines::new();
    let [here, there] = [machines.machine("", ""), machines.machine("", "")];
    let name = sources(&there)["own_name"].clone();
    let is_known = |sources: &Value| {
        let (node, database) = (node(sources, &name), &sources["databases"][0]);
        node["state"] == "connected" && node["lag_ms"] == 0 && database["lag_us"].is_u64()
    };
    until("the node is connected", || is_known(&sources(&here)));
    machines.stream.kill();
    until("its state is unknown", || state(&sources(&here), &name) == "unknown");
    until("the stream is not followed", || sources(&here)["databases"][0]["followed"] == false);
    let mut seen = Value::Null;
    until("the lags are unknown", || {
        seen = sources(&here);
        node(&seen, &name)["lag_ms"].is_null() && seen["databases"][0]["lag_us"].is_null()
    });
    // The age of the last figures grows.
    let ages = |seen: &Value| {
        let node = node(seen, &name);
        [node["read_ms_ago"].clone(), seen["databases"][0]["measured_ms_ago"].clone()]
            .map(|age| age.as_u64().expect("an age"))
    };
    let before = ages(&seen);
    until("they are older", || ages(&sources(&here)).iter().zip(before).all(|(a, b)| *a > b));
    machines.stream.start_again().expect("the server starts");
    until("the node is connected again", || is_known(&sources(&here)));
}

/// A node of an older version announces no host name, and one of a later version more words.
#[test]
fn nodes_of_other_versions_are_listed() {
    let machines = Machines::new();
    let here = machines.machine("", "");
    let run = machines.stream.command(&["INFO", "server"]).expect("a description");
    let run = run.lines().find_map(|line| line.trim().strip_prefix("run_id:")).expect("a run");
    for (name, more) in [("older", ""), ("later", " web-1 more words"), ("wrong", " <b>")] {
        let value = format!("0-0 1 60000 {run}{more}");
        machines.stream.command(&["HSET", "pagewell/read", name, &value]).expect("it is set");
    }
    let shown = |name: &str| {
        let node = node(&sources(&here), &json!(name));
        (node["state"].clone(), node["host_name"].clone())
    };
    // The last of them: the list may be made between two commands.
    until("they are listed", || shown("wrong").0 == "connected");
    assert_eq!(shown("later"), (json!("connected"), json!("web-1")));
    for name in ["older", "wrong"] {
        assert_eq!(shown(name), (json!("connected"), Value::Null), "{name}");
    }
}
