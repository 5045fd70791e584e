//! Database-driven invalidation: from change rules, a schema and a row before and after a change to the
//! tags that the change invalidates (*touches*).
//!
//! [`Rules::compile`] reads the rules and reports errors in them. [`Feed::new`] applies them to a schema,
//! and [`Feed::row`] and [`Feed::table`] turn changes into [`TouchedTags`]. [`suggest`] proposes rules for a
//! schema. [`text`] finds the words of searches in changed text.
//!
//! Invariants: nothing that may have changed is left out, and the row before and after both count. Unknown
//! values and changes of a whole table count as *any row*: they touch tags without columns, and the rule's
//! `any_row` or every page. Database servers do not report child rows that a foreign key changes: a change
//! of the parent counts as one of its children. Everything has a limit. Not in this crate: sockets,
//! streams, positions, the use of the tags.

mod condition;
mod feed;
mod graph;
mod rule;
pub mod schema;
mod suggest;
mod template;
pub mod text;
mod touched;

pub use condition::{OneOrMany, Value, WrittenConditions};
pub use feed::{Cell, Feed, RequiredChanges, RowImages, RowKind};
pub use rule::{ChangeRule, CheckError, RuleError, Rules, Searches};
pub use suggest::{NoWordPress, suggest, suggest_for_wordpress};
pub use touched::{TEXT_BYTES_MAX, TouchedSearches, TouchedTags};
