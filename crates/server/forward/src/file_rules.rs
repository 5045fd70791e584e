//! The rules for the fields of a file: `Cache-Control` (`file_cache`), and what is laid out with the file for plain
//! hits.
//!
//! Not here: the other changed fields of a response, which are set at the end of a request (`exchange::edge`).

use delivery::body::ResponseBody;
use delivery::site::Site;
use http::{HeaderMap, Method, Response, StatusCode};
use request_values::target::TargetUri;
use rule_conditions::RequestView;
use site_rules::SiteRules;

/// The rules for the file at a target.
pub(crate) struct FileRules<'a> {
    rules: &'a SiteRules,
    view: RequestView<'a>,
}

impl<'a> FileRules<'a> {
    pub(crate) fn of(site: &'a Site, target: &'a TargetUri) -> FileRules<'a> {
        let view = RequestView::of_url(&Method::GET, target.scheme, &target.host, target.page());
        FileRules { rules: &site.config.rules, view }
    }

    /// Sets the `Cache-Control` of a response that contains the file, or says that it has not changed.
    pub(crate) fn cache(&self, response: &mut Response<ResponseBody>) {
        let is_about_file = matches!(
            response.status(),
            StatusCode::OK | StatusCode::PARTIAL_CONTENT | StatusCode::NOT_MODIFIED
        );
        if is_about_file && self.rules.has_response_fields() {
            self.rules.cache_file(&self.view, response.headers_mut());
        }
    }

    /// Whether all requests for the path of the file get the same fields.
    pub(crate) fn follow_path(&self) -> bool {
        self.rules.fields_follow_path()
    }

    /// The fields of a plain hit, if they differ from those of the file.
    pub(crate) fn laid_out(&self, headers: &HeaderMap) -> Option<HeaderMap> {
        if !self.rules.has_response_fields() {
            return None;
        }
        let mut headers = headers.clone();
        self.rules.cache_file(&self.view, &mut headers);
        self.rules.change_fields(&self.view, StatusCode::OK, &mut headers);
        Some(headers)
    }
}
