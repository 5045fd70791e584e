//! Parsing of templates: the examples of the specification, and random templates.

use esi::{Combine, EsiDialect, Include, Part, Template};
use proptest::prelude::*;

/// The parts as text: a fragment is written `{src|alt|?}`.
fn read(content: &str) -> String {
    read_as(content, EsiDialect::Standard)
}

/// The same for a dialect. LiteSpeed's attributes and inline elements are written out.
fn read_as(content: &str, dialect: EsiDialect) -> String {
    let template = Template::read_as(content.as_bytes(), dialect);
    let part = |part: &Part<'_>| match part {
        Part::Text(range) => content[range.clone()].to_owned(),
        Part::Include(Include { src, alt, may_be_left_out, cache_control, cache_tag, combine }) => {
            let alt = alt.as_ref().map_or(String::new(), |alt| format!("|{alt}"));
            let control =
                cache_control.as_ref().map_or(String::new(), |value| format!("|c={value}"));
            let tag = cache_tag.as_ref().map_or(String::new(), |value| format!("|t={value}"));
            let combine = match combine {
                Combine::Alone => "",
                Combine::Sub => "|sub",
                Combine::Main => "|main",
            };
            let left_out = if *may_be_left_out { "|?" } else { "" };
            format!("{{{src}{alt}{left_out}{control}{tag}{combine}}}")
        }
        Part::Inline(inline) => {
            let tag =
                inline.cache_tag.as_ref().map_or(String::new(), |value| format!("|t={value}"));
            let (name, control) = (&inline.name, &inline.cache_control);
            assert!(content[inline.element.clone()].starts_with("<esi"));
            format!("[{name}|c={control}{tag}={}]", &content[inline.content.clone()])
        }
    };
    template.parts.iter().map(part).collect()
}

/// Recorded from the plugin for WordPress, and the forms that the plugins for Drupal and Joomla write.
#[test]
fn elements_of_litespeeds_plugins() {
    let cases = [
        (
            "a<esi:include src='/?lsesi=admin-bar&_control=private%2Cno-vary&esi=eyJyZWYiOiJcLyJ9&_hash=3d' cache-control='private,no-vary' />b",
            "a{/?lsesi=admin-bar&_control=private%2Cno-vary&esi=eyJyZWYiOiJcLyJ9&_hash=3d|c=private,no-vary}b",
        ),
        (
            "/* <![CDATA[ */ var a = {\"nonce\":\"<esi:include src='/?lsesi=nonce' as-var='1' />\"} /* ]]> */",
            "/* <![CDATA[ */ var a = {\"nonce\":\"{/?lsesi=nonce}\"} /* ]]> */",
        ),
        ("<a href=\"/?n=<esi:include src='/n' as-var='1' />\">", "<a href=\"/?n={/n}\">"),
        (
            "<esi:include src='/a' combine='sub' /><esi:include src='/b' combine='main' />",
            "{/a|sub}{/b|main}",
        ),
        (
            "<esi:include src=\"/l?id=1&amp;b=2\" cache-control=\"private\"></esi:include>c",
            "{/l?id=1&b=2|c=private}c",
        ),
        (
            "<esi_include src=\"index.php?option=com_lscache&a=1\" cache-control=\"no-cache\"/>",
            "{index.php?option=com_lscache&a=1|c=no-cache}",
        ),
        ("<esi:include src='/a' cache-tag='t1,t2'/>", "{/a|t=t1,t2}"),
        (
            "a<esi:inline name='/?lsesi=x&#038;y=1' cache-control='private,max-age=1800' cache-tag='t'><b><esi:include src='/n'/></b></esi:inline>b",
            "a[/?lsesi=x&y=1|c=private,max-age=1800|t=t=<b><esi:include src='/n'/></b>]b",
        ),
        ("<esi_inline name='/x' cache-control='public'>v</esi_inline>", "[/x|c=public=v]"),
        ("a<esi:remove>plain</esi:remove>b<esi_remove>plain</esi_remove>c", "abc"),
        // The content of an inline element may be for one visitor, so it is never sent.
        ("a<esi:inline>secret</esi:inline>b", "a[|c==secret]b"),
        ("a<esi:inline name='/x'>secret", "a[/x|c==]"),
        ("&lt;esi:include src='/x'/&gt;", "&lt;esi:include src='/x'/&gt;"),
    ];
    for (content, sent) in cases {
        assert_eq!(read_as(content, EsiDialect::LiteSpeed), sent, "{content}");
    }
    let standard = "<esi:inline name='/x'>v</esi:inline><esi_include src='/x'/>";
    assert_eq!(read(standard), standard, "ESI 1.0 does not have these");
}

#[test]
fn each_element_is_replaced_by_its_fragment_or_removed() {
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
fn unsupported_elements_stay_and_are_counted() {
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
fn the_end_of_an_unclosed_element_is_searched_once() {
    for begin in ["<!--esi ", "<esi:remove>", "<esi:include src=\"", "<esi:include ", "<esi:x "] {
        let content = begin.repeat((1 << 20) / begin.len());
        assert!(Template::read(content.as_bytes()).left_count > 0, "{begin}");
    }
}
