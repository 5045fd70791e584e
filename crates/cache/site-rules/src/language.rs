//! Language negotiation: the language of a site that a client prefers (RFC 9110 §12.5.4). The lookup
//! follows RFC 4647 §3.4, by the first subtag if the whole range is not offered.
//!
//! A page that is cached per language is rendered with only the chosen language in Accept-Language. There
//! are as many copies as the site has languages, not as clients have preferences.

use http_cache::Fields;

/// The index in `offered` of the language that the request prefers; 0 if it prefers none of them.
pub(crate) fn preferred(offered: &[Box<str>], fields: &dyn Fields) -> usize {
    let mut best: Option<(u16, usize)> = None;
    fields.values("accept-language", &mut |line| {
        for member in line.split(|byte| *byte == b',') {
            let mut parts = member.split(|byte| *byte == b';');
            let range = parts.next().unwrap_or_default().trim_ascii();
            let weight = parts.find_map(|part| weight(part.trim_ascii())).unwrap_or(1000);
            let Some(at) = position(offered, range).filter(|_| weight > 0) else { continue };
            // Among equal weights the first counts, because clients list their preferred language first.
            if best.is_none_or(|(known, _)| weight > known) {
                best = Some((weight, at));
            }
        }
    });
    best.map_or(0, |(_, at)| at)
}

fn position(offered: &[Box<str>], range: &[u8]) -> Option<usize> {
    let find = |wanted: &[u8]| {
        offered.iter().position(|language| language.as_bytes().eq_ignore_ascii_case(wanted))
    };
    let primary = range.split(|byte| *byte == b'-').next().unwrap_or_default();
    find(range).or_else(|| find(primary))
}

/// Parses `q=0.5` into thousandths; `None` for any other parameter.
fn weight(parameter: &[u8]) -> Option<u16> {
    let text = str::from_utf8(parameter).ok()?;
    let number: f32 =
        text.strip_prefix(['q', 'Q'])?.trim_start().strip_prefix('=')?.trim().parse().ok()?;
    (0.0..=1.0).contains(&number).then_some((number * 1000.0) as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_preferred_language_is_chosen() {
        let offered: Vec<Box<str>> = ["en", "de", "pt-BR"].map(Into::into).to_vec();
        for (line, right) in [
            ("", "en"),
            ("de", "de"),
            ("de-AT, en;q=0.8", "de"),
            ("fr, en;q=0.5, de;q=0.7", "de"),
            ("de;q=0, fr", "en"),
            ("PT-br", "pt-BR"),
            ("pt", "en"),
            ("de, en", "de"),
            ("*;q=x, ,;;", "en"),
        ] {
            let lines: &[(&[u8], &[u8])] = &[(b"accept-language", line.as_bytes())];
            assert_eq!(&*offered[preferred(&offered, &lines)], right, "{line}");
        }
    }
}
