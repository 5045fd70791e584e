//! Another server becomes the primary of the stream: by a real Sentinel, and while the cluster is divided.
//!
//! Each node connects to a symbolic link, as others connect to a virtual address. A failover moves the link.

use super::{
    Machines, ONE, TWO, counter, invalidate, is_late, post, shows, stored, until, write_and_read,
};
use acceptance::Site;
use harness::{Pagewell, PrivateDir, Sentinel, Valkey};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// Makes the link lead to the server, replacing it in one step.
fn lead(link: &Path, server: &Valkey) {
    let new = link.with_extension("new");
    symlink(server.socket(), &new).expect("a link");
    fs::rename(new, link).expect("it replaces the other");
}

/// A node whose stream is at the link.
fn node(site: &Site, link: &Path) -> Pagewell {
    let link = link.display();
    site.serve(&format!(
        "[cluster]\nurl = \"redis://localhost?socket={link}\"\nlag_max = \"500ms\"\n\
         barrier = \"200ms\"\n"
    ))
}

fn links<const N: usize>(dir: &PrivateDir, server: &Valkey) -> [PathBuf; N] {
    let links = std::array::from_fn(|at| dir.path().join(format!("link{at}")));
    links.iter().for_each(|link| lead(link, server));
    links
}

/// A replica of the server that has received everything.
fn replica(primary: &Valkey) -> Valkey {
    let port = primary.port().to_string();
    let replica = Valkey::start(&["--replicaof", "127.0.0.1", &port]).expect("a replica");
    until("the replica has all", || {
        replica.command(&["INFO", "replication"]).is_ok_and(|text| text.contains("link_status:up"))
    });
    replica
}

#[test]
fn a_failover_by_sentinel_shows_no_outdated_page() {
    let mut machines = Machines::new();
    let replica = replica(&machines.stream);
    let dir = PrivateDir::temporary("failover").expect("a directory");
    let [link] = links(&dir, &machines.stream);
    let sockets =
        [(machines.stream.port(), machines.stream.socket()), (replica.port(), replica.socket())];
    let sentinel = Sentinel::start(machines.stream.port(), &sockets, &link).expect("a Sentinel");
    until("Sentinel knows the replica", || sentinel.replicas() == 1);
    let all = [node(&machines.site, &link), node(&machines.site, &link)];
    all.iter().for_each(|one| stored(one, ONE));
    assert!(write_and_read(&all, 20, |_| {}) > 0);
    machines.stream.kill();
    write_and_read(&all, 5, |_| {});
    until("the replica is the primary", || sentinel.primary() == Some(replica.port()));
    until("no write is late", || !is_late(&post(&all[0], "/write.php?n=2&to=x")));
    assert!(write_and_read(&all, 20, |_| {}) > 0);
    for one in &all {
        until("the gap is counted", || counter(one, "database_gaps") > 0);
    }
}

/// One node stays with the former primary, and acknowledges writes without the node that has left it.
#[test]
fn changes_sent_to_a_former_primary_are_sent_again() {
    let machines = Machines::new();
    let promoted = replica(&machines.stream);
    let dir = PrivateDir::temporary("divided").expect("a directory");
    let [link_here, link_there] = links(&dir, &machines.stream);
    let [here, there] = [&link_here, &link_there].map(|link| node(&machines.site, link));
    [&here, &there].into_iter().for_each(|one| stored(one, ONE));

    promoted.command(&["REPLICAOF", "NO", "ONE"]).expect("it is promoted");
    lead(&link_there, &promoted);
    let reconnect = || machines.stream.command(&["CLIENT", "KILL", "TYPE", "normal"]);
    reconnect().expect("the connections are closed");
    until("one node has moved", || there.log().contains("another-server"));
    stored(&there, ONE);
    until("the other does not wait for it", || !is_late(&post(&here, "/write.php?n=1&to=new")));
    stored(&there, ONE);

    lead(&link_here, &promoted);
    reconnect().expect("the connections are closed");
    shows(&there, ONE, "1=new");
    // The cluster is one again.
    stored(&there, TWO);
    machines.truth(2, "newer");
    invalidate(&here, "{\"tags\":[\"file:2\"]}");
    shows(&there, TWO, "2=newer");
}
