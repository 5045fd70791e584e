//! Texts and their effects on the session.

use super::*;

fn after(texts: &[&str]) -> SqlSession {
    let mut session = SqlSession::default();
    session.begin(45, b"shop");
    for text in texts {
        let effect = SessionEffect::of_text(text.as_bytes(), session.mode());
        session.apply(effect);
    }
    session
}

#[test]
fn plain_settings_are_known() {
    for text in [
        "SET NAMES utf8mb4",
        "set names 'utf8'",
        "SET NAMES `utf8mb4` COLLATE utf8mb4_unicode_ci;",
        "SET sql_mode = ''",
        "SET SESSION sql_mode='NO_ENGINE_SUBSTITUTION, STRICT_TRANS_TABLES'",
        "SET group_concat_max_len = 262144, `sql_mode` = ''",
        "SET @@SESSION.sql_mode := 'TRADITIONAL'",
        "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED, READ ONLY",
        "SET @a = (SELECT CONCAT('x', 'y')), autocommit = 0",
        "SET SESSION transaction_isolation = 'READ-COMMITTED'",
        "SET @@tx_isolation = 'serializable'",
        "SET GLOBAL sql_mode = 'ANSI'",
        "SELECT 1 -- ; CALL p()",
        "(SELECT 1)",
        "SET STATEMENT max_statement_time = 1 FOR SELECT 1",
        "BEGIN",
        "START TRANSACTION",
        "INSERT INTO a VALUES ('SET sql_mode = x;')",
        "",
    ] {
        let session = after(&[text]);
        assert_eq!((session.mode(), session.unknown()), (SessionMode::default(), None), "{text}");
    }
}

#[test]
fn modes_are_followed() {
    let plain = SessionMode::default();
    for (text, mode) in [
        ("SET sql_mode = 'ANSI_QUOTES'", SessionMode { has_ansi_quotes: true, ..plain }),
        ("SET SESSION sql_mode = ANSI", SessionMode { has_ansi_quotes: true, ..plain }),
        ("SET sql_mode='high_not_precedence'", SessionMode { has_other_meanings: true, ..plain }),
        (
            "SET @@sql_mode=\"NO_BACKSLASH_ESCAPES\"",
            SessionMode { has_plain_backslashes: true, ..plain },
        ),
        ("SET NAMES gbk", SessionMode { charset: SessionCharset::Other, ..plain }),
        ("SET CHARACTER SET latin1", SessionMode { charset: SessionCharset::Other, ..plain }),
        ("SET NAMES 'binary'", SessionMode { charset: SessionCharset::Binary, ..plain }),
        (
            "SET character_set_client = @old",
            SessionMode { charset: SessionCharset::Other, ..plain },
        ),
    ] {
        let session = after(&[text]);
        assert_eq!((session.mode(), session.unknown()), (mode, None), "{text}");
        assert_eq!(after(&[text, "SET sql_mode = DEFAULT, NAMES utf8"]).mode(), plain, "{text}");
    }
}

#[test]
fn unsupported_settings_make_the_state_unknown() {
    for text in [
        "SET sql_mode = CONCAT(@@sql_mode, ',ANSI')",
        "SET SESSION sql_mode = @old",
        "SET sql_mode = 4",
        "SET sql_auto_is_null = 1",
        "SET STATEMENT sql_mode = 'ANSI' FOR SELECT 1",
        "SET STATEMENT max_statement_time = 1 FOR CALL p()",
        "SET STATEMENT a = 1",
        "/*!40101 SET NAMES utf8 */",
        "SET /*!40101 sql_mode = 'ANSI' */",
        "SELECT 1; SET sql_mode = 'ANSI'",
        "CALL p()",
        "EXECUTE s",
        "PREPARE s FROM 'SET sql_mode = ANSI'",
        "BEGIN NOT ATOMIC SELECT 1",
        "CREATE TEMPORARY TABLE a (b int)",
        "CREATE OR REPLACE TEMPORARY TABLE a (b int)",
        "SELECT 'a",
        "USE a b",
    ] {
        let session = after(&[text, "SELECT 1"]);
        assert!(session.unknown().is_some(), "{text}");
    }
    let mut session = after(&["CALL p()", "USE `other`"]);
    session.reset();
    assert_eq!((session.unknown(), session.schema()), (None, &b"other"[..]));
    session.apply_failed(&SessionEffect::of_text(b"SET sql_mode = 'ANSI'", session.mode()));
    assert!(session.unknown().is_some());
}

/// A row that another session has written, and may roll back, is in no event of the database.
#[test]
fn sessions_that_read_uncommitted_rows_are_unknown() {
    for text in [
        "SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED",
        "SET TRANSACTION READ ONLY, ISOLATION LEVEL READ UNCOMMITTED",
        "set local transaction isolation level read uncommitted",
        "SET GLOBAL TRANSACTION ISOLATION LEVEL READ UNCOMMITTED",
        "SET tx_isolation = 'READ-UNCOMMITTED'",
        "SET autocommit = 1, @@session.transaction_isolation = 'read-uncommitted'",
        "SET @@GLOBAL.tx_isolation = 'READ-UNCOMMITTED'",
        "SET tx_isolation = 0",
        "SET tx_isolation = DEFAULT",
        "SET tx_isolation = @old",
        "SET STATEMENT tx_isolation = 'READ-UNCOMMITTED' FOR SELECT 1",
    ] {
        assert!(after(&[text, "SELECT 1", "COMMIT"]).unknown().is_some(), "{text}");
    }
}

/// A setting may take its value from rows: then its text is read as that of a query.
#[test]
fn a_setting_with_a_query_or_a_function_is_no_plain_setting() {
    let is_plain = |text: &str| {
        SessionEffect::of_text(text.as_bytes(), SessionMode::default()).is_plain_setting()
    };
    assert!(is_plain("SET time_zone = '+00:00', @a = 1") && is_plain("USE shop"));
    for text in [
        "SET time_zone = (SELECT value FROM setting WHERE name = 'zone')",
        "SET @a = (SELECT 1)",
        "SET @a = zone()",
        "SELECT 1",
    ] {
        assert!(!is_plain(text), "{text}");
    }
}

#[test]
fn the_status_of_the_server_counts() {
    let mut session = after(&[]);
    session.compare(STATUS_ANSI_QUOTES | STATUS_PLAIN_BACKSLASHES, StatusMoment::Start);
    session.apply(SessionEffect::of_text(b"SET sql_mode = ''", session.mode()));
    session.compare(0, StatusMoment::Later);
    assert_eq!(session.mode(), SessionMode::default());
    session.apply(SessionEffect::of_text(b"SET sql_mode = DEFAULT", session.mode()));
    assert!(session.mode().has_ansi_quotes && session.mode().has_plain_backslashes);
}
