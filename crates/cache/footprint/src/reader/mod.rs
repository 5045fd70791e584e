//! From the text of a statement to what it reads.
//!
//! | statement | read as |
//! |---|---|
//! | a query that the parser understands as the database does | a footprint for each table of each query block |
//! | any other query | each table that it names, whole |
//! | the description of a table (`SHOW COLUMNS FROM t`) | the table's definition: no row touches it |
//! | a write, or a setting of the session | nothing; with `RETURNING` or a query, each table that it names, whole |
//! | one that reads what no row of the schema tells, or is not on a list of `lists` | [`UnknownReads`] |
//!
//! Invariant: nothing that a statement reads is missing. Parsed texts are kept by their shape, within a
//! bound. Not here: the structure of a query, and how conditions are read.

mod block;
mod expression;
mod first_rows;
mod lists;
mod other_statements;
mod predicate;
mod query;
mod shared_texts;

pub use lists::is_logged_engine;

use self::lists::StatementKind;
use self::shared_texts::SharedTexts;
use crate::footprint::{Block, Reads, ReadsForm, TableReads};
use crate::functions;
use crate::lexer::{Part, SqlMode, Statement};
use crate::schema::{SqlSchema, TableId};
use crate::unknown_reads::UnknownReads;
use sqlparser::ast;
use sqlparser::dialect::MySqlDialect;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The maximum length of a statement, in bytes.
const TEXT_BYTES_MAX: usize = 1024 * 1024;
/// The maximum number of shapes whose structure is kept.
const SHAPES_MAX: usize = 4096;

/// The maximum number of tokens of all shapes together. A token and its part of the structure take some
/// hundred bytes.
const SHAPE_PARTS_MAX: usize = 100_000;

/// Reads statements of one database.
#[derive(Debug)]
pub struct StatementReader {
    schema: Arc<SqlSchema>,
    shapes: HashMap<Vec<Part>, Option<Arc<ast::Statement>>>,
    /// The number of tokens of all shapes.
    shape_parts: usize,
    /// The forms that were read: equal ones are shared.
    forms: HashSet<Arc<ReadsForm>>,
    /// Texts that were read: equal ones are shared.
    texts: SharedTexts,
}

/// Why the structure of a query is not used.
#[derive(Debug)]
enum Stop {
    /// It has a part that is not understood: each table counts as a whole.
    Inexact,
    /// It reads something unknown.
    Unknown(UnknownReads),
}

impl StatementReader {
    /// A reader for the tables of this schema.
    #[must_use]
    pub fn new(schema: Arc<SqlSchema>) -> StatementReader {
        StatementReader {
            schema,
            shapes: HashMap::new(),
            shape_parts: 0,
            forms: HashSet::new(),
            texts: SharedTexts::default(),
        }
    }

    /// The tables that statements are read for.
    #[must_use]
    pub fn schema(&self) -> &Arc<SqlSchema> {
        &self.schema
    }

    /// Reads the text of a statement, and returns its footprints.
    ///
    /// # Errors
    /// [`UnknownReads`] if it may read what no change of a row in the schema tells.
    pub fn read(&mut self, text: &[u8], mode: SqlMode) -> Result<Reads, UnknownReads> {
        if text.len() > TEXT_BYTES_MAX {
            return Err(UnknownReads::Text);
        }
        let statement = Statement::split(text, mode).map_err(|_| UnknownReads::Text)?;
        if !statement.is_single {
            return Err(UnknownReads::Several);
        }
        let mut reads = self.read_statement(&statement, mode)?;
        self.share(&mut reads);
        Ok(reads)
    }

