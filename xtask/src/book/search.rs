//! The search of the book, as the reader's browser does it: the index that mdBook has written, and the scores of
//! elasticlunr.js 0.9.5 with the settings of the book.
//!
//! A section's score is the sum over its fields (title, body, titles above it) and over the words of the search.
//! Each word is expanded to the words of the index that begin with it. Sections without one of the words are no
//! result. The words are stems, as the browser makes them: `purg` for a reader's `purge`.

use super::fault;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The share of a word's score that longer words with the same beginning get at most.
const EXPANDED: f64 = 0.15;

/// A search as a reader writes it, its stems, and the page that has to be the first result.
pub type Search = (&'static str, &'static str, &'static str);

/// The score of a section, and how many words of the search it has without expansion.
type Score = (f64, usize);

/// The searches whose first result is another page than it should be.
///
/// # Errors
/// The index is not there, or is in another format.
pub fn wrong(html: &Path, searches: &[Search]) -> Result<Vec<String>, String> {
    let index = Index::read(html)?;
    let mut wrong = Vec::new();
    for (search, stems, page) in searches {
        let results = index.search(stems);
        let first = results.first().map_or("nothing", |url| url.split('#').next().unwrap_or(url));
        if first != *page {
            let results = results.iter().take(5).copied().collect::<Vec<_>>().join(", ");
            wrong.push(format!("a search for `{search}` finds {results}, and not {page} first"));
        }
    }
    Ok(wrong)
}

struct Index {
    settings: Value,
    urls: Vec<String>,
}

impl Index {
    fn read(html: &Path) -> Result<Index, String> {
        let entries = fs::read_dir(html).map_err(|error| fault(html, error))?;
        let is_index = |name: &str| name.starts_with("searchindex") && name.ends_with(".js");
        let path = entries
            .flatten()
            .map(|entry| entry.path())
            .find(|path| is_index(&path.file_name().unwrap_or_default().to_string_lossy()))
            .ok_or_else(|| format!("book: no searchindex*.js in {}", html.display()))?;
        let text = fs::read_to_string(&path).map_err(|error| fault(&path, error))?;
        Index::parse(&text).ok_or_else(|| format!("book: {} has another format", path.display()))
    }

    /// The argument of `JSON.parse('…')`: JSON with quotation marks and backslashes as in JavaScript.
    fn parse(script: &str) -> Option<Index> {
        let (_, json) = script.split_once("JSON.parse('")?;
        let json = json.rsplit_once("')")?.0;
        let json = json.replace("\\'", "'").replace("\\\\", "\\");
        let settings: Value = serde_json::from_str(&json).ok()?;
        let urls = settings["doc_urls"].as_array()?.iter();
        let urls = urls.map(|url| url.as_str().map(str::to_owned)).collect::<Option<_>>()?;
        Some(Index { settings, urls })
    }

    /// The addresses of the results, the best first.
    fn search(&self, stems: &str) -> Vec<&str> {
        let words: Vec<&str> = stems.split_whitespace().collect();
        let mut sums: BTreeMap<String, f64> = BTreeMap::new();
        for field in ["title", "body", "breadcrumbs"] {
            let boost =
                self.settings["search_options"]["fields"][field]["boost"].as_f64().unwrap_or(1.0);
            for (section, score) in self.field(field, &words) {
                *sums.entry(section).or_default() += score * boost;
            }
        }
        let mut results: Vec<(String, f64)> = sums.into_iter().collect();
        results.sort_by(|one, other| other.1.total_cmp(&one.1));
        let url = |section: &str| self.urls.get(section.parse::<usize>().ok()?).map(String::as_str);
        results.iter().filter_map(|(section, _)| url(section)).collect()
    }

    /// The scores of the sections that have all words in this field.
    fn field(&self, field: &str, words: &[&str]) -> BTreeMap<String, f64> {
        let mut scores: Option<BTreeMap<String, Score>> = None;
        for word in words {
            let of_word = self.word(field, word);
            scores = Some(match scores {
                None => of_word,
                Some(before) => {
                    let both = before.into_iter().filter_map(|(section, (score, whole))| {
                        let (more, one) = of_word.get(&section)?;
                        Some((section, (score + more, whole + one)))
                    });
                    both.collect()
                }
            });
        }
        let share = |whole| if whole == 0 { 1.0 } else { whole as f64 / words.len() as f64 };
        let scores = scores.unwrap_or_default().into_iter();
        scores.map(|(section, (score, whole))| (section, score * share(whole))).collect()
    }

    fn word(&self, field: &str, word: &str) -> BTreeMap<String, Score> {
        let mut node = &self.settings["index"]["index"][field]["root"];
        for letter in word.chars() {
            node = &node[letter.to_string()];
        }
        let mut scores = BTreeMap::new();
        self.below(node, field, word, word.to_owned(), &mut scores);
        scores
    }

    /// Adds the scores of a word of the index, and of all that begin with it.
    fn below(
        &self,
        node: &Value,
        field: &str,
        word: &str,
        found: String,
        scores: &mut BTreeMap<String, Score>,
    ) {
        let Some(node) = node.as_object() else { return };
        let frequency = node.get("df").and_then(Value::as_f64).unwrap_or_default();
        if let Some(docs) = node.get("docs").and_then(Value::as_object).filter(|_| frequency > 0.0)
        {
            let store = &self.settings["index"]["documentStore"];
            let sections = store["length"].as_f64().unwrap_or_default();
            let rarity = 1.0 + (sections / (frequency + 1.0)).ln();
            let (length, longer) =
                (found.chars().count() as f64, found.chars().count() - word.chars().count());
            let share = if longer == 0 { 1.0 } else { (1.0 - longer as f64 / length) * EXPANDED };
            for (section, entry) in docs {
                let words = store["docInfo"][section][field].as_f64().unwrap_or_default();
                let norm = if words > 0.0 { 1.0 / words.sqrt() } else { 1.0 };
                let often = entry["tf"].as_f64().unwrap_or_default();
                let score = scores.entry(section.clone()).or_default();
                score.0 += often * rarity * norm * share;
                score.1 += usize::from(longer == 0);
            }
        }
        for (letter, next) in node {
            if letter != "df" && letter != "docs" {
                self.below(next, field, word, format!("{found}{letter}"), scores);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_section_with_the_word_in_its_title_comes_first() {
        let script = r#"window.search = Object.assign(window.search, JSON.parse('{"doc_urls":["a.html#a","b.html#b"],"search_options":{"fields":{"title":{"boost":4}}},"index":{"documentStore":{"length":2,"docInfo":{"0":{"body":4,"title":1},"1":{"body":4,"title":1}}},"index":{"title":{"root":{"d":{"o":{"g":{"df":1,"docs":{"1":{"tf":1.0}}}}}}},"body":{"root":{"d":{"o":{"g":{"df":2,"docs":{"0":{"tf":1.0},"1":{"tf":1.0}},"s":{"df":1,"docs":{"0":{"tf":1.0}}}}}}}}}}}'));"#;
        let index = Index::parse(script).expect("an index");
        assert_eq!(index.search("dog"), ["b.html#b", "a.html#a"]);
        assert_eq!(index.search("dogs"), ["a.html#a"]);
        assert_eq!(index.search("do"), ["b.html#b", "a.html#a"]);
        assert_eq!(index.search("cat"), Vec::<&str>::new());
        let place = harness::PrivateDir::temporary("index").expect("a directory");
        fs::write(place.path().join("searchindex-1.js"), script).expect("written");
        let searches =
            [("dog", "dog", "b.html"), ("dog", "dog", "a.html"), ("cat", "cat", "a.html")];
        let wrong = wrong(place.path(), &searches).expect("read");
        assert_eq!(wrong.len(), 2, "{wrong:?}");
    }
}
