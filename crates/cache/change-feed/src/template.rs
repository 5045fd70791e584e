//! Tag templates: tags with columns, such as `news:{news_id}`, or `month:{published:7}` for the first seven
//! characters of a value. `{{` and `}}` stand for the braces themselves.
//!
//! Invariant: a template is filled in the same way for every row, and a tag never exceeds
//! [`TAG_BYTES_MAX`]. A value that is not plain ASCII may be in the tags of pages unchanged, or
//! percent-encoded as the PHP library writes it. Every spelling that a page could have is produced
//! (`contract/tags.json`). Not here: the source of the values.

use std::borrow::Cow;
use std::fmt::Write as _;

/// The maximum length of a tag in bytes; pages cannot have longer ones.
pub const TAG_BYTES_MAX: usize = 1024;
/// The maximum number of columns in one tag.
const COLUMNS_MAX: usize = 16;

/// A tag with placeholders for values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Column {
        name: String,
        /// The number of characters of the value in the tag; `None` for all.
        first: Option<usize>,
    },
}

impl Part {
    /// Reads the text between braces: a column, or a column and a number of characters.
    fn column(inside: &str) -> Part {
        let (name, first) = match inside.rsplit_once(':') {
            Some((name, first)) if !name.is_empty() => (name, first.parse().ok()),
            _ => (inside, None),
        };
        match first {
            Some(_) => Part::Column { name: name.to_owned(), first },
            None => Part::Column { name: inside.to_owned(), first },
        }
    }
}

/// The first characters of a text, or all of it.
fn first_of(text: Cow<'_, str>, first: Option<usize>) -> Cow<'_, str> {
    let end = first.and_then(|first| text.char_indices().nth(first)).map(|(at, _)| at);
    match (end, text) {
        (None, text) => text,
        (Some(end), Cow::Borrowed(text)) => Cow::Borrowed(&text[..end]),
        (Some(end), Cow::Owned(mut text)) => {
            text.truncate(end);
            Cow::Owned(text)
        }
    }
}

/// The encoding of values in a tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spelling {
    /// Unchanged.
    Plain,
    /// As the library encodes a tag from kind and id: it encodes `%` and `*`, in a kind also `:`, and
    /// everything except printable ASCII.
    Named,
    /// As the library encodes a complete tag of the application: everything except printable ASCII.
    Ascii,
}

impl Spelling {
    /// Whether a byte is encoded. Template text is encoded less than values, and the first value may be a
    /// kind.
    fn encodes(self, byte: u8, of: Of) -> bool {
        let is_reserved = match of {
            Of::Text => false,
            Of::Kind => matches!(byte, b'%' | b'*' | b':'),
            Of::Id => matches!(byte, b'%' | b'*'),
        };
        match self {
            Spelling::Plain => false,
            Spelling::Named => is_reserved || !is_printable(byte),
            Spelling::Ascii => !is_printable(byte),
        }
    }

    fn write<'t>(self, text: &'t str, of: Of) -> Cow<'t, str> {
        if !text.bytes().any(|byte| self.encodes(byte, of)) {
            return Cow::Borrowed(text);
        }
        let mut written = String::with_capacity(text.len() * 3);
        for byte in text.bytes() {
            if self.encodes(byte, of) {
                // Writing to a string cannot fail.
                let _ = write!(written, "%{byte:02X}");
            } else {
                // A byte that is not encoded is ASCII.
                written.push(char::from(byte));
            }
        }
        Cow::Owned(written)
    }
}

fn is_printable(byte: u8) -> bool {
    matches!(byte, b' '..=b'~')
}

/// The role of a part of a tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    Text,
    Kind,
    Id,
}

/// A tag in every spelling that pages could have, nearly always one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TagSpellings {
    /// With the values unchanged.
    pub tag: String,
    /// The other spellings of the value.
    pub others: Vec<String>,
}

/// The reason why a row has no tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoTag {
    /// A value is NULL: no page can have such a tag.
    Null,
    /// A value is unknown, or the tag would be too long for a page.
    Unknown,
}

/// A value for a placeholder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Filling<'a> {
    /// A text.
    Text(Cow<'a, str>),
    /// SQL NULL.
    Null,
    /// An unknown value.
    Unknown,
}

