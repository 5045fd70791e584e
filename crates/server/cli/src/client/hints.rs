//! Hints for an invalidation that probably has another effect than intended: it matched no page, or a
//! name looks like a pattern or like a list.
//!
//! Such a call is valid, because a URL can contain `*`, a tag can contain a comma, and scripts purge
//! pages that are not cached. So a hint changes neither the call nor the exit status.

use command_line::options::PurgeArgs;

/// Returns the hints for a call that purged or marked `matched` pages, each a sentence for the
/// operator. A name that has matched a page gets none.
pub fn invalidation_hints(args: &PurgeArgs, matched: u64) -> Vec<String> {
    let names = args.tags.len() + args.urls.len() + args.prefixes.len();
    // The only name of a call that matched is right.
    if args.all || (matched > 0 && names == 1) {
        return Vec::new();
    }
    let stars = args.urls.iter().filter(|url| url.contains('*')).map(|url| {
        let (below, _) = url.split_once('*').unwrap_or((url, ""));
        format!(
            "--url {url}: `*` is no wildcard here; for all pages below a path use --prefix {below}"
        )
    });
    let lists = args.tags.iter().filter(|tag| tag.contains(',')).map(|tag| {
        let each: Vec<String> = tag
            .split(',')
            .map(str::trim)
            .filter(|one| !one.is_empty())
            .map(|one| format!("--tag {one}"))
            .collect();
        format!(
            "--tag {tag}: this is one tag, with a comma in it; for several tags use {}",
            each.join(" ")
        )
    });
    let hints: Vec<String> = stars.chain(lists).collect();
    if hints.is_empty() && matched == 0 { vec![nothing_matched(args)] } else { hints }
}

/// The hint if no page matched: the command that shows which pages there are.
fn nothing_matched(args: &PurgeArgs) -> String {
    let mut look = Vec::new();
    if let Some(tag) = args.tags.iter().find(|tag| *tag != "-") {
        look.push(format!("`pagewell explain --tag {tag}` lists the pages with this tag"));
    }
    if let Some(url) = args.urls.first() {
        look.push(format!(
            "`pagewell explain {url}` shows whether this page is cached (the path, its last slash and the query must be the page's own)"
        ));
    }
    if let Some(path) = args.prefixes.first() {
        look.push(format!("--prefix {path} stands for this path and what is below it"));
    }
    let soft = if args.soft { ", or all of them were marked before" } else { "" };
    let look = look.join("; ");
    format!(
        "no cached page of this node matched{soft}{}{look}",
        if look.is_empty() { "" } else { ": " }
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use command_line::options::ControlArgs;

    /// The hints for a call with these options.
    fn hints(line: &[&str], matched: u64) -> String {
        let values = |option: &str| {
            let pairs = line.windows(2).filter(|two| two[0] == option);
            pairs.map(|two| two[1].to_owned()).collect()
        };
        let args = PurgeArgs {
            tags: values("--tag"),
            urls: values("--url"),
            prefixes: values("--prefix"),
            without_option: None,
            site: None,
            all: line.contains(&"--all"),
            soft: line.contains(&"--soft"),
            control: ControlArgs { admin: "127.0.0.1:1".into(), token_file: None },
        };
        invalidation_hints(&args, matched).join("\n")
    }

    #[test]
    fn a_call_that_matched_nothing_gets_the_command_that_shows_why() {
        assert!(hints(&["--tag", "news:4"], 0).contains("`pagewell explain --tag news:4`"));
        assert!(hints(&["--url", "/a"], 0).contains("`pagewell explain /a`"));
        assert!(hints(&["--prefix", "/a/"], 0).contains("--prefix /a/"));
        assert!(hints(&["--soft", "--url", "/a"], 0).contains("marked before"));
        assert_eq!(hints(&["--tag", "-"], 0), "no cached page of this node matched");
        assert_eq!(hints(&["--all"], 0), "");
        assert_eq!(hints(&["--url", "/a"], 1), "");
    }

    #[test]
    fn patterns_and_lists_are_pointed_out() {
        assert!(hints(&["--url", "/news/*"], 0).ends_with("use --prefix /news/"));
        assert!(hints(&["--tag", "news:4,news:5"], 0).ends_with("--tag news:4 --tag news:5"));
        // They may be right, and are if they are the only names.
        assert_eq!(hints(&["--tag", "a,b"], 1), "");
        assert!(hints(&["--tag", "a,b", "--tag", "c"], 1).contains("one tag"));
    }
}
