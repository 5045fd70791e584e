//! Small scripts in Pagewell's own php-fpm. `index.php` imitates what WordPress does with its filters.

use super::{CaptureUse, PATIENCE, PhpSite, report, token};
use capture::{NotCaptured, OptionNames};
use harness::PrivateDir;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

/// A WordPress with a database that executes nothing and counts correctly.
pub(super) const FAKE: &str = r#"<?php
final class WP_Hook {
    public $callbacks;
    public function apply_filters($args) {
        foreach ($this->callbacks as $group) {
            foreach ($group as $one) { $args[0] = ($one['function'])(...array_slice($args, 0, $one['accepted_args'])); }
        }
        return $args[0];
    }
}
$wp_version = '6.4';
foreach ($wp_filter ?? [] as $name => $callbacks) {
    $wp_filter[$name] = new WP_Hook();
    $wp_filter[$name]->callbacks = $callbacks;
}
unset($name, $callbacks);
function apply_filters($name, ...$args) {
    $GLOBALS['wp_filters'][$name] = ($GLOBALS['wp_filters'][$name] ?? 0) + 1;
    return isset($GLOBALS['wp_filter'][$name]) ? $GLOBALS['wp_filter'][$name]->apply_filters($args) : $args[0];
}
class Connection extends mysqli {
    public $sent = 7;
    public function __construct() {}
    public function get_server_info(): string { return '10.11.19-MariaDB'; }
    public function get_connection_stats(): array { return ['com_query' => (string) $this->sent, 'com_ping' => '1']; }
    #[ReturnTypeWillChange]
    public function query($query, $mode = 0) {
        return new class {
            public function fetch_row() { return ['', 'utf8mb4', 'blog', 'REPEATABLE-READ', '5']; }
        };
    }
}
class wpdb {
    public $last_error = '', $last_query = '', $num_queries = 3;
    protected $dbh;
    public function __construct() { $this->dbh = new Connection(); }
    public function __get($name) { return $this->$name; }
    public function query($query) {
        $query = apply_filters('query', $query);
        $this->last_query = $query;
        $this->dbh->sent++;
        $this->num_queries++;
        return true;
    }
}
$wpdb = new wpdb();
apply_filters('pre_option_home', false);
apply_filters('pre_option', false, 'home');
$wpdb->query('SELECT 1');
$wpdb->query('SHOW TABLES');
"#;

/// A directory with scripts that the workers can read.
pub(super) fn site(scripts: &[(&str, &str)]) -> PrivateDir {
    let dir = PrivateDir::temporary("capture").expect("a directory");
    for (name, content) in scripts {
        let path = dir.path().join(name);
        fs::write(&path, content).expect("can be written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("can be read");
    }
    dir
}

/// A script that continues the fake WordPress.
fn after_fake(code: &str) -> String {
    format!("<?php require __DIR__ . '/index.php'; {code}")
}

fn texts(statements: &[Box<[u8]>]) -> Vec<String> {
    statements.iter().map(|text| String::from_utf8_lossy(text).into_owned()).collect()
}

/// The report of a script that ends in some way.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    Complete,
    Fatal,
    Killed,
}