impl Template {
    /// Reads a template.
    ///
    /// # Errors
    /// A message that describes the error.
    pub fn read(text: &str) -> Result<Template, &'static str> {
        if text.is_empty() || text.len() > TAG_BYTES_MAX {
            return Err("a tag has 1 to 1,024 bytes");
        }
        let mut parts = Vec::new();
        let (mut plain, mut rest) = (String::new(), text);
        while let Some(at) = rest.find(['{', '}']) {
            plain.push_str(&rest[..at]);
            let brace = &rest[at..];
            if let Some(after) = brace.strip_prefix("{{") {
                plain.push('{');
                rest = after;
            } else if let Some(after) = brace.strip_prefix("}}") {
                plain.push('}');
                rest = after;
            } else {
                let inside = brace.strip_prefix('{').and_then(|inside| inside.split_once('}'));
                let Some((name, after)) = inside else { return Err("a brace without its other") };
                if name.is_empty() || name.contains('{') {
                    return Err("write a column between the braces: {id}");
                }
                parts.push(Part::Text(std::mem::take(&mut plain)));
                parts.push(Part::column(name));
                rest = after;
            }
        }
        plain.push_str(rest);
        parts.push(Part::Text(plain));
        parts.retain(|part| !matches!(part, Part::Text(text) if text.is_empty()));
        let template = Template { parts };
        if template.columns().count() > COLUMNS_MAX {
            Err("16 columns in a tag at most")
        } else {
            Ok(template)
        }
    }

    /// The columns in the template, in order.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Column { name, .. } => Some(name.as_str()),
            Part::Text(_) => None,
        })
    }

    /// The template as it was written.
    pub(crate) fn written(&self) -> String {
        let brace = |text: &str| text.replace('{', "{{").replace('}', "}}");
        let part = |part: &Part| match part {
            Part::Text(text) => brace(text),
            Part::Column { name, first: None } => format!("{{{name}}}"),
            Part::Column { name, first: Some(first) } => format!("{{{name}:{first}}}"),
        };
        self.parts.iter().map(part).collect()
    }

    /// Whether the tag is the same for every row.
    pub fn is_constant(&self) -> bool {
        self.columns().next().is_none()
    }

    /// Whether a row could produce this tag from the template: it contains the text around the columns in
    /// order, unchanged or percent-encoded.
    pub fn could_make(&self, tag: &str) -> bool {
        let texts = |part: &Part| matches!(part, Part::Text(text) if !text.is_ascii());
        self.fits(tag, Spelling::Plain)
            || self.parts.iter().any(texts) && self.fits(tag, Spelling::Ascii)
    }

    fn fits(&self, tag: &str, spelling: Spelling) -> bool {
        let (mut rest, mut after_column) = (tag, false);
        for (at, part) in self.parts.iter().enumerate() {
            let Part::Text(text) = part else {
                after_column = true;
                continue;
            };
            let text = &*spelling.write(text, Of::Text);
            let is_last = at + 1 == self.parts.len();
            rest = match (after_column, is_last) {
                (false, _) => match rest.strip_prefix(text) {
                    Some(rest) => rest,
                    None => return false,
                },
                (true, true) => return rest.ends_with(text),
                (true, false) => match rest.find(text) {
                    Some(found) => &rest[found + text.len()..],
                    None => return false,
                },
            };
            after_column = false;
        }
        after_column || rest.is_empty()
    }

    /// The tags that the library gives every page with one of these tags: `news:*` for `news:{id}`. Empty
    /// if the first column is not directly after a kind.
    pub fn of_any(&self) -> Vec<String> {
        let [Part::Text(kind), Part::Column { .. }, ..] = &self.parts[..] else {
            return Vec::new();
        };
        if !kind.ends_with(':') {
            return Vec::new();
        }
        let mut all = vec![format!("{kind}*")];
        if !kind.is_ascii() {
            all.push(format!("{}*", Spelling::Ascii.write(kind, Of::Text)));
        }
        all
    }

    /// The tag with these values, in every spelling. `value` is called for each column.
    ///
    /// # Errors
    /// The reason why there is no tag. An unknown value takes precedence over NULL.
    pub fn fill<'a>(
        &self,
        mut value: impl FnMut(&str) -> Filling<'a>,
    ) -> Result<TagSpellings, NoTag> {
        let (tag, is_one) = self.filled(&mut value, Spelling::Plain)?;
        let mut others = Vec::new();
        if !is_one {
            for spelling in [Spelling::Named, Spelling::Ascii] {
                let (other, _) = self.filled(&mut value, spelling)?;
                if other != tag && !others.contains(&other) {
                    others.push(other);
                }
            }
        }
        Ok(TagSpellings { tag, others })
    }

    /// The tag in one spelling, and whether it is the only spelling.
    fn filled<'a>(
        &self,
        value: &mut impl FnMut(&str) -> Filling<'a>,
        spelling: Spelling,
    ) -> Result<(String, bool), NoTag> {
        let (mut tag, mut has_null, mut is_one) = (String::new(), false, true);
        let mut of_value = Of::Kind;
        for part in &self.parts {
            let (text, of) = match part {
                Part::Text(text) => (Cow::Borrowed(text.as_str()), Of::Text),
                Part::Column { name, first } => match value(name) {
                    Filling::Text(text) => (first_of(text, *first), of_value),
                    Filling::Null => {
                        has_null = true;
                        continue;
                    }
                    Filling::Unknown => return Err(NoTag::Unknown),
                },
            };
            if of == Of::Text && text.contains(':') {
                of_value = Of::Id;
            }
            is_one &= !text.bytes().any(|byte| Spelling::Named.encodes(byte, of));
            tag.push_str(&spelling.write(&text, of));
            if tag.len() > TAG_BYTES_MAX {
                return Err(NoTag::Unknown);
            }
        }
        if has_null { Err(NoTag::Null) } else { Ok((tag, is_one)) }
    }
}

