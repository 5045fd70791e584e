//! Statements that are no queries: settings of the session, descriptions of tables, `SHOW VARIABLES`.
//!
//! Each form is matched as a whole: a word more is another statement, and refused. Not here: which statements there
//! are (`lists`).

use super::{StatementReader, UnknownReads, lists};
use crate::condition::Condition;
use crate::footprint::{Block, Reads, ReadsForm, TableReads};
use crate::lexer::{Part, SqlMode, Statement};
use crate::literal::Literal;
use crate::schema::Columns;
use sqlparser::tokenizer::Token;

/// The isolation levels in which a session reads committed rows only.
const COMMITTED: [&str; 3] = ["READ-COMMITTED", "REPEATABLE-READ", "SERIALIZABLE"];

impl StatementReader {
    /// `SET …`. A value in parentheses may be a query; without any, it is a constant or another variable. Rows that
    /// are not committed may never be: no event tells of them.
    pub(super) fn setting(
        &mut self,
        statement: &Statement,
        mode: SqlMode,
    ) -> Result<Reads, UnknownReads> {
        let is_isolation = |name: &str| name == "tx_isolation" || name == "transaction_isolation";
        let is_committed = |value: Option<&Literal>| match value {
            Some(Literal::Text(text) | Literal::Bytes(text)) => {
                COMMITTED.iter().any(|level| text.eq_ignore_ascii_case(level))
            }
            _ => false,
        };
        let is_off =
            |value: Option<&Literal>| value.is_some_and(|value| value.integer() == Some(0));
        if statement.parts.iter().any(|part| part.is("UNCOMMITTED"))
            || !assigned(statement, is_isolation).into_iter().all(is_committed)
        {
            return Err(UnknownReads::Kind("SET, for READ UNCOMMITTED".to_owned()));
        }
        if !assigned(statement, |name| name == "sql_auto_is_null").into_iter().all(is_off) {
            return Err(UnknownReads::Kind("SET sql_auto_is_null".to_owned()));
        }
        // MariaDB: `SET STATEMENT … FOR SELECT …` is a query.
        let is_of_statement = statement.parts.get(1).is_some_and(|part| part.is("STATEMENT"));
        if is_of_statement && statement.words().any(changes_meaning) {
            return Err(UnknownReads::Kind("SET STATEMENT".to_owned()));
        }
        if is_of_statement || statement.parts.contains(&Part::Token(Token::LParen)) {
            return self.query(statement, mode);
        }
        Ok(Reads::default())
    }

    /// The description of a table depends on its definition alone. `None`: the statement has another form.
    pub(super) fn columns(&self, statement: &Statement) -> Option<Result<Reads, UnknownReads>> {
        let (database, name) = described(&statement.parts)?;
        let is_own = database.is_none_or(|database| self.schema.is_database(database));
        let Some(table) = self.schema.table_id(name).filter(|_| is_own) else {
            return Some(Err(self.schema.unknown_table(name)));
        };
        let reads = TableReads {
            condition: Condition::Never,
            used: Columns::NONE,
            ..TableReads::whole(table)
        };
        let form =
            ReadsForm { blocks: vec![Block { tables: vec![reads] }], ..ReadsForm::default() };
        Some(Ok(Reads::new(form, Vec::new())))
    }
}

/// The table, and its database if it is named, of `DESCRIBE t [column]` or
/// `SHOW [FULL] COLUMNS FROM t [FROM database] [LIKE 'pattern']`.
fn described(parts: &[Part]) -> Option<(Option<&str>, &str)> {
    let is_from = |part: &Part| part.is("FROM") || part.is("IN");
    let is_show = parts.first()?.is("SHOW");
    let rest = if is_show {
        let at = parts.iter().position(|part| part.is("COLUMNS") || part.is("FIELDS"))?;
        parts.get(at + 1).filter(|part| is_from(part))?;
        &parts[at + 2..]
    } else {
        &parts[1..]
    };
    let (mut database, table, mut rest) = match rest {
        [database, period, table, rest @ ..] if *period == Part::Token(Token::Period) => {
            (Some(database.word()?), table.word()?, rest)
        }
        [table, rest @ ..] => (None, table.word()?, rest),
        [] => return None,
    };
    if let [from, name, more @ ..] = rest
        && is_show
        && is_from(from)
    {
        (database, rest) = (Some(name.word()?), more);
    }
    let is_whole = match rest {
        [] => true,
        [like, Part::Literal] => is_show && like.is("LIKE"),
        [column] => !is_show && (column.word().is_some() || *column == Part::Literal),
        _ => false,
    };
    is_whole.then_some((database, table))
}

/// Whether a `SHOW VARIABLES` shows settings alone: `LIKE 'name'`, `WHERE Variable_name = 'name'` or `IN (…)`.
pub(super) fn are_settings(statement: &Statement) -> bool {
    let Some(at) = statement.parts.iter().position(|part| part.is("VARIABLES")) else {
        return false;
    };
    let is_name =
        |part: &Part| part.word().is_some_and(|word| word.eq_ignore_ascii_case("variable_name"));
    let is_plain = match &statement.parts[at + 1..] {
        [like, Part::Literal] => like.is("LIKE"),
        [condition, name, equals, Part::Literal] => {
            condition.is("WHERE") && is_name(name) && *equals == Part::Token(Token::Eq)
        }
        [condition, name, within, open, Part::Literal, _] => {
            let is_list = within.is("IN") && *open == Part::Token(Token::LParen);
            condition.is("WHERE") && is_name(name) && is_list
        }
        _ => false,
    };
    // A pattern with `%` is the name of no setting.
    let is_setting = |literal: &Literal| match literal {
        Literal::Text(name) | Literal::Bytes(name) => lists::is_setting(name),
        _ => false,
    };
    is_plain
        && statement.literals.iter().all(|literal| match literal {
            Literal::List(names) => names.iter().all(is_setting),
            literal => is_setting(literal),
        })
}

/// The values that a `SET` gives to variables with these names, in lower case; `None` for one that is no constant.
fn assigned(statement: &Statement, is_wanted: impl Fn(&str) -> bool) -> Vec<Option<&Literal>> {
    let mut literals = statement.literals.iter();
    let mut found = Vec::new();
    for (at, part) in statement.parts.iter().enumerate() {
        let literal = if *part == Part::Literal { literals.next() } else { None };
        let name = |back: usize| at.checked_sub(back).and_then(|at| statement.parts[at].word());
        let named = name(2).filter(|_| statement.parts[at - 1] == Part::Token(Token::Eq));
        if let Some(name) = named.map(|name| name.trim_start_matches('@').to_ascii_lowercase())
            && is_wanted(&name)
        {
            found.push(literal);
        }
    }
    found
}

/// Whether a word names a setting that gives the texts of statements another meaning.
fn changes_meaning(word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    let starts =
        ["sql_mode", "character_set", "collation", "tx_isolation", "transaction_isolation"];
    starts.iter().any(|start| word.starts_with(start))
}
