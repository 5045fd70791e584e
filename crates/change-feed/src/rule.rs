//! Rules: which tags a changed row of a table touches. As written, and compiled.
//!
//! [`Rules::compile`] finds what is wrong with a rule by itself, [`Rules::check`] what is wrong with
//! it for a schema, and says what there is instead. Rules and their tags are bounded.

use crate::schema::{Schema, TableKind};
use crate::template::Template;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::fmt;

/// The most rules.
const RULES_MAX: usize = 10_000;
/// The most tags of a rule, of each kind.
const TAGS_MAX: usize = 100;
/// How many names a message lists.
const LISTED_MAX: usize = 30;

/// A rule as written: `[[change]]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChangeRule {
    /// The name of the table's database, for whoever follows several; not looked at here.
    #[serde(default)]
    pub database: Option<String>,
    /// The table.
    pub table: String,
    /// The tags that a changed row touches; `{column}` stands for a value.
    pub tags: Vec<String>,
    /// If not empty: an update touches them only when one of these columns, or one in the tags,
    /// changes.
    #[serde(default)]
    pub when_changed: Vec<String>,
    /// What is touched when it is not known which rows changed, beside the library's tag for any of a kind
    /// (`news:*` where a tag is `news:{id}`). Without it, every page where a tag has a column in it.
    #[serde(default)]
    pub any_row: Vec<String>,
}

/// What is wrong with a rule by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleError {
    /// It names no table.
    NoTable,
    /// It has no tags: it would never touch anything.
    NoTags(String),
    /// A tag cannot be read: the table, the tag, why.
    BadTag(String, String, &'static str),
    /// `any_row` has a column in it.
    AnyRowHasColumn(String, String),
    /// Too many rules, or tags of one.
    TooMany,
}

impl RuleError {
    /// Its name, as in logs.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            RuleError::NoTable => "no-table",
            RuleError::NoTags(_) => "no-tags",
            RuleError::BadTag(..) => "bad-tag",
            RuleError::AnyRowHasColumn(..) => "any-row-has-column",
            RuleError::TooMany => "too-many-rules",
        }
    }
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RuleError::NoTable => f.write_str("a rule names no table"),
            RuleError::NoTags(table) => write!(f, "the rule for table {table} has no tags"),
            RuleError::BadTag(table, tag, why) => write!(f, "table {table}, tag {tag:?}: {why}"),
            RuleError::AnyRowHasColumn(table, tag) => {
                write!(f, "table {table}, any_row {tag:?}: it stands for any row, so no columns")
            }
            RuleError::TooMany => {
                write!(f, "{RULES_MAX} rules at most, and {TAGS_MAX} tags of each")
            }
        }
    }
}

impl std::error::Error for RuleError {}

/// What is wrong with a rule for a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckError {
    /// There is no such table: it, and those that there are.
    TableMissing(String, Vec<String>),
    /// It is a view.
    IsView(String),
    /// There is no such column: table, column, and those that there are.
    ColumnMissing(String, String, Vec<String>),
}

impl CheckError {
    /// Its name, as in logs.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            CheckError::TableMissing(..) => "table-missing",
            CheckError::IsView(_) => "is-view",
            CheckError::ColumnMissing(..) => "column-missing",
        }
    }
}

impl fmt::Display for CheckError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CheckError::TableMissing(table, there) => {
                write!(f, "there is no table {table} that the account may read; there are: ")?;
                list(f, there)
            }
            CheckError::IsView(table) => {
                write!(f, "{table} is a view: name the tables that it is made from")
            }
            CheckError::ColumnMissing(table, column, there) => {
                write!(f, "table {table} has no column {column}; it has: ")?;
                list(f, there)
            }
        }
    }
}

impl std::error::Error for CheckError {}

fn list(f: &mut fmt::Formatter<'_>, names: &[String]) -> fmt::Result {
    if names.is_empty() {
        return f.write_str("none");
    }
    f.write_str(&names[..names.len().min(LISTED_MAX)].join(", "))?;
    match names.len().checked_sub(LISTED_MAX) {
        None | Some(0) => Ok(()),
        Some(more) => write!(f, " and {more} more"),
    }
}

/// Rules that can be used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    pub(crate) all: Vec<Rule>,
}

/// A rule, compiled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rule {
    pub(crate) table: String,
    pub(crate) tags: Vec<Template>,
    /// Columns whose change matters; empty: all. Those in the tags are among them.
    pub(crate) watched: Vec<String>,
    pub(crate) any_row: Vec<String>,
}

