//! The tokens of a PHP file: texts, variables, words, numbers and single signs. Comments, white space and
//! the text outside of `<?php … ?>` are skipped.
//!
//! A text in double quotes or a heredoc with variables in it is a token without a value. Any bytes have
//! tokens: a text or comment that does not end reaches to the end of the file.

/// A token of PHP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    /// `$name`, without the sign.
    Variable(String),
    /// A keyword, or a name.
    Word(String),
    /// The value of a text in quotes, or of a nowdoc.
    Text(String),
    /// A text whose value depends on variables.
    Interpolated,
    /// A number, as written.
    Number(String),
    /// One character of anything else.
    Sign(char),
}

/// The tokens of a file, and the line of a text or comment that does not end.
pub(super) fn tokens(text: &str) -> (Vec<Token>, Option<usize>) {
    let mut reader = Reader { text, at: 0, found: Vec::new(), unfinished: None };
    while reader.skip_to_code() {
        reader.code();
    }
    let line = reader.unfinished.map(|at| text[..at].matches('\n').count() + 1);
    (reader.found, line)
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    found: Vec<Token>,
    /// The position of a text or comment that does not end.
    unfinished: Option<usize>,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Moves behind the next `<?php` or `<?=`. Returns whether there is one.
    fn skip_to_code(&mut self) -> bool {
        let Some(found) = self.rest().find("<?") else { return false };
        self.at += found + 2;
        for tag in ["php", "="] {
            if self.rest().get(..tag.len()).is_some_and(|is| is.eq_ignore_ascii_case(tag)) {
                self.at += tag.len();
                break;
            }
        }
        true
    }

    /// Reads tokens until `?>` or the end.
    fn code(&mut self) {
        while let Some(next) = self.rest().chars().next() {
            let rest = self.rest();
            if rest.starts_with("?>") {
                self.at += 2;
                self.found.push(Token::Sign(';'));
                return;
            }
            if next.is_whitespace() {
                self.at += next.len_utf8();
            } else if rest.starts_with("/*") {
                self.until("*/", 2);
            } else if rest.starts_with("//") || (next == '#' && !rest.starts_with("#[")) {
                let line = rest.find('\n').unwrap_or(rest.len());
                self.at += rest[..line].find("?>").unwrap_or(line);
            } else if next == '\'' || next == '"' {
                self.quoted(next);
            } else if rest.starts_with("<<<") {
                self.heredoc();
            } else if next == '$' && rest[1..].starts_with(is_name) {
                self.at += 1;
                let name = self.name();
                self.found.push(Token::Variable(name));
            } else if next.is_ascii_digit() {
                let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '.' && c != '_');
                let number = &rest[..end.unwrap_or(rest.len())];
                self.at += number.len();
                self.found.push(Token::Number(number.to_owned()));
            } else if is_name(next) {
                let name = self.name();
                self.found.push(Token::Word(name));
            } else {
                self.at += next.len_utf8();
                self.found.push(Token::Sign(next));
            }
        }
    }

    fn name(&mut self) -> String {
        let rest = self.rest();
        let end = rest.find(|c: char| !is_name(c) && !c.is_ascii_digit()).unwrap_or(rest.len());
        self.at += end;
        rest[..end].to_owned()
    }

    /// Skips a comment up to its end.
    fn until(&mut self, end: &str, from: usize) {
        match self.rest()[from..].find(end) {
            Some(found) => self.at += from + found + end.len(),
            None => self.stop(),
        }
    }

    /// Records a text or comment without an end, and moves to the end of the file.
    fn stop(&mut self) {
        self.unfinished.get_or_insert(self.at);
        self.at = self.text.len();
    }

    fn quoted(&mut self, quote: char) {
        let (mut value, mut is_plain) = (String::new(), true);
        let body = &self.rest()[1..];
        let mut all = body.char_indices();
        while let Some((at, next)) = all.next() {
            match next {
                '\\' => match all.next() {
                    Some((_, same)) if same == quote || same == '\\' => value.push(same),
                    Some((_, 'n')) if quote == '"' => value.push('\n'),
                    Some((_, 't')) if quote == '"' => value.push('\t'),
                    Some((_, '$')) if quote == '"' => value.push('$'),
                    Some((_, other)) => {
                        // Octal, hexadecimal and Unicode escapes are not decoded.
                        is_plain &= quote == '\''
                            || !(other.is_ascii_digit() || matches!(other, 'x' | 'u'));
                        value.extend(['\\', other]);
                    }
                    None => break,
                },
                _ if next == quote => {
                    self.at += 1 + at + 1;
                    let token = if is_plain { Token::Text(value) } else { Token::Interpolated };
                    self.found.push(token);
                    return;
                }
                '$' if quote == '"'
                    && body[at + 1..].starts_with(|c: char| is_name(c) || c == '{') =>
                {
                    is_plain = false;
                }
                '{' if quote == '"' && body[at + 1..].starts_with('$') => is_plain = false,
                _ => value.push(next),
            }
        }
        self.stop();
    }

    /// Skips a heredoc or nowdoc. Its value is not used.
    fn heredoc(&mut self) {
        let rest = &self.rest()[3..];
        let line = rest.lines().next().unwrap_or_default();
        let label = line.trim().trim_matches(['\'', '"']);
        if label.is_empty() || !label.chars().all(|c| is_name(c) || c.is_ascii_digit()) {
            // A shift, not a heredoc.
            self.at += 3;
            self.found.extend(['<'; 3].map(Token::Sign));
            return;
        }
        let mut end = self.at + 3 + line.len();
        for body in rest[line.len()..].split_inclusive('\n') {
            let trimmed = body.trim_start();
            let behind = trimmed.strip_prefix(label);
            if behind.is_some_and(|behind| {
                !behind.starts_with(|c: char| is_name(c) || c.is_ascii_digit())
            }) {
                self.at = end + (body.len() - trimmed.len()) + label.len();
                self.found.push(Token::Interpolated);
                return;
            }
            end += body.len();
        }
        self.stop();
    }
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_' || !c.is_ascii()
}
