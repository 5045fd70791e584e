//! Formats explanations for the terminal, from the control interface's answers.
//!
//! Control characters in untrusted text (URLs, tags) are removed. Missing fields are left out.

use serde_json::{Value, json};
use std::fmt::Write;

/// The width of the names on the left, in columns.
const NAME_WIDTH: usize = 12;

/// Formats the output of `pagewell explain URL`.
pub fn url(told: &Value) -> String {
    let mut out = Page::default();
    out.plain(&text(&told["url"]));
    if told["host_is_a_guess"] == true {
        out.row(
            "host",
            "a guess, because site.host is not set: for another host, write the complete URL",
        );
    }
    out.row(&text(&told["verdict"]), &text(&told["sentence"]));
    out.row("what to do", &text(&told["remedy"]));
    out.row("key", &list(&told["key"], "\n"));
    out.row("not sent", &list(&told["removed_fields"], ", "));
    out.row("custom fields", &list(&told["custom_fields"], ", "));
    if told["rule"].is_object() {
        let rule = &told["rule"];
        let name = [text(&rule["number"]), text(&rule["name"]), text(&rule["path"])];
        out.row("rule", &name.join(" "));
    }
    for rule in told["other_rules"].as_array().into_iter().flatten() {
        let name = [text(&rule["number"]), text(&rule["name"])];
        out.row("rule", &format!("{} ({})", name.join(" ").trim(), text(&rule["kind"])));
    }
    let steps = [list(&told["steps"], ", "), list(&told["later_steps"], ", ")];
    out.row("steps", steps.join(", ").trim_end_matches(", "));
    if told["client"].is_object() {
        let client = &told["client"];
        let level = format!("{} (evidence: {})", text(&client["level"]), text(&client["evidence"]));
        let crawler = text(&client["crawler"]);
        let crawler = if crawler.is_empty() { crawler } else { format!("; the crawler {crawler}") };
        out.row("client", &format!("{}: {level}{crawler}", text(&client["address"])));
        out.row("group", &format!("{} ({})", text(&client["group"]), text(&client["kind"])));
        out.row("now", &text(&client["now"]));
    }
    if told["page"].is_object() {
        page(&mut out, &told["page"], now(told));
    }
    for item in told["memcached"].as_array().into_iter().flatten() {
        out.row("memcached", &item_text(item, now(told)));
    }
    if told["last_render"].is_object() {
        out.row("last render", &last_render(&told["last_render"], now(told)));
    }
    if told["last_drop"].is_object() {
        out.row("last purge", &last_drop(&told["last_drop"], now(told)));
    }
    out.text
}

fn page(out: &mut Page, page: &Value, now_ms: u64) {
    let at_least = if page["served_at_least"] == true { "at least " } else { "" };
    out.row(
        "page",
        &format!(
            "{}, {} bytes, {}; stored {} by a render of {} ms; served {at_least}{}",
            text(&page["status"]),
            text(&page["bytes"]),
            text(&page["content_type"]),
            ago(&page["stored_at_ms"], now_ms),
            text(&page["render_ms"]),
            times(&page["served"]),
        ),
    );
    let ttl = page["ttl_seconds"].as_i64().unwrap_or_default();
    let source = match page["lifetime_field"].as_str() {
        Some(field) => format!("from {}", field_name(field)),
        None => lifetime_from(&text(&page["lifetime_from"])).to_owned(),
    };
    out.row(
        "fresh",
        &match ttl {
            ..=0 => format!("no, since {} ({source})", span(ttl.unsigned_abs())),
            ttl => format!("for another {} ({source})", span(ttl.unsigned_abs())),
        },
    );
    if !page["marked_at_ms"].is_null() {
        out.row("marked", &format!("{}, stale since then", ago(&page["marked_at_ms"], now_ms)));
    }
    let more = match page["tags_left_out"].as_u64() {
        Some(more) if more > 0 => format!(" and {more} more"),
        _ => String::new(),
    };
    out.row("depends on", &(list(&page["tags"], ", ") + &more));
    if let Some(reads) = page["reads"].as_array() {
        let lines: Vec<String> = reads.iter().map(text).collect();
        out.row("reads", &lines.join("\n"));
    }
    if page["template"] == true {
        out.row("is", "an ESI template: its fragments are inserted for each request");
    }
    out.row("varies by", &list(&page["varies_by"], ", "));
    let by = &page["dropped_by"];
    let prefixes = list(&by["prefixes"], ", ");
    let prefixes =
        if prefixes.is_empty() { prefixes } else { format!(", of the prefixes {prefixes}") };
    let has_tags = page["tags"].as_array().is_some_and(|tags| !tags.is_empty());
    let tags = if has_tags { "of one of its tags, " } else { "" };
    let rows = if page["reads"].is_array() { "of a row that it reads, " } else { "" };
    let mut drops = format!("a change {rows}{tags}of the URL {}{prefixes}", text(&by["url"]));
    for rule in by["rules"].as_array().into_iter().flatten() {
        let _ = write!(drops, "\n{}", rule_text(rule));
    }
    out.row("purged by", &drops);
}

