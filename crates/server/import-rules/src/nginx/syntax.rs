//! The configuration language of nginx: words, quotes, blocks, comments and `include`.
//!
//! Words end at white space, `;` and `{`; a backslash keeps the next character in the word. Blocks of Lua are
//! skipped. Every loop consumes text, and blocks, files and words are bounded (`source`).

use crate::source::{
    ConfigurationError, ConfigurationFile, DEPTH_MAX, Directive, IncludedFiles, SourceLine, Sources,
};

/// Included files whose content is built in: parameters of FastCGI, and media types.
const BUILT_IN_FILES: [&str; 4] =
    ["fastcgi_params", "fastcgi.conf", "mime.types", "fastcgi_params.conf"];

/// Reads a file with the files that it includes.
pub(crate) fn read(
    file: &ConfigurationFile,
    sources: &mut Sources,
    included: &mut dyn IncludedFiles,
    depth: usize,
) -> Result<Vec<Directive>, ConfigurationError> {
    let index = sources.add(file)?;
    let mut reader = Reader { text: &file.text, line: 1, file: index, sources };
    let directives = reader.block(0)?;
    expand(directives, file, sources, included, depth)
}

/// Replaces each `include` by the directives of its files. One that cannot be read stays.
fn expand(
    directives: Vec<Directive>,
    file: &ConfigurationFile,
    sources: &mut Sources,
    included: &mut dyn IncludedFiles,
    depth: usize,
) -> Result<Vec<Directive>, ConfigurationError> {
    let mut all = Vec::new();
    for mut directive in directives {
        if let Some(block) = directive.block.take() {
            directive.block = Some(expand(block, file, sources, included, depth)?);
        }
        if directive.name != "include" || is_built_in(&directive) {
            all.push(directive);
            continue;
        }
        if depth >= DEPTH_MAX {
            return Err(sources.error(directive.at, "files include each other too deeply"));
        }
        match included.matching(directive.word(0), &file.path) {
            Ok(files) => {
                for file in &files {
                    all.extend(read(file, sources, included, depth + 1)?);
                }
            }
            Err(why) => {
                // The translator reports it: a restriction may be in there.
                directive.words = vec![directive.word(0).to_owned(), why];
                all.push(directive);
            }
        }
    }
    Ok(all)
}

/// Whether an `include` names a file of parameters that Pagewell has itself.
pub(crate) fn is_built_in(include: &Directive) -> bool {
    let name = include.word(0).rsplit('/').next().unwrap_or_default();
    include.words.len() == 1 && BUILT_IN_FILES.contains(&name)
}

struct Reader<'a> {
    text: &'a str,
    line: usize,
    file: usize,
    sources: &'a mut Sources,
}

enum Token {
    Word(String),
    Open,
    Close,
    End,
    Nothing,
}

impl Reader<'_> {
    fn at(&self) -> SourceLine {
        SourceLine { file: self.file, line: self.line }
    }

    fn error<T>(&self, message: &str) -> Result<T, ConfigurationError> {
        Err(self.sources.error(self.at(), message))
    }

    /// The directives up to the end of the block, or of the file.
    fn block(&mut self, depth: usize) -> Result<Vec<Directive>, ConfigurationError> {
        if depth > DEPTH_MAX {
            return self.error("blocks are nested too deeply");
        }
        let (mut all, mut words, mut at) = (Vec::new(), Vec::new(), self.at());
        loop {
            let token = self.token()?;
            self.sources.count(self.at())?;
            match token {
                Token::Word(word) => {
                    if words.is_empty() {
                        at = self.at();
                    }
                    words.push(word);
                }
                Token::End if words.is_empty() => {}
                Token::End => all.push(directive(&mut words, None, at)),
                Token::Open => {
                    let is_lua = words.first().is_some_and(|name| name.ends_with("_lua_block"));
                    let inner = if is_lua { self.skip()? } else { self.block(depth + 1)? };
                    all.push(directive(&mut words, Some(inner), at));
                }
                Token::Close if depth == 0 => return self.error("a } without its {"),
                Token::Nothing if depth > 0 => {
                    return self.error("the file ends inside of a block: a } is missing");
                }
                Token::Close | Token::Nothing if words.is_empty() => return Ok(all),
                Token::Close | Token::Nothing => {
                    return self.error(&format!("no ; after {:?}", words.join(" ")));
                }
            }
        }
    }

    /// Skips a block of another language.
    fn skip(&mut self) -> Result<Vec<Directive>, ConfigurationError> {
        let mut open = 1;
        while open > 0 {
            match self.next() {
                Some('{') => open += 1,
                Some('}') => open -= 1,
                Some(_) => {}
                None => return self.error("the file ends inside of a block of Lua"),
            }
        }
        Ok(Vec::new())
    }

    fn next(&mut self) -> Option<char> {
        let next = self.text.chars().next()?;
        self.text = &self.text[next.len_utf8()..];
        self.line += usize::from(next == '\n');
        Some(next)
    }

    fn token(&mut self) -> Result<Token, ConfigurationError> {
        loop {
            let Some(next) = self.text.chars().next() else { return Ok(Token::Nothing) };
            match next {
                '#' => {
                    let end = self.text.find('\n').unwrap_or(self.text.len());
                    self.text = &self.text[end..];
                }
                '\u{feff}' => drop(self.next()),
                _ if next.is_whitespace() => drop(self.next()),
                ';' => return Ok(self.single(Token::End)),
                '{' => return Ok(self.single(Token::Open)),
                '}' => return Ok(self.single(Token::Close)),
                '"' | '\'' => return self.quoted(next),
                _ => return Ok(Token::Word(self.plain())),
            }
        }
    }

    fn single(&mut self, token: Token) -> Token {
        self.next();
        token
    }

    fn quoted(&mut self, quote: char) -> Result<Token, ConfigurationError> {
        let begin = self.at();
        self.next();
        let mut word = String::new();
        while let Some(next) = self.next() {
            if next == quote {
                return Ok(Token::Word(word));
            }
            if next == '\\' {
                self.escaped(&mut word);
            } else {
                word.push(next);
            }
        }
        Err(self.sources.error(begin, "a quoted word without its end"))
    }

    fn plain(&mut self) -> String {
        let mut word = String::new();
        while let Some(next) = self.text.chars().next() {
            let is_variable = next == '{' && word.ends_with('$');
            if next.is_whitespace() || next == ';' || (next == '{' && !is_variable) {
                break;
            }
            self.next();
            if next == '\\' {
                self.escaped(&mut word);
            } else {
                word.push(next);
            }
        }
        word
    }

    /// The character after a backslash. The backslash stays, except before a quote and itself.
    fn escaped(&mut self, word: &mut String) {
        match self.next() {
            Some(c @ ('"' | '\'' | '\\')) => word.push(c),
            Some('t') => word.push('\t'),
            Some('r') => word.push('\r'),
            Some('n') => word.push('\n'),
            Some(c) => word.extend(['\\', c]),
            None => word.push('\\'),
        }
    }
}

fn directive(words: &mut Vec<String>, block: Option<Vec<Directive>>, at: SourceLine) -> Directive {
    let mut words = std::mem::take(words).into_iter();
    let name = words.next().unwrap_or_default();
    Directive { name, words: words.collect(), block, at }
}
