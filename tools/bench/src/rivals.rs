//! The servers that benchmarks compare, each set up for this job as its manual and the field advise,
//! not as it comes: one thread on one core, its pages in memory, no access log, kept connections not
//! cut.
//!
//! A server that cannot be started is left out, and the table says why; Pagewell and the floor have to
//! be there. The figure of a server is the CPU time of all the processes that a client's request goes
//! through: nginx and memcached, nginx and Apache, php-fpm where it renders.

mod caches;
mod web;

use super::pages::Pages;
use super::{error_text, floor};
use harness::{Address, OnPort, PrivateDir, Process, cpu};
use std::any::Any;
use std::cell::RefCell;
use std::env;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Which server, in which role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rival {
    /// A bare epoll loop: parse, look up, send.
    Floor,
    /// Pagewell, from memory.
    Pagewell,
    /// Pagewell, a file.
    PagewellFile,
    /// nginx with its fastcgi_cache on tmpfs.
    NginxCache,
    /// nginx that reads pages from memcached.
    NginxMemcached,
    /// nginx that reads pages from Pagewell's memcached port.
    NginxPagewell,
    /// nginx, a file.
    NginxFile,
    /// nginx before Apache, which has the file.
    NginxApache,
    /// Apache with mod_cache on tmpfs.
    ApacheCache,
    /// Apache, a file.
    ApacheFile,
    /// Varnish.
    Varnish,
    /// HAProxy with its cache.
    HaProxy,
    /// Traffic Server.
    TrafficServer,
    /// H2O, a file.
    H2oFile,
    /// nginx before php-fpm, which renders every time.
    Php,
    /// nginx before fcgiwrap, which starts a Perl script every time.
    PerlCgi,
}

impl Rival {
    /// Its name, as in the tables.
    pub fn name(self) -> &'static str {
        match self {
            Rival::Floor => "bare epoll loop",
            Rival::Pagewell => "Pagewell",
            Rival::PagewellFile => "Pagewell, file",
            Rival::NginxCache => "nginx fastcgi_cache",
            Rival::NginxMemcached => "nginx + memcached",
            Rival::NginxPagewell => "nginx + Pagewell's memcached port",
            Rival::NginxFile => "nginx, file",
            Rival::NginxApache => "nginx → Apache, file",
            Rival::ApacheCache => "Apache mod_cache",
            Rival::ApacheFile => "Apache, file",
            Rival::Varnish => "Varnish",
            Rival::HaProxy => "HAProxy cache",
            Rival::TrafficServer => "Traffic Server",
            Rival::H2oFile => "H2O, file",
            Rival::Php => "nginx → php-fpm, rendered",
            Rival::PerlCgi => "nginx → fcgiwrap, Perl",
        }
    }

    /// Whether it renders the page for each request.
    pub fn renders(self) -> bool {
        matches!(self, Rival::Php | Rival::PerlCgi)
    }

    /// Starts it before these pages, on this core.
    ///
    /// # Errors
    /// The reason why it did not start.
    pub fn start(self, on: &Ground) -> Result<Server, String> {
        let start = || match self {
            Rival::Floor => start_floor(on),
            Rival::Pagewell => web::pagewell(on, &on.pages.site()),
            Rival::PagewellFile => web::pagewell(on, &on.pages.files()),
            Rival::NginxFile => web::nginx_file(on),
            Rival::NginxApache => web::nginx_apache(on),
            Rival::ApacheFile => web::apache_file(on),
            Rival::H2oFile => web::h2o_file(on),
            Rival::Php => web::php(on),
            Rival::PerlCgi => web::perl(on),
            Rival::NginxCache => caches::nginx(on),
            Rival::NginxMemcached => caches::nginx_memcached(on),
            Rival::NginxPagewell => caches::nginx_pagewell(on),
            Rival::ApacheCache => caches::apache(on),
            Rival::Varnish => caches::varnish(on),
            Rival::HaProxy => caches::haproxy(on),
            Rival::TrafficServer => caches::traffic_server(on),
        };
        let file = |dir: &PrivateDir| dir.path().join(format!("{self:?}.log"));
        on.log.replace(on.logs.as_ref().map(file));
        let mut server = match on.core {
            Some(core) => cpu::on_core(core, start).map_err(|e| format!("core {core}: {e}"))??,
            None => start()?,
        };
        server.rival = self;
        server.log = on.log.take();
        Ok(server)
    }
}

/// The pages and programs that all servers have in common.
pub struct Ground {
    /// The site that all servers serve.
    pub pages: Pages,
    /// The binary under measurement.
    pub binary: PathBuf,
    /// The core of the servers; `None`: both, and the load shares them.
    pub core: Option<usize>,
    /// The core of the load.
    pub load_core: usize,
    /// The targets that are asked for, so that stores without an origin can be filled.
    pub targets: Vec<&'static str>,
    /// How many connections there may be.
    pub connections: usize,
    /// Whether clients accept gzip.
    pub gzip: bool,
    /// A certificate and its key, where servers are to speak TLS.
    pub certificate: Option<(PathBuf, PathBuf)>,
    /// Where servers write their access logs, if they are to: in memory, so that no disk disturbs.
    pub logs: Option<PrivateDir>,
    /// The access log of the server that is started now.
    pub log: RefCell<Option<PathBuf>>,
}

