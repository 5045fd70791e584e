//! Executes the meta commands (protocol.txt, "Meta Get" to "Meta Arithmetic").
//!
//! Flags take effect and are answered in the order of the request: `T` before `t` changes the time that `t`
//! returns, `T` after `t` does not. With `q` the usual answer of a command is omitted (`EN` of `mg`, `HD` of
//! the others).

use crate::answer::Answer;
use crate::base64;
use crate::decoder::Limits;
use crate::execute::{ArithmeticResult, OlderCas, StoreResult, count, store};
use crate::item::{Edit, EditResult, Expiry, Item, Items, Moment, NewCas, Page};
use crate::meta::OPAQUE_BYTES_MAX;
use crate::request::{
    Arithmetic, Flag, Meta, MetaArithmetic, MetaDelete, MetaGet, MetaSet, Refusal,
};
use bytes::Bytes;

/// Executes `mg`.
pub(crate) fn get(
    meta: &Meta<MetaGet>,
    quiet: bool,
    items: &impl Items,
    now: Moment,
    answer: &mut Answer,
) {
    let edits = |flag: &Flag| matches!(flag, Flag::Vivify(_) | Flag::Recache(_) | Flag::Touch(_));
    let plain = if meta.flags.iter().any(edits) { None } else { items.get(&meta.key, now) };
    // The first client that reads a stale item wins the recache token, which changes the item.
    let found = match plain {
        Some(item) if !item.stale || item.won => Some(FoundItem::as_it_is(item)),
        None if !meta.flags.iter().any(edits) => None,
        _ => find_or_create(meta, items, now),
    };
    let Some(met) = found else {
        if !quiet {
            answer.text(b"EN");
            echo(meta, answer);
            answer.text(b"\r\n");
        }
        return;
    };
    let item = &met.item;
    if meta.own.value {
        answer.text(b"VA ").number(item.value.len() as u64);
    } else {
        answer.text(b"HD");
    }
    describe(meta, &met, now, answer);
    answer.text(b"\r\n");
    if meta.own.value {
        answer.value(&item.value).text(b"\r\n");
    }
    if !meta.own.unseen {
        item.seen.fetch(now);
    }
}

/// An item that `mg` has found or created.
struct FoundItem {
    /// The item before the flags took effect, and the time at which it ended then.
    item: Item,
    ended: Option<Moment>,
    made: bool,
    won: bool,
}

impl FoundItem {
    fn as_it_is(item: Item) -> FoundItem {
        FoundItem { ended: item.ends, item, made: false, won: false }
    }
}

/// Reads the item and applies the flags to it in one atomic edit.
fn find_or_create(meta: &Meta<MetaGet>, items: &impl Items, now: Moment) -> Option<FoundItem> {
    let mut met: Option<FoundItem> = None;
    let vivifies = meta.flags.iter().any(|flag| matches!(flag, Flag::Vivify(_)));
    let edited = items.edit(&meta.key, now, &mut |item| {
        let (item, made) = match item {
            Some(item) => (item.clone(), false),
            None if vivifies => (Item::new(Bytes::new(), 0, None, now), true),
            None => return Edit::Keep,
        };
        let (mut changed, mut won) = (item.clone(), false);
        for flag in &meta.flags {
            match flag {
                Flag::Touch(expiry) => changed.ends = expiry.end(now),
                Flag::Vivify(expiry) if made => {
                    (changed.ends, won) = (expiry.end(now), true);
                }
                Flag::Recache(expiry) if !made && !changed.won => {
                    won |= changed.ends.is_some_and(|ends| Some(ends) < recache(*expiry, now));
                }
                _ => {}
            }
        }
        won |= item.stale && !item.won;
        changed.won |= won;
        met = Some(FoundItem { ended: item.ends, item, made, won });
        match made {
            true => Edit::Put(changed, NOTHING_SAID),
            false => Edit::Change(changed, NewCas::No),
        }
    });
    match edited {
        EditResult::Done(Some(item)) => met.map(|mut met| {
            met.item.cas = item.cas;
            met
        }),
        EditResult::Done(None) => met,
        EditResult::Not(_) => None,
    }
}

/// An item created by `N` has no tags and no lease.
const NOTHING_SAID: &Page = &Page { tags: None, lease: None };

/// The time before which an item must end so that `R` wins the recache token. `R0` gives the earliest time.
fn recache(expiry: Expiry, now: Moment) -> Option<Moment> {
    Some(expiry.end(now).unwrap_or_default())
}

