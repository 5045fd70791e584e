//! `pagewell top`: a live view of a running Pagewell in the terminal.
//!
//! | file | content |
//! |---|---|
//! | `lists` | the lists below: databases and nodes, causes of misses, invalidations |
//! | `moments` | the metrics of the last two minutes, and values derived from two samples |
//! | `picture` | the layout: lines of styled text that fit the terminal |
//! | `shown` | formats numbers, times, bars and sparklines |
//! | `terminal` | terminal mode, keys and signals, with ratatui and crossterm |
//!
//! Metrics come from `GET /v1/live`; the lists from their own calls. If
//! standard output is not a terminal, the metrics of one second are printed once. The terminal is
//! restored at the end in any case: a key, a signal, an error. `top` does not change anything.

mod lists;
mod moments;
mod picture;
mod shown;
mod terminal;

use crate::client::{EventStream, follow, tell};
use command_line::options::{ControlArgs, TopArgs};
use moments::Moments;
use picture::{Link, Size, TopExtras, View};
use serde_json::Value;
use std::io::{IsTerminal, Write};
use std::time::Duration;
use telemetry::clock::Clock;
use terminal::{Key, Terminal};
use tokio::sync::mpsc;

/// The interval for reading the lists.
const BESIDES_EVERY: Duration = Duration::from_secs(3);
/// The interval between attempts to reconnect to Pagewell.
const AGAIN: Duration = Duration::from_secs(1);
/// The number of samples without a terminal: two, because rates need two.
const MOMENTS_OF_ONE: u32 = 2;
const PLAIN: Size = Size { columns: 100, rows: 40 };

/// Runs `pagewell top`.
///
/// # Errors
/// A sentence for the operator.
pub async fn run(args: &TopArgs) -> Result<(), String> {
    let mut view = View::new(&args.control.admin, args.site.clone(), terminal::speaks_utf8());
    if std::io::stdout().is_terminal() && std::io::stdin().is_terminal() {
        return watch(args, &mut view).await;
    }
    let mut stream = follow(&args.control, Some(MOMENTS_OF_ONE)).await?;
    let mut moments = Moments::default();
    while let Some(event) = stream.next().await? {
        moments.add(&event);
    }
    view.check(&moments)?;
    view.extras = fetch_extras(&args.control).await;
    let lines = picture::lines(&view, &moments, PLAIN);
    let text: String =
        lines.iter().map(|line| picture::plain(line, PLAIN.columns) + "\n").collect();
    std::io::stdout()
        .write_all(text.as_bytes())
        .map_err(|error| format!("standard output cannot be written: {error}"))
}

/// Events that change the view.
enum TopEvent {
    Told(Value),
    Lost(String),
    Besides(Box<TopExtras>),
    Pressed(Key),
    Resized,
    Over,
}

async fn watch(args: &TopArgs, view: &mut View) -> Result<(), String> {
    let stream = follow(&args.control, None).await?;
    let mut moments = Moments::default();
    let (sender, mut happened) = mpsc::channel(64);
    tokio::spawn(listen(args.control.clone(), stream, sender.clone()));
    tokio::spawn(poll_extras(args.control.clone(), sender.clone()));
    terminal::signals(&sender, || TopEvent::Over)?;
    let mut terminal = Terminal::take()?;
    terminal::events(sender, TopEvent::Pressed, || TopEvent::Resized);
    view.is_watched = true;
    while let Some(what) = happened.recv().await {
        match what {
            TopEvent::Told(event) => {
                view.link = Link::There;
                moments.add(&event);
                view.check(&moments)?;
            }
            TopEvent::Lost(why) => view.link = Link::Lost(why),
            TopEvent::Besides(extras) => view.extras = *extras,
            TopEvent::Pressed(Key::Quit) | TopEvent::Over => return Ok(()),
            TopEvent::Pressed(Key::NextSite) => view.next_site(&moments),
            TopEvent::Resized => {}
        }
        terminal.draw(&picture::lines(view, &moments, terminal.size()))?;
    }
    Ok(())
}

/// Forwards the metrics, and reconnects when the connection ends.
async fn listen(args: ControlArgs, mut stream: EventStream, sender: mpsc::Sender<TopEvent>) {
    loop {
        let why = loop {
            match stream.next().await {
                Ok(Some(event)) => {
                    if sender.send(TopEvent::Told(event)).await.is_err() {
                        return;
                    }
                }
                Ok(None) => break "Pagewell has ended the stream".to_owned(),
                Err(error) => break error,
            }
        };
        let mut why = why;
        stream = loop {
            if sender.send(TopEvent::Lost(why)).await.is_err() {
                return;
            }
            tokio::time::sleep(AGAIN).await;
            match follow(&args, None).await {
                Ok(stream) => break stream,
                Err(error) => why = error,
            }
        };
    }
}

async fn poll_extras(args: ControlArgs, sender: mpsc::Sender<TopEvent>) {
    loop {
        let extras = Box::new(fetch_extras(&args).await);
        if sender.send(TopEvent::Besides(extras)).await.is_err() {
            return;
        }
        tokio::time::sleep(BESIDES_EVERY).await;
    }
}

/// Reads the lists; empty if they are not available.
async fn fetch_extras(args: &ControlArgs) -> TopExtras {
    let ask = async |path| tell(args, path).await.ok().flatten().unwrap_or_default();
    TopExtras {
        misses: ask("/v1/misses").await,
        changes: ask("/v1/changes").await,
        sources: ask("/v1/sources").await,
        now_ms: Clock::start().now().0,
    }
}
