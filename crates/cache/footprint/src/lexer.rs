//! The text of a statement as tokens, with its constants taken out.
//!
//! Two statements that differ only in constants have the same tokens: the same *shape*. The tokens are those
//! of `sqlparser`, so that the text is split in one place only, as MariaDB and MySQL do it.
//!
//! Invariant: where the parser would group operators in another way than the database does, or where the
//! text has parts that only the database understands, [`Statement::is_exact`] is false, and the structure
//! must not be used. Not here: the structure.

use crate::literal::Literal;
use sqlparser::tokenizer::Token;

/// The maximum number of tokens of a statement whose structure is read, with an `IN` list as one.
const TOKENS_MAX: usize = 1_500;
/// The maximum number of joins of a statement whose structure is read: the parser's recursion has no other
/// bound for them.
const JOINS_MAX: usize = 100;
/// The maximum number of constants of a statement whose structure is read.
const LITERALS_MAX: usize = 20_000;

/// The maximum length of a text that is written in several parts. A longer one is not compared.
const JOINED_BYTES_MAX: usize = 4096;

/// The parts of the server's `sql_mode` that change how a text is split.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SqlMode {
    /// `ANSI_QUOTES`: text in double quotes is a name.
    pub has_ansi_quotes: bool,
    /// `NO_BACKSLASH_ESCAPES`: a backslash in a text is an ordinary character.
    pub has_plain_backslashes: bool,
    /// `HIGH_NOT_PRECEDENCE` or `PAD_CHAR_TO_FULL_LENGTH`: expressions mean something else.
    pub has_other_meanings: bool,
    /// The character set of the connection.
    pub charset: SqlCharset,
}

/// The character set in which the bytes of a statement are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SqlCharset {
    /// UTF-8.
    Utf8,
    /// `binary`: constants are bytes, and are compared as bytes.
    Binary,
    /// Another one, which may be any. Only constants in ASCII are known.
    Other,
}

impl Default for SqlMode {
    fn default() -> SqlMode {
        SqlMode {
            has_ansi_quotes: false,
            has_plain_backslashes: false,
            has_other_meanings: false,
            charset: SqlCharset::Utf8,
        }
    }
}

impl SqlMode {
    /// The mode from the value of the system variable `sql_mode`.
    #[must_use]
    pub fn of(sql_mode: &str) -> SqlMode {
        let mut mode = SqlMode::default();
        for flag in sql_mode.split(',') {
            match flag.trim().to_ascii_uppercase().as_str() {
                "ANSI_QUOTES" | "ANSI" | "DB2" | "MAXDB" | "MSSQL" | "ORACLE" | "POSTGRESQL" => {
                    mode.has_ansi_quotes = true;
                }
                "NO_BACKSLASH_ESCAPES" => mode.has_plain_backslashes = true,
                "HIGH_NOT_PRECEDENCE" | "MYSQL323" | "MYSQL40" | "PAD_CHAR_TO_FULL_LENGTH" => {
                    mode.has_other_meanings = true;
                }
                _ => {}
            }
        }
        mode
    }
}

/// The parts of a statement.
#[derive(Debug, Clone)]
pub(crate) struct Statement {
    /// The tokens, in order.
    pub parts: Vec<Part>,
    /// The constants, in the order of their places.
    pub literals: Vec<Literal>,
    /// Whether the parser's structure of these tokens is the one that the database uses.
    pub is_exact: bool,
    /// Whether the text is one statement.
    pub is_single: bool,
}

/// A token, or the place of a constant.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Part {
    /// A token.
    Token(Token),
    /// The place of the next constant.
    Literal,
}

/// The reason why a text cannot be split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoText;

