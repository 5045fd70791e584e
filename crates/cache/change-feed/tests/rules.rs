//! Rules for the tables of a newspaper: the tags that each kind of change touches, and the rules that are
//! refused.

mod common;

use change_feed::schema::{Action, Schema};
use change_feed::{
    Cell, ChangeRule, CheckError, Feed, NoWordPress, RequiredChanges, RowKind, Rules, Searches,
    TEXT_BYTES_MAX, TouchedSearches, TouchedTags, suggest, suggest_for_wordpress,
};
use common::{Row, foreign_key, rule, table};

fn news() -> Schema {
    let mut schema = Schema::default();
    schema.add(table("news", &["id", "title", "seen"]));
    schema.add(table("comments", &["id", "news_id", "body"]));
    schema.add(table("votes", &["id", "comment_id"]));
    schema.foreign_keys.push(foreign_key("comments", "news_id", "news", Action::Cascade));
    schema
}

fn feed(rules: &[ChangeRule], schema: &Schema) -> Feed {
    let rules = Rules::compile(rules).expect("rules");
    rules.check(schema).expect("they fit");
    Feed::new(&rules, schema)
}

fn comments() -> ChangeRule {
    rule("comments", &["comments", "news:{news_id}"])
}

fn touched(feed: &Feed, table: &str, row: &Row) -> Vec<String> {
    let mut touched = TouchedTags::default();
    feed.row(table, row, &mut touched);
    told(&touched)
}

fn told(touched: &TouchedTags) -> Vec<String> {
    let everything = touched.is_everything().then(|| "*".to_owned());
    touched.tags().map(str::to_owned).chain(everything).collect()
}

#[test]
fn the_row_before_and_the_row_after_count() {
    let feed = feed(&[comments()], &news());
    let row = Row::insert(&[("id", "1"), ("news_id", "4"), ("body", "x")]);
    assert_eq!(touched(&feed, "comments", &row), ["comments", "news:4"]);
    let row = Row::update(&[("id", "1"), ("news_id", "4")], &[("id", "1"), ("news_id", "5")]);
    assert_eq!(touched(&feed, "comments", &row), ["comments", "news:4", "news:5"]);
    let row = Row::delete(&[("id", "1"), ("news_id", "5")]);
    assert_eq!(touched(&feed, "comments", &row), ["comments", "news:5"]);
}

#[test]
fn other_columns_do_not_matter_but_those_in_tags_do() {
    let mut only = rule("news", &["news:{id}"]);
    only.when_changed = vec!["title".into()];
    let feed = feed(&[only], &news());
    let before = [("id", "1"), ("title", "a"), ("seen", "0")];
    let with = |after: &[(&str, &str)]| touched(&feed, "news", &Row::update(&before, after));
    assert!(with(&[("id", "1"), ("title", "a"), ("seen", "1")]).is_empty());
    assert_eq!(with(&[("id", "1"), ("title", "b"), ("seen", "0")]), ["news:1"]);
    assert_eq!(with(&[("id", "2"), ("title", "a"), ("seen", "0")]), ["news:1", "news:2"]);
    let gone = Row::delete(&before);
    assert_eq!(touched(&feed, "news", &gone), ["news:1"]);
}

#[test]
fn a_column_left_out_is_unchanged_after_and_unknown_before() {
    let feed = feed(&[comments()], &news());
    // A minimal image: the key before, and the written columns after.
    let minimal = Row::update(&[("id", "1")], &[("body", "x")]);
    assert_eq!(touched(&feed, "comments", &minimal), ["comments", "*"]);
    let full_before = Row::update(&[("id", "1"), ("news_id", "4")], &[("body", "x")]);
    assert_eq!(touched(&feed, "comments", &full_before), ["comments", "news:4"]);
}

