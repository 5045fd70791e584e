//! What the cache did with a request, in a word and a reason: from the member that Pagewell has added to
//! `Cache-Status` (RFC 9211), which every answer has. So log and header cannot say different things.
//! What it does not know is a miss; what has no such member is an answer of Pagewell's own.

/// A word for what was done, and the reason, which may be empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome<'a> {
    /// `hit`, `stale`, `collapsed`, `validated`, `miss`, `bypass`, `file`, `own` or `refused`.
    pub word: &'static str,
    /// More, in a name.
    pub detail: &'a [u8],
}

/// What a plain hit comes to.
pub const HIT: Outcome<'static> = Outcome { word: "hit", detail: b"" };

/// What a file comes to.
pub const FILE: Outcome<'static> = Outcome { word: "file", detail: b"" };

/// Reads the last member of `Cache-Status`, which is ours.
pub fn outcome(cache_status: &[u8]) -> Outcome<'_> {
    let mut said = Said::default();
    for parameter in cache_status.split(|byte| *byte == b';').skip(1) {
        let parameter = parameter.trim_ascii();
        let (name, value) = match memchr::memchr(b'=', parameter) {
            Some(at) => (&parameter[..at], &parameter[at + 1..]),
            None => (parameter, &b""[..]),
        };
        match name {
            b"hit" => said.hit = true,
            b"fwd" => said.forward = value,
            b"fwd-status" => said.unchanged = value == b"304",
            b"ttl" => said.expired = value.starts_with(b"-"),
            b"stored" => said.stored = true,
            b"collapsed" => said.collapsed = true,
            b"detail" => said.detail = value,
            _ => {}
        }
    }
    Outcome { word: said.word(), detail: said.reason() }
}

/// What the parameters say.
#[derive(Default)]
struct Said<'a> {
    hit: bool,
    forward: &'a [u8],
    unchanged: bool,
    expired: bool,
    stored: bool,
    collapsed: bool,
    detail: &'a [u8],
}

impl<'a> Said<'a> {
    fn word(&self) -> &'static str {
        let says_stale = matches!(self.detail, b"stale-while-revalidate" | b"max-stale");
        match self.forward {
            b"" if self.hit && (self.expired || says_stale) => "stale",
            b"" if self.hit => "hit",
            b"" if self.detail == b"file" => "file",
            b"" => "own",
            _ if self.collapsed => "collapsed",
            // The origin has failed, and the old page had to do.
            _ if self.expired => "stale",
            b"stale" if self.unchanged => "validated",
            b"bypass" | b"method" | b"request" => "bypass",
            _ => "miss",
        }
    }

    fn reason(&self) -> &'a [u8] {
        match self.detail {
            b"" if self.stored => b"stored",
            b"" => self.forward,
            b"file" => b"",
            detail => detail,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_a_word_and_a_reason() {
        for (status, word, detail) in [
            ("pagewell; hit; ttl=5", "hit", ""),
            (
                "pagewell; hit; ttl=-5; detail=stale-while-revalidate",
                "stale",
                "stale-while-revalidate",
            ),
            ("pagewell; fwd=uri-miss; ttl=5; stored", "miss", "stored"),
            ("pagewell; fwd=uri-miss; detail=set-cookie", "miss", "set-cookie"),
            ("pagewell; fwd=stale; fwd-status=304; ttl=9; stored", "validated", "stored"),
            ("pagewell; fwd=stale; ttl=-9; detail=refused", "stale", "refused"),
            ("pagewell; fwd=uri-miss; ttl=5; collapsed", "collapsed", "uri-miss"),
            (
                "pagewell; fwd=bypass; fwd-status=200; detail=session-cookie",
                "bypass",
                "session-cookie",
            ),
            ("pagewell; fwd=method; fwd-status=200", "bypass", "method"),
            ("pagewell; detail=file", "file", ""),
            ("pagewell; detail=not-found", "own", "not-found"),
            ("", "own", ""),
        ] {
            let right = Outcome { word, detail: detail.as_bytes() };
            assert_eq!(outcome(status.as_bytes()), right, "{status}");
        }
    }
}