impl Statement {
    /// Splits the text of a statement.
    ///
    /// # Errors
    /// [`NoText`] if a name or an unquoted part is not UTF-8, if a quoted part or a comment does not end, if the
    /// text begins with a comment that some servers execute, or if its parts depend on a character set other
    /// than UTF-8.
    pub fn split(text: &[u8], mode: SqlMode) -> Result<Statement, NoText> {
        // In some Chinese and Japanese character sets, these bytes are also the second half of a character.
        let is_half = |pair: &[u8]| !pair[0].is_ascii() && matches!(pair[1], b'\\' | b'`');
        if mode.charset == SqlCharset::Other && text.windows(2).any(is_half) {
            return Err(NoText);
        }
        let mut lexer = Lexer {
            text,
            at: 0,
            mode,
            parts: Vec::new(),
            literals: Vec::new(),
            is_exact: true,
            executed: 0,
        };
        while let Some(byte) = lexer.peek(0) {
            lexer.part(byte)?;
        }
        if lexer.executed > 0 {
            return Err(NoText);
        }
        let Lexer { mut parts, mut literals, is_exact, .. } = lexer;
        while parts.last() == Some(&Part::Token(Token::SemiColon)) {
            parts.pop();
        }
        join_lists(&mut parts, &mut literals);
        let is_single = !parts.contains(&Part::Token(Token::SemiColon));
        let is_join = |part: &&Part| part.is("JOIN") || part.is("STRAIGHT_JOIN");
        let is_short = parts.len() <= TOKENS_MAX
            && literals.len() <= LITERALS_MAX
            && parts.iter().filter(is_join).count() <= JOINS_MAX;
        Ok(Statement {
            parts,
            literals,
            is_exact: is_exact && is_single && is_short && !mode.has_other_meanings,
            is_single,
        })
    }

    /// The tokens, with a numbered placeholder for each constant.
    pub fn shape(&self) -> Vec<Token> {
        let mut next = 0..;
        let placeholder = |at: usize| Token::Placeholder(format!(":{at}"));
        let token = |part: &Part| match part {
            Part::Token(token) => token.clone(),
            Part::Literal => placeholder(next.next().unwrap_or_default()),
        };
        self.parts.iter().map(token).collect()
    }

    /// The tokens with the constants as they are. An `IN` list, bytes or an unknown constant is a placeholder.
    pub fn tokens(&self) -> Vec<Token> {
        let literals: Vec<Token> = self.literals.iter().zip(0..).map(written).collect();
        let mut literals = literals.into_iter();
        let token = |part: &Part| match part {
            Part::Token(token) => Some(token.clone()),
            Part::Literal => literals.next(),
        };
        self.parts.iter().filter_map(token).collect()
    }

    /// The unquoted words, in capitals, and names, in order.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(Part::word)
    }
}

impl Part {
    /// The word or name that this part is.
    pub fn word(&self) -> Option<&str> {
        match self {
            Part::Token(Token::Word(word)) => Some(&word.value),
            _ => None,
        }
    }

    /// Whether the part is this unquoted word.
    pub fn is(&self, expected: &str) -> bool {
        match self {
            Part::Token(Token::Word(word)) => {
                word.quote_style.is_none() && word.value.eq_ignore_ascii_case(expected)
            }
            _ => false,
        }
    }
}

fn written((literal, at): (&Literal, usize)) -> Token {
    match literal {
        Literal::Number(number) => Token::Number(number.to_string(), false),
        Literal::Text(text) => Token::SingleQuotedString(text.to_string()),
        Literal::Bytes(_) | Literal::List(_) | Literal::Opaque => {
            Token::Placeholder(format!(":{at}"))
        }
    }
}

/// Replaces the constants of each `IN` list by one, so that lists of all lengths have the same shape.
fn join_lists(parts: &mut Vec<Part>, literals: &mut Vec<Literal>) {
    let (comma, close) = (Part::Token(Token::Comma), Part::Token(Token::RParen));
    let (mut joined, mut kept) =
        (Vec::with_capacity(parts.len()), Vec::with_capacity(literals.len()));
    let mut from = std::mem::take(literals).into_iter();
    let mut at = 0;
    while at < parts.len() {
        let is_list = joined.last() == Some(&Part::Token(Token::LParen))
            && joined.iter().nth_back(1).is_some_and(|part: &Part| part.is("IN"))
            && parts[at] == Part::Literal;
        if is_list {
            let list = parts[at..].chunks(2);
            let length =
                list.take_while(|pair| pair[0] == Part::Literal && pair.get(1) == Some(&comma));
            let last = at + 2 * length.count();
            if parts.get(last) == Some(&Part::Literal) && parts.get(last + 1) == Some(&close) {
                kept.push(Literal::List(from.by_ref().take((last - at) / 2 + 1).collect()));
                joined.push(Part::Literal);
                at = last + 1;
                continue;
            }
        }
        if parts[at] == Part::Literal {
            kept.extend(from.next());
        }
        joined.push(parts[at].clone());
        at += 1;
    }
    (*parts, *literals) = (joined, kept);
}