impl Ground {
    /// What `directive` makes of the path of the log that the server is to write; nothing if none.
    pub fn logging(&self, directive: impl FnOnce(&Path) -> String) -> String {
        self.log.borrow().as_deref().map(directive).unwrap_or_default()
    }

    /// Where a server that is started now is to speak TLS, if it is.
    ///
    /// # Errors
    /// When there is no free port.
    pub fn tls(&self) -> Result<Option<Tls>, String> {
        let Some((certificate, key)) = self.certificate.clone() else { return Ok(None) };
        let port = harness::free_port().map_err(|error| error.to_string())?;
        Ok(Some(Tls { certificate, key, port }))
    }
}

/// Where TLS is spoken, and with what.
pub struct Tls {
    certificate: PathBuf,
    key: PathBuf,
    port: u16,
}

impl Tls {
    fn address(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.port))
    }
}

/// A server under measurement.
pub struct Server {
    /// The kind of this server.
    pub rival: Rival,
    /// The address at which it listens.
    pub address: SocketAddr,
    /// The roots of its processes.
    pub pids: Vec<u32>,
    /// Its access log, where it writes one.
    log: Option<PathBuf>,
    /// Guards that end it when they are dropped.
    _keeps: Vec<Box<dyn Any>>,
}

impl Server {
    /// A server whose processes have these roots.
    pub fn new(address: SocketAddr, pids: Vec<u32>, keeps: Vec<Box<dyn Any>>) -> Server {
        Server { rival: Rival::Floor, address, pids, log: None, _keeps: keeps }
    }

    /// One nginx, and what it needs beside it.
    fn nginx(nginx: OnPort, more: Vec<u32>, mut keeps: Vec<Box<dyn Any>>) -> Server {
        let (address, pid) = (nginx.address(), nginx.pid());
        keeps.insert(0, Box::new(nginx));
        Server::new(address, [vec![pid], more].concat(), keeps)
    }

    /// Looks whether it has logged what it answered, and empties the log. The floor logs nothing.
    ///
    /// # Errors
    /// There is nothing in the log.
    pub fn empty_log(&self) -> Result<(), String> {
        let Some(log) = self.log.as_deref().filter(|_| self.rival != Rival::Floor) else {
            return Ok(());
        };
        let as_text = |error: std::io::Error| format!("bench: {}: {error}", log.display());
        let file = fs::File::options().write(true).open(log).map_err(as_text)?;
        match file.metadata().map_err(as_text)?.len() {
            0 => Err(format!("bench: {} has logged nothing", self.rival.name())),
            _ => file.set_len(0).map_err(as_text),
        }
    }

    /// CPU seconds of all its processes.
    pub fn cpu_seconds(&self) -> f64 {
        self.pids.iter().map(|pid| cpu::seconds(*pid)).sum()
    }

    /// Resident memory of all its processes, in bytes.
    pub fn rss_bytes(&self) -> u64 {
        self.pids.iter().map(|pid| cpu::rss_bytes(*pid)).sum()
    }
}

/// The floor answers the targets that are files.
fn start_floor(on: &Ground) -> Result<Server, String> {
    let dir = super::pages::fast_dir("floor").map_err(error_text)?;
    let this = env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(this);
    command.arg("floor").arg(on.pages.files());
    let (process, address) = spawn_floor(&mut command, &dir)?;
    Ok(Server::new(address, vec![process.id()], vec![Box::new(process), Box::new(dir)]))
}

fn spawn_floor(command: &mut Command, dir: &PrivateDir) -> Result<(Process, SocketAddr), String> {
    let log = dir.path().join("floor.log");
    let mut process = Process::spawn("floor", command, &log).map_err(error_text)?;
    let mut address = None;
    let ready = || {
        let output = fs::read_to_string(&log).unwrap_or_default();
        let url = output.lines().find_map(|line| line.strip_prefix("listening on http://"));
        address = url.and_then(|url| url.parse().ok());
        address.is_some()
    };
    process.wait_ready(Duration::from_secs(10), ready).map_err(error_text)?;
    address.map(|address| (process, address)).ok_or_else(|| "no floor".to_owned())
}

/// Serves the files below this directory from a bare epoll loop, for ever.
///
/// # Errors
/// Those of the system.
pub fn serve_floor(files: &Path) -> Result<(), String> {
    let read = |target: &&str| {
        let path = files.join(target.trim_start_matches('/'));
        let content = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok((target.as_bytes().to_vec(), prebuilt(&content)))
    };
    let pages = super::pages::FILES.iter().map(read).collect::<Result<_, String>>()?;
    floor::serve(&pages).map_err(|error| format!("floor: {error}"))
}

/// The floor's whole answer: about the fields that a stored page is answered with.
fn prebuilt(content: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n\
         Content-Type: text/html; charset=utf-8\r\nCache-Control: max-age=36000\r\n\
         ETag: \"0123456789abcdef\"\r\nAge: 1\r\nCache-Status: floor; hit\r\n\
         Content-Length: {}\r\n\r\n",
        content.len()
    );
    [head.as_bytes(), content].concat()
}

/// The TCP address of a Pagewell.
fn tcp(address: &Address) -> Result<SocketAddr, String> {
    match address {
        Address::Tcp(address) => Ok(*address),
        Address::Unix(path) => Err(format!("{} is no TCP address", path.display())),
    }
}
