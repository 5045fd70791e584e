//! The lists of `pagewell top` below the metrics: databases and cluster nodes, causes of misses, last
//! invalidations. The words are those of the dashboard (`dashboard/operations.js`, `tables.js`).
//!
//! Each list has a heading; an empty one has no lines. Nothing is shown that does not fit. Text from
//! other sources is sanitised. Not here: the metrics (`picture`).

use super::picture::{STRONG, View};
use super::shown::{count, cut, duration, harmless, milliseconds};
use ratatui::text::Line;
use serde_json::Value;

/// Returns the lists, at most `room` lines. Databases and nodes take a third of it, if the others need
/// theirs; these share the rest.
pub fn lists(view: &View, columns: usize, room: usize) -> Vec<Line<'static>> {
    let sources = [databases(view, columns), nodes(view, columns)].concat();
    let (reasons, changes) = (reasons(view, columns), last_changes(view, columns));
    let of_others = reasons.len() + changes.len();
    let of_sources = sources.len().min(room.div_ceil(3).max(room.saturating_sub(of_others)));
    let room = room - of_sources;
    let of_reasons = reasons.len().min(room.div_ceil(2).max(room.saturating_sub(changes.len())));
    let lines = sources.into_iter().take(of_sources).chain(reasons.into_iter().take(of_reasons));
    lines.chain(changes.into_iter().take(room - of_reasons)).collect()
}

/// The entries of a list in an answer that belong to the selected site, or to any.
fn of_site<'a>(view: &'a View, list: &'a Value) -> impl Iterator<Item = &'a Value> {
    let all = list.as_array().into_iter().flatten();
    all.filter(|one| view.site.is_none() || one["site"].as_str() == view.site.as_deref())
}

fn text(value: &Value) -> String {
    harmless(value.as_str().unwrap_or_default())
}

/// The age of a figure.
fn ago(ms: &Value) -> String {
    ms.as_u64().map_or("never".to_owned(), |ms| duration((ms + 500) / 1000) + " ago")
}

/// A lag; `units` of the value are a millisecond.
fn lag(value: &Value, units: f64) -> String {
    let lag = value.as_f64().map_or("unknown".to_owned(), |lag| milliseconds(lag / units));
    format!("lag {lag}")
}

fn databases(view: &View, columns: usize) -> Vec<Line<'static>> {
    let line = |one: &Value| {
        let (lag, ago) = (lag(&one["lag_us"], 1000.0), ago(&one["measured_ms_ago"]));
        let name = format!("{} ({})", text(&one["name"]), text(&one["server"]));
        let text = format!("  {name:<30}  {}  {lag}, measured {ago}", database_state(one));
        cut(&text, columns, view.utf8)
    };
    section("Databases", of_site(view, &view.extras.sources["databases"]).map(line))
}

/// The state of a database.
fn database_state(database: &Value) -> &'static str {
    match (database["followed"] == true, database["stores_pages"] == true) {
        (true, true) => "followed",
        (true, false) => "too far behind: no page is stored",
        (false, true) => "reconnecting",
        (false, false) => "not followed: no page is stored",
    }
}

fn nodes(view: &View, columns: usize) -> Vec<Line<'static>> {
    let line = |one: &Value| {
        let process = text(&one["name"]);
        let name = match one["host_name"].as_str() {
            Some(host) => format!("{} ({process})", harmless(host)),
            None => process,
        };
        let (state, lag) = (text(&one["state"]), lag(&one["lag_ms"], 1.0));
        let [report, contact] = ["reported_ms_ago", "read_ms_ago"].map(|name| ago(&one[name]));
        let text = format!("  {name:<30}  {state}  {lag}, last report {report}, contact {contact}");
        cut(&text, columns, view.utf8)
    };
    section("Other cluster nodes", of_site(view, &view.extras.sources["nodes"]).map(line))
}

/// The most frequent causes of misses since the start.
fn reasons(view: &View, columns: usize) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    for (list, what) in [("not_stored", "Not stored"), ("bypassed", "Bypassed")] {
        for one in view.extras.misses[list].as_array().into_iter().flatten() {
            let often = one["count"].as_u64().unwrap_or(0);
            let refusal = if one["refusal"].is_null() { "reason" } else { "refusal" };
            let cause = format!("{what}: {}", text(&one[refusal]));
            let line = format!(" {:>11}  {cause:<34}  {}", count(often), text(&one["url"]));
            lines.push((often, cut(&line, columns, view.utf8)));
        }
    }
    lines.sort_by_key(|(often, _)| std::cmp::Reverse(*often));
    section("Cache misses by cause", lines.into_iter().map(|(_, line)| line))
}

