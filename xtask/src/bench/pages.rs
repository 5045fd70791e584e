//! The site that the benchmarks ask for: pages of any size, made by PHP in any time, and the same
//! contents as files.
//!
//! `/p/BYTES-MS` is a page of so many bytes whose render takes so long (of CPU; beyond a second, of
//! waiting). It is the same each time, so that what servers answer can be compared byte for byte. Beside
//! php-fpm stands an nginx that only passes on to it: the origin of those caches that speak HTTP alone.

use super::told;
use harness::{NginxConf, OnPort, PhpFpm, PoolOptions, PrivateDir, StartError, nginx};
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

const SCRIPT: &str = r#"<?php
if (!preg_match('~^/p/(\d+)-(\d+)~', $_SERVER['REQUEST_URI'], $of)) { http_response_code(404); exit; }
if ($of[2] > 1000) { usleep(1000 * (int) $of[2]); }
else { for ($end = hrtime(true) + 1000000 * (int) $of[2]; hrtime(true) < $end;); }
header('Content-Type: text/html; charset=utf-8');
header('Cache-Control: max-age=36000');
$line = "<p>The quick brown fox jumps over the lazy dog, %d times, and is not out of breath.</p>\n";
for ($page = '', $n = 0; strlen($page) < $of[1]; $n++) { $page .= sprintf($line, $n * 7919 % 1009); }
echo substr($page, 0, (int) $of[1]);
"#;

/// The pages that are there as files, too.
pub const FILES: [&str; 6] =
    ["/p/13-0", "/p/100-0", "/p/2042-0", "/p/21000-0", "/p/21000-20", "/p/100000-0"];

/// The running site.
pub struct Pages {
    /// The origin that speaks HTTP.
    pub http: OnPort,
    /// php-fpm.
    pub php: PhpFpm,
    dir: PrivateDir,
}

impl Pages {
    /// Starts php-fpm with so many children, and lays the files.
    ///
    /// # Errors
    /// What did not start.
    pub fn start(children: u32) -> Result<Pages, String> {
        let dir = fast_dir("pages").map_err(told)?;
        let lay = || -> io::Result<()> {
            for place in ["site", "files", "files/p"] {
                fs::create_dir(dir.path().join(place))?;
                readable(&dir.path().join(place), 0o755)?;
            }
            let script = dir.path().join("site/index.php");
            fs::write(&script, SCRIPT)?;
            readable(&script, 0o644)?;
            fs::write(dir.path().join("files/index.html"), "files\n")
        };
        lay().map_err(|error| format!("bench: {}: {error}", dir.path().display()))?;
        let pool = PoolOptions { children, ..PoolOptions::default() };
        let php = PhpFpm::start(fast_dir("php").map_err(told)?, &pool).map_err(told)?;
        let server = format!(
            "location / {{\n{}\n fastcgi_hide_header X-Powered-By; }}",
            fastcgi(&dir.path().join("site"), php.socket())
        );
        let conf = NginxConf { http: String::new(), server, workers: 1 };
        let http = nginx::start(fast_dir("origin").map_err(told)?, &conf).map_err(told)?;
        let pages = Pages { http, php, dir };
        pages.lay_files()?;
        Ok(pages)
    }

    /// The document root with the script.
    pub fn site(&self) -> PathBuf {
        self.dir.path().join("site")
    }

    /// The document root with the same pages as files.
    pub fn files(&self) -> PathBuf {
        self.dir.path().join("files")
    }

    /// How a page is passed to PHP, in nginx's words.
    pub fn fastcgi(&self) -> String {
        fastcgi(&self.site(), self.php.socket())
    }

    fn lay_files(&self) -> Result<(), String> {
        let mut client = harness::Client::new(self.http.address());
        for target in FILES {
            let page = client.get(target).map_err(|error| format!("bench: {target}: {error}"))?;
            let path = self.files().join(target.trim_start_matches('/'));
            fs::write(&path, &page.content)
                .and_then(|()| readable(&path, 0o644))
                .map_err(|error| format!("bench: {}: {error}", path.display()))?;
        }
        Ok(())
    }
}

fn fastcgi(site: &Path, socket: &Path) -> String {
    format!(
        " include /etc/nginx/fastcgi_params;\n fastcgi_param SCRIPT_FILENAME {}/index.php;\n \
         fastcgi_pass unix:{};",
        site.display(),
        socket.display()
    )
}

fn readable(path: &Path, mode: u32) -> io::Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

/// Memory where there is some, so that no disk disturbs.
///
/// # Errors
/// When no directory can be made.
pub fn fast_dir(name: &str) -> Result<PrivateDir, StartError> {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() {
        PrivateDir::temporary_in(memory, name)
    } else {
        PrivateDir::temporary(name)
    }
}
