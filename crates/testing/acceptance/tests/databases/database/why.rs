//! If a row has purged a page, the explanation names the row's table and the rules that may have matched.

use super::*;

fn ask(pagewell: &Pagewell, content: &str) -> serde_json::Value {
    pagewell.explain(content).expect("an answer")
}

#[test]
fn a_page_purged_by_a_row_is_explained_by_its_table() {
    let paper = Paper::new(&[]);
    let pagewell = paper.serve("");
    stored(&pagewell, "/show.php?id=1");
    stored(&pagewell, "/thread.php?id=1");
    let told = ask(&pagewell, r#"{"url":"/show.php?id=1"}"#);
    let rule = serde_json::json!({ "database": "paper", "table": "news", "tag": "news:{id}" });
    assert_eq!(told["verdict"], "hit");
    assert_eq!(told["page"]["dropped_by"]["rules"][0], rule, "{told}");
    paper.sql("UPDATE news SET title = 'another' WHERE id = 1");
    shows(&pagewell, "/show.php?id=1", "title=another");
    let told = ask(&pagewell, r#"{"url":"/show.php?id=1"}"#);
    let dropped = &told["last_drop"];
    assert_eq!(dropped["by"]["kind"], "database", "{told}");
    assert_eq!(dropped["by"]["database"], "paper");
    assert_eq!(dropped["by"]["tables"], serde_json::json!(["news"]));
    assert_eq!(dropped["name"], serde_json::json!({ "kind": "tag", "name": "news:1" }));
    assert_eq!(
        ask(&pagewell, r#"{"url":"/thread.php?id=1"}"#)["last_drop"],
        serde_json::Value::Null
    );
}
