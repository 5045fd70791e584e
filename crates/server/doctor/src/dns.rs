//! Messages of the DNS (RFC 1035), as far as a question for one kind of record needs them: the question, and the
//! answer with its aliases (CNAME).
//!
//! There is no crate for this among the libraries of Pagewell. Invariants: nothing panics whatever the bytes are; a
//! compressed name leads only to earlier bytes and has at most 255; an answer counts only if it has the number and the
//! name of the question. Not here: sockets, and the judgement of CAA records (`caa`).

/// The longest name in bytes (RFC 1035 section 2.3.4).
const NAME_BYTES_MAX: usize = 255;
/// The longest label in bytes.
const LABEL_BYTES_MAX: usize = 63;
/// Maximum number of aliases that lead from the name to its records.
const ALIASES_MAX: usize = 16;
/// The size of a datagram that every path carries (DNS flag day 2020).
const DATAGRAM_BYTES: u16 = 1232;
/// The class of the Internet.
const INTERNET: u16 = 1;
/// The bit of a response, and that of one that was cut off.
const RESPONSE: u16 = 0x8000;
const CUT_OFF: u16 = 0x0200;
const RECURSION_DESIRED: u16 = 0x0100;

/// The kinds of records, with their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordKind {
    /// An IPv4 address.
    A = 1,
    /// The name of which this one is an alias.
    Cname = 5,
    /// An IPv6 address.
    Aaaa = 28,
    /// Authorities that may issue certificates (RFC 8659).
    Caa = 257,
}

/// The answer to a question.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DnsAnswer {
    /// The response code: 0 for success, 3 if the name does not exist.
    pub code: u8,
    /// Whether it was cut off, so that the question must be asked over TCP.
    pub is_cut_off: bool,
    /// The contents of the records, of the name or of the name that it is an alias of.
    pub records: Vec<Vec<u8>>,
}

/// The question for records of this kind; `None` if it is not a name of the DNS.
#[must_use]
pub fn question(number: u16, name: &str, kind: RecordKind) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    // One question, no records but the size of datagrams (EDNS, RFC 6891).
    for word in [number, RECURSION_DESIRED, 1, 0, 0, 1] {
        bytes.extend(word.to_be_bytes());
    }
    let begin = bytes.len();
    for label in name.trim_end_matches('.').split('.') {
        let length = u8::try_from(label.len()).ok().filter(|_| label.len() <= LABEL_BYTES_MAX)?;
        if length == 0 {
            return None;
        }
        bytes.push(length);
        bytes.extend(label.bytes());
    }
    bytes.push(0);
    if bytes.len() - begin > NAME_BYTES_MAX {
        return None;
    }
    bytes.extend((kind as u16).to_be_bytes());
    bytes.extend(INTERNET.to_be_bytes());
    bytes.extend([0, 0, 41]);
    bytes.extend(DATAGRAM_BYTES.to_be_bytes());
    bytes.extend([0; 6]);
    Some(bytes)
}

/// Reads the answer to a question; `None` if the bytes are no answer to it.
#[must_use]
pub fn answer(bytes: &[u8], number: u16, name: &str, kind: RecordKind) -> Option<DnsAnswer> {
    let mut reader = Reader { bytes, at: 0 };
    let (answered, flags) = (reader.word()?, reader.word()?);
    let (questions, records) = (reader.word()?, reader.word()?);
    if answered != number || flags & RESPONSE == 0 || questions != 1 {
        return None;
    }
    reader.at = 12;
    let wanted = name.trim_end_matches('.').to_ascii_lowercase();
    if reader.name()? != wanted || reader.word()? != kind as u16 || reader.word()? != INTERNET {
        return None;
    }
    let mut answer = DnsAnswer {
        code: (flags & 0xf) as u8,
        is_cut_off: flags & CUT_OFF != 0,
        records: Vec::new(),
    };
    if answer.is_cut_off {
        return Some(answer);
    }
    let (mut aliases, mut found) = (Vec::new(), Vec::new());
    for _ in 0..records {
        let owner = reader.name()?;
        let (is, class) = (reader.word()?, reader.word()?);
        reader.at += 4;
        let length = usize::from(reader.word()?);
        let begin = reader.at;
        let content = bytes.get(begin..begin + length)?;
        reader.at += length;
        if class == INTERNET && is == RecordKind::Cname as u16 {
            aliases.push((owner, Reader { bytes, at: begin }.name()?));
        } else if class == INTERNET && is == kind as u16 {
            found.push((owner, content.to_vec()));
        }
    }
    let mut owner = wanted;
    for _ in 0..ALIASES_MAX {
        let Some((_, leads_to)) = aliases.iter().find(|(from, _)| *from == owner) else { break };
        owner.clone_from(leads_to);
    }
    let of_owner = found.into_iter().filter(|(of, _)| *of == owner);
    answer.records = of_owner.map(|(_, content)| content).collect();
    Some(answer)
}

