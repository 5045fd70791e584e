//! `pagewell top`: a running Pagewell at a glance, in the terminal.
//!
//! | file | |
//! |---|---|
//! | `moments` | what was told in the last minutes, and what follows from two moments of it |
//! | `picture` | what is shown: lines of styled text, as wide and high as there is room |
//! | `shown` | numbers, times, bars and lines of blocks as text |
//! | `terminal` | the terminal: taken, drawn on, and given back as it was |
//!
//! The figures come from `GET /v1/live`, reasons and changes from the calls for them. Where standard
//! output is no terminal, one picture of a second is printed, and that is all. Whatever ends it (a key,
//! a signal, an error) gives the terminal back. Not here: changing anything.

mod moments;
mod picture;
mod shown;
mod terminal;

use crate::clock::Clock;
use crate::control::client::{Followed, follow, tell};
use crate::options::{ControlArgs, TopArgs};
use moments::Moments;
use picture::{Besides, Link, Size, View};
use serde_json::Value;
use std::io::{IsTerminal, Write};
use std::time::Duration;
use terminal::{Key, Terminal};
use tokio::sync::mpsc;

/// How often reasons and changes are read.
const BESIDES_EVERY: Duration = Duration::from_secs(3);
/// Between two attempts to reach a Pagewell that has gone.
const AGAIN: Duration = Duration::from_secs(1);
/// What one picture is made of where there is no terminal: two moments, for there are rates in it.
const MOMENTS_OF_ONE: u32 = 2;
const PLAIN: Size = Size { columns: 100, rows: 40 };

/// Carries out `pagewell top`.
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
    view.besides = besides(&args.control).await;
    let lines = picture::lines(&view, &moments, PLAIN);
    let text: String = lines.iter().map(|line| line.plain(PLAIN.columns) + "\n").collect();
    std::io::stdout()
        .write_all(text.as_bytes())
        .map_err(|error| format!("standard output cannot be written: {error}"))
}

/// What may happen while it is shown.
enum Happened {
    Told(Value),
    Lost(String),
    Besides(Box<Besides>),
    Pressed(Key),
    Resized,
    Over,
}

async fn watch(args: &TopArgs, view: &mut View) -> Result<(), String> {
    let stream = follow(&args.control, None).await?;
    let mut moments = Moments::default();
    let (sender, mut happened) = mpsc::channel(64);
    tokio::spawn(listen(args.control.clone(), stream, sender.clone()));
    tokio::spawn(look_besides(args.control.clone(), sender.clone()));
    terminal::signals(&sender, || Happened::Resized, || Happened::Over)?;
    let mut terminal = Terminal::take()?;
    terminal::keys(sender, Happened::Pressed);
    view.is_watched = true;
    while let Some(what) = happened.recv().await {
        match what {
            Happened::Told(event) => {
                view.link = Link::There;
                moments.add(&event);
                view.check(&moments)?;
            }
            Happened::Lost(why) => view.link = Link::Lost(why),
            Happened::Besides(besides) => view.besides = *besides,
            Happened::Pressed(Key::Quit) | Happened::Over => return Ok(()),
            Happened::Pressed(Key::NextSite) => view.next_site(&moments),
            Happened::Resized => {}
        }
        terminal.draw(&picture::lines(view, &moments, terminal.size()))?;
    }
    Ok(())
}

/// Tells what is told, and takes the stream up again when it breaks.
async fn listen(args: ControlArgs, mut stream: Followed, sender: mpsc::Sender<Happened>) {
    loop {
        let why = loop {
            match stream.next().await {
                Ok(Some(event)) => {
                    if sender.send(Happened::Told(event)).await.is_err() {
                        return;
                    }
                }
                Ok(None) => break "Pagewell has ended the stream".to_owned(),
                Err(error) => break error,
            }
        };
        let mut why = why;
        stream = loop {
            if sender.send(Happened::Lost(why)).await.is_err() {
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

async fn look_besides(args: ControlArgs, sender: mpsc::Sender<Happened>) {
    loop {
        let besides = Box::new(besides(&args).await);
        if sender.send(Happened::Besides(besides)).await.is_err() {
            return;
        }
        tokio::time::sleep(BESIDES_EVERY).await;
    }
}

/// Reasons and changes; none where they are not told.
async fn besides(args: &ControlArgs) -> Besides {
    let ask = async |path| tell(args, path).await.ok().flatten().unwrap_or_default();
    let (offenders, changes) = (ask("/v1/offenders").await, ask("/v1/changes").await);
    Besides { offenders, changes, now_ms: Clock::start().now().0 }
}
