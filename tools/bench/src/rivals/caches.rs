//! Those that answer from a store: nginx with its cache or a memcached, Apache, Varnish, HAProxy,
//! Traffic Server. Each takes its pages from php-fpm, or from the nginx before it where it speaks HTTP
//! alone; memcached and Pagewell's port have no origin, and are filled.

use super::super::error_text;
use super::super::pages::fast_dir;
use super::web::{apache as start_apache, nginx as start_nginx, nginx_with};
use super::{Ground, Server};
use harness::{Address, Client, Memcached, Pagewell, haproxy, traffic_server, varnish};
use std::fs;
use std::io::{Read, Write};
use std::time::Duration;

/// Cache on tmpfs, descriptors kept open, one render at a time; gzip for those who accept it.
pub fn nginx(on: &Ground) -> Result<Server, String> {
    let store = fast_dir("store").map_err(error_text)?;
    let place = store.path().join("pages");
    let http = format!(
        "fastcgi_cache_path {} levels=1:2 keys_zone=pages:10m max_size=200m inactive=2h \
         use_temp_path=off;\ngzip on; gzip_vary on;",
        place.display()
    );
    let location = format!(
        "location / {{\n{}\n fastcgi_cache pages; \
         fastcgi_cache_key $scheme$request_method$host$request_uri;\n \
         fastcgi_cache_valid 200 2h; fastcgi_cache_lock on; fastcgi_cache_lock_timeout 60s;\n \
         add_header X-Cache $upstream_cache_status;\n}}",
        on.pages.fastcgi()
    );
    // The workers, which are another user, make the store.
    fs::set_permissions(store.path(), std::os::unix::fs::PermissionsExt::from_mode(0o777))
        .map_err(|error| format!("{}: {error}", store.path().display()))?;
    let tls = on.tls()?;
    let nginx = nginx_with(on, &http, &location, tls.as_ref())?;
    let mut server = Server::nginx(nginx, Vec::new(), vec![Box::new(store)]);
    if let Some(tls) = tls {
        server.address = tls.address();
    }
    Ok(server)
}

/// nginx that reads pages from a memcached on a Unix socket, over kept connections.
pub fn nginx_memcached(on: &Ground) -> Result<Server, String> {
    let memcached =
        Memcached::start(fast_dir("mc").map_err(error_text)?, 256).map_err(error_text)?;
    fill(on, memcached.address())?;
    let (pid, address) = (memcached.pid(), memcached.address().clone());
    let nginx = start_nginx(on, &pages_at(&address), MEMCACHED_PASS)?;
    Ok(Server::nginx(nginx, vec![pid], vec![Box::new(memcached)]))
}

/// The same nginx, and Pagewell's port in the role of memcached.
pub fn nginx_pagewell(on: &Ground) -> Result<Server, String> {
    let dir = fast_dir("pwmc").map_err(error_text)?;
    fs::set_permissions(dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755))
        .map_err(|error| format!("{}: {error}", dir.path().display()))?;
    let socket = dir.path().join("port.sock");
    let file = dir.path().join("pagewell.toml");
    fs::write(&file, format!("[memcached]\nlisten = \"unix:{}\"\n", socket.display()))
        .map_err(|error| format!("{}: {error}", file.display()))?;
    let php = format!("unix:{}", on.pages.php.socket().display());
    let (root, file) = (on.pages.site().display().to_string(), file.display().to_string());
    let arguments = [&root, "--php", &php, "--memory", "512M", "--config", &file, "--log", "warn"];
    let pagewell = Pagewell::start(&on.binary, &arguments).map_err(error_text)?;
    let address = Address::Unix(socket.clone());
    fs::set_permissions(&socket, std::os::unix::fs::PermissionsExt::from_mode(0o777))
        .map_err(|error| format!("{}: {error}", socket.display()))?;
    fill(on, &address)?;
    let pid = pagewell.pid();
    let nginx = start_nginx(on, &pages_at(&address), MEMCACHED_PASS)?;
    Ok(Server::nginx(nginx, vec![pid], vec![Box::new(pagewell), Box::new(dir)]))
}