/// Reads a message from its begin.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn word(&mut self) -> Option<u16> {
        let word = self.bytes.get(self.at..self.at + 2)?.try_into().ok()?;
        self.at += 2;
        Some(u16::from_be_bytes(word))
    }

    /// A name in lower case, without the dot at its end. Bytes that are no printable ASCII are replaced, so that the
    /// name equals no valid one.
    fn name(&mut self) -> Option<String> {
        let (mut name, mut at, mut end) = (String::new(), self.at, None);
        loop {
            let length = *self.bytes.get(at)?;
            match length >> 6 {
                0 if length == 0 => {
                    self.at = end.unwrap_or(at + 1);
                    name.pop();
                    return Some(name);
                }
                0 => {
                    let label = self.bytes.get(at + 1..at + 1 + usize::from(length))?;
                    let shown = |byte: &u8| match byte {
                        b'.' | b'\\' => '\\',
                        byte if byte.is_ascii_graphic() => char::from(byte.to_ascii_lowercase()),
                        _ => '\\',
                    };
                    name.extend(label.iter().map(shown));
                    name.push('.');
                    at += 1 + usize::from(length);
                }
                3 => {
                    let low = *self.bytes.get(at + 1)?;
                    let target = usize::from(length & 0x3f) << 8 | usize::from(low);
                    end = end.or(Some(at + 2));
                    // Each step leads to earlier bytes, so that there is no circle.
                    if target >= at {
                        return None;
                    }
                    at = target;
                }
                _ => return None,
            }
            if name.len() > NAME_BYTES_MAX {
                return None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An answer with these records: owner, kind, content.
    fn message(name: &str, kind: RecordKind, records: &[(&str, RecordKind, &[u8])]) -> Vec<u8> {
        let mut bytes = question(7, name, kind).unwrap();
        bytes.truncate(bytes.len() - 11);
        bytes[2..4].copy_from_slice(&0x8180u16.to_be_bytes());
        bytes[6..8].copy_from_slice(&u16::try_from(records.len()).unwrap().to_be_bytes());
        bytes[10..12].fill(0);
        for (owner, kind, content) in records {
            bytes.extend(encoded(owner));
            for word in [*kind as u16, INTERNET, 0, 60, u16::try_from(content.len()).unwrap()] {
                bytes.extend(word.to_be_bytes());
            }
            bytes.extend(*content);
        }
        bytes
    }

    fn encoded(name: &str) -> Vec<u8> {
        let whole = question(0, name, RecordKind::A).unwrap();
        whole[12..whole.len() - 15].to_vec()
    }

    #[test]
    fn an_answer_with_an_alias_is_read() {
        use RecordKind::{A, Cname};
        let alias = encoded("web.example.net");
        let records: [(&str, RecordKind, &[u8]); 3] = [
            ("web.example.net", A, &[192, 0, 2, 1]),
            ("Example.org", Cname, &alias),
            ("other.example", A, &[192, 0, 2, 9]),
        ];
        let bytes = message("example.org", A, &records);
        let found = answer(&bytes, 7, "example.ORG.", A).unwrap();
        assert_eq!((found.code, found.records), (0, vec![vec![192, 0, 2, 1]]));
        assert_eq!(answer(&bytes, 8, "example.org", A), None, "another number");
        assert_eq!(answer(&bytes, 7, "example.com", A), None, "another name");
        assert_eq!(answer(&bytes, 7, "example.org", RecordKind::Aaaa), None, "another kind");
        let asked = question(7, "example.org", A).unwrap();
        assert_eq!(answer(&asked, 7, "example.org", A), None, "a question is no answer");
        let mut cut = bytes.clone();
        cut[2] |= 2;
        assert!(answer(&cut, 7, "example.org", A).unwrap().is_cut_off);
    }

    #[test]
    fn a_compressed_name_leads_backwards_only() {
        use RecordKind::A;
        let mut bytes = message("example.org", A, &[("example.org", A, &[192, 0, 2, 1])]);
        let owner = bytes.len() - 14 - encoded("example.org").len();
        bytes.splice(owner..bytes.len() - 14, [0xc0, 12]);
        assert_eq!(answer(&bytes, 7, "example.org", A).unwrap().records.len(), 1);
        for target in [owner, owner + 1, 0x3fff] {
            let word = u16::try_from(target).unwrap() | 0xc000;
            bytes[owner..owner + 2].copy_from_slice(&word.to_be_bytes());
            assert_eq!(answer(&bytes, 7, "example.org", A), None, "to {target}");
        }
    }

    #[test]
    fn aliases_in_a_circle_end() {
        use RecordKind::{A, Cname};
        let (a, b) = (encoded("a.org"), encoded("b.org"));
        let bytes = message("a.org", A, &[("a.org", Cname, &b), ("b.org", Cname, &a)]);
        assert_eq!(answer(&bytes, 7, "a.org", A).unwrap().records, Vec::<Vec<u8>>::new());
    }

    #[test]
    fn damaged_answers_never_panic_and_never_name_a_foreign_record() {
        use RecordKind::Caa;
        let records: [(&str, RecordKind, &[u8]); 2] =
            [("a.org", Caa, b"\x00\x05issueca.test"), ("b.org", Caa, b"\x00\x05issueevil")];
        let bytes = message("a.org", Caa, &records);
        for end in 0..bytes.len() {
            assert_eq!(answer(&bytes[..end], 7, "a.org", Caa), None, "{end} bytes");
        }
        for at in 0..bytes.len() {
            for value in 0..=255 {
                let mut damaged = bytes.clone();
                damaged[at] = value;
                let found = answer(&damaged, 7, "a.org", Caa).unwrap_or_default();
                assert!(found.records.len() <= 2);
            }
        }
        let right = answer(&bytes, 7, "a.org", Caa).unwrap();
        assert_eq!(right.records, [b"\x00\x05issueca.test".to_vec()]);
    }

    #[test]
    fn names_that_the_dns_does_not_have_are_not_asked_for() {
        let (long, label) = (["abcdefgh"; 32].join("."), "x".repeat(64));
        for name in ["", ".", "a..b", &long, &label] {
            assert_eq!(question(1, name, RecordKind::A), None, "{name}");
        }
        assert!(question(1, "xn--bcher-kva.example.", RecordKind::Caa).is_some());
    }
}
