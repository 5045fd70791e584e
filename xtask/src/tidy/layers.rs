//! Which crate may depend on which: the layers of the workspace, as a table.
//!
//! | layer | directory | may depend on |
//! |---|---|---|
//! | cache | `crates/cache` | cache |
//! | protocols | `crates/protocols` | protocols |
//! | server | `crates/server` | cache, protocols, and the rows of [`SERVER`] |
//! | testing | `crates/testing` | cache, protocols, testing |
//! | tools | `tools`, `fuzz/targets` | cache, protocols, server, testing |
//! | xtask | `xtask` | cache, protocols, server, testing |
//!
//! Every layer may use the testing crates in its own tests (dev-dependencies). A member of the workspace that
//! no row names is a fault, so that each new crate gets its place here first.

use super::Finding;
use super::manifests::{Dependency, DependencyKind, Member};

/// A layer of the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layer {
    Cache,
    Protocols,
    Server,
    Testing,
    Tools,
    Xtask,
}

const CACHE: &[&str] = &[
    "change-feed",
    "footprint",
    "http-cache",
    "http-fields",
    "known-names",
    "miss-control",
    "page-comparison",
    "page-heap",
    "page-snapshot",
    "page-store",
    "random-number",
    "rule-conditions",
    "site-rules",
];
const PROTOCOLS: [&str; 11] = [
    "dns-query",
    "esi",
    "fastcgi",
    "hpack",
    "memcache",
    "mysql-relay",
    "mysql-replication",
    "mysql-wire",
    "postgres-replication",
    "purge-requests",
    "valkey",
];
/// The crates of the server, each with those of them that it may depend on.
const SERVER: &[(&str, &[&str])] = &[
    ("process-limits", &[]),
    ("doctor", &["process-limits"]),
    ("option-table", &[]),
    ("site-files", &["trusted-files"]),
    ("import-rules", &["option-table"]),
    ("reasons", &[]),
    ("trusted-files", &[]),
    ("trial-record", &["trusted-files"]),
    ("access-log-format", &["reasons"]),
    ("passwords", &["trusted-files"]),
    ("request-values", &["reasons"]),
    (
        "config",
        &[
            "access-log-format",
            "doctor",
            "option-table",
            "passwords",
            "process-limits",
            "request-values",
            "site-files",
            "trusted-files",
        ],
    ),
    ("event-log", &[]),
    ("capture", &["config", "event-log", "reasons", "trusted-files"]),
    ("command-line", &["config", "event-log"]),
    (
        "init",
        &["config", "command-line", "doctor", "import-rules", "option-table", "process-limits"],
    ),
    ("certificates", &["trusted-files", "config"]),
    ("origin-servers", &["certificates", "config", "sockets"]),
    ("telemetry", &["access-log-format", "trusted-files", "config", "reasons", "request-values"]),
    ("sockets", &["trusted-files", "config", "telemetry"]),
    ("statements", &["doctor", "config", "telemetry", "reasons"]),
    ("stored-pages", &["config", "statements"]),
    ("history", &["config", "statements", "reasons", "request-values", "stored-pages"]),
    (
        "site-state",
        &[
            "doctor",
            "config",
            "telemetry",
            "trusted-files",
            "statements",
            "reasons",
            "request-values",
            "stored-pages",
            "history",
        ],
    ),
    ("database-links", &["certificates", "config", "telemetry", "sockets"]),
    (
        "cluster",
        &["config", "telemetry", "stored-pages", "history", "site-state", "database-links"],
    ),
    ("acme", &["certificates", "config", "telemetry", "cluster"]),
    ("databases", &["config", "statements", "database-links", "cluster"]),
    (
        "change-sources",
        &[
            "config",
            "command-line",
            "telemetry",
            "statements",
            "stored-pages",
            "history",
            "site-state",
            "database-links",
            "cluster",
            "databases",
        ],
    ),
    (
        "origin",
        &[
            "capture",
            "origin-servers",
            "doctor",
            "trusted-files",
            "config",
            "event-log",
            "telemetry",
            "sockets",
            "stored-pages",
            "history",
            "site-state",
            "reasons",
            "request-values",
        ],
    ),
    (
        "delivery",
        &[
            "doctor",
            "certificates",
            "config",
            "event-log",
            "passwords",
            "telemetry",
            "stored-pages",
            "history",
            "site-state",
            "change-sources",
            "origin",
            "trial-record",
            "reasons",
            "request-values",
        ],
    ),
    (
        "forward",
        &[
            "doctor",
            "config",
            "event-log",
            "telemetry",
            "sockets",
            "stored-pages",
            "history",
            "site-state",
            "change-sources",
            "origin",
            "delivery",
            "reasons",
            "request-values",
        ],
    ),
    (
        "render",
        &[
            "capture",
            "doctor",
            "config",
            "event-log",
            "telemetry",
            "statements",
            "stored-pages",
            "history",
            "site-state",
            "origin",
            "delivery",
            "forward",
            "reasons",
            "request-values",
        ],
    ),
    (
        "exchange",
        &[
            "doctor",
            "certificates",
            "config",
            "event-log",
            "passwords",
            "telemetry",
            "sockets",
            "stored-pages",
            "history",
            "site-state",
            "origin",
            "delivery",
            "forward",
            "render",
            "reasons",
            "request-values",
        ],
    ),
    (
        "front",
        &[
            "doctor",
            "certificates",
            "config",
            "telemetry",
            "sockets",
            "stored-pages",
            "history",
            "site-state",
            "origin",
            "delivery",
            "forward",
            "render",
            "exchange",
            "reasons",
            "request-values",
        ],
    ),
    (
        "control",
        &[
            "doctor",
            "process-limits",
            "trusted-files",
            "certificates",
            "config",
            "command-line",
            "telemetry",
            "sockets",
            "stored-pages",
            "history",
            "site-state",
            "database-links",
            "cluster",
            "change-sources",
            "origin",
            "delivery",
            "forward",
            "render",
            "exchange",
            "trial-record",
            "reasons",
            "request-values",
        ],
    ),
    (
        "audit",
        &[
            "reasons",
            "request-values",
            "trial-record",
            "telemetry",
            "stored-pages",
            "history",
            "site-state",
            "change-sources",
            "delivery",
            "render",
        ],
    ),
    (
        "cli",
        &[
            "doctor",
            "import-rules",
            "certificates",
            "config",
            "command-line",
            "telemetry",
            "database-links",
            "origin",
            "control",
        ],
    ),
    (
        "pagewell",
        &[
            "origin-servers",
            "doctor",
            "trusted-files",
            "certificates",
            "acme",
            "config",
            "event-log",
            "command-line",
            "telemetry",
            "sockets",
            "statements",
            "stored-pages",
            "history",
            "site-state",
            "database-links",
            "cluster",
            "databases",
            "change-sources",
            "origin",
            "delivery",
            "forward",
            "reasons",
            "request-values",
            "render",
            "audit",
            "exchange",
            "front",
            "control",
            "cli",
            "init",
        ],
    ),
];
const TESTING: [&str; 5] =
    ["acceptance", "counting-allocator", "followed-database", "harness", "scenario"];
