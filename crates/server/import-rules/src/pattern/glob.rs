//! Regular expressions as globs. An expression is expanded into alternatives; each is a sequence of literals and
//! wildcards. Expressions with anything else, or with too many alternatives, have no globs.
//!
//! Not here: expressions without an equal glob (`pattern`).

/// The maximum number of globs for one expression.
const GLOBS_MAX: usize = 64;
/// The maximum depth of groups.
const DEPTH_MAX: usize = 12;
/// The maximum number of literal characters in one glob, as in Pagewell.
const LITERALS_MAX: usize = 120;

/// How `.+` is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plus {
    /// As an expression without globs.
    Refused,
    /// As `.*`.
    AsStar,
}

/// Part of a glob.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GlobPart {
    Literal(char),
    /// `**`
    Anything,
    /// `*`
    Segment,
    Begin,
    End,
}

/// The globs that match the same paths, if there are any.
pub(crate) fn globs(expression: &str, plus: Plus) -> Option<Vec<String>> {
    globs_of(expression, plus, true)
}

/// The globs for a path, or for another value.
pub(crate) fn globs_of(expression: &str, plus: Plus, is_path: bool) -> Option<Vec<String>> {
    let mut reader = Expression { rest: expression, plus };
    let all = reader.alternatives(0)?;
    if !reader.rest.is_empty() {
        return None;
    }
    let mut words: Vec<String> = Vec::new();
    for parts in all {
        let word = glob(&parts, is_path)?;
        if !words.contains(&word) {
            words.push(word);
        }
    }
    Some(words)
}

fn glob(parts: &[GlobPart], is_path: bool) -> Option<String> {
    let mut parts = parts;
    let mut word = String::new();
    if let [GlobPart::Begin, rest @ ..] = parts {
        parts = rest;
    } else {
        word.push_str("**");
    }
    let ends = parts.last() == Some(&GlobPart::End);
    if ends {
        parts = &parts[..parts.len() - 1];
    }
    for part in parts {
        match part {
            // A glob has no way to write a star, and `!` at its start excludes.
            GlobPart::Literal('*') => return None,
            GlobPart::Literal(c) => word.push(*c),
            GlobPart::Anything => word.push_str("**"),
            // `*` beside `**` would be read as another wildcard.
            GlobPart::Segment if word.ends_with('*') => return None,
            GlobPart::Segment => word.push('*'),
            GlobPart::Begin | GlobPart::End => return None,
        }
        if word.ends_with("***") && *part == GlobPart::Anything {
            if word.ends_with("****") {
                word.truncate(word.len() - 2);
            } else {
                return None;
            }
        }
    }
    if !ends {
        if word.ends_with("**") {
        } else if word.ends_with('*') {
            return None;
        } else {
            word.push_str("**");
        }
    }
    // A path begins with a slash: `**.css` is `/**.css`.
    if is_path
        && let Some(rest) = word.strip_prefix("**")
        && !rest.starts_with('/')
        && !rest.is_empty()
    {
        word = format!("/**{rest}");
    }
    (word.len() <= LITERALS_MAX && !word.starts_with('!')).then_some(word)
}

struct Expression<'a> {
    rest: &'a str,
    plus: Plus,
}

