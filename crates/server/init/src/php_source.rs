//! The literals in a PHP file: constants, variables and returned arrays. The file is read as text and
//! never executed.
//!
//! Only a plain literal is a value: a text without variables, a number, `true`, `false`, `null`, and arrays
//! of them. Anything else, such as `getenv('DB')`, is [`PhpValue::Unknown`], and so is a name that has several
//! different values. Comments are skipped. Not here: which names an application uses.

mod tokens;

use tokens::{Token, tokens};

/// Maximum depth of nested arrays.
const DEPTH_MAX: usize = 32;
/// Maximum number of places that set one name; with more, it is unknown.
const PLACES_MAX: usize = 64;

/// A value in a PHP file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PhpValue {
    /// A text, a number, or one of the words `true`, `false`, `null`.
    Text(String),
    /// An array, with the keys that are texts.
    Array(Vec<(Option<String>, PhpValue)>),
    /// Anything that would have to be executed.
    Unknown,
}

/// A setting of an application.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Setting {
    /// Its value.
    Is(String),
    /// It is set, but not to a literal, or to several.
    Unknown,
    /// It is not set.
    #[default]
    Missing,
}

impl Setting {
    /// The value, if it is known.
    #[must_use]
    pub fn known(&self) -> Option<&str> {
        match self {
            Setting::Is(value) => Some(value),
            Setting::Unknown | Setting::Missing => None,
        }
    }

    /// This setting, or `other` if it is missing.
    #[must_use]
    pub fn or(self, other: Setting) -> Setting {
        if self == Setting::Missing { other } else { self }
    }
}

/// A PHP file, as tokens.
#[derive(Debug)]
pub struct PhpSource {
    tokens: Vec<Token>,
    /// The line of a text or comment that does not end.
    unfinished: Option<usize>,
}

impl PhpSource {
    /// Reads the text of a PHP file.
    #[must_use]
    pub fn read(text: &str) -> PhpSource {
        let (tokens, unfinished) = tokens(text);
        PhpSource { tokens, unfinished }
    }

    /// The line at which a text, a comment or a heredoc begins that does not end. PHP cannot read such a
    /// file either.
    #[must_use]
    pub fn unfinished(&self) -> Option<usize> {
        self.unfinished
    }

    /// The value of a constant: `define('NAME', value)` or `const NAME = value`.
    #[must_use]
    pub fn constant(&self, name: &str) -> Setting {
        let mut found = Vec::new();
        for at in 0..self.tokens.len() {
            if found.len() > PLACES_MAX {
                return Setting::Unknown;
            }
            match &self.tokens[at..] {
                [Token::Word(call), Token::Sign('('), Token::Text(is), Token::Sign(','), ..]
                    if call.eq_ignore_ascii_case("define") && is == name =>
                {
                    found.push(self.value(at + 4, 0).0);
                }
                [Token::Word(word), Token::Word(is), Token::Sign('='), ..]
                    if word.eq_ignore_ascii_case("const") && is == name =>
                {
                    found.push(self.value(at + 3, 0).0);
                }
                _ => {}
            }
        }
        one(&found)
    }

    /// The value of a variable: `$name = value;`.
    #[must_use]
    pub fn variable(&self, name: &str) -> Setting {
        let assigned = self.assignments(name);
        let values: Vec<_> = assigned
            .into_iter()
            .map(|(path, value)| if path.is_empty() { value } else { PhpValue::Unknown })
            .collect();
        one(&values)
    }

    /// Each assignment to a variable or to an element of it, with the keys of the element.
    #[must_use]
    pub fn assignments(&self, name: &str) -> Vec<(Vec<String>, PhpValue)> {
        let mut found = Vec::new();
        for at in 0..self.tokens.len() {
            if !matches!(&self.tokens[at], Token::Variable(is) if is == name) {
                continue;
            }
            if found.len() > PLACES_MAX {
                found.push((Vec::new(), PhpValue::Unknown));
                break;
            }
            let (mut path, mut next) = (Vec::new(), at + 1);
            while let [Token::Sign('['), Token::Text(key), Token::Sign(']'), ..] =
                &self.tokens[next..]
            {
                path.push(key.clone());
                next += 3;
            }
            match &self.tokens[next..] {
                [Token::Sign('='), Token::Sign('=' | '>'), ..] => {}
                [Token::Sign('='), ..] => found.push((path, self.value(next + 1, 0).0)),
                [Token::Sign('.' | '+'), Token::Sign('='), ..]
                | [Token::Sign('?'), Token::Sign('?'), Token::Sign('='), ..] => {
                    found.push((path, PhpValue::Unknown));
                }
                _ => {}
            }
        }
        found
    }