const TOOLS: [&str; 6] = ["bench", "fuzz-targets", "manual", "recordings", "soak", "torture"];

impl Layer {
    fn of(name: &str) -> Option<Layer> {
        let is_server = SERVER.iter().any(|(known, _)| *known == name);
        match name {
            "xtask" => Some(Layer::Xtask),
            _ if CACHE.contains(&name) => Some(Layer::Cache),
            _ if PROTOCOLS.contains(&name) => Some(Layer::Protocols),
            _ if is_server => Some(Layer::Server),
            _ if TESTING.contains(&name) => Some(Layer::Testing),
            _ if TOOLS.contains(&name) => Some(Layer::Tools),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Layer::Cache => "cache",
            Layer::Protocols => "protocols",
            Layer::Server => "server",
            Layer::Testing => "testing",
            Layer::Tools => "tools",
            Layer::Xtask => "xtask",
        }
    }

    fn holds(self, directory: &str) -> bool {
        match self {
            Layer::Cache => directory.starts_with("crates/cache/"),
            Layer::Protocols => directory.starts_with("crates/protocols/"),
            Layer::Server => directory.starts_with("crates/server/"),
            Layer::Testing => directory.starts_with("crates/testing/"),
            Layer::Tools => directory.starts_with("tools/") || directory == "fuzz/targets",
            Layer::Xtask => directory == "xtask",
        }
    }

