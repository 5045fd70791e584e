//! The responses to redirects as they are sent to plain requests: laid out once for each configuration, because only
//! `Location` and `Date` differ from one to the next.
//!
//! Not here: which request is redirected, and which responses have further fields (`exchange::steps`).

use bytes::Bytes;
use http::header::LOCATION;
use http::{Response, StatusCode};
use reasons::Reason;
use std::sync::{Arc, OnceLock};
use telemetry::access_log::{Outcome, outcome};

/// The statuses of redirects.
const STATUSES: [u16; 6] = [301, 302, 303, 307, 308, 410];

/// The laid out responses of a site under one configuration, by status and reason.
#[derive(Default)]
pub struct RedirectForms {
    redirected: [OnceLock<Option<Arc<RedirectForm>>>; STATUSES.len()],
    to_canonical: [OnceLock<Option<Arc<RedirectForm>>>; STATUSES.len()],
}

/// A response without `Location` and `Date`.
#[derive(Debug)]
pub struct RedirectForm {
    status: StatusCode,
    /// The status line and the header lines.
    lines: Box<[u8]>,
    /// The value of `Cache-Status`.
    cache_status: Box<[u8]>,
    content: Bytes,
}

impl RedirectForms {
    /// The form of the responses with this status and reason. `make` makes such a response, if there is none yet, with
    /// its content if that is in memory. `None` if it has no form: there is no such status, or no content.
    pub fn get(
        &self,
        status: StatusCode,
        reason: Reason,
        make: impl FnOnce() -> Response<Option<Bytes>>,
    ) -> Option<&Arc<RedirectForm>> {
        let at = STATUSES.iter().position(|known| *known == status.as_u16())?;
        let of_reason = match reason {
            Reason::ToCanonical => &self.to_canonical,
            _ => &self.redirected,
        };
        of_reason[at].get_or_init(|| RedirectForm::of(make()).map(Arc::new)).as_ref()
    }
}

impl RedirectForm {
    fn of(response: Response<Option<Bytes>>) -> Option<RedirectForm> {
        let (head, content) = response.into_parts();
        let status = head.status;
        let reason = status.canonical_reason()?;
        let mut lines = format!("HTTP/1.1 {} {reason}", status.as_str()).into_bytes();
        for (name, value) in head.headers.iter().filter(|(name, _)| *name != LOCATION) {
            for part in [&b"\r\n"[..], name.as_str().as_bytes(), b": ", value.as_bytes()] {
                lines.extend_from_slice(part);
            }
        }
        let cache_status = head.headers.get_all("cache-status").iter().next_back();
        Some(RedirectForm {
            status,
            lines: lines.into(),
            cache_status: cache_status.map_or(&b""[..], |value| value.as_bytes()).into(),
            content: content?,
        })
    }

    /// The status of the response.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// The content of the response.
    pub fn content(&self) -> &[u8] {
        &self.content
    }

    /// The outcome for the access log.
    pub fn outcome(&self) -> Outcome<'_> {
        outcome(&self.cache_status)
    }

    /// Writes the status line of HTTP/1.1 and all header lines but that of `Date`, without the end of the last line.
    pub fn write_lines(&self, location: Option<&str>, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.lines);
        if let Some(location) = location {
            out.extend_from_slice(b"\r\nlocation: ");
            out.extend_from_slice(location.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::ResponseBody;
    use crate::serve;

    #[test]
    fn a_form_has_all_lines_but_those_that_differ() {
        let forms = RedirectForms::default();
        let make = || {
            serve::moved(StatusCode::FOUND, Reason::Redirected, Some("/first"))
                .map(ResponseBody::whole)
        };
        let form = forms.get(StatusCode::FOUND, Reason::Redirected, make).expect("a form");
        let mut lines = Vec::new();
        form.write_lines(Some("/a?b"), &mut lines);
        let text = String::from_utf8(lines).expect("text");
        let length = form.content().len();
        assert_eq!(
            text,
            format!(
                "HTTP/1.1 302 Found\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {length}\r\n\
                 cache-control: no-store\r\ncache-status: pagewell; detail=redirected\r\nlocation: /a?b"
            )
        );
        assert!(length > 100 && form.outcome().detail == b"redirected");
        let again = || unreachable!("it is laid out once");
        assert!(Arc::ptr_eq(
            forms.get(StatusCode::FOUND, Reason::Redirected, again).expect("a form"),
            form
        ));
        let other = || {
            serve::moved(StatusCode::FOUND, Reason::ToCanonical, Some("/")).map(ResponseBody::whole)
        };
        let other = forms.get(StatusCode::FOUND, Reason::ToCanonical, other).expect("a form");
        assert_eq!(other.outcome().detail, b"to-canonical");
        let make =
            || serve::moved(StatusCode::OK, Reason::Redirected, None).map(ResponseBody::whole);
        assert!(forms.get(StatusCode::OK, Reason::Redirected, make).is_none());
    }
}
