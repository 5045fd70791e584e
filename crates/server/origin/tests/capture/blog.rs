//! Pages of a real WordPress with a real MariaDB: complete, and incomplete for each way around `$wpdb`.

use super::{CaptureUse, PhpSite};
use capture::{NotCaptured, OptionNames};
use footprint::OwnTransaction;
use harness::{SqlProduct, WordPress, root};
use http::StatusCode;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt;

/// A plugin that is always loaded. It runs the code that `code.php` has at the moment.
const PLUGIN: &str = "<?php if (is_file(__DIR__ . '/code.txt')) { add_action('wp', function () {
    global $wpdb; eval(file_get_contents(__DIR__ . '/code.txt')); }); }";

async fn start() -> (WordPress, PhpSite) {
    let repository = root::repository();
    let script = repository.join("tests/footprints/site/fill.php");
    let blog = WordPress::start_plain(&repository, &script, &[("WP_WIDGETS", "1")])
        .expect("WordPress starts");
    write(&blog, "plugin.php", PLUGIN);
    let mut env = String::new();
    for (name, value) in blog.env() {
        let _ = writeln!(env, "env.{name} = {value:?}");
    }
    let site = PhpSite::start(&blog.root(), &env, CaptureUse::On).await;
    (blog, site)
}

fn write(blog: &WordPress, name: &str, content: &str) {
    let path = blog.root().join("wp-content/mu-plugins").join(name);
    fs::write(&path, content).expect("can be written");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("can be read");
}

/// Statements that are one command each.
fn commands(product: SqlProduct) -> Vec<&'static str> {
    let (values, block) = match product {
        SqlProduct::MariaDb => ("VALUES (1), (2)", "BEGIN NOT ATOMIC SELECT 1; END"),
        SqlProduct::MySql => ("VALUES ROW(1), ROW(2)", "DO 1"),
    };
    vec![
        "SELECT 1",
        "  ( SELECT 1 ) UNION (SELECT 2)",
        "/* a */ -- b\\n# c\\nSELECT ID FROM wp_posts LIMIT 1",
        "WITH a AS (SELECT 1) SELECT * FROM a",
        values,
        "SHOW TABLES",
        "DESCRIBE wp_posts",
        "INSERT INTO wp_options (option_name, option_value) SELECT UUID(), 1",
        "UPDATE wp_options SET option_value = (SELECT 1) WHERE option_name = 'none'",
        "INSERT INTO nosuch VALUES (1)",
        "SET @a = (SELECT 1)",
        "EXPLAIN SELECT 1",
        block,
        "/*!50000 SELECT 1 */",
    ]
}

#[tokio::test]
async fn the_list_of_a_page_is_complete_unless_a_plugin_reads_around_it() {
    let (blog, site) = start().await;
    // The first page of a new blog writes options, and then counts as using all of them.
    site.send("index.php", "/", None).await.expect("a response");
    for target in ["/", "/2023/08/post-300/", "/?s=lantern", "/no-such-page/", "/feed/"] {
        let (response, got) = site.capture("index.php", target).await;
        let (got, (status, content)) = (got.expect(target), response.expect(target));
        assert_ne!(status, StatusCode::INTERNAL_SERVER_ERROR);
        assert!(!content.is_empty() && got.statements.len() > 5, "{target}: {got:?}");
        assert!(
            matches!(&got.options, OptionNames::Complete(names) if names.len() > 20),
            "{got:?}"
        );
    }
    // Each is one command to the server, as PHP assumes: none makes a complete list incomplete.
    for sql in commands(blog.database().product()) {
        write(&blog, "code.txt", &format!("$wpdb->suppress_errors(); $wpdb->query(\"{sql}\");"));
        let got = site.capture("index.php", "/").await.1;
        let got = got.unwrap_or_else(|error| panic!("{sql}: {error}"));
        let text = sql.replace("\\n", "\n");
        assert!(got.statements.iter().any(|seen| **seen == *text.as_bytes()), "{sql}");
    }
    let direct = "mysqli_query($wpdb->dbh, 'SELECT 1');";
    for (code, wanted) in [
        (direct, "1 statements did not pass through $wpdb->query()"),
        (
            "$wpdb->dbh->query('(SELECT 1)'); $s = $wpdb->dbh->prepare('SELECT 2'); $s->execute();",
            "2 statements",
        ),
        ("wp_using_ext_object_cache(true);", "object-cache.php"),
        ("$wpdb->suppress_errors(); $wpdb->query('SELECT FROM');", "a statement of $wpdb failed"),
        (
            "$wpdb->suppress_errors(); $wpdb->query('SELECT FROM'); mysqli_query($wpdb->dbh, 'SELECT 1');",
            "a statement of $wpdb failed",
        ),
        ("mysqli_query($wpdb->dbh, 'SHOW TABLES');", "1 statements"),
        (
            "(new wpdb(DB_USER, DB_PASSWORD, DB_NAME, DB_HOST))->query('SELECT 1');",
            "another object",
        ),
        ("$wpdb->close(); $wpdb->db_connect();", "another connection"),
        ("remove_all_filters('query');", "removed the filter"),
    ] {
        write(&blog, "code.txt", code);
        match site.capture("index.php", "/").await.1 {
            Err(NotCaptured::Incomplete(reason) | NotCaptured::Hidden(reason)) => {
                assert!(reason.contains(wanted), "{reason}");
            }
            other => panic!("{code}: {other:?}"),
        }
    }
    the_state_of_wpdb_is_the_same(&blog, &site).await;
    own_transactions_are_known(&blog, &site).await;
    options_are_known_unless_a_plugin_takes_all(&blog, &site).await;
    site.php.stop().await;
}

