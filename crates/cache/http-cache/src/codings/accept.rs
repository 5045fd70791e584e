//! Reads `Accept-Encoding` and chooses a content coding (RFC 9110 §12.5.3, weights §12.4.2).
//!
//! Invariants: time is linear in the length of the field, and nothing is allocated. An unreadable weight
//! refuses its coding, because content that the client cannot decode is the worse mistake.

use super::Coding;
use http_fields::fields;

/// A set of content codings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CodingSet(u8);

impl CodingSet {
    /// The set of these codings.
    pub fn of(codings: &[Coding]) -> CodingSet {
        CodingSet(codings.iter().fold(0, |bits, coding| bits | bit(*coding)))
    }

    /// Whether `coding` is in it.
    pub fn contains(self, coding: Coding) -> bool {
        self.0 & bit(coding) != 0
    }

    /// Whether the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

fn bit(coding: Coding) -> u8 {
    1 << coding as u8
}

/// The weights in a request, in thousandths; 0 refuses a coding.
#[derive(Default)]
struct Weights {
    named: [Option<u16>; 3],
    identity: Option<u16>,
    any: Option<u16>,
}

impl Weights {
    fn read(lines: &[&[u8]]) -> Weights {
        let mut weights = Weights::default();
        for member in lines.iter().flat_map(|line| fields::members(line)) {
            let (name, weight) = split(member);
            let place = match Coding::from_name(name) {
                Some(coding) => &mut weights.named[coding as usize],
                None if name == b"*" => &mut weights.any,
                None if name.eq_ignore_ascii_case(b"identity") => &mut weights.identity,
                None => continue,
            };
            // A coding listed twice gets the lower weight, so that a refusal is never ignored.
            *place = Some(place.map_or(weight, |before| before.min(weight)));
        }
        weights
    }

    fn of(&self, coding: Coding) -> u16 {
        self.named[coding as usize].or(self.any).unwrap_or(0)
    }

    /// The weight of the uncompressed content. If it is not listed, it is accepted with a lower weight than
    /// any requested coding.
    fn of_identity(&self) -> u16 {
        self.identity.unwrap_or(0)
    }
}

/// The name and the weight of a list member.
fn split(member: &[u8]) -> (&[u8], u16) {
    let mut parts = member.split(|byte| *byte == b';');
    let name = fields::trim(parts.next().unwrap_or_default());
    let mut weight = 1000;
    for part in parts {
        if let [b'q' | b'Q', rest @ ..] = fields::trim(part)
            && let [b'=', number @ ..] = fields::trim(rest)
        {
            weight = crate::variants::weight(fields::trim(number)).unwrap_or(0);
        }
    }
    (name, weight)
}

/// The coding with the highest weight among `forms`, which are in the order of the cache's preference.
/// `None` if the uncompressed content is to be sent, because no coding is accepted or it has a higher
/// weight. `lines` are the lines of `Accept-Encoding`.
pub fn choose(lines: &[&[u8]], forms: &[Coding]) -> Option<Coding> {
    let weights = Weights::read(lines);
    let mut best: Option<(u16, Coding)> = None;
    for coding in forms {
        let weight = weights.of(*coding);
        if weight > 0 && best.is_none_or(|(before, _)| weight > before) {
            best = Some((weight, *coding));
        }
    }
    best.filter(|(weight, _)| *weight >= weights.of_identity()).map(|(_, coding)| coding)
}