/// The recent changes of the selected site, or of all sites.
fn last_changes(view: &View, columns: usize) -> Vec<Line<'static>> {
    let line = |one: &Value| {
        let ago = view.extras.now_ms.saturating_sub(one["at_ms"].as_u64().unwrap_or(0)) / 1000;
        let is_mark = one["strength"] == "mark";
        let (list, how) = if is_mark { ("marked", "marked stale") } else { ("dropped", "purged") };
        let counted = count(one[list].as_u64().unwrap_or(0));
        let names = one["names"].as_array().into_iter().flatten().map(change_name);
        let mut names = harmless(&names.collect::<Vec<_>>().join(" "));
        if let Some(more) = one["names_left_out"].as_u64().filter(|more| *more > 0) {
            names += &format!(" and {} more", count(more));
        }
        let by = text(&one["by"]["text"]);
        let text = format!(" {:>11}  {counted} {how}: {names}  ({by})", duration(ago) + " ago");
        cut(&text, columns, view.utf8)
    };
    section("Last invalidations", of_site(view, &view.extras.changes["changes"]).map(line))
}

/// The name of a change; a tag and a URL without their kind.
fn change_name(name: &Value) -> String {
    let kind = name["kind"].as_str().unwrap_or_default();
    match (kind, name["name"].as_str().unwrap_or_default()) {
        ("tag" | "url", name) if !name.is_empty() => name.to_owned(),
        (kind, "") => kind.to_owned(),
        (kind, name) => format!("{kind} {name}"),
    }
}

/// A heading and lines; empty if there are no lines.
fn section(title: &str, lines: impl Iterator<Item = String>) -> Vec<Line<'static>> {
    let lines: Vec<_> = lines.map(Line::from).collect();
    if lines.is_empty() {
        return lines;
    }
    let heading = Line::styled(format!(" {title}"), STRONG);
    [Line::default(), heading].into_iter().chain(lines).collect()
}

#[cfg(test)]
mod tests {
    use super::super::picture::{TopExtras, plain};
    use super::*;
    use serde_json::json;

    fn view() -> View {
        let mut view = View::new("127.0.0.1:1", None, true);
        let database = |name: &str, followed, lag_us: Value, ago: Value| {
            json!({ "site": "a.test", "name": name, "server": "db:1", "followed": followed,
                    "stores_pages": followed, "lag_us": lag_us, "measured_ms_ago": ago })
        };
        let node = |host: Value, state: &str, lag_ms: Value| {
            json!({ "site": "b.test", "name": "7-f", "host_name": host, "state": state,
                    "lag_ms": lag_ms, "reported_ms_ago": 900, "read_ms_ago": 65_000 })
        };
        let change = |strength: &str, names: Value| {
            json!({ "at_ms": 0, "site": "a.test", "strength": strength, "dropped": 3, "marked": 2,
                    "by": { "text": "a rule" }, "names": names, "names_left_out": 1 })
        };
        view.extras = TopExtras {
            sources: json!({
                "databases": [
                    database("shop", true, json!(1500), json!(400)),
                    database("logs", false, Value::Null, Value::Null),
                ],
                "nodes": [
                    node(json!("web-1"), "connected", json!(4)),
                    node(Value::Null, "unknown", Value::Null),
                ],
            }),
            misses: json!({ "bypassed": [{ "reason": "rule", "count": 9, "url": "/\u{1b}[2J" }] }),
            changes: json!({ "changes": [
                change("drop", json!([{ "kind": "prefix", "name": "/news/" }])),
                change("mark", json!([{ "kind": "tag", "name": "news" }])),
            ] }),
            now_ms: 3000,
        };
        view
    }

    fn shown(view: &View, columns: usize, room: usize) -> Vec<String> {
        lists(view, columns, room).iter().map(|line| plain(line, columns)).collect()
    }

    #[test]
    fn databases_and_nodes_have_state_lag_and_age() {
        let mut view = view();
        let text = shown(&view, 120, 40).join("\n");
        for part in [
            " Databases\n  shop (db:1)                     followed  lag 1.50 ms, measured 0 s ago",
            "not followed: no page is stored  lag unknown, measured never",
            " Other cluster nodes\n  web-1 (7-f)                     connected  lag 4.00 ms, last report 1 s ago, contact 1 min 5 s ago",
            "\n  7-f                             unknown  lag unknown",
            " Cache misses by cause\n           9  Bypassed: rule",
            "3 purged: prefix /news/ and 1 more  (a rule)",
            "2 marked stale: news and 1 more  (a rule)",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        assert!(!text.contains('\u{1b}'));
        view.site = Some("b.test".into());
        let text = shown(&view, 120, 40).join("\n");
        assert!(!text.contains("shop") && text.contains("web-1"), "{text}");
    }

    #[test]
    fn the_lists_share_the_room() {
        let view = view();
        for room in 0..40 {
            assert!(shown(&view, 80, room).len() <= room, "{room}");
        }
        let all = shown(&view, 80, 40);
        assert_eq!(all.len(), 8 + 3 + 4, "{all:?}");
        let few = shown(&view, 80, 12);
        assert_eq!(few.len(), 12, "{few:?}");
        assert!(few.iter().any(|line| line.contains("purged")), "{few:?}");
    }
}