/// A plugin sees the same state of `$wpdb` and of its connection with a capture and without.
async fn the_state_of_wpdb_is_the_same(blog: &WordPress, site: &PhpSite) {
    let code = "add_action('shutdown', function () { global $wpdb; echo 'STATE ', json_encode([
        $wpdb->num_queries, $wpdb->last_query, $wpdb->last_error, $wpdb->queries ?? null, $wpdb->insert_id,
        $wpdb->rows_affected, mysqli_errno($wpdb->dbh), error_get_last()]); });";
    write(blog, "code.txt", code);
    let state = |response: Option<(StatusCode, String)>| {
        let (_, content) = response.expect("a response");
        content.split_once("STATE ").expect("a state").1.to_owned()
    };
    let plain = state(site.send("index.php", "/", None).await);
    let (response, got) = site.capture("index.php", "/").await;
    assert_eq!(state(response), plain);
    assert!(got.is_ok(), "{got:?}");
}

/// MariaDB names the transaction of a write, unless the next statement asks for the number of its rows.
async fn own_transactions_are_known(blog: &WordPress, site: &PhpSite) {
    let write_one =
        "UPDATE wp_options SET option_value = UUID() WHERE option_name = 'blogdescription'";
    let read = "SELECT option_value FROM wp_options WHERE option_name = 'blogdescription'";
    for (last, is_named) in [(read, true), ("SELECT ROW_COUNT()", false)] {
        let code = format!("$wpdb->query(\"{write_one}\"); $wpdb->query(\"{last}\");");
        write(blog, "code.txt", &code);
        let got = site.capture("index.php", "/").await.1.expect("complete");
        let is_between = |own: &&OwnTransaction| {
            let texts = got.statements.get(own.after.saturating_sub(1)..);
            let mut texts = texts.into_iter().flatten().map(|text| &**text);
            texts.next() == Some(write_one.as_bytes()) && texts.next() == Some(last.as_bytes())
        };
        let found = got.transactions.iter().find(is_between);
        let is_mariadb = blog.database().product() == SqlProduct::MariaDb;
        assert_eq!(found.is_some(), is_named && is_mariadb, "{last}: {:?}", got.transactions);
        assert!(found.is_none_or(|own| own.id.split('-').count() == 3), "{found:?}");
    }
}

/// The names of options are complete, unless a plugin loads all of them: also right after a `get_option` that did
/// not load them, because a filter answered, or because the option is known to be absent.
async fn options_are_known_unless_a_plugin_takes_all(blog: &WordPress, site: &PhpSite) {
    let absent = "get_option('nosuch'); get_option('nosuch');";
    let filtered = "add_filter('pre_option_nosuch', fn () => 'x'); get_option('nosuch');";
    let stored =
        "set_transient('nosuch', 1); get_transient('nosuch'); update_option('other', uniqid());";
    for code in [absent, filtered, stored] {
        write(blog, "code.txt", code);
        let got = site.capture("index.php", "/").await.1.expect(code);
        let OptionNames::Complete(names) = got.options else { panic!("{code}") };
        assert!(names.iter().any(|name| name.ends_with(b"nosuch")), "{code}");
        write(blog, "code.txt", &format!("{code} wp_load_alloptions();"));
        let got = site.capture("index.php", "/").await.1.expect(code);
        assert_eq!(got.options, OptionNames::Unknown, "{code}");
    }
}