struct Lexer<'t> {
    text: &'t [u8],
    at: usize,
    mode: SqlMode,
    parts: Vec<Part>,
    literals: Vec<Literal>,
    is_exact: bool,
    /// The number of executable comments around the present place.
    executed: usize,
}

/// Operators, longest first.
const OPERATORS: [(&[u8], Token); 28] = [
    (b"<=>", Token::Spaceship),
    (b"<=", Token::LtEq),
    (b"<>", Token::Neq),
    (b"<<", Token::ShiftLeft),
    (b">=", Token::GtEq),
    (b">>", Token::ShiftRight),
    (b"!=", Token::Neq),
    (b"->>", Token::LongArrow),
    (b"->", Token::Arrow),
    (b"<", Token::Lt),
    (b">", Token::Gt),
    (b"=", Token::Eq),
    (b"+", Token::Plus),
    (b"-", Token::Minus),
    (b"*", Token::Mul),
    (b"/", Token::Div),
    (b"%", Token::Mod),
    (b"(", Token::LParen),
    (b")", Token::RParen),
    (b",", Token::Comma),
    (b".", Token::Period),
    (b";", Token::SemiColon),
    (b"&", Token::Ampersand),
    (b"|", Token::Pipe),
    (b"^", Token::Caret),
    (b"~", Token::Tilde),
    (b"{", Token::LBrace),
    (b"}", Token::RBrace),
];