#[test]
fn null_is_in_no_tag_and_an_unreadable_value_is_any_row() {
    let mut with = comments();
    with.any_row = vec!["news".into()];
    let feed = feed(&[with], &news());
    let null = Row::insert(&[("id", "1")]).cell("news_id", Cell::Null);
    assert_eq!(touched(&feed, "comments", &null), ["comments"]);
    let unknown = Row::insert(&[("id", "1")]).cell("news_id", Cell::Unknown);
    assert_eq!(touched(&feed, "comments", &unknown), ["comments", "news", "news:*"]);
    let mut all = TouchedTags::default();
    feed.table("comments", &mut all);
    assert_eq!(told(&all), ["comments", "news", "news:*"]);
}

#[test]
fn deleting_a_parent_deletes_its_children() {
    let mut schema = news();
    schema.foreign_keys.push(foreign_key("votes", "comment_id", "comments", Action::Set));
    let feed = feed(&[comments(), rule("votes", &["votes"])], &schema);
    // The children's rows are in no stream: the key's value is known, the others are unknown.
    let gone = Row::delete(&[("id", "4")]);
    assert_eq!(touched(&feed, "news", &gone), ["comments", "news:4", "votes"]);
    let renumbered = Row::update(&[("id", "4")], &[("id", "5")]);
    let told = touched(&feed, "news", &renumbered);
    assert_eq!(told, ["comments", "news:4", "news:5"]);
    let other = Row::update(&[("id", "4"), ("title", "a")], &[("id", "4"), ("title", "b")]);
    assert!(touched(&feed, "news", &other).is_empty());
    assert!(touched(&feed, "news", &Row::insert(&[("id", "4")])).is_empty());
}

#[test]
fn text_keys_may_be_equal_without_being_the_same() {
    let mut schema = news();
    for column in &mut schema.tables.get_mut("comments").expect("it is there").columns {
        column.is_loosely_equal = true;
    }
    let feed = feed(&[comments()], &schema);
    assert_eq!(touched(&feed, "news", &Row::delete(&[("id", "4")])), ["comments", "*"]);
}

#[test]
fn a_table_that_refers_to_itself_ends() {
    let mut schema = news();
    schema.foreign_keys = vec![foreign_key("comments", "news_id", "comments", Action::Cascade)];
    let feed = feed(&[rule("comments", &["c:{id}"])], &schema);
    assert_eq!(touched(&feed, "comments", &Row::delete(&[("id", "4")])), ["c:4", "*"]);
}

#[test]
fn only_tables_with_rules_are_read() {
    let feed = feed(&[comments(), rule("votes", &["votes"])], &news());
    assert_eq!(feed.wanted("comments"), RequiredChanges::Rows);
    assert_eq!(feed.wanted("COMMENTS"), RequiredChanges::Rows);
    assert_eq!(feed.wanted("news"), RequiredChanges::Rows);
    assert_eq!(feed.wanted("votes"), RequiredChanges::Table);
    assert_eq!(feed.wanted("other"), RequiredChanges::Nothing);
}

#[test]
fn an_error_for_a_missing_table_or_column_lists_the_existing_ones() {
    let check = |rule: ChangeRule| {
        let rules = Rules::compile(&[rule]).expect("rules");
        rules.check(&news()).expect_err("it does not fit").to_string()
    };
    let said = check(rule("comment", &["c"]));
    assert!(said.contains("no table comment ") && said.contains("comments, news"), "{said}");
    let said = check(rule("comments", &["news:{newsid}"]));
    assert!(said.contains("no column newsid") && said.contains("id, news_id, body"), "{said}");
    for (rule, name) in [
        (rule("", &["a"]), "no-table"),
        (rule("news", &[]), "no-tags"),
        (rule("news", &["{"]), "bad-tag"),
        (ChangeRule { any_row: vec!["{id}".into()], ..comments() }, "any-row-has-column"),
    ] {
        assert_eq!(Rules::compile(&[rule]).expect_err("refused").as_str(), name);
    }
}

