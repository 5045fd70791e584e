//! The parts that all ways of answering a request share: the site that the request is for, the choice of a stored
//! page, and the response on its way to the client.
//!
//! Start reading at [`site`] (a site with everything that its requests need) and [`lookup`] (whether a stored page
//! answers a request). Nothing here sends a request to the origin, or stores a page.
//!
//! | subject | modules |
//! |---|---|
//! | the site that a request is for | `site` (with the choice by host), `waiter` (the followers of its renders), `searches` |
//! | a stored page as the answer | `plan`, `lookup`, `stored_answer`, `serve` |
//! | a redirect as the answer | `serve`, `redirect_forms` (laid out for plain requests) |
//! | ESI templates | `esi` (which responses are templates), `template_mark` |
//! | a client that waits for the origin | `visitors` (evidence about it), `deferral` (the answer if it is deferred), `services` (`crawler_names` and `challenge`, which are asked about it) |
//! | proof | `audit` (hits to compare), `trial` (answers to compare), `byte_account` (their memory) |
//! | files | `static_files`, `file_cache`, `real_file` (opened without links), `error_pages` |
//! | content on its way to the client | `body`, `codings`, `coding_queue`, `response_spool`, `send_backlog`, `in_flight`, `log_entry` |

pub mod audit;
pub mod body;
pub mod byte_account;
pub mod challenge;
pub mod coding_queue;
pub mod codings;
mod crawler_names;
pub mod deferral;
pub mod error_pages;
pub mod esi;
pub mod file_cache;
pub mod in_flight;
pub mod log_entry;
pub mod lookup;
pub mod plan;
mod real_file;
pub mod redirect_forms;
pub mod response_spool;
pub mod searches;
pub mod send_backlog;
pub mod serve;
pub mod services;
pub mod site;
pub mod static_files;
pub mod stored_answer;
pub mod template_mark;
pub mod trial;
pub mod visitors;
pub mod waiter;
