//! Operators see the nodes of a cluster and their lag (`GET /v1/sources`): a connected node, one that has
//! stopped in an orderly way, and one that was killed.

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
    let mut nodes = sources["nodes"].as_array().expect("a list").iter();
    nodes.find(|node| node["name"] == *name).map_or(Value::Null, |node| node["state"].clone())
}

#[test]
fn nodes_are_listed_with_their_state() {
    let machines = Machines::new();
    let start = || machines.machine("lag_max = \"1s\"\n", "");
    let (here, stopped, killed) = (start(), start(), start());
    let [stopped_name, killed_name] =
        [&stopped, &killed].map(|one| sources(one)["own_name"].clone());
    let is = |name: &Value, expected: &str| state(&sources(&here), name) == expected;
    until("both are connected", || is(&stopped_name, "connected") && is(&killed_name, "connected"));
    let seen = sources(&here);
    assert_eq!(state(&seen, &seen["own_name"]), Value::Null, "itself is not listed");
    assert!(seen["nodes"].as_array().is_some_and(|all| all.iter().all(|one| one["lag_ms"] == 0)));

    until("the lag is measured", || !sources(&here)["databases"][0]["lag_us"].is_null());
    let stream = sources(&here)["databases"][0].clone();
    assert_eq!((&stream["kind"], &stream["followed"]), (&json!("cluster"), &json!(true)));
    assert_eq!(stream["stores_pages"], true);

    stopped.signal(Signal::TERM);
    killed.signal(Signal::KILL);
    until("one has stopped", || is(&stopped_name, "stopped"));
    until("one is silent", || is(&killed_name, "silent"));
}
