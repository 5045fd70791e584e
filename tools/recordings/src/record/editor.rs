//! Makes the changes of a plan: as the administrator, as a visitor, at the command line and at the SQL prompt.
//!
//! | placeholder | stands for |
//! |---|---|
//! | `{post}` | the newest post or page |
//! | `{comment}` | the newest comment |
//! | `{item}` | the first item of a menu |
//! | `{term:SLUG}`, `{user:LOGIN}` | the id of this term or user |
//! | `{soon}` | the time in 75 seconds: WordPress publishes at once what is due within a minute |
//!
//! A change that WordPress refuses is an error.

use super::plan::ChangeAction;
use super::site::{AdminRequest, Blog};
use harness::{Deadline, Response};
use std::cell::RefCell;
use std::thread;
use std::time::Duration;

const FORM: &str = "application/x-www-form-urlencoded";
/// How long a scheduled post may need.
const PATIENCE: Duration = Duration::from_secs(120);

/// The administrator of a blog, logged in.
#[derive(Debug)]
pub struct Editor<'b> {
    blog: &'b Blog,
    /// The value of `Cookie`.
    cookies: RefCell<String>,
}

impl<'b> Editor<'b> {
    /// Logs in.
    ///
    /// # Errors
    /// A message, if WordPress refuses.
    pub fn log_in(blog: &'b Blog) -> Result<Editor<'b>, String> {
        let editor = Editor { blog, cookies: RefCell::default() };
        editor.renew_login()?;
        Ok(editor)
    }

    /// Makes a change.
    ///
    /// # Errors
    /// A message, if it was refused.
    pub fn perform(&self, action: ChangeAction) -> Result<(), String> {
        let filled = |text| self.filled(text);
        match action {
            ChangeAction::Nothing => Ok(()),
            ChangeAction::Rest(method, path, json) => {
                self.rest(method, &filled(path)?, &filled(json)?)
            }
            ChangeAction::Form(page, nonce, target, fields) => {
                self.form(&filled(page)?, nonce, target, &filled(fields)?)
            }
            ChangeAction::Look(target) => self.as_admin("GET", target, "", "").map(drop),
            ChangeAction::Visitor(target, fields) => {
                let request = AdminRequest {
                    method: "POST",
                    target,
                    media_type: FORM,
                    content: fields,
                    ..AdminRequest::default()
                };
                accepted(target, self.blog.send(&request)?).map(drop)
            }
            ChangeAction::Login => self.renew_login(),
            ChangeAction::Command(php) => self.command(&filled(php)?),
            ChangeAction::Sql(statements) => self.sql(statements).map(drop),
            ChangeAction::Cron => self.cron(),
            ChangeAction::ScheduledPost => {
                self.wait_for_scheduled_post().and_then(|()| self.cron())
            }
        }
    }

    fn renew_login(&self) -> Result<(), String> {
        let request = AdminRequest {
            method: "POST",
            target: "/wp-login.php",
            media_type: FORM,
            content: "log=admin&pwd=secret-of-admin&testcookie=1",
            cookies: "wordpress_test_cookie=WP%20Cookie%20check",
            ..AdminRequest::default()
        };
        let response = self.blog.send(&request)?;
        let cookies: Vec<&str> =
            response.all("set-cookie").filter_map(|cookie| cookie.split(';').next()).collect();
        if !cookies.iter().any(|cookie| cookie.starts_with("wordpress_logged_in")) {
            return Err(format!("the login was refused: {}", response.status));
        }
        self.cookies.replace(cookies.join("; "));
        Ok(())
    }

    /// Sends a request with the login.
    fn as_admin(
        &self,
        method: &str,
        target: &str,
        media_type: &str,
        content: &str,
    ) -> Result<Response, String> {
        let cookies = self.cookies.borrow();
        let request = AdminRequest {
            method,
            target,
            media_type,
            content,
            cookies: &cookies,
            ..AdminRequest::default()
        };
        accepted(target, self.blog.send(&request)?)
    }

    fn rest(&self, method: &str, path: &str, json: &str) -> Result<(), String> {
        let nonce =
            self.as_admin("GET", "/wp-admin/admin-ajax.php?action=rest-nonce", "", "")?.text();
        let target = format!("/wp-json/wp/v2/{path}");
        let request = AdminRequest {
            method,
            target: &target,
            media_type: if json.is_empty() { "" } else { "application/json" },
            content: json,
            cookies: &self.cookies.borrow(),
            nonce: nonce.trim(),
        };
        accepted(&target, self.blog.send(&request)?).map(drop)
    }

    fn form(&self, page: &str, nonce: &str, target: &str, fields: &str) -> Result<(), String> {
        let form = self.as_admin("GET", page, "", "")?.text();
        let before = format!("name=\"{nonce}\" value=\"");
        let value = form.split_once(&before).and_then(|(_, rest)| rest.split('"').next());
        let value = value.ok_or_else(|| format!("{page}: no field {nonce}"))?;
        let fields = format!("{nonce}={value}&{fields}");
        self.as_admin("POST", target, FORM, &fields).map(drop)
    }

    fn command(&self, php: &str) -> Result<(), String> {
        let code = format!("require 'wp-load.php'; {php}");
        self.blog.wordpress().command(&code).map(drop).map_err(|error| error.to_string())
    }

    fn sql(&self, statements: &str) -> Result<String, String> {
        let database = self.blog.wordpress().database();
        let output = database.sql_in("wordpress", statements).map_err(|error| error.to_string())?;
        Ok(output.trim().to_owned())
    }

    fn cron(&self) -> Result<(), String> {
        self.blog.wordpress().cron().map(drop).map_err(|error| error.to_string())
    }

    fn wait_for_scheduled_post(&self) -> Result<(), String> {
        const LEFT: &str = "SELECT COUNT(*) FROM wp_posts WHERE post_status = 'future' \
                            AND post_date_gmt > UTC_TIMESTAMP() - INTERVAL 1 SECOND";
        let deadline = Deadline::after(PATIENCE);
        while self.sql(LEFT)? != "0" {
            if deadline.passed() {
                return Err("the time of the scheduled post does not come".to_owned());
            }
            thread::sleep(Duration::from_millis(500));
        }
        Ok(())
    }

    /// The text without placeholders.
    fn filled(&self, text: &str) -> Result<String, String> {
        let mut filled = text.to_owned();
        while let Some((placeholder, query)) = next_placeholder(&filled) {
            let value = self.sql(&query)?;
            if value.is_empty() || value == "NULL" {
                return Err(format!("{text}: nothing for {placeholder}"));
            }
            filled = filled.replace(&placeholder, &value);
        }
        Ok(filled)
    }
}

/// The first placeholder of a text, and the query for its value.
fn next_placeholder(text: &str) -> Option<(String, String)> {
    let named = [
        (
            "{post}",
            "SELECT MAX(ID) FROM wp_posts WHERE post_type IN ('post', 'page') AND post_status <> 'auto-draft'",
        ),
        ("{comment}", "SELECT MAX(comment_ID) FROM wp_comments"),
        ("{item}", "SELECT MIN(ID) FROM wp_posts WHERE post_type = 'nav_menu_item'"),
        ("{soon}", "SELECT DATE_FORMAT(UTC_TIMESTAMP() + INTERVAL 75 SECOND, '%Y-%m-%dT%H:%i:%s')"),
    ];
    if let Some((name, query)) = named.iter().find(|(name, _)| text.contains(name)) {
        return Some(((*name).to_owned(), (*query).to_owned()));
    }
    let with_key = [
        ("{term:", "SELECT term_id FROM wp_terms WHERE slug = "),
        ("{user:", "SELECT ID FROM wp_users WHERE user_login = "),
    ];
    with_key.iter().find_map(|(start, query)| {
        let (_, rest) = text.split_once(start)?;
        let (key, _) = rest.split_once('}')?;
        Some((format!("{start}{key}}}"), format!("{query}'{key}'")))
    })
}

fn accepted(target: &str, response: Response) -> Result<Response, String> {
    if response.status < 400 {
        return Ok(response);
    }
    let text: String = response.text().chars().take(500).collect();
    Err(format!("{target}: {} {text}", response.status))
}