impl Lexer<'_> {
    fn peek(&self, ahead: usize) -> Option<u8> {
        self.text.get(self.at + ahead).copied()
    }

    fn starts_with(&self, expected: &[u8]) -> bool {
        self.text[self.at..].starts_with(expected)
    }

    /// Reads the part that begins with this byte, or skips a blank or comment.
    fn part(&mut self, byte: u8) -> Result<(), NoText> {
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c => self.at += 1,
            b'#' => self.skip_line(),
            b'-' if self.starts_with(b"--") && self.peek(2).is_none_or(|next| next <= b' ') => {
                self.skip_line()
            }
            b'/' if self.starts_with(b"/*") => self.skip_comment()?,
            b'*' if self.executed > 0 && self.starts_with(b"*/") => {
                self.executed -= 1;
                self.at += 2;
            }
            b'\'' => self.text_literal(b'\'')?,
            b'"' if !self.mode.has_ansi_quotes => self.text_literal(b'"')?,
            b'"' | b'`' => self.quoted_name(byte)?,
            b'0'..=b'9' => self.number()?,
            b'.' if self.is_fraction() => self.number()?,
            _ if is_name(byte) => self.word()?,
            b'&' if self.starts_with(b"&&") => {
                self.push(Token::make_word("AND", None));
                self.at += 2;
            }
            _ => self.operator(),
        }
        Ok(())
    }

    fn push(&mut self, token: Token) {
        self.parts.push(Part::Token(token));
    }

    fn push_literal(&mut self, literal: Literal) {
        self.parts.push(Part::Literal);
        self.literals.push(literal);
    }

    fn skip_line(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
    }

    /// Skips a comment. One that some servers execute (`/*!50000 … */`) is read as if it were text outside,
    /// but with an unknown structure.
    fn skip_comment(&mut self) -> Result<(), NoText> {
        let opening =
            ["/*!", "/*M!"].into_iter().find(|opening| self.starts_with(opening.as_bytes()));
        if let Some(opening) = opening {
            // Otherwise the kind of the statement would depend on the server's version.
            if self.parts.is_empty() {
                return Err(NoText);
            }
            let rest = &self.text[self.at + opening.len()..];
            let version = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            if let Some(length) = hint(&rest[version..])
                && self.parts.last().is_some_and(|part| part.is("SELECT") || part.is("DISTINCT"))
            {
                self.at += opening.len() + version + length;
                return Ok(());
            }
            self.is_exact = false;
            self.executed += 1;
            self.at += opening.len() + version;
            return Ok(());
        }
        let content = &self.text[self.at + 2..];
        let end = content.windows(2).position(|pair| pair == b"*/").ok_or(NoText)?;
        self.at += 2 + end + 2;
        Ok(())
    }

    /// Whether a period begins a number: it has a digit behind it, and no name before it.
    fn is_fraction(&self) -> bool {
        let follows_name = self.parts.last().is_some_and(|part| part.word().is_some());
        !follows_name && self.peek(1).is_some_and(|byte| byte.is_ascii_digit())
    }

    /// A number, or a name that begins with a digit.
    fn number(&mut self) -> Result<(), NoText> {
        let after_period = self.parts.last() == Some(&Part::Token(Token::Period));
        let digits = |from: usize| {
            let rest = self.text.get(from..).unwrap_or_default();
            from + rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
        };
        let mut end = digits(self.at);
        let is_name_so_far = end > self.at && self.text.get(end).copied().is_some_and(is_name);
        let is_exponent = |at: usize| {
            let sign = usize::from(matches!(self.text.get(at + 1), Some(b'+' | b'-')));
            matches!(self.text.get(at), Some(b'e' | b'E'))
                && self.text.get(at + 1 + sign).is_some_and(u8::is_ascii_digit)
        };
        if after_period || is_name_so_far && !is_exponent(end) {
            return self.word();
        }
        if self.text.get(end) == Some(&b'.') {
            end = digits(end + 1);
        }
        if is_exponent(end) {
            end = digits(end + 2);
        }
        let number = str::from_utf8(&self.text[self.at..end]).map_err(|_| NoText)?;
        // Letters that follow without a blank may belong to a name (`1e5x`).
        self.is_exact &= !self.text.get(end).copied().is_some_and(is_name);
        self.push_literal(Literal::Number(number.into()));
        self.at = end;
        Ok(())
    }

    /// A word or a name without quotes, or a constant that begins like one (`0x1F`, `b'1'`, `_utf8'a'`).
    fn word(&mut self) -> Result<(), NoText> {
        let rest = &self.text[self.at..];
        let length = rest.iter().take_while(|byte| is_name(**byte) || **byte == b'@').count();
        let word = str::from_utf8(&rest[..length]).map_err(|_| NoText)?;
        self.at += length;
        let has_digits = |prefix: &str, is_digit: fn(u8) -> bool| {
            let digits = word.strip_prefix(prefix);
            digits.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(is_digit))
        };
        let is_number = has_digits("0x", |byte| byte.is_ascii_hexdigit())
            || has_digits("0b", |byte| matches!(byte, b'0' | b'1'));
        let after_period = self.parts.last() == Some(&Part::Token(Token::Period));
        if is_number && !after_period {
            self.push_literal(Literal::Opaque);
            return Ok(());
        }
        let is_quoted_next = self.peek(0) == Some(b'\'');
        if is_quoted_next && matches!(word, "x" | "X" | "b" | "B" | "n" | "N") {
            self.text_literal(b'\'')?;
            self.literals.pop();
            self.literals.push(Literal::Opaque);
            return Ok(());
        }
        // Operators that the parser groups in another way than the database does.
        self.is_exact &= !word.eq_ignore_ascii_case("xor") && !word.starts_with('$');
        self.push(Token::make_word(word, None));
        Ok(())
    }

    fn quoted_name(&mut self, quote: u8) -> Result<(), NoText> {
        let (bytes, end) = self.quoted(quote, false)?;
        let name = String::from_utf8(bytes).map_err(|_| NoText)?;
        self.at = end;
        self.push(Token::make_word(&name, Some('`')));
        Ok(())
    }

    /// A text, joined to the text before it as the database does.
    fn text_literal(&mut self, quote: u8) -> Result<(), NoText> {
        let (bytes, end) = self.quoted(quote, !self.mode.has_plain_backslashes)?;
        self.at = end;
        let is_known = self.mode.charset != SqlCharset::Other || bytes.is_ascii();
        let text = String::from_utf8(bytes).ok().filter(|_| is_known);
        // A word with an underscore may be a character set, and changes the value.
        let follows_charset = |part: &Part| part.word().is_some_and(|word| word.starts_with('_'));
        self.is_exact &= !self.parts.last().is_some_and(follows_charset);
        let literal = match (text, self.mode.charset) {
            (None, _) => Literal::Opaque,
            (Some(text), SqlCharset::Binary) => Literal::Bytes(text.into()),
            (Some(text), SqlCharset::Utf8 | SqlCharset::Other) => Literal::Text(text.into()),
        };
        let is_joined = self.parts.last() == Some(&Part::Literal)
            && matches!(
                self.literals.last(),
                Some(Literal::Text(_) | Literal::Bytes(_) | Literal::Opaque)
            );
        if !is_joined {
            self.push_literal(literal);
            return Ok(());
        }
        let joined = match (self.literals.pop(), literal) {
            (Some(Literal::Text(first)), Literal::Text(second))
                if first.len() + second.len() <= JOINED_BYTES_MAX =>
            {
                Literal::Text((first.to_string() + &second).into())
            }
            _ => Literal::Opaque,
        };
        self.literals.push(joined);
        Ok(())
    }

    /// The content of a quoted part, and where the text goes on.
    fn quoted(&self, quote: u8, has_escapes: bool) -> Result<(Vec<u8>, usize), NoText> {
        let mut content = Vec::new();
        let mut at = self.at + 1;
        loop {
            let byte = *self.text.get(at).ok_or(NoText)?;
            let next = self.text.get(at + 1).copied();
            at += 1;
            match (byte, next) {
                (b'\\', Some(escaped)) if has_escapes => {
                    unescape(escaped, &mut content);
                    at += 1;
                }
                _ if byte == quote && next == Some(quote) => {
                    content.push(quote);
                    at += 1;
                }
                _ if byte == quote => return Ok((content, at)),
                _ => content.push(byte),
            }
        }
    }

    fn operator(&mut self) {
        // `||` is OR with a low precedence, or a concatenation; `!` binds tightly; `:=` assigns; `?` and `@`
        // stand for values that are not in the text.
        let is_other =
            self.starts_with(b"||") || (self.starts_with(b"!") && !self.starts_with(b"!="));
        self.is_exact &= !is_other;
        let Some((text, token)) = OPERATORS.iter().find(|(text, _)| self.starts_with(text)) else {
            self.is_exact = false;
            self.at += 1;
            return;
        };
        self.at += text.len();
        self.push(token.clone());
    }
}

