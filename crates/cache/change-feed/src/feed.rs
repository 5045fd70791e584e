//! Rules applied to a schema: from a change of a row or a table to the tags that it touches.
//!
//! | image | value of a column |
//! |---|---|
//! | before | its value in the image; unknown if the image leaves the column out |
//! | after | its value in the image; as before if the image leaves the column out (not written) |
//!
//! A column that the stream's table does not have (after `ALTER TABLE`) is unknown and counts as changed.
//! The invariant is that of the crate. Not here: decoding rows.

use crate::graph::{Fate, Graph, KnownValues};
use crate::rule::{Rule, Rules, Searches};
use crate::schema::{Action, Schema};
use crate::template::{Filling, NoTag};
use crate::touched::TouchedTags;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The value of a column in an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cell<'a> {
    /// A value, as text.
    Text(Cow<'a, str>),
    /// SQL NULL.
    Null,
    /// The image leaves the column out.
    LeftOut,
    /// The column does not exist, or its value cannot be written as text.
    Unknown,
}

/// The kind of a row change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowKind {
    /// The row was inserted.
    Insert,
    /// The row was updated.
    Update,
    /// The row was deleted.
    Delete,
}

/// The images of a changed row.
pub trait RowImages {
    /// The kind of the change.
    fn kind(&self) -> RowKind;
    /// A column of the row before the change; `LeftOut` for an insert.
    fn before(&self, column: &str) -> Cell<'_>;
    /// A column of the row after the change; `LeftOut` for a delete.
    fn after(&self, column: &str) -> Cell<'_>;
    /// Whether an update may have changed the column.
    fn may_have_changed(&self, column: &str) -> bool;
}

/// The part of a table's changes that must be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequiredChanges {
    /// Nothing.
    Nothing,
    /// Only the fact that the table changed.
    Table,
    /// The changed rows.
    Rows,
}

/// Rules, applied to a schema.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Feed {
    by_table: BTreeMap<String, Vec<AppliedRule>>,
    graph: Graph,
    /// For each parent table, the columns that acting foreign keys refer to.
    referred: BTreeMap<String, Vec<String>>,
}

/// A rule, applied to the schema.
#[derive(Debug, Clone, PartialEq, Eq)]
struct AppliedRule {
    rule: Rule,
    by_cascade: ByCascade,
}