#[tokio::test]
async fn statements_are_reported_however_the_script_ends() {
    let endings = [
        ("end.php", "echo 'shown';", Ending::Complete),
        ("exit.php", "echo 'shown'; exit;", Ending::Complete),
        ("throw.php", "echo 'shown'; throw new Exception('bad');", Ending::Fatal),
        (
            "memory.php",
            "echo 'shown'; ini_set('memory_limit', '8M'); str_repeat('x', 64 << 20);",
            Ending::Fatal,
        ),
        ("killed.php", "echo 'shown'; flush(); posix_kill(getmypid(), 9);", Ending::Killed),
    ];
    let scripts: Vec<(&str, String)> =
        endings.iter().map(|(name, code, _)| (*name, after_fake(code))).collect();
    let mut files: Vec<(&str, &str)> =
        scripts.iter().map(|(name, code)| (*name, code.as_str())).collect();
    files.push(("index.php", FAKE));
    let dir = site(&files);
    let site = PhpSite::start(dir.path(), "ini.display_errors = \"0\"", CaptureUse::On).await;
    for (name, _, ending) in endings {
        let capture = site.captures().begin();
        let response = site.send(name, "/", Some(capture.parameters())).await;
        let patience = if ending == Ending::Killed { Duration::ZERO } else { PATIENCE };
        let got = capture.report(patience).await;
        assert_eq!(response.is_some(), ending != Ending::Killed, "{name}");
        match ending {
            Ending::Complete => {
                let got = got.expect(name);
                assert_eq!(texts(&got.statements), ["SELECT 1", "SHOW TABLES"], "{name}");
                let names = ["blog_charset", "siteurl", "home"];
                let names = names.map(|name| Box::from(name.as_bytes())).to_vec();
                assert_eq!(got.options, OptionNames::Complete(names), "{name}");
            }
            Ending::Fatal => {
                let reason = got.expect_err(name).to_string();
                assert!(reason.contains("a fatal error"), "{name}: {reason}");
            }
            Ending::Killed => assert_eq!(got, Err(NotCaptured::NoReport), "{name}"),
        }
        if ending != Ending::Killed {
            // PHP discards the buffered output when the memory is exhausted, with and without a capture.
            assert_eq!(response, site.send(name, "/", None).await, "{name}");
        }
    }
    // Without the params, PHP reports nothing and hides nothing.
    assert_eq!(site.send("end.php", "/", None).await.expect("a response").1, "shown");
    site.php.stop().await;
}

#[tokio::test]
async fn a_list_that_may_lack_a_statement_is_incomplete() {
    let cases = [
        ("WordPress did not start", "<?php echo 1;".to_owned()),
        (
            "it removed the filter",
            after_fake("unset($wp_filter['query']->callbacks[PHP_INT_MAX]);"),
        ),
        ("2 statements did not pass through $wpdb", after_fake("$wpdb->dbh->sent += 2;")),
        ("PHP does not count", after_fake("$wpdb->dbh->sent--;")),
        ("another object than $wpdb", after_fake("(new wpdb())->query('SELECT 2');")),
        (
            "another object than $wpdb",
            after_fake("(new wpdb())->query('SELECT 2'); $wpdb->dbh->sent++;"),
        ),
        ("another object than $wpdb", after_fake("apply_filters('query', 'SELECT 2');")),
        ("another object than $wpdb", after_fake("$wpdb = new wpdb();")),
        (
            "has opened another connection",
            after_fake("(function () { $this->dbh = new Connection(); })->call($wpdb);"),
        ),
        (
            "a statement of $wpdb failed: no",
            after_fake("$wpdb->query('SELECT 2'); $wpdb->last_error = 'no';"),
        ),
        ("object-cache.php", after_fake("function wp_using_ext_object_cache() { return true; }")),
        (
            "10,000 statements",
            after_fake("for ($i = 0; $i < 10000; $i++) { $wpdb->query('SHOW TABLES'); }"),
        ),
        (
            "10,000 options",
            after_fake("for ($i = 0; $i < 10000; $i++) { apply_filters(\"pre_option_o$i\", 0); }"),
        ),
        ("4 MB", after_fake("$wpdb->query('SHOW ' . str_repeat('x', 4 << 20));")),
    ];
    let names: Vec<String> = (0..cases.len()).map(|number| format!("case{number}.php")).collect();
    let mut files: Vec<(&str, &str)> =
        names.iter().zip(&cases).map(|(name, (_, code))| (name.as_str(), code.as_str())).collect();
    files.push(("index.php", FAKE));
    let dir = site(&files);
    let site = PhpSite::start(dir.path(), "", CaptureUse::On).await;
    for (name, (wanted, code)) in names.iter().zip(&cases) {
        let (response, got) = site.capture(name, "/").await;
        assert!(response.is_some(), "{code}");
        match got {
            Err(NotCaptured::Incomplete(reason) | NotCaptured::Hidden(reason)) => {
                assert!(reason.contains(wanted), "{reason}: {code}");
            }
            other => panic!("{other:?}: {code}"),
        }
    }
    site.php.stop().await;
}

