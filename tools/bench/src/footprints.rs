//! `cargo measure footprints`: how long it takes to find the statements that a changed row touches, and how
//! much memory the statements of a page take.
//!
//! The pages are those of WordPress posts: each has eight statements of its own and thirty that all share,
//! as in the recording of `tests/footprints`. The time is that of the index alone, without look-ups in a
//! database; the row that is next to a new post is given. Invariant: what is timed is checked first; an index that finds nothing does not count.

use footprint::schema::{SqlColumn, SqlSchema, TableId};
use footprint::{Index, RowEvent, SqlMode, SqlRow, SqlValue, StatementReader};
use harness::{Stopwatch, cpu};
use std::sync::Arc;
use std::time::Duration;

const COLLATION: Option<&str> = Some("utf8mb4_unicode_520_ci");
/// The number of statements that every page runs.
const SHARED: usize = 30;
/// How often each kind of change is timed.
const CHANGES: usize = 100;

/// How many pages there are.
#[derive(Debug, Clone, clap::Args)]
pub struct PageCount {
    /// The number of pages
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(100..=1_000_000))]
    pages: u32,
}

/// Fills an index, changes rows, and prints the figures.
///
/// # Errors
/// A message, if a statement cannot be read or a change finds nothing.
pub fn run(amount: &PageCount) -> Result<(), String> {
    let schema = Arc::new(schema());
    let memory = cpu::rss_bytes_alone(std::process::id());
    let began = Stopwatch::start();
    let PageIndex { index, footprints, counted } = fill(&schema, amount.pages)?;
    let filled = began.elapsed();
    let memory = cpu::rss_bytes_alone(std::process::id()).saturating_sub(memory);
    println!(
        "{} pages, {} statements, {footprints} footprints\n{} bytes a page (counted as {}), {:.1} µs to read and \
         index a page\n",
        amount.pages,
        index.len(),
        memory / u64::from(amount.pages),
        counted / amount.pages as usize,
        filled.as_secs_f64() * 1e6 / f64::from(amount.pages),
    );
    println!("| Changed row | Statements touched | Median | 99 % | Longest |");
    println!("|---|---|---|---|---|");
    let mut all = Vec::new();
    for kind in KINDS {
        let mut times = Vec::with_capacity(CHANGES);
        let mut touched = 0;
        for round in 0..CHANGES {
            let post = u32::try_from(round).unwrap_or_default() * 7919 % amount.pages;
            let event = (kind.event)(&schema, post);
            let began = Stopwatch::start();
            let mut found = index.find_touched(&event);
            let finding = began.elapsed();
            let next_to_it = [post_row(&schema, amount.pages - 1, &[])];
            let began = Stopwatch::start();
            for lookup in &found.nearest {
                found.touched.extend(index.nearest(&event, lookup, Some(&next_to_it)));
            }
            times.push(finding + began.elapsed());
            touched += found.touched.len();
        }
        if touched == 0 {
            return Err(format!("bench: {} touched nothing", kind.name));
        }
        all.extend_from_slice(&times);
        row(kind.name, &mut times, Some(touched / CHANGES));
    }
    row("all", &mut all, None);
    Ok(())
}

fn row(name: &str, times: &mut [Duration], touched: Option<usize>) {
    times.sort_unstable();
    let at = |share: usize| times[(times.len() - 1) * share / 100].as_secs_f64() * 1e3;
    let touched = touched.map_or_else(String::new, |touched| touched.to_string());
    println!("| {name} | {touched} | {:.3} ms | {:.3} ms | {:.3} ms |", at(50), at(99), at(100));
}

/// A kind of change.
struct Kind {
    name: &'static str,
    event: fn(&SqlSchema, u32) -> RowEvent<'static>,
}

