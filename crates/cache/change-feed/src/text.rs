//! Which of many words occur in a text, for tags of searches, and whether two texts may be equal. Letters
//! are compared without case, accents and width, as the usual database collations do.
//!
//! Invariant: every word that `LIKE '%word%'` or a search for whole words finds in a text is found here
//! too, and possibly more. A word therefore matches inside another word, each word of a search counts
//! alone, and all characters except letters and digits separate words. Collations treat letters of all
//! scripts as equal in ways unknown here. Only searches in Latin, Greek and Cyrillic letters and ASCII
//! digits have words. If a text has a letter or digit that some collation may equate with one of these, it
//! may contain every word. Not here: stemming, and collations of single languages ([`is_usual`]).

use aho_corasick::{AhoCorasick, MatchKind};
use std::borrow::Cow;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// The maximum number of words in a search.
const WORDS_MAX: usize = 16;
/// The number of bytes of a word that are compared: a text with the word contains its beginning.
const WORD_BYTES_MAX: usize = 48;

/// The words of a search in folded form: those of the search itself, and those of its percent-decoded form.
/// `None` if they are unknown, so that the search may find any row: it has no letters, letters that cannot
/// be compared, or too many words.
#[must_use]
pub fn words(search: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    for spelled in [Cow::Borrowed(search), percent_decoded(search)?] {
        let folded = folded(&spelled);
        // Some collations treat all characters beyond the first plane as equal.
        let is_known = |letter: char| !letter.is_alphanumeric() || is_compared(letter);
        if spelled.chars().any(|letter| letter > '\u{ffff}') || !folded.chars().all(is_known) {
            return None;
        }
        let all = folded.split(|letter: char| !letter.is_alphanumeric());
        let mut own: Vec<String> = all.filter(|word| !word.is_empty()).map(cut).collect();
        if own.is_empty() {
            return None;
        }
        words.append(&mut own);
    }
    words.sort_unstable();
    words.dedup();
    (words.len() <= WORDS_MAX).then_some(words)
}

fn cut(word: &str) -> String {
    word[..word.floor_char_boundary(WORD_BYTES_MAX)].to_owned()
}