#[tokio::test]
async fn a_script_can_report_only_its_own_request_and_only_once() {
    let send = "<?php $socket = stream_socket_client('unix://' . getenv('PAGEWELL_CAPTURE'));
        fwrite($socket, file_get_contents(__DIR__ . '/' . $_SERVER['QUERY_STRING'])); echo 'sent';";
    let dir = site(&[("send.php", send), ("index.php", FAKE)]);
    let site = PhpSite::start(dir.path(), "", CaptureUse::On).await;
    let own = site.captures().begin();
    let bytes = report(&token(&own), &[(b'S', b"forged"), (b'E', b"")]);
    fs::write(dir.path().join("own"), bytes).expect("can be written");
    let (used, other) = (site.captures().begin(), site.captures().begin());
    let replayed = report(&token(&used), &[(b'E', b"")]);
    fs::write(dir.path().join("replayed"), replayed).expect("can be written");
    for name in ["own", "replayed"] {
        fs::set_permissions(dir.path().join(name), fs::Permissions::from_mode(0o644)).expect("set");
    }
    // A token that was used has no effect on the request that sends it, or on the one that it was for.
    site.send("index.php", "/", Some(used.parameters())).await.expect("a response");
    site.send("send.php", "/?replayed", Some(other.parameters())).await.expect("a response");
    assert_eq!(texts(&used.report(PATIENCE).await.expect("a report").statements).len(), 2);
    let got = other.report(PATIENCE).await.expect_err("the script is not WordPress");
    assert_eq!(got.as_str(), "capture-incomplete");
    // The report that the application itself sends for its request is the first, and counts. The one of the
    // capture file comes later, and is ignored.
    site.send("send.php", "/?own", Some(own.parameters())).await.expect("a response");
    assert_eq!(texts(&own.report(PATIENCE).await.expect("a report").statements), ["forged"]);
    site.php.stop().await;
}

#[tokio::test]
async fn the_application_notices_nothing() {
    let code = "$errors = [];
        set_error_handler(function (...$error) use (&$errors) { $errors[] = $error[1]; return true; });
        register_shutdown_function(function () use (&$errors) {
            register_shutdown_function(function () use (&$errors) {
                echo json_encode([$errors, error_get_last(), headers_list(), ob_get_level(),
                    array_keys($GLOBALS), isset($_SERVER['PAGEWELL_CAPTURE_TOKEN'])]);
            });
        });
        (function () { $this->dbh = null; })->call($wpdb); echo 'shown ';";
    let silent = after_fake(code);
    let dir = site(&[("index.php", FAKE), ("silent.php", &silent)]);
    let site = PhpSite::start(dir.path(), "", CaptureUse::On).await;
    let plain = site.send("silent.php", "/", None).await.expect("a response");
    let capture = site.captures().begin();
    let captured = site.send("silent.php", "/", Some(capture.parameters())).await;
    let names = |text: &str| text.replace("\"wp_filter\",", "").replace(",\"wp_filters\"", "");
    let captured = captured.expect("a response");
    assert_eq!((captured.0, names(&captured.1)), (plain.0, names(&plain.1)));
    assert!(plain.1.starts_with("shown [[],null,"), "{plain:?}");
    assert_eq!(
        capture.report(PATIENCE).await.err().map(|error| error.as_str()),
        Some("capture-incomplete")
    );
    site.php.stop().await;
}