    fn read_statement(
        &mut self,
        statement: &Statement,
        mode: SqlMode,
    ) -> Result<Reads, UnknownReads> {
        let words: Vec<&str> = statement.words().take(4).collect();
        let refused = || {
            let is_short = words.first().is_some_and(|first| !matches!(*first, "SHOW" | "SET"));
            Err(UnknownReads::Kind(words[..words.len().min(2 - usize::from(is_short))].join(" ")))
        };
        match lists::statement_kind(&words) {
            Some(StatementKind::Query) => self.query(statement, mode),
            // The rows that a write returns are reads.
            Some(StatementKind::Write)
                if statement.parts.iter().any(|part| part.is("RETURNING")) =>
            {
                self.query(statement, mode)
            }
            // `CREATE OR REPLACE TEMPORARY TABLE` is a table of the session, too.
            Some(StatementKind::Creation)
                if words.iter().any(|word| word.eq_ignore_ascii_case("temporary")) =>
            {
                Err(UnknownReads::Kind("CREATE TEMPORARY".to_owned()))
            }
            Some(StatementKind::Write | StatementKind::Creation | StatementKind::NoReads) => {
                Ok(Reads::default())
            }
            Some(StatementKind::Setting) => self.setting(statement, mode),
            Some(StatementKind::Use) => {
                let name = words.get(1).copied().unwrap_or_default();
                let is_own = self.schema.is_database(name);
                if is_own {
                    Ok(Reads::default())
                } else {
                    Err(UnknownReads::Table(name.to_owned()))
                }
            }
            Some(StatementKind::Columns) => self.columns(statement).unwrap_or_else(refused),
            Some(StatementKind::Variables) => {
                if other_statements::are_settings(statement) {
                    Ok(Reads::default())
                } else {
                    refused()
                }
            }
            // An empty text, or a comment.
            None if statement.parts.is_empty() => Ok(Reads::default()),
            None => refused(),
        }
    }

    /// Narrows the reads of a table to the rows with one of these texts in a column: the application has
    /// loaded all rows, and has shown which it used. A column that is not text is left alone, and a statement that
    /// does more than to load: two columns of one table, with no condition but one on `autoload`. Returns whether
    /// they were narrowed.
    pub fn narrow(
        &mut self,
        reads: &mut Reads,
        table: TableId,
        column: u16,
        values: &[&str],
    ) -> bool {
        let is_narrowed = reads.narrow(&self.schema, table, column, values);
        self.share(reads);
        is_narrowed
    }

    /// Lets reads of equal form share it, and equal texts.
    fn share(&mut self, reads: &mut Reads) {
        self.texts.share(Arc::make_mut(&mut reads.operands));
        if let Some(form) = self.forms.get(&reads.form) {
            reads.form = form.clone();
            return;
        }
        if self.forms.len() >= SHAPES_MAX {
            self.forms.clear();
        }
        self.forms.insert(reads.form.clone());
    }

    fn query(&mut self, statement: &Statement, mode: SqlMode) -> Result<Reads, UnknownReads> {
        let mut reads = self.structure(statement, mode)?;
        Arc::make_mut(&mut reads.form).uses_clock = statement.words().any(is_clock);
        Ok(reads)
    }

    fn structure(&mut self, statement: &Statement, mode: SqlMode) -> Result<Reads, UnknownReads> {
        if statement.is_exact
            && let Some(parsed) = self.parsed(statement)
        {
            match query::read(&self.schema, &parsed, &statement.literals, mode) {
                Ok(reads) => return Ok(reads),
                Err(Stop::Unknown(reason)) => return Err(reason),
                Err(Stop::Inexact) => {}
            }
        }
        self.whole_tables(statement)
    }

    /// The structure of the statement, from its shape if that can be parsed, else from its text.
    fn parsed(&mut self, statement: &Statement) -> Option<Arc<ast::Statement>> {
        let by_shape = match self.shapes.get(&statement.parts) {
            Some(known) => known.clone(),
            None => {
                let parsed = parse(statement.shape()).map(Arc::new);
                self.shape_parts += statement.parts.len();
                if self.shapes.len() >= SHAPES_MAX || self.shape_parts > SHAPE_PARTS_MAX {
                    self.shapes.clear();
                    self.shape_parts = statement.parts.len();
                }
                self.shapes.insert(statement.parts.clone(), parsed.clone());
                parsed
            }
        };
        by_shape.or_else(|| parse(statement.tokens()).map(Arc::new))
    }