    fn may_depend_on(self) -> &'static [Layer] {
        use Layer::{Cache, Protocols, Server, Testing};
        match self {
            Cache => &[Cache],
            Protocols => &[Protocols],
            Server => &[Cache, Protocols, Server],
            Testing => &[Cache, Protocols, Testing],
            Layer::Tools => &[Cache, Protocols, Server, Testing],
            // The demo would wait for the server twice: once in each profile.
            Layer::Xtask => &[Testing],
        }
    }
}

/// Crates that no layer names, crates in the wrong directory, and dependencies that the table does not allow.
pub fn layers(members: &[Member]) -> Vec<Finding> {
    let mut found = Vec::new();
    for member in members {
        let Member { name, directory, dependencies } = member;
        let Some(layer) = Layer::of(name) else {
            let message = "is in no layer: name it in the table of xtask/src/tidy/layers.rs";
            found.push(fault(member, 1, format!("the crate `{name}` {message}")));
            continue;
        };
        if !layer.holds(directory) {
            let message =
                format!("the crate `{name}` is of the layer {}, not of {directory}", layer.name());
            found.push(fault(member, 1, message));
        }
        for dependency in dependencies {
            let is_member = members.iter().any(|other| other.name == dependency.name);
            if let Some(to) = Layer::of(&dependency.name).filter(|_| is_member)
                && let Some(why) = objection((name, layer), dependency, to)
            {
                let message = format!("`{name}` may not depend on `{}`: {why}", dependency.name);
                found.push(fault(member, dependency.line, message));
            }
        }
    }
    found
}

/// Why a crate may not have a dependency; `None` if it may.
fn objection((name, from): (&str, Layer), dependency: &Dependency, to: Layer) -> Option<String> {
    let is_for_tests = dependency.kind == DependencyKind::Dev && to == Layer::Testing;
    if is_for_tests {
        return None;
    }
    let layers = from.may_depend_on();
    if !layers.contains(&to) {
        let (from, to) = (from.name(), to.name());
        let allowed: Vec<&str> = layers.iter().map(|layer| layer.name()).collect();
        let allowed = allowed.join(", ");
        let hint = if to == "testing" { " (in its tests: dev-dependencies)" } else { "" };
        return Some(format!("the layer {from} depends on {allowed}, not on {to}{hint}"));
    }
    if (from, to) != (Layer::Server, Layer::Server) {
        return None;
    }
    let (_, below) = SERVER.iter().find(|(known, _)| *known == name)?;
    if below.contains(&dependency.name.as_str()) {
        return None;
    }
    let below = if below.is_empty() { "none".to_owned() } else { below.join(", ") };
    Some(format!("of the server's crates it depends on {below}"))
}

fn fault(member: &Member, line: usize, message: String) -> Finding {
    Finding { path: format!("{}/Cargo.toml", member.directory), line, rule: "layer", message }
}

#[cfg(test)]
mod tests {
    use super::*;
    use DependencyKind::{Build, Dev};

