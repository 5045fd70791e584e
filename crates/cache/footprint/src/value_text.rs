//! A text of a row, with the forms in which statements compare it. Those of a long text are made once for all
//! statements: a comment of 60 KB is compared with the words of thousands of searches.
//!
//! A row owns the forms of its long texts ([`RowForms`]); a short text has none, because remembered rows are bounded
//! by the memory of their values. Not here: the comparisons.

use crate::budget::MatchBudget;
use change_feed::text::fold_value;
use memchr::memmem;
use std::borrow::Cow;
use std::sync::OnceLock;

/// The longest text whose forms are made for each comparison, in bytes.
pub(crate) const SHORT_BYTES_MAX: usize = 1024;
/// The cost of folding a byte, in steps.
const FOLD_STEPS: usize = 8;
/// The length of the parts by which a text is known, in bytes.
const PART_BYTES: usize = 4;
/// The number of bits for the parts of a text, as a power of two.
const PART_BITS: u32 = 17;

/// The forms of the long texts of a row. They are no part of its value.
#[derive(Default)]
pub(crate) struct RowForms(OnceLock<Box<[TextForms]>>);

/// The forms of a long text, each made when it is first needed.
#[derive(Default)]
struct TextForms {
    is_plain: OnceLock<bool>,
    lower: OnceLock<Box<[u8]>>,
    folded: OnceLock<Option<LongFolded>>,
}

/// A long text in folded form.
struct LongFolded {
    text: Box<str>,
    parts: TextParts,
}

/// A text of a row, with its forms if they are made once.
#[derive(Clone, Copy)]
pub(crate) struct ValueText<'r> {
    text: &'r str,
    forms: Option<&'r TextForms>,
}

/// A text in folded form.
pub(crate) struct FoldedText<'r> {
    text: Cow<'r, str>,
    parts: Option<&'r TextParts>,
}

/// The hashes of all parts of a text. A word with a part that the text lacks is not in it, so most of many words are
/// excluded without another pass over the text.
struct TextParts(Box<[u64]>);

impl RowForms {
    /// The text of this column, of a row with this number of columns.
    pub fn text<'r>(&'r self, columns: usize, column: u16, text: &'r str) -> ValueText<'r> {
        let forms = (text.len() > SHORT_BYTES_MAX).then(|| {
            let all = self.0.get_or_init(|| (0..columns).map(|_| TextForms::default()).collect());
            all.get(usize::from(column))
        });
        ValueText { text, forms: forms.flatten() }
    }
}

impl Clone for RowForms {
    fn clone(&self) -> RowForms {
        RowForms::default()
    }
}

impl PartialEq for RowForms {
    fn eq(&self, _: &RowForms) -> bool {
        true
    }
}

impl Eq for RowForms {}

impl std::fmt::Debug for RowForms {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RowForms")
    }
}

impl<'r> ValueText<'r> {
    /// A text whose forms are made for each comparison.
    pub fn new(text: &'r str) -> ValueText<'r> {
        ValueText { text, forms: None }
    }

    /// The text as the row has it, without folding.
    pub fn as_str(&self) -> &'r str {
        self.text
    }

    /// Whether its forms are made once.
    pub fn is_long(&self) -> bool {
        self.forms.is_some()
    }

    /// Whether every usual collation compares the text by its bytes, or by its bytes without case.
    pub fn is_plain(&self, budget: &mut MatchBudget) -> bool {
        let own = |budget: &mut MatchBudget| {
            budget.spend(self.text.len());
            is_plain(self.text)
        };
        match self.forms {
            Some(forms) => *forms.is_plain.get_or_init(|| own(budget)),
            None => own(budget),
        }
    }

    /// The bytes of the text without the case of ASCII letters.
    pub fn lower(&self, budget: &mut MatchBudget) -> Cow<'r, [u8]> {
        let own = |budget: &mut MatchBudget| {
            budget.spend(self.text.len());
            self.text.as_bytes().to_ascii_lowercase()
        };
        match self.forms {
            Some(forms) => Cow::Borrowed(forms.lower.get_or_init(|| own(budget).into())),
            None => Cow::Owned(own(budget)),
        }
    }

    /// The text in folded form, as [`fold_value`] makes it.
    pub fn folded(&self, budget: &mut MatchBudget) -> Option<FoldedText<'r>> {
        let own = |budget: &mut MatchBudget| {
            budget.spend(FOLD_STEPS * self.text.len());
            fold_value(self.text)
        };
        let Some(forms) = self.forms else {
            return own(budget).map(|text| FoldedText { text: Cow::Owned(text), parts: None });
        };
        let folded = forms.folded.get_or_init(|| {
            let text: Box<str> = own(budget)?.into();
            let parts = TextParts::of(text.as_bytes());
            Some(LongFolded { text, parts })
        });
        let LongFolded { text, parts } = folded.as_ref()?;
        Some(FoldedText { text: Cow::Borrowed(text), parts: Some(parts) })
    }
}

impl FoldedText<'_> {
    /// The text in folded form.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether a text in folded form is in it.
    pub fn contains(&self, word: &str, budget: &mut MatchBudget) -> bool {
        if let Some(parts) = self.parts {
            budget.spend(word.len());
            if !parts.may_have(word.as_bytes()) {
                return false;
            }
        }
        find(self.text.as_bytes(), word.as_bytes(), budget).is_some()
    }
}

impl TextParts {
    fn of(text: &[u8]) -> TextParts {
        let mut bits = vec![0_u64; 1 << (PART_BITS - u64::BITS.ilog2())].into_boxed_slice();
        for part in text.windows(PART_BYTES) {
            let (at, bit) = place(part);
            bits[at] |= bit;
        }
        TextParts(bits)
    }

    fn may_have(&self, word: &[u8]) -> bool {
        word.windows(PART_BYTES).all(|part| {
            let (at, bit) = place(part);
            self.0[at] & bit != 0
        })
    }
}

/// The word and the bit that stand for a part.
fn place(part: &[u8]) -> (usize, u64) {
    let number = part.iter().fold(0, |number: u32, byte| number << 8 | u32::from(*byte));
    let hash = number.wrapping_mul(0x9E37_79B1) >> (u32::BITS - PART_BITS);
    ((hash / u64::BITS) as usize, 1 << (hash % u64::BITS))
}

/// The first place of a word in a text, in time that is linear in both.
pub(crate) fn find(text: &[u8], word: &[u8], budget: &mut MatchBudget) -> Option<usize> {
    let found = memmem::find(text, word);
    budget.spend(word.len() + found.unwrap_or(text.len()));
    found
}

/// Whether every usual collation compares a text by its bytes, or by its bytes without case.
pub(crate) fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'\t'..=b'\r' | b' '..=b'~'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_that_is_not_there_excludes_a_word() {
        let text = "a lantern and a lamp ".repeat(100);
        let forms = RowForms::default();
        let value = forms.text(1, 0, &text);
        let mut budget = MatchBudget::new(u64::MAX);
        let folded = value.folded(&mut budget).expect("Latin letters");
        for (word, expected) in [
            ("lantern", true),
            ("lamp a", true),
            ("candle", false),
            ("lanternx", false),
            ("an", true),
            ("q", false),
            ("", true),
        ] {
            assert_eq!(folded.contains(word, &mut budget), expected, "{word}");
        }
        let before = budget.done();
        (0..1000).for_each(|_| drop(value.folded(&mut budget)));
        assert_eq!(budget.done(), before, "it is folded once");
        (0..1000).for_each(|_| assert!(!folded.contains("candlestick", &mut budget)));
        assert_eq!(budget.done() - before, 11_000, "no word is looked for in the text");
    }
}