    /// The value that the file returns, as configuration files do.
    #[must_use]
    pub fn returned(&self) -> PhpValue {
        let is_return = |token: &Token| matches!(token, Token::Word(word) if word.eq_ignore_ascii_case("return"));
        let at = self.tokens.iter().rposition(is_return);
        at.map_or(PhpValue::Unknown, |at| self.value(at + 1, 0).0)
    }

    /// The value of the expression at this token, and the position behind it.
    fn value(&self, at: usize, depth: usize) -> (PhpValue, usize) {
        let (value, next) = match &self.tokens[at.min(self.tokens.len())..] {
            [Token::Text(text) | Token::Number(text), ..] => (PhpValue::Text(text.clone()), at + 1),
            [Token::Word(word), Token::Sign('('), ..]
                if word.eq_ignore_ascii_case("array") && depth < DEPTH_MAX =>
            {
                self.array(at + 2, ')', depth)
            }
            [Token::Word(word), ..] if is_plain_word(word) => {
                (PhpValue::Text(word.to_ascii_lowercase()), at + 1)
            }
            [Token::Sign('['), ..] if depth < DEPTH_MAX => self.array(at + 1, ']', depth),
            _ => (PhpValue::Unknown, at),
        };
        if self.ends_at(next) && next > at {
            (value, next)
        } else {
            (PhpValue::Unknown, self.end_of(at))
        }
    }

    fn array(&self, mut at: usize, close: char, depth: usize) -> (PhpValue, usize) {
        let mut elements = Vec::new();
        while at < self.tokens.len() {
            match &self.tokens[at] {
                Token::Sign(sign) if *sign == close => return (PhpValue::Array(elements), at + 1),
                Token::Sign(',') => at += 1,
                Token::Sign(';' | ')' | ']' | '}') => break,
                _ => {
                    let (first, next) = self.value(at, depth + 1);
                    at = next;
                    if let [Token::Sign('='), Token::Sign('>'), ..] = &self.tokens[at..] {
                        let (value, next) = self.value(at + 2, depth + 1);
                        let key = if let PhpValue::Text(key) = first { Some(key) } else { None };
                        elements.push((key, value));
                        at = next;
                    } else {
                        elements.push((None, first));
                    }
                }
            }
        }
        (PhpValue::Unknown, at)
    }

    /// Whether an expression can end before this token.
    fn ends_at(&self, at: usize) -> bool {
        matches!(
            &self.tokens[at.min(self.tokens.len())..],
            [] | [Token::Sign(';' | ',' | ')' | ']'), ..]
                | [Token::Sign('='), Token::Sign('>'), ..]
        )
    }

    /// The end of the expression at this token, whatever it contains.
    fn end_of(&self, mut at: usize) -> usize {
        let mut open = 0_usize;
        while at < self.tokens.len() {
            match &self.tokens[at] {
                Token::Sign('(' | '[' | '{') => open += 1,
                Token::Sign(')' | ']' | '}') if open == 0 => return at,
                Token::Sign(')' | ']' | '}') => open -= 1,
                Token::Sign(';' | ',') if open == 0 => return at,
                Token::Sign('=')
                    if open == 0 && matches!(self.tokens.get(at + 1), Some(Token::Sign('>'))) =>
                {
                    return at;
                }
                _ => {}
            }
            at += 1;
        }
        at
    }
}

impl PhpValue {
    /// The element of an array at these keys.
    #[must_use]
    pub fn at(&self, path: &[&str]) -> Option<&PhpValue> {
        let Some((first, rest)) = path.split_first() else { return Some(self) };
        let PhpValue::Array(elements) = self else {
            return (*self == PhpValue::Unknown).then_some(self);
        };
        let found = elements.iter().rev().find(|(key, _)| key.as_deref() == Some(first));
        found.and_then(|(_, value)| value.at(rest))
    }

    /// The setting at these keys.
    #[must_use]
    pub fn setting(&self, path: &[&str]) -> Setting {
        match self.at(path) {
            Some(PhpValue::Text(text)) => Setting::Is(text.clone()),
            Some(_) => Setting::Unknown,
            None => Setting::Missing,
        }
    }
}

fn is_plain_word(word: &str) -> bool {
    ["true", "false", "null"].iter().any(|plain| word.eq_ignore_ascii_case(plain))
}

/// The setting with these values: known if they are one literal.
fn one(values: &[PhpValue]) -> Setting {
    match values {
        [] => Setting::Missing,
        [PhpValue::Text(first), rest @ ..] if rest.iter().all(|other| *other == values[0]) => {
            Setting::Is(first.clone())
        }
        _ => Setting::Unknown,
    }
}

#[cfg(test)]
#[path = "php_source/tests.rs"]
mod tests;
