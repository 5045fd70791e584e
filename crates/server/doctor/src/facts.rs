//! Facts about a machine, its PHP and its site. An unknown fact is `None`.
//!
//! Sizes are in bytes; kernel counters run since the boot. The source of a fact is defined where it is
//! collected.

use crate::https_facts::HttpsFacts;

/// All facts that the checks use.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// The settings of the kernel.
    pub kernel: Kernel,
    /// The kernel's TCP counters.
    pub tcp: Tcp,
    /// The connection-tracking table of the firewall.
    pub conntrack: Conntrack,
    /// The memory of the machine.
    pub memory: Memory,
    /// The limits and counters of the cgroup.
    pub cgroup: Cgroup,
    /// The counters at the beginning of the observation.
    pub before: EarlierCounters,
    /// The pools of php-fpm, including Pagewell's own.
    pub pools: Vec<Pool>,
    /// The configuration file of Pagewell, if it runs its own php-fpm. `opcache` then describes that php-fpm.
    pub own_php: Option<String>,
    /// The settings of PHP's opcache.
    pub opcache: Option<Opcache>,
    /// The number of `.php` files of the site.
    pub php_files: Option<u64>,
    /// Symbolic links below the document root that lead outside it without permission.
    pub links_outside: Option<LinksOutside>,
    /// The maximum number of database connections.
    pub database_connections: Option<u64>,
    /// The php-fpm that Pagewell uses and has not started.
    pub external_php: Vec<ExternalPhp>,
    /// Whether requests for the origin are rationed, and an HTTP proxy names the clients.
    pub hides_clients: bool,
    /// The maximum number of client connections of Pagewell.
    pub connections: Option<u64>,
    /// The limit of open files of the running Pagewell. If none is running, the hard limit of this shell, to which
    /// Pagewell would raise its own.
    pub open_files: Option<u64>,
    /// The process id of the Pagewell that was examined; `None` if none is running, or if there are several.
    pub running: Option<u32>,
    /// The page budget in bytes.
    pub page_budget: Option<u64>,
    /// Whether logs are written to a rotating disk.
    pub turning_disk: Option<bool>,
    /// The disks of the directories that are written to.
    pub disks: Vec<DiskSpace>,
    /// The kernel's clock source: `tsc`, `hpet`.
    pub clock_source: Option<String>,
    /// Whether the clock is synchronised.
    pub clock_kept: Option<bool>,
    /// The lines of the sysctl files, each with its location: the settings after the next boot.
    pub sysctl_lines: Vec<(String, String)>,
    /// The responses of the site.
    pub answers: Vec<Answer>,
    /// The facts that decide on certificates of an authority, if `[acme]` obtains them.
    pub https: Option<HttpsFacts>,
}

impl Facts {
    /// The memory in bytes for Pagewell, PHP and the database: of the machine, or less if the cgroup limits it.
    pub(crate) fn usable_memory(&self) -> Option<u64> {
        process_limits::usable_memory(self.memory.total, self.cgroup.memory_max)
    }
}

/// Symbolic links that lead outside the document root, so that their paths are answered with 404.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinksOutside {
    /// The number of these links.
    pub count: u64,
    /// One of the links, and its target.
    pub example: (String, String),
    /// The configuration line that allows them.
    pub allowing: String,
}

/// The space on the disk of a directory that is written to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DiskSpace {
    /// The path of the directory, for messages.
    pub directory: String,
    /// The bytes that are free for the users of the machine.
    pub free: u64,
    /// The files that are written there.
    pub files: WrittenFiles,
}

/// The files that are written to a directory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WrittenFiles {
    /// The logs of the machine; its database is often on the same disk.
    #[default]
    MachineLogs,
    /// Snapshots of pages. The next one writes this many bytes of pages.
    Snapshots(u64),
    /// The records of a trial and an audit, without snapshots.
    Records,
    /// The access log of Pagewell.
    AccessLog,
}

/// The kernel's settings (`/proc/sys`).
#[derive(Debug, Clone, Default)]
pub struct Kernel {
    /// The value of `net.core.somaxconn`.
    pub somaxconn: Option<u64>,
    /// The value of `net.ipv4.tcp_max_syn_backlog`.
    pub syn_backlog: Option<u64>,
    /// The value of `net.ipv4.tcp_syncookies`.
    pub syncookies: Option<u64>,
    /// `net.ipv4.tcp_tw_recycle`; removed from the kernel in 4.12.
    pub tw_recycle: Option<u64>,
    /// The value of `net.ipv4.tcp_timestamps`.
    pub timestamps: Option<u64>,
    /// The value of `net.ipv4.tcp_max_tw_buckets`.
    pub tw_buckets: Option<u64>,
    /// The value of `net.ipv4.ip_local_port_range`.
    pub ports: Option<(u64, u64)>,
    /// The value of `fs.file-max`.
    pub file_max: Option<u64>,
    /// The value of `vm.swappiness`.
    pub swappiness: Option<u64>,
    /// Transparent huge pages: `always`, `madvise`, `never`.
    pub huge_pages: Option<String>,
}