impl Rules {
    /// Reads rules.
    ///
    /// # Errors
    /// The first that cannot be used.
    pub fn compile(rules: &[ChangeRule]) -> Result<Rules, RuleError> {
        if rules.len() > RULES_MAX {
            return Err(RuleError::TooMany);
        }
        Ok(Rules { all: rules.iter().map(Rule::compile).collect::<Result<_, _>>()? })
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The columns that rules about this table need: in tags, and watched.
    #[must_use]
    pub fn columns(&self, table: &str) -> BTreeSet<String> {
        let own = self.all.iter().filter(|rule| rule.table.eq_ignore_ascii_case(table));
        own.flat_map(|rule| {
            let in_tags = rule.tags.iter().flat_map(Template::columns).map(str::to_owned);
            in_tags.chain(rule.watched.iter().cloned()).collect::<Vec<_>>()
        })
        .collect()
    }

    /// Whether some changed row could touch this tag.
    #[must_use]
    pub fn could_touch(&self, tag: &str) -> bool {
        let touches = |rule: &Rule| {
            rule.tags.iter().any(|template| template.could_make(tag))
                || rule.any_row.iter().any(|own| own == tag)
        };
        self.all.iter().any(touches)
    }

    /// The tables whose changed rows could touch this tag, each with the tag as its rule has it.
    pub fn touching(&self, tag: &str) -> impl Iterator<Item = (&str, String)> {
        self.all.iter().filter_map(move |rule| {
            let template = rule.tags.iter().find(|template| template.could_make(tag));
            let written = template.map(Template::written);
            let any_row = || rule.any_row.iter().find(|own| *own == tag).cloned();
            Some((&*rule.table, written.or_else(any_row)?))
        })
    }

    /// Holds them against a schema.
    ///
    /// # Errors
    /// The first table or column that is not there.
    pub fn check(&self, schema: &Schema) -> Result<(), CheckError> {
        self.all.iter().try_for_each(|rule| rule.check(schema))
    }
}

impl Rule {
    fn compile(written: &ChangeRule) -> Result<Rule, RuleError> {
        let table = written.table.clone();
        if table.is_empty() {
            return Err(RuleError::NoTable);
        }
        if written.tags.is_empty() {
            return Err(RuleError::NoTags(table));
        }
        let lists = [&written.tags, &written.when_changed, &written.any_row];
        if lists.iter().any(|list| list.len() > TAGS_MAX) {
            return Err(RuleError::TooMany);
        }
        let read = |tag: &String| {
            let bad = |why| RuleError::BadTag(table.clone(), tag.clone(), why);
            Template::read(tag).map_err(bad)
        };
        let tags = written.tags.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        let mut any_row = Vec::new();
        for (template, tag) in written.any_row.iter().map(read).zip(&written.any_row) {
            let template = template?;
            match template.fill(|_| crate::template::Filling::Unknown) {
                Ok(spelled) => any_row.extend(spelled.all().map(str::to_owned)),
                Err(_) => return Err(RuleError::AnyRowHasColumn(table, tag.clone())),
            }
        }
        if !any_row.is_empty() {
            any_row.extend(tags.iter().flat_map(Template::of_any));
            any_row.sort_unstable();
            any_row.dedup();
        }
        let mut watched = Vec::new();
        if !written.when_changed.is_empty() {
            let in_tags = tags.iter().flat_map(Template::columns).map(str::to_owned);
            watched.extend(written.when_changed.iter().cloned().chain(in_tags));
        }
        Ok(Rule { table, tags, watched, any_row })
    }

    fn check(&self, schema: &Schema) -> Result<(), CheckError> {
        let Some(table) = schema.table(&self.table) else {
            let there = schema.tables.values().map(|table| table.name.clone()).collect();
            return Err(CheckError::TableMissing(self.table.clone(), there));
        };
        if table.kind == TableKind::View {
            return Err(CheckError::IsView(self.table.clone()));
        }
        let in_tags = self.tags.iter().flat_map(Template::columns);
        for column in in_tags.chain(self.watched.iter().map(String::as_str)) {
            if table.column(column).is_none() {
                let there = table.columns.iter().map(|column| column.name.clone()).collect();
                let column = column.to_owned();
                return Err(CheckError::ColumnMissing(self.table.clone(), column, there));
            }
        }
        Ok(())
    }

    /// Whether every change of the table touches the same.
    pub(crate) fn is_constant(&self) -> bool {
        self.watched.is_empty() && self.tags.iter().all(Template::is_constant)
    }
}
