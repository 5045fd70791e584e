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

/// Replaces the content of Pagewell's own error, if the site has a page for its status.
pub fn put_error_page(site: &Site, response: &mut Response<ResponseBody>) {
    let page = || site.config.error_pages.of(response.status()).cloned();
    let Some(page) = own_error(response).and_then(|_| page()) else { return };
    let headers = response.headers_mut();
    headers.remove(CONTENT_ENCODING);
    headers.insert(CONTENT_LENGTH, page.content.len().into());
    if let Ok(media_type) = HeaderValue::from_str(&media_type(&page.path)) {
        headers.insert(CONTENT_TYPE, media_type);
    }
    let content = Bytes::copy_from_slice(&page.content);
    *response.body_mut() = ResponseBody::from(Content::Whole(content));
}
