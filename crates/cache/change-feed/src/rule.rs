//! Change rules, which say which tags a changed row of a table touches: as written, and compiled.
//!
//! [`Rules::compile`] reports errors in a rule itself, and [`Rules::check`] errors in a rule for a schema,
//! with the valid alternatives. The numbers of rules and tags are limited.

use crate::condition::{Conditions, WrittenConditions};
use crate::schema::{Column, Schema};
use crate::template::Template;
use crate::text;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::fmt;

/// The maximum number of rules.
const RULES_MAX: usize = 10_000;
/// The maximum number of tags of a rule, for each list.
const TAGS_MAX: usize = 100;
/// The maximum length of a kind of searches in bytes.
const KIND_BYTES_MAX: usize = 64;
/// The maximum number of names in a message.
const LISTED_MAX: usize = 30;

/// A rule as written: `[[change]]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChangeRule {
    /// The name of the table's database, for sites with several databases. Not used in this crate.
    #[serde(default)]
    pub database: Option<String>,
    /// The name of the table.
    pub table: String,
    /// The tags that a changed row touches; `{column}` stands for a value.
    #[serde(default)]
    pub tags: Vec<String>,
    /// The searches in the text of the row.
    #[serde(default)]
    pub searches: Option<Searches>,
    /// Columns and values: an image of a row touches the tags only if it has one of these values in each
    /// column.
    #[serde(default, rename = "where")]
    pub only_where: WrittenConditions,
    /// Columns and values: an image of a row with one of these values touches nothing.
    #[serde(default)]
    pub unless: WrittenConditions,
    /// If not empty, an update touches the tags only if one of these columns, or a column in the tags,
    /// changes.
    #[serde(default)]
    pub when_changed: Vec<String>,
    /// The tags touched if the changed rows are unknown, in addition to the library's tag for any row of a
    /// kind (`news:*` for a tag `news:{id}`). Without it, every page is touched if a tag has a column.
    #[serde(default)]
    pub any_row: Vec<String>,
}

/// Pages that show the rows whose text contains a word. Such a page has a tag for its search, which begins
/// with the kind and a colon: `search:PHP`. A changed row touches the tags of the words in its text, before
/// and after the change.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Searches {
    /// The beginning of the tags: `search`.
    pub kind: String,
    /// The columns that are searched.
    pub columns: Vec<String>,
}

/// An error in a rule itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RuleError {
    /// The rule names no table.
    NoTable,
    /// The rule has no tags and no searches, so it would never touch anything. With the table.
    NoTags(String),
    /// A tag is invalid: the table, the tag, the reason.
    BadTag(String, String, &'static str),
    /// `any_row` contains a column: the table, the tag.
    AnyRowHasColumn(String, String),
    /// `where` or `unless` is invalid: the table, the column, the reason.
    BadCondition(String, String, &'static str),
    /// `searches` has no kind or no columns, or an invalid kind: the table, the reason.
    BadSearches(String, &'static str),
    /// There are too many rules, or too many tags in a rule.
    TooMany,
}

impl RuleError {
    /// The name of the error, as logs show it.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            RuleError::NoTable => "no-table",
            RuleError::NoTags(_) => "no-tags",
            RuleError::BadTag(..) => "bad-tag",
            RuleError::AnyRowHasColumn(..) => "any-row-has-column",
            RuleError::BadCondition(..) => "bad-condition",
            RuleError::BadSearches(..) => "bad-searches",
            RuleError::TooMany => "too-many-rules",
        }
    }
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RuleError::NoTable => f.write_str("a rule names no table"),
            RuleError::NoTags(table) => {
                write!(f, "the rule for table {table} has neither tags nor searches")
            }
            RuleError::BadTag(table, tag, why) => write!(f, "table {table}, tag {tag:?}: {why}"),
            RuleError::AnyRowHasColumn(table, tag) => {
                write!(f, "table {table}, any_row {tag:?}: it stands for any row, so no columns")
            }
            RuleError::BadCondition(table, column, why) => {
                write!(f, "table {table}, condition on {column}: {why}")
            }
            RuleError::BadSearches(table, why) => write!(f, "table {table}, searches: {why}"),
            RuleError::TooMany => {
                write!(f, "{RULES_MAX} rules at most, and {TAGS_MAX} tags of each")
            }
        }
    }
}