/// Formats an item of the memcached port.
fn item_text(item: &Value, now_ms: u64) -> String {
    let (key, bytes) = (text(&item["key"]), text(&item["bytes"]));
    let until = match item["ends_at_ms"].as_u64() {
        Some(ends) if ends > now_ms => format!("for another {}", span((ends - now_ms) / 1_000)),
        Some(_) => "has ended".into(),
        None => "until it is purged".into(),
    };
    let marked =
        if item["marked_at_ms"].is_null() { "" } else { "; marked stale, and so not served" };
    let ago = ago(&item["stored_at_ms"], now_ms);
    format!("under {key}, {bytes} bytes; stored {ago}, {until}{marked}")
}

fn rule_text(rule: &Value) -> String {
    let (table, database) = (text(&rule["table"]), text(&rule["database"]));
    format!("a row of table {table} in the database {database}, as {}", text(&rule["tag"]))
}

fn last_render(render: &Value, now_ms: u64) -> String {
    let outcome = if render["stored"] == true {
        "stored".to_owned()
    } else {
        format!("not stored ({})", reason(render))
    };
    let status =
        if render["status"].is_null() { "no response".into() } else { text(&render["status"]) };
    let (ago, took) = (ago(&render["at_ms"], now_ms), text(&render["took_ms"]));
    let counts = [text(&render["not_stored"]), text(&render["renders"])];
    let cookies = list(&render["cookies"], ", ");
    let mut cookies = if cookies.is_empty() { cookies } else { format!("; sets {cookies}") };
    let visitors = list(&render["visitor_cookies"], ", ");
    if !visitors.is_empty() {
        let _ = write!(cookies, "; its request had the cookie {visitors}");
    }
    format!(
        "{ago}: {status}, {took} ms, {outcome}{cookies}; {} of {} not stored",
        counts[0], counts[1]
    )
}

/// Formats why a response was not stored: the application's own code first, if it gave one.
fn reason(of: &Value) -> String {
    match of["refusal"].as_str() {
        Some(code) => {
            format!(
                "the application does not offer it: {}; {}",
                text(&json!(code)),
                text(&of["reason"])
            )
        }
        None => text(&of["reason"]),
    }
}

fn last_drop(dropped: &Value, now_ms: u64) -> String {
    let name = &dropped["name"];
    let name = if name.is_object() { format!(", {}", name_text(name)) } else { String::new() };
    let same = match dropped["unchanged"].as_bool() {
        Some(true) => "; the content was the same afterwards",
        Some(false) => "; the content was different afterwards",
        None => "",
    };
    let (ago, how) = (ago(&dropped["at_ms"], now_ms), text(&dropped["how"]));
    let (by, change) = (text(&dropped["by"]["text"]), text(&dropped["change"]));
    format!("{ago}: {how} by {by} (change {change}{name}){same}")
}

fn name_text(name: &Value) -> String {
    format!("{} {}", text(&name["kind"]), text(&name["name"])).trim_end().to_owned()
}

/// Formats the output of `pagewell explain --tag`.
pub fn tag(told: &Value) -> String {
    let mut out = Page::default();
    let (tag, total) = (text(&told["tag"]), text(&told["pages_total"]));
    out.plain(&format!("{tag}: {total} {}", if total == "1" { "page" } else { "pages" }));
    for page in told["pages"].as_array().into_iter().flatten() {
        let ago = ago(&page["stored_at_ms"], now(told));
        out.plain(&format!("  {}  stored {ago}", text(&page["url"])));
    }
    if told["pages_left_out"].as_u64().is_some_and(|more| more > 0) {
        out.plain(&format!("  and {} more", text(&told["pages_left_out"])));
    }
    if told["last_change"].is_object() {
        out.row("last change", &change(&told["last_change"], now(told)));
    }
    for rule in told["rules"].as_array().into_iter().flatten() {
        out.row("changed by", &rule_text(rule));
    }
    out.text
}

