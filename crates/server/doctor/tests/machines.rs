//! Invented machines: the expected findings on each, and no findings on a healthy machine.

use doctor::{
    Answer, Cgroup, Conntrack, DiskSpace, EarlierCounters, ExternalPhp, Facts, Kernel, Memory,
    Opcache, Pool, Tcp, Weight, WrittenFiles, examine,
};

/// A php-fpm that gets so many requests at a time.
fn external(at: &str, places: u64) -> ExternalPhp {
    ExternalPhp { at: at.into(), places }
}

fn disk(directory: &str, files: WrittenFiles) -> DiskSpace {
    DiskSpace { directory: directory.into(), free: 10_000_000_000, files }
}

fn disks() -> Vec<DiskSpace> {
    vec![
        disk("/var/log", WrittenFiles::MachineLogs),
        disk("/snap", WrittenFiles::Snapshots(1_000_000_000)),
        disk("/records", WrittenFiles::Records),
        disk("/access", WrittenFiles::AccessLog),
    ]
}

/// A machine that is set up well.
fn healthy() -> Facts {
    Facts {
        kernel: Kernel {
            somaxconn: Some(4096),
            syn_backlog: Some(4096),
            syncookies: Some(1),
            tw_recycle: None,
            timestamps: Some(1),
            tw_buckets: Some(262_144),
            ports: Some((32_768, 60_999)),
            file_max: Some(1_000_000),
            swappiness: Some(60),
            huge_pages: Some("madvise".into()),
        },
        tcp: Tcp { listen_overflows: Some(0), ports_kept: Some(100), ..Tcp::default() },
        before: EarlierCounters {
            tcp: Tcp {
                listen_overflows: Some(0),
                syn_drops: Some(5),
                memory_aborts: Some(0),
                ..Tcp::default()
            },
            conntrack: Conntrack { drops: Some(1), ..Conntrack::default() },
            cgroup: Cgroup { killed: Some(1), ..Cgroup::default() },
        },
        conntrack: Conntrack { count: Some(100), max: Some(262_144), drops: Some(0) },
        memory: Memory {
            total: Some(4_000_000_000),
            available: Some(3_000_000_000),
            swap_total: Some(1_000_000_000),
            swap_free: Some(1_000_000_000),
            swapped_in: Some(0),
        },
        pools: vec![Pool {
            name: "www".into(),
            file: "/etc/php/8.2/fpm/pool.d/www.conf".into(),
            at: "unix:/run/php/php8.2-fpm.sock".into(),
            children: 8,
            child_bytes: Some(60_000_000),
            ..Pool::default()
        }],
        opcache: Some(Opcache {
            installed: true,
            enabled: true,
            megabytes: Some(128),
            files: Some(10_000),
            validates: false,
        }),
        php_files: Some(2000),
        database_connections: Some(151),
        connections: Some(16_384),
        open_files: Some(65_536),
        page_budget: Some(1_000_000_000),
        turning_disk: Some(false),
        disks: disks(),
        clock_source: Some("tsc".into()),
        clock_kept: Some(true),
        answers: vec![Answer {
            url: "http://127.0.0.1:8080/".into(),
            status: Some(200),
            validator: true,
            bytes: 2000,
            compressed: true,
            ..Answer::default()
        }],
        ..Facts::default()
    }
}

fn names(facts: &Facts) -> Vec<&'static str> {
    examine(facts).iter().map(|finding| finding.name).collect()
}

#[test]
fn nothing_is_found_where_nothing_is_wrong_or_nothing_is_known() {
    assert_eq!(names(&healthy()), Vec::<&str>::new());
    assert_eq!(names(&Facts::default()), Vec::<&str>::new());
}

