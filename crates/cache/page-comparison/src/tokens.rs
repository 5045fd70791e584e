//! A response as tokens: its status, its header section and its content.
//!
//! HTML is cut into tags, attributes and words; JSON into values by path, whatever the order of its keys; XML and
//! other text into words, line by line. White space counts only as the end of a word. Content above 2 MiB, with too many
//! tokens, or in an unknown media type is one token: the hash of all of it. Bytes that are no UTF-8 are compared as
//! they are.
//!
//! Left out of the header section: fields of the connection and of the delivery (`Date`, `Age`, …), fields that
//! follow from content and time of the render (`ETag`, `Last-Modified`, `Expires`, `Content-Length`), and the values
//! of `Set-Cookie`, which are always another's; the names of these cookies are compared. `Cache-Control` is left out,
//! too: a framework may send another one if its statements are captured, which those of a reference render are not.

use crate::kept_words::KeptWords;
use crate::number::number;
use crate::place::{PlaceBuilder, PlaceTree, ROOT};
use crate::word_ends::{letters, marks};
use crate::{html, json};
use std::borrow::Cow;
use std::fmt;
use std::hash::{DefaultHasher, Hasher};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Larger content is compared by its hash: a diff of more would take longer than the render.
pub const MAX_COMPARED_BYTES: usize = 2 << 20;
/// Tokens of one response: 2 MiB in words of eight bytes, and 4 MiB of memory.
pub(crate) const MAX_TOKENS: usize = 262_144;
/// Header lines that are compared; the front of Pagewell allows fewer.
const MAX_FIELDS: usize = 1_000;

/// The number of the word that is the end of its place.
pub(crate) const END: u32 = u32::MAX;
/// Makes the hash of an end another than that of its start.
const END_VALUE: u64 = 0xD1B5_4A32_D192_ED03;

/// How remarks in XML begin and end, as elements and in a text that a feed quotes.
const REMARKS: [(&[u8], &[u8]); 2] = [(b"<!--", b"-->"), (b"&lt;!--", b"--&gt;")];

/// Fields that say nothing about what a visitor sees.
const NOT_COMPARED: [&str; 25] = [
    "accept-ranges",
    "age",
    "alt-svc",
    "cache-control",
    "cache-status",
    "connection",
    "content-encoding",
    "content-length",
    "date",
    "etag",
    "expires",
    "keep-alive",
    "last-modified",
    "nel",
    "proxy-connection",
    "report-to",
    "server",
    "server-timing",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "vary",
    "via",
    "x-cache",
    "x-powered-by",
];

/// The key of the hashes of one process: without it, a token's hash says nothing about its text.
#[derive(Clone, Copy)]
pub struct TokenSecret(u64);

impl TokenSecret {
    /// Makes the key of random bytes.
    pub fn of(random: u64) -> TokenSecret {
        TokenSecret(random)
    }

    fn hash(self, bytes: &[u8]) -> u64 {
        xxh3_64_with_seed(bytes, self.0)
    }
}

impl fmt::Debug for TokenSecret {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("TokenSecret")
    }
}

/// A token: the keyed hash of its text, its place, and which word of its place it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PlacedToken {
    pub(crate) value: u64,
    pub(crate) place: u32,
    pub(crate) word: u32,
}

/// A response as tokens. It has no text: only keyed hashes, places, and (of a render of Pagewell's own) the numbers
/// by which a clock is recognised.
#[derive(Clone, Debug)]
pub struct PageTokens {
    pub(crate) tokens: Vec<PlacedToken>,
    /// The numbers among the tokens: the index of the token, and its value. Empty for a visitor's response.
    pub(crate) numbers: Vec<(u32, u64)>,
    pub(crate) places: PlaceTree,
    pub(crate) is_by_hash: bool,
}