/// Formats the output of `pagewell explain --changes`.
pub fn changes(told: &Value) -> String {
    let all = told["changes"].as_array().into_iter().flatten();
    let lines: Vec<_> = all.map(|one| change(one, now(told))).collect();
    if lines.is_empty() {
        "no invalidation since the start\n".into()
    } else {
        lines.join("\n") + "\n"
    }
}

fn change(change: &Value, now_ms: u64) -> String {
    let names: Vec<_> = change["names"].as_array().into_iter().flatten().map(name_text).collect();
    let site = match text(&change["site"]) {
        site if site.is_empty() => site,
        site => format!(" on {site}"),
    };
    let more = match change["names_left_out"].as_u64() {
        Some(more) if more > 0 => format!(" and {more} more"),
        _ => String::new(),
    };
    format!(
        "{}  {}  by {}: {}{more}{site}; {} purged, {} marked stale",
        text(&change["number"]),
        ago(&change["at_ms"], now_ms),
        text(&change["by"]["text"]),
        names.join(", "),
        text(&change["dropped"]),
        text(&change["marked"]),
    )
}

/// Formats what the origin of a site works for: first whether it is overloaded, and what to do.
fn origin(out: &mut Page, told: &Value) {
    let rows = |name: &str| told[name].as_array().map(Vec::as_slice).unwrap_or_default();
    let mode = text(&told["mode"]);
    let site = match text(&told["site"]) {
        site if site.is_empty() => "The origin".into(),
        site => format!("The origin of {site}"),
    };
    if mode == "off" {
        out.plain(&format!("{site}: not observed, because misses.mode = \"off\""));
        out.plain("");
    }
    if rows("groups").is_empty() {
        return;
    }
    let lasted = span(told["overload_seconds"].as_u64().unwrap_or_default());
    let state = match (told["overloaded"] == true, told["overload_seconds"] == 0) {
        (true, _) => format!("is overloaded now, for {lasted} in all since the start"),
        (false, false) => format!("is not overloaded now; it was for {lasted} since the start"),
        (false, true) => "has not been overloaded since the start".into(),
    };
    let deferred = text(&told["deferred"]);
    let deferred = if mode == "protect" || told["deferred"] != 0 {
        format!(", {deferred} deferred: a 503 that reloads, or an expired page")
    } else {
        String::new()
    };
    let waited = text(&told["waited"]);
    out.plain(&format!(
        "{site} {state}. Requests that waited for it: {waited}{deferred} (misses.mode = \"{mode}\")."
    ));
    out.plain(&format!("  {}", text(&told["advice"])));
    out.plain("  Last minutes  requests  time of the origin  deferred  URLs (*: any segment; a, b: any parameter)");
    for row in rows("groups") {
        out.plain(&format!(
            "  {:>20} %  {:>7} %  {:>7} s  {:>8}  {}{}",
            text(&row["percent_of_requests"]),
            text(&row["percent_of_time"]),
            row["busy_ms"].as_u64().unwrap_or_default() / 1_000,
            text(&row["deferred"]),
            text(&row["group"]),
            kind_of_requests(&text(&row["kind"])),
        ));
    }
    for (title, name) in [("Networks", "networks"), ("User agents", "agents")] {
        let of = |row: &Value| {
            format!("{} ({} %)", text(&row["name"]), text(&row["percent_of_requests"]))
        };
        let shown: Vec<String> = rows(name).iter().map(of).collect();
        if !shown.is_empty() {
            out.plain(&format!("  {title}: {}", shown.join(", ")));
        }
    }
    let of = |row: &Value| {
        format!("{} {} %", clients_of_level(&text(&row["level"])), text(&row["percent_of_time"]))
    };
    let levels: Vec<String> = rows("levels").iter().map(of).collect();
    if !levels.is_empty() {
        out.plain(&format!(
            "  Time of the origin since the start, by client: {}",
            levels.join(", ")
        ));
    }
    out.plain("");
}

/// Returns what the requests of a group are, after its URLs; empty for pages.
fn kind_of_requests(kind: &str) -> &'static str {
    match kind {
        "personal" => "  for one client each",
        "credential" => "  with Authorization",
        "part" => "  ESI fragments",
        "write" => "  writes (POST, PUT, …)",
        "crawler" => "  verified crawlers",
        _ => "",
    }
}

