//! The state of a connection that changes the meaning of a text: `sql_mode`, the character set, the schema.
//!
//! | text | effect |
//! |---|---|
//! | `SET` of `sql_mode`, `NAMES` or a character set to a constant | known |
//! | the same with an expression | unknown |
//! | `USE`, and the command of the same purpose | another schema |
//! | `READ UNCOMMITTED`, or an isolation level that is not a constant | unknown: rows are read that may never be committed |
//! | several statements in one text, `CALL`, `PREPARE`, a temporary table, … | unknown |
//! | a query, a write, a transaction | none |
//!
//! An effect counts when the server has reported success. Once unknown, the state stays unknown until the
//! client resets the connection. Not here: what the statements read.

use crate::text::{SqlPart, split};

/// `SERVER_STATUS_NO_BACKSLASH_ESCAPES`
const STATUS_PLAIN_BACKSLASHES: u16 = 0x0200;
/// `SERVER_STATUS_ANSI_QUOTES` of MariaDB.
const STATUS_ANSI_QUOTES: u16 = 0x8000;

/// The reason for a session that may read rows before they are committed.
const DIRTY_READS: &str = "the connection may read rows that are not committed (READ UNCOMMITTED)";

/// The parts of a session that change how a text is split, or what it means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SessionMode {
    /// `ANSI_QUOTES`: text in double quotes is a name.
    pub has_ansi_quotes: bool,
    /// `NO_BACKSLASH_ESCAPES`: a backslash in a text is an ordinary character.
    pub has_plain_backslashes: bool,
    /// `HIGH_NOT_PRECEDENCE` or `PAD_CHAR_TO_FULL_LENGTH`: expressions mean something else.
    pub has_other_meanings: bool,
    /// The character set of the connection.
    pub charset: SessionCharset,
}

/// The character set of a connection, as far as it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SessionCharset {
    /// UTF-8.
    Utf8,
    /// `binary`: each byte is a character.
    Binary,
    /// Another one, which may be any.
    Other,
}

impl Default for SessionMode {
    fn default() -> SessionMode {
        SessionMode {
            has_ansi_quotes: false,
            has_plain_backslashes: false,
            has_other_meanings: false,
            charset: SessionCharset::Utf8,
        }
    }
}

/// The changes of a session that a command causes if the server reports success.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionEffect {
    sql_mode: Option<SqlModeValue>,
    charset: Option<SessionCharset>,
    schema: Option<Box<[u8]>>,
    unknown: Option<&'static str>,
    /// Whether the text is a single `SET` or `USE` without a query or a function.
    is_setting: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SqlModeValue {
    /// As at the start of the session.
    Default,
    Flags {
        ansi_quotes: bool,
        plain_backslashes: bool,
        other_meanings: bool,
    },
}

/// The state of a session.
#[derive(Debug, Clone, Default)]
pub struct SqlSession {
    mode: SessionMode,
    /// The mode at the start of the session.
    initial: SessionMode,
    schema: Box<[u8]>,
    unknown: Option<&'static str>,
}

impl SqlSession {
    /// Begins a session with the collation number and the schema of the login, which may be empty.
    pub fn begin(&mut self, collation: u16, schema: &[u8]) {
        self.initial.charset = collation_charset(collation);
        self.schema = schema.into();
        self.reset();
    }

    /// Restores the state of the start, except the schema (COM_RESET_CONNECTION).
    pub fn reset(&mut self) {
        (self.mode, self.unknown) = (self.initial, None);
    }

    /// The mode for the next text.
    pub fn mode(&self) -> SessionMode {
        self.mode
    }

    /// The schema that names without one belong to; empty if there is none.
    pub fn schema(&self) -> &[u8] {
        &self.schema
    }

