//! Automatic dependencies: from the SQL that a page's render runs to the rows that it reads, and from a
//! changed row to the statements that it touches.
//!
//! [`StatementReader::read`] turns the text of a statement into its footprints: for each table a necessary condition
//! on the rows, the columns that the result depends on, and the partners that a row needs in other tables.
//! [`RowEvent`] is a changed row, and [`Footprint::touch`] says whether it touches a footprint.
//!
//! Invariant: wherever a change of rows changes the result of a statement, a footprint of the statement is
//! touched. A part that is not understood widens a footprint, up to the whole table. Reads that cannot be known at
//! all are an error ([`UnknownReads`]). Everything has a limit. Not in this crate: I/O, the clock, pages, and how
//! statements and rows get here.

mod budget;
mod cascade;
mod compare;
mod condition;
mod describe;
mod footprint;
mod functions;
mod index;
mod join;
mod lexer;
mod literal;
mod nearest;
mod pattern;
pub mod profile;
mod reader;
mod row;
mod saved;
pub mod schema;
pub mod sql_text;
mod unknown_reads;
mod value_text;

pub use budget::MatchBudget;
pub use describe::RowText;
pub use footprint::{Footprint, FootprintTouch, Reads};
pub use index::{CandidateGroup, FoundStatements, Index, RowKeys, StatementCandidate, StatementId};
pub use join::{Affects, Lookup, PartnerRows, RecentRows};
pub use lexer::{SqlCharset, SqlMode};
pub use nearest::{NearestLookup, RowInGroup};
pub use reader::{StatementReader, is_logged_engine};
pub use row::{OwnTransaction, RowEvent, SqlRow, SqlValue, TableChange};
pub use saved::{InvalidReads, ReadsLoader};
pub use unknown_reads::UnknownReads;
