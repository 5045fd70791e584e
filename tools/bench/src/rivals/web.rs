//! Those that serve files or have pages rendered: Pagewell, nginx, Apache, H2O, php-fpm, fcgiwrap; and
//! what all nginx and Apache here have in common. Files are those of [`super::super::pages`], under the
//! same addresses as the pages.

use super::super::error_text;
use super::super::pages::fast_dir;
use super::{Ground, Server, Tls, tcp};
use harness::{ApacheConf, FcgiWrap, NginxConf, OnPort, Pagewell, apache, h2o, nginx};
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// The configuration that all nginx have in common.
pub const NGINX: &str = "sendfile on; tcp_nopush on; tcp_nodelay on; keepalive_timeout 60s; \
     keepalive_requests 1000000000;\nopen_file_cache max=10000 inactive=2h; \
     open_file_cache_valid 1h; reset_timedout_connection on;\ntypes { text/html html; }\n\
     default_type text/html;\n";

/// The versions of TLS that Pagewell has: before 1.23.4, nginx has TLS 1.3 only if it is named. Both servers and
/// h2load need another time for a record of TLS 1.2.
const NGINX_TLS: &str = "ssl_protocols TLSv1.2 TLSv1.3;\n";

/// Starts an nginx of one worker on this ground.
pub fn nginx(on: &Ground, http: &str, location: &str) -> Result<OnPort, String> {
    nginx_with(on, http, location, None)
}

/// The same that speaks TLS and HTTP/2, too, on a port of its own.
pub fn nginx_with(
    on: &Ground,
    http: &str,
    location: &str,
    tls: Option<&Tls>,
) -> Result<OnPort, String> {
    let mut server = String::new();
    if let Some(Tls { certificate, key, port }) = tls {
        let (certificate, key) = (certificate.display(), key.display());
        let _ = write!(
            server,
            "listen 127.0.0.1:{port} ssl http2;\nssl_certificate {certificate};\n\
             ssl_certificate_key {key};\nssl_session_cache shared:tls:1m;\n{NGINX_TLS}"
        );
    }
    server.push_str(location);
    server.push_str(
        &on.logging(|log| format!("\naccess_log {} combined buffer=64k flush=1s;", log.display())),
    );
    let conf = NginxConf {
        http: format!("{NGINX}{http}"),
        server,
        workers: if on.core.is_some() { 1 } else { 2 },
    };
    let room = (on.connections * 2 + 512).max(1024);
    nginx::start_wide(fast_dir("nginx").map_err(error_text)?, &conf, room).map_err(error_text)
}

/// Pagewell with this document root, before the same php-fpm as the others.
pub fn pagewell(on: &Ground, root: &Path) -> Result<Server, String> {
    let dir = fast_dir("config").map_err(error_text)?;
    let mut config = String::from("memory = \"512M\"\n");
    let tls = on.tls()?;
    if let Some(Tls { certificate, key, port }) = &tls {
        let (certificate, key) = (certificate.display(), key.display());
        config = format!(
            "{config}listen_tls = \"127.0.0.1:{port}\"\n[[tls]]\n\
             certificate = \"{certificate}\"\nkey = \"{key}\"\n"
        );
    }
    let file = dir.path().join("pagewell.toml");
    fs::write(&file, config).map_err(|error| format!("{}: {error}", file.display()))?;
    let php = format!("unix:{}", on.pages.php.socket().display());
    let (root, file) = (root.display().to_string(), file.display().to_string());
    let log = on.logging(|log| log.display().to_string());
    let mut arguments = vec![root.as_str(), "--php", &php, "--config", &file, "--log", "warn"];
    if !log.is_empty() {
        arguments.extend(["--access-log", &log]);
    }
    let pagewell = Pagewell::start(&on.binary, &arguments).map_err(error_text)?;
    let address = match &tls {
        Some(tls) => tls.address(),
        None => tcp(pagewell.address())?,
    };
    let pid = pagewell.pid();
    Ok(Server::new(address, vec![pid], vec![Box::new(pagewell), Box::new(dir)]))
}

