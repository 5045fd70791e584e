//! The site that the benchmarks ask for: pages of any size, made by PHP in any time, and the same
//! contents as files.
//!
//! `/p/BYTES-MS` is a page of so many bytes whose render takes so much work (milliseconds of CPU; beyond a
//! second, of waiting). Work is a number of rounds, found once in a run and the same for every server and
//! every number of connections: how many children of php-fpm share a core makes a render longer, not
//! dearer. The page is the same each time, so that what servers answer can be compared byte for byte.
//! Beside php-fpm stands an nginx that only passes on to it: the origin of those caches that speak HTTP
//! alone.

use super::error_text;
use harness::{NginxConf, OnPort, PhpFpm, PoolOptions, PrivateDir, StartError, nginx};
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

/// A page; `@rounds@` stands for the rounds of a millisecond.
const SCRIPT: &str = r#"<?php
if (!preg_match('~^/p/(\d+)-(\d+)~', $_SERVER['REQUEST_URI'], $of)) { http_response_code(404); exit; }
if ($of[2] > 1000) { usleep(1000 * (int) $of[2]); }
else { for ($work = '', $n = @rounds@ * (int) $of[2]; $n > 0; $n--) { $work = md5($work); } }
header('Content-Type: text/html; charset=utf-8');
header('Cache-Control: max-age=36000');
$line = "<p>The quick brown fox jumps over the lazy dog, %d times, and is not out of breath.</p>\n";
for ($page = '', $n = 0; strlen($page) < $of[1]; $n++) { $page .= sprintf($line, $n * 7919 % 1009); }
echo substr($page, 0, (int) $of[1]);
"#;

/// Says how many such rounds a millisecond of CPU has: the most of several tries, as nothing makes a
/// processor quicker than it is.
const CALIBRATE: &str = r#"<?php
function cpu() { $of = getrusage(); return ($of['ru_utime.tv_sec'] + $of['ru_stime.tv_sec']) * 1e6
    + $of['ru_utime.tv_usec'] + $of['ru_stime.tv_usec']; }
for ($most = 0, $try = 0; $try < 15; $try++) {
    $begun = cpu();
    for ($work = '', $n = 100000; $n > 0; $n--) { $work = md5($work); }
    $most = max($most, 100000 * 1000 / (cpu() - $begun));
}
echo (int) $most;
"#;

/// The rounds of a millisecond: found by the first site of a run, for all of them.
static ROUNDS: OnceLock<u64> = OnceLock::new();

const CALIBRATED_WITHIN: Duration = Duration::from_secs(60);

/// The pages that are there as files, too.
pub const FILES: [&str; 6] =
    ["/p/13-0", "/p/100-0", "/p/2042-0", "/p/21000-0", "/p/21000-20", "/p/100000-0"];

/// The running site: its files and php-fpm.
pub struct Pages {
    /// The origin that speaks HTTP.
    pub http: OnPort,
    /// The php-fpm that renders its pages.
    pub php: PhpFpm,
    dir: PrivateDir,
}

impl Pages {
    /// Starts php-fpm with so many children, and lays the files.
    ///
    /// # Errors
    /// A server that did not start.
    pub fn start(children: u32) -> Result<Pages, String> {
        let dir = fast_dir("pages").map_err(error_text)?;
        let lay = || -> io::Result<()> {
            for place in ["site", "files", "files/p"] {
                fs::create_dir(dir.path().join(place))?;
                readable(&dir.path().join(place), 0o755)?;
            }
            write(&dir.path().join("rounds.php"), CALIBRATE.as_bytes())?;
            write(&dir.path().join("files/index.html"), b"files\n")
        };
        lay().map_err(|error| format!("bench: {}: {error}", dir.path().display()))?;
        let pool = PoolOptions { children, ..PoolOptions::default() };
        let php = PhpFpm::start(fast_dir("php").map_err(error_text)?, &pool).map_err(error_text)?;
        let passed = |script: &Path| {
            format!(
                "{{\n{}\n fastcgi_hide_header X-Powered-By; }}\n",
                fastcgi(script, php.socket())
            )
        };
        let server = format!(
            "location / {}location = /rounds {}",
            passed(&dir.path().join("site/index.php")),
            passed(&dir.path().join("rounds.php"))
        );
        let conf = NginxConf { http: String::new(), server, workers: 1 };
        let http =
            nginx::start(fast_dir("origin").map_err(error_text)?, &conf).map_err(error_text)?;
        let pages = Pages { http, php, dir };
        pages.lay_script()?;
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
        fastcgi(&self.site().join("index.php"), self.php.socket())
    }

    /// The script, with the rounds that all of this run have.
    fn lay_script(&self) -> Result<(), String> {
        let rounds = match ROUNDS.get() {
            Some(rounds) => *rounds,
            None => {
                let rounds = self.count_rounds()?;
                eprintln!("bench: a millisecond of PHP is {rounds} rounds");
                *ROUNDS.get_or_init(|| rounds)
            }
        };
        let script = self.site().join("index.php");
        write(&script, SCRIPT.replace("@rounds@", &rounds.to_string()).as_bytes())
            .map_err(|error| format!("bench: {}: {error}", script.display()))
    }

    fn count_rounds(&self) -> Result<u64, String> {
        let mut client = harness::Client::new(self.http.address()).within(CALIBRATED_WITHIN);
        let response = client.get("/rounds").map_err(|error| format!("bench: rounds: {error}"))?;
        let rounds = std::str::from_utf8(&response.content).ok().and_then(|text| text.parse().ok());
        rounds.filter(|rounds| *rounds > 0).ok_or_else(|| {
            format!(
                "bench: rounds: {} {}",
                response.status,
                String::from_utf8_lossy(&response.content)
            )
        })
    }

    fn lay_files(&self) -> Result<(), String> {
        let mut client = harness::Client::new(self.http.address());
        for target in FILES {
            let page = client.get(target).map_err(|error| format!("bench: {target}: {error}"))?;
            let path = self.files().join(target.trim_start_matches('/'));
            write(&path, &page.content)
                .map_err(|error| format!("bench: {}: {error}", path.display()))?;
        }
        Ok(())
    }
}

fn fastcgi(script: &Path, socket: &Path) -> String {
    format!(
        " include /etc/nginx/fastcgi_params;\n fastcgi_param SCRIPT_FILENAME {};\n \
         fastcgi_pass unix:{};",
        script.display(),
        socket.display()
    )
}

/// Writes a file that everybody may read.
fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    fs::write(path, content)?;
    readable(path, 0o644)
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
