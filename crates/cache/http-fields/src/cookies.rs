//! The cookies in a line of `Cookie`; the first pair of a line of `Set-Cookie` is read alike (RFC 6265 §5.2, §5.4).
//!
//! Invariant: nothing is decoded, and only empty pairs are left out. Not here: how an application reads a name
//! (`cookie_name`).

use crate::cookie_name::CookieName;

/// The cookies in one line of a request.
#[inline]
pub fn pairs(line: &[u8]) -> impl Iterator<Item = CookiePair<'_>> {
    let pairs = line.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
    pairs.filter(|pair| !pair.is_empty()).map(|written| {
        // RFC 6265 §5.2: a pair without `=` has no name. PHP treats it as a name without a value.
        let (name, value) = CookieName::of_pair(written);
        CookiePair { name, value: value.unwrap_or_default().trim_ascii(), written }
    })
}

/// One cookie of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CookiePair<'a> {
    /// The name before its `=`.
    pub name: CookieName<'a>,
    /// The value without the white space around it.
    pub value: &'a [u8],
    /// The pair as it was written, without the white space around it.
    pub written: &'a [u8],
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_read_as_they_stand() {
        let read: Vec<_> = pairs(b" a=1;b = 2 ;; c; d=x=y;=z").collect();
        let names: Vec<_> = read.iter().map(|pair| (pair.name.written(), pair.value)).collect();
        assert_eq!(
            names,
            [(&b"a"[..], &b"1"[..]), (b"b", b"2"), (b"c", b""), (b"d", b"x=y"), (b"", b"z"),]
        );
        assert_eq!(read[1].written, b"b = 2");
    }
}