    /// Each table that a query names, whole.
    fn whole_tables(&self, statement: &Statement) -> Result<Reads, UnknownReads> {
        let mut reads = ReadsForm::default();
        let mut tables: Vec<TableId> = Vec::new();
        for (at, part) in statement.parts.iter().enumerate() {
            let Some(word) = part.word() else { continue };
            let next = statement.parts.get(at + 1);
            if word.starts_with('@') {
                let member = statement.parts.get(at + 2).filter(|_| next.is_some_and(is_period));
                check_variable(word, member.map(|part| part.word().unwrap_or_default()))?;
            }
            if part.is("NEXTVAL")
                || part.is("VALUE") && statement.parts[..at].last().is_some_and(is_next)
            {
                return Err(UnknownReads::Table("a sequence".to_owned()));
            }
            let known = functions::known(word);
            let is_call = next == Some(&Part::Token(Token::LParen));
            // Only a plain name can be that of a built-in function.
            let is_plain = part.is(word) && !statement.parts[..at].last().is_some_and(is_period);
            if is_call && (known.is_none() || !is_plain) && !may_precede_parenthesis(part) {
                return Err(UnknownReads::Function(word.to_owned()));
            }
            reads.is_random |= known == Some(functions::Function::Chance);
            let table = self.schema.table_id(word);
            tables.extend(table.filter(|table| !tables.contains(table)));
        }
        self.known_tables(&statement.parts)?;
        reads.blocks = vec![Block { tables: tables.into_iter().map(TableReads::whole).collect() }];
        Ok(Reads::new(reads, Vec::new()))
    }

    /// Refuses a query of unknown structure that may read a table that is not in the schema: each name behind
    /// `FROM`, `JOIN` or `TABLE`, and behind a comma or parenthesis up to the end of the `FROM` clause.
    fn known_tables(&self, parts: &[Part]) -> Result<(), UnknownReads> {
        let is = |part: Option<&Part>, token: Token| part == Some(&Part::Token(token));
        // For each open parenthesis, whether the present place is in a list of tables.
        let mut lists = vec![false];
        for (at, part) in parts.iter().enumerate() {
            let last = lists.len() - 1;
            let previous = at.checked_sub(1).and_then(|at| parts.get(at));
            let is_begin = previous.is_some_and(begins_table) && !is_modifier(&parts[..at]);
            let is_next = is(previous, Token::Comma) || is(previous, Token::LParen);
            let is_place = is_begin || lists[last] && is_next;
            lists[last] = (lists[last] || is_begin) && !ends_tables(part, previous);
            match part {
                Part::Token(Token::LParen) => lists.push(is_place),
                Part::Token(Token::RParen) if last > 0 => _ = lists.pop(),
                _ => {}
            }
            // `{ OJ … }` is another form of an outer join.
            let is_name = part.word().is_some() || *part == Part::Token(Token::LBrace);
            if is_place && is_name && !begins_query(part) {
                self.known_table(&parts[at..])?;
            }
        }
        Ok(())
    }

    /// Refuses a name, with or without that of a database before it, if it is not that of a table.
    fn known_table(&self, parts: &[Part]) -> Result<(), UnknownReads> {
        let period = Part::Token(Token::Period);
        let mut words = parts.iter().step_by(2).filter_map(Part::word);
        let (first, second) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let (is_known, name) = if parts.get(1) == Some(&period) {
            let is_known = self.schema.is_database(first) && self.schema.table_id(second).is_some();
            (is_known, format!("{first}.{second}"))
        } else {
            let is_known =
                first.eq_ignore_ascii_case("dual") || self.schema.table_id(first).is_some();
            (is_known, first.to_owned())
        };
        if is_known { Ok(()) } else { Err(self.schema.unknown_table(&name)) }
    }
}

fn parse(tokens: Vec<Token>) -> Option<ast::Statement> {
    let mut statements =
        Parser::new(&MySqlDialect {}).with_tokens(tokens).parse_statements().ok()?;
    if statements.len() == 1 { statements.pop() } else { None }
}

