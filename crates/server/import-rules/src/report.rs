//! The fate of each directive, by line: built in, translated, not needed, not translated.
//!
//! A directive has one line. If it is judged twice, the worse judgement stays. A restriction that was not translated
//! makes the whole import fail ([`ImportReport::lacks_restrictions`]).

use crate::source::{Directive, SourceLine, Sources};
use std::collections::BTreeMap;
use std::fmt;

/// The fate of a directive, from the best to the worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DirectiveFate {
    /// Pagewell has no use for it.
    NotNeeded,
    /// Pagewell does it without configuration.
    BuiltIn,
    /// The configuration has it.
    Translated,
    /// It is missing in the configuration.
    NotTranslated,
}

impl DirectiveFate {
    /// All, in the order of reports.
    pub const ALL: [DirectiveFate; 4] = [
        DirectiveFate::BuiltIn,
        DirectiveFate::Translated,
        DirectiveFate::NotNeeded,
        DirectiveFate::NotTranslated,
    ];

    /// The word for readers.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            DirectiveFate::NotNeeded => "not needed",
            DirectiveFate::BuiltIn => "built in",
            DirectiveFate::Translated => "translated",
            DirectiveFate::NotTranslated => "not translated",
        }
    }
}

impl fmt::Display for DirectiveFate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// The remark on a directive that is in no list.
const UNKNOWN: &str = "Pagewell has nothing like it";

/// A directive and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectiveReport {
    /// The file, as it was named.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The directive, on one line.
    pub directive: String,
    /// The fate of the directive.
    pub fate: DirectiveFate,
    /// Why, or how Pagewell differs.
    pub remark: Option<String>,
    /// Whether it restricts requests: denial, password, network, limit.
    pub is_restriction: bool,
}

/// The report of an import.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ImportReport {
    /// All directives, by file and line.
    pub directives: Vec<DirectiveReport>,
}

impl ImportReport {
    /// Whether a restriction of the original is missing in the translation.
    #[must_use]
    pub fn lacks_restrictions(&self) -> bool {
        self.directives
            .iter()
            .any(|one| one.is_restriction && one.fate == DirectiveFate::NotTranslated)
    }

    /// The number of directives with this fate.
    #[must_use]
    pub fn count(&self, fate: DirectiveFate) -> usize {
        self.directives.iter().filter(|one| one.fate == fate).count()
    }

    /// The report as text: a line for each directive, and the numbers.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        for one in &self.directives {
            let remark = one.remark.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
            let (file, line, fate) = (&one.file, one.line, one.fate);
            text.push_str(&format!("{file}:{line}: {fate}{remark}\n    {}\n", one.directive));
        }
        let counts = DirectiveFate::ALL.map(|fate| format!("{} {fate}", self.count(fate)));
        text.push_str(&format!("{}\n", counts.join(", ")));
        let unknown = self
            .directives
            .iter()
            .filter(|one| !one.is_restriction && one.remark.as_deref() == Some(UNKNOWN));
        let names = unknown.filter_map(|one| one.directive.split([' ', '>']).next());
        let names: std::collections::BTreeSet<&str> = names.collect();
        if !names.is_empty() {
            let names: Vec<_> = names.into_iter().collect();
            text.push_str(&format!(
                "Not known to the importer, look whether they restrict: {}\n",
                names.join(", ")
            ));
        }
        if self.lacks_restrictions() {
            text.push_str(
                "A restriction was not translated: write it by hand before this configuration serves the site.\n",
            );
        }
        text
    }
}

/// Judgements while a configuration is translated.
#[derive(Debug, Default)]
pub(crate) struct Judgements {
    all: BTreeMap<(SourceLine, String), Judgement>,
}

#[derive(Debug, Clone)]
struct Judgement {
    fate: DirectiveFate,
    remark: Option<String>,
    is_restriction: bool,
}

impl Judgements {
    /// Judges a directive. The worse of two judgements stays, and the remarks of equal ones.
    fn judge(&mut self, of: &Directive, new: Judgement) {
        let known = self.all.entry((of.at, of.shown())).or_insert_with(|| new.clone());
        known.is_restriction |= new.is_restriction;
        if new.fate > known.fate {
            let is_restriction = known.is_restriction;
            *known = new;
            known.is_restriction = is_restriction;
        } else if known.remark.is_none() && new.fate == known.fate {
            known.remark = new.remark;
        }
    }

    fn plain(&mut self, of: &Directive, fate: DirectiveFate, remark: Option<&str>) {
        let remark = remark.map(str::to_owned);
        self.judge(of, Judgement { fate, remark, is_restriction: false });
    }

    pub(crate) fn built_in(&mut self, of: &Directive) {
        self.plain(of, DirectiveFate::BuiltIn, None);
    }

    pub(crate) fn built_in_but(&mut self, of: &Directive, remark: &str) {
        self.plain(of, DirectiveFate::BuiltIn, Some(remark));
    }

    pub(crate) fn translated(&mut self, of: &Directive) {
        self.plain(of, DirectiveFate::Translated, None);
    }

    pub(crate) fn translated_but(&mut self, of: &Directive, remark: &str) {
        self.plain(of, DirectiveFate::Translated, Some(remark));
    }

    pub(crate) fn not_needed(&mut self, of: &Directive) {
        self.plain(of, DirectiveFate::NotNeeded, None);
    }

    pub(crate) fn not_needed_because(&mut self, of: &Directive, why: &str) {
        self.plain(of, DirectiveFate::NotNeeded, Some(why));
    }

    pub(crate) fn not_translated(&mut self, of: &Directive, why: &str) {
        self.plain(of, DirectiveFate::NotTranslated, Some(why));
    }

    /// A restriction that is missing in the translation.
    pub(crate) fn lost_restriction(&mut self, of: &Directive, why: &str) {
        let remark = Some(why.to_owned());
        self.judge(
            of,
            Judgement { fate: DirectiveFate::NotTranslated, remark, is_restriction: true },
        );
    }

    /// Whether a directive was judged.
    pub(crate) fn has(&self, of: &Directive) -> bool {
        self.all.contains_key(&(of.at, of.shown()))
    }

    /// Judges each directive that nothing has judged.
    pub(crate) fn complete(
        &mut self,
        all: &[Directive],
        is_restriction: impl Fn(&Directive) -> bool + Copy,
    ) {
        for one in all {
            if !self.has(one) {
                let why = UNKNOWN;
                if is_restriction(one) {
                    self.lost_restriction(one, why);
                } else {
                    self.not_translated(one, why);
                }
            }
            self.complete(one.inner(), is_restriction);
        }
    }

    /// The report, by file and line.
    pub(crate) fn report(self, sources: &Sources) -> ImportReport {
        let shown = |((at, directive), judgement): ((SourceLine, String), Judgement)| {
            let file = sources.paths.get(at.file).map(|path| path.display().to_string());
            DirectiveReport {
                file: file.unwrap_or_default(),
                line: at.line,
                directive,
                fate: judgement.fate,
                remark: judgement.remark,
                is_restriction: judgement.is_restriction,
            }
        };
        ImportReport { directives: self.all.into_iter().map(shown).collect() }
    }
}
