//! Character sets: the character set of a collation, and the conversion of text to UTF-8.
//!
//! Supported are UTF-8 (three and four bytes), ASCII, Latin-1 (Windows-1252 in both servers), UCS-2, UTF-16 and
//! UTF-32. Other character sets that extend ASCII are recognised: their text is decoded if it is ASCII, and
//! otherwise kept as bytes. Sources: `information_schema.COLLATIONS` of MariaDB 10.11 and MySQL 8.0.
//!
//! Not here: comparison by collation. Two texts that are equal in the database may differ here.

use std::borrow::Cow;

/// A character set, as far as needed to decode text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Charset {
    /// No character set: bytes.
    Binary,
    /// UTF-8 of up to three or four bytes, including ASCII.
    Utf8,
    /// Latin-1, which is Windows-1252 in both servers.
    Latin1,
    /// UTF-16 or UCS-2, big-endian.
    Utf16,
    /// UTF-16, little-endian.
    Utf16Le,
    /// UTF-32.
    Utf32,
    /// Another character set that extends ASCII, with the id of one of its collations; 0 if only its name is
    /// known.
    AsciiBased(u32),
    /// Another character set, in which ASCII bytes may have another meaning.
    Other(u32),
}

/// Collations by id: first, last, character set. MariaDB adds 1024 for its collations without padding; those
/// from 2048 on are its collations of Unicode 14.
#[rustfmt::skip]
const COLLATIONS: &[(u32, u32, Charset)] = &[
    // binary.
    (63, 63, Charset::Binary),
    // latin1.
    (5, 5, Charset::Latin1),
    (8, 8, Charset::Latin1),
    (15, 15, Charset::Latin1),
    (31, 31, Charset::Latin1),
    (47, 49, Charset::Latin1),
    (94, 94, Charset::Latin1),
    (1032, 1032, Charset::Latin1),
    (1071, 1071, Charset::Latin1),
    // ascii.
    (11, 11, Charset::Utf8),
    (65, 65, Charset::Utf8),
    (1035, 1035, Charset::Utf8),
    (1089, 1089, Charset::Utf8),
    // utf8mb3.
    (33, 33, Charset::Utf8),
    (76, 76, Charset::Utf8),
    (83, 83, Charset::Utf8),
    (192, 215, Charset::Utf8),
    (223, 223, Charset::Utf8),
    (576, 578, Charset::Utf8),
    (1057, 1057, Charset::Utf8),
    (1107, 1107, Charset::Utf8),
    (1216, 1239, Charset::Utf8),
    (1600, 1602, Charset::Utf8),
    (2048, 2303, Charset::Utf8),
    // utf8mb4.
    (45, 45, Charset::Utf8),
    (46, 46, Charset::Utf8),
    (224, 247, Charset::Utf8),
    (255, 323, Charset::Utf8),
    (608, 610, Charset::Utf8),
    (1069, 1069, Charset::Utf8),
    (1070, 1070, Charset::Utf8),
    (1248, 1271, Charset::Utf8),
    (1632, 1634, Charset::Utf8),
    (2304, 2559, Charset::Utf8),
    // ucs2.
    (35, 35, Charset::Utf16),
    (90, 90, Charset::Utf16),
    (128, 151, Charset::Utf16),
    (159, 159, Charset::Utf16),
    (640, 642, Charset::Utf16),
    (1059, 1059, Charset::Utf16),
    (1114, 1114, Charset::Utf16),
    (1152, 1175, Charset::Utf16),
    (1664, 1666, Charset::Utf16),
    (2560, 2815, Charset::Utf16),
    // utf16.
    (54, 54, Charset::Utf16),
    (55, 55, Charset::Utf16),
    (101, 124, Charset::Utf16),
    (672, 674, Charset::Utf16),
    (1078, 1078, Charset::Utf16),
    (1079, 1079, Charset::Utf16),
    (1125, 1148, Charset::Utf16),
    (1696, 1698, Charset::Utf16),
    (2816, 3071, Charset::Utf16),
    // utf16le.
    (56, 56, Charset::Utf16Le),
    (62, 62, Charset::Utf16Le),
    (1080, 1080, Charset::Utf16Le),
    (1086, 1086, Charset::Utf16Le),
    // utf32.
    (60, 60, Charset::Utf32),
    (61, 61, Charset::Utf32),
    (160, 183, Charset::Utf32),
    (736, 738, Charset::Utf32),
    (1084, 1084, Charset::Utf32),
    (1085, 1085, Charset::Utf32),
    (1184, 1207, Charset::Utf32),
    (1760, 1762, Charset::Utf32),
    (3072, 3327, Charset::Utf32),
];

impl Charset {
    /// The character set of a collation id in the stream.
    #[must_use]
    pub fn of_collation(id: u32) -> Charset {
        if let Some((_, _, charset)) =
            COLLATIONS.iter().find(|(from, to, _)| (*from..=*to).contains(&id))
        {
            return *charset;
        }
        match id {
            // swe7 has letters in place of ASCII brackets; sjis and cp932 have a yen sign in place of a
            // backslash.
            10 | 82 | 13 | 88 | 95 | 96 | 1034 | 1106 | 1037 | 1112 | 1119 | 1120 => {
                Charset::Other(id)
            }
            // All other fixed collations extend ASCII.
            1..=99 | 248..=250 | 1025..=1123 => Charset::AsciiBased(id),
            _ => Charset::Other(id),
        }
    }

