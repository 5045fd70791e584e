//! The rules for WordPress with Pagewell's plugin: `wordpress.toml`, with the prefix of the site's tables.
//!
//! Keep that file consistent with the plugin: `php/wordpress/pagewell/src/Tags.php` and the files
//! `*Events.php`.

use super::quoted;
use crate::schema::Schema;
use std::fmt;

/// The rules, with `@` as a placeholder for the table prefix.
const RULES: &str = include_str!("wordpress.toml");
/// Tables that identify a WordPress installation.
const TABLES: [&str; 4] = ["posts", "postmeta", "options", "term_relationships"];

/// The reason why there are no rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoWordPress {
    /// There are no WordPress tables.
    NotFound,
    /// There are several sites, or a network of blogs: their table prefixes.
    Several(Vec<String>),
}

impl fmt::Display for NoWordPress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoWordPress::NotFound => f.write_str(
                "the account sees no tables of a WordPress (wp_posts, wp_postmeta, wp_options, wp_term_relationships)",
            ),
            NoWordPress::Several(prefixes) => write!(
                f,
                "there are several WordPress sites or a network of blogs (table prefixes {}): these rules are for one site",
                prefixes.join(", ")
            ),
        }
    }
}

impl std::error::Error for NoWordPress {}

/// The rules for the WordPress in the schema. `database` is the name of the database, if the site has
/// several.
///
/// # Errors
/// There is no WordPress, or more than one.
pub fn suggest_for_wordpress(
    schema: &Schema,
    database: Option<&str>,
) -> Result<String, NoWordPress> {
    let names: Vec<&str> = schema.tables.values().map(|table| table.name.as_str()).collect();
    let has_all = |prefix: &str| {
        TABLES.iter().all(|table| names.iter().any(|name| *name == format!("{prefix}{table}")))
    };
    let prefixes = names.iter().filter_map(|name| name.strip_suffix(TABLES[0]));
    let prefixes: Vec<&str> = prefixes.filter(|prefix| has_all(prefix)).collect();
    let prefix = match prefixes.as_slice() {
        [] => return Err(NoWordPress::NotFound),
        [prefix] => prefix,
        several => {
            return Err(NoWordPress::Several(
                several.iter().map(|one| (*one).to_owned()).collect(),
            ));
        }
    };
    let rules = RULES.replace("\"@", &format!("\"{prefix}"));
    // A rule for a missing table would be an error.
    let is_there = |block: &&str| {
        let table = block.lines().find_map(|line| line.strip_prefix("table = \""));
        table.is_none_or(|table| names.contains(&table.trim_end_matches('"')))
    };
    let rules = rules.split("\n\n").filter(is_there).collect::<Vec<_>>().join("\n\n");
    Ok(match database {
        None => rules,
        Some(database) => {
            rules.replace("[[change]]\n", &format!("[[change]]\ndatabase = {}\n", quoted(database)))
        }
    })
}
