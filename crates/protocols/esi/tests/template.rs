//! Parsing of templates: the examples of the specification, and random templates.

use esi::{Include, Part, Template};
use proptest::prelude::*;

/// The parts as text: a fragment is written `{src|alt|?}`.
fn read(content: &str) -> String {
    let template = Template::read(content.as_bytes());
    let part = |part: &Part<'_>| match part {
        Part::Text(range) => content[range.clone()].to_owned(),
        Part::Include(Include { src, alt, may_be_left_out }) => {
            let alt = alt.as_ref().map_or(String::new(), |alt| format!("|{alt}"));
            format!("{{{src}{alt}{}}}", if *may_be_left_out { "|?" } else { "" })
        }
    };
    template.parts.iter().map(part).collect()
}

#[test]
fn templates_and_what_is_sent_of_them() {
    let cases = [
        ("", ""),
        ("no element", "no element"),
        ("a<esi:include src=\"/b\"/>c", "a{/b}c"),
        ("<esi:include src='/b' />", "{/b}"),
        ("<esi:include src=\"/b\"></esi:include>c", "{/b}c"),
        ("<esi:include\n  src = \"/b\"\n  alt=\"/c\" onerror='continue'\n/>", "{/b|/c|?}"),
        ("<esi:include onerror=\"other\" src=\"/b\"/>", "{/b}"),
        // In XML an attribute occurs only once. Here the first of two counts.
        ("<esi:include src=\"/b\" src=\"/c\"/>", "{/b}"),
        ("<esi:include src=\"/a?b=1&amp;c=2&d=3&lt;\"/>", "{/a?b=1&c=2&d=3<}"),
        ("<esi:include src=\"/a>b\"/>c", "{/a>b}c"),
        ("a<esi:remove><a href=\"x\"><esi:include src=\"/b\"/></a></esi:remove>c", "ac"),
        ("a<esi:comment text=\"for whoever reads the source\"/>b", "ab"),
        ("a<!--esi <p><esi:include src=\"/b\"/></p>-->c", "a <p>{/b}</p>c"),
        ("a<!--esi b--><!-- c -->d", "a b<!-- c -->d"),
        ("<!-- <esi:include src=\"/b\"/> -->", "<!-- {/b} -->"),
        (
            "<![CDATA[<esi:include src=\"/b\"/>]]><esi:include src=\"/c\"/>",
            "<![CDATA[<esi:include src=\"/b\"/>]]>{/c}",
        ),
        ("<p><b>a < b</b></p>", "<p><b>a < b</b></p>"),
    ];
    for (content, sent) in cases {
        assert_eq!(read(content), sent, "{content}");
        assert_eq!(Template::read(content.as_bytes()).left_count, 0, "{content}");
    }
}

#[test]
fn what_is_not_understood_stays_and_is_counted() {
    let cases = [
        ("a<esi:vars>$(HTTP_HOST)</esi:vars>", 1, 1),
        ("<esi:choose><esi:when test=\"x\">a</esi:when></esi:choose>", 2, 0),
        ("<esi:include/>", 1, 0),
        ("<esi:include src=/b />", 1, 0),
        ("ab<esi:include src=\"/b", 1, 2),
        ("<esi:", 1, 0),
        ("a<esi:remove>b", 1, 1),
        ("a<!--esi b", 1, 1),
        ("<!--esi <!--esi b-->", 1, 8),
    ];
    for (content, count, left) in cases {
        let template = Template::read(content.as_bytes());
        assert_eq!((template.left_count, template.left), (count, Some(left)), "{content}");
        let includes = template.parts.iter().filter(|part| matches!(part, Part::Include(_)));
        assert_eq!(includes.count(), 0, "{content}");
        assert!(content.starts_with("<!--esi") || read(content) == content, "{content}");
    }
}

/// Pieces of templates, complete and broken.
const PIECES: [&str; 16] = [
    "<esi:include src=\"/b\"/>",
    "<esi:include src='/c' alt=\"/d\" onerror=\"continue\">",
    "</esi:include>",
    "<esi:remove>",
    "</esi:remove>",
    "<esi:comment text=''/>",
    "<!--esi",
    "-->",
    "<!--",
    "<![CDATA[",
    "]]>",
    "<esi:",
    "<",
    "\"",
    "'",
    " text ",
];

proptest! {
    /// For any sequence of pieces, the text parts are bytes of the template in order, and all text is sent.
    #[test]
    fn texts_are_the_templates_own(pieces in prop::collection::vec(prop::sample::select(&PIECES[..]), 0..40)) {
        let content = pieces.concat();
        let template = Template::read(content.as_bytes());
        let mut at = 0;
        for part in &template.parts {
            if let Part::Text(range) = part {
                prop_assert!(at <= range.start && range.start < range.end && range.end <= content.len());
                at = range.end;
            }
        }
    }

    /// A template without an ESI element is sent completely and unchanged.
    #[test]
    fn other_content_is_untouched(content in "[a-z<>/:! \"'=-]{0,200}") {
        prop_assume!(!content.contains("esi"));
        prop_assert_eq!(read(&content), content);
    }
}

/// A template that consists only of unterminated beginnings is parsed in one pass. If each beginning searched
/// the rest of the template, this test would take minutes.
#[test]
fn what_has_no_end_is_looked_for_once() {
    for begin in ["<!--esi ", "<esi:remove>", "<esi:include src=\"", "<esi:include ", "<esi:x "] {
        let content = begin.repeat((1 << 20) / begin.len());
        assert!(Template::read(content.as_bytes()).left_count > 0, "{begin}");
    }
}
