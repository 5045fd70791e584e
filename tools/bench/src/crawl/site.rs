//! The site that is crawled: articles and endless filters, 30 ms of CPU a page and one query of MariaDB.
//!
//! A render burns CPU rather than waits, so that two cores are what limits the site. Sessions and logins are those of
//! an ordinary application: a cookie, and the field by which Pagewell's PHP library says that a visitor is signed in,
//! also in the response to the login itself.

use super::priority::{SITE_NICE, set_group_nice};
use crate::error_text;
use harness::{NewsSite, PhpFpm, PoolOptions, PrivateDir, cpu, root};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The children of php-fpm, and the places at it.
pub const CHILDREN: u32 = 6;
/// The most used articles, which are stored before anything is measured.
pub const ARTICLES: u32 = 200;
/// The usual filters, which are stored, too.
pub const FILTERS: u32 = 100;
/// The files of a page.
pub const FILES: u32 = 10;

const SCRIPT: &str = r#"<?php
$path = parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH);
$db = new PDO(getenv('NEWS_DB_DSN'), getenv('NEWS_DB_USER'), getenv('NEWS_DB_PASSWORD'), [PDO::ATTR_PERSISTENT => true]);
$row = $db->query('SELECT * FROM news ORDER BY id LIMIT 1')->fetch();
$used = static function (): float {
    $now = getrusage();
    return $now['ru_utime.tv_sec'] * 1e3 + $now['ru_utime.tv_usec'] / 1e3;
};
for ($until = $used() + (int) getenv('CRAWL_MS'), $text = 'x'; $used() < $until;) {
    for ($n = 0; $n < 2000; $n++) {
        $text = md5($text);
    }
}
$session = ($_COOKIE['PHPSESSID'] ?? '') === hash('sha256', 'a visitor' . ($_COOKIE['visitor'] ?? ''));
if ($path === '/login') {
    setcookie('PHPSESSID', hash('sha256', 'a visitor' . ($_POST['visitor'] ?? '')), ['path' => '/', 'httponly' => true]);
    header('Cache-Control: no-store');
    header('X-Pagewell-Refusal: signed-in');
} elseif ($session || $_SERVER['REQUEST_METHOD'] === 'POST') {
    header('Cache-Control: private, no-store');
    $session && header('X-Pagewell-Refusal: signed-in');
} else {
    header('Cache-Control: max-age=3600');
}
header('Content-Type: text/html; charset=utf-8');
echo '<!DOCTYPE html><title>', htmlspecialchars($path), '</title>', str_repeat("<p>$text</p>\n", 100);
"#;

/// The path and query of a usual filter.
pub fn usual_filter(number: usize) -> String {
    format!("/shop/?colour={number}&size=usual")
}

/// The running site: PHP and MariaDB.
pub struct CrawledSite {
    php: PhpFpm,
    news: NewsSite,
    dir: PrivateDir,
}

impl CrawledSite {
    /// Starts MariaDB and php-fpm.
    ///
    /// # Errors
    /// A server that did not start.
    pub fn start(render_ms: u32) -> Result<CrawledSite, String> {
        let temporary = |name: &str| PrivateDir::temporary(name).map_err(error_text);
        let dir = temporary("crawl")?;
        let public = dir.path().join("public");
        fs::create_dir(&public).map_err(super::system)?;
        fs::write(public.join("index.php"), SCRIPT).map_err(super::system)?;
        for file in 0..FILES {
            let file = public.join(format!("file-{file}.css"));
            fs::write(file, "body{color:#222}\n".repeat(200)).map_err(super::system)?;
        }
        for open in [dir.path(), &public] {
            fs::set_permissions(open, fs::Permissions::from_mode(0o755)).map_err(super::system)?;
        }
        let news =
            NewsSite::start(&root::repository(), temporary("news")?, 50).map_err(error_text)?;
        let mut env = news.env().to_vec();
        env.push(("CRAWL_MS".to_owned(), render_ms.to_string()));
        let options = PoolOptions { children: CHILDREN, env, ini: Vec::new() };
        let php = PhpFpm::start(temporary("php")?, &options).map_err(error_text)?;
        Ok(CrawledSite { php, news, dir })
    }

    /// Ends PHP with all that it still works for, and starts it again.
    ///
    /// # Errors
    /// The reason why it did not start.
    pub fn start_php_again(&mut self) -> Result<(), String> {
        self.php.kill();
        self.php.start_again().map_err(error_text)?;
        // Each has a process group of its own.
        set_group_nice(self.php.pid(), SITE_NICE)?;
        set_group_nice(self.news.database().pid(), SITE_NICE)
    }

    /// The document root of the site.
    pub fn root(&self) -> PathBuf {
        self.dir.path().join("public")
    }

    /// The socket of its php-fpm.
    pub fn socket(&self) -> &Path {
        self.php.socket()
    }

    /// The CPU time of PHP, in seconds.
    pub fn cpu_seconds(&self) -> f64 {
        self.php.pid().map_or(0.0, cpu::seconds)
    }
}
