//! Source text with its comments and the insides of its strings blanked out, or with nothing but the insides of
//! its strings.
//!
//! The rules then count braces, look for names or read messages without being led astray by `"}"` or a remark.
//! Line ends stay where they are, so that line numbers hold. Knows just enough of Rust (nested
//! comments, raw strings, lifetimes) and of PHP (text outside of tags, heredocs, attributes).

/// Which rules of comments and strings hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// Rust.
    Rust,
    /// PHP, with text outside of its tags.
    Php,
}

/// The code in `text`; all else is spaces.
pub fn code_only(text: &str, language: Language) -> String {
    let mut lexer = Lexer::new(text);
    match language {
        Language::Rust => lexer.rust(),
        Language::Php => lexer.php(),
    }
    String::from_utf8_lossy(&lexer.code).into_owned()
}

/// The insides of the string literals in a Rust `text`; all else is spaces.
pub fn literals_only(text: &str) -> String {
    let mut lexer = Lexer::new(text);
    lexer.rust();
    String::from_utf8_lossy(&lexer.literals).into_owned()
}

struct Lexer<'a> {
    bytes: &'a [u8],
    at: usize,
    code: Vec<u8>,
    literals: Vec<u8>,
}

impl<'a> Lexer<'a> {
    fn new(text: &'a str) -> Lexer<'a> {
        let (code, literals) = (Vec::with_capacity(text.len()), Vec::with_capacity(text.len()));
        Lexer { bytes: text.as_bytes(), at: 0, code, literals }
    }

    fn rust(&mut self) {
        while let Some(byte) = self.peek(0) {
            let in_word = self.code.last().is_some_and(|last| is_word(*last));
            match (byte, self.peek(1)) {
                (b'/', Some(b'/')) => self.blank_line(),
                (b'/', Some(b'*')) => self.blank_nested_comment(),
                (b'"', _) => self.blank_string(b'"'),
                (b'r', Some(b'"' | b'#')) if !in_word => self.raw_string(1),
                (b'b' | b'c', Some(b'r')) if !in_word => self.raw_string(2),
                (b'\'', _) => self.char_or_lifetime(),
                _ => self.keep(1),
            }
        }
    }

    fn php(&mut self) {
        self.blank_until(b"<?");
        while let Some(byte) = self.peek(0) {
            match (byte, self.peek(1)) {
                (b'?', Some(b'>')) => self.blank_until(b"<?"),
                (b'/', Some(b'/')) => self.blank_php_line(),
                (b'#', next) if next != Some(b'[') => self.blank_php_line(),
                (b'/', Some(b'*')) => self.blank_until(b"*/"),
                (b'\'' | b'"' | b'`', _) => self.blank_string(byte),
                (b'<', Some(b'<')) if self.peek(2) == Some(b'<') => self.heredoc(),
                _ => self.keep(1),
            }
        }
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.at + ahead).copied()
    }

    fn keep(&mut self, count: usize) {
        for _ in 0..count {
            if let Some(byte) = self.peek(0) {
                // Letters beyond ASCII are words too, but one byte of each is enough.
                self.code.push(if byte.is_ascii() { byte } else { b'_' });
                self.literals.push(if byte == b'\n' { b'\n' } else { b' ' });
                self.at += 1;
            }
        }
    }

    fn blank(&mut self, count: usize) {
        for _ in 0..count {
            if let Some(byte) = self.peek(0) {
                let blank = if byte == b'\n' { b'\n' } else { b' ' };
                self.code.push(blank);
                self.literals.push(blank);
                self.at += 1;
            }
        }
    }

    /// Blanks a byte of a string out of the code, but not out of the literals.
    fn blank_literal(&mut self, byte: u8) {
        self.blank(1);
        if let Some(last) = self.literals.last_mut() {
            *last = byte;
        }
    }

    fn blank_line(&mut self) {
        while self.peek(0).is_some_and(|byte| byte != b'\n') {
            self.blank(1);
        }
    }

    /// A comment of one line ends before a closing tag.
    fn blank_php_line(&mut self) {
        while self.peek(0).is_some_and(|byte| byte != b'\n') {
            if (self.peek(0), self.peek(1)) == (Some(b'?'), Some(b'>')) {
                return;
            }
            self.blank(1);
        }
    }

    fn blank_until(&mut self, end: &[u8]) {
        self.blank(1);
        while self.at < self.bytes.len() && !self.bytes[self.at..].starts_with(end) {
            self.blank(1);
        }
        self.blank(end.len());
    }

