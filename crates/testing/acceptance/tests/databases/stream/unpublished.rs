//! A node cannot publish its invalidations: the others stop using their pages, and it says so. Where writes are
//! refused meanwhile, a node that is cut off is a gap for the others.

use super::{
    Machines, ONE, ask, counter, get, invalidate, is_hit, is_late, post, shows, stored, until,
};
use harness::{Client, Pagewell, Request, Response, Signal};
use serde_json::Value;

const BOUND: &str = "lag_max = \"1s\"\nbarrier = \"100ms\"";

/// A node with an account of its own that may do everything, and another one.
struct Pair {
    machines: Machines,
    here: Pagewell,
    there: Pagewell,
}

impl Pair {
    fn new(more: &str) -> Pair {
        let machines = Machines::new();
        let pair = |rights: &[&str]| {
            let words = [&["ACL", "SETUSER", "one", "on", ">x", "~*"], rights].concat();
            machines.stream.command(&words).expect("an account");
        };
        pair(&["+@all"]);
        let url = format!("redis://one:x@127.0.0.1:{}", machines.stream.port());
        let here = machines.site.serve(&format!("[cluster]\nurl = {url:?}\n{BOUND}\n{more}"));
        let there = machines.machine(&format!("{BOUND}\n{more}"), "");
        [&here, &there].iter().for_each(|one| stored(one, ONE));
        until("they know each other", || machines.readers() == [2, 0]);
        Pair { machines, here, there }
    }

    fn rights(&self, rights: &str) {
        self.machines.stream.command(&["ACL", "SETUSER", "one", rights]).expect("it is done");
    }
}

fn ready(pagewell: &Pagewell) -> Value {
    let answer = Client::new(pagewell.admin().clone()).get("/v1/ready").expect("an answer");
    serde_json::from_slice(&answer.content).expect("JSON")
}

fn says(pagewell: &Pagewell, reason: &str) -> bool {
    ready(pagewell)["reasons"].as_array().is_some_and(|all| all.iter().any(|one| one == reason))
}

/// Waits until a node stores nothing, because more may be unknown. A busy node may store pages for a moment, until it
/// is notified.
fn nothing_is_stored(pagewell: &Pagewell) {
    until("nothing is stored", || (0..2).all(|_| !is_hit(&get(pagewell, ONE))));
}

/// The names of the findings of `pagewell status`.
fn findings(pagewell: &Pagewell) -> Vec<String> {
    let answer = Client::new(pagewell.admin().clone()).get("/v1/status").expect("an answer");
    let status: Value = serde_json::from_slice(&answer.content).expect("JSON");
    let all = status["findings"].as_array().expect("a list");
    all.iter().filter_map(|one| one["name"].as_str().map(str::to_owned)).collect()
}

/// A process that announced it and was killed leaves its field, which would stop each node that starts later.
#[test]
fn the_announcement_of_a_process_that_has_ended_is_removed() {
    let machines = Machines::new();
    let node = machines.machine(BOUND, "");
    stored(&node, ONE);
    let hash = "pagewell/unpublished";
    machines.stream.command(&["HSET", hash, "a-process-that-was-killed", "7"]).expect("a field");
    until("it is removed", || machines.stream.command(&["HLEN", hash]).expect("a number") == "0");
    stored(&node, ONE);
}

#[test]
fn the_other_nodes_stop_using_their_pages() {
    let pair = Pair::new("");
    let Pair { machines, here, there } = &pair;
    pair.rights("-xadd");
    assert!(is_late(&post(here, "/write.php?n=1&to=new")), "{}", here.log());
    until("the page is not used any more", || !is_hit(&get(there, ONE)));
    shows(there, ONE, "1=new");
    nothing_is_stored(there);
    until("it is logged", || there.log().contains("database-behind"));
    until("the node says so", || says(here, "cluster-not-published"));
    until("it is the only finding", || findings(here) == ["cluster-not-published"]);
    assert!(is_hit(&get(here, ONE)) || get(here, ONE).text() == "1=new");
    pair.rights("+xadd");
    until("all is published", || counter(here, "cluster_pending") == 0);
    stored(there, ONE);
    until("it is withdrawn", || {
        machines.stream.command(&["HLEN", "pagewell/unpublished"]).expect("a number") == "0"
    });
    until("the node is ready", || ready(here)["ready"] == true);
    machines.truth(1, "newer");
    until("a purge reaches all nodes in time", || {
        !invalidate(here, "{\"tags\":[\"file:1\"]}").contains("\"late\":true")
    });
    assert_eq!(get(there, ONE).text(), "1=newer", "{}", there.log());
}

