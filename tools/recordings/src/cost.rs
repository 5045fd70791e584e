//! `cargo recordings cost`: the CPU time that the capture of statements adds to a render.
//!
//! The same php-fpm renders the same pages of Debian's WordPress with and without the FastCGI parameters that
//! ask for a report, in turns. The CPU time of php-fpm (median of the turns, so that a busy machine disturbs it
//! little) and of the database (mean, because the system counts it in hundredths of a second) counts; not here: the time in which Pagewell reads the report,
//! which `cargo measure footprints` has.

use super::record::{AdminRequest, Blog, Sidebar};
use harness::cpu;

/// The pages that are rendered in turn.
const TARGETS: [&str; 4] = ["/", "/2023/08/post-298/", "/category/science/", "/?s=zebracorn"];
/// The renders of a turn.
const TURN: u32 = TARGETS.len() as u32;

/// The CPU time of a turn, in seconds.
#[derive(Debug, Default, Clone, Copy)]
struct RenderCost {
    php: f64,
    database: f64,
}

/// Measures, and prints milliseconds per render and their ratio.
///
/// # Errors
/// A message, if a server does not start or a report is incomplete.
#[expect(clippy::cast_precision_loss, reason = "figures for people")]
pub fn run(renders: u32) -> Result<(), String> {
    let blog = Blog::start(Sidebar::Default)?;
    turn(&blog, plain_render)?;
    turn(&blog, captured_render)?;
    let (mut plain, mut captured, mut all) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..renders.div_ceil(TURN) {
        plain.push(turn(&blog, plain_render)?);
        captured.push(turn(&blog, captured_render)?);
    }
    println!("| Render | php-fpm | Database | Both |");
    println!("|---|---|---|---|");
    for (name, turns) in [("without capture", &plain), ("with capture", &captured)] {
        let milliseconds = 1e3 / f64::from(TURN);
        let php = median(turns.iter().map(|turn| turn.php).collect()) * milliseconds;
        let database: f64 = turns.iter().map(|turn| turn.database).sum();
        let database = database * milliseconds / turns.len() as f64;
        println!("| {name} | {php:.2} ms | {database:.2} ms | {:.2} ms |", php + database);
        all.push(php + database);
    }
    println!("\nThe capture adds {:.1} %.", (all[1] / all[0] - 1.0) * 100.0);
    Ok(())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

type Render = fn(&Blog, &str) -> Result<(), String>;

/// Renders some pages, and returns the CPU time that they took.
fn turn(blog: &Blog, render: Render) -> Result<RenderCost, String> {
    let now = || -> Result<(f64, f64), String> {
        let [php, database] = blog.pids().ok_or("a server has ended")?;
        Ok((cpu::scheduled_seconds(php), cpu::seconds(database)))
    };
    let before = now()?;
    for target in TARGETS.iter().cycle().take(TURN as usize) {
        render(blog, target)?;
    }
    let after = now()?;
    Ok(RenderCost { php: after.0 - before.0, database: after.1 - before.1 })
}

fn plain_render(blog: &Blog, target: &str) -> Result<(), String> {
    let request = AdminRequest { method: "GET", target, ..AdminRequest::default() };
    blog.send(&request).map(drop)
}

fn captured_render(blog: &Blog, target: &str) -> Result<(), String> {
    blog.visit(target).map(drop)
}
