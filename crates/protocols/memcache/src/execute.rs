//! Executes requests against [`Items`], and writes the same answers as memcached.
//!
//! Each command edits one key atomically ([`Items::edit`]); `get` and `gat` of several keys are several edits,
//! as in memcached. No answer is written if the client does not want one (`noreply`).

use crate::answer::Answer;
use crate::classic::KEY_BYTES_MAX;
use crate::decoder::Limits;
use crate::item::{Edit, EditResult, Expiry, Item, Items, Moment, NewCas, SetRefusal};
use crate::line;
use crate::request::{
    Arithmetic, Command, Direction, Get, Mode, OversizedValue, Refusal, Request, StorageCommand,
    Touch,
};
use bytes::Bytes;

/// Whether the connection continues after a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The connection continues.
    Go,
    /// The connection is closed after the answer has been sent.
    Close,
}

/// Executes `request` at `now`, and appends the answer to `answer`. `limits` are those of the decoder.
pub fn execute(
    request: &Request,
    items: &impl Items,
    limits: Limits,
    now: Moment,
    answer: &mut Answer,
) -> Next {
    let (quiet, before) = (request.quiet, answer.mark());
    match &request.command {
        Command::Get(get) => fetch(get, items, now, answer),
        Command::Stats(of, more) => stats((of.as_deref(), more.as_deref()), items, now, answer),
        Command::Version => answer.text(b"VERSION ").line(items.version()).done(),
        Command::Quit => return Next::Close,
        command => {
            classic(command, items, limits, now, answer);
            if quiet {
                answer.back_to(before);
            }
        }
    }
    Next::Go
}

/// Executes the commands for which `noreply` suppresses the whole answer.
fn classic(
    command: &Command,
    items: &impl Items,
    limits: Limits,
    now: Moment,
    answer: &mut Answer,
) {
    let line = match command {
        Command::Set(set) => store(set, items, limits, now).as_line(),
        Command::Delete(delete) if remove(&delete.key, items, now) => "DELETED",
        Command::Delete(_) => "NOT_FOUND",
        Command::Touch(touch) => self::touch(touch, items, now),
        Command::Arithmetic(arithmetic) => match count(arithmetic, items, now) {
            ArithmeticResult::Number(number) => return answer.number(number).text(b"\r\n").done(),
            ArithmeticResult::NotFound => "NOT_FOUND",
            ArithmeticResult::Refused(refusal) => refusal.as_str(),
        },
        Command::Flush(expiry) => {
            let at = match expiry {
                Expiry::Past => now,
                expiry => expiry.end(now).unwrap_or(now),
            };
            items.flush(at, now);
            "OK"
        }
        Command::Verbosity => "OK",
        Command::Oversized(oversized) => discard(oversized, items, now),
        Command::Refused(refusal) => refusal.as_str(),
        _ => return,
    };
    answer.line(line);
}

fn fetch(get: &Get, items: &impl Items, now: Moment, answer: &mut Answer) {
    let before = answer.mark();
    for key in line::all(&get.keys) {
        if key.len() > KEY_BYTES_MAX {
            // The items found before the error are not sent either.
            answer.back_to(before);
            answer.line(Refusal::BadLine.as_str());
            return;
        }
        let item = match get.touch {
            None => items.get(key, now),
            Some(expiry) => touch_item(key, expiry, items, now),
        };
        let Some(item) = item else { continue };
        answer.text(b"VALUE ").text(key).text(b" ").number(item.flags.into());
        answer.text(b" ").number(item.value.len() as u64);
        if get.cas {
            answer.text(b" ").number(item.cas);
        }
        answer.text(b"\r\n").value(&item.value).text(b"\r\n");
    }
    answer.line("END");
}

fn touch(touch: &Touch, items: &impl Items, now: Moment) -> &'static str {
    match touch_item(&touch.key, touch.expiry, items, now) {
        Some(_) => "TOUCHED",
        None => "NOT_FOUND",
    }
}

/// Sets a new expiry time, and returns the item as it was before.
fn touch_item(key: &[u8], expiry: Expiry, items: &impl Items, now: Moment) -> Option<Item> {
    let mut found = None;
    items.edit(key, now, &mut |item| {
        found = item.cloned();
        match item {
            Some(item) => Edit::Change(Item { ends: expiry.end(now), ..item.clone() }, NewCas::No),
            None => Edit::Keep,
        }
    });
    found
}

/// Removes an item, and returns whether there was one.
fn remove(key: &[u8], items: &impl Items, now: Moment) -> bool {
    let mut found = false;
    items.edit(key, now, &mut |item| {
        found |= item.is_some();
        Edit::Remove
    });
    found
}

fn discard(oversized: &OversizedValue, items: &impl Items, now: Moment) -> &'static str {
    if oversized.discards {
        items.edit(&oversized.key, now, &mut |_| Edit::Discard);
    }
    Refusal::TooLarge.as_str()
}

/// The result of storing a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StoreResult {
    /// The value is stored.
    Yes,
    /// The item has another `cas` number.
    Exists,
    /// There is no item to compare with.
    NotFound,
    /// The mode requires an item, or no item, and the opposite is the case.
    No,
    /// The value was refused.
    Refused(Refusal),
}

impl StoreResult {
    fn as_line(self) -> &'static str {
        match self {
            StoreResult::Yes => "STORED",
            StoreResult::Exists => "EXISTS",
            StoreResult::NotFound => "NOT_FOUND",
            StoreResult::No => "NOT_STORED",
            StoreResult::Refused(refusal) => refusal.as_str(),
        }
    }
}