/// Writes the return flags of a hit, in the order of the request.
fn describe(meta: &Meta<MetaGet>, met: &FoundItem, now: Moment, answer: &mut Answer) {
    let mut item = Item { ends: met.ended, ..met.item.clone() };
    for flag in &meta.flags {
        match flag {
            Flag::Touch(expiry) => item.ends = expiry.end(now),
            Flag::Vivify(expiry) if met.made => item.ends = expiry.end(now),
            Flag::Vivify(_) | Flag::Recache(_) => {}
            Flag::Size => answer.text(b" s").number(item.value.len() as u64).done(),
            Flag::ClientFlags => answer.text(b" f").number(item.flags.into()).done(),
            Flag::LastAccess => answer.text(b" l").number(item.seen.seconds_since(now)).done(),
            Flag::Hit => answer.text(if item.seen.fetched() { b" h1" } else { b" h0" }).done(),
            Flag::Key => key(&meta.key, item.binary_key, answer),
            Flag::Cas | Flag::Left | Flag::Opaque(_) => plain(flag, &item, now, answer),
        }
    }
    if met.item.won {
        answer.text(b" Z");
    }
    if met.item.stale {
        answer.text(b" X");
    }
    if met.won {
        answer.text(b" W");
    }
}

/// Writes a return flag that `mg` and `ma` answer in the same way.
fn plain(flag: &Flag, item: &Item, now: Moment, answer: &mut Answer) {
    match flag {
        Flag::Cas => answer.text(b" c").number(item.cas).done(),
        Flag::Left => match item.seconds_left(now) {
            None => answer.text(b" t-1").done(),
            Some(seconds) => answer.text(b" t").number(seconds).done(),
        },
        Flag::Opaque(opaque) => answer.text(b" ").text(opaque).done(),
        _ => {}
    }
}

/// Writes the return flags for a missing item: those that repeat parts of the request.
fn echo<M>(meta: &Meta<M>, answer: &mut Answer) {
    for flag in &meta.flags {
        match flag {
            Flag::Opaque(opaque) => answer.text(b" ").text(opaque).done(),
            Flag::Key => key(&meta.key, meta.binary_key, answer),
            _ => {}
        }
    }
}

fn key(key: &[u8], binary: bool, answer: &mut Answer) {
    match binary {
        false => answer.text(b" k").text(key),
        true => answer.text(b" k").text(&base64::encode(key)).text(b" b"),
    };
}

/// Executes `ms`.
pub(crate) fn set(
    meta: &Meta<MetaSet>,
    quiet: bool,
    items: &impl Items,
    limits: Limits,
    now: Moment,
    answer: &mut Answer,
) {
    let older = if meta.own.invalidate { OlderCas::Accept } else { OlderCas::Refuse };
    let stored = store(&meta.own.set, older, meta.binary_key, items, limits, now);
    let (code, cas) = match stored {
        StoreResult::Yes(_) if quiet => return,
        StoreResult::Yes(cas) => ("HD", cas),
        StoreResult::Exists => ("EX", 0),
        StoreResult::NotFound => ("NF", 0),
        StoreResult::No => ("NS", 0),
        StoreResult::Refused(refusal) => return answer.line(refusal.as_str()).done(),
    };
    answer.text(code.as_bytes());
    for flag in &meta.flags {
        match flag {
            Flag::Opaque(opaque) => answer.text(b" ").text(opaque).done(),
            Flag::Key => key(&meta.key, meta.binary_key, answer),
            Flag::Cas => answer.text(b" c").number(cas).done(),
            _ => {}
        }
    }
    answer.text(b"\r\n");
}

/// Executes `md`.
pub(crate) fn delete(
    meta: &Meta<MetaDelete>,
    quiet: bool,
    items: &impl Items,
    now: Moment,
    answer: &mut Answer,
) {
    let own = &meta.own;
    let mut code = "NF";
    items.edit(&meta.key, now, &mut |item| {
        let Some(item) = item else {
            // There is no item to mark as stale. A removal is passed on in any case.
            return if own.invalidate { Edit::Keep } else { Edit::Remove };
        };
        if own.cas.is_some_and(|cas| cas != item.cas) {
            code = "EX";
            return Edit::Keep;
        }
        code = "HD";
        if !own.invalidate {
            return Edit::Remove;
        }
        let mut item = Item { stale: true, won: false, ..item.clone() };
        if let Some(expiry) = new_end(&meta.flags) {
            item.ends = expiry.end(now);
        }
        Edit::Change(item, NewCas::Yes)
    });
    if quiet && code == "HD" {
        return;
    }
    answer.text(code.as_bytes());
    echo(meta, answer);
    answer.text(b"\r\n");
}

/// The new expiry of flag `T`.
fn new_end(flags: &[Flag]) -> Option<Expiry> {
    flags.iter().find_map(|flag| match flag {
        Flag::Touch(expiry) => Some(*expiry),
        _ => None,
    })
}

fn creates_missing(flags: &[Flag]) -> bool {
    flags.iter().any(|flag| matches!(flag, Flag::Vivify(_)))
}