impl TagSpellings {
    /// All spellings, the main one first.
    pub fn all(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.tag).chain(&self.others).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_and_braces() {
        let template = Template::read("a{{{id}:{b}}}").expect("a template");
        assert_eq!(template.columns().collect::<Vec<_>>(), ["id", "b"]);
        let filled = template.fill(|name| Filling::Text(name.to_uppercase().into()));
        assert_eq!(filled.map(|filled| filled.tag).as_deref(), Ok("a{ID:B}"));
        assert!(Template::read("news").expect("a template").is_constant());
        for wrong in ["", "{", "}", "{}", "{a", "a}", "{a{b}}", &"x".repeat(1025)] {
            assert!(Template::read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_first_characters_of_a_value() {
        let template = Template::read("month:{day:7}:{id}").expect("a template");
        assert_eq!(template.columns().collect::<Vec<_>>(), ["day", "id"]);
        assert_eq!(template.written(), "month:{day:7}:{id}");
        let filled = |day: &'static str| {
            let filled =
                template.fill(|name| Filling::Text(if name == "day" { day } else { "4" }.into()));
            filled.expect("a tag").tag
        };
        assert_eq!(filled("2026-11-24 10:00:00"), "month:2026-11:4");
        assert_eq!(filled("2026"), "month:2026:4");
        assert_eq!(filled("Malmö-Süd"), "month:Malmö-S:4");
        assert!(template.could_make("month:2026-11:4"));
    }

    #[test]
    fn tags_that_a_row_could_make() {
        let could = |template: &str, tag: &str| {
            Template::read(template).expect("a template").could_make(tag)
        };
        for (template, tag) in
            [("news", "news"), ("news:{id}", "news:4"), ("{a}-{b}!", "1-2-3!"), ("{a}", "")]
        {
            assert!(could(template, tag), "{template} {tag}");
        }
        for (template, tag) in
            [("news", "news:4"), ("news:{id}", "news"), ("{a}-{b}!", "1-2"), ("a{x}b{y}c", "abx")]
        {
            assert!(!could(template, tag), "{template} {tag}");
        }
    }

    #[test]
    fn a_value_is_written_in_every_way_that_a_page_could_have_it() {
        let spelled = |template: &str, values: &[(&str, &'static str)]| {
            let template = Template::read(template).expect("a template");
            let value = |name: &str| {
                let found = values.iter().find(|(own, _)| *own == name);
                found.map_or(Filling::Null, |(_, text)| Filling::Text((*text).into()))
            };
            let spelled = template.fill(value).expect("a tag");
            spelled.all().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(spelled("news:{id}", &[("id", "4:5 \"x\"")]), ["news:4:5 \"x\""]);
        assert_eq!(spelled("en:{id}", &[("id", "grün")]), ["en:grün", "en:gr%C3%BCn"]);
        assert_eq!(spelled("t:{id}", &[("id", "50% *")]), ["t:50% *", "t:50%25 %2A"]);
        let both = ["t:ü%", "t:%C3%BC%25", "t:%C3%BC%"];
        assert_eq!(spelled("t:{id}", &[("id", "ü%")]), both);
        let kind = [("kind", "a:b"), ("id", "4")];
        assert_eq!(spelled("{kind}:{id}", &kind), ["a:b:4", "a%3Ab:4"]);
        assert_eq!(spelled("größe", &[]), ["größe", "gr%C3%B6%C3%9Fe"]);
    }

    #[test]
    fn the_library_has_a_tag_for_any_of_a_kind() {
        let any = |template: &str| Template::read(template).expect("a template").of_any();
        assert_eq!(any("news:{id}"), ["news:*"]);
        assert_eq!(any("größe:{id}:{x}"), ["größe:*", "gr%C3%B6%C3%9Fe:*"]);
        assert!(any("{kind}:{id}").is_empty() && any("news").is_empty());
        assert!(any("news-{id}").is_empty());
        let template = Template::read("größe:{id}").expect("a template");
        assert!(template.could_make("größe:4") && template.could_make("gr%C3%B6%C3%9Fe:4"));
    }

    #[test]
    fn an_unknown_value_takes_precedence_over_null() {
        let template = Template::read("{a}{b}").expect("a template");
        let with = |a: Filling<'static>, b: Filling<'static>| {
            template.fill(|name| if name == "a" { a.clone() } else { b.clone() })
        };
        assert_eq!(with(Filling::Null, Filling::Unknown), Err(NoTag::Unknown));
        assert_eq!(with(Filling::Null, Filling::Text("x".into())), Err(NoTag::Null));
        let long = Filling::Text("x".repeat(1000).into());
        assert_eq!(with(long.clone(), long), Err(NoTag::Unknown));
    }
}