    /// The character set with this name in the schema.
    #[must_use]
    pub fn of_name(name: &str) -> Charset {
        match name.to_ascii_lowercase().as_str() {
            "binary" => Charset::Binary,
            "utf8" | "utf8mb3" | "utf8mb4" | "ascii" => Charset::Utf8,
            "latin1" => Charset::Latin1,
            "ucs2" | "utf16" => Charset::Utf16,
            "utf16le" => Charset::Utf16Le,
            "utf32" => Charset::Utf32,
            "swe7" | "sjis" | "cp932" => Charset::Other(0),
            "armscii8" | "big5" | "cp1250" | "cp1251" | "cp1256" | "cp1257" | "cp850" | "cp852"
            | "cp866" | "dec8" | "eucjpms" | "euckr" | "gb18030" | "gb2312" | "gbk" | "geostd8"
            | "greek" | "hebrew" | "hp8" | "keybcs2" | "koi8r" | "koi8u" | "latin2" | "latin5"
            | "latin7" | "macce" | "macroman" | "tis620" | "ujis" => Charset::AsciiBased(0),
            _ => Charset::Other(0),
        }
    }

    /// The text in UTF-8; `None` if it cannot be decoded or is invalid.
    #[must_use]
    pub fn decode(self, bytes: &[u8]) -> Option<Cow<'_, str>> {
        match self {
            Charset::Utf8 => std::str::from_utf8(bytes).ok().map(Cow::Borrowed),
            Charset::AsciiBased(_) | Charset::Latin1 if bytes.is_ascii() => {
                std::str::from_utf8(bytes).ok().map(Cow::Borrowed)
            }
            Charset::Latin1 => {
                Some(Cow::Owned(bytes.iter().map(|byte| windows_1252(*byte)).collect()))
            }
            Charset::Utf16 => wide(bytes, u16::from_be_bytes),
            Charset::Utf16Le => wide(bytes, u16::from_le_bytes),
            Charset::Utf32 => {
                let (units, rest) = bytes.as_chunks::<4>();
                let text: Option<String> =
                    units.iter().map(|unit| char::from_u32(u32::from_be_bytes(*unit))).collect();
                text.filter(|_| rest.is_empty()).map(Cow::Owned)
            }
            Charset::Binary | Charset::AsciiBased(_) | Charset::Other(_) => None,
        }
    }

    /// The id of one of its collations, if known.
    #[must_use]
    pub fn collation(self) -> Option<u32> {
        match self {
            Charset::AsciiBased(id) | Charset::Other(id) => Some(id).filter(|id| *id != 0),
            _ => None,
        }
    }
}

fn wide(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Option<Cow<'_, str>> {
    let (units, rest) = bytes.as_chunks::<2>();
    let text: Result<String, _> =
        char::decode_utf16(units.iter().map(|bytes| unit(*bytes))).collect();
    text.ok().filter(|_| rest.is_empty()).map(Cow::Owned)
}

/// Decodes Windows-1252. As in the servers, its five undefined bytes are control characters.
fn windows_1252(byte: u8) -> char {
    const HIGH: [u16; 32] = [
        0x20ac, 0x81, 0x201a, 0x0192, 0x201e, 0x2026, 0x2020, 0x2021, 0x02c6, 0x2030, 0x0160,
        0x2039, 0x0152, 0x8d, 0x017d, 0x8f, 0x90, 0x2018, 0x2019, 0x201c, 0x201d, 0x2022, 0x2013,
        0x2014, 0x02dc, 0x2122, 0x0161, 0x203a, 0x0153, 0x9d, 0x017e, 0x0178,
    ];
    let code = match byte {
        0x80..=0x9f => u32::from(HIGH[usize::from(byte - 0x80)]),
        _ => u32::from(byte),
    };
    char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_become_utf8() {
        assert_eq!(Charset::Latin1.decode(b"stra\xdfe \x80").as_deref(), Some("straße €"));
        assert_eq!(Charset::Utf16.decode(&[0, 0x61, 0xd8, 0x3d, 0xde, 0]).as_deref(), Some("a😀"));
        assert_eq!(Charset::Utf16Le.decode(&[0x61, 0]).as_deref(), Some("a"));
        assert_eq!(Charset::Utf32.decode(&[0, 1, 0xf6, 0]).as_deref(), Some("😀"));
        assert_eq!(Charset::Utf8.decode("ß".as_bytes()).as_deref(), Some("ß"));
    }

    #[test]
    fn nothing_is_guessed() {
        assert_eq!(Charset::Utf8.decode(b"\xff"), None);
        assert_eq!(Charset::Utf16.decode(b"abc"), None);
        assert_eq!(Charset::AsciiBased(51).decode(b"abc").as_deref(), Some("abc"));
        assert_eq!(Charset::AsciiBased(51).decode(b"\xe0"), None);
        assert_eq!(Charset::Other(10).decode(b"abc"), None);
    }
}
