//! The lists of harmless statements, variables, functions and engines, compared with those of a real server.
//!
//! The server says what there is: its help tables, its system variables, its functions and engines. Everything that the
//! reader of statements accepts must be written down here as well, or must not change while other sessions write. A newer
//! server may have more; all of that is refused. Not here: how a statement is read.

use followed_database::sql::MariaDbConnection;
use footprint::schema::{SqlColumn, SqlSchema};
use footprint::{SqlMode, StatementReader, is_logged_engine};
use harness::{MariaDb, MariaDbOptions, PrivateDir, SqlProduct};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The beginnings of the statements that are accepted, `SHOW` apart.
const STATEMENTS: [&str; 20] = [
    "ALTER",
    "BEGIN",
    "COMMIT",
    "CREATE",
    "DELETE",
    "DESC",
    "DROP",
    "INSERT",
    "LOCK TABLES",
    "RELEASE SAVEPOINT",
    "RENAME",
    "REPLACE",
    "ROLLBACK",
    "SAVEPOINT",
    "SELECT",
    "SET",
    "START TRANSACTION",
    "TABLE",
    "TRUNCATE",
    "UNLOCK",
];
const MORE_STATEMENTS: [&str; 4] = ["UPDATE", "USE", "VALUES", "WITH"];
/// The `SHOW` statements that are accepted.
const SHOW: [&str; 3] = ["SHOW CHARACTER SET", "SHOW COLLATION", "SHOW COLUMNS"];
/// The engines that log each change of a row.
const ENGINES: [&str; 4] = ["InnoDB", "MyISAM", "Aria", "ARCHIVE"];
/// Its value is the number of rows of the query before, which is a statement of the same page.
const OF_THE_PAGE: [&str; 1] = ["FOUND_ROWS"];

struct Stage {
    server: MariaDb,
    one: MariaDbConnection,
    reader: StatementReader,
}

impl Stage {
    fn start() -> Stage {
        let dir = PrivateDir::temporary("lists").expect("a directory");
        let server = MariaDb::start_with(dir, MariaDbOptions::followed(&[])).expect("MariaDB");
        server.create_database("items", "writer", "secret").expect("a database");
        server
            .sql_in("items", "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, n INT)")
            .expect("a table");
        let one = MariaDbConnection::open(server.socket()).expect("a connection");
        let mut schema = SqlSchema::new("items");
        let key = SqlColumn::new("id", "int", None, "PRI");
        schema.add("t", vec![key, SqlColumn::new("n", "int", None, "")]);
        Stage { server, one, reader: StatementReader::new(Arc::new(schema)) }
    }

    fn accepts(&mut self, sql: &str) -> bool {
        self.reader.read(sql.as_bytes(), SqlMode::default()).is_ok()
    }

    /// The first column of a result.
    fn names(&self, sql: &str) -> Vec<String> {
        self.server.sql(sql).expect("a list").lines().map(str::to_owned).collect()
    }

    /// The topics of the server's manual.
    fn topics(&self) -> Vec<String> {
        let topics = self.names("SELECT name FROM mysql.help_topic");
        // The client escapes nothing, but the manual does.
        topics.into_iter().map(|name| name.replace('\\', "")).collect()
    }

    fn variables(&mut self) -> BTreeMap<String, String> {
        let mut all = BTreeMap::new();
        for scope in ["GLOBAL", "SESSION"] {
            let rows = self.one.rows(&format!("SHOW {scope} VARIABLES")).expect("variables");
            for row in 0..rows.rows.len() {
                let text = |column| rows.text(row, column).unwrap_or_default();
                all.insert(format!("{scope}.{}", text(0)), text(1));
            }
        }
        all
    }

    /// Writes rows, fails, warns, and begins and ends transactions, in this session and in another one.
    fn work(&mut self) {
        let statements = [
            "INSERT INTO t (n) VALUES (1), (2), (3)",
            "SELECT SQL_CALC_FOUND_ROWS n FROM t LIMIT 1",
            "UPDATE t SET n = n + 1",
            "SELECT 1 / 0, CAST('x' AS SIGNED)",
            "SELECT no_such_column FROM t",
            "SELECT LAST_INSERT_ID(17)",
            "START TRANSACTION",
            "DELETE FROM t WHERE id = 1",
            "COMMIT",
            "SELECT RAND()",
            "INSERT INTO t (n) VALUES ('x')",
        ];
        let mut other = MariaDbConnection::open(self.server.socket()).expect("a connection");
        for sql in statements {
            let _ = (self.one.rows(sql), other.rows(sql));
        }
        self.server.sql("FLUSH LOGS; FLUSH TABLES").expect("flushed");
    }
}