const KINDS: [Kind; 5] = [
    Kind {
        name: "text of a post",
        event: |schema, post| {
            let before = post_row(schema, post, &[]);
            update(
                schema,
                "wp_posts",
                before,
                post_row(schema, post, &[("post_content", "changed")]),
            )
        },
    },
    Kind {
        name: "a new post",
        event: |schema, post| {
            let table = table(schema, "wp_posts");
            RowEvent::new(schema, table, None, Some(post_row(schema, post + 10_000_000, &[])))
        },
    },
    Kind {
        name: "a new comment",
        event: |schema, post| {
            let table = table(schema, "wp_comments");
            let post = post.to_string();
            let values = [
                ("comment_ID", "77000000"),
                ("comment_post_ID", post.as_str()),
                ("comment_approved", "1"),
                ("comment_parent", "0"),
            ];
            RowEvent::new(schema, table, None, Some(sql_row(schema, table, &values)))
        },
    },
    Kind {
        name: "an entry in a category",
        event: |schema, post| {
            let table = table(schema, "wp_term_relationships");
            let post = post.to_string();
            let values = [("object_id", post.as_str()), ("term_taxonomy_id", "5")];
            RowEvent::new(schema, table, None, Some(sql_row(schema, table, &values)))
        },
    },
    Kind {
        name: "an option",
        event: |schema, _| {
            let table = table(schema, "wp_options");
            let option = |value| {
                sql_row(
                    schema,
                    table,
                    &[("option_name", "blogname"), ("option_value", value), ("autoload", "yes")],
                )
            };
            update(schema, "wp_options", option("old"), option("new"))
        },
    },
];

fn table(schema: &SqlSchema, name: &str) -> TableId {
    schema.table_id(name).expect("a table of this file")
}

fn update(
    schema: &SqlSchema,
    name: &str,
    before: SqlRow<'static>,
    after: SqlRow<'static>,
) -> RowEvent<'static> {
    RowEvent::new(schema, table(schema, name), Some(before), Some(after))
}

fn sql_row(schema: &SqlSchema, table: TableId, values: &[(&str, &str)]) -> SqlRow<'static> {
    let value = |column: &SqlColumn| {
        let given = values.iter().rev().find(|(name, _)| *name == column.name);
        SqlValue::Text(given.map_or("", |(_, value)| value).to_owned().into())
    };
    SqlRow::new(schema.table(table).columns.iter().map(value).collect())
}

fn post_row(schema: &SqlSchema, post: u32, more: &[(&str, &str)]) -> SqlRow<'static> {
    let (id, name, date) = (post.to_string(), format!("post-{post}"), date(post));
    let mut values = vec![
        ("ID", id.as_str()),
        ("post_author", "3"),
        ("post_date", date.as_str()),
        ("post_status", "publish"),
        ("post_type", "post"),
        ("post_name", name.as_str()),
    ];
    values.extend_from_slice(more);
    sql_row(schema, table(schema, "wp_posts"), &values)
}