/// Stores a value according to its mode.
fn store(set: &StorageCommand, items: &impl Items, limits: Limits, now: Moment) -> StoreResult {
    let mut said = StoreResult::No;
    let edited = items.edit(&set.key, now, &mut |old| {
        let item = Item::new(set.value.clone(), set.flags, set.expiry.end(now), now);
        let put = match old {
            None => without_old(set, item),
            Some(old) => with_old(set, old, item, limits, now),
        };
        put.unwrap_or_else(|stored| {
            said = stored;
            Edit::Keep
        })
    });
    match edited {
        EditResult::Done(Some(_)) => StoreResult::Yes,
        EditResult::Done(None) => said,
        EditResult::Not(SetRefusal::Changed) if set.mode == Mode::Cas => StoreResult::Exists,
        EditResult::Not(SetRefusal::Changed) => StoreResult::No,
        EditResult::Not(SetRefusal::NoRoom) => StoreResult::Refused(Refusal::NoRoom),
        EditResult::Not(SetRefusal::Unreadable) => StoreResult::Refused(Refusal::UnreadablePage),
        EditResult::Not(SetRefusal::Encoded) => StoreResult::Refused(Refusal::EncodedPage),
    }
}

fn without_old(set: &StorageCommand, item: Item) -> Result<Edit, StoreResult> {
    match set.mode {
        Mode::Set | Mode::Add => Ok(Edit::Put(item)),
        Mode::Cas => Err(StoreResult::NotFound),
        Mode::Replace | Mode::Append | Mode::Prepend => Err(StoreResult::No),
    }
}

fn with_old(
    set: &StorageCommand,
    old: &Item,
    item: Item,
    limits: Limits,
    now: Moment,
) -> Result<Edit, StoreResult> {
    match set.mode {
        Mode::Set | Mode::Replace => Ok(Edit::Put(item)),
        Mode::Add => Err(StoreResult::No),
        Mode::Cas if set.cas != 0 && set.cas == old.cas => Ok(Edit::Put(item)),
        Mode::Cas => Err(StoreResult::Exists),
        Mode::Append => concatenate(old, &old.value, &set.value, &set.key, limits, now),
        Mode::Prepend => concatenate(old, &set.value, &old.value, &set.key, limits, now),
    }
}

fn concatenate(
    old: &Item,
    first: &[u8],
    second: &[u8],
    key: &[u8],
    limits: Limits,
    now: Moment,
) -> Result<Edit, StoreResult> {
    if !limits.allow(key.len(), old.flags, first.len() + second.len()) {
        return Err(StoreResult::No);
    }
    let value = Bytes::from([first, second].concat());
    Ok(Edit::Change(old.remade(value, now), NewCas::Yes))
}

/// The result of `incr` and `decr`.
enum ArithmeticResult {
    /// The new number of the item.
    Number(u64),
    /// There is no item.
    NotFound,
    /// The value of the item is not a number.
    Refused(Refusal),
}

/// Adds to a number or subtracts from it.
fn count(arithmetic: &Arithmetic, items: &impl Items, now: Moment) -> ArithmeticResult {
    let (mut counted, mut number) = (ArithmeticResult::NotFound, 0);
    let edited = items.edit(&arithmetic.key, now, &mut |item| {
        let Some(item) = item else { return Edit::Keep };
        match apply_arithmetic(item, arithmetic, now) {
            Some((changed, to)) => {
                number = to;
                Edit::Change(changed, NewCas::Yes)
            }
            None => {
                counted = ArithmeticResult::Refused(Refusal::NotANumber);
                Edit::Keep
            }
        }
    });
    match edited {
        EditResult::Done(Some(_)) => ArithmeticResult::Number(number),
        EditResult::Done(None) => counted,
        EditResult::Not(_) => ArithmeticResult::NotFound,
    }
}

/// A number that becomes shorter is padded with spaces to its old length (protocol.txt, "Increment/Decrement").
fn apply_arithmetic(item: &Item, arithmetic: &Arithmetic, now: Moment) -> Option<(Item, u64)> {
    let old = (!item.value.is_empty()).then(|| line::large(&item.value)).flatten()?;
    let number = match arithmetic.direction {
        Direction::Up => old.wrapping_add(arithmetic.delta),
        Direction::Down => old.saturating_sub(arithmetic.delta),
    };
    let mut value = number.to_string();
    let blanks = item.value.len().saturating_sub(value.len());
    value.extend(std::iter::repeat_n(' ', blanks));
    let value = Bytes::from(value);
    // As in memcached, a longer number is a new item.
    let changed = if value.len() > item.value.len() {
        item.remade(value, now)
    } else {
        Item { value, ..item.clone() }
    };
    Some((changed, number))
}

fn stats(of: (Option<&[u8]>, Option<&[u8]>), items: &impl Items, now: Moment, answer: &mut Answer) {
    match of {
        (None, _) => {
            for (name, value) in items.stats(now) {
                answer.text(b"STAT ").text(name.as_bytes()).text(b" ").line(&value);
            }
            answer.line("END");
        }
        // There are no counters to reset, and no statistics by class, size or prefix.
        (Some(b"reset"), _) => answer.line("RESET").done(),
        (Some(b"sizes"), _) => answer.line("STAT sizes_status disabled").line("END").done(),
        (Some(b"detail"), Some(b"on" | b"off")) => answer.line("OK").done(),
        (Some(b"detail"), Some(b"dump")) => answer.line("END").done(),
        (Some(b"detail"), _) => answer.line(Refusal::BadDetail.as_str()).done(),
        (Some(b"settings" | b"items" | b"slabs" | b"conns"), _) => answer.line("END").done(),
        (Some(_), _) => answer.line(Refusal::Unknown.as_str()).done(),
    }
}
