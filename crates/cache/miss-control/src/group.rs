//! The level of a client, and the group of a request: the two properties by which requests are ordered.
//!
//! A group has three parts: the kind of the request, the shape of its URL (number of path segments and
//! of parameters), and the first path segment. Kinds and shapes are few, so that invented URLs cannot
//! make groups without end. First segments are as many as the queue allows for each shape.

use std::fmt;

/// The evidence about a client, from the best to the worst.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ClientLevel {
    /// A signed-in visitor, confirmed by the application.
    Confirmed,
    /// A visitor with hits. Under overload, those with more credit are first.
    Known,
    /// A client with a ticket that the challenge has let pass.
    Passed,
    /// A client with the ticket of a deferral page.
    Returned,
    /// A client without evidence.
    #[default]
    Unknown,
    /// A client without evidence whose address sends more misses than one visitor would.
    OverRate,
}

impl ClientLevel {
    /// All levels, in their order.
    pub const ALL: [ClientLevel; 6] = [
        ClientLevel::Confirmed,
        ClientLevel::Known,
        ClientLevel::Passed,
        ClientLevel::Returned,
        ClientLevel::Unknown,
        ClientLevel::OverRate,
    ];

    /// The name in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            ClientLevel::Confirmed => "confirmed",
            ClientLevel::Known => "known",
            ClientLevel::Passed => "passed",
            ClientLevel::Returned => "returned",
            ClientLevel::Unknown => "unknown",
            ClientLevel::OverRate => "over-rate",
        }
    }

    /// Whether the places for unknown clients limit this level.
    pub fn is_unknown(self) -> bool {
        self >= ClientLevel::Passed
    }

    /// The level of a write by such a client. A write is never deferred, so tickets and rates do not count.
    pub fn of_write(self) -> ClientLevel {
        match self {
            ClientLevel::Confirmed => ClientLevel::Confirmed,
            ClientLevel::Known => ClientLevel::Known,
            _ => ClientLevel::Unknown,
        }
    }
}

/// Whether a client of the first level and credit comes before one of the second, in one group under overload.
pub fn comes_before(
    (level, credit): (ClientLevel, u8),
    (other_level, other_credit): (ClientLevel, u8),
) -> bool {
    level < other_level || level == other_level && credit > other_credit
}

/// The kind of a request. Free places go to the kinds in turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MissKind {
    /// A page that is, or may be, the same for several clients.
    Page,
    /// A response for one client: the request bypasses the cache, for its session cookie, a rule or its query.
    Personal,
    /// A request with a credential of its own, as of a program.
    Credential,
    /// A fragment of a page (ESI). Never deferred alone, because its page would be incomplete.
    Part,
    /// A request with an unsafe method. Never deferred.
    Write,
    /// A request of a verified crawler within its rate. Never deferred, because search engines remove pages that
    /// answer 503 for days.
    Crawler,
}

impl MissKind {
    /// The number of kinds.
    pub(crate) const COUNT: usize = 6;
    /// All kinds, in their order.
    pub(crate) const ALL: [MissKind; MissKind::COUNT] = [
        MissKind::Page,
        MissKind::Personal,
        MissKind::Credential,
        MissKind::Part,
        MissKind::Write,
        MissKind::Crawler,
    ];

    /// Whether requests of this kind may be deferred.
    pub fn may_be_deferred(self) -> bool {
        !matches!(self, MissKind::Write | MissKind::Part | MissKind::Crawler)
    }

    /// The name in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            MissKind::Page => "page",
            MissKind::Personal => "personal",
            MissKind::Credential => "credential",
            MissKind::Part => "part",
            MissKind::Write => "write",
            MissKind::Crawler => "crawler",
        }
    }
}

/// The shape of a URL: 0 to 5 path segments, 0 to 3 parameters. Longer URLs have the last shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UrlShape {
    segments: u8,
    parameters: u8,
}

impl UrlShape {
    /// The most path segments that are distinguished.
    const SEGMENTS_MAX: u8 = 5;
    /// The most parameters that are distinguished.
    const PARAMETERS_MAX: u8 = 3;
    /// The number of shapes.
    pub(crate) const COUNT: usize =
        (Self::SEGMENTS_MAX as usize + 1) * (Self::PARAMETERS_MAX as usize + 1);

    /// The number of path segments, at most 5.
    pub fn segments(self) -> u8 {
        self.segments
    }

    /// The number of parameters, at most 3.
    pub fn parameters(self) -> u8 {
        self.parameters
    }

    /// Its number among all shapes.
    pub(crate) fn index(self) -> usize {
        self.segments as usize * (Self::PARAMETERS_MAX as usize + 1) + self.parameters as usize
    }
}

/// The first segment of a path, or its first 23 bytes. Those with the same beginning are one section.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UrlSection {
    bytes: [u8; UrlSection::BYTES_MAX],
    length: u8,
}

impl UrlSection {
    const BYTES_MAX: usize = 23;