    /// Why the state is unknown.
    pub fn unknown(&self) -> Option<&'static str> {
        self.unknown
    }

    /// Applies an effect after the server has reported success.
    pub fn apply(&mut self, effect: SessionEffect) {
        let (mode, initial) = (&mut self.mode, self.initial);
        let (quotes, backslashes, other) = match effect.sql_mode {
            None => (mode.has_ansi_quotes, mode.has_plain_backslashes, mode.has_other_meanings),
            Some(SqlModeValue::Default) => {
                (initial.has_ansi_quotes, initial.has_plain_backslashes, initial.has_other_meanings)
            }
            Some(SqlModeValue::Flags { ansi_quotes, plain_backslashes, other_meanings }) => {
                (ansi_quotes, plain_backslashes, other_meanings)
            }
        };
        *mode = SessionMode {
            has_ansi_quotes: quotes,
            has_plain_backslashes: backslashes,
            has_other_meanings: other,
            charset: effect.charset.unwrap_or(mode.charset),
        };
        if let Some(schema) = effect.schema {
            self.schema = schema;
        }
        self.unknown = self.unknown.or(effect.unknown);
    }

    /// Applies an effect after the server has reported an error. A part of it may count.
    pub fn apply_failed(&mut self, effect: &SessionEffect) {
        let is_part = effect.sql_mode.is_some() || effect.charset.is_some();
        let unknown = is_part.then_some("a SET of sql_mode or of the character set failed");
        self.unknown = self.unknown.or(effect.unknown).or(unknown);
    }

    /// Compares the mode with the status flags of a response. `is_start` says that the session begins.
    pub fn compare(&mut self, status: u16, moment: StatusMoment) {
        let (quotes, backslashes) =
            (status & STATUS_ANSI_QUOTES != 0, status & STATUS_PLAIN_BACKSLASHES != 0);
        self.mode.has_plain_backslashes = backslashes;
        // Only MariaDB has this flag.
        self.mode.has_ansi_quotes |= quotes;
        if moment == StatusMoment::Start {
            self.initial = self.mode;
        }
    }
}

/// The moment at which a server has reported its status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StatusMoment {
    /// The session begins.
    Start,
    /// The session has begun before.
    Later,
}

impl SessionEffect {
    /// The effect of a change to another schema.
    pub fn schema(name: &[u8]) -> SessionEffect {
        SessionEffect { schema: Some(name.into()), ..SessionEffect::default() }
    }

    /// An effect that is not known.
    pub fn unknown(reason: &'static str) -> SessionEffect {
        SessionEffect { unknown: Some(reason), ..SessionEffect::default() }
    }

    /// Whether the text only sets the session, and the effect is known: it reads no rows.
    pub fn is_plain_setting(&self) -> bool {
        self.is_setting && self.unknown.is_none()
    }

    /// Why the effect is not known.
    pub fn unknown_reason(&self) -> Option<&'static str> {
        self.unknown
    }

    /// The effect of a text.
    pub fn of_text(text: &[u8], mode: SessionMode) -> SessionEffect {
        let Ok(mut parts) = split(text, mode) else {
            return SessionEffect::unknown("a text could not be split into its parts");
        };
        while parts.last() == Some(&SqlPart::Mark(b';')) {
            parts.pop();
        }
        if parts.contains(&SqlPart::Mark(b';')) {
            return SessionEffect::unknown("several statements were sent in one text");
        }
        of_statement(&parts)
    }

    /// The effect of the beginning of a text that is too long to be seen whole.
    pub fn of_long_text() -> SessionEffect {
        SessionEffect::unknown("a statement of more than 1 MB was sent")
    }
}