/// No node can add an entry, nor report itself.
#[test]
fn a_server_that_accepts_no_writes_keeps_no_page_old() {
    let Pair { machines, here, there } = &Pair::new("");
    let command = |words: &str| {
        let words: Vec<&str> = words.split(' ').collect();
        assert_eq!(machines.stream.command(&words).as_deref(), Ok("OK"), "{words:?}");
    };
    let faults = [
        ("full", "CONFIG SET maxmemory 1mb", "CONFIG SET maxmemory 0"),
        // Nothing listens there.
        ("read-only", "REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE"),
    ];
    for (name, refuse, accept) in faults {
        [here, there].into_iter().for_each(|one| stored(one, ONE));
        command(refuse);
        assert!(is_late(&post(here, &format!("/write.php?n=1&to={name}"))), "{name}");
        shows(there, ONE, &format!("1={name}"));
        nothing_is_stored(there);
        until("the node says so", || says(here, "cluster-not-published"));
        command(accept);
        until("all is published", || counter(here, "cluster_pending") == 0);
        until("the node is ready", || ready(here)["ready"] == true);
    }
    [here, there].into_iter().for_each(|one| stored(one, ONE));
}

/// After the highest ID the server adds no entry of any node.
#[test]
fn an_entry_with_the_highest_id_keeps_no_page_old() {
    let Pair { machines, here, there } = &Pair::new("");
    let last = u64::MAX;
    machines
        .stream
        .command(&["XADD", "pagewell", &format!("{last}-{last}"), "tag", "other"])
        .expect("an entry");
    assert!(is_late(&post(here, "/write.php?n=1&to=new")));
    shows(there, ONE, "1=new");
    until("the node says so", || says(here, "cluster-not-published"));
    machines.stream.command(&["DEL", "pagewell"]).expect("it is deleted");
    until("all is published", || counter(here, "cluster_pending") == 0);
    [here, there].into_iter().for_each(|one| stored(one, ONE));
}

const REFUSE: &str = "unpublished = \"refuse\"";

fn write(pagewell: &Pagewell) -> Response {
    ask(pagewell, Request::form("/write.php?n=2&to=x", ""))
}

#[test]
fn writes_that_cannot_be_published_are_refused() {
    let mut pair = Pair::new(REFUSE);
    until("a write is accepted", || write(&pair.here).status == 200);
    pair.machines.stream.stop();
    let refused = |pagewell: &Pagewell| {
        let response = write(pagewell);
        let is_refused = response.status == 503;
        assert!(!is_refused || response.header("retry-after") == Some("2"), "{response:?}");
        assert!(is_refused || is_late(&response), "{response:?}");
        is_refused
    };
    for one in [&pair.here, &pair.there] {
        until("writes are refused", || refused(one));
        assert_eq!(get(one, ONE).status, 200, "readers are served");
    }
    pair.machines.stream.start_again().expect("it starts");
    // The account is gone with the server.
    until("writes are accepted", || write(&pair.there).status == 200);
}

/// The node is cut off with a change that it cannot publish: the other one purges its pages when the first has
/// been silent for longer than it may answer. By then the first refuses writes.
#[test]
fn a_node_that_is_cut_off_is_a_gap_where_writes_are_refused() {
    let pair = Pair::new(REFUSE);
    let Pair { machines, here, there } = &pair;
    machines.stream.command(&["ACL", "SETUSER", "one", "off"]).expect("it is done");
    machines.stream.command(&["CLIENT", "KILL", "USER", "one"]).expect("it is done");
    machines.truth(1, "new");
    assert!(invalidate(here, "{\"tags\":[\"file:1\"]}").contains("\"late\":true"));
    until("writes are refused", || write(here).status == 503);
    shows(there, ONE, "1=new");
    stored(there, ONE);
}

#[test]
fn the_age_of_the_last_proof_is_shown() {
    let machines = Machines::new();
    let pagewell = machines.machine("lag_max = \"1h\"", "");
    stored(&pagewell, ONE);
    let age = || ready(&pagewell)["proven_ms_ago"].as_u64().expect("an age");
    until("it is proven again", || age() < 2_000);
    machines.stream.signal(Signal::STOP);
    until("the proof grows old", || {
        age() > 3_000 && counter(&pagewell, "database_lag_us") > 3_000_000
    });
    assert!(is_hit(&get(&pagewell, ONE)) && ready(&pagewell)["ready"] == true);
    machines.stream.signal(Signal::CONT);
    until("it is proven again", || {
        age() < 2_000 && counter(&pagewell, "database_lag_us") < 2_000_000
    });
}