/// nginx with the files.
pub fn nginx_file(on: &Ground) -> Result<Server, String> {
    let root = format!("root {};", on.pages.files().display());
    Ok(Server::nginx(nginx(on, "", &root)?, Vec::new(), Vec::new()))
}

/// nginx that passes all on to an Apache with the files, over kept connections.
pub fn nginx_apache(on: &Ground) -> Result<Server, String> {
    let apache = apache(on, &[], &files(on))?;
    let http = format!("upstream apache {{ server {}; keepalive 64; }}", apache.address());
    let location = "location / { proxy_pass http://apache; proxy_http_version 1.1; \
                    proxy_set_header Connection \"\"; }";
    let nginx = nginx(on, &http, location)?;
    Ok(Server::nginx(nginx, vec![apache.pid()], vec![Box::new(apache)]))
}

/// Apache with the files.
pub fn apache_file(on: &Ground) -> Result<Server, String> {
    let apache = apache(on, &[], &files(on))?;
    Ok(Server::new(apache.address(), vec![apache.pid()], vec![Box::new(apache)]))
}

/// H2O with the files.
pub fn h2o_file(on: &Ground) -> Result<Server, String> {
    let h2o =
        h2o::start(fast_dir("h2o").map_err(error_text)?, &on.pages.files()).map_err(error_text)?;
    Ok(Server::new(h2o.address(), vec![h2o.pid()], vec![Box::new(h2o)]))
}

/// nginx before php-fpm, whose CPU is counted with it.
pub fn php(on: &Ground) -> Result<Server, String> {
    let location = format!("location / {{\n{}\n}}", on.pages.fastcgi());
    let nginx = nginx(on, "", &location)?;
    Ok(Server::nginx(nginx, on.pages.php.pid().into_iter().collect(), Vec::new()))
}

/// nginx before fcgiwrap with a script in Perl that writes 13 bytes, as every target.
pub fn perl(on: &Ground) -> Result<Server, String> {
    let dir = fast_dir("perl").map_err(error_text)?;
    let script = dir.path().join("hello.pl");
    let text = "#!/usr/bin/perl\nprint \"Content-Type: text/html\\r\\n\\r\\n<p>The quick \";\n";
    fs::write(&script, text)
        .and_then(|()| fs::set_permissions(&script, fs::Permissions::from_mode(0o755)))
        .map_err(|error| format!("{}: {error}", script.display()))?;
    let wrap = FcgiWrap::start(fast_dir("wrap").map_err(error_text)?, 4).map_err(error_text)?;
    let location = format!(
        "location / {{ include /etc/nginx/fastcgi_params; fastcgi_param SCRIPT_FILENAME {}; \
         fastcgi_pass unix:{}; }}",
        script.display(),
        wrap.socket().display()
    );
    let (pid, nginx) = (wrap.pid(), nginx(on, "", &location)?);
    Ok(Server::nginx(nginx, vec![pid], vec![Box::new(wrap), Box::new(dir)]))
}

/// The Combined Log Format in Apache's words.
const APACHE_COMBINED: &str = r#"%h %l %u %t \"%r\" %>s %b \"%{Referer}i\" \"%{User-Agent}i\""#;

/// An Apache of threads on this ground.
pub fn apache(on: &Ground, modules: &[&'static str], directives: &str) -> Result<OnPort, String> {
    let log = on.logging(|log| {
        format!("BufferedLogs On\nCustomLog {} \"{APACHE_COMBINED}\"\n", log.display())
    });
    let conf = ApacheConf { modules: modules.to_vec(), directives: format!("{log}{directives}") };
    apache::start(fast_dir("apache").map_err(error_text)?, &conf).map_err(error_text)
}

fn files(on: &Ground) -> String {
    let root = on.pages.files();
    let root = root.display();
    format!(
        "DocumentRoot {root}\n<Directory {root}>\nAllowOverride None\nOptions FollowSymLinks\n\
         Require all granted\n</Directory>\nEnableSendfile On\n"
    )
}
