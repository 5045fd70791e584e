//! Compact representations of the values of every stored response: times, durations and lengths in six
//! bytes, optional durations in seconds in four bytes, and directives in one bit each.
//!
//! Invariant: every value is restored exactly within limits that no page approaches (8,900 years, 280
//! terabytes). The types consist of pairs of bytes, so no memory is lost to alignment.

use http_fields::directives::ResponseDirectives;
use http_fields::time::Timestamp;

/// Milliseconds, at most about 8,900 years; larger values become the maximum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Millis([u16; 3]);

impl Millis {
    const MAX: u64 = (1 << 48) - 1;

    pub(crate) const fn of(milliseconds: u64) -> Millis {
        let all = if milliseconds > Millis::MAX { Millis::MAX } else { milliseconds };
        Millis([all as u16, (all >> 16) as u16, (all >> 32) as u16])
    }

    pub(crate) const fn get(self) -> u64 {
        let [low, middle, high] = self.0;
        low as u64 | (middle as u64) << 16 | (high as u64) << 32
    }
}

/// Last-Modified: absent, unreadable, or a point in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LastModified(Millis);

impl LastModified {
    pub(crate) const ABSENT: LastModified = LastModified(Millis::of(Millis::MAX));
    pub(crate) const UNREADABLE: LastModified = LastModified(Millis::of(Millis::MAX - 1));

    pub(crate) fn at(time: Timestamp) -> LastModified {
        LastModified(Millis::of(time.0.min(Millis::MAX - 2)))
    }

    pub(crate) fn is_there(self) -> bool {
        self != LastModified::ABSENT
    }

    pub(crate) fn get(self) -> Option<Timestamp> {
        let at = self.0.get();
        (at < Millis::MAX - 1).then_some(Timestamp(at))
    }
}

/// An optional number of bytes, at most about 280 terabytes; larger values become the maximum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Length(Millis);

impl Length {
    pub(crate) fn of(bytes: Option<u64>) -> Length {
        Length(Millis::of(bytes.map_or(Millis::MAX, |bytes| bytes.min(Millis::MAX - 1))))
    }

    pub(crate) fn get(self) -> Option<u64> {
        let bytes = self.0.get();
        (bytes != Millis::MAX).then_some(bytes)
    }
}

/// An optional number of seconds, at most 2^31 (RFC 9111 §1.2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seconds([u16; 2]);

impl Seconds {
    fn of(seconds: Option<u32>) -> Seconds {
        let all = seconds.unwrap_or(u32::MAX);
        Seconds([all as u16, (all >> 16) as u16])
    }

    fn get(self) -> Option<u32> {
        let [low, high] = self.0;
        let all = u32::from(low) | u32::from(high) << 16;
        (all != u32::MAX).then_some(all)
    }
}

/// The directives of a stored response in packed form: [`ResponseDirectives`] without the names of withheld
/// fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Directives {
    max_age: Seconds,
    s_maxage: Seconds,
    stale_while_revalidate: Seconds,
    stale_if_error: Seconds,
    words: u8,
}

const NO_CACHE: u8 = 1;
const NO_STORE: u8 = 1 << 1;
const PRIVATE: u8 = 1 << 2;
const PUBLIC: u8 = 1 << 3;
const MUST_REVALIDATE: u8 = 1 << 4;
const PROXY_REVALIDATE: u8 = 1 << 5;
const MUST_UNDERSTAND: u8 = 1 << 6;

impl Directives {
    fn says(self, words: u8) -> bool {
        self.words & words != 0
    }

    /// `no-cache` without field names, RFC 9111 §5.2.2.4.
    pub fn no_cache(self) -> bool {
        self.says(NO_CACHE)
    }

    /// `private` without field names, §5.2.2.7.
    pub fn private(self) -> bool {
        self.says(PRIVATE)
    }

    /// Whether there is the directive `public` (§5.2.2.9).
    pub fn public(self) -> bool {
        self.says(PUBLIC)
    }

    /// `must-revalidate`, §5.2.2.2, or `proxy-revalidate`, §5.2.2.8.
    pub fn is_to_be_revalidated(self) -> bool {
        self.says(MUST_REVALIDATE | PROXY_REVALIDATE)
    }

    /// Whether `s-maxage` is present, §5.2.2.10.
    pub fn has_s_maxage(self) -> bool {
        self.s_maxage.get().is_some()
    }

    /// `stale-while-revalidate`, RFC 5861 §3, in seconds.
    pub fn stale_while_revalidate(self) -> Option<u32> {
        self.stale_while_revalidate.get()
    }

