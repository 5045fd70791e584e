//! The servers that benchmarks compare, on the same page of the same PHP: a bare epoll loop (the
//! floor), Pagewell, and nginx with its fastcgi_cache.
//!
//! All run on one core, with their files in memory (`/dev/shm`) where there is some. nginx is set up
//! as its manual and the field advise for this job, not as it comes.

use crate::root::{self, Profile};
use harness::{
    Address, Client, NewsSite, Nginx, NginxConf, Pagewell, PhpFpm, PoolOptions, PrivateDir,
    Process, Request, StartError, cpu,
};
use std::collections::HashMap;
use std::env;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// The page that is asked for: about 2 KB.
pub const TARGET: &str = "/news/1/";

/// A server under measurement.
pub struct Server {
    /// Its name, as in the table.
    pub name: &'static str,
    /// Where it listens.
    pub address: SocketAddr,
    /// The root of its processes.
    pub pid: u32,
}

/// Everything that runs. Fields are dropped in this order: servers before what they ask.
pub struct Rig {
    /// The servers; the first is the floor.
    pub servers: [Server; 3],
    _floor: Process,
    _pagewell: Pagewell,
    _nginx: Nginx,
    /// The PHP that all of them ask.
    pub php: PhpFpm,
    _site: NewsSite,
    _scratch: PrivateDir,
}

impl Rig {
    /// Starts everything, the servers on this core.
    ///
    /// # Errors
    /// What did not start.
    pub fn start(core: usize) -> Result<Rig, String> {
        let binary = root::pagewell(Profile::Release)?;
        let on_core = |start: &mut dyn FnMut() -> Result<(), String>| {
            cpu::on_core(core, start).map_err(|error| format!("bench: core {core}: {error}"))?
        };
        let scratch = fast_dir("bench").map_err(told)?;
        let site = fast_dir("news").and_then(|dir| NewsSite::start(&root::repository(), dir, 100));
        let site = site.map_err(told)?;
        let pool = PoolOptions { env: site.env().to_vec(), ..PoolOptions::default() };
        let php = PhpFpm::start(fast_dir("php").map_err(told)?, &pool).map_err(told)?;
        let (mut pagewell, mut nginx, mut floor) = (None, None, None);
        on_core(&mut || {
            nginx = Some(start_nginx(&site, &php).map_err(told)?);
            pagewell = Some(start_pagewell(&binary, &site, &php).map_err(told)?);
            Ok(())
        })?;
        let (Some(nginx), Some(pagewell)) = (nginx, pagewell) else { return Err("bench".into()) };
        let page = Client::new(nginx.address()).get(TARGET).map_err(|error| error.to_string())?;
        let answer = scratch.path().join("answer");
        fs::write(&answer, prebuilt(&page.content)).map_err(|error| error.to_string())?;
        on_core(&mut || {
            floor = Some(start_floor(&answer, scratch.path())?);
            Ok(())
        })?;
        let Some((floor, floor_address)) = floor else { return Err("bench".into()) };
        let Address::Tcp(pagewell_address) = *pagewell.address() else {
            return Err("bench: pagewell does not listen on TCP".into());
        };
        let servers = [
            Server { name: "epoll floor", address: floor_address, pid: floor.id() },
            Server { name: "pagewell", address: pagewell_address, pid: pagewell.pid() },
            Server { name: "nginx fastcgi_cache", address: nginx.address(), pid: nginx.pid() },
        ];
        Ok(Rig {
            servers,
            _floor: floor,
            _pagewell: pagewell,
            _nginx: nginx,
            php,
            _site: site,
            _scratch: scratch,
        })
    }

    /// Each server answers with the same page, the caches from memory. Returns its size in bytes.
    ///
    /// # Errors
    /// Which one does not.
    pub fn verify(&self) -> Result<usize, String> {
        let mut contents = Vec::new();
        for server in &self.servers {
            let mut client = Client::new(server.address).host("news.test");
            let mut got = client.get(TARGET);
            for _ in 0..2 {
                got = client.send(&Request::get(TARGET));
            }
            let page = got.map_err(|error| format!("bench: {}: {error}", server.name))?;
            let says = page.header("cache-status").or(page.header("x-cache")).unwrap_or("HIT");
            if page.status != 200 || !says.to_ascii_lowercase().contains("hit") {
                let Server { name, .. } = server;
                return Err(format!("bench: {name} answers {}, {says}: no hit", page.status));
            }
            contents.push(page.content);
        }
        // Pages say when they were made: apart from numbers they are the same.
        let digitless = |content: &Vec<u8>| -> Vec<u8> {
            content.iter().map(|byte| if byte.is_ascii_digit() { b'0' } else { *byte }).collect()
        };
        if contents.iter().any(|content| digitless(content) != digitless(&contents[0])) {
            let pages: Vec<_> = contents.iter().map(|one| String::from_utf8_lossy(one)).collect();
            return Err(format!("bench: the servers answer with different pages: {pages:#?}"));
        }
        // The load generator sends the address as Host: that page, too, is to be there already.
        for server in &self.servers {
            let warmed = Client::new(server.address).get(TARGET);
            warmed.map_err(|error| format!("bench: {}: {error}", server.name))?;
        }
        Ok(contents[0].len())
    }
}

