//! Formats keys, URLs and names for display: shortened to a limit and without the values of
//! cookies.
//!
//! The values in a query are shown only for the URL that is being explained.

/// The longest text that is remembered, in bytes.
pub const TEXT_BYTES: usize = 256;
/// Replaces hidden or cut text.
const HIDDEN: &str = "…";

/// Returns a text, shortened to [`TEXT_BYTES`].
pub fn cut(text: &str) -> Box<str> {
    cut_to(text, TEXT_BYTES)
}

/// Returns a text, shortened to a number of bytes, which is at least 3.
pub(super) fn cut_to(text: &str, bytes: usize) -> Box<str> {
    if text.len() <= bytes {
        return text.into();
    }
    let most = bytes - HIDDEN.len();
    let end = (0..=most).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
    format!("{}{HIDDEN}", &text[..end]).into()
}

/// Returns bytes as text, shortened to [`TEXT_BYTES`].
pub fn cut_bytes(bytes: &[u8]) -> Box<str> {
    // Bytes beyond the limit need not be decoded.
    let bytes = &bytes[..bytes.len().min(2 * TEXT_BYTES)];
    cut(&String::from_utf8_lossy(bytes))
}

/// Returns a URL without the values in its query: `/search?q=…`.
pub fn masked(url: &str) -> Box<str> {
    let Some((path, query)) = url.split_once('?') else { return cut(url) };
    let mut out = String::with_capacity(path.len() + 1 + query.len().min(TEXT_BYTES));
    out.push_str(path);
    let mut before = '?';
    for name in parameters(query) {
        out.push(before);
        out.push_str(name.0);
        out.push_str(name.1);
        before = '&';
        if out.len() > TEXT_BYTES {
            break;
        }
    }
    cut(&out)
}

/// Returns the names in a query, each with a replacement for its value.
fn parameters(query: &str) -> impl Iterator<Item = (&str, &'static str)> {
    query.split('&').map(|pair| match pair.split_once('=') {
        Some((name, "")) => (name, "="),
        Some((name, _)) => (name, "=…"),
        // A long word without `=` may itself be a value.
        None if pair.len() > 32 => (&pair[..0], HIDDEN),
        None => (pair, ""),
    })
}

/// Returns the names of the parameters in a URL.
pub fn names_in_query(path_and_query: &str) -> impl Iterator<Item = &str> {
    let query = path_and_query.split_once('?').map_or("", |(_, query)| query);
    let names = query.split('&').filter_map(|pair| pair.split_once('=')).map(|(name, _)| name);
    names.filter(|name| !name.is_empty())
}

/// Returns the URL in a key (`Target::write_key`), with the values in its query.
pub fn address_of(key: &[u8]) -> String {
    let address = key.split(|byte| *byte == b'\n').next().unwrap_or_default();
    String::from_utf8_lossy(address).into_owned()
}

/// Returns the parts of a key: the URL, and what the rules add to distinguish copies. Cookie values
/// are hidden.
pub fn parts_of(key: &[u8]) -> Vec<String> {
    let mut parts = key.split(|byte| *byte == b'\n');
    let mut all = vec![cut(&String::from_utf8_lossy(parts.next().unwrap_or_default())).into()];
    all.extend(parts.map(part));
    all
}

/// Returns the names of the cookies in a key.
pub fn cookies_in(key: &[u8]) -> impl Iterator<Item = String> {
    key.split(|byte| *byte == b'\n').skip(1).filter_map(|part| {
        let (kind, cookie) = str::from_utf8(part).ok()?.split_once(' ')?;
        let is_cookie = matches!(kind, "cookie" | "session" | "vary");
        // Without `=`, the text would be the value.
        let (name, _) = cookie.split_once('=')?;
        is_cookie.then(|| cut(name).into())
    })
}

fn part(part: &[u8]) -> String {
    let text = String::from_utf8_lossy(part);
    match text.split_once(' ') {
        Some(("rule" | "device" | "language" | "country", _)) | None => cut(&text).into(),
        Some(("field", field)) => {
            let name = field.split(' ').next().unwrap_or_default();
            format!("field {} {HIDDEN}", cut(name))
        }
        Some((kind, pair)) => match pair.split_once('=').filter(|_| kind != "owner") {
            Some((name, _)) => format!("{kind} {}={HIDDEN}", cut(name)),
            None => format!("{kind} {HIDDEN}"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_values_are_shown() {
        assert_eq!(&*masked("http://a/x?q=secret&page=&flag"), "http://a/x?q=…&page=&flag");
        assert_eq!(&*masked(&format!("/x?{}", "s".repeat(40))), "/x?…");
        assert_eq!(&*masked("http://a/x"), "http://a/x");
        let key = b"http://a/x?q=1\nrule 2\ncookie lang=de\nsession s=secret\ncookie secret\nowner s=secret\nfield x-api-key secret\ndevice phone";
        let parts = [
            "http://a/x?q=1",
            "rule 2",
            "cookie lang=…",
            "session s=…",
            "cookie …",
            "owner …",
            "field x-api-key …",
            "device phone",
        ];
        assert_eq!(parts_of(key), parts);
        assert_eq!(cookies_in(key).collect::<Vec<_>>(), ["lang", "s"]);
    }

    #[test]
    fn long_texts_are_cut_between_letters() {
        let long = "ä".repeat(400);
        let cut = cut(&long);
        assert!(cut.len() <= TEXT_BYTES && cut.ends_with('…'), "{}", cut.len());
        assert!(masked(&format!("/x?{}", "a=b&".repeat(1000))).len() <= TEXT_BYTES);
        assert!(cut_bytes(&[0xff; 4000]).len() <= TEXT_BYTES);
    }

    #[test]
    fn parameters_have_names() {
        let names: Vec<_> = names_in_query("/x?a=1&b=&c&=d").collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(names_in_query("/x").count(), 0);
    }
}
