//! Tests of the literals in PHP files: what is a value, what is not, and files that PHP could not read.

use super::*;

const WORDPRESS: &str = r#"<?php
/* define('DB_NAME', 'old'); */
# define('DB_NAME', 'older');
// define('DB_NAME', 'oldest'); ?><?php
define( 'DB_NAME', 'blog' );
if ( ! defined( 'DB_USER' ) ) { DEFINE("DB_USER", "it's"); }
define('DB_HOST', getenv('DB_HOST') ?: 'localhost');
define('DB_PASSWORD', 'secret' . 'er');
const WP_HOME = 'https://blog.example';
define('NOTE', <<<'END'
  define('DB_NAME', 'in a text');
  END);
$table_prefix = 'wp\'_';
$two = 'a'; $two = 'b';
$same = 1; $same = 1;
$more = 'a'; $more .= 'b';
$mixed = "x{$two}";
$x == 'no';
"#;

#[test]
fn constants_and_variables_are_read_where_they_are_literals() {
    let source = PhpSource::read(WORDPRESS);
    assert_eq!(source.unfinished(), None);
    let is = |text: &str| Setting::Is(text.to_owned());
    assert_eq!(source.constant("DB_NAME"), is("blog"));
    assert_eq!(source.constant("DB_USER"), is("it's"));
    assert_eq!(source.constant("WP_HOME"), is("https://blog.example"));
    assert_eq!(source.variable("table_prefix"), is("wp'_"));
    assert_eq!(source.variable("same"), is("1"));
    for unknown in
        [source.constant("DB_HOST"), source.constant("DB_PASSWORD"), source.constant("NOTE")]
    {
        assert_eq!(unknown, Setting::Unknown);
    }
    for unknown in ["two", "more", "mixed"] {
        assert_eq!(source.variable(unknown), Setting::Unknown, "{unknown}");
    }
    for missing in ["x", "table"] {
        assert_eq!(source.variable(missing), Setting::Missing, "{missing}");
    }
}

#[test]
fn arrays_are_read() {
    let source = PhpSource::read(
        "<?php return array('db' => ['table_prefix' => '', 'connection' => ['default' => [
            'host' => 'localhost', 'dbname' => \"shop\", 'active' => true, 'port' => 3306, 'user' => env('U'),
            'list' => ['a', 'b',], PDO::ATTR_ERRMODE => 2 ]]], 'last' => 'x');",
    );
    let all = source.returned();
    let at = |name: &str| all.setting(&["db", "connection", "default", name]);
    assert_eq!(at("dbname"), Setting::Is("shop".into()));
    assert_eq!(at("port"), Setting::Is("3306".into()));
    assert_eq!(
        (at("user"), at("list"), at("none")),
        (Setting::Unknown, Setting::Unknown, Setting::Missing)
    );
    assert_eq!(all.setting(&["db", "table_prefix"]), Setting::Is(String::new()));
    assert_eq!(all.setting(&["last"]), Setting::Is("x".into()));
    let drupal = PhpSource::read(
        "<?php $databases['default']['default'] = array('database' => 'd'); $databases['x']['y']['z'] = 'w';",
    );
    let found = drupal.assignments("databases");
    assert_eq!(found[0].0, ["default", "default"]);
    assert_eq!(found[0].1.setting(&["database"]), Setting::Is("d".into()));
    assert_eq!(found[1], (vec!["x".into(), "y".into(), "z".into()], PhpValue::Text("w".into())));
}

#[test]
fn a_file_that_php_cannot_read_is_named_by_its_line() {
    for (text, line) in [
        ("<?php\n\ndefine('DB_NAME', 'blog);\n$x = 1;", 3),
        ("<?php /* no end", 1),
        ("<?php\n$a = <<<EOT\nx\n", 2),
        ("<?php \"\\", 1),
    ] {
        assert_eq!(PhpSource::read(text).unfinished(), Some(line), "{text}");
    }
}

#[test]
fn no_text_is_too_strange() {
    let deep = format!("<?php $a = {}", "[".repeat(100_000));
    let texts = [
        &deep,
        "",
        "<?",
        "<?php",
        "<?php $",
        "<?php define('A',",
        "<?php $a = ",
        "<?php <<<",
        "é<?php é='ß'",
    ];
    for text in texts {
        let source = PhpSource::read(text);
        let _ = (
            source.constant("A"),
            source.variable("a"),
            source.returned(),
            source.assignments("a"),
        );
    }
    assert_eq!(PhpSource::read(&deep).variable("a"), Setting::Unknown);
}
