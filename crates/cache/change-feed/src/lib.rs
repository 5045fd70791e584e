//! Which pages a changed row concerns: rules as data, a schema, a row before and after; out come tags.
//!
//! [`Rules::compile`] reads the rules and says what is wrong with them, [`Feed::new`] holds them
//! against a schema, and [`Feed::row`], [`Feed::table`] turn changes into [`Touched`]. [`suggest`]
//! proposes rules for a schema. [`text`] finds the words of searches in what has changed.
//!
//! Invariants: nothing that may have changed is left out; the row before and the row after both count.
//! What is not known, cannot be read, or is about a whole table touches what stands for *any row* of it:
//! tags without columns, the rule's `any_row`, and where a tag with columns has neither, every page. Rows
//! that a foreign key changes inside the database are told by no server: a change of the parent counts as
//! one of the children that it reaches. Everything is bounded.
//! Not here: sockets, streams, positions, what is done with the tags.

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
pub use feed::{Cell, Feed, RowImages, RowKind, Wanted};
pub use rule::{ChangeRule, CheckError, RuleError, Rules, Searches};
pub use suggest::{NoWordPress, suggest, suggest_for_wordpress};
pub use touched::{Searched, TEXT_BYTES_MAX, Touched};
