//! Parses a step, a line that is not indented: a client's request, the control API, the clock, the origin, a
//! wait.
//!
//! The first word selects the kind of step. A line that begins with another word is a client's request.

use super::LineError;
use super::expect;
use super::rule::which;
use super::words::{content, field, first, is_token, number, quoted, split_at, split_fields, text};
use crate::blanks;
use crate::story::{Action, Comparison, Invalidation, Message, Text};

/// The default host of requests.
const HOST: &str = "example.test";

/// The name of the client for lines without one.
const CLIENT: &str = "client";

/// Parses one step.
pub(super) fn parse(line: &str) -> Result<Action, LineError> {
    let (word, rest) = first(line);
    match word {
        "clock" => {
            let shift = rest.strip_prefix('+').and_then(blanks::duration);
            shift.map(Action::Clock).ok_or(("clock +11s (ms, s, m, h, d)", rest.to_owned()))
        }
        "release" => Ok(Action::Release { gate: name(rest)? }),
        "finish" => Ok(Action::Finish { client: name(rest)? }),
        "leave" => Ok(Action::Leave { client: name(rest)? }),
        "invalidate" => invalidate(rest),
        "stat" => stat(rest),
        "admin" => admin(rest),
        "await" => waited(rest),
        "origin" => origin(rest),
        _ => client(line),
    }
}

fn name(word: &str) -> Result<String, LineError> {
    if is_token(word) { Ok(word.to_owned()) } else { Err(("a name", word.to_owned())) }
}

/// `[NAME:] REQUEST (=> EXPECTATION | &)`
fn client(line: &str) -> Result<Action, LineError> {
    let (client, rest) = match line.split_once(": ") {
        Some((client, rest)) if is_token(client) => (client.to_owned(), rest),
        _ => (CLIENT.to_owned(), line),
    };
    let (left, right) = split_at(rest, "=>")?;
    if let (Some(left), None) = (left.strip_suffix(" &"), right) {
        return Ok(Action::Send { client, message: message(left)? });
    }
    let right = right.ok_or(("=> and what must come, or & to go on", line.to_owned()))?;
    let expect = expect::parse(right)?;
    Ok(match left {
        "more" => Action::More { client, expect },
        _ => Action::Ask { client, message: message(left)?, expect },
    })
}

/// `METHOD TARGET [fields] [| content]` or `raw "…"`
fn message(text_left: &str) -> Result<Message, LineError> {
    let (word, rest) = first(text_left);
    if word == "raw" {
        return Ok(Message::Raw(quoted(rest)?));
    }
    let method = method(word).ok_or((
        "get, head, post, put, delete, patch, options, purge, a METHOD, raw or more",
        text_left.to_owned(),
    ))?;
    let (head, body) = split_at(rest, "|")?;
    let (target, rest) = first(head);
    if target.is_empty() {
        return Err(("a request target", text_left.to_owned()));
    }
    let (mut fields, mut with_host) = (Vec::new(), true);
    for piece in split_fields(rest)? {
        match piece {
            "!host" => with_host = false,
            _ => fields.push(field(piece)?),
        }
    }
    if with_host && !fields.iter().any(|(name, _)| name == "host") {
        fields.insert(0, ("host".into(), Text(HOST.into())));
    }
    let target = text(target.as_bytes())?;
    Ok(Message::Http { method, target, fields, body: body.map(content).transpose()? })
}

/// Parses a method: one of the known lower-case names, or any upper-case letters.
fn method(word: &str) -> Option<String> {
    const VERBS: [&str; 9] =
        ["get", "head", "post", "put", "delete", "patch", "options", "purge", "trace"];
    let upper = !word.is_empty() && word.bytes().all(|b| b.is_ascii_uppercase() || b == b'-');
    (upper || VERBS.contains(&word)).then(|| word.to_ascii_uppercase())
}