#[tokio::test]
async fn the_capture_file_comes_back_when_it_was_removed() {
    let dir = site(&[("index.php", FAKE)]);
    let site = PhpSite::start(dir.path(), "", CaptureUse::On).await;
    let file = site.captures().file().expect("a capture file");
    let private = file.parent().expect("a directory");
    for name in [
        "prepend.php",
        "capture.php",
        "capture.sock",
        "statement-count.php",
        "session-rules.php",
        "report.php",
    ] {
        fs::remove_file(private.join(name)).expect("can be removed");
        wait_for_report(&site).await;
    }
    fs::remove_dir_all(private).expect("can be removed");
    wait_for_report(&site).await;
    site.php.stop().await;
}

/// Requests a page until its report arrives.
async fn wait_for_report(site: &PhpSite) {
    let reported = async {
        loop {
            let capture = site.captures().begin();
            if site.send("index.php", "/", Some(capture.parameters())).await.is_some()
                && capture.report(Duration::from_secs(1)).await.is_ok()
            {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, reported).await.expect("a report");
}

#[tokio::test]
async fn the_file_of_php_ini_is_loaded_after_the_capture_file() {
    // `PHPRC` names the php.ini of a php-fpm that is started with this environment: a wrapper sets it.
    let dir = site(&[
        ("index.php", FAKE),
        ("php.ini", ""),
        ("first.php", "<?php $first = 'first'; function first() { return $GLOBALS['first']; }"),
        ("shown.php", "<?php require __DIR__ . '/index.php'; echo first(), $first;"),
    ]);
    let ini = format!("auto_prepend_file = {}\n", dir.path().join("first.php").display());
    fs::write(dir.path().join("php.ini"), ini).expect("can be written");
    let real = harness_php_fpm();
    let wrapper = dir.path().join("php-fpm");
    let text = format!(
        "#!/bin/sh\nexec {} -c {} \"$@\"\n",
        real.display(),
        dir.path().join("php.ini").display()
    );
    harness::write_script(&wrapper, &text).expect("can be written");
    let php = format!("binary = {wrapper:?}");
    for capture in [CaptureUse::Off, CaptureUse::On] {
        let site = PhpSite::start(dir.path(), &php, capture).await;
        let response = site.send("shown.php", "/", None).await.expect("a response");
        assert_eq!(response.1, "firstfirst");
        if capture == CaptureUse::On {
            let (response, got) = site.capture("shown.php", "/").await;
            assert_eq!(response.expect("a response").1, "firstfirst");
            assert_eq!(got.expect("a report").statements.len(), 2);
        }
        site.php.stop().await;
    }
}

fn harness_php_fpm() -> std::path::PathBuf {
    origin::php_fpm::newest_binary().expect("php-fpm is installed")
}

#[tokio::test]
async fn settings_of_the_pool_that_would_hide_the_capture_file() {
    let dir = site(&[("index.php", FAKE)]);
    let config =
        super::configuration(dir.path(), "ini.auto_prepend_file = \"/other.php\"", CaptureUse::On);
    let refused = origin::Origin::start(&std::sync::Arc::new(config)).await;
    assert!(refused.err().expect("an error").contains("auto_prepend_file"));
    let basedir = format!("ini.open_basedir = {:?}", Path::new(dir.path()));
    let site = PhpSite::start(dir.path(), &basedir, CaptureUse::On).await;
    assert!(site.capture("index.php", "/").await.1.is_ok());
    site.php.stop().await;
    // The site's own setting wins, and no report comes.
    let own = site_with_user_ini();
    let site = PhpSite::start(own.path(), "", CaptureUse::On).await;
    let capture = site.captures().begin();
    let response = site.send("index.php", "/", Some(capture.parameters())).await;
    assert_eq!(response.expect("a response").1, "own");
    assert_eq!(capture.report(Duration::from_secs(1)).await, Err(NotCaptured::NoReport));
    site.php.stop().await;
}

fn site_with_user_ini() -> PrivateDir {
    let dir = site(&[("index.php", FAKE), ("own.php", "<?php echo 'own';"), (".user.ini", "")]);
    let ini = format!("auto_prepend_file = {}\n", dir.path().join("own.php").display());
    fs::write(dir.path().join(".user.ini"), ini).expect("can be written");
    dir
}