fn told(error: StartError) -> String {
    format!("bench: {error}")
}

/// Memory where there is some, so that no disk disturbs.
fn fast_dir(name: &str) -> Result<PrivateDir, StartError> {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() {
        PrivateDir::temporary_in(memory, name)
    } else {
        PrivateDir::temporary(name)
    }
}

fn start_pagewell(binary: &Path, site: &NewsSite, php: &PhpFpm) -> Result<Pagewell, StartError> {
    let php = format!("unix:{}", php.socket().display());
    let dir = site.dir().display().to_string();
    Pagewell::start(binary, &[dir.as_str(), "--php", &php, "--memory", "64M", "--log", "warn"])
}

/// As its manual and the field advise for this job: cache in memory, descriptors kept open, no log,
/// kept connections not cut, the application's own Cache-Control (meant for browsers) passed over.
fn start_nginx(site: &NewsSite, php: &PhpFpm) -> Result<Nginx, StartError> {
    let dir = fast_dir("nginx")?;
    let http = format!(
        "fastcgi_cache_path {}/temp/cache levels=1:2 keys_zone=pages:10m max_size=200m inactive=2h \
         use_temp_path=off;\nsendfile on; tcp_nopush on; tcp_nodelay on; keepalive_requests 1000000000;\n\
         open_file_cache max=1000 inactive=2h; open_file_cache_valid 1h; reset_timedout_connection on;",
        dir.path().display()
    );
    let server = format!(
        "location / {{\n include /etc/nginx/fastcgi_params;\n \
         fastcgi_param SCRIPT_FILENAME {root}/public/index.php;\n fastcgi_pass unix:{php};\n \
         fastcgi_cache pages; fastcgi_cache_key $scheme$request_method$host$request_uri;\n \
         fastcgi_cache_valid 200 2h; fastcgi_cache_lock on;\n \
         fastcgi_ignore_headers Cache-Control Expires Set-Cookie Vary;\n \
         fastcgi_hide_header Cache-Groups; fastcgi_hide_header Pagewell-Cache-Control;\n \
         add_header X-Cache $upstream_cache_status;\n}}",
        root = site.dir().display(),
        php = php.socket().display(),
    );
    Nginx::start(dir, &NginxConf { http, server, workers: 1 })
}

fn start_floor(answer: &Path, place: &Path) -> Result<(Process, SocketAddr), String> {
    let this = env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(this);
    command.args(["floor", "--target", TARGET, "--answer"]).arg(answer);
    let log = place.join("floor.log");
    let mut process = Process::spawn("floor", &mut command, &log).map_err(told)?;
    let mut address = None;
    let ready = || {
        let said = fs::read_to_string(&log).unwrap_or_default();
        let url = said.lines().find_map(|line| line.strip_prefix("listening on http://"));
        address = url.and_then(|url| url.parse().ok());
        address.is_some()
    };
    process.wait_ready(Duration::from_secs(10), ready).map_err(told)?;
    address.map(|address| (process, address)).ok_or_else(|| "bench: no floor".to_owned())
}

/// The floor's whole answer: about the fields that a stored page is answered with.
fn prebuilt(content: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n\
         Content-Type: text/html; charset=utf-8\r\nCache-Control: no-cache\r\n\
         ETag: \"0123456789abcdef\"\r\nAge: 1\r\nCache-Status: floor; hit\r\n\
         Content-Length: {}\r\n\r\n",
        content.len()
    );
    [head.as_bytes(), content].concat()
}

/// The table of the floor: one target and its answer.
///
/// # Errors
/// When the file cannot be read.
pub fn floor_pages(target: &str, answer: &Path) -> Result<HashMap<Vec<u8>, Vec<u8>>, String> {
    let answer = fs::read(answer).map_err(|error| format!("{}: {error}", answer.display()))?;
    Ok(HashMap::from([(target.as_bytes().to_vec(), answer)]))
}
