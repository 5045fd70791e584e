//! The servers before the crawled site, each with the protection that its operators use.
//!
//! All accept the PROXY protocol on loopback, so that each client has an address of its own. Pagewell has as many places
//! at PHP as it has children; before nginx and Varnish, further requests wait in php-fpm's own queue. nginx limits
//! requests for pages, not for files, by address before its cache, because `limit_req` cannot do it after; Varnish
//! limits misses by address.

use super::site::{CHILDREN, CrawledSite};
use crate::error_text;
use harness::{Address, NginxConf, OnPort, Pagewell, PrivateDir, nginx, varnish};
use std::fs;
use std::net::SocketAddr;
use std::path::Path;

/// A server with its protection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protection {
    /// `misses.mode = "protect"`.
    Pagewell,
    /// `misses.mode = "off"`.
    PagewellOff,
    /// nginx with `fastcgi_cache` and `limit_req`.
    Nginx,
    /// Varnish with `vsthrottle` in `vcl_miss`, before nginx as its HTTP origin.
    Varnish,
}

impl Protection {
    /// All, in the order of the table.
    pub const ALL: [Protection; 4] =
        [Protection::Pagewell, Protection::PagewellOff, Protection::Nginx, Protection::Varnish];

    /// The name in the table.
    pub fn name(self) -> &'static str {
        match self {
            Protection::Pagewell => "Pagewell, `protect`",
            Protection::PagewellOff => "Pagewell, `off`",
            Protection::Nginx => "nginx, `limit_req` 1/s",
            Protection::Varnish => "Varnish, `vsthrottle` 1/s of misses",
        }
    }
}

/// A running server, with its origin.
pub struct Guard {
    address: SocketAddr,
    /// Kept until the run ends.
    _running: Vec<Box<dyn std::any::Any>>,
}

impl Guard {
    /// Starts one.
    ///
    /// # Errors
    /// The reason why it did not start; Varnish may not be installed.
    pub fn start(kind: Protection, binary: &Path, site: &CrawledSite) -> Result<Guard, String> {
        match kind {
            Protection::Pagewell => pagewell("protect", binary, site),
            Protection::PagewellOff => pagewell("off", binary, site),
            Protection::Nginx => with_nginx(site),
            Protection::Varnish => with_varnish(site),
        }
    }

    /// Its address, at which each connection begins with the PROXY protocol.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

fn pagewell(mode: &str, binary: &Path, site: &CrawledSite) -> Result<Guard, String> {
    let dir = PrivateDir::temporary("crawl").map_err(error_text)?;
    let config = dir.path().join("pagewell.toml");
    let text = format!(
        "listen = \"127.0.0.1:0\"\nproxy_protocol = [\"127.0.0.1:0\"]\ntrusted_proxies = [\"127.0.0.1\"]\n\
         [misses]\nmode = \"{mode}\"\n[limits]\norigin_connections = {CHILDREN}\n",
    );
    fs::write(&config, text).map_err(super::system)?;
    let php = format!("unix:{}", site.socket().display());
    let (root, config) = (site.root().display().to_string(), config.display().to_string());
    let arguments =
        [&root, "--config", &config, "--php", &php, "--memory", "256M", "--log", "warn"];
    let pagewell = Pagewell::start(binary, &arguments).map_err(error_text)?;
    let Address::Tcp(address) = *pagewell.address() else {
        return Err("bench: pagewell does not listen on TCP".into());
    };
    Ok(Guard { address, _running: vec![Box::new(pagewell), Box::new(dir)] })
}

const REAL_ADDRESS: &str =
    "set_real_ip_from 127.0.0.1;\nreal_ip_header proxy_protocol;\nreal_ip_recursive on;\n";

fn location(site: &CrawledSite, more: &str) -> String {
    format!(
        "root {root};\nlocation / {{ try_files $uri @php; }}\nlocation @php {{\n \
         include /etc/nginx/fastcgi_params;\n fastcgi_param SCRIPT_FILENAME {root}/index.php;\n \
         fastcgi_pass unix:{php};\n fastcgi_read_timeout 60s;\n{more}}}\n",
        root = site.root().display(),
        php = site.socket().display(),
    )
}

fn with_nginx(site: &CrawledSite) -> Result<Guard, String> {
    let dir = PrivateDir::temporary("nginx").map_err(error_text)?;
    let http = format!(
        "fastcgi_cache_path {}/temp/cache levels=1:2 keys_zone=pages:20m max_size=400m inactive=2h \
         use_temp_path=off;\nlimit_req_zone $binary_remote_addr zone=visitors:20m rate=1r/s;\n\
         map $http_cookie $signed_in {{ default 0; ~PHPSESSID 1; }}\nsendfile on; tcp_nodelay on;\n",
        dir.path().display()
    );
    let php = "limit_req zone=visitors burst=20 nodelay; limit_req_status 429;\n \
               fastcgi_cache pages; fastcgi_cache_key $request_method$host$request_uri;\n \
               fastcgi_cache_lock on; fastcgi_cache_bypass $signed_in; fastcgi_no_cache $signed_in;\n";
    let server = format!("{REAL_ADDRESS}{}", location(site, php));
    let conf = NginxConf { http, server, workers: 2 };
    let running = nginx::start_proxied(dir, &conf).map_err(error_text)?;
    Ok(Guard { address: running.address(), _running: vec![Box::new(running)] })
}

fn with_varnish(site: &CrawledSite) -> Result<Guard, String> {
    let dir = PrivateDir::temporary("nginx").map_err(error_text)?;
    let conf = NginxConf { http: "sendfile on;".into(), server: location(site, ""), workers: 2 };
    // A connection of Varnish waits for each request in progress.
    let origin: OnPort = nginx::start_wide(dir, &conf, 8192).map_err(error_text)?;
    let vcl = format!(
        "vcl 4.1;\nimport vsthrottle;\n\
         backend php {{ .host = \"127.0.0.1\"; .port = \"{}\"; \
         .first_byte_timeout = 60s; }}\n\
         sub vcl_recv {{ if (req.http.Cookie !~ \"PHPSESSID\") {{ unset req.http.Cookie; }} }}\n\
         sub vcl_miss {{ if (vsthrottle.is_denied(client.identity, 10, 10s)) \
         {{ return (synth(429)); }} }}\n",
        origin.address().port()
    );
    let dir = PrivateDir::temporary("varnish").map_err(error_text)?;
    let running = varnish::start_proxied(dir, &vcl, 256).map_err(error_text)?;
    Ok(Guard { address: running.address(), _running: vec![Box::new(running), Box::new(origin)] })
}