/// Returns the clients of a level, or what else the origin works for, in words.
fn clients_of_level(level: &str) -> &str {
    match level {
        "confirmed" => "signed in or exempt",
        "known" => "known by their hits",
        "passed" => "passed the challenge",
        "returned" => "deferred before",
        "unknown" => "unknown",
        "over-rate" => "unknown with too many requests",
        "comparisons" => "Pagewell's own comparisons",
        other => other,
    }
}

/// Formats the output of `pagewell misses`.
pub fn misses(told: &Value) -> String {
    let mut out = Page::default();
    for told in told["origins"].as_array().into_iter().flatten() {
        origin(&mut out, told);
    }
    let mut section = |title: &str, of: &Value, line: &dyn Fn(&Value) -> String| {
        let rows = of.as_array().map(Vec::as_slice).unwrap_or_default();
        if rows.is_empty() {
            return;
        }
        out.plain(title);
        for row in rows {
            out.plain(&line(row));
        }
        out.plain("");
    };
    let counted = |row: &Value, name: String| {
        let about = if row["over"] == 0 { "" } else { "~" };
        let count = format!("{about}{}", text(&row["count"]));
        format!("{count:>10}  {name}  e.g. {}", text(&row["url"]))
    };
    let with_remedy = |row: &Value| {
        let line = counted(row, reason(row));
        if row["remedy"].is_null() {
            line
        } else {
            format!("{line}\n            {}", text(&row["remedy"]))
        }
    };
    section("Responses that were not stored", &told["not_stored"], &with_remedy);
    section("Requests that bypassed the cache", &told["bypassed"], &with_remedy);
    section("Cookies that prevent caching", &told["cookies"], &|row| {
        let owner = row["owner"].as_str().map(|owner| format!(" of {owner}")).unwrap_or_default();
        counted(row, format!("{}{owner} ({})", text(&row["name"]), text(&row["effect"])))
    });
    section("Query parameters that create variants", &told["parameters"], &|row| {
        counted(row, text(&row["name"]))
    });
    section("Pages purged most", &told["dropped"], &|row| {
        format!(
            "{:>10}  {}  last by {}",
            text(&row["count"]),
            text(&row["url"]),
            text(&row["by"]["text"])
        )
    });
    section("Slowest origin requests", &told["slowest"], &|row| {
        format!("{:>7} ms  {}", text(&row["took_ms"]), text(&row["url"]))
    });
    let over = &told["over_invalidation"];
    section("Pages purged although their content did not change", &over["pages"], &|row| {
        format!("{:>10}  {}", text(&row["count"]), text(&row["url"]))
    });
    section("Columns whose changes purged such pages", &over["columns"], &|row| {
        format!(
            "{:>10}  {}  last {}",
            text(&row["count"]),
            text(&row["columns"]),
            text(&row["url"])
        )
    });
    if over["compared"] != 0 {
        let (compared, unchanged) = (text(&over["compared"]), text(&over["unchanged"]));
        out.plain(&format!(
            "{unchanged} of {compared} compared purges were needless: the content did not change."
        ));
    }
    out.text
}

fn now(told: &Value) -> u64 {
    told["now_ms"].as_u64().unwrap_or_default()
}

/// Formats how long ago a time was.
fn ago(at_ms: &Value, now_ms: u64) -> String {
    span(now_ms.saturating_sub(at_ms.as_u64().unwrap_or(now_ms)) / 1000) + " ago"
}

/// Formats a duration in the largest suitable unit.
fn span(seconds: u64) -> String {
    match seconds {
        0..=119 => format!("{seconds} s"),
        120..=7_199 => format!("{} min", seconds / 60),
        7_200..=172_799 => format!("{} h", seconds / 3_600),
        _ => format!("{} days", seconds / 86_400),
    }
}

/// Formats a count of occurrences.
fn times(count: &Value) -> String {
    match count.as_u64() {
        Some(1) => "once".into(),
        _ => format!("{} times", text(count)),
    }
}

/// Returns the source of a page's freshness lifetime in words.
fn lifetime_from(source: &str) -> &str {
    match source {
        "targeted" => "from a field for caches",
        "litespeed" => "from X-LiteSpeed-Cache-Control",
        "surrogate-control" => "from Surrogate-Control",
        "x-accel-expires" => "from X-Accel-Expires",
        "s-maxage" | "max-age" => "from Cache-Control",
        "expires" => "from Expires",
        "rule" => "from a rule, or cache.default_lifetime",
        "reads" => "automatic.lifetime_max, because all reads are known",
        "heuristic" => "heuristic, from Last-Modified",
        _ => "revalidated each time",
    }
}

