//! Sends the file that an application has named (`X-Accel-Redirect`, `X-Sendfile`), as any other file: with ranges,
//! conditions and codings. Which file that is, and whether it may be sent, is decided in `forward::sendfile`.
//!
//! The fields of the application's response are kept, but for those that describe content. Its media type counts, too,
//! except `text/html`: PHP sends that if the application names none.

use delivery::body::ResponseBody;
use delivery::serve;
use delivery::site::Site;
use delivery::static_files;
use forward::sendfile::NamedFile;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use reasons::Reason;
use std::io::ErrorKind;
use telemetry::request_content::RequestContent;
use telemetry::request_fields::read_facts;

/// A request that may be answered with such a file.
pub(crate) struct FileRequest {
    method: Method,
    headers: HeaderMap,
}

impl FileRequest {
    /// Copies the needed parts of a request, if the site has such files.
    pub(crate) fn of(site: &Site, request: &Request<RequestContent>) -> Option<FileRequest> {
        let (files, _) = site.files.as_deref()?;
        if files.internal.is_empty() {
            return None;
        }
        // A form may start a download; its response is that to a GET, as nginx has it.
        let method = if request.method() == Method::HEAD { Method::HEAD } else { Method::GET };
        Some(FileRequest { method, headers: request.headers().clone() })
    }

    /// Sends the file that the response names; without one, the response stays as it is.
    pub(crate) async fn answer(
        self,
        site: &Site,
        mut response: Response<ResponseBody>,
    ) -> Response<ResponseBody> {
        let Some(file) = response.extensions_mut().remove::<NamedFile>() else { return response };
        let (NamedFile::Found(path), Some((_, files))) = (file, site.files.as_deref()) else {
            return serve::error(StatusCode::NOT_FOUND, Reason::NotFound, None);
        };
        let facts = read_facts(&self.method, &self.headers);
        match static_files::answer(files, site, &path, &facts).await {
            Ok(file) => {
                site.counters.internal_files.add();
                with_fields(file, response.headers())
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                serve::error(StatusCode::NOT_FOUND, Reason::NotFound, None)
            }
            Err(error) => {
                tracing::error!(event = "file-failed", path = %path.display(), %error);
                serve::error(StatusCode::INTERNAL_SERVER_ERROR, Reason::FileFailed, None)
            }
        }
    }
}

/// Adds the fields of the application's response to the response with the file.
fn with_fields(mut file: Response<ResponseBody>, fields: &HeaderMap) -> Response<ResponseBody> {
    let is_about_file = matches!(
        file.status(),
        StatusCode::OK | StatusCode::PARTIAL_CONTENT | StatusCode::NOT_MODIFIED
    );
    let headers = file.headers_mut();
    for name in fields.keys() {
        if *name == header::VARY {
            // Both say on which fields the response depends.
        } else if *name == header::CONTENT_TYPE {
            let starts = |value: &HeaderValue, with: &[u8]| {
                value
                    .as_bytes()
                    .get(..with.len())
                    .is_some_and(|start| start.eq_ignore_ascii_case(with))
            };
            let is_default = starts(&fields[name], b"text/html");
            let is_in_parts =
                headers.get(name).is_some_and(|value| starts(value, b"multipart/byteranges"));
            if !is_about_file || is_default || is_in_parts {
                continue;
            }
            headers.remove(name);
        } else {
            headers.remove(name);
        }
        for value in fields.get_all(name) {
            headers.append(name, value.clone());
        }
    }
    file
}

#[cfg(test)]
mod tests {
    use super::*;
    use delivery::body::Content;
    use http::HeaderName;

    fn headers(lines: &[(&'static str, &'static str)]) -> HeaderMap {
        let field = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        lines.iter().map(field).collect()
    }

    #[test]
    fn the_fields_of_the_application_are_kept_and_its_media_type_counts() {
        let sent = |file_type: &'static str, of_application: &[(&'static str, &'static str)]| {
            let mut file = Response::new(ResponseBody::from(Content::Empty));
            *file.headers_mut() = headers(&[
                ("content-type", file_type),
                ("etag", "\"file\""),
                ("vary", "accept-encoding"),
                ("cache-status", "pagewell; detail=file"),
            ]);
            with_fields(file, &headers(of_application)).into_parts().0.headers
        };
        let fields = sent(
            "image/svg+xml",
            &[
                ("content-type", "application/octet-stream"),
                ("content-disposition", "attachment"),
                ("cache-control", "private"),
                ("vary", "cookie"),
                ("set-cookie", "a=1"),
                ("cache-status", "pagewell; fwd=uri-miss"),
            ],
        );
        assert_eq!(fields["content-type"], "application/octet-stream");
        assert_eq!(fields["etag"], "\"file\"");
        assert_eq!(fields["cache-status"], "pagewell; fwd=uri-miss");
        assert_eq!(fields.get_all("vary").iter().count(), 2);
        assert_eq!(
            (&fields["cache-control"], &fields["set-cookie"]),
            (&"private".parse().unwrap(), &"a=1".parse().unwrap())
        );
        let of = |file_type, written| {
            sent(file_type, &[("content-type", written)])["content-type"].clone()
        };
        assert_eq!(of("application/zip", "Text/HTML; charset=UTF-8"), "application/zip");
        assert_eq!(
            of("multipart/byteranges; boundary=x", "a/b"),
            "multipart/byteranges; boundary=x"
        );
    }
}
