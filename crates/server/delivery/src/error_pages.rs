//! `[error_pages]`: the site's own pages for Pagewell's errors.
//!
//! Status and fields of the response stay (`Cache-Control: no-store`, `Cache-Status`, `Allow`, `Retry-After`,
//! `WWW-Authenticate`); only `Content-Type`, `Content-Length` and `Content-Encoding` are those of the page. Responses of
//! the application are not touched, nor the page that repeats a deferred request.

use crate::body::{Content, ResponseBody};
use crate::serve::own_error;
use crate::site::Site;
use crate::static_files::media_type;
use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderValue, Response};
use reasons::Reason;

/// Counts Pagewell's own error, and replaces its content if the site has a page for its status.
pub fn put_error_page(site: &Site, response: &mut Response<ResponseBody>) {
    let Some(reason) = own_error(response) else { return };
    site.counters.own_errors.add();
    if reason == Reason::Deferred {
        return;
    }
    let Some(page) = site.config.error_pages.of(response.status()).cloned() else { return };
    site.counters.error_pages.add();
    let headers = response.headers_mut();
    headers.remove(CONTENT_ENCODING);
    headers.insert(CONTENT_LENGTH, page.content.len().into());
    if let Ok(media_type) = HeaderValue::from_str(&media_type(&page.path)) {
        headers.insert(CONTENT_TYPE, media_type);
    }
    let content = Bytes::copy_from_slice(&page.content);
    *response.body_mut() = ResponseBody::from(Content::Whole(content));
}