/// Executes `ma`.
pub(crate) fn arithmetic(
    meta: &Meta<MetaArithmetic>,
    quiet: bool,
    items: &impl Items,
    now: Moment,
    answer: &mut Answer,
) {
    let own = &meta.own;
    let (key, direction, delta) = (meta.key.clone(), own.direction, own.delta);
    let counted = count(&Arithmetic { key, direction, delta }, own.cas, items, now);
    let is_long =
        |flag: &Flag| matches!(flag, Flag::Opaque(opaque) if opaque.len() > OPAQUE_BYTES_MAX);
    let (item, number, made) = match counted {
        // memcached has already changed the number when it detects this error.
        ArithmeticResult::Item(..) | ArithmeticResult::NotFound | ArithmeticResult::Exists
            if meta.flags.iter().any(is_long) =>
        {
            return answer.line(Refusal::OpaqueTooLong.as_str()).done();
        }
        ArithmeticResult::Item(item, number) => {
            let item = set_expiry(meta, item, items, now);
            if quiet {
                return;
            }
            (item, number, ItemCreation::Before)
        }
        ArithmeticResult::NotFound if creates_missing(&meta.flags) => {
            match create_number(meta, items, now) {
                // The flags set the expiry, in their order.
                Some(item) => (Item { ends: None, ..item }, own.initial, ItemCreation::Now),
                None => return answer.line(Refusal::NoRoom.as_str()).done(),
            }
        }
        ArithmeticResult::NotFound => return without_item("NF", meta, answer),
        ArithmeticResult::Exists => return without_item("EX", meta, answer),
        ArithmeticResult::Refused(refusal) => return answer.line(refusal.as_str()).done(),
    };
    let digits = number.to_string();
    if own.value {
        answer.text(b"VA ").number(digits.len() as u64);
    } else {
        answer.text(b"HD");
    }
    describe_number(meta, &item, made, now, answer);
    answer.text(b"\r\n");
    if own.value {
        answer.line(&digits);
    }
}

fn without_item(code: &str, meta: &Meta<MetaArithmetic>, answer: &mut Answer) {
    answer.text(code.as_bytes());
    echo(meta, answer);
    answer.text(b"\r\n");
}

/// Writes the return flags of `ma`. `T`, and `N` of a new item, affect only the flags after them.
fn describe_number(
    meta: &Meta<MetaArithmetic>,
    item: &Item,
    made: ItemCreation,
    now: Moment,
    answer: &mut Answer,
) {
    let mut item = item.clone();
    for flag in &meta.flags {
        match flag {
            Flag::Key => key(&meta.key, meta.binary_key, answer),
            Flag::Touch(expiry) => item.ends = expiry.end(now),
            Flag::Vivify(expiry) if made == ItemCreation::Now => item.ends = expiry.end(now),
            flag => plain(flag, &item, now, answer),
        }
    }
}

/// Whether this command created the item.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ItemCreation {
    Now,
    Before,
}

/// Sets the expiry given by `T`. Returns the item as it was before, for a `t` before `T`.
fn set_expiry(meta: &Meta<MetaArithmetic>, item: Item, items: &impl Items, now: Moment) -> Item {
    if let Some(expiry) = new_end(&meta.flags) {
        items.edit(&meta.key, now, &mut |found| match found {
            Some(found) if found.cas == item.cas => {
                Edit::Change(Item { ends: expiry.end(now), ..found.clone() }, NewCas::No)
            }
            _ => Edit::Keep,
        });
    }
    item
}

/// Creates the item that was missing. If another client created it at the same time, that item is returned
/// unchanged.
fn create_number(meta: &Meta<MetaArithmetic>, items: &impl Items, now: Moment) -> Option<Item> {
    let last = meta.flags.iter().rev().find_map(|flag| match flag {
        Flag::Touch(expiry) | Flag::Vivify(expiry) => Some(*expiry),
        _ => None,
    });
    let ends = last.and_then(|expiry| expiry.end(now));
    let value = Bytes::from(meta.own.initial.to_string());
    let mut there = None;
    let edited = items.edit(&meta.key, now, &mut |found| match found {
        Some(found) => {
            there = Some(found.clone());
            Edit::Keep
        }
        None => Edit::Put(Item::new(value.clone(), 0, ends, now), NOTHING_SAID),
    });
    match edited {
        EditResult::Done(Some(item)) => Some(item),
        EditResult::Done(None) => there,
        EditResult::Not(_) => None,
    }
}

/// Executes `me`, which is for people. Instead of internals of memcached (class, size) it reports similar
/// values.
pub(crate) fn debug(key: &[u8], items: &impl Items, now: Moment, answer: &mut Answer) {
    let Some(item) = items.get(key, now) else { return answer.line("EN").done() };
    answer.text(b"ME ");
    match item.binary_key {
        false => answer.text(key),
        true => answer.text(&base64::encode(key)),
    };
    match item.seconds_left(now) {
        None => answer.text(b" exp=-1"),
        Some(seconds) => answer.text(b" exp=").number(seconds),
    };
    answer.text(b" la=").number(item.seen.seconds_since(now)).text(b" cas=").number(item.cas);
    answer.text(if item.seen.fetched() { b" fetch=yes" } else { b" fetch=no" });
    answer.text(b" cls=1 size=").number((key.len() + item.value.len()) as u64).text(b"\r\n");
}