/// Parses the text after `await`.
fn waited(rest: &str) -> Result<Action, LineError> {
    let (word, after) = first(rest);
    if word == "origin" {
        return hold(after);
    }
    let (left, right) = split_at(rest, "=>")?;
    let right = right.ok_or(("await NAME => what must come", rest.to_owned()))?;
    if is_token(left) {
        return Ok(Action::Collect { client: left.to_owned(), expect: expect::parse(right)? });
    }
    match client(rest)? {
        Action::Ask { client, message, expect } => Ok(Action::Repeat { client, message, expect }),
        _ => Err(("await with one request", rest.to_owned())),
    }
}

/// Parses the text after `await origin`.
fn hold(rest: &str) -> Result<Action, LineError> {
    let (gate, after) = first(rest);
    if !is_token(gate) {
        return Err(("await origin HOLD", rest.to_owned()));
    }
    let count = if after.is_empty() { 1 } else { number(after)? };
    Ok(Action::AwaitHold { gate: gate.to_owned(), count })
}

/// Parses the text after `origin`.
fn origin(rest: &str) -> Result<Action, LineError> {
    let (word, after) = first(rest);
    match word {
        "down" if after.is_empty() => Ok(Action::OriginDown),
        "up" if after.is_empty() => Ok(Action::OriginUp),
        "saw" => {
            let (count, after) = first(after);
            let only = match after {
                "" => None,
                _ => match which(after)? {
                    (only, "") => Some(only),
                    (_, more) => return Err(("METHOD PATH and no more", more.to_owned())),
                },
            };
            Ok(Action::OriginSaw { count: number(count)?, only })
        }
        "last" => {
            let (head, body) = split_at(after, "|")?;
            let (only, rest) = match which(head) {
                Ok((only, rest)) => (Some(only), rest),
                Err(_) => (None, head),
            };
            let body = body.map(expect::body_test).transpose()?;
            Ok(Action::OriginLast { only, fields: expect::fields(rest)?, body })
        }
        _ => Err(("origin down, up, saw N or last …", rest.to_owned())),
    }
}

/// `NAME=N`, `NAME>=N` or `NAME<=N`
fn stat(text: &str) -> Result<Action, LineError> {
    let signs = [(">=", Comparison::AtLeast), ("<=", Comparison::AtMost), ("=", Comparison::Equal)];
    for (sign, comparison) in signs {
        if let Some((left, right)) = text.split_once(sign) {
            let number = number(right.trim())?;
            return Ok(Action::Stat { name: name(left.trim())?, comparison, number });
        }
    }
    Err(("NAME=N, NAME>=N or NAME<=N", text.to_owned()))
}

/// `tag NAME…`, `url PATH…` or `all`, and the expected number of removed pages.
fn invalidate(rest: &str) -> Result<Action, LineError> {
    let (left, right) = split_at(rest, "=>")?;
    let (kind, names) = first(left);
    let names: Result<Vec<Text>, _> =
        names.split_whitespace().map(|name| text(name.as_bytes())).collect();
    let names = names?;
    let what = match kind {
        "tag" if !names.is_empty() => Invalidation::Tags(names),
        "url" if !names.is_empty() => Invalidation::Urls(names),
        "all" if names.is_empty() => Invalidation::All,
        _ => return Err(("invalidate tag NAME…, url PATH… or all", rest.to_owned())),
    };
    Ok(Action::Invalidate { what, count: right.map(number).transpose()? })
}

/// Parses a request to the control API. The default host is `localhost`, the default content type is JSON.
fn admin(rest: &str) -> Result<Action, LineError> {
    let (mut message, expect) = match client(rest)? {
        Action::Ask { client, message, expect } if client == CLIENT => (message, expect),
        _ => return Err(("admin METHOD PATH => …", rest.to_owned())),
    };
    if let Message::Http { fields, body, .. } = &mut message {
        for (name, value) in fields.iter_mut() {
            if name == "host" && value.0 == HOST.as_bytes() {
                *value = Text("localhost".into());
            }
        }
        if body.is_some() && !fields.iter().any(|(name, _)| name == "content-type") {
            fields.push(("content-type".into(), Text("application/json".into())));
        }
    }
    Ok(Action::Admin { message, expect })
}

#[cfg(test)]
#[path = "step_tests.rs"]
mod tests;
