//! The content of a recording: the URLs, and the changes between two looks at them.
//!
//! The ids are those of `tests/footprints/site/fill.php`: post N is 1000 + N, page N is 2000 + N. Texts may have
//! placeholders for what has no fixed id ([`super::editor`] has the list). Each change follows the one before.
//! Comments have an address: without one, WordPress draws a random server for the author's picture.

/// The URLs and changes of a recording.
#[derive(Debug)]
pub struct RecordingPlan {
    /// The paths of the pages.
    pub urls: Vec<&'static str>,
    /// The changes, in order.
    pub changes: Vec<PlannedChange>,
    /// Seconds of visits without a change at the end.
    pub idle_seconds: u64,
}

/// A change with its description.
pub type PlannedChange = (&'static str, ChangeAction);

/// How a change is made.
#[derive(Debug, Clone, Copy)]
pub enum ChangeAction {
    /// Nothing.
    Nothing,
    /// A request of the administrator to the REST API: method, path, JSON.
    Rest(&'static str, &'static str, &'static str),
    /// A form of the administration: the page with the form, the field of its nonce, the target, the fields.
    Form(&'static str, &'static str, &'static str, &'static str),
    /// The administrator looks at a page.
    Look(&'static str),
    /// A form of a visitor: target and fields.
    Visitor(&'static str, &'static str),
    /// The administrator logs in.
    Login,
    /// PHP on the command line, after `wp-load.php`.
    Command(&'static str),
    /// Statements at the SQL prompt.
    Sql(&'static str),
    /// The scheduled tasks that are due run.
    Cron,
    /// The time of the scheduled post comes, and the tasks run.
    ScheduledPost,
}

impl RecordingPlan {
    /// All URLs and changes.
    pub fn whole() -> RecordingPlan {
        let changes = [NOISE, COMMENTS, POSTS, STATES, TERMS, SETTINGS, PROMPT].concat();
        RecordingPlan { urls: URLS.to_vec(), changes, idle_seconds: 70 }
    }
}

const URLS: [&str; 60] = [
    "/",
    "/page/2/",
    "/page/3/",
    "/page/30/",
    "/2023/08/post-300/",
    "/2023/08/post-299/",
    "/2023/08/post-298/",
    "/2023/08/post-297/",
    "/2022/11/post-151/",
    "/2022/10/post-150/",
    "/2022/10/post-149/",
    "/2022/01/post-7/",
    "/category/news/",
    "/category/science/",
    "/category/travel/",
    "/category/food/",
    "/category/music/",
    "/category/sport/",
    "/category/books/",
    "/category/local/",
    "/category/news/opinion/",
    "/category/news/weather/",
    "/category/science/page/2/",
    "/tag/harbor/",
    "/tag/lantern/",
    "/tag/copper/",
    "/tag/meadow/",
    "/author/admin/",
    "/author/alice/",
    "/author/bob/",
    "/2023/",
    "/2023/08/",
    "/2023/07/",
    "/2022/03/",
    "/2023/08/20/",
    "/feed/",
    "/comments/feed/",
    "/category/science/feed/",
    "/tag/harbor/feed/",
    "/author/alice/feed/",
    "/2023/08/post-298/feed/",
    "/2022/10/post-150/feed/",
    "/?s=lantern",
    "/?s=zebracorn",
    "/?s=post+298",
    "/page-3/",
    "/page-1/",
    "/page-1/page-15/",
    "/wp-sitemap.xml",
    "/wp-sitemap-posts-post-1.xml",
    "/wp-sitemap-taxonomies-category-1.xml",
    "/wp-sitemap-users-1.xml",
    "/wp-json/wp/v2/posts?per_page=5",
    "/wp-json/wp/v2/categories",
    "/wp-json/wp/v2/comments",
    "/wp-json/wp/v2/users",
    "/brand-new-page/",
    "/2023/08/post-290/",
    "/robots.txt",
    "/wp-login.php",
];

const NOISE: &[PlannedChange] = &[
    ("nothing (control)", ChangeAction::Nothing),
    (
        "save a new draft",
        ChangeAction::Rest(
            "POST",
            "posts",
            r#"{"title": "A draft", "content": "Not yet.", "status": "draft"}"#,
        ),
    ),
    (
        "open a published post in the editor",
        ChangeAction::Look("/wp-admin/post.php?post=1298&action=edit"),
    ),
    (
        "autosave of a published post",
        ChangeAction::Rest(
            "POST",
            "posts/1298/autosaves",
            r#"{"title": "Post 298", "content": "Half a sen"}"#,
        ),
    ),
    ("a user logs in", ChangeAction::Login),
    ("a transient is set", ChangeAction::Command("set_transient('lab', 'value', 3600);")),
    ("cron runs", ChangeAction::Cron),
    (
        "an autoloaded option that no page shows is added",
        ChangeAction::Command("add_option('lab_setting', '1');"),
    ),
    (
        "post meta that no page shows",
        ChangeAction::Command("update_post_meta(1298, 'views', '17');"),
    ),
    (
        "a subscriber registers",
        ChangeAction::Command(
            "wp_insert_user(['user_login' => 'erin', 'user_pass' => 'secret-of-erin', 'role' => 'subscriber']);",
        ),
    ),
];

const COMMENTS: &[PlannedChange] = &[
    (
        "a newcomer's comment on post 298 (waits for moderation)",
        ChangeAction::Visitor(
            "/wp-comments-post.php",
            "comment_post_ID=1298&comment_parent=0&author=Joe&email=joe%40visitors.test&url=&comment=Well+written",
        ),
    ),
    (
        "… is approved",
        ChangeAction::Rest("POST", "comments/{comment}", r#"{"status": "approved"}"#),
    ),
    (
        "… is marked as spam",
        ChangeAction::Rest("POST", "comments/{comment}", r#"{"status": "spam"}"#),
    ),
    (
        "the administrator's comment on old post 150",
        ChangeAction::Rest("POST", "comments", r#"{"post": 1150, "content": "An old post."}"#),
    ),
    (
        "… is edited in the administration",
        ChangeAction::Form(
            "/wp-admin/comment.php?action=editcomment&c={comment}",
            "_wpnonce",
            "/wp-admin/comment.php",
            "action=editedcomment&comment_ID={comment}&comment_post_ID=1150&comment_status=1&content=A+very+old+post.",
        ),
    ),
    (
        "the administrator answers it",
        ChangeAction::Form(
            "/wp-admin/edit-comments.php",
            "_ajax_nonce-replyto-comment",
            "/wp-admin/admin-ajax.php",
            "action=replyto-comment&comment_ID={comment}&comment_post_ID=1150&content=Indeed.&mode=detail",
        ),
    ),
    ("… and deletes the answer", ChangeAction::Rest("DELETE", "comments/{comment}?force=true", "")),
    (
        "a command adds a reply on post 300",
        ChangeAction::Command(
            "wp_insert_comment(['comment_post_ID' => 1300, 'comment_author' => 'Peggy', 'comment_author_email' => 'peggy@visitors.test', 'comment_content' => 'Me too.', \
             'comment_approved' => 1, 'comment_parent' => $wpdb->get_var('SELECT MIN(comment_ID) FROM wp_comments WHERE comment_post_ID = 1300')]);",
        ),
    ),
];

const POSTS: &[PlannedChange] = &[
    (
        "publish a post (Science; tags harbor, lantern; contains 'zebracorn')",
        ChangeAction::Rest(
            "POST",
            "posts",
            r#"{"title": "The news", "content": "A zebracorn.", "status": "publish",
                "categories": [{term:science}], "tags": [{term:harbor}, {term:lantern}]}"#,
        ),
    ),
    (
        "edit its body",
        ChangeAction::Rest("POST", "posts/{post}", r#"{"content": "Two zebracorn."}"#),
    ),
    ("edit its title", ChangeAction::Rest("POST", "posts/{post}", r#"{"title": "More news"}"#)),
    (
        "move it from Science to Travel",
        ChangeAction::Rest("POST", "posts/{post}", r#"{"categories": [{term:travel}]}"#),
    ),
    (
        "stick it to the front page",
        ChangeAction::Rest("POST", "posts/{post}", r#"{"sticky": true}"#),
    ),
    ("unstick it", ChangeAction::Rest("POST", "posts/{post}", r#"{"sticky": false}"#)),
    ("trash it", ChangeAction::Rest("DELETE", "posts/{post}", "")),
    ("delete it for good", ChangeAction::Rest("DELETE", "posts/{post}?force=true", "")),
    (
        "edit the body of old post 150",
        ChangeAction::Rest("POST", "posts/1150", r#"{"content": "Rewritten."}"#),
    ),
    (
        "edit the title of old post 150",
        ChangeAction::Rest("POST", "posts/1150", r#"{"title": "Post 150, again"}"#),
    ),
    (
        "save post 150 again without a change",
        ChangeAction::Rest("POST", "posts/1150", r#"{"title": "Post 150, again"}"#),
    ),
    (
        "create the page that was not found",
        ChangeAction::Rest(
            "POST",
            "pages",
            r#"{"title": "Brand new page", "content": "Here.", "status": "publish"}"#,
        ),
    ),
    ("delete that page again", ChangeAction::Rest("DELETE", "pages/{post}?force=true", "")),
    (
        "import three old posts",
        ChangeAction::Command(
            "foreach ([1, 2, 3] as $n) { wp_insert_post(['post_title' => \"Import $n\", 'post_status' => 'publish', \
             'post_author' => 1, 'post_date' => \"2022-11-1$n 10:00:00\", 'post_content' => 'From elsewhere.']); }",
        ),
    ),
    ("delete one of them", ChangeAction::Command("wp_delete_post({post}, true);")),
];

const STATES: &[PlannedChange] = &[
    ("make post 297 private", ChangeAction::Rest("POST", "posts/1297", r#"{"status": "private"}"#)),
    ("… public again", ChangeAction::Rest("POST", "posts/1297", r#"{"status": "publish"}"#)),
    (
        "give post 300 a password",
        ChangeAction::Rest("POST", "posts/1300", r#"{"password": "open"}"#),
    ),
    ("… take it away", ChangeAction::Rest("POST", "posts/1300", r#"{"password": ""}"#)),
    (
        "change the slug of post 298 (old address redirects)",
        ChangeAction::Rest("POST", "posts/1298", r#"{"slug": "post-298-b"}"#),
    ),
    ("… and back", ChangeAction::Rest("POST", "posts/1298", r#"{"slug": "post-298"}"#)),
    (
        "close comments on post 150",
        ChangeAction::Rest("POST", "posts/1150", r#"{"comment_status": "closed"}"#),
    ),
    (
        "schedule a post",
        ChangeAction::Rest(
            "POST",
            "posts",
            r#"{"title": "Later", "content": "Now.", "status": "future", "date_gmt": "{soon}"}"#,
        ),
    ),
    ("its time comes and cron runs", ChangeAction::ScheduledPost),
];

const TERMS: &[PlannedChange] = &[
    (
        "rename category Science",
        ChangeAction::Rest("POST", "categories/{term:science}", r#"{"name": "Sciences"}"#),
    ),
    (
        "change the description of category Science",
        ChangeAction::Rest(
            "POST",
            "categories/{term:science}",
            r#"{"description": "What is known."}"#,
        ),
    ),
    (
        "rename tag harbor",
        ChangeAction::Rest("POST", "tags/{term:harbor}", r#"{"name": "Harbour"}"#),
    ),
    (
        "rename tag meadow in the administration",
        ChangeAction::Form(
            "/wp-admin/term.php?taxonomy=post_tag&tag_ID={term:meadow}",
            "_wpnonce",
            "/wp-admin/edit-tags.php",
            "action=editedtag&tag_ID={term:meadow}&taxonomy=post_tag&name=Meadows&slug=meadow&description=",
        ),
    ),
    ("create an empty tag", ChangeAction::Rest("POST", "tags", r#"{"name": "Nothing"}"#)),
    ("delete tag copper", ChangeAction::Rest("DELETE", "tags/{term:copper}?force=true", "")),
    (
        "change the display name of author alice",
        ChangeAction::Rest("POST", "users/{user:alice}", r#"{"name": "Alice A."}"#),
    ),
    (
        "change alice's biography",
        ChangeAction::Rest("POST", "users/{user:alice}", r#"{"description": "Writes."}"#),
    ),
];

const SETTINGS: &[PlannedChange] = &[
    ("change the tagline", ChangeAction::Rest("POST", "settings", r#"{"description": "Light"}"#)),
    ("change the site title", ChangeAction::Rest("POST", "settings", r#"{"title": "The Lamp"}"#)),
    ("… and back", ChangeAction::Rest("POST", "settings", r#"{"title": "The Lantern"}"#)),
    (
        "posts per page 10 → 8, in the administration",
        ChangeAction::Form(
            "/wp-admin/options-reading.php",
            "_wpnonce",
            "/wp-admin/options.php",
            "option_page=reading&action=update&show_on_front=posts&page_on_front=0&page_for_posts=0&posts_per_page=8\
             &posts_per_rss=10&rss_use_excerpt=0&blog_public=1&blog_charset=UTF-8",
        ),
    ),
    ("… and back", ChangeAction::Rest("POST", "settings", r#"{"posts_per_page": 10}"#)),
    (
        "discussion option: 50 → 10 comments per page",
        ChangeAction::Command("update_option('comments_per_page', 10);"),
    ),
    ("change the date format", ChangeAction::Command("update_option('date_format', 'j. F Y');")),
    (
        "rename a menu item",
        ChangeAction::Rest("POST", "menu-items/{item}", r#"{"title": "Front"}"#),
    ),
    (
        "rename a page that is in the menu by quick edit",
        ChangeAction::Form(
            "/wp-admin/edit.php?post_type=page",
            "_inline_edit",
            "/wp-admin/admin-ajax.php",
            "action=inline-save&post_type=page&post_ID=2001&post_title=First+page&post_name=page-1&_status=publish\
             &post_author=1&post_parent=0&menu_order=0&page_template=default&comment_status=open&ping_status=open\
             &aa=2022&mm=01&jj=02&hh=10&mn=00&ss=00&screen=edit-page&post_view=list",
        ),
    ),
    (
        "an inactive widget is added",
        ChangeAction::Command(
            "$all = get_option('sidebars_widgets'); $all['wp_inactive_widgets'][] = 'search-2'; update_option('sidebars_widgets', $all);",
        ),
    ),
];

const PROMPT: &[PlannedChange] = &[
    ("SQL: a title", ChangeAction::Sql("UPDATE wp_posts SET post_title = 'By hand' WHERE ID = 1299;")),
    (
        "SQL: a comment",
        ChangeAction::Sql(
            "INSERT INTO wp_comments (comment_post_ID, comment_author, comment_author_email, comment_content, comment_date, comment_date_gmt)
             VALUES (1299, 'Root', 'root@visitors.test', 'By hand.', NOW(), UTC_TIMESTAMP());",
        ),
    ),
    ("SQL: the tagline", ChangeAction::Sql("UPDATE wp_options SET option_value = 'By hand' WHERE option_name = 'blogdescription';")),
    ("SQL: a display name", ChangeAction::Sql("UPDATE wp_users SET display_name = 'Robert' WHERE user_login = 'bob';")),
    ("SQL: post meta of all posts", ChangeAction::Sql("DELETE FROM wp_postmeta WHERE meta_key = 'rating';")),
    ("SQL: a category's name", ChangeAction::Sql("UPDATE wp_terms SET name = 'Journeys' WHERE slug = 'travel';")),
    (
        "SQL: post 296 changes its category, in one transaction",
        ChangeAction::Sql(
            "BEGIN;
             DELETE FROM wp_term_relationships WHERE object_id = 1296;
             INSERT INTO wp_term_relationships VALUES
                 (1296, (SELECT term_taxonomy_id FROM wp_term_taxonomy JOIN wp_terms USING (term_id) WHERE slug = 'food'), 0);
             UPDATE wp_term_taxonomy t SET count = (SELECT COUNT(*) FROM wp_term_relationships r
                 WHERE r.term_taxonomy_id = t.term_taxonomy_id);
             COMMIT;",
        ),
    ),
    ("SQL: ten old posts become drafts", ChangeAction::Sql("UPDATE wp_posts SET post_status = 'draft' WHERE ID BETWEEN 1001 AND 1010;")),
    ("… and are published", ChangeAction::Sql("UPDATE wp_posts SET post_status = 'publish' WHERE ID BETWEEN 1001 AND 1010;")),
    (
        "user bob is deleted, alice gets the posts",
        ChangeAction::Command(
            "require_once ABSPATH . 'wp-admin/includes/user.php'; wp_delete_user({user:bob}, {user:alice});",
        ),
    ),
];