impl PageTokens {
    /// Makes the tokens of a response: its status, its header lines (names in any case) and its decoded content.
    /// `keeps_numbers` is false for a response that a visitor received.
    pub fn of<'a>(
        secret: TokenSecret,
        status: u16,
        fields: impl IntoIterator<Item = (&'a str, &'a [u8])>,
        content: &[u8],
        keeps_numbers: bool,
    ) -> PageTokens {
        let mut writer = TokenWriter::new(secret, keeps_numbers);
        let is_cut = write_response(&mut writer, status, fields, content);
        writer.finish(is_cut)
    }

    /// The bytes of memory that these tokens occupy, about; at most 8 MiB.
    pub fn bytes(&self) -> usize {
        let tokens = self.tokens.len() * size_of::<PlacedToken>();
        tokens + self.numbers.len() * size_of::<(u32, u64)>() + self.places.bytes()
    }

    /// Whether the content is one token because it is too large or of an unknown kind.
    pub fn is_by_hash(&self) -> bool {
        self.is_by_hash
    }

    /// The index of the token that is all of the content, if there is one.
    pub(crate) fn whole_content(&self) -> Option<u32> {
        // It was written last.
        let last = self.tokens.len().checked_sub(1)?;
        self.is_by_hash.then_some(last as u32)
    }

    /// The value of the token at this index, if it is a number. None for each token of a visitor's response.
    pub(crate) fn number(&self, index: u32) -> Option<u64> {
        let at = self.numbers.binary_search_by_key(&index, |(at, _)| *at).ok()?;
        Some(self.numbers[at].1)
    }

    /// Whether nothing at all differs; cheaper than a diff.
    pub fn is_same(&self, other: &PageTokens) -> bool {
        self.tokens.len() == other.tokens.len()
            && self.tokens.iter().zip(&other.tokens).all(|(a, b)| a.value == b.value)
    }

    /// A number that is the same for responses in which nothing differs, as [`PageTokens::is_same`] says.
    pub fn digest(&self) -> u64 {
        let mut hash = DefaultHasher::new();
        self.tokens.iter().for_each(|token| hash.write_u64(token.value));
        hash.finish()
    }
}

/// Writes a response; returns whether its content is one token.
pub(crate) fn write_response<'a>(
    writer: &mut TokenWriter,
    status: u16,
    fields: impl IntoIterator<Item = (&'a str, &'a [u8])>,
    content: &[u8],
) -> bool {
    let place = writer.places.only(ROOT, "status");
    writer.word(place, 0, status.to_string().as_bytes());
    let media_type = header_section(writer, fields);
    let before = writer.mark();
    let is_cut = content.len() > MAX_COMPARED_BYTES
        || !write_content(writer, media_type, content)
        || writer.is_full();
    if is_cut {
        writer.back_to(before);
        let place = writer.places.only(ROOT, "content");
        writer.whole(place, content);
    }
    is_cut
}

/// The media types whose content is cut into tokens.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TextKind {
    Html,
    Json,
    Xml,
    Lines,
    Unknown,
}

fn text_kind(media_type: &[u8]) -> TextKind {
    let essence = media_type.split(|byte| *byte == b';').next().unwrap_or_default();
    let essence = String::from_utf8_lossy(essence).trim().to_ascii_lowercase();
    match essence.as_str() {
        "text/html" | "application/xhtml+xml" => TextKind::Html,
        _ if essence.ends_with("/json") || essence.ends_with("+json") => TextKind::Json,
        _ if essence.contains("xml") => TextKind::Xml,
        _ if essence.starts_with("text/") => TextKind::Lines,
        "application/javascript" => TextKind::Lines,
        _ => TextKind::Unknown,
    }
}

/// Writes the header section; returns the kind of its content.
fn header_section<'a>(
    writer: &mut TokenWriter,
    fields: impl IntoIterator<Item = (&'a str, &'a [u8])>,
) -> TextKind {
    let mut kind = TextKind::Unknown;
    let mut lines: Vec<(String, &[u8])> = Vec::new();
    for (name, value) in fields.into_iter().take(MAX_FIELDS) {
        let name = name.to_ascii_lowercase();
        if name == "content-type" {
            kind = text_kind(value);
        }
        if !NOT_COMPARED.contains(&name.as_str()) && !name.starts_with("x-pagewell") {
            lines.push((name, value));
        }
    }
    // Servers and PHP send fields of different names in any order; those of one name have one.
    lines.sort_by(|a, b| a.0.cmp(&b.0));
    let above = writer.places.only(ROOT, "header");
    let mut lines = lines.into_iter().peekable();
    while let Some((name, value)) = lines.next() {
        let place = writer.places.child(above, &name);
        writer.word(place, 0, name.as_bytes());
        if name == "set-cookie" {
            writer.text(place, cookie_name(value));
            continue;
        }
        // Several lines of one name are one list (RFC 9110, section 5.3): a cache of the application may join them.
        let mut value = Cow::Borrowed(value);
        while let Some((_, next)) = lines.next_if(|(other, _)| *other == name) {
            value.to_mut().extend_from_slice(b", ");
            value.to_mut().extend_from_slice(next);
        }
        writer.text(place, &value);
    }
    kind
}