#[test]
fn too_many_tags_become_any_row() {
    let feed = feed(&[comments()], &news());
    let mut touched = TouchedTags::default();
    for id in 0..20_000 {
        let id = id.to_string();
        feed.row("comments", &Row::insert(&[("id", &id), ("news_id", &id)]), &mut touched);
    }
    assert!(touched.is_everything());
    assert_eq!(touched.tags().count(), 10_001);
}

#[test]
fn suggested_rules_compile() {
    let text = suggest(&news(), None);
    assert!(text.contains(
        "table = \"comments\"\ntags = [\"comments\", \"comments:{id}\", \"news:{news_id}\"]"
    ));
    assert_eq!(Row::insert(&[]).kind, RowKind::Insert);
}

#[test]
fn the_tables_whose_rules_touch_or_could_touch_are_listed() {
    let rules = [comments(), rule("news", &["news", "news:{id}"]), rule("votes", &["votes"])];
    let feed = feed(&rules, &news());
    let mut touched = TouchedTags::default();
    feed.row("comments", &Row::insert(&[("id", "1"), ("news_id", "4")]), &mut touched);
    assert_eq!(touched.tables().collect::<Vec<_>>(), ["comments"]);
    feed.table("news", &mut touched);
    assert_eq!(touched.tables().collect::<Vec<_>>(), ["comments", "news"]);

    let rules = Rules::compile(&rules).expect("rules");
    let could = |tag: &str| -> Vec<String> {
        rules.touching(tag).map(|(table, tag)| format!("{table} {tag}")).collect()
    };
    assert_eq!(could("news:4"), ["comments news:{news_id}", "news news:{id}"]);
    assert_eq!(could("votes"), ["votes votes"]);
    assert!(could("nothing").is_empty());
}

/// A row touches the tag that the PHP library gives its page: `contract/tags.json`, which the library's
/// tests read too.
#[test]
fn a_row_touches_the_tag_that_the_library_gives_its_page() {
    let text = include_str!("../../../../contract/tags.json");
    let contract: serde_json::Value = serde_json::from_str(text).expect("JSON");
    let vectors = contract["tags"].as_array().expect("a list");
    assert!(!vectors.is_empty());
    for vector in vectors {
        let text = |name: &str| vector[name].as_str().expect("text").to_owned();
        let feed = feed(&[rule("news", &[&text("template")])], &news());
        let told = touched(&feed, "news", &Row::insert(&[("id", &text("id"))]));
        assert!(told.contains(&text("tag")), "{vector}: {told:?}");
    }
}

/// A page made from one row has only `news:4` and `news:*`. A change of any row must therefore touch one of
/// them.
#[test]
fn any_row_reaches_every_page_of_one() {
    let mut with = comments();
    with.any_row = vec!["comments".into()];
    let feed = feed(&[with], &news());
    let mut all = TouchedTags::default();
    feed.table("comments", &mut all);
    assert_eq!(told(&all), ["comments", "news:*"]);
    let moved = Row::update(&[("id", "1")], &[("id", "1"), ("news_id", "5")]);
    assert_eq!(touched(&feed, "comments", &moved), ["comments", "news:*", "news:5"]);
}

#[test]
fn a_generated_column_changes_with_the_key() {
    let mut schema = news();
    let watching = |watched: &str| {
        let mut only = rule("comments", &["shown"]);
        only.when_changed = vec![watched.into()];
        only
    };
    let renumbered = Row::update(&[("id", "4")], &[("id", "5")]);
    for column in &mut schema.tables.get_mut("comments").expect("it is there").columns {
        column.is_generated = column.name == "body";
    }
    let worked_out = feed(&[watching("body")], &schema);
    assert_eq!(touched(&worked_out, "news", &renumbered), ["shown"]);
    for column in &mut schema.tables.get_mut("comments").expect("it is there").columns {
        column.is_generated = false;
    }
    let other = feed(&[watching("body")], &schema);
    assert!(touched(&other, "news", &renumbered).is_empty());
}

