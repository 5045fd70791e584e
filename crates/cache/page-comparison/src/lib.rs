//! Whether two renders of a page differ, in what, and why: the judgement of a trial and of an audit.
//!
//! Start reading at `inquiry.rs`: an [`Inquiry`] follows one stored page that differs from a render, says which sample
//! it needs next, and ends with a [`Conclusion`]. `tokens.rs` makes tokens of a response, `difference.rs` compares
//! two, `noise.rs` knows the places that change without a cause, `cause.rs` searches for the request field that a
//! response depends on, and `record.rs` and `report.rs` keep and show what was found.
//!
//! Invariants: no text of a response is kept but the few words that `words.rs` gives a caller. A token is a keyed hash, and a place has names of elements,
//! attributes, members and fields only; names that look like a secret are replaced. Every size is bounded by a
//! constant with its reason beside it. There is no I/O, no clock and no lock here: time is an argument.

mod bounds;
mod cause;
mod class;
mod difference;
mod html;
mod inquiry;
mod json;
mod kept_words;
mod noise;
mod number;
mod pattern;
mod place;
mod problem_groups;
mod record;
mod report;
mod tokens;
mod url_parameters;
mod visitors;
mod word_ends;
mod words;

pub use bounds::ConfidenceBound;
pub use cause::{CauseSearch, ControlRender, DifferenceCause, RequestPart, is_replayable_url};
pub use class::{Circumstances, DifferenceClass, PageDependence, UnjudgedReason};
pub use difference::{PageDifference, differing, values_at};
pub use inquiry::{Conclusion, Inquiry, InquiryStep, PageSample, SAMPLES_BEFORE_VERDICT};
pub use noise::{PageNoise, PatternNoise};
pub use pattern::{OTHER_PATHS, PathPatterns, example_url, is_token_like, path_pattern};
pub use record::{AcceptedDifference, FoundProblem, SeenParameter, TrialRecord};
pub use report::{PossibleSaving, ReportLine, TrialOutcome, TrialReport};
pub use tokens::{MAX_COMPARED_BYTES, PageTokens, TokenSecret};
pub use url_parameters::{IdleParameter, UnjudgedParameter};
pub use visitors::ComparedVisitors;
pub use words::{DifferingText, differing_words};
