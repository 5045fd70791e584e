//! Query parameters with personal data: mail addresses, tokens, keys of orders. A page whose URL has one is made
//! for one client, and its URL is a secret or a name: it bypasses the cache. And response fields that show the same:
//! by their name, by such a URL in their value, or by the nonce of a content security policy.
//!
//! | parameter | example |
//! |---|---|
//! | the last word of its name is `email`, or the name ends with `token`, `nonce`, `signature`, `sessid` or the like | `billing_email`, `_wpnonce`, `PHPSESSID` |
//! | `order_id`, `order_key` | order tracking |
//! | `key`, `sid`, `code` or the like with a value of at least [`LONG_KEY`] bytes | password resets |
//! | the value is a mail address | `who=a@example.org` |
//!
//! Names are read as PHP does: decoded, without regard to case, with the members of an array
//! (`user[email]`). `order` and `orderby` sort lists, and are on no list. `keys.keep` exempts names.

use http_fields::percent::decode;
use std::borrow::Cow;

/// The length of the shortest value of `key` that counts as a secret. Words such as `price` are shorter.
const LONG_KEY: usize = 16;

const WORDS: &[&str] = &["email", "mail"];
const ENDINGS: &[&str] = &["token", "nonce", "signature", "sessid", "sessionid", "session_id"];
const NAMES: &[&str] = &["order_id", "order_key", "orderid", "orderkey"];
const KEYS: &[&str] =
    &["key", "api_key", "apikey", "api-key", "auth", "code", "hmac", "secret", "sid", "sig"];

/// The last words in the names of fields that identify the client, of requests and responses.
pub const CREDENTIALS: &[&str] = &[
    "apikey",
    "auth",
    "authentication",
    "authorization",
    "credential",
    "credentials",
    "jwt",
    "key",
    "nonce",
    "password",
    "secret",
    "session",
    "sessionid",
    "sid",
    "signature",
    "token",
];

/// Words that a response field has anywhere in its name if it is one client's.
const OF_CLIENT: &[&str] = &[
    "account",
    "basket",
    "cart",
    "client",
    "credential",
    "csrf",
    "customer",
    "email",
    "guest",
    "jwt",
    "login",
    "member",
    "nonce",
    "password",
    "secret",
    "session",
    "token",
    "user",
    "visitor",
    "wishlist",
    "xsrf",
];
/// Response fields that are the same for everybody in spite of their name.
const OF_EVERYBODY: &[&str] =
    &["access-control-allow-credentials", "cache-key", "surrogate-key", "x-cache-key", "xkey"];

/// Whether a response field (its name in lower case) is one client's by its name.
pub fn is_personal_field(name: &str) -> bool {
    if OF_EVERYBODY.contains(&name) {
        return false;
    }
    // `X-CSRF-Token` and `X-CSRFToken` are the same.
    let plain: String = name.chars().filter(|letter| !matches!(letter, '-' | '_')).collect();
    OF_CLIENT.iter().any(|word| plain.contains(word))
        || CREDENTIALS.iter().any(|end| plain.ends_with(end))
        || name.split(['-', '_']).any(|word| CREDENTIALS.contains(&word))
}

/// Whether the value of a response field has a secret of one client: a URL with a personal parameter
/// (`Location: /basket?token=…`), or the nonce of a content security policy.
pub fn is_personal_value(value: &[u8]) -> bool {
    let has_personal_parameter = |text: &str| {
        let pieces = text.split(['?', '#', '&', ';', ',', '<', '>', '"', '\'', ' ']);
        let mut parameters = pieces.filter_map(|piece| piece.split_once('='));
        parameters.any(|(name, value)| is_personal(name, value))
    };
    let text = String::from_utf8_lossy(value);
    let nonce = b"'nonce-";
    value.windows(nonce.len()).any(|part| part.eq_ignore_ascii_case(nonce))
        || has_personal_parameter(&text)
        // A URL in a parameter of another.
        || (text.contains('%')
            && has_personal_parameter(&String::from_utf8_lossy(&decode(text.as_bytes()))))
}

/// The name of the first parameter with personal data in a query, without those that `is_exempt` returns true for.
pub fn personal_parameter(query: &str, is_exempt: impl Fn(&[u8]) -> bool) -> Option<&str> {
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
    fn response_fields_of_one_client_are_known_by_their_name() {
        for name in [
            "cart-token",
            "nonce",
            "nonce-timestamp",
            "x-wp-nonce",
            "user-id",
            "x-shop-session",
            "x-auth-user",
            "x-tokens",
            "x-csrftoken",
            "x-authtoken",
            "x-accesstoken",
            "x-wpnonce",
            "x-carttoken",
            "x-usertoken",
            "x-sessionkey",
            "phpsessid",
            "x-api-key",
            "x-apikey",
            "x-signature",
            "x-basket-id",
            "x-guest-id",
            "x-wishlist-id",
            "x-client-id",
            "x-auth",
            "x-sid",
        ] {
            assert!(is_personal_field(name), "{name}");
        }
        for name in [
            "access-control-allow-credentials",
            "access-control-expose-headers",
            "cache-tag",
            "content-security-policy",
            "content-type",
            "etag",
            "last-modified",
            "link",
            "location",
            "server-timing",
            "strict-transport-security",
            "surrogate-key",
            "x-author",
            "x-content-type-options",
            "x-pingback",
            "x-redirect-by",
            "x-request-id",
            "x-robots-tag",
            "x-sidebar",
            "x-wp-total",
            "x-wp-totalpages",
            "xkey",
        ] {
            assert!(!is_personal_field(name), "{name}");
        }
    }

    #[test]
    fn response_fields_of_one_client_are_known_by_their_value() {
        for value in [
            "/basket.php?token=5d41402abc4b2a76",
            "https://shop.test/done?a=1&order_key=wc_order_1",
            "https://login.test/reset?key=5d41402abc4b2a76b9719d91",
            "https://files.test/a.zip?X-Amz-Expires=60&X-Amz-Signature=5d41",
            "https://files.test/a.zip?sv=1&sig=5d41402abc4b2a76b9719d91",
            "/app#access_token=1",
            "/a?PHPSESSID=1",
            "/login?next=%2Freset%3Ftoken%3D1",
            "0; url=/basket?token=1",
            "</style.css?v=1>; rel=preload, </next?access_token=1>; rel=next",
            "script-src 'self' 'nonce-5d41402a'",
            "script-src 'Nonce-5d41402a'",
            "/thanks?who=a@example.org",
        ] {
            assert!(is_personal_value(value.as_bytes()), "{value}");
        }
        for value in [
            "/news/4/",
            "/?p=5&order=asc&key=price",
            "<https://a.test/wp-json/>; rel=\"https://api.w.org/\", <https://a.test/?p=5>; rel=shortlink",
            "script-src 'self' 'sha256-5d41402a' https://a.test; report-uri /csp?key=a",
            "text/html; charset=utf-8",
            "max-age=31536000; includeSubDomains",
            "token",
        ] {
            assert!(!is_personal_value(value.as_bytes()), "{value}");
        }
    }

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
            ("X-Amz-Signature=1", Some("X-Amz-Signature")),
            ("PHPSESSID=1", Some("PHPSESSID")),
            ("sid=5d41402abc4b2a76", Some("sid")),
            ("sid=5", None),
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