fn searching(when_changed: &[&str]) -> ChangeRule {
    let columns = vec!["title".to_owned(), "body".to_owned()];
    let searches = Some(Searches { kind: "search".into(), columns });
    let when_changed = when_changed.iter().map(|column| (*column).to_owned()).collect();
    ChangeRule { table: "news".into(), searches, when_changed, ..ChangeRule::default() }
}

#[test]
fn searches_are_touched_by_the_text_before_and_the_text_after() {
    let mut schema = Schema::default();
    schema.add(table("news", &["id", "title", "body", "seen"]));
    let feed = feed(&[searching(&["title"])], &schema);
    assert_eq!(feed.wanted("news"), RequiredChanges::Rows);
    let searched = |row: &Row| {
        let mut touched = TouchedTags::default();
        feed.row("news", row, &mut touched);
        let all: Vec<_> =
            touched.searches().map(|(kind, by)| (kind.to_owned(), by.clone())).collect();
        assert_eq!(touched.is_empty(), all.is_empty());
        all
    };
    let texts = |texts: &[&str]| {
        let texts = texts.iter().map(|text| (*text).to_owned()).collect();
        vec![("search".to_owned(), TouchedSearches::Texts(texts))]
    };
    let before = [("id", "1"), ("title", "a"), ("body", "b"), ("seen", "0")];
    assert_eq!(searched(&Row::insert(&before)), texts(&["a", "b"]));
    assert_eq!(searched(&Row::delete(&before)), texts(&["a", "b"]));
    let after = [("id", "1"), ("title", "c"), ("body", "b"), ("seen", "0")];
    assert_eq!(searched(&Row::update(&before, &after)), texts(&["a", "b", "c"]));
    // A searched column counts as if it were in a tag.
    let after = [("id", "1"), ("title", "a"), ("body", "d"), ("seen", "0")];
    assert_eq!(searched(&Row::update(&before, &after)), texts(&["a", "b", "d"]));
    let after = [("id", "1"), ("title", "a"), ("body", "b"), ("seen", "1")];
    assert_eq!(searched(&Row::update(&before, &after)), []);
    // An unknown column, and a text that is too long, touch all searches.
    let any = vec![("search".to_owned(), TouchedSearches::Any)];
    assert_eq!(searched(&Row::insert(&[("id", "1"), ("title", "a")])), any);
    let long = "x".repeat(TEXT_BYTES_MAX);
    assert_eq!(searched(&Row::insert(&[("title", "a"), ("body", &long)])), any);
    let mut touched = TouchedTags::default();
    feed.table("news", &mut touched);
    assert_eq!(touched.searches().collect::<Vec<_>>(), [("search", &TouchedSearches::Any)]);
    assert!(!touched.is_everything());
}

#[test]
fn invalid_searches_are_refused() {
    let refused = |kind: &str, columns: &[&str]| {
        let columns = columns.iter().map(|column| (*column).to_owned()).collect();
        let searches = Some(Searches { kind: kind.into(), columns });
        let rule = ChangeRule { table: "news".into(), searches, ..ChangeRule::default() };
        Rules::compile(&[rule]).err().map(|error| error.to_string())
    };
    assert_eq!(refused("search", &["title"]), None);
    for (kind, columns) in
        [("", &["title"][..]), ("a:b", &["title"]), ("größe", &["title"]), ("search", &[])]
    {
        let said = refused(kind, columns).expect("it is refused");
        assert!(said.starts_with("table news, searches: "), "{said}");
    }
    let rules = Rules::compile(&[searching(&[])]).expect("a rule");
    assert!(rules.could_touch("search:PHP") && !rules.could_touch("searches"));
    let because: Vec<_> = rules.touching("search:PHP").collect();
    assert_eq!(because, [("news", "search:… (text of title, body)".to_owned())]);
    assert!(rules.check(&news()).is_err(), "there is no column body");
    let mut blob = table("news", &["id", "title", "body"]);
    blob.columns[2].is_text = false;
    let mut schema = Schema::default();
    schema.add(blob);
    assert_eq!(rules.check(&schema), Err(CheckError::NotText("news".into(), "body".into())));
    let mut other = table("news", &["id", "title", "body"]);
    other.columns[2].collation = Some("utf8mb4_lithuanian_ci".into());
    schema.add(other.clone());
    let refused = rules.check(&schema).expect_err("another collation");
    assert!(refused.to_string().contains("utf8mb4_lithuanian_ci"), "{refused}");
    other.columns[2].collation = Some("utf8mb4_unicode_ci".into());
    schema.add(other);
    assert_eq!(rules.check(&schema), Ok(()));
}