/// Returns the name of a field as it is usually written: `Pagewell-Cache-Control`.
fn field_name(name: &str) -> String {
    let word = |word: &str| match word {
        "cdn" => "CDN".to_owned(),
        _ => {
            let (first, rest) = word.split_at(word.chars().next().map_or(0, char::len_utf8));
            first.to_uppercase() + rest
        }
    };
    text(&json!(name)).split('-').map(word).collect::<Vec<_>>().join("-")
}

/// Returns a value as text without control characters; empty for null.
fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.chars().filter(|letter| !letter.is_control()).collect(),
        other => other.to_string(),
    }
}

fn list(values: &Value, between: &str) -> String {
    let all: Vec<_> = values.as_array().into_iter().flatten().map(text).collect();
    all.join(between)
}

/// Lines with names on the left.
#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    fn plain(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// Adds a row; further lines of the value are indented below the first. A row without a value
    /// is left out.
    fn row(&mut self, name: &str, value: &str) {
        let mut name = name;
        for line in value.lines() {
            let _ = writeln!(self.text, "  {name:<NAME_WIDTH$} {line}");
            name = "";
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_removed() {
        assert_eq!(text(&json!("/a\u{1b}[2Jb\n")), "/a[2Jb");
    }

    #[test]
    fn the_reason_of_the_application_comes_first() {
        let row = json!({ "refusal": "visitors-cookie", "reason": "no-store" });
        assert_eq!(reason(&row), "the application does not offer it: visitors-cookie; no-store");
        assert_eq!(reason(&json!({ "refusal": null, "reason": "no-store" })), "no-store");
    }

    #[test]
    fn fields_are_named_as_they_are_written() {
        let names = ["pagewell-cache-control", "cdn-cache-control", ""].map(field_name);
        assert_eq!(names, ["Pagewell-Cache-Control", "CDN-Cache-Control", ""]);
    }

    #[test]
    fn the_state_of_the_origin_and_the_advice_come_first() {
        let mut told = json!({
            "site": null, "mode": "observe", "overloaded": true, "overload_seconds": 840,
            "waited": 51_200, "deferred": 0, "advice": "Do this.",
            "groups": [{ "kind": "write", "percent_of_requests": 91, "percent_of_time": 93,
                "busy_ms": 312_900, "deferred": 0, "group": "/shop?a&b" }],
            "networks": [], "agents": [], "levels": [{ "level": "returned", "percent_of_time": 7 },
                { "level": "comparisons", "percent_of_time": 2 }],
        });
        let shown = |told: &Value| {
            let mut page = Page::default();
            origin(&mut page, told);
            page.text
        };
        let text = shown(&told);
        let lines: Vec<&str> = text.lines().collect();
        let first = "The origin is overloaded now, for 14 min in all since the start. Requests that waited for it: 51200";
        assert_eq!(lines[0], format!("{first} (misses.mode = \"observe\")."));
        assert_eq!(lines[1], "  Do this.");
        assert!(lines[3].ends_with("312 s         0  /shop?a&b  writes (POST, PUT, …)"), "{text}");
        assert_eq!(
            lines[4],
            "  Time of the origin since the start, by client: deferred before 7 %, Pagewell's own comparisons 2 %"
        );
        told["overloaded"] = json!(false);
        assert!(shown(&told).contains(" is not overloaded now; it was for 14 min since"));
        (told["mode"], told["deferred"]) = (json!("protect"), json!(7));
        assert!(shown(&told).contains(": 51200, 7 deferred: a 503 that reloads, or an expired"));
        told["overload_seconds"] = json!(0);
        assert!(shown(&told).contains(" has not been overloaded since the start. "));
        assert_eq!(shown(&json!({ "mode": "observe", "groups": [] })), "");
        let off = "The origin: not observed, because misses.mode = \"off\"\n\n";
        assert_eq!(shown(&json!({ "mode": "off", "groups": [] })), off);
    }

    #[test]
    fn rows_without_a_value_are_left_out() {
        let mut page = Page::default();
        page.row("nothing", &text(&Value::Null));
        page.row("two", "one\nother");
        assert_eq!(page.text, "  two          one\n               other\n");
    }

    #[test]
    fn ages_are_shown_in_one_unit() {
        let ago = |seconds: u64| ago(&json!(1_000), 1_000 + seconds * 1_000);
        assert_eq!([ago(0), ago(119), ago(120)], ["0 s ago", "119 s ago", "2 min ago"]);
        assert_eq!([ago(7_200), ago(200_000)], ["2 h ago", "2 days ago"]);
    }
}