fn cookie_name(line: &[u8]) -> &[u8] {
    line.split(|byte| *byte == b'=').next().unwrap_or_default()
}

/// Writes the content; returns false if only its hash can be compared.
fn write_content(writer: &mut TokenWriter, kind: TextKind, content: &[u8]) -> bool {
    match kind {
        TextKind::Html => html::write(writer, content),
        TextKind::Json => json::write(writer, content) || lines(writer, content),
        TextKind::Xml => xml(writer, content),
        TextKind::Lines => lines(writer, content),
        TextKind::Unknown => return false,
    };
    true
}

/// Writes XML: line by line, and remarks as those of HTML, also in a text that a feed quotes.
fn xml(writer: &mut TokenWriter, content: &[u8]) -> bool {
    let above = writer.places.only(ROOT, "text");
    let mut kinds = REMARKS.to_vec();
    let (mut from, mut at) = (0, 0);
    while at < content.len() {
        let Some(kind) = kinds.iter().position(|(start, _)| content[at..].starts_with(start))
        else {
            at += 1;
            continue;
        };
        let (start, end) = kinds[kind];
        let inside = &content[at + start.len()..];
        let Some(length) = inside.windows(end.len()).position(|window| window == end) else {
            // It is text, as all further ones of this kind are.
            kinds.remove(kind);
            continue;
        };
        if !lines(writer, &content[from..at]) {
            return false;
        }
        let place = writer.places.child(above, "comment");
        html::comment(writer, place, &inside[..length]);
        at += start.len() + length + end.len();
        from = at;
    }
    lines(writer, &content[from..])
}

/// Writes other text: a place for each line.
fn lines(writer: &mut TokenWriter, content: &[u8]) -> bool {
    let above = writer.places.only(ROOT, "text");
    for line in content.split(|byte| *byte == b'\n') {
        if writer.is_full() {
            return false;
        }
        let place = writer.places.child(above, "line");
        writer.text(place, line);
    }
    true
}

/// Writes tokens until there are too many.
pub(crate) struct TokenWriter {
    secret: TokenSecret,
    keeps_numbers: bool,
    tokens: Vec<PlacedToken>,
    numbers: Vec<(u32, u64)>,
    pub(crate) places: PlaceBuilder,
    /// The words to keep as text, if there are some.
    pub(crate) kept: Option<KeptWords>,
    is_full: bool,
}

impl TokenWriter {
    pub(crate) fn new(secret: TokenSecret, keeps_numbers: bool) -> TokenWriter {
        let places = PlaceBuilder::default();
        TokenWriter {
            secret,
            keeps_numbers,
            tokens: Vec::new(),
            numbers: Vec::new(),
            places,
            kept: None,
            is_full: false,
        }
    }

    /// Whether there were more tokens or places than are compared.
    pub(crate) fn is_full(&self) -> bool {
        self.is_full || self.places.is_full()
    }

    fn mark(&self) -> (usize, usize) {
        (self.tokens.len(), self.numbers.len())
    }

    fn back_to(&mut self, (tokens, numbers): (usize, usize)) {
        self.tokens.truncate(tokens);
        self.numbers.truncate(numbers);
        self.is_full = false;
    }

    /// Writes one token.
    pub(crate) fn word(&mut self, place: u32, word: u32, text: &[u8]) {
        if self.tokens.len() >= MAX_TOKENS {
            self.is_full = true;
            return;
        }
        if let Some(kept) = &mut self.kept {
            kept.see(self.tokens.len(), text);
        }
        if self.keeps_numbers
            && let Some(number) = number(text)
        {
            self.numbers.push((self.tokens.len() as u32, number));
        }
        self.tokens.push(PlacedToken { value: self.secret.hash(text), place, word });
    }

    /// Writes the end of an element or of a document's value: it separates what is inside from what follows.
    pub(crate) fn end(&mut self, place: u32, name: &[u8]) {
        self.word(place, END, name);
        if let Some(token) = self.tokens.last_mut() {
            token.value ^= END_VALUE;
        }
    }