const MEMCACHED_PASS: &str = "location / { set $memcached_key $request_uri; \
     default_type text/html; memcached_pass pages; }";

fn pages_at(address: &Address) -> String {
    format!("upstream pages {{ server {address}; keepalive 64; }}")
}

/// Stores the pages that are asked for under their request's URI.
fn fill(on: &Ground, memcached: &Address) -> Result<(), String> {
    let within = Duration::from_secs(5);
    let as_text = |error: std::io::Error| format!("memcached: {error}");
    let mut stream = memcached.connect(within).map_err(as_text)?;
    for target in &on.targets {
        let page = Client::new(on.pages.http.address()).within(Duration::from_secs(30)).get(target);
        let page = page.map_err(|error| format!("{target}: {error}"))?;
        let head = format!("set {target} 0 0 {}\r\n", page.content.len());
        stream.write_all(&[head.as_bytes(), &page.content, b"\r\n"].concat()).map_err(as_text)?;
        let mut answer = [0_u8; 8];
        stream.read_exact(&mut answer).map_err(as_text)?;
        if &answer != b"STORED\r\n" {
            return Err(format!("memcached: {}", String::from_utf8_lossy(&answer)));
        }
    }
    Ok(())
}

/// Apache with mod_cache before everything else (CacheQuickHandler), its files on tmpfs.
pub fn apache(on: &Ground) -> Result<Server, String> {
    let origin = on.pages.http.address();
    let directives = format!(
        "CacheQuickHandler on\nCacheRoot @cache@\nCacheEnable disk /\nCacheIgnoreNoLastMod On\n\
         CacheMaxFileSize 2000000\nEnableSendfile On\nProxyPass / http://{origin}/\n"
    );
    let modules = ["proxy", "proxy_http", "cache", "cache_disk"];
    let apache = start_apache(on, &modules, &directives)?;
    Ok(Server::new(apache.address(), vec![apache.pid()], vec![Box::new(apache)]))
}

/// Varnish with 256 MB, pages for two hours; where gzip is measured, kept in gzip.
pub fn varnish(on: &Ground) -> Result<Server, String> {
    let origin = on.pages.http.address();
    let vcl = format!(
        "vcl 4.1;\nbackend default {{ .host = \"{}\"; .port = \"{}\"; }}\n\
         sub vcl_backend_response {{ set beresp.ttl = 2h; set beresp.do_gzip = {}; }}\n",
        origin.ip(),
        origin.port(),
        on.gzip
    );
    let dir = fast_dir("varnish").map_err(error_text)?;
    let varnish = varnish::start(dir, &vcl, 256).map_err(error_text)?;
    Ok(Server::new(varnish.address(), vec![varnish.pid()], vec![Box::new(varnish)]))
}

/// HAProxy with a cache of 200 MB.
pub fn haproxy(on: &Ground) -> Result<Server, String> {
    let sections = format!(
        "cache pages\n total-max-size 200\n max-object-size 1000000\n max-age 7200\n\
         backend site\n http-request cache-use pages\n http-response cache-store pages\n \
         server origin {}\n",
        on.pages.http.address()
    );
    let dir = fast_dir("haproxy").map_err(error_text)?;
    let haproxy = haproxy::start(dir, " default_backend site", &sections).map_err(error_text)?;
    Ok(Server::new(haproxy.address(), vec![haproxy.pid()], vec![Box::new(haproxy)]))
}

/// Traffic Server with 128 MB for pages.
pub fn traffic_server(on: &Ground) -> Result<Server, String> {
    let dir = fast_dir("ats").map_err(error_text)?;
    let server = traffic_server::start(dir, on.pages.http.address(), 128).map_err(error_text)?;
    Ok(Server::new(server.address(), vec![server.pid()], vec![Box::new(server)]))
}
