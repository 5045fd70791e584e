//! The dependencies of pages beside their tags: the statements that their renders have run ([`footprints`]) and the
//! terms that they search for ([`terms`]), and the changed rows that touch them.
//!
//! Both are tags of the store in the end: a look at changed rows returns the tags that change. Start reading at
//! [`footprints::Footprints`]. Not here: the SQL of a statement (`footprint`), the pages and the changes
//! (`site-state`), the stream of a database (`change-sources`).

pub mod footprints;
pub mod terms;