#[test]
fn each_statement_of_the_manual_is_on_the_list_or_refused() {
    let mut stage = Stage::start();
    let topics = stage.topics();
    let shows = topics.iter().filter(|name| name.starts_with("SHOW "));
    assert!(shows.count() > 30, "{topics:?}");
    let words = |name: &str| -> String {
        let is_word =
            |word: &&str| word.chars().all(|letter| letter.is_ascii_uppercase() || letter == '_');
        name.split(' ').take_while(is_word).collect::<Vec<_>>().join(" ")
    };
    for name in topics.iter().map(|name| words(name)).filter(|name| !name.is_empty()) {
        let texts = ["", " t", " FROM t", " LIKE 'a'", " FROM t FOR UPDATE"];
        let accepted = texts.iter().any(|rest| stage.accepts(&format!("{name}{rest}")));
        let is_listed = if name.starts_with("SHOW") {
            SHOW.contains(&name.as_str())
        } else {
            STATEMENTS.iter().chain(&MORE_STATEMENTS).any(|begin| name.starts_with(begin))
        };
        assert!(is_listed || !accepted, "{name} is accepted");
    }
}

#[test]
fn no_variable_that_changes_while_rows_are_written_is_a_setting() {
    let mut stage = Stage::start();
    let before = stage.variables();
    stage.work();
    let after = stage.variables();
    let (mut accepted, mut changed) = (0, 0);
    for (name, value) in &before {
        let is_changed = after.get(name) != Some(value);
        let is_accepted = stage.accepts(&format!("SELECT @@{name}"));
        assert!(!(is_changed && is_accepted), "{name} changes: {value}, {:?}", after.get(name));
        accepted += usize::from(is_accepted);
        changed += usize::from(is_changed);
    }
    assert!(accepted > 100 && accepted < before.len() && changed > 1, "{accepted}, {changed}");
    if stage.server.product() == SqlProduct::MariaDb {
        // A variable that a session cannot inherit from a setting is its state.
        let own = "SELECT VARIABLE_NAME FROM information_schema.SYSTEM_VARIABLES WHERE VARIABLE_SCOPE = 'SESSION ONLY'";
        for name in stage.names(own).iter().filter(|name| *name != "TIMESTAMP") {
            assert!(!stage.accepts(&format!("SELECT @@{name}")), "{name} is accepted");
        }
    }
}

#[test]
fn a_function_with_another_value_in_another_session_is_refused_or_noted() {
    let mut stage = Stage::start();
    let listed = match stage.server.product() {
        SqlProduct::MariaDb => {
            stage.names("SELECT `FUNCTION` FROM information_schema.SQL_FUNCTIONS")
        }
        SqlProduct::MySql => stage.topics(),
    };
    let is_name =
        |name: &&String| name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    let names: Vec<String> = listed.into_iter().filter(|name| is_name(&name)).collect();
    assert!(names.len() > 150, "{names:?}");
    stage.work();
    let mut fresh = MariaDbConnection::open(stage.server.socket()).expect("a connection");
    let arguments =
        ["", "1", "'2026-01-02'", "'a,b'", "1, 2", "'x', 'y'", "'a', 1, 2", "'{\"a\":1}', '$.a'"];
    let (mut accepted, mut compared) = (0, 0);
    for name in names.iter().filter(|name| !OF_THE_PAGE.contains(&name.as_str())) {
        for arguments in arguments {
            let sql = format!("SELECT {name}({arguments})");
            let Ok(reads) = stage.reader.read(sql.as_bytes(), SqlMode::default()) else { continue };
            accepted += 1;
            if reads.uses_clock() || reads.is_random() {
                continue;
            }
            if let (Ok(one), Ok(other)) = (stage.one.rows(&sql), fresh.rows(&sql)) {
                assert_eq!(one.rows, other.rows, "{sql}");
                compared += 1;
            }
        }
    }
    assert!(accepted > 100 && compared > 100, "{accepted}, {compared}");
}

#[test]
fn each_engine_of_the_server_is_on_the_list_or_refused() {
    let stage = Stage::start();
    let engines = stage.names("SELECT ENGINE FROM information_schema.ENGINES");
    assert!(engines.len() > 4, "{engines:?}");
    for engine in engines {
        let is_listed = ENGINES.contains(&engine.as_str());
        assert_eq!(is_logged_engine(&engine), is_listed, "{engine}");
    }
}
