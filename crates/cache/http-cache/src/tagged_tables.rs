//! `Pagewell-Tagged-Tables` and `Pagewell-Table-Tags`: the tables of a page's statements whose changes its tags tell,
//! and the tags that stand for its statements. Pagewell's plugin for WordPress sends both.
//!
//! Where the statements of the page are known too (automatic dependencies), each table is decided by one of the two:
//!
//! | field | its names | where the statements are known |
//! |---|---|---|
//! | `Pagewell-Tagged-Tables` | tables: `wp_posts wp_postmeta` | statements of these tables alone do not count |
//! | `Pagewell-Table-Tags` | tags of the page: `table:tides` | these tags do not count |
//!
//! Invariants: without tags nothing is left out, and no tag that is not one of the page is removed. Not here: how
//! statements become known.

use crate::stored::StoredResponse;
use crate::tags::{TABLE_TAGS_FIELD, TAGGED_TABLES_FIELD, Tags, TagsRefused};
use http::HeaderMap;

/// The maximum number of tables that are read. Statements of the others count.
const TABLES_MAX: usize = 100;

impl StoredResponse {
    /// Returns the tables whose changes the tags of the page tell.
    pub fn tagged_tables(&self) -> Vec<String> {
        if self.tags().is_empty() {
            return Vec::new();
        }
        names(&self.internal, TAGGED_TABLES_FIELD).take(TABLES_MAX).map(str::to_owned).collect()
    }

    /// Removes the tags that stand for statements, because these are known. Their names are kept: a page that a 304
    /// freshens has no statements, so it gets these tags back.
    pub fn leave_out_table_tags(&mut self) {
        let left_out: Vec<&str> = names(&self.internal, TABLE_TAGS_FIELD).collect();
        let is_kept = |tag: &&[u8]| !left_out.iter().any(|own| own.as_bytes() == *tag);
        if !left_out.is_empty()
            && let Ok(tags) = Tags::of(self.tags().iter().filter(is_kept))
        {
            self.facts.set_tags(tags);
        }
        self.internal.remove(TAGGED_TABLES_FIELD);
    }

    /// The tags that were left out.
    pub(crate) fn left_out_tags(&self) -> Result<Tags, TagsRefused> {
        Tags::of(names(&self.internal, TABLE_TAGS_FIELD).map(str::as_bytes))
    }

    /// Removes both fields, because the statements of the page are not known.
    pub fn forget_table_fields(&mut self) {
        self.internal.remove(TAGGED_TABLES_FIELD);
        self.internal.remove(TABLE_TAGS_FIELD);
    }
}

/// The names in a field; a line that is no text has none.
fn names<'f>(fields: &'f HeaderMap, name: &'static str) -> impl Iterator<Item = &'f str> {
    let lines = fields.get_all(name).iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split([' ', ',']).filter(|name| !name.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderValue, StatusCode};
    use http_fields::time::Timestamp;

    fn page(tags: &[&str], fields: &[(&'static str, &'static str)]) -> StoredResponse {
        let mut stored = StoredResponse::of_file(HeaderMap::new(), 0, Timestamp(0));
        assert_eq!(stored.status, StatusCode::OK);
        stored.set_tags(Tags::of(tags.iter().map(|tag| tag.as_bytes())).expect("few"));
        for (name, value) in fields {
            stored.internal.append(*name, HeaderValue::from_static(value));
        }
        stored
    }

    fn tags(stored: &StoredResponse) -> Vec<String> {
        stored.tags().iter().map(|tag| String::from_utf8_lossy(tag).into_owned()).collect()
    }

    #[test]
    fn the_tags_that_are_named_are_left_out_and_no_others() {
        let fields = [
            (TABLE_TAGS_FIELD, "table:tides table:none"),
            (TABLE_TAGS_FIELD, "2/table:ships"),
            (TAGGED_TABLES_FIELD, "wp_posts  wp_terms"),
        ];
        let mut stored = page(&["site", "table:tides", "2/table:ships", "table:tides2"], &fields);
        assert_eq!(stored.tagged_tables(), ["wp_posts", "wp_terms"]);
        stored.leave_out_table_tags();
        assert_eq!(tags(&stored), ["site", "table:tides2"]);
        assert!(stored.tagged_tables().is_empty());
        // A page that is freshened has no statements.
        let back = stored.left_out_tags().expect("few");
        let back: Vec<&[u8]> = back.iter().collect();
        assert_eq!(back, [&b"table:tides"[..], b"table:none", b"2/table:ships"]);
    }

    #[test]
    fn without_tags_no_table_is_tagged_and_without_the_field_no_tag_is_left_out() {
        let none = page(&[], &[(TAGGED_TABLES_FIELD, "wp_posts")]);
        assert!(none.tagged_tables().is_empty());
        let mut stored = page(&["table:tides"], &[]);
        stored.leave_out_table_tags();
        assert_eq!(tags(&stored), ["table:tides"]);
    }
}