impl std::error::Error for RuleError {}

/// An error in a rule for a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckError {
    /// The table does not exist: the table, and the existing ones.
    TableMissing(String, Vec<String>),
    /// The table is a view.
    IsView(String),
    /// A searched column holds no text of its own: the table, the column.
    NotText(String, String),
    /// A searched column has an unknown collation: the table, the column, the collation.
    Collation(String, String, String),
    /// The column does not exist: the table, the column, and the existing ones.
    ColumnMissing(String, String, Vec<String>),
}

impl CheckError {
    /// The name of the error, as logs show it.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            CheckError::TableMissing(..) => "table-missing",
            CheckError::IsView(_) => "is-view",
            CheckError::NotText(..) => "no-text",
            CheckError::Collation(..) => "collation",
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
            CheckError::NotText(table, column) => {
                write!(
                    f,
                    "table {table}, searches: {column} holds no text of its own: name columns of text that are not worked out from others"
                )
            }
            CheckError::Collation(table, column, collation) => {
                write!(
                    f,
                    "table {table}, searches: {column} is compared by {collation}, which takes letters for one another that are not known here: give the column a collation such as utf8mb4_unicode_ci, or have such pages name the kind as a whole"
                )
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

/// The rules of a database, after validation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    pub(crate) all: Vec<Rule>,
}

/// A compiled rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rule {
    pub(crate) table: String,
    pub(crate) tags: Vec<Template>,
    /// The columns whose change matters, including those in the tags; empty for all columns.
    pub(crate) watched: Vec<String>,
    pub(crate) any_row: Vec<String>,
    pub(crate) searches: Option<Searches>,
    pub(crate) conditions: Conditions,
}

impl Searches {
    fn check(&self, table: &str) -> Result<(), RuleError> {
        let wrong = |why| Err(RuleError::BadSearches(table.to_owned(), why));
        let Searches { kind, columns } = self;
        match () {
            () if kind.is_empty() || kind.len() > KIND_BYTES_MAX => {
                wrong("its kind, with which the tags begin, has 1 to 64 bytes")
            }
            () if kind.contains(|l: char| !l.is_ascii_graphic() || "%*:\"".contains(l)) => {
                wrong("its kind is what stands before the colon in search:PHP, printable ASCII")
            }
            () if columns.is_empty() => wrong("columns names those in which is looked"),
            () if columns.len() > TAGS_MAX => Err(RuleError::TooMany),
            () => Ok(()),
        }
    }

    /// Whether pages that search its text have this tag.
    fn has(&self, tag: &str) -> bool {
        tag.strip_prefix(&*self.kind).is_some_and(|rest| rest.starts_with(':'))
    }

    fn written(&self) -> String {
        format!("{}:… (text of {})", self.kind, self.columns.join(", "))
    }
}

impl Rules {
    /// Compiles rules.
    ///
    /// # Errors
    /// The first invalid rule.
    pub fn compile(rules: &[ChangeRule]) -> Result<Rules, RuleError> {
        if rules.len() > RULES_MAX {
            return Err(RuleError::TooMany);
        }
        Ok(Rules { all: rules.iter().map(Rule::compile).collect::<Result<_, _>>()? })
    }

    /// Whether there are no rules.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The tables that rules are for, as they are written.
    pub fn tables(&self) -> impl Iterator<Item = &str> {
        self.all.iter().map(|rule| &*rule.table)
    }

    /// The columns that the rules for this table need: those in tags, and watched ones.
    #[must_use]
    pub fn columns(&self, table: &str) -> BTreeSet<String> {
        let own = self.all.iter().filter(|rule| rule.table.eq_ignore_ascii_case(table));
        own.flat_map(|rule| rule.columns().map(str::to_owned)).collect()
    }

    /// The kinds of searches in the rules.
    #[must_use]
    pub fn searches(&self) -> BTreeSet<&str> {
        self.all.iter().filter_map(|rule| Some(&*rule.searches.as_ref()?.kind)).collect()
    }

