//! The tables whose rows can change without an event that is read. Pages that read them cannot be kept up to date.
//!
//! | table | its rows change |
//! |---|---|
//! | a view, a sequence | with those of other tables, or in the server's memory |
//! | an engine that is not known to log every change | elsewhere (`footprint::is_logged_engine`) |
//! | MyISAM, beside a MERGE table | in the name of the MERGE table |
//! | a child of a table in another database, or of one that the account may not see, by a foreign key with an action | with that table: the engine changes them, and logs nothing |
//! | a child of one of these, in the same way | the same |
//!
//! Rows that triggers, events and routines change are in the log like any others. Not here: what the log leaves out by
//! a setting (`sql_log_bin`, `binlog_do_db`), and MERGE tables of other databases, which the account need not see.

use super::followed::ListedTable;
use change_feed::schema::{Action, ForeignKey};
use footprint::is_logged_engine;
use std::collections::{BTreeMap, HashSet};
use std::fmt;

/// A foreign key to a table of another database, by which the engine changes rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutsideKey {
    /// The table of this database that has the key.
    pub child: String,
    /// The referenced table, with its database.
    pub parent: String,
}

/// The reason why the rows of a table can change without an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UntrackedReason {
    /// It is a view.
    View,
    /// It is neither a table nor a view: the kind.
    Kind(String),
    /// The storage engine.
    Engine(String),
    /// A MERGE table of the database may consist of it.
    Merged,
    /// A foreign key to this table, which is not followed.
    Parent(String),
    /// A foreign key to this table, whose rows change without an event, too.
    Child(String),
}

impl fmt::Display for UntrackedReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UntrackedReason::View => f.write_str("it is a view"),
            UntrackedReason::Kind(kind) => {
                write!(f, "it is of the kind {kind}, whose changes are not followed")
            }
            UntrackedReason::Engine(engine) => write!(
                f,
                "its storage engine {engine} can change rows that the change stream does not have"
            ),
            UntrackedReason::Merged => {
                f.write_str("a MERGE table of this database can change its rows in its own name")
            }
            UntrackedReason::Parent(name) => write!(
                f,
                "a foreign key changes its rows together with those of {name}, which is not followed"
            ),
            UntrackedReason::Child(parent) => write!(
                f,
                "a foreign key changes its rows together with those of {parent}, which change without an event"
            ),
        }
    }
}

/// The tables of a database whose rows can change without an event, each with the reason.
pub fn untracked(
    listed: &[ListedTable<'_>],
    keys: &[ForeignKey],
    outside: &[OutsideKey],
) -> BTreeMap<String, UntrackedReason> {
    let mut found = BTreeMap::new();
    let has_merge = listed.iter().any(|table| table.engine.eq_ignore_ascii_case("MRG_MyISAM"));
    for table in listed {
        let reason = match table.kind {
            kind if kind.contains("VIEW") => UntrackedReason::View,
            "BASE TABLE" | "SYSTEM VERSIONED" => match table.engine {
                engine if !is_logged_engine(engine) => UntrackedReason::Engine(engine.to_owned()),
                engine if has_merge && engine.eq_ignore_ascii_case("MyISAM") => {
                    UntrackedReason::Merged
                }
                _ => continue,
            },
            kind => UntrackedReason::Kind(kind.to_owned()),
        };
        found.insert(table.name.to_owned(), reason);
    }
    for OutsideKey { child, parent } in outside {
        found.entry(child.clone()).or_insert(UntrackedReason::Parent(parent.clone()));
    }
    let visible: HashSet<&str> = listed.iter().map(|table| table.name).collect();
    // Each round finds the children of the one before.
    loop {
        let before = found.len();
        let acts =
            |key: &&ForeignKey| key.on_delete != Action::Refuse || key.on_update != Action::Refuse;
        for key in keys.iter().filter(acts).filter(|key| key.child != key.parent) {
            let reason = if !visible.contains(key.parent.as_str()) {
                UntrackedReason::Parent(key.parent.clone())
            } else if found.contains_key(&key.parent) {
                UntrackedReason::Child(key.parent.clone())
            } else {
                continue;
            };
            found.entry(key.child.clone()).or_insert(reason);
        }
        if found.len() == before {
            return found;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(child: &str, parent: &str, on_delete: Action) -> ForeignKey {
        ForeignKey {
            child: child.into(),
            columns: vec!["p".into()],
            parent: parent.into(),
            parent_columns: vec!["id".into()],
            on_delete,
            on_update: Action::Refuse,
        }
    }

    #[test]
    fn each_way_in_which_rows_change_without_an_event_is_found() {
        let table = |(name, kind, engine): &(&'static str, &'static str, &'static str)| {
            ListedTable { name, kind, engine, shape: None }
        };
        let listed = [
            ("plain", "BASE TABLE", "InnoDB"),
            ("history", "SYSTEM VERSIONED", "InnoDB"),
            ("old", "BASE TABLE", "MyISAM"),
            ("v", "VIEW", ""),
            ("number", "SEQUENCE", "InnoDB"),
            ("far", "BASE TABLE", "FEDERATED"),
            ("fast", "BASE TABLE", "MEMORY"),
            ("op", "BASE TABLE", "InnoDB"),
            ("child", "BASE TABLE", "InnoDB"),
            ("grandchild", "BASE TABLE", "InnoDB"),
            ("careful", "BASE TABLE", "InnoDB"),
            ("hidden", "BASE TABLE", "InnoDB"),
        ];
        let listed: Vec<_> = listed.iter().map(table).collect();
        let keys = [
            key("grandchild", "child", Action::Set),
            key("plain", "op", Action::Cascade),
            key("op", "op", Action::Cascade),
            key("careful", "child", Action::Refuse),
            key("hidden", "unseen", Action::Cascade),
        ];
        let outside = [OutsideKey { child: "child".into(), parent: "other.op".into() }];
        let found = untracked(&listed, &keys, &outside);
        let names: Vec<&str> = found.keys().map(String::as_str).collect();
        assert_eq!(names, ["child", "far", "fast", "grandchild", "hidden", "number", "v"]);
        assert!(found["child"].to_string().contains("those of other.op"), "{}", found["child"]);
        assert_eq!(found["grandchild"], UntrackedReason::Child("child".into()));
        let merge = table(&("m", "BASE TABLE", "MRG_MyISAM"));
        let listed: Vec<_> = listed.into_iter().chain([merge]).collect();
        let found = untracked(&listed, &[], &[]);
        assert_eq!(found["old"], UntrackedReason::Merged);
        assert!(found.contains_key("m") && !found.contains_key("history"));
    }
}