    /// The section of all first segments beyond the number that is distinguished. No URL has it,
    /// because a path segment has no slash.
    pub const OTHER: UrlSection = {
        let mut bytes = [0; UrlSection::BYTES_MAX];
        bytes[0] = b'/';
        UrlSection { bytes, length: 1 }
    };

    fn of(segment: &[u8]) -> UrlSection {
        let length = segment.len().min(UrlSection::BYTES_MAX);
        let mut bytes = [0; UrlSection::BYTES_MAX];
        bytes[..length].copy_from_slice(&segment[..length]);
        UrlSection { bytes, length: length as u8 }
    }

    /// Whether it stands for all further first segments.
    pub fn is_other(self) -> bool {
        self == UrlSection::OTHER
    }

    fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length as usize]
    }
}

impl fmt::Debug for UrlSection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&String::from_utf8_lossy(self.as_bytes()), f)
    }
}

/// The group of a request: kind, shape and first path segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MissGroup {
    /// The kind of the request.
    pub kind: MissKind,
    /// The shape of its URL.
    pub shape: UrlShape,
    /// The first path segment.
    pub section: UrlSection,
}

impl MissGroup {
    /// The group of a request of this kind for `path_and_query`.
    pub fn of(kind: MissKind, path_and_query: &str) -> MissGroup {
        let (path, query) = path_and_query.split_once('?').unwrap_or((path_and_query, ""));
        let count = |text: &str, between: char, most: u8| {
            let parts = text.split(between).filter(|part| !part.is_empty());
            parts.take(most as usize).count() as u8
        };
        let shape = UrlShape {
            segments: count(path, '/', UrlShape::SEGMENTS_MAX),
            parameters: count(query, '&', UrlShape::PARAMETERS_MAX),
        };
        let first = path.split('/').find(|segment| !segment.is_empty()).unwrap_or("");
        MissGroup { kind, shape, section: UrlSection::of(first.as_bytes()) }
    }

    /// A number of the group. Others may have the same.
    pub(crate) fn number(self) -> usize {
        let section = self.section.as_bytes().iter();
        section.fold(self.shape.index() * 7 + self.kind as usize, |number, byte| {
            number.wrapping_mul(31).wrapping_add(*byte as usize)
        })
    }

    /// The first group of the same kind and shape, in the order of groups.
    pub(crate) fn first(self) -> MissGroup {
        MissGroup { section: UrlSection::of(b""), ..self }
    }

    /// The same kind and shape, for all first segments that are not distinguished.
    pub(crate) fn other(self) -> MissGroup {
        MissGroup { section: UrlSection::OTHER, ..self }
    }
}

/// As a pattern of URLs, such as `/shop/*/?a&b`: one star for each further segment, one letter for each
/// parameter.
impl fmt::Display for MissGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = String::from_utf8_lossy(self.section.as_bytes());
        match self.shape.segments {
            0 => f.write_str("/")?,
            _ if self.section.is_other() => f.write_str("/*")?,
            _ => write!(f, "/{first}")?,
        }
        for _ in 1..self.shape.segments {
            f.write_str("/*")?;
        }
        if self.shape.segments == UrlShape::SEGMENTS_MAX {
            f.write_str("…")?;
        }
        f.write_str(match self.shape.parameters {
            0 => "",
            1 => "?a",
            2 => "?a&b",
            _ => "?a&b&c…",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(url: &str) -> MissGroup {
        MissGroup::of(MissKind::Page, url)
    }

    #[test]
    fn a_group_is_the_shape_and_the_first_segment() {
        assert_eq!(page("/shop/?a=1&b=2"), page("/shop?c=3&d"));
        assert_ne!(page("/shop/?a=1"), page("/shop/?a=1&b=2"));
        assert_ne!(page("/shop/4"), page("/news/4"));
        assert_eq!(page("/a/1/2/3/4?x&y&z"), page("/a/1/2/3/4/5/6?1&2&3&4"));
        assert_eq!(page("/"), page(""));
        assert_ne!(page("/x").section, UrlSection::OTHER);
        assert_eq!(page("//x//"), page("/x"));
    }

    #[test]
    fn a_group_is_shown_as_a_pattern() {
        for (url, shown) in [
            ("/", "/"),
            ("/?q=1", "/?a"),
            ("/shop/?a=1&b=2", "/shop?a&b"),
            ("/news/4/", "/news/*"),
            ("/a/b/c/d/e/f?1&2&3&4", "/a/*/*/*/*…?a&b&c…"),
        ] {
            assert_eq!(page(url).to_string(), shown, "{url}");
        }
        assert_eq!(page("/x/y").other().to_string(), "/*/*");
    }

    #[test]
    fn shapes_are_numbered_without_gaps() {
        let last = page("/a/b/c/d/e/f?1&2&3&4").shape;
        assert_eq!(last.index(), UrlShape::COUNT - 1);
        assert_eq!(page("/").shape.index(), 0);
    }
}
