//! The forms of a path that access rules test, and how a rule's patterns are compared with them.
//!
//! Applications disagree about `%2F` and `\` in a path. So a path has several forms: in the first, `%2F` is a slash
//! and `\` a character; in the second it is the other way round; in the third, both are slashes. In all of them the
//! path is decoded once, and repeated slashes and dot segments are resolved.
//!
//! | rule | applies if |
//! |---|---|
//! | a restriction | **any** form of the path matches, or the script that a form names, or the path after that script (`PATH_INFO`); a pattern with `!` exempts only if **all** forms match it |
//! | an exemption | **all** forms match, and nothing of the above matches a pattern with `!` |
//!
//! A path without `%` and `\` has one form, and nothing is allocated for it.

use memchr::memchr;
use rule_conditions::{Globs, Regexes, is_respelt, without_dots};
use std::borrow::Cow;
use std::cell::OnceCell;

/// Endings of file names that programs execute, whatever the site's own are.
const SCRIPT_ENDINGS: [&[u8]; 13] = [
    b"php", b"phtml", b"pht", b"phar", b"php3", b"php4", b"php5", b"php6", b"php7", b"php8", b"pl",
    b"pm", b"cgi",
];

/// The forms of one or several paths.
pub(crate) struct PathForms<'a> {
    first: Cow<'a, [u8]>,
    others: Vec<Cow<'a, [u8]>>,
    /// The site's own endings of scripts.
    endings: &'a [Box<str>],
    /// Whether they name scripts, once that was looked for.
    scripts: OnceCell<NamedScripts>,
}

/// Whether the forms of a path name scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NamedScripts {
    /// They name none, or are themselves names of scripts, which are not searched for scripts again.
    None,
    /// A form names one or several.
    Some,
    /// A form names more than [`SCRIPTS_MAX`].
    TooMany,
}

/// The maximum number of scripts that a path may name. A path with more is restricted by each pattern that it does not
/// match as a whole, too, so that a request costs no more than a few comparisons.
const SCRIPTS_MAX: usize = 16;

/// Further spellings of a slash.
#[derive(Clone, Copy)]
struct Slashes {
    is_encoded: bool,
    is_backslash: bool,
}

