//! The texts of `/proc`, php-fpm and PHP: valid and malformed ones.

use doctor::read;
use doctor::{Conntrack, Opcache, Pool};

const NETSTAT: &str = "TcpExt: SyncookiesSent ListenOverflows ListenDrops TCPTimeWaitOverflow\n\
     TcpExt: 1 22 23 4\nIpExt: InNoRoutes\nIpExt: 0\n";

#[test]
fn the_kernels_counts_are_found_by_name() {
    let tcp = read::tcp(NETSTAT, "sockets: used 41\nTCP: inuse 2 orphan 0 tw 17 alloc 2 mem 191\n");
    assert_eq!((tcp.listen_overflows, tcp.listen_drops), (Some(22), Some(23)));
    assert_eq!((tcp.time_wait_overflows, tcp.syn_drops, tcp.time_wait), (Some(4), None, Some(17)));
    assert_eq!(read::tcp("", ""), doctor::Tcp::default());
    assert_eq!(read::tcp("TcpExt: A ListenDrops\nTcpExt: 1\n", "TCP: tw").listen_drops, None);
}

#[test]
fn a_port_is_kept_by_an_ended_connection_from_it() {
    let tables = "  sl  local_address rem_address   st tx_queue\n\
         0: 0100007F:0050 0100007F:C000 06 00000000:00000000\n\
         1: 0100007F:C001 0100007F:2328 06 00000000:00000000\n\
         2: 0100007F:C002 0100007F:2328 01 00000000:00000000\n\
         0: 00000000000000000000000001000000:C003 00000000000000000000000001000000:2328 06 0:0\n";
    assert_eq!(read::ports_kept(tables, (32_768, 60_999)), 2);
    assert_eq!(read::ports_kept("nonsense\n0: x 06 06\n", (0, 65_535)), 0);
}

#[test]
fn conntracks_drops_are_hexadecimal_and_of_all_processors() {
    let stat = "entries  found drop early_drop\n0000000a  00 00000010 0\n0000000a  00 00000002 0\n";
    let found = read::conntrack("10\n", "262144\n", stat);
    assert_eq!(found, Conntrack { count: Some(10), max: Some(262_144), drops: Some(18) });
    assert_eq!(read::conntrack("", "", ""), Conntrack::default());
}

#[test]
fn memory_and_limits() {
    let memory =
        read::memory("MemTotal:  1024 kB\nSwapTotal: 0 kB\nMemTotalX: 9 kB\n", "pswpin 12\n");
    assert_eq!((memory.total, memory.swap_total, memory.available), (Some(1 << 20), Some(0), None));
    assert_eq!(memory.swapped_in, Some(12));
    let limits = "Limit  Soft Limit\nMax open files            1024   4096   files\nMax cpu time unlimited unlimited\n";
    assert_eq!(read::soft_limit(limits, "Max open files"), Some(1024));
    assert_eq!(read::hard_limit(limits, "Max open files"), Some(4096));
    assert_eq!(read::soft_limit(limits, "Max cpu time"), Some(u64::MAX));
    assert_eq!(read::soft_limit(limits, "Max stack"), None);
    assert_eq!(read::chosen("always [madvise] never"), Some("madvise".into()));
    assert_eq!(read::two_numbers("32768\t60999\n"), Some((32_768, 60_999)));
    assert_eq!(read::keyed("oom 1\noom_kill 3\n", "oom_kill"), Some(3));
}

#[test]
fn pools_of_php_fpm() {
    let text = "[global]\npid = /run/x.pid\n[www]\nlisten = /run/php.sock\n;pm.max_children = 9\n\
         pm.max_children = 5 ; five\n[api]\nlisten = 127.0.0.1:9000\nlisten.backlog = -1\npm.max_children=7\n[none]\n";
    let pools = read::pools(text, "www.conf");
    let names: Vec<_> = pools
        .iter()
        .map(|Pool { name, children, tcp, .. }| (name.as_str(), *children, *tcp))
        .collect();
    assert_eq!(names, [("www", 5, false), ("api", 7, true)]);
    assert_eq!(pools[1].backlog, Some(-1));
    assert_eq!((&*pools[0].at, &*pools[1].at), ("unix:/run/php.sock", "127.0.0.1:9000"));
    let named = read::pools("[blog]\nlisten = /run/$pool.sock\npm.max_children = 4\n", "blog.conf");
    assert_eq!(named[0].at, "unix:/run/blog.sock");
}

#[test]
fn opcache_as_php_fpm_tells_it() {
    let info = "opcache.enable => On => On\nopcache.enable_cli => Off => Off\n\
         opcache.max_accelerated_files => 10000 => 10000\nopcache.memory_consumption => 128 => 128\n\
         opcache.validate_timestamps => Off => Off\n";
    let wanted = Opcache {
        installed: true,
        enabled: true,
        megabytes: Some(128),
        files: Some(10_000),
        validates: false,
    };
    assert_eq!(read::opcache(info), Some(wanted));
    assert_eq!(read::opcache("PHP Version => 8.2\n"), Some(Opcache::default()), "it is not there");
    assert_eq!(read::opcache("no such program\n"), None);
}

#[test]
fn settings_in_files() {
    let text =
        "# a = 1\nnet.ipv4.tcp_tw_recycle = 1\n-net/ipv4/tcp_syncookies=0\n; x=2\nnonsense\n";
    let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    assert_eq!(
        read::sysctl(text),
        [pair("net.ipv4.tcp_tw_recycle", "1"), pair("net.ipv4.tcp_syncookies", "0")]
    );
    let cnf =
        "[mysqld]\n#max_connections = 9\nmax-connections = 200\nmax_connections=300 # as many\n";
    assert_eq!(read::database_option(cnf, "max_connections"), Some(300));
}

#[test]
fn nonsense_is_survived() {
    for text in ["", "\n", "[", "=", "TcpExt:", "TcpExt:\nTcpExt:", "\u{0}\u{fffd}", "[x", "a => b"]
    {
        let _ =
            (read::tcp(text, text), read::conntrack(text, text, text), read::memory(text, text));
        let _ =
            (read::pools(text, text), read::opcache(text), read::sysctl(text), read::chosen(text));
        let _ = (read::hard_limit(text, text), read::keyed(text, text), read::two_numbers(text));
    }
}