/// The kernel's TCP counters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tcp {
    /// Connections dropped because the accept queue of a server was full.
    pub listen_overflows: Option<u64>,
    /// Connections dropped while they were established, for any reason.
    pub listen_drops: Option<u64>,
    /// Half-open connections dropped because their queue was full.
    pub syn_drops: Option<u64>,
    /// Connections that skipped TIME-WAIT because its table was full.
    pub time_wait_overflows: Option<u64>,
    /// Connections aborted because memory for TCP was exhausted.
    pub memory_aborts: Option<u64>,
    /// Connections currently in TIME-WAIT.
    pub time_wait: Option<u64>,
    /// Connections in TIME-WAIT that occupy a local port for outgoing connections.
    pub ports_kept: Option<u64>,
}

/// The counters at the beginning of the observation. A counter that rose since then shows a current problem.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EarlierCounters {
    /// The TCP counters of the kernel.
    pub tcp: Tcp,
    /// The counters of the connection-tracking table.
    pub conntrack: Conntrack,
    /// The counters of the cgroup.
    pub cgroup: Cgroup,
}

/// The connection-tracking table of the firewall.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Conntrack {
    /// The current number of entries.
    pub count: Option<u64>,
    /// The maximum number of entries.
    pub max: Option<u64>,
    /// Packets dropped because the table was full.
    pub drops: Option<u64>,
}

/// The machine's memory, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Memory {
    /// The memory of the machine.
    pub total: Option<u64>,
    /// The memory that is available without swapping.
    pub available: Option<u64>,
    /// The size of the swap space.
    pub swap_total: Option<u64>,
    /// The free swap space.
    pub swap_free: Option<u64>,
    /// The number of memory pages read back from swap since the boot.
    pub swapped_in: Option<u64>,
}

/// The limits and counters of the cgroup.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cgroup {
    /// The memory limit in bytes; `None` if there is no limit.
    pub memory_max: Option<u64>,
    /// The number of processes killed for lack of memory.
    pub killed: Option<u64>,
    /// The number of times that the CPU limit throttled the cgroup.
    pub throttled: Option<u64>,
    /// The limit of processes and threads; `None` if there is no limit.
    pub pids_max: Option<u64>,
}

/// A php-fpm that Pagewell has not started, as one site uses it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExternalPhp {
    /// Its address, as `php.at` has it.
    pub at: String,
    /// The requests that Pagewell sends to it at a time.
    pub places: u64,
}

impl ExternalPhp {
    /// The pool at this address, if it has fewer children than Pagewell sends requests at a time.
    #[must_use]
    pub fn smaller_pool<'p>(&self, pools: &'p [Pool]) -> Option<&'p Pool> {
        let pool = pools.iter().find(|pool| !pool.own && pool.at == self.at)?;
        (self.places > pool.children).then_some(pool)
    }
}

/// A pool of php-fpm.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pool {
    /// The name of the pool.
    pub name: String,
    /// The file that defines the pool: php-fpm's, or Pagewell's configuration.
    pub file: String,
    /// Whether Pagewell starts the pool.
    pub own: bool,
    /// The value of `pm.max_children`.
    pub children: u64,
    /// The average resident memory of a running child, in bytes.
    pub child_bytes: Option<u64>,
    /// Its address, as `php.at` has it ([`crate::read::pool_address`]); empty for Pagewell's own.
    pub at: String,
    /// `listen.backlog`, if it is set.
    pub backlog: Option<i64>,
    /// Whether the pool listens on a TCP port of this machine.
    pub tcp: bool,
}

/// PHP's opcache, as configured in php-fpm.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Opcache {
    /// Whether opcache is installed.
    pub installed: bool,
    /// The value of `opcache.enable`.
    pub enabled: bool,
    /// The value of `opcache.memory_consumption`, in megabytes.
    pub megabytes: Option<u64>,
    /// The value of `opcache.max_accelerated_files`.
    pub files: Option<u64>,
    /// The value of `opcache.validate_timestamps`.
    pub validates: bool,
}

/// The response of one URL of the site to a request without cookies.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// The URL of the page.
    pub url: String,
    /// The status; `None` if there was no response.
    pub status: Option<u16>,
    /// Whether the response has `ETag` or `Last-Modified`.
    pub validator: bool,
    /// The names of the cookies that it sets.
    pub cookies: Vec<String>,
    /// The value of `Cache-Control`.
    pub cache_control: Option<String>,
    /// The value of `Cache-Status`, if Pagewell answered.
    pub cache_status: Option<String>,
    /// The target of a redirect.
    pub location: Option<String>,
    /// The length of the content in bytes.
    pub bytes: u64,
    /// Whether the response to a request that accepts gzip was compressed.
    pub compressed: bool,
}