impl Expression<'_> {
    fn next_is(&mut self, text: &str) -> bool {
        match self.rest.strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn alternatives(&mut self, depth: usize) -> Option<Vec<Vec<GlobPart>>> {
        if depth > DEPTH_MAX {
            return None;
        }
        let mut all = self.sequence(depth)?;
        while self.next_is("|") {
            all.extend(self.sequence(depth)?);
            if all.len() > GLOBS_MAX {
                return None;
            }
        }
        Some(all)
    }

    fn sequence(&mut self, depth: usize) -> Option<Vec<Vec<GlobPart>>> {
        let mut all: Vec<Vec<GlobPart>> = vec![Vec::new()];
        while !self.rest.is_empty() && !self.rest.starts_with(['|', ')']) {
            let atom = self.atom(depth)?;
            if all.len() * atom.len() > GLOBS_MAX {
                return None;
            }
            let join = |begin: &Vec<GlobPart>| {
                let begin = begin.clone();
                atom.iter().map(move |end| [begin.as_slice(), end].concat()).collect::<Vec<_>>()
            };
            all = all.iter().flat_map(join).collect();
            if all.iter().any(|parts| parts.len() > LITERALS_MAX) {
                return None;
            }
        }
        Some(all)
    }

    /// The alternatives of one atom with its quantifier.
    fn atom(&mut self, depth: usize) -> Option<Vec<Vec<GlobPart>>> {
        if self.next_is("^") {
            return Some(vec![vec![GlobPart::Begin]]);
        }
        if self.next_is("$") {
            return Some(vec![vec![GlobPart::End]]);
        }
        for (text, part) in [("[^/]", GlobPart::Segment), (".", GlobPart::Anything)] {
            if self.next_is(text) {
                let is_star = self.next_is("*");
                let is_plus = !is_star && self.plus == Plus::AsStar && self.next_is("+");
                let _ = self.next_is("?");
                return (is_star || is_plus).then(|| vec![vec![part]]);
            }
        }
        let mut all = if self.next_is("(?:") || self.is_group() {
            let inner = self.alternatives(depth + 1)?;
            if !self.next_is(")") {
                return None;
            }
            inner
        } else if self.next_is("[") {
            self.class()?
        } else {
            vec![vec![GlobPart::Literal(self.literal()?)]]
        };
        if self.next_is("?") {
            all.push(Vec::new());
        }
        (!self.rest.starts_with(['*', '+', '{', '?'])).then_some(all)
    }

    fn is_group(&mut self) -> bool {
        !self.rest.starts_with("(?") && self.next_is("(")
    }

    /// The members of a small class.
    fn class(&mut self) -> Option<Vec<Vec<GlobPart>>> {
        let mut all = Vec::new();
        if self.rest.starts_with('^') {
            return None;
        }
        while !self.next_is("]") {
            let first = self.literal()?;
            let last = match self.rest.strip_prefix('-').filter(|rest| !rest.starts_with(']')) {
                Some(rest) => {
                    self.rest = rest;
                    self.literal()?
                }
                None => first,
            };
            if !first.is_ascii() || !last.is_ascii() {
                return None;
            }
            all.extend((first..=last).map(|c| vec![GlobPart::Literal(c)]));
            if all.len() > 16 {
                return None;
            }
        }
        (!all.is_empty()).then_some(all)
    }

    fn literal(&mut self) -> Option<char> {
        let is_escaped = self.next_is("\\");
        let c = self.rest.chars().next()?;
        // A letter or digit after a backslash is a class, or a character by number.
        if is_escaped && c.is_ascii_alphanumeric()
            || !is_escaped && matches!(c, '(' | ')' | '*' | '+' | '?' | '{' | '}' | '|' | '[' | ']')
        {
            return None;
        }
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }
}

/// The fixed begin and end of the texts that a glob matches, in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GlobShape {
    begin: String,
    end: String,
    is_fixed: bool,
}

impl GlobShape {
    /// The shape of a glob.
    pub(crate) fn of(glob: &str) -> GlobShape {
        let glob = glob.to_ascii_lowercase();
        let begin = glob.split('*').next().unwrap_or_default().to_owned();
        let end = glob.rsplit('*').next().unwrap_or_default().to_owned();
        GlobShape { begin, end, is_fixed: !glob.contains('*') }
    }

    /// Whether a path may have both shapes.
    pub(crate) fn may_meet(&self, other: &GlobShape) -> bool {
        let begins = |one: &GlobShape, other: &GlobShape| {
            one.begin.starts_with(&other.begin)
                || (!one.is_fixed && other.begin.starts_with(&one.begin))
        };
        let ends = self.end.ends_with(&other.end) || other.end.ends_with(&self.end);
        if self.is_fixed && other.is_fixed {
            return self.begin == other.begin;
        }
        ends && (begins(self, other) || begins(other, self))
    }
}

/// The shapes of the paths that an expression matches; everything if they are unknown.
pub(crate) fn shapes(expression: &str) -> Vec<GlobShape> {
    let expression = expression.strip_prefix("(?i)").unwrap_or(expression);
    match globs(expression, Plus::AsStar) {
        Some(all) => all.iter().map(|glob| GlobShape::of(glob)).collect(),
        None => vec![fixed_ends(expression)],
    }
}

/// The literals at both ends of an expression without globs.
fn fixed_ends(expression: &str) -> GlobShape {
    let begin = match expression.strip_prefix('^') {
        Some(rest) if !expression.contains('|') => {
            let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || "/_-".contains(c)));
            let literal = &rest[..end.unwrap_or(rest.len())];
            let is_repeated = end.is_some_and(|end| rest[end..].starts_with(['?', '*', '{']));
            let cut = literal.len() - usize::from(is_repeated && !literal.is_empty());
            literal[..cut].to_ascii_lowercase()
        }
        _ => String::new(),
    };
    GlobShape { begin, end: String::new(), is_fixed: false }
}