/// A table of settings: pages depend on few of its rows.
#[test]
fn conditions_on_values_choose_rows() {
    let mut schema = Schema::default();
    schema.add(table("options", &["id", "name", "value"]));
    let written = r#"{
        "table": "options",
        "tags": ["site", "option:{name}"],
        "where": { "name": ["title", "theme_*"] },
        "unless": { "value": "draft" },
        "when_changed": ["value"],
        "any_row": ["site"]
    }"#;
    let rule: ChangeRule = serde_json::from_str(written).expect("a rule");
    let feed = feed(std::slice::from_ref(&rule), &schema);
    assert_eq!(feed.wanted("options"), RequiredChanges::Rows);
    let insert = |name, value| {
        touched(&feed, "options", &Row::insert(&[("id", "1"), ("name", name), ("value", value)]))
    };
    assert_eq!(insert("title", "a"), ["option:title", "site"]);
    assert_eq!(insert("theme_x", "a"), ["option:theme_x", "site"]);
    assert!(insert("_transient_x", "a").is_empty());
    assert!(insert("title", "draft").is_empty());
    // Each image is tested separately, and a row that begins to meet the conditions counts.
    let update = |before: [(&str, &str); 3], after: [(&str, &str); 3]| {
        touched(&feed, "options", &Row::update(&before, &after))
    };
    let row = |name, value| [("id", "1"), ("name", name), ("value", value)];
    assert_eq!(update(row("title", "a"), row("other", "a")), ["option:title", "site"]);
    assert_eq!(update(row("title", "draft"), row("title", "b")), ["option:title", "site"]);
    assert!(update(row("other", "a"), row("other", "b")).is_empty());
    let unknown = Row::insert(&[("id", "1"), ("value", "a")]).cell("name", Cell::Unknown);
    assert_eq!(touched(&feed, "options", &unknown), ["option:*", "site"]);
    let mut any = TouchedTags::default();
    feed.table("options", &mut any);
    assert_eq!(told(&any), ["option:*", "site"]);
    let missing = ChangeRule {
        only_where: [("nme".to_owned(), rule.only_where["name"].clone())].into(),
        ..rule
    };
    let rules = Rules::compile(&[missing]).expect("rules");
    assert!(
        matches!(rules.check(&schema), Err(CheckError::ColumnMissing(_, column, _)) if column == "nme")
    );
}

#[test]
fn the_rules_for_wordpress_have_the_prefix_of_its_tables() {
    let mut schema = Schema::default();
    for name in ["posts", "postmeta", "options", "term_relationships", "users"] {
        schema.add(table(&format!("blog_{name}"), &["id"]));
    }
    schema.add(table("other", &["id"]));
    let rules = suggest_for_wordpress(&schema, Some("shop")).expect("there is one");
    assert!(rules.contains("[[change]]\ndatabase = \"shop\"\ntable = \"blog_posts\"\n"), "{rules}");
    assert!(rules.contains("table = \"blog_users\"") && !rules.contains("blog_links"));
    assert!(!rules.contains('@'));
    let nothing = suggest_for_wordpress(&Schema::default(), None).expect_err("there is none");
    assert_eq!(nothing, NoWordPress::NotFound);
    for name in ["posts", "postmeta", "options", "term_relationships"] {
        schema.add(table(&format!("wp_{name}"), &["id"]));
    }
    let several = suggest_for_wordpress(&schema, None).expect_err("there are two");
    assert!(several.to_string().contains("blog_, wp_"), "{several}");
}
