//! An administrator of the wiki who works with MediaWiki's API, through the Pagewell that stores pages.

use acceptance::mediawiki::{HOST, PASSWORD};
use acceptance::{BOUND, client};
use harness::{Client, Pagewell, Request};
use serde_json::Value;
use std::collections::BTreeMap;

/// A session, and the tokens of its writes.
pub struct Editor<'a> {
    pagewell: &'a Pagewell,
    cookies: String,
    tokens: BTreeMap<String, String>,
}

impl<'a> Editor<'a> {
    /// Signs in as the administrator.
    pub fn sign_in(pagewell: &'a Pagewell) -> Editor<'a> {
        let mut editor = Editor { pagewell, cookies: String::new(), tokens: BTreeMap::new() };
        let (token, cookies) = editor.get("action=query&meta=tokens&type=login&format=json");
        editor.cookies = cookies;
        let token = text(&token["query"]["tokens"]["logintoken"]);
        let fields = [("lgname", "Admin"), ("lgpassword", PASSWORD), ("lgtoken", &token)];
        let form = form(&[&[("action", "login"), ("format", "json")], &fields[..]].concat());
        let request = Request::form("/api.php", &form).header("Cookie", &editor.cookies);
        let (answer, cookies) = exchange(&mut editor.client(), &request);
        assert_eq!(answer["login"]["result"], "Success", "{answer}");
        editor.cookies = cookies;
        let (tokens, _) =
            editor.get("action=query&meta=tokens&type=csrf%7Crollback%7Cuserrights&format=json");
        let tokens = tokens["query"]["tokens"].as_object().expect("tokens").clone();
        editor.tokens = tokens.iter().map(|(name, token)| (name.clone(), text(token))).collect();
        editor
    }

    /// Calls the API with these fields and the token of a write.
    pub fn post(&self, fields: &[(&str, &str)]) -> Value {
        self.post_with("csrftoken", fields)
    }

    /// Undoes the last edits of a page.
    pub fn roll_back(&self, title: &str) {
        let user = self.last(title)["user"].as_str().expect("a user").to_owned();
        let fields = [("action", "rollback"), ("title", title), ("user", &user)];
        self.post_with("rollbacktoken", &fields);
    }

    /// Makes a user a member of a group.
    pub fn add_to_group(&self, user: &str, group: &str) {
        let fields = [("action", "userrights"), ("user", user), ("add", group)];
        self.post_with("userrightstoken", &fields);
    }

    /// Hides the author of the revision before the last one.
    pub fn hide_revision(&self, title: &str) {
        let [_, old] = self.revisions(title);
        self.post(&[
            ("action", "revisiondelete"),
            ("type", "revision"),
            ("ids", &old),
            ("hide", "user"),
        ]);
    }

    /// Uploads a version of a file.
    pub fn upload(&self, name: &str, content: &[u8]) {
        let fields = [
            ("action", "upload"),
            ("filename", name),
            ("ignorewarnings", "1"),
            ("format", "json"),
            ("token", &self.tokens["csrftoken"]),
        ];
        let mut body = Vec::new();
        for (name, value) in fields {
            let head = format!("Content-Disposition: form-data; name=\"{name}\"");
            body.extend(format!("--part\r\n{head}\r\n\r\n{value}\r\n").bytes());
        }
        let head = "Content-Disposition: form-data; name=\"file\"; filename=\"a.png\"";
        body.extend(format!("--part\r\n{head}\r\nContent-Type: image/png\r\n\r\n").bytes());
        body.extend(content);
        body.extend(b"\r\n--part--\r\n");
        let request = Request::new("POST", "/api.php")
            .header("Content-Type", "multipart/form-data; boundary=part")
            .header("Cookie", &self.cookies)
            .content(&body);
        let (answer, _) = exchange(&mut self.client(), &request);
        assert_eq!(answer["upload"]["result"], "Success", "{answer}");
    }

    /// A request for a page with the cookies of the session.
    pub fn request(&self, url: &str) -> Request {
        Request::get(url).header("Cookie", &self.cookies)
    }

    /// The ids of the last two revisions of a page, the newest first.
    pub fn revisions(&self, title: &str) -> [String; 2] {
        let all = self.list(title);
        [0, 1].map(|at| all[at]["revid"].to_string())
    }

    fn last(&self, title: &str) -> Value {
        self.list(title)[0].clone()
    }

    fn list(&self, title: &str) -> Vec<Value> {
        let query = format!(
            "action=query&prop=revisions&titles={title}&rvlimit=2&rvprop=ids%7Cuser&formatversion=2&format=json"
        );
        let (answer, _) = self.get(&query);
        answer["query"]["pages"][0]["revisions"].as_array().expect("revisions").clone()
    }

    fn post_with(&self, token: &str, fields: &[(&str, &str)]) -> Value {
        let more = [("format", "json"), ("token", &*self.tokens[token])];
        let request = Request::form("/api.php", &form(&[fields, &more[..]].concat()));
        exchange(&mut self.client(), &request.header("Cookie", &self.cookies)).0
    }

    fn get(&self, query: &str) -> (Value, String) {
        exchange(&mut self.client(), &self.request(&format!("/api.php?{query}")))
    }

    fn client(&self) -> Client {
        client(self.pagewell).host(HOST).within(BOUND)
    }
}

/// Calls the API as a visitor who is not signed in.
pub fn post_as_visitor(pagewell: &Pagewell, fields: &[(&str, &str)]) {
    let more = [("format", "json"), ("token", "+\\")];
    let request = Request::form("/api.php", &form(&[fields, &more[..]].concat()));
    exchange(&mut client(pagewell).host(HOST).within(BOUND), &request);
}

/// Sends a request. Returns the answer, and the cookies that it sets.
pub fn exchange(client: &mut Client, request: &Request) -> (Value, String) {
    let response = client.send(request).expect("an answer");
    let answer: Value = serde_json::from_slice(&response.content)
        .unwrap_or_else(|_| panic!("{} {}", response.status, response.text()));
    assert!(answer.get("error").is_none(), "{answer}");
    let pairs = response.all("set-cookie").filter_map(|line| line.split(';').next());
    (answer, pairs.collect::<Vec<_>>().join("; "))
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}

/// Encodes the fields of a form.
pub fn form(fields: &[(&str, &str)]) -> String {
    let encoded =
        |text: &str| -> String { text.bytes().map(|byte| format!("%{byte:02X}")).collect() };
    let pairs = fields.iter().map(|(name, value)| format!("{name}={}", encoded(value)));
    pairs.collect::<Vec<_>>().join("&")
}
