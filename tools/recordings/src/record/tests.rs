//! A short recording of a real WordPress, and the promise of the capture file: no page changes.
//!
//! The tests share one blog, one after the other, because its creation takes seconds.

use super::super::replay::run as replay;
use super::capture::CaptureSocket;
use super::site::copy_capture;
use super::*;
use harness::{PrivateDir, program};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

fn blog() -> MutexGuard<'static, Blog> {
    static BLOG: OnceLock<Mutex<Blog>> = OnceLock::new();
    let start = || Mutex::new(Blog::start(Sidebar::Default).expect("the blog starts"));
    BLOG.get_or_init(start).lock().unwrap_or_else(PoisonError::into_inner)
}

fn short_plan() -> RecordingPlan {
    let urls = ["/", "/2023/08/post-298/", "/category/science/", "/author/bob/", "/comments/feed/"];
    let rename = r#"{"name": "Sciences"}"#;
    let changes = vec![
        ("nothing", ChangeAction::Nothing),
        ("edit a title", ChangeAction::Rest("POST", "posts/1298", r#"{"title": "Another"}"#)),
        ("rename a category", ChangeAction::Rest("POST", "categories/{term:science}", rename)),
        ("an option", ChangeAction::Command("update_option('blogdescription', 'Light');")),
        (
            "SQL",
            ChangeAction::Sql("UPDATE wp_users SET display_name = 'Rob' WHERE user_login = 'bob';"),
        ),
    ];
    RecordingPlan { urls: urls.to_vec(), changes, idle_seconds: 0 }
}

#[test]
fn a_recording_of_wordpress_is_replayed_without_a_missed_page() {
    let blog = blog();
    let (recording, options) = record(&blog, &short_plan()).expect("the recording");
    let changed: Vec<usize> = recording.changes.iter().map(|change| change.changed.len()).collect();
    assert_eq!(changed[0], 0, "pages must be the same without a change");
    assert!(changed[1..].iter().all(|changed| (1..=5).contains(changed)), "{changed:?}");
    let dir = PrivateDir::temporary("recording").expect("can be made");
    let out = dir.path().join("blog.json.gz");
    write(&out, &recording).expect("can be written");
    write(&options_file(&out), &options).expect("can be written");
    replay(&out, Some(&dir.path().join("blog-options.json.gz"))).expect("no page is missed");
}

#[test]
fn the_capture_file_changes_no_byte_and_does_nothing_unless_asked() {
    let blog = blog();
    for url in ["/", "/2023/08/post-300/", "/feed/", "/no-such-page/", "/wp-login.php"] {
        // The first visit may store what it has computed.
        blog.visit(url).expect("a page");
        let plain = blog.send_without_capture_file(url).expect("a page");
        let silent =
            blog.send(&site::AdminRequest { method: "GET", target: url, ..Default::default() });
        assert_eq!(silent.expect("a page"), plain, "{url}");
        assert!(!blog.has_capture(), "{url}: without the parameter nothing is sent");
        let (captured_page, captured) = blog.visit(url).expect("a page");
        assert_eq!(captured_page, plain, "{url}");
        let has = |start: &str| captured.statements.iter().any(|text| text.starts_with(start));
        assert!(has("SELECT option_name, option_value FROM wp_options"), "{url}: {captured:?}");
        assert!(captured.options.iter().any(|name| name == "blogname"), "{url}: {captured:?}");
        assert!(captured.version.starts_with(|digit: char| digit.is_ascii_digit()));
    }
}

/// The statements of WordPress that the database logs during `visits`.
fn logged(blog: &Blog, visits: impl FnOnce()) -> Vec<String> {
    const LOGGED: &str = "SELECT argument FROM mysql.general_log \
                          WHERE command_type = 'Query' AND user_host LIKE 'wordpress[%'";
    let sql = |text: &str| blog.wordpress().database().sql(text).expect("the database answers");
    sql("SET GLOBAL log_output = 'TABLE'; SET GLOBAL general_log = ON");
    visits();
    sql("SET GLOBAL general_log = OFF");
    sql(LOGGED).lines().map(str::to_owned).collect()
}

#[test]
fn the_capture_has_all_statements_of_a_page_in_order() {
    let blog = blog();
    let mut captured = Vec::new();
    let mut logged = logged(&blog, || {
        for url in ["/", "/2023/08/post-300/", "/?s=lantern", "/wp-json/wp/v2/users"] {
            captured.extend(blog.visit(url).expect("a page").1.statements);
        }
    });
    // WordPress sends the first two by mysqli itself, when it connects, and the capture file the others: the last after
    // each write, such as that of a scheduled task which is due.
    let is_of_page = |text: &String| {
        !text.starts_with("SET ")
            && text != "SELECT @@SESSION.sql_mode"
            && !text.starts_with("SELECT @@sql_mode, ")
            && text != "SELECT @@last_gtid"
    };
    logged.retain(is_of_page);
    // The server removes blanks around a statement, and its client prints one line for each.
    let line =
        |text: &String| text.trim().replace('\\', "\\\\").replace('\n', "\\n").replace('\t', "\\t");
    let captured: Vec<String> = captured.iter().map(line).collect();
    let unlike = captured.iter().zip(&logged).find(|(captured, logged)| captured != logged);
    assert_eq!((captured.len(), unlike), (logged.len(), None));
    assert!(captured.len() > 50, "{captured:?}");
}

/// Runs the capture file with a simulated WordPress that sends `count` statements. Returns its output.
fn simulate(socket: &Path, count: u32) -> String {
    let dir = PrivateDir::temporary("capture-file").expect("can be made");
    let file = copy_capture(dir.path()).expect("can be copied");
    let code = format!(
        "error_reporting(E_ALL); require '{}'; final class WP_Hook {{ public $callbacks; }}
         $onQuery = $wp_filter['query'][PHP_INT_MAX]['pagewell']['function'];
         final class Answer {{
             public function fetch_row() {{ return ['', 'utf8mb4', 'blog', 'REPEATABLE-READ', '5']; }}
         }}
         final class Connection extends mysqli {{
             public $sent = 0;
             public function __construct() {{}}
             public function get_server_info(): string {{ return 'MariaDB'; }}
             public function get_connection_stats(): array {{ return ['com_query' => $this->sent]; }}
             #[ReturnTypeWillChange]
             public function query($text, $mode = 0) {{ return new Answer(); }}
         }}
         final class wpdb {{
             public $dbh, $last_error = '', $num_queries = 0;
             public function query($text) {{
                 ($GLOBALS['onQuery'])($text);
                 $this->dbh->sent++;
                 $this->num_queries++;
             }}
         }}
         $wpdb = new wpdb();
         $wpdb->dbh = new Connection();
         for ($number = 0; $number < {count}; $number++) {{ $wpdb->query(\"SELECT $number\"); }}
         $hook = new WP_Hook(); $hook->callbacks = $wp_filter['query']; $wp_filter['query'] = $hook;",
        file.display()
    );
    let mut command = Command::new(program(&["php"]).expect("PHP is installed"));
    command.args(["-d", "display_errors=1", "-r", &code]);
    command.env("PAGEWELL_CAPTURE", socket).env("PAGEWELL_CAPTURE_TOKEN", "7");
    let output = command.output().expect("PHP starts");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

#[test]
fn beyond_its_limits_a_capture_is_incomplete() {
    let dir = PrivateDir::temporary("capture").expect("can be made");
    let socket = CaptureSocket::open(dir.path()).expect("can be opened");
    assert_eq!(simulate(socket.path(), 10_000), "");
    let captured = socket.take("7").expect("a capture");
    assert_eq!((captured.statements.len(), captured.incomplete), (10_000, None));
    assert_eq!(simulate(socket.path(), 10_001), "");
    let captured = socket.take("7").expect("a capture");
    assert!(captured.statements.is_empty() && captured.incomplete.is_some(), "{captured:?}");
}

#[test]
fn without_a_listener_the_capture_file_is_silent() {
    let dir = PrivateDir::temporary("capture").expect("can be made");
    assert_eq!(simulate(&dir.path().join("none.sock"), 3), "");
}