    /// Writes content that is not cut into words.
    fn whole(&mut self, place: u32, content: &[u8]) {
        self.tokens.push(PlacedToken { value: self.secret.hash(content), place, word: 0 });
    }

    /// Writes text word by word. A word ends after a delimiter, so that a nonce within a script or a URL is a token
    /// of its own; and before a number in writing without spaces.
    pub(crate) fn text(&mut self, place: u32, text: &[u8]) {
        self.text_after(place, 1, text);
    }

    /// Like `text`: its first word has this number. Returns the number after the last.
    pub(crate) fn text_after(&mut self, place: u32, first: u32, text: &[u8]) -> u32 {
        let mut word = first;
        for run in text.split(u8::is_ascii_whitespace).filter(|run| !run.is_empty()) {
            let mut start = 0;
            while start < run.len() && !self.is_full {
                let rest = &run[start..];
                let letters = letters(rest);
                let length = letters + marks(&rest[letters..]);
                if let Some(kept) = &mut self.kept {
                    kept.is_joined = start > 0;
                }
                self.word(place, word, &rest[..length]);
                word = word.saturating_add(1);
                start += length;
            }
        }
        word
    }

    fn finish(self, is_by_hash: bool) -> PageTokens {
        PageTokens {
            tokens: self.tokens,
            numbers: self.numbers,
            places: self.places.finish(),
            is_by_hash,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tokens(media_type: &str, content: &[u8]) -> PageTokens {
        let fields = [("Content-Type", media_type.as_bytes())];
        PageTokens::of(TokenSecret::of(7), 200, fields, content, true)
    }

    #[test]
    fn white_space_and_the_order_of_keys_and_fields_do_not_count() {
        let a = tokens("application/json", br#"{"a": 1, "b": [true, null]}"#);
        let b = tokens("application/json", br#"{"b":[true,null],"a":1}"#);
        assert!(a.is_same(&b));
        assert!(!a.is_same(&tokens("application/json", br#"{"b":[true,null],"a":"1"}"#)));
        let nested = tokens("application/json", b"[[1],2]");
        assert!(!nested.is_same(&tokens("application/json", b"[[1,2]]")));
        let bold = tokens("text/html", b"<b>x</b> y");
        assert!(!bold.is_same(&tokens("text/html", b"<b>x y</b>")));
        let html = tokens("text/html", b"<p class='a b'>One  two</p>");
        assert!(html.is_same(&tokens("text/html", b"<p class=\"a b\">One two</p>")));
    }

    #[test]
    fn fields_of_delivery_and_values_of_cookies_are_left_out() {
        let of = |fields: &[(&str, &str)]| {
            let fields = fields.iter().map(|(name, value)| (*name, value.as_bytes()));
            PageTokens::of(TokenSecret::of(7), 200, fields, b"", true)
        };
        let a = of(&[("Date", "x"), ("Set-Cookie", "a=1; Path=/"), ("X-B", "1"), ("ETag", "1")]);
        assert!(a.is_same(&of(&[("x-b", "1"), ("set-cookie", "a=2"), ("Age", "9")])));
        assert!(!a.is_same(&of(&[("x-b", "1"), ("set-cookie", "b=2")])));
        assert!(!a.is_same(&of(&[("x-b", "2"), ("set-cookie", "a=2")])));
    }

    #[test]
    fn lines_of_one_field_are_a_list() {
        let of = |fields: &[(&str, &str)]| {
            let fields = fields.iter().map(|(name, value)| (*name, value.as_bytes()));
            PageTokens::of(TokenSecret::of(7), 200, fields, b"", true)
        };
        let two = of(&[("Link", "</a>; rel=x"), ("Link", "</b>; rel=y")]);
        assert!(two.is_same(&of(&[("link", "</a>; rel=x, </b>; rel=y")])));
        assert!(!two.is_same(&of(&[("link", "</a>; rel=x")])));
        assert!(!two.is_same(&of(&[("link", "</b>; rel=y"), ("link", "</a>; rel=x")])));
    }

    #[test]
    fn remarks_of_a_feed_are_those_of_html() {
        let feed = |remark: &str| {
            let content = format!("<rss>\n<title>4 terns</title>{remark}</rss>");
            tokens("application/rss+xml; charset=UTF-8", content.as_bytes())
        };
        let a = feed("<!-- Made at 02:16:31 -->&lt;!-- key 7 --&gt;");
        assert!(a.is_same(&feed("<!-- Made at 02:16:32 -->&lt;!-- key 8 --&gt;")));
        assert!(!a.is_same(&feed("<!-- Served at 02:16:31 -->&lt;!-- key 7 --&gt;")));
        let other = b"<rss>\n<title>5 terns</title></rss>";
        assert!(!feed("").is_same(&tokens("application/rss+xml", other)));
        assert!(!feed("&lt;!-- 1").is_same(&feed("&lt;!-- 2")), "it does not end: it is text");
    }

    #[test]
    fn large_and_unknown_content_is_compared_by_hash() {
        let large = vec![b'a'; MAX_COMPARED_BYTES + 1];
        assert!(tokens("text/html", &large).is_by_hash());
        assert!(tokens("image/png", b"\x89PNG").is_by_hash());
        let many = b"<a>".repeat(MAX_TOKENS);
        let many = tokens("text/html", &many);
        assert!(many.is_by_hash() && many.bytes() < 8 << 20);
        let nested = b"[".repeat(1 << 20);
        assert!(tokens("application/json", &nested).bytes() < 8 << 20);
    }

    #[test]
    fn equal_content_has_one_digest() {
        let digest = |content: &[u8]| tokens("text/html", content).digest();
        assert_eq!(digest(b"<p>Hello  stranger!"), digest(b"<p>Hello stranger!"));
        assert_ne!(digest(b"<p>Hello stranger!"), digest(b"<p>Hello Anna!"));
        assert_ne!(digest(b"<p>Hello"), digest(b"<p>Hello Hello"));
    }

    #[test]
    fn a_nonce_is_a_token_of_its_own() {
        let script = |nonce: &str| {
            let page = format!("<script>var a={{\"ajax\":\"/x\",\"nonce\":\"{nonce}\"}};</script>");
            tokens("text/html", page.as_bytes())
        };
        let (a, b) = (script("3fa9"), script("77b0"));
        let differing = a.tokens.iter().zip(&b.tokens).filter(|(a, b)| a.value != b.value).count();
        assert_eq!(differing, 1);
    }

    #[test]
    fn a_number_is_a_token_of_its_own_in_each_writing() {
        for (text, numbers) in [
            ("18:28\u{202f}PM", vec![18_u64, 28]),
            ("59\u{a0}minutes", vec![59]),
            ("\u{201c}18\u{2013}19\u{201d}", vec![18, 19]),
            ("発行18：28：41。", vec![18, 28, 41]),
            ("2026年11月28日18时28分", vec![2_026 * 31_536_000, 11, 28 * 86_400, 18, 28 * 60]),
            ("发布于59分钟前", vec![59 * 60]),
            ("۱۸:۲۸،", vec![18, 28]),
            ("page_1764525881", vec![1_764_525_881]),
            ("caf\u{e9} 8f", vec![]),
        ] {
            let found = tokens("text/plain", text.as_bytes()).numbers.into_iter();
            let found: Vec<u64> = found.map(|(_, number)| number).skip(1).collect();
            assert_eq!(found, numbers, "{text}");
        }
        let json = tokens("application/json", b"{\"now\":1764525881.25}").numbers;
        assert!(json.iter().any(|(_, number)| *number == 1_764_525_881));
    }

    proptest! {
        #[test]
        fn every_content_has_bounded_tokens(
            kind in 0..4usize,
            content in prop::collection::vec(any::<u8>(), 0..4_096),
        ) {
            let media = ["text/html", "application/json", "text/plain", "x/y"][kind];
            let (a, b) = (tokens(media, &content), tokens(media, &content));
            prop_assert!(a.is_same(&b));
            prop_assert!(a.tokens.len() <= content.len() * 3 + 8);
            prop_assert!(a.tokens.iter().all(|token| token.place != ROOT));
        }

        #[test]
        fn hashes_of_two_processes_have_nothing_in_common(word in "[a-z]{1,9}") {
            let of = |secret| PageTokens::of(TokenSecret::of(secret), 200, [], word.as_bytes(), true);
            prop_assert!(of(1).tokens.last().map(|token| token.value) != of(2).tokens.last().map(|token| token.value));
        }
    }
}