impl<'a> PathForms<'a> {
    fn new(first: Cow<'a, [u8]>) -> PathForms<'a> {
        PathForms { first, others: Vec::new(), endings: &[], scripts: OnceCell::new() }
    }

    /// These forms on a site with more endings of scripts.
    pub(crate) fn with_endings(self, endings: &'a [Box<str>]) -> PathForms<'a> {
        PathForms { endings, scripts: OnceCell::new(), ..self }
    }

    /// The scripts that the forms name.
    pub(crate) fn scripts(&self) -> impl Iterator<Item = &[u8]> {
        self.all().flat_map(|form| scripts_in(form, self.endings).map(|(script, _)| script))
    }

    /// The forms of a path as it was sent, without its query.
    pub(crate) fn of(path: &'a str) -> PathForms<'a> {
        PathForms::of_spelling(path, is_respelt(path))
    }

    /// The same, if it is known whether the path is respelt.
    pub(crate) fn of_spelling(path: &'a str, is_respelt: bool) -> PathForms<'a> {
        let bytes = path.as_bytes();
        let has_backslash = memchr(b'\\', bytes).is_some();
        if !has_backslash && !is_respelt {
            return PathForms::new(Cow::Borrowed(bytes));
        }
        let form = |is_encoded, is_backslash| {
            Cow::Owned(form(bytes, Slashes { is_encoded, is_backslash }))
        };
        let first = form(true, false);
        let mut forms = PathForms::new(first);
        if has_backslash || memchr(b'%', bytes).is_some() {
            forms.add(form(false, true));
            forms.add(form(true, true));
        }
        forms
    }

    /// These forms, and those of another path.
    pub(crate) fn with(mut self, path: &'a str) -> PathForms<'a> {
        let PathForms { first, others, .. } = PathForms::of(path);
        self.add(first);
        others.into_iter().for_each(|form| self.add(form));
        self
    }

    /// Names that are no paths of a URL: of scripts.
    pub(crate) fn of_names(first: &'a [u8], others: Vec<Cow<'a, [u8]>>) -> PathForms<'a> {
        let scripts = OnceCell::from(NamedScripts::None);
        PathForms { others, scripts, ..PathForms::new(Cow::Borrowed(first)) }
    }

    fn add(&mut self, form: Cow<'a, [u8]>) {
        if !self.all().any(|known| *known == *form) {
            self.scripts = OnceCell::new();
            self.others.push(form);
        }
    }

    /// All forms.
    pub(crate) fn all(&self) -> impl Iterator<Item = &[u8]> {
        std::iter::once(&*self.first).chain(self.others.iter().map(|form| &**form))
    }

    /// Whether a form names more scripts than are looked at.
    pub(crate) fn name_too_many_scripts(&self) -> bool {
        self.named_scripts() == NamedScripts::TooMany
    }

    /// A path is compared with all patterns, and most paths name no script: they are searched once.
    fn named_scripts(&self) -> NamedScripts {
        *self.scripts.get_or_init(|| {
            if !self.any(|form| memchr(b'.', form).is_some()) {
                return NamedScripts::None;
            }
            let count = |form| scripts_in(form, self.endings).take(SCRIPTS_MAX + 1).count();
            match self.all().map(count).max() {
                None | Some(0) => NamedScripts::None,
                Some(1..=SCRIPTS_MAX) => NamedScripts::Some,
                Some(_) => NamedScripts::TooMany,
            }
        })
    }

    /// Whether any form fits. Nearly every path has one.
    fn any(&self, mut fits: impl FnMut(&[u8]) -> bool) -> bool {
        fits(&self.first) || self.others.iter().any(|form| fits(form))
    }

    /// Whether a form fits, or a script that it names, or the path after that script.
    fn any_with_scripts(&self, mut fits: impl FnMut(&[u8]) -> bool) -> bool {
        self.any(&mut fits)
            || match self.named_scripts() {
                NamedScripts::None => false,
                NamedScripts::Some => self.any(|form| {
                    let mut scripts = scripts_in(form, self.endings);
                    scripts.any(|(script, rest)| fits(script) || (!rest.is_empty() && fits(rest)))
                }),
                NamedScripts::TooMany => true,
            }
    }
}

/// The scripts that a path names: the path up to the script without dots and spaces at its end, and the path after it.
/// `endings` are those of the site.
fn scripts_in<'f>(
    form: &'f [u8],
    endings: &'f [Box<str>],
) -> impl Iterator<Item = (&'f [u8], &'f [u8])> {
    let ends = (1..=form.len()).filter(move |end| form.get(*end).is_none_or(|byte| *byte == b'/'));
    ends.filter_map(move |end| {
        let (path, rest) = form.split_at(end);
        let name = path.rsplit(|byte| *byte == b'/').next()?;
        let padding = name.iter().rev().take_while(|byte| matches!(**byte, b'.' | b' ')).count();
        let name = &name[..name.len() - padding];
        let dot = name.iter().rposition(|byte| *byte == b'.')?;
        let ending = &name[dot + 1..];
        let is_script = SCRIPT_ENDINGS.iter().any(|end| ending.eq_ignore_ascii_case(end))
            || endings.iter().any(|end| ending.eq_ignore_ascii_case(end.as_bytes()));
        is_script.then_some((&path[..path.len() - padding], rest))
    })
}

/// One form of a path.
fn form(path: &[u8], slashes: Slashes) -> Vec<u8> {
    let digit = |at: usize| char::from(*path.get(at)?).to_digit(16).map(|digit| digit as u8);
    let (mut decoded, mut at) = (Vec::with_capacity(path.len()), 0);
    while let Some(byte) = path.get(at) {
        let escaped = (*byte == b'%').then(|| digit(at + 1).zip(digit(at + 2))).flatten();
        let escaped = escaped.map(|(high, low)| high << 4 | low);
        at += if escaped.is_some() { 3 } else { 1 };
        match (escaped, escaped.unwrap_or(*byte)) {
            (Some(b'/'), _) if !slashes.is_encoded => decoded.extend_from_slice(b"%2F"),
            (_, b'\\') if slashes.is_backslash => decoded.push(b'/'),
            (_, byte) => decoded.push(byte),
        }
    }
    without_dots(&decoded)
}

/// A list of patterns for paths; those written with `!` exclude.
pub(crate) trait PathPatterns {
    /// Whether there is no pattern that a path has to match.
    fn include_all(&self) -> bool;
    /// Whether there are patterns with `!`.
    fn have_exceptions(&self) -> bool;
    /// Whether a pattern without `!` matches.
    fn include(&self, path: &[u8]) -> bool;
    /// Whether a pattern with `!` matches.
    fn except(&self, path: &[u8]) -> bool;

    /// Whether a restriction with these patterns applies.
    fn restrict(&self, forms: &PathForms<'_>) -> bool {
        (self.include_all() || forms.any_with_scripts(|path| self.include(path)))
            && !(self.have_exceptions() && forms.all().all(|path| self.except(path)))
    }

    /// Whether an exemption with these patterns applies.
    fn exempt(&self, forms: &PathForms<'_>) -> bool {
        (self.include_all() || forms.all().all(|path| self.include(path)))
            && !(self.have_exceptions() && forms.any_with_scripts(|path| self.except(path)))
    }
}

impl PathPatterns for Globs {
    fn include_all(&self) -> bool {
        self.any.is_empty()
    }

    fn have_exceptions(&self) -> bool {
        !self.none.is_empty()
    }

    fn include(&self, path: &[u8]) -> bool {
        self.any.iter().any(|glob| glob.fits(path))
    }

    fn except(&self, path: &[u8]) -> bool {
        self.none.iter().any(|glob| glob.fits(path))
    }
}

impl PathPatterns for Regexes {
    fn include_all(&self) -> bool {
        self.any.is_empty()
    }

    fn have_exceptions(&self) -> bool {
        !self.none.is_empty()
    }

    fn include(&self, path: &[u8]) -> bool {
        self.any.iter().any(|regex| regex.is_match(path))
    }

    fn except(&self, path: &[u8]) -> bool {
        self.none.iter().any(|regex| regex.is_match(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn globs(words: &[&str]) -> Globs {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        Globs::of_paths(&words).unwrap()
    }

    fn forms(path: &str) -> Vec<String> {
        let forms = PathForms::of(path);
        forms.all().map(|form| String::from_utf8_lossy(form).into_owned()).collect()
    }

    #[test]
    fn a_path_is_read_in_every_way_in_which_applications_read_it() {
        assert_eq!(forms("/a/b"), ["/a/b"]);
        assert_eq!(forms("//a/./b/.."), ["/a/"]);
        assert_eq!(forms("/%61"), ["/a"]);
        assert_eq!(forms("/a%2Fb"), ["/a/b", "/a%2Fb"]);
        assert_eq!(forms("/x/..%2fa"), ["/a", "/x/..%2Fa"]);
        assert_eq!(forms("/x\\..\\a"), ["/x\\..\\a", "/a"]);
        assert_eq!(forms("/x%5c..%2fa"), ["/x\\../a", "/x/..%2Fa", "/a"]);
        assert!(matches!(PathForms::of("/a/b").first, Cow::Borrowed(_)));
    }

    #[test]
    fn a_restriction_takes_any_reading_and_an_exemption_all() {
        let admin = globs(&["/admin", "/admin/**"]);
        for path in [
            "/admin",
            "//admin",
            "/./admin",
            "/%61dmin",
            "/x/../admin",
            "/admin%2f",
            "/index.php/admin",
            "/admin/index.php",
            "/INDEX.PHP/admin",
            "/x%5c..%5cadmin",
            "/x\\../admin",
            "/..%2fadmin",
        ] {
            assert!(admin.restrict(&PathForms::of(path)), "{path}");
        }
        for path in ["/", "/administrator", "/x/admin", "/Admin"] {
            assert!(!admin.restrict(&PathForms::of(path)), "{path}");
        }
        let but = globs(&["/**", "!/public/**"]);
        assert!(!but.restrict(&PathForms::of("/public/x")));
        for path in ["/private", "/public/%2e%2e/x", "/public/..%2fx", "/public/..\\x"] {
            assert!(but.restrict(&PathForms::of(path)), "{path}");
        }
        let open = globs(&["/open/**"]);
        assert!(open.exempt(&PathForms::of("/open/x")));
        for path in ["/open/..%2fx", "/open\\..\\x", "/open/..\\x", "/open%2fx"] {
            assert!(!open.exempt(&PathForms::of(path)), "{path}");
        }
    }

    #[test]
    fn scripts_are_found_in_any_spelling() {
        let xmlrpc = globs(&["/xmlrpc.php"]);
        for path in
            ["/xmlrpc.php", "/xmlrpc.php/x", "/xmlrpc.php.", "/xmlrpc.php%20", "/xmlrpc.php%20./x"]
        {
            assert!(xmlrpc.restrict(&PathForms::of(path)), "{path}");
        }
        let of = |path: &str| -> Vec<String> {
            let all = scripts_in(path.as_bytes(), &[]);
            all.map(|(script, rest)| {
                String::from_utf8_lossy(&[script, b"|", rest].concat()).into_owned()
            })
            .collect()
        };
        assert_eq!(of("/u/a.jpg/b.PHP"), ["/u/a.jpg/b.PHP|"]);
        assert_eq!(of("/a.php/b.phtml/c"), ["/a.php|/b.phtml/c", "/a.php/b.phtml|/c"]);
        assert!(of("/a.php5x/b.ph").is_empty() && of("/").is_empty());
        let (own, endings) = (globs(&["/run.inc7"]), [Box::from("inc7")]);
        let path = || PathForms::of("/run.INC7/x");
        assert!(!globs(&["/run.INC7"]).restrict(&path()) && !own.restrict(&path()));
        assert!(globs(&["/run.INC7"]).restrict(&path().with_endings(&endings)));
    }

    proptest! {
        /// A path that one form hides is still found by a restriction.
        #[test]
        fn a_restriction_is_never_narrower_than_an_exemption(path in "/([a.%\\\\/]|%2f|%5C|%2e|a){0,12}") {
            let (patterns, path) = (globs(&["/a/**", "!/a/a"]), PathForms::of(&path));
            prop_assert!(!patterns.exempt(&path) || patterns.restrict(&path));
        }
    }
}