    /// Whether a changed row could touch this tag.
    #[must_use]
    pub fn could_touch(&self, tag: &str) -> bool {
        let touches = |rule: &Rule| {
            rule.tags.iter().any(|template| template.could_make(tag))
                || rule.any_row.iter().any(|own| own == tag)
                || rule.searches.as_ref().is_some_and(|searches| searches.has(tag))
        };
        self.all.iter().any(touches)
    }

    /// The tables whose changed rows could touch this tag, each with the tag as written in its rule.
    pub fn touching(&self, tag: &str) -> impl Iterator<Item = (&str, String)> {
        self.all.iter().filter_map(move |rule| {
            let template = rule.tags.iter().find(|template| template.could_make(tag));
            let written = template.map(Template::written);
            let any_row = || rule.any_row.iter().find(|own| *own == tag).cloned();
            let searches = || rule.searches.as_ref().filter(|searches| searches.has(tag));
            let searches = || searches().map(Searches::written);
            Some((&*rule.table, written.or_else(any_row).or_else(searches)?))
        })
    }

    /// Checks the rules against a schema.
    ///
    /// # Errors
    /// The first table or column that does not exist.
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
        if written.tags.is_empty() && written.searches.is_none() {
            return Err(RuleError::NoTags(table));
        }
        if let Some(searches) = &written.searches {
            searches.check(&table)?;
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
        let conditions = Conditions::read(&written.only_where, &written.unless);
        let conditions = conditions
            .map_err(|(column, why)| RuleError::BadCondition(table.clone(), column, why))?;
        let mut watched = Vec::new();
        if !written.when_changed.is_empty() {
            let in_tags = tags.iter().flat_map(Template::columns).map(str::to_owned);
            watched.extend(written.when_changed.iter().cloned().chain(in_tags));
            watched.extend(written.searches.iter().flat_map(|searches| searches.columns.clone()));
            // A row that begins or ceases to meet the conditions has changed for the pages.
            watched.extend(conditions.columns().cloned());
        }
        let searches = written.searches.clone();
        Ok(Rule { table, tags, watched, any_row, searches, conditions })
    }

    /// The columns that the rule needs: in tags, watched, searched, and in conditions.
    fn columns(&self) -> impl Iterator<Item = &str> {
        let in_tags = self.tags.iter().flat_map(Template::columns);
        let searched = self.searches.iter().flat_map(|searches| &searches.columns);
        let others = self.watched.iter().chain(searched).chain(self.conditions.columns());
        in_tags.chain(others.map(String::as_str))
    }

    fn check(&self, schema: &Schema) -> Result<(), CheckError> {
        let Some(table) = schema.table(&self.table) else {
            let there = schema.tables.values().map(|table| table.name.clone()).collect();
            return Err(CheckError::TableMissing(self.table.clone(), there));
        };
        if table.is_view {
            return Err(CheckError::IsView(self.table.clone()));
        }
        for column in self.columns() {
            if table.column(column).is_none() {
                let there = table.columns.iter().map(|column| column.name.clone()).collect();
                let column = column.to_owned();
                return Err(CheckError::ColumnMissing(self.table.clone(), column, there));
            }
        }
        for searched in self.searches.iter().flat_map(|searches| &searches.columns) {
            let is_comparable = |column: &Column| column.is_text && !column.is_generated;
            if !table.column(searched).is_some_and(is_comparable) {
                return Err(CheckError::NotText(self.table.clone(), searched.clone()));
            }
            let collation = table.column(searched).and_then(|column| column.collation.as_ref());
            if let Some(other) = collation.filter(|collation| !text::is_usual(collation)) {
                let (table, column) = (self.table.clone(), searched.clone());
                return Err(CheckError::Collation(table, column, other.clone()));
            }
        }
        Ok(())
    }

    /// Whether every change of the table touches the same tags.
    pub(crate) fn is_constant(&self) -> bool {
        let has_no_columns = self.tags.iter().all(Template::is_constant) && self.searches.is_none();
        self.watched.is_empty() && self.conditions.is_empty() && has_no_columns
    }
}
