//! A tag with columns in it: `news:{news_id}`. `{{` and `}}` stand for the braces themselves.
//!
//! Invariant: what was read once is written the same way for every row; a tag is never longer than
//! [`TAG_BYTES_MAX`]. Not here: where the values come from.

/// The longest tag, in bytes: pages cannot have longer ones.
pub const TAG_BYTES_MAX: usize = 1024;
/// The most columns in one tag.
const COLUMNS_MAX: usize = 16;

/// A tag, with places for values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Column(String),
}

/// Why there is no tag for a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoTag {
    /// A value is NULL: no page can name it.
    Null,
    /// A value is not known, or the tag would be too long for a page to have it.
    Unknown,
}

/// A value that is put in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Filling<'a> {
    /// This text.
    Text(std::borrow::Cow<'a, str>),
    /// NULL.
    Null,
    /// Nobody knows.
    Unknown,
}

impl Template {
    /// Reads it.
    ///
    /// # Errors
    /// What is wrong with it, in words.
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
                parts.push(Part::Column(name.to_owned()));
                rest = after;
            }
        }
        plain.push_str(rest);
        parts.push(Part::Text(plain));
        parts.retain(|part| !matches!(part, Part::Text(text) if text.is_empty()));
        let template = Template { parts };
        match template.columns().count() > COLUMNS_MAX {
            true => Err("16 columns in a tag at most"),
            false => Ok(template),
        }
    }

    /// The columns in it, in order.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Column(name) => Some(name.as_str()),
            Part::Text(_) => None,
        })
    }

    /// As it was written.
    pub(crate) fn written(&self) -> String {
        let brace = |text: &str| text.replace('{', "{{").replace('}', "}}");
        let part = |part: &Part| match part {
            Part::Text(text) => brace(text),
            Part::Column(column) => format!("{{{column}}}"),
        };
        self.parts.iter().map(part).collect()
    }

    /// Whether it is the same for every row.
    pub fn is_constant(&self) -> bool {
        self.columns().next().is_none()
    }

    /// Whether a row could make this tag of it: the text around the columns is there, in order.
    pub fn could_make(&self, tag: &str) -> bool {
        let (mut rest, mut after_column) = (tag, false);
        for (at, part) in self.parts.iter().enumerate() {
            let Part::Text(text) = part else {
                after_column = true;
                continue;
            };
            let is_last = at + 1 == self.parts.len();
            rest = match (after_column, is_last) {
                (false, _) => match rest.strip_prefix(text.as_str()) {
                    Some(rest) => rest,
                    None => return false,
                },
                (true, true) => return rest.ends_with(text.as_str()),
                (true, false) => match rest.find(text.as_str()) {
                    Some(found) => &rest[found + text.len()..],
                    None => return false,
                },
            };
            after_column = false;
        }
        after_column || rest.is_empty()
    }

    /// The tag with these values; `value` is asked for each column.
    ///
    /// # Errors
    /// Why there is none. What is not known outweighs NULL.
    pub fn fill<'a>(&self, mut value: impl FnMut(&str) -> Filling<'a>) -> Result<String, NoTag> {
        let (mut tag, mut has_null) = (String::new(), false);
        for part in &self.parts {
            match part {
                Part::Text(text) => tag.push_str(text),
                Part::Column(name) => match value(name) {
                    Filling::Text(text) => tag.push_str(&text),
                    Filling::Null => has_null = true,
                    Filling::Unknown => return Err(NoTag::Unknown),
                },
            }
            if tag.len() > TAG_BYTES_MAX {
                return Err(NoTag::Unknown);
            }
        }
        if has_null { Err(NoTag::Null) } else { Ok(tag) }
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
        assert_eq!(filled.as_deref(), Ok("a{ID:B}"));
        assert!(Template::read("news").expect("a template").is_constant());
        for wrong in ["", "{", "}", "{}", "{a", "a}", "{a{b}}", &"x".repeat(1025)] {
            assert!(Template::read(wrong).is_err(), "{wrong}");
        }
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
    fn what_is_not_known_outweighs_null() {
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