/// Whether a rule applies if the database changes a foreign key in a child's row, and everything derived
/// from it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ByCascade {
    /// Always: it watches no particular column, or a generated one.
    Always,
    /// If one of these columns (in lower case) is in the key.
    IfChanged(Vec<String>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Image {
    Before,
    After,
}

impl Feed {
    /// Applies the rules to a schema. Everything that [`Rules::check`] would report counts as an unknown
    /// value here.
    #[must_use]
    pub fn new(rules: &Rules, schema: &Schema) -> Feed {
        let mut by_table: BTreeMap<String, Vec<AppliedRule>> = BTreeMap::new();
        for rule in &rules.all {
            let held = AppliedRule { rule: rule.clone(), by_cascade: ByCascade::of(rule, schema) };
            by_table.entry(rule.table.to_lowercase()).or_default().push(held);
        }
        let mut referred: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for key in schema.foreign_keys.iter().filter(|key| key.on_update != Action::Refuse) {
            let columns = key.parent_columns.iter().map(|column| column.to_lowercase());
            referred.entry(key.parent.to_lowercase()).or_default().extend(columns);
        }
        Feed { by_table, graph: Graph::new(schema, &rules.all), referred }
    }

    /// The part of a table's changes that must be read.
    #[must_use]
    pub fn wanted(&self, table: &str) -> RequiredChanges {
        let rules = self.rules(table);
        if !self.graph.from(table).is_empty() {
            return RequiredChanges::Rows;
        }
        match (rules.is_empty(), rules.iter().all(|held| held.rule.is_constant())) {
            (true, _) => RequiredChanges::Nothing,
            (false, true) => RequiredChanges::Table,
            (false, false) => RequiredChanges::Rows,
        }
    }

    /// Adds the tags that a changed row touches.
    pub fn row(&self, table: &str, row: &dyn RowImages, touched: &mut TouchedTags) {
        for AppliedRule { rule, .. } in self.rules(table) {
            let matters =
                row.kind() != RowKind::Update || rule.watched.is_empty() || rule.changed(row);
            if matters {
                for image in images(row.kind()) {
                    rule.touch(touched, |column| value(row, *image, column));
                }
            }
        }
        if self.graph.from(table).is_empty() {
            return;
        }
        let fate = match row.kind() {
            RowKind::Insert => return,
            RowKind::Delete => Fate::Gone,
            RowKind::Update => {
                let referred = self.referred.get(&table.to_lowercase());
                let changed: Vec<String> = referred
                    .into_iter()
                    .flatten()
                    .filter(|column| row.may_have_changed(column))
                    .cloned()
                    .collect();
                if changed.is_empty() {
                    return;
                }
                Fate::Updated(changed)
            }
        };
        for image in images(row.kind()) {
            let known = |column: &str| match value(row, *image, column) {
                Filling::Text(text) => Some(Some(text.into_owned())),
                Filling::Null => Some(None),
                Filling::Unknown => None,
            };
            self.children(table, &fate, &known, touched);
        }
    }

    /// Adds the tags that any row of a table touches: the table was truncated or altered, or its rows
    /// cannot be read.
    pub fn table(&self, table: &str, touched: &mut TouchedTags) {
        for held in self.rules(table) {
            held.rule.touch_any(touched);
        }
        self.children(table, &Fate::Any, &|_| None, touched);
    }

    fn children(
        &self,
        table: &str,
        fate: &Fate,
        known: &dyn Fn(&str) -> Option<Option<String>>,
        touched: &mut TouchedTags,
    ) {
        self.graph.walk(table, fate, known, &mut |child, known: &KnownValues, fate| {
            for held in self.rules(child) {
                let matters = match fate {
                    Fate::Gone | Fate::Any => true,
                    Fate::Updated(columns) => held.by_cascade.applies_to(columns),
                };
                if matters {
                    held.rule.touch(touched, |column| match known.get(&column.to_lowercase()) {
                        Some(Some(text)) => Filling::Text(Cow::Borrowed(text)),
                        Some(None) => Filling::Null,
                        None => Filling::Unknown,
                    });
                }
            }
        });
    }

    fn rules(&self, table: &str) -> &[AppliedRule] {
        match self.by_table.get(table) {
            Some(held) => held,
            None => self.by_table.get(&table.to_lowercase()).map(Vec::as_slice).unwrap_or_default(),
        }
    }
}

impl Rule {
    fn changed(&self, row: &dyn RowImages) -> bool {
        self.watched.iter().any(|column| row.may_have_changed(column))
    }

    /// Touches the tags for one image of a row, if it meets the conditions.
    fn touch<'a>(&self, touched: &mut TouchedTags, mut value: impl FnMut(&str) -> Filling<'a>) {
        if !self.conditions.may_hold(&mut value) {
            return;
        }
        touched.by_table(&self.table);
        for template in &self.tags {
            let is_full = match template.fill(&mut value) {
                Ok(spelled) if template.is_constant() => {
                    touched.add_spelled(&spelled);
                    false
                }
                Ok(spelled) => touched.add_of_row(spelled),
                Err(NoTag::Null) => false,
                Err(NoTag::Unknown) => true,
            };
            if is_full {
                self.touch_any(touched);
            }
        }
        for (kind, column) in self.searched() {
            match value(column) {
                Filling::Text(text) => touched.search(kind, &text),
                Filling::Null => {}
                Filling::Unknown => touched.search_any(kind),
            }
        }
    }

    /// The searched columns, each with the kind of its tags.
    fn searched(&self) -> impl Iterator<Item = (&str, &str)> {
        self.searches.iter().flat_map(|Searches { kind, columns }| {
            columns.iter().map(move |column| (kind.as_str(), column.as_str()))
        })
    }

    /// Touches the tags for any row.
    fn touch_any(&self, touched: &mut TouchedTags) {
        touched.by_table(&self.table);
        if let Some(searches) = &self.searches {
            touched.search_any(&searches.kind);
        }
        for template in &self.tags {
            if let Ok(spelled) = template.fill(|_| Filling::Unknown) {
                touched.add_spelled(&spelled);
            }
        }
        if self.any_row.is_empty() && !self.tags.iter().all(|tag| tag.is_constant()) {
            touched.add_everything();
        }
        for tag in &self.any_row {
            touched.add(tag);
        }
    }
}

impl ByCascade {
    /// A column that the schema does not have counts as generated.
    fn of(rule: &Rule, schema: &Schema) -> ByCascade {
        let table = schema.table(&rule.table);
        let is_generated = |name: &String| table?.column(name).map(|column| column.is_generated);
        match rule.watched.iter().any(|name| is_generated(name).unwrap_or(true)) {
            false if !rule.watched.is_empty() => {
                ByCascade::IfChanged(rule.watched.iter().map(|name| name.to_lowercase()).collect())
            }
            _ => ByCascade::Always,
        }
    }

    fn applies_to(&self, columns: &[String]) -> bool {
        match self {
            ByCascade::Always => true,
            ByCascade::IfChanged(watched) => columns.iter().any(|column| watched.contains(column)),
        }
    }
}

fn images(kind: RowKind) -> &'static [Image] {
    match kind {
        RowKind::Insert => &[Image::After],
        RowKind::Update => &[Image::Before, Image::After],
        RowKind::Delete => &[Image::Before],
    }
}

fn value<'a>(row: &'a dyn RowImages, image: Image, column: &str) -> Filling<'a> {
    let cell = match (image, row.kind()) {
        (Image::Before, _) => row.before(column),
        (Image::After, RowKind::Update) => match row.after(column) {
            Cell::LeftOut => row.before(column),
            cell => cell,
        },
        (Image::After, _) => row.after(column),
    };
    match cell {
        Cell::Text(text) => Filling::Text(text),
        Cell::Null => Filling::Null,
        Cell::LeftOut | Cell::Unknown => Filling::Unknown,
    }
}
