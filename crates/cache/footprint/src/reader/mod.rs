//! From the text of a statement to what it reads.
//!
//! | statement | read as |
//! |---|---|
//! | a query that the parser understands as the database does | a footprint for each table of each query block |
//! | any other query | each table that it names, whole |
//! | the description of a table (`SHOW COLUMNS FROM t`) | the table's definition: no row touches it |
//! | a write, or a setting of the session | nothing |
//! | one that reads what no row of the schema tells | [`UnknownReads`] |
//!
//! Invariant: nothing that a statement reads is missing. Parsed texts are kept by their shape, within a
//! bound. Not here: the structure of a query, and how conditions are read.

mod block;
mod expression;
mod predicate;
mod query;

use crate::footprint::{Block, Reads, ReadsForm, TableReads};
use crate::functions;
use crate::lexer::{Part, SqlMode, Statement};
use crate::schema::{Columns, SqlSchema, TableId};
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

/// Reads statements of one database.
#[derive(Debug)]
pub struct StatementReader {
    schema: Arc<SqlSchema>,
    shapes: HashMap<Vec<Part>, Option<Arc<ast::Statement>>>,
    /// The forms that were read: equal ones are shared.
    forms: HashSet<Arc<ReadsForm>>,
}

/// Why it is not known what a statement reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnknownReads {
    /// The text cannot be split into tokens, or is longer than one megabyte.
    Text,
    /// It calls a function that may be a stored one.
    Function(String),
    /// It reads a table that is not in the schema: a view, a temporary table, or of another database.
    Table(String),
    /// It reads a variable of the session.
    Variable(String),
    /// It is a statement of another kind, such as `CALL`.
    Kind(String),
}

impl std::fmt::Display for UnknownReads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            UnknownReads::Text => f.write_str("a text that cannot be read, or is too long"),
            UnknownReads::Function(name) => {
                write!(f, "the function {name}, which may be a stored one")
            }
            UnknownReads::Table(name) => {
                write!(f, "{name}, which is not a table of the followed database")
            }
            UnknownReads::Variable(name) => write!(f, "the variable {name}"),
            UnknownReads::Kind(word) => write!(f, "a statement that begins with {word}"),
        }
    }
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
        StatementReader { schema, shapes: HashMap::new(), forms: HashSet::new() }
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
        let mut reads = self.read_statement(&statement, mode)?;
        self.share(&mut reads);
        Ok(reads)
    }

    fn read_statement(
        &mut self,
        statement: &Statement,
        mode: SqlMode,
    ) -> Result<Reads, UnknownReads> {
        match kind(statement) {
            StatementKind::Query => self.query(statement, mode),
            StatementKind::Definition => self.definition(statement),
            StatementKind::NoReads => Ok(Reads::default()),
            StatementKind::Use(name) if self.schema.is_database(name) => Ok(Reads::default()),
            StatementKind::Use(name) => Err(UnknownReads::Table(name.to_owned())),
            StatementKind::Other(word) => Err(UnknownReads::Kind(word.to_owned())),
        }
    }

    /// Narrows the reads of a table to the rows with one of these texts in a column: the application has
    /// loaded all rows, and has shown which it used. A column that is not text is left alone.
    pub fn narrow(&mut self, reads: &mut Reads, table: TableId, column: u16, values: &[&str]) {
        reads.narrow(&self.schema, table, column, values);
        self.share(reads);
    }

    /// Lets reads of equal form share it.
    fn share(&mut self, reads: &mut Reads) {
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
                if self.shapes.len() >= SHAPES_MAX {
                    self.shapes.clear();
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
            if word.starts_with('@') && !word.starts_with("@@") {
                return Err(UnknownReads::Variable(word.to_owned()));
            }
            let known = functions::known(word);
            let is_call = next == Some(&Part::Token(Token::LParen));
            if is_call && known.is_none() && !may_precede_parenthesis(part) {
                return Err(UnknownReads::Function(word.to_owned()));
            }
            reads.uses_clock |= known == Some(functions::Function::Clock);
            reads.is_random |= known == Some(functions::Function::Chance);
            let previous = at.checked_sub(1).and_then(|at| statement.parts.get(at));
            match self.schema.table_id(word) {
                Some(table) if !tables.contains(&table) => tables.push(table),
                Some(_) => {}
                None if is_table_place(previous) && !is_call && !self.may_follow_from(part) => {
                    return Err(UnknownReads::Table(word.to_owned()));
                }
                None => {}
            }
        }
        reads.blocks = vec![Block { tables: tables.into_iter().map(TableReads::whole).collect() }];
        Ok(Reads::new(reads, Vec::new()))
    }

    /// Whether this may stand behind `FROM` without being a table: the database's name, or a keyword.
    fn may_follow_from(&self, part: &Part) -> bool {
        part.word().is_some_and(|word| self.schema.is_database(word))
            || ["DUAL", "SELECT", "LATERAL"].iter().any(|word| part.is(word))
    }

    /// The description of a table depends on its definition alone.
    fn definition(&self, statement: &Statement) -> Result<Reads, UnknownReads> {
        let mut tables = statement.words().filter_map(|word| self.schema.table_id(word));
        let Some(table) = tables.next() else {
            let last = statement.words().last().unwrap_or_default();
            return Err(UnknownReads::Table(last.to_owned()));
        };
        let condition = crate::condition::Condition::Never;
        let reads = TableReads { condition, used: Columns::NONE, ..TableReads::whole(table) };
        let form =
            ReadsForm { blocks: vec![Block { tables: vec![reads] }], ..ReadsForm::default() };
        Ok(Reads::new(form, Vec::new()))
    }
}