/// A moment for each post.
fn date(post: u32) -> String {
    let (day, second) = (post / 86_400, post % 86_400);
    format!(
        "{}-{:02}-{:02} {:02}:{:02}:{:02}",
        2000 + day / 336,
        day / 28 % 12 + 1,
        day % 28 + 1,
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

/// An index of pages.
struct PageIndex {
    index: Index,
    footprints: usize,
    /// The memory of its statements as Pagewell counts it, in bytes.
    counted: usize,
}

fn fill(schema: &Arc<SqlSchema>, pages: u32) -> Result<PageIndex, String> {
    let mut reader = StatementReader::new(schema.clone());
    let mut index = Index::new(schema.clone());
    let (mut footprints, mut counted) = (0, 0);
    let mut next = 0;
    for page in 0..pages {
        let shared = (0..SHARED).map(|at| (1 << 100 | at as u128, shared(at)));
        let own = own(page).map(|text| {
            next += 1;
            (u128::from(page) << 32 | next, text)
        });
        for (key, text) in shared.chain(own) {
            if index.find(key).is_none() {
                let reads = reader.read(text.as_bytes(), SqlMode::default());
                let reads = reads.map_err(|reason| format!("bench: {text}: {reason}"))?;
                footprints += reads.footprints().count();
                counted += reads.heap_bytes();
                index.acquire(key, || reads);
            }
        }
    }
    Ok(PageIndex { index, footprints, counted })
}

/// A statement that every page runs: of the menu, the options and the widgets.
fn shared(at: usize) -> String {
    match at % 3 {
        0 => {
            format!("SELECT option_value FROM wp_options WHERE option_name = 'widget_{at}' LIMIT 1")
        }
        1 => format!("SELECT wp_posts.* FROM wp_posts WHERE ID IN ({at}, {at}1, {at}2)"),
        _ if at == 2 => {
            "SELECT option_name, option_value FROM wp_options WHERE autoload = 'yes'".to_owned()
        }
        _ => format!(
            "SELECT t.*, tt.* FROM wp_terms AS t INNER JOIN wp_term_taxonomy AS tt ON t.term_id = tt.term_id WHERE t.term_id IN ({at})"
        ),
    }
}

/// The statements of one post's page alone.
fn own(post: u32) -> impl Iterator<Item = String> {
    let comments: Vec<String> = (0..10).map(|at| (post * 10 + at).to_string()).collect();
    let (comments, date) = (comments.join(","), date(post));
    let (year, month) = (date[..4].to_owned(), date[5..7].to_owned());
    let statements = [
        format!(
            "SELECT wp_posts.* FROM wp_posts WHERE 1=1 AND ( ( YEAR( wp_posts.post_date ) = {year} AND MONTH( wp_posts.post_date ) = {month} ) ) AND wp_posts.post_name = 'post-{post}' AND wp_posts.post_type = 'post' ORDER BY wp_posts.post_date DESC"
        ),
        format!(
            "SELECT post_id, meta_key, meta_value FROM wp_postmeta WHERE post_id IN ({post}) ORDER BY meta_id ASC"
        ),
        format!(
            "SELECT DISTINCT t.term_id, tr.object_id FROM wp_terms AS t INNER JOIN wp_term_taxonomy AS tt ON t.term_id = tt.term_id INNER JOIN wp_term_relationships AS tr ON tr.term_taxonomy_id = tt.term_taxonomy_id WHERE tt.taxonomy IN ('category', 'post_tag', 'post_format') AND tr.object_id IN ({post}) ORDER BY t.name ASC"
        ),
        format!(
            "SELECT SQL_CALC_FOUND_ROWS wp_comments.comment_ID FROM wp_comments WHERE ( comment_approved = '1' ) AND comment_post_ID = {post} AND comment_parent = 0 ORDER BY wp_comments.comment_date_gmt ASC"
        ),
        format!("SELECT wp_comments.* FROM wp_comments WHERE comment_ID IN ({comments})"),
        format!(
            "SELECT wp_comments.comment_ID FROM wp_comments WHERE ( comment_approved = '1' ) AND comment_post_ID = {post} AND comment_parent IN ({comments}) ORDER BY wp_comments.comment_date_gmt ASC"
        ),
        format!(
            "SELECT p.ID FROM wp_posts AS p WHERE p.post_date < '{date}' AND p.post_type = 'post' AND p.post_status = 'publish' ORDER BY p.post_date DESC LIMIT 1"
        ),
        format!(
            "SELECT p.ID FROM wp_posts AS p WHERE p.post_date > '{date}' AND p.post_type = 'post' AND p.post_status = 'publish' ORDER BY p.post_date ASC LIMIT 1"
        ),
    ];
    statements.into_iter()
}

fn schema() -> SqlSchema {
    let mut schema = SqlSchema::new("site");
    let number = |name: &str, key: &str| SqlColumn::new(name, "bigint(20) unsigned", None, key);
    let text = |name: &str, key: &str| SqlColumn::new(name, "varchar(255)", COLLATION, key);
    let date = |name: &str| SqlColumn::new(name, "datetime", None, "");
    schema.add(
        "wp_posts",
        vec![
            number("ID", "PRI"),
            number("post_author", "MUL"),
            date("post_date"),
            text("post_content", ""),
            text("post_title", ""),
            text("post_status", ""),
            text("post_name", "MUL"),
            number("post_parent", "MUL"),
            text("post_type", "MUL"),
        ],
    );
    let posts = table(&schema, "wp_posts");
    schema.set_logged_first(posts);
    schema.add(
        "wp_postmeta",
        vec![
            number("meta_id", "PRI"),
            number("post_id", "MUL"),
            text("meta_key", "MUL"),
            text("meta_value", ""),
        ],
    );
    schema.add(
        "wp_options",
        vec![
            number("option_id", "PRI"),
            text("option_name", "UNI"),
            text("option_value", ""),
            text("autoload", "MUL"),
        ],
    );
    schema
        .add("wp_terms", vec![number("term_id", "PRI"), text("name", "MUL"), text("slug", "MUL")]);
    schema.add(
        "wp_term_taxonomy",
        vec![number("term_taxonomy_id", "PRI"), number("term_id", "MUL"), text("taxonomy", "MUL")],
    );
    schema.add(
        "wp_term_relationships",
        vec![number("object_id", "PRI"), number("term_taxonomy_id", "PRI")],
    );
    schema.add(
        "wp_comments",
        vec![
            number("comment_ID", "PRI"),
            number("comment_post_ID", "MUL"),
            text("comment_approved", "MUL"),
            number("comment_parent", "MUL"),
            date("comment_date_gmt"),
            text("comment_content", ""),
        ],
    );
    schema
}