/// Decodes percent-escapes; `None` if the result is not UTF-8.
fn percent_decoded(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains('%') {
        return Some(Cow::Borrowed(text));
    }
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.as_bytes());
    while let Some((first, after)) = rest.split_first() {
        let digit = |at: usize| Some(char::from(*after.get(at)?).to_digit(16)? as u8);
        match (*first, digit(0), digit(1)) {
            (b'%', Some(high), Some(low)) => {
                bytes.push(high * 16 + low);
                rest = &after[2..];
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

/// The folded form of a text.
fn folded(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    // Most letters are ASCII, and other letters do not affect them.
    for run in text.as_bytes().chunk_by(|one, next| one.is_ascii() == next.is_ascii()) {
        match str::from_utf8(run) {
            Ok(run) if run.is_ascii() => {
                let at = folded.len();
                if run.bytes().any(is_control) {
                    folded.extend(run.chars().filter(|letter| !is_invisible(*letter)))
                } else {
                    folded.push_str(run)
                }
                folded[at..].make_ascii_lowercase();
            }
            Ok(run) => fold(run, &mut folded),
            // A run between ASCII letters is valid UTF-8.
            Err(_) => {}
        }
    }
    one_s(&folded)
}

/// The form of a constant for comparisons of whole texts. Every text that a usual collation ([`is_usual`])
/// treats as equal has the same form by [`fold_value`], or none. `None` if that is not known of the constant.
#[must_use]
pub fn fold_constant(text: &str) -> Option<String> {
    let is_known = |letter: char| letter.is_ascii() || is_compared(letter);
    let folded = folded(text);
    let is_comparable =
        text.chars().all(|letter| letter <= '\u{ffff}') && folded.chars().all(is_known);
    is_comparable.then(|| without_padding(folded))
}

/// The form of a stored text for comparisons with [`fold_constant`]. `None` if the text may be equal to any
/// constant.
#[must_use]
pub fn fold_value(text: &str) -> Option<String> {
    let is_unknown = |letter: char| {
        is_odd(letter) || matches!(letter, '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
    };
    let folded = folded(text);
    (folded.is_ascii() || !folded.chars().any(is_unknown)).then(|| without_padding(folded))
}

/// Without the blanks at the end, which most collations ignore.
fn without_padding(mut text: String) -> String {
    text.truncate(text.trim_end_matches(' ').len());
    text
}

/// Some collations treat `ß` as a single `s`, and Swedish ones treat `ü` as `y`.
fn one_s(text: &str) -> String {
    let mut last = None;
    let is_one = |letter: &char| last.replace(*letter) != Some('s') || *letter != 's';
    text.chars().filter(is_one).map(|letter| if letter == 'y' { 'u' } else { letter }).collect()
}

/// Appends the folded form of letters that are not ASCII.
fn fold(text: &str, folded: &mut String) {
    if text.chars().any(is_letter_above) {
        folded.push(ODD);
    }
    let letters =
        text.nfkd().filter(|letter| !is_combining_mark(*letter) && !is_invisible(*letter));
    // Through upper case: `ß` becomes ss, and `ς` becomes `σ`.
    let small = letters.flat_map(char::to_uppercase).flat_map(char::to_lowercase);
    for letter in small.flat_map(|letter| std::iter::once(letter).nfkd()) {
        match letter {
            'ß' => folded.push_str("ss"),
            'ґ' => folded.push('г'),
            'ø' => folded.push('o'),
            'æ' => folded.push_str("ae"),
            'œ' => folded.push_str("oe"),
            'đ' | 'ð' => folded.push('d'),
            'ħ' => folded.push('h'),
            'ł' => folded.push('l'),
            'ŧ' => folded.push('t'),
            'þ' => folded.push_str("th"),
            'ı' => folded.push('i'),
            letter if is_combining_mark(letter) => {}
            letter => folded.push(letter),
        }
    }
}

/// Whether a character has no weight in some collations: controls except blanks, the soft hyphen, and
/// characters that join or separate letters or set their direction.
fn is_invisible(letter: char) -> bool {
    matches!(letter, '\u{ad}' | '\u{61c}' | '\u{640}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}')
        || matches!(letter, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{180e}' | '\u{fff9}'..='\u{fffb}')
        || matches!(letter, '\u{7f}'..='\u{9f}')
        || u8::try_from(letter).is_ok_and(is_control)
}

/// Whether an ASCII byte is a control character but not a blank.
fn is_control(byte: u8) -> bool {
    matches!(byte, 0..=8 | 14..=31 | 127)
}

/// Stands for a letter whose equal letters are unknown.
const ODD: char = '\u{1c80}';

/// Marks that some collations treat as letters: small letters written above others, and the iota subscript.
fn is_letter_above(mark: char) -> bool {
    matches!(mark, '\u{345}' | '\u{363}'..='\u{36f}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}')
        || matches!(mark, '\u{2de0}'..='\u{2dff}' | '\u{a66f}'..='\u{a67f}' | '\u{a69e}'..='\u{a69f}')
}

/// Whether all letters that collations equate with this folded letter are known.
fn is_compared(letter: char) -> bool {
    matches!(letter, '0'..='9' | 'a'..='z' | 'α'..='ω' | 'а'..='џ')
}

/// Whether some collation may equate this letter with a compared one: it has the same script, or is a
/// number.
fn is_odd(letter: char) -> bool {
    let is_alike = matches!(letter, '\u{80}'..='\u{52f}' | '\u{1c80}'..='\u{1fff}' | '\u{2000}'..='\u{2dff}')
        || matches!(letter, '\u{a640}'..='\u{a69f}' | '\u{a720}'..='\u{a7ff}' | '\u{ab30}'..='\u{ab6f}');
    letter.is_alphanumeric() && !is_compared(letter) && (is_alike || letter.is_numeric())
}

/// Whether a collation of MariaDB or MySQL (such as `utf8mb4_unicode_ci`) compares letters as this module
/// does. Collations of single languages are unknown: a Lithuanian one equates `i` with `y`, a Danish one
/// `aa` with `å`.
#[must_use]
pub fn is_usual(collation: &str) -> bool {
    const USUAL: [&str; 8] = [
        "bin",
        "general",
        "general_mysql500",
        "unicode",
        "unicode_520",
        "uca1400",
        "0900",
        "0900_bin",
    ];
    let without_charset = collation.split_once('_').map_or("", |(_, kind)| kind);
    // Case, accents and trailing blanks are ignored here, so at least as much is found.
    let kind = |name: &str| {
        let mut words: Vec<&str> = name.split('_').collect();
        words.retain(|word| !matches!(*word, "ci" | "cs" | "ai" | "as" | "nopad"));
        words.join("_")
    };
    [collation, without_charset].iter().any(|name| USUAL.contains(&kind(name).as_str()))
}

/// A set of words, for searching all of them at once.
#[derive(Debug)]
pub struct Words {
    words: AhoCorasick,
}

impl Words {
    /// A set of words from [`words`]. `None` if the automaton would be too large.
    #[must_use]
    pub fn new<'w>(words: impl IntoIterator<Item = &'w str>) -> Option<Words> {
        let words = AhoCorasick::builder().match_kind(MatchKind::Standard).build(words).ok()?;
        Some(Words { words })
    }

    /// Calls `found` with the index of each word that occurs in this text, possibly several times for one
    /// word.
    pub fn find(&self, text: &str, mut found: impl FnMut(usize)) {
        let text = folded(text);
        if !text.is_ascii() && text.chars().any(is_odd) {
            return (0..self.words.patterns_len()).for_each(found);
        }
        for word in self.words.find_overlapping_iter(&text) {
            found(word.pattern().as_usize());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn finds(search: &str, text: &str) -> bool {
        let Some(words) = words(search) else { return true };
        let all = Words::new(words.iter().map(String::as_str)).expect("a few words");
        let mut is_found = false;
        all.find(text, |_| is_found = true);
        is_found
    }

    #[test]
    fn a_word_is_found_wherever_the_usual_collations_find_it() {
        for (search, text) in [
            ("PHP", "all about php"),
            ("php", "PHPUnit 12"),
            ("Malmö", "malmo"),
            ("malmo", "MALMÖ"),
            ("Malm%C3%B6", "in Malmö"),
            ("straße", "STRASSE"),
            ("strase", "Straße"),
            ("große", "GROẞE"),
            ("Müller", "Myller"),
            ("Київ", "київ"),
            // Letters and digits that some collations treat as equal to others.
            ("2024", "٢٠٢٤"),
            ("d", "ꝺ"),
            ("さくら", "サクラ"),
            ("מלך", "מלכים"),
            ("𝐏𝐇𝐏", "😀"),
            ("𠮷野", "吉野"),
            ("한", "하나 한국"),
            ("O'Brien", "o’brien"),
            ("½", "1/2"),
            ("œuvre", "OEUVRE"),
            ("ｐｈｐ", "php"),
            ("ΣΊΣΥΦΟΣ", "σίσυφος"),
            ("caf\u{e9}", "cafe\u{301}"),
            ("co\u{ad}op", "coop"),
            ("İstanbul", "istanbul"),
            ("東京", "大東京市"),
            // Marks that are letters, and characters without weight.
            ("u", "t\u{367}n"),
            ("κι", "κ\u{345}"),
            ("к", "\u{2de6}"),
            ("x\u{369}", "anything"),
            ("php", "p\u{1}h\u{9f}p\u{fff9}"),
            ("php", "p\u{180e}hp"),
            ("p\u{1}hp", "php"),
            // Any of several words, whatever separates them.
            ("php cache", "a cache"),
            ("+php -mysql", "php"),
            ("p_p%", "PHP"),
            ("100%25", "100 %"),
            // Searches whose words are unknown.
            ("C++", "c"),
            ("%", "anything"),
            ("", "anything"),
        ] {
            assert!(finds(search, text), "{search} in {text}");
        }
        for (search, text) in [
            ("php", "perl"),
            ("Malmö", "Lund"),
            ("cache", "cash"),
            ("x", ""),
            ("cache", "東京 大阪, größer „als“ 10 €"),
            ("москва", "Київ"),
        ] {
            assert!(!finds(search, text), "{search} in {text}");
        }
    }

    #[test]
    fn collations_of_single_languages_are_unknown() {
        for usual in [
            "utf8mb4_general_ci",
            "utf8mb4_unicode_520_nopad_ci",
            "utf8mb4_uca1400_ai_ci",
            "uca1400_nopad_as_cs",
            "utf8mb4_bin",
            "utf8mb4_nopad_bin",
            "utf8mb4_0900_as_cs",
            "utf8mb4_0900_bin",
            "latin1_general_ci",
        ] {
            assert!(is_usual(usual), "{usual}");
        }
        for other in [
            "utf8mb4_lithuanian_ci",
            "utf8mb4_uca1400_danish_ai_ci",
            "utf8mb4_de_pb_0900_ai_ci",
            "latin1_swedish_ci",
            "latin1_german2_ci",
            "utf8mb4_roman_ci",
            "x",
        ] {
            assert!(!is_usual(other), "{other}");
        }
    }

    #[test]
    fn a_search_over_the_limits_has_no_known_words() {
        let many: Vec<String> = (0..=WORDS_MAX).map(|n| n.to_string()).collect();
        assert_eq!(words(&many.join(" ")), None);
        assert_eq!(words(&many[1..].join(" ")).map(|words| words.len()), Some(WORDS_MAX));
        assert_eq!(words("%FF"), None, "no text");
        let long = "ä".repeat(100);
        assert!(words(&long).is_some_and(|words| words[0].len() <= WORD_BYTES_MAX));
        assert!(finds(&long, &long));
    }

    proptest! {
        /// Every piece of a text is found in it, in any case.
        #[test]
        fn each_piece_of_a_text_is_found_in_it(text in "\\PC{0,40}", from in 0..40_usize, to in 0..40_usize) {
            let letters: Vec<char> = text.chars().collect();
            let (from, to) = (from.min(letters.len()), to.min(letters.len()));
            let piece: String = letters[from.min(to)..from.max(to)].iter().collect();
            // A letter and its marks are one unit; no collation finds half of it.
            let is_whole = !letters.iter().any(|letter| is_combining_mark(*letter));
            prop_assume!(is_whole && !piece.contains('%'));
            prop_assert!(finds(&piece, &text), "{piece:?}");
            prop_assert!(finds(&piece.to_lowercase(), &text), "{piece:?}");
            prop_assert!(finds(&piece, &text.to_uppercase()), "{piece:?}");
        }
    }
}