fn of_statement(parts: &[SqlPart<'_>]) -> SessionEffect {
    const WITHOUT: [&str; 36] = [
        "SELECT",
        "WITH",
        "VALUES",
        "TABLE",
        "SHOW",
        "DESCRIBE",
        "DESC",
        "EXPLAIN",
        "INSERT",
        "UPDATE",
        "DELETE",
        "REPLACE",
        "START",
        "COMMIT",
        "ROLLBACK",
        "SAVEPOINT",
        "RELEASE",
        "LOCK",
        "UNLOCK",
        "TRUNCATE",
        "CREATE",
        "ALTER",
        "DROP",
        "RENAME",
        "ANALYZE",
        "OPTIMIZE",
        "CHECK",
        "REPAIR",
        "FLUSH",
        "KILL",
        "DO",
        "LOAD",
        "XA",
        "GRANT",
        "REVOKE",
        "BEGIN",
    ];
    let Some(first) = parts.iter().find(|part| **part != SqlPart::Mark(b'(')) else {
        return SessionEffect::default();
    };
    let is_temporary = parts.iter().take(4).any(|part| part.is("TEMPORARY"));
    if let [set, statement, rest @ ..] = parts
        && set.is("SET")
        && statement.is("STATEMENT")
    {
        return of_set_for_statement(rest);
    }
    if first.is("SET") {
        return SessionEffect { is_setting: is_plain(parts), ..of_set(&parts[1..]) };
    }
    if first.is("USE") {
        let effect = match parts {
            [_, SqlPart::Word(name)] => SessionEffect::schema(name),
            [_, SqlPart::Name(name)] if !name.contains(&b'`') => SessionEffect::schema(name),
            _ => SessionEffect::unknown("a USE could not be read"),
        };
        return SessionEffect { is_setting: true, ..effect };
    }
    if first.is("CREATE") && is_temporary {
        return SessionEffect::unknown("the connection has a temporary table");
    }
    let is_block = first.is("BEGIN") && parts.len() > 2;
    if WITHOUT.iter().any(|word| first.is(word)) && !is_block {
        return SessionEffect::default();
    }
    SessionEffect::unknown("a statement may have changed the state of the session, such as CALL")
}

/// Whether the values of a `SET` are constants and variables. One in parentheses may be a query, or what a function has
/// read.
fn is_plain(parts: &[SqlPart<'_>]) -> bool {
    !parts.contains(&SqlPart::Mark(b'('))
}

/// The effect of `SET STATEMENT … FOR …` (MariaDB): settings for one statement, which follows.
fn of_set_for_statement(parts: &[SqlPart<'_>]) -> SessionEffect {
    let Some(at) = parts.iter().position(|part| part.is("FOR")) else {
        return SessionEffect::unknown("a SET STATEMENT could not be read");
    };
    let settings = of_set(&parts[..at]);
    if settings != SessionEffect::default() {
        return SessionEffect::unknown("SET STATEMENT changed sql_mode or the character set");
    }
    of_statement(&parts[at + 1..])
}

/// The effect of the assignments after `SET`.
fn of_set(parts: &[SqlPart<'_>]) -> SessionEffect {
    let mut effect = SessionEffect::default();
    if parts.contains(&SqlPart::Executable) {
        return SessionEffect::unknown("a SET has a comment that some servers execute");
    }
    // Of the session, of the next transaction, or of all later sessions.
    if parts.iter().any(|part| part.is("UNCOMMITTED")) {
        return SessionEffect::unknown(DIRTY_READS);
    }
    let mut depth = 0_usize;
    let is_end = |part: &SqlPart<'_>| {
        match part {
            SqlPart::Mark(b'(') => depth += 1,
            SqlPart::Mark(b')') => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && *part == SqlPart::Mark(b',')
    };
    for assignment in parts.split(is_end) {
        assign(&mut effect, assignment);
    }
    effect
}

fn assign(effect: &mut SessionEffect, assignment: &[SqlPart<'_>]) {
    match assignment {
        [first, value, ..] if first.is("NAMES") => effect.charset = Some(charset(value)),
        [first, value] if first.is("CHARSET") => effect.charset = Some(charset(value)),
        [first, second, value] if first.is("CHARACTER") && second.is("SET") => {
            effect.charset = Some(charset(value));
        }
        [first, ..] if ["TRANSACTION", "PASSWORD", "ROLE"].iter().any(|word| first.is(word)) => {}
        [.., last] => {
            let equals = assignment.iter().position(|part| *part == SqlPart::Mark(b'='));
            let is_global = assignment
                .iter()
                .any(|part| ["GLOBAL", "@@GLOBAL", "PERSIST"].iter().any(|word| part.is(word)));
            let Some(equals) = equals else {
                // `READ ONLY` after a comma, and everything that is no assignment.
                return;
            };
            let before = assignment[..equals].iter();
            let name = before.rev().find_map(|part| match part {
                SqlPart::Word(name) | SqlPart::Name(name) => Some(name.to_ascii_lowercase()),
                _ => None,
            });
            let name = name.unwrap_or_default();
            let value = if equals + 2 == assignment.len() { Some(last) } else { None };
            let name = name.strip_prefix(b"@@").unwrap_or(&name);
            if matches!(name, b"tx_isolation" | b"transaction_isolation")
                && !value.is_some_and(is_committed)
            {
                effect.unknown = Some(DIRTY_READS);
            }
            if is_global {
                return;
            }
            match name {
                b"sql_mode" => match value.and_then(sql_mode) {
                    Some(mode) => effect.sql_mode = Some(mode),
                    None => effect.unknown = Some("sql_mode was set to an expression"),
                },
                b"character_set_client" => {
                    effect.charset = Some(value.map_or(SessionCharset::Other, charset));
                }
                b"sql_auto_is_null" if !value.is_some_and(is_off) => {
                    effect.unknown = Some("sql_auto_is_null was set");
                }
                _ => {}
            }
        }
        [] => {}
    }
}

/// Whether a value of the isolation level is one in which a session reads committed rows only.
fn is_committed(value: &SqlPart<'_>) -> bool {
    let SqlPart::Text(text) = value else { return false };
    ["READ-COMMITTED", "REPEATABLE-READ", "SERIALIZABLE"]
        .iter()
        .any(|level| text.eq_ignore_ascii_case(level.as_bytes()))
}

fn is_off(value: &SqlPart<'_>) -> bool {
    value.is("0") || value.is("OFF") || value.is("FALSE")
}

/// The value of `sql_mode`; `None` if it is not known.
fn sql_mode(value: &SqlPart<'_>) -> Option<SqlModeValue> {
    let text = match value {
        SqlPart::Text(text) => *text,
        SqlPart::Word(b"0") => b"",
        word if word.is("DEFAULT") => return Some(SqlModeValue::Default),
        SqlPart::Word(word)
            if word.iter().all(|byte| byte.is_ascii_alphabetic() || *byte == b'_') =>
        {
            word
        }
        _ => return None,
    };
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b',' | b' ');
    if !text.iter().all(is_plain) {
        return None;
    }
    let has = |names: &[&str]| {
        text.split(|byte| *byte == b',').any(|flag| {
            names.iter().any(|name| flag.trim_ascii().eq_ignore_ascii_case(name.as_bytes()))
        })
    };
    Some(SqlModeValue::Flags {
        ansi_quotes: has(&["ANSI_QUOTES", "ANSI", "DB2", "MAXDB", "MSSQL", "ORACLE", "POSTGRESQL"]),
        plain_backslashes: has(&["NO_BACKSLASH_ESCAPES"]),
        other_meanings: has(&[
            "HIGH_NOT_PRECEDENCE",
            "MYSQL323",
            "MYSQL40",
            "PAD_CHAR_TO_FULL_LENGTH",
        ]),
    })
}

/// The character set that a value names.
fn charset(value: &SqlPart<'_>) -> SessionCharset {
    let (SqlPart::Word(name) | SqlPart::Text(name) | SqlPart::Name(name)) = value else {
        return SessionCharset::Other;
    };
    match name.to_ascii_lowercase().as_slice() {
        b"utf8" | b"utf8mb3" | b"utf8mb4" => SessionCharset::Utf8,
        b"binary" => SessionCharset::Binary,
        _ => SessionCharset::Other,
    }
}

/// The character set of a login's collation. Numbers from `information_schema.COLLATIONS` of MariaDB 10.11 and
/// MySQL 8.0, those below 324.
fn collation_charset(number: u16) -> SessionCharset {
    match number {
        33 | 45 | 46 | 76 | 83 | 192..=215 | 223..=247 | 255..=323 => SessionCharset::Utf8,
        63 => SessionCharset::Binary,
        _ => SessionCharset::Other,
    }
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;
