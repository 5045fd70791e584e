//! Query parameters with personal data: mail addresses, tokens, keys of orders. A page whose URL has one is made
//! for one client, and its URL is a secret or a name: it bypasses the cache.
//!
//! | parameter | example |
//! |---|---|
//! | the last word of its name is `email`, or the name ends with `token` or `nonce` | `billing_email`, `_wpnonce` |
//! | `order_id`, `order_key` | order tracking |
//! | `key`, `api_key`, `apikey` with a value of at least [`LONG_KEY`] bytes | password resets |
//! | the value is a mail address | `who=a@example.org` |
//!
//! Names are read as PHP does: decoded, without regard to case, with the members of an array
//! (`user[email]`). `order` and `orderby` sort lists, and are on no list. `keys.keep` exempts names.

use crate::view::decode;
use std::borrow::Cow;

/// The length of the shortest value of `key` that counts as a secret. Words such as `price` are shorter.
const LONG_KEY: usize = 16;

const WORDS: &[&str] = &["email", "mail"];
const ENDINGS: &[&str] = &["token", "nonce"];
const NAMES: &[&str] = &["order_id", "order_key", "orderid", "orderkey"];
const KEYS: &[&str] = &["key", "api_key", "apikey", "api-key"];

/// The name of the first parameter with personal data in a query, without those that `is_exempt` returns true for.
pub(crate) fn personal_parameter(query: &str, is_exempt: impl Fn(&[u8]) -> bool) -> Option<&str> {
    let name_of = |pair: &'_ str| pair.split('=').next().unwrap_or_default().len();
    query
        .split('&')
        .find(|pair| {
            let (name, value) = pair.split_at(name_of(pair));
            is_personal(name, value.get(1..).unwrap_or_default()) && !is_exempt(name.as_bytes())
        })
        .map(|pair| &pair[..name_of(pair)])
}

fn is_personal(name: &str, value: &str) -> bool {
    let (name, value) = (decoded(name), decoded(value));
    let name = name.strip_suffix(b"[]").unwrap_or(&name);
    let name = name.strip_suffix(b"]").unwrap_or(name);
    let last = name.rsplit(|byte| matches!(byte, b'_' | b'-' | b'.' | b'[' | b' ')).next();
    let last = last.unwrap_or_default();
    let is = |read: &[u8], known: &&str| read.eq_ignore_ascii_case(known.as_bytes());
    let ends = |end: &&str| {
        let start = name.len().checked_sub(end.len());
        start.is_some_and(|start| is(&name[start..], end))
    };
    WORDS.iter().any(|word| is(last, word))
        || ENDINGS.iter().any(ends)
        || NAMES.iter().any(|known| is(name, known))
        || (value.len() >= LONG_KEY && KEYS.iter().any(|known| is(name, known)))
        || is_mail_address(&value)
}

fn decoded(text: &str) -> Cow<'_, [u8]> {
    if text.contains(['%', '+']) {
        Cow::Owned(decode(text.replace('+', " ").as_bytes()))
    } else {
        Cow::Borrowed(text.as_bytes())
    }
}

/// Whether the text is a mail address: a local part and a domain with a dot (RFC 5321 section 4.1.2), without
/// quoted parts and slashes.
fn is_mail_address(text: &[u8]) -> bool {
    let text = text.trim_ascii();
    let Some(at) = text.iter().rposition(|byte| *byte == b'@') else { return false };
    let (local, domain) = (&text[..at], &text[at + 1..]);
    let in_local =
        |byte: &u8| byte.is_ascii_alphanumeric() || b".!#$%&'*+-=?^_`{|}~ ".contains(byte);
    let in_domain =
        |byte: &u8| byte.is_ascii_alphanumeric() || b"-.".contains(byte) || *byte >= 0x80;
    let top = domain.rsplit(|byte| *byte == b'.').next().unwrap_or_default();
    !local.is_empty()
        && local.iter().all(|byte| in_local(byte) || *byte >= 0x80)
        && domain.iter().all(in_domain)
        && domain.contains(&b'.')
        && top.len() >= 2
        && !top.iter().all(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_with_personal_data() {
        for (query, found) in [
            ("email=x", Some("email")),
            ("a=1&Billing_Email=x", Some("Billing_Email")),
            ("user%5Bemail%5D=x", Some("user%5Bemail%5D")),
            ("user[email][]=x", Some("user[email][]")),
            ("_wpnonce=1", Some("_wpnonce")),
            ("access_token=1", Some("access_token")),
            ("tok%65n", Some("tok%65n")),
            ("order_id=7", Some("order_id")),
            ("order_key=7", Some("order_key")),
            ("key=wc_order_58d2d042d1d", Some("key")),
            ("who=a@example.org", Some("who")),
            ("who=a%40example.org", Some("who")),
            ("who=a+tag@example.org", Some("who")),
            ("order=asc&orderby=price", None),
            ("key=price", None),
            ("meta_key=_sale_price_dates_from", None),
            ("size=2@3", None),
            ("at=me@home", None),
            ("url=https://a.test/@me/x.y", None),
            ("emails=1&tokens=2&announce=3", None),
            ("", None),
        ] {
            assert_eq!(personal_parameter(query, |_| false), found, "{query}");
        }
        assert_eq!(personal_parameter("token=1&email=2", |name| name == b"token"), Some("email"));
    }
}
