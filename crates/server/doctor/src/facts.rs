//! What is known about a machine, its PHP and its site. A fact that could not be had is `None`.
//!
//! Bytes are bytes, counts of the kernel are since it was started. Nothing here says where a fact comes
//! from: that is for whoever collects it.

/// All of them.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// The kernel's settings.
    pub kernel: Kernel,
    /// What the kernel has counted about TCP.
    pub tcp: Tcp,
    /// The table of connections that the firewall follows.
    pub conntrack: Conntrack,
    /// Memory.
    pub memory: Memory,
    /// What this group of processes may use.
    pub cgroup: Cgroup,
    /// What was counted a moment before.
    pub before: Before,
    /// php-fpm's pools, Pagewell's own among them.
    pub pools: Vec<Pool>,
    /// The configuration by which Pagewell runs a php-fpm of its own, where it does: `opcache` is that one's.
    pub own_php: Option<String>,
    /// PHP's cache of compiled scripts.
    pub opcache: Option<Opcache>,
    /// How many `.php` files the site has.
    pub php_files: Option<u64>,
    /// Symbolic links below the document root that lead outside it and are not allowed to.
    pub links_outside: Option<LinksOutside>,
    /// How many connections the database takes.
    pub database_connections: Option<u64>,
    /// How many connections Pagewell takes at once.
    pub connections: Option<u64>,
    /// Open files that the running Pagewell may have (or this shell, when none runs).
    pub open_files: Option<u64>,
    /// The running Pagewell that was looked at, by its process id; none runs, or it is not known which.
    pub running: Option<u32>,
    /// The page budget, in bytes.
    pub page_budget: Option<u64>,
    /// Whether logs are written to a disk that turns.
    pub turning_disk: Option<bool>,
    /// Bytes free where logs are written.
    pub log_space: Option<u64>,
    /// The kernel's clock source: `tsc`, `hpet`.
    pub clock_source: Option<String>,
    /// Whether something keeps the clock right.
    pub clock_kept: Option<bool>,
    /// Lines of sysctl files, with where they stand: what is set at the next boot.
    pub sysctl_lines: Vec<(String, String)>,
    /// What the site answered.
    pub answers: Vec<Answer>,
}

/// Symbolic links that lead outside the document root, so that their paths are answered with 404.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinksOutside {
    /// How many there are.
    pub count: u64,
    /// One of them, and where it leads.
    pub example: (String, String),
    /// The line of configuration that allows them.
    pub allowing: String,
}

/// The kernel's settings (`/proc/sys`).
#[derive(Debug, Clone, Default)]
pub struct Kernel {
    /// `net.core.somaxconn`.
    pub somaxconn: Option<u64>,
    /// `net.ipv4.tcp_max_syn_backlog`.
    pub syn_backlog: Option<u64>,
    /// `net.ipv4.tcp_syncookies`.
    pub syncookies: Option<u64>,
    /// `net.ipv4.tcp_tw_recycle`; gone from the kernel since 4.12.
    pub tw_recycle: Option<u64>,
    /// `net.ipv4.tcp_timestamps`.
    pub timestamps: Option<u64>,
    /// `net.ipv4.tcp_max_tw_buckets`.
    pub tw_buckets: Option<u64>,
    /// `net.ipv4.ip_local_port_range`.
    pub ports: Option<(u64, u64)>,
    /// `fs.file-max`.
    pub file_max: Option<u64>,
    /// `vm.swappiness`.
    pub swappiness: Option<u64>,
    /// Transparent huge pages: `always`, `madvise`, `never`.
    pub huge_pages: Option<String>,
}

/// What the kernel has counted about TCP.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tcp {
    /// Connections dropped because a server's queue was full.
    pub listen_overflows: Option<u64>,
    /// Connections dropped while they were made, for whatever reason.
    pub listen_drops: Option<u64>,
    /// Half-open connections dropped because their queue was full.
    pub syn_drops: Option<u64>,
    /// Ended connections that were not waited for, because their table was full.
    pub time_wait_overflows: Option<u64>,
    /// Connections cut because memory for TCP had run out.
    pub memory_aborts: Option<u64>,
    /// Connections that are waited for now.
    pub time_wait: Option<u64>,
    /// Those of them that keep a port which this machine would use itself.
    pub ports_kept: Option<u64>,
}

/// What had been counted when the look began: what has risen since happens now, the rest is long past or not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Before {
    /// About TCP.
    pub tcp: Tcp,
    /// Of the firewall's table.
    pub conntrack: Conntrack,
    /// Of the group.
    pub cgroup: Cgroup,
}

/// The table of connections that the firewall follows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Conntrack {
    /// Entries now.
    pub count: Option<u64>,
    /// Entries there may be.
    pub max: Option<u64>,
    /// Packets dropped because the table was full.
    pub drops: Option<u64>,
}

/// Memory, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Memory {
    /// Of the machine.
    pub total: Option<u64>,
    /// That could be had without swapping.
    pub available: Option<u64>,
    /// Swap there is.
    pub swap_total: Option<u64>,
    /// Swap that is free.
    pub swap_free: Option<u64>,
    /// Pages brought back from swap since the start.
    pub swapped_in: Option<u64>,
}

/// What this group of processes may use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cgroup {
    /// Memory, in bytes; `None`: no bound.
    pub memory_max: Option<u64>,
    /// How often something was killed for want of memory.
    pub killed: Option<u64>,
    /// How often it was held back because its share of CPU was used up.
    pub throttled: Option<u64>,
    /// Processes and threads; `None`: no bound.
    pub pids_max: Option<u64>,
}

/// A pool of php-fpm.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pool {
    /// Its name.
    pub name: String,
    /// The file it stands in: php-fpm's, or Pagewell's configuration.
    pub file: String,
    /// Whether Pagewell starts it.
    pub own: bool,
    /// `pm.max_children`.
    pub children: u64,
    /// Resident bytes of one child that runs, on average.
    pub child_bytes: Option<u64>,
    /// `listen.backlog`, where it is set.
    pub backlog: Option<i64>,
    /// Whether it listens on TCP of this machine.
    pub tcp: bool,
}

/// PHP's cache of compiled scripts, as php-fpm has it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Opcache {
    /// Whether PHP has it at all.
    pub installed: bool,
    /// `opcache.enable`.
    pub enabled: bool,
    /// `opcache.memory_consumption`, in megabytes.
    pub megabytes: Option<u64>,
    /// `opcache.max_accelerated_files`.
    pub files: Option<u64>,
    /// `opcache.validate_timestamps`.
    pub validates: bool,
}

/// What one address of the site answered, asked as a visitor without cookies asks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// The address.
    pub url: String,
    /// The status; `None`: none came.
    pub status: Option<u16>,
    /// Whether it has `ETag` or `Last-Modified`.
    pub validator: bool,
    /// The cookies it sets, by name.
    pub cookies: Vec<String>,
    /// Its `Cache-Control`.
    pub cache_control: Option<String>,
    /// Its `Cache-Status`, where Pagewell answered.
    pub cache_status: Option<String>,
    /// Where it sends visitors who are to look elsewhere.
    pub location: Option<String>,
    /// Bytes of its content.
    pub bytes: u64,
    /// Whether it was compressed for a client that accepts gzip.
    pub compressed: bool,
}