    fn member(directory: &str, dependencies: &[(&str, DependencyKind)]) -> Member {
        let dependency = |(at, (name, kind)): (usize, &(&str, DependencyKind))| Dependency {
            name: (*name).to_owned(),
            kind: *kind,
            line: at + 10,
        };
        Member {
            name: directory.rsplit('/').next().unwrap_or_default().to_owned(),
            directory: directory.to_owned(),
            dependencies: dependencies.iter().enumerate().map(dependency).collect(),
        }
    }

    /// A workspace of all these crates, one of them with the dependencies that are tested.
    fn found(directory: &str, dependencies: &[(&str, DependencyKind)]) -> Vec<String> {
        let mut members: Vec<Member> = [
            "crates/cache/http-cache",
            "crates/protocols/esi",
            "crates/server/config",
            "crates/server/exchange",
            "crates/server/front",
            "crates/server/pagewell",
            "crates/testing/harness",
            "tools/soak",
            "xtask",
        ]
        .into_iter()
        .filter(|other| *other != directory)
        .map(|other| member(other, &[]))
        .collect();
        members.push(member(directory, dependencies));
        layers(&members).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn allowed_dependencies_are_no_finding() {
        for (directory, dependencies) in [
            (
                "crates/cache/page-store",
                &[("http-cache", Build), ("harness", Dev), ("bytes", Build)][..],
            ),
            ("crates/server/control", &[("config", Build), ("exchange", Build), ("esi", Build)]),
            ("crates/testing/scenario", &[("http-cache", Build), ("harness", Build)]),
            ("tools/torture", &[("harness", Build), ("pagewell", Build)]),
        ] {
            assert_eq!(found(directory, dependencies), [""; 0], "{directory}");
        }
    }

    #[test]
    fn a_layer_depends_on_nothing_above_it() {
        for (directory, name) in [
            ("crates/cache/page-store", "config"),
            ("crates/cache/page-store", "esi"),
            ("crates/cache/page-store", "harness"),
            ("crates/protocols/fastcgi", "http-cache"),
            ("crates/testing/scenario", "pagewell"),
            ("crates/server/origin", "harness"),
            ("crates/server/origin", "soak"),
            ("tools/torture", "xtask"),
            ("xtask", "config"),
            ("xtask", "http-cache"),
        ] {
            assert_eq!(found(directory, &[(name, Build)]).len(), 1, "{directory} on {name}");
        }
        assert_eq!(found("crates/cache/page-store", &[("pagewell", Dev)]).len(), 1);
        assert_eq!(
            found("crates/server/origin", &[("harness", Build)]),
            [
                "crates/server/origin/Cargo.toml:10: layer: `origin` may not depend on `harness`: the layer \
              server depends on cache, protocols, server, not on testing (in its tests: dev-dependencies)"
            ]
        );
    }

    #[test]
    fn the_crates_of_the_server_have_an_order() {
        assert_eq!(found("crates/server/site-state", &[("config", Build)]), [""; 0]);
        for (crate_above, crate_below) in [
            ("site-state", "exchange"),
            ("control", "front"),
            ("config", "pagewell"),
            ("front", "change-sources"),
        ] {
            let mut members = vec![member(&format!("crates/server/{crate_below}"), &[])];
            let from = format!("crates/server/{crate_above}");
            members.push(member(&from, &[(crate_below, Build)]));
            let found = layers(&members);
            assert_eq!(found.len(), 1, "{crate_above} on {crate_below}");
            assert!(found[0].message.contains("of the server's crates it depends on"), "{found:?}");
        }
        // In the tests of a crate the order holds, too.
        assert_eq!(found("crates/server/site-state", &[("front", Dev)]).len(), 1);
    }

    #[test]
    fn a_crate_without_a_layer_or_in_the_wrong_directory_is_a_fault() {
        assert!(found("crates/cache/common", &[])[0].contains("`common` is in no layer"));
        assert!(found("crates/server/page-store", &[])[0].contains("of the layer cache"));
    }
}