/// A change to a healthy machine, and the expected finding with its weight.
type Fault = (fn(&mut Facts), &'static str, Weight);

#[test]
fn a_full_disk_of_records_or_of_the_access_log_is_found() {
    for (at, what) in [(2, "The disk of snapshot.directory"), (3, "The disk of the access log")] {
        let mut facts = healthy();
        facts.disks[at].free = 0;
        let found = examine(&facts);
        let [one] = &found[..] else { panic!("{found:?}") };
        assert_eq!(one.name, "disk-full");
        assert!(one.what.starts_with(what) && one.command.starts_with("df -h "), "{one:?}");
    }
}

#[test]
fn each_fault_is_found_and_no_other() {
    let cases: [Fault; 31] = [
        (|f| f.open_files = Some(1024), "open-files", Weight::WillFail),
        (|f| f.kernel.somaxconn = Some(128), "accept-queue", Weight::WillFail),
        (|f| f.tcp.listen_overflows = Some(7), "connections-dropped", Weight::Fails),
        (|f| f.tcp.syn_drops = Some(7), "syn-queue", Weight::Fails),
        (|f| f.tcp.time_wait_overflows = Some(7), "time-wait-table", Weight::Slow),
        (|f| f.kernel.ports = Some((50_000, 51_000)), "ports", Weight::WillFail),
        (|f| f.tcp.ports_kept = Some(25_000), "ports", Weight::WillFail),
        (|f| f.conntrack.count = Some(200_000), "conntrack-table", Weight::Fails),
        (|f| f.conntrack.max = Some(16_384), "conntrack-table", Weight::WillFail),
        (|f| f.conntrack.drops = Some(3), "conntrack-dropped", Weight::Fails),
        (|f| f.tcp.memory_aborts = Some(1), "tcp-memory", Weight::Fails),
        (
            |f| {
                f.memory.swap_free = Some(500_000_000);
                f.memory.swapped_in = Some(50_000);
            },
            "swap",
            Weight::Slow,
        ),
        (
            |f| f.cgroup = Cgroup { killed: Some(2), ..Cgroup::default() },
            "killed-for-memory",
            Weight::Fails,
        ),
        (
            |f| f.cgroup = Cgroup { throttled: Some(900), ..Cgroup::default() },
            "cpu-throttled",
            Weight::Slow,
        ),
        (|f| f.page_budget = Some(3_600_000_000), "memory-for-all", Weight::WillFail),
        (|f| f.kernel.huge_pages = Some("always".into()), "huge-pages", Weight::Note),
        (|f| f.turning_disk = Some(true), "slow-disk", Weight::Slow),
        (|f| f.disks[0].free = 1000, "disk-full", Weight::WillFail),
        (|f| f.disks[1].free = 999_000_000, "disk-full", Weight::WillFail),
        (|f| f.clock_source = Some("hpet".into()), "clock-source", Weight::Slow),
        (|f| f.clock_kept = Some(false), "clock-not-kept", Weight::Note),
        (|f| f.database_connections = Some(10), "database-connections", Weight::WillFail),
        (
            |f| f.external_php = vec![external("unix:/run/php/php8.2-fpm.sock", 9)],
            "php-places",
            Weight::Slow,
        ),
        (|f| f.hides_clients = true, "clients-hidden", Weight::Note),
        (|f| f.php_files = Some(30_000), "opcache-small", Weight::Slow),
        (|f| f.kernel.tw_recycle = Some(1), "folklore-tw-recycle", Weight::WillFail),
        (|f| f.kernel.syncookies = Some(0), "folklore-syncookies", Weight::WillFail),
        (|f| f.answers[0].status = Some(502), "no-answer", Weight::Fails),
        (|f| f.answers[0].status = Some(421), "site-not-judged", Weight::Note),
        (|f| f.answers[0].cookies = vec!["PHPSESSID".into()], "cookie-on-every-page", Weight::Slow),
        (
            |f| {
                let says = "pagewell; fwd=uri-miss; fwd-status=200; detail=no-lifetime";
                f.answers[0].cache_status = Some(says.into());
            },
            "nothing-declared",
            Weight::Slow,
        ),
    ];
    for (harm, name, weight) in cases {
        let mut facts = healthy();
        harm(&mut facts);
        let found = examine(&facts);
        assert_eq!(found.len(), 1, "{name}: {found:#?}");
        assert_eq!((found[0].name, found[0].weight), (name, weight));
        let Some(one) = found.first() else { continue };
        assert!(!one.evidence.is_empty() && !one.command.is_empty() && !one.risk.is_empty());
    }
}

#[test]
fn too_many_children_for_the_groups_memory() {
    let mut facts = healthy();
    facts.page_budget = Some(16_000_000);
    facts.cgroup.memory_max = Some(256_000_000);
    facts.pools[0].children = 50;
    assert!(names(&facts).contains(&"php-children"), "{:?}", names(&facts));
    let found = examine(&facts);
    let children = found.iter().find(|one| one.name == "php-children").expect("found");
    assert!(children.command.starts_with("pm.max_children = 2 "), "{}", children.command);
}

#[test]
fn findings_are_ordered_by_severity() {
    let mut facts = healthy();
    facts.kernel.huge_pages = Some("always".into());
    facts.conntrack.drops = Some(2);
    facts.open_files = Some(10);
    assert_eq!(names(&facts), ["conntrack-dropped", "open-files", "huge-pages"]);
}

#[test]
fn folklore_in_a_file_is_found_although_the_kernel_has_it_no_more() {
    let mut facts = healthy();
    facts.sysctl_lines = vec![("net.ipv4.tcp_tw_recycle=1".into(), "/etc/sysctl.conf".into())];
    let found = examine(&facts);
    assert_eq!((found.len(), found[0].weight), (1, Weight::Note));
    assert!(found[0].command.contains("/etc/sysctl.conf"), "{found:#?}");
    // The kernel has the setting, so the line takes effect at the next boot.
    facts.kernel.tw_recycle = Some(0);
    assert_eq!(examine(&facts)[0].weight, Weight::WillFail);
    facts.sysctl_lines = vec![("net.ipv4.tcp_tw_recycle=0".into(), "/etc/sysctl.conf".into())];
    assert_eq!(examine(&facts), []);
}

#[test]
fn one_page_with_a_cookie_is_no_fault_of_the_site() {
    let mut facts = healthy();
    let mut other = facts.answers[0].clone();
    other.cookies = vec!["PHPSESSID".into()];
    facts.answers.push(other);
    assert_eq!(names(&facts), Vec::<&str>::new());
    facts.opcache = Some(Opcache::default());
    assert_eq!(names(&facts), ["opcache-off"]);
    assert!(examine(&facts)[0].evidence.contains("not installed"));
}

#[test]
fn a_page_that_is_stored_nevertheless_is_no_fault() {
    let mut facts = healthy();
    facts.answers[0].cookies = vec!["lang".into()];
    facts.answers[0].cache_control = Some("no-store".into());
    facts.answers[0].cache_status = Some("Pagewell; fwd=uri-miss; detail=forbidden".into());
    assert_eq!(names(&facts), ["cookie-on-every-page", "storing-forbidden"]);
    for kept in ["Pagewell; hit; ttl=9", "Pagewell; fwd=uri-miss; stored; ttl=9"] {
        facts.answers[0].cache_status = Some(kept.into());
        assert_eq!(names(&facts), Vec::<&str>::new(), "{kept}");
    }
}

#[test]
fn counters_that_do_not_increase_are_notes() {
    let mut facts = healthy();
    facts.tcp.listen_overflows = Some(7);
    facts.before.tcp.listen_overflows = Some(7);
    facts.tcp.syn_drops = Some(5);
    facts.conntrack.drops = Some(1);
    facts.cgroup.killed = Some(1);
    let found = examine(&facts);
    assert_eq!(found.len(), 4, "{found:#?}");
    assert!(found.iter().all(|one| one.weight == Weight::Note), "{found:#?}");
    facts.before = EarlierCounters::default();
    assert!(examine(&facts).iter().all(|one| one.weight == Weight::Note));
}

#[test]
fn no_more_memory_is_advised_than_is_set() {
    let mut facts = healthy();
    facts.page_budget = Some(67_000_000);
    facts.pools[0].children = 2_000;
    let found = examine(&facts);
    let command = |name| {
        let one = found.iter().find(|one| one.name == name);
        one.map(|one| one.command.clone()).unwrap_or_default()
    };
    assert!(command("memory-for-all").starts_with("pm.max_children = 33 "), "{found:#?}");
    assert!(command("php-children").starts_with("pm.max_children = 33 "), "{found:#?}");
}

#[test]
fn pagewells_own_php_is_mended_in_its_configuration() {
    let mut facts = healthy();
    facts.own_php = Some("/etc/pagewell.toml".into());
    facts.pools = vec![Pool {
        name: "pagewell".into(),
        file: "/etc/pagewell.toml".into(),
        own: true,
        children: 400,
        ..Pool::default()
    }];
    facts.opcache = Some(Opcache { installed: true, ..Opcache::default() });
    let found = examine(&facts);
    let mut names: Vec<_> = found.iter().map(|one| one.name).collect();
    names.sort_unstable();
    assert_eq!(names, ["database-connections", "memory-for-all", "opcache-off", "php-children"]);
    let in_file = |name: &str| {
        found.iter().any(|one| one.name == name && one.command.contains("of /etc/pagewell.toml"))
    };
    assert!(
        in_file("php-children") && in_file("opcache-off") && in_file("memory-for-all"),
        "{found:#?}"
    );
}