    fn blank_nested_comment(&mut self) {
        let mut depth = 0;
        while self.at < self.bytes.len() {
            match (self.peek(0), self.peek(1)) {
                (Some(b'/'), Some(b'*')) => depth += 1,
                (Some(b'*'), Some(b'/')) => depth -= 1,
                _ => {
                    self.blank(1);
                    continue;
                }
            }
            self.blank(2);
            if depth == 0 {
                return;
            }
        }
    }

    fn blank_string(&mut self, quote: u8) {
        self.keep(1);
        while let Some(byte) = self.peek(0) {
            match byte {
                b'\\' => self.blank(2),
                byte if byte == quote => return self.keep(1),
                _ => self.blank_literal(byte),
            }
        }
    }

    /// `r"…"`, `br##"…"##`; a raw identifier (`r#type`) is kept as it is.
    fn raw_string(&mut self, prefix: usize) {
        let hashes =
            self.bytes[self.at + prefix..].iter().take_while(|byte| **byte == b'#').count();
        if self.peek(prefix + hashes) != Some(b'"') {
            return self.keep(1);
        }
        self.blank(prefix + hashes + 1);
        let mut end = vec![b'"'];
        end.extend(std::iter::repeat_n(b'#', hashes));
        while let Some(byte) = self.peek(0).filter(|_| !self.bytes[self.at..].starts_with(&end)) {
            self.blank_literal(byte);
        }
        self.blank(end.len());
    }

    fn char_or_lifetime(&mut self) {
        let is_char = self.peek(1) == Some(b'\\')
            || self.bytes[self.at + 1..].iter().skip(1).take(4).any(|byte| *byte == b'\'')
                && !self.peek(1).is_some_and(is_word)
            || self.peek(2) == Some(b'\'');
        if is_char { self.blank_string(b'\'') } else { self.keep(1) }
    }

    /// `<<<NAME … NAME`, with or without quotes round the first.
    fn heredoc(&mut self) {
        let rest = &self.bytes[self.at + 3..];
        let opening: Vec<u8> = rest.iter().copied().take_while(|byte| *byte != b'\n').collect();
        let name: Vec<u8> = opening.iter().copied().filter(|byte| is_word(*byte)).collect();
        if name.is_empty() {
            return self.keep(3);
        }
        self.blank(3 + opening.len());
        while self.at < self.bytes.len() {
            self.blank(1);
            let line = &self.bytes[self.at..];
            let indent = line.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
            if line[indent..].starts_with(&name) {
                return self.blank(indent + name.len());
            }
            self.blank_line();
        }
    }
}

/// Whether a byte can be part of a name.
pub fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || !byte.is_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rust_keeps_code_and_line_ends() {
        let text = "let a = \"}\\\"\"; // }\nfn f<'a>(c: &'a u8) { '{'; /* { /* */ */ b'\\''; }";
        let code = code_only(text, Language::Rust);
        assert_eq!(code.matches('{').count(), 1);
        assert_eq!(code.matches('}').count(), 1);
        assert_eq!(code.lines().count(), 2);
        assert!(code.contains("fn f<'a>(c: &'a u8)"));
    }

    #[test]
    fn literals_are_the_insides_of_strings() {
        let text = "f(\"a b\\n\"); // \"c\"\ng(r#\"d \" e\"#, '\"')";
        let words: Vec<Vec<String>> = literals_only(text)
            .lines()
            .map(|line| line.split_whitespace().map(str::to_owned).collect())
            .collect();
        assert_eq!(words, [vec!["a", "b"], vec!["d", "\"", "e", "\""]]);
        assert_eq!(literals_only(text).len(), text.len());
    }

    #[test]
    fn raw_strings_and_raw_names() {
        let code = code_only("let r#type = r#\"a \" {\"#; br\"{\"; for r in x {}", Language::Rust);
        assert!(code.contains("r#type") && code.contains("for r in x {}"));
        assert_eq!(code.matches('{').count(), 1);
    }

    #[test]
    fn php_knows_tags_heredocs_and_attributes() {
        let text =
            "<p>{</p><?php #[A]\nfunction f() { // { ?> { <?php\n# {\n$a = <<<'X'\n  {\n  X;\n}";
        let code = code_only(text, Language::Php);
        assert_eq!((code.matches('{').count(), code.matches('}').count()), (1, 1));
        assert!(code.contains("#[A]"));
    }
}