    /// `stale-if-error`, RFC 5861 §4, in seconds.
    pub fn stale_if_error(self) -> Option<u32> {
        self.stale_if_error.get()
    }

    /// Whether a response to a request with Authorization may be stored and reused (RFC 9111 §3.5).
    pub fn allows_authorization(self) -> bool {
        self.says(PUBLIC | MUST_REVALIDATE) || self.has_s_maxage()
    }

    /// These directives with `private` added.
    pub fn made_private(self) -> Directives {
        Directives { words: self.words | PRIVATE, ..self }
    }

    /// All directives, without the names of withheld fields.
    pub fn unpacked(self) -> ResponseDirectives {
        ResponseDirectives {
            max_age: self.max_age.get(),
            s_maxage: self.s_maxage.get(),
            no_cache: self.no_cache(),
            no_store: self.says(NO_STORE),
            private: self.private(),
            public: self.public(),
            must_revalidate: self.says(MUST_REVALIDATE),
            proxy_revalidate: self.says(PROXY_REVALIDATE),
            must_understand: self.says(MUST_UNDERSTAND),
            stale_while_revalidate: self.stale_while_revalidate(),
            stale_if_error: self.stale_if_error(),
            unreadable: false,
            withheld: Vec::new(),
        }
    }
}

impl From<&ResponseDirectives> for Directives {
    fn from(said: &ResponseDirectives) -> Directives {
        let words = [
            (said.no_cache, NO_CACHE),
            (said.no_store, NO_STORE),
            (said.private, PRIVATE),
            (said.public, PUBLIC),
            (said.must_revalidate, MUST_REVALIDATE),
            (said.proxy_revalidate, PROXY_REVALIDATE),
            (said.must_understand, MUST_UNDERSTAND),
        ];
        Directives {
            max_age: Seconds::of(said.max_age),
            s_maxage: Seconds::of(said.s_maxage),
            stale_while_revalidate: Seconds::of(said.stale_while_revalidate),
            stale_if_error: Seconds::of(said.stale_if_error),
            words: words.into_iter().map(|(said, word)| if said { word } else { 0 }).sum(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_fields::time::SECONDS_MAX;

    #[test]
    fn times_are_restored_exactly() {
        for at in [0, 1, 65_535, 65_536, 784_111_777_123, 253_402_300_799_000, Millis::MAX] {
            assert_eq!(Millis::of(at).get(), at);
        }
        assert_eq!(Millis::of(u64::MAX).get(), Millis::MAX);
        for time in [Timestamp(0), Timestamp(253_402_300_799_000)] {
            let modified = LastModified::at(time);
            assert_eq!((modified.get(), modified.is_there()), (Some(time), true));
        }
        assert!(LastModified::at(Timestamp(u64::MAX)).get().is_some());
        let (none, unreadable) = (LastModified::ABSENT, LastModified::UNREADABLE);
        assert_eq!((none.get(), none.is_there()), (None, false));
        assert_eq!((unreadable.get(), unreadable.is_there()), (None, true));
        for length in [None, Some(0), Some(2_042), Some(1 << 40)] {
            assert_eq!(Length::of(length).get(), length);
        }
        assert_eq!(Length::of(Some(u64::MAX)).get(), Some(Millis::MAX - 1));
    }

    #[test]
    fn directives_are_restored_exactly() {
        let spans = [None, Some(0), Some(60), Some(SECONDS_MAX)];
        for (at, span) in spans.into_iter().enumerate() {
            for word in 0..7 {
                let is = |other| word == other;
                let said = ResponseDirectives {
                    max_age: span,
                    s_maxage: spans[(at + 1) % 4],
                    no_cache: is(0),
                    no_store: is(1),
                    private: is(2),
                    public: is(3),
                    must_revalidate: is(4),
                    proxy_revalidate: is(5),
                    must_understand: is(6),
                    stale_while_revalidate: spans[(at + 2) % 4],
                    stale_if_error: spans[(at + 3) % 4],
                    unreadable: false,
                    withheld: Vec::new(),
                };
                let packed = Directives::from(&said);
                assert_eq!(packed.unpacked(), said);
                assert_eq!(packed.allows_authorization(), said.allows_authorization());
                assert_eq!(packed.is_to_be_revalidated(), is(4) || is(5));
                let private = ResponseDirectives { private: true, ..said };
                assert_eq!(packed.made_private().unpacked(), private);
            }
        }
    }
}