fn parse(tokens: Vec<Token>) -> Option<ast::Statement> {
    let mut statements =
        Parser::new(&MySqlDialect {}).with_tokens(tokens).parse_statements().ok()?;
    if statements.len() == 1 { statements.pop() } else { None }
}

/// Whether the name of a table follows this part.
fn is_table_place(part: Option<&Part>) -> bool {
    part.is_some_and(|part| ["FROM", "JOIN", "TABLE"].iter().any(|word| part.is(word)))
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

/// The kind of a statement, by its first words.
enum StatementKind<'s> {
    Query,
    Definition,
    NoReads,
    Use(&'s str),
    Other(&'s str),
}

fn kind(statement: &Statement) -> StatementKind<'_> {
    let mut words = statement.words();
    let first = words.next().unwrap_or_default();
    let second = words.next().unwrap_or_default().to_ascii_uppercase();
    match first.to_ascii_uppercase().as_str() {
        "SELECT" | "WITH" | "TABLE" | "VALUES" => StatementKind::Query,
        "SHOW" => match second.as_str() {
            "COLUMNS" | "FIELDS" | "INDEX" | "INDEXES" | "KEYS" | "FULL" => {
                StatementKind::Definition
            }
            "CREATE" if words.next().is_some_and(|word| word.eq_ignore_ascii_case("TABLE")) => {
                StatementKind::Definition
            }
            "VARIABLES" | "WARNINGS" | "ERRORS" | "CHARACTER" | "COLLATION" | "ENGINES"
            | "SESSION" => StatementKind::NoReads,
            _ => StatementKind::Other(first),
        },
        "DESCRIBE" | "DESC" if second != "SELECT" => StatementKind::Definition,
        "CREATE" if second == "TEMPORARY" => StatementKind::Other("CREATE TEMPORARY"),
        "USE" => StatementKind::Use(statement.words().nth(1).unwrap_or_default()),
        "INSERT" | "REPLACE" | "UPDATE" | "DELETE" | "TRUNCATE" | "CREATE" | "ALTER" | "DROP"
        | "RENAME" => StatementKind::NoReads,
        "SET" | "BEGIN" | "START" | "COMMIT" | "ROLLBACK" | "SAVEPOINT" | "RELEASE" | "LOCK"
        | "UNLOCK" => StatementKind::NoReads,
        // An empty text, or a comment.
        "" if statement.parts.is_empty() => StatementKind::NoReads,
        _ => StatementKind::Other(first),
    }
}
