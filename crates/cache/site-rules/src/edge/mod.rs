//! Rules that do not concern the cache: access (`deny`), scripts (`php`, `site.entry_points`), and the fields of
//! responses. Each kind has its own list, and its own first match; the fields of all matching rules apply.
//!
//! | file | contents |
//! |---|---|
//! | `read` | reads the keys of these kinds, and refuses contradictions |
//! | `paths` | the forms of a path, and what matches them |
//! | `access` | `deny` |
//! | `scripts` | `php`, `site.entry_points` |
//! | `response_fields` | `set_headers`, `add_headers`, `remove_headers`, `file_cache` |
//!
//! The order of the kinds is in `exchange::steps`.

mod access;
mod paths;
mod read;
mod response_fields;
mod scripts;

pub use access::{AccessRequest, Denial};
pub use read::FileSurroundings;
pub use scripts::{ScriptPath, ScriptRefusal};

pub(crate) use read::{complete, is_edge_rule, read};

use crate::rules::SiteRules;
use access::AccessRule;
use response_fields::FieldRule;
use scripts::{EntryPoints, ScriptRule};

/// The rules of a site that do not concern the cache.
#[derive(Clone, Debug, Default)]
pub(crate) struct EdgeRules {
    access: Vec<AccessRule>,
    scripts: Vec<ScriptRule>,
    entry_points: Option<EntryPoints>,
    fields: Vec<FieldRule>,
    fields_follow_path: bool,
    fields_print: u64,
    /// The names of all rules, if they have one.
    names: Vec<Option<Box<str>>>,
}

impl SiteRules {
    /// The name of the rule with this number, if it has one.
    pub fn rule_name(&self, number: usize) -> Option<&str> {
        self.edge.names.get(number.checked_sub(1)?)?.as_deref()
    }
}