/// Whether a word may be the time of day. Some such functions need no parentheses, and look like columns.
fn is_clock(word: &str) -> bool {
    functions::known(word) == Some(functions::Function::Clock)
        || word.eq_ignore_ascii_case("@@timestamp")
}

/// Whether this part, before `VALUE`, makes it a value of a sequence.
fn is_next(part: &Part) -> bool {
    part.is("NEXT") || part.is("PREVIOUS")
}

/// Whether the name of a table follows this part.
fn begins_table(part: &Part) -> bool {
    ["FROM", "JOIN", "STRAIGHT_JOIN", "TABLE"].iter().any(|word| part.is(word))
}

/// Whether the last of these parts is `STRAIGHT_JOIN` behind `SELECT`, which is no join.
fn is_modifier(parts: &[Part]) -> bool {
    let [before @ .., select, last] = parts else { return false };
    last.is("STRAIGHT_JOIN") && select.is("SELECT") && !before.last().is_some_and(is_period)
}

/// Whether this part, in the place of a table, begins a subquery.
fn begins_query(part: &Part) -> bool {
    ["SELECT", "LATERAL", "WITH", "VALUES", "TABLE"].iter().any(|word| part.is(word))
}

/// Whether this part ends a list of tables. `FOR` may stand before it in the hint for an index.
fn ends_tables(part: &Part, previous: Option<&Part>) -> bool {
    const WORDS: [&str; 10] = [
        "SELECT",
        "WHERE",
        "GROUP",
        "HAVING",
        "ORDER",
        "LIMIT",
        "UNION",
        "EXCEPT",
        "INTERSECT",
        "WINDOW",
    ];
    let is_other = |previous: &Part| previous.is("FOR") || is_period(previous);
    WORDS.iter().any(|word| part.is(word)) && !previous.is_some_and(is_other)
}

fn is_period(part: &Part) -> bool {
    *part == Part::Token(Token::Period)
}

/// Keywords that are not functions, although a parenthesis may follow them.
fn may_precede_parenthesis(part: &Part) -> bool {
    const WORDS: [&str; 44] = [
        "ALL",
        "AND",
        "ANY",
        "AS",
        "BETWEEN",
        "BY",
        "CASE",
        "CHAR",
        "DECIMAL",
        "DISTINCT",
        "DIV",
        "ELSE",
        "EXCEPT",
        "EXISTS",
        "FOR",
        "FROM",
        "HAVING",
        "IN",
        "INDEX",
        "INTERSECT",
        "IS",
        "JOIN",
        "KEY",
        "LATERAL",
        "LIKE",
        "LIMIT",
        "MOD",
        "NOT",
        "ON",
        "OR",
        "OVER",
        "REGEXP",
        "RLIKE",
        "ROW",
        "SELECT",
        "SOME",
        "THEN",
        "UNION",
        "USING",
        "VALUES",
        "WHEN",
        "WHERE",
        "WITH",
        "XOR",
    ];
    WORDS.iter().any(|word| part.is(word)) || part.is("AGAINST") || part.is("INTERVAL")
}

/// Refuses a variable, with or without a scope before it, that is not a setting: one of the session may hold what
/// another statement has read. `@@timestamp` is the time of day.
fn check_variable(first: &str, member: Option<&str>) -> Result<(), UnknownReads> {
    let is_scope = |word: &str| {
        ["@@global", "@@session", "@@local"].iter().any(|scope| word.eq_ignore_ascii_case(scope))
    };
    let is_known = match member {
        Some(name) => is_scope(first) && lists::is_setting(name),
        None => {
            let is_clock = first.eq_ignore_ascii_case("@@timestamp");
            is_clock || first.strip_prefix("@@").is_some_and(lists::is_setting)
        }
    };
    let name = || member.map_or(first.to_owned(), |member| format!("{first}.{member}"));
    if is_known { Ok(()) } else { Err(UnknownReads::Variable(name())) }
}
