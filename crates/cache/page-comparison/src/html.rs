//! HTML as tokens: tags, attributes, words of text and of comments.
//!
//! The tree of elements is approximate: an end tag closes the nearest element of its name, and an element that no
//! end tag closes contains what follows. It only gives places their names, and is the same for the same content.

use crate::place::{MAX_DEPTH, ROOT};
use crate::tokens::TokenWriter;
use html5gum::{DefaultEmitter, Token, Tokenizer};

/// Elements that never have content (HTML, section 13.1.2).
const VOID: [&str; 14] = [
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source",
    "track", "wbr",
];

/// How comments begin that are markup for ESI, server-side includes and old browsers.
const MARKUP: [&[u8]; 3] = [b"esi", b"#", b"[if"];

/// Elements that end one of their own name which is still open.
const CLOSED_BY_NEXT: [&str; 8] = ["li", "p", "tr", "td", "th", "option", "dt", "dd"];

/// Where the tokenizer is.
#[derive(Default)]
struct OpenElements {
    /// The open elements: name, place, and the number of the next word of their text.
    open: Vec<(Box<str>, u32, u32)>,
}

impl OpenElements {
    fn place(&self) -> u32 {
        self.open.last().map_or(ROOT, |(_, place, _)| *place)
    }

    /// Closes the nearest element of this name, and those inside of it.
    fn close(&mut self, writer: &mut TokenWriter, name: &str) {
        if let Some(at) = self.open.iter().rposition(|(open, ..)| **open == *name) {
            writer.end(self.open[at].1, name.as_bytes());
            self.open.truncate(at);
        }
    }
}

/// Writes the tokens of HTML.
pub(crate) fn write(writer: &mut TokenWriter, content: &[u8]) -> bool {
    let mut emitter = DefaultEmitter::<()>::default();
    emitter.naively_switch_states(true);
    let mut elements = OpenElements::default();
    for token in Tokenizer::new_with_emitter(content, emitter) {
        let Ok(token) = token;
        if writer.is_full() {
            return false;
        }
        match token {
            Token::StartTag(tag) => start(writer, &mut elements, &tag),
            Token::EndTag(tag) => {
                elements.close(writer, &String::from_utf8_lossy(&tag.name));
            }
            Token::String(text) => words(writer, &mut elements, &text),
            Token::Comment(text) => {
                let place = writer.places.child(elements.place(), "comment");
                comment(writer, place, &text);
            }
            Token::Doctype(doctype) => {
                let place = writer.places.only(ROOT, "doctype");
                writer.text(place, &doctype.name);
            }
            Token::Error(_) => {}
        }
    }
    true
}

fn start(writer: &mut TokenWriter, elements: &mut OpenElements, tag: &html5gum::StartTag<()>) {
    let name = String::from_utf8_lossy(&tag.name).into_owned();
    if CLOSED_BY_NEXT.contains(&name.as_str())
        && elements.open.last().is_some_and(|(open, ..)| **open == *name)
    {
        elements.open.pop();
    }
    let is_deep = elements.open.len() >= MAX_DEPTH;
    let place =
        if is_deep { elements.place() } else { writer.places.child(elements.place(), &name) };
    writer.word(place, 0, &tag.name);
    for (attribute, value) in &tag.attributes {
        let name = format!("[{}]", String::from_utf8_lossy(attribute));
        let at = writer.places.only(place, &name);
        writer.word(at, 0, attribute);
        writer.text(at, value);
    }
    if !is_deep && !tag.self_closing && !VOID.contains(&name.as_str()) {
        elements.open.push((name.into(), place, 1));
    }
}

/// Writes a comment. One that no program takes for markup is a remark: its words with digits are left out, because they
/// are the time of the render, its milliseconds, or its memory.
pub(crate) fn comment(writer: &mut TokenWriter, place: u32, text: &[u8]) {
    if MARKUP.iter().any(|start| text.starts_with(start)) {
        writer.text(place, text);
        return;
    }
    let words = text.split(u8::is_ascii_whitespace);
    let mut next = 1;
    for word in words.filter(|word| !word.iter().any(u8::is_ascii_digit)) {
        next = writer.text_after(place, next, word);
    }
}

fn words(writer: &mut TokenWriter, elements: &mut OpenElements, text: &[u8]) {
    match elements.open.last_mut() {
        Some((_, place, next)) => *next = writer.text_after(*place, *next, text),
        None => {
            let place = writer.places.only(ROOT, "text");
            writer.text(place, text);
        }
    }
}