/// The length of the rest of a comment that is one word, which changes how the database executes a query but
/// not its rows. Whether the server executes the comment then does not matter.
fn hint(rest: &[u8]) -> Option<usize> {
    const WORDS: [&str; 7] = [
        "HIGH_PRIORITY",
        "SQL_BIG_RESULT",
        "SQL_BUFFER_RESULT",
        "SQL_CACHE",
        "SQL_NO_CACHE",
        "SQL_SMALL_RESULT",
        "STRAIGHT_JOIN",
    ];
    let length = rest.iter().take(40).position(|byte| *byte == b'*')?;
    let word = rest[..length].trim_ascii();
    let is_hint = WORDS.iter().any(|hint| word.eq_ignore_ascii_case(hint.as_bytes()));
    (is_hint && rest.get(length + 1) == Some(&b'/')).then_some(length + 2)
}

/// Appends the character that an escape sequence stands for. The sequences of `LIKE` stay as they are.
fn unescape(escaped: u8, content: &mut Vec<u8>) {
    match escaped {
        b'0' => content.push(0),
        b'b' => content.push(8),
        b'n' => content.push(b'\n'),
        b'r' => content.push(b'\r'),
        b't' => content.push(b'\t'),
        b'Z' => content.push(26),
        b'%' | b'_' => content.extend([b'\\', escaped]),
        other => content.push(other),
    }
}

/// Whether a byte can be part of a name without quotes.
fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'@') || byte >= 0x80
}
