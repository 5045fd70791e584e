//! The servers that are flushed, each set up for this job as its manual advises.
//!
//! Pagewell is flushed by its control interface. nginx has no such request (the module that purges is
//! not part of it): its cache is emptied in the usual way, by deleting its files.

use super::site::Site;
use crate::error_text;
use harness::{Address, NginxConf, OnPort, Pagewell, PrivateDir, nginx};
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// A server, and how it is flushed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Pages are gone.
    PagewellHard,
    /// Pages are gone, and rendered again in the background.
    PagewellRewarm,
    /// Pages are marked, and served while they are refreshed.
    PagewellSoft,
    /// nginx, of whose requests for a page one renders it and the others wait (at most 5 s).
    NginxLock,
    /// nginx as it comes.
    NginxNoLock,
}

impl Way {
    /// All of them, in the order of the table.
    pub const ALL: [Way; 5] = [
        Way::PagewellHard,
        Way::PagewellRewarm,
        Way::PagewellSoft,
        Way::NginxLock,
        Way::NginxNoLock,
    ];

    /// Its name, as in the table.
    pub fn name(self) -> &'static str {
        match self {
            Way::PagewellHard => "Pagewell, hard",
            Way::PagewellRewarm => "Pagewell, hard, with `rewarm`",
            Way::PagewellSoft => "Pagewell, soft",
            Way::NginxLock => "nginx, `fastcgi_cache_lock on`",
            Way::NginxNoLock => "nginx, `fastcgi_cache_lock off`",
        }
    }

    fn config(self, children: u32) -> String {
        let places = format!("[limits]\norigin_connections = {children}\n");
        let more = match self {
            Way::PagewellRewarm => "[rewarm]\nenabled = true\npages_per_second = 50\n",
            Way::PagewellSoft => "[cache]\nsoft_for = \"30s\"\n",
            _ => "",
        };
        format!("{places}{more}")
    }
}

/// A running server with its cache.
pub enum Server {
    /// Pagewell, with what is sent to its control interface.
    Pagewell(Box<Flushable>),
    /// nginx, and where its cache is.
    Nginx(Box<OnPort>, PathBuf),
}

/// A Pagewell, and how it is flushed.
pub struct Flushable {
    pagewell: Pagewell,
    flush: &'static str,
    address: SocketAddr,
    _config: PrivateDir,
}

impl Server {
    /// Starts one before the site's PHP.
    ///
    /// # Errors
    /// The reason why it did not start.
    pub fn start(way: Way, binary: &Path, site: &Site, children: u32) -> Result<Server, String> {
        match way {
            Way::NginxLock => nginx(site, "on"),
            Way::NginxNoLock => nginx(site, "off"),
            _ => pagewell(way, binary, site, children),
        }
    }

    /// The address at which it listens.
    pub fn address(&self) -> SocketAddr {
        match self {
            Server::Pagewell(one) => one.address,
            Server::Nginx(nginx, _) => nginx.address(),
        }
    }

    /// Invalidates everything it has.
    ///
    /// # Errors
    /// The reason why the cache was not emptied.
    pub fn flush(&self) -> Result<(), String> {
        match self {
            Server::Pagewell(one) => {
                let answer = one.pagewell.invalidate(one.flush);
                let answer = answer.map_err(|error| format!("bench: {error}"))?;
                match answer.status {
                    200 => Ok(()),
                    status => Err(format!("bench: {status} {}", answer.text())),
                }
            }
            Server::Nginx(_, cache) => {
                delete_files(cache).map_err(|error| format!("bench: {error}"))
            }
        }
    }
}

fn pagewell(way: Way, binary: &Path, site: &Site, children: u32) -> Result<Server, String> {
    let dir = PrivateDir::temporary("flush").map_err(error_text)?;
    let config = dir.path().join("pagewell.toml");
    fs::write(&config, way.config(children)).map_err(|error| format!("bench: {error}"))?;
    let php = format!("unix:{}", site.php().display());
    let (root, config) = (site.root().display().to_string(), config.display().to_string());
    let arguments =
        [&root, "--config", &config, "--php", &php, "--memory", "256M", "--log", "warn"];
    let pagewell = Pagewell::start(binary, &arguments).map_err(error_text)?;
    let Address::Tcp(address) = *pagewell.address() else {
        return Err("bench: pagewell does not listen on TCP".into());
    };
    let flush = match way {
        Way::PagewellSoft => "{\"all\":true,\"soft\":true}",
        _ => "{\"all\":true}",
    };
    Ok(Server::Pagewell(Box::new(Flushable { pagewell, flush, address, _config: dir })))
}

fn nginx(site: &Site, lock: &str) -> Result<Server, String> {
    let dir = PrivateDir::temporary("nginx").map_err(error_text)?;
    let cache = dir.path().join("temp/cache");
    let http = format!(
        "fastcgi_cache_path {} levels=1:2 keys_zone=pages:10m max_size=400m inactive=2h \
         use_temp_path=off;\nsendfile on; tcp_nopush on; tcp_nodelay on; \
         keepalive_requests 1000000000;",
        cache.display()
    );
    let server = format!(
        "location / {{\n include /etc/nginx/fastcgi_params;\n \
         fastcgi_param SCRIPT_FILENAME {root}/public/index.php;\n fastcgi_pass unix:{php};\n \
         fastcgi_cache pages; fastcgi_cache_key $scheme$request_method$host$request_uri;\n \
         fastcgi_cache_valid 200 2h; fastcgi_cache_lock {lock};\n \
         fastcgi_ignore_headers Cache-Control Expires Set-Cookie Vary;\n}}",
        root = site.root().display(),
        php = site.php().display(),
    );
    let nginx = nginx::start(dir, &NginxConf { http, server, workers: 2 }).map_err(error_text)?;
    Ok(Server::Nginx(Box::new(nginx), cache))
}

/// The files below a directory; it and the directories in it stay.
fn delete_files(dir: &Path) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let deleted = if entry.file_type()?.is_dir() {
            delete_files(&entry.path())
        } else {
            fs::remove_file(entry.path())
        };
        match deleted {
            // nginx has moved or deleted it itself.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            other => other?,
        }
    }
    Ok(())
}
